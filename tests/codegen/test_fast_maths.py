"""The inline functions of fast maths: how far from the exact value, over the whole of f32."""

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


def apply(name: str, values: np.ndarray, t: str = "f32") -> np.ndarray:
    module = generate(lowered(TEXT.format(name=name, t=t, n=COUNT)), Options())
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


RANGES = {"exp": (-103.9, 88.7), "log": (0.0, 3.4e38), "sin": (-1e6, 1e6), "cos": (-1e6, 1e6), "tanh": (-12.0, 12.0)}


@pytest.mark.parametrize("name", RANGES)
def test_error_bound(name: str) -> None:
    low, high = RANGES[name]
    x = samples(low, high)
    x = x[x != 0]
    worst = errors(apply(name, x), getattr(np, name)(x.astype(np.float64))).max()
    assert worst <= 2, worst


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_far_angles(name: str) -> None:
    """Right where f64 still tells the angle, NaN beyond; multiples of a quarter turn lose no digits."""
    x = np.float32(np.random.default_rng(3).uniform(1e6, 1e12, 5000))
    assert errors(apply(name, x), getattr(np, name)(x.astype(np.float64))).max() <= 2
    near = (np.arange(-5000, 5000) * (math.pi / 2)).astype(np.float32)
    assert errors(apply(name, near), getattr(np, name)(near.astype(np.float64))).max() <= 2
    assert np.isnan(apply(name, np.float32([2e15, -3e38, math.inf, math.nan]))).all()


def test_corners() -> None:
    x = np.float32([0.0, math.inf, -math.inf, math.nan, 89.0, -104.5, 1e-45, -1.0, 1e38, 88.9, -87.5])
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "tanh"):
            found, wanted = apply(name, x), getattr(np, name)(x.astype(np.float64)).astype(np.float32)
            np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-44, err_msg=name)


@pytest.mark.parametrize("name", RANGES)
def test_half_precision_goes_through_f32(name: str) -> None:
    x = np.float16(np.linspace(0.01, 9, 1000))
    wanted = getattr(np, name)(x.astype(np.float64)).astype(np.float16)
    np.testing.assert_allclose(
        apply(name, x, "f16").astype(np.float64), wanted.astype(np.float64), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("name", RANGES)
def test_loops_vectorise(name: str) -> None:
    assert re.search(r"store <\d+ x float>", optimise(text_of(name, "f32")))
