"""`ti.types.primitive_types`: the types of numbers, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tinote.ir.types import Scalar

__all__ = ["all_types", "integer_type_ids", "integer_types", "real_type_ids", "real_types", "type_ids"]

if TYPE_CHECKING:
    # What a type checker knows of `def step(dt: ti.f32)`: it takes Python's numbers.
    f16: TypeAlias = float
    f32: TypeAlias = float
    f64: TypeAlias = float
    float16: TypeAlias = float
    float32: TypeAlias = float
    float64: TypeAlias = float
    i8: TypeAlias = int
    i16: TypeAlias = int
    i32: TypeAlias = int
    i64: TypeAlias = int
    u8: TypeAlias = int
    u16: TypeAlias = int
    u32: TypeAlias = int
    u64: TypeAlias = int
    int8: TypeAlias = int
    int16: TypeAlias = int
    int32: TypeAlias = int
    int64: TypeAlias = int
    uint8: TypeAlias = int
    uint16: TypeAlias = int
    uint32: TypeAlias = int
    uint64: TypeAlias = int
    u1: TypeAlias = bool
    uint1: TypeAlias = bool
else:
    from tinote.ir.types import f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64

    float16, float32, float64 = f16, f32, f64
    int8, int16, int32, int64 = i8, i16, i32, i64
    uint1, uint8, uint16, uint32, uint64 = u1, u8, u16, u32, u64

#: Every spelling, under which the package has them: `ti.f32`, `ti.float32`.
by_name: dict[str, Any] = {name: t for name, t in globals().items() if isinstance(t, Scalar)}

#: Python's own among them mean what the session takes them for.
real_types: list[Any] = [f16, f32, f64, float]
integer_types: list[Any] = [i8, i16, i32, i64, u1, u8, u16, u32, u64, int, bool]
all_types: list[Any] = [*real_types, *integer_types]
type_ids, real_type_ids, integer_type_ids = ([id(t) for t in kind] for kind in (all_types, real_types, integer_types))
