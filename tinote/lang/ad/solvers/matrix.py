"""`ti.linalg.SparseMatrix`: a sparse matrix whose elements are numbers in memory, and so have derivatives.

Which elements there are never changes, and matrices that are built of the same entries share it. Every result is a
matrix of its own.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from tinote.completion import Documented
from tinote.errors import FieldError
from tinote.ir.types import Scalar, f32, f64
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.solvers.libraries import scipy_sparse
from tinote.lang.ad.solvers.rules import Arrays, Bilinear, Linear
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import numpy_type
from tinote.lang.data.ndarrays import ndarray
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import scalar_type
from tinote.source import caller

Array = np.ndarray[Any, Any]


class Elements:
    """Where the elements of a matrix are: `rows` and `columns`, ordered by row and then by column, each once."""

    def __init__(self, rows: Array, columns: Array, shape: tuple[int, int]) -> None:
        self.rows = rows.astype(np.int32)
        self.columns = columns.astype(np.int32)
        self.shape = shape

    @property
    def count(self) -> int:
        """How many there are."""
        return self.rows.size

    @cached_property
    def starts(self) -> Array:
        """Where each row begins, and the last one ends."""
        return np.searchsorted(self.rows, np.arange(self.shape[0] + 1)).astype(np.int32)

    @cached_property
    def keys(self) -> Array:
        """A number for each place, in their order."""
        return self.rows.astype(np.int64) * self.shape[1] + self.columns

    def has_places_of(self, other: Elements) -> bool:
        """Whether the same places have elements."""
        return self is other or (
            self.shape == other.shape
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.columns, other.columns)
        )

    def matrix(self, values: Array) -> Any:
        """A matrix of SciPy's with these values."""
        return scipy_sparse.csr_array((values[: self.count], self.columns, self.starts), shape=self.shape)

    def taken(self, matrix: Any) -> Array:
        """The values that a matrix of SciPy's has at these places; at least one number."""
        found = matrix.tocsr()
        found.sum_duplicates()
        keys = np.repeat(np.arange(self.shape[0]), np.diff(found.indptr)).astype(np.int64) * self.shape[1]
        keys += found.indices
        values = np.zeros(max(self.count, 1))
        if keys.size:
            at = np.minimum(np.searchsorted(keys, self.keys), keys.size - 1)
            values[: self.count] = np.where(keys[at] == self.keys, found.data[at], 0.0)
        return values


def elements_of(matrix: Any) -> Elements:
    """Where a matrix of SciPy's has elements."""
    found = matrix.tocsr().copy()
    found.sum_duplicates()
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    return Elements(rows, found.indices, (int(found.shape[0]), int(found.shape[1])))


class SparseMatrix(Documented):
    """A sparse matrix of numbers, without elements at first.

    Most come from `SparseMatrixBuilder.build`, or from SciPy by `SparseMatrix.from_scipy`. There are `A + B`, `A - B`,
    `A * 2.0`, `A * B` (element by element), `A @ B`, `A @ x` (x: a field, an ndarray or a NumPy array with one number
    for each column of A; the result is an ndarray, or a NumPy array for one), `A.transpose()`, `A[i, j]` and `A.shape`.
    All of these have derivatives in a tape, in functional derivatives and in forward mode.

    Parameters
    ----------
    n, m : int, optional
        The numbers of rows and of columns.
    sm : SparseMatrix, optional
        Another one, whose elements it takes.
    dtype : {ti.f32, ti.f64}
        The type of the elements.
    storage_format : {"col_major", "row_major"}
        Accepted, and without effect on results.

    Raises
    ------
    FieldError
        For shapes and types that a matrix cannot have.

    Examples
    --------
    >>> import scipy.sparse
    >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([1.0, 2.0]))
    >>> (A + A)[1, 1], A.nnz
    (4.0, 2)
    """

    def __init__(
        self,
        n: int | None = None,
        m: int | None = None,
        sm: SparseMatrix | None = None,
        dtype: Any = f32,
        storage_format: str = "col_major",
    ) -> None:
        span = caller()
        #: counts the changes of elements by hand
        self.version = 0
        if sm is not None:
            self.elements, self.values = sm.elements, _copied(sm.values)
            return
        m = n if m is None else m
        for size in (n, m):
            if not isinstance(size, int | np.integer) or isinstance(size, bool) or not 0 < size < 2**31:
                raise FieldError(f"a sparse matrix has a positive number of rows and columns, not {size!r}", span)
        assert n is not None and m is not None
        t = scalar_type(dtype, span)
        if t.kind != "f" or t.size < 4:
            raise FieldError(f"a sparse matrix holds ti.f32 or ti.f64, not {t}", span)
        none = np.zeros(0, np.int32)
        self.elements = Elements(none, none, (int(n), int(m)))
        self.values = ndarray(t, 1)

    @classmethod
    def _of(cls, elements: Elements, values: Field) -> SparseMatrix:
        made = cls.__new__(cls)
        made.version, made.elements, made.values = 0, elements, values
        return made

    @classmethod
    def from_scipy(cls, matrix: Any, dtype: Any = None) -> SparseMatrix:
        """Make a sparse matrix of one of `scipy.sparse`.

        Parameters
        ----------
        matrix : sparse matrix or array
            The matrix.
        dtype : {ti.f32, ti.f64}, optional
            The type of the elements; by default that of the matrix, f64 for integers.

        Returns
        -------
        SparseMatrix
            A copy.

        Raises
        ------
        FieldError
            For what is not a sparse matrix of numbers.

        Examples
        --------
        >>> import scipy.sparse
        >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([1.0, 2.0]))
        >>> A[1, 1]
        2.0
        """
        span = caller()
        if not scipy_sparse.issparse(matrix) or matrix.ndim != 2:
            raise FieldError(f"a sparse matrix is made of one of scipy.sparse, not of {type(matrix).__name__}", span)
        t = scalar_type(dtype, span) if dtype is not None else f32 if matrix.dtype == np.float32 else f64
        elements = elements_of(matrix)
        values = ndarray(t, max(elements.count, 1))
        values.from_numpy(elements.taken(matrix).astype(numpy_type(t)))
        return cls._of(elements, values)

    def to_scipy(self) -> Any:
        """A `scipy.sparse.csr_array` with the same elements: a copy, which has no derivatives.

        Returns
        -------
        scipy.sparse.csr_array, shape (n, m)
            The copy.
        """
        return self.elements.matrix(self.values.to_numpy())

    def build_from_ndarray(self, ndarray: Field) -> None:
        """Take the elements of an array of triplets (row, column, value); those at one place sum up.

        Parameters
        ----------
        ndarray : Ndarray
            Of vectors of three numbers, or of numbers, three for each element.

        Raises
        ------
        FieldError
            For an array of another kind, and elements outside of the matrix.

        Examples
        --------
        >>> triplets = ti.Vector.ndarray(3, ti.f32, shape=2)
        >>> triplets[0], triplets[1] = [0, 0, 5.0], [1, 0, 7.0]
        >>> A = ti.linalg.SparseMatrix(2, 2)
        >>> A.build_from_ndarray(triplets)
        >>> A[1, 0]
        7.0
        """
        span = caller()
        if not isinstance(ndarray, Field) or ndarray.held().size % 3:
            raise FieldError("a sparse matrix is built of an ndarray of triplets (row, column, value)", span)
        triplets = ndarray.held().reshape(-1, 3).astype(np.float64)
        rows, columns = (triplets[:, k].astype(np.int64) for k in (0, 1))
        if rows.size and not (0 <= rows.min() <= rows.max() < self.n and 0 <= columns.min() <= columns.max() < self.m):
            raise FieldError(f"a triplet is outside of the matrix of {self.n} by {self.m}", span)
        places, slots = np.unique(rows * self.m + columns, return_inverse=True)
        elements = Elements(places // self.m, places % self.m, self.shape)
        values = _new(self.dtype, elements)

        def gather(inputs: Arrays) -> Array:
            return np.bincount(slots, inputs[0].reshape(-1, 3)[:, 2], max(elements.count, 1))

        def spread(adjoint: Array) -> Arrays:
            found = np.zeros((slots.size, 3))
            found[:, 2] = adjoint[slots]
            return [found.ravel()]

        Computation(Linear(gather, spread), [ndarray], [values], "build_from_ndarray", span).run()
        self.elements, self.values = elements, values
        self.version += 1

    # ---- what it is

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return self.elements.shape

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """The number of columns."""
        return self.shape[1]

    @property
    def dtype(self) -> Scalar:
        """The type of the elements."""
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """How many elements are stored."""
        return self.elements.count

    def __getitem__(self, at: tuple[int, int]) -> float:
        place = self._place(at)
        return 0.0 if place is None else self.values[place]  # type: ignore[index]

    def __setitem__(self, at: tuple[int, int], value: float) -> None:
        place = self._place(at)
        if place is None:
            raise FieldError(
                f"this sparse matrix has no element at {tuple(at)}, which cannot be assigned",
                caller(),
                hint="add an entry there in its builder",
            )
        self.values[place] = value  # type: ignore[index]
        self.version += 1

    def _place(self, at: Any) -> int | None:
        if not isinstance(at, tuple) or len(at) != 2 or not all(isinstance(k, int | np.integer) for k in at):
            raise FieldError(f"an element of a matrix has a row and a column, A[i, j], not {at!r}", caller())
        row, column = int(at[0]), int(at[1])
        if not (0 <= row < self.n and 0 <= column < self.m):
            raise FieldError(f"a matrix of {self.n} by {self.m} has no element {(row, column)}", caller())
        key = row * self.m + column
        place = int(np.searchsorted(self.elements.keys, key))
        return place if place < self.nnz and self.elements.keys[place] == key else None

    # ---- arithmetic

    def __add__(self, other: SparseMatrix) -> SparseMatrix:
        return self._sum(other, 1.0)

    def __sub__(self, other: SparseMatrix) -> SparseMatrix:
        return self._sum(other, -1.0)

    def _sum(self, other: Any, sign: float) -> SparseMatrix:
        if not isinstance(other, SparseMatrix):
            return NotImplemented
        span = caller()
        self._require_shape(other, "added" if sign > 0 else "subtracted", span)
        first = self.nnz
        if self.elements.has_places_of(other.elements):
            elements, slots = self.elements, np.tile(np.arange(first), 2)
        else:
            places, slots = np.unique(np.concatenate([self.elements.keys, other.elements.keys]), return_inverse=True)
            elements = Elements(places // self.m, places % self.m, self.shape)
        one, two, size = slots[:first], slots[first:], max(elements.count, 1)
        sizes = [held.held().size for held in (self.values, other.values)]

        def add(inputs: Arrays) -> Array:
            left = np.bincount(one, inputs[0][: one.size], size)
            return left + sign * np.bincount(two, inputs[1][: two.size], size)

        def spread(adjoint: Array) -> Arrays:
            return [_padded(adjoint[one], sizes[0]), _padded(sign * adjoint[two], sizes[1])]

        return self._computed(Linear(add, spread), [self.values, other.values], elements, "+" if sign > 0 else "-")

    def __neg__(self) -> SparseMatrix:
        return self * -1.0

    def __mul__(self, other: Any) -> SparseMatrix:
        if isinstance(other, SparseMatrix):
            return self._times_elements(other)
        if not isinstance(other, int | float | np.generic | Traced):
            return NotImplemented
        by = float(other)
        rule = Linear(lambda inputs: by * inputs[0], lambda adjoint: [by * adjoint])
        return self._computed(rule, [self.values], self.elements, "*")

    __rmul__ = __mul__

    def _times_elements(self, other: SparseMatrix) -> SparseMatrix:
        self._require_shape(other, "multiplied element by element", caller())
        keys, one, two = np.intersect1d(self.elements.keys, other.elements.keys, True, return_indices=True)
        elements = Elements(keys // self.m, keys % self.m, self.shape)
        sizes = [held.held().size for held in (self.values, other.values)]

        def product(u: Array, v: Array) -> Array:
            return _padded(u[one] * v[two], max(elements.count, 1))

        def first(v: Array, w: Array) -> Array:
            return _scattered(one, v[two] * w[: one.size], sizes[0])

        def second(u: Array, w: Array) -> Array:
            return _scattered(two, u[one] * w[: one.size], sizes[1])

        return self._computed(Bilinear(product, first, second), [self.values, other.values], elements, "*")

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseMatrix):
            return self._times_matrix(other)
        if isinstance(other, Field | np.ndarray | list | tuple):
            return self._times_vector(other)
        return NotImplemented

    def _times_matrix(self, other: SparseMatrix) -> SparseMatrix:
        span = caller()
        if self.m != other.n:
            raise FieldError(f"matrices of {self.n} by {self.m} and {other.n} by {other.m} have no product", span)
        a, b = self.elements, other.elements
        elements = elements_of(a.matrix(np.ones(max(a.count, 1))) @ b.matrix(np.ones(max(b.count, 1))))

        def product(u: Array, v: Array) -> Array:
            return elements.taken(a.matrix(u) @ b.matrix(v))

        def first(v: Array, w: Array) -> Array:
            return a.taken(elements.matrix(w) @ b.matrix(v).T)

        def second(u: Array, w: Array) -> Array:
            return b.taken(a.matrix(u).T @ elements.matrix(w))

        return self._computed(Bilinear(product, first, second), [self.values, other.values], elements, "@")

    def _times_vector(self, other: Any) -> Any:
        span = caller()
        vector = vector_of(other, self.m, self.dtype, f"a matrix of {self.n} by {self.m}", span)
        found = ndarray(vector.dtype, self.n)
        rows, columns, size, held = self.elements.rows, self.elements.columns, self.n, self.values.held().size

        def product(u: Array, v: Array) -> Array:
            return np.bincount(rows, u[: rows.size] * v[columns], size)

        def first(v: Array, w: Array) -> Array:
            return _padded(w[rows] * v[columns], held)

        def second(u: Array, w: Array) -> Array:
            return np.bincount(columns, u[: rows.size] * w[rows], self.m)

        Computation(Bilinear(product, first, second), [self.values, vector], [found], "A @ x", span).run()
        return found if isinstance(other, Field) else found.to_numpy()

    def transpose(self) -> SparseMatrix:
        """The transpose, of `m` by `n`.

        Returns
        -------
        SparseMatrix
            Another matrix.
        """
        order = np.lexsort((self.elements.rows, self.elements.columns))
        elements = Elements(self.elements.columns[order], self.elements.rows[order], (self.m, self.n))
        size = self.values.held().size

        def move(inputs: Arrays) -> Array:
            return _padded(inputs[0][order], size)

        def back(adjoint: Array) -> Arrays:
            return [_scattered(order, adjoint[: order.size], size)]

        return self._computed(Linear(move, back), [self.values], elements, "transpose")

    def _computed(self, rule: Any, inputs: list[Field], elements: Elements, name: str) -> SparseMatrix:
        values = _new(self.dtype, elements)
        Computation(rule, inputs, [values], f"'{name}' of sparse matrices", caller()).run()
        return SparseMatrix._of(elements, values)

    def _require_shape(self, other: SparseMatrix, word: str, span: Any) -> None:
        if self.shape != other.shape:
            raise FieldError(
                f"matrices of {self.n} by {self.m} and {other.n} by {other.m} cannot be {word}",
                span,
            )

    # ---- out

    def mmwrite(self, filename: str) -> None:
        """Write a file in the Matrix Market exchange format.

        Parameters
        ----------
        filename : str
            The file.

        Examples
        --------
        >>> from pathlib import Path
        >>> import scipy.sparse
        >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([1.0, 2.0]))
        >>> A.mmwrite("A.mtx")
        >>> Path("A.mtx").read_text().splitlines()[0]
        '%%MatrixMarket matrix coordinate real general'
        """
        with open(filename, "w", encoding="ascii") as file:
            print("%%MatrixMarket matrix coordinate real general", file=file)
            print(self.n, self.m, self.nnz, file=file)
            for row, column, value in zip(
                self.elements.rows.tolist(), self.elements.columns.tolist(), self.values.held().tolist(), strict=False
            ):
                print(row + 1, column + 1, repr(value), file=file)

    def __str__(self) -> str:
        if self.n * self.m > 10_000:
            return repr(self)
        rows = self.elements.matrix(self.values.held()).toarray().tolist()
        return "\n".join("[" + ", ".join(f"{number:g}" for number in row) + "]" for row in rows)

    def __repr__(self) -> str:
        return f"<sparse matrix of {self.n} by {self.m}, {self.dtype}, {self.nnz} elements>"


def vector_of(given: Any, size: int, dtype: Scalar, whose: str, span: Any) -> Field:
    """A right-hand side as a field of `size` numbers. Raises `FieldError`."""
    if isinstance(given, Field):
        if given.held().size != size or given.dtype.kind != "f":
            shape = given.shape + given.element
            raise FieldError(f"'{given.name}', of shape {shape} and type {given.dtype}, does not fit {whose}", span)
        return given
    array = np.asarray(given)
    if array.dtype.kind not in "iuf" or array.size != size:
        raise FieldError(f"an array of shape {array.shape} and type {array.dtype} does not fit {whose}", span)
    made = ndarray(f64 if array.dtype == np.float64 else dtype, array.shape)
    made.from_numpy(array.astype(numpy_type(made.dtype)))
    return made


def _new(dtype: Scalar, elements: Elements) -> Any:
    return ndarray(dtype, max(elements.count, 1))


def _copied(values: Field) -> Any:
    made = ndarray(values.dtype, values.shape)
    made.copy_from(values)
    return made


def _padded(found: Array, size: int) -> Array:
    """At least one number, as memory has."""
    return found if found.size == size else np.concatenate([found, np.zeros(size - found.size)])


def _scattered(at: Array, found: Array, size: int) -> Array:
    made = np.zeros(size)
    made[at] = found
    return made
