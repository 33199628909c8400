"""Members of an element of a field of structs, as Python reads and writes them."""

from __future__ import annotations

from typing import Any

from tinote.lang.data.fields import Field

__all__ = ["Members"]


class Members:
    """Where the members of a struct that Python got from a field stand: at `key` of the fields of `members`. It is told
    of what is read and written of them.
    """

    __slots__ = ("_fields", "_key")

    def __init__(self, fields: dict[str, Any], key: Any) -> None:
        self._fields = fields
        self._key = key

    def read(self, name: str) -> None:
        """A member is read; one that is a struct tells it itself."""
        member = self._fields[name]
        if isinstance(member, Field):
            member._read_position(self._key)

    def write(self, name: str, value: Any) -> None:
        """A member gets a new value."""
        self._fields[name][self._key] = value
