"""Arrays that several loops of one kernel overwrite: their shapes are known at launch only, and so is what is kept."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import overwrites

N = 6
pytestmark = overwrites


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)


def differences(host: Callable[..., float], given: list[Any], which: int) -> Any:
    """Central differences of `host` with respect to one of the arrays that it is given."""
    found = np.zeros_like(given[which])
    for index in np.ndindex(found.shape):
        values = []
        for step in (1e-5, -1e-5):
            moved = [a.copy() for a in given]
            moved[which][index] += step
            values.append(host(*moved))
        found[index] = (values[0] - values[1]) / 2e-5
    return found


def parallel_loops() -> tuple[Any, Any]:
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def run(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            a[i] = ti.sin(a[i]) * b[i]
        for i in a:
            a[i] = a[i] ** 2 + b[i]
        for i in a:
            b[i] = b[i] * a[i]
        for i in a:
            loss[None] += a[i] * b[i] * (i + 1)

    return run, loss


def parallel_loops_of_numpy(a: Any, b: Any) -> float:
    a = (np.sin(a) * b) ** 2 + b
    return float(np.sum(a * b * a * np.arange(1, N + 1)))


def given() -> list[Any]:
    return [np.linspace(0.2, 1.3, N), np.linspace(-1, 1.2, N)]


def test_several_parallel_loops() -> None:
    run, loss = parallel_loops()
    arrays = [ti.ndarray(ti.f64, N, needs_grad=True) for _ in range(2)]
    for array, numbers in zip(arrays, given(), strict=True):
        array.from_numpy(numbers)
    with ti.ad.Tape(loss):
        run(*arrays)
    for k, array in enumerate(arrays):
        wanted = differences(parallel_loops_of_numpy, given(), k)
        np.testing.assert_allclose(array.grad.to_numpy(), wanted, rtol=1e-7, atol=1e-8)
    assert loss[None] == pytest.approx(parallel_loops_of_numpy(*given()), rel=1e-12)


def test_numpy_arrays_and_their_second_derivatives() -> None:
    run, loss = parallel_loops()
    gradient = ti.ad.grad(lambda a, b: run(a, b), loss=loss, argnums=(0, 1))
    for k, found in enumerate(gradient(*given())):
        wanted = differences(parallel_loops_of_numpy, given(), k)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
    random = np.random.default_rng(1)
    v = random.normal(size=N), random.normal(size=N)
    products = ti.ad.hvp(lambda a, b: run(a, b), loss=loss, argnums=(0, 1))(v, *given())
    ahead, behind = (gradient(*[a + e * d for a, d in zip(given(), v, strict=True)]) for e in (1e-5, -1e-5))
    for product, up, down in zip(products, ahead, behind, strict=True):
        np.testing.assert_allclose(product, (up - down) / 2e-5, rtol=1e-7, atol=1e-7)


def test_a_serial_loop_between_parallel_ones() -> None:
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def run(m: ti.types.ndarray()):
        for i, j in m:
            m[i, j] = ti.sin(m[i, j]) * 1.3
        ti.loop_config(serialize=True)
        for t in range(4):
            for j in range(2):
                m[t % 2, j] += m[(t + 1) % 2, j + 1] ** 2
        for i, j in m:
            loss[None] += m[i, j].norm_sqr() ** 2

    def host(m: Any) -> float:
        m = np.sin(m) * 1.3
        for t in range(4):
            for j in range(2):
                m[t % 2, j] += m[(t + 1) % 2, j + 1] ** 2
        return float(np.sum(np.sum(m**2, axis=-1) ** 2))

    start = np.random.default_rng(5).uniform(-1, 1, (2, 3, 3))
    m = ti.ndarray(ti.math.vec3, (2, 3), needs_grad=True)
    m.from_numpy(start)
    with ti.ad.Tape(loss):
        run(m)
    np.testing.assert_allclose(m.grad.to_numpy(), differences(host, [start], 0), rtol=1e-6, atol=1e-6)


def test_shapes_may_change_from_launch_to_launch() -> None:
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def run(a: ti.types.ndarray()):
        for i in a:
            a[i] = a[i] ** 2
        for i in a:
            a[i] = a[i] ** 2
        for i in a:
            loss[None] += a[i]

    arrays = [ti.ndarray(ti.f64, n, needs_grad=True) for n in (3, 500, 7)]
    for array in arrays:
        array.from_numpy(np.linspace(0.5, 1.5, array.shape[0]))
    wanted = [4 * array.to_numpy() ** 3 for array in arrays]
    with ti.ad.Tape(loss):
        for array in arrays:
            run(array)
    for array, slope in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(array.grad.to_numpy(), slope, rtol=1e-12)


def test_blame_falls_on_no_launch_that_overwrites() -> None:
    """When a gradient is wrong, launches that overwrite what they need are tried on what they began with."""
    x, y, loss = (ti.field(ti.f64, shape, needs_grad=True) for shape in (3, 3, ()))

    @ti.kernel
    def in_place():
        for i in x:
            y[i] = ti.exp(y[i]) * x[i]

    @ti.ad.grad_replaced
    def wrong() -> None:
        total()

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i]

    @ti.ad.grad_for(wrong)
    def wrong_gradient() -> None:
        y.grad.fill(3.0)

    x.from_numpy(np.array([0.2, 0.5, -0.3]))
    y.from_numpy(np.array([0.1, -0.4, 0.6]))

    def run() -> None:
        in_place()
        wrong()

    report = ti.ad.gradcheck(run, [x], loss, raises=False)
    assert not report.ok
    assert not report.suspects
