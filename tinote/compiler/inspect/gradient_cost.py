"""The costs of a gradient besides its arithmetic: saved values, recomputation, and accumulation into adjoints.

All are computed from the gradient's own IR, so that they cannot differ from the code that runs: saved and recomputed
values before lowering, where loops are still those of the user; accumulations after the last pass.

Saved values lie on stacks that live for one iteration of a parallel loop, so that a thread holds those of one iteration
at a time; copies of whole fields are separate. The number of pushes is the sum over the iterations of the loops around
the push, inside the region that creates the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tinote.autodiff.adjoints import adjoint_operations
from tinote.autodiff.atomic_old_values import NO_OLD_VALUES, OldValue, OldValues
from tinote.autodiff.shared_values import SharedValues
from tinote.compiler.driver import Specialisation
from tinote.compiler.inspect.execution_counts import ExecutionCounts, Length
from tinote.compiler.pipeline import LOWERING, RECORDING, run_pipeline, steps_for
from tinote.compiler.requests import SHARING, Request
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import bytes_of, root_of
from tinote.ir.launch_values import LaunchInputs, Number, Read, exact_values
from tinote.ir.query import buffers_of, definitions, span_of, walk
from tinote.ir.types import Stack, element_type, shape_of
from tinote.remarks import Remark
from tinote.source import NOWHERE, Span


class Saved(NamedTuple):
    """Values that the gradient saves: `name`, `size` bytes each, computed at `span`.

    `expression`: how many, in terms of the program's own names. `count`: how many for the arguments asked about, an
    upper bound if not `exact`; None where known only at launch. `per_iteration`: that many in each iteration of a
    parallel loop, which each thread holds for one iteration at a time. `copy`: a copy of a field.
    """

    name: str
    span: Span
    type: str
    size: int
    expression: str
    count: int | None
    exact: bool = True
    per_iteration: bool = False
    copy: bool = False

    @property
    def nbytes(self) -> int | None:
        """The total size in bytes; of one iteration if each saves its own values."""
        return None if self.count is None else self.count * self.size


class Recomputed(NamedTuple):
    """A source line with the number of its operations in the gradient: `again`, recomputed primal ones, and `factors`,
    those that only the derivative needs.
    """

    span: Span
    again: int
    factors: int

    @property
    def operations(self) -> int:
        return self.again + self.factors


class Accumulation(NamedTuple):
    """An accumulation into memory, in the derivative of the code at `span`. `how`: "atomic" where threads may conflict,
    "plain" where they cannot, "private" where each has a copy of `nbytes` (None where known only at launch).
    """

    target: str
    how: str
    nbytes: int | None
    span: Span


class GradientCosts(NamedTuple):
    """The costs of a gradient, each list in the order of the code. `shared`: values that the launch itself saves, where
    both share their work; `unshared`: remarks on work that they do not share.
    """

    saved: tuple[Saved, ...]
    recomputed: tuple[Recomputed, ...]
    accumulated: tuple[Accumulation, ...]
    shared: tuple[Saved, ...] = ()
    unshared: tuple[Remark, ...] = ()


def _read_nothing(_buffer: ir.Buffer, _index: tuple[int, ...]) -> None:
    """Stub for memory reads: no value is known."""


def _own_length(buffer: ir.Buffer, axis: int) -> int | None:
    return buffer.shape[axis]


def gradient_costs(
    fn: ir.Function,
    final: ir.Function,
    arguments: Sequence[Number] = (),
    read: Read = _read_nothing,
    length: Length = _own_length,
    old: Iterable[OldValue] = (),
    shared: OldValues | SharedValues = NO_OLD_VALUES,
) -> GradientCosts:
    """The costs of a gradient: `fn` in SCALAR form, `final` after all passes; for the known arguments. `old`: the
    values that the primal launch saves for it; `shared`: those that it saves where both share their work. All lists are
    empty if `fn` is not a gradient.
    """
    saved = (*saved_values(fn, arguments, read, length), *_old_values(old))
    both = tuple(_shared(shared, arguments, read, length)) if isinstance(shared, SharedValues) else ()
    return GradientCosts(saved, tuple(_recomputed(fn)), tuple(_accumulated(final)), both)


def costs_of(
    specialisation: Specialisation, request: Request, arguments: Sequence[Number], read: Read, length: Length
) -> GradientCosts:
    """The costs of a kernel's gradient. Raises `DifferentiationError`."""
    config, saving = specialisation.config, SHARING.with_temporaries(request.temporaries)
    fn, context = run_pipeline(specialisation.function(request), steps_for(request, lower=False), config)
    final, _ = run_pipeline(fn, LOWERING, config._replace(lanes="never"))
    _, recorded = run_pipeline(specialisation.function(saving), steps_for(saving, lower=False), config)
    assert context.gradient is not None and recorded.old_values is not None
    old = context.gradient.old_values
    assert isinstance(old, OldValues)
    costs = gradient_costs(fn, final, arguments, read, length, old.values, recorded.old_values)
    unshared = [remark for remark in recorded.remarks if remark.step == RECORDING.name and not remark.done]
    return costs._replace(unshared=tuple(dict.fromkeys(unshared)))


def _shared(shared: SharedValues, arguments: Sequence[Number], read: Read, length: Length) -> Iterator[Saved]:
    """The values that a launch saves because its gradient would recompute them."""
    _, dimensions, nodes, lengths, _ = shared.shapes
    wanted = [node for pairs in dimensions for pair in pairs for node in pair]
    launch = LaunchInputs(arguments, [length(buffer, axis) for buffer, axis in lengths], read)
    found = iter(exact_values(nodes, wanted, launch))
    for value, pairs in zip(shared.values, dimensions, strict=True):
        count: int | None = 1
        for _ in pairs:
            first, end = next(found), next(found)
            known = count is not None and first is not None and end is not None
            count = count * max(int(end) - int(first), 0) if known else None  # type: ignore[operator,arg-type]
        loops = len(value.axes)
        how_many = "each iteration" if loops == 1 else f"each iteration of {loops} loops" if loops else "1"
        dtype = value.buffer.dtype
        yield Saved(value.var.name or "a value", span_of(value.op), dtype.name, dtype.size, how_many, count)


def _recomputed(fn: ir.Function) -> Iterator[Recomputed]:
    adjoint = adjoint_operations(fn)
    found: dict[tuple[str, int], list[int]] = {}
    for op in walk(fn.region):
        if isinstance(op, ir.Prim | ir.Load) and op.origin is not None and op not in adjoint:
            span = span_of(op)
            counts = found.setdefault((span.file, span.line), [0, 0])
            copied = isinstance(op, ir.Load) or (isinstance(op.origin, ir.Prim) and op.origin.prim is op.prim)
            counts[0 if copied else 1] += 1
    for (file, line), counts in sorted(found.items()):
        yield Recomputed(Span(file, line), *counts)


def _accumulated(fn: ir.Function) -> Iterator[Accumulation]:
    if not any(op.origin is not None for op in walk(fn.region)):
        return
    for task in fn.region.body:
        private = {p.copy: p.target for p in task.privates} if isinstance(task, ir.Task) else {}
        for op in walk(ir.Region((), (task,))):
            if not isinstance(op, ir.Atomic):
                continue
            root = root_of(op.buffer)
            alone = op.plain or not (isinstance(task, ir.Task) and task.parallel)
            how = "private" if root in private else "plain" if alone else "atomic"
            target = private.get(root, root).name
            yield Accumulation(target, how, bytes_of(root) if how == "private" else None, span_of(op))


def saved_values(fn: ir.Function, arguments: Sequence[Number], read: Read, length: Length) -> tuple[Saved, ...]:
    """The stacks of a gradient, `fn` in SCALAR form, and the copies of fields that it makes, for these arguments."""
    counter = _Counter(fn, arguments, read, length)
    counter.region(fn.region, ())
    return (*counter.found, *_copies(fn, length))


def _old_values(values: Iterable[OldValue]) -> Iterator[Saved]:
    """The old values of atomic operations that the launch itself saves under a tape, for its gradient."""
    for v in values:
        name, dtype = f"old {v.op.buffer.name}", v.buffer.dtype
        yield Saved(name, v.op.loc, dtype.name, dtype.size, "each update", None)


def _copies(fn: ir.Function, length: Length) -> list[Saved]:
    found: list[Saved] = []
    for buffer in buffers_of(fn):
        if buffer.kind is not ir.BufferKind.SAVED:
            continue
        lengths = [n if n is not None else length(buffer, axis) for axis, n in enumerate(buffer.shape)]
        count: int | None = 1
        for n in (*lengths, *buffer.element):
            count = None if n is None or count is None else count * n
        shape = " · ".join(map(str, (*lengths, *buffer.element))) or "1"
        original = _copied_to(fn, buffer)
        writes = [op for op in walk(fn.region) if isinstance(op, ir.Store | ir.Atomic) and op.buffer is original]
        span = next((span_of(op) for op in writes if span_of(op).line), fn.loc)
        found.append(Saved(original.name, span, buffer.dtype.name, buffer.dtype.size, shape, count, copy=True))
    return found


def _copied_to(fn: ir.Function, copy: ir.Buffer) -> ir.Buffer:
    """The buffer that a copy was made of."""
    made = definitions(fn.region)
    for op in walk(fn.region):
        if isinstance(op, ir.Store) and op.buffer is copy and isinstance(op.value, ir.Var):
            source = made.get(op.value)
            if isinstance(source, ir.Load):
                return source.buffer
    return copy


class _Counter:
    """Counts pushes. A path is the loops and branches around an operation."""

    def __init__(self, fn: ir.Function, arguments: Sequence[Number], read: Read, length: Length) -> None:
        self.found: list[Saved] = []
        self._made: dict[ir.Var, tuple[ir.Op, ...]] = {}
        self._definitions = definitions(fn.region)
        self._counts = ExecutionCounts(fn, self._definitions, arguments, read, length)

    def region(self, region: ir.Region, path: tuple[ir.Op, ...]) -> None:
        for op in region.body:
            if isinstance(op, ir.NewStack):
                self._made[op.out] = path
            elif isinstance(op, ir.Push):
                self._push(op, path)
            for inner in op.regions:
                self.region(inner, (*path, op))

    def _push(self, op: ir.Push, path: tuple[ir.Op, ...]) -> None:
        stack, value = op.args
        assert isinstance(stack, ir.Var) and isinstance(stack.type, Stack)
        outer = self._made[stack]
        inner = path[len(outer) :]
        content = stack.type.content
        size = element_type(content).size
        for n in shape_of(content):
            size *= n
        loops = [loop for loop in inner if isinstance(loop, ir.For | ir.While)]
        exact = not any(isinstance(one, ir.If) for one in inner)
        defined = self._definitions.get(value) if isinstance(value, ir.Var) else None
        spans = [span_of(one) for one in (op, defined, *reversed(inner)) if one is not None]
        span = next((one for one in spans if one.line), NOWHERE)
        name = value.name if isinstance(value, ir.Var) and value.name else _loaded(defined) or "a value"
        self.found.append(
            Saved(
                name,
                span,
                repr(content),
                size,
                " · ".join([self._trip(loop) for loop in loops]) or "1",
                self._counts.most([loop for loop in outer if isinstance(loop, ir.For)], loops),
                exact,
                any(isinstance(loop, ir.For) and loop.parallel for loop in outer),
            )
        )

    # ---- in words

    def _trip(self, loop: ir.For | ir.While) -> str:
        if isinstance(loop, ir.While):
            return "iterations of the while loop"
        hi, lo = self._word(loop.hi), self._word(loop.lo)
        return hi if lo == "0" else f"({hi} - {lo})"

    def _word(self, atom: ir.Atom) -> str:
        """An atom by the user's name."""
        if isinstance(atom, ir.Lit):
            return str(atom.value)
        op = self._definitions.get(atom)
        if isinstance(op, ir.Prim) and op.prim in (p.add, p.sub, p.mul):
            sign = {p.add: "+", p.sub: "-", p.mul: "*"}[op.prim]
            return f"({self._word(op.args[0])} {sign} {self._word(op.args[1])})"
        if isinstance(op, ir.Prim) and op.prim is p.cast:
            return self._word(op.args[0])
        if isinstance(op, ir.Extent):
            return f"{op.buffer.name}.shape[{op.axis}]"
        return _loaded(op) or atom.name or "trip count"


def _loaded(op: ir.Op | None) -> str:
    """The source of a load as the user writes it, without indices."""
    if not isinstance(op, ir.Load):
        return ""
    return f"{op.buffer.name}[{'…' if op.index else 'None'}]"
