"""Functions with a custom gradient inside of second derivatives: what is differentiated then are the launches of the
function and those of its gradient function. Each combination is tried twice in a row.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import scalar, session  # noqa: F401
from tinote.errors import DifferentiationError

COUNT = 3
Numbers = np.ndarray[Any, Any]


class Program:
    """Σ sin(g)(1 + b), where g is the gradient of an energy by a, in which `middle`, with a custom gradient, takes
    part. `by_hand` writes g to `slopes`, where nothing else gives it.
    """

    #: whether the custom gradient is the derivative of what is computed
    is_true = True

    def __init__(self, *, custom: bool = True) -> None:
        ti.init(default_fp=ti.f64, num_threads=1)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.a, self.b, self.y, self.slopes = [ti.field(ti.f64, shape=COUNT, **both) for _ in range(4)]
        self.loss, self.total, self.energy = [ti.field(ti.f64, shape=(), **both) for _ in range(3)]
        a, b, y, loss, total = self.a, self.b, self.y, self.loss, self.total
        values = self.is_true  # of another gradient, what y holds has one derivative in reverse, and another forwards

        @ti.kernel
        def measure():
            for i in a:
                loss[None] += ti.sin(y[i]) * a[i]

        @ti.kernel
        def use(slopes: ti.types.ndarray(dtype=ti.f64, ndim=1)):
            for i in a:
                total[None] += ti.sin(slopes[i]) * (1 + b[i] * (y[i] if ti.static(values) else 1.0))

        @ti.kernel
        def use_gradients():
            for i in a:
                total[None] += ti.sin(a.grad[i]) * (1 + b[i] * (y[i] if ti.static(values) else 1.0))

        self.measure, self.use, self.use_gradients = measure, use, use_gradients
        function, gradient = self.functions()
        self.middle: Any = ti.ad.grad_replaced(function) if custom else function
        if custom:
            ti.ad.grad_for(self.middle)(gradient)
        self.along = [np.cos(np.arange(COUNT)), np.sin(1.0 + np.arange(COUNT))]

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """The function and its gradient."""
        raise NotImplementedError

    def by_hand(self) -> None:
        """Compute the custom gradient without differentiating anything."""
        raise NotImplementedError

    def begin(self, step: float = 0.0) -> None:
        numbers = np.random.default_rng(3)
        for one, along in zip((self.a, self.b), self.along, strict=True):
            one.from_numpy(numbers.uniform(0.3, 1, COUNT) + step * along)
        self.y.fill(0)
        for one in (self.loss, self.total, self.energy):
            one[None] = 0

    def once(self) -> None:
        self.middle()
        self.measure()

    def inside(self, mode: str) -> None:
        if mode == "tape":
            with ti.ad.Tape(self.loss):
                self.once()
            self.use_gradients()
        elif mode == "grad":
            self.use(ti.ad.grad(self.once, wrt=self.a, loss=self.loss)())
        else:
            self.by_hand()
            self.use(self.slopes)

    def number(self, mode: str) -> float:
        self.inside(mode)
        return self.total[None] * 1.0

    def slope(self, inner: str) -> float:
        """From differences of first derivatives."""
        found = []
        for step in (1e-6, -1e-6):
            self.begin(step)
            self.inside(inner)
            found.append(self.total[None])
        return (found[0] - found[1]) / 2e-6

    def around(self, mode: str, inner: str) -> list[Numbers]:
        self.begin()
        inputs = [self.a, self.b]
        if mode == "tape":
            with ti.ad.Tape(self.total):
                self.inside(inner)
            return [one.grad.to_numpy() for one in inputs]
        if mode == "block":
            with ti.ad.FwdMode(loss=self.total, param=inputs, seed=self.along):
                self.inside(inner)
            return [np.array(self.total.dual[None])]
        if mode == "number":
            return [np.array(ti.ad.jvp(lambda: self.number(inner), wrt=inputs)(self.along)[1])]
        if mode == "grad":
            return list(ti.ad.grad(lambda: self.inside(inner), wrt=inputs, loss=self.total)())
        return [np.array(ti.ad.jvp(lambda: self.inside(inner), wrt=inputs, loss=self.total)(self.along)[1])]

    def gradient(self, step: float = 0.0) -> list[Numbers]:
        self.begin(step)
        return list(ti.ad.grad(self.once, wrt=[self.a, self.b], loss=self.loss)())

    def hessian_product(self) -> list[Numbers]:
        self.begin()
        return list(ti.ad.hvp(self.once, wrt=[self.a, self.b], loss=self.loss)(self.along))


class ByKernels(Program):
    """Two launches, of which the second works in place, and the gradients of both."""

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, b, y = self.a, self.b, self.y

        @ti.kernel
        def cube():
            for i in a:
                y[i] = a[i] ** 3 * b[i]

        @ti.kernel
        def couple():
            for i in a:
                y[i] += a[i] * a[(i + 1) % COUNT]

        def function() -> None:
            cube()
            couple()

        def gradient() -> None:
            couple.grad()
            cube.grad()

        return function, gradient


class InPython(Program):
    """The gradient function reads and writes elements."""

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, b, y = self.a, self.b, self.y

        @ti.kernel
        def function():
            for i in a:
                y[i] = ti.exp(a[i]) * b[i]

        def gradient() -> None:
            for i in range(COUNT):
                a.grad[i] += y.grad[i] * y[i]
                b.grad[i] += y.grad[i] * ti.exp(a[i])
                y.grad[i] = 0.0

        return lambda: function(), gradient


class ByDerivatives(Program):
    """The gradient function takes a gradient itself, of a function that is checkpointed."""

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, b, y, energy = self.a, self.b, self.y, self.energy

        @ti.kernel
        def potential():
            for i in a:
                energy[None] += a[i] ** 4 * b[i] + a[i] * a[(i + 1) % COUNT] ** 2

        @ti.kernel
        def share():
            for i in y:
                y[i] = energy[None] * (i + 1)

        @ti.kernel
        def add(by_a: ti.types.ndarray(dtype=ti.f64, ndim=1), by_b: ti.types.ndarray(dtype=ti.f64, ndim=1)):
            for i in a:
                for j in range(COUNT):
                    a.grad[i] += by_a[i] * y.grad[j] * (j + 1) / 2
                    b.grad[i] += by_b[i] * y.grad[j] * (j + 1) / 2

        def function() -> None:
            energy[None] = 0
            potential()
            share()
            energy[None] = 0

        def gradient() -> None:
            twice = ti.ad.grad(lambda: ti.ad.checkpoint(lambda t: potential(), 2), wrt=[a, b], loss=energy)
            add(*twice())
            y.grad.fill(0)
            energy.grad.fill(0)  # what it leaves there is 0

        return function, gradient


class BySolves(Program):
    """y³ + 2 y = a (1 + b), and the gradient function solves for the adjoints. It is called twice."""

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, b, y = self.a, self.b, self.y
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        rest, bar, bar_rest, given = [ti.field(ti.f64, shape=COUNT, **both) for _ in range(4)]

        @ti.kernel
        def residual():
            for i in a:
                rest[i] = y[i] ** 3 + 2 * y[i] - a[i] * (1 + b[i])

        @ti.kernel
        def adjoint_residual():
            for i in a:
                bar_rest[i] = bar[i] * (3 * y[i] ** 2 + 2) - given[i]

        @ti.kernel
        def take():
            for i in a:
                given[i] = y.grad[i]

        @ti.kernel
        def add():
            for i in a:
                a.grad[i] += bar[i] * (1 + b[i])
                b.grad[i] += bar[i] * a[i]
            for i in a:
                y.grad[i] = 0

        solve = ti.ad.implicit(residual, y, rest, tol=1e-13)
        adjoint_solve = ti.ad.implicit(adjoint_residual, bar, bar_rest, tol=1e-13)

        def function() -> None:
            y.fill(0)
            solve()

        def gradient() -> None:
            take()
            bar.fill(0)
            adjoint_solve()
            add()

        return function, gradient

    def once(self) -> None:
        for _ in range(2):
            self.middle()
            self.measure()


class Forces(Program):
    """The function stores a gradient, and its gradient function takes a product with the Hessian."""

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, b, y, energy = self.a, self.b, self.y, self.energy
        array = ti.types.ndarray(dtype=ti.f64, ndim=1)
        seed = ti.ndarray(ti.f64, shape=COUNT, needs_grad=True)

        @ti.kernel
        def potential():
            for i in a:
                energy[None] += a[i] ** 4 * b[i] + a[i] * a[(i + 1) % COUNT] ** 2

        @ti.kernel
        def store(slopes: array):
            for i in y:
                y[i] = slopes[i]

        @ti.kernel
        def take(adjoints: array):
            for i in y:
                adjoints[i] = y.grad[i]

        @ti.kernel
        def add(by_a: array, by_b: array):
            for i in a:
                a.grad[i] += by_a[i]
                b.grad[i] += by_b[i]

        def function() -> None:
            store(ti.ad.grad(potential, wrt=a, loss=energy)())

        def gradient() -> None:
            take(seed)
            y.grad.fill(0)
            _, products = ti.ad.vjp(function, wrt=[a, b], loss=y)(seed)
            add(*products)

        return function, gradient


class ByProducts(Program):
    """The function and its gradient function both take a derivative in forward mode."""

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, b, y, energy = self.a, self.b, self.y, self.energy
        slopes = ti.field(ti.f64, shape=COUNT, needs_grad=True, needs_dual=True)
        direction = np.array([0.5, -1.0, 2.0])
        column = ti.types.ndarray(dtype=ti.f64, ndim=1)

        @ti.kernel
        def potential():
            for i in a:
                energy[None] += a[i] ** 4 * b[i] + a[i] ** 2 * a[(i + 1) % COUNT]

        @ti.kernel
        def slope():
            for i in a:
                slopes[i] = 4 * a[i] ** 3 * b[i] + 2 * a[i] * a[(i + 1) % COUNT] + a[(i + COUNT - 1) % COUNT] ** 2

        @ti.kernel
        def share(product: ti.f64):
            for i in y:
                y[i] = product * (i + 1)

        @ti.kernel
        def add(products: column, along: column):
            for i in a:
                for j in range(COUNT):
                    a.grad[i] += products[i] * y.grad[j] * (j + 1)
                    b.grad[i] += 4 * a[i] ** 3 * along[i] * y.grad[j] * (j + 1)

        def function() -> None:
            energy[None] = 0
            share(ti.ad.jvp(potential, wrt=a, loss=energy)(direction)[1])
            energy[None] = 0

        def gradient() -> None:
            add(ti.ad.jvp(slope, wrt=a, loss=slopes)(direction)[1], direction)
            y.grad.fill(0)
            energy.grad.fill(0)  # what it leaves there is 0

        return function, gradient


class Clipped(Program):
    """The adjoints are clipped."""

    is_true = False

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, y, slopes = self.a, self.y, self.slopes

        @ti.kernel
        def function():
            for i in a:
                y[i] = a[i] ** 2

        @ti.kernel
        def gradient():
            for i in a:
                a.grad[i] += ti.math.clamp(y.grad[i], -0.5, 0.5) * 2 * a[i]
            for i in a:
                y.grad[i] = 0

        @ti.kernel
        def by_hand():
            for i in a:
                y[i] = a[i] ** 2
                slopes[i] = ti.math.clamp(ti.cos(y[i]) * a[i], -0.5, 0.5) * 2 * a[i] + ti.sin(y[i])

        self.by_hand = by_hand  # type: ignore[method-assign]
        return lambda: function(), lambda: gradient()


class StraightThrough(Program):
    """What is rounded has the derivative of what is not."""

    is_true = False

    def functions(self) -> tuple[Callable[[], None], Callable[[], None]]:
        a, y, slopes = self.a, self.y, self.slopes

        @ti.kernel
        def function():
            for i in a:
                y[i] = ti.round(8 * a[i]) / 8

        @ti.kernel
        def gradient():
            for i in a:
                a.grad[i] += y.grad[i]
            for i in a:
                y.grad[i] = 0

        @ti.kernel
        def by_hand():
            for i in a:
                y[i] = ti.round(8 * a[i]) / 8
                slopes[i] = ti.cos(y[i]) * a[i] + ti.sin(y[i])

        self.by_hand = by_hand  # type: ignore[method-assign]
        return lambda: function(), lambda: gradient()


class Checkpointed(ByKernels):
    """The function is called in the steps of a checkpointed loop."""

    def once(self) -> None:
        def step(t: int) -> None:
            self.middle()
            self.measure()

        ti.ad.checkpoint(step, 3)


TRUE = [ByKernels, InPython, ByDerivatives, ByProducts, Checkpointed, BySolves, Forces]
OTHER = [Clipped, StraightThrough]


#: All pairs of blocks for some, and for the others each block once; those of what is no derivative are forward mode.
ALL_PAIRS = [(outer, inner) for outer in ("tape", "block", "grad", "jvp", "number") for inner in ("grad", "tape")]
SOME_PAIRS = [("tape", "grad"), ("block", "tape"), ("grad", "tape"), ("number", "grad")]
FORWARD_PAIRS = [("block", "tape"), ("number", "grad")]
PAIRS = {
    ByKernels: ALL_PAIRS,
    ByDerivatives: ALL_PAIRS,
    BySolves: [("block", "grad"), ("tape", "grad")],
    Forces: [("block", "grad"), ("tape", "grad")],
    InPython: SOME_PAIRS,
    ByProducts: SOME_PAIRS,
    Checkpointed: SOME_PAIRS,
    Clipped: FORWARD_PAIRS,
    StraightThrough: FORWARD_PAIRS,
}


@pytest.mark.parametrize("kind", PAIRS)
def test_a_gradient_with_a_custom_part_is_differentiated(kind: type[Program]) -> None:
    program, all_found = kind(), []
    for outer, inner in PAIRS[kind]:
        found, again = [program.around(outer, inner) for _ in range(2)]
        for one, other in zip(found, again, strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12, err_msg=f"{outer} {inner}")
        along = found[0] if len(found) == 1 else sum([one @ d for one, d in zip(found, program.along, strict=True)])
        assert along == pytest.approx(program.slope(inner), rel=1e-6), (outer, inner)
        all_found.append(found)
    other_way = kind(custom=not kind.is_true)
    for (outer, inner), found in zip(PAIRS[kind], all_found, strict=True):
        expected = other_way.around(outer, inner if kind.is_true else "by hand")
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, 1e-10, 1e-12, err_msg=f"{outer} {inner}")


@pytest.mark.parametrize(("outer", "inner"), [("tape", "grad"), ("grad", "tape")])
@pytest.mark.parametrize("kind", OTHER)
def test_reverse_around_reverse_refuses_what_is_no_derivative(kind: type[Program], outer: str, inner: str) -> None:
    with pytest.raises(DifferentiationError, match="is another one than that of what is computed"):
        kind().around(outer, inner)


@pytest.mark.parametrize("kind", [*TRUE, *OTHER])
def test_second_derivatives_of_what_has_a_custom_part(kind: type[Program]) -> None:
    program = kind()
    first, second = [program.hessian_product() for _ in range(2)]
    above, below = [program.gradient(step) for step in (1e-6, -1e-6)]
    for one, other, high, low in zip(first, second, above, below, strict=True):
        np.testing.assert_allclose(one, other, 1e-12, 1e-12)
        np.testing.assert_allclose(one, (high - low) / 2e-6, 1e-6, 1e-7)
    if kind.is_true:
        for one, other in zip(first, kind(custom=False).hessian_product(), strict=True):
            np.testing.assert_allclose(one, other, 1e-10, 1e-12)


@pytest.mark.parametrize("kind", [ByKernels, ByDerivatives, ByProducts, Forces])
def test_derivatives_inside_of_custom_functions_are_pushed_forward(kind: type[Program]) -> None:
    """In forward mode through the function, and in third derivatives."""

    def found(*, custom: bool) -> list[Numbers]:
        program = kind(custom=custom)
        inputs, loss = [program.a, program.b], program.loss
        program.begin()
        along = ti.ad.jvp(program.once, wrt=inputs, loss=loss)(program.along)[1]
        program.begin()

        def inside() -> None:
            program.use(ti.ad.hvp(program.once, wrt=program.a, loss=loss)(program.along[0]))

        return [np.array(along), *ti.ad.grad(inside, wrt=inputs, loss=program.total)()]

    for one, other in zip(found(custom=True), found(custom=False), strict=True):
        np.testing.assert_allclose(one, other, 1e-11, 1e-12)


class World:
    """An energy Σ k sin(y), where y = a² p has a custom gradient: `weights` times that by a and that by p, and `mixed`
    times what makes it that of nothing.
    """

    def __init__(
        self, weights: tuple[float, float] = (1.0, 1.0), mixed: float = 0.0, *, constant: bool = False
    ) -> None:
        ti.init(default_fp=ti.f64, num_threads=1)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.a, self.y = [ti.field(ti.f64, shape=COUNT, **both) for _ in range(2)]
        self.p = ti.field(ti.f64, shape=COUNT, **({"needs_grad": False} if constant else both))
        self.k, self.loss, self.total = [ti.field(ti.f64, shape=(), **both) for _ in range(3)]
        a, y, p, k, loss, total = self.a, self.y, self.p, self.k, self.loss, self.total
        by_a, by_p = weights

        @ti.kernel
        def square():
            for i in a:
                y[i] = a[i] ** 2 * p[i]

        @ti.kernel
        def square_gradient():
            for i in a:
                a.grad[i] += y.grad[i] * (by_a * 2 * a[i] * p[i] + mixed * a[(i + 1) % COUNT])
                if ti.static(not constant):
                    p.grad[i] += y.grad[i] * by_p * a[i] ** 2
            for i in a:
                y.grad[i] = 0

        @ti.kernel
        def measure():
            for i in a:
                loss[None] += k[None] * ti.sin(y[i])

        @ti.kernel
        def use(slopes: ti.types.ndarray(dtype=ti.f64, ndim=1)):
            for i in a:
                total[None] += k[None] * ti.sin(slopes[i]) * a[i]

        @ti.kernel
        def use_gradients():
            for i in a:
                total[None] += k[None] * ti.sin(a.grad[i]) * a[i]

        self.square, self.square_gradient, self.measure = square, square_gradient, measure
        self.use, self.use_gradients = use, use_gradients

        @ti.ad.grad_replaced
        def middle() -> None:
            square()

        @ti.ad.grad_for(middle)
        def middle_gradient() -> None:
            square_gradient()

        self.middle = middle
        self.start = np.random.default_rng(4).uniform(0.3, 1, (2, COUNT))

    def begin(self, by_a: Any = 0.0, by_k: float = 0.0) -> None:
        self.a.from_numpy(self.start[0] + by_a)
        self.p.from_numpy(self.start[1])
        self.k[None] = 0.7 + by_k
        self.loss[None] = self.total[None] = 0

    def once(self) -> None:
        self.middle()
        self.measure()

    def inside(self, mode: str) -> None:
        if mode == "tape":
            with ti.ad.Tape(self.loss):
                self.once()
            self.use_gradients()
        else:
            self.use(ti.ad.grad(self.once, wrt=self.a, loss=self.loss)())

    def slopes(self, inside: Callable[[], None]) -> tuple[Numbers, float]:
        """The derivatives of the total by a and k, from differences."""

        def value(**move: Any) -> float:
            self.begin(**move)
            inside()
            return self.total[None]

        moves = 1e-6 * np.eye(COUNT)
        by_a = [value(by_a=move) - value(by_a=-move) for move in moves]
        return np.array(by_a) / 2e-6, (value(by_k=1e-6) - value(by_k=-1e-6)) / 2e-6


@pytest.mark.parametrize("inner", ["grad", "tape"])
def test_perturbations_of_two_levels_stay_apart(inner: str) -> None:
    """Both derivatives are by a, and k is a factor inside and outside."""
    world = World()

    def program() -> None:
        world.inside(inner)

    by_a, by_k = world.slopes(program)
    for _ in range(2):
        world.begin()
        found = ti.ad.grad(program, wrt=[world.a, world.k], loss=world.total)()
        np.testing.assert_allclose(found[0], by_a, 1e-7, 1e-8)
        assert found[1] == pytest.approx(by_k, rel=1e-7)
        world.begin()
        _, along = ti.ad.jvp(program, wrt=[world.a, world.k], loss=world.total)([np.ones(COUNT), 2.0])
        assert along == pytest.approx(by_a.sum() + 2 * by_k, rel=1e-7)


@pytest.mark.parametrize("inner", ["grad", "tape"])
@pytest.mark.parametrize(("weights", "mixed"), [((1.0, 0.0), 0.0), ((3.0, 1.0), 0.0), ((1.0, 1.0), 0.5)])
def test_gradients_that_are_those_of_something_else(weights: tuple[float, float], mixed: float, inner: str) -> None:
    """Forward mode around a gradient is right for any gradient, reverse mode around it is refused."""
    world = World(weights, mixed)

    def program() -> None:
        world.inside(inner)

    by_a, by_k = world.slopes(program)
    world.begin()
    _, along = ti.ad.jvp(program, wrt=[world.a, world.k], loss=world.total)([np.arange(COUNT), 2.0])
    assert along == pytest.approx(by_a @ np.arange(COUNT) + 2 * by_k, rel=1e-7)
    world.begin()
    with pytest.raises(DifferentiationError, match="the custom gradient of 'middle' is another one") as refused:
        ti.ad.grad(program, wrt=[world.a, world.k], loss=world.total)()
    assert "self.middle()" in str(refused.value)
    assert ("with ti.ad.Tape(self.loss)" if inner == "tape" else "ti.ad.grad(self.once") in str(refused.value)
    assert "ti.ad.grad(program" in str(refused.value)


@pytest.mark.parametrize("inner", ["grad", "tape"])
def test_a_gradient_that_leaves_out_what_has_none(inner: str) -> None:
    world = World((1.0, 0.0), constant=True)

    def program() -> None:
        world.inside(inner)

    by_a, by_k = world.slopes(program)
    world.begin()
    found = ti.ad.grad(program, wrt=[world.a, world.k], loss=world.total)()
    np.testing.assert_allclose(found[0], by_a, 1e-7, 1e-8)
    assert found[1] == pytest.approx(by_k, rel=1e-7)


@pytest.mark.parametrize("by_python", [False, True])
@pytest.mark.parametrize("inner", ["grad", "tape"])
def test_what_the_gradient_alone_reads_is_kept(inner: str, by_python: bool) -> None:
    """The program overwrites it afterwards."""
    world = World()
    factor = ti.field(ti.f64, shape=(), needs_grad=False)

    @ti.kernel
    def gradient():
        for i in world.a:
            world.a.grad[i] += world.y.grad[i] * factor[None] * world.a[i] * world.p[i]
            world.p.grad[i] += world.y.grad[i] * factor[None] * world.a[i] ** 2 / 2
        for i in world.y:
            world.y.grad[i] = 0

    @ti.kernel
    def gradient_along(weight: ti.f64):
        for i in world.a:
            world.a.grad[i] += world.y.grad[i] * weight * world.a[i] * world.p[i]
            world.p.grad[i] += world.y.grad[i] * weight * world.a[i] ** 2 / 2
        for i in world.y:
            world.y.grad[i] = 0

    ti.ad.grad_for(world.middle)(lambda: gradient_along(factor[None]) if by_python else gradient())

    def program() -> None:
        factor[None] = 2.0
        world.inside(inner)
        factor[None] = -5.0

    by_a, by_k = world.slopes(program)
    for _ in range(2):
        world.begin()
        with ti.ad.Tape(world.total):
            program()
        np.testing.assert_allclose(world.a.grad.to_numpy(), by_a, 1e-7, 1e-8)
        assert world.k.grad[None] == pytest.approx(by_k, rel=1e-7)


@pytest.mark.parametrize("inner", ["grad", "tape"])
def test_a_gradient_that_does_something_else_again_is_refused(inner: str) -> None:
    world = World()
    calls: list[None] = []

    @ti.ad.grad_for(world.middle)
    def _() -> None:
        calls.append(None)
        for i in range(COUNT):
            world.a.grad[i] += world.y.grad[i] * len(calls)

    world.begin()
    with pytest.raises(DifferentiationError, match="the custom gradient of 'middle' is another one"):
        ti.ad.grad(lambda: world.inside(inner), wrt=world.a, loss=world.total)()


def test_a_tape_that_adds_to_gradients_there_are() -> None:
    world = World()

    def program() -> None:
        for clears in (True, False):
            world.loss[None] = 0
            with ti.ad.Tape(world.loss, clear_gradients=clears):
                world.once()
        world.use_gradients()

    by_a, by_k = world.slopes(program)
    for _ in range(2):
        world.begin()
        found = ti.ad.grad(program, wrt=[world.a, world.k], loss=world.total)()
        np.testing.assert_allclose(found[0], by_a, 1e-7, 1e-8)
        assert found[1] == pytest.approx(by_k, rel=1e-7)


def _in_block(world: World) -> None:
    with ti.ad.FwdMode(loss=world.loss, param=world.a, seed=np.ones(COUNT)):
        world.once()
    world.total[None] += world.loss.dual[None]


def _pushed(world: World) -> None:
    world.total[None] += ti.ad.jvp(world.once, wrt=world.a, loss=world.loss)(np.ones(COUNT))[1]


PUSHED: dict[str, Callable[[World], Any]] = {
    "FwdMode(loss=world.loss": _in_block,
    "jvp(world.once": _pushed,
    "hvp(world.once": lambda world: world.use(ti.ad.hvp(world.once, wrt=world.a, loss=world.loss)(np.ones(COUNT))),
}


@pytest.mark.parametrize("inner", [*PUSHED])
@pytest.mark.parametrize("outer", ["alone", "tape", "block"])
def test_custom_gradients_that_leave_something_out_are_refused(outer: str, inner: str) -> None:
    """In forward mode through the function, and in third derivatives: both blocks are named."""
    world = World((1.0, 0.0))
    world.begin()
    run = PUSHED[inner]
    if outer == "alone" and inner.startswith("hvp"):
        run(world)
        return
    with pytest.raises(DifferentiationError, match="the custom gradient of 'middle' is another one") as refused:
        if outer == "alone":
            run(world)
        elif outer == "tape":
            with ti.ad.Tape(world.total):
                run(world)
        else:
            with ti.ad.FwdMode(loss=world.total, param=world.k, seed=1.0):
                run(world)
    assert inner in str(refused.value)
    if outer != "alone":
        assert "world.total" in str(refused.value)


WHATS = ("a number", "in place", "filled by Python", "an array", "hidden memory")
INNERS = ("jvp", "hvp", "jvp twice")


class Pushed:
    """A function of x with a custom gradient, in which there are other things than launches on fields."""

    def __init__(self, what: str, fp: Any) -> None:
        ti.init(default_fp=fp, num_threads=1)
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.x, self.y = x, y = [ti.field(fp, shape=COUNT, **both) for _ in range(2)]
        self.loss = loss = ti.field(fp, shape=(), **both)
        hidden, array = ti.field(fp, shape=COUNT), ti.ndarray(fp, shape=COUNT, needs_grad=True)
        column = ti.types.ndarray(dtype=fp, ndim=1)

        @ti.kernel
        def scale(by: fp):
            for i in x:
                y[i] = by * ti.sin(x[i]) * x[i]

        @ti.kernel
        def grow():
            for i in x:
                y[i] *= 1 + 0.5 * x[i]

        @ti.kernel
        def grow_back():
            for i in x:
                x.grad[i] += y.grad[i] * 0.5 * y[i] / (1 + 0.5 * x[i])
                y.grad[i] *= 1 + 0.5 * x[i]

        @ti.kernel
        def grow_back_from_two():
            for i in x:
                x.grad[i] += y.grad[i]
                y.grad[i] = 0

        @ti.kernel
        def put(a: column):
            for i in x:
                a[i] = ti.exp(0.3 * x[i]) * x[(i + 1) % COUNT]

        @ti.kernel
        def take(a: column):
            for i in x:
                y[i] = a[i] * x[i]

        @ti.kernel
        def hide():
            for i in x:
                hidden[i] = ti.sin(x[i])

        @ti.kernel
        def show():
            for i in x:
                y[i] = hidden[i] * x[i]

        @ti.kernel
        def show_back():
            for i in x:
                x.grad[i] += y.grad[i] * (hidden[i] + x[i] * ti.cos(x[i]))
                y.grad[i] = 0

        @ti.kernel
        def measure():
            for i in x:
                loss[None] += y[i] * ti.cos(y[i]) * (i + 1) + x[i] * y[i]

        @ti.kernel
        def weigh(a: column) -> fp:
            total = 0.0
            for i in range(COUNT):
                total += a[i] * (i + 1)
            return total

        functions: dict[str, tuple[Any, Any]] = {
            "a number": ([lambda: scale(1.5)], [lambda: scale.grad(1.5)]),
            "in place": ([grow], [grow_back]),
            "filled by Python": ([lambda: y.fill(2.0), grow], [grow_back_from_two]),
            "an array": (
                [lambda: put(array), lambda: take(array)],
                [lambda: take.grad(array), lambda: put.grad(array)],
            ),
            "hidden memory": ([hide, show], [hide, show_back]),
        }
        forwards, backwards = functions[what]

        def function() -> None:
            for one in forwards:
                one()

        @ti.ad.grad_replaced
        def replaced() -> None:
            function()

        @ti.ad.grad_for(replaced)
        def _() -> None:
            for one in backwards:
                one()

        def once() -> None:
            scale(0.7)
            for _ in range(1 if what == "hidden memory" else 2):
                (replaced if self.is_custom else function)()
                measure()

        self.is_custom = True
        self.once, self.weigh = once, weigh

    def number(self, inner: str) -> Any:
        """What derivatives of these kinds give, as a number."""
        how: dict[str, Any] = {"wrt": self.x, "loss": self.loss}
        along = np.array([1.0, -0.5, 0.25])
        if inner == "hvp":
            return self.weigh(ti.ad.hvp(self.once, **how)(along))
        if inner == "jvp":
            return ti.ad.jvp(self.once, **how)(along)[1]
        return ti.ad.jvp(lambda: self.number("jvp"), wrt=self.x)(along)[1]

    def begin(self) -> None:
        self.x.from_numpy(np.array([0.3, 0.7, -0.4]))
        self.y.fill(0)
        self.loss[None] = 0


@pytest.mark.parametrize(
    ("what", "fp", "inners"),
    [
        *[(what, ti.f64, INNERS) for what in WHATS],
        *[(what, ti.f32, INNERS[k % 3 : k % 3 + 1]) for k, what in enumerate(WHATS)],
    ],
)
def test_custom_gradients_are_pushed_forward(what: str, fp: Any, inners: Sequence[str]) -> None:
    """In forward mode and in third derivatives they give what the launches of the function give."""
    program, tolerance = Pushed(what, fp), 1e-10 if fp is ti.f64 else 1e-3
    reverse, forward = ti.ad.grad, lambda f, wrt: lambda: ti.ad.jvp(f, wrt=wrt)(np.ones(COUNT))[1]
    for inner, derivative in itertools.product(inners, (reverse, forward)):
        found = []
        for program.is_custom in (True, True, False):
            program.begin()
            found.append(derivative(functools.partial(program.number, inner), wrt=program.x)())
        np.testing.assert_array_equal(found[0], found[1], inner)
        np.testing.assert_allclose(found[0], found[2], tolerance, tolerance, err_msg=inner)


@pytest.mark.parametrize("block", ["tape", "forward"])
def test_a_gradient_function_opens_no_block(block: str) -> None:
    world = World()

    @ti.ad.grad_for(world.middle)
    def _() -> None:
        if block == "tape":
            ti.ad.Tape(world.total).__enter__()
        else:
            ti.ad.FwdMode(loss=world.total, param=world.a, seed=np.ones(COUNT)).__enter__()

    for derive in (
        lambda: ti.ad.grad(world.once, wrt=world.a, loss=world.loss)(),
        lambda: ti.ad.hvp(world.once, wrt=world.a, loss=world.loss)(np.ones(COUNT)),
    ):
        world.begin()
        with pytest.raises(DifferentiationError, match="cannot be opened inside of this block"):
            derive()


def _through_numpy(world: World) -> None:
    world.a.grad.from_numpy(world.a.grad.to_numpy() + world.y.grad.to_numpy())


def _through_kernels(world: World) -> None:
    array = ti.types.ndarray(dtype=ti.f64, ndim=1)

    @ti.kernel
    def take(given: array):
        for i in world.y:
            given[i] = world.y.grad[i]

    @ti.kernel
    def give(given: array):
        for i in world.a:
            world.a.grad[i] += given[i]

    adjoints = np.zeros(COUNT)
    take(adjoints)
    give(2 * adjoints)


def _through_view(world: World) -> None:
    np.from_dlpack(world.a.grad)[...] += world.y.grad.to_numpy()


@pytest.mark.parametrize("gradient", [_through_numpy, _through_kernels, _through_view])
def test_adjoints_that_leave_tinote_are_refused(gradient: Callable[[World], None]) -> None:
    world = World()

    @ti.ad.grad_for(world.middle)
    def _() -> None:
        gradient(world)
        world.y.grad.fill(0)

    world.begin()
    assert ti.ad.grad(world.once, wrt=world.a, loss=world.loss)().any()
    with pytest.raises(DifferentiationError, match=r"derivative is lost|would be(come)? (a )?constants?") as refused:
        ti.ad.hvp(world.once, wrt=world.a, loss=world.loss)(np.ones(COUNT))
    assert "'middle' is differentiated along a direction here" in str(refused.value)
    assert "ti.ad.hvp(world.once" in str(refused.value)


@pytest.mark.parametrize("how", ["argument", "variable", "list"])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_device_functions_and_numbers_from_outside(factor: float, how: str) -> None:
    """sin(x² y) by x, and that by both, where a factor makes the gradient by y another one."""

    @ti.ad.grad_replaced
    @ti.func
    def product(x, y):
        return x * x * y

    @ti.ad.grad_for(product)
    @ti.func
    def product_gradient(x, y, adjoint):
        return 2 * x * y * adjoint, factor * x * x * adjoint

    @ti.kernel
    def height(x: ti.f64, y: ti.f64) -> ti.f64:
        return ti.sin(product(x, y))

    def slope(x: Any, y: Any) -> Any:
        if how == "argument":
            return ti.ad.grad(height, argnums=0)(x, y)
        if how == "variable":
            return ti.ad.grad(lambda z: height(z, y))(x)
        held = [y]
        return ti.ad.grad(lambda z: height(z, held[0]))(x)

    x, y = 0.7, 0.9
    derivative = ti.ad.grad(slope, argnums=(0, 1))
    expected = (
        2 * y * np.cos(x * x * y) - (2 * x * y) ** 2 * np.sin(x * x * y),
        2 * x * np.cos(x * x * y) - factor * 2 * x**3 * y * np.sin(x * x * y),
    )
    for _ in range(2):
        assert derivative(x, y) == pytest.approx(expected, rel=1e-12)
    along = [ti.ad.jvp(slope, argnums=(0, 1))(one, x, y)[1] for one in ((1.0, 0.0), (0.0, 1.0))]
    assert along == pytest.approx(expected, rel=1e-12)
