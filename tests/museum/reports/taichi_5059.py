"""A vector field of double precision is filled with 0.3 while the default type is single precision.

The number was rounded to single precision on its way into the field.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/5059"
RIGHT = 0.0
TOLERANCE = 0.0
KNOWN = "0.3 read back minus 0.3: double precision holds what Python has"


def dialect(ti):
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(1, ti.f64, 8)
    x.fill(0.3)
    return x[0][0] - 0.3
