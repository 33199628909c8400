"""Conway's game of life on a torus, in integers: what runs here is exactly what runs in Python.

    python examples/life.py

writes `life.html` (or the file that it is given), a page that runs in any browser.

Press on the picture to bring cells to life.
"""

from __future__ import annotations

import sys

import numpy as np

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "The game of life"
WIDTH, HEIGHT = 160, 112


def view() -> ti.viz.Image:
    """A live view of the cells: those that have just died fade."""
    ti.init(arch=ti.cpu)
    alive, after = ti.field(ti.i32, shape=(WIDTH, HEIGHT)), ti.field(ti.i32, shape=(WIDTH, HEIGHT))
    shade = ti.field(ti.f32, shape=(WIDTH, HEIGHT))

    @ti.kernel
    def grow():
        for i, j in alive:
            around = 0
            for di, dj in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                if ti.static(di != 0 or dj != 0):
                    around += alive[(i + di + WIDTH) % WIDTH, (j + dj + HEIGHT) % HEIGHT]
            after[i, j] = int(around == 3 or (alive[i, j] == 1 and around == 2))

    @ti.kernel
    def show():
        for i, j in alive:
            alive[i, j] = after[i, j]
            shade[i, j] = ti.max(float(alive[i, j]), 0.9 * ti.min(shade[i, j], 0.6))

    @ti.kernel
    def draw(column: ti.i32, row: ti.i32):
        for di, dj in ti.ndrange((-1, 2), (-1, 2)):
            i, j = (column + di + WIDTH) % WIDTH, (row + dj + HEIGHT) % HEIGHT
            alive[i, j], shade[i, j] = 1, 1.0

    def step() -> None:
        grow()
        show()

    start = (np.random.default_rng(5).random((WIDTH, HEIGHT)) < 0.25).astype(np.int32)

    def reset() -> None:
        alive.from_numpy(start)
        shade.from_numpy(start.astype(np.float32))

    def press(pointer: ti.viz.Pointer) -> None:
        if pointer.pressed:
            draw(*pointer.element)

    reset()
    return ti.viz.Image(
        shade, step, reset=reset, pointer=press, cmap="inferno", limits=(0, 1), colorbar=False, size=560,
        unattended_frames=80, label="the game of life",
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "life.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
