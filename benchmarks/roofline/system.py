"""The loops: their sizes, what they begin with, and their meanings in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

__all__ = ["BYTES", "FACTOR", "OMEGA", "SHAPES", "VELOCITIES", "WEIGHTS", "beginning", "expected"]

FACTOR, OMEGA = 0.5, 1.2
SHAPES = {
    "axpy": (1 << 24,), "total": (1 << 24,), "jacobi": (4096, 4096), "stencil": (256, 256, 256),
    "boltzmann": (128, 128, 128),
}  # fmt: skip

#: The velocities of D3Q19: at rest, to the six neighbours and to the twelve across an edge.
VELOCITIES = sorted(
    (c for c in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, c)) < 3), key=lambda c: sum(map(abs, c))
)
WEIGHTS = [(1 / 3, 1 / 18, 1 / 36)[sum(map(abs, c))] for c in VELOCITIES]


def _inside(loop: str) -> int:
    return int(np.prod([n - 2 for n in SHAPES[loop]]))


#: What each loop has to read and to write.
BYTES = {
    "axpy": 3 * 4 * SHAPES["axpy"][0], "total": 4 * SHAPES["total"][0], "jacobi": 3 * 4 * _inside("jacobi"),
    "stencil": 2 * 4 * _inside("stencil"), "boltzmann": 2 * 19 * 4 * _inside("boltzmann"),
}  # fmt: skip


def beginning(loop: str) -> list[np.ndarray]:
    """The arrays: what is read first, and what is written last."""
    rng, shape = np.random.default_rng(1), SHAPES[loop]
    if loop == "boltzmann":
        f = np.array(WEIGHTS, np.float32)[:, None, None, None] * rng.uniform(0.9, 1.1, shape).astype(np.float32)
        return [f, np.zeros_like(f)]
    x, y = (rng.random(shape, np.float32) for _ in range(2))
    return [x, y, np.zeros_like(x)] if loop == "jacobi" else [x, y]


def expected(loop: str, arrays: list[np.ndarray]) -> np.ndarray:
    """What the last array holds then, or the sum of the first."""
    return _MEANINGS[loop](*[array.astype(np.float64) for array in arrays])


def _jacobi(x: np.ndarray, b: np.ndarray, y: np.ndarray) -> np.ndarray:
    y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - b[1:-1, 1:-1])
    return y


def _stencil(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    at = slice(1, -1)
    around = x[:-2, at, at] + x[2:, at, at] + x[at, :-2, at] + x[at, 2:, at] + x[at, at, :-2] + x[at, at, 2:]
    y[at, at, at] = FACTOR * x[at, at, at] + 0.1 * around
    return y


def _boltzmann(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    came = np.stack([
        f[q][tuple(slice(1 - a, n - 1 - a) for a, n in zip(c, f.shape[1:], strict=True))]
        for q, c in enumerate(VELOCITIES)
    ])  # fmt: skip
    density = came.sum(0)
    u = np.tensordot(np.array(VELOCITIES, float).T, came, 1) / density
    along = 3.0 * np.tensordot(np.array(VELOCITIES, float), u, 1)
    still = density * (1 + along + 0.5 * along**2 - 1.5 * (u**2).sum(0))
    g[:, 1:-1, 1:-1, 1:-1] = (1 - OMEGA) * came + OMEGA * np.array(WEIGHTS)[:, None, None, None] * still
    return g


_MEANINGS: dict[str, Callable[..., np.ndarray]] = {
    "axpy": lambda x, y: y + FACTOR * x, "total": lambda x, _: x.sum(keepdims=True), "jacobi": _jacobi,
    "stencil": _stencil, "boltzmann": _boltzmann,
}  # fmt: skip
