"""Files that are edited between the import and the decoration of a kernel: what Python runs is what is compiled, or an
error says that the text is gone.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

import tinote as ti
from tinote.compiler.function_source import function_source
from tinote.errors import KernelSyntaxError

TEXT = """\
import tinote as ti

def make(scale):
    def square(x: ti.f64) -> ti.f64:
        y = x * scale
        for _ in range(2):
            y += 1.0
        return y * y

    return square

def plain(a: ti.f64, b: ti.f64 = 2.0) -> ti.f64:
    \"\"\"Adds.\"\"\"
    return a + b

class Box:
    __size = 3.0

    def area(self, h: ti.f64) -> ti.f64:
        return self.__size * h

    class Inner:
        def twice(self, h: ti.f64) -> ti.f64:
            return 2 * h
"""


def loaded(file: Path, text: str) -> ModuleType:
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(f"edited_{file.parent.name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions(module: Any) -> dict[str, Any]:
    return {
        "make": module.make(2.0),
        "plain": module.plain,
        "area": module.Box.area,
        "twice": module.Box.Inner.twice,
    }


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path / "edited.py"


@pytest.mark.parametrize("name", ["make", "plain", "area", "twice"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("import tinote as ti\n", "import tinote as ti  # the same\n"),
        ("        y = x * scale\n", "        y = x * scale   # spaces and comments\n"),
        ("b: ti.f64 = 2.0", "b: ti.f64 = 7.0"),  # Python evaluated it before
    ],
)
def test_the_same_code_is_taken(file: Path, name: str, old: str, new: str) -> None:
    found = functions(loaded(file, TEXT))[name]
    file.write_text(TEXT.replace(old, new) if old else TEXT)
    assert callable(ti.func(found))


EDITS = [
    ("make", "y += 1.0", "y += 2.0"),
    ("make", "range(2)", "range(3)"),
    ("make", "y * y", "y * x"),
    ("make", "x * scale", "x * 2.0"),
    ("make", "x: ti.f64) -> ti.f64:\n        y", "z: ti.f64) -> ti.f64:\n        x = z\n        y"),
    ("plain", "a + b", "b + a"),
    ("plain", "a + b", "a - b"),
    ("plain", "return a + b", "return -0.0 + a + b"),
    ("plain", "(a: ti.f64, b", "(b: ti.f64, a"),
    ("plain", "def plain", "def other"),
    ("plain", "def plain", "def between(a: ti.f64, b: ti.f64):\n    return a\n\ndef plain"),
    ("plain", "import tinote as ti\n", ""),
    ("plain", "def plain", "\n\n\n\n# Here it was.\n\ndef plain"),
    ("twice", TEXT[TEXT.index("def plain") :], "pass" + "\n" * 20),
    ("twice", TEXT[TEXT.index("def plain") :], "pass\n" + "# nothing\n" * 20),
    ("area", "self.__size * h", "self.__size + h"),
    ("area", "self.__size", "self.size"),
    ("twice", "2 * h", "2.0 * h"),
    ("twice", "2 * h", "True * h"),
]


@pytest.mark.parametrize(("name", "old", "new"), EDITS)
def test_other_code_is_refused(file: Path, name: str, old: str, new: str) -> None:
    found = functions(loaded(file, TEXT))[name]
    assert old in TEXT
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(KernelSyntaxError) as caught:
        ti.func(found)
    assert caught.value.span.file == str(file)


CELLS = """\
import marimo
app = marimo.App()

@app.cell
def _(ti, scale):
    def half(x: ti.f64) -> ti.f64:
        return x / scale
    kept = half
    return half,
"""


def test_cells_of_marimo_are_compared_too(file: Path) -> None:
    """They are functions in the file, and their bodies run as modules."""
    ti.init()
    file.write_text(CELLS)
    cell = ast.parse(CELLS).body[2]
    assert isinstance(cell, ast.FunctionDef)
    space = {"ti": ti, "scale": 4.0, "__name__": "cells"}
    exec(compile(ast.Module(cell.body[:-1], []), str(file), "exec"), space)
    assert ti.kernel(space["half"])(2.0) == 0.5
    file.write_text(CELLS.replace("x / scale", "x * scale"))
    with pytest.raises(KernelSyntaxError, match="there is another definition here now"):
        ti.kernel(space["half"])


def test_an_older_file_put_in_its_place_is_noticed(file: Path) -> None:
    found = loaded(file, TEXT).plain
    other = file.with_name("older.py")
    other.write_text(TEXT.replace("a + b", "a - b"))
    os.utime(other, (1, 1))
    other.replace(file)
    with pytest.raises(KernelSyntaxError, match="there is another definition here now"):
        ti.kernel(found)


def test_a_kernel_decorated_after_an_edit_runs_what_python_read(file: Path) -> None:
    ti.init()
    module = loaded(file, TEXT)
    file.write_text(TEXT + "\n# edited further down\n")
    assert ti.kernel(module.plain)(1.0, 2.0) == 3.0
    assert ti.kernel(module.make(3.0))(1.0) == 25.0


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_every_form_of_definition_compares(file: Path, future: str) -> None:
    """Code that was compiled in place is found equal to what its text gives alone."""
    text = future + (
        "import functools\n"
        "def same(f): return f\n"
        "def outer(p, q):\n"
        "    r = p\n"
        "    class Local:\n"
        "        __secret = 1\n"
        "        @same\n"
        "        @functools.lru_cache(maxsize=len('abc'))\n"
        "        def f(self, a, /, b: 'int' = 3, *rest, c, d: float = (1, 2.0), **more):\n"
        "            'A docstring.'\n"
        "            global g\n"
        "            g = lambda z, w=[i for i in rest]: (z, w, q, self.__secret)\n"
        "            def inner(k=frozenset({1, 2})):\n"
        "                nonlocal a\n"
        "                a += 1\n"
        "                return [r for _ in range(k)] if k in {1, 2, 3} else None\n"
        "            try:\n"
        "                assert a > 0, 'no'\n"
        "            except (ValueError, KeyError) as error:\n"
        "                return -0.0, 1e400, 3j, b'x', error\n"
        "            return inner(), g, f'{a!r:>{b}}', __debug__\n"
        "    return Local.f\n"
    )
    module = loaded(file, text)
    function = module.outer(1, 2)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    assert function_source(function).name == "f"
    file.write_text(text.replace("1e400", "1e300"))
    with pytest.raises(KernelSyntaxError, match="has changed"):
        function_source(function)


ASSERTING = """\
def positive(a: float) -> float:
    assert a > 0, "positive"
    return a * 2
"""


@pytest.mark.parametrize("hook", ["pytest", "another"])
def test_what_an_import_hook_compiled_is_compared_too(
    file: Path, hook: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved with the same text, the definition is taken; with another, even within the `assert`, it is refused."""
    file.write_text(ASSERTING)
    loader = Doubling("edited", str(file))
    if hook == "pytest":
        loader = AssertionRewritingHook(pytestconfig)
        loader.set_session(None)
    spec = importlib.util.spec_from_file_location("edited", file, loader=loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain: dict[str, Any] = {}
    exec(compile(ASSERTING, str(file), "exec"), plain)
    assert module.positive.__code__.co_code != plain["positive"].__code__.co_code
    file.write_text(ASSERTING + "# saved\n")
    assert function_source(module.positive).text == ASSERTING
    for old, new in (("a > 0", "a > 1"), ('"positive"', '"negative"'), ("a * 2", "a * 3")):
        file.write_text(ASSERTING.replace(old, new))
        with pytest.raises(KernelSyntaxError, match="has changed"):
            function_source(module.positive)


class Doubling(importlib.machinery.SourceFileLoader):
    """An import hook that changes the tree: every `return` gives a tuple of two."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # pyright: ignore
        tree = ast.parse(data, path)
        for one in ast.walk(tree):
            if isinstance(one, ast.Return) and one.value is not None:
                one.value = ast.copy_location(ast.Tuple([one.value, one.value], ast.Load()), one.value)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
