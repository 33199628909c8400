"""Source text that goes with functions: compiling them needs it, and so do messages."""

from __future__ import annotations

import linecache
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from tinote.lang.shipping.references import captured_by, is_importable


class SourceText:
    """The text of a file or cell. Where it arrives, `linecache` has it from then on."""

    __slots__ = ("__weakref__", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    def __reduce__(self) -> Any:
        return arrived, (self.file, self.text)


#: Of one text there is one object, so that a pickle holds it once.
_known: weakref.WeakValueDictionary[tuple[str, str], SourceText] = weakref.WeakValueDictionary()


def source_text(file: str) -> SourceText:
    """The text of a file or cell as Python has it now."""
    text = "".join(linecache.getlines(file))
    found = _known.get((file, text))
    if found is None:
        found = _known[file, text] = SourceText(file, text)
    return found


def arrived(file: str, text: str) -> SourceText:
    """A text from another process."""
    if text and "".join(linecache.getlines(file)) != text:
        # Without a time of change: nobody looks for the file again.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return SourceText(file, text)


def source_texts(functions: Iterable[types.FunctionType]) -> list[SourceText]:
    """The texts of functions, and of the plain functions that they name, as far as these go by value."""
    files = dict.fromkeys(one.__code__.co_filename for one in _reached(functions))
    return [source_text(file) for file in files]


def _reached(functions: Iterable[types.FunctionType]) -> Iterator[types.FunctionType]:
    waiting, seen = list(functions), set[int]()
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        for value in captured_by(function).values():
            if isinstance(value, types.FunctionType) and not is_importable(value):
                waiting.append(value)
