"""The dependencies of a step besides its arguments and memory: names, attributes and containers of the program.

The functions that a call runs are read as syntax trees. The objects that they look up are compared before each replay,
by identity, as with captures of kernels, and so is everything reachable from there (`contents.py`) and the functions'
own code. Changes in Python are refused at their line, since a replay would not repeat them, except for numbers, which
become variables of the program: globals, variables of outer functions, attributes, and what a dictionary or a list
holds at a literal key.

One rule holds for all: an object that is not known to be constant, or whose contents are not known, is not captured.
Called functions must be the user's own, which are read, or known to be pure.

`unasked` is for steps that are captured automatically (`automatic.py`): arrays that take long to compare are refused.
"""

from __future__ import annotations

import abc
import ast
import builtins
import contextlib
import functools
import gc
import inspect
import random
import types
from collections import Counter
from collections.abc import Iterable, KeysView
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from tinote.compiler.pysource.codes import cells_of, codes_in, place_of
from tinote.compiler.pysource.definitions import definition_of, span_of
from tinote.compiler.pysource.effects import CHANGING, Effect, effect_of, home_of
from tinote.compiler.pysource.names import (
    MISSING,
    CaptureKind,
    attribute_of,
    find_name,
    names_bound_by,
    parameter_names,
    stored_names,
)
from tinote.compiler.pysource.origins import is_library, is_standard
from tinote.errors import CaptureError, KernelSyntaxError, with_article
from tinote.lang.capture.contents import (
    CONTAINERS,
    FIXED,
    SHOWS,
    Contents,
    described,
    is_constant,
    is_ours,
    is_same,
    variables_of,
)
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.members import Named
from tinote.lang.data.structs import Struct
from tinote.lang.kernels.instances import Instance
from tinote.source import NOWHERE, Span

#: Functions that read attributes whose names are not in the source.
_LOOKS_ANYWHERE = {"getattr", "hasattr", "vars", "__dict__", "__getattribute__", "__setattr__"}
#: Such functions, under any name, and those that call methods so.
_REFLECTIVE = (getattr, hasattr, vars, attrgetter, methodcaller, object.__getattribute__, type.__getattribute__)
#: Types whose methods only return values, or change contents that are compared.
_PURE_OWNERS = (*CONTAINERS, str, bytes, tuple, int, float, complex, frozenset, range)
#: Arrays up to this size are compared before each replay.
_LARGEST_COMPARED = 1 << 20
#: What a function may get anew.
_state_of = attrgetter("__code__", "__defaults__", "__kwdefaults__")
#: Functions that share their code: those of one `def` in another function.
_MOST_CLOSURES = 16

#: What makes a generator of random numbers: with a seed, the same one at each call.
_GENERATORS = (
    *(np.random.default_rng, np.random.Generator, np.random.RandomState, random.Random, np.random.SeedSequence),
    *(np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64),
)

#: Nodes that bind a variable to something other than a number: definitions, and patterns that take the rest.
_NEVER_NUMBERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.MatchStar, ast.MatchMapping)
#: Nodes with a scope of their own within a function.
_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


class _Cell:
    """A variable of an outer function, looked up like a global."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __getitem__(self, key: str) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, key: str, value: Any) -> None:
        self._cell.cell_contents = value


class Dependencies:
    """The objects that were looked up, by name. `assigned`: the numeric variables that the step assigns, each as its
    holder (a namespace, the attributes of an object, a dictionary, …) and its key there. `unasked`: see above.
    """

    def __init__(self, *, unasked: bool = False) -> None:
        self.unasked = unasked
        self.assigned: dict[tuple[int, Any], tuple[Any, Any]] = {}
        #: the numbers that were looked up, by place, as variables
        self.numbers: dict[tuple[int, Any], tuple[Any, Any]] = {}
        #: their last recorded values
        self.before: dict[tuple[int, Any], Any] = {}
        self.holdings = Contents(self.is_users)
        #: the package of the function that was read first, which is the user's wherever it is installed
        self._packages: set[str] = set()
        self._names: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        #: attributes, including those of cells (variables of outer functions), with the names that users know
        self._attributes: dict[tuple[int, str], tuple[Any, str, Any, str]] = {}
        #: names that are looked up elsewhere, since no namespace has them
        self._absent: dict[int, tuple[KeysView[str], set[str]]] = {}
        #: abstract classes that are asked for by `isinstance`, with the token of what was registered with any of them
        self._abstract: tuple[str, Any] | None = None
        self._functions: dict[int, tuple[types.FunctionType, tuple[Any, ...]]] = {}
        self._roots: list[tuple[Any, str, Span]] = []
        self._contents: dict[int, tuple[Any, str, Any]] = {}
        #: the numbers among attributes of held objects
        self._noted: dict[tuple[int, str], Any] = {}
        #: the ends of calls that make a generator from a seed, or draw from one that the same function has made: they
        #: give the same whenever the function is called
        self.seeded: set[tuple[str, int, int]] = set()
        #: functions that were read, each with the identity of its object; and functions within these
        self._scanned: set[tuple[types.CodeType, int]] = set()
        self._inner: set[types.CodeType] = set()

    # ---- lookups

    def note(self, kind: CaptureKind, owner: Any, key: str, value: Any) -> None:
        """Record that a name is `value`, found in one of these ways."""
        match kind:
            case CaptureKind.NAME:
                self.name(owner, key, value)
            case CaptureKind.CELL:
                self.cell(owner, key, value)
            case CaptureKind.BUILTIN:
                self.absent(owner, key)
                self.name(builtins.__dict__, key, value)

    def name(self, namespace: dict[Any, Any], key: Any, value: Any) -> None:
        """A global of this name is `value`; so is what a dictionary holds at a literal key."""
        if namespace is not builtins.__dict__:  # by their own names, it is seen where they look
            self._notice(value)
        if (id(namespace), key) not in self.assigned:
            self._names[id(namespace), key] = namespace, key, value
            self.numbers.update(_as_number(namespace, key, value))

    def cell(self, cell: Any, key: str, value: Any) -> None:
        """A variable of an outer function is `value`."""
        self._notice(value)
        if (id(cell), key) not in self.assigned:
            self._attributes[id(cell), "cell_contents"] = cell, "cell_contents", value, key
            if _is_number(value):
                self.numbers[id(cell), key] = _Cell(cell), key

    def attribute(self, owner: Any, key: str, value: Any) -> None:
        """An attribute is `value`."""
        if isinstance(owner, types.ModuleType):
            if key in owner.__dict__:
                self.name(owner.__dict__, key, value)
            return
        held = variables_of(owner)
        if (id(held), key) in self.assigned:
            return
        self._attributes[id(owner), key] = owner, key, value, key
        if held is not None and key in held:
            self.numbers.update(_as_number(held, key, value))

    def absent(self, namespace: dict[str, Any], key: str) -> None:
        """Record that a name is not found there: it is a built-in function, or a module computes it."""
        self._absent.setdefault(id(namespace), (namespace.keys(), set()))[1].add(key)

    def asks_for(self, classes: Any, key: str) -> None:
        """Record an `isinstance` test against these classes. Other classes may be registered with abstract ones."""
        kinds = classes if isinstance(classes, tuple) else (classes,)
        if not all(isinstance(one, type) and not isinstance(one, abc.ABCMeta) for one in kinds):
            self._abstract = key, abc.get_cache_token()

    def _notice(self, value: Any) -> bool:
        """A value that code uses: some look for attributes by names that are not in the source. Gives whether it is the
        first one that does.
        """
        if self.holdings.attributes_read is None or not any(value is one for one in _REFLECTIVE):
            return False
        self.holdings.attributes_read = None
        return True

    def hold(self, value: Any, key: str, span: Span) -> None:
        """Record everything that is reachable from a value."""
        if not is_constant(value):
            self._roots.append((value, key, span))

    def assign(self, holder: Any, identity: int, key: Any) -> None:
        """Record a variable whose number the step changes."""
        self.assigned[identity, key] = holder, key
        self.holdings.assigned.setdefault(identity, set()).add(key)
        self.before[identity, key] = self._then(identity, key)
        self._names.pop((identity, key), None)
        for place, (owner, _, _, name) in list(self._attributes.items()):
            if name == key and identity in (id(owner), id(variables_of(owner))):
                del self._attributes[place]

    def _then(self, identity: int, key: Any) -> Any:
        """The recorded value of a variable; None if there is none."""
        if (identity, key) in self._names:
            return self._names[identity, key][2]
        if (identity, "cell_contents") in self._attributes:
            return self._attributes[identity, "cell_contents"][2]
        value, _, contents = self._contents.get(identity, (None, "", ()))
        if type(value) is list:
            return contents[key]
        if type(value) is dict:
            return dict(zip(contents[::2], contents[1::2], strict=True)).get(key)
        return self._noted.get((identity, key))

    def add_instances(self, instances: Iterable[Instance]) -> list[Instance]:
        """What the code of kernels captured is compared, too. Gives those instances that depend on more than that."""
        found = [instance for instance in instances if not instance.tell_lookups(self)]
        self.settle()
        return found

    # ---- whether all is as it was

    def settle(self) -> None:
        """Prepare fast comparison. Raises `CaptureError` for an object that cannot be compared."""
        self._contents.clear()
        self._noted.clear()
        left = [(*root, "is") for root in self._roots]
        known: set[int] = set()
        while left:
            value, key, span, has = left.pop()
            if self._notice(value):
                self.settle()  # more of what has been seen counts
                return
            if id(value) in known or is_constant(value):
                continue
            known.add(id(value))
            contents = self.holdings.of(value)
            if contents is None:
                raise CaptureError(
                    f"this cannot be captured: '{key}' {has} {described(value)}, whose state is not known",
                    span,
                    hint="leave it out of the step, or keep its numbers in fields or plain variables",
                )
            if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType):
                # A call that is not made by a Python function, as in `map(print, …)`, cannot be observed.
                why = None if effect_of(value) is Effect.UNKNOWN else self.why_not(value)
                if why is not None:
                    raise CaptureError(f"this cannot be captured: {why.replace('…', value.__name__)}", span)
            if contents is not FIXED:
                self._contents[id(value)] = value, key, contents
                held = variables_of(value) or {}
                self._noted |= {(id(held), k): number for k, number in held.items() if _is_number(number)}
            if self.unasked and isinstance(value, np.ndarray) and value.nbytes > _LARGEST_COMPARED:
                raise CaptureError(
                    f"this cannot be captured: the array '{key}' is too large to be compared at each frame",
                    span,
                    hint="keep it in a field",
                )
            left += [(one, key, span, "holds") for one in self.holdings.reached(value, contents)]

    def holds(self, container: Any) -> bool:
        """Whether a container existed before the step was called."""
        return id(container) in self._contents

    def why_changes(self, called: Any) -> str | None:
        """Why a call of a method changes an object that existed before the step was called, if it does."""
        return _why_changes(called) if self.holds(getattr(called, "__self__", None)) else None

    def changed(self) -> str | None:
        """The name of something that is not what it was."""
        # Each replay asks. What is still the same object takes no call; loops are faster here than `map` and `all`.
        try:
            for namespace, key, value in self._names.values():
                if (now := namespace[key]) is not value and not is_same(now, value):
                    return key
        except KeyError:
            return key
        for function, (code, defaults, named) in self._functions.values():
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not named
            ):
                return function.__name__
        try:
            for owner, attribute, value, name in self._attributes.values():
                if (now := getattr(owner, attribute, MISSING)) is not value and not is_same(now, value):
                    return name
        except ValueError:  # a variable of an outer function that is gone
            return name
        for names, absent in self._absent.values():
            if not names.isdisjoint(absent):
                return min(names & absent)
        if self._abstract is not None and self._abstract[1] != abc.get_cache_token():
            return self._abstract[0]
        for value, key, contents in self._contents.values():
            if not is_same(self.holdings.of(value), contents):
                return key
        return None

    def refuse_changes(self, place: Span) -> None:
        """Raise `CaptureError` if a call has changed something in Python that a replay would not change."""
        changed = self.changed()
        if changed is not None:
            raise CaptureError(
                f"this cannot be captured: a call changes '{changed}' in Python",
                place,
                hint="keep it in a field, or make it a global number that the step assigns",
            )

    def change(self) -> str | None:
        """A description of the change of a dependency."""
        name = self.changed()
        if name is None:
            return None
        return f"'{name}' is gone" if name in self._gone() else f"'{name}' has changed since"

    def changed_code(self) -> bool:
        """Whether a function, a class or a kernel was defined again."""
        return any(
            value is not namespace.get(key) for namespace, key, value in self._names.values() if callable(value)
        ) or any(function.__code__ is not code for function, (code, *_) in self._functions.values())

    def changed_numbers(self) -> list[tuple[int, Any]]:
        """The numbers that have changed, by place."""
        found = [(id(n), key) for n, key, value in self._names.values() if not is_same(n.get(key, MISSING), value)]
        for owner, attribute, value, name in self._attributes.values():
            if not is_same(_now(owner, attribute), value):
                found += [(id(owner), name), (id(variables_of(owner)), name)]
        return [one for one in found if one in self.numbers]

    def _gone(self) -> set[str]:
        """The names that no longer have a value."""
        found = {key for namespace, key, _ in self._names.values() if key not in namespace}
        attributes = self._attributes.values()
        return found | {name for owner, attribute, _, name in attributes if _now(owner, attribute) is MISSING}

    # ---- user code

    def is_users(self, module: str, file: str = "") -> bool:
        """Whether the definitions there are user code, whose source is read."""
        if module.partition(".")[0] in self._packages:
            return True
        return not (is_library(module, file) or module.startswith("namedtuple_"))

    def why_not(self, called: Any) -> str | None:
        """Why a call of this object cannot be replayed, with `…` in its place; None if it can."""
        while isinstance(called, functools.partial):
            called = called.func
        name = getattr(called, "__name__", "")
        owner = getattr(called, "__self__", None)
        places = (getattr(called, "__module__", None) or "", type(called).__module__, type(owner).__module__)
        if any(one.startswith(SHOWS) for one in places):
            return "it calls `…`, which a replay would not do again"
        effect, module = effect_of(called), home_of(called)
        if effect in (Effect.DRAWS, Effect.CLOCK):
            return "`…` gives something else at each call"
        root = module.partition(".")[0]
        if effect in (Effect.NONE, Effect.ADVANCES) or root == "tinote" or is_ours(called) or is_ours(owner):
            return None
        if effect is not Effect.UNKNOWN and getattr(builtins, name, None) is called:
            return f"it calls `{name}`, which a replay would not do again"
        if effect in (Effect.OUTSIDE, Effect.SETTINGS) and root == "numpy":
            return "it calls `…`, which a replay would not do again"
        if isinstance(called, type) and issubclass(called, BaseException):
            return None
        if issubclass(getattr(called, "__objclass__", type(owner)), (*_PURE_OWNERS, np.generic)):
            return None
        if self.is_users(module, getattr(getattr(called, "__code__", None), "co_filename", "")):
            return None
        return "it calls `…`, which may change more than memory"

    # ---- reading functions

    def scan(self, function: Any, given: dict[str, Any] | None = None) -> None:
        """Record all lookups of a call of `function`.

        `given`: the values of some of its parameters. Raises `CaptureError`.
        """
        while isinstance(function, functools.partial):
            self.hold((function.args, function.keywords), getattr(function.func, "__name__", "partial"), NOWHERE)
            function = function.func
        if isinstance(function, types.MethodType):
            first = next(iter(inspect.signature(function.__func__).parameters), "self")
            self.scan(function.__func__, {first: function.__self__})
            return
        inner = getattr(function, "__tinote_calls__", None)
        if inner is not None:
            self.scan(inner)
        wrapped = getattr(function, "__wrapped__", None)
        if is_ours(function):
            step = getattr(function, "__tinote_step__", None)
            if step is not None:
                self.scan(step)
            return
        if not isinstance(function, types.FunctionType):
            call = inspect.getattr_static(type(function), "__call__", None)
            if isinstance(call, types.FunctionType) and not isinstance(function, type):
                self.scan(call.__get__(function))
            return
        if wrapped is not None:
            self.scan(wrapped)
        module = function.__globals__.get("__name__") or ""
        if is_standard(module):
            return
        self._packages = self._packages or {module.partition(".")[0]}
        self.follow(function)
        self.scan_code(function.__code__, function.__globals__, cells_of(function), given or {})

    def follow(self, function: types.FunctionType) -> None:
        """A function is called: it may get other code, or other defaults."""
        code, *defaults = state = _state_of(function)
        self._functions[id(function)] = function, state
        self.hold(tuple(defaults), function.__name__, place_of(code))

    def scan_called(self, code: types.CodeType, namespace: dict[str, Any], given: dict[str, Any]) -> None:
        """Read a called function, given its code. All functions with this code are read, since it is unknown which one
        was called.
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
        self._inner |= set(codes_in(code)) - {code}
        for owner in given.values():
            self.hold(owner, code.co_name, place_of(code))
        self.reader(self, code, namespace, cells, given).read()

    def reader(self, *given: Any) -> Reader:
        """The reader of a function's code."""
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
        self._bound = set(self._locals)  # here, or in a function within it
        self._globals: set[str] = set()
        self._nonlocals: set[str] = set()
        #: variables of the function that are assigned once, with what they are
        self._made: dict[str, ast.expr] = {}
        #: where the operand of a type test is known
        self._known_types: set[ast.AST] = set()

    def read(self) -> None:
        try:
            _, node = definition_of(self._code, self._namespace, self._code.co_name)
        except KernelSyntaxError as error:
            raise CaptureError(
                f"'{self._code.co_name}' cannot be captured: its source is not there to be read",
                place_of(self._code),
                hint=error.hint or "define it in a file or in a cell",
            ) from None
        if self._code.co_name == "__exit__":
            raise CaptureError(
                "this cannot be captured: a context manager of its own might catch exceptions", place_of(self._code)
            )
        if isinstance(node, ast.AsyncFunctionDef) or self._code.co_flags & (
            inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        ):
            raise self._refusal(node, "a generator or coroutine")
        stored = stored_names(node)
        self._bound |= parameter_names(node) | stored
        self._given = {k: v for k, v in self._given.items() if k not in stored}
        by_name: set[ast.expr] = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Global):
                self._globals |= set(part.names)
            elif isinstance(part, ast.Nonlocal):
                self._nonlocals |= set(part.names) & self._cells.keys()  # others are this function's own
            elif isinstance(part, ast.Attribute):
                if self._module(part.value) is None:
                    self._reads(part.attr)
            elif isinstance(part, ast.Call) and _asks_by_name(part):
                by_name.add(part.func)
                self._reads(part.args[1].value)  # type: ignore[attr-defined]
                self._found.holdings.asks_for_absent = True
            elif isinstance(part, ast.MatchClass) or (isinstance(part, ast.Name) and part.id in _LOOKS_ANYWHERE):
                if part not in by_name:
                    self._found.holdings.attributes_read = None
                if isinstance(part, ast.MatchClass):
                    self._found.asks_for(self._value(part.cls), ast.unparse(part.cls))
        self._locals -= self._globals | self._nonlocals
        self._made = _assigned_once(node, self._locals)
        for part in node.body:  # type: ignore[attr-defined]
            self.visit(part)

    def _reads(self, attribute: str) -> None:
        holdings = self._found.holdings
        if attribute in _LOOKS_ANYWHERE:
            holdings.attributes_read = None
        elif holdings.attributes_read is not None:
            holdings.attributes_read.add(attribute)

    def _span(self, node: ast.AST) -> Span:
        return span_of(node, self._code.co_filename)

    def _refusal(self, node: ast.AST, what: str, hint: str = "") -> CaptureError:
        hint = hint or "leave it out of the step, or keep the number in a field"
        return CaptureError(f"this cannot be captured: {what}", self._span(node), hint)

    # ---- values

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression, if known; else `MISSING`."""
        if isinstance(node, ast.Name):
            if node.id in self._given:
                return self._given[node.id]
            if node.id in self._locals:
                return MISSING
            found = find_name(node.id, self._cells, self._namespace)
            if found is None or found.value is MISSING:
                return MISSING
            self._found.note(found.kind, found.owner, node.id, found.value)
            return found.value
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            return MISSING if owner is MISSING else self._attribute(owner, node.attr)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner, key = self._value(node.value), node.slice.value
            with contextlib.suppress(LookupError):
                if type(owner) is dict:
                    self._found.name(owner, key, owner[key])
                    return owner[key]
                if type(owner) in (list, tuple) and isinstance(key, int):
                    return owner[key]
        return MISSING

    def _attribute(self, owner: Any, name: str) -> Any:
        """The same of an attribute."""
        held = inspect.getattr_static(owner, name, MISSING)
        if is_ours(owner):  # fields and the like: their attributes do not change, but members may
            if isinstance(owner, Named):
                held = MISSING if owner.__tinote_has__(name) else getattr(type(owner), name, MISSING)
            return MISSING if inspect.isdatadescriptor(held) else held
        if isinstance(held, property):
            if held.fget is not None:
                self._found.scan(types.MethodType(held.fget, owner))
            return MISSING
        value = attribute_of(owner, name)
        if isinstance(owner, types.ModuleType) and name not in owner.__dict__:  # nor loaded by having been read
            self._found.absent(owner.__dict__, name)
        if value is MISSING:
            return MISSING
        if _is_bound(owner, value, held):
            # A method is another object each time; that of the class is the same.
            self._found.attribute(type(owner), name, getattr(type(owner), name, MISSING))
        else:
            self._found.attribute(owner, name, value)
        return value

    def _module(self, node: ast.expr) -> Any:
        """The module of a dotted name, if it is one."""
        found: Any = None
        if isinstance(node, ast.Name) and node.id not in self._bound:
            place = find_name(node.id, self._cells, self._namespace)
            found = None if place is None else place.value
        elif isinstance(node, ast.Attribute):
            owner = self._module(node.value)
            found = None if owner is None else owner.__dict__.get(node.attr)
        return found if isinstance(found, types.ModuleType) else None

    def _assign(self, node: ast.AST, holder: Any, key: Any, what: str) -> None:
        """Record the assignment of a number in Python, which is a variable of the program. Raises `CaptureError` for
        any other value.
        """
        identity = id(getattr(holder, "_cell", holder))
        if (identity, key) in self._found.assigned:
            return
        try:
            value = holder[key]
        except (KeyError, IndexError, ValueError):
            value = MISSING
        if isinstance(getattr(node, "ctx", None), ast.Del):
            raise self._refusal(node, f"it deletes {what}")
        if not _is_number(value):
            raise self._refusal(node, f"it changes {what}, which is not a number before")
        if isinstance(node, _NEVER_NUMBERS):
            raise self._refusal(node, f"it changes {what}, which is not a number afterwards")
        self._found.assign(holder, identity, key)

    def visit(self, node: ast.AST) -> None:
        outer = self._locals
        if isinstance(node, _SCOPES):  # within this function, with variables of its own
            self._locals = outer | parameter_names(node) | (stored_names(node) - self._globals - self._nonlocals)
        super().visit(node)
        self._locals = outer
        for name in names_bound_by(node):
            self._assigned(node, name)

    def visit_Name(self, node: ast.Name) -> None:
        if (
            isinstance(node.ctx, ast.Load)
            and self._use(node)
            and self._value(node) is type
            and node not in self._known_types
        ):
            self._asks_for_type(node, MISSING)

    def _use(self, node: ast.expr) -> bool:
        """Record the use of an expression's value with all of its contents. Returns whether it is known."""
        value = self._value(node)
        if value is not MISSING:
            named = node
            while isinstance(named, ast.Subscript):
                named = named.value
            self._found.hold(value, getattr(named, "attr", None) or ast.unparse(named), self._span(node))
        return value is not MISSING

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner, name = self._value(node.value), node.attr
        if name == "__class__":
            self._asks_for_type(node, owner)
        if isinstance(node.ctx, ast.Load):
            # If it is found by its name, the other attributes of its owner do not matter.
            if self._use(node) and not is_ours(owner):
                held = inspect.getattr_static(owner, name, MISSING)
                if not _is_bound(owner, getattr(owner, name, MISSING), held):
                    return
        elif is_ours(owner):
            raise self._refusal(node, f"it changes {with_article(owner)} in Python")
        elif owner is not MISSING:
            held = variables_of(owner)
            if held is None or not _is_plain_attribute(owner, name):
                raise self._refusal(node, f"it changes the attribute '{node.attr}' of an object in Python")
            self._assign(node, held, name, f"the attribute '{node.attr}'")
            return
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        owner = self._value(node.value)
        if isinstance(node.ctx, ast.Load):
            if self._use(node) and type(owner) is dict:
                return
        else:
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if type(owner) in (dict, list) and isinstance(key, str | int) and not isinstance(key, bool):
                self._assign(node, owner, key, f"what a {type(owner).__name__} in Python holds")
                return
            if isinstance(owner, (*CONTAINERS, Matrix, Struct)):
                raise self._refusal(node, f"it changes {with_article(owner)} in Python")
        self.generic_visit(node)

    def _assigned(self, node: ast.AST, name: str) -> None:
        if name in self._nonlocals:
            self._assign(node, _Cell(self._cells[name]), name, f"'{name}', a variable of an outer function")
        if name in self._globals:
            self._assign(node, self._namespace, name, f"the global '{name}'")

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        raise self._refusal(node, "it imports", "import at the top of the file or cell")

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        # A capture does not observe which handler runs, and a replay that fails goes no further.
        if node.handlers:
            raise self._refusal(node, "it catches exceptions", "let them end the step")
        raise self._refusal(node, "it does something when exceptions end it", "let them end the step")

    visit_TryStar = visit_Try  # noqa: N815

    def _is_seeded(self, node: ast.expr) -> bool:
        """Whether an expression is a generator of random numbers that this call of the function makes, from a seed."""
        if isinstance(node, ast.Name):
            made = self._made.get(node.id)
            return made is not None and self._is_seeded(made)
        if not isinstance(node, ast.Call):
            return False
        called = self._value(node.func)
        if not any(called is one for one in _GENERATORS):
            return False
        seeds = [*node.args, *[keyword.value for keyword in node.keywords]]
        return bool(seeds) and all(self._is_seeded(seed) or self._is_seed(seed) for seed in seeds)

    def _is_seed(self, node: ast.expr) -> bool:
        """Whether an expression is a number, or several."""
        return _is_literal(node) or _is_number(self._value(node))

    def visit_Call(self, node: ast.Call) -> None:
        drawn_from = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        is_drawn = any(map(self._is_seeded, drawn_from))
        if is_drawn or self._is_seeded(node):
            self._found.seeded.add(end_of(self._span(node)))
            for part in (*(drawn_from if is_drawn else []), *node.args, *node.keywords):
                self.visit(part)
            return
        called = self._value(node.func)
        if called is not MISSING:
            self._called(node, called)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            owner = self._value(node.func.value)
            if isinstance(owner, CONTAINERS):
                raise self._refusal(node, f"it changes {with_article(owner)} in Python")
        self.generic_visit(node)

    def _called(self, node: ast.Call, called: Any) -> None:
        why = self._found.why_not(called) or _why_changes(called)
        if why is not None:
            raise self._refusal(node, why.replace("`…`", f"`{ast.unparse(node.func)}`"), hint_for(called))
        if called is type:
            self._known_types.add(node.func)
            if len(node.args) == 1:
                self._asks_for_type(node, self._value(node.args[0]))
        elif (called is isinstance or called is issubclass) and len(node.args) == 2:
            self._known_types |= set(ast.walk(node.args[1]))
            self._found.asks_for(self._value(node.args[1]), ast.unparse(node.args[1]))
        if isinstance(called, types.FunctionType | types.MethodType | functools.partial) or not isinstance(
            called, type | types.BuiltinFunctionType | types.BuiltinMethodType
        ):
            self._found.scan(called)

    def _asks_for_type(self, node: ast.expr, value: Any) -> None:
        # While a step is captured, its numbers are traced: `isinstance` treats them as numbers, `type` does not.
        if value is MISSING or _is_number(value):
            hint = "ask by `isinstance`, or leave it out of the step"
            raise self._refusal(node, "it asks for the type of what may be a number", hint)


def end_of(span: Span) -> tuple[str, int, int]:
    """Where a call ends, which tells it from those in it and around it."""
    return span.file, span.end_line, span.end_column


def hint_for(called: Any) -> str:
    """What to do in place of a call that cannot be replayed, if there is more to say than to leave it out."""
    if effect_of(called) is not Effect.DRAWS:
        return ""
    return (
        "give the generator a seed where it is made, in this function: `np.random.default_rng(1)`, or draw in a kernel"
    )


def _why_changes(called: Any) -> str | None:
    owner = getattr(called, "__self__", None)
    if isinstance(owner, CONTAINERS) and getattr(called, "__name__", "") in CHANGING:
        return f"it changes {with_article(owner)} in Python"
    return None


# ---- holders


def _is_bound(owner: Any, value: Any, held: Any) -> bool:
    """Whether an attribute is a method, a function of the object that it is looked up in."""
    is_method = isinstance(value, types.MethodType | types.BuiltinMethodType) or is_ours(value)
    return value is not held and is_method and not isinstance(owner, types.ModuleType | type)


def _assigned_once(function: ast.AST, names: Iterable[str]) -> dict[str, ast.expr]:
    """The variables among these that one statement `name = …` assigns, and nothing else, with what it assigns."""
    bound = Counter(name for node in ast.walk(function) for name in names_bound_by(node))
    bound.update(parameter_names(function))
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    return {name: value for name, value in assigned.items() if name in names and bound[name] == 1}


def _is_literal(node: ast.expr) -> bool:
    """Whether an expression is a number, or a tuple or list of such."""
    try:
        return ast.literal_eval(node) is not None
    except ValueError:
        return False


def _asks_by_name(node: ast.Call) -> bool:
    """Whether it is `getattr` or `hasattr` of an attribute that is named there."""
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    )


def _now(owner: Any, attribute: str) -> Any:
    """The present value of an attribute; `MISSING` also for an empty cell."""
    try:
        return getattr(owner, attribute, MISSING)
    except ValueError:
        return MISSING


def _is_number(value: Any) -> bool:
    """Whether a value may be a variable of a program."""
    return type(value) is int or type(value) is float


def _as_number(holder: Any, key: Any, value: Any) -> dict[tuple[int, Any], tuple[Any, Any]]:
    return {(id(holder), key): (holder, key)} if _is_number(value) else {}


def _is_plain_attribute(owner: Any, name: str) -> bool:
    """Whether setting an attribute sets the value that is found under its name."""
    kind = type(owner)
    return kind.__setattr__ is object.__setattr__ and not hasattr(getattr(kind, name, None), "__set__")
