"""Calls of jitted functions in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.launch.system import ARGUMENT, LaunchSystem, initial_values

__all__ = ["create"]


class JaxLaunch(LaunchSystem):
    """A jitted function of a Python scalar, and one of an array."""

    def __init__(self, kernel: str) -> None:
        super().__init__(kernel)
        self._argument = ARGUMENT if kernel == "scalar" else jnp.asarray(initial_values())
        self._function = jax.jit((lambda value: value * 1) if kernel == "scalar" else (lambda x: 2 * x + 1))
        self.clear()

    def run(self, count: int) -> None:
        function, argument = self._function, self._argument
        result = self._result
        for _ in range(count):
            result = function(argument)
        self._result = result.block_until_ready()

    def clear(self) -> None:
        self._result = jnp.zeros(1)

    def result(self) -> np.ndarray:
        return np.asarray(self._result)


def create(package: str, kernel: str) -> JaxLaunch:
    """Return the launches."""
    return JaxLaunch(kernel)
