"""`ti.ad.implicit`: derivatives of solutions of nonlinear equations, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.differences import along_field, by_field
from tinote.errors import CaptureError, DifferentiationError, SolverError

N = 6


class Equations:
    """x³ + c x - coupling = s, where c is computed of k into a field without a gradient."""

    def __init__(self, **options: Any) -> None:
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.k, self.s = (ti.field(ti.f64, N, **both) for _ in range(2))
        self.x, self.r = (ti.field(ti.f64, N, **both) for _ in range(2))
        self.c = ti.field(ti.f64, N)
        self.loss = ti.field(ti.f64, (), **both)
        k, s, x, r, c, loss = self.k, self.s, self.x, self.r, self.c, self.loss

        @ti.kernel
        def prepare():
            for i in k:
                c[i] = 2.0 + k[i] ** 2

        @ti.kernel
        def residual():
            for i in x:
                found = x[i] ** 3 + c[i] * x[i] - s[i]
                if i > 0:
                    found -= 0.7 * x[i - 1] * k[i]
                if i < N - 1:
                    found -= 0.2 * x[i + 1]
                r[i] = found

        @ti.kernel
        def total():
            for i in x:
                loss[None] += x[i] ** 2 * (i + 1)

        self.prepare, self.residual, self.total = prepare, residual, total
        self.start = 0.0
        rng = np.random.default_rng(0)
        for field in (self.k, self.s):
            field.from_numpy(rng.uniform(0.5, 1.5, N))
        self.solve = ti.ad.implicit(residual, x, r, **options)

    def run(self) -> None:
        self.loss[None] = 0.0
        self.x.fill(self.start)
        self.prepare()
        self.solve()
        self.total()


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_derivatives_of_newton_solves(jacobian: str) -> None:
    system = Equations(jacobian=jacobian)
    for field in (system.k, system.s):
        expected = by_field(system.run, field, system.loss)
        with ti.ad.Tape(system.loss):
            system.run()
        assert np.allclose(field.grad.to_numpy(), expected, rtol=1e-6)
        assert np.allclose(ti.ad.grad(system.run, wrt=field, loss=system.loss)(), expected, rtol=1e-6)
        product = ti.ad.jvp(system.run, wrt=field, loss=system.loss)(np.ones(N))[1]
        assert np.allclose(product, expected.sum(), rtol=1e-6)
        columns = ti.ad.jacobian(system.run, wrt=field, loss=system.loss, mode="forward")()
        assert np.allclose(columns, expected, rtol=1e-6)


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_second_derivatives_of_newton_solves(jacobian: str) -> None:
    system = Equations(jacobian=jacobian, tol=1e-12)
    direction = np.linspace(0.5, 1.5, N)
    for field in (system.k, system.s):
        slope = ti.ad.grad(system.run, wrt=field, loss=system.loss)
        expected = along_field(slope, field, direction)
        value, gradient, product = ti.ad.value_and_grad_and_hvp(system.run, wrt=field, loss=system.loss)(direction)
        assert np.allclose(product, expected, rtol=1e-6, atol=1e-7)
        assert np.allclose(gradient, slope(), rtol=1e-12) and value == system.loss[None]


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_a_gradient_of_a_gradient_passes_through_newton_solves(jacobian: str) -> None:
    system = Equations(jacobian=jacobian, tol=1e-12)
    total = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
    slope = ti.ad.grad(system.run, wrt=system.k, loss=system.loss)

    @ti.kernel
    def square(gradient: ti.types.ndarray()):
        for i in range(N):
            total[None] += gradient[i] ** 2 * (i + 1)

    def outer() -> None:
        total[None] = 0.0
        square(slope())

    expected = by_field(outer, system.k, total, 1e-5)
    assert np.allclose(ti.ad.grad(outer, wrt=system.k, loss=total)(), expected, rtol=1e-6)
    with ti.ad.Tape(total):
        outer()
    assert np.allclose(system.k.grad.to_numpy(), expected, rtol=1e-6)
    for unit, wanted in zip(np.eye(N), expected, strict=True):
        with ti.ad.FwdMode(loss=total, param=system.k, seed=unit):
            outer()
        assert np.isclose(total.dual[None], wanted, rtol=1e-6)


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_forward_mode_within_forward_mode_passes_through_newton_solves(jacobian: str) -> None:
    system = Equations(jacobian=jacobian, tol=1e-12)
    direction = np.linspace(0.5, 1.5, N)
    value_and_more = ti.ad.value_and_grad_and_hvp(system.run, wrt=system.k, loss=system.loss)
    expected = [np.dot(value_and_more(unit)[2], direction) for unit in np.eye(N)]
    product = ti.ad.jvp(system.run, wrt=system.k, loss=system.loss)
    total = ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def take(number: ti.f64):
        total[None] = number

    for unit, wanted in zip(np.eye(N), expected, strict=True):
        with ti.ad.FwdMode(loss=total, param=system.k, seed=unit):
            take(product(direction)[1])
        assert np.isclose(total.dual[None], wanted, rtol=1e-6)


@pytest.mark.parametrize("inner", ["tape", "forward"])
def test_blocks_inside_of_a_recording_pass_through_solves(inner: str) -> None:
    system = Equations(tol=1e-12)
    total = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def square_gradient():
        for i in range(N):
            total[None] += system.k.grad[i] ** 2 * (i + 1)

    @ti.kernel
    def square_dual():
        total[None] += system.loss.dual[None] ** 2

    def outer() -> None:
        total[None] = 0.0
        if inner == "tape":
            with ti.ad.Tape(system.loss):
                system.run()
            square_gradient()
        else:
            with ti.ad.FwdMode(loss=system.loss, param=system.k, seed=np.arange(1.0, N + 1)):
                system.run()
            square_dual()

    expected = by_field(outer, system.k, total, 1e-5)
    for _ in range(2):
        assert np.allclose(ti.ad.grad(outer, wrt=system.k, loss=total)(), expected, rtol=1e-6)
        with ti.ad.Tape(total):
            outer()
        assert np.allclose(system.k.grad.to_numpy(), expected, rtol=1e-6)


def test_the_gradient_does_not_depend_on_the_iterations() -> None:
    gradients = []
    for start in (0.0, 3.0):
        system = Equations()
        system.start = start
        system.x.fill(start)
        system.prepare()
        taken = system.solve()
        with ti.ad.Tape(system.loss):
            system.run()
        gradients.append((taken, system.k.grad.to_numpy()))
    assert gradients[0][0] != gradients[1][0]
    assert np.allclose(gradients[0][1], gradients[1][1], rtol=1e-9)


def test_a_fixed_point_iteration_of_ones_own() -> None:
    system = Equations(tol=1e-11)
    x, s, c, k = system.x, system.s, system.c, system.k
    y = ti.field(ti.f64, N)

    @ti.kernel
    def iterate():
        for i in x:
            found = s[i] - x[i] ** 3
            if i > 0:
                found += 0.7 * x[i - 1] * k[i]
            if i < N - 1:
                found += 0.2 * x[i + 1]
            y[i] = 0.5 * x[i] + 0.5 * found / c[i]
        for i in x:
            x[i] = y[i]

    def fixed_point() -> None:
        for _ in range(400):
            iterate()

    with ti.ad.Tape(system.loss):
        system.run()
    expected = system.k.grad.to_numpy()
    system.solve = ti.ad.implicit(system.residual, x, system.r, solve=fixed_point, tol=1e-9)
    with ti.ad.Tape(system.loss) as tape:
        system.run()
    assert np.allclose(system.k.grad.to_numpy(), expected, rtol=1e-7)
    assert len(tape.events) < 10  # none of the four hundred launches is on it
    system.solve = ti.ad.implicit(system.residual, x, system.r, solve=lambda: iterate(), tol=1e-9)
    with pytest.raises(SolverError, match="after `solve` did not converge") as caught:
        system.run()
    assert caught.value.residual is not None and caught.value.residual > 1e-9


def test_a_linear_solver_of_ones_own() -> None:
    system, asked = Equations(tol=1e-11), set[bool]()
    x, c, k = system.x, system.c, system.k

    def linear_solve(b: Any, to: Any, transposed: bool) -> None:
        asked.add(transposed)
        jacobian = np.diag(c.to_numpy() + 3 * x.to_numpy() ** 2) - np.diag(np.full(N - 1, 0.2), 1)
        jacobian -= np.diag(0.7 * k.to_numpy()[1:], -1)
        to.from_numpy(np.linalg.solve(jacobian.T if transposed else jacobian, b.to_numpy()))

    direction, found = np.arange(1.0, N + 1), list[Any]()
    for _ in range(2):
        with ti.ad.Tape(system.loss):
            system.run()
        gradient = system.k.grad.to_numpy()
        with ti.ad.FwdMode(system.loss, k, seed=direction):
            system.run()
        second = ti.ad.hvp(system.run, wrt=k, output=system.loss)(direction)
        found.append([*gradient, system.loss.dual[None], *second])
        system.solve = ti.ad.implicit(system.residual, x, system.r, linear_solve=linear_solve, tol=1e-11)
    assert asked == {False, True}
    assert np.allclose(*found, rtol=1e-8)


def test_implicit_time_steps_are_differentiated_through() -> None:
    """Implicit Euler of y' = -k y³: each step solves x + h k x³ = y, and y is overwritten."""
    both: dict[str, Any] = {"needs_grad": True}
    k, y, x, r = (ti.field(ti.f64, N, **both) for _ in range(4))
    loss = ti.field(ti.f64, (), **both)

    @ti.kernel
    def residual():
        for i in x:
            r[i] = x[i] + 0.1 * k[i] * x[i] ** 3 - y[i]

    @ti.kernel
    def advance():
        for i in x:
            y[i] = x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] ** 2

    step = ti.ad.implicit(residual, x, r, jacobian="dense", tol=1e-13)

    def run() -> float:
        loss[None] = 0.0
        y.fill(1.5)
        for _ in range(20):
            step()
            advance()
        total()
        return loss[None]

    k.from_numpy(np.linspace(0.5, 2.0, N))
    with ti.ad.Tape(loss):
        run()
    assert np.allclose(k.grad.to_numpy(), by_field(run, k, loss), rtol=1e-6)
    expected = along_field(ti.ad.grad(run, wrt=k, loss=loss), k, np.ones(N))
    assert np.allclose(ti.ad.hvp(run, wrt=k, loss=loss)(np.ones(N)), expected, rtol=1e-6)


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_a_record_in_a_tape_inside_of_forward_mode(jacobian: str) -> None:
    system = Equations(jacobian=jacobian, tol=1e-12)
    direction = np.linspace(0.5, 1.5, N)
    with ti.ad.FwdMode(loss=system.loss, param=system.k, seed=direction):
        with ti.ad.Tape(system.loss):
            system.run()
        found = system.s.grad.dual.to_numpy()
    slope = ti.ad.grad(system.run, wrt=system.s, loss=system.loss)
    assert np.allclose(found, along_field(slope, system.k, direction), rtol=1e-6)


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_steps_of_a_checkpointed_loop(jacobian: str) -> None:
    system = Equations(jacobian=jacobian, tol=1e-12)
    s, x, k = system.s, system.x, system.k
    start = s.to_numpy()

    @ti.kernel
    def follow():
        for i in s:
            s[i] = 0.5 * s[i] + x[i] * k[i]

    def step(_: int = 0) -> None:
        system.solve()
        follow()

    def run(checkpoints: bool = False) -> None:
        system.loss[None] = 0.0
        s.from_numpy(start)
        x.fill(0.0)
        system.prepare()
        if checkpoints:
            ti.ad.checkpoint(step, steps=5, snapshots=2, progress=False)
        else:
            for _ in range(5):
                step()
        system.total()

    expected = by_field(run, k, system.loss)
    for checkpoints in (False, True):
        with ti.ad.Tape(system.loss):
            run(checkpoints)
        assert np.allclose(k.grad.to_numpy(), expected, rtol=1e-6)


def test_the_elements_of_the_jacobian_may_be_others_in_the_next_solve() -> None:
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    k, x, r = (ti.field(ti.f64, N, **both) for _ in range(3))
    distance, loss = ti.field(ti.i32, ()), ti.field(ti.f64, (), **both)
    k.from_numpy(np.linspace(1.0, 2.0, N))

    @ti.kernel
    def residual():
        for i in x:
            found = x[i] ** 3 + k[i] * x[i] - 1.0
            if i >= distance[None]:
                found -= 0.5 * x[i - distance[None]]
            r[i] = found

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2 * (i + 1)

    solve = ti.ad.implicit(residual, x, r)

    def run() -> None:
        loss[None] = 0.0
        for one in (1, 2, 1):
            distance[None] = one
            x.fill(0)
            solve()
            total()

    with ti.ad.Tape(loss):
        run()
    assert np.allclose(k.grad.to_numpy(), by_field(run, k, loss), rtol=1e-6)
    given = ti.ad.implicit(residual, x, r, sparsity=np.eye(N))
    with pytest.raises(DifferentiationError, match="that are missing from sparsity="):
        given()


def test_what_implicit_functions_refuse() -> None:
    system = Equations()
    x, r = system.x, system.r
    for make, message in (
        (lambda: ti.ad.implicit(system.residual, x, x), "is both unknown and into"),
        (lambda: ti.ad.implicit(system.residual, x), r"needs into, .*\n.*implicit\(residual, unknown=x, into=F\)"),
        (lambda: ti.ad.implicit(system.residual, into=r), "needs unknown, the field that gets the solution"),
        (lambda: ti.ad.implicit(system.residual, x, "r"), r"not 'r'\n.*implicit\(residual, unknown=x, into=F\)"),  # type: ignore[arg-type]
        (lambda: ti.ad.implicit(system.residual, x, system.loss), "has 6 numbers, and '.*' 1"),
        (lambda: ti.ad.implicit(system.residual, system.c, r), "has no gradient"),
        (lambda: ti.ad.implicit(system.residual, np.ones(3), r), "is a field of floats"),  # type: ignore[arg-type]
        (lambda: ti.ad.implicit(system.residual, x, r, jacobian="banded"), "'banded'"),
        (lambda: ti.ad.implicit(3, x, r), "kernels or functions"),  # type: ignore[arg-type]
        (lambda: ti.ad.implicit(system.residual, x, r, tol=float("nan")), "tol is .*, not nan"),
        (lambda: ti.ad.implicit(system.residual, x, r, tol=-1.0), "tol is .*, not -1.0"),
        (lambda: ti.ad.implicit(system.residual, x, r, maxiter=0), "maxiter is .*, not 0"),
    ):
        with pytest.raises(DifferentiationError, match=message) as caught:
            make()
        assert caught.value.span is not None and caught.value.span.file == __file__
    system.prepare()
    with pytest.raises(CaptureError, match="implicit function of 'residual', whose number of iterations varies"):
        ti.capture(lambda: system.solve())()


@pytest.mark.parametrize("recording", ["nothing", "tape"])
@pytest.mark.parametrize("given", ["another field", "exchanged", "added to"])
def test_a_residual_that_does_not_write_into_is_refused(given: str, recording: str) -> None:
    """What `into` held before would be taken for F: zeros for a solution."""
    ti.init(default_fp=ti.f64)
    x, f, other = (ti.field(ti.f64, 3, needs_grad=True) for _ in range(3))
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def residual():
        for i in x:
            if ti.static(given == "added to"):
                f[i] += x[i] * x[i] - 2
            else:
                f[i] = x[i] * x[i] - 2

    x.fill(1.0)
    other.fill(0.0)
    unknown, into = {"another field": (x, other), "exchanged": (f, x), "added to": (x, f)}[given]
    solve = ti.ad.implicit(residual, unknown, into)
    held = into.to_numpy()
    with pytest.raises(DifferentiationError, match=r"'residual' gives '.*', into of ti.ad.implicit, no new values"):
        if recording == "tape":
            with ti.ad.Tape(loss):
                solve()
        else:
            solve()
    assert given == "added to" or (into.to_numpy() == held).all()


def test_newtons_method_tells_why_it_ends() -> None:
    both: dict[str, Any] = {"needs_grad": True}
    x, r = ti.field(ti.f64, 1, **both), ti.field(ti.f64, 1, **both)

    @ti.kernel
    def no_root():
        r[0] = x[0] ** 2 + 1.0

    x[0] = 2.0
    with pytest.raises(SolverError, match=r"did not converge|singular") as caught:
        ti.ad.implicit(no_root, x, r, jacobian="dense")()
    assert caught.value.span is not None and caught.value.span.file == __file__


def test_an_unknown_that_is_declared_constant_is_refused() -> None:
    x = ti.field(ti.f64, shape=2, needs_grad=True, needs_dual=False)
    r = ti.field(ti.f64, shape=2, needs_grad=True)

    @ti.kernel
    def residual():
        for i in x:
            r[i] = x[i] ** 2 - 2.0

    x.fill(1.0)
    with pytest.raises(DifferentiationError, match="'x' is declared to be constant in forward mode"):
        ti.ad.implicit(residual, x, r)()


@pytest.mark.parametrize("jacobian", ["dense", "sparse", "matrix-free"])
def test_what_a_residual_computes_on_its_way_varies_with_the_solution(jacobian: str) -> None:
    """y = x³ is read after the solve of y x = k, and one element of it is stored again."""
    both: dict[str, Any] = {"shape": 3, "needs_grad": True, "needs_dual": True}
    x, y = ti.field(ti.f64, **both), ti.field(ti.f64, **both)
    r, k = ti.field(ti.f64, **both), ti.field(ti.f64, **both)
    loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

    @ti.kernel
    def residual():
        for i in x:
            y[i] = x[i] ** 3
        for i in x:
            r[i] = y[i] * x[i] - k[i]

    @ti.kernel
    def store(count: ti.i32):
        for i in range(count):
            y[i] = 3.0 * x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] * (i + 1)

    solve = ti.ad.implicit(residual, x, r, jacobian=jacobian, tol=1e-13)
    k.from_numpy(np.array([2.0, 3.0, 4.0]))

    def run() -> None:
        loss[None] = 0.0
        x.fill(1.0)
        solve()
        store(1)
        total()

    at = k.to_numpy()
    wanted = np.array([0.75, 1.5, 2.25]) * at ** [-0.75, -0.25, -0.25]
    curved = np.array([-0.5625, -0.375, -0.5625]) * at ** [-1.75, -1.25, -1.25]
    with ti.ad.Tape(loss):
        run()
    assert np.allclose(k.grad.to_numpy(), wanted, rtol=1e-9)
    direction = np.array([0.5, -1.0, 2.0])
    with ti.ad.FwdMode(loss, k, seed=direction):
        run()
    assert np.isclose(loss.dual[None], wanted @ direction, rtol=1e-9)
    assert np.allclose(ti.ad.grad(run, wrt=k, loss=loss)(), wanted, rtol=1e-9)
    assert np.isclose(ti.ad.jvp(run, wrt=k, loss=loss)(direction)[1], wanted @ direction, rtol=1e-9)
    assert np.allclose(ti.ad.jacobian(run, wrt=k, loss=loss, mode="forward")(), wanted, rtol=1e-9)
    assert np.allclose(ti.ad.hvp(run, wrt=k, loss=loss)(direction), curved * direction, rtol=1e-9)
    product = ti.ad.jvp(run, wrt=k, loss=loss)

    def twice(step: float) -> float:
        k.from_numpy(at + step * direction)
        return product(direction)[1]

    slope = (twice(1e-5) - twice(-1e-5)) / 2e-5
    assert np.isclose(slope, (curved * direction) @ direction, rtol=1e-6)
