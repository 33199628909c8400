"""Slower, faster, the same or unclear: what paired slices of an old and a new tree say.

The unit is the *round*: a pair of processes (old and new) of their own, whose slices alternate. Two processes of the
same program differ by a few per cent for as long as they live (addresses, hash seeds), however many slices they get,
so an interval over slices would be too narrow; only rounds are independent of each other.

- A pair of slices is disturbed, and left out of the median, where one of them took more than `DISTURBED` times the
  minimum of its process in that round.
- A round is disturbed, and left out, where *both* minima are more than `DISTURBED` times the best of all rounds, and
  above their medians: the machine was slow for as long as it lasted. One side alone is a fact about that side and
  stays; so does half of the rounds at least, of a machine that is hardly ever quiet.
- A round gives two figures: the ratio of the minima, and the median of the ratios of pairs.
- The estimate is the median of a figure over rounds, its spread the interval between two of its order statistics that
  holds the true median with a probability of at least `COVERAGE`. It assumes no distribution. Six rounds are the fewest
  that have one.
- Slower is what both intervals say lies wholly above 1 + `TOLERANCE`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["COVERAGE", "DISTURBED", "LEAST_ROUNDS", "TOLERANCE", "Estimate", "Judgement", "Round", "Verdict", "judge"]

TOLERANCE = 0.03
DISTURBED = 1.25
COVERAGE = 0.95
LEAST_ROUNDS = 6


class Verdict(Enum):
    """What is said about a row; the value is the word in the table."""

    SLOWER = "SLOWER"
    FASTER = "faster"
    SAME = "same"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Round:
    """The seconds of the slices of one pair of processes: (old, new), as they were taken after each other."""

    pairs: tuple[tuple[float, float], ...]

    @property
    def old(self) -> float:
        """The minimum of the old tree."""
        return min([old for old, _ in self.pairs])

    @property
    def new(self) -> float:
        """The minimum of the new tree."""
        return min([new for _, new in self.pairs])

    def undisturbed(self) -> list[tuple[float, float]]:
        """The pairs of which neither slice was disturbed."""
        most_old, most_new = DISTURBED * self.old, DISTURBED * self.new
        return [(old, new) for old, new in self.pairs if old <= most_old and new <= most_new]

    @property
    def ratio_of_minima(self) -> float:
        """New over old."""
        return self.new / self.old

    @property
    def median_of_ratios(self) -> float:
        """New over old, of pairs; of all of them where every one was disturbed."""
        return statistics.median([new / old for old, new in self.undisturbed() or self.pairs])


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio and the interval that it lies in; the interval is all numbers where there are too few rounds."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a row, and what it rests on."""

    verdict: Verdict
    minima: Estimate
    paired: Estimate
    rounds: int
    disturbed_rounds: int
    disturbed_pairs: int


def judge(rounds: Sequence[Round], tolerance: float = TOLERANCE) -> Judgement:
    """Return the verdict of at least one round."""
    most_old, most_new = most_of([one.old for one in rounds]), most_of([one.new for one in rounds])
    kept = [one for one in rounds if one.old <= most_old or one.new <= most_new]
    minima = estimate([one.ratio_of_minima for one in kept])
    paired = estimate([one.median_of_ratios for one in kept])
    return Judgement(
        verdict_of(minima, paired, tolerance),
        minima,
        paired,
        len(kept),
        len(rounds) - len(kept),
        sum([len(one.pairs) - len(one.undisturbed()) for one in kept]),
    )


def most_of(minima: Sequence[float]) -> float:
    """Return the longest minimum of a round that is not disturbed."""
    return max(DISTURBED * min(minima), statistics.median(minima))


def estimate(ratios: Sequence[float]) -> Estimate:
    """Return the median of `ratios` and its interval."""
    ordered = sorted(ratios)
    left_out = order_statistic(len(ordered))
    middle = statistics.median(ordered)
    if left_out is None:
        return Estimate(middle, 0.0, math.inf)
    return Estimate(middle, ordered[left_out], ordered[-1 - left_out])


def order_statistic(count: int) -> int | None:
    """Return how many of `count` values may be left out at each end, so that the rest still spans the true median with
    a probability of at least `COVERAGE`; None where all of them do not.

    The median lies below the smallest but k of `count` values with the probability that at most k of as many tosses
    of a coin show heads.
    """
    found = None
    tail = 0.0
    for left_out in range((count + 1) // 2):
        tail += math.comb(count, left_out) / 2**count
        if 1 - 2 * tail < COVERAGE:
            break
        found = left_out
    return found


def verdict_of(minima: Estimate, paired: Estimate, tolerance: float) -> Verdict:
    """Return what both estimates agree on; the minima alone say that nothing has changed."""
    if min(minima.low, paired.low) > 1 + tolerance:
        return Verdict.SLOWER
    if max(minima.high, paired.high) < 1 / (1 + tolerance):
        return Verdict.FASTER
    if 1 / (1 + tolerance) <= minima.low and minima.high <= 1 + tolerance:
        return Verdict.SAME
    return Verdict.UNCLEAR
