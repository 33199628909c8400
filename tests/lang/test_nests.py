"""Values in lists, tuples and dicts: the walk that captures, derivatives, sweeps and pages share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tinote.lang.data.nests import leaves, map_leaves


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.mark.parametrize(
    ("value", "expected", "doubled"),
    [
        (3, [3], 6),
        ([], [], []),
        ([1, (2, [3])], [1, 2, 3], [2, (4, [6])]),
        ({"a": 1, "b": [2, {"c": 3}]}, [1, 2, 3], {"a": 2, "b": [4, {"c": 6}]}),
        (Pair(1, Pair([2], ())), [1, 2], Pair(2, Pair([4], ()))),
    ],
)
def test_leaves_in_order_and_the_same_nest_of_others(value: Any, expected: list[Any], doubled: Any) -> None:
    assert list(leaves(value)) == expected
    found = map_leaves(lambda one: 2 * one, value)
    assert found == doubled and type(found) is type(value)


def test_an_array_is_a_leaf() -> None:
    array = np.arange(3)
    assert next(leaves([array])) is array
