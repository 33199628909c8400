"""Interval analysis of integers: from one operation and the intervals of its operands.

Machine code uses it to mark sums that do not wrap (so that consecutive accesses are recognised) and to omit impossible
cases of division.
"""

from __future__ import annotations

from tinote.ir import primitives as p
from tinote.ir.affine import Interval, apply_to_intervals, span_of_type
from tinote.ir.nodes import Atom, Lit, Prim, Var
from tinote.ir.types import Scalar

Ranges = dict[Var, Interval]


def range_of(ranges: Ranges, atom: Atom) -> Interval:
    """The smallest and largest value that an integer atom can have."""
    if type(atom) is Lit:
        return int(atom.value), int(atom.value)
    found = ranges.get(atom)  # type: ignore[arg-type]
    if found is not None:
        return found
    assert isinstance(atom.type, Scalar)
    return span_of_type(atom.type)


def result_range(ranges: Ranges, op: Prim, t: Scalar) -> Interval | None:
    """The range of an operation's result before it is wrapped into `t`; None when nothing is known."""
    if any(not isinstance(a.type, Scalar) or a.type.kind == "f" for a in op.args):
        return None
    args = op.args[1:] if op.prim is p.select else op.args
    return apply_to_intervals(op.prim, [range_of(ranges, a) for a in args])
