"""Names that are misspelled."""

import tinote as ti

ti.init()
x = ti.field(ti.f32, shape=3, needs_grad=True)
v = ti.Vector.field(2, ti.f32, shape=3)


@ti.kernel
def energy():
    for i in x:
        x[i] = ti.sinn(x[i])  # error


x.to_nunpy()  # error
x.grad.fil(0)  # error
v.from_nunpy([])  # error
energy.irr()  # error
ti.feild(ti.f32, 3)  # error
ti.ad.grda(energy)  # error
ti.math.vec5(1.0)  # error
ti.viz.Partciles(x, energy)  # error
ti.linalg.SpareSolver()  # error
