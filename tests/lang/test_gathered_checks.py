"""Indices from memory: the checks of many iterations are made at once before them, and a fault is the user's own."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelIndexError

pytestmark = pytest.mark.optimised

N = 5000


class Gather:
    """y[i] = x[p[i]] and its variations, over N elements."""

    def __init__(self) -> None:
        self.x = ti.field(ti.f32, shape=100, name="x")
        self.y = ti.field(ti.f32, shape=N)
        self.p = ti.field(ti.i32, shape=N)
        self.q = ti.field(ti.i32, shape=100, name="q")
        self.x.from_numpy(np.arange(100, dtype=np.float32))
        self.q.from_numpy(np.arange(100, dtype=np.int32)[::-1].copy())
        self.indices = np.random.default_rng(0).integers(0, 100, N).astype(np.int32)
        self.set({})

    def set(self, changed: dict[int, int]) -> None:
        indices = self.indices.copy()
        for at, value in changed.items():
            indices[at] = value
        self.p.from_numpy(indices)
        self.y.fill(0)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def g(request: pytest.FixtureRequest) -> Gather:
    ti.init(num_threads=request.param)
    return Gather()


def plain(g: Gather) -> Any:
    @ti.kernel
    def run():
        for i in g.y:
            g.y[i] = g.x[g.p[i]]

    return run


def in_a_branch(g: Gather) -> Any:
    @ti.kernel
    def run():
        for i in g.y:
            if i >= 0:
                g.y[i] = g.x[g.p[i]]
            else:
                g.y[i] = 5.0

    return run


def in_an_inner_loop(g: Gather) -> Any:
    @ti.kernel
    def run():
        for _ in range(1):
            for i in range(ti.i64(0), ti.i64(N)):
                g.y[i] = g.x[g.p[i]]

    return run


def summed(g: Gather) -> Any:
    @ti.kernel
    def run():
        for k in range(2):
            total = 0.0
            for i in range(k * (N // 2), (k + 1) * (N // 2)):
                total += g.x[g.p[i]]
                g.y[i] = g.x[g.p[i]]
            g.y[k * (N // 2)] += 0 * total

    return run


@pytest.mark.parametrize("make", [plain, in_a_branch, in_an_inner_loop, summed])
def test_a_gather(g: Gather, make: Any) -> None:
    run = make(g)
    run()
    assert (g.y.to_numpy() == g.indices).all()
    for at in (0, 1, 63, 64, N // 2 - 1, N - 1):
        for index in (-1, 100, 2**31 - 1, -(2**31)):
            g.set({at: index})
            with pytest.raises(KernelIndexError, match=rf"index {index} .*\(100,?\)|index {index} ") as raised:
                run()
            assert "g.x[g.p[i]]" in str(raised.value)
    g.set({})
    run()
    assert (g.y.to_numpy() == g.indices).all()


def test_an_index_that_needs_a_check_of_its_own_is_not_read_before(g: Gather) -> None:
    """x[q[p[i]]]: q is read only where p[i] was found to be in range."""

    @ti.kernel
    def run():
        for i in g.y:
            g.y[i] = g.x[g.q[g.p[i]]]

    run()
    assert (g.y.to_numpy() == 99 - g.indices).all()
    g.set({7: 2**30})
    with pytest.raises(KernelIndexError, match=f"index {2**30} "):
        run()
    g.set({7: 3})
    g.q[96] = 1000
    g.q[3] = -5
    with pytest.raises(KernelIndexError, match=r"index -5 |index 1000 "):
        run()


def test_what_the_turn_itself_wrote_is_checked(g: Gather) -> None:
    @ti.kernel
    def run(step: ti.i32):
        for i in g.p:
            g.p[i] += step
            g.y[i] = g.x[g.p[i]]

    g.indices[:] = 90
    g.set({})
    run(9)
    assert (g.y.to_numpy() == 99).all()
    with pytest.raises(KernelIndexError, match="index 100 "):
        run(1)


def test_a_divisor_from_memory(g: Gather) -> None:
    @ti.kernel
    def divide():
        for i in g.y:
            g.y[i] = 1000 // g.p[i]

    @ti.kernel
    def gather():
        for i in g.y:
            g.y[i] = g.x[1000 // g.p[i]]

    g.indices[:] = 13
    g.set({})
    for run in (divide, gather):
        run()
        assert (g.y.to_numpy() == 76).all()
    g.set({N - 2: 0})
    for run in (divide, gather):
        with pytest.raises(ZeroDivisionError):
            run()
    g.set({N - 2: 3})
    with pytest.raises(KernelIndexError, match="index 333 "):
        gather()


def test_a_loop_that_another_turn_could_change_is_checked_turn_by_turn(g: Gather) -> None:
    """Iteration i sets the index that iteration i + 1 uses."""

    @ti.kernel
    def run():
        for _ in range(1):
            for i in range(N - 1):
                g.y[i] = g.x[g.p[i]]
                g.p[i + 1] = (g.p[i] + 1) % 100

    g.set({0: 5, 1: 10**6})
    run()
    assert (g.y.to_numpy()[:-1] == (np.arange(N - 1) + 5) % 100).all()
