"""Names from outside the kernel: their values, and the captures that its code depends on."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

from tinote.compiler.captures import Capture, content_of
from tinote.compiler.frontend.analysis import local_names
from tinote.compiler.frontend.conversions import ask_python
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.python.undefined_names import hint_for
from tinote.compiler.frontend.scopes import ConstantBinding, Variable
from tinote.compiler.frontend.values import POISON, is_number
from tinote.compiler.protocol import buffer_of, constant_of, is_constant_array, is_numpy_number
from tinote.compiler.pysource.names import MISSING, CaptureKind, find_name
from tinote.errors import KernelNameError, Note


def read_name(e: Emitter, node: ast.Name) -> Any:
    binding = e.scope.find(node.id)
    if isinstance(binding, Variable):
        return POISON if binding.place is None else binding.place
    return binding.value if isinstance(binding, ConstantBinding) else lookup(e, node.id)


def lookup(e: Emitter, name: str) -> Any:
    """The value of a name outside the kernel; read through the function's closure, its module, then
    Python's built-ins. Raises for a name that is not defined.
    """
    source = e.frame.source
    if e.frame.builtin:
        return source.globals[name]
    found = find_name(name, source.closure, source.globals)
    if found is not None:
        if found.value is MISSING:
            e.error(
                f"`{name}` has no value yet in the function around `{source.name}`",
                f"assign `{name}` before the kernel is called",
                kind=KernelNameError,
            )
        return captured(e, *found)
    ended = e.frame.ended.get(name)
    if ended is not None:
        e.error(
            f"`{name}` belongs to the {ended.what} in which it is assigned and is not known after it",
            f"assign `{name}` before the {ended.what}",
            kind=KernelNameError,
            notes=[Note(f"`{name}` is assigned here", ended.span)],
        )
    if name in e.frame.assigned and name in local_names(source.tree):
        e.error(f"`{name}` is used before it is assigned", f"assign `{name}` on the way here", kind=KernelNameError)
    hint = hint_for(name, source.globals, [*e.scope.all_names(), *source.closure])
    e.error(f"`{name}` is not defined", hint, kind=KernelNameError)


def captured(e: Emitter, kind: CaptureKind, owner: Any, key: Any, value: Any) -> Any:
    """Record that the code depends on `value`; returns it as a kernel sees it."""
    e.captures.setdefault((kind, id(owner), key), Capture(kind, owner, key, value))
    return outside(e, value)


def outside(e: Emitter, value: Any) -> Any:
    """An object from outside of the kernel as a compile-time value: NumPy scalars become Python numbers, and mutable
    objects are recorded.
    """
    if isinstance(value, ModuleType) or (is_number(value) and type(value) in (bool, int, float)):
        return value
    if hasattr(type(value), "__tinote_captured__"):
        return value.__tinote_captured__()
    constant = constant_of(value)
    is_array = is_constant_array(value)
    mutable = isinstance(value, list | dict | set) or (
        type(value) is tuple and any(isinstance(item, list | dict | set) or is_constant_array(item) for item in value)
    )
    if constant is not None or mutable or is_array:
        e.captures.setdefault(
            (CaptureKind.CONTENT, id(value), None), Capture(CaptureKind.CONTENT, value, None, content_of(value))
        )
    if constant is None and getattr(value, "shape", None) == ():
        item = getattr(value, "item", None)
        if callable(item) and buffer_of(value) is None:
            known = is_array or is_numpy_number(value)
            return item() if known else ask_python(e, item)  # the tensor of another library may change
    return value


EXPRESSIONS: Expressions = {ast.Name: read_name}
