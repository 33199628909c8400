"""Tapes around captured steps, in loops: what they leave is what the launches one by one leave, whatever happens
between the steps, and whoever looks at fields meanwhile.

    pytest tests/autodiff/test_tapes_around_steps.py --random-programs 5000     a program for every eighth
"""

from __future__ import annotations

import asyncio
import linecache
import random
import textwrap
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_random_tapes import Trial
from tinote.errors import DifferentiationError, KernelIndexError
from tinote.lang.ad.journal import step_capture
from tinote.lang.ad.journal.captured_steps import CapturedStep

N = 6
ROUNDS = 5


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_capture, "LEAST_SHARED", 1)
    ti.init(arch=ti.cpu, default_fp=ti.f64)


class Chain:
    """y = x, some times y = k·y², and the sum of x·y."""

    def __init__(self) -> None:
        x = self.x = ti.field(ti.f64, N, needs_grad=True)
        y = self.y = ti.field(ti.f64, N, needs_grad=True)
        loss = self.loss = ti.field(ti.f64, (), needs_grad=True)
        self.factor = 0.75

        @ti.kernel
        def start():
            for i in x:
                y[i] = x[i] + 0.1 * i

        @ti.kernel
        def square(k: ti.f64):
            for i in x:
                y[i] = k * y[i] * y[i]

        @ti.kernel
        def add():
            for i in x:
                loss[None] += x[i] * y[i]

        @ti.capture
        def squares(k):
            start()
            square(k)
            square(k)

        @ti.capture
        def measure():
            add()

        self.squares, self.measure = squares, measure

    def run(self, *between: Callable[[], object]) -> ti.ad.Tape:
        """One tape; what happens between its steps."""
        with ti.ad.Tape(self.loss) as tape:
            self.squares(self.factor)
            for one in between:
                one()
            self.measure()
        return tape

    def check(self) -> None:
        """What a tape has left is right."""
        x, k = self.x.to_numpy(), self.factor
        y = x + 0.1 * np.arange(N)
        final, slope = k**3 * y**4, 4 * k**3 * y**3
        assert self.y.to_numpy() == pytest.approx(final, rel=1e-13)
        assert self.loss[None] == pytest.approx((x * final).sum(), rel=1e-13)
        assert self.x.grad.to_numpy() == pytest.approx(final + x * slope, rel=1e-13)

    def again(self, rounds: int = ROUNDS) -> None:
        """Tapes in a row, from other values each."""
        for n in range(rounds):
            self.x.from_numpy(np.linspace(0.5, 1.5, N) + 0.1 * n)
            tape = self.run()
            assert [type(record) for record in tape.records] == [CapturedStep] * 2
            self.check()


def test_each_step_is_one_record() -> None:
    chain = Chain()
    chain.again()
    tape = chain.run()
    assert [record.name for record in tape.records] == ["squares", "measure"]
    assert tape.copied_bytes >= 8 * N * 2, "what the squares overwrite"


def looks(chain: Chain) -> list[Callable[[], object]]:
    """What shows how far a block is."""
    wanted = chain.factor**3 * chain.x[0] ** 4

    def in_another_thread() -> None:
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.append(chain.y[0]))
        thread.start()
        thread.join()
        seen(found[0])

    def seen(value: float) -> None:
        assert float(value) == pytest.approx(wanted, rel=1e-13)

    def launched_elsewhere() -> None:
        target = ti.field(ti.f64, ())
        y = chain.y

        @ti.kernel
        def take():
            target[None] = y[0]

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        seen(target[None])

    return [
        lambda: seen(chain.y[0]),
        lambda: seen(chain.y.to_numpy()[0]),
        lambda: seen(np.asarray(chain.y.held())[0]),
        lambda: seen(np.frombuffer(chain.y.memory.view(), np.float64)[0]),
        lambda: str(chain.y),
        lambda: chain.loss.fill(0),
        lambda: chain.x.grad.fill(0),
        in_another_thread,
        launched_elsewhere,
    ]


@pytest.mark.parametrize("which", range(9))
def test_who_looks_sees_what_the_steps_have_left(which: int) -> None:
    chain = Chain()
    chain.again()
    for _ in range(3):
        chain.run(looks(chain)[which])
        chain.check()
        chain.run()
        chain.check()


def test_other_numbers_and_steps() -> None:
    chain = Chain()
    chain.again()
    for factor in (0.5, 0.75, -0.75, 0.0, -0.0, float("nan"), 0.75):
        chain.factor = factor
        chain.run()
        if factor == factor:
            chain.check()
        else:
            assert np.isnan(chain.x.grad.to_numpy()).all()
    chain.run(lambda: chain.squares(0.75))
    chain.check()
    with pytest.raises(RuntimeError, match="half way"):
        chain.run(lambda: (_ for _ in ()).throw(RuntimeError("half way")))
    assert chain.y[0] == pytest.approx(0.75**3 * chain.x[0] ** 4, rel=1e-13), "the step before it has run"
    chain.again(2)


def test_zeros_have_signs() -> None:
    x, loss = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def divide(by: ti.f64):
        loss[None] += x[None] / by

    @ti.capture
    def step(by):
        divide(by)

    x[None] = 1.0
    for n in range(6):
        zero = 0.0 if n < 3 else -0.0
        with ti.ad.Tape(loss):
            step(zero)
        assert x.grad[None] == np.copysign(np.inf, zero)


def test_fields_that_python_fills_first() -> None:
    x, y, loss = (ti.field(ti.f64, (), needs_grad=True) for _ in range(3))

    @ti.kernel
    def add(k: ti.f64):
        y[None] += k * x[None]

    @ti.kernel
    def square():
        loss[None] += y[None] ** 2

    @ti.capture
    def step():
        add(1.0)
        add(2.0)
        square()

    for n in range(6):
        start = 1.0 if n < 3 else 2.0
        x[None] = 1.0 + n
        with ti.ad.Tape(loss):
            y.fill(start)
            step()
        assert y[None] == start + 3 * (1 + n)
        assert x.grad[None] == 6 * y[None]


def test_an_index_that_is_out_of_range() -> None:
    x, loss = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    at = ti.field(ti.i32, ())

    @ti.kernel
    def first():
        loss[None] += x[at[None]] ** 2

    @ti.kernel
    def second():
        loss[None] += x[0]

    @ti.capture
    def step():
        first()
        second()

    x.fill(3.0)
    for n in (1, 1, 1, N, 1, N + 1, 1):
        at[None] = n
        if n < N:
            with ti.ad.Tape(loss):
                step()
            assert x.grad[1] == 6
            continue
        with pytest.raises(KernelIndexError, match="x"), ti.ad.Tape(loss):
            step()


def test_other_tasks_that_run_meanwhile() -> None:
    chain = Chain()
    other = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def count():
        other[None] += 1.0

    async def meanwhile(rounds: int) -> None:
        for _ in range(rounds):
            count()
            await asyncio.sleep(0)

    async def taped() -> None:
        with ti.ad.Tape(chain.loss):
            await asyncio.sleep(0)
            chain.squares(0.75)
            await asyncio.sleep(0)
            chain.measure()

    async def main() -> None:
        for n in range(ROUNDS):
            chain.x.from_numpy(np.linspace(0.5, 1.5, N) + 0.1 * n)
            await asyncio.gather(meanwhile(4), taped())
            chain.check()
            assert other[None] == 4 * (n + 1)

    asyncio.run(main())


def test_a_tape_that_is_said_to_repeat_is_a_tape() -> None:
    chain = Chain()
    chain.x.fill(0.5)
    for repeats in (True, False):
        with pytest.warns(DeprecationWarning, match=r"step of `ti\.capture`") as caught:
            tape = ti.ad.Tape(chain.loss, repeats=repeats)
        assert [one.filename for one in caught] == [__file__]
        with tape:
            chain.squares(0.75)
            chain.measure()
        chain.check()


def outcome(trial: Trial, steps: list[Callable[[], object]]) -> Any:
    """What a tape over these steps leaves."""
    for name, value in trial.start.items():
        trial.fields[name].from_numpy(value)
    trial.reset()
    try:
        with warnings.catch_warnings(), ti.ad.Tape(trial.loss):
            # Numbers that Python takes out and computes with may be lost, and the warning of that is right.
            warnings.filterwarnings("ignore", "(?s).*a plain number goes to arithmetic", UserWarning)
            for step in steps:
                step()
    except DifferentiationError as error:
        return error.message
    return trial.left() | {f"{name}.grad": f.grad.to_numpy() for name, f in trial.fields.items()}


def test_random_programs(random_programs: range) -> None:
    """Programs in two captured steps, between which Python may look at a field."""
    replayed = 0
    for seed in random_programs[::8]:
        trial, choices = Trial(seed), random.Random(seed)
        lines = trial.calls.splitlines()
        cut = choices.randrange(1, len(lines)) if len(lines) > 1 else 1
        parts = ["\n".join(lines[:cut]), "\n".join(lines[cut:]) or "pass"]
        text = "\n".join([f"def step_{k}():\n{textwrap.indent(part, '    ')}" for k, part in enumerate(parts)])
        file = f"random_steps_{seed}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), trial.space)
        plain = [trial.space["step_0"], trial.space["step_1"]]
        programs = [ti.capture(step) for step in plain]
        wanted = outcome(trial, plain)
        field = choices.choice(list(trial.fields.values()))
        action: Callable[[], object] = choices.choice([field.to_numpy, lambda field=field: str(field), lambda: None])
        for n in range(3):
            found = outcome(trial, [programs[0], action, programs[1]] if n == 1 else list(programs))
            shown = f"seed {seed}, {n}\n{trial.text}\n{text}"
            if isinstance(wanted, str):
                assert found == wanted, shown
                continue
            assert isinstance(found, dict), f"{found}, {shown}"
            for name, values in wanted.items():
                np.testing.assert_allclose(found[name], values, rtol=1e-11, atol=1e-11, err_msg=f"{name}, {shown}")
        replayed += any(one.how_under_tapes.state == "replayed" for one in programs)
    assert replayed > len(random_programs[::8]) // 10
