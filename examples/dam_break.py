"""A dam that breaks: water of particles falls, runs through a basin, climbs the far wall and comes back.

    python examples/dam_break.py

writes `dam_break.html` (or the file that it is given), a page that runs in any browser.

Smoothed particle hydrodynamics (J. J. Monaghan, J. Comput. Phys. 110 (1994) 399): densities are sums over neighbours
(`ti.spatial`), weighted by a spline (H. Wendland, Adv. Comput. Math. 4 (1995) 389), pressures follow Tait's equation,
and an artificial viscosity takes up shocks. Walls are particles that do not move. A slider tilts the basin.
"""

from __future__ import annotations

import math
import sys

import ipywidgets

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A dam that breaks"
WIDTH, HEIGHT, COLUMN, LEVEL, D = 3.0, 1.6, 1.0, 1.0, 0.04  # m; D: between particles
GRAVITY, SOUND, REST, VISCOSITY = 9.81, 30.0, 1000.0, 0.08  # m/s², m/s, kg/m³
H, MASS = 1.3 * D, REST * D**2  # the weight ends at 2 H
DT = 0.35 * H / SOUND


def places() -> tuple[list[tuple[float, float]], int]:
    """Of the water, and then of three layers of wall; and how many are water."""
    columns, rows, wide, high = (round(length / D) for length in (COLUMN, LEVEL, WIDTH, HEIGHT))
    water = [((i + 0.5) * D, (j + 0.5) * D) for i in range(columns) for j in range(rows)]
    around = [(i, j) for i in range(-3, wide + 3) for j in range(-3, high) if j < 0 or not 0 <= i < wide]
    return water + [((i + 0.5) * D, (j + 0.5) * D) for i, j in around], len(water)


def view() -> ipywidgets.VBox:
    """The particles, coloured by their speed, and where the water's front is."""
    ti.init(arch=ti.cpu)
    begin, water = places()
    x, v, a = (ti.Vector.field(2, ti.f32, shape=len(begin)) for _ in range(3))
    density, pressure, speed = (ti.field(ti.f32, shape=len(begin)) for _ in range(3))
    start, front, tilt = ti.Vector.field(2, ti.f32, shape=len(begin)), ti.field(ti.f32, ()), ti.field(ti.f32, ())
    start.from_numpy(begin)
    grid = ti.spatial.CellGrid(x, 2 * H)

    @ti.func
    def weight(r):
        q = r / H
        return 7 / (4 * math.pi * H**2) * (1 - q / 2) ** 4 * (2 * q + 1)

    @ti.func
    def slope(r):
        """Of the weight, over the distance."""
        return -35 / (4 * math.pi * H**4) * (1 - r / (2 * H)) ** 3

    @ti.kernel
    def compress():
        for i in x:
            total = 0.0
            for j in grid.near(x[i]):
                total += MASS * weight((x[i] - x[j]).norm())
            density[i] = ti.max(total, REST)
            pressure[i] = REST * SOUND**2 / 7 * ((density[i] / REST) ** 7 - 1)

    @ti.kernel
    def push():
        for i in range(water):
            total = GRAVITY * ti.Vector([ti.sin(tilt[None]), -ti.cos(tilt[None])])
            for j in grid.near(x[i]):
                d = x[i] - x[j]
                r = d.norm()
                nearing = ti.min((v[i] - v[j]).dot(d), 0.0) * H / (r * r + 0.01 * H * H)
                damping = -2 * VISCOSITY * SOUND * nearing / (density[i] + density[j])
                push = pressure[i] / density[i] ** 2 + pressure[j] / density[j] ** 2 + damping
                total -= MASS * push * slope(r) * d
            a[i] = total

    @ti.kernel
    def move():
        front[None] = 0.0
        for i in range(water):
            v[i] += DT * a[i]
            x[i] += DT * v[i]
            speed[i] = v[i].norm()
            ti.atomic_max(front[None], x[i].x)

    def step() -> None:
        grid.update()
        compress()
        push()
        move()

    @ti.kernel
    def reset():
        for i in x:
            x[i], v[i], speed[i] = start[i], ti.Vector([0.0, 0.0]), 0.0

    reset()
    shown = ti.viz.Particles(
        x, step, reset=reset, bounds=((-3 * D, WIDTH + 3 * D), (-3 * D, HEIGHT)), radius=3.2, size=(600, 330),
        color=speed, cmap="viridis", limits=(0, 5), color_label="speed [m/s]", x_label="x [m]", y_label="y [m]",
        steps_per_frame=12, plots={"front": lambda: front[None]}, plot_label="front [m]", label=TITLE.lower(),
    )  # fmt: skip
    return ipywidgets.VBox([shown, ti.viz.slider(shown, tilt, -0.5, 0.5, value=0.0, label="tilt [rad]")])


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "dam_break.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
