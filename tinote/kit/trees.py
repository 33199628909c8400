"""Bounding volume hierarchies of points, boxes and triangles: `ti.geometry`.

    points = ti.geometry.PointTree(x)
    points.update()
    …
    distance, i = points.nearest(p)  # in a kernel

The tree is binary and complete: node `k` has the children `2 k` and `2 k + 1`, and the leaves, which hold a few items
each, are the nodes from `leaves` on. So there is nothing to store of a node but its box, nor a stack in a search: a bit
for each level says whether the other child is still to be visited. Trees are built by sorting: nodes are divided into
slabs along the longest axis of their box, again and again. What is found is a constant for derivatives; distances
differentiate.
"""

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

import math
from typing import Any

import numpy as np

import tinote as ti
from tinote.errors import FieldError
from tinote.kit.fields import FLOATS
from tinote.kit.shapes import length
from tinote.source import caller

__all__ = ["BoxTree", "PointTree", "SearchTree", "is_finite", "require_vectors"]

#: Most items of a leaf. Of 100,000 triangles, with 4 instead, building and refitting took 1.1 and 1.5 times as long,
#: nearest points 1.03 times, and rays 0.95 times.
LEAF = 8
#: Levels of the tree that are divided at once, into 8 slabs. With one instead, nearest points and rays took 0.9 times
#: as long, and building 2.7 times.
AT_ONCE = 3
#: Bits of a digit of the radix sort, and numbers that one iteration of it counts. Chosen, not measured.
DIGIT, BLOCK = 8, 4096
#: Parts of the tree that are refitted in parallel, each in one iteration. Chosen, not measured.
PARTS = 256


def require_vectors(what: str, x: Any, dimensions: tuple[int, ...], dtypes: Any, hint: str) -> None:
    """Refuse all but a field of vectors with one index."""
    is_right = isinstance(x, ti.MatrixField) and (x.m, len(x.shape)) == (1, 1)
    if not is_right or x.n not in dimensions or x.dtype not in dtypes:
        components = " or ".join(map(str, dimensions))
        types = " or ".join(map(str, dtypes))
        raise FieldError(
            f"{what} are a field of vectors of {components} components, {types}, with one index, not {x!r}",
            caller(),
            hint=hint,
        )


@ti.func
def is_finite(v):
    found = True
    for axis in ti.static(range(v.n)):
        found = found and not (ti.math.isnan(v[axis]) or ti.math.isinf(v[axis]))
    return found


class SearchTree:
    """What all trees have: the items in the order of the leaves, and the boxes of the nodes."""

    def __init__(self, count: int, dimension: int, dtype: Any) -> None:
        self.dimension, self.dtype = dimension, dtype
        self.levels = max(0, math.ceil(math.log2(count / LEAF)))
        self.leaves = 2**self.levels
        #: more than what roundings do to where a ray leaves a box
        self.rounding = 1 + 8 * float(np.finfo(FLOATS[dtype]).eps)
        self.number = ti.field(ti.i32, shape=(), name="number")
        #: the box of each node; that of a leaf without items is of no meaning
        self.low = ti.Vector.field(dimension, dtype, shape=2 * self.leaves, name="low")
        self.high = ti.Vector.field(dimension, dtype, shape=2 * self.leaves, name="high")
        #: the item at each place of the leaves, and what it is sorted by: before and after a pass of the sort
        self.order = ti.field(ti.i32, shape=(2, count), name="order")
        self.keys = ti.field(ti.u32, shape=(2, count), name="keys")
        self.blocks = -(-count // BLOCK)
        self.counts = ti.field(ti.i32, shape=(2**DIGIT, self.blocks), name="counts")

    # What kinds of trees define: whether an item is right; what of it is copied to a place, to be near those beside it;
    # the box of what is there, its squared distance from a point, and more that is known of a node.

    def _check(self, number: Any) -> Any:
        raise NotImplementedError

    def _copy(self, k: Any, i: Any) -> Any:
        raise NotImplementedError

    def _box(self, k: Any) -> Any:
        raise NotImplementedError

    def _square(self, k: Any, p: Any) -> Any:
        raise NotImplementedError

    @ti.func
    def _summarise(self, node):
        pass

    # the tree

    @ti.func
    def _first(self, leaf):
        """The first place of a leaf: all have the same number of items, or some one more."""
        number = self.number[None]
        return leaf * (number // self.leaves) + ti.min(leaf, number % self.leaves)

    @ti.func
    def _leaf(self, place):
        """The leaf of a place."""
        size, larger = self.number[None] // self.leaves, self.number[None] % self.leaves
        return place // (size + 1) if place < larger * (size + 1) else larger + (place - larger * (size + 1)) // size

    @ti.func
    def _places(self, node):
        yield from range(self._first(node - self.leaves), self._first(node + 1 - self.leaves))

    @ti.func
    def _typed(self, v):
        """In the type of the positions, or in its own if that has more digits."""
        return v + ti.cast(0, self.dtype)

    @ti.func
    def _after(self, node):
        """The node after this and all below it, in the order of the leaves; 0 after the last."""
        following = node + 1
        following >>= 31 - ti.clz(following & -following)
        return following if following > 1 else 0

    @ti.func
    def _gap(self, node, p):
        """The squared distance of a point from a node's box."""
        return ti.max(self.low[node] - p, p - self.high[node], 0).norm_sqr()

    @ti.func
    def _best(self, of_node: ti.template(), of_place: ti.template(), query, bound):
        """The least number below a bound that a place has, and the place; none is -1. Nodes have lower bounds.

        `trail` has a bit for each level above the node: whether the other child there is still to be visited. (A. T.
        Áfra and L. Szirmay-Kalos, Computer Graphics Forum 33 (2014) 129.)
        """
        best, found = bound, -1
        node, trail = 1, 1
        while node > 0:
            is_done = True
            if node < self.leaves:
                left, right = of_node(2 * node, query), of_node(2 * node + 1, query)
                if ti.min(left, right) < best:
                    is_done = False
                    trail = 2 * trail + ti.cast(ti.max(left, right) < best, ti.i32)
                    node = 2 * node + ti.cast(right < left, ti.i32)
            else:
                for k in self._places(node):
                    here = of_place(k, query)
                    if here < best:
                        best, found = here, k
            if is_done:
                up = 31 - ti.clz(trail & -trail)
                node, trail = (node >> up) ^ 1, (trail >> up) ^ 1
        return best, found

    @ti.func
    def near(self, point, radius):
        """What is within a distance of a point, one after another: in kernels, a `for` loops over the indices.

        Parameters
        ----------
        point : vector
            Where to look.
        radius : float
            The distance, in the unit of positions.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=3)
        >>> x.from_numpy([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
        >>> points = ti.geometry.PointTree(x)
        >>> points.update()
        >>> @ti.kernel
        ... def count(radius: ti.f32) -> ti.i32:
        ...     found = 0
        ...     for i in points.near(ti.Vector([0.0, 0.0]), radius):
        ...         found += 1
        ...     return found
        >>> count(1.0), count(4.9), count(5.0)
        (2, 2, 3)
        """
        p, square = self._typed(ti.stop_gradient(point)), ti.stop_gradient(radius * radius)
        node = 1
        while node > 0:
            if self._gap(node, p) > square:
                node = self._after(node)
            elif node < self.leaves:
                node *= 2
            else:
                for k in self._places(node):
                    if self._square(k, p) <= square:
                        yield self.order[0, k]
                node = self._after(node)

    @ti.func
    def overlapping(self, low, high):
        """What has a bounding box that meets a box, one after another: in kernels, a `for` loops over the indices.
        Boxes that only touch meet.

        Parameters
        ----------
        low, high : vector
            The corners of the box with the least and with the greatest coordinates.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=3)
        >>> x.from_numpy([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
        >>> points = ti.geometry.PointTree(x)
        >>> points.update()
        >>> @ti.kernel
        ... def show():
        ...     for i in points.overlapping(ti.Vector([0.5, 0.0]), ti.Vector([2.0, 2.0])):
        ...         print(i)
        >>> show()
        2
        """
        a, b = ti.stop_gradient(low), ti.stop_gradient(high)
        node = 1
        while node > 0:
            if ti.max(self.low[node] - b, a - self.high[node]).max() > 0:
                node = self._after(node)
            elif node < self.leaves:
                node *= 2
            else:
                for k in self._places(node):
                    least, most = self._box(k)
                    if ti.max(least - b, a - most).max() <= 0:
                        yield self.order[0, k]
                node = self._after(node)

    @ti.func
    def along(self, origin, direction, within=ti.math.inf):
        """What has a bounding box that a ray meets, one after another, in no order of distance: in kernels, a `for`
        loops over the indices.

        Parameters
        ----------
        origin, direction : vector
            The ray: `origin + t * direction` for t from 0 on. The direction may have any length.
        within : float, optional
            Where the ray ends: the largest t.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=3)
        >>> x.from_numpy([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
        >>> points = ti.geometry.PointTree(x)
        >>> points.update()
        >>> @ti.kernel
        ... def show():
        ...     for i in points.along(ti.Vector([0.0, 0.0]), ti.Vector([1.0, 0.0])):
        ...         print(i)
        >>> show()
        0
        2
        """
        ray = self._ray(ti.stop_gradient(origin), ti.stop_gradient(direction))
        node = 1
        while node > 0:
            if not self._entry(node, ray) <= within:
                node = self._after(node)
            elif node < self.leaves:
                node *= 2
            else:
                for k in self._places(node):
                    low, high = self._box(k)
                    if self._entry_of(low, high, ray) <= within:
                        yield self.order[0, k]
                node = self._after(node)

    @ti.func
    def _ray(self, origin, direction):
        """A ray as searches have it. The reciprocal of a component that is about 0 is finite: 0 times it is 0."""
        o, d = self._typed(origin), self._typed(direction)
        inverse = 0 * d
        for axis in ti.static(range(self.dimension)):
            tiny = 1e-30 if d[axis] >= 0 else -1e-30
            inverse[axis] = 1 / (d[axis] if ti.abs(d[axis]) > 1e-30 else tiny)
        return ti.Struct(origin=o, direction=d, inverse=inverse)

    @ti.func
    def _entry_of(self, low, high, ray):
        """Where a ray enters a box, and infinity where it passes by. Roundings lose no box."""
        a, b = (low - ray.origin) * ray.inverse, (high - ray.origin) * ray.inverse
        enter, leave = ti.max(ti.min(a, b).max(), 0), ti.max(a, b).min() * self.rounding
        return enter if enter <= leave else ti.cast(ti.math.inf, self.dtype)

    @ti.func
    def _entry(self, node, ray):
        return self._entry_of(self.low[node], self.high[node], ray)

    # building

    @ti.func
    def _join(self, node, is_last):
        self.low[node] = ti.min(self.low[2 * node], self.low[2 * node + 1])
        self.high[node] = ti.max(self.high[2 * node], self.high[2 * node + 1])
        if is_last > 0:
            self._summarise(node)

    @ti.kernel
    def _refit(self, is_last: ti.i32):
        number = self.number[None]
        self._check(number)
        for k in range(number):
            self._copy(k, self.order[0, k])
        parts = ti.min(self.leaves, PARTS)
        for part in range(ti.min(number, 1) * parts):
            many = self.leaves // parts
            for node in range((parts + part) * many, (parts + part + 1) * many):
                low, high = self._box(ti.min(self._first(node - self.leaves), number - 1))
                for k in self._places(node):
                    least, most = self._box(k)
                    low, high = ti.min(low, least), ti.max(high, most)
                self.low[node], self.high[node] = low, high
                if is_last > 0:
                    self._summarise(node)
            while many > 1:
                many //= 2
                for node in range((parts + part) * many, (parts + part + 1) * many):
                    self._join(node, is_last)
        ti.loop_config(serialize=True)
        for back in range(ti.min(number, 1) * (parts - 1)):
            self._join(parts - 1 - back, is_last)

    @ti.kernel
    def _begin(self, number: ti.i32):
        self.number[None] = number
        for i in range(number):
            self.order[0, i] = i

    @ti.kernel
    def _rank(self, level: ti.i32):
        """What items are sorted by: the node of this level, and the place along the longest axis of its box."""
        bits = ti.min(32 - level, 24)
        for k in range(self.number[None]):
            node = (self._leaf(k) + self.leaves) >> (self.levels - level)
            low, size = self.low[node], self.high[node] - self.low[node]
            least, most = self._box(k)
            along, length = (least + most)[0] / 2 - low[0], size[0]
            for axis in ti.static(range(1, self.dimension)):
                if size[axis] > length:
                    along, length = (least + most)[axis] / 2 - low[axis], size[axis]
            rank = along / length * ((1 << bits) - 1) if length > 0 else 0 * along
            place = ti.cast(ti.max(ti.min(rank, (1 << bits) - 1), 0), ti.u32)
            self.keys[0, k] = (ti.cast(node, ti.u32) << bits) | place

    @ti.kernel
    def _sort(self, source: ti.i32, shift: ti.i32):
        """A pass of the radix sort: blocks are counted and moved in parallel, so that equal digits keep their order."""
        number = self.number[None]
        for digit, block in self.counts:
            self.counts[digit, block] = 0
        for block in range(self.blocks):
            for k in range(block * BLOCK, ti.min((block + 1) * BLOCK, number)):
                self.counts[(self.keys[source, k] >> shift) & (2**DIGIT - 1), block] += 1
        total = 0
        ti.loop_config(serialize=True)
        for digit, block in self.counts:
            count = self.counts[digit, block]
            self.counts[digit, block] = total
            total += count
        for block in range(self.blocks):
            for k in range(block * BLOCK, ti.min((block + 1) * BLOCK, number)):
                key = self.keys[source, k]
                place = ti.atomic_add(self.counts[(key >> shift) & (2**DIGIT - 1), block], 1)
                self.keys[1 - source, place] = key
                self.order[1 - source, place] = self.order[source, k]

    def update(self, number: int | None = None) -> None:
        """Build the tree by the present positions.

        Parameters
        ----------
        number : int, optional
            Of the first items, which count; by default all.

        Raises
        ------
        FieldError
            For more items than there are.
        KernelAssertionError
            For what is not a finite number, and for a triangle with a vertex that does not exist, with the index.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=100)
        >>> points = ti.geometry.PointTree(x)
        >>> points.update(10)
        >>> points.number[None]
        10
        """
        room = self.order.shape[1]
        if number is not None and not 0 <= number <= room:
            raise FieldError(f"a tree of {number} items, with room for {room}", caller())
        self._begin(room if number is None else number)
        for level in range(0, self.levels, AT_ONCE):
            self._refit(0)
            self._rank(level)
            for digit in range(32 // DIGIT):
                self._sort(digit % 2, DIGIT * digit)
        self._refit(1)

    def refit(self) -> None:
        """Take new positions into the tree as it is, which is faster than `update`.

        Searches are right for any positions, and become slower when items that were near each other are no longer.

        Raises
        ------
        KernelAssertionError
            As for `update`.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=100)
        >>> points = ti.geometry.PointTree(x)
        >>> points.update()
        >>> x[3] = [1.0, 2.0, 3.0]
        >>> points.refit()
        >>> print(points.high[1])
        [1.0, 2.0, 3.0]
        """
        self._refit(1)


class PointTree(SearchTree):
    """A tree of points.

    Parameters
    ----------
    x : Field
        The points: vectors of 2 or 3 components, f32 or f64, in any unit of length.

    Methods
    -------
    along
    near
    nearest
    overlapping
    refit
    update

    Raises
    ------
    FieldError
        For points of another kind.

    References
    ----------
    C. Ericson, "Real-Time Collision Detection", 2005, chapter 6.

    Examples
    --------
    >>> x = ti.Vector.field(2, ti.f64, shape=3)
    >>> x.from_numpy([[0.0, 0.0], [3.0, 4.0], [1.0, 0.0]])
    >>> points = ti.geometry.PointTree(x)
    >>> points.update()
    >>> @ti.kernel
    ... def search(p: ti.types.vector(2, ti.f64)) -> (ti.f64, ti.i32):
    ...     return points.nearest(p)
    >>> search([3.0, 6.0])
    (2.0, 1)
    """

    def __init__(self, x: Any) -> None:
        require_vectors("points", x, (2, 3), FLOATS, "ti.Vector.field(3, ti.f64, shape=n)")
        super().__init__(x.shape[0], x.n, x.dtype)
        self.x = x
        self.sorted = ti.Vector.field(x.n, x.dtype, shape=x.shape, name="sorted points")

    @ti.func
    def _check(self, number):
        lost = number
        for i in range(number):
            if not is_finite(self.x[i]):
                lost = ti.min(lost, i)
        assert lost == number, f"point {lost} is not a finite number"

    @ti.func
    def _copy(self, k, i):
        self.sorted[k] = ti.stop_gradient(self.x[i])

    @ti.func
    def _box(self, k):
        return self.sorted[k], self.sorted[k]

    @ti.func
    def _square(self, k, p):
        return (self.sorted[k] - p).norm_sqr()

    @ti.func
    def nearest(self, point, within=ti.math.inf):
        """The nearest of the points.

        The distance differentiates, with respect to the point and to that which is nearest.

        Parameters
        ----------
        point : vector
            Where to look.
        within : float, optional
            Only points at less than this distance count, which makes searches faster.

        Returns
        -------
        tuple of float and int
            The distance, and the index. Where there is none, `within` and -1.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f64, shape=2)
        >>> x.from_numpy([[0.0, 0.0], [3.0, 4.0]])
        >>> points = ti.geometry.PointTree(x)
        >>> points.update()
        >>> @ti.kernel
        ... def search(within: ti.f64) -> (ti.f64, ti.i32):
        ...     return points.nearest(ti.Vector([3.0, 6.0]), within)
        >>> search(2.5), search(1.5)
        ((2.0, 1), (1.5, -1))
        """
        distance, found = self._typed(within + 0 * point.sum()), -1
        bound = ti.stop_gradient(distance * distance)
        _, k = self._best(self._gap, self._square, self._typed(ti.stop_gradient(point)), bound)
        if k >= 0:
            found = self.order[0, k]
            distance = length(self.x[found] - point)
        return distance, found


class BoxTree(SearchTree):
    """A tree of boxes with edges along the axes: of anything that has a bounding box.

    Parameters
    ----------
    low, high : Field
        The corners with the least and with the greatest coordinates: vectors of 2 or 3 components, f32 or f64, in any
        unit of length.

    Methods
    -------
    along
    near
    nearest
    overlapping
    refit
    update

    Raises
    ------
    FieldError
        For corners of another kind, or of two kinds.

    Examples
    --------
    >>> low, high = (ti.Vector.field(2, ti.f32, shape=3) for _ in range(2))
    >>> low.from_numpy([[0.0, 0.0], [2.0, 0.0], [2.5, 0.5]])
    >>> high.from_numpy([[1.0, 1.0], [3.0, 1.0], [4.0, 4.0]])
    >>> boxes = ti.geometry.BoxTree(low, high)
    >>> boxes.update()
    >>> @ti.kernel
    ... def show():
    ...     for i in low:
    ...         for j in boxes.overlapping(low[i], high[i]):
    ...             if i < j:
    ...                 print(i, j)
    >>> show()
    1 2
    """

    def __init__(self, low: Any, high: Any) -> None:
        require_vectors("corners", low, (2, 3), FLOATS, "ti.Vector.field(3, ti.f64, shape=n)")
        require_vectors("corners", high, (low.n,), (low.dtype,), f"ti.Vector.field({low.n}, ti.{low.dtype}, shape=n)")
        if low.shape != high.shape:
            raise FieldError(f"there are {low.shape[0]} lower corners, and {high.shape[0]} upper ones", caller())
        super().__init__(low.shape[0], low.n, low.dtype)
        self.least, self.most = low, high
        self.sorted = [ti.Vector.field(low.n, low.dtype, shape=low.shape, name="sorted corners") for _ in range(2)]

    @ti.func
    def _check(self, number):
        lost, turned = number, number
        for i in range(number):
            if not is_finite(self.least[i]) or not is_finite(self.most[i]):
                lost = ti.min(lost, i)
            if (self.least[i] - self.most[i]).max() > 0:
                turned = ti.min(turned, i)
        assert lost == number, f"a corner of box {lost} is not a finite number"
        assert turned == number, f"the lower corner of box {turned} is above the upper one"

    @ti.func
    def _copy(self, k, i):
        self.sorted[0][k], self.sorted[1][k] = ti.stop_gradient(self.least[i]), ti.stop_gradient(self.most[i])

    @ti.func
    def _box(self, k):
        return self.sorted[0][k], self.sorted[1][k]

    @ti.func
    def _square(self, k, p):
        return ti.max(self.sorted[0][k] - p, p - self.sorted[1][k], 0).norm_sqr()

    @ti.func
    def nearest(self, point, within=ti.math.inf):
        """The nearest of the boxes.

        The distance differentiates, with respect to the point and to the corners.

        Parameters
        ----------
        point : vector
            Where to look.
        within : float, optional
            Only boxes at less than this distance count, which makes searches faster.

        Returns
        -------
        tuple of float and int
            The distance, which is 0 inside, and the index. Where there is none, `within` and -1.

        Examples
        --------
        >>> low, high = (ti.Vector.field(2, ti.f64, shape=1) for _ in range(2))
        >>> high.fill(1.0)
        >>> boxes = ti.geometry.BoxTree(low, high)
        >>> boxes.update()
        >>> @ti.kernel
        ... def search() -> (ti.f64, ti.i32):
        ...     return boxes.nearest(ti.Vector([4.0, 5.0]))
        >>> search()
        (5.0, 0)
        """
        distance, found = self._typed(within + 0 * point.sum()), -1
        bound = ti.stop_gradient(distance * distance)
        _, k = self._best(self._gap, self._square, self._typed(ti.stop_gradient(point)), bound)
        if k >= 0:
            found = self.order[0, k]
            distance = length(ti.max(self.least[found] - point, point - self.most[found], 0))
        return distance, found
