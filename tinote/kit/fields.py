"""Fields that parts of the kit keep for themselves."""

from typing import Any

import tinote as ti


def like(x: Any, what: str, *before: int) -> Any:
    """A field of the type and shape of another, with dimensions before its own."""
    options = {
        "name": f"{what} of {x.name}",
        "shape": (*before, *x.shape),
        "needs_grad": x.has_grad or None,
        "needs_dual": x.has_dual or None,
    }
    if not isinstance(x, ti.MatrixField):
        return ti.field(x.dtype, **options)
    return ti.Vector.field(x.n, x.dtype, **options) if x.m == 1 else ti.Matrix.field(x.n, x.m, x.dtype, **options)
