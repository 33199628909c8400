"""The first gravity substep of a process, nothing cached: compiling, and whatever a package puts off until its use."""

from __future__ import annotations

from benchmarks.contract import Case, Mode
from benchmarks.gravity import AUTODIFF, HAND_DERIVED_NUMBA

__all__ = ["CASES"]

CASES = (
    Case(
        "first call of the gravity substep, nothing cached, after the import",
        (*AUTODIFF, HAND_DERIVED_NUMBA),
        {"n": 8},
        mode=Mode.FIRST_CALL,
        at_most=0.4,
        most_rounds=5,
    ),
)
