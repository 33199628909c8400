"""`ti.tools`: pictures to and from files, indexed `[x, y]` from the bottom left as `GUI.set_image` takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from IPython.display import display
from PIL import Image, UnidentifiedImageError

from tinote.viz.draw.arrays import ViewError, as_array, as_image


def _rows(img: Any) -> np.ndarray:
    """An image as rows from the top, uint8, with its transparency if it has any."""
    array = as_array(img)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)) or 0 in array.shape:
        raise ViewError(
            f"an image has shape (width, height), or (width, height, 1, 3 or 4) with colours, not {array.shape}"
        )
    size = (array.shape[0], array.shape[1])
    rows = as_image(array, size)
    if array.ndim == 3 and array.shape[2] == 4:
        alpha = as_image(array[:, :, 3], size)[:, :, :1]
        rows = np.concatenate([rows, alpha], axis=2)
    return rows


def imwrite(img: Any, filename: str | Path) -> None:
    """Write `img`, a field or array of shape (width, height[, channels]) in the format that the extension of `filename`
    names. Floats are in [0, 1]. Missing folders are created. Raises `ViewError` for what is not an image, and for an
    unknown format.
    """
    rows = _rows(img)
    path = Path(filename)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(rows)
    try:
        if path.suffix.lower() in (".jpg", ".jpeg"):
            picture = picture.convert("RGB")
        picture.save(path)
    except (ValueError, KeyError) as error:
        raise ViewError(f"{path.name}: {error}", hint="use a name that ends in .png, .jpg or .bmp") from None


def imread(filename: str | Path, channels: int = 0) -> np.ndarray:
    """The image in the file `filename`, uint8, shape (width, height, channels). `channels`: 1, 3 or 4 converts; 0 keeps
    the file's own. Raises `ViewError` when there is no image in the file.
    """
    modes = {0: "", 1: "L", 3: "RGB", 4: "RGBA"}
    if channels not in modes:
        raise ViewError(f"an image has 1, 3 or 4 channels, not {channels}")
    try:
        with Image.open(filename) as picture:
            own = "L" if picture.mode in ("1", "L") else "RGBA" if "A" in picture.getbands() else "RGB"
            rows = np.asarray(picture.convert(modes[channels] or own))
    except UnidentifiedImageError as error:
        raise ViewError(str(error)) from None
    if rows.ndim == 2:
        rows = rows[:, :, None]
    return np.ascontiguousarray(rows[::-1].swapaxes(0, 1))


def imshow(img: Any, title: str = "") -> None:
    """Show `img`, a field or array of shape (width, height[, channels]), in the output of the running cell, with
    `title` above it. Raises `ViewError` for what is not an image.
    """
    if title:
        print(title)
    display(Image.fromarray(_rows(img)))


def imresize(img: Any, w: int, h: int | None = None) -> np.ndarray:
    """An image of `w` by `h` pixels (by `w`, without `h`): each takes the nearest pixel of `img`, as an array of the
    same type. Raises `ViewError` for what is not an image.
    """
    array = as_array(img)
    height = w if h is None else h
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise ViewError(f"an image has shape (width, height[, channels]), not {array.shape}")
    if w < 1 or height < 1:
        raise ViewError(f"an image cannot have {w} by {height} pixels")
    across = np.arange(w) * array.shape[0] // w
    up = np.arange(height) * array.shape[1] // height
    return array[across[:, None], up[None, :]]
