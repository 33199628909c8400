"""The rollout in tinote: its steps as captured programs, as functions, or checkpointed."""

from __future__ import annotations

import numpy as np

import tinote as ti
from benchmarks.rollout.system import STEPS, TIME_STEP, RolloutSystem, initial_angles

__all__ = ["create"]


class TinoteRollout(RolloutSystem):
    """`style`: how steps run."""

    def __init__(self, style: str) -> None:
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        first = initial_angles()
        x = ti.field(ti.f64, shape=len(first), needs_grad=True)
        v = ti.field(ti.f64, shape=len(first), needs_grad=True)
        loss = ti.field(ti.f64, shape=(), needs_grad=True)

        @ti.kernel
        def kick():
            for i in x:
                v[i] -= TIME_STEP * ti.sin(x[i])

        @ti.kernel
        def drift():
            for i in x:
                x[i] += TIME_STEP * v[i]

        @ti.kernel
        def measure():
            for i in x:
                loss[None] += x[i] * x[i]

        def step(t: int = 0) -> None:
            kick()
            drift()

        captured = ti.capture(step) if style == "captured" else step

        def run() -> None:
            x.from_numpy(first)
            v.fill(0)
            with ti.ad.Tape(loss):
                if style == "checkpointed":
                    ti.ad.checkpoint(step, STEPS, snapshots=8, progress=False)
                else:
                    for _ in range(STEPS):
                        captured()
                measure()

        self._run, self._gradient = run, x.grad

    def run(self, count: int) -> None:
        for _ in range(count):
            self._run()

    def gradient(self) -> np.ndarray:
        return self._gradient.to_numpy()


def create(package: str, style: str) -> TinoteRollout:
    """Return the rollout."""
    return TinoteRollout(style)
