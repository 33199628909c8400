"""Operators of whole fields, which have no arithmetic in Python: each says what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn


class NoArithmetic:
    """A base of what is memory and not a value. It has no `__float__`: that would make it a number for NumPy."""

    __slots__ = ()

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            "a field is memory, not a number: compute with `x[i]` in a kernel, with `x[None]` of a field of shape (), "
            "or with the array `x.to_numpy()`"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "a field cannot be iterated in Python; loop over range(x.shape[0]), or over the field in a kernel"
        )

    if not TYPE_CHECKING:  # for type checkers, it has none of them
        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _refuse
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _refuse
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rand__ = __ror__ = __rxor__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __invert__ = __abs__ = __round__ = _refuse
