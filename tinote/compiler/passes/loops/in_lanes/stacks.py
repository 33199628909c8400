"""Stacks in lanes."""

from __future__ import annotations

from tinote.compiler.passes.loops.in_lanes.loop import LoopInLanes
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.types import Scalar, Stack, i64


def stack(e: LoopInLanes, op: ir.NewStack | ir.Push | ir.Pop) -> None:
    """A row of a stack holds the values of all lanes, including inactive ones. Pops mirror pushes and run for the same
    lanes.
    """
    stack = op.out if isinstance(op, ir.NewStack) else op.args[0]
    assert isinstance(stack, ir.Var) and isinstance(stack.type, Stack)
    if e.divergence.step(stack) == 0:
        args = op.args
        if isinstance(op, ir.NewStack) and not e.divergence.uniform(*args):
            args = (most_of(e, op.args[0]),)
        e.emit(op if args is op.args else op.rebuilt(args))
        return
    if isinstance(op, ir.NewStack):
        assert isinstance(stack.type.content, Scalar)
        e.stacks[stack] = ir.Var(Stack(e.type(stack.type.content)), stack.name)
        e.emit(op.rebuilt(tuple([most_of(e, a) for a in op.args]), (), (e.stacks[stack],)))
    elif isinstance(op, ir.Push):
        e.emit(op.rebuilt((e.stacks[stack], e.spread(op.args[1]))))
    else:
        e.emit(op.rebuilt((e.stacks[stack],), (), (e.lanes_for(op.out),)))


def most_of(e: LoopInLanes, capacity: ir.Atom) -> ir.Atom:
    """The largest capacity of any lane: it is a trip count, and lanes count together."""
    if e.divergence.uniform(capacity):
        return capacity
    return e.reduce(p.maximum, e.chosen(e.mask, e.spread(capacity), ir.Lit(0, i64)))
