"""The arguments of particles' marks as arrays, read again for each frame: pairs, vectors, radii, colours, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.viz.draw.arguments import takes
from tinote.viz.draw.arrays import ViewError, as_array, as_colors, is_color_list

NO_EDGE = -1
"""Both indices of a pair that is no edge: bonds may break."""


def current(value: Any) -> Any:
    """What a function without arguments returns now; anything else is itself. Raises `ViewError` for a function with
    arguments.
    """
    if not callable(value) or hasattr(value, "to_numpy"):
        return value
    if not takes(value, 0):
        raise ViewError("a function that gives what is shown must be one without arguments")
    return value()


def is_single(value: Any) -> bool:
    """Whether `value` is one colour, and not one each or numbers."""
    if callable(value) or hasattr(value, "to_numpy") or is_color_list(value):
        return False
    return np.ndim(value) == 0


def as_pairs(value: Any, count: int) -> np.ndarray:
    """Pairs of indices of `count` particles, shape (M, 2), or of `NO_EDGE`. Raises `ViewError`, which names the first
    wrong edge.
    """
    pairs = as_array(current(value))
    if pairs.size == 0:
        return np.zeros((0, 2), np.int64)
    if pairs.dtype.kind not in "iu":
        raise ViewError(f"edges hold {pairs.dtype}, not integers", hint="an edge is a pair of indices of particles")
    if pairs.ndim < 2 or pairs.shape[-1] != 2:
        raise ViewError(f"edges have shape {pairs.shape}; pairs of indices have shape (M, 2)")
    pairs = pairs.reshape(-1, 2)
    wrong = ((pairs < 0) | (pairs >= count)).any(axis=1) & ~(pairs == NO_EDGE).all(axis=1)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ViewError(
            f"edge {first} joins the particles {pairs[first, 0]} and {pairs[first, 1]}, and there are {count}",
            hint=f"indices are from 0 to {count - 1}; the pair ({NO_EDGE}, {NO_EDGE}) means no edge" if count else "",
        )
    return pairs


def as_arrows(value: Any, shape: tuple[int, int], name: str = "arrows") -> np.ndarray:
    """Vectors, one a particle, of the positions' shape (N, 2) or (N, 3). Raises `ViewError`."""
    vectors = as_array(current(value))
    if vectors.dtype.kind not in "fiub":
        raise ViewError(f"{name} hold {vectors.dtype}, not numbers")
    if vectors.ndim < 1 or vectors.shape[-1] != shape[1] or vectors.size != shape[0] * shape[1]:
        raise ViewError(f"{name} have shape {vectors.shape}, and x has {shape}", hint="give each particle one vector")
    return vectors.reshape(shape).astype(np.float64, copy=False)


def as_radii(value: Any, count: int) -> np.ndarray:
    """Radii in pixels, one a particle, (count,): one of all is more than 0, and a particle whose own is not more than 0
    is not shown. Raises `ViewError`.
    """
    radii = as_array(current(value))
    if radii.dtype.kind not in "fiu":
        raise ViewError(f"radius holds {radii.dtype}, not numbers")
    if radii.ndim == 0:
        if not 0 < radii < np.inf:
            raise ViewError(f"radius must be a positive number of pixels, not {radii}")
        return np.full(count, radii, np.float32)
    if radii.shape != (count,):
        raise ViewError(f"radius has shape {radii.shape}, and there are {count} particles")
    return np.nan_to_num(radii.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0).clip(0.0, None)


def as_inks(value: Any, count: int, *, name: str = "color", numbers: bool = False, each: str = "particles") -> Any:
    """What the parts of a mark are coloured by: a colour (3,) or one each (count, 3), uint8; or numbers for a colour
    map, (count,), floating point. Numbers are a field of them, an array of floats that is no single colour, and floats
    that a function returns; with `numbers` anything of that shape. A function's colour is one each. Raises `ViewError`.
    """
    live = callable(value) and not hasattr(value, "to_numpy")
    value = current(value)
    if isinstance(value, str) or is_color_list(value):
        colors = as_colors(value, count, name)
        return np.tile(colors, (count, 1)) if live and colors.ndim == 1 else colors
    array = as_array(value)
    single = array.shape == (3,) and not live and not hasattr(value, "to_numpy")
    if array.dtype.kind in "fiub" and array.ndim == 1 and (numbers or (array.dtype.kind == "f" and not single)):
        if len(array) != count:
            raise ViewError(f"{name} has {len(array)} numbers, and there are {count} {each}")
        return array.astype(np.float32 if array.dtype == np.float32 else np.float64, copy=False)
    if numbers and array.dtype.kind in "fiub" and array.ndim > 1:
        raise ViewError(f"{name} has shape {array.shape}; a colour map takes one number each of {count} {each}")
    colors = as_colors(value, count, name)
    return np.tile(colors, (count, 1)) if live and colors.ndim == 1 else colors
