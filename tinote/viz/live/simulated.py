"""What is shown of a simulation, and what draws it: the traits that pages read, and what a view of a kind of state
provides. Frames, playing, pictures and videos are made of that.
"""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform

import traitlets

from tinote.viz.draw.chart import CHART_HEIGHT, History
from tinote.viz.draw.colormap import ColorScale
from tinote.viz.draw.pictures import MakePicture, Picture
from tinote.viz.live.arguments import argument, derived
from tinote.viz.notebook.error_view import error_as_html
from tinote.viz.notebook.view import Frame, LiveView, describe_error
from tinote.viz.pages.sources import Sources

RUNS = "it says how the view runs"


@dataclass_transform(kw_only_default=True, field_specifiers=(argument,))  # For editors and type checkers.
class SimulatedView(LiveView):
    """Base of `LiveSimulation`. A subclass captures and draws the state: `capture` runs on the worker, between steps,
    and `painted` draws what was captured last, wherever a picture is wanted.
    """

    history: History
    color_label: str
    steps_per_frame: int
    runs_unseen: bool
    exception: BaseException | None

    PAGE_KIND: ClassVar[str]
    """By which a page knows what paints the view."""

    is_made = False
    """Whether the constructor has done its work: from then on, what is assigned changes the view."""

    state = derived(traitlets.Enum(("paused", "playing", "stopped"), "paused"), "call play(), pause() or stop()")
    error = traitlets.Unicode(read_only=True).tag(instead=RUNS)
    """The text of the exception that ended the run, or nothing."""

    error_card = derived(traitlets.Unicode(), RUNS)
    """The same as a page shows it, in HTML."""

    can_step = derived(traitlets.Bool(False), RUNS)
    can_reset = derived(traitlets.Bool(False), RUNS)
    can_point = derived(traitlets.Bool(False), RUNS)
    recording = derived(traitlets.Bool(False), "call record()")
    """Whether the frames that are made are kept for a GIF."""

    series = derived(traitlets.List(traitlets.Unicode()), RUNS)
    chart = derived(traitlets.Dict(), "assign plot_label, plot_scale, or dt")
    """How the plot is drawn: a `ChartLook`."""

    axes_shown = derived(traitlets.Dict(), "assign axes, grid, x_label, y_label, or what the view shows")
    """The axes around the stage (`draw/axes.py`), if there are any."""

    width = derived(traitlets.Int(480), "assign size")
    height = derived(traitlets.Int(480), "assign size")
    chart_height = derived(traitlets.Int(CHART_HEIGHT), "assign size")
    table = derived(traitlets.Unicode(), "assign cmap")
    """Of a view that shows numbers as colours: those of the 256 bytes that numbers are sent as, three bytes each, in
    base 64.
    """

    step_note = derived(traitlets.Unicode(), RUNS)
    """How steps run, in a sentence: the tooltip of their number."""

    program = derived(traitlets.Unicode(), "call save()")
    """How the view runs without a kernel (`pages/stored.py`), for the notebook that is saved; or nothing."""

    program_note = derived(traitlets.Unicode(), RUNS)
    """Why the notebook keeps only a picture of the view, in a sentence; or nothing."""

    # What a subclass provides.

    def capture(self) -> Frame:
        """The present state as a frame, kept for `painted` as well. Runs on the worker, between steps."""
        raise NotImplementedError

    def painted(self, make: MakePicture = Picture) -> Picture | None:
        """The state that was captured last as a picture of `width` × `height` pixels, on white where the view follows
        the page; None for a view that shows its plot alone. `make` may keep discs and strokes as they are, for a
        vector graphic.
        """
        raise NotImplementedError

    def renew_page(self) -> None:
        """The page has not got the frames that were made last: the next one has all that it needs."""

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

    def words_at(self, across: float, up: float) -> str:
        """What is seen at a position on the stage, where pages ask for it; nothing where nothing is. Runs on the
        worker.
        """
        del across, up
        return ""

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make the frames of this view itself, besides its traits."""
        raise NotImplementedError

    def pointed(self) -> tuple[int, int]:
        """How many numbers the position of a pointer has here, and what it points at; 0 where that is nothing."""
        return 2, 0

    def keep_programs(self) -> None:
        """What waited for this view to end playing is done, on the event loop's thread."""

    def note_error(self, error: BaseException | None) -> None:
        """What ended the run, or nothing, as text and as a card."""
        self.exception = error
        self.set_trait("error", "" if error is None else describe_error(error))
        self.set_trait("error_card", "" if error is None else error_as_html(error))
