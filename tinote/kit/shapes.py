"""Signed distances of simple bodies, and what is nearest on points, segments and triangles: functions of `ti.geometry`.

Distances are negative inside. All differentiate, with what is nearest held fixed: also twice, and with respect to what
the bodies are made of. Where a distance has no derivative (at the centre of a sphere, on a segment) it is 0.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import math
from typing import Any

import tinote as ti
from tinote.errors import FieldError
from tinote.source import caller

__all__ = [
    "DistanceGrid", "box", "capsule", "cone", "cylinder", "difference", "intersection", "on_segment", "on_segments",
    "on_triangle", "plane", "point_segment", "point_triangle", "segment_segment", "smooth_union", "sphere", "torus",
    "union",
]  # fmt: skip


@ti.func
def _root(square: ti.Template):
    """The root, with the derivative 0 at 0."""
    found = 0 * square
    if square > 0:
        found = ti.sqrt(square)
    return found


@ti.func
def length(v: ti.Template):
    return _root(v.norm_sqr())


@ti.func
def _outside(q: ti.Template):
    """The signed distance from a corner at the origin, of a body where all components are negative."""
    return length(ti.max(q, 0 * q)) + ti.min(q.max(), 0 * q[0])


# bodies


@ti.func
def sphere(p: ti.Template, radius: ti.Template):
    """The signed distance from a sphere about the origin; in a plane, from a circle.

    Parameters
    ----------
    p : vector
        The point, of any number of components. For a sphere elsewhere, the displacement from its centre.
    radius : float
        In the unit of the point, as all lengths here.

    Returns
    -------
    float
        Negative inside.

    Examples
    --------
    >>> ti.geometry.sphere(ti.Vector([3.0, 0.0, 4.0]), 2.0)
    3.0
    """
    return length(p) - radius


@ti.func
def box(p: ti.Template, half: ti.Template):
    """The signed distance from a box about the origin with edges along the axes.

    Parameters
    ----------
    p : vector
        The point, of any number of components.
    half : vector
        Half of the lengths of its edges.

    Returns
    -------
    float
        Negative inside.

    Examples
    --------
    >>> ti.geometry.box(ti.Vector([4.0, 6.0]), ti.Vector([1.0, 2.0]))
    5.0
    """
    return _outside(ti.abs(p) - half)


@ti.func
def plane(p: ti.Template, normal: ti.Template, offset: ti.Template = 0.0):
    """The signed distance from a plane, or in a plane from a line: negative on the side away from its normal.

    Parameters
    ----------
    p : vector
        The point.
    normal : vector
        Of length 1.
    offset : float
        The distance of the plane from the origin, along its normal.

    Returns
    -------
    float
        Negative below.

    Examples
    --------
    >>> ti.geometry.plane(ti.Vector([0.0, 3.0]), ti.Vector([0.0, 1.0]), 1.0)
    2.0
    """
    return normal.dot(p) - offset


@ti.func
def capsule(p: ti.Template, a: ti.Template, b: ti.Template, radius: ti.Template):
    """The signed distance from a capsule: all that is within a radius of a segment.

    Parameters
    ----------
    p : vector
        The point.
    a, b : vector
        The ends of the segment.
    radius : float
        The radius.

    Returns
    -------
    float
        Negative inside.

    Examples
    --------
    >>> ti.geometry.capsule(ti.Vector([1.0, 3.0]), ti.Vector([0.0, 0.0]), ti.Vector([2.0, 0.0]), 0.5)
    2.5
    """
    return point_segment(p, a, b) - radius


@ti.func
def cylinder(p: ti.Template, radius: ti.Template, half: ti.Template):
    """The signed distance from a cylinder about the origin, along the last axis.

    Parameters
    ----------
    p : vector
        The point, of three components.
    radius : float
        The radius.
    half : float
        Half of the height.

    Returns
    -------
    float
        Negative inside.

    Examples
    --------
    >>> ti.geometry.cylinder(ti.Vector([5.0, 0.0, 5.0]), 1.0, 2.0)
    5.0
    """
    return _outside(ti.Vector([length(ti.Vector([p[0], p[1]])) - radius, ti.abs(p[2]) - half]))


@ti.func
def cone(p: ti.Template, radius: ti.Template, height: ti.Template):
    """The signed distance from a cone along the last axis: its base about the origin, its tip above.

    Parameters
    ----------
    p : vector
        The point, of three components.
    radius : float
        The radius of the base.
    height : float
        The height.

    Returns
    -------
    float
        Negative inside.

    Examples
    --------
    >>> ti.geometry.cone(ti.Vector([0.0, 0.0, 5.0]), 1.0, 2.0)
    3.0
    """
    q = ti.Vector([length(ti.Vector([p[0], p[1]])), p[2]])
    rim, tip = ti.Vector([radius + 0 * p[0], 0 * p[0]]), ti.Vector([0 * p[0], height + 0 * p[0]])
    found = ti.min(point_segment(q, 0 * q, rim), point_segment(q, rim, tip))
    if q[1] > 0 and q[0] * height < radius * (height - q[1]):
        found = -found
    return found


@ti.func
def torus(p: ti.Template, radius: ti.Template, thickness: ti.Template):
    """The signed distance from a torus about the origin, in the plane of the first two axes.

    Parameters
    ----------
    p : vector
        The point, of three components.
    radius : float
        The radius of the circle in its middle.
    thickness : float
        The radius of the tube about this circle.

    Returns
    -------
    float
        Negative inside.

    Examples
    --------
    >>> ti.geometry.torus(ti.Vector([5.0, 0.0, 4.0]), 2.0, 1.0)
    4.0
    """
    return length(ti.Vector([length(ti.Vector([p[0], p[1]])) - radius, p[2]])) - thickness


@ti.func
def union(a: ti.Template, b: ti.Template):
    """The signed distance from two bodies together: exact outside, and a bound inside.

    Parameters
    ----------
    a, b : float
        The signed distances from each.

    Returns
    -------
    float
        The smaller one.

    Examples
    --------
    >>> ti.geometry.union(2.0, -1.0)
    -1.0
    """
    return ti.min(a, b)


@ti.func
def intersection(a: ti.Template, b: ti.Template):
    """The signed distance from what two bodies share: exact inside, and a bound outside.

    Parameters
    ----------
    a, b : float
        The signed distances from each.

    Returns
    -------
    float
        The larger one.

    Examples
    --------
    >>> ti.geometry.intersection(2.0, -1.0)
    2.0
    """
    return ti.max(a, b)


@ti.func
def difference(a: ti.Template, b: ti.Template):
    """The signed distance from what is left of a body without another: a bound.

    Parameters
    ----------
    a, b : float
        The signed distances from the body, and from what is taken away.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> ti.geometry.difference(-2.0, -1.0)
    1.0
    """
    return ti.max(a, -b)


@ti.func
def smooth_union(a: ti.Template, b: ti.Template, width: ti.Template):
    """A union whose inner edges are rounded, with a continuous derivative.

    Parameters
    ----------
    a, b : float
        The signed distances from each.
    width : float
        Where the distances differ by less, they blend. The result is less than the smaller one by at most a quarter of
        this.

    Returns
    -------
    float
        About the distance.

    Examples
    --------
    >>> ti.geometry.smooth_union(1.0, 1.0, 0.4), ti.geometry.smooth_union(1.0, 2.0, 0.4)
    (0.9, 1.0)
    """
    h = ti.max(width - ti.abs(a - b), 0.0)
    return ti.min(a, b) - h * h / (4 * width)


# what is nearest


@ti.func
def on_segment(p: ti.Template, a: ti.Template, b: ti.Template):
    """Where the point of a segment nearest to another is: `a + t (b - a)`.

    Parameters
    ----------
    p : vector
        The point, of any number of components.
    a, b : vector
        The ends of the segment, which may be the same.

    Returns
    -------
    float
        From 0 at `a` to 1 at `b`.

    Examples
    --------
    >>> ti.geometry.on_segment(ti.Vector([0.5, 3.0]), ti.Vector([0.0, 0.0]), ti.Vector([2.0, 0.0]))
    0.25
    """
    along, square = (p - a).dot(b - a), (b - a).norm_sqr()
    t = 0 * along
    if along >= square:
        t += 1
    elif along > 0:
        t = along / square
    if square == 0:
        t = 0 * along
    return t


@ti.func
def on_segments(a: ti.Template, b: ti.Template, c: ti.Template, d: ti.Template):
    """Where two segments are nearest to each other: at `a + s (b - a)` and `c + t (d - c)`.

    Parameters
    ----------
    a, b : vector
        The ends of the first, of any number of components.
    c, d : vector
        The ends of the second.

    Returns
    -------
    tuple of float
        s and t, each from 0 to 1: of parallel segments, one of the places.

    Examples
    --------
    >>> ends = [ti.Vector(end) for end in ([0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.5, -1.0, 1.0], [0.5, 1.0, 1.0])]
    >>> ti.geometry.on_segments(*ends)
    (0.25, 0.5)
    """
    # An end of one of them is nearest, unless the lines are nearest between the ends of both.
    t = on_segment(a, c, d)
    s = 0 * t
    best = ti.stop_gradient((c + t * (d - c) - a).norm_sqr())
    other = on_segment(b, c, d)
    square = ti.stop_gradient((c + other * (d - c) - b).norm_sqr())
    if square < best:
        best, s, t = square, 1 + 0 * t, other
    other = on_segment(c, a, b)
    square = ti.stop_gradient((a + other * (b - a) - c).norm_sqr())
    if square < best:
        best, s, t = square, other, 0 * t
    other = on_segment(d, a, b)
    square = ti.stop_gradient((a + other * (b - a) - d).norm_sqr())
    if square < best:
        best, s, t = square, other, 1 + 0 * t
    u, v, w = b - a, d - c, c - a
    uu, uv, vv = u.dot(u), u.dot(v), v.dot(v)
    area = uu * vv - uv * uv
    if area > 0:
        inner_s, inner_t = (u.dot(w) * vv - uv * v.dot(w)) / area, (uv * u.dot(w) - uu * v.dot(w)) / area
        if 0 < inner_s < 1 and 0 < inner_t < 1:
            if ti.stop_gradient((w + inner_t * v - inner_s * u).norm_sqr()) < best:
                s, t = inner_s, inner_t
    return s, t


@ti.func
def on_triangle(p: ti.Template, a: ti.Template, b: ti.Template, c: ti.Template):
    """Where the point of a triangle nearest to another is: the weights of the corners (barycentric coordinates).

    Parameters
    ----------
    p : vector
        The point, of three components.
    a, b, c : vector
        The corners, which may lie on a line.

    Returns
    -------
    Vector
        Three weights from 0 to 1 that add up to 1.

    Examples
    --------
    >>> corners = [ti.Vector(corner) for corner in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])]
    >>> ti.geometry.on_triangle(ti.Vector([0.25, 0.5, 3.0]), *corners)
    Vector([0.25, 0.25, 0.5])
    """
    weights, _ = nearest_of_triangle(p, a, b, c)
    return weights


@ti.func
def nearest_of_triangle(p: ti.Template, a: ti.Template, b: ti.Template, c: ti.Template):
    """The weights of what is nearest, and the square of the distance, which is a constant for derivatives."""
    # An edge is nearest, unless the plane is nearest within all of them.
    t = on_segment(p, a, b)
    best = ti.stop_gradient((a + t * (b - a) - p).norm_sqr())
    weights = ti.Vector([1 - t, t, 0 * t])
    t = on_segment(p, b, c)
    square = ti.stop_gradient((b + t * (c - b) - p).norm_sqr())
    if square < best:
        best, weights = square, ti.Vector([0 * t, 1 - t, t])
    t = on_segment(p, c, a)
    square = ti.stop_gradient((c + t * (a - c) - p).norm_sqr())
    if square < best:
        best, weights = square, ti.Vector([t, 0 * t, 1 - t])
    u, v, w = b - a, c - a, p - a
    normal = u.cross(v)
    area = normal.norm_sqr()
    if area > 0:
        of_b, of_c = w.cross(v).dot(normal) / area, u.cross(w).dot(normal) / area
        if of_b > 0 and of_c > 0 and of_b + of_c < 1:
            square = ti.stop_gradient((of_b * u + of_c * v - w).norm_sqr())
            if square <= best:
                best, weights = square, ti.Vector([1 - of_b - of_c, of_b, of_c])
    return weights, best


@ti.func
def point_segment(p: ti.Template, a: ti.Template, b: ti.Template):
    """The distance of a point from a segment.

    Parameters
    ----------
    p : vector
        The point, of any number of components.
    a, b : vector
        The ends of the segment, which may be the same.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> ti.geometry.point_segment(ti.Vector([5.0, 4.0]), ti.Vector([0.0, 0.0]), ti.Vector([2.0, 0.0]))
    5.0
    """
    return length(a + on_segment(p, a, b) * (b - a) - p)


@ti.func
def point_triangle(p: ti.Template, a: ti.Template, b: ti.Template, c: ti.Template):
    """The distance of a point from a triangle.

    Parameters
    ----------
    p : vector
        The point, of three components.
    a, b, c : vector
        The corners, which may lie on a line.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> corners = [ti.Vector(corner) for corner in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])]
    >>> ti.geometry.point_triangle(ti.Vector([0.25, 0.5, 3.0]), *corners)
    3.0
    """
    weights = on_triangle(p, a, b, c)
    return length(weights[0] * a + weights[1] * b + weights[2] * c - p)


@ti.func
def segment_segment(a: ti.Template, b: ti.Template, c: ti.Template, d: ti.Template):
    """The distance of two segments from each other.

    Parameters
    ----------
    a, b : vector
        The ends of the first, of any number of components.
    c, d : vector
        The ends of the second.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> ends = [ti.Vector(end) for end in ([0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.5, -1.0, 1.0], [0.5, 1.0, 1.0])]
    >>> ti.geometry.segment_segment(*ends)
    1.0
    """
    s, t = on_segments(a, b, c, d)
    return length(c + t * (d - c) - a - s * (b - a))


# grids


class DistanceGrid:
    """A grid of signed distances, sampled in between.

    Parameters
    ----------
    low, high : sequence of float
        The corners of the grid with the least and with the greatest coordinates, of 2 or 3 components.
    shape : sequence of int
        The number of values along each axis, at least 2.
    dtype : type, default ti.f32
        The type of the values.
    needs_grad : bool
        Whether the values have gradients, so that samples differentiate with respect to what made them.

    Methods
    -------
    gradient
    sample
    update

    Raises
    ------
    FieldError
        For a grid without extent, and for other numbers of components.

    Examples
    --------
    >>> @ti.func
    ... def ball(p):
    ...     return ti.geometry.sphere(p, 1.0)
    >>> grid = ti.geometry.DistanceGrid((-2.0, -2.0), (2.0, 2.0), (65, 65), dtype=ti.f64)
    >>> grid.update(ball)
    >>> round(grid.sample(ti.Vector([1.2, 0.9])), 2), round(grid.sample(ti.Vector([0.3, 0.0])), 2)
    (0.5, -0.7)
    """

    def __init__(self, low: Any, high: Any, shape: Any, *, dtype: Any = ti.f32, needs_grad: bool = False) -> None:
        self.low, self.high = (tuple([float(component) for component in corner]) for corner in (low, high))
        self.shape = tuple([int(count) for count in shape])
        self.dimension = len(self.shape)
        if self.dimension not in (2, 3) or not len(self.low) == len(self.high) == self.dimension:
            raise FieldError(
                f"a grid has 2 or 3 axes, not corners of {len(self.low)} and {len(self.high)} components and a shape of"
                f" {self.dimension}",
                caller(),
            )
        if not all(-math.inf < a < b < math.inf for a, b in zip(self.low, self.high, strict=True)):
            raise FieldError(f"a grid reaches upwards along each axis, not from {self.low} to {self.high}", caller())
        if min(self.shape) < 2:
            raise FieldError(f"a grid has at least 2 values along each axis, not the shape {self.shape}", caller())
        self.spacing = tuple(
            [(b - a) / (count - 1) for a, b, count in zip(self.low, self.high, self.shape, strict=True)]
        )
        self.values = ti.field(dtype, shape=self.shape, needs_grad=needs_grad or None, name="distances")

    @ti.kernel
    def _update(self, distance: ti.template()):
        for index in ti.grouped(self.values):
            p = ti.Vector([ti.cast(self.low[axis], self.values.dtype) for axis in ti.static(range(index.n))])
            for axis in ti.static(range(index.n)):
                p[axis] += index[axis] * self.spacing[axis]
            self.values[index] = distance(p)

    def update(self, distance: Any) -> None:
        """Compute the values.

        Parameters
        ----------
        distance : function
            A `ti.func` of a point, such as `mesh.signed_distance`.

        Examples
        --------
        >>> @ti.func
        ... def ground(p):
        ...     return ti.geometry.plane(p, ti.Vector([0.0, 1.0]))
        >>> grid = ti.geometry.DistanceGrid((0.0, 0.0), (1.0, 1.0), (3, 3))
        >>> grid.update(ground)
        >>> grid.values[1, 2]
        1.0
        """
        self._update(distance)

    @ti.func
    def _sample(self, point):
        """The interpolated distance, and its gradient."""
        p = point + ti.cast(0, self.values.dtype)
        cell, part, rest = ti.cast(0 * p, ti.i32), 0 * p, 0 * p
        for axis in ti.static(range(self.dimension)):
            last = ti.static(self.shape[axis] - 1)
            at = (p[axis] - self.low[axis]) * (1 / self.spacing[axis])
            cell[axis] = ti.max(ti.min(ti.cast(ti.floor(ti.max(ti.min(at, last), 0)), ti.i32), last - 1), 0)
            part[axis] = ti.max(ti.min(at, last), 0) - cell[axis]
            rest[axis] = (at - cell[axis] - part[axis]) * self.spacing[axis]
        value, slope = 0 * p[0], 0 * p
        for corner in ti.static(ti.grouped(ti.ndrange(*[2] * self.dimension))):
            here = self.values[cell + corner]
            weight = 1 + 0 * p[0]
            for axis in ti.static(range(self.dimension)):
                weight *= part[axis] if ti.static(corner[axis] == 1) else 1 - part[axis]
            value += weight * here
            for axis in ti.static(range(self.dimension)):
                across = (1 if ti.static(corner[axis] == 1) else -1) / self.spacing[axis] * here
                for other in ti.static(range(self.dimension)):
                    if ti.static(other != axis):
                        across *= part[other] if ti.static(corner[other] == 1) else 1 - part[other]
                if rest[axis] == 0:
                    slope[axis] += across
        distance = length(rest)
        if distance > 0:
            slope += rest / distance
        return value + distance, slope

    @ti.func
    def sample(self, point):
        """The distance at a point: interpolated linearly along each axis. Beyond the grid, that at its border and the
        distance from there.

        It differentiates, with respect to the point and, with `needs_grad`, to the values.

        Parameters
        ----------
        point : vector
            The point, anywhere.

        Returns
        -------
        float
            The distance.

        Examples
        --------
        >>> grid = ti.geometry.DistanceGrid((0.0, 0.0), (1.0, 1.0), (2, 2), dtype=ti.f64)
        >>> grid.values.from_numpy([[0.0, 1.0], [2.0, 3.0]])
        >>> grid.sample(ti.Vector([0.5, 0.25])), grid.sample(ti.Vector([0.0, 5.0]))
        (1.25, 5.0)
        """
        value, _ = self._sample(point)
        return value

    @ti.func
    def gradient(self, point):
        """The gradient of the sampled distance at a point: about 1 long, and away from the body.

        Parameters
        ----------
        point : vector
            The point, anywhere.

        Returns
        -------
        vector
            The exact gradient of `sample`, which has steps where cells meet.

        Examples
        --------
        >>> grid = ti.geometry.DistanceGrid((0.0, 0.0), (1.0, 1.0), (2, 2), dtype=ti.f64)
        >>> grid.values.from_numpy([[0.0, 1.0], [2.0, 3.0]])
        >>> grid.gradient(ti.Vector([0.5, 0.25]))
        [2.0, 1.0]
        """
        _, slope = self._sample(point)
        return slope
