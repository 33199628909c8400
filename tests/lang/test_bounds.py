"""Bounds checks: whatever is out of range raises, whatever is not reached does not, however far checks were moved."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelAssertionError, KernelIndexError


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def x(request: pytest.FixtureRequest) -> Any:
    ti.init(num_threads=request.param)
    field = ti.field(ti.i32, shape=8, name="x")
    field.from_numpy(np.arange(8, dtype=np.int32))
    return field


def test_guarded_accesses(x: Any) -> None:
    out = ti.field(ti.i32, shape=20)

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            if i < 8:
                out[i] += x[i]
            if 0 <= i - 3 < 8:
                out[i] += 10 * x[i - 3]
            out[i] += 100 * (x[i] if i < 8 else 1)
            if i + 5 < 8 and x[i + 5] > 5:
                out[i] += 1000
            for j in range(i, 8):
                out[i] += x[j]
            k = i
            while k < 8:
                out[i] += x[k]
                k += 3

    run(20)
    a = np.arange(8)
    expected = []
    for i in range(20):
        s = (a[i] if i < 8 else 0) + (10 * a[i - 3] if 0 <= i - 3 < 8 else 0) + 100 * (a[i] if i < 8 else 1)
        s += 1000 if i + 5 < 8 and a[i + 5] > 5 else 0
        s += a[i:].sum() + a[i::3].sum()
        expected.append(s)
    assert out.to_numpy().tolist() == expected


def test_what_is_left_before_the_end_does_not_raise(x: Any) -> None:
    @ti.kernel
    def find(value: ti.i32, n: ti.i32) -> ti.i32:
        found = -1
        for _ in range(1):
            for i in range(n):
                if x[i] == value:
                    found = i
                    break
        return found

    assert [find(v, 1000) for v in range(8)] == list(range(8))
    with pytest.raises(KernelIndexError, match="index 8 "):
        find(99, 1000)
    assert find(99, 8) == -1


def test_loops_without_a_turn(x: Any) -> None:
    @ti.kernel
    def run(n: ti.i32, m: ti.i32, k: ti.i32) -> ti.i32:
        s = 0
        for _ in range(n):
            for j in range(m):
                s += x[k + j] + x[k]
        return s

    assert run(0, 5, 1000) == 0
    assert run(5, 0, 1000) == 0
    assert run(-5, 5, -7) == 0
    assert run(1, 1, 7) == 14
    for k in (8, -1, 7):
        with pytest.raises(KernelIndexError):
            run(2, 2, k)


def test_a_check_in_a_branch_stays_in_it(x: Any) -> None:
    @ti.kernel
    def run(k: ti.i32, use: ti.i32) -> ti.i32:
        s = 0
        for i in range(10):
            if use > i:
                s += x[k]
        return s

    assert run(1000, 0) == 0
    assert run(3, 2) == 6
    with pytest.raises(KernelIndexError, match="index 1000 "):
        run(1000, 1)


def test_an_assertion_that_comes_first_is_reported_first() -> None:
    ti.init(num_threads=1)
    x = ti.field(ti.i32, shape=8)

    @ti.kernel
    def run(n: ti.i32):
        for _ in range(1):
            for i in range(n):
                assert i < 5, "five is enough"
                x[i] += 1

    with pytest.raises(KernelAssertionError, match="five is enough"):
        run(100)
    with pytest.raises(KernelAssertionError, match="five is enough"):
        run(6)
    run(5)


def test_prints_before_the_fault_are_seen(capsys: pytest.CaptureFixture[str]) -> None:
    x = ti.field(ti.i32, shape=8)

    @ti.kernel
    def run(n: ti.i32):
        for _ in range(1):
            for i in range(n):
                print("at", i)
                x[i] += 1

    with pytest.raises(KernelIndexError):
        run(9)
    assert "at 0" in capsys.readouterr().out


@pytest.mark.parametrize("offset", [-3, -1, 0, 1, 5])
@pytest.mark.parametrize("stride", [-2, -1, 1, 2, 3])
def test_every_affine_access(x: Any, stride: int, offset: int) -> None:
    @ti.kernel
    def run(low: ti.i32, high: ti.i32) -> ti.i32:
        s = 0
        for i in range(low, high):
            s += x[i * stride + offset]
        return s

    for low, high in ((0, 1), (0, 3), (0, 4), (1, 5), (-4, 0), (2, 2), (0, 8), (3, 9)):
        touched = [i * stride + offset for i in range(low, high)]
        if all(0 <= t < 8 for t in touched):
            assert run(low, high) == sum(touched)
        else:
            with pytest.raises(KernelIndexError):
                run(low, high)


def test_wrapping_does_not_escape(x: Any) -> None:
    """An index whose arithmetic overflows is checked by what it comes to."""

    @ti.kernel
    def scaled(i: ti.i32, k: ti.i32) -> ti.i32:
        return x[i * k]

    @ti.kernel
    def loop(low: ti.i32, high: ti.i32) -> ti.i32:
        s = 0
        for i in range(low, high):
            s += x[i * 1073741824 + 1]
        return s

    assert scaled(2**30, 4) == 0
    with pytest.raises(KernelIndexError):
        scaled(2**30, 3)
    assert loop(4, 5) == 1
    with pytest.raises(KernelIndexError):
        loop(0, 2)


def test_data_dependent_indices(x: Any) -> None:
    index = ti.field(ti.i32, shape=6)

    @ti.kernel
    def gather() -> ti.i32:
        s = 0
        for i in index:
            s += x[index[i]]
        return s

    @ti.kernel
    def clamped() -> ti.i32:
        s = 0
        for i in index:
            s += x[ti.max(0, ti.min(7, index[i]))] + x[index[i] & 7] + x[index[i] % 8]
        return s

    index.from_numpy(np.array([0, 7, 3, 3, 1, 2], np.int32))
    assert gather() == 16
    index[4] = 8
    with pytest.raises(KernelIndexError, match="index 8 is out of bounds for axis 0 of 'x'"):
        gather()
    index[5] = -9
    values = index.to_numpy()
    assert clamped() == np.clip(values, 0, 7).sum() + (values & 7).sum() + (values % 8).sum()


def test_each_axis_is_checked() -> None:
    g = ti.field(ti.f32, shape=(3, 4, 5))
    v = ti.Matrix.field(2, 3, ti.f32, shape=(3, 4))

    @ti.kernel
    def field(i: ti.i32, j: ti.i32, k: ti.i32):
        g[i, j, k] += 1

    @ti.kernel
    def matrix(i: ti.i32, j: ti.i32, r: ti.i32, c: ti.i32):
        v[i, j][r, c] = 1

    field(2, 3, 4)
    for axis, index in enumerate([(3, 0, 0), (0, 4, 0), (0, 0, 5), (-1, 0, 0), (0, -1, 0), (0, 0, -1)]):
        with pytest.raises(KernelIndexError, match=rf"axis {axis % 3} of 'g' of shape \(3, 4, 5\)"):
            field(*index)
    matrix(2, 3, 1, 2)
    for index in [(3, 0, 0, 0), (0, 4, 0, 0), (0, 0, 2, 0), (0, 0, 0, 3), (0, 0, -1, 0), (0, 0, 0, -1)]:
        with pytest.raises(KernelIndexError):
            matrix(*index)
    assert v.to_numpy().sum() == 1


def test_the_gradient_checks_too() -> None:
    x, loss = ti.field(ti.f32, shape=8, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            loss[None] += x[i] ** 2

    loss.grad[None] = 1
    x.fill(1)
    run.grad(8)
    assert x.grad.to_numpy().tolist() == [2] * 8
    with pytest.raises(KernelIndexError):
        run.grad(9)


def test_without_checks_what_is_in_range_is_the_same() -> None:
    ti.init(bounds_check=False)
    x, y = ti.field(ti.i32, shape=(8, 8)), ti.field(ti.i32, shape=(8, 8))
    x.from_numpy(np.arange(64, dtype=np.int32).reshape(8, 8))

    @ti.kernel
    def run(k: ti.i32):
        for i, j in x:
            y[i, j] = x[(i + k) % 8, (j * k) % 8]

    run(3)
    i, j = np.indices((8, 8))
    np.testing.assert_array_equal(y.to_numpy(), x.to_numpy()[(i + 3) % 8, (j * 3) % 8])
