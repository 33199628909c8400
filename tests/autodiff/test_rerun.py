"""Plans run cheap launches again in place of saving what these have written (`program/rerun.py`).

pytest tests/autodiff/test_rerun.py --random-programs 2000
"""

from __future__ import annotations

import linecache
import random
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.lang.capture import planned, reruns
from tinote.program import operations as ops
from tinote.program import rerun

N = 8
STEPS = 3
LINE = ti.types.ndarray(dtype=ti.f64, ndim=1)


@ti.kernel
def slope(k: LINE, x: LINE, y: LINE, before: LINE, h: ti.f64):
    for i in range(x.shape[0]):
        j = ti.max(i - 1, 0)
        k[i] = x[i] * ti.select(i > 0, y[j] + h * before[j] * y[i], 1.0)


@ti.kernel
def advance(y: LINE, k: LINE, other: LINE, h: ti.f64):
    for i in range(y.shape[0]):
        y[i] += h * (k[i] + 2 * other[i])


@ti.kernel
def inside(k: LINE, x: LINE, y: LINE):
    for i in range(1, x.shape[0] - 1):
        k[i] = x[i] * y[i - 1] * y[i + 1]


@ti.kernel
def first_half(k: LINE, x: LINE, y: LINE):
    for i in range(x.shape[0] // 2):
        k[i] = x[i] + y[i] * y[i]


@ti.kernel
def where_positive(k: LINE, x: LINE, y: LINE):
    for i in range(x.shape[0]):
        if y[i] > 0:
            k[i] = x[i] * y[i]


@ti.kernel
def in_place(k: LINE, x: LINE):
    for i in range(x.shape[0]):
        k[i] = 0.5 * k[i] * k[i] + x[i]


@ti.kernel
def both(k: LINE, other: LINE, x: LINE, y: LINE):
    for i in range(x.shape[0]):
        k[i] = x[i] * y[i]
        other[i] = x[i] + y[i] * y[i]


@ti.kernel
def scattered(k: LINE, x: LINE, y: LINE):
    for i in range(x.shape[0]):
        k[i] = 0.0
    for i in range(x.shape[0]):
        k[(3 * i) % x.shape[0]] += x[i] * y[i]


@ti.kernel
def summed(k: LINE, x: LINE, y: LINE):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[0]):
            s += x[j] * y[i]
        k[i] = s


@ti.kernel
def dear(k: LINE, x: LINE, y: LINE):
    for i in range(x.shape[0]):
        z = y[i]
        for _ in ti.static(range(20)):
            z = 0.5 * z * (x[i] - z)
        k[i] = z


@ti.kernel
def squares(y: LINE, k: LINE) -> ti.f64:
    s = 0.0
    for i in range(y.shape[0]):
        s += y[i] * y[i] + 0.5 * k[i] * k[i]
    return s


class Counted:
    """How often plans ran, and what their steps are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        self.steps: Counter[type[ops.Operation]] = Counter()
        run = planned.MemoryPlan.run

        def counted(plan: Any, args: Any) -> Any:
            self.runs += 1
            self.steps = Counter([type(step) for step in plan.plan.root.steps])
            return run(plan, args)

        monkeypatch.setattr(planned.MemoryPlan, "run", counted)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    ti.init(arch=ti.cpu, default_fp=ti.f64, num_threads=1)
    return Counted(monkeypatch)


def arrays(count: int, n: int = N) -> list[Any]:
    found = [ti.ndarray(ti.f64, n, needs_grad=True) for _ in range(count)]
    for k, one in enumerate(found):
        one.from_numpy(np.linspace(0.1 + k, 0.9, n))
    return found


def function(lines: list[str], held: dict[str, Any]) -> Any:
    """A function of `x` that runs these launches some times; plans are for functions that have their source."""
    body = "\n".join([f"        {line}" for line in lines])
    text = f"def f(x):\n    for _ in range({STEPS}):\n{body}\n    return squares(a, b)\n"
    file = f"rerun_{len(linecache.cache)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = globals() | held
    exec(compile(text, file, "exec"), space)
    return space["f"]


def runge_kutta(n: int, stage: str = "slope(b, x, a, a, 0.25)") -> tuple[Any, list[Any]]:
    """The gradient of some steps by two stages, and what they write."""
    held = arrays(4, n)
    lines = [stage, "slope(c, x, a, b, 0.5)", "advance(a, b, c, 0.125)"]
    return ti.ad.value_and_grad(function(lines, dict(zip("abcd", held, strict=True)))), held


def bits(given: Any) -> list[bytes]:
    return [np.asarray(one).tobytes() for one in given]


def test_cheap_launches_run_again_and_nothing_is_saved_of_them(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = rerun.LEAST_BYTES // 8
    x = np.linspace(0.5, 1.5, n)
    found: list[Any] = []
    for least in (sys.maxsize, rerun.LEAST_BYTES):
        monkeypatch.setattr(rerun, "LEAST_BYTES", least)
        gradient, memory = runge_kutta(n)
        results = []
        for iteration in range(6):
            memory[0].from_numpy(np.linspace(0.0, 1.0 + iteration, n))
            results.append((bits(gradient(x + iteration)), bits([one.to_numpy() for one in memory])))
        found.append((results, counted.steps))
    assert counted.runs == 4
    (wanted, saving), (given, again) = found
    assert given == wanted
    # Of each step but the last one, the first stage runs again; what it wrote was saved and brought back.
    assert again[ops.Launch] == saving[ops.Launch] + STEPS - 1
    assert again[ops.Copy] == saving[ops.Copy] - 2 * (STEPS - 1)


#: They write a part of an array, two arrays, add to one, or compute much for an element.
KEPT = ("inside", "first_half", "where_positive", "both", "scattered", "summed", "dear")


@pytest.mark.parametrize("stage", KEPT)
def test_what_does_not_run_again(stage: str, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerun, "LEAST_BYTES", 0)
    asked = Counter[str]()
    real = reruns.rerun_of

    def counting(instance: Any, native: Any, values: Any) -> Any:
        found = real(instance, native, values)
        asked[instance.kernel_name] += found is not None
        return found

    monkeypatch.setattr(reruns, "rerun_of", counting)

    gradient, _ = runge_kutta(N, "both(b, d, x, a)" if stage == "both" else f"{stage}(b, x, a)")
    x = np.linspace(0.5, 1.5, N)
    found = [bits(gradient(x)) for _ in range(6)]
    assert counted.runs == 2
    assert asked[stage] == 0
    assert stage in asked or stage == "both"  # which is not even asked: it writes two arrays
    assert found


def test_what_launches_fill_again_is_put_back_where_the_gradient_fails(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerun, "LEAST_BYTES", 0)
    gradient, memory = runge_kutta(N)
    x = np.linspace(0.5, 1.5, N)
    y = memory[0].to_numpy()
    for _ in range(6):
        memory[0].from_numpy(y)
        gradient(x)
    after = bits([one.to_numpy() for one in memory])
    memory[0].from_numpy(y)
    gradient(x)
    assert counted.runs == 3
    assert counted.steps[ops.Launch] > 3 * STEPS + 1 + 3 * STEPS + 1
    assert bits([one.to_numpy() for one in memory]) == after


LAUNCHES = (
    "inside({0}, x, {1})", "first_half({0}, x, {1})", "where_positive({0}, x, {1})", "in_place({0}, x)",
    "both({0}, {2}, x, {1})", "scattered({0}, x, {1})", "summed({0}, x, {1})", "advance({0}, {1}, {2}, {3})",
)  # fmt: skip


def at_random(numbers: random.Random) -> list[str]:
    """The launches of a step: stages of a chain as a rule, which may run again, and others among them."""
    found: list[str] = []
    before = "a"
    for target in numbers.choices("bcd", k=numbers.randrange(1, 5)):
        h = round(numbers.uniform(-0.5, 0.5), 3)
        if target != before:
            found.append(f"slope({target}, x, a, {before}, {h})")
        if numbers.random() < 0.2:
            found.append(numbers.choice(LAUNCHES).format(*numbers.sample("abcd", 3), h))
        before = target
    found.append(f"advance(a, {before}, {numbers.choice('bcd')}, 0.125)")
    return found


def test_random_programs(random_programs: range, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes of plans that run launches again is, bit for bit, what comes of the calls themselves."""
    monkeypatch.setattr(rerun, "LEAST_BYTES", 0)
    real, again = rerun._Rerunning.steps_with_launches, 0

    def noted(self: Any) -> Any:
        nonlocal again
        found = real(self)
        again += bool(self.rerun)
        return found

    monkeypatch.setattr(rerun._Rerunning, "steps_with_launches", noted)
    memory = arrays(4)
    seeds = random_programs[::4]
    for seed in seeds:
        step = at_random(random.Random(seed))
        f = function(step, dict(zip("abcd", memory, strict=True)))
        seen: list[list[Any]] = []
        for plans in (False, True):
            monkeypatch.setattr(planned, "PLAIN_CALLS", 2 if plans else sys.maxsize)
            gradient = ti.ad.value_and_grad(f)
            numbers = random.Random(seed)
            seen.append([])
            for _ in range(6):
                for one in memory:
                    one.from_numpy(np.array([numbers.uniform(-0.9, 0.9) for _ in range(N)]))
                found = gradient(np.array([numbers.uniform(-0.9, 0.9) for _ in range(N)]))
                seen[-1].append((bits(found), bits([one.to_numpy() for one in memory])))
        assert seen[0] == seen[1], f"seed {seed}: {step}"
    assert again > 0.3 * len(seeds)
    assert counted.runs > 1.5 * len(seeds)


def test_kernels_are_asked_only_where_something_is_saved(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch does to memory takes passes to find out."""
    monkeypatch.setattr(rerun, "LEAST_BYTES", 0)
    monkeypatch.setattr(reruns, "rerun_of", lambda *_: pytest.fail("nobody needs to know"))
    a, b = arrays(2)
    gradient = ti.ad.value_and_grad(squares, argnums=(0, 1))
    for _ in range(6):
        gradient(a, b)
    assert counted.runs == 2
