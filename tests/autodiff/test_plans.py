"""Derivatives that are called again and again run by plans (`lang/capture/planned.py`): what comes of it is what comes
of the calls themselves, bit for bit, whatever changes between two of them.

    pytest tests/autodiff/test_plans.py --random-programs 2000
"""

from __future__ import annotations

import gc
import linecache
import random
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.support import unfilled
from tinote.errors import CaptureError
from tinote.lang.capture import captured, first_stores, planned, rehearsal
from tinote.lang.capture.first_stores import LEAST_BYTES
from tinote.lang.session.state import session as state
from tinote.program import operations as ops
from tinote.runtime.pool import WARM_FROM, pool

#: The most bytes that one sweep may save.
MEMORY = 4 << 20
#: What all programs have.
LIBRARY = """\
import functools
import numpy as np
import tinote as ti

N = 6
FACTOR = 2.0
ROWS = 4
LINE = ti.types.ndarray(dtype=ti.f64, ndim=1)
FLOATS = ti.types.ndarray(dtype=ti.f32, ndim=1)
INDICES = ti.types.ndarray(dtype=ti.i32, ndim=1)

x = ti.field(ti.f64, N, needs_grad=True, needs_dual=True)
y = ti.field(ti.f64, N, needs_grad=True, needs_dual=True)
z = ti.field(ti.f64, N)
loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
single = ti.field(ti.f64, 1, needs_grad=True)
counter = ti.field(ti.i32, ())
a = ti.ndarray(ti.f64, N, needs_grad=True)
b = ti.ndarray(ti.f64, N, needs_grad=True)
for k, one in enumerate((x, y, z, a, b)):
    one.from_numpy(np.linspace(0.5, 1.5 + k, N))
x.grad.fill(7.0)
y.dual.fill(5.0)
p = np.linspace(0.25, 2.0, N)
q = np.linspace(1.0, 3.0, N)
seed = np.linspace(-1.0, 1.0, N)
weights = np.linspace(2.0, 3.0, N)
order = np.arange(N, dtype=np.int32)
calls = []

@ti.func
def shaped(v):
    return v * v * FACTOR

@ti.kernel
def cubes(v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += shaped(v[i]) * v[i]
    return s

@ti.kernel
def singles(v: FLOATS) -> ti.f32:
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i] * v[i]
    return s

@ti.kernel
def weighted(v: LINE, w: LINE, by: ti.f64, power: ti.i32) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += by * w[i] * v[i] ** power
    return s

@ti.kernel
def gathered(v: LINE, at: INDICES) -> ti.f64:
    s = 0.0
    for i in range(at.shape[0]):
        s += v[at[i]] ** 2
    return s

@ti.kernel
def double(v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        v[i] = v[i] * 2
        s += v[i] ** 2
    counter[None] += 1
    return s

@ti.kernel
def moved(v: LINE, w: LINE):
    for i in v:
        w[i] = ti.sin(v[i]) + 0.5 * v[i]

@ti.kernel
def squares():
    for i in x:
        loss[None] += y[i] * x[i] ** 2

@ti.kernel
def into(v: LINE):
    for i in v:
        y[i] = x[i] * v[i] ** 2

@ti.kernel
def further():
    for i in y:
        y[i] = ti.sin(y[i]) * y[i]

@ti.kernel
def through():
    for i in y:
        z[i] = y[i] * y[i]
    for i in z:
        loss[None] += z[i] * x[i]

@ti.kernel
def scaled(f: ti.template(), v: LINE, by: ti.f64):
    for i in v:
        f[i] = by * v[i] ** 2

@ti.kernel
def of_numbers(g: ti.f64, v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i] ** 2 * ti.exp(g)
    return s

@ti.kernel
def narrow(v: LINE, by: ti.f32) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += by * v[i] ** 2
    return s

@ti.kernel
def long(counts: INDICES):
    for i in x:
        v = x[i]
        for _ in range(counts[i]):
            v = ti.sin(v) + 0.5 * v
        x[i] = v
        loss[None] += v

@ti.kernel
def noise(v: LINE) -> ti.f64:
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i] * ti.random()
    return s

@ti.kernel
def speaking(v: LINE) -> ti.f64:
    print("said")
    return v[0] * v[1]

class Model:
    def __init__(self):
        self.rate = 3.0

    @ti.kernel
    def value(self, v: LINE) -> ti.f64:
        s = 0.0
        for i in range(v.shape[0]):
            s += self.rate * v[i] ** 3
        return s

model = Model()

def run(v):
    into(v)
    further()

def looped(v, by=FACTOR):
    scaled(y, v, 0.5 * by)
    for t in range(ROWS - 1):
        further()

def on_data(v):
    return weighted(v, weights, 0.5, 3)

def counting(v):
    calls.append(v)
    return cubes(v)

def deciding(v):
    if FACTOR > 2:
        return cubes(v)
    return double(v)

def hidden(v, seen=[0]):
    seen[0] += 1
    into(v)
    further()
"""


class Space(dict[str, Any]):
    """What a module of programs defines."""

    def run(self, text: str) -> None:
        text = textwrap.dedent(text)
        file = f"plans_{len(linecache.cache)}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self)


def space() -> Space:
    ti.init(arch=ti.cpu, default_fp=ti.f64, num_threads=1, memory_limit=MEMORY)
    found = Space(__name__="plans")
    found.run(LIBRARY)
    return found


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    yield
    ti.reset()


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each call that a plan has taken the place of."""
    found: list[int] = []
    run = planned.MemoryPlan.run

    def noting(plan: Any, args: Any) -> Any:
        found.append(1)
        soil(plan)
        return run(plan, args)

    monkeypatch.setattr(planned.MemoryPlan, "run", noting)
    return found


def soil(plan: Any) -> None:
    """No number is in the blocks that a plan says its launches fill."""
    for step in plan.plan.root.steps:
        for block in getattr(step, "fills", ()):
            memory = plan.prepared._memories[block]
            if memory is not None:
                memory.view()[:] = b"\xff" * memory.nbytes


def bits(value: Any) -> Any:
    """A result, to be compared bit by bit."""
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    array = np.asarray(value)
    return type(value).__name__, array.shape, array.dtype.name, array.tobytes()


def memory(found: Space) -> Any:
    """All that calls may leave in fields, their gradients and duals, ndarrays and NumPy's arrays."""
    left: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, np.ndarray):
            left[name] = bits(value)
        elif isinstance(value, ti.Field) and value._generation == state.resets:
            for kind in ("", "grad", "dual"):
                if not kind or getattr(value, f"has_{kind}"):
                    left[name, kind] = bits((getattr(value, kind) if kind else value).held())
    return left


def follow(program: str, change: str, monkeypatch: pytest.MonkeyPatch, *, plans: bool) -> list[Any]:
    """What each call of `call()` in a program gives and leaves, or raises; in the middle, something changes."""
    monkeypatch.setattr(planned, "PLAIN_CALLS", 2 if plans else sys.maxsize)
    gc.collect()  # views of the program before
    found = space()
    found.run(program)
    seen: list[Any] = []
    for phase in range(2):
        for _ in range(6):
            try:
                given: Any = bits(found["call"]())
            except Exception as error:
                given = type(error).__name__, str(error).partition("\n")[0]
            seen.append((given, memory(found), [k.instances[-1].calls for k in kernels(found) if k.instances]))
        if not phase:
            found.run(change)
    return seen


def kernels(found: Space) -> list[Any]:
    return [value for value in found.values() if type(value).__name__ == "Kernel"]


GRADIENT = "g = ti.ad.value_and_grad(cubes)\ndef call(): return g(p)"
ON_ARRAY = "g = ti.ad.grad(cubes)\ndef call(): return g(a)"
ON_FIELD = "g = ti.ad.value_and_grad(squares, wrt=x, loss=loss)\ndef call(): return g()"
PRODUCT = "g = ti.ad.value_and_grad_and_hvp(cubes)\ndef call(): return g(seed, p)"
WEIGHTED = "g = ti.ad.value_and_grad(weighted, (0, 2))\nby, power = 0.5, 3\ndef call(): return g(p, q, by, power)"
VECTOR = "g = ti.ad.vjp(run, argnums=0, loss=y)\ndef call(): return g(seed, p)"
TANGENT = "g = ti.ad.jvp(run, argnums=0, loss=y)\ndef call(): return g(seed, p)"
FORWARD = "g = ti.ad.jacobian(run, argnums=0, loss=y, mode='forward')\ndef call(): return g(p)"
REVERSE = "g = ti.ad.jacobian(run, argnums=0, loss=y, mode='reverse')\ndef call(): return g(p)"
HESSIAN = "g = ti.ad.hvp(through, wrt=(x, y), loss=loss)\ndef call(): return g((seed, q))"
LOOPED = "g = ti.ad.vjp(looped, argnums=0, loss=y)\ndef call(): return g(seed, p)"
ON_DATA = "g = ti.ad.value_and_grad(on_data)\ndef call(): return g(p)"
WRITING = "g = ti.ad.value_and_grad(double)\ndef call(): return g(p)"
GATHERED = "g = ti.ad.value_and_grad(gathered)\ndef call(): return g(p, order)"

SETTING = """\
def f(v):
    loss[None] = 0
    into(v)
    y[1] = 0.5 * FACTOR
    for t in range(ROWS):
        further()
        y[t] = -1.5
    through()
"""

NARROW = "g = ti.ad.value_and_grad(narrow)\nby = 2.0\ndef call(): return g(p, by)"
RUNS_OUT = "g = ti.ad.grad(long, wrt=x, loss=loss)\ndef call(): return g(order)"

#: What changes between two calls: a program, what is changed, and how many of the two times six calls run by plan.
CHANGES: dict[str, tuple[str, str, int, int]] = {
    # what may be something else each time
    "nothing": (GRADIENT, "", 2, 6),
    "what an array holds": (GRADIENT, "p *= -1.5", 2, 6),
    "NaN and infinities": (GRADIENT, "p[:3] = np.nan, np.inf, -0.0", 2, 6),
    "another array": (GRADIENT, "p = np.full(N, 3.0)", 2, 6),
    "a part of a larger array": (GRADIENT, "p = np.arange(30.0)[7:7 + N]", 2, 6),
    "what an ndarray holds": (ON_ARRAY, "a.fill(3.0)", 2, 6),
    "what a field holds": (ON_FIELD, "x.fill(3.0); y.fill(-1.0); loss[None] = 9.0", 2, 6),
    "gradients that are not asked for": (ON_FIELD, "x.grad.fill(3.0); loss.grad[None] = 2.0", 2, 6),
    "a float": (WEIGHTED, "by = -0.75", 2, 6),
    "a seed": (PRODUCT, "seed = np.cos(seed)", 2, 6),
    "a seed of a field": (VECTOR, "seed = np.cos(seed); x.fill(0.5)", 2, 6),
    "a direction": (TANGENT, "seed = np.cos(seed); p *= 2", 2, 6),
    "where a Jacobian is, forward": (FORWARD, "p = np.sin(p); x.fill(0.5)", 2, 6),
    "where a Jacobian is, reverse": (REVERSE, "p = np.sin(p); x.fill(0.5)", 2, 6),
    "where a Hessian is": (HESSIAN, "x.fill(0.5); y.fill(2.0); q = np.sin(q)", 2, 6),
    "a number": (
        "g = ti.ad.value_and_grad(of_numbers, (0, 1))\nrate = 0.5\ndef call(): return g(rate, p)", "rate = -0.25", 2, 6
    ),
    "what the data of a function hold": (ON_DATA, "weights *= -1", 2, 6),
    "a float of 32 bits": (NARROW, "by = 3e38", 2, 6),
    "a float that does not fit": (NARROW, "by = 1e39", 2, 0),
    "an infinite float": (NARROW, "by = float('inf')", 2, 6),
    "what is written to an argument": (WRITING, "p[:] = 0.001", 2, 6),
    "a result of shape (1,)": (
        "@ti.kernel\ndef total():\n    for i in x:\n        single[0] += x[i] ** 2\n"
        "g = ti.ad.value_and_grad(total, wrt=x, loss=single)\ndef call(): return g()", "x.fill(2.0)", 2, 6
    ),
    "floats of 32 bits": (
        "p = p.astype(np.float32)\ng = ti.ad.value_and_grad(singles)\ndef call(): return g(p)", "p *= 3", 2, 6
    ),
    "random numbers": ("g = ti.ad.value_and_grad(noise)\ndef call(): return g(p)", "p *= 3", 2, 6),
    "a loop of launches": (LOOPED, "p *= 0.5", 2, 6),
    "a method": ("g = ti.ad.value_and_grad(model.value)\ndef call(): return g(p)", "p *= 0.5", 2, 6),
    # what a plan is for
    "the shape": (GRADIENT, "p = np.full(N + 3, 3.0)", 2, 2),
    "the type": (GRADIENT, "p = p.astype(np.float32)", 2, 0),
    "an array that is not contiguous": (GRADIENT, "p = np.arange(2.0 * N)[::2]", 2, 0),
    "an array that is turned round": (GRADIENT, "p = p[::-1]", 2, 0),
    "an array that cannot be written": (GRADIENT, "p.flags.writeable = False", 2, 0),
    "an array that cannot be written, which is": (WRITING, "p.flags.writeable = False", 2, 0),
    "a list": (GRADIENT, "p = p.tolist()", 2, 0),
    "arrays that overlap": (WEIGHTED, "q = p", 2, 0),
    "parts that overlap": (WEIGHTED, "whole = np.arange(2.0 * N); p, q = whole[:N], whole[N - 1:2 * N - 1]", 2, 0),
    "parts that do not": (WEIGHTED, "whole = np.arange(2.0 * N); p, q = whole[N:], whole[:N]", 2, 6),
    "a shape in place": (GRADIENT, "p = p.copy(); p.shape = (N, 1)", 2, 0),
    "an integer": (WEIGHTED, "power = 2", 2, 2),
    "another ndarray": (ON_ARRAY, "a = b", 2, 2),
    "an ndarray for an array": (GRADIENT, "p = a", 2, 2),
    "no argument": (GRADIENT, "p = None", 2, 0),
    "an argument by name": (WEIGHTED, "def call(): return g(p, q, by=0.5, power=2)", 2, 0),
    "the shape of data in place": (ON_DATA, "weights.shape = (1, N)", 2, 0),
    # what the program reads
    "a constant of a kernel": (GRADIENT, "FACTOR = 3.0", 2, 4),
    "a function of a kernel": (GRADIENT, "@ti.func\ndef shaped(v):\n    return 5 * v", 2, 4),
    "a constant that is set to what it was": (GRADIENT, "FACTOR = 1.0 + 1.0", 2, 6),
    "an attribute of a kernel's object": (
        "g = ti.ad.value_and_grad(model.value)\ndef call(): return g(p)", "model.rate = 5.0", 2, 4
    ),
    "a kernel that a function names": (VECTOR, "@ti.kernel\ndef further():\n    for i in y:\n        y[i] *= 3", 2, 4),
    "a field that a function names": (LOOPED, "y = x", 2, 4),
    "a field that a kernel names": (VECTOR, "x = ti.field(ti.f64, N, needs_grad=True, needs_dual=True)", 2, 4),
    "the count of a loop": (LOOPED, "ROWS = 2", 2, 4),
    "data that a function names": (ON_DATA, "weights = weights + 1", 2, 4),
    "a variable of an outer function": (
        """\
        def made():
            rate = 2.0
            def inner(v):
                return weighted(v, weights, rate, 2)
            def change():
                nonlocal rate
                rate = 4.0
            return inner, change
        inner, change = made()
        g = ti.ad.value_and_grad(inner)
        def call(): return g(p)
        """, "change()", 2, 4
    ),
    "the code of a function": (VECTOR, "def other(v): into(v)\nrun.__code__ = other.__code__", 2, 4),
    "a default": (LOOPED, "looped.__defaults__ = (0.25,)", 2, 4),
    # the session
    "a field that comes": (ON_FIELD, "new = ti.field(ti.f64, 3, needs_grad=True, needs_dual=True)", 2, 6),
    "a field that comes, at second order": (PRODUCT, "new = ti.field(ti.f64, 3, needs_grad=True)", 2, 6),
    "a dual that comes": (ON_ARRAY, "a.ensure_dual()", 2, 4),
    "a view of a field": (ON_FIELD, "view = x.numpy_view()", 2, 0),
    "a view of a field that goes": (ON_FIELD, "view = x.numpy_view(); del view", 2, 6),
    "a view of a gradient": (ON_FIELD, "view = x.grad.numpy_view()", 2, 0),
    "an argument that is a view": (GRADIENT, "p = z.numpy_view()", 2, 0),
    "a session that is over": (ON_FIELD, "ti.reset()", 2, 0),
    "a session that begins": (GRADIENT, "ti.init(default_fp=ti.f64, num_threads=1)", 2, 4),
    "plain Python": (GRADIENT, "ti.init(arch=ti.python, default_fp=ti.f64)", 2, 0),
    "an open tape": (
        GRADIENT, "def call():\n    with ti.ad.Tape(loss):\n        return g(p)", 2, 0
    ),
    "another owner": (
        "from tinote.runtime.owner import current_owner, new_owner\n" + ON_FIELD,
        "def call():\n    token = current_owner.set(new_owner())\n    try:\n        return g()\n"
        "    finally:\n        current_owner.reset(token)", 2, 6
    ),
    # what goes wrong
    "an index that is out of range": (GATHERED, "order[2] = 17", 2, 6),
    "an index that is out of range, and back": (
        GATHERED, "count = 0\ndef call():\n    global count\n    count += 1\n    order[2] = 17 * (count % 2)\n"
        "    return g(p, order)", 2, 6
    ),
    "a sweep that runs out of memory": (RUNS_OUT, "order[3] = 2_000_000", 2, 6),
    # what there is no plan for
    "what Python does": ("g = ti.ad.grad(counting)\ndef call(): return g(p), len(calls)", "", 0, 0),
    "a condition in Python": ("g = ti.ad.grad(deciding)\ndef call(): return g(p)", "FACTOR = 3.0", 2, 4),
    "a default that changes": (
        "g = ti.ad.vjp(hidden, argnums=0, loss=y)\ndef call(): return g(seed, p), hidden.__defaults__[0][0]", "", 0, 0
    ),
    "a partial application": (
        "g = ti.ad.value_and_grad(functools.partial(weighted, by=0.5, power=2))\ndef call(): return g(p, q)", "", 0, 0
    ),
    "arithmetic on what kernels return": (
        "def f(v): return cubes(v) * cubes(v)\ng = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "p *= 2", 2, 6
    ),
    "arithmetic on what kernels return, forward": (
        "def f(v): return cubes(v) * cubes(v)\ng = ti.ad.jvp(f)\ndef call(): return g(seed, p)", "p *= 2", 2, 6
    ),
    "arithmetic on what kernels return, twice": (
        "def f(v): return cubes(v) * cubes(v)\ng = ti.ad.hvp(f)\ndef call(): return g(seed, p)", "p *= 2", 2, 6
    ),
    "arithmetic on arguments": (
        "def f(s, v): return weighted(v, weights, 2 * s, 2)\ng = ti.ad.value_and_grad(f, (0, 1))\nby = 0.5\n"
        "def call(): return g(by, p)", "by = -3.0", 2, 6
    ),
    "arithmetic on what is no input": (
        "def f(v, s): return weighted(v, weights, s * 0.5 + 1, 2)\ng = ti.ad.value_and_grad(f)\nby = 0.5\n"
        "def call(): return g(p, by)", "by = -3.0", 2, 6
    ),
    "what may raise in Python, and does not": (
        "def f(v): return cubes(v) / 3.0\ng = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "p *= 2", 2, 6
    ),
    "elements that Python reads": (
        "def f(v):\n    into(v)\n    return y[0]\ng = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "p *= 2", 0, 0
    ),
    "an integer that Python reads": (
        """\
        count = ti.field(ti.i32, shape=())
        count[None] = 3
        def f(v): return weighted(v, weights, 0.5, count[None]) * count[None]
        g = ti.ad.value_and_grad(f)
        def call(): return g(p)
        """,
        "count[None] = 2", 0, 0,
    ),
    "a plain number of what Python reads": (
        "def f(v):\n    into(v)\n    return y[0] * float(x[1])\ng = ti.ad.value_and_grad(f)\ndef call(): return g(p)",
        "p *= 2; x.fill(2.0)", 0, 0,
    ),
    "a custom gradient": (
        """\
        @ti.ad.grad_replaced
        def custom(v):
            into(v)
        @ti.ad.grad_for(custom)
        def backwards(v):
            into.grad(v)
        g = ti.ad.vjp(custom, argnums=0, loss=y)
        def call(): return g(seed, p)
        """, "p *= 2", 0, 0
    ),
    "a number for a seed": ("g = ti.ad.vjp(cubes)\nby = 2.0\ndef call(): return g(by, p)", "by = 3.0", 2, 6),
    "an array for a seed that is a number": (
        "g = ti.ad.vjp(cubes)\nby = np.array(2.0)\ndef call(): return g(by, p)", "by[...] = 3.0", 0, 0
    ),
    "directions of numbers": (
        "g = ti.ad.jvp(of_numbers, (0, 1))\ndot = 1.0\ndef call(): return g((dot, seed), 0.5, p)", "dot = 2.0", 2, 6
    ),
    "directions of numbers as arrays": (
        "g = ti.ad.hvp(of_numbers, (0, 1))\ndot = np.array(1.0)\ndef call(): return g((dot, seed), 0.5, p)",
        "dot[...] = 2.0", 0, 0
    ),
    "seeds that are converted": (
        "seed = np.arange(N)\n" + VECTOR, "seed = seed + 1", 0, 0
    ),
    "a result that is an argument's own gradient": (
        "def f(v): return v\ng = ti.ad.grad(f)\ndef call(): return g(2.0)", "", 0, 0
    ),
    "large arrays": (
        "g = ti.ad.value_and_grad(cubes)\np = np.linspace(0, 1, 400_000)\ndef call(): return g(p)", "p *= 2", 2, 6
    ),
    # elements that are set
    "elements that are set": (
        SETTING + "g = ti.ad.value_and_grad(f, wrt=x, loss=loss)\ndef call(): return g(p)", "ROWS = 3", 2, 4
    ),
    "elements that are set, forward": (
        SETTING + "g = ti.ad.jvp(f, loss=loss)\ndef call(): return g(seed, p)", "p *= 2", 2, 6
    ),
    "elements that are set, twice": (
        SETTING + "g = ti.ad.hvp(f, loss=loss)\ndef call(): return g(seed, p)", "p *= 2", 2, 6
    ),
    "an element that is set to what a kernel returns": (
        "def f(v):\n    loss[None] = cubes(v)\ng = ti.ad.grad(f, 0, loss=loss)\ndef call(): return g(p)", "p *= 2", 2, 6
    ),
    "an element that is set to an argument": (
        "def f(v, s):\n    y[0] = s\n    through()\ng = ti.ad.grad(f, 1, loss=loss)\ndef call(): return g(p, 0.5)",
        "p *= 2", 2, 6
    ),
    "an element that is chosen by a variable": (
        "def f(v, k):\n    into(v)\n    y[k] = 0.5\n    through()\ng = ti.ad.grad(f, 0, loss=loss)\nk = 2\n"
        "def call(): return g(p, k)", "k = 3", 2, 2
    ),
    "a loop of as many steps as an argument says": (
        "def f(v, n, s):\n    for t in range(n):\n        further()\n    return weighted(v, weights, s, 2)\n"
        "g = ti.ad.jvp(f, 0)\nn = 2\ndef call(): return g(seed, p, n, 0.5)", "n = 3", 2, 2
    ),
    "an argument that is assigned": (
        "def f(v, n):\n    n = weighted(v, weights, 0.5, n)\n    for t in range(n > 10):\n        further()\n"
        "    return cubes(v)\ng = ti.ad.grad(f, 0)\ndef call(): return g(p, 2)", "p *= 2", 0, 0
    ),
    "an element of what is no field": (
        "held = [0.0]\ndef f(v):\n    held[0] = 0.5\n    return cubes(v)\ng = ti.ad.grad(f)\n"
        "def call(): return g(p), held[0]", "held[0] = 2.0", 0, 0
    ),
    # arrays that are made, and what is fixed
    "an array that is made": (
        "def f(v):\n    m = ti.ndarray(ti.f64, 6)\n    moved(v, m)\n    return cubes(m)\n"
        "g = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "p *= 2", 2, 6
    ),
    "arrays that are made in a loop, of the shape of an argument": (
        "def f(v):\n    n = v.shape[0]\n    for t in range(len(v) - 4):\n        m = ti.ndarray(ti.f64, shape=(n,))\n"
        "        moved(v, m)\n    return cubes(m)\ng = ti.ad.value_and_grad(f)\ndef call(): return g(p)",
        "p = np.linspace(0.0, 1.0, 7)", 2, 2
    ),
    "an array that is made, twice": (
        "def f(v):\n    ti.Vector.ndarray(1, ti.f64, v.shape)\n    m = ti.ndarray(ti.f64, v.shape)\n    moved(v, m)\n"
        "    return cubes(m)\ng = ti.ad.hvp(f)\ndef call(): return g(seed, p)", "p *= 2", 2, 6
    ),
    "an array of a length that is read": (
        "n = 6\ndef f(v):\n    m = ti.ndarray(ti.f64, n)\n    moved(v[:n], m)\n    return cubes(m)\n"
        "g = ti.ad.value_and_grad(f)\ndef call(): return g(p)[0] if n == 7 else 0.0", "n = 6", 0, 0
    ),
    "a choice by a shape and by a constant": (
        "ON = True\ndef f(v):\n    if v.shape[0] > 2 and ON:\n        y.fill(0.5)\n"
        "    else:\n        into(v)\n    return cubes(v) if v.shape[0] % 2 == 0 else 2.0 * cubes(v)\n"
        "g = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "ON = False", 2, 4
    ),
    "a choice by a number argument": (
        "def f(v, s):\n    if s > 0.4:\n        y.fill(0.5)\n    return weighted(v, weights, s, 2)\n"
        "g = ti.ad.value_and_grad(f, 0)\ns = 0.5\ndef call(): return g(p, s)", "s = 0.1", 0, 0
    ),
    "a choice by an element": (
        "def f(v):\n    if v[0] > 0.3:\n        y.fill(0.5)\n    return cubes(v)\ng = ti.ad.value_and_grad(f)\n"
        "def call(): return g(p)", "p *= 2", 0, 0
    ),
    "a choice by what a kernel returns": (
        "def f(v):\n    s = cubes(v)\n    if s > 50.0:\n        y.fill(0.5)\n    return s\n"
        "g = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "p *= 2", 0, 0
    ),
    "a sum in a loop": (
        "def f(v):\n    s = cubes(v)\n    for t in range(3):\n        s += 0.5 * weighted(v, weights, 0.25, 2)\n"
        "    s *= 2.0\n    return s\ng = ti.ad.value_and_grad(f)\ndef call(): return g(p)", "p *= 2", 2, 6
    ),
    "a variable that is made of itself": (
        "def f(v):\n    for t in range(3):\n        n = n + 1 if t > 0 else 1\n"
        "    for t in range(n):\n        further()\n    return cubes(v)\ng = ti.ad.grad(f)\ndef call(): return g(p)",
        "p *= 2", 0, 0
    ),
    "a sum onto an element": (
        "def f(v):\n    cubes(v)\n    loss[None] += 0.5\ng = ti.ad.grad(f, 0, loss=loss)\ndef call(): return g(p)",
        "p *= 2", 0, 0
    ),
    "elements that are set to an array": (
        "def f(v):\n    y[...] = q\n    through()\ng = ti.ad.grad(f, wrt=x, loss=loss)\ndef call(): return g(p)",
        "q *= 2", 0, 0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_between_calls(name: str, replays: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    program, change, before, after = CHANGES[name]
    program, change = textwrap.dedent(program), textwrap.dedent(change)
    # Small results are given away as well, and launches store what they add first to them.
    monkeypatch.setattr(planned, "WARM_FROM", 1)
    monkeypatch.setattr(first_stores, "LEAST_BYTES", 1)
    wanted = follow(program, change, monkeypatch, plans=False)
    assert not replays
    found = follow(program, change, monkeypatch, plans=True)
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert one[0] == other[0], f"call {number} gives something else"
        assert one[1] == other[1], f"call {number} leaves something else"
        assert one[2] == other[2], f"call {number} counts otherwise"
    assert len(replays) == before + after


# ---- at random

STEPS = (
    "into(v)", "further()", "scaled(y, v, {c})", "scaled(y, v, s)", "y.fill({c})", "y.copy_from(x)", "double(v)",
    "y[2] = {c}", "x[1] = s", "loss[None] = 1", "for t in range(3):\n        y[t] = {c}\n        further()",
    "m = ti.ndarray(ti.f64, v.shape[0])\n    moved(v, m)\n    weighted(m, weights, s, 2)\n    into(m)",
    "if v.shape[0] > 3:\n        further()\n    else:\n        into(v)",
    "for t in range(v.shape[0] - 4):\n        further()", "for t in range(n):\n        further()",
    "weighted(v, weights, {c}, 2)", "for t in range(2):\n        further()", "gathered(v, order)",
    "scaled(y, v, np.sin(s) / ({c} + 1.5))", "y[2] = s ** 2 / (1 + s * s)", "x[1] = np.hypot(s, {c}) - abs(s)",
)  # fmt: skip
RETURNS = {
    "y": "    further()",
    "loss": "    through()",
    "": "    return weighted(v, weights, s, 3)",
}
CHANGED = ("p", "q", "x", "y", "seed", "s")


def at_random(numbers: random.Random) -> str:
    """A function, and a derivative of it."""
    lines = ["    " + numbers.choice(STEPS).format(c=round(numbers.uniform(-1, 1), 3)) for _ in range(3)]
    loss = numbers.choice(list(RETURNS))
    text = "\n".join(["s = 0.75", "n = 2", "def f(v, s, n):", *lines[: numbers.randrange(4)], RETURNS[loss], ""])
    inputs = numbers.choice(["argnums=0", "wrt=x", "argnums=0, wrt=x"])
    where = f", loss={loss}" if loss else ""
    names = ["vjp", "jvp"] if loss == "y" else ["grad", "value_and_grad", "jvp", "hvp", "value_and_grad_and_hvp"]
    modes = ["jacobian, mode='forward'", "jacobian, mode='reverse'"] if loss == "y" else []
    name, _, mode = numbers.choice([*names, *modes]).partition(", ")
    both = "argnums" in inputs and "wrt" in inputs and name in ("jvp", "hvp", "value_and_grad_and_hvp")
    seeds = {"grad": "", "value_and_grad": "", "jacobian": ""}.get(name, "(seed, q), " if both else "seed, ")
    array = numbers.choice(["p", "p", "a"])
    return text + (
        f"g = ti.ad.{name}(f, {inputs}{where}{', ' + mode if mode else ''})\n"
        f"def call(): return g({seeds}{array}, s, n)\n"
    )


def changes_at_random(numbers: random.Random) -> str:
    """What changes before a call."""
    lines: list[str] = []
    for name in numbers.sample(CHANGED, 2):
        by = round(numbers.uniform(-1.2, 1.2), 3)
        if name in "xy":
            lines.append(f"{name}.from_numpy({by} * np.linspace(0.5, 1.5, N))")
        elif name == "s" or numbers.random() < 0.5:
            lines.append(f"{name} = {name} * {by}")
        else:
            lines.append(f"{name}[...] = {by} * np.cos({name})")
    return "\n".join(lines)


def test_random_derivatives(random_programs: range, replays: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of launches, derivatives of all kinds, other values before each call."""
    monkeypatch.setattr(planned, "Memory", unfilled)
    planned_ones = 0
    monkeypatch.setattr(planned, "PLAIN_CALLS", sys.maxsize)
    found = space()
    start = {name: value.held().copy() for name, value in found.items() if isinstance(value, ti.Field)}
    arrays = {name: value.copy() for name, value in found.items() if isinstance(value, np.ndarray)}
    for seed in random_programs[::4]:
        text, seen = at_random(random.Random(seed)), list[list[Any]]()
        monkeypatch.setattr(planned, "WARM_FROM", 1 if seed % 8 else WARM_FROM)
        monkeypatch.setattr(first_stores, "LEAST_BYTES", 1 if seed % 3 else LEAST_BYTES)
        for plans in (False, True):
            monkeypatch.setattr(planned, "PLAIN_CALLS", 2 if plans else sys.maxsize)
            numbers = random.Random(seed)
            for name, values in start.items():
                found[name].from_numpy(values)
            found.update({name: values.copy() for name, values in arrays.items()})
            found.run(text)
            seen.append([])
            before = len(replays)
            for _ in range(7):
                found.run(changes_at_random(numbers))
                try:
                    given: Any = bits(found["call"]())
                except Exception as error:
                    given = type(error).__name__, str(error)
                seen[-1].append((given, memory(found)))
            planned_ones += len(replays) > before
        assert seen[0] == seen[1], f"seed {seed}\n{text}"
    assert planned_ones > 0.5 * len(random_programs[::4])


# ---- several at once, and what remains


def test_threads_that_call_one_derivative() -> None:
    found = space()
    gradient = ti.ad.value_and_grad(found["cubes"])
    given = [np.full(6, float(k)) for k in range(4)]
    wanted = [bits(gradient(one)) for one in given]
    wrong: list[Any] = []

    def work(k: int) -> None:
        for _ in range(200):
            if bits(gradient(given[k])) != wanted[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def steps_of(found: Space, program: str, monkeypatch: pytest.MonkeyPatch) -> list[type[ops.Operation]]:
    """The kinds of the steps of a program's plan."""
    made: list[Any] = []
    run = planned.MemoryPlan.run
    monkeypatch.setattr(planned.MemoryPlan, "run", lambda plan, args: (made.append(plan), run(plan, args))[1])
    found.run(program)
    for _ in range(5):
        found["call"]()
    return [type(step) for step in made[-1].plan.root.steps]


#: How often plans copy: gradients and duals are the plans' own, arguments and data stay where they are.
COPIES = {
    "a gradient of a field": (ON_FIELD, 0),
    "a gradient of an argument": (ON_DATA, 0),
    "a gradient with elements that are set": (
        "def f():\n    loss[None] = 0\n    squares()\ng = ti.ad.grad(f, wrt=x, loss=loss)\ndef call(): return g()",
        0,
    ),
    "a second derivative: two seeds": (HESSIAN, 2),
}


@pytest.mark.parametrize("name", COPIES)
def test_plans_copy_little(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, wanted = COPIES[name]
    steps = steps_of(space(), program, monkeypatch)
    assert steps.count(ops.Copy) == wanted
    assert steps.count(ops.Launch) == 2


@pytest.mark.parametrize("count", [6, 20_000])
def test_results_are_given_away(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large results are the memory that they were computed in, each its own; small ones are copies."""
    found = space()
    made: list[Any] = []
    run = planned.MemoryPlan.run
    monkeypatch.setattr(planned.MemoryPlan, "run", lambda plan, args: (made.append(plan), run(plan, args))[1])
    gradient = ti.ad.value_and_grad(found["cubes"])
    inputs = [np.linspace(0.5, 1.0 + k, count) for k in range(8)]
    results = [gradient(one)[1] for one in inputs]
    for one, result in zip(inputs, results, strict=True):
        np.testing.assert_allclose(result, 6 * one**2, rtol=1e-12)
    assert len(made) == 4 and len(made[-1]._fresh) == (count == 20_000)


def test_the_plans_of_a_function_share_an_amount_of_memory(replays: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    found = space()
    monkeypatch.setattr(planned, "_MOST_BYTES", 100_000)
    gradient = ti.ad.value_and_grad(found["cubes"])

    def replayed(count: int) -> int:
        array = np.linspace(0.5, 1.0, count)
        before = len(replays)
        for _ in range(6):
            gradient(array)
        return len(replays) - before

    assert replayed(20_000) == 0  # too much by itself
    assert [replayed(count) for count in (8_000, 7_000)] == [2, 2]  # the second takes the place of the first
    assert replayed(8_000) == 2


def test_a_plan_goes_with_an_array_that_it_is_for(replays: list[int]) -> None:
    found = space()
    gradient = ti.ad.value_and_grad(found["cubes"])
    array = ti.ndarray(ti.f64, 20_000, needs_grad=True)
    for _ in range(6):
        gradient(array)
    assert len(replays) == 2
    gc.disable()
    try:
        idle = pool.nbytes
        del array
        assert pool.nbytes >= idle + 2 * 8 * 20_000
    finally:
        gc.enable()


@pytest.mark.parametrize("where", ["add_instances", "settle", "end", "first", "replay", "own memory"])
def test_what_cannot_be_planned_runs(where: str, replays: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that is recorded, or compared, has done its work: it returns, whatever keeps it from being a plan."""

    def refuse(*_: object, **__: object) -> None:
        raise CaptureError(f"refused at {where}")

    gradient = ti.ad.value_and_grad(space()["cubes"])
    array = np.linspace(0.5, 1.0, 5)
    wanted = bits(gradient(array))
    place: tuple[Any, str] = {
        "add_instances": (planned.StraightDependencies, "add_instances"),
        "settle": (planned.StraightDependencies, "settle"),
        "end": (planned.Attempt, "end"),
        "first": (captured, "prepared"),
        "replay": (rehearsal, "prepared"),
        "own memory": (planned.Planned, "_makes_room"),
    }[where]
    monkeypatch.setattr(*place, refuse)
    assert [bits(gradient(array)) for _ in range(8)] == [wanted] * 8
    assert not replays
