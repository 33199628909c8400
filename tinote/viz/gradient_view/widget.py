"""`ti.viz.gradients(tape)`: the gradients of a recorded program at a glance.

The norms of the adjoints over the launches, where the time of the reverse sweep goes, what the tape keeps, and, where a
program is given, the derivative compared with differences over growing horizons. What is shown is `ti.ad.sweep_report`
and `ti.ad.gradient_horizons`; the view asks the kernel for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from tinote.errors import TinoteError
from tinote.lang.ad.checks.horizons import HorizonReport, gradient_horizons
from tinote.lang.ad.sweep_report import SweepReport, sweep_report
from tinote.lang.ad.tape import Tape
from tinote.lang.data.fields import Field
from tinote.source import caller
from tinote.viz.draw.arguments import checked
from tinote.viz.gradient_view.charts import as_text, facts
from tinote.viz.gradient_view.picture import draw_gradients
from tinote.viz.notebook.static_view import StaticView
from tinote.viz.notebook.view import static_source


class GradientView(StaticView):
    """The view of a reverse sweep, which `ti.viz.gradients` returns.

    Methods
    -------
    picture
    save
    text

    Attributes
    ----------
    report : SweepReport
        The numbers.
    horizons : HorizonReport or None
        How far the derivative predicts the effect of a change.

    Examples
    --------
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[None] ** 2
    >>> with ti.ad.Tape(y) as tape:
    ...     measure()
    >>> isinstance(ti.viz.gradients(tape), ti.viz.GradientView)
    True
    """

    TITLE = "Gradients"
    SCRIPTS = ("view.js", "draw/scale.js", "draw/chart.js", "draw/axes.js", "views/gradients.js")
    STYLES = ("theme.css", "frame.css", "draw/plot.css", "views/gradients.css")
    _esm = static_source(*SCRIPTS)
    _css = static_source(*STYLES)

    facts = traitlets.Dict().tag(sync=True)
    """What the page shows (`charts.facts`)."""

    def __init__(self, report: SweepReport, horizons: HorizonReport | None = None) -> None:
        super().__init__(facts=facts(report, horizons))
        self.report = report
        self.horizons = horizons

    def shown(self) -> dict[str, Any]:
        return {"facts": self.facts}

    def picture(self) -> bytes:
        """All charts and the table of kernels, as a PNG file.

        Returns
        -------
        bytes
            The contents of the file.
        """
        return draw_gradients(self.facts, self.PICTURE_WIDTH)

    def text(self) -> str:
        """What is to be seen, as plain text.

        Returns
        -------
        str
            Several lines.
        """
        return as_text(self.facts, self.report)

    def __repr__(self) -> str:
        count = len(self.report.launches)
        return f"<gradients of {count:,} launch{'' if count == 1 else 'es'}>"


@checked
def gradients(
    tape: Tape,
    *,
    program: Callable[[int], Any] | None = None,
    wrt: Field | Sequence[Field] | None = None,
    horizons: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    change: float | None = None,
    tolerance: float = 0.1,
    seed: int = 0,
) -> GradientView:
    """Show the gradients of what a tape has recorded: the norms of the adjoints, the times and the memory.

    `ti.ad.sweep_report` says which tapes, and what it costs: the reverse sweep runs again a few times, with `keep=True`
    the launches, too. With `program` and `wrt` the view also shows up to which horizon the derivative predicts the
    effect of a small change (`ti.ad.gradient_horizons`, which runs the program three times at each horizon).

    Parameters
    ----------
    tape : Tape
        A tape that has closed.
    program : callable, optional
        A function of a number of steps that computes the tape's loss.
    wrt : Field or sequence of Field, optional
        The fields that are changed.
    horizons : sequence of int
        As for `ti.ad.gradient_horizons`.
    change : float, optional
        As for `ti.ad.gradient_horizons`.
    tolerance : float, default 0.1
        As for `ti.ad.gradient_horizons`.
    seed : int, default 0
        As for `ti.ad.gradient_horizons`.

    Returns
    -------
    GradientView
        A widget, with `save` for a page and `picture` for a file.

    Raises
    ------
    DifferentiationError
        For a tape that cannot be swept again.
    TinoteError
        Where only one of `program` and `wrt` is given.

    Examples
    --------
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[None] ** 2
    >>> with ti.ad.Tape(y) as tape:
    ...     measure()
    >>> view = ti.viz.gradients(tape)
    >>> len(view.report.launches)
    1
    """
    if (program is None) != (wrt is None):
        raise TinoteError(
            "a comparison with differences needs `program` and `wrt`",
            caller(),
            hint="program(steps) runs the rollout and computes the tape's loss; wrt is what it starts from",
        )
    report = sweep_report(tape)
    if program is None or wrt is None:
        return GradientView(report)
    found = gradient_horizons(program, wrt, tape.loss, horizons, change=change, tolerance=tolerance, seed=seed)
    return GradientView(report, found)
