"""What is shown of a simulation, and what draws it: the traits that pages read, and what a view of a kind of state
provides. Frames, playing, pictures and films are made of that.
"""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets

from tinote.viz.draw.chart import CHART_HEIGHT, History
from tinote.viz.draw.colormap import ColorScale
from tinote.viz.draw.pictures import Picture
from tinote.viz.notebook.error_view import error_as_html
from tinote.viz.notebook.view import Frame, LiveView, describe_error
from tinote.viz.pages.sources import Sources

TIMELINE_MEGABYTES = 32.0
"""How much of the last frames a page keeps of a view, to show them again."""


class SimulatedView(LiveView):
    """Base of `LiveSimulation`. A subclass captures and draws the state: `capture` runs on the worker, between steps,
    and `painted` draws what was captured last, wherever a picture is wanted.
    """

    history: History
    steps: int
    exception: BaseException | None

    PAGE_KIND: ClassVar[str]
    """By which a page knows what paints the view."""

    state = traitlets.Enum(("paused", "playing", "stopped"), "paused").tag(sync=True)
    steps_per_frame = traitlets.Int(1, min=1).tag(sync=True)
    error = traitlets.Unicode()
    """The text of the exception that ended the run, or nothing."""

    error_card = traitlets.Unicode().tag(sync=True)
    """The same as a page shows it, in HTML."""

    can_step = traitlets.Bool(False).tag(sync=True)
    can_reset = traitlets.Bool(False).tag(sync=True)
    can_point = traitlets.Bool(False).tag(sync=True)
    recording = traitlets.Bool(False).tag(sync=True)
    """Whether the frames that are made are kept for a GIF."""

    series = traitlets.List(traitlets.Unicode()).tag(sync=True)
    plot_label = traitlets.Unicode().tag(sync=True)
    width = traitlets.Int(480).tag(sync=True)
    height = traitlets.Int(480).tag(sync=True)
    chart_height = traitlets.Int(CHART_HEIGHT).tag(sync=True)
    table = traitlets.Unicode().tag(sync=True)
    """Of a view that shows numbers as colours: those of the 256 bytes that numbers are sent as, three bytes each, in
    base 64.
    """

    colorbar = traitlets.Bool(False).tag(sync=True)
    """Whether a bar below the stage tells which numbers they stand for, as `color_label`."""

    color_label = traitlets.Unicode().tag(sync=True)
    step_note = traitlets.Unicode().tag(sync=True)
    """How steps run, in a sentence: the tooltip of their number."""

    timeline = traitlets.Float(TIMELINE_MEGABYTES).tag(sync=True)
    """Megabytes of the last frames that the page keeps, to show them again."""

    program = traitlets.Unicode().tag(sync=True)
    """How the view runs without a kernel (`pages/stored.py`), for the notebook that is saved; or nothing."""

    # What a subclass provides.

    def capture(self) -> Frame:
        """The present state as a frame, kept for `painted` as well. Runs on the worker, between steps."""
        raise NotImplementedError

    def painted(self, make: type[Picture] = Picture) -> Picture | None:
        """The state that was captured last as a picture of `width` × `height` pixels, on white where the view follows
        the page; None for a view that shows its plot alone. `make` may keep discs and strokes as they are, for a
        vector graphic.
        """
        raise NotImplementedError

    def kept(self, *, whole: bool) -> Frame:
        """What pages keep from frame to frame, besides the plot: all of it (`whole`), or what the last frame has added.
        Its binary parts follow those of the frame.
        """
        del whole
        return Frame({}, [])

    def legend(self) -> ColorScale | None:
        """The colour map that is explained below the stage, if there is one."""
        return None

    def pick(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, ...], Any]:
        """What lies at a position on the stage: see `pointer.Picker`. Runs on the worker."""
        raise NotImplementedError

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make the frames of this view itself, besides its traits."""
        raise NotImplementedError

    def pointed(self) -> tuple[int, int]:
        """How many numbers the position of a pointer has here, and what it points at; 0 where that is nothing."""
        return 2, 0

    def note_error(self, error: BaseException | None) -> None:
        """What ended the run, or nothing, as text and as a card."""
        self.exception = error
        self.error = "" if error is None else describe_error(error)
        self.error_card = "" if error is None else error_as_html(error)
