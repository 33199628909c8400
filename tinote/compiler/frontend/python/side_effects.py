"""Purity analysis: whether a Python function may be called while a kernel is compiled.

It must give equal results for equal arguments, and change only objects that it creates itself.

It searches the syntax, including callees, as far as names lead to functions with a source. Calls that it cannot follow
count as harmless: the result is computed again at each launch.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterator, Mapping
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from tinote.compiler.function_source import FunctionSource, source_of
from tinote.compiler.protocol import space_of
from tinote.compiler.pysource.definitions import span_of
from tinote.compiler.pysource.effects import CHANGING, Effect, effect_of
from tinote.compiler.pysource.names import MISSING, attribute_of, find_name
from tinote.errors import Note


class Variation(NamedTuple):
    """Why a function's value is not fixed by its arguments, and what to do instead."""

    text: str
    hint: str


_TELLS = Variation("may give another value at each call", "call it before the launch and pass its value as an argument")
_VARIATIONS = {
    Effect.DRAWS: Variation(
        "gives another value at each call",
        "`ti.random()` draws in a kernel; what Python draws is passed as an argument",
    ),
    **dict.fromkeys((Effect.ADVANCES, Effect.CLOCK, Effect.PROCESS), _TELLS),
    Effect.OUTSIDE: Variation("reads or writes outside of the program", "do that before or after the launch"),
    Effect.CHANGES: Variation("changes an object", "kernels can only modify fields"),
}


def variation_of(callee: Any) -> Variation | None:
    """Why a function's value is not fixed by its arguments, or `None`."""
    return _VARIATIONS.get(effect_of(callee))


def mutates(callee: Any) -> bool:
    """Whether an object is a mutating method of a Python or NumPy container."""
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, ModuleType | type):
        return False
    return isinstance(callee, type([].append)) and getattr(callee, "__name__", "") in CHANGING


#: Attributes of a field that do not read its elements.
_SHAPES = frozenset(["shape", "dtype", "n", "m"])


def find_side_effect(source: FunctionSource, known: Mapping[str, Any]) -> Note | None:
    """The reason why a function must not be called while a kernel is compiled; `known`: values of its parameters."""
    return next(_side_effects(source, known, set()), None)


def _side_effects(source: FunctionSource, known: Mapping[str, Any], seen: set[int]) -> Iterator[Note]:
    """`seen`: the trees that were searched."""
    if id(source.tree) in seen:
        return
    seen.add(id(source.tree))
    names = _Names(source, known)
    for node in _in_order(source.tree.body, names):
        text = ""
        match node:
            case ast.Global() | ast.Nonlocal():
                text = f"changes `{', '.join(node.names)}`, which other functions see"
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                if not names.is_own(node):
                    text = f"changes `{ast.unparse(node)}`, which it has not made itself"
            case ast.Call():
                callee = names.find(node.func)
                text = _why_not_called(names, node.func, callee)
                found, first = (None, {}) if text or callee is None else _followed(callee)
                if found is not None:
                    yield from _side_effects(found, first, seen)
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                if space_of(names.find(node)) is not None:
                    text = f"uses the field `{ast.unparse(node)}`, whose elements exist at run time only"
        if text:
            span = span_of(node, source.file)
            yield Note(f"`{source.name}` is not called at compile time, because it {text}", span)


def _why_not_called(names: _Names, written: ast.expr, callee: Any) -> str:
    """Why a callee may not be called, if its name alone shows it; else ""."""
    variation = None if callee is None else variation_of(callee)
    if variation is not None:
        return f"calls `{ast.unparse(written)}`, which {variation.text}"
    if hasattr(callee, "__tinote_kernel__"):
        return f"launches the kernel `{ast.unparse(written)}`"
    if isinstance(written, ast.Attribute) and written.attr in CHANGING and not names.is_own(written.value):
        return f"changes `{ast.unparse(written.value)}`, which it has not made itself"
    return ""


def _followed(callee: Any) -> tuple[FunctionSource | None, dict[str, Any]]:
    """The source of a call's target, if there is one, and the value of its first parameter, if known."""
    while isinstance(callee, functools.partial) or hasattr(callee, "cache_parameters"):
        callee = callee.func if isinstance(callee, functools.partial) else callee.__wrapped__
    found = source_of(callee)
    first = found.parameters[:1] if found is not None and isinstance(callee, MethodType) else []
    return found, {q.arg: callee.__self__ for q in first}


class _Names:
    """The values of the names of one function, and the names that hold objects created by it."""

    def __init__(self, source: FunctionSource, known: Mapping[str, Any]) -> None:
        self.source = source
        self.known = known
        self._assigned: dict[str, list[ast.expr | None]] = {q.arg: [None] for q in source.parameters}
        for extra in (source.tree.args.vararg, source.tree.args.kwarg):
            if extra is not None:
                self._assigned[extra.arg] = [ast.List([], ast.Load())]  # made for this call
        for node in ast.walk(ast.Module(source.tree.body, [])):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._assign(target, value)
                case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                    self._assign(target, value)
                case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                    self._assign(target, value, item=True)
                case ast.withitem(context_expr=value, optional_vars=target) if target is not None:
                    self._assign(target, value)

    def _assign(self, target: ast.expr, value: ast.expr | None, item: bool = False) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                # An item of an iterable is own if all names in the iterable are.
                own = ast.Tuple([n for n in ast.walk(value) if isinstance(n, ast.Name)]) if item and value else value
                self._assigned.setdefault(node.id, []).append(own)

    def find(self, node: ast.expr) -> Any:
        """The value of a dotted name, or `None`; no user code runs."""
        if isinstance(node, ast.Name):
            if node.id in self._assigned:
                return self.known.get(node.id) if self._assigned[node.id] == [None] else None
            found = find_name(node.id, self.source.closure, self.source.globals)
            return None if found is None or found.value is MISSING else found.value
        if isinstance(node, ast.Attribute):
            owner = self.find(node.value)
            try:
                found = MISSING if owner is None else attribute_of(owner, node.attr)
            except Exception:  # for any answer of the object
                return None
            return None if found is MISSING else found
        return None

    def is_own(self, node: ast.expr, above: frozenset[str] = frozenset()) -> bool:
        """Whether the value of an expression was created by the function and is not shared with other code."""
        match node:
            case ast.Name(id=name):
                if name not in self._assigned:
                    return hasattr(builtins, name) and name not in self.source.globals
                if name in above:
                    return True
                values = self._assigned[name]
                return all(v is not None and self.is_own(v, above | {name}) for v in values)
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                return self.is_own(value, above)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return all(self.is_own(item, above) for item in items)
            case ast.IfExp(body=first, orelse=second):
                return self.is_own(first, above) and self.is_own(second, above)
        return True


def _in_order(body: list[ast.stmt], names: _Names) -> Iterator[ast.AST]:
    """Every node, outer before inner; uses of a field's shape alone are left out."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and node.attr in _SHAPES and space_of(names.find(node.value)) is not None:
            continue
        yield node
        stack += reversed(list(ast.iter_child_nodes(node)))
