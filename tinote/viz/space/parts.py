"""A scene as it is sent to a page: a description, and the arrays that the page does not have yet.

Positions go as 16-bit fractions of the box around them, with a fourth number that is 0 where one is not finite; normals
as 8-bit fractions. An array that is the same as in the frame before is named again instead of sent again: the indices
and colours of a cloth travel once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.viz.notebook.view import Frame
from tinote.viz.space.camera import Eye
from tinote.viz.space.content import Content, Item

LEVELS = 65535
"""The greatest number of 16 bits."""

MOST_POINTS = 100_000
"""Scenes with more positions than this are drawn here, and sent as pictures."""


MOST_LIGHTS = 8
"""As many as the page's shaders have."""


def obstacle(content: Content) -> str:
    """Why a page with a graphics card would not keep up with a scene, or cannot draw it; "" where it can. Copies of a
    mesh have their positions once.
    """
    points = sum(len(item.points) for item in content.items)
    lights = len(content.lighting.lights)
    if points > MOST_POINTS:
        return f"{points:,} positions, and a page draws at most {MOST_POINTS:,}"
    return f"{lights} lights, and a page has at most {MOST_LIGHTS}" if lights > MOST_LIGHTS else ""


def packed_positions(points: np.ndarray) -> tuple[np.ndarray, list[float], list[float]]:
    """Positions (N, 3) as (N, 4), uint16, and the corners of the box that they are fractions of."""
    finite = np.isfinite(points).all(axis=1)
    all_finite = bool(finite.all())
    known = points if all_finite else points[finite]
    if not len(known):
        return np.zeros((len(points), 4), np.uint16), [0.0] * 3, [1.0] * 3
    low, high = known.min(axis=0), known.max(axis=0)
    span = np.where(high > low, high - low, 1.0).astype(np.float32)
    packed = np.empty((len(points), 4), np.uint16)
    packed[:, 3] = LEVELS
    scaled = (points - low) * (np.float32(LEVELS) / span) + np.float32(0.5)
    if not all_finite:
        scaled[~finite] = 0.0
        packed[~finite, 3] = 0
    packed[:, :3] = scaled
    return packed, low.tolist(), (low + span).tolist()


def packed_normals(normals: np.ndarray) -> np.ndarray:
    """Unit vectors (N, 3) as (N, 4), int8."""
    packed = np.zeros((len(normals), 4), np.int8)
    packed[:, :3] = np.rint(np.nan_to_num(normals) * 127.0)
    return packed


PACKERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "normals": packed_normals,
    "transforms": lambda rows: rows.transpose(0, 2, 1),  # As WebGL has matrices.
}
"""What becomes of arrays that are not sent as they are."""


def arrays_of(item: Item) -> dict[str, np.ndarray]:
    """The arrays of an item by their names."""
    return {name: value for name, value in item._asdict().items() if isinstance(value, np.ndarray)}


def facts_of(item: Item) -> dict[str, Any]:
    """The kind of an item, and all of it but its arrays."""
    facts = {name: value for name, value in item._asdict().items() if isinstance(value, int | float)}
    return {"kind": item.KIND, **facts}


class SceneSender:
    """Turns scenes into frames; knows which arrays the page has. Frames are made on one thread, and messages of a page
    may come on another one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[tuple[int, str], tuple[int, bytes]] = {}
        self._next = 0

    def forget(self) -> None:
        """A page has been opened that has nothing yet."""
        with self._lock:
            self._sent = {}

    def frame(self, content: Content, eye: Eye) -> Frame:
        """The message and the new arrays of a scene. `parts` numbers these, in order; `items` name arrays by number."""
        with self._lock:
            return self._frame(content, eye)

    def _frame(self, content: Content, eye: Eye) -> Frame:
        buffers: list[bytes] = []
        numbers: list[int] = []
        slots: dict[tuple[int, str], tuple[int, bytes]] = {}

        def named(place: int, name: str, array: np.ndarray) -> int:
            data = np.ascontiguousarray(array).tobytes()
            known = self._sent.get((place, name))
            if known is None or known[1] != data:
                self._next += 1
                known = (self._next, data)
                numbers.append(self._next)
                buffers.append(data)
            slots[place, name] = known
            return known[0]

        items: list[dict[str, Any]] = []
        for place, item in enumerate(content.items):
            positions, low, high = packed_positions(item.points)
            found = {"count": len(item.points), "low": low, "high": high, "colored": len(item.colors) > 1}
            found["positions"] = named(place, "positions", positions)
            for name, array in arrays_of(item).items():
                if name != "points":
                    found[name] = named(place, name, PACKERS.get(name, np.asarray)(array))
            items.append(facts_of(item) | found)
        self._sent = slots
        message = {
            "parts": numbers,
            "items": items,
            "lighting": content.lighting._asdict(),
            "eye": eye._asdict(),
        }
        return Frame({"scene": message}, buffers)
