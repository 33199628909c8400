"""Replaced gradients and functions without gradient."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


def test_two_launches_whose_gradient_launches_one() -> None:
    n = 128
    x, total = array(n), scalar()

    @ti.kernel
    def func(mul: ti.f64):
        for i in range(n):
            ti.atomic_add(total[None], x[i] * mul)

    @ti.ad.grad_replaced
    def forward(mul):
        func(mul)
        func(mul)

    @ti.ad.grad_for(forward)
    def backward(mul):
        func.grad(mul)

    x.fill(1)
    with ti.ad.Tape(loss=total):
        forward(4)
    assert total[None] == 2 * 4 * n
    assert (x.grad.to_numpy() == 4).all()
    ti.ad.clear_all_gradients()
    total.grad[None] = 1
    forward.grad(4)
    assert (x.grad.to_numpy() == 4).all()
    # Outside of a tape it is the function itself.
    total[None] = 0
    forward(mul=3)
    assert total[None] == 2 * 3 * n


def test_methods_and_keywords_and_results() -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.x, self.y = scalar(), scalar()
            self.factor = factor

        @ti.kernel
        def square(self, scale: ti.f64):
            self.y[None] += scale * self.x[None] ** 2

        @ti.ad.grad_replaced
        def forward(self, scale: float) -> str:
            self.square(scale)
            return "done"

        @ti.ad.grad_for(forward)
        def backward(self, scale: float) -> None:
            self.x.grad[None] += self.factor * scale * self.y.grad[None]

    one, other = Model(10.0), Model(100.0)
    one.x[None], other.x[None] = 3.0, 5.0
    with ti.ad.Tape(loss=one.y):
        assert one.forward(scale=2.0) == "done"
    assert (one.y[None], one.x.grad[None], other.x.grad[None]) == (18.0, 20.0, 0.0)
    with ti.ad.Tape(loss=other.y):
        other.forward(2.0)
    assert (other.y[None], other.x.grad[None]) == (50.0, 200.0)
    other.forward.grad(1.0)
    assert other.x.grad[None] == 300.0


def test_it_stands_in_the_middle_of_a_chain() -> None:
    x, y, z, loss = array(3), array(3), array(3), scalar()

    @ti.kernel
    def double():
        for i in x:
            y[i] = 2 * x[i]

    @ti.kernel
    def cube():
        for i in y:
            z[i] = y[i] ** 3

    @ti.kernel
    def add():
        for i in z:
            loss[None] += z[i] ** 2

    @ti.ad.grad_replaced
    def middle() -> None:
        cube()

    @ti.ad.grad_for(middle)
    def middle_gradient() -> None:
        y.grad.from_numpy(y.grad.to_numpy() + 3 * y.to_numpy() ** 2 * z.grad.to_numpy())
        z.grad.fill(0)

    start = np.array([0.5, 1.0, -2.0])
    x.from_numpy(start)
    with ti.ad.Tape(loss=loss):
        double()
        middle()
        add()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * 6 * (2 * start) ** 5, rtol=1e-12)


def test_overwriting_inside_and_after() -> None:
    """Earlier launches find what the function overwrote; its gradient finds what was overwritten after it."""
    x, state, loss = scalar(), scalar(), scalar()
    seen: list[tuple[float, float]] = []

    @ti.kernel
    def use(weight: ti.f64):
        loss[None] += weight * x[None] ** 2

    @ti.kernel
    def scale_in_place():
        x[None] *= 5.0
        state[None] = x[None] + 1.0

    @ti.ad.grad_replaced
    def step() -> None:
        scale_in_place()

    @ti.ad.grad_for(step)
    def step_gradient() -> None:
        seen.append((x[None], state[None]))
        x.grad[None] *= 5.0
        scale_in_place()  # overwrites what others need
        x[None] = -1.0

    x[None] = 2.0
    with pytest.warns(UserWarning, match="leaves in '.*' here is undone"), ti.ad.Tape(loss=loss):
        use(1.0)
        step()
        use(10.0)
        step()
        use(100.0)
        x[None] = 7.0
        state.fill(0)
    assert seen == [(50.0, 51.0), (10.0, 11.0)]
    # loss = x² + 10 (5x)² + 100 (25x)²
    assert loss[None] == pytest.approx(4 + 10 * 100 + 100 * 2500)
    assert x.grad[None] == pytest.approx(2 * 2 + 10 * 50 * 2 + 100 * 1250 * 2)
    assert (x[None], state[None]) == (7.0, 0.0)


def test_launches_that_have_no_derivative_are_exempt() -> None:
    x, loss = array(4), scalar()

    @ti.kernel
    def extreme():
        for i in x:
            ti.atomic_max(loss[None], ti.bit_cast(ti.bit_cast(x[i], ti.i64), ti.f64))

    @ti.ad.grad_replaced
    def largest() -> None:
        extreme()

    @ti.ad.grad_for(largest)
    def largest_gradient() -> None:
        x.grad[int(np.argmax(x.to_numpy()))] += loss.grad[None]

    x.from_numpy(np.array([1.0, 7.0, 3.0, 2.0]))
    with ti.ad.Tape(loss=loss):
        largest()
    assert loss[None] == 7.0
    assert x.grad.to_numpy().tolist() == [0, 1, 0, 0]


def _scratch_program(scratch: Any, recompute: bool) -> tuple[Any, Any]:
    n, steps = 512, 6
    x, grid, loss = array(steps + 1, n), array(n), scalar()

    @ti.kernel
    def to_grid(t: ti.i32):
        for i in grid:
            grid[i] = ti.sin(x[t, i])

    @ti.kernel
    def from_grid(t: ti.i32):
        for i in grid:
            x[t + 1, i] = x[t, i] + 0.5 * grid[i] ** 2

    @ti.kernel
    def total():
        for i in grid:
            loss[None] += x[steps, i] ** 2

    @ti.ad.grad_replaced(scratch=(lambda t: grid) if scratch else ())
    def step(t: int) -> None:
        to_grid(t)
        from_grid(t)

    @ti.ad.grad_for(step)
    def step_gradient(t: int) -> None:
        if recompute:
            to_grid(t)
        from_grid.grad(t)
        to_grid.grad(t)

    start = np.zeros((steps + 1, n))
    start[0] = np.linspace(0.1, 0.9, n)
    x.from_numpy(start)
    with ti.ad.Tape(loss=loss) as tape:
        for t in range(steps):
            step(t)
        total()
    value, slope = start[0], np.ones(n)
    for _ in range(steps):
        value, slope = value + 0.5 * np.sin(value) ** 2, slope * (1 + np.sin(value) * np.cos(value))
    found = x.grad.to_numpy()[0]
    return tape, (found, 2 * value * slope)


def test_scratch_is_recomputed_and_not_kept() -> None:
    kept, (found, wanted) = _scratch_program(False, False)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    lean, (found, wanted) = _scratch_program(True, True)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    # The grid was overwritten five times.
    assert kept.copied_bytes - lean.copied_bytes == 5 * 512 * 8


def test_scratch_that_is_not_recomputed_is_noticed() -> None:
    _, (found, _) = _scratch_program(True, False)
    assert np.isnan(found).all()


def test_an_exception_inside_leaves_everything_usable() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    @ti.ad.grad_replaced
    def step(fail: bool, fail_back: bool) -> None:
        if fail:
            raise ZeroDivisionError
        square()

    @ti.ad.grad_for(step)
    def step_gradient(fail: bool, fail_back: bool) -> None:
        x[None] = 99.0
        if fail_back:
            raise ZeroDivisionError
        x.grad[None] += 1.0

    x[None] = 3.0
    for fail in (True, False):
        with pytest.raises(ZeroDivisionError), ti.ad.Tape(loss=loss):
            step(fail, not fail)
        assert x[None] == 3.0
    with ti.ad.Tape(loss=loss):
        step(False, False)
    assert (x.grad[None], x[None]) == (1.0, 99.0)


def test_what_is_refused() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    @ti.ad.grad_replaced
    def alone() -> None:
        square()

    with pytest.raises(DifferentiationError, match="no function was registered") as caught, ti.ad.Tape(loss=loss):
        alone()
    assert "alone()" in str(caught.value)
    with pytest.raises(DifferentiationError, match="no function was registered"):
        alone.grad()
    with pytest.raises(DifferentiationError, match="not a function with a replaced gradient"):
        ti.ad.grad_for(square)
    with pytest.raises(DifferentiationError, match="decorates a function"):
        ti.ad.grad_replaced(3)

    @ti.func
    def device(a):
        return a

    with pytest.raises(DifferentiationError, match="device function"):
        ti.ad.no_grad(device)
    with pytest.raises(DifferentiationError, match="not a function with a replaced gradient"):
        ti.ad.grad_for(device)

    def later():
        yield square()

    with pytest.raises(DifferentiationError, match="generator"):
        ti.ad.grad_replaced(later)
    p, q = ti.field(ti.f64, (), needs_dual=True), ti.field(ti.f64, (), needs_dual=True)
    with pytest.raises(DifferentiationError, match="no function was registered"), ti.ad.FwdMode(loss=p, param=q):
        alone()


def test_a_chain_that_breaks_in_a_replaced_function_is_refused() -> None:
    x, y, loss = scalar(), ti.field(ti.f64, ()), scalar()

    @ti.kernel
    def first():
        y[None] = x[None] ** 2

    @ti.kernel
    def second():
        loss[None] += y[None] * x[None]

    @ti.ad.grad_replaced
    def first_replaced() -> None:
        first()

    @ti.ad.grad_for(first_replaced)
    def first_gradient() -> None:
        pass

    @ti.ad.grad_replaced
    def second_replaced() -> None:
        second()

    @ti.ad.grad_for(second_replaced)
    def second_gradient() -> None:
        pass

    with pytest.raises(DifferentiationError, match="'y' has no gradient") as caught, ti.ad.Tape(loss=loss):
        first_replaced()
        second()
    assert "first_replaced()" in str(caught.value)
    with pytest.raises(DifferentiationError, match="'y' has no gradient") as caught, ti.ad.Tape(loss=loss):
        first()
        second_replaced()
    assert "second_replaced()" in str(caught.value)


def test_new_values_behind_a_replaced_function() -> None:
    """The gradient of what Python fills in later is not that of what the function computed."""
    x, y, loss = scalar(), scalar(), scalar()

    @ti.kernel
    def first():
        y[None] = 3 * x[None]

    @ti.kernel
    def add():
        loss[None] += y[None]

    @ti.ad.grad_replaced
    def replaced() -> None:
        first()

    @ti.ad.grad_for(replaced)
    def gradient() -> None:
        first.grad()

    with ti.ad.Tape(loss=loss):
        replaced()
        add()
        y.fill(2)
        add()
    assert x.grad[None] == 3.0


def test_no_grad_makes_constants() -> None:
    x, c, loss = scalar(), scalar(), scalar()

    @ti.kernel
    def measure():
        c[None] = x[None] ** 2

    @ti.kernel
    def use():
        loss[None] += c[None] * x[None]

    @ti.ad.no_grad
    def constant() -> int:
        measure()
        loss[None] += 1
        return 5

    x[None] = 3.0
    with ti.ad.Tape(loss=loss):
        assert constant() == 5
        use()
    assert (loss[None], x.grad[None], c.grad[None]) == (28.0, 9.0, 3.0)
    constant.grad()
    assert x.grad[None] == 9.0


def test_no_grad_refuses_to_overwrite_what_was_computed() -> None:
    x, y, loss = scalar(), scalar(), scalar()

    @ti.kernel
    def compute():
        y[None] = x[None] ** 2

    @ti.kernel
    def overwrite():
        y[None] = 7.0

    @ti.kernel
    def shift():
        y[None] += 7.0

    @ti.kernel
    def use():
        loss[None] += y[None]

    x[None] = 3.0
    with pytest.raises(DifferentiationError, match="'overwrite' stores constants"), ti.ad.Tape(loss=loss):
        compute()
        ti.ad.no_grad(overwrite)()
        use()
    with ti.ad.Tape(loss=loss):
        compute()
        ti.ad.no_grad(shift)()
        use()
    assert (loss[None], x.grad[None]) == (16.0, 6.0)
    with ti.ad.Tape(loss=loss):
        ti.ad.no_grad(overwrite)()
        use()
    assert (loss[None], x.grad[None], y.grad[None]) == (7.0, 0.0, 1.0)


def test_integers_in_scratch_are_kept() -> None:
    """A stale integer would not be noticed, so the gradient finds the ones of its own call."""
    x, chosen, loss = array(4), ti.field(ti.i32, ()), scalar()

    @ti.kernel
    def choose(k: ti.i32):
        chosen[None] = k

    @ti.kernel
    def add():
        loss[None] += x[chosen[None]]

    @ti.ad.grad_replaced(scratch=chosen)
    def step(k: int) -> None:
        choose(k)
        add()

    ti.ad.grad_for(step)(lambda k: add.grad())
    with ti.ad.Tape(loss=loss):
        step(1)
        step(3)
        chosen[None] = 0
    assert x.grad.to_numpy().tolist() == [0, 1, 0, 1]
    with pytest.raises(DifferentiationError, match="scratch is made of fields"), ti.ad.Tape(loss=loss):
        ti.ad.grad_for(replaced := ti.ad.grad_replaced(lambda: None, scratch=[3]))(lambda: None)
        replaced()


def test_the_replacement_finds_arrays_as_the_function_left_them() -> None:
    x, total = array(3), scalar()

    @ti.kernel
    def weigh(w: ti.types.ndarray(ti.f64, 1)):
        for i in x:
            total[None] += w[i] * x[i] ** 2

    @ti.ad.grad_replaced
    def forward(w):
        weigh(w)

    @ti.ad.grad_for(forward)
    def backward(w):
        weigh.grad(w)

    x.fill(1)
    w = np.array([1.0, 2.0, 3.0])
    with ti.ad.Tape(total):
        forward(w)
        w[:] = 0
    assert x.grad.to_numpy().tolist() == [2, 4, 6]
    assert w.tolist() == [0, 0, 0], "what the program wrote since is there again"

    w[:] = 1
    shown = w.view()
    shown.flags.writeable = False
    tape = ti.ad.Tape(total)
    with pytest.raises(DifferentiationError, match="the array 'w', which is read-only, has changed"), tape:
        forward(shown)
        w[:] = 0
    assert w.tolist() == [0, 0, 0]


def test_the_gradient_of_a_kernel_that_could_share_its_work() -> None:
    """A custom gradient launches it by itself, so it finds nothing that the launch has saved."""
    x, y, loss = array(4), array(4), scalar()

    @ti.kernel
    def wave():
        for i in x:
            y[i] += ti.sin(x[i]) * x[i]

    @ti.kernel
    def add():
        for i in y:
            loss[None] += y[i]

    @ti.ad.grad_replaced
    def middle() -> None:
        wave()

    @ti.ad.grad_for(middle)
    def middle_gradient() -> None:
        wave.grad()

    def whole() -> None:
        middle()
        add()

    start = np.linspace(0.2, 1.1, 4)
    x.from_numpy(start)
    for _ in range(2):
        y.fill(0)
        found = ti.ad.grad(whole, wrt=x, loss=loss)()
        np.testing.assert_allclose(found, np.sin(start) + start * np.cos(start), rtol=1e-12)
