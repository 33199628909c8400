"""A value that does not count passes no derivative on, whatever it divides by; and one whose derivative only happens to
be zero has a second derivative all the same.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import tinote as ti
from tests.autodiff.user import scalar, session  # noqa: F401


class Case(NamedTuple):
    """What a kernel does at `x`, and the first and second derivative that `loss` has there."""

    kernel: Callable[[Any, Any, Any], Any]
    x: float
    first: float
    second: float


def root_in_an_arm(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        loss[None] += ti.select(x[None] > 0, (ti.sqrt(x[None]) - 1) ** 2, 0.0)

    return run


def quotient_in_an_arm(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        loss[None] += ti.select(x[None] > 0, (1 / x[None] - 1) ** 2, x[None] ** 2)

    return run


def product_with_an_inverse_in_an_arm(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        inverse = 1 / x[None]
        loss[None] += ti.select(x[None] > 0, ti.sin(x[None] * inverse), x[None] ** 2)

    return run


def maximum_over_a_logarithm(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        loss[None] += ti.max(ti.log(x[None]), -10.0) + x[None] ** 2

    return run


def root_for_a_branch_not_taken(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        for _ in range(1):
            root = ti.sqrt(x[None])
            if x[None] > 0:
                loss[None] += root * x[None]
            loss[None] += x[None] ** 2

    return run


def inverse_for_a_loop_without_turns(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        for _ in range(1):
            product = 3 * x[None] * (1 / x[None])
            for _ in range(n[None]):
                loss[None] += product * x[None]
            loss[None] += x[None] ** 2

    return run


def stored_and_never_read(x: Any, loss: Any, n: Any) -> Any:
    z = ti.field(ti.f64, 2, needs_grad=True, needs_dual=True)

    @ti.kernel
    def run():
        for i in z:
            z[i] = ti.log(x[None] + i)
        for _ in range(1):
            loss[None] += z[1] + x[None] ** 2

    return run


def root_of_what_is_clamped(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        loss[None] += ti.sqrt(ti.max(x[None], 0.0)) + x[None] ** 2

    return run


def softened_length(x: Any, loss: Any, n: Any) -> Any:
    @ti.kernel
    def run():
        loss[None] += ti.Vector([x[None], 2 * x[None]]).norm(1e-2) ** 2 + 1 / ti.sqrt(x[None] ** 2 + 0.25)

    return run


CASES = {
    "a root whose adjoint is zero for now": Case(root_in_an_arm, 1.0, 0.0, 0.5),
    "the root of a negative number": Case(root_in_an_arm, -1.0, 0.0, 0.0),
    "a quotient whose adjoint is zero for now": Case(quotient_in_an_arm, 1.0, 0.0, 2.0),
    "a division by zero in the other arm": Case(quotient_in_an_arm, 0.0, 0.0, 2.0),
    "a product with infinity in the other arm": Case(product_with_an_inverse_in_an_arm, 0.0, 0.0, 2.0),
    "the logarithm of zero, and a maximum": Case(maximum_over_a_logarithm, 0.0, 0.0, 2.0),
    "the logarithm of a negative number": Case(maximum_over_a_logarithm, -1.0, -2.0, 2.0),
    "a branch not taken": Case(root_for_a_branch_not_taken, -1.0, -2.0, 2.0),
    "a branch not taken at the singular point": Case(root_for_a_branch_not_taken, 0.0, 0.0, 2.0),
    "a loop without iterations": Case(inverse_for_a_loop_without_turns, 0.0, 0.0, 2.0),
    "an element that nobody reads": Case(stored_and_never_read, 0.0, 1.0, 1.0),
    "the root of a number that is clamped": Case(root_of_what_is_clamped, -1.0, -2.0, 2.0),
    "a softened length and its inverse": Case(softened_length, 0.0, 0.0, 10.0 - 8.0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_count_contributes_nothing(name: str) -> None:
    case = CASES[name]
    x, loss = [ti.field(ti.f64, (), needs_grad=True, needs_dual=True) for _ in range(2)]
    run = case.kernel(x, loss, ti.field(ti.i32, ()))
    x[None] = case.x
    with ti.ad.Tape(loss):
        run()
    assert x.grad[None] == pytest.approx(case.first, abs=1e-12)
    loss[None] = 0
    with ti.ad.FwdMode(loss=loss, param=x):
        run()
    assert loss.dual[None] == pytest.approx(case.first, abs=1e-12)
    assert ti.ad.hvp(run, wrt=x, loss=loss)(1.0) == pytest.approx(case.second, abs=1e-12)


def test_an_infinite_slope_that_counts_is_no_number_that_is_hidden() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def run():
        loss[None] += ti.sqrt(x[None])

    x[None] = 0.0
    with ti.ad.Tape(loss):
        run()
    assert x.grad[None] == float("inf")
