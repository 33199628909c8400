"""Functions that nobody has decorated: whatever a kernel calls gives what Python gives."""

from __future__ import annotations

import enum
import functools
import linecache
import math
import operator
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import tinote as ti
from tests.lang.recalled.support import is_recalled
from tests.lang.test_python_agrees import run as run_text
from tinote.errors import KernelSyntaxError, TinoteError

VALUES = [-2.5, -1.0, 0.0, 0.5, 3.0]


# ---- what is called


def square(a):
    return a * a


def with_defaults(a, b=2, *, c=3):
    return a * 100 + b * 10 + c


def any_number(a, *others, **named):
    return a + len(others) * 10 + others[1] + named["scale"]


def early(a):
    if a > 1:
        return 1.0
    s = 0.0
    for i in range(3):
        if i == 2:
            return s + a
        s += i
    return -1.0


def swapped(a, b):
    return b, a


def helper_of_helper(a):
    return square(a) + half(a)


def while_loop(a):
    n = 0
    while a < 10:
        a = 2 * a + 3
        n += 1
    return n


def annotated(a: float, b: int = 2) -> float:
    c: int = a / b  # says nothing in Python
    return c


def annotated_by_the_language(a: ti.i32, b: ti.f32 = 2.0) -> ti.i32:
    c: ti.i32 = a / b
    return c


def nested_tuple(a):
    (b, c), d = (a, 2 * a), [3 * a]
    return b + c + d[0]


half = lambda a: a / 2  # noqa: E731
one_of_two, other_of_two = (lambda a: a + 1), (lambda a: a - 1)
PAIR = [lambda a: a * 7, lambda a: a * 8]
BY_NAME = {"twice": lambda a: 2 * a}
quarter = functools.partial(lambda b, a: a / b, 4)
named = functools.partial(with_defaults, c=5)
twice_partial = functools.partial(named, 2)


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


@logged
def decorated(a, b=1):
    return a * b


@functools.lru_cache
def remembered(a):
    return a + 2


def scaled_by(k):
    def scaled(a):
        return a * k

    return scaled


triple = scaled_by(3)


def composed(f, g):
    return lambda a: f(g(a))


both = composed(square, triple)
nested = composed(both, both)


class Material:
    stiffness = 3.0

    def __init__(self, density: float) -> None:
        self.density = density
        self.law = square
        self.partial = functools.partial(with_defaults, 1)

    def mass(self, volume):
        return self.density * volume

    def both(self, volume):
        return self.mass(volume) + self.factor(volume) + self.of_class(volume)

    @staticmethod
    def factor(a):
        return a + 1

    @classmethod
    def of_class(cls, a):
        return a * cls.stiffness

    def __call__(self, a):
        return a - self.density

    def __getitem__(self, i):
        return i * self.density


class Steel(Material):
    stiffness = 9.0

    def mass(self, volume):
        return super().mass(volume) + 1


class Pair(NamedTuple):
    first: float
    second: float = 4.0

    def product(self, a):
        return self.first * self.second * a


class Colour(enum.Enum):
    RED = 3

    def weight(self, a):
        return a * self.value


colour = Colour.RED
multiples = [lambda a, k=k: a * k for k in range(3)]
OVER_LINES = [
    (
        lambda a, b=2: (
            # what it gives
            a + b
        )
    )
]
material, steel = Material(2.0), Steel(4.0)

CALLS = [
    "square(a)",
    "square(a + square(2))",
    "with_defaults(a)",
    "with_defaults(a, c=7)",
    "with_defaults(*(a, 1))",
    "with_defaults(**{'a': a, 'b': 4})",
    "any_number(a, 2, a, scale=3)",
    "early(a)",
    "swapped(a, 2)[1] + swapped(a, 3)[0]",
    "helper_of_helper(a)",
    "while_loop(a + 2)",
    "annotated(a) + annotated_by_the_language(a)",
    "nested_tuple(a)",
    "half(a)",
    "one_of_two(a) * 100 + other_of_two(a)",
    "PAIR[0](a) + PAIR[1](a)",
    "BY_NAME['twice'](a)",
    "quarter(a)",
    "named(a) + twice_partial() + twice_partial(c=a)",
    "decorated(a) + decorated(a, b=3)",
    "remembered(a)",
    "triple(a) + both(a)",
    "nested(a)",
    "material.mass(a)",
    "material.both(a) + steel.both(a)",
    "Material.mass(material, a)",
    "Material.factor(a) + Steel.of_class(a)",
    "material(a) + steel(a)",
    "material[a] + steel[2]",
    "material.law(a)",
    "material.partial(a, c=2)",
    "ti.func(square)(a)",
    "ti.func(half)(a)",
    "operator.add(a, 2) - operator.sub(a, 3) * operator.mul(a, 4) + operator.truediv(a, 5)",
    "operator.mod(a, 2) + operator.floordiv(a, 2) + operator.pow(a, 2)",
    "operator.neg(a) + operator.pos(a) + operator.abs(a)",
    "1.0 if operator.lt(a, 0.5) else 2.0 if operator.eq(a, 0.5) else 3.0",
    "functools.partial(operator.mul, 3)(a)",
    "operator.getitem([1, 2, 3], 1) * a",
    "a * np.float32(1.5) + np.int32(2)",
    "a * np.array([1.0, 2.0])[1] + np.array([[1, 2], [3, 4]])[1, 0]",
    "math.gamma(4) * a + math.comb(5, 2)",
    "max(map(square, (1, 2, 3))) * a",
    "sum(map(square, [a, 2.0, 3.0])) + list(map(operator.mul, [a, 1.0], [2.0, 3.0]))[1]",
    "functools.reduce(operator.add, [a, 2.0, 3.0]) + functools.reduce(lambda p, q: p * q, [2.0, 3.0], a)",
    "sum(filter(lambda n: n > 1, [1, 2, 3])) + a",
    "sorted([3, 1, 2], key=lambda n: -n)[0] + a",
    "Pair(a, 2.0).second + Pair(1.0).product(a) + Pair(second=a, first=2.0).first",
    "multiples[0](a) + multiples[1](a) * 10 + multiples[2](a) * 100",
    "OVER_LINES[0](a)",
    "colour.weight(a)",
]


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    ti.init()
    yield
    ti.init()


#: What texts of programs use, besides what stands above.
USED = {"math": math, "operator": operator}
_number = iter(range(10**6))


def kernel_of(body: str, result: str = "ti.f64", **names: Any) -> Any:
    """The kernel `k(a)` with this body."""
    lines = body if "\n" in body or body.startswith("return") else f"return {body}"
    text = f"@ti.kernel\ndef k(a: ti.f64) -> {result}:\n    {lines}\n"
    namespace: dict[str, Any] = {**globals(), **USED, **names}
    run_text(text, namespace)
    return namespace["k"]


@pytest.mark.parametrize("arch", ["cpu", "python"])
@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_what_python_gives(call: str, arch: str) -> None:
    ti.init(arch=getattr(ti, arch), default_fp=ti.f64)
    k = kernel_of(call)
    for value in VALUES:
        assert k(value) == pytest.approx(eval(call, {**globals(), **USED, "a": value}), rel=1e-12), value


# ---- what is called in Python


def rows():
    found = []
    for i in range(2):
        found.append([float(i), 2.0])
    return found


def zero_vector():
    return [0.0, 0.0]


def zero_matrix():
    return [zero_vector(), zero_vector()]


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def guarded(n):
    try:
        return 1 // n
    except ZeroDivisionError:
        return -1


def stencil():
    return ti.ndrange((-1, 2), (-1, 2))


def weights(n):
    return np.linspace(0.0, 1.0, n)


def numbered(n):
    yield from range(n)


neighbours = ti.ndrange((0, 2), 3)
grouped_neighbours = ti.grouped(neighbours)

AT_COMPILE_TIME = {
    "a list of lists": ("m = ti.Matrix(rows())\n    return m[1, 0] * 10 + m[0, 1] + a", 12.0),
    "inlined lists": ("m = ti.Matrix(zero_matrix())\n    m[0, 1] += a\n    return m[0, 1] + m[1, 0]", 0.0),
    "recursion": ("return fibonacci(10) + a", 55.0),
    "an exception": ("return guarded(0) + guarded(1) + a", 0.0),
    "an array": ("return weights(5)[3] + a", 0.75),
    "numpy": ("v = np.zeros(3)\n    v[1] = a + 2\n    return v.sum() + np.eye(2)[1, 1]", 3.0),
    "a stencil": (
        "s = 0\n    for i, j in ti.static(stencil()):\n        s += 10 * i * i + j * j\n    return s + a",
        66.0,
    ),
    "a grouped stencil": (
        "s = 0\n    for o in ti.static(ti.grouped(stencil())):\n        s += o[0] * o[0]\n    return s + a",
        6.0,
    ),
    "a stencil at run time": ("s = 0\n    for i, j in stencil():\n        s += i + 1\n    return s + a", 9.0),
    "a captured ndrange": ("s = 0\n    for i, j in neighbours:\n        s += i + j\n    return s + a", 9.0),
    "a captured ndrange, twice": (
        "s = 0\n    for i, j in ti.static(neighbours):\n        for k, l in ti.static(neighbours):\n            s += 1"
        "\n    return s + a",
        36.0,
    ),
    "a captured grouped": (
        "s = 0\n    for o in ti.static(grouped_neighbours):\n        s += o[1]\n    return s + a",
        6.0,
    ),
    "a captured grouped at run time": (
        "s = 0\n    for o in grouped_neighbours:\n        s += o[1]\n    return s + a",
        6.0,
    ),
    "a generator": ("s = 0\n    for i in ti.static(numbered(4)):\n        s += i\n    return s + a", 6.0),
    "methods of classes": (
        "v = ti.Vector([3.0, a + 4.0])\n"
        "    return ti.Vector.norm(v) + ti.Matrix.dot(v, v) + ti.Vector.normalized(v)[0]",
        30.6,
    ),
}


@pytest.mark.parametrize("arch", ["cpu", "python"])
@pytest.mark.parametrize("name", AT_COMPILE_TIME)
def test_what_is_known_at_compile_time(name: str, arch: str) -> None:
    ti.init(arch=getattr(ti, arch), default_fp=ti.f64)
    body, expected = AT_COMPILE_TIME[name]
    k = kernel_of(body)
    for _ in range(2):
        assert k(0.0) == pytest.approx(expected)
    assert len(k.instances) == 1


# ---- what changes later


def changed(setting: dict[str, Any], program: str, change: Callable[[dict[str, Any]], None]) -> tuple[float, float]:
    """What a kernel gives before and after something it calls has changed."""
    names: dict[str, Any] = {"ti": ti, "functools": functools, **setting}
    run_text(f"{program}\n@ti.kernel\ndef k(a: ti.f64) -> ti.f64:\n    return f(a)\n", names)
    first = names["k"](2.0)
    assert names["k"](2.0) == first
    assert len(names["k"].instances) == 1
    change(names)
    return first, names["k"](2.0)


def defining(text: str) -> Callable[[dict[str, Any]], None]:
    def change(names: dict[str, Any]) -> None:
        file = f"<later {next(_number)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)

    return change


CHANGES = {
    "a function": ("def f(a):\n    return a + 1", "def f(a):\n    return a + 2", 3.0, 4.0),
    "a lambda": ("f = lambda a: a + 1", "f = lambda a: a + 2", 3.0, 4.0),
    "a helper's helper": (
        "def h(a):\n    return a + 1\ndef g(a):\n    return h(a)\ndef f(a):\n    return g(a)",
        "def h(a):\n    return a + 2",
        3.0,
        4.0,
    ),
    "a method": (
        "class C:\n    def m(self, a):\n        return a + 1\nc = C()\ndef f(a):\n    return c.m(a)",
        "C.m = lambda self, a: a + 2",
        3.0,
        4.0,
    ),
    "a method of an object": (
        "class C:\n    def m(self, a):\n        return a + 1\nc = C()\ndef f(a):\n    return c.m(a)",
        "c.m = lambda a: a + 2",
        3.0,
        4.0,
    ),
    "an object that is called": (
        "class C:\n    def __call__(self, a):\n        return a + 1\nf = C()",
        "C.__call__ = lambda self, a: a + 2",
        3.0,
        4.0,
    ),
    "an object that is indexed": (
        "class C:\n    def __getitem__(self, a):\n        return a + 1\nc = C()\ndef f(a):\n    return c[a]",
        "C.__getitem__ = lambda self, a: a + 2",
        3.0,
        4.0,
    ),
    "a partial": (
        "def g(b, a):\n    return a + b\nf = functools.partial(g, 1)",
        "f = functools.partial(g, 2)",
        3.0,
        4.0,
    ),
    "a partial of an object": (
        "class C: pass\nc = C()\ndef g(b, a):\n    return a + b\nc.p = functools.partial(g, 1)\n"
        "def f(a):\n    return c.p(a)",
        "c.p = functools.partial(g, 2)",
        3.0,
        4.0,
    ),
    "what a partial holds": (
        "def g(a, b):\n    return a + b\nf = functools.partial(g, b=1)",
        "f.keywords['b'] = 2",
        3.0,
        4.0,
    ),
    "a constant that it reads": ("k1 = 1\ndef f(a):\n    return a + k1", "k1 = 2", 3.0, 4.0),
    "a list that it reads": ("k1 = [1]\ndef f(a):\n    return a + k1[0]", "k1[0] = 2", 3.0, 4.0),
    "an attribute": (
        "class C: pass\nc = C()\nc.k = 1\ndef f(a):\n    return a + c.k",
        "c.k = 2",
        3.0,
        4.0,
    ),
    "its code": ("def f(a):\n    return a + 1", "def g(a):\n    return a + 2\nf.__code__ = g.__code__", 3.0, 4.0),
    "its defaults": ("def f(a, b=1):\n    return a + b", "f.__defaults__ = (2,)", 3.0, 4.0),
    "a default that is a list": ("def f(a, b=[1]):\n    return a + b[0]", "f.__defaults__[0][0] = 2", 3.0, 4.0),
    "what a decorator wraps": (
        "def w(g):\n    def inner(a):\n        return g(a)\n    return inner\n@w\ndef f(a):\n    return a + 1",
        "@w\ndef f(a):\n    return a + 2",
        3.0,
        4.0,
    ),
    "what a closure holds": (
        "def make():\n    k = 1\n    def f(a):\n        return a + k\n"
        "    def more():\n        nonlocal k\n        k += 1\n    return f, more\nf, more = make()",
        "more()",
        3.0,
        4.0,
    ),
    "what Python has answered": (
        "t = {1: 1}\ndef g(n):\n    try:\n        return t[n]\n    except KeyError:\n        return 0\n"
        "def f(a):\n    return a + g(1)",
        "t[1] = 2",
        3.0,
        4.0,
    ),
    "a cache": (
        "@functools.lru_cache\ndef f(a):\n    return a + 1",
        "@functools.lru_cache\ndef f(a):\n    return a + 2",
        3.0,
        4.0,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_takes_effect_at_the_next_launch(name: str) -> None:
    before, later, first, second = CHANGES[name]
    assert changed({}, before, defining(later)) == (first, second)


@pytest.mark.parametrize("name", CHANGES)
def test_another_process_takes_the_code_of_what_is_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot tell, it compiles anew: the result is always that of the functions as they are."""
    monkeypatch.setenv("TINOTE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TINOTE_CACHE_LIMIT", "64M")
    ti.init(default_fp=ti.f64)
    before, later, first, second = CHANGES[name]
    kernel = "\n@ti.kernel\ndef k(a: ti.f64) -> ti.f64:\n    return f(a)\n"
    for text, expected, known in ((before, first, False), (before, first, True), (f"{before}\n{later}", second, False)):
        names: dict[str, Any] = {"ti": ti, "functools": functools, "__name__": "program"}
        run_text(text + kernel, names)
        assert names["k"](2.0) == expected
        assert is_recalled(names["k"]) is (known and name not in NEVER_RECALLED)


#: What Python answers is never taken from an earlier process.
NEVER_RECALLED = ("what Python has answered",)


def test_cells_that_are_run_again() -> None:
    shell = InteractiveShell.instance()
    shell.run_cell("import tinote as ti\nti.init()\nimport functools")
    cells = [
        "def h(a):\n    return a + 1",
        "g = lambda a: h(a)",
        "class C:\n    def m(self, a):\n        return g(a)\nc = C()",
        "p = functools.partial(lambda f, a: f(a), c.m)",
        "@ti.kernel\ndef k(a: ti.f64) -> ti.f64:\n    return p(a) * 10",
    ]

    def run(cell: str) -> Any:
        done = shell.run_cell(cell, store_history=True)
        done.raise_error()
        return done.result

    for cell in cells:
        run(cell)
    assert run("k(2.0)") == 30.0
    run("def h(a):\n    return a + 2")
    assert run("k(2.0)") == 40.0
    run("g = lambda a: h(a) + 1")
    assert run("k(2.0)") == 50.0
    run("C.m = lambda self, a: 7")
    assert run("k(2.0)") == 50.0, "the partial holds the method as it was, as in Python"
    run(cells[3])
    assert run("k(2.0)") == 70.0
    run(cells[0])
    run(cells[2])
    run(cells[3])
    assert run("k(2.0)") == 40.0
    with pytest.raises(TinoteError) as caught:
        run("def h(a):\n    return a + missing")
        run("k(2.0)")
    assert "return a + missing" in str(caught.value)
    assert "Cell In" in str(caught.value)


# ---- functions inside of kernels

INSIDE = {
    "a lambda": "f = lambda b: b * 2\n    return f(a) + (lambda b, c=3: b + c)(a)",
    "a function": "def f(b, c=a, *, d=2):\n        e = b + c\n        return e * d\n    return f(a) + f(1.0, d=3)",
    "late": "s = 1.0\n    f = lambda b: b + s\n    s = a\n    return f(1.0)",
    "own names": "s = 1.0\n    def f(s):\n        s = s + 1\n        t = s\n        return t\n    t = 5.0\n"
    "    return f(a) * 100 + s * 10 + t",
    "nonlocal": "n = 0.0\n    def f(b):\n        nonlocal n\n        n += b\n    f(a)\n    f(2.0)\n    return n",
    "nonlocal in a loop": "n = 0.0\n    def f(b):\n        nonlocal n\n        n += b\n    for i in range(50):\n"
    "        f(i)\n    return n + a",
    "nested": "def f(b):\n        def g(c):\n            return b * c\n        return g(b) + g(2.0)\n    return f(a)",
    "functions as arguments": "def twice(g, b):\n        return g(g(b))\n    return twice(lambda b: b * 3, a)",
    "functions as results": "def add(b):\n        return lambda c: b + c\n    f, g = add(a), add(2.0)\n"
    "    return f(1.0) * 10 + g(3.0)",
    "early": "def f(b):\n        if b > 0:\n            return 1.0\n        return b\n    return f(a) + f(-a)",
    "a loop": "def f(b):\n        s = 0.0\n        for i in range(5):\n            if i > b:\n                break\n"
    "            s += i\n        return s\n    return f(a) + f(2.0)",
    "in a table": "fs = [lambda b: b, lambda b: 2 * b]\n    return fs[0](a) + fs[1](a)",
    "plain ones from outside": "def f(b):\n        return square(b) + half(b)\n    return f(a)",
}


@pytest.mark.parametrize("arch", ["cpu", "python"])
@pytest.mark.parametrize("name", INSIDE)
def test_functions_inside_of_kernels(name: str, arch: str) -> None:
    ti.init(arch=getattr(ti, arch), default_fp=ti.f64)
    body = INSIDE[name]
    names = {**globals()}
    exec(f"def python(a):\n    {body}\n", names)
    k = kernel_of(body)
    for value in VALUES:
        assert k(value) == pytest.approx(names["python"](value), rel=1e-12), value


# ---- derivatives


def test_derivatives_go_through() -> None:
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, 4, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    values = np.array([0.5, -1.0, 2.0, 3.0])

    @ti.kernel
    def run():
        for i in x:
            loss[None] += decorated(x[i]) * material(x[i]) + nested(x[i]) + early(x[i])

    def python(v: Any) -> float:
        return sum(decorated(a) * material(a) + nested(a) + early(a) for a in v)

    x.from_numpy(values)
    with ti.ad.Tape(loss):
        run()
    assert loss[None] == pytest.approx(python(values))
    step = 1e-6
    differences = [(python(values + step * e) - python(values - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(x.grad.to_numpy(), differences, rtol=1e-6)


# ---- what is refused


def refused_random(a):
    return a + random.random()


def refused_time(a):
    return a + time.time()


def refused_global(a):
    global CALLED
    CALLED = 1
    return a


def refused_attribute(a):
    material.density = 3.0
    return a


def refused_append(a):
    PAIR.append(a)
    return a


def refused_item(a):
    PAIR[0] = a
    return a


def refused_setitem(a):
    material[2] = a
    return a


def refused_input(a):
    return a + float(input())


def refused_file(a):
    with open("file") as f:
        return a + len(f.read())


def refused_recursion(a):
    return 1.0 if a < 0 else refused_recursion(a - 1)


async def refused_async(a):
    return a


exec("def without_source(a):\n    return a + 1", globals())

REFUSED = {
    "random.random() + a": ("random.random() + a", "gives another value at each call", "ti.random"),
    "random.uniform(a, 2)": ("random.uniform(a, 2)", "gives another value at each call", "ti.random"),
    "np.random.rand() + a": ("np.random.rand() + a", "gives another value at each call", "ti.random"),
    "time.time() + a": ("time.time() + a", "may give another value at each call", "argument"),
    "input() + a": ("input() + a", "reads or writes outside", ""),
    "in a function, random": ("refused_random(a)", "gives another value at each call", "ti.random"),
    "in a function of a constant, random": ("refused_random(1) + a", "gives another value at each call", "ti.random"),
    "in a function, time": ("refused_time(a)", "may give another value at each call", "argument"),
    "global": ("refused_global(a)", "`global` cannot be used", "fields"),
    "global, of a constant": ("refused_global(1) + a", "`global` cannot be used", "fields"),
    "an attribute": ("refused_attribute(a)", "cannot be assigned in a kernel", "fields"),
    "an attribute, of a constant": ("refused_attribute(1) + a", "cannot be assigned in a kernel", "fields"),
    "append": ("refused_append(a)", "`list.append` cannot be called in a kernel", "fields"),
    "append, of a constant": ("refused_append(1) + a", "`list.append` cannot be called in a kernel", "fields"),
    "an item": ("refused_item(a)", "cannot be assigned", "field"),
    "an item, of a constant": ("refused_item(1) + a", "cannot be assigned", "field"),
    "an item of an object": ("refused_setitem(a)", "whose items kernels only read", "field"),
    "input": ("refused_input(a)", "`input` reads or writes outside", ""),
    "a file": ("refused_file(1) + a", "`with` cannot be used", ""),
    "recursion": ("refused_recursion(a)", "calls itself", "loop"),
    "async": ("refused_async(a)", "async", ""),
    "async, of a constant": ("refused_async(1)", "async", ""),
    "a generator": ("numbered(a)", "is a generator", "@ti.func"),
    "no source": ("without_source(a)", "the source of `without_source` is not available", ""),
    "C": ("math.gamma(a)", "math.gamma", ""),
    "a member": ("Material(a).volume", "has no member `volume`", "it has density"),
    "too many": ("square(a, a)", "takes 1 argument, and is called with 2", ""),
    "missing": ("with_defaults()", "takes 3 arguments, and is called with 0", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, message, hint = REFUSED[name]
    with pytest.raises(TinoteError) as caught:
        kernel_of(call)(1.0)
    error = caught.value
    assert message in error.message, str(error)
    assert hint in error.hint, str(error)
    outermost = error.span.chain()[-1]
    assert outermost.file == "program.py"
    assert outermost.end_column > outermost.column >= 11, "the caret stands under the call"


def test_an_error_shows_the_call_and_the_cause() -> None:
    with pytest.raises(KernelSyntaxError) as caught:
        kernel_of("refused_file(a)")(1.0)
    text = str(caught.value)
    lines = text.splitlines()
    assert any(line.endswith('with open("file") as f:') for line in lines)
    assert any("return refused_file(a)" in line for line in lines)
    assert "because its argument `a` exists at run time only" in text


def test_both_ways_that_failed_are_named() -> None:
    def fails(n):
        try:
            return 1 // n
        finally:
            pass

    with pytest.raises(KernelSyntaxError) as caught:
        kernel_of("fails(0) + a", fails=fails)(1.0)
    error = caught.value
    assert "can neither be inlined nor called at compile time" in error.message
    assert "ZeroDivisionError" in error.message
    assert [note.text for note in error.notes] == [
        "it cannot be inlined: `try` cannot be used in a kernel",
        "it raises that here",
    ]
