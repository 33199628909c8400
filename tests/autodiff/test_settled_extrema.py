"""`kernel.grad()` of running extrema: the final value tells who won, inside of a custom gradient and alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar
from tinote.errors import DifferentiationError

VALUES = [5.0, 2.0, 1.0, 2.0]


@pytest.fixture(params=[1, 2], autouse=True)
def session(request: pytest.FixtureRequest) -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64, num_threads=request.param)


def seeded(values: Any, begin: float) -> tuple[Any, Any]:
    x, m = array(len(values)), scalar()
    x.from_numpy(np.array(values))
    m[None] = begin
    return x, m


@pytest.mark.parametrize(
    ("values", "begin", "expected", "left"),
    [
        (VALUES, 1e9, [0, 0, 2, 0], 0),
        ([3.0, 1.0, 1.0, 4.0], 1e9, [0, 0, 2, 0], 0),  # of equal ones the last
        (VALUES, 1.0, [0, 0, 2, 0], 0),
        (VALUES, 0.5, [0, 0, 0, 0], 2),  # what was there before is the minimum
    ],
)
def test_the_element_that_equals_the_minimum_gets_the_adjoint(
    values: list[float], begin: float, expected: list[float], left: float
) -> None:
    x, m = seeded(values, begin)

    @ti.kernel
    def least():
        for i in x:
            ti.atomic_min(m[None], x[i])

    least()
    m.grad[None] = 2.0
    least.grad()
    assert x.grad.to_numpy().tolist() == expected and m.grad[None] == left and m[None] == min([*values, begin])


def test_inside_of_a_custom_gradient() -> None:
    x, m = seeded(VALUES, 0.0)
    loss = scalar()

    @ti.kernel
    def least():
        for i in x:
            ti.atomic_min(m[None], x[i])

    @ti.kernel
    def double():
        loss[None] = 2 * m[None]

    @ti.ad.grad_replaced
    def find():
        m[None] = 1e9
        least()

    @ti.ad.grad_for(find)
    def find_gradient():
        least.grad()

    for _ in range(2):
        with ti.ad.Tape(loss):
            find()
            double()
        assert loss[None] == 2.0 and x.grad.to_numpy().tolist() == [0, 0, 2, 0]


@pytest.mark.parametrize("seed", range(6))
def test_many_cells_against_a_tape(seed: int) -> None:
    """Random scatters into cells; some held the extremum before, and some terms are equal."""
    random = np.random.default_rng(seed)
    n, cells, loss = 300, 12, scalar()
    x, y, m = array(n), array(n), array(cells)
    cell = ti.field(ti.i32, n)
    cell.from_numpy(random.integers(0, cells, n).astype(np.int32))
    for one in (x, y):
        one.from_numpy(random.integers(-20, 20, n) / 4)
    before, seeds = random.uniform(1, 5, cells), random.normal(size=cells)

    @ti.kernel
    def greatest():
        for i in x:
            ti.atomic_max(m[cell[i]], abs(x[i]))
        for i in y:
            ti.atomic_max(m[cell[n - 1 - i]], -y[i])

    found = []
    for launched in (False, True):
        m.from_numpy(before)
        for one, value in ((x, 0), (y, 0), (m, seeds)):
            one.grad.from_numpy(np.zeros(one.shape) + value)
        if launched:
            greatest()
            greatest.grad()
        else:
            with ti.ad.Tape(loss):
                greatest()
                weigh(m, seeds, loss)
        found.append([one.grad.to_numpy() for one in (x, y)])
    for one, other in zip(*found, strict=True):
        assert one.tolist() == pytest.approx(other.tolist()) and np.count_nonzero(one)


def weigh(m: Any, seeds: Any, loss: Any) -> None:
    @ti.kernel
    def total(w: ti.types.ndarray(ndim=1)):
        for i in m:
            loss[None] += w[i] * m[i]

    total(seeds)


def computed(x: Any, m: Any) -> Any:
    @ti.kernel
    def run():
        for i in x:
            ti.atomic_min(m[None], ti.sin(x[i]))

    return run


def changed_after(x: Any, m: Any) -> Any:
    @ti.kernel
    def run():
        for i in x:
            ti.atomic_min(m[None], x[i])
        m[None] *= 2.0

    return run


def both_extrema(x: Any, m: Any) -> Any:
    @ti.kernel
    def run():
        for i in x:
            ti.atomic_min(m[None], x[i])
        for i in x:
            ti.atomic_max(m[None], -x[i])

    return run


def terms_that_change(x: Any, m: Any) -> Any:
    @ti.kernel
    def run():
        for i in x:
            ti.atomic_min(m[None], x[i])
        for i in x:
            x[i] = 2.0 * x[i]

    return run


@pytest.mark.parametrize("make", [computed, changed_after, both_extrema, terms_that_change])
def test_where_the_final_value_does_not_tell(make: Callable[[Any, Any], Any]) -> None:
    x, m = seeded(VALUES, 1e9)
    run = make(x, m)
    run()
    m.grad[None] = 1.0
    with pytest.raises(DifferentiationError, match="the kernel has overwritten it since"):
        run.grad()
