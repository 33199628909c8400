"""Binomial checkpointing: which states of a chain of steps to store, so that reversing it runs the fewest steps again.

With `slots` states kept at a time and no step run forward more than r times, at most β(slots, r) = (slots + r choose
slots) steps can be reversed; keeping the states at binomial distances reaches that, and the least number of steps run.

Method: A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26(1), 2000,
<https://doi.org/10.1145/347837.347846>.
"""

from __future__ import annotations

import math


def _repetitions(steps: int, slots: int) -> int:
    """The smallest r with steps ≤ β(slots, r)."""
    r = 0
    while math.comb(slots + r, slots) < steps:
        r += 1
    return r


def advances(steps: int, slots: int) -> int:
    """How many steps are run without reversing them when `steps` steps are reversed from a kept state with `slots`
    slots, that of the first state included.
    """
    r = _repetitions(steps, slots)
    return r * steps - math.comb(slots + r, slots + 1)


def distance(steps: int, slots: int) -> int:
    """How many steps after a kept state the next one is best kept, when `steps` steps after it are to be reversed and
    `slots` states may be kept, that one included. At least 1 and less than `steps`; both are at least 2.
    """
    r = _repetitions(steps, slots)
    longest = math.comb(slots + r - 1, slots)  # what the earlier state can reverse with r - 1 repetitions
    least_after = math.comb(slots + r - 2, slots - 1)  # what the later states must reverse at least
    return max(1, min(longest, steps - least_after))
