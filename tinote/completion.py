"""The names that completion shows of an object: those that its classes document, and not what other modules call."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable

_LISTED = re.compile(r"^(?:Methods|Attributes)\n-+\n((?:.+\n?)+)", re.MULTILINE)


class Documented:
    """Base of classes whose docstrings list their methods and attributes in NumPy's format."""

    __slots__ = ()

    def __dir__(self) -> Iterable[str]:
        own = [name for name in super().__dir__() if name.startswith("__")]
        return sorted({*own, *documented_names(type(self))})


@functools.cache
def documented_names(kind: type) -> tuple[str, ...]:
    """What a class and its bases list under "Methods" and "Attributes"; all public names where docstrings are left out
    (`python -OO`).
    """
    texts = [one.__dict__.get("__doc__") for one in kind.__mro__]
    sections = [section for text in texts if text for section in _LISTED.findall(inspect.cleandoc(text))]
    lines = [line.partition(" : ")[0] for section in sections for line in section.splitlines()]
    found = [name for line in lines if not line.startswith(" ") for name in line.split(", ")]
    return tuple(dict.fromkeys(found)) if sections else tuple(name for name in dir(kind) if not name.startswith("_"))
