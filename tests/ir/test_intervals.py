"""Intervals of results hold every value; the index of a loop without iterations has none, and its interval is none."""

from __future__ import annotations

import itertools

import pytest

from tinote.ir import primitives as p
from tinote.ir.affine import apply_to_intervals
from tinote.ir.types import i64

PRIMITIVES = (
    p.add, p.sub, p.mul, p.minimum, p.maximum, p.and_, p.or_, p.xor, p.shl, p.shr,
    p.floordiv, p.mod, p.raw_div, p.raw_mod,
)  # fmt: skip
NUMBERS = (-5, -1, 0, 1, 2, 6)


@pytest.mark.parametrize("prim", PRIMITIVES, ids=lambda prim: prim.name)
def test_intervals_hold_every_value(prim: p.Primitive) -> None:
    for a, b, c, d in itertools.product(NUMBERS, repeat=4):
        found = apply_to_intervals(prim, [(a, b), (c, d)])
        if found is None or a > b or c > d:
            continue
        for x, y in itertools.product(range(a, b + 1), range(c, d + 1)):
            if prim in p.DIVISIONS and y == 0:
                continue
            value = p.evaluate(prim, i64, x, y)
            assert found[0] <= value <= found[1], f"{x} {prim.name} {y} = {value} is not in {found}"
