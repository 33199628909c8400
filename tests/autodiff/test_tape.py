"""The tape and `kernel.grad`: the classic program and the examples of the documentation."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, check_gradient, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


@pytest.mark.parametrize("n", [1, 2, 8, 33])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
def test_gravity(dtype: Any, n: int) -> None:
    x = ti.Vector.field(2, dtype, shape=n, needs_grad=True)
    v = ti.Vector.field(2, dtype, shape=n)
    U = ti.field(dtype, shape=(), needs_grad=True)
    dt = 1e-3

    @ti.kernel
    def compute_U():  # noqa: N802
        for i, j in ti.ndrange(n, n):
            r = x[i] - x[j]
            U[None] += -1 / r.norm(1e-3)

    @ti.kernel
    def advance():
        for i in x:
            v[i] += dt * -x.grad[i]
        for i in x:
            x[i] += dt * v[i]

    positions = np.random.default_rng(0).random((n, 2))
    velocities = np.zeros((n, 2))
    x.from_numpy(positions)
    tolerance = 2e-4 if dtype is ti.f32 else 1e-11
    for _ in range(5):
        with ti.ad.Tape(loss=U):
            compute_U()
        distance = positions[:, None] - positions[None]
        square = (distance**2).sum(-1) + 1e-3
        assert U[None] == pytest.approx((-1 / np.sqrt(square)).sum(), rel=tolerance)
        gradient = 2 * (distance / square[..., None] ** 1.5).sum(1)
        np.testing.assert_allclose(
            x.grad.to_numpy(), gradient, rtol=tolerance, atol=tolerance * max(1, abs(gradient).max())
        )
        advance()
        velocities -= dt * gradient
        positions = positions + dt * velocities
        np.testing.assert_allclose(x.to_numpy(), positions, rtol=tolerance, atol=tolerance)


def test_sine_at_zero() -> None:
    x, y = ti.field(ti.f32, shape=(), needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def compute_y():
        y[None] = ti.sin(x[None])

    with ti.ad.Tape(y):
        compute_y()
    assert x.grad[None] == 1.0
    assert y.grad[None] == 1.0


def test_two_outputs_with_seeds() -> None:
    n = 16
    x, loss, loss2 = array(n), scalar(), scalar()

    @ti.kernel
    def func():
        for i in x:
            loss[None] += x[i] ** 2
            loss2[None] += x[i]

    for i in range(n):
        x[i] = i
    loss.grad[None] = 1
    loss2.grad[None] = 1
    func()
    func.grad()
    assert x.grad.to_numpy().tolist() == [2 * i + 1 for i in range(n)]
    loss.grad[None] = 10
    loss2.grad[None] = -1
    func.grad()
    # Gradients accumulate.
    assert x.grad.to_numpy().tolist() == [2 * i + 1 + 20 * i - 1 for i in range(n)]


def test_a_python_write_is_part_of_the_gradient() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def differentiable_task():
        for _ in range(3):
            loss[None] += ti.sin(x[None]) + 1.0

    @ti.kernel
    def manipulation_in_kernel():
        loss[None] += ti.sin(x[None]) + 1.0

    x[None] = 0.0
    with ti.ad.Tape(loss=loss):
        differentiable_task()
        loss[None] += ti.sin(x[None]) + 1.0
        manipulation_in_kernel()
    assert loss[None] == 5.0
    assert x.grad[None] == 5.0
    x.grad[None] = 0.0
    assert x.grad[None] == 0.0


def test_reading_then_changing_between_the_loops_of_one_kernel() -> None:
    """`loss = x[1] * b; b += 100`: 10 if the tape saves what is overwritten, or refused; never 110."""
    x, loss, b = array(16), scalar(), scalar()

    @ti.kernel
    def broken():
        loss[None] = x[1] * b[None]
        b[None] += 100

    x.from_numpy(np.arange(16.0))
    b[None] = 10
    try:
        with ti.ad.Tape(loss=loss):
            broken()
    except DifferentiationError as refused:
        assert "loss[None] = x[1] * b[None]" in str(refused)
        assert "b[None] += 100" in str(refused)
    else:
        assert x.grad[1] == 10.0
        assert b.grad[None] == 1.0


def test_changing_the_loss_by_a_product() -> None:
    """`loss += x1²; loss *= x2` at (1, 2), the loss cleared: (4, 1), or refused."""
    x, loss = array(3), scalar()

    @ti.kernel
    def broken():
        loss[None] += x[1] ** 2
        loss[None] *= x[2]

    @ti.kernel
    def equivalent():
        loss[None] = (2 + x[1] ** 2) * x[2]

    x.from_numpy(np.arange(3.0))
    with ti.ad.Tape(loss=loss):
        equivalent()
    assert x.grad.to_numpy().tolist() == [0, 4, 3]
    try:
        with ti.ad.Tape(loss=loss):
            broken()
    except DifferentiationError as refused:
        assert "loss[None]" in str(refused)
    else:
        assert x.grad.to_numpy().tolist() == [0, 4, 1]
    loss[None] = 2
    with pytest.raises(DifferentiationError):
        broken.grad()


def test_two_kernels_one_of_which_overwrites() -> None:
    n = 5
    x, loss, b = array(n), scalar(), scalar()

    @ti.kernel
    def func_1():
        for i in range(n):
            loss[None] += x[i] * b[None]

    @ti.kernel
    def func_2():
        b[None] += 100

    x.from_numpy(np.arange(n) + 1.0)
    b[None] = 10
    with ti.ad.Tape(loss=loss):
        func_1()
        func_2()
    assert x.grad.to_numpy().tolist() == [10] * n
    assert b.grad[None] == 15
    assert b[None] == 110
