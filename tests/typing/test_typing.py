"""What type checkers say of users' programs: nothing where they are right, and the mistakes where they are not.

In the programs next to this file, `# error` marks each faulty line, with the checker's name where only one finds it.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jedi
import pytest

import tinote as ti
from tests.typing.stubs import MODULES, names_of, path_of, stub_of
from tinote.lang.data import declarations, ndarrays
from tinote.lang.data.matrix import Matrix

PROGRAMS = sorted(path for path in Path(__file__).parent.glob("*.py") if path.stem not in ("stubs", "test_typing"))


def marked(program: Path, checker: str) -> set[tuple[str, int]]:
    """The lines with the mark for both checkers, or for this one."""
    lines = program.read_text(encoding="utf-8").splitlines()
    marks = ("# error", f"# error: {checker}")
    return {(program.name, number) for number, line in enumerate(lines, 1) if line.endswith(marks)}


def is_right(program: Path) -> bool:
    return not program.stem.startswith("wrong")


def by_pyright(folder: Path) -> dict[tuple[str, int], str]:
    """The errors that pyright finds in a folder outside of the checkout, as a user's editor does."""
    found = json.loads(run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable, "."))
    errors = [one for one in found["generalDiagnostics"] if one["severity"] == "error"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1): one["message"] for one in errors}


def by_mypy(folder: Path) -> dict[tuple[str, int], str]:
    """The errors that mypy finds."""
    out = run(folder, "mypy", "--check-untyped-defs", "--no-error-summary", ".")
    matches = re.findall(r"^(.+?):(\d+): error: (.*)$", out, re.MULTILINE)
    assert matches, out
    return {(Path(file).name, int(line)): message for file, line, message in matches}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("checker", "check"), [("pyright", by_pyright), ("mypy", by_mypy)])
def test_checkers_find_the_mistakes_and_nothing_else(
    checker: str, check: Callable[[Path], dict[tuple[str, int], str]], tmp_path: Path
) -> None:
    for program in PROGRAMS:
        (tmp_path / program.name).write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    expected = set().union(*(marked(program, checker) for program in PROGRAMS))
    found = check(tmp_path)
    assert {place: found[place] for place in found.keys() - expected} == {}
    assert expected - found.keys() == set()


# A view waits for somebody.
RUN = [one for one in PROGRAMS if is_right(one) and one.stem != "views"]


@pytest.mark.parametrize("program", RUN, ids=[one.stem for one in RUN])
def test_right_programs_run(program: Path) -> None:
    runpy.run_path(str(program))


@pytest.mark.parametrize("name", MODULES)
def test_stubs_have_every_public_name_and_no_other(name: str) -> None:
    """They are what `python -m tests.typing.stubs` writes."""
    text = path_of(name).read_text(encoding="utf-8")
    assert text == stub_of(MODULES[name]), "run `python -m tests.typing.stubs`"
    bound = re.findall(r"^(?:from .* import \w+ as (?!_)|)(\w+)(?:: \w+| = _\w+|)$", text, re.MULTILINE)
    assert sorted({one for one in bound if not one.startswith("_")}) == names_of(MODULES[name])


def parameters_of(made: Any) -> set[str]:
    return set(inspect.signature(made).parameters)


def test_what_is_described_for_checkers_is_what_runs() -> None:
    """Where a module shows type checkers another signature than the one that runs."""
    options = parameters_of(declarations.field) - {"dtype", "shape", "dt"}
    assert set(declarations.FieldOptions.__annotations__) == options
    assert set(ndarrays.ArrayOptions.__annotations__) == parameters_of(ti.ndarray) - {"dtype", "shape"}
    described = {
        node.name: {one.arg for one in node.args.kwonlyargs}
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(Matrix))))
        if isinstance(node, ast.FunctionDef) and node.name in ("field", "ndarray")
    }
    assert described["field"] == parameters_of(ti.Matrix.field) == parameters_of(ti.Vector.field) | {"m"}
    assert described["ndarray"] == parameters_of(ti.Matrix.ndarray) == parameters_of(ti.Vector.ndarray) | {"m"}
    operators = {
        target.id
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(Matrix))))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.startswith("__")
    }
    made = {
        name
        for name, one in vars(Matrix).items()
        if getattr(one, "__qualname__", "").startswith(("_elementwise.", "<lambda>"))
    }
    assert operators - {"__hash__", "__array_priority__"} == made and len(made) > 30


FACADES = [ti, ti.ad, ti.viz, ti.types, ti.algorithms, ti.linalg, ti.profiler, ti.tools, ti.ui]


@pytest.mark.parametrize("module", FACADES, ids=[one.__name__ for one in FACADES])
def test_completion_shows_public_names_alone(module: Any) -> None:
    names = dir(module)
    assert not [name for name in names if name.startswith("_")]
    modules = {name for name in names if inspect.ismodule(getattr(module, name))}
    if module is ti:
        assert "lang" in modules and not modules & {"compiler", "ir", "runtime", "errors", "magics", "cli", "source"}
        assert set(module.__all__) | {"f32", "sin", "cpu", "ij", "Tape"} <= set(names)
    else:
        assert not modules and set(names) == set(module.__all__)
    assert not {"Any", "annotations", "partial", "refusing", "importlib", "np", "sys"} & set(names)


def test_every_function_has_help_where_it_is_hovered_over() -> None:
    """As IPython's `?` and completion show it; a function of the language has that of its definition."""
    without = [
        name
        for name in names_of(ti)
        if callable(getattr(ti, name)) and not (inspect.getdoc(getattr(ti, name)) or "").strip()
    ]
    assert without == []
    for name in ("sin", "sqrt", "clamp", "static", "random", "kernel", "field", "sweep"):
        (found,) = jedi.Interpreter(f"ti.{name}", [{"ti": ti}]).help(1, len(f"ti.{name}"))
        assert found.docstring(raw=True).split() == inspect.getdoc(getattr(ti, name)).split(), name
    completed = {one.name for one in jedi.Interpreter("ti.ad.value_", [{"ti": ti}]).complete()}
    assert completed == {"value_and_grad", "value_and_grad_and_hvp"}


def test_the_package_says_that_it_has_types() -> None:
    """Without this file checkers treat every name as unknown, once the package is installed."""
    assert path_of("__init__").with_name("py.typed").is_file()
