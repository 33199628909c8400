"""The rollout in JAX: a scan over the steps, with preconditioned conjugate gradients, which it differentiates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.implicit.system import DAMPING, STIFFNESS, TIME_STEP, ImplicitSystem, cloth

__all__ = ["create"]


class JaxImplicit(ImplicitSystem):
    """One jitted function for each number of steps."""

    def __init__(self, part: str, size: int, steps: int) -> None:
        super().__init__(part, size, steps)
        jax.config.update("jax_enable_x64", True)
        self._functions: dict[int, Any] = {}

    def compute(self, steps: int) -> tuple[float, float]:
        if steps not in self._functions:
            function = rollout(self.size, steps)
            self._functions[steps] = jax.jit(function if self.part == "primal" else jax.value_and_grad(function))
        result = self._functions[steps](STIFFNESS)
        value, slope = (result, 0.0) if self.part == "primal" else result
        return float(value), float(slope)


def rollout(size: int, steps: int) -> Any:
    """Return the function of the stiffness."""
    it = cloth(size)
    i, j = it.ends.T
    diagonal = jnp.asarray(it.masses + TIME_STEP * DAMPING)[:, None]
    weight = jnp.zeros(it.places.shape).at[:, 2].set(it.weights)

    def gathered(by_spring: Any) -> Any:
        """To one end of each spring, and from the other."""
        return jnp.zeros(it.places.shape).at[i].add(by_spring).at[j].add(-by_spring)

    def run(stiffness: Any) -> Any:
        def step(state: Any, _: None) -> Any:
            x, v = state
            d = x[j] - x[i]
            length = jnp.sqrt((d * d).sum(axis=1, keepdims=True))
            direction = d / length
            across = jnp.maximum(1 - it.lengths[:, None] / length, 0.0)

            def slope(u: Any) -> Any:
                along = direction * (direction * u).sum(axis=1, keepdims=True)
                return stiffness * (along + across * (u - along))

            def matrix(u: Any) -> Any:
                return diagonal * u + TIME_STEP**2 * gathered(slope(u[i] - u[j]))

            force = stiffness * (length - it.lengths[:, None]) * direction
            change = TIME_STEP * force + TIME_STEP**2 * slope(v[j] - v[i])
            b = TIME_STEP * (weight - DAMPING * v) + gathered(change)
            found, _ = jax.scipy.sparse.linalg.cg(matrix, b, tol=1e-9, M=lambda u: u / diagonal)
            v = v + found
            return (x + TIME_STEP * v, v), None

        start = jnp.asarray(it.places)
        (x, _), _ = jax.lax.scan(step, (start, jnp.zeros_like(start)), length=steps)
        return (x * x).sum()

    return run


def create(package: str, part: str, size: int, steps: int) -> JaxImplicit:
    """Return the rollout."""
    return JaxImplicit(part, size, steps)
