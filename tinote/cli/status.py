"""The command's exit status, and its error messages."""

from __future__ import annotations

import difflib
from pathlib import Path

FAILED = 1
UNUSABLE = 2  # as it was called
INTERRUPTED = 130


class Unusable(Exception):
    """The command cannot be used as it was called; the message says why."""


def reason(error: Exception) -> str:
    """Why something cannot be done, in words: of an error of the system without its number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def existing_file(path: Path, *, folders: bool = False) -> Path:
    """`path`, where there is such a file, or with `folders` a folder. Raises `Unusable`, with the names of files in
    its folder that were perhaps meant.
    """
    if path.is_file() or (folders and path.is_dir()):
        return path
    known = [file.stem for file in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
    close = [str(path.with_name(stem + path.suffix)) for stem in difflib.get_close_matches(path.stem, known, 3)]
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise Unusable(f"there is no file {str(path)!r}{hint}")


def existing_target(target: str) -> tuple[Path, str]:
    """The file of FILE:KERNEL, and the kernel's name; empty if only a file is named. Raises `Unusable`."""
    file, colon, name = target.rpartition(":")
    if not colon:
        file, name = target, ""
    if not file:
        raise Unusable(f"{target!r} names no file: write FILE:KERNEL, such as sim.py:step")
    path = existing_file(Path(file))
    if path.suffix not in (".py", ".ipynb"):
        raise Unusable(f"{file} is neither a Python file (.py) nor a notebook (.ipynb)")
    return path, name
