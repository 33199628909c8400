"""What compiles and may surprise: the warning shows the line, what happens, and what to write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tinote as ti

x = ti.field(ti.i32, shape=2)
v = ti.Vector.field(2, ti.i32, shape=2)

FIRST = "a variable keeps the type of its first value: begin with "
DECLARED = "declare it with a float type, or write `int(…)`"


@pytest.fixture(autouse=True)
def fields() -> None:
    ti.init()
    globals().update(x=ti.field(ti.i32, shape=2), v=ti.Vector.field(2, ti.i32, shape=2))


@ti.kernel
def a_literal(a: ti.f32):
    s = 0
    s = 0.5
    x[0] = s


@ti.kernel
def a_number(a: ti.f32):
    s = 0
    s += a
    x[0] = s


@ti.kernel
def a_sum_of_all_iterations(a: ti.f32):
    s = 0
    for _ in range(3):
        s += a
    x[0] = s


@ti.kernel
def a_component(a: ti.f32):
    s = ti.Vector([0, 0])
    s[1] += a
    x[0] = s[1]


@ti.kernel
def a_vector_of_all_iterations(a: ti.f32):
    s = ti.Vector([0, 0])
    for _ in range(3):
        s += a
    x[0] = s[0]


@ti.kernel
def an_element(a: ti.f32):
    x[0] = a


@ti.kernel
def an_atomic_element(a: ti.f32):
    for _ in range(1):
        x[0] += a


@ti.kernel
def a_component_of_an_element(a: ti.f32):
    v[0][1] = a


@ti.kernel
def by_function(a: ti.f32):
    ti.atomic_max(x[0], a)


WARNED = {
    a_literal: ("`s` is an integer: the fraction of 0.5, which is stored here,", f"{FIRST}a float, `s = 0.0`"),
    a_number: ("`s` is an integer: the fraction of the f32 that is stored here", f"{FIRST}a float, `s = 0.0`"),
    a_sum_of_all_iterations: ("`s` is an integer", f"{FIRST}a float, `s = 0.0`"),
    a_component: ("`s[1]` is an integer", f"{FIRST}floats"),
    a_vector_of_all_iterations: ("`s` is an integer", f"{FIRST}floats"),
    an_element: ("`x[0]` is an integer", DECLARED),
    an_atomic_element: ("`x[0]` is an integer", DECLARED),
    a_component_of_an_element: ("`v[0][1]` is an integer", DECLARED),
    by_function: ("the target is an integer", DECLARED),
}


@pytest.mark.parametrize("kernel", WARNED, ids=lambda kernel: kernel.__name__)
def test_a_fraction_that_is_cut_off(kernel: Callable[[float], None]) -> None:
    message, hint = WARNED[kernel]
    with pytest.warns(UserWarning) as caught:
        kernel(1.75)
    (one,) = caught
    text, _, help = str(one.message).partition("\nhelp: ")
    assert text.startswith(message) and text.endswith("is cut off") and help == hint
    assert one.filename == __file__


def test_what_the_hints_say_is_silent() -> None:
    """A warning that is not expected is an error in these tests."""

    @ti.kernel
    def as_it_says(a: ti.f32) -> ti.f32:
        s = 0.0
        w = ti.Vector([0.0, 0.0])
        for _ in range(3):
            s += a
            w += a
        x[0] = int(a)
        return s + w[0]

    assert as_it_says(1.75) == 10.5 and x[0] == 1
