"""Annotations as the dialect writes them: type checkers allow no calls there, until these two rules are off."""

# pyright: reportInvalidTypeForm=false
# mypy: disable-error-code="valid-type"

import numpy as np

import tinote as ti

ti.init()


@ti.kernel
def fill(a: ti.types.ndarray(dtype=ti.f32, ndim=1), into: ti.template()):
    for i in range(a.shape[0]):
        into[i] = a[i]


fill(np.zeros(8, np.float32), ti.field(ti.f32, 8))
