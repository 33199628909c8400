"""How a function of the language is defined: once, as a Python function that brings its name, its parameters and its
help.

    @primitive(p.sin, math.sin)
    def sin(x):                                     in kernels: a primitive of the IR
        "The sine of x, an angle in radians."
        return np.sin(x)                            in Python scope: this

    @composed()
    def clamp(x, xmin, xmax):                       in kernels: inlined; in Python scope: called
        "x, or the end of the range [xmin, xmax] that it is beyond."
        return min(max(x, xmin), xmax)

    @expanded(abs)
    def abs(x): ...                                 in kernels: what the front end has for its name (`BUILTINS`)

The argument of the decorator is the function of Python's own, if any, that means the same: kernels may call that, too.
In Python scope, numbers are Python's own, vectors and matrices NumPy arrays (in a composed function: matrices).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from tinote.compiler.function_source import FunctionSource, function_source
from tinote.compiler.protocol import FUNCTIONS, PYTHON_FUNCTIONS
from tinote.errors import KernelSyntaxError, KernelTypeError
from tinote.ir.primitives import Primitive
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.traced import all_traced
from tinote.source import caller

#: What a definition looks like to a type checker, which sees its own parameters and help.
F = TypeVar("F", bound=Callable[..., Any])


class BuiltinFunction:
    """A function that the compiler knows; `python` is what it does outside of kernels, `None` where it has no meaning
    there.
    """

    def __init__(self, definition: Callable[..., Any], python: Callable[..., Any] | None) -> None:
        functools.update_wrapper(self, definition)
        self.__tinote_name__: str = definition.__name__
        self._python = python
        FUNCTIONS[self.__tinote_name__] = self

    #: what Python raises for arguments that the definition does not take
    _refusals: tuple[type[Exception], ...] = (TypeError,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._python is None:
            raise KernelSyntaxError(f"ti.{self.__tinote_name__} can only be used in a kernel or a @ti.func")
        given = [*args, *kwargs.values()]
        plain = [self._plain(a) for a in args]
        named = {name: self._plain(a) for name, a in kwargs.items()}
        if any(isinstance(a, np.ndarray) and a.dtype == object for a in plain):
            plain = [all_traced(a) for a in plain]
        # As in kernels, a result that is out of range is an infinity or NaN.
        with np.errstate(all="ignore"):
            try:
                result = self._python(*plain, **named)
            except self._refusals:
                if not self._is_mistaken([*plain, *named.values()]):
                    raise
                shown = ", ".join(map(repr, given))
                raise KernelTypeError(f"ti.{self.__tinote_name__} does not take {shown}", caller()) from None
        return self._result(result, given)

    @staticmethod
    def _plain(argument: Any) -> Any:
        """An argument as the definition takes it."""
        return argument.values if isinstance(argument, Matrix) else argument

    @staticmethod
    def _result(result: Any, given: Sequence[Any]) -> Any:
        """A result of the definition as the caller has it: NumPy's numbers become Python's, and arrays become matrices
        where a matrix was given.
        """
        if isinstance(result, tuple):
            return tuple([BuiltinFunction._result(part, given) for part in result])
        if isinstance(result, np.ndarray) and result.ndim:
            return Matrix(result) if any(isinstance(a, Matrix) for a in given) else result
        return result.item() if isinstance(result, np.generic | np.ndarray) else result

    @staticmethod
    def _is_mistaken(arguments: Sequence[Any]) -> bool:
        """Whether arguments that are refused are of a kind that the function does not take."""
        return not all(isinstance(a, int | float | np.generic | np.ndarray) for a in arguments)

    def __reduce__(self) -> str:
        """A copy is the function itself; it is pickled as what its module calls it, as other functions are."""
        return self.__qualname__  # type: ignore[attr-defined,no-any-return]

    def __repr__(self) -> str:
        return f"<ti.{self.__tinote_name__}>"


class PrimitiveFunction(BuiltinFunction):
    """One that emits a primitive for its call."""

    def __init__(self, definition: Callable[..., Any], prim: Primitive) -> None:
        super().__init__(definition, definition)
        self.__tinote_primitive__ = prim


class ComposedFunction(BuiltinFunction):
    """One that is written in the language itself."""

    _refusals = (TypeError, AttributeError)

    def __init__(self, definition: Callable[..., Any]) -> None:
        super().__init__(definition, definition)
        self._source: FunctionSource | None = None

    @staticmethod
    def _plain(argument: Any) -> Any:
        return Matrix(argument) if isinstance(argument, list | tuple | np.ndarray) and len(argument) else argument

    @staticmethod
    def _result(result: Any, given: Sequence[Any]) -> Any:
        """A matrix becomes an array where only arrays were given."""
        arrays = any(isinstance(a, np.ndarray) for a in given) and not any(isinstance(a, Matrix) for a in given)
        return result.values if arrays and isinstance(result, Matrix) else result

    def __tinote_composed__(self) -> FunctionSource:
        """Its source, which is read when a kernel first calls it, so that importing tinote stays fast."""
        if self._source is None:
            definition = self.__wrapped__  # type: ignore[attr-defined]
            assert isinstance(definition, FunctionType)
            self._source = function_source(definition, is_func=True)
        return self._source


def _defined(make: Callable[[F], BuiltinFunction], python: Sequence[Callable[..., Any]]) -> Callable[[F], F]:
    def defined(definition: F) -> F:
        made = make(definition)
        for same in python:
            PYTHON_FUNCTIONS[same] = made
        return cast(F, made)

    return defined


def primitive(prim: Primitive, *python: Callable[..., Any]) -> Callable[[F], F]:
    """Define a function that is a primitive of the IR; the function decorated is its meaning in Python scope."""
    return _defined(lambda definition: PrimitiveFunction(definition, prim), python)


def composed(*python: Callable[..., Any]) -> Callable[[F], F]:
    """Define a function that is written in the language itself."""
    return _defined(ComposedFunction, python)


def expanded(*python: Callable[..., Any]) -> Callable[[F], F]:
    """Define a function whose calls the front end expands; the function decorated is its meaning in Python scope."""
    return _defined(lambda definition: BuiltinFunction(definition, definition), python)


def in_kernels(definition: F) -> F:
    """Define a function whose calls the front end expands, and which means nothing in Python scope: of the function
    decorated only the name, the parameters and the help count.
    """
    return cast(F, BuiltinFunction(definition, None))
