"""Idle memory: used again while nobody else has it, zero where that is asked for, bounded, given back when needed."""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelMemoryError
from tinote.runtime import pool as pools
from tinote.runtime.memory import Memory
from tinote.runtime.pool import POOLED_FROM, Pool, pool

SIZES = [POOLED_FROM, 10_000, 1 << 20, 5_000_003]


@pytest.fixture(autouse=True, scope="module")
def nothing_from_before() -> None:
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_idle() -> Iterator[None]:
    pool.trim()
    yield
    pool.trim()


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_block_is_used_again_and_is_zero(nbytes: int) -> None:
    memory = Memory(nbytes)
    memory.view()[:] = b"x" * nbytes
    address, fresh, reused = memory.address, pool.fresh, pool.reused
    del memory
    assert nbytes <= pool.nbytes <= nbytes * 9 // 8 + 1
    again = Memory(nbytes)
    assert (again.address, pool.fresh, pool.reused) == (address, fresh, reused + 1)
    assert not np.frombuffer(again.view(), np.uint8).any() and len(again.view()) == nbytes
    assert pool.nbytes == 0


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_copy_is_not_cleared_first(nbytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(nbytes)
    memory.view()[:] = b"x" * nbytes
    idle = memory.copy()
    del idle
    monkeypatch.setattr(Memory, "clear", None)
    assert bytes(memory.copy().view()) == b"x" * nbytes


@pytest.mark.parametrize("nbytes", SIZES)
def test_a_block_is_in_use_as_long_as_an_array_shares_it(nbytes: int) -> None:
    memory = Memory(nbytes)
    array = np.frombuffer(memory.view(), np.uint8)[3:7]
    array[:] = 9
    del memory
    assert pool.nbytes == 0
    others = [Memory(nbytes) for _ in range(3)]
    assert array.tolist() == [9] * 4 and len(others) == 3
    del array
    assert pool.nbytes >= nbytes


def test_small_and_huge_blocks_are_not_held() -> None:
    for nbytes in (0, POOLED_FROM - 1, pool.limit // 4 + 1):
        memory = Memory(nbytes)
        del memory
        assert pool.nbytes == 0


def test_what_is_idle_is_bounded_and_the_size_used_least_recently_goes_first() -> None:
    own = Pool(limit=100_000)
    blocks = [own.take(nbytes)[0] for nbytes in (20_000, 16_000, 16_000, 24_000, 24_000, 24_000)]
    while blocks:
        blocks.pop(0)
        assert own.nbytes <= 100_000
    before = own.reused
    kept = own.take(24_000), own.take(16_000)
    assert own.reused == before + 2
    kept += (own.take(20_000),)
    assert own.reused == before + 2
    large = own.take(25_000)[0]
    own.limit = 21_000
    idle = own.nbytes
    del large
    assert own.nbytes == idle, "it has become too large, and displaces nothing"
    own.trim(30_000)
    assert 0 < own.nbytes <= 30_000
    own.trim()
    assert own.nbytes == 0


def test_what_is_idle_goes_when_the_system_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_while_idle(nbytes: int) -> pools._Backing:
        if pool.nbytes:
            raise MemoryError
        return make(nbytes)

    idle = Memory(100_000)
    del idle
    make = pools._new_backing
    monkeypatch.setattr(pools, "_new_backing", refuse_while_idle)
    assert Memory(50_000).nbytes == 50_000

    def refuse(nbytes: int) -> pools._Backing:
        raise OSError

    monkeypatch.setattr(pools, "_new_backing", refuse)
    with pytest.raises(MemoryError, match=r"no 97\.7 KiB of memory left"):
        Memory(100_000)


def test_a_reset_gives_everything_back() -> None:
    memory = Memory(1 << 20)
    del memory
    assert pool.nbytes
    ti.reset()
    assert pool.nbytes == 0


def test_idle_memory_counts_against_the_memory_limit() -> None:
    """What a tape keeps, and what is idle besides, is never more than the limit; the limit itself is as before."""
    n, limit = 10_000, 1_000_000
    ti.init(arch=ti.cpu, default_fp=ti.f64, memory_limit=limit)
    assert pool.limit == limit
    x = ti.field(ti.f64, shape=n, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            x[i] = x[i] * x[i]

    @ti.kernel
    def total():
        for i in x:
            loss[None] += x[i]

    def gradient(steps: int) -> None:
        x.fill(1)
        with ti.ad.Tape(loss) as tape:
            for _ in range(steps):
                square()
                assert tape.copied_bytes + pool.nbytes <= limit
            total()

    gradient(10)
    assert (x.grad.to_numpy() == 1 << 10).all() and pool.nbytes > 0
    gradient(11)
    with pytest.raises(KernelMemoryError, match="1,000,000 bytes"):
        gradient(14)
    ti.reset()
    assert pool.limit == pools.MOST_IDLE


def test_threads_never_have_the_same_block() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        choose = random.Random(number)
        mine: list[np.ndarray] = []
        for _ in range(150):
            mine.append(np.frombuffer(Memory(choose.choice(SIZES[:2])).view(), np.uint8))
            if mine[-1].any():
                wrong.append(number)
            mine[-1][:] = number
            if len(mine) > 5:
                one = mine.pop(choose.randrange(len(mine)))
                if not (one == number).all():
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_child_has_a_pool_of_its_own() -> None:
    """Another thread may have held the lock when the process was forked."""
    with pool._lock:
        other = threading.Thread(target=lambda: pool.trim())
        child = os.fork()
        if not child:
            memory = Memory(10_000)
            del memory
            threading.Thread(target=lambda: Memory(10_000)).start()
            os._exit(0 if pool.nbytes >= 10_000 or pool.reused else 1)
    other.start()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
