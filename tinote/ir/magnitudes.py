"""Exponent bounds of floats, derived operation by operation from those of the operands.

Absolute values lie between two powers of two, given by their exponents: `-inf` for zero, and for what may be anything
the exponent beyond the type's largest number. A bound speaks of values that are neither infinite nor NaN. Next to it
stands whether a value is certainly not negative: with that, a sum is at least as large as each of its terms.

A range (`float_ranges.py`) is another fact: it holds for infinities and NaN too, so that a conversion needs no check,
and has therefore no sums and products, which fast maths may round in another way. Rounding does not cross the powers of
two that are bounds here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Op, Prim, Var
from tinote.ir.primitives import Primitive
from tinote.ir.query import operands_first
from tinote.ir.types import Scalar

#: The exponents of the least and the greatest absolute value.
Bounds = tuple[float, float]


def least_exponent(t: Scalar) -> int:
    """The exponent of the smallest number of a float type that has all of its digits."""
    return {16: -14, 32: -126, 64: -1022}[t.bits]


def _top(t: Scalar) -> float:
    return float({16: 16, 32: 128, 64: 1024}[t.bits])


class Magnitudes:
    """What is known of the variables that `definitions` says are made by primitives: worked out where somebody asks for
    it, once. Of others, and of parameters, nothing is known.
    """

    __slots__ = ("_bounds", "_definitions", "_not_negative")

    def __init__(self, definitions: Mapping[Var, Op]) -> None:
        """`definitions` may grow, by operations whose operands are in it; what it says of a variable stays."""
        self._definitions = definitions
        #: None: nothing but the type
        self._bounds: dict[Var, Bounds | None] = {}
        self._not_negative: set[Var] = set()

    def of(self, atom: Atom) -> Bounds:
        """Between which powers of two the absolute value of a number lies."""
        t = atom.type
        assert isinstance(t, Scalar)
        if isinstance(atom, Lit):
            size = abs(atom.value)
            if size == 0:
                return -math.inf, -math.inf
            if math.isfinite(size):
                return (exponent := math.log2(size)), exponent
        elif (found := self._known(atom)) is not None:
            return found
        return (-math.inf, _top(t)) if t.kind == "f" else (-math.inf, float(t.bits))

    def is_not_negative(self, atom: Atom) -> bool:
        """Whether a number is certainly not less than zero."""
        if isinstance(atom, Lit):
            return atom.value >= 0
        self._known(atom)
        return atom in self._not_negative or (isinstance(atom.type, Scalar) and atom.type.kind == "u")

    def is_positive(self, atom: Atom) -> bool:
        """Whether a float is certainly greater than zero, and has all of its digits."""
        assert isinstance(atom.type, Scalar)
        return self.is_not_negative(atom) and self.of(atom)[0] >= least_exponent(atom.type)

    def _known(self, v: Var) -> Bounds | None:
        bounds = self._bounds
        if v not in bounds:
            for op in operands_first(v, self._definitions, bounds, _RULES):
                bounds[op.outs[0]] = self._worked_out(op)
            bounds.setdefault(v)
        return bounds[v]

    def _worked_out(self, op: Prim) -> Bounds | None:
        out = op.outs[0]
        t = out.type
        if not isinstance(t, Scalar) or t.kind != "f":
            return None
        args = op.args[1:] if op.prim is p.select else op.args
        for a in args:
            if not isinstance(a.type, Scalar):
                return None
        not_negative = [self.is_not_negative(a) for a in args]
        least, greatest = _RULES[op.prim]([self.of(a) for a in args], all(not_negative))
        if op.prim is p.maximum and (floor := _literal_floor(op)) is not None:
            least = max(least, self.of(floor)[0])
        if least != least or greatest != greatest:
            return None  # what divides by a literal zero
        if self._keeps_sign(op):
            self._not_negative.add(out)
        # What is less than the least normal number may have been rounded to anything, zero included.
        normal = least_exponent(t)
        return least if least >= normal else -math.inf, min(max(greatest, normal), _top(t))

    def _keeps_sign(self, op: Prim) -> bool:
        """Whether the result is not negative."""
        prim, args = op.prim, op.args
        if prim in (p.sqrt, p.rsqrt, p.absolute, p.exp) or (prim is p.mul and args[0] == args[1]):
            return True
        if prim is p.maximum and _literal_floor(op) is not None:
            return True
        if prim in (p.sub, p.neg):
            return False
        return all(self.is_not_negative(a) for a in (args[1:] if prim is p.select else args))


def _literal_floor(op: Prim) -> Lit | None:
    """The literal not less than zero that a maximum is at least as large as; it takes the place of a NaN, too."""
    return next((a for a in op.args if type(a) is Lit and a.value >= 0), None)


def _sum(args: list[Bounds], not_negative: bool) -> Bounds:
    (a, b), (c, d) = args
    return (max(a, c) if not_negative else -math.inf), max(b, d) + 1


def _either(args: list[Bounds], not_negative: bool) -> Bounds:
    (a, b), (c, d) = args
    return min(a, c), max(b, d)


def _largest(args: list[Bounds], not_negative: bool) -> Bounds:
    (a, b), (c, d) = args
    return (max(a, c) if not_negative else min(a, c)), max(b, d)


def _quotient(args: list[Bounds], not_negative: bool) -> Bounds:
    (a, b), (c, d) = args
    return a - d, b - c


_RULES: dict[Primitive, Callable[[list[Bounds], bool], Bounds]] = {
    p.add: _sum,
    p.sub: lambda args, _: _sum(args, False),
    p.mul: lambda args, _: (args[0][0] + args[1][0], args[0][1] + args[1][1]),
    p.div: _quotient,
    p.raw_div: _quotient,
    p.neg: lambda args, _: args[0],
    p.absolute: lambda args, _: args[0],
    p.sqrt: lambda args, _: (args[0][0] / 2, args[0][1] / 2),
    p.rsqrt: lambda args, _: (-args[0][1] / 2, -args[0][0] / 2),
    p.exp: lambda args, _: (-math.inf, math.inf),
    p.minimum: _either,
    p.maximum: _largest,
    p.select: _either,
    p.cast: lambda args, _: args[0],
}
