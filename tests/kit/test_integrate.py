"""`ti.integrate`: orders, SciPy's numbers, and derivatives that are those of the discrete steps."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import tinote as ti
from tinote.errors import FieldError, SolverError
from tinote.kit.fields import like
from tinote.kit.integrate import IMPLICIT, METHODS, SPLITTINGS

X0 = np.array([[1.0, 0.0], [1.2, 0.1], [0.9, 0.0]])
V0 = np.array([[0.0, 1.0], [0.0, 0.8], [0.1, 1.1]])


class Kepler:
    """Three orbits about a fixed mass."""

    def __init__(self, arch: Any = ti.cpu, dtype: Any = ti.f64) -> None:
        ti.init(arch=arch, default_fp=dtype)
        self.x, self.v, self.a = (
            ti.Vector.field(2, dtype, shape=3, needs_grad=True, needs_dual=True) for _ in range(3)
        )
        x, a = self.x, self.a

        @ti.kernel
        def accelerate():
            for i in x:
                a[i] = -x[i] / x[i].norm() ** 3

        self.accelerate = accelerate
        self.state = {self.x: self.v, self.v: self.a}
        self.begin()

    def begin(self) -> None:
        self.x.from_numpy(X0)
        self.v.from_numpy(V0)


def kepler_rates(t: float, y: Any) -> Any:
    x, v = y.reshape(2, 3, 2)
    return np.concatenate([v.ravel(), (-x / np.linalg.norm(x, axis=1)[:, None] ** 3).ravel()])


Y0 = np.concatenate([X0.ravel(), V0.ravel()])
END = solve_ivp(kepler_rates, (0, 3), Y0, rtol=1e-13, atol=1e-13, method="DOP853").y[:6, -1].reshape(3, 2)


def orders(kepler: Kepler, run: Callable[[int], Any], counts: tuple[int, ...]) -> list[float]:
    errors = []
    for count in counts:
        kepler.begin()
        run(count)
        errors.append(np.abs(kepler.x.to_numpy() - END).max())
    return [math.log2(a / b) for a, b in itertools.pairwise(errors)]


@pytest.mark.parametrize("method", METHODS)
def test_order_of_explicit_methods(method: str) -> None:
    kepler = Kepler()
    ode = ti.integrate.RungeKutta(kepler.accelerate, kepler.state, method)

    def run(count: int) -> None:
        t = 0.0
        for _ in range(count):
            t = ode.step(t, 3 / count)

    counts = (50, 100) if method == "dopri5" else (200, 400)
    assert orders(kepler, run, counts)[0] > METHODS[method].order - 0.2


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("leapfrog", 2), ("yoshida4", 4)])
def test_order_of_symplectic_methods(method: str, order: int) -> None:
    kepler = Kepler()
    orbit = ti.integrate.Symplectic(kepler.accelerate, kepler.x, kepler.v, kepler.a, method)
    found = orders(kepler, lambda count: [orbit.step(3 / count) for _ in range(count)] and None, (200, 400))
    assert found[0] == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("bdf2", 2)])
def test_order_of_implicit_methods(method: str, order: int) -> None:
    kepler = Kepler()
    ode = ti.integrate.Implicit(kepler.accelerate, kepler.state, method)

    def run(count: int) -> None:
        ode.restart()
        t = 0.0
        for _ in range(count):
            t = ode.step(t, 3 / count)

    assert orders(kepler, run, (100, 200))[0] == pytest.approx(order, abs=0.15)


def trees(size: int) -> list[Any]:
    """The rooted trees of so many vertices: each is the sorted tuple of the trees at its root."""
    if size == 1:
        return [()]
    found = set()
    for parts in partitions(size - 1, size - 1):
        for branches in itertools.product(*(trees(part) for part in parts)):
            found.add(tuple(sorted(branches)))
    return sorted(found)


def partitions(total: int, most: int) -> list[tuple[int, ...]]:
    if total == 0:
        return [()]
    return [(first, *rest) for first in range(min(total, most), 0, -1) for rest in partitions(total - first, first)]


def size_of(tree: Any) -> int:
    return 1 + sum(map(size_of, tree))


def density(tree: Any) -> int:
    return size_of(tree) * math.prod(map(density, tree))


def elementary(matrix: Any, tree: Any) -> Any:
    found = np.ones(len(matrix))
    for branch in tree:
        found = found * (matrix @ elementary(matrix, branch))
    return found


@pytest.mark.parametrize("method", METHODS)
def test_tableaus_satisfy_the_order_conditions(method: str) -> None:
    tableau = METHODS[method]
    matrix = np.zeros((len(tableau.times),) * 2)
    for row, stage in enumerate(tableau.stages, 1):
        matrix[row, : len(stage)] = stage
    assert matrix.sum(axis=1) == pytest.approx(tableau.times)
    for size in range(1, tableau.order + 1):
        for tree in trees(size):
            assert np.dot(tableau.weights, elementary(matrix, tree)) == pytest.approx(1 / density(tree), abs=1e-14)
    above = [
        abs(np.dot(tableau.weights, elementary(matrix, one)) - 1 / density(one)) for one in trees(tableau.order + 1)
    ]
    assert max(above) > 1e-5
    if tableau.errors:
        lower = np.subtract(tableau.weights, tableau.errors)
        for size in range(1, tableau.order):
            for tree in trees(size):
                assert np.dot(lower, elementary(matrix, tree)) == pytest.approx(1 / density(tree), abs=1e-14)
        assert np.sum(tableau.dense, axis=1) == pytest.approx(tableau.weights)


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("end", [3.0, -2.0])
def test_step_control_takes_the_steps_of_scipy(rtol: float, end: float) -> None:
    kepler = Kepler()
    ode = ti.integrate.RungeKutta(kepler.accelerate, kepler.state, "dopri5")
    times, found = np.linspace(0, end, 7), list[Any]()
    solution = ode.solve(
        0.0, end, rtol=rtol, atol=rtol / 100, at=times, each=lambda t: found.append(kepler.x.to_numpy())
    )
    scipy = solve_ivp(kepler_rates, (0, end), Y0, rtol=rtol, atol=rtol / 100, method="RK45", t_eval=times)
    assert solution.times.tolist() == times.tolist()
    assert solution.evaluations == scipy.nfev
    here = np.reshape(found, (7, 6)).T
    assert here == pytest.approx(scipy.y[:6], rel=1e-7, abs=1e-9)


def test_after_each_step_the_state_is_shown() -> None:
    kepler = Kepler()
    ode = ti.integrate.RungeKutta(kepler.accelerate, kepler.state, "dopri5")
    seen = list[float]()
    solution = ode.solve(0.0, 3.0, each=seen.append)
    assert seen == solution.times.tolist()
    assert len(seen) == solution.steps
    assert seen[-1] == 3.0
    assert np.abs(kepler.x.to_numpy() - END).max() < 1e-4


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
@pytest.mark.parametrize("shape", [(), 5, (2, 3)])
@pytest.mark.parametrize("element", ["number", "vector", "matrix"])
def test_fields_of_every_kind(dtype: Any, shape: Any, element: str) -> None:
    """dx/dt = t x has the solution exp(t²/2) x₀."""
    ti.init(default_fp=dtype)
    make = {"number": ti.field, "vector": ti.Vector.field, "matrix": ti.Matrix.field}[element]
    extents = {"number": (), "vector": (3,), "matrix": (2, 2)}[element]
    x, rate = (make(*extents, dtype, shape=shape, needs_grad=True) for _ in range(2))

    @ti.kernel
    def grow(t: dtype):
        for p in ti.grouped(x):
            rate[p] = t * x[p]

    begin = np.random.default_rng(1).random(x.to_numpy().shape) + 0.5
    for ode in (
        ti.integrate.RungeKutta(grow, {x: rate}),
        ti.integrate.RungeKutta(grow, {x: rate}, "dopri5"),
        ti.integrate.Implicit(grow, {x: rate}),
    ):
        x.from_numpy(begin)
        t = 0.0
        for _ in range(20):
            t = ode.step(t, 0.05)
        assert x.to_numpy() == pytest.approx(begin * math.exp(0.5), rel=1e-3)
        assert isinstance(ode, ti.integrate.Implicit) or x.to_numpy() == pytest.approx(begin * math.exp(0.5), rel=1e-5)


def test_python_without_a_compiler() -> None:
    found = []
    for arch in (ti.cpu, ti.python):
        kepler = Kepler(arch)
        ti.integrate.RungeKutta(kepler.accelerate, kepler.state).step(0.0, 0.1)
        found.append(kepler.x.to_numpy())
    assert found[0] == pytest.approx(found[1], rel=1e-14)


def test_symplectic_energies_do_not_drift() -> None:
    kepler = Kepler()
    orbit = ti.integrate.Symplectic(kepler.accelerate, kepler.x, kepler.v, kepler.a)
    step = ti.capture(lambda: orbit.step(0.05))

    def energies() -> Any:
        x, v = kepler.x.to_numpy(), kepler.v.to_numpy()
        return (v**2).sum(axis=1) / 2 - 1 / np.linalg.norm(x, axis=1)

    before = energies()
    for _ in range(20_000):
        step()
    assert energies() == pytest.approx(before, rel=0.02)


def make_run(kepler: Kepler, kind: str, method: str) -> Callable[[], Any]:
    if kind == "symplectic":
        orbit = ti.integrate.Symplectic(kepler.accelerate, kepler.x, kepler.v, kepler.a, method)
        return lambda: [orbit.step(0.1) for _ in range(5)] and None
    if kind == "solve":
        ode = ti.integrate.RungeKutta(kepler.accelerate, kepler.state, method)
        return lambda: ode.solve(0.0, 0.5, rtol=1e-10, atol=1e-12) and None
    if kind == "explicit":
        ode = ti.integrate.RungeKutta(kepler.accelerate, kepler.state, method)
        return lambda: [ode.step(0.1 * i, 0.1) for i in range(5)] and None
    solver = ti.integrate.Implicit(kepler.accelerate, kepler.state, method, tol=1e-13)

    def run() -> None:
        solver.restart()
        for i in range(5):
            solver.step(0.1 * i, 0.1)

    return run


KINDS = [
    *(("explicit", method) for method in METHODS),
    *(("symplectic", method) for method in SPLITTINGS),
    *(("implicit", method) for method in IMPLICIT),
    ("solve", "dopri5"),
]


@pytest.mark.parametrize(("kind", "method"), KINDS)
def test_gradients_are_those_of_the_steps(kind: str, method: str) -> None:
    """Reverse and forward mode agree with each other and with differences, for each method."""
    kepler = Kepler()
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
    run = make_run(kepler, kind, method)
    direction = np.random.default_rng(2).normal(size=(3, 2))

    @ti.kernel
    def measure():
        for i in kepler.x:
            loss[None] += kepler.x[i][0] * kepler.x[i][1] + (i + 1) * kepler.v[i][0]

    def value(shift: float) -> float:
        kepler.begin()
        kepler.x.from_numpy(X0 + shift * direction)
        loss[None] = 0.0
        run()
        measure()
        return loss[None]

    kepler.begin()
    with ti.ad.Tape(loss):
        run()
        measure()
    reverse = float((kepler.x.grad.to_numpy() * direction).sum())
    kepler.begin()
    with ti.ad.FwdMode(loss, kepler.x, seed=direction):
        run()
        measure()
    forward = loss.dual[None]
    step = 1e-3
    near, far = (value(step) - value(-step)) / (2 * step), (value(2 * step) - value(-2 * step)) / (4 * step)
    assert reverse == pytest.approx((4 * near - far) / 3, rel=1e-7)
    assert forward == pytest.approx(reverse, rel=1e-10)


class Oscillators:
    """Driven oscillators, x' = v, v' = -k x + sin(t), by a kernel or by a function that launches it."""

    def __init__(self, kind: str, dtype: Any, shape: Any) -> None:
        ti.init(default_fp=dtype)
        make = {"number": ti.field, "vector": ti.Vector.field, "matrix": ti.Matrix.field}[kind]
        extents = {"number": (), "vector": (3,), "matrix": (2, 2)}[kind]
        self.x, self.v, self.a, self.begin_x = (
            make(*extents, dtype, shape=shape, needs_grad=True, needs_dual=True) for _ in range(4)
        )
        self.k, self.loss = (ti.field(dtype, shape=(), needs_grad=True, needs_dual=True) for _ in range(2))
        self.k[None] = 2.5
        x, v, a, k, begin_x, loss = self.x, self.v, self.a, self.k, self.begin_x, self.loss

        @ti.kernel
        def accelerate(t: dtype):
            for p in ti.grouped(x):
                a[p] = -k[None] * x[p] + ti.sin(t)

        @ti.kernel
        def begin():
            for p in ti.grouped(x):
                x[p], v[p] = begin_x[p], 0 * begin_x[p]

        @ti.kernel
        def measure():
            for p in ti.grouped(x):
                if ti.static(isinstance(x, ti.MatrixField)):
                    loss[None] += x[p].norm_sqr()
                else:
                    loss[None] += x[p] ** 2

        self.accelerate, self.begin, self.measure = accelerate, begin, measure
        self.begin_x.from_numpy(np.random.default_rng(3).random(self.x.to_numpy().shape) + 0.5)

    def solver(self, how: str) -> ti.integrate.RungeKutta:
        rates = self.accelerate if how == "one launch" else lambda t: self.accelerate(t)
        return ti.integrate.RungeKutta(rates, {self.x: self.v, self.v: self.a}, "dopri5")

    def expected(self, times: Any, rtol: float, end: float) -> Any:
        begin = self.begin_x.to_numpy().ravel().astype(float)

        def rates(t: float, y: Any) -> Any:
            x, v = np.split(y, 2)
            return np.concatenate([v, -self.k[None] * x + np.sin(t)])

        y0 = np.concatenate([begin, 0 * begin])
        return solve_ivp(rates, (0, end), y0, rtol=rtol, atol=rtol, method="RK45", t_eval=times)


HOWS = ("one launch", "launches")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["number", "vector", "matrix"])
@pytest.mark.parametrize(("shape", "end"), [((), 4.0), (5, -3.0), ((2, 3), 0.0)])
def test_paths_are_those_of_scipy(how: str, kind: str, shape: Any, end: float) -> None:
    """`into` has the numbers of SciPy's dense output, and those that `each` sees; so has the state at the end."""
    one = Oscillators(kind, ti.f64, shape)
    times = np.linspace(0, end, 9)
    path, seen = like(one.x, "the path", len(times)), list[Any]()
    one.begin()
    found = one.solver(how).solve(0.0, end, rtol=1e-5, atol=1e-5, at=times, into={one.x: path})
    last = one.x.to_numpy()
    one.begin()
    one.solver(how).solve(0.0, end, rtol=1e-5, atol=1e-5, at=times, each=lambda _: seen.append(one.x.to_numpy()))
    assert np.array_equal(one.x.to_numpy(), last)
    assert path.to_numpy() == pytest.approx(np.array(seen), rel=1e-13, abs=1e-14)
    if end:
        scipy = one.expected(times, 1e-5, end)
        assert found.evaluations == scipy.nfev
        here = path.to_numpy().reshape(len(times), -1)
        assert here == pytest.approx(scipy.y[: here.shape[1]].T, rel=1e-9, abs=1e-10)
    else:
        assert (found.steps, found.evaluations) == (0, 0)
        assert all(np.array_equal(row, one.begin_x.to_numpy()) for row in path.to_numpy())


@pytest.mark.parametrize("how", HOWS)
def test_single_precision_reaches_its_tolerance(how: str) -> None:
    one = Oscillators("vector", ti.f32, 4)
    one.begin()
    one.solver(how).solve(0.0, 3.0, rtol=1e-5, atol=1e-5)
    exact = one.expected([3.0], 1e-10, 3.0)
    assert one.x.to_numpy().ravel() == pytest.approx(exact.y[:12, 0], abs=2e-4)


@pytest.mark.parametrize("how", HOWS)
def test_derivatives_through_a_path(how: str) -> None:
    """First and second derivatives of a loss of the whole path with respect to a parameter: those of differences."""
    one = Oscillators("number", ti.f64, 3)
    solver, path = one.solver(how), ti.field(ti.f64, shape=(4, 3), needs_grad=True, needs_dual=True)
    loss = one.loss

    @ti.kernel
    def measure():
        for i, j in path:
            loss[None] += (i + 1) * path[i, j] ** 2

    def run() -> None:
        one.begin()
        solver.solve(0.0, 1.5, rtol=1e-11, atol=1e-11, at=[0.3, 0.6, 0.9, 1.5], into={one.x: path})
        measure()

    def gradient(k: float) -> float:
        one.k[None], loss[None] = k, 0.0
        with ti.ad.Tape(loss):
            run()
        return float(one.k.grad[None])

    def value(k: float) -> float:
        one.k[None], loss[None] = k, 0.0
        run()
        return float(loss[None])

    assert gradient(2.5) == pytest.approx((value(2.5 + 1e-4) - value(2.5 - 1e-4)) / 2e-4, rel=1e-6)
    curvature = (gradient(2.5 + 1e-4) - gradient(2.5 - 1e-4)) / 2e-4
    one.k[None] = 2.5
    assert float(ti.ad.hvp(run, wrt=one.k, output=loss)(1.0)) == pytest.approx(curvature, rel=1e-6)


def test_a_captured_solution_chooses_its_steps_each_time() -> None:
    one = Oscillators("number", ti.f64, 3)
    solver = one.solver("one launch")

    def run() -> None:
        with ti.ad.Tape(one.loss):
            one.begin()
            solver.solve(0.0, 4.0)
            one.measure()

    step, counts = ti.capture(run), set()
    for k in (2.5, 40.0, 0.1):
        one.k[None] = k
        step()
        captured = one.x.to_numpy(), one.k.grad[None], one.begin_x.grad.to_numpy()
        run()
        for here, there in zip(
            captured, (one.x.to_numpy(), one.k.grad[None], one.begin_x.grad.to_numpy()), strict=True
        ):
            assert here == pytest.approx(there, rel=1e-12)
        one.begin()
        counts.add(solver.solve(0.0, 4.0).steps)
    assert len(counts) == 3


@pytest.mark.parametrize("how", HOWS)
def test_rejected_steps_outside_of_the_domain_leave_gradients_right(how: str) -> None:
    """x' = -p √x; the first steps that are tried go to where the root is none."""
    ti.init(default_fp=ti.f64)
    x, rate, p, loss = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(4))

    @ti.kernel
    def root():
        rate[None] = -p[None] * ti.sqrt(x[None])

    @ti.kernel
    def measure():
        loss[None] += x[None] ** 2

    solver = ti.integrate.RungeKutta(root if how == "one launch" else lambda: root(), {x: rate}, "dopri5")
    x[None], p[None] = 1.0, 1.0
    with ti.ad.Tape(loss):
        report = solver.solve(0.0, 1.0, rtol=1e-9, atol=1e-9, first_step=3.0)
        measure()
    assert report.rejected > 0
    assert p.grad[None] == pytest.approx(-0.25, abs=1e-7)  # (1 - p/2)⁴


@pytest.mark.parametrize("how", HOWS)
def test_rates_that_are_not_numbers_are_an_error(how: str) -> None:
    ti.init(default_fp=ti.f64)
    x, rate = ti.field(ti.f64, shape=2), ti.field(ti.f64, shape=2)

    @ti.kernel
    def root(t: ti.f64):
        for i in x:
            rate[i] = ti.sqrt(0.5 - t)

    solver = ti.integrate.RungeKutta(root if how == "one launch" else lambda t: root(t), {x: rate}, "dopri5")
    with pytest.raises(SolverError, match=r"the rates after t = 0\.(4999|5).* are not numbers"):
        solver.solve(0.0, 1.0)
    x.fill(0.0)
    assert solver.solve(0.0, 0.25).steps > 0


def test_an_empty_state_has_a_solution() -> None:
    ti.init(default_fp=ti.f64)
    x, rate = ti.field(ti.f64, shape=0), ti.field(ti.f64, shape=0)

    @ti.kernel
    def nothing():
        for i in x:
            rate[i] = x[i]

    assert ti.integrate.RungeKutta(nothing, {x: rate}, "dopri5").solve(0.0, 1.0).times.tolist() == [1.0]


def test_rates_may_be_a_method() -> None:
    ti.init(default_fp=ti.f64)

    @ti.data_oriented
    class Decay:
        def __init__(self) -> None:
            self.x, self.rate = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())

        @ti.kernel
        def fall(self):
            self.rate[None] = -self.x[None]

    one = Decay()
    one.x[None] = 1.0
    ti.integrate.RungeKutta(one.fall, {one.x: one.rate}, "dopri5").solve(0.0, 1.0)
    assert one.x[None] == pytest.approx(math.exp(-1), abs=1e-6)


def test_wrong_uses_are_located_errors() -> None:
    ti.init()
    x, y = ti.field(ti.f32, shape=3), ti.field(ti.f32, shape=4)
    whole = ti.field(ti.i32, shape=3)

    @ti.kernel
    def nothing():
        pass

    @ti.kernel
    def explode():
        for i in y:
            y[i] = x[0] ** 2 * 1e30

    for act, message in [
        (lambda: ti.integrate.RungeKutta(nothing, {x: y}), "'x' is of f32 and shape (3,), its rate 'y' of f32 and"),
        (lambda: ti.integrate.RungeKutta(nothing, {}), "an equation needs fields"),
        (lambda: ti.integrate.RungeKutta(nothing, {whole: whole}), "the state of an equation is fields of floats"),
        (lambda: ti.integrate.RungeKutta(nothing, {x: x}, "rk5"), "there is no method 'rk5'; did you mean 'rk4'"),
        (lambda: ti.integrate.Symplectic(nothing, x, x, x, "leap"), "there is no method 'leap'"),
        (lambda: ti.integrate.Implicit(nothing, {x: x}), "fields of one type with needs_grad=True"),
        (lambda: ti.integrate.Implicit(nothing, {x: x}, "bdf"), "there is no method 'bdf'"),
        (lambda: ti.integrate.RungeKutta(nothing, {x: x}).solve(0.0, 1.0), "'rk4' has no estimate of its error"),
        (
            lambda: ti.integrate.RungeKutta(nothing, {x: x}, "dopri5").solve(0.0, 1.0, at=[2.0]),
            "from 0.0 to 1.0 in order",
        ),
        (lambda: ti.integrate.RungeKutta(nothing, {x: x}, "dopri5").solve(0.0, 1.0, at=[0.5, 0.2]), "in order"),
        (
            lambda: ti.integrate.RungeKutta(nothing, {x: x}, "dopri5").solve(0.0, 1.0, at=[0.5], into={y: y}),
            "'y' is not in the state",
        ),
        (
            lambda: ti.integrate.RungeKutta(nothing, {x: x}, "dopri5").solve(0.0, 1.0, at=[0.5], into={x: y}),
            "the values of 'x' need a field of its kind and shape (1, 3)",
        ),
        (
            lambda: ti.integrate.RungeKutta(nothing, {x: x}, "dopri5").solve(0.0, 1.0, into={x: y}),
            "`into` needs the times of `at`",
        ),
    ]:
        with pytest.raises(FieldError) as caught:
            act()
        assert message in str(caught.value)
        assert "test_integrate.py" in str(caught.value)


def test_a_pole_is_reported_with_its_time() -> None:
    ti.init(default_fp=ti.f64)
    x, rate = ti.field(ti.f64, shape=()), ti.field(ti.f64, shape=())

    @ti.kernel
    def square():
        rate[None] = x[None] ** 2

    x[None] = 1.0  # 1 / (1 - t)
    ode = ti.integrate.RungeKutta(square, {x: rate}, "dopri5")
    with pytest.raises(SolverError, match=r"no step from t = (0\.99999|1\.0000)"):
        ode.solve(0.0, 2.0)
    x[None] = 1.0
    with pytest.raises(SolverError, match=r"10 steps did not reach 0\.999"):
        ode.solve(0.0, 0.999, max_steps=10)


def test_bdf_takes_equal_steps() -> None:
    ti.init(default_fp=ti.f64)
    x, rate = (ti.field(ti.f64, shape=(), needs_grad=True) for _ in range(2))

    @ti.kernel
    def stiff(t: ti.f64):
        rate[None] = -1000.0 * (x[None] - ti.cos(t))

    ode = ti.integrate.Implicit(stiff, {x: rate}, "bdf2")
    x[None] = 1.0
    t = ode.step(0.0, 0.01)
    t = ode.step(t, 0.01)
    with pytest.raises(FieldError, match=r'"bdf2" takes equal steps: 0.01, then 0.02'):
        ode.step(t, 0.02)
    ode.restart()
    ode.step(t, 0.02)
    assert x[None] == pytest.approx(math.cos(0.04), abs=1e-3)


def test_a_solution_in_parts_is_checkpointed() -> None:
    """The gradient is that of the same steps; only those of one part are kept at a time."""
    ti.init(default_fp=ti.f64)
    x, v, a = (ti.field(ti.f64, shape=4, needs_grad=True) for _ in range(3))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def gravity():
        for i in x:
            a[i] = -ti.sin(x[i])

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += v[i] ** 2 / 2

    ode = ti.integrate.RungeKutta(gravity, {x: v, v: a}, method="dopri5")

    def gradient(run: Callable[[], object]) -> Any:
        x.from_numpy(np.array([0.5, 0.6, 1.0, 2.0]))
        v.fill(0.0)
        with ti.ad.Tape(loss):
            run()
            energy()
        return x.grad.to_numpy()

    def part(k: int) -> None:
        ode.solve(0.5 * k, 0.5 * k + 0.5)

    plain = gradient(lambda: [part(k) for k in range(8)])
    assert np.array_equal(gradient(lambda: ti.ad.checkpoint(part, 8)), plain)
    assert np.all(np.isfinite(plain)) and np.abs(plain).max() > 0.1
