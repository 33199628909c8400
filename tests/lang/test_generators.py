"""Generators in kernels: device functions with `yield`, which loops run over. Random ones are in
`test_frontend_jumps.py`.
"""

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelNameError, KernelSyntaxError, KernelTypeError


@ti.func
def evens(n: ti.i32):
    for i in range(n):
        if i % 2 == 0:
            yield i


@ti.func
def halves(n):
    """n, n // 2, … 1"""
    k = n
    while k > 0:
        yield k
        k //= 2


@ti.data_oriented
class Ring:
    def __init__(self, size: int) -> None:
        self.size = size
        self.x = ti.field(ti.f64, shape=size, needs_grad=True, needs_dual=True)

    @ti.func
    def around(self, i):
        yield (i + self.size - 1) % self.size, -1.0
        yield (i + 1) % self.size, 1.0


def test_in_python_scope_it_is_an_ordinary_generator() -> None:
    assert list(evens(7)) == [0, 2, 4, 6]
    assert list(halves(12)) == [12, 6, 3, 1]
    assert list(Ring(4).around(0)) == [(3, -1.0), (1, 1.0)]


def test_kernels_that_run_as_python_have_them() -> None:
    ti.init(arch=ti.python)
    try:
        test_what_leaves_the_loop_lets_it_run_in_order()
        test_names_of_the_body_and_of_the_generator_are_apart()
        test_a_generator_defined_in_the_kernel_sees_its_variables()
    finally:
        ti.init()


def test_its_outermost_loop_is_parallel() -> None:
    x = ti.field(ti.i32, shape=100_000)

    @ti.kernel
    def fill(n: ti.i32) -> ti.i32:
        total = 0
        for i in evens(n):
            x[i] = i
            total += 1
        return total

    assert fill(100_000) == 50_000
    expected = np.arange(100_000)
    expected[1::2] = 0
    np.testing.assert_array_equal(x.to_numpy(), expected)
    assert any("parallel" in task.schedule for task in fill.tasks())


def test_what_leaves_the_loop_lets_it_run_in_order() -> None:
    @ti.kernel
    def first_above(n: ti.i32, least: ti.i32) -> ti.i32:
        found = -1
        for i in evens(n):
            if i > least:
                found = i
                break
        return found

    @ti.kernel
    def index_of(n: ti.i32, value: ti.i32) -> ti.i32:
        count = 0
        for k in halves(n):
            count += k
            if k == value:
                return count
        return -1

    assert [first_above(100, 6), first_above(100, 99), first_above(0, 0)] == [8, -1, -1]
    assert [index_of(40, 5), index_of(40, 40), index_of(40, 7)] == [75, 40, -1]


def test_options_of_the_loop_are_those_of_the_generators_loop() -> None:
    x = ti.field(ti.i32, shape=101)

    @ti.kernel
    def running_sum():
        ti.loop_config(serialize=True)
        for i in evens(100):
            x[i + 2] = x[i] + 1

    running_sum()
    assert x[100] == 50


def test_names_of_the_body_and_of_the_generator_are_apart() -> None:
    @ti.func
    def counted(n):
        i, s = 0, 0
        while i < n:
            i += 1
            s += i
            yield s
            s += 1

    @ti.kernel
    def add(n: ti.i32) -> ti.i32:
        s, i = 0, 1000
        for k in counted(n):
            s += k
            i += 1
            k2 = k
            k2 += 1
        return s * 10_000 + i

    assert add(5) == sum(counted(5)) * 10_000 + 1005


def test_a_generator_defined_in_the_kernel_sees_its_variables() -> None:
    @ti.kernel
    def total(n: ti.i32) -> ti.i32:
        step = 3

        def multiples(most):
            for i in range(most):
                yield step * i

        found = 0
        ti.loop_config(serialize=True)
        for m in multiples(n):
            step = 4
            found += m
        return found

    assert total(4) == 0 + 4 + 8 + 12


def test_items_may_be_vectors_and_loops_in_it_unrolled() -> None:
    @ti.func
    def corners(centre, size):
        for signs in ti.static(ti.ndrange(2, 2)):
            yield centre + size * (ti.Vector([signs[0], signs[1]]) - 0.5)

    @ti.kernel
    def furthest(x: ti.f64, y: ti.f64) -> ti.f64:
        found = 0.0
        for corner in corners(ti.Vector([x, y]), 2.0):
            found = ti.max(found, corner.norm())
        return found

    assert furthest(2.0, 3.0) == pytest.approx(5.0)


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives(mode: str) -> None:
    ring = Ring(5)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
    values = np.array([0.3, -1.0, 2.0, 0.5, 1.5])
    ring.x.from_numpy(values)

    @ti.kernel
    def bend(x: ti.Template):
        for i in x:
            for j, sign in ring.around(i):
                if x[j] > 1.9:
                    continue
                loss[None] += sign * x[i] * x[j] ** 2

    def plain(x: np.ndarray) -> float:
        return sum(s * x[i] * x[j] ** 2 for i in range(5) for j, s in ring.around(i) if x[j] <= 1.9)

    h = 1e-6
    expected = [(plain(values + h * e) - plain(values - h * e)) / (2 * h) for e in np.eye(5)]
    if mode == "reverse":
        with ti.ad.Tape(loss):
            bend(ring.x)
        np.testing.assert_allclose(ring.x.grad.to_numpy(), expected, atol=1e-8)
    else:
        direction = np.array([1.0, 2.0, -1.0, 0.5, 0.0])
        _, found = ti.ad.jvp(bend, wrt=ring.x, output=loss)(direction, ring.x)
        np.testing.assert_allclose(found, expected @ direction, atol=1e-8)


def test_what_cannot_be_is_refused_where_it_is() -> None:
    x = ti.field(ti.i32, shape=4)

    @ti.func
    def valued(n):
        yield from range(n)
        return n

    @ti.func
    def receiving(n):
        sent = yield n
        x[0] = sent

    @ti.func
    def endless(n):
        yield from endless(n)

    @ti.kernel
    def returns_value():
        for i in valued(3):
            x[i] = 1

    @ti.kernel
    def receives():
        for i in receiving(3):
            x[i] = 1

    @ti.kernel
    def recurses():
        for i in endless(3):
            x[i] = 1

    @ti.kernel
    def unrolls():
        for i in ti.static(evens(3)):
            x[i] = 1

    @ti.kernel
    def computes():
        x[0] = evens(3) + 1  # pyright: ignore[reportOperatorIssue]

    @ti.kernel
    def itself():
        yield x[0]

    @ti.kernel
    def misnamed():
        for i in evens(3):
            x[i] = y[i]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]

    for kernel, kind, text in (
        (returns_value, KernelTypeError, "returns no value"),
        (receives, KernelSyntaxError, "the value of `yield`"),
        (recurses, KernelSyntaxError, "calls itself"),
        (unrolls, KernelTypeError, "generator `evens`"),
        (computes, KernelTypeError, "generator `evens`"),
        (itself, KernelSyntaxError, "a device function"),
        (misnamed, KernelNameError, "x[i] = y[i]"),
    ):
        with pytest.raises(kind) as caught:
            kernel()
        assert text in str(caught.value), kernel
