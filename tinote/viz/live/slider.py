"""Sliders that change what a view shows, while it runs or while it is paused."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from ipywidgets import FloatSlider, Layout

from tinote.viz.draw.arguments import checked, shown, takes
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.simulation import LiveSimulation
from tinote.viz.notebook.composed import picture_of
from tinote.viz.notebook.front_end import Bundle, with_picture
from tinote.viz.pages.sources import BoundSlider

STEPS = 200
"""Places of a slider whose step is not given."""

MOST_DIGITS = 9
"""Digits of a value next to the slider."""


class ParameterSlider(FloatSlider):
    """A slider that leaves a picture of itself where widgets do not run."""

    def _repr_mimebundle_(self, **_: Any) -> Bundle:
        live, drawn = super()._repr_mimebundle_(), picture_of(self)
        assert drawn is not None
        return with_picture(
            lambda: (live or {}, {}), repr(self), drawn.png, {"alt": f"{self.description} {self.value:.4g}"}
        )


@checked
def slider(
    view: LiveSimulation,
    target: Any,
    low: float,
    high: float,
    *,
    value: float | None = None,
    step: float | None = None,
    label: str = "",
) -> FloatSlider:
    """A slider that is bound to a simulation; `ipywidgets.VBox([view, slider])` shows both.

    Changes happen between two steps of the view, which is painted afterwards; while one change is still waiting, later
    ones take its place. Numbers in Python that the function assigns are variables of a captured step (`view.captured`),
    which is not captured again for them.

    Parameters
    ----------
    view : view
        The view of the simulation.
    target : Field of shape (), or callable
        The field that is given the value, or a function that is called with it. It may launch kernels, such as those of
        a gradient, which the view then shows.
    low, high : float
        The ends of the range.
    value : float, optional
        Where the slider starts, which is given to the target at once; by default that of the field, or `low`.
    step : float, optional
        The distance between two positions, by default 1/200 of the range.
    label : str, optional
        What is shown before it, by default the field's name.

    Returns
    -------
    ipywidgets.FloatSlider
        The slider.

    Raises
    ------
    ViewError
        For a target of another kind, and for a range that is empty.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> rate = ti.field(ti.f32, shape=())
    >>> @ti.kernel
    ... def advance():
    ...     for i, j in x:
    ...         x[i, j] += rate[None]
    >>> view = ti.viz.Image(x, advance, size=320)
    >>> slider = ti.viz.slider(view, rate, 0.0, 2.0, value=1.0)
    >>> rate[None]
    1.0
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ViewError(f"a slider must go from a lower to a higher number, not from {low} to {high}")
    field: Any = target if getattr(target, "shape", None) == () and hasattr(target, "__setitem__") else None
    if field is None and not (callable(target) and takes(target, 1)):
        raise ViewError(
            f"a slider cannot change {shown(target)}",
            hint="give it a field of shape (), or a function of one number",
        )
    give: Callable[[float], object] = target if field is None else lambda number: field.__setitem__(None, number)
    start = value if value is not None else low if field is None else float(field[None])
    if not low <= start <= high:
        raise ViewError(f"the value {start} is not between {low} and {high}")
    distance = (high - low) / STEPS if step is None else step
    if not 0 < distance < math.inf:
        raise ViewError(f"the step of a slider must be positive, not {step}")
    widget = ParameterSlider(
        value=start,
        min=low,
        max=high,
        step=distance,
        description=label or getattr(target, "name", ""),
        readout_format=_readout_format(low, high, distance),
        style={"description_width": "initial"},
        layout=Layout(width="100%", max_width=f"{view.width}px", margin="2px auto"),  # Below the middle, as the view.
    )
    lock = threading.Lock()
    waiting: list[float] = []

    def apply() -> None:
        with lock:
            number = waiting.pop()
            waiting.clear()
        give(number)

    def changed(change: dict[str, Any]) -> None:
        with lock:
            first = not waiting
            waiting[:] = [float(change["new"])]
        if first:
            view.change(apply)

    widget.observe(changed, "value")
    view.page_sliders[widget.description] = BoundSlider(widget, target)
    if field is None:
        view.expect_changes(target)
    if value is not None or field is None:
        changed({"new": start})
    return widget


def _readout_format(low: float, high: float, step: float) -> str:
    """How the value is written, as d3-format has it: with the significant digits that tell two places apart, and one
    more for a value between them, and without zeros at the end.
    """
    digits = 2 + math.floor(math.log10(max(abs(low), abs(high))) + 1e-9) - math.floor(math.log10(step) + 1e-9)
    return f".{min(max(digits, 4), MOST_DIGITS)}"
