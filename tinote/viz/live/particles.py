"""Particles in the plane or in space, moving live in a notebook.

The browser gets the positions as 16-bit fractions of the bounds and paints the discs itself: 4 bytes a particle and
frame. Where a picture of the discs is less than that, it gets one; of very many particles, whose discs would hide each
other, a picture of their density.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace as Namespace
from typing import Any, NamedTuple

import numpy as np
import traitlets

from tinote.viz.draw.arrays import ViewError, as_colors, as_positions
from tinote.viz.draw.colormap import ColorScale
from tinote.viz.draw.pen import css
from tinote.viz.draw.pictures import MakePicture, Picture, as_jpeg
from tinote.viz.draw.scale import number_text
from tinote.viz.draw.vector import VectorPicture
from tinote.viz.live.arguments import Renews, angle, argument, color_map, derived, number, optional, pixels
from tinote.viz.live.axed import PlacedSimulation, fitted_ranges, ranges_of
from tinote.viz.live.cover import DENSITY_COUNT, Cover, density, discs
from tinote.viz.live.mark_values import as_inks, as_radii, is_single
from tinote.viz.live.marks import ARROW_COLOR, EDGE_COLOR, MARK_INKS, Inks, Marks, Plane, Sight, Space, read_inks
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.projection import OrbitCamera, depth, eye_of, faded, point_at, rasterised, see
from tinote.viz.live.simulation import CAPTURED
from tinote.viz.live.strokes import paint_glows
from tinote.viz.notebook.view import VIEW_SCRIPTS, Frame, static_source
from tinote.viz.pages.sources import Sources
from tinote.viz.space.box import described_box, drawn_box, paint_box
from tinote.viz.space.rasterise import Rasteriser

DEFAULT_COLOR = 0x3B7DD8
"""Readable on a light and on a dark page."""

GRASP = 10.0
"""A particle is grabbed from this many pixels away, or from twice its radius."""

POSITION_BYTES = 4
"""What the page is sent of a particle that it paints itself."""

NIGHT = "#0b0e14"
"""Behind what glows, if no other background is given."""

HIDDEN = 0xFFFF
"""Both codes of a particle that is not painted: it is not finite, or out of the bounds."""

INKED = ("color", *MARK_INKS.values())
"""The arguments that are colours, or numbers for the map."""

Bounds = tuple[tuple[float, float], ...]

UNIT: Bounds = ((0.0, 1.0), (0.0, 1.0))
AXES_ROOM = 1.25
"""How much more than the box is seen in space where it has axes."""

HIGHEST = 89.0
"""Degrees above the xy plane, and below it, that the camera may stand."""


class ParticlesLook(NamedTuple):
    """What the arguments `given` are in the picture. `colors`: those that do not change, which are read once; where
    there are none, colours or numbers are read after each frame, as `numbers` says.
    """

    sent: dict[str, Any]
    given: Namespace
    bounds: Bounds
    scale: ColorScale
    colors: np.ndarray | None
    numbers: bool
    has_one_radius: bool
    marks: Marks
    box: dict[str, Any]

    @property
    def radius(self) -> float:
        """That of all particles, or the largest."""
        return self.sent["radius"]

    def read(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """All that is shown now, by the names of the arguments; of what is the same for all particles nothing but the
        colour.
        """
        color = self.colors
        if color is None:
            color = as_inks(self.given.color, len(points), numbers=self.numbers)
        elif color.ndim == 2 and len(color) != len(points):
            raise ViewError(f"x now has {len(points)} particles, and there are {len(color)} colours")
        found = {"x": points, "color": color, **self.marks.read(points)}
        return found if self.has_one_radius else found | {"radius": as_radii(self.given.radius, len(points))}


def _height(name: str, elevation: Any) -> float:
    return min(max(angle(name, elevation), -HIGHEST), HIGHEST)


class Particles(PlacedSimulation):
    """A live view of particles, with play, pause, step, reset, a speed slider, Stop, and a plot of running quantities.

    Nothing is computed while the view is out of sight, unless it `runs_unseen`. The methods do from a cell what the
    buttons do. A step that raises stops the view, which shows the error; `exception` keeps it.
    More than 150,000 particles in the plane are shown as a density, one pixel each; no single one can be grabbed then.
    Where a picture takes fewer bytes than the positions (from 57,600 particles on 480 × 480 pixels), the kernel paints
    it if they have one colour, and in space with any colours. Arguments are attributes, too: `view.cmap = "plasma"`
    changes the view where it is shown, and widgets can be linked to them. Functions that a view calls stay the same.

    Parameters
    ----------
    x : Field or array, shape (N, 2) or (N, 3)
        The positions, in the plane or in space, read after each frame; N may change.
    step : callable, optional
        Advances the simulation by one step; it may launch kernels.
    bounds : ((left, right), (bottom, top)), optional
        What the view shows, in the units of `x`, in space three pairs, the last one upwards. By default from 0 to 1,
        if all particles are there at first, or else what they take at first, with some room. Particles outside are
        counted, not painted.
    color : colour, (N,) colours or numbers, or callable
        0xRRGGBB, a CSS colour, or one for each particle; or numbers, one for each particle, which become colours: a
        field or array of floats, or a function that returns one, read after each frame.
    axes : bool, optional
        Show axes with ticks around the view, or in space at the edges of the bounds; by default if there is a grid or a
        label.
    x_label, y_label, z_label : str
        What the axes show, with the unit.
    grid : bool, default False
        Draw lines at the ticks.
    radius : number or (N,) numbers
        In pixels.
    background : colour, optional
        By default that of the page.
    cmap : str or sequence of colours, optional
        The colour map of numbers: "viridis", "plasma", "magma", "inferno", "gray", or "coolwarm" for numbers around
        zero; another one by its name in matplotlib, where that is installed; with "_r" from its end to its beginning.
        With a `cmap`, integers are numbers, too.
    limits : (float, float), optional
        The numbers at the two ends of the map; by default the least and greatest of each frame.
    norm : {"linear", "log", "symlog"}, or ("symlog", float)
        How numbers are mapped to colours: linearly, by their logarithm, or by a logarithm on both sides of zero that is
        nearly linear up to the given size, by default 1/100 of the power of ten below the greatest number.
    colorbar : bool, default True
        Show the map below the view.
    color_label : str
        What its numbers are.
    glow : bool, default False
        Let particles and trails shine, on a dark background.
    edges : (M, 2) integers or callable, optional
        Pairs of indices of particles that a line joins: a field, an array, or a function that returns one, read after
        each frame; the pair (-1, -1) means no edge.
    arrows : Field, array or callable, of the shape of x, optional
        A vector for each particle.
    arrow_scale : float, optional
        The length of an arrow in units of `x` for each unit of the vector; by default the longest of a frame is 12 % of
        the shortest side of the bounds.
    trail : int, default 0
        Over how many frames a fading line shows where each particle has been.
    trail_color : colour, optional
        By default that of the particle.
    edge_color, arrow_color : colour, (N,) colours or numbers, or callable
        As `color`, with the same map and limits.
    edge_width, arrow_width, trail_width : float
        In pixels.
    energy, plots : callable, or dict of str to callable, optional
        A function that returns a number, or one that returns a dictionary of them, sampled once a frame and drawn below
        over the step number.
    plot_label : str
        The vertical axis of the plot.
    plot_scale : {"linear", "log", "symlog"}, or ("symlog", float)
        How numbers are placed along it, as for `norm`.
    dt : float, optional
        The time that a step takes: the plot is then over the time.
    reset : callable, optional
        Takes the simulation back to its start.
    steps_per_frame : int, default 1
        Steps between two pictures, which the slider changes.
    size : int or (int, int), default 480
        The width, or width and height, in pixels.
    label : str
        What screen readers say.
    unattended_frames : int, default 60
        How many frames are made where a program executes the notebook, without a user to press play.
    runs_unseen : bool, default False
        Go on while the view is out of sight, or its page closed, as a long fit should.
    timeline : float, default 32
        How many megabytes (1e6 bytes) of frames the page keeps, up to 1,000: the slider below the view, and the arrow
        keys on it, show the last ones again. That pauses the simulation, which continues from the present. 0 keeps
        none.
    name : str
        What files are called that are saved from the view, without their ending; by default "simulation".
    pointer : callable, optional
        Called between frames while a button is held on the view, with a `ti.viz.Pointer` in the units of `x`: its
        `element` is the index of the particle that was pressed, or None. In space only a press on a particle counts,
        and its `position` moves in the plane through that particle that faces the camera.
    azimuth, elevation : float
        In space, where the camera stands, in degrees around the z axis and above the xy plane. The pointer, pressed
        next to the particles or with Shift, and the arrow keys turn it.

    Methods
    -------
    turn

    Raises
    ------
    ViewError
        For arguments of other shapes and kinds.

    Examples
    --------
    >>> x = ti.Vector.field(2, ti.f32, shape=100)
    >>> @ti.kernel
    ... def advance():
    ...     for i in x:
    ...         x[i] += 0.01 * (ti.Vector([0.5, 0.5]) - x[i])
    >>> view = ti.viz.Particles(x, advance, size=320)
    >>> view.advance(10)
    >>> view.snapshot("particles.png")
    >>> view, view.steps
    (<Particles: 100 in [0, 1] × [0, 1]>, 10)
    """

    PAGE_KIND = "particles"
    _esm = static_source(*VIEW_SCRIPTS, "draw/strokes.js", "draw/camera.js", "draw/box.js", "views/particles.js")
    _css = static_source("theme.css", "views/simulation.css", "kernel.css")

    x: Any = argument(kw_only=False)
    step: Callable[[], object] | None = argument(default=None, kw_only=False, fixed=CAPTURED)
    bounds: Bounds | None = argument(default=None)
    color: Any = argument(default=DEFAULT_COLOR, sent=True)
    radius: Any = argument(default=2.0, sent=True)
    background: Any = argument(default=None, sent=True)
    cmap: str | Sequence[Any] | None = argument(default=None, check=color_map)
    limits: tuple[float, float] | None = argument(default=None)
    colorbar: bool = argument(default=True, sent=True)
    color_label: str = argument(default="", renews=Renews.NOTHING, sent=True)
    glow: bool = argument(default=False, sent=True)
    edges: Any = argument(default=None)
    edge_color: Any = argument(default=EDGE_COLOR)
    edge_width: float = argument(default=1.5, check=pixels)
    arrows: Any = argument(default=None)
    arrow_color: Any = argument(default=ARROW_COLOR)
    arrow_width: float = argument(default=1.5, check=pixels)
    arrow_scale: float | None = argument(default=None, check=optional(number(np.isfinite, "a length in units of x")))
    trail: int = argument(default=0)
    trail_color: Any = argument(default=None)
    trail_width: float = argument(default=2.0, check=pixels)
    label: str = argument(default="live view of particles", renews=Renews.NOTHING, sent=True)
    pointer: Callable[[Pointer], object] | None = argument(default=None, fixed=CAPTURED)
    azimuth: float = argument(default=30.0, check=angle, renews=Renews.FRAME)
    elevation: float = argument(default=20.0, check=_height, renews=Renews.FRAME)

    colors = derived(traitlets.Bytes(), "assign color")
    """Those of particles in the plane that have their own, three bytes each; in space they come with each frame."""

    marks = derived(traitlets.Dict(), "assign edges, arrows, trail, or their colours and widths")
    """How edges, arrows and trails look; those that there are."""

    reach = traitlets.Float(GRASP).tag(sync=True)
    in_space = derived(traitlets.Bool(False), "assign x")

    def prepare(self) -> None:
        """Nothing is shown yet."""
        self._rasteriser = Rasteriser()
        self._depth = 0.0  # Of the plane in which the pointer moves in space.
        self._captured: np.ndarray | Cover | None = None
        self._shown_colors = np.zeros(3, np.uint8)
        self._shown_radii: np.ndarray | None = None
        self._count = 0

    def arranged(self, given: Namespace) -> ParticlesLook:
        """What the arguments are in the picture."""
        points = as_positions(given.x, space=True)
        in_space = points.shape[1] == 3
        bounds = self._bounds_of(given, points)
        scale = ColorScale(given.cmap or "viridis", given.limits, given.norm)
        numbers = given.cmap is not None and not is_single(given.color)
        found = as_inks(given.color, len(points), numbers=numbers)
        radii = as_radii(given.radius, len(points))
        is_fixed = not callable(given.color) and found.dtype == np.uint8
        marks = Marks(points, given, self.look.marks if self.is_made else None)
        paper = NIGHT if given.glow and given.background is None else given.background
        is_sent = is_fixed and not in_space
        has_numbers = found.dtype != np.uint8 or marks.has_numbers
        sent = {
            **self._sent_of_all(given, given.size),
            "color": css(found) if is_sent and found.ndim == 1 else "",
            "colors": found.tobytes() if is_sent and found.ndim == 2 else b"",
            "radius": float(radii.max(initial=0.0)) if len(radii) else 0.0,
            "background": "" if paper is None else css(as_colors(paper, name="background")),
            "colorbar": given.colorbar and has_numbers,
            "table": scale.as_text(),
            "marks": marks.looks,
            "in_space": in_space,
            "axes_shown": {} if in_space else self._axes_of(given, bounds, given.size),
        }
        self._count = len(points)
        colors = found if is_fixed else None
        box = described_box(bounds, self._labels_of(given), grid=given.grid) if in_space else {}
        return ParticlesLook(sent, given, bounds, scale, colors, numbers, is_single(given.radius), marks, box)

    def _bounds_of(self, given: Namespace, points: np.ndarray) -> Bounds:
        """Those that are given, or that the view has had since it has shown these particles, or that fit them."""
        if given.bounds is not None:
            return ranges_of("bounds", given.bounds, points.shape[1])
        if self.is_made and self.bounds is None and given.x is self.x:
            return self.look.bounds
        unit = UNIT[:1] * points.shape[1]
        with np.errstate(invalid="ignore"):
            is_outside = ((points < 0.0) | (points > 1.0)).any()
        return (fitted_ranges(points, given.size) if is_outside else None) or unit

    def __repr__(self) -> str:
        box = " × ".join(f"[{low:g}, {high:g}]" for low, high in self.look.bounds)
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Particles: {self._count} in {box}{failed}>"

    def capture(self) -> Frame:
        """The positions as 16-bit fractions of the bounds, or of the picture that the camera takes, x to the right and
        y up; in space with the colours, which change with the distance. Then what is used of marks, codes of colours
        and radii, by the names that the message gives as `parts`.
        """
        look: ParticlesLook = self.look
        points = as_positions(look.given.x, space=self.in_space)
        if self.in_space and points.shape[1] != 3:
            raise ViewError(f"x now has {points.shape[1]} coordinates, and had 3")
        self._count = len(points)
        shown = look.read(points)
        inks, message = read_inks({name: shown[name] for name in INKED if name in shown}, look.scale)
        radii = shown.get("radius")
        sight: Sight = Space(look.bounds, self._camera()) if self.in_space else Plane(look.bounds)
        laid, parts = look.marks.lay(shown, self.steps, sight, inks)
        message |= laid
        colors = inks["color"]
        if self.in_space:
            bounds, camera = np.array(look.bounds), self._camera()
            message |= {"box": look.box, "eye": eye_of(bounds, camera)._asdict()}
            if POSITION_BYTES * self._count > self.width * self.height and not self.glow:
                each = look.radius if radii is None else radii
                size = (self.width, self.height)
                found = rasterised(self._rasteriser, points, bounds, camera, size, each, colors.colors)
                return self._capture_cover(found, message, parts)
            seen = see(points, bounds, camera)
            colors = Inks(faded(colors.part(seen.index).colors, seen.nearness))
            points = seen.positions
            radii = None if radii is None else radii[seen.index]
        self._shown_radii = radii
        if radii is not None:
            parts["radii"] = radii.tobytes()
        return self._capture_plane(points, UNIT if self.in_space else look.bounds, colors, message, parts)

    def _capture_plane(
        self, points: np.ndarray, bounds: Bounds, colors: Inks, more: dict[str, Any], parts: dict[str, bytes]
    ) -> Frame:
        """The frame of points in the plane; `more` goes into its message."""
        self._shown_colors = colors.colors
        size = (self.width, self.height)
        covers = POSITION_BYTES * len(points) > self.width * self.height
        plain = colors.colors.ndim == 1 and self._shown_radii is None and not self.glow
        if len(points) > DENSITY_COUNT:
            found = density(points, bounds, size, colors.colors)
        elif covers and plain:
            found = discs(points, bounds, size, self.look.radius)
        else:
            return self._capture_discs(points, bounds, colors, more, parts)
        return self._capture_cover(found, more, parts)

    def _capture_cover(self, found: Cover, more: dict[str, Any], parts: dict[str, bytes]) -> Frame:
        """A picture instead of positions: the colours, where there are several, as a JPEG, which is a fifth of their
        bytes, and the cover as it is, or a bit a pixel.
        """
        self._captured = found
        form = "bits" if found.is_sharp else "bytes"
        message = {"count": self._count, "outside": self._count - found.inside, "cover": form, **more}
        cover = np.packbits(found.cover > 0) if found.is_sharp else found.cover
        colors = b"" if found.colors is None else as_jpeg(found.colors)
        return Frame.of(message, [cover.tobytes(), colors], parts)

    def _capture_discs(
        self, points: np.ndarray, bounds: Bounds, colors: Inks, more: dict[str, Any], parts: dict[str, bytes]
    ) -> Frame:
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
        each = colors.colors.ndim == 2 and colors.codes is None and (self.in_space or self.look.colors is None)
        if colors.codes is not None:
            parts["codes"] = colors.codes.tobytes()
        return Frame.of(message, [captured.tobytes(), colors.colors.tobytes() if each else b""], parts)

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make such frames itself."""
        look: ParticlesLook = self.look
        given = vars(look.given) | ({} if look.colors is None else {"color": look.colors})
        shown = look.read(as_positions(self.x, space=True))
        if look.sent["colors"]:
            del shown["color"]  # The page has them already.
        return {
            **sources.of(given, shown),
            "bounds": look.bounds,
            "scale": look.scale.described(),
            "isFixed": look.colors is not None,
            "azimuth": self.azimuth,
            "elevation": self.elevation,
            "box": look.box,
            "arrow_scale": self.arrow_scale,
            "labels": self._names(),
        }

    def pointed(self) -> tuple[int, int]:
        """Coordinates, and the number of a particle."""
        return (3 if self.in_space else 2), 1

    def kept(self, *, whole: bool) -> Frame:
        """The trail: all of it, or the latest positions."""
        return Frame(*self.look.marks.trail_part(whole=whole))

    def painted(self, make: MakePicture = Picture) -> Picture:
        """The particles as a picture."""
        captured, look = self._captured, self.look
        assert captured is not None
        if make is VectorPicture and (isinstance(captured, Cover) or self.glow):
            make = Picture  # What they show is made pixel by pixel, from what is below.
        view = make(self.width, self.height)
        own = look.sent["background"]
        view.fill(as_colors(own) if own else view.theme.paper)
        look.marks.paint_below(view)
        if isinstance(captured, Cover):
            look.marks.paint_above(view)  # As in the page, which lays a cover over everything.
            view.lay(captured.cover, self._shown_colors if captured.colors is None else captured.colors)
        else:
            _paint_discs(view, captured, self._shown_colors, self._shown_radii, look)
            look.marks.paint_above(view)
        if self.in_space:
            eye = eye_of(np.array(look.bounds), self._camera())
            paint_box(view, drawn_box(look.box, eye, (self.width, self.height)))
        view.frame()
        return view

    def legend(self) -> ColorScale | None:
        """The colour map of numbers, if it is to be shown."""
        return self.look.scale if self.sent["colorbar"] else None

    def pick(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, ...], int | None]:
        """The position in the units of the bounds; when the button goes down, the particle that is nearest, if it is
        within reach, in space the one in front.
        """
        points = as_positions(self.x, space=True)
        element = self._element_at(points, across, up) if pressed else None
        bounds = np.array(self.look.bounds)
        if not self.in_space:
            low, high = bounds.T
            return tuple((low + [across, up] * (high - low)).tolist()), element
        camera = self._camera()
        if pressed:
            self._depth = 0.0 if element is None else float(depth(points[element], bounds, camera))
        return tuple(point_at((across, up), self._depth, bounds, camera).tolist()), element

    def _element_at(self, points: np.ndarray, across: float, up: float) -> int | None:
        """Which of the particles is at a place of the stage."""
        bounds = np.array(self.look.bounds)
        if self.in_space:
            seen = see(points, bounds, self._camera())
            places, index = seen.positions, seen.index
        elif len(points) > DENSITY_COUNT:
            return None
        else:
            low, high = bounds.T
            with np.errstate(invalid="ignore"):
                index = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
            places = (points[index] - low) / (high - low)
        away = self._pixels_away(places, across, up)
        under = np.flatnonzero(away <= self.look.radius + 1.0)
        if self.in_space and under.size:
            return int(index[under[-1]])  # The last one is in front.
        is_within = away.size and away.min() <= max(2 * self.look.radius, self.reach)
        return int(index[np.argmin(away)]) if is_within else None

    def _names(self) -> list[str]:
        """What the coordinates are called."""
        return [self.x_label or "x", self.y_label or "y", self.z_label or "z"]

    def words_at(self, across: float, up: float) -> str:
        """The particle at a place of the stage, where it is, and its number for the colour map."""
        points = as_positions(self.x, space=True)
        element = self._element_at(points, across, up)
        if element is None:
            return ""
        place = [
            f"{name} {number_text(part)}" for name, part in zip(self._names(), points[element].tolist(), strict=False)
        ]
        color = self.look.read(points)["color"]
        value = (
            [f"{self.color_label or 'value'} {number_text(float(color[element]))}"] if color.dtype != np.uint8 else []
        )
        return " · ".join([f"particle {element:,}", ", ".join(place), *value])

    def _pixels_away(self, positions: np.ndarray, across: float, up: float) -> np.ndarray:
        """How far positions on the stage, (N, 2), are from another one, all as fractions of it."""
        return np.hypot(*((positions - [across, up]) * [self.width, self.height]).T)

    def _camera(self) -> OrbitCamera:
        room = AXES_ROOM if self.look.box.get("axes") else 1.0
        return OrbitCamera(self.azimuth, self.elevation, self.width / self.height, room)

    def turn(self, azimuth: float, elevation: float) -> None:
        """Put the camera elsewhere.

        Parameters
        ----------
        azimuth, elevation : float
            Degrees around the z axis, and above the xy plane.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=8)
        >>> view = ti.viz.Particles(x, size=320)
        >>> view.turn(azimuth=45.0, elevation=20.0)
        >>> view.azimuth, view.elevation
        (45.0, 20.0)
        """
        self.azimuth, self.elevation = azimuth % 360.0, elevation

    def obey(self, message: dict[str, Any]) -> None:
        """The page has turned the camera, or pressed a button."""
        if message.get("kind") == "turn":
            around, above = (float(part) for part in message["by"])
            self.turn(self.azimuth + around, self.elevation + above)
        else:
            super().obey(message)


def _paint_discs(
    view: Picture, captured: np.ndarray, colors: np.ndarray, radii: np.ndarray | None, look: ParticlesLook
) -> None:
    """Paint the particles that are inside of the bounds."""
    visible = captured[:, 0] != HIDDEN
    colors = colors if colors.ndim == 1 else colors[visible]
    shown = look.radius if radii is None else radii[visible]
    centers = captured[visible] / (HIDDEN - 1) * [view.width, -view.height] + [0, view.height]
    if look.given.glow:
        paint_glows(view, centers, shown, colors)
    else:
        view.discs(centers, shown, colors)
