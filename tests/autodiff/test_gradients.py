"""Gradients of programs in the user's language against central differences."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, check_gradient, scalar, session  # noqa: F401


def test_inner_loops_and_carried_values() -> None:
    n = 5
    x, w, loss = array(n), array(n), scalar()
    iterations = ti.field(ti.i32, shape=n)
    iterations.from_numpy(np.array([0, 1, 7, 3, -2], np.int32))

    @ti.kernel
    def run():
        for i in x:
            s, p = 0.0, 1.0
            for k in range(iterations[i]):
                s += ti.exp(x[(i + k) % n] * w[i]) * p
                p = p * 0.9 + 0.1 * ti.tanh(s)
                for j in range(k):
                    p += 0.05 * s * x[j % n]
            loss[None] += s * p

    x.from_numpy(np.linspace(-0.5, 0.5, n))
    w.from_numpy(np.linspace(0.2, 0.9, n))
    check_gradient(run, loss, [x, w])


def test_whiles_branches_and_jumps() -> None:
    n = 6
    x, loss = array(n), scalar()

    @ti.kernel
    def run():
        for i in x:
            s = x[i] + 2
            k = 0
            while s > 1.05:
                s = ti.sqrt(s) * (1 + 0.001 * i)
                k += 1
                if k > 12:
                    break
            t = 0.0
            for j in range(8):
                if j % 3 == 1:
                    continue
                if j > i + 2:
                    break
                t += s**j if j % 2 == 0 else x[j % n] * s
            loss[None] += t if t > 3 else t * t

    x.from_numpy(np.linspace(0.1, 3.3, n))
    check_gradient(run, loss, [x])


def test_vectors_matrices_and_funcs() -> None:
    n = 4
    x = ti.Vector.field(2, ti.f64, shape=n, needs_grad=True)
    F = ti.Matrix.field(2, 2, ti.f64, shape=n, needs_grad=True)
    mu, loss = scalar(), scalar()

    @ti.func
    def energy(A):
        J = A.determinant()
        return mu[None] * ((A @ A.transpose()).trace() - 2) - mu[None] * ti.log(J) + 0.5 * ti.log(J) ** 2

    @ti.kernel
    def run():
        for i in x:
            A = F[i] + 0.1 * x[i].outer_product(x[(i + 1) % n])
            loss[None] += energy(A) + (A.inverse() @ x[i]).norm(1e-3) + x[i].dot(A @ x[i])

    random = np.random.default_rng(3)
    x.from_numpy(random.normal(size=(n, 2)))
    F.from_numpy(np.eye(2) + 0.1 * random.normal(size=(n, 2, 2)))
    mu[None] = 1.7
    check_gradient(run, loss, [x, F, mu])


def test_scatter_and_gather_through_a_grid() -> None:
    """The heart of MPM: particles to grid and back, each step in its own slice, the grid cleared between."""
    n, m, steps = 5, 6, 3
    x, v, grid, loss = array(steps + 1, n), array(steps + 1, n), array(m), scalar()

    @ti.kernel
    def clear():
        for i in grid:
            grid[i] = 0

    @ti.kernel
    def scatter(t: ti.i32):
        for p in range(n):
            base = ti.cast(ti.floor(x[t, p]), ti.i32)
            fx = x[t, p] - base
            grid[base] += (1 - fx) * v[t, p]
            grid[base + 1] += fx * v[t, p]

    @ti.kernel
    def gather(t: ti.i32):
        for p in range(n):
            base = ti.cast(ti.floor(x[t, p]), ti.i32)
            fx = x[t, p] - base
            nv = (1 - fx) * grid[base] + fx * grid[base + 1]
            v[t + 1, p] = nv * 0.9
            x[t + 1, p] = x[t, p] + 0.1 * nv

    @ti.kernel
    def total():
        for p in range(n):
            loss[None] += x[steps, p] ** 2 + v[steps, p]

    def run() -> None:
        for t in range(steps):
            clear()
            scatter(t)
            gather(t)
        total()

    start = np.zeros((steps + 1, n))
    start[0] = [0.3, 1.4, 1.6, 2.2, 3.7]
    x.from_numpy(start)
    start[0] = [0.5, -0.2, 0.1, 0.3, -0.4]
    v.from_numpy(start)
    check_gradient(run, loss, [x, v])


def test_minima_maxima_selects_and_casts() -> None:
    n = 6
    x, loss = array(n), scalar()

    @ti.kernel
    def run():
        for i in x:
            a = ti.min(x[i], 0.5) + ti.max(x[i] * 2, -x[i], 0.1)
            b = ti.select(x[i] > 0, ti.sqrt(abs(x[i])), x[i] ** 2)
            c = ti.cast(ti.cast(a * b, ti.f32), ti.f64) + ti.cast(x[i] * 10, ti.i32)
            loss[None] += a * b + ti.floor(c) * x[i] + ti.atan2(a, b + 3) + abs(x[i]) ** 1.5

    x.from_numpy(np.array([-1.33, -0.41, -0.12, 0.27, 0.44, 1.61]))
    check_gradient(run, loss, [x])


def test_several_loops_in_one_kernel() -> None:
    n = 5
    x, y, z, loss = array(n), array(n), scalar(), scalar()

    @ti.kernel
    def run(a: ti.f64):
        for i in x:
            y[i] = ti.sin(x[i]) * a
        b = a * 2
        for i in y:
            z[None] += y[i] * y[(i + 1) % n] * b
        loss[None] += z[None] ** 2
        for i in x:
            loss[None] += x[i] * y[i]

    x.from_numpy(np.linspace(0.3, 1.2, n))

    def start() -> None:
        z[None] = 0
        run(1.3)

    check_gradient(start, loss, [x])


@pytest.mark.parametrize("threads", [1, 2])
def test_fast_and_exact_maths_agree(threads: int) -> None:
    def gradient(fast: bool) -> Any:
        ti.init(default_fp=ti.f64, fast_math=fast, num_threads=threads)
        x, loss = array(40), scalar()

        @ti.kernel
        def run():
            for i in x:
                s = x[i]
                for k in range(5):
                    s = s / (1 + s * s) + ti.cos(s) * k
                loss[None] += s

        x.from_numpy(np.linspace(-2, 2, 40))
        with ti.ad.Tape(loss=loss):
            run()
        return x.grad.to_numpy()

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=1e-9)


def test_finite_where_a_limit_exists() -> None:
    x, loss = array(2), scalar()
    v = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def run():
        loss[None] += (
            v[None].norm()
            + ti.sqrt(x[0] ** 2)
            + ti.select(x[1] > 0, ti.log(x[1]), 3 * x[1])
            + ti.select(x[1] > 0, 1 / x[1], 0.0)
        )

    with ti.ad.Tape(loss=loss):
        run()
    assert np.isfinite(v.grad.to_numpy()).all()
    assert np.isfinite(x.grad.to_numpy()).all()
    assert x.grad[1] == 3
