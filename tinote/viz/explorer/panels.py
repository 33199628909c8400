"""The explorer's panels: the tasks of a launch, which loops are vectorised and what else was decided, the cost of a
gradient. Each is a few tables whose rows know their place in the source; some also annotate the rows of the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tinote.compiler.inspect.gradient_cost import GradientCosts, Saved, gradient_costs
from tinote.compiler.inspect.schedule import AtomicUse, TaskPlan, plan_tasks, tasks_of
from tinote.compiler.inspect.stages import Stages
from tinote.runtime.memory import readable_size
from tinote.source import Span
from tinote.viz.explorer.rows import Rows

Json = dict[str, Any]


class ExplorerPanel(NamedTuple):
    """`make(stages, rows)` gives the tables and notes of a panel that `applies` to a view."""

    title: str
    applies: Callable[[Stages], bool]
    make: Callable[[Stages, Rows], Json]


def table_of(title: str, columns: Sequence[str], rows: Sequence[Json], empty: str) -> Json:
    """A table as the page shows it; `empty` stands where it has no rows."""
    return {"title": title, "columns": list(columns), "rows": list(rows), "empty": empty}


def row_of(location: tuple[int, int, int], *cells: str, tone: str = "") -> Json:
    """A row: where it comes from, its cells (the first one names it), and `tone` "good" or "costly" if it is one."""
    return {"place": location, "cells": cells, "tone": tone}


# The tasks of a launch


def _tasks(stages: Stages, rows: Rows) -> Json:
    assert stages.last is not None
    plans = tasks_of(stages)
    shown = [_task(plan, number, rows) for number, plan in enumerate(plans)]
    own = "private copies" if any(plan.workgroups is None for plan in plans) else "workgroups"
    columns = ("task", "line", "schedule", "iterations", own, "atomics left", "checks", "reads", "writes")
    return {"tables": [table_of("Tasks, in the order in which they run", columns, shown, "a launch does nothing")]}


def _task(plan: TaskPlan, number: int, rows: Rows) -> Json:
    iterations = ("at launch" if plan.iterations is None else f"{plan.iterations:,}") if plan.parallel else "—"
    own = [f"{p.combine} {p.target}, {_size(p.nbytes)} per thread" for p in plan.privates]
    if plan.workgroups is not None:
        own = [str(plan.workgroups) if plan.iterations is not None else f"at most {plan.workgroups}"]
    hard = [use for use in plan.atomics if not use.plain]
    return row_of(
        rows.location(plan.span),
        str(number),
        _line(plan.span),
        plan.schedule,
        iterations,
        "; ".join(own) or "—",
        _atomics(hard) or "—",
        str(plan.checks) if plan.checks else "—",
        ", ".join(plan.reads) or "—",
        ", ".join(plan.writes) or "—",
        tone="costly" if hard else "good" if any(loop.width > 1 for loop in plan.loops) else "",
    )


def _atomics(uses: Sequence[AtomicUse]) -> str:
    counts = Counter((f"{use.combine} {use.target}", use.nested) for use in uses)
    return "; ".join(
        f"{text}{f' ×{n}' if n > 1 else ''}{' in a loop' if nested else ''}" for (text, nested), n in counts.items()
    )


def _size(nbytes: int | None) -> str:
    return "size known at launch" if nbytes is None else readable_size(nbytes)


def _line(span: Span) -> str:
    return str(span.line) if span.line else "—"


# Which loops are vectorised


def _loops(stages: Stages, rows: Rows) -> Json:
    if stages.judge is None:
        return {"tables": [_decisions(stages, rows)]}
    shown: list[Json] = []
    notes: list[Json] = []
    for verdict in stages.verdicts:
        location = rows.location(Span(verdict.file, verdict.line, verdict.column))
        word, tone = verdict.summary, "good" if verdict.width > 1 else "costly"
        why = verdict.against
        shown.append(row_of(location, str(verdict.line), word, verdict.advice or "—", why or "—", tone=tone))
        if location[0] >= 0:
            notes.append({"row": location[0], "text": word, "tone": tone, "title": verdict.advice or why})
    columns = ("line", "loop", "in short", "reasons")
    loops = table_of("Loops", columns, shown, "no loop to vectorise")
    return {"tables": [loops, _decisions(stages, rows)], "notes": notes}


def _decisions(stages: Stages, rows: Rows) -> Json:
    """The remarks of the steps, in the order of the source as it is shown; what it does not show is at the end."""
    located = [(rows.location(one.loc), one) for one in stages.remarks]
    shown = [
        row_of(location, _line(one.loc), one.step, one.text, tone="good" if one.done else "")
        for location, one in sorted(located, key=lambda pair: (pair[0][0] < 0, pair[0], pair[1].loc[:3]))
    ]
    return table_of("What the compiler decided", ("line", "step", "what it did, or why it did not"), shown, "nothing")


# What a gradient costs


def _costs(stages: Stages, rows: Rows) -> Json:
    assert stages.unlowered is not None and stages.last is not None
    costs = gradient_costs(stages.unlowered, stages.last)
    return {"tables": [_saved(costs, rows), _recomputed(costs, rows), _accumulated(costs, rows)]}


def _saved(costs: GradientCosts, rows: Rows) -> Json:
    shown = [
        row_of(
            rows.location(saved.span),
            f"copy of {saved.name}" if saved.copy else saved.name,
            _line(saved.span),
            saved.type,
            f"{saved.size} bytes",
            saved.expression if saved.count is None else f"{'' if saved.exact else 'at most '}{saved.count:,}",
            _total(saved),
            tone="costly",
        )
        for saved in costs.saved
    ]
    columns = ("saved", "line", "type", "each", "how many", "together")
    return table_of("Saved for the reverse part", columns, shown, "nothing: all that is needed is computed again")


def _total(saved: Saved) -> str:
    if saved.nbytes is None:
        return "known at launch"
    return readable_size(saved.nbytes) + (" an iteration" if saved.per_iteration else "")


def _recomputed(costs: GradientCosts, rows: Rows) -> Json:
    shown = [
        row_of((rows.location(found.span)[0], 0, -1), _line(found.span), str(found.again), str(found.factors))
        for found in costs.recomputed
    ]
    columns = ("line", "operations computed again", "for derivatives only")
    return table_of("Computed again", columns, shown, "nothing")


def _accumulated(costs: GradientCosts, rows: Rows) -> Json:
    words = {
        "atomic": "atomic: threads may meet",
        "plain": "plain addition: no two threads meet",
        "private": "a private copy per thread, merged at the end",
    }
    counts = Counter(costs.accumulated)
    shown = [
        row_of(
            rows.location(added.span),
            added.target,
            _line(added.span),
            words[added.how] + (f" ×{count}" if count > 1 else ""),
            f"{_size(added.nbytes)} per thread" if added.how == "private" else "—",
            tone="costly" if added.how == "atomic" else "good",
        )
        for added, count in counts.items()
    ]
    columns = ("adjoint", "line", "how it is added to", "memory")
    return table_of("Adjoints", columns, shown, "nothing is added to")


PANELS = {
    "tasks": ExplorerPanel("Tasks", lambda stages: stages.last is not None and bool(plan_tasks(stages.last)), _tasks),
    "loops": ExplorerPanel("Vectorisation", lambda stages: bool(stages.judge or stages.remarks), _loops),
    "costs": ExplorerPanel("Saved and recomputed", lambda stages: stages.gradient and stages.last is not None, _costs),
}
