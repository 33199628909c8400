"""Memory that is reserved and not taken: the system gives a page where something is first written.

    memory = ReservedMemory(1 << 40)        a TiB of addresses; of real memory, nothing yet
    memory.clear()                          zeros again, and the pages go back to the system

What was never written reads as zero. The pages are small ones, so that what is taken is close to what is written.
Windows has no such memory: there, all of it counts as taken from the beginning.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys
import zlib
from collections.abc import Iterator

from tinote.runtime.memory import LARGEST, Memory, readable_size
from tinote.runtime.pool import POOLED_FROM
from tinote.runtime.seam import active_listener, listeners

#: Smaller blocks are taken at once: their pages are few.
RESERVED_FROM = 1 << 20
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
# On Linux, pages that nobody has written to do not count; Python does not name the flag before 3.13.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_SMALL_PAGES: int | None = getattr(mmap, "MADV_NOHUGEPAGE", None)
_FORGET: int | None = getattr(mmap, "MADV_DONTNEED", None) if sys.platform == "linux" else None
#: Of what the system says of a page: that it is in memory, or on the disk.
_TAKEN = 0b11 << 62
#: Pages that are asked about at once.
_PAGES_AT_ONCE = 1 << 16
#: So many pages are most often not taken, and this is what the system says then.
_FEW = 512
_NONE = bytes(8 * _FEW)


class ReservedMemory(Memory):
    """`nbytes` zeros. Raises `MemoryError` where the system has no room for the addresses."""

    __slots__ = ("_mapping",)
    is_reserved = True

    def __init__(self, nbytes: int) -> None:
        if nbytes > LARGEST:
            raise MemoryError(f"{readable_size(nbytes)} are more than addresses can name")
        try:
            flags = {"flags": _PRIVATE | _NO_RESERVE} if _PRIVATE else {}
            self._mapping = mmap.mmap(-1, max(nbytes, 1), **flags)
        except (OSError, OverflowError, ValueError) as error:
            raise MemoryError(f"the system cannot reserve {readable_size(nbytes)}") from error
        if _SMALL_PAGES is not None:
            with contextlib.suppress(OSError):  # a system that has no others
                self._mapping.madvise(_SMALL_PAGES)
        self.nbytes = nbytes
        self._owner = memoryview(self._mapping)[:nbytes]
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        if listeners and (listener := active_listener()) is not None:
            listener.making(self, True)

    def copy(self) -> Memory:
        """The same bytes elsewhere, reserved as these are."""
        found = ReservedMemory(self.nbytes)
        self._copy_to(found)
        if listeners and (listener := active_listener()) is not None:
            listener.copying(found, self)
        return found

    def restore(self, copy: Memory) -> None:
        """The bytes that `copy` gave."""
        if listeners and (listener := active_listener()) is not None:
            listener.copying(self, copy)
        if not isinstance(copy, ReservedMemory):
            ctypes.memmove(self.address, copy.address, copy.nbytes)
            return
        self._forget()
        copy._copy_to(self)

    def contents(self) -> dict[int, bytes]:
        """The pages that are not all zeros, by their places."""
        held, page = self.view(), mmap.PAGESIZE
        places = [place for first, last in self.pieces() for place in range(first, last, page)]
        pages = ((place, bytes(held[place : place + page])) for place in places)
        return {place: found for place, found in pages if found.strip(b"\0")}

    def checksum(self) -> int:
        found = 0
        for place, held in self.contents().items():
            found = zlib.crc32(held, zlib.crc32(place.to_bytes(8, "little"), found))
        return found

    def room(self) -> Memory:
        return ReservedMemory(self.nbytes)

    def take(self, other: Memory) -> None:
        assert isinstance(other, ReservedMemory)
        self._forget()
        other._copy_to(self)

    def clear(self) -> None:
        """Set all bytes to zero."""
        if listeners and (listener := active_listener()) is not None:
            listener.clearing(self)
        self._forget()

    @property
    def taken(self) -> int:
        return sum(last - first for first, last in self.pieces())

    def _forget(self) -> None:
        if _FORGET is not None:
            self._mapping.madvise(_FORGET)
        else:
            ctypes.memset(self.address, 0, self.nbytes)

    def _copy_to(self, other: Memory) -> None:
        """To a block of zeros."""
        for first, last in self.pieces():
            ctypes.memmove(other.address + first, self.address + first, last - first)

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Pieces with all that is not zero: on Linux, the pages that are taken."""
        page = mmap.PAGESIZE
        count = (self.nbytes + page - 1) // page
        try:
            with open("/proc/self/pagemap", "rb", buffering=0) as pages:
                pages.seek(8 * (self.address // page))
                for begin in range(0, count, _PAGES_AT_ONCE):
                    entries = pages.read(8 * min(_PAGES_AT_ONCE, count - begin))
                    if len(entries) < 8 * min(_PAGES_AT_ONCE, count - begin):
                        raise OSError("the system says nothing of these pages")
                    for first in range(0, len(entries) // 8, _FEW):
                        few = entries[8 * first : 8 * (first + _FEW)]
                        if few != _NONE[: len(few)]:
                            yield from self._taken_of(begin + first, memoryview(few).cast("Q"))
        except OSError:
            yield 0, self.nbytes

    def _taken_of(self, begin: int, entries: memoryview) -> Iterator[tuple[int, int]]:
        """The pieces among pages that the system describes so."""
        page, first = mmap.PAGESIZE, -1
        for k, entry in enumerate([*entries, 0]):
            if bool(entry & _TAKEN) != (first >= 0):
                if first >= 0:
                    yield first * page, min((begin + k) * page, self.nbytes)
                first = begin + k if first < 0 else -1


def reserve(nbytes: int) -> Memory:
    """Zeros that are taken where they are written, or, of a small block, at once."""
    return ReservedMemory(nbytes) if nbytes >= max(RESERVED_FROM, POOLED_FROM) else Memory(nbytes)
