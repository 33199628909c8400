"""Loops that lanes suit, and loops that they do not: what the compiler's choice costs beside either of the fixed ones.

Each loop runs as it is compiled by default, never in lanes, and always in lanes where that is legal, on one thread.
The choice should be within a tenth of the better one. Taichi and Quadrants run the same program.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

NEVER = "tinote, lanes never"
PROGRAM = "benchmarks.lanes.dialect"

ROWS = (
    Contender("tinote", PROGRAM, "tinote", {"lanes": "auto"}, NEVER),
    Contender(NEVER, PROGRAM, "tinote", {"lanes": "never"}),
    Contender("tinote, lanes always", PROGRAM, "tinote", {"lanes": "always"}, NEVER),
    Contender("taichi", PROGRAM, "taichi", {"lanes": ""}, NEVER),
    Contender("quadrants", PROGRAM, "quadrants", {"lanes": ""}, NEVER),
)

TITLES = {
    "stencil": "differences over four cells in 144³, in a loop of four",
    "turned": "the same with the first index in the innermost loop",
    "vectors": "sums over three rows of 1,024 vectors of two numbers",
    "columns": "columns of a matrix, one after the other",
    "escape": "a loop that each iteration leaves at a time of its own",
    "nest": "sums over short ranges that another field names, in two loops",
    "gather": "sums over 16 elements anywhere in a megabyte",
}

CASES = tuple([Case(title, ROWS, {"loop": loop}, at_most_over=1.1) for loop, title in TITLES.items()])
