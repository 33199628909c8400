"""A local variable is added to in an inner loop.

The derivative was that of one iteration, 1, in place of 5.
"""

REPORT = "https://github.com/taichi-dev/taichi/issues/4412"
RIGHT = [5.0, 5.0, 5.0]
KNOWN = "f = 5a"


def dialect(ti):
    ti.init(arch=ti.cpu)
    a, f = ti.field(ti.f32, 3, needs_grad=True), ti.field(ti.f32, 3, needs_grad=True)

    @ti.kernel
    def add():
        for i in range(3):
            p = a[i]
            q = 0.0
            for _ in range(5):
                q += p
            f[i] = q

    add()
    f.grad.fill(1.0)
    add.grad()
    return a.grad.to_numpy()
