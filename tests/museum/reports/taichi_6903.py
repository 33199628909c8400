"""The singular values of a matrix of 3 × 3 that is close to a multiple of the identity with a negative sign.

One of them was negative.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/6903"
A = np.array([[-45.003811, 0.929553, -0.704581], [0.934495, -44.535431, 0.370609], [-0.722628, 0.385308, -44.987701]])
RIGHT = np.linalg.svd(A, compute_uv=False).tolist()
TOLERANCE = 1e-9
KNOWN = "NumPy's singular values, which are never negative"
CONVENTION = (
    "`svd` gives rotations U and V, whose determinants are 1, and the sign of the determinant of A goes to the "
    "singular value of least magnitude: the signed decomposition of simulations of deformation."
)
TINOTE = [RIGHT[0], RIGHT[1], -RIGHT[2]]


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    a, s = ti.Matrix.field(3, 3, ti.f64, shape=()), ti.Vector.field(3, ti.f64, shape=())
    a[None] = A.tolist()

    @ti.kernel
    def decompose():
        _u, sigma, _v = ti.svd(a[None])
        s[None] = ti.Vector([sigma[0, 0], sigma[1, 1], sigma[2, 2]])

    decompose()
    return np.sort(s.to_numpy())[::-1]
