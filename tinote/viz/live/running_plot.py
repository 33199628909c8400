"""Running quantities alone, such as the loss of an optimisation, plotted live in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace as Namespace
from typing import Any, NamedTuple

from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import KINDS, ChartLook, as_series
from tinote.viz.draw.pictures import MakePicture, Picture
from tinote.viz.draw.scale import scale_form
from tinote.viz.live.arguments import argument, ends, names, one_of, optional, sides
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
    label, x_label : str
        What the vertical and the horizontal axis show.
    scale, x_scale : {"linear", "log", "symlog"}, or ("symlog", float)
        How numbers are placed along them: linearly, by their logarithm, or by a logarithm on both sides of zero that is
        nearly linear up to the given size.
    limits : (float, float), optional
        The ends of the vertical axis; by default it shows all samples.
    dt : float, optional
        The time that a step takes: the horizontal axis then shows the time.
    x : str, optional
        The quantity that the horizontal axis shows instead, as in a phase portrait.
    right : sequence of str, optional
        The quantities whose axis is at the right side.
    right_label : str
        As `label`, of that axis.
    right_scale : {"linear", "log", "symlog"}, or ("symlog", float)
        As `scale`, of that axis.
    kind : {"line", "steps", "dots", "histogram"}, default "line"
        How samples are drawn; a histogram shows how often quantities had which values, along the horizontal axis.
    unattended_frames : int, default 60
        As for `ti.viz.Particles`.
    runs_unseen : bool, default False
        As for `ti.viz.Particles`.
    timeline : float, default 32
        As for `ti.viz.Particles`.
    name : str
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
    _css = static_source("theme.css", "views/simulation.css", "kernel.css")

    quantities: Quantities = argument(kw_only=False, fixed=CAPTURED)
    step: Callable[[], object] | None = argument(default=None, kw_only=False, fixed=CAPTURED)
    size: tuple[int, int] = argument(default=(480, 240), check=sides)
    label: str = argument(default="", sent=True)
    kind: str = argument(default="line", check=one_of(*KINDS))
    scale: str | tuple[str, float] = argument(default="linear", check=scale_form)
    limits: tuple[float, float] | None = argument(default=None, check=optional(ends))
    x: str = argument(default="")
    x_label: str = argument(default="")
    x_scale: str | tuple[str, float] = argument(default="linear", check=scale_form)
    right: Sequence[str] = argument(default=(), check=names)
    right_label: str = argument(default="")
    right_scale: str | tuple[str, float] = argument(default="linear", check=scale_form)

    def quantities_given(self) -> dict[str, Callable[[], float]]:
        """Some; a plot shows nothing else."""
        if not self.quantities:
            raise ViewError("there is nothing to plot", hint='give a function, or {"name": function, …}')
        return as_series(self.quantities, "value")

    def arranged(self, given: Namespace) -> PlotLook:
        """Its size and its words."""
        width, height = given.size
        said = f"live plot of {given.label}" if given.label else "live plot"
        own: dict[str, Any] = {name: value for name, value in vars(given).items() if name in ChartLook._fields}
        chart = ChartLook(**{**own, "dt": given.dt or 0.0}).checked(list(as_series(given.quantities, "value")))
        return PlotLook(
            {"width": width, "height": height, "chart_height": height, "label": said, "chart": chart._asdict()}
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

    def painted(self, make: MakePicture = Picture) -> None:
        """There is no stage above the plot."""
