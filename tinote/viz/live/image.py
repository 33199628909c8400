"""A field over the plane as a picture, changing live in a notebook.

A scalar field is sent as one byte a cell, its level between the two limits, and the browser looks the colour up; a
field of colours is sent as three. Cells are sent as they are and enlarged in the browser; of a field that has more
cells than the picture can show, evenly spaced ones are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace as Namespace
from typing import Any, NamedTuple

import numpy as np
import traitlets
from PIL import Image as Pillow

from tinote.viz.draw.arrays import ViewError, as_array
from tinote.viz.draw.colormap import ColorScale
from tinote.viz.draw.pictures import MakePicture, Picture
from tinote.viz.live.arguments import (
    SMALLEST_SIDE,
    Renews,
    argument,
    color_map,
    derived,
    number,
    optional,
    pixels,
    whole,
)
from tinote.viz.live.axed import AxedSimulation, Range, ranges_of
from tinote.viz.live.grid_marks import GridMarks
from tinote.viz.live.mark_values import current
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.simulation import CAPTURED
from tinote.viz.notebook.view import VIEW_SCRIPTS, Frame, static_source
from tinote.viz.pages.sources import Sources

MOST_CELLS = 1024
"""Cells along a side that are sent, or twice the picture's size, if that is less."""


class ImageLook(NamedTuple):
    """What the arguments `given` are in the picture."""

    sent: dict[str, Any]
    given: Namespace
    scale: ColorScale
    marks: GridMarks

    def read(self) -> dict[str, np.ndarray]:
        """All that is shown now, by the names of the arguments."""
        found = {"field": _checked_cells(self.given.field)}
        if self.given.vectors is not None:
            found["vectors"] = as_array(current(self.given.vectors))
        return found


class Image(AxedSimulation):
    """A live view of a field over the plane, with play, pause, step, reset, a speed slider, Stop, and a plot.

    Its arguments are attributes that can be changed, as those of `ti.viz.Particles`.

    Parameters
    ----------
    field : Field or array, shape (columns, rows), or with 3 components
        Numbers, or colours: floats in [0, 1], or unsigned bytes. Cell (0, 0) is at the bottom left. It is read after
        each frame.
    step : callable, optional
        Advances the simulation by one step; it may launch kernels.
    cmap : str or sequence of colours, default "viridis"
        The colours of numbers, as for `ti.viz.Particles`. Numbers that are not finite are painted magenta, and counted.
    norm : {"linear", "log", "symlog"}, or ("symlog", float)
        How numbers are mapped to colours, as for `ti.viz.Particles`.
    limits : (float, float), optional
        The numbers at the two ends of the map; by default the least and greatest of each frame, for "coolwarm" with
        zero in the middle.
    extent : ((left, right), (bottom, top)), optional
        Where the edges of the field lie, in physical units; by default in cells.
    axes : bool, optional
        As for `ti.viz.Particles`; axes are also shown by default if there is an `extent`.
    x_label, y_label : str
        As for `ti.viz.Particles`.
    grid : bool, default False
        As for `ti.viz.Particles`.
    smooth : bool, default False
        Paint between the cells' colours, instead of squares.
    colorbar : bool, default True
        Show the map of numbers below the view.
    color_label : str
        What its numbers are.
    contours : int or sequence of float, optional
        Lines where the numbers have these values, or about how many lines there are, at round numbers.
    contour_color : colour, optional
        By default a colour that stands out from the map.
    contour_width : float
        In pixels.
    vectors : Field, array or callable, shape (columns, rows) with 2 components, optional
        A vector for each cell, read after each frame, shown as arrows in the middle of evenly spaced cells, far enough
        apart to be distinguished.
    arrow_color : colour
        The colour of the arrows.
    arrow_width : float
        In pixels.
    arrow_scale : float, optional
        The length of an arrow in cells for each unit of the vector; by default the longest arrow of a frame reaches to
        the next.
    energy, plots : callable, or dict of str to callable, optional
        As for `ti.viz.Particles`.
    plot_label : str
        As for `ti.viz.Particles`.
    plot_scale : {"linear", "log", "symlog"}, or ("symlog", float)
        As for `ti.viz.Particles`.
    dt : float, optional
        As for `ti.viz.Particles`.
    reset : callable, optional
        As for `ti.viz.Particles`.
    steps_per_frame : int, default 1
        As for `ti.viz.Particles`.
    unattended_frames : int, default 60
        As for `ti.viz.Particles`.
    runs_unseen : bool, default False
        As for `ti.viz.Particles`.
    timeline : float, default 32
        As for `ti.viz.Particles`.
    name : str
        As for `ti.viz.Particles`.
    size : int, default 480
        The longer side in pixels.
    label : str
        What screen readers say.
    pointer : callable, optional
        Called between frames while a button is held on the view, with a `ti.viz.Pointer` in units of cells: its
        `element` is the index (column, row) of the cell under it.

    Raises
    ------
    ViewError
        For arguments of other shapes and kinds.

    Examples
    --------
    >>> u = ti.field(ti.f32, shape=(64, 48))
    >>> @ti.kernel
    ... def advance():
    ...     for i, j in u:
    ...         u[i, j] += ti.sin(0.1 * i) * ti.cos(0.1 * j)
    >>> view = ti.viz.Image(u, advance, cmap="coolwarm", size=320)
    >>> view.advance(2)
    >>> view.snapshot("waves.png")
    >>> view, view.steps
    (<Image: 64 × 48>, 2)
    """

    PAGE_KIND = "image"
    _esm = static_source(*VIEW_SCRIPTS, "draw/strokes.js", "views/image.js")
    _css = static_source("theme.css", "views/simulation.css", "kernel.css")

    field: Any = argument(kw_only=False)
    step: Callable[[], object] | None = argument(default=None, kw_only=False, fixed=CAPTURED)
    cmap: str | Sequence[Any] = argument(default="viridis", check=color_map)
    limits: tuple[float, float] | None = argument(default=None)
    extent: tuple[Range, Range] | None = argument(default=None)
    smooth: bool = argument(default=False, renews=Renews.FRAME, sent=True)
    colorbar: bool = argument(default=True, sent=True)
    color_label: str = argument(default="", renews=Renews.NOTHING, sent=True)
    contours: int | Sequence[float] | None = argument(default=None)
    contour_color: Any = argument(default=None)
    contour_width: float = argument(default=1.2, check=pixels)
    vectors: Any = argument(default=None)
    arrow_color: Any = argument(default=0xFFFFFF)
    arrow_width: float = argument(default=1.3, check=pixels)
    arrow_scale: float | None = argument(default=None, check=optional(number(np.isfinite, "a length in cells")))
    size: int = argument(default=480, check=whole(SMALLEST_SIDE))
    label: str = argument(default="live view of a field", renews=Renews.NOTHING, sent=True)
    pointer: Callable[[Pointer], object] | None = argument(default=None, fixed=CAPTURED)

    marks = derived(traitlets.Dict(), "assign contours, vectors, or their colours and widths")
    """How contours and arrows look; those that there are."""

    def prepare(self) -> None:
        """Nothing is shown yet."""
        self._shape = (0, 0)
        self._cells: np.ndarray | None = None

    def arranged(self, given: Namespace) -> ImageLook:
        """What the arguments are in the picture."""
        cells = _checked_cells(given.field)
        columns, rows = cells.shape[:2]
        longest = max(columns, rows)
        size = (max(16, round(given.size * columns / longest)), max(16, round(given.size * rows / longest)))
        scale = ColorScale(given.cmap, given.limits, given.norm)
        extent = ranges_of("extent", ((0, columns), (0, rows)) if given.extent is None else given.extent, 2)
        marks = GridMarks(scale, given, is_scalar=cells.ndim == 2)
        sent = {
            **self._sent_of_all(given, size),
            "colorbar": given.colorbar and cells.ndim == 2,
            "table": scale.as_text(),
            "marks": marks.looks,
            "axes_shown": self._axes_of(given, extent, size, wanted=given.extent is not None),
        }
        self._shape = (columns, rows)
        return ImageLook(sent, given, scale, marks)

    def __repr__(self) -> str:
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Image: {self._shape[0]} × {self._shape[1]}{failed}>"

    def capture(self) -> Frame:
        """The cells as bytes, rows from the top: levels of numbers, or colours."""
        look: ImageLook = self.look
        read = look.read()
        cells = read["field"]
        self._shape = (cells.shape[0], cells.shape[1])
        strides = [
            -(-count // min(MOST_CELLS, 2 * pixels))
            for count, pixels in zip(self._shape, (self.width, self.height), strict=True)
        ]
        spaced = cells[:: strides[0], :: strides[1]]
        shown = spaced[:, ::-1].swapaxes(0, 1)
        message: dict[str, Any] = {"columns": shown.shape[1], "rows": shown.shape[0], "shape": list(self._shape)}
        if shown.ndim == 2:
            shown, low, high, strange = look.scale.levels(shown)
            message |= {"low": low, "high": high, "strange": strange}
            look.marks.draw_contours(spaced, low, high)
        elif shown.dtype != np.uint8:
            shown = (np.nan_to_num(shown).clip(0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)
        self._cells = np.ascontiguousarray(shown)
        if "vectors" in read:
            message["longest"] = look.marks.draw_arrows(read["vectors"], self._shape, (self.width, self.height))
        return Frame.of(message, [self._cells.tobytes()], look.marks.parts())

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make such frames itself."""
        look: ImageLook = self.look
        return {
            **sources.of(vars(look.given), look.read()),
            "scale": look.scale.described(),
            "contours": look.marks.levels,
            "arrow_scale": self.arrow_scale,
        }

    def pointed(self) -> tuple[int, int]:
        """Cells across and upwards, and the column and row of a cell."""
        return 2, 2

    def painted(self, make: MakePicture = Picture) -> Picture:
        """The cells, enlarged to the view's size."""
        assert self._cells is not None
        colors = self.look.scale.colors[self._cells] if self._cells.ndim == 2 else self._cells
        way = Pillow.Resampling.BILINEAR if self.smooth else Pillow.Resampling.NEAREST
        view = make(self.width, self.height)
        sides = (self.width * view.scale, self.height * view.scale)
        view.pixels[:] = np.asarray(Pillow.fromarray(colors).resize(sides, way))
        self.look.marks.paint(view)
        view.frame()
        return view

    def legend(self) -> ColorScale | None:
        """The colour map, if it is to be shown."""
        return self.look.scale if self.sent["colorbar"] else None

    def pick(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, float], tuple[int, int]]:
        """The position in cells, and the index of the cell there; outside of the view that of the nearest one."""
        del pressed
        columns, rows = self._shape
        position = (across * columns, up * rows)
        return position, (int(np.clip(position[0], 0, columns - 1)), int(np.clip(position[1], 0, rows - 1)))


def _checked_cells(field: Any) -> np.ndarray:
    """An array that can be shown: two-dimensional, or of three colours a cell. Raises `ViewError` otherwise."""
    array = as_array(field)
    if len(getattr(field, "shape", array.shape)) == 1 and array.ndim == 2:  # Vectors in a row: no picture of two rows.
        raise ViewError(
            f"a field of {array.shape[1]} components in a row of {array.shape[0]} is not a picture",
            hint="it has two dimensions; Particles shows positions, and Plot numbers over time",
        )
    colored: Sequence[int] = array.shape[2:]
    if array.dtype.kind not in "fiub":
        raise ViewError(f"the field holds {array.dtype}, not numbers")
    if array.ndim not in (2, 3) or 0 in array.shape or tuple(colored) not in ((), (3,)):
        raise ViewError(
            f"a field of shape {array.shape} is not a picture",
            hint="it has the shape (columns, rows), or (columns, rows, 3) for colours",
        )
    if colored and array.dtype.kind != "f" and array.dtype != np.uint8:
        raise ViewError(f"colours must be floats in [0, 1] or unsigned bytes, not {array.dtype}")
    return array
