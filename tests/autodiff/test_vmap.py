"""`ti.ad.vmap`: a batch gives what a loop over its members gives, bit for bit; what cannot be is refused."""

from __future__ import annotations

import linecache
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import CaptureError, DifferentiationError, KernelIndexError, KernelZeroDivisionError
from tinote.lang.capture.batch import Batch
from tinote.lang.session.state import session

COUNT, MEMBERS = 5, 13
Worker = Callable[..., Any]
array = ti.types.ndarray(dtype=ti.f64, ndim=1)
single = ti.types.ndarray(dtype=ti.f32, ndim=2)


class Library:
    """Fields and kernels, and functions of one member, each with its arguments and their axes."""

    def __init__(self, threads: int = 1) -> None:
        ti.init(num_threads=threads, default_fp=ti.f64, random_seed=3)
        x = self.x = ti.field(ti.f64, shape=COUNT, needs_grad=True, needs_dual=True)
        y = self.y = ti.field(ti.f32, shape=(COUNT, 2), needs_grad=True)
        v = self.v = ti.Vector.field(2, ti.f64, shape=COUNT)
        loss = self.loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
        n = self.n = ti.field(ti.i32, shape=())
        z = self.z = ti.field(ti.f64, shape=COUNT, needs_grad=True, needs_dual=True)
        self.fields = [x, y, v, loss, n, z, x.grad, y.grad, loss.grad, x.dual, loss.dual, z.dual]
        numbers = np.random.default_rng(1)
        self.start = [numbers.uniform(0.2, 1, f.to_numpy().shape).astype(f.to_numpy().dtype) for f in self.fields]

        @ti.kernel
        def potential(k: ti.f64, a: array) -> ti.f64:
            s = 0.0
            for i in range(a.shape[0]):
                s += 0.5 * k * a[i] ** 2 + ti.sin(a[i] * x[0])
            return s

        @ti.kernel
        def energy():
            for i in x:
                loss[None] += ti.exp(x[i]) * x[(i + 1) % COUNT] + y[i, 0]

        @ti.kernel
        def move(dt: ti.f64):
            for i in x:
                v[i] += ti.Vector([dt * x[i], y[i, 1]])
                x[i] += dt * v[i].x

        @ti.kernel
        def scale(a: array, by: ti.f64):
            for i in a:
                a[i] = a[i] * by + x[i]

        @ti.kernel
        def turn(a: single):
            for i, j in a:
                a[i, j] = ti.sin(a[i, j]) + y[i, j]

        @ti.kernel
        def noise():
            for i in x:
                x[i] += ti.random()

        @ti.kernel
        def squares():
            for i in x:
                z[i] = x[i] ** 2 * x[(i + 2) % COUNT]

        @ti.kernel
        def element(k: ti.i32) -> ti.f64:
            return x[k]

        @ti.kernel
        def centre(a: array) -> ti.math.vec2:
            return ti.Vector([a[0] + x[0], a[1]])

        @ti.kernel
        def swung(a: array) -> ti.f64:
            p, w = a[0], a[1]
            for _ in range(20):
                w -= 0.1 * ti.sin(p)
                p += 0.1 * w
            return p * p + w

        self.potential, self.element, self.scale, self.squares = potential, element, scale, squares
        draw = np.random.default_rng(2)
        arrays, numbers = draw.uniform(0.5, 1, (MEMBERS, COUNT)), draw.uniform(0.5, 2, MEMBERS)
        singles = draw.uniform(0.5, 1, (MEMBERS, COUNT, 2)).astype(np.float32)

        def simulate(dt: float) -> None:
            loss[None] = 0
            move(dt)
            energy()

        def stepped(a: Any, dt: float) -> Any:
            x.from_numpy(a)
            simulate(dt)
            return loss[None], v.to_numpy(), x.to_numpy()

        def written(a: Any, by: float) -> Any:
            scale(a, by)
            scale(a, 2 * by)
            return a

        def decides(a: Any, k: float) -> Any:
            value = potential(k, a)
            if value > 3:
                scale(a, 0.5)
                return value, a
            if a[0] > 0.7:
                return 2 * value + a[1], a
            return value / k, a

        def counts(k: int, by: float) -> Any:
            n[None] += k
            x[0] = x[0] + n[None] * by
            return n[None], n[None] > 4, x[0], k // 2, {"by": [by - 1, None, "text"]}

        def drawn(a: Any) -> Any:
            noise()
            noise()
            return x.to_numpy(), potential(1.0, a)

        def held(a: Any, options: Any, field: Any, name: str) -> Any:
            field[0] = options["by"]
            scale(a[0], options["by"])
            return a, potential(options["by"], a[1]), name

        def vector(a: Any) -> Any:
            c = centre(a)
            return c, c.x - c.y

        def descent(a: Any) -> Any:
            g = ti.ad.grad(potential, argnums=1)(2.0, a)
            scale(g, -0.1)
            value, h = ti.ad.value_and_grad(potential, argnums=1)(1.0, g)
            return value, g, h

        def product(a: Any, k: float) -> Any:
            return potential(k, a) * potential(2 * k, a) - 3 * swung(a) / k

        ad = ti.ad
        by_fields = {"wrt": x, "loss": loss}

        def from_array(derivative: Any) -> Worker:
            def run(a: Any, *args: Any) -> Any:
                x.from_numpy(a)
                return derivative(*args)

            return run

        #: name: function, arguments, axes
        self.members: dict[str, tuple[Worker, tuple[Any, ...], Any]] = {
            "a kernel": (potential, (numbers, arrays), 0),
            "one argument that all share": (potential, (1.5, arrays), (None, 0)),
            "an array that all share": (potential, (numbers, arrays[0]), (0, None)),
            "fields": (stepped, (arrays, numbers), 0),
            "an array that is written": (written, (arrays, numbers), 0),
            "a shared array that is written": (written, (arrays[0], numbers), (None, 0)),
            "another axis": (written, (np.asfortranarray(arrays.T), numbers), (1, 0)),
            "the last axis": (written, (arrays.T, numbers), (-1, 0)),
            "conditions": (decides, (arrays, 3 * numbers), 0),
            "integers, truth values, containers": (counts, (np.arange(MEMBERS, dtype=np.int16), numbers), 0),
            "single precision": (lambda a: (turn(a), a)[1], (singles,), 0),
            "random numbers": (drawn, (arrays,), 0),
            "trees": (held, ([arrays, arrays[::-1]], {"by": numbers}, self.z, "one"), (0, {"by": 0}, None, None)),
            "vectors": (vector, (arrays,), 0),
            "a gradient": (ad.grad(potential, argnums=(0, 1)), (numbers, arrays), 0),
            "a value and a gradient": (ad.value_and_grad(potential, argnums=1), (numbers, arrays), 0),
            "a gradient of a loop": (ad.value_and_grad(swung), (arrays,), 0),
            "a gradient of a field": (from_array(ad.grad(simulate, wrt=x, loss=loss)), (arrays, numbers), 0),
            "a gradient of numbers": (ad.grad(product, argnums=(0, 1)), (arrays, numbers), 0),
            "a gradient in single precision": (
                from_array(ad.value_and_grad(simulate, wrt=(x, y), loss=loss)), (arrays, numbers), 0
            ),
            "gradients in a function": (descent, (arrays,), 0),
            "vjp": (ad.vjp(potential, argnums=(0, 1)), (numbers, numbers, arrays), 0),
            "vjp of a field": (from_array(ad.vjp(squares, wrt=x, loss=z)), (arrays, arrays), 0),
            "jvp": (ad.jvp(potential, argnums=1), (arrays[::-1], numbers, arrays), 0),
            "jvp of a field": (from_array(ad.jvp(squares, wrt=x, loss=z)), (arrays, arrays), 0),
            "a Jacobian": (from_array(ad.jacobian(squares, wrt=x, loss=z)), (arrays,), 0),
            "a Jacobian in reverse": (ad.jacobian(potential, argnums=1, mode="reverse"), (numbers, arrays), 0),
            "a Jacobian of a number": (ad.jacobian(potential, argnums=(0, 1), mode="forward"), (numbers, arrays), 0),
            "hvp": (ad.hvp(potential, argnums=1), (arrays[::-1], numbers, arrays), 0),
            "hvp of numbers": (
                ad.value_and_grad_and_hvp(potential, argnums=(0, 1)), ((numbers, arrays[::-1]), numbers, arrays), 0
            ),
            "hvp of a field": (from_array(ad.hvp(energy, **by_fields)), (arrays, arrays[::-1]), 0),
        }  # fmt: skip

    def begin(self) -> None:
        session.launches = 0
        for field, numbers in zip(self.fields, self.start, strict=True):
            field.from_numpy(numbers)

    def state(self) -> list[bytes]:
        return [field.to_numpy().tobytes() for field in self.fields]


def of_member(value: Any, axis: Any, member: int) -> Any:
    """What one member has of an argument: a copy."""
    if isinstance(value, list | tuple):
        axes = axis if isinstance(axis, list | tuple) else [axis] * len(value)
        return type(value)([of_member(one, a, member) for one, a in zip(value, axes, strict=True)])
    if isinstance(value, dict):
        return {
            key: of_member(one, axis[key] if isinstance(axis, dict) else axis, member) for key, one in value.items()
        }
    if axis is None:
        return value.copy() if isinstance(value, np.ndarray) else value
    found = np.take(value, member, axis)
    return found.item() if found.ndim == 0 else found.copy()


def loop(library: Library, f: Worker, args: Sequence[Any], axes: Any) -> list[Any]:
    """The same member by member."""
    axes = axes if isinstance(axes, tuple) else (axes,) * len(args)
    found = []
    launches = 0
    for member in range(MEMBERS):
        library.begin()
        session.launches = launches
        found.append(bits(f(*[of_member(value, axis, member) for value, axis in zip(args, axes, strict=True)])))
        launches = session.launches
    return found


def bits(value: Any, member: int | None = None) -> Any:
    """A value by its bits; of a batch, what one member has of it."""
    if isinstance(value, tuple | list):
        return [bits(one, member) for one in value]
    if isinstance(value, dict):
        return {key: bits(one, member) for key, one in value.items()}
    if value is None or isinstance(value, str):
        return value
    array = np.asarray(getattr(value, "values", value))
    array = array if member is None else array[member]
    return array.shape, array.dtype.str, array.tobytes()


NAMES = list(Library().members)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_batches_are_what_a_loop_gives(name: str, threads: int) -> None:
    library = Library(threads)
    f, args, axes = library.members[name]
    library.begin()
    before = [one.copy() for one in args if isinstance(one, np.ndarray)]
    wanted = loop(library, f, args, axes)
    library.begin()
    state = library.state()
    batched = ti.ad.vmap(f, axes)
    for _ in range(2):
        library.begin()
        found = batched(*args)
        assert [bits(found, member) for member in range(MEMBERS)] == wanted
        assert library.state() == state, "no member is the session's"
        given = [one for one in args if isinstance(one, np.ndarray)]
        assert all(map(np.array_equal, before, given)), "what members write is their own"


def test_batches_run_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(2)
    f, args, _ = library.members["a value and a gradient"]
    batched = ti.ad.vmap(f)
    batched(*args)
    ran: list[int] = []
    run = Batch.run
    monkeypatch.setattr(Batch, "run", lambda self, count, *others: (ran.append(count), run(self, count, *others))[1])
    monkeypatch.setattr("tinote.runtime.launch.Launcher.run", lambda *_: pytest.fail("a launch from Python"))
    batched(*args)
    batched(*[np.concatenate([one, one, one]) for one in args])
    assert ran == [MEMBERS, 3 * MEMBERS], "the number of members is no matter"


def test_a_thousand_small_members_are_a_few_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a member costs besides its own work: always the same number of words of instructions, whatever the session
    holds.
    """
    library = Library()
    others = [ti.field(ti.f64, shape=1000, needs_grad=True) for _ in range(20)]
    f, args, _ = library.members["a value and a gradient"]
    batched = ti.ad.vmap(f)
    made: list[Batch] = []
    run = Batch.run
    monkeypatch.setattr(Batch, "run", lambda self, *given: (made.append(self), run(self, *given))[1])
    batched(*args)
    words = len(made[0]._lanes[0].words)
    assert words < 250
    assert sum(nbytes for _, nbytes, _, _ in made[0].taken_blocks) == 2 * 8 * COUNT, "the argument and x.grad"
    assert len(others) == 20


def test_what_comes_out_is_placed() -> None:
    library = Library()
    f, args, _ = library.members["a value and a gradient"]
    value, gradient = ti.ad.vmap(f)(*args)
    assert value.shape == (MEMBERS,)
    placed = ti.ad.vmap(f, out_axes=(0, 1))(*args)
    assert np.array_equal(placed[1], gradient.T)
    assert np.array_equal(ti.ad.vmap(f, out_axes=-1)(*args)[1], gradient.T)
    for axes, message in ((2, "there is no axis 2"), ((0, 1, 2), "one for each value that is returned")):
        with pytest.raises(DifferentiationError, match=message):
            ti.ad.vmap(f, out_axes=axes)(*args)


def test_fields_by_name() -> None:
    library = Library()
    x, v, z, loss = library.x, library.v, library.z, library.loss
    draw = np.random.default_rng(4)
    begins, speeds = draw.uniform(0.5, 1, (MEMBERS, COUNT)), draw.uniform(0.5, 1, (MEMBERS, COUNT, 2))
    library.begin()
    f, (arrays, steps), _ = library.members["fields"]
    simulate = next(cell.cell_contents for cell in f.__closure__ if callable(cell.cell_contents))
    batched = ti.ad.vmap(simulate, fields=[x, v], results=z)
    assert batched((begins, speeds), steps).shape == (MEMBERS, COUNT)
    positions, losses = ti.ad.vmap(simulate, fields=[x, v], results=(x, loss))((begins, speeds), steps)
    gradient = ti.ad.vmap(ti.ad.grad(simulate, wrt=x, loss=loss), fields=x)(begins, steps)
    for member in range(MEMBERS):
        library.begin()
        x.from_numpy(begins[member])
        wanted = ti.ad.grad(simulate, wrt=x, loss=loss)(steps[member])
        assert np.array_equal(gradient[member], wanted)
        library.begin()
        x.from_numpy(begins[member])
        v.from_numpy(speeds[member])
        simulate(steps[member])
        assert np.array_equal(positions[member], x.to_numpy())
        assert losses[member] == loss[None]
    both = ti.ad.vmap(lambda a: library.potential(1.0, a), fields=x, results=x)(begins, arrays)
    assert both[0].shape == (MEMBERS,) and np.array_equal(both[1], begins)


def test_ndarrays_and_arguments_by_keyword() -> None:
    library = Library()
    f, (numbers, arrays), _ = library.members["a kernel"]
    held = ti.ndarray(ti.f64, (MEMBERS, COUNT))
    held.from_numpy(arrays)
    wanted = ti.ad.vmap(f)(numbers, arrays)
    assert np.array_equal(ti.ad.vmap(f)(numbers, held), wanted)
    assert np.array_equal(ti.ad.vmap(lambda k, a: f(k, a))(numbers, a=arrays), wanted)


def test_batches_of_batches() -> None:
    library = Library()
    f, (_, arrays), _ = library.members["a value and a gradient"]
    scales = np.array([0.5, 1.0, 2.0])
    inner = ti.ad.vmap(f, (0, None))
    values, gradients = ti.ad.vmap(inner, (None, 0))(scales, arrays)
    assert values.shape == (MEMBERS, 3) and gradients.shape == (MEMBERS, 3, COUNT)
    for member in range(MEMBERS):
        for k, scale in enumerate(scales.tolist()):
            value, gradient = f(scale, arrays[member])
            assert values[member, k] == value and np.array_equal(gradients[member, k], gradient)
    captured = ti.capture(lambda: inner(scales, arrays[0]))
    assert bits(captured()) == bits(inner(scales, arrays[0])) == bits(captured())


@pytest.mark.parametrize("why", ["plain Python", "profiled"])
def test_batches_in_python(why: str) -> None:
    library = Library()
    f, args, axes = library.members["an array that is written"]
    wanted = loop(library, f, args, axes)
    if why == "plain Python":
        ti.init(arch=ti.python)
        x = ti.field(ti.f64, shape=COUNT)

        @ti.kernel
        def double(a: array, by: ti.f64):
            for i in a:
                a[i] = a[i] * by + x[i]
            x[0] += 1

        def twice(a: Any, by: float) -> Any:
            double(a, by)
            return a, x[0]

        x.from_numpy(library.start[0])
        found, counts = ti.ad.vmap(twice)(*args)
        assert counts.tolist() == [x[0] + 1] * MEMBERS
        assert np.allclose(found, args[0] * args[1][:, None] + x.to_numpy())
        return
    library.begin()
    session.config = session.config._replace(kernel_profiler=True)
    found = ti.ad.vmap(f)(*args)
    assert [bits(found, member) for member in range(MEMBERS)] == wanted


def test_what_changes_is_captured_anew() -> None:
    library = Library()
    f, args, _ = library.members["fields"]
    factor = [1.0]
    scaled = ti.ad.vmap(lambda a, dt: f(a, dt * factor[0]))
    library.begin()
    first = scaled(*args)
    factor[0] = 2.0
    second = scaled(*args)
    library.begin()
    assert bits(second, 3) == bits(f(args[0][3], 2.0 * args[1][3]))
    library.begin()
    library.v.fill(7.0)
    third = scaled(*args)
    assert not np.array_equal(third[1], second[1]), "what fields hold is what they hold when it is called"
    assert not np.array_equal(first[0], second[0])
    ti.init(default_fp=ti.f64)
    library = Library()
    f, args, _ = library.members["fields"]
    assert np.isfinite(ti.ad.vmap(f)(*args)[0]).all()


# ---- faults


@pytest.mark.parametrize("threads", [1, 4])
def test_a_fault_names_its_member(threads: int) -> None:
    library = Library(threads)
    element = library.element
    batched = ti.ad.vmap(lambda k: element(k))
    members = np.zeros(4000, np.int32)
    assert batched(members).shape == (4000,)
    members[[3999, 2500, 1234, 1250]] = COUNT
    for _ in range(10):
        with pytest.raises(KernelIndexError, match="in element 1234 of a batch of 4000") as caught:
            batched(members)
        assert "return x[k]" in str(caught.value)
        assert "batched(members)" in str(caught.value)
    ratio = ti.ad.vmap(lambda a, b: element(0) + a / b)
    assert ratio(np.ones(9), np.ones(9)).shape == (9,)
    with pytest.raises(KernelZeroDivisionError, match="in element 5 of a batch of 9") as caught:
        ratio(np.ones(9), np.array([1, 1, 1, 1, 1, 0, 1, 0, 1.0]))
    assert "a / b" in str(caught.value)
    assert batched(np.zeros(7, np.int32)).shape == (7,), "and goes on"


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_stops_the_members_after_it(threads: int) -> None:
    """A loop would not have come to the member that never ends."""
    ti.init(num_threads=threads)
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def wait(kind: ti.i32) -> ti.i32:
        n = 0
        while kind == 7 and x[0] == 0:  # (the capture tries others near 0)
            n += 1
        if kind == 3:
            for _ in range(2000000):
                n = (n * 3 + 1) % 1000
        return x[n % 4 if kind < 3 else 4]

    batched = ti.ad.vmap(lambda kind: wait(kind))
    batched(np.zeros(4, np.int32))
    with pytest.raises(KernelIndexError, match="in element 0 of a batch of 2"):
        batched(np.array([3, 7], np.int32))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["long members", "many members"])
def test_a_batch_is_interrupted(how: str, threads: int) -> None:
    ti.init(num_threads=threads)
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def work(forever: ti.i32) -> ti.f32:
        s = 0.0
        while forever == 7 or s < 1:
            s = ti.sin(s) + 1 + x[0]
        return s

    batched = ti.ad.vmap(lambda forever: work(forever))
    batched(np.zeros(3, np.int32))

    def interrupted() -> tuple[float, list[str]]:
        """Seconds from the signal to the interrupt, and the interrupt's notes."""
        sent: list[float] = []

        def send() -> None:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.05, send)
        timer.start()
        with pytest.raises(KeyboardInterrupt) as caught:
            while True:
                if how == "long members":
                    batched(np.full(4, 7, np.int32))
                batched(np.zeros(20000, np.int32))
        ended = time.monotonic()
        timer.join()
        return ended - sent[0], list(getattr(caught.value, "__notes__", ()))

    # Half a second is what is promised. Other work on the machine may hold up one answer, or the launch until after the
    # signal; a later one counts then.
    tries = [interrupted()]
    while tries[-1][0] > 0.5 or (
        how == "long members" and not any("while forever == 7" in one for one in tries[-1][1])
    ):
        assert len(tries) < 10, tries
        tries.append(interrupted())
    assert (batched(np.zeros(5, np.int32)) > 1 - 1e-6).all()


# ---- refusals

#: What is called, and a part of the message: arguments that do not go together.
WRONG = {
    "no function": (lambda f, k, a: ti.ad.vmap(3), "a kernel or a function"),
    "another number of axes": (lambda f, k, a: ti.ad.vmap(f, (0,))(k, a), "has 1 axes, .* with 2 arguments"),
    "no axis": (lambda f, k, a: ti.ad.vmap(f, (0, "x"))(k, a), "a number or None, not 'x'"),
    "an axis that is not there": (lambda f, k, a: ti.ad.vmap(f, (0, 2))(k, a), "axis 2 does not exist"),
    "a number": (lambda f, k, a: ti.ad.vmap(f)(1.0, a), "argument 0 is a number, which has no batch axis"),
    "an object": (lambda f, k, a: ti.ad.vmap(f)(None, a), "argument 0 is None"),
    "different members": (lambda f, k, a: ti.ad.vmap(f)(k[:3], a), "such as 3 and 13"),
    "no members": (lambda f, k, a: ti.ad.vmap(f)(k[:0], a[:0]), "the batch is empty"),
    "nothing differs": (lambda f, k, a: ti.ad.vmap(f, None)(1.0, a[0]), "no argument .* has a batch axis"),
    "text": (lambda f, k, a: ti.ad.vmap(f)(np.array(["a"]), a), "a batch consists of numbers"),
    "fields that are none": (lambda f, k, a: ti.ad.vmap(f, fields=[3]), "must be a field or a list of fields"),
    "axes of a tree": (lambda f, k, a: ti.ad.vmap(f, ((0, 0), 0))([k], a), "has 2 axes for argument 0, which has 1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_that_do_not_go_together(name: str) -> None:
    library = Library()
    f, (numbers, arrays), _ = library.members["a kernel"]
    call, message = WRONG[name]
    with pytest.raises(DifferentiationError, match=message):
        call(f, numbers, arrays)


def test_what_fields_begin_with_has_their_shape() -> None:
    library = Library()
    batched = ti.ad.vmap(lambda: None, fields=[library.x, library.v], results=library.x)
    with pytest.raises(DifferentiationError, match="2 fields need one array each, not 1"):
        batched((np.zeros((3, COUNT)),))
    with pytest.raises(DifferentiationError, match=r"'x' begins with an array of shape \(batch, 5\), not .* \(3, 4\)"):
        batched((np.zeros((3, 4)), np.zeros((3, COUNT, 2))))


#: A body of a function of an array `a` and a number `k`, and parts of the line and of the message.
REFUSED = {
    "arithmetic on an array": ("return potential(k, 2 * a)", "2 * a", "'multiply' of an array in Python"),
    "NumPy": ("return a.sum() * k", "a.sum()", "'add' of an array in Python"),
    "a plain number": ("return math.exp(k)", "math.exp(k)", "needed itself"),
    "an index": ("return element(int(k))", "int(k)", "needed itself"),
    "a new array": ("return np.zeros(3)", "", "it returns ndarray"),
    "a global": ("global passed\n    passed += k\n    return passed", "batched", "which the whole batch shares"),
    "an element of a list": ("record[0] += k\n    return record[0]", "batched", "assigns element 0 of a list"),
    "one kind on each side": ("return potential(k, a) if k > 1 else 0", "batched", "differs in kind, shape or type"),
    "a list": ("history.append(k)", "history.append", "changes a list"),
    "columns of an array": ("scale(a[::2], k)\n    return a", "scale(a[::2], k)", "one after the other"),
    "a sparse Jacobian": (
        "return ti.ad.jacobian(squares, wrt=x, loss=z, sparse=True)()", "sparse=True", "a sparse Jacobian"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_batched_is_refused_by_its_line(name: str) -> None:
    library = Library()
    body, line, message = REFUSED[name]
    file = f"refused_member_{name}.py"
    text = f"def member(a, k):\n    {body}\n\ndef run(batched, *args):\n    return batched(*args)\n"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {
        "potential": library.potential, "element": library.element, "scale": library.scale, "squares": library.squares,
        "x": library.x, "z": library.z, "np": np, "ti": ti, "math": math, "passed": 0.0, "record": [0.0], "history": [],
    }  # fmt: skip
    exec(compile(text, file, "exec"), space)
    library.begin()
    before = library.state()
    _, (numbers, arrays), _ = library.members["a kernel"]
    with pytest.raises(CaptureError, match=message) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space["run"](ti.ad.vmap(space["member"]), arrays, numbers)
    assert line in str(caught.value)
    assert library.state() == before


def test_a_batch_in_a_tape_is_refused() -> None:
    library = Library()
    f, args, _ = library.members["a kernel"]
    with pytest.raises(DifferentiationError, match=r"ti.ad.vmap cannot run inside of a tape"), ti.ad.Tape(library.loss):
        ti.ad.vmap(f)(*args)


@pytest.mark.filterwarnings("ignore:argument .q. of kernel")
@pytest.mark.parametrize("target", [{"arch": ti.python}, {"arch": ti.gpu, "software_gpu": True}])
def test_one_member_after_another_has_arrays_of_its_own(target: dict[str, Any]) -> None:
    """Also of those that others manage, whether their elements lie one after the other or not."""
    ti.init(**target)
    x = ti.field(ti.f32, shape=3)
    own, grid = np.ones(3, np.float32), np.ones((3, 2), np.float32)
    read = np.arange(3, dtype=np.float32)

    @ti.kernel
    def double(q: ti.types.ndarray(dtype=ti.f32, ndim=1), r: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in q:
            q[i] *= 2
            x[i] += q[i] + r[i]

    def member(a: float) -> Any:
        double(own, read)
        double(grid[:, 1], read)
        double(own, read)
        made = np.ones(3, np.float32)
        double(made, read)
        return a * x[0] + x[2], {"made": made}

    numbers, arrays = ti.ad.vmap(member)(np.array([1.0, 2.0, 3.0]))
    assert numbers.tolist() == [10.0 * a + 18.0 for a in (1, 2, 3)]
    assert (arrays["made"] == 2).all()
    assert (own == 1).all() and (grid == 1).all() and (x.to_numpy() == 0).all()
    ti.init()
