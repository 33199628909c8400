"""`ti.profiler`: where launches spend their time, task by task.

    ti.init(kernel_profiler=True)
    …
    ti.profiler.print_kernel_profiler_info()
    ti.profiler.kernel_profiler_info()              # the same as a table, at the end of a notebook cell

A task is one outermost loop of a kernel, or the statements between two of them. On a GPU its own clock measures them,
by timestamps at the begin and the end of each; where it has none, a task takes until the host has seen its end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tinote.errors import TinoteError
from tinote.lang.session.missing import refusing
from tinote.lang.session.state import session
from tinote.lang.tables import ShownAsTable, table_as_text
from tinote.lazy import lazy
from tinote.runtime.profile import Measured, profile
from tinote.source import location_name

if TYPE_CHECKING:
    from tinote.lang.kernels import roofline
else:
    roofline = lazy("tinote.lang.kernels.roofline")

__all__ = [
    "ProfileTable",
    "clear_kernel_profiler_info",
    "get_kernel_profiler_total_time",
    "kernel_profiler_info",
    "print_kernel_profiler_info",
    "print_memory_profiler_info",
    "query_kernel_profiler_info",
]


class ProfileTable(ShownAsTable, list[Measured]):
    """A table of times: one row for each task, the most expensive first.

    Times are in milliseconds. "of the ceiling" is what the fastest launch with the last arguments has reached of what
    this machine moves and computes (`kernel.roofline` gives the reasons), on the CPU, where the arguments determine how
    often loops run. Where a GPU ran some of the tasks, it shows what measured each.

    Examples
    --------
    >>> isinstance(ti.profiler.kernel_profiler_info(), ti.profiler.ProfileTable)
    True
    """

    @property
    def _heads(self) -> tuple[str, ...]:  # type: ignore[override]
        measured = ("measured by",) if self._tells_by else ()
        times = ("total ms", "least ms", "mean ms", "most ms")
        return ("task", "place", *measured, "share", "launches", *times, "of the ceiling")

    @property
    def _left(self) -> int:  # type: ignore[override]
        return 3 if self._tells_by else 2

    @property
    def _tells_by(self) -> bool:
        return any(m.by != "CPU" for m in self)

    @property
    def _nothing(self) -> str:  # type: ignore[override]
        return _nothing()

    def _rows(self) -> list[tuple[str, ...]]:
        whole = sum(m.total for m in self) or 1
        return [
            (
                m.task,
                location_name(m.span),
                *((m.by,) if self._tells_by else ()),
                f"{100 * m.total / whole:.1f} %",
                str(m.count),
                *(f"{1e-6 * t:.3f}" for t in (m.total, m.least, m.mean, m.most)),
                "—" if part is None else f"{100 * part:.0f} %",
            )
            for m, part in zip(self, roofline.fractions(self), strict=True)
        ]


def _nothing() -> str:
    if session.config.kernel_profiler:
        return "nothing was launched yet"
    return "the profiler is off: ti.init(kernel_profiler=True) switches it on"


def kernel_profiler_info() -> ProfileTable:
    """The time that each task has taken so far, with `ti.init(kernel_profiler=True)`.

    Returns
    -------
    ProfileTable
        A row for each task.

    Examples
    --------
    >>> ti.init(kernel_profiler=True)
    >>> x = ti.field(ti.f32, shape=8)
    >>> @ti.kernel
    ... def fill():
    ...     for i in x:
    ...         x[i] = 1.0
    >>> fill()
    >>> len(ti.profiler.kernel_profiler_info())
    1
    """
    return ProfileTable(profile.measured())


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Print the time that each task has taken so far.

    `ti.kernel_profiler_print` and `ti.print_kernel_profile_info` are older names of it, kept for existing programs.

    Parameters
    ----------
    mode : {"count", "trace"}
        One line for each task, or for each launch of one (the last 10,000).

    Raises
    ------
    TinoteError
        For another mode.

    Examples
    --------
    >>> ti.init(kernel_profiler=True)
    >>> x = ti.field(ti.f32, shape=8)
    >>> @ti.kernel
    ... def fill():
    ...     for i in x:
    ...         x[i] = 1.0
    >>> fill()
    >>> ti.profiler.print_kernel_profiler_info()
    task    place    ...
    fill.0  line 3   ...
    """
    if mode == "count":
        print(kernel_profiler_info())
    elif mode == "trace":
        rows = [(task, f"{1e-6 * taken:.3f}") for _, task, taken in profile.trace()]
        print(table_as_text(("task", "ms"), rows, left=1) if rows else _nothing())
    else:
        raise TinoteError(f"there is no profiler mode {mode!r}", hint='use "count" or "trace"')


def query_kernel_profiler_info(name: str) -> Measured | None:
    """The launches of a kernel or a task.

    Parameters
    ----------
    name : str
        The name of the kernel or task; a kernel's gradient is `f.grad`.

    Returns
    -------
    Measured or None
        The times, or None if there were no launches.

    Examples
    --------
    >>> ti.profiler.query_kernel_profiler_info("no_kernel") is None
    True
    """
    return next((m for m in profile.measured() if m.task == name), None) or profile.launched(name)


def get_kernel_profiler_total_time() -> float:
    """The time that all tasks have taken so far, in seconds.

    Returns
    -------
    float
        In seconds.

    Examples
    --------
    >>> ti.profiler.get_kernel_profiler_total_time()
    0.0
    """
    return 1e-9 * sum(m.total for m in profile.measured())


def clear_kernel_profiler_info() -> None:
    """Forget what was measured, so that the next table is about what runs from now on.

    Examples
    --------
    >>> ti.profiler.clear_kernel_profiler_info()
    >>> len(ti.profiler.kernel_profiler_info())
    0
    """
    profile.clear()


def print_memory_profiler_info() -> None:
    """Print the memory of each living field, the largest first.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=1000)
    >>> ti.profiler.print_memory_profiler_info()
    field  type  shape    bytes
    x      f32   (1000,)  4,000
    """
    fields = sorted(session.fields, key=lambda f: -f.memory.nbytes)
    rows = [(f.name, str(f.dtype), str(f.shape), f"{f.memory.nbytes:,}") for f in fields]
    print(table_as_text(("field", "type", "shape", "bytes"), rows, left=3) if rows else "there are no fields")


__getattr__ = refusing("tinote.profiler")
__dir__ = partial(sorted, __all__)
