"""Frames of a view that are stored for a looping GIF."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tinote.viz.draw.film import as_gif

LONGEST_RECORDING = 600
"""Frames that a recording keeps: half a minute at 20 a second, and 400 MB of memory at 480 × 480 pixels."""


class FrameRecorder:
    """What a view shows while it plays, with the pace at which it was shown; later ones are left out."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._frames: list[np.ndarray] = []
        self._times: list[float] = []

    def add(self, make: Callable[[], np.ndarray]) -> None:
        """Keep the frame that `make()` draws, unless there are enough."""
        if len(self._frames) < LONGEST_RECORDING:
            self._times.append(self._clock())
            self._frames.append(make())

    def gif(self) -> bytes:
        """The frames at the mean pace of the recording, as a GIF."""
        shown = self._times[-1] - self._times[0] if len(self._times) > 1 else 1.0
        return as_gif(self._frames, max(len(self._frames) - 1, 1) / max(shown, 1e-3))
