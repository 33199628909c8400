"""Tapes and forward-mode blocks inside of other recordings, against differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_nested import Particles, _by_tapes, difference
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError
from tinote.lang.session.state import session as state

SIZE = 4
START = np.array([0.4, 0.9, -0.7, 0.2])


class World:
    """An energy of `x` and `k`, and a loss."""

    def __init__(self) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.x, self.y = (ti.field(ti.f64, SIZE, **both) for _ in range(2))
        self.k, self.energy, self.loss = (ti.field(ti.f64, (), **both) for _ in range(3))
        x, y, k, energy, loss = self.x, self.y, self.k, self.energy, self.loss

        @ti.kernel
        def potential():
            for i in x:
                energy[None] += k[None] * ti.sin(x[i]) * x[(i + 1) % SIZE] + x[i] ** 4

        @ti.kernel
        def descend():
            for i in x:
                x[i] -= 0.05 * x.grad[i] * (1.0 + 0.1 * x[i] * x.grad[i])

        @ti.kernel
        def measure():
            for i in x:
                loss[None] += x[i] * x[i] * (i + 1) + ti.sin(x.grad[i]) * x[i] * k[None]

        @ti.kernel
        def measure_values():
            for i in x:
                loss[None] += x[i] * x[i] * (i + 1) + y[i] ** 2 * ti.sin(x[(i + 1) % SIZE])

        self.potential, self.descend, self.measure, self.measure_values = potential, descend, measure, measure_values
        self.total = total = ti.field(ti.f64, (), **both)

        @ti.kernel
        def use_gradients():
            for i in x:
                total[None] += ti.sin(x.grad[i]) * (i + 1) + x[i] * loss[None] * k.grad[None]

        @ti.kernel
        def use_dual():
            total[None] += ti.sin(loss.dual[None]) * loss[None] * x[1]

        @ti.kernel
        def use_product(product: ti.f64):
            total[None] += ti.sin(product) * loss[None] * x[1]

        self.use_gradients, self.use_dual, self.use_product = use_gradients, use_dual, use_product

    def reset(self, k: float = 1.1, x: Any = START) -> None:
        self.x.from_numpy(x)
        self.y.fill(0)
        self.k[None] = k
        self.energy[None] = self.loss[None] = 0

    def slopes(self, program: Callable[[], Any]) -> tuple[float, Any]:
        def value(k: float, x: Any = START) -> float:
            self.reset(k, x)
            program()
            return self.loss[None]

        by_k = difference(value, 1.1)
        by_x = [difference(lambda h, e=e: value(1.1, START + h * e), 0.0) for e in np.eye(SIZE)]
        self.reset()
        return by_k, np.array(by_x)

    def check(self, program: Callable[[], Any], *, rel: float = 1e-7, within: bool = True) -> None:
        """By a tape, by functions and by forward mode around; and `within` another derivative."""
        by_k, by_x = self.slopes(program)
        with ti.ad.Tape(self.loss):
            program()
        assert self.k.grad[None] == pytest.approx(by_k, rel=rel)
        np.testing.assert_allclose(self.x.grad.to_numpy(), by_x, rtol=rel, atol=1e-9)
        self.reset()
        slope, slopes = ti.ad.grad(program, wrt=[self.k, self.x], loss=self.loss)()
        assert slope == pytest.approx(by_k, rel=rel)
        np.testing.assert_allclose(slopes, by_x, rtol=rel, atol=1e-9)
        self.reset()
        with ti.ad.FwdMode(loss=self.loss, param=[self.k, self.x], seed=[2.0, np.arange(1.0, SIZE + 1)]):
            program()
        assert self.loss.dual[None] == pytest.approx(2 * by_k + by_x @ np.arange(1.0, SIZE + 1), rel=rel)
        if within:
            self.check_within(program)

    def check_within(self, program: Callable[[], Any]) -> None:
        """The same one level deeper: the derivative is taken of something made of these."""
        along = np.arange(1.0, SIZE + 1) / SIZE

        def tape() -> None:
            with ti.ad.Tape(self.loss):
                program()
            self.use_gradients()

        def block() -> None:
            with ti.ad.FwdMode(loss=self.loss, param=[self.k, self.x], seed=[2.0, along]):
                program()
            self.use_dual()

        def jvp() -> None:
            self.use_product(ti.ad.jvp(program, wrt=[self.k, self.x], loss=self.loss)([2.0, along])[1])

        def value(middle: Callable[[], None], h: float) -> float:
            self.reset(1.1 + h, START + h * along)
            self.total[None] = 0
            middle()
            return self.total[None]

        for middle in (tape, block, jvp):
            slope = difference(lambda h, middle=middle: value(middle, h), 0.0)
            self.reset()
            with ti.ad.Tape(self.total):
                middle()
            found = self.k.grad[None] + self.x.grad.to_numpy() @ along
            assert found == pytest.approx(slope, rel=1e-5), middle.__name__
            self.reset()
            self.total[None] = 0
            with ti.ad.FwdMode(loss=self.total, param=[self.k, self.x], seed=[1.0, along]):
                middle()
            assert self.total.dual[None] == pytest.approx(found, rel=1e-9), middle.__name__


def test_tapes_within_a_tape() -> None:
    world = Particles()
    run = _by_tapes(world)
    by_k, by_x = world.slopes()
    expected = world.value(1.1)
    world.reset()
    with ti.ad.Tape(world.loss):
        run()
    assert world.loss[None] == pytest.approx(expected, rel=1e-12)
    assert world.k.grad[None] == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(world.x.grad.to_numpy(), by_x, rtol=1e-7)
    world.reset()
    found, slopes = ti.ad.grad(run, wrt=[world.k, world.x], loss=world.loss)()
    assert found == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(slopes, by_x, rtol=1e-7)


def test_kernels_work_on_values_and_gradients_of_the_inner_tape() -> None:
    """Where both levels meet in one kernel, each has its own gradient."""
    world = World()

    def program() -> None:
        for _ in range(3):
            with ti.ad.Tape(world.energy):
                world.potential()
            world.descend()
        with ti.ad.Tape(world.energy):
            world.potential()
        world.measure()

    world.check(program)


def test_python_reads_and_copies_gradients_of_the_inner_tape() -> None:
    world = World()
    x, y, loss = world.x, world.y, world.loss

    def program() -> None:
        with ti.ad.Tape(world.energy):
            world.potential()
        y.copy_from(x.grad)
        world.measure_values()
        loss[None] = loss[None] + world.k.grad[None] * x.grad[1] * x[2]

    world.check(program)


def test_gradients_that_add_up_over_inner_tapes() -> None:
    world = World()

    def program() -> None:
        world.x.grad.fill(0)
        world.k.grad.fill(0)
        for _ in range(2):
            with ti.ad.Tape(world.energy, clear_gradients=False):
                world.potential()
            world.descend()
        world.measure()

    world.check(program, within=False)


def test_a_kernel_changes_gradients_of_the_inner_tape() -> None:
    world = World()
    x = world.x

    @ti.kernel
    def clip():
        for i in x:
            x.grad[i] = ti.tanh(x.grad[i]) * x[i]

    def program() -> None:
        for _ in range(2):
            with ti.ad.Tape(world.energy):
                world.potential()
            clip()
            world.descend()
        world.measure()

    world.check(program)


def test_what_python_writes_in_the_inner_tape() -> None:
    """Constants and numbers that depend on the outer level, before and after kernels have used a field."""
    world = World()
    x, y, k, energy = world.x, world.y, world.k, world.energy

    which = ti.field(ti.i32, ())

    @ti.kernel
    def couple():
        for i in x:
            energy[None] += y[i] ** 2 * x[i] ** 2 + x[which[None]] * y[i]

    def program() -> None:
        which[None] = 0
        with ti.ad.Tape(energy):
            y.fill(0.5)
            couple()
            which[None] = 2
            y[1] = k[None] * x[2]
            y[2] = 0.3
            couple()
            world.potential()
            scale = x[0] * k[None]
            energy[None] = energy[None] * scale
        world.measure()
        world.measure_values()

    world.check(program)


def test_numbers_from_outside_go_into_the_inner_tape() -> None:
    world = World()
    x, energy, loss = world.x, world.energy, world.loss

    @ti.kernel
    def scaled(a: ti.f64) -> ti.f64:
        total = 0.0
        for i in x:
            total += ti.sin(a * x[i])
        return total

    def program() -> None:
        a = world.k[None] * 2.0
        with ti.ad.Tape(energy):
            found = scaled(a)
            energy[None] = found * found * a
        world.descend()
        loss[None] = scaled(a) * energy[None] + x.grad[0] * a

    world.check(program)


def test_an_inner_tape_in_a_checkpointed_loop() -> None:
    world = World()

    def program() -> None:
        def step(t: int) -> None:
            with ti.ad.Tape(world.energy):
                world.potential()
            world.descend()

        ti.ad.checkpoint(step, 5)
        world.measure_values()

    world.check(program)


def test_arrays_of_an_inner_tape() -> None:
    world = World()
    x, energy = world.x, world.energy
    weights = np.linspace(0.5, 1.5, SIZE)

    @ti.kernel
    def weighted(w: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            energy[None] += w[i] * x[i] ** 3

    def program() -> None:
        weights[:] = np.linspace(0.5, 1.5, SIZE)
        with ti.ad.Tape(energy):
            weighted(weights)
            weights[:] = 2.5  # each launch has its own
            weighted(weights)
        weights[:] = 7.0
        world.measure()

    world.check(program)


def test_the_outer_gradient_is_not_disturbed() -> None:
    """What the gradients held before an outer tape that accumulates is there still."""
    world = World()

    def program() -> None:
        with ti.ad.Tape(world.energy):
            world.potential()
        world.measure()

    _, by_x = world.slopes(program)
    for one in (world.x, world.k, world.energy):
        one.grad.fill(0)
    world.x.grad.fill(10.0)
    with ti.ad.Tape(world.loss, clear_gradients=False):
        program()
    np.testing.assert_allclose(world.x.grad.to_numpy(), by_x + 10, rtol=1e-7)
    world.reset()
    world.x.grad.fill(3.0)
    ti.ad.grad(program, wrt=world.x, loss=world.loss)()
    assert (world.x.grad.to_numpy() == 3).all()


def test_an_exception_in_an_inner_tape_leaves_the_outer_one_usable() -> None:
    world = World()

    def program() -> None:
        try:
            with ti.ad.Tape(world.energy):
                world.potential()
                raise KeyError
        except KeyError:
            pass
        world.measure_values()

    world.check(program)


def test_gradients_of_another_step_are_refused() -> None:
    world = World()

    def step(t: int) -> None:
        if t:
            world.descend()
        with ti.ad.Tape(world.energy):
            world.potential()

    world.reset()
    with pytest.raises(DifferentiationError, match="as another step has left it"), ti.ad.Tape(world.loss):
        ti.ad.checkpoint(step, 3)
        world.measure_values()


def test_what_cannot_nest_names_both_blocks() -> None:
    world = World()
    energy, loss = world.energy, world.loss
    with ti.ad.Tape(loss), pytest.raises(DifferentiationError, match="cannot check") as refused:
        ti.ad.Tape(energy, grad_check=True).__enter__()
    assert "with ti.ad.Tape(loss)" in str(refused.value)


def by_reverse(world: World, program: Callable[[], Any]) -> None:
    """Compare the gradients of a tape and of a function with differences."""
    by_k, by_x = world.slopes(program)
    with ti.ad.Tape(world.loss):
        program()
    assert world.k.grad[None] == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(world.x.grad.to_numpy(), by_x, rtol=1e-7, atol=1e-9)
    world.reset()
    slope, slopes = ti.ad.grad(program, wrt=[world.k, world.x], loss=world.loss)()
    assert slope == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(slopes, by_x, rtol=1e-7, atol=1e-9)


def test_forward_mode_within_a_tape() -> None:
    world = World()
    x, y, k, energy, loss = world.x, world.y, world.k, world.energy, world.loss

    @ti.kernel
    def bend():
        for i in x:
            y[i] = ti.sin(x[i] * k[None]) * x[(i + 1) % SIZE] + y[i] * x[i]

    @ti.kernel
    def push():
        for i in x:
            x[i] -= 0.1 * y.dual[i] * x[i] * y[i]

    @ti.kernel
    def use():
        for i in x:
            loss[None] += y.dual[i] ** 2 * x[i] + energy.dual[None] * y[i] * (i + 1)

    seed = np.array([0.3, -0.5, 0.7, 1.1])

    def program() -> None:
        for _ in range(2):
            with ti.ad.FwdMode(loss=y, param=x, seed=seed):
                bend()
            push()
        energy[None] = 0
        with ti.ad.FwdMode(loss=[y, energy], param=[x, k], seed=[seed, 0.5]):
            bend()
            world.potential()
        use()
        loss[None] = loss[None] + y.dual[1] * k[None] * energy[None]

    by_reverse(world, program)
    world.check_within(program)


def test_a_tape_and_forward_mode_next_to_each_other() -> None:
    world = World()
    x, y, energy, loss = world.x, world.y, world.energy, world.loss

    @ti.kernel
    def use():
        for i in x:
            loss[None] += y.dual[i] * x.grad[i] * x[i]

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[(i + 1) % SIZE] * world.k[None]

    def program() -> None:
        with ti.ad.Tape(energy):
            world.potential()
        with ti.ad.FwdMode(loss=y, param=x, seed=np.ones(SIZE)):
            square()
        use()

    by_reverse(world, program)
    world.check_within(program)


def test_what_python_writes_in_forward_mode_within_a_tape() -> None:
    world = World()
    x, y, k, loss = world.x, world.y, world.k, world.loss

    @ti.kernel
    def scaled(a: ti.f64) -> ti.f64:
        total = 0.0
        for i in x:
            total += ti.sin(a * x[i]) * y[i]
        return total

    def program() -> None:
        a = k[None] * 0.5
        with ti.ad.FwdMode(loss=loss, param=x, seed=np.ones(SIZE)):
            y.fill(0.5)
            y[1] = x[0] * x[1] * a
            loss[None] = scaled(a) ** 2
        loss[None] = loss.dual[None] * a + loss[None]

    by_reverse(world, program)
    world.check_within(program)


@pytest.mark.parametrize("declared", [{}, {"needs_grad": False}])
def test_memory_without_a_gradient_in_forward_mode_within_a_tape(declared: dict[str, bool]) -> None:
    """The loss has none, and a table of constants, perhaps by declaration."""
    world = World()
    x, loss = world.x, world.loss
    energy = ti.field(ti.f64, (), needs_dual=True)
    table, middle = ti.field(ti.f64, SIZE, name="table", **declared), ti.field(ti.f64, SIZE)
    table.from_numpy(np.linspace(0.5, 1.5, SIZE))

    @ti.kernel
    def bend():
        for i in x:
            middle[i] = table[i] * ti.sin(x[i])

    @ti.kernel
    def add():
        for i in x:
            energy[None] += middle[i] * x[(i + 1) % SIZE] * table[i] * world.k[None]

    @ti.kernel
    def use():
        loss[None] += ti.sin(energy.dual[None]) * energy[None]

    def program() -> None:
        energy[None] = 0
        for _ in range(2):
            with ti.ad.FwdMode(loss=energy, param=x, seed=np.arange(1.0, SIZE + 1)):
                bend()
                add()
        use()

    by_reverse(world, program)
    assert "table.dual" not in [field.name for field in list(state.fields)]  # nothing is made for constants


@pytest.mark.parametrize("given", ["by a kernel", "by Python", "by a copy"])
def test_varying_values_in_constants_in_forward_mode_within_a_tape(given: str) -> None:
    """What varies along the inner direction alone is not lost in silence either."""
    world = World()
    x, y, loss = world.x, world.y, world.loss
    constant = ti.field(ti.f64, SIZE, needs_grad=False, needs_dual=False)
    start = ti.field(ti.f64, SIZE, needs_dual=True)

    @ti.kernel
    def store():
        for i in x:
            constant[i] = start[i] ** 2

    @ti.kernel
    def use():
        for i in x:
            y[i] += constant[i]

    with pytest.raises(DifferentiationError, match="was declared to have no"), ti.ad.Tape(loss):
        with ti.ad.FwdMode(loss=y, param=start, seed=START):
            if given == "by a kernel":
                store()
            elif given == "by Python":
                constant[1] = start[1]
            else:
                constant.copy_from(start)
            use()
        world.measure_values()


@pytest.mark.parametrize("place", ["jvp", "block"])
def test_a_function_without_gradient_in_forward_mode_within_a_tape(place: str) -> None:
    world = World()
    x, k, energy, loss = world.x, world.k, world.energy, world.loss
    count = ti.field(ti.f64, ())

    @ti.ad.no_grad
    @ti.kernel
    def advance():
        count[None] += 1.0

    @ti.ad.no_grad
    @ti.kernel
    def forget():
        energy[None] = 1.0

    @ti.kernel
    def add():
        for i in x:
            energy[None] += k[None] * ti.sin(x[i]) * count[None] * (i + 1)

    @ti.kernel
    def use(product: ti.f64):
        loss[None] += ti.sin(product) * energy[None]

    def inner(*, forgets: bool) -> None:
        advance()
        add()
        if forgets:
            forget()
        advance()
        add()

    def program(*, forgets: bool = False) -> None:
        count[None] = energy[None] = 0.0
        if place == "jvp":
            use(ti.ad.jvp(lambda: inner(forgets=forgets), wrt=x, loss=energy)(START)[1])
            return
        with ti.ad.FwdMode(loss=energy, param=x, seed=START):
            inner(forgets=forgets)
        use(energy.dual[None])

    def taped(*, forgets: bool = False) -> None:  # forward mode alone has no such functions
        with ti.ad.Tape(loss):
            program(forgets=forgets)

    by_k, by_x = world.slopes(taped)
    taped()
    assert k.grad[None] == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(x.grad.to_numpy(), by_x, rtol=1e-7)
    with pytest.raises(DifferentiationError, match="stores constants to"):
        taped(forgets=True)
    if place == "jvp":
        for unit, wanted in zip(np.eye(SIZE), by_x, strict=True):
            world.reset()
            with ti.ad.FwdMode(loss=loss, param=x, seed=unit):
                program()
            assert loss.dual[None] == pytest.approx(wanted, rel=1e-7)
        around = ti.ad.FwdMode(loss=loss, param=x, seed=START)
        with pytest.raises(DifferentiationError, match="stores constants to"), around:
            program(forgets=True)


@pytest.mark.parametrize("inner", ["block", "jvp", "jvp of an array"])
def test_forward_mode_in_a_checkpointed_loop(inner: str) -> None:
    """Arrays that the inner derivative makes are others when a step runs again."""
    world = World()
    x, y, k = world.x, world.y, world.k
    start = np.linspace(0.3, 0.9, SIZE)

    @ti.kernel
    def bend():
        for i in x:
            y[i] = ti.sin(x[i] * k[None]) * x[(i + 1) % SIZE]

    @ti.kernel
    def push():
        for i in x:
            x[i] -= 0.1 * y.dual[i] * x[i] * y[i]

    @ti.kernel
    def push_by(slopes: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            x[i] -= 0.1 * slopes[i] * x[i] * y[i]

    @ti.kernel
    def height(a: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
        total = 0.0
        for i in x:
            total += ti.sin(a[i] * x[i]) * k[None]
        return total

    @ti.kernel
    def push_all(by: ti.f64):
        for i in x:
            x[i] -= 0.1 * by * x[i]

    def step(t: int) -> None:
        if inner == "block":
            with ti.ad.FwdMode(loss=y, param=x, seed=START):
                bend()
            push()
        elif inner == "jvp":
            push_by(ti.ad.jvp(bend, wrt=x, loss=y)(START)[1])
        else:
            push_all(ti.ad.jvp(height)(START, start)[1])

    def program() -> None:
        ti.ad.checkpoint(step, 5, snapshots=2)
        world.measure_values()

    by_reverse(world, program)


def test_forward_mode_that_cannot_nest_names_both_blocks() -> None:
    world = World()
    seeds = np.eye(SIZE)
    with ti.ad.Tape(world.loss), pytest.raises(DifferentiationError, match="one seed at a time") as refused:
        ti.ad.FwdMode(loss=world.energy, param=world.x, seed=seeds).__enter__()
    assert "with ti.ad.Tape(world.loss)" in str(refused.value)
    first = ti.ad.FwdMode(loss=world.energy, param=world.x, seed=START)
    with ti.ad.Tape(world.loss), first, pytest.raises(DifferentiationError, match="one seed at a time") as refused:
        ti.ad.FwdMode(loss=world.energy, param=world.x, seed=seeds).__enter__()
    assert "with ti.ad.Tape(world.loss), first" in str(refused.value)
