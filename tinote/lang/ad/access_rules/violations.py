"""Reports of broken access rules: the place, both accesses, the reason, and a fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tinote.errors import AccessRuleError, Note
from tinote.ir.checked_accesses import RULES, Kind
from tinote.source import NOWHERE, Span

_MOST_NAMES = 6


class Fix(Enum):
    """What usually helps; the value says it in words."""

    ACCUMULATE = "write `+=` if it is meant to add up, or put the new value into a field of its own"
    SPLIT = "put the new value into a field of its own, or change the element before it is read"
    DOUBLE_BUFFER = "put the new value into another element or field, as in `x[t + 1, i] = f(x[t, i])`"
    TAPE = 'let the tape keep the old value (on_overwrite="auto", without validation)'

    def __repr__(self) -> str:
        return f"Fix.{self.name}"


@dataclass(frozen=True, slots=True)
class ProgramAccess:
    """One access in the program. `span`: file or cell, line, columns, and where it was inlined. `launch`: which launch
    under the tape, counted from 1, of the kernel called `kernel`; None when Python did it itself, or when it was found
    to have happened through an array that shares the memory (`outside`; `span` is then where it was found).
    """

    kind: Kind
    span: Span
    launch: int | None
    kernel: str = ""
    outside: bool = False

    @property
    def by(self) -> str:
        """Who did it, in words."""
        if self.outside:
            return "through an array that shares the memory"
        return "by Python" if self.launch is None else f"by launch {self.launch}, '{self.kernel}'"


@dataclass(frozen=True, slots=True, eq=False)
class Violation:
    """Elements of one field that broke a rule of access in the same way at the same time.

    Attributes
    ----------
    rule : int
        The number of the rule: 1, an element that was read is not changed afterwards; 2, from the second write on it
        only takes `+=`.
    field : str
        The name of the field.
    shape, offset, nbytes
        Those of the field, without its gradient.
    external : bool
        Whether it is an external array; a tape keeps a copy of it for each launch that reads it.
    elements : numpy.ndarray
        Their indices as the user counts, one row each, in order; those of a component follow those of its element.
    earlier, later : ProgramAccess
        The two accesses that do not go together (the same one twice, where it reads and changes at once).
    between : tuple of str
        The names of the launches between them, in order.
    element : str
    fixes : list of str
    is_one_operation : bool
    is_unordered : bool
    reason : str

    Methods
    -------
    error

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     for i in x:
    ...         y[None] += x[i] ** 2
    >>> @ti.kernel
    ... def change():
    ...     for i in x:
    ...         x[i] = 0.0
    >>> with ti.ad.Tape(y, validation="collect") as tape:
    ...     measure()
    ...     change()
    >>> violation = tape.violations[0]
    >>> violation.rule, violation.element
    (1, 'x[0]')
    """

    rule: int
    field: str
    shape: tuple[int, ...]
    elements: np.ndarray[Any, Any]
    earlier: ProgramAccess
    later: ProgramAccess
    between: tuple[str, ...]
    offset: tuple[int, ...]
    nbytes: int
    external: bool

    @property
    def element(self) -> str:
        """The first of the elements as the user writes it: `x[3]`, `loss[None]`, `v[2, 0][1]`."""
        index = [int(k) for k in self.elements[0]]
        rank = len(self.shape)
        shown = f"{self.field}[{_listed(index[:rank]) or 'None'}]"
        return f"{shown}[{_listed(index[rank:])}]" if index[rank:] else shown

    @property
    def reason(self) -> str:
        """One sentence: what happened to which elements, and the rule."""
        further = len(self.elements) - 1
        what = f"'{self.element}'"
        if further:
            what += f" and {further} more element{'s' if further > 1 else ''}"
        verb = "are" if further else "is"
        return f"{what} {verb} {self._event} ({RULES[self.rule]})"

    @property
    def _event(self) -> str:
        if self.is_one_operation:
            return "read and changed by one operation"
        if self.is_unordered:
            return "read in one iteration of a parallel loop and written in another, and iterations have no order"
        if self.rule == 2:
            return f"written again {self.later.by}, and not by adding"
        return f"changed {self.later.by}, after being read"

    @property
    def is_one_operation(self) -> bool:
        """Whether one operation reads the element and changes it at once."""
        return self.earlier == self.later

    @property
    def is_unordered(self) -> bool:
        """Whether two iterations of one parallel loop read and wrote it."""
        return self.later.kind is Kind.READ

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """What usually helps in such a case, the likeliest first."""
        if self.later.launch is None:
            return (Fix.TAPE,)
        if self.is_unordered:
            return (Fix.DOUBLE_BUFFER,)
        if self.rule == 2:
            return (Fix.ACCUMULATE if self.later.kind is Kind.STORE else Fix.SPLIT, Fix.TAPE)
        return (Fix.DOUBLE_BUFFER if self.earlier.kernel == self.later.kernel else Fix.SPLIT, Fix.TAPE)

    def error(self) -> AccessRuleError:
        """An error that shows both lines.

        Returns
        -------
        AccessRuleError
            The error, which is not raised.
        """
        notes: list[Note] = []
        if not self.is_one_operation:
            done = "read" if self.earlier.kind is Kind.READ else "written"
            notes.append(Note(f"{done} here, {self.earlier.by}", self.earlier.span))
        if self.between:
            notes.append(Note(f"launched in between: {_shortened(self.between)}", NOWHERE))
        return AccessRuleError(self.reason, self.later.span, "; or ".join([fix.value for fix in self.fixes]), notes)

    def __repr__(self) -> str:
        return f"<violation of rule {self.rule}: {self.reason}>"


def _listed(index: list[int]) -> str:
    return ", ".join(map(str, index))


def _shortened(names: tuple[str, ...]) -> str:
    shown = [f"'{name}'" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        shown.append(f"and {len(names) - _MOST_NAMES} more")
    return ", ".join(shown)
