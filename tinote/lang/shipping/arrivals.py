"""Fields received together with an object from another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


class _Arrivals:
    def __init__(self) -> None:
        self._open: ContextVar[list[Any] | None] = ContextVar("tinote_arrivals", default=None)

    def add(self, field: Any) -> None:
        """A field has arrived."""
        found = self._open.get()
        if found is not None:
            found.append(field)

    @contextmanager
    def collected(self) -> Iterator[list[Any]]:
        """The fields that arrive within the block."""
        found: list[Any] = []
        token = self._open.set(found)
        try:
            yield found
        finally:
            self._open.reset(token)


arrivals = _Arrivals()
