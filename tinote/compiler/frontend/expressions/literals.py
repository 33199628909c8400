"""Literals: constants, tuples, lists, sets and dictionaries."""

from __future__ import annotations

import ast
from typing import Any

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.expressions.domains import static_items
from tinote.compiler.frontend.values import Value


def evaluate_all(e: Emitter, nodes: list[ast.expr]) -> list[Any]:
    """The values of several expressions; starred ones are unpacked."""
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            with e.at(node):
                found += static_items(e, e.evaluate(node.value))
        else:
            found.append(e.evaluate(node))
    return found


def constant(e: Emitter, node: ast.Constant) -> Any:
    value = node.value
    if isinstance(value, complex):
        e.unsupported("a complex number", "use vectors of two")
    if isinstance(value, bytes):
        e.unsupported("a byte string")
    return value


def tuple_(e: Emitter, node: ast.Tuple) -> tuple[Any, ...]:
    return tuple(evaluate_all(e, node.elts))


def list_(e: Emitter, node: ast.List) -> list[Any]:
    return evaluate_all(e, node.elts)


def set_(e: Emitter, node: ast.Set) -> set[Any]:
    return {evaluate_key(e, item, of_dictionary=False) for item in node.elts}


def dictionary(e: Emitter, node: ast.Dict) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        front = e.evaluate(value)
        if key is not None:
            found[evaluate_key(e, key)] = front
        elif isinstance(front, dict):
            found |= front
        else:
            e.error(f"{describe(front)} after `**` is not a dictionary", node=value)
    return found


def evaluate_key(e: Emitter, node: ast.expr, *, of_dictionary: bool = True) -> Any:
    """The value of a key. In a dictionary it may be a run-time number, which is compared at lookup."""
    key = e.evaluate(node)
    if of_dictionary and isinstance(key, Value) and not key.shape:
        return key
    if not e.is_static(key):
        e.error("a key must be known at compile time", node=node)
    try:
        hash(key)
    except TypeError:
        e.error(f"{describe(key)} cannot be a key", node=node)
    return key


EXPRESSIONS: Expressions = {
    ast.Constant: constant,
    ast.Tuple: tuple_,
    ast.List: list_,
    ast.Set: set_,
    ast.Dict: dictionary,
}
