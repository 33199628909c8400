"""`ti.ad.gradient_horizons`: the number of steps up to which the gradient of a rollout predicts the effect of a small
change.

    def rollout(steps):
        for _ in range(steps):
            step()
        measure()          # adds to loss

    print(ti.ad.gradient_horizons(rollout, wrt=x, output=loss, horizons=[1, 2, 4, 8, 16, 32]))

At each horizon the derivative of the loss along one random direction by reverse mode is compared with the central
difference of two rollouts from inputs that are a small `change` apart. The derivative of a chaotic rollout is right at
every horizon and grows without bound; from the horizon on where the change has grown to the size of the motion itself,
it no longer predicts what happens, and an optimiser that follows it goes nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import DifferentiationError
from tinote.lang.ad.bars import bar
from tinote.lang.ad.functional.inputs import DifferentiatedFunction
from tinote.lang.ad.functional.runs import pull_back, recorded, refuse_open_recorder
from tinote.lang.ad.memory.states import ShadowsBefore, State
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.data.fields import Field
from tinote.lang.session.renamed import also_called
from tinote.lang.tables import ShownAsTable

_RUNS = 3  # of the program at each horizon, one of them with its reverse sweep


class Horizon(NamedTuple):
    """The derivative of the loss after `steps` steps along the direction: by reverse mode, and by the difference."""

    steps: int
    reverse: float
    difference: float

    @property
    def deviation(self) -> float:
        """Their difference relative to the larger one: 0 when they agree, up to 2 when their signs differ; NaN for what
        is not finite.
        """
        largest = max(abs(self.reverse), abs(self.difference))
        return abs(self.reverse - self.difference) / largest if largest else 0.0


class HorizonReport(ShownAsTable, list[Horizon]):
    """What `ti.ad.gradient_horizons` found, the shortest horizon first.

    Attributes
    ----------
    change : float
        How far apart the inputs of each difference are, in both directions.
    tolerance : float
        The relative deviation up to which the derivative counts as meaningful.
    meaningful : int
        The longest horizon up to which all derivatives agree with the differences.
    statement : str
        The result in a sentence.

    Examples
    --------
    >>> report = ti.ad.HorizonReport(change=1e-5, tolerance=0.1)
    >>> report.meaningful
    0
    """

    _heads = ("steps", "reverse mode", "difference", "deviation")
    _left = 0
    _nothing = "no horizons"

    def __init__(self, change: float, tolerance: float) -> None:
        super().__init__()
        self.change = change
        self.tolerance = tolerance

    @property
    def meaningful(self) -> int:
        """The longest horizon up to which all derivatives agree with the differences; 0 if the first does not."""
        found = 0
        for one in self:
            if not one.deviation <= self.tolerance:
                break
            found = one.steps
        return found

    @property
    def statement(self) -> str:
        """The result in a sentence."""
        runs = sum(one.steps for one in self)
        cost = f"{_RUNS * runs:,} steps and the reverse sweeps of {runs:,}"
        within = f"what a change of ±{self.change:.2g} does, within {self.tolerance:.0%}"
        if not self or self.meaningful == self[-1].steps:
            return f"the derivative predicts {within}, at every horizon (this took {cost})"
        if not self.meaningful:
            return f"the derivative does not predict {within}, at any horizon (this took {cost})"
        broken = next(one.steps for one in self if one.steps > self.meaningful)
        until = f"up to {self.meaningful:,} steps, and no longer at {broken:,}"
        return f"the derivative predicts {within}, {until} (this took {cost})"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (f"{one.steps:,}", f"{one.reverse:.6g}", f"{one.difference:.6g}", f"{one.deviation:.1e}") for one in self
        ]

    def __repr__(self) -> str:
        return f"{self.statement}\n{super().__repr__()}"


@also_called(loss="output")
def gradient_horizons(
    program: Callable[[int], Any],
    wrt: Field | Sequence[Field],
    output: Field,
    horizons: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    *,
    change: float | None = None,
    tolerance: float = 0.1,
    seed: int = 0,
) -> HorizonReport:
    """Compare derivatives with differences over growing horizons: how far a derivative predicts a change.

    Each horizon costs one recorded run with its reverse sweep and two runs without. All fields are left as they were.

    Parameters
    ----------
    program : callable
        `program(steps)` runs that many steps from the fields as they are, and leaves the result in `output`.
    wrt : Field or sequence of Field
        The fields of floats that are changed, with gradients.
    output : Field
        The result, a single number, which is set to 0 before.
    horizons : sequence of int
        The numbers of steps.
    change : float, optional
        The length of the change along one direction, which has length 1 over all of `wrt`; by default the cube root of
        the coarsest type's epsilon times the size of the inputs (at least 1), where central differences are most
        accurate.
    tolerance : float, default 0.1
        The relative deviation up to which the derivative counts as meaningful.
    seed : int, default 0
        What draws the direction.

    Returns
    -------
    HorizonReport
        The derivatives and differences, the shortest horizon first.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def advance():
    ...     x[None] = 0.9 * x[None]
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[None]
    >>> def program(steps):
    ...     for _ in range(steps):
    ...         advance()
    ...     measure()
    >>> ti.ad.gradient_horizons(program, x, y, horizons=(1, 4, 16)).meaningful
    16
    """
    task = DifferentiatedFunction("gradient_horizons", program, wrt, output)
    task.require_scalar()
    task.require("grad")
    refuse_open_recorder("gradient_horizons")
    steps = sorted(set(horizons))
    if not steps or not all(isinstance(one, int) and one > 0 for one in steps):
        raise DifferentiationError(f"horizons are numbers of steps, from 1 on, not {horizons!r}", task.span)
    fields = list(task.wrt)
    starts = [one.by_index(numbers(one.buffer)).astype(np.float64) for one in fields]
    size = max(1.0, math.sqrt(sum(float(np.square(one).mean()) for one in starts) / len(starts)))
    epsilon = max(float(np.finfo(numbers(one.buffer).dtype).eps) for one in (*fields, output))
    length = epsilon ** (1 / 3) * size if change is None else change
    if not (math.isfinite(length) and length > 0):
        raise DifferentiationError(f"a change is a length, more than 0, not {change!r}", task.span)
    if not tolerance > 0:
        raise DifferentiationError(f"a tolerance is more than 0, not {tolerance!r}", task.span)
    random = np.random.default_rng(seed)
    directions = [random.standard_normal(one.shape) for one in starts]
    norm = math.sqrt(sum(float(np.square(one).sum()) for one in directions))
    directions = [one / norm for one in directions]

    report = HorizonReport(length, tolerance)
    state = State(arrays=True)

    def run(count: int, sign: float) -> float:
        state.put_back()
        moved = [start + sign * length * direction for start, direction in zip(starts, directions, strict=True)]
        for one, values in zip(fields, moved, strict=True):
            numbers(one.buffer)[...] = one.by_place(values)
        output.fill(0)
        program(count)
        return float(numbers(output.buffer).ravel()[0])

    with state:
        try:
            for one in fields:
                state.add(one.buffer)
            for count in bar(steps, "horizons"):
                state.put_back()
                with ShadowsBefore() as before:
                    output.fill(0)
                    ran = recorded(task, (count,), {}, before)
                    gradients = ran.gradients(pull_back(ran, np.ones(())))
                reverse = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
                difference = (run(count, 1.0) - run(count, -1.0)) / (2 * length)
                report.append(Horizon(count, reverse, difference))
        finally:
            state.put_back()
    return report
