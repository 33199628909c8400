"""Meshes as fields: cells of one kind, what adjoins what, and the boundary.

    mesh = ti.io.read("bracket.msh")
    …
    for i in mesh.vertices:                   # in a kernel
        for j in mesh.neighbours(i):
            d = mesh.vertices[j] - mesh.vertices[i]

What follows from the cells is found by NumPy when it is first asked for, and is fields from then on.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import tinote as ti
from tinote.errors import FieldError, suggestion
from tinote.kit.fields import FLOATS
from tinote.source import caller

__all__ = ["KINDS", "Mesh", "field_of"]


class CellKind(NamedTuple):
    """A kind of cells: its dimension, the pairs of corners that are edges, and the corners of each facet, seen from
    outside in the order of positive rotation, and the format's number of it.
    """

    dimension: int
    corners: int
    edges: tuple[tuple[int, ...], ...]
    facets: tuple[tuple[int, ...], ...]
    vtk: int


_RING3, _RING4 = ((0, 1), (1, 2), (2, 0)), ((0, 1), (1, 2), (2, 3), (3, 0))
#: By the names that meshio has for them, with corners in the order of VTK.
KINDS = {
    "vertex": CellKind(0, 1, (), (), 1),
    "line": CellKind(1, 2, ((0, 1),), ((0,), (1,)), 3),
    "triangle": CellKind(2, 3, _RING3, _RING3, 5),
    "quad": CellKind(2, 4, _RING4, _RING4, 9),
    "tetra": CellKind(3, 4, (*_RING3, (0, 3), (1, 3), (2, 3)), ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)), 10),
    "hexahedron": CellKind(
        3,
        8,
        (*_RING4, (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)),
        ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
        12,
    ),
}


def field_of(array: Any, name: str, **options: Any) -> Any:
    """A field of an array's numbers and type: of vectors where it has two dimensions, of matrices where it has three.

    Raises `FieldError` for other arrays.
    """
    array = np.asarray(array)
    dtype = "u1" if array.dtype == bool else f"{array.dtype.kind}{8 * array.dtype.itemsize}"
    if not 1 <= array.ndim <= 3 or array.dtype.kind not in "biuf" or not hasattr(ti, dtype):
        raise FieldError(f"{name!r} is an array of {array.dtype} and shape {array.shape}, not of numbers", caller())
    kind, element = getattr(ti, dtype), array.shape[1:]
    if not element:
        found = ti.field(kind, shape=len(array), name=name, **options)
    elif len(element) == 1:
        found = ti.Vector.field(*element, kind, shape=len(array), name=name, **options)
    else:
        found = ti.Matrix.field(*element, kind, shape=len(array), name=name, **options)
    found.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    return found


class Mesh:
    """Vertices, and cells of one kind between them, as fields.

    Fields that are given are used themselves, so that vertices may move and have gradients; cells stay as they are.

    Parameters
    ----------
    vertices : Field or array_like, shape (n, 2) or (n, 3)
        The positions, f32 or f64, in any unit of length.
    cells : Field or array_like of int, shape (m, corners), optional
        The vertices at the corners of each cell, in the order of VTK. Without them the mesh is points.
    kind : {"line", "triangle", "quad", "tetra", "hexahedron"}, optional
        What cells are. It follows from the number of corners, except for 4 corners in space.
    point_data, cell_data : dict, optional
        Numbers, vectors or matrices for each vertex and for each cell, by name: fields or arrays.
    needs_grad : bool, default False
        Whether vertices that are given as an array get a gradient.

    Methods
    -------
    cells_at
    neighbours
    next_to

    Attributes
    ----------
    vertices : Field
    cells : Field
    kind : str
    point_data, cell_data : dict of Field
    edges : Field
    facets : Field
    cell_edges : Field
    cell_facets : Field
    cell_cells : Field
    boundary : Field
    boundary_cells : Field
    boundary_vertices : Field
    half_edges : Field
    opposite : Field

    Raises
    ------
    FieldError
        For arrays of other shapes and types, vertices that there are not, and a cell that has a vertex twice. What is
        about adjacent cells refuses a facet of more than two of them, and names these.

    References
    ----------
    M. de Berg and others, "Computational Geometry", 3rd ed., 2008, section 2.2, for half-edges.

    Examples
    --------
    >>> mesh = ti.io.Mesh([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [[0, 1, 2], [0, 2, 3]])
    >>> @ti.kernel
    ... def valence(i: ti.i32) -> ti.i32:
    ...     found = 0
    ...     for j in mesh.neighbours(i):
    ...         found += 1
    ...     return found
    >>> [valence(i) for i in range(4)]
    [3, 2, 3, 2]
    >>> print(mesh.boundary)
    [[0 1] [1 2] [2 3] [3 0]]
    """

    def __init__(
        self,
        vertices: Any,
        cells: Any = None,
        kind: str | None = None,
        *,
        point_data: Mapping[str, Any] | None = None,
        cell_data: Mapping[str, Any] | None = None,
        needs_grad: bool = False,
    ) -> None:
        #: the positions
        self.vertices = _vertices(vertices, needs_grad)
        #: the dimension of space
        self.dimension = self.vertices.n
        given = np.arange(len(self.vertices))[:, None] if cells is None else cells
        #: the vertices at the corners of each cell
        self.cells = given if isinstance(given, ti.MatrixField) else field_of(_integers(given), "cells")
        #: what cells are
        self.kind = _kind(self.cells, self.dimension, "vertex" if cells is None else kind)
        self._kind = KINDS[self.kind]
        self._corners = self.cells.to_numpy().reshape(-1, self._kind.corners)
        self._check()
        #: the numbers of vertices and of cells, by name
        self.point_data = self._data(point_data, "vertices", len(self.vertices))
        self.cell_data = self._data(cell_data, "cells", len(self._corners))

    def _check(self) -> None:
        corners, number = self._corners, len(self.vertices)
        outside = (corners < 0) | (corners >= number)
        if outside.any():
            cell, corner = np.argwhere(outside)[0]
            raise FieldError(
                f"cell {cell} has vertex {corners[cell, corner]}, and there are {number} vertices", caller()
            )
        ordered = np.sort(corners, axis=1)
        twice = ordered[:, 1:] == ordered[:, :-1]
        if twice.any():
            cell, corner = np.argwhere(twice)[0]
            raise FieldError(f"cell {cell} has vertex {ordered[cell, corner]} twice", caller())

    def _data(self, given: Mapping[str, Any] | None, what: str, number: int) -> dict[str, Any]:
        found = {}
        for name, value in (given or {}).items():
            field = value if isinstance(value, ti.Field) else field_of(value, name)
            if field.shape != (number,):
                raise FieldError(f"{name!r} has shape {field.shape}, and there are {number} {what}", caller())
            found[name] = field
        return found

    def __repr__(self) -> str:
        return f"<mesh of {len(self.vertices)} vertices and {len(self._corners)} cells of kind {self.kind}>"

    # in kernels

    @ti.func
    def neighbours(self, i):
        """The vertices at the other ends of the edges of a vertex: in kernels, a `for` loops over their indices.

        Parameters
        ----------
        i : int
            The index of the vertex.

        Examples
        --------
        >>> mesh = ti.io.Mesh([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0, 1, 2]])
        >>> @ti.kernel
        ... def show(i: ti.i32):
        ...     for j in mesh.neighbours(i):
        ...         print(j)
        >>> show(1)
        0
        2
        """
        for k in range(self._first_neighbour[i], self._first_neighbour[i + 1]):
            yield self._neighbours[k]

    @ti.func
    def cells_at(self, i):
        """The cells that have a vertex: in kernels, a `for` loops over their indices.

        Parameters
        ----------
        i : int
            The index of the vertex.

        Examples
        --------
        >>> mesh = ti.io.Mesh([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0, 1, 2], [1, 3, 2]])
        >>> @ti.kernel
        ... def show(i: ti.i32):
        ...     for c in mesh.cells_at(i):
        ...         print(c)
        >>> show(1)
        0
        1
        """
        for k in range(self._first_cell[i], self._first_cell[i + 1]):
            yield self._cells_at[k]

    @ti.func
    def next_to(self, c):
        """The cells that share a facet with a cell: in kernels, a `for` loops over their indices.

        Parameters
        ----------
        c : int
            The index of the cell.

        Examples
        --------
        >>> mesh = ti.io.Mesh([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0, 1, 2], [1, 3, 2]])
        >>> @ti.kernel
        ... def show(c: ti.i32):
        ...     for other in mesh.next_to(c):
        ...         print(other)
        >>> show(0)
        1
        """
        for k in range(ti.static(len(self._kind.facets))):
            other = self.cell_cells[c][k]
            if other >= 0:
                yield other

    # what follows from the cells

    @functools.cached_property
    def _edges_found(self) -> tuple[Any, Any]:
        """The edges, each from its lower vertex, and those of each cell."""
        pairs = np.array(self._kind.edges, int).reshape(-1, 2)
        ends = np.sort(self._corners[:, pairs].reshape(-1, 2), axis=1)
        first, number = _distinct(ends)
        return ends[first], number.reshape(len(self._corners), len(pairs))

    @functools.cached_property
    def _facets_found(self) -> tuple[Any, Any, Any]:
        """The facets, oriented as in the first cell of each, those of each cell, and the cell across each."""
        rows = self._oriented
        of_all = rows.reshape(rows.shape[0] * rows.shape[1], rows.shape[2])
        first, number = _distinct(np.sort(of_all, axis=1))
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(first) + 1))
        counts, owner = np.diff(starts), order // rows.shape[1]
        if counts.max(initial=0) > 2:
            crowded = int(np.argmax(counts > 2))
            facet = of_all[first[crowded]].tolist()
            cells = owner[starts[crowded] : starts[crowded + 1]].tolist()
            raise FieldError(
                f"cells {', '.join(map(str, cells))} share the facet between the vertices {facet}: at most two"
                " cells are adjacent there",
                caller("functools"),
                hint="`edges`, `neighbours` and `cells_at` are there for any mesh",
            )
        across = np.full(rows.shape[0] * rows.shape[1], -1)
        at = starts[:-1][counts == 2]
        across[order[at]], across[order[at + 1]] = owner[at + 1], owner[at]
        return of_all[first], number.reshape(rows.shape[:2]), across.reshape(rows.shape[:2])

    @functools.cached_property
    def _oriented(self) -> Any:
        """The vertices of the facets of each cell."""
        width = len(self._kind.facets[0]) if self._kind.facets else 1
        return self._corners[:, np.array(self._kind.facets, int).reshape(-1, width)]

    def _sizes(self, cells: Any) -> Any:
        """Signed areas and volumes, by the divergence theorem."""
        x = self.vertices.to_numpy().astype(float)[self._corners[cells]]
        x -= x.mean(axis=1, keepdims=True)
        if self._kind.dimension == 2:
            a, b = x, np.roll(x, -1, axis=1)
            return (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]).sum(axis=1) / 2
        total = np.zeros(len(x))
        for facet in self._kind.facets:
            y = x[:, facet]
            middle = y.mean(axis=1, keepdims=True)
            normal = np.cross(y - middle, np.roll(y, -1, axis=1) - middle).sum(axis=1) / 2
            total += (middle[:, 0] * normal).sum(axis=1) / 3
        return total

    @functools.cached_property
    def _boundary_found(self) -> tuple[Any, Any]:
        """The facets of one cell only, seen from outside in the order of positive rotation, and these cells."""
        across = self._facets_found[2]
        cells, which = np.nonzero(across < 0)
        rows = self._oriented[cells, which]
        if self._kind.dimension == self.dimension:
            sizes = self._sizes(cells)
            flat = ~(np.abs(sizes) > 0)
            if flat.any():
                raise FieldError(
                    f"cell {cells[flat][0]} has the size {sizes[flat][0]:g}, and its facets have no outer side",
                    caller("functools"),
                )
            rows = np.where((sizes < 0)[:, None], rows[:, ::-1], rows)
        return rows, cells

    def _lists(self, owners: Any, members: Any, what: str) -> tuple[Any, Any]:
        """Members by vertex: the first place of each vertex, and behind the last the number of all, and the members."""
        order = np.lexsort((members, owners))
        starts = np.searchsorted(owners[order], np.arange(len(self.vertices) + 1))
        return field_of(starts.astype(np.int32), f"first of {what}"), field_of(members[order].astype(np.int32), what)

    @functools.cached_property
    def _neighbour_lists(self) -> tuple[Any, Any]:
        a, b = self._edges_found[0].T
        return self._lists(np.concatenate([a, b]), np.concatenate([b, a]), "neighbours")

    @functools.cached_property
    def _cell_lists(self) -> tuple[Any, Any]:
        cells = np.repeat(np.arange(len(self._corners)), self._kind.corners)
        return self._lists(self._corners.ravel(), cells, "cells at vertices")

    @functools.cached_property
    def _half_edges_found(self) -> tuple[Any, Any]:
        if self._kind.dimension != 2:
            raise FieldError(f"a mesh of kind {self.kind} has no half-edges; surfaces have them", caller("functools"))
        edges, number = self._edges_found
        ends = self._corners[:, np.array(self._kind.edges)].reshape(-1, 2)
        half = 2 * number.ravel() + (ends[:, 0] > ends[:, 1])
        order = np.argsort(half, kind="stable")
        same = half[order][1:] == half[order][:-1]
        if same.any():
            at = int(np.argmax(same))
            a, b = order[at] // self._kind.corners, order[at + 1] // self._kind.corners
            start, end = ends[order[at]].tolist()
            raise FieldError(
                f"cells {a} and {b} have the edge from {start} to {end} in the same direction: a surface with"
                " half-edges has two cells at most at each edge, with the same orientation",
                caller("functools"),
            )
        holder = np.full(2 * len(edges), -1)
        holder[half] = np.arange(len(half))
        return ends, holder[half ^ 1]

    @functools.cached_property
    def _first_neighbour(self) -> Any:
        return self._neighbour_lists[0]

    @functools.cached_property
    def _neighbours(self) -> Any:
        return self._neighbour_lists[1]

    @functools.cached_property
    def _first_cell(self) -> Any:
        return self._cell_lists[0]

    @functools.cached_property
    def _cells_at(self) -> Any:
        return self._cell_lists[1]

    @functools.cached_property
    def edges(self) -> Any:
        """The two vertices of each edge, the lower one first, in their order."""
        return _whole(self._edges_found[0], "edges")

    @functools.cached_property
    def cell_edges(self) -> Any:
        """The edges of each cell."""
        return _whole(self._edges_found[1], "edges of cells")

    @functools.cached_property
    def facets(self) -> Any:
        """The vertices of each facet: of the edges of surfaces, of the faces of solids, as its first cell has them."""
        return _whole(self._facets_found[0], "facets")

    @functools.cached_property
    def cell_facets(self) -> Any:
        """The facets of each cell."""
        return _whole(self._facets_found[1], "facets of cells")

    @functools.cached_property
    def cell_cells(self) -> Any:
        """The cell across each facet of each cell, -1 at the boundary."""
        return _whole(self._facets_found[2], "cells next to cells")

    @functools.cached_property
    def boundary(self) -> Any:
        """The vertices of the facets that only one cell has.

        Edges have that cell at their left, faces turn to the left as seen from outside, by the positions when this is
        first asked for. Edges of a surface in space are as their cell has them.
        """
        return _whole(self._boundary_found[0], "boundary")

    @functools.cached_property
    def boundary_cells(self) -> Any:
        """The cell of each facet of the boundary."""
        return _whole(self._boundary_found[1], "cells of the boundary")

    @functools.cached_property
    def boundary_vertices(self) -> Any:
        """The vertices of the boundary, in their order."""
        across, rows = self._facets_found[2], self._oriented
        return _whole(np.unique(rows[across < 0]), "vertices of the boundary")

    @functools.cached_property
    def half_edges(self) -> Any:
        """The first and the last vertex of each half-edge of a surface.

        Number k c + l is the l-th of cell c, which has k corners, and the next one around it is number
        k c + (l + 1) % k.
        """
        return _whole(self._half_edges_found[0], "half-edges")

    @functools.cached_property
    def opposite(self) -> Any:
        """The half-edge on the other side of each, -1 at the boundary."""
        return _whole(self._half_edges_found[1], "opposite half-edges")


def _vertices(given: Any, needs_grad: bool) -> Any:
    """The field of positions. Raises `FieldError`."""
    if isinstance(given, ti.Field):
        found = given
    else:
        array = np.asarray(given)
        array = array.astype(float) if array.dtype.kind in "iu" else array
        found = field_of(array, "vertices", needs_grad=needs_grad or None) if array.ndim == 2 else array
    fits = isinstance(found, ti.MatrixField) and found.m == 1 and found.n in (2, 3) and found.dtype in FLOATS
    if not fits or len(found.shape) != 1:
        raise FieldError(
            f"vertices are a field of vectors of 2 or 3 components, f32 or f64, with one index, or an array of shape"
            f" (n, 2) or (n, 3), not {_called(given)}",
            caller(),
        )
    return found


def _integers(cells: Any) -> Any:
    array = np.asarray(cells)
    if array.ndim != 2 or (array.dtype.kind not in "iu" and array.size):
        raise FieldError(f"cells are integers of shape (m, corners), not {_called(array)}", caller())
    if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        raise FieldError(f"cells have vertices up to {array.max()}, and there are not so many", caller())
    return array.astype(np.int32)


def _called(given: Any) -> str:
    """What was given, in an error."""
    if isinstance(given, ti.Field):
        return repr(given)
    array = np.asarray(given)
    return f"an array of {array.dtype} and shape {array.shape}"


def _kind(cells: Any, dimension: int, kind: str | None) -> str:
    """The kind of cells. Raises `FieldError`."""
    if cells.m != 1 or len(cells.shape) != 1 or cells.dtype.kind not in "iu":
        raise FieldError(f"cells are a field of vectors of integers with one index, not {cells!r}", caller())
    if kind is not None and kind not in KINDS:
        raise FieldError(f"there is no kind of cells {kind!r}{suggestion(kind, KINDS)}", caller())
    fitting = [name for name, known in KINDS.items() if known.corners == cells.n and known.dimension <= dimension]
    if kind in fitting:
        return kind
    if kind is not None:
        raise FieldError(
            f"a cell of kind {kind} has {KINDS[kind].corners} corners, in {KINDS[kind].dimension} dimensions at least;"
            f" here are {cells.n} corners, in {dimension} dimensions",
            caller(),
        )
    if not fitting:
        raise FieldError(f"there are no cells of {cells.n} corners in {dimension} dimensions", caller())
    if len(fitting) > 1:
        raise FieldError(
            f"cells of {cells.n} corners may be of kind {' or '.join(fitting)}", caller(), hint=f'kind="{fitting[-1]}"'
        )
    return fitting[0]


def _distinct(rows: Any) -> tuple[Any, Any]:
    """The first place of each distinct row, in the order of rows, and for each row the number of its kind."""
    order = np.lexsort(rows.T[::-1])
    new = np.ones(len(rows), bool)
    new[1:] = (rows[order][1:] != rows[order][:-1]).any(axis=1)
    number = np.empty(len(rows), int)
    number[order] = np.cumsum(new) - 1
    return order[new], number


def _whole(array: Any, name: str) -> Any:
    """A field of the i32 of an array."""
    return field_of(array.astype(np.int32), name)
