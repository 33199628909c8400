"""Pages in which live views run, opened from the disk by a browser without a network."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image as Pillow

import tinote as ti
from tests.browser.harness import new_page
from tests.browser.looks import Pictures, unreadable
from tests.browser.waiting import expect, poll, still_box
from tinote.cli.html_export import PageExporter
from tinote.viz.notebook.front_end import PAGE_TYPE
from tinote.viz.pages.stored import stored

N = 200
STEPS = 500
LOOKS = ((390, 844), (1280, 900), (1920, 1080))
FAULT_AT = 30

# What a field of a view of the page holds.
READ = """async ([view, field]) => {
    const { step, data } = await globalThis.tinote.models[view].read(field);
    return [step, Array.from(data, Number)];
}"""
# Advance a view as many steps as one frame has then.
RUN = "([view, steps]) => globalThis.tinote.models[view].send({ kind: 'run', steps })"
DARK = "() => getComputedStyle(document.body).backgroundColor === 'rgb(20, 23, 27)'"


class Opened:
    """A page that was opened: playwright's, and what went wrong in it or was asked for elsewhere."""

    def __init__(self, chromium: Any, file: Path, **options: Any) -> None:
        self.page = new_page(chromium, **{"viewport": {"width": 1280, "height": 900}, "offline": True, **options})
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda said: self.problems.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.goto(file.as_uri())
        self.views = self.page.locator(".tinote-view")

    def _asked(self, url: str) -> None:
        if not url.startswith(("file:", "blob:", "data:")):
            self.problems.append(url)

    def painted(self, least: int = 1) -> Opened:
        """Wait until each view has painted this number of frames."""
        condition = "(least) => [...document.querySelectorAll('.tinote-view')].every((v) => v.dataset.painted >= least)"
        self.page.wait_for_function(
            f"(least) => document.querySelectorAll('.tinote-view').length && ({condition})(least)", arg=least
        )
        return self

    def wait_step(self, wanted: Any = lambda step: step >= 0, view: int = 0) -> int:
        """The step that a view shows, once it is `wanted`."""
        return poll(lambda: int(self.views.nth(view).get_attribute("data-step") or -1), wanted)

    def field(self, name: str, view: int = 0) -> tuple[int, np.ndarray]:
        step, numbers = self.page.evaluate(READ, [view, name])
        return step, np.array(numbers)

    def run(self, steps: int, view: int = 0) -> None:
        """Advance a view, and wait until it has painted that."""
        before = self.wait_step(view=view)
        self.page.evaluate(RUN, [view, steps])
        self.wait_step(before + steps, view)

    def button(self, name: str, view: int = 0) -> Any:
        return self.views.nth(view).get_by_role("button", name=name)

    def pixels(self, selector: str) -> np.ndarray:
        return np.asarray(Pillow.open(io.BytesIO(self.page.locator(selector).first.screenshot())).convert("RGB"))


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """`opened(file)`: the page, without a network."""
    found: list[Opened] = []

    def open_one(file: Path, **options: Any) -> Opened:
        found.append(Opened(chromium, file, **options))
        return found[-1]

    yield open_one
    for one in found:
        one.page.context.close()


class Springs:
    """Particles around a middle, whose forces a tape derives, with all that views have: quantities, a slider, a handler
    of the pointer, prints and faults.
    """

    def __init__(self) -> None:
        ti.init(arch=ti.cpu)
        self.x = x = ti.Vector.field(2, ti.f32, shape=N, needs_grad=True)
        self.v = v = ti.Vector.field(2, ti.f32, shape=N)
        self.energy = energy = ti.field(ti.f32, shape=(), needs_grad=True)
        self.stiffness = stiffness = ti.field(ti.f32, shape=())
        self.count = count = ti.field(ti.i32, shape=())
        self.speed = speed = ti.field(ti.f32, shape=N)
        rng = np.random.default_rng(1)
        start = rng.uniform(-0.5, 0.5, (N, 2)).astype(np.float32)
        kick = 0.2 * rng.normal(size=(N, 2)).astype(np.float32)

        @ti.kernel
        def potential():
            for i in x:
                energy[None] += 0.5 * stiffness[None] * x[i].norm_sqr()

        @ti.kernel
        def advance(dt: ti.f32):
            count[None] += 1
            for i in x:
                v[i] -= dt * x.grad[i]
                x[i] += dt * v[i]
                speed[i] = v[i].norm()

        @ti.kernel
        def move(at: ti.i32, dx: ti.f32, dy: ti.f32):
            x[at] += ti.Vector([dx, dy])

        def step():
            with ti.ad.Tape(loss=energy):
                potential()
            advance(0.01)

        def reset():
            x.from_numpy(start)
            v.from_numpy(kick)
            count[None] = 0

        def drag(pointer):
            if pointer.element is not None:
                move(pointer.element, *pointer.movement)

        stiffness[None] = 4.0
        reset()
        self.step, self.reset, self.drag = step, reset, drag

    def view(self, **more: Any) -> Any:
        return ti.viz.Particles(
            self.x,
            self.step,
            reset=self.reset,
            bounds=((-1, 1), (-1, 1)),
            plots={"energy": lambda: self.energy[None], "steps": lambda: self.count[None]},
            **{"label": "springs", "radius": 4, **more},
        )


@pytest.fixture(scope="module")
def springs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Springs, Path]:
    """A page of particles with everything, and what it shows."""
    world = Springs()
    view = world.view(pointer=world.drag, color=lambda: world.speed, cmap="plasma", limits=(0, 1), trail=4)
    ti.viz.slider(view, world.stiffness, 0, 10, value=4.0, label="stiffness")
    file = tmp_path_factory.mktemp("springs") / "springs.html"
    made = ti.viz.page(view, file, title="Springs", text="Energy: $E = \\frac{1}{2} k x^2$")
    assert [(one.runs, one.missing) for one in made.views] == [(True, ())]
    return world, file


def test_a_page_runs_as_python_does(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    world, file = springs
    found = opened(file).painted()
    found.wait_step(0)
    step, start = found.field("field0")
    assert step == 0 and start == pytest.approx(world.x.to_numpy().ravel())
    found.run(STEPS)
    world.reset()
    for _ in range(STEPS):
        world.step()
    step, moved = found.field("field0")
    assert step == STEPS and np.abs(moved - world.x.to_numpy().ravel()).max() < 1e-4
    assert np.abs(moved - start).max() > 0.1
    # The plot: its last samples are these quantities.
    expect(found.views.locator(".tinote-value").nth(1)).to_have_text(str(STEPS))
    shown = found.views.locator(".tinote-value").first
    poll(lambda: abs(float(shown.inner_text()) / world.energy[None] - 1) < 1e-3, True)
    assert found.problems == []
    world.reset()


def test_the_buttons_do_what_they_do_in_a_notebook(
    springs: tuple[Springs, Path], opened: Callable[..., Opened]
) -> None:
    _, file = springs
    found = opened(file).painted()
    view = found.views.first
    found.button("Play").click()
    expect(view).to_have_attribute("data-state", "playing")
    found.wait_step(lambda step: step > 20)
    found.button("Pause").click()
    expect(view).to_have_attribute("data-state", "paused")
    expect(found.button("Play")).to_be_visible()
    poll(lambda: found.field("field0")[0] == found.wait_step(), True)
    at = found.wait_step()
    found.button("Step: advance one frame").click()
    found.wait_step(at + 1)
    view.locator(".tinote-speed input").fill("4")
    expect(view.locator(".tinote-speed-text")).to_have_text("10 steps / frame")
    found.button("Step: advance one frame").click()
    found.wait_step(at + 11)
    found.button("Reset: back to the start").click()
    found.wait_step(0)
    found.button("Play").click()
    found.wait_step(lambda step: step > 0)
    found.button("Stop: end the run").click()
    expect(view).to_have_attribute("data-state", "stopped")
    expect(found.button("Stop: end the run")).to_be_disabled()
    assert found.problems == []


def test_the_keyboard_reaches_all_of_it(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    _, file = springs
    found = opened(file).painted()
    found.button("Play").focus()
    found.page.keyboard.press("Enter")
    found.wait_step(lambda step: step > 3)
    found.page.keyboard.press("Space")
    expect(found.views.first).to_have_attribute("data-state", "paused")
    slider = found.page.get_by_label("stiffness", exact=True)
    slider.focus()
    found.page.keyboard.press("End")
    expect(found.page.locator(".tinote-control output")).to_have_text("10")
    found.page.locator(".tinote-theme").focus()
    found.page.keyboard.press("Enter")
    found.page.wait_for_function(DARK)
    assert found.problems == []


def test_a_slider_changes_what_runs(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    world, file = springs
    found = opened(file).painted()
    found.page.get_by_label("stiffness", exact=True).fill("0")
    expect(found.page.locator(".tinote-control output")).to_have_text("0")
    found.run(20)
    world.reset()
    world.stiffness[None] = 0.0
    for _ in range(20):
        world.step()
    assert np.abs(found.field("field0")[1] - world.x.to_numpy().ravel()).max() < 1e-5
    world.stiffness[None] = 4.0
    world.reset()


def test_particles_are_dragged(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    world, file = springs
    found = opened(file).painted()
    box = still_box(found.page.locator(".tinote-stage"))
    at = world.x.to_numpy()[7]
    x = box["x"] + box["width"] * float(at[0] + 1) / 2
    y = box["y"] + box["height"] * float(1 - at[1]) / 2
    found.page.mouse.move(x, y)
    found.page.mouse.down()
    found.page.mouse.move(x + 0.2 * box["width"], y - 0.1 * box["height"], steps=4)
    found.page.mouse.up()
    poll(lambda: np.abs(found.field("field0")[1][14:16] - at - np.array([0.4, 0.2])).max() < 0.02, True)
    moved = found.field("field0")[1].reshape(-1, 2) - world.x.to_numpy()
    assert np.flatnonzero(np.abs(moved).max(axis=1) > 1e-6).tolist() == [7]
    assert found.problems == []


def test_pictures_and_films_are_made_by_the_page(
    springs: tuple[Springs, Path], opened: Callable[..., Opened], tmp_path: Path
) -> None:
    _, file = springs
    found = opened(file).painted()
    with found.page.expect_download() as saved:
        found.button("Save a picture").click()
    picture = Pillow.open(saved.value.path())
    assert picture.format == "PNG" and picture.width == 480 and picture.height > 600
    shown = np.asarray(picture.convert("RGB"))
    assert len(np.unique(shown[:480].reshape(-1, 3), axis=0)) > 50 and (shown[-100:] < 120).any()
    found.button("Record a video").click()
    expect(found.button("End the recording and save it")).to_be_visible()
    found.button("Play").click()
    found.wait_step(lambda step: step > 20)
    with found.page.expect_download() as filmed:
        found.button("End the recording and save it").click()
    film = Path(filmed.value.path()).read_bytes()
    assert film[:4] == b"\x1a\x45\xdf\xa3" or film[4:8] == b"ftyp"  # WebM, MP4
    assert len(film) > 3000 and filmed.value.suggested_filename.startswith("simulation.")
    found.button("Record a GIF").click()
    before = found.wait_step()
    found.wait_step(lambda step: step > before + 20)
    with found.page.expect_download() as filmed:
        found.button("End the recording and save it").click()
    gif = Pillow.open(filmed.value.path())
    assert gif.format == "GIF" and gif.is_animated and gif.info["loop"] == 0 and gif.size == picture.size
    last = gif.n_frames - 1
    for frame in (0, last):  # Each can be read, and has the colours of the view.
        gif.seek(frame)
        colors = np.asarray(gif.convert("RGB"), dtype=float)
        assert np.abs(colors.mean((0, 1)) - shown.mean((0, 1))).max() < 6
    expect(found.button("Record a video")).to_be_enabled()
    assert found.problems == []


def test_both_themes_at_all_widths(
    springs: tuple[Springs, Path], opened: Callable[..., Opened], pictures: Pictures
) -> None:
    _, file = springs
    found = opened(file).painted()
    for width, height in LOOKS:
        found.page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            found.page.emulate_media(color_scheme=theme)
            poll(lambda: found.page.evaluate(DARK), theme == "dark")
            dark = "document.querySelector('.tinote-view').classList.contains('tinote-dark')"
            found.page.wait_for_function(f"() => {dark} === {str(theme == 'dark').lower()}")
            poll(lambda: unreadable(found.page), [])
            fits = "() => document.documentElement.scrollWidth <= innerWidth"
            poll(lambda fits=fits: found.page.evaluate(fits), True)
            pictures.shot(found.page, f"page_{width}_{theme}.png")
    button = found.page.locator(".tinote-theme")
    button.click()
    poll(lambda: found.page.evaluate(DARK), False)
    button.click()
    poll(lambda: found.page.evaluate(DARK), True)


def test_the_first_picture_comes_soon(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    """The page says itself when it has painted; what it needs is in the file, and compressed."""
    _, file = springs
    assert file.stat().st_size < 100_000
    found = opened(file).painted()
    marks = "() => performance.getEntriesByName('tinote-painted').map((one) => one.startTime)"
    poll(lambda: found.page.evaluate(marks), lambda times: len(times) == 1 and times[0] > 0)


def test_an_address_that_says_so_plays_at_once(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    _, file = springs
    found = opened(file).painted()
    for motion, plays in (("no-preference", True), ("reduce", False)):
        found.page.emulate_media(reduced_motion=motion)
        found.page.goto("about:blank")
        found.page.goto(f"{file.as_uri()}#play")
        found.painted(8 if plays else 1)
        assert (found.wait_step() > 0) is plays
        expect(found.button("Pause" if plays else "Play")).to_be_visible()
    assert found.problems == []


def test_a_step_that_hangs_is_stopped(opened: Callable[..., Opened], tmp_path: Path) -> None:
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=(8, 8))
    wait = ti.field(ti.i32, shape=())

    @ti.kernel
    def turn():
        while wait[None] > 0:
            x[0, 0] += 1.0
        x[1, 1] += 1.0

    def step():
        turn()

    view = ti.viz.Image(x, step, limits=(0, 10))
    ti.viz.slider(view, wait, 0, 1, value=0, step=1, label="hang")
    found = opened(view.save(tmp_path / "hang.html")).painted()
    found.run(3)
    found.page.get_by_label("hang", exact=True).fill("1")
    found.button("Play").click()
    expect(found.views.first).to_have_attribute("data-state", "playing")
    # The page goes on meanwhile: its theme changes.
    found.page.locator(".tinote-theme").click()
    poll(lambda: found.page.evaluate(DARK), True)
    found.button("Stop: end the run").click()
    expect(found.page.get_by_role("alert")).to_contain_text("stopped in the middle")
    found.wait_step(0)
    found.page.get_by_label("hang", exact=True).fill("0")
    found.run(2)
    assert found.field("field0")[1][9] == 2.0
    assert found.problems == []


def test_a_fault_shows_the_users_line(opened: Callable[..., Opened], tmp_path: Path) -> None:
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=FAULT_AT)
    at = ti.field(ti.i32, shape=())

    @ti.kernel
    def fill():
        x[at[None]] = 1.0  # </script><img src=x>
        at[None] += 1

    def step():
        fill()

    file = ti.viz.Plot(lambda: at[None], step).save(tmp_path / "fault.html")
    found = opened(file).painted()
    found.button("Play").click()
    alert = found.page.get_by_role("alert")
    expect(alert).to_contain_text(f"index {FAULT_AT} is out of bounds for axis 0 of 'x'")
    expect(alert).to_contain_text("x[at[None]] = 1.0  # </script><img src=x>")
    expect(found.views.first).to_have_attribute("data-state", "stopped")
    expect(found.page.locator("img")).to_have_count(0)
    found.button("Reset: back to the start").click()
    found.wait_step(0)
    found.button("Play").click()
    found.wait_step(lambda step: step > 5)
    assert found.problems == []


def test_fields_and_scenes_run_too(opened: Callable[..., Opened], tmp_path: Path, pictures: Pictures) -> None:
    ti.init(arch=ti.cpu)
    u = ti.field(ti.f32, shape=(48, 32))
    flow = ti.Vector.field(2, ti.f32, shape=(48, 32))
    x = ti.Vector.field(3, ti.f32, shape=60)
    rng = np.random.default_rng(2)
    x.from_numpy(rng.uniform(-0.5, 0.5, (60, 3)).astype(np.float32))

    @ti.kernel
    def wave(t: ti.i32):
        for i, j in u:
            u[i, j] = ti.sin(0.3 * i + 0.05 * t) * ti.cos(0.2 * j)
            flow[i, j] = ti.Vector([ti.sin(0.1 * i), ti.cos(0.1 * j)])
        for i in x:
            x[i].z += 0.01 * ti.sin(0.1 * t + i)

    clock = ti.field(ti.i32, shape=())

    def step():
        clock[None] += 1
        wave(clock[None])

    def poke(pointer):
        if pointer.pressed:
            clock[None] = 100 * (1 + pointer.element[0])

    image = ti.viz.Image(u, step, vectors=flow, contours=4, smooth=True, pointer=poke, label="waves", limits=(-1, 1))
    scene = ti.viz.Scene(step, label="balls", size=(480, 360))
    scene.particles(x, 0.08, color="#4a78b8")
    scene.mesh(np.array([[-1, -1, -1], [1, -1, -1], [0, 1, -1]], np.float32), [0, 1, 2], two_sided=True)
    space = ti.viz.Particles(x, step, bounds=((-1, 1),) * 3, label="points", size=300)
    made = ti.viz.page([image, scene, space], tmp_path / "all.html", title="All")
    assert all(view.runs and not view.missing for view in made.views)
    found = opened(made.path, viewport={"width": 1280, "height": 1900}).painted()
    expect(found.views.nth(1)).to_have_attribute("data-draws", "page")
    for view in range(3):
        found.run(STEPS if view == 0 else 20, view)
    for _ in range(20):
        step()
    for view in (1, 2):
        # Each view has a memory of its own.
        assert np.abs(found.field("field0", view)[1] - x.to_numpy().ravel()).max() < 1e-5
    clock[None] = 0
    for _ in range(STEPS):
        step()
    assert np.abs(found.field("field0")[1] - u.to_numpy().ravel()).max() < 1e-4
    box = still_box(found.page.locator(".tinote-stage").first)
    found.page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    found.run(1)
    wave(2501)
    poll(lambda: np.abs(found.field("field0")[1] - u.to_numpy().ravel()).max() < 1e-4, True)
    # Each of them has painted something.
    for stage in range(3):
        selector = f".tinote-live:nth-of-type({stage + 1}) .tinote-stage"
        poll(lambda selector=selector: len(np.unique(found.pixels(selector).reshape(-1, 3), axis=0)) > 20, True)
    # Turning the camera paints another picture.
    for stage in (1, 2):
        selector = f".tinote-live:nth-of-type({stage + 1}) .tinote-stage"
        before = found.pixels(selector)
        found.page.locator(selector).focus()
        for _ in range(4):
            found.page.keyboard.press("ArrowLeft")
        poll(
            lambda s=selector, b=before: (np.abs(found.pixels(s).astype(int) - b).max(axis=2) > 40).mean() > 0.005, True
        )
    # What is clicked is said.
    expect(found.views.first.locator(".tinote-status")).to_contain_text("picked 24, 16")
    for view, said in ((1, " of thing 0 at "), (2, "picked ")):
        status = found.views.nth(view).locator(".tinote-status")
        expect(status).not_to_contain_text(said)
        shown = found.pixels(f".tinote-live:nth-of-type({view + 1}) .tinote-stage").astype(int)
        rows, columns = np.nonzero(shown[:, :, 2] - shown[:, :, 0] > 60)  # The blue of the particles.
        row, column = rows[len(rows) // 2], columns[len(rows) // 2]
        box = still_box(found.page.locator(".tinote-stage").nth(view))
        across, down = column / shown.shape[1], row / shown.shape[0]
        found.page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])
        expect(status).to_contain_text(said)
    pictures.shot(found.page, "page_all.png", full_page=True)
    assert found.problems == []


def test_hostile_texts_do_nothing(opened: Callable[..., Opened], tmp_path: Path) -> None:
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=4)
    hostile = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><!-- \" ' ` \ud800"

    @ti.kernel
    def move():
        for i in x:
            x[i] += 0.01

    def step():
        move()

    names = dict.fromkeys(("label", "plot_label", "color_label", "x_label", "y_label"), hostile)
    view = ti.viz.Particles(x, step, plots={hostile: lambda: x[0].x}, **names)
    ti.viz.slider(view, ti.field(ti.f32, shape=()), 0, 1, label=hostile)
    file = tmp_path / "hostile.html"
    ti.viz.page([view, hostile], file, title=hostile, text=hostile)
    found = opened(file).painted()
    found.run(3)
    poll(lambda: found.page.evaluate("() => window.hacked ?? 'no'"), "no")
    expect(found.page.locator("img")).to_have_count(0)
    expect(found.page.locator("h1").first).to_contain_text("<script>window.hacked = 1</script>")
    assert found.problems == []


def test_scripts_of_others_do_not_run(
    springs: tuple[Springs, Path], opened: Callable[..., Opened], tmp_path: Path
) -> None:
    """The page's policy holds where somebody has put something into the file."""
    _, file = springs
    added = "<script>window.hacked = 1</script><img src='https://example.org/x.png' onerror='window.hacked = 2'>"
    changed = tmp_path / "changed.html"
    changed.write_text(file.read_text("utf-8").replace("</main>", f"{added}</main>"), encoding="utf-8")
    found = opened(changed).painted()
    poll(lambda: found.page.evaluate("() => window.hacked ?? 'no'"), "no")
    fetched = "() => fetch('https://example.org/').then(() => 'fetched', (error) => error.name)"
    poll(lambda: found.page.evaluate(fetched), "TypeError")


def test_a_phone_is_tapped(springs: tuple[Springs, Path], opened: Callable[..., Opened]) -> None:
    _, file = springs
    found = opened(file, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).painted()
    found.button("Play").tap()
    found.wait_step(lambda step: step > 3)
    found.button("Pause").tap()
    expect(found.views.first).to_have_attribute("data-state", "paused")
    box = still_box(found.button("Play"))
    assert box["height"] >= 40
    assert found.problems == []


BUTTON_LOOK = "(button) => { const look = getComputedStyle(button); return [look.backgroundColor, look.color]; }"


def test_the_record_button_looks_pressed_under_the_pointer_that_has_pressed_it(chromium, tmp_path, pictures) -> None:
    ti.init()
    x = ti.field(ti.f32, (16, 16))

    @ti.kernel
    def step():
        for i, j in x:
            x[i, j] += 0.1

    ti.viz.page([ti.viz.Image(x, step, limits=(0, 1), size=160)], tmp_path / "page.html")
    page = Opened(chromium, tmp_path / "page.html").painted().page
    record = page.get_by_role("button", name="Record a GIF")
    record.hover()
    record.click()
    pressed = page.locator(".tinote-record[aria-pressed=true], .tinote-gif[aria-pressed=true]")
    expect(pressed).to_have_count(1)
    shown = poll(lambda: pressed.evaluate(BUTTON_LOOK), lambda look: look[1] == "rgb(255, 255, 255)")
    assert shown[0] == "rgb(198, 40, 40)"
    pictures.shot(page, "recording.png")
    expect(page.locator(".tinote-status")).to_contain_text("recording")
    page.get_by_role("button", name="Step").click()
    expect(page.locator(".tinote-status")).to_contain_text("recording, 1 frame")
    page.context.close()


def test_an_explorer_runs_in_the_page_of_a_notebook(opened: Callable[..., Opened], tmp_path: Path) -> None:
    """In a frame without an origin, in the theme of the page; for print there are no controls."""
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=8)

    @ti.kernel
    def move():
        for i in x:
            x[i] += 0.5

    explorer = ti.viz.explore(move)
    held = {"version": 1, "name": "the IR of move", "reason": "", "page": explorer.page_text()}
    cells = [
        nbformat.v4.new_code_cell("view", outputs=[nbformat.v4.new_output("display_data", data)])
        for data in ({PAGE_TYPE: held}, {PAGE_TYPE: stored([ti.viz.Particles(x, move)])})
    ]
    exporter = PageExporter()
    text, _ = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    assert [shown.runs for shown in exporter.shown] == [True, True]
    file = tmp_path / "notebook.html"
    file.write_text(text, "utf-8")
    found = opened(file).painted()
    frame = found.page.frame_locator("iframe.tinote-framed")
    frame.locator(".stage", has_text="LLVM IR").first.click()
    expect(frame.locator(".sentence b")).to_have_text(re.compile("^LLVM"))
    poll(lambda: frame.locator("body").evaluate("(body) => body.scrollHeight <= innerHeight"), True)
    for theme in ("dark", "light"):
        found.page.emulate_media(color_scheme="light" if theme == "dark" else "dark")
        while not found.page.evaluate("(name) => document.documentElement.classList.contains(name)", theme):
            found.page.locator(".tinote-theme").click()
        poll(lambda theme=theme: frame.locator("html").evaluate("(n, t) => n.classList.contains(t)", theme), True)
    found.page.emulate_media(media="print")
    for part in (".tinote-controls", ".tinote-timeline", ".tinote-theme"):
        expect(found.page.locator(part).first).to_be_hidden()
    expect(found.page.locator(".tinote-stage")).to_be_visible()
    assert found.problems == []
