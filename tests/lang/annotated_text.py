"""A kernel in a module whose annotations are not kept as text."""

from typing import Annotated, Any

import numpy as np

import tinote as ti


@ti.kernel
def total(
    a: Annotated[np.ndarray[Any, Any], ti.types.ndarray(dtype=ti.f64, ndim=1)], by: Annotated[float, "metres"]
) -> Annotated[float, "metres"]:
    found = 0.0
    for i in range(a.shape[0]):
        found += by * a[i]
    return found
