"""The functions of the language on numbers, vectors and matrices: kernels in f32 and f64, constants at compile time and
Python scope, each against NumPy; and their derivatives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.primitive_functions import FUNCTIONS_OF_ONE, by_numpy, domain_of, primitive_of
from tinote.compiler.protocol import FUNCTIONS
from tinote.lang.maths.functions import INNER

pytestmark = pytest.mark.optimised

TYPES = [(ti.f32, np.float32), (ti.f64, np.float64)]
REAL = np.array([-3.7, -2.5, -1.0, -0.6, -1e-4, 0.0, 1e-6, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 7.9, 40.0])
POSITIVE = np.array([1e-30, 1e-3, 0.25, 0.5, 0.7, 0.9999, 1.0, 1.0001, 1.4142, 2.0, 3.0, 8.0, 1000.0, 2.0**20, 1e30])
UNIT = np.linspace(-1, 1, 13)
ARGUMENTS = {"any": REAL, "positive": POSITIVE, "unit": UNIT}

# name: (function in kernels and Python, NumPy's, arguments, error in units in the last place)
UNARY: dict[str, tuple[Any, Any, np.ndarray, float]] = {
    **{
        name: (function, by_numpy(name), ARGUMENTS[domain_of(name)], primitive_of(function).ulps or 2)
        for name, function in FUNCTIONS_OF_ONE.items()
    },
    "atan": (ti.atan, np.arctan, REAL, 4),
    "sinh": (ti.sinh, np.sinh, REAL, 8),
    "cosh": (ti.cosh, np.cosh, REAL, 8),
    "erf": (ti.math.erf, lambda x: np.vectorize(math.erf)(x)[()], REAL, 4),
    "erfc": (ti.math.erfc, lambda x: np.vectorize(math.erfc)(x)[()], REAL, 6),
    "exp2": (ti.exp2, np.exp2, REAL, 2),
    "log2": (ti.log2, np.log2, POSITIVE, 4),
    "log10": (ti.log10, np.log10, POSITIVE, 4),
    "rsqrt": (ti.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE, 2),
    "abs": (ti.abs, np.abs, REAL, 0),
    "sign": (ti.sign, np.sign, REAL, 0),
    "floor": (ti.floor, np.floor, REAL, 0),
    "ceil": (ti.ceil, np.ceil, REAL, 0),
    "round": (ti.round, np.round, REAL, 0),
    "fract": (ti.math.fract, lambda x: x - np.floor(x), REAL, 1),
    "radians": (ti.math.radians, np.radians, REAL, 1),
    "degrees": (ti.math.degrees, np.degrees, REAL, 1),
    "neg": (ti.neg, np.negative, REAL, 0),
}


def assert_close(found: Any, wanted: np.ndarray, ulps: float, dtype: Any) -> None:
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(found, float), wanted.astype(float), rtol=ulps * eps, atol=ulps * eps * 1e-7)


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, dtype: Any, numpy_type: Any) -> None:
    function, reference, arguments, ulps = UNARY[name]
    arguments = arguments.astype(numpy_type)
    x, y = ti.field(dtype, shape=len(arguments)), ti.field(dtype, shape=len(arguments))
    vectors = ti.Vector.field(2, dtype, shape=len(arguments))
    x.from_numpy(arguments)

    @ti.kernel
    def run():
        for i in x:
            y[i] = function(x[i])
            vectors[i] = function(ti.Vector([x[i], x[i]]))

    run()
    wanted = reference(arguments.astype(float)).astype(numpy_type)
    assert_close(y.to_numpy(), wanted, ulps, numpy_type)
    np.testing.assert_array_equal(vectors.to_numpy(), np.stack([y.to_numpy()] * 2, -1))


@pytest.mark.parametrize("options", [{}, {"lanes": "always"}, {"arch": ti.python}], ids=str)
@pytest.mark.parametrize("dtype", [ti.u1, ti.u8, ti.i32, ti.i64], ids=repr)
def test_integers_become_floats(dtype: Any, options: dict[str, Any]) -> None:
    ti.init(default_fp=ti.f64, **options)
    functions = [*FUNCTIONS_OF_ONE.values(), ti.isnan, ti.isinf]
    x, y = ti.field(dtype, 16), ti.field(ti.f64, (len(functions), 16))
    x.fill(1)

    @ti.kernel
    def run():
        for i in x:
            for f in ti.static(range(len(functions))):
                y[f, i] = functions[f](x[i])

    run()
    wanted = [[function(1.0)] * 16 for function in functions]
    np.testing.assert_allclose(y.to_numpy(), np.array(wanted, float), rtol=1e-15)


def any_f32(count: int) -> np.ndarray:
    """Finite numbers of f32: bits at random, so of all sizes."""
    bits = np.random.default_rng(17).integers(0, 1 << 32, 2 * count, dtype=np.uint32).view(np.float32)
    return bits[np.isfinite(bits)][:count]


@pytest.mark.parametrize(
    "options, count",
    [
        ({}, 1 << 16),
        ({"fast_math": False}, 1 << 16),
        ({"lanes": "always"}, 1 << 16),
        ({"opt_level": 0}, 1 << 16),
        ({"arch": ti.python}, 2000),
    ],
    ids=str,
)
def test_angles_of_any_size(options: dict[str, Any], count: int) -> None:
    """The turn that a number of f32 is in shows, however large it is."""
    ti.init(**options)
    x, found = ti.field(ti.f32, count), ti.Vector.field(3, ti.f32, count)

    @ti.kernel
    def apply():
        for i in x:
            found[i] = [ti.sin(x[i]), ti.cos(x[i]), ti.tan(x[i])]

    angles = any_f32(count)
    x.from_numpy(angles)
    apply()
    wanted = np.stack([f(angles.astype(np.float64)) for f in (np.sin, np.cos, np.tan)], 1)
    unit = np.spacing(np.abs(wanted).astype(np.float32))
    assert (np.abs(found.to_numpy() - wanted) / unit).max(0).tolist() <= [2, 2, 4]


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("options", [{}, {"fast_math": False}, {"lanes": "always"}, {"arch": ti.python}], ids=str)
def test_angles_of_points_near_the_axes(options: dict[str, Any], dtype: Any, numpy_type: Any) -> None:
    """Signed zeros, what is next to them, and infinities: each gives the angle of its quadrant."""
    ti.init(**options)
    tiny = float(np.finfo(numpy_type).smallest_subnormal)
    sizes = [0.0, tiny, 1e-40, 1e-30, 1.0, 1e30, math.inf]
    y, x = np.meshgrid(*[np.array([sign * size for size in sizes for sign in (1, -1)])] * 2)
    a, b, found = (ti.field(dtype, y.size) for _ in range(3))

    @ti.kernel
    def apply():
        for i in found:
            found[i] = ti.atan2(a[i], b[i])

    a.from_numpy(y.ravel().astype(numpy_type))
    b.from_numpy(x.ravel().astype(numpy_type))
    apply()
    wanted = np.arctan2(a.to_numpy().astype(np.float64), b.to_numpy().astype(np.float64)).astype(numpy_type)
    for one in (found.to_numpy(), np.array([ti.atan2(*pair) for pair in zip(a.to_numpy(), b.to_numpy(), strict=True)])):
        np.testing.assert_allclose(one, wanted, rtol=1e-6 if dtype is ti.f32 else 1e-14)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(wanted))


@pytest.mark.parametrize("name", UNARY)
def test_functions_in_python_scope(name: str) -> None:
    function, reference, arguments, _ = UNARY[name]
    for a in arguments.tolist():
        found = function(a)
        assert type(found) in (int, float)
        assert found == pytest.approx(reference(a), rel=1e-15, abs=1e-300)
    found = function(ti.Vector(arguments))
    assert isinstance(found, ti.Matrix)
    assert found.to_numpy() == pytest.approx(reference(arguments), rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_constants(name: str) -> None:
    """What is known at compile time is computed there, in double precision."""
    function, reference, arguments, _ = UNARY[name]
    a, b = float(arguments[3]), float(arguments[9])
    out = ti.field(ti.f64, shape=3)

    @ti.kernel
    def run():
        out[0] = function(a)
        v = ti.cast(function(ti.Vector([a, b])), ti.f64)
        out[1], out[2] = v[0], v[1]

    run()
    assert out.to_numpy() == pytest.approx([reference(a), reference(a), reference(b)], rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
def test_corners(dtype: Any, numpy_type: Any) -> None:
    values = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, 1e-44], numpy_type)
    x, y = ti.field(dtype, shape=len(values)), ti.field(dtype, shape=(6, len(values)))
    x.from_numpy(values)

    @ti.kernel
    def run():
        for i in x:
            y[0, i] = ti.log2(x[i])
            y[1, i] = ti.exp2(x[i])
            y[2, i] = ti.sinh(x[i])
            y[3, i] = ti.cosh(x[i])
            y[4, i] = ti.math.isnan(x[i])
            y[5, i] = ti.math.isinf(x[i])

    run()
    with np.errstate(all="ignore"):
        wanted = [f(values) for f in (np.log2, np.exp2, np.sinh, np.cosh, np.isnan, np.isinf)]
    # A denormal number may be off by its last bit.
    np.testing.assert_allclose(y.to_numpy(), np.array(wanted), rtol=1e-6, atol=3e-45)


@pytest.mark.parametrize("dtype, numpy_type", [*TYPES, (ti.f16, np.float16)])
def test_logarithms_of_powers_of_two_are_exact(dtype: Any, numpy_type: Any) -> None:
    info = np.finfo(numpy_type)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    x, y, z = ti.field(dtype, len(exponents)), ti.field(dtype, len(exponents)), ti.field(dtype, len(exponents))
    x.from_numpy(np.ldexp(1.0, exponents).astype(numpy_type))

    @ti.kernel
    def run():
        for i in x:
            y[i] = ti.log2(x[i])
            z[i] = ti.exp2(y[i])

    run()
    np.testing.assert_array_equal(y.to_numpy(), exponents)
    np.testing.assert_array_equal(z.to_numpy(), x.to_numpy())


@pytest.mark.parametrize("dtype, numpy_type", [*TYPES, (ti.f16, np.float16)])
def test_frexp(dtype: Any, numpy_type: Any) -> None:
    smallest = np.finfo(numpy_type).smallest_subnormal
    values = np.array([0.0, -0.0, 1.0, -0.75, 3.0, 1000.5, smallest, 3 * smallest, math.inf, -math.inf], numpy_type)
    values = np.append(values, np.finfo(numpy_type).max)
    x, m, n = ti.field(dtype, len(values)), ti.field(dtype, len(values)), ti.field(ti.i32, len(values))
    x.from_numpy(values)

    @ti.kernel
    def run():
        for i in x:
            m[i], n[i] = ti.frexp(x[i])

    run()
    wanted = np.frexp(values)
    np.testing.assert_array_equal(m.to_numpy(), wanted[0])
    np.testing.assert_array_equal(np.signbit(m.to_numpy()), np.signbit(wanted[0]))
    np.testing.assert_array_equal(n.to_numpy(), wanted[1])
    assert ti.frexp(10.0) == (0.625, 4)


def test_functions_of_two_and_more() -> None:
    x, y = ti.field(ti.f64, shape=6), ti.field(ti.f64, shape=(14, 6))
    a = np.array([-2.5, -0.5, 0.1, 0.5, 1.2, 3.0])
    x.from_numpy(a)

    @ti.kernel
    def run():
        for i in x:
            y[0, i] = ti.math.clamp(x[i], -1.0, 1.0)
            y[1, i] = ti.math.mix(x[i], 4.0, 0.25)
            y[2, i] = ti.math.step(0.5, x[i])
            y[3, i] = ti.math.smoothstep(-1.0, 2.0, x[i])
            y[4, i] = ti.math.mod(x[i], 0.7)
            y[5, i] = ti.max(x[i], 0.2, -x[i], 1)
            y[6, i] = ti.min(x[i], 0.2, -x[i], 1)
            y[7, i] = ti.math.atan2(x[i], -1.0)
            y[8, i] = ti.math.pow(ti.abs(x[i]), 1.7)
            y[9, i] = ti.select(x[i] > 0, x[i], 5.0)
            y[10, i] = ti.raw_mod(x[i], 0.7)
            y[11, i] = ti.max(ti.Vector([x[i], 0.0, -1.0]))
            y[12, i] = ti.floor(x[i], ti.i32) // 2
            y[13, i] = ti.round(x[i] * 2, dtype=ti.i32)

    run()
    t = np.clip((a + 1) / 3, 0, 1)
    wanted = [
        np.clip(a, -1, 1),
        0.75 * a + 1,
        a >= 0.5,
        t * t * (3 - 2 * t),
        np.mod(a, 0.7),
        np.maximum(np.abs(a), 1),
        np.minimum(-np.abs(a), 0.2),
        np.arctan2(a, -1),
        np.abs(a) ** 1.7,
        np.where(a > 0, a, 5),
        np.fmod(a, 0.7),
        np.maximum(a, 0),
        np.floor(a).astype(int) // 2,
        np.round(a * 2),
    ]
    np.testing.assert_allclose(y.to_numpy(), np.array(wanted, float), rtol=1e-14, atol=1e-15)
    for k, v in enumerate(a.tolist()):
        python = [
            ti.math.clamp(v, -1.0, 1.0),
            ti.math.mix(v, 4.0, 0.25),
            ti.math.step(0.5, v),
            ti.math.smoothstep(-1.0, 2.0, v),
            ti.math.mod(v, 0.7),
            ti.max(v, 0.2, -v, 1),
            ti.min(v, 0.2, -v, 1),
            ti.math.atan2(v, -1.0),
            ti.math.pow(ti.abs(v), 1.7),
            ti.select(v > 0, v, 5.0),
            ti.raw_mod(v, 0.7),
            ti.max(ti.Vector([v, 0.0, -1.0])),
            ti.floor(v, ti.i32) // 2,
            ti.round(v * 2, dtype=ti.i32),
        ]
        assert python == pytest.approx([float(w[k]) for w in wanted], rel=1e-14, abs=1e-15)


INTEGERS = [ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64]


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_bits_of_integers(dtype: Any) -> None:
    values = sorted({dtype.wrap(v) for v in (0, 1, 2, 3, 7, 100, 2**15, 2**31 - 1, 2**63, -1, -2, -100)})
    x, y = ti.field(dtype, shape=len(values)), ti.field(ti.i64, shape=(3, len(values)))
    x.from_numpy(np.array(values, f"{dtype.kind}{dtype.size}"))

    @ti.kernel
    def run():
        for i in x:
            y[0, i] = ti.math.popcnt(x[i])
            y[1, i] = ti.math.clz(x[i])
            y[2, i] = ti.bit_shr(x[i], 2)

    run()
    bits = [v & ((1 << dtype.bits) - 1) for v in values]
    wanted = [[b.bit_count() for b in bits], [dtype.bits - b.bit_length() for b in bits]]
    assert y.to_numpy()[:2].tolist() == wanted
    shifted = [dtype.wrap(b >> 2) for b in bits]
    assert y.to_numpy()[2].tolist() == [ti.i64.wrap(s) for s in shifted]


def test_bits_in_python_scope() -> None:
    assert (ti.math.popcnt(7), ti.math.clz(7), ti.math.popcnt(-1), ti.math.clz(0)) == (3, 29, 32, 32)
    assert ti.math.clz(np.uint8(1)) == 7
    assert ti.bit_shr(-1, 28) == 15
    assert ti.bit_cast(1.0, ti.i32) == 0x3F800000
    assert ti.bit_cast(0x3F800000, ti.f32) == 1.0
    assert ti.cast(-2.7, ti.i32) == -2
    assert ti.cast(1e20, ti.i32) == 2**31 - 1
    assert ti.cast(math.nan, ti.i64) == 0
    assert ti.cast(300, ti.u8) == 44
    with pytest.raises(ti.errors.FieldError, match="same width"):
        ti.bit_cast(1.0, ti.i64)


PAIRS = [(ti.f32, ti.i32), (ti.f32, ti.u32), (ti.f64, ti.i64), (ti.f64, ti.u64), (ti.f16, ti.i16), (ti.f16, ti.u16)]


@pytest.mark.parametrize("real, integer", PAIRS, ids=repr)
def test_bit_cast(real: Any, integer: Any) -> None:
    values = np.array([1.0, -2.5, 0.0, -0.0, math.inf, 1e-5], f"f{real.size}")
    x, bits, back = ti.field(real, shape=6), ti.field(integer, shape=6), ti.field(real, shape=6)
    x.from_numpy(values)

    @ti.kernel
    def run():
        for i in x:
            bits[i] = ti.bit_cast(x[i], integer)
            back[i] = ti.bit_cast(bits[i], real)

    run()
    np.testing.assert_array_equal(bits.to_numpy(), values.view(f"{integer.kind}{integer.size}"))
    np.testing.assert_array_equal(back.to_numpy(), values)


def test_functions_in_f16() -> None:
    values = np.array([0.1, 0.5, 1.0, 1.9], np.float16)
    x, y = ti.field(ti.f16, shape=4), ti.field(ti.f16, shape=(6, 4))
    x.from_numpy(values)

    @ti.kernel
    def run():
        for i in x:
            y[0, i] = ti.sin(x[i])
            y[1, i] = ti.exp(x[i])
            y[2, i] = ti.sqrt(x[i])
            y[3, i] = ti.sinh(x[i])
            y[4, i] = ti.math.mix(x[i], ti.f16(2.0), ti.f16(0.5))
            y[5, i] = ti.log2(x[i])

    run()
    a = values.astype(float)
    wanted = [np.sin(a), np.exp(a), np.sqrt(a), np.sinh(a), a / 2 + 1, np.log2(a)]
    np.testing.assert_allclose(y.to_numpy().astype(float), wanted, rtol=5e-3, atol=1e-3)


DIFFERENTIABLE = [
    *FUNCTIONS_OF_ONE.values(), ti.atan, ti.sinh, ti.cosh, ti.exp2, ti.log2, ti.log10, ti.abs, ti.math.fract,
    ti.math.radians, ti.math.degrees, ti.math.erf, ti.math.erfc,
]  # fmt: skip


@pytest.mark.parametrize("function", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_derivatives(function: Any) -> None:
    points = np.array([0.11, 0.3, 0.49, 0.72, 0.9])
    if function in (ti.sinh, ti.cosh, ti.log2, ti.exp2, ti.atan):
        points = np.concatenate([points, [1.7, 3.2, 11.0]])
    x = ti.field(ti.f64, shape=len(points), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        for i in x:
            loss[None] += function(x[i])

    x.from_numpy(points)
    with ti.ad.Tape(loss):
        run()
    h = 1e-5
    wanted = [(function(v + h) - function(v - h)) / (2 * h) for v in points.tolist()]
    assert x.grad.to_numpy() == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
def test_the_error_function_in_all_of_its_range(dtype: Any, numpy_type: Any) -> None:
    """Against Python's own, whose small numbers have all digits; at NaN and infinities, too. Derivatives are exact."""
    points = np.concatenate([np.linspace(-9, 9, 4001), [-np.inf, 0.46875, 4.0, 20.0, np.inf, np.nan]])
    x, erf, erfc = (ti.field(dtype, shape=len(points), needs_grad=True) for _ in range(3))
    x.from_numpy(points.astype(numpy_type))

    @ti.kernel
    def run():
        for i in x:
            erf[i], erfc[i] = ti.math.erf(x[i]), ti.math.erfc(x[i])

    run()
    for field, reference in ((erf, math.erf), (erfc, math.erfc)):
        wanted = np.array([reference(v) for v in x.to_numpy().astype(float)])
        tolerance = {"rtol": 6 * float(np.finfo(numpy_type).eps), "atol": float(np.finfo(numpy_type).tiny)}
        np.testing.assert_allclose(field.to_numpy().astype(float), wanted, **tolerance)
    erf.grad.fill(1.0)
    erfc.grad.fill(-1.0)
    run.grad()
    with np.errstate(under="ignore"):
        wanted = 4 / math.sqrt(math.pi) * np.exp(-(x.to_numpy().astype(float) ** 2))
    tolerance = {"rtol": 100 * float(np.finfo(numpy_type).eps), "atol": float(np.finfo(numpy_type).tiny)}
    np.testing.assert_allclose(x.grad.to_numpy().astype(float), wanted, **tolerance)


def test_second_derivatives_of_the_error_function() -> None:
    points = np.array([-3.0, -0.4, 0.0, 0.3, 0.7, 2.0, 5.0])

    @ti.kernel
    def total(x: ti.types.ndarray(ti.f64, 1)) -> ti.f64:
        found = 0.0
        for i in x:
            found += ti.math.erf(x[i]) - 2 * ti.math.erfc(x[i])
        return found

    product = ti.ad.hvp(total)(np.ones(len(points)), points)  # the Hessian is diagonal
    wanted = 3 * -4 * points / math.sqrt(math.pi) * np.exp(-(points**2))
    np.testing.assert_allclose(product, wanted, rtol=1e-13, atol=1e-300)


def test_derivatives_of_shading_functions() -> None:
    points = np.array([0.2, 0.45, 0.7])
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.func
    def f(a: Any, b: Any, c: Any) -> Any:
        v, n = ti.Vector([a, b, c]), ti.math.normalize(ti.Vector([b, 1.0 + c, a]))
        w = ti.math.refract(ti.math.normalize(v), n, 0.8) + ti.math.reflect(v, n)
        m, _ = ti.frexp(a * b)
        return (
            w.dot(v)
            + ti.math.smoothstep(0.0, 1.0, a)
            + ti.math.mix(a, b, c)
            + ti.math.clamp(a, 0.3, c)
            + ti.math.distance(v, n)
            + m
        )

    @ti.kernel
    def run():
        loss[None] += f(x[0], x[1], x[2])

    x.from_numpy(points)
    with ti.ad.Tape(loss):
        run()
    assert loss[None] == pytest.approx(f(*points.tolist()), rel=1e-14)
    wanted = []
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-5
        wanted.append((f(*(points + step).tolist()) - f(*(points - step).tolist())) / 2e-5)
    assert x.grad.to_numpy() == pytest.approx(wanted, rel=1e-7)


#: Functions that have a meaning in kernels only: what runs there, or belongs to a loop.
KERNEL_ONLY = {
    "assume_in_range", "block_local", "cache_read_only", "loop_unique", "no_activate", "stop_grad",
    "atomic_add", "atomic_and", "atomic_max", "atomic_min", "atomic_mul", "atomic_or", "atomic_sub", "atomic_xor",
    "loop_config", "randn", "random",
    "activate", "append", "deactivate", "is_active", "rescale_index",
}  # fmt: skip


def test_every_function_works_in_python_scope() -> None:
    missing = set()
    for name, function in FUNCTIONS.items():
        if not hasattr(ti, name):
            assert name in INNER
        elif function._python is None:
            missing.add(name)
    assert missing == KERNEL_ONLY
    with pytest.raises(ti.TaichiSyntaxError, match="only be used in a kernel"):
        ti.randn()


def test_random_normal_numbers() -> None:
    n = 200_000
    x = ti.field(ti.f32, shape=n)

    @ti.kernel
    def run():
        for i in x:
            x[i] = ti.randn()

    run()
    a = x.to_numpy().astype(float)
    # Five standard errors of the first four moments of the normal distribution.
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((a**power).mean() - moment) < 5 * math.sqrt(spread / n)
