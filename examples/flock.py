"""A flock: each bird keeps its distance, flies where its neighbours fly, and stays with them (Reynolds, 1987).

    python examples/flock.py

writes `flock.html` (or the file that it is given), a page that runs in any browser.

Press on the picture to scare them.
"""

from __future__ import annotations

import sys

import numpy as np

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A flock"
N = 500
SIGHT, CLOSE = 0.08, 0.025
SLOW, FAST = 0.25, 0.5  # per second


def view() -> ti.viz.Particles:
    """A live view of the birds, coloured by the direction in which they fly."""
    ti.init(arch=ti.cpu)
    x, v = ti.Vector.field(2, ti.f32, shape=N), ti.Vector.field(2, ti.f32, shape=N)
    pull = ti.Vector.field(2, ti.f32, shape=N)
    heading, fright, hawk = ti.field(ti.f32, shape=N), ti.field(ti.f32, shape=()), ti.Vector.field(2, ti.f32, shape=())

    @ti.kernel
    def look_around():
        for i in x:
            away, their_v, their_x, seen = ti.math.vec2(0), ti.math.vec2(0), ti.math.vec2(0), 0
            for j in range(N):
                d = x[j] - x[i]
                distance = d.norm()
                if i != j and distance < SIGHT:
                    seen += 1
                    their_v += v[j]
                    their_x += d
                    if distance < CLOSE:
                        away -= d / (distance + 1e-4)
            pull[i] = 1.2 * away
            if seen > 0:
                pull[i] += 3.0 * (their_v / seen - v[i]) + 6.0 * their_x / seen
            d = x[i] - hawk[None]
            pull[i] += fright[None] * 6.0 * ti.exp(-d.norm_sqr() / 0.02) * d.normalized(1e-4)

    @ti.kernel
    def fly(dt: ti.f32):
        for i in x:
            pull[i] += 4.0 * (ti.max(0.12 - x[i], 0.0) - ti.max(x[i] - 0.88, 0.0)) / 0.12
            v[i] += dt * pull[i]
            speed = v[i].norm(1e-6)
            v[i] *= ti.math.clamp(speed, SLOW, FAST) / speed
            x[i] += dt * v[i]
            heading[i] = ti.atan2(v[i].y, v[i].x)
        fright[None] *= 0.97

    def step() -> None:
        look_around()
        fly(0.01)

    rng = np.random.default_rng(4)
    angle = rng.uniform(0, 2 * np.pi, N)
    places = rng.uniform(0.15, 0.85, (N, 2)).astype(np.float32)
    velocities = 0.3 * np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)

    def reset() -> None:
        x.from_numpy(places)
        v.from_numpy(velocities)
        fright[None] = 0.0

    def scare(pointer: ti.viz.Pointer) -> None:
        if pointer.pressed:
            hawk[None], fright[None] = pointer.position, 1.0

    reset()
    return ti.viz.Particles(
        x, step, reset=reset, pointer=scare, color=heading, cmap="plasma", limits=(-np.pi, np.pi), colorbar=False,
        radius=3, trail=8, steps_per_frame=2, unattended_frames=120, label="a flock",
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "flock.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
