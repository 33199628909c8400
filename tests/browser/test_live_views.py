"""Images, plots and what the pointer, the sliders and the file buttons do, in a real page."""

from __future__ import annotations

import base64
import io
import itertools
import re

import numpy as np
import pytest
from PIL import Image

from tests.browser.harness import BOTH_FRONT_ENDS
from tests.browser.looks import unusable
from tests.browser.waiting import expect, poll, still_box
from tinote.viz.draw.colorbar import COLORBAR_HEIGHT

VIEW = "document.querySelector('.tinote-view')"
STAGE = ".tinote-view canvas.tinote-stage"
PAINTED = f"Number({VIEW}?.dataset.painted ?? 0)"

WAVES = """
import numpy as np
import tinote as ti
ti.init()
n = 96
height, speed = ti.field(ti.f32, shape=(n, n)), ti.field(ti.f32, shape=(n, n))

@ti.kernel
def wave(dt: ti.f32):
    for i, j in height:
        if 0 < i < n - 1 and 0 < j < n - 1:
            around = height[i - 1, j] + height[i + 1, j] + height[i, j - 1] + height[i, j + 1] - 4 * height[i, j]
            speed[i, j] = 0.998 * speed[i, j] + dt * around
    for i, j in height:
        height[i, j] += dt * speed[i, j]

@ti.kernel
def splash(at: ti.i32, up: ti.i32):
    for i, j in ti.ndrange(n, n):
        away = (i - at) ** 2 + (j - up) ** 2
        height[i, j] += ti.exp(-away / 20.0)

def poke(pointer):
    if pointer.pressed:
        splash(*pointer.element)

def energy():
    return float((speed.to_numpy() ** 2).sum())

view = ti.viz.Image(height, lambda: wave(0.3), cmap="coolwarm", limits=(-1, 1), smooth=True, pointer=poke,
                    energy=energy, label="waves", color_label="height")
view
"""

DRAG = """
import numpy as np
import tinote as ti
x = np.array([[0.3, 0.5], [0.7, 0.5]])
def drag(pointer):
    if pointer.element is not None:
        x[pointer.element] = pointer.position
view = ti.viz.Particles(x, lambda: None, radius=8, color=0xe02020, pointer=drag)
view
"""


GRADIENT = """
import ipywidgets
import tinote as ti
ti.init()
n = 48
w = ti.field(ti.f32, shape=(n, n), needs_grad=True)
loss = ti.field(ti.f32, shape=(), needs_grad=True)
k = ti.field(ti.f32, shape=())

@ti.kernel
def fill():
    for i, j in w:
        w[i, j] = (i + 0.5) / n - 0.5

@ti.kernel
def cost():
    for i, j in w:
        loss[None] += ti.sin(k[None] * w[i, j])

def differentiate(stiffness):
    k[None] = stiffness
    with ti.ad.Tape(loss=loss):
        cost()

fill()
view = ti.viz.Image(w.grad, cmap="coolwarm", label="gradient", size=300)
slider = ti.viz.slider(view, differentiate, 0, 20, value=1, label="stiffness")
ipywidgets.VBox([view, slider])
"""


ORBITS = """
import numpy as np
import tinote as ti
rng = np.random.default_rng(0)
x = rng.normal(0, 0.25, (600, 3))
def step():
    x[:] = x @ np.array([[np.cos(0.02), -np.sin(0.02), 0], [np.sin(0.02), np.cos(0.02), 0], [0, 0, 1]])
view = ti.viz.Particles(x, step, bounds=[(-0.7, 0.7)] * 3, radius=3, label="cloud")
view
"""


def test_a_fluid_is_poked_and_moves_on(notebook):
    page = notebook(WAVES)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    still = page.canvas(STAGE)
    assert (np.ptp(still[:, :, :3].reshape(-1, 3), axis=0) == 0).all()
    page.drag(STAGE, (0.25, 0.75), (0.3, 0.75))
    page.until("height.to_numpy().any() and view.frames.pointing._held is None")
    page.settle()
    poked = page.canvas(STAGE)
    rows, columns = poked.shape[:2]
    # How often the pointer has splashed on its way is the machine's affair; where it has, is not.
    up, across = np.argwhere(poked[:, :, 0] - poked[:, :, 2] > 100).mean(axis=0)
    assert abs(across / columns - 0.275) < 0.04 and abs(up / rows - 0.25) < 0.02
    page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
    # After how many steps the waves have got that far follows from where the pointer has splashed.
    poll(lambda: (page.canvas(STAGE) != poked).any(axis=2).mean(), lambda changed: changed > 0.2)
    status = page.page.locator(".tinote-status")
    expect(status).to_contain_text("96 × 96")
    # Where the mouse rests on the number of steps, it says how these run.
    expect(status).to_have_attribute("title", "Steps are replayed as a captured program")
    status.hover()
    assert page.problems == []


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_particle_is_dragged_while_nothing_plays(notebook):
    page = notebook(DRAG)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.drag(STAGE, (0.7, 0.5), (0.6, 0.2))
    page.until("x[1, 0] != 0.7 and view.frames.pointing._held is None")
    page.settle()
    left, right = eval(page.python("print(x.tolist())"))
    assert left == [0.3, 0.5]
    assert abs(right[0] - 0.6) < 0.02 and abs(right[1] - 0.2) < 0.02
    shown = page.canvas(STAGE)
    rows, columns = shown.shape[:2]
    assert shown[round(0.8 * rows), round(0.6 * columns), 1] < 80
    assert page.python("print(view.steps, view.state)") == "0 paused"


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_picture_and_a_recording_are_saved(notebook):
    page = notebook(WAVES)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.drag(STAGE, (0.5, 0.5), (0.5, 0.5))
    button = page.page.locator(".tinote-view").get_by_role
    with page.page.expect_download() as found:
        button("button", name="Save a picture").click()
    assert found.value.suggested_filename == "simulation.png"
    with Image.open(found.value.path()) as picture:
        assert picture.size == (480, 650 + COLORBAR_HEIGHT)
    button("button", name="Record a GIF").click()
    button("button", name="End the recording").wait_for()
    button("button", name="Play").click()
    page.wait(f"Number({VIEW}.dataset.step) > 12")
    button("button", name="Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    with page.page.expect_download() as found:
        button("button", name="End the recording").click()
    with open(found.value.path(), "rb") as file, Image.open(io.BytesIO(file.read())) as gif:
        assert gif.format == "GIF" and gif.n_frames > 5
    assert page.problems == []


def test_a_plot_alone_follows_an_optimisation(notebook):
    page = notebook(
        "import tinote as ti\nw = [9.0]\ndef step():\n    w[0] += 0.1 * (3.0 - w[0])\n"
        "loss = {'loss': lambda: (w[0] - 3.0) ** 2, 'w': lambda: w[0]}\n"
        "view = ti.viz.Plot(loss, step, label='loss')\nview.play()\nview"
    )
    page.run_all()
    page.wait(f"Number({VIEW}?.dataset.step ?? 0) > 30")
    page.page.locator(".tinote-view").get_by_role("button", name="Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    steps = page.settle()
    expect(page.page.locator(".tinote-status")).to_have_text(f"step {steps:,}")
    # However many steps there have been, the axis spans them all, and both curves run along the whole of it.
    chart = page.canvas(".tinote-view canvas.tinote-chart")
    for color in ((0x2F, 0x6F, 0xD0), (0xC9, 0x60, 0x12)):
        assert (np.abs(chart[:, :, :3] - color).sum(axis=2) < 60).any(axis=0).mean() > 0.8
    expect(page.page.locator("canvas.tinote-stage")).to_have_count(0)
    assert page.problems == []


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_a_gradient_follows_a_slider_of_ipywidgets(notebook):
    page = notebook(GRADIENT)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    first = page.canvas(STAGE)
    expect(page.page.locator(".widget-readout")).to_have_text("1")
    page.page.locator(".widget-slider").scroll_into_view_if_needed()
    track = still_box(page.page.locator(".widget-slider .noUi-base").first)
    handle = still_box(page.page.locator(".widget-slider .noUi-handle").first)
    page.page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.page.mouse.down()
    page.page.mouse.move(track["x"] + 0.25 * track["width"], handle["y"] + handle["height"] / 2, steps=8)
    page.page.mouse.up()
    page.until("4.5 < k[None] < 5.5 and abs(k[None] - slider.value) < 1e-5")
    page.settle()
    # d sin(k w) / dw = k cos(k w): at the edges, w = ±1/2, it changes its sign as k goes from 1 to about 5.
    later = page.canvas(STAGE)
    middle = later.shape[0] // 2
    assert first[middle, 4, 0] > first[middle, 4, 2] and later[middle, 4, 0] < later[middle, 4, 2]
    assert later[middle, middle, 0] > later[middle, middle, 2]
    assert page.problems == []


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_particles_in_space_are_turned_by_pointer_and_keys(notebook):
    page = notebook(ORBITS)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    first = page.canvas(STAGE)
    assert 0.02 < (first[:, :, :3].min(axis=2) < 200).mean() < 0.3
    box = still_box(page.page.locator(STAGE))
    place = [int(box[side] + box[along] / 2) for side, along in (("x", "width"), ("y", "height"))]
    page.page.mouse.move(*place)
    # 600 particles in the middle: one is within reach, and a click picks it.
    tip = page.page.locator(".tinote-view .tinote-tip").first
    expect(tip).to_have_text(re.compile(r"^particle \d+ · x .*, z .*$"))
    page.page.mouse.click(*place)
    page.until("view.picked is not None")
    expect(tip).to_have_text(re.compile(f"^particle {page.python('print(view.picked)')} · "))
    page.drag(STAGE, (0.3, 0.5), (0.6, 0.6))
    page.until(f"abs(view.azimuth - {(30 - 54) % 360}) < 2 and abs(view.elevation - 2) < 2")
    page.settle()
    azimuth = float(page.python("print(view.azimuth)"))
    poll(lambda: (page.canvas(STAGE) != first).any(axis=2).mean(), lambda changed: changed > 0.02)
    page.page.locator(STAGE).focus()
    page.page.keyboard.press("ArrowLeft")
    page.until(f"abs(view.azimuth - {(azimuth + 5) % 360}) < 1e-6")
    page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
    page.wait(f"Number({VIEW}.dataset.step) > 10")
    assert page.problems == []


FLOW = """
import numpy as np
import tinote as ti
n = 48
a, b = np.meshgrid(np.linspace(-2, 2, n), np.linspace(-2, 2, n), indexing="ij")
height, flow = np.zeros((n, n)), np.zeros((n, n, 2))
time = [0.0]
def step():
    time[0] += 0.1
    height[:] = np.exp(-((a - np.cos(time[0])) ** 2) - (b - np.sin(time[0])) ** 2)
    along, up = np.gradient(height)
    flow[..., 0], flow[..., 1] = -up, along
step()
view = ti.viz.Image(height, step, contours=[0.2, 0.4, 0.6, 0.8], vectors=flow, limits=(0, 1), size=400)
view
"""


def test_contours_and_arrows_in_the_page_are_those_of_the_still_picture(notebook):
    page = notebook(FLOW)
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
    page.wait(f"Number({VIEW}.dataset.step) > 10")
    page.page.locator(".tinote-view").get_by_role("button", name="Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    page.settle()
    still = np.array(eval(page.python("print(view.painted().pixels.ravel().tolist())"))).reshape(400, 400, 3)[
        5:-5, 5:-5
    ]
    shown = page.canvas(STAGE)[5:-5, 5:-5, :3]
    assert 0.01 < (still.min(axis=2) > 230).mean() < 0.2
    assert (np.abs(still - shown).max(axis=2) > 40).mean() < 0.004
    expect(page.page.locator(".tinote-colorbar")).to_have_attribute("aria-label", "Colours: from 0 to 1")
    expect(page.page.locator(".tinote-status")).to_contain_text("arrows up to 0.0")
    # In a view of 200 pixels the slider stands below the buttons, which fit.
    page.page.evaluate("() => { document.querySelector('.tinote-group').style.maxWidth = '200px' }")
    boxes = {part: page.page.locator(f".tinote-{part}").first for part in ("group", "play", "save", "speed")}

    def is_narrow() -> bool:
        group, play, save, speed = (box.bounding_box() for box in boxes.values())
        inside = (
            group["x"] <= play["x"] and save["x"] + save["width"] <= group["x"] + group["width"] <= group["x"] + 200
        )
        return inside and play["y"] == save["y"] and speed["y"] >= save["y"] + save["height"]

    poll(is_narrow, True)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.set_theme(theme)
        poll(lambda: unusable(page.page), [])
    assert page.problems == []


SIDE_BY_SIDE = """
import numpy as np
import tinote as ti
from ipywidgets import Accordion, Box, FloatSlider, GridBox, HBox, Layout, Tab, VBox
ti.init()
field = ti.field(ti.f32, shape=8)
x = np.random.default_rng(0).random((60, 2)).astype(np.float32)
def view(size=320):
    return ti.viz.Particles(x, lambda: None, radius=5, size=size, energy=lambda: float(x.mean()))

@ti.kernel
def double():
    for i in field:
        field[i] *= 2

LAYOUTS = {
    "row": lambda: HBox([view(), view()]),
    "three": lambda: HBox([view(480), view(480), view(480)]),
    "columns": lambda: HBox([VBox([view(), FloatSlider()]), VBox([view(), FloatSlider()])]),
    "boxed": lambda: HBox([Box([view()], layout=Layout(width="320px")), view()]),
    "grid": lambda: GridBox([view(), view()], layout=Layout(grid_template_columns="1fr 1fr")),
    "tab": lambda: Tab([view()], titles=["one"]),
    "accordion": lambda: Accordion([view()], titles=["one"], selected_index=0),
    "explorer": lambda: HBox([view(), ti.viz.explore(double)]),
}
"""


LAYOUTS = ("row", "three", "columns", "boxed", "grid", "tab", "accordion", "explorer")

# Of each view: its name, its left and right edges and width, those of its stage, and the right edge of its output.
EDGES = """() => [...document.querySelectorAll('.tinote-view, .tinote-explorer')].map((view) => {
    const inner = (view.querySelector('.tinote-stage') ?? view).getBoundingClientRect();
    const cell = view.closest('.jp-OutputArea-output').getBoundingClientRect();
    const { top, left, right, width } = view.getBoundingClientRect();
    return { top, left, right, width, stage: inner.width, cell: cell.top, end: cell.right };
})"""


@pytest.mark.parametrize("width", [700, 1600])
def test_views_in_any_layout_of_widgets_have_room_and_do_not_overlap(notebook, pictures, width):
    page = notebook(SIDE_BY_SIDE, *(f"LAYOUTS[{name!r}]()" for name in LAYOUTS), width=width, height=1600)
    page.run_all()
    page.page.wait_for_function(f"document.querySelectorAll('{STAGE}').length === 14")
    page.page.wait_for_selector(".tinote-explorer [role=listbox]")
    found = poll(lambda: page.page.evaluate(EDGES), lambda views: all(view["stage"] >= 140 for view in views))
    assert len(found) == 15
    page.page.screenshot(path=pictures.folder / f"side_by_side_{width}.png")
    for view in found:
        assert view["width"] >= 150 and view["stage"] <= view["width"] and view["right"] <= view["end"] + 1, view
    for one, two in itertools.pairwise(found):
        if one["cell"] == two["cell"] and one["top"] == two["top"]:
            assert one["right"] <= two["left"] + 1, (one, two)
    # Where there is room, each has the size that it was given.
    assert width < 1600 or [round(view["stage"]) for view in found[:2]] == [320, 320]
    assert page.problems == []


CHANGED = """
import numpy as np
import tinote as ti
from ipywidgets import Dropdown, VBox, link
x = np.random.default_rng(0).random((60, 2))
pairs = np.stack([np.arange(59), np.arange(1, 60)], axis=1)
dots = ti.viz.Particles(x, lambda: None, radius=5, size=300)
cells = ti.viz.Image(np.random.default_rng(1).random((24, 16)), lambda: None, size=240)
menu = Dropdown(options=["viridis", "plasma", "gray"])
link((menu, "value"), (cells, "cmap"))
VBox([dots, menu, cells])
"""

#: what is assigned to one view after another, in an open page
CHANGES = {
    "dots": (
        "color=['#d94f5c', '#2e7d32', 0x3b7dd8] * 20",
        "radius=9",
        "bounds=((0, 2), (-0.5, 1.5))",
        "background='#204060'",
        "edges=pairs",
        "edge_width=5",
        "color=x[:, 0].copy()",
        "cmap='coolwarm'",
        "limits=(0.25, 0.75)",
        "size=(240, 180)",
        "arrows=x - 0.5",
        "glow=True",
        "edges=None",
    ),
    "cells": ("cmap='plasma'", "limits=(0.2, 0.4)", "contours=[0.5]", "smooth=True", "size=120", "contours=None"),
}


def test_what_is_assigned_to_a_view_is_seen_in_the_open_page(notebook, pictures):
    page = notebook(CHANGED, width=390, height=1400)
    page.run_all()
    page.page.wait_for_function(
        "[...document.querySelectorAll('.tinote-view')].filter((one) => one.dataset.painted > 0).length === 2"
    )
    stages = f":nth-match({STAGE}, 1)", f":nth-match({STAGE}, 2)"

    def differs(name: str, stage: str) -> float:
        """How much of the stage is not as in the still picture."""
        png = page.python(f"import base64; print(base64.b64encode({name}.painted().png()).decode())")
        still = np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")).astype(int)
        shown = page.canvas(stage)[..., :3]
        if still.shape != shown.shape:
            return 1.0
        return float((np.abs(still - shown)[5:-5, 5:-5].max(axis=2) > 40).mean())

    for stage, (name, changes) in zip(stages, CHANGES.items(), strict=True):
        for change in changes:
            argument, _, value = change.partition("=")
            before = page.canvas(stage)
            assert page.python(f"{name}.{argument} = {value}") == ""
            poll(lambda stage=stage, before=before: not np.array_equal(page.canvas(stage), before), True)
            poll(lambda name=name, stage=stage: differs(name, stage), lambda found: found < 0.01)
    page.page.locator(".widget-dropdown select").select_option("gray")
    page.until("cells.cmap == 'gray'")
    poll(lambda: differs("cells", stages[1]), lambda found: found < 0.01)
    page.page.screenshot(path=pictures.folder / "changed_later_light.png")
    page.set_theme("JupyterLab Dark")
    page.page.screenshot(path=pictures.folder / "changed_later_dark.png")
    assert page.problems == []
