"""A cloth that falls onto a knot that turns, and is carried along.

    python examples/cloth_on_knot.py

writes `cloth_on_knot.html` (or the file that it is given), a page that runs in any browser.

The knot is a surface of triangles. Its tree (`ti.geometry`) is refitted in each step, and asked for the point of the
surface that is nearest to each mass of the cloth, if one is within a thickness: there the cloth is pushed away, and
rubs. Springs join the masses to those next to them and to those two places away, which resist bending.
"""

from __future__ import annotations

import sys

import ipywidgets
import numpy as np

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "A cloth on a knot"
N, LENGTH = 40, 1.9  # masses along a side, and the side in metres
ALONG, AROUND, TUBE = 72, 8, 0.18  # triangles' corners along the knot and around it, and its thickness
THICKNESS, DT, DRAG, STIFFNESS, FRICTION, GRAVITY = 0.05, 1.5e-3, 0.4, 4e3, 0.6, 9.8  # in m, s, and for 1 kg
NEAR = [(i, j) for i in range(-2, 3) for j in range(-2, 3) if i * i + j * j in (1, 2, 4)]


def knot() -> tuple[np.ndarray, np.ndarray]:
    """A trefoil: corners, and the three of each triangle, counterclockwise from outside."""
    s, a = np.meshgrid(*[2 * np.pi * np.arange(n) / n for n in (ALONG, AROUND)], indexing="ij")
    curve = np.stack([np.sin(s) + 2 * np.sin(2 * s), np.cos(s) - 2 * np.cos(2 * s), -1.2 * np.sin(3 * s)], -1) / 3.4
    tangent = np.gradient(np.concatenate([curve[-1:], curve, curve[:1]]), axis=0)[1:-1]
    u = np.cross(tangent, [0.0, 0.0, 1.0])
    u, w = (v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (u, np.cross(tangent, u)))
    x = curve + TUBE * (np.cos(a)[..., None] * u + np.sin(a)[..., None] * w)
    i, j = np.divmod(np.arange(ALONG * AROUND), AROUND)
    place = [((i + k) % ALONG) * AROUND + (j + m) % AROUND for k, m in ((0, 0), (1, 0), (1, 1), (0, 1))]
    triangles = np.concatenate([np.stack([place[k] for k in corner], -1) for corner in ((0, 1, 2), (0, 2, 3))])
    return x.reshape(-1, 3).astype(np.float32), triangles.astype(np.int32)


def view() -> ipywidgets.VBox:
    """The cloth and the knot, with a slider for how fast it turns."""
    ti.init(arch=ti.cpu)
    corners, faces = knot()
    rest, body = (ti.Vector.field(3, ti.f32, shape=len(corners)) for _ in range(2))
    triangles = ti.Vector.field(3, ti.i32, shape=len(faces))
    rest.from_numpy(corners)
    triangles.from_numpy(faces)
    mesh = ti.geometry.TriangleTree(body, triangles)
    x, v, force = (ti.Vector.field(3, ti.f32, shape=(N, N)) for _ in range(3))
    angle, speed = (ti.field(ti.f32, shape=()) for _ in range(2))

    @ti.kernel
    def turn():
        angle[None] += DT * speed[None]
        c, s = ti.cos(angle[None]), ti.sin(angle[None])
        for i in body:
            body[i] = ti.Vector([c * rest[i][0] - s * rest[i][1], s * rest[i][0] + c * rest[i][1], rest[i][2]])

    @ti.kernel
    def push():
        for i, j in x:
            total = ti.Vector([0.0, 0.0, -GRAVITY]) - DRAG * v[i, j]
            for k in ti.static(range(len(NEAR))):
                m, n = i + NEAR[k][0], j + NEAR[k][1]
                if 0 <= m < N and 0 <= n < N:
                    d = x[m, n] - x[i, j]
                    length = LENGTH / (N - 1) * ti.static(float(np.hypot(*NEAR[k])))
                    total += STIFFNESS * (1 - length / d.norm()) * d + 1.5 * (v[m, n] - v[i, j])
            force[i, j] = total

    @ti.kernel
    def move():
        for i in ti.grouped(x):
            v[i] += DT * force[i]
            distance, triangle, weights = mesh.nearest(x[i], THICKNESS)
            if triangle >= 0:
                at = mesh.at(triangle, weights)
                normal = (x[i] - at) / ti.max(distance, 1e-6)
                slip = v[i] - speed[None] * ti.Vector([-at[1], at[0], 0.0])
                inwards = ti.min(slip.dot(normal), 0.0)
                along = slip - slip.dot(normal) * normal
                rub = ti.min(-FRICTION * inwards / (along.norm() + 1e-6) + 8 * DT, 1.0)
                v[i] += -rub * along + (0.05 * (THICKNESS - distance) / DT - inwards) * normal
            x[i] += DT * v[i]

    def step() -> None:
        turn()
        mesh.refit()
        push()
        move()

    @ti.kernel
    def reset():
        angle[None] = 0.0
        v.fill(0.0)
        for i, j in x:
            x[i, j] = ti.Vector([i / (N - 1) - 0.5, j / (N - 1) - 0.5, 0.0]) * LENGTH + ti.Vector([0.0, 0.0, 1.0])

    speed[None] = 0.8
    reset()
    turn()
    mesh.update()
    place = np.arange(N * N).reshape(N, N)
    a, b, c, d = (one.ravel() for one in (place[:-1, :-1], place[1:, :-1], place[1:, 1:], place[:-1, 1:]))
    shown = ti.viz.Scene(step, reset=reset, size=(560, 420), steps_per_frame=8, label=TITLE.lower())
    shown.mesh(body, triangles, color="#8fa9c9")
    shown.mesh(x, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]), color="#d94f5c", two_sided=True)
    shown.camera((2.6, -2.4, 1.9), lookat=(0.0, 0.0, 0.05), fov=38)
    return ipywidgets.VBox([shown, ti.viz.slider(shown, speed, -2.0, 2.0, value=0.8, label="turns at (rad/s)")])


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "cloth_on_knot.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
