"""One observation an iteration. Each has copies of its camera and its point, so that two seeds, one for each of its two
errors, give all blocks of the Jacobian.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """One kernel."""
    vector, matrix = style.parameter(1), style.parameter(2)
    inputs = problem.inputs
    features = style.data(inputs["features"])
    errors = style.scratch(*inputs["features"].shape)

    @ti.kernel
    def project(cameras: matrix, points: matrix, weights: vector, features: matrix, errors: matrix):
        for o in range(weights.shape[0]):
            rotation = ti.Vector([cameras[o, 0], cameras[o, 1], cameras[o, 2]])
            centre = ti.Vector([cameras[o, 3], cameras[o, 4], cameras[o, 5]])
            principal = ti.Vector([cameras[o, 7], cameras[o, 8]])
            at = ti.Vector([points[o, 0], points[o, 1], points[o, 2]]) - centre
            angle = rotation.norm()
            axis = rotation / angle
            cosine, sine = ti.cos(angle), ti.sin(angle)
            turned = at * cosine + axis.cross(at) * sine + axis * axis.dot(at) * (1 - cosine)
            flat = ti.Vector([turned[0], turned[1]]) / turned[2]
            square = flat.norm_sqr()
            scale = (1 + cameras[o, 9] * square + cameras[o, 10] * square**2) * cameras[o, 6]
            seen = flat * scale + principal
            for r in ti.static(range(2)):
                errors[o, r] = weights[o] * (seen[r] - features[o, r])

    def run(cameras, points, weights) -> None:
        project(cameras, points, weights, features, errors)

    own = [
        inputs["cameras"][inputs["which_camera"]],
        inputs["points"][inputs["which_point"]],
        inputs["weights"],
    ]
    return Program(run, [style.variable(one) for one in own], errors)


def derivative(style: Style, program: Program) -> Callable[[], Any]:
    """The blocks' first rows and the second ones, in one sweep."""
    seeds = np.zeros((2, *program.result.shape))
    seeds[0, :, 0] = seeds[1, :, 1] = 1
    return style.vjp(program, seeds)


def combined(found: list[np.ndarray]) -> np.ndarray:
    """Of the shape (observations, 2, 15)."""
    cameras, points, weights = found
    return np.moveaxis(np.concatenate([cameras, points, weights[..., None]], axis=-1), 0, 1)
