"""Derivatives inside of derivatives, against each other in all combinations of modes and against differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from examples.maml import train
from tests.autodiff.user import scalar, session  # noqa: F401
from tinote.errors import DifferentiationError

Array1: Any = ti.types.ndarray(dtype=ti.f64, ndim=1)


@ti.kernel
def height(x: ti.f64, y: ti.f64) -> ti.f64:
    return x * x * ti.sin(y) + ti.cos(x * y) + 0.5 * y * y * y


@ti.kernel
def coupled(x: Array1, k: ti.f64) -> ti.f64:
    total = 0.0
    for i in range(x.shape[0]):
        total += k * ti.sin(x[i]) * x[(i + 1) % x.shape[0]]
    return total


@ti.kernel
def weighted(g: Array1) -> ti.f64:
    total = 0.0
    for i in range(g.shape[0]):
        total += g[i] * g[i] * (i + 1)
    return total


def difference(f: Callable[[float], float], x: float, h: float = 1e-5) -> float:
    return (f(x + h) - f(x - h)) / (2 * h)


def reverse(f: Callable[..., Any], x: float, *further: Any) -> Any:
    """The derivative by the first argument."""
    return ti.ad.grad(f)(x, *further)


def forward(f: Callable[..., Any], x: float, *further: Any) -> Any:
    return ti.ad.jvp(f)(1.0, x, *further)[1]


MODES = [reverse, forward]
Mode = Callable[..., Any]


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_minimum_of_a_maximum(inner: Mode, outer: Mode) -> None:
    def highest(y: Any, x: Any) -> Any:
        for _ in range(6):
            y = y - 0.1 * inner(lambda y: height(x, y), y)
        return height(x, y)

    def best(x: Any) -> Any:
        return highest(0.3, x)

    assert outer(best, 1.3) == pytest.approx(difference(best, 1.3), rel=1e-8)
    x = found = 1.3
    for _ in range(4):
        x = x - 0.05 * outer(best, x)
        found = found - 0.05 * reverse(best, found)
    assert x == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_perturbations_are_not_confused(inner: Mode, outer: Mode) -> None:
    """d/dx (x · d/dy (x + y)) at x is 1, and with y = x inside, too."""

    @ti.kernel
    def total(x: ti.f64, y: ti.f64) -> ti.f64:
        return x + y

    assert outer(lambda x: x * inner(lambda y: total(x, y), 1.0), 3.0) == 1
    assert outer(lambda x: x * inner(lambda y: total(x, y), x), 3.0) == 1

    def both(x: Any) -> Any:
        return x * inner(lambda y: height(x, y) * x, x)

    assert outer(both, 0.4) == pytest.approx(difference(both, 0.4), rel=1e-8)


@pytest.mark.parametrize("outer", MODES)
def test_values_and_seeds_are_differentiated_too(outer: Mode) -> None:
    def by_reverse(a: Any) -> Any:
        value, slope = ti.ad.vjp(lambda y: height(a, y) * a)(a * 2, 0.7)
        return slope * value

    def by_forward(a: Any) -> Any:
        value, slope = ti.ad.jvp(lambda y: height(a, y) * a)(a * 2, 0.7)
        return slope * value

    expected = pytest.approx(difference(by_reverse, 0.4), rel=1e-8)
    assert outer(by_reverse, 0.4) == expected
    assert outer(by_forward, 0.4) == expected


def _penalty(x: Any, k: Any) -> Any:
    value, slope = ti.ad.value_and_grad(coupled)(x, k)
    return weighted(slope) + value * value


def test_arrays() -> None:
    x, k, h = np.array([0.1, 0.5, -0.3, 1.2]), 1.5, 1e-6
    by_x = [(_penalty(x + h * e, k) - _penalty(x - h * e, k)) / (2 * h) for e in np.eye(4)]
    by_k = difference(lambda k: _penalty(x, k), k)
    found, slope = ti.ad.grad(_penalty, (0, 1))(x, k)
    np.testing.assert_allclose(found, by_x, rtol=1e-7)
    assert slope == pytest.approx(by_k, rel=1e-8)
    value, product = ti.ad.jvp(_penalty, (0, 1))((np.ones(4), 2.0), x, k)
    assert value == _penalty(x, k)
    assert product == pytest.approx(np.sum(by_x) + 2 * by_k, rel=1e-7)


def test_results_are_read_element_by_element() -> None:
    def some(x: Any) -> Any:
        slope = ti.ad.grad(coupled)(x, 1.5)
        return slope[1] * slope[2]

    x, h = np.array([0.1, 0.5, -0.3, 1.2]), 1e-6
    expected = [(some(x + h * e) - some(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(ti.ad.grad(some)(x), expected, rtol=1e-7, atol=1e-9)


class Particles:
    """Fields that move along the gradient of an energy, which overwrites a field on the way."""

    def __init__(self, *, temporary: bool = True) -> None:
        n = 5
        self.x, self.v = (ti.field(ti.f64, n, needs_grad=True, needs_dual=True) for _ in range(2))
        self.k, self.energy, self.loss = (ti.field(ti.f64, (), needs_grad=True, needs_dual=True) for _ in range(3))
        self.y = ti.field(ti.f64, n, needs_grad=True, needs_dual=True) if temporary else ti.field(ti.f64, n)
        self.start = np.array([0.1, 0.5, -0.3, 1.2, 0.7])
        x, v, y, k, energy, loss = self.x, self.v, self.y, self.k, self.energy, self.loss

        @ti.kernel
        def bend():
            for i in y:
                y[i] = ti.sin(x[i]) * x[i]

        @ti.kernel
        def scale():
            for i in y:
                y[i] *= y[i] * 0.5 + k[None]

        @ti.kernel
        def add():
            for i in y:
                energy[None] += k[None] * y[i] * ti.cos(x[(i + 1) % n])

        @ti.kernel
        def push(force: Array1):
            for i in x:
                v[i] -= 0.1 * force[i]
            for i in x:
                x[i] += 0.1 * v[i]

        @ti.kernel
        def measure():
            for i in x:
                loss[None] += x[i] * x[i] * (i + 1) + 0.1 * y[i] * energy[None]

        def potential() -> None:
            bend()
            scale()
            add()

        self.potential, self.push, self.measure = potential, push, measure
        self.force = ti.ad.grad(potential, wrt=x, loss=energy)

    def reset(self, k: float = 1.1, x: Any = None) -> None:
        self.x.from_numpy(self.start if x is None else x)
        self.v.fill(0.2)
        self.y.fill(0)
        self.k[None] = k
        self.loss[None] = 0

    def run(self) -> None:
        for _ in range(4):
            self.push(self.force())
        self.measure()

    def value(self, k: float, x: Any = None) -> float:
        self.reset(k, x)
        self.run()
        return self.loss[None]

    def slopes(self) -> tuple[float, Any]:
        """By `k` and `x`, as differences."""
        by_x = [difference(lambda h, e=e: self.value(1.1, self.start + h * e), 0.0) for e in np.eye(5)]
        found = difference(self.value, 1.1), np.array(by_x)
        self.reset()
        return found


def test_a_gradient_within_a_tape() -> None:
    world = Particles()
    by_k, by_x = world.slopes()
    with ti.ad.Tape(world.loss):
        world.run()
    assert world.k.grad[None] == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(world.x.grad.to_numpy(), by_x, rtol=1e-7)
    held = world.x.to_numpy()
    world.reset()
    world.run()
    np.testing.assert_allclose(world.x.to_numpy(), held, rtol=1e-14)


def test_a_gradient_within_forward_mode() -> None:
    world = Particles()
    by_k, by_x = world.slopes()
    with ti.ad.FwdMode(loss=world.loss, param=world.k):
        world.run()
    assert world.loss.dual[None] == pytest.approx(by_k, rel=1e-7)
    world.reset()
    with ti.ad.FwdMode(loss=world.loss, param=world.x, seed=np.arange(5.0)):
        world.run()
    assert world.loss.dual[None] == pytest.approx(by_x @ np.arange(5.0), rel=1e-7)


def test_a_gradient_within_a_checkpointed_loop() -> None:
    world = Particles()
    by_k, by_x = world.slopes()
    with ti.ad.Tape(world.loss):
        ti.ad.checkpoint(lambda t: world.push(world.force()), 4)
        world.measure()
    assert world.k.grad[None] == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(world.x.grad.to_numpy(), by_x, rtol=1e-7)


def test_a_gradient_within_a_function_of_fields() -> None:
    world = Particles()
    by_k, by_x = world.slopes()

    @ti.kernel
    def stiffen(a: ti.f64):
        world.k[None] = a * 2 + 0.1

    def program(a: float) -> None:
        stiffen(a)
        world.run()

    by_a, found = ti.ad.grad(program, 0, wrt=world.x, loss=world.loss)(0.5)
    assert by_a == pytest.approx(2 * by_k, rel=1e-7)
    np.testing.assert_allclose(found, by_x, rtol=1e-7)
    world.reset()
    jacobian = ti.ad.jacobian(world.run, wrt=world.k, loss=world.loss, mode="forward")()
    assert jacobian == pytest.approx(by_k, rel=1e-7)


def test_a_gradient_is_computed_within_a_custom_gradient() -> None:
    """Neither the function nor its gradient is recorded: what they differentiate is their own business."""
    x, loss, other = scalar(needs_dual=True), scalar(), scalar()

    @ti.ad.grad_replaced
    def slope() -> None:
        loss[None] = ti.ad.grad(height, 1)(1.2, float(x[None]))

    @ti.ad.grad_for(slope)
    def slope_gradient() -> None:
        at = float(x[None])
        _, curvature = ti.ad.vjp(lambda y: ti.ad.grad(height, 1)(1.2, y))(1.0, at)
        x.grad[None] += loss.grad[None] * curvature

    @ti.kernel
    def square():
        other[None] += loss[None] ** 2

    def run(at: float) -> float:
        x[None] = at
        slope()
        square()
        return other[None]

    def value(at: float) -> float:
        other[None] = 0
        return run(at)

    expected = difference(value, 0.7)
    x[None] = 0.7
    with ti.ad.Tape(other):
        slope()
        square()
    assert x.grad[None] == pytest.approx(expected, rel=1e-7)


def test_fields_without_a_gradient_on_the_way() -> None:
    """What the inner function leaves there is right, or refused where the outer one would need it."""
    world = Particles(temporary=False)
    with pytest.raises(DifferentiationError, match="y"), ti.ad.Tape(world.loss):
        world.run()
    world.reset()

    def value(k: float) -> float:
        world.reset(k)
        world.loss[None] = weighted(world.force())
        return world.loss[None]

    expected = difference(value, 1.1)
    world.reset()

    @ti.kernel
    def measure(force: Array1):
        for i in range(force.shape[0]):
            world.loss[None] += force[i] * force[i] * (i + 1)

    with ti.ad.Tape(world.loss):
        measure(world.force())
    assert world.k.grad[None] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("what", ["jacobian", "vmap"])
def test_what_cannot_nest_tells_both_lines(what: str) -> None:
    def f(y: Any) -> Any:
        return height(y, y)

    def inner(x: Any) -> Any:
        if what == "jacobian":
            return ti.ad.jacobian(f)(x)
        return ti.ad.vmap(ti.ad.grad(weighted))(np.ones((2, 3)))

    with pytest.raises(DifferentiationError) as refused:
        ti.ad.grad(inner)(0.4)
    assert f"ti.ad.{what} cannot run inside of" in str(refused.value)
    assert "inside of this" in str(refused.value)
    assert "ti.ad.grad(inner)" in str(refused.value)


def test_numbers_that_leave_in_other_ways_are_refused() -> None:
    kept: list[Any] = []

    def leaking(y: Any) -> Any:
        found = height(y, y)
        kept.append(found)
        return found

    def outer(x: Any) -> Any:
        slope = ti.ad.grad(leaking)(x)
        return slope * kept[-1]

    with pytest.raises(DifferentiationError, match="another recording"):
        ti.ad.grad(outer)(0.4)


def test_a_function_runs_once() -> None:
    """What it has done is differentiated, not what it would do the next time."""
    calls: list[int] = []

    def fickle(y: Any) -> Any:
        calls.append(1)
        return height(y, y) if len(calls) == 1 else height(y, y) + height(y, 2 * y)

    def steady(y: Any) -> Any:
        return height(y, y)

    assert ti.ad.grad(lambda x: ti.ad.grad(fickle)(x))(0.4) == ti.ad.grad(lambda x: ti.ad.grad(steady)(x))(0.4)
    assert len(calls) == 1


def _by_tapes(world: Particles) -> Callable[[], None]:
    """The same program with an inner tape, whose gradients a kernel reads where they lie."""
    x, v = world.x, world.v

    @ti.kernel
    def push():
        for i in x:
            v[i] -= 0.1 * x.grad[i]
        for i in x:
            x[i] += 0.1 * v[i]

    def run() -> None:
        for _ in range(4):
            with ti.ad.Tape(world.energy):
                world.potential()
            push()
        world.measure()

    return run


def test_a_tape_within_forward_mode() -> None:
    world = Particles()
    run = _by_tapes(world)
    by_k, by_x = world.slopes()
    expected = world.value(1.1)
    world.reset()
    with ti.ad.FwdMode(loss=world.loss, param=world.k):
        run()
    assert world.loss[None] == pytest.approx(expected, rel=1e-12)
    assert world.loss.dual[None] == pytest.approx(by_k, rel=1e-7)
    world.reset()
    value, product = ti.ad.jvp(run, wrt=world.x, loss=world.loss)(np.arange(5.0))
    assert value == pytest.approx(expected, rel=1e-12)
    assert product == pytest.approx(by_x @ np.arange(5.0), rel=1e-7)
    world.reset()
    found = ti.ad.jacobian(run, wrt=world.x, loss=world.loss, mode="forward")()
    np.testing.assert_allclose(found, by_x, rtol=1e-7)


def test_numbers_of_a_tape_within_forward_mode() -> None:
    """What Python reads of gradients has tangents."""
    x, y, loss, out = (ti.field(ti.f64, (), needs_grad=True, needs_dual=True) for _ in range(4))

    def run() -> None:
        with ti.ad.Tape(loss):
            cube()
        out[None] = y.grad[None] * x.grad[None]

    @ti.kernel
    def cube():
        loss[None] += ti.sin(x[None]) * y[None] ** 3

    def value(at: float) -> float:
        x[None], y[None] = at, 0.7
        run()
        return out[None]

    expected = difference(value, 1.3)
    x[None], y[None] = 1.3, 0.7
    with ti.ad.FwdMode(loss=out, param=x):
        run()
    assert out.dual[None] == pytest.approx(expected, rel=1e-8)


def test_temporary_duals_become_those_of_fields() -> None:
    """A field without a dual holds varying values before an inner gradient gives it one."""
    x = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
    z, energy = scalar(), scalar()
    out = ti.field(ti.f64, (), needs_dual=True, needs_grad=True)

    @ti.kernel
    def cube():
        z[None] = x[None] ** 3

    @ti.kernel
    def potential():
        energy[None] += z[None] ** 2 * ti.sin(x[None])

    @ti.kernel
    def use(slope: ti.f64):
        out[None] += slope * z[None]

    def run() -> None:
        cube()
        use(ti.ad.grad(potential, wrt=x, loss=energy)())

    x[None] = 1.2
    with ti.ad.FwdMode(loss=out, param=x):
        run()
    found = out.dual[None]

    def value(at: float) -> float:
        x[None], out[None] = at, 0.0
        run()
        return out[None]

    assert found == pytest.approx(difference(value, 1.2), rel=1e-8)


def test_blocks_that_cannot_nest_tell_both_lines() -> None:
    world = Particles()

    def inside() -> None:
        with ti.ad.FwdMode(loss=world.energy, param=world.x, seed=np.eye(5)):
            world.run()

    with pytest.raises(DifferentiationError, match="one seed at a time") as refused:
        ti.ad.hvp(inside, wrt=world.k, loss=world.loss)(1.0)
    assert "inside of this" in str(refused.value)
    several = ti.ad.FwdMode(loss=world.loss, param=world.x, seed=np.eye(5))
    with several, pytest.raises(DifferentiationError, match="several seeds at once"):
        world.run()
    checked = ti.ad.Tape(world.energy, grad_check=True)
    forwards = ti.ad.FwdMode(loss=world.loss, param=world.k)
    with forwards, pytest.raises(DifferentiationError, match="cannot check"):
        checked.__enter__()


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_a_learning_rate_is_fitted_through_fifty_steps(inner: Mode, outer: Mode) -> None:
    @ti.kernel
    def valley(x: ti.f64) -> ti.f64:
        return (x - 1.0) ** 2 * (1.0 + 0.1 * ti.sin(3.0 * x))

    def after(rate: Any) -> Any:
        x = -0.5
        for _ in range(50):
            x = x - rate * inner(valley, x)
        return valley(x)

    rate = 0.01
    slope = outer(after, rate)
    assert slope == pytest.approx(difference(after, rate, 1e-6), rel=1e-6)
    first = after(rate)
    for _ in range(3):
        rate = rate - 0.002 * outer(after, rate)
    assert after(rate) < 0.9 * first


def test_a_steered_particle() -> None:
    """The inner descent finds the control of a particle, the outer one the target that makes it cheap."""
    steps = 8

    @ti.kernel
    def cost(control: Array1, target: ti.f64) -> ti.f64:
        x, v, total = 0.0, 0.0, 0.0
        for t in range(steps):
            v += 0.2 * (control[t] - 0.3 * ti.sin(x))
            x += 0.2 * v
            total += 0.01 * control[t] ** 2
        return total + (x - target) ** 2

    @ti.kernel
    def descend(control: Array1, slope: Array1, after: Array1):
        for t in range(steps):
            after[t] = control[t] - 0.5 * slope[t]

    controls = [ti.ndarray(ti.f64, steps, needs_grad=True, needs_dual=True) for _ in range(11)]

    def best(target: Any) -> Any:
        for k in range(10):
            descend(controls[k], ti.ad.grad(cost)(controls[k], target), controls[k + 1])
        return cost(controls[10], target) + 0.1 * (target - 2.0) ** 2

    expected = difference(best, 0.8)
    assert reverse(best, 0.8) == pytest.approx(expected, rel=1e-7)
    assert forward(best, 0.8) == pytest.approx(expected, rel=1e-7)


def test_the_example_learns_to_learn() -> None:
    before, after = train(iterations=40)
    assert after < 0.8 * before


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_functions_keep_their_variables_from_the_time_of_the_call(inner: Mode, outer: Mode) -> None:
    """The iteration of a loop that an inner function was made in is that in which it is differentiated."""

    def path(x: Any) -> Any:
        y = 0.3
        for t in range(4):
            rate = 0.1 * (t + 1)
            y = y - rate * inner(lambda y: height(x, y) * (t + 1.0) + height(y, rate), y)  # noqa: B023
        return height(x, y)

    assert outer(path, 0.8) == pytest.approx(difference(path, 0.8), rel=1e-7)


iteration = 0.0


def test_what_changes_elsewhere_makes_no_difference() -> None:
    """A call that depends on a global variable was made when that was another one."""

    def path(x: Any) -> Any:
        global iteration
        y = 0.3
        for t in range(3):
            iteration = t + 1.0
            y = y - 0.1 * ti.ad.grad(lambda y: height(x, y * iteration))(y)  # noqa: B023
        return height(x, y)

    assert ti.ad.grad(path)(0.8) == pytest.approx(difference(path, 0.8), rel=1e-7)
    assert ti.ad.jvp(path)(1.0, 0.8)[1] == pytest.approx(difference(path, 0.8), rel=1e-7)


stiffness = 0.0  # what a kernel is compiled with, and what Python puts into fields and arrays


@pytest.mark.parametrize("way", ["captured", "element", "field", "array", "made", "number"])
def test_what_alters_second_derivatives_alone_is_what_it_was(way: str) -> None:
    """At 1, neither the value nor the slope depends on the stiffness, and the curvature does. It changes afterwards."""
    held, shared = ti.field(ti.f64, ()), np.zeros(1)

    @ti.kernel
    def captured(y: ti.f64) -> ti.f64:
        return ti.sin(y) + stiffness * (y - 1.0) ** 2

    @ti.kernel
    def by_field(y: ti.f64) -> ti.f64:
        return ti.sin(y) + held[None] * (y - 1.0) ** 2

    @ti.kernel
    def by_array(y: ti.f64, k: Array1) -> ti.f64:
        return ti.sin(y) + k[0] * (y - 1.0) ** 2

    @ti.kernel
    def sine(y: ti.f64) -> ti.f64:
        return ti.sin(y)

    def energy(y: Any) -> Any:
        if way == "captured":
            return captured(y)
        if way == "element":
            held[None] = stiffness
        elif way == "field":
            held.from_numpy(np.array(stiffness))
        elif way == "array":
            return by_array(y, shared)
        elif way == "made":
            return by_array(y, np.array([stiffness]))
        else:
            return sine(y) + stiffness * (y - 1.0) ** 2
        return by_field(y)

    def outer(x: Any, after: float) -> Any:
        global stiffness
        stiffness = shared[0] = 0.7
        slope = ti.ad.grad(energy)(x)
        stiffness = shared[0] = after
        return slope

    curvature = 1.4 - np.sin(1.0)
    assert ti.ad.grad(outer)(1.0, 0.7) == pytest.approx(curvature)
    assert ti.ad.grad(outer)(1.0, -5.0) == pytest.approx(curvature)


def test_fields_that_python_reads_inside_are_as_they_were() -> None:
    count = ti.field(ti.i32, ())
    weights = ti.field(ti.f64, 2)

    def energy(y: Any) -> Any:
        total = height(y, y)
        for _ in range(int(count[None])):
            total = total + float(weights.to_numpy()[1]) * height(y, 0.5 * y)
        return total

    def path(x: Any) -> Any:
        for t in range(3):
            count[None] = t
            weights[1] = 0.5 + t
            x = x - 0.1 * ti.ad.grad(energy)(x)
        return x * x

    assert ti.ad.grad(path)(0.8) == pytest.approx(difference(path, 0.8), rel=1e-7)


def test_gradients_and_the_callers_arrays_inside_are_refused() -> None:
    x, loss = scalar(), scalar()
    x[None] = 0.4

    @ti.kernel
    def energy():
        ti.stop_grad(x.grad)
        loss[None] += x[None] ** 3 * x.grad[None]

    @ti.kernel
    def double(a: Array1) -> ti.f64:
        for i in range(a.shape[0]):
            a[i] *= 2.0
        return a[0] * a[1]

    out = scalar()
    with ti.ad.Tape(out), pytest.raises(DifferentiationError, match="reads the gradient or dual"):
        ti.ad.grad(energy, wrt=x, loss=loss)()
    for outer in (reverse, forward):
        with pytest.raises(DifferentiationError, match="writes to an array"):
            outer(lambda k: k * ti.ad.grad(double)(np.ones(2))[0], 1.5)


def test_losses_of_one_element_give_numbers() -> None:
    x, loss = scalar(), ti.field(ti.f64, 1, needs_grad=True)
    x[None] = 0.4

    @ti.kernel
    def energy():
        loss[0] += x[None] ** 3

    def outer(k: Any) -> Any:
        value, slope = ti.ad.value_and_grad(energy, wrt=x, loss=loss)()
        return k * value * slope

    for mode in MODES:
        assert mode(outer, 2.0) == pytest.approx(0.4**3 * 3 * 0.4**2)


@pytest.mark.parametrize("inner", MODES)
def test_several_results_and_seeds_that_are_computed(inner: Mode) -> None:
    """`vjp` and `jvp` of a field, along another field, with values that are overwritten on the way."""
    n = 3
    x, y, s = (ti.field(ti.f64, n, needs_grad=True, needs_dual=True) for _ in range(3))
    k, loss = (ti.field(ti.f64, (), needs_grad=True, needs_dual=True) for _ in range(2))

    @ti.kernel
    def bend():
        for i in x:
            y[i] = ti.sin(x[i] * k[None]) * x[(i + 1) % n]

    @ti.kernel
    def scale():
        for i in x:
            x[i] = x[i] * y[i]

    @ti.kernel
    def couple():
        for i in y:
            y[i] += x[i] * x[(i + 1) % n]

    @ti.kernel
    def seed():
        for i in s:
            s[i] = ti.cos(k[None] * (i + 1))

    @ti.kernel
    def use(a: Array1, b: Array1):
        for i in y:
            loss[None] += a[i] * b[i] * (i + 1) + y[i] * a[(i + 1) % n] + x[i] * s[i]

    def function() -> None:
        bend()
        scale()
        couple()

    def run() -> None:
        seed()
        use(*(ti.ad.vjp if inner is reverse else ti.ad.jvp)(function, wrt=x, loss=y)(s))

    start = np.array([0.4, 0.9, -0.7])

    def reset(at_k: float = 1.1, at_x: Any = start) -> None:
        x.from_numpy(at_x)
        y.fill(0.3)
        k[None], loss[None] = at_k, 0.0

    def value(at_k: float, at_x: Any = start) -> float:
        reset(at_k, at_x)
        run()
        return loss[None]

    by_k = difference(value, 1.1)
    by_x = [difference(lambda h, e=e: value(1.1, start + h * e), 0.0) for e in np.eye(n)]
    reset()
    with ti.ad.Tape(loss):
        run()
    assert k.grad[None] == pytest.approx(by_k, rel=1e-7)
    np.testing.assert_allclose(x.grad.to_numpy(), by_x, rtol=1e-7)
    reset()
    with ti.ad.FwdMode(loss=loss, param=[k, x], seed=[2.0, np.arange(3.0)]):
        run()
    assert loss.dual[None] == pytest.approx(2 * by_k + np.arange(3.0) @ by_x, rel=1e-7)


@pytest.mark.parametrize("outer", ["grad", "jvp", "hvp"])
@pytest.mark.parametrize("kind", ["constant", "numbers", "array"])
def test_seeds_of_a_product_inside(kind: str, outer: str) -> None:
    """Seeds of several numbers: plain ones, some that are differentiated, and an ndarray that is."""
    ti.init(default_fp=ti.f64)
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x, y = [ti.field(ti.f64, shape=3, **both) for _ in range(2)]
    total = ti.field(ti.f64, shape=(), **both)
    column = ti.types.ndarray(dtype=ti.f64, ndim=1)

    @ti.kernel
    def couple():
        for i in x:
            y[i] = x[i] ** 3 * x[(i + 1) % 3]

    @ti.kernel
    def fill(seed: column):
        for i in x:
            seed[i] = ti.sin(x[i]) * (i + 1)

    @ti.kernel
    def use(product: column):
        for i in x:
            total[None] += ti.sin(product[i]) * (i + 1)

    product = ti.ad.vjp(couple, wrt=x, output=y)

    def program() -> None:
        if kind == "constant":
            seed: Any = np.array([0.5, -1.0, 2.0])
        elif kind == "numbers":
            seed = [x[0] * x[1], 0.5, ti.sin(x[2])]
        else:
            seed = ti.ndarray(ti.f64, 3, **both)
            fill(seed)
        use(product(seed)[1])

    def begin(step: float) -> None:
        x.from_numpy(np.array([0.3, 0.5, 0.7]) + step * along)
        total[None] = 0

    def value(step: float) -> float:
        begin(step)
        program()
        return total[None] * 1.0

    def slopes(step: float) -> np.ndarray:
        begin(step)
        return ti.ad.grad(program, wrt=x, output=total)()

    along = np.array([1.0, -0.5, 0.25])
    begin(0.0)
    if outer == "hvp":
        found = ti.ad.hvp(program, wrt=x, output=total)(along)
        np.testing.assert_allclose(found, (slopes(1e-6) - slopes(-1e-6)) / 2e-6, 1e-6)
        return
    if outer == "grad":
        found = slopes(0.0) @ along
    else:
        found = ti.ad.jvp(program, wrt=x, output=total)(along)[1]
    assert found == pytest.approx((value(1e-6) - value(-1e-6)) / 2e-6, rel=1e-6)
