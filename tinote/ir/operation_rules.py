"""What operations ask of their operands and results, form by form; `verify.py` adds scopes and regions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tinote.ir import nodes as ir
from tinote.ir import primitives as p
from tinote.ir.buffers import root_of
from tinote.ir.forms import Form, InvalidIR
from tinote.ir.lanes import Broadcast, LoadTile, MaskedLoad, MaskedStore, Ramp, Reduce, StoreTile
from tinote.ir.messages import Hole, split_message
from tinote.ir.primitives import Defaults, Primitive
from tinote.ir.types import (
    Lanes,
    Ref,
    Scalar,
    Stack,
    Tangents,
    Tensor,
    Tile,
    Type,
    element_type,
    i32,
    i64,
    shape_of,
    u1,
    u32,
)

#: The types of what is no value: memory that operations change.
CELLS = frozenset({Ref, Stack, Tile})
_DEFAULTS = Defaults()


class OperationRules:
    """The rules of single operations in one form. `op`: the operation that is looked at; `private`: the private copies
    of its task.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.op: ir.Op | None = None
        self.private: set[ir.Buffer] = set()
        self._fine: set[Type] = set()

    def fail(self, message: str) -> InvalidIR:
        return InvalidIR(message, self.op)

    def require(self, condition: bool, message: str, *values: object) -> None:
        """Fail unless `condition`. `message` is a format string: its values are only shown when they are needed."""
        if not condition:
            raise self.fail(message.format(*values))

    def type(self, t: Type) -> None:
        if t in self._fine:
            return
        dtype = element_type(t)
        self.require(self.form == Form.FIRST or dtype.bits > 0, "weak type {!r} after type inference", t)
        if isinstance(t, Tensor):
            fine = len(t.shape) > 0 and all(n > 0 for n in t.shape)
            self.require(fine, "a tensor needs positive dimensions, not {!r}", t)
            self.require(self.form < Form.LOWERED, "tensor value of type {!r} after lowering of arrays", t)
        if isinstance(t, Lanes):
            fine = t.lanes > 1 and t.lanes & (t.lanes - 1) == 0
            self.require(fine, "lanes are a power of two, not {!r}", t)
            self.require(self.form == Form.LOWERED, "lanes of type {!r} before lowering of accesses", t)
        self._fine.add(t)

    def literal(self, atom: ir.Lit) -> None:
        t, value = atom.type, atom.value
        if not t.bits:
            self.require(self.form == Form.FIRST, "weak literal {!r} after type inference", atom)
        if t.kind == "f":
            self.require(isinstance(value, float), "literal {!r} of a float type must be a float", atom)
            self.require(not t.bits or value != value or t.round(value) == value, "{!r} does not fit its type", atom)
        else:
            self.require(isinstance(value, int), "literal {!r} must be an integer", atom)
            self.require(not t.bits or t.lowest <= value <= t.highest, "{!r} does not fit its type", atom)

    # types of operands

    def value(self, atom: ir.Atom, what: str) -> None:
        self.require(type(atom.type) not in CELLS, "{} cannot be a cell or stack: {!r}", what, atom)

    def same(self, atom: ir.Atom, t: Type, what: str) -> None:
        """`atom` may go where a value of type `t` is wanted: exactly after type inference, by shape before."""
        self.value(atom, what)
        if self.form == Form.FIRST:
            fine = shape_of(atom.type) == shape_of(t)
        else:
            fine = atom.type == t
        self.require(fine, "{} must be {!r}, not {!r}", what, t, atom)

    def scalar(self, atom: ir.Atom, what: str) -> Scalar:
        t = atom.type
        if not isinstance(t, Scalar):
            raise self.fail(f"{what} must be a scalar, not {atom!r}")
        return t

    def truth(self, atom: ir.Atom, what: str) -> None:
        t = self.scalar(atom, what)
        self.require(self.form == Form.FIRST or t is u1, "{} must be u1, not {!r}", what, atom)

    def integer(self, atom: ir.Atom, what: str) -> None:
        """An index: any integer before type inference, i32 or i64 after."""
        t = self.scalar(atom, what)
        fine = t.kind in "iu" if self.form == Form.FIRST else t is i32 or t is i64
        self.require(fine, "{} must be an integer (i32 or i64 once typed), not {!r}", what, atom)

    def count(self, things: Sequence[object], wanted: int, what: str) -> None:
        self.require(len(things) == wanted, "{}: {} instead of {}", what, len(things), wanted)

    def matched(self, atoms: Sequence[ir.Atom], variables: Sequence[ir.Var], what: str) -> None:
        """One atom for each variable, of its type."""
        self.count(atoms, len(variables), what)
        for a, v in zip(atoms, variables, strict=True):
            self.same(a, v.type, what)

    # operations

    def operation(self, op: ir.Op) -> None:
        """Check an operation without regions."""
        if isinstance(op, ir.Prim):
            self.prim(op)
        elif isinstance(op, ir.MemoryOp):
            self.memory(op)
        elif isinstance(op, ir.Local | ir.Get | ir.Set):
            self.cell(op)
        elif isinstance(op, ir.NewStack | ir.Push | ir.Pop):
            self.stack(op)
        elif isinstance(op, Broadcast | Ramp | Reduce):
            self.lanes(op)
        elif isinstance(op, ir.Check):
            self.check(op)
        elif isinstance(op, ir.Print):
            self.print(op)
        else:
            raise self.fail(f"unknown operation {type(op).__name__}")

    def prim(self, op: ir.Prim) -> None:
        prim, args = op.prim, op.args
        self.require(p.PRIMITIVES.get(prim.name) is prim, "unknown primitive {}", prim.name)
        self.count(op.outs, 1, "outs")
        if prim.arity is not None:
            self.count(args, prim.arity, "operands")
        out = op.out.type
        if type(out) in CELLS:
            raise self.fail("a primitive cannot give a cell or stack")
        if not prim.elementwise:
            self.tensor_prim(op)
            return
        types = tuple([a.type for a in args])
        if prim.rule is None:
            self.require(
                shape_of(types[0]) == shape_of(out), "{} keeps the shape: {!r} to {!r}", prim.name, args[0], out
            )
            same_bits = element_type(types[0]).bits == element_type(out).bits
            self.require(prim is not p.bitcast or same_bits, "bitcast keeps the width: {!r} to {!r}", args[0], out)
        else:
            try:
                expected = _result_of(prim, types)
            except TypeError as error:
                raise self.fail(f"{prim.name}: {error}") from error
            if self.form == Form.FIRST:
                # Which width a weak operand takes depends on the launch's defaults; its shape and its sort do not.
                same = shape_of(expected) == shape_of(out) and _sort(expected) == _sort(out)
            else:
                same = expected == out
                for position, (t, wanted) in enumerate(zip(types, _operands_of(prim, types, out), strict=True)):
                    if element_type(t) is not wanted:
                        raise self.fail(f"operand {position} must be of {wanted!r}, not {args[position]!r}")
            self.require(same, "{} of these operands gives {!r}, not {!r}", prim.name, expected, out)
        if self.form >= Form.SCALAR and prim is not p.select:
            self.require(Tensor not in map(type, (out, *types)), "{} on tensors after scalarisation", prim.name)

    def tensor_prim(self, op: ir.Prim) -> None:
        prim, args, out = op.prim, op.args, op.out.type
        if prim is p.random_bits:
            self.require(element_type(out) is u32, "random_bits gives u32, not {!r}", out)
            shape = p.broadcast_shape(tuple([a.type for a in args]))
            self.require(shape_of(out) == shape, "random_bits of these operands does not give {!r}", out)
            for position, a in enumerate(args):
                wanted = p.operand_type(prim, (), position, out, _DEFAULTS)
                each = Lanes(wanted, a.type.lanes) if isinstance(a.type, Lanes) else wanted
                self.same(a, each, "a counter of random_bits")
        elif prim is p.join_tangents:
            if not isinstance(out, Tangents):
                raise self.fail(f"join_tangents makes tangents, not {out!r}")
            self.count(args, out.count, "tangents")
            for a in args:
                self.same(a, out.scalar, "a tangent")
        elif prim is p.tangent_at:
            joined, position = args
            if not isinstance(joined.type, Tangents) or not isinstance(position, ir.Lit):
                raise self.fail("tangent_at needs tangents and a literal direction")
            self.require(0 <= position.value < joined.type.count, "{!r} has no direction {!r}", joined, position)
            self.require(out is joined.type.scalar, "tangent_at gives {!r}, not {!r}", joined.type.scalar, out)
        elif prim is p.pack:
            if not isinstance(out, Tensor):
                raise self.fail(f"pack makes a tensor, not {out!r}")
            self.count(args, out.count, "components of pack")
            for a in args:
                self.same(a, out.dtype, "a component")
        else:
            tensor = args[0].type if args else None
            if isinstance(tensor, Lanes) and prim is p.extract:
                self.count(args, 2, "operands of extract")
                self.integer(args[1], "a lane")
                self.require(out is tensor.dtype, "extract gives {!r}, not {!r}", tensor.dtype, out)
                return
            if not isinstance(tensor, Tensor):
                raise self.fail(f"{prim.name} needs a tensor")
            inserts = prim is p.insert
            indices = args[1:-1] if inserts else args[1:]
            self.count(indices, len(tensor.shape), "indices")
            for a in indices:
                self.integer(a, "an index")
            if inserts:
                self.same(args[-1], tensor.dtype, "the inserted value")
            result = tensor if inserts else tensor.dtype
            self.require(out == result, "{} gives {!r}, not {!r}", prim.name, result, out)

    def lanes(self, op: Broadcast | Ramp | Reduce) -> None:
        """An operation between scalars and lanes."""
        self.count(op.outs, 1, "outs")
        wide = op.args[0].type if isinstance(op, Reduce) else op.out.type
        if not isinstance(wide, Lanes):
            raise self.fail(f"lanes are wanted, not {wide!r}")
        if isinstance(op, Reduce):
            self.count(op.args, 1, "operands")
            self.require(op.prim in p.ATOMICS, "lanes are not combined by {}", op.prim.name)
            self.same(op.out, wide.dtype, "what lanes are combined into")
            return
        self.count(op.args, 2 if isinstance(op, Ramp) else 1, "operands")
        self.require(isinstance(op, Broadcast) or wide.dtype.kind in "iu", "a ramp of {!r}", wide)
        for a in op.args:
            self.same(a, wide.dtype, "what lanes are made of")

    def memory(self, op: ir.MemoryOp) -> None:
        buffer = op.buffer
        if isinstance(op, ir.Extent):
            self.require(0 <= op.axis < buffer.rank, "{!r} has no axis {}", buffer, op.axis)
            self.require(len(op.outs) == 1 and op.out.type is i32, "an extent is one i32")
            return
        root = root_of(buffer)
        self.require(
            root.kind is not ir.BufferKind.PRIVATE or root in self.private, "{!r} is not private to the task", root
        )
        between = self.form == Form.LOWERED and isinstance(op, ir.Load) and not op.index and buffer.rank == 0
        if buffer.flat is not None:
            self.require(self.form == Form.LOWERED, "a flat view before lowering of accesses")
            self.count(op.index, 1, "byte offsets")
            element: Type = buffer.dtype
            if isinstance(op, LoadTile | StoreTile):
                for a in op.args[:3]:
                    self.require(a.type is i64, "where rows are must be i64, not {!r}", a)
                element = Tile(self.masked(op, buffer.dtype))
            elif isinstance(op, MaskedLoad | MaskedStore):
                element = self.masked(op, element)
            else:
                self.require(op.index[0].type is i64, "a byte offset must be i64, not {!r}", op.index[0])
        else:
            self.require(self.form < Form.LOWERED or between, "{} must be reached through a flat view", buffer.name)
            ranks = (buffer.rank, buffer.rank + len(buffer.element))
            self.require(len(op.index) in ranks, "{!r} takes {} indices, not {}", buffer, ranks[0], len(op.index))
            for a in op.index:
                self.integer(a, "an index")
            element = buffer.loaded_type(len(op.index))
        self.require(
            self.form < Form.SCALAR or isinstance(element, Scalar | Lanes | Tile),
            "{} must be moved by components",
            buffer.name,
        )
        if isinstance(op, ir.Atomic):
            self.require(op.prim in p.ATOMICS, "{} is not an atomic operation", op.prim.name)
            bits = op.prim in (p.and_, p.or_, p.xor)
            self.require(not (bits and buffer.dtype.kind == "f"), "{} on {!r}", op.prim.name, buffer.dtype)
        if isinstance(op, StoreTile):
            self.require(op.value.type == element, "a written tile must be {!r}, not {!r}", element, op.value)
        elif isinstance(op, ir.Store | ir.Atomic):
            self.same(op.value, element, "a written value")
        wanted = 1 if isinstance(op, ir.Load) else 0
        self.require(
            len(op.outs) == wanted or (isinstance(op, ir.Atomic) and len(op.outs) == 1), "wrong number of outs"
        )
        for out in op.outs:
            self.require(out.type == element, "{} gives {!r}, not {!r}", buffer.name, element, out)

    def masked(self, op: MaskedLoad | MaskedStore | LoadTile | StoreTile, dtype: Scalar) -> Lanes:
        """What an access by lanes moves."""
        mask, offset = op.mask.type, op.index[0].type
        if not isinstance(mask, Lanes) or mask.dtype is not u1:
            raise self.fail(f"a mask must be lanes of u1, not {op.mask!r}")
        self.require(offset in (i64, Lanes(i64, mask.lanes)), "a byte offset must be i64, not {!r}", op.index[0])
        return Lanes(dtype, mask.lanes)

    def mask(self, region: ir.Region) -> None:
        """The parameters of a parallel loop: its index, and a mask if it runs in lanes."""
        self.require(1 <= len(region.params) <= 2, "a parallel loop carries nothing")
        for mask in region.params[1:]:
            fine = isinstance(mask.type, Lanes) and mask.type.dtype is u1
            self.require(fine, "a parallel loop carries nothing: {!r}", mask)

    def bounds(self, lo: ir.Atom, hi: ir.Atom, index: ir.Var) -> None:
        for a in (lo, hi, index):
            t = self.scalar(a, "a loop bound or index")
            self.require(t.kind in "iu", "a loop bound or index must be an integer, not {!r}", a)
            fine = self.form == Form.FIRST or t is index.type
            self.require(fine, "bounds and index of a loop must have one type: {!r}, {!r}", a, index)

    def cell(self, op: ir.Op) -> None:
        allowed = self.form < Form.PROMOTED or self.form >= Form.TASKS
        self.require(allowed, "a local cell after promotion of locals")
        if isinstance(op, ir.Local):
            self.count(op.outs, 1, "outs")
            ref = op.out.type
            if isinstance(ref, Tile):
                fine = len(op.args) == 1 and isinstance(op.args[0], ir.Lit) and op.args[0].type is i64
                self.require(fine, "what lanes have of their own has a literal size, an i64")
                return
            if not isinstance(ref, Ref):
                raise self.fail(f"a local must be bound to a cell, not {op.out!r}")
            self.require(len(op.args) <= 1, "a local has at most one initial value")
            for a in op.args:
                self.same(a, ref.content, "an initial value")
            return
        ref = op.args[0].type if op.args else None
        if isinstance(ref, Tile):
            self.count(op.args, 2 if isinstance(op, ir.Get) else 3, "operands")
            places = (i64, Lanes(i64, ref.content.lanes))
            self.require(op.args[1].type in places, "a place in a row must be i64, not {!r}", op.args[1])
            for a in (*op.outs, *op.args[2:]):
                self.same(a, ref.content, "what a tile holds")
            return
        if not isinstance(ref, Ref):
            raise self.fail("the first operand must be a cell")
        indices = op.args[1:] if isinstance(op, ir.Get) else op.args[1:-1]
        self.require(len(indices) in (0, len(shape_of(ref.content))), "{} indices into {!r}", len(indices), ref)
        for a in indices:
            self.integer(a, "an index")
        content = element_type(ref.content) if indices else ref.content
        if isinstance(op, ir.Get):
            self.count(op.outs, 1, "outs")
            self.require(op.out.type == content, "the cell holds {!r}, not {!r}", content, op.out)
        else:
            self.require(len(op.args) >= 2, "nothing to set")
            self.count(op.outs, 0, "outs")
            self.same(op.args[-1], content, "a value for a cell")

    def stack(self, op: ir.Op) -> None:
        if isinstance(op, ir.NewStack):
            fine = len(op.outs) == 1 and isinstance(op.out.type, Stack)
            self.require(fine, "a stack must be bound to a variable of a stack type")
            self.require(len(op.args) <= 1, "a stack has at most one capacity")
            for a in op.args:
                self.require(a.type is i64, "a capacity must be i64, not {!r}", a)
            return
        stack = op.args[0].type if op.args else None
        if not isinstance(stack, Stack):
            raise self.fail("the first operand must be a stack")
        pushes = isinstance(op, ir.Push)
        self.count(op.args, 2 if pushes else 1, "operands")
        self.count(op.outs, 0 if pushes else 1, "outs")
        moved = op.args[1] if pushes else op.out
        self.require(moved.type == stack.content, "the stack holds {!r}, not {!r}", stack.content, moved)

    def check(self, op: ir.Check) -> None:
        self.count(op.outs, 0, "outs")
        self.require(len(op.args) >= 1, "a check needs its condition")
        condition = op.args[0].type
        if not (isinstance(condition, Lanes) and condition.dtype is u1):
            self.truth(op.args[0], "the condition of a check")
        if op.kind is ir.FaultKind.BOUNDS:
            self.require(len(op.args) in (3, 4), "operands of a bounds check: {} instead of 3 or 4", len(op.args))
            for a in op.args[1:]:
                if isinstance(a.type, Lanes):
                    self.require(a.type.dtype in (i32, i64), "an index or extent must be i32 or i64, not {!r}", a)
                else:
                    self.integer(a, "an index or extent")
        elif op.kind is ir.FaultKind.ASSERT:
            holes = [part for part in split_message(op.text) if isinstance(part, Hole)]
            self.count(op.args, 1 + len(holes), "operands of an assertion")

    def print(self, op: ir.Print) -> None:
        self.count(op.outs, 0, "outs")
        self.count(op.args, sum(part is None for part in op.parts), "printed values")
        self.count(op.specs, len(op.args), "formats")
        apart = self.form < Form.SCALAR or not any(isinstance(a.type, Tensor) for a in op.args)
        self.require(apart, "a tensor is printed after scalarisation")

    def private_copy(self, private: ir.Private) -> None:
        copy, target = private.copy, private.target
        self.require(copy.kind is ir.BufferKind.PRIVATE, "{!r}: the copy is not private", private)
        self.require(target.kind is not ir.BufferKind.PRIVATE, "{!r}: the target is itself private", private)
        shape = copy.shape[: private.rank] if self.form == Form.LOWERED else copy.shape
        same = len(shape) == 1 if private.is_flat else shape == target.shape
        same = same and (copy.dtype, copy.element) == (target.dtype, target.element)
        same = same and copy.rank - private.rank in (0, 1)
        self.require(same and None not in copy.shape, "{!r}: the shapes must be known and the same", private)
        self.require(private.prim in p.ATOMICS, "{!r}: {} is not an atomic operation", private, private.prim.name)


@cache
def _result_of(prim: Primitive, types: tuple[Type, ...]) -> Type:
    """The type of the result of a primitive that has a rule."""
    assert prim.rule is not None
    return prim.rule(types, _DEFAULTS)


@cache
def _operands_of(prim: Primitive, types: tuple[Type, ...], out: Type) -> tuple[Scalar, ...]:
    """The types that its operands must have."""
    return tuple([p.operand_type(prim, types, position, out, _DEFAULTS) for position in range(len(types))])


def _sort(t: Type) -> str:
    """Whether elements are floats, integers or truth values."""
    kind = element_type(t).kind
    return "i" if kind == "u" else kind
