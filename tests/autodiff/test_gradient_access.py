"""Gradients inside of a tape: kernels that read them, and `kernel.grad()` where nobody would know of it."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


def _fields() -> tuple[Any, Any, Any]:
    x = ti.field(ti.f64, shape=3, needs_grad=True)
    x.fill(2.0)
    return x, array(3), scalar()


def test_gradients_are_read_as_constants():
    x, y, loss = _fields()

    @ti.kernel
    def block():
        ti.stop_grad(x.grad)
        for i in x:
            y[i] += x.grad[i]
            loss[None] += x[i] ** 2

    @ti.kernel
    def value():
        for i in x:
            y[i] += 2.0 * ti.stop_grad(x.grad[i])
            loss[None] += x[i] ** 3

    for kernel, shown, slope in ((block, 7.0, 4.0), (value, 14.0, 12.0)):
        x.grad.fill(7.0)
        y.fill(0.0)
        with ti.ad.Tape(loss, clear_gradients=False):
            kernel()
        np.testing.assert_array_equal(y.to_numpy(), shown)
        np.testing.assert_array_equal(x.grad.to_numpy(), 7.0 + slope)


def test_gradients_are_not_read_otherwise():
    x, y, loss = _fields()

    @ti.kernel
    def plainly():
        for i in x:
            loss[None] += x[i] * x.grad[i]

    @ti.kernel
    def both():
        for i in x:
            y[i] += ti.stop_grad(x.grad[i]) * x[i] + x.grad[i]

    @ti.kernel
    def descent():
        for i in x:
            x[i] -= 0.1 * x.grad[i]

    @ti.kernel
    def carried():
        for i in x:
            s = x.grad[i]
            for _ in range(3):
                s = s * 0.5
            loss[None] += s

    @ti.kernel
    def written():
        for i in x:
            x.grad[i] = 0.0
            loss[None] += x[i]

    for kernel, verb in (
        (plainly, "reads"),
        (both, "reads"),
        (descent, "reads"),
        (carried, "reads"),
        (written, "writes"),
    ):
        expected = pytest.raises(DifferentiationError, match=f"{verb} the gradient 'x.grad'")
        with expected as refused, ti.ad.Tape(loss):
            kernel()
        assert ("stop_grad(x.grad)" in refused.value.hint) == (verb == "reads")


def test_a_gradient_that_the_way_back_needs_is_refused():
    x, _, loss = _fields()

    @ti.kernel
    def product():
        for i in x:
            loss[None] += x[i] * ti.stop_grad(x.grad[i])

    @ti.kernel
    def branch():
        for i in x:
            if ti.stop_grad(x.grad[i]) > 0.0:
                loss[None] += x[i]

    for kernel in (product, branch):
        with pytest.raises(DifferentiationError, match="as the kernel found it"), ti.ad.Tape(loss):
            kernel()

    @ti.kernel
    def from_a_copy():
        for i in x:
            loss[None] += x[i] * spare[i]

    spare = ti.field(ti.f64, shape=3)
    x.grad.fill(5.0)
    spare.copy_from(x.grad)
    with ti.ad.Tape(loss):
        from_a_copy()
    np.testing.assert_array_equal(x.grad.to_numpy(), 5.0)


def test_a_kernels_gradient_is_refused_under_a_tape_and_leaves_it_usable():
    x, _, loss = _fields()

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    with ti.ad.Tape(loss):
        squares()
        with pytest.raises(DifferentiationError, match="runs inside of a tape") as refused:
            squares.grad()
        assert "after the block" in refused.value.hint
    np.testing.assert_array_equal(x.grad.to_numpy(), 4.0)
    squares.grad()
    np.testing.assert_array_equal(x.grad.to_numpy(), 8.0)
    with pytest.raises(DifferentiationError, match="runs inside of a tape"):
        ti.ad.grad(lambda: squares.grad(), wrt=x, loss=loss)()
