"""`ti.types.primitive_types`: the types of numbers, by kind."""

from __future__ import annotations

from typing import Any

from tinote.ir.types import f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64

__all__ = ["all_types", "integer_type_ids", "integer_types", "real_type_ids", "real_types", "type_ids"]

float16, float32, float64 = f16, f32, f64
int8, int16, int32, int64 = i8, i16, i32, i64
uint1, uint8, uint16, uint32, uint64 = u1, u8, u16, u32, u64

#: Python's own among them mean what the session takes them for.
real_types: list[Any] = [f16, f32, f64, float]
integer_types: list[Any] = [i8, i16, i32, i64, u1, u8, u16, u32, u64, int, bool]
all_types: list[Any] = [*real_types, *integer_types]
type_ids, real_type_ids, integer_type_ids = ([id(t) for t in kind] for kind in (all_types, real_types, integer_types))
