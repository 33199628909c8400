"""`ti.ad.gradcheck`: compares a gradient with finite differences and with forward mode.

Each number of the gradient is compared with central differences of the loss (two steps, extrapolated, in f64), and the
whole with forward mode where the fields have duals. At a kink any slope between the two one-sided ones is right. When
they disagree, each launch is differentiated alone, so that the report can name the kernel that is to blame.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import DifferentiationError, Note
from tinote.ir.buffers import Buffer
from tinote.lang.ad.bars import bar
from tinote.lang.ad.checks.locate import Suspect, suspects_of
from tinote.lang.ad.functional.forward_mode import ForwardMode
from tinote.lang.ad.functional.inputs import DifferentiatedFunction, shape_of, size_of
from tinote.lang.ad.functional.runs import pull_back, recorded, refuse_open_recorder
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.memory.states import ShadowsBefore, State
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.data.traced import Trace
from tinote.lang.session.renamed import also_called
from tinote.source import Span, location_name

_FLOOR = 1e-3  # below this share of a field's largest slope, numbers are compared to that share


class Element(NamedTuple):
    """One number of a gradient: `error` is the deviation, `allowed` what rounding and the tolerance permit."""

    field: str
    index: tuple[int, ...]
    reverse: float
    difference: float
    error: float
    allowed: float

    @property
    def agrees(self) -> bool:
        return self.error <= self.allowed  # false for NaN

    def __repr__(self) -> str:
        at = ", ".join(map(str, self.index)) or "None"
        return f"{self.field}[{at}]: gradient {self.reverse:.9g}, differences {self.difference:.9g}"


@dataclass
class GradientReport:
    """What `gradcheck` found.

    `elements`: what was compared, the worst first; `unsettled`: elements where the differences themselves are too rough
    to tell; `total`: how many numbers the gradients have in all. `forward`: the loss's derivative along one random
    direction by forward mode and by reverse mode, or None, with `forward_note` saying why. `suspects`: the launches
    whose own gradient is wrong, the worst first.
    """

    tolerance: float
    total: int = 0
    elements: list[Element] = field(default_factory=list)
    unsettled: list[Element] = field(default_factory=list)
    forward: tuple[float, float] | None = None
    forward_note: str = ""
    suspects: list[Suspect] = field(default_factory=list)
    blame: str = ""

    @property
    def worst(self) -> Element | None:
        """The element that deviates most, in terms of what is allowed."""
        return self.elements[0] if self.elements else None

    @property
    def forward_agrees(self) -> bool:
        """Whether forward and reverse mode give the same, if both ran."""
        if self.forward is None:
            return True
        along, against = self.forward
        return abs(along - against) <= self.tolerance * max(abs(along), abs(against), 1e-12)

    @property
    def ok(self) -> bool:
        """Whether nothing disagrees."""
        return self.forward_agrees and all(e.agrees for e in self.elements)

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        wrong = sum(not e.agrees for e in self.elements)
        compared = f"{len(self.elements)} of {self.total} elements compared with central differences"
        lines = [f"gradients {'agree' if self.ok else 'disagree'}: {compared}" + (f", {wrong} wrong" if wrong else "")]
        if self.worst is not None:
            lines.append(f"  worst element   {self.worst!r}")
        if self.forward is not None:
            word = "agree" if self.forward_agrees else "disagree"
            lines.append(f"  forward mode    {self.forward[0]:.9g}, reverse mode {self.forward[1]:.9g}: they {word}")
        elif self.forward_note:
            lines.append(f"  forward mode    not compared: {self.forward_note}")
        if self.unsettled:
            lines.append(f"  not settled     {len(self.unsettled)}, such as {self.unsettled[0]!r}")
        lines += [f"  suspect         {suspect!r}" for suspect in self.suspects[:3]]
        if self.blame:
            lines.append(f"  {self.blame}")
        return "\n".join(lines)


@also_called(loss="output")
def gradcheck(
    f: Callable[..., Any],
    wrt: Field | Sequence[Field],
    output: Field,
    args: Sequence[Any] = (),
    *,
    tolerance: float = 1e-6,
    step: float = 1e-4,
    elements: int | None = 200,
    raises: bool = True,
) -> GradientReport:
    """Compare a gradient with central differences.

    All fields are f64, and are left as they were.

    Parameters
    ----------
    f : callable
        A kernel, or a function that launches kernels.
    wrt : Field or sequence of Field
        The fields whose gradients are compared.
    output : Field
        The result, a 0-D field, which is set to 0 before.
    args : sequence, optional
        The arguments of `f`.
    tolerance : float, default 1e-6
        The relative deviation that is permitted.
    step : float, default 1e-4
        The step of the differences, relative to the size of an element or to 1.
    elements : int or None, default 200
        The most elements of each field, spread evenly; the others are checked together, along one random direction.
    raises : bool, default True
        Raise an error where something disagrees.

    Returns
    -------
    GradientReport
        What was compared.

    Raises
    ------
    DifferentiationError
        Where something disagrees, with the report (`error.report`), and for what cannot be differentiated.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=3, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def energy():
    ...     for i in x:
    ...         y[None] += ti.sin(x[i])
    >>> report = ti.ad.gradcheck(energy, x, y)
    >>> report.ok
    True
    """
    task = DifferentiatedFunction("gradcheck", f, wrt, output)
    task.require_scalar()
    task.require("grad")
    for one in (*task.wrt, task.loss_field):
        require_f64("gradcheck", one.buffer, one.name, task.span)
    refuse_open_recorder("gradcheck")
    report = GradientReport(tolerance, sum(size_of(one) for one in task.wrt))
    with State(arrays=True) as start, contextlib.ExitStack() as stack:
        stack.callback(start.put_back)
        with ShadowsBefore() as before:
            run = recorded(task, tuple(args), {}, before, zero=True)
            journal = run.journal
            try:
                for record in journal.records:
                    for buffer in record.touched:
                        require_f64("gradcheck", buffer, buffer.name, task.span)
                gradients = [np.asarray(g) for g in run.gradients(pull_back(run, np.ones(()), keep=True))]
            finally:
                journal.forget()
        compare(task, tuple(args), start, gradients, step, elements, report)
        _compare_modes(task, tuple(args), start, gradients, report)
        if not report.ok:
            _find_blame(task, tuple(args), start, journal, step, report)
    if raises and not report.ok:
        suspect = report.suspects[0] if report.suspects else None
        error = DifferentiationError(
            repr(report),
            suspect.span if suspect is not None else task.span,
            notes=[Note("checked here", task.span)] if suspect is not None else [],
        )
        error.report = report  # type: ignore[attr-defined]
        raise error
    return report


def require_f64(what: str, buffer: Buffer, name: str, span: Span) -> None:
    """Differences of anything shorter say little. Raises `DifferentiationError`."""
    if buffer.dtype.kind == "f" and buffer.dtype.bits != 64:
        raise DifferentiationError(
            f"{what} compares in f64, but '{name}' is a field of {buffer.dtype}",
            span,
            hint="make it a field of ti.f64, and ti.init(default_fp=ti.f64)",
        )


# ---- differences


class Compared(NamedTuple):
    """What is compared: `f` computes `loss_field` from `wrt`."""

    f: Callable[..., Any]
    wrt: Sequence[Field]
    loss_field: Field


def compare(
    task: DifferentiatedFunction | Compared,
    args: tuple[Any, ...],
    start: State,
    gradients: list[np.ndarray[Any, Any]],
    step: float,
    limit: int | None,
    report: GradientReport,
) -> None:
    """Compare `gradients` of the fields `task.wrt`, of at most `limit` elements each, with differences of the loss that
    `task.f(*args)` computes from the fields as they were at `start`. Leaves what it finds in `report`.
    """
    start.put_back()
    for one in task.wrt:
        start.add(one.buffer)
    origins = [one.by_index(numbers(one.buffer).copy()) for one in task.wrt]

    def along(directions: list[tuple[int, np.ndarray[Any, Any]]]) -> Callable[[float], float]:
        def value(offset: float) -> float:
            start.put_back()
            for which, direction in directions:
                field = task.wrt[which]
                numbers(field.buffer)[...] = field.by_place(origins[which] + offset * direction)
            task.loss_field.fill(0)
            task.f(*args)
            return task.loss_field.to_numpy().item()

        return value

    report.elements, report.unsettled = [], []

    def judge(name: str, index: tuple[int, ...], reverse: float, slope: Slope, largest: float) -> None:
        element = _judge(name, index, reverse, slope, largest, report.tolerance)
        (report.unsettled if slope.rough and element.agrees else report.elements).append(element)

    rng = np.random.default_rng(0)
    complete = True
    for which, (one, gradient) in enumerate(zip(task.wrt, gradients, strict=True)):
        flat = gradient.reshape(-1)
        chosen = range(flat.size)
        if limit is not None and flat.size > limit:
            complete = False
            chosen = np.unique(np.linspace(0, flat.size - 1, limit).astype(int)).tolist()
        slopes: list[tuple[int, Slope]] = []
        for k in bar(chosen, f"differences by {one.name}"):
            unit = np.zeros(flat.size)
            unit[k] = 1.0
            unit = unit.reshape(gradient.shape)
            size = abs(float(origins[which].reshape(-1)[k]))
            slopes.append((k, slope_of(along([(which, unit)]), step * max(1.0, size))))
        largest = max([abs(s.value) for _, s in slopes if math.isfinite(s.value)], default=0.0)
        for k, slope in slopes:
            index = tuple([int(i) for i in np.unravel_index(k, shape_of(one))]) if shape_of(one) else ()
            judge(one.name, index, float(flat[k]), slope, largest)
    if not complete:
        directions = [(which, rng.standard_normal(g.shape)) for which, g in enumerate(gradients)]
        slope = slope_of(along(directions), step)
        reverse = sum(float(np.vdot(gradients[which], d)) for which, d in directions)
        judge("all, along a random direction", (), reverse, slope, 0.0)
    report.elements.sort(key=lambda e: -(e.error / e.allowed if e.allowed else math.inf if e.error else 0.0))
    report.elements.sort(key=lambda e: e.agrees)


class Slope(NamedTuple):
    """A derivative by differences: its value, how uncertain it is, the slopes on both sides if they differ, and whether
    the two steps differ too much to trust either.
    """

    value: float
    uncertainty: float
    sides: tuple[float, float] | None
    rough: bool


def slope_of(value: Callable[[float], float], h: float) -> Slope:
    """The derivative of `value` at 0 from central differences with steps `h` and `h / 2`, extrapolated to fourth order
    (Richardson).
    """
    middle = value(0.0)
    outer, inner = (value(h), value(-h)), (value(h / 2), value(-h / 2))
    wide, narrow = (outer[0] - outer[1]) / (2 * h), (inner[0] - inner[1]) / h
    largest = max(map(abs, (middle, *outer, *inner)))
    noise = 32 * np.finfo(np.float64).eps * largest / h
    right, left = (inner[0] - middle) / (h / 2), (middle - inner[1]) / (h / 2)
    jump, jump_outer = abs(right - left), abs((outer[0] - middle) - (middle - outer[1])) / h
    # Where it is smooth, the sides differ by h times the second derivative, half as much for half the step.
    kink = jump > 0.75 * jump_outer and jump > 100 * noise
    sides = (min(left, right), max(left, right)) if kink else None
    spread = abs(narrow - wide)
    rough = sides is None and spread > 1e-3 * max(abs(narrow), abs(wide)) and spread > 100 * noise
    return Slope((4 * narrow - wide) / 3, noise + spread, sides, rough)


def _judge(
    name: str, index: tuple[int, ...], reverse: float, slope: Slope, largest: float, tolerance: float
) -> Element:
    allowed = slope.uncertainty + tolerance * max(abs(slope.value), abs(reverse), _FLOOR * largest)
    error = abs(reverse - slope.value)
    if slope.sides is not None:  # any slope between the two sides is one
        error = max(slope.sides[0] - reverse, reverse - slope.sides[1], 0.0)
    if not (math.isfinite(reverse) and math.isfinite(slope.value)):
        same = reverse == slope.value or (math.isnan(reverse) and math.isnan(slope.value))
        error, allowed = (0.0 if same else math.inf), 0.0
    return Element(name, index, reverse, slope.value, error, allowed)


# ---- forward mode


def _compare_modes(
    task: DifferentiatedFunction,
    args: tuple[Any, ...],
    start: State,
    gradients: list[np.ndarray[Any, Any]],
    report: GradientReport,
) -> None:
    if not task.has("dual"):
        report.forward_note = "the fields have no duals"
        return
    rng = np.random.default_rng(1)
    seeds = [rng.standard_normal(shape_of(one)) for one in task.wrt]
    start.put_back()
    task.loss_field.fill(0)
    try:
        with (
            ShadowsBefore() as before,
            ForwardMode([task.loss_field], list(task.wrt), seeds, Trace(), before) as mode,
        ):
            task.f(*args)
            mode.take_duals_back()
            forward = task.loss_field.dual.to_numpy().item()
    except DifferentiationError as refused:
        report.forward_note = refused.message
        return
    reverse = sum(float((g * s).sum()) for g, s in zip(gradients, seeds, strict=True))
    report.forward = (forward, reverse)


# ---- whose fault it is


def _find_blame(
    task: DifferentiatedFunction,
    args: tuple[Any, ...],
    start: State,
    journal: Journal,
    step: float,
    report: GradientReport,
) -> None:
    start.put_back()
    task.loss_field.fill(0)
    report.suspects = suspects_of(lambda: task.f(*args), slope_of, step, report.tolerance)
    if report.suspects:
        return
    custom = [record for record in journal.records if isinstance(record, Custom)]
    if custom:
        names = ", ".join(dict.fromkeys(f"'{c.name}' ({location_name(c.span)})" for c in custom))
        report.blame = f"each launch alone agrees: look at the replaced gradient of {names}"
    elif journal.records:
        report.blame = "each launch alone agrees: look at what Python does between them, which counts as constant"
