"""Kernels that overwrite their own inputs, under a tape: against central differences through the public interface."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError

N = 5


@pytest.fixture(autouse=True)
def fresh() -> None:
    ti.init(default_fp=ti.f64)


def test_loops_that_update_in_place_and_overwrite_each_other() -> None:
    x = ti.field(ti.f64, N, needs_grad=True)
    v = ti.field(ti.f64, N, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def step(iterations: ti.i32):
        for i in x:
            for _ in range(iterations):
                v[i] = v[i] - 0.1 * ti.sin(x[i]) * v[i]
                x[i] = x[i] + 0.1 * v[i] * x[i]
        for i in range(1, N):
            v[i] = v[i] * x[i - 1]
        for i in x:
            x[i] = x[i] * ti.exp(-v[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * x[i] * v[i]

    def run(a: np.ndarray, b: np.ndarray) -> float:
        x.from_numpy(a)
        v.from_numpy(b)
        with ti.ad.Tape(loss):
            step(3)
            step(2)
            total()
        return loss[None]

    rng = np.random.default_rng(0)
    a, b = rng.random(N) + 0.5, rng.random(N) + 0.5
    run(a, b)
    got = np.concatenate([x.grad.to_numpy(), v.grad.to_numpy()])
    left = x.to_numpy()
    wanted = np.empty(2 * N)
    for k in range(2 * N):
        d = np.zeros(2 * N)
        d[k] = 1e-6
        wanted[k] = (run(a + d[:N], b + d[N:]) - run(a - d[:N], b - d[N:])) / 2e-6
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)
    run(a, b)
    np.testing.assert_array_equal(x.to_numpy(), left)  # the fields hold what the primal left


def product() -> tuple[ti.Field, ti.Field, object]:
    x = ti.field(ti.f64, 3, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def compute():
        loss[None] += x[1] ** 2
        loss[None] *= x[2]

    x.from_numpy(np.array([0.0, 1.0, 2.0]))
    return x, loss, compute


def test_a_product_on_the_loss_is_right_under_a_tape() -> None:
    x, loss, compute = product()
    with ti.ad.Tape(loss):
        compute()
    assert x.grad.to_numpy().tolist() == [0.0, 4.0, 1.0] and loss[None] == 2.0


def test_a_product_on_the_loss_is_refused_by_grad_with_its_line() -> None:
    _x, loss, compute = product()
    loss.grad[None] = 1
    loss[None] = 2
    compute()
    with pytest.raises(DifferentiationError, match="'loss'") as caught:
        compute.grad()
    assert caught.value.notes[0].text == "overwritten here" and "*= x[2]" in str(caught.value)


def test_a_serial_sweep_in_place() -> None:
    """Gauss-Seidel: one iteration of a parallel loop sweeps over the whole field, again and again."""
    x = ti.field(ti.f64, N, needs_grad=True)
    u = ti.field(ti.f64, N + 1, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def sweep():
        for _ in range(1):
            for _turn in range(4):
                for i in range(1, N):
                    u[i] = ti.sin(u[i - 1] * u[i + 1]) + x[i] * u[i]

    @ti.kernel
    def total():
        for i in u:
            loss[None] += u[i] * u[i]

    def run(a: np.ndarray) -> float:
        x.from_numpy(a)
        u.from_numpy(np.linspace(0.4, 1.1, N + 1))
        with ti.ad.Tape(loss):
            sweep()
            total()
        return loss[None]

    a = np.random.default_rng(1).random(N)
    run(a)
    got = x.grad.to_numpy()
    steps = 1e-6 * np.eye(N)
    wanted = [(run(a + d) - run(a - d)) / 2e-6 for d in steps]
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)


def test_a_while_next_to_a_parallel_loop() -> None:
    x = ti.field(ti.f64, N, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def mixed():
        k = 0
        while k < 3:
            x[0] = ti.sin(x[0])
            k += 1
        for i in x:
            loss[None] += x[i] * x[i]

    a = np.linspace(0.5, 0.9, N)
    x.from_numpy(a)
    for _ in range(2):
        x.from_numpy(a)
        with ti.ad.Tape(loss):
            mixed()
    once, twice = np.sin(a[0]), np.sin(np.sin(a[0]))
    assert x.grad[0] == pytest.approx(2 * np.sin(twice) * np.cos(twice) * np.cos(once) * np.cos(a[0]))
    np.testing.assert_allclose(x.grad.to_numpy()[1:], 2 * a[1:])
    assert x[0] == pytest.approx(np.sin(twice))  # the fields are as the kernel left them


def test_a_while_inside_of_a_branch_counts_its_turns_for_the_way_back() -> None:
    x = ti.field(ti.f64, N, needs_grad=True)
    y = ti.field(ti.f64, N, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def step():
        for i in x:
            if i % 2 == 1:
                r = 0.5
                iteration = 0
                while iteration < i:
                    r = ti.sin(r + x[i])
                    iteration += 1
                y[i] *= r

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] * y[i]

    def run(a: np.ndarray) -> float:
        x.from_numpy(a)
        y.from_numpy(np.linspace(0.4, 1.1, N))
        with ti.ad.Tape(loss):
            step()
            step()
            total()
        return loss[None]

    a = np.random.default_rng(2).random(N)
    run(a)
    got = x.grad.to_numpy()
    wanted = [(run(a + d) - run(a - d)) / 2e-6 for d in 1e-6 * np.eye(N)]
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)


def test_a_local_of_the_kernel_that_a_loop_overwrites_is_no_field() -> None:
    """The loop in the function stands at the top of the kernel, and its local in memory of the launch."""
    x = ti.field(ti.f64, (), needs_grad=True)
    y = ti.field(ti.f64, (), needs_grad=True)

    @ti.func
    def damped(a, b):
        r = b
        for _ in range(3):
            r = ti.sin(r + a) * 0.8
            if r < -0.2:
                return r - 0.5 * a
        return r

    @ti.kernel
    def step():
        y[None] = damped(x[None], y[None])

    def run(a: float) -> float:
        x[None] = a
        y.fill(0.3)
        with ti.ad.Tape(y, clear_gradients=True):
            step()
            step()
        return y[None]

    run(0.7)
    got = x.grad[None]
    assert got == pytest.approx((run(0.7 + 1e-6) - run(0.7 - 1e-6)) / 2e-6, rel=1e-6)
