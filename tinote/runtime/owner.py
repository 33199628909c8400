"""Whose launches these are: one owner is the session's cells or script, and each live view that runs beside them is
another.

A live view's step may differentiate while a cell does. What one owner has computed, the other must not wipe.
"""

from __future__ import annotations

import itertools
from contextvars import ContextVar

SESSION = 0
"""The owner of cells and scripts."""

#: The owner of this context.
current_owner: ContextVar[int] = ContextVar("tinote_party", default=SESSION)

_numbers = itertools.count(SESSION + 1)


def new_owner() -> int:
    """A owner of its own, for a live view."""
    return next(_numbers)
