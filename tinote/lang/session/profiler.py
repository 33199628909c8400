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

from tinote.errors import TinoteError
from tinote.lang.session.missing import refusing
from tinote.lang.session.state import session
from tinote.lang.tables import ShownAsTable, table_as_text
from tinote.runtime.profile import Measured, profile
from tinote.source import location_name

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
    """One row per task, the most expensive first; shows itself as a table. Times in milliseconds. Where a GPU ran some
    of them, it shows what measured each.
    """

    @property
    def _heads(self) -> tuple[str, ...]:  # type: ignore[override]
        measured = ("measured by",) if self._tells_by else ()
        return ("task", "place", *measured, "share", "launches", "total ms", "least ms", "mean ms", "most ms")

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
            )
            for m in self
        ]


def _nothing() -> str:
    if session.config.kernel_profiler:
        return "nothing was launched yet"
    return "the profiler is off: ti.init(kernel_profiler=True) switches it on"


def kernel_profiler_info() -> ProfileTable:
    """What each task has taken so far."""
    return ProfileTable(profile.measured())


def print_kernel_profiler_info(mode: str = "count") -> None:
    """Print what each task has taken so far. `mode`: `"count"` for one line per task, `"trace"` for one line per launch
    of a task (the last 10,000). Raises `TinoteError` for another mode.
    """
    if mode == "count":
        print(kernel_profiler_info())
    elif mode == "trace":
        rows = [(task, f"{1e-6 * taken:.3f}") for _, task, taken in profile.trace()]
        print(table_as_text(("task", "ms"), rows, left=1) if rows else _nothing())
    else:
        raise TinoteError(f"there is no profiler mode {mode!r}", hint='use "count" or "trace"')


def query_kernel_profiler_info(name: str) -> Measured | None:
    """The launches of the kernel or task called `name`; `None` if there were none. A kernel's gradient is `f.grad`."""
    return next((m for m in profile.measured() if m.task == name), None) or profile.launched(name)


def get_kernel_profiler_total_time() -> float:
    """What all tasks have taken so far, in seconds."""
    return 1e-9 * sum(m.total for m in profile.measured())


def clear_kernel_profiler_info() -> None:
    """Forget what was measured, so that the next table is about what runs from now on."""
    profile.clear()


def print_memory_profiler_info() -> None:
    """Print the memory of each living field, the largest first."""
    fields = sorted(session.fields, key=lambda f: -f.memory.nbytes)
    rows = [(f.name, str(f.dtype), str(f.shape), f"{f.memory.nbytes:,}") for f in fields]
    print(table_as_text(("field", "type", "shape", "bytes"), rows, left=3) if rows else "there are no fields")


__getattr__ = refusing("tinote.profiler")
__dir__ = partial(sorted, __all__)
