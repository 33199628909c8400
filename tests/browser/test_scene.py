"""Scenes in space in the browser: drawn by WebGL where the page is set to, else as pictures, and turned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.browser.harness import Desk, Page
from tests.browser.waiting import expect, still_box

SETUP = """
import numpy as np
import tinote as ti
count = 30
across, along = np.meshgrid(np.linspace(-1, 1, count), np.linspace(-1, 1, count), indexing="ij")
place = np.arange(count * count, dtype=np.int32).reshape(count, count)
a, b, c, d = place[:-1, :-1], place[1:, :-1], place[1:, 1:], place[:-1, 1:]
triangles = np.stack([a, b, c, a, c, d], -1).reshape(-1, 3)
x = np.zeros((count * count, 3), np.float32)
time = [0.0]
def wave():
    time[0] += 0.05
    height = 0.25 * np.sin(3 * across + time[0]) * np.cos(3 * along)
    x[:] = np.stack([across, along, height], -1).reshape(-1, 3)
wave()
balls = np.random.default_rng(0).uniform([-1, -1, 0.4], [1, 1, 0.8], (40, 3))
frame = np.array([[-1, -1, -0.6], [1, -1, -0.6], [1, 1, -0.6], [-1, 1, -0.6]])
corner = 0.2 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
sides = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
copies = np.stack([np.eye(4)] * 3)
copies[:, :3, 3] = [[-0.9, -0.9, -0.6], [0.7, -0.9, -0.6], [0.7, 0.7, -0.6]]
copies[2, 0, 0] = -1.0  # A mirror.
def scene(**options):
    found = ti.viz.Scene(wave, size=(400, 300), **options)
    found.mesh(x, triangles, color="#c8404c", two_sided=True)
    found.particles(balls, radius=0.07, color="#e8963a")
    found.lines(frame, 2.5, [0, 1, 1, 2, 2, 3, 3, 0], per_vertex_color=np.eye(4, 3))
    found.mesh_instance(corner, sides, transforms=copies, per_vertex_color=0.5 + 2 * corner)
    return found
"""
WINDOW = """
import os
os.environ["TINOTE_GUI_RENDERER"] = "page"
window = ti.ui.Window("balls", (300, 200))
canvas, camera = window.get_canvas(), ti.ui.Camera()
canvas.set_background_color((0.1, 0.2, 0.3))
while window.running and not window.is_pressed("x"):
    camera.position(0.0, -3.0, 0.5)
    camera.lookat(0.0, 0.0, 0.5)
    camera.up(0.0, 0.0, 1.0)
    scene = window.get_scene()
    scene.set_camera(camera)
    scene.ambient_light((0.8, 0.8, 0.8))
    scene.particles(balls, radius=0.1, color=(0.9, 0.1, 0.1))
    canvas.scene(scene)
    window.GUI.text("controls", color=(1, 1, 1))
    window.show()
"""
CELLS = (
    SETUP,
    "view = scene(renderer='page', energy=lambda: x[:, 2].max())\nview",
    "kernel = scene(renderer='kernel')\nkernel",
    WINDOW,
)
BY_PAGE, BY_KERNEL, IN_WINDOW = 1, 2, 3  # Cells.
VIEWS = "document.querySelectorAll('.tinote-view')"
STAGE = ".tinote-view canvas.tinote-stage"
LEFT = f".jp-CodeCell >> nth={IN_WINDOW} >> .jp-OutputArea-output img"
GUI = "document.querySelector('.tinote-gui')"
WEBGL = "window[Symbol.for('tinote.space')]"
LOSE = f"""() => {{
    window.contextLoss ??= {WEBGL}.gl.getExtension('WEBGL_lose_context');
    contextLoss.loseContext();
}}"""
RESTORE = "() => contextLoss.restoreContext()"

# Pictures are decoded, and handed over when `releasePictures()` is called.
HOLD_PICTURES = """() => {
    const held = [];
    const decode = window.createImageBitmap;
    window.heldPictures = held;
    window.createImageBitmap = async (...given) => {
        const bitmap = await decode(...given);
        await new Promise((go) => held.push(go));
        return bitmap;
    };
    window.releasePictures = () => {
        window.createImageBitmap = decode;
        held.forEach((go) => go());
    };
}"""

# From now on WebGL is not there, until `allowWebGL()`.
REFUSE_WEBGL = """() => {
    const { prototype } = HTMLCanvasElement;
    const given = prototype.getContext;
    const shared = window[Symbol.for('tinote.space')];
    delete window[Symbol.for('tinote.space')];
    prototype.getContext = function (kind, ...more) {
        return /webgl/.test(kind) ? null : given.call(this, kind, ...more);
    };
    window.allowWebGL = () => {
        prototype.getContext = given;
        window[Symbol.for('tinote.space')] = shared;
    };
}"""

# From now on no program can be linked, until `allowWebGL()`.
BREAK_WEBGL = """() => {
    const { prototype } = WebGL2RenderingContext;
    const given = prototype.getProgramParameter;
    const { programs } = window[Symbol.for('tinote.space')];
    programs.clear();
    prototype.getProgramParameter = () => false;
    window.allowWebGL = () => {
        prototype.getProgramParameter = given;
    };
}"""


def wait_drawn(page: Page, number: int, who: str, words: str = "") -> None:
    """Wait until the view of this number has a frame that was drawn by `who`, with these words in its status line."""
    shown = f"{VIEWS}[{number}]?.querySelector('.tinote-status').textContent.replace(/^step [\\d,]+( · )?/, '')"
    page.wait(f"{VIEWS}[{number}]?.dataset.draws === '{who}' && {shown} === {words!r}")


def drawn_by(page: Page, who: str) -> np.ndarray:
    """What the first view shows that is drawn by `who`: (height, width, 3), int."""
    return page.canvas(f".tinote-view[data-draws={who}] canvas.tinote-stage")[:, :, :3]


def differ(one: np.ndarray, other: np.ndarray) -> float:
    """How much of two pictures clearly differs."""
    return float((np.abs(one - other).max(axis=2) > 24).mean())


@pytest.fixture(scope="module")
def scenes(desk: Desk) -> Iterator[Page]:
    """A notebook with a scene that the page draws, and the same one drawn by the kernel."""
    page = desk.open("scenes.ipynb", CELLS, height=2000)
    for cell in range(IN_WINDOW):
        page.run_cell(cell)
    wait_drawn(page, 0, "page")
    wait_drawn(page, 1, "kernel")
    yield page
    desk.close(page)


@pytest.fixture
def page(scenes: Page) -> Iterator[Page]:
    """The same notebook with a new view of the first scene."""
    scenes.run_cell(BY_PAGE)
    scenes.wait_idle()
    wait_drawn(scenes, 0, "page")
    scenes.problems.clear()
    yield scenes
    assert scenes.problems == []


def test_page_and_kernel_draw_the_same_scene_and_the_camera_turns(page):
    by_kernel = drawn_by(page, "kernel")
    red = (by_kernel[:, :, 0] > 150) & (by_kernel[:, :, 1] < 100)
    assert 0.05 < red.mean() < 0.5
    page.eventually(lambda: differ(drawn_by(page, "page"), by_kernel) < 0.02)
    before = drawn_by(page, "page")
    assert before.shape == by_kernel.shape == (300, 400, 3) and np.abs(before - by_kernel).max(axis=2).mean() < 4
    page.drag(STAGE, (0.3, 0.4), (0.6, 0.5))
    page.until("abs(view._eye.position[1] - kernel._eye.position[1]) > 0.5")
    page.eventually(lambda: differ(page.canvas(STAGE)[:, :, :3], before) > 0.05)


def test_where_a_mouse_rests_a_label_says_what_is_there(page):
    tip = page.page.locator(".tinote-view .tinote-tip").first
    box = still_box(page.page.locator(STAGE).first)
    page.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    expect(tip).to_have_text(re.compile(r"^(triangle|particle) \d+ of thing [01] at \(.*\)$"))
    expect(tip).to_be_visible()
    page.page.mouse.move(box["x"] + 3, box["y"] + 3)
    expect(tip).to_be_hidden()  # Nothing is there, and nothing was picked.
    page.until("view.picked is None")


def test_a_picture_that_is_decoded_late_does_not_replace_the_scene(page):
    page.page.evaluate(HOLD_PICTURES)
    page.page.evaluate(LOSE)
    page.wait("heldPictures.length > 0")
    page.page.evaluate(RESTORE)
    page.wait(f"{VIEWS}[0].querySelector('.tinote-status').textContent === 'step 0'")
    page.page.evaluate("() => releasePictures()")
    page.next_frame()  # The picture has been handed over by then.
    wait_drawn(page, 0, "page")


def test_the_kernel_draws_while_the_page_has_lost_its_context(page):
    def on_stage() -> np.ndarray:
        return page.canvas(STAGE)[2:-2, 2:-2, :3]

    def as_the_kernel_has_it() -> bool:
        """The camera as well: of several moves, the kernel may get the last one later."""
        text = page.python("print(view.painted().pixels[2:-2, 2:-2].tobytes().hex())")
        return differ(on_stage(), np.frombuffer(bytes.fromhex(text), np.uint8).reshape(296, 396, 3).astype(int)) < 0.02

    before = on_stage()
    page.page.evaluate(LOSE)
    wait_drawn(page, 0, "kernel", "drawn by the kernel: WebGL was lost")
    page.eventually(lambda: differ(on_stage(), before) < 0.02)
    page.drag(STAGE, (0.3, 0.4), (0.6, 0.5))
    page.eventually(lambda: differ(on_stage(), before) > 0.05)
    page.eventually(as_the_kernel_has_it)
    page.page.evaluate(RESTORE)
    wait_drawn(page, 0, "page")
    page.eventually(lambda: differ(on_stage(), before) > 0.05)
    page.eventually(as_the_kernel_has_it)


@pytest.mark.parametrize(
    ("refuse", "reason"),
    [(REFUSE_WEBGL, "no WebGL here"), (BREAK_WEBGL, "WebGL failed")],
)
def test_the_kernel_draws_where_webgl_is_not_there(page, refuse, reason):
    page.page.evaluate(refuse)
    page.run_cell(BY_PAGE)
    wait_drawn(page, 0, "kernel", f"drawn by the kernel: {reason}")
    red = page.canvas(STAGE)
    assert ((red[:, :, 0] > 150) & (red[:, :, 1] < 100)).mean() > 0.05
    page.page.evaluate("() => allowWebGL()")
    page.wait_idle()
    page.problems[:] = [problem for problem in page.problems if "WebGL: " not in problem]


def test_looks(page, pictures):
    def drawn() -> None:
        wait_drawn(page, 0, "page")
        wait_drawn(page, 1, "kernel")

    pictures.of_notebook(page, "scene", 2000, drawn, least=3)


def red_pixels(picture: np.ndarray) -> int:
    return int(((picture[:, :, 0] > 150) & (picture[:, :, 1] < 60)).sum())


def in_window(page: Page) -> Callable[[], np.ndarray]:
    return lambda: page.canvas(".tinote-gui canvas")[:, :, :3]


def test_a_window_lets_the_page_draw_its_scene_and_leaves_a_picture_of_it(page):
    page.run_cell(IN_WINDOW)
    window = in_window(page)
    painted = f"Number({GUI}.dataset.painted)"
    page.wait(f"{GUI}?.dataset.draws === 'page'")
    page.wait(f"{painted} > {page.page.evaluate(painted)} + 3")
    drawn = window()
    assert 0.02 < red_pixels(drawn) / drawn[:, :, 0].size < 0.5
    assert (np.abs(drawn[150:, :] - [26, 51, 77]).max(axis=2) < 4).mean() > 0.5
    assert (drawn[2:26, 2:100] != drawn[190, 5]).any(axis=2).mean() > 0.9, "the controls lie above"
    page.page.evaluate(LOSE)
    page.wait(f"{GUI}.dataset.draws === 'kernel' && /WebGL was lost/.test({GUI}.textContent)")
    page.eventually(lambda: differ(window(), drawn) < 0.03)
    page.page.evaluate(RESTORE)
    page.wait(f"{GUI}.dataset.draws === 'page' && !/WebGL/.test({GUI}.textContent)")
    page.page.locator(".tinote-gui canvas").click()
    page.page.keyboard.down("x")  # Held until a frame of the loop has asked for it.
    page.page.wait_for_selector(LEFT)
    page.page.keyboard.up("x")
    page.wait_idle()
    left = page.pixels(LEFT)
    assert red_pixels(left) == pytest.approx(red_pixels(drawn), rel=0.1)
