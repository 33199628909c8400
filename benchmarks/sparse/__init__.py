"""A sweep over the active cells of a sparse field, a hundredth of a box of 1024³, beside one over a dense field of
that number of cells.

A sweep should take at most 1.5 times as long. Taichi and Quadrants run the same program. That memory is at most 1.3
times what is active is a test (`tests/lang/test_sparse_fields.py`).
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

CASES = tuple([Case(title, ROWS, {"block": block}, at_most_over=1.5) for block, title in TITLES.items()])
