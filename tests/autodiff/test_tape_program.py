"""`tape.program()`: what a reverse sweep does, as text. Run by itself, the program leaves what the sweep does, bit for
bit.

    pytest tests/autodiff/test_tape_program.py --random-programs 5000     a program for every eighth
"""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_random_tapes import Trial
from tests.autodiff.user import array, scalar, session  # noqa: F401
from tinote.errors import DifferentiationError
from tinote.lang.ad.journal.sweep_program import kept_by, sweep_program
from tinote.lang.capture.targets import prepared
from tinote.program import operations as ops
from tinote.program.parse import parse
from tinote.program.program import Program
from tinote.program.text import show
from tinote.program.verify import verify
from tinote.runtime.memory import Memory


def check_program(tape: Any) -> Program:
    """The program of a sweep does what the sweep does, and is what its text says."""
    with tape.sweeping_again() as before:
        tape.begin_again(before)
        start = [(f.memory.whole, f.memory.whole.copy()) for f in list(ti.lang.session.state.session.fields)]
        tables = sweep_program(tape)
        memories = [memory for memory in tables.memories if memory is not None]
        left = [memory.copy() for memory in memories]
        for memory, copy in start:
            memory.restore(copy)
        plan = tables.plan
        verify(plan)
        assert show(parse(show(plan))) == show(plan)
        ready = prepared(plan, tables.natives, tables.memories, 1)
        kept = [held for held, _ in kept_by(tape)]
        for number, block in tables.borrowed_blocks.items():
            held = kept[number]
            ready.point(block, held.begin if isinstance(held, Memory) else held.ctypes.data)
        ready.run()
        for memory, copy in zip(memories, left, strict=True):
            assert memory.view() == copy.view(), show(plan)
    return plan


def steps_of(plan: Program) -> list[str]:
    return [type(step).__name__ for step in plan.root.steps]


def test_a_sweep_through_launches_and_numbers_of_python() -> None:
    x, y, loss = array(4), array(4), scalar()

    @ti.kernel
    def sines(by: ti.f64):
        for i in x:
            y[i] = by * ti.sin(x[i])

    @ti.kernel
    def back():
        for i in x:
            x[i] = x[i] * y[i]

    @ti.kernel
    def total() -> ti.f64:
        found = 0.0
        for i in x:
            found += x[i]
        return found

    x.from_numpy(np.linspace(0.5, 1.5, 4))
    with ti.ad.Tape(loss, keep=True) as tape:
        for _ in range(2):
            sines(0.5)
            back()
        loss[None] = 3 * total() + x[1] ** 2
    gradient, values = x.grad.to_numpy(), x.to_numpy()
    plan = check_program(tape)
    launched = [plan.codes[step.code].name for step in plan.root.steps if isinstance(step, ops.Launch)]
    assert launched == ["total.grad", "back.grad", "sines.grad", "back.grad", "sines.grad"]
    assert {"LoadElement", "Compute", "Fill", "Copy"} < set(steps_of(plan))
    text = tape.program()
    assert text.startswith("block @saved_") and "launch sines.grad (0.5f64)" in text
    np.testing.assert_array_equal(x.grad.to_numpy(), gradient)
    np.testing.assert_array_equal(x.to_numpy(), values)


def test_a_tape_that_keeps_nothing_has_its_program_where_nothing_was_overwritten() -> None:
    x, loss = array(3), scalar()

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    with ti.ad.Tape(loss) as tape:
        squares()
    assert steps_of(check_program(tape)) == ["Launch", "End"]


def test_what_has_no_program_is_refused() -> None:
    x, loss = array(3), scalar()

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.kernel
    def halve():
        for i in x:
            x[i] = x[i] * x[i] / 2

    unused = ti.ad.Tape(loss)
    with pytest.raises(DifferentiationError, match="this tape has recorded nothing yet"):
        unused.program()
    with ti.ad.Tape(loss) as tape:
        squares()
        with pytest.raises(DifferentiationError, match="cannot run inside of a tape"):
            tape.program()
    with ti.ad.Tape(loss) as tape:
        halve()
        squares()
    with pytest.raises(DifferentiationError, match="it let go of overwritten values when it closed"):
        tape.program()


def test_gradients_that_are_not_launches_are_refused() -> None:
    x, loss = array(3), scalar()

    @ti.kernel
    def squares():
        for i in x:
            loss[None] += x[i] ** 2

    @ti.ad.grad_replaced
    def forward():
        squares()

    @ti.ad.grad_for(forward)
    def backward():
        x.grad.from_numpy(2 * x.to_numpy())

    with ti.ad.Tape(loss, keep=True) as tape:
        forward()
    with pytest.raises(DifferentiationError, match="has no program: 'forward' has a gradient of its own"):
        tape.program()


def test_a_sweep_that_has_none_runs_to_its_end_and_leaves_everything_as_it_was() -> None:
    x, loss = array(2), scalar()
    v = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def squared():
        v[None] = v[None] * v[None]

    @ti.kernel
    def total():
        loss[None] += v[None].sum()

    x.from_numpy(np.array([0.5, 1.5]))
    with ti.ad.Tape(loss, keep=True) as tape:
        v[None] = ti.Vector([x[0], 2 * x[1]])
        squared()
        total()
    fields = (x, v, loss, x.grad, v.grad, loss.grad)
    left = [field.to_numpy() for field in fields]
    np.testing.assert_allclose(x.grad.to_numpy(), [2 * 0.5, 8 * 1.5])
    with pytest.raises(DifferentiationError, match="has no program: the derivatives of several numbers"):
        tape.program()
    for field, values in zip(fields, left, strict=True):
        np.testing.assert_array_equal(field.to_numpy(), values)


def test_random_tapes(random_programs: range) -> None:
    """The programs of random tapes, of which some have none."""
    checked = 0
    for seed in random_programs[::8]:
        trial = Trial(seed)
        try:
            with ti.ad.Tape(trial.loss, keep=True) as tape:
                trial.launch()
        except DifferentiationError:
            continue
        try:
            check_program(tape)
        except DifferentiationError as error:
            assert "has no program" in str(error), f"seed {seed}"
            continue
        checked += 1
    assert checked
