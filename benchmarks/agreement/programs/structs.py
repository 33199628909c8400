"""Structs and dataclasses."""


def fields_of_structs(ti):
    ti.init(arch=ti.cpu)
    Particle = ti.types.struct(x=ti.math.vec2, m=ti.f32)
    p = Particle.field(shape=3)

    @ti.kernel
    def k():
        for i in p:
            p[i].x = [i, i * 2.0]
            p[i].m = 0.5 * i
            p[i].x.y += p[i].m

    k()
    return [p.x.to_numpy(), p.m.to_numpy(), p[2].x[1]]


def dataclass_with_methods(ti):
    ti.init(arch=ti.cpu)

    @ti.dataclass
    class Sphere:
        center: ti.math.vec3
        radius: ti.f32

        @ti.func
        def volume(self):
            return 4.0 / 3.0 * ti.math.pi * self.radius**3

        @ti.func
        def contains(self, p):
            return (p - self.center).norm() < self.radius

    @ti.kernel
    def k(r: ti.f32) -> ti.types.vector(2, ti.f32):
        s = Sphere(center=ti.math.vec3(0, 1, 0), radius=r)
        return ti.Vector([s.volume(), ti.cast(s.contains(ti.math.vec3(0.5, 1, 0)), ti.f32)])

    return [k(1.0), k(0.25)]


def struct_arguments_and_results(ti):
    ti.init(arch=ti.cpu)
    S = ti.types.struct(a=ti.i32, v=ti.types.vector(2, ti.f32))

    @ti.kernel
    def k(s: S) -> S:
        return S(a=s.a + 1, v=s.v * 2)

    r = k(S(a=3, v=ti.Vector([1.0, 2.0])))
    return [r.a, r.v]


def nested_structs(ti):
    ti.init(arch=ti.cpu)
    Inner = ti.types.struct(a=ti.f32)
    Outer = ti.types.struct(i=Inner, b=ti.f32)
    x = Outer.field(shape=2)

    @ti.kernel
    def k():
        for n in x:
            o = Outer(i=Inner(a=n + 1), b=5)
            o.i.a *= 2
            x[n] = o

    k()
    return [x[1].i.a, x[0].b, x.i.a.to_numpy()]


def struct_literals(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k() -> ti.f32:
        s = ti.Struct(a=1.5, b=ti.Vector([1.0, 2.0]))
        s.b.x = 10
        return s.a + s.b.sum()

    return k()


def structs_by_template(ti):
    ti.init(arch=ti.cpu)
    S = ti.types.struct(a=ti.i32)

    @ti.func
    def bump(s: ti.template()):
        s.a += 5

    @ti.kernel
    def k() -> ti.i32:
        s = S(a=1)
        bump(s)
        return s.a

    return k()
