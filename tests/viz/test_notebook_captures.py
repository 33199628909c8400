"""Of each live view of the notebooks: whether its step is captured, by itself and by `ti.capture`, and if not why.

A view is made as its notebook makes it, of those statements alone that it depends on: what merely computes with the
same names (fits, long runs, pictures) is left out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from IPython.core.interactiveshell import InteractiveShell

import tinote as ti
from tinote.lang.capture import automatic
from tinote.lang.session.state import session
from tinote.viz.live.simulation import LiveSimulation

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
VIEWS = ("Particles", "Image", "Scene", "Plot")
FRAMES = 12

#: By notebook: how the step of each of its views runs; of one that is not captured, why.
CAPTURED = {
    "00_welcome": ["replayed"],
    "01_first_ten_minutes": ["replayed"],
    "02_autodiff_gravity": ["replayed", "replayed"],
    "03_live_views_and_pages": ["replayed"],
    "05_fitting_and_control": ["replayed"],
    "06_fluid_live": ["replayed", "replayed"],
    "07_cloth_in_space": ["replayed"],
    "09_neural_controller": ["replayed"],
    "10_port_a_taichi_program": ["replayed"],
}


class Piece(NamedTuple):
    """A statement, or a cell of kernels: the names that it changes and those that it reads."""

    text: str
    changed: set[str]
    read: set[str]
    makes_view: bool


def root(node: ast.AST) -> str:
    """The name that an expression begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def names(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names that a statement changes, and all that stand in it."""
    changed: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            changed.add(one.name)
        elif isinstance(one, ast.alias):
            changed.add((one.asname or one.name).partition(".")[0])
        elif isinstance(one, ast.Name | ast.Attribute | ast.Subscript) and isinstance(one.ctx, ast.Store):
            changed.add(root(one))
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and root(one.func) not in ("np", "plt"):
            changed.add(root(one.func))  # x.from_numpy(…), threads.append(…), ti.init(…)
    read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    if isinstance(node, ast.Assert):
        changed = set()
    elif isinstance(node, ast.FunctionDef):  # what it does when it is called is not done here
        own = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        outer = {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
        own |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        changed, read = {node.name}, read - (own - outer)
    return changed, read | changed


def pieces(file: Path) -> list[Piece]:
    """What a notebook is made of."""
    found: list[Piece] = []
    defined: set[str] = set()
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code" or "raises-exception" in cell["metadata"].get("tags", []):
            continue
        is_kernels = text.startswith("%%kernel")
        plain = "\n".join("" if line.startswith("%") else line for line in text.splitlines())
        statements = ast.parse(plain).body
        defined |= {one.name for each in statements for one in ast.walk(each) if isinstance(one, ast.FunctionDef)}
        makes = any(root(call.func) in (*VIEWS, "ti") and call_name(call) in VIEWS for call in calls(statements))
        if is_kernels or makes:
            given = [names(one) for one in statements]
            found.append(Piece(text, set().union(*[a for a, _ in given]), set().union(*[b for _, b in given]), makes))
        else:
            kept = [one for one in statements if not is_run(one, defined)]
            found += [Piece(source_of(plain, one), *names(one), False) for one in kept]
    return found


def source_of(text: str, statement: ast.stmt) -> str:
    """The lines of a statement, its decorators included."""
    first = min([one.lineno for one in getattr(statement, "decorator_list", [])] + [statement.lineno])
    return "\n".join(text.splitlines()[first - 1 : statement.end_lineno])


def is_run(statement: ast.stmt, defined: set[str]) -> bool:
    """Whether it is a loop, or a block, that runs what the notebook has defined."""
    if not isinstance(statement, ast.For | ast.While | ast.With):
        return False
    return any(call_name(call) in defined for call in calls([statement]))


def calls(statements: list[ast.stmt]) -> list[ast.Call]:
    return [one for statement in statements for one in ast.walk(statement) if isinstance(one, ast.Call)]


def call_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def needed(given: list[Piece]) -> list[Piece]:
    """Those that make views, and what they depend on."""
    kept: list[Piece] = []
    wanted: set[str] = set()
    for piece in reversed(given):
        if piece.makes_view or piece.changed & wanted:
            kept.insert(0, piece)
            wanted |= piece.read
    return kept


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch, shared_code: dict[str, str]) -> Iterator[list[LiveSimulation]]:
    """The views that are made."""
    made: list[LiveSimulation] = []
    init = LiveSimulation.__init__
    for name, value in shared_code.items():
        monkeypatch.setenv(name, value)

    def noting(self: LiveSimulation, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(LiveSimulation, "__init__", noting)
    monkeypatch.setattr(automatic, "LONGEST_STEP", 1e9)
    yield made
    InteractiveShell.instance().reset(new_session=True)
    ti.reset()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_steps_of_views_are_captured(file: Path, views: list[LiveSimulation], monkeypatch: pytest.MonkeyPatch) -> None:
    given = needed(pieces(file))
    assert bool(given) == (file.stem in CAPTURED)
    if not given:
        return
    shell = InteractiveShell.instance()
    shell.reset(new_session=True)
    shell.run_line_magic("load_ext", "tinote")
    found: list[str] = []
    for piece in given:
        before = len(views)
        shell.run_cell(piece.text).raise_error()
        for view in views[before:]:
            view.advance(FRAMES)
            assert view.captured is not None
            found.append(view.captured.state if view.captured.state == "replayed" else view.captured.reason)
            step = view.frames.step._function
            launches, state = session.launches, [field.to_numpy().tobytes() for field in session.fields]
            program = ti.capture(step)
            program()
            assert program.is_captured
            assert (session.launches, [field.to_numpy().tobytes() for field in session.fields]) != (launches, state)
    assert found == CAPTURED[file.stem]
