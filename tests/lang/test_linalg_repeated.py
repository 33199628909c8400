"""Derivatives of decompositions at repeated and nearly repeated values: right to about the root of the rounding error,
or NaN where the choice of vectors counts.

    pytest tests/lang/test_linalg_repeated.py --random-programs 2000

The oracle: for F(A) = Q g(Λ) Qᵀ the derivative in closed form by divided differences (Daleckii and Krein, 1965), and
for U g(Σ) Vᵀ, with g odd, that of the symmetric matrix ((0, A), (Aᵀ, 0)), whose function it is a block of.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinote as ti

Array = np.ndarray[Any, Any]
TYPES = [(ti.f64, np.float64), (ti.f32, np.float32)]


class Profile(NamedTuple):
    """A function of values in the language and its like in NumPy, with its derivative."""

    name: str
    kernel: Any
    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]


@ti.func
def itself(x):
    return x


@ti.func
def cube(x):
    return x**3


@ti.func
def sine(x):
    return ti.sin(x)


@ti.func
def exponential(x):
    return ti.exp(0.5 * x)


ODD = [
    Profile("itself", itself, lambda x: x, np.ones_like),
    Profile("cube", cube, lambda x: x**3, lambda x: 3 * x**2),
    Profile("sine", sine, np.sin, np.cos),
]
ANY = [*ODD, Profile("exponential", exponential, lambda x: np.exp(x / 2), lambda x: np.exp(x / 2) / 2)]


def of_symmetric(A: Array, W: Array, profile: Profile) -> Array:
    """The gradient of Σ W · F(A), for symmetric A, by divided differences."""
    values, Q = np.linalg.eigh(A)
    x, y = values[:, None], values[None, :]
    close = np.abs(x - y) < 1e-5
    # To second order in their distance, a divided difference of close values is the derivative between them.
    quotients = (profile.function(x) - profile.function(y)) / np.where(close, 1, x - y)
    D = np.where(close, profile.derivative((x + y) / 2), quotients)
    return Q @ (D * (Q.T @ (0.5 * (W + W.T)) @ Q)) @ Q.T


def of_any(A: Array, W: Array, profile: Profile) -> Array:
    """The gradient of Σ W · U g(Σ) Vᵀ, for odd g."""
    n, zero = len(A), np.zeros_like(A)
    whole = of_symmetric(np.block([[zero, A], [A.T, zero]]), np.block([[zero, W], [W.T, zero]]), profile)
    return whole[:n, n:]


def rotation(n: int, numbers: np.random.Generator) -> Array:
    Q, _ = np.linalg.qr(numbers.normal(size=(n, n)))
    Q[:, 0] *= np.sign(np.linalg.det(Q))
    return Q


def values_of(n: int, numbers: np.random.Generator) -> Array:
    """Positive values, some of them equal or almost."""
    found = numbers.uniform(0.5, 2.0, n)
    gap = numbers.choice([0.0, 0.0, 1e-16, 1e-13, 1e-10, 1e-8, 3e-7, 1e-5, 1e-3])
    for k in range(1, n):
        if k == 1 or numbers.random() < 0.5:
            found[k] = found[0] * (1 + k * gap * numbers.choice((-1, 1)))
    return found


def matrices(n: int, count: int, seed: int, *, symmetric: bool) -> Array:
    numbers = np.random.default_rng(seed)
    found: list[Array] = []
    for _ in range(count):
        U = rotation(n, numbers) if numbers.random() < 0.7 else np.eye(n)
        V = U if symmetric else rotation(n, numbers) if numbers.random() < 0.7 else np.eye(n)
        found.append(U @ np.diag(values_of(n, numbers)) @ V.T)
    return np.array([(A + A.T) / 2 for A in found] if symmetric else found)


def by_singular_values(profile: Profile) -> Any:
    g = profile.kernel

    @ti.func
    def function(A):
        U, S, V = ti.svd(A)
        for k in ti.static(range(A.n)):
            S[k, k] = g(S[k, k])
        return U @ S @ V.transpose()

    return function


def by_eigenvalues(profile: Profile) -> Any:
    g = profile.kernel

    @ti.func
    def function(A):
        values, Q = ti.sym_eig(A)
        D = A * 0.0
        for k in ti.static(range(A.n)):
            D[k, k] = g(values[k])
        return Q @ D @ Q.transpose()

    return function


class Sum:
    """Σ W · F(A) over many matrices at once."""

    def __init__(self, function: Any, A: Array, W: Array, dtype: Any) -> None:
        n = A.shape[-1]
        both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
        a = self.a = ti.Matrix.field(n, n, dtype, shape=len(A), **both)
        w = ti.Matrix.field(n, n, dtype, shape=len(A))
        loss = self.loss = ti.field(dtype, shape=(), **both)

        @ti.kernel
        def run():
            for i in a:
                F = function(a[i])
                for j, k in ti.static(ti.ndrange(n, n)):
                    loss[None] += F[j, k] * w[i][j, k]

        self.run = run
        a.from_numpy(A)
        w.from_numpy(W)

    def gradient(self) -> Array:
        with ti.ad.Tape(self.loss):
            self.run()
        return self.a.grad.to_numpy()


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
@pytest.mark.parametrize("n", [2, 3])
def test_functions_of_a_matrix(n: int, dtype: Any, numpy_type: Any, random_programs: range) -> None:
    ti.init(default_fp=dtype)
    bound = 50 * float(np.sqrt(np.finfo(numpy_type).eps))
    for made, oracle, profiles, symmetric in (
        (by_singular_values, of_any, ODD, False),
        (by_eigenvalues, of_symmetric, ANY, True),
    ):
        for profile in profiles:
            A = matrices(n, len(random_programs), random_programs.start, symmetric=symmetric).astype(numpy_type)
            W = np.random.default_rng(n).normal(size=A.shape).astype(numpy_type)
            found = Sum(made(profile), A, W, dtype).gradient()
            pairs = zip(A.astype(float), W.astype(float), strict=True)
            wanted = np.array([oracle(a, w, profile) for a, w in pairs])
            off = np.abs(found - wanted).max((1, 2)) / (1 + np.abs(wanted).max((1, 2)))
            worst = int(np.nan_to_num(off, nan=np.inf).argmax())
            assert off[worst] < bound, (
                f"{profile.name} of\n{A[worst]!r}\nW\n{W[worst]!r}\n{found[worst]}\n{wanted[worst]}"
            )


def test_the_program_of_the_report() -> None:
    ti.init(default_fp=ti.f64)
    W = np.array([[[0.0, 2.0], [3.0, 0.0]]])
    for A in (np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]]), np.eye(2) * (1 + 1e-12)):
        found = Sum(by_singular_values(ODD[0]), A[None], W, ti.f64).gradient()
        np.testing.assert_allclose(found, W, atol=1e-7)


@ti.func
def a_component_of_u(A):
    U, _, _ = ti.svd(A)
    return U[0, 1] + 0.3 * U[0, 0]


@ti.func
def a_component_of_v(A):
    _, S, V = ti.svd(A)
    return V[1, 0] * S[0, 0] + V[1, 1]


@ti.func
def a_component_of_q(A):
    values, Q = ti.sym_eig(A)
    return (Q[0, 1] - 0.4 * Q[1, 1]) * values[0]


@ti.func
def one_eigenvalue(A):
    values, _ = ti.eig(A)
    return values[0, 0]


def _of_one(function: Any, A: Array) -> tuple[Any, Any, Any]:
    n = len(A)
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    a, loss = ti.Matrix.field(n, n, ti.f64, shape=(), name="a", **both), ti.field(ti.f64, shape=(), **both)

    @ti.kernel
    def run():
        for _ in range(1):
            loss[None] += function(a[None])

    a.from_numpy(A)
    return run, a, loss


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("function", [a_component_of_u, a_component_of_v, a_component_of_q, one_eigenvalue])
def test_what_depends_on_the_choice_is_nan(function: Any, n: int) -> None:
    """In reverse and forward mode and to second order; `find_nan` names it."""
    if function is one_eigenvalue and n == 3:
        n = 2
    ti.init(default_fp=ti.f64)
    run, a, loss = _of_one(function, 1.3 * np.eye(n))
    with ti.ad.Tape(loss, keep=True) as tape:
        run()
    assert np.isnan(a.grad.to_numpy()).any()
    direction = np.arange(1.0, n * n + 1).reshape(n, n)
    with ti.ad.FwdMode(loss=loss, param=a, seed=direction):
        run()
    assert np.isnan(loss.dual[None])
    assert np.isnan(ti.ad.hvp(run, wrt=a, loss=loss)(direction)).any()
    if n == 3:
        return
    report = ti.ad.find_nan(tape)
    assert report.primal is None
    assert report.backward is not None
    assert "svd" in str(report) or "eig" in str(report), report


@pytest.mark.parametrize("n", [2, 3])
def test_functions_of_the_values_alone(n: int) -> None:
    """At rest an isotropic energy has no force, not even a small one; forward mode agrees."""
    ti.init(default_fp=ti.f64)

    @ti.func
    def energy(A):
        _, S, _ = ti.svd(A)
        return (S - ti.Matrix.identity(ti.f64, A.n)).norm_sqr() + S.trace() ** 2

    run, a, loss = _of_one(energy, np.eye(n))
    with ti.ad.Tape(loss):
        run()
    np.testing.assert_allclose(a.grad.to_numpy(), 2 * n * np.eye(n), atol=1e-14)
    direction = np.arange(1.0, n * n + 1).reshape(n, n)
    with ti.ad.FwdMode(loss=loss, param=a, seed=direction):
        run()
    assert loss.dual[None] == pytest.approx(2 * n * np.trace(direction))


@pytest.mark.parametrize("n", [2, 3])
def test_forward_mode_along_what_turns_nothing(n: int) -> None:
    ti.init(default_fp=ti.f64)
    W = np.random.default_rng(0).normal(size=(1, n, n))
    for made in (by_singular_values, by_eigenvalues):
        case = Sum(made(ODD[1]), np.eye(n)[None], W, ti.f64)
        for direction, finite in ((np.diag(np.arange(1.0, n + 1)), True), (np.ones((n, n)), False)):
            with ti.ad.FwdMode(loss=case.loss, param=case.a, seed=direction[None]):
                case.run()
            found = case.loss.dual[None]
            assert np.isfinite(found) == finite
            assert not finite or found == pytest.approx(3 * (np.diag(W[0]) * np.diag(direction)).sum())


@ti.func
def product_of_eigenvalues(A):
    values, _ = ti.eig(A)
    return values[0, 0] * values[1, 0] - values[0, 1] * values[1, 1] + values[0, 0] + values[1, 0]


@pytest.mark.parametrize("A", [[[1, 0], [0, 1]], [[1, 1], [0, 1]], [[1, 1], [-0.25, 2]], [[2, 1e-9], [1e-9, 2]]])
def test_the_determinant_by_eigenvalues(A: Any) -> None:
    """Also of a defective matrix."""
    ti.init(default_fp=ti.f64)
    given = np.array(A, float)
    run, a, loss = _of_one(product_of_eigenvalues, given)
    with ti.ad.Tape(loss):
        run()
    wanted = np.array([[given[1, 1] + 1, -given[1, 0]], [-given[0, 1], given[0, 0] + 1]])
    np.testing.assert_allclose(a.grad.to_numpy(), wanted, atol=1e-7)


@pytest.mark.parametrize("A", [np.zeros((2, 2)), np.diag([1.0, -1.0]), np.zeros((3, 3)), np.diag([1.0, 1.0, -1.0])])
def test_a_rotation_that_is_not_unique_has_no_derivative(A: Array) -> None:
    ti.init(default_fp=ti.f64)

    @ti.func
    def component(A):
        R, _ = ti.polar_decompose(A)
        return R[0, 1]

    run, a, loss = _of_one(component, A)
    with ti.ad.Tape(loss):
        run()
    assert np.isnan(a.grad.to_numpy()).all()
