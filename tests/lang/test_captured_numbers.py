"""What a program may ask of a number: a captured step answers as the function does, or is refused at its line; a step
that is captured unasked answers in every call, whatever the recording of a call makes of the number.
"""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tinote as ti
from tinote.errors import CaptureError
from tinote.lang.capture import automatic
from tinote.lang.capture.automatic import AutomaticCapture

OF_BOTH = (
    "v", "v + 1", "v // 2", "v % 3", "-v", "abs(v)", "v ** 2", "divmod(v, 2)[1]", "v if v else 9", "not v", "v and 4",
    "v == 3", "1 < v < 4", "v in (1, 3)", "v is not None", "{1: 5, 3: 7}.get(v, 2)", "[1, 2, 3, 4][int(v) % 4]",
    "max([v, 2])", "sorted([v, 2, 0])[1]", "sum([v, v])", "round(v)", "int(v)", "float(v)", "bool(v)", "len(str(v))",
    "float(f'{v}')", "hash(v) % 7", "math.floor(v)", "math.sqrt(abs(v))", "np.abs(v)", "np.maximum(v, 2)",
    "np.array([v, v]).sum()", "ti.max(v, 2)", "v.real + v.imag", "v.conjugate()", "v.__add__(1)",
    "v.as_integer_ratio()[0]",
    "type(v) is float", "type(v) == int", "{int: 1.0, float: 2.0}[type(v)]", "len(type(v).__name__)",
    "v.__class__ is float", "list(map(type, [v])) == [float]", "isinstance(v, float)", "isinstance(v, int)",
    "isinstance(v, numbers.Real)", "isinstance(v, numbers.Integral)", "(lambda a=v: a)()",
    "next(k for k in range(99) if k > v)",
)  # fmt: skip
OF_FLOATS = ("v.is_integer()", "v.hex() > '0'", "math.isnan(v)", "v * 1e308 * 10", "np.floor(v)")
OF_INTEGERS = (
    "v << 2", "v >> 1", "v & 6", "v | 8", "v ^ 5", "~v", "1 << abs(v) % 5", "100 >> abs(v) % 5", "6 & v", "8 | v",
    "5 ^ v", "v & v", "True & v", "v & np.int64(3)", "pow(v, 2, 5)", "v.bit_length()", "v.bit_count()", "v.numerator",
    "v.denominator", "v.to_bytes(8, 'little', signed=True)[0]", "operator.index(v)", "range(abs(v) % 9)[-1:].start",
    "'abcd'[v % 4] > 'b'", "math.gcd(v, 6)", "len([0] * (v % 4))", "v * 2**31", "np.bitwise_and(v, 3)",
)  # fmt: skip
ASKED = [
    *[(kind, one) for kind in ("float", "int") for one in OF_BOTH],
    *[("float", one) for one in OF_FLOATS],
    *[("int", one) for one in OF_INTEGERS],
]
VALUES = (3, 3, 3, 3, 5, 1, 0, -3, 7, 2, 2)
SOURCE = """\
import math, numbers, operator
import numpy as np
import tinote as ti

total = ti.field(ti.f64, shape=())
held = ti.field(ti.{kind}, shape=())
number = {python}(3)

@ti.kernel
def add(by: ti.f64):
    total[None] += by

def of_a_field():
    v = held[None]
    add(1.0 * ({asked}))

def of_a_variable():
    v = number
    add(1.0 * ({asked}))
"""


def space_of(kind: str, asked: str) -> dict[str, Any]:
    text = SOURCE.format(kind={"float": "f64", "int": "i32"}[kind], python=kind, asked=asked)
    file = "captured_numbers.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    space: dict[str, Any] = {"__name__": "captured_numbers"}
    exec(compile(text, file, "exec"), space)
    return space


def totals(kind: str, asked: str, step: str, make: Callable[[Any], Any]) -> list[float]:
    """What the calls leave, each for another number."""
    space = space_of(kind, asked)
    called, found = make(space[step]), []
    for value in VALUES:
        space["held"][None] = space["number"] = (int if kind == "int" else float)(value)
        space["total"][None] = 0
        if isinstance(called, AutomaticCapture):
            called.renew()
        try:
            called()
        except CaptureError as error:
            assert error.span.line > 0
            if "out of date" not in error.message:
                raise
            called = make(space[step])
            called()
        found.append(space["total"][None])
    return found


@pytest.mark.parametrize("step", ["of_a_field", "of_a_variable"])
def test_what_is_asked_of_a_number(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ti.init(num_threads=1, default_fp=ti.f64)
    monkeypatch.setattr(automatic, "LONGEST_STEP", 1e9)
    captured = 0
    for kind, asked in ASKED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = totals(kind, asked, step, lambda function: function)
            assert totals(kind, asked, step, AutomaticCapture) == wanted, (kind, asked)
            try:
                found = totals(kind, asked, step, ti.capture)
            except CaptureError:
                continue
            assert found == wanted, (kind, asked)
            captured += 1
    assert captured > len(ASKED) // 3


def test_what_is_there_before_is_not_returned() -> None:
    """A replay would return a copy."""
    space = space_of("float", "v")
    space |= {"log": [1.0], "nested": {"log": [2.0]}}

    def step(returned: str) -> Any:
        text = f"def step():\n    add(1.0)\n    return {returned}\n"
        linecache.cache["returned.py"] = len(text), None, text.splitlines(keepends=True), "returned.py"
        exec(compile(text, "returned.py", "exec"), space)
        return ti.capture(space["step"])

    for returned in ("log", "(total[None], log)", "nested['log']", "[nested]", "{'a': log}"):
        with pytest.raises(CaptureError, match="that is there before the call") as error:
            step(returned)()
        assert error.value.span.line == 1
    for returned in ("list(log)", "[total[None]]", "(total[None], [*log])", "{'a': total[None]}"):
        found = step(returned)
        assert found() is not found()
