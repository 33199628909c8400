"""Operators and conversions of whole fields, which have none in Python: each says what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from tinote.errors import KernelTypeError
from tinote.source import caller


class NoArithmetic:
    """A base of what is memory and not a value. What makes a number of an object is there to say so, too: NumPy takes
    a field as an array (`__array__`) before it asks for any of it.
    """

    __slots__ = ()

    def _refuse(self: Any, *_: Any) -> NoReturn:
        raise KernelTypeError(
            f"'{self.name}' is a field, which is memory and not a number", caller(), in_place_of(self)
        )

    def __iter__(self: Any) -> Iterator[Any]:
        raise KernelTypeError(
            f"the field '{self.name}' cannot be iterated in Python",
            caller(),
            hint=f"loop over `range({self.name}.shape[0])`, or over the field in a kernel",
        )

    def __bool__(self: Any) -> bool:
        numbers = f"`{self.name}.to_numpy().any()` asks its numbers"
        if self.is_placed and self.shape == () and not self.element:
            numbers = f"`{self.name}[None]` is its value"
        raise KernelTypeError(
            f"the truth of the field '{self.name}' is not defined",
            caller(),
            hint=f"`{self.name} is not None` asks whether there is one, {numbers}",
        )

    if not TYPE_CHECKING:  # for type checkers, it has none of them
        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _refuse
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _refuse
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rxor__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __invert__ = __abs__ = __round__ = _refuse
        __float__ = __int__ = __complex__ = __index__ = _refuse

        def __format__(self, specification: str) -> str:
            return self._refuse() if specification else str(self)


def in_place_of(value: Any) -> str:
    """What to write in place of a field where a number is wanted; "" for other objects."""
    if not isinstance(value, NoArithmetic):
        return ""
    field: Any = value
    if field.is_placed and not field.shape:
        return f"its value is `{field.name}[None]`"
    return f"compute with `{field.name}[i]` in a kernel, or with the array `{field.name}.to_numpy()`"
