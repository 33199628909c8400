"""Fields that parts of the kit keep for themselves, the types of their numbers, and the places of their elements."""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

from typing import Any

import numpy as np

import tinote as ti

#: The types that transforms and positions may have, as NumPy calls them.
FLOATS = {ti.f32: np.float32, ti.f64: np.float64}


@ti.func
def place(index: ti.template(), shape: ti.template()):
    """The number of an element among those of a shape, row by row."""
    at = 0
    for axis in ti.static(range(len(shape))):
        at = at * shape[axis] + index[axis]
    return at


def like(x: Any, what: str, *before: int, differentiates: bool = True) -> Any:
    """A field of the type and shape of another, with dimensions before its own; with a gradient and duals if that has
    them, or never.
    """
    options = {
        "name": f"{what} of {x.name}",
        "shape": (*before, *x.shape),
        "needs_grad": (x.has_grad or None) if differentiates else False,
        "needs_dual": (x.has_dual or None) if differentiates else False,
    }
    if not isinstance(x, ti.MatrixField):
        return ti.field(x.dtype, **options)
    return ti.Vector.field(x.n, x.dtype, **options) if x.m == 1 else ti.Matrix.field(x.n, x.m, x.dtype, **options)
