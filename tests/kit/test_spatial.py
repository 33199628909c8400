"""`ti.spatial`: SciPy's neighbours for any particles in any box, lists that are never short of one, and derivatives."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial import KDTree

import tinote as ti
from tests.lang.test_portable import numbers, played
from tinote.errors import FieldError, KernelAssertionError
from tinote.lang.capture.portable import portable

NUMPY = {ti.f32: np.float32, ti.f64: np.float64}


def positions(values: Any, dtype: Any = ti.f64, **options: Any) -> Any:
    values = np.asarray(values)
    x = ti.Vector.field(values.shape[1], dtype, shape=len(values), **options)
    x.from_numpy(values.astype(NUMPY[dtype]))
    return x


def images_of(d: Any, box: Sequence[float | None], shift: float | None = None) -> Any:
    """Displacements to the nearest images."""
    d = np.array(d, dtype=float)
    if shift is not None:
        images = np.round(d[..., 1] / box[1])
        d[..., 0] -= images * shift
        d[..., 1] -= images * box[1]
    for axis, length in enumerate(box):
        if length is not None:
            d[..., axis] -= length * np.round(d[..., axis] / length)
    return d


def counts_near(grid: Any, points: Any) -> Any:
    """How often each particle is met near each point."""
    found = ti.field(ti.i32, shape=(points.shape[0], grid.x.shape[0]))

    @ti.kernel
    def meet():
        for i in points:
            for j in grid.near(points[i]):
                found[i, j] += 1

    meet()
    return found.to_numpy()


def pairs_of(source: Any, number: int) -> list[tuple[int, int]]:
    """The pairs of a grid or list, sorted."""
    found = ti.field(ti.i32, shape=(number, number))

    @ti.kernel
    def meet():
        for i, j in source.pairs():
            found[i, j] += 1

    meet()
    counts = found.to_numpy()
    return [(int(i), int(j)) for i, j in zip(*np.nonzero(counts), strict=True) for _ in range(counts[i, j])]


def assert_near(counts: Any, distances: Any, radius: float, rounding: float) -> None:
    """Each particle within the radius is met once, and no other; what is at the radius, to rounding, may be."""
    sure = np.abs(distances - radius) > rounding
    np.testing.assert_array_equal(counts[sure], (distances <= radius)[sure])
    assert counts.max(initial=0) <= 1


@st.composite
def clouds(draw: Any) -> tuple[Any, float, list[float | None], Any]:
    """Particles with coincident ones, ones at borders of cells, far outside of the box and in clusters."""
    dimension = draw(st.integers(1, 3))
    radius = draw(st.sampled_from([0.5, 1.0, 0.3]))
    box = draw(st.lists(st.sampled_from([None, 2.0, 2.5, 3.0, 8.0]), min_size=dimension, max_size=dimension))
    box = [None if length is None else length * radius for length in box]
    number = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    extents = np.array([8 * radius if length is None else length for length in box])
    values = rng.uniform(0, 1, (number, dimension)) * extents
    kind = draw(st.sampled_from(["inside", "outside", "borders", "coincident", "cluster"]))
    if kind == "outside":
        values += extents * rng.integers(-3, 4, (number, dimension))
    elif kind == "borders":
        values = np.round(values / radius * 2) * radius / 2
    elif kind == "coincident":
        values = values[rng.integers(0, 1 + number // 4, number)]
    elif kind == "cluster":
        values = values[:1] + (values - values[:1]) * 0.1
    return values, radius, box, draw(st.sampled_from([ti.f32, ti.f64]))


SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SLOW
@given(clouds())
def test_neighbours_are_scipys(cloud: Any) -> None:
    values, radius, box, dtype = cloud
    x = positions(values, dtype)
    values = x.to_numpy().astype(float)
    grid = ti.spatial.CellGrid(x, radius, box)
    grid.update()
    lengths = [0.0 if length is None else length for length in box]
    folded = np.stack([v if b is None else v % b for v, b in zip(values.T, box, strict=True)], axis=1)
    folded = np.where((np.array(lengths) > 0) & (folded >= np.array(lengths)), 0.0, folded)
    tree = KDTree(folded, boxsize=lengths)
    rounding = 64 * np.finfo(NUMPY[dtype]).eps * (1 + np.abs(values).max())
    near = [set(found) for found in tree.query_ball_point(folded, radius - rounding)]
    nearly = [set(found) for found in tree.query_ball_point(folded, radius + rounding)]
    counts = counts_near(grid, x)
    for i, row in enumerate(counts):
        assert near[i] <= set(np.flatnonzero(row)) <= nearly[i]
    assert counts.max() == 1
    listed = ti.spatial.NeighbourList(x, 0.9 * radius, 0.05 * radius, box, half=True)
    listed.update()
    distances = np.linalg.norm(images_of(values[None] - values[:, None], box), axis=2)
    found = pairs_of(listed, len(values))
    assert len(set(found)) == len(found)
    counted = np.zeros_like(counts)
    if found:
        counted[tuple(np.array(found).T)] = 1
    assert_near(
        counted[np.triu_indices(len(values), 1)], distances[np.triu_indices(len(values), 1)], 0.9 * radius, rounding
    )


@SLOW
@given(clouds(), st.floats(-20, 20))
def test_sheared_boxes(cloud: Any, shift: float) -> None:
    values, radius, box, dtype = cloud
    if values.shape[1] == 1:
        values, box = np.repeat(values, 2, axis=1), box * 2
    box = [length or 2.2 * radius for length in box]
    x = positions(values, dtype)
    values = x.to_numpy().astype(float)
    grid = ti.spatial.CellGrid(x, radius, box, sheared=True)
    grid.shift[None] = shift
    grid.update()
    d = images_of(values[None] - values[:, None], box, grid.shift[None])
    rounding = 64 * np.finfo(NUMPY[dtype]).eps * (1 + abs(shift) * np.abs(values).max())
    assert_near(counts_near(grid, x), np.linalg.norm(d, axis=2), radius, rounding)


@pytest.mark.parametrize("radius", [0.2, 1.7, 40.0])
def test_any_radius_about_any_point(radius: float) -> None:
    rng = np.random.default_rng(2)
    box = (6.0, None, 5.0)
    values, points = rng.uniform(-10, 10, (300, 3)), rng.uniform(-30, 30, (50, 3))
    x, about = positions(values), positions(points)
    grid = ti.spatial.CellGrid(x, 1.0, box)
    grid.update()
    found = ti.field(ti.i32, shape=(50, 300))

    @ti.kernel
    def meet():
        for i in about:
            for j in grid.near(about[i], radius):
                found[i, j] += 1

    meet()
    distances = np.linalg.norm(images_of(values[None] - points[:, None], box), axis=2)
    assert_near(found.to_numpy(), distances, radius, 1e-12)


def test_no_particles_and_some() -> None:
    x = positions(np.zeros((5, 2)))
    for source in (ti.spatial.CellGrid(x, 1.0), ti.spatial.NeighbourList(x, 1.0, 0.1, half=True)):
        for number, pairs in ((5, 10), (0, 0), (1, 0), (3, 3)):
            source.update(number)
            assert len(pairs_of(source, 5)) == pairs


def test_huge_distances() -> None:
    x = positions([[1e30, 0.0], [-1e30, 0.5], [1e8, 3.0], [1e8, 3.4], [0.0, 0.0]], ti.f32)
    grid = ti.spatial.CellGrid(x, 1.0)
    grid.update()
    assert pairs_of(grid, 5) == [(2, 3)]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_positions_that_are_no_numbers_are_named(bad: float) -> None:
    values = np.random.default_rng(0).uniform(0, 1, (100, 3))
    x = positions(values, ti.f32)
    grid, listed = ti.spatial.CellGrid(x, 0.1), ti.spatial.NeighbourList(x, 0.1, 0.05)
    grid.update()
    listed.update()
    x[57][1], x[83][0] = bad, bad
    for source in (grid, listed):
        with pytest.raises(KernelAssertionError, match="particle 57"):
            source.update()
    x.from_numpy(values.astype(np.float32))
    listed.update()
    assert pairs_of(listed, 100) == sorted([*pairs_of(grid, 100), *[(j, i) for i, j in pairs_of(grid, 100)]])


def test_too_many_neighbours_are_an_error_with_their_number() -> None:
    x = positions(np.zeros((40, 2)))
    listed = ti.spatial.NeighbourList(x, 1.0, 0.1, most=38)
    with pytest.raises(KernelAssertionError, match="most=39"):
        listed.update()
    with pytest.raises(KernelAssertionError, match="most=39"):
        listed.update()  # it is not taken for built
    listed = ti.spatial.NeighbourList(x, 1.0, 0.1, most=39)
    listed.update()
    assert len(pairs_of(listed, 40)) == 40 * 39


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        ((ti.f64, 2), {"radius": 0.6, "box": (1.0, None)}, "more than half of the box, 1 along axis 0"),
        ((ti.f64, 2), {"radius": 0.0}, "must be positive"),
        ((ti.f64, 2), {"radius": 1.0, "box": (4.0,)}, "the box has 1 lengths"),
        ((ti.f64, 4), {"radius": 1.0}, "1 to 3 components"),
        ((ti.i32, 2), {"radius": 1.0}, "f32 or f64"),
        ((ti.f64, 2), {"radius": 1.0, "box": (4.0, None), "sheared": True}, "periodic along its first two axes"),
    ],
)
def test_what_is_refused(values: Any, options: dict[str, Any], text: str) -> None:
    dtype, components = values
    with pytest.raises(FieldError, match=text):
        ti.spatial.CellGrid(ti.Vector.field(components, dtype, shape=3), **options)


class Walk:
    """Particles that move at random, and a list of their neighbours."""

    def __init__(self, sheared: bool = False) -> None:
        self.rng = np.random.default_rng(5)
        self.box = (6.0, 7.0)
        self.x = positions(self.rng.uniform(0, 6, (150, 2)))
        self.listed = ti.spatial.NeighbourList(self.x, 1.0, 0.4, self.box, sheared=sheared, half=True)
        self.sheared = sheared

    def step(self) -> None:
        self.x.from_numpy(self.x.to_numpy() + self.rng.normal(0, 0.03, (150, 2)))
        if self.sheared:
            self.listed.grid.shift[None] += 0.05

    def expected(self) -> list[tuple[int, int]]:
        values = self.x.to_numpy()
        shift = self.listed.grid.shift[None] if self.sheared else None
        d = np.linalg.norm(images_of(values[None] - values[:, None], self.box, shift), axis=2)
        return [(i, j) for i, j in zip(*np.nonzero(d <= 1.0), strict=True) if i < j]


@pytest.mark.parametrize("sheared", [False, True])
def test_lists_lack_nothing_and_are_built_when_needed(sheared: bool) -> None:
    walk = Walk(sheared)
    update = ti.capture(walk.listed.update)
    for _ in range(40):
        update()
        assert pairs_of(walk.listed, 150) == walk.expected()
        walk.step()
    assert 3 <= walk.listed.builds[None] <= 20


def test_sorting_moves_everything_along() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(0, 10, (500, 3))
    x, mass, label = positions(values), ti.field(ti.f32, shape=500), ti.field(ti.i32, shape=500)
    label.from_numpy(np.arange(500, dtype=np.int32))
    mass.from_numpy(np.arange(500, dtype=np.float32) * 2)
    listed = ti.spatial.NeighbourList(x, 1.0, 0.2, (10.0, 10.0, 10.0), half=True)
    listed.update()
    before = {frozenset(pair) for pair in pairs_of(listed, 500)}
    listed.sort(mass, label)
    labels = label.to_numpy()
    assert sorted(labels) == list(range(500))
    np.testing.assert_array_equal(x.to_numpy(), values[labels])
    np.testing.assert_array_equal(mass.to_numpy(), 2 * labels)
    assert {frozenset((int(labels[i]), int(labels[j]))) for i, j in pairs_of(listed, 500)} == before
    np.testing.assert_array_equal(listed.grid.order.to_numpy(), np.arange(500))
    with pytest.raises(FieldError, match="one element for each particle"):
        listed.sort(ti.field(ti.f32, shape=3))


def test_the_order_is_the_same_on_any_number_of_threads() -> None:
    values = np.random.default_rng(3).uniform(0, 4, (20_000, 2))
    found = []
    for threads in (1, 4, 4):
        ti.init(arch=ti.cpu, num_threads=threads)
        listed = ti.spatial.NeighbourList(positions(values), 0.1, 0.02, (4.0, 4.0), most=150)
        listed.update()
        found.append((listed.grid.order.to_numpy(), listed.counts.to_numpy(), listed.neighbours.to_numpy()))
    ti.init()
    for other in found[1:]:
        for a, b in zip(found[0][:2], other[:2], strict=True):
            np.testing.assert_array_equal(a, b)
        kept = np.arange(found[0][2].shape[1]) < found[0][1][:, None]
        np.testing.assert_array_equal(found[0][2][kept], other[2][kept])


class Fluid:
    """Soft particles: an energy of pairs, for derivatives."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.box = (4.0, 3.0)
        values = np.random.default_rng(7).uniform(-1, 5, (12, 2))
        self.x = positions(values, needs_grad=True, needs_dual=True, **options)
        self.v = ti.Vector.field(2, ti.f64, shape=12, needs_grad=True, needs_dual=True)
        self.energy = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
        make = ti.spatial.CellGrid if kind == "grid" else ti.spatial.NeighbourList
        more = {} if kind == "grid" else {"skin": 0.1, "half": True}
        source = self.source = make(self.x, 1.3, box=self.box, **more)
        x, v, energy = self.x, self.v, self.energy

        @ti.kernel
        def add():
            for i, j in source.pairs():
                energy[None] += (1.69 - source.displacement(x[i], x[j]).norm_sqr()) ** 4

        @ti.kernel
        def push(dt: ti.f64):
            for i, j in source.pairs():
                d = source.displacement(x[i], x[j])
                f = (1.69 - d.norm_sqr()) ** 3 * d
                v[i] -= dt * f
                v[j] += dt * f
            for i in x:
                x[i] += dt * v[i]

        self.add, self.push = add, push

    def run(self) -> None:
        self.source.update()
        self.push(0.03)
        self.source.update()
        self.push(0.03)
        self.source.update()
        self.add()

    def value(self, values: Any) -> float:
        self.x.from_numpy(values)
        self.v.fill(0.0)
        self.energy[None] = 0.0
        self.run()
        return self.energy[None]


def slopes(f: Callable[[Any], Any], at: Any, h: float = 1e-5) -> Any:
    found = []
    for k in range(at.size):
        step = np.zeros_like(at)
        step.flat[k] = h
        found.append((f(at + step) - f(at - step)) / (2 * h))
    return np.array(found)


@pytest.mark.parametrize("kind", ["grid", "list"])
@pytest.mark.parametrize("way", ["tape", "captured"])
def test_gradients(kind: str, way: str) -> None:
    fluid = Fluid(kind)
    values = fluid.x.to_numpy()
    expected = slopes(fluid.value, values).reshape(values.shape)
    run = ti.capture(fluid.run) if way == "captured" else fluid.run
    for _ in range(3):
        fluid.x.from_numpy(values)
        fluid.v.fill(0.0)
        fluid.energy[None] = 0.0
        with ti.ad.Tape(fluid.energy):
            run()
        np.testing.assert_allclose(fluid.x.grad.to_numpy(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["grid", "list"])
def test_forward_mode_and_second_derivatives(kind: str) -> None:
    fluid = Fluid(kind)
    values = fluid.x.to_numpy()
    direction = np.random.default_rng(1).normal(size=values.shape)

    def gradient(at: Any) -> Any:
        fluid.x.from_numpy(at)
        fluid.v.fill(0.0)
        fluid.energy[None] = 0.0
        with ti.ad.Tape(fluid.energy):
            fluid.run()
        return fluid.x.grad.to_numpy()

    h = 1e-5
    first = (fluid.value(values + h * direction) - fluid.value(values - h * direction)) / (2 * h)
    second = (gradient(values + h * direction) - gradient(values - h * direction)) / (2 * h)
    fluid.value(values)
    fluid.x.from_numpy(values)
    fluid.v.fill(0.0)
    fluid.energy[None] = 0.0
    _, pushed = ti.ad.jvp(fluid.run, wrt=fluid.x, output=fluid.energy)(direction)
    assert pushed == pytest.approx(first, rel=1e-6)
    fluid.x.from_numpy(values)
    fluid.v.fill(0.0)
    fluid.energy[None] = 0.0
    product = ti.ad.hvp(fluid.run, wrt=fluid.x, output=fluid.energy)(direction)
    np.testing.assert_allclose(product, second, rtol=1e-5, atol=1e-6)


def test_derivatives_follow_particles_that_are_sorted() -> None:
    fluid = Fluid("grid")
    values = fluid.x.to_numpy()
    weight = ti.field(ti.f64, shape=12, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)
    weight.from_numpy(np.arange(12.0))
    x = fluid.x

    @ti.kernel
    def sum_up():
        for i in x:
            total[None] += weight[i] * x[i][0] ** 2

    with ti.ad.Tape(total):
        fluid.source.sort(weight)
        sum_up()
    np.testing.assert_allclose(x.grad.to_numpy()[:, 0], 2 * np.arange(12) * values[:, 0])
    np.testing.assert_allclose(weight.grad.to_numpy(), values[:, 0] ** 2)


def test_checkpoints_give_the_gradient_of_a_tape() -> None:
    fluid = Fluid("list")
    values = fluid.x.to_numpy()
    found = []
    for checkpointed in (False, True):
        fluid.x.from_numpy(values)
        fluid.v.fill(0.0)
        fluid.energy[None] = 0.0

        def step(t: int) -> None:
            fluid.source.update()
            fluid.push(0.01)

        with ti.ad.Tape(fluid.energy):
            if checkpointed:
                ti.ad.checkpoint(step, 30, memory=1 << 14)
            else:
                for t in range(30):
                    step(t)
            fluid.add()
        found.append(fluid.x.grad.to_numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12)


def test_pages_run_it_without_python() -> None:
    walk = Walk()
    x, listed = walk.x, walk.listed
    velocity = positions(walk.rng.normal(0, 1, (150, 2)))

    @ti.kernel
    def drift():
        for i in x:
            x[i] += 0.02 * velocity[i]

    def step() -> None:
        listed.update()
        drift()

    fields = {"x": x, "counts": listed.counts, "builds": listed.builds}
    made = portable([("step", step, ())], fields)
    assert made.refused == {}
    answers = played(made.encode(), *[["call", "step"]] * 30, *[["read", name] for name in fields])
    for _ in range(30):
        step()
    for answer, field in zip(answers[30:], fields.values(), strict=True):
        wanted = field.to_numpy()
        np.testing.assert_allclose(numbers(answer, wanted), wanted, rtol=1e-12)
    assert listed.builds[None] > 1
