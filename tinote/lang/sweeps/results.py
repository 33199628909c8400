"""The outcomes of a sweep's points as arrays, in memory and in a Zarr store from which a sweep goes on.

A store is a group of Zarr: an array for each result and parameter along the dimension `point`, `seconds`, `seed`, and
`state` (0: not run, 1: done, 2: failed), which is written last. Its attributes are JSON: what was swept, the versions
of all that took part, and the messages of points that failed. Nothing in it is code.
"""

from __future__ import annotations

import shutil
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from tinote.errors import SweepError
from tinote.lang.sweeps.extras import library
from tinote.lang.sweeps.points import Points
from tinote.lang.sweeps.runs import Outcome
from tinote.source import Span

NOT_RUN, DONE, FAILED = 0, 1, 2
_FORMAT = 1
_OF_POINTS = ("points", "dims", "shape")
_CHUNK = 256
_SECONDS_BETWEEN_WRITES = 1.0
OWN = ("seconds", "state", "error", "point_seed")
"""Names that the table and its store have for themselves, and `seed` where that is no parameter."""


class Table:
    """The results so far."""

    def __init__(self, points: Points) -> None:
        count = len(points.rows)
        self.points = points
        self.state = np.zeros(count, np.int8)
        self.seconds = np.full(count, np.nan)
        self.errors: dict[int, tuple[str, str]] = {}
        self.results: dict[str, np.ndarray[Any, Any]] = {}
        self.seed_name = "point_seed" if "seed" in points.labels else "seed"

    def add(self, number: int, outcome: Outcome) -> None:
        """What became of a point. One whose results are not like those of the others has failed."""
        error, details = outcome.error, outcome.details
        if not error:
            error = self._unlike(outcome.result)
        self.seconds[number] = outcome.seconds
        if error:
            self.state[number], self.errors[number] = FAILED, (error, details)
            return
        for name, value in outcome.result.items():
            held = self.results.get(name)
            if held is None:
                held = self.results[name] = np.zeros((len(self.state), *value.shape), value.dtype)
            wanted = np.promote_types(held.dtype, value.dtype)
            if wanted != held.dtype:
                held = self.results[name] = held.astype(wanted)
            held[number] = value
        self.state[number] = DONE
        self.errors.pop(number, None)

    def _unlike(self, result: Mapping[str, Any]) -> str:
        for name in result:
            if not name or name in OWN or name == self.seed_name or name in self.points.labels:
                return f"the result '{name}' has the name of something else in the table"
        axes = {f"{name}_{axis}": name for name, value in result.items() for axis in range(np.ndim(value))}
        for name, of in axes.items():
            if name in result or name in self.points.labels:
                return f"the result '{of}' has an axis '{name}', which is the name of something else in the table"
        if not (self.state == DONE).any():
            self.results.clear()
            return ""
        if result.keys() != self.results.keys():
            return f"this point gives {', '.join(result) or 'nothing'}, others {', '.join(self.results) or 'nothing'}"
        for name, value in result.items():
            wanted = self.results[name].shape[1:]
            if value.shape != wanted:
                return f"the result '{name}' has shape {value.shape} here, and {wanted} elsewhere"
        return ""

    def dataset(self, attributes: Mapping[str, Any]) -> Any:
        """An `xarray.Dataset`. Results that are missing are NaN, as floats."""
        xarray = library("xarray", "a sweep")
        points = self.points
        everything = bool((self.state == DONE).all())
        variables: dict[str, Any] = {}

        def put(name: str, flat: np.ndarray[Any, Any], further: tuple[str, ...] = ()) -> None:
            variables[name] = ((*points.dims, *further), flat.reshape(points.shape + flat.shape[1:]))

        for name, held in self.results.items():
            if not everything:
                held = (
                    held.astype(np.result_type(held.dtype, np.float32 if held.dtype.itemsize < 4 else np.float64))
                    if (held.dtype.kind in "biu")
                    else held.copy()
                )
                held[self.state != DONE] = np.nan
            put(name, held, tuple([f"{name}_{axis}" for axis in range(held.ndim - 1)]))
        put("seconds", self.seconds)
        put(self.seed_name, np.array(points.seeds, np.int64))
        texts = np.full(len(self.state), "", dtype=object)
        texts[self.state == NOT_RUN] = "not run"
        for number, (message, _) in self.errors.items():
            texts[number] = message
        put("error", texts.astype(str))
        coordinates = {name: (dims, values) for name, (dims, values) in points.labels.items()}
        found = xarray.Dataset(variables, coordinates, dict(attributes))
        found["seconds"].attrs["units"] = "s"
        return found


def load_tables() -> None:
    """xarray with all that a first table makes it load, a second's worth: in a thread of its own while points run, so
    that the end of a sweep, and an interrupt, need not wait for it.
    """

    def load() -> None:
        xarray = library("xarray", "a sweep")
        xarray.Dataset({"one": ("x", np.zeros(1))}, {"x": np.zeros(1)})

    threading.Thread(target=load, daemon=True).start()


class Store:
    """A table in a folder. Between `begin` and `close` a thread of its own writes what has come, each second, so that
    nothing waits for a point that takes long.
    """

    def __init__(self, path: Any, table: Table, description: dict[str, Any], where: Span) -> None:
        self._zarr = library("zarr", "a store of a sweep")
        self._path = Path(path)
        self._table = table
        self._where = where
        self._new: list[int] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._failed: Exception | None = None
        former = self._beside("before")
        if former.exists() and not self._path.exists():  # it was being laid out anew when everything ended
            former.rename(self._path)
        if (self._path / "zarr.json").exists():
            self._group = self._zarr.open_group(self._path, mode="r+")
            self._read(description)
        elif self._path.exists() and any(self._path.iterdir() if self._path.is_dir() else [self._path]):
            raise SweepError(f"{self._path} is there already, and is no store of a sweep", where)
        else:
            self._group = self._zarr.open_group(self._path, mode="w")
            self._lay_out(description)

    def _beside(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{what}")

    def _lay_out_anew(self, description: dict[str, Any]) -> None:
        """The store, for the points that the table has now. It is complete before it takes the place of the former."""
        new, former = self._beside("new"), self._beside("before")
        for folder in (new, former):
            shutil.rmtree(folder, ignore_errors=True)
        self._group = self._zarr.open_group(new, mode="w")
        for name, held in self._table.results.items():
            self._array(name, held.shape, held.dtype)[...] = held
        self._lay_out(description)
        self._path.rename(former)
        new.rename(self._path)
        shutil.rmtree(former)
        self._group = self._zarr.open_group(self._path, mode="r+")

    def _lay_out(self, description: dict[str, Any]) -> None:
        points = self._table.points
        for name, (dims, values) in points.labels.items():
            if dims == ("point",):
                self._make(name, np.asarray(values))
            else:  # along a dimension of its own: the value of each point
                axis = points.dims.index(name)
                index = np.unravel_index(np.arange(len(points.rows)), points.shape)[axis]
                self._make(name, np.asarray(values)[index])
        self._make("seconds", self._table.seconds)
        self._make(self._table.seed_name, np.array(points.seeds, np.int64))
        self._make("state", self._table.state)
        self._group.attrs.update({"tinote_sweep": _FORMAT, "errors": {}, **description})

    def _make(self, name: str, values: np.ndarray[Any, Any]) -> None:
        if values.dtype.kind in "US":  # text is JSON here
            self._group.attrs[f"values of {name}"] = values.tolist()
            return
        array = self._array(name, values.shape, values.dtype)
        if values.size:
            array[...] = values

    def _array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        chunks = (max(1, min(_CHUNK, shape[0])), *[max(1, n) for n in shape[1:]])
        further = [f"{name}_{axis}" for axis in range(len(shape) - 1)]
        return self._group.create_array(
            _stored(name), shape=shape, dtype=dtype, chunks=chunks, dimension_names=["point", *further], overwrite=True
        )

    def _read(self, description: dict[str, Any]) -> None:
        attributes = dict(self._group.attrs)
        if attributes.get("tinote_sweep") != _FORMAT:
            raise SweepError(f"{self._path} is no store of a sweep that this version reads", self._where)
        for what, wanted in description.items():
            held = attributes.get(what)
            if held != wanted and what not in ("versions", *_OF_POINTS):
                raise self._another(_difference(what, held, wanted))
        points: list[str] = attributes["points"]
        numbers = {key: number for number, key in enumerate(self._table.points.keys)}
        gone = sum(key not in numbers for key in points)
        if gone:
            raise self._another(f"{gone} of its {len(points)} points are not among the {len(numbers)} of this one")
        if attributes.get("versions") != description["versions"]:
            warnings.warn(f"the sweep in {self._path} was begun with other versions", UserWarning, stacklevel=2)
        table, places = self._table, np.array([numbers[key] for key in points], np.intp)
        own = {"seconds", "state", table.seed_name, *table.points.labels}
        table.state[places] = self._group["state"][...]
        table.state[table.state == FAILED] = NOT_RUN  # they may succeed now
        table.seconds[places] = self._group["seconds"][...]
        for stored, array in self._group.arrays():
            name = unquote(stored)
            if name not in own:
                held = table.results[name] = np.zeros((len(table.state), *array.shape[1:]), array.dtype)
                held[places] = array[...]
        if any(attributes[what] != description[what] for what in _OF_POINTS):
            self._lay_out_anew(description)

    def _another(self, how: str) -> SweepError:
        return SweepError(
            f"the sweep in {self._path} is another one: {how}",
            self._where,
            hint="name another store, or remove this one",
        )

    def begin(self) -> None:
        """Points are about to come."""
        self._writer.start()

    def add(self, number: int, outcome: Outcome) -> None:
        """A point has come: it is put into the table, and written soon. Raises what kept earlier ones from that."""
        with self._lock:
            if self._failed is not None:
                raise self._failed
            self._table.add(number, outcome)
            self._new.append(number)

    def close(self) -> None:
        """No more points come."""
        self._ended.set()
        self._writer.join()
        self._flush()

    def _write(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_WRITES):
            try:
                with self._lock:
                    self._flush()
            except Exception as error:
                self._failed = error
                return

    def _flush(self) -> None:
        if not self._new:
            return
        numbers, table = np.array(sorted(self._new)), self._table
        for name, held in table.results.items():
            if _stored(name) not in self._group or self._group[_stored(name)].dtype != held.dtype:
                self._array(name, held.shape, held.dtype)[...] = held
            else:
                self._put(name, numbers, held)
        self._put("seconds", numbers, table.seconds)
        if any(number in table.errors for number in self._new):
            self._group.attrs["errors"] = {str(number): list(error) for number, error in table.errors.items()}
        self._put("state", numbers, table.state)
        self._new.clear()

    def _put(self, name: str, numbers: np.ndarray[Any, Any], held: np.ndarray[Any, Any]) -> None:
        """Whole chunks: all of their points are as the table has them, those that have not come as well."""
        array = self._group[_stored(name)]
        for chunk in np.unique(numbers // _CHUNK):
            part = slice(int(chunk) * _CHUNK, min((int(chunk) + 1) * _CHUNK, len(held)))
            array[part] = held[part]


def _stored(name: str) -> str:
    """The name of an array in a store, where some texts name groups, or nothing."""
    found = name.replace("%", "%25").replace("/", "%2F")
    return f"%{ord(found[0]):02X}{found[1:]}" if found.startswith((".", "__")) else found


def _difference(what: str, held: Any, wanted: Any) -> str:
    if isinstance(held, dict) and isinstance(wanted, dict):
        names = [name for name in {**held, **wanted} if held.get(name) != wanted.get(name)]
        return f"it was begun with another {' and another '.join(names)}"
    return f"its {what} is {held!r}, not {wanted!r}"
