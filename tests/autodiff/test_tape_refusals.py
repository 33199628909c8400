"""What a tape refuses, by name and line, and that everything is usable afterwards."""

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, check_gradient, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError, FieldError, KernelIndexError, KernelMemoryError


def test_an_exception_leaves_everything_usable() -> None:
    x, loss = array(3), scalar()

    @ti.kernel
    def square(i: ti.i32):
        loss[None] += x[i] ** 2

    x.fill(2)
    for bad in (lambda: 1 / 0, lambda: square(3), lambda: square("a")):
        with pytest.raises((ZeroDivisionError, KernelIndexError, TypeError)), ti.ad.Tape(loss=loss):
            square(0)
            bad()
        assert not x.grad.to_numpy().any()
        with ti.ad.Tape(loss=loss):
            square(1)
        assert x.grad.to_numpy().tolist() == [0, 4, 0]


def test_a_tape_that_was_not_entered_cannot_be_left() -> None:
    with pytest.raises(DifferentiationError, match="was not entered"):
        ti.ad.Tape(scalar()).__exit__(None, None, None)


def test_a_tape_in_a_tape() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    x[None] = 2
    with ti.ad.Tape(loss=loss):
        square()
        with pytest.raises(DifferentiationError, match="inside of another"), ti.ad.Tape(loss=loss):
            pass
    assert x.grad[None] == 4


def test_bad_losses() -> None:
    for bad in (
        array(3),
        ti.Vector.field(2, ti.f64, shape=(), needs_grad=True),
        ti.field(ti.f64, shape=()),
        ti.field(ti.i32, shape=()),
        3,
        None,
        "loss",
    ):
        with pytest.raises(DifferentiationError):
            ti.ad.Tape(loss=bad)


def test_a_kernel_alone_does_not_go_through_a_field_without_gradient() -> None:
    """Temporary adjoints are the tape's: `kernel.grad` by itself has none."""
    x, y, z, loss = array(4), ti.field(ti.f64, shape=4), ti.field(ti.f64, shape=4), scalar()

    @ti.kernel
    def together():
        for i in x:
            y[i] = x[i] ** 2
        for i in y:
            z[i] = 3 * y[i]
        for i in z:
            loss[None] += z[i]

    with pytest.raises(DifferentiationError, match=r"'[yz]' has no gradient") as caught:
        together.grad()
    assert "needs_grad=True" in str(caught.value)


def test_what_is_not_differentiable_is_refused_with_its_line() -> None:
    x, loss = array(4), scalar()

    @ti.kernel
    def extreme():
        for i in x:
            ti.atomic_max(loss[None], x[i])
            loss[None] += x[i]

    with pytest.raises(DifferentiationError) as caught, ti.ad.Tape(loss=loss):
        extreme()
    assert "ti.atomic_max(loss[None], x[i])" in str(caught.value)


def test_reading_a_gradient_in_a_taped_kernel() -> None:
    x, loss = array(4), scalar()

    @ti.kernel
    def use():
        for i in x:
            loss[None] += x.grad[i] * x[i]

    with pytest.raises(DifferentiationError, match=r"reads the gradient '.*grad'"), ti.ad.Tape(loss=loss):
        use()


def test_gradient_of_a_reset_field() -> None:
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        loss[None] += x[None] ** 2

    square.grad()
    tape = ti.ad.Tape(loss=loss)
    ti.reset()
    for act in (square.grad, tape.__enter__, lambda: ti.ad.Tape(loss=loss).__enter__()):
        with pytest.raises((FieldError, DifferentiationError)):
            act()
    ti.init(default_fp=ti.f64)
    x, loss = scalar(), scalar()
    x[None] = 4
    with ti.ad.Tape(loss=loss):
        square()
    assert x.grad[None] == 8


def test_the_memory_limit_of_a_tape() -> None:
    ti.init(default_fp=ti.f64, memory_limit=100_000)
    x, loss = array(4000), scalar()

    @ti.kernel
    def add():
        for i in x:
            loss[None] += ti.sin(x[i])

    with pytest.raises(KernelMemoryError, match="100,000 bytes"), ti.ad.Tape(loss=loss):
        for k in range(10):
            add()
            x.fill(k)
    x.fill(0)
    with ti.ad.Tape(loss=loss):
        add()
    assert (x.grad.to_numpy() == 1).all()


def test_saved_values_past_the_limit() -> None:
    """The saved values of one gradient launch: refused with the limit, and the session goes on."""
    ti.init(default_fp=ti.f64, memory_limit=1_000_000)
    x, loss = array(1), scalar()

    @ti.kernel
    def long(n: ti.i32):
        for i in x:
            s = x[i]
            for _ in range(n):
                s = ti.sin(s) + 0.1 * s * s
            loss[None] += s

    x.fill(0.3)
    with pytest.raises(MemoryError, match=r"1,000,000|limit"), ti.ad.Tape(loss=loss):
        long(10_000_000)
    with ti.ad.Tape(loss=loss):
        long(10)
    assert np.isfinite(x.grad[0])
    assert x.grad[0] != 0
