"""How far a ball flies: 50 throws at ten angles and with five kinds of drag, spread over all cores.

    python examples/ranges.py

prints for each drag the angle at which the ball flies farthest: 45° in vacuum, and the lower, the more it is slowed.
In a notebook with `%load_ext tinote` a view shows the 50 runs, while they come in.
"""

from __future__ import annotations

import numpy as np

import tinote as ti

__all__ = ["flight", "main"]

ANGLES, DRAGS = np.linspace(20.0, 65.0, 10), [0.0, 0.002, 0.01, 0.05, 0.2]  # degrees, 1/m
SPEED, DT = 30.0, 1e-3  # m/s, s

ti.init(arch=ti.cpu, default_fp=ti.f64)


@ti.kernel
def fly(angle: ti.f64, drag: ti.f64) -> ti.f64:
    x = ti.Vector([0.0, 0.0])
    v = SPEED * ti.Vector([ti.cos(angle), ti.sin(angle)])
    while x.y >= 0.0:
        v += DT * (ti.Vector([0.0, -9.81]) - drag * v.norm() * v)
        x += DT * v
    return x.x


def flight(angle: float, drag: float) -> dict[str, float]:
    """One run."""
    return {"distance": fly(np.deg2rad(angle), drag)}


def main() -> None:
    """All runs, and the best of each drag."""
    print(f"throwing a ball {len(DRAGS) * len(ANGLES)} times …", flush=True)
    table = ti.sweep(flight, {"drag": DRAGS, "angle": ANGLES}, best="distance", direction="maximize")
    far = np.array(table["distance"]).reshape(len(DRAGS), len(ANGLES))
    for drag, row in zip(DRAGS, far, strict=True):
        print(f"drag {drag:5.3f} / m: {row.max():5.1f} m at {ANGLES[row.argmax()]:.0f}°")


if __name__ == "__main__":
    main()
