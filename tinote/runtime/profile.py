"""The kernel profiler's data: the time that tasks took, summed over launches. Filled by launches of kernels that were
compiled with clocks (`ti.init(kernel_profiler=True)`).
"""

import threading
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple
from weakref import ref

from tinote.source import Span

_TRACE_LENGTH = 10_000


class Clock(NamedTuple):
    """One task whose time is measured: a loop, or the statements between two loops, of one kernel. `slot` is the 8-byte
    slot of the launch block that gets the time, `by` what measures it.
    """

    slot: int
    kernel: str
    task: str
    span: Span
    by: str = "CPU"


class ProfiledLaunch(NamedTuple):
    """The code that was launched (alive as long as its kernel), the numbers that it got, and its arrays' shapes."""

    code: ref[Any]
    numbers: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]


class Measured(NamedTuple):
    """The launches of one task so far; times in nanoseconds. Under the dialect's names, `min`, `max` and `avg`, they
    are in milliseconds, and `counter` is how many there were. `by`: what measured them. `last`: the last launch, if
    it is known; `least_of_last`: the least time of launches like that one since the last that was not.
    """

    kernel: str
    task: str
    span: Span
    count: int
    total: int
    least: int
    most: int
    by: str = "CPU"
    last: ProfiledLaunch | None = None
    least_of_last: int = 0

    @property
    def mean(self) -> float:
        return self.total / self.count

    @property
    def counter(self) -> int:
        return self.count

    @property
    def min(self) -> float:
        return 1e-6 * self.least

    @property
    def max(self) -> float:
        return 1e-6 * self.most

    @property
    def avg(self) -> float:
        return 1e-6 * self.mean


class Profile:
    """Times by task, and the last launches one by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured: dict[tuple[str, str, Span, str], Measured] = {}
        self._launched: dict[str, Measured] = {}
        self._trace: deque[tuple[str, str, int]] = deque(maxlen=_TRACE_LENGTH)

    def record(self, times: Iterable[tuple[Clock, int]], launch: ProfiledLaunch | None = None) -> None:
        """One launch: what each of its tasks took, in nanoseconds."""
        with self._lock:
            whole = 0
            clock: Clock | None = None
            for clock, taken in times:
                key = (clock.kernel, clock.task, clock.span, clock.by)
                self._measured[key] = _added(self._measured.get(key), clock, taken, launch)
                self._trace.append((clock.kernel, clock.task, taken))
                whole += taken
            if clock is not None:
                self._launched[clock.kernel] = _added(
                    self._launched.get(clock.kernel), clock._replace(task=clock.kernel), whole
                )

    def launched(self, kernel: str) -> Measured | None:
        """All tasks of a kernel's launches together; least and most are those of one launch."""
        with self._lock:
            return self._launched.get(kernel)

    def measured(self) -> list[Measured]:
        """Every task so far, the most expensive first."""
        with self._lock:
            return sorted(self._measured.values(), key=lambda m: -m.total)

    def trace(self) -> list[tuple[str, str, int]]:
        """The last tasks that ran: kernel, task, nanoseconds."""
        with self._lock:
            return list(self._trace)

    def clear(self) -> None:
        with self._lock:
            self._measured.clear()
            self._launched.clear()
            self._trace.clear()


def _added(old: Measured | None, clock: Clock, taken: int, launch: ProfiledLaunch | None = None) -> Measured:
    if old is None:
        return Measured(clock.kernel, clock.task, clock.span, 1, taken, taken, taken, clock.by, launch, taken)
    return old._replace(
        count=old.count + 1,
        total=old.total + taken,
        least=min(old.least, taken),
        most=max(old.most, taken),
        last=launch,
        least_of_last=min(old.least_of_last, taken) if launch == old.last else taken,
    )


#: The process's profile.
profile = Profile()
