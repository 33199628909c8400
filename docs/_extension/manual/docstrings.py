"""Docstrings in NumPy's format: their parts, and the same in the site's Markdown.

Summary in one line.                        # Docstring.summary

What else there is to say.                  # Docstring.text

Parameters                                  # Docstring.sections["Parameters"]
----------
x : number                                  # an Entry
    What it is.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cached_property

LISTS = ("Parameters", "Attributes", "Methods", "Returns", "Yields", "Raises", "Warns")
"""Sections that are lists of entries."""
SECTIONS = (*LISTS, "Notes", "Examples", "References", "See Also")
_HEAD = re.compile(rf"^({'|'.join(SECTIONS)})\n-+$", re.MULTILINE)
_SESSION = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A parameter, a result, an error: `head` is `name : type`, the name of an error, or a type."""

    head: str
    text: str

    @property
    def names(self) -> list[str]:
        """The names that it describes: `x, y : float` are two, `*items` is one."""
        return [name.strip().removesuffix("()") for name in self.head.partition(" : ")[0].split(",")]


class Docstring:
    """The parts of a docstring."""

    def __init__(self, text: str | None) -> None:
        first, *rest = _HEAD.split(inspect.cleandoc(text or ""))
        self.summary, _, body = first.strip().partition("\n\n")
        self.text = body.strip()
        self.sections = {name: part.strip("\n") for name, part in zip(rest[::2], rest[1::2], strict=True)}

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The names in each list."""
        return {section: [n for one in self.entries(section) for n in one.names] for section in LISTS}

    def entries(self, section: str) -> list[Entry]:
        """The entries of a list."""
        found = re.findall(r"^(\S.*)((?:\n(?:[ \t].*)?$)*)", self.sections.get(section, ""), re.MULTILINE)
        return [Entry(head.strip(), inspect.cleandoc(text).strip()) for head, text in found]

    def markdown(self) -> str:
        """The docstring for the site."""
        parts = [self.summary, self.text]
        for section, text in self.sections.items():
            shown = _definitions(self.entries(section)) if section in LISTS else _sessions(text)
            parts += [f"```{{rubric}} {section}\n```", shown]
        return "\n\n".join(filter(None, parts))


def _sessions(text: str) -> str:
    return _SESSION.sub(lambda session: f"```pycon\n{session[0].rstrip()}\n```", text)


def _definitions(entries: list[Entry]) -> str:
    """A list of definitions: a name in code with its type, and what it is below. Names alone are one line."""
    parts = [f"{_term(entry)}\n: {entry.text.replace(chr(10), chr(10) + '  ')}" for entry in entries if entry.text]
    names = ", ".join(_term(entry) for entry in entries if not entry.text)
    return "\n\n".join(filter(None, [*parts, names]))


def _term(entry: Entry) -> str:
    names, colon, kind = entry.head.partition(" : ")
    term = ", ".join(f"`{name.strip()}`" for name in names.split(","))
    return f"{term} [{kind}]{{.tinote-type}}" if colon else term
