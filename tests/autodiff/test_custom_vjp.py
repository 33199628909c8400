"""Device functions with a gradient of their own."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array_with_dual, overwrites
from tinote.errors import DifferentiationError, TinoteError


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)


def given() -> tuple[Any, Any, Any]:
    x, y, loss = array_with_dual(5), array_with_dual(5), array_with_dual()
    x.from_numpy(np.array([0.3, -0.7, 1.1, 0.55, -0.2]))
    y.from_numpy(np.array([1.2, 0.4, -0.6, 0.9, -1.3]))
    return x, y, loss


@ti.ad.grad_replaced
@ti.func
def wave(a, b):
    r = a * ti.sin(b)
    for k in range(3):
        r += a * a * k
    return r


@ti.ad.grad_for(wave)
@ti.func
def wave_gradient(a, b, g):
    da = g * ti.sin(b)
    for k in range(3):
        da += 2 * a * k * g
    if g == 0:
        da = 0.0
    return da, g * a * ti.cos(b)


@ti.ad.grad_replaced
@ti.func
def inverse(A):
    return A.inverse()


@ti.ad.grad_for(inverse)
@ti.func
def inverse_gradient(A, G):
    B = A.inverse()
    return -(B.transpose() @ G @ B.transpose())


@ti.ad.grad_replaced
@ti.func
def powers(a, k, n: ti.template()):
    return a * n * k, a * a


@ti.ad.grad_for(powers)
@ti.func
def powers_gradient(a, k, n, g, h):
    return 7.0 * (g * n * k + 2 * a * h), 0


def checked(run: Any, wrt: list[Any], loss: Any) -> None:
    report = ti.ad.gradcheck(run, wrt, loss)
    assert report.ok and not report.unsettled
    assert any(element.reverse for element in report.elements)


def test_in_loops_with_carried_values() -> None:
    x, y, loss = given()

    @ti.kernel
    def run():
        for i in x:
            s = 0.0
            for j in range(i + 1):
                s = wave(x[j] + 0.1 * s, y[j]) + wave(2.0, y[i])
            loss[None] += s

    checked(run, [x, y], loss)


@overwrites
def test_in_a_loop_that_overwrites() -> None:
    x, y, loss = given()

    @ti.kernel
    def run():
        for i in x:
            for _ in range(3):
                y[i] = wave(y[i], x[i])
            loss[None] += y[i] ** 2

    checked(run, [x, y], loss)


def test_a_matrix() -> None:
    M, loss = ti.Matrix.field(2, 2, ti.f64, 3, needs_grad=True), array_with_dual()
    M.from_numpy(np.eye(2) + 0.3 * np.random.default_rng(2).random((3, 2, 2)))

    @ti.kernel
    def run():
        for i in M:
            B = inverse(M[i] @ M[(i + 1) % 3])
            loss[None] += (B * B).sum() + B[0, 1]

    checked(run, [M], loss)


def test_a_matrix_with_run_time_indices() -> None:
    M, loss = ti.Matrix.field(2, 2, ti.f64, 3, needs_grad=True), array_with_dual()
    M.from_numpy(np.eye(2) + 0.3 * np.random.default_rng(2).random((3, 2, 2)))

    @ti.kernel
    def run():
        for i in M:
            B = inverse(M[i])
            for j in range(2):
                loss[None] += B[j, (i + j) % 2] * (j + 1)

    checked(run, [M], loss)


def test_the_declared_vjp_counts() -> None:
    x, y, loss = given()

    @ti.kernel
    def run():
        for i in x:
            p, q = powers(x[i], i, 3)
            loss[None] += p + q * y[i]

    with ti.ad.Tape(loss):
        run()
    wanted = 7 * (3 * np.arange(5) + 2 * x.to_numpy() * y.to_numpy())
    np.testing.assert_allclose(x.grad.to_numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(y.grad.to_numpy(), x.to_numpy() ** 2, rtol=1e-12)
    loss.grad[None] = 2
    x.grad.fill(0)
    run.grad()
    np.testing.assert_allclose(x.grad.to_numpy(), 2 * wanted, rtol=1e-12)


def test_methods_and_fields_that_it_reads() -> None:
    x, y, loss = given()
    scale = ti.field(ti.f64, 5)
    scale.from_numpy(np.arange(1.0, 6.0))

    @ti.data_oriented
    class Law:
        def __init__(self, power: int) -> None:
            self.power = power

        @ti.ad.grad_replaced
        @ti.func
        def force(self, a, i):
            return scale[i] * a**self.power

        @ti.ad.grad_for(force)
        @ti.func
        def force_gradient(self, a, i, g):
            return self.power * scale[i] * a ** (self.power - 1) * g, 0

        @ti.kernel
        def run(self):
            for i in x:
                loss[None] += self.force(x[i], i) * y[i]
            for i in x:
                scale[i] = 0.0

    law = Law(3)
    with ti.ad.Tape(loss):
        law.run()
    wanted = 3 * np.arange(1.0, 6.0) * x.to_numpy() ** 2 * y.to_numpy()
    np.testing.assert_allclose(x.grad.to_numpy(), wanted, rtol=1e-12)


def test_a_gradient_that_is_registered_anew_counts_at_once() -> None:
    x, _, loss = given()

    @ti.ad.grad_replaced
    @ti.func
    def same(a):
        return a

    @ti.kernel
    def run():
        for i in x:
            loss[None] += same(x[i])

    def register(factor: float) -> None:
        @ti.ad.grad_for(same)
        @ti.func
        def gradient(a, g):
            return factor * g

    for factor in (2.0, 5.0):
        register(factor)
        with ti.ad.Tape(loss):
            run()
        assert x.grad.to_numpy().tolist() == [factor] * 5


@ti.ad.grad_replaced
@ti.func
def stairs(a):
    return ti.floor(a)


@ti.ad.grad_for(stairs)
@ti.func
def stairs_gradient(a, g):
    return 3 * a * a * g


@ti.ad.grad_replaced
@ti.func
def volume_and_inverse(A):
    return A.determinant(), A.inverse()


@ti.ad.grad_for(volume_and_inverse)
@ti.func
def volume_and_inverse_gradient(A, g, G):
    B = A.inverse().transpose()
    return g * A.determinant() * B - B @ G @ B


def test_forward_mode_goes_by_the_transposed_gradient() -> None:
    """Through loops and several results, and where the declared gradient is not that of the code."""
    x, y, loss = given()
    A = ti.Matrix.field(2, 2, ti.f64, 5, needs_grad=True, needs_dual=True)
    random = np.random.default_rng(5)
    A.from_numpy(np.eye(2) + 0.3 * random.normal(size=(5, 2, 2)))

    @ti.kernel
    def run():
        for i in x:
            q = y[i]
            for j in range(3):
                q = ti.sin(stairs(q) + q * x[j])
            volume, B = volume_and_inverse(A[i] * (1 + q * q))
            loss[None] += volume * q + B.norm_sqr()

    fields = (x, y, A)
    with ti.ad.Tape(loss):
        run()
    seeds = [random.normal(size=f.to_numpy().shape) for f in fields]
    expected = sum([(f.grad.to_numpy() * seed).sum() for f, seed in zip(fields, seeds, strict=True)])
    loss[None] = 0
    with ti.ad.FwdMode(loss=loss, param=list(fields), seed=seeds):
        run()
    assert loss.dual[None] == pytest.approx(expected, rel=1e-12)


def test_second_derivatives_are_those_of_the_declared_gradient() -> None:
    x, _, loss = given()

    @ti.kernel
    def run():
        for i in x:
            loss[None] += ti.sin(stairs(x[i]) + x[i]) ** 2

    a, v = x.to_numpy(), np.cos(np.arange(5.0))
    value, slope = np.floor(a) + a, 3 * a * a + 1
    expected = (2 * np.cos(2 * value) * slope**2 + np.sin(2 * value) * 6 * a) * v
    np.testing.assert_allclose(ti.ad.hvp(run, wrt=x, loss=loss)(v), expected, rtol=1e-12)


def test_a_gradient_that_asks_for_the_adjoint_is_refused_in_forward_mode_with_the_line_of_the_call() -> None:
    x, y, loss = given()

    @ti.kernel
    def run():
        for i in x:
            loss[None] += wave(x[i], y[i])

    forward = ti.ad.FwdMode(loss=loss, param=x, seed=[1.0] * 5)
    with pytest.raises(DifferentiationError, match="more to the adjoints than scale and add") as caught, forward:
        run()
    assert "wave(x[i], y[i])" in str(caught.value)
    assert "if g == 0" in str(caught.value)
    with pytest.raises(DifferentiationError, match="more to the adjoints"):
        ti.ad.hvp(run, wrt=x, loss=loss)(np.ones(5))


@ti.ad.grad_replaced
@ti.func
def undeclared(a):
    return a


@ti.ad.grad_replaced
@ti.func
def short(a, b):
    return a * b


@ti.ad.grad_for(short)
@ti.func
def short_gradient(a, b, g):
    return g * b


@ti.ad.grad_replaced
@ti.func
def misshapen(a):
    return a


@ti.ad.grad_for(misshapen)
@ti.func
def misshapen_gradient(a, g):
    return ti.Vector([g, g])


@ti.ad.grad_replaced
@ti.func
def deaf(a):
    return a


@ti.ad.grad_for(deaf)
@ti.func
def deaf_gradient(a):
    return 1.0


@ti.ad.grad_replaced
@ti.func
def whole(a):
    return int(a)


@ti.ad.grad_for(whole)
@ti.func
def whole_gradient(a, g):
    return g


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (undeclared, "no function was registered"),
        (short, "gives 1 adjoints, and `short` has 2 arguments"),
        (misshapen, "as the adjoint of"),
        (deaf, "takes 1 arguments, and not 2"),
        (whole, "floating-point numbers"),
    ],
    ids=["undeclared", "short", "misshapen", "deaf", "whole"],
)
def test_what_does_not_fit_is_refused(function: Any, message: str) -> None:
    x, _, loss = given()
    two = function is short

    @ti.kernel
    def run():
        for i in x:
            if ti.static(two):
                loss[None] += function(x[i], x[i])
            else:
                loss[None] += function(x[i])

    with pytest.raises(TinoteError, match=message):
        run()


def test_reading_a_differentiated_field_would_be_silent() -> None:
    x, y, loss = given()

    @ti.ad.grad_replaced
    @ti.func
    def with_field(a, i):
        return a * y[i]

    @ti.ad.grad_for(with_field)
    @ti.func
    def with_field_gradient(a, i, g):
        return g, 0

    @ti.kernel
    def run():
        for i in x:
            loss[None] += with_field(x[i], i)

    with pytest.raises(TinoteError, match="must depend on its arguments alone") as caught:
        run()
    assert "with_field(x[i], i)" in str(caught.value)


def test_a_gradient_for_a_device_function_is_one() -> None:
    with pytest.raises(DifferentiationError, match="must be one, too"):

        @ti.ad.grad_for(undeclared)
        def gradient(a: float, g: float) -> float:
            return g


weights = 0  # what `weighted_gradient` reads: each test puts a field here


@ti.ad.grad_replaced
@ti.func
def weighted(a, i):
    return a**3


@ti.ad.grad_for(weighted)
@ti.func
def weighted_gradient(a, i, g):
    return 3 * weights[i] * a**2 * g, 0


@ti.ad.grad_replaced
@ti.func
def series(a):
    return a**3


@ti.ad.grad_for(series)
@ti.func
def series_gradient(a, g):
    d = 0.0
    for k in range(3):
        if g > -100:
            d += weights[k] * a**k * g
    return d


def overwritten_in_the_iteration(x: Any, w: Any, loss: Any) -> Any:
    @ti.kernel
    def run():
        for i in x:
            loss[None] += weighted(x[i], i)
            w[i] = 0.0

    return run


def overwritten_in_an_inner_loop(x: Any, w: Any, loss: Any) -> Any:
    @ti.kernel
    def run():
        for i in x:
            for _ in range(3):
                loss[None] += weighted(x[i], i)
                w[i] *= 0.5

    return run


def overwritten_in_time_steps(x: Any, w: Any, loss: Any) -> Any:
    @ti.kernel
    def run():
        for _ in range(3):
            for i in range(5):
                loss[None] += weighted(x[i], i)
                w[i] *= 0.5

    return run


def overwritten_outside_of_loops(x: Any, w: Any, loss: Any) -> Any:
    @ti.kernel
    def run():
        loss[None] += weighted(x[1], 1)
        w[1] = 0.0
        for i in x:
            loss[None] += weighted(x[i], i)
            w[i] = 7.0

    return run


@pytest.mark.parametrize(
    ("make", "factors"),
    [
        (overwritten_in_the_iteration, [1.0] * 5),
        (overwritten_in_an_inner_loop, [1.75] * 5),
        (overwritten_in_time_steps, [1.75] * 5),
        (overwritten_outside_of_loops, [1.0] * 5),
    ],
)
def test_what_the_gradient_alone_reads_is_as_its_function_finds_it(make: Any, factors: list[float]) -> None:
    """The function itself does not load it, so that no value of the primal function is at hand."""
    global weights
    x, _, loss = given()
    weights = ti.field(ti.f64, 5)
    weights.from_numpy(np.arange(1.0, 6.0))
    with ti.ad.Tape(loss):
        make(x, weights, loss)()
    wanted = 3 * np.arange(1.0, 6.0) * factors * x.to_numpy() ** 2
    np.testing.assert_allclose(x.grad.to_numpy(), wanted, rtol=1e-12)


def test_what_a_later_loop_overwrites_is_read_by_a_loop_of_the_gradient() -> None:
    global weights
    x, _, loss = given()
    weights = ti.field(ti.f64, 3)
    weights.from_numpy(np.arange(1.0, 4.0))

    @ti.kernel
    def run():
        for i in x:
            loss[None] += series(x[i])
        for k in range(3):
            weights[k] = 0.0

    with ti.ad.Tape(loss):
        run()
    a = x.to_numpy()
    np.testing.assert_allclose(x.grad.to_numpy(), 1 + 2 * a + 3 * a**2, rtol=1e-12)


def test_what_is_overwritten_before_a_loop_of_the_gradient_reads_it_is_refused() -> None:
    global weights
    x, _, loss = given()
    weights = ti.field(ti.f64, 3)

    @ti.kernel
    def run():
        for i in x:
            loss[None] += series(x[i])
            weights[i % 3] = 0.0

    with pytest.raises(DifferentiationError, match="'weights' that is read here, but the kernel overwrites it"):
        run.grad()
