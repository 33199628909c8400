"""Calls that Python evaluates at compile time, and the errors of those that cannot be."""

from __future__ import annotations

import ast
import copy
import traceback
import types
from collections.abc import Sequence
from typing import Any, cast

from tinote.compiler.frontend.calls.call_arguments import CallSite, callee_node, evaluate_arguments
from tinote.compiler.frontend.conversions import ask_python
from tinote.compiler.frontend.descriptions import in_place_of_call
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import BuiltinParameters
from tinote.compiler.frontend.python.names import captured, outside
from tinote.compiler.frontend.python.side_effects import mutates, variation_of
from tinote.compiler.frontend.scopes import LocalFunction
from tinote.compiler.frontend.values import (
    Place,
    StaticTensor,
    StructValue,
    Value,
    is_fixed,
    is_known_by_class,
    is_plain,
)
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import FUNCTIONS, is_ours, space_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.errors import KernelSyntaxError, Note, TinoteError
from tinote.ir.types import Scalar, scalar_named, u1
from tinote.source import Span

#: Python's functions that have a meaning for constants only.
_PURE = {isinstance, issubclass, getattr, hasattr, type, str, repr, sorted, divmod, set, dict, round, id}


def is_exact_in_python(e: Emitter, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether one of Python's own functions is called on constants only, so that Python's result is exact."""
    if not isinstance(callee, types.BuiltinFunctionType) or callee.__module__ != "math":
        return False
    return all(e.is_static(a) for a in [*args, *kwargs.values()])


def call_python(e: Emitter, call: CallSite, callee: Any) -> Any:
    """A call of an object outside the language, such as a class or a function without source, evaluated at compile
    time.
    """
    args, kwargs = evaluate_arguments(e, call)
    given = [*args, *kwargs.values()]
    if callee in (isinstance, type) and not kwargs and len(args) == 1 + (callee is isinstance):
        known = _kind_of(e, args[0])
        if known is not None:
            return _is_instance(known, args[1]) if callee is isinstance else _python_type(e, known, call)
    left_out = getattr(callee, "__tinote_error__", None)
    if left_out is not None:
        raise left_out(e.b.loc)
    static = all(e.is_static(a) for a in given)
    if static and e.in_static:
        return evaluate_in_python(e, callee, args, kwargs)
    node = callee_node(call)
    variation = variation_of(callee)
    if variation is not None:
        e.error(f"`{call.name}` {variation.text}", variation.hint, node, KernelSyntaxError)
    module = getattr(callee, "__module__", None) or ""
    name = getattr(callee, "__qualname__", type(callee).__name__)
    of_field = is_ours(callee) or space_of(getattr(callee, "__self__", None)) is not None
    if mutates(callee) or (of_field and not hasattr(callee, "__tinote_static__")):
        e.error(f"`{name}` cannot be called in a kernel", in_place_of_call(callee), node, KernelSyntaxError)
    if static:
        return evaluate_in_python(e, callee, args, kwargs)
    if hasattr(callee, "_fields") and str(getattr(callee.__new__, "__module__", "")).startswith("namedtuple_"):
        return _named_tuple(e, callee, args, kwargs)
    if callee in _PURE or hasattr(callee, "__tinote_static__"):
        e.error(f"`{name}` works on what is known at compile time only")
    if module == "math" or module.partition(".")[0] == "numpy":
        t = _numpy_scalar(callee)
        if t is not None and len(args) == 1 and not kwargs:
            return e.cast(args[0], t)
        hint = f"use `ti.{name}`" if name in FUNCTIONS else "call it outside of the kernel"
        e.error(f"`{module}.{name}` cannot be applied to a run-time value", hint, node, KernelSyntaxError)
    kind = "class" if isinstance(callee, type) else "function without source"
    e.error(
        f"`{name}` is a Python {kind}, which is called at compile time, and {run_time_argument(e, call, args)} "
        "exists at run time only",
        in_place_of_call(callee),
        node,
        KernelSyntaxError,
    )


def _kind_of(e: Emitter, front: Any) -> type | str | None:
    """The Python type of a number that exists at run time, or what else it is of the language; None for what Python
    knows.
    """
    if isinstance(front, StructValue):
        return "Struct"
    if not isinstance(front, Value | Place | StaticTensor):
        return None
    shape = e.shape(front)
    if shape:
        return "Vector" if len(shape) == 1 else "Matrix"
    dtype = e.as_value(front).dtype
    return bool if dtype is u1 else float if dtype.kind == "f" else int


def _is_instance(kind: type | str, classes: Any) -> bool:
    """Whether what exists at run time is of one of these classes."""
    if isinstance(classes, tuple):
        return any(_is_instance(kind, one) for one in classes)
    if isinstance(kind, type):
        return isinstance(classes, type) and issubclass(kind, classes)
    return is_ours(classes) and getattr(classes, "__name__", "") in (kind, "Matrix" if kind == "Vector" else kind)


def _python_type(e: Emitter, kind: type | str, call: CallSite) -> type:
    if isinstance(kind, str):
        e.error(f"`type` cannot name a {kind.lower()}", f"ask `isinstance(…, ti.{kind})`", callee_node(call))
    return kind


def _named_tuple(e: Emitter, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A named tuple of values that exist at run time."""
    defaults = {name: outside(e, value) for name, value in kind._field_defaults.items()}
    given = BuiltinParameters(kind._fields, defaults).matched(e, kind.__name__, args, kwargs)
    return kind._make(given.values())


def _numpy_scalar(callee: Any) -> Scalar | None:
    """The type that a NumPy scalar type denotes."""
    if not isinstance(callee, type):
        return None
    return _NUMPY.get(callee.__name__)


_NUMPY = {
    **{f"{name}{bits}": scalar_named(f"{name[0]}{bits}") for name in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": scalar_named(f"f{bits}") for bits in (16, 32, 64)},
    "bool": scalar_named("u1"),
    "bool_": scalar_named("u1"),
}


def run_time_argument(e: Emitter, call: CallSite, args: list[Any]) -> str:
    """The first argument that is not known at compile time, as a message names it."""
    for written, value in zip(call.args, args, strict=False):
        if not e.is_static(value):
            return f"`{ast.unparse(written)}`" if isinstance(written, ast.expr) else "what it is a method of"
    return "an argument"


def evaluate_in_python(e: Emitter, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The result of `callee` for arguments known at compile time."""
    args = [_for_python(e, a) for a in args]
    kwargs = {name: _for_python(e, a) for name, a in kwargs.items()}
    try:
        if callee is getattr and hasattr(args[0], args[1]):
            return captured(e, CaptureKind.ATTRIBUTE, args[0], args[1], callee(*args))
        known = is_fixed(callee) and is_plain([*args, *kwargs.values()])
        if not known and not is_known_by_class(callee, args):
            e.reproducible = False  # its result is not reproducible in another process
        if getattr(callee, "__tinote_static__", False):
            return outside(e, callee(*args, **kwargs))
        return outside(e, ask_python(e, callee, *args, **kwargs))
    except TinoteError:
        raise
    except Exception as error:
        name = getattr(callee, "__name__", callee)
        e.error(f"calling `{name}` at compile time failed: {type(error).__name__}: {error}")


def _for_python(e: Emitter, front: Any) -> Any:
    """A function defined in the kernel, as one that Python can call with compile-time values."""
    if not isinstance(front, LocalFunction):
        return front
    source, known = front.__tinote_function__, dict(front.scope.constants())
    used = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)} - front.own
    for name, cell in source.closure.items():
        if name in used and name not in known:
            known[name] = captured(e, CaptureKind.CELL, cell, None, cell.cell_contents)
    names = [name for name in known if name in used and e.is_static(known[name])]
    tree = copy.copy(source.tree)
    tree.decorator_list = []
    result = ast.Return(ast.Name(tree.name, ast.Load()))
    if tree.name == "<lambda>":
        body: list[ast.stmt] = [ast.Return(ast.Lambda(tree.args, cast("Any", tree.body[0]).value))]
    else:
        body = [tree, result]
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    make = ast.FunctionDef("make", arguments, body, [], None)
    made: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([make], [])), source.file, "exec"), source.globals, made)
    return made["make"](*[known[name] for name in names])


def evaluate_instead_of_inlining(
    e: Emitter,
    function: types.FunctionType,
    source: FunctionSource,
    arguments: dict[str, Any],
    problems: Sequence[TinoteError],
) -> Any:
    """Python's result for constants, where inlining failed with `problems`."""
    tree = source.tree.args
    args = [arguments[q.arg] for q in (*tree.posonlyargs, *tree.args)]
    kwargs = {q.arg: arguments[q.arg] for q in tree.kwonlyargs}
    if tree.vararg is not None:
        args += arguments[tree.vararg.arg]
    if tree.kwarg is not None:
        kwargs |= arguments[tree.kwarg.arg]
    e.reproducible = False
    try:
        return outside(e, ask_python(e, function, *args, **kwargs))
    except Exception as error:
        notes = [Note(f"it cannot be inlined: {problem.message}", problem.span) for problem in problems[:1]]
        frames = traceback.walk_tb(error.__traceback__)
        line = next((line for frame, line in frames if frame.f_code.co_filename == source.file), 0)
        e.error(
            f"`{source.name}` can neither be inlined nor called at compile time, where it raises "
            f"{type(error).__name__}: {error}",
            notes=[*notes, *([Note("it raises that here", Span(source.file, line))] if line else [])],
            kind=KernelSyntaxError,
        )
