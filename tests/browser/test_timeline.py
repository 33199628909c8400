"""The slider below a view shows earlier frames again: of each kind of view, in pages and in notebooks."""

from __future__ import annotations

import base64
import inspect
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tinote as ti
from tests.browser.looks import ALL_WIDTHS, PHONE, WIDTHS, Pictures, inaccessible, unreadable, unusable
from tests.browser.test_pages import DARK, Opened, opened
from tests.browser.waiting import expect, poll, still_box

__all__ = ["opened"]

STEPS = 16
BACK = 6
KINDS = ("particles", "image", "plot", "scene")
APART = {"particles": 0, "image": 0, "plot": 0, "scene": 120}
"""By how much the same frame may differ when it is painted again, of 255: WebGL anti-aliases edges as it likes."""

MOST_APART = 120
ROOM = 40  # Frames, for which there is room in a small timeline.

CANVAS = "(node) => node.toDataURL()"
FITS = "() => document.documentElement.scrollWidth <= innerWidth"


def differ(one: np.ndarray, other: np.ndarray) -> int:
    """By how much two pictures differ where they do most."""
    return int(np.abs(one - other).max()) if one.shape == other.shape else 255


def views() -> dict[str, Callable[..., Any]]:
    """What makes a view of each kind. What one shows depends on nothing but the number of its step."""
    x = ti.Vector.field(2, ti.f32, shape=20)
    v = ti.Vector.field(2, ti.f32, shape=20)
    heat = ti.field(ti.f32, shape=(24, 16))
    balls = ti.Vector.field(3, ti.f32, shape=30)
    time = ti.field(ti.i32, shape=())

    @ti.kernel
    def draw():
        for i in x:
            angle = 0.3 * i + 0.2 * time[None]
            v[i] = ti.Vector([ti.cos(angle), ti.sin(angle)])
            x[i] = 0.5 + (0.1 + 0.015 * i) * v[i]
        for i, j in heat:
            heat[i, j] = ti.sin(0.3 * i + 0.2 * time[None]) * ti.cos(0.2 * j)
        for i in balls:
            balls[i] = ti.Vector([ti.cos(0.7 * i), ti.sin(0.7 * i + 0.1 * time[None]), 0.1 * i - 1.0])

    @ti.kernel
    def tick():
        time[None] += 1

    def step():
        tick()
        draw()

    def reset():
        time[None] = 0
        draw()

    def put(pointer):
        time[None] += 100

    reset()
    how = {"step": step, "reset": reset, "plots": {"time": lambda: time[None]}, "label": "moving"}
    return {
        "particles": lambda **more: ti.viz.Particles(
            x, trail=6, radius=5, arrows=v, size=440, pointer=put, **how, **more
        ),
        "image": lambda **more: ti.viz.Image(heat, limits=(-1, 1), contours=4, size=440, **how, **more),
        "plot": lambda **more: ti.viz.Plot(lambda: time[None], step, reset=reset, label="time", **more),
        "scene": lambda **more: ti.viz.Scene(renderer="page", size=(440, 330), **how, **more).particles(
            balls, radius=0.1, color="#d94f5c"
        ),
    }


def ends(row: Row) -> list[int]:
    """The numbers of the oldest and the newest frame that are kept, and of the one that is shown."""
    return row.slider.evaluate("(node) => [node.min, node.max, node.value].map(Number)")


def back(row: Row) -> str:
    """Go back a frame. Gives where that has led."""
    row.slider.press("ArrowLeft")
    return row.text.inner_text()


class Row:
    """The slider of a view, and what the view shows."""

    def __init__(self, view: Any) -> None:
        self.view = view
        self.slider = view.get_by_label("Timeline", exact=True)
        self.text = view.locator(".tinote-timeline-text")
        self.canvas = view.locator("canvas").first

    def button(self, name: str) -> Any:
        return self.view.get_by_role("button", name=name)

    def expect_step(self, step: int) -> None:
        expect(self.view).to_have_attribute("data-step", str(step))

    def picture(self) -> np.ndarray:
        """The stage, shape (height, width, 3), or the plot where there is none."""
        png = base64.b64decode(self.canvas.evaluate(CANVAS).partition(",")[2])
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)

    def advance(self, steps: int = STEPS) -> list[np.ndarray]:
        """Make frames of a step each. Gives what each showed, the first before them."""
        self.expect_step(0)
        shown = [self.picture()]
        for at in range(steps):
            self.button("Step: advance one frame").click()
            self.expect_step(at + 1)
            shown.append(self.picture())
        return shown

    def goes_back(self, kind: str) -> None:
        """Look at earlier frames by the keyboard, and at the present again."""
        shown = self.advance()
        assert all(differ(one, other) > MOST_APART for one, other in itertools.pairwise(shown))
        expect(self.text).to_have_text("now")
        self.slider.focus()
        for _ in range(BACK):
            self.slider.press("ArrowLeft")
        self.expect_step(STEPS - BACK)
        expect(self.text).to_have_text(f"{BACK} steps ago")
        expect(self.view.locator(".tinote-status")).to_contain_text(f"step {STEPS - BACK}")
        expect(self.view.locator(".tinote-value")).to_have_text(str(STEPS - BACK))
        # A plot has a line where the sample is; all else is as it was.
        if kind != "plot":
            poll(lambda: differ(self.picture(), shown[STEPS - BACK]), lambda apart: apart <= APART[kind])
        else:
            poll(lambda: min(differ(self.picture(), one) for one in shown), lambda apart: apart > MOST_APART)
        self.slider.press("Home")
        self.expect_step(0)
        expect(self.view.locator(".tinote-value")).to_have_text("0")
        self.slider.press("End")
        self.expect_step(STEPS)
        expect(self.text).to_have_text("now")
        poll(lambda: differ(self.picture(), shown[-1]), lambda apart: apart <= APART[kind])

    def goes_on(self) -> None:
        """What goes back pauses, and what goes on does so from the present."""
        self.button("Play").click()
        poll(lambda: int(self.view.get_attribute("data-step")), lambda step: step > STEPS + 10)
        self.slider.focus()
        self.slider.press("Home")
        expect(self.view).to_have_attribute("data-state", "paused")
        self.expect_step(0)
        present = poll(lambda: ends(self), lambda found: found[2] == found[0] < found[1])[1]
        self.button("Step: advance one frame").click()
        expect(self.text).to_have_text("now")
        poll(lambda: int(self.view.get_attribute("data-step")), lambda step: step > present)
        poll(lambda: back(self), lambda text: text.endswith("ago"))  # The frame of the step may come only now.
        self.button("Play").click()
        expect(self.text).to_have_text("now")
        poll(lambda: int(self.view.get_attribute("data-step")), lambda step: step > present + 10)
        self.button("Reset: back to the start").click()
        self.button("Stop: end the run").click()
        expect(self.text).to_have_text("now")


def row_of(kind: str, opened: Callable[..., Opened], folder: Path, options: dict[str, Any] | None = None) -> Any:
    """A page with a view of this kind, and its slider."""
    ti.init(arch=ti.cpu)
    file = views()[kind](**(options or {})).save(folder / f"{kind}.html")
    found = opened(file, has_touch=True).painted()
    return found, Row(found.views.first)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_shows_earlier_frames(
    kind: str, opened: Callable[..., Opened], tmp_path: Path, pictures: Pictures
) -> None:
    found, row = row_of(kind, opened, tmp_path)
    row.goes_back(kind)
    row.slider.press("ArrowLeft")
    row.expect_step(STEPS - 1)
    for width in ALL_WIDTHS if pictures.wanted else (PHONE, *WIDTHS):
        found.page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            row.slider.press("End")
            found.page.emulate_media(color_scheme=theme)
            poll(lambda: found.page.evaluate(DARK), theme == "dark")
            row.slider.press("PageDown")
            poll(lambda: unreadable(found.page, 4) + unusable(found.page), [])
            assert inaccessible(found.page, "html") == []
            poll(lambda: found.page.evaluate(FITS), True)
            # The slider is as wide as what is above it, and what it shows stands at that edge.
            slider, text, around = map(still_box, (row.slider, row.text, row.view.locator(".tinote-group")))
            ends = [box["x"] + box["width"] for box in (slider, text, around)]
            assert slider["x"] == pytest.approx(around["x"], abs=1) and ends == pytest.approx([ends[0]] * 3, abs=1)
            found.page.screenshot(path=pictures.folder / f"page_{kind}_{width}_{theme}.png", full_page=True)
    row.slider.press("End")
    row.goes_on()
    assert found.problems == []


def test_fingers_go_back_and_a_press_on_the_stage_returns(opened: Callable[..., Opened], tmp_path: Path) -> None:
    found, row = row_of("particles", opened, tmp_path)
    row.advance()
    box = still_box(row.slider)
    found.page.touchscreen.tap(box["x"] + 0.25 * box["width"], box["y"] + box["height"] / 2)
    low, high, now = poll(lambda: ends(row), lambda found: found[2] < found[1])
    assert low + 0.1 * (high - low) < now < low + 0.4 * (high - low)
    row.expect_step(now - low)
    with found.page.expect_download() as saved:
        row.button("Save a picture").click()
    assert Path(saved.value.path()).read_bytes()[:4] == b"\x89PNG"
    row.expect_step(now - low)
    # What acts on the simulation acts on the present.
    stage = still_box(row.canvas)
    found.page.mouse.click(stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2)
    expect(row.text).to_have_text("now")
    row.expect_step(STEPS)
    poll(lambda: float(row.view.locator(".tinote-value").inner_text()), lambda value: value > STEPS)
    assert found.problems == []


def test_frames_take_no_more_than_their_room(opened: Callable[..., Opened], tmp_path: Path) -> None:
    found, row = row_of("particles", opened, tmp_path, {"timeline": ROOM * 1000 / 1e6})
    row.button("Play").click()
    for _ in range(5):
        low, high, _ = poll(lambda: ends(row), lambda found: found[0] > 5)  # The oldest frames have gone.
        assert 5 < high - low < ROOM  # Each takes 1,000 bytes, and its arrays.
    row.slider.focus()
    row.slider.press("Home")
    expect(row.view).to_have_attribute("data-state", "paused")
    poll(lambda: int(row.view.get_attribute("data-step")), lambda step: step > 5)
    assert found.problems == []


def test_there_is_no_slider_where_no_frames_are_kept(opened: Callable[..., Opened], tmp_path: Path) -> None:
    found, row = row_of("plot", opened, tmp_path, {"timeline": 0})
    row.advance(2)
    expect(row.slider).to_have_count(0)
    expect(row.button("Play")).to_be_enabled()
    assert found.problems == []


def test_a_notebook_shows_earlier_frames(notebook: Callable[..., Any], pictures: Pictures) -> None:
    setup = "from __future__ import annotations\nimport tinote as ti\nti.init()\n"
    source = inspect.getsource(views).replace("def views() -> dict[str, Callable[..., Any]]:", "def views():")
    page = notebook(setup + source, *(f"views()[{kind!r}]()" for kind in KINDS), height=1400)
    page.run_all()
    for at, kind in enumerate(KINDS):
        view = page.page.locator(".tinote-view").nth(at)
        view.scroll_into_view_if_needed()
        row = Row(view)
        row.goes_back(kind)
        if kind in ("particles", "scene"):
            row.goes_on()
        if kind == "particles":
            row.slider.focus()
            row.slider.press("ArrowLeft")
            page.page.screenshot(path=pictures.folder / "timeline_notebook.png")
    assert page.problems == []
