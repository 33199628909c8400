"""`ti.ad.checkpoint`: the same gradients as a plain tape, in bounded memory, with the fewest steps run again."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tqdm.std import tqdm

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError, KernelMemoryError
from tinote.lang.ad import bars

Loop = Callable[[Callable[[int], Any], int], Any]


def _plainly(step: Callable[[int], Any], steps: int) -> None:
    for t in range(steps):
        step(t)


class Pendulums:
    """Semi-implicit Euler steps that overwrite positions and velocities, through a grid that is cleared."""

    def __init__(self, n: int = 6) -> None:
        x, v, grid, k, loss = array(n), array(n), array(n), scalar(), scalar()

        @ti.kernel
        def scatter():
            for i in x:
                grid[i] += ti.sin(x[i])
                grid[(i + 1) % n] += 0.1 * x[i] * v[i]

        @ti.kernel
        def kick(t: ti.i32):
            for i in x:
                v[i] -= 0.05 * k[None] * grid[i] + 0.001 * t * v[i]

        @ti.kernel
        def drift():
            for i in x:
                x[i] += 0.05 * v[i]

        @ti.kernel
        def measure():
            for i in x:
                loss[None] += x[i] ** 2 * (i + 1) + v[i]

        self.x, self.v, self.grid, self.k, self.loss, self.n = x, v, grid, k, loss, n
        self.scatter, self.kick, self.drift, self.measure = scatter, kick, drift, measure

    def step(self, t: int) -> None:
        self.grid.fill(0)
        self.scatter()
        self.kick(t)
        self.drift()

    def gradients(self, loop: Loop, steps: int) -> tuple[Any, list[np.ndarray[Any, Any]]]:
        self.x.from_numpy(np.linspace(0.3, 1.2, self.n))
        self.v.from_numpy(np.linspace(-0.5, 0.5, self.n))
        self.grid.fill(9)
        self.k[None] = 1.3
        with ti.ad.Tape(loss=self.loss):
            self.drift()
            report = loop(self.step, steps)
            self.measure()
        fields = (self.x.grad, self.v.grad, self.k.grad, self.loss, self.x, self.v, self.grid)
        return report, [f.to_numpy() for f in fields]


@functools.cache
def fewest(steps: int, slots: int) -> int:
    """The least number of steps that are run without being reversed, by trying all places of the next kept state."""
    if steps == 1:
        return 0
    if slots == 1:
        return steps * (steps - 1) // 2
    return min(m + fewest(steps - m, slots - 1) + fewest(m, slots) for m in range(1, steps))


@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 50])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 23])
def test_equal_to_a_plain_tape_with_the_fewest_steps(steps: int, snapshots: int) -> None:
    p = Pendulums()
    _, wanted = p.gradients(_plainly, steps)
    loop = functools.partial(ti.ad.checkpoint, snapshots=snapshots)
    report, found = p.gradients(loop, steps)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    # What follows the loop is one more step of the chain, reversed first.
    assert report.recomputed == fewest(steps + 1, snapshots)
    assert report.snapshots == min(snapshots, steps)
    assert report.state_bytes == 3 * p.n * 8
    assert report.steps == steps


@pytest.mark.parametrize("states", [4, 6, 12])
def test_the_memory_is_bounded(states: int) -> None:
    p = Pendulums(512)
    steps, state = 60, 3 * 512 * 8
    _, wanted = p.gradients(_plainly, steps)
    report, found = p.gradients(functools.partial(ti.ad.checkpoint, memory=states * state), steps)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    assert 2 * state < report.peak_bytes <= states * state
    assert report.recomputed >= fewest(steps + 1, states - 1)
    # Only the states that give way to the values of a recorded step are missing.
    assert report.recomputed <= fewest(steps + 1, states - 3)
    assert "60 steps" in repr(report)
    assert "KiB" in repr(report)


def test_memory_for_less_than_a_state() -> None:
    p = Pendulums(512)
    with pytest.raises(KernelMemoryError, match="of this loop takes") as caught:
        p.gradients(functools.partial(ti.ad.checkpoint, memory=2000), 5)
    assert caught.value.span.file == __file__
    _, wanted = p.gradients(_plainly, 5)
    _, found = p.gradients(ti.ad.checkpoint, 5)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)


def test_without_a_tape_and_in_forward_mode() -> None:
    x, y = (ti.field(ti.f64, (), needs_dual=True) for _ in range(2))

    @ti.kernel
    def step():
        y[None] += y[None] * x[None]

    x[None], y[None] = 2.0, 1.0
    report = ti.ad.checkpoint(lambda t: step(), 3)
    assert (y[None], report.recomputed) == (27.0, 0)
    y[None] = 1.0
    with ti.ad.FwdMode(loss=y, param=x):
        ti.ad.checkpoint(lambda t: step(), 3)
        assert y.dual[None] == 3 * 9.0


def test_no_steps() -> None:
    p = Pendulums()
    _, wanted = p.gradients(_plainly, 0)
    report, found = p.gradients(ti.ad.checkpoint, 0)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert report.recomputed == 0


def test_fields_that_are_first_written_in_later_steps() -> None:
    x, y, i, loss = array(3), array(3), ti.field(ti.i32, ()), scalar()

    @ti.kernel
    def square():
        for j in x:
            x[j] = ti.sin(x[j]) + y[j] * x[j]

    @ti.kernel
    def late():
        for j in x:
            y[j] += 0.1 * x[j]
        i[None] += 1

    @ti.kernel
    def measure():
        for j in x:
            loss[None] += x[j] * y[j] * i[None]

    def step(t: int) -> None:
        square()
        if t % 3 == 2:
            late()
        if t == 7:
            y[1] = 0.25

    def run(loop: Loop) -> list[Any]:
        x.from_numpy(np.array([0.2, 0.5, 0.9]))
        y.from_numpy(np.array([0.1, 0.3, -0.2]))
        i[None] = 1
        with ti.ad.Tape(loss=loss):
            loop(step, 11)
            measure()
        return [f.to_numpy() for f in (x.grad, y.grad, x, y, i, loss)]

    wanted = run(_plainly)
    for snapshots in (1, 2, 4):
        found = run(functools.partial(ti.ad.checkpoint, snapshots=snapshots))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_what_stands_before_and_behind_the_loop() -> None:
    """Launches around the loop find their fields, and parameters that change later count as they were."""
    x, y, w, loss = array(4), array(4), scalar(), scalar()

    @ti.kernel
    def measure(f: ti.template(), weight: ti.f64):
        for i in f:
            loss[None] += weight * f[i] ** 2

    @ti.kernel
    def to_y():
        for i in x:
            y[i] = ti.sin(x[i]) * w[None]

    @ti.kernel
    def to_x():
        for i in x:
            x[i] = y[i] + 0.1 * y[(i + 1) % 4]

    def step(t: int) -> None:
        to_y()
        to_x()

    def run(loop: Loop) -> list[Any]:
        x.from_numpy(np.array([0.2, 0.5, 0.9, 1.4]))
        w[None] = 0.8
        with ti.ad.Tape(loss=loss):
            measure(x, 1.0)
            loop(step, 5)
            measure(x, 10.0)
            w[None] = 1.1
            loop(step, 4)
            measure(x, 100.0)
            x.fill(0)
        return [f.to_numpy() for f in (x.grad, y.grad, w.grad, x, y, w, loss)]

    wanted = run(_plainly)
    for snapshots in (1, 2, 4):
        found = run(functools.partial(ti.ad.checkpoint, snapshots=snapshots))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def _random_program(loop: Loop, at: float) -> tuple[Any, Any, Any]:
    """Seven steps that draw numbers, the same in every fresh session."""
    ti.init(default_fp=ti.f64)
    x, y, k, loss = array(4), array(4), scalar(), scalar()

    @ti.kernel
    def to_y():
        for i in x:
            y[i] = x[i] * (k[None] + ti.random(ti.f64))

    @ti.kernel
    def to_x():
        for i in x:
            x[i] = ti.sin(y[i])

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i]

    def step(t: int) -> None:
        to_y()
        to_x()

    x.fill(1)
    k[None] = at
    with ti.ad.Tape(loss=loss):
        loop(step, 7)
        measure()
    return loss[None], x.grad.to_numpy(), k.grad[None]


def test_the_same_draws_when_steps_run_again() -> None:
    value, by_x, by_k = _random_program(functools.partial(ti.ad.checkpoint, snapshots=2), 0.7)
    plain_value, plain_by_x, plain_by_k = _random_program(_plainly, 0.7)
    assert value == pytest.approx(plain_value, rel=1e-12)
    assert by_k == pytest.approx(plain_by_k, rel=1e-12)
    np.testing.assert_allclose(by_x, plain_by_x, rtol=1e-12)
    above, below = (_random_program(_plainly, 0.7 + offset)[0] for offset in (1e-6, -1e-6))
    assert by_k == pytest.approx((above - below) / 2e-6, rel=1e-6)


def test_a_view_through_which_a_step_writes() -> None:
    """No recorder is notified of what is written through a view: the field behind it is part of the state."""
    x, y, loss = array(3), array(3), scalar()
    view = x.numpy_view()

    @ti.kernel
    def use():
        for i in x:
            y[i] += x[i] ** 2

    @ti.kernel
    def measure():
        for i in y:
            loss[None] += y[i]

    def step(t: int) -> None:
        use()
        view[:] = view * 2

    for loop in (_plainly, functools.partial(ti.ad.checkpoint, snapshots=1)):
        view[:] = [1.0, 2.0, 3.0]
        y.fill(0)
        with ti.ad.Tape(loss=loss):
            loop(step, 4)
            measure()
        assert loss[None] == 14 * (1 + 4 + 16 + 64)
        # Numbers that Python writes are constants, whose gradient is added to that of the values before.
        assert x.grad.to_numpy().tolist() == [2 * 15.0, 4 * 15.0, 6 * 15.0]


def test_steps_with_replaced_gradients_and_constants() -> None:
    x, y, c, loss = array(3), array(3), array(3), scalar()

    @ti.kernel
    def to_y():
        for i in x:
            y[i] = ti.sin(x[i]) * c[i]

    @ti.kernel
    def to_x():
        for i in x:
            x[i] = y[i]

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] * (i + 1)

    @ti.kernel
    def constants():
        for i in x:
            c[i] = 1.0 + x[i] ** 2

    @ti.ad.grad_replaced
    def there_and_back() -> None:
        to_y()
        to_x()

    @ti.ad.grad_for(there_and_back)
    def backward() -> None:
        # x was overwritten; y = sin(x_old) c, so that cos(x_old) = sqrt(1 - (y / c)²)
        slope = np.sqrt(1 - (y.to_numpy() / c.to_numpy()) ** 2) * c.to_numpy()
        x.grad.from_numpy(x.grad.to_numpy() * slope)

    def step(t: int) -> None:
        ti.ad.no_grad(constants)()
        there_and_back()

    def run(loop: Loop) -> list[Any]:
        x.from_numpy(np.array([0.1, 0.2, 0.3]))
        with ti.ad.Tape(loss=loss):
            loop(step, 6)
            measure()
        return [f.to_numpy() for f in (x.grad, x, loss)]

    wanted = run(_plainly)
    for snapshots in (1, 2, 9):
        for a, b in zip(run(functools.partial(ti.ad.checkpoint, snapshots=snapshots)), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    value, slope = np.array([0.1, 0.2, 0.3]), np.ones(3)
    for _ in range(6):
        factor = 1 + value**2
        value, slope = np.sin(value) * factor, slope * np.cos(value) * factor
    np.testing.assert_allclose(wanted[0], slope * [1, 2, 3], rtol=1e-9)


def test_a_loop_in_a_loop() -> None:
    p = Pendulums()

    def outer(t: int) -> None:
        ti.ad.checkpoint(p.step, 3, snapshots=2)

    _, wanted = p.gradients(lambda step, n: [_plainly(step, 3) for _ in range(n)], 5)
    _, found = p.gradients(lambda step, n: ti.ad.checkpoint(outer, n, snapshots=2), 5)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_the_function_api_and_gradcheck() -> None:
    p = Pendulums(3)
    p.x.from_numpy(np.array([0.3, 0.7, 1.1]))
    p.k[None] = 1.3

    def run() -> None:
        ti.ad.checkpoint(p.step, 7, snapshots=2)
        p.measure()

    report = ti.ad.gradcheck(run, [p.x, p.k, p.v], p.loss)
    assert len(report.elements) == 7
    start = p.x.to_numpy()
    checkpointed = ti.ad.jacobian(lambda: ti.ad.checkpoint(p.step, 7, snapshots=2), wrt=p.x, loss=p.v)()
    p.x.from_numpy(start)
    p.v.fill(0)
    plain = ti.ad.jacobian(lambda: _plainly(p.step, 7), wrt=p.x, loss=p.v)()
    np.testing.assert_allclose(checkpointed, plain, rtol=1e-12)


def test_numbers_that_kernels_count_and_return() -> None:
    """What a launch counts up in memory of its own is nothing that is written over."""
    x, loss = array(4), scalar()
    x.from_numpy(np.array([0.3, -0.2, 0.5, 0.9]))

    @ti.kernel
    def count(limit: ti.f64) -> ti.i32:
        found = 0
        for i in x:
            if x[i] > limit:
                found += 1
        return found

    @ti.kernel
    def add(times: ti.i32):
        for i in x:
            loss[None] += times * x[i] ** 2

    def step(t: int) -> None:
        add(count(0.1) + t)

    def run() -> None:
        ti.ad.checkpoint(step, 2, progress=False)

    with ti.ad.Tape(loss):
        run()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * (3 + 4) * x.to_numpy())
    assert ti.ad.gradcheck(lambda: add(count(0.1)), [x], loss).ok


def test_a_step_that_does_something_else_again_is_refused() -> None:
    p = Pendulums()
    calls = 0

    def step(t: int) -> None:
        nonlocal calls
        calls += 1
        p.kick(calls)
        p.drift()

    p.x.fill(0.5)
    with pytest.raises(DifferentiationError, match=r"step\(4\) did something else") as caught:
        p.gradients(lambda _, steps: ti.ad.checkpoint(step, steps), 5)
    assert "ti.ad.checkpoint(step, steps)" in str(caught.value)
    _, wanted = p.gradients(_plainly, 5)
    _, found = p.gradients(ti.ad.checkpoint, 5)
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(found, wanted, strict=True))


def test_an_exception_in_a_step_leaves_everything_usable() -> None:
    p = Pendulums()

    def step(t: int) -> None:
        p.step(t)
        if t == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        p.gradients(lambda _, steps: ti.ad.checkpoint(step, steps), 5)
    _, wanted = p.gradients(_plainly, 5)
    _, found = p.gradients(ti.ad.checkpoint, 5)
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(found, wanted, strict=True))


def test_a_bar_for_what_takes_long(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    p = Pendulums()
    p.gradients(functools.partial(ti.ad.checkpoint, snapshots=2), 9)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(bars, "SECONDS_BEFORE_A_BAR", 0)
    p.gradients(functools.partial(ti.ad.checkpoint, snapshots=2), 9)
    assert capsys.readouterr().err == "", "a pipe or a log holds no bar"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    p.gradients(functools.partial(ti.ad.checkpoint, snapshots=2), 9)
    assert "steps run again" in capsys.readouterr().err
    p.gradients(functools.partial(ti.ad.checkpoint, snapshots=2, progress=False), 9)
    assert capsys.readouterr().err == ""


def test_a_front_end_says_what_bars_are_drawn_with() -> None:
    drawn: list[str] = []

    class Noted(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            drawn.append(options["desc"])
            super().__init__(*args, **options)

    p = Pendulums()
    bars.draw_bars_with(lambda: Noted)
    try:
        p.gradients(functools.partial(ti.ad.checkpoint, snapshots=2), 9)
    finally:
        bars.draw_bars_with(None)
    assert drawn == ["steps", "steps run again"]
    p.gradients(functools.partial(ti.ad.checkpoint, snapshots=2), 9)
    assert len(drawn) == 2
