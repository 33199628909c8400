"""Smoke in a wind tunnel, around an obstacle whose shape is fitted so that it pushes the air less.

    python examples/smoke.py

writes `smoke.html` (or the file that it is given), a page that runs in any browser.

Air is carried along and made free of divergence by a pressure (J. Stam, "Stable fluids", SIGGRAPH 1999) that two cycles
of multigrid find (`ti.multigrid`). The obstacle's outline is r(θ) = R (1 + Σ aₙ cos n θ), with a constant area; the aₙ
descend on how much the air's velocity is changed in a step, along a gradient through the cycles.
"""

from __future__ import annotations

import sys

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "Smoke around a fitted obstacle"
NX, NY, WAVES = 128, 64, (2, 3, 4, 5)  # lengths in cells, times in steps
WIND, RADIUS, CLOSED, RATE = 0.8, 10.0, 2e-3, 5e-4


def view() -> ti.viz.Image:
    """The smoke, and what is made small."""
    ti.init(arch=ti.cpu)
    u, v = ti.field(ti.f32, (NX + 1, NY), needs_grad=True), ti.field(ti.f32, (NX, NY + 1), needs_grad=True)
    smoke, *before = (ti.field(ti.f32, shape) for shape in ((NX, NY), u.shape, v.shape, (NX, NY)))
    k, source, p = (ti.field(ti.f32, (NX, NY), needs_grad=True) for _ in range(3))
    a, loss = ti.field(ti.f32, len(WAVES), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    pressure = ti.multigrid.Diffusion(source, p, k, size=(NX, NY), boundary=(("neumann", "dirichlet"), "neumann"))

    @ti.kernel
    def outline():
        for i, j in k:
            d = ti.Vector([i + 0.5 - NX / 3, j + 0.5 - NY / 2])
            r, square = 1.0, 1.0
            for row, n in ti.static(enumerate(WAVES)):
                r += a[row] * ti.cos(n * ti.atan2(d.y, d.x))
                square += a[row] ** 2 / 2
            k[i, j] = CLOSED + (1 - CLOSED) / (1 + ti.exp(RADIUS * r / ti.sqrt(square) - d.norm()))

    @ti.func
    def through(axis: ti.Template, i, j):
        """How open a face is, as for `ti.multigrid`."""
        low = k[ti.max(i - 1, 0), j] if ti.static(axis == 0) else k[i, ti.max(j - 1, 0)]
        high = k[ti.min(i, NX - 1), ti.min(j, NY - 1)]
        return 2 * low * high / (low + high) if ti.static(axis == 0) or 0 < j < NY else 0.0

    @ti.kernel
    def squeeze():
        for i, j in source:
            flow = through(0, i, j) * before[0][i, j] - through(0, i + 1, j) * before[0][i + 1, j]
            source[i, j] = flow + through(1, i, j) * before[1][i, j] - through(1, i, j + 1) * before[1][i, j + 1]

    @ti.kernel
    def push():
        for i, j in u:
            slope = (p[i, j] if i < NX else -p[i - 1, j]) - p[ti.max(i - 1, 0), j]
            u[i, j] = through(0, i, j) * (before[0][i, j] - slope)
            loss[None] += (u[i, j] - before[0][i, j]) ** 2
        for i, j in v:
            v[i, j] = through(1, i, j) * (before[1][i, j] + p[i, ti.max(j - 1, 0)] - p[i, ti.min(j, NY - 1)])
            loss[None] += (v[i, j] - before[1][i, j]) ** 2

    @ti.func
    def carried(q, di, dj, i, j):
        """What air brings to a place from where it was a step ago. The first number of `q` is at (di, dj)."""
        x, y = i + di, j + dj
        return sample(q, i - sample(u, x, y - 0.5), j - sample(v, x - 0.5, y))

    @ti.func
    def sample(q, x, y):
        x, y = ti.clamp(x, 0.0, q.shape[0] - 1.001), ti.clamp(y, 0.0, q.shape[1] - 1.001)
        (i, j), (s, t) = (ti.cast(x, ti.i32), ti.cast(y, ti.i32)), (ti.math.fract(x), ti.math.fract(y))
        return (1 - s) * ((1 - t) * q[i, j] + t * q[i, j + 1]) + s * ((1 - t) * q[i + 1, j] + t * q[i + 1, j + 1])

    @ti.kernel
    def carry():
        for i, j in before[0]:
            before[0][i, j] = carried(u, 0.0, 0.5, i, j) if i > 0 else WIND
        for i, j in before[1]:
            before[1][i, j] = carried(v, 0.5, 0.0, i, j)
        for i, j in before[2]:
            before[2][i, j] = carried(smoke, 0.5, 0.5, i, j) * ti.min(1.0, 2 * k[i, j])
        for i, j in smoke:
            smoke[i, j] = before[2][i, j] if i > 1 else 1.0 * (j % 8 < 3)

    @ti.kernel
    def descend():
        for n in a:
            a[n] -= RATE * ti.clamp(a.grad[n], -5.0, 5.0)

    def step() -> None:
        carry()
        with ti.ad.Tape(loss):
            outline()
            squeeze()
            pressure.cycle(2)
            push()
        descend()

    def reset() -> None:
        for field, value in ((u, WIND), (v, 0.0), (smoke, 0.0), (p, 0.0), (a, 0.0)):
            field.fill(value)
        outline()

    reset()
    return ti.viz.Image(
        smoke, step, reset=reset, cmap="magma", limits=(0, 1), smooth=True, size=520, steps_per_frame=2,
        plots={"push": lambda: loss[None]}, plot_label="push", plot_scale="log", label=TITLE.lower(),
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "smoke.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
