"""`ti.tools`: images from and to files, indexed `[x, y]` from the bottom left as in `GUI.set_image`."""

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
    """Write an image to a file, in the format that its ending names; missing folders are made.

    Parameters
    ----------
    img : Field or array_like, shape (width, height[, channels])
        The image; floats are in [0, 1].
    filename : path
        The file.

    Raises
    ------
    ViewError
        For what is not an image, and for an unknown format.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(64, 64))
    >>> ti.tools.imwrite(x, "field.png")
    >>> ti.tools.imread("field.png").shape
    (64, 64, 3)
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
    """Read an image from a file.

    Parameters
    ----------
    filename : path
        The file.
    channels : {0, 1, 3, 4}
        Convert to this number of channels; 0 keeps the file's own.

    Returns
    -------
    numpy.ndarray of uint8, shape (width, height, channels)
        The image, indexed from the bottom left.

    Raises
    ------
    ViewError
        Where there is no image in the file.

    Examples
    --------
    >>> import numpy as np
    >>> ti.tools.imwrite(np.zeros((8, 4, 3), np.uint8), "black.png")
    >>> ti.tools.imread("black.png").shape
    (8, 4, 3)
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
    """Show an image in the output of the running cell.

    Parameters
    ----------
    img : Field or array_like, shape (width, height[, channels])
        The image.
    title : str, optional
        The text above it.

    Raises
    ------
    ViewError
        For what is not an image.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(64, 64))
    >>> ti.tools.imshow(x, "a field")
    a field
    <PIL.Image.Image image mode=RGB size=64x64...>
    """
    if title:
        print(title)
    display(Image.fromarray(_rows(img)))


def imresize(img: Any, w: int, h: int | None = None) -> np.ndarray:
    """Resize an image: each pixel takes the nearest one.

    Parameters
    ----------
    img : Field or array_like, shape (width, height[, channels])
        The image.
    w : int
        The new width in pixels.
    h : int, optional
        The new height in pixels, by default the width.

    Returns
    -------
    numpy.ndarray
        An image of the same type.

    Raises
    ------
    ViewError
        For what is not an image.

    Examples
    --------
    >>> import numpy as np
    >>> ti.tools.imresize(np.zeros((8, 4)), 16, 8).shape
    (16, 8)
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
