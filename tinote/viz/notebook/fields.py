"""How a notebook shows a field or a kernel that a cell ends with: its kind, shape and range, and a small picture.

Fields and kernels know nothing of notebooks; `register` hands IPython what to call for them.
"""

from __future__ import annotations

import base64
import html
from typing import Any

import numpy as np
from PIL import Image

from tinote.errors import TinoteError
from tinote.lang.data.fields import Field
from tinote.lang.data.structs import StructField
from tinote.lang.kernels.kernel import Kernel
from tinote.source import location_name
from tinote.viz.draw.colormap import table
from tinote.viz.draw.pen import LIGHT
from tinote.viz.draw.pictures import Picture
from tinote.viz.draw.scale import number_text

SIZE = 96
"""The longer side of the small picture, in pixels."""

INK = np.array([0x3B, 0x7D, 0xD8], np.uint8)
MOST_POINTS = 20_000
"""Points that are drawn at most: of more, evenly spaced ones."""


def field_html(field: Field) -> str | None:
    """A field as HTML, or None where there is no more to say than in its `repr`: it has no place in memory."""
    if not field.is_placed:
        return None
    try:
        values = field.to_numpy()
    except TinoteError:  # It was made before ti.reset().
        return None
    picture = picture_of(values, len(field.element))
    drawn = ""
    if picture is not None:
        source = base64.b64encode(picture.png()).decode()
        drawn = (
            f'<img src="data:image/png;base64,{source}" width="{picture.width}" height="{picture.height}" '
            f'alt="its content" style="image-rendering:pixelated">'
        )
    words = f"<code>{html.escape(repr(field))}</code><div>{html.escape(range_of(values))}</div>"
    described = f'<div style="flex:1 1 12em">{words}</div>'
    return f'<div style="display:flex;flex-wrap:wrap;gap:4px 12px;align-items:center">{drawn}{described}</div>'


def struct_html(field: StructField) -> str | None:
    """A field of structs as HTML, its members below each other; None as for its members."""
    rows: list[str] = []
    for name, member in vars(field).items():
        shown = struct_html(member) if isinstance(member, StructField) else field_html(member)
        if shown is None:
            return None
        rows.append(f'<tr><th>{html.escape(name)}</th><td style="text-align:left">{shown}</td></tr>')
    return f"<code>{html.escape(repr(field))}</code><table>{''.join(rows)}</table>"


def kernel_html(kernel: Kernel) -> str:
    """A kernel as HTML: its head, where it is written, and what was compiled of it."""
    head = f"<code>{html.escape(repr(kernel))}</code> {html.escape(location_name(kernel.source.span))}"
    return f"<div>{head}</div>{kernel.instances._repr_html_()}"


def range_of(values: np.ndarray) -> str:
    """In words: the least and the greatest number, and how many are not finite."""
    finite = values[np.isfinite(values)]
    strange = values.size - finite.size
    found = (
        f"{number_text(float(finite.min()), 5)} to {number_text(float(finite.max()), 5)}"
        if finite.size
        else "no finite number"
    )
    if finite.size and finite.min() == finite.max():
        found = f"all {number_text(float(finite.flat[0]), 5)}"
    return f"{found}, {strange:,} not finite" if strange else found


def picture_of(values: np.ndarray, element_rank: int) -> Picture | None:
    """A small picture of the content of a field, whose last `element_rank` dimensions are those of an element: a line
    of numbers as a curve, a plane of numbers in colours, points in the plane as dots; None for anything else.
    """
    rank = values.ndim - element_rank
    if not values.size:
        return None
    if element_rank == 0 and rank == 1 and len(values) > 1:
        return _curve(values.astype(float))
    if element_rank == 0 and rank == 2:
        return _plane(values.astype(float))
    if element_rank == 1 and values.shape[-1] == 2:
        return _dots(values.reshape(-1, 2).astype(float))
    return None


def _unit(values: np.ndarray) -> np.ndarray:
    """Numbers scaled to [0, 1]; NaN where they are not finite, the middle where all are equal."""
    values = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(values).all():
        return values
    low, high = np.nanmin(values), np.nanmax(values)
    return (values - low) / (high - low) if high > low else values * 0.0 + 0.5


def _curve(values: np.ndarray) -> Picture:
    view = Picture(2 * SIZE, SIZE // 2, (255, 255, 255))
    values = values[:: max(1, len(values) // (4 * SIZE))]
    across = np.linspace(2, view.width - 2, len(values))
    points = np.stack([across, 2 + (view.height - 4) * (1.0 - _unit(values))], -1)
    view.lines(points[:-1], points[1:], 1.2, INK)
    view.frame()
    return view


def _plane(values: np.ndarray) -> Picture:
    columns, rows = (max(8, round(SIZE * side / max(values.shape))) for side in values.shape)
    strides = [max(1, side // wanted) for side, wanted in zip(values.shape, (columns, rows), strict=True)]
    shown = _unit(values[:: strides[0], :: strides[1]])
    colors = (table("viridis")[(np.nan_to_num(shown) * 255).astype(int)] * 255).astype(np.uint8)
    colors[np.isnan(shown)] = LIGHT.edge
    view = Picture(columns, rows)
    image = Image.fromarray(np.ascontiguousarray(colors[:, ::-1].swapaxes(0, 1)))
    view.pixels[:] = np.asarray(image.resize((columns, rows), Image.Resampling.NEAREST))
    return view


def _dots(points: np.ndarray) -> Picture:
    points = points[:: max(1, len(points) // MOST_POINTS)]
    view = Picture(SIZE, SIZE, (255, 255, 255))
    finite = points[np.isfinite(points).all(axis=1)]
    if len(finite):
        middle, side = (finite.min(0) + finite.max(0)) / 2, np.ptp(finite, axis=0).max() or 1.0
        centres = (finite - middle) / side * [1, -1] * (SIZE - 10) + SIZE / 2
        view.discs(centres, 1.5, INK)
    view.frame()
    return view


def register(shell: Any) -> None:
    """Make IPython's `shell` show fields and kernels this way."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(Field, field_html)
    formatter.for_type(StructField, struct_html)
    formatter.for_type(Kernel, kernel_html)


def unregister(shell: Any) -> None:
    """Undo `register`."""
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.pop(Field, None)
    formatter.pop(StructField, None)
    formatter.pop(Kernel, None)
