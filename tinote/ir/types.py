"""Types of the IR, and how two of them promote to one.

Scalar   f16 f32 f64 · i8 i16 i32 i64 · u1 u8 u16 u32 u64
Tangents f64d8 …: a number for each of several directions, on which arithmetic works number by number
Weak     weak_int weak_float: what a literal has until the type pass fixes it
Tensor   a vector, matrix or local array of scalars, held as a value
Ref      a local cell in memory (before promotion of locals, and for arrays after differentiation)
Stack    values saved on the way forward and taken back in reverse order
Lanes    a scalar of each of several iterations of a parallel loop that run at once, side by side in a vector register
Tile     memory of each lane, transposed: a row of a buffer, or a local array
"""

from __future__ import annotations

import math
import struct
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from tinote.completion import Documented
from tinote.lazy import lazy

if TYPE_CHECKING:
    from tinote.ir import units
    from tinote.ir.units import Unit
else:
    units = lazy("tinote.ir.units")

_SINGLE, _HALF = struct.Struct("<f"), struct.Struct("<e")


class Scalar(Documented):
    """A number type. There is one object of each, compared by identity.

    Attributes
    ----------
    bits : int
        The width.
    kind : str
        'f', 'i' or 'u' for floats, signed and unsigned integers; 'b' for truth values.
    name : str
        The name in the package, such as 'f32'.
    """

    __slots__ = ("bits", "kind", "name")

    def __init__(self, name: str, kind: str, bits: int) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return (scalar_named, (self.name,))

    def __getitem__(self, unit: object) -> MeasuredType:
        """This type with a unit: `ti.f32[ti.units.m]`."""
        if not isinstance(unit, units.Unit):
            raise TypeError(f"{unit!r} is not a unit; ti.units has them: {self.name}[ti.units.m]")
        if self.kind != "f":
            raise TypeError(f"numbers of type {self.name} are counted, not measured: units are for floats")
        return MeasuredType(self, unit)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(self.bits // 8, 1)

    @property
    def alignment(self) -> int:
        """The bytes that an address in memory is a multiple of."""
        return self.size

    @property
    def lowest(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "i" else 0

    @property
    def highest(self) -> int:
        """The largest value of an integer type."""
        return (1 << (self.bits - 1)) - 1 if self.kind == "i" else (1 << self.bits) - 1

    @property
    def mantissa(self) -> int:
        """The binary digits of a float type, the hidden one included."""
        return {16: 11, 32: 24, 64: 53}[self.bits]

    @property
    def smallest_normal(self) -> float:
        """The least positive number of a float type that has all of its digits."""
        return 2.0 ** {16: -14, 32: -126, 64: -1022}[self.bits]

    def wrap(self, value: int) -> int:
        """An integer brought into this integer type's range, modulo two to the number of bits."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.kind == "i" and value >> (self.bits - 1) else value

    def round(self, value: float) -> float:
        """A float rounded to this float type; overflow gives infinity."""
        if self.bits == 64 or value != value:
            return float(value)
        try:
            narrow = _SINGLE if self.bits == 32 else _HALF
            return narrow.unpack(narrow.pack(value))[0]  # type: ignore[no-any-return]
        except OverflowError:
            return math.copysign(math.inf, value)


class MeasuredType:
    """A number type with a unit, such as `ti.f32[ti.units.m]`: fields, arguments, variables and results may have it."""

    __slots__ = ("scalar", "unit")

    def __init__(self, scalar: Scalar, unit: Unit) -> None:
        self.scalar = scalar
        self.unit = unit

    def __tinote_type__(self) -> Scalar:
        return self.scalar

    @property
    def __tinote_unit__(self) -> Unit:
        return self.unit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeasuredType) and (self.scalar, self.unit) == (other.scalar, other.unit)

    def __hash__(self) -> int:
        return hash((self.scalar, self.unit))

    def __reduce__(self) -> tuple[object, ...]:
        return (MeasuredType, (self.scalar, self.unit))

    def __repr__(self) -> str:
        return f"{self.scalar!r}[{self.unit!r}]"


class Tangents(Scalar):
    """The tangents of a number along `count` directions, each of type `scalar`, side by side: one value that moves as a
    whole. Arithmetic works number by number, a condition holds for all, a literal is the same in all, and a cast from
    a scalar repeats it. `bits` are those of one number. Made by `tangent_type`.
    """

    __slots__ = ("count", "scalar")

    def __init__(self, scalar: Scalar, count: int) -> None:
        super().__init__(f"{scalar.name}d{count}", scalar.kind, scalar.bits)
        self.scalar = scalar
        self.count = count

    @property
    def size(self) -> int:
        return self.scalar.size * self.count

    @property
    def alignment(self) -> int:
        return self.scalar.size


_TANGENTS: dict[tuple[Scalar, int], Tangents] = {}


def tangent_type(scalar: Scalar, count: int) -> Scalar:
    """The type of the tangents of a number along `count` directions; its own for one."""
    if count == 1:
        return scalar
    found = _TANGENTS.get((scalar, count))
    return found or _TANGENTS.setdefault((scalar, count), Tangents(scalar, count))


f16, f32, f64 = Scalar("f16", "f", 16), Scalar("f32", "f", 32), Scalar("f64", "f", 64)
i8, i16, i32, i64 = Scalar("i8", "i", 8), Scalar("i16", "i", 16), Scalar("i32", "i", 32), Scalar("i64", "i", 64)
u1, u8, u16, u32, u64 = (
    Scalar("u1", "b", 1),
    Scalar("u8", "u", 8),
    Scalar("u16", "u", 16),
    Scalar("u32", "u", 32),
    Scalar("u64", "u", 64),
)
weak_int, weak_float = Scalar("weak_int", "i", 0), Scalar("weak_float", "f", 0)

FLOATS = (f16, f32, f64)
INTEGERS = (i8, i16, i32, i64, u8, u16, u32, u64)
SCALARS = (*FLOATS, *INTEGERS, u1)
_BY_NAME = {t.name: t for t in (*SCALARS, weak_int, weak_float)}

#: The scalar types by the names that NumPy and other libraries have for them.
BY_NUMPY_NAME = {
    **{f"float{t.bits}": t for t in FLOATS},
    **{f"{'' if t.kind == 'i' else 'u'}int{t.bits}": t for t in INTEGERS},
    "bool": u1,
    "bool_": u1,
}


class Tensor(NamedTuple):
    """`shape` numbers of type `dtype` as one value; a vector has one dimension, a matrix two."""

    dtype: Scalar
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def count(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] (nobody counts elements of the pair)
        return math.prod(self.shape)


class Lanes(NamedTuple):
    """One `dtype` for each of `lanes` iterations that run at once. What is the same for all of them stays a scalar."""

    dtype: Scalar
    lanes: int

    def __repr__(self) -> str:
        return f"{self.dtype}x{self.lanes}"


class Ref(NamedTuple):
    """A local cell that holds a `content`."""

    content: Scalar | Tensor

    def __repr__(self) -> str:
        return f"ref {self.content!r}"


class Stack(NamedTuple):
    """A last-in first-out store of `content`s, local to one iteration of a parallel loop, or to several in lanes."""

    content: Scalar | Tensor | Lanes

    def __repr__(self) -> str:
        return f"stack {self.content!r}"


class Tile(NamedTuple):
    """Memory of each lane, transposed: for each place the `content`, what all lanes have there."""

    content: Lanes

    def __repr__(self) -> str:
        return f"tile {self.content!r}"


Type = Scalar | Tensor | Ref | Stack | Lanes | Tile


def scalar_named(name: str) -> Scalar:
    """The scalar type with this name. Raises `KeyError`."""
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    scalar, _, count = name.partition("d")
    if not count.isdecimal() or int(count) < 2:
        raise KeyError(name)
    return tangent_type(_BY_NAME[scalar], int(count))


def element_type(t: Type) -> Scalar:
    """The scalar type of a scalar, of a tensor's components or of each lane."""
    if isinstance(t, Scalar):
        return t
    if isinstance(t, Tensor | Lanes):
        return t.dtype
    return element_type(t.content)


def with_element(t: Type, dtype: Scalar) -> Scalar | Tensor:
    """`t` with its scalar type replaced by `dtype`."""
    return Tensor(dtype, t.shape) if isinstance(t, Tensor) else dtype


def shape_of(t: Type) -> tuple[int, ...]:
    """A tensor's shape, the number of lanes; `()` for a scalar."""
    if isinstance(t, Lanes):
        return (t.lanes,)
    return t.shape if isinstance(t, Tensor) else ()


def indices_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every index into a tensor of this shape, in row-major order."""
    return list(product(*map(range, shape)))


def machine_epsilon(t: Scalar) -> float:
    """The distance from 1 to the next larger number of a float type."""
    return {f16: 2.0**-10, f32: 2.0**-23, f64: 2.0**-52}[t]


def is_float(t: Type) -> bool:
    return element_type(t).kind == "f"


def is_whole(t: Type) -> bool:
    """Whether a type is that of numbers whose values are integers, truth values included."""
    return isinstance(t, Scalar) and t.kind != "f"


def is_integer(t: Type) -> bool:
    """Whether the elements are integers; truth values are not."""
    return element_type(t).kind in "iu"


def strengthen(t: Scalar, default_fp: Scalar, default_ip: Scalar) -> Scalar:
    """A weak type replaced by the default of its kind."""
    return default_fp if t is weak_float else default_ip if t is weak_int else t


def promote(a: Scalar, b: Scalar, default_fp: Scalar = f32, default_ip: Scalar = i32) -> Scalar:
    """The type in which two numbers are computed, as the dialect documents it.

    Weak types count as the default of their kind, except that a weak one never widens a strong one of the same kind;
    floats win over integers; more bits win over fewer; of two integers with the same number of bits the unsigned one
    wins. Truth values count as `default_ip` with numbers and stay with each other.
    """
    if a is b:
        return a
    if a.kind == "b" or b.kind == "b":
        other = b if a.kind == "b" else a
        return promote(other, default_ip, default_fp, default_ip)
    if a.bits == 0 or b.bits == 0:
        weak, strong = (a, b) if a.bits == 0 else (b, a)
        if strong.bits == 0:
            return weak_float
        if weak.kind == "i":
            return strong if strong.kind == "f" else promote(strong, default_ip)
        return strong if strong.kind == "f" else default_fp
    if (a.kind == "f") != (b.kind == "f"):
        return a if a.kind == "f" else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if a.kind == "u" else b
