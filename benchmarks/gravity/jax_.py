"""Gravity in JAX: the gradient and the advance in one jitted function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.gravity.system import SOFTENING, TIME_STEP, GravitySystem, initial_positions

__all__ = ["create"]


class JaxGravity(GravitySystem):
    """All pairs by broadcasting; differences as one (n, n, 2) array ("stacked") or two (n, n) arrays ("separate")."""

    def __init__(self, n: int, layout: str) -> None:
        super().__init__(n)
        self._separate = layout == "separate"

        def stacked_energy(x):
            difference = x[:, None, :] - x[None, :, :]
            return -jax.lax.rsqrt((difference**2).sum(axis=-1) + SOFTENING).sum()

        def separate_energy(x):
            dx = x[0][:, None] - x[0][None, :]
            dy = x[1][:, None] - x[1][None, :]
            return -jax.lax.rsqrt(dx * dx + dy * dy + SOFTENING).sum()

        energy = separate_energy if self._separate else stacked_energy

        @jax.jit
        def substep(x, v):
            v = v - TIME_STEP * jax.grad(energy)(x)
            return x + TIME_STEP * v, v

        self._substep = substep
        self.set_positions(initial_positions(n))

    def substep(self) -> None:
        self._x, self._v = self._substep(self._x, self._v)

    def finish(self) -> None:
        self._x.block_until_ready()
        self._v.block_until_ready()

    def set_positions(self, positions: np.ndarray) -> None:
        self._x = jnp.asarray(positions.T if self._separate else positions)
        self._v = jnp.zeros_like(self._x)

    def velocities(self) -> np.ndarray:
        return np.asarray(self._v).T if self._separate else np.asarray(self._v)


def create(package: str, n: int, layout: str = "stacked") -> JaxGravity:
    """Return the system."""
    return JaxGravity(n, layout)
