"""Plain loops still become vector code, with the polls for interrupts and the bounds checks in place."""

import re
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.codegen.llvm.module import Options, generate
from tinote.runtime.jit import remarks

pytestmark = pytest.mark.optimised

N = 4096


def vectorised_lines(kernel: Any, gradient: bool = False) -> dict[str, int]:
    """The source lines in which LLVM vectorised a loop, with how many vectors of iterations run side by side."""
    specialisation = kernel.specialise_by_types()
    lowered = specialisation.snapshots(gradient=gradient)[-1].after
    options = Options(fast_math=specialisation.config.fast_math, line_tables=True)
    source = specialisation.source
    lines = source.text.splitlines()
    first = source.span.line - next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    found: dict[str, int] = {}
    for remark in remarks(generate(lowered, options).text, 3):
        remarked = re.match(r"vectorized loop .*interleaved count: (\d+)", remark.text)
        if remarked:
            found[lines[remark.loc.line - first].strip()] = int(remarked[1])
    return found


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64, ti.i32], ids=str)
def test_axpy(dtype: Any, checks: bool) -> None:
    ti.init(bounds_check=checks)
    x, y = ti.field(dtype, shape=N), ti.field(dtype, shape=N)

    @ti.kernel
    def run(a: dtype):
        for i in x:
            y[i] = a * x[i] + y[i]

    assert vectorised_lines(run), "the loop over a field"


def test_a_range_given_by_an_argument() -> None:
    x, y = ti.field(ti.f32, shape=N), ti.field(ti.f32, shape=N)

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            y[i] = x[i] * 2 + 1

    run(N)
    assert vectorised_lines(run)


@pytest.mark.parametrize("checks", [True, False])
def test_a_gather(checks: bool) -> None:
    """Its checks are made in front, for several iterations at once too."""
    ti.init(bounds_check=checks)
    x, y = ti.field(ti.f32, shape=N), ti.field(ti.f32, shape=N)

    @ti.kernel
    def run():
        for i in x:
            k = int(x[i])
            y[i] = 3 * x[k] + x[k + 1] / (1 + x[k + 2])

    assert vectorised_lines(run)


@pytest.mark.parametrize("checks", [True, False])
def test_walls_of_a_grid(checks: bool) -> None:
    """Branches that write what every iteration touches anyway."""
    ti.init(bounds_check=checks)
    n = 67
    v = ti.Vector.field(2, ti.f32, shape=(n, n))
    m = ti.field(ti.f32, shape=(n, n))
    random = np.random.default_rng(5)
    start = random.normal(size=(n, n, 2)).astype(np.float32)
    mass = np.maximum(random.normal(size=(n, n)), 0).astype(np.float32)
    v.from_numpy(start)
    m.from_numpy(mass)

    @ti.kernel
    def walls():
        for i, j in m:
            if m[i, j] > 0:
                v[i, j] /= m[i, j]
            v[i, j].y -= 0.25
            if i < 3 and v[i, j].x < 0:
                v[i, j].x = 0
            if j > n - 3 and v[i, j].y > 0:
                v[i, j].y = 0

    assert vectorised_lines(walls)
    walls()
    expected = np.where(mass[..., None] > 0, start / np.where(mass > 0, mass, 1)[..., None], start)
    expected[..., 1] -= 0.25
    expected[:3, :, 0] = np.maximum(expected[:3, :, 0], 0)
    expected[:, n - 2 :, 1] = np.minimum(expected[:, n - 2 :, 1], 0)
    np.testing.assert_allclose(v.to_numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_sum() -> None:
    x = ti.field(ti.f32, shape=N)

    @ti.kernel
    def run() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i] * x[i]
        return s

    assert vectorised_lines(run)


def test_the_inner_loop_of_a_nest() -> None:
    x, y = ti.field(ti.f32, shape=(64, N)), ti.field(ti.f32, shape=(64, N))

    @ti.kernel
    def run():
        for i, j in x:
            y[i, j] = x[i, j] * 0.5 + ti.sqrt(x[i, j])

    assert vectorised_lines(run)


def test_a_stencil() -> None:
    x, y = ti.field(ti.f32, shape=(64, N)), ti.field(ti.f32, shape=(64, N))

    @ti.kernel
    def run():
        for i, j in ti.ndrange((1, 63), (1, N - 1)):
            y[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j]

    assert vectorised_lines(run)


def test_a_serial_inner_loop_with_its_poll() -> None:
    x, y = ti.field(ti.f32, shape=(64, N)), ti.field(ti.f32, shape=64)

    @ti.kernel
    def run():
        for i in y:
            s = 0.0
            for j in range(N):
                s += x[i, j]
            y[i] = s

    assert vectorised_lines(run)


def test_loops_that_are_short_by_their_bounds_are_not_polled() -> None:
    ti.init(lanes="never")
    x = ti.field(ti.f32, shape=64)

    @ti.kernel
    def triangle():
        for i in x:
            s = 0.0
            for j in range(i % 9):
                for k in range(j, j + i % 3):
                    s += x[i] * k
            x[i] = s

    @ti.kernel
    def rectangle(n: ti.i32):
        for i in x:
            for _ in range(n):
                x[i] += ti.sqrt(x[i])

    @ti.kernel
    def wide():
        for i in x:
            for j in range(i * 1000):
                x[i] += ti.sqrt(x[j % 64])

    triangle()
    rectangle(3)
    wide()
    # Once for the parallel loop; and once more for a loop that may be long.
    assert [str(kernel.llvm()).count("call i32 @tn_poll") for kernel in (triangle, rectangle, wide)] == [1, 2, 2]


def test_gravity_and_its_gradient() -> None:
    n = 256
    x = ti.Vector.field(2, ti.f32, shape=n, needs_grad=True)
    U = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def compute_U():  # noqa: N802
        for i, j in ti.ndrange(n, n):
            r = x[i] - x[j]
            U[None] += -1 / r.norm(1e-3)

    # By LLVM, or in lanes.
    for gradient in (False, True):
        table = compute_U.loops(gradient=gradient)
        assert table and all(one.width >= 4 for one in table), table


def test_long_chains_run_side_by_side() -> None:
    """Each operation waits for the one before: a second chain fills the gaps. What is wide enough has none."""
    x, y = ti.field(ti.f32, shape=N), ti.field(ti.f32, shape=N)

    @ti.kernel
    def chain():
        for i in x:
            v = x[i]
            for _ in ti.static(range(20)):
                v = ti.sin(v)
            y[i] = v

    @ti.kernel
    def neighbours():
        for i in x:
            v = 0.0
            for k in ti.static(range(20)):
                v += ti.sin(x[i] * k)
            y[i] = v

    x.from_numpy(np.linspace(0, 1, N, dtype=np.float32))
    chain()
    expected = np.linspace(0, 1, N, dtype=np.float32).astype(np.float64)
    for _ in range(20):
        expected = np.sin(expected)
    np.testing.assert_allclose(y.to_numpy(), expected, rtol=1e-5)
    assert vectorised_lines(chain) == {"for i in x:": 2}
    assert vectorised_lines(neighbours) == {"for i in x:": 1}
