"""`ti.linalg`'s sparse matrices, builders and solvers, against SciPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import tinote as ti
from tinote.errors import (
    FieldError,
    KernelArgumentError,
    KernelSyntaxError,
    KernelTypeError,
    SolverError,
)

N = 12


@ti.kernel
def fill(A: ti.types.sparse_matrix_builder(), diagonal: ti.f64):
    for i in range(N):
        A[i, i] += diagonal
        if i > 0:
            A[i, i - 1] -= 1.0
            A[i - 1, i] -= 1.0


@ti.kernel
def fill_many(A: ti.types.sparse_matrix_builder(), n: ti.i32):
    for i in range(n):
        A[i % 7, i % 5] += 1.0


def laplacian(diagonal: float = 2.5, dtype: Any = ti.f64) -> Any:
    builder = ti.linalg.SparseMatrixBuilder(N, N, max_num_triplets=4 * N, dtype=dtype)
    fill(builder, diagonal)
    return builder.build()


def dense(matrix: Any) -> np.ndarray[Any, Any]:
    return matrix.to_scipy().toarray()


def random(seed: int, shape: tuple[int, int] = (5, 7)) -> tuple[Any, np.ndarray[Any, Any]]:
    made = scipy.sparse.random_array(shape, density=0.4, rng=np.random.default_rng(seed), format="csr")
    return ti.linalg.SparseMatrix.from_scipy(made), made.toarray()


# ---- builders


def test_a_kernel_fills_a_builder() -> None:
    expected = 2.5 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
    assert np.array_equal(dense(laplacian()), expected)


def test_entries_at_one_place_sum_up_whatever_thread_adds_them() -> None:
    builder = ti.linalg.SparseMatrixBuilder(7, 5, max_num_triplets=200_000)
    for _ in range(2):  # what was built is gone
        fill_many(builder, 140_000)
        built = dense(builder.build())
        assert built.sum() == 140_000
        assert np.array_equal(built, np.full((7, 5), 4_000.0))


def test_a_builder_begins_anew_after_clear() -> None:
    builder = ti.linalg.SparseMatrixBuilder(N, N, max_num_triplets=4 * N)
    fill(builder, 9.0)
    builder.clear()
    fill(builder, 2.0)
    assert dense(builder.build())[0, 0] == 2.0


def test_a_method_and_a_device_function_fill_builders() -> None:
    @ti.func
    def add(A: ti.template(), i: ti.i32):  # type: ignore[valid-type]
        A[i, i] += 1

    @ti.data_oriented
    class Body:
        def __init__(self) -> None:
            self.K = ti.linalg.SparseMatrixBuilder(3, max_num_triplets=20)

        @ti.kernel
        def assemble(self):
            for i in range(3):
                at = ti.Vector([i, 2])
                self.K[at] += 5
                add(self.K, i)

    body = Body()
    body.assemble()
    assert np.array_equal(dense(body.K.build()), np.eye(3) + 5 * (np.arange(3) == 2))


def test_triplets_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    builder = ti.linalg.SparseMatrixBuilder(2, 3, max_num_triplets=10)

    @ti.kernel
    def one(A: ti.types.sparse_matrix_builder()):
        A[1, 2] += 3

    one(builder)
    builder.print_triplets()
    assert capsys.readouterr().out == "n=2, m=3, num_triplets=1 (max=10)\n(1, 2) val=3.0\n"
    print(builder.build())
    assert capsys.readouterr().out == "[0, 0, 0]\n[0, 0, 3]\n"


def test_a_builder_that_is_full_or_got_a_place_outside_says_so() -> None:
    builder = ti.linalg.SparseMatrixBuilder(N, N, max_num_triplets=N)
    fill(builder, 1.0)
    with pytest.raises(FieldError, match="room for 12 entries, and 34 were added"):
        builder.build()
    small = ti.linalg.SparseMatrixBuilder(N - 1, N, max_num_triplets=4 * N)
    fill(small, 1.0)
    with pytest.raises(FieldError, match=r"added at \(11, \d+\).*no such row"):
        small.build()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ti.linalg.SparseMatrixBuilder(0, 4, 5), "num_rows .* not 0"),
        (lambda: ti.linalg.SparseMatrixBuilder(4, 4), "max_num_triplets .* not 0"),
        (lambda: ti.linalg.SparseMatrixBuilder(4, 4, 5, dtype=ti.i32), "not i32"),
        (lambda: ti.linalg.SparseMatrixBuilder(4, 4, 5, storage_format="csr"), "'csr'"),
        (lambda: ti.linalg.SparseMatrix(-1, 2), "not -1"),
        (lambda: ti.linalg.SparseMatrix.from_scipy(np.eye(3)), "not of ndarray"),
    ],
)
def test_what_no_matrix_is_made_of(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(FieldError, match=message) as caught:
        make()
    assert caught.value.span is not None and caught.value.span.file == __file__


def test_wrong_uses_in_kernels_are_shown_at_their_line() -> None:
    builder = ti.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=10)

    @ti.kernel
    def assigns(A: ti.types.sparse_matrix_builder()):
        A[0, 0] = 1.0

    @ti.kernel
    def multiplies(A: ti.types.sparse_matrix_builder()):
        A[0, 0] *= 2.0

    @ti.kernel
    def one_index(A: ti.types.sparse_matrix_builder()):
        A[0] += 1.0

    @ti.kernel
    def fraction(A: ti.types.sparse_matrix_builder()):
        A[0.5, 0] += 1.0

    @ti.kernel
    def vector(A: ti.types.sparse_matrix_builder()):
        A[0, 0] += ti.Vector([1.0, 2.0])

    for kernel, message in (
        (assigns, r"`\+=` and `-=` only"),
        (multiplies, r"`\+=` and `-=` only"),
        (one_index, "2 dimensions, and is indexed with 1"),
        (fraction, "not an index"),
        (vector, "not an entry of a matrix"),
    ):
        with pytest.raises((KernelTypeError, KernelSyntaxError), match=message) as caught:
            kernel(builder)
        assert caught.value.span is not None and caught.value.span.file == __file__
    with pytest.raises(KernelArgumentError, match="SparseMatrixBuilder"):
        assigns(np.zeros(3))


# ---- matrices


def test_arithmetic_is_that_of_scipy() -> None:
    (a, A), (b, B) = random(1), random(2)
    (c, C), v = random(3, (7, 4)), np.arange(7.0)
    assert np.allclose(dense(a + b), A + B)
    assert np.allclose(dense(a - b), A - B)
    assert np.allclose(dense(-a), -A)
    assert np.allclose(dense(2.5 * a), 2.5 * A)
    assert np.allclose(dense(a * 2), 2 * A)
    assert np.allclose(dense(a * b), A * B)
    assert np.allclose(dense(a @ c), A @ C)
    assert np.allclose(a @ v, A @ v)
    assert np.allclose(dense(a.transpose()), A.T)
    assert a.shape == (5, 7) and a.transpose().shape == (7, 5)


def test_elements_are_read_and_assigned() -> None:
    A = laplacian()
    assert A[3, 3] == 2.5 and A[0, 5] == 0.0
    A[3, 3] = 4.0
    assert A[3, 3] == 4.0 and dense(A)[3, 3] == 4.0
    with pytest.raises(FieldError, match=r"no element at \(0, 5\)"):
        A[0, 5] = 1.0
    with pytest.raises(FieldError, match="has no element"):
        A[N, 0]


def test_a_field_and_an_ndarray_are_multiplied() -> None:
    A = laplacian()
    field, array = ti.field(ti.f64, N), ti.ndarray(ti.f64, N)
    for vector in (field, array):
        vector.from_numpy(np.arange(float(N)))
        found = A @ vector
        assert isinstance(found, ti.Ndarray)
        assert np.allclose(found.to_numpy(), dense(A) @ np.arange(float(N)))


def test_a_matrix_is_built_of_an_array_of_triplets() -> None:
    triplets = ti.Vector.ndarray(3, ti.f32, 4)
    triplets.from_numpy(np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4], [2, 2, 1]], np.float32))
    A = ti.linalg.SparseMatrix(3, 3, dtype=ti.f32)
    A.build_from_ndarray(triplets)
    assert np.array_equal(dense(A), [[0, 6, 0], [3, 0, 0], [0, 0, 1]])


def test_a_matrix_goes_to_a_matrix_market_file(tmp_path: Path) -> None:
    A = laplacian()
    A.mmwrite(str(tmp_path / "a.mtx"))
    assert np.array_equal(scipy.io.mmread(tmp_path / "a.mtx").toarray(), dense(A))


def test_shapes_that_do_not_fit_are_reported() -> None:
    (a, _), (b, _) = random(1), random(2, (5, 6))
    for wrong, message in (
        (lambda: a + b, "5 by 7 and 5 by 6 cannot be added"),
        (lambda: a - b, "cannot be subtracted"),
        (lambda: a * b, "element by element"),
        (lambda: a @ b, "have no product"),
        (lambda: a @ np.zeros(5), r"shape \(5,\).*does not fit a matrix of 5 by 7"),
    ):
        with pytest.raises(FieldError, match=message):
            wrong()


# ---- solvers


@pytest.mark.parametrize("kind", ["LLT", "LDLT", "LU"])
@pytest.mark.parametrize("ordering", ["AMD", "COLAMD"])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_factorisations_solve(kind: str, ordering: str, dtype: Any) -> None:
    A = laplacian(dtype=dtype)
    b = np.arange(N) + 1.0
    solver = ti.linalg.SparseSolver(dtype, kind, ordering)
    assert not solver.info()
    solver.analyze_pattern(A)
    solver.factorize(A)
    assert solver.info()
    tolerance = 1e-5 if dtype is ti.f32 else 1e-12
    expected = np.linalg.solve(dense(A), b)
    assert np.allclose(solver.solve(b), expected, rtol=tolerance)
    for right in (ti.field(dtype, N), ti.ndarray(dtype, N)):
        right.from_numpy(b.astype(np.float32 if dtype is ti.f32 else np.float64))
        x = solver.solve(right)
        assert isinstance(x, ti.Ndarray) and np.allclose(x.to_numpy(), expected, rtol=tolerance)
        assert solver.solve(right, out=right) is right
        assert np.allclose(right.to_numpy(), expected, rtol=tolerance)


def test_a_field_of_vectors_is_a_right_hand_side() -> None:
    A = laplacian()
    b = ti.Vector.field(3, ti.f64, N // 3)
    b.from_numpy(np.arange(float(N)).reshape(-1, 3))
    solver = ti.linalg.SparseSolver(ti.f64, "LU")
    solver.compute(A)
    x = solver.solve(b).to_numpy()
    assert x.shape == (N // 3, 3)
    assert np.allclose(dense(A) @ x.ravel(), np.arange(float(N)))


def test_an_indefinite_matrix_is_solved_by_what_is_made_for_it() -> None:
    A, b = laplacian(diagonal=0.7), np.ones(N)
    for kind in ("LDLT", "LU"):
        solver = ti.linalg.SparseSolver(ti.f64, kind)
        solver.compute(A)
        assert np.allclose(dense(A) @ solver.solve(b), b)
    solver = ti.linalg.SparseSolver(ti.f64, "LLT")
    with pytest.raises(SolverError, match=r"not positive definite: \d+ of its 12 pivots are negative") as caught:
        solver.compute(A)
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert not solver.info()
    with pytest.raises(SolverError, match="no factors"):
        solver.solve(b)


@pytest.mark.parametrize("kind", ["LLT", "LDLT", "LU"])
def test_a_singular_matrix_is_reported(kind: str) -> None:
    closed = 2.0 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
    closed[0, 0] = closed[-1, -1] = 1.0  # the rows sum up to zero
    empty = np.eye(N)
    empty[4, 4] = 0.0
    for matrix, message in ((closed, "is singular"), (empty, "row 4 has no element that is not zero")):
        solver = ti.linalg.SparseSolver(ti.f64, kind)
        with pytest.raises(SolverError, match=message):
            solver.compute(ti.linalg.SparseMatrix.from_scipy(scipy.sparse.csr_array(matrix)))


def test_a_matrix_of_large_and_small_numbers_is_not_singular() -> None:
    A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.csr_array(np.diag([1.0, 1e-20, 1e12])))
    for kind in ("LLT", "LDLT", "LU"):
        solver = ti.linalg.SparseSolver(ti.f64, kind)
        solver.compute(A)
        assert np.allclose(solver.solve(np.array([1.0, 1e-20, 1e12])), 1.0)


def test_what_a_solver_refuses() -> None:
    A = laplacian()
    lower = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.csr_array(np.tril(np.ones((N, N)))))
    solver = ti.linalg.SparseSolver(ti.f64, "LLT")
    with pytest.raises(
        SolverError, match=r"needs a symmetric matrix, and this one has 1 at \(1, 0\) and 0 at \(0, 1\)"
    ):
        solver.compute(lower)
    with pytest.raises(FieldError, match="5 by 7 is not square"):
        solver.compute(random(1)[0])
    with pytest.raises(FieldError, match="takes a SparseMatrix, not ndarray"):
        solver.compute(np.eye(3))  # type: ignore[arg-type]
    solver.analyze_pattern(A)
    with pytest.raises(FieldError, match="elements in other places"):
        solver.factorize(A + A.transpose() @ A)
    solver.compute(A)
    with pytest.raises(FieldError, match=r"shape \(3,\)"):
        solver.solve(np.ones(3))
    A[0, 0] = 7.0
    with pytest.raises(FieldError, match="changed since it was factorised"):
        solver.solve(np.ones(N))
    for wrong, message in (({"solver_type": "QR"}, "'QR'"), ({"ordering": "RCM"}, "'RCM'")):
        with pytest.raises(FieldError, match=message):
            ti.linalg.SparseSolver(ti.f64, **wrong)
    bad = laplacian(diagonal=np.nan)
    with pytest.raises(SolverError, match="NaN"):
        solver.compute(bad)


def test_conjugate_gradients_solve() -> None:
    A, b = laplacian(), np.arange(N) + 1.0
    x, converged = ti.linalg.SparseCG(A, b, max_iter=100, atol=1e-12).solve()
    assert converged is True and np.allclose(dense(A) @ x, b)
    again, _ = ti.linalg.SparseCG(A, b, x, max_iter=1, atol=1e-8).solve()
    assert np.allclose(again, x)


def test_conjugate_gradients_that_do_not_converge_tell_the_residual() -> None:
    A, b = laplacian(), np.arange(N) + 1.0
    with pytest.raises(SolverError, match="did not converge: after 3 iterations the residual is") as caught:
        ti.linalg.SparseCG(A, b, max_iter=3, atol=1e-12).solve()
    assert caught.value.residual is not None and caught.value.residual > 0.01
    with pytest.raises(SolverError, match="not positive definite"):
        ti.linalg.SparseCG(laplacian(diagonal=-3.0), b).solve()
    with pytest.raises(SolverError, match="NaN"):
        ti.linalg.SparseCG(A, np.full(N, np.nan)).solve()


@ti.kernel
def multiply(x: ti.template(), Ax: ti.template()):  # type: ignore[valid-type]
    for i in range(N):
        found = 2.5 * x[i]
        if i > 0:
            found -= x[i - 1]
        if i < N - 1:
            found -= 0.5 * x[i + 1]
        Ax[i] = found


@ti.kernel
def multiply_symmetric(x: ti.template(), Ax: ti.template()):  # type: ignore[valid-type]
    for i in range(N):
        found = 2.5 * x[i]
        if i > 0:
            found -= x[i - 1]
        if i < N - 1:
            found -= x[i + 1]
        Ax[i] = found


def test_matrix_free_solvers_solve(capsys: pytest.CaptureFixture[str]) -> None:
    b, x = ti.field(ti.f64, N), ti.field(ti.f64, N)
    b.from_numpy(np.arange(N) + 1.0)
    assert ti.linalg.MatrixFreeCG(ti.linalg.LinearOperator(multiply_symmetric), b, x, tol=1e-12) is True
    assert np.allclose(dense(laplacian()) @ x.to_numpy(), b.to_numpy())
    x.fill(0)
    operator = ti.linalg.LinearOperator(multiply)
    assert ti.linalg.MatrixFreeBICGSTAB(operator, b, x, tol=1e-12, quiet=False) is True
    assert "iteration 1: residual" in capsys.readouterr().out
    matrix = 2.5 * np.eye(N) - 0.5 * np.eye(N, k=1) - np.eye(N, k=-1)
    assert np.allclose(matrix @ x.to_numpy(), b.to_numpy())
    image = ti.field(ti.f64, N)
    operator.matvec(x, image)
    assert np.allclose(image.to_numpy(), b.to_numpy())


def test_what_matrix_free_solvers_refuse() -> None:
    b, x, other = ti.field(ti.f64, N), ti.field(ti.f64, N), ti.field(ti.f64, N + 1)
    b.fill(1)
    operator = ti.linalg.LinearOperator(multiply)
    with pytest.raises(SolverError, match="did not converge: after 2 iterations") as caught:
        ti.linalg.MatrixFreeBICGSTAB(operator, b, x, maxiter=2)
    assert caught.value.residual is not None and caught.value.residual > 1e-6
    with pytest.raises(FieldError, match=r"\(12,\) and \(13,\)"):
        ti.linalg.MatrixFreeCG(operator, b, other)
    with pytest.raises(FieldError, match="takes a LinearOperator"):
        ti.linalg.MatrixFreeCG(multiply, b, x)  # type: ignore[arg-type]
    with pytest.raises(FieldError, match="is a field or an ndarray"):
        ti.linalg.MatrixFreeCG(operator, np.ones(N), x)  # type: ignore[arg-type]
    with pytest.raises(FieldError, match="made of a kernel"):
        ti.linalg.LinearOperator(3)  # type: ignore[arg-type]

    @ti.kernel
    def negative(x: ti.template(), Ax: ti.template()):  # type: ignore[valid-type]
        for i in range(N):
            Ax[i] = -x[i]

    with pytest.raises(SolverError, match="not positive definite"):
        ti.linalg.MatrixFreeCG(ti.linalg.LinearOperator(negative), b, x)


def test_biconjugate_gradients_that_break_down_say_so_at_once() -> None:
    b, x = ti.field(ti.f64, N), ti.field(ti.f64, N)
    calls = 0

    def nothing(p: Any, q: Any) -> None:
        nonlocal calls
        calls += 1
        q.fill(0)

    b.fill(1)
    with pytest.raises(SolverError, match="did not converge: after 0 iterations the residual is 3"):
        ti.linalg.MatrixFreeBICGSTAB(ti.linalg.LinearOperator(nothing), b, x)
    assert calls < 5
    b[2] = np.nan
    with pytest.raises(SolverError, match="NaN or infinite"):
        ti.linalg.MatrixFreeBICGSTAB(ti.linalg.LinearOperator(multiply), b, x)


def test_limits_of_iterations_are_numbers() -> None:
    b, x = ti.field(ti.f64, N), ti.field(ti.f64, N)
    operator: Any = ti.linalg.LinearOperator(multiply_symmetric)
    wrong: Any
    for wrong in ("a", None, float("nan"), -1.0, True):
        with pytest.raises(FieldError, match="tol is the norm of a residual"):
            ti.linalg.MatrixFreeCG(operator, b, x, tol=wrong)
        with pytest.raises(FieldError, match="atol is the norm of a residual"):
            ti.linalg.SparseCG(laplacian(), np.ones(N), atol=wrong)
    for wrong in ("a", None, 2.5, -1, True):
        with pytest.raises(FieldError, match="maxiter is a number of iterations"):
            ti.linalg.MatrixFreeBICGSTAB(operator, b, x, maxiter=wrong)
        with pytest.raises(FieldError, match="max_iter is a number of iterations"):
            ti.linalg.SparseCG(laplacian(), np.ones(N), max_iter=wrong)


def test_it_runs_without_machine_code_too() -> None:
    ti.init(arch=ti.python)
    try:
        assert np.array_equal(dense(laplacian()), 2.5 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1))
    finally:
        ti.init()
