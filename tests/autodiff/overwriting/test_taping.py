"""How much a tape keeps of what is overwritten: exactly the elements that a gradient needs."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, check_gradient, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError, KernelMemoryError

N = 16
STEPS = 9


def kept(run: Callable[[], Any], loss: Any) -> float:
    """How much a tape around `run` keeps, in numbers of 8 bytes."""
    with ti.ad.Tape(loss) as tape:
        run()
    return tape.copied_bytes / 8


def summing(x: Any, loss: Any) -> Any:
    @ti.kernel
    def total(row: ti.i32):
        for i in range(N):
            loss[None] += x[row, i] ** 2

    return total


def start(*fields: Any) -> None:
    numbers = np.random.default_rng(0)
    for field in fields:
        field.from_numpy(numbers.uniform(0.2, 0.9, field.to_numpy().shape))


def test_time_slices_of_one_field_do_not_meet() -> None:
    x, loss = array(STEPS + 1, N), scalar()
    total = summing(x, loss)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            x[t, i] = ti.sin(x[t - 1, i]) * x[t - 1, (i + 1) % N]

    def run() -> None:
        for t in range(1, STEPS + 1):
            step(t)
        total(STEPS)

    start(x)
    assert kept(run, loss) == 0
    check_gradient(run, loss, [x])


def test_what_is_unknown_in_one_dimension_does_not_widen_the_others() -> None:
    x, loss = array(STEPS + 1, N), scalar()
    where = ti.field(ti.i32, shape=N)
    total = summing(x, loss)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            x[t + 1, i] = ti.sin(x[t, where[i]])

    def run() -> None:
        for t in range(STEPS):
            step(t)
        total(STEPS)

    where.from_numpy(np.arange(N, dtype=np.int32)[::-1] // 2)
    start(x)
    assert kept(run, loss) == 0
    check_gradient(run, loss, [x])


@pytest.mark.parametrize("buffers", [2, 3])
def test_a_ring_of_buffers_keeps_one_slice_a_step(buffers: int) -> None:
    x, loss = array(buffers, N), scalar()
    total = summing(x, loss)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            x[t % buffers, i] = ti.sin(x[(t - 1) % buffers, i]) + 0.1 * i

    def run() -> None:
        for t in range(1, STEPS + 1):
            step(t)
        total(STEPS % buffers)

    start(x)
    # The first steps overwrite slices that nobody has read.
    assert kept(run, loss) == (STEPS - buffers + 1) * N
    check_gradient(run, loss, [x])


def test_a_wave_reads_two_slices_behind() -> None:
    x, loss = array(STEPS + 2, N), scalar()
    total = summing(x, loss)

    @ti.kernel
    def step(t: ti.i32):
        for i in range(1, N - 1):
            bend = x[t - 1, i - 1] - 2 * x[t - 1, i] + x[t - 1, i + 1]
            x[t, i] = 2 * x[t - 1, i] - x[t - 2, i] + 0.1 * ti.sin(bend) + 0.01 * x[t - 2, i] ** 2

    def run() -> None:
        for t in range(2, STEPS + 2):
            step(t)
        total(STEPS + 1)

    start(x)
    assert kept(run, loss) == 0
    check_gradient(run, loss, [x])


def test_only_the_part_that_is_overwritten_is_kept() -> None:
    x, loss = array(N, N), scalar()

    @ti.kernel
    def use(last: ti.i32):
        for i, j in ti.ndrange(last, N):
            loss[None] += x[i, j] ** 2

    @ti.kernel
    def change(column: ti.i32):
        for i in range(N):
            x[i, column] = 1.0

    def run() -> None:
        use(5)
        change(3)
        use(5)
        change(3)
        change(3)

    start(x)
    # Nobody has read the column between the last two changes.
    assert kept(run, loss) == 5 + 5
    check_gradient(run, loss, [x])


def test_what_cancels_out_and_what_is_clamped() -> None:
    x, y, loss = array(N), array(N), scalar()

    @ti.kernel
    def use(first: ti.i32):
        for i in range(first, first + 4):
            loss[None] += x[i - first] ** 2 * x[ti.min(i - first + 8, 9)]

    @ti.kernel
    def change(first: ti.i32, last: ti.i32):
        for i in range(first, last):
            x[i] = y[i]

    start(x, y)
    assert kept(lambda: (use(2), change(10, N), change(4, 8)), loss) == 0
    assert kept(lambda: (use(2), change(0, N)), loss) == 4 + 2


def test_bounds_of_loops_that_a_field_gives_are_unknown_and_right() -> None:
    count = ti.field(ti.i32, shape=())
    x, loss = array(N), scalar()

    @ti.kernel
    def use():
        for i in range(count[None]):
            loss[None] += x[i] ** 2

    @ti.kernel
    def change():
        for i in range(4, 8):
            x[i] = 0.5

    def run() -> None:
        count[None] = 6
        use()
        change()
        count[None] = 12
        use()

    start(x)
    assert kept(run, loss) == 4 + 0.5, "four numbers, and a count of 4 bytes"


def test_python_writes_keep_what_they_write() -> None:
    x, y, loss = array(N), array(N), scalar()
    v = ti.Vector.field(3, ti.f64, shape=N, needs_grad=True)

    @ti.kernel
    def use():
        for i in range(N):
            loss[None] += x[i] ** 2 + v[i].norm_sqr()

    def run() -> None:
        use()
        x[3] = 1.0
        x[3] = 2.0
        v[5] = [1.0, 2.0, 3.0]
        v[6][1] = 2.0

    start(x, v)
    assert kept(run, loss) == 1 + 3 + 3
    assert kept(lambda: (use(), x.fill(1.0)), loss) == N
    assert kept(lambda: (use(), x.fill(1.0), x.fill(2.0)), loss) == N, "nobody read the first filling"
    assert kept(lambda: (use(), x.copy_from(y)), loss) == N


def test_many_single_writes_between_launches() -> None:
    x, loss = array(200), scalar()

    @ti.kernel
    def use():
        for i in x:
            loss[None] += x[i] ** 2

    numbers = np.random.default_rng(1)
    start(x)
    value, slope, begun_with = x.to_numpy(), np.zeros(200), np.ones(200)
    with ti.ad.Tape(loss) as tape:
        for _ in range(3):
            use()
            slope += 2 * value * begun_with
            for i in numbers.permutation(200)[:120]:
                x[int(i)] = value[i] = numbers.uniform()
                begun_with[i] = 0
        use()
        slope += 2 * value * begun_with
    assert 3 * 120 * 8 <= tape.copied_bytes <= 3 * 200 * 8
    np.testing.assert_allclose(x.grad.to_numpy(), slope)
    assert x.to_numpy().tolist() == value.tolist()


def test_an_assigned_element_begins_anew_and_a_changed_one_goes_on() -> None:
    """What Python writes is a constant; what it writes where it has read before is perhaps computed from that."""
    x, v, loss = array(4), ti.Vector.field(2, ti.f64, shape=2, needs_grad=True), scalar()

    @ti.kernel
    def square():
        for i in x:
            loss[None] += x[i] ** 2
        for i in v:
            loss[None] += v[i].norm_sqr()

    def run() -> None:
        square()
        x[1] = 5.0
        x[2] += 5.0
        v[0] = [3.0, 4.0]
        v[1] += ti.Vector([3.0, 4.0])
        square()
        x[2] = 7.0
        square()

    x.fill(1.0)
    v.fill(1.0)
    with ti.ad.Tape(loss):
        run()
    assert x.grad.to_numpy().tolist() == [6, 2, 2 + 12, 6]
    assert v.grad.to_numpy().tolist() == [[2, 2], [2 + 8 + 8, 2 + 10 + 10]]
    x.fill(1.0)
    v.fill(1.0)
    check_gradient(run, loss, [x, v])


def test_lengths_and_indices_of_arrays() -> None:
    loss = scalar()
    x = ti.ndarray(ti.f64, (STEPS + 1, N), needs_grad=True)

    @ti.kernel
    def step(a: ti.types.ndarray(ti.f64, ndim=2), t: ti.i32):
        for i in range(a.shape[1]):
            a[t, i] = ti.sin(a[t - 1, i])

    @ti.kernel
    def half(a: ti.types.ndarray(ti.f64, ndim=2), t: ti.i32):
        for i in range(a.shape[1] // 2):
            loss[None] += a[t, i] ** 2

    def run() -> None:
        for t in range(1, STEPS + 1):
            step(x, t)
        half(x, STEPS)

    start(x)
    assert kept(run, loss) == 0
    assert kept(lambda: (half(x, 1), x.fill(1.0)), loss) == N // 2


def test_a_kernel_that_overwrites_what_it_needs_keeps_what_it_overwrites() -> None:
    x, loss = array(4, N), scalar()
    total = summing(x, loss)

    @ti.kernel
    def squash(row: ti.i32):
        for i in range(N):
            for _ in range(3):
                x[row, i] = ti.sin(x[row, i]) + 0.1 * x[row, i] ** 2

    def run() -> None:
        for row in range(4):
            squash(row)
            squash(row)
            total(row)

    start(x)
    assert kept(run, loss) == 4 * 2 * N
    check_gradient(run, loss, [x])
    before = x.to_numpy()
    assert kept(run, loss) == 4 * 2 * N
    with ti.ad.Tape(loss):
        run()
        after = x.to_numpy()
    assert not np.array_equal(after, before)
    assert x.to_numpy().tolist() == after.tolist(), "the reverse sweep leaves the fields as they were"


def test_interleaved_fields_keep_their_own_numbers() -> None:
    x, y = (ti.field(ti.f64, needs_grad=True) for _ in range(2))
    ti.root.dense(ti.ij, (4, N)).place(x, x.grad, y, y.grad)
    loss = scalar()

    @ti.kernel
    def use():
        for i in range(N):
            loss[None] += x[2, i] * y[1, i]

    @ti.kernel
    def change():
        for j, i in x:
            x[j, i] = 3.0

    def run() -> None:
        use()
        change()
        use()

    start(x, y)
    assert kept(run, loss) == N
    check_gradient(run, loss, [x, y])


def test_kept_values_do_not_depend_on_the_number_of_launches() -> None:
    """Many launches that need the same, or one slice more each, are remembered as a few index regions."""
    x, loss = array(300, 4), scalar()

    @ti.kernel
    def step(t: ti.i32):
        for i in range(4):
            x[t, i] = 0.5 * x[t - 1, i] ** 2

    with ti.ad.Tape(loss) as tape:
        for t in range(1, 300):
            step(t)
        x[150, 2] = 1.0
        assert tape.copied_bytes == 8


def test_the_limit_counts_what_is_kept() -> None:
    ti.init(default_fp=ti.f64, memory_limit=5 * N * 8)
    x, loss = array(64, N), scalar()

    @ti.kernel
    def step(t: ti.i32):
        for i in range(N):
            x[(t + 1) % 2, i] = ti.sin(x[t % 2, i])

    with ti.ad.Tape(loss):
        for t in range(6):
            step(t)
    with pytest.raises(KernelMemoryError, match="640 bytes of overwritten values"), ti.ad.Tape(loss):
        for t in range(8):
            step(t)


def test_code_from_disk_keeps_as_little() -> None:
    """What a gradient needs is stored with its machine code."""

    def found() -> float:
        ti.init(default_fp=ti.f64)
        x, loss = array(6, N), scalar()

        @ti.kernel
        def step(t: ti.i32):
            for i in range(N):
                x[t, i] = ti.sin(x[t - 1, i]) + x[ti.max(t - 2, 0), i]

        def run() -> None:
            for t in range(1, 6):
                step(t)
            x[4, 3] = 2.0

        return kept(run, loss)

    assert found() == found() == 1


# ---- writes from outside


class Outside:
    """A sum of squares under a tape, and another thread that writes to what it needs."""

    def __init__(self) -> None:
        self.x, self.loss = array(N), scalar()
        x, loss = self.x, self.loss

        @ti.kernel
        def use():
            for i in x:
                loss[None] += x[i] ** 2

        @ti.kernel
        def change():
            for i in x:
                x[i] = 100.0

        self.use, self.change = use, change
        x.fill(3.0)

    def gradient(self, write: Callable[[], Any]) -> list[float]:
        with ti.ad.Tape(self.loss):
            self.use()
            worker = threading.Thread(target=write)
            worker.start()
            worker.join()
        return self.x.grad.to_numpy().tolist()


def test_launches_and_writes_of_other_threads_are_undone_on_the_way_back() -> None:
    q = Outside()
    assert q.gradient(q.change) == [6.0] * N
    assert q.x.to_numpy().tolist() == [100.0] * N
    q.x.fill(3.0)

    def write() -> None:
        q.x[2] = 50.0

    assert q.gradient(write) == [6.0] * N
    assert q.x[2] == 50.0
    q.x.fill(3.0)
    assert q.gradient(lambda: q.x.fill(7.0)) == [6.0] * N


def test_another_thread_with_a_tape_of_its_own() -> None:
    """It may not use what this one has recorded, whose gradient is right all the same."""
    q = Outside()
    other = scalar()
    refused: list[str] = []

    @ti.kernel
    def count():
        other[None] += q.x[0]

    def write() -> None:
        try:
            with ti.ad.Tape(other):
                q.change()
                count()
        except DifferentiationError as error:
            refused.append(str(error))

    with ti.ad.Tape(q.loss, clear_gradients=False):
        q.use()
        worker = threading.Thread(target=write)
        worker.start()
        worker.join()
        q.x.grad.fill(0)
    assert len(refused) == 1 and "two recordings of different threads or tasks" in refused[0]
    assert q.x.grad.to_numpy().tolist() == [6.0] * N
    assert ti.lang.session.state.session.watchers == []
