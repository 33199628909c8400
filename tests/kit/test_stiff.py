"""`ti.integrate.BDF`: SciPy's solutions and steps, and derivatives that are those of differences."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import tinote as ti
from tinote.errors import FieldError, KernelAssertionError, SolverError
from tinote.kit.fields import like

Rates = Callable[[float, Any], Any]


class Problem:
    """Rates in a kernel and in NumPy."""

    def __init__(self, name: str, dtype: Any = ti.f64) -> None:
        ti.init(default_fp=dtype)
        self.band: tuple[int, int] | None = None
        self.k = ti.field(dtype, shape=(), needs_grad=True, needs_dual=True)
        k = self.k
        if name == "robertson":
            x, rate = (ti.Vector.field(3, dtype, shape=(), needs_grad=True, needs_dual=True) for _ in range(2))

            @ti.kernel
            def robertson():
                a, b, c = x[None]
                made, used = k[None] * a - 1e4 * b * c, 3e7 * b * b
                rate[None] = ti.Vector([-made, made - used, used])

            def rates(_: float, y: Any) -> Any:
                made, used = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
                return np.array([-made, made - used, used])

            k[None], kernel, self.state, self.y0, self.end = 0.04, robertson, {x: rate}, np.array([1.0, 0, 0]), 100.0
        elif name == "van der pol":
            x, v, a = (ti.field(dtype, shape=(), needs_grad=True, needs_dual=True) for _ in range(3))

            @ti.kernel
            def oscillate():
                a[None] = k[None] * (1 - x[None] ** 2) * v[None] - x[None]

            def rates(_: float, y: Any) -> Any:
                return np.array([y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]])

            k[None], kernel, self.state, self.y0, self.end = 1e3, oscillate, {x: v, v: a}, np.array([2.0, 0]), 1500.0
        else:
            n = 60
            x, rate = (ti.field(dtype, shape=n, needs_grad=True, needs_dual=True) for _ in range(2))

            @ti.kernel
            def react(t: dtype):
                for i in x:
                    bend = x[ti.max(i - 1, 0)] - 2 * x[i] + x[ti.min(i + 1, n - 1)]
                    rate[i] = k[None] * n**2 * bend + 20 * x[i] * (1 - x[i]) * (x[i] - 0.2) + ti.sin(t)

            def rates(t: float, y: Any) -> Any:
                wide = np.concatenate([y[:1], y, y[-1:]])
                bend = wide[:-2] - 2 * y + wide[2:]
                return 1e-2 * n**2 * bend + 20 * y * (1 - y) * (y - 0.2) + np.sin(t)

            k[None], kernel, self.state, self.band = 1e-2, react, {x: rate}, (1, 1)
            self.y0, self.end = (np.arange(n) < 12) * 1.0, 2.0
        self.kernel, self.rates = kernel, rates
        self.ode = ti.integrate.BDF(kernel, self.state, band=self.band)
        parts = np.split(self.y0, len(self.state))
        self.beginnings = [(x, part.reshape(x.to_numpy().shape)) for x, part in zip(self.state, parts, strict=True)]

    def begin(self) -> None:
        for x, part in self.beginnings:
            x.from_numpy(part)

    def now(self) -> Any:
        return np.concatenate([np.ravel(x.to_numpy()) for x in self.state])


PROBLEMS = ("robertson", "van der pol", "diffusion")


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_as_exact_as_scipy_in_as_many_steps(name: str, rtol: float) -> None:
    one = Problem(name)
    atol = rtol * 1e-4
    times = np.linspace(0, one.end, 7)
    paths = {x: like(x, "the path", len(times)) for x in one.state}
    one.begin()
    report = one.ode.solve(0.0, one.end, rtol=rtol, atol=atol, at=times, into=paths)
    scipy = solve_ivp(one.rates, (0, one.end), one.y0, "BDF", rtol=rtol, atol=atol, t_eval=times)
    exact = solve_ivp(one.rates, (0, one.end), one.y0, "Radau", rtol=1e-11, atol=1e-13, t_eval=times).y
    here = np.concatenate([path.to_numpy().reshape(len(times), -1) for path in paths.values()], axis=1).T

    def error(found: Any) -> float:
        return float(np.max(np.abs(found - exact) / (atol + rtol * np.abs(exact).max(axis=1, keepdims=True))))

    assert error(here) < 1.5 * error(scipy.y) + 1
    assert here[:, -1] == pytest.approx(one.now(), rel=1e-12)
    assert np.array_equal(here[:, 0], one.y0)
    steps = solve_ivp(one.rates, (0, one.end), one.y0, "BDF", rtol=rtol, atol=atol).t.size - 1
    assert report.steps == pytest.approx(steps, rel=0.1)


@pytest.mark.parametrize("seed", range(12))
def test_random_linear_equations(seed: int) -> None:
    """Forwards and backwards, dense and in bands that may be wider than the matrix, for states of several fields."""
    rng = np.random.default_rng(seed)
    below, above, n = *(int(width) for width in rng.integers(0, 4, 2)), int(rng.integers(1, 4))
    size = 3 * n
    matrix = rng.normal(size=(size, size))
    matrix = np.triu(np.tril(matrix, above), -below) - np.diag(10 ** rng.uniform(0, 5, size))
    sign = 1 if seed % 2 else -1
    ti.init(default_fp=ti.f64)
    x, rx = (ti.field(ti.f64, shape=n) for _ in range(2))
    y, ry = (ti.Vector.field(2, ti.f64, shape=n) for _ in range(2))
    numbers = ti.field(ti.f64, shape=(size, size))
    numbers.from_numpy(sign * matrix)

    @ti.func
    def at(j):
        found = 0.0
        if j < n:
            found = x[j]
        else:
            found = y[(j - n) // 2][(j - n) % 2]
        return found

    @ti.kernel
    def rates():
        for i in range(size):
            total = 0.0
            for j in range(size):
                total += numbers[i, j] * at(j)
            if i < n:
                rx[i] = total
            else:
                ry[(i - n) // 2][(i - n) % 2] = total

    begin = rng.normal(size=size)
    x.from_numpy(begin[:n])
    y.from_numpy(begin[n:].reshape(n, 2))
    band = None if seed % 3 == 0 else (below, above)
    ti.integrate.BDF(rates, {x: rx, y: ry}, band=band).solve(0.0, sign * 0.7, rtol=1e-8, atol=1e-10)
    found = np.concatenate([x.to_numpy(), y.to_numpy().ravel()])
    assert found == pytest.approx(expm(0.7 * matrix) @ begin, abs=1e-6)


def test_errors_follow_tolerances() -> None:
    one, errors = Problem("diffusion"), []
    exact = solve_ivp(one.rates, (0, one.end), one.y0, "Radau", rtol=1e-12, atol=1e-14).y[:, -1]
    for rtol in (1e-3, 1e-5, 1e-7, 1e-9):
        one.begin()
        one.ode.solve(0.0, one.end, rtol=rtol, atol=rtol)
        errors.append(np.abs(one.now() - exact).max())
    assert all(b < a / 10 for a, b in pairwise(errors))


def test_single_precision() -> None:
    one = Problem("diffusion", ti.f32)
    one.begin()
    one.ode.solve(0.0, one.end, rtol=1e-4, atol=1e-5)
    exact = solve_ivp(one.rates, (0, one.end), one.y0, "Radau", rtol=1e-9, atol=1e-9).y[:, -1]
    assert one.now() == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("name", PROBLEMS)
def test_derivatives(name: str) -> None:
    """Of a loss of the path: reverse mode agrees with forward mode and with differences."""
    one = Problem(name)
    x = next(iter(one.state))
    path = like(x, "the path", 2)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def measure():
        for p in ti.grouped(path):
            if ti.static(isinstance(path, ti.MatrixField)):
                loss[None] += path[p].norm_sqr()
            else:
                loss[None] += path[p] ** 2

    k, end = float(one.k[None]), one.end / 3

    def run() -> None:
        one.begin()
        one.ode.solve(0.0, end, rtol=1e-9, atol=1e-11, at=[end / 2, end], into={x: path})
        measure()

    def value(factor: float) -> float:
        one.k[None], loss[None] = k * factor, 0.0
        run()
        return float(loss[None])

    def gradient(factor: float) -> float:
        one.k[None], loss[None] = k * factor, 0.0
        with ti.ad.Tape(loss):
            run()
        return float(one.k.grad[None])

    h = 1e-3
    difference = (8 * (value(1 + h) - value(1 - h)) - value(1 + 2 * h) + value(1 - 2 * h)) / (12 * h * k)
    assert gradient(1.0) == pytest.approx(difference, rel=1e-4)
    one.k[None], loss[None] = k, 0.0
    with ti.ad.FwdMode(loss, one.k, seed=1.0):
        run()
    assert loss.dual[None] == pytest.approx(gradient(1.0), rel=1e-9)


def test_second_derivatives() -> None:
    """x' = -k (x - cos t)²"""
    ti.init(default_fp=ti.f64)
    x, rate, k, loss = (ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True) for _ in range(4))

    @ti.kernel
    def fall(t: ti.f64):
        rate[None] = -k[None] * (x[None] - ti.cos(t)) ** 3

    @ti.kernel
    def begin():
        x[None] = 2.0

    @ti.kernel
    def measure():
        loss[None] += x[None] ** 2

    ode = ti.integrate.BDF(fall, {x: rate})

    def run() -> None:
        begin()
        ode.solve(0.0, 1.0, rtol=1e-9, atol=1e-9)
        measure()

    def gradient(at: float) -> float:
        k[None], loss[None] = at, 0.0
        with ti.ad.Tape(loss):
            run()
        return float(k.grad[None])

    h = 1e-2
    difference = (8 * (gradient(30 + h) - gradient(30 - h)) - gradient(30 + 2 * h) + gradient(30 - 2 * h)) / (12 * h)
    k[None] = 30.0
    assert float(ti.ad.hvp(run, wrt=k, output=loss)(1.0)) == pytest.approx(difference, rel=1e-3)


def test_a_captured_solution_chooses_its_steps_each_time() -> None:
    one, found = Problem("robertson"), list[Any]()

    x = next(iter(one.state))

    @ti.kernel
    def begin():
        x[None] = ti.Vector([1.0, 0.0, 0.0])

    def run() -> None:
        begin()
        one.ode.solve(0.0, 40.0)

    step = ti.capture(run)
    for k in (0.04, 4.0):
        one.k[None] = k
        step()
        found.append(one.now())
        run()
        assert np.array_equal(one.now(), found[-1])
    assert not np.allclose(*found)


def test_degenerate_input() -> None:
    one = Problem("van der pol")
    one.begin()
    report = one.ode.solve(1.0, 1.0)
    assert (report.steps, report.times.tolist()) == (0, [1.0])
    assert np.array_equal(one.now(), one.y0)
    x, rate = ti.field(ti.f64, shape=0), ti.field(ti.f64, shape=0)

    @ti.kernel
    def nothing():
        for i in x:
            rate[i] = x[i]

    assert ti.integrate.BDF(nothing, {x: rate}).solve(0.0, 1.0).times.tolist() == [1.0]


def test_what_cannot_be_solved_is_an_error() -> None:
    ti.init(default_fp=ti.f64)
    x, rate, single = ti.field(ti.f64, shape=2), ti.field(ti.f64, shape=2), ti.field(ti.f32, shape=2)

    @ti.kernel
    def root(t: ti.f64):
        for i in x:
            rate[i] = ti.sqrt(0.5 - t)

    @ti.kernel
    def square():
        for i in x:
            rate[i] = x[i] ** 2

    @ti.kernel
    def small():
        for i in x:
            assert x[i] < 2, "too large"
            rate[i] = x[i]

    with pytest.raises(SolverError, match=r"the rates after t = 0\.(49|5).* are not numbers"):
        ti.integrate.BDF(root, {x: rate}).solve(0.0, 1.0)
    x.fill(1.0)
    with pytest.raises(SolverError, match=r"no step from t = (0\.9999|1\.0)|are not numbers"):
        ti.integrate.BDF(square, {x: rate}).solve(0.0, 2.0)
    x.fill(1.0)
    with pytest.raises(SolverError, match=r"7 steps did not reach 0\.9"):
        ti.integrate.BDF(square, {x: rate}).solve(0.0, 0.9, max_steps=7)
    for solver in (ti.integrate.BDF(small, {x: rate}), ti.integrate.RungeKutta(small, {x: rate}, "dopri5")):
        x.fill(1.0)
        with pytest.raises(KernelAssertionError, match="too large"):
            solver.solve(0.0, 1.0)
    for act, message in [
        (lambda: ti.integrate.BDF(lambda: square(), {x: rate}), "the rates for `BDF` are a kernel"),
        (lambda: ti.integrate.BDF(square, {x: rate, single: single}), "fields of one type"),
        (lambda: ti.integrate.BDF(square, {x: rate}, band=(-1, 1)), "not (-1, 1)"),
        (lambda: ti.integrate.BDF(square, {x: rate}).solve(0.0, 1.0, at=[2.0]), "in order"),
    ]:
        with pytest.raises(FieldError) as caught:
            act()
        assert message in str(caught.value)
        assert "test_stiff.py" in str(caught.value)
