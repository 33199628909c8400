"""Blocks of memory that kernels read and write: zeroed, aligned to 64 bytes, alive while anything refers to them."""

from __future__ import annotations

import contextlib
import ctypes
import mmap

ALIGNMENT = 64
# From here on pages come straight from the system: zeroed without being touched, so that a large field costs nothing
# before it is used.
_MAPPED_FROM = 1 << 20
# From here on the system is asked for pages of 2 MiB: with small ones, loops over large fields wait for address
# translation. As NumPy does.
_HUGE_FROM = 4 << 20
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
# More than any machine has, and safely below what address arithmetic on 64 bits can hold.
_LARGEST = 1 << 47
# As much is cleared from within Python: a call out of it takes longer.
_ZEROS = bytes(1024)
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class Memory:
    """`nbytes` bytes, zero at birth, at a 64-byte aligned `address`.

    `view()` is a writable memoryview of unsigned bytes; it keeps the bytes alive after this object and everything else
    is gone, so NumPy arrays made from it are safe to keep. Raises `MemoryError` when the system refuses or the size is
    absurd, `ValueError` when it is negative.
    """

    __slots__ = ("__weakref__", "_owner", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        if nbytes < 0:
            raise ValueError(f"a block of memory cannot have {nbytes} bytes")
        if nbytes > _LARGEST:
            raise MemoryError(f"{readable_size(nbytes)} of memory were asked for, which is more than any machine has")
        self.nbytes = nbytes
        try:
            if nbytes >= _MAPPED_FROM:
                # Pages are aligned far beyond 64 bytes.
                mapping = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                if nbytes >= _HUGE_FROM and _HUGE_PAGES is not None:
                    with contextlib.suppress(OSError):  # a system without them goes on with small ones
                        mapping.madvise(_HUGE_PAGES)
                self._owner = memoryview(mapping)
            else:
                backing = bytearray(nbytes + ALIGNMENT)
                start = -ctypes.addressof(ctypes.c_char.from_buffer(backing)) % ALIGNMENT
                self._owner = memoryview(backing)[start : start + nbytes]
        except (MemoryError, OSError, OverflowError) as error:
            raise MemoryError(f"the system has no {readable_size(nbytes)} of memory left for this") from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._owner)) if nbytes else 0

    def view(self) -> memoryview:
        """All bytes, writable; the view keeps them alive."""
        return self._owner[:]

    def copy(self) -> Memory:
        """The same bytes elsewhere."""
        found = Memory(self.nbytes)
        ctypes.memmove(found.address, self.address, self.nbytes)
        return found

    @property
    def is_whole(self) -> bool:
        """Whether all bytes from `address` on are its own."""
        return True

    def packed(self) -> memoryview:
        """Its own bytes in a row."""
        return self.view()

    def restore(self, copy: Memory) -> None:
        """The bytes that `copy` gave."""
        ctypes.memmove(self.address, copy.address, copy.nbytes)

    def clear(self) -> None:
        """Set all bytes to zero."""
        if self.nbytes <= len(_ZEROS):
            self._owner[:] = _ZEROS[: self.nbytes]
        else:
            ctypes.memset(self.address, 0, self.nbytes)

    def __repr__(self) -> str:
        return f"Memory({readable_size(self.nbytes)} at {self.address:#x})"


def readable_size(nbytes: int) -> str:
    """A size as a person writes it: `12.0 MiB`."""
    if nbytes < 1024:
        return f"{nbytes} bytes"
    power = min((nbytes.bit_length() - 1) // 10, len(_UNITS))
    if power == len(_UNITS) and nbytes >> 10 * power >= 1024:
        return f"2**{nbytes.bit_length() - 1} bytes"
    return f"{nbytes / (1 << 10 * power):.1f} {_UNITS[power - 1]}"
