"""Meshes and fields in files, and series of them in time: `ti.io`.

    mesh = ti.io.read("bracket.msh")
    series = ti.io.Series("run.pvd", mesh, every=0.1)
    …
    series.write(t, displacement=u, stress=s)  # in a loop over time

Libraries read files, and write what has many formats (meshio, trimesh). What simulations write again and again is
written here: VTK's formats with raw binary data; series also in XDMF with HDF5, and in Zarr as `ti.save` does. A file
has its name when it is whole, and a series names it after that: a process that is killed leaves what was there before.
"""

import contextlib
import io
import math
import os
import re
import shutil
import uuid
import warnings
import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

import numpy as np

import tinote as ti
from tinote.errors import FieldError, FileError, TinoteError, suggestion
from tinote.kit.mesh import KINDS, Mesh
from tinote.lang.session.libraries import library
from tinote.lang.states.files import whole_file
from tinote.lang.states.records import arrays_in, saved
from tinote.source import caller
from tinote.viz.draw.ply import PLYWriter

__all__ = ["AXES", "Data", "Grid", "read", "write"]

#: Formats that trimesh reads, and of which it writes the last three.
SURFACES = (".obj", ".off", ".ply", ".3mf", ".glb", ".gltf", ".stl")
#: Formats whose triangles share no vertices, or only those with the same normals.
SPLIT = (".glb", ".gltf", ".stl")
#: VTK's names of NumPy's types.
TYPES = {
    **{f"f{size}": f"Float{8 * size}" for size in (4, 8)},
    **{f"i{size}": f"Int{8 * size}" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"UInt{8 * size}" for size in (1, 2, 4, 8)},
}
AXES = ("x", "y", "z")


class Grid:
    """A regular grid of points and the cells between them, on which fields are written.

    Fields with an element for each point, or for each cell, are values there.

    Parameters
    ----------
    points : tuple of int, optional
        The number of points along each axis, 1 to 3 of them.
    cells : tuple of int, optional
        The number of cells along each axis, in place of the points: one less.
    spacing : float or sequence of float, default 1.0
        The distance of points along each axis, or along all, in any unit of length.
    origin : float or sequence of float, default 0.0
        Where the first point is.

    Attributes
    ----------
    points : tuple of int
    cells : tuple of int
    spacing : tuple of float
    origin : tuple of float

    Raises
    ------
    FieldError
        For numbers that make no grid.

    Examples
    --------
    >>> heat = ti.field(ti.f32, shape=(64, 32))
    >>> ti.io.write("heat.vti", ti.io.Grid(cells=(64, 32), spacing=0.1), heat=heat)
    >>> ti.io.Grid(cells=(64, 32)).points
    (65, 33)
    """

    def __init__(
        self,
        points: Sequence[int] | None = None,
        *,
        cells: Sequence[int] | None = None,
        spacing: float | Sequence[float] = 1.0,
        origin: float | Sequence[float] = 0.0,
    ) -> None:
        if (points is None) == (cells is None):
            raise FieldError("a grid has a number of points, or of cells", caller(), hint="ti.io.Grid(cells=(64, 64))")
        more = 0 if cells is None else 1
        numbers = np.asarray(points if cells is None else cells)
        if numbers.ndim != 1 or not 1 <= len(numbers) <= 3 or numbers.dtype.kind not in "iu" or (numbers < 1).any():
            raise FieldError(
                f"a grid has a positive number of points or cells along each of 1 to 3 axes, not {points or cells!r}",
                caller(),
            )
        #: the number of points along each axis
        self.points = tuple([int(number) + more for number in numbers])
        #: the number of cells along each axis
        self.cells = tuple([max(number - 1, 1) for number in self.points])
        #: the distance of points along each axis
        self.spacing = self._along(spacing, "spacing")
        #: where the first point is
        self.origin = self._along(origin, "origin")
        if not all(distance > 0 for distance in self.spacing):
            raise FieldError(f"the spacing is {spacing!r}, and must be positive", caller())

    def _along(self, given: Any, what: str) -> tuple[float, ...]:
        numbers = np.asarray(given, dtype=float)
        if numbers.shape not in ((), (len(self.points),)) or not np.isfinite(numbers).all():
            raise FieldError(f"the {what} is a number, or one for each of {len(self.points)} axes", caller())
        return tuple(np.broadcast_to(numbers, len(self.points)).tolist())


def read(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    dimension: int | None = None,
    dtype: Any = None,
    merge: bool | None = None,
    needs_grad: bool = False,
) -> Mesh:
    """A mesh from a file, with its data.

    OBJ, PLY, STL, glTF, OFF and 3MF are read by trimesh, as triangles; all else by meshio: VTU, VTK, Gmsh, Abaqus,
    Nastran, Exodus, MED, CGNS, XDMF and others. The library must be installed.

    Parameters
    ----------
    path : path
        The file.
    kind : {"vertex", "line", "triangle", "quad", "tetra", "hexahedron"}, optional
        Which cells of a file with several kinds, as Gmsh's have; by default those of the highest dimension.
    dimension : {2, 3}, optional
        The components of positions, by default those of the file; 2 drops the third, which must be 0.
    dtype : ti.f32 or ti.f64, optional
        The type of positions, if not the file's.
    merge : bool, optional
        Make one of vertices that are at the same place, and keep the data of the first; by default for formats in which
        triangles share no vertices (STL) or are split where normals differ (glTF).
    needs_grad : bool, default False
        Whether the vertices have a gradient.

    Returns
    -------
    Mesh
        The mesh, in the file's unit of length, with `point_data` and `cell_data` by the file's names and of its types.
        Colours are in `point_data["color"]`.

    Raises
    ------
    FileError
        For a file that is missing, of an unknown format, damaged, or without cells of that kind; for a missing library.
    FieldError
        For cells that make no mesh.

    Examples
    --------
    >>> from pathlib import Path
    >>> lines = ["v 0 0 0", "v 1 0 0", "v 0 1 0", "f 1 2 3"]
    >>> Path("triangle.obj").write_text("\\n".join(lines))
    31
    >>> ti.io.read("triangle.obj")
    <mesh of 3 vertices and 1 cells of kind triangle>
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(f"there is no file {file}", caller())
    if kind is not None and kind not in KINDS:
        raise FieldError(f"there is no kind of cells {kind!r}{suggestion(kind, KINDS)}", caller())
    found = (_read_surface if file.suffix.lower() in SURFACES else _read_cells)(file, kind)
    vertices = np.asarray(found.vertices)
    if dimension not in (None, 2, 3):
        raise FileError(f"positions have 2 or 3 components, not {dimension!r}", caller())
    if dimension == 2 and vertices.shape[1] == 3:
        if vertices[:, 2].any():
            raise FileError(f"the vertices of {file} are not all in the plane: a third component is not 0", caller())
        vertices = vertices[:, :2]
    elif dimension == 3 and vertices.shape[1] == 2:
        vertices = np.pad(vertices, ((0, 0), (0, 1)))
    if dtype is not None:
        if dtype not in (ti.f32, ti.f64):
            raise FieldError(f"positions are of type f32 or f64, not {dtype!r}", caller())
        vertices = vertices.astype(np.float32 if dtype is ti.f32 else np.float64)
    point_data, cells = found.point_data, found.cells
    if merge or (merge is None and file.suffix.lower() in SPLIT):
        vertices, cells, point_data = _merged(vertices, cells, point_data)
    # Points alone are their own cells, in their order: `Mesh` knows these, and what is fewer of them is given.
    if found.kind == "vertex" and np.array_equal(cells.ravel(), np.arange(len(vertices))):
        cells = None
    return Mesh(vertices, cells, found.kind, point_data=point_data, cell_data=found.cell_data, needs_grad=needs_grad)


class _Contents(NamedTuple):
    """What a file has."""

    vertices: Any
    cells: Any
    kind: str
    point_data: dict[str, Any]
    cell_data: dict[str, Any]


def _merged(vertices: Any, cells: Any, point_data: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """One vertex for those at one place, in the order of the first of each."""
    _, first, number = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    kept = first[order]
    return vertices[kept], rank[number.ravel()][cells], {name: data[kept] for name, data in point_data.items()}


def _loaded(file: Path, name: str, load: Any) -> Any:
    """What a library reads. Raises `FileError` for what it cannot, with what it says."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load()
    except (Exception, SystemExit) as error:  # of many kinds
        text = said.getvalue().strip() or str(error) or type(error).__name__
        raise FileError(f"{name} cannot read {file}: {' '.join(text.split())}", caller()) from None


def _read_cells(file: Path, kind: str | None) -> _Contents:
    meshio = library("meshio", "reading meshes", FileError)
    found = _loaded(file, "meshio", lambda: _read_raw(file) or meshio.read(file))
    there = list(dict.fromkeys([block.type for block in found.cells if len(block.data)]))
    wanted = kind
    if wanted is None:
        known = [name for name in there if name in KINDS]
        top = max([KINDS[name].dimension for name in known], default=-1)
        at_top = [name for name in known if KINDS[name].dimension == top]
        if len(known) < len(there) or len(at_top) > 1:
            raise FileError(
                f"{file} has cells of the kinds {', '.join(there)}, and a mesh has one of {', '.join(KINDS)}",
                caller(),
                hint=f'choose one: kind="{at_top[0]}"' if at_top else "",
            )
        wanted = at_top[0] if at_top else "vertex"
    if wanted in there:
        chosen = [at for at, block in enumerate(found.cells) if block.type == wanted]
        cells = np.concatenate([found.cells[at].data for at in chosen])
        cell_data = {
            name: np.concatenate([np.asarray(parts[at]) for at in chosen]) for name, parts in found.cell_data.items()
        }
    elif there and wanted != "vertex":
        raise FileError(f"{file} has no cells of kind {wanted}, but of {', '.join(there)}", caller())
    else:
        cells, cell_data = np.arange(len(found.points))[:, None], {}
    return _Contents(found.points, cells, wanted, _numbers(found.point_data), _numbers(cell_data))


def _read_raw(file: Path) -> Any:
    """A file of VTK with raw data, None for others: meshio 5.3 may take the offset of one array for that of another."""
    if file.suffix.lower() != ".vtu":
        return None
    text = file.read_bytes()
    at = re.search(rb'<AppendedData\s+encoding="raw"\s*>\s*_', text)
    if at is None:
        return None
    root = ElementTree.fromstring(text[: at.start()] + b"</VTKFile>")
    order = "<" if root.get("byte_order") == "LittleEndian" else ">"
    size = np.dtype(order + ("u8" if root.get("header_type") == "UInt64" else "u4"))
    pieces = root.findall("UnstructuredGrid/Piece")
    if len(pieces) != 1 or root.get("compressor", "vtkZLibDataCompressor") != "vtkZLibDataCompressor":
        raise ValueError("its data are in several pieces, or compressed in another way than by zlib")

    def array(tag: Any) -> Any:
        begin = at.end() + int(tag.get("offset"))
        if root.get("compressor") is None:
            held = text[begin + size.itemsize :][: int(np.frombuffer(text, size, 1, begin)[0])]
        else:
            blocks = int(np.frombuffer(text, size, 1, begin)[0])
            ends = np.cumsum(np.frombuffer(text, size, blocks, begin + 3 * size.itemsize)).tolist()
            data = begin + (3 + blocks) * size.itemsize
            held = b"".join([zlib.decompress(text[data + a : data + b]) for a, b in pairwise([0, *ends])])
        kinds = {name: code for code, name in TYPES.items()}
        found = np.frombuffer(held, order + kinds[tag.get("type")])
        components = int(tag.get("NumberOfComponents") or 1)
        return found if components == 1 else found.reshape(-1, components)

    def arrays(place: str) -> dict[str, Any]:
        return {tag.get("Name") or "": array(tag) for tag in pieces[0].findall(f"{place}/DataArray")}

    cells, cell_data = arrays("Cells"), arrays("CellData")
    names = {known.vtk: name for name, known in KINDS.items()}
    blocks = list[Any]()
    data: dict[str, list[Any]] = {name: [] for name in cell_data}
    for code in np.unique(cells["types"]).tolist():
        chosen = np.flatnonzero(cells["types"] == code)
        name = names.get(code, f"number {code} of VTK")
        width = KINDS[name].corners if name in KINDS else 1
        last = cells["offsets"][chosen].astype(np.int64)
        blocks.append(SimpleNamespace(type=name, data=cells["connectivity"][last[:, None] - np.arange(width, 0, -1)]))
        for name, values in cell_data.items():
            data[name].append(values[chosen])
    points = array(pieces[0].find("Points/DataArray"))
    return SimpleNamespace(points=points, cells=blocks, point_data=arrays("PointData"), cell_data=data)


def _read_surface(file: Path, kind: str | None) -> _Contents:
    trimesh = library("trimesh", f"reading {file.suffix} files", FileError)
    found = _loaded(file, "trimesh", lambda: trimesh.load(file, process=False, maintain_order=True))
    if isinstance(found, trimesh.Scene):
        parts = list(found.geometry.values())
        if all(isinstance(part, trimesh.PointCloud) for part in parts) and len(parts) == 1:
            found = parts[0]
        else:
            found = _loaded(file, "trimesh", found.to_mesh)
    raw = found.metadata.get("_ply_raw", {})
    point_data, cell_data = _ply_data(raw, "vertex"), _ply_data(raw, "face")
    if isinstance(found, trimesh.PointCloud):
        there, cells = "vertex", np.arange(len(found.vertices))[:, None]
        colors = found.colors if len(found.colors) == len(found.vertices) else None
        cell_data = {}
    else:
        there, cells = "triangle", np.asarray(found.faces).reshape(-1, 3)
        colors = found.visual.vertex_colors if found.visual.kind == "vertex" else None
        given = {name.removeprefix("_"): np.asarray(data) for name, data in found.vertex_attributes.items()}
        colors = given.pop("color", colors)
        point_data |= given
        if any(len(data) != len(cells) for data in cell_data.values()):
            warnings.warn(f"polygons of {file} were cut into triangles, without the data of faces", stacklevel=3)
            cell_data = {}
    if kind not in (None, there):
        raise FileError(f"{file} has cells of kind {there}, not {kind}", caller())
    if colors is not None:
        point_data["color"] = np.asarray(colors)
    return _Contents(np.asarray(found.vertices), cells, there, _numbers(point_data), _numbers(cell_data))


def _ply_data(raw: Mapping[str, Any], element: str) -> dict[str, Any]:
    """The properties of vertices or of faces, without positions, colours and corners."""
    own = {*AXES, "red", "green", "blue", "alpha", "vertex_indices", "vertex_index"}
    data = raw.get(element, {}).get("data")
    if data is None:
        return {}
    names = data.dtype.names if isinstance(data, np.ndarray) else data
    return {name: np.asarray(data[name]) for name in names or () if name not in own}


def _numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    """Data in the shapes of fields: numbers are no vectors of one component."""
    arrays = {name: np.asarray(value) for name, value in data.items()}
    return {name: a[:, 0] if a.ndim == 2 and a.shape[1] == 1 else a for name, a in arrays.items()}


# ---- what is written


class Data(NamedTuple):
    """Arrays by name, with the values at points and in cells: these have one index on a mesh, one for each axis on a
    grid, and behind it those of vectors and matrices.
    """

    points: dict[str, Any]
    cells: dict[str, Any]


def data_on(on: Any, points: Mapping[str, Any] | None, cells: Mapping[str, Any] | None, fields: Any) -> Data:
    """What is to be written, where it belongs. Raises `FieldError`."""
    places = _places(on)
    held = {"points": dict[str, Any](), "cells": dict[str, Any]()}
    if isinstance(on, Mesh):
        for where, data in (("points", on.point_data), ("cells", on.cell_data)):
            held[where] = {name: field.to_numpy() for name, field in data.items()}
    for name, value in fields.items():
        for full, array in arrays_of(name, value):
            fitting = [where for where, shape in places.items() if _fits(array, shape)]
            if len(fitting) == 1:
                held[fitting[0]][full] = array
            elif fitting:
                number = " × ".join(map(str, places["points"]))
                raise FieldError(
                    f"{full!r} may belong to the points or to the cells: there are {number} of both",
                    caller(),
                    hint=f'say which: points={{"{name}": …}} or cells={{"{name}": …}}',
                )
            else:
                raise _misfit(full, array, places)
    for where, given in (("points", points), ("cells", cells)):
        for name, value in (given or {}).items():
            for full, array in arrays_of(name, value):
                if not _fits(array, places[where]):
                    raise _misfit(full, array, {where: places[where]})
                held[where][full] = array
    return Data(**held)


def _places(on: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of values at points and in cells."""
    if isinstance(on, Mesh):
        return {"points": on.vertices.shape, **({} if on.kind == "vertex" else {"cells": on.cells.shape})}
    return {"points": on.points, "cells": on.cells}


def _fits(array: Any, shape: tuple[int, ...]) -> bool:
    return array.shape[: len(shape)] == shape and array.ndim <= len(shape) + 2


def _misfit(name: str, array: Any, places: Mapping[str, tuple[int, ...]]) -> FieldError:
    wanted = ", or ".join([f"{shape} at {where}" for where, shape in places.items()])
    return FieldError(f"{name!r} has shape {array.shape}; values have shape {wanted}", caller())


def arrays_of(name: str, value: Any) -> list[tuple[str, Any]]:
    """The arrays of a field, by full names: the members of structs are called `particles.mass`. Raises `FieldError`."""
    kept = saved(name, value)
    sparse = isinstance(value, ti.Field) and isinstance(kept, dict) and kept.keys() == {"shape", "indices", "values"}
    if sparse:
        raise FieldError(
            f"{name!r} is a sparse field, and files of this kind hold dense ones",
            caller(),
            hint=f"write {name}.to_numpy(), with zeros, or the points of {name}.to_sparse()",
        )
    found = [(full, array) for full, array in arrays_in(name, kept) if array.dtype.kind in "biuf"]
    if not found:
        raise FieldError(
            f"{name!r} is neither a field nor an array of numbers: it is of type {type(value).__name__}", caller()
        )
    return found


def units_of(on: Any, *given: Mapping[str, Any] | None) -> dict[str, str]:
    """The units of fields that have them, by name, as text."""
    held = [on.point_data, on.cell_data, {"length": on.vertices}] if isinstance(on, Mesh) else []
    every = {name: value for data in (*held, *given) for name, value in (data or {}).items()}
    return {name: repr(value.unit) for name, value in every.items() if getattr(value, "unit", None) is not None}


def mesh_or_grid(on: Any) -> Any:
    """The mesh or grid on which fields are. Raises `FieldError`."""
    if isinstance(on, Mesh | Grid):
        return on
    if isinstance(on, ti.MatrixField):
        return Mesh(on)
    raise FieldError(
        f"fields are written on a mesh, a grid or a field of positions, not on {type(on).__name__}",
        caller(),
        hint="ti.io.Mesh(vertices, cells) or ti.io.Grid(cells=(64, 64))",
    )


def write(
    path: str | os.PathLike[str],
    on: Any,
    /,
    *,
    points: Mapping[str, Any] | None = None,
    cells: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    **fields: Any,
) -> None:
    """Write a mesh, a grid or points to a file, with fields on it.

    The ending of the file says how: `.vtu` (meshes) and `.vti` (grids) for ParaView, in raw binary; `.ply` and `.obj`
    for surfaces and points; `.glb`, `.gltf` and `.stl` for triangles, by trimesh; all else by meshio.

    Parameters
    ----------
    path : path
        The file. It is whole or not there.
    on : Mesh, Grid or Field
        On what the fields are; a field of positions is points. The data of a mesh are written as well.
    points, cells : dict, optional
        Fields by name with values at points or in cells, where their shapes do not say which it is.
    units : dict of str, optional
        The units of fields by name, as texts, which VTK's formats hold. Those of fields with a unit are known.
    **fields
        Fields, arrays, structs by name. Vectors and matrices in the plane get zeros as third components, as ParaView
        expects; f16 is written as f32. A field `color`, of 3 or 4 components from 0 to 1 (or 0 to 255 as u8) for each
        vertex, is the colour in PLY, OBJ and glTF; OBJ and STL hold no other field.

    Raises
    ------
    FileError
        For a format that is unknown or does not hold such a mesh, a missing folder and a missing library.
    FieldError
        For fields of other shapes, and sparse ones.

    Examples
    --------
    >>> x = ti.Vector.field(3, ti.f32, shape=100)
    >>> v = ti.Vector.field(3, ti.f32, shape=100)
    >>> ti.io.write("particles.vtu", x, velocity=v)
    >>> from pathlib import Path
    >>> Path("particles.vtu").read_bytes()[:38]
    b'<?xml version="1.0" encoding="utf-8"?>'
    """
    file = Path(path)
    check_folder(file)
    on = mesh_or_grid(on)
    data = data_on(on, points, cells, fields)
    units = units_of(on, points, cells, fields) | {**(units or {})}
    ending = file.suffix.lower()
    if isinstance(on, Grid):
        if ending != ".vti":
            raise FileError(f"a grid is written to a file *.vti, not to {file.name}", caller())
        write_vtk(file, on, data, units)
    elif ending == ".vti":
        raise FileError(f"a mesh is written to a file *.vtu, not to {file.name}", caller())
    elif ending == ".vtu":
        write_vtk(file, on, data, units)
    elif ending == ".ply":
        _write_ply(file, on, data)
    elif ending == ".obj":
        _write_obj(file, on, data)
    elif ending in SPLIT:
        _write_surface(file, on, data)
    else:
        _write_cells(file, on, data)


def check_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise FileError(f"there is no folder {file.parent}", caller())


def _in_space(array: Any, before: int) -> Any:
    """Vectors and matrices of the plane with zeros as their third components, behind `before` indices."""
    planar = array.ndim > before and all(n == 2 for n in array.shape[before:])
    return np.pad(array, [(0, 0)] * before + [(0, 1)] * (array.ndim - before)) if planar else array


def stored(array: Any) -> Any:
    """In a type that VTK has, the lowest byte first."""
    if array.dtype == np.float16 or array.dtype == bool:
        array = array.astype(np.float32 if array.dtype == np.float16 else np.uint8)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def rows(array: Any, axes: int) -> Any:
    """Values one after another, the first axis of a grid fastest: of shape (n,) or (n, components)."""
    array = _in_space(array, axes)
    array = array.transpose(*range(axes - 1, -1, -1), *range(axes, array.ndim))
    components = array.shape[axes:]
    return stored(array.reshape(math.prod(array.shape[:axes]), *([math.prod(components)] if components else [])))


def positions(mesh: Mesh) -> Any:
    return rows(mesh.vertices.to_numpy(), 1)


def in_three(numbers: Sequence[Any], else_: Any) -> list[Any]:
    return [*numbers, *[else_] * (3 - len(numbers))]


class _Appended:
    """Arrays behind the text of a file of VTK, and what the text says of each."""

    def __init__(self) -> None:
        self.arrays = list[Any]()
        self.offset = 0

    def add(self, name: str, array: Any, unit: str = "") -> str:
        kind = TYPES[f"{array.dtype.kind}{array.dtype.itemsize}"]
        label = f'<InformationKey name="UNITS_LABEL" location="vtkDataArray">{escape(unit)}</InformationKey>'
        text = (
            f'<DataArray type="{kind}" Name={quoteattr(name)} NumberOfComponents="{math.prod(array.shape[1:])}"'
            f' format="appended" offset="{self.offset}">{label if unit else ""}</DataArray>'
        )
        self.arrays.append(array)
        self.offset += 8 + array.nbytes
        return text


def write_vtk(file: Path, on: Any, data: Data, units: Mapping[str, str]) -> None:
    """VTK's XML with raw data behind it (VTK File Formats, version 1.0)."""
    appended = _Appended()
    axes = len(_places(on)["points"])
    values = []
    for tag, arrays in (("PointData", data.points), ("CellData", data.cells)):
        lines = [appended.add(name, rows(array, axes), units.get(name, "")) for name, array in arrays.items()]
        values.append(f"<{tag}>\n" + "".join([f"{line}\n" for line in lines]) + f"</{tag}>\n")
    if isinstance(on, Grid):
        kind = "ImageData"
        extent = " ".join([f"0 {n - 1}" for n in in_three(on.points, 1)])
        origin = " ".join(map(repr, in_three(on.origin, 0.0)))
        spacing = " ".join(map(repr, in_three(on.spacing, 1.0)))
        head = f'<ImageData WholeExtent="{extent}" Origin="{origin}" Spacing="{spacing}">\n<Piece Extent="{extent}">\n'
    else:
        kind, number = "UnstructuredGrid", on.cells.shape[0]
        corners = KINDS[on.kind].corners
        places = appended.add("Points", positions(on))
        topology = [
            appended.add("connectivity", stored(on.cells.to_numpy().ravel())),
            appended.add("offsets", stored(np.arange(1, number + 1) * corners)),
            appended.add("types", np.full(number, KINDS[on.kind].vtk, np.uint8)),
        ]
        head = (
            f'<UnstructuredGrid>\n<Piece NumberOfPoints="{len(on.vertices)}" NumberOfCells="{number}">\n'
            f"<Points>\n{places}\n</Points>\n<Cells>\n" + "\n".join(topology) + "\n</Cells>\n"
        )
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
        f'{head}{"".join(values)}</Piece>\n</{kind}>\n<AppendedData encoding="raw">\n_'
    )
    with whole_file(file, durable=False) as out:
        out.write(text.encode())
        for array in appended.arrays:
            out.write(np.uint64(array.nbytes).astype("<u8").tobytes())
            out.write(array.data.cast("B") if array.nbytes else b"")
        out.write(b"\n</AppendedData>\n</VTKFile>\n")


def _faces(file: Path, mesh: Mesh, kinds: tuple[str, ...]) -> Any:
    """The faces of a surface; none for points. Raises `FileError` for other cells."""
    if mesh.kind not in (*kinds, "vertex"):
        raise FileError(
            f"a file *{file.suffix} holds points and cells of kind {' or '.join(kinds)}, not {mesh.kind}",
            caller(),
            hint="write the boundary of a solid: ti.io.Mesh(mesh.vertices, mesh.boundary)",
        )
    return None if mesh.kind == "vertex" else mesh.cells.to_numpy()


def _color(data: Data) -> Any:
    """The colours of vertices as bytes, or None."""
    color = data.points.get("color")
    if color is None or color.ndim != 2 or color.shape[1] not in (3, 4):
        return None
    return color if color.dtype == np.uint8 else np.round(np.clip(color.astype(float), 0, 1) * 255).astype(np.uint8)


def _channels(name: str, array: Any) -> list[tuple[str, Any]]:
    """A number for each row at a time: the components of `v` are called v_0, v_1, …"""
    array = stored(array).reshape(len(array), -1) if array.ndim > 1 else stored(array)
    return [(name, array)] if array.ndim == 1 else [(f"{name}_{k}", array[:, k]) for k in range(array.shape[1])]


def _write_ply(file: Path, mesh: Mesh, data: Data) -> None:
    faces = _faces(file, mesh, ("triangle", "quad"))
    number = 0 if faces is None else len(faces)
    writer = PLYWriter(len(mesh.vertices), number, "quad" if mesh.kind == "quad" else "tri")
    vertices, color = positions(mesh), _color(data)
    for axis, name in enumerate(AXES):
        writer.add_vertex_channel(name, vertices.dtype.name, vertices[:, axis])
    if color is not None:
        for channel, name in enumerate(("red", "green", "blue", "alpha")[: color.shape[1]]):
            writer.add_vertex_channel(name, "uchar", color[:, channel])
    for arrays, add in ((data.points, writer.add_vertex_channel), (data.cells, writer.add_face_channel)):
        for name, array in arrays.items():
            if color is None or name != "color":
                for channel, numbers in _channels(name, array):
                    add(channel, numbers.dtype.name, numbers)
    if faces is not None:
        writer.add_faces(faces)
    _in_place(file, writer.export)


def _write_obj(file: Path, mesh: Mesh, data: Data) -> None:
    faces = _faces(file, mesh, ("triangle", "quad"))
    _refuse_others(file, data)
    vertices, color = positions(mesh).astype(float), _color(data)
    if color is not None:
        vertices = np.hstack([vertices, color[:, :3] / 255])
    lines = [f"v {' '.join(map(repr, row))}" for row in vertices.tolist()]
    if faces is not None:
        lines += [f"f {' '.join(map(str, row))}" for row in (faces + 1).tolist()]
    with whole_file(file, durable=False) as out:
        out.write("".join([f"{line}\n" for line in lines]).encode())


def _refuse_others(file: Path, data: Data) -> None:
    """Raise `FileError` for fields that a format has no place for."""
    held = {*data.points, *data.cells} - {"color"}
    if held:
        raise FileError(
            f"a file *{file.suffix} has no place for {', '.join(sorted(held))}",
            caller(),
            hint="write a file *.vtu or *.ply",
        )


def _write_surface(file: Path, mesh: Mesh, data: Data) -> None:
    trimesh = library("trimesh", f"writing {file.suffix} files", FileError)
    is_stl = file.suffix.lower() == ".stl"
    faces, vertices, color = _faces(file, mesh, ("triangle",)), positions(mesh), _color(data)
    if faces is None:
        if is_stl:
            raise FileError("a file *.stl holds cells of kind triangle, not points", caller())
        _refuse_others(file, data)
        made = trimesh.PointCloud(vertices, colors=color)
    else:
        _refuse_others(file, data if is_stl else Data({}, data.cells))
        attributes = {name: stored(array) for name, array in data.points.items() if color is None or name != "color"}
        made = trimesh.Trimesh(vertices, faces, process=False, vertex_colors=color, vertex_attributes=attributes)
    options = {"embed_buffers": True} if file.suffix.lower() == ".gltf" else {}
    _in_place(file, lambda unfinished: made.export(unfinished, **options))


def _write_cells(file: Path, mesh: Mesh, data: Data) -> None:
    meshio = library("meshio", f"writing {file.suffix or 'such'} files", FileError)
    if file.suffix.lower() not in meshio.extension_to_filetypes:
        raise FileError(
            f"there is no format of meshes for files *{file.suffix}",
            caller(),
            hint=f".vtu, .ply, .obj, .glb, .gltf, .stl; of meshio {', '.join(meshio.extension_to_filetypes)}",
        )
    number = len(mesh.vertices)
    values = [
        {name: stored(_in_space(array, 1)) for name, array in arrays.items()} for arrays in (data.points, data.cells)
    ]
    found = meshio.Mesh(
        positions(mesh),
        [(mesh.kind, mesh.cells.to_numpy().reshape(-1, KINDS[mesh.kind].corners))],
        point_data={name: array.reshape(number, *_flat(array)) for name, array in values[0].items()},
        cell_data={name: [array.reshape(len(array), *_flat(array))] for name, array in values[1].items()},
    )

    def export(unfinished: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found.write(unfinished)

    _in_place(file, export)


def _flat(array: Any) -> tuple[int, ...]:
    """The components of values as one index."""
    return (math.prod(array.shape[1:]),) if array.ndim > 1 else ()


def _in_place(file: Path, export: Any) -> None:
    """Let a library write a file, which takes its name when it is whole. Raises `FileError` for what it cannot."""
    folder = file.with_name(f"{file.name}.{uuid.uuid4().hex[:8]}.unfinished")
    folder.mkdir()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            export(str(folder / file.name))
        others = [part for part in folder.iterdir() if part.name != file.name]
        for part in (*others, folder / file.name):
            os.replace(part, file.with_name(part.name))
    except TinoteError:
        raise
    except (Exception, SystemExit) as error:  # of many kinds
        raise FileError(f"{file} cannot be written: {error}", caller()) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
