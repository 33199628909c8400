"""Whether a Python function may be called while a kernel is compiled: it must give the same for the same arguments, and
change nothing but what it makes itself.

A search of the syntax, of what it calls as well, as far as names lead to functions with a source. What it cannot
follow counts as harmless: the answer is asked for again at each launch.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from tinote.compiler.protocol import FunctionSource, function_of, is_ours, plain_source, space_of
from tinote.errors import KernelSyntaxError, Note
from tinote.source import Span


class Variation(NamedTuple):
    """Why a function's value is not fixed by its arguments, and what to do instead."""

    text: str
    hint: str


_DRAWS = Variation(
    "gives another value at each call", "`ti.random()` draws in a kernel; what Python draws is passed as an argument"
)
_TELLS = Variation("may give another value at each call", "call it before the launch and pass its value as an argument")
_OUTSIDE = Variation("reads or writes outside of the program", "do that before or after the launch")

_VARYING: dict[str, Variation] = {
    **dict.fromkeys(("random", "secrets", "uuid", "numpy.random"), _DRAWS),
    **dict.fromkeys(("time", "threading", "os", "posix", "nt", "sys", "gc"), _TELLS),
    **dict.fromkeys(("io", "_io", "pathlib", "genericpath", "socket", "select", "subprocess", "tempfile"), _OUTSIDE),
    **dict.fromkeys(("shutil", "glob", "urllib", "http", "requests", "logging"), _OUTSIDE),
}
#: Of modules and classes whose other functions are fixed by their arguments.
_VARYING_NAMES: dict[tuple[str, str], Variation] = {
    **{("datetime", name): _TELLS for name in ("now", "today", "utcnow")},
    **{("numpy", name): _OUTSIDE for name in ("load", "save", "loadtxt", "savetxt", "genfromtxt", "fromfile")},
    **{("builtins", name): _OUTSIDE for name in ("input", "open", "print", "breakpoint")},
    **{("builtins", name): _TELLS for name in ("next", "globals", "locals", "vars", "exec", "eval", "__import__")},
    **{("builtins", name): Variation("changes an object", "what a kernel changes lives in fields") for name in
       ("setattr", "delattr")},
}  # fmt: skip


def variation_of(callee: Any) -> Variation | None:
    """Why a function's value is not fixed by its arguments, or `None`: by the module it comes from."""
    owner = getattr(callee, "__self__", None)
    module = getattr(callee, "__module__", None)
    if not isinstance(module, str):
        module = owner.__name__ if isinstance(owner, ModuleType) else None
        module = getattr(owner if isinstance(owner, type) else type(owner), "__module__", None) or module
    if not isinstance(module, str):
        return None
    parts = module.split(".")
    name = getattr(callee, "__name__", "")
    named = _VARYING_NAMES.get((parts[0], name))
    return named or _VARYING.get(parts[0]) or _VARYING.get(".".join(parts[:2]))


_CHANGES: dict[type, frozenset[str]] = {
    list: frozenset(["append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "__setitem__"]),
    dict: frozenset(["update", "setdefault", "pop", "popitem", "clear", "__setitem__"]),
    set: frozenset(["add", "update", "discard", "remove", "pop", "clear", "intersection_update"]),
}
_OF_ARRAYS = frozenset(["fill", "sort", "partition", "put", "resize", "itemset", "setflags", "setfield"])
_CHANGING = frozenset[str]().union(*_CHANGES.values(), _OF_ARRAYS, ["appendleft", "popleft", "write", "writelines"])


def mutates(callee: Any) -> bool:
    """Whether something is a method of one of Python's or NumPy's containers that changes it."""
    owner = getattr(callee, "__self__", None)
    if owner is None or isinstance(owner, ModuleType | type):
        return False
    return isinstance(callee, type([].append)) and getattr(callee, "__name__", "") in _CHANGING


#: What a field tells without being read.
_SHAPES = frozenset(["shape", "dtype", "n", "m"])


def find_side_effect(source: FunctionSource, known: Mapping[str, Any]) -> Note | None:
    """What stands against calling a function while a kernel is compiled; `known`: values of its parameters."""
    return _Search().function(source, known)


class _Search:
    def __init__(self) -> None:
        self._seen: set[int] = set()

    def function(self, source: FunctionSource, known: Mapping[str, Any]) -> Note | None:
        return next(self._effects(source, known), None)

    def _effects(self, source: FunctionSource, known: Mapping[str, Any]) -> Iterator[Note]:
        if id(source.tree) in self._seen:
            return
        self._seen.add(id(source.tree))
        names = _Names(source, known)

        def note(text: str, node: ast.AST) -> Note:
            at: Any = node
            span = Span(source.file, at.lineno, at.col_offset, at.end_lineno or 0, at.end_col_offset or 0)
            return Note(f"`{source.name}` is not called at compile time, because it {text}", span)

        for node in _in_order(source.tree.body, names):
            match node:
                case ast.Global() | ast.Nonlocal():
                    yield note(f"changes `{', '.join(node.names)}`, which other functions see", node)
                case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    if not names.is_own(node):
                        yield note(f"changes `{ast.unparse(node)}`, which it has not made itself", node)
                case ast.Call():
                    callee = names.find(node.func)
                    yield from self._of_call(note, names, node, callee)
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                    if space_of(names.find(node)) is not None:
                        yield note(f"uses the field `{ast.unparse(node)}`, whose elements exist at run time only", node)

    def _of_call(self, note: Any, names: _Names, node: ast.Call, callee: Any) -> Iterator[Note]:
        called = ast.unparse(node.func)
        variation = None if callee is None else variation_of(callee)
        if variation is not None:
            yield note(f"calls `{called}`, which {variation.text}", node)
        elif hasattr(callee, "__tinote_kernel__"):
            yield note(f"launches the kernel `{called}`", node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING and not names.is_own(node.func.value):
            yield note(f"changes `{ast.unparse(node.func.value)}`, which it has not made itself", node)
        elif callee is not None:
            while isinstance(callee, functools.partial) or hasattr(callee, "cache_parameters"):
                callee = callee.func if isinstance(callee, functools.partial) else callee.__wrapped__
            owner = getattr(callee, "__self__", None)
            plain = callee.__func__ if isinstance(callee, MethodType) else callee
            found = function_of(callee)
            if isinstance(plain, FunctionType) and not is_ours(plain):
                try:
                    found = plain_source(plain)
                except KernelSyntaxError:
                    found = None
            if found is not None:
                first = found.parameters[:1] if isinstance(callee, MethodType) else []
                yield from self._effects(found, {q.arg: owner for q in first})


class _Names:
    """What the names of one function stand for, and which of them hold what it has made itself."""

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
                # An item of what is walked over is own where all that is named there is.
                own = ast.Tuple([n for n in ast.walk(value) if isinstance(n, ast.Name)]) if item and value else value
                self._assigned.setdefault(node.id, []).append(own)

    def find(self, node: ast.expr) -> Any:
        """What a dotted name stands for, or `None`; nothing of the user's runs."""
        if isinstance(node, ast.Name):
            if node.id in self._assigned:
                return self.known.get(node.id) if self._assigned[node.id] == [None] else None
            cell = self.source.closure.get(node.id)
            if cell is not None:
                try:
                    return cell.cell_contents
                except ValueError:
                    return None
            return self.source.globals.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            owner = self.find(node.value)
            if owner is None:
                return None
            if isinstance(inspect.getattr_static(owner, node.attr, None), property):
                return None
            try:
                return getattr(owner, node.attr, None)
            except Exception:
                return None
        return None

    def is_own(self, node: ast.expr, above: frozenset[str] = frozenset()) -> bool:
        """Whether an expression gives something that the function has made, and not what others know, too."""
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
    """Every node, outer before inner; of a field only what is more than its shape."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Attribute) and node.attr in _SHAPES and space_of(names.find(node.value)) is not None:
            continue
        yield node
        stack += reversed(list(ast.iter_child_nodes(node)))
