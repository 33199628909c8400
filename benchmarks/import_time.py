"""`import X` in a fresh interpreter, NumPy included."""

from __future__ import annotations

from benchmarks.contract import Case, Contender, Mode
from benchmarks.peers import PEERS

__all__ = ["CASES"]

CASES = (
    Case(
        "import, NumPy included",
        tuple(Contender(package, package, package) for package in ("numpy", *PEERS)),
        mode=Mode.IMPORT,
        at_most=0.2,
        most_rounds=15,
    ),
)
