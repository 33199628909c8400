"""`ti.linalg.SparseSolver` and `ti.linalg.SparseCG`: linear systems with sparse matrices, with derivatives.

    solver = ti.linalg.SparseSolver(solver_type="LLT")
    solver.compute(A)
    x = solver.solve(b)

Under a tape, in functional derivatives and in forward mode a solve is one record: its adjoint is a solve with the
transpose, its tangent one with the matrix, by the factors that are there (`rules.Solution`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.completion import Documented
from tinote.errors import FieldError, SolverError
from tinote.ir.types import Tensor, f32
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.solvers.factorisation import KINDS, ORDERINGS, Factorisation
from tinote.lang.ad.solvers.krylov import conjugate_gradients, refuse_limits
from tinote.lang.ad.solvers.matrix import Elements, SparseMatrix, vector_of
from tinote.lang.ad.solvers.rules import Solution
from tinote.lang.data.fields import Field
from tinote.lang.data.ndarrays import ndarray
from tinote.lang.session.state import scalar_type
from tinote.source import Span, caller

Array = np.ndarray[Any, Any]


class SparseSolver:
    """Solves linear systems with a sparse matrix by factorising it.

    `compute(A)`, or `analyze_pattern(A)` and `factorize(A)`, and then any number of calls `solve(b)`. Factors are
    computed in double precision, by SuperLU (SciPy), or for LLT by CHOLMOD where scikit-sparse is installed.

    Parameters
    ----------
    dtype : {ti.f32, ti.f64}
        The type of results for arrays that have none of their own.
    solver_type : {"LLT", "LDLT", "LU"}
        Cholesky factors, for symmetric positive definite matrices; LDLᵀ, for symmetric ones; LU, for any.
    ordering : {"AMD", "COLAMD"}
        How rows and columns are ordered before.

    Raises
    ------
    FieldError
        For other types, solvers and orderings.

    References
    ----------
    X. S. Li, "An overview of SuperLU", ACM Trans. Math. Softw. 31, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([2.0, 4.0]))
    >>> solver = ti.linalg.SparseSolver(solver_type="LU")
    >>> solver.compute(A)
    >>> solver.solve(np.array([1.0, 1.0]))
    array([0.5 , 0.25])
    """

    def __init__(self, dtype: Any = f32, solver_type: str = "LLT", ordering: str = "AMD") -> None:
        span = caller()
        self.dtype = scalar_type(dtype, span)
        if solver_type not in KINDS:
            raise FieldError(f"solver_type is one of {', '.join(KINDS)}, not {solver_type!r}", span)
        if ordering not in ORDERINGS:
            raise FieldError(f"ordering is one of {', '.join(ORDERINGS)}, not {ordering!r}", span)
        self.solver_type = solver_type
        self.ordering = ordering
        self._pattern: Elements | None = None
        self._matrix: SparseMatrix | None = None
        self._version = 0
        self._factors: Factorisation | None = None

    def analyze_pattern(self, sparse_matrix: SparseMatrix) -> None:
        """Record the sparsity pattern of a matrix: `factorize` then only takes matrices with the same pattern.

        Parameters
        ----------
        sparse_matrix : SparseMatrix
            The matrix.

        Raises
        ------
        FieldError
            For a matrix that is not square.

        Examples
        --------
        >>> import scipy.sparse
        >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([2.0, 4.0]))
        >>> solver = ti.linalg.SparseSolver()
        >>> solver.analyze_pattern(A)
        >>> solver.factorize(2.0 * A)
        >>> solver.info()
        True
        """
        self._pattern = _square(sparse_matrix, caller()).elements

    def factorize(self, sparse_matrix: SparseMatrix) -> None:
        """Factorise a matrix.

        Parameters
        ----------
        sparse_matrix : SparseMatrix
            The matrix.

        Raises
        ------
        FieldError
            For one that is not square, or has elements elsewhere than the one that was analysed.
        SolverError
            For one that is singular or, as `solver_type` needs it, not symmetric or not positive definite.

        Examples
        --------
        >>> import scipy.sparse
        >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([2.0, 4.0]))
        >>> solver = ti.linalg.SparseSolver()
        >>> solver.factorize(A)
        >>> solver.solve([1.0, 1.0])
        array([0.5 , 0.25])
        """
        span = caller()
        matrix = _square(sparse_matrix, span)
        if self._pattern is not None and not self._pattern.has_places_of(matrix.elements):
            raise FieldError(
                "the matrix has elements in other places than the one that was analysed",
                span,
                hint="call analyze_pattern(A) for it first, or compute(A), which does both",
            )
        old, self._factors = self._factors, None
        if old is not None:
            old.relinquish()
        held = matrix.elements.matrix(matrix.values.held().astype(np.float64)).tocsc()
        self._matrix, self._version = matrix, matrix.version
        self._factors = Factorisation(held, self.solver_type, self.ordering, span)

    def compute(self, sparse_matrix: SparseMatrix) -> None:
        """Analyse and factorise a matrix.

        Parameters
        ----------
        sparse_matrix : SparseMatrix
            The matrix.

        Raises
        ------
        FieldError, SolverError
            As `analyze_pattern` and `factorize` raise them.

        Examples
        --------
        >>> import scipy.sparse
        >>> solver = ti.linalg.SparseSolver()
        >>> solver.compute(ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([2.0, 4.0])))
        >>> solver.info()
        True
        """
        self._pattern = None
        self.factorize(sparse_matrix)
        self._pattern = sparse_matrix.elements

    def info(self) -> bool:
        """Whether there are factors to solve with: False before, and after a factorisation that failed.

        Returns
        -------
        bool
            True if `solve` can be called.
        """
        return self._factors is not None

    def solve(self, b: Any, out: Field | None = None) -> Any:
        """Solve the system for a right side.

        In a tape, in functional derivatives and in forward mode the solution has derivatives with respect to `b` and to
        the elements of the matrix, to second order.

        Parameters
        ----------
        b : Field, Ndarray or array_like
            The right side, with one number for each row of the matrix, counted row by row.
        out : Field, optional
            Where the solution is left; it may be `b` itself.

        Returns
        -------
        Ndarray or numpy.ndarray
            The solution, of the shape of `b` (of vectors, for a field of vectors); a NumPy array for one.

        Raises
        ------
        FieldError
            For shapes that do not fit.
        SolverError
            Before a factorisation, and where the residual shows that there is no solution.

        Examples
        --------
        >>> import scipy.sparse
        >>> solver = ti.linalg.SparseSolver()
        >>> solver.compute(ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([2.0, 4.0])))
        >>> x = ti.field(ti.f64, shape=2)
        >>> _ = solver.solve([1.0, 1.0], out=x)
        >>> x.to_numpy()
        array([0.5 , 0.25])
        """
        span, factors, matrix = caller(), self._factors, self._matrix
        if factors is None or matrix is None:
            raise SolverError(
                "there are no factors to solve with", span, hint="call compute(A), and look at what it raises"
            )
        if matrix.version != self._version:
            raise FieldError("the matrix has changed since it was factorised", span, hint="call factorize(A) once more")
        return _solution(factors.solve, matrix, b, out, f"solve by {self.solver_type}", span)


class SparseCG(Documented):
    """Solves A x = b with a symmetric positive definite sparse matrix by conjugate gradients.

    Parameters
    ----------
    A : SparseMatrix
        The matrix.
    b : Field, Ndarray or array_like
        The right side, with one number for each row of A.
    x0 : as b, optional
        Where to begin, zeros if left out; it has no derivatives.
    max_iter : int, default 50
        The most iterations.
    atol : float, default 1e-6
        The norm of the residual that ends the iterations.

    Raises
    ------
    FieldError
        For shapes and numbers that do not fit.

    References
    ----------
    M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. Nat. Bur.
    Standards 49, 1952.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([1.0, 2.0, 4.0]))
    >>> x, converged = ti.linalg.SparseCG(A, np.array([1.0, 2.0, 4.0])).solve()
    >>> x.round(6), converged
    (array([1., 1., 1.]), True)
    """

    def __init__(self, A: SparseMatrix, b: Any, x0: Any = None, max_iter: int = 50, atol: float = 1e-6) -> None:
        span = caller()
        refuse_limits(atol, "atol", max_iter, "max_iter", span)
        self.matrix = _square(A, span)
        self._b = b
        whose = f"a matrix of {A.n} by {A.m}"
        vector_of(b, A.n, A.dtype, whose, span)
        self._x0 = np.zeros(A.n) if x0 is None else vector_of(x0, A.n, A.dtype, whose, span).to_numpy().ravel()
        self._most = max_iter
        self._atol = atol

    def solve(self, out: Field | None = None) -> tuple[Any, bool]:
        """Solve the system.

        Parameters
        ----------
        out : Field, optional
            Where the solution is left.

        Returns
        -------
        (solution, bool)
            The solution as `SparseSolver.solve` gives it, with the same derivatives, and True.

        Raises
        ------
        SolverError
            With the residual, where the iterations do not converge, or the matrix is not positive definite.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> A = ti.linalg.SparseMatrix.from_scipy(scipy.sparse.diags_array([1.0, 2.0]))
        >>> x, converged = ti.linalg.SparseCG(A, np.array([3.0, 4.0])).solve()
        >>> x.round(6)
        array([3., 2.])
        """
        span, matrix, atol = caller(), self.matrix, self._atol
        held = matrix.elements.matrix(matrix.values.held().astype(np.float64))
        start, norm = self._x0.astype(np.float64), 1.0
        first = True

        def solve(b: Array, _: bool) -> Array:
            nonlocal norm, first
            if first:
                first = False
                norm = float(np.linalg.norm(b)) or 1.0
                return conjugate_gradients(held.dot, b, start, atol, self._most, span)
            # Adjoints and tangents as sharp, compared with their own right-hand side.
            least = min(atol / norm, 1e-10) * float(np.linalg.norm(b))
            return conjugate_gradients(held.dot, b, np.zeros_like(b), least, 10 * self._most + 2 * b.size, span)

        return _solution(solve, matrix, self._b, out, "solve by conjugate gradients", span), True


def _square(matrix: Any, span: Span) -> SparseMatrix:
    if not isinstance(matrix, SparseMatrix):
        raise FieldError(
            f"a sparse solver takes a SparseMatrix, not {type(matrix).__name__}",
            span,
            hint="SparseMatrixBuilder.build() makes one, and SparseMatrix.from_scipy",
        )
    if matrix.n != matrix.m:
        raise FieldError(f"a system with a matrix of {matrix.n} by {matrix.m} is not square", span)
    return matrix


def _solution(solve: Any, matrix: SparseMatrix, b: Any, out: Field | None, name: str, span: Span) -> Any:
    """Solve as one operation, and give the solution as it is wanted."""
    right = vector_of(b, matrix.n, matrix.dtype, f"a matrix of {matrix.n} by {matrix.m}", span)
    elements = matrix.elements
    rule = Solution(solve, elements.rows, elements.columns)
    if out is not None:
        vector_of(out, matrix.n, matrix.dtype, f"a matrix of {matrix.n} by {matrix.m}", span)
        if not isinstance(out, Field):
            raise FieldError(f"out is a field or an ndarray, not {type(out).__name__}", span)
    kind = Tensor(right.dtype, right.element) if right.element else right.dtype
    found = ndarray(kind, right.shape) if out is None else out
    Computation(rule, [matrix.values, right], [found], name, span).run()
    return found if isinstance(b, Field) or out is not None else found.to_numpy()
