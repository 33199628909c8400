"""Bodies of functions: the kernel's own, and those of the device functions that are inlined at their calls."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expressions import structs
from tinote.compiler.frontend.expressions.bindings import declare
from tinote.compiler.frontend.functions.callees import annotation_value, is_static_call, written_arguments
from tinote.compiler.frontend.functions.statements import lower_body
from tinote.compiler.frontend.scopes import Annotated, Consumer, FunctionFrame, Results, Scope, Variable
from tinote.compiler.frontend.values import CellPlace, ObjectValue, PackValue, Place
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.protocol import StructInfo, is_template, struct_of, type_of, unit_of
from tinote.ir.types import Scalar, Tensor, element_type, shape_of


def inline(
    e: Emitter,
    source: FunctionSource,
    arguments: dict[str, Any],
    scope: Scope | None = None,
    key: Any = None,
    *,
    is_routine: bool = False,
    consumer: Consumer | None = None,
) -> Any:
    """The result of a device function whose parameters stand for `arguments`; its operations and errors refer to the
    function and to the call. `scope`: that of a function defined in a kernel. `key`: identifies a `real_func`;
    `is_routine`: it is lowered as a routine of a recursion; `consumer`: the loop over it, if it is a generator.
    """
    frame = FunctionFrame(
        source, e.frame, e.b.loc, Results(e.here()), e.depth, key=key, is_routine=is_routine, consumer=consumer
    )
    if consumer is not None:
        frame.results.returned = consumer.left
    frame.scope = scope or frame.scope
    saved = e.frame, e.scope, e.b.loc, e.loop_options, e.stopped
    e.loop_options = {} if consumer is None else consumer.options
    e.frame, e.scope = frame, frame.scope
    try:
        for name, front in arguments.items():
            e.bind(name, front)  # so that the survey knows calls of functions passed as arguments
        survey(e)
        for parameter in source.parameters:
            with e.at(parameter):
                _bind_parameter(e, source, parameter, arguments[parameter.arg])
        for extra in (source.tree.args.vararg, source.tree.args.kwarg):
            if extra is not None:
                with e.at(extra):
                    e.bind(extra.arg, arguments[extra.arg], "parameter of the function")
        frame.annotated = result_types(e, source)
        return annotated_body(e, frame)
    finally:
        e.frame, e.scope, e.b.loc, e.loop_options, e.stopped = saved


def survey(e: Emitter) -> None:
    """Find the names in the current function's syntax that need cells or shared memory."""
    frame = e.frame
    body = frame.source.tree.body
    known: dict[ast.Call, list[ast.expr]] = {}

    def written(call: ast.Call) -> list[ast.expr]:
        if call not in known:
            known[call] = written_arguments(e, call)
        return known[call]

    nodes = analysis.assigning_nodes(body)
    frame.assigned = analysis.assigned_names(nodes, written)
    for loop in analysis.loop_bodies(body, lambda statement: is_static_call(e, statement.iter)):
        frame.shared |= analysis.assigned_names(analysis.assigning_nodes(loop), written).keys()
    # A function defined here may be called in such a loop.
    frame.shared |= analysis.assigned_names(analysis.inside_functions(nodes), written).keys()
    # The loops of a function that is called on the outermost level are parallel, too.
    frame.shared |= analysis.names_passed(nodes, written)


def _bind_parameter(e: Emitter, source: FunctionSource, parameter: ast.arg, front: Any) -> None:
    """Arguments are passed by value, templates as they are."""
    name = parameter.arg
    annotation = annotation_value(e, source, parameter.annotation, name)
    if annotation is not None and not is_template(annotation):
        front = as_parameter(e, name, annotation, front, inlined=not e.frame.is_routine)
    if isinstance(front, PackValue):
        e.bind(name, front, "argument pack")
        return
    struct = structs.as_struct(e, front)
    if struct is not None:
        if struct.is_place() or isinstance(struct, ObjectValue):  # a template, or what a method is called on
            e.bind(name, struct)
        elif e.frame.is_routine and annotation is None:
            e.bind(name, struct, "copy here, because its method calls itself,")
        else:
            declare(e, name, struct)
        return
    if isinstance(front, Place):
        owner = front.owner if isinstance(front, CellPlace) else None
        e.scope.names[name] = Variable(name, front, e.b.loc, owner.nest if isinstance(owner, Variable) else e.nest)
        return
    template = is_template(annotation)
    if name in e.frame.assigned and not template and e.is_value(front) and not isinstance(front, tuple | list):
        e.frame.assigned[name] += 1  # the argument is the first assignment
        declare(e, name, front)
        return
    e.bind(name, front, "template argument" if template else "")


def as_parameter(e: Emitter, name: str, annotation: Any, front: Any, *, inlined: bool = False) -> Any:
    """An argument as the parameter that it is passed to is annotated. That of an `inlined` function may be of another
    shape, with a warning.
    """
    info = struct_of(annotation)
    if info is not None:
        given = structs.as_struct(e, front)
        _warn_of_fractions(e, name, info, given.members if given is not None else front)
        return structs.fitted(e, front, info)
    t = type_of(annotation, e.fp, e.ip)
    if t is None or not e.is_value(front):
        if t is not None:
            e.error(f"parameter `{name}` is a {t}, and is called with {describe(front)}")
        return front
    if e.shape(front) != shape_of(t):
        is_what = f"is a number of type {t}" if isinstance(t, Scalar) else f"has shape {t.shape}"
        what = f"parameter `{name}` {is_what}, and is called with {describe(front)}"
        if not inlined:
            e.error(what)
        e.warn(f"{what}, which it takes as it is")
        return front
    dtype = element_type(t)
    if dtype.kind in "iu" and e.as_value(front, dtype).dtype.kind == "f":
        what = "is an integer" if isinstance(t, Scalar) else "holds integers"
        e.warn(f"parameter `{name}` {what}: the fraction of its argument is cut off")
    return e.measured(e.cast(front, dtype), unit_of(annotation))


def _warn_of_fractions(e: Emitter, name: str, info: StructInfo, members: Any) -> None:
    """Warn where integer members of a struct are given floats, as for numbers and vectors."""
    for member, t in info.members.items() if isinstance(members, dict) else ():
        front = members.get(member)
        if isinstance(t, StructInfo):
            given = structs.as_struct(e, front)
            _warn_of_fractions(e, f"{name}.{member}", t, given.members if given is not None else front)
        elif (
            element_type(t).kind in "iu" and e.is_value(front) and e.as_value(front, element_type(t)).dtype.kind == "f"
        ):
            what = "is an integer" if isinstance(t, Scalar) else "holds integers"
            e.warn(f"member `{name}.{member}` {what}: the fraction of its argument is cut off")


def result_types(e: Emitter, source: FunctionSource) -> Annotated | None:
    """The annotated result types of a function; `None` without an annotation."""
    node = source.tree.returns
    if node is None:
        return None
    with e.at(node):
        annotation = annotation_value(e, source, node, "return")
    if annotation is None:
        return None
    parts = (
        getattr(annotation, "__args__", None)
        if getattr(annotation, "__origin__", None) is tuple
        else annotation
        if isinstance(annotation, tuple) and not isinstance(annotation, Tensor)
        else None
    )
    listed = (annotation,) if parts is None else tuple(parts)
    types = tuple([struct_of(part) or type_of(part, e.fp, e.ip) for part in listed])
    return Annotated(listed, types, parts is not None)


def annotated_body(e: Emitter, frame: FunctionFrame) -> Any:
    """Lower the body of the function of `frame`; its result, which is none only if no type is annotated."""
    failures = e.failures
    result = lower_body(e, frame)
    if result is None and e.failures == failures and frame.annotated is not None and any(frame.annotated.types):
        source = frame.source
        e.error(
            f"`{source.name}` is annotated to return a value, and returns none", "add a `return`", source.tree.returns
        )
    return result
