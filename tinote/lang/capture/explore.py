"""Explores the paths of a function: runs it until both sides of each condition are recorded, and validates the plan."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from tinote.errors import CaptureError
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.dependencies import Dependencies
from tinote.lang.capture.guards import Guards
from tinote.lang.capture.recording import Recording, Tables
from tinote.lang.capture.trial import Trial
from tinote.lang.capture.watching import Watch
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.program import operations as ops
from tinote.program.program import Path, Program
from tinote.program.simplify import simplified
from tinote.source import NOWHERE, Span, caller

#: Greatest length of a plan that is simplified.
_MOST_SIMPLIFIED = 1 << 17
#: Greatest number of runs to record both sides of all conditions.
_MOST_PATHS = 64
#: Captures run one after the other: each puts back what it has written, which another may be reading.
capturing = threading.RLock()

T = TypeVar("T", bound=Trial)
P = TypeVar("P")


def captured(
    function: Any,
    given: tuple[Any, ...],
    names: tuple[str, ...] = (),
    arrays: Sequence[CapturedArray] = (),
    *,
    prints: bool = False,
    unasked: bool = False,
) -> Captured:
    """Run a function and make a program of it; memory is as before. `arrays`: the arguments whose contents differ in
    each run, each in memory of its own; `prints`: whether its kernels may print. `unasked`: for automatic capture; the
    function is stopped before effects that cannot be undone. Raises `CaptureError`.
    """

    def made(trial: Trial, plan: Program, tables: Tables, dependencies: Dependencies) -> Captured:
        guards = Guards(plan, dependencies, list(tables.instances.values()), tables.memories)
        recorded_plan = plan.copy()
        _simplify(plan)
        found = Captured(function, given, plan, tables, trial.variables, guards)
        try:
            trial.prove(found)
        except CaptureError:
            if plan.root.steps == recorded_plan.root.steps:
                raise
            plan.restore(recorded_plan)  # which names the step that differs, if there is one
            found.use(None)
            trial.prove(found)
        found.use(None)
        return found

    trial_of = partial(Trial, function, given, arrays=arrays)
    return proved(function, names, trial_of, made, prints=prints, unasked=unasked)


def proved(
    function: Any,
    names: Sequence[str],
    trial_of: Callable[[list[tuple[Any, Any]]], T],
    made: Callable[[T, Program, Tables, Dependencies], P],
    *,
    prints: bool,
    unasked: bool,
) -> P:
    """What is `made` of a function by a trial of it, which records all sides of its conditions: a program, validated
    by the trial. `trial_of` makes that, with the variables that the function assigns as far as they are known; again
    while it finds others.
    """
    with capturing:
        dependencies = dependencies_of(function, names, unasked=unasked)
        while True:
            known = dict(dependencies.assigned)
            with trial_of(list(known.values())) as trial:
                recorded = record_all(trial, dependencies, prints)
                if recorded is not None:
                    trial.begin()
                    return made(trial, *recorded, dependencies)
            for place in dependencies.assigned.keys() - known.keys():  # changes of these by the calls so far are undone
                holder, key = dependencies.assigned[place]
                if dependencies.before[place] is not None:
                    holder[key] = dependencies.before[place]


def _simplify(plan: Program) -> None:
    """Remove unneeded computations, saves and restores of derivatives, in plans without conditions."""
    steps = plan.root.steps
    if plan.root.branch is None and len(steps) <= _MOST_SIMPLIFIED:
        # In a page, codes have fields by their names.
        plan.root.steps = simplified(plan, steps, moves_fields=False)


def dependencies_of(function: Any, names: Sequence[str] = (), *, unasked: bool = False) -> Dependencies:
    """The dependencies of a function. `names`: globals of its module that are read anew. Raises `CaptureError`."""
    dependencies = Dependencies(unasked=unasked)
    dependencies.scan(function)
    namespace = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
    for name in names:
        if isinstance(namespace.get(name), bool) or not isinstance(namespace.get(name), int | float):
            raise CaptureError(f"the parameter '{name}' is not a global number", caller())
        dependencies.assign(namespace, id(namespace), name)
    dependencies.settle()
    return dependencies


def record_all(trial: Trial, dependencies: Dependencies, prints: bool) -> tuple[Program, Tables] | None:
    """Run the function of a trial until both sides of each condition are met: the plan, and its tables. None where
    functions that were met assign other variables.
    """
    plan = Program()
    tables = Tables(plan, trial.meet)
    trial.begin()
    with Watch(dependencies, at_once=True):  # the first call's compilation and other lazy work is done
        if dependencies.unasked:
            trial.call_warily()
        else:
            trial.call(trial.listening())
    trial.refuse_changes(dependencies)
    if dependencies.unasked:
        trial.refuse_slow_calls()
    if len(dependencies.assigned) > len(trial.variables):
        return None
    decisions: list[bool] | None = []
    for _ in range(_MOST_PATHS):
        if decisions is None:
            break
        trial.begin()
        recording = Recording(tables, decisions, trial.arguments, prints=prints)
        try:
            with Watch(dependencies) as watch:
                returned = trial.record(recording, plan)
        finally:
            recording.close()
        trial.refuse_changes(dependencies)
        if watch.read_called():
            dependencies.settle()
        trial.refuse_known(returned, dependencies)
        if len(dependencies.assigned) > len(trial.variables):
            return None
        merge(plan.root, recording.steps)
        decisions = plan.root.unseen()
    else:
        raise CaptureError(
            "this cannot be captured: it decides too many conditions on numbers that it reads",
            _first_branch(plan.root),
            hint="decide them in a kernel",
        )
    return plan, tables


def _first_branch(path: Path) -> Span:
    return NOWHERE if path.branch is None else path.branch.span


def merge(path: Path, steps: Sequence[ops.Operation]) -> Path:
    """Add the record of one call; returns its final path. Raises `CaptureError` if calls differ without one."""
    known = bool(path.steps) or path.branch is not None
    for at, step in enumerate(steps):
        if type(step) is ops.Branch:
            branch = path.branch
            if known and (at != len(path.steps) or branch is None or branch._replace(taken=step.taken) != step):
                raise _differs(step)
            path.branch = branch or step
            return merge(path.sides.setdefault(step.taken, Path()), steps[at + 1 :])
        if not known:
            path.steps.append(step)
        elif at >= len(path.steps) or path.steps[at] != step:
            raise _differs(step)
    return path


def _differs(step: ops.Operation) -> CaptureError:
    span = getattr(step, "span", NOWHERE)
    return CaptureError(
        "this cannot be captured: another call does something else here, and no number that the step reads says why",
        span,
        hint="a counter, a clock or a list in Python? keep it in a field, or make it an argument",
    )
