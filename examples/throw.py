"""A throw with drag that is to hit a target: its initial velocity is fitted by gradients through 200 steps.

    python examples/throw.py

writes `throw.html` (or the file that it is given), a page that runs in any browser.
"""

from __future__ import annotations

import sys

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A throw that is fitted"
STEPS, DT, DRAG = 200, 0.01, 0.05  # s, 1/m
RATE = 0.08


def view() -> ti.viz.Particles:
    """The path of the throw, its target as the last point, and the loss."""
    ti.init(arch=ti.cpu)
    x = ti.Vector.field(2, ti.f32, shape=STEPS + 2, needs_grad=True)
    v = ti.Vector.field(2, ti.f32, shape=STEPS + 1, needs_grad=True)
    aim = ti.Vector.field(2, ti.f32, shape=(), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def throw():
        x[0], v[0] = [0.0, 1.0], aim[None]

    @ti.kernel
    def fly(t: ti.i32):
        v[t + 1] = v[t] + DT * (ti.Vector([0.0, -9.81]) - DRAG * v[t].norm() * v[t])
        x[t + 1] = x[t] + DT * v[t + 1]

    @ti.kernel
    def miss():
        loss[None] = (x[STEPS] - ti.Vector([20.0, 5.0])).norm_sqr()

    @ti.kernel
    def descend():
        aim[None] -= RATE * aim.grad[None]

    def step() -> None:
        with ti.ad.Tape(loss=loss):
            throw()
            for t in range(STEPS):
                fly(t)
            miss()
        descend()

    def reset() -> None:
        aim[None] = [7.0, 13.0]
        x[STEPS + 1] = [20.0, 5.0]
        step()

    reset()
    return ti.viz.Particles(
        x, step, reset=reset, bounds=((-2, 24), (-4, 14)), radius=[1.5] * STEPS + [5, 7], size=(520, 360),
        color=["#3b7dd8"] * (STEPS + 1) + ["#d95f02"], x_label="distance [m]", y_label="height [m]", grid=True,
        plots={"loss": lambda: loss[None]}, plot_label="squared miss [m²]", plot_scale="log",
        label="a throw and its target", unattended_frames=40,
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "throw.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
