"""`@ti.func`: device functions."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from tinote.compiler.function_source import FunctionSource, function_source
from tinote.compiler.pysource.codes import captured_by
from tinote.errors import KernelTypeError
from tinote.lang.kernels.annotated import AnnotatedCall, annotated_call
from tinote.lang.shipping.references import evaluated_annotations, is_importable
from tinote.lang.shipping.sources import functions_by_file
from tinote.lang.shipping.tokens import Tokenised
from tinote.source import caller


class Replacement:
    """That a device function has a gradient of its own: `gradient`, once it is registered."""

    def __init__(self) -> None:
        self.gradient: Func | None = None


#: The parameters of a device function and what it returns, for type checkers.
P = ParamSpec("P")
R = TypeVar("R")
#: The object of a method, and its further parameters.
Self = TypeVar("Self")
Further = ParamSpec("Further")


class Func(Tokenised, Generic[P, R]):
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

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.__tinote_call__ is None:
            self.__tinote_call__ = (annotated_call(self.__tinote_function__, self.__wrapped__),)
        (call,) = self.__tinote_call__
        return self.__wrapped__(*args, **kwargs) if call is None else call(self.__wrapped__, args, kwargs)

    @overload
    def __get__(self, owner: None, cls: type | None = None) -> Func[P, R]: ...
    @overload
    def __get__(
        self: Func[Concatenate[Self, Further], R], owner: Self, cls: type | None = None
    ) -> Func[Further, R]: ...
    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            return self
        bound = object.__new__(Func)
        bound.__dict__.update(self.__dict__)
        bound.__tinote_self__ = owner
        bound.__wrapped__ = functools.partial(self.__wrapped__, owner)
        return bound

    def __copy__(self) -> Func:
        return self

    def __deepcopy__(self, memo: Any) -> Func:
        """A copy is the function itself, bound to the copy of what it is bound to."""
        owner = self.__tinote_self__
        return self if owner is None else getattr(copy.deepcopy(owner, memo), self.__tinote_function__.name)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """It is pickled as what its module calls it, as other functions are; where no module has it, cloudpickle takes
        it by value.
        """
        if self.__tinote_self__ is not None:
            return getattr, (self.__tinote_self__, self.__tinote_function__.name)
        if is_importable(self):
            return self.__qualname__  # type: ignore[attr-defined,no-any-return]
        source = self.__tinote_function__
        state = {
            **parts_of(self, source),
            "annotations": evaluated_annotations(source),
            "replacement": self.__tinote_replacement__,
        }
        return object.__new__, (Func,), state, None, None, _arrive

    def _token_parts(self) -> Any:
        function, replacement = self.__wrapped__, self.__tinote_replacement__
        source = self.__tinote_function__
        captured = captured_by(function) if isinstance(function, types.FunctionType) else {}
        gradient = None if replacement is None else replacement.gradient
        return source.text, self.__tinote_self__, gradient, captured, evaluated_annotations(source)

    def __repr__(self) -> str:
        return f"<func {self.__tinote_function__.name}>"


def with_replacement(function: Func) -> Func:
    """A device function with a gradient of its own, which is yet to be registered."""
    found = object.__new__(Func)
    found.__dict__.update(function.__dict__)
    found.__tinote_replacement__ = Replacement()
    return found


def parts_of(made: Any, source: FunctionSource) -> dict[str, Any]:
    """What a kernel or a device function that is sent to another process is made of."""
    return {
        "function": made.__wrapped__,
        "texts": functions_by_file([made.__wrapped__]),
        "defaults": source.defaults,
        "may_recurse": source.may_recurse,
        "names": {name: getattr(made, name) for name in functools.WRAPPER_ASSIGNMENTS if name in _NAMES},
    }


def complete(made: Any, source: FunctionSource, state: dict[str, Any]) -> None:
    """What the function itself may not have had yet when it arrived."""
    source.defaults, source.annotations = state["defaults"], state["annotations"]
    source.may_recurse = state["may_recurse"]
    for name, value in state["names"].items():
        setattr(made, name, value)


_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")


def _arrive(made: Func, state: dict[str, Any]) -> None:
    """A device function comes from another process. Its function may still lack all but its code."""
    Func.__init__(made, state["function"], may_recurse=state["may_recurse"])
    complete(made, made.__tinote_function__, state)
    made.__tinote_replacement__ = state["replacement"]


def func(function: Callable[P, R] = None) -> Func[P, R]:  # type: ignore[assignment]  # noqa: RUF013
    """Make a device function of a function: kernels inline it where they call it.

    Its annotations convert arguments, and `ti.template()` parameters are passed as they are. Kernels also call
    functions that are not decorated. These are inlined in the same way, except that their annotations have no effect,
    as in Python (`ti.template()` apart). In both cases arguments are passed by value: assigning to a parameter or its
    components changes nothing in the caller. Where inlining is impossible (no source, `try`, recursion, …) and all
    arguments are known at compile time, Python calls the function while the kernel is compiled, and again at each
    launch, to see whether the answer is still the same.

    Parameters
    ----------
    function : callable
        The function. It can be called in Python scope, too.

    Returns
    -------
    Func
        The device function.

    Raises
    ------
    KernelTypeError
        For what is not a function.

    Examples
    --------
    >>> @ti.func
    ... def square(a):
    ...     return a * a
    >>> @ti.kernel
    ... def sum_of_squares(n: ti.i32) -> ti.i32:
    ...     s = 0
    ...     for i in range(n):
    ...         s += square(i)
    ...     return s
    >>> sum_of_squares(4)
    14
    >>> square(3)
    9
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
