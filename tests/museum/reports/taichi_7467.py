"""Integers divided by 255 in single precision, compared with IEEE's quotient.

Quotients differed in the last bit: the division was a product with the reciprocal.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/7467"
NUMBERS = np.arange(256, dtype=np.uint8)
RIGHT = 0
KNOWN = "NumPy's quotients, which IEEE 754 defines to the last bit"
CONVENTION = (
    "`fast_math=True`, the default, permits a reciprocal in place of a division, which is within one unit in the last "
    "place. With `ti.init(fast_math=False)` quotients are IEEE's, as here."
)


def dialect(ti):
    ti.init(arch=ti.cpu, fast_math=False)
    a, b = ti.field(ti.u8, 256), ti.field(ti.f32, 256)
    a.from_numpy(NUMBERS)

    @ti.kernel
    def scale():
        for i in a:
            b[i] = ti.cast(a[i], ti.f32) / ti.cast(255.0, ti.f32)

    scale()
    return int((b.to_numpy() != NUMBERS.astype(np.float32) / np.float32(255.0)).sum())
