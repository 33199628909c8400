"""Second derivatives of xʸ, in every order and mode, also where a first one is zero along a line."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def in_a_kernel() -> Any:
    @ti.kernel
    def power(x: ti.f64, y: ti.f64) -> ti.f64:
        return x**y

    return power


def of_numbers() -> Any:
    return lambda x, y: x**y


def reverse(f: Any, by: int) -> Callable[[float, float], Any]:
    return ti.ad.grad(f, argnums=by)


def forward(f: Any, by: int) -> Callable[[float, float], Any]:
    return lambda x, y: ti.ad.jvp(f, argnums=by)(1.0, x, y)[1]


def right(x: float, y: float, first: int, second: int) -> float:
    if first != second:
        return x ** (y - 1) * (1 + y * math.log(x))
    return y * (y - 1) * x ** (y - 2) if first == 0 else x**y * math.log(x) ** 2


@pytest.mark.parametrize("outer", [reverse, forward])
@pytest.mark.parametrize("inner", [reverse, forward])
@pytest.mark.parametrize("make", [in_a_kernel, of_numbers])
def test_second_derivatives_of_powers(make: Any, inner: Any, outer: Any) -> None:
    power = make()
    for first, second in ((0, 0), (0, 1), (1, 0), (1, 1)):
        derivative = outer(inner(power, first), second)
        for x in (0.5, 1.0, 23.0):
            for y in (-1.0, 0.0, 0.5, 1.0, 2.0):
                if make is of_numbers and inner is forward and (first, second, y) == (0, 0, 0.0):
                    continue  # the number 0, which is refused: no input leads to it
                found = derivative(x, y)
                assert found == pytest.approx(right(x, y, first, second), rel=1e-12), (x, y, first, second)


@pytest.mark.parametrize("make", [in_a_kernel, of_numbers])
def test_the_slope_of_a_constant_power_is_zero_everywhere(make: Any) -> None:
    power = make()
    for x in (-2.0, 0.0, math.inf, math.nan):
        assert ti.ad.grad(power)(x, 0.0) == 0.0 and forward(power, 0)(x, 0.0) == 0.0, x
