"""The mutable contents of objects, as far as they are known.

A captured step depends on the contents of user objects, which are compared before each replay. They are known for
constants, Python containers, NumPy arrays, objects of this package, and, for the attributes that the step reads, for
functions, classes, modules and objects whose classes are written in Python. Any other object might hold anything, and a
step that uses it is not captured.
"""

from __future__ import annotations

import abc
import builtins
import enum
import functools
import re
import types
import typing
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import is_
from typing import Any

import numpy as np

from tinote.compiler.pysource import origins
from tinote.compiler.pysource.codes import cells_of, contents_of
from tinote.compiler.pysource.names import MISSING
from tinote.lang.data.argpacks import ArgPack
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.structs import Struct

#: the contents of immutable objects
FIXED = object()
#: Modules whose functions have effects other than on memory.
SHOWS = ("tinote.viz", "tinote.tools", "tinote.ui", "tinote.magics", "tinote.lang.kernels.profiler")
#: Types that Python code mutates in place.
CONTAINERS = (list, dict, set, deque, np.ndarray)

#: Types whose objects never change.
_CONSTANT = frozenset({
    type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), type(NotImplemented), types.CodeType,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType, types.GenericAlias, types.UnionType, np.ufunc, re.Pattern, property, staticmethod,
    classmethod,
})  # fmt: skip
#: Types of immutable containers.
_FIXED_KINDS = {
    tuple, frozenset, slice, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType,
}  # fmt: skip
#: Classes of containers, the special ones first.
_HOLDING = (
    OrderedDict, defaultdict, Counter, dict, list, deque, set, tuple, frozenset, int, float, complex, str, bytes,
)  # fmt: skip
#: Classes that add no mutable contents to an object, or only attributes.
_PLAIN = frozenset({
    object, abc.ABC, typing.Generic, typing.Protocol, enum.Enum, enum.IntEnum, enum.StrEnum, enum.Flag, enum.IntFlag,
    enum.ReprEnum, types.SimpleNamespace,
})  # fmt: skip
#: Such classes, and constants, of modules that need not be installed.
_PLAIN_NAMES = {("argparse", "Namespace"), ("argparse", "_AttributeHolder")}
_CONSTANT_NAMES = {
    ("enum", "property"), ("_collections", "_tuplegetter"), ("fractions", "Fraction"), ("datetime", "timedelta"),
    ("numpy", "_ArrayFunctionDispatcher"),
}  # fmt: skip
#: Attributes that Python sets in each class.
_OF_CLASSES = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__", "__abstractmethods__",
    "_abc_impl", "__parameters__", "__orig_bases__", "__dataclass_fields__", "__dataclass_params__",
}  # fmt: skip

#: The methods that Python calls implicitly.
_SPECIAL = {
    name
    for kind in (int, float, complex, str, bytes, list, dict, set, frozenset, tuple, type, object, types.GeneratorType,
                 types.FunctionType, property, memoryview, slice, range)
    for name in dir(kind)
    if name.startswith("__") and callable(getattr(kind, name, None))
} | {
    "__call__", "__enter__", "__exit__", "__getattr__", "__missing__", "__bool__", "__index__", "__matmul__",
    "__rmatmul__", "__imatmul__", "__ipow__", "__itruediv__", "__ifloordiv__", "__imod__", "__ilshift__",
    "__irshift__", "__idiv__", "__length_hint__", "__post_init__", "__set_name__", "__instancecheck__",
    "__subclasscheck__", "__complex__", "__bytes__", "__fspath__", "__copy__", "__deepcopy__", "__array__",
    "__array_ufunc__", "__array_function__", "__array_interface__", "__array_struct__", "__buffer__",
} - _OF_CLASSES  # fmt: skip
#: The flag of classes created at run time; others are immutable.
_MADE_BY_PYTHON = 1 << 9


def is_constant(value: Any) -> bool:
    """Whether an object is immutable."""
    kind = type(value)
    if kind in _CONSTANT or isinstance(value, np.dtype):
        return True
    return _name_of(kind) in _CONSTANT_NAMES or (isinstance(value, np.generic) and not isinstance(value, np.void))


def is_ours(value: Any) -> bool:
    """Whether an object belongs to this package: a field, a kernel, a vector, …"""
    return isinstance(value, Matrix) or origins.is_ours(type(value).__module__)


def variables_of(owner: Any) -> Any:
    """The attributes that an object has of its own, if they are in a dictionary."""
    if isinstance(owner, type):
        return None
    try:
        return object.__getattribute__(owner, "__dict__")  # its class may answer otherwise
    except AttributeError:
        return None


class Contents:
    """The contents of objects. `assigned`: by the identity of their holder, the keys of variables that do not count as
    contents; `is_users`: whether a module is the user's, written in Python. `attributes_read`: the names of the
    attributes that matter; None: perhaps any. `asks_for_absent`: whether missing attributes matter, too.
    """

    def __init__(self, is_users: Callable[[str], bool]) -> None:
        self.attributes_read: set[str] | None = set()
        self.asks_for_absent = False
        self.assigned: dict[int, set[Any]] = {}
        self._is_users = is_users
        #: by class: the built-in class that its objects have their items from, and their slots; None if it is unknown
        self._classes: dict[type, tuple[type, dict[str, Any]] | None] = {}
        #: by the identity of a class: whether it is the user's; None if nothing of it can be changed
        self._users_classes: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """The mutable contents of an object, keys and values in turn; `FIXED` if it has none, None if unknown."""
        kind = type(value)
        known = self._classes.get(kind)
        if known is not None:  # first, since most objects that are compared repeatedly are of the user's classes
            return self._object(value, *known)
        if kind is dict or kind is list or kind is set:
            return FIXED if value is builtins.__dict__ else self._items(value, kind)
        if kind is np.ndarray:
            return _numbers(value)
        if kind is types.FunctionType or kind is types.ModuleType:
            return self._of_code(value)
        if kind is functools.partial:
            return value.func, value.args, value.keywords
        if kind is functools.cached_property:
            return value.func, value.attrname
        if issubclass(kind, type):
            return self._of_class(value)
        if kind in _FIXED_KINDS or is_constant(value) or isinstance(value, CapturedArray):
            return FIXED  # a captured array: what the step itself is called with, or has read
        if is_ours(value):
            return _own(value)
        if kind is np.void:
            return _numbers(value)
        known = self._class(kind) if kind not in self._classes else None
        return None if known is None else self._object(value, *known)

    def _of_code(self, value: Any) -> Any:
        """The same of a function or a module."""
        found = self._attributes(value.__dict__)
        if isinstance(value, types.FunctionType) and value.__closure__:
            module = value.__globals__.get("__name__") or ""
            if _is_open(module) and not self._is_users(module):  # not read
                found += tuple(contents_of(cells_of(value)).values())
        return FIXED if value is builtins or not (found or self.asks_for_absent) else found

    def _of_class(self, value: type) -> Any:
        """The same of a class."""
        is_users = self._users_classes.get(id(value), MISSING)
        if is_users is MISSING:
            is_open = value.__flags__ & _MADE_BY_PYTHON and _is_open(value.__module__)
            is_users = self._users_classes[id(value)] = self._is_users(value.__module__) if is_open else None
        if is_users is None:
            return FIXED
        held = value.__dict__
        found = self._attributes(held)
        if not is_users:
            return found if found or self.asks_for_absent else FIXED
        # Methods that Python calls implicitly are not named at the call.
        return type(value), value.__bases__, *found, *_pairs(held, _SPECIAL & held.keys())

    def _object(self, value: Any, base: type, slots: Mapping[str, Any]) -> tuple[Any, ...]:
        found = (type(value),) if base is object else (type(value), *self._items(value, base))
        held = variables_of(value)
        if held is not None:
            found += self._attributes(held)
        if slots:
            names = slots if self.attributes_read is None else self.attributes_read & slots.keys()
            found += tuple([getattr(value, name, MISSING) for name in sorted(names)])
        return (*found, value._value_) if isinstance(value, enum.Enum) else found

    def _class(self, kind: type) -> tuple[type, dict[str, Any]] | None:
        """Facts about the objects of a class."""
        base = next((one for one in _HOLDING if issubclass(kind, one)), object)
        slots: dict[str, Any] = {}
        found: tuple[type, dict[str, Any]] | None = base, slots
        for one in kind.__mro__:
            if one in _PLAIN or one in _HOLDING or _name_of(one) in _PLAIN_NAMES or one.__module__ == "collections.abc":
                continue
            if not self._is_users(one.__module__):
                found = None
            slots |= {k: v for k, v in vars(one).items() if isinstance(v, types.MemberDescriptorType)}
        self._classes[kind] = found
        return found

    def _items(self, value: Any, base: type) -> tuple[Any, ...]:
        """The contents of a container."""
        if issubclass(base, dict):
            items = base.items(value)  # type: ignore[attr-defined]
            apart = self.assigned.get(id(value))
            if apart is not None:
                items = [(k, v) for k, v in items if k not in apart]
            found = tuple(chain.from_iterable(items))
            return (*found, value.default_factory) if base is defaultdict else found
        if base is list or base is deque:
            items = base.__iter__(value)  # type: ignore[attr-defined]
            apart = self.assigned.get(id(value), ())
            return tuple([MISSING if k in apart else one for k, one in enumerate(items)] if apart else items)
        return tuple(set.__iter__(value)) if base is set else ()

    def _attributes(self, held: Any) -> tuple[Any, ...]:
        if self.attributes_read is None:
            names = {k for k in held.keys() - _OF_CLASSES if not k.startswith("__tinote_")}
        else:
            names = self.attributes_read & held.keys()
        apart = self.assigned.get(id(held))
        return _pairs(held, names if apart is None else names - apart) if names else ()

    def reached(self, value: Any, contents: Any) -> Iterable[Any]:
        """The objects that are reachable from here."""
        if contents is FIXED:
            match value:
                case tuple() | frozenset():
                    return value
                case slice():
                    return value.start, value.stop, value.step
                case types.MethodType():
                    return value.__self__, value.__func__
                case types.BuiltinFunctionType() | types.MethodWrapperType():
                    return () if isinstance(value.__self__, types.ModuleType) else (value.__self__,)
            return ()
        if isinstance(value, np.ndarray | np.generic | Matrix):
            return contents[-1] if type(contents[-1]) is tuple else ()
        return (*contents, *value) if isinstance(value, tuple | frozenset) else contents


def _numbers(array: Any) -> Any:
    if array.dtype == object:
        return array.shape, array.dtype, tuple(array.ravel().tolist())
    return None if array.dtype.hasobject else (array.shape, array.dtype, array.tobytes())


def _pairs(held: Any, names: Iterable[str]) -> tuple[Any, ...]:
    """The names and their values."""
    found: list[Any] = sorted(names)
    return (*found, *[held[name] for name in found])


def _is_open(module: str) -> bool:
    """Whether attributes of what is defined there may be changed."""
    return not isinstance(module, str) or module.partition(".")[0] not in ("tinote", "numpy")


def _own(value: Any) -> Any:
    """The Python contents of an object of this package: `FIXED` for fields, kernels and the like, None for objects with
    output.
    """
    if isinstance(value, Struct | ArgPack):
        return tuple(chain.from_iterable(vars(value).items()))
    if isinstance(value, Matrix):
        return _numbers(value.values)
    return None if type(value).__module__.startswith(SHOWS) else FIXED


def _name_of(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def described(value: Any) -> str:
    """A description for messages."""
    kind = type(value)
    return f"a {kind.__qualname__}" if kind.__module__ == "builtins" else f"a {kind.__module__}.{kind.__qualname__}"


# ---- comparing


def is_same(now: Any, then: Any) -> bool:
    """Whether it is the same object, or an equal number or text, or a tuple of these."""
    if now is then:
        return True
    if type(now) is not type(then):
        return False
    if type(now) is tuple:
        return len(now) == len(then) and (all(map(is_, now, then)) or all(map(is_same, now, then)))
    if isinstance(now, float):
        return repr(now) == repr(then)
    return isinstance(now, int | str | bytes | types.MethodType) and bool(now == then)
