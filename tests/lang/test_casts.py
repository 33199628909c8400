"""Conversions between number types, promotion, and the default types."""

import math
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.numbers import FLOATS, filled, numpy_of

pytestmark = pytest.mark.optimised


@pytest.mark.parametrize("target", [ti.i8, ti.u8, ti.i32, ti.u32, ti.i64, ti.u64], ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_float_to_integer_saturates(source: Any, target: Any) -> None:
    values = [
        0.0,
        0.5,
        -0.5,
        1.9,
        -1.9,
        126.5,
        255.5,
        256.0,
        -129.0,
        3e9,
        -3e9,
        1e19,
        -1e19,
        2e20,
        math.inf,
        -math.inf,
        math.nan,
    ]
    x = filled(source, values)
    out = ti.field(target, shape=x.shape)

    @ti.kernel
    def run():
        for i in x:
            out[i] = ti.cast(x[i], target)

    run()
    info = np.iinfo(numpy_of(target))
    low, high = int(info.min), int(info.max)
    stored = [float(v) for v in x.to_numpy()]
    expected = [
        0 if math.isnan(v) else max(low, min(high, int(v))) if math.isfinite(v) else (high if v > 0 else low)
        for v in stored
    ]
    assert out.to_numpy().tolist() == expected


def test_integer_casts_wrap() -> None:
    x = filled(ti.i64, [-1, 255, 256, -129, 2**31, 2**33 + 5, -(2**63)])
    out8, outu8, out32 = ti.field(ti.i8, shape=7), ti.field(ti.u8, shape=7), ti.field(ti.i32, shape=7)

    @ti.kernel
    def run():
        for i in x:
            out8[i] = ti.cast(x[i], ti.i8)
            outu8[i] = ti.cast(x[i], ti.u8)
            out32[i] = ti.cast(x[i], ti.i32)

    run()
    a = x.to_numpy()
    np.testing.assert_array_equal(out8.to_numpy(), a.astype(np.int8))
    np.testing.assert_array_equal(outu8.to_numpy(), a.astype(np.uint8))
    np.testing.assert_array_equal(out32.to_numpy(), a.astype(np.int32))


def test_bit_cast_keeps_bits() -> None:
    @ti.kernel
    def run(a: ti.f32) -> ti.i32:
        return ti.bit_cast(a, ti.i32)

    for value in (0.0, -0.0, 1.0, -2.5, math.inf):
        assert run(value) == int(np.float32(value).view(np.int32))


def test_promotion() -> None:
    """Two integers give the wider one, an integer with a float that float, two floats the wider one."""
    x8, x64, f, d = filled(ti.i8, [100]), filled(ti.i64, [1 << 40]), filled(ti.f32, [1.5]), filled(ti.f64, [1e-12])
    wide = ti.field(ti.i64, shape=3)
    real = ti.field(ti.f64, shape=3)

    @ti.kernel
    def run():
        for i in range(1):
            wide[0] = x64[i] + x8[i]
            wide[1] = x64[i] * 3
            wide[2] = ti.cast(x8[i], ti.i32) * 100
            real[0] = f[i] + d[i]
            real[1] = d[i] * x64[i]
            real[2] = x64[i] + f[i]

    run()
    assert wide.to_numpy().tolist() == [(1 << 40) + 100, 3 << 40, 10000]
    found = real.to_numpy()
    assert found[0] == 1.5 + 1e-12
    assert found[1] == 1e-12 * (1 << 40)
    assert found[2] == float(np.float32(1 << 40) + np.float32(1.5))


def test_default_types_of_literals() -> None:
    @ti.kernel
    def real() -> ti.f64:
        a = 0.1
        return a

    @ti.kernel
    def whole() -> ti.i64:
        a = 2000000000
        return a + a

    assert real() == float(np.float32(0.1))
    assert whole() == 4000000000 - 2**32
    ti.init(default_fp=ti.f64, default_ip=ti.i64)
    assert real() == 0.1
    assert whole() == 4000000000


def test_default_types_of_annotations() -> None:
    ti.init(default_fp=ti.f64, default_ip=ti.i64)

    @ti.kernel
    def run(a: float, b: int) -> float:
        return a + b

    assert run(0.1, 1 << 40) == 0.1 + (1 << 40)
    assert ti.field(float, shape=1).to_numpy().dtype == np.float64
    assert ti.field(int, shape=1).to_numpy().dtype == np.int64


def test_assignment_keeps_the_type_of_the_variable() -> None:
    """A local has the type of its first value; what is assigned later is converted."""

    @ti.kernel
    def run(a: ti.f32) -> ti.f32:
        k = 0
        k = ti.cast(a, ti.i32)
        return k

    assert run(2.75) == 2.0


def test_rounding() -> None:
    values = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6, -2.6]
    x = filled(ti.f32, values)
    out = ti.field(ti.f32, shape=len(values))
    whole = ti.field(ti.i32, shape=(3, len(values)))

    @ti.kernel
    def run():
        for i in x:
            out[i] = ti.round(x[i])
            whole[0, i] = ti.floor(x[i], ti.i32)
            whole[1, i] = ti.ceil(x[i], ti.i32)
            whole[2, i] = int(x[i])

    run()
    np.testing.assert_array_equal(out.to_numpy(), np.round(np.array(values, np.float32)))
    assert whole.to_numpy().tolist() == [
        [math.floor(v) for v in values],
        [math.ceil(v) for v in values],
        [int(v) for v in values],
    ]
