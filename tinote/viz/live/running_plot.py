"""Running quantities alone, such as the loss of an optimisation, plotted live in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Namespace
from typing import Any, NamedTuple

import traitlets

from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import KINDS, as_series
from tinote.viz.draw.pictures import Picture
from tinote.viz.live.arguments import argument, derived, function, one_of, sides
from tinote.viz.live.simulation import CAPTURED, LiveSimulation, Quantities
from tinote.viz.notebook.view import VIEW_SCRIPTS, Frame, static_source
from tinote.viz.pages.sources import Sources


class PlotLook(NamedTuple):
    """What pages have of a plot."""

    sent: dict[str, Any]


class Plot(LiveSimulation):
    """A live plot of running quantities over the step number, with play, pause, step, reset, a speed slider and Stop.

    Parameters
    ----------
    quantities : callable, or dict of str to callable
        A function that returns a number, or one that returns a dictionary of up to six of them, sampled once a frame.
    step : callable, optional
        Advances by one step: of a simulation, or of an optimisation, whose loss is plotted.
    reset : callable, optional
        Returns to the start.
    steps_per_frame : int, default 1
        Steps between two samples, which the slider changes.
    size : (int, int), default (480, 240)
        Width and height in pixels.
    label : str
        What the vertical axis shows.
    kind : {"line", "steps", "dots"}, default "line"
        How samples are drawn.
    unattended_frames, timeline
        As for `ti.viz.Particles`.

    Raises
    ------
    ViewError
        For arguments of other kinds.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=())
    >>> @ti.kernel
    ... def advance():
    ...     x[None] += 0.1 * (1.0 - x[None])
    >>> plot = ti.viz.Plot(lambda: x[None], advance, label="x")
    >>> plot.advance(5)
    >>> plot.history.table().shape
    (5, 2)
    """

    PAGE_KIND = "plot"
    _esm = static_source(*VIEW_SCRIPTS, "views/running_plot.js")
    _css = static_source("views/simulation.css", "kernel.css")

    quantities: Quantities = argument(kw_only=False, fixed=CAPTURED)
    step: Callable[[], object] | None = argument(default=None, kw_only=False, check=function(), fixed=CAPTURED)
    size: tuple[int, int] = argument(default=(480, 240), check=sides)
    label: str = argument(default="", sent=True)
    kind: str = argument(default="line", check=one_of(*KINDS), sent=True)

    plot_label = derived(traitlets.Unicode(), "assign label")

    def quantities_given(self) -> dict[str, Callable[[], float]]:
        """Some; a plot shows nothing else."""
        if not self.quantities:
            raise ViewError("there is nothing to plot", hint='give a function, or {"name": function, …}')
        return as_series(self.quantities, "value")

    def arranged(self, given: Namespace) -> PlotLook:
        """Its size and its words."""
        width, height = given.size
        said = f"live plot of {given.label}" if given.label else "live plot"
        return PlotLook(
            {"width": width, "height": height, "chart_height": height, "plot_label": given.label, "label": said}
        )

    def __repr__(self) -> str:
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Plot: {', '.join(self.series)}{failed}>"

    def capture(self) -> Frame:
        """Nothing but the samples, which every frame has."""
        return Frame({}, [])

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """Nothing but the samples."""
        del sources
        return {}

    @property
    def chart_kind(self) -> str:
        """The one that was chosen."""
        return self.kind

    @property
    def y_label(self) -> str:
        """The axis."""
        return self.label

    def painted(self, make: type[Picture] = Picture) -> None:
        """There is no stage above the plot."""
