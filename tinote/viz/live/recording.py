"""Frames of a view, kept for a GIF that repeats."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image

from tinote.viz.draw.arrays import ViewError

__all__ = ["LONGEST_RECORDING", "Recording", "as_gif"]

LONGEST_RECORDING = 600
"""Frames that a recording keeps: half a minute at 20 a second, and 400 MB of memory at 480 × 480 pixels."""


def as_gif(frames: Sequence[np.ndarray], frames_per_second: float) -> bytes:
    """Frames, uint8 of shape (height, width, 3), as a GIF. Its clock counts hundredths of a second, and browsers slow
    down what is faster than 50 frames a second: a delay is rounded, and at least two hundredths. All frames share the
    256 colours of a sample of them, so that still parts do not flicker. Raises `ViewError` for no frames.
    """
    if not frames:
        raise ViewError("there are no frames yet", hint="record while the view plays")
    if not frames_per_second > 0:
        raise ViewError(f"{frames_per_second} frames a second; it is more than 0")
    sample = np.concatenate(frames[:: max(1, len(frames) // 4)][:4])
    palette = Image.fromarray(sample).quantize(256)
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = io.BytesIO()
    delay = max(2, round(100 / frames_per_second)) * 10
    pictures[0].save(buffer, "GIF", save_all=True, append_images=pictures[1:], duration=delay, loop=0)
    return buffer.getvalue()


class Recording:
    """What a view shows while it plays, with the pace at which it was shown; what is past the longest is left out."""

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
