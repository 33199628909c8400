"""SciPy's sparse matrices and solvers, which are loaded when the first sparse matrix is made, and CHOLMOD where it is
installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinote.lazy import lazy

if TYPE_CHECKING:
    scipy_sparse: Any
    scipy_solvers: Any
else:
    scipy_sparse, scipy_solvers = lazy("scipy.sparse"), lazy("scipy.sparse.linalg")


def cholmod() -> Any:
    """`sksparse.cholmod`, or None where scikit-sparse is not installed or has another interface."""
    try:
        found = importlib.import_module("sksparse.cholmod")
    except ImportError:
        return None
    return found if hasattr(found, "cholesky") and hasattr(found, "CholmodNotPositiveDefiniteError") else None
