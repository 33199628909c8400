"""Views, windows and files."""

import numpy as np

import tinote as ti

ti.init()
x = ti.Vector.field(2, ti.f32, shape=100)
picture = ti.field(ti.f32, shape=(64, 64))


@ti.kernel
def step():
    for i in x:
        x[i] += ti.Vector([0.001, 0.0])


view = ti.viz.Particles(x, step)
image = ti.viz.Image(picture, step)
ti.viz.explore(step)
gui = ti.GUI("dots", res=(64, 64))
while gui.running:
    step()
    gui.circles(x.to_numpy(), radius=2, color=0x068587)
    gui.set_image(picture)
    gui.show()
ti.tools.imwrite(np.zeros((8, 8, 3), np.uint8), "black.png")
ti.profiler.print_kernel_profiler_info()
table = ti.sweep(lambda k: k**2, {"k": [1.0, 2.0]}, best="result", direction="maximize")
sorter = ti.algorithms.PrefixSumExecutor(8)
