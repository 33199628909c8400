"""Reductions in a fixed order, independent of the workers' schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Combine = Callable[[Any, Any], Any]


class Tree:
    """The reduction of `count` values as a binary tree, in which each has its place whenever it comes: neighbours are
    combined, then neighbouring pairs, and so on. The rounding of a sum is at most log2(count) times an addition's.

    The values from `k * 2**m` up to `(k + 1) * 2**m` are a tree of their own, and its result is value `k` of a tree of
    such results: so parts of this length may be reduced apart, elsewhere, and everything stays what it is bit for bit.
    """

    def __init__(self, count: int, combine: Combine) -> None:
        self._counts = [count]
        while self._counts[-1] > 1:
            self._counts.append((self._counts[-1] + 1) // 2)
        self._combine = combine
        self._held: dict[tuple[int, int], Any] = {}

    def add(self, number: int, value: Any) -> None:
        """The value with this number."""
        level = 0
        while level < len(self._counts) - 1:
            other = number ^ 1
            if other < self._counts[level]:
                if (level, other) not in self._held:
                    break
                partner = self._held.pop((level, other))
                value = self._combine(value, partner) if number < other else self._combine(partner, value)
            level, number = level + 1, number // 2
        self._held[level, number] = value

    @property
    def result(self) -> Any:
        """All values together."""
        (found,) = self._held.values()
        return found


def part_length(count: int, workers: int) -> int:
    """How many of `count` values one worker reduces at a time, a power of two: some parts for each of them, as not all
    take equally long.
    """
    length = 1
    while 8 * length * max(1, workers) <= count:
        length *= 2
    return length


def added(first: Any, second: Any) -> Any:
    """The sum of numbers and arrays, member by member where these are tuples."""
    if isinstance(first, tuple):
        return tuple([added(a, b) for a, b in zip(first, second, strict=True)])
    return first + second
