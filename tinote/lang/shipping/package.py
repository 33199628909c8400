"""A function with all that it names, as bytes: for processes that run it many times, each time from the same state.

packed = pack(simulate)                in one process
program = unpack(packed.data)          in another
program.restore(); program.function(0.5)
"""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
import sysconfig
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import Note, SerializationError, TinoteError
from tinote.lang.session.state import session
from tinote.lang.shipping.arrivals import arrivals
from tinote.lang.shipping.references import captured_by
from tinote.lang.shipping.sources import source_texts
from tinote.lang.shipping.tokens import token
from tinote.runtime.memory import MemoryCopies
from tinote.source import Span, caller


class Packed(NamedTuple):
    """`data`: the bytes; `token`: a hash of what was sent, the same in every process; `parts`: hashes of the function,
    and of each of the fields by name.
    """

    data: bytes
    token: str
    parts: dict[str, str]


class Program:
    """What `unpack` gives: the function, and what its fields held when it was sent."""

    def __init__(self, function: Any, fields: list[Any], config: Any) -> None:
        self.function = function
        self.config = config
        self._contents = MemoryCopies(_blocks(fields))

    def restore(self) -> None:
        """All fields that came along hold again what they held when they were sent."""
        self._contents.put_back()


def pack(function: Any) -> Packed:
    """A function that may be called elsewhere, with kernels, fields and what they hold, and everything else that it
    names; what imported modules define goes as a reference, unless fields are among what it uses of a module. Raises
    `SerializationError` with the name of what cannot go.
    """
    where = caller()
    cloudpickle = importlib.import_module("cloudpickle")
    functions = list(_functions(function))
    with _by_value(cloudpickle, _modules_with_fields(functions)):
        file = io.BytesIO()
        pickler = _pickler_class(cloudpickle)(file, protocol=5)
        try:
            pickler.dump((session.config, source_texts(functions), function))
        except TinoteError as error:
            named = _name_of_refused(functions, cloudpickle)
            raise SerializationError(error.message, where, error.hint, [*error.notes, *named]) from None
        except (TypeError, pickle.PicklingError, AttributeError, ValueError, RecursionError) as error:
            named = _name_of_refused(functions, cloudpickle)
            raise SerializationError(
                f"this function cannot be sent to another process: {error}", where, notes=named
            ) from error
        fields = {name: token(value) for name, value in _fields_of(functions).items()}
        parts = {"function": token(function), **fields}
    return Packed(file.getvalue(), token(parts), parts)


def unpack(data: bytes) -> Program:
    """What `pack` has made, in another process. Only for data that comes from where one's own code comes from: it
    holds code.
    """
    with arrivals.collected() as fields:
        config, _, function = pickle.loads(data)
    return Program(function, fields, config)


def _blocks(fields: list[Any]) -> list[Any]:
    found: dict[int, Any] = {}
    waiting = list(fields)
    while waiting:
        field = waiting.pop()
        found[id(field.memory.whole)] = field.memory.whole
        waiting += [one for one in field._companions.values() if one.is_placed]
    return list(found.values())


def _pickler_class(cloudpickle: Any) -> Any:
    """cloudpickle's pickler, which refuses what would silently be something else where it arrives."""

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, np.ndarray):
                _refuse_views(value)
            return super().reducer_override(value)

    return Pickler


def _refuse_views(array: np.ndarray[Any, Any]) -> None:
    """An array that shares the memory of a field would be a copy there, which the field knows nothing of."""
    if not session.has_views:
        return
    bases = [array]
    while isinstance(bases[-1], np.ndarray) and bases[-1].base is not None:
        bases.append(bases[-1].base)
    for buffer, references in list(session.views.items()):
        if any(reference() is base for reference in references for base in bases):
            raise SerializationError(
                f"an array shares the memory of the field '{buffer.name}', which it cannot in another process",
                caller(),
                hint=f"take it in the function itself, `{buffer.name}.numpy_view()`, or send a copy of it",
            )


def _functions(function: Any) -> Iterator[types.FunctionType]:
    """The functions of the user's that a function reaches, kernels and device functions included."""
    waiting, seen = [function], set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case types.FunctionType():
                if not _is_library(value.__module__):
                    yield value
                    waiting += captured_by(value).values()
                else:  # a wrapper: what it is made of is the user's
                    waiting += [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
            case types.MethodType():
                waiting += [value.__func__, value.__self__]
            case list() | tuple() | set():
                waiting += value
            case dict():
                waiting += value.values()
            case type() if not _is_library(value.__module__):
                waiting += vars(value).values()
            case staticmethod() | classmethod():
                waiting.append(value.__func__)
            case property():
                waiting += [value.fget, value.fset]
            case _:
                wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
                if wrapped is not None:
                    waiting.append(wrapped)
                elif not isinstance(value, type | types.ModuleType) and not _is_library(type(value).__module__):
                    waiting += [type(value), *getattr(value, "__dict__", {}).values()]
                elif type(value).__module__.startswith(
                    ("functools", "tinote.lang.ad", "tinote.lang.kernels", "tinote.lang.capture")
                ):
                    waiting += getattr(value, "__dict__", {}).values()
                    waiting += [getattr(value, "func", None), getattr(value, "args", ())]


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_library(module: str | None) -> bool:
    """Whether a module is one that is installed, in place of the user's own."""
    if not module or module in ("__main__", "__mp_main__"):
        return False
    top = module.partition(".")[0]
    if top == "tinote" or top in sys.stdlib_module_names:
        return True
    found = getattr(sys.modules.get(module), "__file__", None)
    if found is None:
        return module in sys.modules
    return any(found.startswith(folder + os.sep) for folder in {*map(sysconfig.get_path, ("purelib", "platlib"))})


def _fields_of(functions: list[types.FunctionType]) -> dict[str, Any]:
    return {
        f"field {name}": value
        for function in functions
        for name, value in captured_by(function).items()
        if hasattr(type(value), "__tinote_buffer__") or hasattr(type(value), "_leaves")
    }


def _modules_with_fields(functions: list[types.FunctionType]) -> list[types.ModuleType]:
    """The imported modules of which functions use fields: what these hold is to go along."""
    found: dict[str, types.ModuleType] = {}
    holding = {id(f.__globals__) for f in functions if _fields_of([f])}
    for function in functions:
        module = sys.modules.get(function.__module__ or "")
        if module is not None and module.__name__ != "__main__" and id(function.__globals__) in holding:
            found[module.__name__] = module
    return list(found.values())


@contextmanager
def _by_value(cloudpickle: Any, modules: list[types.ModuleType]) -> Iterator[None]:
    known = cloudpickle.list_registry_pickle_by_value()
    added = [module for module in modules if module.__name__ not in known]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _name_of_refused(functions: list[types.FunctionType], cloudpickle: Any) -> list[Note]:
    """Which name of which function has what cannot be sent."""
    for function in functions:
        for name, value in captured_by(function).items():
            if (
                isinstance(value, types.FunctionType | types.ModuleType)
                or getattr(value, "__wrapped__", None) is not None
            ):
                continue
            try:
                _pickler_class(cloudpickle)(io.BytesIO(), protocol=5).dump(value)
            except Exception:
                code = function.__code__
                return [Note(f"`{name}` in `{function.__name__}`", Span(code.co_filename, code.co_firstlineno))]
    return []
