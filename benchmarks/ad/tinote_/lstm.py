"""One bit an iteration of a parallel loop, which runs through the text; then one step of the text an iteration."""

from types import ModuleType

from benchmarks.ad.problems.lstm import BITS
from benchmarks.ad.problems.problem import Problem
from benchmarks.ad.tinote_.styles import Program, Style


def build(ti: ModuleType, problem: Problem, style: Style) -> Program:
    """Two kernels; hidden and cell of every step have their own place."""
    matrix, tensor, weights_like = style.parameter(2), style.parameter(3), style.parameter(4)
    inputs = problem.inputs
    loss = style.scratch()
    state, text = style.data(inputs["state"]), style.data(inputs["text"])
    length, layers = len(inputs["text"]), len(inputs["weights"])
    predictions = style.scratch(length - 1, BITS)
    hidden, cells = (style.scratch(length, layers, BITS) for _ in range(2))

    @ti.func
    def sigmoid(v):
        return 1 / (1 + ti.exp(-v))

    @ti.kernel
    def predict(
        w: weights_like,
        extra: matrix,
        state: tensor,
        text: matrix,
        hidden: tensor,
        cells: tensor,
        predictions: matrix,
    ):
        for bit in range(BITS):
            for layer in range(w.shape[0]):
                hidden[0, layer, bit] = state[layer, 0, bit]
                cells[0, layer, bit] = state[layer, 1, bit]
            for t in range(text.shape[0] - 1):
                x = text[t, bit] * extra[0, bit]
                for layer in range(w.shape[0]):
                    h, c = hidden[t, layer, bit], cells[t, layer, bit]
                    forget = sigmoid(w[layer, 0, 0, bit] * x + w[layer, 1, 0, bit])
                    admit = sigmoid(w[layer, 0, 1, bit] * h + w[layer, 1, 1, bit])
                    emit = sigmoid(w[layer, 0, 2, bit] * x + w[layer, 1, 2, bit])
                    change = ti.tanh(w[layer, 0, 3, bit] * h + w[layer, 1, 3, bit])
                    c = c * forget + admit * change
                    x = emit * ti.tanh(c)
                    hidden[t + 1, layer, bit] = x
                    cells[t + 1, layer, bit] = c
                predictions[t, bit] = extra[1, bit] * x + extra[2, bit]

    @ti.kernel
    def objective(predictions: matrix, text: matrix, loss: ti.template()):
        for t in range(predictions.shape[0]):
            total = 2.0
            for bit in range(BITS):
                total += ti.exp(predictions[t, bit])
            for bit in range(BITS):
                missed = text[t + 1, bit] * (predictions[t, bit] - ti.log(total))
                loss[None] -= missed / (predictions.shape[0] * BITS)

    def run(weights, extra) -> None:
        loss[None] = 0
        predict(weights, extra, state, text, hidden, cells, predictions)
        objective(predictions, text, loss)

    return Program(run, [style.variable(inputs[name]) for name in problem.wrt], loss)
