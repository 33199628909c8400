"""Picking: the object at a pixel of a picture of a scene."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tinote.viz.draw.scale import number_text
from tinote.viz.space.camera import Eye, Vector, framed, point_seen
from tinote.viz.space.content import Content, Triangles
from tinote.viz.space.rasterise import Rasteriser

REACH = 3
"""A pointer this number of pixels away picks a thing too, if nothing is nearer: lines are thin."""


class Picked(NamedTuple):
    """What was picked in a scene: the `kind`, "particle", "line" or "triangle"; its number as `index`, among those of
    the `thing` of this number, in the order in which they were added, from 0; the number of the `copy` of a mesh that
    has several; the `position` (3,) of what is seen there, in the units of the scene; and the `name` of the thing.
    """

    kind: str
    index: int
    thing: int
    copy: int
    position: Vector
    name: str = ""

    def words(self, content: Content) -> str:
        """What a view of `content` says of it."""
        item = content.items[self.thing]
        found = f"{self.kind} {self.index:,}"
        if isinstance(item, Triangles) and item.transforms is not None:
            found += f" of copy {self.copy}"
        if self.name:
            found = self.name if len(item.points) == 1 else f"{found} of {self.name}"
        elif len(content.items) > 1:
            found += f" of thing {self.thing}"
        return f"{found} at ({', '.join(number_text(part, 3) for part in self.position)})"


def pick(
    rasteriser: Rasteriser, content: Content, eye: Eye, size: tuple[int, int], across: float, up: float
) -> Picked | None:
    """What a picture of `size` (columns, rows) pixels shows at a place, given as fractions from its bottom left, or
    within `REACH` of it.
    """
    columns, rows = size
    seen = rasteriser.visible(content, eye, size)
    column, row = min(max(int(across * columns), 0), columns - 1), min(max(int((1.0 - up) * rows), 0), rows - 1)
    v, u = np.indices((rows, columns), sparse=True)
    away = np.where(seen.item >= 0, np.hypot(v - row, u - column), np.inf)
    row, column = (int(part) for part in np.unravel_index(int(away.argmin()), away.shape))
    if away[row, column] > REACH:
        return None
    thing, index = int(seen.item[row, column]), int(seen.index[row, column])
    item, copy = content.items[thing], 0
    if isinstance(item, Triangles):
        copy, index = divmod(index, len(item.triangles))
    position = point_seen(framed(eye, *size), column + 0.5, row + 0.5, float(seen.depth[row, column]))
    return Picked(item.PART, index, thing, copy, position)
