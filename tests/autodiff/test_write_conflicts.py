"""Parallel loops whose iterations read what others change are refused, with both lines; those that only look like it
are not.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401
from tests.autodiff.user import overwrites
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
def product(x, s, loss):
    """All orders leave the same."""

    @ti.kernel
    def run():
        s[None] = 1.5
        for i in x:
            for _ in range(2):
                s[None] = s[None] * x[i]
        loss[None] += s[None]

    return run


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


@harmless
def at_the_ends(x, loss):
    @ti.kernel
    def run():
        for i in x:
            if i == 0:
                x[i] = x[i + 1] * 2
            if i >= 4:
                x[i] = x[i - 1] * x[i]
        for i in x:
            loss[None] += x[i] ** 2

    return run


@harmless
def even_and_odd(x, loss):
    @ti.kernel
    def run():
        for i in range(0, 4, 2):
            x[i] = x[i + 1] * x[i]
        for i in range(2):
            x[2 * i + 1] = x[2 * i] * x[2 * i + 1]
        for i in x:
            loss[None] += x[i] ** 2

    return run


@harmless
def red_and_black(g, x, loss):
    @ti.kernel
    def run(colour: ti.i32):
        for i, j in ti.ndrange((1, 3), (1, 4)):
            if (i + j) % 2 == colour:
                g[i, j] = 0.25 * (g[i - 1, j] + g[i + 1, j] * g[i, j - 1] + g[i, j + 1])

    @ti.kernel
    def begin():
        for i, j in g:
            g[i, j] = x[j] * (i + 1)

    @ti.kernel
    def end():
        for i, j in g:
            loss[None] += g[i, j] ** 2

    return lambda: (begin(), run(0), run(1), run(0), end())


@harmless
def another_component(v, loss):
    @ti.kernel
    def run():
        for i in range(4):
            v[i].x = v[i + 1].y * v[i].x
        for i in v:
            loss[None] += v[i].norm_sqr()

    return run


@harmless
def along_the_inner_loop(g, x, loss):
    @ti.kernel
    def run():
        for i in range(4):
            for j in range(5):
                g[i, j] = x[j] + i
            for j in range(1, 5):
                g[i, j] = g[i, j] * g[i, j - 1]
        for i, j in g:
            loss[None] += g[i, j] ** 2

    return run


@harmless
def far_away(x, loss):
    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            x[i] = x[i + 2] * x[(i + 1) % 2 + 2]
        for i in x:
            loss[None] += x[i] ** 2

    return lambda: run(2)


@pytest.mark.parametrize("name", harmless)
@overwrites
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


def neighbour(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in range(3):
            x[i] = x[i] * x[i + 1]  # changed, read

    return run


def neighbour_with_a_guard(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:
            if i > 0 and i < 3:
                x[i] += x[i - 1] * x[i - 1]  # changed, read

    return run


def neighbour_around_the_end(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run():
        for i in x:
            new = x[i] + 0.1 * x[(i + 1) % 4]  # read
            x[i] = new  # changed

    return run


def neighbour_in_a_loop_of_any_length(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    @ti.kernel
    def run(n: ti.i32):
        for i in range(1, n):
            x[i] = x[i] * x[i - 1]  # changed, read

    return lambda: run(4)


def neighbour_in_a_nest(x: Any, s: Any, loss: Any) -> Callable[[], None]:
    g = ti.field(ti.f64, (4, 4), needs_grad=True)

    @ti.kernel
    def run():
        for i, j in ti.ndrange(3, 4):
            g[i, j] = x[j] * g[i + 1, j]  # changed, read

    return run


def test_a_minimum_by_comparison_is_a_reduction() -> None:
    x, s, loss = (ti.field(ti.f64, shape, needs_grad=True) for shape in (4, (), ()))
    x.from_numpy(np.array([1.5, 0.5, 2.0, 0.75]))
    run = smallest(x, s, loss)
    with ti.ad.Tape(loss):
        run()
    assert loss[None] == 0.5
    assert x.grad.to_numpy().tolist() == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "program",
    [
        running_total,
        neighbour,
        neighbour_with_a_guard,
        neighbour_around_the_end,
        neighbour_in_a_loop_of_any_length,
        neighbour_in_a_nest,
    ],
)
@overwrites
def test_refused(program: Callable[..., Callable[[], None]]) -> None:
    x, s, loss = (ti.field(ti.f64, shape, needs_grad=True) for shape in (4, (), ()))
    x.from_numpy(np.linspace(0.5, 2, 4))
    run = program(x, s, loss)
    with pytest.raises(DifferentiationError, match="without an order") as caught, ti.ad.Tape(loss):
        run()
    comments = [line.partition("# ")[2] for line in str(caught.value).splitlines() if "# " in line]
    assert set(", ".join(comments).split(", ")) == {"read", "changed"}
    assert "serialize=True" in str(caught.value)
