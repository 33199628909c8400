"""Fields: shapes, layouts, loops, and what Python sees of them."""

import numpy as np


def loop_over_a_field(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, (3, 4))

    @ti.kernel
    def k():
        for i, j in x:
            x[i, j] = i * 10 + j

    k()
    return x.to_numpy()


def loop_over_ranges(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, (6, 6))

    @ti.kernel
    def k(n: ti.i32):
        for i, j in ti.ndrange((1, n), (2, 5)):
            x[i, j] = i + j
        for i in range(2, n):
            x[i, 0] = i

    k(4)
    return x.to_numpy()


def neighbours(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, (4, 4)), ti.field(ti.f32, (4, 4))
    x.from_numpy(np.arange(16, dtype=np.float32).reshape(4, 4))

    @ti.kernel
    def k():
        for I in ti.grouped(x):
            for d in ti.static(ti.grouped(ti.ndrange((-1, 2), (-1, 2)))):
                J = I + d
                if 0 <= J[0] < 4 and 0 <= J[1] < 4:
                    y[I] += x[J] * (d[0] + 2 * d[1])

    k()
    return y.to_numpy()


def offsets(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, (4, 3), offset=(-2, 1))

    @ti.kernel
    def k():
        for i, j in x:
            x[i, j] = i * 10 + j

    k()
    return [x.to_numpy(), x[-2, 1], x[1, 3]]


def structure_of_arrays(ti):
    ti.init(arch=ti.cpu)
    v = ti.Vector.field(3, ti.f32, shape=4, layout=ti.Layout.SOA)

    @ti.kernel
    def k():
        for i in v:
            v[i] = ti.Vector([i, i * 2.0, i * i])

    k()
    return v.to_numpy()


def placed_together(ti):
    ti.init(arch=ti.cpu)
    x, v = ti.field(ti.f32), ti.Vector.field(2, ti.f32)
    ti.root.dense(ti.ij, (2, 3)).place(x, v)

    @ti.kernel
    def k():
        for i, j in x:
            x[i, j] = i + j
            v[i, j] = [i, j * 2]

    k()
    return [x.to_numpy(), v.to_numpy(), x.shape]


def blocks(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32)
    ti.root.dense(ti.ij, (2, 2)).dense(ti.ij, (2, 3)).place(x)

    @ti.kernel
    def k():
        for i, j in x:
            x[i, j] = i * 10 + j

    k()
    return [x.shape, x.to_numpy()]


def order_of_dimensions(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, (2, 3), order="ji")

    @ti.kernel
    def k():
        for i, j in x:
            x[i, j] = i * 10 + j

    k()
    return x.to_numpy()


def scalar_field(ti):
    ti.init(arch=ti.cpu)
    total = ti.field(ti.f32, ())

    @ti.kernel
    def k():
        for i in range(10):
            total[None] += i * 0.5

    k()
    total[None] += 1
    return total[None]


def matrix_field(ti):
    ti.init(arch=ti.cpu)
    m = ti.Matrix.field(2, 2, ti.f32, shape=3)

    @ti.kernel
    def k():
        for i in m:
            m[i] = ti.Matrix([[i, 1], [2, 3]]) @ ti.Matrix.identity(ti.f32, 2)
            m[i][0, 1] += 0.5

    k()
    return [m.to_numpy(), m[1][1, 0]]


def python_access(ti):
    ti.init(arch=ti.cpu)
    x, v = ti.field(ti.i32, 3), ti.Vector.field(2, ti.f32, 2)
    x[1] = 5
    v[0] = [1.5, 2.5]
    v[1][0] = 3
    x.fill(x[1] + 1)
    return [x.to_numpy(), v.to_numpy(), v[0].x, x.shape, v.n]


def copying(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, (2, 2)), ti.field(ti.f32, (2, 2))
    x.from_numpy(np.array([[1, 2], [3, 4]], np.float32))
    y.copy_from(x)
    y[0, 0] = 9
    return [x.to_numpy(), y.to_numpy()]


def fields_as_templates(ti):
    ti.init(arch=ti.cpu)
    a, b = ti.field(ti.f32, 4), ti.field(ti.i32, (2, 2))

    @ti.kernel
    def fill(x: ti.template(), c: ti.f32):
        for I in ti.grouped(x):
            x[I] = c + I.sum()

    fill(a, 0.5)
    fill(b, 2.0)
    return [a.to_numpy(), b.to_numpy()]


def integer_overflow_in_a_field(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.u8, 3)

    @ti.kernel
    def k():
        for i in x:
            x[i] = 250 + i * 5

    k()
    return x.to_numpy()


def half_precision(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f16, 3)

    @ti.kernel
    def k():
        for i in x:
            x[i] = 1.0 / (i + 3)

    k()
    return x.to_numpy().astype(np.float32)


def builder(ti):
    ti.init(arch=ti.cpu)
    b = ti.FieldsBuilder()
    x = ti.field(ti.f32)
    b.dense(ti.i, 4).place(x)
    tree = b.finalize()

    @ti.kernel
    def k():
        for i in x:
            x[i] = i * 2

    k()
    found = x.to_numpy()
    tree.destroy()
    return found


def shapes_in_kernels(ti):
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(3, ti.f32, (4, 5))

    @ti.kernel
    def k() -> ti.i32:
        return x.shape[0] * 100 + x.shape[1] * 10 + x.n

    return k()
