"""Parallel loops whose turns read what others change are refused, with both lines; those that only look like it are
not.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401
from tinote.errors import DifferentiationError

harmless = Traps()


@harmless
def in_order(x, y, loss):
    @ti.kernel
    def run():
        best, at = 1e9, -1
        ti.loop_config(serialize=True)
        for i in range(5):
            if x[i] < best:
                best = x[i]
                at = i
        loss[None] += y[at] * best

    return run


@harmless
def one_turn(x, s, loss):
    @ti.kernel
    def run():
        for _ in range(1):
            s[None] = s[None] * x[0]
            loss[None] += s[None]

    return run


@harmless
def one_turn_of_many(x, s, loss):
    @ti.kernel
    def run():
        for i in x:
            if i == 2:
                s[None] = s[None] * x[i]
                loss[None] += s[None] ** 2

    return run


@harmless
def not_switched_on(x, s, loss):
    @ti.kernel
    def run(changing: ti.i32):
        for i in x:
            loss[None] += s[None] * x[i]
            if changing:
                s[None] = 2.0

    return lambda: run(0)


@harmless
def accumulated_and_read_afterwards(x, s, loss):
    @ti.kernel
    def run():
        total = s[None]
        for i in x:
            total += x[i] ** 2
        for i in x:
            loss[None] += x[i] * total

    return run


@pytest.mark.parametrize("name", harmless)
def test_harmless(name: str) -> None:
    harmless.check(name)


def smallest(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        best = 1e9
        for i in x:
            if x[i] < best:  # read
                best = x[i]  # changed
        loss[None] += best

    return run


def running_total(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:
            s[None] += x[i]  # changed
            loss[None] += s[None] * x[i]  # read

    return run


def product(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:
            for _ in range(2):
                s[None] = s[None] * x[i]  # read, changed
        loss[None] += s[None]

    return run


@pytest.mark.parametrize("program", [smallest, running_total, product])
def test_refused(program: Callable[..., Callable[[], None]]) -> None:
    x, s, loss = (ti.field(ti.f64, shape, needs_grad=True) for shape in (4, (), ()))
    x.from_numpy(np.linspace(0.5, 2, 4))
    run = program(x, s, loss)
    with pytest.raises(DifferentiationError, match="without an order") as caught, ti.ad.Tape(loss):
        run()
    comments = [line.partition("# ")[2] for line in str(caught.value).splitlines() if "# " in line]
    assert set(", ".join(comments).split(", ")) == {"read", "changed"}
    assert "serialize=True" in str(caught.value)
