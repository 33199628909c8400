"""Source text that is sent along with functions: compilation and messages need it.

cloudpickle from 3.1.3 on leaves out which file a function's code is from. It goes along, too.
"""

from __future__ import annotations

import linecache
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from tinote.compiler.pysource.origins import is_library
from tinote.lang.shipping.references import held_by, is_importable, reached
from tinote.lang.shipping.tokens import Tokenised


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
    """The texts of functions, and of the plain functions and methods that they reach, as far as these go by value."""
    return [source_text(file) for file in dict.fromkeys(one.__code__.co_filename for one in _reached(functions))]


class FunctionsInFile:
    """Functions that go by value, and the text that they are in. Where they arrive, their code names the file."""

    __slots__ = ("functions", "text")

    def __init__(self, functions: list[types.FunctionType], text: SourceText) -> None:
        self.functions = functions
        self.text = text

    def __reduce__(self) -> Any:
        return _functions_arrived, (self.functions, self.text)


def functions_by_file(functions: Iterable[types.FunctionType]) -> list[FunctionsInFile]:
    """Functions, and the plain functions and methods that they reach, as far as these go by value."""
    found: dict[str, list[types.FunctionType]] = {}
    for one in _reached(functions):
        found.setdefault(one.__code__.co_filename, []).append(one)
    return [FunctionsInFile(several, source_text(file)) for file, several in found.items()]


def _functions_arrived(functions: list[types.FunctionType], text: SourceText) -> FunctionsInFile:
    for function in functions:
        if function.__code__.co_filename != text.file:
            function.__code__ = in_file(function.__code__, text.file)
    return FunctionsInFile(functions, text)


def in_file(code: types.CodeType, file: str) -> types.CodeType:
    """The same code, and what is defined in it, as if it had been read from another file."""
    constants = [in_file(one, file) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    return code.replace(co_filename=file, co_consts=tuple(constants))


def _reached(functions: Iterable[types.FunctionType]) -> Iterator[types.FunctionType]:
    for value in reached(list(functions), _held):
        if isinstance(value, types.FunctionType) and not is_importable(value):
            yield value


def _held(value: Any) -> Iterable[Any]:
    """What goes along with a value, as far as that does not bring the texts of its functions itself."""
    if isinstance(value, Tokenised) or (isinstance(value, types.FunctionType | type) and is_importable(value)):
        return ()
    kind = type(value)
    if not is_library(kind.__module__) and any(
        getattr(kind, name) is not getattr(object, name) for name in _PICKLED_BY
    ):
        return (kind,)  # what of its attributes goes along it says itself
    return held_by(value)


#: What a class defines that decides itself what of its objects is pickled.
_PICKLED_BY = ("__reduce_ex__", "__reduce__", "__getstate__")
