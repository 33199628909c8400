"""One substep of N particles that attract each other, where the forces are derived from the energy.

The energy is the sum of -1 / sqrt(|x_i - x_j|² + 1e-3) over all ordered pairs (i, j), i == j included, as the classic
program of the dialect has it. A substep sets the energy and the gradients to zero, computes the energy, differentiates
it, and advances: v += dt * -gradient; x += dt * v.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["AUTODIFF", "CASES", "CONTENDERS", "HAND_DERIVED_NUMBA"]

# Those that derive the forces themselves.
AUTODIFF = (
    Contender("tinote", "benchmarks.gravity.dialect", "tinote"),
    Contender("taichi", "benchmarks.gravity.dialect", "taichi"),
    Contender("quadrants", "benchmarks.gravity.dialect", "quadrants"),
    Contender("jax", "benchmarks.gravity.jax_", "jax"),
    Contender("warp", "benchmarks.gravity.warp_", "warp"),
)

# The same energy over two coordinate arrays: not how one writes it first, but what XLA fuses best.
JAX_SEPARATE = Contender("jax (two arrays)", "benchmarks.gravity.jax_", "jax", {"layout": "separate"})

# The substep as a program without Python between its launches.
CAPTURED = Contender("tinote, captured", "benchmarks.gravity.dialect", "tinote", {"captured": True})

CAPTURED_TABLE = (
    Contender("tinote", "benchmarks.gravity.dialect", "tinote", {"captured": True}),
    Contender("tinote, as a function", "benchmarks.gravity.dialect", "tinote"),
    Contender("C mechanical", "benchmarks.gravity.c_", parameters={"variant": "mechanical"}),
)

HAND_DERIVED_NUMBA = Contender("numba by hand", "benchmarks.gravity.numba_", "numba")

CONTENDERS = (
    *AUTODIFF,
    CAPTURED,
    JAX_SEPARATE,
    HAND_DERIVED_NUMBA,
    Contender("C mechanical", "benchmarks.gravity.c_", parameters={"variant": "mechanical"}),
    Contender("C by hand", "benchmarks.gravity.c_", parameters={"variant": "by_hand"}),
)

CASES = (
    Case("gravity substep with autodiff, N = 8", CONTENDERS, {"n": 8}, at_most=25e-6),
    Case("gravity substep with autodiff, N = 1024", CONTENDERS, {"n": 1024}, at_most=0.5e-3),
    Case("gravity substep with autodiff, captured, N = 8", CAPTURED_TABLE, {"n": 8}, at_most=5e-6),
)
