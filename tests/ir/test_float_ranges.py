"""What is said of a float's range holds for whatever it is made of: NaN, infinities, zeros of both signs, the ends of
the types; and what becomes an integer of it needs neither check nor saturation only where that is so.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import tinote as ti
from tinote.ir import primitives as p
from tinote.ir.affine import span_of_type
from tinote.ir.float_ranges import as_integer, fits, float_range
from tinote.ir.nodes import Lit, Op, Prim, Var
from tinote.ir.primitives import evaluate
from tinote.ir.types import Scalar, f32, f64, i8, i32, u1, u8, u32

STRANGE = (math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, 1.5, -7.25, 127.0, 2.0**31, -(2.0**31), 2.0**32, 1e30)
OPERATIONS = (
    p.minimum,
    p.maximum,
    p.maximum,
    p.minimum,
    p.select,
    p.neg,
    p.absolute,
    p.floor,
    p.ceil,
    p.round_,
    p.cast,
)


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions_stay_in_their_range(seed: int) -> None:
    rng = random.Random(seed)
    known, steps, definitions = _expression(rng)
    for _ in range(80):
        values: dict[Var, float] = {v: v.type.round(rng.choice(STRANGE)) for v in known}  # type: ignore[union-attr]
        for op in steps:
            args = [a.value if isinstance(a, Lit) else values[a] for a in op.args]
            assert isinstance(op.out.type, Scalar)
            values[op.out] = evaluate(op.prim, op.out.type, *args)
        for op in steps:
            found = float_range(op.out, definitions, lambda _: (0, 0))
            value = values[op.out]
            assert found.nan if value != value else found.low <= value <= found.high, (op, value, found)
            for t in (i8, u8, i32, u32):
                whole = span_of_type(t)
                low, high = as_integer(found, whole)
                assert low <= evaluate(p.cast, t, value) <= high
                if fits(found, whole):
                    assert whole[0] <= int(value) <= whole[1]


def _expression(rng: random.Random) -> tuple[list[Var], list[Prim], dict[Var, Op]]:
    """Numbers of which nothing is known, and operations on them and on literals."""
    known = [Var(rng.choice((f32, f64))) for _ in range(3)]
    steps: list[Prim] = []
    definitions: dict[Var, Op] = {}
    atoms: dict[Scalar, list[Var]] = {t: [v for v in known if v.type is t] for t in (f32, f64)}
    for _ in range(12):
        prim = rng.choice(OPERATIONS)
        t = rng.choice((f32, f64))
        source = t if prim is not p.cast else f64 if t is f32 else f32
        count = 1 if prim in (p.neg, p.absolute, p.floor, p.ceil, p.round_, p.cast) else 2
        args = [
            rng.choice(atoms[source])
            if atoms[source] and rng.random() < 0.6
            else Lit(source.round(rng.choice(STRANGE)), source)
            for _ in range(count)
        ]
        given = (Lit(rng.randrange(2), u1), *args) if prim is p.select else tuple(args)
        out = Var(t)
        op = Prim(prim, given, (out,))
        steps.append(op)
        definitions[out] = op
        atoms[t].append(out)
    return known, steps, definitions


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("ends", [(0.0, 7.0), (-3.5, 2147483647.0), (-2147483648.0, 2147483520.0), (0.0, 255.9)])
def test_a_clamped_float_becomes_the_same_integer(ends: tuple[float, float], fast_math: bool) -> None:
    ti.init(fast_math=fast_math)
    low, high = ends
    numbers = [*STRANGE, 3.999, 254.99, 255.5, 2147483520.0, -2147483648.0]
    x = ti.field(ti.f32, shape=len(numbers))
    found = ti.field(ti.i32, shape=(len(numbers), 3))
    x.from_numpy(np.array(numbers, np.float32))

    @ti.kernel
    def convert():
        for i in x:
            found[i, 0] = int(ti.max(low, ti.min(x[i], high)))
            found[i, 1] = int(ti.min(ti.max(x[i], low), high))
            found[i, 2] = ti.cast(ti.math.clamp(x[i], low, high), ti.u8)

    convert()
    for i, number in enumerate(x.to_numpy()):
        inside = [
            max(low, high if number != number else min(number, high)),
            min(low if number != number else max(number, low), high),
        ]
        inside = [np.float32(one) for one in inside]
        wanted = [min(max(int(one), -(2**31)), 2**31 - 1) for one in inside]
        assert found.to_numpy()[i, :2].tolist() == wanted, number
        if number == number:
            assert found[i, 2] == min(max(int(inside[0]), 0), 255), number


def test_a_clamped_index_needs_no_check() -> None:
    ti.init()
    x = ti.field(ti.f32, shape=16)
    y = ti.field(ti.f32, shape=64)

    @ti.kernel
    def gather():
        for i in y:
            at = ti.math.clamp(3.0 * y[i], 0.0, 14.5)
            k = int(at)
            y[i] = x[k] + x[k + 1]

    y.fill(math.nan)
    gather()
    assert "check bounds" not in str(gather.ir())
    assert "fcmp" not in str(gather.llvm())  # nor does it saturate
    assert y.to_numpy().tolist() == [0.0] * 64
