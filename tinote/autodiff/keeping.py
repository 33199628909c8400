"""Reverse mode where a kernel overwrites what its own gradient needs.

    for parallel %i in 0..8:                 for parallel %i in 0..8:      (@x is as it was before the launch)
      for %t in 0..9:                          %s = stack
        %a = load @x[%i]                       for %t in 0..9:
        %b = sin %a                  ->          %a = load @x[%i]
        store @x[%i], %b                         %b = sin %a
                                                 store @x[%i], %b
                                                 push %s, %a
                                               for reverse %t in 0..9:
                                                 %a = pop %s
                                                 ...

Recomputing a turn of such a loop when the loop is run backwards would read what later turns have written. So the
forward part runs once, in its original order and with its effects on the overwritten buffers, and everything that the
reverse part needs of a turn is pushed while it is there: the free variables of the finished reverse region that the
forward region binds, except for arithmetic, which is done again from what was pushed. The launch has to begin with the
buffers as they were before the primal launch (`Keeping.buffers`); it leaves them as the primal did.

Method: the classical reversal with a tape of values, as in Hascoët and Pascual, "The Tapenade Automatic Differentiation
tool", 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from tinote.autodiff.iterations import Differentiator, content_of, counting, look
from tinote.ir.buffers import Buffer, BufferKind
from tinote.ir.build import Builder, OpenRegion
from tinote.ir.custom_vjp import Replaced
from tinote.ir.nodes import (
    Atom,
    Atomic,
    Check,
    For,
    If,
    Lit,
    NewStack,
    Op,
    Pop,
    Prim,
    Print,
    Push,
    Region,
    Store,
    Var,
    While,
)
from tinote.ir.query import free_variables
from tinote.ir.rewrite import clone_region
from tinote.ir.types import Stack, i32, i64

__all__ = ["NOTHING", "Copy", "Keeper", "Keeping", "copy_buffer", "finished"]


class Keeping(NamedTuple):
    """The top-level operations that keep their effects in the gradient, and the buffers that these effects are on.

    `fused`: those whose forward and reverse part stand together in the reverse part. `saved`: for one of these that
    something further down depends on, pairs of a copy and a buffer: the forward part copies the buffer and runs the
    operation, and the reverse part copies it back before it runs the operation again.
    """

    ops: frozenset[Op]
    buffers: frozenset[Buffer]
    fused: frozenset[Op]
    saved: dict[Op, tuple[tuple[Buffer, Buffer], ...]]

    @property
    def provided(self) -> tuple[tuple[Buffer, Buffer], ...]:
        """The pairs whose copy a launch has to provide, because only it knows the shape."""
        return tuple([pair for pairs in self.saved.values() for pair in pairs if None in pair[0].shape])


NOTHING = Keeping(frozenset(), frozenset(), frozenset(), {})


def copy_buffer(builder: Builder, source: Buffer, target: Buffer) -> None:
    """Emit loops that copy all elements of a buffer."""

    def level(index: tuple[Var, ...]) -> None:
        axis = len(index)
        if axis < target.rank:
            position = Var(i32, "i")
            with builder.region(position) as inside:
                level((*index, position))
            extent = builder.extent(target, axis)
            builder.emit(For(Lit(0, i32), extent, (), inside.close(), (), builder.loc, parallel=True))
            return
        for component in product(*[range(n) for n in target.element]):
            place = (*index, *[Lit(k, i32) for k in component])
            builder.store(target, place, builder.load(source, place))

    level(())


class _Part:
    """The forward copy of a region, while pushes are still being added to its end."""

    __slots__ = ("items", "params", "pushes", "yields")

    def __init__(self, params: tuple[Var, ...]) -> None:
        self.params = params
        self.items: list[Copy] = []
        self.pushes: list[Op] = []
        self.yields: tuple[Atom, ...] = ()

    def region(self) -> Region:
        body = [op for item in self.items for op in finished(item)]
        return Region(self.params, (*body, *self.pushes), self.yields)


class _Structure:
    """The forward copy of an operation with regions. `count`: for a `while`, the number of its turns."""

    __slots__ = ("args", "count", "op", "outs", "parts")

    def __init__(self, op: Op, args: tuple[Atom, ...], parts: list[_Part], outs: tuple[Var, ...]) -> None:
        self.op = op
        self.args = args
        self.parts = parts
        self.outs = outs
        self.count: Var | None = None

    def finish(self) -> Op:
        new = self.op.rebuilt(self.args, tuple([part.region() for part in self.parts]), self.outs)
        new.origin = self.op
        if isinstance(new, For) and new.parallel:
            # Its turns push on shared stacks: one after the other.
            new = For(new.lo, new.hi, new.initial, new.body, new.outs, new.loc, origin=self.op)
        if isinstance(new, While) and self.count is not None:
            counted, count = counting(new)
            new = While(counted.initial, counted.condition, counted.body, (*new.outs, self.count), new.loc, self.op)
            assert count.type == self.count.type
        return new


#: The forward copy of one operation: itself, a structure still open, or nothing where the operation was only an effect.
Copy = Op | _Structure | None


def finished(copy: Copy) -> list[Op]:
    """The operations that a copy stands for, now that nothing is added to it any more."""
    return [] if copy is None else [copy.finish()] if isinstance(copy, _Structure) else [copy]


class Keeper:
    """Differentiates operations that keep their effects on `buffers`. `stacks` must stand in front of all of them."""

    def __init__(self, reverser: Differentiator, buffers: frozenset[Buffer]) -> None:
        self.reverser = reverser
        self.buffers = buffers
        self.stacks: list[Op] = []

    def fused(self, opened: OpenRegion, region: Region, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        """Forward and reverse part of one iteration of a parallel loop, at the end of the open region."""
        part = self.part(region, (), env)
        with self.reverser.builder.region() as backward:
            self.backward_part(region, part, env, adjoints)
        opened.body.extend([*self.stacks, *part.region().body, *backward.body])

    def fused_serial(self, op: Op, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        """Forward and reverse part of a serial operation, which has run ahead if anything else depends on it."""
        builder = self.reverser.builder
        inside = dict(env)
        copy = self.forward(op, inside)
        with builder.region() as backward:
            self.backward(op, copy, inside, adjoints)
        for made in (*self.stacks, *finished(copy), *backward.body):
            builder.emit(made)

    # ---- forward

    def run_ahead(self, op: Op, env: dict[Var, Atom], saved: Sequence[tuple[Buffer, Buffer]]) -> None:
        """Run an operation for its effects and values alone, where something further down needs them, after saving what
        it changes.
        """
        if not saved:
            return
        builder = self.reverser.builder
        for copy, buffer in saved:
            copy_buffer(builder, buffer, copy)
        if isinstance(op, For) and op.parallel:
            part = self.part(op.body, tuple([Var(q.type, q.name) for q in op.body.params]), dict(env))
            bounds = look(env, op.lo), look(env, op.hi)
            builder.emit(For(*bounds, (), part.region(), (), op.loc, parallel=True, origin=op))
        else:
            for made in finished(self.forward(op, env)):
                builder.emit(made)

    def part(self, region: Region, params: tuple[Var, ...], env: dict[Var, Atom]) -> _Part:
        """The forward copy of `region`; `env` learns what stands for the variables that it binds."""
        made = _Part(params)
        env.update(zip(region.params, params, strict=False))
        for op in region.body:
            made.items.append(self.forward(op, env))
        made.yields = tuple([look(env, y) for y in region.yields])
        return made

    def forward(self, op: Op, env: dict[Var, Atom]) -> Copy:
        """Copy `op` with its effects on the kept buffers and on temporaries, without its other effects."""
        if isinstance(op, Check | Print):
            return None
        args = tuple([look(env, a) for a in op.args])
        outs = tuple([Var(v.type, v.name) for v in op.outs])
        if isinstance(op, Store | Atomic):
            # A value that an atomic operation returned depended on the moment of execution: it cannot be had again.
            self.reverser.unavailable.update(dict.fromkeys(outs, op))
            env.update(zip(op.outs, outs, strict=True))
            kept = op.buffer in self.buffers or op.buffer.kind is BufferKind.TEMPORARY
            return self.reverser.register(op, op.rebuilt(args, (), ())) if kept else None
        if not op.regions or isinstance(op, Replaced):
            env.update(zip(op.outs, outs, strict=True))
            regions = tuple([clone_region(r, env)[0] for r in op.regions])
            return self.reverser.register(op, op.rebuilt(args, regions, outs))
        parts = [self.part(r, tuple([Var(q.type, q.name) for q in r.params]), env) for r in op.regions]
        env.update(zip(op.outs, outs, strict=True))
        return _Structure(op, args, parts, outs)

    # ---- backward

    def backward_part(self, region: Region, part: _Part, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        builder = self.reverser.builder
        loc, origin = builder.loc, builder.origin
        for op, copy in zip(reversed(region.body), reversed(part.items), strict=True):
            builder.loc, builder.origin = op.loc, op
            self.backward(op, copy, env, adjoints)
        builder.loc, builder.origin = loc, origin

    def backward(self, op: Op, copy: Copy, env: dict[Var, Atom], adjoints: dict[Var, Atom]) -> None:
        """Emit the adjoint of one operation whose forward copy is `copy`."""
        if not isinstance(copy, _Structure):
            self.reverser.backward(op, [], env, adjoints, False)
        elif isinstance(op, If):
            self.reverser.backward_if(
                op,
                env,
                adjoints,
                lambda k, opened, inner: self.backward_part(op.regions[k], copy.parts[k], env, inner),
                lambda k, region: self.supplied(region, copy.parts[k], {}),
            )
        elif isinstance(op, For):
            index = Var(op.index.type, op.index.name)
            forward_index = copy.parts[0].params[0]
            self.backward_loop(op, copy, op.carried, index, {forward_index: index}, env, adjoints)
        elif isinstance(op, While):
            self.backward_loop(op, copy, op.body.params, Var(i64, "turn"), {}, env, adjoints)

    def backward_loop(
        self,
        op: For | While,
        copy: _Structure,
        params: tuple[Var, ...],
        index: Var,
        known: dict[Var, Atom],
        env: dict[Var, Atom],
        adjoints: dict[Var, Atom],
    ) -> None:
        reverser = self.reverser
        seeds = [adjoints.pop(v, None) for v in op.outs]
        if not reverser.has_adjoint_work(op, seeds):
            return
        region, part = op.regions[-1], copy.parts[-1]
        outer = reverser.outer_varied(region)
        body, carried = reverser.adjoint_body(
            region,
            params,
            op.initial,
            seeds,
            outer,
            adjoints,
            lambda opened, inner: self.backward_part(region, part, env, inner),
        )
        body = self.supplied(body, part, known)
        outs = tuple([Var(v.type) for v in carried.targets])
        lo: Atom
        hi: Atom
        if isinstance(op, For):
            lo, hi = look(env, op.lo), look(env, op.hi)
        else:
            copy.count = Var(i64, "turns")
            lo, hi = Lit(0, i64), copy.count
        turns = Region((index, *carried.params), body.body, body.yields)
        backwards = not (isinstance(op, For) and op.reverse)
        reverser.builder.emit(For(lo, hi, carried.initial, turns, outs, op.loc, reverse=backwards, origin=op))
        reverser.settle(carried, outs, op.initial, adjoints)

    def supplied(self, region: Region, part: _Part, known: dict[Var, Atom]) -> Region:
        """`region`, which refers to variables that the forward region binds, with these at its start: arithmetic is
        done again, everything else is pushed by the forward region and popped here.
        """
        own: dict[Var, Op | None] = dict.fromkeys(part.params)
        for item in part.items:
            if item is not None:
                own.update(dict.fromkeys(item.outs, item if isinstance(item, Prim) else None))
            if isinstance(item, _Structure) and item.count is not None:
                own[item.count] = None
        needed: dict[Var, None] = {}
        pending: list[Atom] = list(free_variables(region))
        while pending:
            v = pending.pop()
            if not isinstance(v, Var) or v not in own or v in known or v in needed:
                continue
            needed[v] = None
            definition = own[v]
            if definition is not None:
                pending.extend(definition.args)
        env: dict[Var, Atom] = dict(known)
        start: list[Op] = []
        for v in needed:
            if own[v] is None:
                start.append(self.pop(v, part, env))
        for item in part.items:
            if isinstance(item, Prim) and item.out in needed:
                fresh = Var(item.out.type, item.out.name)
                start.append(item.rebuilt(tuple([look(env, a) for a in item.args]), (), (fresh,)))
                env[item.out] = fresh
        copy, _ = clone_region(region, env)
        return Region(copy.params, (*start, *copy.body), copy.yields)

    def pop(self, v: Var, part: _Part, env: dict[Var, Atom]) -> Op:
        """Push `v` at the end of the forward region, and make the operation that takes it back."""
        stack, fresh = Var(Stack(content_of(v)), v.name), Var(v.type, v.name)
        self.stacks.append(NewStack((), (stack,)))
        part.pushes.append(Push((stack, v)))
        env[v] = fresh
        return Pop((stack,), (fresh,))
