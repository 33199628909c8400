"""What functions refer to, and whether they are found by name where they arrive."""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tinote.compiler.protocol import FunctionSource

_GLOBAL_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})


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
    """Whether cloudpickle was told to take a module's contents by value."""
    cloudpickle = sys.modules.get("cloudpickle")
    if cloudpickle is None:
        return False
    registered = cloudpickle.list_registry_pickle_by_value()
    parts = module.split(".")
    return any(".".join(parts[: n + 1]) in registered for n in range(len(parts)))


def captured_by(function: types.FunctionType) -> dict[str, Any]:
    """What a function's code finds outside of it now, by name: globals that it names, variables of outer functions."""
    found = {
        name: function.__globals__[name] for name in global_names(function.__code__) if name in function.__globals__
    }
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


@functools.lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """The names that code, and what is defined in it, looks up or assigns outside of all functions."""
    found = [op.argval for op in dis.get_instructions(code) if op.opname in _GLOBAL_READS]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += global_names(constant)
    return tuple(dict.fromkeys(found))


def evaluated_annotations(source: FunctionSource) -> dict[str, Any]:
    """A function's annotations, those kept as text evaluated where they mean something; the others as they are."""
    scope: dict[str, Any] | None = None
    found: dict[str, Any] = {}
    for name, hint in source.annotations.items():
        if isinstance(hint, str):
            scope = {**source.globals, **source.enclosed()} if scope is None else scope
            with contextlib.suppress(Exception):  # whoever uses it says so
                hint = eval(hint, scope)
        found[name] = hint
    return found


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
            if not is_library(value.__module__):
                defaults = *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()
                return *captured_by(value).values(), *defaults
            # A wrapper: what it is made of may be the user's.
            return [cell.cell_contents for cell in value.__closure__ or () if is_filled(cell)]
        case types.MethodType():
            return value.__func__, value.__self__
        case list() | tuple() | set() | frozenset():
            return value
        case dict():
            return value.values()
        case type():
            return () if is_library(value.__module__) else (*vars(value).values(), *value.__bases__)
        case staticmethod() | classmethod():
            return (value.__func__,)
        case property():
            return value.fget, value.fset, value.fdel
    held = getattr(value, "__dict__", {})
    if "__wrapped__" in held:
        return (held["__wrapped__"],)
    kind = type(value)
    if isinstance(value, types.ModuleType):
        return ()
    if not is_library(kind.__module__):
        return kind, *held.values()
    if kind.__module__.startswith(_WRAPPERS):
        return *held.values(), getattr(value, "func", None), getattr(value, "args", ())
    return ()


_WRAPPERS = ("functools", "tinote.lang.ad", "tinote.lang.kernels", "tinote.lang.capture", "tinote.lang.shipping")


def is_filled(cell: types.CellType) -> bool:
    """Whether a variable of an outer function has a value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def is_library(module: str | None) -> bool:
    """Whether a module is one that is installed, in place of the user's own."""
    if not module or module in ("__main__", "__mp_main__"):
        return False
    top = module.partition(".")[0]
    if top == "tinote" or top in sys.stdlib_module_names:
        return True
    found = getattr(sys.modules.get(module), "__file__", None)
    if found is None:
        return module in sys.modules
    return any(found.startswith(folder + os.sep) for folder in {*map(sysconfig.get_path, ("purelib", "platlib"))})
