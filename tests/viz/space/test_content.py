"""What scenes are made of: normals and copies compared with NumPy, parts for the page, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tinote.viz.draw.arrays import ViewError
from tinote.viz.space.camera import Eye
from tinote.viz.space.content import Content, as_lines, as_mesh, as_spheres, wireframe
from tinote.viz.space.geometry import edges_of, vertex_normals
from tinote.viz.space.parts import LEVELS, MOST_POINTS, SceneSender, obstacle
from tinote.viz.space.rasterise import Rasteriser

RNG = np.random.default_rng(0)
SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
EYE = Eye((0.5, 0.5, 4.0), (0.5, 0.5, 0.0))


def test_normals_are_the_mean_of_the_triangles_by_area():
    vertices = RNG.normal(size=(30, 3)).astype(np.float32)
    triangles = RNG.integers(0, 29, (60, 3)).astype(np.int32)
    expected = np.zeros((30, 3))
    for a, b, c in triangles:
        normal = np.cross(vertices[b] - vertices[a], vertices[c] - vertices[a])
        for corner in (a, b, c):
            expected[corner] += normal
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    expected = np.where(lengths > 0, expected / np.where(lengths > 0, lengths, 1), [0, 0, 1])
    assert vertex_normals(vertices, triangles) == pytest.approx(expected, abs=1e-4)


def test_a_triangle_that_is_not_finite_leaves_its_neighbours_their_normals():
    vertices = np.vstack([SQUARE, [[np.nan, 0, 0]]]).astype(np.float32)
    found = vertex_normals(vertices, np.array([[0, 1, 2], [0, 2, 4]], np.int32))
    assert found[:3] == pytest.approx(np.tile([0, 0, 1], (3, 1)), abs=1e-6)  # fast maths: within a rounding


def test_each_edge_is_found_once():
    assert edges_of(np.array([[0, 1, 2], [0, 2, 3]], np.int32)).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [2, 3]]
    assert len(wireframe(as_mesh(SQUARE, [0, 1, 2, 0, 2, 3])).pairs) == 5


def test_copies_are_where_their_transforms_put_them_and_normals_stay_across():
    mesh = as_mesh(SQUARE, [0, 1, 2, 0, 2, 3], per_vertex_color=RNG.random((4, 3)))
    transforms = np.tile(np.eye(4), (3, 1, 1))
    transforms[:, :3, :3] += RNG.normal(scale=0.4, size=(3, 3, 3))
    transforms[:, :3, 3] = RNG.normal(size=(3, 3))
    transforms[2, :3, 0] *= -1  # A mirror.
    whole = as_mesh(SQUARE, mesh.triangles, normals=mesh.normals, transforms=transforms).expanded()
    for copy, matrix in enumerate(transforms):
        own = slice(4 * copy, 4 * copy + 4)
        assert whole.points[own] == pytest.approx(SQUARE @ matrix[:3, :3].T + matrix[:3, 3], abs=1e-5)
        a, b, c = whole.points[whole.triangles[2 * copy]]
        normal = np.cross(b - a, c - a)
        assert whole.normals[own] == pytest.approx(np.tile(normal / np.linalg.norm(normal), (4, 1)), abs=1e-4)
    apart = [as_mesh(whole.points[4 * n : 4 * n + 4], whole.triangles[2 * n : 2 * n + 2] - 4 * n) for n in range(3)]
    pictures = [
        Rasteriser().draw(Content(items), EYE, (80, 60), (0, 0, 0))
        for items in ((as_mesh(SQUARE, mesh.triangles, transforms=transforms),), tuple(apart))
    ]
    assert (np.abs(pictures[0].astype(int) - pictures[1]) > 2).mean() < 0.001 and pictures[0].any()


def test_fields_and_arrays_are_taken_alike():
    x = ti.Vector.field(3, ti.f64, shape=(2, 2))
    x.from_numpy(SQUARE.reshape(2, 2, 3).astype(float))
    indices = ti.Vector.field(3, ti.i32, shape=2)
    indices.from_numpy(np.array([[0, 1, 2], [0, 2, 3]], np.int32))
    mesh = as_mesh(x, indices, color=0xFF0000)
    assert (mesh.points == SQUARE).all() and mesh.triangles.shape == (2, 3) and mesh.colors.tolist() == [[255, 0, 0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_spheres(np.zeros((3, 2)), 0.1), r"centers has shape \(3, 2\); points in space have shape \(N, 3\)"),
        (lambda: as_spheres(["a"], 0.1), "not numbers"),
        (lambda: as_spheres(np.zeros((3, 3)), [0.1, 0.2]), r"radius of shape \(2,\).* for 3 particles"),
        (lambda: as_spheres(np.zeros((3, 3)), -0.1), "radius must not be negative, but is -0.1"),
        (lambda: as_spheres(np.zeros((3, 3)), 0.1, per_vertex_color=np.zeros((2, 3))), "2 colours, .* 3 particles"),
        (lambda: as_spheres(np.zeros((3, 3)), 0.1, per_vertex_color=np.zeros(3)), "does not hold colours"),
        (lambda: as_lines(np.zeros((3, 3)), 1.0), "3 vertices are not a multiple of 2"),
        (lambda: as_lines(np.zeros((4, 3)), 0.0), "width must be a positive number of pixels, not 0.0"),
        (lambda: as_lines(np.zeros((4, 3)), 1.0, [0, 4]), "indices has the number 4, and there are 4 vertices"),
        (lambda: as_lines(np.zeros((4, 3)), 1.0, [0.0, 1.0]), "indices holds float64, not integers"),
        (lambda: as_mesh(np.zeros((4, 3))), "4 vertices are not a multiple of 3"),
        (lambda: as_mesh(SQUARE, [0, 1]), "indices has 2 numbers, which are not a multiple of 3"),
        (lambda: as_mesh(SQUARE, [0, 1, -1]), "the number -1, and there are 4 vertices"),
        (lambda: as_mesh(SQUARE, np.zeros((0, 3), int)), "the mesh has no triangles"),
        (lambda: as_mesh(np.zeros((0, 3))), "the mesh has no triangles"),
        (lambda: as_mesh(SQUARE, [0, 1, 2], normals=np.zeros((3, 3))), "3 normals, and 4 vertices"),
        (lambda: as_mesh(SQUARE, [0, 1, 2], transforms=np.eye(3)), r"transforms have shape \(3, 3\)"),
        (lambda: as_mesh(SQUARE, [0, 1, 2], per_vertex_color=np.zeros((3, 3))), "3 colours, .* 4 vertices"),
        (lambda: as_mesh(SQUARE, [0, 1, 2], color="grassy"), "color"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(ViewError, match=message):
        make()


def unpacked(frame, item, name="positions") -> np.ndarray:
    buffers = dict(zip(frame.message["scene"]["parts"], frame.buffers, strict=True))
    packed = np.frombuffer(buffers[item[name]], np.uint16).reshape(-1, 4)
    low, high = np.array(item["low"]), np.array(item["high"])
    return np.where(packed[:, 3:] > 0, low + packed[:, :3] / LEVELS * (high - low), np.nan)


def test_a_page_gets_positions_to_the_width_of_a_65535th_of_their_box():
    points = RNG.normal(size=(100, 3)).astype(np.float32) * [1, 10, 0.1]
    points[7] = np.nan
    points[:, 2] = 0.25
    frame = SceneSender().frame(Content((as_spheres(points, 0.1),)), EYE)
    [item] = frame.message["scene"]["items"]
    found = unpacked(frame, item)
    width = np.nanmax(points, axis=0) - np.nanmin(points, axis=0)
    assert np.isnan(found[7]).all() and not np.isnan(np.delete(found, 7, axis=0)).any()
    assert (np.nan_to_num(np.abs(found - points)) <= 0.51 * width / LEVELS + 1e-6).all()


def test_what_has_not_changed_is_not_sent_again():
    x = SQUARE.copy()
    sender = SceneSender()
    mesh, ball = (lambda: as_mesh(x, [0, 1, 2, 0, 2, 3])), as_spheres([[0, 0, 1]], 0.1)
    first = sender.frame(Content((mesh(), ball)), EYE)
    assert len(first.buffers) == len(first.message["scene"]["parts"]) == 7
    still = sender.frame(Content((mesh(), ball)), EYE)
    assert still.buffers == [] and still.message["scene"]["items"] == first.message["scene"]["items"]
    x[0, 0] = -1.0
    moved = sender.frame(Content((mesh(), ball)), EYE)
    assert len(moved.buffers) == 1, "the positions; the normals still point along z"
    assert unpacked(moved, moved.message["scene"]["items"][0])[0, 0] == -1.0
    sender.forget()
    assert len(sender.frame(Content((mesh(), ball)), EYE).buffers) == 7


def test_very_many_positions_are_drawn_here():
    assert obstacle(Content((as_spheres(np.zeros((MOST_POINTS, 3)), 1.0),))) == ""
    many = Content((as_spheres(np.zeros((MOST_POINTS + 1, 3)), 1.0),))
    assert obstacle(many) == "100,001 positions, and a page draws at most 100,000"
