"""A drop that boils: particles that attract and repel each other as Lennard and Jones found, in a bath of heat.

    python examples/liquid.py

writes `liquid.html` (or the file that it is given), a page that runs in any browser.

Forces are between neighbours alone (`ti.spatial`), in a box that is periodic. The bath is Langevin's: friction, and
kicks whose sum keeps the temperature; a particle gets the same kicks in every run (`ti.sampling`). Raise the
temperature slowly: the crystal melts at about 0.4 and the drop is gone at 0.5 or so.
"""

from __future__ import annotations

import sys

import ipywidgets

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A drop that boils"
N, BOX, CUTOFF = 900, 48.0, 2.5  # lengths in diameters of a particle, energies in depths of the potential
DT, FRICTION = 0.008, 0.5


def view() -> ipywidgets.VBox:
    """The particles, coloured by their energy, with the temperature as a slider."""
    ti.init(arch=ti.cpu)
    x, v, force = (ti.Vector.field(2, ti.f32, shape=N) for _ in range(3))
    energy, temperature = ti.field(ti.f32, shape=N), ti.field(ti.f32, shape=())
    time = ti.field(ti.i32, shape=())
    near = ti.spatial.NeighbourList(x, CUTOFF, 0.4, (BOX, BOX), most=64)

    @ti.kernel
    def attract():
        for i in x:
            total, potential = ti.Vector([0.0, 0.0]), 0.0
            for j in near.near(i):
                d = near.displacement(x[i], x[j])
                s = 1 / d.norm_sqr()
                cube = s * s * s
                total -= 24 * s * cube * (2 * cube - 1) * d
                potential += 2 * cube * (cube - 1)
            force[i], energy[i] = total, potential

    @ti.kernel
    def move():
        for i in x:
            numbers = ti.sampling.stream(7, i, time[None])
            kept = ti.exp(-FRICTION * DT)
            kick = ti.sqrt(temperature[None] * (1 - kept * kept)) * ti.Vector([numbers.normal(), numbers.normal()])
            v[i] = kept * (v[i] + DT * force[i]) + kick
            x[i] = near.grid.wrapped(x[i] + DT * v[i])
        time[None] += 1

    def step() -> None:
        near.update()
        attract()
        move()

    @ti.kernel
    def reset():
        for i in x:
            row, column = i // 30, i % 30
            x[i] = ti.Vector([column + 0.5 * (row % 2), row * 0.8660254]) * 1.12 + ti.Vector([7.0, 9.0])
            v[i] = ti.Vector([0.0, 0.0])
        time[None] = 0

    reset()
    shown = ti.viz.Particles(
        x, step, reset=reset, bounds=((0, BOX), (0, BOX)), radius=4.5, color=energy, cmap="plasma", limits=(-3.5, 0.5),
        color_label="energy", steps_per_frame=8, label=TITLE.lower(),
    )  # fmt: skip
    return ipywidgets.VBox([shown, ti.viz.slider(shown, temperature, 0.05, 1.0, value=0.45, label="temperature")])


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "liquid.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
