"""A sweep over the active cells of a sparse field, a hundredth of a box of 1024³, beside one over a dense field of
that number of cells; and the material point method on a sparse grid.

A sweep should take at most 1.5 times as long, and the material point method at most as long as in the peers, which run
the same programs on one thread, too. That memory is at most 1.3 times what is active is a test
(`tests/lang/test_sparse_fields.py`).
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

DENSE = "tinote, dense"
PROGRAM = "benchmarks.sparse.dialect"

ROWS = (
    Contender("tinote", PROGRAM, "tinote", {"dense": False}, DENSE),
    Contender(DENSE, PROGRAM, "tinote", {"dense": True}),
    Contender("taichi", PROGRAM, "taichi", {"dense": False}, DENSE),
    Contender("quadrants", PROGRAM, "quadrants", {"dense": False}, DENSE),
)

TITLES = {
    "8 8 16": "a sweep over a hundredth of 1024³, in blocks of 8 by 8 by 16",
    "16 16 16": "the same in blocks of 16³",
    "32 32 32": "the same in blocks of 32³",
}

PACKAGES = tuple(
    [Contender(name, "benchmarks.sparse.material", name, over="taichi") for name in ("tinote", "taichi", "quadrants")]
)

CASES = (
    *[Case(title, ROWS, {"block": block}, at_most_over=1.5) for block, title in TITLES.items()],
    Case("MPM substep, 8192 particles in a box of 4096²", PACKAGES, {"dims": 2}, at_most_best=1.0),
    Case("MPM substep, 32768 particles in a box of 1024³", PACKAGES, {"dims": 3}, at_most_best=1.0),
)
