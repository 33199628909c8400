"""A rollout of pendulums under a tape, and its gradient: what a small step costs beside its work.

A hundred steps of eight pendulums (v -= dt sin x; x += dt v), two kernels each, and the gradient of the sum of the
angles' squares at the end by the angles at the begin. A row shows the time of one step, forwards and back.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

CASES = (
    Case(
        "a step of a rollout of 100 under a tape, with its gradient, N = 8",
        (
            Contender("tinote", "benchmarks.rollout.tinote_", "tinote", {"style": "captured"}),
            Contender("tinote, as a function", "benchmarks.rollout.tinote_", "tinote", {"style": "function"}),
            Contender("tinote, checkpointed", "benchmarks.rollout.tinote_", "tinote", {"style": "checkpointed"}),
            Contender("C by hand", "benchmarks.rollout.c_"),
        ),
        tolerance=1e-10,
    ),
)
