"""Traps that combine several things that each are right alone: names for the same memory, fields that change places,
functions that overwrite, kernels that are defined anew.
"""

import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401

trap = Traps()


@trap
def function_overwrites_in_a_branch_of_a_while(x, z, k, loss):
    @ti.func
    def bump(i, a):
        if a > 0.5:
            z[i] = z[i] * a + 0.3
        else:
            z[i] = ti.sin(z[i] + a)
        return z[i]

    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for r in range(2):
            j, count = r, 0
            while count < 7:
                q = bump(j, x[j] * 1.1)
                if q > 0.2:
                    j = k[j]
                else:
                    j = (j + 1) % 5
                z[j] += q * x[k[j]]
                count += 1
        for i in z:
            loss[None] += z[i] ** 2

    return run


@trap
def kernel_defined_anew(x, z, loss):
    def defined(power):
        @ti.kernel
        def run():
            for i in x:
                z[i] = z[i] * 0.5 + x[i] ** power

        return run

    @ti.kernel
    def end():
        for i in z:
            loss[None] += z[i] ** 3

    def f():
        for power in (2, 3):
            defined(power)()
        end()

    return f


@trap
def templates_that_are_one_field(x, z, loss):
    @ti.kernel
    def mix(a: ti.template(), b: ti.template()):
        ti.loop_config(serialize=True)
        for i in range(5):
            a[i] = a[i] * b[(i + 1) % 5] + x[i]

    @ti.kernel
    def end(a: ti.template()):
        for i in a:
            loss[None] += a[i] ** 2

    def f():
        mix(z, z)
        mix(z, x)
        mix(z, z)
        end(z)

    return f


@trap
def fields_that_change_places(x, y, z, loss):
    @ti.kernel
    def step(a: ti.template(), b: ti.template()):
        for i in range(5):
            b[i] = a[i] * a[(i + 1) % 5] + 0.3 * x[i]

    @ti.kernel
    def end(a: ti.template()):
        for i in a:
            loss[None] += a[i] ** 2

    def f():
        a, b = z, y
        a.fill(0.4)
        for _ in range(5):
            step(a, b)
            a, b = b, a
        end(a)

    return f


@trap
def array_passed_twice(x, loss):
    a = ti.ndarray(ti.f64, 5, needs_grad=True, needs_dual=True)

    @ti.kernel
    def put(a: ti.types.ndarray()):
        for i in x:
            a[i] = x[i] * (1.0 + a[i])

    @ti.kernel
    def get(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in x:
            loss[None] += a[i] * b[4 - i]

    def f():
        a.fill(0.5)
        put(a)
        put(a)
        get(a, a)

    return f


@trap
def copies_between_launches(x, y, z, loss):
    @ti.kernel
    def square(a: ti.template()):
        for i in a:
            a[i] = a[i] * a[i] + 0.2

    @ti.kernel
    def end():
        for i in z:
            loss[None] += z[i] * y[i] * x[i]

    def f():
        z.copy_from(x)
        square(z)
        y.copy_from(z)
        square(z)
        z.copy_from(y)
        square(y)
        end()

    return f


@trap
def rows_and_columns(M, loss):
    @ti.kernel
    def run():
        for i in M:
            m = M[i]
            row = m[0, :]
            column = m[:, 1]
            m[1, :] = row * column
            m[:, 0] = m[:, 1] * row[0]
            loss[None] += (m @ m.transpose()).norm_sqr() + m.determinant()

    return run


@trap
def components_of_a_field_at_run_time(M, k, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for q in range(5):
            i = k[q] % 3
            a = k[(q + i) % 5] % 2
            M[i][a, 1 - a] = M[(i + 1) % 3][1 - a, a] * M[i][a, a]
            M[i][a, a] *= 1.1 * M[i][1 - a, 1 - a]
        for i in M:
            loss[None] += M[i].norm_sqr()

    return run


@trap
def downwards_and_in_steps(x, z, loss):
    @ti.kernel
    def run():
        for j in range(4, -1, -1):
            z[4 - j] = x[j] ** 2 * (j + 1)
        ti.loop_config(serialize=True)
        for j in range(4, -1, -2):
            z[j] = z[(j + 2) % 5] * x[j] + x[(j + 4) % 5]
        for j in range(ti.i64(0), ti.i64(5), 2):
            z[j] *= x[j]
        for i in z:
            loss[None] += z[i] ** 2

    return run


@trap
def several_atomics_whose_old_values_count(x, y, z, loss):
    @ti.kernel
    def run():
        ti.loop_config(serialize=True)
        for j in range(5):
            a = ti.atomic_sub(z[j % 2], x[j] * y[j])
            b = ti.atomic_max(z[2], x[j] ** 2)
            c = ti.atomic_mul(z[3], 1.0 + a * 0.1)
            d = ti.atomic_min(z[4], y[j])
            loss[None] += a * b + c * d

    def f():
        z.fill(0.5)
        run()

    return f


@trap
def integers_that_steer_and_change(x, z, k, loss):
    @ti.kernel
    def use():
        for i in x:
            if k[i] > 1:
                z[i] = z[i] * x[k[i]] + x[i]

    @ti.kernel
    def turn():
        for i in k:
            k[i] = (k[i] * 3 + 1) % 5

    @ti.kernel
    def end():
        for i in z:
            loss[None] += z[i] ** 2

    def f():
        z.fill(0.3)
        for i in range(5):
            k[i] = i
        for _ in range(3):
            use()
            turn()
        end()

    return f


@trap
def iteration_without_a_known_end(x, y, loss):
    @ti.func
    def root(a):
        t, n = 1.0, 0
        while ti.abs(t * t - a) > 1e-13 and n < 40:
            t = 0.5 * (t + a / t)
            n += 1
        return t

    @ti.kernel
    def run():
        for i in x:
            loss[None] += root(2.0 + x[i]) * root(3.0 + y[i] * x[i])

    return run


@pytest.mark.parametrize("name", trap)
def test_trap(name: str) -> None:
    trap.check(name)
