"""Functional derivatives leave gradients and duals as they were, and what these held does not change the results, where
launches touch a part of large fields: random programs, compared with a tape, which clears all gradients as a whole.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array_with_dual, session  # noqa: F401

ROWS, COLUMNS = 1_100, 8  # a field of 70,400 bytes
MOST_STEPS = 8


class Fields:
    """Rows that are computed from other rows, kernel by kernel; the inputs and the result are small."""

    def __init__(self) -> None:
        self.x = x = array_with_dual(ROWS, COLUMNS)
        self.inputs = inputs = array_with_dual(COLUMNS)
        self.loss = loss = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)

        @ti.kernel
        def begin(f: int):
            for p in range(COLUMNS):
                x[f, p] = ti.sin(inputs[p] + p)

        @ti.kernel
        def store(f: int, to: int):
            for p in range(COLUMNS):
                x[to, p] = ti.cos(x[f, (p + 1) % COLUMNS]) * x[f, p]

        @ti.kernel
        def accumulate(f: int, to: int):
            for p in range(COLUMNS):
                x[to, p] += 0.5 * x[f, p] ** 2

        @ti.kernel
        def some(first: int, last: int):
            for f in range(first, last):
                for p in range(COLUMNS):
                    x[f, p] = 0.9 * x[f, p] + 0.1 * x[f // 2, 0]

        @ti.kernel
        def everywhere():
            for f, p in x:
                x[f, p] = x[f, p] * 0.99 + inputs[p]

        @ti.kernel
        def total(f: int):
            for p in range(COLUMNS):
                loss[None] += x[f, p] ** 2

        self.begin, self.total = begin, total
        self.store, self.accumulate, self.some, self.everywhere = store, accumulate, some, everywhere

        @ti.kernel
        def move(f: int, to: int):
            for p in range(COLUMNS):
                x[to, p] = 0.5 * x[f, p]

        @ti.ad.grad_replaced
        def replaced(f: int, to: int) -> None:
            move(f, to)

        @ti.ad.grad_for(replaced)
        def gradient(f: int, to: int) -> None:
            move.grad(f, to)

        self.replaced = replaced

    def steps(self, chosen: random.Random) -> list[Callable[[], object]]:
        rows = [chosen.randrange(ROWS) for _ in range(4)] + [0, 1, ROWS - 1]
        found: list[Callable[[], object]] = []
        for _ in range(chosen.randint(1, MOST_STEPS)):
            f, to = chosen.sample(rows, 2)
            low, high = sorted((f, to))
            found.append(
                chosen.choice(
                    [
                        lambda f=f: self.begin(f),
                        lambda f=f, to=to: self.store(f, to),
                        lambda f=f, to=to: self.accumulate(f, to),
                        lambda f=f, to=to: self.replaced(f, to),
                        lambda low=low, high=high: self.some(low, high),
                        lambda f=f, to=to: self._by_python(f, to),
                        *([lambda: self.everywhere()] if chosen.random() < 0.2 else []),
                    ]
                )
            )
        last = [lambda f=f: self.total(f) for f in chosen.sample(rows, 2)]
        return [lambda: self.begin(rows[0]), *found, *last]

    def _by_python(self, f: int, to: int) -> None:
        self.x[to, 0] = 2.0 * self.x[f, 1]

    def shadows(self) -> list[Any]:
        return [one for field in (self.x, self.inputs, self.loss) for one in (field.grad, field.dual)]


@pytest.mark.parametrize("seed", range(24))
def test_what_gradients_held_does_not_matter(seed: int) -> None:
    chosen, draw = random.Random(seed), np.random.default_rng(seed)
    fields = Fields()
    values = draw.uniform(0.1, 0.9, (ROWS, COLUMNS))
    fields.inputs.from_numpy(draw.uniform(0.1, 0.9, COLUMNS))
    steps = fields.steps(chosen)

    def run() -> None:
        for step in steps:
            step()

    fields.x.from_numpy(values)
    fields.loss[None] = 0.0
    with ti.ad.Tape(fields.loss):
        run()
    expected = fields.inputs.grad.to_numpy()

    held = [draw.uniform(1.0, 2.0, one.shape) for one in fields.shadows()]
    for one, numbers in zip(fields.shadows(), held, strict=True):
        one.from_numpy(numbers)
    direction = draw.uniform(0.1, 0.9, COLUMNS)
    derivatives = {
        "grad": lambda: ti.ad.grad(run, wrt=fields.inputs, output=fields.loss)(),
        "vjp": lambda: ti.ad.vjp(run, wrt=fields.inputs, output=fields.loss)(np.ones(()))[1],
        "jacobian": lambda: ti.ad.jacobian(run, wrt=fields.inputs, output=fields.loss, mode="reverse")(),
        "jvp": lambda: ti.ad.jvp(run, wrt=fields.inputs, output=fields.loss)(direction)[1],
        "hvp": lambda: ti.ad.value_and_grad_and_hvp(run, wrt=fields.inputs, output=fields.loss)(direction)[1],
    }
    for name, derivative in derivatives.items():
        if name in ("jvp", "hvp") and any("replaced" in step.__code__.co_names for step in steps):
            continue  # a custom gradient has no tangents
        fields.x.from_numpy(values)
        fields.loss[None] = 0.0
        found = derivative()
        wanted = np.sum(expected * direction) if name == "jvp" else expected
        np.testing.assert_allclose(np.reshape(found, np.shape(wanted)), wanted, rtol=1e-12, err_msg=name)
        for one, numbers in zip(fields.shadows(), held, strict=True):
            np.testing.assert_array_equal(one.to_numpy(), numbers, err_msg=name)
