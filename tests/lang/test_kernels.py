"""Arguments, results and device functions."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelTypeError


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("i8", [-128, 127]),
        ("i16", [-32768, 7]),
        ("i32", [-(2**31), 2**31 - 1]),
        ("i64", [-(2**63), 2**63 - 1]),
        ("u8", [0, 255]),
        ("u16", [0, 65535]),
        ("u32", [0, 2**32 - 1]),
        ("u64", [0, 2**64 - 1]),
        ("f32", [1.5, -0.0]),
        ("f64", [0.1, 1e300]),
    ],
)
def test_scalars_go_through(name: str, values: list[Any]) -> None:
    dtype = getattr(ti, name)

    @ti.kernel
    def run(a: dtype) -> dtype:
        return a

    for value in values:
        assert run(value) == value
        assert isinstance(run(value), float if name[0] == "f" else int)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("i8", 128),
        ("i8", -129),
        ("u8", -1),
        ("i32", 2**31),
        ("i64", 2**63),
        ("u64", -1),
        ("i32", 1.5),
        ("i32", "1"),
        ("f32", "1.0"),
        ("f32", None),
        ("i32", None),
        ("f64", [1.0]),
        ("f32", 1j),
    ],
)
def test_bad_arguments(name: str, bad: Any) -> None:
    dtype = getattr(ti, name)

    @ti.kernel
    def run(other: ti.f32, a: dtype) -> ti.f32:
        return other

    with pytest.raises(KernelTypeError, match=rf"argument 'a' of kernel 'run' must be a number of type {name}"):
        run(1, bad)
    assert run(2, 1) == 2


def test_numpy_scalars_are_arguments() -> None:
    @ti.kernel
    def run(a: ti.i32, b: ti.f32) -> ti.f32:
        return a + b

    assert run(np.int64(3), np.float32(0.5)) == 3.5
    assert run(np.uint8(3), np.float64(0.5)) == 3.5
    assert run(True, 1) == 2


def test_keywords_and_defaults() -> None:
    @ti.kernel
    def run(a: ti.i32, b: ti.i32 = 20, c: ti.i32 = 300) -> ti.i32:
        return a + b + c

    assert run(1) == 321
    assert run(1, 2) == 303
    assert run(1, c=3) == 24
    assert run(b=0, a=5) == 305
    for bad in (lambda: run(), lambda: run(1, 2, 3, 4), lambda: run(1, a=1), lambda: run(1, d=1)):
        with pytest.raises(KernelTypeError):
            bad()


def test_vector_and_matrix_arguments_and_results() -> None:
    vec3 = ti.types.vector(3, ti.f32)
    mat = ti.types.matrix(2, 2, ti.f64)

    @ti.kernel
    def cross(a: vec3, b: vec3) -> vec3:
        return a.cross(b)

    @ti.kernel
    def square(m: mat) -> mat:
        return m @ m

    a, b = np.array([1.0, 2, 3]), np.array([0.5, -1, 2])
    np.testing.assert_allclose(np.array(cross(ti.Vector(a), ti.Vector(b))), np.cross(a, b), rtol=1e-6)
    np.testing.assert_allclose(np.array(cross([1, 2, 3], b)), np.cross(a, b), rtol=1e-6)
    m = np.array([[1.0, 2], [3, 4]])
    np.testing.assert_allclose(np.array(square(ti.Matrix(m))), m @ m)
    for bad in ([1, 2], 3, "abc", [[1, 2, 3]]):
        with pytest.raises(KernelTypeError):
            cross(a, bad)


def test_several_results() -> None:
    @ti.kernel
    def run(a: ti.i32) -> tuple[ti.i32, ti.f32]:
        return a // 2, a / 2

    assert run(7) == (3, 3.5)


def test_results_are_converted_to_the_annotation() -> None:
    @ti.kernel
    def run(a: ti.f32) -> ti.i32:
        return ti.cast(a, ti.i32)

    assert run(2.9) == 2


def test_a_missing_annotation_is_an_error() -> None:
    @ti.kernel
    def run(a):
        print(a)

    with pytest.raises(KernelTypeError, match="parameter 'a' of kernel 'run' needs a type annotation"):
        run(1)


def test_templates_of_funcs() -> None:
    x = ti.field(ti.i32, shape=3)

    @ti.func
    def put(target: ti.template(), i, value):
        target[i] = value

    @ti.func
    def bump(a: ti.template()):
        a += 10

    @ti.kernel
    def run() -> ti.i32:
        for i in range(3):
            put(x, i, i * i)
        s = 1
        bump(s)
        return s

    assert run() == 11
    assert x.to_numpy().tolist() == [0, 1, 4]


def test_func_arguments_are_passed_by_value() -> None:
    @ti.func
    def change(a):
        a += 10
        return a

    @ti.kernel
    def run() -> ti.i32:
        s = 1
        t = change(s)
        return s * 100 + t

    assert run() == 111


def test_funcs_return_tuples_and_vectors() -> None:
    @ti.func
    def both(a, b=3):
        return a + b, ti.Vector([a, b])

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s, v = both(a)
        t, w = both(b=a, a=1)
        return s * 1000 + v[1] * 100 + t * 10 + w.x

    assert run(2) == 5331


def test_a_func_runs_in_python() -> None:
    @ti.func
    def scaled(a):
        return a * 3

    assert scaled(5) == 15
