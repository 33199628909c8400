"""Every finite number lies within the bounds that are known of it."""

from __future__ import annotations

import math
import random

import pytest

from tinote.ir import primitives as p
from tinote.ir.magnitudes import Magnitudes, least_exponent
from tinote.ir.nodes import Atom, Lit, Op, Prim, Var
from tinote.ir.primitives import Primitive
from tinote.ir.types import Scalar, f16, f32, f64, i32

PRIMS: dict[Primitive, int] = {
    p.add: 2, p.sub: 2, p.mul: 2, p.div: 2, p.neg: 1, p.absolute: 1, p.sqrt: 1, p.rsqrt: 1, p.exp: 1, p.minimum: 2,
    p.maximum: 2, p.sin: 1,
}  # fmt: skip


def number(source: random.Random, t: Scalar) -> float:
    """Zero, denormal or normal."""
    least, greatest = {16: (-7, 4), 32: (-44, 38), 64: (-320, 308)}[t.bits]
    size = 10.0 ** source.uniform(least, greatest) if source.random() < 0.9 else 0.0
    return t.round(source.choice([-size, size]))


@pytest.mark.parametrize("t", [f16, f32, f64])
def test_random_values_lie_within_their_bounds(t: Scalar) -> None:
    known = 0
    for seed in range(3000):
        source = random.Random(seed)
        definitions: dict[Var, Op] = {}
        magnitudes = Magnitudes(definitions)
        at_once = source.random() < 0.5
        values: dict[Var, float] = {Var(t): number(source, t) for _ in range(2)}
        for _ in range(8):
            prim = source.choice(list(PRIMS))
            literal = Lit(t.round(abs(number(source, t)) if source.random() < 0.8 else number(source, t)), t)
            args: list[Atom] = [source.choice([*values, literal]) for _ in range(PRIMS[prim])]
            if source.random() < 0.3:
                args = [args[0]] * len(args)
            op = Prim(prim, tuple(args), (Var(t),))
            value = prim.evaluate(t, *[a.value if type(a) is Lit else values[a] for a in args])  # type: ignore[index]
            if not math.isfinite(value):
                break
            definitions[op.out] = op
            values[op.out] = value
            if at_once:
                magnitudes.of(op.out)
        for out, op in definitions.items():
            assert isinstance(op, Prim)
            value, name = values[out], op.prim.name
            least, greatest = magnitudes.of(out)
            size = math.log2(abs(value)) if value else -math.inf
            assert least - 0.01 <= size <= greatest + 0.01, f"seed {seed}: {name}: {value!r}"
            if magnitudes.is_not_negative(out):
                assert value >= 0, f"seed {seed}: {name} gives {value!r}"
            if magnitudes.is_positive(out):
                known += 1
                assert value >= t.smallest_normal, f"seed {seed}: {name} gives {value!r}"
    assert known > 300


def test_what_is_known() -> None:
    definitions: dict[Var, Op] = {}
    magnitudes = Magnitudes(definitions)
    x, n = Var(f32), Var(i32)

    def noted(prim: Primitive, *args: Atom) -> Var:
        op = Prim(prim, args, (Var(f32),))
        definitions[op.out] = op
        return op.out

    square = noted(p.mul, x, x)
    assert magnitudes.is_not_negative(square) and not magnitudes.is_positive(square)
    softened = noted(p.add, square, Lit(0.25, f32))
    assert magnitudes.of(softened) == (-2, 128)
    assert magnitudes.of(noted(p.sqrt, softened)) == (-1, 64)
    assert magnitudes.of(noted(p.rsqrt, softened)) == (-64, 1)
    assert magnitudes.of(noted(p.maximum, x, Lit(8.0, f32)))[0] == 3
    assert not magnitudes.is_positive(noted(p.sub, softened, Lit(0.25, f32)))
    assert not magnitudes.is_positive(noted(p.add, square, Lit(1e-40, f32)))
    assert not magnitudes.is_not_negative(noted(p.maximum, x, softened))  # x where `softened` is NaN
    assert magnitudes.of(noted(p.cast, n)) == (-math.inf, 32)
    assert magnitudes.of(noted(p.div, x, Lit(0.0, f32))) == (-math.inf, 128)
    assert 2.0 ** least_exponent(f64) == f64.smallest_normal


def test_long_ways_and_values_used_often() -> None:
    x = Var(f32)
    definitions: dict[Var, Op] = {}
    last: Var = x
    for _ in range(20_000):
        op = Prim(p.add, (last, last), (Var(f32),))
        definitions[op.out] = op
        last = op.out
    assert Magnitudes(definitions).of(last) == (-math.inf, 128)
