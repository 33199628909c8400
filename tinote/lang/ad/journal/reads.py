"""What Python has read of fields while something is recorded: a new value that it writes there afterwards is taken for
the old one shifted by a constant, as in `x[i] += 1`; any other is a constant.
"""

from __future__ import annotations

import operator
from typing import Any

from tinote.ir.buffers import Buffer

__all__ = ["PythonReads"]


class PythonReads:
    """Elements and components that Python has read, and not written since."""

    def __init__(self) -> None:
        self._read: set[tuple[Buffer, tuple[Any, ...]]] = set()

    def note(self, buffer: Buffer, position: tuple[Any, ...]) -> None:
        """Python reads an element, or a component of one (`Recorder.read`)."""
        self._read.add((buffer, _key(position)))

    def shifts(self, buffer: Buffer, position: Any) -> bool:
        """Python writes there; whether it has read what it replaces."""
        if not self._read or not isinstance(position, tuple):
            return False
        key = _key(position)
        if len(key) > buffer.rank:  # to get at a component, Python fetches the element
            self._read.discard((buffer, key[: buffer.rank]))
        if (buffer, key) not in self._read:
            return False
        self._read.remove((buffer, key))
        return True


def _key(position: tuple[Any, ...]) -> tuple[Any, ...]:
    """A position as something that can be looked up; it may have lists and slices for the components."""
    return tuple([operator.index(k) if hasattr(k, "__index__") else repr(k) for k in position])
