"""The arguments of a call: evaluated, and matched with the parameters of the callee."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.compiler.frontend.descriptions import describe
from tinote.compiler.frontend.emitter import Emitter
from tinote.compiler.frontend.expressions.domains import static_items
from tinote.compiler.frontend.expressions.literals import evaluate_all
from tinote.compiler.frontend.functions.callees import is_template_parameter
from tinote.compiler.frontend.python.names import outside
from tinote.compiler.frontend.python.plain_functions import CallTarget
from tinote.compiler.function_source import FunctionSource
from tinote.errors import closest


class KnownArgument(NamedTuple):
    """An argument whose value is known before its call is evaluated."""

    value: Any


class CallSite(NamedTuple):
    """A call: its place in the source and its arguments, including those known beforehand."""

    node: ast.expr
    args: Sequence[ast.expr | KnownArgument]
    keywords: Sequence[tuple[str | None, ast.expr | KnownArgument]]

    @staticmethod
    def with_values(node: ast.expr, args: Iterable[Any], kwargs: Mapping[str, Any]) -> CallSite:
        return CallSite(
            node, [KnownArgument(a) for a in args], [(name, KnownArgument(a)) for name, a in kwargs.items()]
        )

    def after(self, target: CallTarget) -> CallSite:
        """The call of the function that `target` leads to."""
        if not target.args and not target.kwargs:
            return self
        given = {name for name, _ in self.keywords}
        before = [(name, KnownArgument(a)) for name, a in target.kwargs.items() if name not in given]
        return CallSite(self.node, [*map(KnownArgument, target.args), *self.args], [*before, *self.keywords])

    @property
    def name(self) -> str:
        """The callee as written in the program."""
        return ast.unparse(self.node.func) if isinstance(self.node, ast.Call) else ast.unparse(self.node)


def callee_node(call: CallSite) -> ast.expr:
    """The node of the callee."""
    return call.node.func if isinstance(call.node, ast.Call) else call.node


def _value(e: Emitter, argument: ast.expr | KnownArgument) -> Any:
    return argument.value if isinstance(argument, KnownArgument) else e.evaluate(argument)


def _reference(e: Emitter, argument: ast.expr | KnownArgument) -> Any:
    return argument.value if isinstance(argument, KnownArgument) else e.reference(argument)


def evaluate_arguments(e: Emitter, call: CallSite, places: int = 0) -> tuple[list[Any], dict[str, Any]]:
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
            e.error(f"{describe(front)} after `**` is not a dictionary", node=_node(argument))
    return args, kwargs


def _node(argument: ast.expr | KnownArgument) -> ast.expr | None:
    return None if isinstance(argument, KnownArgument) else argument


def match_parameters(e: Emitter, call: CallSite, source: FunctionSource) -> dict[str, Any]:
    """The value of each parameter."""
    tree = source.tree.args
    parameters = source.parameters
    positional = [q for q in parameters if q not in tree.kwonlyargs]
    names = [q.arg for q in parameters]
    arguments: dict[str, Any] = {}
    further: list[Any] = []
    named: dict[str, Any] = {}
    bound = sum(isinstance(a, KnownArgument) for a in call.args)
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
                e.error(f"{describe(spread)} after `**` is not a dictionary", node=node)
        for name, value in spread.items():
            if name in arguments or name in named:
                e.error(f"`{source.name}` gets `{name}` twice", node=node)
            if name in names:
                arguments[name] = value
            elif tree.kwarg is not None:
                named[name] = value
            else:
                close = closest(str(name), names)
                e.error(
                    f"`{source.name}` has no parameter `{name}`",
                    f"did you mean `{close}`?" if close else f"it has {', '.join(names)}",
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
