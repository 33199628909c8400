"""The range of a parallel loop goes beyond 2³¹.

The bounds were cut to 32 bits, so that most iterations or all were left out.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/5217"
RIGHT = [20, 2**31 + 11]
KNOWN = "the range from 2³¹ - 8 to 2³¹ + 12 has 20 numbers"


def dialect(ti):
    ti.init(arch=ti.cpu)
    count, last = ti.field(ti.i64, ()), ti.field(ti.i64, ())

    @ti.kernel
    def visit(low: ti.i64, high: ti.i64):
        for i in range(low, high):
            count[None] += 1
            ti.atomic_max(last[None], i)

    visit(2**31 - 8, 2**31 + 12)
    return [count[None], last[None]]
