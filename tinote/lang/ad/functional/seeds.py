"""Seeds: the directions of derivatives, as given by the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.errors import DifferentiationError, FieldError
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.fields import Field
from tinote.lang.data.matrix import numpy_type, require_numbers
from tinote.lang.data.traced import Traced, objects
from tinote.source import caller


def seed_array(seed: Any, shape: tuple[int, ...], whose: str, what: str) -> np.ndarray[Any, Any]:
    """A seed as an array of `shape`. `whose`: follows "the seed" in a message; `what` must have that shape. Raises
    `DifferentiationError`.
    """
    if type(seed) is Traced and seed.is_captured:
        found = objects([seed], ())
    else:
        try:
            if isinstance(seed, CapturedArray):
                found = seed.astype(np.float64)
            else:
                require_numbers(seed)
                found = np.asarray(seed, dtype=np.float64)
        except (FieldError, TypeError, ValueError, OverflowError):
            raise DifferentiationError(f"a seed is made of numbers, not {seed!r}", caller()) from None
    if found.shape != shape:
        raise DifferentiationError(f"the seed{whose} has shape {found.shape}, but {what} has shape {shape}", caller())
    return found


def store_seed(field: Field, seed: np.ndarray[Any, Any]) -> None:
    """Give a gradient or a dual the numbers of a seed, rounded to its type."""
    if seed.dtype == object:
        field.fill(seed.item())
    else:
        field.from_numpy(seed.astype(numpy_type(field.dtype)).reshape(field.shape + field.element))
