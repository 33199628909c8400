"""Calls with too few, too many or the wrong arguments."""

import tinote as ti

ti.init()
x = ti.field(ti.f32, shape=3, needs_grad=True)


@ti.func
def square(a: ti.f32) -> ti.f32:
    return a * a


@ti.kernel
def potential(stiffness: ti.f32, length: ti.f32) -> ti.f32:
    return stiffness * square(length, 2.0)  # error


@ti.data_oriented
class Solver:
    @ti.kernel
    def relax(self, rate: ti.f32):
        for i in x:
            x[i] *= rate


potential(1)  # error
potential(1.0, 2.0, 3.0)  # error
potential(1.0, lenght=2.0)  # error
potential("stiff", 1.0)  # error
potential.grad(1.0)  # error
Solver().relax()  # error
Solver().relax(0.5, 0.5)  # error
Solver().relax.grad()  # error
ti.kernel(3)  # error
ti.sin()  # error
ti.max()
"text" + potential(1.0, 2.0)  # error
