"""Controls that change what a view shows, while it runs or while it is paused: widgets of ipywidgets that are bound to
a field or a function. `KINDS` says what each kind is; `static/pages/controls.js` has them for pages, by the same names.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import ipywidgets as widgets
import numpy as np

from tinote.viz.draw.arguments import checked, shown, takes
from tinote.viz.draw.arrays import ViewError, as_colors
from tinote.viz.live.simulation import LiveSimulation
from tinote.viz.notebook.composed import picture_of, words_of
from tinote.viz.notebook.front_end import Bundle, with_picture

STEPS = 200
"""Places of a slider whose step is not given."""

MOST_DIGITS = 9
"""Digits of a value next to the slider."""

MOST_OPTIONS = 50
LARGEST = sys.float_info.max


class ControlKind(NamedTuple):
    """A kind of control. A function that is bound to it has the `arguments` in words, `count` of them, which `spread`
    gives for the widget's value. A field has as many numbers, of which `gathered` makes the value; None where no field
    can be bound. `described` is what a page has of the widget. Where `choices` gives the few values that there are, a
    page calls the function with one of them, which need not be numbers.
    """

    arguments: str
    count: int
    spread: Callable[[Any], tuple[Any, ...]]
    gathered: Callable[[list[Any]], Any] | None
    described: Callable[[Any], dict[str, Any]]
    choices: Callable[[Any], list[Any]] | None = None


def _value(widget: Any) -> dict[str, Any]:
    return {"value": widget.value}


def _range(widget: Any) -> dict[str, Any]:
    """Its ends are powers of ten where it is logarithmic."""
    digits = int(re.sub(r"\D", "", getattr(widget, "readout_format", "")) or MOST_DIGITS)
    log = {"log": True} if isinstance(widget, widgets.FloatLogSlider) else {}
    return {"low": widget.min, "high": widget.max, "step": widget.step, "digits": digits, **log, **_value(widget)}


def _bounded(widget: Any) -> dict[str, Any]:
    ends = {"low": widget.min, "high": widget.max}
    return {name: end for name, end in ends.items() if abs(end) < LARGEST} | {"step": widget.step, **_value(widget)}


def _optional(widget: Any) -> dict[str, Any]:
    return {"options": [str(name) for name, _ in widget._options_full], "value": widget.index}


def _fractions(color: str) -> tuple[float, ...]:
    return tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _hexadecimal(parts: Sequence[float]) -> str:
    return "#" + "".join(f"{round(255 * min(max(part, 0.0), 1.0)):02x}" for part in parts)


def _alone(value: Any) -> tuple[Any, ...]:
    return (value,)


KINDS = {
    "slider": ControlKind("one number", 1, _alone, lambda numbers: numbers[0], _range),
    "range": ControlKind("two numbers", 2, tuple, tuple, _range),
    "number": ControlKind("one number", 1, _alone, lambda numbers: numbers[0], _bounded),
    "checkbox": ControlKind(
        "True or False", 1, _alone, lambda numbers: bool(numbers[0]), lambda one: {"value": int(one.value)},
        lambda _: [False, True],
    ),
    "dropdown": ControlKind(
        "one option", 1, _alone, lambda numbers: numbers[0], _optional,
        lambda one: [value for _, value in one._options_full],
    ),
    "button": ControlKind("no arguments", 0, lambda _: (), None, lambda _: {}, lambda _: [None]),
    "color": ControlKind("three numbers", 3, _fractions, _hexadecimal, _value),
    "text": ControlKind("one text", 1, _alone, None, _value),
}  # fmt: skip
"""The kinds of controls, by their names."""


class Control(widgets.DOMWidget):
    """A widget that changes its `target`, and leaves a picture of itself where widgets do not run."""

    kind: ClassVar[str]
    value: Any
    target: Any
    folder: widgets.Accordion | None = None

    if TYPE_CHECKING:  # each kind has the traits of its widget

        def __getattr__(self, name: str) -> Any: ...

    def _repr_mimebundle_(self, **options: Any) -> Bundle:
        live: Any = super()._repr_mimebundle_(**options)
        drawn = picture_of(self)
        assert drawn is not None
        return with_picture(lambda: (live or {}, {}), repr(self), drawn.png, {"alt": words_of(self)})

    @property
    def calls(self) -> list[tuple[Any, ...]] | None:
        """What a page calls the target with, if these are a few values."""
        kind = KINDS[self.kind]
        return None if kind.choices is None else [kind.spread(value) for value in kind.choices(self)]

    @property
    def numbers(self) -> tuple[Any, ...]:
        """What the target gets of the value."""
        return KINDS[self.kind].spread(self.value)

    def described(self) -> dict[str, Any]:
        """What a page has of it."""
        found = {"kind": self.kind, "label": self.description, **KINDS[self.kind].described(self)}
        if self.folder is not None:
            found |= {"folder": self.folder.get_title(0), "closed": self.folder.selected_index is None}
        return found


@functools.cache
def _bound_class(kind: str, base: type[widgets.DOMWidget]) -> Any:
    """The class of controls of a kind that are shown as such widgets."""
    return type(base.__name__, (Control, base), {"kind": kind})


class _Target(NamedTuple):
    """What a control changes: how it is called, its name, and of a field the value that it has, and whether its numbers
    are whole.
    """

    itself: Any
    call: Callable[..., object]
    name: str
    held: Any = None
    is_whole: bool = False

    def start(self, value: Any, otherwise: Any) -> Any:
        """Where a control begins."""
        return value if value is not None else otherwise if self.held is None else self.held


def _target_of(name: str, target: Any) -> _Target:
    """Raises `ViewError` for what a control of this kind cannot change."""
    kind = KINDS[name]
    if kind.gathered is not None and getattr(target, "shape", None) == () and hasattr(target, "__setitem__"):
        held = np.asarray(target.to_numpy() if hasattr(target, "to_numpy") else target).reshape(-1)
        if held.size == kind.count:
            is_vector = hasattr(target, "n") or kind.count > 1

            def give(*numbers: Any) -> None:
                target[None] = numbers if is_vector else numbers[0]

            return _Target(
                target, give, getattr(target, "name", ""), kind.gathered(held.tolist()), held.dtype.kind in "iu"
            )
    elif callable(target) and takes(target, kind.count):
        called = getattr(target, "__name__", "")
        return _Target(target, target, "" if called == "<lambda>" else called.replace("_", " "))
    of = "" if kind.count == 1 else f" of {kind.arguments}"
    field = "" if kind.gathered is None else f"a field of shape (){of}, or "
    function = f"a function {'without' if not kind.count else 'of'} {kind.arguments.removeprefix('no ')}"
    raise ViewError(f"a {name} cannot change {shown(target)}", hint=f"give it {field}{function}")


def _bound(
    view: LiveSimulation, kind: str, target: _Target, base: type[widgets.DOMWidget], label: str, **traits: Any
) -> Any:
    """A control that changes the target between two steps of the view."""
    widget = _bound_class(kind, base)(
        description=label or target.name,
        layout=widgets.Layout(max_width=f"{view.width}px", margin="2px auto", width="100%"),  # Below its middle.
        **traits,
    )
    widget.target = target.itself
    same = target.itself.__qualname__ if label and hasattr(target.itself, "__qualname__") else id(target.itself)
    view.bound_controls[kind, widget.description, same] = widget
    if target.itself is target.call:
        view.expect_changes(target.call)
    if kind == "button":
        widget.on_click(lambda _: view.change(target.call))
        return widget
    widget.style.description_width = "initial"
    lock = threading.Lock()
    waiting: list[Any] = []

    def apply() -> None:
        with lock:
            value = waiting.pop()
            waiting.clear()
        target.call(*KINDS[kind].spread(value))

    def changed(change: Mapping[str, Any]) -> None:
        with lock:
            first = not waiting
            waiting[:] = [change["new"]]
        if first:
            view.change(apply)

    widget.observe(changed, "value")
    if target.held is None or widget.value != target.held:
        changed({"new": widget.value})
    return widget


@checked
def slider(
    view: LiveSimulation,
    target: Any,
    low: float,
    high: float,
    *,
    value: float | tuple[float, float] | None = None,
    step: float | None = None,
    label: str = "",
    integer: bool = False,
    log: bool = False,
    interval: bool = False,
) -> Control:
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
    value : float, or (float, float), optional
        Where the slider starts, which is given to the target at once; by default that of the field, or `low`.
    step : float, optional
        The distance between two positions, by default 1/200 of the range, or 1 for whole numbers.
    label : str, optional
        What is shown before it, by default the name of the field or function.
    integer : bool, default False
        Whether numbers are whole; those of a field of integers always are.
    log : bool, default False
        Whether positions are even in the logarithm of the value.
    interval : bool, default False
        Whether there are two handles. The field is then a vector of two numbers, and the function takes two.

    Returns
    -------
    ipywidgets.FloatSlider, IntSlider, FloatLogSlider, FloatRangeSlider or IntRangeSlider
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
    if log and (low <= 0 or integer or interval or step is not None):
        raise ViewError(
            f"a logarithmic slider from {low} to {high} has positive ends, one handle, and no step or whole numbers"
        )
    kind = "range" if interval else "slider"
    bound = _target_of(kind, target)
    integer = integer or bound.is_whole
    numbers: Any = (low, high) if interval else low
    start = bound.start(value, numbers)
    parts = np.ravel(start).tolist()
    if len(parts) != 1 + interval or not all(low <= part <= high for part in parts) or sorted(parts) != parts:
        raise ViewError(f"the value {shown(start)} is not between {low} and {high}")
    distance = step if step is not None else 1 if integer else (high - low) / STEPS
    if not 0 < distance < math.inf:
        raise ViewError(f"the step of a slider must be positive, not {step}")
    if integer and not all(float(part).is_integer() for part in (low, high, distance, *parts)):
        raise ViewError("a slider of whole numbers has whole ends, a whole step and a whole value")
    whole = int if integer else float
    start = tuple(map(whole, parts)) if interval else whole(parts[0])
    ends: dict[str, Any] = {"min": whole(low), "max": whole(high), "step": whole(distance), "value": start}
    base = {
        (False, False): widgets.FloatSlider,
        (False, True): widgets.FloatRangeSlider,
        (True, False): widgets.IntSlider,
        (True, True): widgets.IntRangeSlider,
    }[integer, interval]
    if log:
        base, exponents = widgets.FloatLogSlider, (math.log10(low), math.log10(high))
        places = max(1, round(STEPS / (exponents[1] - exponents[0])))  # In a decade, whose end is one of them.
        ends |= {"min": exponents[0], "max": exponents[1], "step": 1 / places, "readout_format": ".4"}
    elif not integer:
        ends["readout_format"] = _readout_format(low, high, distance)
    return _bound(view, kind, bound, base, label, **ends)


@checked
def number(
    view: LiveSimulation,
    target: Any,
    *,
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
    step: float | None = None,
    label: str = "",
    integer: bool = False,
) -> Control:
    """A field to type a number into, bound to a simulation as a `slider` is.

    Parameters
    ----------
    view : view
        As for `slider`.
    target : Field of shape (), or callable
        As for `slider`.
    value : float, optional
        As for `slider`; without a field, 0 or the end nearest to it.
    label : str, optional
        As for `slider`.
    integer : bool, default False
        As for `slider`.
    low, high : float, optional
        The least and the greatest number.
    step : float, optional
        What the arrow keys add.

    Returns
    -------
    ipywidgets.BoundedFloatText or BoundedIntText
        The field.

    Raises
    ------
    ViewError
        For a target of another kind, and for a value out of bounds.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> rounds = ti.field(ti.i32, shape=())
    >>> view = ti.viz.Image(x, size=320)
    >>> ti.viz.number(view, rounds, value=20, low=1).value
    20
    """
    bound = _target_of("number", target)
    integer = integer or bound.is_whole
    least, most = -LARGEST if low is None else low, LARGEST if high is None else high
    if integer:
        limits = np.iinfo(np.int32)
        least, most = max(least, int(limits.min)), min(most, int(limits.max))
    start = bound.start(value, min(max(0.0, least), most))
    if not least <= start <= most:
        raise ViewError(f"the value {start} is not between {least:g} and {most:g}")
    whole = int if integer else float
    given: dict[str, Any] = {"min": whole(least), "max": whole(most), "value": whole(start)}
    given["step"] = whole(step) if step else 1 if integer else None
    return _bound(
        view, "number", bound, widgets.BoundedIntText if integer else widgets.BoundedFloatText, label, **given
    )


@checked
def checkbox(view: LiveSimulation, target: Any, *, value: bool | None = None, label: str = "") -> Control:
    """A box to tick, bound to a simulation as a `slider` is.

    Parameters
    ----------
    view : view
        As for `slider`.
    label : str, optional
        As for `slider`.
    target : Field of shape (), or callable
        The field, which becomes 1 or 0, or a function that is called with True or False.
    value : bool, optional
        Whether it is ticked at first; by default what the field says, or False.

    Returns
    -------
    ipywidgets.Checkbox
        The box.

    Raises
    ------
    ViewError
        For a target of another kind.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> walls = ti.field(ti.i32, shape=())
    >>> view = ti.viz.Image(x, size=320)
    >>> box = ti.viz.checkbox(view, walls, value=True)
    >>> walls[None]
    1
    """
    bound = _target_of("checkbox", target)
    return _bound(view, "checkbox", bound, widgets.Checkbox, label, value=bound.start(value, False), indent=False)


@checked
def dropdown(
    view: LiveSimulation,
    target: Any,
    options: Mapping[str, Any] | Sequence[Any],
    *,
    value: Any = None,
    label: str = "",
) -> Control:
    """A list with one option chosen, bound to a simulation as a `slider` is.

    Parameters
    ----------
    view : view
        As for `slider`.
    label : str, optional
        As for `slider`.
    target : Field of shape (), or callable
        The field that is given the option, which then is a number, or a function that is called with it.
    options : sequence, or dict of str to value
        Up to fifty values, alone or with the names that are shown.
    value : optional
        The first choice; by default that of the field, or the first option.

    Returns
    -------
    ipywidgets.Dropdown
        The list.

    Raises
    ------
    ViewError
        For a target of another kind, and for a value that is none of the options.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> scheme = ti.field(ti.i32, shape=())
    >>> view = ti.viz.Image(x, size=320)
    >>> choice = ti.viz.dropdown(view, scheme, {"explicit": 0, "implicit": 1}, value=1)
    >>> choice.label, scheme[None]
    ('implicit', 1)
    """
    bound = _target_of("dropdown", target)
    named = list(options.items()) if isinstance(options, Mapping) else [(str(one), one) for one in options]
    if not 0 < len(named) <= MOST_OPTIONS:
        raise ViewError(f"a dropdown has 1 to {MOST_OPTIONS} options, not {len(named)}")
    values = [one for _, one in named]
    if bound.held is not None and not all(isinstance(one, int | float | np.number) for one in values):
        raise ViewError("the options of a field must be numbers", hint="give a function that is called with the option")
    start = bound.start(value, values[0])
    at = [k for k, one in enumerate(values) if one is start or one == start or _is_near(one, start)]
    if not at:
        raise ViewError(f"the value {shown(start)} is none of the options")
    return _bound(view, "dropdown", bound, widgets.Dropdown, label, options=named, index=at[0])


def _is_near(one: Any, other: Any) -> bool:
    """Whether numbers are the same in single precision."""
    numeric = isinstance(one, int | float | np.number) and isinstance(other, int | float | np.number)
    return numeric and np.float32(one) == np.float32(other)


@checked
def button(view: LiveSimulation, target: Callable[[], object], *, label: str = "") -> Control:
    """A button that calls a function between two steps of a simulation; the view is painted afterwards.

    Parameters
    ----------
    view : view
        The view of the simulation.
    target : callable
        A function without arguments. It may launch kernels, and assign numbers.
    label : str, optional
        What stands on it, by default the name of the function.

    Returns
    -------
    ipywidgets.Button
        The button.

    Raises
    ------
    ViewError
        For a target of another kind.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> view = ti.viz.Image(x, size=320)
    >>> def start_again():
    ...     x.fill(0.0)
    >>> ti.viz.button(view, start_again).description
    'start again'
    """
    return _bound(view, "button", _target_of("button", target), widgets.Button, label)


@checked
def color(view: LiveSimulation, target: Any, *, value: Any = None, label: str = "") -> Control:
    """A colour to choose, bound to a simulation as a `slider` is.

    Parameters
    ----------
    view : view
        As for `slider`.
    label : str, optional
        As for `slider`.
    target : Field of shape (), or callable
        A field of vectors of three numbers, or a function of three: red, green and blue from 0 to 1.
    value : colour, optional
        The first one, as views take colours; by default that of the field, or black.

    Returns
    -------
    ipywidgets.ColorPicker
        What shows and changes the colour.

    Raises
    ------
    ViewError
        For a target of another kind, and for a value that names no colour.

    Examples
    --------
    >>> picture = ti.Vector.field(3, ti.f32, shape=(32, 32))
    >>> ink = ti.Vector.field(3, ti.f32, shape=())
    >>> view = ti.viz.Image(picture, size=320)
    >>> ti.viz.color(view, ink, value="orange").value
    '#ffa500'
    """
    bound = _target_of("color", target)
    start = value if value is None else _hexadecimal([part / 255 for part in as_colors(value)])
    return _bound(view, "color", bound, widgets.ColorPicker, label, value=bound.start(start, "#000000"))


@checked
def text(view: LiveSimulation, target: Callable[[str], object], *, value: str = "", label: str = "") -> Control:
    """A line to write in, bound to a simulation as a `slider` is. Pages do without it: their programs take numbers.

    Parameters
    ----------
    view : view
        As for `slider`.
    label : str, optional
        As for `slider`.
    target : callable
        A function that is called with the text.
    value : str, optional
        The first text.

    Returns
    -------
    ipywidgets.Text
        The line.

    Raises
    ------
    ViewError
        For a target of another kind.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> view = ti.viz.Image(x, size=320)
    >>> names = []
    >>> line = ti.viz.text(view, names.append, label="name")
    >>> line.value = "Ada"
    >>> names
    ['', 'Ada']
    """
    return _bound(view, "text", _target_of("text", target), widgets.Text, label, value=value, continuous_update=False)


@checked
def folder(title: str, controls: Sequence[widgets.Widget]) -> widgets.Accordion:
    """Controls under a title, which opens and closes them; in pages as well.

    Parameters
    ----------
    title : str
        The title.
    controls : sequence of widgets
        The controls.

    Returns
    -------
    ipywidgets.Accordion
        The folder, which is open; closed, its `selected_index` is None.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=(32, 32))
    >>> feed, decay = ti.field(ti.f32, shape=()), ti.field(ti.f32, shape=())
    >>> view = ti.viz.Image(x, size=320)
    >>> rates = [ti.viz.slider(view, one, 0.0, 0.1) for one in (feed, decay)]
    >>> folder = ti.viz.folder("Rates", rates)
    >>> folder.get_title(0)
    'Rates'
    """
    made = widgets.Accordion([widgets.VBox(list(controls))], titles=(title,), selected_index=0)
    widths = [one.layout.max_width for one in controls if isinstance(one, Control)]
    made.layout = widgets.Layout(max_width=widths[0] if widths else None, margin="2px auto", width="100%")
    for one in controls:
        if isinstance(one, Control):
            one.folder = made
    return made


def _readout_format(low: float, high: float, step: float) -> str:
    """How the value is written, as d3-format has it: with the significant digits that tell two places apart, and one
    more for a value between them, and without zeros at the end.
    """
    digits = 2 + math.floor(math.log10(max(abs(low), abs(high))) + 1e-9) - math.floor(math.log10(step) + 1e-9)
    return f".{min(max(digits, 4), MOST_DIGITS)}"
