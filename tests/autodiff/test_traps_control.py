"""Traps for differentiation: control flow."""

import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401

trap = Traps()


@trap
def carried_vector(x, v, loss):
    @ti.kernel
    def run():
        for i in x:
            a = ti.Vector([x[i], 1.0])
            for j in range(4):
                a = ti.Vector([a.y * v[j].x, a.x + a.y * v[j].y])
            loss[None] += a.norm_sqr()

    return run


@trap
def carried_matrix(x, M, loss):
    @ti.kernel
    def run():
        for i in x:
            A = ti.Matrix.identity(ti.f64, 2)
            for j in range(3):
                A = A @ M[j] * x[i] + A.transpose()
            loss[None] += A.determinant() + A[0, 1] ** 2

    return run


@trap
def carried_index(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            at, p = (i, 1.0)
            for _ in range(6):
                p *= 1 + x[at]
                at = k[at]
            loss[None] += p

    return run


@trap
def running_min_max(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            lo, hi = (100.0, -100.0)
            for j in range(5):
                lo = min(lo, x[j] * y[i])
                hi = ti.max(hi, y[j] - x[i])
            loss[None] += lo * hi

    return run


@trap
def sibling_loops(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            a = 0.0
            for j in range(i + 1):
                a += ti.exp(x[j])
            b = a * a
            for j in range(5):
                b = ti.sin(b * y[j]) + a
            loss[None] += a * b

    return run


@trap
def saved_in_one_loop_used_in_another(x, loss):
    @ti.kernel
    def run():
        for i in x:
            keep = 0.0
            for j in range(3):
                q = x[i] * (j + 1)
                for m in range(j):
                    q = q * ti.cos(x[m]) + keep
                keep = q
            for j in range(2):
                loss[None] += keep**2 * x[j]

    return run


@trap
def triangular(x, y, loss):
    @ti.kernel
    def run():
        for i in range(5):
            for j in range(i):
                for m in range(j, i):
                    loss[None] += x[i] * y[j] * ti.exp(x[m])

    return run


@trap
def data_dependent_bound(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            p = x[i]
            for j in range(k[i] - 1, k[k[i]] + 2):
                p = p * x[j % 5] + 0.3
            loss[None] += p

    return run


@trap
def bound_from_float(x, loss):
    @ti.kernel
    def run():
        for i in x:
            n = int(x[i] * 6)
            p = 1.0
            for _ in range(n):
                p *= x[i]
            loss[None] += p

    return run


@trap
def bound_argument(x, loss):
    @ti.kernel
    def run(a: ti.i32, b: ti.i32):
        for i in range(a, b):
            p = 1.0
            for j in range(b - a - i):
                p = p * x[i] + x[j]
            loss[None] += p

    def f():
        run(0, 5)
        run(3, 1)
        run(2, 2)

    return f


@trap
def negative_trips(x, loss):
    @ti.kernel
    def run():
        for i in x:
            p = x[i]
            for j in range(2 - i):
                p = p * p + x[j]
            for _ in range(0):
                p = p * 0
            for _ in range(3, -2):
                p = p * 0
            for j in range(-3, i - 2):
                p = ti.sin(p) + j
            loss[None] += p

    return run


@trap
def zero_size_loops(x, loss):
    n = ti.field(ti.i32, ())

    @ti.kernel
    def run():
        for i in range(n[None]):
            loss[None] += x[i]
        for i in range(-2, n[None] + 1):
            loss[None] += x[i + 2] ** 2

    return run


@trap
def thousands_of_turns(x, s, loss):
    @ti.kernel
    def run():
        for i in x:
            p = x[i]
            for _ in range(3000):
                p = p + 0.001 * ti.sin(p * s[None])
            loss[None] += p

    return run


@trap
def nested_while(x, loss):
    @ti.kernel
    def run():
        for i in x:
            p, n = (1.0 + ti.abs(x[i]), 0)
            while True:
                m = 0
                while m < n:
                    p += 0.1 * ti.sin(p * x[m])
                    m += 1
                    if p > 3:
                        break
                n += 1
                if n > 4 or p > 4:
                    break
                if n % 2 == 0:
                    continue
                p *= 1.1
            loss[None] += p * p

    return run


@trap
def nested_break_continue(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            p = x[i]
            for a in range(4):
                if a == 2 and p > 0:
                    continue
                for b in range(5):
                    if b == a:
                        continue
                    if p > 2:
                        break
                    p = p * 1.1 + y[b] * 0.2
                else_ = p * 2
                if else_ > 3.5:
                    break
                p += 0.1 * else_
            loss[None] += p**2

    return run


@trap
def early_return_func(x, y, loss):
    @ti.func
    def f(a, b):
        if a > 0.5:
            return a * b
        for _ in range(5):
            b = b * 0.9 + a
            if b > 1.5:
                return b * b
        return b - a

    @ti.kernel
    def run():
        for i in x:
            loss[None] += f(x[i], y[i]) + f(y[i], f(x[i], 1.0))

    return run


@trap
def conditional_expressions(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            a = x[i] if x[i] > y[i] else y[i] ** 2 if y[i] > 0.5 else -x[i] * y[i]
            b = ti.sqrt(x[i]) if x[i] > 0 else 2 * x[i]
            c = ti.log(y[i]) if y[i] > 0 else 1 / (y[i] - 1)
            loss[None] += a * b * c

    return run


@trap
def short_circuit(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            j = k[i] * 2
            if j < 5 and x[j] > 0:
                loss[None] += x[j] ** 3
            elif not (i == 0 or x[i] > 1):
                loss[None] += ti.cos(x[i])

    return run


@trap
def top_level_statements(x, s, loss):
    @ti.kernel
    def run(c: ti.f64):
        a = s[None] * c
        b = a**2
        for i in x:
            loss[None] += x[i] * b
        if a > 0:
            loss[None] += ti.exp(a)
        t = 0.0
        for i in x:
            t += x[i] * a
        loss[None] += t * t

    return lambda: run(1.7)


@trap
def top_level_shared_array(x, s, loss):
    @ti.kernel
    def run():
        w = ti.Vector([s[None], s[None] ** 2, 1.0])
        for i in x:
            loss[None] += x[i] * w[i % 3]

    return run


@trap
def shared_matrix_twice(x, M, loss):
    @ti.kernel
    def run():
        A = M[0] @ M[1]
        for i in x:
            loss[None] += (A @ ti.Vector([x[i], 1.0])).norm_sqr()
        A[0, 1] *= A[1, 1]
        B = A @ M[2]
        for i in x:
            for j in range(3):
                loss[None] += A[i % 2, j % 2] * x[i] + B.trace()
        loss[None] += A[0, 1]

    return run


@trap
def returning_kernel(x, y, loss):
    @ti.kernel
    def run() -> ti.f64:
        a = 0.0
        for i in x:
            y[i] = x[i] ** 2
            a += y[i]
        return a

    @ti.kernel
    def total():
        for i in x:
            loss[None] += y[i] ** 2

    return (run, total)


@trap
def kernel_return_in_branch(x, loss):
    @ti.kernel
    def run(q: ti.i32) -> ti.f64:
        r = 0.0
        if q > 1:
            for j in range(5):
                loss[None] += x[j] ** 2
            r = 3.0
        return r

    return lambda: run(2)


@trap
def while_with_field_state(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            n = 0
            while y[i] < 3 and n < 20:
                y[i] = y[i] * 1.2 + 0.1 + x[i] ** 2
                n += 1
            loss[None] += y[i] * n

    return run


@trap
def nested_loop_with_break_and_store(x, y, z, loss):
    @ti.kernel
    def run():
        for i in x:
            for j in range(5):
                z[i] += x[j] * y[i]
                if z[i] > 0.4:
                    z[i] *= 0.7
                    break
                z[i] = z[i] ** 2 + 0.1
            loss[None] += z[i] ** 2

    def f():
        z.fill(0.2)
        run()

    return f


@trap
def store_in_branch_of_loop(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            for j in range(4):
                if x[i] * j > 0.5:
                    y[i] = y[i] * x[i] + j
                else:
                    y[i] += ti.sin(y[i])
            loss[None] += y[i] ** 2

    return run


@pytest.mark.parametrize("name", trap)
def test_trap(name: str) -> None:
    trap.check(name)
