"""A network learns the distance from a star: it meets random points, and its picture of all others takes shape.

    python examples/network.py

writes `network.html` (or the file that it is given), a page that runs in any browser, training included.

White is where the network says 0, the outline; bands are at the same distance from it, inside and outside. Change the
star by the slider, or drag it: the network, which has learned another one, follows.
"""

from __future__ import annotations

import math
import sys

import ipywidgets

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A network that learns a distance"
N, POINTS = 64, 256  # pixels a side, random points a step


def view() -> ipywidgets.VBox:
    """A live view of what the network says of each pixel."""
    ti.init(arch=ti.cpu)
    net = ti.nn.MLP([2, 24, 24, 1], "sin", init="he", key=3)
    adam = ti.nn.Adam(net, 4e-3, (0.9, 0.99))
    pixels = ti.field(ti.f32, shape=(N, N))
    tips, rate, centre = ti.field(ti.i32, shape=()), adam.rate, ti.Vector.field(2, ti.f32, shape=())
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.func
    def distance(point):
        """From the outline of the star, negative inside: by its symmetries, from one edge between tip and notch."""
        p = point - centre[None]
        half = math.pi / tips[None]
        angle = ti.abs((ti.atan2(p.x, p.y) + 2 * math.pi + half) % (2 * half) - half)
        q = p.norm() * ti.Vector([ti.cos(angle), ti.sin(angle)]) - ti.Vector([0.7, 0.0])
        edge = 0.35 * ti.Vector([ti.cos(half), ti.sin(half)]) - ti.Vector([0.7, 0.0])
        along = ti.math.clamp(q.dot(edge) / edge.norm_sqr(), 0.0, 1.0)
        return (q - along * edge).norm() * ti.math.sign(q.y * edge.x - q.x * edge.y) * -1

    @ti.func
    def learned(point):
        return net(4 * point)[0]

    @ti.kernel
    def measure():
        for i in range(POINTS):
            u = ti.sampling.stream(1, i, adam.count[None]).uniforms()
            point = 2 * u - 1
            loss[None] += (learned(point) - distance(point)) ** 2 / POINTS

    @ti.kernel
    def paint():
        for i, j in pixels:
            d = learned(2 * ti.Vector([i, j]) / N - 1)
            bands = 0.8 + 0.2 * ti.cos(60 * d)
            pixels[i, j] = ti.math.sign(d) * bands * (1 - ti.exp(-10 * ti.abs(d)))

    def step() -> None:
        with ti.ad.Tape(loss):
            measure()
        adam.step()

    def train() -> None:
        for _ in range(4):
            step()
        paint()

    def begin() -> None:
        net.begin(3)
        adam.begin()
        paint()

    @ti.kernel
    def place(x: ti.f32, y: ti.f32):
        centre[None] = 2 * ti.Vector([x, y]) / N - 1

    def drag(pointer: ti.viz.Pointer) -> None:
        if pointer.pressed:
            place(*pointer.position)

    paint()
    shown = ti.viz.Image(
        pixels, train, reset=begin, pointer=drag, cmap="RdBu_r", limits=(-1, 1), size=480, smooth=True,
        plots={"loss": lambda: loss[None]}, plot_scale="log", unattended_frames=200, label="what a network has learned",
    )  # fmt: skip
    return ipywidgets.VBox([
        shown,
        ti.viz.slider(shown, tips, 3, 9, value=5, label="tips"),
        ti.viz.slider(shown, rate, 0.0, 0.02, value=0.004, label="rate"),
    ])  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "network.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
