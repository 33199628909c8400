"""A pool of free memory, held for the next request.

The first write to a fresh page costs about thirty times one to a page that is there: the system finds a page, clears it
and maps it. What derivatives make and drop in each call (saved values, temporary adjoints, results) would pay that
every time. The pool holds blocks by their size, a few sizes for each power of two, up to `limit` bytes that are idle;
past that, blocks of the size that was asked for least recently go back to the system.

A block is in use as long as anything refers to its bytes: a memoryview, or a NumPy array made of one.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import mmap
from collections import OrderedDict
from threading import RLock
from typing import Any

from tinote.system import register_at_fork

ALIGNMENT = 64
#: Smaller blocks are cheaper to make than to look for.
POOLED_FROM = 4096
#: Copies that are smaller cost less in NumPy's own memory, which is warm as well, than the search for a block.
WARM_FROM = 1 << 16
#: The bytes that are idle at most, by default.
MOST_IDLE = 256 << 20
# Of what may be idle, one block takes at most this part: larger ones come zeroed from the system, untouched.
_LARGEST_SHARE = 4
# From here on pages come straight from the system: zeroed without being touched, so that a large field costs nothing
# before it is used.
_MAPPED_FROM = 1 << 20
# From here on the system is asked for pages of 2 MiB: with small ones, loops over large fields wait for address
# translation. As NumPy does.
_HUGE_FROM = 4 << 20
#: Elements whose addresses differ by a multiple of this lie in the same set of a cache, which holds eight or so.
PAGE = 4096
#: By how many bytes arrays that lie side by side in a loop are moved apart within a page: an odd number of cache lines,
#: so that 64 of them differ. A D3Q19 lattice Boltzmann step of 128³ takes 14.6 ms with it and 26.4 without.
STAGGER = 21 * ALIGNMENT
_starts = itertools.count()
#: Bytes of the system's: whose they are, and from where on, which is aligned.
_Backing = tuple[bytearray | mmap.mmap, int]
_char_from = ctypes.c_char.from_buffer
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
# Pages of this process alone. On Windows they are so without being asked for.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


class Pool:
    """`limit`: how many bytes may be idle; `nbytes`: how many are. `fresh` and `reused` count the blocks that came from
    the system and from here. Any thread may call it, and so may finalizers.
    """

    def __init__(self, limit: int = MOST_IDLE) -> None:
        self.limit = limit
        self.nbytes = 0
        self.fresh = 0
        self.reused = 0
        self._idle: OrderedDict[int, list[_Backing]] = OrderedDict()
        self._renew_lock()

    def _renew_lock(self) -> None:
        # Re-entrant: collecting garbage may give a block back in the middle of anything.
        self._lock = RLock()

    def take(self, nbytes: int) -> tuple[memoryview, bool]:
        """`nbytes` free bytes, aligned, and whether they are zero. They are in use as long as anything refers to them.
        Raises `MemoryError`, `OSError` or `OverflowError` when the system refuses.
        """
        if nbytes < POOLED_FROM:
            small = bytearray(nbytes + ALIGNMENT)
            start = -ctypes.addressof(_char_from(small)) % ALIGNMENT
            return memoryview(small)[start : start + nbytes], True
        if nbytes > self.limit // _LARGEST_SHARE:
            owner, start = self._from_system(nbytes)
            return memoryview(owner)[start : start + nbytes], True
        size = _size_class(nbytes)
        backing = self._idle_block(size)
        is_zero = backing is None
        if backing is None:
            backing = self._from_system(size)
        block = _block_type(size).from_buffer(*backing)
        block.pool, block.backing = self, backing
        return memoryview(block).cast("B")[:nbytes], is_zero

    def _idle_block(self, size: int) -> _Backing | None:
        with self._lock:
            found = self._idle.get(size)
            if found is None:
                return None
            backing = found.pop()
            if not found:
                del self._idle[size]
            self.nbytes -= size
            self.reused += 1
            return backing

    def _from_system(self, nbytes: int) -> _Backing:
        try:
            backing = _new_backing(nbytes)
        except (MemoryError, OSError):
            if not self.nbytes:
                raise
            self.trim()
            backing = _new_backing(nbytes)
        self.fresh += 1
        return backing

    def give_back(self, size: int, backing: _Backing) -> None:
        """Nothing refers to a block any more."""
        with self._lock:
            if size > self.limit:
                return
            self.trim(self.limit - size)
            self._idle.setdefault(size, []).append(backing)
            self._idle.move_to_end(size)
            self.nbytes += size

    def trim(self, most: int = 0) -> None:
        """Give idle blocks back to the system until at most `most` bytes are idle."""
        if self.nbytes <= max(most, 0):
            return
        with self._lock:
            while self.nbytes > max(most, 0):
                size = next(iter(self._idle))
                self._idle[size].pop()
                self.nbytes -= size
                if not self._idle[size]:
                    del self._idle[size]


@functools.cache
def _block_type(size: int) -> Any:
    """What exports the bytes of a block in use, and gives them back when nothing refers to it any more."""

    def end(block: Any) -> None:
        block.pool.give_back(size, block.backing)

    make: Any = type(ctypes.Array)
    return make(f"Block{size}", (ctypes.Array,), {"_type_": ctypes.c_ubyte, "_length_": size, "__del__": end})


def _size_class(nbytes: int) -> int:
    """The size of the blocks that serve this number of bytes: at most an eighth larger."""
    step = 1 << max(nbytes.bit_length() - 4, 0)
    return (nbytes + step - 1) // step * step


def _new_backing(nbytes: int) -> _Backing:
    if nbytes >= _MAPPED_FROM:
        mapping = mmap.mmap(-1, nbytes + PAGE, **_PRIVATE)
        if nbytes >= _HUGE_FROM and _HUGE_PAGES is not None:
            with contextlib.suppress(OSError):  # a system without them goes on with small ones
                mapping.madvise(_HUGE_PAGES)
        return mapping, next(_starts) * STAGGER % PAGE
    owner = bytearray(nbytes + ALIGNMENT)
    return owner, -ctypes.addressof(_char_from(owner)) % ALIGNMENT


pool = Pool()
"""The process's."""

register_at_fork(after_in_child=pool._renew_lock)
