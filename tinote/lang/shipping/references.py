"""What functions refer to, and whether they are found by name where they arrive."""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
import types
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
        name: function.__globals__[name] for name in _global_names(function.__code__) if name in function.__globals__
    }
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


@functools.lru_cache(maxsize=1024)
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    found = [op.argval for op in dis.get_instructions(code) if op.opname in _GLOBAL_READS]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _global_names(constant)
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
