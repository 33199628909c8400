"""Activity analysis: which floats depend, through differentiable operations, on a buffer with a gradient, or on an
argument if those are requested.

Only these get an adjoint. Computed as a fixed point, because a loop's carried value may start constant, and a temporary
becomes active once an active value is stored into it.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.primitives import NoDerivative
from tinote.ir.query import free_variables, walk
from tinote.ir.types import Ref, Stack, is_float
from tinote.source import Span


class _Activity:
    """`source`: the one buffer whose values are active; without it, those of every buffer with a gradient."""

    def __init__(self, source: ir.Buffer | None = None) -> None:
        self.source = source
        self.active: set[ir.Var] = set()
        self.temporaries: set[ir.Buffer] = set()
        self.stacks: set[ir.Var] = set()
        self.changed = False

    def is_active(self, atom: ir.Atom) -> bool:
        return type(atom) is ir.Var and atom in self.active

    def mark(self, var: ir.Var) -> None:
        if var not in self.active and not isinstance(var.type, Ref | Stack) and is_float(var.type):
            self.active.add(var)
            self.changed = True

    def link(self, sources: tuple[ir.Atom, ...], targets: tuple[ir.Var, ...]) -> None:
        for source, target in zip(sources, targets, strict=True):
            if self.is_active(source):
                self.mark(target)

    def is_active_buffer(self, buffer: ir.Buffer) -> bool:
        if buffer.kind is ir.BufferKind.TEMPORARY:
            return buffer in self.temporaries
        return buffer.adjoint is not None if self.source is None else buffer is self.source

    def settle(self, fn: ir.Function, *, arguments: bool = False) -> None:
        if arguments:
            for q in fn.region.params:
                self.mark(q)
        self.changed = True
        while self.changed:
            self.changed = False
            self.region(fn.region)

    def region(self, region: ir.Region) -> None:
        for op in region.body:
            self.op(op)

    def op(self, op: ir.Op) -> None:
        if isinstance(op, ir.Prim):
            rule = op.prim.derivative
            if isinstance(rule, NoDerivative) and rule.zero:
                return
            sources = op.args[1:] if op.prim is p.surrogate else op.args
            if any(self.is_active(a) for a in sources):
                self.mark(op.out)
        elif isinstance(op, ir.Load):
            if self.is_active_buffer(op.buffer):
                self.mark(op.out)
        elif isinstance(op, ir.Store | ir.Atomic):
            if (
                op.buffer.kind is ir.BufferKind.TEMPORARY
                and op.buffer not in self.temporaries
                and self.is_active(op.value)
            ):
                self.temporaries.add(op.buffer)
                self.changed = True
            if isinstance(op, ir.Atomic) and op.outs and self.is_active_buffer(op.buffer):
                self.mark(op.out)
        elif isinstance(op, ir.Push):
            stack = op.args[0]
            if self.is_active(op.args[1]) and isinstance(stack, ir.Var) and stack not in self.stacks:
                self.stacks.add(stack)
                self.changed = True
        elif isinstance(op, ir.Pop):
            if op.args[0] in self.stacks:
                self.mark(op.out)
        elif isinstance(op, ir.If):
            self.region(op.then)
            self.region(op.orelse)
            self.link(op.then.yields, op.outs)
            self.link(op.orelse.yields, op.outs)
        elif isinstance(op, CustomVJP):
            if any(map(self.is_active, op.inputs)):
                for out in op.outs:
                    self.mark(out)
        elif isinstance(op, ir.For | ir.While):
            first = 1 if isinstance(op, ir.For) else 0
            initial = op.initial
            for region in op.regions:
                self.link(initial, region.params[first:])
                self.region(region)
            self.link(op.regions[-1].yields, op.regions[-1].params[first:])
            self.link(initial, op.outs)
            self.link(op.regions[-1].yields, op.outs)


class Active(NamedTuple):
    """The active variables of a function, and the temporaries and stacks that hold active values."""

    variables: set[ir.Var]
    temporaries: set[ir.Buffer]
    stacks: set[ir.Var]


def active_variables(fn: ir.Function, *, arguments: bool = False) -> Active:
    """What is active in `fn`. `arguments`: whether its float arguments are."""
    activity = _Activity()
    activity.settle(fn, arguments=arguments)
    return Active(activity.active, activity.temporaries, activity.stacks)


def may_be_active(buffer: ir.Buffer, *, tangents: bool = False) -> bool:
    """Whether a buffer may hold values that are differentiated: it has a gradient (a dual, for `tangents`), or is a
    temporary of floats.
    """
    if buffer.kind is ir.BufferKind.TEMPORARY:
        return buffer.dtype.kind == "f"
    return (buffer.tangent if tangents else buffer.adjoint) is not None


def reached_from(
    fn: ir.Function, buffer: ir.Buffer, *, tangents: bool = False
) -> tuple[list[ir.Store | ir.Atomic], bool]:
    """The writes to fields whose value is computed from what `fn` reads of `buffer`, also by way of other fields that
    have no gradient (no dual, for `tangents`), and whether `fn` returns such a value. Order within `fn` is not
    considered.
    """
    found: dict[ir.Store | ir.Atomic, None] = {}
    returned = False
    pending, seen = [buffer], {buffer}
    while pending:
        activity = _Activity(pending.pop())
        activity.settle(fn)
        returned = returned or any(map(activity.is_active, fn.region.yields))
        for op in walk(fn.region):
            if (
                isinstance(op, ir.Store | ir.Atomic)
                and op.buffer.kind is not ir.BufferKind.TEMPORARY
                and activity.is_active(op.value)
            ):
                found[op] = None
                shadow = op.buffer.tangent if tangents else op.buffer.adjoint
                if shadow is None and op.buffer not in seen:
                    seen.add(op.buffer)
                    pending.append(op.buffer)
    return list(found), returned


class Broken(NamedTuple):
    """An active value is stored at `span` into a buffer without a gradient (a dual, in forward mode). `at`: where
    the function itself needs it, for `needed`, which has one, or for what it returns (None).
    """

    buffer: ir.Buffer
    span: Span
    at: Span | None = None
    needed: ir.Buffer | None = None


def broken_at(
    write: ir.Store | ir.Atomic, fn: ir.Function, *, arguments: bool = False, tangents: bool = False
) -> Broken:
    """What `fn` makes of the value that `write` stores into a buffer without a shadow. `arguments`: what it returns
    counts.
    """
    writes, returned = reached_from(fn, write.buffer, tangents=tangents)
    needed = next((w for w in writes if (w.buffer.tangent if tangents else w.buffer.adjoint) is not None), None)
    if needed is not None:
        return Broken(write.buffer, write.loc, needed.loc, needed.buffer)
    return Broken(write.buffer, write.loc, fn.loc if returned and arguments else None)


def discardable_variables(fn: ir.Function) -> set[ir.Var]:
    """Variables whose value may not affect the result, so that their adjoint may be 0: operands of a choice (`select`,
    minimum, maximum), and what a branch or a loop that may not run takes from outside; and whatever these are computed
    from. Memory is not followed.
    """
    sources: dict[ir.Var, tuple[ir.Atom, ...]] = {}
    pending: list[ir.Atom] = []
    for op in walk(fn.region):
        if isinstance(op, ir.Prim):
            sources[op.out] = op.args
            if op.prim in (p.select, p.minimum, p.maximum):
                pending.extend(op.args)
        elif isinstance(op, ir.Push):
            assert isinstance(op.args[0], ir.Var)
            sources[op.args[0]] = (*sources.get(op.args[0], ()), op.args[1])
        elif isinstance(op, ir.Pop):
            sources[op.out] = op.args
        elif isinstance(op, ir.If):
            pairs = zip(op.then.yields, op.orelse.yields, strict=True)
            sources.update(zip(op.outs, pairs, strict=True))
        elif isinstance(op, ir.For | ir.While):
            carried = op.regions[-1].params[isinstance(op, ir.For) :]
            flowing = list(zip(op.initial, op.regions[-1].yields, strict=True))
            sources.update(zip((*carried, *op.outs), (*flowing, *flowing), strict=True))
        for region in op.regions:
            pending.extend(free_variables(region))
    found: set[ir.Var] = set()
    while pending:
        atom = pending.pop()
        if type(atom) is ir.Var and atom not in found:
            found.add(atom)
            pending.extend(sources.get(atom, ()))
    return found
