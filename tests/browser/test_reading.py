"""What a reader takes from views: axes, legends and values under the pointer, in pages as they were exported."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import tinote as ti
from tests.browser.harness import Page
from tests.browser.looks import unusable
from tests.browser.test_pages import Opened
from tests.browser.test_pages import opened as opened  # a fixture
from tests.browser.waiting import expect, poll, still_box
from tinote.viz.draw.axes import room_of

OUTSIDE = 40
"""Shades by which ink differs from paper, at least."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with particles, an image and two plots."""
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=3)
    x.from_numpy(np.array([[-1.0, -1.0], [0.0, 1.0], [1.5, 0.5]], np.float32))
    u = ti.field(ti.f32, shape=(40, 30))
    u.from_numpy((10.0 ** (np.arange(40)[:, None] / 10) + np.zeros((40, 30))).astype(np.float32))
    loss = ti.field(ti.f32, shape=())
    angle = ti.field(ti.f32, shape=())
    place = ti.Vector.field(2, ti.f32, shape=())
    loss[None] = 100.0

    @ti.kernel
    def descend():
        loss[None] *= 0.5
        angle[None] += 0.1
        place[None] = [ti.cos(angle[None]), ti.sin(angle[None])]

    views = [
        ti.viz.Particles(x, descend, bounds=((-2, 2), (-2, 2)), radius=4,
                         x_label="x [m]", y_label="y [m]", grid=True, size=320, name="balls in a row"),
        ti.viz.Image(u, extent=((0, 4e-6), (0, 3)), norm="log", color_label="u [V]", x_label="x [m]", size=320),
        ti.viz.Plot({"loss": lambda: loss[None], "angle": lambda: angle[None]}, descend, scale="log", right="angle",
                    label="loss [J]", right_label="angle [rad]", dt=0.5, size=(420, 220)),
        ti.viz.Plot({"q": lambda: place[None][0], "p": lambda: place[None][1]}, descend, x="q", label="p"),
    ]  # fmt: skip
    file = tmp_path_factory.mktemp("measured") / "page.html"
    ti.viz.page(views, file)
    return file


def inked(page: Opened, selector: str, view: int) -> np.ndarray:
    """Which pixels of the axes of a view are ink, by their own canvas."""
    text = poll(lambda: page.views.nth(view).locator(selector).evaluate("(canvas) => canvas.toDataURL()"), bool)
    pixels = np.asarray(Pillow.open(io.BytesIO(base64.b64decode(text.split(",")[1]))))
    return pixels[:, :, 3] > OUTSIDE


def point_at(page: Opened, view: int, across: float, up: float, stage: str = ".tinote-stage") -> Any:
    """Move the pointer to a place; what tells of it."""
    shown = page.views.nth(view).locator(stage)
    shown.scroll_into_view_if_needed()
    box = still_box(shown)
    page.page.mouse.move(box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"])
    return page.views.nth(view).locator(".tinote-tip:visible")


@pytest.mark.parametrize("width", [390, 1280])
def test_axes_are_around_the_stage_at_every_width(opened: Callable[..., Opened], measured: Path, width: int) -> None:
    page = opened(measured, viewport={"width": width, "height": 900}).painted()
    for view in (0, 1):
        stage = page.views.nth(view).locator(".tinote-stage")
        around = page.views.nth(view).locator(".tinote-axes")
        inner, outer = still_box(stage), still_box(around)
        assert outer["x"] >= 0 and outer["x"] + outer["width"] <= width
        left, below = inner["x"] - outer["x"], inner["y"] + inner["height"] - outer["y"]
        assert left >= 18 and outer["y"] + outer["height"] - inner["y"] - inner["height"] >= 22
        ink = inked(page, ".tinote-axes", view)
        scale = ink.shape[1] / outer["width"]
        assert ink[:, : int(left * scale) - 2].any() and ink[int(below * scale) + 6 :].any()
        inside = ink[10 : int(below * scale) - 10, int(left * scale) + 10 : -30]
        assert inside.any() == (view == 0), "the grid is that of the particles alone"
    assert page.problems == []


def test_values_are_told_under_the_pointer(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    expect(point_at(page, 0, 0.5, 0.75)).to_have_text("particle 1 · x [m] 0, y [m] 1.000")
    expect(point_at(page, 0, 0.9, 0.1)).to_have_text(re.compile(r"x \[m\] 1\.\d+, y \[m\] −1\.\d+$"))
    # Cell 10 holds 10 V; its colour tells that to 3 %.
    expect(point_at(page, 1, 10.5 / 40, 0.5)).to_have_text(re.compile(r".* \[10, 15\]: u \[V\] (10\.[0-2]|9\.[89])$"))
    page.page.mouse.move(2, 2)
    expect(page.page.locator(".tinote-tip:visible")).to_have_count(0)
    assert page.problems == []


@pytest.fixture(scope="module")
def in_space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with particles in space, seen along the y axis, and a scene."""
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(3, ti.f32, shape=2)
    x.from_numpy(np.array([[0.5, 0.5, 0.5], [0.5, 0.25, 0.5]], np.float32))
    speed = ti.field(ti.f32, shape=2)
    speed.from_numpy(np.array([1.5, 2.5], np.float32))

    @ti.kernel
    def rise():
        x[1].z += 0.25
        speed[1] += 1.0

    scene = ti.viz.Scene(rise, size=320, azimuth=0, elevation=0).particles([[0.0, 0.0, 0.0]], 0.5, name="the sun")
    views = [
        ti.viz.Particles(x, rise, azimuth=-90, elevation=0, radius=8, color=speed, color_label="speed",
                         z_label="height [m]", size=320),
        scene.lines([[0, -2, -1], [0, 2, -1]], 4.0),
    ]  # fmt: skip
    file = tmp_path_factory.mktemp("space") / "page.html"
    ti.viz.page(views, file)
    return file


def test_things_in_space_are_told_under_the_pointer(opened: Callable[..., Opened], in_space: Path) -> None:
    page = opened(in_space).painted()
    in_front = "particle 1 · x 0.5, y 0.25, height [m] "
    expect(point_at(page, 0, 0.5, 0.5)).to_have_text(f"{in_front}0.5 · speed 2.5")
    page.run(1)  # The pointer rests where another one is seen now.
    expect(point_at(page, 0, 0.5, 0.5)).to_have_text("particle 0 · x 0.5, y 0.5, height [m] 0.5 · speed 1.5")
    expect(point_at(page, 1, 0.5, 0.6)).to_have_text(re.compile(r"the sun at \(0\.\d+, .*\)"))
    page.page.mouse.down()
    page.page.mouse.up()
    expect(page.views.nth(1).locator(".tinote-status")).to_contain_text("the sun at (0")
    page.views.nth(0).locator(".tinote-stage").click()
    expect(page.views.nth(0).locator(".tinote-status")).to_contain_text("picked 0")
    assert page.problems == []


def test_a_plot_tells_its_samples_and_takes_the_timeline_there(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    for view in (2, 3):
        for _ in range(10):
            page.run(1, view)
    # The middle of the stage, between the axes, is that of the run.
    expect(point_at(page, 2, 0.5, 0.5, ".tinote-chart")).to_have_text("step 5 · time 2.5 · loss 3.125 · angle 0.5")
    page.page.mouse.down()
    page.page.mouse.up()
    page.wait_step(5, view=2)
    expect(page.views.nth(2).get_by_text("(right)")).to_have_count(1)
    found = point_at(page, 3, 0.5, 0.1, ".tinote-chart")
    expect(found).to_have_text(re.compile(r"step \d+ · q −?[\d.]+ · p [\d.]+"))
    assert page.problems == []


def test_the_plane_is_zoomed_and_moved_and_comes_back(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    for view in (0, 1):
        stage = page.views.nth(view).locator(".tinote-stage")
        painted = partial(stage.evaluate, "(canvas) => canvas.toDataURL()")
        whole = painted()
        box = still_box(stage)
        middle = box["x"] + box["width"] / 2, box["y"] + 0.25 * box["height"]
        page.page.mouse.click(*middle)
        page.page.mouse.wheel(0, -600)
        fit = page.views.nth(view).get_by_role("button", name="Fit: show everything")
        expect(fit).to_have_count(1)
        poll(painted, whole.__ne__)
        if view == 0:
            # The place under the pointer stays, and its numbers have more digits.
            expect(point_at(page, 0, 0.5, 0.75)).to_have_text(
                re.compile(r"particle 1 · x \[m\] 0(\.0+)?, y \[m\] 1\.000+$")
            )
        page.page.mouse.move(*middle)
        page.page.mouse.down()
        page.page.mouse.move(middle[0] + 40, middle[1] + 20, steps=3)
        page.page.mouse.up()
        moved = painted()
        stage.press("ArrowLeft")
        poll(painted, moved.__ne__)
        if view:
            stage.dblclick()
        else:
            fit.click()
        expect(fit).to_have_count(0)
        poll(painted, whole.__eq__)
    assert page.problems == []


def test_files_of_a_view_have_names_and_sizes(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    for _ in range(3):
        page.run(1, 2)
    plot = page.views.nth(2)
    stage = page.views.nth(0).locator(".tinote-stage")
    shown = stage.evaluate("(canvas) => [canvas.width, canvas.height]")
    files = {}
    for view, name in ((0, "Picture, 2×"), (2, "Plot as CSV"), (2, "Picture, 2×")):
        page.button("Save as…", view).click()
        with page.page.expect_download() as saved:
            page.views.nth(view).get_by_role("menuitem", name=name).click()
        files[view, name] = saved.value
    assert files[0, "Picture, 2×"].suggested_filename == "balls in a row.png"
    assert files[2, "Plot as CSV"].suggested_filename == "simulation.csv"
    rows = Path(files[2, "Plot as CSV"].path()).read_text("utf-8").splitlines()
    assert rows[:2] == ["step,time,loss,angle", "0,0,100,0"] and rows[3].startswith("2,1,25,0.2")
    picture = Pillow.open(files[0, "Picture, 2×"].path())
    assert picture.width > 2 * 320 + 2 * 20 and picture.height > 2 * 320
    assert Pillow.open(files[2, "Picture, 2×"].path()).width == 2 * 420
    # The view is as it was.
    poll(lambda: stage.evaluate("(canvas) => [canvas.width, canvas.height]"), lambda now: now == shown)
    page.button("Save as…", 2).click()
    plot.get_by_role("menuitem").first.press("Escape")
    expect(plot.get_by_role("menu")).to_be_hidden()
    assert page.problems == []


REFUSED = """
import numpy as np
import tinote as ti
x = np.random.default_rng(0).random((9, 2))
def step():
    x[:] = (x + 0.01) % 1.0
view = ti.viz.Particles(x, step, size=240)
view
"""


def test_a_view_says_why_there_is_no_page_of_it_and_goes_on(notebook: Callable[..., Page]) -> None:
    page = notebook(REFUSED)
    page.run_all()
    view = page.page.locator(".tinote-view")
    view.get_by_role("button", name="Play").click()
    page.wait("Number(document.querySelector('.tinote-view')?.dataset.step) > 5")
    view.get_by_role("button", name="Save as…").click()
    view.get_by_role("menuitem", name="Page that runs").click()
    expect(view.locator(".tinote-kept").last).to_have_text(
        re.compile(r"^Not saved: Cell In\[1\], line 5: .*an ndarray")
    )
    expect(view.get_by_role("alert")).to_be_hidden()
    expect(view).to_have_attribute("data-state", "paused")  # A page begins where the view was.
    before = poll(lambda: int(view.get_attribute("data-step") or 0), lambda step: step > 5)
    view.get_by_role("button", name="Play").click()
    page.wait(f"Number(document.querySelector('.tinote-view').dataset.step) > {before + 5}")
    assert page.problems == []


STILL = """
import numpy as np
import tinote as ti
ti.viz.Image(np.random.default_rng(0).random((9, 9)), size=240, name="cells")
"""


def test_a_view_without_a_step_is_saved_and_fills_the_screen(notebook: Callable[..., Page]) -> None:
    page = notebook(STILL)
    page.run_all()
    view = page.page.locator(".tinote-view")
    buttons = view.locator(".tinote-controls button:visible")
    names = ["Save a picture", "Save as…", "Full screen"]
    poll(lambda: [button.get_attribute("aria-label") for button in buttons.all()], names)
    with page.page.expect_download() as saved:
        buttons.first.click()
    assert saved.value.suggested_filename == "cells.png"
    # Neither steps nor a place in time.
    expect(view.locator(".tinote-line")).to_have_text(re.compile("^9 × 9 · 0[^a-z]*to [^a-z]*$"))
    assert unusable(page.page) == []
    buttons.last.click()
    expect(view.get_by_role("button", name="Leave the full screen")).to_be_visible()
    assert page.problems == []


def test_a_view_is_made_larger(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    stage = page.views.nth(0).locator(".tinote-stage")
    before = still_box(stage)
    grip = page.views.nth(0).locator(".tinote-grip")
    corner = still_box(grip)
    page.page.mouse.move(corner["x"] + 12, corner["y"] + 12)
    page.page.mouse.down()
    page.page.mouse.move(corner["x"] + 132, corner["y"] + 60, steps=4)
    page.page.mouse.up()
    larger = still_box(stage)
    assert larger["width"] == pytest.approx(before["width"] + 120, abs=3)
    assert larger["height"] / larger["width"] == pytest.approx(before["height"] / before["width"], rel=0.01)
    sharp = stage.evaluate("(canvas) => canvas.width / canvas.clientWidth")
    assert sharp == pytest.approx(1.0, abs=0.02)
    grip.dblclick()
    assert still_box(stage)["width"] == pytest.approx(before["width"], abs=1)
    page.button("Full screen").click()
    expect(page.page.locator(".tinote-view:fullscreen")).to_have_count(1)
    full = still_box(stage)
    assert full["width"] > 1.2 * before["width"] and full["y"] + full["height"] <= 900
    page.button("Full screen").click()
    expect(page.page.locator(".tinote-view:fullscreen")).to_have_count(0)
    assert still_box(stage)["width"] == pytest.approx(before["width"], abs=1)
    assert page.problems == []


def test_a_saved_picture_has_the_axes(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    with page.page.expect_download() as saved:
        page.views.nth(0).get_by_role("button", name="Save a picture").click()
    picture = np.asarray(Pillow.open(saved.value.path()).convert("L")).astype(int)
    x = {"label": "x [m]", "ticks": []}
    assert picture.shape[1] > 320 + room_of({"x": x, "y": x}).left
    assert picture[:, :20].min() < 200 and page.problems == []
