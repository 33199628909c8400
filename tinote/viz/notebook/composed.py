"""Views among other widgets: the text and the picture of a box of ipywidgets that has one in it.

A box displays itself only as a widget, of which nothing remains where widgets do not run. From the first live view on,
IPython is asked to add the pictures of the views, and what the sliders and the other controls say, laid out as the box
is. Boxes without a view are displayed as usual.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from IPython.core.getipython import get_ipython
from ipywidgets import Box, HBox, Widget
from PIL import Image

from tinote.viz.draw.pictures import Picture
from tinote.viz.notebook.front_end import (
    Audience,
    Bundle,
    audience,
    for_page,
    programs_of,
    shown,
    with_picture,
)

GAP = 8
ROW = 26
NAME_WIDTH = 120
VALUE_WIDTH = 70
NARROWEST = 320
"""Pixels across which controls are drawn, if no view next to them is wider."""

FONT = 13
INK = (0x33, 0x33, 0x33)
RAIL = np.array([0xC8, 0xCC, 0xD2], np.uint8)
KNOB = np.array([0x2F, 0x6F, 0xD0], np.uint8)


def keep_pictures_of_boxes() -> None:
    """From now on, IPython asks `bundle_of` what a box displays. Nothing happens outside of IPython, or twice."""
    shell: Any = get_ipython()
    if shell is not None:
        shell.display_formatter.mimebundle_formatter.for_type(Box, bundle_of)


def bundle_of(box: Box) -> Bundle:
    """What IPython displays for a box. A program that executes the notebook gets text and picture alone, after each
    view has advanced as many frames as it would by itself.
    """
    views = [part for part in _parts(box) if _has_picture(part)]
    if not views:
        return _live_bundle(box)
    running: list[Any] = [view for view in views if hasattr(view, "PAGE_KIND")]
    if for_page() and running:
        return running[0].page_bundle(running, repr(box))  # Their sliders are among what they are in a page.
    shown(box, views)
    programs = programs_of(views)
    if audience() is not Audience.PERSON:
        for view in views:
            getattr(view, "prepare_unattended", lambda: None)()
    said = [repr(part) if _has_picture(part) else words_of(part) for part in _parts(box)]
    text = f"<{type(box).__name__}: {', '.join(filter(None, said))}>"
    drawn = picture_of(box)
    assert drawn is not None
    return with_picture(lambda: _live_bundle(box), text, drawn.png, {"alt": text}, programs=programs)


def picture_of(widget: Widget) -> Picture | None:
    """A widget as a picture on white: of a view its own, of a control its name and value, of a box those of its
    children, side by side in an `HBox` and else below each other. None for what has nothing to show.
    """
    return _drawn(widget, NARROWEST)


def _live_bundle(box: Box) -> Bundle:
    found: Any = box._repr_mimebundle_()
    return found if isinstance(found, tuple) else (found or {}, {})


def _has_picture(widget: Widget) -> bool:
    return callable(getattr(widget, "picture", None))


def _parts(box: Box) -> Iterator[Widget]:
    """What is in the box, and in the boxes in it."""
    for child in box.children:
        if isinstance(child, Box):
            yield from _parts(child)
        else:
            yield child


def words_of(control: Any) -> str:
    """What a control says, by its name and value."""
    return f"{getattr(control, 'description', '')} {_words(control)}".strip()


def _words(control: Any) -> str:
    """The value of a control; of a list the name of the option."""
    value = getattr(control, "label", getattr(control, "value", ""))
    if isinstance(value, bool):
        return "on" if value else "off"
    parts = value if isinstance(value, tuple) else (value,)
    return " to ".join(format(part, ".6g") if isinstance(part, float) else str(part) for part in parts)


def _drawn(widget: Any, width: int) -> Picture | None:
    """`widget` as a picture; controls are as wide as that."""
    if isinstance(widget, Box):
        return _together(widget, width)
    if _has_picture(widget):
        shown = np.asarray(Image.open(io.BytesIO(widget.picture())).convert("RGB"))
        found = Picture(shown.shape[1], shown.shape[0])
        found.pixels[:] = shown
        return found
    if not words_of(widget):
        return None
    row = Picture(width, ROW, (255, 255, 255))
    row.text(str(getattr(widget, "description", "")), 0, 4, FONT, INK)
    if widget.has_trait("readout_format"):
        _draw_slider(row, widget)
    else:
        row.text(_words(widget), NAME_WIDTH if getattr(widget, "description", "") else 0, 4, FONT, INK)
    return row


def _draw_slider(row: Picture, widget: Any) -> None:
    """Where a slider stands, with one handle or two, and its value."""
    words = _words(widget)
    taken = max(VALUE_WIDTH, 8 * len(words))
    row.text(words, row.width - taken + GAP, 4, FONT, INK)
    left, right, middle = float(NAME_WIDTH), float(row.width - taken), ROW / 2
    values = np.ravel(widget.value).astype(np.float64)
    if widget.has_trait("base"):  # Its ends are powers of that.
        values = np.log(values) / np.log(widget.base)
    knobs = left + (right - left) * (values - widget.min) / ((widget.max - widget.min) or 1.0)
    row.lines(np.array([[left, middle]]), np.array([[right, middle]]), 3.0, RAIL)
    row.discs(np.stack([knobs, np.full(len(knobs), middle)], axis=1), 6.0, KNOB)


def _together(box: Box, width: int) -> Picture | None:
    """The pictures of what is in a box."""
    across = isinstance(box, HBox)
    found = [_drawn(child, width) if _shows_view(child) else None for child in box.children]
    widest = width if across else max([width, *(view.width for view in found if view is not None)])
    for k, child in enumerate(box.children):
        if not _shows_view(child):
            found[k] = _drawn(child, widest)
    pictures = [picture for picture in found if picture is not None]
    if not pictures:
        return None
    sizes = np.array([[picture.width, picture.height] for picture in pictures])
    steps = np.cumsum([0, *(sizes[:, 0 if across else 1] + GAP)])
    most = int(sizes[:, 1 if across else 0].max())
    whole = Picture(*((int(steps[-1]) - GAP, most) if across else (most, int(steps[-1]) - GAP)), (255, 255, 255))
    for begin, picture in zip(steps[:-1].tolist(), pictures, strict=True):
        left, top = (begin, 0) if across else (0, begin)
        whole.pixels[top : top + picture.height, left : left + picture.width] = picture.pixels
    return whole


def _shows_view(widget: Widget) -> bool:
    return _has_picture(widget) or (isinstance(widget, Box) and any(map(_has_picture, _parts(widget))))
