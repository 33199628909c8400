"""Takes turns and keeps minima.

A shared machine is slow for seconds on end, so contenders that are timed one after the other are not compared at all.
Here every contender of a case lives in a process of its own and gets a short slice in each round, in an order that
changes; the minimum over many rounds is what the machine can do.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.contract import TOLERANCE, Case, Contender, UnavailableError
from benchmarks.runners import ContenderError, Interpreters, Runner, runner_for

__all__ = ["Row", "Settings", "measure"]

# Threads of the last contender may still spin for some milliseconds, waiting for work; the next one wants their cores.
SETTLE = 0.005


@dataclass(frozen=True, slots=True)
class Settings:
    """How long to measure: `rounds` rounds of a slice of `slice_seconds` each."""

    rounds: int = 20
    slice_seconds: float = 0.05
    interpreters: Interpreters = field(default_factory=Interpreters)


@dataclass(slots=True)
class Row:
    """What came out for one contender: the minimum of every round, or the reason why there is none."""

    contender: Contender
    version: str = ""
    tolerance: float = TOLERANCE
    minima: list[float] = field(default_factory=list)
    deviation: float = 0.0
    unavailable: str = ""
    failed: str = ""

    @property
    def seconds(self) -> float | None:
        """The minimum of all rounds; None without any, or after a failure."""
        return None if self.failed or not self.minima else min(self.minima)

    @property
    def wrong(self) -> bool:
        """Whether the answer is not that of the reference; such a row is in no ratio."""
        return not self.deviation <= self.tolerance  # so that a NaN is wrong too

    @property
    def comparable(self) -> float | None:
        """The minimum, if the answer was right."""
        return None if self.wrong else self.seconds


def measure(case: Case, settings: Settings, tell: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Measure every contender of `case`; one that is missing or fails leaves a row that says so.

    `tell` hears about progress.
    """
    rows = {contender.name: Row(contender, tolerance=case.tolerance) for contender in case.contenders}
    runners: list[Runner] = []
    try:
        for contender in case.contenders:
            tell(f"{case.title}: starting {contender.name}")
            runner = runner_for(contender, case, settings.interpreters)
            runners.append(runner)
            note(rows[contender.name], runner.start)
            rows[contender.name].version = runner.version
        take_turns(case, runners, rows, settings, tell)
        for runner in alive(runners, rows):
            note(rows[runner.contender.name], runner.finish)
    finally:
        for runner in runners:
            runner.close()
    return list(rows.values())


def take_turns(
    case: Case, runners: Sequence[Runner], rows: dict[str, Row], settings: Settings, tell: Callable[[str], None]
) -> None:
    """Give every contender a slice in each round, in a changing order, so that none always follows the same one."""
    rounds = min(settings.rounds, case.most_rounds or settings.rounds)
    shuffle = random.Random(0)
    for turn in range(rounds):
        tell(f"{case.title}: round {turn + 1} of {rounds}")
        order = alive(runners, rows)
        shuffle.shuffle(order)
        for runner in order:
            row = rows[runner.contender.name]
            time.sleep(SETTLE)
            try:
                row.minima.append(runner.slice(settings.slice_seconds))
            except ContenderError as failure:
                row.failed = str(failure)


def alive(runners: Sequence[Runner], rows: dict[str, Row]) -> list[Runner]:
    """Return the runners that still have something to say."""
    lost = {name for name, row in rows.items() if row.unavailable or row.failed}
    return [runner for runner in runners if runner.contender.name not in lost]


def note(row: Row, deviation: Callable[[], float]) -> None:
    """Keep the larger deviation in `row`, or the reason why there is none."""
    try:
        value = deviation()
    except UnavailableError as reason:
        row.unavailable = str(reason)
    except ContenderError as failure:
        row.failed = str(failure)
    else:
        row.deviation = math.inf if math.isnan(value) else max(row.deviation, value)
