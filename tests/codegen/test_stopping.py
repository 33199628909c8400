"""Every loop that is not short looks at the stop word: whatever its shape, a launch ends soon after it is asked to."""

from __future__ import annotations

import threading
import time

import pytest

from tests.codegen.native import lowered
from tinote.compiler.codegen.llvm.module import generate
from tinote.runtime.jit import compile_module
from tinote.runtime.launch import LaunchBlock, Launcher, LaunchStopped
from tinote.runtime.memory import Memory

HEAD = "buffer @x: f32 field (8)\nfunc f(%n: i64, %m: i32):\n"
WHILE = """\
{0}%r: f32 = while carrying %a: f32 = 1.0f32:
{0}  %v: f32 = load @x[1i32]
{0}  %go: u1 = ge %v, 0.0f32
{0}  yield %go
{0}do %b: f32:
{0}  %c: f32 = mul %b, 0.5f32
{0}  store @x[2i32], %c
{0}  yield %c
"""
LOOPS = {
    "while": WHILE.format("  "),
    "while in a parallel loop": "  for parallel %i: i32 in 0i32 .. 2i32:\n" + WHILE.format("    "),
    "for": "  %s: f32 = for %i: i64 in 0i64 .. %n carrying %t: f32 = 0.0f32:\n"
    "    %c: f32 = cast %i\n    %d: f32 = sin %c\n"
    "    %u: f32 = add %t, %d\n    yield %u\n  store @x[0i32], %s\n",
    "literal for": "  %s: f32 = for reverse %i: i64 in 0i64 .. 1000000000000i64 carrying %t: f32 = 0.0f32:\n"
    "    %c: f32 = cast %i\n    %d: f32 = sin %c\n    %u: f32 = add %t, %d\n    yield %u\n  store @x[0i32], %s\n",
    "parallel for": "  for parallel %i: i64 in 0i64 .. %n:\n    %c: f32 = cast %i\n    atomic max @x[0i32], %c\n",
    "nest of short loops": "  for %i: i64 in 0i64 .. %n:\n    for %j: i32 in 0i32 .. %m:\n"
    "      for %k: i32 in 0i32 .. %m:\n        for %l: i32 in 0i32 .. %m:\n"
    "          %c: f32 = cast %l\n          atomic max @x[0i32], %c\n",
    "nest with an empty loop inside": "  for %i: i64 in 0i64 .. %n:\n    for %j: i32 in %m .. 0i32:\n"
    "      store @x[0i32], 1.0f32\n    %c: f32 = cast %i\n    atomic max @x[1i32], %c\n",
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("threads", [1, 2])
def test_stops(name: str, threads: int) -> None:
    module = generate(lowered(HEAD + LOOPS[name]))
    binary = compile_module(module.text, entry_points=("entry",))
    launcher = Launcher(binary, "entry", module.layout.slots, module.layout.scratch_bytes, module.sites, threads)
    block = launcher.acquire()
    memory = Memory(64)
    for offset in module.layout.pointers.values():
        block.integers[(offset - 128) // 8] = memory.address
    block.integers[0], block.integers[1] = 10**12, 3
    # Other work on the machine may hold up one answer; the best of several is the kernel's own.
    late = [lateness(launcher, block)]
    while late[-1] > 0.5:
        assert len(late) < 10, late
        late.append(lateness(launcher, block))
    launcher.release(block)


def lateness(launcher: Launcher, block: LaunchBlock) -> float:
    """Seconds from the request to stop, a tenth of a second after the start, to the end of the launch."""
    asked: list[float] = []

    def stop() -> None:
        time.sleep(0.1)
        asked.append(time.perf_counter())
        while not launcher.stop():  # It may not have begun yet.
            asked[0] = time.perf_counter()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(LaunchStopped):
        launcher.run(block)
    ended = time.perf_counter()
    stopper.join()
    return ended - asked[0]
