"""The shadows of memory: who read and wrote each of its elements (`autodiff/instrument.py` says what they hold).

A field's or ndarray's shadow is found by its buffer. Arrays that others manage are found by where they lie, so that an
array that is passed again, or a slice of one, meets what earlier launches did to it. (A view of the same memory as
numbers of another size counts as memory of its own.) That of a sparse field takes memory where it is accessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tinote.compiler.launch.native import BoundArray
from tinote.ir.buffers import family_of
from tinote.ir.checked_accesses import Word
from tinote.ir.nodes import Buffer
from tinote.lang.kernels.arguments import ExternalArray
from tinote.runtime.reserved import ReservedMemory

Array = np.ndarray[Any, Any]


@dataclass(eq=False)
class _Span:
    """The shadow of the bytes from `first` up to `last`, which hold numbers of `size` bytes. `owners` keep them alive,
    so that nothing else comes to lie there.
    """

    first: int
    last: int
    size: int
    words: Array
    owners: list[Any]


class Shadows:
    """All shadows of one tape: arrays of u32, of a buffer's shape, that of its elements and the words."""

    def __init__(self) -> None:
        self._own: dict[Buffer, Array] = {}
        self._reserved: dict[Buffer, ReservedMemory] = {}
        self._spans: list[_Span] = []

    def of(self, buffer: Buffer) -> Array:
        """The shadow of a field, an ndarray or an external array; it is made when first asked for."""
        if isinstance(buffer, ExternalArray):
            return self._of_external(buffer)
        found = self._own.get(buffer)
        if found is None:
            shape = (*[n or 0 for n in buffer.shape], *buffer.element, len(Word))
            if family_of(buffer).sparsity is None:
                found = np.zeros(shape, np.uint32)
            else:
                memory = self._reserved[buffer] = ReservedMemory(prod(shape) * np.dtype(np.uint32).itemsize)
                found = np.frombuffer(memory.view(), np.uint32).reshape(shape)
            self._own[buffer] = found
        return found

    def broken(self, buffer: Buffer) -> tuple[Array, Array]:
        """Where later accesses broke a rule: the place of an element a row, and the codes of both accesses. They are
        forgotten.
        """
        words = self.of(buffer)
        *shape, count = words.shape
        flat = words.reshape(-1, count)
        numbers: list[Array] = []
        memory = self._reserved.get(buffer)
        for first, last in [(0, words.nbytes)] if memory is None else memory.pieces():
            begin, end = first // flat.strides[0], -(-last // flat.strides[0])
            numbers.append(begin + np.flatnonzero(flat[begin:end, Word.LATER]))
        found = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
        pairs = flat[found][:, [Word.LATER, Word.EARLIER]]
        flat[found, Word.LATER] = 0
        places = np.unravel_index(found, shape) if shape else ()
        return np.stack(places, axis=-1) if shape else np.zeros((len(found), 0), np.int64), pairs

    def _of_external(self, buffer: ExternalArray) -> Array:
        size = buffer.dtype.size
        met = [s for s in self._spans if s.size == size and s.first <= buffer.last and buffer.first <= s.last]
        met = [s for s in met if (s.first - buffer.first) % size == 0]
        found = met[0] if len(met) == 1 and met[0].first <= buffer.first and buffer.last <= met[0].last else None
        if found is None:
            found = _joined(met, buffer, size)
            self._spans = [s for s in self._spans if s not in met] + [found]
        start = (buffer.first - found.first) // size
        count = (buffer.last - buffer.first) // size
        shape = (*buffer.bound.shape, *buffer.element, len(Word))
        return found.words[start : start + count].reshape(shape)


def _joined(met: list[_Span], buffer: ExternalArray, size: int) -> _Span:
    """One range over several and a new array."""
    first = min([buffer.first, *[s.first for s in met]])
    last = max([buffer.last, *[s.last for s in met]])
    words = np.zeros(((last - first) // size, len(Word)), np.uint32)
    for s in met:
        start = (s.first - first) // size
        words[start : start + len(s.words)] = s.words
    return _Span(first, last, size, words, [*[owner for s in met for owner in s.owners], buffer.bound.owner])


def bound_over(array: Array, dimensions: tuple[int, ...]) -> BoundArray:
    """A contiguous array as an argument of a launch, with these index dimensions."""
    address = array.__array_interface__["data"][0]
    return BoundArray(address, 0, 0, 0, dimensions, array.nbytes, True, None, array)
