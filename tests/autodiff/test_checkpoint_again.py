"""A checkpointed step that runs again does what it did, or that is an error at its line with both numbers: whatever it
takes from Python, by whichever way that goes into the program.
"""

import contextlib
import importlib
import random
import re
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError

checkpointing = importlib.import_module("tinote.lang.ad.checkpoint")

N, STEPS = 4, 9
START = np.array([0.2, 0.5, 0.9, 1.3])

Vector = ti.types.vector(2, ti.f64)
Pair = ti.types.struct(a=ti.f64, b=Vector)
Numbers = ti.types.ndarray(dtype=ti.f64, ndim=1)


class World:
    """Fields of all kinds, which a launch of `move` reads, and the ways in which numbers from Python get there."""

    def __init__(self) -> None:
        ti.init(default_fp=ti.f64, num_threads=1)
        self.x = x = ti.field(ti.f64, N, needs_grad=True)
        self.y = y = ti.field(ti.f64, N, needs_grad=True)
        self.loss = loss = ti.field(ti.f64, (), needs_grad=True)
        self.w = w = ti.field(ti.f64, N)
        self.large = large = ti.field(ti.f64, 5000)
        self.count = count = ti.field(int, N)
        self.v = v = ti.Vector.field(2, ti.f64, N, needs_grad=True)
        self.m = m = ti.Matrix.field(2, 2, ti.f64, N)
        self.s = s = Pair.field(shape=N)
        self.q = q = ti.field(ti.f64, (), needs_grad=True)
        self.r = r = ti.field(ti.f64, (), needs_grad=True)
        self.nd = ti.ndarray(ti.f64, N)
        self.array = np.zeros(N)
        self.k = 0.0

        @ti.kernel
        def begin():
            for i in x:
                y[i] = x[i]

        @ti.kernel
        def move():
            for i in y:
                by = w[i] + 0.1 * count[i] + v[i][0] + m[i][1, 0] + s[i].a + s[i].b[1] + large[i + 4000]
                y[i] = y[i] + 0.05 * ti.sin(y[i] * x[i]) + 0.01 * by * x[i]

        @ti.kernel
        def add(a: Numbers):
            for i in y:
                y[i] += 0.01 * a[i] * x[i]

        @ti.kernel
        def scale(by: ti.f64):
            for i in y:
                y[i] *= by

        @ti.kernel
        def turn(by: Vector):
            for i in y:
                y[i] += 0.1 * by[1] * x[i]

        @ti.kernel
        def pick(k: int):
            for i in y:
                if i == k:
                    y[i] *= 1.5

        @ti.kernel
        def add_field(f: ti.template()):
            for i in y:
                y[i] += 0.1 * f[i] * x[i]

        world = self

        @ti.kernel
        def scale_by_constant():
            for i in y:
                y[i] *= 1 + 0.1 * world.k

        @ti.kernel
        def fill_w(by: ti.f64):
            for i in w:
                w[i] = by

        @ti.kernel
        def total() -> ti.f64:
            found = 0.0
            for i in y:
                found += y[i]
            return found

        @ti.kernel
        def both() -> Vector:
            return ti.Vector([y[0], y[1]])

        @ti.kernel
        def cube(a: ti.f64) -> ti.f64:
            return a * a * a

        @ti.kernel
        def square_q():
            r[None] += q[None] ** 2

        @ti.kernel
        def measure():
            for i in y:
                loss[None] += y[i] ** 2 * (i + 1)

        @ti.ad.grad_replaced
        def replaced(number: float) -> None:
            w[1] = number
            scale(1.5)

        @ti.ad.grad_for(replaced)
        def replaced_gradient(number: float) -> None:
            scale.grad(1.5)

        @ti.ad.no_grad
        def constant(number: float) -> None:
            fill_w(number)

        self.begin, self.move, self.add, self.scale, self.turn, self.pick = begin, move, add, scale, turn, pick
        self.add_field, self.scale_by_constant, self.total, self.both = add_field, scale_by_constant, total, both
        self.cube, self.square_q, self.measure, self.replaced, self.constant = (
            cube,
            square_q,
            measure,
            replaced,
            constant,
        )

    def clear(self) -> None:
        self.x.from_numpy(START)
        for field in (self.w, self.large, self.count, self.v, self.m, self.s.a, self.s.b, self.nd):
            field.fill(0)
        self.array[:] = 0
        self.loss[None] = self.k = 0.0

    def gradient(self, step: Callable[[int], Any], loop: Callable[..., Any]) -> np.ndarray[Any, Any]:
        self.clear()
        with ti.ad.Tape(self.loss):
            self.begin()
            loop(step)
            self.measure()
        return self.x.grad.to_numpy()

    def tape_inside(self, number: float) -> float:
        self.q[None], self.r[None] = number, 0.0
        with ti.ad.Tape(self.r):
            self.square_q()
        return self.q.grad[None]


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def plainly(step: Callable[[int], Any]) -> None:
    for t in range(STEPS):
        step(t)


def checkpointed(step: Callable[[int], Any]) -> None:
    ti.ad.checkpoint(step, STEPS, snapshots=2, progress=False)


def _write(field: Any, key: Any, value: Any) -> None:
    field[key] = value


#: How a number, or one of two choices, goes into a step, and what the error says of it: `…` stands for the number.
NUMBERS: dict[str, tuple[Callable[[World, float], Any], str]] = {
    "an element": (lambda w, a: _write(w.w, 1, a), "'w[1]' is given …"),
    "an element of a vector field": (lambda w, a: _write(w.v, 1, [a, 0.5]), "'v[1]' is given, as its number 0, …"),
    "a component": (lambda w, a: _write(w.v[1], 0, a), "'v[1][0]' is given …"),
    "a component of a matrix": (lambda w, a: _write(w.m[1], (1, 0), a), "'m[1][1][0]' is given …"),
    "a component field": (lambda w, a: w.v.get_scalar_field(0).fill(a), "'v[...][0]' is given …"),
    "an element of a struct": (lambda w, a: _write(w.s, 2, Pair(a=a, b=[0.0, 1.0])), "'s.a[2]' is given …"),
    "a member": (lambda w, a: setattr(w.s[1], "a", a), "'s.a[1]' is given …"),
    "a fill": (lambda w, a: w.w.fill(a), "'w' is given …"),
    "an array": (lambda w, a: w.w.from_numpy(np.array([0, a, 0, 0])), "'w' is given, as its number 1, …"),
    "within a large array": (
        lambda w, a: w.large.from_numpy(np.where(np.arange(5000) == 4003, a, 0)),
        "'large' is given other numbers",
    ),
    "an element of an ndarray": (lambda w, a: (_write(w.nd, 3, a), w.add(w.nd)), "'nd[3]' is given …"),
    "an array of NumPy's": (lambda w, a: (_write(w.array, 3, a), w.add(w.array)), "'a' is given, as its number 3, …"),
    "an argument": (lambda w, a: w.scale(a), "'scale' is launched with …"),
    "a vector argument": (lambda w, a: w.turn(ti.Vector([0.0, a])), "'turn' is launched with …"),
    "arithmetic with an element": (lambda w, a: _write(w.y, 3, w.y[3] * a), "'multiply' computes with …"),
    "arithmetic with a result": (lambda w, a: w.scale(ti.sin(w.total() * a)), "'multiply' computes with …"),
    "a compiled constant": (
        lambda w, a: (setattr(w, "k", a), w.scale_by_constant()),
        "'scale_by_constant' (compiled with k = …",
    ),
    "a replaced gradient": (lambda w, a: w.replaced(a), "'w[1]' is given …"),
    "a function without gradient": (lambda w, a: w.constant(a), "'fill_w' is launched with …"),
    "an argument of a derivative": (
        lambda w, a: _write(w.y, 0, w.y[0] * ti.ad.grad(lambda b: w.cube(b))(a)),
        "ti.ad.grad of '<lambda>' is given …",
    ),
    "within a derivative": (
        lambda w, a: _write(w.y, 0, w.y[0] * ti.ad.grad(lambda b: w.cube(b) * a)(0.7)),
        "ti.ad.grad of '<lambda>' is given …",
    ),
    "a tape inside": (lambda w, a: _write(w.y, 0, w.y[0] * w.tape_inside(a)), "'q[None]' is given …"),
}
CHOICES: dict[str, tuple[Callable[[World, int], Any], str]] = {
    "a whole number": (lambda w, k: _write(w.count, 1, k), "'count\\[1\\]' is given"),
    "an integer argument": (lambda w, k: w.pick(k), "'pick' is launched with"),
    "which element is written": (lambda w, k: _write(w.y, k, w.y[2] * 1.1), r"this time 'y\[[01]\]' is given"),
    "which element is read": (lambda w, k: _write(w.y, 2, w.y[k] * 1.1), r"this time 'y\[[01]\]' is read"),
    "which result is used": (lambda w, k: _write(w.y, 3, w.both()[k] * 1.1), "'multiply' computes with other numbers"),
    "which field is copied": (lambda w, k: w.w.copy_from((w.x, w.y)[k]), "'w' is copied from"),
    "which field is a template": (lambda w, k: w.add_field((w.x, w.y)[k]), r"'add_field' \(compiled with [xy]\)"),
    "which of two derivatives": (
        lambda w, k: _write(w.y, 0, w.y[0] * ti.ad.grad(lambda a, b: w.cube(a * b), argnums=(0, 1))(0.7, 0.5)[k]),
        "'multiply' computes with other numbers",
    ),
    "a branch": (lambda w, k: w.scale(1.1) if k else None, "it ends|'scale' is launched|'move' is launched"),
    "how often": (lambda w, k: [w.scale(1.1) for _ in range(k)], "it ends|'scale' is launched|'move' is launched"),
}


@pytest.mark.parametrize("way", NUMBERS)
def test_another_number(world: World, way: str) -> None:
    into, message = NUMBERS[way]
    calls = 0

    def again(t: int) -> None:
        nonlocal calls
        calls += 1
        into(world, 0.5 + calls / 32)
        world.move()

    with pytest.raises(DifferentiationError) as caught:
        world.gradient(again, checkpointed)
    # It is noticed in the first step that runs again.
    step = int(re.search(r"step\((\d+)\) did something else", caught.value.message)[1])
    now, before = 0.5 + (STEPS + 1) / 32, 0.5 + (step + 1) / 32
    assert message.replace("…", repr(now)) in caught.value.message
    if "…" in message:
        assert repr(before) in caught.value.message
    assert caught.value.span.file == __file__
    assert caught.value.notes[0].text == "the loop"

    def same(t: int) -> None:
        into(world, 0.5 + t / 32)
        world.move()

    np.testing.assert_allclose(world.gradient(same, checkpointed), world.gradient(same, plainly), rtol=1e-12)


@pytest.mark.parametrize("way", CHOICES)
def test_another_choice(world: World, way: str) -> None:
    into, message = CHOICES[way]
    calls = 0

    def again(t: int) -> None:
        nonlocal calls
        calls += 1
        into(world, calls % 2 if calls <= STEPS else 1 - calls % 2)
        world.move()

    with pytest.raises(DifferentiationError, match=message) as caught:
        world.gradient(again, checkpointed)
    assert "did something else" in caught.value.message and caught.value.span.file == __file__

    def same(t: int) -> None:
        into(world, t % 2)
        world.move()

    np.testing.assert_allclose(world.gradient(same, checkpointed), world.gradient(same, plainly), rtol=1e-12)


class Controller:
    """An object that changes with each call."""

    def __init__(self) -> None:
        self.sum = 0.0

    def __call__(self, error: Any) -> Any:
        self.sum += 0.1
        return error * self.sum


generator = np.random.default_rng(0)
SOURCES: dict[str, Callable[[World], Any]] = {
    "Python's random numbers": lambda w: random.random(),
    "NumPy's old random numbers": lambda w: np.random.rand(),
    "a generator of NumPy's": lambda w: float(generator.random()),
    "an array of random numbers": lambda w: generator.random(N)[1],
    "a clock": lambda w: time.perf_counter() % 1.0,
    "an object": (lambda controller: lambda w: controller(w.y[0]))(Controller()),
    "an iterator": (lambda numbers: lambda w: next(numbers))(iter(np.linspace(0.1, 0.9, 1000).tolist())),
    "a list that is used up": (lambda numbers: lambda w: numbers.pop())(np.linspace(0.1, 0.9, 1000).tolist()),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("into", ["w", "y", "argument"])
def test_sources_of_other_numbers(world: World, source: str, into: str) -> None:
    take = SOURCES[source]

    def step(t: int) -> None:
        number = take(world)
        if into == "argument":
            world.scale(0.5 + number)
        else:
            getattr(world, into)[1] = 0.5 + number
        world.move()

    with pytest.raises(DifferentiationError, match=r"step\(\d+\) did something else") as caught:
        world.gradient(step, checkpointed)
    assert caught.value.span.file == __file__
    assert "this time, and" in caught.value.message and "the first time" in caught.value.message


def test_what_is_written_through_a_view(world: World) -> None:
    calls = 0
    view = world.w.numpy_view()

    def again(t: int) -> None:
        nonlocal calls
        calls += 1
        view[2] = calls / 32
        world.move()
        view[2] = 0.0

    with pytest.raises(DifferentiationError, match="'w' is given, through an array of its memory, other numbers"):
        world.gradient(again, checkpointed)

    def same(t: int) -> None:
        view[2] = t / 32
        world.move()
        view[2] += 1.0
        world.constant(0.25)
        view[1] = world.w[1] + t

    found = world.gradient(same, checkpointed)
    np.testing.assert_allclose(found, world.gradient(same, plainly), rtol=1e-12)


def test_an_error_that_the_step_lets_pass(world: World) -> None:
    calls = 0

    def step(t: int) -> None:
        nonlocal calls
        calls += 1
        world.move()
        with contextlib.suppress(DifferentiationError):
            world.w[1] = calls / 32
        world.move()

    with pytest.raises(DifferentiationError, match=r"'w\[1\]' is given"):
        world.gradient(step, checkpointed)


def test_a_field_of_the_step_itself(world: World) -> None:
    """It is another one each time."""

    def step(t: int) -> None:
        own = ti.ndarray(ti.f64, N)
        own[1] = 0.5
        world.add(own)

    with pytest.raises(
        DifferentiationError, match=r"the first time 'own\[1\]' is given 0.5: with other fields or arrays"
    ):
        world.gradient(step, checkpointed)


@pytest.mark.parametrize("seed", range(40))
def test_steps_with_random_python_state(world: World, seed: int) -> None:
    """Each step takes numbers and choices from a state in some ways: it is right, or refused where the state is not
    what it was. What is taken depends on the number of the step alone in some, on what was taken before in others.
    """
    choose = random.Random(seed)
    ways = [choose.choice([*NUMBERS, *CHOICES]) for _ in range(choose.randint(1, 4))]
    state = [0]

    def of_the_step(t: int) -> int:
        return t

    def of_calls(t: int) -> int:
        state[0] += 1
        return state[0]

    def of_calls_wrapped(t: int) -> int:
        """The same again where it comes round."""
        state[0] = (state[0] + 1) % choose_period
        return state[0]

    choose_period = choose.choice([1, STEPS])
    sources = [choose.choice([of_the_step, of_calls, of_calls_wrapped]) for _ in ways]
    taken: list[list[int]] = []

    def step(t: int) -> None:
        numbers = [source(t) for source in sources]
        taken.append(numbers)
        run(numbers)

    def run(numbers: list[int]) -> None:
        for way, number in zip(ways, numbers, strict=True):
            if way in NUMBERS:
                NUMBERS[way][0](world, 0.5 + (number % 7) / 16)
            else:
                CHOICES[way][0](world, number % 2)
            world.move()

    try:
        found = world.gradient(step, checkpointed)
    except DifferentiationError as error:
        assert "did something else" in error.message and error.span.file == __file__
        assert any(source is not of_the_step for source in sources)
        return
    first = taken[:STEPS]
    np.testing.assert_allclose(found, world.gradient(lambda t: run(first[t]), plainly), rtol=1e-12)


def test_functional_derivatives_of_other_programs(world: World) -> None:
    calls = 0

    def program() -> None:
        world.loss[None] = 0.0
        world.begin()
        checkpointed(step)
        world.measure()

    def step(t: int) -> None:
        nonlocal calls
        calls += 1
        world.w[1] = calls / 32
        world.move()

    world.clear()
    for derivative in (
        ti.ad.grad(program, wrt=world.x, loss=world.loss),
        ti.ad.jacobian(program, wrt=world.x, loss=world.y, mode="reverse"),
        lambda: ti.ad.vmap(ti.ad.grad(program, wrt=world.x, loss=world.loss), fields=world.x)(np.stack([START] * 3)),
    ):
        with pytest.raises(DifferentiationError, match=r"'w\[1\]' is given"):
            derivative()


def test_what_is_kept_of_steps_is_small(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a step that takes as many numbers from Python as this one, some words are kept."""
    monkeypatch.setattr(checkpointing, "may_capture", lambda *_: False)

    def step(t: int) -> None:
        world.w[1] = t / 1024
        world.scale(1.0 - t * 1e-9)

    def peak(steps: int) -> int:
        world.clear()
        tracemalloc.start()
        try:
            with ti.ad.Tape(world.loss):
                ti.ad.checkpoint(step, steps, snapshots=2, progress=False)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(20)
    few, many = peak(200), peak(400)
    assert many - few < 200 * 160


def test_a_jacobian_whose_columns_come_of_several_runs() -> None:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, 40, needs_dual=True)
    y = ti.field(ti.f64, 40, needs_dual=True)
    calls = 0

    @ti.kernel
    def square(by: ti.f64):
        for i in x:
            y[i] = by * x[i] ** 2

    def program(step: int) -> None:
        nonlocal calls
        calls += 1
        square(1.0 + step * calls)

    x.fill(0.5)
    found = ti.ad.jacobian(lambda: program(0), wrt=x, loss=y, mode="forward")()
    np.testing.assert_allclose(found, np.eye(40), rtol=1e-14)
    with pytest.raises(DifferentiationError, match="did something else when it was run again") as caught:
        ti.ad.jacobian(lambda: program(1), wrt=x, loss=y, mode="forward")()
    assert caught.value.span.file == __file__
