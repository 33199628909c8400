"""Types of numbers and literals in WGSL.

Narrow integers are held as 32-bit ones and wrapped after each operation, f16 as f32 that is rounded after each. 64-bit
integers are pairs of words (`wide.py`). f64 needs an adapter that has it, and 64-bit words to take it out of memory.
"""

from __future__ import annotations

import math

from tinote.ir.nodes import Lit
from tinote.ir.types import Scalar, Tangents, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64

WIDE = "Wide"
TYPES = {
    f16: "f32", f32: "f32", f64: "f64", i8: "i32", i16: "i32", i32: "i32", i64: WIDE,
    u1: "bool", u8: "u32", u16: "u32", u32: "u32", u64: WIDE,
}  # fmt: skip


def type_name(t: Scalar) -> str:
    """The type in which a number is held."""
    if isinstance(t, Tangents):
        return f"array<{type_name(t.scalar)}, {t.count}>"
    return TYPES[t]


def words_of(t: Scalar) -> int:
    """The number of words of a number."""
    if isinstance(t, Tangents):
        return t.count * words_of(t.scalar)
    return 2 if t.bits == 64 else 1


def unit_of(t: Scalar) -> int:
    """The unit of such numbers' places, in bytes: a word, or a smaller number."""
    return min(t.scalar.size if isinstance(t, Tangents) else t.size, 4)


def is_wide(t: Scalar) -> bool:
    """Whether a number is a pair of words."""
    return t is i64 or t is u64


def literal(lit: Lit) -> str:
    """A literal as a WGSL expression."""
    t, value = lit.type, lit.value
    ty = type_name(t)
    if isinstance(t, Tangents):
        return f"{ty}({', '.join([literal(Lit(value, t.scalar))] * t.count)})"
    if ty == "bool":
        return "true" if value else "false"
    if ty == WIDE:
        bits = int(value) & 0xFFFFFFFFFFFFFFFF
        return f"Wide({bits & 0xFFFFFFFF}u, {bits >> 32}u)"
    if ty in ("f32", "f64"):
        return _float(ty, float(value))
    if ty == "u32":
        return f"{int(value)}u"
    # The lowest number has no literal, since a minus sign is an operation..
    return "i32(-2147483648)" if value == -(1 << 31) else f"({int(value)}i)" if value < 0 else f"{int(value)}i"


def _float(ty: str, value: float) -> str:
    if math.isfinite(value):
        size = abs(value)
        if ty == "f32" and 0 < size < f32.smallest_normal:
            text = f"bitcast<f32>({round(size * 2.0**149)}u)"
        else:
            text = f"{size!r}{'f' if ty == 'f32' else 'lf'}"
    else:
        # WGSL has no constants for infinity and NaN: their bits are variables.
        text = f"bitcast<f32>({'nan' if math.isnan(value) else 'inf'}_bits)"
        text = text if ty == "f32" else f"f64({text})"
    return f"(-{text})" if math.copysign(1.0, value) < 0 else text
