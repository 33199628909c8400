"""Decompositions of small matrices: in kernels and in Python scope against NumPy, for regular and degenerate matrices,
and their derivatives against central differences in f64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti

TYPES = [(ti.f32, np.float32), (ti.f64, np.float64)]


def degenerate(n: int) -> list[np.ndarray]:
    """Matrices at which decompositions are hard: singular ones, repeated values, extreme scales, reflections."""
    unit, ones = np.eye(n), np.ones((n, n))
    first = np.zeros((n, n))
    first[0, 0] = 1
    corner = np.zeros((n, n))
    corner[0, -1] = -3
    shear = unit.copy()
    shear[0, 1] = 1e3
    mirror = unit.copy()
    mirror[0, 0] = -1
    steep = np.diag([1e-20, 1.0, 1e10][:n])
    near = unit + 1e-6 * np.arange(n * n).reshape(n, n)
    return [
        0 * unit,
        unit,
        -unit,
        ones,
        first,
        corner,
        shear,
        mirror,
        steep,
        near,
        1e-30 * near,
        1e30 * near,
        ones - unit,
    ]


def matrices(n: int, dtype: Any) -> np.ndarray:
    random = np.random.default_rng(n)
    few = random.normal(size=(40, n, n))
    turned = np.linalg.qr(random.normal(size=(20, n, n)))[0]
    thin = np.einsum("ki,kj->kij", random.normal(size=(20, n)), random.normal(size=(20, n)))
    return np.concatenate([few, turned, thin, degenerate(n)]).astype(dtype)


def sizes(a: np.ndarray) -> np.ndarray:
    """The largest magnitude of each matrix; 1 for zero."""
    found = np.abs(a).max((1, 2)).astype(float)
    return np.where(found == 0, 1, found)


def field(dtype: Any, values: np.ndarray) -> Any:
    n, m = values.shape[1:]
    made = ti.Matrix.field(n, m, dtype, shape=len(values))
    made.from_numpy(values)
    return made


def like(dtype: Any, count: int, *shape: int) -> Any:
    return (
        ti.Matrix.field(*shape, dtype, shape=count) if len(shape) == 2 else ti.Vector.field(*shape, dtype, shape=count)
    )


def assert_rotations(u: np.ndarray, tolerance: float) -> None:
    n = u.shape[-1]
    assert np.abs(u @ u.transpose(0, 2, 1) - np.eye(n)).max() < tolerance
    assert np.abs(np.linalg.det(u) - 1).max() < tolerance


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_svd(n: int, dtype: Any, numpy_type: Any) -> None:
    A = matrices(n, numpy_type)
    a = field(dtype, A)
    U, S, V = (like(dtype, len(A), n, n) for _ in range(3))

    @ti.kernel
    def run():
        for i in a:
            U[i], S[i], V[i] = ti.svd(a[i])

    run()
    tolerance = 16 * float(np.finfo(numpy_type).eps)
    u, s, v = (x.to_numpy().astype(float) for x in (U, S, V))
    assert_rotations(u, tolerance)
    assert_rotations(v, tolerance)
    assert (np.abs(u @ s @ v.transpose(0, 2, 1) - A).max((1, 2)) / sizes(A)).max() < tolerance
    assert (s * (1 - np.eye(n)) == 0).all()
    sigma = np.diagonal(s, axis1=1, axis2=2)
    wanted = np.linalg.svd(A.astype(float), compute_uv=False)
    assert (np.abs(np.abs(sigma) - wanted).max(1) / sizes(A)).max() < tolerance
    assert (sigma[:, :-1] >= 0).all()
    assert (np.diff(np.abs(sigma), axis=1) <= tolerance * sizes(A)[:, None]).all()


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_polar_decomposition(n: int, dtype: Any, numpy_type: Any) -> None:
    A = matrices(n, numpy_type)
    a = field(dtype, A)
    R, S = like(dtype, len(A), n, n), like(dtype, len(A), n, n)

    @ti.kernel
    def run():
        for i in a:
            R[i], S[i] = ti.polar_decompose(a[i])

    run()
    tolerance = 32 * float(np.finfo(numpy_type).eps)
    r, s = R.to_numpy().astype(float), S.to_numpy().astype(float)
    assert_rotations(r, tolerance)
    np.testing.assert_array_equal(s, s.transpose(0, 2, 1))
    assert (np.abs(r @ s - A).max((1, 2)) / sizes(A)).max() < tolerance
    # The nearest rotation maximises tr(RᵀA): the sum of the singular values, the smallest signed as the determinant is.
    values = np.linalg.svd(A.astype(float), compute_uv=False)
    values[:, -1] *= np.where(np.linalg.det(A.astype(float)) < 0, -1, 1)
    traces = np.einsum("kij,kij->k", r, A.astype(float))
    assert (np.abs(traces - values.sum(1)) / sizes(A)).max() < tolerance


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_eigenvalues_of_symmetric_matrices(n: int, dtype: Any, numpy_type: Any) -> None:
    A = matrices(n, numpy_type)
    A = (0.5 * (A + A.transpose(0, 2, 1))).astype(numpy_type)
    a, values, vectors = field(dtype, A), like(dtype, len(A), n), like(dtype, len(A), n, n)

    @ti.kernel
    def run():
        for i in a:
            values[i], vectors[i] = ti.sym_eig(a[i])

    run()
    tolerance = 16 * float(np.finfo(numpy_type).eps)
    w, v = values.to_numpy().astype(float), vectors.to_numpy().astype(float)
    assert_rotations(v, tolerance)
    wanted = np.linalg.eigvalsh(A.astype(float))[:, ::-1]
    assert (np.abs(w - wanted).max(1) / sizes(A)).max() < tolerance
    assert (np.abs(A @ v - v * w[:, None, :]).max((1, 2)) / sizes(A)).max() < tolerance


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
def test_eigenvalues_of_any_matrix(dtype: Any, numpy_type: Any) -> None:
    A = matrices(2, numpy_type)
    a, values, vectors = field(dtype, A), like(dtype, len(A), 2, 2), like(dtype, len(A), 4, 2)

    @ti.kernel
    def run():
        for i in a:
            values[i], vectors[i] = ti.eig(a[i])

    run()
    eps = float(np.finfo(numpy_type).eps)
    w = values.to_numpy().astype(float)
    w = w[..., 0] + 1j * w[..., 1]
    v = vectors.to_numpy().astype(float)
    v = v[:, 0::2] + 1j * v[:, 1::2]
    assert np.abs(np.linalg.norm(v, axis=1) - 1).max() < 8 * eps
    assert (np.abs(A @ v - v * w[:, None, :]).max((1, 2)) / sizes(A)).max() < 64 * eps
    assert (np.abs(w.sum(1) - np.trace(A.astype(float), axis1=1, axis2=2)) / sizes(A)).max() < 16 * eps
    real = w.imag[:, 0] == 0
    assert real.any() and not real.all()
    assert (w.real[real, 0] >= w.real[real, 1]).all()
    assert (w.imag[~real, 0] > 0).all() and (w.imag[~real, 1] == -w.imag[~real, 0]).all()


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_solve(n: int, dtype: Any, numpy_type: Any) -> None:
    random = np.random.default_rng(n)
    A = random.normal(size=(60, n, n)).astype(numpy_type)
    if n > 1:
        A[:20, 0, 0] = 0  # needs a pivot
        A[20:40, 0, 0] = 1e-12
    b = random.normal(size=(60, n)).astype(numpy_type)
    B = random.normal(size=(60, n, 2)).astype(numpy_type)
    a, right, x = field(dtype, A), like(dtype, 60, n), like(dtype, 60, n)
    right.from_numpy(b)
    rights, xs = field(dtype, B), like(dtype, 60, n, 2)

    @ti.kernel
    def run():
        for i in a:
            x[i] = ti.solve(a[i], right[i])
            xs[i] = ti.solve(a[i], rights[i])

    run()
    eps = float(np.finfo(numpy_type).eps)
    for found, given in ((x.to_numpy()[..., None], b[..., None]), (xs.to_numpy(), B)):
        # Elimination with pivoting is backward stable: the residual is small compared with |A| |x|.
        residual = np.abs(A.astype(float) @ found - given).max((1, 2))
        assert (residual / (sizes(A) * np.abs(found).max((1, 2)))).max() < 32 * eps
    np.testing.assert_allclose(x.to_numpy(), np.linalg.solve(A, b[..., None])[..., 0], rtol=3e5 * eps)


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("rows, columns", [(1, 1), (2, 2), (3, 2), (4, 4), (9, 7)])
def test_triangular_factors(rows: int, columns: int, dtype: Any, numpy_type: Any) -> None:
    A = np.random.default_rng(rows).normal(size=(40, rows, columns)).astype(numpy_type)
    A[:10] *= 10.0 ** np.linspace(-8, 0, columns).astype(numpy_type)  # columns of any size
    S = np.einsum("kri,krj->kij", A[10:], A[10:]) + np.eye(columns, dtype=numpy_type)
    a, s = field(dtype, A), field(dtype, S)
    q, r, low = like(dtype, 40, rows, columns), like(dtype, 40, columns, columns), like(dtype, 30, columns, columns)

    @ti.kernel
    def run():
        for i in a:
            q[i], r[i] = ti.qr(a[i])
        for i in s:
            low[i] = ti.cholesky(s[i])

    run()
    Q, R, L = q.to_numpy(), r.to_numpy(), low.to_numpy()
    if columns == 1:
        Q, R, L = (found.reshape(*found.shape[:2], -1) for found in (Q, R, L))
    eps = float(np.finfo(numpy_type).eps)
    assert np.abs(np.einsum("kri,krj->kij", Q, Q) - np.eye(columns)).max() < 32 * eps
    column_sizes = np.abs(A).max(1, keepdims=True)
    assert (np.abs(Q @ R - A) / column_sizes).max() < 64 * eps
    assert not np.tril(R, -1).any() and (np.diagonal(R, axis1=1, axis2=2) > 0).all()
    assert (np.abs(L @ L.transpose(0, 2, 1) - S).max((1, 2)) / sizes(S)).max() < 32 * eps
    np.testing.assert_allclose(L, np.linalg.cholesky(S), rtol=2e3 * eps, atol=2e3 * eps)


def test_factors_of_what_has_none_are_not_numbers() -> None:
    assert np.isnan(ti.cholesky(ti.Matrix([[1.0, 2.0], [2.0, 1.0]])).to_numpy()[1, 1])
    with np.errstate(invalid="ignore"):
        assert np.isnan(ti.qr(ti.Matrix([[0.0, 0.0], [0.0, 0.0]]))[0].to_numpy()).all()


@pytest.mark.parametrize("n", [1, 3, 5])
def test_derivatives_of_triangular_factors_and_solutions(n: int) -> None:
    ti.init(default_fp=ti.f64)
    random = np.random.default_rng(n)
    a = ti.Matrix.field(n, n, ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    a.from_numpy(random.normal(size=(n, n)) + 2 * np.eye(n))
    weights = ti.Matrix(random.normal(size=(n, n)))

    @ti.kernel
    def measure():
        A = a[None]
        Q, R = ti.qr(A)
        L = ti.cholesky(A @ A.transpose())
        x = ti.solve(A, weights)
        for i, j in ti.static(ti.ndrange(n, n)):
            loss[None] += weights[i, j] * (Q[i, j] ** 2 + R[i, j] + ti.sin(L[i, j]) + x[i, j] ** 2)

    assert ti.ad.gradcheck(measure, wrt=a, output=loss).ok


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_inverse_and_determinant(n: int, dtype: Any, numpy_type: Any) -> None:
    A = (np.random.default_rng(n).normal(size=(50, n, n)) + 3 * np.eye(n)).astype(numpy_type)
    a, inverses, numbers = field(dtype, A), like(dtype, 50, n, n), ti.field(dtype, shape=50)

    @ti.kernel
    def run():
        for i in a:
            inverses[i] = ti.math.inverse(a[i])
            numbers[i] = ti.math.determinant(a[i])

    run()
    eps = float(np.finfo(numpy_type).eps)
    # The error of cofactors grows with the square of the condition.
    unit = A.astype(float) @ inverses.to_numpy(keep_dims=True).astype(float)
    bound = 32 * eps * np.linalg.cond(A.astype(float)) ** 2
    assert (np.abs(unit - np.eye(n)).max((1, 2)) < bound).all()
    scale = np.prod(np.linalg.norm(A.astype(float), axis=2), axis=1)
    assert (np.abs(numbers.to_numpy() - np.linalg.det(A.astype(float))) / scale).max() < 32 * eps


def test_integer_matrices_and_a_wanted_type() -> None:
    out = ti.Matrix.field(2, 2, ti.f64, shape=3)

    @ti.kernel
    def run():
        U, S, V = ti.svd(ti.Matrix([[1, 2], [3, 4]]), ti.f64)
        out[0] = U @ S @ V.transpose()
        x = ti.solve(ti.Matrix([[2, 1], [1, 3]]), ti.Vector([3, 5]), ti.f64)
        out[1] = ti.Matrix.rows([x, x])
        R, _ = ti.polar_decompose(ti.Matrix([[0, -2], [2, 0]]))
        out[2] = R

    run()
    found = out.to_numpy()
    assert found[0] == pytest.approx(np.array([[1, 2], [3, 4]]), abs=1e-14)
    assert found[1][0] == pytest.approx([0.8, 1.4], abs=1e-15)
    assert found[2] == pytest.approx(np.array([[0, -1], [1, 0]]), abs=1e-7)


@pytest.mark.parametrize("n", [2, 3])
def test_python_scope(n: int) -> None:
    for A in matrices(n, float):
        size = np.abs(A).max() or 1.0
        U, S, V = ti.svd(ti.Matrix(A))
        assert (U @ S @ V.transpose()).to_numpy() == pytest.approx(A, abs=1e-14 * size)
        R, P = ti.polar_decompose(A)
        assert (R @ P).to_numpy() == pytest.approx(A, abs=1e-14 * size)
        assert (R @ R.transpose()).to_numpy() == pytest.approx(np.eye(n), abs=1e-14)
        values, vectors = ti.sym_eig(ti.Matrix(A + A.T))
        assert values.to_numpy() == pytest.approx(np.linalg.eigvalsh(A + A.T)[::-1], abs=1e-14 * size)
        assert ((A + A.T) @ vectors.to_numpy()) == pytest.approx(
            vectors.to_numpy() * values.to_numpy(), abs=2e-14 * size
        )
    A, b = np.random.default_rng(0).normal(size=(n, n)), np.arange(n) + 1.0
    assert ti.solve(ti.Matrix(A), ti.Vector(b)).to_numpy() == pytest.approx(np.linalg.solve(A, b), rel=1e-12)
    values, vectors = ti.eig([[0, 1], [-4, 0]])
    assert values.to_numpy() == pytest.approx(np.array([[0, 2], [0, -2]]))


def test_wrong_shapes_are_refused() -> None:
    @ti.kernel
    def rectangle():
        _, _, _ = ti.svd(ti.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))

    @ti.kernel
    def large():
        _, _ = ti.polar_decompose(ti.Matrix.identity(ti.f32, 4))

    @ti.kernel
    def unequal():
        _ = ti.solve(ti.Matrix.identity(ti.f32, 3), ti.Vector([1.0, 2.0]))

    for kernel, words in (
        (rectangle, "2 by 2 or 3 by 3"),
        (large, "2 by 2 or 3 by 3"),
        (unequal, "the same number of rows"),
    ):
        with pytest.raises(ti.TaichiCompilationError, match=words) as error:
            kernel()
        assert kernel.source.name in str(error.value) or "test_linalg" in str(error.value)


# derivatives


@ti.func
def corotated(F: Any) -> Any:
    """The fixed corotated energy by `svd`, as simulations write it: |F - U Vᵀ|² and a volume term."""
    U, _, V = ti.svd(F)
    J = F.determinant()
    return (F - U @ V.transpose()).norm_sqr() + 0.7 * (J - 1.0) ** 2


@ti.func
def hencky(F: Any) -> Any:
    """A function of the singular values alone."""
    _, S, _ = ti.svd(F)
    total = 0.0 * F[0, 0]
    for k in ti.static(range(F.n)):
        total += ti.log(ti.abs(S[k, k]) + 0.1) ** 2 + 0.3 * S[k, k]
    return total


@ti.func
def weighted(F: Any) -> Any:
    """A generic function of all three factors."""
    U, S, V = ti.svd(F)
    total = 0.0 * F[0, 0]
    for i in ti.static(range(F.n)):
        for j in ti.static(range(F.n)):
            # Even in the columns, whose signs are free.
            total += (i + 2.0 * j + 1.0) * U[i, j] ** 2 + (i * 1.3 - j) * V[i, j] ** 2
        total += (i + 1.0) * S[i, i]
    return total


@ti.func
def clamped(F: Any) -> Any:
    """Singular values changed and put back, as plasticity does."""
    U, S, V = ti.svd(F)
    for k in ti.static(range(F.n)):
        S[k, k] = S[k, k] ** 2 * 0.5 + 0.2 * ti.sin(S[k, k])
    M = U @ S @ V.transpose()
    total = 0.0 * F[0, 0]
    for i in ti.static(range(F.n)):
        for j in ti.static(range(F.n)):
            total += (i - 0.5 * j + 0.3) * M[i, j]
    return total


@ti.func
def polar(F: Any) -> Any:
    R, S = ti.polar_decompose(F)
    total = 0.0 * F[0, 0]
    for i in ti.static(range(F.n)):
        for j in ti.static(range(F.n)):
            total += (i + 0.4 * j - 0.7) * R[i, j] + ti.sin(S[i, j] * (j + 1.0)) * (i + 1.0)
    return total


@ti.func
def symmetric(F: Any) -> Any:
    values, vectors = ti.sym_eig(F)
    total = 0.0 * F[0, 0]
    for i in ti.static(range(F.n)):
        total += (i + 1.0) * ti.sin(values[i])
        for j in ti.static(range(F.n)):
            total += (2.0 * i - j) * vectors[i, j] ** 2
    return total


@ti.func
def solved(F: Any) -> Any:
    b = F[0, :] + 0.5
    x = ti.solve(F, b)
    return x.dot(x) + ti.math.inverse(F).trace() + 0.1 * F.determinant()


@ti.func
def general(F: Any) -> Any:
    values, vectors = ti.eig(F)
    return (
        values[0, 0] * 2.0
        + values[0, 1] * values[1, 1]
        + values[1, 0] ** 2
        + vectors[0, 0] ** 2
        - vectors[3, 0] * vectors[1, 0]
    )


def gradient(energy: Callable[..., Any], A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """dE/dA by reverse mode, and by central differences of fourth order."""
    count, n, _ = A.shape
    steps = (1e-4, -1e-4, 2e-4, -2e-4)
    a = ti.Matrix.field(n, n, ti.f64, shape=count, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    moved = ti.Matrix.field(n, n, ti.f64, shape=(count, n * n, 4))
    energies = ti.field(ti.f64, shape=(count, n * n, 4))

    @ti.kernel
    def total():
        for i in a:
            loss[None] += energy(a[i])

    @ti.kernel
    def all_energies():
        for index in ti.grouped(moved):
            energies[index] = energy(moved[index])

    a.from_numpy(A)
    with ti.ad.Tape(loss):
        total()
    offsets = np.zeros((n * n, 4, n, n))
    for k in range(n * n):
        for s, step in enumerate(steps):
            offsets[k, s, k // n, k % n] = step
    moved.from_numpy(A[:, None, None] + offsets)
    all_energies()
    e = energies.to_numpy()
    differences = (8 * (e[..., 0] - e[..., 1]) - (e[..., 2] - e[..., 3])) / (12 * steps[0])
    return a.grad.to_numpy(), differences.reshape(A.shape)


def regular(n: int) -> np.ndarray:
    """Matrices with distinct singular values and eigenvalues, of both orientations."""
    return np.random.default_rng(10 + n).normal(size=(12, n, n)) + np.diag([2.0, 0.5, -1.0][:n])


BOTH = [corotated, hencky, weighted, clamped, polar, symmetric, solved]


@pytest.mark.parametrize("energy, n", [(general, 2), *[(energy, n) for energy in BOTH for n in (2, 3)]])
def test_gradients(energy: Any, n: int) -> None:
    found, wanted = gradient(energy, regular(n))
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("energy", [corotated, hencky, polar])
def test_gradients_at_repeated_singular_values(energy: Any, n: int) -> None:
    """At rest, at a rotation, at an almost uniform stretch: what is smooth there has its derivative, without noise."""
    turned = np.linalg.qr(np.random.default_rng(5).normal(size=(n, n)))[0]
    turned[:, 0] *= np.linalg.det(turned)
    two = np.eye(n)
    two[-1, -1] = 1.7
    rest = np.array([np.eye(n), turned, 1.3 * turned, turned @ two, two @ turned.T, np.eye(n) * (1 + 1e-9) + 1e-13])
    found, wanted = gradient(energy, rest)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


def test_the_gradient_of_the_corotated_energy_vanishes_at_rest() -> None:
    found, _ = gradient(corotated, np.array([np.eye(3)]))
    assert np.abs(found).max() < 1e-14


def test_a_surrogate_has_the_value_of_one_and_the_derivative_of_the_other() -> None:
    x, loss = ti.field(ti.f64, shape=3, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        for i in x:
            loss[None] += ti.surrogate(ti.floor(x[i]), ti.sin(x[i])) + 10.0 * ti.stop_gradient(x[i] ** 2)

    x.from_numpy(np.array([0.5, 1.5, -0.5]))
    with ti.ad.Tape(loss):
        run()
    assert loss[None] == pytest.approx(0 + 1 - 1 + 10 * (0.25 + 2.25 + 0.25))
    assert x.grad.to_numpy() == pytest.approx(np.cos([0.5, 1.5, -0.5]))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("energy", BOTH)
def test_forward_mode_agrees_with_reverse_mode(energy: Any, n: int) -> None:
    A = regular(n)
    a = ti.Matrix.field(n, n, ti.f64, shape=len(A), needs_dual=True)
    each = ti.field(ti.f64, shape=len(A), needs_dual=True)

    @ti.kernel
    def energies():
        for i in a:
            each[i] = energy(a[i])

    a.from_numpy(A)
    direction = np.random.default_rng(0).normal(size=A.shape)
    with ti.ad.FwdMode(loss=each, param=a, seed=direction):
        energies()
    found, _ = gradient(energy, A)
    np.testing.assert_allclose(each.dual.to_numpy(), (found * direction).sum((1, 2)), rtol=1e-9, atol=1e-9)


def test_a_surrogate_in_forward_mode() -> None:
    x, y = ti.field(ti.f64, shape=2, needs_dual=True), ti.field(ti.f64, shape=2, needs_dual=True)

    @ti.kernel
    def run():
        for i in x:
            y[i] = ti.surrogate(ti.floor(x[i]), x[i] ** 2) + ti.stop_gradient(ti.exp(x[i]))

    x.from_numpy(np.array([0.5, 1.5]))
    with ti.ad.FwdMode(loss=y, param=x, seed=[1.0, 2.0]):
        run()
    assert y.dual.to_numpy().tolist() == [1.0, 6.0]
