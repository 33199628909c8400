"""Vectors and matrices."""

import numpy as np

from benchmarks.agreement.reasons import differs


def vector_times_matrix(ti):
    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, 8)

    @ti.kernel
    def k():
        v = ti.Vector([1.0, 2.0])
        m = ti.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        a = v @ m
        b = m @ ti.Vector([1.0, 0.5, 2.0])
        for i in ti.static(range(3)):
            out[i] = a[i]
        for i in ti.static(range(2)):
            out[3 + i] = b[i]

    k()
    return out.to_numpy()


def vector_times_vector(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.f32:
        v = ti.Vector([1.0, 2.0, 3.0])
        w = ti.Vector([2.0, 0.5, -1.0])
        return v @ w

    return k()


def row_times_matrix_of_one_row(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.matrix(2, 2, ti.f32):
        v = ti.Matrix([[1.0], [2.0]])
        w = ti.Matrix([[2.0, 0.5]])
        return v @ w

    return k()


@differs("where a row does not fit, tinote takes a vector on the left for a column")
def outer_by_matmul(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.matrix(2, 2, ti.f32):
        v = ti.Vector([1.0, 2.0])
        w = ti.Matrix([[2.0, 0.5]])
        return v @ w

    return k()


def number_or_vector(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(c: ti.i32) -> ti.types.vector(2, ti.f32):
        v = ti.Vector([1.0, 2.0])
        return 0.0 if c else v

    return [k(0), k(1)]


def number_or_vector_loaded(ti):
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, 3)
    x.from_numpy(np.arange(6, dtype=np.float32).reshape(3, 2))
    y = ti.Vector.field(2, ti.f32, 3)

    @ti.kernel
    def k():
        for i in x:
            y[i] = 0 if i == 1 else x[i]

    k()
    return y.to_numpy()


def or_of_vectors(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(c: ti.i32) -> ti.types.vector(3, ti.i32):
        a = ti.Vector([0, 1, c])
        b = ti.Vector([0, 0, 1])
        return a or b

    return [k(0), k(1)]


def and_of_vectors(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(c: ti.i32) -> ti.types.vector(3, ti.i32):
        a = ti.Vector([1, 1, c])
        b = ti.Vector([0, 1, 1])
        return a and b

    return [k(0), k(1)]


def or_of_comparisons(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(c: ti.f32) -> ti.types.vector(3, ti.i32):
        a = ti.Vector([0.5, 1.5, c])
        return ti.cast((a < 1.0) or (a > 2.0), ti.i32)

    return [k(0.0), k(1.0), k(3.0)]


def not_of_a_vector(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(c: ti.i32) -> ti.types.vector(3, ti.i32):
        a = ti.Vector([0, 1, c])
        return ti.cast(not a, ti.i32)

    return [k(0), k(5)]


def components(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(4, ti.f32):
        v = ti.math.vec4(1.0, 2.0, 3.0, 4.0)
        v.xz = v.zx * 10
        v.rgb += 1
        v[3] = v.y
        return v.wzyx

    return k()


def slices(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(3, ti.i32):
        m = ti.Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        return m[1, :] + m[:, 2] + ti.Vector([10, 20, 30, 40, 50])[1:4]

    return k()


def indices_at_run_time(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        v = ti.Vector([10, 20, 30])
        m = ti.Matrix([[1, 2], [3, 4]])
        v[n] += 5
        return v[n] + m[n % 2, 1]

    return [k(0), k(1), k(2)]


def lengths_and_products(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(8, ti.f32):
        a, b = ti.Vector([3.0, 4.0, 0.5]), ti.Vector([1.0, -2.0, 2.0])
        c = a.cross(b)
        return ti.Vector([a.norm(), a.norm_sqr(), a.dot(b), c[0], c[1], c[2], a.normalized()[1], a.norm_inv()])

    return k()


def reductions_of_components(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(5, ti.f32):
        v = ti.Vector([3.0, -1.0, 2.0])
        return ti.Vector([v.sum(), v.max(), v.min(), ti.f32(any(v > 2.5)), ti.f32(all(v > -2.0))])

    return k()


def matrices(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(6, ti.f32):
        m = ti.Matrix([[2.0, x], [1.0, 3.0]])
        i = m.inverse()
        t = m.transpose()
        return ti.Vector([m.determinant(), m.trace(), i[0, 0], i[0, 1], t[1, 0], (m @ i)[1, 1]])

    return [k(1.0), k(0.25)]


def matrices_of_three_and_four(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(4, ti.f32):
        a = ti.Matrix([[2.0, x, 0.0], [1.0, 3.0, x], [x, 0.0, 4.0]])
        b = ti.Matrix([[2.0, x, 0.0, 1.0], [1.0, 3.0, x, 0.0], [x, 0.0, 4.0, 2.0], [0.0, 1.0, 0.0, 5.0]])
        return ti.Vector([a.determinant(), b.determinant(), a.inverse()[2, 1], b.inverse()[3, 0]])

    return k(0.5)


def outer_product(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.matrix(2, 3, ti.f32):
        return ti.Vector([1.0, 2.0]).outer_product(ti.Vector([3.0, 4.0, 5.0]))

    return k()


def constant_matrices(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.matrix(3, 3, ti.f32):
        rows = ti.Matrix.rows([ti.Vector([1, 2, 3]), ti.Vector([4, 5, 6]), ti.Vector([7, 8, 9])])
        return ti.Matrix.identity(ti.f32, 3) * 2 + ti.Matrix.one(ti.f32, 3, 3) + rows

    return k()


def columns(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.matrix(2, 2, ti.f32):
        return ti.Matrix.cols([ti.Vector([1.0, 2.0]), ti.Vector([3.0, 4.0])])

    return k()


def arithmetic_by_components(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(3, ti.f32):
        a, b = ti.Vector([1.0, 2.0, 3.0]), ti.Vector([4.0, 5.0, 6.0])
        return (a * b - b / a + 2**a) // 2 % 3 + ti.max(a, 2.5) - abs(-b)

    return k()


def comparisons_by_components(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(3, ti.i32):
        a = ti.Vector([1.0, 2.0, 3.0])
        return ti.cast((a > x) & (a != 3.0), ti.i32)

    return [k(1.5), k(0.0)]


def singular_values(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(6, ti.f32):
        m = ti.Matrix([[2.0, 0.5], [-1.0, 3.0]])
        u, s, v = ti.svd(m)
        b = u @ s @ v.transpose()
        return ti.Vector([s[0, 0], s[1, 1], b[0, 0], b[0, 1], b[1, 0], b[1, 1]])

    return k()


def polar_decomposition(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.matrix(2, 2, ti.f32):
        r, s = ti.polar_decompose(ti.Matrix([[2.0, 0.5], [-1.0, 3.0]]))
        return r + 0 * s

    return k()


def symmetric_eigenvalues(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(2, ti.f32):
        values, _ = ti.sym_eig(ti.Matrix([[2.0, 0.5], [0.5, 1.0]]))
        return values

    return sorted(k().to_list())


def linear_system(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.types.vector(3, ti.f32):
        return ti.solve(ti.Matrix([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]), ti.Vector([1.0, 2.0, 3.0]))

    return k()


def vectors_in_python(ti):
    ti.init(arch=ti.cpu)
    a, b = ti.Vector([1.0, 2.0, 2.0]), ti.Vector([3.0, 0.0, 4.0])
    return [a + b, a * 2, a.dot(b), b.norm(), a.cross(b), a.normalized(), (a @ ti.Matrix([[1, 2], [3, 4], [5, 6]]))]


def matrices_in_python(ti):
    ti.init(arch=ti.cpu)
    m = ti.Matrix([[2.0, 1.0], [1.0, 3.0]])
    return [m @ m, m.transpose(), m.inverse(), m.trace(), m[0, 1], m @ ti.Vector([1.0, 2.0])]


def local_array_that_changes(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(n: ti.i32) -> ti.i32:
        a = ti.Vector([0] * 8)
        for i in ti.static(range(8)):
            a[i] = i * i
        for _ in range(1):
            for i in range(7):
                a[i + 1] += a[i]
        return a[n]

    return [k(3), k(7)]


def rotation(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(t: ti.f32) -> ti.types.vector(2, ti.f32):
        return ti.math.rotation2d(t) @ ti.Vector([1.0, 2.0])

    return k(0.3)
