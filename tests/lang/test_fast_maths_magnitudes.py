"""Fast maths makes no NaN and no infinity of finite numbers, whatever their magnitudes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.test_python_agrees import run

pytestmark = pytest.mark.optimised

N = 64


def test_a_product_that_comes_back() -> None:
    ti.init()

    @ti.kernel
    def program() -> ti.f32:
        r = 1.0
        for _ in range(1):
            for _i in range(20):
                r *= 0.001
            for _i in range(14):
                r *= 1000.0
        return r

    @ti.kernel
    def unrolled() -> ti.f32:
        r = 1.0
        for _ in ti.static(range(9)):
            r *= 0.001
        for _ in ti.static(range(9)):
            r *= 1000.0
        return r

    assert program() == 0.0
    assert unrolled() == pytest.approx(1.0, rel=1e-4)


def test_elements_that_are_multiplied_and_come_back() -> None:
    ti.init(num_threads=1)
    x, y = ti.field(ti.f32, 4096), ti.field(ti.f32, ())
    x.from_numpy(np.where(np.arange(4096) % 2, 1e-30, 1e30).astype(np.float32))

    @ti.kernel
    def serial() -> ti.f32:
        r = 1.0
        y[None] = 1.0
        for _ in range(1):
            for i in range(4096):
                r *= x[i]
                y[None] *= x[i]
        return r

    assert serial() == pytest.approx(1.0, rel=1e-2)
    assert y[None] == pytest.approx(1.0, rel=1e-2)


def test_reciprocal_roots_of_every_magnitude() -> None:
    ti.init()
    x, y, z = (ti.field(ti.f32, 1024) for _ in range(3))
    values = (10.0 ** np.linspace(-44.0, 38.5, 1024)).astype(np.float32)
    x.from_numpy(values)

    @ti.kernel
    def roots():
        for i in x:
            y[i] = ti.rsqrt(x[i])
            z[i] = 3.0 / ti.sqrt(x[i])

    roots()
    exact = 1.0 / np.sqrt(values.astype(np.float64))
    assert np.allclose(y.to_numpy(), exact, rtol=1e-6)
    assert np.allclose(z.to_numpy(), 3.0 * exact, rtol=1e-6)


@pytest.mark.parametrize("dtype", [ti.f32, ti.f64], ids=["f32", "f64"])
def test_roots_that_are_compared(dtype: Any) -> None:
    """With what is below, above, and no number; of squares, too, which are not negative."""
    ti.init(default_fp=dtype)
    type_of = np.float32 if dtype is ti.f32 else np.float64
    special = [-np.inf, -4.0, -0.25, -1e-30, -0.0, 0.0, 1e-40, 1e-30, np.inf, np.nan, 1e19, 3e38]
    values = np.array([*special, *np.linspace(0.0, 1.0, 21), 4.0, 0.25], type_of)
    x, y = ti.field(dtype, len(values)), ti.field(ti.i32, (8, len(values)))
    x.from_numpy(values)

    @ti.kernel
    def compare():
        for i in x:
            y[0, i] = ti.sqrt(x[i]) < 0.5
            y[1, i] = ti.sqrt(x[i]) <= 0.5
            y[2, i] = ti.sqrt(x[i]) > 0.5
            y[3, i] = ti.sqrt(x[i]) >= 0.5
            y[4, i] = ti.sqrt(x[i] * x[i]) < 0.5
            y[5, i] = ti.sqrt(x[i] * x[i]) <= 0.5
            y[6, i] = ti.Vector([x[i], 0.0]).norm() > 1e-25
            y[7, i] = ti.sqrt(x[i]) < 1e30

    compare()
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        root, size = np.sqrt(values), np.sqrt(values * values)
        last = np.sqrt(values) < type_of(1e30)
    expected = [root < 0.5, root <= 0.5, root > 0.5, root >= 0.5, size < 0.5, size <= 0.5, size > 1e-25, last]
    np.testing.assert_array_equal(y.to_numpy(), np.array(expected))


def literal(source: random.Random, largest: float) -> str:
    return repr(source.choice([-1, 1, 1]) * float(np.float32(10.0 ** source.uniform(-largest, largest))))


def positive(source: random.Random) -> str:
    return repr(float(np.float32(10.0 ** source.uniform(-30, 20))))


def small(source: random.Random) -> str:
    return repr(float(np.float32(10.0 ** source.uniform(-35, -20))))


def program(source: random.Random, sums: bool) -> str:
    """Statements on `r` (and `s`), each with an operand of any magnitude."""
    lines: list[str] = []
    for _ in range(source.randint(2, 9)):
        operand = source.choice([literal(source, 20), literal(source, 20), "a[i]", "b[i]", "(a[i] * b[i])", "s"])
        sign = source.choice("**/" if not sums else "*/+-")
        match source.randint(0, 15):
            case 0:
                lines.append(f"r = {operand} {sign} r")
            case 1:
                count = source.randint(2, 5)
                how = source.choice(["range", "STATIC"])
                lines.append(f"for _{len(lines)} in {how}({count}):\n    r = r {sign} {operand}")
            case 2:
                lines.append(f"s = r {sign} {operand}")
            case 3:
                lines.append(f"s = SQRT({operand} * {operand} + {positive(source)})")
            case 4:
                divisor = source.choice(
                    ["SQRT(abs(s))", "s * s * s", f"(s * s + {positive(source)})", "s * SQRT(abs(s))"]
                )
                lines.append(f"r = r / ({divisor})")
            case 5:
                lines.append("r = r * s * s * s")
            case 6:
                lines.append(f"r, s = r / {operand}, s / {operand}")
            case 7:
                lines.append(f"d = {operand}\nr = (r / d) * (s / d) * ({literal(source, 20)} / d)")
            case 8:
                lines.append(f"s = SQRT(s * s + {positive(source)})\nr = (r / (s * s * s)) / ({operand} / s)")
            case 9:
                lines.append(f"s = 1.0 / SQRT({operand} * {operand} + {positive(source)})\nr = r * s * s")
            case 10:
                quotients = [f"({small(source)} * {by} / a[i])" for by in ("r", "s", "1.0")]
                lines.append(f"r = {quotients[0]} * {quotients[1]} / {quotients[2]}")
            case 11:
                lines.append(f"d = a[i]\nr, s = {small(source)} * r / d, {small(source)} * s / d")
            case 12:
                lines.append(f"r = r * {small(source)} * (b[i] * {literal(source, 20)}) * {literal(source, 20)}")
            case 13 if sums:
                plus = [source.choice("+-") for _ in range(3)]
                lines.append(f"r = {operand} * s {plus[0]} r {plus[1]} b[i] * {literal(source, 3)} {plus[2]} s")
            case _:
                lines.append(f"r = r {sign} {operand}")
    return "\n".join(lines)


@pytest.mark.parametrize("sums", [False, True])
def test_random_programs_stay_finite(sums: bool, random_programs: range) -> None:
    judged = 0
    seeds = random_programs[::3]
    for seed in seeds:
        wrong, elements = wrong_program(seed, sums)
        assert not wrong
        judged += elements
    assert judged > 16 * len(seeds)


def wrong_program(seed: int, sums: bool) -> tuple[str, int]:
    """What is wrong with the results of a random program, and how many of them were judged."""
    judged = 0
    source = random.Random(seed + 1000 * sums)
    text = program(source, sums)
    a = np.array([10.0 ** source.uniform(-40, 38) for _ in range(N)], np.float32)
    b = np.array([10.0 ** source.uniform(-20, 20) for _ in range(N)], np.float32)
    a[: N // 2] = [10.0 ** source.uniform(-3, 3) for _ in range(N // 2)]
    ti.init()
    fields: dict[str, Any] = {name: ti.field(ti.f32, N) for name in ("a", "b", "out")}
    fields["a"].from_numpy(a)
    fields["b"].from_numpy(b)
    body = "\n".join(_closed(line) for line in text.splitlines())
    indented = body.replace("\n", "\n        ")
    code = f"@ti.kernel\ndef k():\n    for i in a:\n        r, s = 1.0, 1.0\n        {indented}\n        out[i] = r\n"
    namespace = {**fields, "ti": ti, "__name__": "program"}
    run(code, namespace)
    namespace["k"]()
    found = fields["out"].to_numpy()
    for i in range(N):
        exact, tame = evaluate(text, a, b, i)
        if exact is None:
            continue
        judged += 1
        near = not tame or not abs(found[i] - exact.wide) > exact.error
        if not (np.isfinite(found[i]) and near):
            return f"seed {seed}, element {i}: {found[i]}, not {exact.wide} ± {exact.error:.2g}\n{body}", judged
    return "", judged


def _closed(line: str) -> str:
    line = line.replace("SQRT(", "ti.sqrt(")
    return line.replace("STATIC(", "ti.static(range(").replace("):", ")):") if "STATIC" in line else line


def _binary(name: str) -> Any:
    def apply(self: Watched, other: Any) -> Watched:
        right = other if isinstance(other, Watched) else Watched(other)
        terms = self.terms + right.terms if "add" in name or "sub" in name else 0.0
        wide = getattr(self.wide, name)(right.wide)
        return Watched(getattr(self.value, name)(right.value), terms, wide, _error(name, self, right))

    return apply


def _error(name: str, x: Watched, y: Watched) -> Any:
    """How far the errors of the operands move the result."""
    if "mul" in name:
        return abs(x.wide) * y.error + abs(y.wide) * x.error + x.error * y.error
    if "div" in name:
        x, y = (y, x) if "rtrue" in name else (x, y)
        least = abs(y.wide) - y.error
        return (x.error + abs(x.wide / y.wide) * y.error) / least if least > 0 else np.inf
    return x.error + y.error


class Watched:
    """An f32 that remembers whether a number on its way was not finite, and whether one lost digits.

    `terms`: of a sum, the sum of the absolute values of its terms, which fast maths takes to be finite. `wide`: the
    same computed where nothing underflows, which has to be finite as an f32, too: what IEEE arithmetic loses to
    underflow fast maths may keep. `error`: a bound of what rounding makes of it, in whatever order sums are added.
    """

    finite, tame = True, True

    def __init__(self, value: Any, terms: float = 0.0, wide: Any = None, error: Any = 0.0) -> None:
        self.value = np.float32(value)
        self.wide = np.longdouble(self.value if wide is None else wide)
        self.terms = terms or abs(float(self.value))
        self.error = np.longdouble(error) + (0.0 if wide is None else self.terms * 2.0**-22)
        sizes = (self.value, np.float32(self.terms), np.float32(self.wide))
        Watched.finite &= all(bool(np.isfinite(size)) for size in sizes)
        Watched.tame &= bool(abs(self.value) >= 2.0**-126)

    def __abs__(self) -> Watched:
        return Watched(abs(self.value), 0.0, abs(self.wide), self.error)

    def root(self) -> Watched:
        wide = np.sqrt(self.wide)
        return Watched(np.sqrt(self.value), 0.0, wide, self.error / wide if wide > 0 else np.inf)

    __mul__, __truediv__, __add__, __sub__ = (_binary(f"__{n}__") for n in ("mul", "truediv", "add", "sub"))
    __rmul__, __rtruediv__, __radd__, __rsub__ = (_binary(f"__r{n}__") for n in ("mul", "truediv", "add", "sub"))


def evaluate(text: str, a: Any, b: Any, i: int) -> tuple[Watched | None, bool]:
    """The result of IEEE arithmetic, None where a number on the way is not finite; and whether none is denormal."""
    Watched.finite = Watched.tame = True
    space: dict[str, Any] = {
        "a": {i: Watched(a[i])}, "b": {i: Watched(b[i])}, "i": i, "STATIC": range, "r": Watched(1.0), "s": Watched(1.0),
        "SQRT": lambda x: x.root() if isinstance(x, Watched) else Watched(x).root(), "abs": abs,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        exec(text, space)
    return (space["r"] if Watched.finite else None), Watched.tame
