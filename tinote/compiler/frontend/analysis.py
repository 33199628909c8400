"""Syntactic analyses: the names that a piece of code assigns, and how control can leave it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from tinote.compiler.pysource.names import names_bound_by

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

#: A function that gives the arguments of a call that the callee may assign.
Written = Callable[[ast.Call], Iterable[ast.expr]]


def base_name(target: ast.expr) -> str | None:
    """The variable that an assignment to `target` changes: `v` for `v`, `v[i]`, `v.x` and `v[0].y`."""
    while isinstance(target, ast.Subscript | ast.Attribute | ast.Starred):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for item in target.elts:
            yield from _targets(item)
    elif isinstance(target, ast.Starred):
        yield target.value
    else:
        yield target


def assigning_nodes(body: Iterable[ast.AST]) -> list[ast.AST]:
    """The assignments, calls and definitions of functions in `body` and below."""
    found: list[ast.AST] = []
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, _ASSIGNING):
            found.append(node)
        for field in node._fields:
            if field in _NEVER_ASSIGN:
                continue
            value = getattr(node, field)
            if isinstance(value, list):
                stack += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                stack.append(value)
    return found


_ASSIGNING = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.Call, ast.Import, ast.ImportFrom),
    *(ast.FunctionDef, ast.Lambda),
)
#: Fields of nodes that hold no expressions and no statements.
_NEVER_ASSIGN = frozenset(["ctx", "op", "ops", "id", "attr", "n", "kind", "type_comment"])


def assigned_names(nodes: Iterable[ast.AST], written: Written) -> dict[str, int]:
    """The number of places among `nodes` (`assigning_nodes`) that assign each name. An augmented assignment, a
    component assignment or an argument that the callee may write counts twice: such a name needs a cell of its own.
    """
    counts: dict[str, int] = {}

    def count(target: ast.expr, weight: int) -> None:
        for single in _targets(target):
            name = base_name(single)
            if name is not None:
                plain = isinstance(single, ast.Name) and weight == 1
                counts[name] = counts.get(name, 0) + (1 if plain else 2)

    for node in nodes:
        match node:
            case ast.Assign(targets=targets):
                for target in targets:
                    count(target, 1)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                count(target, 1)
            case ast.AugAssign(target=target) | ast.NamedExpr(target=target):
                count(target, 2)
            case ast.Call():
                for argument in written(node):
                    count(argument, 2)
                if isinstance(node.func, ast.Attribute) and node.func.attr == "fill":
                    count(node.func.value, 2)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    count(ast.Name(alias.asname or alias.name.partition(".")[0]), 1)
    return counts


def local_names(tree: ast.FunctionDef) -> frozenset[str]:
    """The local names of a function: its parameters and the names that it assigns, without those of nested functions
    and comprehensions, and without those declared `nonlocal`.
    """
    arguments = tree.args
    extra = [q for q in (arguments.vararg, arguments.kwarg) if q is not None]
    found = {q.arg for q in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra)}
    others: set[str] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        found.update(names_bound_by(node))
        if isinstance(node, ast.Nonlocal):
            others.update(node.names)
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.comprehension):
            stack += ast.iter_child_nodes(node)
    return frozenset(found - others)


def inside_functions(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """The assignments and calls in functions that are defined among `nodes` (`assigning_nodes`)."""
    found: list[ast.AST] = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found += node.body
        elif isinstance(node, ast.Lambda):
            found.append(node.body)
    return assigning_nodes(found)


def names_passed(nodes: Iterable[ast.AST], written: Written) -> set[str]:
    """The names that calls among `nodes` may assign."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    names = [base_name(argument) for call in calls for argument in written(call)]
    return {name for name in names if name is not None}


def statements_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement of `body` and below, outer before inner."""
    stack = list(body)[::-1]
    while stack:
        statement = stack.pop()
        yield statement
        if not isinstance(statement, _SCOPES):
            for field in ("orelse", "body"):
                stack += reversed(getattr(statement, field, ()))


def loop_bodies(body: Iterable[ast.stmt], is_static: Callable[[ast.For], bool]) -> Iterator[list[ast.stmt]]:
    """The bodies of the `for`s that may be outermost: directly, under an `if`, or in an unrolled loop."""
    for statement in body:
        if isinstance(statement, ast.For):
            if is_static(statement):
                yield from loop_bodies(statement.body, is_static)
            else:
                yield statement.body
        elif isinstance(statement, ast.If):
            for branch in branches(statement):
                yield from loop_bodies(branch, is_static)


def elifs(node: ast.If) -> list[ast.If]:
    """An `if` and its `elif`s, in order."""
    found = [node]
    while len(found[-1].orelse) == 1 and isinstance(found[-1].orelse[0], ast.If):
        found.append(found[-1].orelse[0])
    return found


def branches(node: ast.If) -> list[list[ast.stmt]]:
    """The bodies of an `if`, of its `elif`s and of its `else`, which is empty where there is none."""
    chain = elifs(node)
    return [*[one.body for one in chain], chain[-1].orelse]


class Jumps:
    """How control can leave a statement before its end: `loop` by `break` or `continue` of the loop around it,
    `function` by `return`, or by `yield` if `yields_return`.
    """

    __slots__ = ("_yields_return", "breaks", "continues", "returns")

    def __init__(self, body: Iterable[ast.stmt], yields_return: bool = False) -> None:
        self._yields_return = yields_return
        self.breaks = self.continues = self.returns = False
        self._visit(body, inner=False)

    def _visit(self, body: Iterable[ast.stmt], inner: bool) -> None:
        for statement in body:
            match statement:
                case ast.Return():
                    self.returns = True
                case ast.Expr(value=ast.Yield() | ast.YieldFrom()):
                    self.returns |= self._yields_return
                case ast.Break():
                    self.breaks |= not inner
                case ast.Continue():
                    self.continues |= not inner
                case ast.If():
                    for branch in branches(statement):
                        self._visit(branch, inner)
                case ast.For() | ast.While():
                    self._visit(statement.body, True)
                    self._visit(statement.orelse, inner)

    def __bool__(self) -> bool:
        return self.breaks or self.continues or self.returns


def ends_in_jump(body: list[ast.stmt]) -> bool:
    """Whether control certainly does not reach the end of `body`."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return all(ends_in_jump(branch) for branch in branches(last))
    return isinstance(last, ast.Return | ast.Break | ast.Continue)
