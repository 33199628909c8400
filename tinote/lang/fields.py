"""Fields: dense arrays of numbers, vectors or matrices, that kernels and Python share.

`field(ti.f32, shape=(n, m), needs_grad=True)`, `Vector.field(2, ti.f32, shape=n)`, `Matrix.field(2, 2, ti.f32,
shape=n)`. Memory is zero at first; one element of a vector or matrix field is contiguous (row-major). Python reads and
writes elements by index; `to_numpy` copies out, `numpy_view` shares the memory.
"""

from __future__ import annotations

import ast
import importlib
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tinote.errors import FieldError, KernelIndexError
from tinote.ir.nodes import Buffer
from tinote.ir.types import Scalar
from tinote.lang.matrix import Matrix, Vector, numpy_type
from tinote.lang.world import (
    forget_gradients,
    note_python_write,
    note_replacement,
    note_view,
    recorder,
    scalar_type,
    world,
)
from tinote.runtime.memory import Memory
from tinote.source import Span, caller, line_text

__all__ = ["Field", "MatrixField", "ScalarField", "field", "matrix_field", "shape_given", "vector_field"]


class Field:
    """What all fields share. `shape` is that of the index space; that of a 0-D field is `()`, its element `x[None]`."""

    def __init__(
        self,
        dtype: Scalar,
        shape: tuple[int, ...],
        element: tuple[int, ...],
        needs_grad: bool,
        needs_dual: bool,
        made_at: Span,
        name: str,
    ) -> None:
        if needs_grad and dtype.kind != "f":
            raise FieldError(
                f"a field of {dtype} cannot have a gradient", made_at, hint="use a float type, or leave needs_grad out"
            )
        self.dtype = dtype
        self.shape = shape
        self.element = element
        self._made_at = made_at
        self._name = name
        self._generation = world.generation
        nbytes = max(math.prod(shape) * math.prod(element), 1) * dtype.size
        try:
            self.memory = Memory(nbytes)
        except MemoryError as error:
            raise FieldError(f"a field of shape {shape} needs {nbytes:,} bytes: {error}", made_at) from None
        count = math.prod(shape) * math.prod(element)
        flat = np.frombuffer(self.memory.view(), dtype=numpy_type(dtype), count=count)
        self._array = flat.reshape(shape + element)
        self.buffer = Buffer(name or "field", dtype, shape, element)
        self._grad: Field | None = None
        self._dual: Field | None = None
        world.memories[self.buffer] = self.memory
        world.fields.add(self)
        forget_gradients()
        weakref.finalize(self, forget_gradients).atexit = False
        if needs_grad:
            self._grad = self._companion("grad")
            self.buffer.adjoint = self._grad.buffer
        if needs_dual:
            self._dual = self._companion("dual")
            self.buffer.tangent = self._dual.buffer

    def _companion(self, kind: str) -> Field:
        other = type(self)(self.dtype, self.shape, self.element, False, False, self._made_at, f"{self.name}.{kind}")
        other.buffer.primal = self.buffer
        return other

    # ---- what the compiler asks

    def __tinote_buffer__(self) -> Buffer:
        self._require_alive()
        self.buffer.name = self.name
        return self.buffer

    @property
    def name(self) -> str:
        """The name of the variable that the field was first assigned to, as far as its source line tells."""
        if not self._name:
            self._name = _assigned_name(self._made_at) or "field"
        return self._name

    def _require_alive(self) -> None:
        if self._generation != world.generation:
            raise FieldError(
                f"the field '{self.name}' was made before ti.init() or ti.reset() and is gone",
                self._made_at,
                hint="run the cell that makes it again",
            )

    # ---- gradient and dual

    @property
    def grad(self) -> Any:
        """The gradient, a field of the same shape and type. Raises `FieldError` when the field was made without
        `needs_grad=True`.
        """
        if self._grad is None:
            raise FieldError(
                f"the field '{self.name}' has no gradient", self._made_at, hint="make it with needs_grad=True"
            )
        return self._grad

    @property
    def dual(self) -> Any:
        """The tangent of forward mode, a field of the same shape and type. Raises `FieldError` when made without
        `needs_dual=True`.
        """
        if self._dual is None:
            raise FieldError(f"the field '{self.name}' has no dual", self._made_at, hint="make it with needs_dual=True")
        return self._dual

    @property
    def has_grad(self) -> bool:
        return self._grad is not None

    @property
    def has_dual(self) -> bool:
        return self._dual is not None

    # ---- elements

    def _position(self, key: Any) -> tuple[int, ...]:
        self._require_alive()
        index = () if key is None else tuple(key) if isinstance(key, tuple | list | Matrix) else (key,)
        if len(index) != len(self.shape):
            raise KernelIndexError(
                f"'{self.name}' has {len(self.shape)} index dimensions, but got {len(index)}",
                hint="a 0-D field is read as x[None]" if not self.shape else "",
            )
        for axis, (i, extent) in enumerate(zip(index, self.shape, strict=True)):
            if not isinstance(i, int | np.integer):
                raise KernelIndexError(f"an index of '{self.name}' must be an integer, not {type(i).__name__}")
            if not 0 <= i < extent:
                raise KernelIndexError(
                    f"index {i} is out of range for axis {axis} of '{self.name}' with shape {self.shape}"
                )
        return tuple([int(i) for i in index])

    def _wrote(self, position: Any = ...) -> None:
        """Python is about to write to the element at `position`, or to any."""
        note_python_write(self.buffer)
        if self._dual is not None:
            open_recorder = recorder.get()
            if open_recorder is not None and open_recorder.clears_duals:
                self._dual._array[position] = 0

    def _source(self, value: Any) -> np.ndarray[Any, Any]:
        """`value` as an array of numbers that the type can hold (fractions are cut off). Raises `FieldError`."""
        try:
            source = np.asarray(value.values if isinstance(value, Matrix) else value)
        except (TypeError, ValueError) as error:
            raise FieldError(f"cannot store {value!r} in '{self.name}': {error}") from None
        if source.dtype.kind not in "biuf":
            raise FieldError(f"cannot store {value!r} in '{self.name}', a field of {self.dtype}")
        if self.dtype.kind in "iu" and source.size and not np.can_cast(source.dtype, self._array.dtype):
            # NaN compares false with everything.
            if not (source.min() >= self.dtype.lowest and source.max() <= self.dtype.highest):
                raise FieldError(
                    f"'{self.name}' is a field of {self.dtype}, which holds numbers from {self.dtype.lowest} "
                    f"to {self.dtype.highest}: cannot store {value!r}"
                )
        return source

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "a field cannot be iterated in Python; loop over range(x.shape[0]), or over the field in a kernel"
        )

    # ---- whole field

    def fill(self, value: Any) -> None:
        """Set every element to `value` (a number, or a vector or matrix of the element's shape)."""
        self._require_alive()
        source = self._source(value)
        if source.ndim and source.shape != self.element:
            wanted = f"a number or elements of shape {self.element}" if self.element else "a number"
            raise FieldError(f"'{self.name}' is filled with {wanted}, not with {value!r}")
        self._wrote()
        note_replacement(self.buffer)
        self._array[...] = source

    def to_numpy(self, dtype: Any = None) -> np.ndarray[Any, Any]:
        """A copy of shape `shape + element shape`."""
        self._require_alive()
        return self._array.astype(dtype) if dtype is not None else self._array.copy()

    def from_numpy(self, array: Any) -> None:
        """Copy an array of shape `shape + element shape` in. Raises `FieldError` when it has another shape."""
        self._require_alive()
        source = self._source(array)
        if source.shape != self._array.shape:
            raise FieldError(f"'{self.name}' needs an array of shape {self._array.shape}, not {source.shape}")
        self._wrote()
        note_replacement(self.buffer)
        self._array[...] = source

    def numpy_view(self) -> np.ndarray[Any, Any]:
        """An array that shares the field's memory, and keeps it alive. What kernels write shows in it at once, and what
        is written to it shows in kernels.
        """
        self._require_alive()
        self._wrote()
        # Every array that is sliced out of this one refers to it, so that it lives as long as anybody can write through
        # it.
        base = np.frombuffer(self.memory.view(), dtype=self._array.dtype, count=self._array.size)
        note_view(self.buffer, base)
        return base.reshape(self._array.shape)

    def copy_from(self, other: Field) -> None:
        """Copy all elements of a field of the same shape. In a tape or forward mode this is differentiated."""
        self._require_alive()
        other._require_alive()
        source = self._source(other._array)
        if source.shape != self._array.shape:
            raise FieldError(
                f"'{self.name}' has elements of shape {self._array.shape} in all, "
                f"and '{other.name}' of shape {source.shape}: they cannot be copied"
            )
        self._wrote()
        note_replacement(self.buffer, other.buffer)
        self._array[...] = source
        open_recorder = recorder.get()
        if (
            open_recorder is not None
            and open_recorder.clears_duals
            and self._dual is not None
            and other._dual is not None
        ):
            self._dual._array[...] = other._dual._array

    # ---- other libraries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """What NumPy makes of it: `np.asarray(x)` shares the memory, `np.array(x)` copies. Inside of forward mode both
        copy: a shared array counts as a write, which would clear the dual.
        """
        open_recorder = recorder.get()
        if copy is True or (copy is None and open_recorder is not None and open_recorder.clears_duals):
            return self.to_numpy(dtype)
        view = self.numpy_view()
        if dtype is None or np.dtype(dtype) == view.dtype:
            return view
        if copy is False:
            raise ValueError(f"'{self.name}' holds {self.dtype}: as {np.dtype(dtype)} it must be copied")
        return self.to_numpy(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory itself, for any library that takes part in DLPack: `torch.from_dlpack(x)`."""
        return self.numpy_view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def to_torch(self, device: Any = None) -> Any:
        """A copy as a PyTorch tensor, of shape `shape + element shape`, on the CPU or on `device`."""
        tensor = importlib.import_module("torch").from_numpy(self.to_numpy())
        return tensor if device is None else tensor.to(device)

    def from_torch(self, tensor: Any) -> None:
        """Copy a PyTorch tensor of the field's shape (`shape + element shape`) in, from any device."""
        if not isinstance(tensor, importlib.import_module("torch").Tensor):
            raise FieldError(f"from_torch takes a PyTorch tensor, not {type(tensor).__name__}")
        self.from_numpy(tensor.detach().cpu().numpy())

    def __repr__(self) -> str:
        kind = f"{self.dtype}{list(self.element) if self.element else ''}"
        return f"<field {self.name}: {kind}, shape {self.shape}{', with gradient' if self._grad is not None else ''}>"


class ScalarField(Field):
    """A field of numbers."""

    def __getitem__(self, key: Any) -> Any:
        return self._array[self._position(key)].item()

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        self._wrote(position)
        try:
            if value is None:  # which NumPy reads as NaN
                raise TypeError("it is not a number")
            self._array[position] = value
        except (TypeError, ValueError, OverflowError) as error:
            raise FieldError(f"cannot store {value!r} in '{self.name}', a field of {self.dtype}: {error}") from None


class MatrixField(Field):
    """A field of vectors or matrices."""

    @property
    def n(self) -> int:
        """Rows of one element."""
        return self.element[0]

    @property
    def m(self) -> int:
        """Columns of one element; 1 for vectors."""
        return self.element[1] if len(self.element) == 2 else 1

    def __getitem__(self, key: Any) -> Matrix:
        position = self._position(key)

        def write(index: Any, value: Any) -> None:
            source = self._source(value)
            self._wrote(position)
            self._array[position][index] = source

        return (Vector if len(self.element) == 1 else Matrix)(self._array[position], _parent=write)

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        source = self._source(value)
        if source.ndim and source.shape != self.element:
            raise FieldError(
                f"cannot store {value!r} in '{self.name}': its elements have shape {self.element}, not {source.shape}"
            )
        self._wrote(position)
        self._array[position] = source


def shape_given(shape: Any, made_at: Span) -> tuple[int, ...]:
    """A shape as a tuple. Raises `FieldError` for what is none."""
    dims = tuple(shape) if isinstance(shape, tuple | list | Matrix) else (shape,)
    for extent in dims:
        if not isinstance(extent, int | np.integer) or isinstance(extent, bool):
            raise FieldError(f"a field's shape is made of integers, not {extent!r}", made_at)
        if extent < 0:
            raise FieldError(f"a field cannot have a negative extent: shape {dims}", made_at)
        if extent > 2**31 - 1:
            raise FieldError(f"an extent of {extent} does not fit the 32-bit indices of kernels: shape {dims}", made_at)
    return tuple([int(d) for d in dims])


def _assigned_name(made_at: Span) -> str:
    """The variable or attribute that the call at `made_at` is assigned to, as far as its line tells; "" otherwise."""
    line = line_text(made_at)
    if not line or not made_at.end_column:
        return ""
    target, equals, _ = line.encode()[: made_at.column].decode(errors="ignore").partition("=")
    try:
        # A statement that goes on over further lines cannot be parsed; then what stands before the call has to do.
        statement = ast.parse(line.strip()).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        name = target.partition(":")[0].strip().removeprefix("self.")
        return name if equals and name.isidentifier() else ""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return ""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    pairs: list[tuple[ast.expr, ast.expr]] = [(t, statement.value) for t in targets]
    column = made_at.column - (len(line) - len(line.lstrip()))
    for wanted, value in pairs:
        if (
            isinstance(wanted, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(wanted.elts) == len(value.elts)
        ):
            pairs += zip(wanted.elts, value.elts, strict=True)
        elif value.col_offset == column:
            return (
                wanted.id if isinstance(wanted, ast.Name) else wanted.attr if isinstance(wanted, ast.Attribute) else ""
            )
    return ""


def _make(
    kind: type[Field], dtype: Any, shape: Any, element: Sequence[int], needs_grad: bool, needs_dual: bool, name: str
) -> Any:
    made_at = caller()
    if shape is None:
        raise FieldError("a field needs a shape", made_at, hint="for a single value pass shape=()")
    for extent in element:
        if not isinstance(extent, int) or extent < 1:
            raise FieldError(f"an element needs positive dimensions, not {tuple(element)}", made_at)
    world.require_init()
    return kind(
        scalar_type(dtype, made_at), shape_given(shape, made_at), tuple(element), needs_grad, needs_dual, made_at, name
    )


def field(
    dtype: Any, shape: Any = None, *, name: str = "", needs_grad: bool = False, needs_dual: bool = False
) -> ScalarField:
    """A field of numbers. `shape`: an extent or a tuple of them; `()` for a single value. `needs_grad` makes `x.grad`,
    of the same shape, zero at first.
    """
    return _make(ScalarField, dtype, shape, (), needs_grad, needs_dual, name)


def vector_field(
    n: int, dtype: Any = None, shape: Any = None, *, name: str = "", needs_grad: bool = False, needs_dual: bool = False
) -> MatrixField:
    """A field of vectors of `n` components."""
    return _make(MatrixField, dtype, shape, (n,), needs_grad, needs_dual, name)


def matrix_field(
    n: int,
    m: int,
    dtype: Any = None,
    shape: Any = None,
    *,
    name: str = "",
    needs_grad: bool = False,
    needs_dual: bool = False,
) -> MatrixField:
    """A field of `n` by `m` matrices."""
    return _make(MatrixField, dtype, shape, (n, m), needs_grad, needs_dual, name)


Matrix.field = staticmethod(matrix_field)  # type: ignore[attr-defined]
Vector.field = staticmethod(vector_field)  # type: ignore[attr-defined]
