"""`ti.ad.gradcheck` finds what is wrong, names it, and is silent about what is right."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


def _both(*shape: int) -> Any:
    return ti.field(ti.f64, shape, needs_grad=True, needs_dual=True)


def test_a_right_gradient_agrees_with_differences_and_forward_mode() -> None:
    n = 5
    x, y, w, total = _both(n), _both(n), _both(), _both()

    @ti.kernel
    def first(a: ti.f64):
        for i in x:
            y[i] = a * ti.sin(x[i]) + ti.exp(-x[(i + 1) % n])

    @ti.kernel
    def second():
        for i in y:
            total[None] += y[i] ** 2 * w[None]

    def run(a: float) -> None:
        first(a)
        second()

    x.from_numpy(np.linspace(-1, 2, n))
    y.fill(3)
    w[None] = 0.7
    x.grad.fill(4)
    x.dual.fill(6)
    report = ti.ad.gradcheck(run, [x, w], total, [2.0])
    assert report
    assert report.ok
    assert len(report.elements) == report.total == n + 1
    assert report.forward is not None
    assert report.forward[0] == pytest.approx(report.forward[1], rel=1e-12)
    assert max(e.error for e in report.elements) < 1e-7
    assert "6 of 6 elements" in repr(report)
    # Everything is as it was.
    assert x.to_numpy().tolist() == np.linspace(-1, 2, n).tolist()
    assert (y.to_numpy() == 3).all()
    assert (x.grad.to_numpy() == 4).all()
    assert (x.dual.to_numpy() == 6).all()


def _staircase(steepness: float) -> tuple[Any, Any, Any, Any]:
    """Fine steps, which look like a slope to differences: the gradient is zero almost everywhere, and useless."""
    x, y, total = array(3), array(3), scalar()

    @ti.kernel
    def innocent():
        for i in x:
            y[i] += x[i] ** 2

    @ti.kernel
    def guilty():
        for i in x:
            y[i] = x[i] ** 2
            if i == 1:
                y[i] += ti.floor(x[i] * steepness) / steepness

    @ti.kernel
    def add():
        for i in y:
            total[None] += y[i]

    def run() -> None:
        guilty()
        innocent()
        add()

    x.from_numpy(np.array([0.3, 0.5, 0.9]))
    return run, x, total, guilty


def test_the_worst_element_and_its_kernel_are_named() -> None:
    run, x, total, _ = _staircase(1e12)
    with pytest.raises(DifferentiationError, match="gradients disagree") as caught:
        ti.ad.gradcheck(run, x, total)
    report = caught.value.report
    assert not report
    assert report.worst.index == (1,)
    assert report.worst.field == "x" or report.worst.field == "field"
    assert report.worst.reverse == pytest.approx(2.0)
    assert report.worst.difference == pytest.approx(3.0, rel=1e-6)
    assert sum(not e.agrees for e in report.elements) == 1
    assert report.suspects[0].kernel == "guilty"
    assert report.suspects[0].launch == 1
    assert [s.kernel for s in report.suspects] == ["guilty"]
    assert "def guilty" in str(caught.value)
    assert "kernel 'guilty'" in repr(report)
    assert not ti.ad.gradcheck(run, x, total, raises=False)
    assert x.to_numpy().tolist() == [0.3, 0.5, 0.9]


def test_a_wrong_replacement_is_blamed() -> None:
    x, total = array(3), scalar()

    @ti.kernel
    def square():
        for i in x:
            total[None] += x[i] ** 2

    @ti.ad.grad_replaced
    def step() -> None:
        square()

    @ti.ad.grad_for(step)
    def step_gradient() -> None:
        square.grad()
        square.grad()

    x.from_numpy(np.array([1.0, 2.0, 3.0]))
    report = ti.ad.gradcheck(step, x, total, raises=False)
    assert not report
    assert "replaced gradient of 'step'" in repr(report)
    ti.ad.grad_for(step)(lambda: square.grad())
    assert ti.ad.gradcheck(step, x, total)


def test_what_python_computes_in_between_is_blamed() -> None:
    x, y, total = scalar(), scalar(), scalar()

    @ti.kernel
    def use():
        total[None] += y[None] * x[None]

    def run() -> None:
        y[None] = float(x[None]) ** 2
        use()

    x[None] = 2.0
    with pytest.warns(UserWarning, match="its derivative is lost"):
        report = ti.ad.gradcheck(run, x, total, raises=False)
    assert report.worst.reverse == pytest.approx(4.0)
    assert report.worst.difference == pytest.approx(12.0)
    assert "what Python does between" in repr(report)


def test_a_subgradient_at_a_kink_is_right() -> None:
    x, total = array(3), scalar()

    @ti.kernel
    def run():
        for i in x:
            total[None] += ti.max(x[i], 0.0) * 3 + ti.abs(x[i])

    x.from_numpy(np.array([-1.0, 0.0, 2.0]))
    report = ti.ad.gradcheck(run, x, total)
    assert not report.unsettled
    assert len(report.elements) == 3


def test_large_fields_are_sampled_and_checked_along_a_direction() -> None:
    n = 1000
    x, total = array(n), scalar()

    @ti.kernel
    def run():
        for i in x:
            total[None] += ti.sin(x[i])

    @ti.kernel
    def wrong_at_one():
        for i in x:
            if i == 501:
                total[None] += ti.floor(x[i] * 1e12) / 1e12
            else:
                total[None] += ti.sin(x[i])

    x.from_numpy(np.linspace(0, 1, n))
    report = ti.ad.gradcheck(run, x, total, elements=10)
    assert (len(report.elements), report.total) == (11, n)
    # No sample stands at the wrong element, but the direction has a part in it.
    report = ti.ad.gradcheck(wrong_at_one, x, total, elements=10, raises=False)
    assert [e.agrees for e in report.elements] == [False] + [True] * 10
    assert "random direction" in repr(report.worst)


def test_nan_is_no_agreement() -> None:
    x, total = array(2), scalar()

    @ti.kernel
    def run():
        for i in x:
            total[None] += ti.sqrt(x[i])

    x.from_numpy(np.array([4.0, 0.0]))
    report = ti.ad.gradcheck(run, x, total, raises=False)
    assert not report
    assert report.worst.index == (1,)


def test_what_is_refused() -> None:
    x, y, total = ti.field(ti.f32, 3, needs_grad=True), array(3), scalar()
    z = ti.field(ti.f32, 3, needs_grad=True)

    @ti.kernel
    def through():
        for i in y:
            z[i] = y[i]
        for i in z:
            total[None] += z[i]

    with pytest.raises(DifferentiationError, match="'x' is a field of f32"):
        ti.ad.gradcheck(through, x, total)
    with pytest.raises(DifferentiationError, match="'z' is a field of f32"):
        ti.ad.gradcheck(through, y, total)
    with pytest.raises(DifferentiationError, match="single number"):
        ti.ad.gradcheck(through, y, y)
    with ti.ad.Tape(loss=total), pytest.raises(DifferentiationError, match="inside of a tape"):
        ti.ad.gradcheck(through, y, total)


def test_forward_mode_that_is_not_possible_is_said() -> None:
    x, y, total = _both(2), array(2), _both()

    @ti.kernel
    def first():
        for i in x:
            y[i] = x[i] ** 2

    @ti.kernel
    def second():
        for i in y:
            total[None] += y[i]

    def run() -> None:
        first()
        second()

    x.fill(1)
    assert ti.ad.gradcheck(run, x, total).forward is not None  # `y` has a temporary dual
    x, y = array(2), array(2)
    x.fill(1)
    report = ti.ad.gradcheck(run, x, total)
    assert report.forward is None
    assert "no dual" in report.forward_note
    assert "not compared" in repr(report)


def test_random_draws_are_the_same_in_every_run() -> None:
    x, total = array(3), scalar()

    @ti.kernel
    def run():
        for i in x:
            total[None] += x[i] ** 2 * ti.random(ti.f64)

    x.fill(2)
    assert ti.ad.gradcheck(run, x, total)
