"""One point an iteration, a running minimum over the centroids."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """One kernel."""
    matrix = style.parameter(2)
    loss = style.scratch()
    points = style.data(problem.inputs["points"])

    @ti.kernel
    def objective(centroids: matrix, points: matrix, loss: ti.template()):
        for i in range(points.shape[0]):
            nearest = 1e300
            for j in range(centroids.shape[0]):
                distance = 0.0
                for axis in range(points.shape[1]):
                    distance += (points[i, axis] - centroids[j, axis]) ** 2
                nearest = ti.min(nearest, distance)
            loss[None] += nearest

    def run(centroids) -> None:
        loss[None] = 0
        objective(centroids, points, loss)

    return Program(run, [style.variable(problem.inputs["centroids"])], loss)


def derivative(style: Style, program: Program) -> Callable[[], Any]:
    """The gradient, then the Hessian times ones."""
    return style.gradient_and_hvp(program, np.ones(program.wrt[0].shape))


def combined(found: list[np.ndarray]) -> np.ndarray:
    """Two rows."""
    return np.stack([one.ravel() for one in found])
