"""Particles in the plane or in space, moving live in a notebook.

The browser gets the positions as 16-bit fractions of the bounds and paints the discs itself: 4 bytes a particle and
frame. Where a picture of the discs is less than that, it gets one; of very many particles, whose discs would hide each
other, a picture of their density.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import traitlets

from tinote.viz.draw.arrays import ViewError, as_colors, as_positions
from tinote.viz.draw.pictures import Picture
from tinote.viz.live.cover import DENSITY_COUNT, Cover, density, discs
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.projection import Camera, box_edges, depth, faded, point_at, see
from tinote.viz.live.simulation import UNATTENDED_FRAMES, LiveSimulation, Quantities
from tinote.viz.notebook.view import Frame, static_source

__all__ = ["Particles"]

DEFAULT_COLOR = 0x3B7DD8
"""Readable on a light and on a dark page."""

GRASP = 10.0
"""A particle is grabbed from this many pixels away, or from twice its radius."""

POSITION_BYTES = 4
"""What the page is sent of a particle that it paints itself."""

HIDDEN = 0xFFFF
"""Both coordinates of a particle that is outside of the bounds or not finite, and is not painted."""

Bounds = tuple[tuple[float, float], ...]

UNIT = ((0.0, 1.0), (0.0, 1.0))
EDGES = (0xA6, 0xAB, 0xB3)
"""The edges of the bounds in space, on white."""

HIGHEST = 89.0
"""Degrees above the xy plane, and below it, that the camera may stand."""


class Particles(LiveSimulation):
    """A live view of particles, with play, pause, step, reset, a speed slider, Stop, and a plot of running quantities.

    - `x`: the positions, a field or array of shape (N, 2), or (N, 3) in space, read after each frame; N may change.
    - `step()`: advances the simulation by one step; `reset()` takes it back to its start. Both may launch kernels.
    - `bounds`: ((left, right), (bottom, top)), what the view shows, in the units of `x`, from 0 to 1 by itself; in
      space three pairs, the last one upwards. Particles outside are counted, not painted.
    - `color`: 0xRRGGBB, a CSS colour, or one a particle; `radius`: in pixels; `background`: a colour, or the page's own
      if not given.
    - `energy` or `plots`: a function that returns a number, or a dictionary of them, sampled once a frame and drawn
      below over the step number.
    - `steps_per_frame`: steps between two pictures, which the slider changes; `size`: width, or (width, height), in
      pixels; `label`: what screen readers say; `plot_label`: the vertical axis of the plot.
    - `pointer(pointer)`: called between frames while a button is held on the view, with a `Pointer` in the units of
      `x`: its `element` is the index of the particle that was pressed, or None. In space only a press on a particle
      counts, and its `position` moves in the plane through that particle that faces the camera.
    - `azimuth`, `elevation`: in space, where the camera stands, in degrees around the z axis and above the xy plane.
      The pointer, pressed beside the particles or with Shift, and the arrow keys turn it.
    - `unattended_frames`: how many frames are made where a program executes the notebook and nobody can press play.

    More than 150,000 particles are shown as a density, one pixel each, the darker the more of them there are; no single
    one can be grabbed then. Fewer, but enough for a picture to take fewer bytes than their positions (57,600 on 480 ×
    480 pixels), are painted by the kernel, if they have one colour: with a disc each, as the page would.

    Nothing is computed while the view is out of sight. `play()`, `pause()`, `single_step()`, `reset()`, `stop()` and
    `advance(frames)` do from a cell what the buttons do. A step that raises stops the view, which shows the error;
    `exception` keeps it.
    """

    _esm = static_source("kernel.js", "view.js", "chart.js", "simulation.js", "particles.js")
    _css = static_source("simulation.css", "kernel.css")

    radius = traitlets.Float(2.0).tag(sync=True)
    background = traitlets.Unicode().tag(sync=True)
    color = traitlets.Unicode().tag(sync=True)
    """The colour of all particles as CSS has it; empty where each has its own."""

    colors = traitlets.Bytes().tag(sync=True)
    """Those of particles in the plane that have their own, three bytes each; in space they come with each frame."""

    reach = traitlets.Float(GRASP).tag(sync=True)
    in_space = traitlets.Bool(False).tag(sync=True)
    azimuth = traitlets.Float(30.0)
    elevation = traitlets.Float(20.0)

    def __init__(
        self,
        x: Any,
        step: Callable[[], object] | None = None,
        *,
        bounds: Bounds | None = None,
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
        azimuth: float = 30.0,
        elevation: float = 20.0,
    ) -> None:
        points = as_positions(x, space=True)
        in_space = points.shape[1] == 3
        self._x = x
        self._count = len(points)
        self._bounds = _checked_bounds(UNIT + UNIT[:1] * in_space if bounds is None else bounds, points.shape[1])
        self._turning = False
        self._depth = 0.0  # Of the plane in which the pointer moves in space.
        self._colors = as_colors(color, self._count)
        self._captured: np.ndarray | Cover | None = None
        self._shown_colors = self._colors
        self._edges = np.zeros((0, 4))
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
            in_space=in_space,
            azimuth=float(azimuth),
            elevation=_height(elevation),
            color=_css(self._colors) if self._colors.ndim == 1 and not in_space else "",
            colors=self._colors.tobytes() if self._colors.ndim == 2 and not in_space else b"",
            background="" if background is None else _css(as_colors(background, name="background")),
            plot_label=plot_label,
            label=label,
        )
        self.observe(lambda _change: self.refresh(), "radius")  # Discs that are painted here have to be painted again.

    def __repr__(self) -> str:
        box = " × ".join(f"[{low:g}, {high:g}]" for low, high in self._bounds)
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Particles: {self._count} in {box}{failed}>"

    def capture(self) -> Frame:
        """The positions as 16-bit fractions of the bounds, or of the picture that the camera takes, x to the right and
        y up; in space with the colours, which change with the distance.
        """
        points = as_positions(self._x, space=self.in_space)
        self._count = len(points)
        if self._colors.ndim == 2 and len(self._colors) != len(points):
            raise ViewError(f"x now has {len(points)} particles, and there are {len(self._colors)} colours")
        if not self.in_space:
            return self._capture_plane(points, self._bounds, self._colors, {})
        if points.shape[1] != 3:
            raise ViewError(f"x now has {points.shape[1]} coordinates, and had 3")
        bounds, camera = np.array(self._bounds), self._camera()
        seen = see(points, bounds, camera)
        self._edges = box_edges(bounds, camera)
        colors = faded(self._colors if self._colors.ndim == 1 else self._colors[seen.index], seen.nearness)
        return self._capture_plane(seen.positions, UNIT, colors, {"edges": self._edges.round(5).tolist()})

    def _capture_plane(self, points: np.ndarray, bounds: Bounds, colors: np.ndarray, more: dict[str, Any]) -> Frame:
        """The frame of points in the plane; `more` goes into its message."""
        self._shown_colors = colors
        size = (self.width, self.height)
        if len(points) > DENSITY_COUNT:
            return self._capture_cover(density(points, bounds, size, colors), more)
        if colors.ndim == 1 and POSITION_BYTES * len(points) > self.width * self.height:
            return self._capture_cover(discs(points, bounds, size, self.radius), more)
        low, high = np.array(bounds, points.dtype).T
        with np.errstate(invalid="ignore", over="ignore"):
            packed = (points - low) * ((HIDDEN - 1) / (high - low))
            u, v = packed.T
            inside = (u >= 0) & (u <= HIDDEN - 1) & (v >= 0) & (v <= HIDDEN - 1)  # False for NaN as well.
        shown = int(np.count_nonzero(inside))
        if shown < len(points):
            packed[~inside] = HIDDEN
        captured = self._captured = packed.astype(np.uint16)
        message = {"count": self._count, "outside": self._count - shown, **more}
        return Frame(message, [captured.tobytes(), colors.tobytes() if colors.ndim == 2 and self.in_space else b""])

    def _capture_cover(self, found: Cover, more: dict[str, Any]) -> Frame:
        self._captured = found
        message = {"count": self._count, "outside": self._count - found.inside, "cover": True, **more}
        return Frame(message, [found.cover.tobytes(), b"" if found.colors is None else found.colors.tobytes()])

    def painted(self) -> Picture:
        """The particles as a picture."""
        captured = self._captured
        assert captured is not None
        paper = (
            as_colors(self.background, name="background") if self.background else np.array([255, 255, 255], np.uint8)
        )
        view = Picture(self.width, self.height, paper)
        if isinstance(captured, Cover):
            cover = captured.cover[:, :, None] / 255.0
            ink = self._shown_colors if captured.colors is None else captured.colors
            view.pixels[:] = (view.pixels * (1.0 - cover) + ink * cover + 0.5).astype(np.uint8)
        else:
            visible = captured[:, 0] != HIDDEN
            colors = self._shown_colors if self._shown_colors.ndim == 1 else self._shown_colors[visible]
            centers = captured[visible] / (HIDDEN - 1) * [self.width, -self.height] + [0, self.height]
            view.discs(centers, self.radius, colors)
        if self.in_space:
            ends = self._edges.reshape(-1, 2, 2) * [self.width, -self.height] + [0, self.height]
            view.lines(ends[:, 0], ends[:, 1], 0.75, np.array(EDGES, np.uint8))
        view.frame()
        return view

    def pick(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, ...], int | None]:
        """The position in the units of the bounds; when the button goes down, the particle that is nearest, if it is
        within reach, in space the one in front.
        """
        if self.in_space:
            return self._pick_in_space(across, up, pressed)
        low, high = np.array(self._bounds).T
        element = None
        points = as_positions(self._x)
        if pressed and len(points) <= DENSITY_COUNT:
            with np.errstate(invalid="ignore"):
                inside = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
            away = self._pixels_away((points[inside] - low) / (high - low), across, up)
            if away.size and away.min() <= max(2 * self.radius, self.reach):
                element = int(inside[np.argmin(away)])
        return tuple((low + [across, up] * (high - low)).tolist()), element

    def _pick_in_space(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, ...], int | None]:
        bounds, camera = np.array(self._bounds), self._camera()
        element = None
        if pressed:
            points = as_positions(self._x, space=True)
            seen = see(points, bounds, camera)
            away = self._pixels_away(seen.positions, across, up)
            under = np.flatnonzero(away <= self.radius + 1.0)  # The last one is in front.
            if under.size:
                element = int(seen.index[under[-1]])
            elif away.size and away.min() <= max(2 * self.radius, self.reach):
                element = int(seen.index[np.argmin(away)])
            self._depth = 0.0 if element is None else depth(points[element], bounds, camera)
        return tuple(point_at((across, up), self._depth, bounds, camera).tolist()), element

    def _pixels_away(self, positions: np.ndarray, across: float, up: float) -> np.ndarray:
        """How far positions on the stage, (N, 2), are from another one, all as fractions of it."""
        return np.hypot(*((positions - [across, up]) * [self.width, self.height]).T)

    def _camera(self) -> Camera:
        return Camera(self.azimuth, self.elevation, self.width / self.height)

    def turn(self, azimuth: float, elevation: float) -> None:
        """Put the camera elsewhere: degrees around the z axis and above the xy plane."""
        self.azimuth, self.elevation = azimuth % 360.0, _height(elevation)
        if self.state != "playing" and self.credits.connected and not self._turning:
            self._turning = True
            self._on_loop(lambda: self._spawn(self._act(self._turned)))

    def _turned(self) -> Frame:
        self._turning = False
        return self._present()

    def obey(self, message: dict[str, Any]) -> None:
        """The page has turned the camera, or pressed a button."""
        if message.get("kind") == "turn":
            around, above = (float(part) for part in message["by"])
            self.turn(self.azimuth + around, self.elevation + above)
        else:
            super().obey(message)


def _height(elevation: float) -> float:
    return min(max(float(elevation), -HIGHEST), HIGHEST)


def _checked_bounds(bounds: Any, dimensions: int) -> Bounds:
    values = np.asarray(bounds, np.float64)
    if values.shape != (dimensions, 2) or not np.isfinite(values).all() or not (values[:, 0] < values[:, 1]).all():
        wanted = "((left, right), (bottom, top))" if dimensions == 2 else "three pairs (low, high)"
        raise ViewError(f"bounds are {bounds!r}; they are {wanted}, the lower end of each first")
    return tuple((low, high) for low, high in values.tolist())


def _css(color: np.ndarray) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in color)
