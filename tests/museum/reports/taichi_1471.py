"""An unrolled loop takes the next free column by an atomic addition and writes three rows of it.

Loads of the counter were merged, so that three of four columns stayed empty.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/1471"
RIGHT = [[1.0] * 16, [2.0] * 16, [3.0] * 16]
KNOWN = "each of 16 additions returns another column"


def dialect(ti):
    ti.init(arch=ti.cpu)
    table, count = ti.field(ti.f32, (3, 16)), ti.field(ti.i32, ())

    @ti.kernel
    def fill():
        for _ in range(4):
            for _i in ti.static(range(4)):
                c = ti.atomic_add(count[None], 1)
                table[0, c], table[1, c], table[2, c] = 1.0, 2.0, 3.0

    fill()
    return table.to_numpy()
