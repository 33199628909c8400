"""Fully unrolls pure loops with a known trip count into straight-line code.

    %s = stack 2i64
    %b: f32 = for %k: i32 in 0i32 .. 2i32 carrying %v: f32 = %a:          %u: f32 = sin %a
      push %s, %v                                                         %b: f32 = sin %u
      %w: f32 = sin %v                                              ->    %c: f32 = cos %u
      yield %w                                                            %d: f32 = cos %a
    %d: f32 = for reverse %k: i32 in 0i32 .. 2i32 carrying %g: …:
      %x: f32 = pop %s
      …

Stacks whose pushes and pops are all in straight-line code are replaced by their values.

The purpose is to vectorise the enclosing loop (`mark_vector_loops`). A loop that reads or writes memory is left alone:
it may itself be vectorised.
"""

from __future__ import annotations

from tinote.ir.cost import length_of
from tinote.ir.nodes import Atom, For, If, Lit, NewStack, Op, Pop, Prim, Push, Region, Var
from tinote.ir.query import trip_count, walk
from tinote.ir.rewrite import Rewriting, clone_region

#: Greatest length of the unrolled code, in additions: it compiles in some tenths of a second.
_MAX_LENGTH = 1500.0


def unrolled(region: Region) -> Region | str:
    """`region` with its loops unrolled; or the reason why one cannot be, or that the code would become too long."""
    for op in walk(region):
        if isinstance(op, For) and not all(isinstance(inner, Prim | If | For | Push | Pop) for inner in walk(op.body)):
            return "a loop inside of it does more than compute"
        if isinstance(op, For) and trip_count(op.lo, op.hi) is None:
            return "how often a loop inside of it runs is known at run time only"
    if _length(region.body) > _MAX_LENGTH:
        return "the loops inside of it would be too long when written out"
    worker = _Straight()
    if not worker.body(region.body):
        return "what a loop inside of it saves depends on branches"
    return Region(region.params, tuple(worker.out), tuple([worker.get(y) for y in region.yields]))


def _length(body: tuple[Op, ...]) -> float:
    """The length of code with its loops unrolled, in additions."""
    total = 0.0
    for op in body:
        if isinstance(op, For):
            total += (trip_count(op.lo, op.hi) or 0) * (1 + _length(op.body.body))
        else:
            total += length_of(op) + sum([_length(r.body) for r in op.regions])
    return total


class _Straight(Rewriting):
    """Emits straight-line code.

    `env`: the substitutions for variables; `stacks`: the present contents of each stack.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stacks: dict[Atom, list[Atom]] = {}

    def body(self, body: tuple[Op, ...], *, fresh: bool = False) -> bool:
        """Emit operations, under new names if they are a `fresh` copy; false if one cannot be unrolled."""
        return all(self.op(op, fresh) for op in body)

    def op(self, op: Op, fresh: bool) -> bool:
        if isinstance(op, For):
            return self.loop(op)
        if isinstance(op, NewStack):
            self.stacks[op.out] = []
        elif isinstance(op, Push):
            if op.args[0] not in self.stacks:
                return False
            self.stacks[op.args[0]].append(self.get(op.args[1]))
        elif isinstance(op, Pop):
            held = self.stacks.get(op.args[0])
            if not held:
                return False
            self.env[op.out] = held.pop()
        elif any(isinstance(inner, For | NewStack | Push | Pop) for r in op.regions for inner in walk(r)):
            return False
        else:
            outs = tuple([Var(v.type, v.name) for v in op.outs]) if fresh else op.outs
            regions = tuple([clone_region(r, self.env)[0] for r in op.regions])
            self.out.append(op.rebuilt(tuple([self.get(a) for a in op.args]), regions, outs))
            if fresh:
                self.env.update(zip(op.outs, outs, strict=True))
        return True

    def loop(self, loop: For) -> bool:
        assert isinstance(loop.lo, Lit) and isinstance(loop.hi, Lit)
        iterations = range(int(loop.lo.value), int(loop.hi.value))
        carried = tuple([self.get(a) for a in loop.initial])
        for iteration in reversed(iterations) if loop.reverse else iterations:
            self.env[loop.index] = Lit(iteration, loop.lo.type)
            self.env.update(zip(loop.carried, carried, strict=True))
            if not self.body(loop.body.body, fresh=True):
                return False
            carried = tuple([self.get(y) for y in loop.body.yields])
        self.env.update(zip(loop.outs, carried, strict=True))
        return True
