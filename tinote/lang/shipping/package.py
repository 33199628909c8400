"""A function with all that it names, as bytes: for processes that run it many times, each time from the same state.

packed = pack(simulate)                in one process
program = unpack(packed.data)          in another
program.restore(); program.function(0.5)
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import types
from collections import ChainMap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import Note, SerializationError, TinoteError
from tinote.lang.session.state import session
from tinote.lang.shipping.arrivals import arrivals
from tinote.lang.shipping.references import captured_by, global_names, is_filled, is_library, reached
from tinote.lang.shipping.sources import in_file, source_texts
from tinote.lang.shipping.tokens import is_open_file, token
from tinote.runtime.memory import MemoryCopies
from tinote.source import Span, caller


class Packed(NamedTuple):
    """`data`: the bytes; `token`: a hash of what was sent, the same in every process; `parts`: hashes of the function,
    and of each of the fields by name.
    """

    data: bytes
    token: str
    parts: dict[str, str]


class Sent:
    """A function, and fields to which something else than what they hold now will be written where they arrive."""

    def __init__(self, function: Any, fields: Iterable[Any] = ()) -> None:
        self.function = function
        self.fields = list(fields)


class Program:
    """What `unpack` gives: the function, and what it and its fields held when they were sent."""

    def __init__(self, sent: Sent, fields: list[Any], config: Any) -> None:
        self.function = sent.function
        self.fields = sent.fields
        self.config = config
        self._contents = MemoryCopies(_blocks(fields))
        self._python = _PythonState(sent.function)

    def restore(self) -> None:
        """All fields that came along hold again what they held when they were sent, and so do the variables, lists,
        dictionaries, arrays and objects of Python's that the function reaches.
        """
        self._contents.put_back()
        self._python.put_back()


class _PythonState:
    """What Python's variables and objects hold that a function reaches."""

    def __init__(self, function: Any) -> None:
        self._names: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._classes: list[tuple[type, dict[str, Any]]] = []
        self._unassigned: list[tuple[dict[str, Any], str]] = []
        self._cells: list[tuple[types.CellType, Any]] = []
        self._lists: list[tuple[list[Any], list[Any]]] = []
        self._sets: list[tuple[set[Any], set[Any]]] = []
        self._arrays: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        for value in list(reached(function)):
            self._add(value)

    def _add(self, value: Any) -> None:
        match value:
            case types.FunctionType() if not is_library(value.__module__):
                names = {name: item for name, item in captured_by(value).items() if name in value.__globals__}
                self._names += [(value.__globals__, names), (value.__dict__, dict(value.__dict__))]
                absent = [name for name in global_names(value.__code__) if name not in value.__globals__]
                self._unassigned += [(value.__globals__, name) for name in absent]
                self._cells += [
                    (cell, cell.cell_contents if is_filled(cell) else _UNASSIGNED) for cell in value.__closure__ or ()
                ]
            case dict():
                self._names.append((value, dict(value)))
            case list():
                self._lists.append((value, list(value)))
            case set():
                self._sets.append((value, set(value)))
            case np.ndarray() if value.flags.writeable and not value.dtype.hasobject:
                self._arrays.append((value, value.copy()))
            case type() if not is_library(value.__module__):
                self._classes.append((value, _attributes(value)))
            case type() | types.ModuleType() | types.FunctionType():
                pass
            case _ if not is_library(type(value).__module__) and hasattr(value, "__dict__"):
                self._names.append((value.__dict__, dict(value.__dict__)))

    def put_back(self) -> None:
        for held, before in self._names:
            if "__builtins__" not in held and held.keys() != before.keys():  # of a namespace only these names are known
                held.clear()
            held.update(before)
        for kind, attributes in self._classes:
            for name in _attributes(kind).keys() - attributes.keys():
                delattr(kind, name)
            for name, value in attributes.items():
                if vars(kind).get(name) is not value:
                    setattr(kind, name, value)
        for namespace, name in self._unassigned:
            namespace.pop(name, None)
        for cell, content in self._cells:
            if content is not _UNASSIGNED:
                cell.cell_contents = content
            elif is_filled(cell):
                del cell.cell_contents
        for held, before in self._lists:
            held[:] = before
        for held, before in self._sets:
            held.clear()
            held.update(before)
        for array, content in self._arrays:
            array[...] = content


#: What a variable holds to which nothing was assigned.
_UNASSIGNED = object()


def _attributes(kind: type) -> dict[str, Any]:
    """What a class has by names that are not Python's own, which keeps under these what it found out."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("__")}


def pack(function: Any, fields: Iterable[Any] = ()) -> Packed:
    """A function that may be called elsewhere, with kernels, fields and what they hold, and everything else that it
    names; what imported modules define goes as a reference, unless fields are among what it uses of a module.
    `fields`: those that callers will write to. Raises `SerializationError` with the name of what cannot go.
    """
    where = caller()
    cloudpickle = importlib.import_module("cloudpickle")
    functions = list(_functions(function))
    sent = Sent(function, fields)
    with _by_value(cloudpickle, _modules_with_fields(functions)):
        file = io.BytesIO()
        pickler = _pickler_class(cloudpickle)(file, protocol=5)
        try:
            pickler.dump((session.config, source_texts(functions), sent))
        except TinoteError as error:
            named = _name_of_refused(functions, cloudpickle)
            raise SerializationError(error.message, where, error.hint, [*error.notes, *named]) from None
        except (TypeError, pickle.PicklingError, AttributeError, ValueError, RecursionError) as error:
            named = _name_of_refused(functions, cloudpickle)
            raise SerializationError(
                f"this function cannot be sent to another process: {error}", where, notes=named
            ) from error
        held = {name: token(value) for name, value in _fields_of(functions).items()}
        parts = {"function": token(function), **held}
    return Packed(file.getvalue(), token(parts), parts)


def unpack(data: bytes) -> Program:
    """What `pack` has made, in another process. Only for data that comes from where one's own code comes from: it
    holds code.
    """
    with arrivals.collected() as fields:
        config, _, sent = pickle.loads(data)
    return Program(sent, fields, config)


def _blocks(fields: list[Any]) -> list[Any]:
    found: dict[int, Any] = {}
    waiting = list(fields)
    while waiting:
        field = waiting.pop()
        found[id(field.memory.whole)] = field.memory.whole
        waiting += [one for one in field._companions.values() if one.is_placed]
    return list(found.values())


def _pickler_class(cloudpickle: Any) -> Any:
    """cloudpickle's pickler, which refuses what would silently be something else there, and keeps the file of code."""
    reduced = cloudpickle.CloudPickler.dispatch_table[types.CodeType]

    def reduced_with_file(code: types.CodeType) -> Any:
        make, arguments = reduced(code)
        return _code_in_file, (make, arguments, code.co_filename)

    class Pickler(cloudpickle.CloudPickler):
        dispatch_table = ChainMap({types.CodeType: reduced_with_file}, cloudpickle.CloudPickler.dispatch_table)

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, np.ndarray):
                _refuse_views(value)
            if is_open_file(value):
                raise SerializationError(
                    f"an open file would be another one, of what {value.name!r} holds now, in another process",
                    caller(),
                    hint="open it in the function itself, or send what it holds",
                )
            return super().reducer_override(value)

    return Pickler


def _code_in_file(make: Any, arguments: tuple[Any, ...], file: str) -> types.CodeType:
    return in_file(make(*arguments), file)


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
    for value in reached(function):
        if isinstance(value, types.FunctionType) and not is_library(value.__module__):
            yield value


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
