"""A function with everything that it refers to, as bytes: for processes that run it many times, each time from the same
state.

packed = pack(simulate)                in one process
program = unpack(packed.data)          in another
program.restore(); program.function(0.5)
"""

from __future__ import annotations

import functools
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

from tinote.compiler.pysource.codes import captured_by, global_names, is_filled, place_of
from tinote.compiler.pysource.origins import is_library
from tinote.errors import Note, SerializationError, TinoteError
from tinote.lang.session.state import session
from tinote.lang.shipping.arrivals import arrivals
from tinote.lang.shipping.references import (
    MODULE_FACTS,
    PLAIN,
    Reach,
    SentModule,
    attributes_of,
    import_what_is_named,
    is_own_cache,
    is_own_function,
    is_wrapper,
    reached,
)
from tinote.lang.shipping.sources import in_file, source_texts
from tinote.lang.shipping.tokens import Tokenised, is_open_file, token
from tinote.runtime.memory import MemoryCopies
from tinote.source import caller


class Packed(NamedTuple):
    """`data`: the bytes; `token`: a hash of what was sent, the same in every process; `parts`: hashes of the function,
    of the options, and by name of each of the fields and of what is used of each module; `modules`: their names.
    """

    data: bytes
    token: str
    parts: dict[str, str]
    modules: frozenset[str]


class Sent:
    """A function, and fields to which something else than what they hold now will be written where they arrive."""

    def __init__(self, function: Any, fields: Iterable[Any] = ()) -> None:
        self.function = function
        self.fields = list(fields)


class UnpackedProgram:
    """What `unpack` gives: the function, and what it and its fields held when they were sent."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._imported = set[str]()
        self._arrive()

    def _arrive(self) -> None:
        with arrivals.collected() as fields:
            (config, _, sent), modules = _load(self._data)
        self.function = sent.function
        self.fields = sent.fields
        self.config = config
        self._modules = {module.__name__: module for module in modules}
        self._contents = MemoryCopies(_blocks(fields))
        with self.imported():  # as when it is looked at again
            self._python = _PythonState([sent.function, modules])

    @contextmanager
    def imported(self) -> Iterator[None]:
        """Imports within the block give the modules that came along, whatever this process has by these names."""
        before = {name: sys.modules[name] for name in self._modules if name in sys.modules}
        sys.modules.update(self._modules)
        outer, self._imported = self._imported, set(self._modules)
        try:
            yield
        finally:
            self._imported = outer
            for name in self._modules.keys() - before.keys():
                sys.modules.pop(name, None)
            sys.modules.update(before)

    def restore(self) -> None:
        """All fields that came along hold again what they held when they were sent, and so do the variables, lists,
        dictionaries, arrays and Python objects that the function reaches. Where something else has changed, everything
        arrives anew: `function` and `fields` are others then.
        """
        self._contents.put_back()
        self._python.put_back()
        if self._python.has_changed:
            self._arrive()
            sys.modules.update({name: one for name, one in self._modules.items() if name in self._imported})


class _PythonState:
    """What Python's variables and objects hold that a function reaches."""

    def __init__(self, function: Any) -> None:
        self._names: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._modules: list[tuple[SentModule, dict[str, Any]]] = []
        self._objects: list[tuple[Any, dict[str, Any]]] = []
        self._others: list[tuple[Any, str]] = []
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
            case SentModule():
                self._modules.append((value, dict(vars(value))))
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
                return
        kind = type(value)
        if isinstance(value, type | types.FunctionType):
            return
        if not is_library(kind.__module__):
            self._objects.append((value, attributes_of(value)))
        elif not (kind in _UNDERSTOOD or is_wrapper(kind) or isinstance(value, Tokenised)):
            self._others.append((value, _token_if_any(value)))

    @property
    def has_changed(self) -> bool:
        """Whether something has that `put_back` does not put back: objects of libraries, which only their hashes
        describe.
        """
        return any(_token_if_any(value) != before for value, before in self._others)

    def put_back(self) -> None:
        for module, before in self._modules:
            for name in vars(module).keys() - before.keys():
                del vars(module)[name]
            vars(module).update(before)
        for held, before in self._names:
            if "__builtins__" not in held and held.keys() != before.keys():  # of a namespace only these names are known
                held.clear()
            held.update(before)
        for holder, attributes in self._objects:
            now = attributes_of(holder)
            for name in now.keys() - attributes.keys():
                object.__delattr__(holder, name)
            for name, value in attributes.items():
                if name not in now or now[name] is not value:
                    object.__setattr__(holder, name, value)
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


#: What has nothing of its own that changes, or is put back by itself.
_UNDERSTOOD = PLAIN | {
    dict, frozenset, list, np.ndarray, set, tuple, types.GetSetDescriptorType, types.MemberDescriptorType,
}  # fmt: skip


def _token_if_any(value: Any) -> str:
    try:
        return token(value)
    except Exception:  # then it was not sent, and is as each process has it
        return ""


#: What a variable holds to which nothing was assigned.
_UNASSIGNED = object()


def _attributes(kind: type) -> dict[str, Any]:
    """What a class has by names that are not Python's own, which keeps under these what it found out."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("__")}


def pack(function: Any, fields: Iterable[Any] = (), arguments: Any = None) -> Packed:
    """A function that may be called elsewhere, with kernels, fields and what they hold, and everything else that it
    names, as it is now; what libraries define goes as a reference. `fields`: those that callers will write to;
    `arguments`: with which it will be called. Raises `SerializationError` with the name of what cannot go.
    """
    where = caller()
    import_what_is_named(function)
    reach = Reach((function, arguments))
    functions = [one for one in reach.values if is_own_function(one)]
    sent = Sent(function, fields)
    with _by_value(reach.modules):
        file = io.BytesIO()
        try:
            _dump(file, reach, (session.config, source_texts(functions), sent))
        except TinoteError as error:
            named = _name_of_refused(functions)
            raise SerializationError(error.message, where, error.hint, [*error.notes, *named]) from None
        except (TypeError, pickle.PicklingError, AttributeError, ValueError, RecursionError) as error:
            named = _name_of_refused(functions)
            raise SerializationError(
                f"this function cannot be sent to another process: {error}", where, notes=named
            ) from error
    held = {name: token(value) for name, value in _fields_of(functions).items()}
    used = {
        f"module {module.__name__}": token((function, contents))
        for module, contents in zip(reach.modules, map(reach.contents, reach.modules), strict=True)
        if module.__name__ != "__main__"
    }
    options = {name: value for name, value in session.config._asdict().items() if name not in _WITHOUT_EFFECT}
    parts = {"function": token(function), "set of options": token(options), **used, **held}
    return Packed(file.getvalue(), token(parts), parts, frozenset(module.__name__ for module in reach.modules))


#: Options that change no result, or that each run has for itself.
_WITHOUT_EFFECT = ("kernel_profiler", "memory_limit", "num_threads", "offline_cache", "print_ir", "random_seed")


def pack_arguments(value: Any, modules: frozenset[str]) -> bytes:
    """Arguments for a program that brings these modules; what they need of others of the user's goes along."""
    reach = Reach(value)
    reach.modules = [module for module in reach.modules if module.__name__ not in modules]
    file = io.BytesIO()
    with _by_value(reach.modules):
        _dump(file, reach, value)
    return file.getvalue()


def unpack_arguments(data: bytes) -> Any:
    """What `pack_arguments` was given."""
    return _load(data)[0]


def unpack(data: bytes) -> UnpackedProgram:
    """What `pack` has made, in another process. Only for data that comes from where one's own code comes from: it
    holds code.
    """
    return UnpackedProgram(data)


def _dump(file: io.BytesIO, reach: Reach, value: Any) -> None:
    """A value and the user's modules that it reaches: these without their contents at first, as code refers to them."""
    contents = [reach.contents(module) for module in reach.modules]
    _pickler(file, dict(zip(reach.modules, contents, strict=True))).dump((reach.modules, value, contents))


def _load(data: bytes) -> tuple[Any, list[SentModule]]:
    modules, value, contents = pickle.loads(data)
    for module, held in zip(modules, contents, strict=True):
        vars(module).update(held)
    return value, modules


def _blocks(fields: list[Any]) -> list[Any]:
    found: dict[int, Any] = {}
    waiting = list(fields)
    while waiting:
        field = waiting.pop()
        found[id(field.memory.whole)] = field.memory.whole
        waiting += [one for one in field._shadows.values() if one.is_placed]
    return list(found.values())


def _pickler(file: io.BytesIO, modules: dict[types.ModuleType, dict[str, Any]]) -> Any:
    """cloudpickle's pickler, which refuses what would silently be something else there, keeps the file of code, and
    takes of these modules these contents; their functions have them as their global variables.
    """
    cloudpickle = importlib.import_module("cloudpickle")
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
            if isinstance(value, types.ModuleType) and value in modules:
                facts = {name: vars(value)[name] for name in MODULE_FACTS if name in vars(value)}
                if value.__name__ == "__main__":  # processes that a function spawns run its file, if it has one
                    facts.pop("__file__", None)
                return SentModule, (value.__name__, facts, frozenset(vars(value).keys() - modules[value].keys()))
            if is_own_cache(value):
                return _cached, (value.__wrapped__, value.cache_parameters()), attributes_of(value)
            if type(value) is functools.cached_property:  # Python 3.11's has a lock
                return _cached_property, (value.func, value.attrname)
            return super().reducer_override(value)

    made = Pickler(file, protocol=5)
    made.globals_ref.update({id(vars(module)): _Variables(module) for module in modules})
    return made


class _Variables:
    """The global variables of a module's functions, on their way: those of the module where it arrives."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __reduce__(self) -> Any:
        return vars, (self._module,)


def _cached(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _cached_property(function: Any, name: str) -> Any:
    made = functools.cached_property(function)
    made.__set_name__(function, name)
    return made


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


def _fields_of(functions: list[types.FunctionType]) -> dict[str, Any]:
    return {
        f"field {name}": value
        for function in functions
        for name, value in captured_by(function).items()
        if hasattr(type(value), "__tinote_buffer__") or hasattr(type(value), "_leaves")
    }


@contextmanager
def _by_value(modules: list[types.ModuleType]) -> Iterator[None]:
    cloudpickle = importlib.import_module("cloudpickle")
    known = cloudpickle.list_registry_pickle_by_value()
    added = [module for module in modules if module.__name__ not in known]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _name_of_refused(functions: list[types.FunctionType]) -> list[Note]:
    """The name, and its function, of an object that cannot be sent."""
    for function in functions:
        for name, value in captured_by(function).items():
            if (
                isinstance(value, types.FunctionType | types.ModuleType)
                or getattr(value, "__wrapped__", None) is not None
            ):
                continue
            try:
                _pickler(io.BytesIO(), {}).dump(value)
            except Exception:
                return [Note(f"`{name}` in `{function.__name__}`", place_of(function.__code__))]
    return []
