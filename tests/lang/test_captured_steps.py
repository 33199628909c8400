"""`ti.capture`: what is captured does what the function does, bit for bit; what cannot be is refused by its line."""

from __future__ import annotations

import functools
import gc
import linecache
import math
import operator
import os
import signal
import threading
import time
from collections.abc import Callable
from operator import attrgetter as getter_of
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import CaptureError, KernelIndexError, KernelZeroDivisionError
from tinote.lang.capture.automatic import AutomaticCapture
from tinote.lang.session.state import session
from tinote.runtime.threads import stop_all

LIBRARY = """\
import collections, functools, math, random, time, typing
import numpy as np
import tinote as ti

COUNT = 6
OFFSETS = [1.0, 2.0]
TABLE = np.array([0.5, 0.25, 2.0])
FACTOR = 3.0
SHADOWED = 0.5
NESTED = {"a": (1, [2.0]), "b": []}
AIM = ti.Vector([1.0, 2.0])
passed = 0.0
done = 0
history = []
numbers = iter([0.5] * 1000)
shout = functools.partial(print, "step")
CALLED = [print]

class Dice(random.Random):
    pass

dice = random.Random(1)
x = ti.Vector.field(2, ti.f32, shape=COUNT, needs_grad=True)
v = ti.Vector.field(2, ti.f32, shape=COUNT)
y = ti.field(ti.f64, shape=COUNT, needs_grad=True)
z = ti.field(ti.f64, shape=COUNT)
loss = ti.field(ti.f64, shape=(), needs_grad=True)
total = ti.field(ti.f32, shape=(), needs_grad=True)
n = ti.field(ti.i32, shape=())
half = ti.field(ti.f16, shape=3)
flags = ti.field(ti.u8, shape=4)
lit = ti.field(ti.u1, shape=())
array = ti.ndarray(ti.f64, shape=COUNT)
body = ti.Struct.field({"pos": ti.math.vec2, "mass": ti.f64}, shape=3)
state, other = ti.field(ti.f64), ti.field(ti.i32)
ti.root.dense(ti.i, 4).place(state, other)

@ti.kernel
def energy():
    for i, j in ti.ndrange(COUNT, COUNT):
        total[None] += -1 / (x[i] - x[j]).norm(1e-2)

@ti.kernel
def advance(dt: ti.f32):
    for i in x:
        v[i] -= dt * x.grad[i]
        x[i] += dt * v[i]

@ti.kernel
def squares():
    for i in y:
        loss[None] += y[i] ** 2

@ti.kernel
def curl():
    for i in y:
        y[i] = y[i] * (1 + 0.5 * ti.sin(y[i]))

@ti.kernel
def twice():
    for i in y:
        z[i] -= y[i] / (0.1 + y[i] * y[i])
    for i in y:
        y[i] += 0.1 * z[i] * y[i]

@ti.kernel
def through():
    for i in y:
        z[i] = 2 * y[i] * y[i]
    for i in y:
        loss[None] += z[i] ** 2

@ti.kernel
def shift(k: ti.i32, by: ti.f64):
    for i in y:
        if i >= k:
            y[i] += by

@ti.kernel
def mean() -> ti.f64:
    s = 0.0
    for i in range(COUNT):
        s += y[i]
    return s / COUNT

@ti.kernel
def centre() -> ti.math.vec2:
    return x[0] + 2 * x[1]

@ti.kernel
def noise():
    for i in y:
        y[i] += 1e-3 * ti.random()

@ti.kernel
def scale(a: ti.types.ndarray(dtype=ti.f64, ndim=1), by: ti.f64):
    for i in a:
        a[i] *= by

@ti.kernel
def push():
    for i in state:
        state[i] += other[i]
        other[i] += 1

@ti.kernel
def element(k: ti.i32) -> ti.f64:
    return y[k]

def hidden(calls=[]):
    calls.append(0)
    return len(calls)

def counted(calls=[0]):
    calls[0] += 1
    return calls[0]

def counter():
    count = 0
    def step():
        nonlocal count
        count += 1
        y[2] = count
        for one in notes:
            y[3] = one.weight
    return step

count_up = counter()

class Pendulum:
    def __init__(self):
        self.length = 2.0
        self.swings = 0
        self.parts = [Part(1.0), Part(2.0)]
        self.slotted = Slotted()

    def half_step(self, dt):
        y[0] = y[0] + dt * self.length * self.slotted.force

    def step(self, dt):
        self.half_step(dt)
        for part in self.parts:
            part.step(dt)

class Spring(typing.NamedTuple):
    stiffness: float
    acts: typing.Any
    run: typing.Any = None

SPRING = Spring(2.0, [3.0], curl)
Pair = collections.namedtuple("Pair", "first second")
PAIR = Pair(1.5, SPRING)

class Slotted:
    __slots__ = ("force",)

    def __init__(self):
        self.force = 1.5

class Slower(Pendulum):
    pass

class Weighted:
    pass

class Tuned:
    pass

class Part(Weighted):
    def __init__(self, weight):
        self.weight = weight

    def step(self, dt):
        y[1] = y[1] - dt * self.weight

pendulum = Pendulum()
notes = [Part(4.0)]
LOCALLY = [Part(0.25)]
"""

#: Steps, each with the calls that are compared: what is captured.
CAPTURED = {
    "named tuples": """
        def step(dt):
            SPRING.run()
            y[0] = y[1] + dt * SPRING.stiffness * PAIR.first + PAIR.second.acts[0] + PAIR[1].stiffness
            first, (stiffness, acts, _) = PAIR
            y[2] = y[2] + first * stiffness * acts[0]
        calls = [(0.01,), (0.02,), (0.005,)]
        """,
    "a tape and an update": """
        def step(dt):
            with ti.ad.Tape(total):
                energy()
            advance(dt)
        calls = [(0.01,), (0.02,), (0.005,)]
        """,
    "a tape that saves what is overwritten": """
        def step():
            with ti.ad.Tape(loss):
                curl()
                curl()
                squares()
            curl()
        """,
    "temporary adjoints": """
        def step():
            with ti.ad.Tape(loss):
                through()
            shift(0, -0.1)
        """,
    "a loop of checkpoints": """
        def one(t):
            curl()
        def step():
            with ti.ad.Tape(loss):
                ti.ad.checkpoint(one, 6, memory=3 * 8 * COUNT)
                squares()
            shift(0, -0.1)
        """,
    "what a kernel keeps between its loops": """
        def step():
            with ti.ad.Tape(loss):
                twice()
                squares()
            shift(0, -0.1)
        """,
    "derivatives of numbers in Python": """
        def step():
            with ti.ad.Tape(loss):
                shift(0, 0.5 * y[0])
                y[1] = y[2] * mean()
                squares()
            shift(0, -0.1)
        """,
    "a gradient alone": """
        def step():
            loss.grad[None] = 2.0
            squares.grad()
        """,
    "integers and floats as arguments": """
        def step(k, by=0.5):
            shift(k, 2 * by)
            shift(1, k * by)
        calls = [(0,), (1, 0.25), (-3, 1.5)]
        """,
    "what kernels return": """
        def step(scale):
            c = centre()
            m = mean()
            y[0] = m * scale - c[0]
            return m, [c.y + c.x, -m], {"centre": c}
        calls = [(0.5,), (2.0,)]
        """,
    "elements of all types": """
        def step(a):
            y[1] = y[0] * a + 1
            n[None] += 3
            y[2] = n[None] / 4
            half[1] = half[0] + y[0]
            half[0] = 0.1
            flags[2] = flags[1] + 5
            total[None] = total[None] - y[1]
            lit[None] = n[None] + 1
            return n[None], y[2], half[1], flags[2], lit[None]
        calls = [(0.5,), (2.0,)]
        """,
    "vectors": """
        def step(dt):
            p = x[0]
            x[2] = p
            q = ti.Vector([p.x + dt * p[1], x[1].y / 3])
            x[3].y = p.x - q[1]
            v[0] = q
            a, b = q
            x.get_scalar_field(1)[4] = 2 * a * b
            return x[2], q, q.x
        calls = [(0.3,), (0.7,)]
        """,
    "structs": """
        def step(dt):
            body[0].mass = body[0].mass + dt
            body.pos[1].x = body[0].mass * body.pos[1].y + 1
            return body[1].pos
        calls = [(0.5,), (0.25,)]
        """,
    "fills, copies and data": """
        def step(a):
            z.copy_from(y)
            y.fill(a)
            v.fill(ti.Vector([a, 1.0]))
            x.from_numpy(np.arange(2 * COUNT, dtype=np.float32).reshape(COUNT, 2))
            state.fill(a * TABLE[1])
            push()
            other.fill(7)
            x.get_scalar_field(0).fill(a)
            loss.fill(0)
        calls = [(0.5,), (2.5,)]
        """,
    "arithmetic": """
        def step(a, k):
            b = y[0]
            y[1] = (a + b) * (a - b) / (1 + b * b) - -a
            y[2] = a // 0.25 + a % 0.25 - (-a) % 0.7 + abs(b - a) ** 1.5
            y[3] = k // 3 + k % 3 * 10 + abs(k) + (-k) // 3 + k / 7 + 2 * k
            y[4] = np.sqrt(b * b) + FACTOR
            return k // -4, k % -4, k - 3, -k, 5 - a, 2.0**a, +b
        calls = [(0.5, 7), (-1.5, -7), (2.25, 0)]
        """,
    "conditions, both sides": """
        def step(a):
            if y[0] > a:
                y[0] = y[0] - 1
                if n[None] == 2:
                    n[None] = 0
            else:
                curl()
                y[0] = y[0] + 0.75
            n[None] += 1
            y[1] = max(y[0], a)
            return 1 if a < 1 else 2.5, bool(n[None])
        calls = [(0.5,), (1.5,), (0.1,), (0.1,), (0.1,)]
        """,
    "random numbers": """
        def step():
            noise()
            noise()
            return y[0]
        """,
    "globals that are assigned": """
        def step(dt):
            global passed, done
            passed += dt
            done = done + 1
            y[0] = passed
            if done % 2 == 0:
                y[1] = done
            return passed
        calls = [(0.5,), (0.25,), (1.0,)]
        """,
    "globals that patterns assign": """
        def step(k):
            global done, passed
            match [k, [0.5, k]]:
                case [done, [passed, *_]]:
                    shift(0, passed)
        calls = [(1,), (2,)]
        """,
    "numbers elsewhere in Python": """
        times = {"now": 0.0, "then": [1, 2]}
        def step(dt):
            pendulum.swings += 1
            times["now"] += dt
            times["then"][1] = times["then"][1] + 1 if y[0] > 0 else 7
            y[0] = times["now"] * pendulum.swings + counted()
            count_up()
            return times["now"], times["then"][1], pendulum.swings, counted.__defaults__[0][0]
        calls = [(0.5,), (0.25,), (1.0,)]
        """,
    "loops, helpers and methods": """
        def helper(k, dt):
            shift(k, dt * OFFSETS[k])

        def step(dt):
            for k in range(2):
                helper(k, dt)
            pendulum.step(dt)
            for a in (array,):
                scale(a, 1 + dt)
        calls = [(0.5,), (0.25,)]
        """,
    "arrays in Python": """
        def step(dt):
            a = y.to_numpy()
            z.from_numpy(ti.ad.grad(squares, wrt=y, loss=loss)())
            scale(a, dt)
            y.from_numpy(a)
            a[0] = a[1] + dt
            a[2:4] = z.to_numpy()[:2]
            half.from_numpy(a.reshape(2, 3)[1, ::-1].astype(np.float16))
            array.from_numpy(a)
            x.from_numpy(np.swapaxes(x.to_numpy().reshape(2, 6), 0, 1))
        calls = [(0.5,), (0.25,)]
        """,
    "a lambda": "step = lambda: shift(2, 0.5)",
    "arguments that are fields": """
        def step(field, by, name=None):
            field[0] = field[1] + by
        calls = [(y, 1.5), (z, 2.5), (y, 0.5, "two")]
        """,
    "a seeded generator": """
        def step():
            y.from_numpy(np.random.default_rng(1).random(y.shape))
        """,
    "seeded generators in variables": """
        def step():
            first = np.random.default_rng(seed=(1, 2))
            second = np.random.Generator(np.random.PCG64(3))
            y.from_numpy(first.normal(size=y.shape) + second.random(y.shape))
            y[0] = first.random()
        """,
    "seeded generators of other kinds": """
        def step():
            numbers = random.Random(4)
            for i in range(3):
                y[i] = numbers.gauss(0.0, 1.0)
            z.from_numpy(np.random.RandomState(5).rand(*z.shape))
        """,
    "nothing": """
        def step():
            pass
        """,
}

#: Steps, each with a part of the line that is named and a part of the message: what is refused.
REFUSED = {
    "math.sin": ("y[0] = math.sin(y[1])", "math.sin(y[1])", "needed itself"),
    "float": ("y[0] = float(y[1])", "float(y[1])", "needed itself"),
    "an index": ("y[n[None]] = 1.0", "n[None]", "an index or a count|needed itself"),
    "a count": ("for i in range(n[None]):\n    curl()", "range(n[None])", "an index or a count"),
    "text": ('name = f"{y[0]}"', "y[0]", "its text"),
    "NumPy on it": ("y[0] = np.sin(y[1])", "np.sin(y[1])", "'sin'"),
    "arithmetic on an array": ("y.from_numpy(2 * y.to_numpy())", "2 * y.to_numpy()", "'multiply' of an array"),
    "a sum of an array": ("y[0] = y.to_numpy().sum()", "y.to_numpy().sum()", "'add' of an array"),
    "NumPy of an array": ("y[0] = np.linalg.norm(y.to_numpy())", "np.linalg.norm", "'norm' of an array"),
    "an element in single precision": ("y[0] = x.to_numpy()[0, 1]", "x.to_numpy()[0, 1]", "array of float32"),
    "a list of an array": ("y[0] = y.to_numpy().tolist()[0]", "y.to_numpy().tolist()", "`tolist` of an array"),
    "a number of an array": ("y[0] = float(total.to_numpy())", "float(total.to_numpy())", "`__float__` of an array"),
    "the text of an array": ("str(y.to_numpy())", "str(y.to_numpy())", "`__str__` of an array"),
    "chosen elements": ("y[0] = y.to_numpy()[[1, 2]][0]", "y.to_numpy()[[1, 2]]", "chosen by a list"),
    "an array behind our back": ("z.from_numpy(np.asarray(y.to_numpy()) * 2)", "z.from_numpy", "'z' differs"),
    "a view": ("y.numpy_view()[0] = 1", "y.numpy_view()", "shares the memory of 'y'"),
    "NumPy of a field": ("y[0] = np.asarray(y).sum()", "np.asarray(y)", "shares the memory of 'y'"),
    "print": ("print('step')", "print('step')", "`print`"),
    "a global by a pattern": (
        "global COUNT\nmatch [1, 2]:\n    case [1, *COUNT]:\n        pass", "*COUNT", "'COUNT', which is not a number"
    ),
    "a global that is defined": ("global helper\ndef helper():\n    pass", "def helper", "'helper', which is not"),
    "print behind arguments": ("shout()", "shout()", "`print`"),
    "print by another function": ("list(map(print, ['step']))", "print", "`print`"),
    "print in a list": ("list(map(CALLED[0], ['step']))", "CALLED", "`print`"),
    "a picture": ("ti.tools.imwrite(x, 'x.png')", "ti.tools.imwrite", "would not do again"),
    "a tape that checks": (
        "with ti.ad.Tape(loss, on_overwrite='error'):\n    squares()", "on_overwrite", "a tape that checks"
    ),
    "an iterator": ("y[0] = next(numbers)", "numbers", "is a list_iterator, whose state is not known"),
    "a list": ("history.append(y[0])", "history.append", "changes a list"),
    "a list among defaults": ("y[0] = hidden()", "calls.append", "changes a list"),
    "a list by a computed index": ("OFFSETS[len(OFFSETS) - 1] = 2.0", "OFFSETS[len(OFFSETS) - 1]", "changes a list"),
    "an attribute that is no number": ("pendulum.parts = []", "pendulum.parts", "changes the attribute .parts."),
    "a clock": ("y[0] = time.perf_counter()", "time.perf_counter()", "something else at each call"),
    "random of a class": ("y[0] = Dice(1).random()", "Dice(1).random()", "something else at each call"),
    "a clock by another function": ("y[0] = max(map(time.sleep, [0]), default=1) or 1", "time.sleep", "each call"),
    "a generator without a seed": (
        "y.from_numpy(np.random.default_rng().random(y.shape))", "np.random.default_rng()", "give the generator a seed"
    ),
    "a generator with the seed None": ("y[0] = random.Random(None).random()", "random.Random(None)", "each call"),
    "a generator that has another name": ("make = random.Random\ny[0] = make().random()", "make()", "each call"),
    "a generator in a list": ("y[0] = [np.random.default_rng()][0].random()", "np.random.default_rng()", "each call"),
    "a generator that is made again": (
        "numbers = random.Random(1)\nnumbers = random.Random()\ny[0] = numbers.random()", "random.Random()", "each"
    ),
    "a generator from outside": ("y[0] = dice.random()", "dice.random()", "each call|state is not known"),
    "random in Python": ("y[0] = random.random()", "random.random()", "something else at each call"),
    "a loop that ends by a number": ("while y[0] < 10:\n    y[0] = 2 * y[0] + 1", "y[0] < 10", "conditions"),
    "a side that raises": ("if y[0] > 100:\n    raise ValueError('far')", "y[0] > 100", "ValueError: far"),
    "an integer power": ("y[0] = n[None] ** 2", "n[None] ** 2", "'float_power'"),
    "NumPy's memory": ("scale(np.ones(3), 2.0)", "scale(np.ones(3), 2.0)", "does not own"),
    "a fraction for an integer": ("n[None] = y[0]", "n[None] = y[0]", "a float is written to numbers of type i32"),
    "whole vectors": ("x[0] = x[1] + 0.1 * x[2]", "0.1 * x[2]", "whole vectors"),
    "the norm of a vector": ("y[0] = x[1].norm()", "x[1].norm()", "whole vectors"),
    "a vector of a type": ("x[0] = ti.Vector([y[0], y[1]], dt=ti.f32)", "dt=ti.f32", "a vector of f32"),
    "a function of ti": ("y[0] = ti.floor(y[1])", "ti.floor(y[1])", "needed itself|'floor'"),
    "a sign": ("y[0] = ti.math.sign(y[1])", "ti.math.sign(y[1])", "needed itself|'sign'"),
    "an object": ("return np.zeros(2)", "", "returns ndarray"),
    "derivatives of several numbers": (
        "with ti.ad.Tape(loss):\n    y.fill(2 * mean())\n    squares()", "ti.ad.Tape(loss)", "several numbers"
    ),
}  # fmt: skip


class Library:
    """Fields and kernels that steps are written for; `single`: in single precision."""

    def __init__(self, threads: int = 1, single: bool = False) -> None:
        ti.init(num_threads=threads, default_fp=ti.f32 if single else ti.f64, random_seed=5)
        self._single = single
        self.space: dict[str, Any] = {"__name__": "captured_steps_library"}
        self.define(LIBRARY, "captured_steps_library.py")
        names = ["x", "v", "y", "z", "loss", "total", "n", "half", "flags", "lit", "array", "state", "other"]
        fields = [self.space[name] for name in names]
        body = self.space["body"]
        self.fields = [*fields, body.pos, body.mass, *[f.grad for f in fields if f.has_grad]]
        numbers = np.random.default_rng(3)
        for field in fields[:4]:
            array = numbers.uniform(0.1, 1, field.to_numpy().shape)
            field.from_numpy(array.astype(field.to_numpy().dtype))
        self.start = [field.to_numpy() for field in self.fields]

    def define(self, text: str, file: str) -> None:
        if self._single:
            text = text.replace("ti.f64", "ti.f32").replace("np.float64", "np.float32")
        lines = text.splitlines(keepends=True)
        linecache.cache[file] = (len(text), None, lines, file)
        exec(compile(text, file, "exec"), self.space)

    def step(self, text: str, name: str) -> Callable[..., Any]:
        """A step by its text."""
        self.space["calls"] = [(), ()]
        self.define("\n".join(line[8:] for line in text.splitlines()) if text[0] == "\n" else text, f"{name}.py")
        return self.space["step"]

    def begin(self) -> None:
        """All is as at first."""
        session.launches = 0
        self.space.update(passed=0.0, done=0)
        self.space["pendulum"].swings = 0
        self.space["counted"].__defaults__[0][0] = 0
        self.space["count_up"].__closure__[0].cell_contents = 0
        self.space.get("times", {}).update(now=0.0, then=[1, 2])
        for field, numbers in zip(self.fields, self.start, strict=True):
            field.from_numpy(numbers)

    def follow(self, step: Callable[..., Any]) -> list[Any]:
        """What each of the calls leaves."""
        self.begin()
        left = []
        for arguments in self.space["calls"] * 3:
            returned = bits(step(*arguments))
            fields = [field.to_numpy().tobytes() for field in self.fields]
            left.append((returned, fields, self.space["passed"], self.space["done"], session.launches))
        return left


def bits(value: Any) -> Any:
    """A value with its types and bits."""
    if isinstance(value, tuple | list):
        return type(value), [bits(one) for one in value]
    if isinstance(value, dict):
        return {key: bits(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if hasattr(value, "values"):
        return value.values.dtype, value.values.astype(np.float64).tobytes()
    return type(value), np.asarray(value, np.float64).tobytes() if value is not None else None


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.mark.parametrize("name", CAPTURED)
def test_a_program_does_what_the_function_does(library: Library, name: str) -> None:
    step = library.step(CAPTURED[name], name)
    wanted = library.follow(step)
    program = ti.capture(step)
    found = library.follow(program)
    assert program.is_captured
    assert found == wanted


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_is_refused_by_its_line(library: Library, name: str) -> None:
    body, line, message = REFUSED[name]
    library.begin()
    indented = "\n".join("    " + one for one in body.splitlines())
    step = library.step(f"def step():\n{indented}\n", name)
    before = [field.to_numpy().tobytes() for field in library.fields]
    with pytest.raises(CaptureError, match=message) as caught:
        ti.capture(step)()
    assert line in str(caught.value)
    assert [field.to_numpy().tobytes() for field in library.fields] == before, "a refused capture leaves no trace"


def test_arrays_are_returned(library: Library) -> None:
    text = """
        def step(dt):
            a = y.to_numpy()
            scale(a, dt)
            single = x.to_numpy()
            return a, a.reshape(2, 3)[1, ::2], [single.T, single.astype(np.float64)], {"of": half.to_numpy()}
        calls = [(0.5,), (0.25,)]
        """
    step = library.step(text, "returned arrays")
    wanted = library.follow(step)
    program = ti.capture(step)
    assert library.follow(program) == wanted
    first, second = program(1.0), program(2.0)
    assert type(first[0]) is np.ndarray and not np.array_equal(first[0], second[0]), "each call has its own"


def test_a_replay_is_one_native_call(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    step = library.step(CAPTURED["a tape and an update"], "one native call")
    program = ti.capture(step)
    program(0.01)
    prepared = program._last.prepared
    calls: list[int] = []
    launch = prepared._launch
    monkeypatch.setattr(prepared, "_launch", lambda address: (calls.append(address), launch(address))[1])
    monkeypatch.setattr("tinote.runtime.launch.Launcher.run", lambda *_: pytest.fail("a launch from Python"))
    program(0.01)
    assert len(calls) == 1


def test_the_first_step_that_differs_is_named(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        def step():
            shift(0, 1.0)
            y[2] = y[1] * 2
            shift(1, 2.0)
        """
    from_table = ti.lang.capture.prepare.layout  # type: ignore[attr-defined]
    monkeypatch.setattr(from_table, "REPLAY_MULTIPLY_REALS", from_table.REPLAY_ADD_REALS)
    with pytest.raises(CaptureError, match=r"replayed, 'y' differs, first after this write") as caught:
        ti.capture(library.step(text, "first difference"))()
    assert "y[2] = y[1] * 2" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("FACTOR = 4.0", "'FACTOR' has changed"),
        ("OFFSETS[1] = 5.0", "'OFFSETS' has changed"),
        ("TABLE[0] = 9.0", "'TABLE' has changed"),
        ("@ti.kernel\ndef curl():\n    y[0] = 1.0\n", "'curl' has changed"),
        ("COUNT = 5", "'COUNT' has changed|kernel"),
        ("pendulum.length = 3.0", "'length' has changed"),
        ("pendulum.parts[1].weight = 3.0", "'weight' has changed"),
        ("LOCALLY[0].weight = 3.0", "'LOCALLY' has changed"),
        ("NESTED['a'][1][0] = 3.0", "'NESTED' has changed"),
        ("NESTED['b'].append(3.0)", "'NESTED' has changed"),
        ("step.__code__ = (lambda dt: None).__code__", "'step' has changed"),
        ("helper.__defaults__ = (0,)", "'helper' has changed"),
        ("helper.__kwdefaults__['by'] = 3.0", "'helper' has changed"),
        ("pendulum.__class__ = Slower", "'pendulum' has changed|'step' has changed"),
        ("Part.__bases__ = (Tuned,)", "'pendulum' has changed|'step' has changed"),
        ("sum = len", "'sum' has changed"),
        ("AIM[0] = 3.0", "'AIM' has changed"),
        ("Part.step = lambda self, dt: None", "'step' has changed|'pendulum' has changed"),
        ("pendulum.slotted.force = 3.0", "'force' has changed"),
        ("SPRING = SPRING._replace(stiffness=3.0)", "'SPRING' has changed|'stiffness' has changed"),
        ("PAIR.second.acts[0] = 4.0", "'acts' has changed|'PAIR' has changed"),
        ("SHADOWED = 3.0", "'SHADOWED' has changed"),
        ("def helper(k=1): pass", "'helper' has changed"),
        ("NESTED['b'] = [1.0]", "'b' has changed"),
    ],
)
def test_what_changes_makes_a_program_out_of_date(change: str, message: str) -> None:
    library = Library()
    text = """
        def helper(k=1, *, by=0.5):
            shift(k, FACTOR * OFFSETS[k] + TABLE[0] + by)
        def step(dt):
            helper()
            curl()
            mean()
            pendulum.step(dt)
            for one in LOCALLY:
                y[4] = one.weight + AIM[0] + sum(NESTED["a"][1]) + sum(NESTED["b"])
            y[3] = SPRING.stiffness + PAIR.second.acts[0]
            y[2] = SHADOWED * sum([(lambda SHADOWED: SHADOWED)(k) for k in range(3)])
        """
    program = ti.capture(library.step(text, "out of date"))
    program(0.5)
    program(0.25)
    library.define(change, "change.py")
    for _ in range(2):
        with pytest.raises(CaptureError, match=message):
            program(0.5)
    step = library.space["step"]
    library.begin()
    ti.capture(step)(0.5)


@pytest.mark.parametrize(
    ("change", "name"),
    [("del y", "y"), ("del FACTOR", "FACTOR"), ("del pendulum.length", "length"), ("delete()", "held")],
)
def test_what_was_deleted_is_said_to_be_gone(change: str, name: str) -> None:
    library = Library()
    text = """
        def make():
            held = y
            def step(dt):
                held[0] = y[1] * FACTOR
                pendulum.step(dt)
            def delete():
                nonlocal held
                del held
            return step, delete
        step, delete = make()
        """
    program = ti.capture(library.step(text, "deleted"))
    program(0.5)
    library.define(change, "change.py")
    for _ in range(2):
        with pytest.raises(CaptureError, match=f"the captured step '.*step' is out of date: '{name}' is gone\\n"):
            program(0.5)


def test_a_constant_that_gets_an_equal_value_is_no_change(library: Library) -> None:
    program = ti.capture(library.step("def step():\n    shift(0, FACTOR)\n", "equal"))
    program()
    library.define("FACTOR = 1.5 + 1.5", "equal_value.py")
    program()


class Rated:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    def total(self) -> float:
        return self.rate


LOOKS = {
    "the function": lambda items, look: sum(map(operator.attrgetter("rate"), items)),
    "by another name": lambda items, look: sum(map(getter_of("rate"), items)),
    "a built-in by another name": lambda items, look: look(items[1], "rate"),
    "part of a call": lambda items, look: functools.partial(look, items[1])("rate"),
    "mapped": lambda items, look: sum(map(look, items, ["rate", "rate"])),
    "a method": lambda items, look: sum(map(operator.methodcaller("total"), items)),
    "a name that is computed": lambda items, look: getattr(items[1], "ra" + "te"),
}


@pytest.mark.parametrize("name", LOOKS)
def test_attributes_that_are_looked_for_by_name_are_compared(name: str) -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    total = ti.field(ti.f64, shape=())
    find, look, items = LOOKS[name], getattr, [Rated(1.0), Rated(2.0)]

    @ti.kernel
    def add(value: ti.f64):
        total[None] += value

    def step() -> None:
        add(find(items, look))

    program = ti.capture(step)
    program()
    items[1].rate = 5.0
    with pytest.raises(CaptureError, match="has changed since"):
        program()


def test_what_the_package_loads_when_a_step_asks_for_it_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i] ** 2

    def step() -> None:
        with ti.ad.Tape(loss):
            measure()

    monkeypatch.delattr(ti, "ad")
    program = ti.capture(step)
    for value in (1.0, 2.0):
        x.fill(value)
        program()
        assert x.grad.to_numpy().tolist() == [2 * value] * 3


def test_fields_that_are_gone_are_reported() -> None:
    library = Library()
    program = ti.capture(library.step("def step():\n    curl()\n", "gone"))
    program()
    ti.init()
    with pytest.raises(CaptureError, match="fields that it uses are gone"):
        program()
    Library()


def test_fields_with_gradients_that_come_are_reported(library: Library) -> None:
    program = ti.capture(library.step(CAPTURED["a tape and an update"], "new gradients"))
    program(0.01)
    late = ti.field(ti.f64, shape=3, needs_grad=True)
    with pytest.raises(CaptureError, match="have come or gone"):
        program(0.01)
    del late


def test_without_a_tape_other_fields_are_no_matter(library: Library) -> None:
    program = ti.capture(library.step("def step(by):\n    shift(0, by)\n", "no tape"))
    program(0.5)
    late = ti.field(ti.f64, shape=3, needs_grad=True)
    program(0.5)
    assert late.grad[0] == 0


def test_globals_that_are_named_are_parameters(library: Library) -> None:
    library.begin()
    library.define("FACTOR = 3.0", "parameters.py")
    program = ti.capture(library.step("def step():\n    y.fill(2 * FACTOR)\n", "named"), parameters=["FACTOR"])
    program()
    library.define("FACTOR = 5.0", "parameters.py")
    program()
    assert library.space["y"][0] == 10.0
    library.define("FACTOR = 3.0", "parameters.py")


def test_the_method_of_an_array_is_no_state(library: Library) -> None:
    """It is another object each time."""
    library.begin()
    library.define("START = np.arange(6.0)", "start.py")
    program = ti.capture(library.step("def step():\n    y.from_numpy(START.astype(y.to_numpy().dtype))\n", "start"))
    program()
    library.space["y"].fill(0.0)
    program()
    assert library.space["y"].to_numpy().tolist() == list(range(6))


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_global_that_is_set_to_a_constant(library: Library, number: int) -> None:
    """Whatever number a register has: the constant is another operand."""
    library.begin()
    library.define("first, second, third = 7, 8, 9", "set.py")
    text = f"def step():\n    global first, second, third\n    first = second = third = {number}\n    y.fill(2.0)\n"
    program = ti.capture(library.step(text, f"set to {number}"))
    program()
    library.define("first, second, third = 7, 8, 9", "set.py")
    program()
    assert [library.space[name] for name in ("first", "second", "third")] == [number] * 3


def test_under_a_tape_the_function_itself_runs(library: Library) -> None:
    library.begin()
    program = ti.capture(library.step("def step(by):\n    shift(0, by)\n    squares()\n", "under a tape"))
    program(0.5)
    library.begin()
    with ti.ad.Tape(library.space["loss"]):
        program(0.5)
    y = library.space["y"]
    np.testing.assert_allclose(y.grad.to_numpy(), 2 * y.to_numpy())


def test_programs_in_programs(library: Library) -> None:
    library.define("inner = ti.capture(lambda by: shift(0, by))", "inner.py")
    step = library.step("def step(by):\n    inner(by)\n    inner(2 * by)\ncalls = [(0.5,), (1.5,)]\n", "nested")
    wanted = library.follow(step)
    assert library.follow(ti.capture(step)) == wanted


def test_methods_have_a_program_for_each_object(library: Library) -> None:
    text = """
        class Mover:
            def __init__(self, by):
                self.by = by
            @ti.capture
            def step(self, k):
                shift(k, self.by)
        """
    library.step("step = None", "none")
    library.define("\n".join(line[8:] for line in text.splitlines()), "movers.py")
    library.begin()
    y = library.space["y"]
    first = y[5]
    one, two = library.space["Mover"](1.0), library.space["Mover"](10.0)
    for mover in (one, two, one):
        mover.step(0)
    assert y[5] == first + 1.0 + 10.0 + 1.0
    assert one.step is one.step and one.step is not two.step


def test_faults_are_reported_where_they_arise(library: Library) -> None:
    library.begin()
    text = "def step(k, a):\n    y[0] = a / (k - 3)\n    return element(k)\n"
    program = ti.capture(library.step(text, "faults"))
    program(1, 1.0)
    with pytest.raises(KernelIndexError, match="return y"):
        program(7, 1.0)
    with pytest.raises(KernelZeroDivisionError) as caught:
        program(3, 1.0)
    assert "a / (k - 3)" in str(caught.value)
    assert program(2, 1.0) == library.space["y"][2]


def test_a_replay_can_be_stopped() -> None:
    ti.init(num_threads=1)
    x = ti.field(ti.f32, shape=())

    @ti.kernel
    def work():
        ti.loop_config(serialize=True)
        for _ in range(1000):
            x[None] = ti.sin(x[None])

    def step():
        for _ in range(300):
            work()

    program = ti.capture(step)
    program()
    stopped = threading.Event()

    def stop() -> None:
        while not stopped.is_set():
            stop_all()
            time.sleep(0.001)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for _ in range(1000):
                program()
    finally:
        stopped.set()
        thread.join()
    program()


def test_a_replay_can_be_interrupted(library: Library) -> None:
    step = library.step("def step():\n    for _ in range(500):\n        shift(0, 0.0)\n", "interrupted")
    program = ti.capture(step)
    program()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            program()
    timer.join()
    program()


def test_several_threads_give_what_one_gives() -> None:
    library = Library(threads=2)
    step = library.step(CAPTURED["a tape that saves what is overwritten"], "two threads")
    wanted = library.follow(step)
    assert library.follow(ti.capture(step)) == wanted


def test_a_plan_holds_no_address(library: Library) -> None:
    program = ti.capture(library.step(CAPTURED["a tape that saves what is overwritten"], "addresses"))
    program()
    (plan,) = program.programs
    known = [memory.address for memory in session.memories.values()]
    assert not any(str(address) in repr((plan.blocks, plan.codes, plan.root.steps)) for address in known)
    assert {block.kind for block in plan.blocks} == {"field", "scratch"}


def test_plain_python_runs_the_function() -> None:
    ti.init(arch=ti.python)
    y = ti.field(ti.f64, shape=3)

    @ti.kernel
    def add(by: ti.f64):
        for i in y:
            y[i] += by

    program = ti.capture(lambda by: add(by))
    program(1.5)
    program(math.pi)
    assert y[0] == 1.5 + math.pi
    assert not program.is_captured


@pytest.mark.parametrize("unasked", [False, True])
def test_random_kernels_behind_conditions_keep_their_own_seeds(unasked: bool) -> None:
    """A gradient that is launched by itself repeats the draws of the launch before it, on each side of a condition."""
    ti.init(num_threads=1, default_fp=ti.f64, random_seed=5)
    y, n = ti.field(ti.f64, shape=4, needs_grad=True), ti.field(ti.i32, shape=())

    def noise(by: float) -> Any:
        @ti.kernel
        def draw():
            for i in y:
                y[i] *= 1 + by * ti.random()

        return draw

    first, odd, even, late = map(noise, (0.1, 0.2, 0.3, 0.4))

    def step() -> None:
        first()
        n[None] += 1
        if n[None] % 2 == 0:
            even()
        else:
            odd()
            if n[None] % 3 == 0:
                late()

    def follow(run: Callable[[], object]) -> list[Any]:
        y.fill(1.0)
        n[None], session.launches = 0, 0
        found = []
        for _ in range(40):
            run()
            seeds = [kernel.instances[-1].last_seed if kernel.instances else 0 for kernel in kernels]
            gradients = []
            for kernel in (first, odd, even):
                if kernel.instances:
                    y.grad.fill(1.0)
                    kernel.grad()
                    gradients.append(y.grad.to_numpy().tobytes())
            found.append((seeds, gradients, y.to_numpy().tobytes(), session.launches))
        return found

    kernels = (first, odd, even, late)
    program = AutomaticCapture(step) if unasked else ti.capture(step)
    for _ in range(2):  # until a kernel draws in a run for the first time, it has the seed of the run before
        wanted, found = follow(step), follow(program)
    assert found == wanted
    assert program.how.replays if isinstance(program, AutomaticCapture) else program.is_captured


def test_arguments_that_are_left_out(library: Library) -> None:
    def step(by: float = 0.5, times: int = 2) -> float:
        library.space["y"][0] = by * times
        return by + times

    def needs(a: float, b: float = 2.0, *, c: float = 3.0) -> float:
        return a + b * c

    program, keyword = ti.capture(step), ti.capture(needs)
    for given in ((), (0.25,), (0.25, 3)):
        assert program(*given) == step(*given)
    assert program(times=5) == 5.5 and len(program.programs) == 1
    with pytest.raises(TypeError):
        program(1.0, 2, 3)
    with pytest.raises(CaptureError, match="positions"):
        keyword(1.0)


def test_arrays_are_returned_in_whatever_holds_them() -> None:
    """What is left out of a step knows of those in dictionaries, too."""
    ti.init(default_fp=ti.f64)
    y = ti.field(ti.f64, shape=4, needs_grad=True)
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def cubes():
        for i in y:
            total[None] += y[i] ** 3

    @ti.kernel
    def shift(by: ti.f64):
        for i in y:
            y[i] += by

    slope = ti.ad.grad(cubes, wrt=y, loss=total)

    def step(dt: float) -> dict[str, Any]:
        before = y.to_numpy()
        shift(dt)
        return {"before": before, "more": [slope(), {"after": y.to_numpy()}]}

    replayed = ti.capture(step)
    for dt in (0.5, 0.25):
        found = []
        for one in (replayed, step):
            y.from_numpy(np.arange(4.0))
            found.append(one(dt))
        assert str(found[0]) == str(found[1])


def test_numbers_of_numpy_keep_their_arithmetic(library: Library) -> None:
    """Those with the arithmetic of Python's are taken, others refused: `np.float32(0.1) / 3` is another number."""
    space = library.space
    program = ti.capture(library.step("def step(a):\n    y[0] = a / 3\n", "numbers of NumPy"))
    for value in (0.1, np.float64(0.1), np.int64(7)):
        program(value)
        assert space["y"][0] == value / 3
    for value in (np.float32(0.1), np.float16(0.1), np.int32(7), np.uint8(7), np.bool_(True)):
        with pytest.raises(CaptureError, match=f"not with {type(value).__name__}.*computed with in another way"):
            program(value)


def test_defaults_that_are_replaced_are_those_of_the_next_call(library: Library) -> None:
    step: Any = library.step("def step(a=0.5):\n    y[0] = a\n", "defaults")
    program = ti.capture(step)
    step.__defaults__ = (0.25,)
    program()
    assert library.space["y"][0] == 0.25
    step.__defaults__ = (0.125,)
    with pytest.raises(CaptureError, match="'step' has changed"):
        program()


def test_what_is_collected_meanwhile_is_not_the_steps(library: Library) -> None:
    """Garbage that Python collects while it runs: functions that are left then end as ever, and what libraries do about
    collections (JAX registers a callback) is theirs.
    """
    ended: list[int] = []
    phases: list[tuple[str, float]] = []

    def notes(phase: str, _: object) -> None:
        phases.append((phase, time.perf_counter()))

    def waits(number: int) -> Any:
        try:
            yield
        finally:
            ended.append(number)

    text = "def step():\n    lists = [[k] for k in range(100_000)]\n    shift(0, 0.5 * len(lists))\n"
    program = ti.capture(library.step(text, "collected meanwhile"))
    thresholds = gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        for number in range(20):
            circle: list[Any] = [waits(number)]
            next(circle[0])
            circle.append(circle)
        gc.set_threshold(60_000, 1000, 1000)  # in the first call, not before
        del circle
        gc.callbacks.append(notes)
        gc.enable()
        program()
    finally:
        gc.callbacks.remove(notes)
        gc.set_threshold(*thresholds)
        gc.enable()
    assert program.is_captured and sorted(ended) == list(range(20))
    assert {"start", "stop"} == {phase for phase, _ in phases}


def test_a_change_before_a_function_is_met_counts() -> None:
    """What a call meets is read then, and from then on compared: what changed before must not be forgotten."""
    ti.init(num_threads=1, default_fp=ti.f64)
    total = ti.field(ti.f64, shape=())
    table = np.array([1.0])

    def met(value: float) -> float:
        return 2 * value

    @ti.kernel
    def add(by: ti.f64):
        total[None] += by

    def step() -> None:
        add(table[0])
        np.copyto(table, 5.0)
        add(next(map(met, [1.0])))

    with pytest.raises(CaptureError, match="a call changes 'table' in Python") as error:
        ti.capture(step)()
    assert error.value.span.line > 0
