"""What is a number where one is passed or stored: the same for arguments, members, elements and components. What Python
or NumPy would read as a number, such as text, bytes and dates, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError, FieldError, KernelArgumentError

pytestmark = pytest.mark.optimised

NO_NUMBERS = [
    b"1",
    bytearray(b"1"),
    memoryview(b"1"),
    "1",
    np.str_("1"),
    np.bytes_(b"1"),
    1j,
    np.datetime64("2020"),
    np.timedelta64(3, "s"),
    object(),
    {},
    np.array(["1"]),
]

Pair = ti.types.struct(first=ti.f32, both=ti.types.vector(2, ti.f32), count=ti.i32)


@ti.kernel
def number(a: ti.f32) -> ti.f32:
    return a


@ti.kernel
def integer(a: ti.i32) -> ti.i32:
    return a


@ti.kernel
def vector(a: ti.types.vector(2, ti.f32)) -> ti.f32:
    return a[0]


@ti.kernel
def pair(a: Pair) -> ti.f32:
    return a.first


def set_item(holder: Any, key: Any, value: Any) -> Any:
    holder[key] = value
    return holder[key]


def set_member(holder: Any, name: str, value: Any) -> Any:
    setattr(holder, name, value)
    return getattr(holder, name)


def uses() -> dict[str, Callable[[Any], Any]]:
    """Each gives back the number that it was given."""
    x, n = ti.field(ti.f32, 2), ti.field(ti.i32, 2)
    v, s = ti.Vector.field(2, ti.f32, 2), Pair.field(shape=2)
    a, b = ti.ndarray(ti.f32, 2), ti.Vector.ndarray(2, ti.f32, 2)
    two = ti.types.vector(2, ti.f32)
    return {
        "argument": number,
        "integer argument": integer,
        "vector argument": lambda value: vector([value, value]),
        "vector argument, a Vector": lambda value: vector(ti.Vector([value, value])),
        "struct argument": lambda value: pair({"first": value, "both": [0.0, 0.0], "count": 0}),
        "member of a struct": lambda value: Pair(first=value).first,
        "integer member of a struct": lambda value: Pair(count=value).count,
        "vector in a struct": lambda value: Pair(both=[value, value]).both[0],
        "assigned member": lambda value: set_member(Pair(), "first", value),
        "untyped struct": lambda value: ti.Struct(first=value).first,
        "element": lambda value: set_item(x, 0, value),
        "integer element": lambda value: set_item(n, 0, value),
        "vector element": lambda value: set_item(v, 0, [value, value])[0],
        "component of an element": lambda value: set_item(v[0], 1, value),
        "struct element": lambda value: set_item(s, 0, {"first": value, "both": [0.0, 0.0], "count": 0}).first,
        "member of an element": lambda value: set_member(s[0], "first", value),
        "element of a member": lambda value: set_item(s.first, 0, value),
        "element of an array": lambda value: set_item(a, 0, value),
        "vector in an array": lambda value: set_item(b, 0, [value, value])[0],
        "fill": lambda value: [x.fill(value), x[1]][1],
        "component of a vector": lambda value: set_item(ti.Vector([1.0, 2.0]), 0, value),
        "vector type": lambda value: two(value, value)[1],
        "untyped vector": lambda value: ti.Vector([value, 1.0])[0],
        "seed of forward mode": lambda value: ti.ad.jvp(number, argnums=0)(value, 1.0)[1],
        "seeds of forward mode": lambda value: jacobian_product([value, value]),
    }


def jacobian_product(seed: Any) -> Any:
    """The product of [2, 1] with a seed [a, a], a third of it."""
    p, q = ti.field(ti.f32, 2, needs_dual=True), ti.field(ti.f32, (), needs_dual=True)

    @ti.kernel
    def add():
        q[None] = 2 * p[0] + p[1]

    with ti.ad.FwdMode(loss=q, param=p, seed=seed):
        add()
    return q.dual[None] / 3


@pytest.fixture
def every_use() -> dict[str, Callable[[Any], Any]]:
    ti.init(arch=ti.cpu)
    return uses()


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: f"{type(value).__name__}")
def test_what_is_no_number_is_refused(every_use: dict[str, Callable[[Any], Any]], value: Any) -> None:
    taken = []
    for name, use in every_use.items():
        try:
            taken.append((name, use(value)))
        except (DifferentiationError, FieldError, KernelArgumentError):
            continue
    assert not taken


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3), True], ids=repr)
def test_numbers_are_taken(every_use: dict[str, Callable[[Any], Any]], value: Any) -> None:
    assert {name: float(use(value)) for name, use in every_use.items()} == dict.fromkeys(every_use, float(value))


@pytest.mark.parametrize("value", [1.5, np.float16(1.5), np.float64(1.5), np.array(1.5)], ids=repr)
def test_fractions_are_taken_where_floats_are(every_use: dict[str, Callable[[Any], Any]], value: Any) -> None:
    chosen = {name: use for name, use in every_use.items() if "integer" not in name}
    assert {name: float(use(value)) for name, use in chosen.items()} == dict.fromkeys(chosen, 1.5)


@pytest.mark.parametrize("value", [Decimal("1.5"), Fraction(3, 2)])
def test_other_kinds_of_numbers_are_taken_for_one_number(
    every_use: dict[str, Callable[[Any], Any]], value: Any
) -> None:
    for name in ("argument", "element", "element of an array", "component of a vector", "vector type"):
        assert every_use[name](value) == 1.5, name


@ti.kernel
def truth(a: ti.u1) -> ti.i32:
    return ti.i32(a)


@pytest.mark.parametrize("value", [*NO_NUMBERS, None, [], [1.0], ...], ids=lambda value: type(value).__name__)
def test_truth_values_are_numbers(value: Any) -> None:
    ti.init(arch=ti.cpu)
    assert [truth(one) for one in (True, False, 1, 0, 2, 0.5, np.True_, np.int8(3), np.array(0))] == [
        *(1, 0, 1, 0, 1, 1, 1, 1, 0),
    ]
    with pytest.raises(KernelArgumentError, match=r"'a' .*number of type u1"):
        truth(value)


def test_the_message_names_the_argument(every_use: dict[str, Callable[[Any], Any]]) -> None:
    with pytest.raises(KernelArgumentError, match=r"'a' .*number of type f32") as caught:
        every_use["argument"](b"1")
    assert caught.value.span.file == __file__
