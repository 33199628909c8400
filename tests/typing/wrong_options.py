"""Options that are not there."""

import tinote as ti

ti.init(foo=3)  # error
ti.init(arch=ti.cpu, debag=True)  # error
x = ti.field(ti.f32, shape=3, neds_grad=True)  # error
y = ti.Vector.field(2, ti.f32, shape=3, need_grad=True)  # error
total = ti.field(ti.f32, shape=(), needs_grad=True)


@ti.kernel
def energy():
    for i in x:
        total[None] += x[i] ** 2


ti.ad.grad(energy, wrt=x, outptu=total)  # error
ti.ad.implicit(energy, x, total, tolerance=1e-3)  # error
ti.sweep(energy, {"k": [1]}, directon="maximize")  # error
ti.viz.Particles(x, energy, raduis=3)  # error: pyright
