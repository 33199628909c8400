"""Literals: their types, and whether these can hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NoReturn

from tinote.ir import primitives as p
from tinote.ir.build import Builder
from tinote.ir.nodes import Atom, Lit
from tinote.ir.primitives import Defaults, Primitive
from tinote.ir.types import Scalar, Type, f64, i64, promote, strengthen, u1, u64, weak_float, weak_int, with_element

_ORDERED = (p.lt, p.le, p.gt, p.ge)


class Literals:
    """Conversion of literals to the types of other operands. `error` raises a located error."""

    def __init__(self, b: Builder, fp: Scalar, ip: Scalar, error: Callable[..., NoReturn]) -> None:
        self.b = b
        self.fp = fp
        self.ip = ip
        self.error = error

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

    def fitting(self, atom: Atom, t: Scalar) -> Atom:
        """A literal as type `t`, checked: an integer that `t` cannot hold is an error, not a wrapped number. Negative
        numbers stand for their bits in unsigned types.
        """
        if not isinstance(atom, Lit) or atom.type.bits:
            return self.b.cast(atom, with_element(atom.type, t))
        if atom.type is weak_int and t.kind in "iu" and not self.holds(t, int(atom.value)):
            self.too_large(int(atom.value), t)
        if atom.type is weak_float and t.kind in "iu" and not (isfinite(atom.value) and self.holds(t, int(atom.value))):
            self.error(f"the number {atom.value!r} does not fit into {t} ({t.lowest} … {t.highest})")
        self.check_magnitude(atom, t)
        return self.b.cast(atom, t)

    def check_magnitude(self, literal: Lit, t: Scalar) -> None:
        """Refuse a finite number that a float type would make infinite."""
        if t.kind == "f" and isfinite(literal.value) and not isfinite(p.cast_number(t, literal.value)):
            wider = "" if t is f64 or abs(literal.value) > f64.highest else f", or `ti.{f64}({literal.value!r})`"
            self.error(
                f"the number {literal.value!r} is too large for {t}",
                f"write `float('inf')` where infinity is meant{wider}" if wider else "",
            )

    @staticmethod
    def holds(t: Scalar, value: int) -> bool:
        lowest = -(1 << (t.bits - 1)) if t.bits > 1 else 0
        return lowest <= value <= t.highest

    def too_large(self, value: int, t: Scalar) -> NoReturn:
        wider = i64 if self.holds(i64, value) else u64
        hint = (
            f"write `ti.{wider}({value})`, or use a wider type"
            if self.holds(wider, value)
            else "no integer type is wide enough"
        )
        if self.holds(self.ip, value):
            hint = "use a field or variable of a wider type"
        self.error(f"the integer {value} does not fit into {t} ({t.lowest} … {t.highest})", hint)

    def check_operands(
        self, prim: Primitive, types: tuple[Type, ...], atoms: Sequence[Atom], result: Type, defaults: Defaults
    ) -> None:
        """Refuse literals among the operands of a primitive that their types cannot hold."""
        for position, atom in enumerate(atoms):
            if not isinstance(atom, Lit) or atom.type.bits:
                continue
            t = p.operand_type(prim, types, position, result, defaults)
            if atom.type is weak_int:
                if t.kind == "u" and atom.value < 0 and prim in _ORDERED:
                    self.error(
                        f"a number of the unsigned type {t} is compared with {atom.value}",
                        f"it is never negative; convert it first, for example with `ti.{i64}(…)`",
                    )
                number = int(atom.value)
                if t.kind in "iu" and not self.holds(t, number) and not self.holds(self.ip, number):
                    self.too_large(number, t)
            self.check_magnitude(atom, t)
