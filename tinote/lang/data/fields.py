"""Fields: dense arrays of numbers, vectors or matrices, that kernels and Python share.

Memory is zero at first. Python reads and writes elements by index; `to_numpy` copies out, `numpy_view` shares the
memory. Where the numbers lie is a matter of `layout` and `tree`; fields are made in `declarations`.
"""

from __future__ import annotations

import functools
import math
import weakref
from typing import Any

import numpy as np

from tinote.completion import Documented
from tinote.errors import FieldError, KernelIndexError, shown
from tinote.ir.buffers import help_with_order
from tinote.ir.nodes import Buffer
from tinote.lang.data.captured_arrays import taken_copy
from tinote.lang.data.components import ComponentField, ElementPlace
from tinote.lang.data.exchange import Exchanged
from tinote.lang.data.layout import LETTERS, array_over, array_shape
from tinote.lang.data.matrix import Matrix, Vector, as_stored, is_number
from tinote.lang.data.no_arithmetic import NoArithmetic, in_place_of
from tinote.lang.data.nodes import Located
from tinote.lang.data.storage import Stored
from tinote.lang.data.traced import stored
from tinote.lang.session.state import (
    clears_duals,
    note_change,
    note_python_write,
    note_shared,
    note_taken,
    note_view,
    present_recorder,
    session,
)
from tinote.runtime.seam import active_listener, listeners
from tinote.source import caller

_LARGEST = 65504  # what every type of floats holds
_NUMBERS = (int, float, np.number)


def begin_at_zero(field: Field) -> None:
    """Set every element to 0, where a recording begins: the user changes nothing."""
    if field._generation != session.resets:
        field._require_alive()
    note_python_write(field.buffer, ..., 0)
    _set_all(field, 0, 0)


def _set_all(field: Field, source: Any, value: Any) -> None:
    """Every element gets `source`, which is `value` as numbers of this field's type."""
    memory = field.memory
    if memory.is_reserved:
        field._assign(..., source, value)
        return
    if memory.is_resident and field._is_alone():
        if not listeners and type(value) in (int, float) and not value and math.copysign(1.0, value) > 0:
            memory.clear()
            return
        memory.to_host(overwritten=True)
    if not listeners:
        field._array[()] = source  # faster than `[...]`, which makes a view
    else:
        field._assign(..., source, value)


def _misfit(field: Field, value: Any, why: str, hint: str = "") -> FieldError:
    """The error for a value that does not go into a field, at the caller's line."""
    return FieldError(f"cannot store {shown(value)} in '{field.name}'{why}", caller(), hint)


class Field(Documented, Located, Exchanged, Stored, NoArithmetic):
    """The base class of fields: `isinstance(x, ti.Field)` is true for any of them.

    Its `shape` is that of the index space; `()` is a 0-D field, whose only element is `x[None]`. A field made without a
    shape is placed later, in a layout tree (`ti.root`), and gets its memory when it is first used.

    Methods
    -------
    copy_from
    fill
    from_numpy
    from_torch
    numpy_view
    from_sparse
    parent
    to_numpy
    to_sparse
    to_torch

    Attributes
    ----------
    shape : tuple of int
    dtype : number type
    grad, dual : Field
    has_grad, has_dual : bool
    name : str
    snode : ti.SNode

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=3)
    >>> isinstance(x, ti.Field), x.shape
    (True, (3,))
    """

    stands_in = False  # for an array of the caller's, in a function that is differentiated (`ndarrays`)
    _instances: Any = None  # of kernels: those that it keeps (`kernels/instance_table.py`)

    # ---- another one

    def _like(self, name: str) -> Field:
        """A field of its own of the same shape and type, zero, with gradient, dual and dual of the gradient."""
        return self._twice(type(self), name)

    def _twice(self, kind: type[Field], name: str) -> Field:
        made = kind(self.dtype, self.element, self._made_at, name, True, True)
        made.unit = self.unit
        made._make_dense_like(self)
        made.grad.ensure_dual()
        return made

    # ---- elements

    def _position(self, key: Any) -> tuple[int, ...]:
        """Where the element with this index stands in the array."""
        if self._generation != session.resets:
            self._require_alive()
        index = key if type(key) is tuple else () if key is None else tuple(key) if _has_several(key) else (key,)
        shape = self.shape
        if len(index) != len(shape):
            what = f"'{self.name}' has {len(shape)} index dimensions, but got {len(index)}"
            hint = f"write {self.name}[{', '.join(LETTERS[: len(shape)]) or 'None'}]"
            raise KernelIndexError(what, caller(), hint)
        if self.buffer.offset:
            return self._position_behind(index, self.buffer.offset)
        for i, extent in zip(index, shape):  # noqa: B905  # asked at each access; as long as each other
            if type(i) is not int or not 0 <= i < extent:
                return self._position_behind(index, (0,) * len(shape))
        return index

    def _position_behind(self, index: tuple[Any, ...], offset: tuple[int, ...]) -> tuple[int, ...]:
        """The same where indices begin at `offset`. Raises `KernelIndexError`."""
        for axis, (i, extent, first) in enumerate(zip(index, self.shape, offset, strict=True)):
            if not isinstance(i, int | np.integer):
                what = f"an index of '{self.name}' must be an integer, not {type(i).__name__}"
                hint = "slice the array, `x.to_numpy()[…]`; `x.fill(…)` and `x.from_numpy(…)` set all elements"
                raise KernelIndexError(what, caller(), hint if isinstance(i, slice) else "")
            if not first <= i < first + extent:
                valid = f": valid are {first} to {first + extent - 1}" if first else ""
                where = f"for axis {axis} of '{self.name}' with shape {self.shape}{valid}"
                raise KernelIndexError(
                    f"index {shown(int(i))} is out of range {where}", caller(), help_with_order(self.buffer)
                )
        return tuple([int(i) - first for i, first in zip(index, offset, strict=True)])

    def _wrote(self, position: Any, value: Any, source: Buffer | None = None) -> None:
        """Python is about to write `value` at `position` (`...`: everywhere), or what is in the field `source`."""
        if self.noted is not None and self.noted != session.order and note_change(self.buffer, position):
            self.noted = session.order
        note_python_write(self.buffer, position, value, source)

    def _source(self, value: Any) -> np.ndarray[Any, Any]:
        """`value` as an array of numbers of this field's type, or of one that fits into it; fractions are cut off.
        Raises `FieldError`.
        """
        try:
            if present_recorder() is not None or listeners:
                value = stored(value)
            source = np.asarray(value.values if isinstance(value, Matrix) else value)
        except (TypeError, ValueError) as error:
            raise _misfit(self, value, f": {error}") from None
        if source.dtype.kind not in "biuf":
            raise _misfit(self, value, f", a field of {self.dtype}")
        try:
            return as_stored(source, self.dtype)
        except ValueError as error:
            raise _misfit(self, value, f", a field of {self.dtype}: {error}") from None

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    # ---- whole field

    def fill(self, value: Any) -> None:
        """Set every element to a value; a tape and forward mode differentiate this.

        Parameters
        ----------
        value : number, vector or matrix
            A number for every component, or a vector or matrix of the element's shape.

        Raises
        ------
        FieldError
            For a value of another shape.

        Examples
        --------
        >>> v = ti.Vector.field(2, ti.f32, shape=2)
        >>> v.fill([1.0, 2.0])
        >>> v.to_numpy()
        array([[1., 2.],
               [1., 2.]], dtype=float32)
        """
        if self._generation != session.resets:
            self._require_alive()
        kind, source = type(value), value
        # What `_is_plain` asks; each tape fills three times.
        if not ((kind is float or kind is int) and -_LARGEST <= value <= _LARGEST and self.dtype.kind == "f"):
            source = self._source(value)
            if source.ndim and source.shape != self.element:
                wanted = f"a number or elements of shape {self.element}" if self.element else "a number"
                raise FieldError(f"'{self.name}' is filled with {wanted}, not with {shown(value)}")
        if session.watchers or self.noted is not None or present_recorder() is not None:
            self._wrote(..., value)
        _set_all(self, source, value)

    def _is_alone(self) -> bool:
        """Whether its numbers are all that is in its memory."""
        memory = self.memory
        return memory.is_whole and memory.nbytes == math.prod(array_shape(self.buffer)) * self.dtype.size

    def _assign(self, position: Any, numbers: Any, value: Any) -> None:
        """The elements at `position` get `numbers`, which are those of `value`."""
        if listeners and (listener := active_listener()) is not None:
            listener.assigning(self._array, position, numbers, value)
        self._array[position] = numbers

    def to_numpy(self, dtype: Any = None, *, keep_dims: bool = False) -> np.ndarray[Any, Any]:
        """Copy the elements into a new array.

        Parameters
        ----------
        dtype : numpy.dtype, optional
            The type of the array, by default that of the field.
        keep_dims : bool, default False
            Give vectors as matrices of one column. Without it, matrices of one column are vectors in the array.

        Returns
        -------
        numpy.ndarray, of the field's shape followed by the element's
            The copy.

        Examples
        --------
        >>> x = ti.field(ti.i32, shape=3)
        >>> x.fill(7)
        >>> x.to_numpy(dtype="float64")
        array([7., 7., 7.])
        """
        found = self.array_copy(dtype)
        if keep_dims:
            return found[..., None] if len(self.element) == 1 else found
        return found[..., 0] if self._drops_columns else found

    def to_sparse(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The indices and values of the cells that are active: of a sparse field, block by block; of any other, all.

        Returns
        -------
        indices : numpy.ndarray of shape (n, number of dimensions)
            The index of each cell.
        values : numpy.ndarray of shape (n, *shape of an element)
            What is in it.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> ti.root.bitmasked(ti.ij, (4, 4)).place(x)
        <level of (4, 4)>
        >>> x[2, 1] = 5.0
        >>> x.to_sparse()
        (array([[2, 1]]), array([5.], dtype=float32))
        """
        offset = self._first_index or (0,) * len(self.shape)
        indices = np.indices(self.shape).reshape(len(self.shape), -1).T + np.array(offset, int)
        return indices, self.array_copy().reshape(len(indices), *self.element)

    def array_copy(self, dtype: Any = None) -> np.ndarray[Any, Any]:
        """A copy of shape `shape + element shape`, whatever the elements are."""
        self._require_alive()
        note_taken(self.buffer)
        if active_listener() is not None:
            found = taken_copy(self._array, f"a copy of '{self.name}'")
            return found if dtype is None else found.astype(dtype)
        found = self._look()
        return found.astype(dtype) if dtype is not None else found.copy()

    def held(self) -> np.ndarray[Any, Any]:
        """The numbers themselves, of shape `shape + element shape`, to be looked at at once: no listener is
        notified.
        """
        self._require_alive()
        return self._array

    def by_index(self, storage: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What lies in memory as the field does, in the shape of the field and what follows."""
        return storage

    def by_place(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The other way round: an array of the shape of the field, and more, as it would lie in memory."""
        return array

    @property
    def _drops_columns(self) -> bool:
        """Whether the elements are matrices of one column, which are vectors elsewhere."""
        return len(self.element) == 2 and self.element[1] == 1

    def from_sparse(self, indices: Any, values: Any) -> None:
        """Write what `to_sparse` gave: these cells get the values and are active, all others get 0.

        Of a sparse field, cells that were active stay active.

        Parameters
        ----------
        indices : array_like, shape (n, number of dimensions)
            The index of each cell.
        values : array_like, shape (n, *shape of an element)
            What it gets.

        Raises
        ------
        FieldError
            For indices out of range, for other shapes, and for a sparse field under a tape or in a capture.

        Examples
        --------
        >>> x = ti.field(ti.f32)
        >>> ti.root.bitmasked(ti.ij, (4, 4)).place(x)
        <level of (4, 4)>
        >>> x.from_sparse([[2, 1], [0, 3]], [5.0, 0.0])
        >>> x[2, 1], len(x.to_sparse()[0])
        (5.0, 2)
        """
        self._require_alive()
        index, rank = np.asarray(indices, np.int64), len(self.shape)
        if index.ndim != 2 or index.shape[1] != rank:
            raise FieldError(f"the indices of '{self.name}' have shape (n, {rank}), not {index.shape}", caller())
        source, shape = self._source(values), (len(index), *self.element)
        if source.shape != shape:
            raise FieldError(f"the values of '{self.name}' have shape {shape}, not {source.shape}", caller())
        zero_based = index - np.array(self._first_index or (0,) * rank, np.int64)
        outside = ((zero_based < 0) | (zero_based >= self.shape)).any(axis=1)
        if outside.any():
            wrong = tuple(index[outside][0].tolist())
            raise FieldError(f"index {wrong} is outside of '{self.name}', of shape {self.shape}", caller())
        self._take_cells(tuple(zero_based.T), source)

    @property
    def _first_index(self) -> tuple[int, ...]:
        """The smallest index, or ()."""
        return self.buffer.offset or ()

    def _take_cells(self, index: tuple[np.ndarray[Any, Any], ...], numbers: np.ndarray[Any, Any]) -> None:
        """The cells at a zero-based index get numbers, all others 0."""
        whole = np.zeros((*self.shape, *self.element), numbers.dtype)
        whole[index] = numbers
        self.from_numpy(whole)

    def from_numpy(self, array: Any) -> None:
        """Copy the elements of an array in.

        Parameters
        ----------
        array : array_like, of the field's shape followed by the element's
            The values. Vectors and matrices of one column may stand for each other.

        Raises
        ------
        FieldError
            Where the shapes differ.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=3)
        >>> x.from_numpy([1.0, 2.0, 3.0])
        >>> x[2]
        3.0
        """
        self._require_alive()
        source, shape = self._source(array), array_shape(self.buffer)
        if len(self.element) == 2 and self.element[1] == 1 and source.shape == shape[:-1]:
            source = source[..., None]
        elif len(self.element) == 1 and source.shape == (*shape, 1):
            source = source[..., 0]
        if source.shape != shape:
            raise FieldError(f"'{self.name}' needs an array of shape {shape}, not {source.shape}", caller())
        self._wrote(..., array)
        if self.memory.is_resident and self._is_alone():
            self.memory.to_host(overwritten=True)
        self._assign(..., source, array)

    def numpy_view(self) -> np.ndarray[Any, Any]:
        """An array that shares the field's memory and keeps it alive.

        What kernels write shows in it at once, and what is written to it shows in kernels.

        Returns
        -------
        numpy.ndarray, of the field's shape followed by the element's
            The array; it stays valid after the field is gone.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=3)
        >>> view = x.numpy_view()
        >>> view[1] = 5.0
        >>> x[1]
        5.0
        """
        self._require_alive()
        if (listener := active_listener()) is not None:
            listener.sharing(self.memory, self.name)
        note_shared(self.buffer)
        if self._dual is not None and clears_duals():
            self._dual._array[...] = 0
        # Every array that is sliced out of this one refers to it: it lives as long as anybody can write through it.
        base = np.frombuffer(self.memory.view(), dtype=np.uint8)
        note_view(self.buffer, base)
        return array_over(self.buffer, self.memory, base)

    def copy_from(self, other: Field) -> None:
        """Copy all elements of another field; a tape and forward mode differentiate this.

        Parameters
        ----------
        other : Field
            A field of the same shape and the same element shape.

        Raises
        ------
        FieldError
            Where the shapes differ.

        Examples
        --------
        >>> x, y = ti.field(ti.f32, shape=2), ti.field(ti.f32, shape=2)
        >>> x.fill(3.0)
        >>> y.copy_from(x)
        >>> y.to_numpy()
        array([3., 3.], dtype=float32)
        """
        self._require_alive()
        other._require_alive()
        shape, given = array_shape(self.buffer), array_shape(other.buffer)
        if given != shape:
            raise FieldError(
                f"'{self.name}' has elements of shape {shape} in all, "
                f"and '{other.name}' of shape {given}: they cannot be copied"
            )
        resident = self.memory.is_resident and self._is_alone() and other._is_alone() and _lie_alike(self, other)
        source = None if resident else self._source(other._array)
        if other is self:
            return
        self._wrote(..., None, other.buffer)
        if resident:
            self.memory.restore(other.memory)
            return
        if (listener := active_listener()) is not None:
            listener.copying(self._array, other._array)
        self._array[...] = source

    def __repr__(self) -> str:
        called = self._word if self.name == self._word else f"{self._word} {self.name}"
        kind = f"{self.dtype}{list(self.element) if self.element else ''}"
        if not self.is_placed:
            return f"<{called}: {kind}, {'not placed yet' if self._level is None else 'placed, not used yet'}>"
        return f"<{called}: {kind}, shape {self.shape}{', with gradient' if self._grad is not None else ''}>"

    def __str__(self) -> str:
        """The elements, as NumPy prints them; before the field has any, what it is."""
        if not self.is_placed:
            return repr(self)
        self._require_alive()
        if (listener := active_listener()) is not None:
            listener.taking(f"the text of '{self.name}'")
        return str(self._array[..., 0] if self._drops_columns else self._array)


def _lie_alike(one: Field, other: Field) -> bool:
    """Whether the numbers of two fields of the same shape have the same bytes, at the same places."""
    a, b = one.buffer, other.buffer
    return (a.dtype, a.strides, a.element_strides) == (b.dtype, b.strides, b.element_strides)


class ScalarField(Field):
    """A field of numbers, as `ti.field(ti.f32, shape)` makes it.

    Methods
    -------
    get_field_members

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(2, 3))
    >>> isinstance(x, ti.ScalarField), x.dtype
    (True, f32)
    """

    def get_field_members(self) -> list[Any]:
        """The fields of numbers that it consists of: itself.

        Returns
        -------
        list of Field
            The field itself.
        """
        return [self]

    def __getitem__(self, key: Any) -> Any:
        position = self._position(key)
        open_recorder = present_recorder()
        value = self._look()[position].item()
        if listeners and (listener := active_listener()) is not None:
            value = listener.reading(self._array, position, value)
        return value if open_recorder is None else open_recorder.reading(self.buffer, position, value)

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        number = stored(value)
        fits = _is_plain(number) and (self.dtype.kind == "f" or type(number) is int)
        if not fits:
            if isinstance(number, _NUMBERS):
                number = self._source(number)
            elif not is_number(number):
                raise _misfit(self, value, f", a field of {self.dtype}: it is not a number", in_place_of(value))
        if self.noted is not None or present_recorder() is not None or session.watchers:
            self._wrote(position, value)
        try:
            self._assign(position, number, value)
        except (TypeError, ValueError, OverflowError) as error:
            raise _misfit(self, value, f", a field of {self.dtype}: {error}") from None


class MatrixField(Field):
    """A field of vectors or matrices, as `ti.Vector.field` and `ti.Matrix.field` make it.

    Methods
    -------
    get_field_members
    get_scalar_field

    Attributes
    ----------
    n : int
    m : int

    Examples
    --------
    >>> v = ti.Vector.field(3, ti.f32, shape=8)
    >>> isinstance(v, ti.MatrixField), v.n, v.m
    (True, 3, 1)
    """

    @property
    def n(self) -> int:
        """Rows of one element."""
        return self.element[0]

    @property
    def m(self) -> int:
        """Columns of one element; 1 for vectors."""
        return self.element[1] if len(self.element) == 2 else 1

    def get_scalar_field(self, *component: int) -> ComponentField:
        """One component of every element, as a field of numbers that shares this one's memory.

        Parameters
        ----------
        *component : int
            The index of the component: `i` for vectors, `i, j` for matrices.

        Returns
        -------
        Field
            The field of that component.

        Raises
        ------
        FieldError
            For an index that the elements do not have.

        Examples
        --------
        >>> v = ti.Vector.field(3, ti.f32, shape=2)
        >>> z = v.get_scalar_field(2)
        >>> z[0] = 4.0
        >>> v[0]
        Vector([0.0, 0.0, 4.0])
        """
        if len(component) == 2 and len(self.element) == 1 and component[1] == 0:
            component = component[:1]
        if len(component) != len(self.element) or not all(
            isinstance(k, int) and 0 <= k < n for k, n in zip(component, self.element, strict=False)
        ):
            raise FieldError(
                f"elements of '{self.name}' have shape {self.element}: there is no component {component}", caller()
            )
        found = self._components.get(component)
        if found is None:
            found = self._components[component] = ComponentField(self, component)
        return found

    get_scalar_field.__tinote_static__ = True  # type: ignore[attr-defined]

    def get_field_members(self) -> list[Any]:
        """Its components as fields of numbers, row by row.

        Returns
        -------
        list of Field
            One for each component.
        """
        return [self.get_scalar_field(*component) for component in np.ndindex(self.element)]

    @functools.cached_property
    def _components(self) -> weakref.WeakValueDictionary[tuple[int, ...], ComponentField]:
        return weakref.WeakValueDictionary()

    @functools.cached_property
    def component_places(self) -> dict[tuple[int, ...], Any]:
        """The levels of components that are placed one by one, and their offsets."""
        return {}

    def __getitem__(self, key: Any) -> Matrix:
        position = self._position(key)
        open_recorder = present_recorder()
        values = self._array[position]
        if listeners and (listener := active_listener()) is not None:
            values = listener.reading(self._array, position, values)
        if open_recorder is not None:
            values = open_recorder.reading(self.buffer, position, values)
        return (Vector if len(self.element) == 1 else Matrix)(values, _parent=ElementPlace(self, position))

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        source = self._source(value)
        if source.ndim and source.shape != self.element:
            raise _misfit(self, value, f": its elements have shape {self.element}, not {source.shape}")
        self._wrote(position, value)
        self._assign(position, source, value)


def _has_several(key: Any) -> bool:
    """Whether an index is that of several dimensions."""
    return type(key) is not int and isinstance(key, tuple | list | Matrix)


def _is_plain(value: Any) -> bool:
    """Whether any array of floats takes the value as it is."""
    kind = type(value)
    return (kind is float or kind is int) and -_LARGEST <= value <= _LARGEST
