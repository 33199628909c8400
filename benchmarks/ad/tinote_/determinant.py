"""A function that calls itself with the next row, which unrolls to nested loops over the columns that are left."""

from types import ModuleType

from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """A loop for each row; the first one is parallel."""
    matrix = style.parameter(2)
    loss = style.scratch()
    n = len(problem.inputs["a"])

    @ti.func
    def minor(a: ti.template(), row: ti.template(), used):
        total = 0.0
        if ti.static(row == n - 1):
            for c in range(n):
                if (used >> c) & 1 == 0:
                    total = a[row, c]
        else:
            sign = 1.0
            for c in range(n):
                if (used >> c) & 1 == 0:
                    total += sign * a[row, c] * minor(a, ti.static(row + 1), used | (1 << c))
                    sign = -sign
        return total

    @ti.kernel
    def determinant(a: matrix, loss: ti.template()):
        for c in range(n):
            loss[None] += (1 - 2 * (c & 1)) * a[0, c] * minor(a, 1, 1 << c)

    def run(a) -> None:
        loss[None] = 0
        determinant(a, loss)

    return Program(run, [style.variable(problem.inputs["a"])], loss)
