"""Integer division of the indices of a grid.

It was refused: "floor/ceil takes real inputs only".
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/1829"
RIGHT = [20, -1]
KNOWN = "two of ten rows have i // 2 == 0, of ten elements each; -1 // 2 is -1 in Python"


def dialect(ti):
    ti.init(arch=ti.cpu)
    count, floor = ti.field(ti.i32, ()), ti.field(ti.i32, ())

    @ti.kernel
    def rows():
        for i, j in ti.ndrange(10, 10):
            if i // 2 == 0:
                count[None] += 1
            if i == 0 and j == 0:
                floor[None] = (i - 1) // 2

    rows()
    return [count[None], floor[None]]
