"""Four thousand points that begin close together in the system of Lorenz, and are soon everywhere on its attractor.

    python examples/lorenz.py

writes `lorenz.html` (or the file that it is given), a page that runs in any browser.

Turn the picture with the pointer. The slider changes `rho`: below about 24 all points come to rest.
"""

from __future__ import annotations

import sys

import ipywidgets
import numpy as np

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "The attractor of Lorenz"
N = 4000
SIGMA, BETA = 10.0, 8 / 3


def view() -> ipywidgets.VBox:
    """A live view of the points in space, coloured by their speed."""
    ti.init(arch=ti.cpu)
    x, speed = ti.Vector.field(3, ti.f32, shape=N), ti.field(ti.f32, shape=N)
    rho = ti.field(ti.f32, shape=())

    @ti.func
    def velocity(p):
        return ti.math.vec3(SIGMA * (p.y - p.x), p.x * (rho[None] - p.z) - p.y, p.x * p.y - BETA * p.z)

    @ti.kernel
    def move(dt: ti.f32):
        for i in x:
            a = velocity(x[i])
            b = velocity(x[i] + 0.5 * dt * a)
            c = velocity(x[i] + 0.5 * dt * b)
            d = velocity(x[i] + dt * c)
            x[i] += dt / 6 * (a + 2 * b + 2 * c + d)
            speed[i] = a.norm()

    def step() -> None:
        move(2e-3)

    start = np.random.default_rng(2).normal(scale=0.3, size=(N, 3)).astype(np.float32) + np.float32([1, 1, 20])

    def reset() -> None:
        x.from_numpy(start)

    reset()
    shown = ti.viz.Particles(
        x, step, reset=reset, bounds=((-25, 25), (-30, 30), (0, 50)), color=speed, cmap="viridis", limits=(0, 200),
        color_label="speed", radius=1.2, steps_per_frame=6, unattended_frames=500, label="the attractor of Lorenz",
    )  # fmt: skip
    return ipywidgets.VBox([shown, ti.viz.slider(shown, rho, 5, 40, value=28, label="rho")])


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "lorenz.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
