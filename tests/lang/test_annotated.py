"""`Annotated[type, hint]`: a kernel reads the hint, a type checker the type."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest

import tinote as ti
from tests.lang import annotated_text
from tinote.compiler.protocol import meant
from tinote.errors import KernelTypeError

Line = Annotated[np.ndarray[Any, Any], "of samples", ti.types.ndarray(dtype=ti.f64, ndim=1)]
Wave = Annotated[ti.Matrix, ti.types.vector(3, ti.f64)]
Scalars = Annotated[ti.ScalarField, ti.template()]
Metres = Annotated[float, "metres"]


def test_what_an_annotation_means() -> None:
    hint = ti.types.ndarray(dtype=ti.f32, ndim=2)
    for annotation, expected in (
        (Annotated[np.ndarray, hint], hint),
        (Annotated[np.ndarray, "some words", hint, ti.f64], hint),
        (Annotated[Annotated[np.ndarray, 3], hint], hint),
        (Annotated[ti.f64, "kg"], ti.f64),
        (Annotated[float, ti.f64], ti.f64),
        (Annotated[list, ti.template()], ti.template()),
        (float, float),
        ("text", "text"),
    ):
        assert meant(annotation) is expected


def test_kernels_and_functions_read_the_hint() -> None:
    ti.init(default_fp=ti.f64)
    into = ti.field(ti.f64, 4)

    @ti.func
    def along(a: Wave, b: Wave) -> Metres:
        return a.dot(b)

    @ti.kernel
    def fill(a: Line, to: Scalars, any_field: ti.Template, w: Wave, by: Metres) -> Annotated[ti.f64, "metres"]:
        for i in range(a.shape[0]):
            to[i] = by * a[i] + any_field[i]
        total: Metres = along(w, w)
        return total

    assert fill(np.arange(4.0), into, into, ti.Vector([1.0, 2.0, 3.0]), 2.0) == 14.0
    np.testing.assert_array_equal(into.to_numpy(), [0.0, 2.0, 4.0, 6.0])
    assert along(ti.Vector([1.0, 0.0, 2.0]), [1.0, 1.0, 1.0]) == 3.0
    with pytest.raises(KernelTypeError, match="'a'"):
        fill(np.arange(4.0, dtype=np.float32), into, into, ti.Vector([1.0, 2.0, 3.0]), 2.0)


def test_annotations_that_are_evaluated_at_once() -> None:
    ti.init(default_fp=ti.f64)
    assert annotated_text.total(np.arange(4.0), 2.0) == 12.0


def test_members_of_a_dataclass() -> None:
    @ti.dataclass
    class Ball:
        place: Wave
        radius: Annotated[ti.f64, "metres"]

    balls = Ball.field(shape=2)
    balls[1] = Ball(place=[1.0, 2.0, 3.0], radius=0.5)
    assert balls.place.shape == (2,) and balls.radius.to_numpy().tolist() == [0.0, 0.5]


def test_what_says_nothing_is_refused() -> None:
    @ti.kernel
    def k(a: Annotated[np.ndarray, "an array"]):
        pass

    with pytest.raises(KernelTypeError, match="is not a type"):
        k(np.zeros(3))
