"""Derivatives in threads, asyncio tasks and generators: with memory of their own they give what they give one after the
other, bit for bit; where two recordings use the same memory at the same time, an error has the lines of both.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.driver import Specialisation
from tinote.errors import DifferentiationError
from tinote.lang.data import ndarrays
from tinote.lang.data.fields import Field
from tinote.lang.session import owners
from tinote.lang.session.state import OfBuffers
from tinote.runtime.owner import SESSION, current_owner, new_owner, present_owner

N = 8
THREADS = 4
Array1 = ti.types.ndarray(dtype=ti.f64, ndim=1)


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    ti.init(default_fp=ti.f64)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads meet at more places: at 1e-6 a sixth more often, in 1.6 times the time
    yield
    sys.setswitchinterval(interval)


class Own:
    """Fields and kernels of one thread: `x`, which is differentiated by, what it becomes, and a loss. `shared` is read
    by all.
    """

    def __init__(self, number: int, shared: Any) -> None:
        both = {"needs_grad": True, "needs_dual": True}
        self.x, self.y = x, y = [ti.field(ti.f64, N, **both) for _ in range(2)]
        self.residual = residual = ti.field(ti.f64, N, **both)
        self.loss = loss = ti.field(ti.f64, (), **both)
        self.start = np.random.default_rng(number).uniform(0.2, 1, N)
        x.from_numpy(self.start)

        @ti.kernel
        def begin():
            for i in x:
                y[i] = x[i] * shared[i]

        @ti.kernel
        def step():
            for i in y:
                y[i] = y[i] + 0.1 * ti.sin(y[i] * x[i])

        @ti.kernel
        def scaled(a: ti.f64):
            for i in y:
                y[i] *= a

        @ti.kernel
        def measure():
            for i in y:
                loss[None] += y[i] ** 2

        @ti.kernel
        def residuals():
            for i in y:
                residual[i] = y[i] ** 3 + y[i] - x[i]

        @ti.kernel
        def energy(v: Array1) -> ti.f64:
            found = 0.0
            for i in range(v.shape[0]):
                found += ti.sin(v[i] * shared[i]) * (i + 1)
            return found

        @ti.kernel
        def squares(v: Array1) -> ti.f64:
            found = 0.0
            for i in range(v.shape[0]):
                found += v[i] ** 2
            return found

        self.begin, self.step, self.scaled, self.measure = begin, step, scaled, measure
        self.residuals, self.energy, self.squares = residuals, energy, squares
        self.solve = ti.ad.implicit(residuals, y, residual)
        self.captured = ti.capture(self.differentiated)

        @ti.kernel
        def lift():
            for i in y:
                residual[i] = ti.sin(y[i]) + y[i]

        @ti.kernel
        def measure_lifted():
            for i in residual:
                loss[None] += residual[i] ** 2

        @ti.ad.grad_replaced
        def replaced():
            lift()

        @ti.ad.grad_for(replaced)
        def back():
            lift()
            lift.grad()

        @ti.ad.grad_replaced
        def measured():
            measure()

        @ti.ad.grad_for(measured)
        def back_from_loss():
            measure.grad()

        self.replaced, self.measure_lifted, self.measured = replaced, measure_lifted, measured

    def program(self) -> None:
        """An `if` keeps it from becoming a plan."""
        if self.x.shape:
            self.straight()

    def straight(self) -> None:
        self.begin()
        self.step()
        self.step()
        self.measure()

    def two_steps(self) -> None:
        self.step()
        self.step()

    def differentiated(self) -> None:
        with ti.ad.Tape(self.loss):
            self.begin()
            self.step()
            self.measure()


def in_tape(own: Own, program: Callable[[], object], **options: Any) -> np.ndarray:
    with ti.ad.Tape(own.loss, **options):
        program()
    return own.x.grad.to_numpy()


def by_tape(own: Own) -> Any:
    return in_tape(own, own.program)


def by_custom(own: Own) -> Any:
    def program() -> None:
        own.begin()
        own.replaced()
        own.measure_lifted()

    return in_tape(own, program)


def by_custom_function(own: Own) -> Any:
    def program() -> None:
        own.begin()
        own.replaced()
        own.measure_lifted()

    return ti.ad.grad(program, wrt=own.x, loss=own.loss)()


def by_tape_with_python(own: Own) -> Any:
    def program() -> None:
        own.begin()
        own.y[1] = own.y[2] * 2
        own.scaled(own.x[0])
        own.measure()

    return in_tape(own, program)


def by_checkpoint(own: Own) -> Any:
    def program() -> None:
        own.begin()
        ti.ad.checkpoint(lambda t: own.step(), 9, snapshots=2)
        own.measure()

    return in_tape(own, program)


def by_checkpoint_function(own: Own) -> Any:
    def program() -> None:
        own.begin()
        ti.ad.checkpoint(lambda t: own.step(), 9, snapshots=2)
        own.measure()

    return ti.ad.grad(program, wrt=own.x, loss=own.loss)()


def by_custom_loss(own: Own) -> Any:
    def program() -> None:
        own.begin()
        own.measured()

    return in_tape(own, program)


def by_checkpointed_loss(own: Own) -> Any:
    def step(t: int) -> None:
        own.begin()
        own.measure()

    return in_tape(own, lambda: ti.ad.checkpoint(step, 5, snapshots=2))


def by_implicit(own: Own) -> Any:
    def program() -> None:
        own.solve()
        own.measure()

    return in_tape(own, program)


def by_nested(own: Own) -> Any:
    slope = ti.ad.grad(own.energy)
    return ti.ad.grad(lambda v: own.squares(slope(v)))(own.start)


def by_kernel_gradient(own: Own) -> Any:
    own.loss[None] = 0
    own.y.fill(0)
    own.begin()
    own.measure()
    for one in (own.x, own.y):
        one.grad.fill(0)
    own.loss.grad[None] = 1
    own.measure.grad()
    own.begin.grad()
    return own.x.grad.to_numpy()


def by_fwd_mode(own: Own) -> Any:
    own.loss[None] = 0
    with ti.ad.FwdMode(loss=own.loss, param=own.x, seed=own.start):
        own.program()
    return own.loss.dual[None]


def by_several_seeds(own: Own) -> Any:
    own.loss[None] = 0
    with ti.ad.FwdMode(loss=own.y, param=own.x, seed=np.eye(N)[:3]) as mode:
        own.program()
    return mode.duals


def by_captured_step(own: Own) -> Any:
    own.captured()
    return own.x.grad.to_numpy()


def by_captured_step_in_tape(own: Own) -> Any:
    return in_tape(own, lambda: (own.begin(), own.steps(), own.measure()))


WAYS: dict[str, Callable[[Own], Any]] = {
    "a tape": by_tape,
    "a tape around Python": by_tape_with_python,
    "a tape that checks": lambda own: in_tape(own, own.program, grad_check=[own.x]),
    "a tape around a custom gradient": by_custom,
    "a function with a custom gradient": by_custom_function,
    "a tape around a loss with a custom gradient": by_custom_loss,
    "a tape around checkpoints": by_checkpoint,
    "a tape around checkpoints that add to the loss": by_checkpointed_loss,
    "a function with checkpoints": by_checkpoint_function,
    "a tape around an implicit function": by_implicit,
    "the gradient of a kernel": by_kernel_gradient,
    "forward mode": by_fwd_mode,
    "forward mode along several seeds": by_several_seeds,
    "grad": lambda own: ti.ad.grad(own.program, wrt=own.x, loss=own.loss)(),
    "grad of an array": lambda own: ti.ad.grad(own.energy)(own.start),
    "value_and_grad by a plan": lambda own: own.planned(),
    "vjp": lambda own: ti.ad.vjp(own.program, wrt=own.x, loss=own.y)(own.start),
    "jvp": lambda own: ti.ad.jvp(own.program, wrt=own.x, loss=own.y)(own.start),
    "hvp": lambda own: ti.ad.hvp(own.program, wrt=own.x, loss=own.loss)(own.start),
    "hvp of an array": lambda own: ti.ad.hvp(own.energy)(own.start, own.start),
    "jacobian, forward": lambda own: ti.ad.jacobian(own.program, wrt=own.x, loss=own.y, mode="forward")(),
    "jacobian, reverse": lambda own: ti.ad.jacobian(own.program, wrt=own.x, loss=own.y, mode="reverse")(),
    "sparse jacobian": lambda own: ti.ad.jacobian(own.program, wrt=own.x, loss=own.y, sparse=True)().toarray(),
    "a gradient of a gradient": by_nested,
    "vmap": lambda own: own.batched(np.stack([own.start, 2 * own.start])),
    "vmap of a gradient": lambda own: own.batched_gradient(np.stack([own.start, 2 * own.start])),
    "gradcheck": lambda own: ti.ad.gradcheck(own.program, own.x, own.loss).elements,
    "a captured step": by_captured_step,
    "a captured step in a tape": by_captured_step_in_tape,
}


def made(count: int) -> list[Own]:
    shared = ti.field(ti.f64, N)
    shared.from_numpy(np.linspace(0.5, 1.5, N))
    found = [Own(number, shared) for number in range(count)]
    for own in found:
        own.planned = ti.ad.value_and_grad(own.straight, wrt=own.x, loss=own.loss)
        own.batched, own.batched_gradient = ti.ad.vmap(own.energy), ti.ad.vmap(ti.ad.grad(own.energy))
        own.steps = ti.capture(own.two_steps)
    return found


def flat(found: Any) -> bytes:
    if isinstance(found, tuple | list):
        return b"".join(map(flat, found))
    return found.tobytes() if isinstance(found, np.ndarray) else repr(found).encode()


def left(own: Own) -> bytes:
    return b"".join([one.to_numpy().tobytes() for one in (own.x, own.y, own.residual, own.loss)])


def again_and_again(own: Own, way: Callable[[Own], Any], count: int) -> set[bytes]:
    found = set()
    for _ in range(count):
        own.x.from_numpy(own.start)
        own.y.fill(0)
        own.residual.fill(0)
        own.loss[None] = 0
        found.add(flat(way(own)) + left(own))
    return found


SLOW = (
    "a tape that checks",
    "sparse jacobian",
    "gradcheck",
    "a tape around checkpoints",
    "a tape around checkpoints that add to the loss",
    "a function with checkpoints",
)


def count_of(name: str) -> int:
    return 6 if name in SLOW else 25


@pytest.mark.parametrize("name", WAYS)
def test_a_pool_gives_what_one_thread_gives(name: str) -> None:
    way = WAYS[name]
    every = made(THREADS)
    wanted = [again_and_again(own, way, 6) for own in every]
    assert all(len(one) == 1 for one in wanted)
    every = made(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda own: again_and_again(own, way, count_of(name)), every))
    assert found == wanted


@pytest.mark.parametrize("names", [("grad", "a tape", "hvp", "forward mode"), tuple(WAYS)], ids=["four", "all"])
def test_different_ways_next_to_each_other(names: tuple[str, ...]) -> None:
    def work(own: Own, first: int) -> list[bytes]:
        found = []
        for k in range(len(names)):
            name = names[(first + k) % len(names)]
            (one,) = again_and_again(own, WAYS[name], 3)
            found.append(one)
        return found

    wanted = [work(own, k) for k, own in enumerate(made(THREADS))]
    every = made(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, every, range(THREADS))) == wanted


@pytest.mark.parametrize("name", WAYS)
def test_another_thread_counts_meanwhile(name: str) -> None:
    way = WAYS[name]
    (own,) = made(1)
    counts, marks = ti.field(ti.i64, 256), ti.field(ti.f64, 4, needs_grad=True, needs_dual=True)

    @ti.kernel
    def count():
        for i in counts:
            counts[i] += 1

    count()
    counts.fill(0)
    wanted = again_and_again(own, way, 4)
    stop, done = threading.Event(), [0]

    def work() -> None:
        while not stop.is_set():
            count()
            done[0] += 1
            marks[1] = done[0]
            marks.grad[2] = marks.dual[3] = done[0]

    thread = threading.Thread(target=work)
    thread.start()
    try:
        found = again_and_again(own, way, count_of(name))
    finally:
        stop.set()
        thread.join()
    assert found == wanted
    assert (counts.to_numpy() == done[0]).all()
    assert marks[1] == done[0]


def test_what_is_left_for_others_to_read_stays() -> None:
    """Tapes and blocks of forward mode of two threads, one after the other."""
    a, b = made(2)
    turns = [threading.Event(), threading.Event()]
    found: list[Any] = []

    def first() -> None:
        by_tape(a)
        by_fwd_mode(a)
        a.y.grad[3] = 5
        turns[0].set()
        assert turns[1].wait(60)
        found.extend([a.x.grad.to_numpy(), a.loss.dual[None]])

    def second() -> None:
        assert turns[0].wait(60)
        by_tape(b)
        by_fwd_mode(b)
        turns[1].set()

    wanted = [by_tape(a), by_fwd_mode(a)]
    threads = [threading.Thread(target=one) for one in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0].tobytes() == wanted[0].tobytes()
    assert found[1] == wanted[1]


def test_what_an_ended_thread_has_computed_is_cleared_as_any() -> None:
    a, b = made(2)
    thread = threading.Thread(target=lambda: by_tape(a))
    thread.start()
    thread.join()
    assert a.x.grad.to_numpy().any()
    by_tape(b)
    assert not a.x.grad.to_numpy().any()


@pytest.mark.parametrize("ends", ["between two tapes", "within a tape"])
@pytest.mark.parametrize("name", ["a tape", "forward mode"])
def test_what_a_thread_that_ends_has_left_is_not_added_to(name: str, ends: str) -> None:
    a, b = made(2)
    way, wanted = WAYS[name], flat(WAYS[name](made(2)[1]))
    computed, stop = threading.Event(), threading.Event()

    def work() -> None:
        way(b)
        b.loss.dual.fill(5)
        computed.set()
        assert stop.wait(60)

    def end() -> None:
        stop.set()
        thread.join()

    thread = threading.Thread(target=work)
    thread.start()
    assert computed.wait(60)
    by_tape(a)  # what it leaves alone is known from now on
    if ends == "between two tapes":
        end()
        b.loss[None] = 0
        assert flat(way(b)) == wanted
        return
    b.loss[None] = 0
    if name == "a tape":
        with ti.ad.Tape(b.loss):
            end()
            b.program()
        assert flat(b.x.grad.to_numpy()) == wanted
    else:
        with ti.ad.FwdMode(loss=b.loss, param=b.x, seed=b.start):
            end()
            b.program()
        assert flat(b.loss.dual[None]) == wanted


def meanwhile(act: Callable[[], object]) -> Callable[[], None]:
    """Let another thread do something, for some time; gives what waits for its end."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(0.2)  # it may have to wait for this one
    return thread.join


def test_a_dual_comes_into_being_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ti.field(ti.f64, N, needs_grad=True)
    make, others, found = Field._make_dense_like, list[Callable[[], None]](), list[Any]()

    def ensure() -> None:
        x.grad.ensure_dual()
        found.append(x.grad.dual)

    def slowly(self: Field, other: Field) -> None:
        if not others:
            others.append(meanwhile(ensure))
        make(self, other)

    monkeypatch.setattr(Field, "_make_dense_like", slowly)
    ensure()
    others[0]()
    assert found[0] is found[1] is x.grad.dual


def test_an_array_is_bound_with_the_dual_that_it_gets_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    v, total = ti.ndarray(ti.f64, N, needs_grad=True), ti.field(ti.f64, (), needs_dual=True)
    address, others = ndarrays._address, list[Callable[[], None]]()

    @ti.kernel
    def add(a: Array1):
        for i in a:
            total[None] += 3 * a[i]

    def slowly(field: Field) -> int:
        if not others:
            others.append(meanwhile(v.ensure_dual))
        return address(field)

    monkeypatch.setattr(ndarrays, "_address", slowly)
    add(v)
    others[0]()
    with ti.ad.FwdMode(loss=total, param=v, seed=np.ones(N)):
        add(v)
    assert total.dual[None] == 3 * N


def test_code_for_a_field_that_gets_a_dual_meanwhile_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    x, total = [ti.field(ti.f64, (), needs_dual=True) for _ in range(2)]
    weight = ti.field(ti.f64, (), needs_grad=True)
    x[None], weight[None] = 2, 5
    compile_once, others = Specialisation._compile_once, list[Callable[[], None]]()

    @ti.kernel
    def add():
        total[None] = x[None] * weight[None]

    def slowly(self: Specialisation, request: Any) -> Any:
        made = compile_once(self, request)
        if request.has_tangents and not others:

            def as_a_launch_does() -> None:
                weight.ensure_dual()
                self._look_at_duals()

            others.append(meanwhile(as_a_launch_does))
        return made

    monkeypatch.setattr(Specialisation, "_compile_once", slowly)
    with ti.ad.FwdMode(loss=total, param=x, seed=1):
        add()
    others[0]()
    assert ti.ad.jvp(add, wrt=weight, loss=total)(1.0)[1] == 2


def test_what_is_known_of_buffers_is_counted_over_while_it_grows() -> None:
    fields = [ti.field(ti.f64, ()) for _ in range(20)]
    known = OfBuffers({field.buffer: number for number, field in enumerate(fields[:10])})
    for (buffer, number), further in zip(known.items(), fields[10:], strict=True):
        known[further.buffer] = -1
        assert buffer is fields[number].buffer
    assert sorted(known.values()) == [-1] * 10 + list(range(10))


def test_a_module_that_another_thread_is_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncio", ModuleType("asyncio"))
    assert present_owner() is SESSION


@pytest.mark.parametrize("name", ["a tape", "forward mode", "grad", "hvp", "the gradient of a kernel"])
def test_tasks(name: str) -> None:
    way = WAYS[name]
    wanted = [flat(way(own)) for own in made(3)]
    every = made(3)

    async def work(own: Own) -> list[bytes]:
        found = []
        for _ in range(10):
            way(own)
            await asyncio.sleep(0)
            # What a tape or a block has left is there until the same task goes on.
            if name == "a tape":
                found.append(own.x.grad.to_numpy().tobytes())
            elif name == "forward mode":
                found.append(flat(own.loss.dual[None]))
            else:
                found.append(flat(way(own)))
        return found

    async def main() -> list[list[bytes]]:
        return await asyncio.gather(*map(work, every))

    assert asyncio.run(main()) == [[one] * 10 for one in wanted]


def test_tasks_with_open_blocks() -> None:
    wanted = [(by_tape(own).tobytes(), by_fwd_mode(own)) for own in made(3)]
    every = made(3)

    async def work(own: Own) -> tuple[bytes, float]:
        with ti.ad.Tape(own.loss):
            await asyncio.sleep(0)
            own.begin()
            await asyncio.sleep(0)
            own.step()
            own.step()
            await asyncio.sleep(0)
            own.measure()
        await asyncio.sleep(0)
        gradient = own.x.grad.to_numpy().tobytes()
        own.loss[None] = 0
        with ti.ad.FwdMode(loss=own.loss, param=own.x, seed=own.start):
            await asyncio.sleep(0)
            own.begin()
            own.step()
            await asyncio.sleep(0)
            own.step()
            own.measure()
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return gradient, own.loss.dual[None]

    async def main() -> list[Any]:
        return await asyncio.gather(*map(work, every))

    assert asyncio.run(main()) == wanted


# ---- the same memory


def place_of(error: BaseException) -> tuple[int, list[int]]:
    assert isinstance(error, DifferentiationError)
    return error.span.line, [note.span.line for note in error.notes]


def at_the_same_time(*programs: Callable[[threading.Barrier], object]) -> list[BaseException]:
    """The errors of programs that wait for each other."""
    barrier, errors = threading.Barrier(len(programs), timeout=30), list[BaseException]()

    def run(program: Callable[[threading.Barrier], object]) -> None:
        try:
            program(barrier)
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            barrier.abort()
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_two_tapes_over_the_same_values() -> None:
    (own,) = made(1)
    other = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def measure():
        for i in own.y:
            other[None] += own.y[i]

    def first(barrier: threading.Barrier) -> None:
        with ti.ad.Tape(own.loss):  # first
            own.begin()
            barrier.wait()
            barrier.wait()

    def second(barrier: threading.Barrier) -> None:
        barrier.wait()
        with ti.ad.Tape(other):  # second
            measure()
            barrier.wait()

    (error,) = at_the_same_time(first, second)
    assert "'field' is used by two recordings" in str(error) or "is used by two recordings" in str(error)
    line, notes = place_of(error)
    assert (line, notes) == (line_of("second"), [line_of("first")])


@pytest.mark.parametrize("by_python", [False, True])
def test_a_loss_that_another_thread_writes_has_no_gradient(by_python: bool) -> None:
    """What it launches there is not recorded; in a copy of the context it is."""
    x, loss = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.fill(3)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2

    def run(target: Callable[[], Any]) -> None:
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()

    refused = pytest.raises(DifferentiationError, match=r"'loss' is written in another thread")
    with refused as caught, ti.ad.Tape(loss):  # alone
        run((lambda: loss.fill(1)) if by_python else measure)
    assert place_of(caught.value) == (line_of("alone"), [])
    with ti.ad.Tape(loss):
        run(partial(copy_context().run, measure))
    assert x.grad.to_numpy().tolist() == [6.0] * N
    with ti.ad.Tape(loss):
        run(lambda: loss.fill(0))
        measure()
    assert x.grad.to_numpy().tolist() == [6.0] * N


def test_values_that_another_thread_computes_are_constants_and_warned_of() -> None:
    x, y, z = [ti.field(ti.f64, N, needs_grad=True) for _ in range(3)]
    loss = ti.field(ti.f64, (), needs_grad=True)
    x.fill(3)

    @ti.kernel
    def square(k: ti.i32):
        y[k] = x[k] ** 2

    @ti.kernel
    def unrelated():
        for i in x:
            z[i] = x[i]

    @ti.kernel
    def measure():
        for i in y:
            loss[None] += y[i] + x[i]

    def gradient(work: Callable[[int], Any]) -> tuple[list[float], list[str]]:
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            with ThreadPoolExecutor(2) as pool, ti.ad.Tape(loss):
                list(pool.map(work, range(N)))
                measure()
        return x.grad.to_numpy().tolist(), [str(one.message) for one in reported]

    found, reported = gradient(square)
    assert found == [1.0] * N
    assert len(reported) == 1
    assert "was written in another thread or task" in reported[0]
    assert "def square" in reported[0]
    assert gradient(lambda k: unrelated()) == ([1.0] * N, [])
    assert gradient(lambda k: y.__setitem__(k, 2.0)) == ([1.0] * N, [])


def test_two_tapes_over_the_same_gradient() -> None:
    (own,) = made(1)
    losses = [ti.field(ti.f64, (), needs_grad=True) for _ in range(2)]

    def of(loss: Any) -> Any:
        @ti.kernel
        def measure():
            for i in own.x:
                loss[None] += own.x[i] ** 2

        return measure

    kernels = list(map(of, losses))

    def program(k: int) -> Callable[[threading.Barrier], None]:
        def run(barrier: threading.Barrier) -> None:
            with ti.ad.Tape(losses[k]):  # both
                kernels[k]()
                barrier.wait()

        return run

    (error,) = at_the_same_time(program(0), program(1))
    assert "the gradient of " in str(error)
    assert place_of(error) == (line_of("both"), [line_of("both")])


def test_two_blocks_of_forward_mode_over_the_same_dual() -> None:
    (own,) = made(1)

    def program(barrier: threading.Barrier) -> None:
        with ti.ad.FwdMode(loss=own.loss, param=own.x, seed=own.start):  # forward
            barrier.wait()

    (error,) = at_the_same_time(program, program)
    assert "the dual of " in str(error)
    assert place_of(error) == (line_of("forward"), [line_of("forward")])


def differentiated(name: str, own: Own, program: Callable[[], object]) -> Any:
    """The derivative of a program that leaves its result in `own.loss`: a sum over `own.x`."""
    own.loss[None] = 0
    ones = np.ones(N)
    if name == "forward mode":
        with ti.ad.FwdMode(loss=own.loss, param=own.x, seed=ones):
            program()
        return own.loss.dual[None]
    if name == "a tape":
        return in_tape(own, program).sum()
    if name == "jvp":
        return ti.ad.jvp(program, wrt=own.x, loss=own.loss)(ones)[1]
    if name == "several directions":
        return ti.ad.jacobian(program, wrt=own.x, loss=own.loss, mode="forward")().sum()
    if name == "hvp":
        return ti.ad.value_and_grad_and_hvp(program, wrt=own.x, loss=own.loss)(ones)[1].sum()
    return ti.ad.grad(program, wrt=own.x, loss=own.loss)().sum()


DERIVATIVES = ("forward mode", "several directions", "jvp", "a tape", "grad", "hvp")


@pytest.mark.parametrize(
    ("first", "second", "by_python"),
    [*[(*pair, False) for pair in product(DERIVATIVES, DERIVATIVES)], *[(one, one, True) for one in DERIVATIVES]],
)
def test_two_derivatives_through_the_same_values(first: str, second: str, by_python: bool) -> None:
    """A field without gradient and dual, which both write and read: a result is right, or refused with both lines."""
    both = ti.field(ti.f64, N)
    programs: list[Callable[[Callable[[], object]], Callable[[], None]]] = []
    every = made(2)
    for own in every:

        def program(between: Callable[[], object], own: Own = own) -> Callable[[], None]:
            x, loss = own.x, own.loss

            @ti.kernel
            def fill():
                for i in x:
                    both[i] = x[i] ** 2

            @ti.kernel
            def measure():
                for i in x:
                    loss[None] += both[i] * x[i]

            def run() -> None:
                if by_python:
                    both.fill(own.start[0])
                else:
                    fill()
                between()
                measure()

            return run

        programs.append(program)
    wanted = [
        differentiated(name, own, program(lambda: None))
        for name, own, program in zip((first, second), every, programs, strict=True)
    ]
    has_filled, is_over = threading.Event(), threading.Event()
    found: list[Any] = [None, None]

    def waits() -> None:
        has_filled.set()
        assert is_over.wait(60)

    def work(number: int, between: Callable[[], object]) -> None:
        try:
            found[number] = differentiated((first, second)[number], every[number], programs[number](between))
        except DifferentiationError as error:
            found[number] = error

    def work_meanwhile() -> None:
        assert has_filled.wait(60)
        work(1, lambda: None)
        is_over.set()

    threads = [threading.Thread(target=work, args=(0, waits)), threading.Thread(target=work_meanwhile)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    errors = [one for one in found if isinstance(one, DifferentiationError)]
    assert errors
    for error in errors:
        assert "is used by two recordings" in error.message
        line, notes = place_of(error)
        assert line > 0 < notes[0]
    for one, right in zip(found, wanted, strict=True):
        assert isinstance(one, DifferentiationError) or np.isclose(one, right)


def test_functions_take_turns_with_a_gradient_of_both() -> None:
    """They leave nothing in the gradient of a field that both only read."""
    (own,) = made(1)
    weights = ti.field(ti.f64, N, needs_grad=True)
    weights.from_numpy(own.start)
    weights.grad.fill(3)

    @ti.kernel
    def energy(v: Array1) -> ti.f64:
        found = 0.0
        for i in range(v.shape[0]):
            found += ti.sin(v[i]) * weights[i]
        return found

    def gradient(v: np.ndarray) -> Any:
        return ti.ad.grad(lambda one: energy(one) if v.size else None)(v)

    inputs = [np.random.default_rng(k).random(N) for k in range(200)]
    wanted = [gradient(one).tobytes() for one in inputs]
    with ThreadPoolExecutor(THREADS) as pool:
        assert [one.tobytes() for one in pool.map(gradient, inputs)] == wanted
    assert (weights.grad.to_numpy() == 3).all()


def test_one_derivative_of_fields_in_several_threads_is_an_error_or_right() -> None:
    (own,) = made(1)
    gradient = ti.ad.grad(own.straight, wrt=own.x, loss=own.loss)
    for _ in range(6):
        wanted = gradient().tobytes()
    wrong, refused = [], []
    end = time.monotonic() + 1

    def work(_: int) -> None:
        while time.monotonic() < end:
            try:
                if gradient().tobytes() != wanted:
                    wrong.append(1)
            except DifferentiationError as error:
                refused.append(place_of(error))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    assert not wrong
    assert all(line > 0 and notes and notes[0] > 0 for line, notes in refused)
    assert gradient().tobytes() == wanted


def test_forward_mode_in_a_tape_in_a_thread() -> None:
    """Over fields that the main thread has made, and whose duals it has computed."""
    own = made(1)[0]
    x, y = own.x, own.y
    total = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def cubes():
        for i in x:
            y[i] = x[i] ** 3

    @ti.kernel
    def use_duals():
        for i in x:
            total[None] += y.dual[i] * x[i]

    def gradient() -> Any:
        y.dual.fill(7)
        with ti.ad.Tape(total):
            with ti.ad.FwdMode(loss=y, param=x, seed=np.ones(N)):
                cubes()
            use_duals()
        return x.grad.to_numpy()

    wanted = gradient()
    np.testing.assert_allclose(wanted, 9 * own.start**2)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            assert pool.submit(gradient).result().tobytes() == wanted.tobytes()
            assert gradient().tobytes() == wanted.tobytes()


# ---- generators


@pytest.mark.parametrize("inner", ["grad", "a tape"])
@pytest.mark.parametrize("name", ["jvp", "grad", "a tape", "forward mode"])
def test_nested_in_a_task_and_in_a_thread(name: str, inner: str) -> None:
    """A task within a derivative is part of it, and in a thread fields of the main thread's are like any others."""
    own = made(1)[0]
    x, total = own.x, ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def use(slopes: Array1):
        for i in x:
            total[None] += ti.sin(slopes[i]) * x[i]

    @ti.kernel
    def use_gradients():
        for i in x:
            total[None] += ti.sin(x.grad[i]) * x[i]

    def part() -> None:
        if inner == "grad":
            use(ti.ad.grad(own.program, wrt=x, loss=own.loss)())
            return
        with ti.ad.Tape(own.loss):
            own.program()
        use_gradients()

    async def in_task() -> None:
        part()

    def derivative(program: Callable[[], object]) -> Any:
        total[None] = 0
        if name == "jvp":
            return ti.ad.jvp(program, wrt=x, loss=total)(own.start)
        if name == "grad":
            return ti.ad.grad(program, wrt=x, loss=total)()
        if name == "a tape":
            with ti.ad.Tape(total):
                program()
            return x.grad.to_numpy()
        with ti.ad.FwdMode(loss=total, param=x, seed=own.start):
            program()
        return total.dual[None]

    wanted = flat(derivative(part))
    with ThreadPoolExecutor(1) as pool:
        assert flat(pool.submit(derivative, part).result()) == wanted
        assert flat(derivative(lambda: asyncio.run(in_task()))) == wanted


def test_a_recording_of_the_same_thread_is_not_waited_for() -> None:
    own = made(1)[0]
    found: list[Any] = []

    def measured() -> None:
        own.begin()
        # In a context of its own: a derivative of which this one knows nothing.
        found.append(Context().run(new_owner_runs, lambda: ti.ad.jvp(own.program, wrt=own.x, loss=own.y)(own.start)))
        own.measure()

    def new_owner_runs(act: Callable[[], Any]) -> Any:
        current_owner.set(new_owner())
        try:
            return act()
        except DifferentiationError as error:
            return error

    ti.ad.jvp(measured, wrt=own.x, loss=own.loss)(own.start)
    assert isinstance(found[0], DifferentiationError)
    assert "is used by two recordings" in found[0].message


def test_waiting_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "PATIENCE", 0.2)
    own = made(1)[0]
    other = made(1)[0]
    found: list[Any] = []

    def derivative(program: Callable[[], object]) -> Any:
        return ti.ad.jvp(program, wrt=own.x, loss=own.loss)(own.start)

    def waits() -> None:
        try:
            found.append(derivative(other.begin))
        except DifferentiationError as error:
            found.append(error)

    def measured() -> None:
        thread = threading.Thread(target=waits)
        thread.start()
        thread.join()
        own.begin()
        own.measure()

    derivative(measured)
    assert isinstance(found[0], DifferentiationError)
    assert "the dual of" in found[0].message


def test_generators_one_after_the_other() -> None:
    wanted = [flat(WAYS["grad"](own)) for own in made(2)]

    def work(own: Own) -> Iterator[bytes]:
        for _ in range(3):
            yield flat(WAYS["grad"](own))
            gradient = by_tape(own)
            by_fwd_mode(own)
            yield gradient.tobytes()

    a, b = map(work, made(2))
    for _ in range(6):
        assert [next(a), next(b)] == wanted


@pytest.mark.parametrize("name", ["tape", "forward"])
def test_generators_whose_blocks_do_not_nest(name: str) -> None:
    def work(own: Own) -> Iterator[None]:
        if name == "tape":
            with ti.ad.Tape(own.loss):  # generator tape
                own.begin()
                yield
                own.measure()
        else:
            with ti.ad.FwdMode(loss=own.loss, param=own.x, seed=own.start):  # generator forward
                own.begin()
                yield
                own.measure()
        yield

    a, b = map(work, made(2))
    next(a)
    next(b)
    for one in (a, b):
        with pytest.raises(DifferentiationError, match="the block ends") as error:
            next(one)
        assert error.value.span.line == line_of(f"generator {name}")
    # Nothing records any longer.
    own = made(1)[0]
    assert by_tape(own).tobytes() == flat(WAYS["grad"](own))


@pytest.mark.parametrize("inner", ["tape", "forward"])
@pytest.mark.parametrize("outer", ["tape", "forward"])
def test_a_block_ends_after_those_that_were_opened_in_it(outer: str, inner: str) -> None:
    first, second = made(2)

    def block(kind: str, own: Own) -> Any:
        return ti.ad.Tape(own.loss) if kind == "tape" else ti.ad.FwdMode(loss=own.loss, param=own.x, seed=own.start)

    blocks = block(outer, first), block(inner, second)
    for one in blocks:
        one.__enter__()
    with pytest.raises(DifferentiationError, match="the block ends before another one") as error:
        blocks[0].__exit__(None, None, None)
    assert [note.text for note in error.value.notes] == ["the other one"]
    with pytest.raises(DifferentiationError, match="the block ends"):
        blocks[1].__exit__(None, None, None)
    # In the right order, and after an error in either block, nothing is wrong.
    for failing in (0, 1, 2):
        with contextlib.ExitStack() as stack:
            if failing:
                stack.enter_context(contextlib.suppress(ZeroDivisionError))
            for depth, (kind, own) in enumerate([(outer, first), (inner, second)]):
                if failing == depth:
                    stack.enter_context(contextlib.suppress(ZeroDivisionError))
                stack.enter_context(block(kind, own))
                own.begin()
                own.measure()
            if failing:
                raise ZeroDivisionError
    own = made(1)[0]
    assert by_tape(own).tobytes() == flat(WAYS["grad"](own))


def line_of(mark: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        (found,) = [k for k, line in enumerate(file, 1) if line.rstrip().endswith(f":  # {mark}")]
    return found
