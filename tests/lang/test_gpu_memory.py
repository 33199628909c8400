"""Fields live on the GPU: what is copied when, and that nobody ever sees what is not there any more."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelRuntimeError
from tinote.lang.session.state import session
from tinote.runtime import gpu
from tinote.runtime.resident import Newest, ResidentMemory


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    ti.init(arch=ti.gpu, software_gpu=True)
    assert session.config.arch == "gpu"
    # However busy the machine is, nothing that is known to be short is measured again.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "SURPRISE_SECONDS", float("inf"))
        yield
    ti.init()


def newest(field: Any) -> Newest:
    assert isinstance(field.memory, ResidentMemory)
    return field.memory.newest


@pytest.fixture
def device() -> gpu.Device:
    return gpu.open_device(True)


def doubling(x: Any) -> Any:
    @ti.kernel
    def double():
        for i in x:
            x[i] *= 2.0

    return double


def test_launches_copy_nothing_until_somebody_reads(device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=1000)
    double = doubling(x)
    x.fill(1.0)
    double()
    before = device.submissions
    for _ in range(9):
        double()
    assert newest(x) is Newest.DEVICE and device.submissions == before
    assert x[7] == 1024.0 and device.submissions == before + 1
    assert (x.to_numpy() == 1024.0).all() and device.submissions == before + 1


def test_what_is_read_is_not_copied_there_again(device: gpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x, total = ti.field(ti.f32, shape=1000), ti.field(ti.f32, shape=())
    double = doubling(x)

    @ti.kernel
    def add():
        for i in x:
            total[None] += x[i]

    x.fill(1.0)
    double()
    add()
    uploads: list[int] = []
    upload = device.upload
    monkeypatch.setattr(device, "upload", lambda place, at, nbytes: (uploads.append(nbytes), upload(place, at, nbytes)))
    for k in range(2, 6):
        double()
        add()
        assert x[3] == 2.0**k and (x.to_numpy() == 2.0**k).all() and x.to_numpy(np.float64).dtype == np.float64
        assert total[None] == 1000 * (2.0 ** (k + 1) - 2)
        assert newest(x) is newest(total) is Newest.BOTH
    assert not uploads
    kept = x.to_numpy()
    double()
    assert (kept == 32.0).all() and x[3] == 64.0
    x[3] = 1.0
    double()
    assert len(uploads) == 1 and x[3] == 2.0 and x[4] == 128.0


def test_what_python_has_written_comes_before_the_next_launch_and_behind_the_last() -> None:
    x = ti.field(ti.f32, shape=10)
    y = ti.field(ti.f32, shape=10)

    @ti.kernel
    def add():
        for i in x:
            y[i] += x[i]

    for k in range(5):
        x.fill(k)
        x[3] = 10 * k
        add()
    assert y[0] == 10.0 and y[3] == 100.0


def gravity(n: int, substeps: int) -> Any:
    x = ti.Vector.field(2, ti.f32, shape=n, needs_grad=True)
    v = ti.Vector.field(2, ti.f32, shape=n)
    e = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def start():
        for i in x:
            x[i] = ti.Vector([ti.random(), ti.random()])

    @ti.kernel
    def potential():
        for i, j in ti.ndrange(n, n):
            e[None] += -0.5 / (x[i] - x[j]).norm(1e-1)

    @ti.kernel
    def move(dt: ti.f32):
        for i in x:
            v[i] -= dt * x.grad[i]
            x[i] += dt * v[i]

    def step() -> None:
        for _ in range(substeps):
            with ti.ad.Tape(e):
                potential()
            move(1e-4)

    start()
    step()
    return step, x


def test_a_step_of_launches_and_tapes_is_one_submission(device: gpu.Device) -> None:
    step, x = gravity(16, 10)
    ti.sync()
    before = device.submissions
    step()
    assert device.submissions == before
    ti.sync()
    assert device.submissions == before + 1
    found = x.to_numpy()
    ti.init(random_seed=0)
    step, x = gravity(16, 10)
    step()
    np.testing.assert_allclose(found, x.to_numpy(), rtol=1e-5)


def test_a_captured_step_is_one_submission_however_long(device: gpu.Device) -> None:
    step, _ = gravity(4, 100)
    captured = ti.capture(step)
    captured()
    ti.sync()
    for k in range(3):
        before = device.submissions
        captured()
        assert device.submissions == before + 1, k
    assert captured.is_captured


def test_captured_steps_that_nobody_reads_are_waited_for_now_and_then(device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=16)
    double = ti.capture(doubling(x))
    x.fill(1.0)
    double()
    ti.sync()
    for _ in range(100):
        double()
        assert device._unread < gpu._MOST_UNREAD


@pytest.mark.parametrize("most", [gpu._MOST_UPLOADED, 1 << 21])
def test_the_hosts_bytes_come_between_the_launches_around_them(
    most: int, device: gpu.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_MOST_UPLOADED", most)
    sizes = (1, 1000, gpu._UPLOAD_BYTES // 4, gpu._UPLOAD_BYTES // 4 + 1, 1 << 18)
    fields = [ti.field(ti.i32, shape=size) for size in sizes]
    totals = [ti.field(ti.i32, shape=size) for size in sizes]

    def adding(x: Any, total: Any) -> Any:
        @ti.kernel
        def add():
            for i in x:
                total[i] += x[i]

        return add

    kernels = [adding(*pair) for pair in zip(fields, totals, strict=True)]
    before = device.submissions
    value, wanted = [0] * len(sizes), [0] * len(sizes)
    choice = random.Random(3)
    for k in range(60):
        n = choice.randrange(len(sizes))
        if choice.random() < 0.7:
            fields[n].fill(k)
            value[n] = k
        kernels[n]()
        wanted[n] += value[n]
    assert device.submissions - before < 60
    for total, value in zip(totals, wanted, strict=True):
        assert (total.to_numpy() == value).all()


def test_fills_and_copies_of_whole_fields_ask_the_device_for_nothing(device: gpu.Device) -> None:
    x, y = ti.field(ti.f32, shape=1000), ti.field(ti.f32, shape=1000)
    u = ti.Vector.field(2, ti.f32, shape=10)
    first, double, last = u.get_scalar_field(0), doubling(x), doubling(u)
    for one in (x, y, u):
        one.fill(1.0)
    double()
    last()
    ti.sync()
    before = device.submissions
    y.copy_from(x)
    x.fill(0)
    assert newest(x) is newest(y) is Newest.DEVICE
    x.fill(-0.0)
    double()
    x.from_numpy(np.full(1000, 3.0, np.float32))
    double()
    u.fill(0)
    first.fill(5.0)  # one of two components: the other one is read
    assert device.submissions == before + 1
    assert x[9] == 6.0 and y[999] == 2.0 and u.to_numpy()[3].tolist() == [5.0, 0.0]
    double()
    x.fill(-0.0)
    double()
    assert np.signbit(x.to_numpy()).all()


def test_a_field_that_is_only_read_comes_back_without_a_copy(device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=10)
    y = ti.field(ti.f32, shape=10)

    @ti.kernel
    def take():
        for i in x:
            y[i] = x[i]

    x.fill(3.0)
    take()
    before = device.submissions
    assert newest(x) is Newest.BOTH and x[2] == 3.0 and device.submissions == before
    assert y[2] == 3.0


def test_views_show_what_launches_write_and_are_written_at_any_time() -> None:
    x = ti.field(ti.f32, shape=6)
    double = doubling(x)
    x.fill(1.0)
    double()
    view = x.numpy_view()
    part = view[2:4]
    del view
    double()
    assert part.tolist() == [4.0, 4.0]
    part[0] = 7.0
    double()
    assert part.tolist() == [14.0, 8.0] and x[0] == 8.0
    del part
    gc.collect()
    double()
    assert newest(x) is Newest.DEVICE and x.to_numpy().tolist() == [16.0, 16.0, 28.0, 16.0, 16.0, 16.0]


def test_an_argument_that_shares_a_fields_memory_shares_it_there() -> None:
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def both(a: ti.types.ndarray()) -> ti.i32:
        x[0] = 1
        a[0] += 5
        return x[0]

    assert both(x.numpy_view()) == 6
    assert both(x) == 6 and x[0] == 6


def test_fields_of_one_tree_share_a_block() -> None:
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    ti.root.dense(ti.i, 8).place(x, y)

    @ti.kernel
    def write():
        for i in x:
            x[i] = i
            y[i] = -i

    write()
    y[3] = 5.0
    write()
    assert x.to_numpy().tolist() == list(range(8)) and y[3] == -3.0
    x.memory.clear()
    assert x[4] == 0.0 and y[4] == -4.0


def test_tapes_and_gradients_stay_there(device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=100, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def energy():
        for i in x:
            loss[None] += x[i] * x[i]

    @ti.kernel
    def descend():
        for i in x:
            x[i] -= 0.25 * x.grad[i]

    x.fill(4.0)
    for _ in range(3):
        with ti.ad.Tape(loss):
            energy()
        descend()
    assert newest(x) is newest(x.grad) is Newest.DEVICE
    assert x[0] == 0.5 and loss[None] == 100.0


def test_copies_and_restores_stay_there() -> None:
    x = ti.field(ti.f32, shape=100)
    double = doubling(x)
    x.fill(1.0)
    double()
    copy = x.memory.copy()
    assert isinstance(copy, ResidentMemory) and copy.newest is Newest.DEVICE
    double()
    assert x[0] == 4.0
    double()
    x.memory.restore(copy)
    assert newest(x) is Newest.DEVICE
    double()
    assert x[99] == 4.0
    copy.clear()
    double()
    x.memory.clear()
    assert newest(x) is Newest.DEVICE and x[5] == 0.0 and copy.view()[0] == 0


def test_what_does_not_fit_makes_room(device: gpu.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    count = device.arena.size // 4 // 2 - 1024
    fields = [ti.field(ti.f32, shape=count) for _ in range(4)]
    kernels = [doubling(x) for x in fields]
    monkeypatch.setattr(device, "largest", device.arena.size)
    for k, x in enumerate(fields):
        x.fill(k + 1)
    for _ in range(2):
        for double in kernels:
            double()
    assert [x[count - 1] for x in fields] == [4.0, 8.0, 12.0, 16.0]


def test_the_arena_grows_with_what_it_holds(device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=1000)
    double = doubling(x)
    x.fill(1.0)
    double()
    y = ti.field(ti.f32, shape=device.arena.size // 4)
    larger = doubling(y)
    size = device.arena.size
    y.fill(1.0)
    larger()
    double()
    assert device.arena.size > size and x[0] == 4.0 and y[len(y) - 1] == 2.0


def test_places_are_used_again(device: gpu.Device) -> None:
    size = 0
    for _ in range(30):
        x = ti.field(ti.f32, shape=100_000)
        doubling(x)()
        x.fill(1.0)
        del x
        ti.init(arch=ti.gpu, software_gpu=True)
        gc.collect()
        size = size or device.arena.size
    assert device.arena.size <= 4 * max(size, 1 << 20)


def test_a_launch_that_nobody_waited_for_keeps_no_memory() -> None:
    def alive() -> int:
        gc.collect()
        return sum(isinstance(one, ResidentMemory) for one in gc.get_objects())

    before = alive()
    for _ in range(5):
        doubling(ti.field(ti.f32, shape=1000))()
        ti.init(arch=ti.gpu, software_gpu=True)
    assert alive() <= before + 1


def test_a_fault_that_nobody_waits_for_comes_with_the_next_read() -> None:
    x = ti.field(ti.i32, shape=())
    y = ti.field(ti.i32, shape=())

    @ti.kernel
    def long(n: ti.i32):
        for _ in range(1):
            k = 0
            while k < n:
                k += 1
            x[None] = k

    long(10)
    assert x[None] == 10
    long(100_000)  # Mesa's driver for CPUs ends a loop before that
    y[None] = 3
    with pytest.raises(KernelRuntimeError, match="ended this loop") as caught:
        ti.sync()
    assert caught.value.span.line > long.source.span.line
    ti.sync()
    assert y[None] == 3
    long(7)
    assert x[None] == 7


def test_many_launches_without_a_read_are_submitted_now_and_then(device: gpu.Device) -> None:
    x = ti.field(ti.f32, shape=16)

    @ti.kernel
    def add(by: ti.f32):
        for i in x:
            x[i] += by

    before = device.submissions
    for k in range(3000):
        add(k % 3)
    assert x[5] == 3000.0
    assert 20 <= device.submissions - before <= 200
