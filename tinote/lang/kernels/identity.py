"""The identity of template arguments."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from tinote.lang.data.traced import Traced, constant_of
from tinote.lang.kernels.func import Func

#: Each access to one makes another.
_METHODS = frozenset({types.MethodType, Func})


def identity_of(value: Any) -> Any:
    """A key for an argument: a number or text by type and value, a tuple, named or not, item by item, a method by its
    function and its object (each access makes another), anything else by identity. It tells objects apart as long as
    they live, so what keeps the key keeps the argument.
    """
    if type(value) is Traced:
        value = constant_of(value, "compiled code, as a template argument")
    kind = value.__class__
    if kind is int or kind is bool or kind is str:
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)  # the text tells 0.0 from -0.0, and equals itself for NaN
    if kind is tuple or (isinstance(value, tuple) and not hasattr(value, "__dict__")):
        return kind, *map(identity_of, value)
    if kind in _METHODS:
        return _identity_of_method(value)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    return id(value)


def _identity_of_method(value: Any) -> Any:
    if isinstance(value, types.MethodType):
        return types.MethodType, id(value.__func__), id(value.__self__)
    if value.__tinote_self__ is None:
        return id(value)
    return Func, id(value.__tinote_function__), id(value.__tinote_self__), id(value.__tinote_replacement__)
