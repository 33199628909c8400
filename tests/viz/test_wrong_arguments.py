"""Wrong arguments of every public view, control and page function: each is an error of ours at the caller's line, and
never one from inside of the package.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinote as ti
from tests.viz.explored import line_of
from tinote.errors import TinoteError
from tinote.viz.draw.arrays import ViewError

HERE = __file__
PACKAGE = str(Path(ti.__file__).parent)


class Odd:
    """Nothing that a view could take."""


WRONG: dict[str, Any] = {
    "an object": Odd(),
    "text": "abc",
    "None": None,
    "nan": float("nan"),
    "infinity": float("inf"),
    "a negative number": -1,
    "zero": 0,
    "a huge number": 10**30,
    "two numbers": (320, 320),
    "texts": ["red", "blue"],
    "ragged lists": [[1, 2], [3]],
    "a dictionary": {"a": 1},
    "a function of one": lambda a: a,
    "a function that gives text": lambda: "text",
    "a function that gives nothing": lambda: None,
    "functions that give text": {"e": lambda: "x"},
    "an array": np.zeros((3, 5, 2)),
    "an empty list": [],
    "an empty array": np.zeros((0, 3)),
    "a complex number": 1j,
    "True": True,
    "bytes": b"abc",
    "a set": {1, 2},
    "a type": int,
    "nested texts": [[["a"]]],
}

#: Arguments that may be as large as memory allows, or as time does.
UNBOUNDED = {"steps_per_frame", "frames", "trail", "size", "radius", "line_width", "width", "unattended_frames"}


class Called(NamedTuple):
    """A function with arguments that it takes."""

    name: str
    function: Callable[..., Any]
    right: dict[str, Any]


def views() -> Iterator[Called]:
    viz = ti.viz
    u, x = ti.field(ti.f32, (8, 6)), ti.Vector.field(2, ti.f32, 8)
    x3, rate = ti.Vector.field(3, ti.f32, 9), ti.field(ti.f32, ())

    @ti.kernel
    def step():
        for i in x:
            x[i] += 0.01

    step()
    yield Called("Image", viz.Image, {"field": u})
    yield Called("Particles", viz.Particles, {"x": x})
    yield Called("Particles in space", viz.Particles, {"x": x3})
    yield Called("Plot", viz.Plot, {"quantities": lambda: 1.0})
    yield Called("Scene", viz.Scene, {})
    image = viz.Image(u)
    yield Called("advance", image.advance, {})
    yield Called("change", image.change, {"action": lambda: None})
    yield Called("record", image.record, {"path": "film.gif", "frames": 2})
    yield Called("save", image.save, {"path": "picture.png"})
    yield Called("snapshot", image.snapshot, {"path": "picture.png"})
    yield Called("slider", viz.slider, {"view": image, "target": rate, "low": 0.0, "high": 1.0})
    yield Called("page", viz.page, {"views": [image], "path": "page.html"})
    yield Called("progress", lambda **given: list(viz.progress([1], **given)), {"total": 1, "label": ""})
    yield Called("explore", viz.explore, {"kernel": step})
    yield Called("violations", viz.violations, {"tape": None})
    yield Called("set_stored_size", viz.set_stored_size, {"nbytes": 1000})
    scene = viz.Scene()
    for name in ("particles", "lines", "mesh", "mesh_instance", "ambient_light", "point_light", "camera"):
        yield Called(f"Scene.{name}", getattr(scene, name), _sensible(getattr(scene, name), x3))


def windows() -> Iterator[Called]:
    x3 = ti.Vector.field(3, ti.f32, 9)
    window = ti.ui.Window("a", (64, 64), show_window=False)
    made = (window, window.get_canvas(), window.get_gui(), ti.ui.Scene(), ti.ui.Camera())
    yield Called("GUI", ti.GUI, {"res": (64, 64), "show_gui": False})
    yield Called("Window", ti.ui.Window, {"name": "a", "res": (64, 64), "show_window": False})
    for owner in (ti.GUI("a", (64, 64), show_gui=False), *made):
        for name in dir(type(owner)):
            if not name.startswith("_") and inspect.isfunction(getattr(type(owner), name)) and name != "take":
                method = getattr(owner, name)
                yield Called(f"{type(owner).__name__}.{name}", method, _sensible(method, x3))


def _sensible(function: Callable[..., Any], points: Any) -> dict[str, Any]:
    """Points for each argument that must be given."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: points for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD}


def _wrong_calls(called: Called) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    parameters = inspect.signature(called.function).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)] or [*called.right]
    for name in names:
        for what, value in WRONG.items():
            if not (what in ("a huge number", "infinity") and name in UNBOUNDED):
                yield f"{name} = {what}", (), {**called.right, name: value}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        yield "an unknown keyword", (), {**called.right, "stepp": 1}
        yield "too many", (None,) * 40, {}
    if any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters):
        yield "too few", (), {}


@pytest.mark.parametrize("made", [views, windows])
@pytest.mark.filterwarnings("ignore")
def test_wrong_arguments_are_errors_at_the_callers_line(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINOTE_HEADLESS", "1")
    ti.init()
    faults: list[str] = []
    tried = refused = 0
    for called in made():
        for what, args, given in _wrong_calls(called):
            tried += 1
            try:
                view = called.function(*args, **given)  # the call
                if called.name in ("Image", "Particles", "Particles in space", "Plot", "Scene"):
                    view.advance(1)
                    view.picture()
            except TinoteError as error:
                refused += 1
                if error.span.file != HERE or error.message.count("\n"):
                    faults.append(f"{called.name}, {what}: not located: {error.message}")
            except Exception as error:
                within = traceback.extract_tb(error.__traceback__)[-1].filename
                faults.append(f"{called.name}, {what}: {type(error).__name__}: {error} ({within})")
    assert not faults, "\n".join(faults)
    assert refused > 0.6 * tried > 600


@pytest.fixture
def field():
    ti.init()
    return ti.field(ti.f32, (8, 6))


def test_a_mistyped_keyword_is_named_with_the_one_that_was_meant(field):
    with pytest.raises(ViewError) as refused:
        ti.viz.Image(field, stepp=None)  # mistyped
    assert refused.value.message == "Image() has no argument `stepp`" and refused.value.hint == "did you mean `step`?"
    assert refused.value.span.line == line_of(HERE, "# mistyped")
    with pytest.raises(ViewError) as refused:
        ti.viz.Image(field, qqq=1)
    assert refused.value.hint.startswith("it has field, step, cmap")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": (320, 320)}, "size must be a whole number, not (320, 320)"),
        ({"cmap": 3}, "cmap must be the name of a colour map, or a list of colours, not 3"),
        ({"limits": "wide"}, "limits must be two numbers, not 'wide'"),
        ({"step": lambda a: a}, "step must be a function without arguments, not a function"),
        ({"smooth": "yes"}, "smooth must be True or False, not 'yes'"),
        ({"energy": {"a": 1}}, "energy must be a function without arguments or a dictionary of functions"),
        ({"field": [[1, 2], [3]]}, "a list whose elements have unequal lengths is not an array"),
    ],
)
def test_what_an_argument_must_be_is_said_in_a_sentence(field, given, message):
    with pytest.raises(ViewError) as refused:
        ti.viz.Image(**{"field": field, **given})
    assert refused.value.message.startswith(message)


def test_numbers_of_numpy_are_numbers(field):
    view = ti.viz.Image(field, size=np.int64(64), steps_per_frame=np.int32(2), smooth=np.bool_(True))
    assert (view.width, view.steps_per_frame, view.smooth) == (64, 2, True)


def test_a_quantity_that_gives_text_is_named_where_it_stands(field):
    view = ti.viz.Plot({"mass": lambda: "heavy"})  # the quantity
    with pytest.raises(ViewError, match="'mass' gives 'heavy', not a number") as refused:
        view.advance()
    assert refused.value.span.line == line_of(HERE, "# the quantity")
