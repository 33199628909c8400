"""The axes around the stage of a view of the plane."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np
import traitlets

from tinote.viz.draw.arguments import shown
from tinote.viz.draw.arrays import ViewError, as_positions
from tinote.viz.draw.axes import TICK_ROOM, axis
from tinote.viz.draw.scale import Scale, scale_form
from tinote.viz.live.arguments import argument
from tinote.viz.live.simulation import StagedSimulation
from tinote.viz.notebook.view import Frame

Range = tuple[float, float]
AIR = 0.05
"""Parts of a fitted range that are free at both ends."""


class LabelledSimulation(StagedSimulation):
    """Base of the views whose stage has axes where they are wanted."""

    axes: bool | None = argument(default=None)
    x_label: str = argument(default="")
    y_label: str = argument(default="")
    grid: bool = argument(default=False)

    @staticmethod
    def _labels_of(given: Namespace, *, wanted: bool = False) -> list[str]:
        """What the three axes in space show; nothing where they are neither asked for, nor `wanted`."""
        labels = (given.x_label, given.y_label, given.z_label)
        is_wanted = bool(wanted or given.grid or any(labels)) if given.axes is None else given.axes
        return [label or name for name, label in zip("xyz", labels, strict=True)] if is_wanted else []


class AxedSimulation(LabelledSimulation):
    """Base of the views whose stage shows a part of a plane. A click says what it hit: `picked`."""

    norm: str | tuple[str, float] = argument(default="linear", check=scale_form, sent=True)

    picked = traitlets.Any().tag(sync=True)
    """The index of what was clicked, or None; `view.observe(function, "picked")` calls a function when it changes."""

    def _pick(self, across: float, up: float) -> Frame:
        """Note what is at a place of the stage."""
        _, self.picked = self.pick(across, up, True)
        return self.again()

    def obey(self, message: dict[str, Any]) -> None:
        """The page has clicked, or pressed a button."""
        if message.get("kind") == "pick":
            self.playback.request(partial(self._pick, *(float(part) for part in message["place"])))
        else:
            super().obey(message)

    @staticmethod
    def _axes_of(
        given: Namespace, ranges: Sequence[Range], size: tuple[int, int], *, wanted: bool = False
    ) -> dict[str, Any]:
        """What pages and pictures have of the axes of these ranges; the ranges alone where axes are neither asked
        for nor `wanted` otherwise.
        """
        asked = wanted or given.grid or bool(given.x_label or given.y_label)
        found: dict[str, Any] = {"ranges": [list(ends) for ends in ranges]}
        if not (asked if given.axes is None else given.axes):
            return found
        for name, ends, label, side in zip("xy", ranges, (given.x_label, given.y_label), size, strict=True):
            found[name] = axis(Scale("linear", *ends), label, max(3, side // TICK_ROOM))
        return found | {"grid": given.grid}


class PlacedSimulation(AxedSimulation):
    """Base of the views of positions `x` in `bounds`."""

    x: Any
    bounds: Any
    z_label: str = argument(default="")

    def fit(self) -> None:
        """Let the bounds be those of the positions now, with some room, at one scale along all axes."""
        found = fitted_ranges(as_positions(self.x, space=True), (self.width, self.height))
        if found is None:
            return self.repaint()
        self.bounds = found

    def obey(self, message: dict[str, Any]) -> None:
        """The page has pressed the button."""
        if message.get("kind") == "fit":
            self.fit()
        else:
            super().obey(message)


def fitted_ranges(points: np.ndarray, size: tuple[int, int]) -> tuple[Range, ...] | None:
    """What holds all finite points, with some room, at one scale along all axes of a stage of that size; None where
    there are none.
    """
    points = points[np.isfinite(points).all(axis=1)].astype(np.float64)
    if not len(points):
        return None
    sides = np.array(size if points.shape[1] == len("xy") else (1, 1, 1), np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    reach = (0.5 + AIR) * (float(((high - low) / sides).max()) or 1.0 / sides.max()) * sides
    middle = (low + high) / 2
    return tuple(zip((middle - reach).tolist(), (middle + reach).tolist(), strict=True))


def ranges_of(name: str, value: Any, dimensions: int) -> tuple[Range, ...]:
    """A pair of numbers for each coordinate, the lower one first. Raises `ViewError` for anything else."""
    try:
        ranges = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        ranges = np.zeros(0)
    if ranges.shape != (dimensions, 2) or not np.isfinite(ranges).all() or not (ranges[:, 0] < ranges[:, 1]).all():
        wanted = "((left, right), (bottom, top))" if dimensions == 2 else "three pairs (low, high)"
        raise ViewError(f"{name} must be {wanted}, the lower end of each first, not {shown(value)}")
    return tuple(zip(ranges[:, 0].tolist(), ranges[:, 1].tolist(), strict=True))
