"""Types, structs and conversions."""

from benchmarks.agreement.reasons import differs


def element_hint_of_matrix(ti):
    import numpy as np

    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, ())

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.types.matrix(), ndim=1)):
        for i in a:
            out[None] += a[i][0, 1] + a[i].sum()

    a = ti.Matrix.ndarray(2, 3, ti.f32, shape=4)
    a.from_numpy(np.arange(24, dtype=np.float32).reshape(4, 2, 3))
    k(a)
    return out[None]


def element_hint_of_vector(ti):
    import numpy as np

    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, ())

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.types.vector(), ndim=1)):
        for i in a:
            out[None] += a[i][1] + a[i].sum()

    a = ti.Vector.ndarray(3, ti.f32, shape=4)
    a.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3))
    k(a)
    return out[None]


@differs("Taichi cannot leave out the length alone")
def element_hint_with_a_number_type(ti):
    import numpy as np

    ti.init(arch=ti.cpu)
    out = ti.field(ti.f32, ())

    @ti.kernel
    def k(a: ti.types.ndarray(dtype=ti.types.vector(dtype=ti.f32), ndim=1)):
        for i in a:
            out[None] += a[i].sum()

    a = ti.Vector.ndarray(3, ti.f32, shape=4)
    a.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3))
    k(a)
    return out[None]


def struct_of_one_number(ti):
    ti.init(arch=ti.cpu)
    S = ti.types.struct(a=ti.i32, b=ti.f32)
    s = S(1)
    return [s.a, s.b]


def struct_of_one_number_in_a_kernel(ti):
    ti.init(arch=ti.cpu)
    S = ti.types.struct(a=ti.i32, b=ti.f32)

    @ti.kernel
    def k() -> ti.f32:
        s = S(1)
        return s.a * 10 + s.b

    return k()


def struct_of_all_equal(ti):
    ti.init(arch=ti.cpu)
    S = ti.types.struct(a=ti.f32, v=ti.types.vector(2, ti.f32))
    s = S(0)
    t = S(a=2)
    return [s.a, s.v, t.a, t.v]


def dataclass_of_methods_only(ti):
    ti.init(arch=ti.cpu)

    @ti.dataclass
    class Tools:
        @ti.func
        def double(self, x):
            return 2 * x

    @ti.kernel
    def k() -> ti.i32:
        t = Tools()
        return t.double(4)

    return k()


def all_types(ti):
    ti.init(arch=ti.cpu)
    return sorted(str(t) for t in ti.types.primitive_types.all_types)


def kinds_of_types(ti):
    p = ti.types.primitive_types
    return [
        sorted(str(t) for t in p.real_types),
        sorted(str(t) for t in p.integer_types),
    ]


def argument_pack(ti):
    ti.init(arch=ti.cpu)
    pack = ti.types.argpack(a=ti.i32, b=ti.f32, v=ti.types.vector(2, ti.f32))

    @ti.kernel
    def k(p: pack) -> ti.f32:
        return p.a + p.b + p.v[1]

    p = pack(a=1, b=2.5, v=ti.math.vec2(3, 4))
    first = k(p)
    p.a = 10
    return [first, k(p)]


def argument_pack_with_an_array(ti):
    ti.init(arch=ti.cpu)
    pack = ti.types.argpack(a=ti.i32, x=ti.types.ndarray(dtype=ti.f32, ndim=1))

    @ti.kernel
    def k(p: pack):
        for i in p.x:
            p.x[i] += p.a

    x = ti.ndarray(ti.f32, 3)
    k(pack(a=3, x=x))
    return x.to_numpy()
