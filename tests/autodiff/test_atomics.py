"""Atomic operations on elements that the iterations of a parallel loop share: minima, maxima and products."""

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session
from tests.autodiff.user import overwrites
from tinote.errors import DifferentiationError

__all__ = ["session"]
pytestmark = overwrites

trap = Traps()


@trap
def largest(x, y, s, loss):
    @ti.kernel
    def run():
        s[None] = -1e9
        for i in x:
            ti.atomic_max(s[None], ti.sin(x[i]) * y[i])
        loss[None] += s[None] ** 2

    return run


@trap
def old_content_may_win(x, s, loss):
    @ti.kernel
    def run():
        for i in x:
            ti.atomic_max(s[None], 0.5 * x[i])
        loss[None] += s[None] ** 2

    return run


@trap
def into_the_loss(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            ti.atomic_max(loss[None], x[i] * y[i])

    return run


@trap
def smallest_by_bin(x, y, z, k, loss):
    @ti.kernel
    def run():
        for i in z:
            z[i] = 10.0
        for i in x:
            if x[i] > -0.5:
                ti.atomic_min(z[k[i] % 3], ti.sin(x[i]) * y[i])
        for i in range(2):
            loss[None] += z[i] ** 2 * (i + 1)

    return run


@trap
def in_inner_loops(x, y, z, s, loss):
    @ti.kernel
    def run():
        for i in x:
            for j in range(i + 1):
                ti.atomic_max(s[None], x[i] * y[j])
                ti.atomic_min(z[j % 2], x[i] * y[j] - x[j])
        for j in z:
            loss[None] += z[j] ** 2 + s[None] * z[j]

    return run


@trap
def over_two_axes(x, y, g, z, loss):
    @ti.kernel
    def run():
        for i, j in g:
            ti.atomic_max(z[j], x[j] * y[i])
        for j in z:
            loss[None] += z[j] ** 2

    return run


@trap
def product(x, y, s, loss):
    @ti.kernel
    def run():
        s[None] = 1.0
        for i in x:
            ti.atomic_mul(s[None], x[i] * y[i])
        loss[None] += s[None]

    return run


@trap
def stable_softmax(x, y, s, z, loss):
    @ti.kernel
    def run():
        s[None] = -1e9
        z[0] = 0.0
        for i in x:
            ti.atomic_max(s[None], x[i] * y[i])
        for i in x:
            z[0] += ti.exp(3 * (x[i] * y[i] - s[None]))
        loss[None] += ti.log(z[0]) + 3 * s[None] + s[None] ** 2

    return run


@trap
def local_maximum(x, y, loss):
    @ti.kernel
    def run():
        best = -1e9
        for i in x:
            ti.atomic_max(best, x[i] * y[i])
        loss[None] += best**2

    return run


@trap
def one_after_the_other(x, y, s, loss):
    @ti.kernel
    def run(shift: ti.i32):
        for i in x:
            ti.atomic_max(s[None], x[i] * y[(i + shift) % 5])
        loss[None] += s[None]

    return (lambda: run(0), lambda: run(1), lambda: run(4))


@trap
def neighbours_meet(x, y, loss):
    @ti.kernel
    def run():
        for i in range(4):
            ti.atomic_max(y[i], x[i])
            ti.atomic_max(y[i + 1], 2 * x[i])
        for i in y:
            loss[None] += y[i] * (i + 1)

    return run


@trap
def vectors(x, v, loss):
    @ti.kernel
    def run():
        v[0] = ti.math.vec2(-9.0)
        for i in range(4):
            ti.atomic_max(v[0], ti.math.vec2(x[i] * x[i + 1], -x[i + 1]))
        loss[None] += v[0].norm_sqr()

    return run


@trap
def begun_anew_again_and_again(x, s, loss):
    @ti.kernel
    def run():
        s[None] = -9.0
        for i in x:
            ti.atomic_max(s[None], x[i])
        loss[None] += s[None] ** 2
        s[None] = 9.0
        for i in x:
            ti.atomic_min(s[None], x[i])
        loss[None] += s[None] ** 3
        s[None] = 0.0

    return run


@trap
def in_a_branch(x, s, k, loss):
    @ti.kernel
    def run():
        if k[0] > 1:
            for i in x:
                ti.atomic_max(s[None], x[i] ** 2)
        else:
            s[None] = 1.0
        loss[None] += s[None] * x[0]

    return run


@pytest.mark.parametrize("name", trap)
def test_against_differences_and_forward_mode(name: str) -> None:
    trap.check(name)


def fields(n: int) -> tuple[ti.Field, ti.Field, ti.Field]:
    x, best, loss = (ti.field(ti.f64, shape, needs_grad=True) for shape in (n, (), ()))
    return x, best, loss


def test_of_several_winners_one_gets_the_gradient() -> None:
    x, best, loss = fields(5)
    x.from_numpy(np.array([2.0, 7.0, 1.0, 7.0, 7.0]))

    @ti.kernel
    def run():
        best[None] = -ti.math.inf
        for i in x:
            ti.atomic_max(best[None], x[i])
        loss[None] += 3 * best[None]

    for _ in range(3):
        with ti.ad.Tape(loss):
            run()
        assert x.grad.to_numpy().tolist() == [0, 0, 0, 0, 3]


def test_outside_of_a_tape_what_the_kernel_begins_anew_is_left_alone() -> None:
    x, best, loss = fields(4)
    x.from_numpy(np.array([2.0, 7.0, 1.0, 3.0]))

    @ti.kernel
    def run():
        best[None] = 0.0
        for i in x:
            ti.atomic_max(best[None], x[i])
        loss[None] += best[None] ** 2

    best[None] = -5.0
    loss.grad[None] = 1.0
    run.grad()
    assert x.grad.to_numpy().tolist() == [0, 14, 0, 0]
    assert best[None] == -5.0


def test_outside_of_a_tape_what_was_overwritten_is_missed() -> None:
    x, best, _ = fields(4)

    @ti.kernel
    def run():
        for i in x:
            ti.atomic_max(best[None], 2 * x[i])

    with pytest.raises(DifferentiationError, match=r"launch the kernel in a tape") as caught:
        run.grad()
    assert "ti.atomic_max(best[None], 2 * x[i])" in str(caught.value)


def test_what_the_order_decides_is_refused() -> None:
    x, best, loss = fields(4)

    @ti.kernel
    def mixed():
        for i in x:
            ti.atomic_max(best[None], x[i])
            ti.atomic_mul(best[None], 0.5)

    @ti.kernel
    def neighbour():
        for i in range(3):
            old = ti.atomic_mul(x[i], 2.0)
            x[i + 1] += old

    for run, line in ((mixed, "ti.atomic_mul(best[None], 0.5)"), (neighbour, "ti.atomic_mul(x[i], 2.0)")):
        with pytest.raises(DifferentiationError, match="depends on the order") as caught, ti.ad.Tape(loss):
            run()
        assert line in str(caught.value)


def test_draws_are_the_same_in_order() -> None:
    x, best, loss = fields(64)
    x.from_numpy(np.linspace(1, 2, 64))

    @ti.kernel
    def run():
        best[None] = 0.0
        for i in x:
            ti.atomic_max(best[None], x[i] * ti.random(ti.f64))
        loss[None] += best[None]

    for _ in range(5):
        with ti.ad.Tape(loss):
            run()
        # The loss is linear in the winner: its slope is the draw.
        assert np.count_nonzero(x.grad.to_numpy()) == 1
        assert np.dot(x.grad.to_numpy(), x.to_numpy()) == pytest.approx(loss[None], rel=1e-12)
