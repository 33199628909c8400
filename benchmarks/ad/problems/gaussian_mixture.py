"""The log-likelihood of a mixture of Gaussians with full covariances and a Wishart prior.

With weights α, means μ, and for each component a lower triangular matrix Q whose diagonal is the exponential of the
first d numbers of a row of `icf` and whose strict lower triangle, column after column, are the others:

    Σᵢ logsumexpₖ(αₖ + Σ log diag Qₖ − ½ |Qₖ (xᵢ − μₖ)|²) − n logsumexp(α)
        + Σₖ (½ γ² |Qₖ|² − m Σ log diag Qₖ),      without the terms that are constant
"""

from __future__ import annotations

import numpy as np

from benchmarks.ad.problems.problem import Problem, log_sum_exp

__all__ = ["GAMMA", "PRIOR", "GaussianMixture"]

GAMMA = 1.0
PRIOR = 0.0


class GaussianMixture(Problem):
    """`n` points in `d` dimensions, `k` components."""

    wrt = ("alphas", "means", "icf")

    def __init__(self, n: int, d: int, k: int) -> None:
        random = np.random.default_rng(0)
        self.inputs = {
            "alphas": random.standard_normal(k),
            "means": random.uniform(0, 1, (k, d)),
            "icf": random.standard_normal((k, d * (d + 1) // 2)) * 0.5,
            "x": random.standard_normal((n, d)),
        }

    def primal(self, alphas: np.ndarray, means: np.ndarray, icf: np.ndarray, x: np.ndarray) -> np.ndarray:
        n, d = x.shape
        logs, lower = icf[:, :d], icf[:, d:]
        terms = np.empty((n, len(alphas)), np.result_type(alphas, means, icf))
        total = 0.0
        columns, rows = np.triu_indices(d, 1)  # of the lower triangle, column after column
        for k in range(len(alphas)):
            q = np.diag(np.exp(logs[k]))
            q[rows, columns] = lower[k]
            whitened = (x - means[k]) @ q.T
            terms[:, k] = alphas[k] + logs[k].sum() - 0.5 * (whitened**2).sum(1)
            total = total + 0.5 * GAMMA**2 * (q**2).sum() - PRIOR * logs[k].sum()
        return total + log_sum_exp(terms).sum() - n * log_sum_exp(alphas)


create = GaussianMixture
