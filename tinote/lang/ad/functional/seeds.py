"""Directions that derivatives are taken along, as the user gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.errors import DifferentiationError
from tinote.source import caller

__all__ = ["seed_array"]


def seed_array(seed: Any, shape: tuple[int, ...], whose: str, what: str) -> np.ndarray[Any, Any]:
    """A seed as an array of `shape`. `whose`: follows "the seed" in a message; `what` must have that shape. Raises
    `DifferentiationError`.
    """
    try:
        found = np.asarray(seed, dtype=np.float64)
    except (TypeError, ValueError):
        raise DifferentiationError(f"a seed is made of numbers, not {seed!r}", caller()) from None
    if found.shape != shape:
        raise DifferentiationError(f"the seed{whose} has shape {found.shape}, but {what} has shape {shape}", caller())
    return found
