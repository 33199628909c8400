"""What `ti.ad.checkpoint` refuses, by line."""

from typing import Any

import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


@pytest.mark.parametrize("size", [(), 3, 100_000])
def test_python_that_writes_something_else_again_is_refused(size: Any) -> None:
    x, w, loss = scalar(), ti.field(ti.f64, size), scalar()
    calls = 0

    @ti.kernel
    def use():
        for i in range(1):
            for j in ti.static(range(1)):
                loss[None] += x[None] * (i + j + 1)

    def step(t: int) -> None:
        nonlocal calls
        calls += 1
        if size == ():
            w[None] = calls
        else:
            w.fill(calls)
        use()

    x[None] = 2.0
    with pytest.raises(DifferentiationError, match="did something else"), ti.ad.Tape(loss=loss):
        ti.ad.checkpoint(step, 4)

    def same(t: int) -> None:
        w[None] = t
        w[None] += 1
        use()

    if size == ():
        with ti.ad.Tape(loss=loss):
            ti.ad.checkpoint(same, 4)
        assert x.grad[None] == 4.0


def test_a_chain_through_a_custom_vjp_that_breaks_between_steps_is_refused() -> None:
    """What a custom VJP leaves in a field without a gradient has no adjoint that it could see."""
    x, y, loss = scalar(), ti.field(ti.f64, ()), scalar()

    @ti.kernel
    def use():
        loss[None] += y[None] * x[None]

    @ti.kernel
    def prepare():
        y[None] = x[None] ** 2

    @ti.ad.grad_replaced
    def prepare_replaced() -> None:
        prepare()

    @ti.ad.grad_for(prepare_replaced)
    def prepare_gradient() -> None:
        pass

    def step(t: int) -> None:
        use()
        prepare_replaced()

    for steps in (1, 4):
        with pytest.raises(DifferentiationError, match="'y' has no gradient"), ti.ad.Tape(loss=loss):
            ti.ad.checkpoint(step, steps)
            use()


def test_a_step_without_derivative_is_refused_at_once() -> None:
    x, loss = array(3), scalar()
    steps = 0

    @ti.kernel
    def extreme():
        for i in x:
            ti.atomic_max(loss[None], x[i])
            loss[None] += x[i]

    def step(t: int) -> None:
        nonlocal steps
        steps += 1
        extreme()

    with pytest.raises(DifferentiationError) as caught, ti.ad.Tape(loss=loss):
        ti.ad.checkpoint(step, 1000)
    assert "ti.atomic_max(loss[None], x[i])" in str(caught.value)
    assert steps == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": 3, "steps": 1}, "runs a function"),
        ({"steps": -1}, "steps must be"),
        ({"steps": 1.5}, "steps must be"),
        ({"steps": None}, "steps must be"),
        ({"steps": 1, "memory": 0}, "memory must be"),
        ({"steps": 1, "snapshots": 0}, "snapshots must be"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DifferentiationError, match=message) as caught:
        ti.ad.checkpoint(**{"step": print, **arguments})
    assert caught.value.span.file == __file__
