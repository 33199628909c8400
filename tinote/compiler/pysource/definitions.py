"""Definitions as text: which one a function has, where it ends, and whether it is still the one that Python runs.

Method: a definition ends before a line that stands as far left as its first one, provided that what is above that
line parses, so that the line is inside no bracket, string or continued line. Python's tokenizer finds the same end, but
compiles a regular expression first, which takes longer than most kernels take to be parsed.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import os
import sys
import time
import tokenize
import types
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tinote.compiler.pysource.codes import codes_in, meaning_of, place_of
from tinote.compiler.pysource.private_names import spell_out
from tinote.compiler.single_flight import SingleFlight
from tinote.errors import KernelSyntaxError
from tinote.source import Span

#: Lines that may turn out to stand inside a string or a bracket, before the tokenizer is asked instead. Chosen, not
#: measured.
_MAX_TRIES = 16


_one_at_a_time = SingleFlight()


def syntax_tree(text: str, file: str = "<unknown>", mode: str = "exec") -> Any:
    """What `ast.parse` gives, in one thread after the other: before Python 3.11.8 and 3.12.2, several at a time may
    raise a `SystemError`.
    """
    with _one_at_a_time(None):
        return ast.parse(text, file, mode)


def definition_of(
    code: types.CodeType, namespace: dict[str, Any], name: str, *, of_lambdas: bool = True
) -> tuple[str, ast.stmt]:
    """The text and the tree of the function that Python compiled to `code`, from the file or cell that it is in, with
    private names as Python reads them. A `lambda` is given as a function that returns its expression, unless
    `of_lambdas` is false; then the statement that it is part of. Raises `KernelSyntaxError` for the function of that
    `name` when there is no source, or another definition stands there now.
    """
    file, first, place = code.co_filename, code.co_firstlineno, place_of(code)
    linecache.checkcache(file)
    lines = linecache.getlines(file, namespace)
    if first > len(lines):
        raise KernelSyntaxError(
            f"the source of `{name}` is not available", place, "define it in a file or a notebook cell"
        )
    try:
        is_lambda = of_lambdas and code.co_name == "<lambda>"
        text, tree = read_lambda(lines, code) if is_lambda else read_definition(lines, first, file)
    except SyntaxError as error:
        raise KernelSyntaxError(f"the source of `{name}` cannot be parsed: {error.msg}", place) from None
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        if not is_text_of(code, lines, file, namespace.get("__loader__")):
            raise KernelSyntaxError(
                f"the file has changed since Python read `{name}`: there is another definition here now",
                place,
                "import the module again, or restart Python",
            )
        if "__" in text:
            spell_out(tree, code.co_qualname)
    return text, tree


def span_of(node: Any, file: str) -> Span:
    """Where an expression or a statement of a file stands."""
    return Span(file, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def read_definition(lines: Sequence[str], first: int, file: str) -> tuple[str, ast.stmt]:
    """The text and the tree of the statement that begins in line `first` (from 1) of a file, decorators included. The
    tree's lines and columns are the file's. Raises `SyntaxError` if nothing that begins there can be parsed.
    """
    for end in islice(_ends(lines, first), _MAX_TRIES):
        text = "".join(lines[first - 1 : end])
        try:
            statements = _parsed(text, first, file)
        except SyntaxError:
            continue
        if statements and statements[-1].lineno == statements[0].lineno:
            return text, statements[0]
    try:
        text = "".join(inspect.getblock(list(lines[first - 1 :])))
    except tokenize.TokenError as error:
        raise SyntaxError(error.args[0]) from None
    statements = _parsed(text, first, file)
    if not statements:
        raise SyntaxError("no statement begins there")
    return text, statements[0]


def read_lambda(lines: Sequence[str], code: types.CodeType) -> tuple[str, ast.FunctionDef]:
    """The lines of the `lambda` that Python compiled to `code`, and its tree, as that of a function which returns the
    expression. Several in one line are distinguished by where the instructions stand. Raises `SyntaxError` if it is not
    found.
    """
    found = [node for node in _lambdas("".join(lines), code.co_filename) if _holds(node, code)]
    if not found:
        raise SyntaxError("there is no such lambda")
    node = max(found, key=lambda node: (node.lineno, node.col_offset))  # the innermost
    result = ast.copy_location(ast.Return(node.body), node.body)
    tree = ast.copy_location(ast.FunctionDef(code.co_name, node.args, [result], [], None), node)
    return "".join(lines[node.lineno - 1 : node.end_lineno]), tree


@functools.lru_cache(maxsize=8)
def _lambdas(text: str, file: str) -> tuple[ast.Lambda, ...]:
    return tuple([node for node in ast.walk(syntax_tree(text, file)) if isinstance(node, ast.Lambda)])


def _holds(node: ast.Lambda, code: types.CodeType) -> bool:
    """Whether all of a code's instructions stand in the body of a lambda. Those that stand for the function as a whole
    have no extent.
    """
    body = node.body
    begin, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    places = [((a, c), (b, d)) for a, b, c, d in code.co_positions() if None not in (a, b, c, d)]
    return node.lineno == code.co_firstlineno and all(
        begin <= first and last <= end
        for first, last in places
        if first != last  # type: ignore[operator]
    )


def _ends(lines: Sequence[str], first: int) -> Iterator[int]:
    """The numbers of the lines after which the definition may be over, the blank ones and comments after it left
    out.
    """
    edge = _indentation(lines[first - 1])
    last = first
    for number in range(first + 1, len(lines) + 1):
        line = lines[number - 1]
        content = line.lstrip()
        if not content or content.startswith("#"):
            continue
        if _indentation(line) <= edge:
            yield last
        last = number
    yield last


def _indentation(line: str) -> int:
    expanded = line.expandtabs()
    return len(expanded) - len(expanded.lstrip())


def _parsed(text: str, first: int, file: str) -> list[ast.stmt]:
    # An indented definition is parsed under a line of its own, so that columns stay true and multi-line strings keep
    # their content; empty lines above make the lines true.
    if text[:1] in (" ", "\t"):
        outer, *others = syntax_tree("\n" * (first - 2) + "if True:\n" + text, file).body
        assert isinstance(outer, ast.If)
        return [*outer.body, *others]
    return syntax_tree("\n" * (first - 1) + text, file).body


# ---- a file that has changed


def is_text_of(code: types.CodeType, lines: Sequence[str], file: str, loader: Any) -> bool:
    """Whether the file's lines, as they are now, still hold what `code` was compiled from where it says it stood.
    `loader`: what loaded the module. Files that have not changed since the process began are not compared.
    """
    if not _may_have_changed(file):
        return True
    # The whole of it: what stands around a function, and even what the module imports, takes part in its code.
    meaning = meaning_of(code)
    for compiled in (_compiled, _compiled_cells, functools.partial(_compiled_by, loader)):
        whole = compiled("".join(lines), file, code.co_flags & _FUTURE)
        for one in () if whole is None else codes_in(whole):
            is_there = one.co_qualname == code.co_qualname and one.co_firstlineno == code.co_firstlineno
            if is_there and meaning_of(one) == meaning:
                return True
    return False


@functools.lru_cache(maxsize=8)
def _compiled(text: str, file: str, flags: int) -> types.CodeType | None:
    try:
        return compile(text, file, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=8)
def _compiled_cells(text: str, file: str, flags: int) -> types.CodeType | None:
    """What the functions at the top of a file hold, each as a module of its own: so marimo runs a notebook's cells."""
    try:
        functions = [one for one in syntax_tree(text, file).body if isinstance(one, ast.FunctionDef)]
        body = [one for function in functions for one in function.body if not isinstance(one, ast.Return)]
        return compile(ast.Module(body, []), file, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=8)
def _compiled_by(loader: Any, text: str, file: str, flags: int) -> types.CodeType | None:
    """What the module's loader compiles of the file: import hooks, such as those that check types, change the tree."""
    # pytest's hook, which rewrites `assert`, does so in a function of its module.
    rewrite = getattr(sys.modules.get(type(loader).__module__), "rewrite_asserts", None)
    try:
        if rewrite is None:
            return loader.source_to_code(Path(file).read_bytes(), file)
        tree = syntax_tree(text, file)
        rewrite(tree, text.encode(), file, loader.config)
        return compile(tree, file, "exec", flags, dont_inherit=True)
    except Exception:  # the hook is somebody else's, and there may be none
        return None


_LOADED = time.time()
#: The flags of all that `__future__` has.
_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag


@functools.cache
def _process_start() -> float:
    """When this process began, in seconds since the epoch; where that is unknown, when this module was loaded."""
    try:
        with open("/proc/self/stat", "rb") as status:
            ticks = int(status.read().rpartition(b")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _LOADED


def _may_have_changed(file: str) -> bool:
    """Whether a file was written, or put in the place of another, since the process began. Cells are not files."""
    try:
        status = os.stat(file)
    except OSError:
        return False
    return max(status.st_mtime, status.st_ctime) >= _process_start()
