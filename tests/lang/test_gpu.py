"""`ti.init(arch=ti.gpu)` on a CPU that stands in for a GPU: what kernels compute, print and fail with there is what
they do on the CPU; and what is said where there is no GPU.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.primitive_functions import FUNCTIONS_OF_ONE, by_numpy, domain_of
from tinote.errors import KernelAssertionError, KernelIndexError, KernelMemoryError, KernelTargetError, TinoteError
from tinote.lang.session.state import session
from tinote.runtime import gpu
from tinote.runtime.slices import SLICE_SECONDS, Pace


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    ti.init()


def on_gpu(**options: Any) -> None:
    ti.init(arch=ti.gpu, software_gpu=True, random_seed=5, **options)
    assert session.config.arch == "gpu"


def on_both(program: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
    """What a program gives on the CPU, and on the GPU."""
    ti.init(random_seed=5, **options)
    wanted = program()
    on_gpu(**options)
    return wanted, program()


def agree(program: Callable[[], Any], rtol: float = 2e-5, atol: float = 1e-6, **options: Any) -> None:
    wanted, found = on_both(program, **options)
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=rtol, atol=atol)


# ---- what kernels compute


def sums_and_gradients() -> Any:
    x = ti.field(ti.f32, shape=100, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy(n: ti.i32):
        for i in x:
            s = 0.0
            for j in range(n):
                s += ti.sin(x[i] * j) / (1.0 + x[(i + j) % 100] ** 2)
            while s > 1.0:
                s *= 0.5
            loss[None] += s

    x.from_numpy(np.linspace(-2, 2, 100, dtype=np.float32))
    with ti.ad.Tape(loss):
        energy(7)
    return loss[None], x.grad.to_numpy()


def sums_at_one_element_and_at_each() -> Any:
    x = ti.field(ti.f32, shape=70, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] * ti.sin(x[1] * i)

    x.from_numpy(np.linspace(-1, 1, 70, dtype=np.float32))
    with ti.ad.Tape(loss):
        energy()
    return loss[None], x.grad.to_numpy()


def recursion_twice() -> Any:
    @ti.real_func
    def triangle(n: ti.i32) -> ti.i32:
        return 0 if n == 0 else n + triangle(n - 1)

    @ti.kernel
    def two(n: ti.i32) -> ti.i32:
        return triangle(n) * 1000 + triangle(n + 1)

    return [two(n) for n in (0, 1, 7)]


def forward_mode() -> Any:
    x = ti.field(ti.f32, shape=8, needs_dual=True)
    y = ti.field(ti.f32, shape=(), needs_dual=True)

    @ti.kernel
    def norm():
        for i in x:
            y[None] += ti.exp(-x[i] * x[i]) * i

    x.from_numpy(np.linspace(-1, 1, 8, dtype=np.float32))
    with ti.ad.FwdMode(loss=y, param=x, seed=[1.0] * 8):
        norm()
    return y[None], y.dual[None]


def functional() -> Any:
    x = ti.field(ti.f32, shape=6, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def springs(k: ti.f32):
        for i in range(5):
            loss[None] += k * (x[i + 1] - x[i] - 1.0) ** 2 * ti.tanh(x[i])

    x.from_numpy(np.array([0.0, 1.2, 1.9, 3.1, 4.4, 5.0], dtype=np.float32))
    gradient = ti.ad.grad(springs, wrt=x, loss=loss)(2.0)
    product = ti.ad.hvp(springs, wrt=x, loss=loss)(np.ones(6), 2.0)
    return gradient, product


def narrow_and_wide_numbers() -> Any:
    a = ti.field(ti.u8, shape=30)
    b = ti.field(ti.i16, shape=30)
    c = ti.field(ti.f16, shape=30)
    d = ti.field(ti.u1, shape=30)
    e = ti.field(ti.i64, shape=30)
    f = ti.field(ti.u64, shape=30)

    @ti.kernel
    def numbers(n: ti.i64) -> ti.i64:
        for i in range(30):
            a[i] += ti.u8(i * 100)
            b[i] = ti.i16(a[i]) << 8
            c[i] = ti.f16(i) * 0.3
            d[i] = i % 3 == 1
            e[i] = (n * (i - 15)) // 7 % 11 - (n >> i)
            f[i] = ti.u64(n) ** 3 // (i + 1)
        return e[3] * n

    first = numbers(1 << 33)
    return first, a.to_numpy(), b.to_numpy(), c.to_numpy(), d.to_numpy(), e.to_numpy(), f.to_numpy()


def doubles() -> Any:
    x = ti.field(ti.f64, shape=64, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def mean():
        for i in x:
            loss[None] += ti.sin(x[i]) * ti.exp(x[i]) + ti.log(2.0 + x[i]) + ti.tanh(x[i]) + x[i] ** 3

    x.from_numpy(np.linspace(-1, 1, 64))
    with ti.ad.Tape(loss):
        mean()
    return loss[None], x.grad.to_numpy()


def updates() -> Any:
    counts = ti.field(ti.i32, shape=7)
    totals = ti.field(ti.f32, shape=7)
    least = ti.field(ti.f32, shape=())
    most = ti.field(ti.i32, shape=())
    bits = ti.field(ti.u32, shape=())
    narrow = ti.field(ti.u8, shape=5)

    @ti.kernel
    def scatter():
        least[None] = 1e9
        for i in range(5000):
            counts[i % 7] += 1
            totals[i % 7] += 0.5
            ti.atomic_min(least[None], ti.cos(i * 0.1))
            ti.atomic_max(most[None], (i * 7919) % 5003)
            ti.atomic_or(bits[None], ti.u32(1) << ti.u32(i % 32))
            ti.atomic_add(narrow[i % 5], ti.u8(1))

    scatter()
    return counts.to_numpy(), totals.to_numpy(), least[None], most[None], bits[None], narrow.to_numpy()


def random_numbers() -> Any:
    x = ti.field(ti.f32, shape=50)
    y = ti.field(ti.i32, shape=50)

    @ti.kernel
    def draw():
        for i in x:
            x[i] = ti.random()
            y[i] = ti.random(ti.i32)

    draw()
    return x.to_numpy(), y.to_numpy()


def matrices_and_structs() -> Any:
    ball = ti.types.struct(position=ti.math.vec3, mass=ti.f32)
    balls = ball.field(shape=10)
    m = ti.Matrix.field(3, 3, ti.f32, shape=10, layout=ti.Layout.SOA)

    @ti.kernel
    def turn(k: ti.i32):
        for i in balls:
            balls[i].position = ti.math.vec3(i, 1.0, 2.0) * 0.5
            balls[i].mass = i + k
            m[i] = balls[i].position.outer_product(balls[i].position)
            m[i][k, (k + i) % 3] += 1.0
            m[i] = m[i] @ m[i].transpose()

    turn(1)
    return balls.position.to_numpy(), balls.mass.to_numpy(), m.to_numpy()


def numpy_arrays() -> Any:
    @ti.kernel
    def scale(a: ti.types.ndarray(), b: ti.types.ndarray(), by: ti.f32) -> ti.f32:
        s = 0.0
        for i, j in ti.ndrange(a.shape[0], a.shape[1]):
            a[i, j] *= by
            s += a[i, j] * b[j]
        return s

    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = np.arange(5, dtype=np.float32)
    return scale(a, b[1:], 0.5), a


PROGRAMS = [
    sums_and_gradients,
    sums_at_one_element_and_at_each,
    recursion_twice,
    forward_mode,
    functional,
    narrow_and_wide_numbers,
    doubles,
    updates,
    random_numbers,
    matrices_and_structs,
    numpy_arrays,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_computes_what_the_cpu_does(program: Callable[[], Any]) -> None:
    agree(program)


def test_what_it_prints_is_in_order_within_an_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    on_gpu()

    @ti.kernel
    def talk(x: ti.f32, n: ti.i64):
        for i in range(3):
            print("first", i, x)
            print(f"second {i} {x:.2f} {n}")

    talk(0.1, 1 << 40)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    for i in range(3):
        assert [line for line in lines if line.split()[1] == str(i)] == [f"first {i} 0.1", f"second {i} 0.10 {1 << 40}"]


def test_faults_are_located() -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=(4, 5))

    @ti.kernel
    def beyond(n: ti.i32):
        for i in range(n):
            x[i, 2] = 1.0

    with pytest.raises(
        KernelIndexError, match=r"index 4 is out of bounds for axis 0 of 'x' of shape \(4, 5\)"
    ) as caught:
        beyond(5)
    assert caught.value.span.line == beyond.source.span.line + 2

    @ti.kernel
    def sure(a: ti.f32, n: ti.i32):
        assert a > n, f"{a} is not above {n}"

    with pytest.raises(KernelAssertionError, match=r"-4\.0 is not above -3"):
        sure(-4.0, -3)
    beyond(4)
    assert x.to_numpy().sum() == 4


def test_views_of_fields_stay_what_they_are() -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=6)
    view = np.from_dlpack(x)

    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2.0

    view[:] = 3.0
    double()
    assert view.tolist() == [6.0] * 6 == x.to_numpy().tolist()


def test_invocations_sum_up_before_they_meet() -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=5000)
    total = ti.field(ti.f32, shape=())
    counts = ti.field(ti.i32, shape=3)
    seen = ti.field(ti.i32, shape=())
    order = ti.field(ti.i32, shape=5000)

    @ti.kernel
    def add(k: ti.i32):
        for i in x:
            total[None] += x[i]
            if i % 2 == 0:
                counts[k] += 1
            counts[2] += i
            order[i] = ti.atomic_add(seen[None], 1)

    x.from_numpy(np.linspace(0, 1, 5000, dtype=np.float32))
    add(1)
    assert abs(total[None] - 2500.0) < 0.01 and counts.to_numpy().tolist() == [0, 2500, 4999 * 2500]
    assert sorted(order.to_numpy().tolist()) == list(range(5000))
    text = str(add.wgsl())
    assert text.count("var<private> task0_total") == 3 and text.count("for (; iteration < end") == 1
    assert "task0_lanes: array<u32, 192>" in text and text.count("workgroupBarrier();") == 2

    @ti.kernel
    def uses():
        for i in x:
            total[None] += 1.0
            x[i] = total[None]

    total[None] = 0.0
    uses()
    assert total[None] == 5000.0 and "_total" not in str(uses.wgsl())


def reductions() -> Any:
    x = ti.field(ti.f32, shape=70_000)
    n = ti.field(ti.i32, shape=70_000)
    least, most, total = ti.field(ti.f32, shape=2), ti.field(ti.f32, shape=()), ti.field(ti.f32, shape=3)
    lowest, highest = ti.field(ti.i32, shape=()), ti.field(ti.u32, shape=())
    odd, every, bits = ti.field(ti.i32, shape=()), ti.field(ti.u32, shape=()), ti.field(ti.i32, shape=())

    @ti.kernel
    def reduce(count: ti.i32, k: ti.i32):
        for i in range(count):
            ti.atomic_min(least[k], x[i])
            ti.atomic_max(most[None], x[i])
            total[1] += x[i]
            if n[i] % 3 == 0:
                total[k] += 1.0
                ti.atomic_min(lowest[None], n[i])
            ti.atomic_max(highest[None], ti.cast(n[i], ti.u32))
            ti.atomic_xor(odd[None], n[i])
            ti.atomic_or(bits[None], n[i] & 0x1234)
            ti.atomic_and(every[None], ti.cast(n[i], ti.u32) | 0xFF00FF00)

    random = np.random.default_rng(3)
    found = []
    for count, values in ((70_000, random.normal(size=70_000)), (3, [2.0, float("nan"), -1.0]), (0, [])):
        x.from_numpy(np.resize(np.append(values, 0.0), 70_000).astype(np.float32))
        n.from_numpy(random.integers(-(2**31), 2**31, 70_000, dtype=np.int32))
        least.fill(0.5)
        most[None], lowest[None], highest[None], every[None] = -0.5, 7, 3, 0xFFFFFFFF
        total.fill(-0.0)
        odd[None] = bits[None] = 0
        reduce(count, 0)
        found += [f.to_numpy().copy() for f in (least, most, total, lowest, highest, odd, every, bits)]
    return found


def test_workgroups_reduce_what_they_add_up() -> None:
    wanted, found = on_both(reductions)
    for a, b in zip(wanted, found, strict=True):
        if a.dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-3)
        else:
            np.testing.assert_array_equal(b, a)


def test_an_element_that_no_iteration_updates_is_not_touched() -> None:
    on_gpu(bounds_check=False)
    x = ti.field(ti.f32, shape=100)
    total = ti.field(ti.f32, shape=1)
    neighbour = ti.field(ti.i32, shape=64)

    @ti.kernel
    def add(k: ti.i32, least: ti.f32):
        for i in x:
            if x[i] > least:
                total[k] += 1.0

    neighbour.fill(1)  # as a float it is so small that additions may make zero of it
    for k in range(1, 200):
        add(k, 5.0)
    assert neighbour.to_numpy().tolist() == [1] * 64 and total[0] == 0.0
    add(0, -1.0)
    assert total[0] == 100.0


def test_an_iteration_that_fails_leaves_the_others_at_the_barrier() -> None:
    on_gpu()
    x = ti.field(ti.i32, shape=1000)
    total = ti.field(ti.i32, shape=())

    @ti.kernel
    def add(most: ti.i32):
        for i in x:
            assert i < most
            total[None] += 1

    for most in (0, 1, 63, 64, 999):
        with pytest.raises(KernelAssertionError):
            add(most)
    total[None] = 0
    add(1000)
    assert total[None] == 1000


def parameters_of_a_fit() -> Any:
    """A loss and the adjoints of what all iterations use."""
    x = ti.field(ti.f32, shape=3000)
    w = ti.Vector.field(4, ti.f32, shape=2, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def fit(scale: ti.f32):
        for i in x:
            t = w[0][0] + x[i] * (w[0][1] + x[i] * (w[0][2] + x[i] * w[0][3]))
            loss[None] += scale * (t - ti.sin(3 * x[i]) * w[1].dot(ti.Vector([1.0, x[i], 0.5, 2.0]))) ** 2

    x.from_numpy(np.linspace(-1, 1, 3000, dtype=np.float32))
    w.from_numpy(np.arange(8, dtype=np.float32).reshape(2, 4) / 5)
    for _ in range(3):
        with ti.ad.Tape(loss):
            fit(1e-3)
        w.from_numpy(w.to_numpy() - 0.1 * w.grad.to_numpy())
    return loss[None], w.grad.to_numpy(), w.to_numpy()


def scattered_numbers() -> Any:
    x, k = ti.Vector.field(2, ti.f32, shape=5000), ti.field(ti.f32, shape=5000)
    cells, old = ti.Vector.field(2, ti.f32, shape=50), ti.field(ti.f32, shape=5000)
    counted = ti.field(ti.f32, shape=50)

    @ti.kernel
    def scatter():
        for i in x:
            cell = ti.cast(k[i], ti.i32)
            cells[cell] += x[i]
            cells[49 - cell] += 0.5
            old[i] = ti.atomic_add(counted[cell], 1.0)

    @ti.kernel
    def mixed():
        for i in x:
            ti.atomic_max(cells[i % 50].x, -x[i].y)

    random = np.random.default_rng(4)
    x.from_numpy(random.uniform(0, 1, (5000, 2)).astype(np.float32))
    k.from_numpy(random.integers(0, 50, 5000).astype(np.float32))
    scatter()
    mixed()
    texts = str(scatter.wgsl()), str(mixed.wgsl())
    assert "&float_arena" not in texts[1] and "atomicCompareExchange" in texts[1]
    adds = "atomicAdd(&float_arena" in texts[0]
    assert adds is ("atomicCompareExchange" not in texts[0])
    if session.config.arch == "gpu":
        assert adds is gpu.open_device(software=True).has_float_atomics
    return cells.to_numpy(), counted.to_numpy(), sorted(old.to_numpy().tolist())


@pytest.mark.parametrize("has_them", [True, False])
def test_floats_are_added_to_memory_that_iterations_share(monkeypatch: pytest.MonkeyPatch, has_them: bool) -> None:
    on_gpu()
    device = gpu.open_device(software=True)
    assert device.has_float_atomics
    monkeypatch.setattr(device, "has_float_atomics", has_them)
    agree(scattered_numbers)


def pairs_of_bodies() -> Any:
    n = 512
    x = ti.Vector.field(2, ti.f32, shape=n, needs_grad=True)
    m = ti.field(ti.f32, shape=n, needs_grad=True)
    energy = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def potential():
        for i in x:
            for j in range(n):
                if i != j:
                    energy[None] -= m[i] * m[j] / (x[i] - x[j]).norm(1e-2)

    x.from_numpy(np.random.default_rng(2).uniform(-1, 1, (n, 2)).astype(np.float32))
    m.from_numpy(np.random.default_rng(3).uniform(0.5, 1, n).astype(np.float32))
    with ti.ad.Tape(energy):
        potential()
    if session.config.arch == "gpu":
        text = str(potential.wgsl(gradient=True))
        assert "atomicCompareExchange" not in text and "&float_arena" not in text
    return x.grad.to_numpy(), m.grad.to_numpy()


def test_the_gradient_of_a_sum_over_pairs_waits_for_no_other_iteration() -> None:
    agree(pairs_of_bodies, rtol=2e-4, atol=2e-2)


def loops_over_grids() -> Any:
    a, b = ti.field(ti.f32, shape=(70, 90), needs_grad=True), ti.field(ti.f32, shape=(70, 90), needs_grad=True)
    rows, columns = ti.field(ti.i32, shape=300), ti.field(ti.i32, shape=300)
    boxes = ti.field(ti.i32, shape=(7, 5, 300))
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def fill():
        for i, j in a:
            a[i, j] = ti.sin(0.1 * i) + ti.random() * j
        for i, j, k in boxes:
            boxes[i, j, k] = 10000 * i + 1000 * j + k
            columns[k] += 1
            rows[i] += k

    @ti.kernel
    def smooth():
        for i, j in ti.ndrange((1, 69), (1, 89)):
            b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])

    @ti.kernel
    def square():
        for i, j in b:
            loss[None] += (b[i, j] - 1.0) ** 2 / 6300

    fill()
    with ti.ad.Tape(loss):
        smooth()
        square()
    if session.config.arch == "gpu":
        assert [plan.iterations for plan in smooth.tasks()] == [68 * 88]
        assert [plan.iterations for plan in square.tasks()] == [70 * 90]
        assert "workgroupBarrier();" in str(square.wgsl())
    return [f.to_numpy() for f in (a, b, a.grad, rows, columns, boxes)] + [loss[None]]


def test_a_loop_over_a_grid_has_an_invocation_for_each_element() -> None:
    agree(loops_over_grids, rtol=1e-4)


def test_adjoints_of_shared_parameters_are_reduced() -> None:
    agree(parameters_of_a_fit, rtol=1e-4, atol=1e-5)


# ---- accuracy

ANGLES = np.concatenate([np.linspace(-600, 600, 4001), *[sign * 10 ** np.linspace(0, 38.5, 4000) for sign in (-1, 1)]])
NUMBERS = {
    "unit": np.linspace(-1, 1, 4001),
    "positive": 10 ** np.linspace(-37, 38, 4001),
    "any": np.linspace(-9, 9, 4001),
}
FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    **{name: (by_numpy(name), NUMBERS[domain_of(name)]) for name in FUNCTIONS_OF_ONE},
    "sin": (np.sin, ANGLES),
    "cos": (np.cos, ANGLES),
    "tan": (np.tan, ANGLES),
    "exp": (np.exp, np.linspace(-87, 88, 4001)),
    "tanh": (np.tanh, np.linspace(-11, 11, 4001)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_within_four_units_in_the_last_place(name: str) -> None:
    on_gpu()
    exact, numbers = FUNCTIONS[name]
    numbers = numbers.astype(np.float32)
    x = ti.field(ti.f32, shape=len(numbers))
    function = getattr(ti, name)

    @ti.kernel
    def apply():
        for i in x:
            x[i] = function(x[i])

    x.from_numpy(numbers)
    apply()
    wanted = exact(numbers.astype(np.float64))
    unit = np.spacing(np.abs(wanted).astype(np.float32) + np.float32(2.0**-126))
    assert np.max(np.abs(x.to_numpy() - wanted) / unit) <= 4.0


def test_powers_are_within_four_units_in_the_last_place() -> None:
    on_gpu()
    bases, exponents = (
        g.ravel().astype(np.float32) for g in np.meshgrid(10 ** np.linspace(-9, 9, 80), np.linspace(-4, 4, 81))
    )
    x = ti.field(ti.f32, shape=len(bases))
    y = ti.field(ti.f32, shape=len(bases))

    @ti.kernel
    def apply():
        for i in x:
            x[i] = x[i] ** y[i]

    x.from_numpy(bases)
    y.from_numpy(exponents)
    apply()
    wanted = bases.astype(np.float64) ** exponents.astype(np.float64)
    assert np.max(np.abs(x.to_numpy() - wanted) / np.spacing(wanted.astype(np.float32))) <= 4.0


def test_angles_of_any_size_in_f64() -> None:
    on_gpu()
    large = 10.0 ** np.linspace(0, 307, 3000) * np.where(np.arange(3000) % 2, 1, -1)
    numbers = np.concatenate([large, 2.0 ** np.arange(1, 1000), np.linspace(-600_000, 600_000, 3001)])
    x, y = ti.field(ti.f64, shape=len(numbers)), ti.field(ti.f64, shape=len(numbers))

    @ti.kernel
    def apply():
        for i in x:
            y[i] = ti.cos(x[i])
            x[i] = ti.sin(x[i])

    x.from_numpy(numbers)
    apply()
    for found, wanted in (x, np.sin(numbers)), (y, np.cos(numbers)):
        assert np.max(np.abs(found.to_numpy() - wanted) / np.spacing(np.abs(wanted))) <= 8.0


def remainders(dtype: Any) -> Any:
    kind = np.float64 if dtype is ti.f64 else np.float32
    chance = np.random.default_rng(3)
    a = np.concatenate([chance.normal(size=2000) * 10.0 ** chance.uniform(-12, 14, 2000), [5.0, -5.0, -0.0, 3.0]])
    b = np.concatenate([chance.normal(size=2000) * 10.0 ** chance.uniform(-6, 6, 2000), [2.0, 3.0, 1.0, -1.0]])
    a, b = np.concatenate([a, [-3.0, 3.0, 0.0, -np.inf]]), np.concatenate([b, [np.inf, -np.inf, 7.0, -np.inf]])
    a, b = a.astype(kind), b.astype(kind)
    x, y = ti.field(dtype, shape=len(a)), ti.field(dtype, shape=len(a))

    @ti.kernel
    def divide():
        for i in x:
            whole = x[i] // y[i]
            x[i] = x[i] % y[i]
            y[i] = whole

    x.from_numpy(a)
    y.from_numpy(b)
    divide()
    keep = np.abs(a / b) < (2.0**53 if dtype is ti.f64 else 2.0**24)
    return x.to_numpy(), y.to_numpy()[keep]


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_remainders_are_exact(dtype: Any) -> None:
    agree(lambda: remainders(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_numbers_over_a_zero_that_is_written_there(dtype: Any) -> None:
    on_gpu()
    x = ti.field(dtype, shape=4)
    n = ti.field(ti.i32, shape=4)
    floored = ti.field(dtype, shape=4)

    @ti.kernel
    def over():
        for i in x:
            y = x[i] / 0.0
            n[i] = ti.i32(y) % 3
            floored[i] = x[i] // -0.0 if i == 3 else x[i] // 0.0
            x[i] = x[i] / -0.0 if i == 3 else y

    x.from_numpy(np.array([2.0, -2.0, 0.0, 1.0]))
    over()
    for found in (x, floored):
        np.testing.assert_equal(found.to_numpy(), [np.inf, -np.inf, np.nan, -np.inf])
    assert n.to_numpy().tolist() == [1, (-(2**31)) % 3, 0, 1]


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64])
def test_a_zero_that_is_written_there_meets_any_number(dtype: Any, fast_math: bool) -> None:
    """Of 0 · ∞, 0 / 0 and the sign of a zero drivers know less than of others."""
    ti.init(arch=ti.gpu, software_gpu=True, fast_math=fast_math)
    numbers = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan])
    x = ti.field(dtype, shape=len(numbers))
    found = ti.field(dtype, shape=(7, len(numbers)))

    @ti.kernel
    def apply():
        for i in x:
            a = x[i]
            found[0, i] = 0.0 / a
            found[1, i] = -0.0 / a
            found[2, i] = 0.0 // a
            found[3, i] = a * 0.0
            found[4, i] = -0.0 * a
            found[5, i] = 0.0 % a
            found[6, i] = (a + 1.0) * 0.0

    x.from_numpy(numbers)
    apply()
    a = numbers
    wanted = [0.0 / a, -0.0 / a, 0.0 / a, a * 0.0, -0.0 * a, np.mod(0.0, a), (a + 1) * 0.0]
    for row, (one, other) in enumerate(zip(found.to_numpy(), wanted, strict=True)):
        if fast_math and row in (3, 4, 6):  # a product with zero is one
            one, other = one[:4], other[:4]
        elif not fast_math:
            np.testing.assert_array_equal(np.signbit(one)[~np.isnan(one)], np.signbit(other)[~np.isnan(one)])
        np.testing.assert_array_equal(one, other)


def along_several(dtype: Any, count: int) -> Any:
    """Tangents along several directions through branches, loops, local arrays and sums that iterations share."""
    n = 70
    x = ti.field(dtype, shape=n, needs_dual=True)
    y = ti.Vector.field(2, dtype, shape=n, needs_dual=True)
    total = ti.field(dtype, shape=(), needs_dual=True)
    bins = ti.field(dtype, shape=5, needs_dual=True)

    @ti.kernel
    def apply():
        for i in x:
            a = x[i] * x[(i + 1) % n]
            if x[i] > 0.5:
                a = ti.sin(a) / (1 + x[i])
            parts = ti.Vector([a, a * a, 0.5 * a])
            for k in range(3):
                parts[k % 2] += parts[2] * x[k]
            y[i] = ti.Vector([parts[0], parts[1]])
            bins[i % 5] += parts[0]
            total[None] += ti.sqrt(1 + a * a)

    @ti.kernel
    def finish():
        s = total[None]
        for k in range(5):
            s = ti.max(s, bins[k]) + 0.1 * s * bins[k]
        total[None] = s

    x.from_numpy(np.linspace(0.1, 0.9, n))
    seeds = np.random.default_rng(5).normal(size=(count, n))
    with ti.ad.FwdMode(loss=[total, bins], param=x, seed=seeds) as mode:
        apply()
        finish()
    return total[None], bins.to_numpy(), y.to_numpy(), *mode.duals


@pytest.mark.parametrize(("dtype", "count"), [(ti.f32, 1), (ti.f32, 3), (ti.f32, 16), (ti.f64, 2)])
def test_several_seeds(dtype: Any, count: int) -> None:
    agree(lambda: along_several(dtype, count), rtol=2e-4 if dtype is ti.f32 else 1e-11)


# ---- bad situations


@pytest.fixture
def unwarned() -> Iterator[None]:
    before = set(session.warned)
    session.warned.clear()
    yield
    session.warned |= before


@pytest.mark.usefixtures("unwarned")
def test_without_an_adapter_kernels_run_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(software: bool = False) -> None:
        raise gpu.NoDevice("no adapter was found")

    monkeypatch.setattr(gpu, "open_device", none)
    with pytest.warns(UserWarning, match=r"ti.gpu is not available, so kernels run on the CPU: no adapter was found"):
        ti.init(arch=ti.gpu)
    assert session.config.arch == "cpu"
    ti.init(arch=ti.gpu)  # once is enough
    with pytest.warns(UserWarning, match="ti.metal"):
        ti.init(arch=[ti.metal, ti.vulkan])


@pytest.mark.usefixtures("unwarned")
def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    monkeypatch.setattr(gpu, "_devices", {})
    with pytest.warns(UserWarning, match="the library wgpu cannot be imported, .*pip install wgpu"):
        ti.init(arch=ti.vulkan)


@pytest.mark.usefixtures("unwarned")
def test_a_cpu_that_stands_in_for_a_gpu_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Adapter:
        info = {"backend_type": "Vulkan", "adapter_type": "CPU"}

    class Gpu:
        @staticmethod
        def enumerate_adapters_sync() -> list[Adapter]:
            return [Adapter()]

    class Library:
        gpu = Gpu()

    monkeypatch.setattr(gpu, "_library", Library)
    monkeypatch.setattr(gpu, "_devices", {})
    monkeypatch.delenv(gpu.SOFTWARE_VARIABLE, raising=False)
    with pytest.warns(UserWarning, match=r"TINOTE_SOFTWARE_GPU=1, or software_gpu=True"):
        ti.init(arch=ti.gpu)


@pytest.mark.usefixtures("unwarned")
def test_other_targets_say_what_there_is() -> None:
    with pytest.warns(
        UserWarning, match=r"ti.cuda is not available, so kernels run on the CPU: ti.gpu runs kernels on a GPU"
    ):
        ti.init(arch=ti.cuda)


ASKED = ("gpu", "vulkan", "metal", "dx12", "cuda", "opengl", "cpu", "x64", "arm64", "python")


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.usefixtures("unwarned")
@pytest.mark.filterwarnings("ignore:.*is not available")
def test_what_programs_ask_about_the_target(asked: str) -> None:
    """The answers are what kernels run on, and where they can run."""
    host = ti.lang.misc.get_host_arch_list()[0].name
    names = {"cpu": {"cpu", host}, "gpu": {"gpu", "vulkan", "metal", "dx12"}, "python": {"python"}}
    ti.init(arch=getattr(ti, asked), software_gpu=True)
    runs_on = session.config.arch
    assert runs_on == next((target for target, among in names.items() if asked in among), "cpu")
    assert {name for name in ASKED if ti.cfg.arch == getattr(ti, name)} == names[runs_on] & set(ASKED)
    supported = {name for name in ASKED if ti.is_arch_supported(getattr(ti, name))}
    assert supported == set.union(*names.values()) & set(ASKED)
    core = ti._lib.core
    assert core.with_vulkan() and not (core.with_metal() or core.with_cuda() or core.with_opengl())


def test_without_an_adapter_there_is_no_support_for_graphics_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise gpu.NoDevice("the library wgpu cannot be imported")

    ti.init()
    monkeypatch.setattr(gpu, "adapters", missing)
    assert not ti.is_arch_supported(ti.gpu) and not ti._lib.core.with_vulkan()
    monkeypatch.setattr(gpu, "adapters", lambda: [gpu.AdapterInfo("llvmpipe", "Vulkan", True, True, 1 << 27)])
    monkeypatch.delenv(gpu.SOFTWARE_VARIABLE, raising=False)
    assert not ti.is_arch_supported(ti.gpu)
    monkeypatch.setattr(gpu, "adapters", lambda: [gpu.AdapterInfo("a card", "Metal", False, True, 1 << 27)])
    assert ti.is_arch_supported(ti.vulkan) and ti._lib.core.with_metal() and not ti._lib.core.with_vulkan()


def test_the_environment_can_ask_for_a_software_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu.SOFTWARE_VARIABLE, "1")
    ti.init(arch=ti.gpu)
    assert session.config.arch == "gpu"


def test_more_memory_than_the_device_binds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu()
    device = gpu.open_device(True)
    monkeypatch.setattr(device, "largest", device.arena.size)
    x = ti.field(ti.f32, shape=device.arena.size // 4 + 1)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    with pytest.raises(KernelMemoryError, match=r"the memory of 'fill': .* binds at most"):
        fill()


def test_two_processes_use_it_at_once_and_drivers_are_quiet() -> None:
    """As in a container: drivers that look for a display there complain."""
    program = """
import tinote as ti
ti.init(arch=ti.gpu, software_gpu=True)
x = ti.field(ti.i32, shape=1000)
x.fill(1)
print(x.to_numpy().sum())
"""
    command = [sys.executable, "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
    children = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    for child in children:
        printed, complaints = child.communicate(timeout=300)
        assert printed.strip() == "1000" and child.returncode == 0
        assert "XDG_RUNTIME_DIR" not in complaints


def test_its_wgsl_can_be_looked_at() -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    fill()
    assert "@compute @workgroup_size(64)" in fill.wgsl()
    assert fill.instances[0].origin.value == "WGSL"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_lost_device_is_an_error_and_the_next_launch_finds_another() -> None:
    on_gpu()
    x, y = ti.field(ti.f32, shape=1000), ti.field(ti.f32, shape=1000)

    @ti.kernel
    def double():
        for i in x:
            x[i] = 2 * x[i] + 1

    y.fill(4.0)
    double()
    assert x[3] == 1.0
    double()
    gpu.open_device(True).device.destroy()
    with pytest.raises(
        gpu.DeviceLostError, match=r"the GPU '.*' is lost \(.*\): fields hold what was last read from them"
    ):
        x.to_numpy()
    assert x[3] == 1.0 and y[999] == 4.0
    double()
    assert x[3] == 3.0 and not gpu.open_device(True).lost
    double()
    gpu.open_device(True).device.destroy()
    with pytest.raises(gpu.DeviceLostError) as caught:
        for _ in range(200):
            double()
    assert caught.value.span.line > 0
    double()
    assert x[3] == 7.0


def test_a_device_that_is_gone_is_an_error_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that was compiled for it, and of one that is compiled now."""
    on_gpu()
    x = ti.field(ti.f32, shape=10)

    @ti.kernel
    def known():
        for i in x:
            x[i] += 1

    @ti.kernel
    def new():
        for i in x:
            x[i] += 2

    known()
    ti.sync()

    def none(software: bool) -> Any:
        raise gpu.NoDevice("no adapter was found")

    gpu.open_device(True).device.destroy()
    with pytest.raises(gpu.DeviceLostError):
        known()
        ti.sync()
    monkeypatch.setattr("tinote.compiler.launch.gpu_launch.open_device", none)
    for kernel in (known, new):
        with pytest.raises(KernelTargetError, match=r"there is no GPU any more: no adapter was found") as caught:
            kernel()
        assert caught.value.span.line > 0


def test_a_device_without_memory_says_how_much_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu()
    device = gpu.open_device(True)

    def full(**_: Any) -> Any:
        raise RuntimeError("Not enough memory left")

    x = ti.field(ti.f32, shape=device.arena.size)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    monkeypatch.setattr(device.device, "create_buffer", full)
    with pytest.raises(KernelMemoryError, match=r"has no \d.* of memory left \(Not enough memory left\)"):
        fill()


# ---- what takes long


def test_what_takes_long_is_dispatched_in_slices() -> None:
    on_gpu()
    device = gpu.open_device(True)
    x = ti.field(ti.i32, shape=100_000)
    total = ti.field(ti.i32, shape=())
    last = ti.field(ti.f64, shape=())

    @ti.kernel
    def long(n: ti.i32, m: ti.i32):
        for i in range(n):
            k = 0
            for _ in range(m):
                k += 1
            x[i] += k
            total[None] += 1
        for i in range(n):  # no atomic operation has 64 bits: one invocation
            last[None] += ti.cast(x[i], ti.f64)

    for k in range(1, 4):
        before = device.submissions
        long(100_000, 7)
        assert device.submissions - before >= 7
        assert (x.to_numpy() == 7 * k).all() and total[None] == 100_000 * k
    assert last[None] == 7e5 * 6
    long(0, 7)
    long(-5, 7)
    assert total[None] == 300_000


def test_the_profiler_tells_tasks_apart() -> None:
    on_gpu(kernel_profiler=True)
    x = ti.field(ti.i32, shape=1000)

    @ti.kernel
    def twice(m: ti.i32):
        for i in x:
            x[i] = i
        for i in range(m):
            x[i] += 1

    ti.profiler.clear_kernel_profiler_info()
    twice(1000)
    with pytest.raises(KernelIndexError):
        twice(1001)
    rows = {row.task: row for row in ti.profiler.kernel_profiler_info()}
    assert {row.count for row in rows.values()} == {2} and max(row.least for row in rows.values()) > 0
    assert {row.by for row in rows.values()} == {"GPU's timestamps"}
    assert "GPU's timestamps" in repr(ti.profiler.kernel_profiler_info())
    with pytest.raises(TinoteError, match="runs on a GPU: there is no machine code to show"):
        twice.llvm()


@pytest.mark.parametrize("timestamps", [True, False])
def test_what_a_task_takes_is_measured_by_the_gpu_or_by_waiting(
    monkeypatch: pytest.MonkeyPatch, timestamps: bool
) -> None:
    on_gpu(kernel_profiler=True)
    x = ti.field(ti.f32, shape=64)
    device = gpu.open_device(software=True)
    monkeypatch.setattr(device, "has_timestamps", timestamps)
    monkeypatch.setattr(device, "timestamps", None)

    @ti.kernel
    def spin(n: ti.i32, m: ti.i32):
        for i in range(n):  # how many is not known before, so that it runs in slices
            for _ in range(m):
                x[i % 64] = x[i % 64] * 0.5 + 1

    ti.profiler.clear_kernel_profiler_info()
    spin(64, 1)
    begun = time.perf_counter()
    spin(4096, 2000)
    whole = time.perf_counter() - begun
    (row,) = ti.profiler.kernel_profiler_info()
    assert row.by == ("GPU's timestamps" if timestamps else "waiting for the GPU")
    assert 1e-3 < 1e-9 * row.most <= whole and row.most > row.least > 0
    assert ti.profiler.query_kernel_profiler_info("spin").counter == 2


def test_a_fault_in_a_slice_is_the_launchs() -> None:
    on_gpu()
    x = ti.field(ti.i32, shape=100_000)

    @ti.kernel
    def long(n: ti.i32, m: ti.i32):
        for i in range(n):
            for _ in range(m):
                x[i] += 1

    with pytest.raises(KernelIndexError):
        long(100_001, 3)
    long(10, 2)
    assert x[0] in (2, 5)


def test_an_interrupt_ends_a_launch_after_the_slice_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu()
    x = ti.field(ti.f32, shape=1 << 14)

    @ti.kernel
    def heavy(m: ti.i32):
        for i in x:
            s = x[i]
            for _ in range(m):
                s = ti.sin(s) + 0.5
            x[i] = s

    heavy(2)
    assert np.isfinite(x.to_numpy()).all()
    sent, ended = threading.Event(), 0
    note = Pace.note

    def noting(pace: Pace, iterations: int, seconds: float) -> None:
        nonlocal ended
        note(pace, iterations, seconds)
        ended += sent.is_set()

    monkeypatch.setattr(Pace, "note", noting)

    def interrupt() -> None:
        sent.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):  # a launch takes some seconds
            heavy(60_000)
            ti.sync()
    timer.join()
    # The one that was running, and one more where the interrupt came between two: within half a second.
    assert ended <= 2 and 4 * SLICE_SECONDS <= 0.5
    heavy(1)
    assert np.isfinite(x.to_numpy()).all()
