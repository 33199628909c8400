# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
"""Launches that save what their gradients would compute a second time (`ti.ad.value_and_grad`, `grad`, `vjp`)."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.support import unfilled
from tinote.compiler.requests import GRADIENT, SHARED_GRADIENT, SHARING
from tinote.ir import primitives as p
from tinote.ir.nodes import For, Function, Prim
from tinote.ir.query import walk
from tinote.lang.ad.journal import saved_values
from tinote.lang.session.state import session as state

VECTOR: Any = ti.types.ndarray(dtype=ti.f64, ndim=1)


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that a launch is said to fill holds no numbers before."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    monkeypatch.setattr(state, "new_memory", unfilled)


def filled(kernel: Any) -> list[bool]:
    """Of each array that a launch saves, whether it is sure to fill it."""
    (instance,) = kernel.instances
    (request,) = requests(kernel) & {SHARING}
    _, facts = instance.specialisation.compiled(request)
    return list(facts.saved.filled)


def log_sum_exp() -> Any:
    @ti.kernel
    def objective(x: VECTOR) -> ti.f64:
        shift = x[0]
        for i in range(x.shape[0]):
            shift = ti.max(shift, x[i])
        total = 0.0
        for i in range(x.shape[0]):
            total += ti.exp(x[i] - shift)
        return shift + ti.log(total)

    return objective


def least_squares() -> Any:
    @ti.kernel
    def objective(x: VECTOR, t: VECTOR) -> ti.f64:
        total = 0.0
        for i in range(t.shape[0]):
            power = 1.0
            value = 0.0
            for j in range(x.shape[0]):
                value += x[j] * power
                power *= t[i]
            total += (value - 1.0) ** 2
        return total

    return objective


def requests(kernel: Any) -> set[Any]:
    """What has been compiled of a kernel, its derivatives with respect to arguments or not."""
    (instance,) = kernel.instances
    return {request for request, _ in instance.specialisation.results()}


def reverse_of(kernel: Any, request: Any) -> Function:
    (instance,) = kernel.instances
    return instance.specialisation._run(request)[0]


def test_what_depends_on_an_argument_only_is_differentiated_by_it() -> None:
    """Neither the sine nor the cosine is active where memory alone is differentiated."""
    x = ti.field(ti.f64, 5, needs_grad=True)
    x.from_numpy(np.linspace(0.5, 1.5, 5))

    @ti.kernel
    def rotate(a: ti.f64) -> ti.f64:
        total = 0.0
        for i in x:
            total += x[i] * ti.cos(a) - ti.exp(ti.sin(a)) * i
        return total

    def f(a: float) -> Any:
        return rotate(a)

    a, numbers = 0.7, x.to_numpy()
    by_argument = -numbers.sum() * np.sin(a) - 10 * np.exp(np.sin(a)) * np.cos(a)
    assert ti.ad.grad(f)(a) == pytest.approx(by_argument, rel=1e-12)
    assert ti.ad.grad(rotate)(a) == pytest.approx(by_argument, rel=1e-12)
    assert SHARED_GRADIENT.with_arguments in requests(rotate)
    assert ti.ad.grad(f, wrt=x)(a) == pytest.approx(np.full(5, np.cos(a)), rel=1e-12)


def test_the_gradient_of_log_sum_exp_computes_no_exponentials() -> None:
    kernel = log_sum_exp()
    x = np.random.default_rng(3).normal(size=500)
    value, found = ti.ad.value_and_grad(kernel)(x)
    weights = np.exp(x - x.max())
    assert value == pytest.approx(x.max() + np.log(weights.sum()), rel=1e-14)
    assert found == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert SHARED_GRADIENT.with_arguments in requests(kernel)
    assert SHARING in requests(kernel)
    assert GRADIENT.with_arguments not in requests(kernel)
    shared = reverse_of(kernel, SHARED_GRADIENT.with_arguments)
    assert not any(isinstance(op, Prim) and op.prim is p.exp for op in walk(shared.region))
    assert all(filled(kernel))


def test_the_gradient_of_least_squares_runs_one_inner_loop() -> None:
    kernel = least_squares()
    random = np.random.default_rng(4)
    x, t = random.normal(size=40), random.uniform(-1, 1, 30)
    found = ti.ad.grad(kernel)(x, t)
    powers = t[:, None] ** np.arange(40)
    assert found == pytest.approx(2 * powers.T @ (powers @ x - 1), rel=1e-10)

    def loops(request: Any) -> int:
        return sum(isinstance(op, For) for op in walk(reverse_of(kernel, request).region))

    assert loops(SHARED_GRADIENT.with_arguments) < loops(GRADIENT.with_arguments)


def test_what_takes_too_much_memory_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_values, "MOST_SHARED", 100)
    kernel = log_sum_exp()
    x = np.random.default_rng(5).normal(size=300)
    weights = np.exp(x - x.max())
    assert ti.ad.grad(kernel)(x) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert GRADIENT.with_arguments in requests(kernel)


def test_old_values_that_take_too_much_memory_to_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a gradient cannot do without is kept all the same."""
    monkeypatch.setattr(saved_values, "MOST_SHARED", 10)
    x, out = ti.field(ti.f64, 50, needs_grad=True), ti.field(ti.f64, 50, needs_grad=True)
    count, loss = ti.field(ti.i32, ()), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def append():
        for i in x:
            if x[i] > 0:
                k = ti.atomic_add(count[None], 1)
                out[k] = x[i] ** 2

    @ti.kernel
    def total():
        for i in out:
            loss[None] += ti.exp(out[i])

    def run() -> None:
        count[None] = 0
        out.fill(0)
        append()
        total()

    numbers = np.random.default_rng(1).normal(size=50)
    x.from_numpy(numbers)
    gradient = ti.ad.grad(run, wrt=x, loss=loss)
    wanted = np.where(numbers > 0, 2 * numbers * np.exp(numbers**2), 0)
    for _ in range(6):
        assert gradient() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_memory_without_a_gradient_between_two_launches(count: int) -> None:
    """Temporary adjoints, and a launch that is not the last one."""
    between = ti.field(ti.f64, count)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def first(x: VECTOR):
        for i in range(x.shape[0]):
            between[i] = ti.exp(x[i]) * ti.tanh(x[i])

    @ti.kernel
    def second():
        for i in range(count):
            loss[None] += ti.exp(between[i]) ** 2

    def run(x: Any) -> None:
        first(x)
        second()

    x = np.random.default_rng(6).normal(size=count) * 0.3
    gradient = ti.ad.grad(run, argnums=0, loss=loss)
    b = np.exp(x) * np.tanh(x)
    wanted = 2 * np.exp(2 * b) * (b + np.exp(x) / np.cosh(x) ** 2)
    for _ in range(6):
        assert gradient(x) == pytest.approx(wanted, rel=1e-11)


def test_branches_loops_that_begin_elsewhere_and_empty_ones() -> None:
    @ti.kernel
    def objective(x: VECTOR, first: ti.i32, most: ti.i32) -> ti.f64:
        total = 0.0
        for i in range(first, x.shape[0]):
            if x[i] > 0.0:
                product = 1.0
                for _ in range(1, most):
                    product *= ti.exp(x[i])
                total += ti.log(1.0 + product) * product
        return total

    x = np.random.default_rng(7).normal(size=50) * 0.2
    gradient = ti.ad.grad(objective)
    for first, most in ((0, 5), (3, 4), (50, 4), (0, 1), (0, 0)):
        iterations = max(most - 1, 0)
        product = np.exp(iterations * x)
        wanted = iterations * product * (np.log1p(product) + product / (1 + product)) * (x > 0)
        wanted[:first] = 0
        for _ in range(5):
            assert gradient(x, first, most) == pytest.approx(wanted, rel=1e-11, abs=1e-14)
    assert not any(filled(objective))
