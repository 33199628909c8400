"""The examples of the manual's pages run, and print what the pages show."""

from __future__ import annotations

import difflib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import tinote as ti
from tests.pages import programs, rendered

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"

# Pages whose examples run in a test of their own, which looks at more than what they print.
ELSEWHERE = {
    "derivatives.md": "autodiff/test_worked_examples.py",
    "gpu.md": "lang/test_gpu_page.py",
}


def pages() -> list[str]:
    """The pages that are written by hand and have examples."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    found = subprocess.run(command, cwd=DOCS, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in sorted(found) if programs((DOCS / name).read_text("utf-8"))]


# What is shown there leaves out the simulation, or what type checkers are shown faults of.
SKETCHES = {"sweeps.md", "typing.md"}

# Pages with a library that no extra installs, by the marker that asks for it.
MARKED = {"how_to/use_pytorch.md": pytest.mark.torch}

PAGES = [
    pytest.param(name, marks=MARKED.get(name, ()), id=name) for name in pages() if name not in {*ELSEWHERE, *SKETCHES}
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    ti.profiler.clear_kernel_profiler_info()  # measurements outlive a session
    yield
    ti.init()


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_print_what_the_page_shows(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--update-golden` writes what they print into the page."""
    monkeypatch.chdir(tmp_path)  # for what they save
    page = DOCS / name
    shown = page.read_text("utf-8")
    found = rendered(shown, page.stem)
    if request.config.getoption("--update-golden"):
        page.write_text(found, "utf-8")
    elif found != shown:
        lines = difflib.unified_diff(shown.splitlines(), found.splitlines(), "the page", "printed", lineterm="")
        pytest.fail(f"docs/{name} (--update-golden accepts what was printed):\n" + "\n".join(lines))


@pytest.mark.parametrize(("name", "test"), ELSEWHERE.items())
def test_other_pages_have_their_own_test(name: str, test: str) -> None:
    assert f'"{name}"' in (PROJECT / "tests" / test).read_text("utf-8")


def test_an_example_that_prints_something_else_is_found() -> None:
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\nText.\n\n```python\nx = 1\n```\n\n```python\n1 / 0\n```\n"
    found = rendered(page, "page")
    assert found == page.replace("2\n", "1\n") + "\n```text\nZeroDivisionError: division by zero\n```\n"
    assert rendered(found, "page") == found
    assert rendered(found.replace("division by", "..."), "page") == found.replace("division by", "...")
