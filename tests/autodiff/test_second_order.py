"""Hessian-vector products against differences of gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


def _agrees(f: Callable[[], Any], x: Any, loss: Any, *, reset: Callable[[], None] = lambda: None) -> None:
    """The Hessian-vector product of `loss` by `x` is the difference of gradients along the vector."""
    start = x.to_numpy()
    v = np.cos(np.arange(start.size, dtype=float)).reshape(start.shape)
    gradient, h = ti.ad.grad(f, wrt=x, loss=loss), 1e-6

    def at(offset: float) -> Any:
        reset()
        x.from_numpy(start + offset * v)
        return gradient()

    expected = (at(h) - at(-h)) / (2 * h)
    reset()
    x.from_numpy(start)
    found = ti.ad.hvp(f, wrt=x, loss=loss)(v)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


def _x(n: int = 6) -> Any:
    x = ti.field(ti.f64, n, needs_grad=True)
    x.from_numpy(np.linspace(0.3, 0.9, n))
    return x


def test_pairs_of_particles() -> None:
    x, energy = ti.Vector.field(2, ti.f64, 5, needs_grad=True), scalar()
    x.from_numpy(np.random.default_rng(0).random((5, 2)))

    @ti.kernel
    def potential():
        for i, j in ti.ndrange(5, 5):
            if i != j:
                r = x[i] - x[j]
                energy[None] += -0.5 / ti.sqrt(r.norm_sqr() + 0.01)

    _agrees(potential, x, energy)


def test_several_kernels_and_an_overwritten_field() -> None:
    x, loss = _x(), scalar()

    @ti.kernel
    def step():
        for i in x:
            x[i] = ti.sin(x[i]) * x[i] + 0.5

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 3

    def f() -> None:
        for _ in range(3):
            step()
        total()

    _agrees(f, x, loss)


def test_loops_that_carry_values_and_overwrite_elements() -> None:
    x, loss = _x(), scalar()

    @ti.kernel
    def serial():
        for i in x:
            a = x[i]
            k = 0
            while a < 20 and k < 9:
                a = a * a + 0.4
                x[i] = x[i] * a
                k += 1
            for _ in range(i):
                a += ti.exp(-a * x[i])
            loss[None] += x[i] * a

    _agrees(serial, x, loss)


def test_two_loops_of_one_kernel_and_a_local_array() -> None:
    x, y, loss = _x(), ti.field(ti.f64, 6, needs_grad=True), scalar()

    @ti.kernel
    def both():
        for i in x:
            y[i] = x[i] ** 2
        for i in x:
            x[i] = ti.sin(y[(i + 1) % 6])
        for i in x:
            v = ti.Vector([x[i], y[i], 1.0])
            for k in range(3):
                v[k] = v[k] * v[(k + i) % 3]
            loss[None] += v.dot(v)

    _agrees(both, x, loss)


def test_copies_and_constants_of_python() -> None:
    x, y, loss = _x(), ti.field(ti.f64, 6, needs_grad=True), scalar()

    @ti.kernel
    def square():
        for i in y:
            y[i] = y[i] ** 2 * x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] ** 2

    def f() -> None:
        y.copy_from(x)
        square()
        total()
        y.fill(2.0)
        square()
        total()

    _agrees(f, x, loss)


def test_gradients_and_duals_are_left_alone_and_may_come_late() -> None:
    x, loss = _x(), scalar()

    @ti.kernel
    def quartic():
        for i in x:
            loss[None] += x[i] ** 4

    x.grad.fill(7.0)
    start = x.to_numpy()
    np.testing.assert_allclose(ti.ad.hvp(quartic, wrt=x, loss=loss)(np.ones(6)), 12 * start**2, rtol=1e-12)
    assert (x.grad.to_numpy() == 7.0).all()
    # The duals came after the kernel had been compiled; forward mode now finds them.
    with ti.ad.FwdMode(loss=loss, param=x, seed=np.ones(6)):
        quartic()
    assert loss.dual[None] == pytest.approx((4 * start**3).sum())


def test_code_from_before_the_duals_is_not_used() -> None:
    x, loss = ti.field(ti.f64, 3), ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
    x.fill(2.0)

    @ti.kernel
    def total(a: ti.f64):
        for i in x:
            loss[None] += a * x[i] ** 2

    assert ti.ad.jvp(total, loss=loss)(1.0, 1.0)[1] == pytest.approx(12.0)
    x.ensure_dual()
    loss.fill(0)
    with ti.ad.FwdMode(loss=loss, param=x, seed=np.ones(3)):
        total(1.0)
    assert loss.dual[None] == pytest.approx(12.0)  # 2 · 2 each


def test_a_custom_gradient_by_numpy_has_no_known_derivative() -> None:
    x, loss = _x(), scalar()

    @ti.kernel
    def quartic():
        for i in x:
            loss[None] += x[i] ** 4

    @ti.ad.grad_replaced
    def forward() -> None:
        quartic()

    @ti.ad.grad_for(forward)
    def backward() -> None:
        x.grad.from_numpy(x.grad.to_numpy() + 4 * x.to_numpy() ** 3 * loss.grad[None])

    with pytest.raises(DifferentiationError, match="a plain number goes to") as refused:
        ti.ad.hvp(forward, wrt=x, loss=loss)(np.ones(6))
    assert "'forward' is differentiated along a direction here" in str(refused.value)
    assert "x.grad.to_numpy()" in str(refused.value)


@ti.func
def of_singular_values(A):
    _, S, _ = ti.svd(A)
    return S[0, 0] * S[1, 1] ** 2


@ti.func
def of_singular_vectors(A):
    U, _, V = ti.svd(A)
    return U[0, 0] * V[0, 1]


@ti.func
def of_a_rotation(A):
    R, _ = ti.polar_decompose(A)
    return R[0, 1] * R[1, 1]


@ti.func
def of_a_stretching(A):
    _, S = ti.polar_decompose(A)
    return S[0, 0] ** 2


@ti.func
def of_eigenvalues(A):
    values, _ = ti.sym_eig(A)
    return values[0] ** 2 * values[1]


@ti.func
def of_eigenvectors(A):
    _, vectors = ti.sym_eig(A)
    return vectors[0, 0] * vectors[1, 0]


@ti.func
def away_from_a_rotation(A):
    R, _ = ti.polar_decompose(A)
    return (A - R).norm_sqr()


@ti.func
def of_all_singular_values(A):
    _, S, _ = ti.svd(A)
    return S.norm_sqr()


def _of_a_matrix(function: Any, start: Any) -> tuple[Callable[[], Any], Any, Any]:
    """A kernel that computes `function` of the matrix in a field, the field, and the loss."""
    A, loss = ti.Matrix.field(*start.shape, ti.f64, (), needs_grad=True), scalar()
    A.from_numpy(start)

    @ti.kernel
    def run():
        for _ in range(1):
            loss[None] += function(A[None])

    return run, A, loss


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(
    "function",
    [of_singular_values, of_singular_vectors, of_a_rotation, of_a_stretching, of_eigenvalues, of_eigenvectors],
    ids=lambda function: function.__name__,
)
def test_decompositions(function: Any, n: int) -> None:
    """Their first derivative comes from perturbation theory; it has a derivative of its own."""
    start = np.eye(n) + 0.3 * np.random.default_rng(3).normal(size=(n, n))
    _agrees(*_of_a_matrix(function, start))


def test_the_rotation_of_a_body_at_rest() -> None:
    """It is unique there, while singular vectors are not."""
    _agrees(*_of_a_matrix(away_from_a_rotation, np.eye(3)))


def test_singular_vectors_that_are_not_unique_have_no_second_derivative() -> None:
    run, A, loss = _of_a_matrix(of_all_singular_values, np.eye(2))
    assert np.allclose(ti.ad.grad(run, wrt=A, loss=loss)(), 2 * np.eye(2))
    assert np.isnan(ti.ad.hvp(run, wrt=A, loss=loss)(np.ones((2, 2)))).any()


def test_value_gradient_and_product_come_of_one_run() -> None:
    x, loss = _x(), scalar()
    runs = [0]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += ti.sin(x[i]) * x[(i + 1) % 6] ** 2

    def f() -> None:
        runs[0] += 1
        total()

    v = np.cos(np.arange(6.0))
    value, gradient, product = ti.ad.value_and_grad_and_hvp(f, wrt=x, loss=loss)(v)
    assert runs[0] == 1
    expected = ti.ad.value_and_grad(f, wrt=x, loss=loss)()
    assert value == pytest.approx(expected[0], rel=1e-15)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-14)
    np.testing.assert_array_equal(product, ti.ad.hvp(f, wrt=x, loss=loss)(v))

    @ti.kernel
    def energy(k: ti.f64, at: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
        found = 0.0
        for i in range(at.shape[0]):
            found += k * at[i] ** 3
        return found

    at = np.linspace(0.5, 2.0, 4)
    value, (by_k, by_x), (along_k, along_x) = ti.ad.value_and_grad_and_hvp(energy, argnums=(0, 1))((1.0, at), 2.0, at)
    assert value == pytest.approx(2 * (at**3).sum())
    assert by_k == pytest.approx((at**3).sum()) and along_k == pytest.approx((3 * at**3).sum())
    np.testing.assert_allclose(by_x, 6 * at**2, rtol=1e-14)
    np.testing.assert_allclose(along_x, 3 * at**2 + 12 * at**2, rtol=1e-14)
    with pytest.raises(DifferentiationError, match=r"ti\.ad\.value_and_grad_and_hvp differentiates"):
        ti.ad.value_and_grad_and_hvp(3)


@pytest.mark.parametrize("around", ["hvp", "grad", "block"])
@pytest.mark.parametrize("shadows", [{}, {"needs_grad": True}, {"needs_grad": True, "needs_dual": True}], ids=len)
@pytest.mark.parametrize("kind", ["array", "field"])
def test_memory_made_inside_of_what_is_differentiated_twice(kind: str, shadows: dict[str, bool], around: str) -> None:
    ti.init(default_fp=ti.f64)
    both: dict[str, Any] = {"needs_grad": True, "needs_dual": True}
    x = ti.field(ti.f64, shape=3, **both)
    loss, total = [ti.field(ti.f64, shape=(), **both) for _ in range(2)]
    column: Any = ti.types.ndarray(dtype=ti.f64, ndim=1) if kind == "array" else ti.template()

    @ti.kernel
    def fill(inner: column):
        for i in x:
            inner[i] = ti.sin(x[i]) * (i + 1)

    @ti.kernel
    def add(inner: column):
        for i in x:
            loss[None] += inner[i] ** 3

    @ti.kernel
    def weigh(slopes: ti.types.ndarray(dtype=ti.f64, ndim=1), along: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            total[None] += slopes[i] * along[i]

    def program() -> None:
        made = ti.ndarray(ti.f64, 3, **shadows) if kind == "array" else ti.field(ti.f64, shape=3, **shadows)
        fill(made)
        add(made)

    start, along = np.array([0.3, 0.5, 0.7]), np.array([1.0, -0.5, 0.25])
    x.from_numpy(start)
    slopes = ti.ad.grad(program, wrt=x, output=loss)
    if around == "hvp":
        found = ti.ad.hvp(program, wrt=x, output=loss)(along)
    elif around == "grad":
        found = ti.ad.grad(lambda: weigh(slopes(), along), wrt=x, output=total)()
    else:
        with ti.ad.FwdMode(loss=loss, param=x, seed=along), ti.ad.Tape(loss):
            program()
        found = x.grad.dual.to_numpy()
    weights = (np.arange(3) + 1.0) ** 3
    slope = 6 * np.sin(start) * np.cos(start) ** 2 - 3 * np.sin(start) ** 3
    np.testing.assert_allclose(found, weights * slope * along, 1e-12)
