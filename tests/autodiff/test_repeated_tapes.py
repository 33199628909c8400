"""Tapes whose blocks launch the same each time run by plans (`lang/ad/repeated_tapes.py`): what comes of it is what
comes of the launches one by one, bit for bit, whoever looks on.

    pytest tests/autodiff/test_repeated_tapes.py --random-programs 5000     a program for every eighth
"""

from __future__ import annotations

import asyncio
import functools
import gc
import random
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.test_random_tapes import Trial
from tinote.compiler.requests import SHARING
from tinote.errors import DifferentiationError, KernelIndexError
from tinote.lang.ad import repeated_tapes

N = 6
ROUNDS = 9


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_tapes, "FEWEST", 1)
    ti.init(arch=ti.cpu, default_fp=ti.f64)


def places(loss: Any) -> list[Any]:
    """What is known of the tapes of a loss."""
    return list(loss._tapes.values())


class Chain:
    """y = sin(x), four times y = k·y², and the sum of x·y."""

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

        self.start, self.square, self.add = start, square, add

    def run(self, *between: Callable[[], object]) -> ti.ad.Tape:
        """One tape; what happens between its launches."""
        with ti.ad.Tape(self.loss, repeats=True) as tape:
            self.start()
            for _ in range(2):
                self.square(self.factor)
            for one in between:
                one()
            self.add()
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
            self.run()
            self.check()

    @property
    def runs(self) -> int:
        """How often a plan has run."""
        return sum(
            [0 if one is repeated_tapes.OVER or one.plan is None else one.plan.runs for one in places(self.loss)]
        )


def test_from_the_fifth_time_on_a_tape_is_one_call() -> None:
    chain = Chain()
    chain.again()
    assert chain.runs == 1 + ROUNDS - 4
    first = chain.run()
    assert [event.name for event in first.records] == ["start", "square", "square", "add"]
    assert first.copied_bytes == 8 * N * 2
    assert "4 launches" in first.graph().summary
    assert chain.square.instances[0].calls == 2 * (ROUNDS + 1)


def looks(chain: Chain) -> list[Callable[[], object]]:
    """What shows how far a block is."""

    def in_another_thread() -> None:
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.append(chain.y[0]))
        thread.start()
        thread.join()
        seen(found[0])

    def seen(value: float) -> None:
        x, k = chain.x.to_numpy()[0], chain.factor
        assert value == pytest.approx(k**3 * x**4, rel=1e-13)

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
def test_who_looks_sees_what_the_launches_have_left(which: int) -> None:
    chain = Chain()
    chain.again()
    for _ in range(3):
        before = chain.runs
        chain.run(looks(chain)[which])
        assert chain.runs == before  # they ran one by one
        chain.check()
        chain.run()
        chain.check()
        assert chain.runs == before + 1


def test_other_launches_numbers_and_kernels() -> None:
    chain = Chain()
    chain.again()
    for factor in (0.5, 0.75, -0.75, 0.0, -0.0, float("nan"), 0.75):
        chain.factor = factor
        chain.run()
        if factor == factor:
            chain.check()
        else:
            assert np.isnan(chain.x.grad.to_numpy()).all()
    runs = chain.runs
    chain.run(chain.start, lambda: chain.square(0.75), lambda: chain.square(0.75))
    assert chain.runs == runs
    chain.check()
    with pytest.raises(RuntimeError, match="half way"):
        chain.run(lambda: 1 / 1, lambda: (_ for _ in ()).throw(RuntimeError("half way")))
    assert chain.y[0] == pytest.approx(0.75**3 * chain.x[0] ** 4, rel=1e-13)  # the launches before it ran
    chain.again(2)


def test_zeros_have_signs() -> None:
    x, loss = ti.field(ti.f64, (), needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def divide(by: ti.f64):
        loss[None] += x[None] / by

    @ti.kernel
    def nothing():
        loss[None] += 0 * x[None]

    x[None] = 1.0
    for n in range(12):
        zero = 0.0 if n % 12 < 7 else -0.0
        with ti.ad.Tape(loss, repeats=True):
            divide(zero)
            nothing()
        assert x.grad[None] == np.copysign(np.inf, zero)


def test_fields_that_python_fills_first() -> None:
    x, y, loss = (ti.field(ti.f64, (), needs_grad=True) for _ in range(3))

    @ti.kernel
    def add(k: ti.f64):
        y[None] += k * x[None]

    @ti.kernel
    def square():
        loss[None] += y[None] ** 2

    for n in range(14):
        start = 1.0 if n < 10 else 2.0
        x[None] = 1.0 + n
        with ti.ad.Tape(loss, repeats=True):
            y.fill(start)
            add(1.0)
            add(2.0)
            square()
        assert y[None] == start + 3 * (1 + n)
        assert x.grad[None] == 6 * y[None]
    (entry,) = places(loss)
    assert entry.plan is not None and entry.plan.runs == 1 + 6


def test_an_index_that_is_out_of_range_is_told_at_the_end() -> None:
    x, loss = ti.field(ti.f64, N, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    at = ti.field(ti.i32, ())

    @ti.kernel
    def first():
        loss[None] += x[at[None]] ** 2

    @ti.kernel
    def second():
        loss[None] += x[0]

    x.fill(3.0)
    for n in range(12):
        at[None] = n if n > 6 else 1
        if at[None] < N:
            with ti.ad.Tape(loss, repeats=True):
                first()
                second()
            assert x.grad[1] == 6
            continue
        with pytest.raises(KernelIndexError, match="x"), ti.ad.Tape(loss, repeats=True):
            first()
            second()


def test_other_tasks_that_run_meanwhile() -> None:
    chain = Chain()
    other = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def count():
        other[None] += 1.0

    async def beside(rounds: int) -> None:
        for _ in range(rounds):
            count()
            await asyncio.sleep(0)

    async def taped() -> None:
        with ti.ad.Tape(chain.loss, repeats=True):
            chain.start()
            await asyncio.sleep(0)
            for _ in range(2):
                chain.square(0.75)
            await asyncio.sleep(0)
            chain.add()

    async def main() -> None:
        for n in range(ROUNDS):
            chain.x.from_numpy(np.linspace(0.5, 1.5, N) + 0.1 * n)
            await asyncio.gather(beside(4), taped())
            chain.check()
            assert other[None] == 4 * (n + 1)

    asyncio.run(main())


def test_work_is_shared_with_the_gradient() -> None:
    x, loss = ti.field(ti.f64, 500, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def objective():
        total = 0.0
        for i in x:
            total += ti.exp(x[i])
        loss[None] = ti.log(total)

    numbers = np.random.default_rng(3).normal(size=500)
    x.from_numpy(numbers)
    for _ in range(8):
        with ti.ad.Tape(loss, repeats=True):
            objective()
        weights = np.exp(numbers)
        assert x.grad.to_numpy() == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert SHARING in {request for request, _ in objective.instances[0].specialisation.results()}
    (entry,) = places(loss)
    assert entry.plan is not None and entry.plan.is_proved


def test_nothing_keeps_fields_alive() -> None:
    chain = Chain()
    chain.again()
    known, loss = weakref.ref(chain.y), chain.loss
    del chain
    gc.collect()
    assert known() is None
    assert not places(loss)


def outcome(trial: Trial, lines: list[Any], interrupted: int, action: Callable[[], object]) -> Any:
    """What a tape leaves. Before the call `interrupted`, something is done."""
    for name, value in trial.start.items():
        trial.fields[name].from_numpy(value)
    trial.reset()
    try:
        with warnings.catch_warnings(), ti.ad.Tape(trial.loss, repeats=True):
            if interrupted >= 0:  # numbers that Python takes out and computes with may be lost, which is told rightly
                warnings.filterwarnings("ignore", "(?s).*a plain number goes to arithmetic", UserWarning)
            for n, line in enumerate(lines):
                if n == interrupted:
                    action()
                exec(line, trial.space)
    except DifferentiationError as error:
        return error.message
    return trial.left() | {f"{name}.grad": f.grad.to_numpy() for name, f in trial.fields.items()}


def test_random_programs(random_programs: range) -> None:
    planned = 0
    for seed in random_programs[::8]:
        trial, choices = Trial(seed), random.Random(seed)
        lines = [compile(line, "calls", "exec") for line in trial.calls.splitlines()]
        wanted = outcome(trial, lines, -1, lambda: None)
        for n in range(8):
            field = choices.choice(list(trial.fields.values()))
            action = choices.choice(
                [field.to_numpy, functools.partial(str, field), functools.partial(field.copy_from, field)]
            )
            interrupted = choices.randrange(len(lines)) if n > 4 and choices.random() < 0.5 else -1
            found = outcome(trial, lines, interrupted, action)
            shown = f"seed {seed}, {n}\n{trial.text}\n{trial.calls}"
            if isinstance(wanted, str):
                assert found == wanted, shown
                continue
            assert isinstance(found, dict), f"{found}, {shown}"
            for name, values in wanted.items():
                np.testing.assert_allclose(found[name], values, rtol=1e-11, atol=1e-11, err_msg=f"{name}, {shown}")
        (entry,) = places(trial.loss)
        planned += entry is not repeated_tapes.OVER and entry.plan is not None and entry.plan.runs > 1
    assert planned > len(random_programs[::8]) // 10
