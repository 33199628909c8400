"""Saves residuals: values that the primal launch stores for its gradient to read in place of recomputing them.

    for parallel %i in 0..%n:                    for parallel %i in 0..%n:
      %e = exp %x                          ->      %e = exp %x                 `record_shared`: the primal
      atomic add @total[], %e                      store @e.shared[%i], %e
    %s = load @total[]                             atomic add @total[], %e
                                                 %s = load @total[]
                                                 store @total.shared[0], %s

                                           ->      %e = exp %x                 `replay_shared`: what is differentiated
                                                   %w = load @e.shared[%i]
                                                   %f = surrogate %w, %e
                                                   atomic add @total[], %f
                                                 …

Of what the reverse part uses, and of what that would be computed from, these are saved: what costs as much as `exp`,
what comes out of a serial loop that only parallel ones surround, and what a loop has left in a temporary, such as a sum
or the index of an extremum. A `surrogate` has the value that was saved and the derivative of the one that is not
computed again (`storage.py` takes the one for the other throughout), so that what only led to it is executed no more.

A value inside of loops has a place for each iteration, as old values have (`saved_places.py`): the dimensions of
parallel loops come last, for iterations that run in lanes lie next to each other. Kernels are left as they are that
save old values, have custom derivatives which read memory, or of which loops become serial for the gradient.

Both sides call `share`, which gives equal functions for equal functions: it decides by the adjoint with respect to
memory alone, whether arguments are differentiated too or not. Why a launch and its gradient do not share, it remarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tinote.autodiff.atomic_old_values import plan_old_values
from tinote.autodiff.custom_vjp import lift_values
from tinote.autodiff.reverse import Reverser
from tinote.autodiff.saved_places import Axis, axes_of, buffer_for, launch_nodes, place, shapes_of
from tinote.autodiff.sequential_reverse import make_sequential
from tinote.autodiff.unfold import may_serialise, unfold_atomics
from tinote.autodiff.winners import select_winners
from tinote.errors import DifferentiationError
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.access import accesses_of
from tinote.ir.cost import MIN_EXPENSIVE_COST, UNKNOWN_TRIP_COUNT, own_cost
from tinote.ir.launch_values import NO_SHAPES, SymbolicShapes
from tinote.ir.primitives import Defaults
from tinote.ir.query import bound_in, definitions, free_variables, span_of, trip_count, walk
from tinote.ir.rewrite import KEEP, Decision, Rewriter
from tinote.ir.types import Scalar, is_float
from tinote.remarks import Remark, Report, unread
from tinote.source import Span


class SharedValue(NamedTuple):
    """The values of `var`, which `op` binds, saved in `buffer`."""

    var: ir.Var
    op: ir.Op
    buffer: ir.Buffer
    axes: tuple[Axis, ...]

    @property
    def source(self) -> ir.Buffer:
        """What stands for the values in messages."""
        return self.buffer


class SharedValues(NamedTuple):
    """What is saved of one launch, and the shapes of the buffers, as far as the launch determines them."""

    values: tuple[SharedValue, ...]
    shapes: SymbolicShapes = NO_SHAPES


NOTHING_SHARED = SharedValues(())


def share(fn: ir.Function, defaults: Defaults, report: Report = unread) -> tuple[ir.Function, SharedValues]:
    """What a launch of `fn` (scalar form, simplified) saves, and the function whose values these are, which computes
    the same.
    """

    def alone(text: str, span: Span = fn.loc) -> tuple[ir.Function, SharedValues]:
        report(Remark("record", span, text))
        return fn, NOTHING_SHARED

    if not any(isinstance(op, ir.For) for op in walk(fn.region)):
        return fn, NOTHING_SHARED
    old = plan_old_values(fn).values
    if old:
        return alone("the launch saves old values of atomic operations instead", span_of(old[0].op))
    if lift_values(fn) is not fn:
        return alone("a custom derivative in it reads memory")
    unfolded = unfold_atomics(fn, may_serialise)
    sequential = make_sequential(unfolded)
    if sequential.in_order or sequential.dependence is not None:
        return alone("iterations that may meet run in order for the gradient")
    chosen = select_winners(unfolded)
    if _serial_loops(chosen) > _serial_loops(fn):
        return alone("iterations that may run at once in the launch run in order for the gradient")
    try:
        reverser = Reverser(chosen, defaults)
        adjoint = reverser.adjoint()
    except DifferentiationError as error:
        return alone("it has no derivative", error.span)
    found = _Choice(chosen, report).values(_used(adjoint.region))
    return (chosen, found) if found.values else (fn, NOTHING_SHARED)


def _serial_loops(fn: ir.Function) -> int:
    return sum(isinstance(op, ir.For) and not op.parallel for op in walk(fn.region))


def _used(region: ir.Region) -> list[ir.Var]:
    """All variables that are used in reverse code, and that it does not bind itself."""
    bound = bound_in(region)
    return [v for v in free_variables(region) if v not in bound]


class _Choice:
    """Which values of a function are saved."""

    def __init__(self, fn: ir.Function, report: Report) -> None:
        self.report = report
        self.accesses = accesses_of(fn)
        self.definitions = definitions(fn.region)
        self.order = {v: k for k, v in enumerate(v for op in walk(fn.region) for v in op.outs)}
        self.nodes = launch_nodes(fn, self.accesses)
        self.around: dict[ir.Op, tuple[ir.Op, ...]] = {}
        self.depth_of_writes: dict[ir.Buffer, int] = {}
        self.written: dict[ir.Buffer, list[ir.Atom]] = {}
        #: what is executed in every iteration of the loops around it, which are all that is around it
        self.every: set[ir.Op] = set()
        self._look_around(fn.region, (), True)

    def _look_around(self, region: ir.Region, loops: tuple[ir.Op, ...], in_every: bool) -> None:
        for op in region.body:
            self.around[op] = loops
            if in_every:
                self.every.add(op)
            if isinstance(op, ir.Store | ir.Atomic):
                known = self.depth_of_writes.get(op.buffer, 0)
                self.depth_of_writes[op.buffer] = max(known, len(loops))
                self.written.setdefault(op.buffer, []).append(op.value)
            inside = (*loops, op) if isinstance(op, ir.For | ir.While) else loops
            for inner in op.regions:
                self._look_around(inner, inside, in_every and isinstance(op, ir.For))

    def values(self, used: Iterable[ir.Var]) -> SharedValues:
        chosen: dict[ir.Var, tuple[Axis, ...]] = {}
        pending = list(used)
        seen = set(pending)
        while pending:
            v = pending.pop()
            op = self.definitions.get(v)
            if op is None:
                continue
            axes = self._axes(v, op)
            if axes is not None:
                chosen[v] = axes
            elif isinstance(op, ir.Prim | ir.Load):
                further = {a for a in self._sources(op) if isinstance(a, ir.Var)} - seen
                pending += further
                seen |= further
        found = [
            SharedValue(v, self.definitions[v], buffer_for(f"{v.name or 'value'}.shared", v, chosen[v]), chosen[v])
            for v in sorted(chosen, key=self.order.__getitem__)
        ]
        return (
            SharedValues(tuple(found), shapes_of(found, self.nodes, self._filled(found))) if found else NOTHING_SHARED
        )

    def _filled(self, values: Iterable[SharedValue]) -> list[SharedValue]:
        """Those that are written completely: what reads them finds no memory as it was before."""
        return [value for value in values if value.op in self.every and all(map(self._is_exact, self.around[value.op]))]

    def _is_exact(self, loop: ir.Op) -> bool:
        """Whether the launch determines the iterations of a loop, not just bounds of them."""
        return isinstance(loop, ir.For) and None not in (self.nodes.node(loop.lo), self.nodes.node(loop.hi))

    def _sources(self, op: ir.Prim | ir.Load) -> Sequence[ir.Atom]:
        """What a value would be computed from."""
        if isinstance(op, ir.Load) and op.buffer.kind is ir.BufferKind.TEMPORARY:
            return (*op.args, *self.written.get(op.buffer, ()))
        return op.args[:1] if isinstance(op, ir.Prim) and op.prim is p.surrogate else op.args

    def _axes(self, v: ir.Var, op: ir.Op) -> tuple[Axis, ...] | None:
        """The loops around an operation whose value is worth saving, in the order of the dimensions."""
        if not isinstance(v.type, Scalar) or not self._is_worth_saving(v, op):
            return None
        loops = self.around[op]
        ordered = [loop for loop in loops if not _is_parallel(loop)] + [loop for loop in loops if _is_parallel(loop)]
        axes = axes_of(ordered, self.nodes, self.accesses)
        if axes is None:
            self.report(Remark("record", span_of(op), "how many values there are to save is known at run time only"))
        return axes

    def _is_worth_saving(self, v: ir.Var, op: ir.Op) -> bool:
        if isinstance(op, ir.Prim):
            return op.prim.cost >= MIN_EXPENSIVE_COST and is_float(v.type)
        if isinstance(op, ir.For):
            # One for each iteration of parallel loops, of which there are few compared with those of the loop itself.
            return not op.parallel and _cost(op) >= MIN_EXPENSIVE_COST and all(map(_is_parallel, self.around[op]))
        if isinstance(op, ir.Load) and op.buffer.kind is ir.BufferKind.TEMPORARY and not op.buffer.element:
            return self.depth_of_writes.get(op.buffer, 0) > len(self.around[op])
        return False


def _is_parallel(loop: ir.Op) -> bool:
    return isinstance(loop, ir.For) and loop.parallel


def _cost(op: ir.Op) -> float:
    inside = sum(_cost(inner) for r in op.regions for inner in r.body)
    if not isinstance(op, ir.For | ir.While):
        return own_cost(op) + inside
    count = trip_count(op.lo, op.hi) if isinstance(op, ir.For) else None
    return inside * (UNKNOWN_TRIP_COUNT if count is None else count)


def record_shared(fn: ir.Function, shared: SharedValues) -> ir.Function:
    """`fn`, saving these values as well."""
    return _Recorder(shared).run(fn) if shared.values else fn


def replay_shared(fn: ir.Function, shared: SharedValues) -> ir.Function:
    """`fn`, with the values that a launch of `record_shared`'s result has saved, and derivatives as before."""
    return _Replayer(shared).run(fn) if shared.values else fn


class _AtShared(Rewriter):
    """Comes by each operation that binds a value of `shared`, after what is inside of it."""

    def __init__(self, shared: SharedValues) -> None:
        super().__init__()
        self.values = {value.var: value for value in shared.values}

    def on(self, op: ir.Op) -> Decision | Sequence[ir.Atom]:
        if self.values.keys().isdisjoint(op.outs):
            return KEEP
        self.emit(op)
        return [self.at(self.values[v], v) if v in self.values else v for v in op.outs]

    def at(self, value: SharedValue, v: ir.Var) -> ir.Atom:
        """What stands for the value from here on."""
        raise NotImplementedError


class _Recorder(_AtShared):
    def at(self, value: SharedValue, v: ir.Var) -> ir.Atom:
        self.emit(ir.Store(value.buffer, place(self, value), v, value.op.loc, value.op.origin))
        return v


class _Replayer(_AtShared):
    def at(self, value: SharedValue, v: ir.Var) -> ir.Atom:
        loc, origin = value.op.loc, value.op.origin
        read = ir.Var(v.type, v.name)
        self.emit(ir.Load(value.buffer, place(self, value), (read,), loc, origin))
        # A float may be differentiated by the arguments where it is not by memory.
        if not is_float(v.type):
            return read
        return self.apply(p.surrogate, v.type, value.op, read, v, name=v.name)
