"""Fields and arrays in Python: NumPy in and out, shapes, copies."""

import copy

import numpy as np

from benchmarks.agreement.reasons import differs


def fortran_order_argument(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=2)):
        for i, j in a:
            a[i, j] += 10 * i + j

    a = np.zeros((3, 4), np.float32, order="F")
    k(a)
    return a


@differs("tinote copies an array whose elements lie apart in and back, and says so once")
def strided_argument(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in a:
            a[i] += i + 1

    a = np.zeros(10, np.float32)
    k(np.ascontiguousarray(a[::2]))
    b = a[::2]
    k(b)
    return a


def keep_dims_of_column_matrices(ti):
    ti.init(arch=ti.cpu)
    x = ti.Matrix.field(3, 1, ti.f32, shape=4)
    x.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3, 1))
    y = ti.Matrix.field(3, 1, ti.f32, shape=4)
    y.from_numpy(x.to_numpy(keep_dims=True))
    return [x.to_numpy(keep_dims=True), y.to_numpy(keep_dims=True), y.to_numpy(keep_dims=True).shape]


def column_matrices_without_keep_dims(ti):
    ti.init(arch=ti.cpu)
    x = ti.Matrix.field(3, 1, ti.f32, shape=4)
    x.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3))
    return [x.to_numpy(), x.to_numpy().shape]


def column_ndarray(ti):
    ti.init(arch=ti.cpu)
    x = ti.Matrix.ndarray(3, 1, ti.f32, shape=4)
    x.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3, 1))
    return [x.to_numpy(), x.to_numpy().shape]


def keep_dims_of_vectors(ti):
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=3)
    return [x.to_numpy(keep_dims=True).shape, x.to_numpy().shape]


def deep_copy_of_an_ndarray(ti):
    ti.init(arch=ti.cpu)
    x = ti.ndarray(ti.f32, shape=(2, 3))
    x.fill(2.0)
    y = copy.deepcopy(x)
    y[0, 0] = 5.0
    return [x.to_numpy(), y.to_numpy()]


def deep_copy_of_a_vector_ndarray(ti):
    ti.init(arch=ti.cpu)
    x = ti.Vector.ndarray(2, ti.f32, shape=3)
    x.fill(2.0)
    y = copy.deepcopy(x)
    y[0] = [5.0, 6.0]
    return [x.to_numpy(), y.to_numpy()]


def shallow_copy_of_an_ndarray(ti):
    ti.init(arch=ti.cpu)
    x = ti.ndarray(ti.f32, shape=3)
    y = copy.copy(x)
    y[0] = 5.0
    return [x.to_numpy(), y.to_numpy()]


def dense_over_several_axes_with_one_extent(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32)
    ti.root.dense(ti.ij, (3,)).place(x)
    return x.shape


def two_levels_with_short_extents(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32)
    ti.root.dense(ti.ij, 4).dense(ti.ij, (2,)).place(x)

    @ti.kernel
    def k():
        for i, j in x:
            x[i, j] = i * 10 + j

    k()
    return x.to_numpy()


def nine_dimensions(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, shape=(2, 1, 2, 1, 2, 1, 2, 1, 2))

    @ti.kernel
    def k():
        for I in ti.grouped(x):
            x[I] = I[0] * 16 + I[2] * 8 + I[4] * 4 + I[6] * 2 + I[8]

    k()
    return x.to_numpy().ravel()


def twelve_dimensions(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.i32, shape=(2,) + (1,) * 10 + (3,))

    @ti.kernel
    def k():
        for I in ti.grouped(x):
            x[I] = I[0] * 3 + I[11]

    k()
    return x.to_numpy().ravel()


def twelve_dimensional_array(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray()):
        for I in ti.grouped(a):
            a[I] = I[0] * 3 + I[11]

    a = np.zeros((2,) + (1,) * 10 + (3,), np.int32)
    k(a)
    return a.ravel()


def boundary_clamp(ti):
    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, 5)

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=1, boundary="clamp")):
        for i in range(5):
            out[i] = a[i - 1]

    k(np.array([1, 2, 3], np.float32))
    return out.to_numpy()


def boundary_clamp_in_the_plane(ti):
    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, (4, 5))

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=2, boundary="clamp")):
        for i, j in out:
            out[i, j] = a[i - 1, j - 2]

    k(np.arange(6, dtype=np.float32).reshape(2, 3))
    return out.to_numpy()


def boundary_clamp_written(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.f32, ndim=1, boundary="clamp")):
        for i in range(5):
            a[i - 1] += 1.0

    a = np.zeros(3, np.float32)
    k(a)
    return a


def several_arrays(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray(), c: ti.f32):
        for i, j in a:
            b[j, i] = a[i, j] * c

    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 2), np.float32)
    k(a, b, 2.0)
    return b


def shape_of_an_array(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(ndim=2)) -> ti.i32:
        s = 0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                s += i * j
        return s

    return k(np.zeros((4, 5), np.int32))


def vectors_in_numpy(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.math.vec3, ndim=1)) -> ti.math.vec3:
        s = ti.math.vec3(0)
        for i in range(a.shape[0]):
            s += a[i]
        return s

    return k(np.arange(12, dtype=np.float32).reshape(4, 3))


def ndarray_methods(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.ndarray(ti.i32, (2, 3)), ti.ndarray(ti.i32, (2, 3))
    x.fill(4)
    y.copy_from(x)
    x[1, 2] = 7
    return [x.to_numpy(), y.to_numpy(), x.shape, x[1, 2]]


def any_dtype(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.types.ndarray()):
        for i in ti.grouped(a):
            a[i] += 1

    found = []
    for dtype in (np.int8, np.uint16, np.int64, np.float64):
        a = np.zeros((2, 2), dtype)
        k(a)
        found.append(a)
    return found
