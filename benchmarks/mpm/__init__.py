"""One substep of the moving-least-squares material point method in its short form (Hu et al., 2018): a block of fluid.

8,192 particles on a grid of 128 × 128, f32, quadratic weights. A substep clears the grid, scatters momentum and mass of
each particle to its 3 × 3 nodes (atomic sums), applies gravity and walls to the grid, and gathers velocities back.
Tinote checks indices by default and its peers do not, so it has two rows: as it is, and with `bounds_check=False`.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender, Mode

__all__ = ["CASES"]

CONTENDERS = (
    Contender("tinote", "benchmarks.mpm.dialect", "tinote"),
    Contender("tinote unchecked", "benchmarks.mpm.dialect", "tinote", {"checks": "off"}),
    Contender("taichi", "benchmarks.mpm.dialect", "taichi"),
    Contender("quadrants", "benchmarks.mpm.dialect", "quadrants"),
)

CASES = (
    Case("MPM substep, 8192 particles, 128 x 128 nodes", CONTENDERS),
    Case(
        "first call of the MPM substep, nothing cached, after the import",
        CONTENDERS,
        mode=Mode.FIRST_CALL,
        most_rounds=5,
    ),
    Case(
        "passes over the MPM substep, a pass over an operation",
        (Contender("tinote", "benchmarks.mpm.passes", "tinote"),),
        at_most=2e-6,
    ),
)
