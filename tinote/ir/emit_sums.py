"""Sums of the access analysis as operations: in i64, before a loop, where some variables may not be in scope."""

from __future__ import annotations

from collections.abc import Callable

from tinote.ir import primitives as p
from tinote.ir.affine import Affine
from tinote.ir.nodes import Atom, Extent, Lit, Op, Prim, Var
from tinote.ir.primitives import Primitive
from tinote.ir.ranges import Ranges
from tinote.ir.types import Scalar, i32, i64

#: With at most this number of terms, of variables and factors up to these, sums in i64 cannot wrap: 2**58.
_MAX_VALUE = 1 << 32
#: See `_MAX_VALUE`.
_MAX_FACTOR = 1 << 20
#: See `_MAX_VALUE`.
_MAX_TERMS = 64


def fits(form: Affine, ranges: Ranges, bound: Callable[[Var], bool]) -> bool:
    """Whether a sum can be computed in i64 without wrapping. `bound` says which variables are known; extents always
    are.
    """
    for v, c in form.terms.items():
        low, high = ranges.interval(v)
        if abs(c) > _MAX_FACTOR or low < -_MAX_VALUE or high > _MAX_VALUE:
            return False
        if not bound(v) and not isinstance(ranges.definitions.get(v), Extent):
            return False
    return len(form.terms) < _MAX_TERMS and abs(form.const) < 1 << 48


def emit_sum(
    form: Affine,
    ranges: Ranges,
    emit: Callable[[Op], object],
    near: Op,
    t: Scalar = i64,
    get: Callable[[Atom], Atom] = lambda v: v,
) -> Atom:
    """Emit the computation of a sum in the type `t`, on behalf of `near`. Extents are asked for anew; `get`: what
    stands for the other variables.
    """

    def apply(prim: Primitive, *args: Atom) -> Var:
        out = Var(t)
        emit(Prim(prim, args, (out,), near.loc, near.origin))
        return out

    total: Atom | None = None
    for v, c in form.terms.items():
        term, op = get(v), ranges.definitions.get(v)
        if isinstance(op, Extent):
            term = Var(i32, v.name)
            emit(Extent(op.buffer, op.axis, (term,), near.loc))
        if term.type is not t:
            term = apply(p.cast, term)
        if c != 1:
            term = apply(p.mul, term, Lit(t.wrap(c), t))
        total = term if total is None else apply(p.add, total, term)
    if total is None:
        return Lit(form.const, t)
    return apply(p.add, total, Lit(t.wrap(form.const), t)) if form.const else total
