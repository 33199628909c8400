"""What the documentation tells newcomers to do, done: new environments, made by the documented commands and nothing
else, run every tutorial and every example, build the web site, and install what is distributed.

These take half an hour and packages from an index, so that they run when they are asked for: `pytest -m fresh`.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import termios
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

PROJECT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted(file.name for file in (PROJECT / "notebooks").glob("*.ipynb"))
EXAMPLES = sorted(file.name for file in (PROJECT / "examples").glob("*.py"))
NEED_MORE = {"optax_fit.py": "jax", "optimisers.py": "optuna", "torch_controller.py": "torch"}
"""Examples that need a library which no installation brings."""

TUTORIALS_NEED_MORE = {
    name: needed
    for name in TUTORIALS
    if (needed := nbformat.read(PROJECT / "notebooks" / name, as_version=4).metadata.get("tinote", {}).get("needs"))
}
"""The same of tutorials, as their metadata say."""

pytestmark = [pytest.mark.fresh, pytest.mark.slow, pytest.mark.timeout(3600)]


def environment() -> dict[str, str]:
    """The variables of a user's shell: nothing of the environment that runs the tests."""
    ours = ("PYTHON", "VIRTUAL_ENV", "TINOTE_", "PYTEST", "COV_")
    found = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    here = str(Path(sys.executable).parent)
    return {**found, "PATH": os.pathsep.join(one for one in found["PATH"].split(os.pathsep) if one != here)}


def run(command: str, folder: Path, seconds: float = 1800) -> str:
    """What a command of a shell prints; it has to succeed."""
    __tracebackhide__ = True
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment(), capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-5000:]}"
    return done.stdout + done.stderr


def command_of(page: str, end: str) -> str:
    """The documented command that makes an environment and ends in this, without its end."""
    text = (PROJECT / page).read_text("utf-8")
    [found] = re.findall(rf"^(python3 -m venv .*) && {re.escape(end)}", text, re.MULTILINE)
    return found


def clone(folder: Path) -> Path:
    """The files of the project that git knows or would add, as a clone has them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split("\0"):
        if name and (PROJECT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the environment of the README's first command."""
    folder = clone(tmp_path_factory.mktemp("clone"))
    run(command_of("README.md", ".venv/bin/tinote lab"), folder)
    return folder


def test_lab_opens_the_welcome_notebook(checkout: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [checkout / ".venv/bin/tinote", "lab", "--no-browser", f"--port={port}"]
    log = checkout / "lab.txt"
    variables = {**environment(), "JUPYTER_TOKEN": "tested"}
    with log.open("w") as out, subprocess.Popen(command, cwd=checkout, env=variables, stdout=out, stderr=out) as lab:
        try:
            names = ""
            for _ in range(120):
                try:
                    address = f"http://127.0.0.1:{port}/api/contents?token=tested"
                    names = urllib.request.urlopen(address, timeout=5).read().decode()
                    break
                except OSError:
                    time.sleep(1)
            assert all(f'"{name}"' in names for name in TUTORIALS), log.read_text()
            assert f"/lab/tree/{TUTORIALS[0]}" in log.read_text() and TUTORIALS[0] == "00_welcome.ipynb"
        finally:
            lab.terminate()
    changed = subprocess.run(["git", "check-ignore", "tinote-notebooks/00_welcome.ipynb"], cwd=PROJECT, check=False)
    assert changed.returncode == 0, "copies leave the clone as git knows it"


@pytest.mark.parametrize("name", TUTORIALS_NEED_MORE)
def test_a_tutorial_that_needs_more_says_so_in_its_first_cell(checkout: Path, tmp_path: Path, name: str) -> None:
    command = [checkout / ".venv/bin/tinote", "run", checkout / "notebooks" / name, "--html", tmp_path / "page.html"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "cell 1 of " in done.stderr and "cell 2 of " not in done.stderr
    assert all(f"pip install {library}" in done.stderr for library in TUTORIALS_NEED_MORE[name][:1])


@pytest.mark.parametrize("name", [name for name in TUTORIALS if name not in TUTORIALS_NEED_MORE])
def test_every_tutorial_runs(checkout: Path, tmp_path: Path, name: str) -> None:
    run(f".venv/bin/tinote run notebooks/{name} --html {tmp_path / 'page.html'}", checkout)
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in NEED_MORE])
def test_every_example_runs_without_arguments(checkout: Path, tmp_path: Path, name: str) -> None:
    said = run(f"{checkout / '.venv/bin/python'} {checkout / 'examples' / name}", tmp_path)
    assert said.strip() and "\r" not in said, "no bar of progress in what is no terminal"
    assert said.splitlines()[0].endswith("…"), "says at once what it does"
    written = [file.name for file in tmp_path.iterdir()]
    if "ti.viz.page(" in (PROJECT / "examples" / name).read_text("utf-8"):
        assert written == [name.replace(".py", ".html")] and written[0] in said
        assert ": runs, with " in said, "its view is no picture"
    else:
        assert not written


@pytest.mark.parametrize("name", ["maml.py", "implicit_cloth.py", "checkpointed_mpm.py"])
def test_a_long_example_shows_its_progress_on_a_terminal(checkout: Path, name: str) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))  # A terminal without width gets no bar.
    command = [checkout / ".venv/bin/python", checkout / "examples" / name]
    with subprocess.Popen(command, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs) as program:
        os.close(theirs)
        seen = b""
        try:
            while b"%|" not in seen:
                seen += os.read(ours, 1024)
        finally:
            program.kill()
            os.close(ours)


@pytest.mark.parametrize("name", NEED_MORE)
def test_an_example_that_needs_more_says_so_at_once(checkout: Path, tmp_path: Path, name: str) -> None:
    command = [checkout / ".venv/bin/python", checkout / "examples" / name]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(
        rf"this example needs libraries that are not installed: pip install {NEED_MORE[name]}.*\n", done.stderr
    )


def test_the_web_site_is_built_by_its_own_command(tmp_path: Path) -> None:
    folder = clone(tmp_path / "clone")
    build = ".venv/bin/sphinx-build -W docs docs/_build/html"
    run(f"{command_of('CONTRIBUTING.md', build)} && {build}", folder, 3400)
    pages = {file.name for file in (folder / "docs/_build/html/tutorials").glob("*.html")}
    assert {name.replace(".ipynb", ".html") for name in TUTORIALS} <= pages


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution, and the wheel that is built from it."""
    folder = clone(tmp_path_factory.mktemp("build"))
    run(f"{sys.executable} -m build --outdir dist .", folder)
    return folder / "dist"


@pytest.fixture(params=["*.whl", "*.tar.gz"])
def installed(built: Path, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder with an environment that has one of them."""
    [file] = built.glob(request.param)
    run(f"python3 -m venv .venv && .venv/bin/pip install '{file}'", tmp_path)
    yield tmp_path


def test_what_is_distributed_works_in_a_new_environment(installed: Path) -> None:
    said = run(".venv/bin/tinote --version && .venv/bin/tinote doctor", installed)
    assert said.startswith("tinote 0.") and "WARNING" not in said and f"({len(TUTORIALS)} notebooks)" in said
    program = "import tinote as ti; ti.init(); x = ti.field(ti.f32, 3); x.fill(2); print(x.to_numpy().sum())"
    assert run(f".venv/bin/python -W error -c '{program}'", installed).strip() == "6.0"
    copied = "from pathlib import Path; from tinote.cli.lab import copy_missing; from tinote.manual import tutorials;"
    run(f".venv/bin/python -c '{copied} copy_missing(tutorials(), Path(\"mine\"))'", installed)
    assert {file.name for file in (installed / "mine").glob("*.ipynb")} == set(TUTORIALS)
    assert (installed / "mine" / "pictures" / "01.png").is_file()
    welcome = nbformat.read(installed / "mine" / TUTORIALS[0], as_version=4)
    assert any("ti.viz.Particles" in cell.source for cell in welcome.cells)
    run(f".venv/bin/tinote run mine/{TUTORIALS[0]}", installed)


def test_the_source_distribution_has_what_the_tests_read(built: Path) -> None:
    [file] = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True)
    wanted = {name for name in tracked.stdout.splitlines() if not name.startswith((".github/", ".git", ".pre-commit"))}
    assert wanted - names == {"CODE_OF_CONDUCT.md", "SECURITY.md"}
