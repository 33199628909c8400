"""How large floats are, as far as it shows from one operation and what is known of its operands.

Absolute values lie between two powers of two, given by their exponents: `-inf` for zero, and for what may be anything
the exponent beyond the type's largest number. A bound speaks of values that are neither infinite nor NaN. Beside it
stands whether a value is certainly not negative: with that, a sum is at least as large as each of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Prim, Var
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar

__all__ = ["Bounds", "Magnitudes", "least_exponent"]

#: The exponents of the least and the greatest absolute value.
Bounds = tuple[float, float]


def least_exponent(t: Scalar) -> int:
    """The exponent of the smallest number of a float type that has all of its digits."""
    return {16: -14, 32: -126, 64: -1022}[t.bits]


def _top(t: Scalar) -> float:
    return float({16: 16, 32: 128, 64: 1024}[t.bits])


class Magnitudes:
    """What is known of the variables whose operations have been noted; of others, and of parameters, nothing."""

    __slots__ = ("_bounds", "_not_negative")

    def __init__(self) -> None:
        self._bounds: dict[Var, Bounds] = {}
        self._not_negative: set[Var] = set()

    def of(self, atom: Atom) -> Bounds:
        """Between which powers of two the absolute value of a number lies."""
        t = atom.type
        assert isinstance(t, Scalar)
        if type(atom) is Lit:
            size = abs(atom.value)
            if size == 0:
                return -math.inf, -math.inf
            if math.isfinite(size):
                return (exponent := math.log2(size)), exponent
        elif (found := self._bounds.get(atom)) is not None:  # type: ignore[arg-type]
            return found
        return (-math.inf, _top(t)) if t.kind == "f" else (-math.inf, float(t.bits))

    def is_not_negative(self, atom: Atom) -> bool:
        """Whether a number is certainly not less than zero."""
        if type(atom) is Lit:
            return atom.value >= 0
        return atom in self._not_negative or (isinstance(atom.type, Scalar) and atom.type.kind == "u")

    def is_positive(self, atom: Atom) -> bool:
        """Whether a float is certainly greater than zero, and has all of its digits."""
        assert isinstance(atom.type, Scalar)
        return self.is_not_negative(atom) and self.of(atom)[0] >= least_exponent(atom.type)

    def note(self, op: Prim) -> None:
        """Take in an operation whose operands have been noted."""
        out = op.outs[0]
        t = out.type
        rule = _RULES.get(op.prim)
        if rule is None or not isinstance(t, Scalar) or t.kind != "f":
            return
        args = op.args[1:] if op.prim is p.select else op.args
        if any(not isinstance(a.type, Scalar) for a in args):
            return
        least, greatest = rule([self.of(a) for a in args], all(self.is_not_negative(a) for a in args))
        if op.prim is p.maximum and (floor := _literal_floor(op)) is not None:
            least = max(least, self.of(floor)[0])
        if least != least or greatest != greatest:
            return  # what divides by a literal zero
        # What is less than the least normal number may have been rounded to anything, zero included.
        normal = least_exponent(t)
        self._bounds[out] = least if least >= normal else -math.inf, min(max(greatest, normal), _top(t))
        if self._keeps_sign(op):
            self._not_negative.add(out)

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
