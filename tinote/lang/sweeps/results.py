"""The outcomes of a sweep's points as arrays, in memory and in a Zarr store from which a sweep resumes.

A store is a group of Zarr: an array for each result and parameter along the dimension `point`, `seconds`, `seed`, and
`state` (0: not run, 1: done, 2: failed), which is written last. Its attributes are JSON: what was swept, the versions
of all that took part, and the messages of points that failed. Nothing in it is code. Whatever is damaged is noticed
when it is read: all chunks are written, with checksums; `files` has a digest of the description of each array, and
`digest` is one of the attributes themselves.
"""

from __future__ import annotations

import json
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
from tinote.lang.sweeps.runs import Outcome, is_exact, with_nan
from tinote.runtime.digest import digest
from tinote.source import Span

NOT_RUN, DONE, FAILED = 0, 1, 2
_FORMAT = 2
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
            held = self.results[name]
            if value.shape != held.shape[1:]:
                return f"the result '{name}' has shape {value.shape} here, and {held.shape[1:]} elsewhere"
            both = np.promote_types(held.dtype, value.dtype)
            if not all(is_exact(one, both) for one in (value, held[self.state == DONE])):
                return f"the result '{name}' is of {value.dtype} here and of {held.dtype} elsewhere, which do not mix"
        return ""

    def dataset(self, attributes: Mapping[str, Any]) -> Any:
        """An `xarray.Dataset`. Results that are missing are NaN, as floats."""
        xarray = library("xarray", "a sweep")
        points = self.points
        done = self.state == DONE
        everything = bool(done.all())
        variables: dict[str, Any] = {}

        def put(name: str, flat: np.ndarray[Any, Any], further: tuple[str, ...] = ()) -> None:
            variables[name] = ((*points.dims, *further), flat.reshape(points.shape + flat.shape[1:]))

        for name, held in self.results.items():
            if not everything:
                if not is_exact(held[done], with_nan(held).dtype):
                    text = f"as some points are missing, the integers of the result '{name}' are rounded to floats"
                    warnings.warn(text, UserWarning, stacklevel=3)
                held = with_nan(held)
                held[~done] = np.nan
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


class SweepStore:
    """A table in a folder. Between `begin` and `close` a thread of its own writes what has come, each second, so that
    nothing waits for a point that takes long.
    """

    def __init__(self, path: Any, table: Table, description: dict[str, Any], where: Span) -> None:
        self._zarr = library("zarr", "a store of a sweep")
        self._path = self._folder = Path(path)
        self._table = table
        self._description = description
        self._where = where
        self._new: list[int] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._failed: Exception | None = None
        former = self._sibling("before")
        if former.exists() and not self._path.exists():  # it was being laid out anew when everything ended
            former.rename(self._path)
        if (self._path / "zarr.json").exists():
            self._read()
        elif (self._path / "state").exists():
            raise self._damaged(self._path / "zarr.json", "is missing")
        elif self._path.exists() and any(self._path.iterdir() if self._path.is_dir() else [self._path]):
            raise SweepError(f"{self._path} exists already, and is not a store of a sweep", where)
        else:
            self._lay_out_anew()

    def _sibling(self, what: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{what}")

    def _lay_out_anew(self) -> None:
        """The store, for what the table has now. It is complete before it takes the place of the former."""
        new, former = self._sibling("new"), self._sibling("before")
        for folder in (new, former):
            shutil.rmtree(folder, ignore_errors=True)
        self._lay_out(new)
        if self._path.exists():
            self._path.rename(former)
        new.rename(self._path)
        shutil.rmtree(former, ignore_errors=True)
        self._open(self._path)

    def _open(self, folder: Path, mode: str = "r+") -> None:
        self._group, self._folder = self._zarr.open_group(folder, mode=mode), folder

    def _lay_out(self, folder: Path) -> None:
        self._open(folder, "w")
        points = self._table.points
        self._describe({"tinote_sweep": _FORMAT, "errors": {}, "files": {}, **self._description})
        for name, held in self._table.results.items():
            self._make(name, held)
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

    def _describe(self, changes: Mapping[str, Any]) -> None:
        """Further attributes."""
        attributes = {**self._group.attrs.asdict(), **changes}
        self._group.attrs.put({**attributes, "digest": _digest_of(attributes)})

    def _make(self, name: str, values: np.ndarray[Any, Any]) -> None:
        if values.dtype.kind in "US":  # text is JSON here
            self._describe({f"values of {name}": values.tolist()})
            return
        chunks = (max(1, min(_CHUNK, len(values))), *[max(1, n) for n in values.shape[1:]])
        codecs = self._zarr.codecs
        with self._all_chunks():
            array = self._group.create_array(
                _stored(name),
                shape=values.shape,
                dtype=values.dtype,
                chunks=chunks,
                compressors=[codecs.ZstdCodec(), codecs.Crc32cCodec()],
                dimension_names=["point", *[f"{name}_{axis}" for axis in range(values.ndim - 1)]],
                overwrite=True,
            )
        if values.size:
            array[...] = values
        text = (self._folder / _stored(name) / "zarr.json").read_bytes()
        self._describe({"files": {**self._group.attrs["files"], _stored(name): digest(text)}})

    def _all_chunks(self) -> Any:
        """Arrays that are made or opened in this block write chunks of zeros as they write others."""
        return self._zarr.config.set({"array.write_empty_chunks": True})

    def _damaged(self, file: Path, how: str) -> SweepError:
        return SweepError(
            f"the store {self._path} is damaged: {file} {how}",
            self._where,
            hint="bring that file back, or remove the store and run the sweep again",
        )

    def _attributes(self) -> dict[str, Any]:
        file = self._path / "zarr.json"
        try:
            attributes = dict(json.loads(file.read_bytes())["attributes"])
            self._open(self._path)
        except Exception as error:
            raise self._damaged(file, f"cannot be read: {error}") from None
        found = attributes.pop("digest", None)
        if found is None and attributes.get("tinote_sweep") != _FORMAT:
            raise SweepError(f"{file} describes no store of a sweep that this version reads", self._where)
        if found != _digest_of(attributes):
            raise self._damaged(file, "is not as it was written")
        return attributes

    def _content(self, stored: str, wanted: str) -> np.ndarray[Any, Any]:
        """An array of the store, whose description has this digest. Raises `SweepError` with a file that is damaged."""
        folder = self._path / stored
        if not (folder / "zarr.json").exists():
            raise self._damaged(folder / "zarr.json", "is missing")
        if digest((folder / "zarr.json").read_bytes()) != wanted:
            raise self._damaged(folder / "zarr.json", "is not as it was written")
        array = self._group[stored]
        found = np.zeros(array.shape, array.dtype)
        for begin in range(0, len(found) if found.size else 0, _CHUNK):
            file = folder.joinpath("c", str(begin // _CHUNK), *["0"] * (found.ndim - 1))
            if not file.exists():
                raise self._damaged(file, "is missing")
            try:
                found[begin : begin + _CHUNK] = array[begin : begin + _CHUNK]
            except Exception as error:
                raise self._damaged(file, f"cannot be read: {error}") from None
        return found

    def _read(self) -> None:
        attributes, description = self._attributes(), self._description
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
        held = {unquote(stored): self._content(stored, wanted) for stored, wanted in attributes["files"].items()}
        own = {"seconds", "state", table.seed_name, *table.points.labels}
        table.state[places], table.seconds[places] = held["state"], held["seconds"]
        table.state[table.state == FAILED] = NOT_RUN  # they may succeed now
        for name, values in held.items():
            if name not in own:
                found = table.results[name] = np.zeros((len(table.state), *values.shape[1:]), values.dtype)
                found[places] = values
        if any(attributes[what] != description[what] for what in _OF_POINTS):
            self._lay_out_anew()

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
        stored = {unquote(name): self._group[name].dtype for name in self._group.attrs["files"]}
        if any(held.dtype != stored.get(name, held.dtype) for name, held in table.results.items()):
            self._lay_out_anew()
        for name, held in table.results.items():
            if name in stored:
                self._put(name, numbers, held)
            else:
                self._make(name, held)
        self._put("seconds", numbers, table.seconds)
        if any(number in table.errors for number in self._new):
            self._describe({"errors": {str(number): list(error) for number, error in table.errors.items()}})
        self._put("state", numbers, table.state)
        self._new.clear()

    def _put(self, name: str, numbers: np.ndarray[Any, Any], held: np.ndarray[Any, Any]) -> None:
        """Whole chunks: all of their points are as the table has them, those that have not come as well."""
        with self._all_chunks():
            array = self._group[_stored(name)]
        for chunk in np.unique(numbers // _CHUNK):
            part = slice(int(chunk) * _CHUNK, min((int(chunk) + 1) * _CHUNK, len(held)))
            array[part] = held[part]


def _stored(name: str) -> str:
    """The name of an array in a store, where some texts name groups, or nothing."""
    found = name.replace("%", "%25").replace("/", "%2F")
    return f"%{ord(found[0]):02X}{found[1:]}" if found.startswith((".", "__")) else found


def _digest_of(attributes: Mapping[str, Any]) -> str:
    return digest(json.dumps({**attributes, "digest": None}, sort_keys=True))


def _difference(what: str, held: Any, wanted: Any) -> str:
    if isinstance(held, dict) and isinstance(wanted, dict):
        names = [name for name in {**held, **wanted} if held.get(name) != wanted.get(name)]
        return f"it was begun with another {' and another '.join(names)}"
    return f"its {what} is {held!r}, not {wanted!r}"
