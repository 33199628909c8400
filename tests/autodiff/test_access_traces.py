"""A tape takes over from the one before what it knows of the same launches, and nothing more: gradients are right
however programs part, and what is kept is the same as if there had been no tape before.
"""

import contextlib
import threading
from collections.abc import Callable

import numpy as np
import pytest

import tinote as ti
from tinote.errors import TinoteError
from tinote.lang.ad.memory import access_trace

N, STEPS = 5, 6


class Program:
    """Squares in slices of their own: x[t + 1] = x[t]². The loss is the sum of one slice."""

    def __init__(self) -> None:
        ti.init(default_fp=ti.f64)
        self.x = x = ti.field(ti.f64, shape=(STEPS + 1, N), needs_grad=True)
        self.loss = loss = ti.field(ti.f64, shape=(), needs_grad=True)
        self.start = np.linspace(0.5, 1.2, N)

        @ti.kernel
        def square(source: ti.i32, target: ti.i32):
            for i in range(N):
                x[target, i] = x[source, i] ** 2

        @ti.kernel
        def add(t: ti.i32):
            for i in range(N):
                loss[None] += x[t, i]

        @ti.kernel
        def divide(t: ti.i32, by: ti.i32):
            for i in range(N):
                x[t, i] = x[t, i] * (8 // by)

        self.square, self.add, self.divide = square, add, divide

    def gradient(self, run: Callable[[], None]) -> tuple[np.ndarray, int]:
        """That by the first slice, and the bytes that the tape kept."""
        self.x.fill(0)
        for i in range(N):
            self.x[0, i] = self.start[i]
        with ti.ad.Tape(self.loss) as tape:
            run()
        return self.x.grad.to_numpy()[0], tape.copied_bytes

    def forward(self, steps: int = STEPS) -> None:
        for t in range(steps):
            self.square(t, t + 1)

    def power(self, k: int) -> np.ndarray:
        """The derivative of the sum of all k-th powers."""
        return k * self.start ** (k - 1)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setattr(access_trace, "_harmless", {})
    return Program()


def plain(program: Program) -> None:
    program.forward()
    program.add(STEPS)


def test_the_same_launches_again(program: Program) -> None:
    for _ in range(3):
        found, kept = program.gradient(lambda: plain(program))
        np.testing.assert_allclose(found, program.power(2**STEPS), rtol=1e-12)
        assert kept == 0
    assert [len(launches) for launches in access_trace._harmless.values()] == [STEPS + 1]


def overwritten_by_a_launch(program: Program) -> None:
    program.forward()
    program.square(0, 3)  # x[3] was needed: it is x[0]² from now on
    program.square(3, 4)
    program.add(4)


def overwritten_by_python(program: Program) -> None:
    program.forward()
    program.add(STEPS)
    program.x.fill(7)


def one_element_overwritten_by_python(program: Program) -> None:
    program.forward(2)
    program.x[1, 2] = 100.0
    program.square(2, 3)
    program.add(3)


def overwritten_by_another_thread(program: Program) -> None:
    program.forward()
    other = threading.Thread(target=program.square, args=(STEPS, 1))
    other.start()
    other.join()
    program.add(STEPS)


def backwards_over_itself(program: Program) -> None:
    program.forward(3)
    program.square(3, 0)
    program.add(0)


PARTINGS = (
    (overwritten_by_a_launch, 4),
    (overwritten_by_python, 2**STEPS),
    (one_element_overwritten_by_python, 8),
    (overwritten_by_another_thread, 2**STEPS),
)


@pytest.mark.parametrize(("run", "k"), PARTINGS, ids=[run.__name__ for run, _ in PARTINGS])
def test_a_program_that_parts_from_the_one_before(program: Program, run: Callable[[Program], None], k: int) -> None:
    alone, kept_alone = program.gradient(lambda: run(program))
    np.testing.assert_allclose(alone, program.power(k), rtol=1e-12)
    assert kept_alone > 0
    program.gradient(lambda: plain(program))
    for _ in range(2):
        found, kept = program.gradient(lambda: run(program))
        np.testing.assert_allclose(found, alone, rtol=1e-12)
        assert kept == kept_alone
        program.gradient(lambda: plain(program))


def test_a_launch_that_overwrites_the_start(program: Program) -> None:
    for _ in range(3):
        program.gradient(lambda: plain(program))
        found, kept = program.gradient(lambda: backwards_over_itself(program))
        # The start is overwritten: by what it is at the end, nothing depends on it any more.
        np.testing.assert_allclose(found, program.power(16), rtol=1e-12)
        assert kept == 8 * N


def test_a_launch_that_fails_does_not_count(program: Program) -> None:
    def run(by: int) -> None:
        program.forward(2)
        with contextlib.suppress(TinoteError):
            program.divide(2, by)  # by zero: the launch ends before it writes
        program.square(2, 3)
        program.square(0, 2)
        program.add(3)

    for by in (0, 0, 8, 0):
        found, _ = program.gradient(lambda by=by: run(by))
        np.testing.assert_allclose(found, program.power(8), rtol=1e-12)


def test_an_unchecked_tape_tells_the_default_nothing(program: Program) -> None:
    def run() -> None:
        program.forward(2)
        program.square(2, 1)
        program.add(2)

    for _ in range(2):
        with ti.ad.Tape(program.loss, on_overwrite="unchecked"):
            run()
        found, _ = program.gradient(run)
        np.testing.assert_allclose(found, program.power(4), rtol=1e-12)


def test_long_recordings_and_many_of_them(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_trace, "_LONGEST", 3)
    monkeypatch.setattr(access_trace, "_MOST_TRACES", 2)
    for first in (0, 1, 2, 0, 1, 2):

        def run(first: int = first) -> None:
            program.square(first, first + 1)
            plain(program)

        found, _ = program.gradient(run)
        np.testing.assert_allclose(found, program.power(2**STEPS), rtol=1e-12)
        assert len(access_trace._harmless) <= 2
        assert all(len(launches) <= 3 for launches in access_trace._harmless.values())
