"""Gradients by tape, by hand and forward."""

import numpy as np

from benchmarks.agreement.reasons import differs


def tape(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 4, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([1, 2, 3, 4], np.float32))

    @ti.kernel
    def k():
        for i in x:
            loss[None] += ti.sin(x[i]) * x[i] ** 2

    with ti.ad.Tape(loss):
        k()
    return [loss[None], x.grad.to_numpy()]


def several_kernels(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, 3, needs_grad=True)
    loss = ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([1, 2, 3], np.float32))

    @ti.kernel
    def first():
        for i in x:
            y[i] = x[i] * x[(i + 1) % 3]

    @ti.kernel
    def second():
        for i in y:
            loss[None] += y[i] ** 2

    with ti.ad.Tape(loss=loss):
        first()
        second()
    return x.grad.to_numpy()


def gradient_by_hand(ti):
    ti.init(arch=ti.cpu)
    x, y = ti.field(ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x[None] = 1.5

    @ti.kernel
    def k():
        y[None] = ti.exp(x[None]) * x[None]

    k()
    y.grad[None] = 2.0
    k.grad()
    return x.grad[None]


def matrices_differentiated(ti):
    ti.init(arch=ti.cpu)
    m, loss = ti.Matrix.field(2, 2, ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    m[None] = [[2, 1], [0.5, 3]]

    @ti.kernel
    def k():
        loss[None] += m[None].determinant() + (m[None] @ m[None]).trace()

    with ti.ad.Tape(loss):
        k()
    return m.grad.to_numpy()


def branches(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 4, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([-1, 2, -3, 4], np.float32))

    @ti.kernel
    def k():
        for i in x:
            if x[i] > 0:
                loss[None] += x[i] ** 3
            else:
                loss[None] += abs(x[i])

    with ti.ad.Tape(loss):
        k()
    return x.grad.to_numpy()


def inner_loops(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([0.5, 1.0, 1.5], np.float32))

    @ti.kernel
    def k():
        for i in x:
            s = 0.0
            for j in range(4):
                s += x[i] * j
            loss[None] += s * s

    with ti.ad.Tape(loss):
        k()
    return x.grad.to_numpy()


@differs("Taichi's gradient forgets the earlier values of `s` in `exp(s)`; differences of the loss agree with tinote")
def product_in_an_inner_loop(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 2, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([0.5, 1.5], np.float32))

    @ti.kernel
    def k():
        for i in x:
            s = 1.0
            for _ in range(3):
                s = s * x[i] + ti.exp(s)
            loss[None] += s

    with ti.ad.Tape(loss):
        k()
    return x.grad.to_numpy()


def forward_mode(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 3, needs_dual=True), ti.field(ti.f32, (), needs_dual=True)
    x.from_numpy(np.array([1, 2, 3], np.float32))

    @ti.kernel
    def k():
        for i in x:
            loss[None] += x[i] ** 2 * (i + 1)

    with ti.ad.FwdMode(loss=loss, param=x, seed=[1.0, 0.0, 2.0]):
        k()
    return loss.dual[None]


def custom_gradient(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, (), needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x[None] = 3.0

    @ti.kernel
    def k():
        loss[None] += x[None] ** 2

    @ti.ad.grad_replaced
    def forward():
        k()

    @ti.ad.grad_for(forward)
    def backward():
        x.grad[None] = 10 * loss.grad[None]

    with ti.ad.Tape(loss):
        forward()
    return x.grad[None]


def arrays_differentiated(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.ndarray(ti.f32, 3, needs_grad=True), ti.ndarray(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([1, 2, 3], np.float32))

    @ti.kernel
    def k(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[None] += a[i] ** 2

    with ti.ad.Tape(loss=loss):
        k(x, loss)
    return x.grad.to_numpy()


def no_gradient_through(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 2, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([2, 3], np.float32))

    @ti.kernel
    def k():
        for i in x:
            loss[None] += x[i] * x[i]

    @ti.kernel
    def unseen():
        for i in x:
            loss[None] += 100

    with ti.ad.Tape(loss):
        k()
        unseen()
    return [loss[None], x.grad.to_numpy()]


def time_steps(ti):
    ti.init(arch=ti.cpu)
    n = 10
    x, v = ti.field(ti.f32, n + 1, needs_grad=True), ti.field(ti.f32, n + 1, needs_grad=True)
    loss = ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def step(t: ti.i32):
        v[t + 1] = v[t] - 0.1 * x[t]
        x[t + 1] = x[t] + 0.1 * v[t + 1]

    @ti.kernel
    def measure():
        loss[None] = x[n] ** 2

    x[0], v[0] = 1.0, 0.5
    with ti.ad.Tape(loss):
        for t in range(n):
            step(t)
        measure()
    return [loss[None], x.grad[0], v.grad[0]]


@differs("tinote keeps what a step overwrites; Taichi's gradient reads the overwritten values")
def overwritten_in_place(ti):
    ti.init(arch=ti.cpu)
    x, loss = ti.field(ti.f32, 2, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)
    x.from_numpy(np.array([0.5, 0.25], np.float32))

    @ti.kernel
    def step():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def measure():
        for i in x:
            loss[None] += x[i]

    with ti.ad.Tape(loss):
        step()
        step()
        measure()
    return x.grad.to_numpy()
