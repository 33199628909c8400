"""What a step depends on beside its arguments and memory: names, attributes and containers of the program.

The functions that a call runs through are read as syntax trees. What they look up is compared before each replay, by
identity, as kernels do with what they capture, and so is all that can be reached from there: what containers hold, and
the attributes of objects that any of these functions reads. What they would change in Python is refused at its line,
since a replay does not do it again; but for numbers, which become variables of the program: globals, variables of outer
functions, attributes, and what a dictionary or a list holds at a literal key.

`strict` is for steps that are captured unasked (`automatic.py`): what is not known to have no effect, and what holds
state that cannot be compared, is refused, too.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import enum
import functools
import gc
import inspect
import linecache
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator
from operator import is_, itemgetter
from typing import Any

import numpy as np

from tinote.errors import CaptureError
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.structs import Struct
from tinote.lang.shipping.references import is_filled
from tinote.source import NOWHERE, Span

_MISSING = object()
#: the contents of what never changes
_FIXED = object()
_CONTAINERS = (list, dict, set, deque, np.ndarray)
_CHANGES = {
    "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "popitem", "remove", "discard", "clear",
    "add", "update", "setdefault", "sort", "reverse", "fill", "put", "resize", "itemset",
}  # fmt: skip
_TALKS = {"print", "input", "open", "exec", "eval", "compile", "setattr", "delattr", "globals", "locals", "vars"}
#: Modules whose functions give something else at each call.
_VARYING = {"random", "time", "secrets", "numpy.random", "uuid"}
#: Modules whose functions do something else than to change memory.
_SHOWS = ("tinote.viz", "tinote.tools", "tinote.ui", "tinote.magics", "tinote.lang.session.profiler")
_HOUSE = {"tinote", "numpy"} | sys.stdlib_module_names

#: Builtin functions, and modules, of which a strict capture knows that they do nothing but give a value.
_PURE = {
    "abs", "all", "any", "bool", "callable", "dict", "divmod", "enumerate", "filter", "float", "frozenset", "getattr",
    "hasattr", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max", "min", "next", "pow", "range",
    "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super", "tuple", "type", "zip",
}  # fmt: skip
_PURE_MODULES = {
    "abc", "cmath", "collections", "enum", "fractions", "functools", "itertools", "math", "numbers",
    "operator", "types", "typing",
}  # fmt: skip
_IMPURE_OF_NUMPY = {
    "dump", "fromfile", "load", "loadtxt", "memmap", "save", "savetxt", "savez", "seterr", "set_printoptions", "tofile",
}  # fmt: skip
#: What has no state that could change.
_ATOMS = (
    type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), type(NotImplemented), np.generic,
    np.dtype, enum.Enum, types.FunctionType, types.BuiltinFunctionType, types.MethodWrapperType, types.ModuleType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.GenericAlias, types.MemberDescriptorType,
    types.GetSetDescriptorType, property, staticmethod, classmethod, np.ufunc, types.CodeType,
)  # fmt: skip
#: What reads attributes whose names do not stand in the source.
_LOOKS_ANYWHERE = {"getattr", "hasattr", "vars", "attrgetter"}
#: Arrays up to this size are compared before each replay.
_LARGEST_COMPARED = 1 << 20
#: Functions that share their code: those of one `def` in another function.
_MOST_CLOSURES = 16

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _Cell:
    """A variable of an outer function, looked up as a global is."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __getitem__(self, key: str) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, key: str, value: Any) -> None:
        self._cell.cell_contents = value


class Dependencies:
    """What was looked up, with what was found. `assigned`: the variables that hold numbers and that the step assigns,
    each as what holds it (a namespace, the attributes of an object, a dictionary, …) and its key there. `strict`: see
    above.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.assigned: dict[tuple[int, Any], tuple[Any, Any]] = {}
        #: the numbers that were looked up, by where they are, as variables
        self.numbers: dict[tuple[int, Any], tuple[Any, Any]] = {}
        #: what these held when that was noted last, as far as it was
        self.before: dict[tuple[int, Any], Any] = {}
        #: the names of all attributes that the functions read; None: perhaps any
        self.attributes_read: set[str] | None = set()
        self._names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self._cells: dict[int, tuple[Any, str, Any]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        self._roots: list[tuple[Any, str, Span]] = []
        self._contents: dict[int, tuple[Any, str, Any]] = {}
        #: functions that were read, each with the identity of its object; and functions within these
        self._scanned: set[tuple[types.CodeType, int]] = set()
        self._inner: set[types.CodeType] = set()
        self._quick: list[tuple[Callable[[Any], Any], dict[str, Any], tuple[Any, ...]]] = []

    # ---- what is looked up

    def name(self, namespace: dict[str, Any], key: str, value: Any, span: Span = NOWHERE) -> None:
        """A global of this name is `value`."""
        if (id(namespace), key) not in self.assigned:
            self._names[id(namespace), key] = namespace, key, value
            self.numbers.update(_as_number(namespace, key, value))
            self._hold(value, key, span)

    def cell(self, cell: Any, key: str, value: Any, span: Span = NOWHERE) -> None:
        """A variable of an outer function is `value`."""
        if (id(cell), key) not in self.assigned:
            self._cells[id(cell)] = cell, key, value
            if _is_number(value):
                self.numbers[id(cell), key] = _Cell(cell), key
            self._hold(value, key, span)

    def attribute(self, owner: Any, key: str, value: Any, span: Span = NOWHERE) -> None:
        """An attribute is `value`."""
        if isinstance(owner, types.ModuleType):
            if key in owner.__dict__:
                self.name(owner.__dict__, key, value, span)
            return
        held = _variables_of(owner)
        if (id(held), key) in self.assigned:
            return
        self._attributes[id(owner), key] = owner, key, value
        if held is not None and key in held:
            self.numbers.update(_as_number(held, key, value))
        self._hold(value, key, span)

    def _hold(self, value: Any, key: str, span: Span) -> None:
        if not isinstance(value, _ATOMS):
            self._roots.append((value, key, span))

    def assign(self, holder: Any, identity: int, key: Any) -> None:
        """The step gives a variable new numbers."""
        self.assigned[identity, key] = holder, key
        self.before[identity, key] = self._then(identity, key)
        self._names.pop((identity, key), None)
        if self._cells.get(identity, (None, None))[1] == key:
            del self._cells[identity]
        for (owner, name), entry in list(self._attributes.items()):
            if name == key and id(_variables_of(entry[0])) == identity:
                del self._attributes[owner, name]

    def _then(self, identity: int, key: Any) -> Any:
        """What was noted of a variable; None if nothing was."""
        if (identity, key) in self._names:
            return self._names[identity, key][2]
        if identity in self._cells:
            return self._cells[identity][2]
        for value, _, contents in self._contents.values():
            if id(value) == identity and isinstance(value, list):
                return contents[key]
            if identity in (id(value), id(_variables_of(value))) and isinstance(value, dict) == (id(value) == identity):
                return dict(contents).get(key)
        return None

    # ---- whether all is as it was

    def settle(self) -> None:
        """Make comparing fast. Raises `CaptureError` for what cannot be compared, if this is strict."""
        by_namespace: dict[int, list[tuple[dict[str, Any], str, Any]]] = {}
        for entry in self._names.values():
            by_namespace.setdefault(id(entry[0]), []).append(entry)
        self._quick.clear()
        for entries in by_namespace.values():
            # Of a single name, `itemgetter` would give no tuple.
            entries = entries if len(entries) > 1 else entries * 2
            getter = itemgetter(*[key for _, key, _ in entries])
            self._quick.append((getter, entries[0][0], tuple([value for _, _, value in entries])))
        self._contents.clear()
        left = list(self._roots)
        known: set[int] = set()
        while left:
            value, key, span = left.pop()
            if id(value) in known or isinstance(value, _ATOMS):
                continue
            known.add(id(value))
            contents = self._contents_of(value)
            if contents is None:
                if self.strict:
                    raise CaptureError(
                        f"this cannot be captured: '{key}' is {_described(value)}, whose state is not known",
                        span,
                        hint="leave it out of the step",
                    )
                continue
            if contents is not _FIXED:
                self._contents[id(value)] = value, key, contents
            if isinstance(contents, bytes):
                if self.strict and len(contents) > _LARGEST_COMPARED:
                    raise CaptureError(
                        f"this cannot be captured: the array '{key}' is too large to be compared at each frame",
                        span,
                        hint="keep it in a field",
                    )
                continue
            left += [(one, key, span) for one in _reached(value, contents)]

    def _contents_of(self, value: Any) -> Any:
        """What an object holds that may change; `_FIXED` if nothing does, None if that is not known."""
        if isinstance(value, CapturedArray):  # what the step itself is called with, or has read
            return _FIXED
        if isinstance(value, np.ndarray):
            return value.tobytes() if value.dtype != object else tuple(value.ravel().tolist())
        if isinstance(value, dict):
            return tuple([(k, v) for k, v in value.items() if (id(value), k) not in self.assigned])
        if isinstance(value, list | deque):
            assigned = self.assigned
            return tuple([_MISSING if (id(value), k) in assigned else one for k, one in enumerate(value)])
        if isinstance(value, set):
            return tuple(value)
        if isinstance(value, tuple | frozenset | functools.partial | types.MethodType):
            return _FIXED
        if isinstance(value, Matrix):
            return (value.values.tobytes(),) if value.values.dtype != object else None
        if _is_ours(value):
            return _own_contents(value)
        if isinstance(value, type):
            return self._attributes_of(value, value.__dict__) if _is_users_class(value) else _FIXED
        held = _variables_of(value)
        if held is None or not all(_is_users_class(one) for one in type(value).__mro__[:-1]):
            return None
        return self._attributes_of(value, held)

    def _attributes_of(self, owner: Any, held: Any) -> tuple[tuple[str, Any], ...]:
        names = held.keys() if self.attributes_read is None else self.attributes_read & held.keys()
        return tuple([(k, held[k]) for k in sorted(names) if (id(held), k) not in self.assigned])

    def holds(self, container: Any) -> bool:
        """Whether a container was there before the step was called."""
        return id(container) in self._contents

    def why_changes(self, called: Any) -> str | None:
        """Why a call of a method changes something that was there before the step was called, if it does."""
        return _why_changes(called) if self.holds(getattr(called, "__self__", None)) else None

    def changed(self) -> str | None:
        """The name of something that is not what it was."""
        try:
            for getter, namespace, values in self._quick:
                if not all(map(is_, getter(namespace), values)):
                    found = self._changed_name()
                    if found is not None:
                        return found
        except KeyError:
            return self._changed_name() or "a name"
        if self._cells or self._attributes or self._contents:
            return self._changed_otherwise()
        return None

    def change(self) -> str | None:
        """What became of something that is not what it was, in words."""
        name = self.changed()
        if name is None:
            return None
        return f"'{name}' is gone" if name in self._gone() else f"'{name}' has changed since"

    def changed_code(self) -> bool:
        """Whether a function, a class or a kernel was defined anew."""
        found = [value is not namespace.get(key) for namespace, key, value in self._names.values() if callable(value)]
        return any(found)

    def changed_numbers(self) -> list[tuple[int, Any]]:
        """The numbers that are not what they were, by where they are."""
        found = [(id(n), key) for n, key, value in self._names.values() if not _same(n.get(key, _MISSING), value)]
        for owner, key, value in self._attributes.values():
            if not _same(getattr(owner, key, _MISSING), value):
                found.append((id(_variables_of(owner)), key))
        for cell, key, value in self._cells.values():
            with contextlib.suppress(ValueError):
                if not _same(cell.cell_contents, value):
                    found.append((id(cell), key))
        return [one for one in found if one in self.numbers]

    def _changed_name(self) -> str | None:
        for namespace, key, value in self._names.values():
            if not _same(namespace.get(key, _MISSING), value):
                return key
        return None

    def _changed_otherwise(self) -> str | None:
        # Every call of a plan asks: what is still the same object takes no call.
        for cell, key, value in self._cells.values():
            try:
                if cell.cell_contents is not value and not _same(cell.cell_contents, value):
                    return key
            except ValueError:
                return key
        for owner, key, value in self._attributes.values():
            now = getattr(owner, key, _MISSING)
            if now is not value and not _same(now, value):
                return key
        for value, key, contents in self._contents.values():
            if not _same_contents(self._contents_of(value), contents):
                return key
        return None

    def _gone(self) -> set[str]:
        """The names that have no value any more."""
        found = {key for namespace, key, _ in self._names.values() if key not in namespace}
        found |= {key for owner, key, _ in self._attributes.values() if getattr(owner, key, _MISSING) is _MISSING}
        return found | {key for cell, key, _ in self._cells.values() if not is_filled(cell)}

    # ---- reading functions

    def scan(self, function: Any, given: dict[str, Any] | None = None) -> None:
        """Whatever a call of `function` looks up. `given`: what some of its parameters are. Raises `CaptureError`."""
        while isinstance(function, functools.partial):
            function = function.func
        if isinstance(function, types.MethodType):
            first = next(iter(inspect.signature(function.__func__).parameters), "self")
            self.scan(function.__func__, {first: function.__self__})
            return
        inner = getattr(function, "__tinote_calls__", None)
        if inner is not None:
            self.scan(inner)
        wrapped = getattr(function, "__wrapped__", None)
        if _is_ours(function):
            step = getattr(function, "__tinote_step__", None)
            if step is not None:
                self.scan(step)
            return
        if not isinstance(function, types.FunctionType):
            call = inspect.getattr_static(type(function), "__call__", None)
            if isinstance(call, types.FunctionType) and not isinstance(function, type):
                self.scan(call.__get__(function))
            return
        if wrapped is not None and isinstance(wrapped, types.FunctionType):
            self.scan(wrapped)
        if (function.__module__ or "").partition(".")[0] in _HOUSE:
            return
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.scan_code(function.__code__, function.__globals__, cells, given or {})
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._hold(value, function.__name__, place_of(function.__code__))

    def scan_called(self, code: types.CodeType, namespace: dict[str, Any], given: dict[str, Any]) -> None:
        """The same of a function that was called, and of which the code is known. All functions of this code are read:
        which of them it was cannot be told.
        """
        owner = next(iter(given.values()), None)
        found = [f for f in gc.get_referrers(code) if isinstance(f, types.FunctionType) and f.__code__ is code]
        if self.knows(code, owner):
            return
        if len(found) > _MOST_CLOSURES or (code.co_freevars and not found):
            raise CaptureError(
                f"this cannot be captured: what '{code.co_name}' has of outer functions is not known",
                place_of(code),
                hint="call it by a name that the step looks up",
            )
        if not found:
            self.scan_code(code, namespace, {}, given)
        for function in found:
            self._scanned.discard((code, id(owner)))
            self.scan(function, given)

    def scan_code(
        self, code: types.CodeType, namespace: dict[str, Any], cells: dict[str, Any], given: dict[str, Any]
    ) -> None:
        """The same of a function's code."""
        key = code, id(next(iter(given.values()), None))
        if key in self._scanned:
            return
        self._scanned.add(key)
        self._inner |= set(_nested(code)) - {code}
        for owner in given.values():
            self._hold(owner, code.co_name, place_of(code))
        self.reader(self, code, namespace, cells, given).read()

    def reader(self, *given: Any) -> Reader:
        """What reads a function's code."""
        return Reader(*given)

    def knows(self, code: types.CodeType, owner: Any) -> bool:
        """Whether a function's code was read, as a method of `owner` if that is not None."""
        return (code, id(owner)) in self._scanned or code in self._inner


class Reader(ast.NodeVisitor):
    """Reads one function."""

    def __init__(
        self,
        found: Dependencies,
        code: types.CodeType,
        namespace: dict[str, Any],
        cells: dict[str, Any],
        given: dict[str, Any],
    ) -> None:
        self._found = found
        self._code = code
        self._namespace = namespace
        self._cells = cells
        self._given = given
        self._locals = {*code.co_varnames, *code.co_cellvars} - set(cells)
        self._globals: set[str] = set()
        self._nonlocals: set[str] = set()

    def read(self) -> None:
        node = _node_of(self._code)
        if node is None:
            raise CaptureError(
                f"'{self._code.co_name}' cannot be captured: its source is not there to be read",
                Span(self._code.co_filename, self._code.co_firstlineno),
                hint="define it in a file or in a cell",
            )
        if self._found.strict and self._code.co_name == "__exit__":
            raise CaptureError(
                "this cannot be captured: a context manager of its own might catch exceptions", place_of(self._code)
            )
        if isinstance(node, ast.AsyncFunctionDef) or self._code.co_flags & (
            inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        ):
            raise self._refusal(node, "a generator or coroutine")
        for part in ast.walk(node):
            if isinstance(part, ast.Global):
                self._globals |= set(part.names)
            elif isinstance(part, ast.Nonlocal):
                self._nonlocals |= set(part.names) & self._cells.keys()  # others are this function's own
            elif isinstance(part, ast.Attribute):
                self._reads(part.attr)
            elif isinstance(part, ast.MatchClass) or (isinstance(part, ast.Name) and part.id in _LOOKS_ANYWHERE):
                self._found.attributes_read = None
        self._locals -= self._globals | self._nonlocals
        for part in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(part)

    def _reads(self, attribute: str) -> None:
        if attribute == "__dict__" or attribute in _LOOKS_ANYWHERE:
            self._found.attributes_read = None
        elif self._found.attributes_read is not None:
            self._found.attributes_read.add(attribute)

    def _span(self, node: ast.expr | ast.stmt) -> Span:
        file = self._code.co_filename
        return Span(file, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)

    def _refusal(self, node: ast.expr | ast.stmt, what: str, hint: str = "") -> CaptureError:
        hint = hint or "leave it out of the step, or keep the number in a field"
        return CaptureError(f"this cannot be captured: {what}", self._span(node), hint)

    # ---- values

    @staticmethod
    def is_missing(value: Any) -> bool:
        """Whether `_value` knows nothing."""
        return value is _MISSING

    def _value(self, node: ast.expr) -> Any:
        """What an expression is, as far as that is known; else `_MISSING`."""
        if isinstance(node, ast.Name):
            if node.id in self._given:
                return self._given[node.id]
            if node.id in self._locals:
                return _MISSING
            if node.id in self._cells:
                try:
                    value = self._cells[node.id].cell_contents
                except ValueError:
                    return _MISSING
                self._found.cell(self._cells[node.id], node.id, value, self._span(node))
                return value
            if node.id in self._namespace:
                self._found.name(self._namespace, node.id, self._namespace[node.id], self._span(node))
                return self._namespace[node.id]
            return getattr(builtins, node.id, _MISSING)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if owner is _MISSING:
                return _MISSING
            if _is_ours(owner):  # fields and such: their attributes do not change
                found = inspect.getattr_static(owner, node.attr, _MISSING)
                return _MISSING if inspect.isdatadescriptor(found) else found
            held = inspect.getattr_static(owner, node.attr, _MISSING)
            if isinstance(held, property):
                if held.fget is not None:
                    self._found.scan(types.MethodType(held.fget, owner))
                return _MISSING
            value = getattr(owner, node.attr, _MISSING)
            if value is _MISSING:
                return value
            methods = types.MethodType | types.BuiltinMethodType
            is_bound = value is not held and (isinstance(value, methods) or _is_ours(value))
            if is_bound and not isinstance(owner, types.ModuleType | type):
                # A method is another object each time; that of the class is the same.
                self._found.attribute(type(owner), node.attr, getattr(type(owner), node.attr, _MISSING))
            elif not (isinstance(owner, types.ModuleType) and owner.__name__.partition(".")[0] in _HOUSE):
                self._found.attribute(owner, node.attr, value, self._span(node))
            return value
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner, key = self._value(node.value), node.slice.value
            if isinstance(owner, dict) or (isinstance(owner, list | tuple) and isinstance(key, int)):
                with contextlib.suppress(LookupError):
                    return owner[key]  # type: ignore[index]
        return _MISSING

    def _assign(self, node: ast.expr, holder: Any, key: Any, what: str) -> None:
        """A number somewhere in Python gets another value: it is a variable of the program. Raises `CaptureError` for
        what is no number.
        """
        identity = id(getattr(holder, "_cell", holder))
        if (identity, key) in self._found.assigned:
            return
        try:
            value = holder[key]
        except (KeyError, IndexError, ValueError):
            value = _MISSING
        if isinstance(node.ctx, ast.Del):  # type: ignore[attr-defined]
            raise self._refusal(node, f"it deletes {what}")
        if not _is_number(value):
            raise self._refusal(node, f"it changes {what}, which is not a number before")
        self._found.assign(holder, identity, key)

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, _Function | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            super().visit(node)
            return
        # A function or a comprehension within this function has variables of its own.
        outer = self._locals
        bound = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        stored = {p.id for p in ast.walk(node) if isinstance(p, ast.Name) and not isinstance(p.ctx, ast.Load)}
        self._locals = outer | bound | (stored - self._globals - self._nonlocals)
        self.generic_visit(node)
        self._locals = outer

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._value(node)
        else:
            self._assigned(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self._value(node)
        else:
            owner = self._value(node.value)
            if owner is not _MISSING and not _is_ours(owner):
                held = _variables_of(owner)
                if held is None or not _is_plain_attribute(owner, node.attr):
                    raise self._refusal(node, f"it changes the attribute '{node.attr}' of an object in Python")
                self._assign(node, held, node.attr, f"the attribute '{node.attr}'")
            elif isinstance(owner, Matrix | Struct):
                raise self._refusal(node, f"it changes a {type(owner).__name__} in Python")
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            owner = self._value(node.value)
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(owner, dict | list) and isinstance(key, str | int) and not isinstance(key, bool):
                self._assign(node, owner, key, f"what a {type(owner).__name__} in Python holds")
            elif isinstance(owner, (*_CONTAINERS, Matrix, Struct)):
                raise self._refusal(node, f"it changes a {type(owner).__name__} in Python")
        self.generic_visit(node)

    def _assigned(self, node: ast.Name) -> None:
        if node.id in self._nonlocals:
            self._assign(node, _Cell(self._cells[node.id]), node.id, f"'{node.id}', a variable of an outer function")
        if node.id in self._globals:
            self._assign(node, self._namespace, node.id, f"the global '{node.id}'")

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        if self._found.strict:
            raise self._refusal(node, "it imports", "import at the top of the file or cell")

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        # Which way is taken is no condition that a capture would hear of.
        if self._found.strict and node.handlers:
            raise self._refusal(node, "it catches exceptions", "let them end the step")
        self.generic_visit(node)

    visit_TryStar = visit_Try  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:
        called = self._value(node.func)
        if called is not _MISSING:
            self._called(node, called)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            owner = self._value(node.func.value)
            if isinstance(owner, _CONTAINERS):
                raise self._refusal(node, f"it changes a {type(owner).__name__} in Python")
        self.generic_visit(node)

    def _called(self, node: ast.Call, called: Any) -> None:
        why = why_not(called, self._found.strict) or _why_changes(called)
        if why is not None:
            raise self._refusal(node, why.replace("`…`", f"`{ast.unparse(node.func)}`"))
        if isinstance(called, types.FunctionType | types.MethodType | functools.partial) or not isinstance(
            called, type | types.BuiltinFunctionType | types.BuiltinMethodType
        ):
            self._found.scan(called)


def why_not(called: Any, strict: bool) -> str | None:
    """Why a call of this cannot be replayed, where `…` stands for it; None if it can. `strict`: also where that is not
    known.
    """
    name = getattr(called, "__name__", "")
    owner = getattr(called, "__self__", None)
    places = (getattr(called, "__module__", None) or "", type(called).__module__, type(owner).__module__)
    if any(one.startswith(_SHOWS) for one in places):
        return "it calls `…`, which a replay would not do again"
    is_builtin = getattr(builtins, name, None) is called
    if is_builtin and name in _TALKS:
        return f"it calls `{name}`, which a replay would not do again"
    module = getattr(called, "__module__", None) or ("" if owner is None else type(owner).__module__)
    if module in _VARYING or type(owner).__module__.startswith("numpy.random"):
        return "`…` gives something else at each call"
    if not strict or (is_builtin and name in _PURE) or _is_ours(called) or _is_ours(owner):
        return None
    root = module.partition(".")[0]
    if root == "numpy" or isinstance(owner, np.ndarray | np.generic) or isinstance(called, np.ufunc):
        return "it calls `…`, which a replay would not do again" if name in _IMPURE_OF_NUMPY else None
    if root == "tinote" or root in _PURE_MODULES or isinstance(owner, (*_CONTAINERS, str, bytes, tuple, int, float)):
        return None
    if isinstance(called, functools.partial):
        return why_not(called.func, strict)
    if is_users_module(module, getattr(getattr(called, "__code__", None), "co_filename", "")):
        return None
    return "it calls `…`, of which it is not known that nothing but memory changes"


def _why_changes(called: Any) -> str | None:
    owner = getattr(called, "__self__", None)
    if isinstance(owner, _CONTAINERS) and getattr(called, "__name__", "") in _CHANGES:
        return f"it changes a {type(owner).__name__} in Python"
    return None


def is_users_module(module: str, file: str = "") -> bool:
    """Whether what is defined there is the user's own, of which the source is read."""
    if module.partition(".")[0] in _HOUSE or module.startswith("namedtuple_"):
        return False
    found = file or getattr(sys.modules.get(module), "__file__", None) or ""
    return not ("site-packages" in found or file.startswith("<frozen"))


# ---- functions and their source


def _is_ours(value: Any) -> bool:
    """Whether it is something of this package's: a field, a kernel, a vector, …"""
    return isinstance(value, Matrix) or type(value).__module__.partition(".")[0] == "tinote"


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


@functools.lru_cache(maxsize=32)
def _tree(file: str, text: str) -> ast.Module | None:
    try:
        return ast.parse(text, file)
    except (SyntaxError, ValueError):
        return None


def _node_of(code: types.CodeType) -> _Function | None:
    """The definition of a function, found by its place in the source."""
    tree = _tree(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    if tree is None:
        return None
    places = {(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            if min([one.lineno for one in node.decorator_list] + [node.lineno]) == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            if (node.body.lineno, node.body.col_offset) in places:
                return node
    return None


def place_of(code: types.CodeType) -> Span:
    """Where a function is defined."""
    return Span(code.co_filename, code.co_firstlineno)


# ---- what holds what


def _is_number(value: Any) -> bool:
    """Whether it may be a variable of a program."""
    return type(value) is int or type(value) is float


def _as_number(holder: Any, key: Any, value: Any) -> dict[tuple[int, Any], tuple[Any, Any]]:
    return {(id(holder), key): (holder, key)} if _is_number(value) else {}


def _variables_of(owner: Any) -> Any:
    """The attributes that an object has of its own, if they are in a dictionary."""
    return None if isinstance(owner, type) else getattr(owner, "__dict__", None)


def _is_plain_attribute(owner: Any, name: str) -> bool:
    """Whether to set an attribute is to set what is found under its name."""
    kind = type(owner)
    return kind.__setattr__ is object.__setattr__ and not hasattr(getattr(kind, name, None), "__set__")


def _is_users_class(kind: type) -> bool:
    return is_users_module(kind.__module__) or kind is types.SimpleNamespace


def _own_contents(value: Any) -> Any:
    """What something of this package's holds in Python: `_FIXED` for fields, kernels and the like, None for what shows
    something.
    """
    if isinstance(value, Struct):
        return tuple(value.entries.items())
    return None if type(value).__module__.startswith(_SHOWS) else _FIXED


def _described(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__qualname__}" if kind.__module__ == "builtins" else f"a {kind.__module__}.{kind.__qualname__}"


def _reached(value: Any, contents: Any) -> list[Any]:
    """What is found from here."""
    if isinstance(value, tuple | frozenset):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__self__]
    if contents is _FIXED or isinstance(value, Matrix):
        return []
    if isinstance(value, list | deque | set | np.ndarray):
        return [one for one in contents if one is not _MISSING]
    found = [one for _, one in contents]
    if isinstance(value, dict):
        return [*found, *[key for key, _ in contents]]
    if not _is_ours(value) and not isinstance(value, type):
        found += type(value).__mro__[:-1]
    return found


# ---- comparing


def _same(now: Any, then: Any) -> bool:
    """Whether it is the same object, or an equal number or text."""
    if now is then:
        return True
    if type(now) is not type(then) or not isinstance(now, int | float | str | bytes | types.MethodType):
        return False
    return repr(now) == repr(then) if isinstance(now, float) else bool(now == then)


def _same_contents(now: Any, then: Any) -> bool:
    if isinstance(then, bytes) or isinstance(now, bytes) or now is None:
        return bool(now == then)
    if len(now) != len(then):
        return False
    return all(map(_same_entry, now, then))


def _same_entry(now: Any, then: Any) -> bool:
    if type(now) is tuple and type(then) is tuple and len(now) == len(then) == 2:
        return (now[0] is then[0] or _same(*[one[0] for one in (now, then)])) and _same(now[1], then[1])
    return _same(now, then)
