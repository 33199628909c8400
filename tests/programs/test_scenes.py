"""Programs that draw in space as those of the dialect do: a cloth, a net of springs, falling particles. Each is run as
a script, and its last frame shows what it simulates.
"""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti

FRAMES = 24

CLOTH = """
import tinote as ti
ti.init(arch=ti.cpu)

n = 24
quad_size = 1.0 / n
dt = 4e-4
substeps = 40
gravity = ti.Vector([0, -9.8, 0])
spring_Y = 3e3
dashpot_damping = 1e3
drag_damping = 1
ball_radius = 0.3
ball_center = ti.Vector.field(3, dtype=float, shape=(1, ))
ball_center[0] = [0, 0, 0]
x = ti.Vector.field(3, dtype=float, shape=(n, n))
v = ti.Vector.field(3, dtype=float, shape=(n, n))
num_triangles = (n - 1) * (n - 1) * 2
indices = ti.field(int, shape=num_triangles * 3)
vertices = ti.Vector.field(3, dtype=float, shape=n * n)
colors = ti.Vector.field(3, dtype=float, shape=n * n)
offsets = [ti.Vector([i, j]) for i in range(-1, 2) for j in range(-1, 2) if (i, j) != (0, 0)]

@ti.kernel
def initialize():
    for i, j in x:
        x[i, j] = [i * quad_size - 0.5, 0.45, j * quad_size - 0.5]
        v[i, j] = [0, 0, 0]
    for i, j in ti.ndrange(n - 1, n - 1):
        quad = (i * (n - 1)) + j
        indices[quad * 6 + 0] = i * n + j
        indices[quad * 6 + 1] = (i + 1) * n + j
        indices[quad * 6 + 2] = i * n + (j + 1)
        indices[quad * 6 + 3] = (i + 1) * n + j + 1
        indices[quad * 6 + 4] = i * n + (j + 1)
        indices[quad * 6 + 5] = (i + 1) * n + j
    for i, j in ti.ndrange(n, n):
        if (i // 4 + j // 4) % 2 == 0:
            colors[i * n + j] = (0.0, 0.8, 0.0)
        else:
            colors[i * n + j] = (0.0, 0.5, 0.0)

@ti.kernel
def substep():
    for i in ti.grouped(x):
        v[i] += gravity * dt
    for i in ti.grouped(x):
        force = ti.Vector([0.0, 0.0, 0.0])
        for offset in ti.static(offsets):
            j = i + offset
            if 0 <= j[0] < n and 0 <= j[1] < n:
                x_ij = x[i] - x[j]
                d = x_ij.normalized()
                rest = quad_size * float(offset.norm())
                force += -spring_Y * d * (x_ij.norm() / rest - 1)
                force += -(v[i] - v[j]).dot(d) * d * dashpot_damping * quad_size
        v[i] += force * dt
    for i in ti.grouped(x):
        v[i] *= ti.exp(-drag_damping * dt)
        away = x[i] - ball_center[0]
        if away.norm() <= ball_radius:
            normal = away.normalized()
            v[i] -= min(v[i].dot(normal), 0) * normal
        x[i] += dt * v[i]

@ti.kernel
def update_vertices():
    for i, j in ti.ndrange(n, n):
        vertices[i * n + j] = x[i, j]

window = ti.ui.Window("Cloth", (160, 120), vsync=True)
canvas = window.get_canvas()
canvas.set_background_color((1, 1, 1))
scene = window.get_scene()
camera = ti.ui.Camera()
initialize()
while window.running:
    for i in range(substeps):
        substep()
    update_vertices()
    camera.position(0.0, 0.6, 1.8)
    camera.lookat(0.0, 0.0, 0)
    scene.set_camera(camera)
    scene.point_light(pos=(0, 1, 2), color=(1, 1, 1))
    scene.ambient_light((0.5, 0.5, 0.5))
    scene.mesh(vertices, indices=indices, per_vertex_color=colors, two_sided=True)
    scene.particles(ball_center, radius=ball_radius * 0.95, color=(0.8, 0.1, 0.1))
    canvas.scene(scene)
    window.show()
"""

SPRINGS = """
import tinote as ti
ti.init(arch=ti.cpu)

n = 6
x = ti.Vector.field(3, ti.f32, shape=n * n * n)
v = ti.Vector.field(3, ti.f32, shape=n * n * n)
links = ti.field(ti.i32, shape=2 * 3 * n * n * (n - 1))
count = ti.field(ti.i32, shape=())

@ti.func
def at(i, j, k):
    return (i * n + j) * n + k

@ti.kernel
def setup():
    for i, j, k in ti.ndrange(n, n, n):
        x[at(i, j, k)] = ti.Vector([i, j, k]) / (n - 1) - 0.5
        for axis in ti.static(range(3)):
            step = ti.Vector.unit(3, axis, ti.i32)
            a, b, c = i + step[0], j + step[1], k + step[2]
            if a < n and b < n and c < n:
                place = ti.atomic_add(count[None], 1)
                links[2 * place] = at(i, j, k)
                links[2 * place + 1] = at(a, b, c)

@ti.kernel
def advance(dt: ti.f32):
    for s in range(count[None]):
        i, j = links[2 * s], links[2 * s + 1]
        d = x[i] - x[j]
        f = -200.0 * (d.norm() * (n - 1) - 1.0) * d.normalized()
        ti.atomic_add(v[i], dt * f)
        ti.atomic_add(v[j], -dt * f)
    for i in x:
        v[i] = 0.999 * v[i] + dt * ti.Vector([0.0, -9.8, 0.0])
        if x[i].y < -0.6 and v[i].y < 0:
            v[i].y = 0
        x[i] += dt * v[i]

window = ti.ui.Window("Springs", (160, 120), show_window=True)
canvas = window.get_canvas()
scene = ti.ui.Scene()
camera = ti.ui.make_camera()
camera.position(1.6, 1.0, 2.0)
camera.lookat(0, -0.1, 0)
camera.up(0, 1, 0)
camera.fov(45)
camera.projection_mode(ti.ui.ProjectionMode.Perspective)
setup()
while window.running:
    for _ in range(10):
        advance(1e-3)
    if window.get_event(ti.ui.PRESS):
        if window.event.key == ti.ui.ESCAPE:
            break
    camera.track_user_inputs(window, movement_speed=0.03, hold_key=ti.ui.RMB)
    scene.set_camera(camera)
    scene.ambient_light((0.8, 0.8, 0.8))
    scene.point_light(pos=(0.5, 1.5, 1.5), color=(1, 1, 1))
    scene.lines(x, indices=links, color=(0.28, 0.68, 0.99), width=1.0)
    scene.particles(x, color=(0.9, 0.1, 0.1), radius=0.04)
    canvas.set_background_color((0, 0, 0))
    canvas.scene(scene)
    window.show()
"""

RAIN = """
import tinote as ti
ti.init(arch=ti.cpu)

N = 800
x = ti.Vector.field(3, dtype=ti.f32, shape=N)
v = ti.Vector.field(3, dtype=ti.f32, shape=N)
colors = ti.Vector.field(3, dtype=ti.f32, shape=N)
transforms = ti.Matrix.field(4, 4, dtype=ti.f32, shape=3)
corners = ti.Vector.field(3, dtype=ti.f32, shape=4)
faces = ti.field(dtype=ti.i32, shape=12)

@ti.kernel
def init():
    for i in x:
        x[i] = [ti.random(), 0.2 + ti.random(), ti.random()]
        colors[i] = [0.1, 0.3, 0.5 + 0.5 * ti.random()]

@ti.kernel
def fall(dt: ti.f32):
    for i in x:
        v[i].y -= 9.8 * dt
        x[i] += dt * v[i]
        if x[i].y < 0:
            x[i].y = 0.0
            v[i].y *= -0.5

init()
for i, corner in enumerate([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]):
    corners[i] = corner
for i, number in enumerate([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]):
    faces[i] = number
for m in range(3):
    for k in range(4):
        transforms[m][k, k] = 1.0 if k == 3 else 0.35
    transforms[m][0, 3] = 0.45 * m - 0.2

window = ti.ui.Window("Rain", (160, 120))
canvas = window.get_canvas()
scene = window.get_scene()
camera = ti.ui.Camera()
camera.position(0.5, 0.8, 2.6)
camera.lookat(0.5, 0.4, 0.5)
wire = False
while window.running:
    for _ in range(5):
        fall(2e-3)
    with window.GUI.sub_window("Options", 0.0, 0.0, 0.3, 0.2) as gui:
        wire = gui.checkbox("wire", wire)
    scene.set_camera(camera)
    scene.ambient_light((0.5, 0.5, 0.5))
    scene.point_light(pos=(0.5, 2.0, 2.0), color=(0.7, 0.7, 0.7))
    scene.particles(x, radius=0.015, per_vertex_color=colors)
    scene.mesh_instance(corners, indices=faces, color=(0.9, 0.8, 0.1), transforms=transforms, show_wireframe=wire)
    canvas.scene(scene)
    window.show()
"""


@pytest.fixture
def run(monkeypatch):
    """Runs a program for some frames; its last one, indexed [row, column] from the top, and its names."""
    monkeypatch.setenv("TINOTE_GUI_FRAMES", str(FRAMES))

    def run_program(text: str, path) -> tuple[np.ndarray, dict]:
        file = path / "program.py"
        file.write_text(text, encoding="utf-8")
        names: dict = {}
        exec(compile(text, str(file), "exec"), names)
        image = names["window"].get_image_buffer_as_numpy()[:, :, :3].swapaxes(0, 1)[::-1]
        assert names["window"].get_window_shape() == (160, 120)
        return np.rint(image * 255).astype(int), names

    yield run_program
    ti.reset()


def test_a_cloth_falls_on_a_ball(run, tmp_path):
    image, names = run(CLOTH, tmp_path)
    green = (image[:, :, 1] > image[:, :, 0] + 40) & (image[:, :, 1] > image[:, :, 2] + 40)
    red = image[:, :, 0] > image[:, :, 1] + 60
    assert 0.08 < green.mean() < 0.5 and 0.005 < red.mean() < 0.15
    assert np.flatnonzero(green.any(axis=1)).min() < np.flatnonzero(red.any(axis=1)).min(), "the cloth lies on the ball"
    assert (image[0] == 255).all()
    height = names["x"].to_numpy()[:, :, 1]
    assert np.isfinite(height).all() and height.min() < 0.1 < height.max()


def test_a_net_of_springs_has_its_lines_and_knots(run, tmp_path):
    image, _ = run(SPRINGS, tmp_path)
    blue = (image[:, :, 2] > 150) & (image[:, :, 0] < 120)
    red = (image[:, :, 0] > 60) & (image[:, :, 2] < 60)
    assert 0.02 < blue.mean() < 0.4 and 0.005 < red.mean() < 0.2


def test_rain_falls_around_copies_of_a_mesh(run, tmp_path):
    image, names = run(RAIN, tmp_path)
    yellow = (image[:, :, 0] > 90) & (image[:, :, 2] < 60)
    blue = image[:, :, 2] > image[:, :, 0] + 30
    assert 0.005 < yellow.mean() < 0.2 and 0.05 < blue.mean() < 0.7
    across = np.flatnonzero(yellow.any(axis=0))
    assert across.max() - across.min() > 50, "there are three of it, side by side"
    assert names["x"].to_numpy()[:, 1].min() >= 0.0
