"""Boxes in space with axes: what is drawn of them, in pictures and in pages."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.viz.live import picture_of
from tests.viz.test_scale import run
from tinote.viz import Particles
from tinote.viz.live.projection import OrbitCamera, eye_of
from tinote.viz.space.box import described_box, drawn_box
from tinote.viz.space.camera import Eye

BOUNDS = ((-2.0, 3.0), (0.0, 1.5), (10.0, 14.0))
SIZE = (400, 300)

EYES = [
    eye_of(np.array(BOUNDS), OrbitCamera(azimuth, elevation, 4 / 3, 1.25))
    for azimuth, elevation in itertools.product((0.0, 20.0, 130.0, 250.0), (-30.0, 0.0, 40.0))
] + [
    Eye((9.0, 4.0, 7.0), (0.0, 0.5, 12.0), up=(0.0, 1.0, 0.0)),
    Eye((9.0, 4.0, 15.0), (0.0, 0.5, 12.0), up=(0.0, 0.0, 1.0), box=(-8.0, 8.0, -6.0, 6.0), near=0.1, far=90.0),
    Eye((0.0, 1.0, 12.0), (3.0, 1.2, 12.5), up=(0.0, 0.0, 1.0)),  # Inside of the box.
]

IN_THE_PAGE = """(() => {
  const widths = { width: 20 };
  globalThis.document = { createElement: () => ({ getContext: () => ({ measureText: () => widths }) }) };
  const known = (strokes) => strokes.filter((ends) => ends.every(Boolean)).map((ends) => ends.flat());
  return data.map(([box, eye, [width, height]]) => {
    const { lines, grid, texts } = boxParts(box, eye, projector(eye, width, height));
    return [known(lines), known(grid), texts.map(([place, text]) => [...place, text])];
  });
})()"""


def ordered(rows: Any) -> list[list[float]]:
    return sorted([round(float(part), 3) + 0.0 for part in row] for row in rows)


def test_pictures_and_pages_draw_the_same_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinote.viz.space.box.text_width", lambda _: 20.0)
    box = described_box(BOUNDS, ("x [m]", "y", "height"), grid=True)
    cases = [(box, eye._asdict(), SIZE) for eye in EYES] + [(described_box(BOUNDS), EYES[0]._asdict(), SIZE)]
    made = run(("draw/canvas_axes.js", "draw/camera.js", "draw/box.js"), cases, IN_THE_PAGE)
    for (described, eye, size), (lines, grid, texts) in zip(cases, made, strict=True):
        wanted = drawn_box(described, Eye(**eye), size)
        assert np.allclose(ordered(lines), ordered(wanted.lines), atol=0.01), eye
        assert np.allclose(
            np.array(ordered(grid)).reshape(-1, 4), np.array(ordered(wanted.grid)).reshape(-1, 4), atol=0.01
        ), eye
        assert [text for *_, text in texts] == [text for *_, text in wanted.texts]
        assert np.allclose([place for *place, _ in texts], [place for *place, _ in wanted.texts], atol=0.01), eye


@pytest.mark.parametrize("elevation", [-40.0, 25.0, 80.0])
@pytest.mark.parametrize("azimuth", [0.0, 45.0, 100.0, 200.0, 300.0])
def test_ticks_are_where_their_values_are_and_beside_the_box(azimuth: float, elevation: float) -> None:
    """A tick begins where the camera sees its point of the edge; no text lies over the box or out of the picture."""
    camera = OrbitCamera(azimuth, elevation, 4 / 3, 1.25)
    box = described_box(BOUNDS, "xyz")
    shown = drawn_box(box, eye_of(np.array(BOUNDS), camera), SIZE)
    assert len(shown.lines) == 12 + sum(len(axis["ticks"]) for axis in box["axes"])
    corners = shown.lines[:12].reshape(-1, 2)
    for across, down, text in shown.texts:
        assert 0 < across < SIZE[0] and 0 < down < SIZE[1]
        angles = np.sort(np.arctan2(*(corners - [across, down]).T[::-1]))
        gaps = np.diff([*angles, angles[0] + 2 * np.pi])
        assert gaps.max() > np.pi - 1e-6, f"{text} lies inside of the box's outline"


def test_particles_in_space_have_axes_where_they_are_asked_for() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    assert Particles(points).capture().message["box"]["axes"] == []
    box = Particles(points, z_label="h [m]").capture().message["box"]
    assert [axis["label"] for axis in box["axes"]] == ["x", "y", "h [m]"]
    assert all(len(axis["ticks"]) >= 3 for axis in box["axes"])
    plain = picture_of(Particles(points, axes=False, size=240))
    ticked, ruled = (
        picture_of(Particles(points, axes=True, size=240)),
        picture_of(Particles(points, grid=True, size=240)),
    )
    assert (plain != ticked).any() and (ticked != ruled).any(axis=2).sum() > 200


def test_the_box_stands_out_from_a_dark_ground() -> None:
    dark = picture_of(Particles(np.zeros((0, 3)), axes=True, background="black", size=240))
    assert (dark[2:-2, 2:-2].max(axis=2) > 0x50).sum() > 300
