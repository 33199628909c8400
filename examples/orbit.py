"""A transfer from one orbit to another, past a moon, that is aimed by gradients through steps of lengths that fit.

    python examples/orbit.py

writes `orbit.html` (or the file that it is given), a page that runs in any browser.

A spacecraft leaves its circular orbit by a burn and is to reach a place of an outer one. Steps are those of the
Runge-Kutta method (`ti.integrate`) in a time of their own, which goes slowly near the planet and the moon (E. Hairer,
C. Lubich and G. Wanner, "Geometric Numerical Integration", 2006, section VIII.2). The miss is differentiated through
all of them with respect to the burn and to how long it flies.
"""

from __future__ import annotations

import math
import sys

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A transfer that is aimed"
STEPS, RATE, FARTHEST, SCALES = (
    100,
    0.3,
    0.02,
    ti.Vector([1.0, 1.0, 400.0]),
)  # lengths in radii of the inner orbit, times in those of a radian there
MOON, MOON_MASS, PHASE = 2.2, 0.03, 1.3
TARGET = (-3.2 * math.cos(0.3), 3.2 * math.sin(0.3))


def view() -> ti.viz.Particles:
    """The path, the planet, the moon when the path ends, and the target; and how far it is missed."""
    ti.init(arch=ti.cpu)
    state, rate = (ti.Vector.field(5, ti.f32, shape=(), needs_grad=True) for _ in range(2))  # x, y, their rates, time
    aim = ti.Vector.field(3, ti.f32, shape=(), needs_grad=True)  # the burn, and the duration in the time of the steps
    miss = ti.field(ti.f32, shape=(), needs_grad=True)
    points = ti.Vector.field(2, ti.f32, shape=STEPS + 3)

    @ti.func
    def moon(t):
        angle = PHASE + t * MOON**-1.5
        return MOON * ti.Vector([ti.cos(angle), ti.sin(angle)])

    @ti.kernel
    def fall():
        q = state[None]
        x = ti.Vector([q[0], q[1]])
        d = x - moon(q[4])
        r, s = x.norm(), ti.sqrt(d.norm_sqr() + 1e-3)
        pace = aim[None][2] / (r**-1.5 + 0.3 / s)
        a = -x / r**3 - MOON_MASS * d / s**3
        rate[None] = pace * ti.Vector([q[2], q[3], a.x, a.y, 1.0])

    @ti.kernel
    def leave():
        state[None] = ti.Vector([1.0, 0.0, aim[None][0], 1 + aim[None][1], 0.0])

    @ti.kernel
    def show(number: ti.i32):
        q = ti.stop_gradient(state[None])
        points[number] = ti.Vector([q[0], q[1]])
        points[STEPS + 1] = moon(q[4])

    @ti.kernel
    def measure():
        miss[None] = (ti.Vector([state[None][0], state[None][1]]) - ti.Vector(TARGET)).norm(1e-12)

    @ti.kernel
    def turn():
        slope = aim.grad[None]
        step = SCALES * slope + 1e-9
        aim[None] -= ti.min(RATE * miss[None] / slope.dot(step), FARTHEST / ti.sqrt(slope.dot(step))) * step

    path = ti.integrate.RungeKutta(fall, {state: rate}, method="rk4")

    def step() -> None:
        with ti.ad.Tape(miss):
            leave()
            for number in range(STEPS):
                path.step(0.0, 1 / STEPS)
                show(number)
            measure()
        turn()

    def reset() -> None:
        aim[None] = [0.0, 0.3, 6.0]
        points[STEPS], points[STEPS + 2] = [0.0, 0.0], TARGET
        step()

    reset()
    return ti.viz.Particles(
        points, step, reset=reset, bounds=((-3.6, 3.6),) * 2, radius=[2.0] * STEPS + [12, 5, 6], size=(440, 440),
        color=["#3b7dd8"] * STEPS + ["#4d9078", "#888888", "#d95f02"], plots={"miss": lambda: miss[None]},
        plot_label="miss", plot_scale="log", label=TITLE.lower(), unattended_frames=40,
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "orbit.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
