"""`@ti.func`: device functions."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from tinote.compiler.protocol import function_source
from tinote.errors import KernelTypeError
from tinote.lang.kernels.annotated import AnnotatedCall, annotated_call
from tinote.source import caller


class Replacement:
    """That a device function has a gradient of its own: `gradient`, once it is registered."""

    def __init__(self) -> None:
        self.gradient: Func | None = None


class Func:
    """A device function: inlined where kernels and other device functions call it. In Python scope it runs as plain
    Python, and its annotations convert there, too.
    """

    def __init__(self, function: types.FunctionType, *, may_recurse: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[..., Any] = function
        self.__tinote_function__ = function_source(function, is_func=True)
        self.__tinote_function__.may_recurse = may_recurse
        self.__tinote_self__: Any = None
        self.__tinote_replacement__: Replacement | None = None
        #: what converts by the annotations, once it was asked for
        self.__tinote_call__: tuple[AnnotatedCall | None] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.__tinote_call__ is None:
            self.__tinote_call__ = (annotated_call(self.__tinote_function__, self.__wrapped__),)
        (call,) = self.__tinote_call__
        return self.__wrapped__(*args, **kwargs) if call is None else call(self.__wrapped__, args, kwargs)

    def __get__(self, owner: Any, cls: type | None = None) -> Func:
        if owner is None:
            return self
        bound = object.__new__(Func)
        bound.__dict__.update(self.__dict__)
        bound.__tinote_self__ = owner
        bound.__wrapped__ = functools.partial(self.__wrapped__, owner)
        return bound

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A copy is the function itself; it is pickled as what its module calls it, as other functions are."""
        if self.__tinote_self__ is not None:
            return getattr, (self.__tinote_self__, self.__tinote_function__.name)
        return self.__qualname__  # type: ignore[attr-defined,no-any-return]

    def replaced(self) -> Func:
        """This function with a gradient of its own, which is yet to be registered."""
        found = object.__new__(Func)
        found.__dict__.update(self.__dict__)
        found.__tinote_replacement__ = Replacement()
        return found

    def __repr__(self) -> str:
        return f"<func {self.__tinote_function__.name}>"


def func(function: Callable[..., Any] | None = None) -> Func:
    """Make a device function of a function: kernels inline it where they call it. Its annotations convert, and
    `ti.template()` parameters are passed as they are.

    Kernels also call functions that are not decorated. These are inlined in the same way, but that their annotations
    say nothing, as in Python (`ti.template()` apart). Of both, arguments are passed by value: what is assigned to a
    parameter or its components is the function's own. Where inlining is impossible (no source, `try`, recursion, …) and
    all arguments are known at compile time, Python calls the function while the kernel is compiled, and again at each
    launch, to see whether the answer is still the same. Raises `KernelTypeError` for what is not a function.
    """
    return Func(plain_function(function))


func.__tinote_name__ = "func"  # type: ignore[attr-defined]


def plain_function(candidate: Any) -> types.FunctionType:
    """`candidate`, if it is a Python function. Raises `KernelTypeError`."""
    if isinstance(candidate, types.FunctionType):
        return candidate
    if candidate is None:
        hint = "write it without parentheses: `@ti.kernel`, `@ti.func`"
        raise KernelTypeError("this decorator has no options, and was called without a function", caller(), hint)
    kind = type(candidate).__name__
    hint = f"write `@{kind}` above it" if isinstance(candidate, staticmethod | classmethod) else ""
    raise KernelTypeError(f"a kernel or device function is made from a function, not a {kind}", caller(), hint)
