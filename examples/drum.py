"""A drum that was struck: the wave equation on a membrane, as a lit scene with axes.

    python examples/drum.py

writes `drum.html` (or the file that it is given), a page that runs in any browser.

Where a mouse rests, the view says what is there: the membrane or the rim.
"""

from __future__ import annotations

import sys

import numpy as np

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A drum"
N, SIDE = 65, 0.3  # points a side, m
COURANT, DAMPING = 0.5, 5e-4


def view() -> ti.viz.Scene:
    """The membrane within its rim."""
    ti.init(arch=ti.cpu)
    now, before, after = (ti.field(ti.f32, shape=(N, N)) for _ in range(3))
    x = ti.Vector.field(3, ti.f32, shape=N * N)

    @ti.func
    def place(i, j):
        return SIDE * (ti.Vector([i, j]) / (N - 1) - 0.5)

    @ti.kernel
    def move():
        for i, j in now:
            after[i, j] = 0.0
            if place(i, j).norm() < SIDE / 2:
                bend = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4 * now[i, j]
                after[i, j] = now[i, j] + (1 - DAMPING) * (now[i, j] - before[i, j]) + COURANT**2 * bend

    @ti.kernel
    def show():
        for i, j in now:
            before[i, j], now[i, j] = now[i, j], after[i, j]
            p = place(i, j)
            x[i * N + j] = [p.x, p.y, now[i, j]]

    @ti.kernel
    def strike():
        for i, j in now:
            away = (place(i, j) - ti.Vector([0.05, 0.03])).norm()
            after[i, j] = -0.08 * ti.exp(-((away / 0.025) ** 2))
            now[i, j] = after[i, j]

    def step() -> None:
        move()
        show()

    def reset() -> None:
        strike()
        show()

    reset()
    i, j = np.divmod(np.arange(N * N), N)
    inside = np.hypot(i - N // 2, j - N // 2) < N // 2
    a = np.flatnonzero((i < N - 1) & (j < N - 1))
    squares = np.concatenate([np.stack([a, a + N, a + N + 1], 1), np.stack([a, a + N + 1, a + 1], 1)])
    angle = np.linspace(0, 2 * np.pi, 97)
    rim = SIDE / 2 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1).astype(np.float32)
    shown = ti.viz.Scene(
        step, reset=reset, x_label="x [m]", y_label="y [m]", z_label="height [m]", size=(560, 420),
        bounds=((-0.16, 0.16), (-0.16, 0.16), (-0.08, 0.08)), label="a drum that was struck", unattended_frames=40,
    )  # fmt: skip
    shown.mesh(x, squares[inside[squares].any(axis=1)], color="#d98a4b", two_sided=True, name="the membrane")
    ends = np.stack([np.arange(96), np.arange(1, 97)], 1)
    return shown.lines(rim, width=4.0, indices=ends, color="#5b6b7f", name="the rim")


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "drum.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
