"""The source of functions that kernels are made of or call: kernels, device functions, plain functions and methods."""

from __future__ import annotations

import ast
import functools
import inspect
import types
import weakref
from collections.abc import Mapping
from typing import Any

from tinote.compiler.protocol import is_ours, meant
from tinote.compiler.pysource.codes import cells_of, contents_of, place_of
from tinote.compiler.pysource.definitions import definition_of
from tinote.errors import KernelSyntaxError
from tinote.source import Span


class FunctionSource:
    """The source of a kernel, a device function (both memorised at decoration) or a plain function that kernels call.

    `tree` has the line numbers and columns of the user's file or cell. `closure` maps free names to their cells, which
    may be filled or changed later; `defaults` and `annotations` map parameters (and "return") to what Python evaluated
    for them.
    """

    def __init__(
        self,
        name: str,
        tree: ast.FunctionDef,
        file: str,
        globals: dict[str, Any],
        closure: Mapping[str, types.CellType],
        text: str,
        is_func: bool,
        defaults: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        is_plain: bool = False,
    ) -> None:
        self.name = name
        self.tree = tree
        self.file = file
        self.globals = globals
        self.closure = dict(closure)
        self.text = text
        self.is_func = is_func
        #: whether nobody has decorated it: annotations say nothing, as in Python, `template()` apart
        self.is_plain = is_plain
        #: whether it is a `real_func`: one that calls itself is not inlined
        self.may_recurse = False
        self.defaults = dict(defaults or {})
        self.annotations = {name: meant(hint) for name, hint in (annotations or {}).items()}

    @property
    def parameters(self) -> list[ast.arg]:
        """Every parameter that takes one argument, in order."""
        arguments = self.tree.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    @functools.cached_property
    def is_generator(self) -> bool:
        """Whether it gives its items by `yield`."""
        stack: list[ast.AST] = list(self.tree.body)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Yield | ast.YieldFrom):
                return True
            if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                stack += ast.iter_child_nodes(node)
        return False

    def enclosed(self) -> dict[str, Any]:
        """The names of the functions around it that have a value now."""
        return contents_of(self.closure)

    @property
    def span(self) -> Span:
        """The `def` line."""
        tree = self.tree
        return Span(self.file, tree.lineno, tree.col_offset, tree.lineno, 0)

    def __repr__(self) -> str:
        return f"<source of {self.name}, {self.file}:{self.tree.lineno}>"


def function_source(function: types.FunctionType, is_func: bool = False) -> FunctionSource:
    """The source of a Python function, from the file or cell it was compiled from. Raises `KernelSyntaxError` when
    there is no source or it is not a `def` (nor, of a device function, a `lambda`).
    """
    code, name = function.__code__, function.__name__
    text, statement = definition_of(code, function.__globals__, name, of_lambdas=is_func)
    if not isinstance(statement, ast.FunctionDef):
        raise KernelSyntaxError(
            "a kernel or device function is made from a `def`",
            place_of(code),
            "lambdas and async functions cannot be compiled",
        )
    return _source(function, statement, text, is_func)


def plain_source(function: types.FunctionType) -> FunctionSource:
    """The source of a function without a decorator, or of a `lambda`; the same object as long as it is in use.
    Raises `KernelSyntaxError` when there is none, or the function is a generator or async.
    """
    made_of = (function.__code__, function.__defaults__, function.__kwdefaults__)
    known = _plain_sources.get(function)
    found = None if known is None else known[1]()
    if known is not None and found is not None and all(a is b for a, b in zip(known[0], made_of, strict=True)):
        return found
    code, name = function.__code__, function.__name__
    if code.co_flags & _COROUTINE:
        raise KernelSyntaxError(f"`{name}` is an async function", place_of(code), "kernels wait for nothing")
    if code.co_flags & inspect.CO_GENERATOR:
        raise KernelSyntaxError(
            f"`{name}` is a generator: it gives its items by `yield`",
            place_of(code),
            "decorate it with `@ti.func` and loop over it, or return a list",
        )
    text, statement = definition_of(code, function.__globals__, name)
    if not isinstance(statement, ast.FunctionDef):
        raise KernelSyntaxError(f"the source of `{name}` is not found where Python read it", place_of(code))
    made = _source(function, statement, text, True, is_plain=True)
    _plain_sources[function] = made_of, weakref.ref(made)
    return made


#: Sources of plain functions that are in use, with what they were made of.
_plain_sources: weakref.WeakKeyDictionary[
    types.FunctionType, tuple[tuple[Any, ...], weakref.ReferenceType[FunctionSource]]
] = weakref.WeakKeyDictionary()
_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _source(
    function: types.FunctionType, statement: ast.FunctionDef, text: str, is_func: bool, is_plain: bool = False
) -> FunctionSource:
    names = [p.arg for p in (*statement.args.posonlyargs, *statement.args.args)]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})
    return FunctionSource(
        function.__name__,
        statement,
        function.__code__.co_filename,
        function.__globals__,
        cells_of(function),
        text,
        is_func,
        defaults,
        function.__annotations__,
        is_plain,
    )


def function_of(candidate: Any) -> FunctionSource | None:
    """The source of a device function, or `None`."""
    found = getattr(candidate, "__tinote_function__", None)
    return found if isinstance(found, FunctionSource) else None


def source_of(candidate: Any) -> FunctionSource | None:
    """The source of what kernels inline: a device function, a plain function or a method. `None` for anything else, and
    for functions without a source.
    """
    if isinstance(candidate, types.MethodType | staticmethod):
        candidate = candidate.__func__
    if not isinstance(candidate, types.FunctionType) or is_ours(candidate):
        return function_of(candidate)
    try:
        return plain_source(candidate)
    except KernelSyntaxError:
        return None
