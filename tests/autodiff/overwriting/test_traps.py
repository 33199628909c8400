"""Traps for differentiation: values that are overwritten before the reverse sweep."""

import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401

trap = Traps()


@trap
def scratch_reused_in_parallel(x, g, loss):
    @ti.kernel
    def run():
        for i in x:
            g[0, i] = x[i]
            for t in range(4):
                g[1, i] = g[0, i] ** 2
                g[0, i] = g[1, i] * 0.5 + x[i] * t
            loss[None] += g[0, i]

    return run


@trap
def in_place_chain_kernel(x, loss):
    @ti.kernel
    def run():
        for i in x:
            x[i] = x[i] ** 2
        for i in x:
            x[i] = x[i] * 3 + ti.sin(x[i])
        for i in x:
            x[i] += x[i] ** 2
            x[i] *= x[i]
            x[i] /= 1 + x[i]
            x[i] -= 0.5 * x[i]
            loss[None] += x[i] ** 2

    return run


@trap
def neighbours_in_place_two_launches(x, y, loss):
    @ti.kernel
    def a():
        for i in x:
            y[i] = x[i] * x[(i + 1) % 5]

    @ti.kernel
    def b():
        for i in x:
            x[i] = y[i] * y[(i + 4) % 5] + x[i]

    @ti.kernel
    def t():
        for i in x:
            loss[None] += x[i] ** 2

    def f():
        for _ in range(3):
            a()
            b()
        t()

    return f


@trap
def copy_and_fill(x, y, z, loss):
    @ti.kernel
    def run(w: ti.f64):
        for i in x:
            z[i] = z[i] * y[i] * w

    @ti.kernel
    def t():
        for i in y:
            loss[None] += z[i] ** 2 + y[i] ** 3

    def f():
        z.copy_from(x)
        run(2.0)
        y.copy_from(z)
        z.fill(2.0)
        run(3.0)
        z.copy_from(x)
        run(1.0)
        t()

    return f


@trap
def read_before_write_in_loop(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            old = y[i]
            y[i] = x[i] * old
            new = y[i]
            y[i] = new * old
            loss[None] += y[i] * new * old

    return run


@trap
def index_from_overwritten_float(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            j = ti.cast(ti.abs(x[i]) * 4, ti.i32) % 5
            x[i] = x[i] * 2 + 0.01
            jj = ti.cast(ti.abs(x[i]) * 4, ti.i32) % 5
            loss[None] += y[j] * x[i] + y[jj] ** 2

    return run


@trap
def loss_partial_products(x, loss):
    @ti.kernel
    def run():
        for _ in range(1):
            loss[None] += x[0]
            loss[None] *= x[1]
            loss[None] -= x[2] ** 2
            loss[None] /= x[3]
            loss[None] = loss[None] * loss[None] + x[4]

    return run


@trap
def reads_loss(x, loss, s):
    @ti.kernel
    def a():
        for i in x:
            s[None] += x[i] ** 2

    @ti.kernel
    def b():
        loss[None] += ti.sqrt(s[None]) + s[None] ** 2
        s[None] = 0.0

    @ti.kernel
    def c():
        for i in x:
            s[None] += x[i] ** 3

    return (a, b, c, b)


@trap
def gauss_seidel(x, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for _ in range(3):
            for i in range(1, 4):
                x[i] = 0.5 * (x[i - 1] * x[i + 1] + x[i])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    return (run, total)


@trap
def prefix_sum_serial(x, y, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for i in range(1, 5):
            y[i] = y[i] * y[i - 1] + x[i]

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] ** 2

    return (run, total)


@trap
def swap_in_place(x, k, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for i in range(4):
            j = k[i]
            t = x[i] * 1.5
            x[i] = x[j] ** 2
            x[j] = t

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2 * (i + 1)

    return (run, total)


@trap
def bubble_sort(x, y, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for i in range(5):
            for j in range(4 - i):
                if x[j] > x[j + 1]:
                    x[j], x[j + 1] = (x[j + 1], x[j])

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] * (i + 1) ** 2

    return (run, total)


@trap
def integer_state_in_serial_loop(x, loss):
    n = ti.field(ti.i32, 3)

    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for i in range(6):
            n[i % 3] += n[(i + 1) % 3] + 1
            x[n[i % 3] % 5] *= x[(n[(i + 2) % 3] + 1) % 5]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2

    def f():
        n.fill(0)
        run()
        total()

    return f


@trap
def serial_outer(x, y, loss):
    @ti.kernel
    def run():
        a = 1.0
        ti.loop_config(serialize=True)
        for t in range(4):
            for i in range(5):
                y[i] = ti.tanh(y[i] + x[(i + t) % 5] * y[(i + 1) % 5])
        for i in y:
            loss[None] += y[i] * a

    return run


@trap
def serial_between(x, y, s, loss):
    @ti.kernel
    def run():
        for i in x:
            x[i] = x[i] * y[i] + 0.3
        ti.loop_config(serialize=True)
        for i in range(4):
            x[i + 1] = x[i] * x[i + 1] + s[None]
        for i in x:
            y[i] = y[i] * x[i]
        ti.loop_config(serialize=True)
        for i in range(1, 5):
            y[i] += y[i - 1] ** 2
        for i in y:
            loss[None] += y[i] ** 2 * x[i]

    return run


@trap
def serial_carries_out(x, y, s, loss):
    @ti.kernel
    def run():
        for i in x:
            x[i] = x[i] * y[i] + 0.3
        a = s[None]
        k = 0
        while k < 5:
            a = a * x[k] + 0.5
            x[k] = a * x[k]
            k += 1
        for i in x:
            x[i] = x[i] * a
        loss[None] += a**2
        for i in x:
            loss[None] += y[i] ** 2 * x[i] * a

    return run


@trap
def branch_between(x, y, s, loss):
    @ti.kernel
    def run(q: ti.i32):
        for i in x:
            x[i] = x[i] * y[i] + 0.3
        if q > 0:
            x[0] = x[1] * x[0]
            x[1] = x[0] ** 2
        else:
            x[2] *= x[2]
        for i in x:
            x[i] = x[i] ** 2
        x[3] = x[3] * x[0]
        for i in x:
            loss[None] += y[i] ** 2 * x[i]

    def f():
        run(1)
        run(0)

    return f


@trap
def serial_last_with_out(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            x[i] = x[i] * y[i] + 0.3
        a = 1.0
        ti.loop_config(serialize=True)
        for i in range(5):
            x[i] = x[i] * a
            a = a * 0.5 + x[i]
        loss[None] += a**2

    return run


@trap
def whiles_in_serial(x, y, g, loss):
    @ti.kernel
    def run():
        for i in x:
            g[0, i] = x[i] * y[i]
        ti.loop_config(serialize=True)
        for t in range(3):
            for i in range(5):
                n = 0
                while g[0, i] < 2 and n < 4:
                    g[0, i] = g[0, i] * 1.3 + 0.2 * g[0, (i + 1) % 5]
                    if g[0, i] > 1.5:
                        g[1, i] = g[0, i] * g[1, i] + t
                    n += 1
        for i in x:
            loss[None] += g[0, i] ** 2 + g[1, i] * x[i]

    return run


@trap
def shared_and_kept(x, M, y, loss):
    @ti.kernel
    def run():
        A = M[0] @ M[1]
        c = A.trace()
        for i in x:
            x[i] = x[i] * A[i % 2, 1] + c
        for i in x:
            y[i] = y[i] * x[i] ** 2
            x[i] = y[i] * A[0, i % 2] * x[i]
        for i in x:
            loss[None] += x[i] ** 2 + y[i]

    return run


@trap
def while_in_serial(x, loss):
    @ti.kernel
    def b():
        ti.loop_config(serialize=True)
        for _ in range(2):
            while x[0] < 2:
                x[0] = x[0] * 1.3 + x[1] ** 2

    @ti.kernel
    def c():
        loss[None] += x[0] ** 2

    return (b, c)


@trap
def kernel_local_changed_in_serial_loop(x, y, loss):
    @ti.kernel
    def run():
        t = x[0] * 0.8
        ti.loop_config(serialize=True)
        for i in range(5):
            y[i] = t
            t *= ti.sin(ti.exp(t) * x[1])

    @ti.kernel
    def total():
        for i in y:
            loss[None] += y[i] ** 2

    return (run, run, total)


@trap
def kernel_local_between_loops(x, y, loss):
    @ti.kernel
    def run():
        t = x[0]
        for i in x:
            y[i] = y[i] * t * y[i]
        ti.loop_config(serialize=True)
        for i in range(1, 5):
            t = t * ti.sin(t * x[i]) + 1
            y[i] *= t
        t = t**2
        for i in y:
            loss[None] += t * y[i] ** 2

    return (run, run)


@trap
def needed_by_what_runs_again(x, y, loss):
    @ti.kernel
    def run():
        t = x[1] * 0.8
        for i in x:
            x[i] += 0.3 * t
        for i in x:
            y[i] = ti.sin(y[i])
            y[i] = y[i] ** 2 + t
        for i in x:
            loss[None] += y[i] ** 2 + x[i]

    return (run, run)


@pytest.mark.parametrize("name", trap)
def test_trap(name: str) -> None:
    trap.check(name)
