"""Gradients through array arguments: ndarrays like fields, memory that others manage as constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array_with_dual
from tinote.errors import DifferentiationError, KernelMemoryError

N = 6
X = np.linspace(0.3, 1.9, N)


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


@ti.kernel
def weighted(w: ti.types.ndarray(ndim=1), x: ti.types.ndarray(ndim=1), loss: ti.template()):
    for i in x:
        loss[None] += w[i] * x[i] ** 2


@ti.kernel
def total(x: ti.types.ndarray(ndim=1), loss: ti.template()):
    for i in x:
        loss[None] += x[i]


@ti.kernel
def cube(a: ti.types.ndarray(ndim=1), b: ti.types.ndarray(ndim=1)):
    for i in a:
        b[i] = a[i] ** 3


@ti.kernel
def square_in_place(a: ti.types.ndarray(ndim=1)):
    for i in a:
        a[i] = a[i] * a[i]


@ti.kernel
def use_and_double(w: ti.types.ndarray(ndim=1), x: ti.types.ndarray(ndim=1), loss: ti.template()):
    for i in w:
        loss[None] += w[i] * x[i] ** 2
        w[i] = 2 * w[i]


def filled(values: Any = X, needs_grad: bool | None = True, **more: Any) -> Any:
    x = ti.ndarray(ti.f64, shape=np.shape(values), needs_grad=needs_grad, **more)
    x.from_numpy(np.asarray(values, float))
    return x


def refused(loss: Any, run: Callable[[], Any]) -> DifferentiationError:
    with pytest.raises(DifferentiationError) as caught, ti.ad.Tape(loss):
        run()
    assert caught.value.span.line > 0
    return caught.value


# ---- arrays of our own


def test_a_tape_gives_the_gradients_of_all_arrays() -> None:
    w, x, loss = filled(X + 1), filled(), array_with_dual()
    with ti.ad.Tape(loss):
        weighted(w, x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * (X + 1) * X, rtol=1e-14)
    np.testing.assert_allclose(w.grad.to_numpy(), X**2, rtol=1e-14)


def test_one_instance_differentiates_every_shape() -> None:
    loss = array_with_dual()
    for n in (1, 5, 3000):
        values = np.linspace(-1, 1, n)
        x = filled(values)
        with ti.ad.Tape(loss):
            weighted(np.full(n, 3.0), x, loss)
        np.testing.assert_allclose(x.grad.to_numpy(), 6 * values, rtol=1e-14)


def test_arrays_without_a_gradient_are_constants() -> None:
    w, x, loss = filled(X, needs_grad=False), filled(), array_with_dual()
    with ti.ad.Tape(loss):
        weighted(w, x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X * X, rtol=1e-14)


def test_several_launches_and_overwritten_arrays() -> None:
    x, y, loss = filled(), filled(), array_with_dual()
    with ti.ad.Tape(loss):
        cube(x, y)
        cube(y, x)  # overwrites what the first launch read
        square_in_place(x)
        total(x, loss)
    np.testing.assert_allclose(x.to_numpy(), X**18, rtol=1e-12)
    np.testing.assert_allclose(x.grad.to_numpy(), 18 * X**17, rtol=1e-12)


def test_the_same_instance_on_different_arrays_in_one_tape() -> None:
    arrays = [filled(X / (k + 1)) for k in range(4)]
    loss = array_with_dual()
    with ti.ad.Tape(loss):
        for a, b in itertools.pairwise(arrays):
            cube(a, b)
        total(arrays[-1], loss)
    np.testing.assert_allclose(arrays[0].grad.to_numpy(), 27 * X**26, rtol=1e-12)


def test_python_writes_between_launches() -> None:
    x, loss = filled(), array_with_dual()
    with ti.ad.Tape(loss):
        weighted(np.ones(N), x, loss)
        x.fill(100.0)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X, rtol=1e-14)


def test_vectors_and_fields_in_their_place() -> None:
    v = ti.Vector.ndarray(2, ti.f64, shape=3, needs_grad=True)
    f = ti.field(ti.f64, shape=3, needs_grad=True)
    loss = array_with_dual()
    numbers = np.arange(6.0).reshape(3, 2)
    v.from_numpy(numbers)
    f.from_numpy(np.array([1.0, 2.0, 3.0]))

    @ti.kernel
    def energy(v: ti.types.ndarray(ndim=1), f: ti.types.ndarray(ndim=1)):
        for i in v:
            loss[None] += f[i] * v[i].dot(v[i])

    with ti.ad.Tape(loss):
        energy(v, f)
    np.testing.assert_allclose(v.grad.to_numpy(), 2 * numbers * np.array([[1], [2], [3]]), rtol=1e-14)
    np.testing.assert_allclose(f.grad.to_numpy(), (numbers**2).sum(axis=1), rtol=1e-14)


def test_one_array_twice_where_it_is_only_read() -> None:
    x, loss = filled(), array_with_dual()
    with ti.ad.Tape(loss):
        weighted(x, x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * X**2, rtol=1e-14)


def test_an_ndarray_may_be_the_loss() -> None:
    x, loss = filled(), ti.ndarray(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run(x: ti.types.ndarray(ndim=1), loss: ti.types.ndarray(ndim=0)):
        for i in x:
            loss[None] += x[i] ** 2

    with ti.ad.Tape(loss):
        run(x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X, rtol=1e-14)


def test_kernel_grad() -> None:
    x, y = filled(), filled()
    cube(x, y)
    y.grad.fill(1.0)
    cube.grad(x, y)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * X**2, rtol=1e-14)
    with pytest.raises(DifferentiationError, match="overwritten"):
        square_in_place.grad(x)


def test_gradients_in_a_kernel() -> None:
    x, loss = filled(), array_with_dual()

    @ti.kernel
    def descend(x: ti.types.ndarray(ndim=1), rate: ti.f64):
        for i in x:
            x[i] -= rate * x.grad[i]

    with ti.ad.Tape(loss):
        weighted(np.ones(N), x, loss)
    descend(x, 0.25)
    np.testing.assert_allclose(x.to_numpy(), X / 2, rtol=1e-14)


def test_forward_mode() -> None:
    x, loss = filled(needs_dual=True), array_with_dual()
    seed = np.arange(1.0, N + 1)
    with ti.ad.FwdMode(loss=loss, param=x, seed=seed):
        loss[None] = 0.0
        weighted(np.full(N, 3.0), x, loss)
    assert loss.dual[None] == pytest.approx(float((6 * X * seed).sum()), rel=1e-14)


def test_forward_mode_refuses_what_goes_through_others() -> None:
    x, y, loss = filled(needs_dual=True), filled(needs_dual=True), array_with_dual()
    through = np.zeros(N)
    with pytest.raises(DifferentiationError, match="has no dual"), ti.ad.FwdMode(loss=loss, param=x, seed=X):
        cube(x, through)
        cube(through[1:], y)


def test_functional_forms_and_gradcheck() -> None:
    x, loss = filled(needs_dual=True), array_with_dual()

    def run() -> None:
        weighted(np.full(N, 3.0), x, loss)

    np.testing.assert_allclose(ti.ad.grad(run, wrt=x, loss=loss)(), 6 * X, rtol=1e-14)
    assert ti.ad.gradcheck(run, loss=loss, wrt=x).ok


def test_checkpointed_loops() -> None:
    x, loss = filled(X / 2), array_with_dual()
    scale = np.full(N, 1.1)

    @ti.kernel
    def step(x: ti.types.ndarray(ndim=1), k: ti.types.ndarray(ndim=1)):
        for i in x:
            x[i] = k[i] * x[i] * x[i] + 0.1

    def reference() -> np.ndarray:
        value, slope = X / 2, np.ones(N)
        for _ in range(7):
            slope, value = slope * 2.2 * value, 1.1 * value * value + 0.1
        return slope

    with ti.ad.Tape(loss):
        ti.ad.checkpoint(lambda t: step(x, scale), 7, snapshots=2, progress=False)
        total(x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), reference(), rtol=1e-12)


# ---- memory that others manage


def test_numpy_arrays_are_constants_as_they_were_at_the_launch() -> None:
    x, loss = filled(), array_with_dual()
    w = X + 1
    with ti.ad.Tape(loss):
        weighted(w, x, loss)
        w[:] = np.nan  # no recorder is notified
        w = X + 2
        weighted(w, x, loss)
        w *= 0
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * (2 * X + 3) * X, rtol=1e-14)


def test_overlapping_constants() -> None:
    x, loss = filled(), array_with_dual()
    data = np.arange(3.0 * N)
    with ti.ad.Tape(loss):
        for k in range(N):
            weighted(data[k : k + N], x, loss)
    wanted = 2 * X * sum(data[k : k + N] for k in range(N))
    np.testing.assert_allclose(x.grad.to_numpy(), wanted, rtol=1e-14)


def test_arrays_that_the_kernel_itself_overwrites() -> None:
    x, loss = filled(), array_with_dual()
    w = X + 1
    with ti.ad.Tape(loss):
        use_and_double(w, x, loss)
        use_and_double(w, x, loss)
        use_and_double(w, x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X * (X + 1) * 7, rtol=1e-14)
    np.testing.assert_array_equal(w, 8 * (X + 1))  # the reverse sweep leaves it alone


def test_a_jacobian_runs_the_way_back_several_times() -> None:
    x, y = filled(), filled(np.zeros(N))
    w = X + 1

    @ti.kernel
    def run(w: ti.types.ndarray(ndim=1), x: ti.types.ndarray(ndim=1), y: ti.types.ndarray(ndim=1)):
        for i in w:
            y[i] = w[i] * x[i] ** 2
            w[i] = 0.5 * w[i]

    jacobian = ti.ad.jacobian(lambda: run(w, x, y), wrt=x, loss=y, mode="reverse")()
    np.testing.assert_allclose(jacobian, np.diag(2 * (X + 1) * X), rtol=1e-14)


def test_integers_of_others_are_kept_too() -> None:
    x, loss = filled(), array_with_dual()
    index = np.arange(N, dtype=np.int32)[::-1].copy()

    @ti.kernel
    def gather(index: ti.types.ndarray(ndim=1), x: ti.types.ndarray(ndim=1)):
        for i in index:
            loss[None] += (i + 1) * x[index[i]] ** 2

    with ti.ad.Tape(loss):
        gather(index, x)
        index[:] = 0
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X * np.arange(N, 0, -1), rtol=1e-14)


def test_what_is_kept_of_others_counts_against_the_limit() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, memory_limit=10_000)
    x, loss = filled(np.ones(1000)), array_with_dual()
    with pytest.raises(KernelMemoryError, match="'w'"), ti.ad.Tape(loss):
        for _ in range(3):
            weighted(np.ones(1000), x, loss)


def test_values_that_go_through_numpy_are_refused() -> None:
    x, y, loss = filled(), filled(), array_with_dual()
    through = np.zeros(N)
    with pytest.warns(UserWarning, match="a plain number goes to kernel 'total'"):
        error = refused(loss, lambda: (cube(x, through), total(through, loss)))
    assert "has no gradient, but values that are differentiated go through it" in error.message
    # other views of the same memory
    with pytest.warns(UserWarning, match="a plain number goes to kernel 'cube'"):
        refused(loss, lambda: (cube(x, through[:]), cube(through[: N // 2], y), total(y, loss)))
    with pytest.warns(UserWarning, match="a plain number goes to kernel 'weighted'"):
        refused(loss, lambda: (cube(x, through), weighted(np.frombuffer(through.data), y, loss)))


def test_values_that_go_through_an_array_without_gradient() -> None:
    """Left out, it gets a temporary adjoint; declared to have none, nothing that is differentiated goes through."""
    x, loss = filled(), array_with_dual()
    plain, constant = filled(needs_grad=None), filled(needs_grad=False)
    with ti.ad.Tape(loss):
        cube(x, plain)
        total(plain, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 3 * X**2, rtol=1e-14)
    assert (
        "was declared to have no gradient" in refused(loss, lambda: (cube(x, constant), total(constant, loss))).message
    )


def test_arguments_that_share_written_memory_are_refused() -> None:
    x, loss = filled(), array_with_dual()
    memory = np.zeros(2 * N)
    for run in (
        lambda: cube(x, x),
        lambda: cube(memory, memory),
        lambda: cube(memory[:-1], memory[1:]),
    ):
        assert "share memory" in refused(loss, run).message
    with pytest.raises(DifferentiationError, match="share memory"):
        cube.grad(x, x)
    cube(x, x)  # without a gradient nothing is wrong with it
    np.testing.assert_allclose(x.to_numpy(), X**3, rtol=1e-14)


def test_an_array_that_the_kernel_also_captured() -> None:
    x, loss = filled(), array_with_dual()

    @ti.kernel
    def both(a: ti.types.ndarray(ndim=1)):
        for i in a:
            a[i] = 2 * x[i]

    assert "share memory" in refused(loss, lambda: both(x)).message


def test_views_of_fields_are_refused_and_their_copies_are_not() -> None:
    x, loss = filled(), array_with_dual()
    view = x.numpy_view()
    assert "view of 'x'" in refused(loss, lambda: total(view[1:], loss)).message
    with ti.ad.Tape(loss):
        weighted(view.copy(), x, loss)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * X**2, rtol=1e-14)


def test_a_checkpointed_step_cannot_write_to_others() -> None:
    x, loss = filled(), array_with_dual()
    w = X + 1
    error = refused(loss, lambda: ti.ad.checkpoint(lambda t: use_and_double(w, x, loss), 3, progress=False))
    assert "cannot be brought back" in error.message


def test_a_checkpointed_step_must_find_the_same_arrays() -> None:
    x, loss = filled(), array_with_dual()
    w = X + 1

    def step(t: int) -> None:
        weighted(w, x, loss)
        w[0] += 1

    error = refused(loss, lambda: ti.ad.checkpoint(step, 3, progress=False))
    assert "did something else when it was run again" in error.message


def test_a_replaced_gradient_sees_what_goes_through_others() -> None:
    x, loss = filled(), array_with_dual()
    through = np.zeros(N)

    @ti.ad.grad_replaced
    def forward() -> None:
        cube(x, through)

    @ti.ad.grad_for(forward)
    def backward() -> None:
        x.grad.fill(1)

    assert "has no gradient" in refused(loss, lambda: (forward(), total(through, loss))).message
