"""Calls: built-ins, device functions (inlined), conversions by a type's name, and Python's own functions at compile
time.
"""

from __future__ import annotations

import ast
import difflib
import types
from typing import Any

from tinote.compiler.frontend import structs, tensors
from tinote.compiler.frontend.builtins import BUILTINS
from tinote.compiler.frontend.callees import expansion_of, is_template_parameter
from tinote.compiler.frontend.constructors import construct
from tinote.compiler.frontend.custom_vjp import inline_custom_vjp
from tinote.compiler.frontend.descriptions import describe, in_place_of_call
from tinote.compiler.frontend.domains import static_items
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.formatting import format_text
from tinote.compiler.frontend.functions import inline
from tinote.compiler.frontend.literals import evaluate_all
from tinote.compiler.frontend.names import captured, outside
from tinote.compiler.frontend.scopes import Constant, Frame
from tinote.compiler.frontend.values import BoundMethod, is_fixed, is_number, is_plain
from tinote.compiler.protocol import FUNCTIONS, CaptureKind, FunctionSource, function_of, struct_of, type_of
from tinote.errors import KernelSyntaxError, TinoteError
from tinote.ir.types import Scalar

__all__ = ["EXPRESSIONS"]


#: Python's functions that are called at compile time when all arguments are constants; anything else must stand in
#: `static(...)`.
_PURE = {isinstance, issubclass, getattr, hasattr, type, str, repr, sorted, divmod, set, dict, round, id}
#: How often a function may be inlined in itself.
_DEEPEST = 64


def call(e: Emitter, node: ast.Call) -> Any:
    wanted, e.wanted = e.wanted, True
    try:
        callee = e.reference(node.func)
        return _dispatch(e, node, callee, wanted)
    finally:
        e.wanted = True


def _dispatch(e: Emitter, node: ast.Call, callee: Any, wanted: bool) -> Any:
    if isinstance(callee, BoundMethod):
        args, kwargs = _arguments(e, node)
        with e.at(node):
            return tensors.call_method(e, callee, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, str):
        if callee.__name__ == "format":
            args, kwargs = _arguments(e, node)
            return format_text(e, callee.__self__, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, dict) and not node.args:
        if callee.__name__ in ("items", "keys", "values"):
            return tuple(callee())
    source = function_of(callee)
    if source is not None:
        return _inline_call(e, node, callee, source)
    expansion = expansion_of(callee)
    if expansion is not None:
        static = expansion is BUILTINS["static"]
        e.in_static += static
        try:
            args, kwargs = _arguments(e, node, places=1 if hasattr(expansion, "takes_place") else 0)
        finally:
            e.in_static -= static
        e.wanted = wanted
        if _by_python(e, callee, args, kwargs):
            return _evaluate_in_python(e, callee, args, kwargs)
        return expansion(e, args, kwargs)
    t = type_of(callee, e.fp, e.ip) if isinstance(callee, Scalar) or hasattr(callee, "__tinote_type__") else None
    if t is not None:
        args, kwargs = _arguments(e, node)
        if kwargs:
            e.error(f"`{t}` takes no named arguments")
        return construct(e, t, args)
    info = struct_of(callee)
    if info is not None:
        args, kwargs = _arguments(e, node)
        return structs.construct_struct(e, info, args, kwargs)
    if hasattr(callee, "__tinote_kernel__"):
        e.error(
            "a kernel cannot call another kernel",
            "make the called one a device function with `@ti.func`",
            node.func,
            KernelSyntaxError,
        )
    if not callable(callee):
        e.error(f"{describe(callee)} cannot be called", node=node.func)
    return _call_python_function(e, node, callee)


def _arguments(e: Emitter, node: ast.Call, places: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """The values of a call's arguments; the first `places` of them as places."""
    args = [e.reference(a) for a in node.args[:places]]
    args += evaluate_all(e, node.args[places:])
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        front = e.reference(keyword.value) if places and not args and not kwargs else e.evaluate(keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = front
        elif isinstance(front, dict):
            kwargs |= front
        else:
            e.error(f"{describe(front)} after `**` is not a dictionary", node=keyword.value)
    return args, kwargs


def _by_python(e: Emitter, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether one of Python's own functions is called on constants only, so that Python's result is exact."""
    if not isinstance(callee, types.BuiltinFunctionType) or callee.__module__ != "math":
        return False
    return all(e.is_static(a) for a in [*args, *kwargs.values()])


def _call_python_function(e: Emitter, node: ast.Call, callee: Any) -> Any:
    """A call of a Python function that is not part of the language."""
    name = getattr(callee, "__qualname__", type(callee).__name__)
    try:
        pure = callee in _PURE or getattr(callee, "__tinote_static__", False)
    except TypeError:
        pure = False
    module = getattr(callee, "__module__", None)
    args, kwargs = _arguments(e, node)
    static = all(e.is_static(a) for a in [*args, *kwargs.values()])
    if static and (pure or e.in_static or module == "math"):
        return _evaluate_in_python(e, callee, args, kwargs)
    if pure:
        e.error(f"`{name}` works on what is known at compile time only")
    if module == "math" or (module or "").partition(".")[0] == "numpy":
        known = "for numbers in a kernel" if not static else "in a kernel"
        hint = f"use `ti.{name}`" if name in FUNCTIONS else "call it outside of the kernel"
        e.error(f"`{module}.{name}` cannot be used {known}", hint, node.func, KernelSyntaxError)
    kind = "class" if isinstance(callee, type) else "function"
    e.error(
        f"`{name}` is a Python {kind}, not part of the kernel language",
        in_place_of_call(callee),
        node.func,
        KernelSyntaxError,
    )


def _evaluate_in_python(e: Emitter, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    try:
        if callee is getattr and hasattr(args[0], args[1]):
            return captured(e, CaptureKind.ATTRIBUTE, args[0], args[1], callee(*args))
        if not (is_fixed(callee) and is_plain([*args, *kwargs.values()])):
            e.reproducible = False  # what it gives is not reproducible in another process
        if getattr(callee, "__tinote_static__", False):
            return outside(e, callee(*args, **kwargs))
        return outside(e, e.ask(callee, *args, **kwargs))
    except TinoteError:
        raise
    except Exception as error:
        name = getattr(callee, "__name__", callee)
        e.error(f"calling `{name}` at compile time failed: {type(error).__name__}: {error}")


def _inline_call(e: Emitter, node: ast.Call, callee: Any, source: FunctionSource) -> Any:
    arguments = _match(e, node, callee, source)
    again = [frame for frame in e.frame.chain() if frame.source.tree is source.tree]
    if again and not _descends(e, source, arguments, again):
        calls = [f.source.name for f in reversed(e.frame.chain())]
        circle = [*calls[calls.index(source.name) :], source.name][:8]
        e.error(
            f"`{source.name}` calls itself ({' → '.join(circle)})",
            "device functions are inlined, so they cannot recurse; use a loop",
            kind=KernelSyntaxError,
        )
    if getattr(callee, "__tinote_replacement__", None) is not None:
        own = source.parameters[: int(callee.__tinote_self__ is not None)]
        given = [q.arg for q in source.parameters if q not in own and not is_template_parameter(e, source, q)]
        return inline_custom_vjp(e, source, callee, arguments, given)
    return inline(e, source, arguments)


def _descends(e: Emitter, source: FunctionSource, arguments: dict[str, Any], again: list[Frame]) -> bool:
    """Whether a function that calls itself may end: a number that is a template argument differs from that of every
    call around it (`static` then decides where it ends).
    """
    if len(again) >= _DEEPEST:
        e.error(
            f"`{source.name}` calls itself more than {_DEEPEST} times deep",
            "end the recursion with `if ti.static(…)`, or use a loop",
            kind=KernelSyntaxError,
        )
    names = [q.arg for q in source.parameters if is_template_parameter(e, source, q) and is_number(arguments[q.arg])]
    key = [arguments[name] for name in names]
    around = [[_template_of(frame, name) for name in names] for frame in again]
    return bool(names) and key not in around


def _template_of(frame: Frame, name: str) -> Any:
    binding = frame.scope.names.get(name)
    return binding.value if isinstance(binding, Constant) else None


def _match(e: Emitter, node: ast.Call, callee: Any, source: FunctionSource) -> dict[str, Any]:
    """Which value each parameter stands for."""
    tree = source.tree.args
    parameters = source.parameters
    positional = [q for q in parameters if q not in tree.kwonlyargs]
    names = [q.arg for q in parameters]
    arguments: dict[str, Any] = {}
    further: list[Any] = []
    named: dict[str, Any] = {}
    owner = getattr(callee, "__tinote_self__", None)
    if owner is not None and positional:
        arguments[positional[0].arg] = owner
        positional = positional[1:]
    given = 0
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            with e.at(argument):
                values = list(static_items(e, e.evaluate(argument.value)))
        else:
            template = given < len(positional) and is_template_parameter(e, source, positional[given])
            values = [e.reference(argument) if template else e.evaluate(argument)]
        for value in values:
            if given >= len(positional) and tree.vararg is not None:
                further.append(value)
                continue
            if given >= len(positional):
                _wrong_count(e, source, len(node.args) + len(node.keywords), len(parameters) - (owner is not None))
            arguments[positional[given].arg] = value
            given += 1
    for keyword in node.keywords:
        if keyword.arg is not None:
            position = names.index(keyword.arg) if keyword.arg in names else None
            template = position is not None and is_template_parameter(e, source, parameters[position])
            spread = {keyword.arg: e.reference(keyword.value) if template else e.evaluate(keyword.value)}
        else:
            spread = e.evaluate(keyword.value)
            if not isinstance(spread, dict):
                e.error(f"{describe(spread)} after `**` is not a dictionary", node=keyword.value)
        for name, value in spread.items():
            if name in arguments or name in named:
                e.error(f"`{source.name}` gets `{name}` twice", node=keyword.value)
            if name in names:
                arguments[name] = value
            elif tree.kwarg is not None:
                named[name] = value
            else:
                close = difflib.get_close_matches(str(name), names, 1)
                e.error(
                    f"`{source.name}` has no parameter `{name}`",
                    f"did you mean `{close[0]}`?" if close else f"it has {', '.join(names)}",
                    keyword.value,
                )
    for name in names:
        if name not in arguments:
            if name not in source.defaults:
                _wrong_count(
                    e, source, len(node.args) + len(node.keywords), len(parameters) - (owner is not None), name
                )
            arguments[name] = outside(e, source.defaults[name])
    if tree.vararg is not None:
        arguments[tree.vararg.arg] = tuple(further)
    if tree.kwarg is not None:
        arguments[tree.kwarg.arg] = named
    return arguments


def _wrong_count(e: Emitter, source: FunctionSource, given: int, expected: int, missing: str = "") -> None:
    missing = f"`{missing}` is missing" if missing else ""
    e.error(
        f"`{source.name}` takes {expected} argument{'' if expected == 1 else 's'}, and is called with {given}",
        missing,
    )


EXPRESSIONS: Expressions = {ast.Call: call}
