"""What tells one template argument from another."""

from __future__ import annotations

from typing import Any

__all__ = ["identity_of"]


def identity_of(value: Any) -> Any:
    """A key for an argument: a number by type and value, anything else by identity."""
    if isinstance(value, bool | int | float | str):
        return type(value), value
    return _Same(value)


class _Same:
    """Equal only to a wrapper of the same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
