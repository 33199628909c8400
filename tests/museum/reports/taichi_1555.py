"""A million numbers of single precision, 100 each, are added up.

The sum was 99947872 on a GPU: one running sum rounds each addition, in favour of one side.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/1555"
RIGHT = 1e8
TOLERANCE = 1e-6
KNOWN = "10⁶ times 100, which single precision holds exactly"
CONVENTION = (
    "Sums of floats are sums of the partial sums of threads and lanes, in no fixed order; each addition is rounded in "
    "the type of the field. No compensation is made: use f64 where it matters."
)


def dialect(ti):
    ti.init(arch=ti.cpu)
    table, total = ti.field(ti.f32, (100, 100, 100)), ti.field(ti.f32, ())
    table.fill(100.0)

    @ti.kernel
    def add():
        for i in ti.grouped(table):
            total[None] += table[i]

    add()
    return total[None]
