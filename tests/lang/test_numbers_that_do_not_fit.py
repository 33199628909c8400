"""A number that does not fit the type of the memory that it goes to is refused by name, wherever it enters."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelTypeError

pytestmark = pytest.mark.optimised


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


#: How a number V is known when a kernel is compiled: what stands before the kernel, and the expression in it.
KNOWN: dict[str, tuple[str, str]] = {
    "literal": ("", "V"),
    "global": ("G = V", "G"),
    "static": ("G = V", "ti.static(G)"),
    "static literal": ("", "ti.static(V)"),
    "default argument": ("@ti.func\ndef d(a=V):\n    return a", "d()"),
    "default of a plain function": ("def d(a=V):\n    return a", "d()"),
    "template argument": ("@ti.func\ndef d(a: ti.template()):\n    return a", "d(V)"),
    "argument": ("@ti.func\ndef d(a):\n    return a", "d(V)"),
    "closure": ("def make(b):\n    @ti.func\n    def d():\n        return b\n    return d\nd = make(V)", "d()"),
    "vector": ("", "ti.Vector([V, 0])[0]"),
    "vector of the module": ("G = ti.Vector([V, 0])", "G[0]"),
    "list": ("G = [V, 0]", "G[0]"),
    "dictionary": ("G = {'a': V}", "G['a']"),
    "array": ("G = np.array([V, 0])", "G[0]"),
    "attribute": ("class C:\n    a = V", "C.a"),
    "computed": ("G = V", "-(-G) * 1"),
    "largest": ("G = V", "ti.max(G, 0)"),
}
#: Where it goes to a type: statements of the kernel, in which E is the expression and T the type.
TARGETS = {
    "element": "x[0] = E",
    "added": "x[0] += E",
    "greatest": "ti.atomic_max(x[0], E)",
    "vector element": "v[0] = ti.Vector([E, 0])",
    "component": "v[0][1] = E",
    "variable": "a = x[1]\n    a = E\n    x[0] = a",
    "declared": "a: ti.T = E\n    x[0] = a",
    "cast": "x[0] = ti.cast(E, ti.T)",
    "call of the type": "x[0] = ti.T(E)",
    "typed vector": "v[0] = ti.types.vector(2, ti.T)(E, 0)",
    "parameter": "x[0] = taking(E)",
    "result": "x[0] = giving(E)",
    "member": "x[0] = pair(E).a",
    "fill": "x.fill(E)",
}
UNFIT = {"f32": "1e300", "f16": "1e6", "i32": "2**40", "u8": "300", "i8": "1e10"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", UNFIT)
def test_what_is_known_at_compile_time(dtype: str, target: str) -> None:
    """Right, or refused with the line; negative integers stand for their bits in unsigned types."""
    ti.init()
    space: dict[str, Any] = {"ti": ti, "np": np, "x": ti.field(getattr(ti, dtype), 2)}
    space["v"] = ti.Vector.field(2, getattr(ti, dtype), 2)
    space["pair"] = ti.types.struct(a=getattr(ti, dtype))
    functions = "@ti.func\ndef taking(a: ti.T):\n    return a\n@ti.func\ndef giving(a) -> ti.T:\n    return a\n"
    for way, (before, expression) in KNOWN.items():
        if target == "vector element" and dtype == "i8":
            continue  # a vector of floats is converted when the kernel runs, with a warning

        def compiled(number: str, before: str = before, expression: str = expression) -> Any:
            text = f"{functions}{before}\n@ti.kernel\ndef k():\n    {TARGETS[target].replace('E', expression)}\n"
            text = text.replace("ti.T", f"ti.{dtype}").replace("Vector", "\0").replace("V", number)
            text = text.replace("\0", "Vector")
            file = f"<{dtype} {target} {number}>"
            linecache.cache[file] = (len(text), None, text.splitlines(True), file)
            exec(compile(text, file, "exec"), space)
            return space["k"]

        with pytest.raises(KernelTypeError, match=f"does not fit into {dtype}|is too large for {dtype}") as caught:
            compiled(UNFIT[dtype])()
        assert caught.value.span.chain()[-1].line > 0, way
        space["x"].fill(0)
        compiled("3.0" if dtype[0] == "f" else "3")()
        held = 3 in (space["x"][0], *space["v"][0])
        assert held, way


def test_negative_integers_stand_for_their_bits_in_unsigned_types() -> None:
    ti.init()

    @ti.kernel
    def run() -> ti.u8:
        return -1

    assert run() == 255
