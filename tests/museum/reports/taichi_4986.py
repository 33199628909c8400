"""An atomic subtraction of an unsigned number from one of more bits.

The subtrahend was negated in its own eight bits before it was widened: 1255 for 999.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/4986"
RIGHT = [999, 745]
KNOWN = "1000 - 1 and 1000 - 255"


def dialect(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.u16, 2)
    x.fill(1000)

    @ti.kernel
    def subtract(first: ti.u8, second: ti.u8):
        ti.atomic_sub(x[0], first)
        ti.atomic_sub(x[1], second)

    subtract(1, 255)
    return x.to_numpy()
