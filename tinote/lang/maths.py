"""The functions of the language: compiled in kernels, NumPy in Python scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.compiler.frontend.builtins import BUILTINS
from tinote.errors import KernelSyntaxError
from tinote.lang.matrix import Matrix
from tinote.lang.python_maths import PYTHON

__all__ = ["FUNCTIONS", "BuiltinFunction", "make_builtins"]


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
        given = [*args, *kwargs.values()]
        plain = [a.values if isinstance(a, Matrix) else a for a in args]
        named = {k: a.values if isinstance(a, Matrix) else a for k, a in kwargs.items()}
        # As in kernels, a result out of range is an infinity or NaN, without a word.
        with np.errstate(all="ignore"):
            result = self._python(*plain, **named)
        if isinstance(result, np.ndarray) and result.ndim and any(isinstance(a, Matrix) for a in given):
            return Matrix(result)
        return result.item() if isinstance(result, np.generic | np.ndarray) and not result.ndim else result

    def __repr__(self) -> str:
        return f"<ti.{self.__name__}>"


#: Python's own names, which the front end knows as Python's own objects.
_NOT_PUBLIC = frozenset(
    "Vector Matrix bool enumerate float int len list print range reversed tuple zip machine_epsilon".split()
)

#: One object for each name that the front end expands, constructors of matrices aside.
FUNCTIONS: dict[str, BuiltinFunction] = {
    name: BuiltinFunction(name, PYTHON.get(name)) for name in BUILTINS if "." not in name
}


def make_builtins() -> dict[str, BuiltinFunction]:
    """The functions that are public names of the package."""
    return {name: function for name, function in FUNCTIONS.items() if name not in _NOT_PUBLIC}
