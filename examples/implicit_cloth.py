"""The stiffness of a cloth, found from how it hangs after a hundred implicit time steps.

    python examples/implicit_cloth.py

Masses on a grid are joined by springs along the rows, the columns and the diagonals; two corners are held. Each step is
of the implicit Euler method: kernels fill a sparse matrix with the derivatives of the springs' forces, a Cholesky
factorisation solves for the change of the velocities. The distance of the last positions from those of a cloth whose
stiffness is not known is differentiated through all solves and by what was filled into the matrices.

Method: Baraff and Witkin, "Large steps in cloth simulation", SIGGRAPH 1998.
"""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

import tinote as ti

__all__ = ["Cloth", "fit"]

STEP, MASS, DAMPING = 0.02, 0.01, 0.005
HELD = 1e6  # the mass of a corner that is held


class Cloth:
    """A cloth of `size` by `size` masses, one metre wide. `stiffness`: of each spring, in newtons per metre."""

    def __init__(self, size: int) -> None:
        count = size * size
        self.stiffness = stiffness = ti.field(ti.f64, (), needs_grad=True)
        self.distance = distance = ti.field(ti.f64, (), needs_grad=True)
        self.x = x = ti.Vector.field(3, ti.f64, count, needs_grad=True)
        self.v = v = ti.Vector.field(3, ti.f64, count, needs_grad=True)
        self.b = b = ti.Vector.field(3, ti.f64, count, needs_grad=True)
        self.target = target = ti.Vector.field(3, ti.f64, count)
        place = np.arange(count).reshape(size, size)
        pairs = [(place[1:], place[:-1]), (place[:, 1:], place[:, :-1]), (place[1:, 1:], place[:-1, :-1])]
        ends_of = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
        springs = len(ends_of)
        ends = ti.Vector.field(2, ti.i32, springs)
        ends.from_numpy(ends_of.astype(np.int32))
        rows, columns = np.divmod(np.arange(count), size)
        self.flat = np.stack([columns / (size - 1), rows / (size - 1), np.zeros(count)], axis=1)
        lengths = ti.field(ti.f64, springs)
        lengths.from_numpy(np.linalg.norm(self.flat[ends_of[:, 0]] - self.flat[ends_of[:, 1]], axis=1))
        self.builder = ti.linalg.SparseMatrixBuilder(3 * count, max_num_triplets=36 * springs + 3 * count, dtype=ti.f64)
        self.solver = ti.linalg.SparseSolver(ti.f64, "LLT")

        @ti.func
        def slope(s: ti.i32):
            """The derivative of a spring's force; of one that is pressed, the part that keeps the matrix definite."""
            d = x[ends[s][1]] - x[ends[s][0]]
            length = d.norm()
            along = d.outer_product(d) / (length * length)
            across = ti.max(1.0 - lengths[s] / length, 0.0)
            return stiffness[None] * (along + across * (ti.Matrix.identity(ti.f64, 3) - along))

        @ti.kernel
        def fill(A: ti.types.sparse_matrix_builder()):
            for i in x:
                mass = HELD if i == 0 or i == size - 1 else MASS
                for c in ti.static(range(3)):
                    A[3 * i + c, 3 * i + c] += mass + STEP * DAMPING
            for s in ends:
                i, j = ends[s][0], ends[s][1]
                h = STEP * STEP * slope(s)
                for p in ti.static(range(3)):
                    for q in ti.static(range(3)):
                        A[3 * i + p, 3 * i + q] += h[p, q]
                        A[3 * j + p, 3 * j + q] += h[p, q]
                        A[3 * i + p, 3 * j + q] -= h[p, q]
                        A[3 * j + p, 3 * i + q] -= h[p, q]

        @ti.kernel
        def pull():
            for i in x:
                weight = 0.0 if i == 0 or i == size - 1 else -9.81 * MASS
                b[i] = STEP * (ti.Vector([0.0, 0.0, weight]) - DAMPING * v[i])
            for s in ends:
                i, j = ends[s][0], ends[s][1]
                d = x[j] - x[i]
                force = stiffness[None] * (d.norm() - lengths[s]) * d.normalized()
                change = STEP * force + STEP * STEP * (slope(s) @ (v[j] - v[i]))
                b[i] += change
                b[j] -= change

        @ti.kernel
        def move():
            for i in x:
                v[i] += b[i]
                x[i] += STEP * v[i]

        @ti.kernel
        def measure():
            for i in x:
                distance[None] += (x[i] - target[i]).norm_sqr()

        self._fill, self._pull, self._move, self._measure = fill, pull, move, measure

    def simulate(self, steps: int) -> None:
        """Let the cloth fall from where it lies flat."""
        self.x.from_numpy(self.flat)
        self.v.fill(0)
        for _ in range(steps):
            self._fill(self.builder)
            self._pull()
            self.solver.compute(self.builder.build())
            self.solver.solve(self.b, out=self.b)
            self._move()

    def value(self, steps: int) -> float:
        """The squared distance of the last positions from the target."""
        self.distance[None] = 0.0
        self.simulate(steps)
        self._measure()
        return self.distance[None]

    def gradient(self, steps: int) -> tuple[float, float]:
        """The squared distance from the target after `steps`, and its derivative by the stiffness."""
        with ti.ad.Tape(self.distance):
            self.simulate(steps)
            self._measure()
        return self.distance[None], self.stiffness.grad[None]


def fit(size: int = 8, steps: int = 100, truth: float = 40.0, guess: float = 15.0) -> tuple[float, float, int]:
    """The stiffness that was found, the distance that is left, and how many gradients it took: the root of the
    gradient by the stiffness' logarithm, by bisection.
    """
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    cloth = Cloth(size)
    cloth.stiffness[None] = truth
    cloth.simulate(steps)
    cloth.target.copy_from(cloth.x)
    used = 0

    def slope(logarithm: float) -> tuple[float, float]:
        nonlocal used
        used += 1
        cloth.stiffness[None] = float(np.exp(logarithm))
        distance, derivative = cloth.gradient(steps)
        return distance, derivative * float(np.exp(logarithm))

    low, high = np.log(guess), np.log(guess) + 3.0
    rounds = int(np.ceil(np.log2((high - low) / 1e-6)))
    bar = tqdm(range(rounds), "bisection", disable=None, leave=False)
    for _ in bar:
        middle = 0.5 * (low + high)  # the distance falls up to the truth, and grows from there
        low, high = (middle, high) if slope(middle)[1] < 0 else (low, middle)
        if bar.disable:  # no terminal
            print(f"stiffness between {np.exp(low):.6f} and {np.exp(high):.6f} N/m", flush=True)
    distance, _ = slope(0.5 * (low + high))
    return float(np.exp(0.5 * (low + high))), distance, used


if __name__ == "__main__":
    print("looking for the stiffness by bisection (about 10 s) …", flush=True)
    print("stiffness {:.3f} N/m (40 was the truth), {:.1e} m² left, {} gradients".format(*fit()))
