"""Pictures that stay sharp at every size, as SVG files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinote.viz.draw.pen import VectorPen, css, embedded, number
from tinote.viz.draw.pictures import Picture

Part = tuple[float, Sequence[str]]
"""A height in pixels, and the elements of what is so high."""


class VectorPicture(Picture):
    """A picture whose discs, lines, triangles and strokes are elements of an SVG file, over its pixels: what is made
    pixel by pixel has to be there before them.
    """

    def __init__(self, width: int, height: int, background: Sequence[int] | np.ndarray = (0, 0, 0)) -> None:
        self._marks: list[str] = []
        super().__init__(width, height, background)

    def elements(self) -> list[str]:
        """All that there is, the lowest first."""
        size = f'width="{self.width}" height="{self.height}"'
        if (self.pixels == self.pixels[0, 0]).all():
            return [f'<rect {size} fill="{css(self.pixels[0, 0])}"/>', *self._marks]
        return [embedded(self.pixels, 0, 0, self.width, self.height), *self._marks]

    def fill(self, color: Sequence[int] | np.ndarray) -> None:
        self._marks.clear()
        super().fill(color)

    def discs(self, centers: np.ndarray, radius: float | np.ndarray, colors: np.ndarray) -> None:
        radii = np.broadcast_to(np.asarray(radius, np.float32), (len(centers),))
        seen = np.isfinite(centers).all(axis=1) & (radii > 0)
        margin = radii[:, None] + 1.0
        with np.errstate(invalid="ignore"):
            seen &= ((centers > -margin) & (centers < np.array([self.width, self.height]) + margin)).all(axis=1)
        circles = (
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(r)}"{{}}/>'
            for (x, y), r in zip(centers[seen].tolist(), radii[seen].tolist(), strict=True)
        )
        self._add(circles, colors if colors.ndim == 1 else colors[seen], "fill")

    def lines(self, begin: np.ndarray, end: np.ndarray, width: float, colors: np.ndarray) -> None:
        half = np.full((len(begin), 2), 0.5 * width)
        self.strokes(np.column_stack([begin, end, half]), np.asarray(colors), rounded=True)

    def triangles(self, corners: np.ndarray, colors: np.ndarray) -> None:
        seen = np.isfinite(corners).all(axis=(1, 2))
        self._add(map(_polygon, corners[seen]), colors if colors.ndim == 1 else colors[seen], "fill")

    def strokes(
        self,
        strokes: np.ndarray,
        inks: np.ndarray,
        covers: Any = 1.0,
        *,
        rounded: bool = False,
        glowing: bool = False,
    ) -> None:
        """Strokes (M, 6): x and y of either end, and half the width there; `inks` (3,) or (M, 3), `covers` from 0 to 1,
        one number or (M,). With `rounded` the ends are round; what is `glowing` adds its light to what is below.
        """
        seen = np.isfinite(strokes).all(axis=1)
        part = np.broadcast_to(np.asarray(covers, float), (len(strokes),))[seen].tolist()
        shapes = map(_round_line if rounded else _trapezoid, strokes[seen])
        light = ' style="mix-blend-mode:screen"' if glowing else ""
        opaque = all(cover >= 1.0 for cover in part)
        name = "stroke" if rounded else "fill"
        if not opaque:
            shapes = (
                shape.replace("{}", f' opacity="{number(cover)}"{{}}')
                for shape, cover in zip(shapes, part, strict=True)
            )
        self._add(shapes, inks if inks.ndim == 1 else inks[seen], name, light)

    def text(
        self, content: str, x: float, y: float, size: float, color: Iterable[int], anchor: str | None = None
    ) -> None:
        pen = VectorPen()
        pen.text((x, y), content, tuple(color), anchor or "lt")
        self._marks += pen.elements

    def frame(self) -> None:
        size = f'x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}"'
        self._marks.append(f'<rect {size} fill="none" stroke="{css(self.theme.edge)}"/>')

    def _add(self, shapes: Iterable[str], colors: np.ndarray, name: str, style: str = "") -> None:
        """Elements with a place for their attributes: in a group of one colour, or each with its own."""
        if colors.ndim == 1:
            made = [shape.replace("{}", "") for shape in shapes]
            group = f'<g {name}="{css(colors)}" stroke-linecap="round"{style}>'
        else:
            made = [
                shape.replace("{}", f' {name}="{css(color)}"')
                for shape, color in zip(shapes, colors.tolist(), strict=True)
            ]
            group = f'<g stroke-linecap="round"{style}>'
        if made:
            self._marks += [group, *made, "</g>"]


def _round_line(stroke: np.ndarray) -> str:
    x0, y0, x1, y1, half, _ = stroke.tolist()
    return f'<path d="M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}" stroke-width="{number(2 * half)}"{{}}/>'


def _trapezoid(stroke: np.ndarray) -> str:
    begin, end, halves = stroke[:2], stroke[2:4], stroke[4:, None]
    along = end - begin
    normal = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9)
    return _polygon(
        np.concatenate([begin + [[1], [-1]] * halves[:1] * normal, end + [[-1], [1]] * halves[1:] * normal])
    )


def _polygon(corners: np.ndarray) -> str:
    places = " ".join(f"{number(x)},{number(y)}" for x, y in corners.tolist())
    return f'<polygon points="{places}"{{}}/>'


def write_svg(path: Path, width: float, parts: Sequence[Part]) -> None:
    """Write an SVG file with these parts below one another, on white."""
    height = sum(part for part, _ in parts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}"'
        f' viewBox="0 0 {number(width)} {number(height)}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    top = 0.0
    for part, elements in parts:
        clip = f'<svg y="{number(top)}" width="{number(width)}" height="{number(part)}">'
        lines += [clip, *elements, "</svg>"]
        top += part
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")
