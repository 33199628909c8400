"""Hashes of functions, kernels and fields that are the same in every process: of source text, of what it names, and of
what fields hold.
"""

from __future__ import annotations

import functools
import importlib
import io
import sys
import types
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from tinote.compiler.pysource.codes import captured_by, meaning_of
from tinote.compiler.pysource.origins import is_library
from tinote.lang.shipping.references import Reach, is_importable, is_own_cache
from tinote.runtime.digest import digest

Describe = Callable[[Any], Any]


class Tokenised:
    """An object whose `_token_parts` are all that it depends on; `dask.base.tokenize` hashes them."""

    __slots__ = ()

    def _token_parts(self) -> Any:
        raise NotImplementedError

    def __dask_tokenize__(self) -> Any:
        return tokenise(self)


def token(value: Any, *, contents: bool = True) -> str:
    """The hash of a value, as hexadecimal digits. Without `contents`, of fields and arrays only types and shapes."""
    return digest(repr(_Description(value, contents).of(value)))


def tokenise(value: Any) -> Any:
    """As a method `__dask_tokenize__` of classes whose objects have kernels."""
    return "tinote", token(value)


def is_open_file(value: Any) -> TypeGuard[io.TextIOWrapper]:
    """Whether a value is a file of text, and none of the streams that each process has."""
    return isinstance(value, io.TextIOWrapper) and value not in (sys.stdin, sys.stdout, sys.stderr)


class _Description:
    """A value as nested tuples of text and numbers, by what it holds: only what libraries define is its name. What was
    met before is its number.
    """

    def __init__(self, root: Any, contents: bool) -> None:
        self._root = root
        self._contents = contents
        self._reach: Reach | None = None
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []

    def of(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str() | bytes() | complex():
                return type(value).__name__, value
            case float():
                return "float", value.hex()
            case np.ndarray() if type(value) is np.ndarray and not value.dtype.hasobject:
                held = _digest(np.ascontiguousarray(value)) if self._contents else ""
                return "array", str(value.dtype), value.shape, held
            case np.generic():
                return "number", str(value.dtype), value.tobytes().hex()
            case types.ModuleType() if is_library(value.__name__):
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
            return "set", sorted(repr(_Description(item, self._contents).of(item)) for item in value)
        if isinstance(value, types.ModuleType):
            if self._reach is None:
                self._reach = Reach(self._root)
            return "module", value.__name__, self.of(self._reach.contents(value))
        if _is_named(value):
            return "named", value.__module__, getattr(value, "__qualname__", "")
        if isinstance(value, Tokenised):
            return type(value).__name__, self.of(value._token_parts())
        if is_own_cache(value):
            return "cached", self.of(value.__wrapped__)
        if type(value) is functools.cached_property:
            return "cached property", self.of(value.func)
        if isinstance(value, types.FunctionType):
            parts = value.__defaults__, value.__kwdefaults__, captured_by(value), value.__dict__
            return "function", meaning_of(value.__code__), [self.of(part) for part in parts]
        if isinstance(value, types.MethodType):
            return "method", self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, type):
            members = {name: item for name, item in vars(value).items() if name not in _OF_CLASSES}
            bases = [self.of(base) for base in (type(value), *value.__bases__)]
            return "class", value.__qualname__, bases, self.of(members)
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


#: What a class has that says nothing of what it does, or that Python keeps in it when it is used.
_OF_CLASSES = frozenset(
    f"__{name}__"
    for name in ("annotations", "dict", "doc", "firstlineno", "module", "slotnames", "static_attributes", "weakref")
) | {"_abc_impl"}


def _is_named(value: Any) -> bool:
    """Whether a value is what a library has under its name."""
    kinds = type | types.FunctionType | types.BuiltinFunctionType | Tokenised
    return isinstance(value, kinds) and is_library(value.__module__) and is_importable(value)


def _digest(array: Any) -> str:
    return digest(memoryview(array).cast("B") if array.size else b"")
