"""The tutorials: each runs, and they are a series. The first notebook lists them, and each says what it gives, how long
it takes, what it needs, what to try, and which one is next.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from manual.tutorials import executed_for_site
from nbformat import NotebookNode

from tests.browser.warm_kernels import forked_kernels
from tinote.runtime.process_locks import process_lock

PROJECT = Path(__file__).resolve().parents[1]
NOTEBOOKS = PROJECT / "notebooks"
WELCOME = "00_welcome.ipynb"


class Row(NamedTuple):
    """Of the table: the picture, the file, the minutes, and what comes before: a tutorial's number or words."""

    picture: str
    file: str
    minutes: str
    needs: str


def cells(file: str) -> list[NotebookNode]:
    return nbformat.read(NOTEBOOKS / file, as_version=4).cells


def rows() -> list[Row]:
    text = "\n".join(cell.source for cell in cells(WELCOME) if cell.cell_type == "markdown")
    line = r"^\| !\[\]\((.+?)\) \| \[.+?\]\((\w+\.ipynb)\).*\| (\d+) \| (.+?) \|$"
    return [Row(*found) for found in re.findall(line, text, re.MULTILINE)]


ROWS = rows()
ORDER = [row.file for row in ROWS]


def execute(file: str, folder: Path, variables: Mapping[str, str]) -> None:
    """Execute a tutorial as for the web site, unless `folder` has what another test of this run has left of that."""
    folder.mkdir(exist_ok=True)
    with process_lock(folder, file), forked_kernels("matplotlib.pyplot"):
        executed_for_site(NOTEBOOKS / file, folder, variables)


@pytest.mark.parametrize("file", [WELCOME, *ORDER])
def test_it_runs(file: str, shared_folder: Path, shared_code: dict[str, str]) -> None:
    """From the first cell to the last one: a cell that fails, and is not tagged as one that does, fails the test."""
    execute(file, shared_folder / "tutorials", shared_code)


@pytest.mark.parametrize("file", [WELCOME, ORDER[0]])
def test_nbval_validates_it(file: str, shared_code: dict[str, str]) -> None:
    """These two; all of them by the same command with the folder."""
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "--nbval-lax", "--nbval-current-env"]
    command = [sys.executable, "-m", "pytest", *options, str(NOTEBOOKS / file)]
    done = subprocess.run(command, cwd=PROJECT, env={**os.environ, **shared_code}, capture_output=True, text=True)
    code = sum(cell.cell_type == "code" for cell in cells(file))
    assert done.returncode == 0 and f"{code} passed" in done.stdout, done.stdout[-3000:]


def test_the_first_notebook_lists_all_others() -> None:
    assert sorted([WELCOME, *ORDER]) == sorted(file.name for file in NOTEBOOKS.glob("*.ipynb"))


def test_the_readme_gives_the_same_minutes_and_order() -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    shown = re.findall(r"\]\(notebooks/(\w+\.ipynb)\) (\d+)", readme)
    assert shown[1:] == [(row.file, row.minutes) for row in ROWS] and shown[0][0] == WELCOME


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_it_begins_with_what_one_will_have_and_what_it_takes(row: Row) -> None:
    first = cells(row.file)[0].source
    assert f"![What you will have]({row.picture})" in first and (NOTEBOOKS / row.picture).is_file()
    assert "\n**In the end** you have " in first
    taken = re.search(r"^\*(\d+) minutes\. Needs (.+)\.\*$", first, re.MULTILINE)
    assert taken is not None and taken[1] == row.minutes
    if row.needs.isdigit():
        before = next(file for file in ORDER if int(file[:2]) == int(row.needs))
        assert taken[2] == f"tutorial [{row.needs}]({before})" and ORDER.index(before) < ORDER.index(row.file)
    else:
        assert all(word in taken[2] for word in row.needs.split(", "))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_it_ends_with_exercises(row: Row) -> None:
    last = cells(row.file)[-1]
    assert last.cell_type == "markdown"
    assert re.search(r"Worth trying:?\n\n- \*\*", last.source)


@pytest.mark.parametrize(("file", "following"), list(pairwise(ORDER)))
def test_it_leads_to_the_next_one(file: str, following: str) -> None:
    last = cells(file)[-1].source.splitlines()[-1]
    assert last.startswith("Next: [") and last.endswith(f"]({following}).")


def needs(file: str) -> list[str]:
    """The libraries that a tutorial needs besides what the README installs, as its metadata say."""
    return nbformat.read(NOTEBOOKS / file, as_version=4).metadata.get("tinote", {}).get("needs", [])


def first_code(file: str) -> str:
    return next(cell.source for cell in cells(file) if cell.cell_type == "code").replace("%load_ext tinote\n", "")


@pytest.mark.parametrize("file", [file for file in ORDER if needs(file)])
def test_it_says_at_once_which_library_is_missing(file: str) -> None:
    without = f"import sys; sys.modules.update(dict.fromkeys({needs(file)}))\n"
    done = subprocess.run(
        [sys.executable, "-c", without + first_code(file)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: this tutorial needs ")
    assert f"pip install {' '.join(needs(file))}" in done.stderr.splitlines()[-1]


def test_the_tutorials_about_libraries_are_those_with_needs() -> None:
    assert [file for file in ORDER if needs(file)] == ["09_neural_controller.ipynb", "11_on_a_gpu.ipynb"]
