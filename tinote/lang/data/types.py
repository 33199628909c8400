"""`ti.types`: the types of arguments, results and values that are more than one number."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from tinote.compiler.protocol import adds_at, unit_of
from tinote.completion import Documented
from tinote.errors import FieldError
from tinote.ir.types import Scalar, Tensor, scalar_named
from tinote.lang.data.fields import MatrixField
from tinote.lang.data.matrix import Matrix, Vector, as_type, require_numbers
from tinote.lang.data.ndarrays import ElementHint, NdarrayType
from tinote.lang.data.primitive_types import f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64
from tinote.lang.session.missing import refusing
from tinote.lang.session.state import scalar_type, session

__all__ = [
    "MatrixType", "Template", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "is_integral", "is_real", "is_signed",
    "matrix", "ndarray", "sparse_matrix_builder", "template", "u1", "u8", "u16", "u32", "u64", "vector",
]  # fmt: skip

#: `ti.types.ndarray(dtype=…, ndim=…)`
ndarray = NdarrayType


class TemplateType:
    """The annotation of a parameter that is a compile-time object: a field, a constant, anything.

    A kernel is compiled once for each object that it gets there.

    Examples
    --------
    >>> @ti.kernel
    ... def fill(f: ti.template(), a: ti.f32):
    ...     for i in f:
    ...         f[i] = a
    >>> x = ti.field(ti.f32, shape=2)
    >>> fill(x, 1.5)
    >>> x.to_numpy()
    array([1.5, 1.5], dtype=float32)
    """

    __tinote_template__ = True

    def __call__(self) -> TemplateType:
        return self

    def __repr__(self) -> str:
        return "ti.template()"


template = TemplateType()

if TYPE_CHECKING:
    Template: TypeAlias = Any
else:
    #: `template()` as type checkers take it, which allow no calls in annotations.
    Template = TemplateType


class SparseMatrixBuilderType:
    """The annotation of a parameter that is a `ti.linalg.SparseMatrixBuilder`.

    A kernel gets its lists, as arrays, so that builders share an instance.

    Examples
    --------
    >>> @ti.kernel
    ... def fill(A: ti.types.sparse_matrix_builder()):
    ...     for i in range(3):
    ...         A[i, i] += 1.0
    >>> builder = ti.linalg.SparseMatrixBuilder(3, 3, max_num_triplets=3)
    >>> fill(builder)
    >>> builder.build().nnz
    3
    """

    __tinote_pack__ = {
        "_rows": NdarrayType(i32, 1),
        "_columns": NdarrayType(i32, 1),
        "_values": NdarrayType(ndim=1),
        "_count": NdarrayType(i32, 1),
    }

    def __call__(self) -> SparseMatrixBuilderType:
        return self

    def __tinote_leaves__(self, value: Any) -> list[Any] | None:
        """The lists of a builder; None of what is none."""
        return None if adds_at(value) is None else [getattr(value, name) for name in self.__tinote_pack__]

    def __tinote_expected__(self) -> str:
        """What an argument is, for messages."""
        return "a ti.linalg.SparseMatrixBuilder"

    def __repr__(self) -> str:
        return "ti.types.sparse_matrix_builder()"


sparse_matrix_builder = SparseMatrixBuilderType()


class _Unsigned:
    """Stands for the unsigned type that is as wide as the session's default integer."""

    def __repr__(self) -> str:
        return "unsigned int"


UNSIGNED = _Unsigned()


class MatrixType(Documented):
    """A vector or matrix type: it annotates arguments and results, and makes values, in kernels and in Python.

    Parameters
    ----------
    dtype : number type
        The type of the components; `float` and `int` mean the session's default types, as they are when the type is
        used.
    shape : tuple of int
        (n,) for vectors, (n, m) for matrices.

    Examples
    --------
    >>> vec2 = ti.types.vector(2, ti.f32)
    >>> isinstance(vec2, ti.types.MatrixType), vec2(1.0, 2.0)
    (True, Vector([1.0, 2.0]))
    """

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        for extent in shape:
            if not isinstance(extent, int) or isinstance(extent, bool) or extent < 1:
                raise FieldError(f"a vector or matrix type needs positive dimensions, not {shape}")
        #: what the components are measured in, if that was declared
        self.__tinote_unit__ = unit_of(dtype)
        if self.__tinote_unit__ is not None:
            dtype = dtype.scalar
        if dtype is not UNSIGNED:
            scalar_type(dtype)  # raises for what is not a number type
        self._dtype = dtype
        self.shape = shape

    def __tinote_type__(self) -> Tensor:
        if self._dtype is UNSIGNED:
            return Tensor(scalar_named(session.config.default_ip.replace("i", "u")), self.shape)
        return Tensor(scalar_type(self._dtype), self.shape)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """Number of columns; 1 for a vector."""
        return self.shape[1] if len(self.shape) == 2 else 1

    @property
    def dtype(self) -> Scalar:
        """The number type of the components."""
        return self.__tinote_type__().dtype

    def __call__(self, *components: Any) -> Matrix:
        """A value from its components (numbers, vectors, rows), or from one number for all of them."""
        flat = np.concatenate([_flat(c) for c in components]) if components else np.zeros(1)
        count = int(np.prod(self.shape))
        if flat.size not in (1, count):
            raise FieldError(f"{self!r} needs {count} components, not {flat.size}")
        values = np.broadcast_to(flat, self.shape) if flat.size == 1 else flat.reshape(self.shape)
        return (Vector if len(self.shape) == 1 else Matrix)(as_type(values, self.dtype))

    def field(self, shape: Any = None, **options: Any) -> MatrixField:
        """Make a field of values of this type.

        Parameters
        ----------
        shape : int or tuple of int, optional
            The extent of each index dimension.
        **options
            As for `ti.Vector.field`.

        Returns
        -------
        MatrixField
            The field.

        Examples
        --------
        >>> v = ti.math.vec3.field(shape=2)
        >>> v.to_numpy().shape
        (2, 3)
        """
        unit = self.__tinote_unit__
        dtype = self.dtype if unit is None else self.dtype[unit]
        if len(self.shape) == 1:
            return Vector.field(self.n, dtype, shape, **options)  # type: ignore[attr-defined]
        return Matrix.field(self.n, self.m, dtype, shape, **options)  # type: ignore[attr-defined]

    def ndarray(self, shape: Any = None, **options: Any) -> Any:
        """Make an array of values of this type.

        Parameters
        ----------
        shape : int or tuple of int
            The extent of each index dimension.
        **options
            As for `ti.ndarray`.

        Returns
        -------
        VectorNdarray or MatrixNdarray
            The array.

        Examples
        --------
        >>> v = ti.math.vec3.ndarray(shape=2)
        >>> v.to_numpy().shape
        (2, 3)
        """
        if len(self.shape) == 1:
            return Vector.ndarray(self.n, self.dtype, shape, **options)  # type: ignore[attr-defined]
        return Matrix.ndarray(self.n, self.m, self.dtype, shape, **options)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixType) and other.__tinote_type__() == self.__tinote_type__()

    def __hash__(self) -> int:
        return hash(self.shape)  # what `float` means may change

    def __repr__(self) -> str:
        shape, dtype = self.shape, self._dtype
        name = getattr(dtype, "__name__", None) if isinstance(dtype, type) else f"ti.{dtype}"
        return f"ti.types.{'vector' if len(shape) == 1 else 'matrix'}({', '.join(map(str, shape))}, {name})"


def _flat(component: Any) -> np.ndarray[Any, Any]:
    if isinstance(component, tuple | list):
        return np.concatenate([_flat(c) for c in component]) if component else np.zeros(0)
    numbers = component.values if isinstance(component, Matrix) else component
    require_numbers(numbers)
    return np.ravel(np.asarray(numbers))


@overload
def vector(n: int, dtype: Any) -> MatrixType: ...
@overload
def vector(n: int | None = None, dtype: Any = None) -> Any: ...
def vector(n: int | None = None, dtype: Any = None) -> Any:
    """The type of vectors of `n` components.

    Parameters
    ----------
    n : int, optional
        The number of components. If one of the two is left out, the type only serves as the `dtype` of
        `ti.types.ndarray`.
    dtype : number type, optional
        The type of the components.

    Returns
    -------
    MatrixType
        The type.

    Raises
    ------
    FieldError
        For dimensions below 1.

    Examples
    --------
    >>> vec4 = ti.types.vector(4, ti.f64)
    >>> vec4(0.5)
    Vector([0.5, 0.5, 0.5, 0.5])
    """
    return ElementHint(dtype, (n,)) if n is None or dtype is None else MatrixType(dtype, (n,))


@overload
def matrix(n: int, m: int, dtype: Any) -> MatrixType: ...
@overload
def matrix(n: int | None = None, m: int | None = None, dtype: Any = None) -> Any: ...
def matrix(n: int | None = None, m: int | None = None, dtype: Any = None) -> Any:
    """The type of matrices of `n` rows and `m` columns.

    Parameters
    ----------
    n, m : int, optional
        The numbers of rows and of columns. If one is left out, the type only serves as the `dtype` of
        `ti.types.ndarray`.
    dtype : number type, optional
        The type of the components.

    Returns
    -------
    MatrixType
        The type.

    Raises
    ------
    FieldError
        For dimensions below 1.

    Examples
    --------
    >>> mat2 = ti.types.matrix(2, 2, ti.f32)
    >>> mat2(1.0)
    Matrix([[1.0, 1.0], [1.0, 1.0]])
    """
    return ElementHint(dtype, (n, m)) if n is None or m is None or dtype is None else MatrixType(dtype, (n, m))


def is_real(dtype: Any) -> bool:
    """Whether a type is one of floating-point numbers; kernels may ask, too.

    Parameters
    ----------
    dtype : number type
        The type.

    Returns
    -------
    bool
        True for `ti.f16`, `ti.f32` and `ti.f64`.

    Examples
    --------
    >>> ti.types.is_real(ti.f64)
    True
    """
    return scalar_type(dtype).kind == "f"


def is_integral(dtype: Any) -> bool:
    """Whether a type is one of integers; truth values count.

    Parameters
    ----------
    dtype : number type
        The type.

    Returns
    -------
    bool
        True for `ti.i32`, `ti.u8`, `ti.u1`, …

    Examples
    --------
    >>> ti.types.is_integral(ti.i32), ti.types.is_integral(ti.f32)
    (True, False)
    """
    return scalar_type(dtype).kind != "f"


def is_signed(dtype: Any) -> bool:
    """Whether numbers of a type can be negative.

    Parameters
    ----------
    dtype : number type
        The type.

    Returns
    -------
    bool
        False for unsigned integers and truth values.

    Examples
    --------
    >>> ti.types.is_signed(ti.i32), ti.types.is_signed(ti.u32)
    (True, False)
    """
    return scalar_type(dtype).kind in "fi"


for _function in (vector, matrix, is_real, is_integral, is_signed):
    _function.__tinote_static__ = True  # type: ignore[attr-defined]


__getattr__ = refusing("tinote.types")
__dir__ = partial(sorted, __all__)
