"""Particles in space: where the camera sees them, and what the view sends."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tests.viz.live import picture_of, scenario
from tinote.viz import Particles
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.particles import HIDDEN
from tinote.viz.live.projection import OrbitCamera, depth, eye_of, faded, point_at, rasterised, see
from tinote.viz.space.box import described_box, drawn_box
from tinote.viz.space.rasterise import Rasteriser

BOX = np.array([[0.0, 1.0]] * 3)


def test_from_the_x_axis_y_points_to_the_right_and_z_up():
    points = np.array([[0.5, 0.5, 0.5], [0.5, 0.9, 0.5], [0.5, 0.5, 0.9], [0.9, 0.5, 0.5]])
    seen = see(points, BOX, OrbitCamera(0.0, 0.0))
    at = dict(zip(seen.index.tolist(), seen.positions.tolist(), strict=True))
    assert at[0] == pytest.approx([0.5, 0.5]) and at[3] == pytest.approx([0.5, 0.5])
    assert at[1][0] > 0.6 and at[1][1] == pytest.approx(0.5)
    assert at[2][1] > 0.6 and at[2][0] == pytest.approx(0.5)
    assert seen.index[-1] == 3 and seen.nearness[-1] > 0.5  # The nearest lies over the others.


def test_near_things_look_larger():
    ends = np.array([[0.9, 0.4, 0.5], [0.9, 0.6, 0.5], [0.1, 0.4, 0.5], [0.1, 0.6, 0.5]])
    seen = see(ends, BOX, OrbitCamera(0.0, 0.0))
    across = np.zeros(4)
    across[seen.index] = seen.positions[:, 0]
    assert across[1] - across[0] > 1.1 * (across[3] - across[2])


@pytest.mark.parametrize("aspect", [0.5, 1.0, 2.0])
def test_the_box_stays_in_sight_however_it_is_turned(aspect):
    rng = np.random.default_rng(0)
    for azimuth, elevation in zip(rng.uniform(0, 360, 30), rng.uniform(-89, 89, 30), strict=True):
        bounds = np.array([[0, 3.0], [-1, 1], [5, 6]])
        eye = eye_of(bounds, OrbitCamera(azimuth, elevation, aspect))
        edges = drawn_box(described_box(bounds.tolist()), eye, (round(100 * aspect), 100)).lines
        assert edges.shape == (12, 4) and edges.min() >= 0
        assert edges[:, ::2].max() <= 100 * aspect and edges[:, 1::2].max() <= 100


def test_what_is_outside_or_not_finite_is_left_out_and_counted():
    x = np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 1.5], [np.nan, 0.5, 0.5]])
    frame = Particles(x, bounds=((0, 1), (0, 1), (0, 1))).capture()
    assert (frame.message["count"], frame.message["outside"]) == (3, 2)
    packed = np.frombuffer(frame.buffers[0], np.uint16)
    assert packed.tolist() == [HIDDEN // 2] * 2
    assert frame.message["box"]["bounds"] == [[0, 1]] * 3


def test_far_colours_fade():
    near, far = faded(np.array([255, 0, 0]), np.array([1.0, 0.0])).astype(int)
    assert near.tolist() == [255, 0, 0]
    assert far[0] < 255 and far[1] > 60


def test_the_picture_shows_the_nearer_particle_in_front():
    x = np.array([[0.9, 0.5, 0.5], [0.1, 0.5, 0.5]])
    view = Particles(x, color=np.array([0xFF0000, 0x0000FF]), azimuth=0, elevation=0, radius=6, size=100)
    red, _, blue = picture_of(view)[50, 50]
    assert red > 200 and blue < 100
    view.turn(180, 0)
    red, _, blue = picture_of(view)[50, 50]
    assert blue > 200 and red < 100
    assert repr(view) == "<Particles: 2 in [0, 1] × [0, 1] × [0, 1]>"


@pytest.mark.parametrize("aspect", [0.5, 1.0, 2.0])
def test_a_place_and_a_depth_give_the_point_that_is_seen_there(aspect):
    rng = np.random.default_rng(0)
    bounds = np.array([[0, 3.0], [-1, 1], [5, 6]])
    points = rng.uniform(bounds[:, 0], bounds[:, 1], (20, 3))
    camera = OrbitCamera(rng.uniform(0, 360), rng.uniform(-89, 89), aspect)
    seen = see(points, bounds, camera)
    for place, index in zip(seen.positions, seen.index, strict=True):
        found = point_at(tuple(place), depth(points[index], bounds, camera), bounds, camera)
        assert found == pytest.approx(points[index])


def test_a_particle_in_space_is_dragged_parallel_to_the_picture():
    x = np.array([[0.9, 0.3, 0.5], [0.1, 0.3, 0.5], [0.5, 0.9, 0.9]])  # The first hides the second.
    reported = []

    def drag(pointer):
        reported.append(pointer)
        if pointer.element is not None:
            x[pointer.element] = pointer.position

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        camera = OrbitCamera(0.0, 0.0)
        begin, end = (
            see(np.array([at]), BOX, camera).positions[0].tolist() for at in ([0.9, 0.3, 0.5], [0.9, 0.6, 0.2])
        )
        for phase, at in [("press", begin), ("move", end), ("release", end)]:
            page.say(kind="pointer", phase=phase, place=at)
        await page.until(lambda: reported and not reported[-1].pressed)
        assert x[0] == pytest.approx([0.9, 0.6, 0.2]) and x[1:].tolist() == [[0.1, 0.3, 0.5], [0.5, 0.9, 0.9]]
        assert {pointer.element for pointer in reported} == {0}
        assert np.sum([pointer.movement for pointer in reported], axis=0) == pytest.approx([0.0, 0.3, -0.3])

    scenario(lambda: Particles(x, pointer=drag, azimuth=0, elevation=0), body)


def test_of_particles_in_space_the_one_in_front_is_grabbed_or_else_the_nearest():
    x = np.array([[0.9, 0.5, 0.5], [0.1, 0.5, 0.5], [0.5, 0.7, 0.5]])
    view = Particles(x, pointer=print, azimuth=0, elevation=0, radius=4, size=100)
    assert view.pick(0.5, 0.5, True)[1] == 0
    assert view.pick(0.42, 0.5, True)[1] in (0, 1)  # Next to both: within reach all the same.
    assert view.pick(0.5, 0.9, True) == (pytest.approx([0.5, 0.5, view.pick(0.5, 0.9, False)[0][2]]), None)
    view.turn(180, 0)
    assert view.pick(0.5, 0.5, True)[1] == 1


def test_the_page_turns_the_camera_while_nothing_plays():
    async def body(view, page):
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        page.say(kind="turn", by=[-40.0, 100.0])
        await page.until(lambda: len(page.frames) == 2)
        assert (view.azimuth, view.elevation) == (350.0, 89.0)
        assert page.frames[0]["eye"] != page.frames[1]["eye"]
        assert page.frames[1]["step"] == 0

    scenario(lambda: Particles(np.full((1, 3), 0.5)), body)


@pytest.mark.parametrize("aspect", [(90, 60), (60, 60), (60, 90)])
def test_many_particles_are_drawn_where_few_are_and_the_nearest_hides(aspect):
    """A picture that has fewer bytes than the positions is rasterised; from a few positions the page paints discs."""
    rng = np.random.default_rng(0)
    bounds = np.array([[0, 3.0], [-1, 1], [5, 6]])
    camera = OrbitCamera(200.0, 35.0, aspect[0] / aspect[1])
    points = rng.uniform(bounds[:, 0] - 0.05, bounds[:, 1] + 0.05, (300, 3)).astype(np.float32)
    points[5] = np.nan
    colors = rng.integers(0, 255, (300, 3)).astype(np.uint8)
    found = rasterised(Rasteriser(), points, bounds, camera, aspect, 0.1, colors)
    seen = see(points, bounds, camera)
    assert found.inside == len(seen.index)
    shown = faded(colors[seen.index], seen.nearness).astype(int)
    expected = np.zeros((aspect[1], aspect[0], 3), int)
    columns, rows = (seen.positions * aspect).astype(int).T
    expected[aspect[1] - 1 - rows, columns] = shown  # Later ones are nearer.
    there = expected.any(axis=2)
    covered = found.cover > 0
    assert covered[there].mean() > 0.99 and covered.sum() < 2.0 * there.sum(), "a disc covers its pixel, or two"
    assert found.colors is not None
    assert (np.abs(found.colors.astype(int) - expected).max(axis=2)[there & covered] <= 3).mean() > 0.9


def test_very_many_particles_in_space_are_sent_as_a_picture():
    x = np.random.default_rng(0).random((4000, 3))
    view = Particles(x, size=100, color=0xFF0000)
    frame = view.capture()
    assert frame.message["cover"] and frame.message["outside"] == 0
    bits, jpeg = frame.buffers
    assert frame.message["cover"] == "bits" and len(jpeg) < 2 * 100 * 100
    covered = np.unpackbits(np.frombuffer(bits, np.uint8)).reshape(100, 100).astype(bool)
    sent = np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB")).astype(int)
    assert (covered == (view._captured.cover > 0)).all()
    assert np.abs(sent - view._captured.colors)[covered].mean() < 6, "a JPEG of single pixels"
    assert (picture_of(view)[:, :, 0] > picture_of(view)[:, :, 1] + 30).mean() > 0.3


def test_wrong_arguments_are_refused():
    x = np.zeros((1, 3))
    with pytest.raises(ViewError, match="three pairs"):
        Particles(x, bounds=((0, 1), (0, 1)))
    with pytest.raises(ViewError, match="in space"):
        Particles(np.zeros((1, 4)))
