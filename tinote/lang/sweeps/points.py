"""The points of a sweep: the arguments of each, and the dimensions of the table."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import SerializationError, SweepError
from tinote.lang.shipping.tokens import token
from tinote.source import caller


class Points(NamedTuple):
    """`rows`: the arguments of each point, by name; `dims` and `shape`: of the table, whose elements are the points in
    row-major order; `labels`: of each dimension its coordinate, or of each parameter its values along `point`; `keys`
    tell points apart, however they are ordered; `seeds`: one of each.
    """

    rows: list[dict[str, Any]]
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    labels: dict[str, tuple[tuple[str, ...], Any]]
    keys: list[str]
    seeds: list[int]


def points_of(function: Callable[..., Any], over: Any, zipped: bool, seed: int, *, complete: bool = True) -> Points:
    """The points that `over` describes. `complete`: whether the function gets nothing else. Raises `SweepError`."""
    rows, dims, shape, labels = _rows(over, zipped)
    keys: list[str] = []
    met: dict[str, int] = {}
    for row in rows:
        try:
            name = token(sorted(row.items()))
        except (TypeError, pickle.PicklingError) as error:
            raise SerializationError(
                f"the arguments {row} cannot be sent to another process: {error}", caller()
            ) from None
        met[name] = met.get(name, 0) + 1
        keys.append(f"{name}-{met[name]}")
    seeds = [_seed(seed, key) for key in keys]
    if _takes_seed(function, rows):
        rows = [{**row, "seed": one} for row, one in zip(rows, seeds, strict=True)]
    if complete:
        _check_arguments(function, rows)
    return Points(rows, dims, shape, labels, keys, seeds)


def _rows(over: Any, zipped: bool) -> Any:
    if hasattr(over, "to_dict") and hasattr(over, "columns"):  # a frame of pandas
        over = over.to_dict("records")
    if isinstance(over, Mapping):
        if not over:
            raise SweepError("a sweep needs parameters: over is empty", caller(), hint='write over={"k": [1.0, 2.0]}')
        values = {str(name): _values(name, given) for name, given in over.items()}
        if not zipped:
            rows = [dict(zip(values, row, strict=True)) for row in product(*values.values())]
            labels = {name: ((name,), _labels(given)) for name, given in values.items()}
            return rows, tuple(values), tuple([len(given) for given in values.values()]), labels
        lengths = {name: len(given) for name, given in values.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            raise SweepError(f"with zip=True all parameters need the same number of values: {counts}", caller())
        rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    elif isinstance(over, Iterable) and not isinstance(over, str | bytes):
        rows = [_row(given) for given in over]
    else:
        raise SweepError(
            f"over is a dictionary of lists, a list of dictionaries or a frame, not {type(over).__name__}", caller()
        )
    names = list(dict.fromkeys(name for row in rows for name in row))
    for row in rows:
        if len(row) < len(names):
            missing = next(name for name in names if name not in row)
            raise SweepError(f"a point has no value of {missing!r}: {row}", caller())
    labels = {name: (("point",), _labels([row[name] for row in rows])) for name in names}
    return rows, ("point",), (len(rows),), {"point": (("point",), np.arange(len(rows))), **labels}


def _row(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise SweepError(f"a point is a dictionary of arguments, not {type(given).__name__}", caller())
    return {str(name): _plain(value) for name, value in given.items()}


def _values(name: Any, given: Any) -> list[Any]:
    is_single = isinstance(given, np.ndarray) and not given.ndim
    if is_single or isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise SweepError(f"the values of {name!r} are not a list: {given!r}", caller(), hint=f"write [{given!r}]")
    return [_plain(value) for value in given]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.number | np.bool_ | np.str_) else value  # a time would lose its unit


def _labels(values: Sequence[Any]) -> Any:
    """What stands for values in a table: themselves if they are numbers or text, else their numbers."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds in ({bool}, {str}):
        found = np.array(values) if values else np.zeros(0)
        if not found.dtype.hasobject:  # as of integers beyond 64 bits
            return found
    return np.arange(len(values))


def _seed(seed: int, key: str) -> int:
    digest = hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _takes_seed(function: Callable[..., Any], rows: list[dict[str, Any]]) -> bool:
    """Whether the function has a parameter `seed` that the points say nothing of."""
    signature = _signature(function)
    return signature is not None and "seed" in signature.parameters and bool(rows) and "seed" not in rows[0]


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _check_arguments(function: Callable[..., Any], rows: list[dict[str, Any]]) -> None:
    signature = _signature(function)
    if signature is None or not rows:
        return
    try:
        signature.bind(**rows[0])
    except TypeError as error:
        name = getattr(function, "__name__", "the function")
        raise SweepError(
            f"'{name}' cannot be called with the parameters {', '.join(rows[0])}: {error}", caller()
        ) from None
