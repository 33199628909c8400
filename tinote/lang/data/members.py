"""Members of an element of a field of structs, as Python reads and writes them."""

from __future__ import annotations

from typing import Any


class Members:
    """Where the members of a struct that Python got from a field stand: at `key` of the fields of `members`. What is
    written to them is written there.
    """

    __slots__ = ("_fields", "_key")

    def __init__(self, fields: dict[str, Any], key: Any) -> None:
        self._fields = fields
        self._key = key

    def write(self, name: str, value: Any) -> None:
        """A member gets a new value."""
        self._fields[name][self._key] = value
