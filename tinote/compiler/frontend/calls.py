"""Calls: built-ins, device functions (inlined), conversions by a type's name, and Python's own functions at compile
time.
"""

from __future__ import annotations

import ast
import copy
import difflib
import functools
import traceback
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from inspect import CO_COROUTINE
from typing import Any, NamedTuple, cast

from tinote.compiler.frontend import structs, tensors
from tinote.compiler.frontend.builtins import BUILTINS
from tinote.compiler.frontend.callees import expansion_of, is_template_parameter
from tinote.compiler.frontend.constructors import construct
from tinote.compiler.frontend.custom_vjp import inline_custom_vjp
from tinote.compiler.frontend.descriptions import describe, in_place_of_call
from tinote.compiler.frontend.domains import static_items
from tinote.compiler.frontend.emitter import Emitter, Expressions, Silenced
from tinote.compiler.frontend.expansion import Parameters
from tinote.compiler.frontend.formatting import format_text
from tinote.compiler.frontend.functions import inline
from tinote.compiler.frontend.literals import evaluate_all
from tinote.compiler.frontend.names import captured, outside
from tinote.compiler.frontend.plain_functions import Target, plain_source_of, target_of
from tinote.compiler.frontend.scopes import Constant, Frame, LocalFunction, Scope
from tinote.compiler.frontend.side_effects import find_side_effect, mutates, variation_of
from tinote.compiler.frontend.values import (
    POISON,
    BoundMethod,
    UnboundMethod,
    Value,
    is_fixed,
    is_number,
    is_plain,
)
from tinote.compiler.protocol import (
    FUNCTIONS,
    CaptureKind,
    FunctionSource,
    function_of,
    is_ours,
    space_of,
    struct_of,
    type_of,
)
from tinote.errors import KernelSyntaxError, Note, TinoteError
from tinote.ir.types import Scalar, scalar_named
from tinote.source import NOWHERE, Span

__all__ = ["EXPRESSIONS", "call_object"]


#: Python's functions that have a meaning for constants only.
_PURE = {isinstance, issubclass, getattr, hasattr, type, str, repr, sorted, divmod, set, dict, round, id}
#: How often a function may be inlined in itself.
_DEEPEST = 64


class Known(NamedTuple):
    """An argument that has a value before its call is looked at."""

    value: Any


class Call(NamedTuple):
    """A call: where it is written, and its arguments, with those that are known beforehand."""

    node: ast.expr
    args: Sequence[ast.expr | Known]
    keywords: Sequence[tuple[str | None, ast.expr | Known]]

    @staticmethod
    def with_values(node: ast.expr, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Call:
        return Call(node, [Known(a) for a in args], [(name, Known(a)) for name, a in kwargs.items()])

    def after(self, target: Target) -> Call:
        """The call of what `target` leads to."""
        if not target.args and not target.kwargs:
            return self
        given = {name for name, _ in self.keywords}
        before = [(name, Known(a)) for name, a in target.kwargs.items() if name not in given]
        return Call(self.node, [*map(Known, target.args), *self.args], [*before, *self.keywords])

    @property
    def name(self) -> str:
        """How the program writes what is called."""
        return ast.unparse(self.node.func) if isinstance(self.node, ast.Call) else ast.unparse(self.node)


def call(e: Emitter, node: ast.Call) -> Any:
    wanted, e.wanted = e.wanted, True
    try:
        callee = e.reference(node.func)
        return _dispatch(e, Call(node, node.args, [(k.arg, k.value) for k in node.keywords]), callee, wanted)
    finally:
        e.wanted = True


def call_object(e: Emitter, node: ast.expr, callee: Any, *args: Any) -> Any:
    """Call a Python object with values, for what is written as `node`."""
    return _dispatch(e, Call.with_values(node, args, {}), callee, True)


def _dispatch(e: Emitter, call: Call, callee: Any, wanted: bool) -> Any:
    node = call.node
    if isinstance(callee, BoundMethod | UnboundMethod):
        args, kwargs = _arguments(e, call)
        with e.at(node):
            if isinstance(callee, UnboundMethod):
                if not args:
                    e.error(f"`{call.name}` needs the {callee.owner.lower()} that it is a method of")
                callee = BoundMethod(args.pop(0), callee.name)
                if not e.is_value(callee.owner) or not e.shape(callee.owner):
                    e.error(f"`{call.name}` needs a vector or matrix, not {describe(callee.owner)}")
            return tensors.call_method(e, callee, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, str):
        if callee.__name__ == "format":
            args, kwargs = _arguments(e, call)
            return format_text(e, callee.__self__, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and isinstance(callee.__self__, dict) and not call.args:
        if callee.__name__ in ("items", "keys", "values"):
            return tuple(callee())
    target = target_of(e, callee)
    function, call = target.function, call.after(target)
    calling = _CALLING.get(function) if isinstance(function, Hashable) else None
    if calling is not None:
        args, kwargs = _arguments(e, call)
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
            args, kwargs = _arguments(e, call, places=1 if hasattr(expansion, "takes_place") else 0)
        finally:
            e.in_static -= static
        e.wanted = wanted
        if _by_python(e, function, args, kwargs):
            return _evaluate_in_python(e, function, args, kwargs)
        return expansion(e, args, kwargs)
    t = type_of(function, e.fp, e.ip) if isinstance(function, Scalar) or hasattr(function, "__tinote_type__") else None
    if t is not None:
        args, kwargs = _arguments(e, call)
        if kwargs:
            e.error(f"`{t}` takes no named arguments")
        return construct(e, t, args)
    info = struct_of(function)
    if info is not None:
        args, kwargs = _arguments(e, call)
        return structs.construct_struct(e, info, args, kwargs)
    if hasattr(function, "__tinote_kernel__"):
        e.error(
            "a kernel cannot call another kernel",
            "make the called one a device function with `@ti.func`",
            _callee_node(call),
            KernelSyntaxError,
        )
    if not callable(function):
        e.error(f"{describe(function)} cannot be called", node=_callee_node(call))
    if isinstance(function, types.FunctionType) and not is_ours(function):
        return _call_plain(e, call, function)
    return _call_python(e, call, function)


def _callee_node(call: Call) -> ast.expr:
    return call.node.func if isinstance(call.node, ast.Call) else call.node


def _value(e: Emitter, argument: ast.expr | Known) -> Any:
    return argument.value if isinstance(argument, Known) else e.evaluate(argument)


def _reference(e: Emitter, argument: ast.expr | Known) -> Any:
    return argument.value if isinstance(argument, Known) else e.reference(argument)


def _arguments(e: Emitter, call: Call, places: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """The values of a call's arguments; the first `places` of them as places."""
    args = [_reference(e, a) for a in call.args[:places]]
    for argument in call.args[places:]:
        if isinstance(argument, ast.Starred):
            args += evaluate_all(e, [argument])
        else:
            args.append(_value(e, argument))
    kwargs: dict[str, Any] = {}
    for name, argument in call.keywords:
        front = _reference(e, argument) if places and not args and not kwargs else _value(e, argument)
        if name is not None:
            kwargs[name] = front
        elif isinstance(front, dict):
            kwargs |= front
        else:
            e.error(f"{describe(front)} after `**` is no dictionary", node=_node(argument))
    return args, kwargs


def _node(argument: ast.expr | Known) -> ast.expr | None:
    return None if isinstance(argument, Known) else argument


# Python's functions


def _by_python(e: Emitter, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether one of Python's own functions is called on constants only, so that Python's result is exact."""
    if not isinstance(callee, types.BuiltinFunctionType) or callee.__module__ != "math":
        return False
    return all(e.is_static(a) for a in [*args, *kwargs.values()])


def _call_python(e: Emitter, call: Call, callee: Any) -> Any:
    """A call of what Python calls, and no part of the language is: a class, or a function without source, which is
    called at compile time.
    """
    args, kwargs = _arguments(e, call)
    given = [*args, *kwargs.values()]
    static = all(e.is_static(a) for a in given)
    if static and e.in_static:
        return _evaluate_in_python(e, callee, args, kwargs)
    node = _callee_node(call)
    variation = variation_of(callee)
    if variation is not None:
        e.error(f"`{call.name}` {variation.text}", variation.hint, node, KernelSyntaxError)
    module = getattr(callee, "__module__", None) or ""
    name = getattr(callee, "__qualname__", type(callee).__name__)
    of_field = is_ours(callee) or space_of(getattr(callee, "__self__", None)) is not None
    if mutates(callee) or (of_field and not hasattr(callee, "__tinote_static__")):
        e.error(f"`{name}` cannot be called in a kernel", in_place_of_call(callee), node, KernelSyntaxError)
    if static:
        return _evaluate_in_python(e, callee, args, kwargs)
    if hasattr(callee, "_fields") and str(getattr(callee.__new__, "__module__", "")).startswith("namedtuple_"):
        return _named_tuple(e, callee, args, kwargs)
    if callee in _PURE or hasattr(callee, "__tinote_static__"):
        e.error(f"`{name}` works on what is known at compile time only")
    if module == "math" or module.partition(".")[0] == "numpy":
        t = _numpy_scalar(callee)
        if t is not None and len(args) == 1 and not kwargs:
            return e.cast(args[0], t)
        hint = f"use `ti.{name}`" if name in FUNCTIONS else "call it outside of the kernel"
        e.error(f"`{module}.{name}` cannot be used for what exists at run time only", hint, node, KernelSyntaxError)
    kind = "class" if isinstance(callee, type) else "function without source"
    e.error(
        f"`{name}` is a Python {kind}, which is called at compile time, and {_at_run_time(e, call, args)} "
        "exists at run time only",
        in_place_of_call(callee),
        node,
        KernelSyntaxError,
    )


def _named_tuple(e: Emitter, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A named tuple of values that exist at run time."""
    defaults = {name: outside(e, value) for name, value in kind._field_defaults.items()}
    given = Parameters(kind._fields, defaults).matched(e, kind.__name__, args, kwargs)
    return kind._make(given.values())


def _map(e: Emitter, node: ast.expr, function: Any, *sequences: Any) -> tuple[Any, ...]:
    rows = zip(*[static_items(e, s) for s in sequences], strict=False)
    return tuple([call_object(e, node, function, *row) for row in rows])


def _filter(e: Emitter, node: ast.expr, function: Any, items: Any) -> tuple[Any, ...]:
    kept: list[Any] = []
    for item in static_items(e, items):
        truth = e.truth(item if function is None else call_object(e, node, function, item))
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


def _numpy_scalar(callee: Any) -> Scalar | None:
    """The type that one of NumPy's types of numbers stands for."""
    if not isinstance(callee, type):
        return None
    return _NUMPY.get(callee.__name__)


_NUMPY = {
    **{f"{name}{bits}": scalar_named(f"{name[0]}{bits}") for name in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": scalar_named(f"f{bits}") for bits in (16, 32, 64)},
    "bool": scalar_named("u1"),
    "bool_": scalar_named("u1"),
}


def _at_run_time(e: Emitter, call: Call, args: list[Any]) -> str:
    """The first argument that is not known at compile time, as a message names it."""
    for written, value in zip(call.args, args, strict=False):
        if not e.is_static(value):
            return f"`{ast.unparse(written)}`" if isinstance(written, ast.expr) else "what it is a method of"
    return "an argument"


def _evaluate_in_python(e: Emitter, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    args = [_for_python(e, a) for a in args]
    kwargs = {name: _for_python(e, a) for name, a in kwargs.items()}
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


def _for_python(e: Emitter, front: Any) -> Any:
    """A function that is defined in the kernel, as one that Python can call with what is known at compile time."""
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


# functions that are inlined


def _inline_call(e: Emitter, call: Call, callee: Any, source: FunctionSource) -> Any:
    owner = callee.__tinote_self__
    arguments = _match(e, call if owner is None else call.after(Target(callee, (owner,))), source)
    if getattr(callee, "__tinote_replacement__", None) is None:
        return _inlined(e, source, arguments, callee.inner_scope() if isinstance(callee, LocalFunction) else None)
    _refuse_recursion(e, source, arguments)
    own = source.parameters[: int(owner is not None)]
    given = [q.arg for q in source.parameters if q not in own and not is_template_parameter(e, source, q)]
    return inline_custom_vjp(e, source, callee, arguments, given)


def _inlined(e: Emitter, source: FunctionSource, arguments: dict[str, Any], scope: Scope | None = None) -> Any:
    _refuse_recursion(e, source, arguments)
    in_static, e.in_static = e.in_static, 0
    try:
        return inline(e, source, arguments, scope)
    finally:
        e.in_static = in_static


def _refuse_recursion(e: Emitter, source: FunctionSource, arguments: dict[str, Any]) -> None:
    again = [frame for frame in e.frame.chain() if frame.source.tree is source.tree]
    if again and not _descends(e, source, arguments, again):
        calls = [f.source.name for f in reversed(e.frame.chain())]
        circle = [*calls[calls.index(source.name) :], source.name][:8]
        e.error(
            f"`{source.name}` calls itself ({' → '.join(circle)})",
            "functions are inlined, so they cannot recurse; use a loop",
            kind=KernelSyntaxError,
        )


def _call_plain(e: Emitter, call: Call, function: types.FunctionType) -> Any:
    """A call of a function that nobody has decorated: inlined as a device function is, or, where that fails and all
    arguments are known at compile time, called by Python.
    """
    variation = variation_of(function)
    if e.in_static:
        args, kwargs = _arguments(e, call)
        if all(e.is_static(a) for a in [*args, *kwargs.values()]):
            return _evaluate_in_python(e, function, args, kwargs)
        call = Call.with_values(call.node, args, kwargs)
    if variation is not None:
        e.error(f"`{call.name}` {variation.text}", variation.hint, _callee_node(call), KernelSyntaxError)
    if (function.__module__ or "").partition(".")[0] == "numpy":
        return _call_python(e, call, function)
    try:
        source = plain_source_of(e, function)
    except KernelSyntaxError as error:
        args, kwargs = _arguments(e, call)
        static = all(e.is_static(a) for a in [*args, *kwargs.values()])
        if static and not function.__code__.co_flags & CO_COROUTINE:
            return _evaluate_in_python(e, function, args, kwargs)
        why = (
            "" if static else f", nor called at compile time, because {_at_run_time(e, call, args)} exists at run time"
        )
        e.error(f"`{call.name}` cannot be inlined: {error.message}{why}", error.hint, kind=KernelSyntaxError)
    arguments = _match(e, call, source)
    late = [name for name, value in arguments.items() if not e.is_static(value)]
    undo = None if late else e.attempt()
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
        against = find_side_effect(source, arguments)
    if undo is not None and against is None:
        undo()
        return _called(e, function, source, arguments, problems)
    for problem in problems:
        if problem not in e.explained and against is not None:
            problem.notes = (*problem.notes, against)
            e.explained.append(problem)
    if raised is not None:
        raise raised
    raise Silenced


def _called(
    e: Emitter,
    function: types.FunctionType,
    source: FunctionSource,
    arguments: dict[str, Any],
    problems: Sequence[TinoteError],
) -> Any:
    """What Python gives for constants, where inlining has met `problems`."""
    tree = source.tree.args
    args = [arguments[q.arg] for q in (*tree.posonlyargs, *tree.args)]
    kwargs = {q.arg: arguments[q.arg] for q in tree.kwonlyargs}
    if tree.vararg is not None:
        args += arguments[tree.vararg.arg]
    if tree.kwarg is not None:
        kwargs |= arguments[tree.kwarg.arg]
    e.reproducible = False
    try:
        return outside(e, e.ask(function, *args, **kwargs))
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


def _match(e: Emitter, call: Call, source: FunctionSource) -> dict[str, Any]:
    """Which value each parameter stands for."""
    tree = source.tree.args
    parameters = source.parameters
    positional = [q for q in parameters if q not in tree.kwonlyargs]
    names = [q.arg for q in parameters]
    arguments: dict[str, Any] = {}
    further: list[Any] = []
    named: dict[str, Any] = {}
    bound = sum(isinstance(a, Known) for a in call.args)
    count = len(call.args) + len(call.keywords) - bound, len(parameters) - bound
    given = 0
    for argument in call.args:
        if isinstance(argument, ast.Starred):
            with e.at(argument):
                values = list(static_items(e, e.evaluate(argument.value)))
        else:
            template = given < len(positional) and is_template_parameter(e, source, positional[given])
            values = [_reference(e, argument) if template else _value(e, argument)]
        for value in values:
            if given >= len(positional) and tree.vararg is not None:
                further.append(value)
                continue
            if given >= len(positional):
                _wrong_count(e, source, *count)
            arguments[positional[given].arg] = value
            given += 1
    for key, argument in call.keywords:
        node = _node(argument)
        if key is not None:
            position = names.index(key) if key in names else None
            template = position is not None and is_template_parameter(e, source, parameters[position])
            spread = {key: _reference(e, argument) if template else _value(e, argument)}
        else:
            spread = _value(e, argument)
            if not isinstance(spread, dict):
                e.error(f"{describe(spread)} after `**` is no dictionary", node=node)
        for name, value in spread.items():
            if name in arguments or name in named:
                e.error(f"`{source.name}` gets `{name}` twice", node=node)
            if name in names:
                arguments[name] = value
            elif tree.kwarg is not None:
                named[name] = value
            else:
                close = difflib.get_close_matches(str(name), names, 1)
                e.error(
                    f"`{source.name}` has no parameter `{name}`",
                    f"did you mean `{close[0]}`?" if close else f"it has {', '.join(names)}",
                    node,
                )
    for name in names:
        if name not in arguments:
            if name not in source.defaults:
                _wrong_count(e, source, *count, name)
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
