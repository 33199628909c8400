"""Spots and stripes of two substances that react and spread: the model of Gray and Scott.

    python examples/gray_scott.py

writes `gray_scott.html` (or the file that it is given), a page that runs in any browser.

`a` is fed everywhere and eaten by `b`, which doubles with it and decays. Which pattern they make depends on the two
rates: move the sliders slowly, and press on the picture to add some of `b`.
"""

from __future__ import annotations

import sys

import ipywidgets

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "Gray and Scott"
N = 192


def view() -> ipywidgets.VBox:
    """A live view of `b`, with the two rates as sliders."""
    ti.init(arch=ti.cpu)
    a, b = ti.field(ti.f32, shape=(N, N)), ti.field(ti.f32, shape=(N, N))
    next_a, next_b = ti.field(ti.f32, shape=(N, N)), ti.field(ti.f32, shape=(N, N))
    feed, decay = ti.field(ti.f32, shape=()), ti.field(ti.f32, shape=())

    @ti.func
    def spread(q: ti.template(), i, j):
        """The Laplacian with neighbours at the corners, on a torus."""
        left, right, below, above = (i + N - 1) % N, (i + 1) % N, (j + N - 1) % N, (j + 1) % N
        straight = q[left, j] + q[right, j] + q[i, below] + q[i, above]
        across = q[left, below] + q[right, below] + q[left, above] + q[right, above]
        return 0.2 * straight + 0.05 * across - q[i, j]

    @ti.kernel
    def react():
        for i, j in a:
            eaten = a[i, j] * b[i, j] ** 2
            next_a[i, j] = a[i, j] + spread(a, i, j) - eaten + feed[None] * (1 - a[i, j])
            next_b[i, j] = b[i, j] + 0.5 * spread(b, i, j) + eaten - (feed[None] + decay[None]) * b[i, j]

    @ti.kernel
    def fill():
        for i, j in a:
            a[i, j], b[i, j] = 1.0, 0.0
            for k in range(12):
                x, y = (0.37 * k * N) % N, (0.61 * k * k * N) % N
                if (i - x) ** 2 + (j - y) ** 2 < 36:
                    a[i, j], b[i, j] = 0.5, 0.5

    @ti.kernel
    def add(x: ti.f32, y: ti.f32):
        for i, j in b:
            b[i, j] = ti.max(b[i, j], 0.5 * ti.exp(-((i - x) ** 2 + (j - y) ** 2) / 20))

    def step() -> None:
        react()
        a.copy_from(next_a)
        b.copy_from(next_b)

    def poke(pointer: ti.viz.Pointer) -> None:
        if pointer.pressed:
            add(*pointer.position)

    fill()
    shown = ti.viz.Image(
        b, step, reset=fill, pointer=poke, cmap="magma", limits=(0, 0.4), color_label="b", smooth=True,
        steps_per_frame=10, label="the model of Gray and Scott",
    )  # fmt: skip
    sliders = [
        ti.viz.slider(shown, feed, 0.01, 0.08, value=0.037, label="feed"),
        ti.viz.slider(shown, decay, 0.04, 0.07, value=0.06, label="decay"),
    ]
    for _ in range(1500):  # so that there is something to be seen from the start
        step()
    return ipywidgets.VBox([shown, *sliders])


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "gray_scott.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
