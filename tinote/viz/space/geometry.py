"""Normals and edges of triangle meshes, and copies of a mesh at several places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinote.config import Config
from tinote.ir.types import f32, i32
from tinote.lang.data.types import ndarray
from tinote.lang.kernels.kernel import Kernel, kernel
from tinote.lang.maths.elementary import sqrt
from tinote.lang.maths.language import loop_config


def fixed(function: Callable[..., Any]) -> Kernel:
    """A kernel that is compiled the same way whatever the session's options are: for the CPU, not profiled, and without
    a check of its indices, which are right by construction.
    """
    return kernel(function).with_options(Config(arch="cpu", software_gpu=False, bounds_check=False)._asdict())


def add_face_normals(
    vertices: ndarray(f32, 2),  # type: ignore[valid-type]
    triangles: ndarray(i32, 2),  # type: ignore[valid-type]
    normals: ndarray(f32, 2),  # type: ignore[valid-type]
):
    """Add to each vertex the normals of its triangles, each as long as twice its area. In order, since the sums of
    floats depend on it; triangles that are not finite are left out.
    """
    loop_config(serialize=True)
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ux, uy, uz = (
            vertices[b, 0] - vertices[a, 0],
            vertices[b, 1] - vertices[a, 1],
            vertices[b, 2] - vertices[a, 2],
        )
        vx, vy, vz = (
            vertices[c, 0] - vertices[a, 0],
            vertices[c, 1] - vertices[a, 1],
            vertices[c, 2] - vertices[a, 2],
        )
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        if nx * nx + ny * ny + nz * nz < 1e30:  # False for what is not finite.
            for corner in range(3):
                at = triangles[t, corner]
                normals[at, 0] += nx
                normals[at, 1] += ny
                normals[at, 2] += nz


def scale_to_unit(normals: ndarray(f32, 2)):  # type: ignore[valid-type]
    """Make each vector as long as 1; one without length points along z."""
    for n in range(normals.shape[0]):
        length = sqrt(normals[n, 0] ** 2 + normals[n, 1] ** 2 + normals[n, 2] ** 2)
        if length > 0.0:
            for axis in range(3):
                normals[n, axis] /= length
        else:
            normals[n, 2] = 1.0


_add_face_normals, _scale_to_unit = fixed(add_face_normals), fixed(scale_to_unit)


def vertex_normals(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Unit normals (V, 3) of vertices (V, 3), float32: the mean of the triangles (T, 3) around each, by their area."""
    normals = np.zeros_like(vertices)
    if len(triangles):
        _add_face_normals(vertices, triangles, normals)
    _scale_to_unit(normals)
    return normals


def edges_of(triangles: np.ndarray) -> np.ndarray:
    """The pairs of vertices (E, 2) that triangles (T, 3) have for edges, each once, the smaller number first."""
    pairs = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1).astype(np.int64)
    keys = np.unique(pairs[:, 0] << 32 | pairs[:, 1])
    return np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1).astype(np.int32)


def placed(vertices: np.ndarray, normals: np.ndarray, transforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and unit normals (V, 3) at each of the transforms (M, 4, 4), which act on column vectors: two arrays
    (M * V, 3), copy after copy. Normals stay across the surface, whatever the transform does to it.
    """
    linear = transforms[:, :3, :3].astype(np.float64)
    points = vertices.astype(np.float64) @ linear.transpose(0, 2, 1) + transforms[:, None, :3, 3]
    # The cofactors turn normals as the inverse transposed does, and are defined for flat transforms as well.
    a, b, c = linear[:, 0], linear[:, 1], linear[:, 2]
    cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    turned = normals.astype(np.float64) @ cofactors.transpose(0, 2, 1)
    turned *= np.where(np.linalg.det(linear) < 0, -1.0, 1.0)[:, None, None]
    lengths = np.linalg.norm(turned, axis=2, keepdims=True)
    turned = np.divide(turned, lengths, out=np.zeros_like(turned), where=lengths > 0)
    return points.reshape(-1, 3).astype(np.float32), turned.reshape(-1, 3).astype(np.float32)
