"""The first call of a process: compiling, or finding on disk what an earlier process compiled, and whatever a package
puts off until its use.
"""

from __future__ import annotations

from benchmarks.contract import Case, Contender, Mode
from benchmarks.gravity import AUTODIFF, HAND_DERIVED_NUMBA
from benchmarks.launch import DIALECT

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
    Case(
        "first call of a kernel that is found on disk, after the import",
        DIALECT,
        {"kernel": "loop"},
        mode=Mode.WARM_CALL,
        at_most=0.05,
        most_rounds=10,
    ),
    Case(
        "the same, where LLVM is loaded already",
        (Contender("tinote", "benchmarks.launch.dialect_llvm_loaded", "tinote"),),
        {"kernel": "loop"},
        mode=Mode.WARM_CALL,
        at_most=0.01,
        most_rounds=10,
    ),
    Case(
        "first solution of Poisson's equation whose kernels are found on disk, after the import",
        (
            Contender(
                "tinote",
                "benchmarks.kit.diffusion",
                "tinote",
                {"kind": "even", "method": "multigrid", "with_set_up": 0},
            ),
        ),
        {"n": 64},
        mode=Mode.WARM_CALL,
        at_most=0.2,
        most_rounds=10,
    ),
)
