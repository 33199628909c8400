"""Calls: built-ins, device functions (inlined) and conversions by a type's name; `python_calls` handles calls that
Python evaluates at compile time.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Hashable
from inspect import CO_COROUTINE
from typing import Any

from tinote.compiler.frontend.attempts import attempt
from tinote.compiler.frontend.builtins.table import BUILTINS
from tinote.compiler.frontend.calls.call_arguments import CallSite, callee_node, evaluate_arguments, match_parameters
from tinote.compiler.frontend.calls.python_calls import (
    call_python,
    evaluate_in_python,
    evaluate_instead_of_inlining,
    is_exact_in_python,
    run_time_argument,
)
from tinote.compiler.frontend.conversions import truth_of
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions, Silenced
from tinote.compiler.frontend.expressions import structs, tensors
from tinote.compiler.frontend.expressions.constructors import construct
from tinote.compiler.frontend.expressions.domains import static_items
from tinote.compiler.frontend.expressions.formatting import format_text
from tinote.compiler.frontend.expressions.sparse_functions import ListMethod
from tinote.compiler.frontend.functions.bodies import inline
from tinote.compiler.frontend.functions.callees import expansion_of, is_template_parameter
from tinote.compiler.frontend.functions.custom_vjp import inline_custom_vjp
from tinote.compiler.frontend.functions.recursion import call_real, frames_of, leave_circle, too_deep
from tinote.compiler.frontend.python.names import captured
from tinote.compiler.frontend.python.plain_functions import CallTarget, plain_source_of, target_of
from tinote.compiler.frontend.python.side_effects import find_side_effect, variation_of
from tinote.compiler.frontend.scopes import ConstantBinding, FunctionFrame, LocalFunction, Scope
from tinote.compiler.frontend.values import (
    POISON,
    BoundMethod,
    GeneratorCall,
    ObjectValue,
    StructValue,
    UnboundMethod,
    Value,
    is_number,
)
from tinote.compiler.function_source import FunctionSource, function_of
from tinote.compiler.protocol import StructInfo, is_ours, struct_of, type_of, unit_of
from tinote.compiler.pysource.names import CaptureKind
from tinote.errors import KernelSyntaxError, Note, TinoteError
from tinote.ir.types import Scalar
from tinote.source import NOWHERE


def call(e: Emitter, node: ast.Call) -> Any:
    wanted, e.wanted = e.wanted, True
    try:
        callee = e.reference(node.func)
        return _dispatch(e, CallSite(node, node.args, [(k.arg, k.value) for k in node.keywords]), callee, wanted)
    finally:
        e.wanted = True


def call_object(e: Emitter, node: ast.expr, callee: Any, *args: Any) -> Any:
    """Call a Python object with values, for what is written as `node`."""
    return _dispatch(e, CallSite.with_values(node, args, {}), callee, True)


def _dispatch(e: Emitter, call: CallSite, callee: Any, wanted: bool) -> Any:
    node = call.node
    if isinstance(callee, BoundMethod | UnboundMethod):
        args, kwargs = evaluate_arguments(e, call)
        with e.at(node):
            if isinstance(callee, UnboundMethod):
                if not args:
                    e.error(f"`{call.name}` needs the {callee.owner.lower()} that it is a method of")
                callee = BoundMethod(args.pop(0), callee.name)
                if not e.is_value(callee.owner) or not e.shape(callee.owner):
                    e.error(f"`{call.name}` needs a vector or matrix, not {describe(callee.owner)}")
            return tensors.call_method(e, callee, args, kwargs)
    if isinstance(callee, ListMethod):
        args, kwargs = evaluate_arguments(e, call)
        with e.at(node):
            return callee(e, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, str):
        if callee.__name__ == "format":
            args, kwargs = evaluate_arguments(e, call)
            return format_text(e, callee.__self__, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, dict) and not call.args:
        if callee.__name__ in ("items", "keys", "values"):
            return tuple(callee())
    target = target_of(e, callee)
    function, call = target.function, call.after(target)
    calling = _CALLING.get(function) if isinstance(function, Hashable) else None
    if calling is not None:
        args, kwargs = evaluate_arguments(e, call)
        expand, least, most = calling
        if kwargs or not least <= len(args) <= most:
            e.error(f"`{call.name}` takes a function and what it is applied to")
        return expand(e, node, *args)
    source = function_of(function)
    if source is not None:
        return _inline_call(e, call, function, source)
    expansion = expansion_of(function)
    if expansion is not None:
        static = expansion is BUILTINS["static"]
        e.in_static += static
        try:
            args, kwargs = evaluate_arguments(e, call, places=1 if hasattr(expansion, "takes_place") else 0)
        finally:
            e.in_static -= static
        e.wanted = wanted
        if is_exact_in_python(e, function, args, kwargs):
            return evaluate_in_python(e, function, args, kwargs)
        return expansion(e, args, kwargs)
    t = type_of(function, e.fp, e.ip) if isinstance(function, Scalar) or hasattr(function, "__tinote_type__") else None
    if t is not None:
        args, kwargs = evaluate_arguments(e, call)
        if kwargs:
            e.error(f"`{t}` takes no named arguments")
        return e.measured(construct(e, t, args), unit_of(function))
    info = struct_of(function)
    if info is not None:
        args, kwargs = evaluate_arguments(e, call)
        return structs.construct_struct(e, info, args, kwargs)
    if hasattr(function, "__tinote_kernel__"):
        e.error(
            "a kernel cannot call another kernel",
            "make the called one a device function with `@ti.func`",
            callee_node(call),
            KernelSyntaxError,
        )
    if not callable(function):
        e.error(f"{describe(function)} cannot be called", node=callee_node(call))
    if isinstance(function, types.FunctionType) and not is_ours(function):
        return _call_plain(e, call, function)
    if isinstance(function, type) and _is_written_in_python(function.__init__) and not is_ours(function):
        args, kwargs = evaluate_arguments(e, call)
        call = CallSite.with_values(call.node, args, kwargs)
        if not all(e.is_static(a) for a in [*args, *kwargs.values()]):
            return _construct_object(e, call, function)
    return call_python(e, call, function)


def _is_written_in_python(function: Any) -> bool:
    return isinstance(function, types.FunctionType) or function_of(function) is not None


def _construct_object(e: Emitter, call: CallSite, kind: type) -> StructValue:
    """An object of a class of the user's: a struct with the class's methods, whose members are what `__init__` assigns
    to attributes.
    """
    methods = {
        name: captured(e, CaptureKind.ATTRIBUTE, kind, name, found)
        for name in dir(kind)
        if not name.startswith("__") and _is_written_in_python(found := getattr(kind, name))
    }
    made = ObjectValue({}, StructInfo(kind.__name__, {}, methods, owner=kind))
    init = captured(e, CaptureKind.ATTRIBUTE, kind, "__init__", kind.__init__)
    _dispatch(e, call.after(CallTarget(init, (made,))), init, False)
    members = {name: e.force(member) for name, member in made.members.items()}
    typed = {
        name: found
        for name, member in members.items()
        if (found := member.type if isinstance(member, Value) else getattr(member, "info", None)) is not None
    }
    return StructValue(members, StructInfo(kind.__name__, typed, methods, owner=kind))


# functions that call one of their arguments


def _map(e: Emitter, node: ast.expr, function: Any, *sequences: Any) -> tuple[Any, ...]:
    rows = zip(*[static_items(e, s) for s in sequences], strict=False)
    return tuple([call_object(e, node, function, *row) for row in rows])


def _filter(e: Emitter, node: ast.expr, function: Any, items: Any) -> tuple[Any, ...]:
    kept: list[Any] = []
    for item in static_items(e, items):
        truth = truth_of(e, item if function is None else call_object(e, node, function, item))
        if isinstance(truth, Value):
            e.error("what `filter` keeps must be known at compile time")
        kept += [item] if truth else []
    return tuple(kept)


def _reduce(e: Emitter, node: ast.expr, function: Any, items: Any, *first: Any) -> Any:
    left = [*first[:1], *static_items(e, items)]
    if not left:
        e.error("`reduce` of nothing needs an initial value")
    result = left[0]
    for item in left[1:]:
        result = call_object(e, node, function, result, item)
    return result


#: Python's functions that call one of their arguments, which is inlined then; the least and most arguments they take.
_CALLING: dict[Any, tuple[Callable[..., Any], int, int]] = {
    map: (_map, 2, 100),
    filter: (_filter, 2, 2),
    functools.reduce: (_reduce, 2, 3),
}


# functions that are inlined


def _inline_call(e: Emitter, call: CallSite, callee: Any, source: FunctionSource) -> Any:
    owner = callee.__tinote_self__
    arguments = match_parameters(e, call if owner is None else call.after(CallTarget(callee, (owner,))), source)
    scope = callee.inner_scope() if isinstance(callee, LocalFunction) else None
    if source.is_generator:
        _refuse_recursion(e, source, arguments)
        return GeneratorCall(source, arguments, scope)
    if getattr(callee, "__tinote_replacement__", None) is None:
        return _inlined(e, source, arguments, scope)
    _refuse_recursion(e, source, arguments)
    own = source.parameters[: int(owner is not None)]
    given = [q.arg for q in source.parameters if q not in own and not is_template_parameter(e, source, q)]
    return inline_custom_vjp(e, source, callee, arguments, given)


def _inlined(e: Emitter, source: FunctionSource, arguments: dict[str, Any], scope: Scope | None = None) -> Any:
    if not source.may_recurse:
        _refuse_recursion(e, source, arguments)
    in_static, e.in_static = e.in_static, 0
    try:
        return (call_real if source.may_recurse else inline)(e, source, arguments, scope)
    finally:
        e.in_static = in_static


def _refuse_recursion(e: Emitter, source: FunctionSource, arguments: dict[str, Any]) -> None:
    again = [frame for frame in frames_of(e) if frame.source.tree is source.tree]
    if again and not _descends(e, source, arguments, again):
        leave_circle(e, again[0])
        calls = [f.source.name for f in reversed(e.frame.chain())]
        circle = [*calls[calls.index(source.name) :], source.name][:8]
        e.error(
            f"`{source.name}` calls itself ({' → '.join(circle)})",
            "functions are inlined, so they cannot recurse: use a loop, or `@ti.real_func` with annotated types",
            kind=KernelSyntaxError,
        )


def _call_plain(e: Emitter, call: CallSite, function: types.FunctionType) -> Any:
    """A call of an undecorated function: inlined like a device function, or, where that fails and all arguments are
    known at compile time, called by Python.
    """
    variation = variation_of(function)
    if e.in_static:
        args, kwargs = evaluate_arguments(e, call)
        if all(e.is_static(a) for a in [*args, *kwargs.values()]):
            return evaluate_in_python(e, function, args, kwargs)
        call = CallSite.with_values(call.node, args, kwargs)
    if variation is not None:
        e.error(f"`{call.name}` {variation.text}", variation.hint, callee_node(call), KernelSyntaxError)
    if (function.__module__ or "").partition(".")[0] == "numpy":
        return call_python(e, call, function)
    try:
        source = plain_source_of(e, function)
    except KernelSyntaxError as error:
        args, kwargs = evaluate_arguments(e, call)
        static = all(e.is_static(a) for a in [*args, *kwargs.values()])
        if static and not function.__code__.co_flags & CO_COROUTINE:
            return evaluate_in_python(e, function, args, kwargs)
        why = ""
        if not static:
            argument = run_time_argument(e, call, args)
            why = f", nor called at compile time, because {argument} exists at run time"
        e.error(f"`{call.name}` cannot be inlined: {error.message}{why}", error.hint, kind=KernelSyntaxError)
    arguments = match_parameters(e, call, source)
    late = [name for name, value in arguments.items() if not e.is_static(value)]
    undo = None if late else attempt(e)
    errors, failures = len(e.errors), e.failures
    raised: TinoteError | None = None
    result: Any = POISON
    try:
        result = _inlined(e, source, arguments)
    except Silenced:
        pass
    except TinoteError as error:
        raised = error
    if raised is None and e.failures == failures:
        if result is POISON:
            raise Silenced
        return result
    problems = [*e.errors[errors:], *([] if raised is None else [raised])]
    if late:
        why = f"its argument `{late[0]}` exists at run time only"
        against: Note | None = Note(
            f"`{source.name}` is inlined, and not called at compile time, because {why}", NOWHERE
        )
    else:
        against = None if function.__module__ in _PURE_MODULES else find_side_effect(source, arguments)
    if undo is not None and against is None:
        undo()
        return evaluate_instead_of_inlining(e, function, source, arguments, problems)
    for problem in problems:
        if problem not in e.explained and against is not None:
            problem.notes = (*problem.notes, against)
            e.explained.append(problem)
    if raised is not None:
        raise raised
    raise Silenced


#: Modules of Python whose functions change only what they have made themselves, also where their source does not show.
_PURE_MODULES = ("copy", "dataclasses")


def _descends(e: Emitter, source: FunctionSource, arguments: dict[str, Any], again: list[FunctionFrame]) -> bool:
    """Whether a recursive function may terminate: a number among its template arguments differs from that of every
    enclosing call (`static` then decides where it ends).
    """
    too_deep(e, source)
    names = [q.arg for q in source.parameters if is_template_parameter(e, source, q) and is_number(arguments[q.arg])]
    key = [arguments[name] for name in names]
    around = [[_template_of(frame, name) for name in names] for frame in again]
    return bool(names) and key not in around


def _template_of(frame: FunctionFrame, name: str) -> Any:
    binding = frame.scope.names.get(name)
    return binding.value if isinstance(binding, ConstantBinding) else None


EXPRESSIONS: Expressions = {ast.Call: call}
