"""Rules of operations (`journal/operation.py`) that are linear in each of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinote.lang.ad.journal.operation import RunOperation
from tinote.lang.data.fields import Field

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]


class Linear:
    """A linear map of all inputs together to one output, and its transpose."""

    def __init__(self, map: Callable[[Arrays], Array], transpose: Callable[[Array], Arrays]) -> None:
        self._map = map
        self._transpose = transpose

    def values(self, inputs: Arrays) -> Arrays:
        """The map's value."""
        return [self._map(inputs)]

    def tangents(self, tangents: Arrays) -> Arrays:
        """The map of the tangents."""
        return [self._map(tangents)]

    def adjoints(self, adjoints: Arrays) -> Arrays:
        """The transpose of the adjoint."""
        return self._transpose(adjoints[0])

    def adjoint_tangents(self, tangents: Arrays, adjoints: Arrays, adjoint_tangents: Arrays) -> Arrays:
        """The transpose of its tangent."""
        return self._transpose(adjoint_tangents[0])

    def pushed(
        self, run: RunOperation, inputs: Sequence[Field], output: Field, tangents: Sequence[Field], target: Field
    ) -> None:
        """The map of the tangents."""
        run(Linear(self._map, self._transpose), tangents, target)


class Bilinear:
    """A map of two inputs that is linear in each: `product(u, v)`. `first(v, w)` and `second(u, w)` are the transposes
    of the linear maps that it is with the other input held.
    """

    def __init__(
        self,
        product: Callable[[Array, Array], Array],
        first: Callable[[Array, Array], Array],
        second: Callable[[Array, Array], Array],
    ) -> None:
        self._product = product
        self._first = first
        self._second = second
        self._u = self._v = np.zeros(0)

    def values(self, inputs: Arrays) -> Arrays:
        """The product."""
        self._u, self._v = inputs
        return [self._product(self._u, self._v)]

    def tangents(self, tangents: Arrays) -> Arrays:
        """The product rule."""
        return [self._product(tangents[0], self._v) + self._product(self._u, tangents[1])]

    def adjoints(self, adjoints: Arrays) -> Arrays:
        """The transposes of both maps."""
        (w,) = adjoints
        return [self._first(self._v, w), self._second(self._u, w)]

    def adjoint_tangents(self, tangents: Arrays, adjoints: Arrays, adjoint_tangents: Arrays) -> Arrays:
        """The product rule for these."""
        (u, v), (w,), (dw,) = tangents, adjoints, adjoint_tangents
        return [
            self._first(v, w) + self._first(self._v, dw),
            self._second(u, w) + self._second(self._u, dw),
        ]

    def pushed(
        self, run: RunOperation, inputs: Sequence[Field], output: Field, tangents: Sequence[Field], target: Field
    ) -> None:
        """The product rule."""
        (u, v), (du, dv) = inputs, tangents
        parts = [run(Bilinear(self._product, self._first, self._second), pair) for pair in ([du, v], [u, dv])]
        run(Linear(lambda both: both[0] + both[1], lambda w: [w, w]), parts, target)


class Solution:
    """The solution x of A x = b, of the elements of A at `rows` and `columns` and of b. `solve(v, transposed)` solves
    with A or its transpose.

    With the adjoint λ of b, Aᵀ λ = x̄, the adjoint of A is -λ xᵀ at its elements, and the tangent of x is that of
    A ẋ = ḃ - Ȧ x. Method: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation", in Advances in Automatic Differentiation, Springer, 2008, section 2.3.
    """

    def __init__(self, solve: Callable[[Array, bool], Array], rows: Array, columns: Array) -> None:
        self._solve = solve
        self._rows = rows
        self._columns = columns
        self._x = np.zeros(0)
        self._adjoint: tuple[bytes, Array] | None = None

    def values(self, inputs: Arrays) -> Arrays:
        """The solution."""
        self._x = self._solve(inputs[1], False)
        return [self._x]

    def tangents(self, tangents: Arrays) -> Arrays:
        """One solve with the same matrix."""
        elements, b = tangents
        return [self._solve(b - self._times(elements, self._x), False)]

    def adjoints(self, adjoints: Arrays) -> Arrays:
        """One solve with the transpose."""
        found = self._lambda(adjoints[0])
        return [-found[self._rows] * self._x[self._columns], found]

    def adjoint_tangents(self, tangents: Arrays, adjoints: Arrays, adjoint_tangents: Arrays) -> Arrays:
        """One solve with the transpose, and one for the tangent of the solution."""
        elements, rows, columns = tangents[0], self._rows, self._columns
        (dx,) = self.tangents(tangents)
        found = self._lambda(adjoints[0])
        size = found.size
        d_found = self._solve(adjoint_tangents[0] - np.bincount(columns, elements * found[rows], size), True)
        return [-d_found[rows] * self._x[columns] - found[rows] * dx[columns], d_found]

    def pushed(
        self, run: RunOperation, inputs: Sequence[Field], output: Field, tangents: Sequence[Field], target: Field
    ) -> None:
        """One solve with the same matrix."""
        rows, columns = self._rows, self._columns
        elements, b = tangents
        times = Bilinear(
            self._times,
            lambda x, w: w[rows] * x[columns],
            lambda elements, w: np.bincount(columns, elements * w[rows], w.size),
        )
        right = run(Linear(lambda both: both[0] - both[1], lambda w: [w, -w]), [b, run(times, [elements, output])])
        run(Solution(self._solve, rows, columns), [inputs[0], right], target)

    def _lambda(self, adjoint: Array) -> Array:
        key = adjoint.tobytes()
        if self._adjoint is None or self._adjoint[0] != key:
            self._adjoint = key, self._solve(adjoint, True)
        return self._adjoint[1]

    def _times(self, elements: Array, x: Array) -> Array:
        return np.bincount(self._rows, elements * x[self._columns], x.size)
