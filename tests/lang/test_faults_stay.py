"""A fault is an effect: an index out of range or a division by zero is reported although nobody needs the value.

Machine code, machine code in debug mode, plain Python, the interpreter of the simplified program, and the same text run
by Python itself over lists that check their indices.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import tinote as ti
from tests.lang.test_python_agrees import run
from tinote.compiler.passes.simplification.eliminate_dead import eliminate_dead
from tinote.errors import KernelIndexError, KernelZeroDivisionError
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of

MODES = [{}, {"debug": True}, {"arch": ti.python}, {"fast_math": False}]

#: name: the body of a kernel of `i` over an integer field `f`, a float field `g` and vectors `v`, each of length 8.
UNUSED = {
    "times zero": "out[None] = f[i] * 0",
    "and zero": "out[None] = f[i] & 0",
    "to the power of zero": "out[None] = f[i] ** 0",
    "a statement of its own": "f[i]",
    "an unused variable": "x = g[i]",
    "an unused vector": "x = v[i]",
    "one component": "x = v[i].y",
    "a condition without consequences": "if f[i] > 0: pass",
    "two conditions": "if g[i] > 0 and f[i] > 1: pass",
    "both sides alike": "out[None] = 3 if f[i] > 0 else 3",
    "a conditional expression": "g[i] if i > 0 else 0.0",
    "compared with itself": "out[None] = 1 if f[i] == f[i] else 0",
    "a loop that only reads": "for k in range(i):\n        g[k]",
    "a serial loop that only reads": "for _ in range(1):\n        for k in range(i):\n            g[k]",
    "a value that only feeds itself": "s = 0\n    for k in range(3):\n        s += f[i + k]",
    "assigned again": "t = f[i]\n    t = 0\n    out[None] = t",
    "in a while": "k = 0\n    while k < 3:\n        f[i]\n        k += 1",
    "a division": "7 // (i - 20)",
    "a remainder times zero": "out[None] = (7 % (i - 20)) * 0",
    "a component of a local": "u = ti.Vector([1, 2, 3])\n    u[i]",
    "a component that is assigned": "u = ti.Vector([1, 2, 3])\n    u[i] = 2",
    "assigned in a loop": "u = ti.Vector([1, 2, 3])\n    for k in range(3):\n        u[i] = k",
    "an argument nobody needs": "ignores(f[i])",
}


@pytest.mark.parametrize("options", MODES, ids=str)
def test_what_nobody_needs_is_checked(options: dict[str, Any]) -> None:
    text = (
        "f, g, v = ti.field(ti.i32, 8), ti.field(ti.f32, 8), ti.Vector.field(3, ti.f32, 8)\n"
        "out = ti.field(ti.i32, ())\n@ti.func\ndef ignores(a):\n    return 1\n"
    )
    for k, body in enumerate(UNUSED.values()):
        text += f"@ti.kernel\ndef k{k}(i: ti.i32):\n    {body}\n"
    ti.init(**options)
    namespace: dict[str, Any] = {"ti": ti, "__name__": "program"}
    run(text, namespace)
    for k, name in enumerate(UNUSED):
        namespace[f"k{k}"](1)
        with pytest.raises((KernelIndexError, KernelZeroDivisionError)):
            namespace[f"k{k}"](20)
            pytest.fail(f"{name}: nothing was reported")


def test_what_is_in_range_leaves_nothing() -> None:
    ti.init()
    f = ti.field(ti.i32, shape=8)
    v = ti.Vector.field(3, ti.f32, shape=8)

    @ti.kernel
    def proved():
        for i in f:
            f[i]
            x = v[i]  # noqa: F841
            if f[i] > 0:
                pass

    @ti.kernel
    def covered(k: ti.i32):
        u = v[k]
        v[k].y = u.x

    proved()
    assert not [task for task in proved.tasks() if task.operations]
    covered(3)
    assert [task.checks for task in covered.tasks()] == [1]


def test_without_checks_nothing_stays() -> None:
    ti.init(bounds_check=False)
    f = ti.field(ti.i32, shape=8)

    @ti.kernel
    def unchecked(i: ti.i32):
        f[i]

    unchecked(1000)
    assert not unchecked.tasks()


# ---- random programs


class Checked:
    """What a field is to Python here: a list that counts no index from its end."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __getitem__(self, i: Any) -> Any:
        if i is None:
            return self.values[0]
        if not 0 <= i < len(self.values):
            raise IndexError(i)
        return self.values[i]

    def __setitem__(self, i: Any, value: Any) -> None:
        self[i]
        self.values[i or 0] = value


class Writer:
    """Writes a kernel of `n` and `m` whose reads mostly come to nothing."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.variables = 0

    def index(self, loops: list[str]) -> str:
        base = self.random.choice(["n", "m", "3", *loops * 2])
        return self.random.choice(
            [base, f"{base} + {self.random.randint(0, 3)}", f"{base} - 1", f"{base} * 2", f"f[{base}]"]
        )

    def value(self, loops: list[str], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice([f"f[{self.index(loops)}]", f"f[{self.index(loops)}]", "n", "2"])
        a, b = self.value(loops, depth - 1), self.value(loops, depth - 1)
        sign = self.random.choice(["+", "-", "*", "&", "//", "%"])
        return self.random.choice([f"({a} {sign} {b})", f"({a}) * 0", f"({a} if {b} > 2 else {a})"])

    def block(self, indent: str, loops: list[str], depth: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            value = self.value(loops)
            match self.random.randint(0, 6 if depth else 3):
                case 0:
                    self.lines.append(f"{indent}{value}")
                case 1:
                    self.variables += 1
                    self.lines.append(f"{indent}t{self.variables} = {value}")
                case 2:
                    self.lines.append(f"{indent}if {value} > 1: pass")
                case 3:
                    self.lines.append(f"{indent}out[None] = {value} * 0")
                case 4 | 5:
                    self.variables += 1
                    k = f"k{self.variables}"
                    self.lines.append(f"{indent}for {k} in range({self.random.choice(['n', 'm', '3'])}):")
                    self.block(indent + "    ", [*loops, k], depth - 1)
                case _:
                    self.lines.append(f"{indent}if {value} > {self.random.randint(-1, 2)}:")
                    self.block(indent + "    ", loops, depth - 1)

    def text(self) -> str:
        self.block("    ", [], 2)
        return "\n".join(["def k(n, m):", *self.lines, ""])


def outcome(call: Any) -> str:
    try:
        call()
    except (IndexError, KernelIndexError):
        return "index"
    except (ZeroDivisionError, KernelZeroDivisionError):
        return "division"
    return ""


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": ti.python}], ids=str)
def test_random_programs_that_compute_nothing(options: dict[str, Any]) -> None:
    faults = 0
    for seed in range(60):
        text = Writer(seed).text()
        ti.init(num_threads=1, **options)
        namespace: dict[str, Any] = {"ti": ti, "__name__": "program"}
        typed = text.replace("(n, m)", "(n: ti.i32, m: ti.i32)", 1)
        run(f"f, out = ti.field(ti.i32, 8), ti.field(ti.i32, ())\n@ti.kernel\n{typed}", namespace)
        for i in range(8):
            namespace["f"][i] = i % 5
        plain: dict[str, Any] = {"f": Checked([i % 5 for i in range(8)]), "out": Checked([0])}
        exec(text, plain)
        for n, m in ((1, 2), (4, 1), (9, 3), (3, 12), (0, 0), (-1, 2)):
            wanted = outcome(lambda n=n, m=m, plain=plain: plain["k"](n, m))
            found = outcome(lambda n=n, m=m, namespace=namespace: namespace["k"](n, m))
            # Of several faults another one than the first may be reported.
            assert bool(found) == bool(wanted), f"seed {seed}, n = {n}, m = {m}: {found!r}, not {wanted!r}\n{text}"
            faults += bool(wanted)
    assert 100 < faults < 300


# ---- the pass


def test_a_dropped_access_leaves_its_check() -> None:
    fn = parse(
        """
        buffer @x: i32 field (8)
        buffer @y: i32 field (8)
        func f(%i: i32, %j: i32):
          %a: i32 = load @x[%i]
          %b: i32 = load @y[%j]
          store @x[%j], 1i32
          for %k: i32 in 0i32 .. 3i32:
            %c: i32 = load @x[%k]
            %d: i32 = floordiv %c, %i
          return 0i32
        """
    )
    new = eliminate_dead(fn, keep_checks=True)
    assert eliminate_dead(new, keep_checks=True) is new
    (x,) = buffers_of(new)

    def after(i: int, j: int) -> Any:
        memory = DictMemory({x: list(range(8))})
        return outcome(lambda: interpret(new, (i, j), memory))

    assert [after(i, j) for i, j in ((1, 1), (8, 1), (1, 8), (-1, 1), (0, 1))] == [
        "",
        "index",
        "index",
        "index",
        "division",
    ]
