"""Neighbours within a radius: `ti.spatial`.

    grid = ti.spatial.CellGrid(x, radius, box=(L, L, L))
    grid.update()
    …
    for j in grid.near(x[i]):                 # in a kernel
        d = grid.displacement(x[i], x[j])

Particles are sorted by cells (counting sort), so that those of cells in a row lie beside each other. All is done by
kernels: also the decision whether a list is built again, so that steps can be captured. What is near is a constant for
derivatives; distances differentiate.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tinote as ti
from tinote.errors import FieldError
from tinote.kit.fields import FLOATS, like
from tinote.source import caller

__all__ = ["CellGrid", "NeighbourList"]

#: Cells that one iteration of the prefix sum adds up. Chosen, not measured.
BLOCK = 256
#: Cells a radius along each axis: with more of them, less is within reach that is not near. Those of the first axis are
#: beside each other in memory and cost least. Measured with a Lennard-Jones liquid.
CELLS = (2, 1, 1)


class CellGrid:
    """Cells of particles, for those within a radius of any point.

    Parameters
    ----------
    x : Field
        The positions: vectors of 1 to 3 components, f32 or f64, in any unit of length.
    radius : float
        The distance within which particles are near, in the same unit.
    box : sequence of float or None, optional
        The length of the periodic box along each axis, `None` for an axis that is open; all axes are open without it.
        Particles may be anywhere, also outside of the box.
    sheared : bool
        Whether the periodic images above and below, along the second axis, are displaced along the first by
        `grid.shift[None]` (Lees-Edwards boundaries), a field of one number that is set before `update`.

    Methods
    -------
    displacement
    near
    pairs
    sort
    update
    wrapped

    Raises
    ------
    FieldError
        For positions of another kind, and for a radius of more than half of a box.

    References
    ----------
    M. P. Allen and D. J. Tildesley, "Computer Simulation of Liquids", 2nd ed., 2017, chapter 5. A. W. Lees and S. F.
    Edwards, J. Phys. C 5 (1972) 1921.

    Examples
    --------
    >>> x = ti.Vector.field(2, ti.f64, shape=4)
    >>> x.from_numpy([[0.1, 0.5], [9.9, 0.5], [0.1, 1.2], [5.0, 5.0]])
    >>> grid = ti.spatial.CellGrid(x, 1.0, box=(10.0, 10.0))
    >>> grid.update()
    >>> @ti.kernel
    ... def potential() -> ti.f64:
    ...     total = 0.0
    ...     for i, j in grid.pairs():
    ...         total += grid.displacement(x[i], x[j]).norm_sqr()
    ...     return total
    >>> round(potential(), 5)  # 0.2² + 0.7² + (0.2² + 0.7²)
    1.06
    """

    def __init__(
        self, x: Any, radius: float, box: Sequence[float | None] | None = None, *, sheared: bool = False
    ) -> None:
        if (
            not isinstance(x, ti.MatrixField)
            or (x.m, len(x.shape)) != (1, 1)
            or not 1 <= x.n <= 3
            or x.dtype not in FLOATS
        ):
            raise FieldError(
                f"positions are a field of vectors of 1 to 3 components, f32 or f64, with one index, not {x!r}",
                caller(),
                hint="ti.Vector.field(3, ti.f64, shape=n)",
            )
        self.x = x
        self.dimension = x.n
        self.radius = float(radius)
        self.box: tuple[Any, ...] = (
            (None,) * x.n if box is None else tuple([None if length is None else float(length) for length in box])
        )
        self.sheared = sheared
        if len(self.box) != x.n:
            raise FieldError(f"the box has {len(self.box)} lengths, and positions have {x.n} components", caller())
        if not self.radius > 0 or math.isinf(self.radius):
            raise FieldError(f"the radius is {radius}, and must be positive", caller())
        for axis, length in enumerate(self.box):
            if length is not None and not 2 * self.radius <= length < math.inf:
                raise FieldError(
                    f"the radius {self.radius:g} is more than half of the box, {length:g} along axis {axis}: two"
                    " particles would be near each other more than once",
                    caller(),
                    hint="make the box larger, with copies of its particles",
                )
        if sheared and (x.n < 2 or None in self.box[:2]):
            raise FieldError("a sheared box is periodic along its first two axes", caller())
        #: the number of cells along each axis, and of cells a length; open axes have a power of two, so that the
        #: arithmetic with numbers of any size is exact, and their cells are used again and again
        self.cells = tuple([self._count(axis) for axis in range(x.n)])
        self.per_length = tuple(
            [
                CELLS[axis] / self.radius if length is None else count / length
                for axis, (length, count) in enumerate(zip(self.box, self.cells, strict=True))
            ]
        )
        #: what roundings of positions are at most, for each unit of length
        self.rounding = 64 * float(np.finfo(FLOATS[x.dtype]).eps)
        self.extent = max([length or 0.0 for length in self.box])
        self.shift: Any = ti.field(x.dtype, shape=(), name="shift")
        self.number = ti.field(ti.i32, shape=(), name="number")
        total = math.prod(self.cells)
        #: the first place of each cell's particles, and behind the last the number of all; sums of blocks of cells
        self.first = ti.field(ti.i32, shape=total + 1, name="first")
        self.sums = ti.field(ti.i32, shape=total // BLOCK + 1, name="sums")
        #: the cell of each particle; at each place the particle and its position in the box
        self.cell = ti.field(ti.i32, shape=x.shape, name="cell")
        self.order = ti.field(ti.i32, shape=x.shape, name="order")
        self.sorted = ti.Vector.field(x.n, x.dtype, shape=x.shape, name="sorted")
        self._copies = dict[Any, Any]()

    def _count(self, axis: int) -> int:
        """The number of cells along an axis: a few for each radius, and not many more in all than particles."""
        most = max(1.0, self.x.shape[0] ** (1 / self.dimension)) * CELLS[axis]
        if self.box[axis] is None:
            return 2 ** int(math.log2(most))
        return max(1, int(min(self.box[axis] / self.radius * CELLS[axis], most)))

    # in kernels

    @ti.func
    def wrapped(self, point):
        """The image of a point in the box: each component of a periodic axis is from 0 to the length of the box.

        Parameters
        ----------
        point : vector

        Returns
        -------
        vector

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f64, shape=1)
        >>> grid = ti.spatial.CellGrid(x, 1.0, box=(10.0,))
        >>> grid.wrapped(ti.Vector([-3.0]))
        [7.0]
        """
        p = 1 * point
        if ti.static(self.sheared):
            images = ti.floor(p[1] * (1 / self.box[1]))
            p[1] -= images * self.box[1]
            p[0] -= images * self.shift[None]
        for axis in ti.static(range(self.dimension)):
            if ti.static(self.box[axis] is not None and not (self.sheared and axis == 1)):
                p[axis] -= self.box[axis] * ti.floor(p[axis] * (1 / self.box[axis]))
        return p

    @ti.func
    def displacement(self, a, b):
        """The vector from `a` to the nearest image of `b`: as long as they are near, it differentiates as `b - a`.

        Parameters
        ----------
        a, b : vector
            Points, anywhere.

        Returns
        -------
        vector

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f64, shape=1)
        >>> grid = ti.spatial.CellGrid(x, 1.0, box=(10.0,))
        >>> grid.displacement(ti.Vector([9.0]), ti.Vector([1.0]))
        [2.0]
        """
        d = b - a
        if ti.static(self.sheared):
            images = ti.round(d[1] * (1 / self.box[1]))
            d[1] -= images * self.box[1]
            d[0] -= images * self.shift[None]
        for axis in ti.static(range(self.dimension)):
            if ti.static(self.box[axis] is not None and not (self.sheared and axis == 1)):
                d[axis] -= self.box[axis] * ti.round(d[axis] * (1 / self.box[axis]))
        return d

    @ti.func
    def _number(self, lowest, axis: ti.template()):
        """The number along an axis of a cell that is counted from anywhere."""
        count = ti.static(self.cells[axis])
        if ti.static(self.box[axis] is None):
            return ti.cast(lowest - count * ti.floor(lowest * (1 / count)), ti.i32)
        else:
            return ti.cast(lowest, ti.i32) % count

    @ti.func
    def _cell(self, point):
        """The cell of a point in the box."""
        found = 0
        for axis in ti.static(range(self.dimension - 1, -1, -1)):
            number = self._number(ti.floor(point[axis] * self.per_length[axis]), axis)
            found = found * self.cells[axis] + number
        return found

    @ti.func
    def _range(self, point, reach, axis: ti.template()):
        """Along an axis, the lowest cell that is within reach of a point, the number of cells, each once, and whether
        there are so few that some of them are within reach by two images.
        """
        lowest = ti.floor((point - reach) * self.per_length[axis])
        count = ti.floor((point + reach) * self.per_length[axis]) - lowest + 1
        return lowest, ti.cast(ti.min(count, self.cells[axis]), ti.i32), count > self.cells[axis]

    @ti.func
    def _gap(self, point, cell, axis: ti.template()):
        """The distance along an axis from a point to a cell."""
        width = ti.static(1 / self.per_length[axis])
        return ti.max(cell * width - point, point - (cell + 1) * width, 0)

    @ti.func
    def _rows(self, point, reach):
        """The rows of cells within reach: the first cell of each, and along it the point, and how far is within reach.
        A row of a displaced image sees the point displaced.
        """
        square = reach * reach
        if ti.static(self.dimension == 1):
            yield 0, point[0], square
        elif ti.static(self.dimension == 2):
            lowest, count, twice = self._range(point[1], reach, 1)
            for k in range(count):
                left = square if twice else square - self._gap(point[1], lowest + k, 1) ** 2
                along, left = self._along(point, left, lowest + k, twice)
                yield self._number(lowest + k, 1) * self.cells[0], along, left
        else:
            lowest, count, twice = self._range(point[1], reach, 1)
            bottom, layers, both = self._range(point[2], reach, 2)
            for layer in range(layers):
                base = self._number(bottom + layer, 2) * self.cells[1]
                above = square if both else square - self._gap(point[2], bottom + layer, 2) ** 2
                for k in range(count):
                    left = above if twice else above - self._gap(point[1], lowest + k, 1) ** 2
                    along, left = self._along(point, left, lowest + k, twice)
                    yield (base + self._number(lowest + k, 1)) * self.cells[0], along, left

    @ti.func
    def _along(self, point, left, row, twice):
        """Where a point is along a row of cells, and the square of what is within reach there: the whole row where that
        is within reach by two images, which are displaced in different ways.
        """
        along = point[0]
        if ti.static(self.sheared):
            along -= ti.floor(row * (1 / self.cells[1])) * self.shift[None]
            if twice:
                left = ti.cast(self.box[0] ** 2, self.x.dtype)
        return along, left

    @ti.func
    def _candidates(self, p, size):
        """The places of the particles in the cells that are within a distance from a point in the box."""
        reach = size + self.rounding * (size + ti.abs(p).max() + self.extent)
        for row, along, left in self._rows(p, reach):
            lowest, count, _ = self._range(along, ti.sqrt(ti.max(left, 0)), 0)
            begin = self._number(lowest, 0)
            beyond = begin + count - self.cells[0]
            parts = 0 if left < 0 else 2 if beyond > 0 else 1
            for part in range(parts):
                here = begin if part == 0 else 0
                end = ti.min(begin + count, self.cells[0]) if part == 0 else beyond
                yield from range(self.first[row + here], self.first[row + end])

    @ti.func
    def near(self, point, radius: ti.template() = None):
        """The particles within the radius of a point, one after another: in kernels, a `for` loops over their indices.

        The cells are those of the last `update`, which is due when particles have moved. A particle is near itself.

        Parameters
        ----------
        point : vector
            Where to look, anywhere.
        radius : float, optional
            Another radius, of any size. The nearest image of each particle counts.

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f32, shape=5)
        >>> x.from_numpy([[0.0], [0.9], [2.0], [2.9], [9.5]])
        >>> grid = ti.spatial.CellGrid(x, 1.0, box=(10.0,))
        >>> grid.update()
        >>> @ti.kernel
        ... def count(at: ti.f32) -> ti.i32:
        ...     found = 0
        ...     for j in grid.near(ti.Vector([at])):
        ...         found += 1
        ...     return found
        >>> count(0.0), count(2.5)
        (3, 2)
        """
        size = ti.static(self.radius) if ti.static(radius is None) else radius
        for place in self._candidates(self.wrapped(point), size):
            j = self.order[place]
            if self.displacement(point, self.x[j]).norm_sqr() <= size * size:
                yield j

    @ti.func
    def pairs(self):
        """The pairs of particles within the radius of each other, each once: in kernels, a `for` loops over their two
        indices, in parallel where it is outermost.

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f32, shape=3)
        >>> x.from_numpy([[0.0], [0.5], [2.0]])
        >>> grid = ti.spatial.CellGrid(x, 1.0)
        >>> grid.update()
        >>> @ti.kernel
        ... def show():
        ...     for i, j in grid.pairs():
        ...         print(i, j)
        >>> show()
        0 1
        """
        for i in range(self.number[None]):
            for j in self.near(self.x[i]):
                if i < j:
                    yield i, j

    # sorting

    @ti.func
    def _sort(self, number, cells):
        """Counting sort of the first particles into the cells: all, or none, so that nothing changes."""
        lost = number
        for i in range(number):
            for axis in ti.static(range(self.dimension)):
                if ti.math.isnan(self.x[i][axis]) or ti.math.isinf(self.x[i][axis]):
                    lost = ti.min(lost, i)
        assert lost == number, f"the position of particle {lost} is not a finite number"
        for c in range(cells):
            self.first[c] = 0
        for i in range(number):
            c = self._cell(self.wrapped(ti.stop_gradient(self.x[i])))
            self.cell[i] = c
            self.first[c] += 1
        # Sums up to each cell, included, within blocks; and of the blocks before.
        blocks = (cells + BLOCK - 1) // BLOCK
        for block in range(blocks):
            total_before = 0
            for c in range(block * BLOCK, ti.min((block + 1) * BLOCK, cells)):
                total_before += self.first[c]
                self.first[c] = total_before
            self.sums[block] = total_before
        ti.loop_config(serialize=True)
        for block in range(1, blocks):
            self.sums[block] += self.sums[block - 1]
        for c in range(BLOCK, cells):
            self.first[c] += self.sums[c // BLOCK - 1]
        # Each particle takes the last free place of its cell; then they stand in order.
        for back in range(number):
            i = number - 1 - back
            place = ti.atomic_sub(self.first[self.cell[i]], 1) - 1
            self.order[place] = i
        if cells > 0:
            self.first[cells] = number
        for c in range(cells):
            for k in range(self.first[c] + 1, self.first[c + 1]):
                i = self.order[k]
                place = k
                while place > self.first[c]:
                    before = self.order[place - 1]
                    if before < i:
                        break
                    self.order[place] = before
                    place -= 1
                self.order[place] = i
        for place in range(number):
            self.sorted[place] = self.wrapped(ti.stop_gradient(self.x[self.order[place]]))

    @ti.kernel
    def _update(self, number: ti.i32):
        self._sort(number, self.first.shape[0] - 1)
        self.number[None] = number

    def update(self, number: int | None = None) -> None:
        """Sort the particles by their present positions, after they have moved.

        Parameters
        ----------
        number : int, optional
            Of the first particles, which count; by default all.

        Raises
        ------
        KernelAssertionError
            Where a position is not a finite number, with the index of the particle.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=100)
        >>> grid = ti.spatial.CellGrid(x, 0.5)
        >>> grid.update(0)
        >>> grid.number[None]
        0
        """
        self._update(self.x.shape[0] if number is None else number)

    @ti.kernel
    def _gather(self, into: ti.template(), field: ti.template()):
        for place in range(self.number[None]):
            into[place] = field[self.order[place]]

    @ti.kernel
    def _put(self, field: ti.template(), sorted: ti.template()):
        for place in range(self.number[None]):
            field[place] = sorted[place]

    def sort(self, *fields: Any) -> None:
        """Give the particles new indices, in the order of their cells.

        Near ones are near in memory then, which makes loops over neighbours faster.

        Parameters
        ----------
        *fields : Field
            All fields of the particles besides the positions: their elements move along, and derivatives with them.

        Raises
        ------
        FieldError
            For a field of fewer particles.

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f32, shape=3)
        >>> mass = ti.field(ti.f32, shape=3)
        >>> x.from_numpy([[7.5], [0.5], [3.5]])
        >>> mass.from_numpy([7.0, 0.0, 3.0])
        >>> grid = ti.spatial.CellGrid(x, 1.0, box=(10.0,))
        >>> grid.sort(mass)
        >>> print(x, mass)
        [[0.5] [3.5] [7.5]] [0. 3. 7.]
        """
        for field in fields:
            if not isinstance(field, ti.Field) or len(field.shape) != 1 or field.shape[0] < self.x.shape[0]:
                raise FieldError(f"{field!r} has not one element for each particle", caller())
        self.update()
        for field in dict.fromkeys((self.x, *fields)):
            if field not in self._copies:
                self._copies[field] = like(field, "sorted")
            copy = self._copies[field]
            self._gather(copy, field)
            self._put(field, copy)
        self.update()


class NeighbourList:
    """A list of the particles near each (Verlet's list), which is built again only when particles have moved.

    Parameters
    ----------
    x : Field
        The positions, as for `CellGrid`.
    radius : float
        The distance within which particles are neighbours, in the unit of positions.
    skin : float
        How much farther the list reaches: it is built again when a particle has moved by more than half of this.
    box : sequence of float or None, optional
        As for `CellGrid`.
    sheared : bool
        As for `CellGrid`, with `grid.shift[None]` of the list.
    half : bool
        Whether each pair stands in the list of the particle with the lower index alone.
    most : int
        Room for the neighbours of a particle, those in the skin included.

    Methods
    -------
    displacement
    near
    pairs
    sort
    update

    Raises
    ------
    FieldError
        For what `CellGrid` refuses with the radius and the skin.

    References
    ----------
    L. Verlet, Phys. Rev. 159 (1967) 98.

    Examples
    --------
    >>> x = ti.Vector.field(1, ti.f64, shape=3, needs_grad=True)
    >>> energy = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> x.from_numpy([[0.0], [0.9], [2.0]])
    >>> neighbours = ti.spatial.NeighbourList(x, 1.5, skin=0.3, half=True)
    >>> @ti.kernel
    ... def springs():
    ...     for i in x:
    ...         for j in neighbours.near(i):
    ...             energy[None] += (neighbours.displacement(x[i], x[j]).norm() - 1.0) ** 2 / 2
    >>> with ti.ad.Tape(energy):
    ...     neighbours.update()
    ...     springs()
    >>> print(x.grad.to_numpy().ravel().round(12))
    [ 0.1 -0.2  0.1]
    """

    def __init__(
        self,
        x: Any,
        radius: float,
        skin: float,
        box: Sequence[float | None] | None = None,
        *,
        sheared: bool = False,
        half: bool = False,
        most: int = 64,
    ) -> None:
        self.grid = CellGrid(x, radius + skin, box, sheared=sheared)
        self.x = x
        self.radius = float(radius)
        self.skin = float(skin)
        self.half = half
        self.most = most
        #: how often the list was built; the number of particles then (-1: it has to be built); and how far the images
        #: above were displaced
        self.builds = ti.field(ti.i32, shape=(), name="builds")
        self.number = ti.field(ti.i32, shape=(), name="number")
        self.number[None] = -1
        self.shift = ti.field(x.dtype, shape=(), name="shift of the list")
        self.before = ti.Vector.field(x.n, x.dtype, shape=x.shape, name="positions of the list")
        self.counts = ti.field(ti.i32, shape=x.shape, name="numbers of neighbours")
        self.neighbours = ti.field(ti.i32, shape=(x.shape[0], 16 * (most // 16 + 1)), name="neighbours")

    @ti.func
    def displacement(self, a, b):
        """The vector from `a` to the nearest image of `b`, as that of `CellGrid`.

        Parameters
        ----------
        a, b : vector
            Points, anywhere.

        Returns
        -------
        vector

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f64, shape=1)
        >>> neighbours = ti.spatial.NeighbourList(x, 1.0, 0.2, box=(10.0,))
        >>> neighbours.displacement(ti.Vector([9.0]), ti.Vector([1.0]))
        [2.0]
        """
        return self.grid.displacement(a, b)

    @ti.func
    def near(self, i):
        """The neighbours of a particle, one after another: in kernels, a `for` loops over their indices. These are the
        particles of the list whose present distance is at most the radius.

        Parameters
        ----------
        i : int
            The index of the particle.

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f32, shape=3)
        >>> x.from_numpy([[0.0], [0.9], [2.0]])
        >>> neighbours = ti.spatial.NeighbourList(x, 1.0, skin=0.2)
        >>> neighbours.update()
        >>> @ti.kernel
        ... def show(i: ti.i32):
        ...     for j in neighbours.near(i):
        ...         print(j)
        >>> show(0)
        1
        """
        here = self.x[i]
        for k in range(self.counts[i]):
            j = self.neighbours[i, k]
            if self.grid.displacement(here, self.x[j]).norm_sqr() <= self.radius * self.radius:
                yield j

    @ti.func
    def pairs(self):
        """The pairs of a particle and a neighbour: in kernels, a `for` loops over their two indices, in parallel over
        the particles where it is outermost. Each pair comes once with `half`, and twice otherwise.

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f32, shape=3)
        >>> x.from_numpy([[0.0], [0.9], [2.0]])
        >>> neighbours = ti.spatial.NeighbourList(x, 1.0, skin=0.2, half=True)
        >>> neighbours.update()
        >>> @ti.kernel
        ... def show():
        ...     for i, j in neighbours.pairs():
        ...         print(i, j)
        >>> show()
        0 1
        """
        for i in range(self.number[None]):
            for j in self.near(i):
                yield i, j

    @ti.kernel
    def _update(self, number: ti.i32):
        free = (self.skin - ti.abs(self.grid.shift[None] - self.shift[None])) / 2
        is_old = ti.cast(number != self.number[None] or free < 0, ti.i32)
        for i in range(number):
            if not self.displacement(self.before[i], ti.stop_gradient(self.x[i])).norm_sqr() <= free * free:
                is_old |= 1
        if is_old > 0:
            self.number[None] = -1
            self.builds[None] += 1
        count = is_old * number
        self.grid._sort(count, is_old * (self.grid.first.shape[0] - 1))
        needed = 0
        for i in range(count):
            found = 0
            self.before[i] = ti.stop_gradient(self.x[i])
            p = self.grid.wrapped(self.before[i])
            for place in self.grid._candidates(p, self.grid.radius):
                # Each is written, and stays if it counts: there is no branch that is hard to predict.
                j = self.grid.order[place]
                is_near = self.displacement(p, self.grid.sorted[place]).norm_sqr() <= self.grid.radius**2
                counts = i < j if ti.static(self.half) else i != j
                self.neighbours[i, ti.min(found, self.most)] = j
                found += ti.cast(is_near, ti.i32) & ti.cast(counts, ti.i32)
            self.counts[i] = found
            needed = ti.max(needed, found)
        assert needed <= self.most, f"a particle has {needed} neighbours: NeighbourList(…, most={needed})"
        self.number[None] = number
        if is_old > 0:
            self.grid.number[None] = number
            self.shift[None] = self.grid.shift[None]

    def update(self, number: int | None = None) -> None:
        """Build the list if it may lack neighbours: if a particle, or an image of the box, has moved by too much.

        Parameters
        ----------
        number : int, optional
            Of the first particles, which count; by default all.

        Raises
        ------
        KernelAssertionError
            Where a particle has more neighbours than there is room for, with their number; where a position is not a
            finite number, with the index of the particle.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=100)
        >>> neighbours = ti.spatial.NeighbourList(x, 0.5, skin=0.1, most=99)
        >>> for _ in range(10):
        ...     neighbours.update()
        >>> neighbours.builds[None]
        1
        """
        self._update(self.x.shape[0] if number is None else number)

    def sort(self, *fields: Any) -> None:
        """Give the particles new indices, in the order of their cells, as `CellGrid.sort`, and build the list.

        Parameters
        ----------
        *fields : Field
            All fields of the particles besides the positions.

        Raises
        ------
        FieldError
            For a field of fewer particles.

        Examples
        --------
        >>> x = ti.Vector.field(1, ti.f32, shape=3)
        >>> x.from_numpy([[7.5], [0.5], [3.5]])
        >>> neighbours = ti.spatial.NeighbourList(x, 1.0, skin=0.2, box=(10.0,))
        >>> neighbours.sort()
        >>> print(x)
        [[0.5] [3.5] [7.5]]
        """
        self.grid.sort(*fields)
        self._forget()
        self.update()

    @ti.kernel
    def _forget(self):
        self.number[None] = -1
