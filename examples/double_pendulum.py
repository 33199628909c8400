"""A double pendulum: its motion, its energy, and how the angle and the angular velocity of its upper arm go together.

    python examples/double_pendulum.py

writes `double_pendulum.html` (or the file that it is given), a page that runs in any browser.
"""

from __future__ import annotations

import sys

import ipywidgets

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A double pendulum"
G, DT = 9.81, 2e-3  # m/s², s; both arms are 1 m long, and both masses 1 kg


def view() -> ipywidgets.VBox:
    """The pendulum with its energy, and its phase plot."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    state = ti.Vector.field(4, ti.f64, shape=())  # two angles, two angular velocities
    x = ti.Vector.field(2, ti.f64, shape=3)

    @ti.func
    def rates(s):
        d = s[0] - s[1]
        mass = 3 - ti.cos(2 * d)
        pull = 3 * G * ti.sin(s[0]) + G * ti.sin(s[0] - 2 * s[1])
        first = -(pull + 2 * ti.sin(d) * (s[3] ** 2 + s[2] ** 2 * ti.cos(d))) / mass
        second = 2 * ti.sin(d) * (2 * s[2] ** 2 + 2 * G * ti.cos(s[0]) + s[3] ** 2 * ti.cos(d)) / mass
        return ti.Vector([s[2], s[3], first, second])

    @ti.kernel
    def place():
        x[1] = [ti.sin(state[None][0]), -ti.cos(state[None][0])]
        x[2] = x[1] + ti.Vector([ti.sin(state[None][1]), -ti.cos(state[None][1])])

    @ti.kernel
    def move():
        s = state[None]
        a = rates(s)
        b = rates(s + DT / 2 * a)
        c = rates(s + DT / 2 * b)
        state[None] = s + DT / 6 * (a + 2 * b + 2 * c + rates(s + DT * c))

    @ti.kernel
    def kinetic() -> ti.f64:
        s = state[None]
        return s[2] ** 2 + 0.5 * s[3] ** 2 + s[2] * s[3] * ti.cos(s[0] - s[1])

    @ti.kernel
    def potential() -> ti.f64:
        return -G * (2 * ti.cos(state[None][0]) + ti.cos(state[None][1]))

    def step() -> None:
        move()
        place()

    def reset() -> None:
        state[None] = [2.2, 1.1, 0.0, 0.0]
        place()

    reset()
    energies = {"kinetic": kinetic, "potential": potential, "total": lambda: kinetic() + potential()}
    shared = {"reset": reset, "dt": DT, "steps_per_frame": 8, "unattended_frames": 200}
    arms = ti.viz.Particles(
        x, step, bounds=((-2.2, 2.2), (-2.2, 2.2)), radius=[3, 9, 9], edges=[[0, 1], [1, 2]], trail=60, axes=True,
        x_label="x [m]", y_label="y [m]", plots=energies, plot_label="energy [J]", size=420,
        label="double pendulum", **shared,
    )  # fmt: skip
    phase = ti.viz.Plot(
        {"angle": lambda: state[None][0], "velocity": lambda: state[None][2]}, step, x="angle", size=(480, 300),
        x_label="angle of the upper arm [rad]", label="angular velocity [rad/s]", **shared,
    )  # fmt: skip
    return ipywidgets.VBox([arms, phase])


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "double_pendulum.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
