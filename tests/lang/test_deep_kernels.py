"""Long chains and deep nests: they compile and are right, or are refused as nested too deeply; never a fault of the
compiler's.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelSyntaxError

X = [-4, -3, -2, -1, 0, 1, 2, 3]
Z = [0.5, -0.25, 1.5, 0.75, -1.0, 0.125, 1.0, 2.0]


def chain(operator: str, term: str, n: int) -> str:
    return f" {operator} ".join([term.replace("#", str(k)) for k in range(n)])


def value(text: str) -> str:
    return f"        y[i] = {text}\n"


def condition(text: str) -> str:
    return f"        if {text}:\n            y[i] = z[i]\n"


def arms(n: int, bodies: list[str], tests: str = "x[i] == {}", first: str = "if") -> str:
    lines = [f"{'elif' if k else first} {tests.format(k)}: {bodies[k % len(bodies)].format(k)}" for k in range(n)]
    return "".join([f"        {line}\n" for line in lines])


#: name: the body of a loop over `i` as a function of a length, and the lengths at which it compiles.
SHAPES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "sum of integers": (lambda n: value(chain("+", "x[i]", n)), (50, 1500)),
    "sum of floats": (lambda n: value(chain("+", "z[i]", n)), (50, 1500)),
    "sum of literals": (lambda n: value("z[i] + " + chain("+", "0.5", n)), (1500,)),
    "sum of constants": (lambda n: value("z[i] * (" + chain("+", "N", n) + ")"), (1500,)),
    "differences": (lambda n: value(chain("-", "z[(i + #) % 8]", n)), (50, 300)),
    "powers": (lambda n: value(chain("**", "(0.7 + z[i] * 0.01)", n)), (50, 1000)),
    "quotients": (lambda n: value(chain("/", "(z[i] + 3)", n)), (50,)),
    "truth values": (lambda n: condition(chain("|", "(x[i] == #)", n)), (1500,)),
    "bits": (lambda n: value(chain("^", "x[i]", n)), (1500,)),
    "lists": (lambda n: value(f"({chain('+', '[z[i]]', n)})[{n - 1}]"), (1000,)),
    "texts": (lambda n: value(f"z[i] if ti.static({chain('+', repr('a'), n)} == 'a' * {n}) else 0.0"), (1000,)),
    "and": (lambda n: condition(chain("and", "x[i] != #", n)), (1000,)),
    "or": (lambda n: condition(chain("or", "x[i] == -#", n)), (1000,)),
    "and of what may fail": (lambda n: condition(chain("and", "x[(x[i] + 12) % 8] != #", n)), (300,)),
    "comparisons": (lambda n: condition(chain("<=", "x[i]", n)), (50, 1000)),
    "comparisons of what may fail": (lambda n: condition(chain("<=", "x[(x[i] + 12) % 8]", n)), (50, 200)),
    "not": (lambda n: condition("not " * n + "x[i] > 0"), (51, 1000)),
    "negative": (lambda n: value("-" * n + "z[i]"), (51, 1000)),
    "elif": (lambda n: arms(n, ["y[i] = {}.0 * z[i]"]), (15, 17, 40, 150, 1000)),
    "elif, a local variable": (
        lambda n: f"        a = 0.0\n{arms(n, ['a = z[i] * {}.5', 'a += {}.0'])}        else: a = -z[i]\n{value('a')}",
        (15, 17, 40, 150),
    ),
    "elif, jumps": (lambda n: arms(n, ["continue", "y[i] = {}.0"]) + "        y[i] += z[i]\n", (15, 17, 40, 150)),
    "elif, an inner loop": (
        lambda n: (
            "        for j in range(8):\n"
            + arms(n, ["break", "y[i] += {}.0"], "x[j] == {}").replace("        ", "            ")
            + "            y[i] += z[j]\n"
        ),
        (15, 40, 150),
    ),
    "elif, all jump": (lambda n: arms(n, ["continue"]) + "        else: continue\n        y[i] = z[i]\n", (15, 17, 40)),
    "elif, constants": (lambda n: arms(n, ["y[i] = {}.0 * z[i]"], f"N * {{}} == {5 * n - 5}"), (15, 17, 1000)),
    "elif, constants between": (
        lambda n: (
            "        if x[i] > 1: y[i] = z[i]\n"
            + arms(n, ["y[i] = {}.0 * z[i]"], f"N * {{}} == {5 * n - 10}", "elif")
            + "        else: y[i] = -1.0\n"
        ),
        (15, 17, 40, 150),
    ),
    "conditional expression": (
        lambda n: value(" else ".join([f"z[{k % 8}] if x[i] == {k - 3}" for k in range(n)]) + " else -z[i]"),
        (15, 17, 40, 150, 500),
    ),
    "conditional expression of what may fail": (
        lambda n: value(
            " else ".join([f"z[(i + {k}) % 8] if x[(i * 3) % 8] == {k - 3}" for k in range(n)]) + " else 7"
        ),
        (15, 17, 40, 150),
    ),
    "conditional expression, constants between": (
        lambda n: value(" else ".join([f"z[i] if {'x[i]' if k % 2 else 'N'} == {-k}" for k in range(n)]) + " else 7"),
        (15, 17, 40),
    ),
    "integers in a variable": (
        lambda n: "        s = i\n" + "".join([f"        s = s + x[{k % 8}]\n" for k in range(n)]) + value("s"),
        (1500,),
    ),
    "an index in a variable": (
        lambda n: (
            "        s = i\n"
            + "".join([f"        s = (s * 3 + {k}) % 8\n" for k in range(n)])
            + "        y[s] = z[i]\n"
        ),
        (1000,),
    ),
    "conditions in a variable": (
        lambda n: (
            "        t = x[i] < 0\n" + "".join([f"        t = t and x[i] != {k}\n" for k in range(n)]) + condition("t")
        ),
        (600,),
    ),
    "sums in a variable": (
        lambda n: "        s = -1.0\n" + "        s = s + 0.5\n" * n + value("s + z[i]"),
        (1000,),
    ),
    "each value used twice": (lambda n: "        t = z[i]\n" + "        t = t + t * 0.5\n" * n + value("t"), (30,)),
    "each index used twice": (
        lambda n: "        s = i\n" + "        s = (s * s + (s ^ 3)) % 8\n" * n + "        y[s] = z[i]\n",
        (30,),
    ),
    "parentheses": (lambda n: value("(z[i] + " * n + "1.0" + ")" * n), (90,)),
    "calls": (lambda n: value("max(z[0], " * n + "z[i]" + ")" * n), (60,)),
    "branches": (
        lambda n: (
            "".join([f"        {' ' * k}if x[i] != {k + 1}:\n" for k in range(n)]) + " " * (8 + n) + "    y[i] = z[i]\n"
        ),
        (60,),
    ),
}
CASES = [(name, n) for name, (_, lengths) in SHAPES.items() for n in lengths]
GRADIENTS = [(name, n) for name, n in CASES if n <= 50 or (n > 150 and "elif" not in name and "cond" not in name)]


def program_of(body: str, name: str) -> tuple[Any, dict[str, Any]]:
    """The kernel with this loop, and its fields."""
    fields = {"x": ti.field(ti.i32, 8), "y": ti.field(ti.f64, 8, needs_grad=True)}
    fields["z"] = ti.field(ti.f64, 8, needs_grad=True)
    fields["x"].from_numpy(np.array(X, dtype=np.int32))
    fields["z"].from_numpy(np.array(Z))
    file = f"<{name}>"
    text = f"@ti.kernel\ndef k():\n    for i in x:\n{body}"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"ti": ti, "N": 5, **fields}
    exec(compile(text, file, "exec"), space)
    return space["k"], fields


def by_python(body: str) -> list[float]:
    """What Python makes of the loop."""
    space: dict[str, Any] = {
        "x": X,
        "z": Z,
        "y": [0.0] * 8,
        "N": 5,
        "ti": type("ti", (), {"static": staticmethod(bool)}),
    }
    exec(f"for i in range(8):\n{body}", space)
    return [float(v) for v in space["y"]]


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=["cpu", "python"])
@pytest.mark.parametrize(("name", "n"), CASES)
def test_long_chains_are_right(name: str, n: int, arch: Any) -> None:
    ti.init(arch=arch, default_fp=ti.f64)
    body = SHAPES[name][0](n)
    kernel, fields = program_of(body, name)
    kernel()
    assert fields["y"].to_numpy() == pytest.approx(by_python(body), rel=1e-9)


@pytest.mark.parametrize(("name", "n"), GRADIENTS)
def test_their_gradients_compile(name: str, n: int) -> None:
    """The sum of y follows each z."""
    ti.init(default_fp=ti.f64)
    body = SHAPES[name][0](n)
    kernel, fields = program_of(body, name)
    fields["y"].grad.fill(1.0)
    kernel.grad()
    space: dict[str, Any] = {}
    for position, found in enumerate(fields["z"].grad.to_numpy()):
        here, sums = Z[position], []
        for moved in (here + 1e-6, here - 1e-6):
            Z[position] = moved
            sums.append(sum(by_python(body)))
        Z[position] = here
        assert found == pytest.approx((sums[0] - sums[1]) / 2e-6, rel=1e-5, abs=1e-6), space


TOO_DEEP = {
    "lambdas": lambda: value("(lambda q: " * 80 + "z[i]" + ")(1)" * 80),
    "indices": lambda: value("1.0 * " + "x[" * 150 + "i" + "] " * 150),
    "calls": lambda: value("ti.sin(" * 180 + "z[i]" + ")" * 180),
    "components": lambda: value("ti.Vector([z[i], 1.0])" + ".yx" * 1200 + "[0]"),
}


@pytest.mark.parametrize("gradient", [False, True], ids=["primal", "gradient"])
@pytest.mark.parametrize("name", TOO_DEEP)
def test_what_is_too_deep_is_refused(name: str, gradient: bool) -> None:
    """Or compiled; Python's own limit decides."""
    ti.init()
    kernel, _ = program_of(TOO_DEEP[name](), name)
    try:
        (kernel.grad if gradient else kernel)()
    except KernelSyntaxError as error:
        assert "nested too deeply" in error.message
        assert "split long expressions and deep nests" in str(error)
    except ti.TaichiRuntimeError:
        pass  # an index out of range: it was compiled
