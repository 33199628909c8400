"""Traps for differentiation: numbers, vectors, local arrays, structs and functions."""

import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401

trap = Traps()


@trap
def bool_and_int_paths(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            b = x[i] > 0
            n = k[i] & 1
            loss[None] += b * x[i] ** 2 + n * x[i] + (x[i] > 0.5) * 3 * x[i]
            loss[None] += (k[i] << 1) * x[i] + ti.select(b, x[i], x[i] ** 3)

    return run


@trap
def local_array(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            a = ti.Vector([0.0, 0.0, 0.0, 0.0, 0.0])
            for j in range(5):
                a[k[j]] = x[j] * x[i]
            for j in range(5):
                a[(j + i) % 5] = a[k[j]] * a[j] + 0.1
            loss[None] += a[k[i]] * a[i]

    return run


@trap
def local_matrix_runtime(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            A = ti.Matrix.zero(ti.f64, 3, 3)
            for j in range(7):
                A[j % 3, k[j % 5] % 3] += x[j % 5] * (1 + A[(j + 1) % 3, i % 3])
            loss[None] += (A @ A).trace() + A[i % 3, 1]

    return run


@trap
def local_overwritten_twice(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            a = ti.Vector([x[i], x[i] ** 2])
            a[k[i] % 2] = a[0] * a[1]
            a[k[i] % 2] = ti.sin(a[k[i] % 2])
            a[1 - k[i] % 2] *= a[k[i] % 2]
            loss[None] += a[0] * a[1]

    return run


@trap
def dataclass_local(x, y, loss):
    @ti.dataclass
    class P:
        p: ti.types.vector(2, ti.f64)
        m: ti.f64

        @ti.func
        def energy(self):
            return self.m * self.p.norm_sqr()

    @ti.kernel
    def run():
        for i in x:
            q = P(ti.Vector([x[i], 1.0]), y[i])
            for j in range(3):
                q.p = q.p * q.m + x[j]
                q.m *= 0.9 * y[j]
            loss[None] += q.energy()

    return run


@trap
def casts(x, loss):
    @ti.kernel
    def run():
        for i in x:
            a = ti.cast(x[i], ti.f64)
            n = ti.cast(x[i] * 3, ti.i32)
            loss[None] += a * n + (a + n) ** 2 + ti.round(a) * a
            loss[None] += ti.floor(a) * a + float(n) * a

    return run


@trap
def divisions(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            j = k[i] * 7 // 3
            q = k[i] * 7 % 3
            loss[None] += x[i] / (j + 1) + q / 2 * x[i] ** 2 + 1 / (2 + x[i])
            loss[None] += k[i] / 2 * x[i] + x[i] % 0.37 * 2 + x[i] // 0.37 * x[i]

    return run


@trap
def power(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            loss[None] += x[i] ** 3 + x[i] ** k[i] + ti.abs(x[i]) ** y[i]
            loss[None] += ti.pow(2.0, x[i]) + (x[i] + 2) ** (-2) + x[i] ** 0

    return run


@trap
def min_max_many(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            clamped = ti.math.clamp(x[i] * 2, -0.5, 0.9)
            loss[None] += ti.max(x[i], y[i], 0.2, x[i] * y[i]) * ti.min(x[i], y[i] ** 2) + clamped**2

    return run


@trap
def linalg(M, x, v, loss):
    @ti.kernel
    def run():
        for i in M:
            U, S, V = ti.svd(M[i])
            R, P = ti.polar_decompose(M[i])
            loss[None] += S[0, 0] * S[1, 1] ** 2 + U[0, 0] * V[1, 0]
            loss[None] += R[0, 1] * x[i] + P[1, 0] + (M[i].inverse() @ v[i]).x
            w = ti.solve(M[i], v[i])
            loss[None] += w.y

    return run


@trap
def func_nesting(x, y, loss):
    @ti.func
    def a(u):
        return u * ti.sin(u)

    @ti.func
    def b(u, w):
        t = 0.0
        for j in range(3):
            t += a(u + j) * a(w)
        return (t, a(t))

    @ti.func
    def c(u):
        p, q = b(u, a(u))
        return p * q

    @ti.kernel
    def run():
        for i in x:
            loss[None] += c(x[i]) + c(y[i] * x[i])

    return run


@trap
def template_func_writes(x, z, loss):
    @ti.func
    def add(u: ti.template(), w):
        u += w * w

    @ti.func
    def put(f: ti.template(), i, w):
        f[i] = w * f[i]

    @ti.kernel
    def run():
        for i in x:
            a = x[i]
            add(a, x[i] * 2)
            add(z[i], a)
            loss[None] += a

    @ti.kernel
    def more():
        for i in x:
            put(z, i, x[i])
            loss[None] += z[i]

    def f():
        z.fill(1.0)
        run()
        more()

    return f


@trap
def methods(x, loss):
    @ti.data_oriented
    class A:
        def __init__(self, n):
            self.n = n
            self.q = ti.field(ti.f64, 5, needs_grad=True, needs_dual=True)

        @ti.func
        def f(self, i):
            return x[i] ** self.n

        @ti.kernel
        def run(self):
            for i in self.q:
                self.q[i] = self.f(i) * 2

        @ti.kernel
        def add(self, w: ti.f64):
            for i in self.q:
                loss[None] += w * self.q[i] ** 2

    a, b = (A(2), A(3))

    def f():
        a.run()
        b.run()
        a.add(1.0)
        b.add(2.0)

    return f


@trap
def static_unrolled(x, y, loss):
    fs = [x, y]

    @ti.kernel
    def run():
        for i in x:
            p = 1.0
            for f in ti.static(fs):
                p *= f[i]
                for j in ti.static(range(2)):
                    if ti.static(j == 1):
                        p += f[(i + j) % 5] ** 2
            loss[None] += p

    return run


@trap
def real_function(x, y, loss):
    @ti.real_func
    def f(a: ti.f64, b: ti.f64) -> ti.f64:
        return a * b + a**2

    @ti.kernel
    def run():
        for i in x:
            loss[None] += f(x[i], y[i])

    return run


@trap
def vector_component_stores(v, x, loss):
    @ti.kernel
    def run():
        for i in v:
            v[i].x = v[i].y * x[i]
            v[i][1] += v[i].x ** 2
            v[i] *= 2
            v[i] = ti.Vector([v[i].y, v[i].x])
            loss[None] += v[i].x * v[i].y ** 2

    return run


@trap
def swizzle(v, loss):
    u = ti.Vector.field(3, ti.f64, 5, needs_grad=True, needs_dual=True)

    @ti.kernel
    def run():
        for i in v:
            a = v[i].xyx
            a.xz = a.zy * 2
            u[i].xy = v[i].yx
            u[i].z = a.dot(ti.math.vec3(1, 2, 3))
            loss[None] += u[i].norm_sqr() + ti.math.cross(u[i], a).z
            loss[None] += ti.math.mix(a, u[i], 0.3).sum() + ti.math.smoothstep(-1.0, 2.0, a.x)

    return run


@trap
def vector_index_runtime_field(v, k, x, loss):
    @ti.kernel
    def run():
        for i in v:
            v[i][k[i] % 2] = x[i] * v[i][1 - k[i] % 2] ** 2
            v[i][1 - k[i] % 2] += v[i][k[i] % 2]
            loss[None] += v[i].x * v[i].y

    return run


@trap
def matrix_field_in_place(M, loss):
    @ti.kernel
    def run():
        for i in M:
            for _ in range(3):
                M[i] = M[i] @ M[i] * 0.5
                M[i][0, 1] += M[i].determinant()
            loss[None] += M[i].trace() + M[i][1, 0]

    return run


@trap
def atomic_max_local(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            m = -10.0
            for j in range(5):
                ti.atomic_max(m, x[j] * y[i])
            loss[None] += m**2

    return run


@trap
def atomic_mul_local(x, loss):
    @ti.kernel
    def run():
        for i in x:
            m = 1.0
            for j in range(5):
                m *= 1 + x[j] * x[i]
            loss[None] += m

    return run


@trap
def many_launch_args(x, loss):
    @ti.kernel
    def run(a: ti.f64, v: ti.types.vector(2, ti.f64), m: ti.types.matrix(2, 2, ti.f64), n: ti.i32):
        for i in x:
            loss[None] += (m @ v).x * x[i] ** n + a * x[i]

    def f():
        for t in range(3):
            run(0.5 * t, ti.Vector([1.0, t]), ti.Matrix([[1.0, t], [2.0, 3.0]]), t)

    return f


@pytest.mark.parametrize("name", trap)
def test_trap(name: str) -> None:
    trap.check(name)
