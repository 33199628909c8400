"""Sums of multiples of variables, and intervals of integers: the exact arithmetic of the access analysis."""

from __future__ import annotations

from collections.abc import Callable

from tinote.ir import primitives as p
from tinote.ir.nodes import Var
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar

#: The least and the greatest value, both included.
Interval = tuple[int, int]


class Affine:
    """`const + coeff₁·v₁ + coeff₂·v₂ + …` over variables; no coefficient is zero. Never changed once made."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: dict[Var, int]) -> None:
        self.const = const
        self.terms = terms

    def __add__(self, other: Affine) -> Affine:
        return self.plus(other, 1)

    def __sub__(self, other: Affine) -> Affine:
        return self.plus(other, -1)

    def plus(self, other: Affine, times: int) -> Affine:
        """`self + times · other`."""
        terms = dict(self.terms)
        for v, c in other.terms.items():
            total = terms.get(v, 0) + times * c
            if total:
                terms[v] = total
            else:
                terms.pop(v, None)
        return Affine(self.const + times * other.const, terms)

    def shifted(self, by: int) -> Affine:
        return Affine(self.const + by, self.terms)

    def times(self, factor: int) -> Affine:
        if not factor:
            return Affine(0, {})
        return Affine(self.const * factor, {v: c * factor for v, c in self.terms.items()})

    def coefficient(self, v: Var) -> int:
        return self.terms.get(v, 0)

    def replaced(self, v: Var, by: Affine) -> Affine:
        """This form with `by` in place of `v`."""
        factor = self.terms.get(v, 0)
        if not factor:
            return self
        rest = Affine(self.const, {w: c for w, c in self.terms.items() if w is not v})
        return rest.plus(by, factor)

    def interval(self, of: Callable[[Var], Interval]) -> Interval:
        """The values it can take, when the variables take theirs independently."""
        low = high = self.const
        for v, c in self.terms.items():
            least, greatest = of(v)
            low += c * (least if c > 0 else greatest)
            high += c * (greatest if c > 0 else least)
        return low, high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Affine) and self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.const, frozenset(self.terms.items())))

    def __repr__(self) -> str:
        parts = [f"{c}*%{v.name}" if c != 1 else f"%{v.name}" for v, c in self.terms.items()]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


def constant(value: int) -> Affine:
    return Affine(value, {})


def variable(v: Var) -> Affine:
    return Affine(0, {v: 1})


def contains(outer: Interval, inner: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def span_of_type(t: Scalar) -> Interval:
    """All values of an integer type or of truth values."""
    return t.lowest, t.highest


def apply_to_intervals(prim: Primitive, args: list[Interval]) -> Interval | None:
    """The interval of a primitive's result before wrapping, if anything is known. `select` comes without condition."""
    if prim is p.cast:
        return args[0]
    if prim is p.neg:
        return -args[0][1], -args[0][0]
    if prim is p.absolute:
        low, high = args[0]
        return (max(low, -high, 0), max(-low, high))
    if len(args) != 2:
        return None
    (a, b), (c, d) = args
    if a > b or c > d:  # in a loop without iterations
        return None
    if prim is p.add:
        return a + c, b + d
    if prim is p.sub:
        return a - d, b - c
    if prim is p.mul:
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if prim is p.minimum:
        return min(a, c), min(b, d)
    if prim is p.maximum:
        return max(a, c), max(b, d)
    if prim is p.select:
        return min(a, c), max(b, d)
    if prim is p.and_:
        tops = [high for low, high in args if low >= 0]
        return (0, min(tops)) if tops else None
    if prim in (p.or_, p.xor) and a >= 0 and c >= 0:
        return 0, (1 << max(b, d).bit_length()) - 1
    if prim is p.shr and c >= 0 and d < 64:
        corners = (a >> c, a >> d, b >> c, b >> d)
        return min(corners), max(corners)
    if prim is p.shl and c == d and 0 <= c < 64:
        return a << c, b << c
    if prim in (p.floordiv, p.raw_div) and c > 0 and (prim is p.floordiv or a >= 0):
        corners = (a // c, a // d, b // c, b // d)
        return min(corners), max(corners)
    if prim in (p.mod, p.raw_mod) and c > 0:
        if c == d and a // c == b // c and (prim is p.mod or a >= 0):
            return a % c, b % c
        if a >= 0:
            return (a, b) if b < c else (0, min(b, d - 1))
        return (0 if prim is p.mod else 1 - d), d - 1
    return None
