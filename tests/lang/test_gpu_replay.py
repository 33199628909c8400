"""What is captured in a session on a GPU is replayed there: one submission, and nobody waits for what nobody needs.
The step itself is what it is compared with.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import CaptureError, KernelIndexError, KernelZeroDivisionError
from tinote.lang.capture.automatic import AutomaticCapture
from tinote.lang.session.state import session
from tinote.runtime import gpu
from tinote.runtime.resident import Newest

COUNT = 70


@pytest.fixture(autouse=True)
def device() -> Iterator[gpu.Device]:
    ti.init(arch=ti.gpu, software_gpu=True)
    yield gpu.open_device(software=True)
    ti.init()


class Reads:
    """How often a device was waited for since `begin`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._monkeypatch = monkeypatch

    def begin(self) -> None:
        """Count from now on: a capture would follow the program into what counts."""
        wait_for = gpu.Device.wait_for
        self.count = 0

        def counting(device: gpu.Device, reading: gpu.Reading) -> Any:
            self.count += 1
            return wait_for(device, reading)

        self._monkeypatch.setattr(gpu.Device, "wait_for", counting)

    def end(self) -> int:
        """Not any more. Gives how often."""
        self._monkeypatch.undo()
        return self.count


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


class World:
    """Particles with an energy, and kernels on them."""

    def __init__(self) -> None:
        x = self.x = ti.Vector.field(2, ti.f32, shape=COUNT, needs_grad=True)
        v = self.v = ti.Vector.field(2, ti.f32, shape=COUNT)
        energy = self.energy = ti.field(ti.f32, shape=(), needs_grad=True)
        n = self.n = ti.field(ti.i32, shape=3)
        small = self.small = ti.field(ti.i8, shape=5)
        half = self.half = ti.field(ti.f16, shape=3)
        self.single = ti.field(ti.f32, shape=3)
        self.fields = [x, x.grad, v, energy, n, small, half, self.single]

        @ti.kernel
        def potential():
            ti.loop_config(serialize=True)  # the sum is rounded in the same order each time
            for i in range(COUNT - 1):
                energy[None] += (x[i + 1] - x[i]).norm_sqr()

        @ti.kernel
        def move(dt: ti.f32):
            for i in x:
                v[i] -= dt * x.grad[i]
                x[i] += dt * v[i]

        @ti.kernel
        def count(by: ti.i32) -> ti.i32:
            n[0] += by
            return n[0] * n[0]

        @ti.kernel
        def kick():
            for i in v:
                v[i].x += 0.1 * ti.random(ti.f32)

        @ti.kernel
        def at(k: ti.i32, divisor: ti.i32):
            n[k] += 6 // divisor

        @ti.kernel
        def tell():
            print("n is", n[0])

        self.potential, self.move, self.count, self.kick, self.at, self.tell = potential, move, count, kick, at, tell
        self.fill()

    def fill(self) -> None:
        for field in self.fields:
            field.fill(0)
        self.x.from_numpy(np.random.default_rng(3).normal(size=(COUNT, 2)).astype(np.float32))
        self.half.fill(1.5)
        self.single.fill(0.1)

    def left(self) -> list[bytes]:
        return [field.to_numpy().tobytes() for field in self.fields]

    def forces(self, dt: float) -> None:
        """What is one submission."""
        for _ in range(3):
            with ti.ad.Tape(self.energy):
                self.potential()
            self.move(dt)
        self.v[3] = 2 * dt, 0.5
        self.n.fill(7)

    def numbers(self, dt: float) -> Any:
        """What needs numbers of the device's."""
        self.forces(dt)
        if self.energy[None] > 100 * dt:
            found = self.count(2)
            self.n[1] = found - self.n[0]
        else:
            self.small.fill(3)
        self.kick()
        return self.energy[None] * dt, self.n[1], self.x.to_numpy()

    def narrow(self, dt: float) -> None:
        """What has no words, or converts."""
        for field in (self.half, self.single):
            field.from_numpy((self.single if field is self.half else self.half).to_numpy())
        self.small.copy_from(self.small)
        self.small[2] = self.n[0]
        self.single[0] = dt
        self.at(1, 1)


def plain(value: Any) -> Any:
    return [plain(one) for one in value] if isinstance(value, tuple) else np.asarray(value).tobytes()


@pytest.mark.parametrize("name", ["forces", "numbers", "narrow"])
def test_a_replay_leaves_what_the_function_leaves(name: str) -> None:
    world = World()
    step = getattr(world, name)
    captured = ti.capture(step)

    def follow(run: Callable[..., Any]) -> list[Any]:
        world.fill()
        session.launches = 0
        return [(plain(run(dt)), world.left(), session.launches) for dt in (0.01, 0.25, 3.0)]

    captured(0.5)
    assert captured.is_captured
    assert follow(captured) == follow(step)


def test_a_replay_is_one_submission_that_nobody_waits_for(device: gpu.Device, reads: Reads) -> None:
    world = World()
    captured = ti.capture(world.forces)
    captured(0.1)
    ti.sync()
    submissions = device.submissions
    reads.begin()
    for k in range(5):
        captured(0.01 * k)
    assert (device.submissions, reads.count) == (submissions + 5, 0)
    world.x.to_numpy()
    assert reads.end() == 1


def test_what_python_writes_goes_there_and_who_has_a_view_sees_what_is_left() -> None:
    world = World()
    captured = ti.capture(world.forces)
    captured(0.1)
    view = np.from_dlpack(world.x)
    left = []
    for run in (captured, world.forces):
        world.fill()
        world.x[5] = 2.0, 3.0
        run(0.1)
        world.x[6] = world.x[5]
        run(0.1)
        left.append(world.left())
        assert view.tobytes() == world.x.to_numpy().tobytes()
    assert left[0] == left[1]
    assert world.x.memory.whole.newest is Newest.HOST


def test_faults_are_reported_as_those_of_the_function() -> None:
    world = World()

    def step(k, divisor):
        world.at(k, divisor)
        world.n[2] += 1
        a = world.n[0] // divisor
        world.n[1] = a

    captured = ti.capture(step)
    captured(0, 1)
    found = []
    for run in (captured, step):
        for arguments, kind in (((7, 1), KernelIndexError), ((0, 0), KernelZeroDivisionError)):
            world.fill()
            with pytest.raises(kind) as caught:
                run(*arguments)
            found.append((caught.value.message, caught.value.span))
    assert found[:2] == found[2:]
    world.fill()
    captured(1, 2)
    assert world.n.to_numpy().tolist() == [0, 0, 1]


def test_arithmetic_in_python_fails_after_what_comes_before_it() -> None:
    world = World()

    def step(dt, divisor):
        world.forces(dt)
        world.n[1] = 8 // divisor
        world.forces(dt)

    captured = ti.capture(step)
    captured(0.1, 2)
    left = []
    for run in (captured, step):
        world.fill()
        with pytest.raises((ZeroDivisionError, KernelZeroDivisionError)):
            run(0.1, 0)
        left.append(world.left())
    assert left[0] == left[1]


def test_prints_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()

    def step() -> None:
        world.tell()
        world.count(1)
        world.tell()

    captured = ti.capture(step)
    captured()
    capsys.readouterr()
    captured()
    captured()
    assert capsys.readouterr().out == "n is 1\nn is 2\nn is 2\nn is 3\n"


def test_arrays_that_others_manage_go_there_and_come_back() -> None:
    array, given = ti.ndarray(ti.f32, shape=9), np.arange(9, dtype=np.float32)

    @ti.kernel
    def add(a: ti.types.ndarray(dtype=ti.f32, ndim=1), b: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in a:
            a[i] += b[i]

    def step() -> None:
        add(array, given)
        add(array, array)

    captured = ti.capture(step)
    captured()
    captured()
    assert array.to_numpy().tolist() == (6 * given).tolist()


def test_sums_in_an_order_of_the_devices_agree_in_half_of_their_digits() -> None:
    x, total = ti.field(ti.f32, shape=5000), ti.field(ti.f32, shape=3)

    @ti.kernel
    def add_up():
        for i in x:
            total[i % 2] += x[i]

    def step() -> None:
        add_up()
        total[2] = total[0]

    x.from_numpy(np.random.default_rng(0).normal(size=5000).astype(np.float32) + 1)
    captured = ti.capture(step)
    captured()
    captured()
    wanted = 2 * x.to_numpy().astype(np.float64).reshape(-1, 2).sum(0)
    np.testing.assert_allclose(total.to_numpy(), [*wanted, wanted[0]], rtol=1e-5)


def test_functional_derivatives_and_steps_under_tapes_are_plans(device: gpu.Device, reads: Reads) -> None:
    @ti.kernel
    def square(a: ti.types.ndarray(dtype=ti.f32, ndim=1)) -> ti.f32:
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i] * a[i]
        return s

    gradient, a = ti.ad.value_and_grad(square), np.arange(10, dtype=np.float32)
    for k in range(6):
        if k == 5:
            reads.begin()
        value, slope = gradient(a + k)
        assert value == np.square(a + k).sum() and slope.tolist() == (2 * (a + k)).tolist()
    assert reads.end() == 1

    w, loss = ti.field(ti.f32, shape=10, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def bend(by: ti.f32):
        for i in w:
            w[i] = w[i] * w[i] * by

    @ti.kernel
    def sum_up():
        for i in range(10):
            loss[None] += w[i]

    @ti.capture
    def step():
        for by in (0.5, 1.0, 1.5):
            bend(by)
        sum_up()

    found = []
    for k in range(4):
        w.from_numpy(a / 10)
        submissions = device.submissions
        if k == 3:
            reads.begin()
        with ti.ad.Tape(loss):
            step()
        spent = device.submissions - submissions
        found.append(w.grad.to_numpy().tobytes())
    assert (spent, reads.end()) == (2, 1)  # the step and its gradient; by who reads that
    assert len(set(found)) == 1


def test_steps_of_live_views_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinote.lang.capture.automatic.LONGEST_STEP", 10.0)  # the machine may be busy
    world = World()
    counted = 0

    def step() -> None:
        nonlocal counted
        counted += 1
        world.forces(0.001 * counted)

    automatic = AutomaticCapture(step)
    for _ in range(20):
        automatic()
    assert automatic.how.state == "replayed" and automatic.how.replays > 5
    found = world.left()
    world.fill()
    for k in range(20):
        world.forces(0.001 * (k + 1))
    assert world.left() == found and counted == 20


def test_a_replay_goes_on_where_the_memory_of_the_device_has_moved(device: gpu.Device) -> None:
    world = World()
    captured = ti.capture(world.forces)
    captured(0.1)
    large = ti.field(ti.f32, shape=device.arena.size // 2)

    @ti.kernel
    def fill_large():
        for i in large:
            large[i] = 1.0

    left = []
    for run in (captured, world.forces):
        world.fill()
        run(0.1)
        fill_large()  # the arena grows
        with device.lock:
            device.places.make_room([])  # all blocks lose their places
        run(0.2)
        left.append(world.left())
    assert left[0] == left[1]


def test_a_replay_goes_on_with_another_device(device: gpu.Device) -> None:
    world = World()
    captured = ti.capture(world.forces)
    captured(0.1)
    world.fill()
    captured(0.1)
    wanted = world.left()
    world.fill()
    device.fail(RuntimeError("it was taken out"))
    captured(0.1)
    assert world.left() == wanted
    assert gpu.open_device(software=True) is not device


def test_a_step_that_is_not_the_same_twice_runs_as_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    captured = ti.capture(world.forces)
    monkeypatch.setattr("tinote.lang.capture.agreement.Agreement.of_memory", lambda *_: False)
    left = []
    for run in (captured, world.forces):
        world.fill()
        run(0.1)
        left.append(world.left())
    assert left[0] == left[1] and not captured.is_captured
    with pytest.raises(CaptureError, match=r"this cannot be captured: replayed, .* differs"):
        captured.captured(0.1)
    monkeypatch.undo()
    captured(0.1)
    assert not captured.is_captured  # it is not tried again and again
