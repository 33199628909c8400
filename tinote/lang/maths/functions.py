"""The functions of the language: compiled in kernels, NumPy in Python scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.errors import KernelSyntaxError, KernelTypeError
from tinote.lang.data.matrix import Matrix
from tinote.lang.maths.help import HELP, signature_of
from tinote.lang.maths.python_scope import PYTHON
from tinote.source import caller

__all__ = ["FUNCTIONS", "BuiltinFunction", "make_builtins"]


class BuiltinFunction:
    """A function that the compiler knows. `python` is what it does outside of kernels."""

    def __init__(self, name: str, python: Callable[..., Any] | None) -> None:
        self.__name__ = self.__tinote_name__ = name
        self._python = python
        if name in HELP:
            self.__doc__ = HELP[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._python is None:
            raise KernelSyntaxError(f"ti.{self.__name__} can only be used in a kernel or a @ti.func")
        given = [*args, *kwargs.values()]
        plain = [a.values if isinstance(a, Matrix) else a for a in args]
        named = {k: a.values if isinstance(a, Matrix) else a for k, a in kwargs.items()}
        # As in kernels, a result out of range is an infinity or NaN, without a word.
        with np.errstate(all="ignore"):
            try:
                result = self._python(*plain, **named)
            except TypeError:
                if all(isinstance(a, int | float | np.generic | np.ndarray) for a in [*plain, *named.values()]):
                    raise
                shown = ", ".join(map(repr, given))
                raise KernelTypeError(f"ti.{self.__name__} does not take {shown}", caller()) from None
        if isinstance(result, np.ndarray) and result.ndim and any(isinstance(a, Matrix) for a in given):
            return Matrix(result)
        return result.item() if isinstance(result, np.generic | np.ndarray) and not result.ndim else result

    def __getattr__(self, name: str) -> Any:
        # Of each function, not of the class, so that `inspect` finds it; and not before somebody asks.
        if name == "__signature__" and self.__name__ in HELP:
            return signature_of(self.__name__)
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<ti.{self.__name__}>"


#: What the front end expands, constructors of matrices aside: listed, because the front end is loaded when something is
#: compiled.
NAMES = (
    "abs",
    "acos",
    "add",
    "all",
    "any",
    "asin",
    "assume_in_range",
    "atan",
    "atan2",
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "bit_and",
    "bit_cast",
    "bit_not",
    "bit_or",
    "bit_sar",
    "bit_shl",
    "bit_shr",
    "bit_xor",
    "block_local",
    "bool",
    "cache_read_only",
    "cast",
    "ceil",
    "clamp",
    "clz",
    "cos",
    "cosh",
    "cross",
    "degrees",
    "determinant",
    "distance",
    "div",
    "dot",
    "enumerate",
    "exp",
    "exp2",
    "float",
    "floor",
    "floordiv",
    "fract",
    "frexp",
    "grouped",
    "held",
    "int",
    "inverse",
    "isinf",
    "isnan",
    "len",
    "length",
    "list",
    "log",
    "log10",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "loop_config",
    "loop_unique",
    "machine_epsilon",
    "max",
    "min",
    "mix",
    "mod",
    "mul",
    "ndrange",
    "neg",
    "no_activate",
    "normalize",
    "one",
    "outer_product",
    "popcnt",
    "pow",
    "print",
    "radians",
    "randn",
    "random",
    "range",
    "raw_div",
    "raw_mod",
    "reflect",
    "refract",
    "reversed",
    "rotation2d",
    "round",
    "rsqrt",
    "select",
    "sign",
    "sin",
    "sinh",
    "smoothstep",
    "sqrt",
    "static",
    "static_assert",
    "static_print",
    "step",
    "stop_grad",
    "stop_gradient",
    "sub",
    "sum",
    "surrogate",
    "tan",
    "tanh",
    "trace",
    "transpose",
    "tuple",
    "zero",
    "zip",
)

#: Python's own names, which the front end knows as Python's own objects.
_NOT_PUBLIC = frozenset(
    [
        "Vector",
        "Matrix",
        "bool",
        "enumerate",
        "float",
        "int",
        "len",
        "list",
        "print",
        "range",
        "reversed",
        "tuple",
        "zip",
        "machine_epsilon",
        "held",
    ]
)

#: One object for each of the names.
FUNCTIONS: dict[str, BuiltinFunction] = {name: BuiltinFunction(name, PYTHON.get(name)) for name in NAMES}


def make_builtins() -> dict[str, BuiltinFunction]:
    """The functions that are public names of the package."""
    return {name: function for name, function in FUNCTIONS.items() if name not in _NOT_PUBLIC}
