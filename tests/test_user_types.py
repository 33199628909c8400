"""What a type checker says of a user's program: nothing where it is right, and the mistakes where it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import tinote as ti

RIGHT = """\
import numpy as np

import tinote as ti

ti.init(arch=ti.cpu, default_fp=ti.f32)
N = 8
x = ti.Vector.field(2, dtype=ti.f32, shape=N, needs_grad=True)
m = ti.Matrix.field(2, 2, ti.f64, shape=())
v = ti.field(float, shape=(N, N))
loss = ti.field(ti.f32, shape=(), needs_grad=True)


@ti.func
def square(a):
    return a * a


@ti.kernel
def energy(scale: ti.f32, count: ti.i32) -> ti.f32:
    total = 0.0
    for i, j in ti.ndrange(N, count):
        r = x[i] - x[j]
        total += scale * r.norm(1e-3) + square(v[i, j])
    for i in x:
        loss[None] += x[i].dot(x[i])
    return total


@ti.kernel
def fill(a: ti.types.ndarray(dtype=ti.f32, ndim=1), target: ti.template()):  # pyright: ignore[reportInvalidTypeForm]
    for i in range(a.shape[0]):
        target[i, 0] = ti.sin(a[i]) + ti.static(3)


x.from_numpy(np.zeros((N, 2), np.float32))
x[0] = [1.0, 2.0]
with ti.ad.Tape(loss):
    result = energy(2.0, N)
fill(np.zeros(N, np.float32), v)
energy.grad(1.0, N)
gradient = ti.ad.grad(energy, wrt=x, loss=loss)
print(result + 1.0, x.grad.to_numpy().shape, loss[None], v[0, 0], x[0].norm(), ti.Vector([1, 2]) @ ti.Vector([3, 4]))
"""

WRONG = """\
import tinote as ti

x = ti.field(ti.f32, shape=3, neds_grad=True)
ti.kernel(3)
x.anything()
"""


def complaints(program: str, folder: Path) -> list[int]:
    """The lines of the errors that pyright finds, outside of the checkout, as a user's editor does."""
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(file)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"]


def test_a_right_program_has_no_complaints(tmp_path: Path) -> None:
    assert complaints(RIGHT, tmp_path) == []


def test_mistakes_are_found(tmp_path: Path) -> None:
    assert complaints(WRONG, tmp_path)[:2] == [3, 4]


def test_the_package_says_that_it_has_types() -> None:
    """Without this file checkers treat every name as unknown, once the package is installed."""
    assert Path(ti.__file__).with_name("py.typed").is_file()
