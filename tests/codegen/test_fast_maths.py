"""The inline functions of fast maths: how far from the exact value, over the whole of f32 and f64."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.codegen.native import lowered
from tinote.compiler.codegen.llvm.module import Options, generate
from tinote.runtime.jit import compile_module, optimise
from tinote.runtime.launch import Launcher

COUNT = 1 << 16
TEXT = """\
buffer @x: {t} field ({n})
buffer @y: {t} field ({n})
func f():
  for parallel %i: i32 in 0i32 .. {n}i32:
    %v: {t} = load @x[%i]
    %w: {t} = {name} %v
    store @y[%i], %w
"""


def text_of(name: str, t: str) -> str:
    return generate(lowered(TEXT.format(name=name, t=t, n=COUNT)), Options()).text


def apply(name: str, values: np.ndarray, t: str = "f32", *, fused: bool = True) -> np.ndarray:
    module = generate(lowered(TEXT.format(name=name, t=t, n=COUNT)), Options(fused=fused))
    launcher = Launcher(compile_module(module.text, entry_points=("entry",)), "entry", module.layout.slots)
    padded, out = np.resize(values, COUNT), np.empty(COUNT, values.dtype)
    block = launcher.acquire()
    block.integers[0], block.integers[1] = padded.ctypes.data, out.ctypes.data
    launcher.run(block)
    launcher.release(block)
    return out[: len(values)]


def samples(low: float, high: float) -> np.ndarray:
    """f32 numbers in [low, high], of every size, of both signs where they occur."""
    random = np.random.default_rng(7)
    bits = random.integers(0, 1 << 32, COUNT // 2, dtype=np.uint64).astype(np.uint32).view(np.float32)
    even = random.uniform(low, high, COUNT // 2).astype(np.float32)
    with np.errstate(invalid="ignore"):
        found = np.concatenate([bits[(bits >= low) & (bits <= high)], even])
    return found


def errors(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """In units of the last place of f32."""
    unit = np.maximum(np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 1e-300))) - 23), 2.0**-149)
    return np.abs(found.astype(np.float64) - exact) / unit


def doubles(low: float, high: float) -> np.ndarray:
    """f64 numbers in [low, high], of every size, of both signs where they occur."""
    random = np.random.default_rng(7)
    bits = random.integers(0, 1 << 63, COUNT // 4, dtype=np.uint64).view(np.float64)
    bits = np.concatenate([bits, -bits])
    with np.errstate(invalid="ignore"):
        return np.concatenate([bits[(bits >= low) & (bits <= high)], random.uniform(low, high, COUNT // 2)])


LARGEST = float(np.finfo(np.float32).max)
RANGES = {
    "exp": (-103.9, 88.7), "log": (0.0, LARGEST), "sin": (-LARGEST, LARGEST), "cos": (-LARGEST, LARGEST),
    "tanh": (-12.0, 12.0),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_error_bound(name: str) -> None:
    low, high = RANGES[name]
    x = samples(low, high)
    x = x[x != 0]
    worst = errors(apply(name, x), getattr(np, name)(x.astype(np.float64))).max()
    assert worst <= 2, worst


@pytest.mark.parametrize(
    "name, ranges, bound",
    [
        ("exp", [(-745.0, 709.7), (-1.0, 1.0)], 1),
        ("log", [(0.0, 1.7e308), (0.5, 2.0)], 1),
        ("tanh", [(-25.0, 25.0), (-1.2, 1.2)], 2.5),
        ("sin", [(-(2.0**30), 2.0**30), (-7.0, 7.0)], 0.8),
        ("cos", [(-(2.0**30), 2.0**30), (-7.0, 7.0)], 0.8),
    ],
)
def test_error_bound_of_f64(name: str, ranges: list[tuple[float, float]], bound: float) -> None:
    for low, high in ranges:
        x = doubles(low, high)
        exact = getattr(np, name)(x.astype(np.longdouble))
        unit = np.spacing(np.abs(exact.astype(np.float64)))
        worst = (np.abs(apply(name, x, "f64") - exact) / unit).max()
        assert worst <= bound, (worst, low, high)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_far_angles(name: str, fused: bool) -> None:
    """Small and far ones next to each other; multiples of a quarter turn, of all sizes, lose no digits."""
    random = np.random.default_rng(3)
    mixed = random.uniform(-7, 7, COUNT) * 10.0 ** random.choice([0, 6, 12, 14, 15, 20, 28, 37], COUNT)
    turns = np.concatenate([np.arange(-5000, 5000) * (math.pi / 2), np.ldexp(math.pi, np.arange(-1, 127))])
    near = turns.astype(np.float32)
    near = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(math.inf))])
    for x in (mixed.astype(np.float32), near, np.float32([16367173 * 2.0**72, 2.0**49, np.nextafter(2.0**49, 0)])):
        assert errors(apply(name, x, fused=fused), getattr(np, name)(x.astype(np.float64))).max() <= 2
    assert np.isnan(apply(name, np.float32([math.inf, -math.inf, math.nan]), fused=fused)).all()


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_f64_near_quarter_turns(name: str) -> None:
    """The nearest numbers to multiples of a quarter turn, where nearly all digits cancel; and beyond the own range."""
    turns = np.unique(np.concatenate([np.arange(1.0, 7000.0), np.floor(np.geomspace(7e3, 6.8e8, 7000))]))
    x = turns * (np.pi / 2)
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.inf), -x, np.geomspace(2.0**29, 1e300, 4000)])
    exact = getattr(np, name)(x.astype(np.longdouble))
    own = np.abs(x) < 1e15  # beyond, the reduction of long doubles itself loses digits
    found = apply(name, x, "f64")
    assert (np.abs(found - exact)[own] / np.spacing(np.abs(exact.astype(np.float64)))[own]).max() <= 1
    np.testing.assert_allclose(found[~own], getattr(np, name)(x[~own]), rtol=1e-15)


def test_corners() -> None:
    x = np.float32([0.0, math.inf, -math.inf, math.nan, 89.0, -104.5, 1e-45, -1.0, 1e38, 88.9, -87.5])
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "tanh"):
            found, wanted = apply(name, x), getattr(np, name)(x.astype(np.float64)).astype(np.float32)
            np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-44, err_msg=name)


def test_corners_of_f64() -> None:
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 709.79, 710.5, -745.2, -708.4, 5e-324, -1.0, 1e308, 22.1])
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "tanh", "sin", "cos"):
            found, wanted = apply(name, x, "f64"), getattr(np, name)(x)
            np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=5e-324, err_msg=name)
            # The sign of a NaN means nothing.
            known = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(wanted)[known], err_msg=name)


@pytest.mark.parametrize("name", RANGES)
def test_half_precision_goes_through_f32(name: str) -> None:
    x = np.float16(np.linspace(0.01, 9, 1000))
    wanted = getattr(np, name)(x.astype(np.float64)).astype(np.float16)
    np.testing.assert_allclose(
        apply(name, x, "f16").astype(np.float64), wanted.astype(np.float64), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("name", RANGES)
def test_loops_vectorise(name: str) -> None:
    assert re.search(r"store <\d+ x (float|i32)>", optimise(text_of(name, "f32")))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "cos"])
def test_loops_of_f64_vectorise(name: str) -> None:
    assert re.search(r"store <\d+ x double>", optimise(text_of(name, "f64")))


@pytest.mark.parametrize("name", ["sin", "mod"])
def test_only_the_variants_that_a_loop_calls_are_compiled(name: str) -> None:
    text = optimise(
        generate(lowered(TEXT.format(name=name, t="f64", n=COUNT).replace("mod %v", "mod %v, 0.7f64")), Options()).text
    )
    defined = set(re.findall(r"define [^@]*@([\w.]+)\.v(\d+)f64\(", text))
    called = set(re.findall(r"call [^@\n]*@(?!llvm)([\w.]+)\.v(\d+)f64\(", text))
    assert defined == called != set()
