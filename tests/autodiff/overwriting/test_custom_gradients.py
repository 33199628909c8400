"""Custom VJPs find what they read: what is overwritten is kept up to a limit, and beyond it no stale value is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar
from tinote.errors import DifferentiationError

N, STEPS = 256, 40
#: of this, a sixteenth is kept of what custom gradients perhaps read: two grids
LIMIT = 16 * 2 * N * 8


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(default_fp=ti.f64, memory_limit=LIMIT)


class Grid:
    """Particles that move by what they add to a grid, which is cleared in each step: the material point method."""

    def __init__(self) -> None:
        self.x = array(STEPS + 1, 8)
        self.grid = ti.field(ti.f64, shape=N, needs_grad=True, name="grid")
        self.loss = scalar()
        self.x.from_numpy(np.vstack([np.linspace(0.2, 0.9, 8)] + [np.zeros(8)] * STEPS))

    @ti.kernel
    def clear(self):
        for i in self.grid:
            self.grid[i] = 0.0

    @ti.kernel
    def clear_grad(self):
        for i in self.grid:
            self.grid.grad[i] = 0.0

    @ti.kernel
    def scatter(self, s: ti.i32):
        for p in range(8):
            self.grid[p] += ti.sin(self.x[s, p])
            self.grid[p + 1] += 0.5 * self.x[s, p] ** 2

    @ti.kernel
    def gather(self, s: ti.i32):
        for p in range(8):
            self.x[s + 1, p] = self.x[s, p] + 0.01 * self.grid[p] * self.grid[p + 1]

    @ti.kernel
    def measure(self):
        for p in range(8):
            self.loss[None] += self.x[STEPS, p] ** 2

    def forward(self, s: int) -> None:
        self.clear()
        self.scatter(s)
        self.gather(s)

    def backward(self, s: int, *, recomputes: bool = True) -> None:
        if recomputes:
            self.clear()
            self.scatter(s)
        self.clear_grad()
        self.gather.grad(s)
        self.scatter.grad(s)

    def gradient(self, step: Any) -> np.ndarray:
        with ti.ad.Tape(self.loss):
            for s in range(STEPS):
                step(s)
            self.measure()
        return self.x.grad.to_numpy()[0]


def test_a_gradient_that_computes_its_grid_again_needs_little_memory() -> None:
    model = Grid()
    step = ti.ad.grad_replaced(model.forward)
    ti.ad.grad_for(step)(model.backward)
    found = model.gradient(step)
    ti.init(default_fp=ti.f64)
    plain = Grid()
    assert found == pytest.approx(plain.gradient(plain.forward), rel=1e-12)


def test_a_stale_element_that_is_read_is_refused_by_line() -> None:
    model = Grid()
    step = ti.ad.grad_replaced(model.forward)
    ti.ad.grad_for(step)(lambda s: model.backward(s, recomputes=False))
    with pytest.raises(DifferentiationError, match="'grid' is read here in the gradient of 'forward'") as refused:
        model.gradient(step)
    shown = "\n".join(refused.value.lines())
    assert "self.grid[p] * self.grid[p + 1]" in shown and "'forward' was called" in shown


def test_what_fits_is_kept() -> None:
    ti.init(default_fp=ti.f64)
    model = Grid()
    step = ti.ad.grad_replaced(model.forward)
    ti.ad.grad_for(step)(lambda s: model.backward(s, recomputes=False))
    plain = Grid()
    assert model.gradient(step) == pytest.approx(plain.gradient(plain.forward), rel=1e-12)


@ti.kernel
def bump(a: ti.template(), by: ti.f64):
    for i in a:
        a[i] += by


@ti.kernel
def half(a: ti.template()):
    for i in range(N // 2):
        a[i] = 1.0


@ti.kernel
def some(a: ti.template()):
    for i in a:
        if i > 2:
            a[i] = 1.0


@ti.kernel
def renew_and_use(a: ti.template(), b: ti.template()):
    for i in a:
        a[i] = 1.0
    for i in a:
        b[i] += a[i]


@ti.kernel
def squares(a: ti.template(), loss: ti.template()):
    for i in a:
        loss[None] += a[i] ** 2


@ti.kernel
def only_first(a: ti.template(), b: ti.template()):
    b[0] += a[0]


def reads_field(a: Any, b: Any, loss: Any) -> None:
    bump(a, 1.0)


def renews_half(a: Any, b: Any, loss: Any) -> None:
    half(a)
    squares(a, loss)


def renews_some(a: Any, b: Any, loss: Any) -> None:
    some(a)
    bump(a, 1.0)


def reads_element(a: Any, b: Any, loss: Any) -> None:
    a[0] = 1.0
    b[0] = a[0] + a[1]


def copies(a: Any, b: Any, loss: Any) -> None:
    b.copy_from(a)


def launches_gradient(a: Any, b: Any, loss: Any) -> None:
    squares.grad(a, loss)


def fills(a: Any, b: Any, loss: Any) -> None:
    a.fill(2.0)
    bump(a, 1.0)
    squares.grad(a, loss)


def renews_in_one_launch(a: Any, b: Any, loss: Any) -> None:
    renew_and_use(a, b)
    bump(a, 1.0)


def element_by_element(a: Any, b: Any, loss: Any) -> None:
    a[0] = 1.0
    only_first(a, b)


def taken_as_an_array(a: Any, b: Any, loss: Any) -> None:
    a.to_numpy()


def copied_onto(a: Any, b: Any, loss: Any) -> None:
    a.copy_from(b)
    bump(a, 1.0)


@pytest.mark.parametrize(
    ("gradient", "refused"),
    [
        (reads_field, True),
        (renews_half, True),
        (renews_some, True),
        (reads_element, True),
        (copies, True),
        (launches_gradient, True),
        (fills, False),
        (renews_in_one_launch, False),
        (element_by_element, False),
        (taken_as_an_array, True),
        (copied_onto, False),
    ],
)
def test_only_what_is_read_while_stale_is_refused(gradient: Any, refused: bool) -> None:
    a, loss = ti.field(ti.f64, shape=N, needs_grad=True, name="a"), scalar()
    b = ti.field(ti.f64, shape=N)
    ran = []

    @ti.ad.grad_replaced
    def nothing() -> None:
        """Reads and writes nothing; its gradient runs at its place."""

    @ti.ad.grad_for(nothing)
    def at_its_place() -> None:
        gradient(a, b, loss)
        ran.append(True)

    big = ti.field(ti.f64, shape=2 * N)  # takes up what may be kept
    a.fill(5.0)

    def program() -> None:
        with ti.ad.Tape(loss):
            nothing()
            big.fill(1.0)
            a.fill(3.0)
            squares(a, loss)

    if refused:
        with pytest.raises(DifferentiationError, match="'a' is read here in the gradient of 'nothing'"):
            program()
    else:
        program()
        assert len(ran) == 1
    assert a.to_numpy() == pytest.approx(np.full(N, 3.0)), "fields hold what the program left"


def test_a_custom_gradient_between_launches_that_an_earlier_tape_knows() -> None:
    """What an earlier recording has shown harmless need not be, once a custom gradient reads what is overwritten."""
    ti.init(default_fp=ti.f64)
    x, y, z, loss = scalar(), scalar(), scalar(), scalar()

    @ti.kernel
    def first():
        y[None] = x[None] ** 2

    @ti.kernel
    def second():
        z[None] = x[None] ** 3

    @ti.kernel
    def measure():
        loss[None] += z[None]

    @ti.ad.grad_replaced
    def custom_part() -> None:
        """Reads nothing itself."""

    seen: list[float] = []
    ti.ad.grad_for(custom_part)(lambda: seen.append(float(z[None])))
    x[None] = 1.0
    for _ in range(3):
        z[None] = 7.0
        with ti.ad.Tape(loss):
            first()
            second()
            measure()
    z[None] = 7.0
    with ti.ad.Tape(loss):
        first()
        custom_part()
        second()
        measure()
    assert seen == [7.0]
