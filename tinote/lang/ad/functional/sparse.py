"""Sparse Jacobians by column compression: columns without a common row are computed along one direction.

    J = [a . . b]        colours: columns 0 and 2, column 1, column 3        J S = [a . b]
        [. c . d]        S = the sum of the columns of each colour                 [. c d]
        [. . e .]                                                                  [e . .]

The sparsity pattern is found by probing: a direction that is NaN in a block of columns makes each row NaN that depends
on one of them, for any slopes and without cancellation. Blocks are divided repeatedly; blocks of columns without a
common row are distinguished by their rows, and share directions, too.

Method: column compression; Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices", J. Inst. Maths
Applics 13, 1974; colouring: Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM Review 47, 2005, in
rounds of independent columns as of Jones and Plassmann, SIAM J. Sci. Comput. 14, 1993.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinote.runtime.digest import digest

Array = np.ndarray[Any, Any]

#: A function that multiplies the Jacobian by directions without common columns: for each column the number of its
#: direction (−1: none), and the value there. Returns (rows, directions).
Product = Callable[[Array, Array], Array]

#: Number of parts into which a block of columns is divided.
_PARTS = 4


class Pattern(NamedTuple):
    """The nonzero elements of a matrix: their rows and columns, ordered by row; each once."""

    rows: Array
    columns: Array
    shape: tuple[int, int]


def probe(product: Product, shape: tuple[int, int]) -> Pattern:
    """The sparsity pattern of a Jacobian, given its product with directions; some of its elements may be zero."""
    rows, count = shape
    size = 1
    while size < count:
        size *= _PARTS
    found = Pattern(np.arange(rows), np.zeros(rows, np.intp), (rows, 1))
    while size > 1:
        size //= _PARTS
        found = _divided(product, found, size, count)
    return Pattern(found.rows, found.columns, shape)


def _divided(product: Product, blocks: Pattern, size: int, count: int) -> Pattern:
    """The pattern refined from blocks to their parts, of `size` columns each."""
    colour = colours(blocks)
    part = np.arange(count) // size
    own = colour[part // _PARTS]
    reached = np.isnan(product(np.where(own < 0, -1, _PARTS * own + part % _PARTS), np.full(count, np.nan)))
    rows = np.repeat(blocks.rows, _PARTS)
    columns = (_PARTS * blocks.columns[:, None] + np.arange(_PARTS)).ravel()
    reached = np.pad(reached, [(0, 0), (0, -reached.shape[1] % _PARTS)])  # the last block may have fewer parts
    there = reached[rows, (_PARTS * colour[blocks.columns][:, None] + np.arange(_PARTS)).ravel()]
    return Pattern(rows[there], columns[there], (blocks.shape[0], -(-count // size)))


def colours(pattern: Pattern) -> Array:
    """A number for each column, different for columns that have a row in common; −1 for those without elements. In
    each round the columns that come first, in a random order, in all their rows get the least number that is free.
    """
    height, width = pattern.shape
    found = np.full(width, -1)
    rows, columns = pattern.rows, pattern.columns
    priority = np.random.default_rng(0).permutation(width)
    taken = np.zeros((height, 8), bool)  # the colours in each row
    while rows.size:
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        first = np.maximum.reduceat(priority[columns], starts)
        leads = priority[columns] == np.repeat(first, np.diff(starts, append=rows.size))
        wins = np.bincount(columns, leads, width) == np.bincount(columns, minlength=width)
        now = wins[columns]
        mine, there = columns[now], rows[now]
        order = np.argsort(mine, kind="stable")
        mine, there = mine[order], there[order]
        begins = np.flatnonzero(np.diff(mine, prepend=-1))
        met = np.logical_or.reduceat(taken[there], begins)
        if met.all(axis=1).any():
            taken = np.concatenate([taken, np.zeros_like(taken)], axis=1)
            met = np.concatenate([met, np.zeros_like(met)], axis=1)
        found[mine[begins]] = np.argmin(met, axis=1)
        taken[there, found[mine]] = True
        rows, columns = rows[~now], columns[~now]
    return found


#: The colours of the patterns that were used last: a Newton iteration asks for the same ones in each step.
_colours: dict[tuple[str, tuple[int, int]], Array] = {}
_MOST_PATTERNS = 16


def _known_colours(pattern: Pattern) -> Array:
    """The same as `colours`, from the last time if the pattern is one of those used last."""
    key = digest(pattern.rows.tobytes(), pattern.columns.tobytes()), pattern.shape
    found = _colours.pop(key, None)
    if found is None:
        found = colours(pattern)
        if len(_colours) >= _MOST_PATTERNS:
            _colours.pop(next(iter(tuple(_colours))), None)  # another thread may change it meanwhile
    _colours[key] = found
    return found


def values(product: Product, pattern: Pattern) -> Array:
    """The elements of a Jacobian, those of a pattern."""
    colour = _known_colours(pattern)
    return product(colour, np.ones(pattern.shape[1]))[pattern.rows, colour[pattern.columns]]


def misses(product: Product, pattern: Pattern, found: Array, epsilon: float) -> int | None:
    """A row in which the Jacobian has elements that a pattern lacks, if there is any: its product with a random vector
    is not that of the elements `found`. `epsilon`: of the numbers that it is computed in. An element that is smaller
    than half of their digits, relative to its row, is not detected.
    """
    vector = np.random.default_rng().uniform(1, 2, pattern.shape[1])
    terms = found * vector[pattern.columns]
    height = pattern.shape[0]
    expected = np.bincount(pattern.rows, terms, height)
    magnitude = np.bincount(pattern.rows, np.abs(terms), height)
    computed = product(np.zeros(pattern.shape[1], np.intp), vector)[:, 0]
    wrong = np.flatnonzero(np.abs(computed - expected) > np.sqrt(epsilon) * magnitude)
    return int(wrong[0]) if wrong.size else None
