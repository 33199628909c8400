"""What a tape records and keeps: several launches, overwritten fields, writes by Python, threads."""

import gc
import threading
import weakref

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, check_gradient, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError, KernelIndexError


def test_overwritten_fields_between_launches() -> None:
    n, steps = 6, 7
    x, y, loss = array(n), array(n), scalar()

    @ti.kernel
    def step(a: ti.f64):
        for i in x:
            y[i] = x[i] * x[i] * a + ti.sin(x[i])

    @ti.kernel
    def back():
        for i in x:
            x[i] = y[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    start = np.linspace(0.1, 0.6, n)
    x.from_numpy(start)
    with ti.ad.Tape(loss=loss):
        for k in range(steps):
            step(0.1 * (k + 1))
            back()
        total()
    value, slope = start.copy(), np.ones(n)
    for k in range(steps):
        a = 0.1 * (k + 1)
        value, slope = value * value * a + np.sin(value), (2 * value * a + np.cos(value)) * slope
    np.testing.assert_allclose(x.to_numpy(), value, rtol=1e-12)
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * value * slope, rtol=1e-10)
    assert loss[None] == pytest.approx((value**2).sum())


def test_overwriting_within_a_launch_is_right_or_refused() -> None:
    n = 6
    x, loss = array(n), scalar()

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    x.from_numpy(np.arange(n) + 1.0)
    try:
        with ti.ad.Tape(loss=loss):
            step()
            step()
            total()
    except DifferentiationError as refused:
        assert "x[i] = x[i] * x[i]" in str(refused)
    else:
        assert x.grad.to_numpy().tolist() == [4 * (i + 1) ** 3 for i in range(n)]


def test_ping_pong_between_two_fields() -> None:
    n, steps = 12, 9
    a, b, loss = array(n), array(n), scalar()

    @ti.kernel
    def diffuse(source: ti.template(), target: ti.template(), k: ti.f64):
        for i in range(1, n - 1):
            target[i] = source[i] + k * (source[i - 1] - 2 * source[i] + source[i + 1]) + 0.1 * source[i] ** 2

    @ti.kernel
    def total(source: ti.template()):
        for i in source:
            loss[None] += source[i] ** 2 * (i + 1)

    def run() -> None:
        for k in range(steps):
            if k % 2 == 0:
                diffuse(a, b, 0.1)
            else:
                diffuse(b, a, 0.2)
        total(a if steps % 2 == 0 else b)

    a.from_numpy(np.sin(np.arange(n)))
    check_gradient(run, loss, [a, b])


def test_python_writes_between_launches() -> None:
    x, w, loss = array(4), array(4), scalar()

    @ti.kernel
    def add():
        for i in x:
            loss[None] += x[i] * w[i] ** 2

    x.from_numpy(np.array([1.0, 2, 3, 4]))
    w.from_numpy(np.array([1.0, 2, 3, 4]))
    with ti.ad.Tape(loss=loss):
        add()
        w[0] = 10
        add()
        w.fill(5)
        add()
        w.from_numpy(np.zeros(4))
        w.numpy_view()[2] = 7
        add()
    squares = np.array([1.0, 4, 9, 16]) + np.array([100.0, 4, 9, 16]) + 25 + np.array([0, 0, 49.0, 0])
    assert x.grad.to_numpy().tolist() == squares.tolist()
    assert w.to_numpy().tolist() == [0, 0, 7, 0]


def test_whole_field_helpers_are_differentiated() -> None:
    """`fill`, `from_numpy` and `copy_from` between launches: the old values do not reach the loss any more."""
    n = 4
    x, y, z, loss = array(n), array(n), array(n), scalar()

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def add(f: ti.template(), weight: ti.f64):
        for i in f:
            loss[None] += weight * f[i]

    x.from_numpy(np.arange(n) + 1.0)
    with ti.ad.Tape(loss=loss):
        square()
        add(y, 1.0)
        z.copy_from(y)
        y.fill(3)
        add(y, 10.0)
        square()
        y.from_numpy(np.ones(n))
        add(y, 100.0)
        add(z, 1000.0)
        z.fill(0)
        add(z, 10000.0)
    np.testing.assert_allclose(x.grad.to_numpy(), 1001 * 2 * (np.arange(n) + 1))
    assert loss[None] == 30 + 120 + 400 + 30000

    # What no launch has used before begins with the new values.
    with ti.ad.Tape(loss=loss):
        y.fill(2)
        add(y, 5.0)
        y.fill(7)
        add(y, 50.0)
    assert y.grad.to_numpy().tolist() == [5] * n


def test_a_copy_by_python_does_not_break_the_chain_silently() -> None:
    x, plain, y, loss = array(3), ti.field(ti.f64, shape=3), array(3), scalar()
    constant = ti.field(ti.f64, shape=3, needs_grad=False)

    @ti.kernel
    def fill_plain():
        for i in x:
            plain[i] = x[i] * 2

    @ti.kernel
    def add(f: ti.template()):
        for i in f:
            loss[None] += f[i]

    def by_kernel() -> None:
        fill_plain()
        y.copy_from(plain)
        add(y)

    def by_copy() -> None:
        add(x)
        plain.copy_from(x)
        add(plain)

    def by_constant() -> None:
        constant.copy_from(x)
        add(constant)

    with pytest.raises(DifferentiationError, match="'constant' was declared to have no"), ti.ad.Tape(loss=loss):
        by_constant()
    for run, slope in ((by_kernel, 2), (by_copy, 2)):
        with ti.ad.Tape(loss=loss):
            run()
        assert x.grad.to_numpy().tolist() == [slope] * 3
    with ti.ad.Tape(loss=loss):
        fill_plain()
        plain.fill(3)
        y.copy_from(plain)
        add(y)
        add(x)
    assert x.grad.to_numpy().tolist() == [1, 1, 1]


def test_writes_through_an_older_view() -> None:
    """A write through a view older than the tape is not noticed; what the gradient needs must not change."""
    x, loss = array(3), scalar()
    view = x.numpy_view()

    @ti.kernel
    def square():
        for i in x:
            loss[None] += x[i] ** 2

    x.fill(3)
    with ti.ad.Tape(loss=loss):
        square()
        view[:] = 100
    assert x.grad.to_numpy().tolist() == [6, 6, 6]


def test_writes_to_a_component_between_launches() -> None:
    v = ti.Vector.field(2, ti.f64, shape=2, needs_grad=True)
    loss = scalar()

    @ti.kernel
    def square():
        for i in v:
            loss[None] += v[i].norm_sqr()

    v.fill(1)
    with ti.ad.Tape(loss=loss):
        square()
        v[0][1] = 50
        square()
    assert v.grad.to_numpy().tolist() == [[4, 2], [4, 4]]


def test_integer_fields_that_steer_are_kept() -> None:
    n = 6
    pick = ti.field(ti.i32, shape=n)
    count = ti.field(ti.i32, shape=())
    x, loss = array(n), scalar()

    @ti.kernel
    def gather():
        for i in pick:
            s = 0.0
            for k in range(count[None]):
                s += x[pick[i]] * (k + 1)
            if pick[i] % 2 == 0:
                s *= 3
            loss[None] += s

    @ti.kernel
    def shuffle():
        for i in pick:
            pick[i] = (pick[i] + 2) % n
        count[None] += 1

    x.from_numpy(np.arange(n) + 1.0)
    pick.from_numpy(np.array([0, 0, 1, 3, 3, 5], np.int32))
    count[None] = 2
    expected = np.zeros(n)
    picks, times = pick.to_numpy(), 2
    for _ in range(3):
        for p in picks:
            expected[p] += sum(range(1, times + 1)) * (3 if p % 2 == 0 else 1)
        picks, times = (picks + 2) % n, times + 1
    with ti.ad.Tape(loss=loss):
        for _ in range(3):
            gather()
            shuffle()
    assert x.grad.to_numpy().tolist() == expected.tolist()


def test_arguments_of_each_launch_are_remembered() -> None:
    x, loss = array(5), scalar()

    @ti.kernel
    def pick(i: ti.i32, a: ti.f64):
        loss[None] += a * x[i] ** 2

    x.from_numpy(np.arange(5.0))
    with ti.ad.Tape(loss=loss):
        for i in range(5):
            pick(i, 10.0 * i)
    assert x.grad.to_numpy().tolist() == [20 * i * i for i in range(5)]


def test_random_draws_are_replayed() -> None:
    n = 50
    x, y, loss = array(n), array(n), scalar()

    @ti.kernel
    def noisy():
        for i in x:
            y[i] = x[i] * ti.random(ti.f64)

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    x.fill(1)
    with ti.ad.Tape(loss=loss):
        noisy()
        total()
    np.testing.assert_array_equal(x.grad.to_numpy(), y.to_numpy())
    assert len(np.unique(y.to_numpy())) == n
    y.grad.fill(1)
    x.grad.fill(0)
    noisy()
    noisy.grad()
    np.testing.assert_array_equal(x.grad.to_numpy(), y.to_numpy())


def test_the_same_kernel_twice_and_a_tape_in_a_loop() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def add():
        loss[None] += x[None] ** 2

    x[None] = 3
    for _ in range(20):
        with ti.ad.Tape(loss=loss):
            add()
            add()
        assert loss[None] == pytest.approx(2 * x[None] ** 2)
        assert x.grad[None] == pytest.approx(4 * x[None])
        x[None] -= 0.1 * x.grad[None]


def test_gradients_can_be_kept() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    x[None] = 1
    x.grad[None] = 100
    with ti.ad.Tape(loss=loss, clear_gradients=False):
        square()
    assert x.grad[None] == 102
    with ti.ad.Tape(loss=loss):
        square()
    assert x.grad[None] == 2


def test_an_empty_tape() -> None:
    x, loss = scalar(), scalar()
    x.grad[None] = 5
    loss[None] = 7
    with ti.ad.Tape(loss=loss):
        pass
    assert (loss[None], loss.grad[None], x.grad[None]) == (0, 1, 0)


def test_a_kernel_that_returns_a_value() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square() -> ti.f64:
        loss[None] += x[None] ** 2
        return 2 * x[None]

    x[None] = 3
    with ti.ad.Tape(loss=loss):
        assert square() == 6
    assert x.grad[None] == 6


def test_launches_of_other_threads_do_not_land_on_the_tape() -> None:
    x, y, loss = scalar(), scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    @ti.kernel
    def other():
        y[None] += x[None] * 1000

    x[None] = 3
    with ti.ad.Tape(loss=loss) as tape:
        square()
        worker = threading.Thread(target=lambda: [other() for _ in range(5)])
        worker.start()
        worker.join()
    assert len(tape.records) == 1
    assert x.grad[None] == 6
    assert y[None] == 15000


def test_two_threads_with_a_tape_each() -> None:
    results: dict[int, list[float]] = {}
    barrier = threading.Barrier(2)

    def work(k: int) -> None:
        x, loss = scalar(), scalar()

        @ti.kernel
        def square():
            loss[None] += k * x[None] ** 2

        x[None] = 3
        found: list[float] = []
        barrier.wait()
        for _ in range(30):
            with ti.ad.Tape(loss=loss, clear_gradients=False):
                square()
            found.append(x.grad[None])
            x.grad[None] = 0
        results[k] = found

    workers = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == {1: [6.0] * 30, 2: [12.0] * 30}


def test_nothing_is_recorded_after_the_tape() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    x[None] = 2
    with ti.ad.Tape(loss=loss) as tape:
        square()
    square()
    assert len(tape.records) == 1
    assert x.grad[None] == 4


def test_a_launch_that_failed_is_no_part_of_the_tape() -> None:
    x, loss = array(3), scalar()

    @ti.kernel
    def square(i: ti.i32):
        loss[None] += x[i] ** 2

    x.fill(2)
    with ti.ad.Tape(loss=loss) as tape:
        square(0)
        with pytest.raises(KernelIndexError):
            square(3)
        square(1)
    assert len(tape.records) == 2
    assert x.grad.to_numpy().tolist() == [4, 4, 0]


def test_slices_of_a_view_count_as_views() -> None:
    x, loss = array(3), scalar()
    part = x.numpy_view()[1:]

    @ti.kernel
    def square():
        for i in x:
            loss[None] += x[i] ** 2

    x.fill(3)
    with ti.ad.Tape(loss=loss):
        square()
        part[:] = 100
        square()
    assert x.grad.to_numpy().tolist() == [12, 206, 206]
    assert x.to_numpy().tolist() == [3, 100, 100]


def test_a_tape_goes_with_its_last_reference() -> None:
    """What it has kept must not wait for Python's search for cycles."""
    x, loss = array(3), scalar()

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] ** 2

    gc.disable()
    try:
        with ti.ad.Tape(loss=loss) as tape:
            square()
            square()
        assert tape.copied_bytes > 0
        left = weakref.ref(tape)
        del tape
        assert left() is None
    finally:
        gc.enable()
