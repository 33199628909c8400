"""The bones in order, then one vertex an iteration, then one measured point an iteration."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.ad.problems.hand import ANGLES, BONES, PARENTS
from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """Three kernels."""
    vector, matrix, tensor = style.parameter(1), style.parameter(2), style.parameter(3)
    indices, index_rows = style.parameter(1, ti.i32), style.parameter(2, ti.i32)
    inputs = problem.inputs
    relative, inverse, rest, weights, which, points, angles, parents = (
        style.data(one)
        for one in (
            *(inputs[name] for name in ("relative", "inverse", "rest", "weights", "which", "points")),
            ANGLES,
            PARENTS.astype(np.int32),
        )
    )
    absolute, transforms = style.scratch(BONES, 4, 4), style.scratch(BONES, 3, 4)
    placed, errors = style.scratch(len(inputs["rest"]), 3), style.scratch(*inputs["points"].shape)

    @ti.func
    def angle(pose: ti.template(), angles: ti.template(), bone, axis: ti.template()):
        return 0.0 if angles[bone, axis] < 0 else pose[ti.max(angles[bone, axis], 0)]

    @ti.kernel
    def skeleton(
        pose: vector,
        angles: index_rows,
        parents: indices,
        relative: tensor,
        inverse: tensor,
        absolute: tensor,
        transforms: tensor,
    ):
        ti.loop_config(serialize=True)
        for bone in range(BONES):
            a, b, c = angle(pose, angles, bone, 0), angle(pose, angles, bone, 1), angle(pose, angles, bone, 2)
            cx, cy, cz = ti.cos(a), ti.cos(b), ti.cos(c)
            sx, sy, sz = ti.sin(a), ti.sin(b), ti.sin(c)
            turn = ti.Matrix(
                [
                    [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, 0.0],
                    [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, 0.0],
                    [-sy, sx * cy, cx * cy, 0.0],
                    [0.0, 0.0, 0.0, 1.0],
                ]
            )
            own = ti.Matrix([[relative[bone, i, j] for j in range(4)] for i in range(4)]) @ turn
            parent = parents[bone]
            if parent >= 0:
                own = ti.Matrix([[absolute[parent, i, j] for j in range(4)] for i in range(4)]) @ own
            moved = own @ ti.Matrix([[inverse[bone, i, j] for j in range(4)] for i in range(4)])
            for i, j in ti.static(ti.ndrange(4, 4)):
                absolute[bone, i, j] = own[i, j]
            for i, j in ti.static(ti.ndrange(3, 4)):
                transforms[bone, i, j] = moved[i, j]

    @ti.kernel
    def skin(pose: vector, transforms: tensor, rest: matrix, weights: matrix, placed: matrix):
        for v in range(rest.shape[0]):
            at = ti.Vector([0.0, 0.0, 0.0])
            for bone in range(BONES):
                w = weights[v, bone]
                if w != 0:
                    for i in ti.static(range(3)):
                        for j in ti.static(range(4)):
                            at[i] += w * transforms[bone, i, j] * rest[v, j]
            vector = ti.Vector([pose[0], pose[1], pose[2]])
            size = vector.norm()
            axis = vector / size
            across = axis.cross(at)
            turned = at + ti.sin(size) * across + (1 - ti.cos(size)) * axis.cross(across)
            for i in ti.static(range(3)):
                placed[v, i] = turned[i] + pose[3 + i]

    @ti.kernel
    def compare(placed: matrix, which: indices, points: matrix, errors: matrix):
        for m, i in ti.ndrange(points.shape[0], 3):
            errors[m, i] = points[m, i] - placed[which[m], i]

    def run(pose) -> None:
        skeleton(pose, angles, parents, relative, inverse, absolute, transforms)
        skin(pose, transforms, rest, weights, placed)
        compare(placed, which, points, errors)

    return Program(run, [style.variable(inputs["pose"])], errors)


def derivative(style: Style, program: Program) -> Callable[[], Any]:
    """The Jacobian (measured, 3, 26)."""
    return style.jacobian(program)


def combined(found: list[np.ndarray]) -> np.ndarray:
    """It is the only one."""
    return found[0]
