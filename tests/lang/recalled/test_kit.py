"""What the kit compiles for a program is found on disk by the next one, gradients included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.driver import Specialisation


def multigrid() -> Any:
    u, f, k = (ti.field(ti.f64, shape=(8, 6), needs_grad=True) for _ in range(3))
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    f.fill(1.0)
    k.fill(2.0)
    equation = ti.multigrid.Diffusion(f, u, k, 0.5)

    @ti.kernel
    def measure():
        for i in ti.grouped(u):
            loss[None] += u[i] ** 2

    with ti.ad.Tape(loss):
        equation.solve()
        measure()
    return k.grad


def fft() -> Any:
    x, y = ti.field(ti.f64, shape=(6, 8)), ti.Vector.field(2, ti.f64, shape=(6, 5))
    x[1, 2] = 1.0
    wave = ti.fft.Transform(x, y)
    wave.forward()
    wave.inverse()
    return y


def geometry() -> Any:
    x = ti.Vector.field(3, ti.f64, shape=4, needs_grad=True)
    triangles = ti.Vector.field(3, ti.i32, shape=4)
    x.from_numpy(np.eye(4, 3, -1))
    triangles.from_numpy([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    mesh = ti.geometry.TriangleTree(x, triangles)
    height = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        distance, _triangle, _weights = mesh.nearest(ti.Vector([0.25, 0.5, -3.0]))
        height[None] += distance

    with ti.ad.Tape(height):
        mesh.update()
        measure()
    return x.grad


def networks() -> Any:
    layers = [ti.nn.Dense(2, 3, "tanh", key=1, dtype=ti.f64), ti.nn.Dense(3, 1, key=2, dtype=ti.f64)]
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    descent = ti.nn.Adam([layer.weight for layer in layers])

    @ti.kernel
    def fit():
        for n in range(4):
            loss[None] += (layers[1](layers[0](ti.Vector([n, n * n])))[0] - ti.sin(n)) ** 2

    with ti.ad.Tape(loss):
        fit()
    descent.step()
    return layers[0].weight


def neighbours() -> Any:
    x = ti.Vector.field(2, ti.f64, shape=6, needs_grad=True)
    energy = ti.field(ti.f64, shape=(), needs_grad=True)
    x.from_numpy(np.random.default_rng(0).random((6, 2)))
    near = ti.spatial.NeighbourList(x, 0.3, skin=0.1, box=(1.0, 1.0))

    @ti.kernel
    def measure():
        for i in x:
            for j in near.near(i):
                energy[None] += near.displacement(x[i], x[j]).norm_sqr()

    with ti.ad.Tape(energy):
        near.update()
        measure()
    return x.grad


def motion() -> Any:
    x, v, a = (ti.field(ti.f64, shape=()) for _ in range(3))

    @ti.kernel
    def spring():
        a[None] = -x[None]

    x[None] = 1.0
    ti.integrate.RungeKutta(spring, {x: v, v: a}).step(0.0, 0.01)
    return v


@pytest.mark.parametrize("program", [multigrid, fft, geometry, networks, neighbours, motion])
def test_the_kit_is_found_again(program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ti.init(opt_level=0)
    found = program().to_numpy()
    monkeypatch.delattr(Specialisation, "_lower")  # the front end
    monkeypatch.delattr(Specialisation, "_compile")
    ti.init(opt_level=0)
    assert np.array_equal(program().to_numpy(), found)
    assert found.any()
