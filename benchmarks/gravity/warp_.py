"""Gravity in Warp, with its tape."""

from __future__ import annotations

import numpy as np
import warp as wp

from benchmarks.gravity.system import SOFTENING, TIME_STEP, GravitySystem, initial_positions

__all__ = ["create"]


class WarpGravity(GravitySystem):
    """One thread of the launch for each pair, one atomic addition each, as the dialect's program has it."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        softening = wp.constant(SOFTENING)
        time_step = wp.constant(TIME_STEP)

        @wp.kernel
        def compute_energy(x: wp.array(dtype=wp.vec2), energy: wp.array(dtype=float)):  # pyright: ignore
            i, j = wp.tid()
            r = x[i] - x[j]
            wp.atomic_add(energy, 0, -1.0 / wp.sqrt(wp.dot(r, r) + softening))

        @wp.kernel
        def advance(x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2), gradient: wp.array(dtype=wp.vec2)):  # pyright: ignore
            i = wp.tid()
            v[i] = v[i] - time_step * gradient[i]
            x[i] = x[i] + time_step * v[i]

        self._x = wp.zeros(n, dtype=wp.vec2, requires_grad=True, device="cpu")
        self._v = wp.zeros(n, dtype=wp.vec2, device="cpu")
        self._energy = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
        self._compute_energy = compute_energy
        self._advance = advance
        self.set_positions(initial_positions(n))

    def substep(self) -> None:
        self._energy.zero_()
        with wp.Tape() as tape:
            pairs = (self.n, self.n)
            wp.launch(self._compute_energy, dim=pairs, inputs=[self._x], outputs=[self._energy], device="cpu")
        tape.backward(loss=self._energy)
        wp.launch(self._advance, dim=self.n, inputs=[self._x, self._v, self._x.grad], device="cpu")
        tape.zero()

    def set_positions(self, positions: np.ndarray) -> None:
        self._x.assign(positions)
        self._v.zero_()

    def velocities(self) -> np.ndarray:
        return self._v.numpy()


def create(package: str, n: int) -> WarpGravity:
    """Return the system."""
    return WarpGravity(n)
