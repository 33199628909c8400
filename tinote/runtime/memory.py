"""Blocks of memory that kernels read and write: zeroed, aligned to 64 bytes, alive while anything refers to them; and
copies of whole blocks, to restore their contents.
"""

from __future__ import annotations

import ctypes
import pickle
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from tinote.runtime.pool import pool
from tinote.runtime.seam import active_listener, listeners

#: More than any machine has, and safely below what address arithmetic on 64 bits can hold.
LARGEST = 1 << 47
# As much is cleared from within Python: a call out of it takes longer.
_ZEROS = bytes(1024)
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class Memory:
    """`nbytes` bytes at a 64-byte aligned `address`: zero at birth, or, without `clear`, anything.

    `view()` is a writable memoryview of unsigned bytes; it keeps the bytes alive after this object and everything else
    is gone, so NumPy arrays made from it are safe to keep. Raises `MemoryError` when the system refuses or the size is
    absurd, `ValueError` when it is negative.
    """

    __slots__ = ("__weakref__", "_owner", "address", "nbytes")
    #: whether it lives on a device, and the host has a mirror of it (`resident.py`)
    is_resident = False
    #: whether its pages are taken where they are written first (`reserved.py`)
    is_reserved = False

    def __init__(self, nbytes: int, *, clear: bool = True) -> None:
        if nbytes < 0:
            raise ValueError(f"a block of memory cannot have {nbytes} bytes")
        if nbytes > LARGEST:
            raise MemoryError(f"{readable_size(nbytes)} of memory were asked for, which is more than any machine has")
        self.nbytes = nbytes
        try:
            self._owner, is_zero = pool.take(nbytes)
        except (MemoryError, OSError, OverflowError) as error:
            raise MemoryError(f"the system has no {readable_size(nbytes)} of memory left for this") from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._owner)) if nbytes else 0
        if clear and not is_zero:
            ctypes.memset(self.address, 0, nbytes)
        if listeners and (listener := active_listener()) is not None:
            listener.making(self, clear)

    @property
    def taken(self) -> int:
        """How many bytes of the machine's memory it takes."""
        return self.nbytes

    def view(self) -> memoryview:
        """All bytes, writable; the view keeps them alive."""
        return self._owner[:]

    def copy(self) -> Memory:
        """The same bytes elsewhere."""
        found = Memory(self.nbytes, clear=False)
        ctypes.memmove(found.address, self.address, self.nbytes)
        if listeners and (listener := active_listener()) is not None:
            listener.copying(found, self)
        return found

    @property
    def whole(self) -> Memory:
        """The block that it is a part of: itself, unless others have parts of it."""
        return self

    @property
    def begin(self) -> int:
        """Its address, to be compared with others: nobody gets at the bytes by it."""
        return self.address

    def to_host(self, *, overwritten: bool = False) -> None:
        """Have its bytes where the host may write them. `overwritten`: it writes all of them at once."""

    @property
    def is_whole(self) -> bool:
        """Whether all bytes from `address` on are its own."""
        return True

    def packed(self) -> memoryview:
        """Its own bytes in a row."""
        return self.view()

    def contents(self) -> Any:
        """All bytes, to be compared with those of another block of this size and kind."""
        return bytes(self.view())

    def checksum(self) -> int:
        """One of its own bytes."""
        return zlib.crc32(self.packed())

    def room(self) -> Memory:
        """Another block of this size and kind, with any bytes."""
        return Memory(self.nbytes, clear=False)

    def take(self, other: Memory) -> None:
        """Get the bytes of a block of this size and kind; no listener is notified."""
        self.view()[:] = other.view()

    def restore(self, copy: Memory) -> None:
        """The bytes that `copy` gave."""
        if listeners and (listener := active_listener()) is not None:
            listener.copying(self, copy)
        ctypes.memmove(self.address, copy.address, copy.nbytes)

    def clear(self) -> None:
        """Set all bytes to zero."""
        if listeners and (listener := active_listener()) is not None:
            listener.clearing(self)
        if self.nbytes <= len(_ZEROS):
            self._owner[:] = _ZEROS[: self.nbytes]
        else:
            ctypes.memset(self.address, 0, self.nbytes)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """In another process, a block with the same bytes."""
        held = self.view()
        return filled, (self.nbytes, pickle.PickleBuffer(held) if protocol >= 5 else bytes(held))

    def __repr__(self) -> str:
        return f"Memory({readable_size(self.nbytes)} at {self.address:#x})"


def filled(nbytes: int, content: Any) -> Memory:
    """A block of its own with this content."""
    made = Memory(nbytes, clear=False)
    made.view()[:] = memoryview(content).cast("B")[:nbytes]
    return made


class ExternalMemory(Memory):
    """`nbytes` bytes at an address that others manage; `owner` keeps them alive. Two objects are equal if their bytes
    are the same ones.
    """

    __slots__ = ("_keeps",)

    def __init__(self, address: int, nbytes: int, owner: Any) -> None:
        self.address = address
        self.nbytes = nbytes
        present: Any = (ctypes.c_ubyte * nbytes).from_address(address) if nbytes else bytearray()
        if nbytes:
            present.keeps = owner  # as long as there is a view
        self._owner = memoryview(present).cast("B")
        self._keeps = owner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExternalMemory) and (self.address, self.nbytes) == (other.address, other.nbytes)

    def __hash__(self) -> int:
        return hash((self.address, self.nbytes))


class MemoryCopies:
    """Blocks of memory with what each held when it was added."""

    __slots__ = ("_copies", "nbytes")

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._copies: dict[Memory, Memory] = {}
        #: how many bytes the copies take
        self.nbytes = 0
        self.add_all(memories)

    def __contains__(self, memory: Memory) -> bool:
        return memory in self._copies

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._copies)

    def add(self, memory: Memory) -> None:
        """Copy what a block holds now, unless it was added before."""
        if memory not in self._copies:
            self._copies[memory] = memory.copy()
            self.nbytes += memory.taken

    def add_all(self, memories: Iterable[Memory]) -> None:
        """The same of several."""
        for memory in memories:
            self.add(memory)

    def put_back(self, only: Iterable[Memory] | None = None) -> None:
        """Give the blocks, or some of them, what they held."""
        for memory in self._copies if only is None else only:
            memory.restore(self._copies[memory])


def readable_size(nbytes: int) -> str:
    """A size as a person writes it: `12.0 MiB`."""
    if nbytes < 1024:
        return f"{nbytes} bytes"
    power = min((nbytes.bit_length() - 1) // 10, len(_UNITS))
    if power == len(_UNITS) and nbytes >> 10 * power >= 1024:
        return f"2**{nbytes.bit_length() - 1} bytes"
    return f"{nbytes / (1 << 10 * power):.1f} {_UNITS[power - 1]}"
