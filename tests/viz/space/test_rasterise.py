"""The rasteriser compared with rays that are followed one by one: what each pixel shows, and in which light."""

from __future__ import annotations

import numpy as np
import pytest

from tinote.viz.space import rasterise
from tinote.viz.space.camera import Eye, axes, clip_matrix, fitted, framed, point_seen, view_matrix
from tinote.viz.space.content import Content, Light, Lighting, Spheres, as_lines, as_mesh, as_spheres
from tinote.viz.space.rasterise import Rasteriser

#: Colours are seen as they are.
EVEN = Lighting((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), ())
SIZE = (60, 40)
PAPER = (7, 8, 9)
EYES = {
    "perspective": Eye((0.3, 0.5, 4.0), (0.1, 0.0, 0.0)),
    "orthographic": Eye((0.3, 0.5, 4.0), (0.1, 0.0, 0.0), box=(-2.0, 2.5, -1.5, 1.5)),
    "among the things": Eye((0.1, 0.2, 0.1), (1.0, 0.0, -0.4), near=0.01),
}


def drawn(*items, eye=EYES["perspective"], size=SIZE, fine=1, lighting=EVEN) -> np.ndarray:
    return Rasteriser().draw(Content(items, lighting), eye, size, PAPER, fine).astype(int)


def rays(eye: Eye, size: tuple[int, int] = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Where the line of sight of each pixel begins, and its direction, one unit of depth long: (rows, columns, 3)."""
    columns, rows = size
    right, up, towards = axes(eye)
    u, v = np.meshgrid((np.arange(columns) + 0.5) / columns, 1.0 - (np.arange(rows) + 0.5) / rows)
    if eye.box is None:
        half = np.tan(np.radians(eye.field_of_view) / 2.0)
        x, y = (2 * u - 1) * half * columns / rows, (2 * v - 1) * half
        directions = x[..., None] * right + y[..., None] * up - towards
        return np.broadcast_to(np.array(eye.position), directions.shape), directions
    left, side, bottom, top = eye.box
    x, y = left + u * (side - left), bottom + v * (top - bottom)
    starts = np.array(eye.position) + x[..., None] * right + y[..., None] * up
    return starts, np.broadcast_to(-towards, starts.shape)


def depths_of_triangles(corners: np.ndarray, eye: Eye) -> np.ndarray:
    """At which depth the ray of each pixel meets each triangle (T, 3, 3): (T, rows, columns), infinite where it does
    not.
    """
    starts, directions = rays(eye)
    found = np.full((len(corners), *starts.shape[:2]), np.inf)
    for n, (a, b, c) in enumerate(corners):
        normal = np.cross(b - a, c - a)
        with np.errstate(all="ignore"):
            depth = ((a - starts) @ normal) / (directions @ normal)
            at = starts + depth[..., None] * directions
            inside = np.logical_and.reduce([np.cross(q - p, at - p) @ normal >= 0 for p, q in ((a, b), (b, c), (c, a))])
        found[n] = np.where(inside & (depth > eye.near) & (depth < eye.far), depth, np.inf)
    return found


@pytest.mark.parametrize("name", EYES)
@pytest.mark.parametrize("seed", range(4))
def test_each_pixel_shows_the_triangle_that_its_ray_meets_first(name, seed):
    """Whatever their order is, and also where a triangle reaches behind the camera."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1.5, 1.5, (40, 3, 3)).astype(np.float32)
    colors = rng.integers(20, 250, (40, 3)).astype(np.uint8)
    mesh = as_mesh(corners.reshape(-1, 3), per_vertex_color=np.repeat(colors, 3, axis=0))
    found = drawn(mesh, eye=EYES[name])
    depths = depths_of_triangles(corners.astype(float), EYES[name])
    expected = np.where((depths.min(axis=0) < np.inf)[..., None], colors[depths.argmin(axis=0)], PAPER)
    differs = (np.abs(found - expected) > 1).any(axis=2)
    assert differs.mean() < 0.005, "pixels on edges may differ by rounding"


@pytest.mark.parametrize("name", ["perspective", "orthographic"])
def test_spheres_are_discs_around_where_their_centres_are_seen_and_the_nearer_hides(name):
    eye = EYES[name]
    rng = np.random.default_rng(1)
    centers = rng.uniform(-1, 1, (30, 3)).astype(np.float32)
    radii = rng.uniform(0.05, 0.3, 30).astype(np.float32)
    colors = rng.integers(20, 250, (30, 3)).astype(np.uint8)
    found = drawn(as_spheres(centers, radii, per_vertex_color=colors), eye=eye)
    starts, directions = rays(eye)
    depths = np.full((30, *starts.shape[:2]), np.inf)
    for n, (center, radius) in enumerate(zip(centers.astype(float), radii.astype(float), strict=True)):
        length = np.linalg.norm(directions, axis=2)
        along = np.einsum("ijk,ijk->ij", center - starts, directions) / length
        away = np.linalg.norm(center - starts, axis=2) ** 2 - along**2
        depths[n] = np.where(away < radius**2, (along - np.sqrt(np.maximum(radius**2 - away, 0.0))) / length, np.inf)
    expected = np.where((depths.min(axis=0) < np.inf)[..., None], colors[depths.argmin(axis=0)], PAPER)
    differs = (np.abs(found - expected) > 1).any(axis=2).mean()
    assert differs < (0.01 if name == "orthographic" else 0.06), (
        "an outline in perspective is an ellipse, here a circle"
    )


@pytest.mark.parametrize("name", EYES)
def test_what_is_visible_is_what_is_drawn(name):
    """Each item in its own colour, each primitive of it by its number, and its depth along the ray."""
    rng = np.random.default_rng(5)
    corners = rng.uniform(-1.5, 1.5, (20, 3, 3)).astype(np.float32)
    triangles = as_mesh(corners.reshape(-1, 3), color="#ff0000")
    spheres = [
        as_spheres(rng.uniform(-1, 1, (count, 3)), 0.15, color=color)
        for count, color in ((7, "#00ff00"), (0, "#101010"), (5, "#0000ff"))
    ]
    lines = as_lines(rng.uniform(-1, 1, (8, 3)), 2.0, color="#ffffff")
    items = (lines, spheres[0], triangles, spheres[1], spheres[2])
    found = Rasteriser().visible(Content(items, EVEN), EYES[name], SIZE)
    colors = np.array([[255] * 3, [0, 255, 0], [255, 0, 0], [16] * 3, [0, 0, 255], PAPER])
    assert (colors[found.item] == drawn(*items, eye=EYES[name])).all(), "the last one is the paper"
    depths = depths_of_triangles(corners.astype(float), EYES[name])
    rows, columns = np.nonzero(found.item == 2)
    at = depths[found.index[rows, columns], rows, columns]
    assert np.isfinite(at).mean() > 0.99
    assert found.depth[rows, columns][np.isfinite(at)] == pytest.approx(at[np.isfinite(at)], rel=1e-4)
    assert {*np.unique(found.index[found.item == 4])} <= {*range(5)} and np.isinf(found.depth[found.item == -1]).all()
    frame = framed(EYES[name], *SIZE)
    for n, row, column in zip(found.index[rows, columns], rows, columns, strict=True):
        point = np.array(point_seen(frame, column + 0.5, row + 0.5, float(found.depth[row, column])))
        a, b, c = corners[n].astype(float)
        normal = np.cross(b - a, c - a)
        assert abs((point - a) @ normal) < 1e-4 * np.linalg.norm(normal)


def test_a_sphere_that_a_surface_cuts_is_seen_up_to_the_cut():
    floor = as_mesh([[-3, -3, 0], [3, -3, 0], [3, 3, 0], [-3, 3, 0]], [0, 1, 2, 0, 2, 3], color="#ffffff")
    ball = as_spheres([[0.0, 0.0, 0.3]], 0.5, color="#ff0000")
    top = Eye((0.0, 0.0, 9.0), (0.0, 0.0, 0.0), box=(-1.5, 1.5, -1.0, 1.0))
    bottom = top._replace(position=(0.0, 0.0, -9.0))
    seen = (drawn(floor, ball, eye=top)[:, :, 1] == 0).sum() / 400
    assert seen == pytest.approx(np.pi * 0.25, rel=0.05)
    cap = (drawn(floor, ball, eye=bottom)[:, :, 1] == 0).sum() / 400
    assert cap == pytest.approx(np.pi * (0.25 - 0.09), rel=0.08)
    above = ball._replace(points=np.array([[0.0, 0.0, 0.6]], np.float32))
    assert (drawn(floor, above, eye=bottom)[:, :, 1] == 0).sum() == 0, "the floor hides what is above it"


def test_radii_in_pixels_are_the_same_at_every_distance():
    points = np.array([[-1.0, 0.0, 1.0], [1.0, 0.0, -3.0]], np.float32)
    item = as_spheres(points, 5.0, color="#ff0000")._replace(in_pixels=True)
    for fine in (1, 2):
        red = drawn(item, eye=Eye((0.0, 0.0, 5.0), (0.0, 0.0, 0.0)), fine=fine)[:, :, 0] > 128
        left, right = red[:, :30].sum(), red[:, 30:].sum()
        assert left == pytest.approx(25 * np.pi, abs=6) and right == pytest.approx(25 * np.pi, abs=6)
    mixed = drawn(item, as_spheres([[9.0, 9.0, 9.0]], 0.1), eye=Eye((0.0, 0.0, 5.0), (0.0, 0.0, 0.0)))
    assert (mixed[:, :, 0] > 128).sum() == pytest.approx(50 * np.pi, abs=12)


@pytest.mark.parametrize("name", EYES)
@pytest.mark.parametrize("radii", [{"in_pixels": True, "radii": 1.5}, {"in_pixels": False, "radii": 0.04}])
def test_what_spheres_hide_is_left_out_and_only_that(name, radii, monkeypatch):
    """More spheres than samples, drawn in batches, of which the later ones are mostly hidden, and all at once."""
    random = np.random.default_rng(5)
    count, size = 4000, (50, 40)
    spread = random.uniform(0.2, 1.0, count) if not radii["in_pixels"] else np.ones(count)
    spheres = Spheres(
        random.uniform(-1, 1, (count, 3)).astype(np.float32),
        (radii["radii"] * spread).astype(np.float32),
        random.integers(0, 256, (count, 3), dtype=np.uint8),
        radii["in_pixels"],
    )
    rasteriser, content = Rasteriser(), Content((spheres,), EVEN)
    in_batches = rasteriser.layer(content, EYES[name], size)
    monkeypatch.setattr(rasterise, "BATCHES", (0.0, 1.0))
    at_once = rasteriser.layer(content, EYES[name], size)
    assert np.array_equal(in_batches.picture, at_once.picture)
    assert np.array_equal(in_batches.cover, at_once.cover)
    assert in_batches.within == at_once.within == count
    assert len(np.unique(in_batches.picture.reshape(-1, 3), axis=0)) > 100


@pytest.mark.parametrize("name", EYES)
def test_a_line_covers_what_is_within_half_its_width_of_its_projection(name):
    eye = EYES[name]._replace(near=1e-3)
    rng = np.random.default_rng(3)
    ends = rng.uniform(-1.5, 1.5, (12, 2, 3)).astype(np.float32)
    frame = framed(eye, *SIZE)
    u, v = np.meshgrid(np.arange(SIZE[0]) + 0.5, np.arange(SIZE[1]) + 0.5)
    for a, b in ends.astype(float):
        found = drawn(as_lines(np.array([a, b]), 3.0, color="#ff0000"), eye=eye)[:, :, 0] == 255
        seen = np.array([[a, b][end] @ frame.view[:, :3].T + frame.view[:, 3] for end in range(2)])
        depths = -seen[:, 2]
        if depths.max() <= eye.near:
            assert not found.any()
            continue
        if depths.min() < eye.near:  # The part in front of the camera.
            share = (eye.near * 1.0001 - depths[0]) / (depths[1] - depths[0])
            seen[int(np.argmin(depths))] = seen[0] + share * (seen[1] - seen[0])
            depths = -seen[:, 2]
        w = depths if frame.perspective else np.ones(2)
        p = np.stack(
            [frame.center[0] + frame.across * seen[:, 0] / w, frame.center[1] - frame.upwards * seen[:, 1] / w], 1
        )
        along = p[1] - p[0]
        share = (((u - p[0, 0]) * along[0] + (v - p[0, 1]) * along[1]) / (along @ along)).clip(0, 1)
        away = np.hypot(u - p[0, 0] - share * along[0], v - p[0, 1] - share * along[1])
        sure = np.abs(away - 1.5) > 1e-3 * max(1.0, np.abs(p).max())
        assert (found == (away < 1.5))[sure].all()


def test_a_line_on_a_surface_is_seen_and_one_behind_it_is_not():
    floor = as_mesh([[-3, -3, 0], [3, -3, 0], [3, 3, 0], [-3, 3, 0]], [0, 1, 2, 0, 2, 3], color="#ffffff")
    eye = Eye((0.0, -2.0, 3.0), (0.0, 0.0, 0.0), up=(0.0, 0.0, 1.0))
    on, behind = (as_lines([[-1, 0, z], [1, 0, z]], 2.0, color="#ff0000") for z in (0.0, -0.2))
    assert (drawn(floor, on, eye=eye)[:, :, 1] == 0).sum() > 30
    assert (drawn(floor, behind, eye=eye)[:, :, 1] == 0).sum() == 0


def test_what_is_not_finite_is_not_drawn_and_hides_nothing():
    ball = as_spheres([[0.0, 0.0, 0.0], [np.nan, 0.0, 1.0], [np.inf, 0.0, 1.0]], 0.4, color="#ff0000")
    corners = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [np.nan, 0, 1], [0, np.inf, 1]], np.float32)
    mesh = as_mesh(corners, [[0, 1, 2], [0, 1, 3], [0, 4, 2]], color="#00ff00")
    lines = as_lines(corners, 3.0, [[0, 3], [1, 4]], color="#0000ff")
    alone = drawn(as_spheres([[0.0, 0.0, 0.0]], 0.4, color="#ff0000"), as_mesh(corners[:3], color="#00ff00"))
    assert (drawn(ball, mesh, lines) == alone).all()


def test_the_light_on_a_surface_is_lamberts():
    corners = [[-9, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]]
    eye = Eye((0.0, 0.0, 5.0), (0.0, 0.0, 0.0))
    lamp = Lighting((0.2, 0.2, 0.2), (0.2, 0.2, 0.2), (Light((0.0, 30.0, 40.0), (0.5, 0.25, 0.0)),))
    for triangles, two_sided, share in (
        ([0, 1, 2, 0, 2, 3], False, 0.8),
        ([0, 2, 1, 0, 3, 2], False, 0.0),
        ([0, 2, 1, 0, 3, 2], True, 0.8),
    ):
        found = drawn(as_mesh(corners, triangles, color=(0.4, 0.4, 0.4), two_sided=two_sided), eye=eye, lighting=lamp)
        # The highlight is where the mirrored light is seen: not in the middle.
        expected = 102 * (0.2 + share * np.array([0.5, 0.25, 0.0]))
        assert found[20, 30] == pytest.approx(expected, abs=2.0)


def test_sky_and_ground_light_what_faces_them():
    up = Lighting((0.8, 0.8, 0.8), (0.2, 0.2, 0.2), ())
    found = drawn(
        as_spheres([[0.0, 0.0, 0.0]], 0.8, color="#ffffff"), eye=Eye((0.0, 0.0, 9.0), (0.0, 0.0, 0.0)), lighting=up
    )
    column = found[:, 30, 0][found[:, 30, 0] > 10]
    assert (np.diff(column) <= 0).all() and column[0] > 180 and column[-1] < 75


def test_the_edges_of_a_fine_picture_are_soft_and_pictures_repeat():
    ball = as_spheres([[0.0, 0.0, 0.0]], 0.8, color="#ffffff")
    hard, soft = (drawn(ball, fine=fine)[:, :, 0] for fine in (1, 3))
    assert set(np.unique(hard)) == {PAPER[0], 255} and len(np.unique(soft)) > 4
    rng = np.random.default_rng(0)
    many = as_spheres(rng.normal(size=(20_000, 3)), 0.05, per_vertex_color=rng.random((20_000, 3)))
    rasteriser = Rasteriser()
    first, again = (rasteriser.draw(Content((many,)), EYES["perspective"], SIZE, PAPER) for _ in range(2))
    assert (first == again).all()


def test_a_scene_is_drawn_over_a_picture():
    below = np.random.default_rng(0).integers(0, 255, (40, 60, 3)).astype(np.uint8)
    found = Rasteriser().draw(Content((as_spheres([[0.1, 0.0, 0.0]], 0.3),), EVEN), EYES["perspective"], SIZE, below)
    covered = (found != below).any(axis=2)
    assert 20 < covered.sum() < 400 and covered[15:25, 25:35].any()
    assert (Rasteriser().draw(Content(()), EYES["perspective"], SIZE, below) == below).all()


@pytest.mark.parametrize("aspect", [0.5, 1.0, 2.0])
def test_a_fitted_camera_sees_everything_with_little_room(aspect):
    rng = np.random.default_rng(0)
    for azimuth, elevation in zip(rng.uniform(0, 360, 20), rng.uniform(-89, 89, 20), strict=True):
        points = rng.uniform([0, -1, 5], [3, 1, 6], (50, 3))
        eye = fitted([points, np.full((1, 3), np.nan)], azimuth, elevation, (0.0, 0.0, 1.0), aspect)
        seen = np.c_[points, np.ones(50)] @ np.vstack([view_matrix(eye), [0, 0, 0, 1]]).T @ clip_matrix(eye, aspect).T
        reach = np.abs(seen[:, :2] / seen[:, 3:]).max()
        assert 0.6 < reach < 1.0
    assert fitted([], 0.0, 0.0, (0.0, 1.0, 0.0)).position[2] > 1.0
