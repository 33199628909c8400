"""Marks of particles besides their discs: edges between them, arrows at them, trails behind them. The values that
`mark_values.py` reads become strokes here.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, Protocol

import numpy as np

from tinote.viz.draw.arrays import ViewError, as_colors
from tinote.viz.draw.colormap import ColorScale
from tinote.viz.draw.pictures import Picture
from tinote.viz.live.mark_values import NO_EDGE, as_arrows, as_inks, as_pairs, is_single
from tinote.viz.live.projection import OrbitCamera, depth, faded, project
from tinote.viz.live.strokes import (
    Strokes,
    as_strokes,
    in_pixels,
    paint_arrows,
    paint_edges,
    paint_strokes,
)

MARK_INKS = {"edges": "edge_color", "arrows": "arrow_color"}
"""The arguments that marks are coloured by."""

MOST_TRAIL_POINTS = 2_000_000
"""Positions that trails keep altogether: 16 MB of them in the plane."""

JUMP = 0.5
"""A trail is interrupted where its particle jumps farther than this part of the picture."""

TRAIL_COVER = 0.7
"""How much of the page a trail covers at its particle; from there it fades."""

TRAIL_END = 0.3
"""Width of a trail's far end, as a fraction of that at its particle."""

EDGE_COLOR, ARROW_COLOR = 0x8A919C, 0xD9730D
"""Readable on a light and on a dark page."""

NEAREST = 3.0
"""Arrows' tips are seen up to so far in front of the middle of the bounds, in radii of the sphere around them; the
camera stands at 4.
"""

LONGEST_ARROW = 0.12
"""Length of the longest arrow where no scale is given, as a fraction of the shortest side of the bounds."""


class Sight(Protocol):
    """How points become places of the picture, as fractions from its bottom left."""

    def places(self, points: np.ndarray) -> np.ndarray:
        """Where points (N, 2) or (N, 3) are seen, (N, 2); NaN where they are not."""
        ...

    def tips(self, points: np.ndarray) -> np.ndarray:
        """The same of the ends of arrows, which may leave the bounds."""
        ...

    def shaded(self, inks: np.ndarray, middles: np.ndarray) -> np.ndarray:
        """Colours (3,) or (M, 3) of what is at `middles`, as they look from here."""
        ...

    @property
    def extent(self) -> float:
        """The shortest side of the bounds."""
        ...


class Plane(NamedTuple):
    """The plane within bounds ((left, right), (bottom, top))."""

    bounds: tuple[tuple[float, float], ...]

    def places(self, points: np.ndarray) -> np.ndarray:
        low, high = np.array(self.bounds, points.dtype).T
        with np.errstate(invalid="ignore", over="ignore"):
            return (points - low) / (high - low)

    tips = places

    def shaded(self, inks: np.ndarray, middles: np.ndarray) -> np.ndarray:
        del middles
        return inks

    @property
    def extent(self) -> float:
        return float(np.diff(self.bounds).min())


class Space(NamedTuple):
    """A box in space, (3, 2), as a camera sees it."""

    bounds: tuple[tuple[float, float], ...]
    camera: OrbitCamera

    def places(self, points: np.ndarray) -> np.ndarray:
        low, high = np.array(self.bounds).T
        with np.errstate(invalid="ignore"):
            inside = ((points >= low) & (points <= high)).all(axis=1)
        return np.where(inside[:, None], self.tips(points), np.nan)

    def tips(self, points: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            places, _ = project(points, np.array(self.bounds), self.camera)
            ahead = depth(points, np.array(self.bounds), self.camera) < NEAREST
        return np.where(ahead[:, None], places, np.nan)

    def shaded(self, inks: np.ndarray, middles: np.ndarray) -> np.ndarray:
        _, nearness = project(np.nan_to_num(middles), np.array(self.bounds), self.camera)
        return faded(inks, nearness)

    @property
    def extent(self) -> float:
        return float(np.diff(self.bounds).min())


class Trail:
    """Positions of the last `length` frames and now, in bounded memory. A frame of the same step takes the place of the
    one before, and one of an earlier step begins anew.
    """

    def __init__(self, length: int, count: int, former: Trail | None = None) -> None:
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
            raise ViewError(f"trail must be at least one frame, not {length!r}")
        if length * count > MOST_TRAIL_POINTS:
            raise ViewError(
                f"trails of {count} particles over {length} frames are {length * count:,} positions",
                hint=f"at most {MOST_TRAIL_POINTS:,} are kept",
            )
        self.length = int(length)
        self._points: deque[np.ndarray] = deque(maxlen=self.length + 1)
        self._places: deque[np.ndarray] = deque(maxlen=self.length + 1)
        self._step = -1
        self._sight: Any = None
        if former is not None:
            self._points.extend(former._points)
            self._step = former._step
        self.is_renewed = True
        """Whether more has changed with the last frame than that it was added."""

    def add(self, step: int, points: np.ndarray, sight: Sight) -> None:
        """Take the positions at `step`, as they are seen now."""
        if step < self._step or (self._points and self._points[0].shape != points.shape):
            self._points.clear()
        same = bool(self._points) and step == self._step
        if same:
            self._points.pop()
        self._points.append(np.array(points, np.float32))
        self.is_renewed = same or sight != self._sight or len(self._points) == 1
        if self.is_renewed:
            self._places.clear()
            self._places.extend(_seen(row, sight) for row in self._points)
        else:
            self._places.append(_seen(self._points[-1], sight))
        self._step, self._sight = step, sight

    def rows(self, *, whole: bool = True) -> np.ndarray:
        """The places of all rows, (T, N, 2), float32, the oldest first, or of the latest; NaN where there is none."""
        return np.stack(list(self._places) if whole else [self._places[-1]])


def _seen(points: np.ndarray, sight: Sight) -> np.ndarray:
    with np.errstate(over="ignore"):
        return sight.places(points).astype(np.float32)


def trail_strokes(rows: np.ndarray, size: tuple[int, int], length: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Trails through places (T, N, 2) of a picture of `size` as strokes (M, 6) and what they cover, (M,), the oldest
    first: fainter and narrower the older they are. `whose` each is follows from its place: M is N times T - 1. Where
    a particle jumps over half of the picture, as through a periodic boundary, its trail is interrupted.
    """
    age = np.arange(len(rows) - 1, 0, -1.0)[:, None] + np.zeros(rows.shape[1])
    half = [0.5 * width * (TRAIL_END + (1.0 - TRAIL_END) * (1.0 - (age - end) / length)) for end in (0, 1)]
    with np.errstate(invalid="ignore"):
        stays = np.abs(np.diff(rows, axis=0)).max(axis=-1, keepdims=True) <= JUMP  # False for NaN as well.
    places = in_pixels(rows, size)
    begin = np.where(stays, places[:-1], np.nan)
    strokes = np.concatenate([begin, places[1:], half[0][:, :, None], half[1][:, :, None]], axis=-1)
    cover = TRAIL_COVER * (1.0 - (age - 1.0) / length)
    return strokes.reshape(-1, 6), cover.ravel()


class Inks(NamedTuple):
    """What the parts of a mark are painted with: `colors`, (3,) or (M, 3), uint8; and where these come from a colour
    map, `codes`, (M,), uint8.
    """

    colors: np.ndarray
    codes: np.ndarray | None = None

    def part(self, index: np.ndarray) -> Inks:
        """Those of the parts `index`."""
        if self.colors.ndim == 1:
            return self
        return Inks(self.colors[index], None if self.codes is None else self.codes[index])

    def wire(self) -> bytes:
        """The codes or the colours of the parts; nothing for one colour of all, which the page knows."""
        if self.codes is not None:
            return self.codes.tobytes()
        return self.colors.tobytes() if self.colors.ndim == 2 else b""


def read_inks(found: dict[str, np.ndarray], scale: ColorScale) -> tuple[dict[str, Inks], dict[str, Any]]:
    """Colours, and numbers on a common scale, as inks; and the ends of the scale for a frame's message, if there are
    numbers.
    """
    inks = {name: Inks(values) for name, values in found.items() if values.dtype == np.uint8}
    numbers = {name: values for name, values in found.items() if values.dtype != np.uint8}
    if not numbers:
        return inks, {}
    codes, low, high, strange = scale.levels(np.concatenate(list(numbers.values())))
    ends = np.cumsum([len(values) for values in numbers.values()])[:-1]
    for name, part in zip(numbers, np.split(codes, ends), strict=True):
        inks[name] = Inks(scale.colors[part], part)
    return inks, {"low": low, "high": high, "strange": strange}


class Marks:
    """Edges, arrows and trails of a view of particles: see `Particles` for what the arguments `given` mean. `looks` is
    what a page has of them; `has_numbers`: whether a colour map gives the colours of some. Trails go on where those of
    the `former` marks end.
    """

    def __init__(self, points: np.ndarray, given: Any, former: Marks | None = None) -> None:
        self._given = given
        self._trail = Trail(given.trail, len(points), former and former._trail) if given.trail else None
        color = given.trail_color
        self._trail_color = None if color is None else as_colors(color, None, "trail_color")
        self._trail_inks = np.zeros(3, np.uint8)
        self._strokes: dict[str, Strokes] = {}
        found = self.read(points)  # Refuses what is wrong.
        self.has_numbers = False
        self.looks: dict[str, Any] = {}
        for name, ink in MARK_INKS.items():
            if name in found:
                self.looks[name] = {"width": float(getattr(given, f"{name[:-1]}_width"))}
                self.has_numbers |= found[ink].dtype != np.uint8
                if found[ink].dtype == np.uint8 and found[ink].ndim == 1:
                    self.looks[name]["color"] = found[ink].tolist()
        if self._trail is not None:
            self.looks["trail"] = {"width": float(given.trail_width), "length": self._trail.length}
            if self._trail_color is not None:
                self.looks["trail"]["color"] = self._trail_color.tolist()

    def read(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """What there is now of pairs, of vectors, and of what both are coloured by, by the names of the arguments."""
        given = self._given
        found: dict[str, np.ndarray] = {}
        if given.edges is not None:
            found["edges"] = as_pairs(given.edges, len(points))
            found["edge_color"] = self._inks("edge_color", len(found["edges"]), "edges")
        if given.arrows is not None:
            found["arrows"] = as_arrows(given.arrows, (points.shape[0], points.shape[1]))
            found["arrow_color"] = self._inks("arrow_color", len(points), "particles")
        return found

    def _inks(self, name: str, count: int, each: str) -> np.ndarray:
        value = getattr(self._given, name)
        numbers = self._given.cmap is not None and not is_single(value)
        return as_inks(value, count, name=name, numbers=numbers, each=each)

    def lay(
        self, shown: dict[str, np.ndarray], step: int, sight: Sight, inks: dict[str, Inks]
    ) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Make the strokes of what is `shown` at `step`, as it is seen now. What goes into a frame's message, and its
        binary parts by name.
        """
        message: dict[str, Any] = {}
        parts: dict[str, bytes] = {}
        points = shown["x"]
        in_space = isinstance(sight, Space)
        if "edges" in shown:
            places = sight.places(points)
            one, other = shown["edges"].T
            begin = np.where((one == NO_EDGE)[:, None], np.nan, places[one])
            self._note("edges", begin, places[other], inks, sight, (points[one] + points[other]) / 2, parts)
        if "arrows" in shown:
            vectors = shown["arrows"]
            longest = np.sqrt(np.max((vectors**2).sum(axis=1), initial=0.0, where=np.isfinite(vectors).all(axis=1)))
            scale = self._given.arrow_scale
            if scale is None:
                scale = LONGEST_ARROW * sight.extent / longest if longest > 0 else 0.0
            tips = points + scale * vectors
            self._note("arrows", sight.places(points), sight.tips(tips), inks, sight, points, parts)
            message["longest"] = float(longest)
        if self._trail is not None:
            self._trail.add(step, points, sight)
            color = inks["color"]
            self._trail_inks = color.colors if self._trail_color is None else self._trail_color
            if in_space and self._trail_color is None:  # There the page has the colours of particles by their distance.
                parts["trail_inks"] = color.wire() or np.tile(color.colors, (len(points), 1)).tobytes()
        return message, parts

    def _note(
        self,
        name: str,
        begin: np.ndarray,
        end: np.ndarray,
        inks: dict[str, Inks],
        sight: Sight,
        middles: np.ndarray,
        parts: dict[str, bytes],
    ) -> None:
        """Keep the strokes of a mark for still pictures, and hand them to the page."""
        found = inks[MARK_INKS[name]]
        shaded = sight.shaded(found.colors, middles)
        if shaded is not found.colors:
            found = Inks(shaded)
        ends, index = as_strokes(begin, end)
        chosen = found.part(index)
        self._strokes[name] = Strokes(ends, chosen.colors)
        parts |= {name: ends.tobytes(), f"{name}_inks": chosen.wire()}

    def trail_part(self, *, whole: bool) -> tuple[dict[str, Any], list[bytes]]:
        """The trail for a page that keeps what it was sent: all of it, if it was `whole` or has changed, or the latest
        positions.
        """
        if self._trail is None:
            return {}, []
        whole = whole or self._trail.is_renewed
        return {"trail": "whole" if whole else "next"}, [self._trail.rows(whole=whole).tobytes()]

    def paint_below(self, picture: Picture) -> None:
        """Paint what lies under the particles."""
        if self._trail is not None:
            rows, size = self._trail.rows(), (picture.width, picture.height)
            strokes, cover = trail_strokes(rows, size, self._trail.length, self.looks["trail"]["width"])
            inks = self._trail_inks
            if inks.ndim == 2:
                inks = np.tile(inks, (len(rows) - 1, 1))
            paint_strokes(picture, strokes, inks, cover, glowing=self._given.glow)
        if "edges" in self._strokes:
            paint_edges(picture, self._strokes["edges"], self.looks["edges"]["width"])

    def paint_above(self, picture: Picture) -> None:
        """Paint what lies over the particles."""
        if "arrows" in self._strokes:
            paint_arrows(picture, self._strokes["arrows"], self.looks["arrows"]["width"])
