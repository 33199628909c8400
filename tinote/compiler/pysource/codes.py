"""Queries about code objects: nested code, names that they look up, imports, the place of definition, and the cells of
their functions.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import importlib.util
import types
from collections.abc import Iterator
from typing import Any

from tinote.source import Span

#: The operations that look up or assign a variable outside of all functions.
_OF_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """Code, and that of all functions, classes and comprehensions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def meaning_of(code: types.CodeType) -> Any:
    """What code does, wherever it stands, as plain data that is the same in every process."""
    shape = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    constants = [_meaning_of_constant(one) for one in code.co_consts]
    return code.co_code.hex(), code.co_exceptiontable.hex(), shape, names, constants


def _meaning_of_constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return meaning_of(value)
    if isinstance(value, frozenset):  # text is in sets in another order in another process
        return "set", sorted(map(repr, map(_meaning_of_constant, value)))
    return [_meaning_of_constant(one) for one in value] if isinstance(value, tuple) else repr(value)


def place_of(code: types.CodeType) -> Span:
    """Where a function is defined."""
    return Span(code.co_filename, code.co_firstlineno)


def cells_of(function: types.FunctionType) -> dict[str, types.CellType]:
    """The variables of outer functions that a function refers to, by name."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def is_filled(cell: types.CellType) -> bool:
    """Whether a variable of an outer function has a value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def contents_of(cells: dict[str, types.CellType]) -> dict[str, Any]:
    """What the variables of outer functions hold, as far as they have a value now."""
    return {name: cell.cell_contents for name, cell in cells.items() if is_filled(cell)}


def captured_by(function: types.FunctionType) -> dict[str, Any]:
    """What a function's code finds outside of it now, by name: globals that it names, variables of outer functions."""
    namespace = function.__globals__
    found = {name: namespace[name] for name in global_names(function.__code__) if name in namespace}
    return found | contents_of(cells_of(function))


def global_operations(code: types.CodeType) -> Iterator[dis.Instruction]:
    """The instructions in code, and in what is defined in it, that look up or assign names outside of all functions."""
    for one in codes_in(code):
        yield from (operation for operation in dis.get_instructions(one) if operation.opname in _OF_GLOBALS)


@functools.lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> tuple[str, ...]:
    """The names that code, and what is defined in it, looks up or assigns outside of all functions."""
    return tuple(dict.fromkeys(operation.argval for operation in global_operations(code)))


@functools.lru_cache(maxsize=1024)
def named_by(code: types.CodeType) -> frozenset[str]:
    """Every name in code, and in what is defined in it: variables, attributes, imports, and text that may be one."""
    found = [(one.co_names, filter(str.isidentifier, texts_in(one))) for one in codes_in(code)]
    return frozenset(name for names, texts in found for name in (*names, *texts))


def texts_in(code: types.CodeType) -> list[str]:
    """The texts among the constants of code itself."""
    return [constant for constant in code.co_consts if isinstance(constant, str)]


def imports_of(function: types.FunctionType) -> Iterator[str]:
    """The modules that a function's code imports, and what may be modules in them."""
    package = str(function.__globals__.get("__package__") or "")
    for code in codes_in(function.__code__):
        operations = list(dis.get_instructions(code))
        for n, operation in enumerate(operations):
            if operation.opname != "IMPORT_NAME":
                continue
            level, names = operations[n - 2].argval, operations[n - 1].argval
            with contextlib.suppress(ImportError):  # beyond the top
                module = importlib.util.resolve_name("." * level + operation.argval, package)
                yield module
                yield from (f"{module}.{name}" for name in names or ())
