"""Types of numbers and literals in LLVM IR."""

from __future__ import annotations

import struct

from tinote.ir.nodes import Lit
from tinote.ir.types import Lanes, Scalar, Tangents, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64


class _Types(dict[Scalar | Lanes, str]):
    """LLVM types: scalars by the table, lanes and tangents along several directions as vectors."""

    def __missing__(self, t: Scalar | Lanes) -> str:
        if isinstance(t, Lanes):
            text = f"<{t.lanes} x {self[t.dtype]}>"
        elif isinstance(t, Tangents):
            text = f"<{t.count} x {self[t.scalar]}>"
        else:
            raise KeyError(t)
        self[t] = text
        return text


#: How a scalar or lanes are written as a value …
TYPES = _Types({
    f16: "half", f32: "float", f64: "double", u1: "i1",
    i8: "i8", i16: "i16", i32: "i32", i64: "i64", u8: "i8", u16: "i16", u32: "i32", u64: "i64",
})  # fmt: skip
#: … and in memory, where a truth value takes a byte.
MEMORY_TYPES = _Types({**TYPES, u1: "i8"})


def number(t: Scalar, value: float) -> str:
    """A number of a type as LLVM writes it, along all directions; floats by their bits."""
    if isinstance(t, Tangents):
        return f"splat ({TYPES[t.scalar]} {number(t.scalar, value)})"
    if t.kind == "f":
        if t is f16:
            return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
        # A float is written as the double of the same value.
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if t is u1:
        return "true" if value else "false"
    return str(int(value))


def literal(lit: Lit) -> str:
    return number(lit.type, lit.value)
