"""The stiffness of two rubbers, found from measurements of a falling beam: finite elements, a hundred implicit steps.

    python examples/implicit_fem.py

A beam of triangles is clamped at its left end and falls under its weight; its two halves are made of different rubbers.
Each step of the implicit Euler method is a system of nonlinear equations, those of neo-Hookean elasticity, which
`ti.ad.implicit` solves by Newton's method. A kernel computes the residual; its Jacobian and its derivative with respect
to the stiffness are generated. Measured are the positions of the nodes after every tenth step. Their squared distance
from the simulated positions is differentiated through all steps, and L-BFGS minimises it.

Method: Sifakis and Barbič, "FEM simulation of 3D deformable solids", SIGGRAPH courses, 2012, part 1.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

import tinote as ti

__all__ = ["Beam", "fit"]

STEP, DENSITY, THICKNESS, DAMPING, POISSON = 0.02, 1000.0, 0.1, 0.5, 0.35
LENGTH, HEIGHT = 1.0, 0.2  # of the beam, in metres
BETWEEN, MOST = 10, 10  # steps between two measurements, and how many measurements


class Beam:
    """A beam of `columns` by `rows` squares, two triangles each. `stiffness`: the logarithms of Young's moduli of both
    materials, in pascals.
    """

    def __init__(self, columns: int, rows: int) -> None:
        options: dict[str, Any] = {"needs_grad": True}
        i, j = np.meshgrid(np.arange(columns + 1), np.arange(rows + 1), indexing="ij")
        self.rest = np.stack([i.ravel() * LENGTH / columns, j.ravel() * HEIGHT / rows], axis=1)
        node = np.arange(i.size).reshape(i.shape)
        a, b, c, d = (one.ravel() for one in (node[:-1, :-1], node[1:, :-1], node[1:, 1:], node[:-1, 1:]))
        triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        corners = self.rest[triangles]
        edges = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=2)
        areas = np.linalg.det(edges) / 2
        masses = np.bincount(triangles.ravel(), np.repeat(areas, 3), len(self.rest)) * DENSITY * THICKNESS / 3

        count, elements = len(self.rest), len(triangles)
        self.stiffness = stiffness = ti.field(ti.f64, 2, **options)
        self.distance = distance = ti.field(ti.f64, (), **options)
        self.x = x = ti.Vector.field(2, ti.f64, count, **options)  # at the end of the step: what is solved for
        self.start = start = ti.Vector.field(2, ti.f64, count, **options)  # at its beginning
        self.v = v = ti.Vector.field(2, ti.f64, count, **options)
        residual = ti.Vector.field(2, ti.f64, count, **options)  # of the forces, in newtons
        self.measured = measured = ti.Vector.field(2, ti.f64, (MOST, count))
        mass, corner = ti.field(ti.f64, count), ti.Vector.field(3, ti.i32, elements)
        shape = ti.Matrix.field(2, 2, ti.f64, elements)  # the inverse of the edges at rest
        area, which = ti.field(ti.f64, elements), ti.field(ti.i32, elements)
        mass.from_numpy(masses)
        corner.from_numpy(triangles.astype(np.int32))
        shape.from_numpy(np.linalg.inv(edges))
        area.from_numpy(areas)
        which.from_numpy((corners[:, :, 0].mean(axis=1) > LENGTH / 2).astype(np.int32))

        @ti.kernel
        def balance():
            for k in x:
                pull = (x[k] - start[k]) / STEP - (1.0 - DAMPING * STEP) * v[k]
                residual[k] = mass[k] * (pull / STEP - ti.Vector([0.0, -9.81]))
            for e in corner:
                p, q, r = corner[e][0], corner[e][1], corner[e][2]
                modulus = ti.exp(stiffness[which[e]])
                mu, lam = modulus / (2 + 2 * POISSON), modulus * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
                F = ti.Matrix.cols([x[q] - x[p], x[r] - x[p]]) @ shape[e]
                turned = F.inverse().transpose()
                stress = mu * (F - turned) + lam * ti.log(F.determinant()) * turned
                force = THICKNESS * area[e] * stress @ shape[e].transpose()
                for c in ti.static(range(2)):
                    residual[q][c] += force[c, 0]
                    residual[r][c] += force[c, 1]
                    residual[p][c] -= force[c, 0] + force[c, 1]
            for k in range(rows + 1):
                residual[k] = mass[k] / STEP**2 * (x[k] - start[k])  # clamped

        @ti.kernel
        def move():
            for k in x:
                v[k] = (x[k] - start[k]) / STEP
                start[k] = x[k]

        @ti.kernel
        def record(number: ti.i32):
            for k in x:
                measured[number, k] = x[k]

        @ti.kernel
        def compare(number: ti.i32):
            for k in x:
                distance[None] += (x[k] - measured[number, k]).norm_sqr()

        self._step = ti.ad.implicit(balance, x, residual, tol=1e-8)
        self._move, self._compare, self._record = move, compare, record

    def simulate(self, steps: int, *, records: bool = False) -> None:
        """Let the beam fall from the horizontal, and compare it with the measurements, or record these."""
        self.start.from_numpy(self.rest)
        self.x.from_numpy(self.rest)
        self.v.fill(0)
        for step in range(1, steps + 1):
            self._step()
            self._move()
            if step % BETWEEN == 0:
                (self._record if records else self._compare)(step // BETWEEN - 1)

    def gradient(self, steps: int) -> tuple[float, Any]:
        """The sum of squared deviations over `steps`, in m², and its gradient with respect to the stiffness."""
        with ti.ad.Tape(self.distance):
            self.simulate(steps)
        return self.distance[None], self.stiffness.grad.to_numpy()


def fit(
    columns: int = 8, rows: int = 2, steps: int = 100, truth: tuple[float, float] = (3e5, 1e5), guess: float = 2e5
) -> tuple[Any, float, int]:
    """Young's moduli that were found, the distance that is left, and how many gradients it took."""
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    beam = Beam(columns, rows)
    beam.stiffness.from_numpy(np.log(truth))
    beam.simulate(steps, records=True)

    def both(logarithms: Any) -> tuple[float, Any]:
        beam.stiffness.from_numpy(logarithms)
        found = beam.gradient(steps)
        bar.update()
        if bar.disable:  # no terminal
            print(f"gradient {next(numbers)}: {found[0]:.1e} m² left", flush=True)
        return found

    numbers = itertools.count(1)
    options = {"ftol": 1e-12, "gtol": 1e-6}
    with tqdm(desc="gradients", disable=None, leave=False) as bar:
        found = minimize(both, np.log([guess, guess]), jac=True, method="L-BFGS-B", options=options)
    return np.exp(found.x), float(found.fun), int(found.nfev)


if __name__ == "__main__":
    print("looking for the moduli by L-BFGS-B (about 40 s) …", flush=True)
    moduli, distance, used = fit()
    print("moduli {:.0f} and {:.0f} kPa (300 and 100 were the truth), ".format(*moduli / 1e3), end="")
    print(f"{distance:.1e} m² left, {used} gradients")
