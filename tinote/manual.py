"""Where the manual is: the tutorial notebooks of a source checkout or of the installed package, and in their folder the
section that explains an error.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from tinote.distribution import NAME

#: The page with one section for each class of errors, under the name of the class.
ERRORS = "errors.md"


class Section(NamedTuple):
    """A section of the manual: its heading, the file that it stands in, and the address of both for a link."""

    title: str
    file: str
    address: str


def checkout() -> Path | None:
    """The source checkout that this package is part of, if it is."""
    folder = Path(__file__).resolve().parents[1]
    return folder if (folder / "pyproject.toml").is_file() and (folder / "notebooks").is_dir() else None


def tutorials() -> Path:
    """The folder of the tutorial notebooks: the checkout's own, or the one that the installed package brought. Raises
    `FileNotFoundError`.
    """
    source = checkout()
    if source is not None:
        return source / "notebooks"
    for file in metadata.files(NAME) or ():
        if file.parts[-3:-1] == ("tinote", "notebooks"):
            return Path(str(file.locate())).resolve().parent
    raise FileNotFoundError("the tutorial notebooks are neither in a source checkout nor in the installed package")


def section_of(error: type[BaseException], folder: Path) -> Section:
    """The section about a class of errors; for one that the manual does not know, about the nearest class it is derived
    from. The address is relative to `folder`, where the reader's notebook is: a front end opens it in the same window.

    Raises `FileNotFoundError` when the manual is not here.
    """
    page = folder / ERRORS
    if not page.is_file():
        page = tutorials() / ERRORS
    titles = {line[3:].strip() for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("## ")}
    title = next((one.__name__ for one in error.__mro__ if one.__name__ in titles), "")
    address = quote(Path(os.path.relpath(page, folder)).as_posix()) + (f"#{title}" if title else "")
    return Section(title, ERRORS, address)
