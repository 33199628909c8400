"""Edges, arrows, trails and numbers as colours of particles: what is sent, what is painted, what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.viz.live import picture_of, scenario
from tests.viz.test_page_agrees import run
from tinote.viz import Particles
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.colormap import table
from tinote.viz.draw.pictures import Picture
from tinote.viz.live.marks import Plane, Trail, trail_strokes
from tinote.viz.live.strokes import (
    Strokes,
    arrow_strokes,
    as_strokes,
    in_pixels,
    paint_edges,
    paint_glows,
    paint_strokes,
)

SQUARE = np.array([[0.25, 0.25], [0.75, 0.25], [0.75, 0.75], [0.25, 0.75]])
RING = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
RED = np.array([255, 0, 0], np.uint8)


def parts_of(view: Particles) -> dict[str, bytes]:
    frame = view.capture()
    return dict(zip(frame.message.get("parts", []), frame.buffers[2:], strict=True))


def places(part: bytes) -> np.ndarray:
    """The ends of strokes as fractions of the picture, (M, 2, 2)."""
    return np.frombuffer(part, np.float32).reshape(-1, 2, 2)


def test_edges_join_the_particles_of_their_pairs_and_follow_a_field_of_them():
    ti.init()
    pairs = ti.Vector.field(2, ti.i32, shape=3)
    pairs.from_numpy(np.array([[0, 1], [1, 2], [-1, -1]], np.int32))  # The last is no edge.
    view = Particles(SQUARE, edges=pairs)
    assert places(parts_of(view)["edges"]) == pytest.approx(SQUARE[[[0, 1], [1, 2]]], abs=1e-4)
    pairs[2] = [3, 0]
    assert places(parts_of(view)["edges"])[2] == pytest.approx(SQUARE[[3, 0]], abs=1e-4)
    pairs[2] = [3, 4]
    with pytest.raises(ViewError, match="edge 2 joins the particles 3 and 4, and there are 4"):
        view.capture()
    ti.reset()


def test_what_is_not_used_is_not_sent():
    frame = Particles(SQUARE).capture()
    assert "parts" not in frame.message and len(frame.buffers) == 2
    assert list(parts_of(Particles(SQUARE, edges=RING))) == ["edges"]
    assert list(parts_of(Particles(SQUARE, arrows=SQUARE))) == ["arrows"]
    assert list(parts_of(Particles(SQUARE, edges=np.zeros((0, 2), int)))) == []


def test_arrows_are_as_long_as_their_scale_says_or_the_longest_is_legible():
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [np.nan, 1.0]])
    begin, end = places(parts_of(Particles(SQUARE, arrows=vectors, arrow_scale=0.1))["arrows"]).swapaxes(0, 1)
    assert begin == pytest.approx(SQUARE[:3], abs=1e-4)
    assert end - begin == pytest.approx(np.array([[0.1, 0.0], [0.0, 0.2], [0.0, 0.0]]), abs=1e-4)
    view = Particles(4 * SQUARE, arrows=vectors, bounds=((0, 8), (0, 4)))
    begin, end = places(parts_of(view)["arrows"]).swapaxes(0, 1)
    assert (end - begin)[1] == pytest.approx([0.0, 0.12], abs=1e-4)
    assert view.capture().message["longest"] == 2.0


def test_strokes_that_cannot_be_seen_are_left_out():
    begin = np.array([[0.5, 0.5], [-9.0, 0.5], [-9.0, 9.0], [np.nan, 0.5], [np.inf, 0.5], [-3.0, 0.0], [1e39, 0.5]])
    end = np.array([[9.5, 0.5], [9.0, 0.5], [-8.0, 9.0], [0.5, 0.5], [0.5, 0.5], [5.0, 1.0], [0.5, 0.5]])
    ends, index = as_strokes(begin, end)
    assert index.tolist() == [0, 1, 5]
    assert ends.reshape(-1, 2, 2) == pytest.approx(np.stack([begin, end], axis=1)[index])
    rng = np.random.default_rng(3)
    begin, end = rng.normal(0.5, 2.0, (2, 500, 2))
    steps = begin[:, None] + (end - begin)[:, None] * np.linspace(0, 1, 400)[:, None]
    crosses = ((steps >= -0.5) & (steps <= 1.5)).all(axis=2).any(axis=1)
    assert set(np.flatnonzero(crosses)) <= set(as_strokes(begin, end)[1].tolist())


@pytest.mark.parametrize("far", [1e2, 1e5, 1e8])
def test_a_stroke_from_far_away_lies_where_its_near_part_does(far):
    """In the picture and in the page."""
    size, rng = (90, 60), np.random.default_rng(8)
    inside, angle = rng.uniform(0.2, 0.8, (20, 2)), rng.uniform(0, 2 * np.pi, 20)
    away = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    painted = []
    for length in (3.0, far):
        ends, index = as_strokes(inside + length * away, inside)
        assert len(index) == 20
        picture = Picture(*size, (250, 250, 250))
        paint_edges(picture, Strokes(ends, RED), 2.0)
        data = {"ends": ends.ravel().tolist()}
        script = "paintEdges(target, data.ends, null, { width: 2, color: [255, 0, 0] })"
        painted += [picture.pixels.astype(int), in_page(script, data, (250, 250, 250), size)]
    for other in painted[1:]:
        assert np.abs(painted[0] - other).max() <= 1
    assert (painted[0] < 200).any(axis=2).mean() > 0.2


def test_a_trail_is_bounded_follows_the_steps_and_begins_anew():
    trail, plane = Trail(3, 2), Plane(((0, 1), (0, 1)))
    for step in range(6):
        trail.add(step, np.full((2, 2), step / 10), plane)
        assert trail.is_renewed == (step == 0)
    rows = trail.rows()
    assert rows[:, 0, 0] == pytest.approx([0.2, 0.3, 0.4, 0.5], abs=1e-4)
    assert len(trail.rows(whole=False)) == 1
    trail.add(5, np.full((2, 2), 0.9), plane)  # What the pointer does at a step takes the place of it.
    assert trail.is_renewed and trail.rows()[:, 0, 0] == pytest.approx([0.2, 0.3, 0.4, 0.9], abs=1e-4)
    trail.add(6, np.zeros((2, 2)), Plane(((0, 2), (0, 2))))
    assert trail.is_renewed and trail.rows()[:, 0, 0] == pytest.approx([0.15, 0.2, 0.45, 0], abs=1e-4)
    trail.add(0, np.zeros((2, 2)), plane)
    assert len(trail.rows()) == 1
    trail.add(1, np.zeros((3, 2)), plane)
    assert trail.rows().shape == (1, 3, 2)


def test_a_page_is_sent_the_latest_of_a_trail_and_all_of_it_when_it_has_missed_some():
    x = np.zeros((2, 2))

    def step():
        x[:] += 0.01

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        view.play()
        await page.until(lambda: view.steps >= 5)
        view.pause()
        await page.until(lambda: page.frames[-1]["step"] == view.steps and page.frames[-1]["whole"])
        kinds = {message["trail"] for message in page.frames if 1 < message["step"] < view.steps}
        assert kinds == {"next"}
        message, buffers = page.messages[-1]
        assert message["trail"] == "whole"
        assert len(buffers[2]) == 2 * 8 * min(view.steps + 1, 9)
        view.advance(3)  # The page gets nothing of these.
        page.say(kind="step")
        await page.until(lambda: page.frames[-1]["step"] == view.steps)
        assert page.frames[-1]["trail"] == "whole"

    scenario(lambda: Particles(x, step, trail=8), body)


def test_numbers_become_colours_on_a_common_scale_that_is_sent_and_drawn():
    strain = np.array([0.0, 1.0, 2.0, 4.0])
    view = Particles(SQUARE, radius=9, color=lambda: strain / 2, edges=RING, edge_color=strain, size=100)
    frame = view.capture()
    assert (frame.message["low"], frame.message["high"], frame.message["strange"]) == (0.0, 4.0, 0)
    parts = parts_of(view)
    assert list(parts["edges_inks"]) == [0, 63, 127, 254]
    assert list(parts["codes"]) == [0, 31, 63, 127]
    assert len(parts["edges"]) == 4 * 16 and frame.buffers[1] == b""
    image = picture_of(view)
    assert image.shape[0] > 120 and view.sent["colorbar"]
    colors = table("viridis", 255) * 255
    for at, code in zip(SQUARE, parts["codes"], strict=True):
        assert np.abs(image[int(100 - 100 * at[1]), int(100 * at[0])] - colors[code]).max() <= 1
    strain[3] = np.nan
    assert view.capture().message["strange"] == 2
    assert "codes" not in parts_of(Particles(SQUARE))


@pytest.mark.parametrize("of", ["field", "floats", "integers"])
def test_what_numbers_are_colours(of):
    ti.init()
    field = ti.field(ti.f32, shape=4)
    field.from_numpy(np.arange(4, dtype=np.float32))
    given, options = {
        "field": (field, {}),
        "floats": (np.arange(4.0), {}),
        "integers": (np.arange(4), {"cmap": "magma"}),
    }[of]
    view = Particles(SQUARE, color=given, limits=(0, 6), **options)
    assert list(parts_of(view)["codes"]) == [0, 42, 85, 127]
    ti.reset()


def test_colours_of_one_each_are_not_numbers():
    assert not Particles(SQUARE, color=np.arange(4)).sent["colorbar"]  # 0xRRGGBB
    assert not Particles(SQUARE[:3], color=[1.0, 0.5, 0.0]).sent["colorbar"]
    frame = Particles(SQUARE, color=lambda: np.eye(4, 3)).capture()
    assert frame.buffers[1] == (np.eye(4, 3) * 255).astype(np.uint8).tobytes()
    assert Particles(SQUARE[:3], color=lambda: np.array([1.0, 0.5, 0.0])).sent["colorbar"]  # One number each.
    assert Particles(SQUARE, color=lambda: "red").capture().buffers[1] == bytes([255, 0, 0] * 4)
    assert Particles(SQUARE, color="red", cmap="magma", edges=RING).sent["color"] == "#ff0000"


def test_each_may_have_its_own_radius():
    view = Particles(SQUARE, radius=np.array([2.0, 4.0, np.nan, 8.0]), color=0xFF0000, size=100)
    assert np.frombuffer(parts_of(view)["radii"], np.float32).tolist() == [2, 4, 0, 8]
    red = picture_of(view)[:, :, 1] < 128
    areas = [red[:50, :50].sum(), red[50:, 50:].sum(), red[:50, 50:].sum()]
    assert areas == pytest.approx([np.pi * 64, np.pi * 16, 0], rel=0.1)


def test_in_space_marks_are_seen_by_the_camera():
    x = np.column_stack([SQUARE, [0.2, 0.4, 0.6, 0.8]])
    view = Particles(x, edges=RING, arrows=np.ones((4, 3)), trail=4, color=x[:, 2], size=200)
    front = parts_of(view)
    assert len(front["edges_inks"]) == 12 and len(front["arrows_inks"]) == 12 and len(front["trail_inks"]) == 4
    view.turn(120, 20)
    turned = parts_of(view)
    assert np.abs(places(front["edges"]) - places(turned["edges"])).max() > 0.1
    assert parts_of(Particles(x, trail=4, color=0x010203))["trail_inks"] == bytes([1, 2, 3] * 4)
    x[0] = 5.0  # Outside of the bounds: two edges and an arrow are not seen.
    assert [len(part) for name, part in parts_of(view).items() if name in ("edges", "arrows")] == [32, 48]
    picture_of(view)


def test_pictures_have_edges_below_and_arrows_above():
    view = Particles(
        np.array([[0.25, 0.5], [0.75, 0.5]]), radius=8, color=0x0000FF, edges=[[0, 1]], edge_color=0xFF0000,
        edge_width=4, arrows=np.array([[0.0, 1.0], [0.0, 0.0]]), arrow_scale=0.3, arrow_color=0x00AA00, size=200,
    )  # fmt: skip
    image = picture_of(view)
    assert image[100, 100].tolist() == [255, 0, 0]
    assert image[104, 52].tolist() == [0, 0, 255]
    assert np.abs(image[96, 50] - [0, 170, 0]).max() < 140 and image[80, 49, 1] > image[80, 49, 0]
    # The head is as wide as it is everywhere, and its tip is where the arrow ends.
    green = (image[:, :, 0] < 100) & (image[:, :, 1] > 120) & (image[:, :, 2] < 100)
    rows = np.flatnonzero(green.any(axis=1))
    assert abs(rows.min() - 40) <= 2 and 6 <= green.sum(axis=1).max() <= 8


def test_a_trail_fades_in_the_picture_and_does_not_cross_it():
    x = np.array([[0.1, 0.5]])

    def step():
        x[0, 0] = (x[0, 0] + 0.05) % 1.0

    view = Particles(x, step, trail=10, radius=1, trail_color=0x000000, trail_width=3, size=200)
    view.advance(14)
    row = 255 - picture_of(view)[100, :, 0]
    here = int(200 * x[0, 0])
    behind = row[here - 90 : here - 5 : 10]
    assert (np.diff(behind) > 0).all() and behind[-1] > 120 > 30 > behind[0]
    view.advance(8)  # Over the edge.
    row = 255 - picture_of(view)[100, :, 0]
    assert row[44:90].max() == 0 and row[150:195].max() > 20


def test_what_glows_adds_its_light():
    one = Particles(np.array([[0.5, 0.5]]), glow=True, radius=4, color=(0.4, 0.4, 0.4), size=64)
    two = Particles(np.array([[0.5, 0.5]] * 2), glow=True, radius=4, color=(0.4, 0.4, 0.4), size=64)
    first, second = picture_of(one), picture_of(two)
    assert second[32, 32, 0] > 1.4 * first[32, 32, 0] > 100
    assert first[32, 39, 0] > 16 > first[32, 60, 0]
    assert one.sent["background"] == "#0b0e14"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": RING.astype(float)}, "edges hold float64, not integers"),
        ({"edges": np.zeros((3, 3), int)}, r"edges have shape \(3, 3\)"),
        ({"edges": [[0, 1], [1, 7]]}, "edge 1 joins the particles 1 and 7, and there are 4"),
        ({"edges": [[0, 1], [-1, 2]]}, "edge 1 joins the particles -1 and 2"),
        ({"edges": RING, "edge_color": np.zeros(5)}, "edge_color has 5 numbers, and there are 4 edges"),
        ({"edges": RING, "edge_width": 0}, "edge_width must be .* not 0"),
        ({"arrows": np.zeros((4, 3))}, r"arrows have shape \(4, 3\), and x has \(4, 2\)"),
        ({"arrows": np.zeros((5, 2))}, r"arrows have shape \(5, 2\)"),
        ({"arrows": "up"}, "arrows hold <U2"),
        ({"arrows": SQUARE, "arrow_scale": np.nan}, "arrow_scale must be .* not nan"),
        ({"arrows": SQUARE, "arrow_width": -1}, "arrow_width must be .* not -1"),
        ({"trail": 1.5}, "trail must be .* not 1.5"),
        ({"trail": -2}, "trail must be .* not -2"),
        ({"trail": True}, "trail must be .* not True"),
        ({"trail": 1_000_000}, "4,000,000 positions"),
        ({"trail": 3, "trail_width": 0}, "trail_width must be .* not 0"),
        ({"trail": 3, "trail_color": "mud"}, "trail_color"),
        ({"color": np.zeros(5)}, "color has 5 numbers, and there are 4 particles"),
        ({"color": lambda: np.zeros((4, 2)), "cmap": "magma"}, r"color has shape \(4, 2\)"),
        ({"color": np.zeros(4), "cmap": "jett"}, "no colour map 'jett'"),
        ({"color": np.zeros(4), "limits": (1, 1)}, "limits must be"),
        ({"color": np.zeros(4), "limits": 3}, "limits must be .* not 3"),
        ({"radius": np.zeros(3)}, r"radius has shape \(3,\), and there are 4"),
        ({"radius": -1}, "radius must be .* not -1"),
        ({"radius": np.nan}, "radius must be .* not nan"),
        ({"radius": "big"}, "radius holds"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, message):
    with pytest.raises(ViewError, match=message):
        Particles(SQUARE, **options)


def test_an_unknown_map_names_those_that_there_are():
    with pytest.raises(ViewError) as refused:
        Particles(SQUARE, color=np.zeros(4), cmap="jett")
    assert "viridis" in str(refused.value) and "coolwarm" in str(refused.value)


def in_page(script: str, data: Any, paper: tuple[int, int, int], size: tuple[int, int]) -> np.ndarray:
    """What `script` paints into `target` in JavaScript, (height, width, 3)."""
    width, height = size
    body = (
        f"(() => {{ const target = {{ pixels: new Uint32Array({width * height}).fill(packedParts({json.dumps(paper)})),"
        f" width: {width}, height: {height}, scale: 1 }}; {script}; return [...target.pixels]; }})()"
    )
    packed = np.array(run(("draw/strokes.js",), data, body), np.int64).astype(np.uint32)
    return packed.view(np.uint8).reshape(height, width, 4)[:, :, :3].astype(int)


def test_a_page_paints_what_stays_in_the_picture():
    rng = np.random.default_rng(5)
    size = (90, 60)
    ends, _ = as_strokes(*rng.uniform(-0.4, 1.4, (2, 40, 2)))
    inks = rng.integers(0, 256, (len(ends), 3), np.uint8)
    at = in_pixels(ends.reshape(-1, 2, 2), size).reshape(-1, 4)
    colored = "inksOf(Uint8Array.from(data.inks), data.ends.length / 4, null)"

    lines = Picture(*size, (250, 250, 250))
    paint_strokes(lines, np.column_stack([at, np.full((len(at), 2), 1.25)]), inks, rounded=True)
    data = {"ends": ends.ravel().tolist(), "inks": inks.ravel().tolist()}
    page = in_page(f"paintEdges(target, data.ends, {colored}, {{ width: 2.5 }})", data, (250, 250, 250), size)
    assert np.abs(page - lines.pixels).max() <= 4 and (page < 200).any(axis=2).mean() > 0.3

    arrows = Picture(*size, (250, 250, 250))
    strokes, whose = arrow_strokes(at, 1.5)
    paint_strokes(arrows, strokes, inks[whose])
    page = in_page(f"paintArrows(target, data.ends, {colored}, {{ width: 1.5 }})", data, (250, 250, 250), size)
    assert np.abs(page - arrows.pixels).max() <= 4

    for glowing in (False, True):
        rows = (np.cumsum(rng.normal(0, 0.05, (7, 12, 2)), axis=0) + 0.5).astype(np.float32)
        rows[3, 4] = np.nan
        rows[5, 2] = [1.4, 1.4]
        trails = Picture(*size, (20, 30, 40))
        found, cover = trail_strokes(rows, size, 6, 3.0)
        paint_strokes(trails, found, RED, cover, glowing=glowing)
        given = [[None if part != part else part for part in row] for row in rows.reshape(7, -1).tolist()]
        rows_there = "data.rows.map((row) => row.map((part) => part ?? NaN))"
        look = "{ width: 3, length: 6 }, data.glowing"
        script = f"paintTrails(target, {rows_there}, () => packedParts([255, 0, 0]), {look})"
        page = in_page(script, {"rows": given, "glowing": glowing}, (20, 30, 40), size)
        assert np.abs(page - trails.pixels).max() <= 4

    centers = rng.uniform(-5, 95, (30, 2))
    lights = Picture(*size, (10, 10, 30))
    paint_glows(lights, centers, 2.5, RED)
    script = "for (const [x, y] of data) paintDisc(target, x, y, 2.5, packedParts([255, 0, 0]), true)"
    page = in_page(script, centers.tolist(), (10, 10, 30), size)
    assert np.abs(page - lights.pixels).max() <= 4
