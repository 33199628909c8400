"""Vectors and matrices."""

import numpy as np


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
