"""Many particles as one picture, of their discs or their density: by a kernel, whatever the session's options are."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tests.viz.live import picture_of
from tinote.viz import Particles
from tinote.viz.draw.pictures import Picture
from tinote.viz.live.cover import DENSITY_COUNT, density, discs

INK = np.array([255, 0, 0], np.uint8)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_particles_are_counted_where_they_are(kind):
    corners = [[0, 0], [2, 1], [0, 1], [2, 0]]
    points = np.array(corners * 3 + [[0.3, 0.8]] + [[-0.1, 0.5], [2.1, 0.5], [np.nan, 0.5], [np.inf, 0.5]], kind)
    found = density(points, ((0, 2), (0, 1)), (4, 2), INK)
    assert found.inside == 13 and found.colors is None
    # Four pixels have particles, 13 / 4 on the mean; rows come from the top.
    cover = lambda count: int(255 * -np.expm1(-count / 3.25) + 0.5)  # noqa: E731
    assert found.cover.tolist() == [[cover(4), 0, 0, cover(3)], [cover(3), 0, 0, cover(3)]]


def test_it_is_that_of_a_histogram():
    points = np.random.default_rng(0).normal(0.5, 0.3, (20_000, 2))
    found = density(points, ((0, 1), (0, 1)), (30, 20), INK)
    counts = np.histogram2d(*points.T, bins=(30, 20), range=((0, 1), (0, 1)))[0].T[::-1]
    assert found.inside == counts.sum()
    expected = 255 * -np.expm1(-counts / (counts.sum() / (counts > 0).sum()))
    # The kernel's edges are those of 32-bit arithmetic: a particle next to one may count for its neighbour.
    assert np.abs(found.cover - expected).max() < 8


def test_colours_are_averaged():
    points = np.array([[0.25, 0.5], [0.25, 0.5], [0.75, 0.5]])
    colors = np.array([[200, 0, 0], [0, 100, 0], [0, 0, 40]], np.uint8)
    found = density(points, ((0, 1), (0, 1)), (2, 1), colors)
    assert found.colors is not None
    assert found.colors.tolist() == [[[100, 50, 0], [0, 0, 40]]]


def test_a_view_of_very_many_shows_their_density_in_any_session():
    ti.init(arch=ti.python)  # The view's own kernel runs as machine code all the same.
    x = np.random.default_rng(0).random((DENSITY_COUNT + 1, 2)) * [0.5, 1.0]
    view = Particles(x, color=0xFF0000, size=60)
    frame = view.capture()
    assert frame.message == {"count": DENSITY_COUNT + 1, "outside": 0, "cover": "bytes"}
    assert len(frame.buffers[0]) == 60 * 60 and frame.buffers[1] == b""
    image = picture_of(view)
    assert image[5:-5, 5:25, 1].mean() < 130 and (image[5:-5, 35:-5] == 255).all()
    assert view.pick(0.25, 0.5, True) == ((0.25, 0.5), None)
    ti.reset()


def test_no_particles_and_none_inside():
    assert density(np.zeros((0, 2)), ((0, 1), (0, 1)), (3, 2), INK).cover.tolist() == [[0] * 3] * 2
    assert density(np.full((5, 2), 9.0), ((0, 1), (0, 1)), (3, 2), INK).inside == 0


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_discs_cover_what_a_picture_of_them_shows(kind):
    rng = np.random.default_rng(0)
    points = rng.normal(0.5, 0.3, (200, 2)).astype(kind)
    found = discs(points, ((0, 1), (0, 0.5)), (60, 30), 2.5)
    inside = ((points >= 0) & (points <= [1, 0.5])).all(axis=1)
    assert found.colors is None and found.inside == inside.sum()
    picture = Picture(60, 30, (0, 0, 0))
    picture.discs(points[inside] * [60, -60] + [0, 30], 2.5, np.array([255, 255, 255], np.uint8))
    away = np.abs(found.cover.astype(int) - picture.pixels[:, :, 0])
    # A centre is moved to the nearest of four places a pixel: an edge by an eighth of a pixel in both directions.
    assert away.max() <= 255 * np.hypot(1 / 8, 1 / 8) + 1
    assert away.mean() < 6


def test_discs_at_the_edges_and_outside():
    points = np.array([[0, 0], [1, 1], [-0.01, 0.5], [0.5, 1.01], [np.nan, 0.5], [0.5, np.inf]])
    found = discs(points, ((0, 1), (0, 1)), (20, 20), 1.5)
    assert found.inside == 2
    assert found.cover[-1, 0] == found.cover[0, -1] == 255
    assert np.count_nonzero(found.cover) == 2 * np.count_nonzero(found.cover[:4, -4:])
    assert discs(np.zeros((0, 2)), ((0, 1), (0, 1)), (3, 2), 1.5).cover.tolist() == [[0] * 3] * 2


def test_a_view_sends_the_smaller_of_positions_and_a_picture():
    x = np.random.default_rng(0).random((900, 2))
    view, crowd = Particles(x, color=0xFF0000, size=60), Particles(np.vstack([x, x[:1]]), color=0xFF0000, size=60)
    assert len(view.capture().buffers[0]) == 3600 and "cover" not in view.capture().message
    frame = crowd.capture()
    assert len(frame.buffers[0]) == 3600 and frame.message["cover"]
    assert np.abs(picture_of(view) - picture_of(crowd)).mean() < 4
    at = crowd.pick(float(x[7, 0]), float(x[7, 1]), True)
    assert at[1] is not None and np.abs(x[at[1]] - x[7]).max() < 0.01


def test_colours_are_painted_by_the_page_up_to_the_density():
    x = np.random.default_rng(0).random((2000, 2))
    view = Particles(x, color=np.full((2000, 3), 0.5), size=60)
    frame = view.capture()
    assert "cover" not in frame.message and [len(part) for part in frame.buffers] == [8000, 0]
    assert view.colors == bytes([128]) * 6000  # with the widget, and not once more with each frame
