"""The picture of an unattended run that the notebook keeps of a view, until the user has played it for longer."""

from __future__ import annotations

import time
from typing import NamedTuple

from tinote.errors import TinoteError
from tinote.lang.capture.automatic import StepAhead
from tinote.viz.draw.pen import DARK, LIGHT
from tinote.viz.live.frames import FrameMaker
from tinote.viz.live.playback import Playback
from tinote.viz.live.whole import whole_picture

LONGEST_LOOK = 0.5
"""Seconds that the steps may take; the kernel does nothing else meanwhile."""


class Ahead(NamedTuple):
    """Pictures of the state after this number of steps, as PNG files, on a light page and on a dark one."""

    step: int
    pngs: list[bytes]


def look_ahead(playback: Playback, step: StepAhead, frames: int) -> Ahead | None:
    """The pictures after this number of frames, or those that the time suffices for; the simulation and the view are
    left at their start. `step` is the view's. Nothing where something has changed since it was captured. Must run on
    the thread that cells run on, while no view plays.
    """
    try:
        with playback.hired().held():
            return playback.apart(_picture_ahead, playback.frames, step, frames)
    except TinoteError:  # It is said when somebody plays.
        return None


def _picture_ahead(frames: FrameMaker, step: StepAhead, count: int) -> Ahead | None:
    view, end = frames.view, time.perf_counter() + LONGEST_LOOK
    try:
        with step.undone() as run:
            if run is None:
                return None
            for _ in range(count):
                for _ in range(view.steps_per_frame):
                    run()
                    frames.steps += 1
                    if time.perf_counter() > end:
                        break
                frames.sampled()
                if time.perf_counter() > end:
                    break
            if not frames.steps:
                return None
            pngs = [whole_picture(view, frames.last_frame, theme=theme).png() for theme in (LIGHT, DARK)]
            return Ahead(frames.steps, pngs)
    finally:
        frames.steps = 0
        view.history.clear()
        frames.present()
        view.renew_page()
