"""Atoms, the operands of operations: variables and literals."""

from __future__ import annotations

import struct

from tinote.ir.types import Scalar, Type, i32, indices_of, u1


class Var:
    """A variable, bound once; `name` is a hint for the printer (the user's own name where there is one)."""

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str = "") -> None:
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type!r}"


class Lit:
    """A literal number. Two are equal when their types and bits are: 0.0 and -0.0 differ, a NaN equals itself."""

    __slots__ = ("type", "value")

    def __init__(self, value: float, type: Scalar) -> None:
        self.value: float = (
            (type.round(float(value)) if type.bits else float(value))
            if type.kind == "f"
            else (int(value) if type is not u1 else int(bool(value)))
        )
        self.type = type

    def bits(self) -> bytes | int:
        return struct.pack("<d", self.value) if self.type.kind == "f" else int(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lit) and self.type is other.type and self.bits() == other.bits()

    def __hash__(self) -> int:
        return hash((self.type.name, self.value))

    def __repr__(self) -> str:
        return f"{self.value}{self.type!r}"


Atom = Var | Lit
true, false = Lit(1, u1), Lit(0, u1)


def literal_indices(index: tuple[int, ...]) -> tuple[Lit, ...]:
    return tuple([Lit(k, i32) for k in index])


def component_indices(shape: tuple[int, ...]) -> list[tuple[Lit, ...]]:
    """Those of every component of a tensor of this shape, in row-major order."""
    return list(map(literal_indices, indices_of(shape)))
