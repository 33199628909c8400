"""References of functions, and whether they can be found by name in the receiving process."""

from __future__ import annotations

import contextlib
import copyreg
import dis
import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeGuard

from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import meant
from tinote.compiler.pysource.codes import captured_by, cells_of, codes_in, contents_of, imports_of, named_by, texts_in
from tinote.compiler.pysource.origins import is_installed, is_library
from tinote.errors import SerializationError

_CACHED = type(functools.lru_cache(int))
#: Numbers and text: what has no parts.
PLAIN = frozenset({bool, bytes, complex, float, int, str, type(None)})
#: What a sent module has that says where it is from.
MODULE_FACTS = ("__doc__", "__file__", "__package__", "__path__")


class SentModule(types.ModuleType):
    """A module of the user's where it has arrived: what was taken of it, as it was when it was sent."""

    def __init__(self, name: str, facts: dict[str, Any], names: frozenset[str]) -> None:
        super().__init__(name)
        vars(self).update(facts)
        object.__setattr__(self, "_not_sent", names)

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("_not_sent", ()):
            raise SerializationError(
                f"`{name}` of the module `{self.__name__}` was not sent along: no code that was sent names it",
                hint=f"write `{self.__name__}.{name}` in the function",
            )
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def is_importable(candidate: Any) -> bool:
    """Whether a function, class or kernel is what an imported module has under its name, so that a reference to it
    means the same in another process.
    """
    name, qualified = getattr(candidate, "__module__", None), getattr(candidate, "__qualname__", None)
    if name in (None, "__main__", "__mp_main__") or not qualified or "<" in qualified or _goes_by_value(name):
        return False
    found: Any = sys.modules.get(name)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found is candidate


def _goes_by_value(module: str) -> bool:
    """Whether cloudpickle takes a module's contents by value."""
    cloudpickle = sys.modules.get("cloudpickle")
    if cloudpickle is None:
        return False
    registered = cloudpickle.list_registry_pickle_by_value()
    parts = module.split(".")
    return any(".".join(parts[: n + 1]) in registered for n in range(len(parts)))


def evaluated_annotations(source: FunctionSource) -> dict[str, Any]:
    """A function's annotations, those kept as text evaluated where they mean something; the others as they are."""
    scope: dict[str, Any] | None = None
    found: dict[str, Any] = {}
    for name, hint in source.annotations.items():
        if isinstance(hint, str):
            scope = {**source.globals, **source.enclosed()} if scope is None else scope
            with contextlib.suppress(Exception):  # whoever uses it says so
                hint = meant(eval(hint, scope))
        found[name] = hint
    return found


class Reach:
    """All that a value refers to, directly and indirectly. The user's modules have no end: of one that functions only
    look attributes up in, these are what it gives; of another, in a list or imported within a function, everything that
    some code names.

    `values`: what was reached; `modules`: the user's modules that these are from, or are.
    """

    def __init__(self, value: Any) -> None:
        self._names = frozenset[str]()
        while True:
            self._taken = dict[types.ModuleType, set[str]]()
            self.values = list(reached(value, self._held))
            names = self._names.union(*(named_by(one.__code__) for one in self.values if is_own_function(one)))
            if names == self._names:
                break
            self._names = names
        owners = [sys.modules.get(getattr(one, "__module__", None) or "") for one in self.values if _is_definition(one)]
        found = [one for one in (*owners, *self._taken, *self.values) if is_own_module(one)]
        self._whole = {one for one in self.values if is_own_module(one)}
        self.modules = list(dict.fromkeys(found))

    def contents(self, module: types.ModuleType) -> dict[str, Any]:
        """What is taken of a module, and what is reached of its functions and classes."""
        names = self._taken.get(module, set()) | (self._names if module in self._whole else set())
        defined = {one.__name__: one for one in self.values if _is_definition(one, module.__name__)}
        return _variables(module, names | {name for name, one in defined.items() if vars(module).get(name) is one})

    def _held(self, value: Any) -> Iterable[Any]:
        if is_own_module(value):
            return _variables(value, self._names).values()
        if not is_own_function(value):
            return held_by(value)
        found = [one for one in held_by(value) if not is_own_module(one)]
        for module, name in _taken_by(value):
            if name is None:
                found.append(module)
            else:
                self._taken.setdefault(module, set()).add(name)
                found += _variables(module, {name}).values()
        return found


def _variables(module: types.ModuleType, names: Iterable[str]) -> dict[str, Any]:
    """A module's variables of these names, and what it looks others up with."""
    kept = {"__getattr__", *names} - {"__builtins__", "__loader__", "__name__", "__spec__", *MODULE_FACTS}
    return {name: vars(module)[name] for name in sorted(kept & vars(module).keys())}


def _taken_by(function: types.FunctionType) -> Iterator[tuple[types.ModuleType, str | None]]:
    """The user's modules that a function's code refers to, each with the attribute that it looks up or assigns there,
    or with None where it does something else with the module.
    """
    variables = captured_by(function)
    for code in codes_in(function.__code__):
        module: Any = None
        for operation in dis.get_instructions(code):
            if operation.opname in _ATTRIBUTES and module is not None:
                yield module, None if operation.argval == "__dict__" else operation.argval
                module = vars(module).get(operation.argval)
            elif module is not None:
                yield module, None
                module = None
            if operation.opname in _VARIABLES:
                module = variables.get(operation.argval)
            module = module if is_own_module(module) else None
    names = {*imports_of(function), *(text for code in codes_in(function.__code__) for text in texts_in(code))}
    for name in sorted(names & sys.modules.keys()):
        parts = name.split(".")
        for n in range(len(parts)):
            found = sys.modules.get(".".join(parts[: n + 1]))
            if is_own_module(found):
                yield found, None


#: The operations of code that look a variable up outside of all functions or of this one, and an attribute.
_VARIABLES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"})


def is_own_module(value: Any) -> TypeGuard[types.ModuleType]:
    """Whether a value is a module of the user's."""
    return isinstance(value, types.ModuleType) and not is_library(value.__name__)


def is_own_function(value: Any) -> TypeGuard[types.FunctionType]:
    """Whether a value is a function of the user's."""
    return isinstance(value, types.FunctionType) and not is_library(value.__module__)


def is_own_cache(value: Any) -> TypeGuard[Any]:
    """Whether a value is a function of the user's behind `functools.lru_cache`."""
    return isinstance(value, _CACHED) and not is_library(value.__module__)


def import_what_is_named(value: Any) -> None:
    """Import the user's modules that functions import when they run, as far as they can be found: so that these go
    along, too.
    """
    tried = set[str]()
    while True:
        wanted = {
            name for one in Reach(value).values if is_own_function(one) for name in imports_of(one) if name not in tried
        }
        if not wanted:
            return
        tried |= wanted
        for name in sorted(wanted - sys.modules.keys()):
            with contextlib.suppress(Exception):  # the function itself says what is missing, or does without
                found = importlib.util.find_spec(name.partition(".")[0])
                if found is not None and found.origin is not None and not is_installed(found.origin):
                    importlib.import_module(name)


def _is_definition(value: Any, module: str | None = None) -> bool:
    """Whether a value is a function or a class, of this module."""
    return isinstance(value, types.FunctionType | type) and (module is None or value.__module__ == module)


def reached(value: Any, held: Callable[[Any], Iterable[Any]] | None = None) -> Iterator[Any]:
    """A value, what it holds (`held_by`, or what `held` gives), what that holds, and so on, each once."""
    waiting, seen = [value], dict[int, Any]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        waiting += (held or held_by)(value)


def held_by(value: Any) -> Iterable[Any]:
    """What a function names, what a container or an object of the user's holds, what a class has."""
    match value:
        case types.FunctionType():
            if is_library(value.__module__):  # A wrapper: what it is made of may be the user's.
                return contents_of(cells_of(value)).values()
            defaults = *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()
            also = *value.__annotations__.values(), *value.__dict__.values()
            return *captured_by(value).values(), *defaults, *also
        case types.MethodType():
            return value.__func__, value.__self__
        case SentModule():
            return vars(value).values()
        case types.ModuleType():
            return ()
        case type():
            return () if is_library(value.__module__) else (*vars(value).values(), *value.__bases__, type(value))
        case staticmethod() | classmethod():
            return (value.__func__,)
        case property():
            return value.fget, value.fset, value.fdel
    kind = type(value)
    if kind in PLAIN:
        return ()
    attributes = attributes_of(value)
    own = () if is_library(kind.__module__) else (kind, *attributes.values())
    match value:
        case dict():
            return *value.keys(), *value.values(), *own
        case list() | tuple() | set() | frozenset():
            return *value, *own
    if own:
        return own
    if "__wrapped__" in attributes:
        return attributes["__wrapped__"], attributes.get("__tinote_replacement__")
    if is_wrapper(kind):
        return *attributes.values(), getattr(value, "func", None), getattr(value, "args", ())
    return ()


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object has, in its dictionary and in slots."""
    found = dict(getattr(value, "__dict__", {}))
    for name in copyreg._slotnames(type(value)):  # type: ignore[attr-defined]
        with contextlib.suppress(AttributeError):
            found[name] = object.__getattribute__(value, name)
    return found


def is_wrapper(kind: type) -> bool:
    """Whether objects of a library's class are followed: what they are made of may be the user's."""
    return kind.__module__.startswith(_WRAPPERS)


_WRAPPERS = (
    "functools",
    "tinote.lang.ad",
    "tinote.lang.capture",
    "tinote.lang.data.structs",
    "tinote.lang.kernels",
    "tinote.lang.shipping",
)
