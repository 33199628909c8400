"""Another distribution that puts files into the package's folder is noticed: on the public index, `tinote` is one."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import pytest

from tinote.cli.doctor import doctor
from tinote.distribution import other_owners, warn_of_namesakes


def installed(folder: Path, name: str, version: str, *files: str) -> None:
    """What pip leaves of a distribution with these files."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files), "utf-8")
    for file in files:  # Python 3.12 and later leave out what is not there.
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).touch()
    importlib.invalidate_caches()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which Python finds packages, with ours and another one."""
    (tmp_path / "tinote").mkdir()
    installed(tmp_path, "tinote-lang", "0.2.0", "tinote/__init__.py")
    installed(tmp_path, "tinote-notes", "3.0", "tinote_notes/__init__.py", "tinote.pth")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_without_another_owner_nothing_is_said(folder: Path) -> None:
    assert other_owners() == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_namesakes(folder / "tinote")


def test_another_owner_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed(folder, "tinote", "1.2.1", "tinote/__init__.py", "tinote/notes.py")
    installed(folder, "notes-for-tinote", "7", "tinote/more/__init__.py")
    with pytest.warns(
        UserWarning, match=r"another distribution, tinote 1\.2\.1, has files in .* install tinote-lang again"
    ):
        warn_of_namesakes(folder / "tinote")
    assert other_owners() == ["notes-for-tinote 7", "tinote 1.2.1"]
    doctor()
    assert "WARNING        tinote 1.2.1 owns files in a folder tinote/ too: uninstall it" in capsys.readouterr().out
