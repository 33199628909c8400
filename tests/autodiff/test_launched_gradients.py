"""Gradients that a program launches itself, differentiated in forward mode: tangents of adjoints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import scalar
from tinote.errors import DifferentiationError


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def along(run: Callable[[], None], out: Any, param: Any) -> dict[str, float]:
    """The derivative of `out` by the single number `param`, by each interface of forward mode and by differences."""
    start, gradients = [[(f, f.to_numpy()) for f in fields] for fields in _all_fields()]

    def again(value: float | None = None) -> None:
        for f, held in (*start, *gradients):
            f.from_numpy(held)
        if value is not None:
            param[None] = value
        out.fill(0)

    base = param.to_numpy().item()
    found: dict[str, float] = {}

    def value(h: float) -> float:
        again(base + h)
        run()
        return out.to_numpy().item()

    h = 1e-5
    found["differences"] = (value(h) - value(-h)) / (2 * h)
    again()
    with ti.ad.FwdMode(loss=out, param=param):
        run()
    found["forward mode"] = out.dual[None]
    again()
    found["jvp"] = float(ti.ad.jvp(run, wrt=param, loss=out)(1.0)[1])
    again()
    found["jacobian"] = float(ti.ad.jacobian(run, wrt=param, loss=out, mode="forward")())
    return found


def _all_fields() -> tuple[list[Any], list[Any]]:
    fields = list(ti.lang.session.state.session.fields)
    primals = [f for f in fields if f.buffer.primal is None]
    return primals, [f.grad for f in primals if f.has_grad]


def check(found: dict[str, float], expected: float | None = None) -> None:
    for name, value in found.items():
        wanted = found["differences"] if expected is None else expected
        assert value == pytest.approx(wanted, rel=1e-7), name
    assert found["forward mode"] != 0


def test_the_gradient_of_a_gradient() -> None:
    x, p = scalar(), scalar()
    w, out = scalar(needs_dual=True), scalar(needs_grad=None, needs_dual=True)

    @ti.kernel
    def energy():
        p[None] += w[None] * x[None] ** 2

    @ti.kernel
    def use():
        out[None] += x.grad[None]

    x[None], w[None], p.grad[None] = 3.0, 2.0, 1.0
    use()  # compiled before anything has a dual of its gradient
    check(along(lambda: (energy.grad(), use()), out, w), 6.0)

    def by_python() -> None:
        energy.grad()
        out[None] = x.grad[None] ** 2 + w[None]

    x.grad.fill(0)
    check(along(by_python, out, w), 2 * 12 * 6 + 1)


def test_forces_in_a_loop_of_time_steps() -> None:
    n = 5
    x, v = [ti.field(ti.f64, n, needs_grad=True, needs_dual=True) for _ in range(2)]
    k, out, u = [scalar(needs_dual=True) for _ in range(3)]

    @ti.kernel
    def potential():
        for i in range(n - 1):
            u[None] += 0.5 * k[None] * (x[i + 1] - x[i] - 1) ** 2 + 0.1 * ti.sin(x[i])

    @ti.kernel
    def move(dt: ti.f64):
        for i in x:
            v[i] -= dt * x.grad[i]
            x[i] += dt * v[i]

    @ti.kernel
    def measure():
        for i in x:
            out[None] += v[i] ** 2 + x[i]

    def run() -> None:
        for _ in range(6):
            x.grad.fill(0)
            u.grad[None] = 1.0
            potential.grad()
            move(0.1)
        measure()

    x.from_numpy(np.array([0.0, 1.2, 1.9, 3.3, 4.1]))
    k[None] = 3.0
    check(along(run, out, k))


def test_seeds_and_arguments_that_vary() -> None:
    x, p = ti.field(ti.f64, 3, needs_grad=True), scalar()
    w, out = scalar(needs_dual=True), scalar(needs_grad=None, needs_dual=True)

    @ti.kernel
    def energy(a: ti.f64, n: ti.i32):
        for i in range(n):
            p[None] += a * x[i] ** 3

    @ti.kernel
    def use():
        for i in x:
            out[None] += x.grad[i] ** 2

    def run() -> None:
        x.grad.fill(0)
        p.grad[None] = w[None] ** 2
        energy.grad(w[None] * 2, 3)
        use()

    x.from_numpy(np.array([0.5, 1.5, -1.0]))
    w[None] = 1.3
    check(along(run, out, w))


def test_arrays_as_arguments() -> None:
    x = ti.ndarray(ti.f64, 3, needs_grad=True)
    p = scalar()
    w, out = scalar(needs_dual=True), scalar(needs_grad=None, needs_dual=True)

    @ti.kernel
    def energy(q: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in q:
            p[None] += w[None] * q[i] ** 3

    def run() -> None:
        x.grad.fill(0)
        p.grad[None] = 1.0
        energy.grad(x)
        out[None] = x.grad[0] * x.grad[1] + x.grad[2]

    x.from_numpy(np.array([0.5, 1.5, -1.0]))
    w[None] = 1.3
    check(along(run, out, w))


def test_what_cannot_be_done_is_refused_by_line() -> None:
    x, p, c = scalar(), scalar(), scalar(needs_grad=None)
    w, out = scalar(needs_dual=True), scalar(needs_grad=None, needs_dual=True)

    @ti.kernel
    def energy():
        p[None] += c[None] * x[None] ** 2

    @ti.kernel
    def put():
        c[None] = w[None] * 2

    with pytest.raises(DifferentiationError, match="has no dual") as caught, ti.ad.FwdMode(loss=out, param=w):
        put()
        energy.grad()
    assert "the gradient of this kernel reads it" in str(caught.value)
