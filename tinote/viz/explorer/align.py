"""Alignment of the lines of two stages: lines are aligned by the variables they bind (`StageKind.key`), others by their
text. The page aligns any two stages that its reader chooses, by the same algorithm (`static/explorer/align.js`).

Method: lines whose key is unique in both stages are anchors, in the longest order that both share (patience diff);
between two anchors the heaviest common subsequence, where equal keys weigh more than lines of one shape.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from tinote.compiler.inspect.kinds import StageKind
from tinote.compiler.inspect.stages import StageLine

#: Cells of the table of a section between two anchors; a longer section is left unaligned.
_MOST_CELLS = 250_000
#: A shorter line that stands elsewhere, such as a bracket, has not moved.
_SHORTEST_MOVED = 6

_OPERATION = re.compile(r" = ([a-z]\w*)", re.ASCII)
_WORD = re.compile(r"\w*", re.ASCII)
_VARIABLE = re.compile(r"%[\w.]+", re.ASCII)


class Mark(IntEnum):
    """What happened to a line. MOVED: it is in both stages, out of order, and has a row on either side."""

    SAME = 0
    CHANGED = 1
    GONE = 2
    NEW = 3
    MOVED = 4


class Row(NamedTuple):
    """The numbers of two lines that are shown side by side; -1 where a side has none."""

    left: int
    right: int
    mark: Mark


def align(left: Sequence[StageLine], right: Sequence[StageLine], kind: StageKind) -> list[Row]:
    """The lines of two stages of one kind, side by side."""
    return _Alignment(left, right, kind).rows()


class _Alignment:
    """`partners`: for each line on the left the one on the right, -1 for none; `moved`: on either side."""

    def __init__(self, left: Sequence[StageLine], right: Sequence[StageLine], kind: StageKind) -> None:
        self.key, self.shape, self.scope = [re.compile(text, re.ASCII) for text in (kind.key, kind.shape, kind.scope)]
        self.texts = [[line.text.strip() for line in lines] for lines in (left, right)]
        # Only where one side is a gradient and the other is not do primal and recomputed lines correspond.
        derived = [any(line.primal for line in lines) for lines in (left, right)]
        self.across = derived[0] != derived[1]
        self.keys = [self._keys(lines, texts) for lines, texts in zip((left, right), self.texts, strict=True)]
        self.partners = [-1] * len(left)
        self.moved: tuple[set[int], set[int]] = (set(), set())
        self._anchor()
        self._fill()

    def rows(self) -> list[Row]:
        found: list[Row] = []
        at = 0

        def new_until(stop: int) -> None:
            nonlocal at
            while at < stop:
                found.append(Row(-1, at, Mark.MOVED if at in self.moved[1] else Mark.NEW))
                at += 1

        for index, other in enumerate(self.partners):
            if other < 0:
                found.append(Row(index, -1, Mark.MOVED if index in self.moved[0] else Mark.GONE))
            else:
                new_until(other)
                found.append(Row(index, other, Mark.SAME if self._equal(index, other) else Mark.CHANGED))
                at = other + 1
        new_until(len(self.texts[1]))
        return found

    # ---- what lines have in common

    def _keys(self, lines: Sequence[StageLine], texts: list[str]) -> list[str]:
        """The key of each line: its variable, or its text. What a gradient recomputes takes the primal's variable;
        names of LLVM, and labels, count within their function.
        """
        found: list[str] = []
        scope = ""
        for line, text in zip(lines, texts, strict=True):
            opens, named = self.scope.match(text), self.key.match(text)
            if opens:
                scope = opens[1]
            primal = line.primal if self.across and not line.adjoint else ""
            key = primal or (named[1] or named[2] if named else "")
            found.append(f"{scope} {key}" if key or opens else text)
        # What saves a value names the same primal as what computes it.
        return [f"{key} {_operation(text)}" for key, text in zip(found, texts, strict=True)] if self.across else found

    def _equal(self, a: int, b: int) -> bool:
        left, right = self.texts[0][a], self.texts[1][b]
        return left == right or (self.across and _VARIABLE.sub("%", left) == _VARIABLE.sub("%", right))

    def _shape_of(self, text: str) -> str:
        """What lines have in common that may be one line before and after a change: the operation and any memory."""
        found = self.shape.match(text)
        return "".join(part or "" for part in found.groups()) if found else ""

    def _binds(self, text: str) -> bool:
        found = self.key.match(text)
        return found is not None and bool(found[1])

    # ---- the alignment

    def _anchor(self) -> None:
        """Lines whose key is unique on both sides, in the longest order that both share; the rest of them moved."""
        left, right = map(_unique, self.keys)
        pairs = [(index, right[key]) for key, index in left.items() if key in right]
        kept = _increasing([other for _, other in pairs])
        for at, (index, other) in enumerate(pairs):
            if at in kept:
                self.partners[index] = other
            elif len(self.texts[0][index]) >= _SHORTEST_MOVED:
                self.moved[0].add(index)
                self.moved[1].add(other)

    def _fill(self) -> None:
        a = c = 0
        for index in range(len(self.partners) + 1):
            other = self.partners[index] if index < len(self.partners) else len(self.texts[1])
            if other >= 0:
                self._between(a, index, c, other)
                a, c = index + 1, other + 1

    def _between(self, a: int, b: int, c: int, d: int) -> None:
        """Between two anchors: equal keys in order, then lines of one shape."""
        left, right = self.keys
        while a < b and c < d and left[a] == right[c]:
            self.partners[a] = c
            a, c = a + 1, c + 1
        while a < b and c < d and left[b - 1] == right[d - 1]:
            b, d = b - 1, d - 1
            self.partners[b] = d
        rows = [k for k in range(a, b) if k not in self.moved[0]]
        columns = [k for k in range(c, d) if k not in self.moved[1]]
        if not rows or not columns or len(rows) * len(columns) > _MOST_CELLS:
            return
        # A line that binds a variable is identified by that alone.
        shapes = [(left[k], "" if self._binds(text := self.texts[0][k]) else self._shape_of(text)) for k in rows]
        others = [(right[k], self._shape_of(self.texts[1][k])) for k in columns]

        def weight(i: int, j: int) -> int:
            (key, shape), (other, its) = shapes[i], others[j]
            return 3 if key == other else 1 if shape and shape == its else 0

        for i, j in _heaviest(len(rows), len(columns), weight):
            self.partners[rows[i]] = columns[j]


def _operation(text: str) -> str:
    """The word of an operation: `mul`, `load`, `for`."""
    found = _OPERATION.search(text)
    if found:
        return found[1]
    word = _WORD.match(text)
    return word[0] if word else ""


def _unique(keys: Sequence[str]) -> dict[str, int]:
    """Where the keys stand that occur once."""
    found: dict[str, int] = {}
    for index, key in enumerate(keys):
        found[key] = -1 if key in found else index
    return {key: index for key, index in found.items() if index >= 0}


def _increasing(values: Sequence[int]) -> set[int]:
    """The positions of a longest increasing subsequence."""
    ends: list[int] = []  # ends[k]: the smallest value that a subsequence of length k + 1 ends with
    where: list[int] = []  # its position
    before: list[int] = []
    for index, value in enumerate(values):
        k = bisect_left(ends, value)
        before.append(where[k - 1] if k else -1)
        ends[k:], where[k:] = [value, *ends[k + 1 :]], [index, *where[k + 1 :]]
    kept: set[int] = set()
    at = where[-1] if where else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return kept


def _heaviest(m: int, n: int, weight: Callable[[int, int], int]) -> Iterator[tuple[int, int]]:
    """The heaviest common subsequence of two sequences of `m` and `n` members."""
    best = [[0] * (n + 1) for _ in range(m + 1)]
    weights = [[weight(i, j) for j in range(n)] for i in range(m)]
    for i in range(m - 1, -1, -1):
        row, below, own = best[i], best[i + 1], weights[i]
        for j in range(n - 1, -1, -1):
            skip = max(below[j], row[j + 1])
            row[j] = max(skip, own[j] + below[j + 1]) if own[j] else skip
    i = j = 0
    while i < m and j < n:
        if weights[i][j] and best[i][j] == weights[i][j] + best[i + 1][j + 1]:
            yield i, j
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
