"""The tape and `kernel.grad` as a user meets them: right, or refused by name and line."""

import threading
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError, FieldError, KernelIndexError, KernelMemoryError


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def scalar(**more: Any) -> Any:
    return ti.field(ti.f64, shape=(), needs_grad=True, **more)


def array(*shape: int) -> Any:
    return ti.field(ti.f64, shape=shape, needs_grad=True)


def check_gradient(run: Any, loss: Any, fields: list[Any], tolerance: float = 1e-6) -> None:
    """Compare what a tape around `run` gives with central differences of the loss, for every element of `fields`."""
    starts = [f.to_numpy() for f in fields]
    with ti.ad.Tape(loss=loss):
        run()
    found = [f.grad.to_numpy() for f in fields]

    def value() -> float:
        loss[None] = 0
        run()
        return loss[None]

    for field, start, gradient in zip(fields, starts, found, strict=True):
        for index in np.ndindex(start.shape):
            h = 1e-5 * max(1.0, abs(start[index]))
            sides: list[float] = []
            for sign in (1, -1):
                for other, begin in zip(fields, starts, strict=True):
                    other.from_numpy(begin)
                moved = start.copy()
                moved[index] += sign * h
                field.from_numpy(moved)
                sides.append(value())
            difference = (sides[0] - sides[1]) / (2 * h)
            assert gradient[index] == pytest.approx(difference, rel=tolerance, abs=tolerance), (field.name, index)
    for other, begin in zip(fields, starts, strict=True):
        other.from_numpy(begin)


# the classic


@pytest.mark.parametrize("n", [1, 2, 8, 33])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=str)
def test_gravity(dtype: Any, n: int) -> None:
    x = ti.Vector.field(2, dtype, shape=n, needs_grad=True)
    v = ti.Vector.field(2, dtype, shape=n)
    U = ti.field(dtype, shape=(), needs_grad=True)
    dt = 1e-3

    @ti.kernel
    def compute_U():
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
        np.testing.assert_allclose(x.grad.to_numpy(), gradient, rtol=tolerance, atol=tolerance * max(1, abs(gradient).max()))
        advance()
        velocities -= dt * gradient
        positions = positions + dt * velocities
        np.testing.assert_allclose(x.to_numpy(), positions, rtol=tolerance, atol=tolerance)


# the documentation's examples


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


def test_a_python_write_is_no_part_of_the_gradient() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def differentiable_task():
        for l in range(3):
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
    assert x.grad[None] == 4.0
    x.grad[None] = 0.0
    assert x.grad[None] == 0.0


def test_reading_then_changing_between_the_loops_of_one_kernel() -> None:
    """`loss = x[1] * b; b += 100`: 10 where the tape saves what is overwritten, refused where it does not; never 110."""
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


# several launches


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


def test_writes_through_an_older_view() -> None:
    """A view that was taken before the tape can be written without a word: what the gradient needs must not change with it."""
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
    assert v.grad.to_numpy().tolist() == [[4, 102], [4, 4]]


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
    picks, turns = pick.to_numpy(), 2
    for _ in range(3):
        for p in picks:
            expected[p] += sum(range(1, turns + 1)) * (3 if p % 2 == 0 else 1)
        picks, turns = (picks + 2) % n, turns + 1
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


# who is recorded


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


# what goes wrong


def test_an_exception_leaves_everything_usable() -> None:
    x, loss = array(3), scalar()

    @ti.kernel
    def square(i: ti.i32):
        loss[None] += x[i] ** 2

    x.fill(2)
    for bad in (lambda: 1 / 0, lambda: square(3), lambda: square("a")):
        with pytest.raises((ZeroDivisionError, KernelIndexError, TypeError)), ti.ad.Tape(loss=loss):
            square(0)
            bad()
        assert not x.grad.to_numpy().any()
        with ti.ad.Tape(loss=loss):
            square(1)
        assert x.grad.to_numpy().tolist() == [0, 4, 0]


def test_a_tape_in_a_tape() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    x[None] = 2
    with ti.ad.Tape(loss=loss):
        square()
        with pytest.raises(DifferentiationError, match="inside of another"), ti.ad.Tape(loss=loss):
            pass
    assert x.grad[None] == 4


def test_bad_losses() -> None:
    for bad in (array(3), ti.Vector.field(2, ti.f64, shape=(), needs_grad=True), ti.field(ti.f64, shape=()), ti.field(ti.i32, shape=()), 3, None, "loss"):
        with pytest.raises(DifferentiationError):
            ti.ad.Tape(loss=bad)


def test_a_field_without_gradient_in_the_path() -> None:
    x, y, z, loss = array(4), ti.field(ti.f64, shape=4), ti.field(ti.f64, shape=4), scalar()

    @ti.kernel
    def first():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def second():
        for i in y:
            z[i] = 3 * y[i]

    @ti.kernel
    def third():
        for i in z:
            loss[None] += z[i] * x[i]

    @ti.kernel
    def together():
        for i in x:
            y[i] = x[i] ** 2
        for i in y:
            z[i] = 3 * y[i]
        for i in z:
            loss[None] += z[i]

    x.fill(1)
    with pytest.raises(DifferentiationError, match="has no gradient") as caught, ti.ad.Tape(loss=loss):
        first()
        second()
        third()
    assert "needs_grad=True" in str(caught.value)
    with pytest.raises(DifferentiationError, match="'[yz]' has no gradient"), ti.ad.Tape(loss=loss):
        together()
    with pytest.raises(DifferentiationError, match="'[yz]' has no gradient"):
        together.grad()
    # Constants without a gradient are no part of the path, and neither is what is only written.
    y.fill(2)
    with ti.ad.Tape(loss=loss):
        second()
        third()
        first()
    assert x.grad.to_numpy().tolist() == [6] * 4


def test_a_broken_chain_through_python_is_the_users() -> None:
    """Python-scope values are constants, as documented."""
    x, loss = scalar(), scalar()
    c = ti.field(ti.f64, shape=())

    @ti.kernel
    def use():
        loss[None] += c[None] * x[None]

    x[None] = 2
    with ti.ad.Tape(loss=loss):
        c[None] = x[None] ** 2
        use()
    assert x.grad[None] == 4


def test_what_is_not_differentiable_is_refused_with_its_line() -> None:
    x, loss = array(4), scalar()

    @ti.kernel
    def extreme():
        for i in x:
            ti.atomic_max(loss[None], x[i])

    with pytest.raises(DifferentiationError) as caught, ti.ad.Tape(loss=loss):
        extreme()
    assert "ti.atomic_max(loss[None], x[i])" in str(caught.value)


def test_reading_a_gradient_in_a_taped_kernel() -> None:
    x, loss = array(4), scalar()

    @ti.kernel
    def use():
        for i in x:
            loss[None] += x.grad[i] * x[i]

    with pytest.raises(DifferentiationError, match=r"reads the gradient '.*grad'"), ti.ad.Tape(loss=loss):
        use()


def test_gradient_of_a_reset_field() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    square.grad()
    tape = ti.ad.Tape(loss=loss)
    ti.reset()
    for act in (square.grad, tape.__enter__, lambda: ti.ad.Tape(loss=loss).__enter__()):
        with pytest.raises((FieldError, DifferentiationError)):
            act()
    ti.init(default_fp=ti.f64)
    x, loss = scalar(), scalar()
    x[None] = 4
    with ti.ad.Tape(loss=loss):
        square()
    assert x.grad[None] == 8


def test_the_memory_limit_of_a_tape() -> None:
    ti.init(default_fp=ti.f64, memory_limit=100_000)
    x, loss = array(4000), scalar()

    @ti.kernel
    def add():
        for i in x:
            loss[None] += ti.sin(x[i])

    with pytest.raises(KernelMemoryError, match="100,000 bytes"), ti.ad.Tape(loss=loss):
        for k in range(10):
            add()
            x.fill(k)
    x.fill(0)
    with ti.ad.Tape(loss=loss):
        add()
    assert (x.grad.to_numpy() == 1).all()


def test_saved_values_past_the_limit() -> None:
    """The saved values of one gradient launch: refused with the limit, and the session goes on."""
    ti.init(default_fp=ti.f64, memory_limit=1_000_000)
    x, loss = array(1), scalar()

    @ti.kernel
    def long(n: ti.i32):
        for i in x:
            s = x[i]
            for k in range(n):
                s = ti.sin(s) + 0.1 * s * s
            loss[None] += s

    x.fill(0.3)
    with pytest.raises(MemoryError, match="1,000,000|limit"), ti.ad.Tape(loss=loss):
        long(10_000_000)
    with ti.ad.Tape(loss=loss):
        long(10)
    assert np.isfinite(x.grad[0])
    assert x.grad[0] != 0


# programs against differences


def test_inner_loops_and_carried_values() -> None:
    n = 5
    x, w, loss = array(n), array(n), scalar()
    turns = ti.field(ti.i32, shape=n)
    turns.from_numpy(np.array([0, 1, 7, 3, -2], np.int32))

    @ti.kernel
    def run():
        for i in x:
            s, p = 0.0, 1.0
            for k in range(turns[i]):
                s += ti.exp(x[(i + k) % n] * w[i]) * p
                p = p * 0.9 + 0.1 * ti.tanh(s)
                for j in range(k):
                    p += 0.05 * s * x[j % n]
            loss[None] += s * p

    x.from_numpy(np.linspace(-0.5, 0.5, n))
    w.from_numpy(np.linspace(0.2, 0.9, n))
    check_gradient(run, loss, [x, w])


def test_whiles_branches_and_jumps() -> None:
    n = 6
    x, loss = array(n), scalar()

    @ti.kernel
    def run():
        for i in x:
            s = x[i] + 2
            k = 0
            while s > 1.05:
                s = ti.sqrt(s) * (1 + 0.001 * i)
                k += 1
                if k > 12:
                    break
            t = 0.0
            for j in range(8):
                if j % 3 == 1:
                    continue
                if j > i + 2:
                    break
                t += s**j if j % 2 == 0 else x[j % n] * s
            loss[None] += t if t > 3 else t * t

    x.from_numpy(np.linspace(0.1, 3.3, n))
    check_gradient(run, loss, [x])


def test_vectors_matrices_and_funcs() -> None:
    n = 4
    x = ti.Vector.field(2, ti.f64, shape=n, needs_grad=True)
    F = ti.Matrix.field(2, 2, ti.f64, shape=n, needs_grad=True)
    mu, loss = scalar(), scalar()

    @ti.func
    def energy(A):
        J = A.determinant()
        return mu[None] * ((A @ A.transpose()).trace() - 2) - mu[None] * ti.log(J) + 0.5 * ti.log(J) ** 2

    @ti.kernel
    def run():
        for i in x:
            A = F[i] + 0.1 * x[i].outer_product(x[(i + 1) % n])
            loss[None] += energy(A) + (A.inverse() @ x[i]).norm(1e-3) + x[i].dot(A @ x[i])

    random = np.random.default_rng(3)
    x.from_numpy(random.normal(size=(n, 2)))
    F.from_numpy(np.eye(2) + 0.1 * random.normal(size=(n, 2, 2)))
    mu[None] = 1.7
    check_gradient(run, loss, [x, F, mu])


def test_scatter_and_gather_through_a_grid() -> None:
    """The heart of MPM: particles to grid and back, each step in its own slice, the grid cleared between."""
    n, m, steps = 5, 6, 3
    x, v, grid, loss = array(steps + 1, n), array(steps + 1, n), array(m), scalar()

    @ti.kernel
    def clear():
        for i in grid:
            grid[i] = 0

    @ti.kernel
    def scatter(t: ti.i32):
        for p in range(n):
            base = ti.cast(ti.floor(x[t, p]), ti.i32)
            fx = x[t, p] - base
            grid[base] += (1 - fx) * v[t, p]
            grid[base + 1] += fx * v[t, p]

    @ti.kernel
    def gather(t: ti.i32):
        for p in range(n):
            base = ti.cast(ti.floor(x[t, p]), ti.i32)
            fx = x[t, p] - base
            nv = (1 - fx) * grid[base] + fx * grid[base + 1]
            v[t + 1, p] = nv * 0.9
            x[t + 1, p] = x[t, p] + 0.1 * nv

    @ti.kernel
    def total():
        for p in range(n):
            loss[None] += x[steps, p] ** 2 + v[steps, p]

    def run() -> None:
        for t in range(steps):
            clear()
            scatter(t)
            gather(t)
        total()

    start = np.zeros((steps + 1, n))
    start[0] = [0.3, 1.4, 1.6, 2.2, 3.7]
    x.from_numpy(start)
    start[0] = [0.5, -0.2, 0.1, 0.3, -0.4]
    v.from_numpy(start)
    check_gradient(run, loss, [x, v])


def test_minima_maxima_selects_and_casts() -> None:
    n = 6
    x, loss = array(n), scalar()

    @ti.kernel
    def run():
        for i in x:
            a = ti.min(x[i], 0.5) + ti.max(x[i] * 2, -x[i], 0.1)
            b = ti.select(x[i] > 0, ti.sqrt(abs(x[i])), x[i] ** 2)
            c = ti.cast(ti.cast(a * b, ti.f32), ti.f64) + ti.cast(x[i] * 10, ti.i32)
            loss[None] += a * b + ti.floor(c) * x[i] + ti.atan2(a, b + 3) + abs(x[i]) ** 1.5

    x.from_numpy(np.array([-1.33, -0.41, -0.12, 0.27, 0.44, 1.61]))
    check_gradient(run, loss, [x])


def test_several_loops_in_one_kernel() -> None:
    n = 5
    x, y, z, loss = array(n), array(n), scalar(), scalar()

    @ti.kernel
    def run(a: ti.f64):
        for i in x:
            y[i] = ti.sin(x[i]) * a
        b = a * 2
        for i in y:
            z[None] += y[i] * y[(i + 1) % n] * b
        loss[None] += z[None] ** 2
        for i in x:
            loss[None] += x[i] * y[i]

    x.from_numpy(np.linspace(0.3, 1.2, n))

    def start() -> None:
        z[None] = 0
        run(1.3)

    check_gradient(start, loss, [x])


@pytest.mark.parametrize("threads", [1, 2])
def test_fast_and_exact_maths_agree(threads: int) -> None:
    results: list[Any] = []
    for fast in (True, False):
        ti.init(default_fp=ti.f64, fast_math=fast, num_threads=threads)
        x, loss = array(40), scalar()

        @ti.kernel
        def run():
            for i in x:
                s = x[i]
                for k in range(5):
                    s = s / (1 + s * s) + ti.cos(s) * k
                loss[None] += s

        x.from_numpy(np.linspace(-2, 2, 40))
        with ti.ad.Tape(loss=loss):
            run()
        results.append(x.grad.to_numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9)


def test_finite_where_a_limit_exists() -> None:
    x, loss = array(2), scalar()
    v = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        loss[None] += v[None].norm() + ti.sqrt(x[0] ** 2) + ti.select(x[1] > 0, ti.log(x[1]), 3 * x[1]) + ti.select(x[1] > 0, 1 / x[1], 0.0)

    with ti.ad.Tape(loss=loss):
        run()
    assert np.isfinite(v.grad.to_numpy()).all()
    assert np.isfinite(x.grad.to_numpy()).all()
    assert x.grad[1] == 3


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
