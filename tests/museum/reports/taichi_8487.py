"""The sign of a float as |T| / T, cast to an integer.

A quotient by an approximate reciprocal was just below 1, which the cast cut to 0: for 104 of 1,024 numbers.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/8487"
RIGHT = 0
KNOWN = "a number divided by itself is 1 exactly; no number may be cut to 0"


def dialect(ti):
    ti.init(arch=ti.cpu)
    wrong = ti.field(ti.i32, ())

    @ti.kernel
    def signs(scale: ti.f32):
        for i in range(1, 1025):
            t = i * scale
            if int(abs(t) / t) != 1:
                wrong[None] += 1

    signs(1.0)
    signs(0.1)
    return wrong[None]
