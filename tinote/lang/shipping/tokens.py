"""Hashes of functions, kernels and fields that are the same in every process: of source text, of what it names, and of
what fields hold.
"""

from __future__ import annotations

import importlib
import io
import sys
import types
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from tinote.lang.shipping.references import captured_by, is_importable
from tinote.runtime.digest import digest

Describe = Callable[[Any], Any]


class Tokenised:
    """What says in `_token_parts` all that it depends on, of which `dask.base.tokenize` makes a hash."""

    __slots__ = ()

    def _token_parts(self) -> Any:
        raise NotImplementedError

    def __dask_tokenize__(self) -> Any:
        return tokenise(self)


def token(value: Any) -> str:
    """The hash of a value, as hexadecimal digits."""
    return digest(repr(_Description().of(value)))


def tokenise(value: Any) -> Any:
    """As a method `__dask_tokenize__` of classes whose objects have kernels."""
    return "tinote", token(value)


def is_open_file(value: Any) -> TypeGuard[io.TextIOWrapper]:
    """Whether a value is a file of text, and none of the streams that each process has."""
    return isinstance(value, io.TextIOWrapper) and value not in (sys.stdin, sys.stdout, sys.stderr)


class _Description:
    """A value as nested tuples of text and numbers. What was met before is its number."""

    def __init__(self) -> None:
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []

    def of(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str() | bytes() | complex():
                return type(value).__name__, value
            case float():
                return "float", value.hex()
            case np.ndarray() if not value.dtype.hasobject:
                return "array", str(value.dtype), value.shape, _digest(np.ascontiguousarray(value))
            case np.generic():
                return "number", str(value.dtype), value.tobytes().hex()
            case types.ModuleType():
                return "module", value.__name__
        known = self._met.get(id(value))
        if known is not None:
            return "met", known
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        return self._described(value)

    def _described(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value).__name__, [self.of(item) for item in value]
        if isinstance(value, dict):
            return "dict", [(self.of(key), self.of(item)) for key, item in value.items()]
        if isinstance(value, set | frozenset):
            return "set", sorted(repr(_Description().of(item)) for item in value)
        if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | Tokenised) and is_importable(
            value
        ):
            return "named", value.__module__, getattr(value, "__qualname__", "")
        if isinstance(value, Tokenised):
            return type(value).__name__, self.of(value._token_parts())
        if isinstance(value, types.FunctionType):
            return (
                "function",
                self._code(value.__code__),
                self.of([value.__defaults__, value.__kwdefaults__, captured_by(value)]),
            )
        if isinstance(value, types.MethodType):
            return "method", self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, type):
            ignored = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__"}
            members = {name: item for name, item in vars(value).items() if name not in ignored}
            return "class", value.__qualname__, [self.of(base) for base in value.__bases__], self.of(members)
        if isinstance(value, staticmethod | classmethod | property):
            parts = [getattr(value, name, None) for name in ("__func__", "fget", "fset", "fdel")]
            return type(value).__name__, self.of(parts)
        # Anything else by what it is made of where it is pickled.
        try:
            reduced = value.__reduce_ex__(4)
        except TypeError:  # what only cloudpickle knows how to take
            if is_open_file(value):  # it would take the text in place of the file
                raise
            return "pickled", digest(importlib.import_module("cloudpickle").dumps(value))
        if isinstance(reduced, str):
            return "named", getattr(value, "__module__", ""), reduced
        made, arguments, *state = reduced[:3]
        return "object", self.of(made), self.of(arguments), self.of(state), self._items(reduced[3:5])

    def _items(self, iterators: Any) -> Any:
        return [self.of(list(items)) for items in iterators if items is not None]

    def _code(self, code: types.CodeType) -> Any:
        constants = [self._code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
        return code.co_code.hex(), code.co_names, code.co_varnames, constants


def _digest(array: Any) -> str:
    return digest(memoryview(array).cast("B") if array.size else b"")
