"""Results of functions, converted as annotated."""

from __future__ import annotations

from typing import Any

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expressions.structs import fitted
from tinote.compiler.frontend.scopes import Annotated
from tinote.compiler.frontend.values import StructValue, Value
from tinote.compiler.protocol import StructInfo, unit_of
from tinote.ir.types import Scalar, Tensor, element_type, shape_of


def as_annotated(e: Emitter, annotated: Annotated, result: Any) -> Any:
    """The result of a function, converted as annotated; parts whose annotation is not a type are unchanged."""
    if not any(annotated.types):
        return result
    parts = list(result) if isinstance(result, tuple | list) and annotated.is_tuple else [result]
    if len(parts) != len(annotated.types):
        e.error(f"{len(parts)} values are returned, and {len(annotated.types)} are annotated")
    found = [
        part if t is None else e.measured(_as_type(e, part, t), unit_of(hint))
        for part, t, hint in zip(parts, annotated.types, annotated.parts, strict=True)
    ]
    return tuple(found) if annotated.is_tuple else found[0]


def _as_type(e: Emitter, part: Any, t: Scalar | Tensor | StructInfo) -> Value | StructValue:
    if isinstance(t, StructInfo):
        return fitted(e, part, t)
    if e.shape(part) != shape_of(t):
        wanted = f"a number of type {t}" if isinstance(t, Scalar) else f"a vector or matrix of shape {t.shape}"
        what = f"{describe(part)} is returned where {wanted} is annotated"
        if e.frame.parent is None or e.frame.is_routine or not e.is_value(part):
            e.error(what)
        e.warn(f"{what}; the annotation is ignored")
        return part
    return e.cast(part, element_type(t))
