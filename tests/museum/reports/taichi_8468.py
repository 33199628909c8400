"""The eigenvectors of a symmetric matrix with a double eigenvalue, and of a diagonal one.

They were not orthogonal, and NaN in the plane.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/8468"
RIGHT = [0.0, 0.0]
TOLERANCE = 1e-6
KNOWN = "V diag(λ) Vᵀ gives the matrix back and VᵀV is the identity: the largest deviation of both"
THREE = np.diag([0.0, 0.0, 1.0])
TWO = np.diag([1.0, 2.0])


def deviation(values, vectors, matrix):
    back = vectors @ np.diag(values) @ vectors.T
    return float(max(np.abs(back - matrix).max(), np.abs(vectors.T @ vectors - np.eye(len(matrix))).max()))


def dialect(ti):
    ti.init(arch=ti.cpu)
    found = []
    for matrix in (THREE, TWO):
        n = len(matrix)
        a, vectors = (ti.Matrix.field(n, n, ti.f32, shape=()) for _ in range(2))
        values = ti.Vector.field(n, ti.f32, shape=())
        a[None] = matrix.tolist()

        @ti.kernel
        def decompose():
            values[None], vectors[None] = ti.sym_eig(a[None])  # noqa: B023

        decompose()
        found.append(deviation(values.to_numpy(), vectors.to_numpy(), matrix))
    return found
