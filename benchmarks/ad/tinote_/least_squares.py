"""The powers of a point are running products."""

from types import ModuleType

from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """One parallel loop over the points."""
    vector = style.parameter(1)
    loss = style.scratch()
    t, target = style.data(problem.inputs["t"]), style.data(problem.inputs["target"])

    @ti.kernel
    def objective(x: vector, t: vector, target: vector, loss: ti.template()):
        for i in range(t.shape[0]):
            power = 1.0
            value = 0.0
            for j in range(x.shape[0]):
                value += x[j] * power
                power *= t[i]
            loss[None] += 0.5 * (value - target[i]) ** 2

    def run(x) -> None:
        loss[None] = 0
        objective(x, t, target, loss)

    return Program(run, [style.variable(problem.inputs["x"])], loss)
