"""The old values that atomic operations return, where they depend on the order in which parallel iterations run."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array_with_dual, overwrites
from tinote.errors import DifferentiationError, KernelMemoryError

N = 200
pytestmark = overwrites


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)


def given() -> tuple[Any, Any, Any, Any, Any]:
    """Distinct inputs, a list with its length, weights of its places, and the loss."""
    random = np.random.default_rng(3)
    x, y, w = array_with_dual(N), array_with_dual(N), ti.field(ti.f64, N)
    x.from_numpy(random.permutation(np.linspace(0.1, 1.5, N)))
    w.from_numpy(random.uniform(0.5, 2, N))
    return x, y, w, ti.field(ti.i32, ()), array_with_dual()


def test_appending_to_a_list() -> None:
    x, y, w, count, loss = given()
    many = ti.field(ti.i32, ())
    many[None] = N - 3

    @ti.kernel
    def append():
        for i in range(2, many[None]):
            if x[i] > 0.5:
                k = ti.atomic_add(count[None], 1)
                y[k] = ti.sin(x[i])

    @ti.kernel
    def weigh():
        for k in range(count[None]):
            loss[None] += w[k] * y[k] ** 2

    for _ in range(2):
        count[None] = 0
        with ti.ad.Tape(loss):
            append()
            weigh()
        place = {round(v, 12): k for k, v in enumerate(y.to_numpy()[: count[None]])}
        wanted = np.zeros(N)
        for i in range(2, N - 3):
            k = place.get(round(np.sin(x[i]), 12)) if x[i] > 0.5 else None
            if k is not None:
                wanted[i] = 2 * w[k] * y[k] * np.cos(x[i])
        assert np.count_nonzero(wanted) == count[None] > N // 2
        assert x.grad.to_numpy() == pytest.approx(wanted, rel=1e-12)


def test_what_threads_have_appended() -> None:
    n = 200_000
    x, y, loss = array_with_dual(n), array_with_dual(n), array_with_dual()
    source, count, w = ti.field(ti.i32, n), ti.field(ti.i32, ()), ti.field(ti.f64, n)
    x.from_numpy(np.linspace(0, 1, n))
    w.from_numpy(np.arange(n, dtype=float))

    @ti.kernel
    def run():
        for i in x:
            k = ti.atomic_add(count[None], 1)
            source[k] = i
            y[k] = x[i] ** 2
        for k in y:
            loss[None] += w[k] * y[k]
        count[None] = 0

    with ti.ad.Tape(loss):
        run()
    place = np.argsort(source.to_numpy())
    assert x.grad.to_numpy() == pytest.approx(2 * x.to_numpy() * place, rel=1e-12)


def test_bins_filled_in_inner_loops() -> None:
    x, _, w, _, loss = given()
    filled, lists = ti.field(ti.i32, 7), array_with_dual(7, N)

    @ti.kernel
    def run(first: ti.i32, last: ti.i32):
        for i in range(first, last):
            for j in range(i % 3):
                b = (3 * i + 5 * j) % 7
                k = ti.atomic_add(filled[b], 1)
                lists[b, k] = ti.sin(x[i]) * (j + 1)
        for b in range(7):
            for k in range(filled[b]):
                loss[None] += w[k] * lists[b, k] ** 2

    with ti.ad.Tape(loss):
        run(5, N)
    wanted = np.zeros(N)
    for i in range(5, N):
        for j in range(i % 3):
            b = (3 * i + 5 * j) % 7
            k = int(np.argmin(np.abs(lists.to_numpy()[b, : filled[b]] - np.sin(x[i]) * (j + 1))))
            wanted[i] += 2 * w[k] * lists[b, k] * np.cos(x[i]) * (j + 1)
    assert x.grad.to_numpy() == pytest.approx(wanted, rel=1e-12)


def test_a_counter_that_is_local_to_the_kernel() -> None:
    x, y, w, _, loss = given()

    @ti.kernel
    def run():
        count = 0
        for i in x:
            k = ti.atomic_add(count, 1)
            y[k] = x[i] ** 2
        for k in y:
            loss[None] += w[k] * y[k]

    with ti.ad.Tape(loss):
        run()
    place = [int(np.argmin(np.abs(y.to_numpy() - x[i] ** 2))) for i in range(N)]
    assert x.grad.to_numpy() == pytest.approx(2 * x.to_numpy() * w.to_numpy()[place], rel=1e-12)


def test_as_a_condition_with_arrays_as_arguments() -> None:
    x, _, _, count, loss = given()
    chosen = ti.field(ti.i32, N)

    @ti.kernel
    def run(z: ti.types.ndarray()):
        for i in range(z.shape[0]):
            if ti.atomic_xor(count[None], 1) == 1:
                chosen[i] = 1
                loss[None] += x[i] * z[i] ** 2

    z = ti.ndarray(ti.f64, N // 2, needs_grad=True)
    z.from_numpy(np.linspace(1, 2, N // 2))
    with ti.ad.Tape(loss):
        run(z)
    taken = chosen.to_numpy()[: N // 2]
    assert taken.sum() == N // 4
    assert z.grad.to_numpy() == pytest.approx(2 * taken * x.to_numpy()[: N // 2] * z.to_numpy())


def test_with_numbers_as_arguments_and_results() -> None:
    _, y, w, count, _ = given()

    @ti.kernel
    def run(a: ti.f64) -> ti.f64:
        total = 0.0
        for i in range(N):
            y[ti.atomic_add(count[None], 1)] = a**2 * i
        for i in y:
            total += y[i] * w[i]
        return total

    value, slope = ti.ad.value_and_grad(run)(3.0)
    assert slope == pytest.approx(2 * value / 3, rel=1e-12)


def test_serial_loops_need_nothing_saved() -> None:
    x, y, w, count, loss = given()

    @ti.kernel
    def run():
        count[None] = 0
        ti.loop_config(serialize=True)
        for i in x:
            old = ti.atomic_add(loss[None], x[i])
            y[ti.atomic_add(count[None], 1)] = x[i] * old
        for k in y:
            loss[None] += w[k] * y[k]

    report = ti.ad.gradcheck(run, [x], loss)
    assert report.forward is not None and report.forward_agrees and not report.unsettled


def test_outside_of_a_tape_it_is_missed() -> None:
    x, y, _, count, _ = given()

    @ti.kernel
    def run():
        for i in x:
            y[ti.atomic_add(count[None], 1)] = x[i]

    with pytest.raises(DifferentiationError, match="launch the kernel in a tape") as caught:
        run.grad()
    assert "ti.atomic_add(count[None], 1)" in str(caught.value)


def test_turns_that_nobody_can_tell_are_refused() -> None:
    x, y, _, count, loss = given()

    @ti.kernel
    def run():
        for i in x:
            a = x[i]
            while a < 2:
                y[ti.atomic_add(count[None], 1) % N] = a
                a *= 2

    with pytest.raises(DifferentiationError, match="number of iterations") as caught, ti.ad.Tape(loss):
        run()
    assert "ti.atomic_add(count[None], 1)" in str(caught.value)


def test_differentiated_old_values_of_parallel_turns_are_refused() -> None:
    x, _, _, _, loss = given()
    total = array_with_dual()

    @ti.kernel
    def run():
        for i in x:
            old = ti.atomic_add(total[None], x[i])
            loss[None] += old**2

    with pytest.raises(DifferentiationError, match="depends on the order") as caught, ti.ad.Tape(loss):
        run()
    assert "ti.atomic_add(total[None], x[i])" in str(caught.value)


def test_the_memory_is_within_the_limit() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, memory_limit=100_000)
    x, y, _, count, loss = given()

    @ti.kernel
    def run(rows: ti.i32):
        for _ in range(rows):
            for j in range(N):
                y[ti.atomic_add(count[None], 1) % N] = x[j]

    with ti.ad.Tape(loss):
        run(2)
    with pytest.raises(KernelMemoryError, match="100,000 bytes"), ti.ad.Tape(loss):
        run(1000)


def test_second_derivatives() -> None:
    """Forward mode over what reads the old values again; whichever iteration got which place."""
    x, y, _, count, loss = given()
    bins = ti.field(ti.i32, 4)
    z = array_with_dual(4, N)

    @ti.kernel
    def run():
        for i in x:
            if x[i] > 0.5:
                y[ti.atomic_add(count[None], 1)] = ti.sin(x[i])
            for q in range(2):
                b = (i + q) % 4
                z[b, ti.atomic_add(bins[b], 1)] = x[i] ** 3 * (q + 1)
        for i in range(count[None]):
            loss[None] += y[i] ** 2
        for b in range(4):
            for k in range(bins[b]):
                loss[None] += z[b, k]

    v = np.cos(np.arange(N))
    start = x.to_numpy()
    expected = (np.where(start > 0.5, 2 * np.cos(2 * start), 0) + 18 * start) * v
    for _ in range(2):
        count[None] = 0
        bins.fill(0)
        np.testing.assert_allclose(ti.ad.hvp(run, wrt=x, loss=loss)(v), expected, rtol=1e-10, atol=1e-10)


def test_validation_refuses() -> None:
    x, y, _, count, loss = given()

    @ti.kernel
    def run():
        for i in x:
            y[ti.atomic_add(count[None], 1)] = x[i] ** 2
        for i in y:
            loss[None] += y[i]

    with (
        pytest.raises(DifferentiationError, match="checks the access rules does not keep"),
        ti.ad.Tape(loss, validation=True),
    ):
        run()


def test_what_a_kernel_returns_may_depend_on_it() -> None:
    _, _, _, count, _ = given()

    @ti.kernel
    def run(a: ti.f64, v: ti.math.vec2) -> ti.f64:
        total = 0.0
        for i, j in ti.ndrange((1, 9), 5):
            if ti.atomic_add(count[None], 1) % 2 == 0:
                total += a**2 * (i + j) * v[1] * (1 + ti.random(ti.f64))
        return total

    value, slope = ti.ad.value_and_grad(run, argnums=0)(3.0, ti.math.vec2(1, 2))
    assert value > 0
    assert slope == pytest.approx(2 * value / 3, rel=1e-12)


def test_a_bound_divided_by_zero_without_checks() -> None:
    """A division by zero that nothing checks is 0, for the loop and for the room that its old values get."""
    ti.init(bounds_check=False)
    count, start = ti.field(ti.i32, ()), ti.field(ti.i32, ())
    x, y, loss = (
        ti.field(ti.f64, 8, needs_grad=True),
        ti.field(ti.f64, 8, needs_grad=True),
        ti.field(ti.f64, (), needs_grad=True),
    )

    @ti.kernel
    def run(d: ti.i32):
        for i in range(start[None] // d + 5):
            k = ti.atomic_add(count[None], 1)
            y[k] = x[i] ** 2
        for i in y:
            loss[None] += y[i]

    x.fill(3.0)
    with ti.ad.Tape(loss):
        run(0)
    assert x.grad.to_numpy().tolist() == [6.0] * 5 + [0.0] * 3


def test_a_list_without_a_gradient_of_its_own_is_appended_to() -> None:
    k, values, count = ti.field(ti.f64, 6, needs_grad=True), ti.field(ti.f64, 20), ti.field(ti.i32, ())
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def append():
        for i in k:
            values[ti.atomic_add(count[None], 1)] += k[i] ** 2

    @ti.kernel
    def total():
        for i in values:
            loss[None] += values[i]

    k.fill(2.0)
    with ti.ad.Tape(loss):
        append()
        total()
    assert np.array_equal(k.grad.to_numpy(), np.full(6, 4.0))
