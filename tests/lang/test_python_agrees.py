"""`ti.init(arch=ti.python)` against machine code: the same faults in the same words, the same prints and random
numbers, the same memory and the same derivatives.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import (
    KernelAssertionError,
    KernelIndexError,
    KernelOverflowError,
    KernelTypeError,
    KernelZeroDivisionError,
    TinoteError,
)


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    yield
    ti.init()


def on_both(text: str, call: str, **options: Any) -> tuple[Any, Any]:
    """What a call gives, or the error that it raises, as plain Python and as machine code."""
    found: list[Any] = []
    for arch in (ti.python, ti.cpu):
        ti.init(arch=arch, **options)
        namespace: dict[str, Any] = {"ti": ti, "np": np, "__name__": "program"}
        run(text, namespace)
        try:
            found.append(eval(call, namespace))
        except TinoteError as error:
            found.append(error)
    return found[0], found[1]


def run(text: str, namespace: dict[str, Any]) -> None:
    linecache.cache["program.py"] = (len(text), None, text.splitlines(keepends=True), "program.py")
    exec(compile(text, "program.py", "exec"), namespace)


FAULTS = {
    "field": ("x = ti.field(ti.f32, (4, 3))", "x[n, 1] = 2.0", "k(4)"),
    "negative": ("x = ti.field(ti.f32, (4, 3))", "x[1, n] += 2.0", "k(-1)"),
    "component": ("x = ti.Vector.field(3, ti.f32, 4)", "x[1][n] = 2.0", "k(3)"),
    "offset": ("x = ti.field(ti.f32, 4, offset=-2)", "x[n] = 2.0", "k(2)"),
    "in a function": ("x = ti.field(ti.f32, 4)\n@ti.func\ndef f(i):\n    return x[i * 2]", "x[0] = f(n)", "k(2)"),
    "local": ("", "v = ti.Vector([1, 2, 3])\n    v[n] = 4\n    print(v)", "k(5)"),
    "local matrix": ("", "m = ti.Matrix([[1, 2, 3], [4, 5, 6]])\n    m[n, 0] = 4\n    print(m)", "k(2)"),
    "local matrix, read": ("", "m = ti.Matrix([[1, 2, 3], [4, 5, 6]])\n    print(m[0, n])", "k(3)"),
    "array": ("", "a[n, 0] = 1.0", "k(3, np.zeros((3, 2), np.float32))"),
    "array of one dimension": ("", "a[n] = 1.0", "k(3, np.zeros(3, np.float32))"),
    "division": ("", "print(7 // n)", "k(0)"),
    "remainder": ("", "print(7 % n)", "k(0)"),
    "vector division": ("", "print(ti.Vector([7, 8]) // ti.Vector([1, n]))", "k(0)"),
    "assertion": ("", "assert n > 3", "k(3)"),
    "assertion with values": ("", 'assert n > 3, f"{n} and {n * 0.1:.2f} and {ti.Vector([n, n + 0.5])}"', "k(3)"),
    "assertion with many values": ("", 'assert n > 3, f"{ti.Vector([n, 1, 2, 3, 4, 5, 6, 7])}"', "k(3)"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_those_of_machine_code(name: str) -> None:
    before, body, call = FAULTS[name]
    rank = 2 if "n, 0" in body else 1
    array = f", a: ti.types.ndarray(dtype=ti.f32, ndim={rank})" if "np" in call else ""
    text = f"{before}\n@ti.kernel\ndef k(n: ti.i32{array}):\n    {body}\n"
    python, native = on_both(text, call)
    assert isinstance(native, KernelIndexError | KernelZeroDivisionError | KernelAssertionError)
    assert type(python) is type(native)
    assert str(python) == str(native)
    assert python.span == native.span


OVERFLOWS = {
    "add": "return n + 1",
    "negative": "return -(n + 1 - 2 * n - 2)",
    "power": "return n ** 2",
    "shift": "return n << 1",
    "atomic": "x[None] += n\n    x[None] += n\n    return 0",
    "vector": "v = ti.Vector([1, n]) * 2\n    return v[0]",
    "quotient": "return (-n - 1) // (n - n - 1)",
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_overflow_is_reported_in_debug_mode(name: str) -> None:
    text = f"x = ti.field(ti.i32, ())\n@ti.kernel\ndef k(n: ti.i32) -> ti.i32:\n    {OVERFLOWS[name]}\n"
    python, native = on_both(text, "k(2**31 - 1)", debug=True)
    assert isinstance(native, KernelOverflowError)
    assert type(python) is type(native)
    assert str(python) == str(native)
    wrapped, machine = on_both(text, "k(2**31 - 1)")
    assert wrapped == machine


@pytest.mark.parametrize("value", ["'text'", "1e400", "2**40", "None"])
def test_arguments_that_do_not_fit(value: str) -> None:
    text = "@ti.kernel\ndef k(n: ti.i32) -> ti.i32:\n    return n\n"
    python, native = on_both(text, f"k({value})")
    assert isinstance(python, KernelTypeError)
    assert str(python) == str(native)


def test_division_by_zero_is_zero_where_nothing_is_checked() -> None:
    text = "@ti.kernel\ndef k(n: ti.i32) -> ti.i32:\n    return 7 // n + 5 % n\n"
    assert on_both(text, "k(0)", bounds_check=False) == (0, 0)


def test_indices_are_checked_even_then() -> None:
    ti.init(arch=ti.python, bounds_check=False)
    x = ti.field(ti.f32, 4)

    @ti.kernel
    def write(n: ti.i32):
        x[n] = 1.0

    for index in (-1, 4, 10**9):
        with pytest.raises(KernelIndexError):
            write(index)


def test_prints_are_those_of_machine_code(capsys: pytest.CaptureFixture[str]) -> None:
    text = """
@ti.kernel
def k(n: ti.i32, x: ti.f32):
    m = ti.Matrix([[x, 1.0], [2.0, 3.0]])
    for i in range(1):
        print("line", n, x, n > 2, m, f"{x:.3f} {n:5d}", ti.cast(n, ti.u8), ti.cast(x, ti.f16), x / 0.0)
        print(ti.Vector([n, i]))
"""
    on_both(text, "k(-3, 0.1)", num_threads=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[:2] == lines[2:]


def test_random_numbers_are_those_of_machine_code() -> None:
    text = """
x = ti.field(ti.f32, (5, 3))
@ti.kernel
def draw():
    for i, j in x:
        x[i, j] = ti.random() + ti.random()
    x[0, 0] = ti.randn()
def both():
    draw()
    draw()
    return x.to_numpy().tolist()
"""
    python, native = on_both(text, "both()", random_seed=7)
    np.testing.assert_allclose(python, native, rtol=1e-6)
    assert len(np.unique(python)) == 15


def test_every_layout_and_kind_of_memory() -> None:
    """Machine code and plain Python read and write the same bytes."""
    text = """
a, b = ti.field(ti.f16), ti.Vector.field(2, ti.i8)
ti.root.dense(ti.ij, (3, 2)).place(a, b)
c = ti.Matrix.field(2, 2, ti.f64, (3, 2), layout=ti.Layout.SOA)
d = ti.field(ti.u1, (3, 2), order="ji")
e = ti.field(ti.i64, (3, 2), offset=(-1, 5))
P = ti.types.struct(mass=ti.f32, pos=ti.types.vector(2, ti.f32))
s = P.field(shape=(3, 2))
n = ti.Vector.ndarray(3, ti.f32, (3, 2))
array = np.arange(6, dtype=np.int16).reshape(3, 2)
@ti.kernel
def k(n: ti.types.ndarray(dtype=ti.math.vec3, ndim=2), q: ti.types.ndarray(dtype=ti.i16, ndim=2)) -> ti.i32:
    most = 0
    for i, j in a:
        a[i, j] = i / 3 + j
        b[i, j] = ti.Vector([i * 100, -j])
        b[i, j][1] += 7
        c[i, j] = ti.Matrix([[i, j], [i * j, 0.1]])
        c[i, j][0, 1] -= 3
        d[i, j] = (i + j) % 2 == 1
        e[i - 1, j + 5] = ti.cast(i - j, ti.i64) + 2**40
        s[i, j].mass = i
        s[i, j].pos += ti.Vector([0.5, j])
        n[i, j] = ti.Vector([i, j, 0.25]) + a[i, j]
        q[i, j] *= 3 - j
        ti.atomic_max(most, q[i, j])
    return most
def contents():
    most = k(n, array)
    fields = [a, b, c, d, e, s.get_member_field("mass"), s.get_member_field("pos"), n]
    return [most, array.tolist(), *[f.to_numpy().tolist() for f in fields]]
"""
    python, native = on_both(text, "contents()", fast_math=False)
    assert python == native
    assert python[0] == 12


def test_gradients_tapes_and_tangents() -> None:
    text = """
x = ti.field(ti.f64, 5, needs_grad=True, needs_dual=True)
y = ti.field(ti.f64, 5, needs_grad=True, needs_dual=True)
loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
a = ti.ndarray(ti.f64, 5, needs_grad=True)
@ti.kernel
def step(n: ti.i32, a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
    for i in x:
        s = x[i]
        for j in range(n):
            s = ti.sin(s) * a[i] + j * s
            if s > 2.0:
                s -= 1.5
        y[i] = s * s
        x[i] = s
@ti.kernel
def measure():
    for i in y:
        loss[None] += y[i] * (i + 1)
def gradients():
    x.from_numpy(np.linspace(0.1, 0.9, 5)); a.from_numpy(np.linspace(1, 2, 5))
    with ti.ad.Tape(loss):
        step(3, a); step(2, a); measure()
    found = [loss[None], x.grad.to_numpy().tolist(), a.grad.to_numpy().tolist()]
    loss[None] = 0; x.from_numpy(np.linspace(0.1, 0.9, 5))
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1, 0, 2, 0, -1]):
        step(3, a); measure()
        found.append(loss.dual[None])
    loss.grad[None] = 1.0
    measure.grad()
    return [*found, y.grad.to_numpy().tolist()]
"""
    python, native = on_both(text, "gradients()", default_fp=ti.f64)
    for found, wanted in zip(python, native, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert any(python[1])
