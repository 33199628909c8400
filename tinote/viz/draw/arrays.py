"""Arguments of views as NumPy arrays: positions, colours, images.

Anything with `to_numpy()` (a field) or that NumPy understands is accepted. Colours are `0xRRGGBB`, a CSS colour string,
a triple of floats in [0, 1], or one of these per particle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import ImageColor

from tinote.errors import Note, TinoteError, users_call
from tinote.source import Span


class ViewError(TinoteError, ValueError):
    """An argument that a view or a drawing call cannot show, at the user's call unless it is said where."""

    def __init__(self, message: str, span: Span | None = None, hint: str = "", notes: Sequence[Note] = ()) -> None:
        super().__init__(message, users_call() if span is None else span, hint, notes)


def as_array(value: Any) -> np.ndarray:
    """`value` as a NumPy array: `value.to_numpy()` where it has one, else `numpy.asarray`. Raises `ViewError` for lists
    of unequal lengths.
    """
    convert = getattr(value, "to_numpy", None)
    value = convert() if callable(convert) else value
    try:
        return np.asarray(value)
    except ValueError:
        raise ViewError(f"a {type(value).__name__} whose elements have unequal lengths is not an array") from None


def as_numbers(value: Any, name: str, *shape: int) -> np.ndarray:
    """Floats, of this shape if there is one. Raises `ViewError` for anything else."""
    array = as_array(value)
    if array.dtype.kind not in "fiub":
        raise ViewError(f"{name} holds {array.dtype}, not numbers")
    if shape and array.shape != shape:
        raise ViewError(f"{name} has shape {array.shape}, not {shape}")
    return array.astype(float)


def as_positions(value: Any, name: str = "x", space: bool = False) -> np.ndarray:
    """Points in the plane, shape (N, 2), or with `space` also (N, 3), floating point. Raises `ViewError` for anything
    else.
    """
    array = as_array(value)
    if array.dtype.kind not in "fiub":
        raise ViewError(f"{name} holds {array.dtype}, not numbers")
    if array.ndim < 1 or array.shape[-1] not in ((2, 3) if space else (2,)):
        further = ", in space (N, 3)" if space else ""
        raise ViewError(f"{name} has shape {array.shape}; points in the plane have shape (N, 2){further}")
    points = array.reshape(-1, array.shape[-1])
    return points if points.dtype in (np.float32, np.float64) else points.astype(np.float64)


def is_color_list(value: Any) -> bool:
    """Whether `value` lists colours that no array of numbers holds: some are text, or they are written in different
    ways.
    """
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "UO"
    if not isinstance(value, list | tuple):
        return False
    return any(isinstance(one, str) for one in value) or len({np.ndim(one) for one in value}) > 1


def as_colors(value: Any, count: int | None = None, name: str = "color") -> np.ndarray:
    """Colours as uint8: shape (3,) for a single one, (count, 3) for one per particle. Raises `ViewError` for anything
    else.
    """
    if isinstance(value, str):
        try:
            return np.array(ImageColor.getrgb(value)[:3], dtype=np.uint8)
        except ValueError as error:
            raise ViewError(f"{name}: {error}", hint="write 0x3b82f6, '#3b82f6' or a CSS colour name") from None
    if is_color_list(value):
        each = [as_colors(color, None, f"{name}[{number}]") for number, color in enumerate(value)]
        return _within(np.array(each), count, name)
    array = as_array(value)
    if array.dtype.kind in "iu" and array.dtype != np.uint8 and array.ndim <= 1:
        return _within(_packed(array, name), count, name)
    if array.dtype.kind == "f" and array.ndim in (1, 2) and array.shape[-1] == 3:
        return _within((np.nan_to_num(array).clip(0.0, 1.0) * 255.0 + 0.5).astype(np.uint8), count, name)
    if array.dtype == np.uint8 and array.ndim in (1, 2) and array.shape[-1] == 3:
        return _within(array, count, name)
    raise ViewError(
        f"{name} of shape {array.shape} and type {array.dtype} is not a colour",
        hint="give 0xRRGGBB, a CSS colour, three floats in [0, 1], or one of these a particle",
    )


def rgb_to_hex(rgb: Any) -> Any:
    """Red, green and blue in [0, 1] as 0xRRGGBB; for three arrays an array. Values outside the range are clipped."""
    red, green, blue = (np.clip(np.asarray(as_array(part) * 255, dtype=np.int64), 0, 255) for part in rgb)
    packed = (red << 16) + (green << 8) + blue
    return packed if packed.ndim else int(packed)


def hex_to_rgb(color: int) -> tuple[float, float, float]:
    """0xRRGGBB as red, green and blue in [0, 1]."""
    red, green, blue = (int(part) for part in _packed(np.asarray(color), "color"))
    return red / 255, green / 255, blue / 255


def _packed(values: np.ndarray, name: str) -> np.ndarray:
    """0xRRGGBB integers as uint8 triples along a new last axis."""
    if values.size and (values.min() < 0 or values.max() > 0xFFFFFF):
        raise ViewError(f"{name} is outside of 0x000000 to 0xffffff")
    wide = values.astype(np.int64)
    return np.stack([(wide >> 16) & 255, (wide >> 8) & 255, wide & 255], axis=-1).astype(np.uint8)


def _within(colors: np.ndarray, count: int | None, name: str) -> np.ndarray:
    if colors.ndim == 2 and (count is None or len(colors) != count):
        expected = "one colour is expected here" if count is None else f"there are {count} particles"
        raise ViewError(f"{name} has {len(colors)} colours, and {expected}")
    return colors


def as_image(value: Any, size: tuple[int, int]) -> np.ndarray:
    """An image of `size` (width, height) as uint8 rows from the top, shape (height, width, 3).

    The argument is indexed `[x, y]` from the bottom left: shape (width, height) for grey or (width, height, 1, 3 or 4).
    Floats are in [0, 1]; unsigned integers use their full range.
    """
    array = as_array(value)
    if array.shape[:2] != size or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise ViewError(
            f"an image of shape {array.shape} does not fit the window, which is {size[0]} wide and {size[1]} high"
        )
    if array.dtype.kind == "f":
        scaled = (np.nan_to_num(array, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
    elif array.dtype == np.uint8:
        scaled = array
    elif array.dtype.kind == "u":
        scaled = (array >> (8 * array.dtype.itemsize - 8)).astype(np.uint8)
    elif array.dtype.kind == "b":
        scaled = array.astype(np.uint8) * np.uint8(255)
    elif array.dtype.kind == "i":
        scaled = array.clip(0, 255).astype(np.uint8)
    else:
        raise ViewError(f"an image cannot hold {array.dtype}")
    if scaled.ndim == 2:
        scaled = scaled[:, :, None]
    if scaled.shape[2] == 1:
        scaled = np.repeat(scaled, 3, axis=2)
    return np.ascontiguousarray(scaled[:, ::-1, :3].swapaxes(0, 1))
