"""Callees, as far as they are known before the code around a call is lowered; and the values of annotations."""

from __future__ import annotations

import ast
import builtins
from types import FunctionType, MethodType
from typing import Any

from tinote.compiler.frontend import analysis
from tinote.compiler.frontend.builtins.operator_functions import operator_function
from tinote.compiler.frontend.builtins.table import BUILTINS, PYTHON, primitive_expansion
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expansion import Expansion
from tinote.compiler.frontend.expressions import tensors
from tinote.compiler.frontend.functions.composed import composed_expansion
from tinote.compiler.frontend.scopes import ConstantBinding
from tinote.compiler.frontend.values import StructValue
from tinote.compiler.function_source import FunctionSource, function_of, source_of
from tinote.compiler.protocol import builtin_of, is_template, meant
from tinote.compiler.pysource.definitions import syntax_tree
from tinote.compiler.pysource.names import MISSING, find_name
from tinote.errors import TinoteError


def expansion_of(callee: Any) -> Expansion | None:
    """The expansion of a call of a built-in, of the language or of Python; `None` for any other callee."""
    try:
        found = PYTHON.get(callee) or operator_function(callee)
    except TypeError:  # not hashable
        return None
    builtin = builtin_of(callee) if found is None else None
    if builtin is None:
        return found
    prim = getattr(builtin, "__tinote_primitive__", None)
    if prim is not None:
        return primitive_expansion(builtin.__tinote_name__, prim, builtin.__wrapped__)
    if hasattr(builtin, "__tinote_composed__"):
        return composed_expansion(builtin)
    return BUILTINS.get(builtin.__tinote_name__)


def static_lookup(e: Emitter, node: ast.expr) -> Any:
    """The value of a dotted name outside the kernel, or `None`; not recorded as a capture."""
    match node:
        case ast.Attribute():
            owner = static_lookup(e, node.value)
            if isinstance(owner, StructValue):
                method = owner.info.methods.get(node.attr) if owner.info is not None else None
                return owner.members.get(node.attr) if method is None else method.__get__(owner)
            return None if owner is None else getattr(owner, node.attr, None)
        case ast.Name():
            binding = e.scope.find(node.id)
            if isinstance(binding, ConstantBinding):
                return binding.value
            if binding is not None:
                return None
            found = find_name(node.id, e.frame.source.closure, e.frame.source.globals)
            return None if found is None or found.value is MISSING else found.value
    return None


def is_static_call(e: Emitter, node: ast.expr) -> bool:
    """Whether an expression is a call of `static`."""
    return isinstance(node, ast.Call) and expansion_of(static_lookup(e, node.func)) is BUILTINS["static"]


def written_arguments(e: Emitter, node: ast.Call) -> list[ast.expr]:
    """The arguments of a call that the callee may assign: the target of an atomic, and arguments of `template()`
    parameters. A callee that is known only when the body is lowered may assign every name.
    """
    callee = static_lookup(e, node.func)
    if callee is None:
        names = [*node.args, *[k.value for k in node.keywords]] if _is_local(node.func) else []
        return [a for a in names if isinstance(a, ast.Name)]
    expansion = expansion_of(callee)
    if expansion is not None:
        return node.args[:1] if hasattr(expansion, "takes_place") else []
    source = _annotated_source(callee)
    if source is None:
        return []
    bound = getattr(callee, "__tinote_self__", None) is not None or isinstance(callee, MethodType)
    offset = 1 if bound else 0
    parameters = source.parameters
    found = [a for a, q in zip(node.args, parameters[offset:], strict=False) if is_template_parameter(e, source, q)]
    by_name = {q.arg: q for q in parameters}
    return found + [
        k.value for k in node.keywords if k.arg in by_name and is_template_parameter(e, source, by_name[k.arg])
    ]


def _annotated_source(callee: Any) -> FunctionSource | None:
    """The source of a device function, or of a plain one that may have template parameters."""
    plain = callee.__func__ if isinstance(callee, MethodType) else callee
    if isinstance(plain, FunctionType):
        return source_of(plain) if plain.__annotations__ else None
    return function_of(callee)


def _is_local(callee: ast.expr) -> bool:
    """Whether a callee that is not a captured object is a local variable, or a method of one that is not built in."""
    if isinstance(callee, ast.Attribute):
        return callee.attr not in tensors.METHODS and analysis.base_name(callee) is not None
    return isinstance(callee, ast.Name) and not hasattr(builtins, callee.id)


def annotation_value(e: Emitter, source: FunctionSource, node: ast.expr | None, name: str = "") -> Any:
    """What the annotation of a parameter, of the result (`name` is "return") or of a variable evaluates to; `None`
    when there is none.
    """
    if node is None:
        return None
    known = source.annotations.get(name)
    if known is not None and not isinstance(known, str):
        return known if not source.is_plain or is_template(known) else None
    if id(node) in e.annotations:
        return e.annotations[id(node)]
    try:
        found = _evaluated(e, source, node)
        if source.is_plain and not is_template(found):
            found = None
    except TinoteError:
        if not source.is_plain:
            raise
        found = None
    e.annotations[id(node)] = found
    return found


def _evaluated(e: Emitter, source: FunctionSource, node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = syntax_tree(node.value, mode="eval").body
    names = source.enclosed()
    code = compile(ast.Expression(node), source.file, "eval")
    try:
        return meant(eval(code, source.globals, names))
    except TinoteError as error:
        e.error(error.message, error.hint, node)
    except Exception as error:
        e.error(f"this annotation cannot be evaluated: {type(error).__name__}: {error}", node=node)


def is_template_parameter(e: Emitter, source: FunctionSource, parameter: ast.arg) -> bool:
    return parameter.annotation is not None and is_template(
        annotation_value(e, source, parameter.annotation, parameter.arg)
    )
