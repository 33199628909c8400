"""Parallel loops: every iteration once, the same pieces always, faults, several launches at once."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

import pytest

from tests.runtime.texts import parallel
from tinote.errors import KernelAssertionError
from tinote.runtime import layout
from tinote.runtime.jit import compile_module
from tinote.runtime.launch import LaunchBlock, Launcher
from tinote.runtime.memory import Memory
from tinote.runtime.sites import Site, SiteKind
from tinote.runtime.threads import available_cores
from tinote.source import Span

# Slot 2: an array of i64; every iteration adds 1000 + its thread to its element.
COUNT = """
  %array.at = getelementptr i8, ptr %block, i64 144
  %array = load ptr, ptr %array.at
  %low.base.at = getelementptr i8, ptr %block, i64 128
  %base = load i64, ptr %low.base.at
  %offset = sub i64 %i, %base
  %element = getelementptr i64, ptr %array, i64 %offset
  %wide = zext i32 %tid to i64
  %mark = add i64 %wide, 1000
  %ignored = atomicrmw add ptr %element, i64 %mark monotonic
  br label %next"""


class Counting:
    """A launcher of the counting loop, and what the last run did to each iteration."""

    def __init__(self, threads: int, *, grain: int = 1, dynamic: bool = False, size: int = 1 << 16) -> None:
        binary = compile_module(parallel(COUNT, grain=grain, dynamic=dynamic), entry_points=("entry",))
        self.launcher = Launcher(binary, "entry", 4, 0, (), threads)
        self.memory = Memory(8 * size)
        self.block = self.launcher.acquire()

    def run(self, low: int, high: int) -> list[int]:
        """The thread that ran each iteration; fails if one did not run exactly once."""
        counts = self.memory.view().cast("q")
        span = max(0, high - low)
        counts[:span] = Memory(8 * span).view().cast("q")
        self.block.integers[0], self.block.integers[1], self.block.integers[2] = low, high, self.memory.address
        self.launcher.run(self.block)
        marks = list(counts[:span])
        assert all(1000 <= mark < 2000 for mark in marks), "an iteration ran never or twice"
        return [mark - 1000 for mark in marks]


def expected_pieces(count: int, threads: int, grain: int) -> list[int]:
    """The thread of each iteration by the definition: contiguous, as even as possible, the longer pieces first."""
    pieces = min(threads, -(-count // grain)) if count > grain else 1
    return [piece for piece in range(pieces) for _ in range(count // pieces + (piece < count % pieces))]


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("grain", [1, 7, 1000])
def test_every_iteration_runs_once_in_its_piece(threads: int, grain: int) -> None:
    counting = Counting(threads, grain=grain)
    for count in (0, 1, 2, 3, 7, 8, 63, 64, 65, 1000, 1001, 4096, 50_001):
        for low in (0, -17, 1 << 40):
            assert counting.run(low, low + count) == expected_pieces(count, threads, grain)


def test_empty_and_backward_ranges_do_nothing() -> None:
    counting = Counting(4)
    assert counting.run(5, 5) == []
    assert counting.run(5, -5) == []
    assert counting.run((1 << 63) - 1, -(1 << 63)) == []


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("grain", [1, 16, 5000])
def test_dynamic_loops_run_every_iteration_once(threads: int, grain: int) -> None:
    counting = Counting(threads, grain=grain, dynamic=True)
    for count in (0, 1, 15, 16, 17, 1000, 20_000):
        ran_on = counting.run(-3, count - 3)
        assert len(ran_on) == count and all(0 <= tid < threads for tid in ran_on)


def test_many_small_loops() -> None:
    counting = Counting(3)
    expected = expected_pieces(30, 3, 1)
    for repeat in range(3000):
        assert counting.run(0, 30) == expected, repeat


def test_workers_that_park_between_launches() -> None:
    counting = Counting(4)
    expected = expected_pieces(100, 4, 1)
    for _ in range(30):
        assert counting.run(0, 100) == expected
        time.sleep(0.002)
    assert counting.launcher.runtime.workers >= 3


def test_several_python_threads_launch_at_once() -> None:
    expected = {threads: expected_pieces(5000, threads, 1) for threads in (2, 3, 4)}
    wrong: list[str] = []

    def work(threads: int) -> None:
        counting = Counting(threads, size=5000)
        for _ in range(100):
            if counting.run(0, 5000) != expected[threads]:
                wrong.append(f"{threads} threads")

    workers = [threading.Thread(target=work, args=(threads,)) for threads in (2, 3, 4, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
    assert not any(worker.is_alive() for worker in workers)
    assert wrong == []


def test_one_launcher_used_by_several_threads() -> None:
    counting = Counting(2)
    wrong: list[int] = []

    def work() -> None:
        memory = Memory(8 * 1000)
        for _ in range(200):
            block = counting.launcher.acquire()
            block.integers[0], block.integers[1], block.integers[2] = 0, 1000, memory.address
            counting.launcher.run(block)
            counting.launcher.release(block)
        total = sum(memory.view().cast("q"))
        if total != 200 * (1000 * 1000 + 500):
            wrong.append(total)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
    assert wrong == []


# Every iteration waits until slot 3 is set; meanwhile its launch holds the pool.
WAIT = """
  %flag = getelementptr i8, ptr %block, i64 152
  br label %wait
wait:
  %ready = load atomic i64, ptr %flag acquire, align 8
  %go = icmp ne i64 %ready, 0
  br i1 %go, label %next, label %poll
poll:
  %status = call i32 @tn_poll(ptr %block, i32 %tid)
  %stop = icmp ne i32 %status, 0
  br i1 %stop, label %leave, label %wait
leave:
  ret i32 %status"""


def test_a_busy_pool_gives_the_same_pieces() -> None:
    binary = compile_module(parallel(WAIT), entry_points=("entry",))
    waiting = Launcher(binary, "entry", 4, 0, (), 2)
    held = waiting.acquire()
    held.integers[1] = 2
    thread = threading.Thread(target=waiting.run, args=(held,))
    thread.start()
    try:
        deadline = time.monotonic() + 300
        while not held.head[layout.LAST_TICK // 8] and time.monotonic() < deadline:
            time.sleep(0.001)
        assert held.head[layout.LAST_TICK // 8], "the first launch has not begun"
        counting = Counting(4)
        assert counting.run(0, 1001) == expected_pieces(1001, 4, 1)
        dynamic = Counting(4, grain=10, dynamic=True)
        assert set(dynamic.run(0, 1001)) == {0}, "the caller hands itself all chunks"
    finally:
        held.integers[3] = 1
        thread.join(300)
    assert not thread.is_alive()


FAULT_AT = """
  %bad = icmp eq i64 %i, WHERE
  br i1 %bad, label %fail, label %wait.start
fail:
  %status = call i32 @tn_fail(ptr %block, i32 4, i32 0, i32 0, ptr null)
  ret i32 %status
wait.start:
  br label %wait
wait:
  %polled = call i32 @tn_poll(ptr %block, i32 %tid)
  %stop = icmp ne i32 %polled, 0
  br i1 %stop, label %leave, label %wait
leave:
  ret i32 %polled"""


@pytest.mark.parametrize("where", [0, 1])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_fault_in_one_piece_stops_the_others(where: int, dynamic: bool) -> None:
    """The other iteration would run for ever."""
    binary = compile_module(parallel(FAULT_AT.replace("WHERE", str(where)), dynamic=dynamic), entry_points=("entry",))
    failing = Launcher(binary, "entry", 4, 0, (Site(SiteKind.ASSERT, Span("f.py", 1), "here"),), 2)
    block = failing.acquire()
    block.integers[1] = 2
    for _ in range(20):
        with pytest.raises(KernelAssertionError, match="here"):
            failing.run(block)


def test_pieces_after_a_fault_do_not_begin() -> None:
    task = """
  %at = getelementptr i8, ptr %block, i64 144
  %ignored = atomicrmw add ptr %at, i64 1 monotonic
  %status = call i32 @tn_fail(ptr %block, i32 4, i32 0, i32 0, ptr null)
  ret i32 %status"""
    binary = compile_module(parallel(task), entry_points=("entry",))
    failing = Launcher(binary, "entry", 4, 0, (Site(SiteKind.ASSERT, Span("f.py", 1), "here"),), 64)
    block = failing.acquire()
    block.integers[1] = 64
    with pytest.raises(KernelAssertionError):
        failing.run(block)
    assert 1 <= block.integers[2] <= 64
    assert block.status == layout.STATUS_ASSERT


def test_arenas_of_several_threads() -> None:
    """Each iteration saves 100 words on its thread's arena, reads them back and frees them."""
    task = """
  %mark = call i64 @tn_arena_mark(ptr %block, i32 %tid)
  %memory = call ptr @tn_arena_alloc(ptr %block, i32 %tid, i64 800)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %bad, label %fill
fill:
  %k = phi i64 [ 0, %body ], [ %k.next, %fill ]
  %at = getelementptr i64, ptr %memory, i64 %k
  %value = mul i64 %i, %k
  store i64 %value, ptr %at
  %k.next = add i64 %k, 1
  %more.k = icmp slt i64 %k.next, 100
  br i1 %more.k, label %fill, label %check
check:
  %c = phi i64 [ 0, %fill ], [ %c.next, %same ]
  %c.at = getelementptr i64, ptr %memory, i64 %c
  %found = load volatile i64, ptr %c.at
  %should = mul i64 %i, %c
  %equal = icmp eq i64 %found, %should
  br i1 %equal, label %same, label %bad
same:
  %c.next = add i64 %c, 1
  %more.c = icmp slt i64 %c.next, 100
  br i1 %more.c, label %check, label %free
free:
  call void @tn_arena_release(ptr %block, i32 %tid, i64 %mark)
  br label %next
bad:
  %status = call i32 @tn_fail(ptr %block, i32 4, i32 0, i32 0, ptr null)
  ret i32 %status"""
    binary = compile_module(parallel(task), entry_points=("entry",))
    saving = Launcher(binary, "entry", 4, 0, (Site(SiteKind.ASSERT, Span("f.py", 1), "mixed up"),), 8)
    block: LaunchBlock = saving.acquire()
    block.integers[1] = 20_000
    for _ in range(3):
        saving.run(block)
    assert 8 * (256 << 10) >= block.arena_bytes >= 256 << 10
    # With another number of threads there are other arenas.
    block.limit_threads(1)
    assert block.arena_bytes == 0
    saving.run(block)
    assert block.arena_bytes == 256 << 10
    block.limit_threads(8)
    for _ in range(3):
        saving.run(block)
    assert 8 * (256 << 10) >= block.arena_bytes >= 256 << 10


def test_more_threads_than_cores_and_than_the_maximum() -> None:
    counting = Counting(10_000)
    assert counting.launcher.num_threads == layout.MAX_THREADS
    counting = Counting(available_cores() + 3)
    for _ in range(50):
        assert counting.run(0, 999) == expected_pieces(999, available_cores() + 3, 1)


@pytest.mark.parametrize("threads", [0, -1])
def test_at_least_one_thread(threads: int) -> None:
    with pytest.raises(ValueError, match="thread"):
        Counting(threads)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_take_no_signals() -> None:
    """A signal that a worker took would not wake Python's main thread from a sleep."""
    counting = Counting(2)
    counting.run(0, 100)
    blocked = {}
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # a thread that an earlier test has left ends meanwhile
            with open(f"/proc/self/task/{task}/status") as status:
                fields = dict(line.split(":", 1) for line in status if ":" in line)
            blocked[int(task)] = bool(int(fields["SigBlk"], 16) & 0b10)  # SIGINT is 2
    assert not blocked[os.getpid()]
    assert sum(blocked.values()) >= counting.launcher.runtime.workers >= 1
