"""`ti.io`: what is written comes back by meshio, VTK, trimesh and xarray, what adjoins what is that of brute force,
and no end of a process damages a series.
"""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest
import pyvista
import trimesh
import xarray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, Delaunay

import tinote as ti
from tinote.errors import FieldError, FileError
from tinote.kit.mesh import KINDS

QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def block(shape: tuple[int, ...], kind: str, rng: Any) -> tuple[Any, Any]:
    """The points and cells of a block of squares or cubes, or of triangles or tetrahedra in them, with vertices in any
    order and some cells of them turned around.
    """
    points = np.stack(np.meshgrid(*[np.arange(n + 1.0) for n in shape], indexing="ij"), axis=-1)
    number = np.arange(points[..., 0].size).reshape(points.shape[:-1])
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    if len(shape) == 3:
        corners = [(*c, z) for z in (0, 1) for c in corners]
    cells = np.stack(
        [number[tuple([slice(o, o + n) for o, n in zip(c, shape, strict=True)])].ravel() for c in corners], 1
    )
    flips = {"quad": [0, 3, 2, 1], "hexahedron": [0, 3, 2, 1, 4, 7, 6, 5], "triangle": [0, 2, 1], "tetra": [0, 2, 1, 3]}
    if kind in ("triangle", "tetra"):
        parts = [(0, 1, 2), (0, 2, 3)]
        if kind == "tetra":
            parts = [(0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6), (0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6)]
        cells = cells[:, parts].reshape(-1, len(parts[0]))
    turned = rng.random(len(cells)) < 0.5
    cells[turned] = cells[turned][:, flips[kind]]
    order = rng.permutation(len(number.ravel()))
    moved = points.reshape(-1, len(shape)) + rng.uniform(-0.1, 0.1, (len(order), len(shape)))
    placed = np.empty_like(moved)
    placed[order] = moved
    return placed, order[cells]


@st.composite
def meshes(draw: Any) -> Any:
    kind = draw(st.sampled_from(["triangle", "quad", "tetra", "hexahedron"]))
    shape = draw(st.lists(st.integers(1, 3), min_size=KINDS[kind].dimension, max_size=KINDS[kind].dimension))
    points, cells = block(tuple(shape), kind, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    return ti.io.Mesh(points.astype(draw(st.sampled_from(["f4", "f8"]))), cells, kind)


def some(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    numbers = np.random.default_rng(seed).integers(0, 100, shape)
    return (numbers % 2 == 0) if dtype == "?" else (numbers / 8 if dtype[0] == "f" else numbers).astype(dtype)


def in_space(array: Any, before: int = 1) -> Any:
    """What files have in place of vectors and matrices of the plane."""
    if array.shape[before:] and set(array.shape[before:]) == {2}:
        array = np.pad(array, [(0, 0)] * before + [(0, 1)] * (array.ndim - before))
    array = array.astype({"float16": "f4", "bool": "u1"}.get(array.dtype.name, array.dtype))
    return array.reshape(*array.shape[:before], *([math.prod(array.shape[before:])] if array.ndim > before else []))


# ---- what adjoins what


def counted(mesh: Any) -> Any:
    """How often loops of kernels meet each vertex and each cell."""
    number, cells = len(mesh.vertices), mesh.cells.shape[0]
    near, at_vertex, next_to = (ti.field(ti.i32, shape=s) for s in ((number, number), (number, cells), (cells, cells)))

    @ti.kernel
    def meet():
        for i in range(number):
            for j in mesh.neighbours(i):
                near[i, j] += 1
            for c in mesh.cells_at(i):
                at_vertex[i, c] += 1
        for c in range(cells):
            for other in mesh.next_to(c):
                next_to[c, other] += 1

    meet()
    return near.to_numpy(), at_vertex.to_numpy(), next_to.to_numpy()


@pytest.mark.parametrize("kind", ["triangle", "quad", "tetra", "hexahedron"])
def test_loops_in_kernels_meet_what_is_next_to(kind: str) -> None:
    points, cells = block((2,) * KINDS[kind].dimension, kind, np.random.default_rng(1))
    near, at_vertex, next_to = counted(ti.io.Mesh(points, cells, kind))
    wanted = np.zeros_like(near)
    for a, b in KINDS[kind].edges:
        wanted[cells[:, a], cells[:, b]] = wanted[cells[:, b], cells[:, a]] = 1
    np.testing.assert_array_equal(near, wanted)
    np.testing.assert_array_equal(at_vertex, [[int(i in c) for c in cells] for i in range(len(points))])
    shared = np.array([[len(set(a) & set(b)) for b in cells.tolist()] for a in cells.tolist()])
    np.testing.assert_array_equal(next_to, shared == len(KINDS[kind].facets[0]))


@QUICK
@given(meshes())
def test_what_adjoins_what_is_that_of_brute_force(mesh: Any) -> None:
    kind, cells = KINDS[mesh.kind], mesh.cells.to_numpy().tolist()
    edges = {tuple(sorted((c[a], c[b]))) for c in cells for a, b in kind.edges}
    assert mesh.edges.to_numpy().tolist() == [list(edge) for edge in sorted(edges)]
    owners: dict[frozenset[int], list[int]] = {}
    for at, cell in enumerate(cells):
        for facet in kind.facets:
            owners.setdefault(frozenset(cell[k] for k in facet), []).append(at)
    facets, cell_facets, cell_cells, cell_edges, edge_list = (
        field.to_numpy().tolist()
        for field in (mesh.facets, mesh.cell_facets, mesh.cell_cells, mesh.cell_edges, mesh.edges)
    )
    assert {frozenset(row) for row in facets} == owners.keys() and len(facets) == len(owners)
    for at, cell in enumerate(cells):
        for local, facet in enumerate(kind.facets):
            own = frozenset(cell[k] for k in facet)
            assert frozenset(facets[cell_facets[at][local]]) == own
            others = [other for other in owners[own] if other != at]
            assert cell_cells[at][local] == (others[0] if others else -1)
        for local, (a, b) in enumerate(kind.edges):
            assert sorted((cell[a], cell[b])) == edge_list[cell_edges[at][local]]


def enclosed(mesh: Any) -> float:
    """The size of what a boundary encloses, by the divergence theorem: positive if all of it is seen from outside."""
    x = mesh.vertices.to_numpy().astype(float)[mesh.boundary.to_numpy()]
    if mesh.dimension == 2:
        return float((x[:, 0, 0] * x[:, 1, 1] - x[:, 1, 0] * x[:, 0, 1]).sum() / 2)
    # A face of four corners counts as the mean of the two ways to cut it.
    turns = [(0, 1, 2)] if x.shape[1] == 3 else [(0, 1, 2), (0, 2, 3), (1, 2, 3), (1, 3, 0)]
    parts = sum(np.einsum("ni,ni", x[:, a], np.cross(x[:, b], x[:, c])) for a, b, c in turns)
    return float(parts / 6 / (1 if x.shape[1] == 3 else 2))


@QUICK
@given(meshes())
def test_boundaries_are_closed_and_seen_from_outside(mesh: Any) -> None:
    x, cells = mesh.vertices.to_numpy().astype(float), mesh.cells.to_numpy()
    alone = [ti.io.Mesh(x, cell[None], mesh.kind) for cell in cells]
    sizes = [enclosed(cell) for cell in alone]
    assert min(sizes) > 0
    assert enclosed(mesh) == pytest.approx(sum(sizes), rel=1e-5)
    boundary, owners = mesh.boundary.to_numpy(), mesh.boundary_cells.to_numpy()
    for facet, owner in zip(boundary, owners, strict=True):
        assert set(facet.tolist()) <= set(cells[owner].tolist())
    assert mesh.boundary_vertices.to_numpy().tolist() == sorted(set(boundary.ravel().tolist()))
    rings = [(a, b) for facet in boundary.tolist() for a, b in zip(facet, facet[1:] + facet[:1], strict=True)]
    if mesh.dimension == 3:  # each edge in both directions
        assert sorted(rings) == sorted((b, a) for a, b in rings)
    else:
        assert sorted(boundary[:, 0]) == sorted(boundary[:, 1])


@pytest.mark.parametrize("dimension", [2, 3])
def test_the_boundary_of_delaunays_triangulation_is_the_convex_hull(dimension: int) -> None:
    points = np.random.default_rng(3).normal(size=(200, dimension))
    cells = Delaunay(points).simplices
    mesh = ti.io.Mesh(points, cells, "triangle" if dimension == 2 else "tetra")
    hull = ConvexHull(points)
    assert {frozenset(row) for row in mesh.boundary.to_numpy().tolist()} == {
        frozenset(r) for r in hull.simplices.tolist()
    }
    assert enclosed(mesh) == pytest.approx(hull.volume)


def test_surfaces_are_as_trimesh_sees_them() -> None:
    sphere = trimesh.creation.icosphere(2)
    mesh = ti.io.Mesh(sphere.vertices, sphere.faces)
    np.testing.assert_array_equal(mesh.edges.to_numpy(), np.unique(np.sort(sphere.edges_unique, axis=1), axis=0))
    adjacent = [(c, int(o)) for c, row in enumerate(mesh.cell_cells.to_numpy()) for o in row if o > c]
    assert sorted(adjacent) == sorted(map(tuple, np.sort(sphere.face_adjacency, axis=1).tolist()))
    assert mesh.boundary.shape == (0,) and mesh.boundary_vertices.shape == (0,)
    opposite, ends = mesh.opposite.to_numpy(), mesh.half_edges.to_numpy()
    np.testing.assert_array_equal(opposite[opposite], np.arange(len(opposite)))
    np.testing.assert_array_equal(ends[opposite], ends[:, ::-1])
    np.testing.assert_array_equal(ends[0::3, 1], ends[1::3, 0])
    half = sphere.submesh([np.flatnonzero(sphere.triangles_center[:, 2] > 0)], append=True)
    open_mesh = ti.io.Mesh(half.vertices, half.faces)
    opposite, ends = open_mesh.opposite.to_numpy(), open_mesh.half_edges.to_numpy()
    np.testing.assert_array_equal(ends[opposite < 0], open_mesh.boundary.to_numpy())


def test_vertices_of_a_mesh_have_gradients() -> None:
    mesh = ti.io.Mesh([[0.0, 0.0], [2.0, 0.0], [0.0, 3.0]], [[0, 1, 2]], needs_grad=True)
    energy = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def stretch():
        for i in mesh.vertices:
            for j in mesh.neighbours(i):
                energy[None] += (mesh.vertices[i] - mesh.vertices[j]).norm_sqr() / 4

    with ti.ad.Tape(energy):
        stretch()
    x = mesh.vertices.to_numpy()
    np.testing.assert_allclose(mesh.vertices.grad.to_numpy(), 3 * x - x.sum(axis=0))


def test_points_lines_and_empty_meshes() -> None:
    points = ti.io.Mesh(np.zeros((5, 3)))
    assert points.kind == "vertex" and points.edges.shape == (0,) and points.boundary.shape == (0,)
    rope = ti.io.Mesh(np.random.rand(4, 3), [[0, 1], [1, 2], [2, 3]])
    assert rope.kind == "line" and rope.boundary_vertices.to_numpy().tolist() == [0, 3]
    nothing = ti.io.Mesh(np.zeros((0, 2)), np.zeros((0, 3), int))
    assert nothing.facets.shape == (0,) and nothing.opposite.shape == (0,)
    for mesh in (points, rope, nothing):
        ti.io.write("mesh.vtu", mesh)
        assert pyvista.read("mesh.vtu").n_points == len(mesh.vertices)


FLAT = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.5, 1.0]]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 1]]), "cell 0 has vertex 1 twice"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2], [0, 1, 5]]), "cell 1 has vertex 5, and there are 5 vertices"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, -1]]), "cell 0 has vertex -1"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2, 3]]), "may be of kind quad or tetra"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2]], "tetra"), "a cell of kind tetra has 4 corners"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2]], "triangel"), "did you mean 'triangle'"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2, 3, 4]]), "no cells of 5 corners"),
        (lambda: ti.io.Mesh(FLAT, [0, 1, 2]), "cells are integers of shape"),
        (lambda: ti.io.Mesh(FLAT, [[0.0, 1.0, 2.0]]), "cells are integers of shape"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2**40]]), "there are not so many"),
        (lambda: ti.io.Mesh(np.zeros((3, 4))), "vertices are a field of vectors of 2 or 3 components"),
        (lambda: ti.io.Mesh(np.zeros(3)), "vertices are a field of vectors of 2 or 3 components"),
        (lambda: ti.io.Mesh(ti.Vector.field(3, ti.i32, shape=3)), "vertices are a field of vectors"),
        (lambda: ti.io.Mesh(FLAT, ti.Vector.field(3, ti.f32, shape=3)), "cells are a field of vectors of integers"),
        (lambda: ti.io.Mesh(FLAT, point_data={"a": np.zeros(3)}), "'a' has shape (3,), and there are 5 vertices"),
        (lambda: ti.io.Mesh(FLAT, point_data={"a": np.array(["x"] * 5)}), "not of numbers"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2, 3]], "tetra").boundary, "cell 0 has the size 0: its facets have no outer"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 4], [1, 0, 2], [0, 1, 3]]).cell_cells, "cells 0, 1, 2 share the facet"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 4], [0, 1, 2]]).opposite, "cells 0 and 1 have the edge from 0 to 1"),
        (lambda: ti.io.Mesh(FLAT, [[0, 1, 2, 4]], "tetra").opposite, "has no half-edges"),
        (lambda: ti.io.Grid((3, 0)), "a positive number of points or cells"),
        (lambda: ti.io.Grid((3, 2, 2, 2)), "along each of 1 to 3 axes"),
        (lambda: ti.io.Grid((3, 2), spacing=-1.0), "must be positive"),
        (lambda: ti.io.Grid((3, 2), spacing=(1.0, 1.0, 1.0)), "one for each of 2 axes"),
        (lambda: ti.io.Grid((3, 2), origin=math.nan), "one for each of 2 axes"),
        (lambda: ti.io.Grid(), "points, or of cells"),
    ],
)
def test_what_makes_no_mesh_is_an_error_at_the_users_line(make: Any, message: str) -> None:
    with pytest.raises(FieldError) as caught:
        make()
    assert message in str(caught.value) and "test_io.py" in str(caught.value)


# ---- files


@QUICK
@given(meshes(), st.sampled_from(TYPES), st.sampled_from([(), (2,), (3,), (4,), (2, 2), (3, 3)]), st.booleans())
def test_vtu_is_read_back_by_vtk(mesh: Any, dtype: str, element: Any, at_points: bool) -> None:
    number = len(mesh.vertices) if at_points else mesh.cells.shape[0]
    held = some(dtype, (number, *element))
    where = "points" if at_points else "cells"
    ti.io.write("mesh.vtu", mesh, **{where: {"a <&> b": held}}, units={"a <&> b": "kg/m^3"})
    wanted, vertices = in_space(held), in_space(mesh.vertices.to_numpy())
    by_vtk = pyvista.read("mesh.vtu")
    back = (by_vtk.point_data if at_points else by_vtk.cell_data)["a <&> b"]
    np.testing.assert_array_equal(np.asarray(back).reshape(wanted.shape), wanted)
    assert back.dtype == wanted.dtype
    np.testing.assert_array_equal(by_vtk.points, vertices)
    np.testing.assert_array_equal(by_vtk.cells_dict[KINDS[mesh.kind].vtk], mesh.cells.to_numpy())
    again = ti.io.read("mesh.vtu", dimension=mesh.dimension)
    assert again.kind == mesh.kind
    np.testing.assert_array_equal(again.vertices.to_numpy(), mesh.vertices.to_numpy())
    np.testing.assert_array_equal(again.cells.to_numpy(), mesh.cells.to_numpy())
    data = (again.point_data if at_points else again.cell_data)["a <&> b"].to_numpy()
    np.testing.assert_array_equal(data, wanted)
    assert data.dtype == wanted.dtype


@pytest.mark.parametrize("compressor", ["none", "zlib"])
@pytest.mark.parametrize("kind", ["triangle", "hexahedron"])
def test_vtu_of_vtk_is_read(kind: str, compressor: str) -> None:
    points, cells = block((9,) * KINDS[kind].dimension, kind, np.random.default_rng(0))
    made = ti.io.Mesh(np.pad(points, ((0, 0), (0, 3 - points.shape[1]))), cells, kind)
    ti.io.write("mesh.vtu", made)
    by_vtk = pyvista.read("mesh.vtu")
    for number, dtype in enumerate(TYPES[1:-1]):
        by_vtk.point_data[f"p{number}"] = some(dtype, (len(points), 3), number)
        by_vtk.cell_data[f"c{number}"] = some(dtype, (len(cells),), number)
    by_vtk.save("saved.vtu", compression=None if compressor == "none" else compressor)
    again = ti.io.read("saved.vtu")
    np.testing.assert_array_equal(again.cells.to_numpy(), cells)
    for number in range(len(TYPES) - 2):
        np.testing.assert_array_equal(again.point_data[f"p{number}"].to_numpy(), by_vtk.point_data[f"p{number}"])
        np.testing.assert_array_equal(again.cell_data[f"c{number}"].to_numpy(), by_vtk.cell_data[f"c{number}"])


@QUICK
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.sampled_from(TYPES), st.sampled_from([(), (2,), (3, 3)]))
def test_vti_is_read_back_by_vtk(shape: list[int], dtype: str, element: Any) -> None:
    axes = len(shape)
    grid = ti.io.Grid(cells=shape, spacing=[0.5, 0.25, 2.0][:axes], origin=[1.0, -1.0, 0.0][:axes])
    at_points, in_cells = some(dtype, (*grid.points, *element), 1), some(dtype, (*shape, *element), 2)
    ti.io.write("grid.vti", grid, u=at_points, w=in_cells)
    found = pyvista.read("grid.vti")
    for values, data in ((at_points, found.point_data["u"]), (in_cells, found.cell_data["w"])):
        wanted = in_space(values, axes)
        back = np.asarray(data).reshape(*wanted.shape[:axes][::-1], *wanted.shape[axes:])
        np.testing.assert_array_equal(back.transpose(*range(axes - 1, -1, -1), *range(axes, back.ndim)), wanted)
    corner = [o + n * h for o, n, h in zip(grid.origin, shape, grid.spacing, strict=True)]
    np.testing.assert_array_equal(found.bounds[1::2][:axes], corner)


@pytest.mark.parametrize("ending", ["vtk", "msh", "inp", "xdmf", "mesh", "su2"])
def test_formats_of_meshio_come_back(ending: str) -> None:
    points, cells = block((2, 2, 2), "tetra", np.random.default_rng(0))
    ti.io.write(f"mesh.{ending}", ti.io.Mesh(points, cells, "tetra"))
    again = ti.io.read(f"mesh.{ending}", dtype=ti.f64, kind="tetra")
    np.testing.assert_allclose(again.vertices.to_numpy(), points, atol=1e-6)
    np.testing.assert_array_equal(again.cells.to_numpy(), cells)


@pytest.mark.parametrize("ending", ["ply", "obj", "off", "glb", "gltf"])
def test_surfaces_and_their_colors_come_back_from_trimesh(ending: str) -> None:
    box = trimesh.creation.box()
    color = np.random.default_rng(0).integers(0, 255, (8, 4)).astype(np.uint8)
    heat = np.arange(8, dtype=np.float32)
    data = {"color": color, "heat": heat}
    if ending in ("obj", "off"):
        color[:, 3], data = 255, {"color": color}
    mesh = ti.io.Mesh(box.vertices, box.faces, point_data={} if ending == "off" else data)
    ti.io.write(f"box.{ending}", mesh)
    again = ti.io.read(f"box.{ending}")
    np.testing.assert_array_equal(again.vertices.to_numpy(), box.vertices)
    np.testing.assert_array_equal(again.cells.to_numpy(), box.faces)
    if ending != "off":
        found = again.point_data["color"].to_numpy()
        found = found if found.dtype == np.uint8 else np.round(found * 255)
        np.testing.assert_array_equal(found, color[:, : found.shape[1]])
    if "heat" in mesh.point_data and ending != "off":
        np.testing.assert_array_equal(again.point_data["heat"].to_numpy(), heat)


def test_triangles_of_stl_share_vertices() -> None:
    box = trimesh.creation.box()
    ti.io.write("box.stl", ti.io.Mesh(box.vertices, box.faces))
    again = ti.io.read("box.stl")
    assert len(again.vertices) == 8 and again.boundary.shape == (0,)
    assert len(ti.io.read("box.stl", merge=False).vertices) == 36


@pytest.mark.parametrize("ending", ["ply", "glb"])
def test_points_with_colors_come_back(ending: str) -> None:
    x = ti.Vector.field(3, ti.f32, shape=4)
    x.from_numpy(np.random.default_rng(0).normal(size=(4, 3)))
    color = ti.Vector.field(3, ti.f32, shape=4)
    color.fill([1.0, 0.2, 0.0])
    ti.io.write(f"points.{ending}", x, color=color)
    again = ti.io.read(f"points.{ending}")
    np.testing.assert_array_equal(again.vertices.to_numpy(), x.to_numpy())
    np.testing.assert_array_equal(again.point_data["color"].to_numpy()[:, :3], [[255, 51, 0]] * 4)


def test_quads_and_data_of_faces_in_ply() -> None:
    quads = ti.io.Mesh(np.eye(4, 3), [[0, 1, 2, 3]], "quad")
    ti.io.write("quad.ply", quads, cells={"area": np.array([2.0])})
    assert pyvista.read("quad.ply").faces.tolist() == [4, 0, 1, 2, 3]
    with pytest.warns(UserWarning, match=r"polygons of quad.ply were cut into triangles"):
        assert ti.io.read("quad.ply").cells.shape == (2,)
    ti.io.write("faces.ply", ti.io.Mesh(np.eye(3), [[0, 1, 2]]), area=ti.ndarray(ti.f64, (1,)), v=np.eye(3, dtype="f4"))
    again = ti.io.read("faces.ply")
    assert again.cell_data["area"].to_numpy().tolist() == [0.0]
    assert again.point_data["v_1"].to_numpy().tolist() == [0.0, 1.0, 0.0]


def test_one_kind_of_cells_of_a_file() -> None:
    points, tets = block((1, 1, 1), "tetra", np.random.default_rng(0))
    faces = ti.io.Mesh(points, tets, "tetra").boundary.to_numpy()
    tags = [np.zeros(4, int), np.ones(len(tets), int), np.arange(len(faces) - 4)]
    meshio.write(
        "mesh.vtu",
        meshio.Mesh(
            points, [("triangle", faces[:4]), ("tetra", tets), ("triangle", faces[4:])], cell_data={"tag": tags}
        ),
    )
    mesh, surface = ti.io.read("mesh.vtu"), ti.io.read("mesh.vtu", kind="triangle")
    assert mesh.kind == "tetra" and mesh.cell_data["tag"].to_numpy().tolist() == tags[1].tolist()
    np.testing.assert_array_equal(surface.cells.to_numpy(), faces)
    assert surface.cell_data["tag"].to_numpy().tolist() == [*tags[0], *tags[2]]
    assert ti.io.read("mesh.vtu", kind="vertex").kind == "vertex"
    with pytest.raises(FileError, match=r"has no cells of kind quad, but of triangle, tetra"):
        ti.io.read("mesh.vtu", kind="quad")
    meshio.write("mixed.vtu", meshio.Mesh(points, [("triangle", faces[:1]), ("quad", [[0, 1, 2, 3]])]))
    with pytest.raises(FileError, match=r"has cells of the kinds triangle, quad, and a mesh has one"):
        ti.io.read("mixed.vtu")


def test_every_kind_of_field_is_written() -> None:
    particle = ti.types.struct(mass=ti.f32, velocity=ti.math.vec3)
    particles = particle.field(shape=3)
    particles[1] = particle(2.0, ti.math.vec3(1, 2, 3))
    half, flag = ti.field(ti.f16, shape=3), ti.field(ti.u1, shape=3)
    half.fill(0.5)
    flag.fill(1)
    stress = ti.Matrix.field(2, 2, ti.f64, shape=3)
    stress.fill([[1, 2], [3, 4]])
    array = ti.Vector.ndarray(3, ti.i16, 3)
    x = ti.Vector.field(3, ti.f64, shape=3)
    ti.io.write("all.vtu", x, particles=particles, half=half, flag=flag, stress=stress, array=array, n=np.arange(3))
    found = pyvista.read("all.vtu").point_data
    assert found["particles.mass"].tolist() == [0, 2, 0] and found["particles.velocity"][1].tolist() == [1, 2, 3]
    assert found["half"].dtype == np.float32 and found["half"].tolist() == [0.5] * 3
    assert found["flag"].tolist() == [1] * 3 and found["array"].dtype == np.int16 and found["n"].dtype == np.int64
    assert found["stress"][0].ravel().tolist() == [1, 2, 0, 3, 4, 0, 0, 0, 0]


def sparse() -> Any:
    field = ti.field(ti.f32)
    ti.root.bitmasked(ti.i, 5).place(field)
    return field


TRIANGLES = lambda: ti.io.Mesh(FLAT, [[0, 1, 2], [1, 3, 2]])  # noqa: E731


@pytest.mark.parametrize(
    "do, kind, message",
    [
        (lambda: ti.io.read("nothing.vtu"), FileError, "there is no file nothing.vtu"),
        (lambda: ti.io.read("bad.vtu"), FileError, "meshio cannot read bad.vtu"),
        (lambda: ti.io.read("bad.glb"), FileError, "trimesh cannot read bad.glb"),
        (lambda: ti.io.read("bad.abc"), FileError, "meshio cannot read bad.abc"),
        (lambda: ti.io.read("bad.vtu", kind="tet"), FieldError, "there is no kind of cells 'tet'"),
        (lambda: ti.io.write("m.abc", TRIANGLES()), FileError, "no format of meshes for files *.abc"),
        (lambda: ti.io.write("no/m.vtu", TRIANGLES()), FileError, "there is no folder no"),
        (lambda: ti.io.write("m.vti", TRIANGLES()), FileError, "a mesh is written to a file *.vtu"),
        (lambda: ti.io.write("m.vtu", ti.io.Grid((2, 2))), FileError, "a grid is written to a file *.vti"),
        (lambda: ti.io.write("m.vtu", ti.field(ti.f32, 3)), FieldError, "fields are written on a mesh, a grid or"),
        (
            lambda: ti.io.write("m.vtu", TRIANGLES(), a=np.zeros(3)),
            FieldError,
            "'a' has shape (3,); values have shape (5,)",
        ),
        (
            lambda: ti.io.write("m.vtu", TRIANGLES(), cells={"a": np.zeros(5)}),
            FieldError,
            "values have shape (2,) at cells",
        ),
        (
            lambda: ti.io.write("m.vtu", TRIANGLES(), a=[0.0] * 5),
            FieldError,
            "it is of type list",
        ),
        (
            lambda: ti.io.write("m.vtu", TRIANGLES(), a=np.zeros(5, complex)),
            FieldError,
            "neither a field nor an array of numbers",
        ),
        (
            lambda: ti.io.write("m.vtu", TRIANGLES(), a=np.array(["a"] * 5)),
            FieldError,
            "neither a field nor an array of numbers",
        ),
        (lambda: ti.io.write("m.vtu", TRIANGLES(), a=sparse()), FieldError, "'a' is a sparse field"),
        (lambda: ti.io.write("m.obj", TRIANGLES(), a=np.zeros(5)), FileError, "a file *.obj has no place for a"),
        (lambda: ti.io.write("m.stl", ti.io.Mesh(FLAT)), FileError, "a file *.stl holds cells of kind triangle"),
        (
            lambda: ti.io.write("m.ply", ti.io.Mesh(FLAT, [[0, 1, 2, 4]], "tetra")),
            FileError,
            "a file *.ply holds points and cells of kind triangle or quad, not tetra",
        ),
        (
            lambda: ti.io.write("m.vtu", ti.io.Mesh(FLAT[:4], [[0, 1, 2]] * 4), a=np.zeros(4)),
            FieldError,
            "'a' may belong to the points or to the cells: there are 4 of both",
        ),
        (
            lambda: ti.io.Series("run.txt", TRIANGLES()),
            FileError,
            "a series is written to a file *.pvd, *.xdmf, *.zarr",
        ),
        (lambda: ti.io.Series("run.pvd"), FieldError, "a series for ParaView is on a mesh"),
        (lambda: ti.io.Series("bad.pvd", TRIANGLES()), FileError, "bad.pvd was not written by ti.io.Series"),
        (lambda: ti.io.Series("run.pvd", TRIANGLES(), every=0.0), FieldError, "the time is positive"),
        (lambda: ti.io.Series("run.pvd", TRIANGLES(), at=[2.0, 1.0]), FieldError, "the times of output increase"),
        (lambda: ti.io.Series("run.pvd", TRIANGLES()).step(0.0, 0.0), FieldError, "must be positive"),
        (lambda: ti.io.Series("run.pvd", TRIANGLES()).write(math.nan), FieldError, "the time is nan"),
    ],
)
def test_wrong_use_is_an_error_at_the_users_line(do: Any, kind: Any, message: str) -> None:
    for name in ("bad.vtu", "bad.abc", "bad.pvd", "bad.glb"):
        Path(name).write_text("no mesh")
    before = sorted(Path().iterdir())
    with pytest.raises(kind) as caught:
        do()
    assert message in str(caught.value) and "test_io.py" in str(caught.value)
    assert [path for path in Path().iterdir() if path not in before and path.stem not in ("run", "bad")] == []


@pytest.mark.parametrize(
    "name, do",
    [
        ("meshio", lambda: ti.io.read("mesh.vtu")),
        ("trimesh", lambda: ti.io.read("mesh.obj")),
        ("h5py", lambda: ti.io.Series("run.xdmf", ti.io.Grid((2, 2)))),
        ("zarr", lambda: ti.io.Series("run.zarr")),
    ],
)
def test_a_missing_library_is_named(name: str, do: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("mesh.vtu", "mesh.obj"):
        Path(file).touch()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(FileError, match=rf"needs {name}, which is not installed(.|\n)*pip install {name}"):
        do()


# ---- series


def read_at(path: Path, t: float) -> Any:
    """What VTK finds at a time of a series."""
    reader = pyvista.get_reader(str(path))
    reader.set_active_time_value(float(t))
    found = reader.read()
    return found[0] if isinstance(found, pyvista.MultiBlock) else found


@pytest.mark.parametrize("ending", ["pvd", "xdmf"])
@pytest.mark.parametrize("kind", [*KINDS, "grid"])
def test_a_series_opens_with_its_times(ending: str, kind: str) -> None:
    on: Any = ti.io.Grid((3, 4, 2), spacing=0.5, origin=(1.0, 0.0, 0.0))
    if kind in ("vertex", "line"):
        on = ti.io.Mesh(np.random.rand(4, 3), None if kind == "vertex" else [[0, 1], [1, 2], [2, 3]])
    elif kind != "grid":
        shape = (2,) * KINDS[kind].dimension
        on = ti.io.Mesh(*block(shape, kind, np.random.default_rng(0)), kind)
    shape = on.points if kind == "grid" else on.vertices.shape
    inside = (2, 3, 1) if kind == "grid" else on.cells.shape
    values = {t: (some("f4", (*shape, 3), int(4 * t)), some("i4", inside, int(4 * t))) for t in (0.0, 0.25, 1e-3)}
    series = ti.io.Series(f"run.{ending}", on, units={"v": "m/s"})
    for t, (v, n) in values.items():
        series.write(t, points={"v": v}, cells={} if kind == "vertex" else {"n": n})
    assert series.times == (0.0, 1e-3, 0.25)
    assert pyvista.get_reader(f"run.{ending}").time_values == [0.0, 1e-3, 0.25]
    for t, (v, n) in values.items():
        found = read_at(Path(f"run.{ending}"), t)
        axes = len(shape)
        order = (*range(axes - 1, -1, -1), axes)
        np.testing.assert_array_equal(found.point_data["v"], v.transpose(order).reshape(-1, 3))
        if kind != "vertex":
            np.testing.assert_array_equal(found.cell_data["n"], n.transpose(order[:-1]).ravel())
        if kind != "grid":
            np.testing.assert_array_equal(found.points, in_space(on.vertices.to_numpy()))
            many = {"vertex": 2, "line": 4} if ending == "xdmf" else {}  # of any number of vertices
            assert found.get_cell(0).type == many.get(kind, KINDS[kind].vtk)


def test_a_mesh_that_stays_is_in_hdf5_once_and_one_that_moves_each_time() -> None:
    mesh = TRIANGLES()
    series = ti.io.Series("run.xdmf", mesh)
    for t in (0.0, 1.0, 2.0):
        series.write(t)
    assert len(list(Path("run").glob("mesh_*.h5"))) == 1
    mesh.vertices.fill(7.0)
    series.write(3.0)
    assert len(list(Path("run").glob("mesh_*.h5"))) == 2
    assert read_at(Path("run.xdmf"), 3.0).points.max() == 7.0
    ti.io.Series("run.xdmf", mesh, append=2.5)
    assert len(list(Path("run").glob("mesh_*.h5"))) == 1


def test_a_store_has_coordinates_units_and_times() -> None:
    u, v = ti.field(ti.f32, shape=(3, 4)), ti.Vector.field(2, ti.f64, shape=(2, 3))
    grid = ti.io.Grid((3, 4), spacing=(0.5, 2.0), origin=(1.0, 0.0))
    series = ti.io.Series("run.zarr", grid, units={"u": "K", "time": "s", "length": "m"})
    for t in (0.0, 0.5):
        u.fill(t)
        series.write(t, u=u, v=v, energy=2 * t)
    found = xarray.open_zarr("run.zarr")
    assert found.u.dims == ("time", "x", "y") and found.v.dims == ("time", "x_of_cells", "y_of_cells", "v_component")
    assert found.u.attrs["units"] == "K" and found.time.attrs["units"] == "s" and found.x.attrs["units"] == "m"
    assert found.x.values.tolist() == [1.0, 1.5, 2.0] and found.y_of_cells.values.tolist() == [1.0, 3.0, 5.0]
    assert found.u.sel(time=0.5, x=1.5).values.tolist() == [0.5] * 4 and found.energy.values.tolist() == [0.0, 1.0]
    assert ti.load("run.zarr", at=0, u=u)["time"] == 0.0 and u[0, 0] == 0.0
    with pytest.raises(FileError, match=r"has the time 0.5, and 0.5 is not later"):
        series.write(0.5, u=u, v=v, energy=1.0)
    with pytest.raises(FieldError, match=r"'x' is the name of something else in the store"):
        ti.io.Series("other.zarr", grid).write(0.0, x=u)


def test_units_of_fields_are_in_files() -> None:
    mesh = TRIANGLES()
    heat = ti.field(ti.f32[ti.units.K], shape=5)
    ti.io.write("mesh.vtu", mesh, heat=heat, units={"other": "m"}, other=np.zeros(2))
    assert Path("mesh.vtu").read_bytes().count(b">K</InformationKey>") == 1
    ti.io.Series("run.zarr", mesh, units={"time": "s"}).write(0.0, heat=heat)
    found = xarray.open_zarr("run.zarr")
    assert found.heat.attrs["units"] == "K" and found.time.attrs["units"] == "s"


def test_a_store_of_a_moving_mesh_and_one_without() -> None:
    mesh = TRIANGLES()
    series = ti.io.Series("mesh.zarr", mesh, units={"length": "m"})
    for t in (0.0, 1.0):
        mesh.vertices.fill(t)
        series.write(t, n=np.arange(2))
    found = xarray.open_zarr("mesh.zarr")
    assert found.vertices.dims == ("time", "vertex", "axis") and found.vertices.values[:, 0, 0].tolist() == [0.0, 1.0]
    assert found.n.dims == ("time", "cell") and found.cells.dims == ("cell", "corner")
    assert found.vertices.attrs["units"] == "m" and "units" not in found.cells.attrs
    any_shape = ti.io.Series("any.zarr")
    any_shape.write(0.0, a=ti.field(ti.f32, shape=()), b=np.zeros((2, 2, 2, 2)), c=7)
    assert xarray.open_zarr("any.zarr").b.shape == (1, 2, 2, 2, 2)


@pytest.mark.parametrize("ending", ["pvd", "xdmf", "zarr"])
def test_a_series_goes_on(ending: str) -> None:
    grid, u = ti.io.Grid((2, 2)), np.zeros((2, 2))
    for number, (append, times) in enumerate(
        [(False, (0.0, 1.0, 2.0)), (True, (3.0,)), (1.5, (1.75, 2.5)), (True, ()), (1.0, ()), (False, (5.0,))]
    ):
        series = ti.io.Series(f"run.{ending}", grid, append=append)
        for t in times:
            assert series.write(t, u=u + t)
        wanted = [(0, 1, 2), (0, 1, 2, 3), (0, 1, 1.75, 2.5), (0, 1, 1.75, 2.5), (0, 1), (5,)][number]
        assert series.times == wanted
    if ending != "zarr":
        assert len([path for path in Path("run").iterdir() if not path.name.startswith(".")]) == 1
        series.write(5.0, u=u)  # in place of that time
        assert series.times == (5.0,)
        assert len([path for path in Path("run").iterdir() if not path.name.startswith(".")]) == 1


@QUICK
@given(
    st.floats(0.01, 10.0), st.floats(0.003, 0.9), st.lists(st.floats(0.1, 1.0), min_size=1, max_size=8), st.floats(0, 5)
)
def test_output_falls_on_its_times(every: float, part: float, changes: list[float], start: float) -> None:
    series = ti.io.Series("run.pvd", ti.io.Grid((1,)), every=every)
    t = start * every
    series.write(t)
    while len(series.times) < 4:
        dt = part * every * changes[len(series.times) % len(changes)]
        step = series.step(t, dt)
        assert 0 < step <= dt * (1 + 1e-5)
        t += step
        series.write(t)
    first = math.floor(start + 1e-6) + 1
    np.testing.assert_allclose(series.times[1:], [every * (first + k) for k in range(3)], rtol=1e-9)


def test_output_at_given_times_and_with_steps_of_a_fixed_length() -> None:
    series = ti.io.Series("at.pvd", ti.io.Grid((1,)), at=[0.3, 0.4, 1.0])
    t = 0.0
    while t < 1.5:
        series.write(t)
        t += series.step(t, 0.25)
    assert series.times == pytest.approx((0.3, 0.4, 1.0))
    fixed = ti.io.Series("fixed.pvd", ti.io.Grid((1,)), every=0.1)
    t = 0.0
    for _ in range(101):
        fixed.write(t)
        t += 0.01  # adds up to 0.0999…9
    assert fixed.times == pytest.approx([0.1 * k for k in range(11)])
    again = ti.io.Series("fixed.pvd", ti.io.Grid((1,)), every=0.1, append=0.55)
    assert [again.is_due(t) for t in (0.5, 0.55, 0.6)] == [False, False, True]


KILLED = """
import os, sys
import numpy as np
import h5py, zarr, tinote as ti
mesh, u = ti.io.Mesh(np.eye(4, 3), [[0, 1, 2], [1, 2, 3]]), np.zeros(4)

def run(ending, end):
    count, replace = 0, os.replace
    def counted(*args, **options):
        nonlocal count
        if count == end:
            os._exit(7)  # before the file has its name; as it is with SIGKILL, nothing runs after it
        replace(*args, **options)
        count += 1
    os.replace = counted
    series = ti.io.Series(f"{end}.{ending}", mesh)
    for t in range(4):
        series.write(float(t), u=u + t)

for ending, last, step in (("pvd", 10, 1), ("xdmf", 11, 1), ("zarr", 90, 9)):
    for end in range(0, last, step):
        child = os.fork()
        if child == 0:
            run(ending, end)
            os._exit(0)
        print(ending, end, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_killed_process_leaves_a_series() -> None:
    child = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=True)
    lengths = dict[str, list[int]]()
    for line in child.stdout.splitlines():
        ending, end, code = line.split()
        path, held = Path(f"{end}.{ending}"), lengths.setdefault(ending, [])
        assert code in ("0", "7")
        held.append(len(ti.io.Series(path, FLAT_MESH(), append=True).times))
        if ending == "zarr" and held[-1]:
            found = xarray.open_zarr(path)
            np.testing.assert_array_equal(found.u.values[: held[-1], 0], np.arange(held[-1]))
            assert held[-1] <= found.sizes["time"] <= held[-1] + 1
            assert ti.load(path).states == held[-1]
        elif held[-1]:
            for t in range(held[-1]):
                assert read_at(path, t).point_data["u"].tolist() == [t] * 4
        again = ti.io.Series(path, FLAT_MESH(), append=True)
        again.write(9.0, u=np.zeros(4))
        assert again.times == (*map(float, range(held[-1])), 9.0)
    for held in lengths.values():
        assert held == sorted(held) and held[0] == 0 and held[-1] >= 2


FLAT_MESH = lambda: ti.io.Mesh(np.eye(4, 3), [[0, 1, 2], [1, 2, 3]])  # noqa: E731

TOGETHER = """
import os, sys
import numpy as np
import tinote as ti
mesh = ti.io.Mesh(np.eye(4, 3), [[0, 1, 2], [1, 2, 3]])
paths = ("run.pvd", "run.xdmf")
for path in paths:
    ti.io.Series(path, mesh)
children = []
for rank in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        for path in paths:
            series = ti.io.Series(path, mesh, append=True)
            for k in range(5):
                series.write(float(4 * k + rank), u=np.full(4, 4.0 * k + rank))
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_processes_write_one_series() -> None:
    subprocess.run([sys.executable, "-c", TOGETHER], check=True)
    for path in (Path("run.pvd"), Path("run.xdmf")):
        assert ti.io.Series(path, FLAT_MESH(), append=True).times == tuple(map(float, range(20)))
        for t in range(0, 20, 5):
            assert read_at(path, t).point_data["u"].tolist() == [t] * 4
