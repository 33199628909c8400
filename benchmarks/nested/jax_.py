"""Both descents in JAX, jitted as a whole."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.nested.system import CONTROLS, INNER, OUTER, RATES, START, Nested

__all__ = ["create"]

jax.config.update("jax_enable_x64", True)


def _height(p: Any, q: Any) -> Any:
    return (p * p).sum() + (p * q).sum() - (q * q).sum() + 0.1 * jnp.sin(p[0] * q[1])


def _cost(u: Any, target: Any) -> Any:
    def step(state: Any, control: Any) -> Any:
        x, v = state
        v = v + 0.2 * (control - 0.3 * jnp.sin(x))
        return (x + 0.2 * v, v), None

    (x, _), _ = jax.lax.scan(step, (0.0, 0.0), u)
    return (0.01 * u * u).sum() + (x - target[0]) ** 2


class JaxNested(Nested):
    """One of them."""

    def __init__(self, problem: str, outer: str, inner: str) -> None:
        super().__init__(problem, outer, inner)
        modes = {"reverse": jax.grad, "forward": jax.jacfwd}
        rate, inner_rate = RATES[problem]

        def saddle(p: Any) -> Any:
            slope = modes[inner](lambda q: _height(p, q))
            q, _ = jax.lax.scan(lambda q, _: (q + inner_rate * slope(q), None), jnp.zeros(2), length=INNER)
            return _height(p, q)

        def particle(target: Any) -> Any:
            slope = modes[inner](lambda u: _cost(u, target))
            u, _ = jax.lax.scan(lambda u, _: (u - inner_rate * slope(u), None), jnp.zeros(CONTROLS), length=INNER)
            return _cost(u, target) + 0.1 * (target[0] - 2.0) ** 2

        by = modes[outer]({"saddle": saddle, "particle": particle}[problem])
        self._descend = jax.jit(lambda x: jax.lax.fori_loop(0, OUTER, lambda _, x: x - rate * by(x), x))
        self._start = jnp.asarray(START[problem])

    def run(self, count: int) -> None:
        for _ in range(count):
            self._found = self._descend(self._start)
        self._found.block_until_ready()

    def result(self) -> np.ndarray:
        return np.asarray(self._found)


def create(package: str, problem: str, outer: str, inner: str) -> JaxNested:
    """Return one of them."""
    return JaxNested(problem, outer, inner)
