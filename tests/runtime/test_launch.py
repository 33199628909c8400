"""Launches on the calling thread: blocks, slots, faults, prints, arenas, stopping."""

from __future__ import annotations

import gc
import re
import struct
import threading
import time

import pytest

from tests.runtime.texts import ADD_ONE, kernel, parallel
from tinote.errors import (
    CompilerBug,
    KernelAssertionError,
    KernelIndexError,
    KernelMemoryError,
    KernelZeroDivisionError,
)
from tinote.runtime.jit import compile_module
from tinote.runtime.launch import Launcher, LaunchStopped
from tinote.runtime.sites import Bounds, PrintedValue, Site, SiteKind
from tinote.runtime.threads import stop_all
from tinote.source import Span

HERE = Span("somewhere.py", 3, 4)


def launcher(
    text: str, slots: int = 4, scratch: int = 0, sites: tuple[Site, ...] = (), threads: int = 1, **more
) -> Launcher:
    return Launcher(compile_module(text, entry_points=("entry",)), "entry", slots, scratch, sites, threads, **more)


def test_slots_go_in_and_come_back() -> None:
    add = launcher(ADD_ONE)
    block = add.acquire()
    block.integers[0] = 41
    add.run(block)
    assert block.integers[0] == 42
    assert block.status == 0
    add.release(block)
    # The same block again, with what it held.
    assert add.acquire() is block
    assert block.integers[0] == 42


def test_blocks_begin_with_the_initial_bytes_and_are_aligned() -> None:
    add = launcher(ADD_ONE, initial=struct.pack("<qd", 10, 2.5))
    first, second = add.acquire(), add.acquire()
    assert first is not second
    for block in (first, second):
        assert block.address % 64 == 0
        assert (block.integers[0], block.floats[1], block.integers[2]) == (10, 2.5, 0)
    with pytest.raises(ValueError, match="slots"):
        launcher(ADD_ONE, 1, initial=bytes(16))


def test_singles_sit_in_the_low_half_of_a_slot() -> None:
    text = kernel("""
  %at = getelementptr i8, ptr %block, i64 136
  %x = load float, ptr %at
  %y = fmul float %x, 2.0
  store float %y, ptr %at
  ret i32 0""")
    twice = launcher(text)
    block = twice.acquire()
    block.singles[2 * 1] = 1.25
    twice.run(block)
    assert block.singles[2 * 1] == 2.5


def test_scratch_has_a_slice_a_thread() -> None:
    text = kernel("""
  %scratch.at = getelementptr i8, ptr %block, i64 80
  %stride.at = getelementptr i8, ptr %block, i64 88
  %threads.at = getelementptr i8, ptr %block, i64 96
  %scratch = load ptr, ptr %scratch.at
  %stride = load i64, ptr %stride.at
  %threads = load i32, ptr %threads.at
  %wide = zext i32 %threads to i64
  %last = sub i64 %wide, 1
  %offset = mul i64 %last, %stride
  %place = getelementptr i8, ptr %scratch, i64 %offset
  store i64 7, ptr %place
  %slot = getelementptr i8, ptr %block, i64 128
  store i64 %stride, ptr %slot
  ret i32 0""")
    three = launcher(text, scratch=1000, threads=3)
    block = three.acquire()
    three.run(block)
    stride = block.integers[0]
    assert stride >= 1000 and stride % 64 == 0


FAIL = """
  %words = alloca [6 x i64]
  %first = getelementptr i8, ptr %block, i64 128
  %value = load i64, ptr %first
  store i64 %value, ptr %words
  %status = call i32 @tn_fail(ptr %block, i32 CODE, i32 SITE, i32 1, ptr %words)
  ret i32 %status"""


def test_a_fault_becomes_its_located_error() -> None:
    sites = (
        Site(SiteKind.DIVISION, HERE, "//"),
        Site(SiteKind.BOUNDS, HERE, "x", Bounds((10,), (0,))),
        Site(SiteKind.ASSERT, HERE, "", ("n is ", PrintedValue("i64"))),
    )
    expected = {(3, 0): KernelZeroDivisionError, (2, 1): KernelIndexError, (4, 2): KernelAssertionError}
    for (code, site), error in expected.items():
        failing = launcher(kernel(FAIL.replace("CODE", str(code)).replace("SITE", str(site))), sites=sites)
        block = failing.acquire()
        for value in (12, -5):
            block.integers[0] = value
            with pytest.raises(error) as caught:
                failing.run(block)
            assert caught.value.span == HERE
            if error is not KernelZeroDivisionError:
                assert str(value) in caught.value.message


def test_a_fault_does_not_outlive_its_launch() -> None:
    text = kernel(
        """
  %slot = getelementptr i8, ptr %block, i64 128
  %value = load i64, ptr %slot
  %bad = icmp slt i64 %value, 0
  br i1 %bad, label %fail, label %fine
fail:
  %status = call i32 @tn_fail(ptr %block, i32 4, i32 0, i32 0, ptr null)
  ret i32 %status
fine:
  ret i32 0"""
    )
    check = launcher(text, sites=(Site(SiteKind.ASSERT, HERE, "negative"),))
    block = check.acquire()
    block.integers[0] = -1
    with pytest.raises(KernelAssertionError, match="negative"):
        check.run(block)
    block.integers[0] = 1
    check.run(block)
    assert block.status == 0


def test_a_fault_counts_even_if_the_kernel_returns_zero() -> None:
    text = kernel("  %status = call i32 @tn_fail(ptr %block, i32 4, i32 0, i32 0, ptr null)\n  ret i32 0")
    failing = launcher(text, sites=(Site(SiteKind.ASSERT, HERE, "seen"),))
    with pytest.raises(KernelAssertionError, match="seen"):
        failing.run(failing.acquire())


def test_the_first_fault_wins() -> None:
    text = kernel("""
  %first = call i32 @tn_fail(ptr %block, i32 4, i32 1, i32 0, ptr null)
  %second = call i32 @tn_fail(ptr %block, i32 3, i32 0, i32 0, ptr null)
  ret i32 %second""")
    failing = launcher(text, sites=(Site(SiteKind.DIVISION, HERE), Site(SiteKind.ASSERT, HERE, "first")))
    with pytest.raises(KernelAssertionError, match="first"):
        failing.run(failing.acquire())


def test_an_unknown_status_or_site_is_a_fault_of_the_compiler() -> None:
    strange = launcher(kernel("  ret i32 9"))
    with pytest.raises(CompilerBug, match="status 9"):
        strange.run(strange.acquire())
    beyond = launcher(kernel(FAIL.replace("CODE", "3").replace("SITE", "5")), sites=(Site(SiteKind.DIVISION, HERE),))
    with pytest.raises(CompilerBug, match="5"):
        beyond.run(beyond.acquire())


def test_the_launch_entry_refuses_nonsense() -> None:
    native = launcher(ADD_ONE).runtime.launch
    with pytest.raises(TypeError):
        native()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        native("block")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        native(0)


def test_blocks_go_with_their_launcher() -> None:
    add = launcher(ADD_ONE)
    block = add.acquire()
    add.run(block)
    add.release(block)
    view = block.integers
    del add, block
    gc.collect()
    assert view[0] == 1


# --- prints -----------------------------------------------------------------------------------------------------------


def counting_print(site: int = 0) -> str:
    """Prints (i, tid) for every i of the range."""
    return parallel(f"""
  %words = alloca [2 x i64]
  store i64 %i, ptr %words
  %second = getelementptr i64, ptr %words, i64 1
  %wide = zext i32 %tid to i64
  store i64 %wide, ptr %second
  call void @tn_print(ptr %block, i32 {site}, i32 2, ptr %words)
  br label %next""")


PRINT = (Site(SiteKind.PRINT, HERE, "", ("i = ", PrintedValue("i64"), " on ", PrintedValue("i32"), "\n")),)


def test_prints_go_to_standard_output_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    printing = launcher(counting_print(), sites=PRINT)
    block = printing.acquire()
    block.integers[1] = 5
    printing.run(block)
    assert capsys.readouterr().out == "".join(f"i = {i} on 0\n" for i in range(5))


def test_the_ring_goes_round() -> None:
    pieces: list[str] = []
    printing = launcher(counting_print(), sites=PRINT, write=pieces.append)
    block = printing.acquire()
    seen = 0
    for start in range(0, 200_000, 20_000):
        block.integers[0], block.integers[1] = start, start + 20_000
        printing.run(block)
        lines = "".join(pieces).splitlines()
        pieces.clear()
        assert lines == [f"i = {i} on 0" for i in range(start, start + 20_000)]
        seen += len(lines)
    assert seen == 200_000


def test_what_does_not_fit_is_counted() -> None:
    pieces: list[str] = []
    printing = launcher(counting_print(), sites=PRINT, write=pieces.append)
    block = printing.acquire()
    block.integers[1] = 100_000
    printing.run(block)
    *lines, last = "".join(pieces).splitlines()
    shown = len(lines)
    assert 10_000 < shown < 100_000
    assert lines == [f"i = {i} on 0" for i in range(shown)]
    assert f"{100_000 - shown} more prints were dropped" in last
    # The next launch starts afresh.
    pieces.clear()
    block.integers[1] = 1
    printing.run(block)
    assert pieces == ["i = 0 on 0\n"]


def test_prints_of_several_threads_are_whole_lines() -> None:
    pieces: list[str] = []
    printing = launcher(counting_print(), sites=PRINT, threads=4, write=pieces.append)
    block = printing.acquire()
    block.integers[1] = 20_000
    printing.run(block)
    lines = "".join(pieces).splitlines()
    expected = sorted(f"i = {i} on {i // 5000}" for i in range(20_000))
    assert sorted(lines) == expected


def test_prints_come_out_before_a_fault() -> None:
    pieces: list[str] = []
    text = kernel("""
  call void @tn_print(ptr %block, i32 0, i32 0, ptr null)
  %status = call i32 @tn_fail(ptr %block, i32 4, i32 1, i32 0, ptr null)
  ret i32 %status""")
    sites = (Site(SiteKind.PRINT, HERE, "", ("before\n",)), Site(SiteKind.ASSERT, HERE, "after"))
    failing = launcher(text, sites=sites, write=pieces.append)
    with pytest.raises(KernelAssertionError, match="after"):
        failing.run(failing.acquire())
    assert pieces == ["before\n"]


# An endless loop that polls every 1024 iterations; slot 0: how many polls so far.
ENDLESS = """
  %slot = getelementptr i8, ptr %block, i64 128
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %again ]
  %i.next = add i64 %i, 1
  %low = and i64 %i, 1023
  %due = icmp eq i64 %low, 0
  br i1 %due, label %poll, label %again
poll:
  store atomic i64 %i, ptr %slot monotonic, align 8
  PRINT
  %status = call i32 @tn_poll(ptr %block, i32 0)
  %stop = icmp ne i32 %status, 0
  br i1 %stop, label %leave, label %again
again:
  br label %next
leave:
  ret i32 %status"""


def test_prints_are_shown_while_the_kernel_runs() -> None:
    pieces: list[str] = []
    text = kernel(ENDLESS.replace("PRINT", "call void @tn_print(ptr %block, i32 0, i32 0, ptr null)"))

    def write(text: str) -> None:
        pieces.append(text)
        block.stop()

    endless = launcher(text, sites=(Site(SiteKind.PRINT, HERE, "", ("turn\n",)),), write=write)
    block = endless.acquire()
    with pytest.raises(LaunchStopped):
        endless.run(block)
    assert pieces and set("".join(pieces).splitlines()[:-1]) == {"turn"}


def test_an_interrupt_waits_for_few_of_the_prints() -> None:
    """What is in the ring when the kernel is interrupted is not all made text."""
    shown: list[str] = []

    def write(text: str) -> None:
        shown.append(text)
        if len(shown) == 1:
            raise KeyboardInterrupt

    text = kernel("""
  br label %fill
fill:
  %k = phi i64 [ 0, %entry ], [ %k.next, %fill ]
  %k.next = add i64 %k, 1
  call void @tn_print(ptr %block, i32 0, i32 0, ptr null)
  %full = icmp sge i64 %k.next, 100000
  br i1 %full, label %next, label %fill
next:
  %status = call i32 @tn_poll(ptr %block, i32 0)
  %stop = icmp ne i32 %status, 0
  br i1 %stop, label %leave, label %next
leave:
  ret i32 %status""")
    printing = launcher(text, sites=(Site(SiteKind.PRINT, HERE, "", ("turn\n",)),), write=write)
    block = printing.acquire()
    with pytest.raises(KeyboardInterrupt):
        printing.run(block)
    *lines, last = "".join(shown).splitlines()
    assert set(lines) == {"turn"} and 1000 < len(lines) < 50_000
    assert re.fullmatch(r"\[\d+ more prints were dropped: the kernel was interrupted\]", last)
    assert int(last[1:].split()[0]) + len(lines) == 100_000


def test_an_error_of_the_printer_stops_the_kernel_and_arrives() -> None:
    def write(text: str) -> None:
        raise ZeroDivisionError("the stream is broken")

    text = kernel(ENDLESS.replace("PRINT", "call void @tn_print(ptr %block, i32 0, i32 0, ptr null)"))
    endless = launcher(text, sites=(Site(SiteKind.PRINT, HERE, "", ("turn\n",)),), write=write)
    with pytest.raises(ZeroDivisionError, match="broken"):
        endless.run(endless.acquire())


@pytest.mark.parametrize("how", ["all", "launcher", "block"])
def test_a_running_launch_is_stopped_from_another_thread(how: str) -> None:
    endless = launcher(kernel(ENDLESS.replace("PRINT", "")))
    block = endless.acquire()
    assert endless.stop() == 0, "nothing runs yet"
    stopped: list[int] = []

    def stop() -> None:
        while not block.integers[0] > 5000:
            time.sleep(0.001)
        stopped.append({"all": stop_all, "launcher": endless.stop, "block": block.stop}[how]())

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(LaunchStopped):
        endless.run(block)
    thread.join()
    assert stopped == [1]
    assert endless.stop() == 0


# --- arenas -----------------------------------------------------------------------------------------------------------


# Slot 0: bytes an allocation; slot 1: how many; slot 2: the number of the allocation that failed; every allocation is
# filled with its number and all are checked at the end (slot 3: how many were wrong).
ARENA = """
  %size.at = getelementptr i8, ptr %block, i64 128
  %count.at = getelementptr i8, ptr %block, i64 136
  %failed.at = getelementptr i8, ptr %block, i64 144
  %wrong.at = getelementptr i8, ptr %block, i64 152
  %size = load i64, ptr %size.at
  %count = load i64, ptr %count.at
  store i64 -1, ptr %failed.at
  store i64 0, ptr %wrong.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %keep ]
  %previous = phi ptr [ null, %entry ], [ %memory, %keep ]
  %mark = call i64 @tn_arena_mark(ptr %block, i32 0)
  %more = icmp slt i64 %i, %count
  br i1 %more, label %get, label %check
get:
  %memory = call ptr @tn_arena_alloc(ptr %block, i32 0, i64 %size)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %fail, label %keep
keep:
  %number.at = getelementptr i8, ptr %memory, i64 8
  %mark.at = getelementptr i8, ptr %memory, i64 16
  store ptr %previous, ptr %memory
  store i64 %i, ptr %number.at
  store i64 %mark, ptr %mark.at
  %last.at.offset = sub i64 %size, 8
  %last.at = getelementptr i8, ptr %memory, i64 %last.at.offset
  store i64 %i, ptr %last.at
  %number = ptrtoint ptr %memory to i64
  %low = and i64 %number, 63
  %misaligned = add i64 %low, 0
  %old.wrong = load i64, ptr %wrong.at
  %new.wrong = add i64 %old.wrong, %misaligned
  store i64 %new.wrong, ptr %wrong.at
  %i.next = add i64 %i, 1
  br label %loop
fail:
  store i64 %i, ptr %failed.at
  %status = call i32 @tn_fail(ptr %block, i32 5, i32 0, i32 0, ptr null)
  ret i32 %status
check:
  %n = phi i64 [ %count, %loop ], [ %n.less, %one ]
  %at = phi ptr [ %previous, %loop ], [ %before, %one ]
  %end = icmp eq ptr %at, null
  br i1 %end, label %done, label %one
one:
  %n.less = sub i64 %n, 1
  %before = load ptr, ptr %at
  %found.at = getelementptr i8, ptr %at, i64 8
  %found = load i64, ptr %found.at
  %tail.offset = sub i64 %size, 8
  %tail.at = getelementptr i8, ptr %at, i64 %tail.offset
  %tail = load i64, ptr %tail.at
  %kept.mark.at = getelementptr i8, ptr %at, i64 16
  %kept.mark = load i64, ptr %kept.mark.at
  call void @tn_arena_release(ptr %block, i32 0, i64 %kept.mark)
  %now.mark = call i64 @tn_arena_mark(ptr %block, i32 0)
  %bad.1 = icmp ne i64 %found, %n.less
  %bad.2 = icmp ne i64 %tail, %n.less
  %bad.3 = icmp ne i64 %now.mark, %kept.mark
  %bad.12 = or i1 %bad.1, %bad.2
  %bad = or i1 %bad.12, %bad.3
  %bad.wide = zext i1 %bad to i64
  %wrong.before = load i64, ptr %wrong.at
  %wrong.after = add i64 %wrong.before, %bad.wide
  store i64 %wrong.after, ptr %wrong.at
  br label %check
done:
  ret i32 0"""
MEMORY = (Site(SiteKind.MEMORY, HERE),)


@pytest.mark.parametrize(
    ("size", "count"), [(24, 1), (24, 10_000), (100, 50_000), (1000, 3000), (300_000, 20), (1 << 22, 5), (64, 0)]
)
def test_saved_values_keep_their_places(size: int, count: int) -> None:
    saving = launcher(kernel(ARENA), sites=MEMORY)
    block = saving.acquire()
    block.integers[0], block.integers[1] = size, count
    for _ in range(3):
        saving.run(block)
        assert block.integers[2] == -1
        assert block.integers[3] == 0
    assert (block.arena_bytes > 0) == (count > 0)


def test_the_memory_limit_is_an_error_and_leaves_all_usable() -> None:
    saving = launcher(kernel(ARENA), sites=MEMORY, memory_limit=1 << 20)
    block = saving.acquire()
    for _ in range(3):
        block.integers[0], block.integers[1] = 1024, 10_000
        with pytest.raises(KernelMemoryError, match=r"1\.0 MiB"):
            saving.run(block)
        # All but a chunk's slack of the megabyte was used.
        assert 700 < block.integers[2] <= 1024
        block.integers[1] = 100
        saving.run(block)
        assert block.integers[3] == 0
    assert block.arena_bytes <= 1 << 20


@pytest.mark.parametrize("size", [(1 << 40), (1 << 62), -1, -64, (1 << 63) - 1])
def test_absurd_allocations_are_refused(size: int) -> None:
    saving = launcher(kernel(ARENA), sites=MEMORY)
    block = saving.acquire()
    block.integers[0], block.integers[1] = size, 1
    with pytest.raises(KernelMemoryError):
        saving.run(block)
    assert block.integers[2] == 0


def test_many_chunks_go_back_to_the_system() -> None:
    saving = launcher(kernel(ARENA), sites=MEMORY)
    block = saving.acquire()
    block.integers[0], block.integers[1] = 1 << 20, 100
    saving.run(block)
    assert block.integers[3] == 0
    assert block.arena_bytes == 0
    block.integers[1] = 10
    saving.run(block)
    assert 10 << 20 <= block.arena_bytes <= 64 << 20
