"""`ti.init(bounds_check="ignore")`: reads outside give 0, writes are dropped, and the session counts both."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError
from tinote.runtime import out_of_bounds

N = 8


@pytest.fixture(
    params=[(ti.cpu, 1), (ti.cpu, 2), (ti.python, 1)], ids=["1 thread", "2 threads", "python"], autouse=True
)
def session(request: pytest.FixtureRequest) -> Any:
    arch, threads = request.param
    ti.init(arch=arch, num_threads=threads, bounds_check="ignore", default_fp=ti.f64)
    yield
    out_of_bounds._times.clear()


def counted() -> dict[int, int]:
    """What the session counts when it ends, by the line in this file."""
    with pytest.warns(UserWarning, match="reads out of bounds gave 0, and writes were dropped") as caught:
        ti.reset()
    (warning,) = caught
    found: dict[int, int] = {}
    for row in str(warning.message).splitlines()[1:]:
        file, rest = row.split(", line ")
        assert file == __file__
        line, _, times = rest.split(": ")
        found[int(line)] = found.get(int(line), 0) + int(times.removesuffix(" times").replace(",", ""))
    return found


def line_of(kernel: Any, plus: int) -> int:
    return kernel.__wrapped__.__code__.co_firstlineno + plus


def padded(a: np.ndarray, *offsets: int) -> np.ndarray:
    """`a` moved by offsets, with 0 where nothing is."""
    found = np.zeros_like(a)
    for index in itertools.product(*map(range, a.shape)):
        source = tuple(i + k for i, k in zip(index, offsets, strict=True))
        if all(0 <= i < n for i, n in zip(source, a.shape, strict=True)):
            found[index] = a[source]
    return found


def test_neighbours_of_border_cells() -> None:
    a, b = ti.field(ti.f64, (N, N + 1)), ti.field(ti.f64, (N, N + 1))
    start = np.random.default_rng(1).random((N, N + 1))
    a.from_numpy(start)

    @ti.kernel
    def laplace():
        for i, j in a:
            b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4 * a[i, j]

    laplace()
    moved = [padded(start, *k) for k in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    assert b.to_numpy() == pytest.approx(sum(moved) - 4 * start, rel=1e-14)
    assert counted() == {line_of(laplace, 3): 2 * N + 2 * (N + 1)}


@pytest.mark.parametrize("seed", range(5))
def test_scattered_and_gathered(seed: int) -> None:
    random = np.random.default_rng(seed)
    index = random.integers(-4, N + 4, 50).astype(np.int32)
    index[:2] = -(2**31), 2**31 - 1
    k, x, y, last = ti.field(ti.i32, 50), ti.field(ti.f64, N), ti.field(ti.f64, 50), ti.field(ti.f64, N)
    k.from_numpy(index)
    x.fill(1.0)

    @ti.kernel
    def run():
        for i in k:
            y[i] = x[k[i]]
        for i in k:
            x[k[i]] += 1.0
        ti.loop_config(serialize=True)
        for i in range(50):
            last[k[i]] = i + 1

    run()
    inside = (index >= 0) & (index < N)
    counts = np.bincount(index[inside], minlength=N)
    assert y.to_numpy().tolist() == inside.astype(float).tolist()
    assert x.to_numpy().tolist() == (1.0 + counts).tolist()
    expected = np.zeros(N)
    expected[index[inside]] = np.flatnonzero(inside) + 1
    assert last.to_numpy().tolist() == expected.tolist()
    outside = int((~inside).sum())
    assert counted() == {line_of(run, line): outside for line in (3, 5, 8)}


@pytest.mark.parametrize("unrolled", [False, True], ids=["loops", "unrolled"])
@pytest.mark.parametrize("seed", range(4))
def test_windows_that_particles_write_to(seed: int, unrolled: bool) -> None:
    """Inside of the grid one test decides all guards of a window; at the border each has its own."""
    random = np.random.default_rng(seed)
    shape, first = tuple(map(int, random.integers(3, 9, 2))), tuple(map(int, random.integers(-2, 2, 2)))
    index = random.integers(-3, 10, (60, 2)).astype(np.int32)
    index[:4] = [[2**31 - 1, 3], [2**31 - 2, 2**31 - 1], [-(2**31), 3], [3, -(2**31)]]
    at, found = ti.Vector.field(2, ti.i32, 60), ti.field(ti.f64, 60)
    grid, momentum = ti.field(ti.f64, shape), ti.Vector.field(2, ti.f64, shape)
    at.from_numpy(index)
    over = ti.static if unrolled else lambda loop: loop

    @ti.kernel
    def run():
        for p in at:
            for i, j in over(ti.ndrange(3, 3)):
                k = at[p] + ti.Vector([first[0] + i, first[1] + j])
                grid[k] += i + 1
                momentum[k] += ti.Vector([p, j])
                found[p] += grid[k] * 0 + 1

    run()
    mass, expected, outside = np.zeros(shape), np.zeros((*shape, 2)), 0
    for p, i, j in itertools.product(range(60), range(3), range(3)):
        k = tuple((int(index[p, axis]) + first[axis] + step + 2**31) % 2**32 - 2**31 for axis, step in ((0, i), (1, j)))
        if all(0 <= n < extent for n, extent in zip(k, shape, strict=True)):
            mass[k] += i + 1
            expected[k] += p, j
        else:
            outside += 1
    assert (grid.to_numpy() == mass).all() and (momentum.to_numpy() == expected).all()
    assert (found.to_numpy() == 9).all()
    assert counted() == {line_of(run, line): outside for line in (5, 6, 7)}


@pytest.mark.parametrize("length", [0, 1, 3, 4, 12])
def test_windows_of_arrays_of_any_length_and_their_gradients(length: int) -> None:
    at, mass = ti.field(ti.i32, 20), ti.field(ti.f64, 20, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    a = ti.ndarray(ti.f64, length, needs_grad=True)
    weights = np.arange(1.0, length + 1)
    index = np.arange(-4, 16).astype(np.int32)
    index[0] = 2**31 - 2
    at.from_numpy(index)
    mass.fill(2.0)

    @ti.kernel
    def spread(a: ti.types.ndarray(ndim=1)):  # pyright: ignore
        for p in at:
            for i in range(4):
                a[at[p] + i - 1] += mass[p]

    @ti.kernel
    def weigh(a: ti.types.ndarray(ndim=1)):  # pyright: ignore
        for i in a:
            loss[None] += (i + 1) * a[i]

    with ti.ad.Tape(loss):
        spread(a)
        weigh(a)
    total, adjoint, outside = np.zeros(length), np.zeros(20), 0
    for p, i in itertools.product(range(20), range(4)):
        k = (int(index[p]) + i - 1 + 2**31) % 2**32 - 2**31
        if 0 <= k < length:
            total[k] += 2.0
            adjoint[p] += weights[k]
        else:
            outside += 1
    assert a.to_numpy().tolist() == total.tolist()
    assert mass.grad.to_numpy().tolist() == adjoint.tolist()
    assert counted() == {line_of(spread, 4): outside}


def test_elements_that_are_vectors_and_their_components() -> None:
    v, w = ti.Vector.field(3, ti.f64, N), ti.Vector.field(3, ti.f64, N)
    v.from_numpy(np.arange(3.0 * N).reshape(N, 3))

    @ti.kernel
    def run(j: ti.i32):
        for i in v:
            w[i] = v[i + 1]
            w[i][j] += 100.0

    run(1)
    run(7)
    expected = np.vstack([np.arange(3.0, 3.0 * N).reshape(N - 1, 3), np.zeros((1, 3))])
    assert w.to_numpy().tolist() == expected.tolist()


def test_local_vectors_and_old_values() -> None:
    x = ti.field(ti.f64, N)

    @ti.kernel
    def local(j: ti.i32) -> ti.f64:
        a = ti.Vector([1.0, 2.0, 3.0])
        a[j] = 7.0
        return 10.0 * a[j] + a.sum()

    @ti.kernel
    def old(j: ti.i32) -> ti.f64:
        return ti.atomic_add(x[j], 1.0)

    assert [local(j) for j in (0, 3, -1)] == [82.0, 6.0, 6.0]
    assert [old(j) for j in (2, 2, N, -1)] == [0.0, 1.0, 0.0, 0.0]
    assert x.to_numpy().sum() == 2.0


def test_arrays_of_any_length() -> None:
    @ti.kernel
    def shift(a: ti.types.ndarray(dtype=ti.f64, ndim=1), by: ti.i32):
        ti.loop_config(serialize=True)
        for i in range(N):
            a[i + by] = a[i] + 1.0

    for length in (0, 3, N):
        a, b = np.arange(float(length)), np.arange(float(length))
        shift(a, 2)
        for i in range(N):
            if i + 2 < length:
                b[i + 2] = b[i] + 1.0
        assert a.tolist() == b.tolist()


def test_gradients_are_those_of_what_was_read() -> None:
    x, y = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, N, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    start = np.linspace(0.5, 1.5, N)
    x.from_numpy(start)

    @ti.kernel
    def step():
        for i in x:
            y[i + 2] += x[i] ** 2 * x[i + 1]

    @ti.kernel
    def measure():
        for i in y:
            loss[None] += (i + 1) * y[i]

    with ti.ad.Tape(loss):
        step()
        measure()

    def value(a: np.ndarray) -> float:
        y = np.zeros(N)
        for i in range(N - 2):
            y[i + 2] += a[i] ** 2 * a[i + 1]
        return float((np.arange(1, N + 1) * y).sum())

    assert loss[None] == pytest.approx(value(start), rel=1e-14)
    h = 1e-6
    differences = [(value(start + h * e) - value(start - h * e)) / (2 * h) for e in np.eye(N)]
    assert x.grad.to_numpy() == pytest.approx(differences, rel=1e-7, abs=1e-9)


def test_launches_add_up_and_a_session_in_range_says_nothing() -> None:
    x = ti.field(ti.f64, N)

    @ti.kernel
    def touch(j: ti.i32):
        x[j] = 1.0

    touch(3)
    ti.reset()  # a warning would be an error
    ti.init(bounds_check="ignore")
    x = ti.field(ti.f64, N)
    for j in (N, N + 1, 0, -5):
        touch(j)
    assert counted() == {line_of(touch, 2): 3}


def test_other_faults_stay_faults() -> None:
    x = ti.field(ti.i32, N)

    @ti.kernel
    def divide(n: ti.i32):
        x[0] = 1 // n

    with pytest.raises(ZeroDivisionError):
        divide(0)


def test_what_it_may_be() -> None:
    with pytest.raises(FieldError, match="bounds_check must be True, False or \"ignore\", not 'warn'"):
        ti.init(bounds_check="warn")
