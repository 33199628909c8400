"""What a workload declares and what a contender provides. Both sides of the pipe read this, so it needs only NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

__all__ = ["OURS", "TOLERANCE", "Case", "Contender", "Mode", "Subject", "UnavailableError", "relative_deviation"]

OURS = "tinote"

# The same where a case does not say another: enough for f32.
TOLERANCE = 1e-3


class UnavailableError(Exception):
    """A contender cannot run on this machine (no compiler, say); its row gives the reason, and nothing has failed."""


class Subject(ABC):
    """One program, built and holding its data, that can be run again and again.

    A table shows the time of a run divided by `parts`.
    """

    parts = 1

    @abstractmethod
    def run(self, count: int) -> None:
        """Run the program `count` times, and return when the last run has finished."""

    @abstractmethod
    def deviation(self) -> float:
        """Run the program from its initial data and return the largest relative deviation from the NumPy reference."""


class Mode(Enum):
    """What is measured."""

    STEADY = "minimum time of one run, in a process that stays"
    FIRST_CALL = "from after the import to the end of the first run, in a fresh process without caches"
    WARM_CALL = "the same, where an earlier process has left its compiled code on disk"
    IMPORT = "the import and nothing else, in a fresh interpreter"


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of a table.

    `module` defines `create(package, **parameters) -> Subject`. `package` is what must be importable, usually
    a key of `peers.PEERS`; None for what needs only NumPy. `parameters` are added to those of the case. `over`: the
    name of another row, of whose time this one shows the multiple.
    """

    name: str
    module: str
    package: str | None = None
    parameters: Mapping[str, str | int] = field(default_factory=dict)
    over: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One table: the same work for each of `contenders`.

    `at_most` is what tinote may take, in seconds, `at_most_over` what it may take in units of the row that it is shown
    `over`, and `at_most_best` in units of the fastest of the other packages' rows for the same work; None: no target.
    `most_rounds` bounds the rounds of slow things. `tolerance`: the largest relative deviation from the reference that
    still counts as the same answer.
    """

    title: str
    contenders: tuple[Contender, ...]
    parameters: Mapping[str, str | int] = field(default_factory=dict)
    mode: Mode = Mode.STEADY
    at_most: float | None = None
    at_most_over: float | None = None
    at_most_best: float | None = None
    most_rounds: int | None = None
    tolerance: float = TOLERANCE


def relative_deviation(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference over the largest expected magnitude; infinity if something is not finite."""
    found = np.asarray(found, dtype=np.float64)
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / np.abs(expected).max())
