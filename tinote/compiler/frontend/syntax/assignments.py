"""Assignments: `=`, augmented ones such as `+=`, declarations with a type, and `:=`."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.calls.dispatch import call_object
from tinote.compiler.frontend.conversions import strong_value
from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions, Silenced, Statements
from tinote.compiler.frontend.expressions import structs
from tinote.compiler.frontend.expressions.arithmetic import AUGMENTED, binary
from tinote.compiler.frontend.expressions.bindings import cells_for, declare, parts_of, rebind, store_all, unpacked
from tinote.compiler.frontend.expressions.places import combine, converted, negative, store
from tinote.compiler.frontend.functions.callees import annotation_value, is_static_call
from tinote.compiler.frontend.python.names import lookup, read_name
from tinote.compiler.frontend.scopes import ConstantBinding, Variable
from tinote.compiler.frontend.syntax.subscripts import gathers, indices
from tinote.compiler.frontend.values import POISON, CellPlace, ObjectValue, Place, StructValue, Text, Value, has_getitem
from tinote.compiler.protocol import AddsAt, buffer_of, is_small_array, struct_of, type_of, unit_of
from tinote.errors import KernelNameError, KernelSyntaxError, Note
from tinote.ir import primitives as p
from tinote.ir.nodes import Local, Var
from tinote.ir.types import Ref, Scalar


def assignment(e: Emitter, node: ast.Assign) -> None:
    static = is_static_call(e, node.value)
    front = e.evaluate(node.value)
    for target in node.targets:
        assign(e, target, front, static, node.value)


def assign(e: Emitter, target: ast.expr, front: Any, static: bool = False, value: ast.expr | None = None) -> None:
    """Bind or store what the right side of an assignment, `value`, evaluated to. `static`: a name is bound to the
    compile-time value itself.
    """
    with e.at(target):
        if isinstance(target, ast.Name):
            _assign_name(e, target.id, front, static, value)
        elif isinstance(target, ast.Tuple | ast.List):
            _unpack(e, target, front, static, value)
        else:
            _assign_place(e, target, front, value)


def _assign_place(e: Emitter, target: ast.expr, front: Any, value: ast.expr | None) -> None:
    if isinstance(target, ast.Attribute):
        made = e.reference(target.value)
        if isinstance(made, ObjectValue) and target.attr not in made.members:
            if e.depth != e.frame.depth:
                e.error(
                    f"`{ast.unparse(target)}` is made in a branch or a loop, so that it might not be there",
                    "assign it before",
                )
            made.members[target.attr] = cells_for(e, target.attr, front) if e.is_value(front) else front
            return
    found = e.reference(target)
    if isinstance(found, StructValue) and found.is_place():
        store_all(e, found, front, f"`{ast.unparse(target)}`")
    else:
        store(e, _place(e, target, found), front, f"`{ast.unparse(target)}`", value)


def _unpack(e: Emitter, target: ast.Tuple | ast.List, front: Any, static: bool, value: ast.expr | None) -> None:
    """Assign the parts of `front` to several targets; a starred one takes the remaining parts as a list."""
    targets = target.elts
    starred = next((k for k, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if starred is None:
        parts = unpacked(e, front, len(targets))
    else:
        given = parts_of(e, front)
        if given is None:
            e.error(f"{describe(front)} cannot be unpacked into {len(targets)}")
        rest = len(given) - len(targets) + 1
        if rest < 0:
            e.error(f"{len(given)} values cannot be unpacked into {len(targets) - 1} names and more")
        parts = [*given[:starred], list(given[starred : starred + rest]), *given[starred + rest :]]
    nodes: list[ast.expr | None] = [value] * len(targets)
    if starred is None and isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets):
        nodes = list(value.elts)
    for inner, part, node in zip(targets, parts, nodes, strict=True):
        assign(e, inner.value if isinstance(inner, ast.Starred) else inner, part, static, node)


def _place(e: Emitter, target: ast.expr, found: Any = None) -> Place:
    """The place that an assignment's left side denotes; `found`: its reference, if known."""
    found = e.reference(target) if found is None else found
    if isinstance(found, Place):
        return found
    if isinstance(found, StructValue):
        e.error(f"{describe(found)} is assigned or combined as a whole", "name one of its members")
    if isinstance(target, ast.Subscript) and is_small_array(e.reference(target.value)):
        e.error(
            f"`{ast.unparse(target.value)}` is a NumPy array that the kernel reads as a constant",
            "pass it to a parameter with the annotation `ti.types.ndarray()`",
        )
    if isinstance(target, ast.Subscript) and has_getitem(e.reference(target.value)):
        e.error(
            f"`{ast.unparse(target.value)}` is an object of a class of your own, whose items kernels only read",
            "kernels can only modify fields: name the field, or call a method that does",
        )
    name = analysis.base_name(target)
    binding = e.scope.find(name) if name else None
    if isinstance(binding, ConstantBinding) and binding.what:
        _refuse(e, binding)
    if isinstance(target, ast.Attribute):
        e.error(
            f"`{ast.unparse(target)}` cannot be assigned in a kernel",
            "kernels can only modify fields and local variables",
        )
    e.error(
        f"`{ast.unparse(target)}` cannot be assigned: it is part of a constant",
        "copy the whole to a variable, or use a field",
    )


def _refuse(e: Emitter, binding: ConstantBinding) -> None:
    hint = f"assign a copy: `value = {binding.name}`"
    article = "an" if binding.what[0] in "aeiou" else "a" if not binding.what.startswith("variable of") else "the"
    e.error(
        f"`{binding.name}` is {article} {binding.what} and cannot be assigned",
        hint,
        kind=KernelSyntaxError,
        notes=[Note(f"`{binding.name}` comes from here", binding.span)],
    )


def _assign_name(e: Emitter, name: str, front: Any, static: bool, value: ast.expr | None) -> None:
    binding = e.scope.find(name)
    if isinstance(binding, Variable):
        assert binding.place is not None
        if isinstance(front, Text | str) or not e.is_value(front):
            e.error(f"`{name}` is {describe(binding.place)}, to which {describe(front)} cannot be assigned")
        store(e, binding.place, front, f"`{name}`", value)
        return
    if isinstance(binding, ConstantBinding) and binding.value is not POISON:
        if binding.what:
            _refuse(e, binding)
        if rebind(e, binding, front):
            return
    if static:
        e.bind(name, front)
    else:
        if value is not None and not isinstance(front, tuple | list) and e.is_value(front):
            with e.at(value):
                front = strong_value(e, front)
        declare(e, name, front)


def annotated_assignment(e: Emitter, node: ast.AnnAssign) -> None:
    if node.value is None:
        e.unsupported("a declaration without a value", "assign the variable", node)
    front = e.evaluate(node.value)
    annotation = annotation_value(e, e.frame.source, node.annotation)
    if annotation is None and e.frame.source.is_plain:
        assign(e, node.target, front, value=node.value)
        return
    info = struct_of(annotation)
    if info is not None:
        assign(e, node.target, structs.fitted(e, front, info))
        return
    t = type_of(annotation, e.fp, e.ip)
    if t is None:
        e.error(
            f"{describe(annotation)} is not a type of the kernel language",
            "for example `ti.f32` or `ti.types.vector(3, ti.f32)`",
            node.annotation,
        )
    with e.at(node.value):
        if isinstance(t, Scalar):
            if e.shape(front):
                e.error(f"{describe(front)} does not fit {t}")
            value = e.cast(front, t)
        else:
            value = e.cast(Value(converted(e, front, t, "the variable")), t.dtype)
        value = e.measured(value, unit_of(annotation))
    assign(e, node.target, value)


def augmented_assignment(e: Emitter, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        place = _augmented_name(e, target)
    else:
        with e.at(target):
            if isinstance(target, ast.Subscript) and (found := gathers(owner := e.reference(target.value))):
                return _add_at(e, node, target, owner, found)
            place = _place(e, target)
    if place is None:
        return assign(e, target, binary(e, node.op, e.evaluate(target), e.evaluate(node.value)))
    front = e.evaluate(node.value)
    what = f"`{ast.unparse(target)}`"
    prim = p.add if isinstance(node.op, ast.Sub) else AUGMENTED.get(type(node.op))
    if place.shared and prim is not None:
        operand = converted(e, front, place.type, what, place)
        if isinstance(node.op, ast.Sub):
            operand = negative(e, operand, place.type)
        combine(e, place, prim, Value(operand), old=False)
        return None
    store(e, place, binary(e, node.op, place.load(e.b), front), what)
    return None


def _add_at(e: Emitter, node: ast.AugAssign, target: ast.Subscript, owner: Any, found: AddsAt) -> None:
    """Add to an object that collects entries, such as a sparse matrix builder: `A[i, j] += value`."""
    at = [front for front, _ in indices(e, target.slice)]
    dimensions, add, subtract = found
    if len(at) != dimensions:
        letters = ", ".join("ijkl"[:dimensions])
        e.error(
            f"`{ast.unparse(target.value)}` has {dimensions} dimensions, and is indexed with {len(at)}",
            f"write `{ast.unparse(target.value)}[{letters}]`",
        )
    for front in at:
        if not e.is_value(front) or e.shape(front) or e.as_value(front).dtype.kind not in "iu":
            e.error(f"{describe(front)} is not an index: it is a row or a column")
    if not isinstance(node.op, ast.Add | ast.Sub):
        _place(e, target)
    front = e.evaluate(node.value)
    with e.at(node.value):
        if not e.is_value(front) or e.shape(front):
            e.error(f"{describe(front)} is not an entry of a matrix", "add one number at a time")
    call_object(e, target, subtract if isinstance(node.op, ast.Sub) else add, owner, *at, front)


def _augmented_name(e: Emitter, target: ast.Name) -> Place | None:
    """The place of a variable; `None` for a name that is bound again instead."""
    binding = e.scope.find(target.id)
    with e.at(target):
        if isinstance(binding, Variable):
            if isinstance(binding.place, Place):
                return binding.place
            raise Silenced
        if binding is None:
            outside = lookup(e, target.id)
            if buffer_of(outside) is not None:
                e.as_value(outside)
            e.error(
                f"`{target.id}` is defined outside of the kernel and cannot be assigned in it",
                "kernels can only modify fields and local variables",
                kind=KernelNameError,
            )
        if binding.value is POISON:
            raise Silenced
        if binding.what:
            _refuse(e, binding)
        if binding.depth != e.depth:
            rebind(e, binding, object())
        return None


def named_expression(e: Emitter, node: ast.NamedExpr) -> Any:
    """`(name := value)`. Where a condition decides whether it is evaluated, a new name gets its cell before
    the statement.
    """
    front = e.evaluate(node.value)
    anchor, depth = e.statement
    if e.depth > depth and e.scope.find(node.target.id) is None:
        value = strong_value(e, front)
        cell = Var(Ref(value.type), node.target.id)
        anchor.insert(Local((), (cell,), (), e.b.loc))
        variable = Variable(node.target.id, None, e.b.loc, e.nest)
        variable.place = CellPlace(cell, owner=variable)
        e.scope.names[node.target.id] = variable
    assign(e, node.target, front, value=node.value)
    return e.force(read_name(e, node.target))


STATEMENTS: Statements = {
    ast.Assign: assignment,
    ast.AnnAssign: annotated_assignment,
    ast.AugAssign: augmented_assignment,
}
EXPRESSIONS: Expressions = {ast.NamedExpr: named_expression}
