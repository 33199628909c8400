"""Derivatives of functions that call themselves: reverse and forward mode, second order, checkpoints."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import overwrites

PROGRAMS = {
    "a product": """
@ti.real_func
def power(v: ti.f64, n: ti.i32) -> ti.f64:
    if n == 0:
        return 1.0
    return v * power(v, n - 1)

@ti.kernel
def run():
    for i in x:
        loss[None] += power(x[i], i + 1)
""",
    "at the top of a kernel, in a branch": """
@ti.real_func
def power(v: ti.f64, n: ti.i32) -> ti.f64:
    return 1.0 if n == 0 else v * power(v, n - 1)

@ti.kernel
def run():
    if x[0] > 0:
        loss[None] += power(x[0], 3) + x[1]
    loss[None] += power(x[2], 4)
""",
    "reads of a field, and two results": """
@ti.real_func
def extent(lo: ti.i32, hi: ti.i32) -> tuple[ti.f64, ti.f64]:
    if hi - lo == 1:
        return x[lo], x[lo]
    a, b = extent(lo, (lo + hi) // 2)
    c, d = extent((lo + hi) // 2, hi)
    return ti.min(a, c) * 1.5, ti.max(b, d) + a * c

@ti.kernel
def run():
    a, b = extent(0, 4)
    loss[None] += a * b
""",
    "values that a call leaves, in a loop": """
@ti.real_func
def tree(v: ti.f64, n: ti.i32) -> ti.f64:
    s = ti.sin(v)
    for k in range(n):
        a = tree(v * 0.5 + k, n - 1 - k)
        s += a * v * ti.cos(s)
        if k == 1:
            s *= tree(s, 0)
    return s

@ti.kernel
def run():
    for i in x:
        for j in range(2):
            loss[None] += tree(x[i], 2 + j) * x[3 - i]
""",
    "writes to a field on the way": """
@ti.real_func
def spread(i: ti.i32, n: ti.i32, v: ti.f64):
    y[i, n] = v * v
    if n > 0:
        spread(i, n - 1, v * 0.5 + x[i])
        spread(i, n - 2, ti.exp(-v))
        y[i, 0] += v * x[i] if n > 1 else 0.0

@ti.kernel
def run():
    for i in x:
        spread(i, 3, x[i])
    for i, n in y:
        if n >= 0:
            loss[None] += y[i, n] * (n + 1)
""",
    "vectors": """
vec = ti.types.vector(2, ti.f64)

@ti.real_func
def turned(v: vec, a: ti.f64, n: ti.i32) -> vec:
    w = v
    if n > 0:
        w = ti.Vector([ti.cos(a) * v.x - ti.sin(a) * v.y, ti.sin(a) * v.x + ti.cos(a) * v.y])
        w = turned(w, a * v.x, n - 1) + 0.1 * w * turned(v, a, n - 2).norm_sqr()
    return w

@ti.kernel
def run():
    for i in range(3):
        loss[None] += turned(ti.Vector([x[i], x[i + 1]]), 0.4, 3).norm_sqr() * x[3]
""",
    "each other": """
@ti.real_func
def f(v: ti.f64, n: ti.i32) -> ti.f64:
    return v if n == 0 else v * g(v + 1, n - 1)

@ti.real_func
def g(v: ti.f64, n: ti.i32) -> ti.f64:
    s = v * v
    while n > 0:
        n -= 2
        s += f(s * 0.1, n) if n > 0 else v
    return s

@ti.kernel
def run():
    for i in x:
        loss[None] += f(x[i], i + 1)
""",
    "next to what is differentiated": """
@ti.real_func
def depth(n: ti.i32) -> ti.i32:
    return 0 if n == 0 else 1 + depth(n // 2)

@ti.kernel
def run():
    for i in x:
        loss[None] += x[i] ** depth(i + 3) * depth(i)
""",
    "decides how deep": """
@ti.real_func
def root(v: ti.f64, guess: ti.f64) -> ti.f64:
    better = 0.5 * (guess + v / guess)
    return better if ti.abs(better - guess) < 1e-9 else root(v, better)

@ti.kernel
def run():
    for i in x:
        loss[None] += root(x[i] + 1, 1.0) * x[0]
""",
}
START = np.array([0.3, 0.7, -0.4, 0.9])


def compiled(text: str) -> tuple[dict[str, Any], Callable[[np.ndarray], float]]:
    ti.init(arch=ti.cpu, default_fp=ti.f64, debug=True)
    linecache.cache["program.py"] = (len(text), None, text.splitlines(keepends=True), "program.py")
    space: dict[str, Any] = {"ti": ti, "__name__": "program"}
    space["x"] = ti.field(ti.f64, shape=4, needs_grad=True, needs_dual=True)
    space["y"] = ti.field(ti.f64, shape=(4, 6), needs_grad=True, needs_dual=True, offset=(0, -2))
    space["loss"] = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
    exec(compile(text, "program.py", "exec"), space)

    def loss_at(values: np.ndarray) -> float:
        space["x"].from_numpy(values)
        space["y"].fill(0)
        space["loss"][None] = 0
        space["run"]()
        return float(space["loss"][None])

    return space, loss_at


def differences(loss_at: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Central differences of two steps, extrapolated."""
    coarse, fine = [
        np.array([(loss_at(at + h * e) - loss_at(at - h * e)) / (2 * h) for e in np.eye(len(at))]) for h in (2e-5, 1e-5)
    ]
    return (4 * fine - coarse) / 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_order(name: str) -> None:
    space, loss_at = compiled(PROGRAMS[name])
    expected = differences(loss_at, START)
    x, loss = space["x"], space["loss"]

    loss_at(START)
    loss[None] = 0
    space["y"].fill(0)
    with ti.ad.Tape(loss):
        space["run"]()
    assert x.grad.to_numpy() == pytest.approx(expected, rel=1e-6, abs=1e-7)
    again = x.grad.to_numpy()
    with ti.ad.Tape(loss):
        space["run"]()
    assert x.grad.to_numpy() == pytest.approx(again, rel=1e-12)

    direction = np.array([1.0, -2.0, 0.5, 0.25])
    space["y"].fill(0)
    loss[None] = 0
    with ti.ad.FwdMode(loss=loss, param=x, seed=direction.tolist()):
        space["run"]()
    assert loss.dual[None] == pytest.approx(expected @ direction, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", ["a product", "vectors", "writes to a field on the way"])
def test_second_order(name: str) -> None:
    space, loss_at = compiled(PROGRAMS[name])
    x, run, loss = space["x"], space["run"], space["loss"]
    gradient = ti.ad.grad(run, wrt=x, loss=loss)

    def gradient_at(values: np.ndarray) -> np.ndarray:
        loss_at(values)
        return gradient()

    v, h = np.array([1.0, -2.0, 0.5, 0.25]), 1e-6
    expected = (gradient_at(START + h * v) - gradient_at(START - h * v)) / (2 * h)
    loss_at(START)
    assert ti.ad.hvp(run, wrt=x, loss=loss)(v) == pytest.approx(expected, rel=2e-6, abs=1e-6)


@overwrites
def test_in_a_checkpointed_step() -> None:
    space, _ = compiled(PROGRAMS["reads of a field, and two results"])
    x, loss = space["x"], space["loss"]

    @ti.kernel
    def shift():
        for i in x:
            x[i] = x[i] * 0.9 + 0.1 * ti.sin(x[i])

    def step(_: int) -> None:
        space["run"]()
        shift()

    found: list[np.ndarray] = []
    for budget in (None, 2):
        x.from_numpy(START)
        loss[None] = 0
        with ti.ad.Tape(loss):
            if budget is None:
                for k in range(6):
                    step(k)
            else:
                ti.ad.checkpoint(step, 6, snapshots=budget)
        found.append(x.grad.to_numpy())
    assert np.abs(found[0]).max() > 0.1
    assert found[1] == pytest.approx(found[0], rel=1e-12)


STOPPED = {
    "a func": ("@ti.func\ndef f(i, n):\n    ti.stop_grad(x)\n    return x[i] * x[i]", 1),
    "a plain function": ("def f(i, n):\n    ti.stop_grad(x)\n    return x[i] * x[i]", 1),
    "one that calls itself": (
        "@ti.real_func\ndef f(i: ti.i32, n: ti.i32) -> ti.f64:\n    ti.stop_grad(x)\n"
        "    return x[i] if n == 0 else x[i] * f(i, n - 1)",
        1,
    ),
    "one that is called by such a one": (
        "@ti.func\ndef g(i):\n    ti.stop_grad(x)\n    return x[i]\n"
        "@ti.real_func\ndef f(i: ti.i32, n: ti.i32) -> ti.f64:\n    return g(i) if n == 0 else x[i] * f(i, n - 1)",
        2,
    ),
}


@pytest.mark.parametrize("name", STOPPED)
def test_what_a_function_stops_ends_with_it(name: str) -> None:
    """Of x * x * x, the factors that are read in the function, or in the one that it calls, are constants."""
    text, factors = STOPPED[name]
    run = "\n@ti.kernel\ndef run():\n    for i in x:\n        loss[None] += f(i, 1) * x[i]\n"
    space, loss_at = compiled(text + run)
    loss_at(START)
    with ti.ad.Tape(space["loss"]):
        space["run"]()
    assert space["x"].grad.to_numpy() == pytest.approx(factors * START**2)


class Writer:
    """Writes two smooth functions of two numbers that call themselves and each other, as deep as `n` says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, calls: bool = True, depth: int = 2) -> str:
        if not depth or self.random.random() < 0.2:
            return self.random.choice(["a", "b", "s", "t", "x[i]", f"{self.random.uniform(0.2, 1.5):.2f}"])
        p, q = self.value(calls, depth - 1), self.value(calls, depth - 1)
        forms = [f"({p} + {q})", f"({p} - {q})", f"({p} * {q})", f"ti.sin({p})", f"ti.exp(-({p}) * ({p}))"]
        if calls:
            inner = [self.value(False, 1) for _ in range(2)]
            forms += [f"0.5 * {name}(ti.sin({inner[0]}), {inner[1]} * 0.5, i, n - 1)" for name in ("f", "g")] * 2
        return self.random.choice(forms)

    def statements(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random() if depth else 0.0
            if kind < 0.5:
                operator = self.random.choice(["=", "+=", "*="])
                lines.append(f"{indent}{self.random.choice('st')} {operator} ti.cos({self.value()})")
                continue
            head = self.random.choice(
                ["if n % 2 == 0:", f"for k{depth} in range(n):", "if s > t:", f"for k{depth} in range(2):"]
            )
            lines += [indent + head, *self.statements(indent + "    ", depth - 1)]
        return lines

    def program(self) -> str:
        lines: list[str] = []
        for name in "fg":
            lines += ["@ti.real_func", f"def {name}(a: ti.f64, b: ti.f64, i: ti.i32, n: ti.i32) -> ti.f64:"]
            lines += ["    s = a * b", "    t = x[i]", "    if n <= 0:", f"        return {self.value(False)}"]
            lines += [*self.statements("    ", 2), f"    return s * t + {self.value(False)}", ""]
        kernel = [
            "@ti.kernel",
            "def run():",
            "    for i in x:",
            "        loss[None] += f(x[i], 0.7, i, 2) * x[3 - i]",
            "",
        ]
        return "\n".join([*lines, *kernel])


def test_random_recursion(random_programs: range) -> None:
    for seed in random_programs[::25]:
        text = Writer(seed).program()
        space, loss_at = compiled(text)
        expected = differences(loss_at, START)
        loss_at(START)
        with ti.ad.Tape(space["loss"]):
            space["run"]()
        scale = max(1.0, np.abs(expected).max())
        assert np.abs(space["x"].grad.to_numpy() - expected).max() < 1e-5 * scale, f"seed {seed}\n{text}"
