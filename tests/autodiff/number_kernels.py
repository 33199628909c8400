"""Kernels that numbers in Python come from and go to, over a field `x` and a loss."""

from __future__ import annotations

from typing import Any

import tinote as ti


class NumberKernels:
    """`squares` adds x² to the loss, `scaled` a·x; `norm2` returns the sum of squares."""

    def __init__(self, x: Any, loss: Any) -> None:
        @ti.kernel
        def squares():
            for i in x:
                loss[None] += x[i] ** 2

        @ti.kernel
        def norm2() -> ti.f64:
            found = 0.0
            for i in x:
                found += x[i] ** 2
            return found

        @ti.kernel
        def scaled(a: ti.f64):
            for i in x:
                loss[None] += a * x[i]

        self.squares, self.norm2, self.scaled = squares, norm2, scaled
