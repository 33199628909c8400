"""What parallel iterations do to a variable that was declared outside of their loop is what they would do in order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_python_agrees import run
from tests.passes.running import shuffled
from tinote.compiler.pipeline import run_pipeline, steps_for
from tinote.compiler.requests import PRIMAL
from tinote.config import Config
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.query import buffers_of

#: Enough for several threads to take part.
N = 100_000

#: name: the statements before the loop, its head, its body, what is returned, and whether it stays parallel.
PROGRAMS: dict[str, tuple[str, str, str, str, bool]] = {
    "maximum": ("a = -1e30", "i in x", "a = ti.max(a, x[i])", "a", True),
    "the other operand": ("a = x[0]", "i in x", "a = max(x[i], a)", "a", True),
    "if greater": ("a = x[0]", "i in x", "if x[i] > a: a = x[i]", "a", True),
    "if not less": ("a = x[0]", "i in x", "if a <= x[i]: a = x[i]", "a", True),
    "if less, and another condition": ("a = x[0]", "i in x", "if i % 3 == 1 and x[i] < a: a = x[i]", "a", True),
    "a choice": ("a = x[0]", "i in x", "a = x[i] if x[i] < a else a", "a", True),
    "in a branch": ("a = 0.0", "i in x", "if i % 3 == 1:\n            a = ti.min(a, x[i])", "a", True),
    "in a nest": ("a = -1e30", "i, j in ti.ndrange(N // 100, 100)", "a = ti.max(a, x[i * 100 + j] * 2)", "a", True),
    "in an inner loop": (
        "a = -1e30",
        "i in range(N // 100)",
        "for j in range(100):\n            a = ti.max(a, x[i * 100 + j])",
        "a",
        True,
    ),
    "sum": ("a = 0.5", "i in x", "a = a + x[i]", "a", True),
    "sum of several": ("a = 0.5", "i in x", "a = x[i] + a - 3 * x[i]", "a", True),
    "difference": ("a = 0.5", "i in x", "a = a - x[i]", "a", True),
    "product": ("a = 1.0", "i in x", "a = a * (1 + x[i] * 1e-6)", "a", True),
    "two at once": ("a, b = x[0], x[0]", "i in x", "a = max(a, x[i])\n        b = min(b, x[i])", "a * 100 + b", True),
    "components": (
        "v = ti.Vector([x[0], x[0]])",
        "i in x",
        "v[0] = max(v[0], x[i])\n        v[1] = min(v[1], x[i])",
        "v[0] * 100 + v[1]",
        True,
    ),
    "components by several operations": (
        "v = ti.Vector([x[0], 0.0, x[0], 0.0])",
        "i in x",
        "v[0] = max(v[0], x[i])\n        v[1] = v[1] + x[i]\n        v[2] = min(v[2], x[i])\n        v[1] -= v[3]",
        "v[0] * 100 + v[1] + v[2]",
        True,
    ),
    "or": ("a = 0", "i in k", "a = a | k[i]", "a", True),
    "exclusive or": ("a = 5", "i in k", "a = k[i] ^ a", "a", True),
    "and": ("a = -1", "i in k", "a = a & (k[i] | 1)", "a", True),
    "all": ("a = True", "i in x", "a = a and x[i] < 100.0", "ti.cast(a, ti.i32)", True),
    "any": ("a = False", "i in x", "a = a or x[i] == x[7]", "ti.cast(a, ti.i32)", True),
    "a flag": ("a = 0", "i in x", "if x[i] == x[7]: a = 1", "a", True),
    "scratch": (
        "a = 0.0",
        "i in x",
        "if x[i] > 0: a = x[i]\n        else: a = -x[i]\n        y[i] = a * a",
        "total()",
        True,
    ),
    "the last one": ("a = 0.0", "i in x", "a = x[i]", "a", False),
    "the last of some": ("a = 0.0", "i in x", "if x[i] > 0: a = x[i]", "a", False),
    "a recurrence": ("a = 0.0", "i in x", "a = a * 0.5 + x[i]", "a", False),
    "the place of the greatest": (
        "a, b = x[0], 0",
        "i in x",
        "if x[i] > a:\n            a = x[i]\n            b = i",
        "b",
        False,
    ),
    "running sums": ("a = 0.0", "i in x", "a += x[i]\n        y[i] = a", "y[100] + y[N - 1]", False),
    "two operations": ("a = 0.0", "i in x", "a += x[i]\n        a = min(a, 3.0)", "a", False),
    "two atomic operations": ("a = 1.0", "i in x", "a += x[i]\n        a *= 0.99", "a", False),
    "read by another": ("a, b = 0.0, 0.0", "i in x", "a = max(a, x[i])\n        b += a", "b * 1e-3", False),
    "the greatest or else": (
        "a, b = x[0], x[0]",
        "i in x",
        "if x[i] > a: a = x[i]\n        elif x[i] < b: b = x[i]",
        "a + b",
        False,
    ),
}


TOTAL = """
@ti.func
def total():
    s = 0.0
    for _ in range(1):
        for i in range(N):
            s += y[i]
    return s
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_what_python_does(name: str) -> None:
    before, head, body, result, parallel = PROGRAMS[name]
    source = np.random.default_rng(1)
    values, bits = source.standard_normal(N), source.integers(0, 1 << 30, N).astype(np.int32)
    plain_y = [0.0] * N
    plain: dict[str, Any] = {
        "x": values.tolist(), "k": bits.tolist(), "y": plain_y, "N": N, "ti": Dialect, "total": lambda: sum(plain_y),
    }  # fmt: skip
    loops = head.replace("in x", "in range(N)").replace("in k", "in range(N)")
    exec(f"def f():\n    {before}\n    for {loops}:\n        {body}\n    return {result}", plain)
    wanted = plain["f"]()
    for threads in (1, 2, 3):
        ti.init(num_threads=threads, default_fp=ti.f64)
        x, y, k = ti.field(ti.f64, N), ti.field(ti.f64, N), ti.field(ti.i32, N)
        x.from_numpy(values)
        k.from_numpy(bits)
        namespace: dict[str, Any] = {"ti": ti, "x": x, "y": y, "k": k, "N": N, "__name__": "program"}
        run(TOTAL, namespace)
        run(
            f"@ti.kernel\ndef f() -> ti.f64:\n    {before}\n    for {head}:\n        {body}\n    return {result}",
            namespace,
        )
        kernel = namespace["f"]
        found = {kernel() for _ in range(10 if threads > 1 else 2)}
        assert all(value == pytest.approx(wanted, rel=1e-9) for value in found), threads
        assert len(found) == 1, "another result each time"
        tasks = kernel.tasks()
        assert any(task.parallel and task.iterations != 1 for task in tasks) == parallel
        assert all(not task.because for task in tasks) == parallel
        if not parallel:
            assert any(
                "carried from one iteration to the next" in reason for one in kernel.loops() for reason in one.reasons
            )


SPELLINGS = {
    "+": ("a += {}", "a = a + {}", "a = {} + a", "if i >= 0: a = a + {}", "a = a + {} + 0 * i", "v[0] = v[0] + {}"),
    "-": ("a -= {}", "a = a - {}", "v[0] -= {}"),
    "*": ("a *= 1 + 0 * {}", "a = a * (1 + 0 * {})", "a = (1 + 0 * {}) * a"),
}


@pytest.mark.parametrize("operation", SPELLINGS)
def test_all_spellings_are_checked_for_overflow_in_parallel(operation: str) -> None:
    """In debug mode `a = a + x[i]` is what `a += x[i]` is, too: a reduction, which stops where it overflows."""
    ti.init(num_threads=2, debug=True)
    k = ti.field(ti.i32, 1000)
    k.fill(7)
    for spelling in SPELLINGS[operation]:
        namespace: dict[str, Any] = {"ti": ti, "k": k, "__name__": "program"}
        result = "v[0]" if "v" in spelling else "a"
        run(
            "@ti.kernel\ndef f(start: ti.i32) -> ti.i32:\n    a = start\n    v = ti.Vector([start, start])\n"
            f"    for i in k:\n        {spelling.replace('{}', 'k[i]')}\n    return {result}",
            namespace,
        )
        kernel = namespace["f"]
        assert kernel(5) == {"+": 7005, "-": -6995, "*": 5}[operation], spelling
        assert any(task.parallel for task in kernel.tasks()) and not any(task.because for task in kernel.tasks())
        if operation != "*":
            with pytest.raises(OverflowError) as caught:
                kernel(2**31 - 100 if operation == "+" else -(2**31) + 100)
            assert "does not fit into i32" in str(caught.value), spelling
            assert spelling.replace("{}", "k[i]") in str(caught.value)


def test_constants_that_are_added_are_checked_for_overflow() -> None:
    ti.init(debug=True)
    total = ti.field(ti.i32, ())

    @ti.kernel
    def local() -> ti.i32:
        a = 0
        for _ in range(100_000):
            a += 100_000
        return a

    @ti.kernel
    def in_field():
        for _ in range(100_000):
            total[None] += 100_000

    for kernel in (local, in_field):
        with pytest.raises(OverflowError, match="does not fit into i32"):
            kernel()


def test_a_value_that_many_operations_lead_to_is_looked_at_once() -> None:
    """Each value is used twice in the next: as a tree, what leads to `a` has 2 ** 40 leaves."""
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, 4)
    x.fill(1.0)
    doubled = "        t = t + t * 0.5\n" * 40
    for last, wanted in (("a = t", 1.5**40), ("a = a + t", 4 * 1.5**40), ("if t > a: a = t", 1.5**40)):
        namespace: dict[str, Any] = {"ti": ti, "x": x, "__name__": "program"}
        text = "@ti.kernel\ndef f() -> ti.f64:\n    a = 0.0\n    for i in x:\n        t = x[i]\n"
        run(f"{text}{doubled}        {last}\n    return a", namespace)
        assert namespace["f"]() == pytest.approx(wanted)


class Dialect:
    """The words of the dialect that the programs use, for plain Python."""

    max, min = max, min

    @staticmethod
    def Vector(values: list[float]) -> list[float]:  # noqa: N802
        return values

    @staticmethod
    def cast(value: Any, t: Any) -> Any:
        return int(value)

    i32 = None

    @staticmethod
    def ndrange(n: int, m: int) -> Any:
        return ((i, j) for i in range(n) for j in range(m))


@pytest.mark.parametrize("start", [float("nan"), -1e9, 1e9])
@pytest.mark.parametrize("body", ["if x[i] > a: a = x[i]", "a = x[i] if a > x[i] else a", "a = ti.max(a, x[i])"])
def test_where_numbers_are_missing(body: str, start: float) -> None:
    """A comparison with NaN never holds, a maximum leaves it out."""
    ti.init(num_threads=2, default_fp=ti.f64)
    x = ti.field(ti.f64, N)
    values = np.random.default_rng(2).standard_normal(N)
    values[::7] = np.nan
    x.from_numpy(values)
    namespace: dict[str, Any] = {"ti": ti, "x": x, "__name__": "program"}
    run(f"@ti.kernel\ndef f(s: ti.f64) -> ti.f64:\n    a = s\n    for i in x:\n        {body}\n    return a", namespace)
    plain: dict[str, Any] = {"ti": type("", (), {"max": staticmethod(np.fmax)}), "x": values}
    exec(f"def f(a):\n    for i in range({N}):\n        {body}\n    return a", plain)
    assert repr(float(namespace["f"](start))) == repr(float(plain["f"](start)))


GRADIENTS = {
    "maximum": "a = ti.max(a, x[i] * w[i])",
    "if greater": "if x[i] * w[i] > a: a = x[i] * w[i]",
    "sum": "a = a + x[i] * w[i]",
    "product": "a = a * (1 + x[i] * w[i])",
    "recurrence": "a = a * w[i] + x[i]",
    "running": "a += x[i] * w[i]\n        loss[None] += a * a",
    "scratch": "if i % 2 == 0: a = x[i] * 2\n        else: a = w[i] * x[i]\n        loss[None] += a * a",
    "last": "if i % 3 == 1: a = x[i] * w[i] * w[i]",
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives(name: str) -> None:
    ti.init(num_threads=2, default_fp=ti.f64)
    n = 12
    source = np.random.default_rng(3)
    x, w = (ti.field(ti.f64, n, needs_grad=True, needs_dual=True) for _ in range(2))
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)
    namespace: dict[str, Any] = {"ti": ti, "x": x, "w": w, "loss": loss, "__name__": "program"}
    last = "" if name == "scratch" else "\n    loss[None] += a * a"
    run(f"@ti.kernel\ndef f():\n    a = 0.25\n    for i in x:\n        {GRADIENTS[name]}{last}\n", namespace)
    for field in (x, w):
        field.from_numpy(source.uniform(0.5, 1.5, n))

    def value() -> float:
        loss[None] = 0.0
        namespace["f"]()
        return float(loss[None])

    loss[None] = 0.0
    with ti.ad.Tape(loss):
        namespace["f"]()
    for field in (x, w):
        for k in range(n):
            here = field[k]
            field[k] = here + 1e-6
            above = value()
            field[k] = here - 1e-6
            below = value()
            field[k] = here
            assert field.grad[k] == pytest.approx((above - below) / 2e-6, rel=1e-6, abs=1e-7)
    loss[None] = 0.0
    with ti.ad.FwdMode(loss=loss, param=x, seed=[1.0] * n):
        namespace["f"]()
    assert loss.dual[None] == pytest.approx(sum(x.grad[k] for k in range(n)), rel=1e-9)


# ---- random programs, whose parallel iterations the interpreter shuffles


def statement(source: random.Random, indent: str) -> str:
    """One that changes or reads `a` or `b`, integers declared outside of the loop."""
    v, o = source.choice([("a", "b"), ("b", "a"), ("a", "a")])
    e = source.choice(["k[i]", "i", "k[i] + i", "(k[i] ^ 5)", "3"] + [o] * (source.random() < 0.15))
    sign = source.choice(["+", "+", "-", "&", "|", "^", "*"])
    forms = [
        f"{v} = {v} {sign} {e}",
        f"{v} = {e} {sign} {v}",
        f"{v} {sign}= {e}",
        f"{v} = max({v}, {e})",
        f"{v} = min({e}, {v})",
        f"if {e} > {v}: {v} = {e}",
        f"if i % 2 == 0 and {v} > {e}: {v} = {e}",
        f"if {e} < {v} and i % 3 > 0: {v} = {e}",
        f"{v} = {e} if {e} > {v} else {v}",
        f"{v} = {v} if {e} <= {v} else {e}",
        f"{v} = {e}",
        f"y[i] = {v}",
        f"if k[i] > 4: {v} = 1",
    ]
    text = source.choice(forms[:10] if source.random() < 0.8 else forms)
    if source.random() < 0.15:
        return f"{indent}if k[i] % 3 == 1:\n{indent}    {text}"
    if source.random() < 0.15:
        return f"{indent}for j in range(i % 3):\n{indent}    {text}"
    return indent + text


@pytest.mark.parametrize("debug", [False, True])
def test_random_programs_in_any_order(debug: bool, random_programs: range) -> None:
    parallel = ordered = 0
    seeds = random_programs[debug::2]
    for seed in seeds:
        source = random.Random(seed)
        body = "\n".join(statement(source, "        ") for _ in range(source.choice([1, 1, 2, 3])))
        text = f"def f():\n    a, b = {source.randint(-5, 9)}, {source.randint(-5, 9)}\n    for i in LOOP:\n{body}\n"
        text += source.choice(["    return a * 31 + b", "    for i in LOOP:\n        y[i] = y[i] + a\n    return b"])
        n = 9
        numbers = [source.randint(0, 9) for _ in range(n)]
        y = [0] * n
        plain: dict[str, Any] = {"k": numbers, "y": y}
        exec(text.replace("LOOP", f"range({n})"), plain)
        wanted = plain["f"]()
        if abs(wanted) >= 1 << 30:
            continue
        ti.init(debug=debug)
        k_field, y_field = ti.field(ti.i32, n, name="k"), ti.field(ti.i32, n, name="y")
        namespace: dict[str, Any] = {"ti": ti, "k": k_field, "y": y_field, "__name__": "program"}
        kernel_text = text.replace("def f()", "def f() -> ti.i32").replace("LOOP", "k")
        run(f"@ti.kernel\n{kernel_text}", namespace)
        kernel = namespace["f"]
        k_field.from_numpy(np.array(numbers, np.int32))
        assert kernel() == wanted, text
        lowered = kernel.specialisations()[0].lowered.function
        final, _ = run_pipeline(lowered, steps_for(PRIMAL), Config(debug=debug))
        memory = DictMemory(
            {b: numbers if b.name == "k" else [0] * n for b in buffers_of(final) if b.name in ("k", "y")}
        )
        assert interpret(final, (), memory, order=shuffled)[0] == wanted, text
        tasks = kernel.tasks()
        ordered += any(task.because for task in tasks)
        parallel += all(not task.because for task in tasks)
    assert min(parallel, ordered) > 0.25 * len(seeds)
