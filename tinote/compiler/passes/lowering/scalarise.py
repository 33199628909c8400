"""Scalarisation: splits vectors and matrices into their components.

    %p: f32[2] = load @x[%i]                        %p_0: f32 = load @x[%i][0i32]
    %q: f32[2] = mul %p, %s                         %p_1: f32 = load @x[%i][1i32]
    store @y[%i], %q                          ->    %q_0: f32 = mul %p_0, %s
                                                    %q_1: f32 = mul %p_1, %s
                                                    store @y[%i][0i32], %q_0
                                                    store @y[%i][1i32], %q_1

A tensor that is indexed at run time stays a tensor, and so do all tensors of its web: those that flow into it or out of
it as carried, yielded, selected or inserted values or on a stack. `pack` builds it from components, `extract` reads
them. A function that returns a tensor returns its components in row-major order; printed tensors become texts and
components.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tinote.errors import KernelTypeError
from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.messages import Hole, join_message, merged, nested_parts, split_message
from tinote.ir.query import walk
from tinote.ir.rewrite import Rewriting, remade, remade_region, same
from tinote.ir.types import Tensor, Type, indices_of


def scalarise(fn: ir.Function) -> ir.Function:
    """`fn` in the SCALAR form."""
    if not any(isinstance(v.type, Tensor) for v in _variables(fn.region)) and not any(
        isinstance(op, ir.Store | ir.Atomic) and isinstance(op.value.type, Tensor) for op in walk(fn.region)
    ):
        return fn
    return fn.with_region(_Scalariser(_Webs(fn.region)).region(fn.region))


def _variables(region: ir.Region) -> Iterator[ir.Var]:
    yield from region.params
    for op in region.body:
        yield from op.outs
        for inner in op.regions:
            yield from _variables(inner)


class _Webs:
    """The webs of tensor variables: sets of variables between which tensors flow.

    A web stays if one of its tensors has a run-time index.
    """

    def __init__(self, region: ir.Region) -> None:
        self.parent: dict[ir.Var, ir.Var] = {}
        self.indexed: set[ir.Var] = set()
        for op in walk(region):
            self.add(op)
        self.kept = {self.root(v) for v in self.indexed}

    def root(self, v: ir.Var) -> ir.Var:
        parent = self.parent
        while v in parent:
            v = parent[v]
        return v

    def join(self, a: ir.Atom, b: ir.Atom) -> None:
        if type(a) is ir.Var and type(b) is ir.Var and isinstance(a.type, Tensor):
            a, b = self.root(a), self.root(b)
            if a is not b:
                self.parent[a] = b

    def joined(self, *groups: Sequence[ir.Atom]) -> None:
        for first, *others in zip(*groups, strict=True):
            for other in others:
                self.join(first, other)

    def add(self, op: ir.Op) -> None:
        if isinstance(op, ir.Prim):
            prim = op.prim
            if prim is p.insert:
                self.join(op.args[0], op.out)
            if prim is p.select and not isinstance(op.args[0].type, Tensor):
                self.join(op.args[1], op.out)
                self.join(op.args[2], op.out)
            if prim is p.extract or prim is p.insert:
                tensor = op.args[0]
                indices = op.args[1:] if prim is p.extract else op.args[1:-1]
                if isinstance(tensor, ir.Var) and any(type(a) is ir.Var for a in indices):
                    self.indexed.add(tensor)
        elif isinstance(op, ir.For):
            self.joined(op.carried, op.initial, op.body.yields, op.outs)
        elif isinstance(op, ir.While):
            self.joined(op.body.params, op.condition.params, op.initial, op.body.yields, op.outs)
        elif isinstance(op, ir.If):
            self.joined(op.outs, op.then.yields, op.orelse.yields)
        elif isinstance(op, CustomVJP):
            self.joined(op.outs, op.results, op.adjoint.params)
            self.joined(op.inputs, op.adjoint.yields)
        elif isinstance(op, ir.Push | ir.Pop):
            # A stack holds whole tensors, so they are pushed and popped as one.
            moved = op.args[1] if isinstance(op, ir.Push) else op.out
            if isinstance(moved, ir.Var) and isinstance(moved.type, Tensor):
                self.indexed.add(moved)

    def stays(self, v: ir.Var) -> bool:
        """Whether `v` stays a tensor."""
        return self.root(v) in self.kept


class _Scalariser(Rewriting):
    def __init__(self, webs: _Webs) -> None:
        super().__init__()
        self.webs = webs
        #: the components of each tensor that was split, in row-major order
        self.parts: dict[ir.Var, tuple[ir.Atom, ...]] = {}

    def apart(self, v: ir.Atom) -> bool:
        """Whether `v` is a tensor that is split."""
        return isinstance(v.type, Tensor) and isinstance(v, ir.Var) and not self.webs.stays(v)

    # from tensors to components and back

    def fresh(self, v: ir.Var) -> tuple[ir.Var, ...]:
        """The variables that replace `v` at its definition."""
        if not self.apart(v):
            return (v,)
        assert isinstance(v.type, Tensor)
        dtype = v.type.dtype
        found = tuple([ir.Var(dtype, _part_name(v, position)) for position in indices_of(v.type.shape)])
        self.parts[v] = found
        return found

    def all_fresh(self, variables: tuple[ir.Var, ...]) -> tuple[ir.Var, ...]:
        return tuple([q for v in variables for q in self.fresh(v)])

    def components(self, atom: ir.Atom, near: ir.Op) -> tuple[ir.Atom, ...]:
        """The components of a tensor; of one that stays a tensor, by `extract` before `near`."""
        atom = self.get(atom)
        assert isinstance(atom, ir.Var) and isinstance(atom.type, Tensor)
        if atom in self.parts:
            return self.parts[atom]
        return tuple(
            [
                self.apply(p.extract, atom.type.dtype, near, atom, *ir.literal_indices(i), name=_part_name(atom, i))
                for i in indices_of(atom.type.shape)
            ]
        )

    def flat(self, atoms: tuple[ir.Atom, ...]) -> tuple[ir.Atom, ...]:
        """Operands, each split tensor replaced by its components."""
        found: list[ir.Atom] = []
        for a in atoms:
            if type(a) is ir.Var and a in self.parts:
                found += self.parts[a]
            else:
                found.append(self.get(a))
        return tuple(found)

    def whole(self, atom: ir.Atom, near: ir.Op) -> ir.Atom:
        """`atom` as one value: packed if it was split."""
        if type(atom) is ir.Var and atom in self.parts:
            return self.apply(p.pack, atom.type, near, *self.parts[atom], name=atom.name)
        return self.get(atom)

    def bind(self, op: ir.Op, parts: Sequence[ir.Atom]) -> None:
        """Define the single result of `op` by `parts`."""
        if self.apart(op.out):
            self.parts[op.out] = tuple(parts)
        else:
            self.out.append(ir.Prim(p.pack, tuple(parts), (op.out,), op.loc, op.origin))

    # regions and operations

    def region(self, region: ir.Region) -> ir.Region:
        params = self.all_fresh(region.params)
        saved, self.out = self.out, []
        for op in region.body:
            self.op(op)
        yields = self.flat(region.yields)
        body, self.out = self.out, saved
        return remade_region(region, body, yields, params)

    def op(self, op: ir.Op) -> None:
        if isinstance(op, ir.Prim):
            self.prim(op)
        elif isinstance(op, ir.Load) and isinstance(op.out.type, Tensor):
            self.load(op)
        elif isinstance(op, ir.Store) and isinstance(op.value.type, Tensor):
            self.store(op)
        elif isinstance(op, ir.Atomic) and isinstance(op.value.type, Tensor):
            self.atomic(op)
        elif isinstance(op, ir.Print):
            self.print(op)
        elif isinstance(op, ir.Check) and any(isinstance(a.type, Tensor) for a in op.args):
            self.check(op)
        else:
            args = self.flat(op.args)
            regions = tuple([self.region(r) for r in op.regions])
            self.out.append(remade(op, args, regions, self.all_fresh(op.outs)))

    def prim(self, op: ir.Prim) -> None:
        prim = op.prim
        if prim is p.extract:
            tensor = op.args[0]
            if type(tensor) is ir.Var and tensor in self.parts:
                self.env[op.out] = self.parts[tensor][_position(tensor.type, op.args[1:], op)]
                return
        elif prim is p.insert and self.apart(op.out):
            parts = list(self.components(op.args[0], op))
            parts[_position(op.out.type, op.args[1:-1], op)] = self.get(op.args[-1])
            self.parts[op.out] = tuple(parts)
            return
        elif prim is p.pack and self.apart(op.out):
            self.parts[op.out] = tuple([self.get(a) for a in op.args])
            return
        elif isinstance(op.out.type, Tensor) and prim.elementwise:
            if prim is not p.select or isinstance(op.args[0].type, Tensor) or self.apart(op.out):
                self.elementwise(op)
                return
        args = tuple([self.whole(a, op) if isinstance(a.type, Tensor) else self.get(a) for a in op.args])
        self.out.append(remade(op, args))

    def elementwise(self, op: ir.Prim) -> None:
        out = op.out
        assert isinstance(out.type, Tensor)
        count = out.type.count
        columns = [self.components(a, op) if isinstance(a.type, Tensor) else (self.get(a),) * count for a in op.args]
        parts: list[ir.Atom] = []
        for position, args in zip(indices_of(out.type.shape), zip(*columns, strict=True), strict=True):
            parts.append(self.apply(op.prim, out.type.dtype, op, *args, name=_part_name(out, position)))
        self.bind(op, parts)

    def load(self, op: ir.Load) -> None:
        out, index = op.out, tuple([self.get(a) for a in op.index])
        assert isinstance(out.type, Tensor)
        parts: list[ir.Atom] = []
        for position in indices_of(out.type.shape):
            part = ir.Var(out.type.dtype, _part_name(out, position))
            self.out.append(ir.Load(op.buffer, (*index, *ir.literal_indices(position)), (part,), op.loc, op.origin))
            parts.append(part)
        self.bind(op, parts)

    def store(self, op: ir.Store) -> None:
        index = tuple([self.get(a) for a in op.index])
        assert isinstance(op.value.type, Tensor)
        positions = indices_of(op.value.type.shape)
        for position, value in zip(positions, self.components(op.value, op), strict=True):
            self.out.append(ir.Store(op.buffer, (*index, *ir.literal_indices(position)), value, op.loc, op.origin))

    def atomic(self, op: ir.Atomic) -> None:
        index = tuple([self.get(a) for a in op.index])
        assert isinstance(op.value.type, Tensor)
        old: list[ir.Atom] = []
        for position, value in zip(indices_of(op.value.type.shape), self.components(op.value, op), strict=True):
            outs = tuple([ir.Var(op.buffer.dtype, _part_name(v, position)) for v in op.outs])
            where = (*index, *ir.literal_indices(position))
            self.out.append(ir.Atomic(op.prim, op.buffer, where, value, outs, op.loc, op.origin, op.plain))
            old += outs
        if op.outs:
            self.bind(op, old)

    def print(self, op: ir.Print) -> None:
        parts: list[str | None] = []
        args: list[ir.Atom] = []
        specs: list[str] = []
        rest = iter(zip(op.args, op.specs, strict=True))
        for part in op.parts:
            if part is not None:
                parts.append(part)
                continue
            arg, spec = next(rest)
            if isinstance(arg.type, Tensor):
                parts += nested_parts(arg.type.shape)
                args += self.components(arg, op)
            else:
                parts.append(None)
                args.append(self.get(arg))
            specs += [spec] * (len(args) - len(specs))
        if same(args, op.args):
            self.out.append(op)
        else:
            self.out.append(ir.Print(tuple(merged(parts)), tuple(args), op.loc, tuple(specs)))

    def check(self, op: ir.Check) -> None:
        args: list[ir.Atom] = [self.get(op.args[0])]
        parts: list[str | Hole] = []
        rest = iter(op.args[1:])
        for part in split_message(op.text):
            if isinstance(part, str):
                parts.append(part)
                continue
            arg = next(rest)
            if isinstance(arg.type, Tensor):
                args += self.components(arg, op)
                parts += [part if piece is None else piece for piece in nested_parts(arg.type.shape)]
            else:
                args.append(self.get(arg))
                parts.append(part)
        self.out.append(ir.Check(op.kind, tuple(args), join_message(parts), op.axis, op.loc))


def _part_name(v: ir.Var, position: tuple[int, ...]) -> str:
    return f"{v.name}_{'_'.join(map(str, position))}" if v.name else ""


def _position(t: Type, indices: tuple[ir.Atom, ...], near: ir.Op) -> int:
    """The row-major position of literal indices. Raises a located error if one is out of range."""
    assert isinstance(t, Tensor)
    position = 0
    for index, extent in zip(indices, t.shape, strict=True):
        assert isinstance(index, ir.Lit)
        if not 0 <= index.value < extent:
            raise KernelTypeError(f"index {index.value} is outside of a tensor of shape {t.shape}", near.loc)
        position = position * extent + int(index.value)
    return position
