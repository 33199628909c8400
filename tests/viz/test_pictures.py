"""Drawing: where things are, how large, and what lies on top."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tinote.viz.draw.pictures import Picture

WHITE = np.array([255, 255, 255], np.uint8)


def ink(picture: Picture) -> float:
    """Pixels covered by white on black, partly covered ones in part."""
    return picture.pixels[:, :, 0].sum() / 255.0


@pytest.mark.parametrize("radius", [1.0, 2.5, 7.0, 20.0])
@pytest.mark.parametrize("center", [(32.0, 32.0), (31.3, 30.8)])
def test_a_disc_covers_its_area(radius, center):
    picture = Picture(64, 64)
    picture.discs(np.array([center]), radius, WHITE)
    # Coverage is judged by the distance from the centre, which is good to a third of a pixel for the smallest discs.
    assert ink(picture) == pytest.approx(np.pi * radius**2, rel=0.06, abs=0.33)
    rows, columns = np.indices((64, 64))
    weight = picture.pixels[:, :, 0] / picture.pixels[:, :, 0].sum()
    assert ((columns + 0.5) * weight).sum() == pytest.approx(center[0], abs=0.1)
    assert ((rows + 0.5) * weight).sum() == pytest.approx(center[1], abs=0.1)


def test_a_disc_over_the_edge_is_cut():
    picture = Picture(40, 40)
    picture.discs(np.array([[0.0, 20.0]]), 10.0, WHITE)
    assert ink(picture) == pytest.approx(np.pi * 100 / 2, rel=0.06)


def test_discs_that_cannot_be_seen_change_nothing():
    picture = Picture(10, 10)
    picture.discs(np.array([[np.nan, 5.0], [np.inf, 5.0], [-50.0, 5.0], [5.0, 1e30]]), 2.0, WHITE)
    picture.discs(np.zeros((0, 2)), 2.0, WHITE)
    picture.discs(np.array([[5.0, 5.0]]), 0.0, WHITE)
    assert ink(picture) == 0


def test_the_later_disc_lies_on_top_whatever_its_size():
    red, blue = np.array([255, 0, 0], np.uint8), np.array([0, 0, 255], np.uint8)
    for radii in ([12.0, 6.0], [6.0, 12.0]):
        picture = Picture(40, 40)
        picture.discs(np.array([[20.0, 20.0], [22.0, 20.0]]), np.array(radii), np.stack([red, blue]))
        assert picture.pixels[20, 22].tolist() == [0, 0, 255]
    picture = Picture(40, 40)
    picture.discs(np.array([[20.0, 20.0], [22.0, 20.0]]), np.array([12.0, 6.0]), np.stack([red, blue]))
    assert picture.pixels[20, 10].tolist() == [255, 0, 0]


def test_many_discs_are_drawn_in_pieces_alike(monkeypatch):
    rng = np.random.default_rng(0)
    centers, radii = rng.random((300, 2)) * 80, rng.random(300) * 5 + 0.5
    colors = rng.integers(0, 256, (300, 3)).astype(np.uint8)
    whole, pieces = Picture(80, 80), Picture(80, 80)
    whole.discs(centers, radii, colors)
    monkeypatch.setattr("tinote.viz.draw.pictures.CHUNK", 500)
    pieces.discs(centers, radii, colors)
    assert np.array_equal(whole.pixels, pieces.pixels)


def test_a_line_covers_length_times_width():
    picture = Picture(100, 100)
    picture.lines(np.array([[20.0, 30.0]]), np.array([[80.0, 70.0]]), 4.0, WHITE)
    length = np.hypot(60, 40)
    assert ink(picture) == pytest.approx(length * 4 + np.pi * 4, rel=0.08)
    assert picture.pixels[50, 50, 0] == 255


def test_triangles_cover_their_area_and_meet_without_a_seam():
    a, b, c, d = [10.0, 10.0], [70.0, 13.0], [60.0, 70.0], [12.0, 66.0]
    picture = Picture(80, 80)
    picture.triangles(np.array([[a, b, c], [a, c, d]]), WHITE)

    def area(p, q, r):
        return abs((q[0] - p[0]) * (r[1] - p[1]) - (r[0] - p[0]) * (q[1] - p[1])) / 2

    assert ink(picture) == pytest.approx(area(a, b, c) + area(a, c, d), rel=0.03)
    diagonal = [picture.pixels[round(10 + 60 * t), round(10 + 50 * t), 0] for t in np.linspace(0.1, 0.9, 30)]
    assert min(diagonal) == 255


def test_shapes_far_outside_or_not_finite_change_nothing():
    picture = Picture(20, 20)
    picture.lines(np.array([[1e12, 1e12]]), np.array([[1e13, 2e12]]), 2.0, WHITE)
    picture.triangles(np.full((1, 3, 2), np.nan), WHITE)
    assert ink(picture) == 0


def test_text_is_painted_where_asked():
    picture = Picture(120, 60)
    picture.text("energy\n0.125", 40, 10, 16, WHITE)
    rows, columns = np.nonzero(picture.pixels[:, :, 0] > 128)
    assert 39 <= columns.min() <= 44
    assert 10 <= rows.min() <= 18
    assert rows.max() > 30
    assert len(rows) > 100


def test_png_keeps_every_pixel_and_is_reproducible():
    picture = Picture(30, 20, (1, 2, 3))
    picture.discs(np.array([[10.0, 10.0]]), 5.0, np.array([200, 100, 50], np.uint8))
    assert picture.png() == picture.png()
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(picture.png()))), picture.pixels)
    assert Image.open(io.BytesIO(picture.jpeg())).size == (30, 20)
