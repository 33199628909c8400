"""What operators and functions compute, against NumPy and plain Python."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.numbers import FLOATS, INTEGERS, filled, numpy_of, samples, wrapped

pytestmark = pytest.mark.optimised


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_arithmetic_wraps(dtype: Any) -> None:
    values = samples(dtype)
    a = filled(dtype, np.repeat(values, len(values)))
    b = filled(dtype, np.tile(values, len(values)))
    n = len(values) ** 2
    out = ti.field(dtype, shape=(8, n))

    @ti.kernel
    def run():
        for i in a:
            out[0, i] = a[i] + b[i]
            out[1, i] = a[i] - b[i]
            out[2, i] = a[i] * b[i]
            out[3, i] = -a[i]
            out[4, i] = a[i] & b[i]
            out[5, i] = a[i] | b[i]
            out[6, i] = a[i] ^ b[i]
            out[7, i] = ~a[i]

    run()
    x, y = a.to_numpy(), b.to_numpy()
    with np.errstate(over="ignore"):
        expected = [x + y, x - y, x * y, (0 - x).astype(x.dtype), x & y, x | y, x ^ y, ~x]
    np.testing.assert_array_equal(out.to_numpy(), expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_division_floors(dtype: Any) -> None:
    """`//` and `%` are Python's: they round towards minus infinity. The lowest number divided by -1 wraps."""
    values = samples(dtype)
    divisors = values[values != 0]
    a = filled(dtype, np.repeat(values, len(divisors)))
    b = filled(dtype, np.tile(divisors, len(values)))
    quotient, remainder = ti.field(dtype, shape=a.shape), ti.field(dtype, shape=a.shape)
    truncated, rest = ti.field(dtype, shape=a.shape), ti.field(dtype, shape=a.shape)

    @ti.kernel
    def run():
        for i in a:
            quotient[i] = a[i] // b[i]
            remainder[i] = a[i] % b[i]
            truncated[i] = ti.raw_div(a[i], b[i])
            rest[i] = ti.raw_mod(a[i], b[i])

    run()
    pairs = [(int(p), int(q)) for p, q in zip(a.to_numpy(), b.to_numpy(), strict=True)]
    toward_zero = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in pairs]
    assert quotient.to_numpy().tolist() == [wrapped(dtype, p // q) for p, q in pairs]
    assert remainder.to_numpy().tolist() == [p % q for p, q in pairs]
    assert truncated.to_numpy().tolist() == [wrapped(dtype, t) for t in toward_zero]
    assert rest.to_numpy().tolist() == [p - t * q for (p, q), t in zip(pairs, toward_zero, strict=True)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts(dtype: Any) -> None:
    """A shift by the width or more gives 0, or the sign; `bit_shr` fills with zeros."""
    values = samples(dtype)
    bits = dtype.bits
    counts = [c for c in (0, 1, bits - 1, bits, bits + 1, 100) if c <= np.iinfo(numpy_of(dtype)).max]
    a = filled(dtype, np.repeat(values, len(counts)))
    b = filled(dtype, np.tile(np.array(counts), len(values)))
    out = ti.field(dtype, shape=(3, *a.shape))

    @ti.kernel
    def run():
        for i in a:
            out[0, i] = a[i] << b[i]
            out[1, i] = a[i] >> b[i]
            out[2, i] = ti.bit_shr(a[i], b[i])

    run()
    pairs = [(int(p), int(q)) for p, q in zip(a.to_numpy(), b.to_numpy(), strict=True)]
    found = out.to_numpy()
    assert found[0].tolist() == [wrapped(dtype, p << q) for p, q in pairs]
    assert found[1].tolist() == [p >> q for p, q in pairs]
    assert found[2].tolist() == [wrapped(dtype, (p % (1 << bits)) >> q) for p, q in pairs]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
def test_comparisons_and_extremes(dtype: Any) -> None:
    values = (
        samples(dtype)
        if dtype.kind != "f"
        else np.array([-math.inf, -1.5, -0.0, 0.0, 1.0, 1.5, math.inf, math.nan], numpy_of(dtype))
    )
    a, b = filled(dtype, np.repeat(values, len(values))), filled(dtype, np.tile(values, len(values)))
    truths = ti.field(ti.i32, shape=(6, *a.shape))
    small, large = ti.field(dtype, shape=a.shape), ti.field(dtype, shape=a.shape)

    @ti.kernel
    def run():
        for i in a:
            truths[0, i] = a[i] < b[i]
            truths[1, i] = a[i] <= b[i]
            truths[2, i] = a[i] == b[i]
            truths[3, i] = a[i] != b[i]
            truths[4, i] = a[i] > b[i]
            truths[5, i] = a[i] >= b[i]
            small[i] = ti.min(a[i], b[i])
            large[i] = ti.max(a[i], b[i])

    run()
    x, y = a.to_numpy(), b.to_numpy()
    np.testing.assert_array_equal(truths.to_numpy(), [x < y, x <= y, x == y, x != y, x > y, x >= y])
    numbers = ~(np.isnan(x) | np.isnan(y)) if dtype.kind == "f" else np.ones(len(x), bool)
    np.testing.assert_array_equal(small.to_numpy()[numbers], np.minimum(x, y)[numbers])
    np.testing.assert_array_equal(large.to_numpy()[numbers], np.maximum(x, y)[numbers])


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_functions(dtype: Any, fast_math: bool) -> None:
    ti.init(fast_math=fast_math)
    # No value lies near a jump of floor, // or %, where one rounding more decides.
    values = np.linspace(0.0513, 0.9487, 37)
    x = filled(dtype, values)
    names = [
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "tanh",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "log2",
        "floor",
        "ceil",
        "abs",
        "neg",
    ]
    out = ti.field(dtype, shape=(len(names) + 6, len(values)))

    @ti.kernel
    def run():
        for i in x:
            a = x[i]
            out[0, i] = ti.sin(a)
            out[1, i] = ti.cos(a)
            out[2, i] = ti.tan(a)
            out[3, i] = ti.asin(a)
            out[4, i] = ti.acos(a)
            out[5, i] = ti.tanh(a)
            out[6, i] = ti.exp(a)
            out[7, i] = ti.log(a)
            out[8, i] = ti.sqrt(a)
            out[9, i] = ti.rsqrt(a)
            out[10, i] = ti.log2(a)
            out[11, i] = ti.floor(10 * a - 5)
            out[12, i] = ti.ceil(10 * a - 5)
            out[13, i] = abs(a - 0.5)
            out[14, i] = -a
            out[15, i] = ti.atan2(a - 0.5, 0.25 - a)
            out[16, i] = ti.pow(a, 2.5)
            out[17, i] = a**3
            out[18, i] = a**-2
            out[19, i] = (a - 0.5) % 0.3
            out[20, i] = (a - 0.5) // 0.3

    run()
    a = x.to_numpy()
    with np.errstate(all="ignore"):
        one = numpy_of(dtype).type
        expected = [
            np.sin(a), np.cos(a), np.tan(a), np.arcsin(a), np.arccos(a), np.tanh(a), np.exp(a), np.log(a), np.sqrt(a),
            1 / np.sqrt(a), np.log2(a), np.floor(10 * a - 5), np.ceil(10 * a - 5), np.abs(a - one(0.5)), -a,
            np.arctan2(a - one(0.5), one(0.25) - a), a ** one(2.5), a**3, a ** one(-2),
            np.mod(a - one(0.5), one(0.3)), np.floor_divide(a - one(0.5), one(0.3)),
        ]  # fmt: skip
    tolerance = 2e-6 if dtype is ti.f32 else 1e-14
    for row, (found, wanted) in enumerate(zip(out.to_numpy(), expected, strict=True)):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=f"row {row}")


@pytest.mark.parametrize("fast_math", [True, False])
def test_not_a_number_and_infinity_survive(fast_math: bool) -> None:
    ti.init(fast_math=fast_math)
    x = filled(ti.f32, [math.nan, math.inf, -math.inf, 0.0, 1.0])
    out = ti.field(ti.i32, shape=(5, 5))

    @ti.kernel
    def run():
        for i in x:
            a = x[i]
            out[0, i] = ti.isnan(a)
            out[1, i] = ti.isinf(a)
            out[2, i] = a == a
            out[3, i] = a < math.inf
            out[4, i] = ti.isnan(a - a)

    run()
    assert out.to_numpy()[:3].tolist() == [[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 1, 1]]
    assert out.to_numpy()[3].tolist() == [0, 0, 1, 1, 1]
    assert out.to_numpy()[4].tolist() == [1, 1, 1, 0, 0]


def test_float_division_by_zero_is_infinity() -> None:
    @ti.kernel
    def run(a: ti.f32, b: ti.f32) -> ti.f32:
        return a / b

    assert run(1.0, 0.0) == math.inf
    assert run(-1.0, 0.0) == -math.inf
    assert math.isnan(run(0.0, 0.0))


def test_true_division_of_integers_gives_a_float() -> None:
    @ti.kernel
    def run(a: ti.i32, b: ti.i32) -> ti.f32:
        return a / b

    assert run(7, 2) == 3.5
    assert run(-7, 2) == -3.5


def test_truth_and_short_circuit() -> None:
    x = filled(ti.i32, [3, 1, 4])

    @ti.kernel
    def run(k: ti.i32, a: ti.i32) -> ti.i32:
        # The second operand would be out of range, and divide by zero.
        first = k < 3 and x[k] > 2
        second = a == 0 or 12 // a > 2
        return first * 2 + second

    assert run(0, 4) == 3
    assert run(0, 6) == 2
    assert run(1, 6) == 0
    assert run(7, 0) == 1


def test_and_and_or_give_the_operand_that_decides() -> None:
    x = filled(ti.i32, [3, 0, -2])
    nine = ti.types.vector(9, ti.f64)

    @ti.kernel
    def run(a: ti.i32, b: ti.i32, c: ti.f64) -> nine:
        element = a < 3 and x[a]  # not read out of range
        chosen = 4 if a and b else 5
        n = 0
        while n < 10 and (a or n < 5):
            n += 1
        return nine(
            [a and b, a or b, a and c, c or a, (a and b) or 7, a > 0 and b, element, chosen, (not (a and b)) + n]
        )

    for a, b, c in itertools.product((0, 2, 5), (0, 3), (0.0, 1.5)):
        element = a < 3 and [3, 0, -2][a]
        n = 10 if a else 5
        expected = [a and b, a or b, a and c, c or a, (a and b) or 7, a > 0 and b, element, 4 if a and b else 5]
        np.testing.assert_array_equal(run(a, b, c).to_numpy(), [*expected, (not (a and b)) + n])


def test_comparison_chains_and_conditional_expressions() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        inside = 0 < a <= 10 != 7
        return (1 if inside else 2) + (10 if not a else 20)

    assert [run(a) for a in (-1, 0, 1, 10, 11)] == [22, 12, 21, 21, 22]


def test_augmented_assignments() -> None:
    @ti.kernel
    def run(a: ti.i32, b: ti.i32) -> ti.i32:
        s = a
        s += b
        s *= 3
        s -= 1
        s //= 2
        s %= 50
        s <<= 3
        s >>= 1
        s |= 5
        s &= 0xFE
        s ^= b
        s **= 2
        return s

    def expected(a: int, b: int) -> int:
        s = a
        s += b
        s *= 3
        s -= 1
        s //= 2
        s %= 50
        s <<= 3
        s >>= 1
        s |= 5
        s &= 0xFE
        s ^= b
        return s**2

    for a, b in ((1, 2), (-7, 3), (100, -41)):
        assert run(a, b) == expected(a, b)


def test_float_augmented_division() -> None:
    @ti.kernel
    def run(a: ti.f32) -> ti.f32:
        s = a
        s /= 4
        s **= 2
        return s

    assert run(3.0) == 0.5625


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 10])
def test_integer_power(exponent: int) -> None:
    @ti.kernel
    def known(a: ti.i32) -> ti.i32:
        return a**exponent

    @ti.kernel
    def unknown(a: ti.i32, n: ti.i32) -> ti.i32:
        return a**n

    for a in (-3, 0, 2, 7):
        assert known(a) == unknown(a, exponent) == int(np.int64(a**exponent).astype(np.int32))


def test_sign_select_and_bits() -> None:
    @ti.kernel
    def run(a: ti.f32, k: ti.i32) -> ti.f32:
        return ti.sign(a) * 100 + ti.select(k > 2, 7, 5) + ti.popcnt(k) * 10

    assert run(-2.0, 7) == -100 + 7 + 30
    assert run(0.0, -1) == 5 + 320
    assert run(3.0, 0) == 105


def test_python_maths_is_the_same_function() -> None:
    @ti.kernel
    def run(a: ti.f64) -> ti.f64:
        return math.sin(a) + math.sqrt(a) + min(a, 2, 0.5) + max(a, 1) + abs(-a) + math.pi

    a = 0.7
    assert run(a) == pytest.approx(math.sin(a) + math.sqrt(a) + 0.5 + 1 + a + math.pi, rel=1e-6)


#: What keeps numbers between 0 and the smallest normal one, as NumPy computes it.
OF_TINY_NUMBERS: dict[str, tuple[Any, Any]] = {
    "x * 0.5": (lambda x: x * 0.5, lambda x: x * x.dtype.type(0.5)),
    "x + x": (lambda x: x + x, lambda x: x + x),
    "x / 2": (lambda x: x / 2, lambda x: x / x.dtype.type(2)),
    "abs(x)": (lambda x: abs(x), np.abs),
    "x > 0": (lambda x: ti.select(x > 0, 1.0, 0.0), lambda x: (x > 0) * x.dtype.type(1)),
    "sqrt(abs(x))": (lambda x: ti.sqrt(abs(x)), lambda x: np.sqrt(abs(x))),
    "sin(x)": (lambda x: ti.sin(x), np.sin),
    "tanh(x)": (lambda x: ti.tanh(x), np.tanh),
    "log(abs(x))": (lambda x: ti.log(abs(x)), lambda x: np.log(abs(x))),
    "sign(x)": (lambda x: ti.math.sign(x), np.sign),
    "min(x, 0)": (lambda x: ti.min(x, 0.0), lambda x: np.minimum(x, 0)),
}


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
@pytest.mark.parametrize("name", OF_TINY_NUMBERS)
def test_denormal_numbers_are_not_flushed_to_zero(name: str, dtype: Any, fast_math: bool) -> None:
    ti.init(fast_math=fast_math)
    function, expected = OF_TINY_NUMBERS[name]
    info = np.finfo(numpy_of(dtype))
    values = (np.random.default_rng(2).uniform(-1, 1, 67) * info.smallest_normal).astype(numpy_of(dtype))
    values[:2] = info.smallest_subnormal, -info.smallest_subnormal
    x, y = filled(dtype, values), ti.field(dtype, shape=len(values))

    @ti.kernel
    def run():
        for i in x:
            y[i] = function(x[i])

    run()
    wanted = expected(values)
    allowed = np.maximum(4 * info.eps * np.abs(wanted), info.smallest_subnormal)
    assert (np.abs(y.to_numpy() - wanted) <= allowed).all()
    assert ((y.to_numpy() == 0) == (wanted == 0)).all()
