"""Traps for differentiation: memory that is laid out unusually, updated atomically or divided between steps."""

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401

trap = Traps()


@trap
def struct_field(x, y, loss):
    P = ti.types.struct(p=ti.types.vector(2, ti.f64), m=ti.f64)
    s = P.field(shape=5, needs_grad=True, needs_dual=True)

    @ti.kernel
    def fill():
        for i in x:
            s[i].p = ti.Vector([x[i], y[i] * x[i]])
            s[i].m = ti.exp(y[i])

    @ti.kernel
    def run():
        for i in s:
            q = s[i]
            loss[None] += q.m * q.p.norm_sqr() + s[(i + 1) % 5].p.x

    return (fill, run)


@trap
def offset_and_order(x, loss):
    a = ti.field(ti.f64, (3, 4), offset=(-1, 2), order="ji", needs_grad=True, needs_dual=True)
    b = ti.Vector.field(2, ti.f64, (5,), layout=ti.Layout.SOA, needs_grad=True, needs_dual=True)

    @ti.kernel
    def run():
        for i, j in a:
            a[i, j] = x[(i + j) % 5] ** 2 * i
        for i in b:
            b[i] = ti.Vector([x[i], a[0, 2]])
            b[i].y += 2 * x[i]
        for i, j in a:
            loss[None] += a[i, j] * b[j - 2][(i + 1) % 2]

    return run


@trap
def ndarray_argument(x, loss):
    a = ti.ndarray(ti.f64, 5, needs_grad=True, needs_dual=True)
    b = ti.Vector.ndarray(2, ti.f64, 5, needs_grad=True, needs_dual=True)

    @ti.kernel
    def fill(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in x:
            a[i] = x[i] ** 2
            b[i] = ti.Vector([x[i], ti.sin(x[i])])

    @ti.kernel
    def run(a: ti.types.ndarray(ti.f64, 1), b: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] * b[i].norm_sqr() * a[(i + 1) % 5]

    def f():
        fill(a, b)
        run(a, b)

    return f


@trap
def numpy_argument_constant(x, loss):
    w = np.array([1.0, 2.0, -1.0, 0.5, 3.0])

    @ti.kernel
    def run(w: ti.types.ndarray()):
        for i in x:
            loss[None] += w[i] * x[i] ** 2
            w[i] = w[i] * 1.0

    def f():
        run(w)

    return f


@trap
def u8_and_i64(x, loss):
    n = ti.field(ti.u8, 5)
    m = ti.field(ti.i64, 5)

    @ti.kernel
    def run():
        for i in x:
            n[i] = ti.cast(250 + i * 2, ti.u8)
            m[i] = ti.cast(n[i], ti.i64) * 1000000000
            loss[None] += x[i] * n[i] + x[i] ** 2 * (m[i] // 100000000000)

    return run


@trap
def atomic_old_value(x, y, loss):
    @ti.kernel
    def run():
        for _ in range(1):
            a = 0.0
            for j in range(5):
                old = ti.atomic_add(a, x[j])
                loss[None] += old * y[j]
            b = 2.0
            for j in range(5):
                old = ti.atomic_sub(b, x[j] * y[j])
                loss[None] += ti.sin(old)

    return run


@trap
def atomic_old_value_field(x, y, z, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for j in range(5):
            old = ti.atomic_add(z[j % 2], x[j])
            loss[None] += old * y[j]

    def f():
        z.fill(0.5)
        run()

    return f


@trap
def scatter_duplicates(x, y, z, k, loss):
    @ti.kernel
    def run():
        for i in x:
            for j in range(3):
                z[k[i * j % 5] % 2] += x[i] * y[j]
        for i in range(2):
            loss[None] += z[i] ** 3

    def f():
        z.fill(0)
        run()

    return f


@trap
def time_stepping_in_kernel(x, g, loss):
    @ti.kernel
    def run():
        for i in x:
            g[0, i] = x[i]
        for t in ti.static(range(3)):
            for i in x:
                g[t + 1, i] = g[t, i] + 0.3 * ti.sin(g[t, (i + 1) % 5]) * g[t, i]
        for i in x:
            loss[None] += g[3, i] ** 2

    return run


@trap
def time_loop_serial(x, g, loss):
    @ti.kernel
    def start():
        for i in x:
            g[0, i] = x[i]

    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for t in range(3):
            for i in range(5):
                g[t + 1, i] = g[t, i] + 0.3 * ti.sin(g[t, (i + 1) % 5]) * g[t, i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += g[3, i] ** 2

    return (start, run, total)


@trap
def time_loop_serial_one_kernel(x, g, loss):
    @ti.kernel
    def run():
        for i in x:
            g[0, i] = x[i]
        ti.loop_config(serialize=True)
        for t in range(3):
            for i in range(5):
                g[t + 1, i] = g[t, i] + 0.3 * ti.sin(g[t, (i + 1) % 5]) * g[t, i]
        for i in x:
            loss[None] += g[3, i] ** 2

    return run


@trap
def mod_two_buffers(x, g, loss):
    @ti.kernel
    def put():
        for i in x:
            g[0, i] = x[i]

    @ti.kernel
    def step(t: ti.i32):
        for i in x:
            g[(t + 1) % 2, i] = g[t % 2, i] * g[t % 2, (i + 1) % 5] + 0.5

    @ti.kernel
    def total(t: ti.i32):
        for i in x:
            loss[None] += g[t % 2, i] ** 2

    def f():
        put()
        for t in range(5):
            step(t)
        total(5)

    return f


@trap
def mod_two_buffers_serial_kernel(x, g, loss):
    @ti.kernel
    def put():
        for i in x:
            g[0, i] = x[i]

    @ti.kernel
    def steps():
        ti.loop_config(serialize=True)
        for t in range(5):
            for i in range(5):
                g[(t + 1) % 2, i] = g[t % 2, i] * g[t % 2, (i + 1) % 5] + 0.5

    @ti.kernel
    def total(t: ti.i32):
        for i in x:
            loss[None] += g[t % 2, i] ** 2

    def f():
        put()
        steps()
        total(5)

    return f


@trap
def red_black_nonlinear(x, loss):
    @ti.kernel
    def sweep(c: ti.i32):
        for i in range(1, 4):
            if i % 2 == c:
                x[i] = ti.sin(x[i - 1]) * x[i + 1] + x[i] ** 2

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    def f():
        for s in range(4):
            sweep(s % 2)
        total()

    return f


@trap
def disjoint_halves(x, loss):
    a = ti.field(ti.f64, 10, needs_grad=True, needs_dual=True)

    @ti.kernel
    def put():
        for i in x:
            a[i] = x[i]

    @ti.kernel
    def run(lo: ti.i32):
        for i in range(5):
            a[5 + i] = a[i] ** 2 * a[(i + lo) % 5]

    @ti.kernel
    def back():
        for i in range(5):
            a[i] = a[5 + i] * a[9 - i]

    @ti.kernel
    def total():
        for i in a:
            loss[None] += a[i] ** 2

    def f():
        put()
        for t in range(3):
            run(t)
            back()
        total()

    return f


@trap
def bilinear(g, x, y, loss):
    @ti.kernel
    def put():
        for i, j in g:
            g[i, j] = ti.sin(i * 1.3 + j * 0.7) * x[j]

    @ti.kernel
    def run():
        for i in x:
            u, w = (x[i] + 1.3, y[i] + 1.8)
            a, b = (int(ti.floor(u)), int(ti.floor(w)))
            fu, fw = (u - a, w - b)
            below = g[a, b] * (1 - fu) + g[a + 1, b] * fu
            above = g[a, b + 1] * (1 - fu) + g[a + 1, b + 1] * fu
            loss[None] += below * (1 - fw) + above * fw

    return (put, run)


@pytest.mark.parametrize("name", trap)
def test_trap(name: str) -> None:
    trap.check(name)
