"""`ti.ad.FwdMode` through the public interface."""

from __future__ import annotations

import numpy as np
import pytest

import tinote as ti
from tinote.errors import DifferentiationError


@pytest.fixture(autouse=True)
def fresh() -> None:
    ti.init(default_fp=ti.f64)


def test_sine_at_zero() -> None:
    x = ti.field(ti.f64, (), needs_dual=True)
    y = ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def compute_y():
        y[None] = ti.sin(x[None])

    with ti.ad.FwdMode(loss=y, param=x):
        compute_y()
    assert y.dual[None] == 1.0 and y[None] == 0.0


@pytest.mark.parametrize("seed", [[1.0, 0.0], [0.0, 1.0]])
def test_columns_of_a_jacobian(seed: list[float]) -> None:
    x = ti.field(ti.f32, 2, needs_dual=True)
    y = ti.field(ti.f32, 5, needs_dual=True)

    @ti.kernel
    def compute_y():
        for i in range(5):
            for j in range(2):
                y[i] += i * ti.sin(x[j])

    for _ in range(2):  # duals of the loss are cleared at entry
        y.fill(0)
        with ti.ad.FwdMode(loss=y, param=x, seed=seed):
            compute_y()
        assert y.dual.to_numpy().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert x.dual.to_numpy().tolist() == [0.0, 0.0]


def test_chain_of_kernels_loops_and_branches_equals_differences() -> None:
    n = 6
    x = ti.Vector.field(2, ti.f64, n, needs_dual=True)
    z = ti.field(ti.f64, n, needs_dual=True)
    y = ti.field(ti.f64, (), needs_dual=True)

    @ti.kernel
    def first():
        for i in x:
            s = 0.3
            for k in range(i + 1):
                s = ti.sin(s * x[k].x) + x[i].norm(0.1)
            if s > 1.0:
                s = s * s
            while s > 0.9:
                s *= 0.7
            z[i] = s

    @ti.kernel
    def second():
        for i in z:
            y[None] += z[i] * ti.exp(-z[n - 1 - i])

    rng = np.random.default_rng(3)
    at, along = rng.random((n, 2)), rng.random((n, 2))

    def value(offset: float) -> float:
        x.from_numpy(at + offset * along)
        y[None] = 0
        first()
        second()
        return y[None]

    step = 1e-6
    wanted = (value(step) - value(-step)) / (2 * step)
    x.from_numpy(at)
    y[None] = 0
    with ti.ad.FwdMode(loss=y, param=x, seed=along):
        first()
        second()
    assert y.dual[None] == pytest.approx(wanted, rel=1e-7)


def test_what_python_writes_inside_is_constant() -> None:
    x = ti.field(ti.f64, (), needs_dual=True)
    y = ti.field(ti.f64, 2, needs_dual=True)

    @ti.kernel
    def compute_y():
        for i in y:
            y[i] = 3 * x[None]

    x[None] = 2.0
    with ti.ad.FwdMode(loss=y, param=x):
        compute_y()
        y[1] = 7.0
    assert y.dual.to_numpy().tolist() == [3.0, 0.0]


def test_a_copy_of_a_field_onto_itself_keeps_its_dual() -> None:
    x = ti.field(ti.f64, 2, needs_dual=True)

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] * x[i]

    x.from_numpy(np.array([2.0, 3.0]))
    with ti.ad.FwdMode(loss=x, param=x, seed=[1.0, 10.0]):
        square()
        x.copy_from(x)
        tangents = x.dual.to_numpy().tolist()
    assert tangents == [4.0, 60.0]


def test_several_parameters_and_losses() -> None:
    a, b = (ti.field(ti.f64, (), needs_dual=True) for _ in range(2))
    p, q = (ti.field(ti.f64, (), needs_dual=True) for _ in range(2))

    @ti.kernel
    def compute():
        p[None] = a[None] * b[None]
        q[None] = a[None] + 2 * b[None]

    a[None], b[None] = 3.0, 5.0
    with ti.ad.FwdMode(loss=[p, q], param=[a, b], seed=[1.0, 10.0]):
        compute()
    assert (p.dual[None], q.dual[None]) == (5.0 + 30.0, 1.0 + 20.0)


def test_errors_name_what_is_wrong() -> None:
    x = ti.field(ti.f64, 2, needs_dual=True)
    y = ti.field(ti.f64, (), needs_dual=True)
    plain = ti.field(ti.f64, ())
    with pytest.raises(DifferentiationError, match="needs a seed of that shape"):
        ti.ad.FwdMode(loss=y, param=x)
    with pytest.raises(DifferentiationError, match=r"shape \(3,\)"):
        ti.ad.FwdMode(loss=y, param=x, seed=[1, 2, 3])
    with pytest.raises(DifferentiationError, match="'plain' has no dual"):
        ti.ad.FwdMode(loss=plain, param=x, seed=[1, 2])
    with ti.ad.FwdMode(loss=y, param=x, seed=[1, 2]), pytest.raises(DifferentiationError, match="inside of another"):
        ti.ad.FwdMode(loss=y, param=x, seed=[1, 2]).__enter__()
