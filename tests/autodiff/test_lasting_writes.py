"""What custom gradients leave in fields: the user's own stays, what the tape has computed or needs comes back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.user import array, scalar, session  # noqa: F401


class Model:
    """Steps `x[t + 1] = p x[t]`, and what a gradient may keep."""

    steps = 3

    def __init__(self) -> None:
        self.x, self.p, self.loss = array(self.steps + 1), ti.field(ti.f64, (), needs_grad=True, name="p"), scalar()
        self.calls, self.total = ti.field(ti.i32, ()), ti.field(ti.f64, 2)
        self.x[0], self.p[None] = 2.0, 3.0

    @ti.kernel
    def advance(self, t: ti.i32):
        self.x[t + 1] = self.p[None] * self.x[t]

    @ti.kernel
    def note(self):
        self.calls[None] += 1
        self.total[1] += self.p.grad[None]

    @ti.kernel
    def descend(self):
        self.p[None] -= 0.1 * self.p.grad[None]

    @ti.kernel
    def measure(self, t: ti.i32):
        self.loss[None] += self.x[t]

    def differentiate(self, after: Any, *, steps: int = 1) -> None:
        """A tape over steps whose custom gradient ends with `after`."""

        def forward(t: int) -> None:
            self.advance(t)

        def backward(t: int) -> None:
            self.advance.grad(t)
            after()

        step = ti.ad.grad_replaced(forward)
        ti.ad.grad_for(step)(backward)
        with ti.ad.Tape(self.loss):
            for t in range(steps):
                step(t)
            self.measure(steps)


def test_a_counter_and_a_sum_stay() -> None:
    model = Model()
    for _ in range(3):
        model.differentiate(model.note)
    assert (model.calls[None], model.total.to_numpy().tolist()) == (3, [0.0, 6.0])
    assert model.x.to_numpy()[:2].tolist() == [2.0, 6.0]


def test_they_grow_along_a_tape() -> None:
    model = Model()
    model.differentiate(model.note, steps=3)
    # d(p³ x₀)/dp arrives in three equal parts
    assert (model.calls[None], model.total[1]) == (3, 18.0 + 36.0 + 54.0)
    assert model.p.grad[None] == 54.0


def test_python_may_count() -> None:
    model = Model()

    def count() -> None:
        model.calls[None] += 1
        model.total.from_numpy(model.total.to_numpy() + 1.0)

    model.differentiate(count, steps=3)
    assert (model.calls[None], model.total.to_numpy().tolist()) == (3, [3.0, 3.0])


def test_a_step_of_an_optimiser_stays() -> None:
    model = Model()
    model.differentiate(model.descend)
    assert model.p[None] == pytest.approx(3.0 - 0.1 * 2.0)
    model.differentiate(model.descend)
    assert model.p[None] == pytest.approx(2.8 - 0.1 * 2.0)


def test_a_step_whose_parameter_is_still_needed_is_warned_of() -> None:
    model = Model()
    with pytest.warns(UserWarning, match="leaves in 'p' here is undone when it returns") as caught:
        model.differentiate(model.descend, steps=3)
    assert [warning.filename for warning in caught] == [__file__]
    assert "self.p[None] -= 0.1" in str(caught[0].message)
    # The gradient is right: each step's was taken at p = 3. The change of the first step, which ran last, is the
    # one that nothing needed the old value of.
    assert model.p.grad[None] == 54.0
    assert model.p[None] == pytest.approx(3.0 - 0.1 * 54.0)


def test_elements_count_by_themselves() -> None:
    """Each step has a parameter of its own, which its gradient may change."""
    x, loss = array(4), scalar()
    u = ti.field(ti.f64, 3, needs_grad=True)

    @ti.kernel
    def advance(t: ti.i32):
        x[t + 1] = u[t] * x[t]

    @ti.kernel
    def descend(t: ti.i32):
        u[t] -= u.grad[t]

    @ti.kernel
    def measure():
        loss[None] += x[3]

    @ti.ad.grad_replaced
    def step(t: int) -> None:
        advance(t)

    @ti.ad.grad_for(step)
    def back(t: int) -> None:
        advance.grad(t)
        descend(t)

    x[0] = 1.0
    u.from_numpy(np.array([2.0, 3.0, 5.0]))
    with ti.ad.Tape(loss):
        for t in range(3):
            step(t)
        measure()
    assert u.grad.to_numpy().tolist() == [15.0, 10.0, 6.0]
    assert u.to_numpy().tolist() == [2.0 - 15.0, 3.0 - 10.0, 5.0 - 6.0]
    assert x.to_numpy().tolist() == [1.0, 2.0, 6.0, 30.0]


def test_what_the_tape_computed_comes_back() -> None:
    """A gradient that computes a state again leaves no trace of that, whichever step it was."""
    state, x, loss = array(2), scalar(), scalar()

    @ti.kernel
    def advance(t: ti.i32):
        for i in state:
            state[i] = x[None] * (t + 1)

    @ti.kernel
    def measure():
        for i in state:
            loss[None] += state[i]

    @ti.ad.grad_replaced
    def step(t: int) -> None:
        advance(t)

    @ti.ad.grad_for(step)
    def back(t: int) -> None:
        advance(7)
        advance.grad(t)

    x[None] = 1.0
    with ti.ad.Tape(loss):
        step(0)
        step(1)
        measure()
    assert state.to_numpy().tolist() == [2.0, 2.0]


def test_later_launches_do_not_count() -> None:
    """What only later operations have used is over when the gradient runs."""
    model, log = Model(), scalar()

    @ti.kernel
    def read_log():
        model.loss[None] += 0.0 * log[None]

    @ti.kernel
    def write_log():
        log[None] += 1.0

    @ti.ad.grad_replaced
    def step() -> None:
        model.advance(0)

    @ti.ad.grad_for(step)
    def back() -> None:
        write_log()

    with ti.ad.Tape(model.loss):
        step()
        read_log()
    assert log[None] == 1.0
    with pytest.warns(UserWarning, match="is undone"), ti.ad.Tape(model.loss):
        read_log()
        step()
    assert log[None] == 1.0


def test_an_error_undoes_everything() -> None:
    model = Model()

    def fail() -> None:
        model.note()
        raise RuntimeError("wrong")

    with pytest.raises(RuntimeError, match="wrong"):
        model.differentiate(fail)
    assert model.calls[None] == 0


@pytest.mark.parametrize("memory", [1, 3])
def test_in_a_checkpointed_loop(memory: int) -> None:
    model = Model()
    state, p, loss = array(1), ti.field(ti.f64, (), needs_grad=True, name="p"), scalar()

    @ti.kernel
    def advance():
        state[0] = p[None] * state[0]

    @ti.kernel
    def descend():
        p[None] -= 0.1

    @ti.kernel
    def measure():
        loss[None] += state[0]

    def differentiate(after: Any) -> None:
        @ti.ad.grad_replaced
        def step(t: int) -> None:
            advance()

        @ti.ad.grad_for(step)
        def back(t: int) -> None:
            old = state.grad[0]
            state.grad[0] = old * p[None]
            after()

        state[0], p[None] = 1.0, 2.0
        with ti.ad.Tape(loss):
            ti.ad.checkpoint(step, 5, snapshots=memory)
            measure()
        assert state.grad[0] == 32.0

    differentiate(model.note)
    assert model.calls[None] == 5
    with pytest.warns(UserWarning, match="leaves in 'p' here is undone"):
        differentiate(descend)
    assert p[None] == 2.0


def test_in_a_captured_training_step() -> None:
    model = Model()

    def forward() -> None:
        model.advance(0)

    def backward() -> None:
        model.advance.grad(0)
        model.note()
        model.descend()

    step = ti.ad.grad_replaced(forward)
    ti.ad.grad_for(step)(backward)

    def train() -> None:
        with ti.ad.Tape(model.loss):
            step()
            model.measure(1)

    captured = ti.capture(train)
    for _ in range(5):
        captured()
    assert model.calls[None] == 5
    assert model.p[None] == pytest.approx(3.0 - 5 * 0.1 * 2.0)


def test_scratch_is_the_gradients_own_and_comes_back() -> None:
    model, scratch = Model(), array(1)
    scratch.fill(4.0)

    @ti.ad.grad_replaced(scratch=scratch)
    def step() -> None:
        model.advance(0)

    @ti.ad.grad_for(step)
    def back() -> None:
        scratch.fill(1.0)

    with ti.ad.Tape(model.loss):
        step()
        model.measure(1)
    assert scratch[0] == 4.0


def test_random_programs_against_the_rule() -> None:
    """Kernels in a random order write to elements of a field, and custom gradients add to elements of it: what no
    operation before the custom one uses, and none has computed anew since, keeps the sum.
    """
    random = np.random.default_rng(7)
    n = 6
    x, loss = scalar(), scalar()
    f = ti.field(ti.f64, n, name="f")

    @ti.kernel
    def write(k: ti.i32, value: ti.f64):
        f[k] = value

    @ti.kernel
    def read(k: ti.i32):
        loss[None] += f[k] * x[None]

    @ti.kernel
    def add(k: ti.i32):
        for _ in range(2):
            f[k] += 0.5

    @ti.ad.grad_replaced
    def step(k: int) -> None:
        """Uses nothing."""

    @ti.ad.grad_for(step)
    def back(k: int) -> None:
        add(k)

    for _ in range(30):
        program = [(str(random.choice(["write", "read", "step"])), int(random.integers(n))) for _ in range(8)]
        f.from_numpy(np.arange(n) * 10.0)
        expected, needed = np.arange(n) * 10.0, set()
        for position, (what, k) in enumerate(program):
            if what == "write":
                expected[k] = 100.0 + position
        gained = np.zeros(n)
        for position, (what, k) in enumerate(program):
            if what == "step" and k not in needed and ("write", k) not in program[position:]:
                gained[k] += 1
            if what != "step":
                needed.add(k)
        lost = any(
            what == "step" and k in [q for w, q in program[:p] if w != "step"] for p, (what, k) in enumerate(program)
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with ti.ad.Tape(loss):
                for position, (what, k) in enumerate(program):
                    if what == "write":
                        write(k, 100.0 + position)
                    else:
                        (read if what == "read" else step)(k)
        assert f.to_numpy().tolist() == (expected + gained).tolist(), program
        if lost:
            assert any("is undone" in str(one.message) for one in caught), program


def test_the_warning_may_be_an_error() -> None:
    model = Model()
    with warnings.catch_warnings(), pytest.raises(UserWarning):
        warnings.simplefilter("error")
        model.differentiate(model.descend, steps=2)
    assert model.x.to_numpy()[:3].tolist() == [2.0, 6.0, 18.0]
