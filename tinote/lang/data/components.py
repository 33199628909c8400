"""Components of vector and matrix fields: those of one element, and one component of every element, seen as a field of
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.errors import FieldError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.data.traced import stored
from tinote.runtime.seam import active_listener
from tinote.source import Span, caller


class ElementPlace:
    """Where the components of a vector or matrix that Python got from a field stand: the element of `field` at
    `position`. What is written to them is written there.
    """

    __slots__ = ("_field", "_position")

    def __init__(self, field: Any, position: tuple[int, ...]) -> None:
        self._field = field
        self._position = position

    def write(self, index: Any, value: Any) -> None:
        """The components at `index` get new values."""
        source = self._field._source(value)
        self._field._wrote(self._place(index), value)
        try:
            self._field._assign(self._place(index), source, value)
        except (TypeError, ValueError) as error:
            field = f"'{self._field.name}', a field of {self._field.dtype}"
            raise FieldError(f"cannot store {value!r} as components of {field}: {error}") from None

    def _place(self, index: Any) -> tuple[Any, ...]:
        return (*self._position, *(index if isinstance(index, tuple) else (index,)))


def get_component(whole: Any, component: tuple[int, ...]) -> ComponentField:
    """One component of a field, where it arrives from another process."""
    return whole.get_scalar_field(*component)


class ComponentField:
    """What `x.get_scalar_field(i, j)` gives: reading and writing it reads and writes `x`, in Python and in kernels. Its
    gradient is that component of `x.grad`.
    """

    def __init__(self, whole: Any, component: tuple[int, ...]) -> None:
        self._whole = whole
        self.component = component

    def __reduce__(self) -> Any:
        return get_component, (self._whole, self.component)

    def __tinote_space__(self) -> Buffer:
        return self._whole.__tinote_buffer__()

    def __tinote_component__(self) -> tuple[int, ...]:
        return self.component

    @property
    def dtype(self) -> Any:
        return self._whole.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._whole.shape

    @property
    def name(self) -> str:
        return f"{self._whole.name}[{', '.join(map(str, self.component))}]"

    @property
    def grad(self) -> ComponentField:
        return self._whole.grad.get_scalar_field(*self.component)

    @property
    def dual(self) -> ComponentField:
        return self._whole.dual.get_scalar_field(*self.component)

    def placed_under(self, level: Any, offset: Any, where: Span) -> list[Any]:
        """The fields that come under a level when this component is placed there: all of the field with the first of
        its components, since they stay together, and nothing with the others.
        """
        whole, places = self._whole, self._whole.component_places
        if self.component in places:
            raise FieldError(f"the component '{self.name}' is placed already", where)
        first = next(iter(places.values()), None)
        places[self.component] = level, offset
        if first is None:
            return [whole]
        if (level.shape, offset) != (first[0].shape, first[1]):
            shapes = f"not {first[0].shape} and {level.shape}" if level.shape != first[0].shape else "with one offset"
            raise FieldError(
                f"the components of '{whole.name}' need levels of one shape, {shapes}",
                where,
                notes=[Note("the field is made here", whole._made_at)],
            )
        return []

    def _key(self) -> Any:
        return self.component if len(self.component) != 1 else self.component[0]

    def __getitem__(self, key: Any) -> Any:
        return self._whole[key][self._key()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._whole[key][self._key()] = value

    def __len__(self) -> int:
        return len(self._whole)

    def to_numpy(self, dtype: Any = None) -> np.ndarray[Any, Any]:
        """A copy, of the field's shape."""
        return self._whole.array_copy(dtype)[(..., *self.component)]

    def from_numpy(self, array: Any) -> None:
        """Copy an array of the field's shape in. Raises `FieldError` when the shapes differ."""
        source = np.asarray(stored(array))
        if source.shape != self.shape:
            raise FieldError(f"'{self.name}' needs an array of shape {self.shape}, not {source.shape}", caller())
        self._whole._require_alive()
        self._fill(self._whole._source(source), array)

    def fill(self, value: Any) -> None:
        """Set this component of every element to a number, or to the numbers of an array of the field's shape."""
        self._whole._require_alive()
        self._fill(self._whole._source(value), value)

    def _fill(self, source: Any, value: Any) -> None:
        whole, place = self._whole, (..., *self.component)
        whole._wrote(place, value)
        whole._assign(place, source, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.to_numpy(dtype)

    def __str__(self) -> str:
        """The elements, as NumPy prints them."""
        if (listener := active_listener()) is not None:
            listener.taking(f"the text of '{self.name}'")
        return str(self._whole._array[(..., *self.component)])

    def __repr__(self) -> str:
        return f"<field {self.name}: {self.dtype}, shape {self.shape}, a component of {self._whole.name}>"
