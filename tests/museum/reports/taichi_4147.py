"""The polar decomposition of a matrix with a negative determinant.

The orthogonal factor always had the determinant 1, so that the other was not symmetric and positive.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/4147"
A = np.array([[1.0, 1.0], [1.0, -1.0]])
RIGHT = (A / np.sqrt(2)).tolist()
KNOWN = "A / √2 is orthogonal itself, and the other factor is √2 times the identity"
CONVENTION = (
    "`polar_decompose` gives a rotation, as simulations of deformation want it, and a symmetric factor that has a "
    "negative eigenvalue where the determinant is negative. The definition in the textbook allows reflections."
)
TINOTE = [[1.0, 0.0], [0.0, 1.0]]


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    a, u = ti.Matrix.field(2, 2, ti.f64, shape=()), ti.Matrix.field(2, 2, ti.f64, shape=())
    a[None] = A.tolist()

    @ti.kernel
    def decompose():
        r, _s = ti.polar_decompose(a[None])
        u[None] = r

    decompose()
    return u.to_numpy()
