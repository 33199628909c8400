"""Two nested loops whose bounds are only known at run time carry a position along a chain of joints.

Values were right, and the derivative by the outermost angle was twice what it is.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1293"
RIGHT = [float(-3 * np.sin(0.3)), float(-2 * np.sin(0.3))]
KNOWN = "by hand: the sum over links of the cosines, each angle repeated by the inner loop"


def dialect(ti):
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    start, count = ti.field(ti.i32, 2), ti.field(ti.i32, 2)
    q, y = ti.field(ti.f64, 2, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    start.from_numpy(np.array([0, 1], np.int32))
    count.from_numpy(np.array([3, 2], np.int32))
    q.fill(0.3)

    @ti.kernel
    def chain(links: ti.i32):
        for _ in range(1):
            position = 0.0
            for i in range(links):
                for _j in range(count[i]):
                    position = position + ti.cos(q[start[i]])
            y[None] += position

    with ti.ad.Tape(y):
        chain(2)
    return q.grad.to_numpy()


def warp(wp):
    @wp.kernel
    def chain(
        links: int,
        start: wp.array(dtype=int),
        count: wp.array(dtype=int),
        q: wp.array(dtype=float),
        y: wp.array(dtype=float),
    ):
        position = float(0.0)
        for i in range(links):
            for _j in range(count[i]):
                position = position + wp.cos(q[start[i]])
        y[0] = position

    start = wp.array(np.array([0, 1]), dtype=int, device="cpu")
    count = wp.array(np.array([3, 2]), dtype=int, device="cpu")
    q = wp.array(np.array([0.3, 0.3]), dtype=float, requires_grad=True, device="cpu")
    y = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
    with wp.Tape() as tape:
        wp.launch(chain, 1, inputs=[2, start, count, q, y], device="cpu")
    tape.backward(y)
    return q.grad.numpy()
