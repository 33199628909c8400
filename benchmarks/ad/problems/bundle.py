"""Bundle adjustment: by how much each of many observations misses, and the Jacobian of that.

A camera has 11 numbers: a rotation vector, its centre (3), a focal length, a principal point (2), two coefficients of
radial distortion. An observation o has a weight w, a camera and a point X; its two errors are w (projection − feature).
The Jacobian is sparse: a block of 2 × 15 an observation, with respect to its camera, its point and its weight.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.ad.problems.problem import Problem

__all__ = ["Bundle", "project"]


class Bundle(Problem):
    """`observations` of `points` by `cameras`. Derivatives have the shape (observations, 2, 15)."""

    wrt = ("cameras", "points", "weights")

    def __init__(self, cameras: int, points: int, observations: int) -> None:
        random = np.random.default_rng(0)
        rotation, centre = random.uniform(-0.5, 0.5, (cameras, 3)), random.uniform(-0.5, 0.5, (cameras, 3))
        lens = [random.uniform(0.8, 1.2, (cameras, 1)), random.uniform(-0.1, 0.1, (cameras, 4))]
        self.inputs = {
            "cameras": np.concatenate([rotation, centre, *lens], axis=1),
            "points": np.array([0, 0, 4]) + random.uniform(-1, 1, (points, 3)),
            "weights": random.uniform(0.5, 1.5, observations),
            "which_camera": random.integers(0, cameras, observations).astype(np.int32),
            "which_point": random.integers(0, points, observations).astype(np.int32),
            "features": random.uniform(-0.5, 0.5, (observations, 2)),
        }

    def primal(
        self,
        cameras: np.ndarray,
        points: np.ndarray,
        weights: np.ndarray,
        which_camera: np.ndarray,
        which_point: np.ndarray,
        features: np.ndarray,
    ) -> np.ndarray:
        return weights[:, None] * (project(cameras[which_camera], points[which_point]) - features)

    def along(self, derivative: np.ndarray, directions: Mapping[str, np.ndarray]) -> np.ndarray:
        camera, point = self.inputs["which_camera"], self.inputs["which_point"]
        blocks = [directions["cameras"][camera], directions["points"][point], directions["weights"][:, None]]
        return np.einsum("ork,ok->or", derivative, np.concatenate(blocks, axis=1))


def project(camera: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return where cameras (…, 11) see points (…, 3): (…, 2)."""
    rotation, centre, focal, principal, radial = np.split(camera, [3, 6, 7, 9], axis=-1)
    at = point - centre
    angle = np.sqrt((rotation**2).sum(-1, keepdims=True))
    axis = rotation / angle
    cross = np.cross(axis, at)
    along = axis * (axis * at).sum(-1, keepdims=True)
    turned = at * np.cos(angle) + cross * np.sin(angle) + along * (1 - np.cos(angle))
    flat = turned[..., :2] / turned[..., 2:]
    square = (flat**2).sum(-1, keepdims=True)
    return flat * (1 + radial[..., :1] * square + radial[..., 1:] * square**2) * focal + principal


create = Bundle
