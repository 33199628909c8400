"""What the command's exit status says, and how it tells why."""

from __future__ import annotations

import difflib
from pathlib import Path

__all__ = ["FAILED", "INTERRUPTED", "UNUSABLE", "missing_file", "reason"]

FAILED = 1
UNUSABLE = 2  # as it was called
INTERRUPTED = 130


def reason(error: Exception) -> str:
    """Why something cannot be done, in words: of an error of the system without its number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error)


def missing_file(path: Path) -> str:
    """That there is no such file, with the names of files in its folder that were perhaps meant."""
    known = [file.stem for file in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
    close = [str(path.with_name(stem + path.suffix)) for stem in difflib.get_close_matches(path.stem, known, 3)]
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"there is no file {str(path)!r}{hint}"
