"""One derivative rule in every mode: each primitive in kernels, on `arch=ti.python` and on numbers in Python, by
reverse and forward mode, at ordinary points, ties, zeros and infinities.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.primitive_functions import FUNCTIONS_OF_ONE
from tinote.ir import primitives as p
from tinote.ir.primitives import PRIMITIVES, NoDerivative

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda a: -a,
    "abs": ti.abs,
    **FUNCTIONS_OF_ONE,
    "floor": ti.floor,
    "ceil": ti.ceil,
    "round": ti.round,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": ti.div,
    "raw_div": ti.raw_div,
    "floordiv": ti.floordiv,
    "mod": ti.mod,
    "raw_mod": ti.raw_mod,
    "min": ti.min,
    "max": ti.max,
    "pow": ti.pow,
    "atan2": ti.atan2,
}
#: What is composed of them, and has a rule of its own, or one that asks what the operand is.
COMPOSED: dict[str, Callable[..., Any]] = {
    "root of a square": lambda a: ti.sqrt(a * a),
    "root of a power": lambda a: ti.sqrt(ti.pow(a, 2)),
    "root of a sum of squares": lambda a, b: ti.sqrt(a * a + ti.pow(b, 2)),
    "inner kink": lambda a: ti.sqrt(ti.abs(a)),
    "ramp": lambda a: ti.max(a, 0.0),
    "infinite slope at a ramp": lambda a: ti.sqrt(ti.max(a, 0.0)),
    "cube": lambda a: ti.pow(a, 3),
    "reciprocal": lambda a: ti.div(1.0, a),
    "other power": lambda a: ti.pow(a, 2.5),
    "exponential": lambda a: ti.pow(2.0, a),
    "third": lambda a: a / 3.0,
    "quotient of a number": lambda a: ti.mod(a, 0.75),
    "exp2": lambda a: ti.exp2(a),
    "log10": lambda a: ti.log10(a),
    "atan": lambda a: ti.atan(a),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {**UNARY, **BINARY, **COMPOSED}
STEPS = ("floor", "ceil", "round", "floordiv")
POINTS = [0.0, -0.0, 1.0, -1.0, 0.75, -2.5, 3.0, math.inf, -math.inf, math.nan, 1e-200, -1e200, 1e-320]


def operands_of(name: str) -> int:
    return FUNCTIONS[name].__code__.co_argcount if name in COMPOSED else 2 if name in BINARY else 1


def points_of(name: str) -> np.ndarray:
    points = np.array(list(itertools.product(POINTS, repeat=operands_of(name))))
    if name in COMPOSED:
        # A derivative that is zero ends at what is infinite or NaN where numbers are concerned; in kernels only where
        # the value may not count.
        points = points[np.isfinite(points).all(1)]
    if name == "rsqrt":  # numbers compose it of others, which lose the sign of a zero
        points = np.where(points == 0, 0.0, points)
    return points


def in_kernels(name: str, arch: Any, *, forward: bool) -> np.ndarray:
    ti.init(arch=arch, default_fp=ti.f64)
    points, f = points_of(name), FUNCTIONS[name]
    given = [ti.field(ti.f64, len(points), needs_grad=True) for _ in points[0]]
    with_dual = [ti.field(ti.f64, len(points), needs_dual=True) for _ in points[0]]
    y = ti.field(ti.f64, len(points), needs_grad=True, needs_dual=True)
    for field, values in zip([*given, *with_dual], [*points.T, *points.T], strict=True):
        field.from_numpy(values)

    if len(given) == 1:

        @ti.kernel
        def apply(a: ti.template(), b: ti.template()):
            for i in y:
                y[i] = f(a[i])

    else:

        @ti.kernel
        def apply(a: ti.template(), b: ti.template()):
            for i in y:
                y[i] = f(a[i], b[i])

    if not forward:
        y.grad.fill(1.0)
        apply(given[0], given[-1])
        apply.grad(given[0], given[-1])
        return np.stack([field.grad.to_numpy() for field in given], 1)
    found: list[np.ndarray] = []
    for k, field in enumerate(with_dual):
        active = [*given[:k], field, *given[k + 1 :]]
        with ti.ad.FwdMode(loss=y, param=field, seed=np.ones(len(points))):
            apply(active[0], active[-1])
        found.append(y.dual.to_numpy())
    return np.stack(found, 1)


def on_numbers_under_a_tape(name: str) -> np.ndarray:
    ti.init(arch=ti.python, default_fp=ti.f64)
    points, f = points_of(name), FUNCTIONS[name]
    x = ti.field(ti.f64, points.shape[1], needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    found: list[np.ndarray] = []
    for point in points:
        x.from_numpy(point)
        with ti.ad.Tape(loss):
            loss[None] = f(*[x[k] for k in range(len(point))])
        found.append(x.grad.to_numpy())
    return np.stack(found)


def on_numbers_in_forward_mode(name: str) -> np.ndarray:
    ti.init(arch=ti.python, default_fp=ti.f64)
    points, f = points_of(name), FUNCTIONS[name]
    x, loss = ti.field(ti.f64, (), needs_dual=True), ti.field(ti.f64, (), needs_dual=True)
    found = np.zeros_like(points)
    for i, point in enumerate(points):
        for k, value in enumerate(point):
            x[None] = value
            with ti.ad.FwdMode(loss=loss, param=x):
                loss[None] = f(*[x[None] if j == k else one for j, one in enumerate(point.tolist())])
            found[i, k] = loss.dual[None]
    return found


def of_functions(name: str, derivative: str) -> np.ndarray:
    """By functions of numbers, in one mode or one inside of the other."""
    ti.init(arch=ti.python, default_fp=ti.f64)
    points, f = points_of(name), FUNCTIONS[name]
    found = np.zeros_like(points)
    for i, point in enumerate(points.tolist()):
        for k in range(len(point)):

            def along(a: float, point: list[float] = point, k: int = k) -> Any:
                return f(*point[:k], a, *point[k + 1 :])

            if derivative == "grad":
                found[i, k] = ti.ad.grad(along)(point[k])
            else:
                found[i, k] = ti.ad.jvp(along)(1.0, point[k])[1]
    return found


WAYS: dict[str, Callable[[str], np.ndarray]] = {
    "kernels, forward": lambda name: in_kernels(name, ti.cpu, forward=True),
    "Python kernels, reverse": lambda name: in_kernels(name, ti.python, forward=False),
    "Python kernels, forward": lambda name: in_kernels(name, ti.python, forward=True),
    "numbers under a tape": on_numbers_under_a_tape,
    "numbers in forward mode": on_numbers_in_forward_mode,
    "functions, reverse": lambda name: of_functions(name, "grad"),
    "functions, forward": lambda name: of_functions(name, "jvp"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_mode_has_the_same_derivative(name: str) -> None:
    wanted = in_kernels(name, ti.cpu, forward=False)
    for way, derivative in WAYS.items():
        if name in STEPS and way.startswith("functions"):
            assert not wanted.any()
            continue  # what is constant leads nowhere, and is refused there
        np.testing.assert_allclose(derivative(name), wanted, rtol=1e-11, atol=1e-322, err_msg=f"{name}, {way}")


def test_every_primitive_that_numbers_have_is_among_them() -> None:
    #: what computes no number of numbers, and what the language has no function for
    others = {p.select, p.surrogate, p.in_reverse, p.strong_mul, p.cast, p.pack}
    known = {prim for prim in PRIMITIVES.values() if not isinstance(prim.derivative, NoDerivative)} - others
    assert {prim.name for prim in known} <= {*UNARY, *BINARY}


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=repr)
def test_of_several_equal_numbers_the_last_has_the_derivative(arch: Any) -> None:
    """Of numbers, and of the components of vectors; in kernels and in Python."""
    ti.init(arch=arch, default_fp=ti.f64)
    x, loss = (ti.field(ti.f64, shape, needs_grad=True) for shape in (3, ()))
    x.fill(1.5)

    def numbers(f: Callable[..., Any]) -> Any:
        @ti.kernel
        def k():
            loss[None] = f(x[0], x[1], x[2])

        return k, lambda: f(x[0], x[1], x[2])

    def components(f: Callable[..., Any]) -> Any:
        @ti.kernel
        def k():
            loss[None] = f(ti.Vector([x[0], x[1], x[2]]))

        return k, lambda: f(ti.Vector([x[0], x[1], x[2]]))

    def vectors(f: Callable[..., Any]) -> Any:
        @ti.kernel
        def k():
            loss[None] = f(ti.Vector([x[0], x[1]]), ti.Vector([x[0], x[2]]))[1]

        return k, lambda: f(ti.Vector([x[0], x[1]]), ti.Vector([x[0], x[2]]))[1]

    ways = [make(f) for make in (numbers, components, vectors) for f in (ti.min, ti.max)]
    for kernel, python in [*ways, components(lambda v: v.max()), components(lambda v: v.min())]:
        with ti.ad.Tape(loss):
            kernel()
        assert x.grad.to_numpy().tolist() == [0, 0, 1]
        with ti.ad.Tape(loss):
            loss[None] = python()
        assert x.grad.to_numpy().tolist() == [0, 0, 1]


def derivative_at(name: str, *point: float) -> list[float]:
    at = [i for i, one in enumerate(points_of(name)) if np.array_equal(one, point, equal_nan=True)]
    assert at
    return in_kernels(name, ti.cpu, forward=False)[at[0]].tolist()


@pytest.mark.parametrize(
    "name, point, wanted",
    [
        ("max", (1.0, 1.0), [0, 1]),
        ("min", (1.0, 1.0), [0, 1]),
        ("max", (1.0, math.nan), [1, 0]),
        ("min", (math.nan, 1.0), [0, 1]),
        ("max", (math.inf, math.inf), [0, 1]),
        ("abs", (0.0,), [0]),
        ("abs", (math.nan,), [math.nan]),
        ("ramp", (0.0,), [0]),
        ("root of a square", (0.0,), [0]),
        ("root of a sum of squares", (0.0, 0.0), [0, 0]),
        ("sqrt", (0.0,), [math.inf]),
        ("log", (-1.0,), [math.nan]),
        ("log10", (-2.5,), [math.nan]),
        ("pow", (-1.0, 0.75), [math.nan, math.nan]),
        ("pow", (-1.0, 3.0), [3, 0]),
        ("pow", (0.0, 0.0), [0, 0]),
        ("mod", (1.0, 0.0), [math.nan, math.nan]),
        ("atan2", (1e-200, 1e-200), [5e199, -5e199]),
        ("atan2", (-1e200, -1e200), [-5e-201, 5e-201]),
        ("atan2", (0.0, 1.0), [1, 0]),
        ("atan2", (0.0, -1.0), [-1, 0]),
        ("atan2", (1.0, 0.0), [0, -1]),
        ("atan2", (1.0, math.inf), [0, 0]),
        ("atan2", (0.0, 0.0), [math.nan, math.nan]),
    ],
)
def test_what_the_rule_is(name: str, point: tuple[float, ...], wanted: list[float]) -> None:
    np.testing.assert_allclose(derivative_at(name, *point), wanted, rtol=1e-12)
