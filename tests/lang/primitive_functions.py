"""The functions of the language that are primitives on floats, as the table of primitives has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tinote as ti
from tinote.compiler.protocol import FUNCTIONS
from tinote.ir.primitives import Defaults, Primitive
from tinote.ir.types import f64, i32

__all__ = ["FUNCTIONS_OF_ONE", "by_numpy", "domain_of", "primitive_of"]


def primitive_of(function: Any) -> Primitive | None:
    return getattr(function, "__tinote_primitive__", None)


def _makes_floats(prim: Primitive) -> bool:
    """Whether it makes a float of an integer."""
    return prim.rule is not None and prim.rule((i32,) * (prim.arity or 0), Defaults(fp=f64)) is f64


#: Those of one number, which give a float, by name: in Python scope they are computed by NumPy.
FUNCTIONS_OF_ONE: dict[str, Any] = {
    name: function
    for name, function in sorted(FUNCTIONS.items())
    if getattr(ti, name, None) is function
    and (prim := primitive_of(function))
    and prim.arity == 1
    and _makes_floats(prim)
}


def by_numpy(name: str) -> Callable[..., Any]:
    """NumPy's function, or what a function that NumPy does not have is in Python scope."""
    prim = primitive_of(FUNCTIONS_OF_ONE[name])
    return getattr(np, prim.numpy) if prim is not None and prim.numpy else FUNCTIONS_OF_ONE[name]


def domain_of(name: str) -> str:
    """Where a function is defined: "unit", "positive" or "any"."""
    prim = primitive_of(FUNCTIONS_OF_ONE[name])
    assert prim is not None
    return {(-1, 1): "unit", (0, math.inf): "positive"}.get(prim.domain, "any")
