"""Arrays that a function is given, used before, within and after blocks that have gradients of their own: the same
derivatives as without these blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti

NUMBERS = ti.types.ndarray(dtype=ti.f64, ndim=1)
AT = np.array([-0.859, -0.083, -0.342])
ALONG = np.array([0.3, -0.7, 1.1])

Step = Callable[[], None]
Block = Callable[[Step], None]


class _Programs:
    """A loss of an array, which kernels and Python use before, in and after a block."""

    def __init__(self) -> None:
        ti.init(default_fp=ti.f64)
        both = {"needs_grad": True, "needs_dual": True}
        x, loss = ti.field(ti.f64, 3, name="x", **both), ti.field(ti.f64, (), name="loss", **both)
        y = ti.field(ti.f64, 2, name="y", **both)
        x.from_numpy(np.array([1.0, 2.0, 3.0]))

        @ti.kernel
        def weigh(q: NUMBERS, by: ti.f64):
            for i in q:
                loss[None] += by * q[i] * q[i] * x[i]
                y[i % 2] += by * q[i] * x[i] * x[i]

        @ti.kernel
        def clear():
            loss[None] = 0.0
            y[0] = 0.0
            y[1] = 0.0

        self.x, self.y, self.loss, self.weigh, self.clear = x, y, loss, weigh, clear

    def replaced(self, step: Step) -> None:
        """The step in a function with a custom gradient, which is its own."""

        @ti.ad.grad_replaced
        def advance() -> None:
            step()

        @ti.ad.grad_for(advance)
        def back() -> None:
            if self.array is not None:
                self.weigh.grad(self.array, 0.5)

        advance()

    array: Any = None

    def program(self, block: Block, uses: str) -> Callable[[Any], Any]:
        """`uses`: before the block, in it, after it; and whether the block gives an element a new value."""

        def program(q: Any) -> Any:
            self.array = q if "in" in uses else None
            self.clear()
            if "before" in uses:
                self.weigh(q, 2.0)

            def step() -> None:
                if "write" in uses:
                    q[1] = 0.5
                if "in" in uses:
                    self.weigh(q, 0.5)

            block(step)
            if "after" in uses:
                self.weigh(q, 0.25)
            return self.loss[None]

        return program


def _once(step: Step) -> None:
    step()


def _checkpoint(step: Step) -> None:
    ti.ad.checkpoint(lambda t: step(), 1, progress=False)


USES = ["before in", "in after", "before in after", "after", "write after", "before write after", "write in after"]
DERIVATIVES: dict[str, Callable[[Any, _Programs], Any]] = {
    "grad": lambda f, p: ti.ad.grad(f)(AT.copy()),
    "value_and_grad": lambda f, p: ti.ad.value_and_grad(f, 0, wrt=[p.x])(AT.copy()),
    "vjp": lambda f, p: ti.ad.vjp(f)(2.0, AT.copy()),
    "several seeds": lambda f, p: ti.ad.vjp(f, 0, wrt=p.x, output=p.y)([[1.0, 2.0], [0.5, -1.0]], AT.copy()),
    "rows": lambda f, p: ti.ad.jacobian(f, 0, wrt=p.x, output=p.y, mode="reverse")(AT.copy()),
    "columns": lambda f, p: ti.ad.jacobian(f, 0, wrt=p.x, output=p.y, mode="forward")(AT.copy()),
    "hvp": lambda f, p: ti.ad.hvp(f)(ALONG, AT.copy()),
    "a gradient in a gradient": lambda f, p: ti.ad.grad(lambda q: _dot(ti.ad.grad(f)(q)))(AT.copy()),
    "a tape": lambda f, p: _by_tape(f, p),
}


def _dot(gradient: Any) -> Any:
    return sum(gradient[k] * ALONG[k] for k in range(3))


def _by_tape(f: Callable[[Any], Any], programs: _Programs) -> Any:
    q = ti.ndarray(ti.f64, 3, needs_grad=True)
    q.from_numpy(AT)
    with ti.ad.Tape(programs.loss):
        f(q)
    return q.grad.to_numpy(), programs.x.grad.to_numpy()


def _numbers(found: Any) -> list[float]:
    if isinstance(found, tuple | list):
        return [number for one in found for number in _numbers(one)]
    return np.ravel(found).tolist()


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("uses", USES)
def test_the_same_in_a_checkpointed_loop(uses: str, derivative: str) -> None:
    programs = _Programs()
    expected = DERIVATIVES[derivative](programs.program(_once, uses), programs)
    assert np.abs(_numbers(expected)).max() > 0
    found = DERIVATIVES[derivative](programs.program(_checkpoint, uses), programs)
    assert _numbers(found) == pytest.approx(_numbers(expected), rel=1e-12)


@pytest.mark.parametrize("derivative", ["grad", "value_and_grad", "vjp", "several seeds", "rows", "a tape"])
@pytest.mark.parametrize("uses", [uses for uses in USES if "write" not in uses])
def test_the_same_around_custom_gradients(uses: str, derivative: str) -> None:
    programs = _Programs()
    expected = DERIVATIVES[derivative](programs.program(_once, uses), programs)
    found = DERIVATIVES[derivative](programs.program(programs.replaced, uses), programs)
    assert _numbers(found) == pytest.approx(_numbers(expected), rel=1e-12)
