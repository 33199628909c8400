"""A launch for each stage, which overwrites what the stage before left."""

from types import ModuleType

from benchmarks.ad.problems.ode import STEPS, TIME
from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """Five launches a step."""
    vector = style.parameter(1)
    loss = style.scratch()
    n = len(problem.inputs["x"])
    y, k1, k2, k3, k4 = (style.scratch(n) for _ in range(5))

    @ti.kernel
    def slope(k: vector, x: vector, y: vector, before: vector, h: ti.f64):
        for i in range(x.shape[0]):
            j = ti.max(i - 1, 0)
            k[i] = x[i] * ti.select(i > 0, y[j] + h * before[j], 1.0)

    @ti.kernel
    def advance(y: vector, k1: vector, k2: vector, k3: vector, k4: vector, h: ti.f64):
        for i in range(y.shape[0]):
            y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])

    @ti.kernel
    def total(y: vector, loss: ti.template()):
        for i in range(y.shape[0]):
            loss[None] += y[i]

    def run(x) -> None:
        h = TIME / STEPS
        y.fill(0)
        loss[None] = 0
        for _ in range(STEPS):
            slope(k1, x, y, y, 0.0)
            slope(k2, x, y, k1, h / 2)
            slope(k3, x, y, k2, h / 2)
            slope(k4, x, y, k3, h)
            advance(y, k1, k2, k3, k4, h)
        total(y, loss)

    return Program(run, [style.variable(problem.inputs["x"])], loss)
