"""Annotations that are made by a call, as type checkers take them: behind a type, in `Annotated`."""

from typing import Annotated, Any

import numpy as np

import tinote as ti

Line = Annotated[np.ndarray[Any, Any], ti.types.ndarray(dtype=ti.f32, ndim=1)]
Wave = Annotated[ti.Matrix, ti.types.vector(5, ti.f32)]
Scalars = Annotated[ti.ScalarField, ti.template()]

ti.init()
target = ti.field(ti.f32, shape=8)
waves = ti.Vector.field(5, ti.f32, shape=8)


@ti.kernel
def fill(a: Line, into: Scalars, anything: ti.Template, first: Wave) -> Annotated[ti.f32, "metres"]:
    for i in range(a.shape[0]):
        into[i] = a[i] + anything[i][0] + first[0]
    return first[1]


fill(np.zeros(8, np.float32), target, waves, ti.Vector([1.0, 2.0, 3.0, 4.0, 5.0]))
