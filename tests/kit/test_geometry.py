"""`ti.geometry`: libigl's nearest points and winding numbers, rays and boxes one by one, bodies by samples of their
surfaces, and derivatives by differences.
"""

from collections.abc import Callable
from typing import Any

import igl
import numpy as np
import pytest
import trimesh
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial import KDTree

import tinote as ti
from tests.lang.test_portable import numbers, played
from tinote.errors import FieldError, KernelAssertionError
from tinote.lang.capture.portable import portable

NUMPY = {ti.f32: np.float32, ti.f64: np.float64}
SLOW = settings(
    max_examples=settings.default.max_examples // 8, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
VERTICES, TRIANGLES, POINTS = 120, 160, 60


def vectors(values: Any, dtype: Any = ti.f64, **options: Any) -> Any:
    values = np.asarray(values)
    x = ti.Vector.field(values.shape[1], dtype, shape=len(values), **options)
    x.from_numpy(values.astype(np.int32 if dtype == ti.i32 else NUMPY[dtype]))
    return x


def put(field: Any, values: Any) -> None:
    """The first elements of a field."""
    held = field.to_numpy()
    held[: len(values)] = values
    field.from_numpy(held)


def ball(subdivisions: int = 1) -> tuple[Any, Any]:
    made = trimesh.creation.icosphere(subdivisions=subdivisions)
    return np.array(made.vertices), np.array(made.faces)


def mesh_of(surface: Any, dtype: Any = ti.f64, **options: Any) -> Any:
    made = ti.geometry.TriangleTree(vectors(surface[0], dtype, **options), vectors(surface[1], ti.i32))
    made.update()
    return made


class Probe:
    """A mesh with room for any, and what it answers about points and rays."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.mesh = ti.geometry.TriangleTree(
            vectors(np.zeros((VERTICES, 3)), dtype), vectors(np.zeros((TRIANGLES, 3)), ti.i32)
        )
        self.points, self.directions = (vectors(np.zeros((POINTS, 3)), dtype) for _ in range(2))
        self.weights = vectors(np.zeros((POINTS, 3)), dtype)
        self.distance, self.winding, self.exact, self.signed = (ti.field(dtype, shape=POINTS) for _ in range(4))
        self.found, self.any = (ti.field(ti.i32, shape=POINTS) for _ in range(2))
        mesh, points, directions = self.mesh, self.points, self.directions

        @ti.kernel
        def measure():
            for i in points:
                self.distance[i], self.found[i], self.weights[i] = mesh.nearest(points[i])

        @ti.kernel
        def wind():
            for i in points:
                self.winding[i] = mesh.winding_number(points[i])
                self.exact[i] = mesh.winding_number(points[i], ti.math.inf)
                self.signed[i] = mesh.signed_distance(points[i])

        @ti.kernel
        def cast():
            for i in points:
                self.distance[i], self.found[i], self.weights[i] = mesh.first_hit(points[i], directions[i])
                self.any[i] = mesh.any_hit(points[i], directions[i])

        self.measure, self.wind, self.cast = measure, wind, cast

    def take(self, surface: Any, points: Any, directions: Any = None) -> tuple[Any, Any, Any]:
        """The surface and the points, rounded, and what rounding may do to lengths."""
        put(self.mesh.x, surface[0])
        put(self.mesh.triangles, surface[1])
        put(self.points, points)
        if directions is not None:
            put(self.directions, directions)
        self.mesh.update(len(surface[1]))
        vertices = self.mesh.x.to_numpy()[: len(surface[0])].astype(float)
        points = self.points.to_numpy()[: len(points)].astype(float)
        extent = np.abs(vertices).max() + np.abs(points).max()
        return vertices, points, 64 * np.finfo(NUMPY[self.dtype]).eps * extent

    def read(self, *names: str) -> Any:
        return [getattr(self, name).to_numpy() for name in names]


@st.composite
def surfaces(draw: Any, closed: bool = False) -> tuple[tuple[Any, Any], Any]:
    """A surface, and points: anywhere, on vertices, edges and triangles, and far away."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shells = ["ball", "box", "ring", "two"]
    kind = draw(st.sampled_from(shells if closed else [*shells, "soup", "flat", "lattice", "one", "same"]))
    if kind == "box":
        made = trimesh.creation.box()
        x, triangles = np.array(made.vertices), np.array(made.faces)
    elif kind == "ring":
        made = trimesh.creation.torus(1.0, 0.4, 8, 6)
        x, triangles = np.array(made.vertices), np.array(made.faces)
    elif kind == "two":
        x, triangles = ball(0)
        x, triangles = np.concatenate([x, 0.5 * x + [3.0, 0, 0]]), np.concatenate([triangles, triangles + len(x)])
    elif kind == "ball":
        x, triangles = ball()
        x *= rng.uniform(0.7, 1.3, (len(x), 1))
    else:
        x, triangles = rng.normal(size=(40, 3)), rng.integers(0, 40, (rng.integers(1, TRIANGLES), 3))
        if kind == "flat":
            x[:, 2] = 0.5
        elif kind == "lattice":  # coincident vertices, and triangles that are segments and points
            x = np.round(x)
        elif kind == "one":
            triangles = np.array([[0, 1, 2]])
        elif kind == "same":
            triangles = np.repeat([[0, 1, 2]], 50, axis=0)
    skew = np.eye(3) + rng.uniform(-0.3, 0.3, (3, 3))
    scale, offset = draw(st.sampled_from([1e-3, 1.0, 50.0])), draw(st.sampled_from([0.0, 3.0]))
    x = scale * (x @ skew + offset)
    some = triangles[rng.integers(0, len(triangles), 15)]
    at = rng.dirichlet(np.ones(3), 15)
    at[:5] = [1, 0, 0]
    at[5:10] = [0.5, 0, 0.5]
    on = (at[:, :, None] * x[some]).sum(1)
    anywhere = x.mean(0) + rng.uniform(-2, 2, (40, 3)) * scale
    return (x, triangles), np.concatenate([on, anywhere, anywhere[:5] * 100])


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_nearest_points_are_libigls(dtype: Any) -> None:
    probe = Probe(dtype)

    @SLOW
    @given(surfaces())
    def check(case: Any) -> None:
        (x, triangles), points = case
        x, points, rounding = probe.take((x, triangles), points)
        probe.measure()
        distance, found, weights = (one[: len(points)] for one in probe.read("distance", "found", "weights"))
        squares, _, _ = igl.point_mesh_squared_distance(points, x, triangles)
        np.testing.assert_allclose(distance, np.sqrt(squares), atol=rounding)
        np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
        assert weights.min() > -1e-5
        at = (weights[:, :, None] * x[triangles[found]]).sum(1)
        np.testing.assert_allclose(np.linalg.norm(at - points, axis=1), distance, atol=rounding)

    check()


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_winding_numbers_and_signs_are_libigls(dtype: Any) -> None:
    probe = Probe(dtype)

    @SLOW
    @given(st.booleans(), st.data(), st.booleans())
    def check(closed: bool, data: Any, is_turned: bool) -> None:
        (x, triangles), points = data.draw(surfaces(closed))
        triangles = triangles[:, ::-1] if is_turned else triangles
        x, points, rounding = probe.take((x, triangles), points)
        probe.wind()
        exact, nearly, signed = (one[: len(points)] for one in probe.read("exact", "winding", "signed"))
        distance = np.sqrt(igl.point_mesh_squared_distance(points, x, triangles)[0])
        expected = igl.winding_number(x, triangles.astype(np.int64), points)
        np.testing.assert_allclose(np.abs(signed), distance, atol=rounding)
        # Roundings of a solid angle are those of lengths, over the distance.
        off = distance > 10 * rounding
        np.testing.assert_allclose(exact[off], expected[off], atol=1e-6 + 100 * rounding / distance[off].min(initial=1))
        if closed:
            np.testing.assert_allclose(nearly[off], expected[off], atol=0.1)
            np.testing.assert_array_equal(signed[off] < 0, np.abs(expected)[off] > 0.5)

    check()


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_rays_meet_what_they_meet_one_by_one(dtype: Any) -> None:
    probe = Probe(dtype)

    @SLOW
    @given(surfaces(), st.integers(0, 2**32 - 1))
    def check(case: Any, seed: int) -> None:
        (x, triangles), points = case
        rng = np.random.default_rng(seed)
        directions = x[rng.integers(0, len(x), len(points))] - points  # at vertices
        directions[::2] = rng.normal(size=directions[::2].shape)
        directions[:3] = np.eye(3)
        x, points, rounding = probe.take((x, triangles), points, directions)
        directions = probe.directions.to_numpy()[: len(points)].astype(float)
        probe.cast()
        t, found, weights, any_hit = (one[: len(points)] for one in probe.read("distance", "found", "weights", "any"))
        np.testing.assert_array_equal(any_hit > 0, found >= 0)
        size = np.linalg.norm(directions, axis=1)
        hit = found >= 0
        assert not hit[size == 0].any()
        # Where a triangle is met that is neither a needle nor seen edge on, the point is that of the ray.
        corners = x[triangles[found]]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        fine = hit & (np.linalg.norm(normal, axis=1) > 0.01 * np.ptp(corners, axis=1).max(1) ** 2)
        fine &= np.abs((normal * directions).sum(1)) > 0.01 * np.linalg.norm(normal, axis=1) * size
        at, on_ray = (weights[fine][:, :, None] * corners[fine]).sum(1), points[fine] + t[fine, None] * directions[fine]
        assert (t[hit] * size[hit]).min(initial=0) > -rounding and weights[fine].min(initial=0) > -1e-4
        np.testing.assert_allclose(at, on_ray, atol=100 * rounding)
        # Nothing that is met for sure, and well before, is missed.
        a, b, c = (x[triangles[:, k]][None] for k in range(3))
        o, d = points[:, None], directions[:, None]
        with np.errstate(all="ignore"):
            normal = np.cross(b - a, c - a)
            slope = (normal * d).sum(-1)
            when = ((a - o) * normal).sum(-1) / slope
            p = o + when[..., None] * d
            inner = [
                (np.cross(v - u, p - u) * normal).sum(-1) / (normal**2).sum(-1) for u, v in ((a, b), (b, c), (c, a))
            ]
            is_steep = np.abs(slope) > 1e-3 * np.linalg.norm(normal, axis=-1) * size[:, None]
            margin = 1e-4 + 1e3 * rounding / np.sqrt(np.linalg.norm(normal, axis=-1))
            is_met = is_steep & (np.min(inner, axis=0) > margin) & (when * size[:, None] > 10 * rounding)
        first = np.where(is_met, when, np.inf).min(1)
        sure = np.isfinite(first)
        assert (t[sure] * size[sure] <= first[sure] * size[sure] + 100 * rounding).all()

    check()


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_no_ray_leaves_a_closed_surface_unseen(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, triangles = ball(2)
    x = x @ (np.eye(3) + rng.uniform(-0.3, 0.3, (3, 3))) + 5.0
    mesh = mesh_of((x, triangles), dtype)
    x = mesh.x.to_numpy()
    edges = np.concatenate([triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    part = rng.uniform(0, 1, (len(edges), 1)).astype(x.dtype)
    targets = np.concatenate([x, (1 - part) * x[edges[:, 0]] + part * x[edges[:, 1]]])
    origins, towards = vectors(5.0 + rng.uniform(-0.3, 0.3, targets.shape), dtype), vectors(targets, dtype)
    missed = ti.field(ti.i32, shape=())

    @ti.kernel
    def cast():
        for i in origins:
            if mesh.any_hit(origins[i], towards[i] - origins[i]) == 0:
                missed[None] += 1

    cast()
    assert missed[None] == 0


# points and boxes


@st.composite
def clouds(draw: Any, dimension: int) -> tuple[Any, Any, Any, float]:
    """Points or corners of boxes, sizes of the boxes, where to look, and how far."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number = draw(st.integers(0, TRIANGLES))
    x = rng.normal(size=(number, dimension))
    kind = draw(st.sampled_from(["any", "coincident", "lattice", "line"]))
    if kind == "coincident":
        x[:] = x[:1]
    elif kind == "lattice":
        x = np.round(2 * x)
    elif kind == "line":
        x[:, 1:] = 0.25
    sizes = rng.choice([0.0, 1.0], (number, 1)) * rng.uniform(0, 0.7, (number, dimension))
    points = rng.normal(size=(POINTS, dimension)) * draw(st.sampled_from([1.0, 20.0]))
    points[: number // 4] = x[: number // 4][:POINTS]
    return x, sizes, points, draw(st.sampled_from([0.0, 0.3, 1.0, 30.0]))


class Trees:
    """A tree of points and one of boxes with room for any, and what is found at points."""

    def __init__(self, dtype: Any, dimension: int) -> None:
        zeros = np.zeros((TRIANGLES, dimension))
        self.x, self.low, self.high = (vectors(zeros, dtype) for _ in range(3))
        self.at = vectors(np.zeros((POINTS, dimension)), dtype)
        self.points, self.boxes = ti.geometry.PointTree(self.x), ti.geometry.BoxTree(self.low, self.high)
        self.nearest, self.distance, self.within = (ti.field(dtype, shape=POINTS) for _ in range(3))
        self.found = ti.field(ti.i32, shape=POINTS)
        self.near, self.near_box, self.meets, self.along = (ti.field(ti.i32, (POINTS, TRIANGLES)) for _ in range(4))
        at, points, boxes = self.at, self.points, self.boxes

        @ti.kernel
        def look(radius: dtype):
            for i in at:
                self.nearest[i], self.found[i] = points.nearest(at[i])
                self.distance[i], _ = boxes.nearest(at[i])
                self.within[i], _ = boxes.nearest(at[i], radius)
                for j in points.near(at[i], radius):
                    self.near[i, j] += 1
                for j in boxes.near(at[i], radius):
                    self.near_box[i, j] += 1
                for j in boxes.overlapping(at[i] - radius, at[i]):
                    self.meets[i, j] += 1
                for j in boxes.along(at[i], -at[i], 2.0):
                    self.along[i, j] += 1

        self.look = look


def counted(counts: Any, expected: Any, sure: Any) -> None:
    """Each once, where that does not depend on rounding."""
    assert counts.max(initial=0) <= 1
    np.testing.assert_array_equal(counts[sure], expected[sure])


@pytest.mark.parametrize(("dtype", "dimension"), [(ti.f32, 3), (ti.f64, 2)])
def test_points_and_boxes_are_those_one_by_one(dtype: Any, dimension: int) -> None:
    trees = Trees(dtype, dimension)

    @SLOW
    @given(clouds(dimension))
    def check(cloud: Any) -> None:
        x, sizes, at, radius = cloud
        number = len(x)
        for field, values in ((trees.x, x), (trees.low, x), (trees.high, x + sizes), (trees.at, at)):
            put(field, values)
        for counts in (trees.near, trees.near_box, trees.meets, trees.along):
            counts.fill(0)
        trees.points.update(number)
        trees.boxes.update(number)
        trees.look(radius)
        x, low, high = (f.to_numpy()[:number].astype(float)[None] for f in (trees.x, trees.low, trees.high))
        at = trees.at.to_numpy().astype(float)[:, None]
        rounding = 64 * np.finfo(NUMPY[dtype]).eps * (1 + np.abs(at).max() + np.abs(x).max(initial=0))
        from_points = np.linalg.norm(x - at, axis=2)
        from_boxes = np.linalg.norm(np.maximum(np.maximum(low - at, at - high), 0), axis=2)
        found = trees.found.to_numpy()
        np.testing.assert_allclose(trees.nearest.to_numpy(), from_points.min(1, initial=np.inf), atol=rounding)
        np.testing.assert_allclose(trees.distance.to_numpy(), from_boxes.min(1, initial=np.inf), atol=rounding)
        np.testing.assert_allclose(
            trees.within.to_numpy(), np.minimum(from_boxes.min(1, initial=np.inf), radius), atol=rounding
        )
        if number:
            np.testing.assert_allclose(from_points[range(POINTS), found], from_points.min(1), atol=rounding)
            nearest = KDTree(x[0]).query(at[:, 0])[0]
            np.testing.assert_allclose(trees.nearest.to_numpy(), nearest, atol=rounding)
        else:
            assert (found == -1).all()
        counts = [c.to_numpy()[:, :number] for c in (trees.near, trees.near_box, trees.meets, trees.along)]
        counted(counts[0], from_points <= radius, np.abs(from_points - radius) > rounding)
        counted(counts[1], from_boxes <= radius, np.abs(from_boxes - radius) > rounding)
        gap = np.maximum(low - at, at - radius - high).max(2)
        counted(counts[2], gap <= 0, np.abs(gap) > rounding)
        # Along a ray to the origin and as far beyond, axis by axis.
        with np.errstate(all="ignore"):
            a, b = (low - at) / -at, (high - at) / -at
        enter = np.maximum(np.minimum(a, b), 0).max(2)
        leave = np.minimum(np.maximum(a, b), 2).min(2)
        counted(counts[3], enter <= leave, (np.abs(leave - enter) > 1e-3) & (np.abs(at).min(2) > 1e-3))

    check()


def test_lanes_threads_and_refitting_find_the_same() -> None:
    rng = np.random.default_rng(3)
    values, at = rng.normal(size=(5000, 3)), rng.normal(size=(300, 3))
    orders, found = [], []

    def find() -> None:
        x, looked = vectors(rng.permutation(values)), vectors(at)
        distance = ti.field(ti.f64, shape=len(at))
        points = ti.geometry.PointTree(x)

        @ti.kernel
        def look():
            for i in looked:
                distance[i], _ = points.nearest(looked[i])

        points.update()
        x.from_numpy(values)
        points.refit()
        look()
        found.append(distance.to_numpy())
        points.update()
        orders.append(points.order.to_numpy()[0])
        look()
        found.append(distance.to_numpy())

    for options in ({"num_threads": 1}, {"num_threads": 4}, {"num_threads": 4, "lanes": "always"}):
        ti.init(arch=ti.cpu, **options)
        find()
    ti.init()
    for other in found:
        np.testing.assert_allclose(other, KDTree(values).query(at)[0], rtol=1e-12)
    for order in orders:
        np.testing.assert_array_equal(order, orders[0])
        np.testing.assert_array_equal(np.sort(order), np.arange(5000))


# bodies


@ti.func
def a_box(p):
    return ti.geometry.box(p, ti.Vector([0.7, 0.4, 0.5]))


@ti.func
def a_capsule(p):
    return ti.geometry.capsule(p, ti.Vector([-0.5, 0.0, 0.2]), ti.Vector([0.6, 0.3, -0.1]), 0.3)


def bodies() -> dict[str, tuple[Any, Any, Any]]:
    """Bodies: the distance, what is inside, and points of the surface by two numbers from 0 to 1."""

    def turned(profile: Any) -> Any:
        def points(u: Any, v: Any) -> Any:
            r, z = profile(u)
            return np.stack([r * np.cos(2 * np.pi * v), r * np.sin(2 * np.pi * v), z], -1)

        return points

    def along(*corners: Any) -> Any:
        """A line through corners, at equal shares of its length."""
        corners = np.array(corners, float)
        lengths = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
        return lambda u: tuple(np.interp(u * lengths[-1], lengths, corners[:, k]) for k in range(2))

    def of_box(u: Any, v: Any) -> Any:
        half = np.array([0.7, 0.4, 0.5])
        side = (u * 6).astype(int) % 6
        p = np.stack([2 * (u * 6 % 1) - 1, 2 * v - 1, np.where(side % 2, 1.0, -1.0)], -1)
        return np.take_along_axis(p, (np.arange(3)[None] + side[:, None] // 2) % 3, 1) * half

    ends = np.array([[-0.5, 0.0, 0.2], [0.6, 0.3, -0.1]])

    def of_capsule(u: Any, v: Any) -> Any:
        axis = np.diff(ends, axis=0)[0]
        length = np.linalg.norm(axis)
        frame = np.linalg.svd(axis[None])[2][[1, 2, 0]]
        frame[2] = axis / length
        total = length + 0.6
        s = u * total - 0.3
        over = np.clip(s, 0, length) - s
        r = np.sqrt(np.maximum(0.09 - over**2, 0))
        return ends[0] + turned(lambda _: (r, s))(u, v) @ frame

    def in_capsule(p: Any) -> Any:
        axis = ends[1] - ends[0]
        t = np.clip((p - ends[0]) @ axis / (axis @ axis), 0, 1)
        return np.linalg.norm(p - ends[0] - t[:, None] * axis, axis=1) < 0.3

    def radius(p: Any) -> Any:
        return np.hypot(p[:, 0], p[:, 1])

    return {
        "sphere": (
            lambda p: ti.geometry.sphere(p, 0.8),
            lambda p: np.linalg.norm(p, axis=1) < 0.8,
            turned(lambda u: (0.8 * np.sin(np.pi * u), 0.8 * np.cos(np.pi * u))),
        ),
        "box": (a_box, lambda p: (np.abs(p) < [0.7, 0.4, 0.5]).all(1), of_box),
        "capsule": (a_capsule, in_capsule, of_capsule),
        "cylinder": (
            lambda p: ti.geometry.cylinder(p, 0.6, 0.5),
            lambda p: (radius(p) < 0.6) & (np.abs(p[:, 2]) < 0.5),
            turned(along((0, -0.5), (0.6, -0.5), (0.6, 0.5), (0, 0.5))),
        ),
        "cone": (
            lambda p: ti.geometry.cone(p, 0.6, 0.9),
            lambda p: (p[:, 2] > 0) & (radius(p) / 0.6 + p[:, 2] / 0.9 < 1),
            turned(along((0, 0), (0.6, 0), (0, 0.9))),
        ),
        "torus": (
            lambda p: ti.geometry.torus(p, 0.7, 0.25),
            lambda p: np.hypot(radius(p) - 0.7, p[:, 2]) < 0.25,
            turned(lambda u: (0.7 + 0.25 * np.cos(2 * np.pi * u), 0.25 * np.sin(2 * np.pi * u))),
        ),
    }


@pytest.mark.parametrize("name", bodies())
def test_bodies_are_as_far_as_samples_of_their_surfaces(name: str) -> None:
    distance, is_inside, surface = bodies()[name]
    rng = np.random.default_rng(1)
    sampled = surface(*rng.uniform(0, 1, (2, 100_000)))
    at = rng.uniform(-1.3, 1.3, (2000, 3))
    p, found = vectors(at, needs_grad=True), ti.field(ti.f64, shape=len(at), needs_grad=True)
    of_samples, total = ti.field(ti.f64, shape=len(sampled)), ti.field(ti.f64, shape=(), needs_grad=True)
    samples = vectors(sampled)

    @ti.kernel
    def measure():
        for i in p:
            found[i] = distance(p[i])
            total[None] += found[i]

    @ti.kernel
    def measure_samples():
        for i in samples:
            of_samples[i] = distance(samples[i])

    with ti.ad.Tape(total):
        measure()
    measure_samples()
    np.testing.assert_allclose(of_samples.to_numpy(), 0, atol=1e-12)
    values = found.to_numpy()
    near = KDTree(sampled).query(at)[0]
    assert (np.abs(values) <= near + 1e-12).all()
    np.testing.assert_allclose(np.abs(values), near, atol=0.02)
    np.testing.assert_array_equal(values < 0, is_inside(at))
    # The gradient leads to what is nearest.
    slopes = p.grad.to_numpy()
    np.testing.assert_allclose(np.linalg.norm(slopes, axis=1), 1, rtol=1e-9)
    samples.from_numpy(np.concatenate([at - values[:, None] * slopes, sampled[len(at) :]]))
    measure_samples()
    np.testing.assert_allclose(of_samples.to_numpy()[: len(at)], 0, atol=1e-12)


def test_planes_and_bodies_together() -> None:
    p = ti.Vector([0.3, 0.4])
    g = ti.geometry
    assert g.plane(p, ti.Vector([0.6, 0.8]), 0.2) == pytest.approx(0.3)
    assert g.sphere(ti.Vector([3.0, 4.0]), 1.0) == 4.0
    assert (g.union(0.5, -0.2), g.intersection(0.5, -0.2), g.difference(0.5, -0.2)) == (-0.2, 0.5, 0.5)
    for a, b in ((0.1, 0.2), (0.3, 0.1), (5.0, 1.0)):
        blended = g.smooth_union(a, b, 0.5)
        assert min(a, b) - 0.125 <= blended <= min(a, b)
        assert blended == pytest.approx(g.smooth_union(b, a, 0.5))


@given(st.integers(0, 2**32 - 1), st.sampled_from(["any", "lattice", "parallel", "plane"]))
@settings(max_examples=30, deadline=None)
def test_nothing_sampled_is_nearer_than_what_is_nearest(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, 3))
    if kind == "lattice":
        a, b, c, d = np.round([a, b, c, d])
    elif kind == "parallel":
        d = c + 0.7 * (b - a)
    elif kind == "plane":
        a[2] = b[2] = c[2] = d[2] = 0
    given = [ti.Vector(one.tolist()) for one in (a, b, c, d)]
    u = np.linspace(0, 1, 60)
    on_first, on_second = (p + u[:, None] * (q - p) for p, q in ((a, b), (c, d)))
    s, t = ti.geometry.on_segments(*given)
    distance = ti.geometry.segment_segment(*given)
    assert 0 <= s <= 1 and 0 <= t <= 1
    assert distance == pytest.approx(np.linalg.norm(a + s * (b - a) - c - t * (d - c)), abs=1e-12)
    assert distance <= np.linalg.norm(on_first[:, None] - on_second[None], axis=2).min() + 1e-12
    weights = np.array(ti.geometry.on_triangle(*given))
    distance = ti.geometry.point_triangle(*given)
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert distance == pytest.approx(np.linalg.norm(weights @ [b, c, d] - a), abs=1e-12)
    v, w = (one[np.add.outer(u, u) <= 1] for one in np.meshgrid(u, u))
    assert distance <= np.linalg.norm(b + v[:, None] * (c - b) + w[:, None] * (d - b) - a, axis=1).min() + 1e-12


# derivatives


class Scene:
    """A deformed ball that moves, and a sum of distances from points about it, of one kind."""

    def __init__(self, kind: str) -> None:
        rng = np.random.default_rng(7)
        x, triangles = ball(0)
        shadows = {"needs_grad": True, "needs_dual": True}
        self.x = vectors(x * rng.uniform(0.7, 1.3, (len(x), 1)), **shadows)
        self.p = vectors(rng.normal(size=(12, 3)), **shadows)
        self.energy = ti.field(ti.f64, shape=(), **shadows)
        x, p, energy = self.x, self.p, self.energy
        mesh, points = ti.geometry.TriangleTree(x, vectors(triangles, ti.i32)), ti.geometry.PointTree(x)
        self.trees = [points] if kind == "points" else [mesh]

        @ti.kernel
        def surface():
            for i in p:
                signed = mesh.signed_distance(p[i])
                t, triangle, weights = mesh.first_hit(3 * p[i], -p[i] + 0.2)
                if triangle >= 0:
                    signed += t * p[i].norm() + weights.dot(ti.Vector([1.0, 2.0, 3.0]))
                energy[None] += ti.sin(2 * signed)
            for i in p:
                for t in mesh.near(p[i], 1.0):
                    c = mesh.triangles[t]
                    energy[None] += ti.geometry.point_triangle(p[i], x[c[0]], x[c[1]], x[c[2]]) ** 2
                    c = mesh.triangles[(t + 7) % 20]
                    energy[None] += ti.geometry.segment_segment(p[i], 2 * p[i], x[c[0]], x[c[1]]) ** 2

        @ti.kernel
        def nearest():
            for i in p:
                distance, _ = points.nearest(p[i])
                energy[None] += ti.sin(2 * distance)
                for j in points.near(p[i], 1.5):
                    energy[None] += (2.25 - (x[j] - p[i]).norm_sqr()) ** 3

        @ti.kernel
        def move():
            for i in x:
                x[i] += 0.05 * ti.sin(3 * x[i])

        self.measure, self.move = surface if kind == "triangles" else nearest, move

    def step(self, t: int = 0) -> None:
        self.move()
        for tree in self.trees:
            tree.refit()

    def run(self) -> None:
        for tree in self.trees:
            tree.update()
        self.step()
        self.measure()

    def begin(self, x: Any, p: Any) -> None:
        self.x.from_numpy(x)
        self.p.from_numpy(p)
        self.energy[None] = 0.0

    def value(self, x: Any, p: Any) -> float:
        self.begin(x, p)
        self.run()
        return self.energy[None]

    def gradient(self, x: Any, p: Any, run: Callable[[], None] | None = None) -> Any:
        self.begin(x, p)
        with ti.ad.Tape(self.energy):
            (run or self.run)()
        return [self.x.grad.to_numpy(), self.p.grad.to_numpy()]


@pytest.mark.parametrize("kind", ["triangles", "points"])
def test_derivatives_are_those_of_differences(kind: str) -> None:
    scene = Scene(kind)
    rng = np.random.default_rng(2)
    x, p = scene.x.to_numpy(), scene.p.to_numpy()
    u, v = rng.normal(size=x.shape), rng.normal(size=p.shape)
    h = 1e-6
    slope = (scene.value(x + h * u, p + h * v) - scene.value(x - h * u, p - h * v)) / (2 * h)
    sides = [scene.gradient(x + s * h * u, p + s * h * v) for s in (1, -1)]
    # Reverse mode: on a tape, and replayed.
    captured = ti.capture(scene.run)
    for run in (scene.run, captured, captured):
        by_x, by_p = scene.gradient(x, p, run)
        assert (by_x * u).sum() + (by_p * v).sum() == pytest.approx(slope, rel=1e-6)
    # Forward mode.
    scene.begin(x, p)
    _, pushed = ti.ad.jvp(scene.run, wrt=(scene.x, scene.p), output=scene.energy)((u, v))
    assert pushed == pytest.approx(slope, rel=1e-6)
    # Twice.
    scene.begin(x, p)
    products = ti.ad.hvp(scene.run, wrt=(scene.x, scene.p), output=scene.energy)((u, v))
    for product, above, below in zip(products, *sides, strict=True):
        np.testing.assert_allclose(product, (above - below) / (2 * h), rtol=1e-5, atol=1e-5)


def test_checkpoints_give_the_gradient_of_a_tape() -> None:
    scene = Scene("points")
    x, p = scene.x.to_numpy(), scene.p.to_numpy()

    def run(checkpointed: bool) -> None:
        scene.trees[0].update()
        if checkpointed:
            ti.ad.checkpoint(scene.step, 8, memory=1 << 14)
        else:
            for t in range(8):
                scene.step(t)
        scene.measure()

    for found, expected in zip(*(scene.gradient(x, p, lambda on=on: run(on)) for on in (True, False)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("where", ["side", "edge", "vertex", "inside"])
def test_signed_distances_are_smooth_through_the_surface(where: str) -> None:
    """On it, the gradient is the normal; on an edge it is one of them, and never NaN."""
    box = trimesh.creation.box()
    mesh = mesh_of((np.array(box.vertices), np.array(box.faces)))
    at = {"side": [0.1, 0.2, 0.5], "edge": [0.1, 0.5, 0.5], "vertex": [0.5, 0.5, 0.5], "inside": [0.0, 0.3, 0.1]}
    p = vectors([at[where]], needs_grad=True)
    found = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        found[None] += mesh.signed_distance(p[0])

    for shift in (-1e-9, 0.0, 1e-9):
        p.from_numpy(np.array([at[where]]) + shift * np.eye(3)[2])
        found[None] = 0.0
        with ti.ad.Tape(found):
            measure()
        (slope,) = p.grad.to_numpy()
        assert np.isfinite(slope).all() and np.linalg.norm(slope) < 1 + 1e-9
        if where in ("side", "inside"):
            np.testing.assert_allclose(slope, [0, 0, 1] if where == "side" else [0, 1, 0], atol=1e-12)
            assert found[None] == pytest.approx(shift if where == "side" else -0.2, abs=1e-12)


# grids


@pytest.mark.parametrize("shape", [(5, 4), (4, 5, 3), (2, 2, 2)])
def test_grids_interpolate_as_scipy_and_have_the_slope_of_that(shape: Any) -> None:
    rng = np.random.default_rng(4)
    low, high = np.array([-1.0, 0.0, 2.0])[: len(shape)], np.array([1.0, 3.0, 2.5])[: len(shape)]
    grid = ti.geometry.DistanceGrid(low, high, shape, dtype=ti.f64, needs_grad=True)
    values = rng.normal(size=shape)
    grid.values.from_numpy(values)
    at = low + rng.uniform(-0.3, 1.3, (200, len(shape))) * (high - low)
    p, total = vectors(at, needs_grad=True), ti.field(ti.f64, shape=(), needs_grad=True)
    found, slopes = ti.field(ti.f64, shape=200), vectors(0 * at)

    @ti.kernel
    def sample():
        for i in p:
            found[i] = grid.sample(p[i])
            slopes[i] = grid.gradient(p[i])
            total[None] += grid.sample(p[i])

    with ti.ad.Tape(total):
        sample()
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, shape, strict=True)]
    inside = np.clip(at, low, high)
    expected = RegularGridInterpolator(axes, values)(inside) + np.linalg.norm(at - inside, axis=1)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slopes.to_numpy(), p.grad.to_numpy(), rtol=1e-9, atol=1e-9)
    assert grid.values.grad.to_numpy().sum() == pytest.approx(200)
    for axis in range(len(shape)):
        step = 1e-6 * np.eye(len(shape))[axis]
        p.from_numpy(at + step)
        sample()
        above = found.to_numpy()
        p.from_numpy(at - step)
        sample()
        np.testing.assert_allclose(
            slopes.to_numpy()[:, axis] * 0 + p.grad.to_numpy()[:, axis],
            (above - found.to_numpy()) / 2e-6,
            rtol=1e-6,
            atol=1e-6,
        )


def test_grids_differentiate_to_the_vertices_of_a_surface() -> None:
    rng = np.random.default_rng(5)
    x, triangles = ball(0)
    x = x * rng.uniform(0.8, 1.2, (len(x), 1))
    mesh = mesh_of((x, triangles), needs_grad=True)
    grid = ti.geometry.DistanceGrid((-2, -2, -2), (2, 2, 2), (6, 6, 6), dtype=ti.f64, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def sample():
        for k in range(20):
            total[None] += grid.sample(ti.Vector([0.17 * k - 1.6, 0.2, 0.1 * k - 1.0])) ** 2

    def run() -> None:
        mesh.update()
        grid.update(mesh.signed_distance)
        sample()

    assert ti.ad.gradcheck(run, wrt=mesh.x, output=total).ok
    assert len(grid._update.instances) == 1


# wrong input, and none


def test_what_is_wrong_is_named() -> None:
    x, triangles = ball()
    mesh = mesh_of((x, triangles), ti.f32)
    for number in (np.nan, np.inf):
        wrong = x.copy()
        wrong[7, 1] = number
        mesh.x.from_numpy(wrong.astype(np.float32))
        first = np.flatnonzero((triangles == 7).any(1))[0]
        for build in (mesh.update, mesh.refit):
            with pytest.raises(KernelAssertionError, match=f"a vertex of triangle {first} is not a finite number"):
                build()
    mesh.x.from_numpy(x.astype(np.float32))
    for corner in (-1, 42, 2**30):
        wrong = triangles.copy()
        wrong[[5, 60], 2] = corner
        mesh.triangles.from_numpy(wrong.astype(np.int32))
        with pytest.raises(KernelAssertionError, match="triangle 5 has a vertex that does not exist: there are 42"):
            mesh.update()
    points = ti.geometry.PointTree(vectors([[0.0, 0.0], [np.nan, 1.0]]))
    with pytest.raises(KernelAssertionError, match="point 1 is not a finite number"):
        points.update()
    low, high = vectors([[0.0, 0.0], [1.0, 1.0]]), vectors([[1.0, 1.0], [2.0, 0.5]])
    with pytest.raises(KernelAssertionError, match="the lower corner of box 1 is above the upper one"):
        ti.geometry.BoxTree(low, high).update()
    high[0] = [np.inf, 1.0]
    with pytest.raises(KernelAssertionError, match="a corner of box 0 is not a finite number"):
        ti.geometry.BoxTree(low, high).update()


def test_what_is_asked_of_no_number_is_no_number() -> None:
    probe = Probe(ti.f32)
    points = np.random.default_rng(0).normal(size=(POINTS, 3))
    points[::2, 1] = np.nan
    probe.take(ball(), points, -points)
    for question, names in ((probe.measure, ["distance"]), (probe.wind, ["winding", "signed"]), (probe.cast, [])):
        question()
        for answer in probe.read(*names):
            np.testing.assert_array_equal(np.isnan(answer), np.isnan(points[:, 1]))
        if question is not probe.wind:
            assert (probe.read("found")[0][::2] == -1).all()


def test_no_more_items_than_there_is_room_for() -> None:
    tree = ti.geometry.PointTree(vectors(np.zeros((5, 2))))
    for number in (-1, 6):
        with pytest.raises(FieldError, match=f"a tree of {number} items, with room for 5"):
            tree.update(number)


def of(n: int, dtype: Any, shape: Any = 3) -> Any:
    return ti.Vector.field(n, dtype, shape=shape)


REFUSED = [
    (lambda: ti.geometry.PointTree(of(4, ti.f32)), "points are a field of vectors of 2 or 3 components"),
    (lambda: ti.geometry.PointTree(of(2, ti.i32)), "f32 or f64"),
    (lambda: ti.geometry.PointTree(of(2, ti.f32, (2, 2))), "with one index"),
    (lambda: ti.geometry.PointTree(np.zeros((3, 3))), "points are a field"),
    (lambda: ti.geometry.BoxTree(of(2, ti.f32), of(3, ti.f32)), "vectors of 2 components"),
    (lambda: ti.geometry.BoxTree(of(2, ti.f32), of(2, ti.f64)), "components, f32"),
    (lambda: ti.geometry.BoxTree(of(2, ti.f32), of(2, ti.f32, 4)), "3 lower corners, and 4 upper ones"),
    (lambda: ti.geometry.TriangleTree(of(2, ti.f32), of(3, ti.i32)), "vertices are a field of vectors of 3 comp"),
    (lambda: ti.geometry.TriangleTree(of(3, ti.f32), of(3, ti.f32)), "triangles are a field of vectors of 3 comp"),
    (lambda: ti.geometry.DistanceGrid((0,), (1,), (3,)), "a grid has 2 or 3 axes"),
    (lambda: ti.geometry.DistanceGrid((0, 0), (1, 1, 1), (3, 3)), "corners of 2 and 3 components"),
    (lambda: ti.geometry.DistanceGrid((0, 1), (1, 1), (3, 3)), "reaches upwards"),
    (lambda: ti.geometry.DistanceGrid((0, 0), (1, np.nan), (3, 3)), "reaches upwards"),
    (lambda: ti.geometry.DistanceGrid((0, 0), (1, 1), (3, 1)), "at least 2 values along each axis"),
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused(attempt: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message) as caught:
        attempt()
    assert caught.value.span.file == __file__


def test_no_triangles_and_some() -> None:
    probe = Probe(ti.f64)
    x, triangles = ball()
    points = np.random.default_rng(0).normal(size=(POINTS, 3)) * 2
    for number in (0, 1, 5, 80):
        probe.take((x, triangles), points, -points)
        probe.mesh.update(number)
        probe.measure()
        distance, found, weights = probe.read("distance", "found", "weights")
        if number:
            squares, _, _ = igl.point_mesh_squared_distance(points, x, triangles[:number])
            np.testing.assert_allclose(distance, np.sqrt(squares))
            assert found.max() < number
        else:
            assert (distance == np.inf).all() and (found == -1).all() and not weights.any()
        probe.wind()
        probe.cast()
        winding, exact, signed, t, hit = probe.read("winding", "exact", "signed", "distance", "any")
        np.testing.assert_allclose(
            exact, igl.winding_number(x, triangles[:number].astype(np.int64), points) if number else 0, atol=1e-9
        )
        assert number or (not winding.any() and not hit.any() and (t == np.inf).all() and (signed == np.inf).all())


def test_pages_run_it_without_python() -> None:
    x, triangles = ball(2)
    mesh = mesh_of((x, triangles), ti.f32)
    rng = np.random.default_rng(0)
    p = vectors(rng.normal(size=(100, 3)), ti.f32)
    signed, t = ti.field(ti.f32, shape=100), ti.field(ti.f32, shape=100)

    @ti.kernel
    def move():
        for i in mesh.x:
            mesh.x[i] += 0.03 * ti.sin(5 * mesh.x[i])

    @ti.kernel
    def measure():
        for i in p:
            signed[i] = mesh.signed_distance(p[i])
            t[i], _triangle, _weights = mesh.first_hit(p[i], -p[i], 100.0)

    def step() -> None:
        move()
        mesh.update()
        measure()

    fields = {"signed": signed, "t": t, "x": mesh.x}
    made = portable([("step", step, ())], fields)
    assert made.refused == {}
    answers = played(made.encode(), *[["call", "step"]] * 5, *[["read", name] for name in fields])
    for _ in range(5):
        step()
    for answer, field in zip(answers[5:], fields.values(), strict=True):
        wanted = field.to_numpy()
        np.testing.assert_allclose(numbers(answer, wanted), wanted, rtol=1e-4, atol=1e-5)
