"""Launches in the dialect: one program for tinote, Taichi and Quadrants.

Without `from __future__ import annotations`: the module `ti` is a parameter here, so a kernel's argument types have to
be evaluated where the kernel is defined.
"""

import importlib

import numpy as np

from benchmarks.launch.system import ARGUMENT, CAPTURED, SIZE, LaunchSystem, initial_values

__all__ = ["create"]


class DialectLaunch(LaunchSystem):
    """One of the kernels, for the module `ti`."""

    def __init__(self, ti, kernel: str) -> None:
        super().__init__(kernel)
        ti.init(arch=ti.cpu)
        s = ti.field(dtype=ti.f32, shape=())
        x = ti.field(dtype=ti.f32, shape=SIZE)
        y = ti.field(dtype=ti.f32, shape=SIZE)
        a = np.zeros(1, np.float32)

        @ti.kernel
        def scalar(value: ti.f32):
            s[None] = value

        @ti.kernel
        def template(target: ti.template(), value: ti.f32):
            target[None] = value

        @ti.kernel
        def array(target: ti.types.ndarray(dtype=ti.f32, ndim=1), value: ti.f32):
            target[0] = value

        @ti.kernel
        def loop():
            for i in x:
                y[i] = 2 * x[i] + 1

        def step(value):
            for _ in range(CAPTURED):
                scalar(value)

        x.from_numpy(initial_values())
        self._launch, self._arguments, self._target = {
            "scalar": (scalar, (ARGUMENT,), s),
            "template": (template, (s, ARGUMENT), s),
            "array": (array, (a, ARGUMENT), a),
            "loop": (loop, (), y),
            "captured": (ti.capture(step) if kernel == "captured" else None, (ARGUMENT,), s),
        }[kernel]

    def run(self, count: int) -> None:
        launch, arguments = self._launch, self._arguments
        for _ in range(count):
            launch(*arguments)

    def clear(self) -> None:
        self._target.fill(0)

    def result(self) -> np.ndarray:
        return self._target if isinstance(self._target, np.ndarray) else self._target.to_numpy()


def create(package: str, kernel: str) -> DialectLaunch:
    """Return the launches of the module called `package`."""
    return DialectLaunch(importlib.import_module(package), kernel)
