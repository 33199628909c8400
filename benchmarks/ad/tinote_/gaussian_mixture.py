"""Five kernels: what depends on the components alone, the distances, the two log-sum-exps, the prior."""

from types import ModuleType

from benchmarks.ad.problems.gaussian_mixture import GAMMA, PRIOR
from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """With scratch arrays between the kernels."""
    vector, matrix = style.parameter(1), style.parameter(2)
    inputs = problem.inputs
    loss = style.scratch()
    x = style.data(inputs["x"])
    (n, d), k = inputs["x"].shape, len(inputs["alphas"])
    diagonal, sums, terms = style.scratch(k, d), style.scratch(k), style.scratch(n, k)

    @ti.kernel
    def components(icf: matrix, diagonal: matrix, sums: vector):
        for k in range(sums.shape[0]):
            total = 0.0
            for r in range(diagonal.shape[1]):
                total += icf[k, r]
                diagonal[k, r] = ti.exp(icf[k, r])
            sums[k] = total

    @ti.kernel
    def likelihoods(
        alphas: vector, means: matrix, icf: matrix, diagonal: matrix, sums: vector, x: matrix, terms: matrix
    ):
        for i, k in ti.ndrange(x.shape[0], means.shape[0]):
            d = x.shape[1]
            square = 0.0
            for r in range(d):
                whitened = diagonal[k, r] * (x[i, r] - means[k, r])
                for c in range(r):
                    # Column after column: the ones before column c have d - 1, d - 2, … numbers.
                    at = d + c * (2 * d - c - 1) // 2 + r - c - 1
                    whitened += icf[k, at] * (x[i, c] - means[k, c])
                square += whitened**2
            terms[i, k] = alphas[k] + sums[k] - 0.5 * square

    @ti.func
    def log_sum_exp(of: ti.template(), i, count):
        shift = of[i, 0]
        for k in range(1, count):
            shift = ti.max(shift, of[i, k])
        total = 0.0
        for k in range(count):
            total += ti.exp(of[i, k] - shift)
        return shift + ti.log(total)

    @ti.kernel
    def likelihood(terms: matrix, loss: ti.template()):
        for i in range(terms.shape[0]):
            loss[None] += log_sum_exp(terms, i, terms.shape[1])

    @ti.kernel
    def prior(alphas: vector, icf: matrix, diagonal: matrix, sums: vector, n: ti.i32, loss: ti.template()):
        shift = alphas[0]
        for k in range(alphas.shape[0]):
            shift = ti.max(shift, alphas[k])
        total = 0.0
        for k in range(alphas.shape[0]):
            total += ti.exp(alphas[k] - shift)
        loss[None] += -n * (shift + ti.log(total))
        for k in range(alphas.shape[0]):
            square = 0.0
            for r in range(diagonal.shape[1]):
                square += diagonal[k, r] ** 2
            for r in range(diagonal.shape[1], icf.shape[1]):
                square += icf[k, r] ** 2
            loss[None] += 0.5 * GAMMA**2 * square - PRIOR * sums[k]

    def run(alphas, means, icf) -> None:
        loss[None] = 0
        components(icf, diagonal, sums)
        likelihoods(alphas, means, icf, diagonal, sums, x, terms)
        likelihood(terms, loss)
        prior(alphas, icf, diagonal, sums, n, loss)

    return Program(run, [style.variable(inputs[name]) for name in problem.wrt], loss)
