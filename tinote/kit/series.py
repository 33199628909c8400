"""Series of fields in time: `ti.io.Series`."""

import hashlib
import math
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from tinote.errors import FieldError, FileError
from tinote.kit.io import (
    AXES,
    Data,
    Grid,
    arrays_of,
    check_folder,
    data_on,
    in_three,
    mesh_or_grid,
    positions,
    rows,
    stored,
    units_of,
    write_vtk,
)
from tinote.kit.mesh import KINDS, Mesh
from tinote.lang.session.libraries import library
from tinote.lang.session.state import session
from tinote.lang.states.files import whole_file
from tinote.lang.states.series import Described, append_state, keep_states, read_states
from tinote.runtime.process_locks import process_lock
from tinote.source import caller

__all__ = ["Series"]

#: XDMF's names of kinds of cells.
TOPOLOGIES = {
    "vertex": "Polyvertex",
    "line": "Polyline",
    "triangle": "Triangle",
    "quad": "Quadrilateral",
    "tetra": "Tetrahedron",
    "hexahedron": "Hexahedron",
}
#: XDMF's names of values by their components, and of NumPy's kinds of numbers.
ATTRIBUTES = {1: "Scalar", 3: "Vector", 9: "Tensor"}
NUMBERS = {"f": "Float", "i": "Int", "u": "UInt"}
#: How much too early, as a part of the interval, a time of output is reached: times that are added up have roundings.
EARLY = 1e-6


class Series:
    """Fields at times, one after another, on a mesh, a grid or points.

    The ending of the file says how it is stored. `.pvd` lists files of VTK, `.xdmf` files of HDF5, in which a mesh that
    stays as it is comes once (this needs the library h5py); ParaView opens both, with time. These files are in a folder
    next to it, of the same name. `.zarr` is a store that `xarray.open_zarr` and `ti.load` read (this needs zarr).

    Each time is whole in the series or not there, whenever the process ends. Several processes may write times of one
    series to `.pvd` and `.xdmf`, all but the first with `append=True`.

    Parameters
    ----------
    path : path
        The file or store. What is there of an earlier series is removed.
    on : Mesh, Grid or Field, optional
        On what the fields are; a field of positions is points. It may move: what is written is how it is then. A store
        needs none.
    every : float, optional
        Write at the multiples of this time only, and at the first time.
    at : sequence of float, optional
        Write at these times only, which increase.
    append : bool or float, default False
        Go on with a series that is there; with a number, forget its later times, for a run that goes on from that time.
    units : dict of str, optional
        The units of fields by name, and of "time" and "length", as texts: attributes in the files. Those of fields with
        a unit are known.

    Methods
    -------
    is_due
    step
    write

    Attributes
    ----------
    path : pathlib.Path
    times : tuple of float

    Raises
    ------
    FileError
        For another format, another file of that name, and a missing folder or library.
    FieldError
        For what fields cannot be on, and for times that do not increase.

    Examples
    --------
    >>> u = ti.field(ti.f32, shape=(32, 32))
    >>> series = ti.io.Series("waves.pvd", ti.io.Grid((32, 32), spacing=0.1), every=0.1)
    >>> t = 0.0
    >>> while t < 0.25:
    ...     _ = series.write(t, u=u)
    ...     t += series.step(t, 0.04)  # what stability allows, or less
    >>> [round(time, 3) for time in series.times]
    [0.0, 0.1, 0.2]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        on: Any = None,
        *,
        every: float | None = None,
        at: Sequence[float] | None = None,
        append: bool | float = False,
        units: Mapping[str, str] | None = None,
    ) -> None:
        #: the file or store
        self.path = Path(path)
        check_folder(self.path)
        ending = self.path.suffix.lower()
        if ending not in _STORES:
            raise FileError(
                f"a series is written to a file *{', *'.join(_STORES)}, not to {self.path.name}",
                caller(),
                hint="ti.io.write writes single files",
            )
        if on is None and ending != ".zarr":
            raise FieldError("a series for ParaView is on a mesh, a grid or a field of positions", caller())
        self._on = None if on is None else mesh_or_grid(on)
        self._output = _Output(every, at)
        self._units = dict(units or {})
        self._store = _STORES[ending](self.path)
        until = math.inf if append is True else -math.inf if append is False else float(append)
        self._store.begin(until)
        self._last = max(self._store.times(), default=-math.inf)

    @property
    def times(self) -> tuple[float, ...]:
        """The times that are written, in their order."""
        return tuple(self._store.times())

    def is_due(self, t: float) -> bool:
        """Whether `write` writes at this time: always, or if a time of output has passed since it wrote last.

        Parameters
        ----------
        t : float
            The time.

        Returns
        -------
        bool

        Examples
        --------
        >>> series = ti.io.Series("run.pvd", ti.io.Grid((8, 8)), at=[1.0, 2.0])
        >>> series.is_due(0.5), series.is_due(1.0)
        (False, True)
        """
        return self._output.is_due(t, self._last)

    def step(self, t: float, dt: float) -> float:
        """The step to take from a time, so that output falls on its times.

        It is as long as given, or shorter where a time of output is near: the last two steps before it are equal.

        Parameters
        ----------
        t, dt : float
            The time, and the longest step.

        Returns
        -------
        float
            The step.

        Raises
        ------
        FieldError
            For a step that is not positive.

        Examples
        --------
        >>> series = ti.io.Series("run.pvd", ti.io.Grid((8, 8)), every=1.0)
        >>> series.step(0.0, 0.4), series.step(0.4, 0.4), series.step(0.7, 0.4)
        (0.4, 0.3, 0.30000000000000004)
        """
        return self._output.step(t, dt)

    def write(
        self,
        t: float,
        /,
        *,
        points: Mapping[str, Any] | None = None,
        cells: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> bool:
        """Write the fields as they are now, if output is due; those of a time that is there already are replaced.

        Parameters
        ----------
        t : float
            The time. In a store it is later than all before.
        points, cells : dict, optional
            Fields by name with values at points or in cells, where their shapes do not say which it is.
        **fields
            Fields, arrays, structs by name, as for `ti.io.write`. In a store numbers, too, and, without a mesh or grid,
            fields of any shape.

        Returns
        -------
        bool
            Whether it was written.

        Raises
        ------
        FieldError
            For fields of other shapes, and sparse ones.
        FileError
            For a time that does not fit, and a series that was damaged.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=10)
        >>> series = ti.io.Series("particles.pvd", x, every=0.5)
        >>> [series.write(t, x=x) for t in (0.0, 0.2, 0.5)]
        [True, False, True]
        """
        t = float(t)
        if not math.isfinite(t):
            raise FieldError(f"the time is {t}", caller())
        if not self.is_due(t):
            return False
        self._store.units = units_of(self._on, points, cells, fields) | self._units
        self._store.write(t, self._on, points, cells, fields)
        self._last = max(self._last, t)
        return True


class _Output:
    """When output is due."""

    def __init__(self, every: float | None, at: Sequence[float] | None) -> None:
        if every is not None and at is not None:
            raise FieldError("output is at multiples of a time, or at given times", caller())
        if every is not None and not 0 < every < math.inf:
            raise FieldError(f"output every {every!r} makes no sense: the time is positive", caller())
        self.every = every
        self.at = None if at is None else np.asarray(at, dtype=float)
        if self.at is not None and (self.at.ndim != 1 or not (np.diff(self.at) > 0).all()):
            raise FieldError(f"the times of output increase, unlike {at!r}", caller())
        #: how much too early each time may be
        self.early = EARLY * (every or 1.0)
        if self.at is not None and len(self.at) > 1:
            self.early = EARLY * float(np.diff(self.at).min())

    def passed(self, t: float) -> float:
        """How many times of output have passed."""
        if t == -math.inf:
            return 0.0 if self.at is not None else -math.inf
        if self.at is not None:
            return float(np.searchsorted(self.at, t + self.early, side="right"))
        return math.floor((t + self.early) / self.every) if self.every else t

    def is_due(self, t: float, last: float) -> bool:
        return (self.every is None and self.at is None) or self.passed(t) > self.passed(last)

    def step(self, t: float, dt: float) -> float:
        if not dt > 0:
            raise FieldError(f"the step is {dt!r}, and must be positive", caller())
        left = math.inf
        if self.every is not None:
            left = (self.passed(t) + 1) * self.every - t
        elif self.at is not None and self.passed(t) < len(self.at):
            left = float(self.at[int(self.passed(t))]) - t
        if left <= dt * (1 + EARLY):
            return left
        return left / 2 if left < 2 * dt else dt


class _Entry(NamedTuple):
    """A time in a list of files: the line, and the files that it names."""

    time: float
    line: str
    files: tuple[str, ...]


class _Listed:
    """A file with a line for each time, which names files in a folder next to it. It is replaced as a whole."""

    head = tail = ""
    time = re.compile("")
    file = re.compile(r"[^\">/]+/[\w.]+\.(?:vtu|vti|h5)\b")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.units: Mapping[str, str] = {}
        self.folder = path.with_suffix("")
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"the files of {path.name} go to the folder {self.folder}, which is a file", caller())
        #: what the file was when its entries were read last, and these
        self.seen: tuple[int, ...] = ()
        self.entries: list[_Entry] = []

    def begin(self, until: float) -> None:
        self.folder.mkdir(exist_ok=True)
        with process_lock(self.folder, "series"):
            there = self.read() if self.path.exists() else []
            kept = [entry for entry in there if entry.time <= until]
            if len(kept) < len(there) or not self.path.exists():
                self.replace(there, kept)
            if until == -math.inf:  # of a process that was killed
                for file in self.folder.glob("*.unfinished.*"):
                    file.unlink(missing_ok=True)

    def read(self) -> list[_Entry]:
        """The entries that are there, in the order of times. Raises `FileError` for another file."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return []
        seen = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        if seen != self.seen:
            text = self.path.read_text("utf-8", errors="replace")
            if not text.startswith(self.head) or not text.endswith(self.tail):
                raise FileError(f"{self.path} was not written by ti.io.Series", caller(), hint="take another name")
            lines = text[len(self.head) : len(text) - len(self.tail)].splitlines()
            self.entries, self.seen = list(map(self.entry, lines)), seen
        return self.entries

    def entry(self, line: str) -> _Entry:
        found = self.time.search(line)
        if found is None:
            raise FileError(f"{self.path} was not written by ti.io.Series: {line}", caller())
        return _Entry(float(found[1]), line, tuple(self.file.findall(line)))

    def replace(self, before: Sequence[_Entry], now: Sequence[_Entry]) -> None:
        """List these entries, and remove files that only former ones name."""
        with whole_file(self.path, durable=False) as out:
            out.write("".join([self.head, *[f"{entry.line}\n" for entry in now], self.tail]).encode())
        named = {file for entry in now for file in entry.files}
        for file in {file for entry in before for file in entry.files} - named:
            (self.path.parent / file).unlink(missing_ok=True)

    def times(self) -> list[float]:
        return [entry.time for entry in self.read()]

    def add(self, t: float, unfinished: Path, line: Any) -> None:
        """A whole file gets the next number, and the time with it a line."""
        self.folder.mkdir(exist_ok=True)
        with process_lock(self.folder, "series"):
            there = self.read()
            numbers = [int(found) for entry in there for found in re.findall(r"(\d{6,})\.", " ".join(entry.files))]
            name = f"{max(numbers, default=-1) + 1:06d}{unfinished.suffix}"
            os.replace(unfinished, self.folder / name)
            now = [entry for entry in there if entry.time != t]
            now.append(self.entry(line(f"{self.folder.name}/{name}")))
            self.replace(there, sorted(now))

    def unfinished(self, ending: str) -> Path:
        return self.folder / f"{uuid.uuid4().hex}.unfinished{ending}"


class _Collection(_Listed):
    """ParaView's list of VTK files."""

    head = (
        '<?xml version="1.0" encoding="utf-8"?>\n<VTKFile type="Collection" version="1.0" byte_order="LittleEndian">\n'
        "<Collection>\n"
    )
    tail = "</Collection>\n</VTKFile>\n"
    time = re.compile('timestep="([^"]+)"')

    def write(self, t: float, on: Any, points: Any, cells: Any, fields: Any) -> None:
        data = data_on(on, points, cells, fields)
        unfinished = self.unfinished(".vti" if isinstance(on, Grid) else ".vtu")
        try:
            write_vtk(unfinished, on, data, self.units)
            self.add(t, unfinished, lambda file: f'<DataSet timestep="{t!r}" part="0" file={quoteattr(file)}/>')
        finally:
            unfinished.unlink(missing_ok=True)


class _Xdmf(_Listed):
    """XDMF 3: what is in which arrays of which files of HDF5."""

    head = (
        '<?xml version="1.0" encoding="utf-8"?>\n<Xdmf Version="3.0">\n<Domain>\n'
        '<Grid Name="series" GridType="Collection" CollectionType="Temporal">\n'
    )
    tail = "</Grid>\n</Domain>\n</Xdmf>\n"
    time = re.compile('<Time Value="([^"]+)"')

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.h5py = library("h5py", "a series in HDF5", FileError)

    def write(self, t: float, on: Any, points: Any, cells: Any, fields: Any) -> None:
        data = data_on(on, points, cells, fields)
        unfinished = self.unfinished(".h5")
        try:
            values = self.values(unfinished, on, data)
            shape = self.grid(on) if isinstance(on, Grid) else self.mesh(on)
            self.add(
                t,
                unfinished,
                lambda file: (
                    f'<Grid Name="{t!r}" GridType="Uniform"><Time Value="{t!r}"/>{shape}'
                    f"{''.join([text.replace(_HERE, file) for text in values])}</Grid>"
                ),
            )
        finally:
            unfinished.unlink(missing_ok=True)

    def values(self, path: Path, on: Any, data: Data) -> list[str]:
        """Write the values to a file, and say what they are."""
        found = []
        with self.h5py.File(path, "w") as file:
            for where, arrays in data._asdict().items():
                shape = () if isinstance(on, Mesh) else in_three(getattr(on, where), 1)[::-1]
                for number, (name, array) in enumerate(arrays.items()):
                    plain = re.fullmatch(r"[\w.]+", name) is not None and not name.isdecimal()
                    place = f"{where}/{name if plain else number}"
                    flat = rows(array, 1 if isinstance(on, Mesh) else len(on.points))
                    components = flat.shape[1] if flat.ndim == 2 else 1
                    file[place] = flat.reshape(*shape, *flat.shape[1:]) if shape else flat
                    file[place].attrs["name"] = name
                    if name in self.units:
                        file[place].attrs["units"] = self.units[name]
                    kind = ATTRIBUTES.get(components, "Matrix")
                    found.append(
                        f'<Attribute Name={quoteattr(name)} AttributeType="{kind}"'
                        f' Center="{"Node" if where == "points" else "Cell"}">{_item(file[place], _HERE)}</Attribute>'
                    )
        return found

    def grid(self, on: Grid) -> str:
        numbers = " ".join(map(str, in_three(on.points, 1)[::-1]))
        origin = " ".join(map(repr, in_three(on.origin, 0.0)[::-1]))
        spacing = " ".join(map(repr, in_three(on.spacing, 1.0)[::-1]))
        of_three = '<DataItem Dimensions="3" NumberType="Float" Precision="8" Format="XML">'
        return (
            f'<Topology TopologyType="3DCoRectMesh" Dimensions="{numbers}"/><Geometry GeometryType="ORIGIN_DXDYDZ">'
            f"{of_three}{origin}</DataItem>{of_three}{spacing}</DataItem></Geometry>"
        )

    def mesh(self, on: Mesh) -> str:
        """Write the mesh, if it is not there, and say what it is. Its file has the name of its contents."""
        places, cells = positions(on), stored(on.cells.to_numpy())
        digest = hashlib.blake2b(places.tobytes(), digest_size=8)
        digest.update(on.kind.encode() + cells.tobytes())
        path = self.folder / f"mesh_{digest.hexdigest()}.h5"
        unfinished = self.unfinished(".h5")
        if not path.exists():
            with self.h5py.File(unfinished, "w") as file:
                file["vertices"], file["cells"] = places, cells
                if "length" in self.units:
                    file["vertices"].attrs["units"] = self.units["length"]
            os.replace(unfinished, path)
        corners = f' NodesPerElement="{KINDS[on.kind].corners}"' if on.kind in ("vertex", "line") else ""
        with self.h5py.File(path) as file:
            name = f"{self.folder.name}/{path.name}"
            return (
                f'<Topology TopologyType="{TOPOLOGIES[on.kind]}" NumberOfElements="{len(cells)}"{corners}>'
                f'{_item(file["cells"], name)}</Topology><Geometry GeometryType="XYZ">'
                f"{_item(file['vertices'], name)}</Geometry>"
            )


#: Stands for the file of a time until it has its name.
_HERE = "\0"


def _item(array: Any, file: str) -> str:
    kind = f'NumberType="{NUMBERS[array.dtype.kind]}" Precision="{array.dtype.itemsize}"'
    return (
        f'<DataItem Dimensions="{" ".join(map(str, array.shape))}" {kind} Format="HDF">{file}:{array.name}</DataItem>'
    )


class _Store:
    """A store of Zarr, as `ti.save` writes it, whose axis of states is time."""

    def __init__(self, path: Path) -> None:
        library("zarr", "a series in Zarr", FileError)
        self.path = path
        self.units: Mapping[str, str] = {}
        self.anew = False

    def begin(self, until: float) -> None:
        self.anew = until == -math.inf or not self.path.exists()
        if not self.anew and until < math.inf:
            keep_states(self.path, "time", until)

    def times(self) -> list[float]:
        return [] if self.anew else read_states(self.path, "time").tolist()

    def write(self, t: float, on: Any, points: Any, cells: Any, fields: Any) -> None:
        times = self.times()
        if times and times[-1] >= t:
            raise FileError(
                f"{self.path} has the time {times[-1]!r}, and {t!r} is not later",
                caller(),
                hint="Series(…, append=t) goes on from a time",
            )
        arrays, described = self.described(on, points, cells, fields)
        facts = {"made_by": None, "random": session.random_state()}
        append_state(self.path, {"time": t, **arrays}, facts, anew=self.anew, described=described)
        self.anew = False

    def described(self, on: Any, points: Any, cells: Any, fields: Any) -> tuple[dict[str, Any], Described]:
        """The arrays, and their dimensions, units and coordinates."""
        whole = {name: value for name, value in fields.items() if isinstance(value, int | float) or on is None}
        data = Data({}, {})
        if on is not None:
            data = data_on(on, points, cells, {name: value for name, value in fields.items() if name not in whole})
        dimensions, common = dict[str, tuple[str, ...]](), dict[str, tuple[tuple[str, ...], Any]]()
        arrays = dict[str, Any]()
        for where, held in data._asdict().items():
            axes = _axes(on, where) if held else {}
            common |= {name: ((name,), at) for name, at in axes.items() if at is not None}
            for name, array in held.items():
                arrays[name] = array
                inner = array.ndim - len(axes)
                names = ("component",) if inner == 1 else ("row", "column")
                dimensions[name] = (*axes, *[f"{name}_{part}" for part in names[:inner]])
        if isinstance(on, Mesh):
            dimensions["vertices"], arrays["vertices"] = ("vertex", "axis"), on.vertices.to_numpy()
            common["cells"] = ("cell", "corner"), on.cells.to_numpy()
        for name, value in whole.items():
            if isinstance(value, int | float):
                arrays[name] = value
            else:
                arrays |= dict(arrays_of(name, value))
        twice = {"time", *common} & arrays.keys()
        if twice:
            raise FieldError(f"{sorted(twice)[0]!r} is the name of something else in the store", caller())
        lengths = {name: "length" for name in ("vertices", *common) if name != "cells"}
        attributes = {
            name: {"units": self.units[lengths.get(name, name)]}
            for name in ("time", *common, *arrays)
            if lengths.get(name, name) in self.units
        }
        return arrays, Described("time", dimensions, attributes, common)


def _axes(on: Any, where: str) -> dict[str, Any]:
    """The axes of values at points or in cells, with the coordinates along each."""
    if isinstance(on, Mesh):
        return {"vertex" if where == "points" else "cell": None}
    half, suffix = (0.0, "") if where == "points" else (0.5, "_of_cells")
    numbers = getattr(on, where)
    return {
        f"{axis}{suffix}": origin + (np.arange(n) + half) * spacing
        for axis, n, origin, spacing in zip(AXES, numbers, on.origin, on.spacing, strict=False)
    }


_STORES: dict[str, Any] = {".pvd": _Collection, ".xdmf": _Xdmf, ".zarr": _Store}
