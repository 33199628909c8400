"""Derivatives with respect to arguments, of what functions return, through arithmetic in Python."""

import math
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError, TinoteError


@pytest.fixture
def potential() -> Any:
    """k/2 · Σ sin(x)²: a kernel of a number and an array that returns a number."""

    @ti.kernel
    def potential(k: ti.f64, x: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i in x:
            total += 0.5 * k * ti.sin(x[i]) ** 2
        return total

    return potential


X = np.linspace(0.1, 1.0, 5)


def test_numbers_and_arrays_by_position(potential: Any) -> None:
    by_k, by_x = ti.ad.grad(potential, argnums=(0, 1))(2.0, X)
    assert by_k == pytest.approx((0.5 * np.sin(X) ** 2).sum())
    np.testing.assert_allclose(by_x, 2.0 * np.sin(X) * np.cos(X), rtol=1e-12)
    assert type(by_k) is float
    assert type(by_x) is np.ndarray
    assert ti.ad.grad(potential)(2.0, X) == by_k  # the first argument, when nothing is said
    (alone,) = ti.ad.grad(potential, (1,))(2.0, X)
    np.testing.assert_array_equal(alone, by_x)


def test_value_and_gradient_through_arithmetic(potential: Any) -> None:
    def f(a: Any, b: float) -> Any:
        e = potential(a**2, X)
        return (3 * e / a - 1) * b + abs(-a) - 2 / a + 2**a + a**a

    def by_hand(a: float, b: float) -> float:
        e = 0.5 * a**2 * (np.sin(X) ** 2).sum()
        return (3 * e / a - 1) * b + a - 2 / a + 2**a + a**a

    value, slope = ti.ad.value_and_grad(f)(1.7, 0.6)
    assert value == pytest.approx(by_hand(1.7, 0.6), rel=1e-12)
    h = 1e-6
    assert slope == pytest.approx((by_hand(1.7 + h, 0.6) - by_hand(1.7 - h, 0.6)) / (2 * h), rel=1e-8)
    _, pushed = ti.ad.jvp(f)(2.0, 1.7, 0.6)
    assert pushed == pytest.approx(2 * slope, rel=1e-12)
    curvature = (by_hand(1.7 + 1e-4, 0.6) - 2 * by_hand(1.7, 0.6) + by_hand(1.7 - 1e-4, 0.6)) / 1e-8
    assert ti.ad.hvp(f)(1.0, 1.7, 0.6) == pytest.approx(curvature, rel=1e-5)


def test_several_launches_with_numbers_between_them() -> None:
    x = ti.field(ti.f64, 3, needs_grad=True)
    x.from_numpy(np.array([0.3, 0.5, 0.7]))

    @ti.kernel
    def mean(power: ti.i32, scale: ti.f64) -> ti.f64:
        total = ti.cast(0.0, ti.f64)
        for i in x:
            total += scale * x[i] ** power / 3
        return total

    def f(scale: Any) -> Any:
        first = mean(2, scale)
        second = mean(3, first * scale)
        return second - first

    def by_hand(x: Any, s: float) -> float:
        first = (s * x**2 / 3).sum()
        return (first * s * x**3 / 3).sum() - first

    by_scale, by_x = ti.ad.grad(f, argnums=0, wrt=x)(1.3)
    start, h = x.to_numpy(), 1e-6
    assert by_scale == pytest.approx((by_hand(start, 1.3 + h) - by_hand(start, 1.3 - h)) / (2 * h), rel=1e-8)
    units = np.eye(3) * h
    expected = [(by_hand(start + u, 1.3) - by_hand(start - u, 1.3)) / (2 * h) for u in units]
    np.testing.assert_allclose(by_x, expected, rtol=1e-8)


def test_a_number_used_by_parallel_loops_and_branches() -> None:
    y = ti.field(ti.f64, 100, needs_grad=True, needs_dual=True)

    @ti.kernel
    def spread(a: ti.f64, n: ti.i32, b: ti.f64):
        c = a * b
        for i in range(n):
            if i % 2 == 0:
                y[i] += c * i
            else:
                y[i] += a * a

    weights = np.cos(np.arange(100.0))
    even = np.arange(100) % 2 == 0
    _, (by_a, by_b) = ti.ad.vjp(spread, argnums=(0, 2), loss=y)(weights, 1.5, 100, 0.4)
    assert by_a == pytest.approx((weights * np.where(even, 0.4 * np.arange(100), 3.0)).sum(), rel=1e-12)
    assert by_b == pytest.approx((weights * np.where(even, 1.5 * np.arange(100), 0.0)).sum(), rel=1e-12)
    _, pushed = ti.ad.jvp(spread, argnums=(0, 2), loss=y)((1.0, 2.0), 1.5, 100, 0.4)
    np.testing.assert_allclose(pushed, np.where(even, (0.4 + 2 * 1.5) * np.arange(100), 3.0), rtol=1e-12)
    rows = ti.ad.jacobian(spread, argnums=(0, 2), loss=y, mode="reverse")(1.5, 100, 0.4)
    columns = ti.ad.jacobian(spread, argnums=(0, 2), loss=y, mode="forward")(1.5, 100, 0.4)
    for row, column in zip(rows, columns, strict=True):
        assert row.shape == (100,)
        np.testing.assert_allclose(row, column, rtol=1e-12)


def test_arrays_of_vectors_and_arrays_that_are_written() -> None:
    @ti.kernel
    def lengths(
        p: ti.types.ndarray(dtype=ti.types.vector(2, ti.f32), ndim=1), out: ti.types.ndarray(dtype=ti.f32, ndim=1)
    ):
        for i in p:
            out[i] = p[i].norm()
            p[i] *= 2.0

    @ti.kernel
    def total(out: ti.types.ndarray(dtype=ti.f32, ndim=1)) -> ti.f32:
        found = ti.cast(0.0, ti.f32)
        for i in out:
            found += out[i]
        return found

    def f(p: Any, out: Any) -> Any:
        lengths(p, out)
        return total(out)

    points = np.array([[3.0, 4.0], [0.6, 0.8]], np.float32)
    out = np.zeros(2, np.float32)
    by_points, by_out = ti.ad.grad(f, (0, 1))(points, out)
    np.testing.assert_allclose(by_points, [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    assert by_points.dtype == np.float32
    assert by_out.tolist() == [0.0, 0.0]  # overwritten before it is read
    np.testing.assert_allclose(out, [5.0, 1.0], rtol=1e-6)  # the caller's arrays hold what the kernels wrote
    np.testing.assert_allclose(points, [[6.0, 8.0], [1.2, 1.6]], rtol=1e-6)


def test_hessian_of_arguments_and_fields_together(potential: Any) -> None:
    w = ti.field(ti.f64, (), needs_grad=True)
    w[None] = 0.8

    @ti.kernel
    def weigh(e: ti.f64) -> ti.f64:
        return e * w[None] ** 3

    def f(k: Any, x: Any) -> Any:
        return weigh(potential(k, x))

    v = np.linspace(-1, 1, 5)
    (by_k, by_x), by_w = ti.ad.hvp(f, (0, 1), wrt=w)(((2.0, v), 0.5), 1.4, X)
    gradient = ti.ad.grad(f, (0, 1), wrt=w)

    def at(h: float) -> tuple[Any, Any, Any]:
        w[None] = 0.8 + 0.5 * h
        (gk, gx), gw = gradient(1.4 + 2.0 * h, X + h * v)
        return gk, gx, gw

    for found, plus, minus in zip((by_k, by_x, by_w), at(1e-5), at(-1e-5), strict=True):
        np.testing.assert_allclose(found, (np.asarray(plus) - minus) / 2e-5, rtol=1e-7, atol=1e-9)


def test_an_ndarray_of_ours_and_no_trace_afterwards(potential: Any) -> None:
    x = ti.ndarray(ti.f64, 5, needs_grad=True)
    x.from_numpy(X)
    np.testing.assert_allclose(ti.ad.grad(potential, 1)(2.0, x), 2.0 * np.sin(X) * np.cos(X), rtol=1e-12)
    assert not x.grad.to_numpy().any()
    seen: list[Any] = []
    ti.ad.grad(lambda k: seen.append(potential(k, X)) or seen[-1])(2.0)
    assert math.isclose(float(seen[0]), (np.sin(X) ** 2).sum(), rel_tol=1e-12)  # a plain number once it is over
    assert f"{seen[0]:.3f}" == f"{(np.sin(X) ** 2).sum():.3f}"


def test_comparisons_and_whole_numbers_are_piecewise_constant(potential: Any) -> None:
    def f(k: Any) -> Any:
        times = int(k)
        return potential(k, X) * times if k > 1 and k != 5 and 1 <= k < 4 and k == k else 0.0

    assert ti.ad.grad(f)(3.5) == pytest.approx(3 * (0.5 * np.sin(X) ** 2).sum())


def test_what_would_lose_the_dependence_is_reported_or_refused(potential: Any) -> None:
    x = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def static(k: ti.template()) -> ti.f64:
        return k * x[None]

    @ti.kernel
    def vector(k: ti.f64) -> ti.types.vector(2, ti.f64):
        return ti.Vector([k, 2 * k])

    def stores(k: Any) -> Any:
        x[None] = k
        return potential(k, X)

    for f in (lambda k: potential(math.sin(k), X), lambda k: potential(float(k), X)):
        with pytest.warns(UserWarning, match="its derivative is lost"):
            assert ti.ad.grad(f)(2.0) == 0.0
    assert ti.ad.grad(stores)(2.0) == pytest.approx((0.5 * np.sin(X) ** 2).sum())
    assert ti.ad.grad(lambda k: vector(k)[0] * vector(k)[1])(2.0) == 8.0
    for f, message in (
        (lambda k: 3.0, "that is 3.0"),
        (lambda k: float(k), "that is 2.0"),
        (lambda k: None, "that is nothing"),
    ):
        with pytest.raises(DifferentiationError, match=message):
            ti.ad.grad(f)(2.0)
    with pytest.raises(TinoteError):
        ti.ad.grad(lambda k: static(k))(2.0)
    for arguments, message in (
        ((3,), "integer 3"),
        ((np.arange(3),), "array of int64"),
        (("a",), "'a'"),
        ((), "only 0 were given"),
    ):
        with pytest.raises(DifferentiationError, match=message):
            ti.ad.grad(potential)(*arguments)
    for positions in (-1, (0, 0), "a", True):
        with pytest.raises(DifferentiationError, match="different positions"):
            ti.ad.grad(potential, positions)
    # An array without a gradient between argument and result breaks the chain.
    between = np.zeros(1)

    @ti.kernel
    def leave(k: ti.f64, a: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        a[0] = k * k

    @ti.kernel
    def fetch(a: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
        return a[0] + x[None]

    warned = pytest.warns(UserWarning, match="its derivative is lost")
    with warned, pytest.raises(DifferentiationError, match="no gradient"):
        ti.ad.grad(lambda k: (leave(k, between), fetch(between))[1])(2.0)
    # Afterwards everything works.
    assert ti.ad.grad(potential)(2.0, X) == pytest.approx((0.5 * np.sin(X) ** 2).sum())


@pytest.mark.torch
def test_tensors_give_tensors(potential: Any) -> None:
    import torch  # noqa: PLC0415

    found = ti.ad.grad(potential, 1)(2.0, torch.tensor(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), 2.0 * np.sin(X) * np.cos(X), rtol=1e-12)
