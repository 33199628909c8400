"""Particles in the plane, moving live in a notebook.

The browser gets the positions as 16-bit fractions of the bounds and paints the discs itself: 4 bytes a particle and
frame. Above a number that the page could not paint in time it gets a picture of their density instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import traitlets

from tinote.viz.arrays import ViewError, as_colors, as_positions
from tinote.viz.density import DENSITY_COUNT, Density, density
from tinote.viz.pictures import Picture
from tinote.viz.pointer import Pointer
from tinote.viz.simulation import UNATTENDED_FRAMES, LiveSimulation, Quantities
from tinote.viz.view import Frame, static_source

__all__ = ["Particles"]

DEFAULT_COLOR = 0x3B7DD8
"""Readable on a light and on a dark page."""

GRASP = 10.0
"""A particle is grabbed from this many pixels away, or from twice its radius."""

HIDDEN = 0xFFFF
"""Both coordinates of a particle that is outside of the bounds or not finite, and is not painted."""

Bounds = tuple[tuple[float, float], tuple[float, float]]


class Particles(LiveSimulation):
    """A live view of particles, with play, pause, step, reset, a speed slider, Stop, and a plot of running quantities.

    - `x`: the positions, a field or array of shape (N, 2), read after each frame; N may change.
    - `step()`: advances the simulation by one step; `reset()` takes it back to its start. Both may launch kernels.
    - `bounds`: ((left, right), (bottom, top)), what the view shows, in the units of `x`. Particles outside are counted,
      not painted.
    - `color`: 0xRRGGBB, a CSS colour, or one a particle; `radius`: in pixels; `background`: a colour, or the page's own
      if not given.
    - `energy` or `plots`: a function that returns a number, or a dictionary of them, sampled once a frame and drawn
      below over the step number.
    - `steps_per_frame`: steps between two pictures, which the slider changes; `size`: width, or (width, height), in
      pixels.
    - `pointer(pointer)`: called between frames while a button is held on the view, with a `Pointer` in the units of
      `x`: its `element` is the index of the particle that was pressed, or None.
    - `unattended_frames`: how many frames are made where a program executes the notebook and nobody can press play.

    More than 150,000 particles are shown as a density, one pixel each, the darker the more of them there are; no
    single one can be grabbed then.

    Nothing is computed while the view is out of sight. `play()`, `pause()`, `single_step()`, `reset()`, `stop()` and
    `advance(frames)` do from a cell what the buttons do. A step that raises stops the view, which shows the error;
    `exception` keeps it.
    """

    _esm = static_source("view.js", "chart.js", "simulation.js", "particles.js")
    _css = static_source("simulation.css")

    radius = traitlets.Float(2.0).tag(sync=True)
    background = traitlets.Unicode().tag(sync=True)
    color = traitlets.Unicode().tag(sync=True)
    """The colour of all particles as CSS has it; empty where each has its own."""

    def __init__(
        self,
        x: Any,
        step: Callable[[], object] | None = None,
        *,
        bounds: Bounds = ((0.0, 1.0), (0.0, 1.0)),
        color: Any = DEFAULT_COLOR,
        radius: float = 2.0,
        background: Any = None,
        energy: Quantities = None,
        plots: Quantities = None,
        plot_label: str = "",
        reset: Callable[[], object] | None = None,
        steps_per_frame: int = 1,
        size: int | Sequence[int] = 480,
        label: str = "live view of particles",
        unattended_frames: int = UNATTENDED_FRAMES,
        pointer: Callable[[Pointer], object] | None = None,
    ) -> None:
        self._x = x
        self._count = len(as_positions(x))
        self._bounds = _checked_bounds(bounds)
        self._colors = as_colors(color, self._count)
        self._captured: np.ndarray | Density | None = None
        if not radius > 0:
            raise ViewError(f"radius is {radius}; it is a number of pixels, more than 0")
        super().__init__(
            step=step,
            reset=reset,
            energy=energy,
            plots=plots,
            steps_per_frame=steps_per_frame,
            unattended_frames=unattended_frames,
            size=size,
            pointer=pointer,
            radius=float(radius),
            color=_css(self._colors) if self._colors.ndim == 1 else "",
            background="" if background is None else _css(as_colors(background, name="background")),
            plot_label=plot_label or ("energy" if energy is not None else ""),
            label=label,
        )

    def __repr__(self) -> str:
        (left, right), (bottom, top) = self._bounds
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Particles: {self._count} in [{left:g}, {right:g}] × [{bottom:g}, {top:g}]{failed}>"

    def capture(self) -> Frame:
        """The positions as 16-bit fractions of the bounds, x to the right and y up; with the colours, where each
        particle has its own.
        """
        points = as_positions(self._x)
        self._count = len(points)
        if self._colors.ndim == 2 and len(self._colors) != len(points):
            raise ViewError(f"x now has {len(points)} particles, and there are {len(self._colors)} colours")
        if len(points) > DENSITY_COUNT:
            return self._capture_density(points)
        low, high = np.array(self._bounds, points.dtype).T
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (points - low) * ((HIDDEN - 1) / (high - low))
            inside = ((scaled >= 0) & (scaled <= HIDDEN - 1)).all(axis=1)  # False for NaN as well.
        outside = int(len(points) - np.count_nonzero(inside))
        if outside:
            scaled[~inside] = HIDDEN
        packed = scaled.astype(np.uint16)
        self._captured = packed
        colors = self._colors.tobytes() if self._colors.ndim == 2 else b""
        return Frame({"count": self._count, "outside": outside}, [packed.tobytes(), colors])

    def _capture_density(self, points: np.ndarray) -> Frame:
        """The cover of each pixel, and the mean colours, where each particle has its own."""
        colors = self._colors if self._colors.ndim == 2 else None
        found = self._captured = density(points, self._bounds, (self.width, self.height), colors)
        message = {"count": len(points), "outside": len(points) - found.inside, "density": True}
        return Frame(message, [found.cover.tobytes(), b"" if found.colors is None else found.colors.tobytes()])

    def painted(self) -> Picture:
        """The particles as a picture."""
        captured = self._captured
        assert captured is not None
        paper = (
            as_colors(self.background, name="background") if self.background else np.array([255, 255, 255], np.uint8)
        )
        view = Picture(self.width, self.height, paper)
        if isinstance(captured, Density):
            cover = captured.cover[:, :, None] / 255.0
            ink = self._colors if captured.colors is None else captured.colors
            view.pixels[:] = (view.pixels * (1.0 - cover) + ink * cover + 0.5).astype(np.uint8)
        else:
            visible = captured[:, 0] != HIDDEN
            colors = self._colors if self._colors.ndim == 1 else self._colors[visible]
            centers = captured[visible] / (HIDDEN - 1) * [self.width, -self.height] + [0, self.height]
            view.discs(centers, self.radius, colors)
        view.frame()
        return view

    def place(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, float], int | None]:
        """The position in the units of the bounds; when the button goes down, the particle that is nearest, if it is
        within reach.
        """
        (left, right), (bottom, top) = self._bounds
        position = (left + across * (right - left), bottom + up * (top - bottom))
        if not pressed or not isinstance(self._captured, np.ndarray) or not len(self._captured):
            return position, None
        pixels = [self.width, self.height]
        away = np.hypot(*((self._captured / (HIDDEN - 1) - [across, up]) * pixels).T)
        away[self._captured[:, 0] == HIDDEN] = np.inf
        nearest = int(np.argmin(away))
        return position, nearest if away[nearest] <= max(2 * self.radius, GRASP) else None


def _checked_bounds(bounds: Any) -> Bounds:
    values = np.asarray(bounds, np.float64)
    if values.shape != (2, 2) or not np.isfinite(values).all() or not (values[:, 0] < values[:, 1]).all():
        raise ViewError(
            f"bounds are {bounds!r}; they are ((left, right), (bottom, top)) with left < right and bottom < top"
        )
    (left, right), (bottom, top) = values.tolist()
    return (left, right), (bottom, top)


def _css(color: np.ndarray) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in color)
