"""Plain Python functions in kernels: the function behind a callable object, and the source of an undecorated one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.python.names import captured, outside
from tinote.compiler.function_source import FunctionSource, function_of, function_source, plain_source
from tinote.compiler.protocol import builtin_of, is_ours
from tinote.compiler.pysource.names import CaptureKind


class CallTarget(NamedTuple):
    """The target of a call: a function, and bound arguments, which come before those of the call or by name."""

    function: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}


def target_of(e: Emitter, callee: Any) -> CallTarget:
    """The target of methods, partial applications, caches and callable objects. Each is a capture."""
    function: Any = callee
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while _is_device_object(function) or (
        not is_ours(function) and builtin_of(function) is None and function_of(function) is None
    ):
        if isinstance(function, functools.partial):
            given = captured(e, CaptureKind.ATTRIBUTE, function, "args", function.args)
            named = captured(e, CaptureKind.ATTRIBUTE, function, "keywords", function.keywords)
            args = (*[outside(e, a) for a in given], *args)
            kwargs = {name: outside(e, a) for name, a in named.items()} | kwargs
            function = captured(e, CaptureKind.ATTRIBUTE, function, "func", function.func)
        elif isinstance(function, _CACHED):
            function = captured(e, CaptureKind.ATTRIBUTE, function, "__wrapped__", function.__wrapped__)
        elif isinstance(function, MethodType) and not is_ours(function.__func__):
            args, function = (function.__self__, *args), function.__func__
        elif _is_device_object(function) or _is_object_with_call(function):
            function = captured(e, CaptureKind.ATTRIBUTE, function, "__call__", function.__call__)
        else:
            break
    return CallTarget(function, args, kwargs)


_CACHED = type(functools.lru_cache(len))


def _is_object_with_call(function: Any) -> bool:
    """Whether an object is called through a `__call__` written in Python."""
    kind = type(function)
    if isinstance(function, type | FunctionType | MethodType) or is_ours(kind) or not callable(function):
        return False
    if any(hasattr(function, f"__tinote_{name}__") for name in ("kernel", "type", "struct")):
        return False
    return isinstance(kind.__call__, FunctionType)


def _is_device_object(function: Any) -> bool:
    """Whether an object is called through a `__call__` that is a device function."""
    return callable(function) and function_of(type(function).__call__) is not None


def plain_source_of(e: Emitter, function: FunctionType) -> FunctionSource:
    """The source of a plain function, which the code then depends on. Raises `KernelSyntaxError` when it has none."""
    source = plain_source(function)
    e.sources[id(source)] = source
    captured(e, CaptureKind.ATTRIBUTE, function, "__code__", function.__code__)
    if source.defaults:
        captured(e, CaptureKind.ATTRIBUTE, function, "__defaults__", function.__defaults__)
        captured(e, CaptureKind.ATTRIBUTE, function, "__kwdefaults__", function.__kwdefaults__)
    return source


class _DeviceFunction:
    """The result of `ti.func(f)` in a kernel."""

    __tinote_self__ = None

    def __init__(self, source: FunctionSource) -> None:
        self.__tinote_function__ = source


def device_function(e: Emitter, function: Any) -> Any:
    """`ti.func(function)` in a kernel."""
    if function_of(function) is not None:
        return function
    if not isinstance(function, FunctionType):
        e.error(f"`ti.func` takes a function, not {describe(function)}")
    plain_source_of(e, function)  # what it depends on
    source = function_source(function, is_func=True)
    e.sources[id(source)] = source
    return _DeviceFunction(source)
