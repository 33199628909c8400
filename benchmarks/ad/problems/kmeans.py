"""The objective of k-means, f(c) = Σᵢ minⱼ |pᵢ − cⱼ|², its gradient, and its Hessian times a vector of ones."""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem, smallest
from benchmarks.contract import relative_deviation

__all__ = ["KMeans"]

DIMENSIONS = 8


class KMeans(Problem):
    """`n` points in 8 dimensions and `k` centroids. The derivative has two rows: gradient, and product."""

    wrt = ("centroids",)

    def __init__(self, n: int, k: int) -> None:
        random = np.random.default_rng(0)
        self.inputs = {
            "centroids": random.uniform(-1, 1, (k, DIMENSIONS)),
            "points": random.uniform(-1, 1, (n, DIMENSIONS)),
        }

    def primal(self, centroids: np.ndarray, points: np.ndarray) -> np.ndarray:
        return smallest(((points[:, None] - centroids[None]) ** 2).sum(-1)).sum()

    def deviation(self, value: np.ndarray, derivative: np.ndarray | None) -> float:
        if derivative is None:
            return super().deviation(value, None)
        gradient, product = derivative
        centroids, points = self.inputs["centroids"], self.inputs["points"]
        nearest = ((points[:, None] - centroids[None]) ** 2).sum(-1).argmin(-1)
        expected = 2.0 * np.bincount(nearest, minlength=len(centroids)).repeat(DIMENSIONS)
        return max(super().deviation(value, gradient), relative_deviation(product, expected))


create = KMeans
