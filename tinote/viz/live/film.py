"""Videos of a simulation, made frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.film import check_film, write_film
from tinote.viz.live.recording import LONGEST_RECORDING
from tinote.viz.live.whole import whole_picture
from tinote.viz.notebook.progress import progress


def record_film(view: Any, path: Path, frames: int, frames_per_second: float, width: int | None) -> None:
    """Advance a view by this number of frames and write them to a video: see `LiveSimulation.record`."""
    longest = LONGEST_RECORDING if path.suffix.lower() == ".gif" else None
    if frames < 1 or (longest is not None and frames >= longest):
        less = "" if longest is None else f", and for a GIF fewer than {longest}"
        raise ViewError(f"a recording must have at least 1 frame{less}, not {frames}")
    if width is not None and not 16 <= width <= 7680:
        raise ViewError(f"the width of a video must be between 16 and 7680 pixels, not {width}")
    check_film(path, frames_per_second)
    size = write_film(path, _frames(view, frames, width, path.name), frames_per_second)
    print(f"{path}: {frames + 1} frames, {size / 1e6:.2g} MB")


def _frames(view: Any, count: int, width: int | None, label: str) -> Iterator[np.ndarray]:
    """The present state and those after each of `count` more frames, in RGB."""
    view.playback.apart(view.frames.present)
    yield whole_picture(view, view.frames.last_frame).scaled(width)
    for _ in progress(range(count), label=label):
        view.advance()
        yield whole_picture(view, view.frames.last_frame).scaled(width)
