"""Trees of triangles: nearest points, rays, winding numbers and signed distances of surfaces.

    mesh = ti.geometry.TriangleTree(x, triangles)
    mesh.update()
    …
    distance, triangle, weights = mesh.nearest(p)  # in a kernel

Searches are those of `trees.py`. What is found is a constant for derivatives; where on the triangle it is, and how far,
differentiates.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import math
from typing import Any

import tinote as ti
from tinote.kit.fields import FLOATS
from tinote.kit.shapes import length, nearest_of_triangle
from tinote.kit.trees import SearchTree, is_finite, require_vectors

__all__ = ["TriangleTree"]


@ti.func
def _longest(v):
    """The axis of the component with the greatest magnitude."""
    size = ti.abs(v)
    return 0 if size[0] >= size[1] and size[0] >= size[2] else 1 if size[1] >= size[2] else 2


@ti.func
def _turned(v, axis):
    """With the component of an axis last, and the others in their cyclic order."""
    found = v
    if axis == 0:
        found = ti.Vector([v[1], v[2], v[0]])
    elif axis == 1:
        found = ti.Vector([v[2], v[0], v[1]])
    return found


@ti.func
def _sheared(v, d):
    """Across and along a ray: (0, 0, 1) for its direction."""
    along = v[2] * (1 / d[2])
    return ti.Vector([v[0] - along * d[0], v[1] - along * d[1], along])


@ti.func
def _side(p, q):
    """p[0] q[1] - p[1] q[0]: rounded in the same way for (q, p), whatever a compiler contracts."""
    is_turned = p[0] > q[0] or (p[0] == q[0] and p[1] > q[1])
    a, b = p, q
    if is_turned:
        a, b = q, p
    found = a[0] * b[1] - a[1] * b[0]
    return -found if is_turned else found


@ti.func
def _solid_angle(a, b, c):
    """Of a triangle seen from the origin, with a sign. (A. van Oosterom and J. Strackee, IEEE Transactions on
    Biomedical Engineering 30 (1983) 125.)
    """
    u, v, w = a.norm(), b.norm(), c.norm()
    return 2 * ti.atan2(a.dot(b.cross(c)), u * v * w + a.dot(b) * w + b.dot(c) * u + c.dot(a) * v)


class TriangleTree(SearchTree):
    """A tree of triangles.

    Parameters
    ----------
    x : Field
        The vertices: vectors of 3 components, f32 or f64, in any unit of length.
    triangles : Field
        The indices of the three vertices of each triangle: vectors of 3 components, i32. Seen from outside of a closed
        surface, they go round counterclockwise.

    Methods
    -------
    along
    any_hit
    at
    first_hit
    near
    nearest
    overlapping
    refit
    signed_distance
    update
    winding_number

    Raises
    ------
    FieldError
        For vertices or triangles of another kind.

    References
    ----------
    C. Ericson, "Real-Time Collision Detection", 2005, chapters 5 and 6.

    Examples
    --------
    >>> x = ti.Vector.field(3, ti.f64, shape=4, needs_grad=True)
    >>> triangles = ti.Vector.field(3, ti.i32, shape=4)
    >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> triangles.from_numpy([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> mesh = ti.geometry.TriangleTree(x, triangles)
    >>> height = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def measure():
    ...     distance, triangle, weights = mesh.nearest(ti.Vector([0.25, 0.5, -3.0]))
    ...     height[None] += distance
    >>> with ti.ad.Tape(height):
    ...     mesh.update()
    ...     measure()
    >>> print(height[None], x.grad.to_numpy()[:, 2])
    3.0 [0.25 0.25 0.5  0.  ]
    """

    def __init__(self, x: Any, triangles: Any) -> None:
        require_vectors("vertices", x, (3,), FLOATS, "ti.Vector.field(3, ti.f64, shape=n)")
        require_vectors("triangles", triangles, (3,), (ti.i32,), "ti.Vector.field(3, ti.i32, shape=n)")
        count = triangles.shape[0]
        super().__init__(count, 3, x.dtype)
        self.x, self.triangles = x, triangles
        self.corners = [ti.Vector.field(3, x.dtype, shape=count, name=f"corners {corner}") for corner in range(3)]
        #: for winding numbers, of each node: the sum of the areas, the mean of the surface, what is farthest from it
        #: (squared), the sum of the area vectors, and their moments about the mean
        self.area = ti.field(x.dtype, shape=2 * self.leaves, name="area")
        self.mean = ti.Vector.field(3, x.dtype, shape=2 * self.leaves, name="mean")
        self.reach = ti.field(x.dtype, shape=2 * self.leaves, name="reach")
        self.normal = ti.Vector.field(3, x.dtype, shape=2 * self.leaves, name="normal")
        self.moment = ti.Matrix.field(3, 3, x.dtype, shape=2 * self.leaves, name="moment")

    @ti.func
    def _check(self, number):
        astray, lost = number, number
        for i in range(number):
            t = self.triangles[i]
            if t.min() < 0 or t.max() >= self.x.shape[0]:
                astray = ti.min(astray, i)
            elif not is_finite(self.x[t[0]]) or not is_finite(self.x[t[1]]) or not is_finite(self.x[t[2]]):
                lost = ti.min(lost, i)
        assert astray == number, f"triangle {astray} has a vertex that does not exist: there are {self.x.shape[0]}"
        assert lost == number, f"a vertex of triangle {lost} is not a finite number"

    @ti.func
    def _copy(self, k, i):
        t = self.triangles[i]
        for corner in ti.static(range(3)):
            self.corners[corner][k] = ti.stop_gradient(self.x[t[corner]])

    @ti.func
    def _triangle(self, k):
        return self.corners[0][k], self.corners[1][k], self.corners[2][k]

    @ti.func
    def _corners_of(self, i):
        t = self.triangles[i]
        return self.x[t[0]], self.x[t[1]], self.x[t[2]]

    @ti.func
    def _box(self, k):
        a, b, c = self._triangle(k)
        return ti.min(a, b, c), ti.max(a, b, c)

    @ti.func
    def _square(self, k, p):
        a, b, c = self._triangle(k)
        _, square = nearest_of_triangle(p, a, b, c)
        return square

    @ti.func
    def at(self, triangle, weights, of: ti.template() = None):
        """A point of a triangle, or what a field of the vertices is there.

        Parameters
        ----------
        triangle : int
            The index.
        weights : vector
            The weights of its vertices (barycentric coordinates).
        of : Field, optional
            What is interpolated, such as velocities; by default the positions.

        Returns
        -------
        vector or float

        Examples
        --------
        >>> x, triangles = ti.Vector.field(3, ti.f64, shape=3), ti.Vector.field(3, ti.i32, shape=1)
        >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> triangles.from_numpy([[0, 1, 2]])
        >>> mesh = ti.geometry.TriangleTree(x, triangles)
        >>> mesh.at(0, ti.Vector([0.5, 0.25, 0.25]))
        [0.25, 0.25, 0.0]
        """
        field = ti.static(self.x if of is None else of)
        t = self.triangles[triangle]
        return weights[0] * field[t[0]] + weights[1] * field[t[1]] + weights[2] * field[t[2]]

    @ti.func
    def nearest(self, point, within=ti.math.inf):
        """The nearest point of the surface.

        It differentiates, with respect to the point and to the vertices, with the side, edge or vertex on which it is
        held fixed. On the surface, the distance has the derivative 0; that of `signed_distance` has not.

        Parameters
        ----------
        point : vector
            Where to look.
        within : float, optional
            Only triangles at less than this distance count, which makes searches faster.

        Returns
        -------
        tuple of float, int and vector
            The distance, the triangle, and the weights of its vertices (barycentric coordinates). Where there is none,
            `within`, -1 and zeros.

        Examples
        --------
        >>> x, triangles = ti.Vector.field(3, ti.f64, shape=3), ti.Vector.field(3, ti.i32, shape=1)
        >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> triangles.from_numpy([[0, 1, 2]])
        >>> mesh = ti.geometry.TriangleTree(x, triangles)
        >>> mesh.update()
        >>> @ti.kernel
        ... def search(p: ti.types.vector(3, ti.f64)) -> (ti.f64, ti.i32, ti.types.vector(3, ti.f64)):
        ...     return mesh.nearest(p)
        >>> search([0.5, -1.0, 0.0])
        (1.0, 0, Vector([0.5, 0.5, 0.0]))
        """
        distance, found, weights = self._typed(within + 0 * point.sum()), -1, self._typed(0 * point)
        bound = ti.stop_gradient(distance * distance)
        _, k = self._best(self._gap, self._square, self._typed(ti.stop_gradient(point)), bound)
        if k >= 0:
            found = self.order[0, k]
            a, b, c = self._corners_of(found)
            weights, _ = nearest_of_triangle(point, a, b, c)
            distance = length(weights[0] * a + weights[1] * b + weights[2] * c - point)
        return distance, found, weights

    # rays

    @ti.func
    def _crossing(self, ray, a, b, c):
        """Where a ray meets the plane of a triangle, and how that point lies to its edges: weights times their sum.

        For both sides of an edge the number is the same but for its sign, so that no ray slips through a closed
        surface. (S. Woop, C. Benthin and I. Wald, Journal of Computer Graphics Techniques 2 (2013) 65.)
        """
        axis = _longest(ray.direction)
        d = _turned(ray.direction, axis)
        p = _sheared(_turned(a - ray.origin, axis), d)
        q = _sheared(_turned(b - ray.origin, axis), d)
        r = _sheared(_turned(c - ray.origin, axis), d)
        sides = ti.Vector([_side(q, r), _side(r, p), _side(p, q)])
        return sides.dot(ti.Vector([p[2], q[2], r[2]])) / sides.sum(), sides

    @ti.func
    def _meets(self, k, ray):
        """Where a ray meets a triangle, and infinity where it passes by."""
        a, b, c = self._triangle(k)
        t, sides = self._crossing(ray, a, b, c)
        is_met = (sides.min() >= 0 or sides.max() <= 0) and sides.sum() != 0 and t >= 0
        return t if is_met else ti.cast(ti.math.inf, self.dtype)

    @ti.func
    def first_hit(self, origin, direction, within=ti.math.inf):
        """The first triangle that a ray meets, from either side.

        Where it meets it differentiates, with respect to the ray and to the vertices. No ray passes between triangles
        that share an edge or a vertex.

        Parameters
        ----------
        origin, direction : vector
            The ray: `origin + t * direction` for t from 0 on. The direction may have any length.
        within : float, optional
            Only hits with a smaller t count.

        Returns
        -------
        tuple of float, int and vector
            t, the triangle, and the weights of its vertices (barycentric coordinates). Where there is none, `within`,
            -1 and zeros.

        Examples
        --------
        >>> x, triangles = ti.Vector.field(3, ti.f64, shape=3), ti.Vector.field(3, ti.i32, shape=1)
        >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> triangles.from_numpy([[0, 1, 2]])
        >>> mesh = ti.geometry.TriangleTree(x, triangles)
        >>> mesh.update()
        >>> @ti.kernel
        ... def cast(p: ti.types.vector(3, ti.f64)) -> (ti.f64, ti.i32, ti.types.vector(3, ti.f64)):
        ...     return mesh.first_hit(p, ti.Vector([0.0, 0.0, -2.0]))
        >>> cast([0.5, 0.25, 4.0])
        (2.0, 0, Vector([0.25, 0.5, 0.25]))
        """
        t, found, weights = self._typed(within + 0 * (origin + direction).sum()), -1, self._typed(0 * origin)
        constant = self._ray(ti.stop_gradient(origin), ti.stop_gradient(direction))
        _, k = self._best(self._entry, self._meets, constant, ti.stop_gradient(t))
        if k >= 0:
            found = self.order[0, k]
            a, b, c = self._corners_of(found)
            t, weights = self._crossing(self._ray(origin, direction), a, b, c)
            weights /= weights.sum()
        return t, found, weights

    @ti.func
    def any_hit(self, origin, direction, within=ti.math.inf):
        """Whether a ray meets any triangle: faster than where it does.

        Parameters
        ----------
        origin, direction : vector
            The ray: `origin + t * direction` for t from 0 on. The direction may have any length.
        within : float, optional
            Only hits with a smaller t count.

        Returns
        -------
        int
            1 or 0.

        Examples
        --------
        >>> x, triangles = ti.Vector.field(3, ti.f64, shape=3), ti.Vector.field(3, ti.i32, shape=1)
        >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> triangles.from_numpy([[0, 1, 2]])
        >>> mesh = ti.geometry.TriangleTree(x, triangles)
        >>> mesh.update()
        >>> @ti.kernel
        ... def is_seen(p: ti.types.vector(3, ti.f64), light: ti.types.vector(3, ti.f64)) -> ti.i32:
        ...     return 1 - mesh.any_hit(p, light - p, 1.0)
        >>> is_seen([0.1, 0.1, -1.0], [0.1, 0.1, 1.0]), is_seen([0.1, 0.1, -1.0], [3.0, 3.0, 1.0])
        (0, 1)
        """
        ray = self._ray(ti.stop_gradient(origin), ti.stop_gradient(direction))
        found = 0
        node = 1
        while node > 0:
            if not self._entry(node, ray) < within:
                node = self._after(node)
            elif node < self.leaves:
                node *= 2
            else:
                for k in self._places(node):
                    if self._meets(k, ray) < within:
                        found = 1
                node = 0 if found > 0 else self._after(node)
        return found

    # inside and outside

    @ti.func
    def _summarise(self, node):
        """What a node is, seen from far away: G. Barill and others, ACM Transactions on Graphics 37 (2018) 43."""
        low, high = self.low[node], self.high[node]
        area, mean, normal, moment = 0 * low[0], (low + high) / 2, 0 * low, 0 * low.outer_product(low)
        if node < self.leaves:
            area = self.area[2 * node] + self.area[2 * node + 1]
            if area > 0:
                part = self.area[2 * node] / area
                mean = part * self.mean[2 * node] + (1 - part) * self.mean[2 * node + 1]
            for child in range(2 * node, 2 * node + 2):
                normal += self.normal[child]
                moment += self.moment[child] + self.normal[child].outer_product(self.mean[child] - mean)
        else:
            middle = mean
            for k in self._places(node):
                a, b, c = self._triangle(k)
                vector = (b - a).cross(c - a) / 2
                area += vector.norm()
                mean += vector.norm() * ((a + b + c) / 3 - middle)
                normal += vector
            mean = middle + (mean - middle) / (area if area > 0 else 1 + 0 * area)
            for k in self._places(node):
                a, b, c = self._triangle(k)
                moment += ((b - a).cross(c - a) / 2).outer_product((a + b + c) / 3 - mean)
        self.area[node], self.mean[node], self.normal[node], self.moment[node] = area, mean, normal, moment
        self.reach[node] = ti.max(mean - low, high - mean).norm_sqr()

    @ti.func
    def winding_number(self, point, accuracy=2.0):
        """How often the surface goes round a point: 1 inside of a closed surface, 0 outside, and between where there
        are holes. It is a constant for derivatives.

        Parameters
        ----------
        point : vector
            The point.
        accuracy : float, default 2
            Parts of the surface that are farther than this many times their size count as one dipole and one
            quadrupole. Infinity is for the exact sum.

        Returns
        -------
        float
            The generalised winding number; by default to about 0.01.

        References
        ----------
        A. Jacobson, L. Kavan and O. Sorkine-Hornung, ACM Transactions on Graphics 32 (2013) 33. G. Barill and others,
        ACM Transactions on Graphics 37 (2018) 43.

        Examples
        --------
        >>> x, triangles = ti.Vector.field(3, ti.f64, shape=4), ti.Vector.field(3, ti.i32, shape=4)
        >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> triangles.from_numpy([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> mesh = ti.geometry.TriangleTree(x, triangles)
        >>> mesh.update()
        >>> @ti.kernel
        ... def winding(height: ti.f64) -> ti.f64:
        ...     return mesh.winding_number(ti.Vector([0.1, 0.1, height]))
        >>> round(winding(0.1), 6), abs(round(winding(-0.1), 6))
        (1.0, 0.0)
        """
        p = self._typed(ti.stop_gradient(point))
        found = 0 * p[0]
        node = ti.min(self.number[None], 1)
        while node > 0:
            r = self.mean[node] - p
            square = r.norm_sqr()
            if square > accuracy * accuracy * self.reach[node]:
                s = 1 / ti.sqrt(square)
                moment = self.moment[node]
                quadrupole = moment.trace() - 3 * s * s * r.dot(moment @ r)
                found += s * s * s * (self.normal[node].dot(r) + quadrupole) / (4 * math.pi)
                node = self._after(node)
            elif node < self.leaves:
                node *= 2
            else:
                for k in self._places(node):
                    a, b, c = self._triangle(k)
                    found += _solid_angle(a - p, b - p, c - p) / (4 * math.pi)
                node = self._after(node)
        return found

    @ti.func
    def signed_distance(self, point, within=ti.math.inf):
        """The distance of a point from the surface, negative inside: where the winding number is more than 1/2, or less
        than -1/2.

        The surface should be closed; holes are closed by the surface on which the winding number is 1/2. The distance
        differentiates as that of `nearest`, and on the surface, too: there its gradient is the normal.

        Parameters
        ----------
        point : vector
            The point.
        within : float, optional
            Only triangles at less than this distance count, which makes searches faster.

        Returns
        -------
        float
            The signed distance; where there is no triangle, `within`, with the sign.

        Examples
        --------
        >>> x, triangles = ti.Vector.field(3, ti.f64, shape=4), ti.Vector.field(3, ti.i32, shape=4)
        >>> x.from_numpy([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> triangles.from_numpy([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
        >>> mesh = ti.geometry.TriangleTree(x, triangles)
        >>> mesh.update()
        >>> @ti.kernel
        ... def signed(height: ti.f64) -> ti.f64:
        ...     return mesh.signed_distance(ti.Vector([0.25, 0.25, height]))
        >>> signed(-0.5), signed(0.0625)
        (0.5, -0.0625)
        """
        distance, triangle, weights = self.nearest(point, within)
        is_inside = ti.abs(self.winding_number(point)) > 0.5
        if weights.min() > 0:
            # What is nearest is within a triangle: its height is smooth through the surface.
            a, b, c = self._corners_of(triangle)
            height = (b - a).cross(c - a).normalized().dot(point - a)
            distance = -height if (height > 0) == is_inside and height != 0 else height
        elif is_inside:
            distance = -distance
        return distance
