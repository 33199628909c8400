"""Comprehensions: unrolled at compile time, over the same iterables as unrolled loops."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tinote.compiler.frontend.emitter import Emitter, Expressions
from tinote.compiler.frontend.expressions.bindings import bind_target
from tinote.compiler.frontend.expressions.conditions import evaluate_condition
from tinote.compiler.frontend.expressions.domains import check_unrolled, static_items
from tinote.compiler.frontend.expressions.literals import evaluate_key
from tinote.compiler.frontend.values import Value


def list_(e: Emitter, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    return _comprehension(e, node, lambda: e.evaluate(node.elt))


def set_(e: Emitter, node: ast.SetComp) -> set[Any]:
    return set(_comprehension(e, node, lambda: evaluate_key(e, node.elt, of_dictionary=False)))


def dictionary(e: Emitter, node: ast.DictComp) -> dict[Any, Any]:
    return dict(_comprehension(e, node, lambda: (evaluate_key(e, node.key), e.evaluate(node.value))))


def _comprehension(
    e: Emitter, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, item: Callable[[], Any]
) -> list[Any]:
    """The values of `item` in each iteration."""
    found: list[Any] = []

    def walk(depth: int) -> None:
        if depth == len(node.generators):
            found.append(item())
            return
        generator = node.generators[depth]
        with e.at(generator.iter):
            items = static_items(e, e.evaluate(generator.iter))
            e.unrolled += len(items)
            check_unrolled(e, e.unrolled)
        for value in items:
            with e.block("comprehension"):
                bind_target(e, generator.target, value, "loop variable")
                conditions = [evaluate_condition(e, test) for test in generator.ifs]
                if any(isinstance(c, Value) for c in conditions):
                    e.error("the condition of a comprehension must be known at compile time", node=generator.ifs[0])
                if all(conditions):
                    walk(depth + 1)

    walk(0)
    return found


EXPRESSIONS: Expressions = {
    ast.ListComp: list_,
    ast.GeneratorExp: list_,
    ast.SetComp: set_,
    ast.DictComp: dictionary,
}
