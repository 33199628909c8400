"""`kernel.loops()` and `kernel.tasks()`: tables of a kernel's vectorised loops and of its tasks.

The explorer shows the same next to the source (its panels *Vectorisation* and *Tasks*).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinote.lang.tables import ShownAsTable
from tinote.runtime.memory import readable_size

if TYPE_CHECKING:
    from tinote.compiler.inspect.schedule import TaskPlan
    from tinote.compiler.inspect.vectorisation_remarks import LoopVerdict


class LoopTable(ShownAsTable, list["LoopVerdict"]):
    """One row per loop that is vectorised, or is not for a reason, in the order of the source; a table in a page."""

    _heads = ("line", "loop", "in short", "reasons")
    _left = 4
    _nothing = "no loop to vectorise"

    def _rows(self) -> list[tuple[str, ...]]:
        return [(str(one.line), one.summary, one.advice or "—", one.against or "—") for one in self]


class TaskTable(ShownAsTable, list["TaskPlan"]):
    """One row per task of a launch, in the order in which they run; shows itself as a table."""

    @property
    def _heads(self) -> tuple[str, ...]:  # type: ignore[override]
        own = "private copies" if any(one.workgroups is None for one in self) else "workgroups"
        return ("task", "line", "schedule", "iterations", own, "atomics", "checks")

    _left = 7
    _nothing = "a launch does nothing"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                str(number),
                str(one.span.line) if one.span.line else "—",
                one.schedule,
                ("at launch" if one.iterations is None else f"{one.iterations:,}") if one.parallel else "—",
                _own(one),
                ", ".join(dict.fromkeys(f"{use.combine} {use.target}" for use in one.atomics if not use.plain)) or "—",
                str(one.checks) if one.checks else "—",
            )
            for number, one in enumerate(self)
        ]


def _own(plan: TaskPlan) -> str:
    """A thread's private copies, or the workgroups of a GPU."""
    if plan.workgroups is not None:
        return str(plan.workgroups) if plan.iterations is not None else f"at most {plan.workgroups}"
    return "; ".join(f"{p.target}, {_size(p.nbytes)} per thread" for p in plan.privates) or "—"


def _size(nbytes: int | None) -> str:
    return "its size" if nbytes is None else readable_size(nbytes)
