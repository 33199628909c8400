"""How the iterations of a task are divided among dispatches.

Nobody can interrupt a dispatch, and drivers end what runs for seconds. A task that may take long is dispatched in
slices, each of which is waited for: the first are small and find out what an iteration takes. What is known to be short
is dispatched as a whole, and nobody waits for it.
"""

from __future__ import annotations

from typing import NamedTuple

#: What a slice is to take.
SLICE_SECONDS = 0.1
#: What was taken to be short is measured again when somebody has waited for it for this long.
SURPRISE_SECONDS = 0.4
#: Operations that take no longer than a slice on any device; and in a single invocation.
_SURELY_SHORT, _SURELY_SHORT_ALONE = 1 << 26, 1 << 20
#: Iterations that a single invocation runs at most: there are drivers that end its loops after 65,535.
_MOST_ALONE = 1 << 14
_FIRST, _GROWTH = 256, 8


class Dispatch(NamedTuple):
    """How a task is dispatched. `iterations`: their number, where known. `parallel`: distributed over all invocations.
    `saves`: it needs scratch memory. `sums`: each workgroup adds its totals to shared elements. `divisible`: some of
    its iterations can be dispatched, and then others. `work`: operations per iteration, where known. `scratch`: words
    of scratch memory for an invocation's arrays, besides its stacks.
    """

    name: str
    parallel: bool
    iterations: int | None
    saves: bool
    sums: bool = False
    divisible: bool = False
    work: int | None = None
    scratch: int = 0


class Pace:
    """What is known of how long a task takes. `work`: the operations of an iteration, if that is known; `alone`: they
    run in one invocation.
    """

    __slots__ = ("_alone", "_largest", "_seconds", "_work", "count", "size")

    def __init__(self, work: int | None, alone: bool = False) -> None:
        self._alone = alone
        self._work = work
        #: of an iteration, in the largest slice so far
        self._seconds: float | None = None
        self._largest = 0
        #: how many iterations the last launch had that was measured
        self.count = 0
        #: how many the next slice should have
        self.size = _FIRST

    def is_short(self, iterations: int | None) -> bool:
        """Whether these many iterations can be dispatched as a whole. None: nobody knows how many there are."""
        if self._alone and (iterations is None or iterations > _MOST_ALONE):
            return False
        if self._seconds is None:
            most = _SURELY_SHORT_ALONE if self._alone else _SURELY_SHORT
            return iterations is not None and self._work is not None and iterations * self._work <= most
        return (self.count if iterations is None else iterations) * self._seconds <= SLICE_SECONDS

    def note(self, iterations: int, seconds: float) -> None:
        """How long a slice of some iterations took."""
        each = seconds / max(iterations, 1)
        if iterations >= self._largest:
            self._seconds, self._largest = each, iterations
        self.size = max(1, min(int(SLICE_SECONDS / max(each, 1e-12)), _GROWTH * max(iterations, 1)))
        if self._alone:
            self.size = min(self.size, _MOST_ALONE)

    def forget(self) -> None:
        """It took longer than was known."""
        self._work = self._seconds = None
        self._largest, self.size = 0, _FIRST
