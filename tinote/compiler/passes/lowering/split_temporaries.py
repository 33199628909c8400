"""Scalar replacement of vector temporaries: one variable for each component, where a parallel loop updates components
differently.

    for parallel %i: i32 in 0i32 .. %n:             for parallel %i: i32 in 0i32 .. %n:
      %x: f32 = load @x[%i]                           %x: f32 = load @x[%i]
      atomic max @v[][0i32], %x               ->      atomic max @v.0[], %x
      atomic add @v[][1i32], %x                       atomic add @v.1[], %x

The vector is a temporary, a variable from outside the loop. Each of the new variables is updated by one operation, so
that later passes can privatise it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir.nodes import Atom, Atomic, Buffer, BufferKind, For, Function, Lit, Load, MemoryOp, Op, Region, Store
from tinote.ir.query import walk
from tinote.ir.rewrite import DROP, KEEP, Decision, Rewriter


def split_temporaries(fn: Function) -> Function:
    """`fn`, in the SCALAR form, with temporaries split so that each is updated by one operation, where possible."""
    mixed = _mixed(fn.region)
    if not mixed:
        return fn
    for op in walk(fn.region):
        if isinstance(op, MemoryOp) and op.buffer in mixed and not _is_of_known_component(op):
            mixed.discard(op.buffer)
    return _Splitting(mixed).run(fn) if mixed else fn


def _mixed(region: Region) -> set[Buffer]:
    """The vectors and matrices whose components a parallel loop updates by different operations."""
    found: set[Buffer] = set()
    for loop in region.body:
        if not isinstance(loop, For) or not loop.parallel:
            continue
        uses: dict[Buffer, set[object]] = {}
        for op in walk(loop.body):
            if isinstance(op, MemoryOp) and op.buffer.kind is BufferKind.TEMPORARY and op.buffer.element:
                use = op.prim if isinstance(op, Atomic) and not op.outs else type(op)
                uses.setdefault(op.buffer, set()).add(use)
        found |= {b for b, kinds in uses.items() if len(kinds) > 1 and not kinds <= {Load, Store}}
    return found


def _is_of_known_component(op: MemoryOp) -> bool:
    known = isinstance(op, Load | Store | Atomic) and not op.buffer.shape and len(op.index) == len(op.buffer.element)
    return known and all(isinstance(a, Lit) for a in op.index)


class _Splitting(Rewriter):
    """Redirects accesses to the components' own buffers. Nothing is renamed."""

    def __init__(self, split: set[Buffer]) -> None:
        super().__init__()
        self.split = split
        self.parts: dict[tuple[Buffer, tuple[Atom, ...]], Buffer] = {}

    def on(self, op: Op) -> Decision | Sequence[Atom]:
        if not isinstance(op, Load | Store | Atomic) or op.buffer not in self.split:
            return KEEP
        part = self.part(op.buffer, op.index)
        if isinstance(op, Load):
            self.emit(Load(part, (), op.outs, op.loc, op.origin))
            return op.outs
        if isinstance(op, Store):
            self.emit(Store(part, (), op.value, op.loc, op.origin))
        else:
            self.emit(Atomic(op.prim, part, (), op.value, op.outs, op.loc, op.origin))
        return op.outs or DROP

    def part(self, buffer: Buffer, index: tuple[Atom, ...]) -> Buffer:
        found = self.parts.get((buffer, index))
        if found is None:
            name = ".".join([buffer.name, *[str(int(a.value)) for a in index if isinstance(a, Lit)]])
            found = Buffer(name, buffer.dtype, (), (), BufferKind.TEMPORARY)
            self.parts[buffer, index] = found
        return found
