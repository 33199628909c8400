"""Values in lists, tuples and dicts, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """All that is in it and no list, tuple or dict, in order."""
    if isinstance(value, tuple | list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    else:
        yield value


def map_leaves(act: Callable[[Any], Any], value: Any) -> Any:
    """The same with `act` of each leaf; named tuples stay what they are."""
    if isinstance(value, dict):
        return {key: map_leaves(act, one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        parts = [map_leaves(act, one) for one in value]
        return getattr(value, "_make", type(value))(parts)
    return act(value)
