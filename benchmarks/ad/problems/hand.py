"""Hand tracking: how far the vertices of a posed hand are from points that were measured, and the Jacobian of that.

The pose has 26 numbers: a rotation vector, a translation, and for each of five fingers an angle of spread and three
angles of bending. A skeleton of 22 bones (a wrist, a palm and four for each finger) is posed by Euler angles; a vertex
is the weighted mean of where the bones take it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem

__all__ = ["ANGLES", "BONES", "PARAMETERS", "PARENTS", "Hand"]

FINGERS = 5
BONES = 2 + 4 * FINGERS
PARAMETERS = 6 + 4 * FINGERS
PARENTS = np.array([-1, 0, *(1 if k == 0 else 2 + 4 * finger + k - 1 for finger in range(FINGERS) for k in range(4))])


def angles_of_bones() -> np.ndarray:
    """Return which parameter is the x, y and z angle of each bone (−1: none, the angle is 0)."""
    angles = np.full((BONES, 3), -1)
    for finger in range(FINGERS):
        first, parameter = 2 + 4 * finger, 6 + 4 * finger
        angles[first, :2] = parameter, parameter + 1
        angles[first + 1, 0] = parameter + 2
        angles[first + 2, 0] = parameter + 3
    return angles


ANGLES = angles_of_bones().astype(np.int32)


class Hand(Problem):
    """A hand of `vertices` vertices, and `measured` points. Derivatives have the shape (measured, 3, 26)."""

    wrt = ("pose",)

    def __init__(self, vertices: int, measured: int) -> None:
        random = np.random.default_rng(0)
        relative = np.array([rigid(random) for _ in range(BONES)])
        absolute = np.array(chained(list(relative)))
        weights = random.uniform(0, 1, (vertices, BONES)) * (random.uniform(0, 1, (vertices, BONES)) < 0.15)
        weights[np.arange(vertices), random.integers(0, BONES, vertices)] += 1
        self.inputs = {
            "pose": random.uniform(-0.3, 0.3, PARAMETERS),
            "relative": relative,
            "inverse": np.linalg.inv(absolute),
            "rest": np.concatenate([random.uniform(-1, 1, (vertices, 3)), np.ones((vertices, 1))], axis=1),
            "weights": weights / weights.sum(1, keepdims=True),
            "which": random.integers(0, vertices, measured).astype(np.int32),
            "points": random.uniform(-1, 1, (measured, 3)),
        }

    def primal(
        self,
        pose: np.ndarray,
        relative: np.ndarray,
        inverse: np.ndarray,
        rest: np.ndarray,
        weights: np.ndarray,
        which: np.ndarray,
        points: np.ndarray,
    ) -> np.ndarray:
        angles = np.where(ANGLES < 0, 0, pose[ANGLES])
        posed = [relative[bone] @ euler(angles[bone]) for bone in range(BONES)]
        transforms = np.array(chained(posed)) @ inverse
        skinned = np.einsum("vb,bij,vj->vi", weights, transforms[:, :3], rest)
        return points - (skinned @ rotation(pose[:3]).T + pose[3:6])[which]


def chained(relative: list[np.ndarray]) -> list[np.ndarray]:
    """Return the transforms of the bones from their transforms relative to their parents, which come before them."""
    absolute: list[np.ndarray] = []
    for bone, parent in zip(relative, PARENTS, strict=True):
        absolute.append(bone if parent < 0 else absolute[parent] @ bone)
    return absolute


def euler(angles: np.ndarray) -> np.ndarray:
    """Return the transform (4, 4) that turns about x, then y, then z."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(angles), np.sin(angles)
    turned = np.eye(4, dtype=angles.dtype)
    turned[:3, :3] = [
        [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz],
        [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz],
        [-sy, sx * cy, cx * cy],
    ]
    return turned


def rotation(vector: np.ndarray) -> np.ndarray:
    """Return the matrix (3, 3) that turns about a vector by its length."""
    angle = np.sqrt((vector**2).sum())
    x, y, z = vector / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)


def rigid(random: np.random.Generator) -> np.ndarray:
    """Return a random transform (4, 4): a small rotation and a translation."""
    made = np.eye(4)
    made[:3, :3] = rotation(random.uniform(-0.5, 0.5, 3))
    made[:3, 3] = random.uniform(-0.3, 0.3, 3)
    return made


create = Hand
