"""Objects that have members by name: structs, fields of structs and argument packs, as Python reads and writes them.

A member goes before a method of ours of its name, as in kernels: `p.items` is the member where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

_T = TypeVar("_T")


class Named:
    """Base of what has members: they are what is in its `__dict__`, where Python looks before it takes a method of the
    class. What else it has is in slots; its properties are `behind_members`.
    """

    __slots__ = ("__dict__", "__weakref__")

    @property
    def __tinote_methods__(self) -> Mapping[str, Any]:
        """The methods that the user has given it; they go before ours, too."""
        return {}

    def __tinote_has__(self, name: str) -> bool:
        """Whether a member, or a method of the user's, has this name."""
        return name in vars(self) or name in self.__tinote_methods__

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *vars(self), *self.__tinote_methods__}


if TYPE_CHECKING:

    def behind_members(ours: _T) -> _T: ...

else:

    class behind_members:  # noqa: N801 (used like `property`)
        """A method or property of `Named`: a member, and a method of the user's, of its name go before it."""

        def __init__(self, ours: Any) -> None:
            self.ours = ours
            self.__doc__ = ours.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, owner: Any, kind: type | None = None) -> Any:
            theirs = None if owner is None else owner.__tinote_methods__.get(self._name)
            return (self.ours if theirs is None else theirs).__get__(owner, kind)


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
