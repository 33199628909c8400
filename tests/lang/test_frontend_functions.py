"""Functions, effects and captures in the front end."""

from __future__ import annotations

import math

import pytest

from tests.lang.dialect import Constant, check, func, lowered, run, ti
from tests.lang.frontend_fields import N, bytes_, line, s0, total
from tinote.errors import KernelAssertionError
from tinote.ir.types import f32, f64, i32

dt = 0.5
GRAVITY = Constant([0.0, -9.8])
PARAMS = {"stiffness": 3.0}
TABLE = [1, 2, 4]


# functions


@func
def accumulate(target: ti.template(), amount):
    target += amount
    amount = 0


@func
def with_defaults(a, b=2, *, c: ti.template() = 3):
    return a * 100 + b * 10 + c


class Model:
    scale = 3

    def __init__(self) -> None:
        self.field = line

    @func
    def scaled(self, i):
        return self.field[i] * self.scale


MODEL = Model()


def calls() -> f64:
    s = 1.0
    step = 0.5
    accumulate(s, step)
    accumulate(total[None], step)
    return s + with_defaults(1) + with_defaults(1, c=9, b=8) * 1000 + step * 0.25 + MODEL.scaled(2) + total[None]


def test_functions():
    check(calls, 1.5 + 123 + 189000 + 0.125 + 9 + 0.5, fields=[line, total])


# effects


def printing(a: i32):
    w = ti.Vector([1, 2])
    print("a is", a, f"twice {a * 2}!", w, sep="|", end=".\n")
    print(f"{N=} {dt:.2f}")


def test_print():
    assert run(printing, 4).printed.startswith("a is|4|twice 8!|[1, 2].\nN=8 0.50\n")


def asserting(a: i32):
    assert a > 0, f"a is {a}, {{not}} positive"


def test_assert():
    run(asserting, 1)
    with pytest.raises(KernelAssertionError, match=r"a is -2, \{not\} positive"):
        run(asserting, -2)


def old_values() -> i32:
    before = ti.atomic_add(s0[None], 5)
    ti.atomic_sub(s0[None], 2)
    k = 3
    last = ti.atomic_min(k, 1)
    return before * 1000 + s0[None] * 10 + k + last


def test_atomics_return_the_old_value():
    check(old_values, 7000 + 100 + 1 + 3, fields=[s0])


def unsigned_difference():
    bytes_[0] -= 1.5
    bytes_[1] -= 1


def test_subtraction_converts_before_it_negates():
    bytes_.content = [5, 0]
    assert run(unsigned_difference, fields=[bytes_])[bytes_] == [4, 255]


def maths(a: f64) -> f64:
    return ti.sin(a) + ti.cos(a) * 2 + ti.exp(a) + ti.sqrt(a) + ti.atan2(a, 2.0) + ti.log(a) + math.tanh(a) + ti.sqrt(2)


def test_maths():
    a = 0.75
    expected = math.sin(a) + math.cos(a) * 2 + math.exp(a) + math.sqrt(a) + math.atan2(a, 2) + math.log(a)
    check(maths, pytest.approx(expected + math.tanh(a) + math.sqrt(2), rel=1e-15), a)


def helpers(a: f32, n: i32) -> f32:
    return (
        ti.select(a > 0, 1, 2.5)
        + ti.sign(a) * 10
        + abs(a) * 100
        + min(a, 1, n)
        + ti.clamp(n, 0, 3) * 1000
        + ti.popcnt(n)
    )


def test_helpers():
    check(helpers, 2.5 - 10 + 150 - 1.5 + 3000 + 3, -1.5, 7)


# what the driver asks about


def captured_constants() -> f32:
    f = GRAVITY * 2
    return f.y + GRAVITY[0] + PARAMS["stiffness"] + TABLE[1] + math.pi


def test_captured_constants():
    check(captured_constants, pytest.approx(-19.6 + 3 + 2 + math.pi, rel=1e-6))


def test_captures_notice_change():
    captures = lowered(captured_constants)[0].captures
    assert all(c.unchanged() for c in captures)
    PARAMS["stiffness"] = 4.0
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        PARAMS["stiffness"] = 3.0
    assert all(c.unchanged() for c in captures)
    globals()["GRAVITY"] = Constant([1.0, 2.0])
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        globals()["GRAVITY"] = next(c.value for c in captures if c.key == "GRAVITY")


def test_captures_reach_through_functions_and_attributes():
    captures = lowered(calls)[0].captures
    MODEL.scale = 4
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        del MODEL.scale
    assert all(c.unchanged() for c in captures)


def test_closures_are_captured():
    factor = 3

    def kernel(a: i32) -> i32:
        return a * factor

    found = lowered(kernel, 1)[0]
    check(kernel, 12, 4)
    factor = 5
    assert not all(c.unchanged() for c in found.captures)
    check(kernel, 20, 4)


@func
def clamped(a, low=0, high=10):
    if a < low:
        a = low
    while a > high:
        a -= 1
    return a


@func
def chosen(flag: ti.template(), a):
    if ti.static(flag):
        return a + 1
    else:
        return line


@func
def divided(a, b):
    if b == 0:
        return False, 0
    return True, a / b


def functions_with_state(a: i32) -> f64:
    ok, q = divided(a, 4)
    bad, _ = divided(a, a - a)
    twice = chosen(False, 1)[1]
    return clamped(a) * 1000 + clamped(-a) * 100 + ok * 10 + bad + q + chosen(True, 5) + twice


def test_functions_assign_their_parameters_and_return_tuples():
    check(functions_with_state, 10 * 1000 + 0 + 10 + 0 + 3.0 + 6 + 2.0, 12, fields=[line])


def static_lookup() -> f32:
    s = 0.0
    for k, weight in ti.static(enumerate(WEIGHTS)):
        s += weight[1] * k + getattr(MODEL, "scale")  # noqa: B009
    return s


WEIGHTS = [[1, 2.0], [3, 4.0]]


def test_nested_lists_are_captured_by_content():
    check(static_lookup, 10.0)
    captures = lowered(static_lookup)[0].captures
    assert all(c.unchanged() for c in captures)
    WEIGHTS[1][1] = 5.0
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        WEIGHTS[1][1] = 4.0
    assert all(c.unchanged() for c in captures)
