"""`Tape(loss, grad_check=...)`: the launches run again, and differences of the loss are compared with the gradients."""

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError


def test_right_gradients_pass_and_everything_is_left_as_the_tape_leaves_it():
    x, y, w, loss = array(4), array(4), scalar(), scalar()

    @ti.kernel
    def step(k: float):
        for i in x:
            x[i] = ti.sin(x[i]) * w[None] + k

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i] ** 2 * y[i]

    def run() -> None:
        step(0.5)
        x[2] = 3.0
        step(0.25)
        y.copy_from(x)
        step(0.125)
        w.fill(0.5)
        step(0.0)
        total()

    x.from_numpy(np.linspace(0, 1, 4))
    w[None] = 0.75
    with ti.ad.Tape(loss, True, False, [x, w]) as tape:
        run()
    gradients, values = (x.grad.to_numpy(), w.grad[None]), (x.to_numpy(), loss[None])
    assert tape.grad_report is not None and tape.grad_report.ok
    assert {e.field for e in tape.grad_report.elements} <= {x.name, w.name} and len(tape.grad_report.elements) == 5
    # `copy_from` passes gradients through; without the check the same comes out.
    x.from_numpy(np.linspace(0, 1, 4))
    w[None] = 0.75
    with ti.ad.Tape(loss):
        run()
    np.testing.assert_array_equal(x.grad.to_numpy(), gradients[0])
    assert w.grad[None] == gradients[1]
    np.testing.assert_array_equal(x.to_numpy(), values[0])
    assert loss[None] == values[1]


def test_elements_that_python_assigns_mean_what_they_mean_to_the_tape():
    """A constant in place of the old value; the old value shifted, where it was read; and where no launch has used the
    field yet, what the program begins with.
    """
    x, y, loss = array(3), array(3), scalar()

    @ti.kernel
    def add(weight: float):
        for i in x:
            loss[None] += weight * x[i] ** 2 * (1.0 + y[i])

    x.fill(2.0)
    with ti.ad.Tape(loss, grad_check=[x]) as tape:
        x[2] = 5.0
        add(1.0)
        x[0] = 3.0
        x[1] += 1.0
        add(10.0)
    assert tape.grad_report is not None and tape.grad_report.ok
    assert x.grad.to_numpy().tolist() == [4.0, 4.0 + 60.0, 10.0 + 100.0]


def test_a_wrong_gradient_is_raised_with_its_worst_element():
    x, b, loss = array(3), scalar(), scalar()

    @ti.kernel
    def products():
        for i in x:
            loss[None] += x[i] * b[None]

    @ti.kernel
    def more():
        b[None] += 100.0

    x.fill(1.0)
    b[None] = 10.0
    with pytest.raises(DifferentiationError) as wrong, ti.ad.Tape(loss, grad_check=[x], on_overwrite="unchecked"):
        products()
        more()
    report = wrong.value.report  # type: ignore[attr-defined]
    assert report.worst.reverse == 110.0 and report.worst.difference == pytest.approx(10.0)
    assert b[None] == 110.0 and loss[None] == 30.0
    with ti.ad.Tape(loss, grad_check=True) as tape:  # the tape that keeps overwritten values is right
        products()
        more()
    assert tape.grad_report is not None and len(tape.grad_report.elements) == 4


def test_numpy_arguments_and_random_numbers_are_the_same_again():
    x, loss = array(5), scalar()

    @ti.kernel
    def noisy(weights: ti.types.ndarray(dtype=ti.f64, ndim=1)):
        for i in x:
            loss[None] += weights[i] * ti.exp(x[i] * ti.random(ti.f64))
            weights[i] = 0.0

    weights = np.arange(5.0)
    x.fill(0.5)
    with ti.ad.Tape(loss, grad_check=[x]) as tape:
        noisy(weights)
        noisy(weights)
    assert tape.grad_report is not None and tape.grad_report.ok
    assert (weights == 0).all() and x.grad[4] > 1.0


def test_what_cannot_be_checked_is_refused():
    x, loss = array(3), scalar()
    plain = ti.field(ti.f64, shape=3)

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.ad.grad_replaced
    def own():
        squares()

    @ti.ad.grad_for(own)
    def back():
        squares.grad()

    refused = pytest.raises(DifferentiationError, match="gradient of its own in place of that of 'own'")
    with refused, ti.ad.Tape(loss, grad_check=[x]):
        own()
    for wrong in ([plain], [3.0]):
        with pytest.raises(DifferentiationError, match="list of fields with gradients"):
            ti.ad.Tape(loss, grad_check=wrong)
    single = ti.field(ti.f32, shape=3, needs_grad=True)

    @ti.kernel
    def mixed():
        for i in single:
            loss[None] += single[i]

    with pytest.raises(DifferentiationError, match="compares in f64"), ti.ad.Tape(loss, grad_check=[single]):
        mixed()
