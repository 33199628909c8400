"""The log of a checkpointed loop's steps: events and numbers from Python, compared when a step runs again.

An event is a `What` and a 64-bit word: the number from Python, or a checksum of several. Differentiated numbers follow
from reads and arithmetic, so their use and computation is compared, not their values.
"""

from __future__ import annotations

import math
import struct
import zlib
from array import array
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import BoundArray
from tinote.ir.nodes import Buffer
from tinote.lang.data.matrix import numpy_type
from tinote.lang.kernels.changed_inputs import compiled_constants

#: Greatest number of values of an array that are stored one by one, for messages; of larger arrays, a checksum of all
#: is added.
_MOST_SHOWN = 4
#: Relative tolerance of numbers that Python has computed from sums in unspecified order.
_ROUNDING = 1e-6
_MASK = (1 << 64) - 1


class ElementPosition(NamedTuple):
    """A position in a field's array; as text if only NumPy understands it."""

    buffer: Buffer
    position: Hashable

    def __str__(self) -> str:
        buffer, position = self.buffer, self.position
        if not isinstance(position, tuple):
            return f"'{buffer.name}'"
        rank = 1 if position[:1] == (...,) else buffer.rank
        index = ["..." if one is ... else str(one) for one in position]
        for axis, first in enumerate(buffer.offset[:rank]):
            if isinstance(position[axis], int):
                index[axis] = str(position[axis] + first)
        rest = "".join([f"[{one}]" for one in index[rank:]])
        return f"'{buffer.name}[{', '.join(index[:rank]) or 'None'}]{rest}'"


class Made(NamedTuple):
    """A position in an array that a derivative within the step makes: the number of the array, and the text."""

    order: int
    text: str

    def __str__(self) -> str:
        return self.text


def place(buffer: Buffer, position: Any) -> ElementPosition:
    """A position that Python writes to or reads."""
    if isinstance(position, tuple):
        return ElementPosition(
            buffer, tuple([one if isinstance(one, int) or one is ... else repr(one) for one in position])
        )
    return ElementPosition(buffer, position if position is ... else repr(position))


class What(NamedTuple):
    """The kind of an event: a `verb` with placeholders for the names of `subjects`, and perhaps a number. `kind`: of
    that number: `f` a float, `i` an integer, `n` a differentiated one, `c` a checksum of several.
    """

    verb: str
    subjects: tuple[Hashable, ...] = ()
    kind: str = ""

    def __str__(self) -> str:
        return self.verb.format(*map(_name, self.subjects))

    def shown(self, word: int) -> str:
        """The event as text, with its number."""
        return f"{self} {self.number(word)}".rstrip()

    def differs_in_memory(self, other: What) -> bool:
        """Whether it differs only in fields and arrays; a step makes new ones each time."""
        return self.kind == other.kind and self.verb == other.verb and self._elsewhere == other._elsewhere

    @property
    def _elsewhere(self) -> list[Any]:
        places = [one.position if isinstance(one, ElementPosition) else one for one in self.subjects]
        return [None if isinstance(one, Buffer) else one for one in places]

    def number(self, word: int) -> str:
        """The number in words."""
        if self.kind == "f":
            return repr(_float(word))
        if self.kind == "i":
            return str(word - (word >> 63 << 64))
        return {"n": "a number that is differentiated", "c": "several numbers", "": ""}[self.kind]


def _name(subject: Any) -> str:
    if isinstance(subject, Buffer):
        return str(ElementPosition(subject, ...))
    if isinstance(subject, Specialisation):
        constants = compiled_constants(subject)
        return f"'{subject.source.name}'{constants and f' (compiled with {constants})'}"
    return str(subject)


#: A step has returned.
END = What("it ends")


class StepLog:
    """The events of all steps in their first run, step by step."""

    def __init__(self) -> None:
        self._numbers: dict[What, int] = {}  # equal events are stored once
        self._whats: list[What] = []
        self._events = array("L")
        self._words = array("Q")
        self._begins: list[int] = []  # the first event of each step; -1: it was not logged

    def begin(self, *, logged: bool) -> None:
        """The next step runs for the first time."""
        self._begins.append(len(self._events) if logged else -1)

    def begin_of(self, t: int) -> int:
        """The position of a step's first event; -1 where none was logged."""
        return self._begins[t]

    def add(self, what: What, word: int) -> None:
        """Add an event of the step under way."""
        self._events.append(self._number(what))
        self._words.append(word)

    def is_same(self, at: int, what: What, word: int) -> bool:
        """Whether a step does now exactly what the event at a position was."""
        return self._numbers.get(what) == self._events[at] and self._words[at] == word

    def difference(self, at: int, what: What, word: int, *, rounds: bool) -> str | None:
        """The difference of a step's present event from the one at a position.

        `rounds`: floats may differ by rounding.
        """
        other, before = self._whats[self._events[at]], self._words[at]
        if what != other:
            now, then = what.shown(word), other.shown(before)
            if what.differs_in_memory(other):
                then += ": with other fields or arrays"
            elif now == then:
                then += ": compiled with something else"
            return f"this time {now}, and the first time {then}"
        if what.kind not in ("f", "i"):
            return f"{what} other numbers than the first time"
        if rounds and what.kind == "f" and math.isclose(_float(word), _float(before), rel_tol=_ROUNDING):
            return None
        return f"{what.shown(word)} this time, and {what.number(before)} the first time"

    def _number(self, what: What) -> int:
        number = self._numbers.get(what)
        if number is None:
            number = self._numbers[what] = len(self._whats)
            self._whats.append(what)
        return number


def _float(word: int) -> float:
    return float(struct.unpack("d", struct.pack("Q", word))[0])


def number_word(value: Any) -> tuple[str, int]:
    """A number as its kind and its word."""
    if isinstance(value, float | np.floating):
        return "f", struct.unpack("Q", struct.pack("d", value))[0]
    return "i", int(value) & _MASK


def arrays_of_others(formals: Sequence[Buffer], values: Sequence[Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The names of the external arrays of a launch, and their contents."""
    for formal, bound in zip(formals, values, strict=False):
        if isinstance(bound, BoundArray) and bound.buffer is None:
            dtype = np.dtype(numpy_type(formal.dtype))
            yield formal.name, np.frombuffer(bound.memory.view(), dtype, bound.nbytes // dtype.itemsize)


def array_words(numbers: np.ndarray[Any, Any]) -> list[tuple[int, str, int]]:
    """Numbers of an array with their positions; -1 for the checksum of all."""
    flat = numbers.ravel()
    found = [(k, *number_word(one)) for k, one in enumerate(flat[:_MOST_SHOWN].tolist())]
    if flat.size > _MOST_SHOWN:
        found.append((-1, "c", zlib.crc32(np.ascontiguousarray(flat).data, hash(numbers.shape) & 0xFFFFFFFF)))
    return found
