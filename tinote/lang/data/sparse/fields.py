"""Sparse fields: those that were placed under a level whose cells can be inactive.

Their storage is a dense array in which the cells of a block lie together (`ir/sparsity.py`); in Python and in kernels
they are indexed as any other field. What Python writes activates cells.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir.sparsity import Sparsity
from tinote.lang.data.captured_arrays import taken_copy
from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.data.layout import Layout, Placement, dense
from tinote.lang.data.nodes import letters_of_levels
from tinote.lang.data.sparse.active import ARITHMETIC, active_places, indices_at
from tinote.lang.session.state import note_taken, present_recorder
from tinote.runtime.memory import readable_size
from tinote.runtime.reserved import reserve
from tinote.runtime.seam import active_listener, listeners
from tinote.source import caller

#: A dense array of this size or more is worth a warning.
_LARGE_ARRAY = 1 << 30


class SparseField(Field):
    """The base of sparse fields."""

    _sparsity: Sparsity
    #: what says what is active, outermost first: how many groups there are up to it, the field, whether it has lengths
    _activities: tuple[tuple[int, ScalarField, bool], ...]

    def place_sparsely(self, sparsity: Sparsity, level: Any) -> None:
        """Come into being in memory of its own, with the gradient and dual that it needs."""
        held = {field.buffer: field for one in level.path for field in getattr(one, "activity_fields", ())}
        found = [(depth, held[activity.buffer], activity.is_list) for depth, activity in sparsity.activities]
        self._come_into_being(sparsity, tuple(found))

    def _come_into_being(self, sparsity: Sparsity, activities: tuple[tuple[int, ScalarField, bool], ...]) -> None:
        self._sparsity, self._activities = sparsity, activities
        counts = sparsity.counts
        strides, apart, nbytes = dense(self.dtype, counts, self.element, tuple(range(len(counts))), Layout.AOS)
        try:
            memory = reserve(max(nbytes, self.dtype.size))
        except MemoryError as error:
            raise FieldError(
                f"addresses for the whole box of '{self.name}', of shape {sparsity.shape}, are reserved, and for its "
                f"{readable_size(nbytes)} there is no room: {error}",
                self._made_at,
                hint="make the box smaller: its size is limited by addresses, not by what is active",
            ) from None
        self._place(Placement(counts, strides, apart, (), memory, letters_of_levels(self._level)))
        self.shape = sparsity.shape
        self.buffer.sparsity = sparsity

    def _make_dense_like(self, other: Any) -> None:
        self._come_into_being(other._sparsity, other._activities)
        for kind in sorted(self._needed):
            self._shadows[kind]._make_dense_like(other)
            self._attach(kind)

    def _shadow(self, kind: str) -> Any:
        found = super()._shadow(kind)
        return found if found.is_placed or found._level is not None else as_sparse(found)

    def _attach(self, kind: str) -> None:
        other = self._shadows[kind]
        if not isinstance(other, SparseField) or other._sparsity.geometry != self._sparsity.geometry:
            raise FieldError(
                f"'{self.name}' is sparse, and its {kind} was placed under other levels",
                self._made_at,
                hint=f"place both together, level.place(x, x.{kind}), or make the field with needs_{kind}=True",
            )
        super()._attach(kind)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise FieldError(
            f"'{self.name}' is a sparse field, which stays in its process", self._made_at, hint="send `x.to_sparse()`"
        )

    # ---- elements

    def _position(self, key: Any) -> tuple[int, ...]:
        shape = self.shape  # which settles its place
        sparsity = self._sparsity
        if sparsity.offset:
            index = key if isinstance(key, tuple) else (key,)
            if len(index) == len(shape):
                key = self._position_behind(index, sparsity.offset)
        index = super()._position(key)
        return sparsity.places(index, *ARITHMETIC, 0)

    def _assign(self, position: Any, numbers: Any, value: Any) -> None:
        if position is not ...:
            self._activate(position)
        elif not np.any(numbers) and not np.any(np.signbit(numbers)):
            if listeners and (listener := active_listener()) is not None:
                listener.assigning(self._array, position, numbers, value)
            self.memory.clear()
            return
        super()._assign(position, numbers, value)

    def _activate(self, position: tuple[Any, ...]) -> None:
        """The cells at a place in the storage are written to."""
        for depth, flags, is_list in self._activities:
            if not is_list:
                flags[position[:depth]] = 1
            elif flags[position[: depth - 1]] <= position[depth - 1]:
                flags[position[: depth - 1]] = position[depth - 1] + 1

    # ---- whole field

    def to_sparse(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        self._require_alive()
        if (listener := active_listener()) is not None:
            listener.taking(f"what is active in '{self.name}'")
        note_taken(self.buffer)
        places = active_places(self._sparsity, whole=True)
        return indices_at(self._sparsity, places), self._array[places]

    def array_copy(self, dtype: Any = None) -> np.ndarray[Any, Any]:
        nbytes = math.prod((*self.shape, *self.element)) * (
            self.dtype.size if dtype is None else np.dtype(dtype).itemsize
        )
        if nbytes >= _LARGE_ARRAY:
            what = f"the dense array of '{self.name}' takes {readable_size(nbytes)}; `to_sparse()` gives what is active"
            warnings.warn(what, stacklevel=3)
        self._require_alive()
        note_taken(self.buffer)
        found = self._taken(f"a copy of '{self.name}'")
        return found if dtype is None else found.astype(dtype)

    def held(self) -> np.ndarray[Any, Any]:
        self._require_alive()
        return self._taken("a derivative as an array")

    def _taken(self, what: str) -> np.ndarray[Any, Any]:
        """A copy in the shape of the field."""
        parts, order, _ = self._divided(self.element)
        ordered = self._array.reshape(parts).transpose(order)
        return taken_copy(ordered, what).reshape(*self.shape, *self.element)

    def _divided(self, last: tuple[int, ...]) -> tuple[list[int], list[int], list[int]]:
        """The extents of the parts of the storage's dimensions, followed by the `last` ones; the order in which those
        of one dimension of the field follow each other; and the extents in this order.
        """
        groups, rank = self._sparsity.groups, len(self.shape)
        parts = [*[extent for group in groups for extent in group.extents], *last]
        order = [k * rank + axis for axis in range(rank) for k in range(len(groups))]
        order += range(len(order), len(parts))
        return parts, order, [parts[k] for k in order]

    def by_index(self, storage: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        last = storage.shape[len(self._sparsity.groups) :]
        parts, order, _ = self._divided(last)
        return storage.reshape(parts).transpose(order).copy().reshape(*self.shape, *last)

    def by_place(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        last = array.shape[len(self.shape) :]
        _, order, ordered = self._divided(last)
        return array.reshape(ordered).transpose(np.argsort(order)).copy().reshape(*self._sparsity.counts, *last)

    def fill(self, value: Any) -> None:
        """Set every active element to a value."""
        self._require_alive()
        source = self._source(value)
        if source.ndim and source.shape != self.element:
            raise FieldError(f"the elements of '{self.name}' have shape {self.element}, not {source.shape}", caller())
        if not source.any() and not np.signbit(source).any():
            self._wrote(..., value)
            self._assign(..., 0, 0)
            return
        self._refuse_capture("x.fill(…), with anything but 0,", "x.fill(value)")
        places = active_places(self._sparsity)
        if present_recorder() is not None:  # which keeps what every element of the box gets
            if self.memory.nbytes >= _LARGE_ARRAY:
                raise FieldError(
                    f"to differentiate {self.name}.fill(…) takes an array of the whole box, "
                    f"{readable_size(self.memory.nbytes)}",
                    caller(),
                    hint=f"fill it in a kernel: `for I in ti.grouped({self.name}): {self.name}[I] = value`",
                )
            whole = np.zeros((*self._sparsity.counts, *self.element), source.dtype)
            whole[places] = source
            self._wrote(..., whole)
            super()._assign(..., whole, whole)
            return
        self._wrote(..., value)
        self._array[places] = source

    def from_numpy(self, array: Any) -> None:
        """Copy the elements of a dense array in; those that are not zero become active.

        Parameters
        ----------
        array : array_like, of the field's shape followed by the element's
            The values.

        Raises
        ------
        FieldError
            Where the shapes differ.
        """
        self._require_alive()
        source, shape = self._source(array), (*self.shape, *self.element)
        if source.size == math.prod(shape) and self._drops_columns:
            source = source.reshape(shape)
        if source.shape != shape:
            raise FieldError(f"'{self.name}' needs an array of shape {shape}, not {source.shape}", caller())
        self._overwrite(self.by_place(source))

    def _overwrite(self, storage: np.ndarray[Any, Any]) -> None:
        """The storage gets new values."""
        self._refuse_capture("an array copied to a sparse field", "if a[I] != 0: x[I] = a[I]")
        groups = len(self._sparsity.groups)
        present = (storage != 0) | np.signbit(storage) if storage.dtype.kind == "f" else storage != 0
        present = present.any(axis=tuple(range(groups, storage.ndim)))
        for depth, flags, is_list in self._activities:
            found = present.any(axis=tuple(range(depth, groups)))
            if is_list:
                found = (np.arange(1, found.shape[-1] + 1) * found).max(axis=-1)
            flags.from_numpy(np.maximum(flags.held(), found))
        self._wrote(..., storage)
        if present_recorder() is not None:
            super()._assign(..., storage, storage)
            return
        self.memory.clear()
        self._array[present] = storage[present]

    @property
    def _first_index(self) -> tuple[int, ...]:
        return self._sparsity.offset

    def _take_cells(self, index: tuple[np.ndarray[Any, Any], ...], numbers: np.ndarray[Any, Any]) -> None:
        self._refuse_capture("x.from_sparse(…)", "x[I] = value")
        if present_recorder() is not None:
            what = f"cells that '{self.name}', a sparse field, gets by a list of indices are not differentiated"
            raise FieldError(what, caller(), hint="write them in a kernel")
        self.fill(0)
        zero = np.zeros(len(numbers), np.int64)
        places = self._sparsity.places(index, *ARITHMETIC, zero)
        for depth, flags, is_list in self._activities:
            held = flags.to_numpy()
            if is_list:
                np.maximum.at(held, places[: depth - 1], places[depth - 1] + 1)
            else:
                held[places[:depth]] = 1
            flags.from_numpy(held)
        self._wrote(..., 0)
        self._array[places] = numbers

    def _refuse_capture(self, what: str, kernel: str) -> None:
        """What Python activates depends on numbers that are others in a later call."""
        if listeners and (listener := active_listener()) is not None:
            listener.taking(f"{what} ('{self.name}'; a kernel can do it: `{kernel}`)")

    def numpy_view(self) -> np.ndarray[Any, Any]:
        """Sparse fields have no such view: `to_numpy` and `to_sparse` copy.

        Raises
        ------
        FieldError
            Always.
        """
        raise FieldError(
            f"the cells of '{self.name}' lie in blocks: no dense array shares their memory",
            caller(),
            hint="copy them: x.to_numpy() gives a dense array, x.to_sparse() what is active",
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.array_copy(dtype) if copy is not False else self.numpy_view()

    def copy_from(self, other: Field) -> None:
        """Copy all elements of another field.

        What is active in a sparse one becomes active, of any other what is not zero.

        Parameters
        ----------
        other : Field
            A field of the same shape and the same element shape.

        Raises
        ------
        FieldError
            Where the shapes differ.
        """
        other._require_alive()
        if (other.shape, other.element) != (self.shape, self.element):
            raise FieldError(f"'{self.name}' and '{other.name}' differ in shape: they cannot be copied", caller())
        if present_recorder() is not None:
            raise FieldError(
                f"copying to '{self.name}', a sparse field, is not differentiated",
                caller(),
                hint="copy in a kernel, `for I in ti.grouped(y): x[I] = y[I]`",
            )
        if isinstance(other, SparseField):
            self.from_sparse(*other.to_sparse())
        else:
            self.from_numpy(other.held())


class SparseScalarField(SparseField, ScalarField):
    """A sparse field of numbers."""


class SparseMatrixField(SparseField, MatrixField):
    """A sparse field of vectors or matrices."""


def as_sparse(field: Field) -> Any:
    """A field that has no place yet, from now on one of the sparse kind."""
    if not isinstance(field, SparseField):
        field.__class__ = SparseScalarField if isinstance(field, ScalarField) else SparseMatrixField  # type: ignore[assignment]
    return field
