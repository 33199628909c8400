"""A field over the plane as a picture, changing live in a notebook.

A scalar field is sent as one byte a cell, its level between the two limits, and the browser looks the colour up; a
field of colours is sent as three. Cells are sent as they are and enlarged in the browser; of a field that has more
cells than the picture can show, evenly spaced ones are sent.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import traitlets
from PIL import Image as Pillow

from tinote.viz.draw.arrays import ViewError, as_array
from tinote.viz.draw.colormap import table
from tinote.viz.draw.pictures import Picture
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.simulation import UNATTENDED_FRAMES, LiveSimulation, Quantities
from tinote.viz.notebook.view import Frame, static_source

__all__ = ["Image"]

LEVELS = 255
"""Levels of a scalar field; the byte that is left over stands for what is not finite."""

NOT_FINITE = (0xFF, 0x00, 0xFF)
"""No colour map has this colour: a NaN is seen at once."""

MOST_CELLS = 1024
"""Cells along a side that are sent, or twice the picture's size, if that is less."""


class Image(LiveSimulation):
    """A live view of a field over the plane, with play, pause, step, reset, a speed slider, Stop, and a plot.

    - `field`: a field or array of shape (columns, rows) of numbers, or (columns, rows, 3) or vectors of 3 as colours:
      floats in [0, 1], or unsigned bytes. Cell (0, 0) is at the bottom left. It is read after each frame.
    - `cmap`: the colours of numbers: "viridis", "plasma", "magma", "inferno", "gray", or "coolwarm" for numbers around
      zero. `limits`: the numbers at its two ends; without it the least and greatest of each frame, for "coolwarm" with
      zero in the middle. What is not finite is painted magenta, and counted.
    - `smooth`: paint between the cells' colours, instead of squares.
    - `size`: the longer side in pixels; `label`: what screen readers say; `plot_label`: the vertical axis of the plot.
    - `pointer(pointer)`: called between frames while a button is held on the view, with a `Pointer` in units of cells:
      its `element` is the index (column, row) of the cell under it.

    The rest is as for `Particles`: `step`, `reset`, `energy` or `plots`, `steps_per_frame`, `unattended_frames`, and
    the methods that do what the buttons do.
    """

    _esm = static_source("kernel.js", "view.js", "chart.js", "simulation.js", "image.js")
    _css = static_source("simulation.css", "kernel.css")

    smooth = traitlets.Bool(False).tag(sync=True)
    colors = traitlets.Unicode().tag(sync=True)
    """The colours of the 256 bytes that a scalar field is sent as, three bytes each, in base 64."""

    def __init__(
        self,
        field: Any,
        step: Callable[[], object] | None = None,
        *,
        cmap: str = "viridis",
        limits: tuple[float, float] | None = None,
        smooth: bool = False,
        energy: Quantities = None,
        plots: Quantities = None,
        plot_label: str = "",
        reset: Callable[[], object] | None = None,
        steps_per_frame: int = 1,
        size: int = 480,
        label: str = "live view of a field",
        unattended_frames: int = UNATTENDED_FRAMES,
        pointer: Callable[[Pointer], object] | None = None,
    ) -> None:
        columns, rows = _checked_cells(as_array(field)).shape[:2]
        if limits is not None and not (np.isfinite(limits).all() and limits[0] < limits[1]):
            raise ViewError(f"limits are {limits!r}; they are two numbers, the lower one first")
        if size < 16:
            raise ViewError(f"size {size} is too small to show anything; it is in pixels")
        self._field = field
        self._limits = limits
        self._around_zero = cmap == "coolwarm"
        self._shape = (columns, rows)
        self._table = np.array([*(table(cmap, LEVELS) * 255.0 + 0.5), NOT_FINITE]).astype(np.uint8)
        self._cells: np.ndarray | None = None
        longest = max(columns, rows)
        super().__init__(
            step=step,
            reset=reset,
            energy=energy,
            plots=plots,
            steps_per_frame=steps_per_frame,
            unattended_frames=unattended_frames,
            pointer=pointer,
            size=(max(16, round(size * columns / longest)), max(16, round(size * rows / longest))),
            smooth=smooth,
            colors=base64.b64encode(self._table.tobytes()).decode(),
            plot_label=plot_label,
            label=label,
        )

    def __repr__(self) -> str:
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Image: {self._shape[0]} × {self._shape[1]}{failed}>"

    def capture(self) -> Frame:
        """The cells as bytes, rows from the top: levels of numbers, or colours."""
        cells = _checked_cells(as_array(self._field))
        self._shape = (cells.shape[0], cells.shape[1])
        strides = [
            -(-count // min(MOST_CELLS, 2 * pixels))
            for count, pixels in zip(self._shape, (self.width, self.height), strict=True)
        ]
        shown = cells[:: strides[0], :: strides[1]][:, ::-1].swapaxes(0, 1)
        message: dict[str, Any] = {"columns": shown.shape[1], "rows": shown.shape[0], "shape": list(self._shape)}
        if shown.ndim == 2:
            shown, low, high, strange = self._levels(shown)
            message |= {"low": low, "high": high, "strange": strange}
        elif shown.dtype != np.uint8:
            shown = (np.nan_to_num(shown).clip(0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
        self._cells = np.ascontiguousarray(shown)
        return Frame(message, [self._cells.tobytes()])

    def _levels(self, values: np.ndarray) -> tuple[np.ndarray, float, float, int]:
        """The level of each number, the numbers at both ends, and how many are not finite."""
        values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
        finite = np.isfinite(values)
        strange = int(values.size - np.count_nonzero(finite))
        if self._limits is not None:
            low, high = map(float, self._limits)
        elif strange == values.size:
            low, high = 0.0, 1.0
        else:
            known = values[finite] if strange else values
            low, high = float(known.min()), float(known.max())
            if self._around_zero:
                low, high = -max(-low, high), max(-low, high)
        span = high - low if high > low else 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            levels = ((values - low) * (LEVELS / span)).clip(0, LEVELS - 1)
        if strange:
            levels[~finite] = LEVELS
        return levels.astype(np.uint8), low, high, strange

    def painted(self) -> Picture:
        """The cells, enlarged to the view's size."""
        assert self._cells is not None
        colors = self._table[self._cells] if self._cells.ndim == 2 else self._cells
        way = Pillow.Resampling.BILINEAR if self.smooth else Pillow.Resampling.NEAREST
        view = Picture(self.width, self.height)
        view.pixels[:] = np.asarray(Pillow.fromarray(colors).resize((self.width, self.height), way))
        view.frame()
        return view

    def pick(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, float], tuple[int, int]]:
        """The position in cells, and the index of the cell there; outside of the view that of the nearest one."""
        del pressed
        columns, rows = self._shape
        position = (across * columns, up * rows)
        return position, (int(np.clip(position[0], 0, columns - 1)), int(np.clip(position[1], 0, rows - 1)))


def _checked_cells(array: np.ndarray) -> np.ndarray:
    """An array that can be shown: two-dimensional, or of three colours a cell. Raises `ViewError` otherwise."""
    colored: Sequence[int] = array.shape[2:]
    if array.dtype.kind not in "fiub":
        raise ViewError(f"the field holds {array.dtype}, not numbers")
    if array.ndim not in (2, 3) or 0 in array.shape or tuple(colored) not in ((), (3,)):
        raise ViewError(
            f"a field of shape {array.shape} is no picture",
            hint="it has the shape (columns, rows), or (columns, rows, 3) for colours",
        )
    if colored and array.dtype.kind != "f" and array.dtype != np.uint8:
        raise ViewError(f"colours of type {array.dtype}; they are floats in [0, 1] or unsigned bytes")
    return array
