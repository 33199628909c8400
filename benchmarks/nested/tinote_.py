"""Both descents in tinote, captured as a whole."""

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.nested.system import CONTROLS, INNER, OUTER, RATES, START, Nested

__all__ = ["create"]


def _saddle(ti, inner: str) -> Callable[..., Any]:
    """The maximum over the inner numbers, as a function of the outer ones."""
    rate = RATES["saddle"][1]

    @ti.kernel
    def height(p0: ti.f64, p1: ti.f64, q0: ti.f64, q1: ti.f64) -> ti.f64:
        return p0 * p0 + p1 * p1 + p0 * q0 + p1 * q1 - q0 * q0 - q1 * q1 + 0.1 * ti.sin(p0 * q1)

    gradient = ti.ad.grad(height, (2, 3))
    product = ti.ad.jvp(height, (2, 3))

    def highest(p0: Any, p1: Any) -> Any:
        q0 = q1 = 0.0
        for _ in range(INNER):
            if inner == "reverse":
                by0, by1 = gradient(p0, p1, q0, q1)
            else:
                by0, by1 = [product(along, p0, p1, q0, q1)[1] for along in ((1.0, 0.0), (0.0, 1.0))]
            q0, q1 = q0 + rate * by0, q1 + rate * by1
        return height(p0, p1, q0, q1)

    return highest


def _particle(ti, inner: str) -> Callable[..., Any]:
    """What it costs to steer to a target."""
    rate = RATES["particle"][1]
    column = ti.types.ndarray(dtype=ti.f64, ndim=1)

    @ti.kernel
    def cost(u: column, target: ti.f64) -> ti.f64:
        x, v, total = 0.0, 0.0, 0.0
        for t in range(CONTROLS):
            v += 0.2 * (u[t] - 0.3 * ti.sin(x))
            x += 0.2 * v
            total += 0.01 * u[t] ** 2
        return total + (x - target) ** 2

    @ti.kernel
    def descend(u: column, slope: column, after: column):
        for t in range(CONTROLS):
            after[t] = u[t] - rate * slope[t]

    @ti.kernel
    def descend_one(u: column, t: ti.i32, slope: ti.f64, after: column):
        after[t] = u[t] - rate * slope

    gradient, product = ti.ad.grad(cost), ti.ad.jvp(cost)
    controls = [ti.ndarray(ti.f64, CONTROLS, needs_grad=True, needs_dual=True) for _ in range(INNER + 1)]
    directions = np.eye(CONTROLS)

    def best(target: Any) -> Any:
        for u, after in pairwise(controls):
            if inner == "reverse":
                descend(u, gradient(u, target), after)
            else:
                for t, along in enumerate(directions):
                    descend_one(u, t, product(along, u, target)[1], after)
        return cost(controls[-1], target) + 0.1 * (target - 2.0) ** 2

    return best


class TinoteNested(Nested):
    """One of them."""

    def __init__(self, ti, problem: str, outer: str, inner: str) -> None:
        super().__init__(problem, outer, inner)
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        objective = {"saddle": _saddle, "particle": _particle}[problem](ti, inner)
        size = START[problem].size
        positions = tuple(range(size))
        gradient, product = ti.ad.grad(objective, positions), ti.ad.jvp(objective, positions)
        directions = [tuple(row) for row in np.eye(size).tolist()]
        rate = RATES[problem][0]

        def slope(*x: Any) -> Any:
            return gradient(*x) if outer == "reverse" else [product(along, *x)[1] for along in directions]

        def descend_by_one(x: float) -> tuple[float, ...]:
            for _ in range(OUTER):
                (by_x,) = slope(x)
                x = x - rate * by_x
            return (x,)

        def descend_by_two(x: float, y: float) -> tuple[float, ...]:
            for _ in range(OUTER):
                by_x, by_y = slope(x, y)
                x, y = x - rate * by_x, y - rate * by_y
            return x, y

        self.function = descend_by_one if size == 1 else descend_by_two
        self.descend = ti.capture(self.function)
        self._start = START[problem].tolist()

    def run(self, count: int) -> None:
        for _ in range(count):
            self._found = self.descend(*self._start)

    def result(self) -> np.ndarray:
        return np.array(self._found)


def create(package: str, problem: str, outer: str, inner: str) -> TinoteNested:
    """Return one of them."""
    return TinoteNested(importlib.import_module(package), problem, outer, inner)
