"""The project's habits, each as a test: style, types, floors, a light import, consistent packaging."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

PROJECT = Path(__file__).resolve().parents[1]
HEAVY = ("llvmlite", "ipywidgets", "anywidget", "matplotlib", "IPython", "tqdm", "tinote.lang.ad", "tinote.viz")

FIRST_GRADIENT = """\
import sys
import tinote as ti

ti.init()
x = ti.field(ti.f32, shape=(), needs_grad=True)
loss = ti.field(ti.f32, shape=(), needs_grad=True)

@ti.kernel
def square():
    loss[None] = x[None] ** 2

x[None] = 3.0
with ti.ad.Tape(loss):
    square()
print(x.grad[None], [name for name in ("tqdm", "importlib.metadata", "IPython") if name in sys.modules])
"""


def check(*command: str) -> None:
    """Runs a tool in the project's root; what it says is the message of the failure."""
    __tracebackhide__ = True
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def script(name: str) -> str:
    """A console script of the environment that runs the tests."""
    return str(Path(sys.executable).with_name(name))


def test_ruff_finds_nothing() -> None:
    check(sys.executable, "-m", "ruff", "check", "--output-format=concise", ".")


def test_code_is_formatted() -> None:
    check(sys.executable, "-m", "ruff", "format", "--check", ".")


def test_types_check() -> None:
    check(sys.executable, "-m", "pyright", "--pythonpath", sys.executable)


def test_imports_point_downwards() -> None:
    check(script("lint-imports"), "--no-cache")


def test_a_bare_import_is_light() -> None:
    program = f"import json, sys, tinote; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout) == []


def test_a_first_gradient_loads_no_progress_bars(tmp_path: Path) -> None:
    """They take a fifth of its time."""
    program = tmp_path / "first.py"
    program.write_text(FIRST_GRADIENT, encoding="utf-8")
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.split() == ["6.0", "[]"]


def project_table() -> dict[str, object]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_readme_shows_one_command_to_start_and_one_to_test() -> None:
    """`.ci/run` takes its command from here, so that the two cannot differ."""
    commands = re.findall(r"^python3 -m venv .*$", (PROJECT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    last = [command.split("&&")[-1].strip() for command in commands]
    assert last == [".venv/bin/tinote lab", ".venv/bin/pytest -n auto"]
    assert all("pip install" in command for command in commands)
    assert "'.[test]'" in commands[1]


def test_binder_pins_satisfy_the_requirements() -> None:
    lines = (PROJECT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    normal = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins.items()}
    for text in project_table()["dependencies"]:
        requirement = Requirement(text)
        assert requirement.name in normal, f"{requirement.name} is not pinned for Binder"
        assert requirement.specifier.contains(normal[requirement.name]), text


def test_the_tests_run_on_this_tree() -> None:
    """An installed copy of an older version would pass where this one fails."""
    origin = subprocess.run(
        [sys.executable, "-c", "import tinote; print(tinote.__file__)"],
        cwd=PROJECT.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert Path(origin.stdout.strip()).resolve().parent == PROJECT / "tinote"
    assert metadata.version("tinote") == project_table()["version"]


def test_notebooks_keep_their_pictures_and_no_error() -> None:
    """They are read on a code-hosting site, where nobody runs them."""
    files = sorted((PROJECT / "notebooks").glob("*.ipynb"))
    assert files
    for file in files:
        document = nbformat.read(file, as_version=4)
        nbformat.validate(document)
        outputs = [output for cell in document.cells for output in cell.get("outputs", [])]
        assert any("image/png" in output.get("data", {}) for output in outputs), f"{file.name} shows no picture"
        unexpected = [
            cell.source
            for cell in document.cells
            if "raises-exception" not in cell.metadata.get("tags", [])
            and any(output.output_type == "error" for output in cell.get("outputs", []))
        ]
        assert unexpected == [], file.name
        for error, view in pairwise([*outputs, {}]):
            if error.output_type == "error":
                shown = view.get("data", {}).get("text/html", "")
                assert f'class="tinote-error-view" role="group" aria-label="{error.ename}"' in shown, file.name
                assert str(Path.home()) not in shown and sys.prefix not in shown and str(PROJECT) not in shown


#: Installing the distribution of this name from an index, with whatever tool: there it is another project's.
FROM_AN_INDEX = re.compile(
    r"\b(?:(?:pip3?|pipx|conda|mamba) install|(?:uv|poetry|pdm) add|uvx|pipx run)"
    r"(?: +-{1,2}[\w-]+(?:[= ](?!tinote|['\"])[^\s-]\S*)?)* +[\"'`]?tinote\b"
)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("pip install tinote", True),
        ("python -m pip install -U 'tinote[gpu]'", True),
        ("pip3 install --upgrade tinote==0.1.0", True),
        ("%pip install tinote", True),
        ("uv add tinote", True),
        ("uvx tinote lab", True),
        ("pip install -e .", False),
        ("pip install -e '.[gpu]'", False),
        ("pip install imageio-ffmpeg", False),
        ("pip uninstall tinote", False),
    ],
)
def test_what_counts_as_installing_from_an_index(line: str, wrong: bool) -> None:
    assert bool(FROM_AN_INDEX.search(line)) is wrong


def test_nobody_is_told_to_install_another_project() -> None:
    """The name is taken on the public index: messages name the library that is missing, the README an extra of the
    checkout.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name and name != "tests/test_gates.py"]
    assert len(names) > 100
    found = []
    for name in names:
        file = PROJECT / name
        if file.is_file():
            text = file.read_bytes().decode("utf-8", "replace")
            found += [f"{name}: {match[0]}" for match in FROM_AN_INDEX.finditer(text)]
    assert found == []


def test_the_workflow_and_the_hooks_run_the_projects_own_commands() -> None:
    workflow = (PROJECT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.search(r"^ +- run: \.ci/run$", workflow, re.MULTILINE) and (PROJECT / ".ci" / "run").is_file()
    hooks = (PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    commands = re.findall(r"^ +entry: \.venv/bin/(\S+)", hooks, re.MULTILINE)
    assert commands == ["ruff", "ruff", "lint-imports", "pytest"]
    assert "tests/test_gates.py" in hooks


def test_the_guide_names_files_that_exist() -> None:
    guide = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:tinote|tests|benchmarks|notebooks|examples)/[\w./-]*)`", guide)
    assert len(set(paths)) > 30
    assert [path for path in paths if not (PROJECT / path).exists()] == []


def test_the_changes_end_with_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased" and project_table()["version"] in headings
