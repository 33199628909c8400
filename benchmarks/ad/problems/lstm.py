"""How well a stack of element-wise LSTM layers predicts the next character of a text.

A layer with forget, input and output gates and a change, for an input x, cell c and hidden h, all of them vectors of
14 bits, with weights w and biases b a gate:

    c' = c σ(w₀ x + b₀) + σ(w₁ h + b₁) tanh(w₃ h + b₃),      h' = σ(w₂ x + b₂) tanh(c')

The input is scaled by `extra[0]`, and the last h gives the prediction p = extra[1] h + extra[2]. The result is the mean
over steps and bits of −(bit of the next character) (p − log(2 + Σ exp p)).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.ad.problems.problem import Problem

__all__ = ["BITS", "Lstm"]

BITS = 14


class Lstm(Problem):
    """`layers` layers, a text of `length` characters; one step less than it has characters."""

    wrt = ("weights", "extra")

    def __init__(self, layers: int, length: int) -> None:
        random = np.random.default_rng(0)
        self.inputs = {
            "weights": random.uniform(-1, 1, (layers, 2, 4, BITS)),
            "extra": random.uniform(-1, 1, (3, BITS)),
            "state": random.uniform(-1, 1, (layers, 2, BITS)),
            "text": random.integers(0, 2, (length, BITS)).astype(float),
        }

    def primal(self, weights: np.ndarray, extra: np.ndarray, state: np.ndarray, text: np.ndarray) -> np.ndarray:
        def sigmoid(v: np.ndarray) -> np.ndarray:
            return 1 / (1 + np.exp(-v))

        hidden, cell = list(state[:, 0]), list(state[:, 1])
        total = 0.0
        for now, following in pairwise(text):
            x = now * extra[0]
            for layer, (w, b) in enumerate(weights):
                h, c = hidden[layer], cell[layer]
                c = c * sigmoid(w[0] * x + b[0]) + sigmoid(w[1] * h + b[1]) * np.tanh(w[3] * h + b[3])
                x = sigmoid(w[2] * x + b[2]) * np.tanh(c)
                hidden[layer], cell[layer] = x, c
            p = extra[1] * x + extra[2]
            total = total - (following * (p - np.log(2 + np.exp(p).sum()))).sum()
        return total / ((len(text) - 1) * BITS)


create = Lstm
