"""A tape takes over from the one before what it knows of the same launches, and nothing more: gradients are right
however programs part, and what is kept is the same as if there had been no tape before.
"""

import contextlib
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelMemoryError, TinoteError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.memory import undo
from tinote.lang.session.state import session

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

    def begin(self) -> None:
        self.x.fill(0)
        for i in range(N):
            self.x[0, i] = self.start[i]

    def gradient(self, run: Callable[[], None]) -> tuple[np.ndarray, int]:
        """That by the first slice, and the bytes that the tape kept."""
        self.begin()
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
    monkeypatch.setattr(undo, "_known", {})
    return Program()


def plain(program: Program) -> None:
    program.forward()
    program.add(STEPS)


def test_the_same_launches_again(program: Program) -> None:
    for _ in range(3):
        found, kept = program.gradient(lambda: plain(program))
        np.testing.assert_allclose(found, program.power(2**STEPS), rtol=1e-12)
        assert kept == 0
    assert [len(steps.launches) for steps in undo._known.values()] == [STEPS + 1]


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


def in_place(program: Program) -> None:
    """Each launch overwrites what the one before needs; the loss is x[0] to the power of 2**STEPS."""
    for _ in range(STEPS):
        program.square(0, 0)
    program.add(0)


def test_what_launches_overwrite_is_found_out_once(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    find = undo.UndoLog.overwrite

    def noting(log: undo.UndoLog, buffer: Buffer, *rest: Any, **options: Any) -> int:
        asked.append(buffer)
        return find(log, buffer, *rest, **options)

    monkeypatch.setattr(undo.UndoLog, "overwrite", noting)
    for repetition in range(3):
        asked.clear()
        found, kept = program.gradient(lambda: in_place(program))
        np.testing.assert_allclose(found, program.power(2**STEPS), rtol=1e-12)
        assert kept == STEPS * 8 * N
        assert not repetition or program.x.buffer not in asked


def test_programs_that_overwrite_and_part(program: Program) -> None:
    """Whatever the recordings before were, each keeps what it keeps alone, and its gradient is right."""
    choose = random.Random(0)
    expected: dict[tuple[int, ...], tuple[np.ndarray, int]] = {}
    targets = [tuple(choose.randrange(3) for _ in range(6)) for _ in range(5)]
    programs = [one[:k] + other[k:] for one in targets for other in targets for k in (2, 4)] * 2

    def run(places: tuple[int, ...]) -> None:
        here = 0
        for number, place in enumerate(places):
            program.square(here, place)
            here = place
            if number == 3 and sum(places) % 3 == 0:
                program.x[here, 1] = 0.9
        program.add(here)

    for places in programs:
        known = expected.get(places)
        if known is None:
            undo._known.clear()
            expected[places] = program.gradient(lambda places=places: run(places))
        else:
            found, kept = program.gradient(lambda places=places: run(places))
            np.testing.assert_array_equal(found, known[0])
            assert kept == known[1]
    for places, (found, _) in expected.items():
        exact = program.power(2 ** len(places))
        if sum(places) % 3 == 0:
            exact[1] = 0
        np.testing.assert_allclose(found, exact, rtol=1e-12)


def in_place_and_on(program: Program) -> None:
    program.square(0, 0)
    program.square(0, 2)
    program.add(2)


def kept_and_searched(program: Program, run: Callable[[Program], None]) -> None:
    with ti.ad.Tape(program.loss, keep=True) as tape:
        run(program)
    assert not ti.ad.find_nan(tape)


def kept_and_reported(program: Program, run: Callable[[Program], None]) -> None:
    with ti.ad.Tape(program.loss, keep=True) as tape:
        run(program)
    assert ti.ad.sweep_report(tape)


def checked(program: Program, run: Callable[[Program], None]) -> None:
    """Stops at the first value that is overwritten."""
    with contextlib.suppress(TinoteError), ti.ad.Tape(program.loss, on_overwrite="error"):
        run(program)


def compared(program: Program, run: Callable[[Program], None]) -> None:
    with ti.ad.Tape(program.loss, grad_check=[program.x]):
        run(program)


def doubly_differentiated(program: Program, run: Callable[[Program], None]) -> None:
    ti.ad.hvp(lambda: run(program), wrt=program.x, loss=program.loss)(np.ones(program.x.shape))


def checkpointed(program: Program, run: Callable[[Program], None]) -> None:
    with ti.ad.Tape(program.loss):
        ti.ad.checkpoint(lambda t: run(program), 2)


OTHER_KINDS = (kept_and_searched, kept_and_reported, checked, compared, doubly_differentiated, checkpointed)


@pytest.mark.parametrize("seed", range(6))
def test_recordings_of_other_kinds_between_plain_tapes(program: Program, seed: int) -> None:
    """What another kind of recording keeps, and what it leaves to be found, changes no plain tape after it."""
    choose = random.Random(seed)
    programs = (plain, in_place, in_place_and_on, backwards_over_itself)
    alone: dict[Any, tuple[np.ndarray, int]] = {}
    for run in programs:
        undo._known.clear()
        alone[run] = program.gradient(lambda run=run: run(program))
    undo._known.clear()
    for _ in range(12):
        kind, run = choose.choice(OTHER_KINDS), choose.choice(programs)
        program.begin()
        kind(program, run)
        for then in choose.sample(programs, 2):
            found, kept = program.gradient(lambda then=then: then(program))
            np.testing.assert_array_equal(found, alone[then][0])
            assert kept == alone[then][1], (kind.__name__, run.__name__, then.__name__)


def test_a_known_launch_that_cannot_be_kept_does_not_count(program: Program) -> None:
    """What it would have overwritten is still needed when another launch does."""

    def run(limit: int) -> None:
        program.square(0, 1)
        session.config, config = session.config._replace(memory_limit=limit), session.config
        with contextlib.suppress(KernelMemoryError):
            program.square(1, 0)
        session.config = config
        program.square(0 if limit else 1, 2)
        program.square(2, 0)
        program.add(0)

    for limit, k in ((1 << 20, 16), (0, 8), (1 << 20, 16), (0, 8)):
        found, kept = program.gradient(lambda limit=limit: run(limit))
        np.testing.assert_allclose(found, program.power(k), rtol=1e-12)
        assert kept == (16 * N if limit else 8 * N)


def test_long_recordings_and_many_of_them(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undo, "_LONGEST", 3)
    monkeypatch.setattr(undo, "_MOST_TRACES", 2)
    for first in (0, 1, 2, 0, 1, 2):

        def run(first: int = first) -> None:
            program.square(first, first + 1)
            plain(program)

        found, _ = program.gradient(run)
        np.testing.assert_allclose(found, program.power(2**STEPS), rtol=1e-12)
        assert len(undo._known) <= 2
        assert all(len(steps.launches) <= 3 for steps in undo._known.values())
