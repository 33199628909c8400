"""Particles are appended by a counter that is read, used as an index and increased, in a parallel loop.

Iterations that read the same count write the same particle. Results differed between the CPU and a GPU.
"""

import numpy as np

REPORT = "https://github.com/taichi-dev/taichi/issues/2178"
RIGHT = [36, list(range(36))]
KNOWN = "36 particles are appended; each index once, in any order"


def dialect(ti):
    ti.init(arch=ti.cpu, cpu_max_num_threads=1)
    particles, count = ti.field(ti.i32, 64), ti.field(ti.i32, ())

    @ti.kernel
    def append():
        for i in range(36):
            k = count[None]
            particles[k] = i
            count[None] = k + 1

    append()
    return [count[None], np.sort(particles.to_numpy()[: count[None]])]
