"""The functions of the language: compiled in kernels, plain NumPy in Python scope."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.compiler.frontend.builtins import BUILTINS
from tinote.errors import KernelSyntaxError
from tinote.ir.types import Scalar
from tinote.lang.matrix import Matrix, numpy_type

__all__ = ["BuiltinFunction", "make_builtins"]


class BuiltinFunction:
    """A function that the compiler knows. `python` is what it does outside of kernels."""

    def __init__(self, name: str, python: Callable[..., Any] | None) -> None:
        self.__name__ = name
        self.__tinote_expand__ = BUILTINS[name]
        self._python = python
        self.__doc__ = BUILTINS[name].__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._python is None:
            raise KernelSyntaxError(f"ti.{self.__name__} can only be used in a kernel or a @ti.func")
        plain = [a.to_numpy() if isinstance(a, Matrix) else a for a in args]
        result = self._python(*plain, **kwargs)
        if isinstance(result, np.ndarray) and any(isinstance(a, Matrix) for a in args):
            return Matrix(result)
        return result.item() if isinstance(result, np.generic) else result

    def __repr__(self) -> str:
        return f"<ti.{self.__name__}>"


def _reduce(f: Any) -> Callable[..., Any]:
    def apply(first: Any, *others: Any) -> Any:
        for other in others:
            first = f(first, other)
        return first

    return apply


def _cast(value: Any, dtype: Scalar) -> Any:
    return np.asarray(value).astype(numpy_type(dtype))[()]


def _static(*values: Any) -> Any:
    return values[0] if len(values) == 1 else values


_PYTHON: dict[str, Callable[..., Any]] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan2": np.arctan2, "tanh": np.tanh, "exp": np.exp, "log": np.log, "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a), "floor": np.floor, "ceil": np.ceil, "round": np.round, "abs": np.abs, "pow": np.power, "log2": np.log2, "sign": np.sign, "isnan": np.isnan,
    "isinf": np.isinf, "min": _reduce(np.minimum), "max": _reduce(np.maximum), "select": np.where, "cast": _cast, "static": _static,
    "cross": lambda a, b: Matrix(a).cross(Matrix(b)), "dot": lambda a, b: float(np.vdot(a, b)), "normalize": lambda a: a / np.linalg.norm(a), "raw_div": lambda a, b: int(a / b) if isinstance(a, int) else a / b,
    "raw_mod": math.fmod, "length": lambda a: float(np.linalg.norm(a)),
}  # fmt: skip


#: Python's own names, which the front end knows as Python's own objects.
_NOT_PUBLIC = ("Vector", "Matrix", "bool", "enumerate", "float", "int", "len", "list", "print", "range", "reversed", "tuple", "zip")


def make_builtins() -> dict[str, BuiltinFunction]:
    """One public object for each name that the front end expands, constructors of matrices aside."""
    return {name: BuiltinFunction(name, _PYTHON.get(name)) for name in BUILTINS if "." not in name and name not in _NOT_PUBLIC}
