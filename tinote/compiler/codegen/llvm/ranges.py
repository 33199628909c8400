"""What integers lie between, as far as it shows from one operation and the ranges of its operands.

Machine code uses it to say that sums do not wrap (so that consecutive accesses are seen as such) and to divide
without the cases that cannot happen.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.nodes import Atom, Lit, Prim, Var
from tinote.ir.types import Scalar

__all__ = ["Range", "Ranges", "range_of", "result_range"]

Range = tuple[int, int]
Ranges = dict[Var, Range]


def full(t: Scalar) -> Range:
    return (0, 1) if t.kind == "b" else (t.lowest, t.highest)


def range_of(ranges: Ranges, atom: Atom) -> Range:
    """The smallest and largest value that an integer atom can have."""
    if type(atom) is Lit:
        return int(atom.value), int(atom.value)
    found = ranges.get(atom)  # type: ignore[arg-type]
    if found is not None:
        return found
    assert isinstance(atom.type, Scalar)
    return full(atom.type)


def result_range(ranges: Ranges, op: Prim, t: Scalar) -> Range | None:
    """The range of an operation's result before it is wrapped into `t`; None when nothing is known."""
    rule = _RULES.get(op.prim)
    if rule is None:
        return None
    if any(not isinstance(a.type, Scalar) or a.type.kind == "f" for a in op.args):
        return None
    return rule(*[range_of(ranges, a) for a in op.args])


def _add(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _sub(a: Range, b: Range) -> Range:
    return a[0] - b[1], a[1] - b[0]


def _mul(a: Range, b: Range) -> Range:
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(corners), max(corners)


def _floor_divide(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    corners = (a[0] // b[0], a[0] // b[1], a[1] // b[0], a[1] // b[1])
    return min(corners), max(corners)


def _modulo(a: Range, b: Range) -> Range | None:
    return (0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1) if b[0] > 0 else None


def _and(a: Range, b: Range) -> Range | None:
    if a[0] >= 0 and b[0] >= 0:
        return 0, min(a[1], b[1])
    if b[0] >= 0:
        return 0, b[1]
    return (0, a[1]) if a[0] >= 0 else None


def _select(c: Range, a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


_RULES = {
    p.add: _add,
    p.sub: _sub,
    p.mul: _mul,
    p.neg: lambda a: (-a[1], -a[0]),
    p.minimum: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    p.maximum: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    p.floordiv: _floor_divide,
    p.mod: _modulo,
    p.and_: _and,
    p.select: _select,
    p.cast: lambda a: a,
}
