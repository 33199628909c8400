"""Drawing of charts and legends: into pixels by Pillow, or as elements of an SVG file.

Coordinates and sizes are pixels of the picture, x to the right and y down.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image, ImageDraw

from tinote.viz.draw.fonts import font

FONT = 11
SCALE = 2
"""Pixels are drawn this many times larger and averaged down, which smooths lines."""

FAMILY = "DejaVu Sans, Helvetica, Arial, sans-serif"
_ANCHORS = {"l": "start", "m": "middle", "r": "end"}
_SHIFTS = {"t": 0.8, "m": 0.35, "b": -0.22}
"""How far below a text's place its baseline lies, in its size."""

Color = Sequence[int]
Point = tuple[float, float]
Bytes = tuple[int, int, int]


class Theme(NamedTuple):
    """The colours of a picture by their roles: the ground, text and axes, lines behind them, the edge of a stage, and
    the quantities of a chart in order. `static/draw/chart.js` has the latter for pages.
    """

    paper: Bytes
    ink: Bytes
    muted: Bytes
    grid: Bytes
    edge: Bytes
    series: tuple[Bytes, ...]


LIGHT = Theme(
    paper=(0xFF, 0xFF, 0xFF),
    ink=(0x33, 0x33, 0x33),
    muted=(0x66, 0x66, 0x66),
    grid=(0xE2, 0xE4, 0xE8),
    edge=(0xD0, 0xD3, 0xD8),
    series=(
        (0x2F, 0x6F, 0xD0),
        (0xC9, 0x60, 0x12),
        (0x2B, 0x82, 0x52),
        (0x84, 0x50, 0xC6),
        (0xB3, 0x31, 0x5F),
        (0x5F, 0x66, 0x70),
    ),
)
DARK = Theme(
    paper=(0x14, 0x18, 0x1D),
    ink=(0xE3, 0xE6, 0xEA),
    muted=(0xAA, 0xB2, 0xBD),
    grid=(0x33, 0x38, 0x3F),
    edge=(0x44, 0x4A, 0x52),
    series=(
        (0x79, 0xAE, 0xF7),
        (0xF0, 0xA3, 0x5E),
        (0x63, 0xC4, 0x93),
        (0xBD, 0x9B, 0xF2),
        (0xF0, 0x83, 0xA8),
        (0xAA, 0xB2, 0xBD),
    ),
)


class StagePicture(Protocol):
    """A picture that is there already: see `pictures.Picture`."""

    width: int
    height: int
    scale: int
    pixels: np.ndarray

    def elements(self) -> list[str]:
        """The picture as elements of an SVG file."""
        ...


class Pen(Protocol):
    """Draws lines, texts, discs, pictures and strips of colours, in the colours of a theme."""

    theme: Theme

    def line(self, points: Sequence[Point], color: Color, width: float) -> None:
        """A line through points."""
        ...

    def text(self, place: Point, text: str, color: Color, anchor: str) -> None:
        """A text; `anchor` says by two letters where `place` is: left, middle or right, and top, middle or bottom."""
        ...

    def disc(self, center: Point, radius: float, color: Color) -> None:
        """A filled disc."""
        ...

    def upright(self, left: float, middle: float, text: str, color: Color) -> None:
        """A text that reads upwards, whose left edge and middle are given."""
        ...

    def strip(self, left: float, top: float, width: float, height: float, colors: np.ndarray) -> None:
        """Colours (N, 3), uint8, side by side."""
        ...

    def stage(self, left: float, top: float, picture: StagePicture) -> None:
        """A picture, one pixel to a pixel."""
        ...


def text_width(text: str) -> float:
    """How wide a text is."""
    return font(FONT * SCALE).getlength(text) / SCALE


class PixelPen:
    """Draws into pixels, on the theme's ground, or on an image that is there already; `scale` of them to a unit, each
    way.
    """

    def __init__(
        self, width: int, height: int, image: Image.Image | None = None, scale: int = 1, theme: Theme = LIGHT
    ) -> None:
        self.theme = theme
        self._scale = SCALE * scale
        self._image = image or Image.new("RGB", (width * self._scale, height * self._scale), theme.paper)
        self._draw = ImageDraw.Draw(self._image)
        self._font = font(FONT * self._scale)

    def pixels(self) -> np.ndarray:
        """The picture, (height, width, 3), uint8, both times the scale."""
        return np.asarray(self._image.reduce(SCALE))

    def line(self, points: Sequence[Point], color: Color, width: float) -> None:
        scaled = [(x * self._scale, y * self._scale) for x, y in points]
        self._draw.line(scaled, fill=tuple(color), width=round(width * self._scale), joint="curve")

    def disc(self, center: Point, radius: float, color: Color) -> None:
        (x, y), size = (part * self._scale for part in center), radius * self._scale
        self._draw.ellipse((x - size, y - size, x + size, y + size), fill=tuple(color))

    def text(self, place: Point, text: str, color: Color, anchor: str) -> None:
        x, y = place
        self._draw.text((x * self._scale, y * self._scale), text, fill=tuple(color), font=self._font, anchor=anchor)

    def upright(self, left: float, middle: float, text: str, color: Color) -> None:
        near, top, far, bottom = self._font.getbbox(text)
        tag = Image.new("RGB", (int(far - near) + 2, int(bottom - top) + 2), self.theme.paper)
        ImageDraw.Draw(tag).text((1 - near, 1 - top), text, fill=tuple(color), font=self._font)
        turned = tag.rotate(90, expand=True)
        self._image.paste(turned, (round(left * self._scale), round(middle * self._scale - turned.height / 2)))

    def strip(self, left: float, top: float, width: float, height: float, colors: np.ndarray) -> None:
        columns = max(round(width * self._scale), 1)
        row = colors[np.arange(columns) * len(colors) // columns]
        pixels = np.broadcast_to(row, (round(height * self._scale), columns, 3))
        self._image.paste(
            Image.fromarray(np.ascontiguousarray(pixels)), (int(left * self._scale), round(top * self._scale))
        )

    def stage(self, left: float, top: float, picture: StagePicture) -> None:
        times = self._scale // picture.scale
        pixels = picture.pixels.repeat(times, axis=0).repeat(times, axis=1)
        self._image.paste(Image.fromarray(pixels), (round(left * self._scale), round(top * self._scale)))


class VectorPen:
    """Collects the elements of an SVG file."""

    theme = LIGHT

    def __init__(self) -> None:
        self.elements: list[str] = []

    def line(self, points: Sequence[Point], color: Color, width: float) -> None:
        places = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        style = f'fill="none" stroke="{css(color)}" stroke-width="{number(width)}" stroke-linejoin="round"'
        self.elements.append(f'<polyline points="{places}" {style}/>')

    def disc(self, center: Point, radius: float, color: Color) -> None:
        x, y = center
        self.elements.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{css(color)}"/>')

    def text(self, place: Point, text: str, color: Color, anchor: str) -> None:
        x, y = place
        self._text(text, color, _ANCHORS[anchor[0]], f'x="{number(x)}" y="{number(y + FONT * _SHIFTS[anchor[1]])}"')

    def upright(self, left: float, middle: float, text: str, color: Color) -> None:
        turned = f'transform="translate({number(left + FONT * _SHIFTS["t"])} {number(middle)}) rotate(-90)"'
        self._text(text, color, "middle", turned)

    def _text(self, text: str, color: Color, anchor: str, place: str) -> None:
        style = f'font-family="{FAMILY}" font-size="{FONT}" text-anchor="{anchor}" fill="{css(color)}"'
        self.elements.append(f"<text {place} {style}>{escape(text)}</text>")

    def strip(self, left: float, top: float, width: float, height: float, colors: np.ndarray) -> None:
        self.elements.append(embedded(colors[None], left, top, width, height))

    def stage(self, left: float, top: float, picture: StagePicture) -> None:
        size = f'width="{picture.width}" height="{picture.height}"'
        self.elements += [f'<svg x="{number(left)}" y="{number(top)}" {size}>', *picture.elements(), "</svg>"]


def embedded(pixels: np.ndarray, left: float, top: float, width: float, height: float) -> str:
    """Pixels (rows, columns, 3), uint8, as an element of an SVG file."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", optimize=True)
    place = f'x="{number(left)}" y="{number(top)}" width="{number(width)}" height="{number(height)}"'
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<image {place} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'


def css(color: Any) -> str:
    """Three numbers up to 255 as #rrggbb."""
    return "#" + "".join(f"{int(part):02x}" for part in color)


def number(value: float) -> str:
    """A coordinate as short as a hundredth of a pixel needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
