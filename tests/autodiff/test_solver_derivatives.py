"""Derivatives of sparse matrices and solvers, against differences, in every mode there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.differences import along_field, by_field

N = 6
Array = np.ndarray[Any, Any]


class System:
    """A(k) x = b with a loss of x. Of `x` and what stands between it and k there are no gradients of their own."""

    def __init__(self) -> None:
        n = N
        options: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        self.k = k = ti.field(ti.f64, n, **options)
        self.b = ti.field(ti.f64, n, **options)
        self.x = x = ti.field(ti.f64, n)
        self.squares = squares = ti.field(ti.f64, n)
        self.loss = loss = ti.field(ti.f64, (), **options)
        self.K = ti.linalg.SparseMatrixBuilder(n, n, max_num_triplets=5 * n, dtype=ti.f64)

        @ti.kernel
        def fill(A: ti.types.sparse_matrix_builder()):
            for i in range(n):
                A[i, i] += 2.0 + k[i] ** 2
                A[i, i] += 0.5
                if i > 0:
                    A[i - 1, i] -= k[i]
                    A[i, i - 1] -= k[i]

        @ti.kernel
        def total(y: ti.types.ndarray()):
            for i in range(n):
                loss[None] += y[i] ** 3 * (i + 1)

        @ti.kernel
        def total_x():
            for i in range(n):
                loss[None] += x[i] ** 3 * (i + 1)

        @ti.kernel
        def square():
            for i in k:
                squares[i] = k[i] ** 2

        @ti.kernel
        def symmetric(p: ti.template(), q: ti.template()):  # type: ignore[valid-type]
            for i in range(n):
                found = (3.0 + squares[i]) * p[i]
                if i > 0:
                    found -= p[i - 1]
                if i < n - 1:
                    found -= p[i + 1]
                q[i] = found

        @ti.kernel
        def skew(p: ti.template(), q: ti.template()):  # type: ignore[valid-type]
            for i in range(n):
                found = (3.0 + k[i] ** 2) * p[i]
                if i > 0:
                    found -= 1.5 * p[i - 1]
                if i < n - 1:
                    found -= 0.5 * p[i + 1] * k[i]
                q[i] = found

        @ti.kernel
        def fill_apart(A: ti.types.sparse_matrix_builder(), distance: ti.i32):
            for i in range(n):
                A[i, i] += 3.0 + k[i]
                if i >= distance:
                    A[i, i - distance] -= k[i]

        self.fill_apart = fill_apart
        self.fill, self.total, self.total_x, self.square = fill, total, total_x, square
        self.symmetric, self.skew = ti.linalg.LinearOperator(symmetric), ti.linalg.LinearOperator(skew)
        rng = np.random.default_rng(0)
        self.k.from_numpy(rng.uniform(0.5, 1, n))
        self.b.from_numpy(rng.uniform(0.5, 1, n))

    def matrix(self) -> Any:
        self.loss[None] = 0.0
        self.fill(self.K)
        return self.K.build()

    def llt(self) -> None:
        solver = ti.linalg.SparseSolver(ti.f64, "LLT")
        solver.compute(self.matrix())
        self.total(solver.solve(self.b))

    def ldlt_out(self) -> None:
        solver = ti.linalg.SparseSolver(ti.f64, "LDLT")
        solver.compute(self.matrix())
        solver.solve(self.b, out=self.x)
        self.total_x()

    def lu_twice(self) -> None:
        """A second solve with the same factors, in place."""
        solver = ti.linalg.SparseSolver(ti.f64, "LU")
        solver.compute(self.matrix())
        solver.solve(self.b, out=self.x)
        self.total_x()
        solver.solve(self.x, out=self.x)
        self.total_x()

    def cg(self) -> None:
        found, _ = ti.linalg.SparseCG(self.matrix(), self.b, max_iter=100, atol=1e-14).solve()
        self.total(found)

    def arithmetic(self) -> None:
        A = self.matrix()
        B = 0.3 * (A @ A.transpose()) + 2.0 * A - A * A.transpose() * 0.1
        self.total(B @ (A @ self.b))

    def matrix_free_cg(self) -> None:
        self.loss[None] = 0.0
        self.square()
        self.x.fill(0)
        ti.linalg.MatrixFreeCG(self.symmetric, self.b, self.x, tol=1e-13)
        self.total_x()

    def matrix_free_bicgstab(self) -> None:
        self.loss[None] = 0.0
        self.x.fill(0)
        ti.linalg.MatrixFreeBICGSTAB(self.skew, self.b, self.x, tol=1e-13)
        self.total_x()

    def matrix_free_in_place(self) -> None:
        """What is solved for takes the place of the right-hand side."""
        self.loss[None] = 0.0
        self.square()
        self.x.copy_from(self.b)
        ti.linalg.MatrixFreeCG(self.symmetric, self.x, self.x, tol=1e-13)
        ti.linalg.MatrixFreeBICGSTAB(self.skew, self.x, self.x, tol=1e-13)
        self.total_x()

    def of_two_patterns(self) -> None:
        """A builder, a matrix and a solver are used again, for elements in other places."""
        solver = ti.linalg.SparseSolver(ti.f64, "LU")
        self.loss[None] = 0.0
        self.x.copy_from(self.b)
        for distance in (1, 2, 1):
            self.fill_apart(self.K, distance)
            solver.compute(self.K.build())
            solver.solve(self.x, out=self.x)
            self.total_x()


DIRECT = ["llt", "ldlt_out", "lu_twice", "cg", "arithmetic", "of_two_patterns"]
MATRIX_FREE = ["matrix_free_cg", "matrix_free_bicgstab", "matrix_free_in_place"]


def close(found: Any, expected: Array) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max()))


@pytest.mark.parametrize("name", DIRECT + MATRIX_FREE)
def test_first_derivatives_in_every_mode(name: str) -> None:
    system = System()
    f, loss = getattr(system, name), system.loss
    for field in (system.k, system.b):
        expected = by_field(f, field, loss)
        with ti.ad.Tape(loss):
            f()
        assert close(field.grad.to_numpy(), expected)
        assert close(ti.ad.grad(f, wrt=field, loss=loss)(), expected)
        assert close(ti.ad.jvp(f, wrt=field, loss=loss)(np.ones(N))[1], expected.sum())
        assert close(ti.ad.jacobian(f, wrt=field, loss=loss, mode="forward")(), expected)
        with ti.ad.FwdMode(loss, field, np.eye(N)) as mode:
            f()
        assert close(mode.duals, expected)


@pytest.mark.parametrize("name", DIRECT + MATRIX_FREE)
def test_second_derivatives(name: str) -> None:
    system = System()
    f, loss, direction = getattr(system, name), system.loss, np.linspace(0.5, 1.5, N)
    for field in (system.k, system.b):
        expected = along_field(ti.ad.grad(f, wrt=field, loss=loss), field, direction)
        assert np.allclose(ti.ad.hvp(f, wrt=field, loss=loss)(direction), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", DIRECT + MATRIX_FREE)
def test_a_record_in_a_tape_inside_of_forward_mode(name: str) -> None:
    """The gradients that the tape leaves have tangents: second derivatives, here of a first call."""
    system = System()
    f, loss, direction = getattr(system, name), system.loss, np.linspace(0.5, 1.5, N)
    with ti.ad.FwdMode(loss=loss, param=system.k, seed=direction):
        with ti.ad.Tape(loss):
            f()
        found = [field.grad.dual.to_numpy() for field in (system.k, system.b)]
    for field, product in zip((system.k, system.b), found, strict=True):
        expected = along_field(ti.ad.grad(f, wrt=field, loss=loss), system.k, direction)
        assert np.allclose(product, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", DIRECT + MATRIX_FREE)
def test_forward_mode_inside_of_another_derivative(name: str) -> None:
    system = System()
    f, k, loss, direction = getattr(system, name), system.k, system.loss, np.linspace(0.5, 1.5, N)
    total = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def use(product: ti.f64):
        total[None] += 0.01 * product * loss[None] + k[0]

    def by_function() -> None:
        total[None] = 0.0
        use(ti.ad.jvp(f, wrt=k, loss=loss)(direction)[1])

    def by_block() -> None:
        total[None] = 0.0
        with ti.ad.FwdMode(loss=loss, param=k, seed=direction):
            f()
        use(loss.dual[None])

    expected = by_field(by_function, k, total)
    for outer in (by_function, by_block):
        with ti.ad.Tape(total):
            outer()
        assert close(k.grad.to_numpy(), expected)
    _, product = ti.ad.jvp(by_function, wrt=k, loss=total)(direction)
    assert product == pytest.approx(expected @ direction, rel=1e-6)


@pytest.mark.parametrize("kind", ["LU", "SparseCG", "MatrixFreeCG"])
def test_a_right_hand_side_of_zeros_has_derivatives(kind: str) -> None:
    system = System()
    loss, x = system.loss, system.x
    system.b.fill(0)

    @ti.kernel
    def total() -> None:
        for i in x:
            loss[None] += (x[i] + 1.0) ** 2

    def run() -> None:
        A = system.matrix()
        x.fill(0)
        if kind == "LU":
            solver = ti.linalg.SparseSolver(ti.f64, kind)
            solver.compute(A)
            solver.solve(system.b, out=x)
        elif kind == "SparseCG":
            ti.linalg.SparseCG(A, system.b, atol=1e-13).solve(out=x)
        else:
            system.square()
            ti.linalg.MatrixFreeCG(system.symmetric, system.b, x, tol=1e-13)
        total()

    for field in (system.k, system.b):
        with ti.ad.Tape(loss):
            run()
        assert np.allclose(field.grad.to_numpy(), by_field(run, field, loss), atol=1e-7)
        along = np.linspace(0.5, 1.5, N)
        expected = along_field(ti.ad.grad(run, wrt=field, loss=loss), field, along)
        assert np.allclose(ti.ad.hvp(run, wrt=field, loss=loss)(along), expected, atol=1e-6)


def steps(system: System, count: int) -> None:
    """x = A(x)⁻¹ x: matrix and right-hand side are overwritten in every step."""
    solver = ti.linalg.SparseSolver(ti.f64, "LLT")
    system.loss[None] = 0.0
    system.x.copy_from(system.b)
    for _ in range(count):
        system.fill(system.K)
        solver.compute(system.K.build())
        solver.solve(system.x, out=system.x)
    system.total_x()


def test_a_chain_of_solves_that_overwrites_what_it_solves() -> None:
    system = System()
    with ti.ad.Tape(system.loss):
        steps(system, 5)
    for field in (system.k, system.b):
        found = field.grad.to_numpy()
        assert close(found, by_field(lambda: steps(system, 5), field, system.loss))


def test_factors_that_are_not_kept_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System()
    with ti.ad.Tape(system.loss):
        steps(system, 4)
    expected = system.k.grad.to_numpy()
    monkeypatch.setattr("tinote.lang.ad.solvers.factorisation._SHARE", 1 << 60)
    with ti.ad.Tape(system.loss):
        steps(system, 4)
    assert np.array_equal(system.k.grad.to_numpy(), expected)


def test_a_checkpointed_loop_of_solves() -> None:
    system = System()
    solver = ti.linalg.SparseSolver(ti.f64, "LLT")

    k = system.k

    @ti.kernel
    def fill_in_order(A: ti.types.sparse_matrix_builder()):
        ti.loop_config(serialize=True)
        for i in range(N):
            A[i, i] += 2.5 + k[i] ** 2
            if i > 0:
                A[i - 1, i] -= k[i]
                A[i, i - 1] -= k[i]

    def step(_: int) -> None:
        fill_in_order(system.K)
        solver.compute(system.K.build())
        solver.solve(system.x, out=system.x)

    with ti.ad.Tape(system.loss):
        steps(system, 7)
    expected = system.k.grad.to_numpy(), system.b.grad.to_numpy()
    with ti.ad.Tape(system.loss):
        system.x.copy_from(system.b)
        ti.ad.checkpoint(step, steps=7, snapshots=2)
        system.total_x()
    assert close(system.k.grad.to_numpy(), expected[0])
    assert close(system.b.grad.to_numpy(), expected[1])


def test_a_result_that_becomes_a_numpy_array_is_reported_to_lose_its_derivatives() -> None:
    system = System()
    solver = ti.linalg.SparseSolver(ti.f64, "LU")
    with pytest.raises(Warning, match=r"lost|constant|taken"), ti.ad.Tape(system.loss):
        solver.compute(system.matrix())
        system.x.from_numpy(solver.solve(np.ones(N)))
        system.total_x()


def test_the_graph_of_a_tape_shows_a_solve() -> None:
    system = System()
    with ti.ad.Tape(system.loss) as tape:
        system.llt()
        assert "solve by LLT" in repr(tape.graph()) or "solve by LLT" in str(tape.graph())
