"""Calls: default and keyword arguments, stars, tuples, references, functions as arguments, recursion."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelSyntaxError, KernelTypeError


def test_defaults_and_keywords_of_kernels() -> None:
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def run(a: ti.i32, b: ti.f32 = 2.5, *, c: ti.i32 = 3) -> ti.f32:
        return a + b * c

    @ti.kernel
    def fill(field: ti.template(), value: ti.f32 = 7.0):
        for i in field:
            field[i] = value

    assert (run(1), run(1, c=1), run(b=1.0, a=2), run(1, 2, c=4)) == (8.5, 3.5, 5.0, 9.0)
    fill(field=x)
    assert x.to_numpy().tolist() == [7.0] * 4
    fill(x, value=2)
    assert x.to_numpy().tolist() == [2.0] * 4


def test_defaults_and_keywords_of_functions() -> None:
    @ti.func
    def f(a, b=2, *, c=3):
        return a * 100 + b * 10 + c

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        return f(n) + 1000 * f(1, c=0) + 1_000_000 * f(b=5, a=0)

    assert run(1) == 123 + 120_000 + 53_000_000


def test_stars() -> None:
    @ti.func
    def add(a, b, c):
        return a + b * 10 + c * 100

    @ti.func
    def count(first, *rest, **named):
        s = first + 10 * len(rest)
        for r in ti.static(rest):
            s += r
        return s + named["z"]

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        v = ti.Vector([n, 2, 3])
        named = {"z": 100}
        spread = add(*v) + add(*(1, n), 3)
        return spread + 10_000 * count(n, 2, 3, z=5) + 1_000_000 * count(*v, **named)

    assert run(1) == 321 + 311 + 10_000 * 31 + 1_000_000 * 126


def test_functions_return_tuples() -> None:
    @ti.func
    def split(a):
        return a, a * 2, ti.Vector([a, a + 1])

    @ti.func
    def sign(a):
        if a > 0:
            return 1, a
        return -1, -a

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        p, q, v = split(n)
        t = split(n + 1)
        s, m = sign(-n)
        return p + 10 * q + 100 * v.y + 1000 * t[1] + 100_000 * (s * m)

    assert run(3) == 3 + 60 + 400 + 8000 - 300_000


def test_real_functions_and_references() -> None:
    @ti.real_func
    def magnitude(a: ti.i32) -> ti.i32:
        if a >= 0:
            return a
        return -a

    @ti.real_func
    def swap(a: ti.ref(ti.i32), b: ti.ref(ti.i32)):
        a, b = b, a

    @ti.func
    def forever(a: ti.i32) -> ti.i32:
        return forever(a - 1) if a > 0 else 0

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        p = n
        q = magnitude(n)
        swap(p, q)
        return p * 100 + q

    @ti.kernel
    def recursive(n: ti.i32) -> ti.i32:
        return forever(n)

    assert run(-3) == 300 - 3
    with pytest.raises(KernelSyntaxError, match="calls itself") as caught:
        recursive(3)
    assert "inlined" in caught.value.hint and "real_func" in caught.value.hint


def test_recursion_that_ends_at_compile_time() -> None:
    @ti.func
    def factorial(n: ti.template()):
        if ti.static(n == 0):
            return 1
        return n * factorial(n - 1)

    @ti.func
    def endless(n: ti.template()):
        return endless(n + 1)

    @ti.kernel
    def run() -> ti.i32:
        return factorial(6)

    @ti.kernel
    def bad() -> ti.i32:
        return endless(0)

    assert run() == 720
    with pytest.raises(KernelSyntaxError, match="more than 64 times deep"):
        bad()


@pytest.mark.parametrize(
    ("annotation", "make", "expected"),
    [
        (ti.types.vector(3, ti.f32), lambda a: ti.Vector([a, 2.0, 3.0]), [1.0, 2.0, 3.0]),
        (ti.types.matrix(2, 2, ti.i32), lambda a: ti.Matrix([[a, 2], [3, 4]]), [[1, 2], [3, 4]]),
    ],
)
def test_kernels_return_vectors_and_matrices(annotation: Any, make: Any, expected: Any) -> None:
    maker = ti.func(_make_vector if len(annotation.shape) == 1 else _make_matrix)

    @ti.kernel
    def run(a: ti.i32) -> annotation:
        return maker(a)

    assert run(1).to_list() == expected
    assert run(1).to_numpy().dtype == ("float32" if len(annotation.shape) == 1 else "int32")


def _make_vector(a):
    return ti.Vector([a, 2.0, 3.0])


def _make_matrix(a):
    return ti.Matrix([[a, 2], [3, 4]])


def test_kernels_return_tuples() -> None:
    @ti.kernel
    def run(a: ti.i32) -> tuple[ti.i32, ti.types.vector(2, ti.f64), ti.u1]:
        return a, ti.Vector([a + 0.5, 2.0]), a > 3

    @ti.kernel
    def plain(a: ti.i32) -> (ti.i32, ti.f32):
        return a, a * 0.5

    first, second, third = run(4)
    assert (first, second.to_list(), third) == (4, [4.5, 2.0], True)
    assert plain(3) == (3, 1.5)
    with pytest.raises(KernelTypeError, match="takes 1 argument"):
        plain(1, 2)


def test_functions_as_arguments_assign_what_they_are_given() -> None:
    """A template parameter stands for the caller's variable, also through a function that is itself an argument, a
    method, an item of a static loop, or a local name.
    """

    @ti.func
    def add(i, total: ti.template()):
        total += i

    @ti.func
    def double(i, total: ti.template()):
        total *= 2

    @ti.func
    def each(n, task: ti.template(), total: ti.template()):
        for i in range(n):
            task(i, total)

    @ti.dataclass
    class Weight:
        value: ti.i32

        @ti.func
        def put(self, total: ti.template()):
            total += self.value

        @ti.func
        def put_twice(self, total: ti.template()):
            self.put(total)
            self.put(total=total)

    @ti.data_oriented
    class Sum:
        def __init__(self) -> None:
            self.task = self.add

        @ti.func
        def add(self, i, total: ti.template()):
            total += i

        @ti.func
        def each(self, n, task: ti.template()):
            total = 0
            for _ in range(1):
                inner = 0
                for i in range(n):
                    task(i, inner)
                total += inner
            return total

        @ti.kernel
        def run(self, n: ti.i32) -> ti.i32:
            return self.each(n, self.task)

    @ti.kernel
    def nested(n: ti.i32) -> ti.i32:
        result = 0
        for _ in range(1):
            total = 100
            each(n, add, total)
            result += total
        return result

    @ti.kernel
    def listed() -> ti.i32:
        total = 1
        for f in ti.static([add, double, add]):
            f(3, total)
        chosen = ti.static(double)
        chosen(0, total)
        return total

    @ti.kernel
    def method() -> ti.i32:
        total = 1
        w = Weight(20)
        w.put_twice(total)
        return total

    assert nested(5) == 110
    assert listed() == 22
    assert method() == 41
    assert Sum().run(5) == 10


def test_a_function_accumulates_into_its_callers_variable_in_parallel() -> None:
    x = ti.field(ti.f64, shape=1000, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    values = np.linspace(-1, 1, 1000)
    x.from_numpy(values)

    @ti.func
    def collect(squares: ti.template(), largest: ti.template()):
        for i in x:
            squares += x[i] ** 2
            ti.atomic_max(largest, x[i])

    @ti.kernel
    def run() -> ti.f64:
        squares, largest = ti.cast(0, ti.f64), ti.cast(-10, ti.f64)
        collect(squares, largest)
        return squares + 1000 * largest

    @ti.kernel
    def measure():
        squares, largest = ti.cast(0, ti.f64), ti.cast(-10, ti.f64)
        collect(squares, largest)
        loss[None] = squares

    assert run() == pytest.approx((values**2).sum() + 1000)
    with ti.ad.Tape(loss=loss):
        measure()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * values)


def test_types_made_in_kernels() -> None:
    n = 3

    @ti.kernel
    def run(x: ti.i32) -> ti.f32:
        v = ti.types.vector(n, ti.i32)(x, 2, 3)
        m = ti.types.matrix(2, 2, float)([[1, 2], [3, 4]])
        return v.sum() + 100 * m[1, 1]

    @ti.kernel
    def at_run_time(x: ti.i32) -> ti.f32:
        return ti.types.vector(x, ti.f32)(0).sum()

    assert run(4) == 409
    with pytest.raises(KernelTypeError, match="`vector` works on what is known at compile time only"):
        at_run_time(3)
