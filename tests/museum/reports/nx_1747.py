"""A loop multiplies an accumulator by the variable that is differentiated.

Where the derivative of an iteration by the accumulator depends on that variable, the gradient was wrong.
"""

REPORT = "https://github.com/elixir-nx/nx/issues/1747"
RIGHT = [0.75, -48.0]
KNOWN = "x³ and 1/x³: 3x² and -3/x⁴, at x = 1/2"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x, y = ti.field(ti.f64, 2, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.fill(0.5)

    @ti.kernel
    def powers(n: ti.i32):
        for i in x:
            value = 1.0
            k = 0
            while k < n:
                value = value * x[i] if i == 0 else value / x[i]
                k += 1
            y[None] += value

    with ti.ad.Tape(y):
        powers(3)
    return x.grad.to_numpy()


def jax(jax):
    def power(divide):
        def evaluate(x):
            return jax.lax.fori_loop(0, 3, lambda _, value: value / x if divide else value * x, 1.0)

        return float(jax.grad(evaluate)(0.5))

    return [power(divide=False), power(divide=True)]
