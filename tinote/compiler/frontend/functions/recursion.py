"""Calls of `real_func`s: inlined like other device functions, unless the function is recursive.

Recursion is found by inlining: a call that leads back to itself (`Recursive`) undoes it, and the function becomes a
routine of the recursion (`activations.py`). Recursive functions that such a routine calls are routines of the same
recursion; everything else is inlined in these as anywhere.

Numbers, vectors, matrices and structs are passed by value and need annotations, because a routine is lowered once for
all of its calls. Other arguments (fields, `template()`, `ref`, `self`) are known at compile time and are part of a
routine's identity.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

from tinote.compiler.frontend.attempts import attempt
from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.emitter import Emitter, Silenced
from tinote.compiler.frontend.expressions.structs import as_struct, leaves_of, rebuilt
from tinote.compiler.frontend.functions.activations import Routine, RoutineCall, lower_recursion
from tinote.compiler.frontend.functions.bodies import as_parameter, inline, result_types
from tinote.compiler.frontend.functions.callees import annotation_value, is_template_parameter
from tinote.compiler.frontend.scopes import FunctionFrame, Scope
from tinote.compiler.frontend.values import (
    POISON,
    ArrayValue,
    BoundMethod,
    CellPlace,
    MemoryPlace,
    PartPlace,
    StructValue,
    Value,
)
from tinote.compiler.function_source import FunctionSource, function_of
from tinote.compiler.protocol import StructInfo
from tinote.errors import KernelSyntaxError, KernelTypeError
from tinote.ir.nodes import Atom, Var
from tinote.ir.types import Scalar, Tensor
from tinote.source import Span

#: Greatest depth of inlining a function in itself. Chosen, not measured.
_MAX_DEPTH = 64
#: The same for a `real_func`, since more Python frames are between two of its calls. Chosen, not measured.
_MAX_REAL_DEPTH = 32


class Recursive(Exception):
    """Raised when the call of a function leads back to itself, to end the attempt to inline it."""

    def __init__(self, key: Key) -> None:
        super().__init__(key)
        self.key = key


class Same:
    """An object as a part of a key, by identity."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


class Key(NamedTuple):
    """The identity of a routine: the definition, the scope of a function defined in a kernel, the compile-time
    arguments, and the fields through which no derivative flows.
    """

    tree: Same
    scope: Same
    constants: tuple[Any, ...]
    stopped: frozenset[Any]


class Pending(NamedTuple):
    """A routine that is yet to be lowered, with the call that met it first."""

    routine: Routine
    source: FunctionSource
    arguments: dict[str, Any]
    scope: Scope | None
    frame: FunctionFrame
    loc: Span
    stopped: frozenset[Any]


class Recursion:
    """The routines of one call from outside, and those that are yet to be lowered."""

    def __init__(self) -> None:
        self.routines: dict[Key, Routine] = {}
        self.pending: list[Pending] = []
        self.results: dict[Routine, Any] = {}


def frames_of(e: Emitter) -> list[FunctionFrame]:
    """The frames from the innermost out to that of the routine which is being lowered, if one is."""
    chain = e.frame.chain()
    inner = list(takewhile(lambda frame: not frame.is_routine, chain))
    return chain[: len(inner) + 1]


def leave_circle(e: Emitter, frame: FunctionFrame) -> None:
    """End the attempt to inline a `real_func` that is called by the function of `frame` and calls that again."""
    for inner in frames_of(e):
        if inner is frame:
            return
        if inner.key is not None:
            raise Recursive(inner.key)


def too_deep(e: Emitter, source: FunctionSource) -> None:
    """Refuse to inline a function in itself for ever."""
    deepest = _MAX_REAL_DEPTH if source.may_recurse else _MAX_DEPTH
    what = ", with other arguments for `template()` or `ref`" if source.may_recurse else ""
    if sum(frame.source.tree is source.tree for frame in frames_of(e)) >= deepest:
        e.error(
            f"`{source.name}` calls itself more than {deepest} times deep{what}",
            "end the recursion with `if ti.static(…)`, or use a loop",
            kind=KernelSyntaxError,
        )


def call_real(e: Emitter, source: FunctionSource, arguments: dict[str, Any], scope: Scope | None) -> Any:
    """The result of a `real_func`."""
    key = _key_of(e, source, arguments, scope)
    recursion = e.recursion
    routine = recursion.routines.get(key) if recursion is not None else None
    if routine is None and key not in e.recursive:
        if any(frame.key == key for frame in e.frame.chain()):  # possibly around the recursion that is being lowered
            raise Recursive(key)
        too_deep(e, source)
        undo = attempt(e)
        try:
            return inline(e, source, arguments, scope, key)
        except Recursive as found:
            if found.key != key:
                raise
        undo()
        e.recursive.add(key)
    given = _by_value(e, source, arguments)
    if recursion is not None:
        if routine is None:
            routine = _routine(e, recursion, key, source, arguments, given, scope)
        return _called(e, recursion, routine, given)
    e.recursion = recursion = Recursion()
    failures = e.failures
    try:
        routine = _routine(e, recursion, key, source, arguments, given, scope)
        while recursion.pending:
            _lower(e, recursion.pending.pop())
    finally:
        e.recursion = None
    if e.failures > failures:
        raise Silenced
    outs = lower_recursion(e.b, routine, _atoms(e, routine, given))
    return _result(recursion.results[routine], iter(outs))


def _called(e: Emitter, recursion: Recursion, routine: Routine, given: dict[str, Any]) -> Any:
    call = RoutineCall(routine, _atoms(e, routine, given), e.b.loc)
    e.b.emit(call)
    return _result(recursion.results[routine], iter(call.outs))


# identity of routines


def _key_of(e: Emitter, source: FunctionSource, arguments: dict[str, Any], scope: Scope | None) -> Key:
    names = [q.arg for q in source.parameters if not _is_by_value(e, source, q, arguments[q.arg])]
    names += [extra.arg for extra in (source.tree.args.vararg, source.tree.args.kwarg) if extra is not None]
    constants = tuple([(name, _identity(arguments[name])) for name in names])
    return Key(Same(source.tree), Same(None if scope is None else scope.parent), constants, e.stopped)


def _is_by_value(e: Emitter, source: FunctionSource, parameter: ast.arg, front: Any) -> bool:
    if is_template_parameter(e, source, parameter) or isinstance(front, ArrayValue):
        return False
    return e.is_value(front) or as_struct(e, front) is not None


def _identity(front: Any) -> Any:
    """A compile-time value as part of a key, equal for equal arguments."""
    match front:
        case Value():
            return _identity(front.atom)
        case CellPlace():
            return Same(front.ref), tuple(map(_identity, front.index))
        case MemoryPlace():
            return Same(front.buffer), tuple(map(_identity, (*front.index, *front.components))), front.constant
        case PartPlace():
            return _identity(front.base), front.shape, tuple([tuple(map(_identity, k)) for k in front.positions])
        case ArrayValue():
            return Same(front.buffer), front.clamps
        case StructValue():
            return tuple([(name, _identity(m)) for name, m in front.members.items()])
        case BoundMethod():
            return _identity(front.owner), front.name
        case dict():
            return tuple([(_identity(k), _identity(v)) for k, v in front.items()])
        case list() | tuple():
            return type(front), tuple(map(_identity, front))
        case bool() | int() | float() | str():
            return type(front), repr(front)
        case Var():
            return Same(front)
        case _ if hasattr(front, "__tinote_self__") and (source := function_of(front)) is not None:
            return Same(source.tree), _identity(front.__tinote_self__)
        case _:
            return front if isinstance(front, Atom) else Same(front)


# arguments and results


def _by_value(e: Emitter, source: FunctionSource, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments passed by value, with their annotated types."""
    found: dict[str, Any] = {}
    for q in source.parameters:
        front = arguments[q.arg]
        if not _is_by_value(e, source, q, front):
            continue
        annotation = annotation_value(e, source, q.annotation, q.arg)
        struct = as_struct(e, front)
        if annotation is not None:
            found[q.arg] = e.force(as_parameter(e, q.arg, annotation, front))
        elif struct is not None and struct.info is not None:
            found[q.arg] = e.force(struct)
        else:
            e.error(
                f"`{source.name}` calls itself, and the type of its parameter `{q.arg}` is not annotated",
                f"for example `{q.arg}: ti.f32`",
                kind=KernelTypeError,
            )
    return found


def _leaves(front: Any) -> Iterator[Any]:
    if isinstance(front, StructValue):
        yield from leaves_of(front)
    elif isinstance(front, tuple | list):
        for part in front:
            yield from _leaves(part)
    elif front is not None:
        yield front


def _atoms(e: Emitter, routine: Routine, given: dict[str, Any]) -> tuple[Atom, ...]:
    leaves = [leaf for front in given.values() for leaf in _leaves(front)]
    found: list[Atom] = []
    for q, leaf in zip(routine.parameters, leaves, strict=True):
        assert isinstance(q.type, Scalar | Tensor)
        value = e.as_value(leaf)
        assert value.type == q.type, "annotated arguments have been converted"
        found.append(value.atom)
    return tuple(found)


def _result(shape: Any, outs: Iterator[Var]) -> Any:
    """The result of a function, built from the values of `outs`; `shape` has a type for each."""
    if isinstance(shape, StructInfo):
        return StructValue({name: _result(t, outs) for name, t in shape.members.items()}, shape)
    if isinstance(shape, list):
        return tuple([_result(t, outs) for t in shape])
    return None if shape is None else Value(next(outs))


def _types(shape: Any) -> Iterator[Scalar | Tensor]:
    if isinstance(shape, StructInfo):
        yield from shape.leaves()
    elif isinstance(shape, list):
        for part in shape:
            yield from _types(part)
    elif shape is not None:
        yield shape


# routines


def _routine(
    e: Emitter,
    recursion: Recursion,
    key: Key,
    source: FunctionSource,
    arguments: dict[str, Any],
    given: dict[str, Any],
    scope: Scope | None,
) -> Routine:
    """A routine whose body is yet to be lowered."""
    parameters: list[Var] = []

    def parameter(name: str, leaf: Any) -> Value:
        parameters.append(Var(strong_value(e, leaf).type, name))
        return Value(parameters[-1])

    inside = dict(arguments)
    for name, front in given.items():
        if isinstance(front, StructValue):
            inside[name] = rebuilt(front, iter([parameter(name, leaf) for leaf in leaves_of(front)]))
        else:
            inside[name] = parameter(name, front)
    annotated = result_types(e, source)
    shape: Any = None
    if annotated is not None and any(annotated.types):
        if not all(annotated.types):
            e.error(f"`{source.name}` calls itself, and the type of what it returns is not annotated whole")
        shape = list(annotated.types) if annotated.is_tuple else annotated.types[0]
    routine = Routine(source.name, parameters, list(_types(shape)))
    recursion.routines[key] = routine
    recursion.results[routine] = shape
    recursion.pending.append(Pending(routine, source, inside, scope, e.frame, e.b.loc, e.stopped))
    return routine


def _lower(e: Emitter, pending: Pending) -> None:
    """Lower the body of a routine."""
    routine, source = pending.routine, pending.source
    saved = e.frame, e.b.loc, e.stopped, e.statement, e.in_static
    e.frame, e.b.loc, e.stopped, e.in_static = pending.frame, pending.loc, pending.stopped, 0
    scope = None if pending.scope is None else Scope(pending.scope.parent, pending.scope.own)
    try:
        with e.region(*routine.parameters) as opened:
            e.statement = e.here(), e.depth
            result = inline(e, source, pending.arguments, scope, is_routine=True)
            if result is not None and result is not POISON and not routine.results:
                e.error(
                    f"`{source.name}` calls itself, and the type of what it returns is not annotated",
                    f"for example `def {source.name}(…) -> ti.f32:`",
                    source.tree,
                    KernelTypeError,
                )
            yields = () if result is POISON else tuple([e.as_value(leaf).atom for leaf in _leaves(e.force(result))])
        routine.region = opened.close(*yields)
    finally:
        e.frame, e.b.loc, e.stopped, e.statement, e.in_static = saved
