"""Numbers as colours: perceptually uniform maps, by S. van der Walt and N. Smith (2015, public domain), grey, and for
numbers around zero `coolwarm`, by K. Moreland (Diverging Color Maps for Scientific Visualization, 2009).
"""

from __future__ import annotations

import base64
import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import suggestion
from tinote.viz.draw.arrays import ViewError, as_colors, as_numbers
from tinote.viz.draw.scale import form_of

KNOTS = 17

LEVELS = 255
"""Levels of numbers that become colours; the byte that is left over stands for what is not finite."""

LEVEL_SLACK = 1e-6
"""Logarithms differ by less between Python and pages."""

NOT_FINITE = (0xFF, 0x00, 0xFF)
"""No colour map has this colour: a NaN is seen at once."""

#: Seventeen equally spaced colours; interpolation between them is off by less than 0.03.
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


def table(name: Any, levels: int = 256) -> np.ndarray:
    """A map sampled at `levels` equally spaced values, shape (levels, 3), floats in [0, 1]: by its name, with "_r" from
    its end to its beginning, or a list of colours. Raises `ViewError` for an unknown map.
    """
    if isinstance(name, str) and name.endswith("_r"):
        return table(name[:-2], levels)[::-1]
    if isinstance(name, str):
        if name not in _MAPS:
            return _of_matplotlib(name, levels)
        colors = np.array([tuple(bytes.fromhex(color)) for color in _MAPS[name].split()]) / 255.0
    else:
        if isinstance(name, np.ndarray) or not isinstance(name, Sequence) or len(name) < 2:
            raise ViewError(f"cmap must be the name of a colour map, or two or more colours, not {name!r}")
        colors = np.array([as_colors(color, name="cmap") for color in name]) / 255.0
    at = np.linspace(0.0, 1.0, levels)
    return np.stack([np.interp(at, np.linspace(0.0, 1.0, len(colors)), channel) for channel in colors.T], axis=-1)


def _of_matplotlib(name: str, levels: int) -> np.ndarray:
    """A map that matplotlib has, where it is installed."""
    try:
        maps = importlib.import_module("matplotlib").colormaps  # It is large, and few views need it.
    except ImportError:
        maps = {}
    known = maps.get(name)
    if known is None:
        raise ViewError(
            f"there is no colour map {name!r}{suggestion(name, [*_MAPS, *maps])}",
            hint=f"there are {', '.join(_MAPS)}, those of matplotlib where it is installed, the same with _r"
            " reversed, and lists of colours",
        )
    return known(np.linspace(0.0, 1.0, levels))[:, :3]


def colored(values: Any, name: str = "plasma", normalize: bool = False) -> np.ndarray:
    """A scalar field (columns, rows) as colours, shape (columns, rows, 3), floats in [0, 1]. Values are in [0, 1]; with
    `normalize`, from the least to the greatest. Raises `ViewError` for another shape and an unknown map.
    """
    field = as_numbers(values, "the field")
    if field.ndim != 2 or not field.size:
        raise ViewError(f"a scalar field over the window has shape (columns, rows), not {field.shape}")
    colors = table(name, KNOTS)
    if normalize:
        finite = field[np.isfinite(field)]
        least, most = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        field = (field - least) / (most - least if most > least else 1.0)
    at = np.nan_to_num(field).clip(0.0, 1.0)
    return np.stack([np.interp(at, np.linspace(0.0, 1.0, len(colors)), channel) for channel in colors.T], axis=-1)


class Levels(NamedTuple):
    """Numbers as bytes, their places between `low` and `high`; `strange` of them are not finite."""

    codes: np.ndarray
    low: float
    high: float
    strange: int


class ColorScale:
    """A colour map between two limits, or the least and greatest of the numbers, for "coolwarm" with zero in the
    middle, as `norm` says. `colors`: those of the 256 bytes that numbers become, (256, 3), uint8.
    """

    def __init__(self, cmap: Any, limits: Any = None, norm: Any = "linear") -> None:
        self.form = form_of(norm)
        if limits is not None:
            ends = np.asarray(limits, np.float64)
            if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] >= ends[1]:
                raise ViewError(f"limits must be two numbers, the lower one first, not {limits!r}")
            if self.form.kind == "log" and ends[0] <= 0:
                raise ViewError(f"limits of a logarithmic norm must be positive, not {limits!r}")
            self._limits: tuple[float, float] | None = (float(ends[0]), float(ends[1]))
        else:
            self._limits = None
        self._around_zero = isinstance(cmap, str) and cmap.removesuffix("_r") == "coolwarm" and self.form.kind != "log"
        self.colors = np.array([*(table(cmap, LEVELS) * 255.0 + 0.5), NOT_FINITE]).astype(np.uint8)

    def as_text(self) -> str:
        """The colours as a page is sent them: three bytes each, in base 64."""
        return base64.b64encode(self.colors.tobytes()).decode()

    def described(self) -> dict[str, Any]:
        """What a page needs besides the colours to make `levels` itself."""
        return {"limits": self._limits, "aroundZero": self._around_zero}

    def levels(self, values: np.ndarray) -> Levels:
        """The level of each number, of any shape, and the numbers at both ends."""
        values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
        finite = np.isfinite(values)
        strange = int(values.size - np.count_nonzero(finite))
        low, high = self._ends(values[finite] if strange else values)
        if self.form.kind == "linear":
            span = high - low if high > low else 1.0
            with np.errstate(invalid="ignore", over="ignore"):
                codes = ((values - low) * (LEVELS / span)).clip(0, LEVELS - 1)
        else:
            known = np.where(finite, values, 1.0).astype(np.float64)
            codes = (self.places(known, low, high) * LEVELS + LEVEL_SLACK).clip(0, LEVELS - 1)
        if strange:
            codes[~finite] = LEVELS
        return Levels(codes.astype(np.uint8), low, high, strange)

    def places(self, values: np.ndarray, low: float, high: float) -> np.ndarray:
        """The parts of the map from `low` to `high` at which numbers lie; at its beginning or before it for what a
        logarithm has no place for.
        """
        scale = self.form.between(low, high)
        found: np.ndarray = scale.place(np.maximum(values, 0.0) if scale.kind == "log" else values)
        return found

    def _ends(self, known: np.ndarray) -> tuple[float, float]:
        """The numbers at both ends of the map, of those that are finite."""
        if self._limits is not None:
            return self._limits
        if self.form.kind == "log":
            known = known[known > 0]
        if not known.size:
            return (0.1, 1.0) if self.form.kind == "log" else (0.0, 1.0)
        low, high = float(known.min()), float(known.max())
        return (-max(-low, high), max(-low, high)) if self._around_zero else (low, high)
