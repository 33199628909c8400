"""Waves behind a wall with two slits: the wave equation in two dimensions, with sides that let waves out.

    python examples/double_slit.py

writes `double_slit.html` (or the file that it is given), a page that runs in any browser.

The bright and dark stripes behind the wall are where the waves of both slits meet in step, and out of step. The sliders
change wavelength and distance of the slits; close one slit, and the stripes are gone. Press on the picture to drop
something into the water.
"""

from __future__ import annotations

import sys

import ipywidgets

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "Two slits"
WIDTH, HEIGHT, WALL = 256, 176, 70
SPEED = 0.5  # cells a step


def view() -> ipywidgets.VBox:
    """A live view of the height of the water."""
    ti.init(arch=ti.cpu)
    now, before, after = (ti.field(ti.f32, shape=(WIDTH, HEIGHT)) for _ in range(3))
    time, length, apart = ti.field(ti.i32, shape=()), ti.field(ti.f32, shape=()), ti.field(ti.f32, shape=())
    both = ti.field(ti.i32, shape=())

    @ti.func
    def is_wall(i, j):
        distance = ti.abs(ti.abs(j - HEIGHT / 2) - apart[None] / 2)
        is_closed = (both[None] == 0) & (j < HEIGHT / 2)
        return (i >= WALL) & (i < WALL + 4) & ((distance > 4) | is_closed)

    @ti.kernel
    def move():
        for i, j in now:
            if is_wall(i, j):
                after[i, j] = 0.0
            elif i == 0:
                after[i, j] = ti.sin(2 * ti.math.pi * SPEED * time[None] / length[None])
            else:
                left, right = now[i - 1, j], now[ti.min(i + 1, WIDTH - 1), j]
                below, above = now[i, ti.max(j - 1, 0)], now[i, ti.min(j + 1, HEIGHT - 1)]
                edge = ti.min(WIDTH - 1 - i, j, HEIGHT - 1 - j)
                damped = 0.12 * ti.max(0.0, 1 - edge / 14) ** 2 * (i > WALL)
                bend = left + right + below + above - 4 * now[i, j]
                swing = (1 - damped) * (now[i, j] - before[i, j])
                after[i, j] = now[i, j] + swing + SPEED**2 * bend

    @ti.kernel
    def drop(x: ti.f32, y: ti.f32):
        for i, j in now:
            now[i, j] += ti.exp(-((i - x) ** 2 + (j - y) ** 2) / 12)

    def step() -> None:
        move()
        before.copy_from(now)
        now.copy_from(after)
        time[None] += 1

    def reset() -> None:
        for field in (now, before):
            field.fill(0.0)
        time[None] = 0

    @ti.kernel
    def calm():
        for i, j in now:
            now[i, j], before[i, j] = 0.0, 0.0

    def poke(pointer: ti.viz.Pointer) -> None:
        if pointer.pressed:
            drop(*pointer.position)

    shown = ti.viz.Image(
        now, step, reset=reset, pointer=poke, cmap="coolwarm", limits=(-1.2, 1.2), color_label="height", size=560,
        smooth=True, steps_per_frame=4, unattended_frames=150, label="waves behind two slits",
    )  # fmt: skip
    return ipywidgets.VBox([
        shown,
        ti.viz.slider(shown, length, 8, 30, value=14, label="wavelength"),
        ti.viz.folder("The slits", [
            ti.viz.slider(shown, apart, 16, 100, value=48, label="distance"),
            ti.viz.checkbox(shown, both, value=True, label="both open"),
        ]),
        ti.viz.button(shown, lambda: calm(), label="calm the water"),
    ])  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "double_slit.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
