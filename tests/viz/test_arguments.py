"""The arguments of live views: each is declared once, may be changed later or says why not, and is checked either
way. In a view in which one was changed, pages and pictures are those of a view that was made so.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

import numpy as np
import pytest
import traitlets
from ipywidgets import Dropdown, FloatSlider, link

import tinote as ti
from tests.viz.live import picture_of, scenario
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.arguments import arguments_of

X = np.random.default_rng(1).random((30, 2))
SPACE = np.random.default_rng(2).random((30, 3))
CELLS = np.random.default_rng(3).random((12, 8))
PAIRS = np.array([[0, 1], [1, 2], [4, 9]])


def nothing() -> None:
    pass


def one() -> float:
    return 1.0


#: how a view of each class is made, and another value for each of its arguments
OTHERS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "particles": (
        ti.viz.Particles,
        {"x": X, "step": nothing, "energy": one, "size": 90, "trail": 2},
        {
            "x": X[:20], "bounds": ((0.0, 0.5), (0.0, 2.0)), "color": "#d94f5c", "radius": 5, "background": "#204060",
            "cmap": "plasma", "limits": (0.0, 0.5), "colorbar": False, "color_label": "speed", "glow": True,
            "edges": PAIRS, "edge_color": "red", "edge_width": 4.0, "arrows": X - 0.5, "arrow_color": "red",
            "arrow_width": 4.0, "arrow_scale": 0.2, "trail": 4, "trail_color": "red", "trail_width": 5.0,
            "plot_label": "joules", "steps_per_frame": 3, "size": (120, 60), "label": "many particles",
            "unattended_frames": 5, "runs_unseen": True, "timeline": 1.0, "name": "a run",
            "azimuth": 50.0, "elevation": -100.0, "norm": "log", "axes": True,
            "x_label": "x [m]", "y_label": "y [m]", "grid": True, "plot_scale": "log", "dt": 0.1,
        },
    ),
    "numbers": (
        ti.viz.Particles,
        {"x": X, "color": X[:, 0].copy(), "edges": PAIRS, "arrows": X - 0.5, "size": 90, "trail": 2},
        {
            "color": X[:, 1].copy(), "cmap": "coolwarm", "limits": (0.0, 0.5), "colorbar": False, "color_label": "u",
            "norm": "symlog",
            "edges": PAIRS[:1], "edge_color": np.array([0.0, 0.5, 1.0]), "edge_width": 4.0, "arrows": X, "trail": 0,
            "arrow_color": X[:, 0].copy(), "arrow_width": 4.0, "arrow_scale": 0.2, "radius": np.linspace(1, 9, 30),
        },
    ),
    "space": (
        ti.viz.Particles,
        {"x": SPACE, "size": 90},
        {
            "x": SPACE[:10], "bounds": ((0.0, 2.0),) * 3, "color": ["red", 0x00FF00] * 15, "radius": 5.0,
            "azimuth": 70.0, "elevation": 60.0, "background": "black", "trail": 3, "arrows": SPACE, "edges": PAIRS,
            "axes": True, "grid": True, "x_label": "x [m]", "y_label": "y [m]", "z_label": "h [m]",
        },
    ),
    "image": (
        ti.viz.Image,
        {"field": CELLS, "step": nothing, "size": 90},
        {
            "field": CELLS[:, ::2].copy(), "cmap": "coolwarm", "limits": (0.2, 0.4), "smooth": True, "colorbar": False,
            "color_label": "height", "contours": 4, "contour_color": "red", "contour_width": 3.0,
            "vectors": np.ones((12, 8, 2)), "arrow_color": "red", "arrow_width": 3.0, "arrow_scale": 2.0,
            "plot_label": "joules", "steps_per_frame": 3, "size": 120, "label": "waves", "unattended_frames": 5,
            "runs_unseen": True,
            "timeline": 0.0, "name": "a run", "extent": ((-1, 1), (0, 5)), "axes": True,
            "x_label": "x [m]", "y_label": "y [m]",
            "grid": True, "norm": ("symlog", 0.1), "plot_scale": "log", "dt": 0.1,
        },
    ),
    "lines": (
        ti.viz.Image,
        {"field": CELLS, "contours": 3, "vectors": np.ones((12, 8, 2)), "size": 90},
        {
            "cmap": "gray", "limits": (0.2, 0.4), "contours": [0.5], "contour_color": "red", "contour_width": 3.0,
            "vectors": -np.ones((12, 8, 2)), "arrow_color": "red", "arrow_width": 3.0, "arrow_scale": 2.0,
        },
    ),
    "plot": (
        ti.viz.Plot,
        {"quantities": {"a": one, "b": one}, "step": nothing},
        {
            "size": (320, 160), "label": "loss", "kind": "dots", "steps_per_frame": 2, "unattended_frames": 3,
            "runs_unseen": True,
            "timeline": 2.0, "name": "a run", "scale": "log", "limits": (0.5, 2.0), "x": "a", "x_label": "t [s]",
            "x_scale": "log",
            "right": "b", "right_label": "b [J]", "right_scale": "log", "dt": 0.5,
        },
    ),
    "scene": (
        ti.viz.Scene,
        {"size": 90},
        {
            "up": "y", "azimuth": 80.0, "elevation": 50.0, "controls": "fly", "background": "#d94f5c",
            "renderer": "kernel", "size": (120, 60), "label": "balls", "plot_label": "joules", "steps_per_frame": 2,
            "unattended_frames": 3, "runs_unseen": True, "timeline": 2.0, "name": "a run", "plot_scale": "log",
            "dt": 0.1,
            "axes": True, "grid": True, "x_label": "x [m]", "y_label": "y [m]", "z_label": "h [m]",
            "bounds": ((0.0, 2.0),) * 3,
        },
    ),
}  # fmt: skip


def made(cls: Any, given: dict[str, Any]) -> Any:
    view = cls(**given)
    return view.particles(SPACE, 0.1, color="#3b7dd8") if cls is ti.viz.Scene else view


def seen(view: Any) -> tuple[Any, ...]:
    """What pages have of a view, what they are sent of its present state, and its picture."""
    state = {
        name: value
        for name, value in view.get_state([*view.traits(sync=True)]).items()
        if name not in {"layout", "identity", "_anywidget_id", "tabbable", "tooltip"}
    }
    frame = view.frames.present()
    buffers = [bytes(buffer) for buffer in frame.buffers]
    message = {name: value for name, value in frame.message.items() if name != "eyeVersion"}
    return state, message, buffers, picture_of(view).tolist()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (_, _, others) in OTHERS.items() for name in others])
def test_what_is_changed_later_looks_as_if_made_so(kind: str, name: str) -> None:
    cls, given, others = OTHERS[kind]
    view, wanted = made(cls, given), made(cls, {**given, name: others[name]})
    before = seen(view)
    setattr(view, name, others[name])
    after = seen(view)
    assert after == seen(wanted)
    invisible = {"unattended_frames", "runs_unseen"} | ({"azimuth", "elevation"} if kind == "particles" else set())
    inert = {"cmap", "limits", "colorbar", "edge_color", "edge_width", "arrow_color", "arrow_width", "arrow_scale"} | {
        "contour_color", "contour_width"
    }  # fmt: skip
    if name not in invisible and not (kind in {"particles", "image"} and name in inert):
        assert after != before, "nothing has changed"
    for one_view in (view, wanted):
        one_view.close()


@pytest.mark.parametrize("cls", [ti.viz.Particles, ti.viz.Image, ti.viz.Plot, ti.viz.Scene])
def test_every_argument_is_tried_or_fixed(cls: Any) -> None:
    tried = {name for one_class, _, others in OTHERS.values() for name in others if one_class is cls}
    fixed = {one.keyword for one in arguments_of(cls) if one.fixed}
    assert tried | fixed == {one.keyword for one in arguments_of(cls)} and not tried & fixed
    view = made(cls, next(given for one_class, given, _ in OTHERS.values() if one_class is cls))
    for name in fixed:
        with pytest.raises(ViewError, match=f"{name} of a view cannot be changed") as refused:
            setattr(view, name, nothing)
        assert refused.value.span.file == __file__ and refused.value.hint
    view.close()


@pytest.mark.parametrize("cls", [ti.viz.Particles, ti.viz.Image, ti.viz.Plot, ti.viz.Scene])
def test_the_docstring_names_the_arguments(cls: Any) -> None:
    parameters = inspect.getdoc(cls).split("Parameters\n----------\n")[1]
    parameters = re.split(r"\n\n\w+\n-+\n", parameters)[0]
    heads = [line.partition(" : ")[0] for line in parameters.splitlines() if re.match(r"\w", line)]
    assert sorted(", ".join(heads).split(", ")) == sorted(inspect.signature(cls).parameters)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("colour", 3, "Particles has no attribute 'colour'; did you mean 'color'"),
        ("limit", (0, 1), "did you mean 'limits'"),
        ("wdth", 3, "Particles has no attribute 'wdth'"),
        ("width", 300, "width of a view cannot be assigned"),
        ("state", "playing", "play()"),
        ("steps", 4, "steps of a view cannot be assigned"),
        ("colors", b"", "assign color"),
        ("cmap", "jett", "no colour map 'jett'"),
        ("norm", "logit", "norm must be"),
        ("x_label", 3, "x_label must be text"),
        ("radius", -1, "radius must be"),
        ("color", ["red", "mud"] * 15, r"color\[1\]: unknown color"),
        ("color", ["red"] * 3, "3 colours, and there are 30 particles"),
        ("bounds", 3, "bounds must be"),
        ("edges", np.array([[0, 99]]), "edge 0 joins"),
        ("size", 3, "size"),
        ("timeline", 2000, "timeline must be"),
        ("steps_per_frame", 0, "steps_per_frame must be at least 1"),
    ],
)
def test_what_is_refused_names_the_line_and_changes_nothing(name: str, value: Any, message: str) -> None:
    view = ti.viz.Particles(X, edges=PAIRS, size=90)
    before = seen(view)
    with pytest.raises(ViewError, match=re.escape(message) if "(" in message else message) as refused:
        setattr(view, name, value)
    assert refused.value.span.file == __file__
    assert seen(view) == before
    view.close()


def test_an_unknown_argument_is_refused_by_name() -> None:
    with pytest.raises(ViewError, match=r"Particles\(\) has no argument `stepp`\nhelp: did you mean `step`"):
        ti.viz.Particles(X, stepp=nothing)
    with pytest.raises(ViewError, match="missing a required argument: 'field'"):
        ti.viz.Image()


def test_widgets_can_be_linked_to_arguments() -> None:
    view = ti.viz.Image(CELLS, size=90)
    menu = Dropdown(options=["viridis", "plasma", "gray"])
    link((menu, "value"), (view, "cmap"))
    menu.value = "gray"
    assert view.cmap == "gray" and view.table == ti.viz.Image(CELLS, cmap="gray").table
    dots = ti.viz.Particles(X, size=90)
    slider = FloatSlider(min=1.0, max=9.0, value=2.0)
    link((slider, "value"), (dots, "radius"))
    slider.value = 7.0
    assert dots.sent["radius"] == 7.0
    assert isinstance(type(dots).radius, traitlets.TraitType)


def test_an_open_page_gets_a_frame_in_the_new_look() -> None:
    async def body(view: Any, page: Any) -> None:
        page.say(kind="ready", view="a", visible=True)
        await page.until(lambda: page.frames)
        before = len(page.frames)
        view.limits = (0.25, 0.5)
        await page.until(lambda: len(page.frames) > before)
        assert (page.frames[-1]["low"], page.frames[-1]["high"]) == (0.25, 0.5)
        await asyncio.sleep(0)

    scenario(lambda: ti.viz.Image(CELLS, size=90), body)


@pytest.mark.parametrize(
    "colors",
    [
        ["gray", "#d95f02", "#1b9e77"],
        ("gray", "#d95f02", "#1b9e77"),
        np.array(["gray", "#d95f02", "#1b9e77"]),
        np.array(["gray", 0xD95F02, "#1b9e77"], object),
        [0x808080, 0xD95F02, 0x1B9E77],
        np.array([0x808080, 0xD95F02, 0x1B9E77]),
        [(128 / 255,) * 3, (217 / 255, 95 / 255, 2 / 255), (27 / 255, 158 / 255, 119 / 255)],
        np.array([[128] * 3, [217, 95, 2], [27, 158, 119]], np.uint8),
        ["gray", 0xD95F02, (27 / 255, 158 / 255, 119 / 255)],
        [0x808080, (217 / 255, 95 / 255, 2 / 255), 0x1B9E77],
    ],
)
@pytest.mark.parametrize("how", ["given", "function"])
@pytest.mark.parametrize("argument", ["color", "edge_color", "arrow_color"])
def test_colours_of_each_in_every_form(colors: Any, how: str, argument: str) -> None:
    wanted = np.array([[128] * 3, [217, 95, 2], [27, 158, 119]], np.uint8)
    given = colors if how == "given" else lambda: colors
    x = np.array([[0.2, 0.2], [0.5, 0.5], [0.8, 0.8]])
    marks = {"edges": [[0, 1], [1, 2], [0, 2]], "arrows": np.ones((3, 2)) * 0.1}
    view = ti.viz.Particles(x, size=90, radius=6, **marks, **{argument: given})
    reference = ti.viz.Particles(x, size=90, radius=6, **marks, **{argument: wanted})
    assert (picture_of(view) == picture_of(reference)).all()
    for one_view in (view, reference):
        one_view.close()
