"""The derivatives in tinote."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.fixed_cost.system import SIZE, FixedCost, initial_values, vector

__all__ = ["create"]


class TinoteFixedCost(FixedCost):
    """One of them."""

    def __init__(self, ti, derivative: str) -> None:
        super().__init__(derivative)
        ti.init(arch=ti.cpu, default_fp=ti.f64)
        x = ti.field(ti.f64, SIZE, needs_grad=True)
        loss = ti.field(ti.f64, (), needs_grad=True)
        array = ti.ndarray(ti.f64, SIZE, needs_grad=True)
        given, along = initial_values(), vector()
        for one in (x, array):
            one.from_numpy(given)

        @ti.kernel
        def squares():
            for i in x:
                loss[None] += x[i] * x[i]

        @ti.kernel
        def cubes(v: ti.types.ndarray(dtype=ti.f64, ndim=1)) -> ti.f64:
            total = 0.0
            for i in range(v.shape[0]):
                total += v[i] * v[i] * v[i]
            return total

        gradient, product = ti.ad.grad(cubes), ti.ad.hvp(cubes)

        def tape() -> Any:
            with ti.ad.Tape(loss):
                squares()
            return x.grad

        self._run: Callable[[], Any] = {
            "tape": tape,
            "ndarray": lambda: gradient(array),
            "numpy": lambda: gradient(given),
            "hvp": lambda: product(along, given),
        }[derivative]

    def run(self, count: int) -> None:
        run = self._run
        for _ in range(count):
            self._found = run()

    def result(self) -> np.ndarray:
        return self._found if isinstance(self._found, np.ndarray) else self._found.to_numpy()


def create(package: str, derivative: str) -> TinoteFixedCost:
    """Return the derivative."""
    return TinoteFixedCost(importlib.import_module(package), derivative)
