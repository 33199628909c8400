"""A step that is captured unasked does, call by call, what it does as a function: to memory, in Python, to whoever
listens, and when it fails. Everything that a step may do is a row here, and runs both ways.
"""

from __future__ import annotations

import io
import re
import threading
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_captured_steps import Library
from tinote.errors import FieldError
from tinote.lang.capture import automatic
from tinote.lang.capture.automatic import AutomaticCapture
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import session

#: How many calls each row has, and how many of them make a frame.
CALLS, FRAME = 48, 3

#: What else the steps use: `between(call)` is what a user does between frames, `watched` what is compared in Python.
MORE = """\
import collections, contextlib, functools, io, itertools, json, logging, os, sys, types, warnings

clock = 0
dt = 0.125
limit = 1.0
words = io.StringIO()
numbers = np.random.default_rng(1)
log = []
table = {}
seen = set()
last = collections.deque(maxlen=3)
counts = itertools.count()
settings = {"dt": 0.125, "parts": [[0.5, 0.25]], "t": 0.0}
space = types.SimpleNamespace(dt=0.125)
weights = np.array([0.5, 0.25, 0.125])
aim = ti.Vector([0.5, 0.25])

class Clock:
    def __init__(self):
        self.now = 0.0
        self.rate = 0.125
        self.ticks = []
        self.inner = [Clock.Rate(0.25), Clock.Rate(0.5)]

    class Rate:
        def __init__(self, value):
            self.value = value

        def __repr__(self):
            return f"rate {self.value}"

    def advance(self):
        self.now += self.rate
        y[0] = self.now

    def __lshift__(self, one):
        self.ticks.append(one)

    @property
    def double(self):
        return 2 * self.rate

watch = Clock()

def counter(by):
    count = 0
    def step():
        nonlocal count
        count += by
        y[1] = count
    return step

def between(call):
    pass

def watched():
    return (clock, dt, log, table, sorted(seen), list(last), vars(watch), settings, vars(space), weights.tolist(),
            aim.values.tolist(), words.getvalue(), [one.value for one in watch.inner])
"""

TAPE = """
def step():
    with ti.ad.Tape(total):
        energy()
    advance(dt)
"""

COUNTING = """
def step():
    global clock
    shift(clock % 6, 0.125)
    clock += 1
"""

#: Steps that are replayed: the text of `step`, and what changes between frames.
REPLAYED = {
    "a tape and an update": TAPE,
    "a tape that saves what is overwritten": """
def step():
    with ti.ad.Tape(loss):
        curl()
        curl()
        squares()
    shift(0, -0.125)
""",
    "a gradient alone": """
def step():
    loss.grad[None] = 2.0
    squares.grad()
    for k in range(3):
        y[k] = y[k] - 0.125 * y.grad[k]
""",
    "temporary adjoints and checkpoints": """
def one(t):
    curl()
def step():
    with ti.ad.Tape(loss):
        ti.ad.checkpoint(one, 4, memory=3 * 8 * COUNT)
        through()
    shift(0, -0.125)
""",
    "a custom VJP": """
@ti.ad.grad_replaced
def forward():
    curl()
@ti.ad.grad_for(forward)
def backward():
    shift(0, 0.0)
def step():
    with ti.ad.Tape(loss):
        forward()
        squares()
    shift(0, -0.125)
""",
    "elements, arithmetic and what kernels return": """
def step():
    m, c = mean(), centre()
    y[0] = (m - c.x) * dt + y[1] // 0.25 - abs(y[2]) ** 1.5
    n[None] = n[None] * 3 % 7 + 1
    flags[1] = n[None]
    x[2] = x[3]
    z.copy_from(y)
    v.fill(y[0])
    x.from_numpy(np.arange(2 * COUNT, dtype=np.float32).reshape(COUNT, 2))
    scale(array, 1 + dt)
    body[0].mass = body[0].mass + dt
    return x, [m]
""",
    "random numbers": """
def step():
    noise()
    noise()
""",
    "a kernel": "step = curl",
    "a method": "step = watch.advance",
    "a part of a function": """
def move(by, k=1):
    shift(k, by)
step = functools.partial(move, 0.5, k=2)
""",
    "a lambda": "step = lambda: shift(2, dt)",
    "a variable of an outer function": "step = counter(2)",
    "an object that is called": """
class Step:
    def __call__(self):
        shift(1, dt)
step = Step()
""",
    "a global that counts": COUNTING.replace("shift(clock % 6, 0.125)", "y[0] = clock * dt"),
    "an attribute that counts": """
def step():
    watch.now += watch.double
    y[0] = watch.now
""",
    "a dictionary that counts": """
def step():
    settings["t"] += settings["dt"]
    y[0] = settings["t"]
""",
    "an argument that counts": COUNTING,
    "a field of its own": """
def step():
    here = ti.field(ti.f64, shape=2)
    here[0] = y[0]
    y[1] = here[0] + 1
""",
    "objects in lists": """
def step():
    for one in watch.inner:
        y[0] = y[0] + one.value
    y[1] = sum(weights) + aim[0]
""",
    "every fourth call something else": """
def step():
    global clock
    if clock % 4 == 0:
        noise()
    curl()
    clock += 1
    if clock % 4 == 0:
        shift(0, -1.0)
""",
    "a side that comes late": """
def step():
    global clock
    clock += 1
    if clock > 30:
        shift(2, 1.0)
    else:
        curl()
""",
    "a condition on a field": """
def step():
    if y[0] > limit:
        y[0] = y[0] - 1
    else:
        y[0] = y[0] + 0.75
""",
    "lists of its own": """
def step():
    parts = []
    for k, w in enumerate(weights):
        parts.append(y[k] + float(w))
    parts.sort(key=lambda one: 0)
    y[3] = parts[0] + max(len(parts), 2)
    own = {"a": 1}
    own["b"] = parts.pop()
    y[4] = own["b"]
""",
    "a side that nobody needs": """
def step():
    curl()
    if log:
        print("never")
""".replace('        print("never")', "        shift(0, len(log))"),
    "a number that changes": TAPE + "def between(call):\n    global dt\n    dt = 0.125 if call % 6 else 0.25\n",
    "a number that becomes an integer": TAPE + "def between(call):\n    global dt\n    dt = 1 if call == 18 else dt\n",
    "a number that counts loops": """
rounds = 1
def step():
    for _ in range(rounds):
        curl()
def between(call):
    global rounds
    rounds = 2 if call > 20 else 1
""",
    "a number that a kernel captures": """
strength = 0.125
@ti.kernel
def blow():
    for i in y:
        y[i] += strength
def step():
    blow()
    y[0] = strength
def between(call):
    global strength
    strength = 0.25 if call > 20 else strength
""",
    "an attribute of which a kernel knows": """
class Held(io.StringIO):
    rate = 0.5
held = Held()
@ti.kernel
def blow():
    for i in y:
        y[i] += ti.static(held.rate)
def step():
    blow()
def between(call):
    held.rate = 0.25 if call > 20 else 0.5
""",
    "an attribute that changes": """
def step():
    y[0] = y[0] + watch.rate * space.dt
def between(call):
    watch.rate = space.dt = 0.125 * (1 + call // 20)
""",
    "an attribute of an object in a list that changes": """
def step():
    for one in watch.inner:
        y[0] = y[0] + one.value
def between(call):
    watch.inner[1].value = 0.5 * (1 + call // 20)
""",
    "an array that changes in place": """
def step():
    y[0] = y[0] + float(weights[1])
def between(call):
    weights[1] = 0.25 * (1 + call // 20)
""",
    "a list in a dictionary that changes": """
def step():
    y[0] = y[0] + settings["parts"][0][1]
def between(call):
    settings["parts"][0][1] = 0.25 * (1 + call // 20)
""",
    "a vector that changes in place": """
def step():
    y[0] = y[0] + aim[0]
def between(call):
    aim[0] = 0.25 * (1 + call // 20)
""",
    "a kernel that is defined anew": """
def step():
    curl()
def between(call):
    global curl
    if call == 21:
        curl = squares
""",
    "a helper that is defined anew": """
def helper():
    curl()
def step():
    helper()
def between(call):
    global helper
    if call == 21:
        helper = lambda: shift(1, 2.0)
""",
    "a method that is replaced": """
def step():
    watch.advance()
def between(call):
    if call == 21:
        Clock.advance = lambda self: shift(1, self.rate)
""",
    "a field under another name": """
target = y
def step():
    target[0] = target[0] + 0.5
def between(call):
    global target
    target = z if call > 20 else y
""",
    "fields that others change": """
def step():
    curl()
def between(call):
    y[call % 6] = 0.5
    y.numpy_view()[1] = 0.25
""",
    "a field that goes": """
extra = ti.field(ti.f64, shape=4, needs_grad=True)
def step():
    curl()
    if "extra" in globals_of:
        globals_of["extra"][0] = 1.0
globals_of = {"extra": extra}
def between(call):
    global extra
    if call == 21:
        extra = None
        globals_of.clear()
""",
    "gradients that come": TAPE + """
more = []
def between(call):
    if call == 21:
        more.append(ti.field(ti.f32, shape=3, needs_grad=True))
        more[0].grad[1] = 3.0
def watched():
    return [one.grad.to_numpy().tolist() for one in more]
""",
    "a tape of a cell": TAPE + """
def between(call):
    if call % 9 == 0:
        with ti.ad.Tape(total, clear_gradients=call % 2 == 0):
            energy()
            energy()
""",
}  # fmt: skip

#: Steps that are not: the text, and a part of the reason.
FUNCTIONS = {
    "print": ("def step():\n    curl()\n    print('step')\n", "`print`"),
    "a rare print": (COUNTING + "    if clock % 7 == 0:\n        print(clock)\n", "`print`"),
    "a list that grows": ("def step():\n    curl()\n    log.append(1)\n", "changes a list"),
    "a list by another name": ("def step():\n    here = log\n    here.append(1)\n", "changes a list"),
    "a list that is empty at first": (
        "def step():\n    curl()\n    for one in [log]:\n        one += [1]\n", "'log' in Python"
    ),
    "a list as a default": ("def step(history=[]):\n    history.append(1)\n    curl()\n", "changes a list"),
    "a list in a closure": (
        "def outer():\n    own = []\n    def step():\n        own.append(1)\n        y[0] = len(own)\n    return step\n"
        "step = outer()\n", "changes a list"
    ),
    "a list by an operator": ("def step():\n    curl()\n    watch << 1\n", "changes a list"),
    "a rare list": (COUNTING + "    if clock % 7 == 0:\n        here = log\n        here.append(clock)\n", "list"),
    "a new key": ("def step():\n    curl()\n    table[len(table)] = 1\n", "changes a dict"),
    "a set": ("def step():\n    curl()\n    seen.add(len(seen))\n", "changes a set"),
    "a queue": ("def step():\n    curl()\n    last.append(len(log))\n", "changes a deque"),
    "an array": ("def step():\n    curl()\n    weights[0] += 1\n    y[0] = float(weights[0])\n", "changes an ndarray"),
    "an array by another name": ("def step():\n    here = weights\n    here += 1\n    curl()\n", "'weights' in Python"),
    "a vector": ("def step():\n    curl()\n    aim[0] = aim[0] + 1\n", "changes a Vector"),
    "an iterator": ("def step():\n    y[0] = next(counts)\n", "whose state is not known"),
    "a text": ("def step():\n    curl()\n    words.write('a')\n", "may change more than memory"),
    "an object of a library": ("def step():\n    y[0] = numbers.uniform()\n", "something else at each call"),
    "numbers of NumPy": ("def step():\n    y[0] = np.random.uniform()\nnp.random.seed(1)\n", "at each call"),
    "a clock": ("def step():\n    curl()\n    time.perf_counter()\n", "something else at each call"),
    "a log": ("def step():\n    curl()\n    logging.getLogger('x').debug('a')\n", "it calls"),
    "a warning": ("def step():\n    curl()\n    warnings.warn('w')\nwarnings.simplefilter('ignore')\n", "it calls"),
    "an import": ("def step():\n    import random\n    curl()\n", "imports"),
    "text of a number": ("def step():\n    name = f'{y[0]}'\n    curl()\n", "its text"),
    "a plain number of it": ("def step():\n    y[0] = math.sin(y[1])\n", "needed itself"),
    "an index": ("def step():\n    y[int(n[None] % 6)] = 1.0\n    n[None] += 1\n", "needed itself"),
    "a number in text in Python": ("def step():\n    y[0] = len(json.dumps(y[1]))\n", "it calls"),
    "to_numpy": ("def step():\n    y[0] = y.to_numpy()[1] / 2\n", "a copy of 'y'"),
    "a view of NumPy's": ("def step():\n    y.numpy_view()[0] += 1\n", "shares the memory"),
    "an exception that is caught": (
        "def step():\n    try:\n        y[0] = 1 / (n[None] - 2)\n    except ZeroDivisionError:\n        y[0] = 3.0\n"
        "    n[None] += 1\n", "catches exceptions"
    ),
    "an exception that a library catches": (
        "def step():\n    with contextlib.suppress(ZeroDivisionError):\n        y[0] = 1 / (n[None] - 2)\n"
        "    n[None] += 1\n", "it calls"
    ),
    "a loop that ends by a number": (
        "def step():\n    y[0] = 0.5\n    while y[0] < n[None]:\n        y[0] = 2 * y[0] + 1\n    n[None] += 3\n",
        "one side|conditions"
    ),
    "a side that is never met": ("def step():\n    curl()\n    if y[0] > 1e9:\n        shift(0, 1.0)\n", "one side"),
    "a global that becomes text": (
        "def step():\n    global clock\n    clock = 'late' if clock else 1\n    curl()\n", "is no longer a number"
    ),
    "a global that is deleted": (
        "def step():\n    global clock\n    clock = 0\n    del clock\ndef watched():\n    return log\n",
        "deletes|number"
    ),
    "integers without end": (
        "def step():\n    n[None] = settings['t'] * n[None] % 7 + 1\n    settings['t'] += 1\nsettings['t'] = 1 << 60\n",
        "64 bits"
    ),
    "a thread": (
        "import threading\ndef step():\n    t = threading.Thread(target=curl)\n    t.start()\n    t.join()\n",
        "it calls"
    ),
    "memory of NumPy's": ("def step():\n    scale(weights, 1.5)\n", "'weights' in Python|does not own"),
}  # fmt: skip

#: Steps that fail at some call.
FAILING = {
    "a kernel": "def step():\n    global clock\n    clock += 1\n    element(clock // 5)\n",
    "Python": "def step():\n    global clock\n    clock += 1\n    y[0] = 1 / (clock - 30)\n",
    "Python, by a field": "def step():\n    n[None] += 1\n    y[0] = 1 / (n[None] - 30)\n",
    "a number that does not fit": "def step():\n    flags[0] = flags[0] + 8\n",
}


class Run:
    """A row, as a function or captured."""

    def __init__(self, text: str, name: str, *, captured: bool) -> None:
        self.library = Library()
        self.library.define(MORE, "automatic_captures.py")
        self.library.define(text, f"automatic {name}.py")
        self.space = self.library.space
        self.step = AutomaticCapture(self.space["step"]) if captured else None
        self.left: list[Any] = []
        self.library.begin()

    def call(self, call: int) -> None:
        """One call, and what it leaves."""
        if self.step is not None and call % FRAME == 0:
            self.step.renew()
        out, error = io.StringIO(), None
        with redirect_stdout(out):
            try:
                (self.step or self.space["step"])()
            except Exception as found:
                kinds = (IndexError, ZeroDivisionError, OverflowError, NameError, Exception)
                error = next(kind for kind in kinds if isinstance(found, kind))
                if "out of bounds" in str(found) and isinstance(found, FieldError):
                    error = OverflowError  # of a number in Python
        fields = [field.to_numpy().tobytes() for field in self.library.fields]
        self.left.append((out.getvalue(), error, repr(self.space["watched"]()), session.launches, fields))

    def run(self) -> list[Any]:
        """All of them."""
        for call in range(CALLS):
            self.call(call)
            if call % FRAME == FRAME - 1:
                self.space["between"](call)
        return self.left


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is."""
    monkeypatch.setattr(automatic, "LONGEST_STEP", 1e9)


def both(text: str, name: str) -> AutomaticCapture:
    """Run a row both ways, and compare."""
    wanted = Run(text, name, captured=False).run()
    run = Run(text, name, captured=True)
    found = run.run()
    for call, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert a == b, f"call {call} differs: {run.step.how}"
    return run.step


@pytest.mark.parametrize("name", REPLAYED)
def test_what_is_replayed_does_what_the_function_does(name: str) -> None:
    how = both(REPLAYED[name], name).how
    assert how.replays > 5, how


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_cannot_be_captured_runs_as_the_function_and_says_why(name: str) -> None:
    text, reason = FUNCTIONS[name]
    how = both(text, name).how
    assert how.state == "function" and how.replays <= (1 if "rare" in name else 0), how
    assert how.span is not None and how.span.line > 0
    assert re.search(reason, how.reason), how
    assert f"(line {how.span.line}: " in how.sentence


@pytest.mark.parametrize("name", FAILING)
def test_what_fails_fails_at_the_same_call(name: str) -> None:
    assert both(FAILING[name], name).how.replays > 5


def test_a_number_that_changes_again_and_again_is_a_variable() -> None:
    text = TAPE + "def between(call):\n    global dt\n    dt = 0.001 * call\n"
    how = both(text, "often").how
    assert how.captures == 1 and how.replays > CALLS // 2


def test_what_changes_at_each_frame_is_not_captured_at_each() -> None:
    text = "def step():\n    y[0] = y[0] + len(log)\ndef between(call):\n    log.append(1)\n"
    assert both(text, "growing").how.captures <= 2


def test_a_helper_that_is_mended_lets_the_step_be_captured() -> None:
    text = """
def helper():
    log.append(1)
def step():
    curl()
    helper()
def between(call):
    global helper
    if call == 5:
        helper = lambda: None
"""
    assert both(text, "mended").how.state == "replayed"


def test_kernels_know_how_often_they_were_launched() -> None:
    counts = []
    for captured in (False, True):
        run = Run(REPLAYED["every fourth call something else"], "calls", captured=captured)
        run.run()
        if run.step is not None:
            run.step.renew()
            assert run.step.how.replays > 5
        counts.append({name: [i.calls for i in run.space[name].instances] for name in ("curl", "noise", "shift")})
    assert counts[0] == counts[1]


def test_other_threads_see_plain_numbers_while_a_call_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(COUNTING.replace("shift(clock % 6, 0.125)", "y[0] = clock * dt"), "threads", captured=True)
    found = []

    def look() -> None:
        clock = run.space["clock"]
        found.append((type(clock), float(clock), f"{clock + 1}", [10, 20][clock * 0], bool(clock > -1)))

    def launch(*_: Any) -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    monkeypatch.setattr(automatic.Following, "assigning", launch)
    for call in range(6):
        run.call(call)
    assert Traced in {one[0] for one in found}
    assert all(number == float(text) - 1 for _, number, text, _, _ in found)


def test_a_slow_step_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "LONGEST_STEP", 0.0)
    how = both(TAPE, "slow").how
    assert how.state == "function" and "nearly all in kernels" in how.reason


def test_large_state_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "LARGEST_STATE", 8)
    how = both(TAPE, "large").how
    assert how.state == "function" and "a proof would have to copy" in how.reason


def test_a_replay_that_differs_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = ti.lang.capture.prepare.layout  # type: ignore[attr-defined]
    monkeypatch.setattr(prepare, "REPLAY_MULTIPLY_REALS", prepare.REPLAY_ADD_REALS)
    how = both("def step():\n    y[2] = y[1] * 2\n    shift(1, 2.0)\n", "differs").how
    assert how.state == "function" and "replayed, 'y' differs" in how.reason


def test_plain_python_is_not_captured() -> None:
    ti.init(arch=ti.python)
    y = ti.field(ti.f64, shape=3)

    @ti.kernel
    def add():
        for i in y:
            y[i] += 1.5

    step = AutomaticCapture(add)
    for _ in range(12):
        step()
    assert y[0] == 18.0 and step.how.replays == 0


def test_random_states(random_programs: range) -> None:
    """From other states than that of the table."""
    names = [name for name in REPLAYED if "between" not in REPLAYED[name]]
    for seed in random_programs[::20]:
        name = names[seed % len(names)]
        results = []
        for captured in (False, True):
            run = Run(REPLAYED[name], name, captured=captured)
            rng = np.random.default_rng(seed)
            for field in run.library.fields[:4]:
                array = field.to_numpy()
                field.from_numpy(rng.normal(size=array.shape).astype(array.dtype))
            results.append(run.run())
        assert results[0] == results[1], (seed, name)
