"""What Python's functions say (`tinote/compiler/pysource/`): tables of pieces of source, each with the answer."""

from __future__ import annotations

import ast
import collections
import datetime
import fractions
import functools
import io
import itertools
import linecache
import math
import operator
import os
import random
import re
import subprocess
import symtable
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.pysource import codes, origins
from tinote.compiler.pysource.definitions import definition_of, span_of
from tinote.compiler.pysource.effects import CHANGING, Effect, effect_of, home_of
from tinote.compiler.pysource.names import (
    MISSING,
    CaptureKind,
    attribute_of,
    find_again,
    find_name,
    parameter_names,
    stored_names,
)
from tinote.errors import KernelSyntaxError
from tinote.source import Span

# ---- calls


class Stamp(datetime.datetime):
    pass


class Log(io.StringIO):
    pass


class Row(np.ndarray):
    def total(self) -> float:
        return 0.0


GENERATOR = np.random.default_rng(1)
ARRAY = np.ones(3)
ROW = ARRAY.view(Row)

#: Calls by what they do besides giving a value.
CALLS: dict[Effect, list[Any]] = {
    Effect.NONE: [
        *(abs, int, sorted, type, super, math.sin, itertools.chain),
        *(collections.Counter, fractions.Fraction, np.sin, np.zeros, np.linalg.norm, np.add, np.float32),
        *(ARRAY.sum, ARRAY.fill, ROW.sum, np.float64(1).item, functools.partial(math.sin, 1.0)),
    ],
    Effect.ADVANCES: [next],
    Effect.DRAWS: [
        *(random.random, random.Random(1).random, np.random.rand, np.random.default_rng, GENERATOR.normal),
        functools.partial(random.random),
    ],
    Effect.CLOCK: [time.time, time.perf_counter, time.sleep],
    Effect.PROCESS: [
        *(os.getpid, sys.getrefcount, globals, locals, vars, exec, eval, compile, __import__),
        *(datetime.datetime.now, datetime.date.today, Stamp.now),
    ],
    Effect.OUTSIDE: [
        *(print, input, open, breakpoint, subprocess.run, io.StringIO, Log().write),
        *(np.save, np.loadtxt, ARRAY.tofile, ROW.tofile, ROW.dump, functools.partial(functools.partial(print), 1)),
    ],
    Effect.CHANGES: [setattr, delattr],
    Effect.SETTINGS: [np.seterr, np.get_printoptions, np.ma.array, np.testing.assert_allclose],
    Effect.UNKNOWN: [
        *(id, dir, [].append, {}.get, "a".upper, str.upper, object.__setattr__, datetime.timedelta),
        *(ROW.total, Row, lambda: None, ValueError, (1 for _ in ()).close),
    ],
}


@pytest.mark.parametrize("effect", CALLS)
def test_what_a_call_does_besides_giving_a_value(effect: Effect) -> None:
    assert {repr(one): effect_of(one) for one in CALLS[effect]} == {repr(one): effect for one in CALLS[effect]}


def test_a_method_has_the_home_of_the_class_that_defines_it() -> None:
    homes = {
        "_io": Log().write,
        "numpy": ROW.tofile,
        __name__: ROW.total,
        "datetime": Stamp.now,
        "builtins": [].append,
        "math": math.sin,
    }
    assert {home: home_of(one) for home, one in homes.items()} == {home: home for home in homes}


@pytest.mark.parametrize("kind", [list, dict, set, collections.deque, collections.OrderedDict, collections.Counter,
                                  collections.defaultdict, np.ndarray])  # fmt: skip
def test_what_changes_a_container_is_known(kind: type) -> None:
    """Whatever is not among `CHANGING` gives a value, for all that Python and NumPy have."""
    gives = {
        "copy", "count", "index", "fromkeys", "get", "items", "keys", "values", "difference", "intersection",
        "isdisjoint", "issubset", "issuperset", "symmetric_difference", "union", "elements", "most_common", "total",
        "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "compress", "conj",
        "conjugate", "cumprod", "cumsum", "diagonal", "dot", "dump", "dumps", "flatten", "getfield", "item", "max",
        "mean", "min", "newbyteorder", "nonzero", "prod", "ptp", "ravel", "repeat", "reshape", "round",
        "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "to_device", "tobytes", "tofile", "tolist",
        "tostring", "trace", "transpose", "var", "view",
    }  # fmt: skip
    methods = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
    assert methods <= gives | CHANGING
    in_place = {name for name in dir(kind) if re.fullmatch(r"__(set|del)item__|__i(?!nit)\w+__", name)}
    assert in_place - {"__iter__", "__invert__", "__index__", "__int__"} <= CHANGING


# ---- names, attributes and code

#: Functions, each with one that does something else: all but the last differ from `def f(a): return a + 1`.
OTHERS = (
    "def f(a): return a + 2",
    "def f(a): return a + 1.0",
    "def f(a): return a + True",
    "def f(a): return a - 1",
    "def f(b): return b + 1",
    "def f(a, /): return a + 1",
    "def f(*, a): return a + 1",
    "def f(*a): return a + 1",
    "def f(a): return g + 1",
    "def f(a): return (lambda: a + 1)()",
    "def f(a):\n    try: return a + 1\n    except: pass",
    "\n\n# elsewhere\ndef f(a):  # as well\n    return a + 1",
)


@pytest.mark.parametrize("text", OTHERS)
def test_what_code_means_is_all_but_its_place(text: str) -> None:
    def meaning(text: str) -> Any:
        space: dict[str, Any] = {}
        exec(compile(text, "meant.py", "exec"), space)
        return codes.meaning_of(space["f"].__code__)

    assert (meaning(text) == meaning("def f(a): return a + 1")) == (text is OTHERS[-1])


TEXT = """\
import os.path as paths, math
OUTER = 1
class Box:
    __size = 3.0
    def area(self, height, *others, key=None):
        global __count, written
        import collections.abc
        from os import path
        __count = self.__size * height
        def deeper(x):
            nonlocal height
            height = OUTER + self.length
            return [len(y) for y in x if absent]
        del written
        return deeper, "a_text", "no text"
def around():
    held = 2
    def f(given):
        return held + given + late + OUTER + nothing
    early = f
    g = [lambda a: a, lambda b: held]
    late = 4
    del late
    return f, *g
async def waits(): pass
f, first, second = around()
"""


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    found = types.ModuleType("read")
    linecache.cache["read.py"] = (len(TEXT), None, TEXT.splitlines(True), "read.py")
    exec(compile(TEXT, "read.py", "exec"), vars(found))
    return found


#: Of each function: what is asked of its code or its tree, and the answer.
ANSWERS: list[tuple[str, Callable[[Any, Any], Any], Any]] = [
    (
        "Box.area",
        lambda f, tree: sorted(codes.global_names(f.__code__)),
        ["OUTER", "_Box__count", "absent", "len", "written"],
    ),
    ("Box.area", lambda f, tree: sorted(codes.imports_of(f)), ["collections.abc", "os", "os.path"]),
    ("Box.area", lambda f, tree: codes.named_by(f.__code__) >= {"length", "a_text", "_Box__size", "path"}, True),
    ("Box.area", lambda f, tree: "no text" in codes.named_by(f.__code__), False),
    ("Box.area", lambda f, tree: [one.co_name for one in codes.codes_in(f.__code__)][:2], ["area", "deeper"]),
    ("Box.area", lambda f, tree: stored_names(tree) >= {"_Box__count", "written", "height", "y", "deeper"}, True),
    ("Box.area", lambda f, tree: parameter_names(tree), {"self", "height", "others", "key", "x"}),
    ("Box.area", lambda f, tree: tree.body[0].names, ["_Box__count", "written"]),
    ("Box.area", lambda f, tree: codes.captured_by(f), {"OUTER": 1}),
    ("f", lambda f, tree: codes.captured_by(f), {"held": 2, "OUTER": 1}),
    ("f", lambda f, tree: sorted(codes.cells_of(f)), ["held", "late"]),
    ("f", lambda f, tree: {k: codes.is_filled(v) for k, v in codes.cells_of(f).items()}, {"held": True, "late": False}),
    ("f", lambda f, tree: codes.place_of(f.__code__), Span("read.py", 18)),
    ("f", lambda f, tree: span_of(tree.body[0].value, "read.py"), Span("read.py", 19, 15, 19, 52)),
    ("first", lambda f, tree: ast.unparse(tree.body[0]), "return a"),
    ("second", lambda f, tree: ast.unparse(tree.body[0]), "return held"),
]


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_what_code_says(module: types.ModuleType, number: int) -> None:
    name, ask, answer = ANSWERS[number]
    function = operator.attrgetter(name)(module)
    _, tree = definition_of(function.__code__, function.__globals__, name)
    found = ask(function, tree)
    assert found == answer


#: Statements, each with the names that it assigns, in functions within it, too.
BINDINGS = {
    "a = b.c = d[e] = 1": "a",
    "a, [b, *c] = d": "abc",
    "a: int = 1": "a",
    "a += b": "a",
    "del a, b.c": "a",
    "print(a := b)": "a",
    "[a for a in b if (c := a)]": "ac",
    "for a, b in c: pass": "ab",
    "with a as (b, c): pass": "bc",
    "import a, b.d as c": "ac",
    "from b import a, d as c": "ac",
    "def a(b): c = 1": "ac",
    "async def a(): pass": "a",
    "class a(b): c = 1": "ac",
    "try: pass\nexcept b as a: pass": "a",
    "match b:\n    case [a, *c]: pass": "ac",
    "match b:\n    case {'d': a, **c}: pass": "ac",
    "match b:\n    case c(d=a) as e: pass\n    case _: pass": "ae",
    "a = lambda b: b": "a",
}


@pytest.mark.parametrize("text", BINDINGS)
def test_every_way_to_assign_a_name_is_known(text: str) -> None:
    tree = ast.parse(text)
    assert stored_names(tree) == set(BINDINGS[text])
    of_python = symtable.symtable(text, "bound.py", "exec")
    known = {one.get_name() for one in of_python.get_symbols() if one.is_assigned() or one.is_imported()}
    assert known <= stored_names(tree)


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("held", CaptureKind.CELL, 2),
        ("late", CaptureKind.CELL, MISSING),
        ("OUTER", CaptureKind.NAME, 1),
        ("len", CaptureKind.BUILTIN, len),
        ("nothing", None, None),
    ],
)
def test_what_a_name_stands_for(module: types.ModuleType, name: str, kind: CaptureKind | None, value: Any) -> None:
    found = find_name(name, codes.cells_of(module.f), vars(module))
    assert (None if found is None else (found.kind, found.value)) == (kind and (kind, value))
    if found is not None and value is not MISSING:
        assert find_again(found.kind, found.owner, found.key) is value


class Answering:
    """An object whose class has code for what is asked."""

    slot = 1

    def __init__(self) -> None:
        self.own = 2
        self.asked = 0

    def method(self) -> None: ...

    @property
    def computed(self) -> int:
        self.asked += 1
        return 3

    @functools.cached_property
    def kept(self) -> int:
        self.asked += 1
        return 4

    def __getattr__(self, name: str) -> int:
        self.__dict__["asked"] += 1
        return 5


class AnsweringAlways:
    own = 1

    def __getattribute__(self, name: str) -> int:
        raise AssertionError("it is asked")


def test_no_code_of_the_users_runs_for_an_attribute() -> None:
    one = Answering()
    found = {name: attribute_of(one, name) for name in ("slot", "own", "computed", "kept", "other")}
    assert found == {"slot": 1, "own": 2, "computed": MISSING, "kept": MISSING, "other": MISSING}
    assert attribute_of(one, "method") == one.method and one.asked == 0
    assert attribute_of(AnsweringAlways(), "own") is MISSING
    assert attribute_of(np, "random") is np.random and attribute_of(ti, "f32") is ti.f32


@pytest.mark.parametrize(
    ("module_name", "file", "is_library"),
    [
        ("tinote.lang", "", True),
        ("numpy.linalg", "", True),
        ("collections.abc", "", True),
        ("pytest", "", True),
        ("__main__", "", False),
        ("", "", False),
        (None, "", False),
        (__name__, "", False),
        ("made_here", "<string>", False),
        ("made_here", "<frozen made>", True),
        ("made_here", pytest.__file__, True),
        ("made_here", "made.abi3.so", sys.platform != "win32"),
    ],
)
def test_whose_a_module_is(module_name: str | None, file: str, is_library: bool) -> None:
    assert origins.is_library(module_name, file) == is_library
    assert not is_library or origins.is_ours(module_name) == (module_name == "tinote.lang")


def test_what_is_known_by_its_name() -> None:
    def nested() -> None: ...

    nested.__module__ = "tinote.kit.fft"
    unnamed = lambda: None  # noqa: E731
    unnamed.__module__, unnamed.__qualname__ = "tinote.kit.fft", "<lambda>"
    known = [math.sin, len, int, origins.is_ours, nested, unnamed, test_whose_a_module_is]
    assert [origins.is_known_by_name(one) for one in known] == [True] * 4 + [False] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the source of `f` is not available"),
        ("def f(:\n    pass\n", "the source of `f` cannot be parsed"),
        ("x = 1\n", None),
    ],
)
def test_a_definition_that_is_not_there(text: str, message: str | None) -> None:
    space: dict[str, Any] = {}
    exec(compile("def f():\n    pass\n", "missing.py", "exec"), space)
    linecache.cache["missing.py"] = (len(text), None, text.splitlines(True), "missing.py")
    if message is None:
        assert isinstance(definition_of(space["f"].__code__, space, "f")[1], ast.Assign), "whoever asks sees it"
        return
    with pytest.raises(KernelSyntaxError, match=message):
        definition_of(space["f"].__code__, space, "f")
