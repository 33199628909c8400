"""The axes around the stage of a view of the plane."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace as Namespace
from typing import Any

import numpy as np

from tinote.viz.draw.arguments import shown
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.axes import TICK_ROOM, axis
from tinote.viz.draw.scale import Scale, scale_form
from tinote.viz.live.arguments import argument, flag, optional
from tinote.viz.live.simulation import StagedSimulation

Range = tuple[float, float]


class AxedSimulation(StagedSimulation):
    """Base of the views whose stage shows a part of a plane, with axes where they are wanted."""

    axes: bool | None = argument(default=None, check=optional(flag))
    x_label: str = argument(default="")
    y_label: str = argument(default="")
    grid: bool = argument(default=False, check=flag)
    norm: str | tuple[str, float] = argument(default="linear", check=scale_form, sent=True)

    @staticmethod
    def _axes_of(
        given: Namespace, ranges: Sequence[Range], size: tuple[int, int], *, wanted: bool = False
    ) -> dict[str, Any]:
        """What pages and pictures have of the axes of these ranges; the ranges alone where axes are neither asked
        for nor `wanted` otherwise.
        """
        if len(ranges) > len("xy"):
            if given.axes or given.grid or given.x_label or given.y_label:
                raise ViewError("particles in space have no axes yet", hint="leave out axes, grid, x_label and y_label")
            return {}
        asked = wanted or given.grid or bool(given.x_label or given.y_label)
        found: dict[str, Any] = {"ranges": [list(ends) for ends in ranges]}
        if not (asked if given.axes is None else given.axes):
            return found
        for name, ends, label, side in zip("xy", ranges, (given.x_label, given.y_label), size, strict=True):
            found[name] = axis(Scale("linear", *ends), label, max(3, side // TICK_ROOM))
        return found | {"grid": given.grid}


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
