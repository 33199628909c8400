"""A number that does not fit the type of the memory that it goes to is refused by name, wherever it enters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelTypeError


@ti.kernel
def takes_number(a: ti.f32) -> ti.f32:
    return a


@ti.kernel
def takes_vector(a: ti.types.vector(2, ti.f32)) -> ti.f32:
    return a[0]


pair = ti.types.struct(a=ti.f32, v=ti.types.vector(2, ti.f32), n=ti.i8)


@ti.kernel
def takes_struct(p: pair) -> ti.f32:
    return p.a + p.v[1]


def _set(target: Any, key: Any, value: Any) -> None:
    target[key] = value


def _struct(**members: Any) -> Any:
    return pair(**{"a": 0.0, "v": [0.0, 0.0], "n": 0, **members})


def _change(**members: Any) -> None:
    held = _struct()
    for name, value in members.items():
        setattr(held, name, value)


#: Where a number goes to memory of f32, and the name in the message.
FLOATS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "element": (lambda v: _set(ti.field(ti.f32, 2, name="x"), 0, v), "'x'"),
    "element, NumPy": (lambda v: _set(ti.field(ti.f32, 2, name="x"), 0, np.float64(v)), "'x'"),
    "fill": (lambda v: ti.field(ti.f32, 2, name="x").fill(v), "'x'"),
    "from_numpy": (lambda v: ti.field(ti.f32, 2, name="x").from_numpy(np.array([0.0, v])), "'x'"),
    "vector element": (lambda v: _set(ti.Vector.field(2, ti.f32, 2, name="x"), 0, [0.0, v]), "'x'"),
    "vector fill": (lambda v: ti.Vector.field(2, ti.f32, 2, name="x").fill([v, 0.0]), "'x'"),
    "component": (lambda v: _set(ti.Vector.field(2, ti.f32, 2, name="x")[1], 0, v), "'x'"),
    "component field": (lambda v: ti.Vector.field(2, ti.f32, 2, name="x").get_scalar_field(1).fill(v), "'x'"),
    "matrix element": (lambda v: _set(ti.Matrix.field(1, 2, ti.f32, 2, name="x"), 0, [[0.0, v]]), "'x'"),
    "ndarray element": (lambda v: _set(ti.ndarray(ti.f32, 2, name="x"), 0, v), "'x'"),
    "ndarray fill": (lambda v: ti.ndarray(ti.f32, 2, name="x").fill(v), "'x'"),
    "vector ndarray": (lambda v: _set(ti.Vector.ndarray(2, ti.f32, 2, name="x"), 0, [v, v]), "'x'"),
    "member": (lambda v: _struct(a=v), "'a'"),
    "vector member": (lambda v: _struct(v=[0.0, v]), "'v'"),
    "assigned member": (lambda v: _change(a=v), "'a'"),
    "struct element": (lambda v: _set(pair.field(2, name="p"), 0, {"a": v, "v": [0.0, 0.0], "n": 1}), "'p.a'"),
    "member field": (lambda v: pair.field(2, name="p").a.fill(v), "'p.a'"),
    "argument": (takes_number, "'a'"),
    "vector argument": (lambda v: takes_vector([0.0, v]), "'a'"),
    "struct argument": (lambda v: takes_struct({"a": 0.0, "v": [v, 0.0], "n": 0}), "'v'"),
    "vector type": (lambda v: ti.types.vector(2, ti.f32)(0.0, v), "f32"),
    "vector of a type": (lambda v: ti.Vector([0.0, v], dt=ti.f32), "f32"),
    "matrix of a type": (lambda v: ti.Matrix([[0.0, v]], dt=ti.f32), "f32"),
}

#: Where a number goes to memory of i8.
INTEGERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "element": (lambda v: _set(ti.field(ti.i8, 2, name="x"), 0, v), "'x'"),
    "element, NumPy": (lambda v: _set(ti.field(ti.i8, 2, name="x"), 0, np.int64(v)), "'x'"),
    "element, float": (lambda v: _set(ti.field(ti.i8, 2, name="x"), 0, float(v)), "'x'"),
    "fill": (lambda v: ti.field(ti.i8, 2, name="x").fill(v), "'x'"),
    "from_numpy": (lambda v: ti.field(ti.i8, 2, name="x").from_numpy(np.array([0, v])), "'x'"),
    "vector element": (lambda v: _set(ti.Vector.field(2, ti.i8, 2, name="x"), 0, [0, v]), "'x'"),
    "ndarray element": (lambda v: _set(ti.ndarray(ti.i8, 2, name="x"), 0, v), "'x'"),
    "member": (lambda v: _struct(n=v), "'n'"),
    "assigned member": (lambda v: _change(n=v), "'n'"),
    "struct argument": (lambda v: takes_struct({"a": 0.0, "v": [0.0, 0.0], "n": v}), "'n'"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", FLOATS)
def test_floats(way: str) -> None:
    ti.init()
    put, name = FLOATS[way]
    for fits in (0.5, -3.4028234e38, math.inf, -math.inf, math.nan):
        put(fits)
    for value in (1e300, -3.5e38):
        with pytest.raises((FieldError, KernelTypeError), match="f32") as caught:
            put(value)
        assert name in str(caught.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", INTEGERS)
def test_integers(way: str) -> None:
    ti.init()
    put, name = INTEGERS[way]
    for fits in (0, 127, -128):
        put(fits)
    for value in (128, -1000):
        with pytest.raises(FieldError if "argument" not in way else KernelTypeError) as caught:
            put(value)
        assert name in str(caught.value)


def test_what_is_refused_is_not_written() -> None:
    ti.init()
    x = ti.field(ti.f32, 2)
    x.fill(3.0)
    for refused in (lambda: x.fill(1e300), lambda: x.from_numpy(np.array([1.0, 1e300])), lambda: _set(x, 0, 1e300)):
        with pytest.raises(FieldError, match="too large for f32"):
            refused()
    assert x.to_numpy().tolist() == [3.0, 3.0]
