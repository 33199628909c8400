"""Charges on a sphere that go where their energy is least: gradient descent on a tape.

    python examples/thomson.py

writes `thomson.html` (or the file that it is given), a page that runs in any browser.

The energy is written down, its gradient is derived. Where N charges end is not known in general (Thomson's problem);
for 32 it is a soccer ball's corners and faces, and the least energy is 412.2613.
"""

from __future__ import annotations

import sys

import numpy as np

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "Charges on a sphere"
N = 32
RATE = 2e-3


def view() -> ti.viz.Scene:
    """A live view of the charges, with their energy."""
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(3, ti.f32, shape=N, needs_grad=True)
    energy = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def potential():
        for i, j in ti.ndrange(N, N):
            if i < j:
                energy[None] += 1 / (x[i] - x[j]).norm()

    @ti.kernel
    def descend():
        for i in x:
            x[i] = (x[i] - RATE * x.grad[i]).normalized()

    def step() -> None:
        with ti.ad.Tape(loss=energy):
            potential()
        descend()

    start = np.random.default_rng(0).normal(size=(N, 3))
    start[:, 2] = 1 + 0.3 * np.abs(start[:, 2])  # All of them begin on one side.
    start = (start / np.linalg.norm(start, axis=1, keepdims=True)).astype(np.float32)

    def reset() -> None:
        x.from_numpy(start)
        with ti.ad.Tape(loss=energy):
            potential()

    reset()
    shown = ti.viz.Scene(
        step, reset=reset, energy=lambda: energy[None], plot_label="energy", size=(480, 420),
        label="charges on a sphere", unattended_frames=100,
    )  # fmt: skip
    shown.particles(x, radius=0.07, color="#d94f5c")
    shown.particles([[0.0, 0.0, 0.0]], radius=0.97, color="#8fa9c9")
    shown.camera((2.7, 1.7, 1.4), lookat=(0.0, 0.0, 0.0), fov=38)
    return shown


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "thomson.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
