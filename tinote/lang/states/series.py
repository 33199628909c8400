"""States one after another in a Zarr store: each array has an axis of states before its own, so that xarray and other
readers of Zarr take the store as it is.

The lengths of all arrays are in the metadata of the store, which is written when all is there, and last the number of
whole states: of a process that is killed in between, the states before are left.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinote.errors import StateError
from tinote.lang.session.libraries import library
from tinote.lang.states.files import FORMAT, check_format, with_arrays, without_arrays
from tinote.lang.states.records import Saved, arrays_in
from tinote.source import caller

#: Bytes of a chunk: what is read and decompressed at once.
_MOST_BYTES_OF_A_CHUNK = 1 << 26
_COUNT = "states"
#: The names of arrays that all states have in common.
_COMMON = "common"
#: The array of the states of random numbers.
_RANDOM = "tinote_random"


class Described(NamedTuple):
    """What a store says of its arrays: the name of the axis of states, dimensions and attributes by the names of
    arrays, and arrays that all states have in common, with their dimensions.
    """

    axis: str = "state"
    dimensions: Mapping[str, tuple[str, ...]] = {}
    attributes: Mapping[str, Mapping[str, Any]] = {}
    common: Mapping[str, tuple[tuple[str, ...], np.ndarray[Any, Any]]] = {}


_PLAIN = Described()


def append_state(
    path: Path, state: Mapping[str, Saved], facts: dict[str, Any], *, anew: bool, described: Described = _PLAIN
) -> None:
    """Write one state more, or, `anew`, the first of a store that takes the place of what is there."""
    zarr = _zarr()
    flat, shape = _flat(state, facts.pop("random"))
    shape |= facts
    if anew or not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        known = {"tinote_state": FORMAT, _COUNT: 0, _COMMON: list(described.common), **shape}
        group = zarr.open_group(unfinished, mode="w", attributes=known)
        for name, (dimensions, array) in described.common.items():
            attributes = dict(described.attributes.get(name, {}))
            group.create_array(name, data=array, dimension_names=dimensions, attributes=attributes)
        for name, array in flat.items():
            _lay_out(group, name, array, described)
        _write(zarr, group, 0, flat)
        if path.exists():
            _open(zarr, path)  # nothing else is removed
            shutil.rmtree(path)
        unfinished.rename(path)
        return
    group = _open(zarr, path, "r+")
    held = {name: f"{array.dtype} of shape {array.shape[1:]}" for name, array in _arrays(group)}
    new = {name: f"{array.dtype} of shape {array.shape}" for name, array in flat.items()}
    for name in dict.fromkeys((*held, *new)):
        if held.get(name) != new.get(name):
            raise StateError(
                f"{path} holds {held.get(name, 'nothing')} for {name!r}, not {new.get(name, 'nothing')}",
                caller(),
                hint="all states of a store have the same names, types and shapes; save this one to another store",
            )
    for what, value in shape.items():
        if group.attrs[what] != value:
            raise StateError(
                f"{path} has the {_WORDS[what]} {group.attrs[what]}, not {value}",
                caller(),
                hint="only arrays and numbers differ between the states of a store; save this one to another",
            )
    _write(zarr, group, group.attrs[_COUNT], flat)


def read_states(path: Path, name: str) -> np.ndarray[Any, Any]:
    """What all states hold for a name. Raises `StateError`."""
    group = _open(_zarr(), path)
    if name not in group:
        raise StateError(f"{path} holds no {name!r}", caller())
    return np.asarray(group[name][: group.attrs[_COUNT]])


def keep_states(path: Path, name: str, until: float) -> None:
    """Forget the states for which the number called `name`, which increases, is above `until`."""
    zarr = _zarr()
    _end(zarr, _open(zarr, path, "r+"), int(np.searchsorted(read_states(path, name), until, side="right")))


def read_state(path: Path, at: int) -> tuple[dict[str, Saved], dict[str, Any]]:
    """A state by its number, and what is known of it. Raises `StateError` where there is none."""
    group = _open(_zarr(), path)
    count = group.attrs[_COUNT]
    if not -count <= at < count:
        raise StateError(f"{path} holds {count} state{'s' * (count != 1)}; there is no number {at}", caller())
    try:
        arrays = {name: np.asarray(array[at % count]) for name, array in _arrays(group)}
    except (OSError, ValueError, RuntimeError) as error:
        raise StateError(f"{path} is damaged: {error}", caller()) from None
    random = int(arrays.pop(_RANDOM))
    numbers = {name: arrays[name].item() for name in group.attrs["numbers"]}
    found = with_arrays(group.attrs["values"], {**arrays, **numbers})
    return found, {"random": random, "made_by": group.attrs["made_by"], "states": count}


def _zarr() -> Any:
    return library("zarr", "a store of states", StateError)


def _open(zarr: Any, path: Path, mode: str = "r") -> Any:
    """The group of a store. Raises `StateError` for what is none."""
    if not path.exists():
        raise StateError(f"there is no {path}", caller())
    try:
        group = zarr.open_group(path, mode=mode, use_consolidated=False)
    except Exception as error:  # of many kinds
        raise StateError(f"{path} is damaged, or no store of ti.save: {error}", caller()) from None
    if "tinote_state" not in group.attrs:
        raise StateError(f"{path} was not written by ti.save", caller(), hint="xarray.open_zarr reads other stores")
    check_format(path, group.attrs["tinote_state"])
    return group


#: What is said of what all states of a store have in common.
_WORDS = {"values": "values (without arrays and numbers)", "numbers": "numbers", "made_by": "functions that made it"}


def _flat(state: Mapping[str, Saved], random: int) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Arrays by full names, numbers among them, and what is left of the state without them."""
    numbers = {name: np.asarray(found) for name, found in state.items() if isinstance(found, bool | int | float)}
    for name, found in numbers.items():
        if found.dtype.hasobject:
            raise StateError(f"{name!r} is too large for an integer of 64 bits", caller())
    whole = {**state, **numbers}
    flat = {full: array for name, found in whole.items() for full, array in arrays_in(name, found)}
    flat[_RANDOM] = np.array(random, np.uint64)
    values = {name: without_arrays(found) for name, found in whole.items()}
    return flat, {"values": json.loads(json.dumps(values)), "numbers": list(numbers)}


def _arrays(group: Any) -> Iterator[tuple[str, Any]]:
    """The arrays that have an axis of states."""
    with warnings.catch_warnings():  # of files that a process left which was killed
        warnings.simplefilter("ignore")
        held = list(group.arrays())
    common = group.attrs.get(_COMMON, ())
    return ((name, array) for name, array in held if name not in common)


def _lay_out(group: Any, name: str, array: np.ndarray[Any, Any], described: Described) -> None:
    rows = array.shape[0] if array.ndim else 1
    bytes_of_a_row = max(1, array.nbytes // max(1, rows))
    first = max(1, min(rows, _MOST_BYTES_OF_A_CHUNK // bytes_of_a_row))
    own = tuple([f"{name}_{axis}" for axis in range(array.ndim)])
    group.create_array(
        name,
        shape=(0, *array.shape),
        dtype=array.dtype,
        chunks=(1, *((first, *(max(1, n) for n in array.shape[1:])) if array.ndim else ())),
        dimension_names=[described.axis, *described.dimensions.get(name, own)],
        attributes=dict(described.attributes.get(name, {})),
    )


def _write(zarr: Any, group: Any, number: int, flat: Mapping[str, np.ndarray[Any, Any]]) -> None:
    for name, array in flat.items():
        stored = group[name]
        stored.resize((number + 1, *array.shape))
        stored[number] = array
    _end(zarr, group, number + 1)


def _end(zarr: Any, group: Any, number: int) -> None:
    """The store holds this number of states."""
    for _, array in _arrays(group):
        if array.shape[0] != number:
            array.resize((number, *array.shape[1:]))
    with warnings.catch_warnings():  # format 3 has no word on what all readers of it take
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(group.store).update_attributes({_COUNT: number})
