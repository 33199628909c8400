"""What a reader takes from views: axes, legends and values under the pointer, in pages as they were exported."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import tinote as ti
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
                         x_label="x [m]", y_label="y [m]", grid=True, size=320),
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


def test_a_saved_picture_has_the_axes(opened: Callable[..., Opened], measured: Path) -> None:
    page = opened(measured).painted()
    with page.page.expect_download() as saved:
        page.views.nth(0).get_by_role("button", name="Save a picture").click()
    picture = np.asarray(Pillow.open(saved.value.path()).convert("L")).astype(int)
    x = {"label": "x [m]", "ticks": []}
    assert picture.shape[1] > 320 + room_of({"x": x, "y": x}).left
    assert picture[:, :20].min() < 200 and page.problems == []
