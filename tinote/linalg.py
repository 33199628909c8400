"""`ti.linalg`: decompositions of small matrices in kernels, sparse matrices, and linear solvers with derivatives."""

# A module of its own, so that `from tinote.linalg import svd` works. Solvers are loaded when they are first asked for.

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tinote.lang.maths.linalg import eig, polar_decompose, solve, svd, sym_eig
from tinote.lang.session.missing import refusing
from tinote.lazy import lazy

if TYPE_CHECKING:
    from tinote.lang.ad.solvers import builder, matrix, matrix_free, solvers
    from tinote.lang.ad.solvers.builder import SparseMatrixBuilder
    from tinote.lang.ad.solvers.matrix import SparseMatrix
    from tinote.lang.ad.solvers.matrix_free import LinearOperator, MatrixFreeBICGSTAB, MatrixFreeCG
    from tinote.lang.ad.solvers.solvers import SparseCG, SparseSolver
else:
    builder = lazy("tinote.lang.ad.solvers.builder")
    matrix = lazy("tinote.lang.ad.solvers.matrix")
    matrix_free = lazy("tinote.lang.ad.solvers.matrix_free")
    solvers = lazy("tinote.lang.ad.solvers.solvers")

_SOLVERS = {
    "LinearOperator": matrix_free,
    "MatrixFreeBICGSTAB": matrix_free,
    "MatrixFreeCG": matrix_free,
    "SparseCG": solvers,
    "SparseMatrix": matrix,
    "SparseMatrixBuilder": builder,
    "SparseSolver": solvers,
}

__all__ = [
    "LinearOperator",
    "MatrixFreeBICGSTAB",
    "MatrixFreeCG",
    "SparseCG",
    "SparseMatrix",
    "SparseMatrixBuilder",
    "SparseSolver",
    "eig",
    "polar_decompose",
    "solve",
    "svd",
    "sym_eig",
]

_refuse = refusing(__name__)


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name not in _SOLVERS:
            return _refuse(name)
        found = getattr(_SOLVERS[name], name)
        globals()[name] = found
        return found


__dir__ = partial(sorted, __all__)
