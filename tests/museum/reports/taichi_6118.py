"""The remainder of unsigned numbers with the highest bit set, as spatial hashes compute it.

The result was far beyond the divisor.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/6118"
FACTORS = (1, 2654435761, 805459861)
POSITION = (660, 241, 838)
RIGHT = 212107
KNOWN = "the same in Python: products modulo 2³², exclusive or, remainder"


def dialect(ti):
    ti.init(arch=ti.cpu)
    factors, size = ti.field(ti.u32, 3), ti.field(ti.u32, 1)
    position, result = ti.field(ti.u32, 3), ti.field(ti.u32, ())
    for k in range(3):
        factors[k], position[k] = FACTORS[k], POSITION[k]
    size[0] = 524288

    @ti.kernel
    def hashed():
        for _ in range(1):
            found = ti.u32(0)
            for k in ti.static(range(3)):
                found ^= position[k] * factors[k]
            result[None] = found % size[0]

    hashed()
    return result[None]
