"""The emitter: what every part of the front end, and every built-in, uses to make IR and to report errors.

`Emitter` holds the builder, the scopes and the errors found so far, and turns front-end values into IR. Walking the
syntax tree is the business of its subclasses (`expressions`, `calls`, `loops`, `statements`), which it names here
as methods to be supplied."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, NoReturn

from tinote.compiler.frontend.context import Context, Silenced
from tinote.compiler.frontend.descriptions import describe, describe_type
from tinote.compiler.frontend.scopes import Variable
from tinote.compiler.frontend.values import (
    CellPlace,
    Formatted,
    PartPlace,
    Place,
    Poison,
    StaticTensor,
    StructValue,
    Text,
    Value,
    indices_of,
    is_number,
    literal_indices,
)
from tinote.compiler.protocol import (
    FunctionSource,
    buffer_of,
    constant_of,
)
from tinote.errors import Note
from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Extent, Get, Lit, Load, Op, Prim
from tinote.ir.primitives import Primitive
from tinote.ir.types import (
    Scalar,
    Tensor,
    Type,
    element_type,
    i32,
    i64,
    is_float,
    promote,
    shape_of,
    strengthen,
    u1,
    u64,
    weak_float,
    weak_int,
    with_element,
)

__all__ = ["Emitter"]


class Emitter(Context):
    """Emits the IR of one kernel. See the module's docstring."""

    # supplied by the subclasses

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression; never a `Place`."""
        raise NotImplementedError

    def reference(self, node: ast.expr) -> Any:
        """The value of an expression, or the `Place` it denotes."""
        raise NotImplementedError

    def inline(self, source: FunctionSource, arguments: dict[str, Any]) -> Any:
        """The result of a device function whose parameters stand for `arguments`."""
        raise NotImplementedError

    # values

    def force(self, front: Any) -> Any:
        """What a place holds; anything else itself."""
        if isinstance(front, Place):
            t = front.type
            if isinstance(t, Tensor):
                self.check_size(t.shape, t.dtype)
            return front.load(self.b)
        if isinstance(front, Poison):
            raise Silenced
        if isinstance(front, StructValue):
            return front.map(self.force)
        if isinstance(front, tuple | list) and type(front) in (tuple, list) and not self.is_static(front):
            return type(front)(self.force(item) for item in front)
        return front

    def static_tensor(self, front: Any) -> StaticTensor | None:
        """A vector or matrix known at compile time, or `None`."""
        if isinstance(front, StaticTensor):
            return front
        constant = constant_of(front)
        return None if constant is None else StaticTensor.nested(constant)

    def is_static(self, front: Any) -> bool:
        """Whether a value is wholly known at compile time."""
        if isinstance(front, tuple | list):
            return all(self.is_static(item) for item in front)
        return not isinstance(front, Value | Place | Poison | StructValue)

    def is_value(self, front: Any) -> bool:
        """Whether `as_value` accepts it."""
        if isinstance(front, tuple | list):
            return bool(front) and all(self.is_value(item) for item in front)
        return isinstance(front, Value | Place | StaticTensor) or is_number(front) or constant_of(front) is not None

    def as_value(self, front: Any, like: Scalar | None = None) -> Value:
        """A front-end value as something that exists at run time. `like`: the type that a constant vector is about to
        meet, so that it is not rounded on the way.
        """
        if isinstance(front, Value):
            return front
        if isinstance(front, bool):
            return Value(Lit(front, u1))
        if isinstance(front, int):
            if front.bit_length() > 1023:
                self.error(f"an integer of {front.bit_length():,} bits fits no number type")
            return Value(Lit(front, weak_int))
        if isinstance(front, float):
            return Value(Lit(front, weak_float))
        if isinstance(front, Place | Poison):
            return self.as_value(self.force(front), like)
        tensor = self.static_tensor(front)
        if tensor is not None:
            return self.pack(tensor.components, tensor.shape, like=like)
        if isinstance(front, tuple | list):
            return self.tensor_of(front, like=like)
        buffer = buffer_of(front)
        if buffer is not None:
            index = ", ".join("ijklmnpq"[: buffer.rank]) or "None"
            self.error(f"field `{buffer.name}` is used as a number", f"read one element: `{buffer.name}[{index}]`")
        if isinstance(front, str):
            self.error("text cannot be used as a number")
        self.error(
            f"{describe(front)} cannot be used as a value", "numbers, vectors and matrices have values in a kernel"
        )

    def tensor_of(self, rows: Sequence[Any], dtype: Scalar | None = None, like: Scalar | None = None) -> Value:
        """A vector from numbers, or a matrix from rows."""
        items = [self.force(r) for r in rows]
        if not items:
            self.error("an empty list is no vector")
        if all(
            isinstance(r, tuple | list | StaticTensor)
            or (isinstance(r, Value) and r.shape)
            or constant_of(r) is not None
            for r in items
        ):
            parts = [self.components(r) for r in items]
            if len({len(r) for r in parts}) > 1:
                self.error(f"the rows of a matrix have different lengths: {', '.join(str(len(r)) for r in parts)}")
            return self.pack([c for r in parts for c in r], (len(parts), len(parts[0])), dtype, like)
        return self.pack(items, (len(items),), dtype, like)

    def pack(
        self, components: Sequence[Any], shape: tuple[int, ...], dtype: Scalar | None = None, like: Scalar | None = None
    ) -> Value:
        """A tensor of `shape` from its components in row-major order. Its type is `dtype`, or what the components
        promote to.
        """
        self.check_size(shape, dtype)
        values = [self.as_value(c) for c in components]
        for v in values:
            if v.shape:
                self.error(
                    f"{describe(v)} stands where one number is expected",
                    "every component of a vector or matrix is one number",
                )
        t = dtype or self.promoted([v.dtype for v in values], like)
        self.check_size(shape, t)
        atoms = [self.fitting(v.atom, t) if isinstance(v.atom, Lit) else v.atom for v in values]
        packed = self.b.pack(atoms, Tensor(t, shape))
        if all(atom.type is t for atom in atoms):
            self.packed[packed] = tuple(atoms)
        return Value(packed)

    def check_size(self, shape: tuple[int, ...], dtype: Scalar | None = None) -> None:
        """Refuse a local vector or matrix that is too large for a thread to keep."""
        size = prod(shape) * (1 if dtype is None else dtype.size)
        if size > LARGEST_ARRAY:
            of = f" {dtype}" if dtype is not None else " numbers"
            self.error(
                f"a local array of {' by '.join(f'{n:,}' for n in shape)}{of} is larger than 64 kB",
                "large arrays are fields: `ti.field(…)`",
            )

    def promoted(self, types: Sequence[Scalar], like: Scalar | None = None) -> Scalar:
        """The type in which numbers of these types are held together; wholly constant ones follow `like` where it can
        hold them.
        """
        t = types[0]
        for other in types[1:]:
            t = promote(t, other, self.fp, self.ip)
        if not t.bits and like is not None and (like.kind == "f" or t.kind != "f") and like is not u1:
            return like
        return strengthen(t, self.fp, self.ip)

    def components(self, front: Any) -> list[Any]:
        """The components of a vector or matrix in row-major order; items of a list or tuple."""
        front = self.force(front)
        if isinstance(front, tuple | list):
            return [self.force(item) for item in front]
        tensor = self.static_tensor(front)
        if tensor is not None:
            return list(tensor.components)
        value = self.as_value(front)
        if not value.shape:
            self.error(f"{describe(value)} has no components")
        return [self.component(value, index) for index in indices_of(value.shape)]

    def component(self, value: Value, index: tuple[int, ...]) -> Value:
        """One component of a tensor."""
        packed = self.packed.get(value.atom)  # type: ignore[arg-type]
        if packed is not None:
            return Value(packed[sum(k * prod(value.shape[axis + 1 :]) for axis, k in enumerate(index))])
        return Value(self.b.extract(value.atom, *literal_indices(index)))

    def shape(self, front: Any) -> tuple[int, ...]:
        """The shape of a value: `()` for a number."""
        if isinstance(front, Value | StaticTensor):
            return front.shape
        if isinstance(front, Place):
            return shape_of(front.type)
        if is_number(front):
            return ()
        tensor = self.static_tensor(front)
        return tensor.shape if tensor is not None else self.as_value(front).shape

    def fitting(self, atom: Atom, t: Scalar) -> Atom:
        """A literal as type `t`, checked: an integer that `t` cannot hold is an error, not a wrapped number. Negative
        numbers stand for their bits in unsigned types.
        """
        if not isinstance(atom, Lit) or atom.type.bits:
            return self.b.cast(atom, with_element(atom.type, t))
        if atom.type is weak_int and t.kind in "iu" and not self.holds(t, int(atom.value)):
            self._too_large(int(atom.value), t)
        return self.b.cast(atom, t)

    @staticmethod
    def holds(t: Scalar, value: int) -> bool:
        lowest = -(1 << (t.bits - 1)) if t.bits > 1 else 0
        return lowest <= value <= t.highest

    def _too_large(self, value: int, t: Scalar) -> NoReturn:
        wider = i64 if self.holds(i64, value) else u64
        hint = (
            f"write `ti.{wider}({value})`, or use a wider type"
            if self.holds(wider, value)
            else "no integer type is wide enough"
        )
        if self.holds(self.ip, value):
            hint = "use a field or variable of a wider type"
        self.error(f"the integer {value} does not fit into {t} ({t.lowest} … {t.highest})", hint)

    # operations

    def prim(self, prim: Primitive, *operands: Any, type: Scalar | Tensor | None = None, name: str = "") -> Value:
        """Emit a primitive on front-end values; types promote, scalars broadcast. Located errors for shapes and types
        that do not fit.
        """
        operands = tuple([self.force(o) for o in operands])
        strong = [o.dtype for o in operands if isinstance(o, Value) and o.dtype.bits]
        like = self.promoted(strong) if strong else None
        values = [self.as_value(o, like) for o in operands]
        types: tuple[Type, ...] = tuple([v.type for v in values])
        if type is None:
            assert prim.rule is not None, prim
            try:
                found = prim.rule(types, self.defaults)
            except TypeError as error:
                self._mismatch(prim, values, str(error))
            assert isinstance(found, Scalar | Tensor)
            type = with_element(found, strengthen(element_type(found), self.fp, self.ip))
            for position, v in enumerate(values):
                if isinstance(v.atom, Lit) and v.atom.type is weak_int:
                    t = p.operand_type(prim, types, position, type, self.defaults)
                    if t.kind == "u" and v.atom.value < 0 and prim in _ORDERED:
                        self.error(
                            f"a number of the unsigned type {t} is compared with {v.atom.value}",
                            f"it is never negative; convert it first, for example with `ti.{i64}(…)`",
                        )
                    if (
                        t.kind in "iu"
                        and not self.holds(t, int(v.atom.value))
                        and not self.holds(self.ip, int(v.atom.value))
                    ):
                        self._too_large(int(v.atom.value), t)
        return Value(self.b.prim(prim, *[v.atom for v in values], type=type, name=name))

    def _mismatch(self, prim: Primitive, values: Sequence[Value], reason: str) -> NoReturn:
        shaped = [v for v in values if v.shape]
        if len({v.shape for v in shaped}) > 1:
            both = " and ".join(describe(v) for v in shaped)
            self.error(
                f"the shapes of {both} do not fit",
                "vectors and matrices are combined component by component; `@` is the matrix product",
            )
        self.error(
            reason[:1].lower() + reason[1:], "convert with `ti.cast` or `int(…)` first" if "integers" in reason else ""
        )

    def cast(self, front: Any, t: Scalar) -> Value:
        """A number, or every component of a tensor, converted to `t` as by a call of the type's name: an integer
        constant must fit.
        """
        value = self.as_value(front, t)
        if isinstance(value.atom, Lit):
            return Value(self.fitting(value.atom, t))
        return Value(self.b.cast(value.atom, with_element(value.type, t)))

    def truth(self, front: Any) -> bool | Value:
        """Whether a value counts as true: known at compile time, or a truth value at run time."""
        front = self.force(front)
        if isinstance(front, Value):
            if front.shape:
                self.error(
                    f"the truth of {describe(front)} is not defined", "ask `.all()` or `.any()` of its components"
                )
            return front if front.type is u1 else self.prim(p.ne, front, 0)
        tensor = self.static_tensor(front)
        if tensor is not None:
            self.error(f"the truth of {describe(tensor)} is not defined", "ask `.all()` or `.any()` of its components")
        if self.is_value(front) and not is_number(front):
            return bool(front)
        if buffer_of(front) is not None:
            self.error(f"the truth of field `{buffer_of(front).name}` is not defined", "read one of its elements")  # type: ignore[union-attr]
        return bool(front)

    def converted(self, front: Any, t: Scalar | Tensor, what: str) -> Atom:
        """A value that is about to be stored where a `t` lives: shapes must agree (a number fills a tensor),
        constants must fit; other conversions are left to the types pass.
        """
        dtype = element_type(t)
        value = self.as_value(front, dtype)
        atom = value.atom
        if isinstance(atom, Lit):
            atom = self.fitting(atom, dtype)
        elif dtype.kind in "iu" and value.dtype.kind == "f":
            self.warn(f"{what} is an integer: the fraction of the {value.dtype} that is stored here is cut off")
        if isinstance(t, Tensor):
            if not value.shape:
                return self.b.pack([atom] * t.count, Tensor(element_type(atom.type), t.shape))
            if value.shape != t.shape:
                self.error(f"{describe(value)} does not fit {what}, {describe_type(t)}")
        elif value.shape:
            self.error(
                f"{describe(value)} does not fit {what}, {describe_type(t)}",
                "store one component, or make the destination a vector",
            )
        return atom

    def strong(self, front: Any) -> Value:
        """A value with the type a variable takes from it: constants take the default types."""
        value = self.as_value(front)
        if isinstance(value.atom, Lit) and not value.dtype.bits:
            return Value(self.fitting(value.atom, strengthen(value.dtype, self.fp, self.ip)))
        return value

    def harmless(self, ops: Sequence[Op]) -> bool:
        """Whether operations may run even when their result is not asked for. In debug mode an integer that overflows
        stops the launch.
        """
        if not is_harmless(ops):
            return False
        if not self.config.reports_overflow:
            return True
        return not any(isinstance(op, Prim) and op.prim in _OVERFLOWS and not is_float(op.out.type) for op in ops)

    # places

    def check_writable(self, place: Place) -> None:
        """Refuse to write a local variable from the iterations of a parallel loop that it was declared outside of."""
        while isinstance(place, PartPlace):
            place = place.base
        owner = place.owner if isinstance(place, CellPlace) else None
        if isinstance(owner, Variable) and owner.nest is not self.nest:
            self.error(
                f"`{owner.name}` is one variable for all iterations of this parallel loop, which cannot assign it here",
                "accumulate into it with `+=` in the loop itself, or use a field",
                notes=[Note(f"`{owner.name}` is declared here", owner.span)],
            )

    def store(self, place: Place, front: Any, what: str, value: ast.expr | None = None) -> None:
        """Assign a place; `value` is the expression that gave `front`."""
        self.check_writable(place)
        with self.at(value) if value is not None else nullcontext():
            atom = self.converted(front, place.type, what)
        place.store(self.b, atom)

    def combine(self, place: Place, prim: Primitive, operand: Value, old: bool) -> Value | None:
        """Combine a place with an operand, indivisibly where others may reach it."""
        self.check_writable(place)
        return place.combine(self.b, prim, operand, old)

    def negative(self, atom: Atom, t: Scalar | Tensor) -> Atom:
        """`-atom` in the element type of `t`, for what is subtracted by adding."""
        dtype = element_type(t)
        if isinstance(atom, Lit):
            return Lit(p.neg.evaluate(dtype, p.cast_number(dtype, atom.value)), dtype)
        return self.b.prim(
            p.neg, self.b.cast(atom, with_element(atom.type, dtype)), type=with_element(atom.type, dtype)
        )

    def text_parts(self, parts: Sequence[Any]) -> list[str | tuple[Atom, str]]:
        """Texts and front-end values as the parts of a message: constants become text, what exists at run time stays
        with its format.
        """
        found: list[str | tuple[Atom, str]] = []
        for part in parts:
            spec = ""
            if isinstance(part, Formatted):
                part, spec = part
            part = self.force(part)
            if isinstance(part, Text | StructValue):
                found += self.text_parts(part.parts if isinstance(part, Text) else part.shown(spec))
            elif self.is_static(part):
                found.append(self.static_text(part))
            elif isinstance(part, tuple | list):
                shown = [repr(item) if isinstance(item, str) else Formatted(item, spec) for item in part]
                separated = [x for item in shown for x in (", ", item)][1:]
                left, right = "[]" if isinstance(part, list) else "()" if len(part) != 1 else ("(", ",)")
                found += [left, *self.text_parts(separated), right]
            else:
                found.append((self.as_value(part).atom, spec))
        return found

    def static_text(self, front: Any) -> str:
        """What Python shows of something known at compile time."""
        try:
            return str(front)
        except Exception as error:
            self.error(f"{describe(front)} cannot be shown: {type(error).__name__}: {error}")

    # compile-time numbers

    def static_int(self, front: Any, what: str) -> int:
        """An integer known at compile time; `what` names it in the error."""
        if isinstance(front, Value) and isinstance(front.atom, Lit) and front.dtype.kind != "f":
            return int(front.atom.value)
        if isinstance(front, bool) or not isinstance(front, int):
            self.error(f"{what} must be an integer known at compile time, not {describe(front)}")
        return front

    def index_atom(self, front: Any, what: str = "an index") -> Atom:
        """An integer as an index operand, i32 or i64."""
        value = self.as_value(front)
        if value.shape or value.dtype.kind not in "iu":
            self.error(
                f"{what} must be an integer, not {describe(front)}",
                "convert it with `int(…)`" if value.dtype.kind == "f" and not value.shape else "",
            )
        if isinstance(value.atom, Lit):
            number = int(value.atom.value)
            return Lit(number, i32 if i32.lowest <= number <= i32.highest else i64)
        if value.dtype in (i32, i64):
            return value.atom
        return self.b.cast(value.atom, i64 if value.dtype.bits >= 32 else i32)


#: Bytes that one local vector or matrix may take.
LARGEST_ARRAY = 64 << 10
_HARMLESS_LIMIT = 12
#: What may overflow, and is reported where it does in debug mode.
_OVERFLOWS = (p.add, p.sub, p.mul, p.neg, p.absolute, p.shl)
_ORDERED = (p.lt, p.le, p.gt, p.ge)


def is_harmless(ops: Sequence[Op]) -> bool:
    """Whether operations may run even when their result is not asked for: few, cheap, without effects, and none that
    can fault.
    """
    if len(ops) > _HARMLESS_LIMIT:
        return False
    for op in ops:
        if isinstance(op, Get) and all(isinstance(a, Lit) for a in op.args[1:]):
            continue
        if isinstance(op, Extent) or (
            isinstance(op, Load) and not op.buffer.rank and all(isinstance(a, Lit) for a in op.args)
        ):
            continue
        if not isinstance(op, Prim):
            return False
        if op.prim.cost > 5 or op.prim is p.extract:
            if op.prim is p.extract and all(isinstance(a, Lit) for a in op.args[1:]):
                continue
            if op.prim in (p.div,) and all(element_type(a.type).kind == "f" for a in op.args):
                continue
            return False
        if op.prim in (p.floordiv, p.mod, p.raw_div, p.raw_mod, p.random_bits):
            return False
    return True
