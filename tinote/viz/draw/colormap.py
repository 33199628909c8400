"""Numbers as colours: maps of even lightness, by S. van der Walt and N. Smith (2015, public domain), grey, and for
numbers around zero `coolwarm`, by K. Moreland (Diverging Color Maps for Scientific Visualization, 2009).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.viz.draw.arrays import ViewError, as_array

KNOTS = 17

#: Seventeen colours at equal distances; between them is interpolated, which is off by less than 0.03.
_MAPS = {
    "coolwarm": "3b4cc0 4e68d8 6282ea 779af7 8db0fe a3c2fe b9d0f9 ccd9ed dddcdc"
    " ecd3c5 f5c4ac f7b093 f4987a eb7d62 dd5f4b ca3b37 b40426",
    "gray": "000000 ffffff",
    "inferno": "000004 0b0724 210c4a 3d0965 57106e 71196e 8a226a a32c61 bc3754"
    " d24644 e45a31 f1731d f98e09 fcac11 f9cb35 f2ea69 fcffa4",
    "magma": "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779"
    " d0416f e75263 f56b5c fc8961 fea772 fec488 fde2a3 fcfdbf",
    "plasma": "0d0887 310597 4c02a1 6600a7 7e03a8 9511a1 aa2395 bc3587 cc4778"
    " da5a6a e66c5c f0804e f89540 fdac33 fdc527 f8df25 f0f921",
    "viridis": "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c"
    " 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725",
}  # fmt: skip


def table(name: str, levels: int = 256) -> np.ndarray:
    """A map as colours at `levels` equal distances, shape (levels, 3), floats in [0, 1]. Raises `ViewError` for an
    unknown map.
    """
    if name not in _MAPS:
        raise ViewError(f"there is no colour map {name!r}", hint=f"there are {', '.join(_MAPS)}")
    colors = np.array([tuple(bytes.fromhex(color)) for color in _MAPS[name].split()]) / 255.0
    at = np.linspace(0.0, 1.0, levels)
    return np.stack([np.interp(at, np.linspace(0.0, 1.0, len(colors)), channel) for channel in colors.T], axis=-1)


def colored(values: Any, name: str = "plasma", normalize: bool = False) -> np.ndarray:
    """A scalar field (columns, rows) as colours, shape (columns, rows, 3), floats in [0, 1]. Values are in [0, 1]; with
    `normalize`, from the least to the greatest. Raises `ViewError` for another shape and an unknown map.
    """
    field = as_array(values).astype(float)
    if field.ndim != 2:
        raise ViewError(f"a scalar field over the window has shape (columns, rows), not {field.shape}")
    colors = table(name, KNOTS)
    if normalize:
        finite = field[np.isfinite(field)]
        least, most = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        field = (field - least) / (most - least if most > least else 1.0)
    at = np.nan_to_num(field).clip(0.0, 1.0)
    return np.stack([np.interp(at, np.linspace(0.0, 1.0, len(colors)), channel) for channel in colors.T], axis=-1)
