"""What an installation puts where other programs look for it: a wheel, and a checkout by `pip install -e .`."""

from __future__ import annotations

import configparser
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
BUILD = (
    "import sys; from hatchling.build import build_editable, build_wheel; print(globals()[sys.argv[1]](sys.argv[2]))"
)


@pytest.fixture(scope="module", params=["build_wheel", "build_editable"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """What pip builds before it installs."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, request.param, str(folder)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(folder / done.stdout.split()[-1])


def test_jupyterlab_finds_the_extension(wheel: zipfile.ZipFile) -> None:
    source = PROJECT / "tinote/viz/labextensions/tinote"
    found = {name.partition(".data/data/")[2]: name for name in wheel.namelist()}
    for file in filter(Path.is_file, source.rglob("*")):
        place = f"share/jupyter/labextensions/tinote/{file.relative_to(source).as_posix()}"
        assert wheel.read(found[place]) == file.read_bytes()
    assert {f"share/tinote/notebooks/{file.name}" for file in (PROJECT / "notebooks").glob("*.ipynb")} <= set(found)


def test_the_commands_and_the_exporter_are_registered(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    entries = configparser.ConfigParser()
    entries.read_string(wheel.read(name).decode())
    assert dict(entries["console_scripts"]) == {"tinote": "tinote.cli:main"}
    assert dict(entries["nbconvert.exporters"]) == {
        "tinote_html": "tinote.cli.html_export:OfflineHTMLExporter",
        "tinote_page": "tinote.cli.html_export:PageExporter",
    }


def test_everything_of_the_package_is_there(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    if any(name.endswith(".pth") for name in names):
        return  # The package is the checkout.
    for file in (PROJECT / "tinote").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert file.relative_to(PROJECT).as_posix() in names
