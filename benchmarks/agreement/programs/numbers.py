"""Arithmetic, conversions and mathematics."""

import math

from benchmarks.agreement.reasons import differs


def division_of_integers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.types.vector(4, ti.f32):
        return ti.Vector([a / b, a // b, a % b, ti.cast(a, ti.f32) / b])

    return [k(7, 2), k(-7, 2), k(7, -2), k(-7, -2)]


def remainder_of_floats(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.f32, b: ti.f32) -> ti.types.vector(2, ti.f32):
        return ti.Vector([a % b, a // b])

    return [k(7.5, 2.0), k(-7.5, 2.0), k(7.5, -2.0)]


def c_remainder_and_division(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.types.vector(2, ti.i32):
        return ti.Vector([ti.raw_mod(a, b), ti.i32(ti.raw_div(a, b))])

    return [k(7, 3), k(-7, 3), k(7, -3)]


def powers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32, n: ti.i32) -> ti.types.vector(5, ti.f32):
        return ti.Vector([x**2, x**0.5, x**n, x**-1.0, ti.pow(x, 3)])

    return [k(2.0, 3), k(0.25, 2)]


def powers_of_integers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32, n: ti.i32) -> ti.types.vector(3, ti.i32):
        return ti.Vector([a**2, a**n, 2**n])

    return [k(3, 4), k(-2, 3)]


def bits(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.types.vector(6, ti.i32):
        return ti.Vector([a & b, a | b, a ^ b, ~a, a << 3, a >> 1])

    return [k(12, 10), k(-5, 3)]


def counting_bits(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32) -> ti.types.vector(2, ti.i32):
        return ti.Vector([ti.math.popcnt(a), ti.math.clz(a)])

    return [k(0b1011), k(1), k(-1)]


def wrapping_integers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32) -> ti.i32:
        return a * a + 2147483647

    return [k(65536), k(3)]


def small_integers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32) -> ti.types.vector(3, ti.i32):
        x = ti.cast(a, ti.i8)
        y = ti.cast(a, ti.u8)
        z = ti.cast(a, ti.u16)
        return ti.Vector([ti.cast(x, ti.i32), ti.cast(y, ti.i32), ti.cast(z, ti.i32)])

    return [k(300), k(-1), k(70000)]


def floats_to_integers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(4, ti.i32):
        return ti.Vector([int(x), ti.i32(x), ti.floor(x, ti.i32), ti.round(x, ti.i32)])

    return [k(2.7), k(-2.7), k(0.4)]


def rounding(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(4, ti.f32):
        return ti.Vector([ti.floor(x), ti.ceil(x), ti.round(x), abs(x)])

    return [k(2.4), k(-2.4), k(2.6), k(-2.6)]


@differs("tinote rounds halves to the even number, as Python and NumPy do; Taichi away from zero")
def half_way(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.f32:
        return ti.round(x)

    return [k(0.5), k(1.5), k(2.5), k(-0.5), k(-1.5)]


def reinterpreted_bits(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.i32:
        return ti.bit_cast(x, ti.i32)

    return [k(1.0), k(-2.5)]


def elementary_functions(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(12, ti.f32):
        a = [ti.sin(x), ti.cos(x), ti.tan(x), ti.asin(x), ti.acos(x), ti.atan2(x, 2.0)]
        b = [ti.exp(x), ti.log(x), ti.sqrt(x), ti.rsqrt(x), ti.tanh(x), ti.abs(-x)]
        return ti.Vector(a + b)

    return [k(0.3), k(0.9)]


def elementary_functions_in_double_precision(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)

    @ti.kernel
    def k(x: ti.f64) -> ti.f64:
        return ti.sin(x) * ti.exp(-x) + ti.log(x + 1) * math.pi

    return [k(0.3), k(100.0)]


def minimum_and_maximum(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.f32, b: ti.i32) -> ti.types.vector(4, ti.f32):
        return ti.Vector([ti.min(a, b), ti.max(a, b, 3), min(a, 2), max(1, a, b)])

    return [k(1.5, 2), k(7.0, -2)]


def choosing(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(c: ti.i32) -> ti.types.vector(3, ti.f32):
        return ti.Vector([ti.select(c, 1.5, 2), 3 if c > 1 else 4, ti.select(c == 2, 1, 0)])

    return [k(0), k(1), k(2)]


def truth_values(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(a: ti.i32, b: ti.i32) -> ti.types.vector(5, ti.i32):
        return ti.Vector([ti.i32(a and b), ti.i32(a or b), ti.i32(not a), ti.i32(a < b < 5), ti.i32(a == b or a != 3)])

    return [k(0, 1), k(2, 3), k(3, 3)]


def defaults_of_constants(ti):
    ti.init(arch=ti.cpu, default_ip=ti.i64, default_fp=ti.f64)

    @ti.kernel
    def k(n: ti.i64) -> ti.i64:
        s = 0
        for _ in range(1):
            for i in range(40):
                s += 1 << i
        return s + n

    return k(5)


def variables_keep_their_type(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(2, ti.f32):
        a = 0
        a += ti.i32(x)
        b = 1.0
        b = b + 2
        return ti.Vector([a * 1.0, b / 2])

    return k(2.7)


def annotated_variables(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.f32:
        a: ti.i32 = 3
        b: ti.f32 = a
        return b / 2 + x

    return k(0.25)


def constants_from_outside(ti):
    ti.init(arch=ti.cpu)
    scale, shift = 2.5, 3

    @ti.kernel
    def k(x: ti.i32) -> ti.f32:
        return x * scale + shift

    return k(4)


def mathematics_of_vectors(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(3, ti.f32):
        v = ti.math.vec3(x, 2 * x, -x)
        return ti.math.mix(ti.math.clamp(v, 0.0, 1.0), ti.math.fract(v), 0.25) + ti.math.sign(v)

    return [k(0.3), k(1.7)]


def smoothstep(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(3, ti.f32):
        return ti.Vector([ti.math.smoothstep(0.0, 1.0, x), ti.math.step(0.5, x), ti.math.mod(x, 0.4)])

    return [k(0.3), k(1.7), k(-0.3)]


def complex_numbers(ti):
    ti.init(arch=ti.cpu)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(8, ti.f32):
        a, b = ti.math.vec2(x, 2.0), ti.math.vec2(1.0, -x)
        p, q, r, s = ti.math.cmul(a, b), ti.math.cdiv(a, b), ti.math.cexp(a), ti.math.csqrt(b)
        return ti.Vector([p.x, p.y, q.x, q.y, r.x, r.y, s.x, s.y])

    return k(0.5)


def not_a_number(ti):
    ti.init(arch=ti.cpu, fast_math=False)

    @ti.kernel
    def k(x: ti.f32) -> ti.types.vector(3, ti.i32):
        y = ti.log(x)
        return ti.Vector([ti.i32(ti.math.isnan(y)), ti.i32(ti.math.isinf(y)), ti.i32(y == y)])

    return [k(1.0), k(0.0), k(-1.0)]
