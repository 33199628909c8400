"""What Python and NumPy compute of numbers in a plan (`lang/capture/planned.py`): each operation gives what the plain
call gives, bit for bit, at ordinary and at special values, and raises and warns as it does.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_plans import Space, bits
from tinote.lang.capture import planned
from tinote.lang.data.traced_derivatives import RULES

LIBRARY = """\
import numpy as np
import tinote as ti
ti.init(default_fp=ti.f64)
LINE = ti.types.ndarray(dtype=ti.f64, ndim=1)
total = ti.field(ti.f64, shape=(), needs_grad=True)

@ti.kernel
def first(v: LINE) -> ti.f64:
    total[None] += v[0]
    return v[0]

@ti.kernel
def second(v: LINE) -> ti.f64:
    return v[1]

def f(v, s):
    a = first(v)
    b = second(v)
    return {expression}

g = ti.ad.value_and_grad(f)
p = np.zeros(2)
"""
TINY, HUGE = 5e-324, sys.float_info.max
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, TINY, -TINY, 1e-200, HUGE, -HUGE, math.inf, -math.inf, math.nan)
#: At which plans are made.
USUAL = (0.3, 0.7)
EXPRESSIONS = [
    *(
        "a + b",
        "a - b",
        "a * b",
        "a / b",
        "a % b",
        "(a * a + b * b) ** 0.5",
        "-a",
        "+a",
        "abs(a)",
        "a ** 2",
        "a ** 3",
        "a ** -1",
    ),
    *("a ** 0", "2 ** a", "0.5 ** a", "1 / a", "a / 3", "a % 2", "7 // a + b", "a // b + b", "a * 0"),
    *("(a + b) * (a - b)", "a - a * b / (1 + b * b)", "np.power(a, 2)", "np.hypot(a, 3)", "np.divide(1, a)"),
    *("np.sin(a) * np.exp(-b)", "ti.sin(a)", "ti.exp(a)", "ti.sqrt(a)", "ti.log(a)", "ti.tanh(a)", "ti.atan2(a, b)"),
]
for _name, _rule in RULES.items():
    if isinstance(_function := getattr(np, _name, None), np.ufunc):
        _call = f"np.{_name}(a)" if _function.nin == 1 else f"np.{_name}(a, b)"
        EXPRESSIONS.append(_call if _rule.rule else f"{_call} + b")


def known(given: Any) -> Any:
    """Bits, where one NaN is like another."""
    if isinstance(given, tuple):
        return tuple(map(known, given))
    array = np.array(given)
    array[np.isnan(array)] = math.nan
    return type(given), bits(array)


class Call:
    """A derivative and what it is called with."""

    def __init__(self, expression: str) -> None:
        self.space = Space(__name__="planned_numbers")
        self.space.run(LIBRARY.format(expression=expression))

    def at(self, a: float, b: float) -> Any:
        """What a call gives or raises, warns and leaves."""
        self.space["p"][:] = a, b
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                given: Any = known(self.space["g"](self.space["p"], b))
            except Exception as error:
                given = type(error), error.args
        left = known(self.space["total"].to_numpy()), known(self.space["total"].grad.to_numpy())
        return given, [(one.category, str(one.message)) for one in warned], left


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    yield
    ti.reset()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_plan_computes_what_python_computes(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(expression, monkeypatch, planned_too=True)


@pytest.mark.parametrize(
    "expression", ["a ** b", "a ** 0.5", "np.sin(p)[0] * a", "max(a, b)", "np.add(a, b, p[:1])[0]"]
)
def test_what_may_be_something_else_in_another_call_is_not_planned(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(expression, monkeypatch, planned_too=False)


@pytest.mark.parametrize(
    "expression", ["a * s", "a + s", "s / a", "s * s * a / 3", "np.maximum(a, s)", "np.hypot(a, s)"]
)
def test_a_constant_of_the_call_is_a_number_of_the_plan(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare(expression, monkeypatch, planned_too=True)


@pytest.mark.parametrize("expression", ["a / s", "a ** s", "np.power(a, s)", "np.fmin(a, s)", "np.minimum(s, a)"])
def test_what_is_differentiated_otherwise_by_constants_is_not_planned(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(expression, monkeypatch, planned_too=False)


def compare(expression: str, monkeypatch: pytest.MonkeyPatch, *, planned_too: bool) -> None:
    """Calls with plans and without."""
    replayed: list[int] = []
    run = planned.MemoryPlan.run
    monkeypatch.setattr(planned.MemoryPlan, "run", lambda plan, args: replayed.append(1) or run(plan, args))
    values = list(
        itertools.product(SPECIAL, (SPECIAL if {"b", "s"} & set(re.findall(r"\b\w\b", expression)) else (1.5,)))
    )

    def follow() -> list[Any]:
        call = Call(expression)
        return [call.at(*USUAL) for _ in range(5)] + [call.at(*one) for one in values]

    by_plan = follow()
    assert len(replayed) == (len(values) + 1 if planned_too else 0)
    monkeypatch.setattr(planned, "PLAIN_CALLS", sys.maxsize)
    plain = follow()
    for at, one, other in zip([USUAL] * 5 + values, by_plan, plain, strict=True):
        assert one == other, (expression, at)
