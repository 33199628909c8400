"""Weights from which one step of gradient descent on ten points is enough: model-agnostic meta-learning.

    python examples/maml.py

Each task is a sine with an amplitude and a phase of its own. A small network gets ten of its points, takes one step
along its gradient, and is then measured on others. That measure is differentiated through the step, by the weights it
started from: a gradient of a function that computes a gradient.

Method: Finn, Abbeel and Levine, "Model-agnostic meta-learning for fast adaptation of deep networks", ICML 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tqdm import tqdm

import tinote as ti

__all__ = ["train"]

UNITS, POINTS, TASKS, RATE = 24, 10, 8, 0.02
Weights: Any = ti.types.ndarray(dtype=ti.f64, ndim=1)


@ti.kernel
def error(w: Weights, amplitude: ti.f64, phase: ti.f64, points: Weights) -> ti.f64:
    total = 0.0
    for i in range(points.shape[0]):
        found = 0.0
        for j in range(UNITS):
            found += w[j] * ti.tanh(w[UNITS + j] * points[i] + w[2 * UNITS + j])
        total += (found - amplitude * ti.sin(points[i] + phase)) ** 2
    return total / points.shape[0]


@ti.kernel
def step(w: Weights, slope: Weights, after: Weights):
    for i in range(w.shape[0]):
        after[i] = w[i] - RATE * slope[i]


def train(iterations: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The mean error on 50 new tasks after one step, from the first weights and from those that were learnt."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    random = np.random.default_rng(seed)
    fast = ti.ndarray(ti.f64, 3 * UNITS, needs_grad=True)

    def after_one_step(w: Any, amplitude: float, phase: float, few: Any, others: Any) -> Any:
        step(w, ti.ad.grad(error)(w, amplitude, phase, few), fast)
        return error(fast, amplitude, phase, others)

    def tasks(count: int) -> list[tuple[Any, ...]]:
        return [(*random.uniform((0.5, 0), (3, np.pi)), *random.uniform(-4, 4, (2, POINTS))) for _ in range(count)]

    w = random.normal(size=3 * UNITS) * np.repeat([0.3, 1.0, 1.0], UNITS)
    new, value_and_slope = tasks(50), ti.ad.value_and_grad(after_one_step)
    first = float(np.mean([after_one_step(w, *task) for task in new]))
    mean, square = np.zeros_like(w), np.zeros_like(w)
    bar = tqdm(range(1, iterations + 1), "learning", disable=None, leave=False)
    for k in bar:  # Adam
        errors, slopes = zip(*[value_and_slope(w, *task) for task in tasks(TASKS)], strict=True)
        slope = np.mean(slopes, axis=0)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        w = w - 0.01 * mean / (1 - 0.9**k) / (np.sqrt(square / (1 - 0.99**k)) + 1e-8)
        if bar.disable and k % 50 == 0:  # no terminal, so no bar
            print(f"iteration {k}: mean error {np.mean(errors):.2f}", flush=True)
    return first, float(np.mean([after_one_step(w, *task) for task in new]))


if __name__ == "__main__":
    print("learning from 2,000 batches of 8 tasks (about a minute) …", flush=True)
    print("mean error on new tasks after one step: {:.2f} before, {:.2f} after learning".format(*train()))
