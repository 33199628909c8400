"""What tests of gradients share that speak the user's language."""

from typing import Any

import numpy as np
import pytest

import tinote as ti

__all__ = ["array", "array_with_dual", "check_gradient", "overwrites", "scalar", "session"]

overwrites = pytest.mark.filterwarnings("ignore:.*a tape that validates refuses it:UserWarning")
"""A mark for tests that overwrite on purpose: in debug mode, what would break an access rule is warned of."""


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def scalar(*, needs_grad: bool | None = True, **more: Any) -> Any:
    return ti.field(ti.f64, shape=(), needs_grad=needs_grad, **more)


def array(*shape: int) -> Any:
    return ti.field(ti.f64, shape=shape, needs_grad=True)


def array_with_dual(*shape: int) -> Any:
    return ti.field(ti.f64, shape=shape, needs_grad=True, needs_dual=True)


def check_gradient(run: Any, loss: Any, fields: list[Any], tolerance: float = 1e-6) -> None:
    """Compare what a tape around `run` gives with central differences of the loss, for every element of `fields`."""
    starts = [f.to_numpy() for f in fields]
    with ti.ad.Tape(loss=loss):
        run()
    found = [f.grad.to_numpy() for f in fields]

    def value() -> float:
        loss[None] = 0
        run()
        return loss[None]

    for field, start, gradient in zip(fields, starts, found, strict=True):
        for index in np.ndindex(start.shape):
            h = 1e-5 * max(1.0, abs(start[index]))
            sides: list[float] = []
            for sign in (1, -1):
                for other, begin in zip(fields, starts, strict=True):
                    other.from_numpy(begin)
                moved = start.copy()
                moved[index] += sign * h
                field.from_numpy(moved)
                sides.append(value())
            difference = (sides[0] - sides[1]) / (2 * h)
            assert gradient[index] == pytest.approx(difference, rel=tolerance, abs=tolerance), (field.name, index)
    for other, begin in zip(fields, starts, strict=True):
        other.from_numpy(begin)
