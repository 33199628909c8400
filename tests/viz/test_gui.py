"""`GUI` without a window: drawing, recording, events, and how loops end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tinote.viz.draw.arrays import ViewError
from tinote.viz.window.events import Event
from tinote.viz.window.gui import GUI

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def gui() -> GUI:
    return GUI("test", res=(40, 20), background_color=0x112F41, show_gui=False)


def shown(gui: GUI) -> np.ndarray:
    """The frame as bytes, indexed [x, y] from the bottom left."""
    gui.show()
    return np.rint(gui.get_image()[:, :, :3] * 255).astype(int)


def test_circle_is_at_its_place_from_the_bottom_left(gui):
    gui.circle((0.25, 0.9), color=0xFF8000, radius=3)
    image = shown(gui)
    assert image.shape == (40, 20, 3)
    assert image[10, 18].tolist() == [0xFF, 0x80, 0x00]
    assert image[10, 2].tolist() == [0x11, 0x2F, 0x41]


def test_circles_take_colours_radii_and_a_palette(gui):
    pos = np.array([[0.25, 0.5], [0.75, 0.5]])
    gui.circles(pos, radius=np.array([1.0, 6.0]), color=np.array([0xFF0000, 0x00FF00]))
    image = shown(gui)
    green = (image == [0, 255, 0]).all(axis=2).sum()
    red = ((image[:, :, 0] > 120) & (image[:, :, 1] < 60)).sum()
    assert image[30, 10].tolist() == [0, 255, 0]
    assert green > 80 > 10 > red > 1
    gui.circles(pos, radius=4, palette=[0x0000FF, 0xFFFFFF], palette_indices=np.array([1, 0]))
    image = shown(gui)
    assert image[10, 10].tolist() == [255, 255, 255]
    assert image[30, 10].tolist() == [0, 0, 255]


def test_get_image_gives_what_was_just_drawn(gui):
    """Each way to draw begins a frame; until one does, the frame that was shown last stays."""
    shape = (*gui.res, 3)
    ways = [
        lambda k: gui.set_image(np.full(shape, k / 4, np.float32)),
        lambda k: gui.clear(int(255 * k / 4) * 0x010101),
        lambda k: gui.rect((0, 0), (1, 1), radius=100, color=int(255 * k / 4) * 0x010101),
        lambda k: gui.triangles([[-9, -9]], [[9, -9]], [[0.5, 9]], color=int(255 * k / 4) * 0x010101),
        lambda k: gui.circles([[0.5, 0.5]], radius=100, color=int(255 * k / 4) * 0x010101),
    ]
    for draw in ways:
        for k in (4, 1, 3, 0, 2):
            draw(k)
            for end in (lambda: None, gui.show):
                end()
                assert gui.get_image()[5, 5, :3] == pytest.approx(k / 4, abs=0.01)


def test_show_begins_anew_from_the_background(gui):
    gui.circle((0.5, 0.5), radius=5)
    gui.show()
    assert (shown(gui) == [0x11, 0x2F, 0x41]).all()


def test_clear_takes_back_what_was_drawn(gui):
    gui.circle((0.5, 0.5), radius=5)
    gui.clear(0x202020)
    assert (shown(gui) == 0x20).all()


def test_lines_triangles_and_rectangle(gui):
    gui.line((0.0, 0.5), (1.0, 0.5), radius=2, color=0xFFFFFF)
    image = shown(gui)
    assert (image[5:35, 10] == 255).all()
    assert image[20, 2].tolist() == [0x11, 0x2F, 0x41]
    gui.triangle((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), color=0xFF0000)
    image = shown(gui)
    assert image[5, 5].tolist() == [255, 0, 0]
    assert image[35, 15].tolist() == [0x11, 0x2F, 0x41]
    gui.triangles(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), color=np.array([0x00FF00]))
    assert shown(gui)[5, 5].tolist() == [0, 255, 0]
    gui.rect((0.25, 0.75), (0.75, 0.25), radius=1, color=0xFFFFFF)
    image = shown(gui)
    assert image[10, 10].tolist() == image[30, 10].tolist() == image[20, 5].tolist() == [255, 255, 255]
    assert image[20, 10].tolist() == [0x11, 0x2F, 0x41]


def test_an_arrow_points_where_it_should():
    gui = GUI("test", res=100, show_gui=False)
    gui.arrow((0.2, 0.5), (0.6, 0.0), radius=1)
    image = shown(gui)[:, :, 0]
    spread = [np.ptp(np.flatnonzero(image[column] > 100)) for column in range(25, 78)]
    assert image[20:80, 50].min() > 200
    assert np.argmax(spread) > 40


def test_fields_of_arrows_and_points_cover_the_window():
    gui = GUI("test", res=(80, 40), show_gui=False)
    radius = np.zeros((4, 2))
    radius[3, 1] = 4.0
    gui.point_field(radius)
    image = shown(gui)[:, :, 0]
    assert image[70, 30] == 255
    assert np.count_nonzero(image) < 90
    gui.arrow_field(np.ones((4, 2, 2)))
    image = shown(gui)[:, :, 0]
    # Eight arrows, one about each cell's centre.
    assert all(image[10 + 20 * i, 10 + 20 * j] > 60 for i in range(4) for j in range(2))
    gui.arrow_field(np.zeros((4, 2, 2)))
    assert (image := shown(gui)).shape == (80, 40, 3)


def test_text_is_drawn(gui):
    gui.text("N = 8", (0.1, 0.9), font_size=10, color=0xFFFFFF)
    assert (shown(gui) > 200).all(axis=2).sum() > 10


def test_text_has_the_letters_of_units_and_names():
    def drawn(text):
        gui = GUI("test", res=(40, 30), show_gui=False)
        gui.text(text, (0.1, 0.9), font_size=16, color=0xFFFFFF)
        return shown(gui).tobytes()

    missing = drawn("\ufffe")
    letters = [drawn(letter) for letter in "µéüß×²°αΔ"]
    assert missing not in letters and len(set(letters)) == len(letters)


def test_an_image_comes_back_as_it_was_set(gui):
    image = np.random.default_rng(0).integers(0, 256, (40, 20, 3)).astype(np.uint8)
    gui.set_image(image)
    assert np.array_equal(shown(gui), image)


def test_show_with_a_name_writes_the_frame(gui, tmp_path):
    gui.circle((0.5, 0.5), color=0xFFFFFF, radius=5)
    gui.show(tmp_path / "frames" / "0001.png")
    pixels = np.asarray(Image.open(tmp_path / "frames" / "0001.png"))
    assert pixels.shape == (20, 40, 3)
    assert pixels[10, 20].tolist() == [255, 255, 255]


@pytest.mark.parametrize(
    "draw",
    [
        lambda gui: gui.circles(np.zeros((3, 3))),
        lambda gui: gui.circles(np.zeros((3, 2)), radius=[1, 2]),
        lambda gui: gui.circles(np.zeros((3, 2)), color=[1, 2]),
        lambda gui: gui.circles(np.zeros((1, 2)), palette=[0xFF], palette_indices=[1]),
        lambda gui: gui.circles(np.zeros((1, 2)), palette=[0xFF]),
        lambda gui: gui.circles(np.zeros((1, 2)), palette_indices=[0]),
        lambda gui: gui.lines(np.zeros((1, 2)), np.zeros((2, 2))),
        lambda gui: gui.triangles(np.zeros((1, 2)), np.zeros((2, 2)), np.zeros((1, 2))),
        lambda gui: gui.set_image(np.zeros((20, 40))),
        lambda gui: gui.arrow_field(np.zeros((3, 3))),
        lambda gui: gui.point_field(np.zeros((3, 3, 2))),
        lambda gui: GUI(res=(0, 5), show_gui=False),
    ],
)
def test_what_cannot_be_drawn_is_refused(gui, draw):
    with pytest.raises(ViewError):
        draw(gui)


def test_events_are_filtered_and_keys_are_held(gui):
    queue = gui._events
    queue.add(Event(GUI.PRESS, "a", (0.1, 0.2)))
    queue.add(Event(GUI.MOTION, GUI.MOVE, (0.3, 0.4)))
    queue.add(Event(GUI.MOTION, GUI.MOVE, (0.5, 0.6)))
    assert gui.get_cursor_pos() == (0.5, 0.6)
    assert gui.is_pressed("a") and gui.is_pressed(GUI.SHIFT, "a") and not gui.is_pressed("b")
    assert [event.key for event in gui.get_events()] == ["a", GUI.MOTION]
    queue.add(Event(GUI.RELEASE, "a"))
    assert not gui.is_pressed("a")
    queue.add(Event(GUI.PRESS, GUI.ESCAPE))
    assert gui.get_event((GUI.PRESS, GUI.ESCAPE))
    assert gui.event is not None and gui.event.key == GUI.ESCAPE
    assert not gui.get_event(GUI.PRESS)
    assert gui.get_key_event() is None
    queue.release_all()
    assert not gui.is_pressed(GUI.ESCAPE)


def test_running_ends_on_request(gui):
    assert gui.running
    gui.running = False
    assert not gui.running
    with GUI("other", show_gui=False) as other:
        assert other.running
    assert not other.running


# NumPy's random numbers are imported when they are first asked for, and that import swallows an interrupt.
SCRIPT = """
import numpy as np
import numpy.random
from tinote.viz.window.gui import GUI
gui = GUI("script", res=64)
print("started", flush=True)
while gui.running:
    gui.circles(np.random.rand(10, 2), radius=3)
    gui.show()
print(gui.frame, gui.get_image().shape)
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), **more}


def test_a_script_runs_the_number_of_frames_that_the_environment_says():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment(TINOTE_GUI_FRAMES="7"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "started\n7 (64, 64, 4)\n"
    assert "no notebook" in done.stderr and "7 frames" in done.stderr


def test_a_script_without_a_bound_ends_at_ctrl_c():
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "started\n"
    assert child.stderr is not None
    while "until Ctrl-C" not in (line := child.stderr.readline()):
        assert line, "it has ended"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=600)
    assert child.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_bad_number_of_frames_is_refused(monkeypatch):
    monkeypatch.setenv("TINOTE_GUI_FRAMES", "many")
    with pytest.raises(ViewError, match="TINOTE_GUI_FRAMES"):
        GUI(show_gui=False)


def test_loops_that_wait_for_the_close_button_end_too(monkeypatch):
    monkeypatch.setenv("TINOTE_GUI_FRAMES", "3")
    gui = GUI(show_gui=False)
    while not gui.get_event(gui.ESCAPE, gui.EXIT):
        gui.show()
    assert gui.frame == 3 and gui.event is not None and gui.event.type == gui.PRESS
