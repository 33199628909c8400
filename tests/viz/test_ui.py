"""`ti.ui` in the plane, and the controls of both kinds of window, worked by events as the page sends them."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tests.viz.windows import shown
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.colormap import colored
from tinote.viz.window.events import Event

WIDTH, HEIGHT = 200, 100


@pytest.fixture
def window():
    return ti.ui.Window("test", (WIDTH, HEIGHT), show_window=False)


def press(window, x: float, y_from_top: float) -> None:
    window._gui._events.add(Event(ti.ui.PRESS, ti.ui.LMB, (x / WIDTH, 1 - y_from_top / HEIGHT)))


def release(window) -> None:
    window._gui._events.add(Event(ti.ui.RELEASE, ti.ui.LMB, window.get_cursor_pos()))


def test_circles_have_radii_in_shares_of_the_height_and_colours_as_floats(window):
    canvas = window.get_canvas()
    canvas.set_background_color((0.0, 0.2, 0.0))
    canvas.circles(np.array([[0.25, 0.5]], np.float32), radius=0.1, color=(1.0, 0.0, 0.0))
    image = shown(window)
    assert image[50, 50].tolist() == image[58, 50].tolist() == [255, 0, 0]
    assert image[62, 50].tolist() == [0, 51, 0]
    canvas.circles(
        np.array([[0.25, 0.5], [0.75, 0.5]]), radius=0.1, per_vertex_color=np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    )
    image = shown(window)
    assert image[50, 50].tolist() == [255, 255, 0] and image[150, 50].tolist() == [0, 0, 255]
    assert image[100, 10].tolist() == [0, 51, 0], "the background stays"


def test_colours_of_vertices_may_have_an_opacity_which_is_left_out(window):
    canvas, colors = window.get_canvas(), np.array([[1.0, 1.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0]])
    canvas.circles(np.array([[0.25, 0.5], [0.75, 0.5]]), radius=0.1, per_vertex_color=colors)
    canvas.lines(np.array([[0.1, 0.2], [0.9, 0.2]]), 0.04, per_vertex_color=colors)
    image = shown(window)
    assert image[50, 50].tolist() == image[100, 20].tolist() == [255, 255, 0]
    assert image[150, 50].tolist() == [0, 0, 255]
    with pytest.raises(ViewError, match=r"shape \(2, 2\); colours of their vertices have shape \(N, 3\)"):
        canvas.circles(np.zeros((2, 2)), radius=0.1, per_vertex_color=np.zeros((2, 2)))


def test_lines_and_triangles_by_pairs_and_by_indices(window):
    canvas = window.get_canvas()
    points = np.array([[0.1, 0.5], [0.9, 0.5], [0.5, 0.9], [0.5, 0.1]])
    canvas.lines(points, 0.04, color=(1.0, 1.0, 1.0))
    image = shown(window)
    assert (image[30:170, 50] == 255).all() and (image[100, 20:80] == 255).all() and image[30, 80].sum() == 0
    canvas.lines(points, 0.04, indices=np.array([0, 1]), color=(1.0, 1.0, 1.0))
    image = shown(window)
    assert (image[30:170, 50] == 255).all() and image[100, 80].sum() == 0
    canvas.triangles(points, indices=np.array([0, 1, 2]), per_vertex_color=np.eye(4)[:, :3])
    image = shown(window)
    assert image[100, 60].tolist() == [85, 85, 85] and image[100, 40].sum() == 0


def test_an_image_fills_the_window(window):
    x = ti.field(ti.f32, shape=(2, 2))
    x[1, 0] = 1.0
    window.get_canvas().set_image(x)
    image = shown(window)
    assert (image[100:, :50] == 255).all() and image[:100].sum() == image[100:, 50:].sum() == 0


def test_a_contour_and_arrows(window):
    canvas = window.get_canvas()
    canvas.contour(np.array([[2.0, 4.0], [4.0, 2.0]]), cmap_name="viridis", normalize=True)
    image = shown(window)
    assert image[10, 10].tolist() == [0x44, 0x01, 0x54] and image[190, 10].tolist() == [0xFD, 0xE7, 0x25]
    canvas.vector_field(np.ones((10, 10, 2)), arrow_spacing=5, scale=0.1, width=0.02)
    image = shown(window)[:, :, 0]
    assert np.count_nonzero(image[50, 25:30]) and np.count_nonzero(image[150, 75:80])
    assert np.count_nonzero(image) < 0.1 * image.size


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda canvas: canvas.lines(np.zeros((3, 2)), 0.1), "not a multiple of 2"),
        (lambda canvas: canvas.triangles(np.zeros((3, 2)), indices=[0, 1, 3]), "3 vertices"),
        (lambda canvas: canvas.set_image(np.zeros(3)), "shape"),
        (lambda canvas: canvas.contour(np.zeros(3)), "shape"),
        (lambda canvas: canvas.contour(np.zeros((3, 3)), cmap_name="brown"), "no colour map"),
        (lambda canvas: canvas.vector_field(np.zeros((3, 3))), "shape"),
        (lambda canvas: canvas.vector_field(np.zeros((3, 3, 2)), arrow_spacing=0), "arrow_spacing"),
    ],
)
def test_what_cannot_be_drawn_is_refused(window, draw, message):
    with pytest.raises(ViewError, match=message):
        draw(window.get_canvas())


def test_keys_and_the_pointer(window):
    press(window, 50, 25)
    window._gui._events.add(Event(ti.ui.PRESS, "r"))
    assert window.is_pressed(ti.ui.LMB) and window.is_pressed("r")
    assert window.get_event(ti.ui.PRESS) and window.event.key == ti.ui.LMB
    assert [event.key for event in window.get_events(ti.ui.PRESS)] == ["r"]
    assert not window.get_event()
    assert window.get_window_shape() == (WIDTH, HEIGHT)


def test_a_window_ends_and_writes_its_frame(window, tmp_path):
    window.get_canvas().set_background_color((1.0, 1.0, 1.0))
    window.save_image(str(tmp_path / "a.png"))
    assert (ti.tools.imread(tmp_path / "a.png") == 255).all()
    assert window.running
    window.running = False
    assert not window.running
    window.destroy()


def frame(window, state: dict) -> None:
    """A frame of a program with controls: rows begin 6 and 28, 50, 72 pixels below the top."""
    gui = window.get_gui()
    with gui.sub_window("Parameters", 0.0, 0.0, 0.5, 1.0) as box:
        state["speed"] = box.slider_float("speed", state["speed"], 0.0, 2.0)
        state["on"] = box.checkbox("on", state["on"])
        state["go"] = box.button("go")
    window.show()


def test_controls_follow_the_pointer(window):
    state = {"speed": 0.5, "on": False, "go": False}
    frame(window, state)
    assert state == {"speed": 0.5, "on": False, "go": False}
    press(window, 6 + 44, 36)  # the middle of the slider, which is 88 pixels wide
    frame(window, state)
    frame(window, state)
    assert state["speed"] == pytest.approx(1.0) and not state["on"] and not state["go"]
    window._gui._events.add(Event(ti.ui.MOTION, ti.GUI.MOVE, (0.9, 0.1)))
    frame(window, state)
    frame(window, state)
    assert state["speed"] == 2.0, "it is dragged on outside of the box"
    release(window)
    press(window, 20, 58)
    release(window)
    frame(window, state)
    frame(window, state)
    assert state["on"] and not state["go"] and state["speed"] == 2.0, "a short click counts once"
    press(window, 20, 80)
    frame(window, state)
    frame(window, state)
    assert state["go"] and state["on"]
    frame(window, state)
    assert not state["go"]


def test_a_slider_ends_where_the_pointer_was_let_go(window):
    """However few frames there were on the way: none after the last motion, or none at all."""
    state = {"speed": 0.5, "on": False, "go": False}
    frame(window, state)
    for frames in (1, 0):
        press(window, 6 + 22, 36)
        for _ in range(2 * frames):
            frame(window, state)
        window._gui._events.add(Event(ti.ui.RELEASE, ti.ui.LMB, ((6 + 66) / WIDTH, 1 - 36 / HEIGHT)))
        window._gui._events.add(Event(ti.ui.MOTION, ti.GUI.MOVE, (0.0, 0.0)))
        frame(window, state)
        frame(window, state)
        assert state["speed"] == pytest.approx(1.5)
        frame(window, state)
        assert state["speed"] == pytest.approx(1.5)
        state["speed"] = 0.5


def test_controls_are_painted_over_the_frame(window):
    window.get_canvas().set_background_color((1.0, 1.0, 1.0))
    plain = shown(window)
    window.get_gui().text("speed", color=(1.0, 0.0, 0.0))
    assert window.get_gui().slider_int("n", 3, 0, 6) == 3
    assert window.GUI.color_edit_3("sky", (0.5, 0.25, 1.0)) == (0.5, 0.25, 1.0)
    window.get_gui().end()
    image = shown(window)
    assert (plain[:80] != image[:80]).any(axis=2).mean() > 0.9
    assert (plain[81:] == image[81:]).all()
    assert (shown(window) == plain).all(), "and only for that frame"


def test_controls_without_a_box_are_in_each_frame_that_asks_for_them(window):
    plain = shown(window)
    for _ in range(3):
        window.get_gui().text("step")
        assert (shown(window) != plain).any()
    assert (shown(window) == plain).all()


def test_widgets_of_the_old_window():
    gui = ti.GUI("test", (WIDTH, HEIGHT), show_gui=False)
    speed, go, count = gui.slider("speed", 0, 10, step=2), gui.button("go"), gui.label("count")
    assert speed.value == 0
    count.value = 3
    gui.show()
    gui._events.add(Event(ti.GUI.PRESS, ti.GUI.LMB, (0.1 + 0.9 * 0.65, 0.9)))
    for _ in range(2):
        gui.show()
    assert speed.value == 6, "in steps of 2"
    list(gui.get_events())
    gui._events.add(Event(ti.GUI.RELEASE, ti.GUI.LMB, (0.5, 0.5)))
    gui._events.add(Event(ti.GUI.PRESS, ti.GUI.LMB, (0.5, 0.65)))
    for _ in range(2):
        gui.show()
    assert [event.key for event in gui.get_events(ti.GUI.PRESS)] == [ti.GUI.LMB, go]
    assert speed.value == 6
    with pytest.raises(ViewError):
        gui.slider("wrong", 1, 0)


def test_contour_and_vector_field_of_the_old_window():
    gui = ti.GUI("test", (WIDTH, HEIGHT), show_gui=False)
    gui.contour(np.array([[0.0, 0.0], [1.0, 1.0]]))
    gui.vector_field(np.ones((20, 10, 2)))
    gui.show()
    image = np.rint(gui.get_image()[:, :, :3] * 255).astype(int)
    assert image[0, 0].tolist() == [0x0D, 0x08, 0x87] and image[199, 0].tolist() == [0xF0, 0xF9, 0x21]
    assert (image == 255).all(axis=2).sum() > 50


def test_colour_maps_are_exact_at_their_ends_and_cut_off_beyond():
    found = colored(np.array([[-1.0, 0.0, 1.0, 7.0, np.nan]]), "gray")
    assert found[0, :, 0].tolist() == [0.0, 0.0, 1.0, 1.0, 0.0]
