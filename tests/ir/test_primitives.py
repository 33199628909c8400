"""What each primitive means on plain numbers: the corner cases that machine code must agree with."""

from __future__ import annotations

import math
import struct
from itertools import pairwise

import pytest

from tests.lang.primitive_functions import FUNCTIONS_OF_ONE, primitive_of
from tinote.ir import primitives as p
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Function, Lit, Prim, Region, Var
from tinote.ir.primitives import ATOMICS, PRIMITIVES, Defaults
from tinote.ir.types import INTEGERS, SCALARS, Scalar, f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from tinote.ir.verify import Form, verify

INF, NAN = math.inf, math.nan
THIRD = 0.3333333432674408  # in f32
LOW = -(2**31)

# primitive: [(type of the result, type of the operands, operands, result)]
CASES: dict[str, list[tuple[Scalar, Scalar, tuple[float, ...], float]]] = {
    "add": [
        (i32, i32, (2**31 - 1, 1), LOW),
        (u8, u8, (200, 100), 44),
        (i8, i8, (-128, -1), 127),
        (u64, u64, (2**64 - 1, 2), 1),
        (f32, f32, (16777216.0, 1.0), 16777216.0),
        (f64, f64, (0.1, 0.2), 0.30000000000000004),
        (f64, f64, (INF, -INF), NAN),
        (f32, f32, (3.4028234663852886e38, 3.4028234663852886e38), INF),
        (f64, f64, (-0.0, -0.0), -0.0),
        (f16, f16, (65504.0, 65504.0), INF),
    ],
    "sub": [(i32, i32, (LOW, 1), 2**31 - 1), (u32, u32, (0, 1), 2**32 - 1), (f64, f64, (0.0, 0.0), 0.0)],
    "mul": [
        (i32, i32, (65536, 65536), 0),
        (i64, i64, (2**62, 2), -(2**63)),
        (u8, u8, (16, 17), 16),
        (f64, f64, (0.0, INF), NAN),
        (f64, f64, (-1.0, 0.0), -0.0),
        (f32, f32, (THIRD, 3.0), 1.0),
    ],
    "strong_mul": [
        (f64, f64, (0.0, INF), 0.0),
        (f32, f32, (0.0, NAN), 0.0),
        (f64, f64, (-0.0, -INF), -0.0),
        (f64, f64, (2.0, INF), INF),
        (f64, f64, (NAN, 1.0), NAN),
        (f64, f64, (INF, 0.0), NAN),
        (f32, f32, (THIRD, 3.0), 1.0),
    ],
    "stop_gradient_once": [(f64, f64, (1.5,), 1.5), (f32, f32, (-0.0,), -0.0), (f16, f16, (INF,), INF)],
    "surrogate": [(f64, f64, (1.5, NAN), 1.5), (f32, f32, (-0.0, 7.0), -0.0), (f16, f16, (INF, 1.0), INF)],
    "in_reverse": [(f64, f64, (1.5, NAN), 1.5), (f32, f32, (-0.0, 7.0), -0.0), (f16, f16, (INF, 1.0), INF)],
    "div": [
        (f32, f32, (1.0, 3.0), THIRD),
        (f64, f64, (1.0, 0.0), INF),
        (f64, f64, (1.0, -0.0), -INF),
        (f64, f64, (-1.0, 0.0), -INF),
        (f64, f64, (0.0, 0.0), NAN),
        (f64, f64, (NAN, 0.0), NAN),
        (f64, f64, (5.0, -INF), -0.0),
    ],
    "floordiv": [
        (i32, i32, (7, 2), 3),
        (i32, i32, (-7, 2), -4),
        (i32, i32, (7, -2), -4),
        (i32, i32, (LOW, -1), LOW),
        (u8, u8, (255, 2), 127),
        (i32, i32, (7, 0), 0),
        (f64, f64, (-7.5, 2.0), -4.0),
        (f64, f64, (1.0, 0.0), INF),
        (f64, f64, (-0.0, 3.0), -0.0),
        (f64, f64, (1.0, 0.1), 9.0),
        (f64, f64, (-1e-300, 1e300), -1.0),
        (f64, f64, (-5.0, INF), -1.0),
        (f16, f16, (-0.748046875, -0.00023305416107177734), 3208.0),
    ],
    "mod": [
        (i32, i32, (7, 3), 1),
        (i32, i32, (-7, 3), 2),
        (i32, i32, (7, -3), -2),
        (i32, i32, (LOW, -1), 0),
        (i32, i32, (7, 0), 0),
        (f64, f64, (-7.5, 2.0), 0.5),
        (f64, f64, (7.5, -2.0), -0.5),
        (f64, f64, (1.0, 0.0), NAN),
        (f64, f64, (1.0, 0.1), 1.0 % 0.1),
        (f64, f64, (1e300, 0.7), 1e300 % 0.7),
        (f32, f32, (1e8, f32.round(0.7)), math.fmod(1e8, f32.round(0.7))),
        (f64, f64, (-0.0, 3.0), 0.0),
        (f64, f64, (6.0, -3.0), -0.0),
        (f64, f64, (5.0, INF), 5.0),
        (f64, f64, (-5.0, INF), INF),
        (f64, f64, (INF, 5.0), NAN),
    ],
    "raw_div": [
        (i32, i32, (-7, 2), -3),
        (i32, i32, (7, -2), -3),
        (i32, i32, (LOW, -1), LOW),
        (u64, u64, (2**64 - 1, 1), 2**64 - 1),
        (i32, i32, (7, 0), 0),
        (f64, f64, (-7.0, 2.0), -3.5),
    ],
    "raw_mod": [
        (i32, i32, (-7, 2), -1),
        (i32, i32, (7, -2), 1),
        (i64, i64, (-(2**63), -1), 0),
        (u64, u64, (2**64 - 1, 2**63), 2**63 - 1),
        (i32, i32, (7, 0), 0),
        (f64, f64, (-7.5, 2.0), -1.5),
        (f64, f64, (INF, 2.0), NAN),
    ],
    "neg": [(i32, i32, (LOW,), LOW), (u8, u8, (1,), 255), (f64, f64, (0.0,), -0.0)],
    "abs": [(i32, i32, (LOW,), LOW), (i32, i32, (-3,), 3), (f64, f64, (-0.0,), 0.0), (u8, u8, (255,), 255)],
    # A NaN is left out, whichever operand it is, and -0 is less than 0.
    "min": [
        (i32, i32, (-1, 2), -1),
        (f64, f64, (NAN, 1.0), 1.0),
        (f64, f64, (1.0, NAN), 1.0),
        (f64, f64, (NAN, INF), INF),
        (f64, f64, (NAN, NAN), NAN),
        (f64, f64, (0.0, -0.0), -0.0),
        (f64, f64, (-0.0, 0.0), -0.0),
    ],
    "max": [
        (u8, u8, (200, 100), 200),
        (f64, f64, (NAN, 1.0), 1.0),
        (f64, f64, (1.0, NAN), 1.0),
        (f64, f64, (-INF, NAN), -INF),
        (f64, f64, (NAN, NAN), NAN),
        (f64, f64, (-0.0, 0.0), 0.0),
        (f64, f64, (0.0, -0.0), 0.0),
    ],
    "pow": [
        (i32, i32, (3, 4), 81),
        (i32, i32, (2, 31), LOW),
        (i32, i32, (2, 32), 0),
        (i32, i32, (-3, 3), -27),
        (i32, i32, (0, 0), 1),
        (i32, i32, (2, -1), 0),
        (i32, i32, (-1, -3), -1),
        (i32, i32, (1, -3), 1),
        (f64, f64, (2.0, 0.5), 2.0**0.5),
        (f64, f64, (-8.0, 1 / 3), NAN),
        (f64, f64, (0.0, -1.0), INF),
        (f64, f64, (-0.0, -1.0), -INF),
        (f64, f64, (-0.0, -2.0), INF),
        (f64, f64, (-10.0, 309.0), -INF),
        (f64, f64, (NAN, 0.0), 1.0),
    ],
    "and": [(i32, i32, (-1, 12), 12), (u1, u1, (1, 0), 0)],
    "or": [(u8, u8, (160, 15), 175), (u1, u1, (1, 0), 1)],
    "xor": [(i32, i32, (-1, 5), -6), (u1, u1, (1, 1), 0)],
    "invert": [(i32, i32, (0,), -1), (u8, u8, (1,), 254), (u1, u1, (1,), 0)],
    "shl": [
        (i32, i32, (1, 31), LOW),
        (i32, i32, (1, 32), 0),
        (i32, i32, (1, -1), 0),
        (u8, u8, (255, 4), 240),
    ],
    "shr": [
        (i32, i32, (-8, 1), -4),
        (i32, i32, (-8, 40), -1),
        (i32, i32, (8, -1), 0),
        (u8, u8, (128, 7), 1),
        (u32, u32, (2**32 - 1, 32), 0),
    ],
    "lt": [(u1, i32, (-1, 0), 1), (u1, u32, (2**32 - 1, 0), 0), (u1, f64, (NAN, 1.0), 0)],
    "le": [(u1, i32, (2, 2), 1), (u1, f64, (NAN, NAN), 0)],
    "gt": [(u1, u8, (255, 1), 1), (u1, f64, (1.0, NAN), 0)],
    "ge": [(u1, f64, (0.0, -0.0), 1), (u1, f64, (NAN, NAN), 0)],
    "eq": [(u1, f64, (0.0, -0.0), 1), (u1, f64, (NAN, NAN), 0), (u1, u1, (1, 1), 1)],
    "ne": [(u1, f64, (NAN, NAN), 1), (u1, i32, (3, 3), 0)],
    "not": [(u1, u1, (1,), 0), (u1, u1, (0,), 1)],
    "isnan": [(u1, f64, (NAN,), 1), (u1, f32, (INF,), 0), (u1, f64, (0.0,), 0)],
    "sqrt": [
        (f64, f64, (2.0,), 2.0**0.5),
        (f32, f32, (2.0,), 1.4142135381698608),
        (f64, f64, (-1.0,), NAN),
        (f64, f64, (-0.0,), -0.0),
        (f64, f64, (INF,), INF),
    ],
    "rsqrt": [(f64, f64, (4.0,), 0.5), (f64, f64, (0.0,), INF), (f64, f64, (-1.0,), NAN), (f64, f64, (INF,), 0.0)],
    "exp": [(f64, f64, (0.0,), 1.0), (f64, f64, (1000.0,), INF), (f64, f64, (-INF,), 0.0), (f32, f32, (89.0,), INF)],
    "log": [(f64, f64, (1.0,), 0.0), (f64, f64, (0.0,), -INF), (f64, f64, (-1.0,), NAN), (f64, f64, (INF,), INF)],
    "sin": [(f64, f64, (0.0,), 0.0), (f64, f64, (INF,), NAN), (f64, f64, (1.0,), math.sin(1.0))],
    "cos": [(f64, f64, (0.0,), 1.0), (f64, f64, (-INF,), NAN)],
    "tan": [(f64, f64, (0.0,), 0.0), (f64, f64, (INF,), NAN)],
    "asin": [(f64, f64, (1.0,), math.pi / 2), (f64, f64, (1.5,), NAN)],
    "acos": [(f64, f64, (1.0,), 0.0), (f64, f64, (-1.5,), NAN)],
    "atan2": [
        (f64, f64, (1.0, 0.0), math.pi / 2),
        (f64, f64, (0.0, -1.0), math.pi),
        (f64, f64, (-0.0, -1.0), -math.pi),
        (f64, f64, (0.0, 0.0), 0.0),
    ],
    "tanh": [(f64, f64, (0.0,), 0.0), (f64, f64, (INF,), 1.0), (f64, f64, (-1000.0,), -1.0)],
    "floor": [(f64, f64, (-0.5,), -1.0), (f64, f64, (0.5,), 0.0), (f64, f64, (-INF,), -INF), (i32, i32, (7,), 7)],
    "ceil": [(f64, f64, (-0.5,), -0.0), (f64, f64, (0.5,), 1.0), (f64, f64, (NAN,), NAN), (i32, i32, (7,), 7)],
    # to the even neighbour, as in Python and IEEE
    "round": [(f64, f64, (0.5,), 0.0), (f64, f64, (1.5,), 2.0), (f64, f64, (-0.5,), -0.0), (f64, f64, (2.5,), 2.0)],
    "cast": [
        (i32, f64, (-1.9,), -1),
        (i32, f64, (1e10,), 2**31 - 1),
        (i32, f64, (-INF,), LOW),
        (i32, f64, (NAN,), 0),
        (u8, f64, (-1.0,), 0),
        (u8, f64, (300.0,), 255),
        (u8, i32, (300,), 44),
        (i8, u8, (200,), -56),
        (u64, i32, (-1,), 2**64 - 1),
        (f32, f64, (0.1,), 0.10000000149011612),
        (f16, f64, (1e6,), INF),
        (f32, i32, (16777217,), 16777216.0),
        (f64, i64, (2**53 + 1,), 2.0**53),
        # rounded once: by way of a double this would become 2 to the power of 54
        (f32, i64, (2**54 + 2**30 + 1,), 2.0**54 + 2.0**31),
        (f32, u64, (2**64 - 1,), 2.0**64),
        (u1, f64, (NAN,), 1),
        (u1, f64, (-0.0,), 0),
        (u1, i32, (256,), 1),
        (f64, u1, (1,), 1.0),
    ],
    "bitcast": [
        (i32, f32, (1.0,), 0x3F800000),
        (u32, f32, (-0.0,), 0x80000000),
        (f32, i32, (0x7F800000,), INF),
        (f64, u64, (0x3FF0000000000000,), 1.0),
        (i16, f16, (-2.0,), -16384),
        (u8, i8, (-1,), 255),
        (i64, u64, (2**64 - 1,), -1),
    ],
}


def apply(prim: p.Primitive, result: Scalar, *operands: Lit, form: Form | None = None) -> float:
    """What the interpreter makes of one primitive."""
    out = Var(result)
    fn = Function("f", Region((), (Prim(prim, operands, (out,)),), (out,)))
    if form is not None:
        verify(fn, form)
    (value,) = interpret(fn, (), DictMemory())
    return value


def same(a: float, b: float) -> bool:
    if isinstance(a, float) != isinstance(b, float):
        return False
    if isinstance(a, float):
        return (a != a and b != b) or struct.pack("d", a) == struct.pack("d", b)
    return a == b


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str) -> None:
    for result, operand, values, wanted in CASES[name]:
        found = apply(PRIMITIVES[name], result, *[Lit(v, operand) for v in values], form=Form.CHECKED)
        assert same(found, wanted), f"{name}{values} in {result} is {found}, not {wanted}"


def test_every_primitive_has_a_meaning_here() -> None:
    elsewhere = {"select", "pack", "extract", "insert", "join_tangents", "tangent_at", "random_bits"}
    by_numpy = {prim.name for prim in map(primitive_of, FUNCTIONS_OF_ONE.values()) if prim is not None}
    assert set(CASES) | elsewhere | by_numpy == set(PRIMITIVES)
    assert not set(CASES) & elsewhere


@pytest.mark.parametrize("name", FUNCTIONS_OF_ONE)
def test_what_kernels_compute_is_what_numpy_computes(name: str) -> None:
    """Each function of one number, in kernels and by its definition in Python, to the units in the last place of both;
    outside of its domain it is NaN.
    """
    prim = primitive_of(FUNCTIONS_OF_ONE[name])
    assert prim is not None
    sizes = [0.0, 5e-324, 1e-200, 1e-9, 0.25, 0.5, 0.75, 0.999, 1.0, 1.5, 2.5, 3.0, 40.0, 1e6, 1e100, INF]
    for x in [sign * size for size in sizes for sign in (1.0, -1.0)] + [NAN]:
        found, wanted = apply(prim, f64, Lit(x, f64)), FUNCTIONS_OF_ONE[name](x)
        if not prim.domain[0] <= x <= prim.domain[1]:
            assert math.isnan(found), x
        assert same(found, wanted) or abs(found - wanted) <= (2 * prim.ulps + 1) * math.ulp(wanted), (x, found, wanted)


def test_select() -> None:
    for condition, wanted in ((1, 2.0), (0, 3.0)):
        found = apply(p.select, f32, Lit(condition, u1), Lit(2.0, f32), Lit(3.0, f32), form=Form.CHECKED)
        assert same(found, wanted)


def test_random_bits() -> None:
    """A draw depends on all three counters and on nothing else, and its bits are even."""

    def draw(seed: int, iteration: int, number: int) -> float:
        return apply(p.random_bits, u32, Lit(seed, u64), Lit(iteration, i64), Lit(number, i32), form=Form.CHECKED)

    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(1, 3, 2)}) == 5
    draws = [int(draw(7, i, 0)) for i in range(2000)]
    for bit in range(32):
        assert 850 < sum(d >> bit & 1 for d in draws) < 1150
    # Draws of neighbouring iterations are not alike.
    assert 14 < sum((a ^ b).bit_count() for a, b in pairwise(draws)) / 1999 < 18


@pytest.mark.parametrize("t", INTEGERS, ids=repr)
def test_integers_wrap(t: Scalar) -> None:
    one = Lit(1, t)
    assert apply(p.add, t, Lit(t.highest, t), one) == t.lowest
    assert apply(p.sub, t, Lit(t.lowest, t), one) == t.highest


@pytest.mark.parametrize("t", [t for t in SCALARS if t is not u1], ids=repr)
@pytest.mark.parametrize("prim", ATOMICS, ids=repr)
def test_neutral_elements_are_neutral(prim: p.Primitive, t: Scalar) -> None:
    if t.kind == "f":
        if prim in (p.and_, p.or_, p.xor):
            return
        values: tuple[float, ...] = (0.0, 1.5, -2.0, INF, -INF)
    else:
        values = (0, 1, t.lowest, t.highest)
    start = p.neutral(prim, t)
    for value in values:
        assert prim.evaluate(t, start, value) == value
        assert prim.evaluate(t, value, start) == value


@pytest.mark.parametrize("name", [n for n, prim in PRIMITIVES.items() if prim.commutative])
def test_commutative_primitives_commute(name: str) -> None:
    for result, operand, (a, b), _ in CASES[name]:
        there, back = [apply(PRIMITIVES[name], result, Lit(x, operand), Lit(y, operand)) for x, y in ((a, b), (b, a))]
        assert same(there, back)


def test_the_tables_are_right_about_types() -> None:
    """The type rule gives the types that the cases state, and operands that have them already stay as they are."""
    for name, cases in CASES.items():
        prim = PRIMITIVES[name]
        for result, operand, values, _ in cases:
            if prim.rule is None:
                continue
            types = (operand,) * len(values)
            assert prim.arity == len(values)
            if operand.bits != 1 or result is u1:
                assert prim.rule(types, Defaults()) is result
            for position in range(len(values)):
                assert p.operand_type(prim, types, position, result, Defaults()) is operand


def test_unused_types_are_covered() -> None:
    """All scalar types appear in the cases."""
    used = {t for cases in CASES.values() for result, operand, _, _ in cases for t in (result, operand)}
    assert used == set(SCALARS) - {u16}
    assert apply(p.add, u16, Lit(65535, u16), Lit(1, u16)) == 0
