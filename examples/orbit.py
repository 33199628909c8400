"""A transfer from one orbit to another, past a moon, that is aimed by gradients through steps of lengths that fit.

    python examples/orbit.py

writes `orbit.html` (or the file that it is given), a page that runs in any browser.

A spacecraft leaves its circular orbit by a burn and is to reach a place of an outer one. `ti.integrate` chooses the
steps (Dormand and Prince): they are short near the planet and the moon. The miss is differentiated through all of them
with respect to the burn and to the time that it flies.
"""

from __future__ import annotations

import math
import sys

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A transfer that is aimed"
#: Points of the path; lengths are in radii of the inner orbit, times in those of a radian there.
POINTS, RATE, FARTHEST, SCALES = 120, 0.3, 0.02, ti.Vector([1.0, 1.0, 100.0])
MOON, MOON_MASS, PHASE = 2.2, 0.03, 1.3
TARGET = (-3.2 * math.cos(0.3), 3.2 * math.sin(0.3))


def view() -> ti.viz.Particles:
    """The path, the planet, the moon when the path ends, and the target; and how far it is missed."""
    ti.init(arch=ti.cpu)
    state, rate = (ti.Vector.field(4, ti.f32, shape=(), needs_grad=True) for _ in range(2))  # x, y, and their rates
    path = ti.Vector.field(4, ti.f32, shape=POINTS)
    aim = ti.Vector.field(3, ti.f32, shape=(), needs_grad=True)  # the burn, and the time of flight
    miss = ti.field(ti.f32, shape=(), needs_grad=True)
    points = ti.Vector.field(2, ti.f32, shape=POINTS + 3)

    @ti.func
    def moon(t):
        angle = PHASE + t * MOON**-1.5
        return MOON * ti.Vector([ti.cos(angle), ti.sin(angle)])

    @ti.kernel
    def fall(part: ti.f32):  # of the flight
        q, duration = state[None], aim[None][2]
        x = ti.Vector([q[0], q[1]])
        d = x - moon(part * duration)
        a = -x / x.norm() ** 3 - MOON_MASS * d / ti.sqrt(d.norm_sqr() + 1e-3) ** 3
        rate[None] = duration * ti.Vector([q[2], q[3], a.x, a.y])

    @ti.kernel
    def leave():
        state[None] = ti.Vector([1.0, 0.0, aim[None][0], 1 + aim[None][1]])

    @ti.kernel
    def show():
        for i in path:
            points[i] = ti.Vector([path[i][0], path[i][1]])
        points[POINTS + 1] = moon(aim[None][2])

    @ti.kernel
    def measure():
        miss[None] = (ti.Vector([state[None][0], state[None][1]]) - ti.Vector(TARGET)).norm(1e-12)

    @ti.kernel
    def turn():
        slope = aim.grad[None]
        step = SCALES * slope + 1e-9
        aim[None] -= ti.min(RATE * miss[None] / slope.dot(step), FARTHEST / ti.sqrt(slope.dot(step))) * step

    flight = ti.integrate.RungeKutta(fall, {state: rate}, method="dopri5")
    moments = [i / (POINTS - 1) for i in range(POINTS)]

    def step() -> None:
        with ti.ad.Tape(miss):
            leave()
            flight.solve(0.0, 1.0, rtol=1e-5, atol=1e-6, at=moments, into={state: path})
            measure()
        show()
        turn()

    def reset() -> None:
        aim[None] = [0.0, 0.3, 9.0]
        points[POINTS], points[POINTS + 2] = [0.0, 0.0], TARGET
        step()

    reset()
    return ti.viz.Particles(
        points, step, reset=reset, bounds=((-3.6, 3.6),) * 2, radius=[2.0] * POINTS + [12, 5, 6], size=(440, 440),
        color=["#3b7dd8"] * POINTS + ["#4d9078", "#888888", "#d95f02"], plots={"miss": lambda: miss[None]},
        plot_label="miss", plot_scale="log", label=TITLE.lower(), unattended_frames=40,
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "orbit.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
