"""Text, boxes and lines on white, as a PNG file: how the static pictures of the explorer and of the rule view are
drawn.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import pairwise

from PIL import Image, ImageColor, ImageDraw

from tinote.viz.draw import pen as pens
from tinote.viz.draw.fonts import font

Image.preinit()  # Pillow's formats: otherwise the first picture waits for them.

SCALE = 2
PAPER, FACE, EDGE = "#ffffff", "#f4f5f7", "#d8dbe0"
MOST_SHADES = 12
INK, MUTED, ACCENT = "#1f2328", "#59636e", "#1a6fd0"


class PictureCanvas:
    """A picture `width` by `height` points, at two pixels per point, on white."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), PAPER)
        self._draw = ImageDraw.Draw(self._image)
        self._edge = (width, height)
        self._grounds = {PAPER: None, EDGE: None}  # in order, without repeats
        self._inks = dict[str, None]()

    def box(self, x0: float, y0: float, x1: float, y1: float, color: str) -> None:
        self._grounds[color] = None
        self._draw.rectangle((x0 * SCALE, y0 * SCALE, x1 * SCALE - 1, y1 * SCALE - 1), fill=color)

    def line(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self._draw.line((x0 * SCALE, y0 * SCALE, x1 * SCALE, y1 * SCALE), fill=EDGE, width=SCALE)

    def path(
        self, points: Sequence[tuple[float, float]], color: str, *, dashed: bool = False, dots: bool = False
    ) -> None:
        """A line through points; one that stands alone is a dot."""
        self._inks[color] = None
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        if len(scaled) > 1 and not dashed:
            self._draw.line(scaled, fill=color, width=round(1.6 * SCALE), joint="curve")
        for (x0, y0), (x1, y1) in pairwise(scaled) if dashed else ():
            pieces = max(1, round(math.hypot(x1 - x0, y1 - y0) / (5 * SCALE)))
            for k in range(0, pieces, 2):
                a, b = k / pieces, min(1.0, (k + 1) / pieces)
                ends = (x0 + a * (x1 - x0), y0 + a * (y1 - y0), x0 + b * (x1 - x0), y0 + b * (y1 - y0))
                self._draw.line(ends, fill=color, width=round(1.6 * SCALE))
        for x, y in scaled if dots or len(scaled) == 1 else ():
            size = 2.2 * SCALE
            self._draw.ellipse((x - size, y - size, x + size, y + size), fill=color)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        color: str,
        *,
        bold: bool = False,
        code: bool = False,
        right: bool = False,
        size: int = 12,
    ) -> None:
        if text:
            self._inks[color] = None
            self._draw.text(
                (x * SCALE, y * SCALE),
                text,
                fill=color,
                font=font(size * SCALE, bold=bold, code=code),
                anchor="ra" if right else "la",
            )

    def width_of(self, text: str, *, code: bool = False, size: int = 12) -> float:
        return font(size * SCALE, code=code).getlength(text) / SCALE

    def pen(self) -> pens.Pen:
        """What draws axes here."""
        theme = pens.LIGHT
        self._grounds[pens.css(theme.grid)] = None
        self._inks |= {pens.css(theme.ink): None, pens.css(theme.muted): None}
        return pens.PixelPen(*self._edge, self._image)

    def png(self) -> bytes:
        width, height = self._edge
        self._draw.rectangle((0, 0, width * SCALE - 1, height * SCALE - 1), outline=EDGE, width=SCALE)
        buffer = io.BytesIO()
        # Text on plain grounds needs few colours, and a notebook keeps the file. To find out which takes longer than to
        # draw the picture, so the canvas has kept them.
        palette = Image.new("P", (1, 1))
        palette.putpalette(self._palette())
        self._image.quantize(palette=palette, dither=Image.Dither.NONE).save(buffer, "PNG", compress_level=4)
        return buffer.getvalue()

    def _palette(self) -> list[int]:
        """The grounds, and the shades that each ink has towards the paper at the edges of letters."""
        colors: list[tuple[int, ...]] = [ImageColor.getrgb(color)[:3] for color in [*self._grounds, *self._inks]]
        shades = min(MOST_SHADES, (256 - len(colors)) // max(1, len(self._inks)))
        paper = ImageColor.getrgb(PAPER)[:3]
        for ink in colors[len(self._grounds) :]:
            for step in range(1, shades + 1):
                part = step / (shades + 1)
                colors.append(tuple([round(a + part * (b - a)) for a, b in zip(ink, paper, strict=True)]))
        return [value for color in colors[:256] for value in color]
