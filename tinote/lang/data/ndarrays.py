"""Ndarrays: arrays that are arguments of kernels, whose code depends on neither their address nor their shape.

    @ti.kernel
    def scale(a: ti.types.ndarray(dtype=ti.f32, ndim=1), by: ti.f32):
        for i in a:
            a[i] *= by

    scale(np.ones(8, np.float32), 2.0)      # NumPy's memory, not a copy
    x = ti.ndarray(ti.f32, shape=8)         # memory of our own, with a gradient if asked for
    scale(x, 2.0)

Whoever passes an array gets one instance for each type, number of dimensions and element shape, and none per shape.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from tinote.compiler.function_source import FunctionSource
from tinote.compiler.launch.native import BoundArray
from tinote.completion import Documented
from tinote.errors import FieldError, TinoteError, shown, wrong_call
from tinote.ir.nodes import Buffer, BufferKind
from tinote.ir.types import Scalar, Tensor
from tinote.lang.data.fields import Field, MatrixField, ScalarField
from tinote.lang.data.layout import MOST_DIMENSIONS, Layout, offset_given, order_named, shape_given, warm_copy
from tinote.lang.data.matrix import Matrix, Vector, numpy_type
from tinote.lang.session.owners import coming_into_being
from tinote.lang.session.renamed import keywords_known
from tinote.lang.session.state import is_viewed, recorder, scalar_type, session
from tinote.runtime.memory import Memory
from tinote.runtime.pool import POOLED_FROM
from tinote.runtime.seam import active_listener
from tinote.source import Span, caller

_LONGEST = 2**31 - 1
#: What a stand-in has between two calls.
_NO_MEMORY = Memory(0)
_NOTHING = np.empty(0)


class ArrayKind:
    """All that a kernel's code depends on of an array argument. There is one of each, so that launches compare them by
    identity (`array_kind`). `has_second`: whether its gradient has a dual. `noalias`: whether it and its shadows
    share no memory with anything else that the launch uses.
    """

    __slots__ = ("_aliased", "dtype", "element", "has_dual", "has_grad", "has_second", "ndim", "noalias")

    def __init__(
        self,
        dtype: Scalar,
        ndim: int,
        element: tuple[int, ...],
        has_grad: bool,
        has_dual: bool,
        has_second: bool,
        noalias: bool,
    ) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.element = element
        self.has_grad = has_grad
        self.has_dual = has_dual
        self.has_second = has_second
        self.noalias = noalias
        self._aliased: ArrayKind | None = None if noalias else self

    @property
    def aliased(self) -> ArrayKind:
        """The same of an array that may share memory with something else."""
        if self._aliased is None:
            facts = self.dtype, self.ndim, self.element, self.has_grad, self.has_dual, self.has_second
            self._aliased = array_kind(*facts, noalias=False)
        return self._aliased

    def __repr__(self) -> str:
        facts = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__slots__[1:]])
        return f"ArrayKind({facts})"


_kinds: dict[tuple[Scalar, int, tuple[int, ...], bool, bool, bool, bool], ArrayKind] = {}


def array_kind(
    dtype: Scalar,
    ndim: int,
    element: tuple[int, ...],
    has_grad: bool = False,
    has_dual: bool = False,
    has_second: bool = False,
    *,
    noalias: bool,
) -> ArrayKind:
    """The kind of arrays with these facts."""
    facts = dtype, ndim, element, has_grad, has_dual, has_second, noalias
    found = _kinds.get(facts)
    # `setdefault`, because two threads may meet a kind at once.
    return found or _kinds.setdefault(facts, ArrayKind(*facts))


class ArrayBuffers:
    """What a kernel's array arguments are to the compiler: the same buffer for the same name and kind."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ArrayKind], Buffer] = {}

    def of(self, name: str, kind: ArrayKind) -> Buffer:
        found = self._known.get((name, kind))
        if found is None:
            found = self._known[name, kind] = formal_array(name, kind)
        return found


def formal_array(name: str, kind: ArrayKind) -> Buffer:
    """What an array argument of this kind is to the compiler."""

    def make(name: str) -> Buffer:
        shape = (None,) * kind.ndim
        return Buffer(name, kind.dtype, shape, kind.element, BufferKind.ARRAY, noalias=kind.noalias)

    buffer = make(name)
    if kind.has_grad:
        buffer.adjoint = make(f"{name}.grad")
        buffer.adjoint.primal = buffer
    if kind.has_dual:
        buffer.tangent = make(f"{name}.dual")
        buffer.tangent.primal = buffer
    if buffer.adjoint is not None and kind.has_second:
        second = buffer.adjoint.tangent = make(f"{name}.grad.dual")
        second.primal = buffer.adjoint
    return buffer


class CopiedArray(BoundArray):
    """An array of the caller's whose elements do not lie one after the other (strided, in Fortran's order, turned
    round): kernels get `owner`, a contiguous copy of `original`, and what they write is copied back.
    """

    original: np.ndarray[Any, Any]

    def bring_back(self) -> None:
        """Copy what was written to the copy to the caller's array."""
        self.original[...] = self.owner


# ---- arrays of our own


class Ndarray(Field):
    """An array that kernels take as an argument annotated with `ti.types.ndarray(...)`.

    In Python it is used as a field is.

    Methods
    -------
    copy_from
    fill
    from_numpy
    from_torch
    numpy_view
    to_numpy
    to_torch

    Attributes
    ----------
    element_shape : tuple of int
    grad : Ndarray
    dual : Ndarray
    has_grad : bool
    has_dual : bool

    Examples
    --------
    >>> a = ti.ndarray(ti.f32, (2, 2))
    >>> isinstance(a, ti.Ndarray), a.shape
    (True, (2, 2))
    """

    _word = "ndarray"

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of one element: () of numbers, (n,) of vectors, (n, m) of matrices."""
        return self.element

    def _new_memory(self, nbytes: int) -> Memory:
        return Memory(nbytes)  # what launches get by its address is the host's

    def __copy__(self) -> Ndarray:
        """A shallow copy shares the memory: it is the array itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ndarray:
        """An array of its own with the same elements. A gradient and a dual, where this one has them, are zero."""
        made = type(self)(self.dtype, self.element, caller(), "", self.has_grad, self.has_dual)
        made._make_dense_like(self)
        if (found := recorder.get()) is not None:
            found.made_by_user(made)
        made.copy_from(self)
        return made

    @property
    def _drops_columns(self) -> bool:
        return False


class ScalarNdarray(Ndarray, ScalarField):
    """An array of numbers, as `ti.ndarray(ti.f32, shape)` makes it.

    Examples
    --------
    >>> isinstance(ti.ndarray(ti.f32, 3), ti.ScalarNdarray)
    True
    """


class MatrixNdarray(Ndarray, MatrixField):
    """An array of matrices, as `ti.Matrix.ndarray(n, m, ti.f32, shape)` makes it.

    Examples
    --------
    >>> A = ti.Matrix.ndarray(2, 3, ti.f32, 8)
    >>> isinstance(A, ti.MatrixNdarray), A.element_shape
    (True, (2, 3))
    """


class VectorNdarray(Ndarray, MatrixField):
    """An array of vectors, as `ti.Vector.ndarray(n, ti.f32, shape)` makes it.

    Examples
    --------
    >>> v = ti.Vector.ndarray(3, ti.f32, 8)
    >>> isinstance(v, ti.VectorNdarray), v.element_shape
    (True, (3,))
    """


_KINDS: tuple[type[Ndarray], ...] = (ScalarNdarray, VectorNdarray, MatrixNdarray)


class ArrayOptions(TypedDict, total=False):
    """What may be said of an array besides its type and shape."""

    needs_grad: bool | None
    needs_dual: bool | None
    name: str


def _make(
    dtype: Any, shape: Any, element: tuple[int, ...], needs_grad: bool | None, needs_dual: bool | None, name: str
) -> Any:
    made_at = caller()
    for extent in element:
        if not isinstance(extent, int) or isinstance(extent, bool) or extent < 1:
            raise FieldError(f"an element needs positive dimensions, not {element}", made_at)
    if shape is None:
        raise FieldError("an array needs a shape", made_at, hint="for a single value pass shape=()")
    made = _KINDS[len(element)](scalar_type(dtype, made_at), element, made_at, name, needs_grad, needs_dual)
    extents = shape_given(shape, made_at)
    order, offset = order_named(None, len(extents), made_at), offset_given(None, extents, made_at)
    made._make_dense(extents, order, Layout.AOS, offset)
    if made.has_grad:
        made.noted = -1  # which of them a kernel is launched with is not known before
    if (found := recorder.get()) is not None:
        found.made_by_user(made)
    return made


@overload
def ndarray(dtype: type[Matrix], shape: Any = None, **options: Unpack[ArrayOptions]) -> MatrixNdarray: ...
@overload
def ndarray(dtype: Any, shape: Any = None, **options: Unpack[ArrayOptions]) -> ScalarNdarray: ...
@keywords_known
def ndarray(
    dtype: Any, shape: Any = None, *, needs_grad: bool | None = None, needs_dual: bool | None = None, name: str = ""
) -> Any:
    """Make an array in the session's memory that kernels take as an argument.

    Parameters
    ----------
    dtype : type
        The type of the elements: a number, vector or matrix type.
    shape : int or tuple of int
        The extent of each index dimension.
    needs_grad : bool, optional
        True makes `x.grad`, of the same shape. Left out, the array has no gradient to read; where differentiated values
        go through it, it has a temporary one as long as the tape lasts. `needs_grad=False` makes it a constant, as for
        `ti.field`.
    needs_dual : bool, optional
        The same for forward mode: True makes `x.dual`.
    name : str, optional
        The name that errors use.

    Returns
    -------
    Ndarray
        A `ScalarNdarray`, `VectorNdarray` or `MatrixNdarray`, whose elements are zero.

    Raises
    ------
    FieldError
        For types and shapes that an array cannot have.

    Examples
    --------
    >>> @ti.kernel
    ... def double(a: ti.types.ndarray()):
    ...     for i in a:
    ...         a[i] *= 2
    >>> a = ti.ndarray(ti.i32, 3)
    >>> a.fill(4)
    >>> double(a)
    >>> a.to_numpy()
    array([8, 8, 8], dtype=int32)
    """
    t = _tensor_type(dtype)
    if t is not None:
        return _make(t.dtype, shape, t.shape, needs_grad, needs_dual, name)
    return _make(dtype, shape, (), needs_grad, needs_dual, name)


def vector_ndarray(
    n: int,
    dtype: Any,
    shape: Any = None,
    *,
    needs_grad: bool | None = None,
    needs_dual: bool | None = None,
    name: str = "",
) -> VectorNdarray:
    """Make an array of vectors that kernels take as an argument.

    Parameters
    ----------
    n : int
        The number of components.
    dtype : number type
        The type of the components.
    shape : int or tuple of int
        The extent of each index dimension.
    needs_grad : bool, optional
        True makes `x.grad`; left out, there is a temporary adjoint where derivatives need one; `needs_grad=False` makes
        the array a constant.
    needs_dual : bool, optional
        True makes `x.dual`, for forward mode.
    name : str, optional
        The name that errors use.

    Returns
    -------
    VectorNdarray
        An array whose elements are vectors of `n` zeros.

    Examples
    --------
    >>> v = ti.Vector.ndarray(3, ti.f32, shape=2)
    >>> v[0] = [1.0, 2.0, 3.0]
    >>> v[0]
    Vector([1.0, 2.0, 3.0])
    """
    return _make(dtype, shape, (n,), needs_grad, needs_dual, name)


def matrix_ndarray(
    n: int,
    m: int,
    dtype: Any,
    shape: Any = None,
    *,
    needs_grad: bool | None = None,
    needs_dual: bool | None = None,
    name: str = "",
) -> MatrixNdarray:
    """Make an array of matrices that kernels take as an argument.

    Parameters
    ----------
    n, m : int
        The numbers of rows and of columns.
    dtype : number type
        The type of the components.
    shape : int or tuple of int
        The extent of each index dimension.
    needs_grad : bool, optional
        True makes `x.grad`; left out, there is a temporary adjoint where derivatives need one; `needs_grad=False` makes
        the array a constant.
    needs_dual : bool, optional
        True makes `x.dual`, for forward mode.
    name : str, optional
        The name that errors use.

    Returns
    -------
    MatrixNdarray
        An array whose elements are matrices of zeros.

    Examples
    --------
    >>> m = ti.Matrix.ndarray(2, 3, ti.f32, shape=4)
    >>> m.to_numpy().shape
    (4, 2, 3)
    """
    return _make(dtype, shape, (n, m), needs_grad, needs_dual, name)


class StandIn(ScalarNdarray):
    """An ndarray with a gradient that kernels take for a NumPy array of the caller's: elements may be taken from its
    last dimensions.

    One may serve a call after the other, for arrays of the same shape and type: `hold` and `let_go` begin and end that.
    `before`: what it held before it was written to; None as long as it was not. `unshared`: its `references` while
    nobody has it but who made it.
    """

    stands_in = True
    before: np.ndarray[Any, Any] | None = None
    unshared: tuple[int, int] = 0, 0

    def hold(self, array: np.ndarray[Any, Any]) -> None:
        """Hold what an array holds; gradient and duals are zero."""
        if self.memory is _NO_MEMORY:
            self._move(Memory(array.nbytes, clear=False))
            for one in self._derivatives():
                one._move(Memory(array.nbytes))
        session.fields.add(self)
        if (listener := active_listener()) is not None:
            listener.assigning(self._array, ..., array, array)
        self._array[...] = array

    def _derivatives(self) -> list[Field]:
        """Its gradient, its dual and that of the gradient, as far as it has them."""
        gradient = self._grad
        assert gradient is not None
        return [one for one in (gradient, self._dual, gradient._dual) if one is not None]

    def references(self) -> tuple[int, int]:
        """How many there are to it, and to its gradient or a dual at most."""
        return sys.getrefcount(self), max(map(sys.getrefcount, self._derivatives()))

    def _like(self, name: str) -> Field:
        """What is like it does not stand in for anything."""
        return self._twice(ScalarNdarray, name)

    def let_go(self) -> bool:
        """The call is over. Gives whether it can serve another one. Memory of some size goes, as it may be a result of
        the call.
        """
        derivatives = self._derivatives()
        if session.has_views and any(is_viewed(one.buffer) for one in (self, *derivatives)):
            return False
        self.before = None
        session.fields.discard(self)
        if self.memory.nbytes < POOLED_FROM:
            for one in derivatives:
                one.memory.clear()
            return True
        for one in (self, *derivatives):
            one.memory = session.memories[one.buffer] = _NO_MEMORY
            one._array = _NOTHING
            one._bound = None
        return True

    def taken(self, derivative: Field) -> np.ndarray[Any, Any]:
        """What its gradient, or a dual, holds: the caller's from now on."""
        found = derivative.held()
        return found if found.nbytes >= POOLED_FROM else found.copy()

    @property
    def is_alive(self) -> bool:
        """Whether it is of this session."""
        return self._generation == session.resets

    def about_to_change(self) -> None:
        """It is about to be written to: from now on its memory differs from the array."""
        if self.before is None:
            self.before = warm_copy(self._array)

    def __tinote_buffer__(self) -> Buffer:
        # A kernel takes it as a template or from outside, and says nothing when it writes to it.
        self.about_to_change()
        return super().__tinote_buffer__()

    def _wrote(self, position: Any, value: Any, source: Buffer | None = None) -> None:
        self.about_to_change()
        super()._wrote(position, value, source)

    def numpy_view(self) -> np.ndarray[Any, Any]:
        self.about_to_change()
        return super().numpy_view()


def stand_in(array: np.ndarray[Any, Any], *, needs_dual: bool) -> StandIn:
    """What stands in for `array` in kernels that are annotated for it."""
    made_at = caller()
    made = StandIn(scalar_type(array.dtype, made_at), (), made_at, "argument", True, needs_dual or None)
    made._make_dense(array.shape, tuple(range(array.ndim)), Layout.AOS, ())
    made.unshared = made.references()
    for one in made._derivatives():
        session.fields.discard(one)  # what all fields' gradients and duals are asked is none of its business
    made.hold(array)
    return made


def from_dlpack(source: Any) -> np.ndarray[Any, Any]:
    """The memory of another library's array as a NumPy array that kernels take as an argument; nothing is copied.

    Parameters
    ----------
    source : object with `__dlpack__`
        An array of NumPy, PyTorch, JAX, … in the memory of the CPU.

    Returns
    -------
    numpy.ndarray
        An array that shares the memory of `source`.

    Raises
    ------
    FieldError
        Where the library refuses, or the memory is that of another device.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.zeros(3)
    >>> b = ti.from_dlpack(a)
    >>> b[0] = 1.0
    >>> a
    array([1., 0., 0.])
    """
    return _imported(source, lambda why, hint: FieldError(why, caller(), hint=hint))


# ---- the annotation


class ElementHint:
    """`ti.types.vector()` or `ti.types.matrix()` with something left out, for the elements of arrays: `shape` holds
    None for an extent that is free, and so may `dtype` be.
    """

    def __init__(self, dtype: Any, shape: tuple[int | None, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    def __repr__(self) -> str:
        names = ("n", "m")[: len(self.shape)]
        said = [f"{name}={n}" for name, n in zip(names, self.shape, strict=True) if n is not None]
        said += [f"dtype={self.dtype}"] if self.dtype is not None else []
        return f"ti.types.{'vector' if len(self.shape) == 1 else 'matrix'}({', '.join(said)})"


class NdarrayType(Documented):
    """The annotation of a parameter that is an array; what is left out may be anything.

    Attributes
    ----------
    dtype : type
    ndim : int

    Parameters
    ----------
    dtype : type, optional
        The type of the elements: a number, vector or matrix type, or one of these with something left out:
        `ti.types.vector()`, `ti.types.matrix(n=2)`.
    ndim : int, optional
        The number of index dimensions.
    element_dim : int, optional
        With a number type for `dtype`: how many of the last dimensions of a NumPy array belong to the element.
    element_shape : sequence of int or None, optional
        The extents of these.
    field_dim : int, optional
        The old name of `ndim`.
    needs_grad : bool, optional
        Whether the array must have a gradient.
    boundary : {"unsafe", "clamp"}
        With "clamp", an index outside stands for the nearest one inside, to be read and to be written. With "unsafe",
        indices are checked all the same.

    Raises
    ------
    FieldError
        For what no array can have.

    Examples
    --------
    >>> import numpy as np
    >>> @ti.kernel
    ... def total(a: ti.types.ndarray(dtype=ti.f32, ndim=1)) -> ti.f32:
    ...     s = 0.0
    ...     for i in a:
    ...         s += a[i]
    ...     return s
    >>> total(np.ones(5, np.float32))
    5.0
    """

    __tinote_array__ = True

    def __init__(
        self,
        dtype: Any = None,
        ndim: int | None = None,
        element_dim: int | None = None,
        element_shape: Sequence[int | None] | None = None,
        field_dim: int | None = None,
        needs_grad: bool | None = None,
        boundary: str = "unsafe",
    ) -> None:
        ndim = field_dim if ndim is None else ndim
        for what, number, most in (("ndim", ndim, MOST_DIMENSIONS), ("element_dim", element_dim, 2)):
            if number is not None and (
                not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= most
            ):
                raise FieldError(f"{what} of an array type is a number from 0 to {most}, not {number!r}", caller())
        if boundary not in ("unsafe", "clamp"):
            raise FieldError(f"arrays have no boundary={boundary!r}", caller(), hint='there are "unsafe" and "clamp"')
        if isinstance(dtype, ElementHint):
            element_shape, dtype = dtype.shape, dtype.dtype
        if element_shape is not None:
            element_shape = tuple(element_shape)
            if element_dim not in (None, len(element_shape)):
                raise FieldError(f"element_dim={element_dim} contradicts element_shape={element_shape}", caller())
        elif element_dim == 0:
            element_shape = ()
        t = _tensor_type(dtype)
        if t is not None and element_shape not in (None, t.shape):
            raise FieldError(f"element_shape={element_shape} contradicts dtype={dtype!r}", caller())
        if dtype is not None and t is None:
            scalar_type(dtype)  # raises for what is not a number type
        self.dtype = dtype
        self.ndim = ndim
        self._element_dim = element_dim if element_shape is None else len(element_shape)
        self._element: tuple[int | None, ...] | None = None if element_shape is None else tuple(element_shape)
        self.needs_grad = needs_grad
        self.clamps = boundary == "clamp"

    def _expected(self) -> tuple[Scalar | None, tuple[int | None, ...] | None, int | None]:
        """The type of the numbers, the shape of the elements, and how many dimensions that has, as far as said."""
        if self.dtype is None:
            return None, self._element, self._element_dim
        t = _tensor_type(self.dtype)
        if t is not None:
            return t.dtype, t.shape, len(t.shape)
        return scalar_type(self.dtype), self._element, self._element_dim

    def binder(self, refuse: Callable[[str, str], Exception]) -> Callable[[Any], tuple[ArrayKind, BoundArray]]:
        """What tells of an argument what the kernel's code depends on, and where it is. `refuse` makes the error for
        what does not fit, from a sentence about the argument and a hint. What `float` means here is what it means now.
        """
        expected = self._expected()
        _, element, element_dim = expected
        taken = len(element) if element is not None else element_dim or 0
        accepted: set[ArrayKind] = set()
        is_quiet = False
        numpy_array = np.ndarray

        def bind(value: Any) -> tuple[ArrayKind, BoundArray]:
            nonlocal is_quiet
            is_ours = False
            # What is passed most often comes first: each question takes a hundredth of a launch.
            if type(value) is numpy_array:
                kind, bound = _of_numpy(value, taken, refuse)
            elif isinstance(value, Field):
                is_ours = True
                kind, bound = _of_field(value, refuse)
                if taken and isinstance(value, StandIn):
                    kind, bound = _regrouped(kind, bound, taken, refuse)
            else:
                array = value if isinstance(value, numpy_array) else _imported(value, refuse)
                kind, bound = _of_numpy(array, taken, refuse)
            if type(bound) is CopiedArray and not is_quiet:
                is_quiet = True
                _say_copied(refuse, bound.original)
            if kind not in accepted:
                self._check(kind, bound.shape, expected, is_ours and not isinstance(value, StandIn), refuse)
                accepted.add(kind)
            return kind, bound

        return bind

    def misfit(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[str, str] | None:
        """Whether it is the "dtype" or the "shape" of such an array that does not fit, if either does, and a sentence
        about the argument. There need not be an array yet.
        """
        expected = self._expected()
        number, element, element_dim = expected
        taken = len(element) if element is not None else element_dim or 0
        array = np.broadcast_to(np.zeros((), dtype), shape)
        try:
            kind = _kind_of_numpy(array, taken, _Misfit)
            self._check(kind, shape[: kind.ndim], expected, False, _Misfit)
        except _Misfit as error:
            is_dtype = number is not None and numpy_type(number) != dtype
            return "dtype" if is_dtype else "shape", error.args[0]
        return None

    def _check(
        self,
        kind: ArrayKind,
        shape: tuple[int, ...],
        expected: tuple[Scalar | None, tuple[int | None, ...] | None, int | None],
        is_ours: bool,
        refuse: Callable[[str, str], Exception],
    ) -> None:
        """Raise when an array is not of the kind that the annotation says."""
        dtype, element, element_dim = expected
        if is_ours and element is None and element_dim is None and self.dtype is not None:
            element = ()
        if dtype is not None and kind.dtype is not dtype:
            hint = "" if is_ours else f"convert it: `.astype(np.{numpy_type(dtype).name})`"
            raise refuse(f"is an array of {dtype}, and is called with one of {kind.dtype}", hint)
        wrong_element = element is not None and not _fits(kind.element, element)
        if wrong_element or (element_dim is not None and len(kind.element) != element_dim):
            known = element is not None and None not in element
            wanted = f"shape {element}" if known else f"{element_dim} dimensions"
            hint = "annotate it with `dtype=ti.types.vector(n, ti.f32)` or `dtype=ti.types.matrix(n, m, ti.f32)`"
            raise refuse(
                f"has elements of {wanted}, and is called with elements of shape {kind.element}",
                hint if element == () else "",
            )
        if self.ndim is not None and kind.ndim != self.ndim:
            whole = shape + kind.element
            elements = f" and elements of shape {kind.element}" if kind.element else ""
            raise refuse(f"has {self.ndim} dimensions{elements}, and is called with an array of shape {whole}", "")
        if self.needs_grad is not None and kind.has_grad is not self.needs_grad:
            if self.needs_grad:
                hint = "make the array with `ti.ndarray(…, needs_grad=True)`"
                raise refuse("needs an array with a gradient, and is called with one without", hint)
            raise refuse("takes an array without a gradient, and is called with one that has one", "")

    def __repr__(self) -> str:
        said = [
            *([f"dtype={self.dtype!r}"] if self.dtype is not None else []),
            *([f"ndim={self.ndim}"] if self.ndim is not None else []),
            *([f"element_dim={self._element_dim}"] if self._element_dim is not None and self._element is None else []),
            *([f"element_shape={self._element}"] if self._element is not None else []),
            *([f"needs_grad={self.needs_grad}"] if self.needs_grad is not None else []),
            *(['boundary="clamp"'] if self.clamps else []),
        ]
        return f"ti.types.ndarray({', '.join(said)})"


def _fits(element: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether elements have a shape, perhaps with free extents."""
    return len(element) == len(wanted) and all(w in (None, n) for n, w in zip(element, wanted, strict=True))


def _tensor_type(dtype: Any) -> Tensor | None:
    ask = getattr(dtype, "__tinote_type__", None)
    found = ask() if callable(ask) else dtype
    return found if isinstance(found, Tensor) else None


def _of_field(value: Field, refuse: Callable[[str, str], Exception]) -> tuple[ArrayKind, BoundArray]:
    value._require_alive()
    found = value._bound
    if found is None:
        with coming_into_being():  # what it gets meanwhile belongs to it, too
            found = value._bound = _bind(value, refuse)
    return found


def _bind(value: Field, refuse: Callable[[str, str], Exception]) -> tuple[ArrayKind, BoundArray]:
    buffer = value.buffer if value.stands_in else value.__tinote_buffer__()
    array = value._array
    if any(buffer.offset):
        raise refuse(
            "is an array whose indices begin at 0, and is called with a field whose indices begin elsewhere",
            "annotate the parameter with `ti.template()`",
        )
    if not array.flags.c_contiguous:
        raise refuse(
            "is an array whose elements lie one after the other, and is called with a field that lies otherwise",
            "annotate the parameter with `ti.template()`",
        )
    second = value.has_grad and value.grad.has_dual
    facts = value.dtype, len(value.shape), value.element, value.has_grad, value.has_dual, second
    # A field is usually used by its own name as well, and that of a tree lies among others.
    kind = array_kind(*facts, noalias=isinstance(value, Ndarray))
    bound = BoundArray(
        _address(value),
        _address(value.grad) if value.has_grad else 0,
        _address(value.dual) if value.has_dual else 0,
        _address(value.grad.dual) if second else 0,
        value.shape,
        array.nbytes,
        True,
        buffer,
        [f.memory for f in (value, value._grad, value._dual, value.grad.dual if second else None) if f is not None],
    )
    return kind, bound


def bound_of(field: Field, rank: int) -> BoundArray:
    """A field as a launch gets it that has arrays of `rank` dimensions, and elements of the others."""
    bound = _of_field(field, lambda why, hint: FieldError(f"'{field.name}' {why}", caller(), hint=hint))[1]
    return bound if len(bound.shape) == rank else bound._replace(shape=bound.shape[:rank])


def _regrouped(
    kind: ArrayKind, bound: BoundArray, taken: int, refuse: Callable[[str, str], Exception]
) -> tuple[ArrayKind, BoundArray]:
    """The same memory with the last `taken` dimensions as elements."""
    rank = len(bound.shape) - taken
    if rank < 0:
        raise refuse(f"has elements of {taken} dimensions, and is called with an array of shape {bound.shape}", "")
    facts = kind.dtype, rank, bound.shape[rank:], kind.has_grad, kind.has_dual, kind.has_second
    regrouped = array_kind(*facts, noalias=kind.noalias)
    return regrouped, bound._replace(shape=bound.shape[:rank])


def _address(field: Field) -> int:
    return field._array.__array_interface__["data"][0]


#: The kind of plain arrays of a NumPy type and rank whose elements are numbers: what `_kind_of_numpy` has found.
_PLAIN: dict[tuple[np.dtype[Any], int], ArrayKind] = {}


def _of_numpy(
    array: np.ndarray[Any, Any], taken: int, refuse: Callable[[str, str], Exception]
) -> tuple[ArrayKind, BoundArray]:
    # `carray`: contiguous, aligned and writable. An array of fewer elements than an index can count has no longer
    # extent; of one without elements, NumPy gives no address.
    if not taken and type(array) is np.ndarray and array.flags.carray and 0 < array.size <= _LONGEST:
        kind = _PLAIN.get((array.dtype, array.ndim))
        if kind is not None:
            address = addressof(c_char.from_buffer(array))  # pyright: ignore[reportArgumentType] (it is a buffer)
            return kind, BoundArray(address, 0, 0, 0, array.shape, array.nbytes, True, None, array)
    kind = _kind_of_numpy(array, taken, refuse)
    if not taken:
        _PLAIN[array.dtype, array.ndim] = kind
    shape = array.shape[: kind.ndim]
    if array.flags.c_contiguous:
        address = array.__array_interface__["data"][0]
        return kind, BoundArray(address, 0, 0, 0, shape, array.nbytes, array.flags.writeable, None, array)
    copy = np.ascontiguousarray(array)
    address = copy.__array_interface__["data"][0]
    # Not writable, so that launches ask what else is to be done.
    bound = CopiedArray(address, 0, 0, 0, shape, copy.nbytes, False, None, copy)
    bound.original = array
    return kind, bound


def _kind_of_numpy(array: np.ndarray[Any, Any], taken: int, refuse: Callable[[str, str], Exception]) -> ArrayKind:
    """The kind of an array whose last `taken` dimensions belong to the element."""
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or not array.dtype.isnative:
        raise refuse(
            f"is called with an array of {array.dtype}, which kernels cannot read",
            "convert it to numbers with `.astype(np.float32)`, or another type of NumPy",
        )
    if not array.flags.aligned:
        raise refuse("is called with an array whose numbers are not aligned in memory", "pass a copy: `a.copy()`")
    if isinstance(array, np.ma.MaskedArray):
        raise refuse("is called with a masked array, whose mask kernels would ignore", "pass `a.data` or `a.filled()`")
    if taken > array.ndim:
        raise refuse(f"has elements of {taken} dimensions, and is called with an array of shape {array.shape}", "")
    whole = array.shape
    if whole and max(whole) > _LONGEST:
        raise refuse(f"is called with an array of shape {whole}: an extent does not fit the 32-bit indices", "")
    rank = array.ndim - taken
    kind = array_kind(scalar_type(array.dtype), rank, whole[rank:], noalias=True)
    if 0 in kind.element:
        raise refuse(f"is called with an array of shape {whole}, whose elements are empty", "")
    return kind


_CPU = 1


def _imported(value: Any, refuse: Callable[[str, str], Exception]) -> np.ndarray[Any, Any]:
    """Another library's array as NumPy sees it, in the same memory."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            raise refuse(f"is called with a tensor on {value.device}", "kernels run on the CPU: pass `tensor.cpu()`")
        if not value.is_contiguous():
            raise refuse("is called with a tensor that is not contiguous", "pass `tensor.contiguous()`")
        try:
            return value.detach().numpy()
        except (TypeError, RuntimeError) as error:
            raise refuse(f"is called with a tensor that cannot be read: {error}", "") from None
    if not hasattr(value, "__dlpack__"):
        raise refuse(f"is an array, and is called with {_short(value)}", "pass `np.array(…)`, a ti.ndarray or a tensor")
    try:
        device = value.__dlpack_device__()[0]
        if int(device) != _CPU:
            raise refuse("is called with an array on another device", "kernels run on the CPU: copy it there first")
        return np.from_dlpack(value)
    except (TypeError, ValueError, RuntimeError, BufferError, AttributeError) as error:
        raise refuse(f"is called with an array that cannot be shared: {error}", "pass a NumPy array") from None


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


class _Misfit(Exception):
    """An array does not fit its annotation: why, and a hint."""


def argument_error(source: FunctionSource, parameter: ast.arg) -> Callable[[str, str], Exception]:
    """Makes the errors about one argument of a kernel."""

    def error(why: str, hint: str) -> Exception:
        q = parameter
        span = Span(source.file, q.lineno, q.col_offset, q.end_lineno or 0, q.end_col_offset or 0)
        return wrong_call(f"argument '{q.arg}' of kernel '{source.name}' {why}", span, hint)

    return error


def _say_copied(refuse: Callable[[str, str], Exception], array: np.ndarray[Any, Any]) -> None:
    """Warn that an argument is copied, which takes time at each launch."""
    shown = f"(shape {array.shape}, strides {array.strides})"
    error = refuse(f"is an array whose elements do not lie one after the other {shown}: launches copy it", "")
    assert isinstance(error, TinoteError)
    place = caller()
    warnings.warn_explicit(error.message, UserWarning, place.file or error.span.file, place.line or 1)


Matrix.ndarray = staticmethod(matrix_ndarray)  # type: ignore[attr-defined]
Vector.ndarray = staticmethod(vector_ndarray)  # type: ignore[attr-defined]
