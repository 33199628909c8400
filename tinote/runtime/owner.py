"""Whose launches these are: one party is the session's cells or script, and each live view that runs beside them is
another.

A live view's step may differentiate while a cell does. What one party has computed, the other must not wipe.
"""

from __future__ import annotations

import itertools
from contextvars import ContextVar

__all__ = ["SESSION", "new_party", "party"]

SESSION = 0
"""The party of cells and scripts."""

#: The party of this context.
party: ContextVar[int] = ContextVar("tinote_party", default=SESSION)

_numbers = itertools.count(SESSION + 1)


def new_party() -> int:
    """A party of its own, for a live view."""
    return next(_numbers)
