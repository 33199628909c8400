"""Splits adjoints along a few directions: one scalar for each direction, and one plane of memory for each direction of
a gradient.

    %g: f64d2 = load @y.grad[%i]             %g: f64 = load @y.grad.0[%i]
    %r: f64d2 = cast %c                      %h: f64 = load @y.grad.1[%i]
    %d: f64d2 = mul %g, %r            ->     %d: f64 = mul %g, %c
    atomic add @x.grad[%i], %d               %e: f64 = mul %h, %c
                                             atomic add @x.grad.0[%i], %d
                                             atomic add @x.grad.1[%i], %e

Many directions fill a vector register on their own; a few do so only together with several iterations of a parallel
loop. So a few are split into scalars, and vectorisation sees only ordinary scalars. The buffers say which gradients
have planes (`clone_of`); temporaries of the code get one for each direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.query import walk
from tinote.ir.types import Scalar, Stack, Tangents, Tensor, Type, element_type, with_element


def split_directions(fn: ir.Function) -> ir.Function:
    """`fn` with one scalar for each direction."""
    if not any(isinstance(op, ir.Load | ir.Store | ir.Atomic) and op.buffer.planes for op in walk(fn.region)):
        return fn
    return ir.Function(fn.name, _Splitter().region(fn.region), fn.loc)


def _count(t: Type) -> int:
    """How many directions a value has."""
    found = element_type(t)
    return found.count if isinstance(found, Tangents) else 1


def _single(t: Type) -> Type:
    """The type of a value along one direction."""
    found = element_type(t)
    if not isinstance(found, Tangents):
        return t
    if isinstance(t, Stack):
        return Stack(with_element(t.content, found.scalar))
    assert isinstance(t, Scalar | Tensor)
    return with_element(t, found.scalar)


class _Splitter:
    """Splits directions.

    `parts`: the scalars of a variable, one for each direction; a single one if it is the same along all.
    """

    def __init__(self) -> None:
        self.parts: dict[ir.Var, list[ir.Atom]] = {}
        self.temporaries: dict[ir.Buffer, tuple[ir.Buffer, ...]] = {}

    def region(self, region: ir.Region) -> ir.Region:
        params = self.bound(region.params)
        body = [new for op in region.body for new in self.op(op)]
        return ir.Region(params, tuple(body), self.all(region.yields))

    def bound(self, variables: Sequence[ir.Var]) -> tuple[ir.Var, ...]:
        """The variables that replace these."""
        found: list[ir.Var] = []
        for v in variables:
            count = _count(v.type)
            if count == 1:
                found.append(v)
                continue
            made = [ir.Var(_single(v.type), v.name) for _ in range(count)]
            self.parts[v] = [*made]
            found += made
        return tuple(found)

    def numbers(self, atom: ir.Atom) -> list[ir.Atom]:
        """An atom along each direction; a single one if it is the same along all."""
        if isinstance(atom, ir.Var):
            return self.parts.get(atom) or [atom]
        if isinstance(atom.type, Tangents):
            return [ir.Lit(atom.value, atom.type.scalar)] * atom.type.count
        return [atom]

    def along(self, atom: ir.Atom, direction: int) -> ir.Atom:
        """An atom along one direction."""
        found = self.numbers(atom)
        return found[direction] if len(found) > 1 else found[0]

    def all(self, atoms: Sequence[ir.Atom]) -> tuple[ir.Atom, ...]:
        """Atoms along all directions, one after the other."""
        return tuple([number for atom in atoms for number in self.numbers(atom)])

    def op(self, op: ir.Op) -> Sequence[ir.Op]:
        if isinstance(op, ir.Prim):
            return self.prim(op)
        if isinstance(op, ir.Load | ir.Store | ir.Atomic):
            return self.access(op)
        if isinstance(op, ir.NewStack | ir.Push | ir.Pop):
            count = max([_count(a.type) for a in (*op.args, *op.outs)], default=1)
            return self.repeated(op, count)
        args = self.all(op.args)
        regions = tuple(map(self.region, op.regions))
        return (op.rebuilt(args, regions, self.bound(op.outs)),)

    def repeated(self, op: ir.Op, count: int) -> list[ir.Op]:
        """An operation for each direction."""
        if count == 1:
            return [op.rebuilt(self.all(op.args), op.regions)]
        outs = [self.bound((v,)) for v in op.outs]
        return [
            op.rebuilt(tuple([self.along(a, d) for a in op.args]), op.regions, tuple([out[d] for out in outs]))
            for d in range(count)
        ]

    def prim(self, op: ir.Prim) -> Sequence[ir.Op]:
        if op.prim is p.join_tangents:
            self.parts[op.out] = [self.along(a, 0) for a in op.args]
            return ()
        if op.prim is p.tangent_at:
            joined, direction = op.args
            assert isinstance(direction, ir.Lit)
            self.parts[op.out] = [self.along(joined, int(direction.value))]
            return ()
        count = _count(op.out.type)
        if op.prim is p.cast and count > 1 and all(_count(a.type) == 1 for a in op.args):
            (given,) = self.all(op.args)
            single = _single(op.out.type)
            if given.type == single:
                self.parts[op.out] = [given] * count
                return ()
            out = ir.Var(single, op.out.name)
            self.parts[op.out] = [out] * count
            return (op.rebuilt((given,), (), (out,)),)
        return self.repeated(op, count)

    def access(self, op: ir.Load | ir.Store | ir.Atomic) -> Sequence[ir.Op]:
        planes = self.planes(op.buffer)
        found = self.repeated(op, max(len(planes), 1))
        for new, plane in zip(found, planes, strict=False):
            assert isinstance(new, ir.MemoryOp)
            new.buffer = plane
        return found

    def planes(self, buffer: ir.Buffer) -> tuple[ir.Buffer, ...]:
        if buffer.planes or not isinstance(buffer.dtype, Tangents):
            return buffer.planes
        if buffer not in self.temporaries:
            self.temporaries[buffer] = tuple(
                [
                    ir.Buffer(f"{buffer.name}.{d}", buffer.dtype.scalar, buffer.shape, buffer.element, buffer.kind)
                    for d in range(buffer.dtype.count)
                ]
            )
        return self.temporaries[buffer]
