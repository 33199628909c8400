"""Jitted derivatives in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.fixed_cost.system import FixedCost, initial_values, vector

__all__ = ["create"]

jax.config.update("jax_enable_x64", True)


class JaxFixedCost(FixedCost):
    """One of them."""

    def __init__(self, derivative: str) -> None:
        super().__init__(derivative)
        x, along = jnp.asarray(initial_values()), jnp.asarray(vector())
        gradient = jax.jit(jax.grad(lambda x: jnp.sum(x**2 if derivative == "tape" else x**3)))
        product = jax.jit(lambda x, v: jax.jvp(gradient, (x,), (v,))[1])
        self._run = (lambda: product(x, along)) if derivative == "hvp" else (lambda: gradient(x))

    def run(self, count: int) -> None:
        run = self._run
        for _ in range(count):
            self._found = run()
        self._found.block_until_ready()

    def result(self) -> np.ndarray:
        return np.asarray(self._found)


def create(package: str, derivative: str) -> JaxFixedCost:
    """Return the derivative."""
    return JaxFixedCost(derivative)
