"""`ti.ui.Scene` and `ti.ui.Camera`: programs of the dialect draw what they say, and matrices are the dialect's."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tests.viz.windows import shown
from tinote.viz.draw.arrays import ViewError
from tinote.viz.window.events import Event

WIDTH, HEIGHT = 120, 80


@pytest.fixture
def window():
    return ti.ui.Window("test", (WIDTH, HEIGHT), show_window=False)


def camera(*position: float) -> ti.ui.Camera:
    found = ti.ui.make_camera()
    found.position(*position)
    found.lookat(0.0, 0.0, 0.0)
    return found


def test_a_scene_is_drawn_over_the_background_and_emptied(window):
    canvas, scene = window.get_canvas(), window.get_scene()
    canvas.set_background_color((0.0, 0.2, 0.0))
    scene.set_camera(camera(0, 0, 4))
    scene.ambient_light((1.0, 1.0, 1.0))
    centers = ti.Vector.field(3, ti.f32, shape=2)
    centers[0], centers[1] = [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]
    scene.particles(centers, radius=0.3, per_vertex_color=np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    canvas.scene(scene)
    image = shown(window)
    assert image[36, 40].tolist() == [255, 0, 0] and image[84, 40].tolist() == [0, 0, 255]
    assert image[60, 40].tolist() == [0, 51, 0]
    canvas.scene(scene)
    assert (shown(window) == [0, 51, 0]).all()


def test_what_is_drawn_later_lies_over_the_scene(window):
    canvas, scene = window.get_canvas(), ti.ui.Scene()
    scene.particles(np.zeros((1, 3)), radius=1.0)
    canvas.scene(scene)
    canvas.circles(np.array([[0.5, 0.5]]), 0.1, (1.0, 1.0, 0.0))
    assert shown(window)[60, 40].tolist() == [255, 255, 0]


def test_parts_of_arrays_are_chosen(window):
    canvas, scene = window.get_canvas(), window.get_scene()
    corners = np.array([[-1, -1, 0], [0, -1, 0], [0, 1, 0], [-1, 1, 0], [1, -1, 0], [1, 1, 0]], np.float32)
    indices = np.array([0, 1, 2, 0, 2, 3, 1, 4, 5, 1, 5, 2])

    def covered(draw) -> list[float]:
        scene.set_camera(camera(0, 0, 4))
        scene.ambient_light((1, 1, 1))
        draw()
        canvas.scene(scene)
        image = shown(window).any(axis=2)
        return [image[:60].mean(), image[60:].mean()]

    whole = covered(lambda: scene.mesh(corners, indices=indices))
    assert whole[0] > 0.2 and whole[1] > 0.2
    right = covered(lambda: scene.mesh(corners, indices=indices, index_offset=6, index_count=6))
    assert right == [0.0, whole[1]]
    left = covered(lambda: scene.mesh(corners, indices=indices[:6], vertex_count=4))
    assert left == [whole[0], 0.0]
    assert covered(lambda: scene.particles(corners, 0.1, index_offset=4))[0] == 0.0
    edges = covered(lambda: scene.mesh(corners, indices=indices, show_wireframe=True))
    assert 0.0 < edges[0] < 0.3 * whole[0]
    places = np.tile(np.eye(4), (2, 1, 1))
    places[1, 0, 3] = 1.0
    both = covered(lambda: scene.mesh_instance(corners[:4], indices=indices[:6], transforms=places))
    assert both == pytest.approx(whole, abs=0.01)
    assert covered(
        lambda: scene.mesh_instance(corners[:4], indices=indices[:6], transforms=places, instance_offset=1)
    ) == pytest.approx([0.0, whole[1]], abs=0.01)
    lines = covered(lambda: scene.lines(corners, 2.0, indices=np.array([4, 5])))
    assert lines[0] == 0.0 and lines[1] > 0.0


def test_the_matrices_of_a_camera_are_the_dialects():
    found = ti.ui.Camera()
    found.position(1, 2, 3)
    found.lookat(0, 0, 0)
    view = [
        [0.9486834, -0.1690309, 0.2672612, 0.0],
        [0.0, 0.8451543, 0.5345225, 0.0],
        [-0.3162278, -0.5070926, 0.8017837, 0.0],
        [0.0, 0.0, -3.7416573, 1.0],
    ]
    assert found.get_view_matrix() == pytest.approx(np.array(view), abs=1e-6)
    flat = found.get_projection_matrix(1.5)
    assert np.diag(flat) == pytest.approx([1.6094756, 2.4142134, 1.0001e-4, 0.0]) and flat[3, 2] == pytest.approx(
        0.10001
    )
    found.projection_mode(ti.ui.ProjectionMode.Orthogonal)
    assert np.diag(found.get_projection_matrix(1.5)) == pytest.approx([1.0, 1.0, 1.0000999e-3, 1.0])


def test_an_orthogonal_view_does_not_shrink_what_is_far(window):
    canvas, scene = window.get_canvas(), window.get_scene()
    found = camera(0, 0, 5)
    found.projection_mode(ti.ui.ProjectionMode.Orthogonal)
    found.left(-1.5), found.right(1.5), found.bottom(-1), found.top(1)
    scene.set_camera(found)
    scene.ambient_light((1, 1, 1))
    scene.particles(np.array([[-0.75, 0, 3.0], [0.75, 0, -30.0]]), 0.25)
    canvas.scene(scene)
    image = shown(window).any(axis=2)
    assert image[:60].sum() == pytest.approx(image[60:].sum(), rel=0.02) and image.sum() > 500


def test_a_camera_flies_by_keys_and_turns_by_the_pointer(window, monkeypatch):
    clock = iter(np.arange(100) / 60.0)
    monkeypatch.setattr("tinote.viz.window.scene.time.perf_counter", lambda: next(clock))
    found = camera(0, 0, 4)

    def happen(kind: str, key: str, pos=(0.5, 0.5)) -> None:
        window._gui._events.add(Event(kind, key, pos))

    found.track_user_inputs(window, movement_speed=0.5, hold_key=ti.ui.RMB)
    happen(ti.ui.PRESS, "w")
    found.track_user_inputs(window, movement_speed=0.5, hold_key=ti.ui.RMB)
    assert found.curr_position == pytest.approx([0, 0, 3.5]) and found.curr_lookat == pytest.approx([0, 0, -0.5])
    happen(ti.ui.RELEASE, "w"), happen(ti.ui.PRESS, "d")
    found.track_user_inputs(window, movement_speed=0.5, hold_key=ti.ui.RMB)
    assert found.curr_position == pytest.approx([0.5, 0, 3.5])
    happen(ti.ui.RELEASE, "d"), happen(ti.ui.MOTION, ti.GUI.MOVE, (0.8, 0.5))
    found.track_user_inputs(window, hold_key=ti.ui.RMB)
    assert found.curr_lookat == pytest.approx([0.5, 0, -0.5]), "the button is not held"
    happen(ti.ui.PRESS, ti.ui.RMB, (0.5, 0.5))
    found.track_user_inputs(window, yaw_speed=1.0, pitch_speed=1.0, hold_key=ti.ui.RMB)
    happen(ti.ui.MOTION, ti.GUI.MOVE, (1.0, 0.5))
    found.track_user_inputs(window, yaw_speed=1.0, pitch_speed=1.0, hold_key=ti.ui.RMB)
    forwards = found.curr_lookat - found.curr_position
    assert forwards == pytest.approx(4 * np.array([np.sqrt(0.5), 0, -np.sqrt(0.5)])), "an eighth of a turn to the right"
    happen(ti.ui.MOTION, ti.GUI.MOVE, (1.0, 9.0))
    found.track_user_inputs(window, hold_key=ti.ui.RMB)
    forwards = found.curr_lookat - found.curr_position
    assert 3.99 < forwards[1] < 4.0, "not past the vertical"


def test_the_depth_buffer_is_one_at_the_near_plane_and_zero_where_nothing_is(window):
    canvas, scene, eye = window.get_canvas(), window.get_scene(), camera(0, 0, 4)
    eye.z_near(1.0)
    eye.z_far(9.0)
    assert not window.get_depth_buffer_as_numpy().any()
    for mode in ti.ui.ProjectionMode:
        eye.projection_mode(mode)
        scene.set_camera(eye)
        corners = np.array([[-9, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]], np.float32)
        scene.mesh(corners, indices=np.array([0, 1, 2, 0, 2, 3]), two_sided=True)
        canvas.scene(scene)
        scene.set_camera(eye)
        scene.particles(np.array([[0.0, 0.0, 2.0]]), radius=0.5)
        canvas.scene(scene)
        found = window.get_depth_buffer_as_numpy()
        assert found.shape == (WIDTH, HEIGHT) and found.dtype == np.float32

        def expected(z: float) -> float:
            seen = np.array([0.0, 0.0, z, 1.0]) @ eye.get_view_matrix() @ eye.get_projection_matrix(WIDTH / HEIGHT)
            return float(seen[2] / seen[3])

        assert found[2, 3] == pytest.approx(expected(0.0), abs=1e-5)
        assert found[WIDTH // 2, HEIGHT // 2] == pytest.approx(expected(2.5), abs=1e-3)
        window.show()
        field = ti.field(ti.f32, shape=(WIDTH, HEIGHT))
        window.get_depth_buffer(field)
        assert (field.to_numpy() == found).all(), "that of the frame that was shown"
        array = np.zeros((WIDTH, HEIGHT), np.float32)
        window.get_depth_buffer(array)
        assert (array == found).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda window: window.get_depth_buffer(np.zeros((3, 3))), r"shape \(3, 3\), and the window \(120, 80\)"),
        (lambda window: window.get_canvas().scene(None), "None is not a scene"),
        (lambda window: window.get_scene().set_camera(3), "that is not a camera"),
        (lambda window: window.get_scene().point_light((0, 0), (1, 1, 1)), "a position in space has three numbers"),
        (lambda window: window.get_scene().ambient_light(1.0), "the colour of a light has three numbers"),
        (lambda window: window.get_scene().mesh(np.zeros((3, 3)), indices=[0, 1, 7]), "there are 3 vertices"),
        (lambda window: window.get_scene().particles(np.zeros((3, 3)), 0.1, index_offset=-1), "begins at -1"),
        (lambda window: camera(0, 0, 0).get_view_matrix(), "two points must differ"),
        (lambda window: camera(0, np.nan, 0), "y must be a number, not nan"),
        (lambda window: camera(0, 0, 1).fov(180), "between 0 and 180"),
        (lambda window: camera(0, 0, 1).up(0, 0, 0), "must be a direction"),
        (lambda window: camera(0, 0, 1).z_near(0), "must be positive"),
        (lambda window: camera(0, 0, 1).projection_mode(1), "not a projection mode"),
    ],
)
def test_what_cannot_be_drawn_is_refused(window, wrong, message):
    with pytest.raises(ViewError, match=message):
        wrong(window)
