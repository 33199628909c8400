"""The value that an atomic minimum returns.

It is what the element held before; on GPUs it was the new minimum.
"""

import numpy as np

REPORT = "https://github.com/NVIDIA/warp/issues/1058"
RIGHT = [[5.0, 1.0], [3.0, 1.0]]
KNOWN = "the definition: an atomic operation returns the old value"


def dialect(ti):
    ti.init(arch=ti.cpu)
    a, old = ti.field(ti.f32, 2), ti.field(ti.f32, 2)
    a.from_numpy(np.array([5.0, 1.0], np.float32))

    @ti.kernel
    def lower():
        for i in a:
            old[i] = ti.atomic_min(a[i], 3.0)

    lower()
    return [old.to_numpy(), a.to_numpy()]


def warp(wp):
    @wp.kernel
    def lower(a: wp.array(dtype=float), old: wp.array(dtype=float)):
        i = wp.tid()
        old[i] = wp.atomic_min(a, i, 3.0)

    a = wp.array(np.array([5.0, 1.0]), dtype=float, device="cpu")
    old = wp.zeros(2, dtype=float, device="cpu")
    wp.launch(lower, 2, inputs=[a, old], device="cpu")
    return [old.numpy(), a.numpy()]
