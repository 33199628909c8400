"""`ti.ad.sweep_report`: a reverse sweep launch by launch, with the norms of its adjoints.

    with ti.ad.Tape(loss, keep=True) as tape:
        for t in range(100):
            step()
        measure()
    report = ti.ad.sweep_report(tape)
    report.norms["x"].values      # ‖∂loss/∂x‖ as each launch left x

The sweep runs once more with an observer, as `ti.ad.find_nan` runs it; a sweep that nobody looks at has none and costs
what it did. `ti.viz.gradients` draws the report.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from tinote.errors import DifferentiationError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.find_nan import Finding, find_nan
from tinote.lang.ad.journal.captured_steps import CapturedStep
from tinote.lang.ad.journal.events import Custom
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.temporary_adjoints import SweepAdjoints, SweepObserver
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.undo import numbers
from tinote.lang.ad.tape import Tape
from tinote.lang.index_regions import IndexRegion, slices_of
from tinote.lang.tables import ShownAsTable
from tinote.program.recorded import RecordedOperation
from tinote.runtime.memory import readable_size
from tinote.source import Span, caller


@dataclass
class SweptLaunch:
    """A launch, or a block with a custom VJP. `number`: counted from 1, in the order of the program; the launches of a
    checkpointed loop are counted like others, and the loop itself, which runs its steps again, before them. `forward`,
    `backward`: the seconds that it and its gradient took; `forward` is None where it was not run again. `kept_bytes`:
    what the tape has kept because of it. `within`: how many of the launches are those of this loop.
    """

    number: int
    kernel: str
    span: Span
    forward: float | None
    backward: float
    kept_bytes: int
    within: int = 0


@dataclass
class AdjointNorms:
    """The Euclidean norm of ∂loss/∂f for a field f: of the elements that launch number `launches[k]` wrote, as it left
    them, it is `values[k]`. Launch 0 stands for the start: the norm of the whole gradient. `epsilon` is that of the
    field's type.
    """

    name: str
    epsilon: float
    launches: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    @property
    def change(self) -> float | None:
        """The first norm over the last, going by launches; None where there are not two finite ones. Where nothing
        depends on what the field held at the start, the first is that of the first launch which wrote it.
        """
        first = self._first
        if len(self.values) - first < 2 or not self.values[-1] or not all(map(math.isfinite, self.values)):
            return None
        return self.values[first] / self.values[-1]

    @property
    def factor(self) -> float | None:
        """By how much the norm grows from one launch to the one before, on average (geometrically)."""
        change = self.change
        return None if change is None else change ** (1 / (self.launches[-1] - self.launches[self._first]))

    @property
    def _first(self) -> int:
        return 1 if self.launches[0] == 0 and not self.values[0] else 0

    @property
    def verdict(self) -> str:
        """One word: "vanishes" or "explodes" when the norm changes by more than the type's precision, "not finite" when
        some norm is not, else "".
        """
        if not all(map(math.isfinite, self.values)):
            return "not finite"
        if self.change is None:
            return ""
        return "vanishes" if self.change < self.epsilon else "explodes" if self.change > 1 / self.epsilon else ""


@dataclass(frozen=True)
class KernelShare:
    """All launches of a kernel together; `forward` is None where they were not run again."""

    kernel: str
    span: Span
    launches: int
    forward: float | None
    backward: float
    kept_bytes: int


class KernelShares(ShownAsTable, list[KernelShare]):
    """Kernels, the one with the longest gradients first."""

    _heads = ("kernel", "launches", "forward ms", "backward ms", "share", "kept")
    _left = 1
    _nothing = "no launches"

    def _rows(self) -> list[tuple[str, ...]]:
        total = sum(one.backward for one in self) or 1.0
        return [
            (
                one.kernel,
                f"{one.launches:,}",
                "–" if one.forward is None else f"{1e3 * one.forward:.3f}",
                f"{1e3 * one.backward:.3f}",
                f"{one.backward / total:.0%}",
                readable_size(one.kept_bytes) if one.kept_bytes else "–",
            )
            for one in self
        ]


@dataclass(repr=False)
class SweepReport:
    """What `ti.ad.sweep_report` found.

    Attributes
    ----------
    launches : list of SweptLaunch
        All launches, in the order of the program.
    norms : dict of str to AdjointNorms
        The norms of the adjoints, by the names of fields.
    nonfinite : SweptLaunch or None
        The launch in whose gradient a NaN or an infinity first reached an adjoint, coming from the end.
    finding : Finding or None
        The operation where such a number arose, if that could be found.
    ran_forward : bool
        Whether the launches themselves were run again.
    kept_bytes : int
        The number of bytes that the tape has saved.
    kernels : dict
        The launches by their kernels.
    statements : list of str
        The results in sentences.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=4, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     for i in x:
    ...         y[None] += x[i] ** 2
    >>> with ti.ad.Tape(y) as tape:
    ...     measure()
    >>> report = ti.ad.sweep_report(tape)
    >>> len(report.launches), report.nonfinite is None
    (1, True)
    """

    launches: list[SweptLaunch]
    norms: dict[str, AdjointNorms]
    nonfinite: SweptLaunch | None = None
    finding: Finding | None = None
    ran_forward: bool = False

    @property
    def kept_bytes(self) -> int:
        """The number of bytes that the tape has saved."""
        return sum(one.kept_bytes for one in self.launches)

    @property
    def kernels(self) -> KernelShares:
        """The launches by their kernels."""
        groups: dict[tuple[str, Span], KernelShare] = {}
        for one in self.launches:
            key = one.kernel, one.span
            known = groups.get(key) or KernelShare(one.kernel, one.span, 0, None, 0.0, 0)
            forward = known.forward if one.forward is None else (known.forward or 0.0) + one.forward
            groups[key] = replace(
                known,
                launches=known.launches + 1,
                forward=forward,
                backward=known.backward + one.backward,
                kept_bytes=known.kept_bytes + one.kept_bytes,
            )
        return KernelShares(sorted(groups.values(), key=lambda one: -one.backward))

    @property
    def statements(self) -> list[str]:
        """The results in sentences."""
        found: list[str] = []
        if self.nonfinite is not None:
            where = f"launch {self.nonfinite.number} of {len(self.launches)}, '{self.nonfinite.kernel}'"
            found.append(f"a NaN or an infinity first reaches an adjoint in the gradient of {where}")
        for one in self.norms.values():
            if one.verdict in ("vanishes", "explodes") and one.factor is not None:
                found.append(f"the adjoint of {one.name} {one.verdict}: {one.factor:.3g} times a launch on average")
        if self.kept_bytes:
            found.append(f"the tape keeps {readable_size(self.kept_bytes)}")
        return found

    def __repr__(self) -> str:
        lines = [f"{len(self.launches):,} launch{'' if len(self.launches) == 1 else 'es'}", *self.statements]
        for one in self.norms.values():
            start, end = f"{one.values[0]:.3g}", f"{one.values[-1]:.3g}"
            steps = f" (from {end} at launch {one.launches[-1]:,})" if len(one.values) > 1 else ""
            lines.append(f"‖∂loss/∂{one.name}‖ = {start}{steps}")
        return "\n".join([*lines, repr(self.kernels)])


def sweep_report(tape: Tape, *, runs: int = 3) -> SweepReport:
    """Measure the reverse sweep of a tape: the norms of the adjoints, the times, and what the tape keeps.

    The reverse sweep runs once more, so the tape must be one that `ti.ad.find_nan` can search: one with `keep=True`, or
    one under which nothing was overwritten and whose fields still hold what they held at its end. With `keep=True` the
    launches themselves run again, too, for their times. All fields and gradients are left as they were.

    Parameters
    ----------
    tape : Tape
        A tape that has closed.
    runs : int, default 3
        How often all of this happens; a launch's time is the shortest.

    Returns
    -------
    SweepReport
        Times are in seconds.

    Raises
    ------
    DifferentiationError
        For a tape that cannot be swept again.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=4, needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     for i in x:
    ...         y[None] += x[i] ** 2
    >>> with ti.ad.Tape(y, keep=True) as tape:
    ...     measure()
    >>> report = ti.ad.sweep_report(tape, runs=1)
    >>> report.ran_forward
    True
    """
    if not isinstance(tape, Tape):
        raise DifferentiationError(f"sweep_report looks into a tape, not {tape!r}", caller())
    if not isinstance(runs, int) or runs < 1:
        raise DifferentiationError(f"a report takes one run or more, not {runs!r}", caller())
    tape.require_sweep("sweep_report")
    with tape.sweeping_again() as before:
        reports = [_report(tape, before) for _ in range(runs)]
    report = reports[0]
    for one, *others in zip(*[found.launches for found in reports], strict=True):
        one.backward = min([one.backward, *[other.backward for other in others]])
        if one.forward is not None:
            one.forward = min([one.forward, *[other.forward for other in others if other.forward is not None]])
    if report.nonfinite is not None:
        report.finding = find_nan(tape).first
    return report


def _report(tape: Tape, before: ShadowsBefore) -> SweepReport:
    """What one run finds. Leaves gradients behind."""
    watched = _Watched(tape)
    forward = watched.run_forward() if tape.keep else {}
    tape.begin_again(before)
    sweep = tape.sweep()
    sweep.adjoints.observer = watched
    sweep.run()
    return watched.report(forward)


class _Row:
    """What is known of a launch as the sweep comes to it."""

    __slots__ = ("backward", "event", "inner", "is_inner", "norms", "start")

    def __init__(self, event: RecordedLaunch | Custom, norms: dict[Buffer, float]) -> None:
        self.event = event
        self.norms = norms
        self.backward = 0.0
        self.inner = 0  # the number of launches inside of a section
        self.is_inner = False  # whether it is one of these
        self.start = time.perf_counter()


class _Watched(SweepObserver):
    """Takes times and norms on the way."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._open: list[_Row] = []
        self._rows: list[_Row] = []  # the last launch first
        self._touched: set[Buffer] = set()
        self._nonfinite: _Row | None = None
        self._last: dict[Buffer, float] = {}

    def before(self, adjoints: SweepAdjoints, operation: RecordedOperation) -> None:
        assert isinstance(operation, RecordedLaunch | Custom), "captured steps are launched one by one here"
        norms: dict[Buffer, list[IndexRegion | None]] = {}
        if isinstance(operation, RecordedLaunch):
            for buffer, region in operation.arguments.effects(operation.values).written:
                norms.setdefault(buffer, []).append(region)
        else:
            norms = {buffer: [None] for buffer in operation.written}
        found: dict[Buffer, float] = {}
        for buffer, regions in norms.items():
            adjoint = self._adjoint(adjoints, buffer)
            if adjoint is not None:
                found[buffer] = _norm(numbers(adjoint), regions)
        self._open.append(_Row(operation, found))

    def after(self, adjoints: SweepAdjoints, operation: RecordedOperation) -> None:
        seconds = time.perf_counter()
        row = self._open.pop()
        row.backward += seconds - row.start
        if self._open:
            row.is_inner = True
            self._open[-1].inner += 1
            self._open[-1].backward -= seconds - row.start
        if row.inner:
            row.norms.clear()  # its launches have reported them
        self._touched |= operation.touched
        self._rows.append(row)
        for buffer in operation.touched:
            adjoint = self._adjoint(adjoints, buffer)
            if adjoint is None:
                continue
            values = numbers(adjoint)
            if self._nonfinite is None and not row.inner and not np.isfinite(values).all():
                self._nonfinite = row
            if adjoints.of(buffer) is not buffer.adjoint:  # it is gone when the sweep has ended
                self._last[buffer] = _norm(values, [None])

    @staticmethod
    def _adjoint(adjoints: SweepAdjoints, buffer: Buffer) -> Buffer | None:
        if buffer.dtype.kind != "f" or buffer.primal is not None:
            return None
        return adjoints.of(buffer)

    def run_forward(self) -> dict[int, float]:
        """The seconds that launches take, by the identities of their events."""
        found: dict[int, float] = {}

        def run(launch: RecordedLaunch) -> None:
            arguments = launch.replay_arguments()
            start = time.perf_counter()
            launch.instance.primal.launch(arguments)
            found[id(launch)] = time.perf_counter() - start

        self._tape.sweep().run_launches(run)
        return found

    def report(self, forward: dict[int, float]) -> SweepReport:
        """What was found; the gradients are those at the start now."""
        kept = self._kept_bytes()
        records = iter(reversed(self._tape.records))
        rows: list[SweptLaunch] = []
        launches: dict[int, SweptLaunch] = {}
        norms: dict[Buffer, list[tuple[int, float]]] = {}
        number = len(self._rows)
        for row in self._rows:
            event = None if row.is_inner else next(records)
            one = SweptLaunch(
                number,
                row.event.name,
                row.event.span,
                None if event is None else forward.get(id(event)),
                row.backward,
                0 if event is None else kept.get(id(event), 0),
                row.inner,
            )
            launches[id(row)] = one
            rows.append(one)
            for buffer, norm in row.norms.items():
                norms.setdefault(buffer, []).append((number, norm))
            number -= 1
        for buffer in self._touched:
            if buffer in self._last:
                norms.setdefault(buffer, []).append((0, self._last[buffer]))
            elif buffer.adjoint is not None and buffer.primal is None and buffer.dtype.kind == "f":
                norms.setdefault(buffer, []).append((0, _norm(numbers(buffer.adjoint), [None])))
        norms.pop(self._tape.loss.buffer, None)
        nonfinite = None if self._nonfinite is None else launches[id(self._nonfinite)]
        return SweepReport(rows[::-1], _named(norms), nonfinite, ran_forward=self._tape.keep)

    def _kept_bytes(self) -> dict[int, int]:
        """What the tape has kept because of each record."""
        records = self._tape.records
        found = {id(record): 0 for record in records}
        for count, _, nbytes in self._tape.saved.copied:
            if count < len(records):
                found[id(records[count])] += nbytes
        for record in records:
            if isinstance(record, CapturedStep):
                found[id(record)] += record.step.kept_bytes
                continue
            if isinstance(record, Custom):
                found[id(record)] += record.kept_bytes
            elif record.old_values is not None:
                found[id(record)] += record.old_values.nbytes
            found[id(record)] += sum(memory.nbytes for memory in record.copies.values())
        return found


def _named(norms: dict[Buffer, list[tuple[int, float]]]) -> dict[str, AdjointNorms]:
    """By names that tell the fields apart, in alphabetical order; those that no gradient ever reaches are left out."""
    found: dict[str, AdjointNorms] = {}
    for buffer, pairs in sorted(norms.items(), key=lambda pair: pair[0].name):
        if not any(norm for _, norm in pairs):
            continue
        name, number = buffer.name, 2
        while name in found:
            name, number = f"{buffer.name} ({number})", number + 1
        pairs = pairs[::-1]
        epsilon = float(np.finfo(f"f{buffer.dtype.size}").eps)
        found[name] = AdjointNorms(name, epsilon, [launch for launch, _ in pairs], [norm for _, norm in pairs])
    return found


def _norm(values: np.ndarray, regions: Iterable[IndexRegion | None]) -> float:
    """The Euclidean norm of the elements in the regions (None: all), of those in several once."""
    chosen = [None if region is None else slices_of(region) for region in regions]
    if any(one is None for one in chosen):
        picked = values
    elif len(chosen) == 1:
        picked = values[chosen[0]]
    else:
        mask = np.zeros(values.shape, bool)
        for one in chosen:
            mask[one] = True
        picked = values[mask]
    picked = picked.astype(np.float64)
    largest = float(np.abs(picked).max(initial=0.0))  # squares of what is large or small are no numbers
    if not math.isfinite(largest) or not largest:
        return largest
    return largest * math.sqrt(float(np.square(picked / largest).sum()))
