"""Derivatives of third and higher order, in all combinations of modes, against each other and against differences."""

from collections.abc import Callable
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_nested import coupled, difference, forward, height, reverse, weighted
from tests.autodiff.user import session  # noqa: F401
from tinote.errors import DifferentiationError

Array1: Any = ti.types.ndarray(dtype=ti.f64, ndim=1)
MODES = {"R": reverse, "F": forward}
ORDERS = [pytest.param([MODES[m] for m in modes], id="".join(modes)) for modes in product("RF", repeat=3)]


def curve(x: Any) -> Any:
    return height(x, x * 0.7 + ti.sin(x))


def nested(f: Callable[..., Any], modes: list[Any]) -> Callable[..., Any]:
    return reduce(lambda f, mode: lambda x: mode(f, x), modes, f)


@pytest.mark.parametrize("modes", ORDERS)
def test_third_derivatives(modes: list[Any]) -> None:
    third = nested(curve, modes)
    assert third(0.4) == pytest.approx(difference(nested(curve, modes[:2]), 0.4), rel=1e-6)


def test_derivatives_of_fourth_order() -> None:
    expected = difference(nested(curve, [forward, forward, forward]), 0.4)
    for modes in (["R", "R", "R", "R"], ["F", "R", "R", "F"], ["R", "F", "F", "R"], ["F", "F", "F", "F"]):
        assert nested(curve, [MODES[m] for m in modes])(0.4) == pytest.approx(expected, rel=1e-6), modes


@pytest.mark.parametrize("modes", ORDERS)
def test_perturbations_of_three_levels_are_not_confused(modes: list[Any]) -> None:
    """d/dx (x · d/dy (y · x · d/dz (x y z))) at x is that of x² · 2 x y = 2 x³ y."""
    inner, middle, outer = modes

    @ti.kernel
    def times(x: ti.f64, y: ti.f64, z: ti.f64) -> ti.f64:
        return x * y * z

    def at(x: Any) -> Any:
        return x * middle(lambda y: y * x * inner(lambda z: times(x, y, z), x), x)

    assert at(1.3) == pytest.approx(2 * 1.3**4)
    assert outer(at, 1.3) == pytest.approx(8 * 1.3**3)


@pytest.mark.parametrize("modes", ORDERS)
def test_arrays(modes: list[Any]) -> None:
    inner, middle, outer = modes
    x = np.array([0.1, 0.5, -0.3, 1.2])

    def first(k: Any, at: Any) -> Any:
        if inner is reverse:
            return weighted(ti.ad.grad(coupled)(at, k))
        return ti.ad.jvp(coupled)(np.arange(4.0), at, k)[1] ** 2

    def second(k: Any) -> Any:
        if middle is reverse:
            return weighted(ti.ad.grad(first, 1)(k, x))
        return ti.ad.jvp(first, 1)(np.ones(4), k, x)[1]

    assert outer(second, 1.5) == pytest.approx(difference(second, 1.5), rel=1e-7)


def test_seeds_and_values_have_derivatives() -> None:
    def first(y: Any, a: Any) -> Any:
        value, slope = ti.ad.vjp(lambda y: height(a, y))(a * y, y)
        return slope * value

    def second(a: Any) -> Any:
        value, slope = ti.ad.vjp(first)(a * 2, 0.7, a)
        return slope * value

    for outer in (reverse, forward):
        assert outer(second, 0.4) == pytest.approx(difference(second, 0.4), rel=1e-7)


class World:
    """Fields that a function overwrites on the way, one of them without a gradient."""

    def __init__(self, *, temporary: bool) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.x = x = ti.field(ti.f64, 4, **both)
        self.y = y = ti.field(ti.f64, 4) if temporary else ti.field(ti.f64, 4, **both)
        self.k, self.energy, self.stress, self.loss = k, energy, stress, loss = [
            ti.field(ti.f64, (), **both) for _ in range(4)
        ]

        @ti.kernel
        def bend():
            for i in y:
                y[i] = ti.sin(x[i]) * x[i] * k[None]

        @ti.kernel
        def scale():
            for i in y:
                y[i] *= y[i] * 0.5 + k[None]

        @ti.kernel
        def add():
            for i in y:
                energy[None] += k[None] * y[i] * ti.cos(x[(i + 1) % 4])

        @ti.kernel
        def measure(force: Array1):
            for i in x:
                stress[None] += force[i] * force[i] * (i + 1) + x[i] * energy[None]

        @ti.kernel
        def sum_up(slope: Array1):
            for i in x:
                loss[None] += slope[i] * slope[i] * ti.sin(x[i]) + stress[None] * k[None]

        @ti.kernel
        def sum_product(product: ti.f64):
            loss[None] += ti.sin(0.02 * product) + stress[None]

        self.kernels = bend, scale, add
        self.measure, self.sum_up, self.sum_product = measure, sum_up, sum_product

    def potential(self) -> None:
        for kernel in self.kernels:
            kernel()

    def tension(self) -> None:
        self.measure(ti.ad.grad(self.potential, wrt=self.x, loss=self.energy)())

    def run(self, middle: Any) -> None:
        if middle is reverse:
            self.sum_up(ti.ad.grad(self.tension, wrt=self.x, loss=self.stress)())
        else:
            self.stress[None] = 0
            self.sum_product(ti.ad.jvp(self.tension, wrt=self.x, loss=self.stress)(np.ones(4))[1])

    def reset(self, k: float) -> None:
        self.x.from_numpy(np.array([0.1, 0.5, -0.3, 1.2]))
        self.y.fill(0)
        self.k[None] = k
        self.loss[None] = 0

    def value(self, k: float, middle: Any) -> float:
        self.reset(k)
        self.run(middle)
        return self.loss[None]


@pytest.mark.parametrize("middle", [reverse, forward])
def test_fields(middle: Any) -> None:
    world = World(temporary=False)
    expected = pytest.approx(difference(lambda k: world.value(k, middle), 1.1), rel=1e-7)
    world.reset(1.1)
    with ti.ad.Tape(world.loss):
        world.run(middle)
    assert world.k.grad[None] == expected
    world.reset(1.1)
    with ti.ad.FwdMode(loss=world.loss, param=world.k):
        world.run(middle)
    assert world.loss.dual[None] == expected


@pytest.mark.parametrize("middle", [reverse, forward])
def test_fields_without_a_gradient_are_right_or_refused(middle: Any) -> None:
    world = World(temporary=True)
    expected = pytest.approx(difference(lambda k: world.value(k, middle), 1.1), rel=1e-7)
    world.reset(1.1)
    try:
        with ti.ad.Tape(world.loss):
            world.run(middle)
        assert world.k.grad[None] == expected
    except DifferentiationError as refused:
        assert "y" in str(refused)


def test_a_function_runs_once() -> None:
    calls: list[int] = []

    def fickle(y: Any) -> Any:
        calls.append(1)
        return height(y, y) if len(calls) == 1 else height(y, y) + height(y, 2 * y)

    def steady(y: Any) -> Any:
        return height(y, y)

    order = [reverse, reverse, reverse]
    assert nested(fickle, order)(0.4) == nested(steady, order)(0.4)
    assert len(calls) == 1


@pytest.mark.parametrize("middle", [reverse, forward])
def test_what_python_overwrites_on_the_way_has_its_tangents_again(middle: Any) -> None:
    """An inner function gives a field that it has used a constant; its tangents from before are needed, too."""
    world = World(temporary=False)
    plain = world.kernels

    def filled() -> None:
        world.energy[None] += 0.3 * world.k[None] ** 3
        world.k.fill(0.7)

    world.kernels = (*plain, filled, plain[1])
    expected = pytest.approx(difference(lambda k: world.value(k, middle), 1.1), rel=1e-6)
    world.reset(1.1)
    with ti.ad.FwdMode(loss=world.loss, param=world.k):
        world.run(middle)
    assert world.loss.dual[None] == expected


CHAINS = ["H", "RR", "RF", "RH", "FR", "FF", "FH", "HR", "HF", "HH", "RFF", "FRF", "FFR", "RRF"]


@pytest.mark.parametrize("chain", CHAINS)
def test_chains_over_fields(chain: str) -> None:
    """Each program uses a derivative of the one before: a gradient, a product with the Jacobian or the Hessian."""
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x = ti.field(ti.f64, 3, **both)
    losses = [ti.field(ti.f64, (), **both) for _ in range(len(chain) + 1)]
    along = np.array([0.6, -0.4, 0.9])
    first = losses[0]

    @ti.kernel
    def run():
        for i in x:
            first[None] += ti.sin(x[i]) * x[(i + 1) % 3] ** 2 * (i + 1)

    def next_program(before: Callable[[], None], mode: str, loss: Any, found: Any) -> Callable[[], None]:
        @ti.kernel
        def use(slope: Array1):
            for i in x:
                found[None] += 0.3 * ti.sin(slope[i]) * (i + 1) + 0.1 * slope[i] * x[i]

        def program() -> None:
            if mode == "R":
                use(ti.ad.grad(before, wrt=x, loss=loss)())
            elif mode == "H":
                value, slope, product = ti.ad.value_and_grad_and_hvp(before, wrt=x, loss=loss)(along)
                use(slope)
                use(product)
                found[None] += value * 0.1
            else:
                value, product = ti.ad.jvp(before, wrt=x, loss=loss)(along)
                found[None] += ti.sin(product) * value

        return program

    program: Callable[[], None] = run
    for mode, loss, found in zip(chain, losses[:-1], losses[1:], strict=True):
        program = next_program(program, mode, loss, found)

    def begin(shift: float = 0.0) -> Any:
        x.from_numpy(np.array([0.3, -0.2, 0.5]) + shift * along)
        for one in losses:
            one[None] = 0.0
        return losses[-1]

    def value(shift: float) -> float:
        last = begin(shift)
        program()
        return last[None]

    with ti.ad.Tape(begin()):
        program()
    slopes = x.grad.to_numpy()
    begin()
    assert ti.ad.grad(program, wrt=x, loss=losses[-1])() == pytest.approx(slopes, rel=1e-12)
    begin()
    with ti.ad.FwdMode(loss=losses[-1], param=x, seed=along):
        program()
    assert losses[-1].dual[None] == pytest.approx(slopes @ along, rel=1e-9)
    assert slopes @ along == pytest.approx(difference(value, 0.0), rel=1e-6)


@pytest.mark.parametrize("outer", [reverse, forward])
def test_products_with_the_hessian_of_numbers_and_arrays(outer: Any) -> None:
    x = np.array([0.1, 0.5, -0.3, 1.2])

    def of_numbers(a: Any) -> Any:
        by_x, by_y = ti.ad.hvp(height, argnums=(0, 1))((a * 0.5, 2.0), a, a * a)
        return by_x * by_y

    def of_arrays(k: Any) -> Any:
        return weighted(ti.ad.hvp(coupled)(np.arange(4.0), x, k))

    for f in (of_numbers, of_arrays):
        assert outer(f, 0.8) == pytest.approx(difference(f, 0.8), rel=1e-6)


class Loop:
    """A loop of checkpoints, in which Python writes a field too, and what follows it."""

    def __init__(self) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.x, self.y = x, y = [ti.field(ti.f64, 3, **both) for _ in range(2)]
        self.loss, self.found, self.time = loss, found, time = [ti.field(ti.f64, (), **both) for _ in range(3)]

        @ti.kernel
        def move():
            for i in x:
                y[i] += 0.1 * ti.sin(y[i] + x[i]) * x[(i + 1) % 3] + time[None]

        @ti.kernel
        def measure():
            for i in x:
                loss[None] += y[i] ** 2 * (i + 1) + x[i]

        @ti.kernel
        def use(slope: Array1):
            for i in x:
                found[None] += ti.sin(slope[i]) * (i + 1) + x[i] * slope[i]

        self.move, self.measure, self.use = move, measure, use

    def step(self, t: int) -> None:
        self.time[None] = 0.01 * t
        self.move()

    def run(self) -> None:
        for i in range(3):
            self.y[i] = 0.1 * i
        ti.ad.checkpoint(self.step, 5, snapshots=2, progress=False)
        self.measure()

    def begin(self, shift: Any = 0.0) -> None:
        self.x.from_numpy(np.array([0.3, -0.2, 0.5]) + shift)
        self.loss[None] = self.found[None] = 0.0

    def slope(self) -> Any:
        self.begin()
        return ti.ad.grad(self.run, wrt=self.x, loss=self.loss)()


def test_second_derivatives_of_a_checkpointed_loop() -> None:
    world = Loop()
    along = np.array([0.6, -0.4, 0.9])

    def slope(shift: float) -> Any:
        world.begin(shift * along)
        return ti.ad.grad(world.run, wrt=world.x, loss=world.loss)()

    expected = (slope(1e-5) - slope(-1e-5)) / 2e-5
    world.begin()
    assert ti.ad.hvp(world.run, wrt=world.x, loss=world.loss)(along) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("inner", "RFH")
def test_a_checkpointed_loop_inside(inner: str) -> None:
    world = Loop()
    along = np.array([0.6, -0.4, 0.9])
    run, x, loss, found = world.run, world.x, world.loss, world.found

    def program() -> None:
        if inner == "R":
            world.use(ti.ad.grad(run, wrt=x, loss=loss)())
        elif inner == "H":
            world.use(ti.ad.hvp(run, wrt=x, loss=loss)(along))
        else:
            value, product = ti.ad.jvp(run, wrt=x, loss=loss)(along)
            found[None] += ti.sin(product) * value

    def value(shift: float) -> float:
        world.begin(shift * along)
        program()
        return found[None]

    expected = difference(value, 0.0)
    world.begin()
    with ti.ad.Tape(found):
        program()
    assert x.grad.to_numpy() @ along == pytest.approx(expected, rel=1e-6)
    world.begin()
    with ti.ad.FwdMode(loss=found, param=x, seed=along):
        program()
    assert found.dual[None] == pytest.approx(expected, rel=1e-6)
    world.begin()
    third = ti.ad.hvp(program, wrt=x, loss=found)(along)

    def slope(shift: float) -> Any:
        world.begin(shift * along)
        return ti.ad.grad(program, wrt=x, loss=found)()

    assert third == pytest.approx((slope(1e-5) - slope(-1e-5)) / 2e-5, rel=1e-6)


def test_a_tape_around_a_checkpointed_loop_in_forward_mode() -> None:
    world = Loop()
    along = np.array([0.6, -0.4, 0.9])
    slope = world.slope()
    world.begin()
    with ti.ad.FwdMode(loss=world.loss, param=world.x, seed=along), ti.ad.Tape(world.loss):
        world.run()
    assert world.x.grad.to_numpy() == pytest.approx(slope, rel=1e-12)
    world.begin()
    product = ti.ad.hvp(world.run, wrt=world.x, loss=world.loss)(along)
    assert world.x.grad.dual.to_numpy() == pytest.approx(product, rel=1e-12)
