"""Tapes and derivatives as functions."""

import numpy as np

import tinote as ti

ti.init()
x = ti.field(ti.f64, shape=8, needs_grad=True, needs_dual=True)
total = ti.field(ti.f64, shape=(), needs_grad=True, needs_dual=True)
residual = ti.field(ti.f64, shape=8, needs_grad=True)
x.fill(1.0)


@ti.kernel
def energy():
    for i in x:
        total[None] += ti.sin(x[i]) ** 2


@ti.kernel
def off():
    for i in x:
        residual[i] = x[i] ** 2 - 2.0


with ti.ad.Tape(loss=total) as tape:
    energy()
with ti.Tape(total):
    energy()
with ti.ad.FwdMode(loss=total, param=x, seed=np.ones(8)):
    energy()
print(x.grad.to_numpy() @ x.dual.to_numpy(), tape.graph())
slope = ti.ad.grad(energy, wrt=x, output=total)()
value, slope = ti.ad.value_and_grad(energy, wrt=[x], output=total)()
value, slope, product = ti.ad.value_and_grad_and_hvp(energy, wrt=x, output=total)(np.ones(8))
ti.ad.gradcheck(energy, wrt=x, output=total, tolerance=1e-6)
problem = ti.ad.scipy_problem(energy, wrt=x, output=total)
print(problem.value_and_grad(problem.x0)[0], problem.size + 1)
solve = ti.ad.implicit(off, x, residual, jacobian="dense", tol=1e-10, maxiter=20)
iterations: int = solve()
for step in ti.viz.progress(range(8)):
    print(step)


@ti.ad.grad_replaced
def run():
    energy()


@ti.ad.grad_for(run)
def run_grad():
    energy.grad()
