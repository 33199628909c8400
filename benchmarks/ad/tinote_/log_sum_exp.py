"""Two loops that reduce: the largest, and the sum of exponentials."""

from types import ModuleType

from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """One kernel."""
    vector = style.parameter(1)
    loss = style.scratch()

    @ti.kernel
    def objective(x: vector, loss: ti.template()):
        shift = x[0]
        for i in range(x.shape[0]):
            shift = ti.max(shift, x[i])
        total = 0.0
        for i in range(x.shape[0]):
            total += ti.exp(x[i] - shift)
        loss[None] = shift + ti.log(total)

    return Program(lambda x: objective(x, loss), [style.variable(problem.inputs["x"])], loss)
