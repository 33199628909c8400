"""Where the active cells of a sparse field lie.

Level by level: only what is in active blocks is asked. So time and memory follow what is active, not the box.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinote.ir.sparsity import Sparsity
from tinote.lang.data.layout import array_over
from tinote.lang.session.state import memory_of

Array = np.ndarray[Any, Any]
#: What places are computed with, of numbers and of arrays.
ARITHMETIC: tuple[Any, Any, Any] = operator.floordiv, operator.mod, lambda a, n, b: a * n + b


def active_places(sparsity: Sparsity, *, whole: bool = False) -> tuple[Array, ...]:
    """The places of active cells in the storage, in their order: one array for each group up to the last that has an
    activity, or, `whole`, for all groups.
    """
    found: tuple[Array, ...] = ()
    for depth, activity in sparsity.activities:
        above = depth - activity.is_list
        while len(found) < above - (not activity.is_list):
            found = _divided(found, sparsity.counts[len(found)])
        held = array_over(activity.buffer, memory_of(activity.buffer))
        if activity.is_list:
            found = _divided(found, held[found])
        elif found:
            rows, cells = np.nonzero(held[found])
            found = (*[places[rows] for places in found], cells)
        else:
            found = np.nonzero(held)
    while whole and len(found) < len(sparsity.counts):
        found = _divided(found, sparsity.counts[len(found)])
    return found


def _divided(places: tuple[Array, ...], counts: Any) -> tuple[Array, ...]:
    """Each place followed by the numbers below its count."""
    counts = np.broadcast_to(counts, places[0].shape if places else ()).astype(np.int64).reshape(-1)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return (*[np.repeat(place, counts) for place in places], within)


def indices_at(sparsity: Sparsity, places: Sequence[Array]) -> Array:
    """The indices of places in the storage as users count them, one a row."""
    index = sparsity.coordinates(places, *ARITHMETIC, np.zeros_like(places[0]))
    offset = sparsity.offset or (0,) * len(index)
    return np.stack([k + first for k, first in zip(index, offset, strict=True)], axis=-1)
