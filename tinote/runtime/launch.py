"""Launches: blocks, the native call, faults, prints and stopping.

    block = launcher.acquire()
    try:
        block.integers[2] = n                       # or block.floats[3] = x, or pack_into(block.slots, ...)
        launcher.run(block)                         # raises the located error, or KeyboardInterrupt as itself
        result = block.floats[5]
    finally:
        launcher.release(block)

A block holds what one launch in flight needs; blocks are kept and used again, and two threads that launch the same
kernel get one each. Their slots keep what was written, so addresses that never change are written once (`initial`).
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tinote.config import OUT_OF_BOUNDS
from tinote.errors import CompilerBug, note_interruption
from tinote.runtime import layout, out_of_bounds
from tinote.runtime.memory import Memory
from tinote.runtime.sites import Bounds, Site, SiteKind, fault, formatter
from tinote.runtime.threads import NativeRuntime, Stoppable

if TYPE_CHECKING:
    # Loading the JIT costs 0.15 s; whoever has a binary has paid it already.
    from tinote.runtime.jit import Binary


_RING_WORDS = 1 << 17
#: So many words of prints are made text while a kernel runs, before it may be interrupted again: some milliseconds.
_MOST_AT_ONCE = 1 << 14
_LOST = "the process was forked while this kernel ran; the child has none of its threads and no result"


class LaunchStopped(KeyboardInterrupt):
    """The launch was stopped by `stop()` from another thread. A KeyboardInterrupt, so that whatever handles an
    interrupt handles it too.
    """


#: What gets printed text on this thread, in place of what the launcher says.
_instead: ContextVar[Callable[[str], object] | None] = ContextVar("prints", default=None)


@contextmanager
def prints_to(write: Callable[[str], object]) -> Iterator[None]:
    """Meanwhile, what kernels print on this thread goes to `write`."""
    token = _instead.set(write)
    try:
        yield
    finally:
        _instead.reset(token)


def write_prints(text: str, write: Callable[[str], object]) -> None:
    """Show what a kernel has printed on this thread, unless `write` takes it."""
    (_instead.get() or write)(text)


class _Prints:
    """A launch's print ring and the way from its records to text. `in_parts`: whether `drain` may leave some of them
    for the next time.
    """

    __slots__ = ("_at", "_count", "_dropped", "_formats", "_ring", "_take", "_taken", "address", "in_parts", "write")

    def __init__(
        self,
        runtime: NativeRuntime,
        formats: dict[int, Callable[[Sequence[int]], str]],
        write: Callable[[str], object] | None,
    ) -> None:
        self._ring = Memory(layout.RING_WORDS + 8 * _RING_WORDS)
        self._taken = Memory(8 * _RING_WORDS)
        self._dropped = ctypes.c_int64(0)
        self._formats = formats
        self._take = runtime.print_take
        self._at = self._count = 0  # of what is taken, and not shown yet
        self.in_parts = False
        self.address = self._ring.address
        self.write = write
        ctypes.c_int64.from_address(self.address + layout.RING_CAPACITY).value = _RING_WORDS

    def drain(self) -> None:
        """Print what the ring holds, on the launching thread, and say how many lines did not fit."""
        if self._at < self._count:
            self._show()
            if self.in_parts:
                return
        while self._at < self._count:
            self._show()
        self._refill()
        self._show()
        while self._at < self._count and not self.in_parts:
            self._show()

    def leave(self) -> None:
        """The launch was interrupted: print some of what is left, and say how many lines that does not show."""
        if self._at >= self._count:
            self._refill()
        self._show()
        left = self._skip() + self._dropped.value
        self._refill()
        left += self._skip() + self._dropped.value
        self._dropped.value = 0
        if left:
            self._write(f"[{left} more prints were dropped: the kernel was interrupted]\n")

    def _refill(self) -> None:
        """Take what the ring holds."""
        self._at = 0
        self._count = self._take(self.address, self._taken.address, ctypes.addressof(self._dropped))

    def _skip(self) -> int:
        """Leave out what was taken: how many lines."""
        words, left = self._taken.view().cast("q"), 0
        while self._at < self._count:
            self._at += 1 + (words[self._at] >> 32)
            left += 1
        return left

    def _show(self) -> None:
        """Print some of what was taken."""
        at, count, last = self._at, self._count, self._at + _MOST_AT_ONCE
        words = self._taken.view()[: 8 * count].cast("q")
        pieces: list[str] = []
        while at < count and at < last:
            title = words[at]
            length = title >> 32
            pieces.append(self._formats[title & 0xFFFFFFFF](words[at + 1 : at + 1 + length]))
            at += 1 + length
        self._at = at
        if at >= count and self._dropped.value:
            dropped, self._dropped.value = self._dropped.value, 0
            pieces.append(f"[{dropped} more prints were dropped: the kernel prints faster than they can be shown]\n")
        if pieces:
            self._write("".join(pieces))

    def _write(self, text: str) -> None:
        write = _instead.get() or self.write or sys.stdout.write
        write(text)


class LaunchBlock:
    """One launch in flight. `address` is what native code gets; `slots` its kernel slots as bytes, `integers`, `floats`
    and `singles` as i64, f64 and f32 (a single sits in the low half of its slot: slot `i` is `singles[2 * i]`).
    """

    def __init__(self, launcher: Launcher) -> None:
        runtime = launcher.runtime
        self._runtime = runtime
        self._memory = Memory(layout.HEADER_BYTES + layout.SLOTS + 8 * max(1, launcher.slots))
        self.address = self._memory.address + layout.HEADER_BYTES
        view = self._memory.view()
        self.head = view[layout.HEADER_BYTES : layout.HEADER_BYTES + layout.SLOTS].cast("q")
        self.slots = view[layout.HEADER_BYTES + layout.SLOTS :]
        self.integers = self.slots.cast("q")
        self.floats = self.slots.cast("d")
        self.singles = self.slots.cast("f")
        if launcher.initial:
            self.slots[: len(launcher.initial)] = launcher.initial
        self._scratch = Memory(launcher.scratch_stride * launcher.num_threads)
        self._prints = _Prints(runtime, launcher.formats, launcher.write) if launcher.formats else None
        self._set_pointer(layout.ENTRY, launcher.entry_address)
        self._set_pointer(layout.POOL, runtime.pool)
        self._set_pointer(layout.SCRATCH, self._scratch.address)
        self._set_pointer(layout.SCRATCH_STRIDE, launcher.scratch_stride)
        self._set_pointer(layout.NUM_THREADS, launcher.num_threads)
        self._set_pointer(layout.MEMORY_LIMIT, launcher.memory_limit)
        ctypes.c_int32.from_address(self.address + layout.STOP).value = layout.STOP_IDLE
        if self._prints is not None:
            self._drain = self._prints.drain
            self._set_pointer(layout.PRINT_RING, self._prints.address)
            self._set_pointer(layout.DRAIN, id(self._drain))

    def _set_pointer(self, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def limit_threads(self, count: int) -> None:
        """Launch on at most this number of threads from now on."""
        self._runtime.arena_free(self.address)  # there is one for each thread
        self._set_pointer(layout.NUM_THREADS, count)

    @property
    def status(self) -> int:
        """The code of the last launch's fault; 0 without one."""
        return self.head[0] & 0xFFFFFFFF

    @property
    def site(self) -> int:
        """The number of the site that failed, or of the loop that was interrupted; -1 where that is not known."""
        return self.head[0] >> 32

    @property
    def payload(self) -> tuple[int, ...]:
        """What the site reported, as signed words."""
        first = layout.PAYLOAD // 8
        return tuple(self.head[first : first + layout.PAYLOAD_WORDS])

    @property
    def arena_bytes(self) -> int:
        """Memory held for saved values, between launches too."""
        return ctypes.c_int64.from_address(self.address + layout.COMMITTED).value

    def drain(self) -> None:
        """Print what is still in the ring."""
        if self._prints is not None:
            self._prints.drain()

    def leave(self) -> None:
        """The launch was interrupted: print some of what is still in the ring."""
        if self._prints is not None:
            self._prints.leave()

    def drains_in_parts(self, yes: bool) -> None:
        """Whether prints that come while it runs may wait for the next look at them."""
        if self._prints is not None:
            self._prints.in_parts = yes

    def stop(self) -> bool:
        """Stop the launch that this block is in, from any thread; whether one ran."""
        return bool(self._runtime.stop(self.address))

    def __del__(self) -> None:
        # A block that was never finished has no memory to give back.
        if hasattr(self, "_scratch"):
            self._runtime.arena_free(self.address)


class Launcher(Stoppable):
    """Launches one entry of a binary.

    `slots` counts the kernel's 8-byte slots, `initial` is what a new block's slots begin with (the rest is zero).
    `scratch_bytes_per_thread` is the size of the private copies of one thread. `sites` are what the numbers in
    generated code mean. `memory_limit` bounds the saved values of one launch, in bytes. `keep` is held as long as the
    launcher: the owners of addresses in `initial`. `write` gets printed text, on the launching thread (default:
    `sys.stdout`).
    """

    def __init__(
        self,
        binary: Binary,
        entry_name: str,
        slots: int,
        scratch_bytes_per_thread: int = 0,
        sites: Sequence[Site] = (),
        num_threads: int = 1,
        *,
        memory_limit: int = 4 << 30,
        initial: bytes = b"",
        keep: object = None,
        write: Callable[[str], object] | None = None,
    ) -> None:
        if num_threads < 1:
            raise ValueError(f"a launch needs at least one thread, not {num_threads}")
        if len(initial) > 8 * slots:
            raise ValueError(f"{len(initial)} bytes do not fit into {slots} slots")
        self.binary = binary
        self.runtime = binary.runtime
        self.entry_address = binary.address(entry_name)
        self.slots = slots
        # Two threads must not share a cache line, nor the pair of lines that is fetched together.
        self.scratch_stride = (scratch_bytes_per_thread + 127) & ~127
        self.sites = tuple(sites)
        self.num_threads = min(num_threads, layout.MAX_THREADS)
        # Far above any memory, low enough that native sums do not wrap.
        self.memory_limit = max(0, min(memory_limit, 1 << 60))
        self.initial = initial
        self.write = write
        warned: set[str] = set()
        self.formats = {
            number: print_formatter(site, warned)
            for number, site in enumerate(self.sites)
            if site.kind is SiteKind.PRINT
        }
        self._keep = keep
        self._launch = self.runtime.launch
        self._prints = bool(self.formats)
        # Lists, because append and pop are atomic: no lock in a launch.
        free: list[LaunchBlock] = []
        #: takes a block that is free; raises `IndexError` when there is none
        self.reuse: Callable[[], LaunchBlock] = free.pop
        #: gives a block back for the next launch
        self.release: Callable[[LaunchBlock], None] = free.append
        self._blocks: list[LaunchBlock] = []
        super().__init__()

    def acquire(self) -> LaunchBlock:
        """A block for one launch; its slots hold what they held when it was last released."""
        try:
            return self.reuse()
        except IndexError:
            block = LaunchBlock(self)
            self._blocks.append(block)
            return block

    def run(self, block: LaunchBlock) -> None:
        """Launch and wait. Raises the located error of the kernel's first fault; what a signal handler raised comes as
        itself, with a note on where the kernel was.
        """
        if self._prints:
            return self._run_printing(block)
        launch = self._launch
        try:
            status = launch(block.address)
        except BaseException as error:
            self.note_interruption(error, block)
            raise
        if status:
            self.raise_fault(block, status)

    def _run_printing(self, block: LaunchBlock) -> None:
        block.drains_in_parts(True)
        try:
            status = self._launch(block.address)
        except BaseException as error:
            self.note_interruption(error, block)
            block.leave()
            raise
        finally:
            block.drains_in_parts(False)
        if status == layout.STATUS_INTERRUPT:
            block.leave()
        else:
            block.drain()
        if status:
            self.raise_fault(block, status)

    def stop(self) -> int:
        """Stop all launches of this kernel that run now; returns how many."""
        return sum(block.stop() for block in list(self._blocks))

    def raise_fault(self, block: LaunchBlock, status: int = layout.STATUS_OK) -> None:
        """Raise the error that the block's last launch ended with; nothing if it completed."""
        status = block.status or status
        if status == layout.STATUS_OK:
            return
        if status == layout.STATUS_INTERRUPT:
            stopped = LaunchStopped("the kernel was stopped")
            self.note_interruption(stopped, block)
            raise stopped
        if status == layout.STATUS_LOST:
            raise RuntimeError(_LOST)
        number = block.site
        if not block.status or not 0 <= number < len(self.sites):
            raise CompilerBug("launch", f"a kernel returned status {status} and no known site ({number})")
        raise fault(status, self.sites[number], block.payload, self.memory_limit)

    def note_interruption(self, error: BaseException, block: LaunchBlock) -> None:
        """Note on an error where the kernel was that it interrupted."""
        if 0 <= block.site < len(self.sites):
            site = self.sites[block.site]
            note_interruption(error, f"interrupted in the kernel '{site.text}'", site.loc)


def print_formatter(site: Site, warned: set[str]) -> Callable[[Sequence[int]], str]:
    """What makes text of a record, or warns, once for all that `warned` says what they are about."""
    if isinstance(site.arguments, Bounds):
        raise CompilerBug("launch", f"{site!r} has bounds in place of parts")
    text_of = formatter(site.arguments)
    if not site.text:
        return text_of
    if site.text == OUT_OF_BOUNDS:
        return lambda words: out_of_bounds.count(site, words)

    def warn(words: Sequence[int]) -> str:
        if site.text not in warned:
            warned.add(site.text)
            warnings.warn_explicit(text_of(words), UserWarning, site.loc.file, site.loc.line)
        return ""

    return warn
