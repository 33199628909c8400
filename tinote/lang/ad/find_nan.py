"""`ti.ad.find_nan`: where the first NaN or infinity of a gradient came from.

    with ti.ad.Tape(loss, keep=True) as tape:
        step()
        measure()
    print(ti.ad.find_nan(tape))

    launch 1 of 2, the gradient of 'step'
    cell 3, line 4
        4 |         y[i] = ti.sqrt(x[i])
          |                ^^^^^^^^^^^^^
    in the derivative of sqrt: 1.0 / 0.0 is inf, in iteration i = 2

The launches and then their gradients run again as the versions of themselves that stop where such a number arises
(`compiler/passes/checks/check_finite.py`), with loops in order, on one thread. Everything is left as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tinote.compiler.requests import Checks, Derivative, Request
from tinote.errors import DifferentiationError, KernelFiniteError, Note, TinoteError
from tinote.ir.messages import iteration_of
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.tape import Tape
from tinote.lang.session.state import session
from tinote.source import Span, caller


@dataclass(frozen=True)
class Finding:
    """Where a NaN or an infinity arose.

    Attributes
    ----------
    backward : bool
        Whether it was in the gradient of the kernel.
    launch, launches : int
        The number of the launch under the tape, from 1, and how many there are.
    kernel : str
        The name of the kernel.
    message : str
        The operation with its operands and its result.
    span : Span
        The user's line.
    iteration : dict of str to int
        The indices of the loops around it, by their names.
    notes : tuple of Note
        Further places, such as the step of a checkpointed loop.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += ti.log(x[None])
    >>> x[None] = -1.0
    >>> with ti.ad.Tape(y, keep=True) as tape:
    ...     measure()
    >>> finding = ti.ad.find_nan(tape).first
    >>> finding.kernel, finding.launch
    ('measure', 1)
    """

    backward: bool
    launch: int
    launches: int
    kernel: str
    message: str
    span: Span
    iteration: dict[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        what = "the gradient of " if self.backward else ""
        iteration = ", ".join([f"{name} = {index}" for name, index in self.iteration.items()])
        message = f"{self.message}, in iteration {iteration}" if iteration else self.message
        lines = TinoteError(message, self.span, notes=self.notes).lines()
        return "\n".join([f"launch {self.launch} of {self.launches}, {what}'{self.kernel}'", *lines])


@dataclass(frozen=True)
class NanReport:
    """What `ti.ad.find_nan` found; true if there is anything.

    Attributes
    ----------
    launches : int
        The number of launches that were searched.
    primal : Finding or None
        The first in the program itself.
    backward : Finding or None
        The first in the reverse sweep.
    searched_primal : bool
        Whether the program could be run again.
    first : Finding or None
        What came first.

    Examples
    --------
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> with ti.ad.Tape(y, keep=True) as tape:
    ...     pass
    >>> bool(ti.ad.find_nan(tape))
    False
    """

    launches: int
    primal: Finding | None
    backward: Finding | None
    searched_primal: bool

    @property
    def first(self) -> Finding | None:
        """What came first."""
        return self.primal or self.backward

    def __bool__(self) -> bool:
        return self.first is not None

    def __repr__(self) -> str:
        found = [repr(finding) for finding in (self.primal, self.backward) if finding is not None]
        if not found:
            found = [f"no NaN and no infinity in the reverse sweep through {self.launches} launches"]
        if not self.searched_primal:
            found.append("(the launches themselves were not run again: the tape was opened without keep=True)")
        return "\n\n".join(found)


def find_nan(tape: Tape) -> NanReport:
    """Find the first NaN or infinity in the reverse sweep of a tape, and in the program before it.

    A tape with `keep=True` can be searched at any time. One without can if nothing was overwritten under it and the
    fields still hold what they held at its end; then only the reverse sweep is searched. It starts from gradients of
    zero, and an infinity that reaches no gradient is not a finding, such as in the arm of a `select` that is not taken.

    Parameters
    ----------
    tape : Tape
        A tape that has closed.

    Returns
    -------
    NanReport
        What was found, with the user's lines.

    Raises
    ------
    DifferentiationError
        For a tape that cannot be searched.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += ti.sqrt(x[None])
    >>> with ti.ad.Tape(y, keep=True) as tape:
    ...     measure()
    >>> report = ti.ad.find_nan(tape)
    >>> report.primal is None, report.backward.kernel
    (True, 'measure')
    """
    if not isinstance(tape, Tape):
        raise DifferentiationError(f"find_nan looks into a tape, not {tape!r}", caller())
    tape.require_sweep("find_nan")
    with tape.sweeping_again() as before:
        primal = _search(tape, before, backward=False) if tape.keep else None
        return NanReport(len(tape.records), primal, _search(tape, before, backward=True), tape.keep)


def _search(tape: Tape, before: ShadowsBefore, *, backward: bool) -> Finding | None:
    sweep = tape.sweep(Request(Derivative.REVERSE, checks=Checks.FINITE), _look_behind)
    try:
        if backward:
            tape.begin_again(before)
            sweep.run()
        else:
            sweep.run_launches(_checked)
    except KernelFiniteError as error:
        records, at = tape.records, sweep.at
        assert isinstance(at, RecordedLaunch | Custom)
        number = next(k for k, record in enumerate(records, 1) if record is at)
        message, iteration = iteration_of(error.message)
        return Finding(backward, number, len(records), at.name, message, error.span, iteration, error.notes)
    return None


def _checked(launch: RecordedLaunch) -> None:
    launch.instance.specialisation.code(Request(checks=Checks.FINITE)).launch(launch.replay_arguments())


def _look_behind(custom: Custom) -> None:
    """Stop when a gradient of the user's own has left such a number."""
    for one in list(session.fields):
        if not one.has_grad or one.buffer.primal is not None:
            continue
        wrong = np.argwhere(~np.isfinite(numbers(one.grad.buffer)))
        if len(wrong):
            index: list[Any] = wrong[0].tolist()
            rank = len(one.shape)
            shown = ", ".join(map(str, index[:rank])) or "None"
            component = f"[{', '.join(map(str, index[rank:]))}]" if index[rank:] else ""
            value = numbers(one.grad.buffer)[tuple(index)]
            raise KernelFiniteError(
                f"this gradient of its own leaves {value} in {one.name}.grad[{shown}]{component}", custom.span
            )
