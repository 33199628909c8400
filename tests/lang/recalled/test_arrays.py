"""Kernels with array arguments take machine code from an earlier process, whatever the shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tests.lang.recalled.support import is_recalled
from tinote.errors import KernelIndexError

TEXT = """
@ti.func
def scaled(a: ti.types.ndarray(dtype=ti.f32), i, by):
    return by * a[i]

@ti.kernel
def run(a: ti.types.ndarray(dtype=ti.f32, ndim=1), by: ti.f32, b: ti.types.ndarray()):
    for i in a:
        b[i] += scaled(a, i, by)
"""


def test_other_shapes_and_types(load: Any) -> None:
    load(TEXT).run(np.ones(3, np.float32), 2.0, np.zeros(3))
    ti.init()
    again = load(TEXT).run
    b = np.zeros(50)
    again(np.ones(50, np.float32), 2.0, b)
    assert is_recalled(again)
    assert (b == 2).all()
    again(np.ones(50, np.float32), 2.0, np.zeros(50, np.float32))
    assert not is_recalled(again)
    with pytest.raises(KernelIndexError, match=r"'b' of shape \(3,\)"):
        again(np.ones(5, np.float32), 2.0, np.zeros(3))


def test_gradients(load: Any) -> None:
    for recalled in (False, True):
        ti.init()
        run = load(TEXT).run
        a, b = (ti.ndarray(ti.f32, shape=4, needs_grad=True) for _ in range(2))
        run(a, 3.0, b)
        assert is_recalled(run) is recalled
        b.grad.fill(1.0)
        run.grad(a, 3.0, b)
        assert a.grad.to_numpy().tolist() == [3.0] * 4
        assert is_recalled(run) is recalled
