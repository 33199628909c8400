"""What the passes cost: all that tinote does to the MPM substep between the front end and code generation."""

from __future__ import annotations

from benchmarks.contract import Subject
from benchmarks.mpm.dialect import create as create_mpm
from tinote.ir.query import walk

__all__ = ["create"]


class Passes(Subject):
    """A run is the whole pipeline; a part of it is one pass over one operation."""

    def __init__(self, package: str) -> None:
        self._substep = create_mpm(package).substep.specialise()
        snapshots = self._substep.snapshots()
        self.parts = sum([sum([1 for _ in walk(snapshot.before.region)]) for snapshot in snapshots])

    def run(self, count: int) -> None:
        for _ in range(count):
            self._substep.snapshots()

    def deviation(self) -> float:
        # The rows of the other tables say whether the code is right.
        return 0.0


def create(package: str) -> Passes:
    """Return the passes of tinote."""
    return Passes(package)
