"""Functions and arithmetic in WebAssembly, over tables of numbers: functions against their exact values, with the
bounds of machine code, integers against the same kernels as machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.primitive_functions import FUNCTIONS_OF_ONE, by_numpy, domain_of
from tests.lang.test_portable import numbers, played
from tinote.ir.primitives import PRIMITIVES
from tinote.lang.capture.portable import portable

COUNT = 2000
#: Functions of one number, by the sort of numbers that they take.
UNARY = {
    **{name: domain_of(name) for name in FUNCTIONS_OF_ONE},
    **dict.fromkeys(("sin", "cos", "tan"), "angle"),
    **dict.fromkeys(("exp", "tanh"), "power"),
    **dict.fromkeys(("floor", "ceil", "round", "abs"), "any"),
}
BINARY = ("atan2", "pow", "mod", "floordiv")


def table(sort: str, dtype: Any, random: np.random.Generator) -> np.ndarray[Any, Any]:
    """Numbers of a sort: of all sizes, among them the difficult ones."""
    single = dtype == np.float32
    signs = random.choice([-1.0, 1.0], COUNT)
    wide = 10.0 ** random.uniform(*((-30, 30) if single else (-200, 200)), COUNT)
    match sort:
        case "angle":  # near multiples of a quarter turn, too
            turns = np.round(10.0 ** random.uniform(0, 7, COUNT)) * (np.pi / 2)
            found = np.where(random.random(COUNT) < 0.5, signs * 10.0 ** random.uniform(-8, 7, COUNT), signs * turns)
            found[:8] = [0.0, np.pi / 2, np.pi, 1e9, 2.0**30, 1e12, 3.0, -1e-30]
            if single:
                found[::4] = wide[::4]
        case "unit":
            found = signs * np.where(
                random.random(COUNT) < 0.5, random.random(COUNT), 1 - 10 ** random.uniform(-7, 0, COUNT)
            )
            found[:6] = [0.0, 1.0, -1.0, 0.5, -0.5, 1e-20]
        case "power":
            found = random.uniform(*((-80, 80) if single else (-700, 700)), COUNT) * 10 ** random.uniform(-6, 0, COUNT)
            found[:4] = [0.0, -0.0, 1.0, -1.0]
        case "positive":
            found = np.where(random.random(COUNT) < 0.5, wide, 1 + 10 ** random.uniform(-6, 0, COUNT) * signs * 0.5)
            found[:2] = [1.0, 0.25]
        case _:
            found = signs * 10.0 ** random.uniform(-3, 6, COUNT)
    return found.astype(dtype)


#: The functions of NumPy.
NUMPY: dict[str, Callable[..., Any]] = {
    **{name: by_numpy(name) for name in FUNCTIONS_OF_ONE},
    "atan2": np.arctan2, "pow": np.power, "round": np.rint, "mod": np.mod, "floordiv": np.floor_divide,
}  # fmt: skip


def exact(name: str, *given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The function's values to 53 or more binary digits, of f64 to 64 or more."""
    assert np.finfo(np.longdouble).nmant >= 63
    function = NUMPY.get(name) or getattr(np, name)
    # Of far angles long doubles have few digits.
    wide = np.float64 if UNARY.get(name) == "angle" and given[0].dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        found: np.ndarray[Any, Any] = function(*[one.astype(wide) for one in given[: 1 + (name in BINARY)]])
    return found


def units(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    """How many units in the last place numbers differ at most from the exact ones."""
    assert (np.isnan(found) == np.isnan(wanted)).all()
    rounded = wanted.astype(found.dtype)
    same = (found == rounded) | np.isnan(found)
    with np.errstate(invalid="ignore"):
        apart = np.abs(found.astype(np.longdouble) - wanted) / np.spacing(np.abs(rounded))
    return float(np.where(same, 0, apart).max())


@pytest.mark.parametrize("fast_math", [True, False], ids=["fast", "strict"])
@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=["f32", "f64"])
def test_functions_are_as_exact_as_machine_code_is(dtype: Any, fast_math: bool) -> None:
    ti.init(fast_math=fast_math, default_fp=dtype, num_threads=1)
    real = np.float32 if dtype is ti.f32 else np.float64
    random = np.random.default_rng(5)
    names = [*UNARY, *BINARY]
    x = ti.field(dtype, shape=(len(names), COUNT))
    y = ti.field(dtype, shape=(len(names), COUNT))
    z = ti.field(dtype, shape=(len(names), COUNT))
    sorts = [*UNARY.values(), "any", "positive", "any", "any"]
    first = np.stack([table(sort, real, random) for sort in sorts])
    second = np.stack([table("any", real, random) for _ in names])
    power = names.index("pow")
    first[power] = 10 ** random.uniform(-3, 3, COUNT)
    second[power] = random.uniform(-9, 9, COUNT)
    x.from_numpy(first.astype(real))
    z.from_numpy(second.astype(real))
    functions = [getattr(ti, name) for name in UNARY]

    @ti.kernel
    def run():
        for k in range(COUNT):
            for f in ti.static(range(len(UNARY))):
                y[f, k] = functions[f](x[f, k])
            y[len(UNARY), k] = ti.atan2(x[len(UNARY), k], z[len(UNARY), k])
            y[len(UNARY) + 1, k] = x[len(UNARY) + 1, k] ** z[len(UNARY) + 1, k]
            y[len(UNARY) + 2, k] = x[len(UNARY) + 2, k] % z[len(UNARY) + 2, k]
            y[len(UNARY) + 3, k] = x[len(UNARY) + 3, k] // z[len(UNARY) + 3, k]

    def step():
        run()

    made = portable([("step", step, ())], {"y": y})
    assert made.refused == {}
    _, answer = played(made.encode(), ["step"], ["read", "y"])
    found = numbers(answer, y.to_numpy())
    values = [exact(name, *rows) for name, *rows in zip(names, x.to_numpy(), z.to_numpy(), strict=True)]
    errors = {name: units(found[k], values[k]) for k, name in enumerate(names)}
    # What is rounded once, as a large quotient is before its fraction goes, is half a unit off at most.
    most = {name: PRIMITIVES[name].ulps or 0.5 for name in names}
    assert {name: error for name, error in errors.items() if error > most[name]} == {}


INTEGERS = [ti.i8, ti.i16, ti.i32, ti.i64, ti.u8, ti.u16, ti.u32, ti.u64]


def test_integers_halves_and_random_numbers_are_the_same() -> None:
    """Bit for bit, with what does not fit and what is divided by zero."""
    ti.init(num_threads=1, random_seed=3)
    count, random = 64, np.random.default_rng(7)
    fields: dict[str, Any] = {}
    for t in INTEGERS:
        bits = int(t.name[1:])
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t.name[0] == "i" else (0, (1 << bits) - 1)
        kind = np.dtype(f"{'' if t.name[0] == 'i' else 'u'}int{bits}")
        for name in ("a", "b"):
            field = fields[f"{t.name} {name}"] = ti.field(t, shape=count)
            chosen = random.integers(low, high, count, kind, endpoint=True)
            chosen[:6] = [low, high, 0, 1, low, 3]
            field.from_numpy(chosen if name == "a" else np.where(random.random(count) < 0.4, chosen % 7, chosen[::-1]))
        fields[f"{t.name} out"] = ti.field(t, shape=(13, count))
    half, numbers_out = ti.field(ti.f16, shape=(6, count)), ti.field(ti.f64, shape=(4, count))
    floats = ti.field(ti.f64, shape=count)
    floats.from_numpy((random.normal(size=count) * 10.0 ** random.uniform(-9, 22, count)).astype(np.float64))
    fields |= {"half": half, "numbers": numbers_out, "floats": floats}
    for t in INTEGERS:
        fields[f"{t.name} casts"] = ti.field(t, shape=count)
    a, b, out, casts = ([fields[f"{t.name} {name}"] for t in INTEGERS] for name in ("a", "b", "out", "casts"))

    @ti.kernel
    def whole():
        for k in range(count):
            for t in ti.static(range(len(INTEGERS))):
                x, y = a[t][k], b[t][k]
                out[t][0, k] = x + y
                out[t][1, k] = x - y
                out[t][2, k] = x * y
                out[t][3, k] = ti.cast(0, INTEGERS[t]) if y == 0 else x // y
                out[t][4, k] = ti.cast(0, INTEGERS[t]) if y == 0 else x % y
                out[t][5, k] = x & y
                out[t][6, k] = x ^ y
                out[t][7, k] = x << (y & 7)
                out[t][8, k] = x >> (y & 7)
                out[t][9, k] = ti.max(x, y)
                out[t][10, k] = ti.min(x, y)
                out[t][11, k] = x ** (y & 3)
                out[t][12, k] = ~x
                casts[t][k] = ti.cast(floats[k], INTEGERS[t])

    @ti.kernel
    def halves():
        for k in range(count):
            x, y = ti.cast(floats[k], ti.f16), ti.cast(a[2][k], ti.f16)
            half[0, k] = x
            half[1, k] = y
            half[2, k] = x * ti.cast(0.1, ti.f16)
            half[3, k] = half[4, k] + x
            half[4, k] = ti.cast(ti.cast(floats[k], ti.f32) * 1e-9, ti.f16)
            half[5, k] = ti.sqrt(ti.abs(half[4, k]))

    @ti.kernel
    def draws():
        for k in range(count):
            numbers_out[0, k] = ti.random(ti.f64)
            numbers_out[1, k] = ti.random(ti.f32)
            numbers_out[2, k] = ti.cast(a[3][k], ti.f64) + ti.cast(a[7][k], ti.f64)
            numbers_out[3, k] = ti.cast(ti.cast(a[7][k], ti.f32), ti.f64)

    def step():
        whole()
        halves()
        draws()

    made = portable([("step", step, ())], fields)
    assert made.refused == {}
    answers = played(made.encode(), ["step"], ["step"], *[["read", name] for name in fields])
    step()
    step()
    assert [answer.get("value", answer) for answer in answers[:2]] == [None, None]
    for (name, field), answer in zip(fields.items(), answers[2:], strict=True):
        wanted = field.to_numpy()
        assert numbers(answer, wanted).tobytes() == wanted.tobytes(), name
