"""Calls in annotations, which type checkers allow nowhere: `annotations.py` has the way."""

import tinote as ti


@ti.kernel
def fill(a: ti.types.ndarray(dtype=ti.f32, ndim=1)):  # error
    for i in range(a.shape[0]):
        a[i] = 1.0


@ti.kernel
def both(into: ti.template()):  # error
    for i in into:
        into[i] = 1.0
