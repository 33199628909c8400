"""`Vector` and `Matrix` in Python scope: small arrays of numbers with the operations that kernels have for them.

In a kernel `ti.Vector([...])` and `ti.Matrix([[...]])` are compiled; here the same names hold values in ordinary
Python. Reading a vector field gives a copy; assigning components of that copy writes through to the field, as the
dialect has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tinote.compiler.protocol import swizzle
from tinote.completion import Documented
from tinote.errors import FieldError, no_attribute
from tinote.ir.primitives import cast_number
from tinote.ir.types import Scalar
from tinote.lang.data.components import ElementPlace
from tinote.lang.data.formatted import FormattedNumbers
from tinote.lang.data.no_arithmetic import NoArithmetic
from tinote.lang.data.traced import (
    Traced,
    as_components,
    as_number,
    extreme,
    holds_traced,
    plain,
    traced_array,
    with_values,
)
from tinote.lang.session.state import scalar_type
from tinote.runtime.seam import active_listener
from tinote.source import caller

if TYPE_CHECKING:
    from tinote.lang.data.fields import MatrixField
    from tinote.lang.data.layout import Layout
    from tinote.lang.data.ndarrays import MatrixNdarray


def numpy_type(dtype: Scalar) -> np.dtype[Any]:
    """The NumPy type in which a scalar type is stored. Truth values take a byte."""
    return np.dtype(np.bool_) if dtype.kind == "b" else np.dtype(f"{dtype.kind}{dtype.size}")


def is_number(value: Any) -> bool:
    """Whether one number may be made of it where numbers are stored or passed. Python and NumPy would also read text,
    bytes and dates.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.dtype.kind in "biufO"
    kind = type(value)
    return (hasattr(kind, "__float__") or hasattr(kind, "__index__")) and not isinstance(value, NoArithmetic)


def holds_numbers(values: np.ndarray[Any, Any]) -> bool:
    """Whether an array, perhaps of objects, holds nothing but numbers."""
    return values.dtype.kind in "biuf" or (values.dtype == object and all(map(is_number, values.flat)))


def require_numbers(value: Any) -> None:
    """Raise `FieldError` for what is neither a number nor an array or list of them."""
    if not is_number(value):
        if isinstance(value, bytearray | memoryview) or not holds_numbers(np.asarray(value)):
            raise FieldError(f"components of vectors and matrices are numbers, and {value!r} is not", caller())


def as_stored(values: np.ndarray[Any, Any], t: Scalar) -> np.ndarray[Any, Any]:
    """Numbers as memory of type `t` holds them; for integers, fractions are cut off. Raises `ValueError` for integers
    out of range, and for finite numbers that are too large for a float type.
    """
    wanted = numpy_type(t)
    if values.dtype == wanted or np.can_cast(values.dtype, wanted):
        return values
    if t.kind in "iu" and values.size and not (values.min() >= t.lowest and values.max() <= t.highest):
        # NaN compares false with everything.
        raise ValueError(f"{t} holds numbers from {t.lowest} to {t.highest}")
    try:
        with np.errstate(over="raise"):
            return values.astype(wanted)
    except FloatingPointError:
        raise ValueError(f"it is too large for {t}") from None


def as_type(values: np.ndarray[Any, Any], t: Scalar) -> np.ndarray[Any, Any]:
    """Numbers cast to `t` as in kernels: integers wrap. Raises `FieldError` for what a float type cannot hold."""
    try:
        return (as_stored(values, t) if t.kind == "f" else values).astype(numpy_type(t))
    except ValueError as error:
        raise FieldError(f"{values.tolist()} cannot be components of {t}: {error}", caller()) from None


def componentwise(f: Callable[..., Any], x: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """`f` of a number, or of every component of an array."""
    if np.ndim(x) == 0:
        return f(x.item() if isinstance(x, np.generic) else plain(x))
    values = np.asarray(plain(x))
    return np.array([f(v) for v in values.ravel().tolist()], dtype=dtype).reshape(values.shape)


def cast_numbers(x: Any, t: Scalar) -> Any:
    """A number, or an array of them, cast to `t` as in kernels. Those that remember where they came from stay such if
    `t` is a float type.
    """
    if t.kind == "f" and holds_traced(x):
        return with_values(x, lambda v: cast_number(t, v))
    return componentwise(lambda v: cast_number(t, v if isinstance(v, float) else int(v)), x, numpy_type(t))


def _components(value: Any) -> Any:
    return value.values if isinstance(value, Matrix) else value


def _unwrap(value: Any) -> Any:
    return traced_array(value) if holds_traced(value) else _components(value)


def _number(found: Any) -> Any:
    """A Python number: NumPy's is one of its own; a traced number stays."""
    if type(found) is Traced:
        return as_number(found)
    return found.item() if isinstance(found, np.generic | np.ndarray) else found


def _array_of(values: Any) -> np.ndarray[Any, Any]:
    """The components, or rows of them, as an array: of objects where they are traced numbers, while these are."""
    if holds_traced(values):
        return as_components(traced_array(values))
    if isinstance(values, np.ndarray) and values.dtype == object:
        return plain(values)
    rows = [_components(row) for row in _components(values)]
    return np.array([[_components(c) for c in row] if np.ndim(row) else row for row in rows])


def _determinant(values: np.ndarray[Any, Any]) -> Any:
    """The determinant of a matrix of traced numbers, row by row (Laplace): it has a derivative where it is zero."""
    minors: dict[tuple[int, ...], Any] = {(): 1.0}  # of the first rows, by their columns
    for k, row in enumerate(values):
        minors = {
            columns: sum([
                (-1) ** (k - at) * row[column] * minors[columns[:at] + columns[at + 1 :]]
                for at, column in enumerate(columns)
            ])
            for columns in itertools.combinations(range(len(values)), k + 1)
        }  # fmt: skip
    return minors[tuple(range(len(values)))]


def _inverse(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The inverse of a matrix of traced numbers, by Gaussian elimination with the largest pivots. Raises
    `numpy.linalg.LinAlgError` if it is singular.
    """
    n = len(values)
    left, right = values.copy(), traced_array(np.eye(n))
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(left[i, k]))
        if left[pivot, k] == 0:
            raise np.linalg.LinAlgError("Singular matrix")
        if pivot != k:
            left[[k, pivot]], right[[k, pivot]] = left[[pivot, k]], right[[pivot, k]]
        scale = traced_array(1.0 / left[k, k])
        left[k], right[k] = left[k] * scale, right[k] * scale
        for i in range(n):
            if i != k:
                factor = traced_array(left[i, k])
                right[i] = right[i] - factor * right[k]
                left[i] = left[i] - factor * left[k]
    return right


def _is_compared(other: object) -> bool:
    """Whether `==` and `!=` compare with it component by component."""
    return isinstance(other, Matrix | int | float | np.generic | np.ndarray) or (
        isinstance(other, Sequence) and not isinstance(other, str | bytes)
    )


class Matrix(Documented, FormattedNumbers):
    """A matrix of numbers; with one dimension, a vector.

    Arithmetic is elementwise and broadcasts numbers; `@` is the matrix product.

    Parameters
    ----------
    values : sequence of numbers, of rows, or int
        The components, the rows, or the number of rows of a matrix of zeros.
    m : int, optional
        The number of columns of a matrix of zeros.
    dt : number type, optional
        The type of the components; by default what the session means by `float` and `int`.
    **options
        Accepted for programs that give them, and without effect.

    Raises
    ------
    FieldError
        For rows of unequal length, and what is not a number.

    Examples
    --------
    >>> A = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
    >>> A @ ti.Vector([1.0, 1.0])
    Vector([3.0, 7.0])
    >>> (2 * A).trace()
    10.0
    """

    __array_priority__ = 100

    if TYPE_CHECKING:
        # What other modules and the loops below put here, as a type checker sees it: for `ti.math.vec3`, too, which it
        # takes for this class, and whose fields and arrays need no sizes.

        @staticmethod
        def field(
            *sizes: Any,
            n: int = ...,
            m: int = ...,
            dtype: Any = ...,
            shape: Any = ...,
            name: str = ...,
            offset: Any = ...,
            order: str | None = ...,
            layout: Layout = ...,
            needs_grad: bool | None = ...,
            needs_dual: bool | None = ...,
            dt: Any = ...,
        ) -> MatrixField:
            """A field of vectors, `ti.Vector.field(n, dtype, shape)`, or matrices, `ti.Matrix.field(n, m, dtype,
            shape)`; the options are those of `ti.field`.
            """
            ...

        @staticmethod
        def ndarray(
            *sizes: Any,
            n: int = ...,
            m: int = ...,
            dtype: Any = ...,
            shape: Any = ...,
            needs_grad: bool | None = ...,
            needs_dual: bool | None = ...,
            name: str = ...,
        ) -> MatrixNdarray:
            """An array of vectors, `ti.Vector.ndarray(n, dtype, shape)`, or matrices, `ti.Matrix.ndarray(n, m, dtype,
            shape)`; the options are those of `ti.ndarray`.
            """
            ...

        def _unary(self) -> Matrix: ...
        def _binary(self, other: Any) -> Matrix: ...

        __neg__ = __pos__ = __abs__ = __invert__ = _unary
        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _binary
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _binary
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

    @overload
    def __init__(
        self, values: Any, m: int | None = None, dt: Any = None, *, _parent: ElementPlace | None = None
    ) -> None: ...
    @overload
    def __init__(self, *components: Any) -> None: ...  # of `ti.math.vec3`
    def __init__(  # pyright: ignore[reportInconsistentOverload]
        self,
        values: Any,
        m: int | None = None,
        dt: Any = None,
        *,
        _parent: ElementPlace | None = None,
        **options: Any,
    ) -> None:
        if options:
            sizes = f"{values!r}" if m is None else f"{values!r}, {m!r}"
            raise FieldError(
                f"a {type(self).__name__} has no {', '.join(options)}",
                caller(),
                hint=f"a field of them is made by ti.{type(self).__name__}.field({sizes}, dtype=…, shape=…)",
            )
        if isinstance(values, int) and not isinstance(values, bool):
            values = np.zeros((values,) if m is None else (values, m))
        try:
            self.values: np.ndarray[Any, Any] = _array_of(values)
        except (TypeError, ValueError):
            raise FieldError(f"a matrix needs numbers in rows of equal length, not {values!r}") from None
        if self.values.ndim not in (1, 2) or not holds_numbers(self.values):
            raise FieldError(f"a matrix needs a list of numbers or of rows of numbers, not {values!r}")
        if dt is not None:
            dtype = scalar_type(dt)
            if self.values.dtype == object and dtype.bits < 64 and (listener := active_listener()) is not None:
                listener.taking(f"a vector of {dtype} that is made of numbers in Python")
            if self.values.dtype != object or dtype.kind != "f":
                self.values = as_type(plain(self.values), dtype)
        self._parent = _parent

    # ---- shape

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @property
    def m(self) -> int:
        """Number of columns; 1 for a vector."""
        return self.values.shape[1] if self.values.ndim == 2 else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,) of a vector, (n, m) of a matrix."""
        return self.values.shape

    def get_shape(self) -> tuple[int, ...]:
        """The shape, as another spelling of `shape`.

        Returns
        -------
        tuple of int
            As `shape`.
        """
        return self.values.shape

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Any]:
        """The components of a vector, the rows of a matrix."""
        return iter(self.to_list() if self.values.ndim == 1 else [Matrix(row) for row in self.values])

    # ---- access

    def __getitem__(self, index: Any) -> Any:
        part = self.values[index]
        return Matrix(part) if isinstance(part, np.ndarray) else _number(part)

    def __setitem__(self, index: Any, value: Any) -> None:
        part = _unwrap(value)
        if self._parent is not None:  # which refuses what does not fit
            self._parent.write(index, part)
        else:
            require_numbers(part)
        if isinstance(part, np.ndarray) and part.dtype == object:
            self.values = self.values.astype(object)
        self.values[index] = part

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling ask before there are values.
        picked = None if name.startswith("_") or "values" not in self.__dict__ else self._picked(name)
        if picked is None:
            what = "a vector" if "values" not in self.__dict__ else f"a {type(self).__name__} of shape {self.shape}"
            raise no_attribute(what, name, dir(type(self)))
        return self[picked[0] if len(picked) == 1 else picked]

    def _picked(self, name: str) -> list[int] | None:
        """The components that a name such as `x` or `zxy` selects, or `None`."""
        found = swizzle(name, self.n) if self.values.ndim == 1 else None
        return None if found is None else list(found)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("values", "_parent"):
            object.__setattr__(self, name, value)
            return
        picked = self._picked(name)
        if picked is None:
            raise AttributeError(f"a {type(self).__name__} of shape {self.shape} has no component {name!r}")
        self[picked[0] if len(picked) == 1 else picked] = value

    def to_list(self) -> list[Any]:
        """The components as a list, of a matrix a list of rows.

        Returns
        -------
        list
            Numbers of a vector, rows of a matrix.
        """
        if self.values.dtype == object:
            return [[_number(c) for c in row] if np.ndim(row) else _number(row) for row in self.values]
        return self.values.tolist()

    def to_numpy(self) -> np.ndarray[Any, Any]:
        """A copy of shape (n,) or (n, m).

        Returns
        -------
        numpy.ndarray, shape (n,) or (n, m)
            The copy.
        """
        return self.__array__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.values.dtype == object:  # plain numbers are taken out
            return np.array([[float(c) for c in row] if np.ndim(row) else float(row) for row in self.values], dtype)
        return np.array(self.values, dtype=dtype)

    def __tinote_value__(self) -> tuple[Any, ...]:
        return tuple([tuple(row) if isinstance(row, list) else row for row in self.values.tolist()])

    def __repr__(self) -> str:
        return f"{'Vector' if self.values.ndim == 1 else 'Matrix'}({self.values.tolist()})"

    def __eq__(self, other: object) -> Any:
        return Matrix(self.values == _unwrap(other)) if _is_compared(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return Matrix(self.values != _unwrap(other)) if _is_compared(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    # ---- algebra

    def __matmul__(self, other: Any) -> Any:
        right = _unwrap(other)
        # A vector on the left is a row; where that does not fit, a column, and the right side a single row.
        is_column = self.values.ndim == 1 and np.ndim(right) == 2 and len(right) == 1 != self.n
        result = (self.values[:, None] if is_column else self.values) @ right
        return Matrix(result) if np.ndim(result) else _number(result)

    def dot(self, other: Any) -> Any:
        """The scalar product; of integers, an integer.

        Parameters
        ----------
        other : vector
            A vector of the same length.

        Returns
        -------
        number
            The sum of the products of the components.

        Examples
        --------
        >>> ti.Vector([1, 2, 3]).dot(ti.Vector([4, 5, 6]))
        32
        """
        return _number(np.vdot(self.values, _unwrap(other)))

    def cross(self, other: Any) -> Any:
        """The vector product; of plane vectors, its third component.

        Parameters
        ----------
        other : vector
            A vector of the same length, 3 or 2.

        Returns
        -------
        Vector or number
            The product.

        Examples
        --------
        >>> ti.Vector([1.0, 0.0, 0.0]).cross(ti.Vector([0.0, 1.0, 0.0]))
        Vector([0.0, 0.0, 1.0])
        >>> ti.Vector([1.0, 0.0]).cross(ti.Vector([0.0, 1.0]))
        1.0
        """
        a, b = self.values, np.asarray(_unwrap(other))
        if a.shape == (2,):
            return _number(a[0] * b[1] - a[1] * b[0])
        return Matrix(np.cross(a, b))

    def outer_product(self, other: Any) -> Matrix:
        """The matrix of all products of a component of this vector and one of another.

        Parameters
        ----------
        other : vector
            The right factor, of any length.

        Returns
        -------
        Matrix
            self[i] · other[j] in row i and column j.

        Examples
        --------
        >>> ti.Vector([1, 2]).outer_product(ti.Vector([3, 4, 5]))
        Matrix([[3, 4, 5], [6, 8, 10]])
        """
        return Matrix(np.outer(self.values, _unwrap(other)))

    def norm(self, eps: float = 0.0) -> float:
        """The Euclidean length of a vector, the Frobenius norm of a matrix.

        Parameters
        ----------
        eps : float, default 0
            What is added under the root, so that the derivative at 0 is finite: √(Σ xᵢ² + eps).

        Returns
        -------
        float
            The norm.

        Examples
        --------
        >>> ti.Vector([3.0, 4.0]).norm()
        5.0
        """
        values = self.values if self.values.dtype == object else self.values.astype(float)
        return _number(np.sqrt((values**2).sum() + eps))

    def norm_sqr(self) -> Any:
        """The sum of the squares of all components.

        Returns
        -------
        number
            The sum.
        """
        return self.dot(self.values)

    def norm_inv(self, eps: float = 0.0) -> float:
        """The reciprocal of the norm.

        Parameters
        ----------
        eps : float, default 0
            As for `norm`.

        Returns
        -------
        float
            1 / norm(eps).

        Examples
        --------
        >>> ti.Vector([3.0, 4.0]).norm_inv()
        0.2
        """
        return 1.0 / self.norm(eps)

    def normalized(self, eps: float = 0.0) -> Matrix:
        """The vector divided by its length.

        Parameters
        ----------
        eps : float, default 0
            What is added to the length, so that zero gives zero rather than NaN.

        Returns
        -------
        Matrix
            x / (|x| + eps).

        Examples
        --------
        >>> ti.Vector([3.0, 4.0]).normalized()
        Vector([0.6, 0.8])
        """
        return Matrix(self.values / _unwrap(self.norm() + eps))

    def transpose(self) -> Matrix:
        """Rows and columns exchanged; of a vector, a matrix of one row.

        Returns
        -------
        Matrix
            Of shape (m, n); (1, n) for a vector.
        """
        return Matrix(self.values.T if self.values.ndim == 2 else self.values[None, :])

    def trace(self) -> Any:
        """The sum of the diagonal.

        Returns
        -------
        number
            The sum.
        """
        return _number(np.trace(self.values))

    def determinant(self) -> float:
        """The determinant of a square matrix of any size, by LU decomposition (LAPACK).

        Returns
        -------
        float
            The determinant.
        """
        if self.values.dtype == object and self.n == self.m:
            return _determinant(self.values)
        return float(np.linalg.det(self.values))

    def inverse(self) -> Matrix:
        """The inverse of a square matrix of any size (LAPACK).

        Returns
        -------
        Matrix
            The inverse.

        Raises
        ------
        numpy.linalg.LinAlgError
            For a singular matrix.
        """
        if self.values.dtype == object and self.n == self.m:
            return Matrix(_inverse(self.values))
        return Matrix(np.linalg.inv(self.values))

    def sum(self) -> Any:
        """The sum of all components.

        Returns
        -------
        number
            The sum.
        """
        return _number(self.values.sum())

    def max(self) -> Any:
        """The largest component.

        Returns
        -------
        number
            The component.
        """
        return _number(extreme(np.fmax, [self.values]))

    def min(self) -> Any:
        """The smallest component.

        Returns
        -------
        number
            The component.
        """
        return _number(extreme(np.fmin, [self.values]))

    def any(self) -> bool:
        """Whether a component is not zero.

        Returns
        -------
        bool
            True if a component is nonzero.
        """
        return bool(self.values.any())

    def all(self) -> bool:
        """Whether no component is zero.

        Returns
        -------
        bool
            True if all components are nonzero.
        """
        return bool(self.values.all())

    def cast(self, dtype: Scalar) -> Matrix:
        """Convert the components to another type.

        Parameters
        ----------
        dtype : number type
            The type.

        Returns
        -------
        Matrix
            A copy.

        Examples
        --------
        >>> ti.Vector([1.7, -1.7]).cast(ti.i32)
        Vector([1, -1])
        """
        return Matrix(self.values, dt=dtype)

    def fill(self, value: Any) -> None:
        """Give every component this value.

        Parameters
        ----------
        value : number
            The value.

        Examples
        --------
        >>> v = ti.Vector([1.0, 2.0])
        >>> v.fill(5.0)
        >>> v
        Vector([5.0, 5.0])
        """
        self[...] = value

    def copy(self) -> Matrix:
        """A copy that writes through to no field.

        Returns
        -------
        Matrix
            The copy.
        """
        return Matrix(self.values.copy())

    # ---- constructors that the dialect names

    @staticmethod
    def zero(dt: Any, n: int, m: int | None = None) -> Matrix:
        """A vector or matrix of zeros.

        Parameters
        ----------
        dt : number type
            The type of the components.
        n : int
            The number of components, or of rows.
        m : int, optional
            The number of columns.

        Returns
        -------
        Matrix
            The zeros.

        Examples
        --------
        >>> ti.Matrix.zero(ti.f32, 2, 2)
        Matrix([[0.0, 0.0], [0.0, 0.0]])
        """
        return Matrix(np.zeros((n,) if m is None else (n, m)), dt=dt)

    @staticmethod
    def one(dt: Any, n: int, m: int | None = None) -> Matrix:
        """A vector or matrix of ones.

        Parameters
        ----------
        dt : number type
            The type of the components.
        n : int
            The number of components, or of rows.
        m : int, optional
            The number of columns.

        Returns
        -------
        Matrix
            The ones.

        Examples
        --------
        >>> ti.Vector.one(ti.i32, 3)
        Vector([1, 1, 1])
        """
        return Matrix(np.ones((n,) if m is None else (n, m)), dt=dt)

    @staticmethod
    def identity(dt: Any, n: int) -> Matrix:
        """The identity matrix.

        Parameters
        ----------
        dt : number type
            The type of the components.
        n : int
            The number of rows and of columns.

        Returns
        -------
        Matrix
            The matrix.

        Examples
        --------
        >>> ti.Matrix.identity(ti.f32, 2)
        Matrix([[1.0, 0.0], [0.0, 1.0]])
        """
        return Matrix(np.eye(n), dt=dt)

    @staticmethod
    def unit(n: int, i: int, dt: Any = None) -> Matrix:
        """A unit vector: one component is 1, the others are 0.

        Parameters
        ----------
        n : int
            The number of components.
        i : int
            Which one is 1, from 0.
        dt : number type, optional
            The type of the components.

        Returns
        -------
        Matrix
            The vector.

        Examples
        --------
        >>> ti.Vector.unit(3, 1)
        Vector([0.0, 1.0, 0.0])
        """
        return Matrix(np.eye(n)[i], dt=dt)

    @staticmethod
    def diag(dim: int, val: float) -> Matrix:
        """The square matrix with one number on its diagonal.

        Parameters
        ----------
        dim : int
            The number of rows and of columns.
        val : number
            The number.

        Returns
        -------
        Matrix
            The matrix.

        Examples
        --------
        >>> ti.Matrix.diag(2, 3.0)
        Matrix([[3.0, 0.0], [0.0, 3.0]])
        """
        return Matrix(np.eye(dim) * val)

    @staticmethod
    def rows(rows: Sequence[Any]) -> Matrix:
        """Make a matrix of its rows.

        Parameters
        ----------
        rows : sequence of vectors
            The rows, of equal length.

        Returns
        -------
        Matrix
            The matrix.

        Examples
        --------
        >>> ti.Matrix.rows([[1, 2], ti.Vector([3, 4])])
        Matrix([[1, 2], [3, 4]])
        """
        return Matrix([list(r) for r in rows])

    @staticmethod
    def cols(cols: Sequence[Any]) -> Matrix:
        """Make a matrix of its columns.

        Parameters
        ----------
        cols : sequence of vectors
            The columns, of equal length.

        Returns
        -------
        Matrix
            The matrix.

        Examples
        --------
        >>> ti.Matrix.cols([[1, 2], ti.Vector([3, 4])])
        Matrix([[1, 3], [2, 4]])
        """
        return Matrix(np.array([list(c) for c in cols]).T)

    @staticmethod
    def rotation2d(alpha: float) -> Matrix:
        """The rotation of the plane by an angle.

        Parameters
        ----------
        alpha : float
            The angle in radians, counter-clockwise.

        Returns
        -------
        Matrix, shape (2, 2)
            The rotation, for column vectors.

        Examples
        --------
        >>> R = ti.Matrix.rotation2d(ti.math.pi / 2)
        >>> [round(c, 6) for c in R @ ti.Vector([1.0, 0.0])]
        [0.0, 1.0]
        """
        c, s = np.cos(alpha), np.sin(alpha)
        return Matrix([[c, -s], [s, c]])


class Vector(Matrix):
    """A vector of numbers: a `Matrix` of one dimension.

    Its first four components are also `x`, `y`, `z`, `w` (or `r`, `g`, `b`, `a`), alone and together: `v.xz`.

    Parameters
    ----------
    values : sequence of numbers, or int
        The components, or the number of components of a vector of zeros.
    m : int, optional
        As for `ti.Matrix`.
    dt : number type, optional
        The type of the components.
    **options
        Accepted for programs that give them, and without effect.

    Examples
    --------
    >>> v = ti.Vector([1.0, 2.0, 2.0])
    >>> v.norm()
    3.0
    >>> v.zx
    Vector([2.0, 1.0])
    """


def _elementwise(name: str, reflected: bool = True) -> None:
    def forward(self: Matrix, other: Any) -> Matrix:
        return Matrix(getattr(self.values, name)(_unwrap(other)))

    setattr(Matrix, name, forward)
    if reflected:
        mirrored = f"__r{name[2:]}"

        def backward(self: Matrix, other: Any) -> Matrix:
            return Matrix(getattr(self.values, mirrored)(np.asarray(_unwrap(other))))

        setattr(Matrix, mirrored, backward)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    _elementwise(f"__{_name}__")
for _name in ("lt", "le", "gt", "ge"):
    _elementwise(f"__{_name}__", reflected=False)
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Matrix, f"__{_name}__", lambda self, _n=f"__{_name}__": Matrix(getattr(self.values, _n)()))
for _class, _prefix in ((Matrix, "Matrix"), (Vector, "Vector")):
    _class.__tinote_name__ = _prefix  # type: ignore[attr-defined]
for _name in ("zero", "one", "identity", "unit", "diag", "rows", "cols", "rotation2d"):
    getattr(Matrix, _name).__tinote_name__ = f"Matrix.{_name}"
