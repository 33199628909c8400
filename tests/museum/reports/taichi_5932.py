"""A range over the plane has 2¹⁶ by 2¹⁶ points.

Their number was computed in 32 bits, where it is 0: no iteration ran.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/5932"
RIGHT = 65536
KNOWN = "the diagonal of a square of 65,536 by 65,536"


def dialect(ti):
    ti.init(arch=ti.cpu)
    count = ti.field(ti.i32, ())

    @ti.kernel
    def diagonal(n: ti.i32):
        for i, j in ti.ndrange(n, n):
            if i == j:
                count[None] += 1

    diagonal(65536)
    return count[None]
