"""Marks over the cells of a field: contour lines, and vectors as arrows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinote.viz.draw.arrays import ViewError, as_array, as_colors
from tinote.viz.draw.colormap import LEVELS, ColorScale
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.scale import Scale
from tinote.viz.live.contours import contour_lines
from tinote.viz.live.strokes import Strokes, as_strokes, paint_arrows, paint_edges

ARROW_SPACING = 24.0
"""Pixels from one arrow to the next, at least."""

LONGEST_ARROW = 0.95
"""Length of the longest arrow where no scale is given, as a fraction of the distance to the next one."""

MOST_CONTOURS = 100

CONTRAST = 0.6
"""How much of black, over light colours of the map, or else of white there is in a contour line."""


class GridMarks:
    """Contours and arrows of a view of a field: see `Image` for what the arguments `given` mean. `looks` is what a page
    has of them; `levels`: how many contours there are about, or at which numbers, if there are any.
    """

    def __init__(self, scale: ColorScale, given: Any, *, is_scalar: bool) -> None:
        contours = given.contours
        if contours is not None and not is_scalar:
            raise ViewError("contours are lines of equal numbers, and the field holds colours")
        self._scale = scale
        self._arrow_scale = given.arrow_scale
        self.levels = None if contours is None else _as_levels(contours)
        self._contour_color = None
        if given.contour_color is not None:
            self._contour_color = as_colors(given.contour_color, None, "contour_color")
        self._arrow_color = as_colors(given.arrow_color, None, "arrow_color")
        # An edge keeps arrows apart from whatever colours are below.
        self._outline = np.full(3, 0 if _is_light(self._arrow_color) else 255, np.uint8)
        self._strokes: dict[str, Strokes] = {}
        self.looks: dict[str, Any] = {}
        if contours is not None:
            self.looks["contours"] = {"width": given.contour_width}
            if self._contour_color is not None:
                self.looks["contours"]["color"] = self._contour_color.tolist()
        if given.vectors is not None:
            look = {"color": self._arrow_color.tolist(), "outline": self._outline.tolist()}
            self.looks["arrows"] = {"width": given.arrow_width, **look}

    def draw_contours(self, values: np.ndarray, low: float, high: float) -> None:
        """Make the contour lines of `values` (columns, rows) in colours of the map from `low` to `high`."""
        if self.levels is None:
            return
        if isinstance(self.levels, int):
            levels = _round_levels(self._scale.form.between(low, high), self.levels)
        else:
            levels = np.array(self.levels)
        lines, number = contour_lines(values, levels)
        places = (lines.reshape(-1, 2, 2) + 0.5) / values.shape
        ends, index = as_strokes(places[:, 0], places[:, 1])
        inks = self._contour_color
        if inks is None:
            inks = self._standing_out(levels, low, high)[number[index]]
        self._strokes["contours"] = Strokes(ends, inks)

    def _standing_out(self, levels: np.ndarray, low: float, high: float) -> np.ndarray:
        """The colours of the map at `levels`, darker, or lighter where they are dark, (M, 3), uint8."""
        at = (self._scale.places(levels, low, high) * LEVELS).clip(0, LEVELS - 1).astype(int)
        colors = self._scale.colors[at].astype(float)
        towards = np.where(_is_light(colors), 0.0, 255.0 * CONTRAST)[:, None]
        return (colors * (1.0 - CONTRAST) + towards).astype(np.uint8)

    def draw_arrows(self, vectors: np.ndarray, shape: tuple[int, int], size: tuple[int, int]) -> float:
        """Make the arrows over (columns, rows) cells on a stage of `size` (width, height) pixels. Returns the length of
        the longest vector among them. Raises `ViewError` for vectors of another shape.
        """
        if vectors.dtype.kind not in "fiu":
            raise ViewError(f"vectors hold {vectors.dtype}, not numbers")
        if vectors.shape != (*shape, 2):
            raise ViewError(
                f"vectors have shape {vectors.shape}, and the field has {shape[0]} × {shape[1]} cells",
                hint=f"they have the shape {(*shape, 2)}, or that of the field with vectors of two components",
            )
        cell = np.array(size) / shape
        spacing = [max(1, int(np.ceil(ARROW_SPACING / side))) for side in cell]
        chosen = [_spaced(count, step) for count, step in zip(shape, spacing, strict=True)]
        shown = vectors[np.ix_(*chosen)].astype(np.float64)
        at = np.stack(np.meshgrid(*chosen, indexing="ij"), axis=-1) + 0.5
        shown, at = shown.reshape(-1, 2), at.reshape(-1, 2)
        finite = np.isfinite(shown).all(axis=1)
        shown, at = shown[finite], at[finite]
        longest = float(np.sqrt((shown**2).sum(axis=1).max(initial=0.0)))
        scale = self._arrow_scale
        if scale is None:
            scale = LONGEST_ARROW * min(spacing) / longest if longest > 0 else 0.0
        half = 0.5 * scale * shown
        ends, _ = as_strokes((at - half) / shape, (at + half) / shape)
        self._strokes["arrows"] = Strokes(ends, self._arrow_color)
        return longest

    def parts(self) -> dict[str, bytes]:
        """The binary parts of a frame, by their names."""
        found: dict[str, bytes] = {}
        for name, strokes in self._strokes.items():
            found[name] = strokes.ends.tobytes()
            found[f"{name}_inks"] = strokes.inks.tobytes() if strokes.inks.ndim == 2 else b""
        return found

    def paint(self, picture: Picture) -> None:
        """Paint lines and arrows over the cells."""
        if "contours" in self._strokes:
            paint_edges(picture, self._strokes["contours"], self.looks["contours"]["width"])
        if "arrows" in self._strokes:
            paint_arrows(picture, self._strokes["arrows"], self.looks["arrows"]["width"], self._outline)


def _spaced(count: int, step: int) -> np.ndarray:
    """Every `step`-th of `count` numbers, those at both ends about as far from the edges as half of that."""
    first = (count - 1 - step * (max(count // step, 1) - 1)) // 2
    return np.arange(first, count - first, step)


def _is_light(colors: np.ndarray) -> np.ndarray:
    """Whether black stands out from colours (..., 3) better than white does."""
    return colors @ np.array([0.299, 0.587, 0.114]) > 110.0


def _round_levels(scale: Scale, count: int) -> np.ndarray:
    """Round numbers between the ends of a scale, as near to `count` of them as there can be."""
    choices = [
        [tick for tick, _ in scale.ticks(about) if scale.low < tick < scale.high]
        for about in (count, 2 * count, 3 * count)
    ]
    return np.array(min(choices, key=lambda ticks: abs(len(ticks) - count)))


def _as_levels(contours: Any) -> int | list[float]:
    """How many levels there are, or which."""
    if isinstance(contours, int | np.integer) and not isinstance(contours, bool):
        if not 1 <= contours <= MOST_CONTOURS:
            raise ViewError(f"contours must be between 1 and {MOST_CONTOURS}, or a list of numbers, not {contours}")
        return int(contours)
    levels = as_array(contours)
    if (
        levels.dtype.kind not in "fiu"
        or levels.ndim != 1
        or not np.isfinite(levels).all()
        or len(levels) > MOST_CONTOURS
    ):
        raise ViewError(f"contours must be at most {MOST_CONTOURS} numbers, or how many to draw, not {contours!r}")
    return levels.astype(np.float64).tolist()
