"""Diffusion on grids, by multigrid: `ti.multigrid`.

    equation = ti.multigrid.Diffusion(f, u, k, boundary="neumann")
    equation.solve()  # -div(k grad u) = f
    equation.cycle()  # or: u comes nearer to the solution, in a fixed number of launches

Values lie in the middle of cells, which are coupled through their faces (finite volumes). A coarser grid joins cells in
pairs along an axis; couplings behave as electric conductors do, which are in series along that axis and else parallel,
and corrections are interpolated by the same conductors: so coefficients may jump, cells may be cut off,
and any number of cells will do. An axis whose cells are longer waits until the others have become as coarse.

All grids lie behind each other in the same fields, and each has three axes, the first of which may be of one cell: the
kernels get a grid's place and shape as numbers, and are compiled once for all grids.
"""

# Annotations of kernels are values: types of numbers that are known when a kernel is made.
# pyright: reportInvalidTypeForm=false

import functools
import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import tinote as ti
from tinote.errors import FieldError, SolverError, suggestion
from tinote.kit.fields import FLOATS
from tinote.source import Span, caller

__all__ = ["Diffusion"]

BOUNDARIES = ("dirichlet", "neumann", "periodic")

#: Of the corrections of a smoother: what a residual over the diagonal is multiplied by in the first, what the first and
#: a residual are in the second. Chebyshev polynomials of the fourth kind for eigenvalues up to 2, which those of D⁻¹ A
#: never exceed, as A is diagonally dominant.
FIRST, KEPT, SECOND = 2 / 3, 1 / 5, 6 / 5
#: Axes are made coarser together whose cells differ in length by less than this factor. Chosen, not measured.
SIMILAR = 1.5
#: Cells of a line in one parallel iteration. Chosen, not measured.
BLOCK = 2048

#: A grid, for kernels: its shape, and where its cells and the faces across each axis begin.
Grid = ti.types.vector(7, ti.i32)


class GridFields(NamedTuple):
    """Numbers of all grids: a right side, work, weights of the interpolation, what couples cells through the faces of
    each axis, of which there is one more than cells, and to nothing else, if anything does. `first`: the axis from
    which on there is more than one cell; `periodic`: of each axis.
    """

    f: Any
    x: Any
    y: Any
    d: Any
    weights: Any
    links: tuple[Any, ...]
    absorption: Any
    first: int
    periodic: tuple[bool, ...]


class Coarsening(NamedTuple):
    """From a grid to the next coarser one, along an axis. `is_smooth`: the finer one has a smoother."""

    fine: Any
    coarse: Any
    axis: int
    is_smooth: bool


# Where things are. Loops go over lines, and blocks of a line's cells.


@ti.func
def blocks(g: ti.Template):
    return (g[2] + BLOCK - 1) // BLOCK


@ti.func
def block_of(block: int, g: ti.Template):
    return range(ti.cast(block * BLOCK, ti.i64), ti.cast(ti.min(block * BLOCK + BLOCK, g[2]), ti.i64))


@ti.func
def start(g: ti.Template, line: int):
    """Of a line's cells."""
    return ti.cast(g[3] + line * g[2], ti.i64)


@ti.func
def cell(g: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template):
    return ti.cast(g[3] + (i * g[1] + j) * g[2], ti.i64) + k


@ti.func
def face(g: ti.Template, axis: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template):
    """That below a cell along an axis."""
    at = ti.cast(0, ti.i64)
    if ti.static(axis == 0):
        at += g[4] + (i * g[1] + j) * g[2] + k
    elif ti.static(axis == 1):
        at += g[5] + (i * (g[1] + 1) + j) * g[2] + k
    else:
        at += g[6] + (i * g[1] + j) * (g[2] + 1) + k
    return at


@ti.func
def stride(g: ti.Template, axis: ti.Template):
    """Of cells along an axis; of faces across it, too."""
    found = ti.cast(1, ti.i64)
    if ti.static(axis == 0):
        found *= g[1] * g[2]
    elif ti.static(axis == 1):
        found *= g[2]
    return found


@ti.func
def along(axis: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template):
    if ti.static(axis == 0):
        return ti.cast(i, ti.i64)
    elif ti.static(axis == 1):
        return ti.cast(j, ti.i64)
    else:
        return ti.cast(k, ti.i64)


@ti.func
def place(i: ti.Template, shape: ti.Template):
    at = ti.cast(0, ti.i64)
    for d in ti.static(range(len(shape))):
        at = at * shape[d] + i[d]
    return at


@ti.func
def moved(i: ti.Template, axis: ti.Template, by: ti.Template):
    to = i
    to[axis] = i[axis] + by
    return to


@ti.func
def on_line(g: ti.Template, axis: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template):
    """The first face of a line along an axis."""
    if ti.static(axis == 0):
        return face(g, axis, 0, j, k)
    elif ti.static(axis == 1):
        return face(g, axis, i, 0, k)
    else:
        return face(g, axis, i, j, 0)


@ti.func
def other(at: ti.i64, count: ti.i32, periodic: ti.Template):
    """The coarse cell, besides the one that it is in, between whose middles a fine cell is."""
    found = at // 2 - 1 + 2 * (at % 2)
    if ti.static(periodic):
        found = count - 1 if found < 0 else found
        found = 0 if found >= count else found
    return found


@ti.func
def neighbour(at: ti.i64, m: ti.Template, n: ti.i32, count: ti.i32, periodic: ti.Template):
    """Of the four fine cells that a coarse one has a part in, which begin one before its own, the one m."""
    to = 2 * at + m
    if ti.static(periodic and m == -1):
        to = to if at > 0 else n - 1
    if ti.static(periodic and m == 2):
        to = to if at < count - 1 else 0
    return to


@ti.func
def put_at(axis: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template, to: ti.i64):
    place = ti.Vector([i, j, k], ti.i64)
    place[axis] = to
    return place


class _Kernels:
    """The kernels for numbers of one type."""

    def __init__(self, dtype: Any) -> None:
        @ti.func
        def number(value: ti.Template):
            return ti.cast(value, dtype)

        @ti.func
        def ratio(a: ti.Template, b: ti.Template):
            return number(0.0) if b == 0 else a / b

        @ti.func
        def series(a: ti.Template, b: ti.Template):
            """Of two conductors."""
            return number(0.0) if a == 0 or b == 0 else 1 / (1 / a + 1 / b)

        @ti.func
        def value(of: ti.Template, i: ti.Template):
            """Of a coefficient: of a field in a cell, or a number."""
            if ti.static(isinstance(of, ti.Field)):
                return of[i]
            else:
                return number(of)

        # The finest grid.

        @ti.func
        def through(k: ti.Template, i: ti.Template, axis: ti.Template, shape: ti.Template, sides: ti.Template):
            """What couples a cell with the one before along an axis, or the last cell with what follows, in units of
            1/h²: k at a face is the harmonic mean of both sides.
            """
            n = shape[axis]
            found = number(0.0)
            if 0 < i[axis] < n:
                found = 2 * series(value(k, moved(i, axis, -1)), value(k, i))
            elif ti.static(sides[axis] is None):
                if n > 1:
                    found = 2 * series(value(k, moved(i, axis, n - 1 - i[axis])), value(k, moved(i, axis, -i[axis])))
            elif i[axis] == 0:
                if ti.static(sides[axis] is not None and sides[axis][0] is not None):
                    found = 2 * value(k, i)
            else:
                if ti.static(sides[axis] is not None and sides[axis][1] is not None):
                    found = 2 * value(k, moved(i, axis, -1))
            return found

        @ti.kernel
        def link(
            links: ti.Template,
            k: ti.Template,
            axis: ti.Template,
            faces: ti.Template,
            shape: ti.Template,
            sides: ti.Template,
            by: dtype,
        ):
            for i in ti.grouped(ti.ndrange(*faces)):
                links[place(i, faces)] = by * through(k, i, axis, shape, sides)

        @ti.kernel
        def put(to: ti.Template, x: ti.Template, shape: ti.Template):
            """Numbers of a field, or one for all cells, behind each other."""
            for i in ti.grouped(ti.ndrange(*shape)):
                to[place(i, shape)] = value(x, i)

        @ti.kernel
        def get(x: ti.Template, numbers: ti.Template, shape: ti.Template):
            for i in ti.grouped(x):
                x[i] = numbers[place(i, shape)]

        # A coarser grid.

        @ti.func
        def inside(links: ti.Template, g: ti.Template, axis: ti.Template, first: ti.Template, at: ti.Template):
            """Twice what couples the two cells that make a coarse one; of a single cell more than anything else.
            `first`: the first face of their line along the axis.
            """
            found = number(1e30)
            if 2 * at + 1 < g[axis]:
                found = 2 * links[first + (2 * at + 1) * stride(g, axis)]
            return found

        @ti.kernel
        def join_along(fields: ti.Template, axis: ti.Template, g: Grid, coarse: Grid):
            """Links along the axis: what is between the middles of two coarse cells."""
            faces = coarse
            faces[axis] += 1
            links = ti.static(fields.links[axis])
            for line, block in ti.ndrange(faces[0] * faces[1], blocks(faces)):
                i, j = line // faces[1], line % faces[1]
                for k in block_of(block, faces):
                    at, n, count = along(axis, i, j, k), g[axis], coarse[axis]
                    first = on_line(g, axis, i, j, k)
                    found = links[first + ti.min(2 * at, n) * stride(g, axis)]
                    before, after = at - 1, at
                    if ti.static(fields.periodic[axis]):
                        before = before if before >= 0 else count - 1
                        after = after if after < count else 0
                    if before >= 0:
                        found = series(found, inside(links, g, axis, first, before))
                    if after < count:
                        found = series(found, inside(links, g, axis, first, after))
                    if ti.static(fields.periodic[axis]):
                        found = found if count > 1 else number(0.0)
                    links[face(coarse, axis, i, j, k)] = found

        @ti.kernel
        def weigh(fields: ti.Template, axis: ti.Template, g: Grid, coarse: Grid):
            """The part of the other coarse cell in a fine one's value."""
            links = ti.static(fields.links[axis])
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at = along(axis, i, j, k)
                    first = on_line(g, axis, i, j, k)
                    between = links[first + (at + at % 2) * stride(g, axis)]
                    far = other(at, coarse[axis], fields.periodic[axis])
                    if 0 <= far < coarse[axis]:
                        between = series(between, inside(links, g, axis, first, far))
                    weight = ratio(between, between + inside(links, g, axis, first, at // 2))
                    fields.weights[start(g, line) + k] = weight

        @ti.kernel
        def restrict(
            fields: ti.Template, values: ti.Template, to: ti.Template, axis: ti.Template, g: Grid, coarse: Grid
        ):
            """Values of the fine grid to the coarse one: the transpose of `prolong`."""
            for line, block in ti.ndrange(coarse[0] * coarse[1], blocks(coarse)):
                i, j = line // coarse[1], line % coarse[1]
                for k in block_of(block, coarse):
                    at, n = along(axis, i, j, k), g[axis]
                    first = cell(g, i, j, k) - at * stride(g, axis)
                    total = number(0.0)
                    for m in ti.static(range(-1, 3)):
                        place = neighbour(at, m, n, coarse[axis], fields.periodic[axis])
                        if 0 <= place < n:
                            weight = fields.weights[first + place * stride(g, axis)]
                            weight = 1 - weight if ti.static(m in (0, 1)) else weight
                            total += weight * values[first + place * stride(g, axis)]
                    to[start(coarse, line) + k] = total

        @ti.kernel
        def join_across(fields: ti.Template, axis: ti.Template, across: ti.Template, g: Grid, coarse: Grid):
            """Links across another axis, each given to coarse cells as the values of the two cells are."""
            faces = coarse
            faces[across] += 1
            for line, block in ti.ndrange(faces[0] * faces[1], blocks(faces)):
                i, j = line // faces[1], line % faces[1]
                for k in block_of(block, faces):
                    at, here = along(axis, i, j, k), along(across, i, j, k)
                    above, below = here, here - 1
                    if ti.static(fields.periodic[across]):
                        above = above if above < g[across] else 0
                        below = below if below >= 0 else g[across] - 1
                    else:
                        above = ti.min(above, g[across] - 1)
                        below = ti.max(below, 0)
                    total = number(0.0)
                    for m in ti.static(range(-1, 3)):
                        to = neighbour(at, m, g[axis], coarse[axis], fields.periodic[axis])
                        if 0 <= to < g[axis]:
                            p = put_at(axis, i, j, k, to)
                            first = cell(g, p[0], p[1], p[2]) - here * stride(g, across)
                            weight = (
                                fields.weights[first + above * stride(g, across)]
                                + fields.weights[first + below * stride(g, across)]
                            ) / 2
                            weight = 1 - weight if ti.static(m in (0, 1)) else weight
                            total += weight * fields.links[across][face(g, across, p[0], p[1], p[2])]
                    fields.links[across][face(coarse, across, i, j, k)] = total

        @ti.kernel
        def prolong(fields: ti.Template, axis: ti.Template, adds: ti.Template, g: Grid, coarse: Grid):
            """x of the fine grid: its y, if there is one, and that of the coarse grid."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at = along(axis, i, j, k)
                    far = other(at, coarse[axis], fields.periodic[axis])
                    first = cell(coarse, i, j, k) - at * stride(coarse, axis)
                    weight = fields.weights[start(g, line) + k]
                    found = (1 - weight) * fields.y[first + at // 2 * stride(coarse, axis)]
                    if 0 <= far < coarse[axis]:
                        found += weight * fields.y[first + far * stride(coarse, axis)]
                    if ti.static(adds):
                        found += fields.y[start(g, line) + k]
                    fields.x[start(g, line) + k] = found

        # The operator A of a grid.

        @ti.func
        def diagonal_of(fields: ti.Template, g: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template):
            found = number(0.0)
            if ti.static(fields.absorption is not None):
                found += fields.absorption[cell(g, i, j, k)]
            for axis in ti.static(range(fields.first, 3)):
                at = face(g, axis, i, j, k)
                found += fields.links[axis][at] + fields.links[axis][at + stride(g, axis)]
            return found

        @ti.func
        def total(x: ti.Template, at: ti.Template):
            """Of fields."""
            found = x[0][at]
            for field in ti.static(x[1:]):
                found += field[at]
            return found

        @ti.func
        def around(fields: ti.Template, g: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template, x: ti.Template):
            """The neighbours' numbers in a sum of fields, times what couples them."""
            found, at = number(0.0), cell(g, i, j, k)
            for axis in ti.static(range(fields.first, 3)):
                step, n, here = stride(g, axis), g[axis], along(axis, i, j, k)
                low = fields.links[axis][face(g, axis, i, j, k)]
                high = fields.links[axis][face(g, axis, i, j, k) + step]
                if here > 0:
                    found += low * total(x, at - step)
                elif ti.static(fields.periodic[axis]):
                    found += low * total(x, at + (n - 1) * step)
                if here < n - 1:
                    found += high * total(x, at + step)
                elif ti.static(fields.periodic[axis]):
                    found += high * total(x, at - (n - 1) * step)
            return found

        @ti.func
        def left(fields: ti.Template, g: ti.Template, i: ti.Template, j: ti.Template, k: ti.Template, x: ti.Template):
            """Of f - A x, over the diagonal."""
            at, diagonal = cell(g, i, j, k), diagonal_of(fields, g, i, j, k)
            return ratio(fields.f[at] + around(fields, g, i, j, k, x) - diagonal * total(x, at), diagonal)

        @ti.kernel
        def relax_from_zero(fields: ti.Template, g: Grid, by: dtype):
            """The first correction of a smoother, in x."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at = start(g, line) + k
                    fields.x[at] = by * ratio(fields.f[at], diagonal_of(fields, g, i, j, k))

        @ti.kernel
        def relax(fields: ti.Template, g: Grid, by: dtype):
            """The first correction of x, in d."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    fields.d[start(g, line) + k] = by * left(fields, g, i, j, k, (fields.x,))

        @ti.kernel
        def relax_more(fields: ti.Template, x: ti.Template, g: Grid, kept: dtype, by: dtype):
            """The second correction, in y, of a sum of fields, the last one being the first correction."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at = start(g, line) + k
                    fields.y[at] = total(x, at) + kept * x[-1][at] + by * left(fields, g, i, j, k, x)

        @ti.kernel
        def remain(fields: ti.Template, f: ti.Template, x: ti.Template, to: ti.Template, g: Grid):
            """What is left: f - A x, or 0 where nothing is coupled."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at, diagonal = start(g, line) + k, diagonal_of(fields, g, i, j, k)
                    found = f[at] + around(fields, g, i, j, k, (x,)) - diagonal * x[at]
                    to[at] = number(0.0) if diagonal == 0 else found

        @ti.kernel
        def copy(a: ti.Template, b: ti.Template, g: Grid):
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                for k in block_of(block, g):
                    b[start(g, line) + k] = a[start(g, line) + k]

        # Vectors of the finest grid.

        @ti.kernel
        def bound(fields: ti.Template, b: ti.Template, values: ti.Template, g: Grid):
            """Add what boundaries give to the right side, which is 0 where nothing is coupled."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at = start(g, line) + k
                    diagonal = diagonal_of(fields, g, i, j, k)
                    for axis in ti.static(range(3)):
                        for end in ti.static(range(2)):
                            if ti.static(values[axis][end] != 0):
                                if along(axis, i, j, k) == end * (g[axis] - 1):
                                    held = number(values[axis][end])
                                    b[at] += held * fields.links[axis][face(g, axis, i, j, k) + end * stride(g, axis)]
                    if diagonal == 0:
                        b[at] = number(0.0)

        @ti.kernel
        def add_up(fields: ti.Template, x: ti.Template, sums: ti.Template, g: Grid):
            """Over the cells that are coupled to others, and how many there are."""
            sums[0], sums[1] = number(0.0), number(0.0)
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    if diagonal_of(fields, g, i, j, k) != 0:
                        sums[0] += x[start(g, line) + k]
                        sums[1] += number(1.0)

        @ti.kernel
        def shift(fields: ti.Template, x: ti.Template, sums: ti.Template, g: Grid):
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    if diagonal_of(fields, g, i, j, k) != 0:
                        x[start(g, line) + k] -= ratio(sums[0], ti.stop_gradient(sums[1]))

        @ti.kernel
        def equation(fields: ti.Template, x: ti.Template, b: ti.Template, into: ti.Template, g: Grid):
            """A x - b; x itself where nothing is coupled."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at, diagonal = start(g, line) + k, diagonal_of(fields, g, i, j, k)
                    found = diagonal * x[at] - around(fields, g, i, j, k, (x,)) - b[at]
                    into[at] = x[at] if diagonal == 0 else found

        @ti.kernel
        def measure(fields: ti.Template, x: ti.Template, sums: ti.Template, g: Grid):
            """|D x|²: A x rounds by no more than this, times a few rounding errors."""
            sums[0] = number(0.0)
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    sums[0] += (diagonal_of(fields, g, i, j, k) * x[start(g, line) + k]) ** 2

        @ti.kernel
        def add(x: ti.Template, y: ti.Template, g: Grid):
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                for k in block_of(block, g):
                    x[start(g, line) + k] += y[start(g, line) + k]

        @ti.kernel
        def dot(a: ti.Template, b: ti.Template, sums: ti.Template, number_of: ti.Template, g: Grid):
            sums[number_of] = number(0.0)
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                for k in block_of(block, g):
                    sums[number_of] += a[start(g, line) + k] * b[start(g, line) + k]

        # Conjugate gradients. Sums are r·r, z·r, that before, p·A p, and p·D p.

        @ti.kernel
        def turn(p: ti.Template, z: ti.Template, sums: ti.Template, g: Grid):
            """The next direction."""
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                for k in block_of(block, g):
                    at = start(g, line) + k
                    p[at] = z[at] + ratio(sums[1], sums[2]) * p[at]
            sums[2] = sums[1]

        @ti.kernel
        def image(fields: ti.Template, p: ti.Template, q: ti.Template, sums: ti.Template, g: Grid):
            sums[3], sums[4] = number(0.0), number(0.0)
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                i, j = line // g[1], line % g[1]
                for k in block_of(block, g):
                    at = start(g, line) + k
                    own = diagonal_of(fields, g, i, j, k) * p[at]
                    q[at] = own - around(fields, g, i, j, k, (p,))
                    sums[3] += p[at] * q[at]
                    sums[4] += p[at] * own

        @ti.kernel
        def advance(x: ti.Template, r: ti.Template, p: ti.Template, q: ti.Template, sums: ti.Template, g: Grid):
            sums[0] = number(0.0)
            for line, block in ti.ndrange(g[0] * g[1], blocks(g)):
                for k in block_of(block, g):
                    at, length = start(g, line) + k, ratio(sums[1], sums[3])
                    x[at] += length * p[at]
                    r[at] -= length * q[at]
                    sums[0] += r[at] ** 2

        self.link, self.put, self.get, self.join_along, self.join_across = link, put, get, join_along, join_across
        self.weigh, self.restrict, self.prolong, self.copy = weigh, restrict, prolong, copy
        self.relax_from_zero, self.relax, self.relax_more, self.remain = relax_from_zero, relax, relax_more, remain
        self.bound, self.add_up, self.shift, self.equation = bound, add_up, shift, equation
        self.measure, self.add, self.dot = measure, add, dot
        self.turn, self.image, self.advance = turn, image, advance


_kernels_of = functools.cache(_Kernels)


class _Grids:
    """A grid and the coarser ones, down to one cell, with fields of their own."""

    def __init__(self, equation: "Diffusion", *, is_recorded: bool) -> None:
        """`is_recorded`: derivatives go through these fields."""
        self._kernels, self._equation = equation._kernels, equation
        first, lengths = 3 - len(equation._shape), [*equation._lengths]
        shapes, steps = [(*(1 for _ in range(first)), *equation._shape)], list[tuple[int, bool]]()
        while max(shapes[-1]) > 1:
            shortest = min(h for h, n in zip(lengths, shapes[-1], strict=True) if n > 1)
            axes = [axis for axis, n in enumerate(shapes[-1]) if n > 1 and lengths[axis] < SIMILAR * shortest]
            for axis in axes:
                lengths[axis] *= 2
                shapes.append(tuple((n + 1) // 2 if d == axis else n for d, n in enumerate(shapes[-1])))
                steps.append((axis, axis == axes[0]))
        faces = [[tuple(n + (d == axis) for d, n in enumerate(shape)) for shape in shapes] for axis in range(3)]
        sizes = [[math.prod(shape) for shape in kind] for kind in (shapes, *faces)]
        begins = [[0, *accumulate(kind)] for kind in sizes]
        grids = [(*shape, *places) for shape, *places in zip(shapes, *begins, strict=False)]
        self.finest, self._coarsest = grids[0], grids[-1]
        self._steps = [Coarsening(a, b, *step) for a, b, step in zip(grids, grids[1:], steps, strict=False)]
        shadows = {"needs_grad": False, "needs_dual": False}
        if is_recorded:
            given = [one for one in equation._given if isinstance(one, ti.Field)]
            shadows = {"needs_grad": any(x.has_grad for x in given), "needs_dual": any(x.has_dual for x in given)}
        numbers: Any = functools.partial(ti.field, equation.solution.dtype, name="numbers of a multigrid", **shadows)
        cells, *links = (kind[-1] for kind in begins)
        f, x, y, d, weights = (numbers(shape=cells) for _ in range(5))
        self.fields = GridFields(
            f,
            x,
            y,
            d,
            weights,
            tuple(numbers(shape=links[axis] if axis >= first else 1) for axis in range(3)),
            None if equation._absorption is None else numbers(shape=cells),
            first,
            tuple(side is None for side in equation._sides),
        )
        self.b, self.x = numbers(shape=sizes[0][0]), numbers(shape=sizes[0][0])
        self.sums: Any = numbers(shape=5)
        if equation._is_constant:
            self._couple()

    def set_up(self) -> None:
        """Couple cells as the coefficients are now."""
        if not self._equation._is_constant:
            self._couple()

    def couple_finest(self) -> None:
        """Couple the cells of the finest grid."""
        equation, kernels, first = self._equation, self._kernels, self.fields.first
        for axis, n in enumerate(equation._shape):
            faces = tuple(n + (d == axis) for d, n in enumerate(equation._shape))
            by = equation._lengths[first + axis] ** -2
            sides = equation._sides[first:]
            links = self.fields.links[first + axis]
            kernels.link(links, equation._coefficient, axis, faces, equation._shape, sides, by)
        if self.fields.absorption is not None:
            kernels.put(self.fields.absorption, equation._absorption, equation._shape)

    def _couple(self) -> None:
        fields, kernels = self.fields, self._kernels
        self.couple_finest()
        for g, coarse, axis, _ in self._steps:
            kernels.weigh(fields, axis, g, coarse)
            kernels.join_along(fields, axis, g, coarse)
            for across in range(fields.first, 3):
                if across != axis:
                    kernels.join_across(fields, axis, across, g, coarse)
            if fields.absorption is not None:
                kernels.restrict(fields, fields.absorption, fields.absorption, axis, g, coarse)

    def take(self, f: Any) -> None:
        """Let b be the right side of A x = b."""
        equation = self._equation
        values = tuple(tuple(value or 0.0 for value in side or (0.0, 0.0)) for side in equation._sides)
        self._kernels.put(self.b, f, equation._shape)
        self._kernels.bound(self.fields, self.b, values, self.finest)

    def finish(self, x: Any) -> None:
        """Let a solution be 0 where nothing is coupled, and in the mean, where the equation leaves that open."""
        self._kernels.bound(self.fields, x, ((0.0, 0.0),) * 3, self.finest)
        self.centre(x)

    def centre(self, x: Any) -> None:
        """Let the mean be 0, where the equation leaves it open. The second time takes what rounding has left."""
        for _ in range(2 if self._equation._is_singular else 0):
            self._kernels.add_up(self.fields, x, self.sums, self.finest)
            self._kernels.shift(self.fields, x, self.sums, self.finest)

    def precondition(self) -> None:
        """Let y of the finest grid be about A⁻¹ f, linear in f and symmetric."""
        kernels, fields = self._kernels, self.fields
        for g, coarse, axis, is_smooth in self._steps:
            if is_smooth:
                kernels.relax_from_zero(fields, g, FIRST)
                kernels.relax_more(fields, (fields.x,), g, KEPT, SECOND)
                kernels.remain(fields, fields.f, fields.y, fields.d, g)
            else:
                kernels.copy(fields.f, fields.d, g)
            kernels.restrict(fields, fields.d, fields.f, axis, g, coarse)
        kernels.relax_from_zero(fields, self._coarsest, 1.0)
        kernels.copy(fields.x, fields.y, self._coarsest)
        for g, coarse, axis, is_smooth in reversed(self._steps):
            kernels.prolong(fields, axis, is_smooth, g, coarse)
            if is_smooth:
                kernels.relax(fields, g, FIRST)
                kernels.relax_more(fields, (fields.x, fields.d), g, KEPT, SECOND)
            else:
                kernels.copy(fields.x, fields.y, g)

    def cycle(self) -> None:
        """Correct x."""
        kernels, fields = self._kernels, self.fields
        kernels.remain(fields, self.b, self.x, fields.f, self.finest)
        self.precondition()
        kernels.add(self.x, fields.y, self.finest)


class Diffusion:
    """The equation -∇·(k ∇u) + c u = f on a grid, by multigrid.

    Values are those in the middle of cells, and k at a face is the harmonic mean of both sides, so that fluxes are
    right where it jumps. Where k is 0, nothing flows: cells to which nothing is coupled hold 0. Where nothing holds u
    (no Dirichlet boundary, and no absorption) its mean is 0, and that of f, for which there is no solution, counts as
    0.

    A cycle costs about ten evaluations of the equation, whatever the number of cells, and set-up no more
    than that. Solutions have derivatives by f, k and c, of any mode and order that `ti.ad.implicit` has; cycles have
    those of their launches.

    Parameters
    ----------
    source, solution : Field
        f and u: scalar fields of f32 or of f64 with one shape, of 1 to 3 axes.
    coefficient : Field or float, default=1.0
        k, at least 0, of each cell or of all.
    absorption : Field or float, default=0.0
        c, at least 0, of each cell or of all. The unit of f is that of c u, and of k u over a square of lengths.
    size : float or sequence of float, default=1.0
        The length of the box along each axis, or of all.
    boundary : str, float or sequence of these or of pairs, default="dirichlet"
        Of all sides, or of each axis, or of the two ends of an axis: "dirichlet" holds u = 0, a number holds that
        value, "neumann" lets nothing through, "periodic", of a whole axis, joins its ends.

    Raises
    ------
    FieldError
        For fields, sizes and boundaries that do not fit.

    References
    ----------
    U. Trottenberg, C. W. Oosterlee and A. Schüller, "Multigrid", 2001; interpolation by fluxes: R. E. Alcouffe,
    A. Brandt, J. E. Dendy and J. W. Painter, SIAM J. Sci. Stat. Comput. 2 (1981) 430; smoothers: J. Lottes, Numer.
    Linear Algebra Appl. 30 (2023) e2518; cycles as a preconditioner: O. Tatebe, Copper Mountain Conf. (1993) 621.

    Examples
    --------
    >>> f, u = ti.field(ti.f64, shape=100), ti.field(ti.f64, shape=100)
    >>> f.fill(8.0)
    >>> _ = ti.multigrid.Diffusion(f, u).solve()
    >>> round(u[49], 3)  # 4 x (1 - x)
    1.0
    """

    def __init__(
        self,
        source: Any,
        solution: Any,
        coefficient: Any = 1.0,
        absorption: Any = 0.0,
        *,
        size: float | Sequence[float] = 1.0,
        boundary: Any = "dirichlet",
    ) -> None:
        span = caller()
        self.source, self.solution = source, solution
        self._coefficient, self._absorption = coefficient, absorption
        if not isinstance(absorption, ti.Field) and absorption == 0:
            self._absorption = None
        self._given = (solution, source, coefficient, absorption)
        self._check(span)
        shape = self._shape = tuple(solution.shape)
        before = [1] * (3 - len(shape))
        #: of a cell, along each of three axes
        self._lengths = (*before, *(a / n for a, n in zip(_lengths(size, len(shape), span), shape, strict=True)))
        self._sides = (*((None, None) for _ in before), *_sides(boundary, len(shape), span))
        is_held = any(value is not None for side in self._sides for value in side or ())
        self._is_singular = self._absorption is None and not is_held
        self._is_constant = not any(isinstance(one, ti.Field) for one in (coefficient, absorption))
        self._kernels = _kernels_of(solution.dtype)
        self._grids = _Grids(self, is_recorded=False)
        options: dict[str, Any] = {"name": "numbers of an equation", "needs_grad": False, "needs_dual": False}
        self._p, self._q = (ti.field(solution.dtype, shape=math.prod(shape), **options) for _ in range(2))

    def _check(self, span: Span) -> None:
        named = dict(zip(("solution", "source", "coefficient", "absorption"), self._given, strict=True))
        for name, field in named.items():
            if not isinstance(field, ti.Field):
                if name in ("source", "solution") or not isinstance(field, int | float | np.number):
                    raise FieldError(f"the {name} of a diffusion is a field, not {field!r}", span)
                if not 0 <= field < math.inf:
                    raise FieldError(f"the {name} of a diffusion is a number of at least 0, not {field!r}", span)
                continue
            if isinstance(field, ti.MatrixField) or field.dtype not in FLOATS or not 1 <= len(field.shape) <= 3:
                raise FieldError(
                    f"the {name} of a diffusion is a field of f32 or of f64 with 1 to 3 axes, not {field!r}", span
                )
            if (field.dtype, field.shape) != (self.solution.dtype, self.solution.shape):
                raise FieldError(
                    f"the {name} of a diffusion is of {field.dtype} and shape {field.shape}, its solution of"
                    f" {self.solution.dtype} and shape {self.solution.shape}",
                    span,
                )

    @functools.cached_property
    def _recorded(self) -> _Grids:
        return _Grids(self, is_recorded=True)

    @functools.cached_property
    def _implicit(self) -> tuple[Any, Any]:
        """A function that solves, with derivatives, and its unknown."""
        recorded, kernels = self._recorded, self._kernels
        options: dict[str, Any] = {"shape": math.prod(self._shape), "needs_grad": True}
        unknown, into = (ti.field(self.solution.dtype, name=name, **options) for name in ("an unknown", "a residual"))

        def residual(*limits: Any) -> None:
            recorded.couple_finest()
            recorded.take(self.source)
            recorded.centre(recorded.b)
            kernels.equation(recorded.fields, unknown, recorded.b, into, recorded.finest)

        def solve(*limits: Any) -> None:
            self._solve_alone(unknown, *limits)

        def linear_solve(b: Any, x: Any, transposed: bool, *limits: Any) -> None:
            grids = self._grids
            grids.set_up()
            kernels.remain(grids.fields, b, x, grids.b, grids.finest)
            self._solve(x, *limits)

        solved = ti.ad.implicit(residual, unknown, into, solve=solve, linear_solve=linear_solve, tol=math.inf)
        return solved, unknown

    def cycle(self, count: int = 1) -> None:
        """Bring u nearer to the solution, by V-cycles from what it holds.

        These are always the same launches: `ti.capture` and pages take them, and derivatives are exact for what they
        compute. A cycle makes the error about five times smaller where k is smooth, less where it jumps.

        Parameters
        ----------
        count : int, default=1
            The number of cycles.

        Examples
        --------
        >>> f, u = ti.field(ti.f64, shape=(32, 32)), ti.field(ti.f64, shape=(32, 32))
        >>> f.fill(1.0)
        >>> equation = ti.multigrid.Diffusion(f, u)
        >>> equation.cycle(8)
        >>> found = u[16, 16]
        >>> _ = equation.solve()
        >>> abs(u[16, 16] - found) < 1e-5
        True
        """
        grids, kernels = self._recorded, self._kernels
        grids.set_up()
        grids.take(self.source)
        grids.centre(grids.b)
        kernels.put(grids.x, self.solution, self._shape)
        for _ in range(count):
            grids.cycle()
        grids.finish(grids.x)
        kernels.get(self.solution, grids.x, self._shape)

    def solve(self, *, rtol: float | None = None, maxiter: int = 100) -> int:
        """Solve for u, by conjugate gradients with V-cycles as their preconditioner, from what u holds.

        Parameters
        ----------
        rtol : float, optional
            The norm of the residual that ends the iterations, in units of that of f; by default 1e-10 in f64 and 1e-5
            in f32. It is no less than what rounding leaves, which is about the machine epsilon times the square of the
            number of cells along an axis.
        maxiter : int, default=100
            The most iterations.

        Returns
        -------
        int
            The number of iterations.

        Raises
        ------
        SolverError
            With the residual, where the iterations do not converge: coefficients that jump by more than 10⁶, NaN, or a
            region without a value that is held and with a source whose sum is not 0, and others.

        Examples
        --------
        >>> f, u, k = (ti.field(ti.f64, shape=64) for _ in range(3))
        >>> for i in range(64):
        ...     k[i] = 1.0 if i < 32 else 3.0
        >>> _ = ti.multigrid.Diffusion(f, u, k, boundary=((0.0, 1.0),)).solve()
        >>> round(64 * (u[1] - u[0]), 3), round(64 * (u[63] - u[62]), 3)  # the slopes
        (1.5, 0.5)
        """
        span = caller()
        rtol = (1e-10 if self.solution.dtype == ti.f64 else 1e-5) if rtol is None else rtol
        if any(isinstance(one, ti.Field) and (one.has_grad or one.has_dual) for one in self._given):
            solved, found = self._implicit
            solved(rtol, maxiter, span)
        else:
            found = self._grids.x
            self._solve_alone(found, rtol, maxiter, span)
        self._kernels.get(self.solution, found, self._shape)
        return self._taken

    def _solve_alone(self, x: Any, rtol: float, maxiter: int, span: Span) -> None:
        """Without derivatives, from what the solution holds."""
        self._kernels.put(x, self.solution, self._shape)
        self._grids.set_up()
        self._grids.take(self.source)
        self._solve(x, rtol, maxiter, span)

    def _solve(self, x: Any, rtol: float, maxiter: int, span: Span) -> None:
        """Conjugate gradients for A x = b of the grids, from what x holds."""
        kernels, grids, p, q = self._kernels, self._grids, self._p, self._q
        fields, sums, g = grids.fields, grids.sums, grids.finest
        eps = float(np.finfo(FLOATS[x.dtype]).eps)
        before, self._taken = math.inf, 0

        def norm_of(numbers: Any) -> float:
            kernels.dot(numbers, numbers, sums, 0, g)
            return math.sqrt(sums[0])

        noise = 4 * eps * norm_of(grids.b)
        grids.centre(grids.b)
        right = norm_of(grids.b)
        if right <= noise:
            x.fill(0)
            return
        while True:
            kernels.measure(fields, x, sums, g)
            least = max(rtol * right, noise, 4 * eps * math.sqrt(sums[0]))
            kernels.remain(fields, grids.b, x, fields.f, g)
            norm = norm_of(fields.f)
            if norm <= least:
                break
            if self._taken >= maxiter or not norm < before / 2:
                raise _not_converged(self._taken, norm, least, span)
            before, sums[2] = norm, 0.0
            while norm > least / 2 and self._taken < maxiter:
                grids.precondition()
                kernels.dot(fields.y, fields.f, sums, 1, g)
                kernels.turn(p, fields.y, sums, g)
                kernels.image(fields, p, q, sums, g)
                kernels.advance(x, fields.f, p, q, sums, g)
                square, _, _, curvature, size = sums.to_numpy()
                norm = math.sqrt(square)
                self._taken += 1
                if not (norm < math.inf and curvature > eps * size):  # else rounding alone makes A p differ from 0
                    raise _not_converged(self._taken, norm, least, span)
        grids.finish(x)


def _not_converged(taken: int, norm: float, least: float, span: Span) -> SolverError:
    if math.isfinite(norm):
        error = SolverError(
            f"multigrid did not converge: after {taken} iterations the residual is {norm:.3g}, and {least:.3g} is"
            " required",
            span,
            hint="each region without a value that is held at its boundary needs a source whose sum is 0",
        )
    else:
        error = SolverError("the source or a coefficient has elements that are NaN or infinite, or negative ones", span)
    error.residual = norm
    return error


def _lengths(size: Any, rank: int, span: Span) -> tuple[float, ...]:
    found = tuple(map(float, np.broadcast_to(size, rank) if np.ndim(size) == 0 else size))
    if len(found) != rank or not all(0 < length < math.inf for length in found):
        raise FieldError(f"a box with {rank} dimensions has as many positive lengths, not {size!r}", span)
    return found


def _sides(boundary: Any, rank: int, span: Span) -> tuple[tuple[float | None, float | None] | None, ...]:
    """Of each axis: None if it is periodic, or of both its ends the value there, None without flux."""

    def end(given: Any) -> float | None:
        if isinstance(given, int | float | np.number) and math.isfinite(given):
            return float(given)
        if given not in ("dirichlet", "neumann"):
            meant = suggestion(given, BOUNDARIES) if isinstance(given, str) else ""
            raise FieldError(f"there is no boundary {given!r}{meant}", span)
        return 0.0 if given == "dirichlet" else None

    axes = [boundary] * rank if isinstance(boundary, str | int | float | np.number) else list(boundary)
    if len(axes) != rank:
        raise FieldError(f"a grid with {rank} axes has as many boundaries, not {boundary!r}", span)
    found = list[tuple[float | None, float | None] | None]()
    for given in axes:
        if given == "periodic":
            found.append(None)
            continue
        ends = (given, given) if isinstance(given, str | int | float | np.number) else tuple(given)
        if len(ends) != 2:
            raise FieldError(f"an axis has two ends, not {given!r}", span)
        found.append((end(ends[0]), end(ends[1])))
    return tuple(found)
