"""Fast maths makes no NaN and no infinity of finite products of literals, nor of products that loops carry."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti


def test_a_product_that_comes_back() -> None:
    ti.init()

    @ti.kernel
    def program() -> ti.f32:
        r = 1.0
        for _ in range(1):
            for _i in range(20):
                r *= 0.001
            for _i in range(14):
                r *= 1000.0
        return r

    @ti.kernel
    def unrolled() -> ti.f32:
        r = 1.0
        for _ in ti.static(range(9)):
            r *= 0.001
        for _ in ti.static(range(9)):
            r *= 1000.0
        return r

    assert program() == 0.0
    assert unrolled() == pytest.approx(1.0, rel=1e-4)


def test_elements_that_are_multiplied_and_come_back() -> None:
    ti.init(num_threads=1)
    x, y = ti.field(ti.f32, 4096), ti.field(ti.f32, ())
    x.from_numpy(np.where(np.arange(4096) % 2, 1e-30, 1e30).astype(np.float32))

    @ti.kernel
    def serial() -> ti.f32:
        r = 1.0
        y[None] = 1.0
        for _ in range(1):
            for i in range(4096):
                r *= x[i]
                y[None] *= x[i]
        return r

    assert serial() == pytest.approx(1.0, rel=1e-2)
    assert y[None] == pytest.approx(1.0, rel=1e-2)
