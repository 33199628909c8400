"""SciPy's sparse matrices and solvers, which are loaded when the first sparse matrix is made, and CHOLMOD where it is
installed.
"""

from __future__ import annotations

import importlib
from typing import Any

from tinote.errors import NotAvailableError
from tinote.source import caller


def scipy_sparse() -> Any:
    """`scipy.sparse`. Raises `NotAvailableError` where SciPy is not installed."""
    return _library("scipy.sparse")


def scipy_solvers() -> Any:
    """`scipy.sparse.linalg`. Raises `NotAvailableError` where SciPy is not installed."""
    return _library("scipy.sparse.linalg")


def cholmod() -> Any:
    """`sksparse.cholmod`, or None where scikit-sparse is not installed or has another interface."""
    try:
        found = importlib.import_module("sksparse.cholmod")
    except ImportError:
        return None
    return found if hasattr(found, "cholesky") and hasattr(found, "CholmodNotPositiveDefiniteError") else None


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise NotAvailableError(
            "sparse matrices need SciPy, which is not installed", caller(), hint="pip install scipy"
        ) from None
