"""`min` and `max` leave a NaN out wherever they stand, and `%` and `//` are exact: in machine code with and without
fast maths, as plain Python, and in Python scope.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_python_agrees import run
from tinote.ir import primitives as p
from tinote.ir.types import Scalar, f16, f32, f64

pytestmark = pytest.mark.optimised

NAN = math.nan
MODES = [{}, {"fast_math": False}, {"arch": ti.python}]
PROGRAM = """
x = ti.field(ti.{t}, {n})
e = ti.field(ti.{t}, 8)

@ti.kernel
def scalars(a: ti.{t}, b: ti.{t}, c: ti.{t}) -> ti.{t}:
    return ti.{word}(a, b, c)

@ti.kernel
def vectors(a: ti.{t}, b: ti.{t}, c: ti.{t}) -> ti.types.vector(2, ti.{t}):
    v = ti.{word}(ti.Vector([a, b]), ti.Vector([b, c]))
    w = ti.Vector([a, b, c])
    return ti.Vector([ti.{word}(v[0], v[1]), w.{word}()])

@ti.kernel
def parallel() -> ti.{t}:
    m = x[0]
    for i in x:
        ti.atomic_{word}(m, x[i])
    return m

@ti.kernel
def conditional() -> ti.{t}:
    m = ti.cast(ti.math.nan, ti.{t})
    for i in x:
        if i % 3 != 1:
            ti.atomic_{word}(m, x[i])
    return m

@ti.kernel
def serial() -> ti.{t}:
    m = x[0]
    for _ in range(1):
        for i in range({n}):
            m = ti.{word}(x[i], m)
    return m

@ti.kernel
def elements():
    for i in x:
        ti.atomic_{word}(e[i % 8], x[i])
"""


def wanted(word: str, values: np.ndarray[Any, Any]) -> float:
    return float((np.fmax if word == "max" else np.fmin).reduce(values))


def same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("word", ["min", "max"])
@pytest.mark.parametrize("t", ["f16", "f32", "f64"])
def test_a_nan_is_left_out(options: dict[str, Any], word: str, t: str) -> None:
    n = 300 if "arch" in options else 20_000
    ti.init(num_threads=2, **options)
    program: dict[str, Any] = {"ti": ti, "__name__": "program"}
    run(PROGRAM.format(t=t, n=n, word=word), program)
    for values in [
        (9.0, NAN, 1.0),
        (NAN, 9.0, 1.0),
        (1.0, 9.0, NAN),
        (NAN, NAN, 3.0),
        (NAN, NAN, NAN),
        (1.0, -2.0, 5.0),
    ]:
        right = wanted(word, np.array(values))
        assert same(program["scalars"](*values), right)
        assert [same(v, right) for v in program["vectors"](*values)] == [True, True]
        assert same(float(getattr(ti, word)(*values)), right)
        assert same(float(getattr(ti, word)(ti.Vector(list(values)))), right)
        assert same(float(getattr(ti.Vector(list(values)), word)()), right)
    source = random.Random(5)
    for share in (0.0, 0.01, 0.9, 1.0):
        values = np.array([NAN if source.random() < share else source.uniform(-100, 100) for _ in range(n)])
        values = values.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[t])
        program["x"].from_numpy(values)
        assert same(program["parallel"](), wanted(word, values))
        assert same(program["serial"](), wanted(word, values))
        assert same(program["conditional"](), wanted(word, values[np.arange(n) % 3 != 1]))
        program["e"].fill(NAN)
        program["elements"]()
        assert all(same(program["e"][k], wanted(word, values[k::8])) for k in range(8))


@pytest.mark.parametrize("fast_math", [True, False])
def test_derivatives_follow_the_operand_that_is_chosen(fast_math: bool) -> None:
    ti.init(default_fp=ti.f64, fast_math=fast_math)
    x = ti.field(ti.f64, 3, needs_grad=True, needs_dual=True)
    loss = ti.field(ti.f64, (), needs_grad=True, needs_dual=True)

    @ti.kernel
    def largest():
        loss[None] += ti.max(x[0] * 2, x[1] * 3) + ti.min(x[1] * 5, x[2] * 7) + ti.max(x[2], 0.0)

    for values, slopes in (
        ((1.0, NAN, 2.0), (2.0, 0.0, 8.0)),
        ((NAN, 1.0, 2.0), (0.0, 8.0, 1.0)),
        ((1.0, 2.0, NAN), (0.0, 8.0, 0.0)),
        ((3.0, 1.0, 0.5), (2.0, 0.0, 8.0)),
    ):
        for k, v in enumerate(values):
            x[k] = v
        loss[None] = 0.0
        with ti.ad.Tape(loss):
            largest()
        assert [x.grad[k] for k in range(3)] == list(slopes), values
        for k, slope in enumerate(slopes):
            loss[None] = 0.0
            with ti.ad.FwdMode(loss=loss, param=x, seed=[float(j == k) for j in range(3)]):
                largest()
            assert loss.dual[None] == slope, (values, k)


# ---- remainders


def numbers(t: Scalar, count: int, seed: int) -> list[float]:
    """Numbers of all magnitudes, many of them near whole multiples of one another."""
    source = random.Random(seed)
    largest = {f16: 4.5, f32: 37.0, f64: 300.0}[t]

    def one() -> float:
        match source.randint(0, 9):
            case 0:
                return source.choice([0.0, -0.0, math.inf, -math.inf, NAN, 1.0, -1.0])
            case 1 | 2 | 3 | 4:
                return source.choice([-1, 1]) * source.randint(0, 300) * 0.1
            case 5:
                return float(source.randint(-5, 5))
            case _:
                return source.choice([-1, 1]) * 10 ** source.uniform(-largest, largest)

    return [t.round(one()) for _ in range(count)]


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("t", [f16, f32, f64])
def test_remainders_and_quotients_are_exact(options: dict[str, Any], t: Scalar) -> None:
    n = 500 if "arch" in options else 20_000
    ti.init(num_threads=1, **options)
    dtype = getattr(ti, t.name)
    a, b, rest, quotient = (ti.field(dtype, n) for _ in range(4))
    above, below = numbers(t, n, 1), numbers(t, n, 2)
    for field, values in ((a, above), (b, below)):
        field.from_numpy(np.array(values, {f16: np.float16, f32: np.float32, f64: np.float64}[t]))

    @ti.kernel
    def divide():
        for i in a:
            rest[i] = a[i] % b[i]
            quotient[i] = a[i] // b[i]

    divide()
    for x, y, r, q in zip(above, below, rest.to_numpy().tolist(), quotient.to_numpy().tolist(), strict=True):
        assert repr(r) == repr(p.mod.evaluate(t, x, y)), f"{x!r} % {y!r} is {r!r}"
        assert repr(q) == repr(p.floordiv.evaluate(t, x, y)), f"{x!r} // {y!r} is {q!r}"
        if r == r and y == y:
            assert math.copysign(1.0, r) == math.copysign(1.0, y) and abs(r) <= abs(y)
    if "arch" not in options:
        assert divide.loops()[0].width > 1


def test_the_definition_is_that_of_python() -> None:
    for x, y in zip(numbers(f64, 5000, 3), numbers(f64, 5000, 4), strict=True):
        if y == 0 or math.isinf(x):
            continue
        assert repr(p.mod.evaluate(f64, x, y)) == repr(x % y)
        assert repr(float(ti.mod(x, y))) == repr(x % y)
        if abs(x / y) < 2**50:
            assert p.floordiv.evaluate(f64, x, y) == x // y or y != y or x != x


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("level", range(4))
def test_a_nan_is_left_out_next_to_what_machine_code_knows_to_be_none(fast_math, level):
    """LLVM knows that what came from an integer, and what was clamped to a literal, is no NaN."""
    ti.init(default_fp=ti.f64, fast_math=fast_math, opt_level=level, num_threads=1)
    x, n = ti.field(ti.f64, 5), ti.field(ti.i32, 5)
    found = ti.field(ti.f64, 9)
    x.from_numpy(np.array([math.nan, 2.0, math.nan, 7.0, -1.0]))
    n.from_numpy(np.arange(5, dtype=np.int32) + 3)

    @ti.kernel
    def program(nan: ti.f64, k: ti.i32, m: ti.u32, h: ti.f16):
        found[0] = ti.max(nan, k)
        found[1] = ti.min(m, nan)
        found[2] = ti.max(nan, ti.cast(ti.cast(k, ti.f16), ti.f64))
        found[3] = ti.min(ti.sqrt(ti.abs(k)), nan)
        found[4] = ti.max(ti.min(nan, 2.5), nan)
        found[5] = ti.max(h, nan)
        for _ in range(1):
            least, largest, mixed = 1e3, ti.cast(k, ti.f64), 0.0
            for i in range(5):
                least = ti.min(least, x[i])
                largest = ti.max(x[i], ti.sqrt(largest))
                mixed += ti.max(x[i], n[i])
            found[6], found[7], found[8] = least, largest, mixed

    program(math.nan, 3, 4, 1.5)
    last = 3.0
    for value in x.to_numpy():
        last = np.fmax(value, math.sqrt(last))
    assert found.to_numpy() == pytest.approx([3, 4, 3, math.sqrt(3), 2.5, 1.5, -1, last, 3 + 4 + 5 + 7 + 7])
