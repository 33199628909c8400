"""What makes fields gives fields, and these give arrays."""

from typing import Any, assert_type

import numpy as np

import tinote as ti

ti.init(arch=ti.cpu, default_fp=ti.f32, random_seed=3, check_out_of_bound=True, print_kernel_asm=False)
N = 8
density = ti.field(ti.f32, shape=(N, N), needs_grad=True)
velocity = ti.Vector.field(2, dtype=ti.f32, shape=N)
stress = ti.Matrix.field(2, 2, ti.f64, shape=())
colour = ti.math.vec3.field(shape=N)
spin = ti.field(ti.math.vec3, shape=N)
heat = ti.field(float)
ti.root.dense(ti.ij, (N, N)).place(heat)
wave = ti.types.vector(5, ti.f32)
waves = wave.field(shape=N)
samples = ti.ndarray(ti.f32, shape=N)
points = ti.Vector.ndarray(3, ti.f32, N)

assert_type(density, ti.ScalarField)
assert_type(velocity, ti.MatrixField)
assert_type(stress, ti.MatrixField)
assert_type(colour, ti.MatrixField)
assert_type(spin, ti.MatrixField)
assert_type(waves, ti.MatrixField)
assert_type(samples, ti.ScalarNdarray)
assert_type(density.grad, ti.ScalarField)
assert_type(density.to_numpy(), np.ndarray[Any, Any])
assert_type(density.shape, tuple[int, ...])

density.fill(1.0)
density.from_numpy(np.ones((N, N), np.float32))
density[0, 0] += 1.0
velocity[0] = [1.0, 2.0]
velocity[1] = ti.Vector([1.0, 2.0]) * 2.0 + 1.0
total: float = density[0, 0] + velocity[0].norm() + velocity[1].x
mean = density.to_numpy().mean()
a = ti.Vector([1.0, 2.0, 3.0])
b = ti.math.vec3(1.0, 2.0, 3.0)
assert_type(a + b, ti.Matrix)
assert_type(2.0 * a, ti.Matrix)
length = (a @ b) + a.dot(b) + ti.math.length(b) + a.xy.norm()
half = ti.Matrix([[1.0, 2.0], [3.0, 4.0]]).transpose() / 2
