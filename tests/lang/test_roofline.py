"""`kernel.roofline`: bytes and operations are those of the program, what it writes is restored, losses have names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.config import Config
from tinote.errors import DifferentiationError, KernelIndexError, KernelTargetError
from tinote.lang.kernels import machine_ceilings

N = 48


@pytest.fixture
def f() -> SimpleNamespace:
    """Fields."""
    ti.init()
    made = SimpleNamespace(
        x=ti.field(ti.f32, N, needs_grad=True),
        y=ti.field(ti.f32, N, needs_grad=True),
        a=ti.field(ti.f64, (N, N)),
        cell=ti.field(ti.i32, N),
        n=ti.field(ti.i32, ()),
        v=ti.Vector.field(3, ti.f32, N),
        w=ti.Vector.field(3, ti.f32, N, layout=ti.Layout.SOA),
        many=ti.Vector.field(19, ti.f32, N),
    )
    made.cell.from_numpy(np.arange(N, dtype=np.int32)[::-1].copy())
    made.n[None] = 5
    return made


@pytest.fixture
def known_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that moves 10⁹ bytes a second, and computes as many operations."""
    for name in ("bandwidth", "peak"):
        monkeypatch.setattr(machine_ceilings, name, lambda size, config, seen: 1e9)


def kernels(f: SimpleNamespace) -> dict[str, tuple[Any, list[tuple[int, int | None]], float, float]]:
    """By name: a kernel; of its loops, the bytes and the operations; and of its bytes, how many more those of the cache
    lines are, and those with the lines that are fetched to be written.
    """

    def copy():
        for i in f.x:
            f.x[i] = f.y[i]

    def update():
        for i in f.x:
            f.x[i] += 2.0 * f.y[i]

    def fill():
        for i in f.x:
            f.x[i] = 1.0

    def stencil():
        for i in range(1, N - 1):
            f.y[i] = 0.5 * (f.x[i - 1] + f.x[i + 1])

    def every_third():
        for i in range(N // 3):
            f.y[i] = f.x[3 * i]

    def periodic():
        for i in f.x:
            f.y[i] = f.x[(i + 1) % N]

    def scattered():
        for i in f.x:
            f.y[i] = f.x[f.cell[i]]

    def one_component():
        for i in f.x:
            f.x[i] = f.v[i][1]

    def one_array():
        for i in f.x:
            f.x[i] = f.w[i][1]

    def two_of_many():
        for i in f.x:
            f.x[i] = f.many[i][0] - f.many[i][7]

    def one_vector():
        for i in f.x:
            f.x[i] = f.v[i].sum()

    def rows():
        for i in range(N):
            s = ti.f64(0.0)
            for j in range(N):
                s += f.a[i, j] * f.a[j, i]
            f.a[i, i] = s / 2.0

    def triangle():
        for i in range(N):
            for j in range(i):
                f.a[i, j] = ti.sqrt(f.a[i, j])

    def argument_and_field():
        for i in range(4):
            for _ in range(f.n[None]):
                f.x[i] = ti.exp(f.x[i])

    def until():
        for i in f.x:
            s = f.x[i]
            while s < 3.0:
                s += 1.0
            f.y[i] = s

    def two_loops():
        for i in f.x:
            f.x[i] = 1.0
        for i in f.y:
            f.y[i] = f.y[i] - f.x[i]

    def serial():
        for i in range(1, N):
            f.x[i] = f.x[i] + f.x[i - 1]
        f.n[None] = 1

    line, table = 4 * N, 8 * N * N
    return {
        "copy": (copy, [(2 * line, 0)], 1, 1.5),
        "update": (update, [(3 * line, 2 * N)], 1, 1),
        "fill": (fill, [(line, 0)], 1, 2),
        "stencil": (stencil, [(2 * line - 8, 2 * (N - 2))], 1, (3 * N - 4) / (2 * N - 2)),
        "every_third": (every_third, [(8 * (N // 3), 0)], (1 + 46 / 16) / 2, (2 + 46 / 16) / (1 + 46 / 16)),
        "periodic": (periodic, [(2 * line, 0)], 1, 1.5),
        "scattered": (scattered, [(3 * line, 0)], 1, 4 / 3),
        "one_component": (one_component, [(2 * line, 0)], 2, 5 / 4),
        "one_array": (one_array, [(2 * line, 0)], 1, 1.5),
        "two_of_many": (two_of_many, [(3 * line, N)], (1 + 19) / 3, 21 / 20),
        "one_vector": (one_vector, [(4 * line, 2 * N)], 1, 5 / 4),
        "rows": (rows, [(2 * table, 2 * N * N + 4 * N)], 1, 1),
        "triangle": (triangle, [(8 * N * (N - 1), 5 * N * (N - 1) // 2)], 2 * (N - 1) / (N - 1), 1),
        "argument_and_field": (argument_and_field, [(2 * 16 + 4, 15 * 20)], 1, 1),
        "until": (until, [(2 * line, None)], 1, 1.5),
        "two_loops": (two_loops, [(line, 0), (3 * line, N)], 1, 2),
        "serial": (serial, [(2 * line, N - 1), (4, 0)], 1, 1),
    }


NAMES = list(kernels(SimpleNamespace()))


@pytest.mark.parametrize("name", NAMES)
def test_bytes_and_operations_are_those_of_the_program(f: SimpleNamespace, known_ceilings: None, name: str) -> None:
    function, expected, lines, fetched = kernels(f)[name]
    found = ti.kernel(function).roofline()
    assert [(one.nbytes, one.operations) for one in found] == expected
    losses = found[0].losses
    if found[0].bound == "memory":
        assert losses.get("cache lines used in part", 1) == pytest.approx(lines if lines > 1.1 else 1)
        assert losses.get("lines fetched to be written", 1) == pytest.approx(fetched if fetched > 1.1 else 1)
    for row in found:
        assert row.seconds > 0 and row.fraction == pytest.approx(
            max(row.nbytes, row.operations or 0) / 1e9 / row.seconds
        )


def test_what_it_writes_is_restored(f: SimpleNamespace, known_ceilings: None) -> None:
    array, other = np.ones(N, np.float32), ti.ndarray(ti.f32, N)
    f.x.fill(3.0)

    @ti.kernel
    def everywhere(a: ti.types.ndarray(), b: ti.types.ndarray(), by: ti.f32):
        for i in f.x:
            f.x[i] += by
            a[i] += by
            b[i] += by * ti.random()

    [row] = everywhere.roofline(array, other, 2.0)
    assert row.nbytes == 3 * 2 * 4 * N
    assert (f.x.to_numpy() == 3).all() and (array == 1).all() and (other.to_numpy() == 0).all()
    everywhere(array, other, 2.0)
    assert (f.x.to_numpy() == 5).all() and (array == 3).all()


def test_it_is_restored_if_a_launch_fails(f: SimpleNamespace, known_ceilings: None) -> None:
    @ti.kernel
    def beyond():
        for i in f.x:
            f.x[i] = 7.0
        for i in f.x:
            f.y[i + f.n[None]] = 1.0

    with pytest.raises(KernelIndexError):
        beyond.roofline()
    assert not f.x.to_numpy().any() and not f.y.to_numpy().any()


def test_a_gradient_has_one_too(f: SimpleNamespace, known_ceilings: None) -> None:
    @ti.kernel
    def square():
        for i in f.x:
            f.y[i] = f.x[i] * f.x[i]

    f.y.grad.fill(1.0)
    [row] = square.grad.roofline()
    assert row.nbytes >= 4 * 4 * N and not f.x.grad.to_numpy().any()

    @ti.kernel
    def overwrites():
        for i in f.x:
            f.x[i] = f.x[i] * f.x[i]

    with pytest.raises(DifferentiationError, match="tape"):
        overwrites.grad.roofline()


def test_losses_say_why(f: SimpleNamespace, known_ceilings: None) -> None:
    @ti.kernel
    def several():
        for i in f.x:
            f.y[i] = f.x[f.cell[i]]
        for _ in range(1):
            for i in range(1, N):
                f.x[i] = ti.sin(f.x[i - 1])

    scattered, serial = several.roofline()
    assert any("scattered x" in name for name in scattered.losses) or scattered.fraction > 0.5
    if ti.cfg.num_threads > 1:
        assert list(serial.losses) == ["one thread"] and not serial.parallel
    text = repr(several.roofline())
    assert text.splitlines()[0].split()[:3] == ["line", "bound", "by"] and len(text.splitlines()) == 3


def test_methods_and_other_targets(f: SimpleNamespace, known_ceilings: None) -> None:
    @ti.data_oriented
    class Owner:
        @ti.kernel
        def fill(self, value: ti.f32):
            for i in f.x:
                f.x[i] = value

    assert [row.nbytes for row in Owner().fill.roofline(2.0)] == [4 * N]
    ti.init(arch=ti.python)
    x = ti.field(ti.f32, N)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = 1.0

    with pytest.raises(KernelTargetError, match="on the CPU"):
        fill.roofline()


def test_this_machine_is_measured_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINOTE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "1G")
    monkeypatch.setattr(machine_ceilings, "_known", known := {})
    monkeypatch.setattr(machine_ceilings, "_TIMES", 2)
    config = Config(num_threads=1)
    speed, rate = machine_ceilings.bandwidth(1 << 16, config), machine_ceilings.peak(4, config)
    assert 1e8 < speed < 1e13 and 1e8 < rate < 1e13
    known.clear()
    assert (machine_ceilings.bandwidth(60_000, config), machine_ceilings.peak(2, config)) == (speed, rate)
    assert machine_ceilings.peak(4, config, seen=10 * rate) >= rate
