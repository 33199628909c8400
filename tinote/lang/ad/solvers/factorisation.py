"""Factorisations of sparse matrices, by SuperLU (SciPy) and, where it is installed, CHOLMOD (scikit-sparse).

All is computed in double precision. SuperLU's factors serve for the three kinds: with pivots taken on the diagonal in
symmetric mode, A = L U of a symmetric matrix has U = D Lᵀ, whose diagonal D is positive if, and only if, A is positive
definite.

Method: Li, "An overview of SuperLU", ACM Trans. Math. Software 31, 2005; Chen, Davis, Hager and Rajamanickam,
"Algorithm 887: CHOLMOD", ACM Trans. Math. Software 35, 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.errors import SolverError
from tinote.lang.ad.solvers.libraries import cholmod, scipy_solvers
from tinote.lang.session.state import session
from tinote.source import Span

Array = np.ndarray[Any, Any]

#: This part of the session's memory limit may hold factors that only a reverse sweep still needs; those beyond are
#: computed again there.
_SHARE = 4
#: What SuperLU keeps of an element of its factors, about.
_BYTES_EACH = 16
#: A residual that is larger, compared with what goes into it, is no solution.
_LARGEST_RESIDUAL = 1e-6
_GOOD_RESIDUAL = 1e-13

KINDS = ("LLT", "LDLT", "LU")
_ORDERINGS = {"AMD": "MMD_AT_PLUS_A", "COLAMD": "COLAMD"}
ORDERINGS = tuple(_ORDERINGS)


class _Kept:
    """How many bytes of factors are held besides those that solvers have."""

    nbytes = 0


class Factorisation:
    """The factors of a square SciPy matrix, in columns, in double precision. `kind` and `ordering`: of `KINDS` and
    `ORDERINGS`. Raises `SolverError` at `span` for a matrix that is singular or, of a kind that needs it, not symmetric
    or not positive definite.
    """

    def __init__(self, matrix: Any, kind: str, ordering: str, span: Span) -> None:
        self.matrix = matrix
        self._kind = kind
        self._ordering = ordering
        self._span = span
        self._transpose = matrix.T
        self._norm = float(abs(matrix).sum(axis=1).max()) if matrix.nnz else 0.0
        if not np.isfinite(self._norm):
            raise SolverError("the matrix has elements that are NaN or infinite", span)
        if kind != "LU":
            self._require_symmetric()
        self._counted = 0
        self._factors: Any = self._factorise()

    def relinquish(self) -> None:
        """The solver has another one now: only recordings may still need this one."""
        nbytes = getattr(self._factors, "nnz", 0) * _BYTES_EACH
        if _Kept.nbytes + nbytes > session.config.memory_limit // _SHARE:
            self._factors = None
        elif not self._counted:
            self._counted = nbytes
            _Kept.nbytes += nbytes

    def __del__(self) -> None:
        _Kept.nbytes -= getattr(self, "_counted", 0)

    def solve(self, b: Array, transposed: bool) -> Array:
        """The solution with the matrix or its transpose. Raises `SolverError` with the residual where it is none."""
        if self._factors is None:
            self._factors = self._factorise()
            self._counted = 0
            factors = self._factors
            self.relinquish()
        else:
            factors = self._factors
        matrix = self._transpose if transposed else self.matrix

        def solved(right: Array) -> Array:
            return factors.solve(right, "T" if transposed else "N")

        if not b.any():
            return np.zeros_like(b)
        x = solved(b)
        residual, relative = self._residual(matrix, x, b)
        if relative > _GOOD_RESIDUAL:  # what pivots on the diagonal alone cost, a step of refinement gives back
            other = x + solved(residual)
            residual_after, after = self._residual(matrix, other, b)
            if after < relative:
                x, residual, relative = other, residual_after, after
        if not relative <= _LARGEST_RESIDUAL:
            norm = float(np.linalg.norm(residual))
            error = SolverError(
                f"the system could not be solved: the residual is {norm:.3g}, of a right-hand side of norm "
                f"{np.linalg.norm(b):.3g}",
                self._span,
                hint="the matrix is singular, or nearly so, or the right-hand side is not finite",
            )
            error.residual = norm
            raise error
        return x

    def _residual(self, matrix: Any, x: Array, b: Array) -> tuple[Array, float]:
        residual = b - matrix @ x
        with np.errstate(all="ignore"):
            scale = self._norm * np.abs(x).max() + np.abs(b).max()
            return residual, float(np.abs(residual).max() / scale)

    # ---- factors

    def _factorise(self) -> Any:
        library = cholmod() if self._kind == "LLT" else None
        if library is not None:
            return self._cholesky(library)
        symmetric = self._kind != "LU"
        options = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}} if symmetric else {}
        try:
            factors = scipy_solvers.splu(self.matrix, permc_spec=_ORDERINGS[self._ordering], **options)
        except RuntimeError:
            raise self._singular() from None
        pivots = factors.U.diagonal()
        largest = abs(self.matrix).max(axis=0).toarray().ravel()[factors.perm_c.argsort()]
        tiny = np.abs(pivots) <= 64 * np.finfo(np.float64).eps * largest
        if symmetric and self._kind == "LLT":
            if not np.array_equal(factors.perm_r, factors.perm_c) or (pivots < 0)[~tiny].any():
                raise self._indefinite(pivots)
        if tiny.any() or not np.isfinite(pivots).all():
            raise self._singular()
        return factors

    def _cholesky(self, library: Any) -> Any:
        try:
            return _Cholmod(library.cholesky(self.matrix))
        except library.CholmodNotPositiveDefiniteError:
            raise self._indefinite(np.zeros(0)) from None

    def _require_symmetric(self) -> None:
        difference = abs(self.matrix - self._transpose).tocoo()
        # What is added up in another order differs by roundings, of f32 perhaps.
        wrong = difference.data > 1e-5 * self._norm
        if wrong.any():
            row, column = int(difference.row[wrong][0]), int(difference.col[wrong][0])
            raise SolverError(
                f"{self._kind} needs a symmetric matrix, and this one has {self.matrix[row, column]:g} at "
                f"({row}, {column}) and {self.matrix[column, row]:g} at ({column}, {row})",
                self._span,
                hint='solver_type="LU" solves with any matrix that is not singular',
            )

    def _singular(self) -> SolverError:
        empty = np.flatnonzero(np.asarray(abs(self.matrix).sum(axis=1)).ravel() == 0)
        more = f": row {empty[0]} has no element that is not zero" if empty.size else ""
        return SolverError(
            f"the matrix of {self.matrix.shape[0]} by {self.matrix.shape[1]} is singular{more}",
            self._span,
            hint="fix enough of the unknowns, or add a small multiple of the identity",
        )

    def _indefinite(self, pivots: Array) -> SolverError:
        negative = int((pivots < 0).sum())
        counted = f": {negative} of its {pivots.size} pivots are negative" if negative else ""
        return SolverError(
            f"the matrix is not positive definite{counted}",
            self._span,
            hint='solver_type="LDLT" solves with symmetric matrices that are indefinite, "LU" with any',
        )


class _Cholmod:
    """A CHOLMOD factor with the interface of SuperLU. Its matrix is symmetric."""

    def __init__(self, factor: Any) -> None:
        self._factor = factor
        self.nnz = int(factor.L().nnz)

    def solve(self, b: Array, _: str) -> Array:
        """The solution."""
        return self._factor(b)
