"""Drawing into an array with NumPy and Pillow: the static pictures for notebooks that are not running, and the
frames of `GUI`.

Not a plotting library: discs, lines, triangles, text and images, antialiased, later calls over earlier ones.
Coordinates are pixels, x to the right and y down, with (0, 0) the top left corner of the picture and pixel centres at
halves.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.fonts import font
from tinote.viz.draw.pen import LIGHT, Theme, embedded

PICTURE_FORMATS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tiff")
"""The endings of names that pictures may have."""

SUPERSAMPLING = 3
"""Lines and triangles are drawn this many times larger and averaged down, which is what smooths their edges."""

CARD_EDGE = (0x8A, 0x90, 0x98)
"""What stands out from white pages and from black ones: 3:1 from both."""

CARD_MARGIN = 8
CAPTION_HEIGHT = 20
CAPTION_FONT = 12
CAPTION_INK = (0x5C, 0x61, 0x68)

Stroke = Callable[[ImageDraw.ImageDraw, list[float], tuple[int, ...]], None]

CHUNK = 1 << 20
"""Elements in flight while discs are drawn: bounds the temporary memory."""


def check_picture(path: Path, formats: Sequence[str]) -> None:
    """Raise `ViewError` for a name whose ending is not among `formats`."""
    if path.suffix.lower() not in formats:
        raise ViewError(
            f"{path.name}: a picture's name does not end in {path.suffix or 'nothing'}",
            hint=f"use one that ends in {', '.join(formats[:-1])} or {formats[-1]}",
        )


class Picture:
    """An RGB picture; `pixels` has shape (height, width, 3), uint8, rows from the top, or `scale` times as many
    each way: what is drawn has the same coordinates, and is finer.
    """

    def __init__(
        self,
        width: int,
        height: int,
        background: Sequence[int] | np.ndarray = (0, 0, 0),
        scale: int = 1,
        theme: Theme = LIGHT,
    ) -> None:
        self.width = width
        self.height = height
        self.scale = scale
        self.theme = theme
        self.pixels = np.empty((height * scale, width * scale, 3), np.uint8)
        self.fill(background)

    def fill(self, color: Sequence[int] | np.ndarray) -> None:
        """Make every pixel `color`."""
        self.pixels[:] = np.asarray(color, np.uint8)

    def discs(self, centers: np.ndarray, radius: float | np.ndarray, colors: np.ndarray) -> None:
        """Filled discs: `centers` (N, 2), `radius` in pixels, one or (N,), `colors` (3,) or (N, 3). A later disc lies
        over an earlier one.

        Centres that are not finite, or whose disc is outside of the picture, are left out.
        """
        rows, columns = self.pixels.shape[:2]
        centers = np.asarray(centers) * self.scale
        radii = np.broadcast_to(np.asarray(radius, np.float32) * np.float32(self.scale), (len(centers),))
        margin = (radii + 1.0)[:, None]
        with np.errstate(invalid="ignore"):
            inside = np.all((centers > -margin) & (centers < np.array([columns, rows]) + margin), axis=1) & (radii > 0)
        kept = np.flatnonzero(inside)
        if not len(kept):
            return
        coverage = np.zeros(columns * rows, np.float32)
        # The number of the disc on top, in a pixel: discs that cover at least half of it go before those that only
        # touch it.
        top = np.zeros(columns * rows, np.int64) if colors.ndim == 2 else None
        for extent in np.unique(np.ceil(radii[kept] + 0.5).astype(int)):
            members = kept[np.ceil(radii[kept] + 0.5).astype(int) == extent]
            self._stamp(centers, radii, members, int(extent), coverage, top)
        touched = np.flatnonzero(coverage)
        alpha = coverage[touched, None]
        paint = (
            colors.astype(np.float32) if top is None else colors[(top[touched] - 1) % len(centers)].astype(np.float32)
        )
        flat = self.pixels.reshape(-1, 3)
        flat[touched] = (flat[touched] * (1.0 - alpha) + paint * alpha + 0.5).astype(np.uint8)

    def _stamp(
        self,
        centers: np.ndarray,
        radii: np.ndarray,
        members: np.ndarray,
        extent: int,
        coverage: np.ndarray,
        top: np.ndarray | None,
    ) -> None:
        """Raise `coverage`, and `top` where colours differ, under the discs `members`, whose radii reach at most
        `extent` pixels.
        """
        offsets = np.arange(-extent, extent + 1)
        dx, dy = (grid.ravel() for grid in np.meshgrid(offsets, offsets))
        for start in range(0, len(members), max(1, CHUNK // len(dx))):
            part = members[start : start + max(1, CHUNK // len(dx))]
            center = centers[part].astype(np.float32)
            base = np.floor(center).astype(np.int64)
            column, row = base[:, :1] + dx, base[:, 1:] + dy
            distance = np.hypot(column + 0.5 - center[:, :1], row + 0.5 - center[:, 1:])
            cover = (radii[part][:, None] + 0.5 - distance).clip(0.0, 1.0).astype(np.float32)
            rows, columns = self.pixels.shape[:2]
            valid = (cover > 0) & (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
            flat = (row * columns + column)[valid]
            cover_here = cover[valid]
            np.maximum.at(coverage, flat, cover_here)
            if top is not None:
                numbers = np.broadcast_to(part[:, None] + 1, valid.shape)[valid]
                np.maximum.at(top, flat, numbers + np.where(cover_here >= 0.5, len(centers), 0))

    def lines(self, begin: np.ndarray, end: np.ndarray, width: float, colors: np.ndarray) -> None:
        """Straight lines from `begin` (N, 2) to `end` (N, 2), `width` pixels wide, with round ends; `colors` (3,) or
        (N, 3).
        """
        points = np.stack([begin, end], axis=1)
        # Pillow paints a polygon's outline too, half a pixel more all around: take it off beforehand.
        half = max(0.0, width * self.scale * SUPERSAMPLING / 2 - 0.5)

        def stroke(draw: ImageDraw.ImageDraw, line: list[float], color: tuple[int, ...]) -> None:
            x0, y0, x1, y1 = line
            length = math.hypot(x1 - x0, y1 - y0)
            if half < 2.0:  # So thin that rounding a polygon's corners would show.
                draw.line([round(value) for value in line], fill=color, width=max(1, round(2.0 * half + 1.0)))
            elif length > 0:
                across, down = half * (y0 - y1) / length, half * (x1 - x0) / length
                corners = (x0 + across, y0 + down, x1 + across, y1 + down)
                corners += (x1 - across, y1 - down, x0 - across, y0 - down)
                draw.polygon([round(value) for value in corners], fill=color)
            if half > SUPERSAMPLING / 2:
                for x, y in ((x0, y0), (x1, y1)):
                    draw.ellipse((x - half, y - half, x + half, y + half), fill=color)

        self._shapes(points, width, colors, stroke)

    def triangles(self, corners: np.ndarray, colors: np.ndarray) -> None:
        """Filled triangles: `corners` (N, 3, 2), `colors` (3,) or (N, 3). Neighbours of one call have no seam."""

        def fill(draw: ImageDraw.ImageDraw, triangle: list[float], color: tuple[int, ...]) -> None:
            draw.polygon([round(value) for value in triangle], fill=color)

        self._shapes(corners, 0.0, colors, fill)

    def _shapes(self, points: np.ndarray, margin: float, colors: np.ndarray, stroke: Stroke) -> None:
        """Draw shapes given by `points` (N, corners, 2) enlarged into a layer of their own, average it down, and lay it
        over the picture.
        """
        finite = np.asarray(np.isfinite(points).all(axis=(1, 2)))
        if not finite.any():
            return
        points, margin = points[finite] * self.scale, margin * self.scale
        sides = self.pixels.shape[1::-1]
        each = np.broadcast_to(colors, (len(finite), 3))[finite]
        low = np.floor(points.min(axis=(0, 1)) - margin - 1).clip(0, sides).astype(int)
        high = np.ceil(points.max(axis=(0, 1)) + margin + 1).clip(0, sides).astype(int)
        if (high <= low).any():
            return
        # Pillow counts from pixel centres, and keeps coordinates in 32 bits.
        scaled = ((points - low) * SUPERSAMPLING - 0.5).clip(-1e6, 1e6).reshape(len(points), -1).tolist()
        layer = Image.new("RGBA", tuple(((high - low) * SUPERSAMPLING).tolist()), (0, 0, 0, 0))
        draw = ImageDraw.Draw(layer)
        for shape, color in zip(scaled, each.tolist(), strict=True):
            stroke(draw, shape, (*color, 255))
        averaged = np.asarray(layer.reduce(SUPERSAMPLING), np.float32)
        alpha = averaged[:, :, 3:] / 255.0
        window = self.pixels[low[1] : high[1], low[0] : high[0]]
        window[:] = (window * (1.0 - alpha) + averaged[:, :, :3] * alpha + 0.5).astype(np.uint8)

    def text(
        self, content: str, x: float, y: float, size: float, color: Iterable[int], anchor: str | None = None
    ) -> None:
        """`content`, which may have several lines, with its top left corner at (x, y), or the part that `anchor` names
        by two letters, as for a `Pen`; `size` in pixels.
        """
        image = Image.fromarray(self.pixels)
        ink = tuple(int(part) for part in color)
        place, size = (x * self.scale, y * self.scale), size * self.scale
        ImageDraw.Draw(image).multiline_text(place, content, fill=ink, font=font(size), anchor=anchor)
        self.pixels[:] = np.asarray(image)

    def frame(self, color: Sequence[int] | None = None) -> None:
        """Draw a hairline around the picture, so that white on a white page has an edge: the theme's."""
        thin = self.scale
        for edge in (self.pixels[:thin], self.pixels[-thin:], self.pixels[:, :thin], self.pixels[:, -thin:]):
            edge[:] = color or self.theme.edge

    def lay(self, cover: np.ndarray, colors: np.ndarray) -> None:
        """Lay colours, (3,) or one each, over the share of each pixel, of 255, that `cover` (height, width) says."""

        def finer(array: np.ndarray) -> np.ndarray:
            return array.repeat(self.scale, axis=0).repeat(self.scale, axis=1)

        share = finer(cover)[:, :, None] / 255.0
        ink = colors if colors.ndim == 1 else finer(colors)
        self.pixels[:] = (self.pixels * (1.0 - share) + ink * share + 0.5).astype(np.uint8)

    def elements(self) -> list[str]:
        """The picture as elements of an SVG file."""
        return [embedded(self.pixels, 0, 0, self.width, self.height)]

    def png(self) -> bytes:
        """The picture as a PNG file; the same pixels give the same bytes."""
        buffer = io.BytesIO()
        Image.fromarray(self.pixels).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def webp(self) -> bytes:
        """The picture as a WebP file, with losses: of shaded surfaces it is a tenth of a PNG file."""
        buffer = io.BytesIO()
        Image.fromarray(self.pixels).save(buffer, "WEBP", quality=60)
        return buffer.getvalue()

    def jpeg(self) -> bytes:
        """The picture as a JPEG file."""
        return as_jpeg(self.pixels)

    def save(self, path: Path) -> None:
        """Write the picture in the format that the file's extension names; missing folders are created. Raises
        `ViewError` for an extension that is not that of a picture.
        """
        check_picture(path, PICTURE_FORMATS)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(self.pixels).save(path)

    def scaled(self, width: int | None) -> np.ndarray:
        """The pixels of the picture at another width, its own if None, in the same proportions."""
        if width is None or width == self.pixels.shape[1]:
            return self.pixels
        height = max(1, round(self.pixels.shape[0] * width / self.pixels.shape[1]))
        return np.asarray(Image.fromarray(self.pixels).resize((width, height), Image.Resampling.LANCZOS))


MakePicture = Callable[..., Picture]
"""What makes a picture as `Picture` does: of its width, its height and its background."""


def as_jpeg(pixels: np.ndarray, quality: int = 90) -> bytes:
    """Pixels (rows, columns, 3), uint8, as a JPEG file with full colour resolution: smaller and faster than PNG, for
    frames that are soon replaced.
    """
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality, subsampling=0)
    return buffer.getvalue()


def captioned(png: bytes, words: str, width: int | None = None) -> bytes:
    """A PNG file that is shown `width` pixels wide (by default its own width) as a card, which can be read on any page:
    with a line of small text below, a margin and an edge.
    """
    shown = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    rows, columns = shown.shape[:2]
    scale = columns / width if width else 1.0
    margin = round(CARD_MARGIN * scale)
    whole = Picture(columns + 2 * margin, rows + margin + round(CAPTION_HEIGHT * scale), (255, 255, 255))
    whole.pixels[margin : margin + rows, margin : margin + columns] = shown
    whole.text(words, margin, margin + rows + 2 * scale, CAPTION_FONT * scale, CAPTION_INK)
    whole.frame(CARD_EDGE)
    return whole.png()
