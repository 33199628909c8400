"""`ti.linalg.SparseMatrixBuilder`: collects the entries of a sparse matrix in kernels.

    K = ti.linalg.SparseMatrixBuilder(n, n, max_num_triplets=3 * n)

    @ti.kernel
    def fill(A: ti.types.sparse_matrix_builder()):
        for i in range(n):
            A[i, i] += 2.0

    fill(K)
    A = K.build()

Each entry that is added takes a place of its own in three lists, by an atomic counter, so that any number of threads
may add at once. The list of values is added to as any field is, so it has derivatives as any field has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.errors import FieldError
from tinote.ir.types import f32, i32
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.solvers.matrix import Elements, SparseMatrix
from tinote.lang.ad.solvers.rules import Arrays, Linear
from tinote.lang.data.ndarrays import ndarray
from tinote.lang.kernels.func import func
from tinote.lang.maths.language import atomic_add
from tinote.lang.session.state import scalar_type
from tinote.source import caller

_FORMATS = ("col_major", "row_major")


@func
def _add(lists, row, column, value):  # type: ignore[no-untyped-def]
    place = atomic_add(lists._count[0], 1)
    if place < lists._rows.shape[0]:
        lists._rows[place] = row
        lists._columns[place] = column
        lists._values[place] += value


@func
def _subtract(lists, row, column, value):  # type: ignore[no-untyped-def]
    _add(lists, row, column, -value)


class SparseMatrixBuilder:
    """Gathers the entries of a sparse matrix in kernels.

    It is passed as `A: ti.types.sparse_matrix_builder()`, and takes `A[i, j] += value` and `A[i, j] -= value`. Entries
    at one place sum up.

    Parameters
    ----------
    num_rows : int
        The number of rows.
    num_cols : int, optional
        The number of columns, by default that of rows.
    max_num_triplets : int
        How many entries there is room for.
    dtype : {ti.f32, ti.f64}
        The type of the values.
    storage_format : {"col_major", "row_major"}
        Accepted, and without effect on results.

    Raises
    ------
    FieldError
        For shapes and types that a matrix cannot have.

    Examples
    --------
    >>> builder = ti.linalg.SparseMatrixBuilder(3, 3, max_num_triplets=10)
    >>> @ti.kernel
    ... def fill(A: ti.types.sparse_matrix_builder()):
    ...     for i in range(3):
    ...         A[i, i] += 2.0
    >>> fill(builder)
    >>> A = builder.build()
    >>> A[1, 1], A.nnz
    (2.0, 3)
    """

    __tinote_add_at__ = 2, _add, _subtract

    def __init__(
        self,
        num_rows: int | None = None,
        num_cols: int | None = None,
        max_num_triplets: int = 0,
        dtype: Any = f32,
        storage_format: str = "col_major",
    ) -> None:
        made_at = caller()
        num_cols = num_rows if num_cols is None else num_cols
        sizes = {"num_rows": num_rows, "num_cols": num_cols, "max_num_triplets": max_num_triplets}
        for name, size in sizes.items():
            if not isinstance(size, int | np.integer) or isinstance(size, bool) or not 0 < size < 2**31:
                raise FieldError(f"{name} of a sparse matrix is a positive number, not {size!r}", made_at)
        t = scalar_type(dtype, made_at)
        if t.kind != "f" or t.size < 4:
            raise FieldError(f"a sparse matrix holds ti.f32 or ti.f64, not {t}", made_at)
        if storage_format not in _FORMATS:
            raise FieldError(f"storage_format is one of {', '.join(_FORMATS)}, not {storage_format!r}", made_at)
        assert num_rows is not None and num_cols is not None
        self.num_rows = int(num_rows)
        self.num_cols = int(num_cols)
        self.dtype = t
        self._most = int(max_num_triplets)
        self._rows = ndarray(i32, self._most, name="rows of a builder")
        self._columns = ndarray(i32, self._most, name="columns of a builder")
        self._values = ndarray(t, self._most, name="values of a builder")
        self._count = ndarray(i32, 1, name="entries of a builder")
        self._known: Elements | None = None
        self._key = self._slots = np.zeros(0, np.int64)

    def build(self, dtype: Any = None, _format: str = "CSR") -> SparseMatrix:
        """Make the matrix of all that was added since the last `build` or `clear`; the builder is empty afterwards.

        In a tape, functional derivatives and forward mode, the entries have the derivatives of the matrix's elements.

        Parameters
        ----------
        dtype : {ti.f32, ti.f64}, optional
            The type of the elements, by default that of the builder.

        Returns
        -------
        SparseMatrix
            The matrix.

        Raises
        ------
        FieldError
            For entries outside of the matrix, and for more than there is room for.

        Examples
        --------
        >>> builder = ti.linalg.SparseMatrixBuilder(2, 2, max_num_triplets=4)
        >>> @ti.kernel
        ... def fill(A: ti.types.sparse_matrix_builder()):
        ...     for i in range(2):
        ...         A[i, i] += 3.0
        >>> fill(builder)
        >>> builder.build()[1, 1]
        3.0
        """
        span = caller()
        count = self._counted()
        rows, columns = self._rows.held()[:count], self._columns.held()[:count]
        self._refuse_outside(rows, self.num_rows, "row")
        self._refuse_outside(columns, self.num_cols, "column")
        key = rows.astype(np.int64) * self.num_cols + columns
        if self._known is None or not np.array_equal(key, self._key):
            places, self._slots = np.unique(key, return_inverse=True)
            found = Elements(places // self.num_cols, places % self.num_cols, (self.num_rows, self.num_cols))
            # Where the same elements come in another order, what is known of them stays.
            if self._known is None or not self._known.has_places_of(found):
                self._known = found
            self._key = key
        elements, slots, size = self._known, self._slots, self._most
        values = ndarray(self.dtype if dtype is None else scalar_type(dtype, span), max(elements.count, 1))

        def gather(inputs: Arrays) -> Any:
            return np.bincount(slots, inputs[0][:count], max(elements.count, 1))

        def spread(adjoint: Any) -> Arrays:
            found = np.zeros(size)
            found[:count] = adjoint[slots]
            return [found]

        rule = Linear(gather, spread)
        Computation(rule, [self._values], [values], "build", span, clears=[self._values]).run()
        self._count.fill(0)
        return SparseMatrix._of(elements, values)

    def clear(self) -> None:
        """Forget what was added."""
        self._values.fill(0)
        self._count.fill(0)

    def print_triplets(self) -> None:
        """Print the entries in the order in which they were added."""
        count = self._counted()
        print(f"n={self.num_rows}, m={self.num_cols}, num_triplets={count} (max={self._most})")
        lists = [one.held()[:count].tolist() for one in (self._rows, self._columns, self._values)]
        for row, column, value in zip(*lists, strict=True):
            print(f"({row}, {column}) val={value}")

    def _counted(self) -> int:
        """How many entries there are. Raises `FieldError` for more than there is room for."""
        count = int(self._count.held()[0])
        if not 0 <= count <= self._most:
            raise FieldError(
                f"the builder has room for {self._most:,} entries, and {count % 2**32:,} were added",
                caller(),
                hint="give max_num_triplets= for all of them; call clear() to begin again",
            )
        return count

    def _refuse_outside(self, found: Any, size: int, word: str) -> None:
        wrong = np.flatnonzero((found < 0) | (found >= size))
        if wrong.size:
            at = f"({self._rows.held()[wrong[0]]}, {self._columns.held()[wrong[0]]})"
            raise FieldError(
                f"an entry was added at {at}: the matrix of {self.num_rows} by {self.num_cols} has no such {word}",
                caller(),
                hint="call clear() to begin again",
            )

    def __repr__(self) -> str:
        return f"<builder of a sparse matrix of {self.num_rows} by {self.num_cols}, {self.dtype}>"
