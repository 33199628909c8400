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
    HIDDEN,
    Strokes,
    as_strokes,
    decoded,
    encoded,
    paint_arrows,
    paint_edges,
    paint_strokes,
)
from tinote.viz.pages.sources import Sources

MOST_TRAIL_POINTS = 2_000_000
"""Positions that trails keep altogether: 16 MB of them in the plane."""

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
        self._codes: deque[np.ndarray] = deque(maxlen=self.length + 1)
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
            self._codes.clear()
            self._codes.extend(encoded(sight.places(row)) for row in self._points)
        else:
            self._codes.append(encoded(sight.places(self._points[-1])))
        self._step, self._sight = step, sight

    def rows(self, *, whole: bool = True) -> np.ndarray:
        """The codes of all rows, (T, N, 2), the oldest first, or of the latest."""
        return np.stack(list(self._codes) if whole else [self._codes[-1]])


def trail_strokes(places: np.ndarray, codes: np.ndarray, length: int, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Trails through pixels (T, N, 2), whose codes are `codes`, as strokes (M, 6) and what they cover, (M,), the oldest
    first: fainter and narrower the older they are. `whose` each is follows from its place: M is N times T - 1. Where
    a particle jumps over half of the picture, as through a periodic boundary, its trail is interrupted.
    """
    rows, count = places.shape[:2]
    age = np.arange(rows - 1, 0, -1.0)[:, None] + np.zeros(count)
    half = [0.5 * width * (TRAIL_END + (1.0 - TRAIL_END) * (1.0 - (age - end) / length)) for end in (0, 1)]
    jump = np.abs(np.diff(codes.astype(np.int32), axis=0)).max(axis=-1) > HIDDEN // 4
    begin = np.where(jump[:, :, None], np.nan, places[:-1])
    strokes = np.concatenate([begin, places[1:], half[0][:, :, None], half[1][:, :, None]], axis=-1)
    cover = TRAIL_COVER * (1.0 - (age - 1.0) / length)
    return strokes.reshape(-1, 6), cover.ravel()


class Inks(NamedTuple):
    """What the parts of a mark are painted with: `colors`, (3,) or (M, 3), uint8; and where these come from a colour
    map, `codes`, (M,), uint8.
    """

    colors: np.ndarray
    codes: np.ndarray | None = None

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
    what a page has of them. Trails go on where those of the `former` marks end.
    """

    def __init__(self, points: np.ndarray, given: Any, former: Marks | None = None) -> None:
        self._values = {"edges": given.edges, "arrows": given.arrows}
        self._colors = {"edges": given.edge_color, "arrows": given.arrow_color}
        self._numbers = given.cmap is not None
        self._arrow_scale = given.arrow_scale
        self._trail = Trail(given.trail, len(points), former and former._trail) if given.trail else None
        color = given.trail_color
        self._trail_color = None if color is None else as_colors(color, None, "trail_color")
        self._trail_inks = np.zeros(3, np.uint8)
        self._strokes: dict[str, Strokes] = {}
        self._glow = given.glow
        self._pairs = np.zeros((0, 2), np.int64)
        self._vectors = np.zeros(points.shape)
        widths = {"edges": given.edge_width, "arrows": given.arrow_width, "trail": given.trail_width}
        found = self.read(points)  # Refuses what is wrong.
        shown = [*found, *(["trail"] if self._trail is not None else [])]
        self.looks: dict[str, Any] = {name: {"width": float(widths[name])} for name in shown}
        for name, values in found.items():
            if values.dtype == np.uint8 and values.ndim == 1:
                self.looks[name]["color"] = values.tolist()
        if self._trail is not None:
            self.looks["trail"]["length"] = self._trail.length
            if self._trail_color is not None:
                self.looks["trail"]["color"] = self._trail_color.tolist()
        self._widths = {name: look["width"] for name, look in self.looks.items()}

    def read(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Read what may have changed; what edges and arrows are coloured by."""
        found = {}
        if self._values["edges"] is not None:
            self._pairs = as_pairs(self._values["edges"], len(points))
            found["edges"] = self._inks_of("edges", len(self._pairs), "edge_color", "edges")
        if self._values["arrows"] is not None:
            self._vectors = as_arrows(self._values["arrows"], (points.shape[0], points.shape[1]))
            found["arrows"] = self._inks_of("arrows", len(points), "arrow_color", "particles")
        return found

    def _inks_of(self, mark: str, count: int, name: str, each: str) -> np.ndarray:
        value = self._colors[mark]
        return as_inks(value, count, name=name, numbers=self._numbers and not is_single(value), each=each)

    def page_look(self, sources: Sources, points: np.ndarray) -> dict[str, Any]:
        """What a page needs to lay edges and arrows itself."""
        look: dict[str, Any] = {"arrow_scale": self._arrow_scale}
        if self._values["edges"] is not None:
            look["edges"] = sources.array("edges", self._values["edges"], as_pairs(self._values["edges"], len(points)))
            look["edge_color"] = self._page_ink(sources, "edges", len(self._pairs), "edge_color", "edges")
        if self._values["arrows"] is not None:
            vectors = as_arrows(self._values["arrows"], (points.shape[0], points.shape[1]))
            look["arrows"] = sources.array("arrows", self._values["arrows"], vectors)
            look["arrow_color"] = self._page_ink(sources, "arrows", len(points), "arrow_color", "particles")
        return look

    def _page_ink(self, sources: Sources, mark: str, count: int, name: str, each: str) -> dict[str, Any]:
        return sources.inks(name, self._colors[mark], self._inks_of(mark, count, name, each))

    def lay(
        self, points: np.ndarray, step: int, sight: Sight, inks: dict[str, Inks]
    ) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Make the strokes of `points` at `step`, as they are seen now. What goes into a frame's message, and its
        binary parts by name.
        """
        message: dict[str, Any] = {}
        parts: dict[str, bytes] = {}
        in_space = isinstance(sight, Space)
        if "edges" in inks:
            places = sight.places(points)
            one, other = self._pairs.T
            begin = np.where((one == NO_EDGE)[:, None], np.nan, places[one])
            self._note("edges", begin, places[other], inks, sight, (points[one] + points[other]) / 2, parts)
        if "arrows" in inks:
            longest = np.sqrt(np.max((self._vectors**2).sum(axis=1), initial=0.0, where=_finite(self._vectors)))
            scale = self._arrow_scale
            if scale is None:
                scale = LONGEST_ARROW * sight.extent / longest if longest > 0 else 0.0
            tips = points + scale * self._vectors
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
        found = inks[name]
        shaded = sight.shaded(found.colors, middles)
        if shaded is not found.colors:
            found = Inks(shaded)
        ends, index = as_strokes(begin, end)
        chosen = Inks(
            found.colors if found.colors.ndim == 1 else found.colors[index],
            None if found.codes is None else found.codes[index],
        )
        self._strokes[name] = Strokes(ends, chosen.colors)
        parts[name] = ends.tobytes()
        parts[f"{name}_inks"] = chosen.wire()

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
        size = (picture.width, picture.height)
        if self._trail is not None:
            codes = self._trail.rows()
            places = decoded(codes, size)
            strokes, cover = trail_strokes(places, codes, self._trail.length, self._widths["trail"])
            inks = self._trail_inks
            if inks.ndim == 2:
                inks = np.tile(inks, (len(codes) - 1, 1))
            paint_strokes(picture, strokes, inks, cover, glowing=self._glow)
        if "edges" in self._strokes:
            paint_edges(picture, self._strokes["edges"], self._widths["edges"])

    def paint_above(self, picture: Picture) -> None:
        """Paint what lies over the particles."""
        if "arrows" in self._strokes:
            paint_arrows(picture, self._strokes["arrows"], self._widths["arrows"])


def _finite(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.isfinite(vectors).all(axis=1))
