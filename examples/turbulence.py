"""Turbulence in a plane: whirls of one sense merge, and ever fewer and larger ones are left.

    python examples/turbulence.py

writes `turbulence.html` (or the file that it is given), a page that runs in any browser.

The vorticity w changes by ∂w/∂t = -∇·(u w) + ν Δw, where the velocity u = (∂ψ/∂y, -∂ψ/∂x) comes from Δψ = -w: all
derivatives are exact, in waves (`ti.fft`), products are made in space, and waves that they would fold back are left out
(S. A. Orszag, J. Atmos. Sci. 28 (1971) 1074). Steps are Adams and Bashforth's of order 2, exact in ν.
"""

from __future__ import annotations

import math
import sys

import tinote as ti

__all__ = ["TITLE", "view"]

TITLE = "Turbulence in a plane"
N, SIDE = 64, 2 * math.pi
DT, VISCOSITY = 0.008, 8e-4


def view() -> ti.viz.Image:
    """The vorticity."""
    ti.init(arch=ti.cpu)
    w, u, v = (ti.field(ti.f32, shape=(N, N)) for _ in range(3))
    waves, flow, change, before = (ti.Vector.field(2, ti.f32, shape=(N, N // 2 + 1)) for _ in range(4))
    vorticity = ti.fft.Transform(w, waves)
    products = [ti.fft.Transform(part, flow) for part in (u, v)]

    @ti.func
    def wave(i, j):
        return 2 * math.pi / SIDE * ti.Vector([ti.fft.frequency(i, N), ti.fft.frequency(j, N)])

    @ti.func
    def slope(q, k):
        """i k q: the derivative along one axis, of complex q."""
        return k * ti.Vector([-q.y, q.x])

    @ti.kernel
    def stir(axis: ti.template()):
        for i, j in flow:
            k = wave(i, j)
            stream = waves[i, j] / ti.max(k.norm_sqr(), 1e-6)
            flow[i, j] = slope(stream, k.y) if ti.static(axis == 0) else slope(stream, -k.x)

    @ti.kernel
    def multiply():
        for i, j in w:
            u[i, j] *= w[i, j]
            v[i, j] *= w[i, j]

    @ti.kernel
    def carry(axis: ti.template()):
        for i, j in flow:
            part = -slope(flow[i, j], wave(i, j)[axis])
            change[i, j] = part if ti.static(axis == 0) else change[i, j] + part

    @ti.kernel
    def advance():
        for i, j in waves:
            k = wave(i, j)
            decay = ti.exp(-VISCOSITY * DT * k.norm_sqr())
            kept = 3 * ti.max(ti.abs(k.x), k.y) < N
            stepped = decay * (waves[i, j] + DT * (1.5 * change[i, j] - 0.5 * decay * before[i, j]))
            waves[i, j] = stepped if kept else ti.Vector([0.0, 0.0])
            before[i, j] = change[i, j]

    def step() -> None:
        vorticity.forward()
        for axis in range(2):
            stir(axis)
            products[axis].inverse()
        multiply()
        for axis in range(2):
            products[axis].forward()
            carry(axis)
        advance()
        vorticity.inverse()

    @ti.kernel
    def begin():
        for i, j in w:
            w[i, j] = 0.0
            for n in range(60):
                numbers = ti.sampling.stream(1, n)
                k = ti.round(4 * numbers.on_circle() + ti.Vector([numbers.normal(), numbers.normal()]))
                w[i, j] += 0.4 * ti.cos(2 * math.pi * (ti.Vector([i, j]).dot(k) / N + numbers.uniform()))
        for k in ti.grouped(before):
            before[k] = ti.Vector([0.0, 0.0])

    begin()
    return ti.viz.Image(
        w, step, reset=begin, cmap="RdBu_r", limits=(-4, 4), color_label="vorticity [1/s]", smooth=True,
        extent=((0, SIDE), (0, SIDE)), x_label="x [m]", y_label="y [m]", steps_per_frame=4, label=TITLE.lower(),
    )  # fmt: skip


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "turbulence.html"
    print(f"making {path} …", flush=True)
    print(ti.viz.page(view(), path, title=TITLE))
