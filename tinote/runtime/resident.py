"""Memory that lives on a device: the host's bytes are a mirror of it.

    HOST      Python may have written: the device gets the bytes before the next launch that uses them
    BOTH      the two are the same
    DEVICE    a launch has written: the host gets the bytes when somebody asks for them

Nothing tells when an array has been read or written, so who gets at the bytes gets a lease: a view of them that is
counted. A launch takes back what holders such as fields keep for the next time, and finds out who still has a view.
While somebody has, each launch copies in and out, as if the memory were the host's.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import threading
import weakref
from contextvars import ContextVar
from enum import Enum
from typing import Any

from tinote.runtime.memory import LARGEST, Memory, readable_size
from tinote.runtime.pool import pool
from tinote.runtime.seam import active_listener, listeners

#: Bytes on the device come in multiples of this.
ROUND = 16


class Newest(Enum):
    """Where the bytes are that count."""

    HOST = "host"
    BOTH = "both"
    DEVICE = "device"


#: What is notified, in this context, of what is looked at (`readback.py`).
looking: ContextVar[Any] = ContextVar("looking", default=None)


@functools.cache
def _lease_type(nbytes: int) -> Any:
    make: Any = type(ctypes.Array)
    return make(f"Lease{nbytes}", (ctypes.Array,), {"_type_": ctypes.c_ubyte, "_length_": nbytes})


class ResidentMemory(Memory):
    """`nbytes` bytes of a device (`tinote.runtime.gpu.Device`) with their mirror, zero at first. `place`: where they
    are there, once a launch has used them. Without `clear` they are anything, and nothing of them goes there.
    """

    __slots__ = ("_backing", "_begin", "_holders", "_leases", "device", "newest", "place")
    is_resident = True

    def __init__(self, device: Any, nbytes: int, *, clear: bool = True) -> None:
        if nbytes > LARGEST:
            raise MemoryError(f"{readable_size(nbytes)} of memory were asked for, which is more than any machine has")
        self.device = device
        self.nbytes = nbytes
        self.place: int | None = None
        self.newest = Newest.HOST if clear else Newest.DEVICE
        self._holders: list[weakref.ref[Any]] = []
        self._leases: list[weakref.ref[Any]] = []
        try:
            self._backing, is_zero = pool.take(self.size)
        except (MemoryError, OSError, OverflowError) as error:
            raise MemoryError(f"the system has no {readable_size(nbytes)} of memory left for this") from error
        self._begin = ctypes.addressof(ctypes.c_char.from_buffer(self._backing))
        if clear and not is_zero:
            ctypes.memset(self.begin, 0, nbytes)
        with _lock:
            _known[self.begin] = weakref.ref(self, functools.partial(_forget, self.begin))
            _sorted.clear()
        if listeners and (listener := active_listener()) is not None:
            listener.making(self, clear)

    def __del__(self) -> None:
        place = getattr(self, "place", None)
        if place is not None:
            self.device.places.freed.append((place, self.size))  # any thread may be here, in the middle of anything

    @property
    def size(self) -> int:
        """Its bytes on the device."""
        return max(-(-self.nbytes // ROUND) * ROUND, ROUND)

    def follow(self, device: Any) -> None:
        """Live on another device from now on if its own is lost."""
        if self.device is not device and self.device.lost:
            self.device, self.place, self.newest = device, None, Newest.HOST

    def is_at(self, place: int) -> bool:
        """Whether a launch finds it there as it is, without a view of it."""
        return self.place == place and self.newest is not Newest.HOST and not (self._holders or self._leases)

    # ---- the host's side

    def to_host(self, *, overwritten: bool = False) -> None:
        """Have the bytes here, where the host may write them. `overwritten`: it writes all of them at once."""
        if (looks := looking.get()) is not None:
            looks.get_at()
        if self.newest is Newest.HOST:
            return
        with self.device.lock:
            if self.newest is Newest.DEVICE and not overwritten:
                self.device.download([self])
            self.newest = Newest.HOST

    @property
    def begin(self) -> int:
        return self._begin

    @property
    def address(self) -> int:  # type: ignore[override]
        """Where the bytes are on the host, to be used at once."""
        self.to_host()
        return self.begin

    def look(self) -> Any:
        """The bytes on the host for callers that copy them at once, and write nothing: the device's stay as good."""
        if (looks := looking.get()) is not None and (kept := looks.look(self)) is not None:
            return kept
        with self.device.lock:
            if self.newest is Newest.DEVICE:
                self.device.download([self])
        return (ctypes.c_ubyte * self.nbytes).from_address(self.begin)

    def lease(self) -> Any:
        """Bytes on the host that exist as long as there is a reference to them; until then each launch copies them."""
        self.to_host()
        lease = _lease_type(self.nbytes).from_address(self.begin)
        lease.keeps = self._backing
        self._leases.append(weakref.ref(lease))
        return lease

    @property
    def _owner(self) -> memoryview:  # type: ignore[override]
        return memoryview(self.lease()).cast("B")

    def view(self) -> memoryview:
        return self._owner

    def held_by(self, holder: Any) -> None:
        """`holder._array` is a view that a launch may take back."""
        self._holders.append(weakref.ref(holder))

    def withdraw(self) -> bool:
        """Take back what holders have; gives whether somebody still has a view."""
        if self._holders:
            for reference in self._holders:
                holder = reference()
                if holder is not None:
                    holder.__dict__.pop("_array", None)
            self._holders.clear()
        if self._leases:
            self._leases = [lease for lease in self._leases if lease() is not None]
        return bool(self._leases)

    # ---- whole blocks

    def copy(self) -> Memory:
        with self.device.lock:
            found = ResidentMemory(self.device, self.nbytes, clear=False)
            if listeners and (listener := active_listener()) is not None:
                listener.copying(found, self)
            self._give(found)
        return found

    def restore(self, copy: Memory) -> None:
        if listeners and (listener := active_listener()) is not None:
            listener.copying(self, copy)
        with self.device.lock:
            if isinstance(copy, ResidentMemory) and copy.device is self.device and copy.nbytes == self.nbytes:
                copy._give(self)
            else:
                self.to_host(overwritten=copy.nbytes == self.nbytes)
                ctypes.memmove(self.begin, copy.address, copy.nbytes)

    def _give(self, other: ResidentMemory) -> None:
        """Give another block what this one holds: on the device, if it is there and nobody looks."""
        if self.newest is Newest.HOST or self.withdraw() or other.withdraw():
            self.to_host()
            other.to_host(overwritten=True)
            ctypes.memmove(other.begin, self.begin, self.nbytes)
            return
        self.device.places.require([self, other])
        self.device.copy(self, other)
        other.newest = Newest.DEVICE

    def clear(self) -> None:
        if listeners and (listener := active_listener()) is not None:
            listener.clearing(self)
        with self.device.lock:
            if self.newest is Newest.HOST or self.place is None or self.withdraw():
                self.to_host(overwritten=True)
                ctypes.memset(self.begin, 0, self.nbytes)
            else:
                self.device.clear(self)
                if self.newest is Newest.BOTH:  # what is here is there when the device is lost
                    ctypes.memset(self.begin, 0, self.nbytes)
                else:
                    self.newest = Newest.DEVICE

    def __repr__(self) -> str:
        return f"ResidentMemory({readable_size(self.nbytes)}, newest: {self.newest.value})"


#: All that exist, by where they begin on the host.
_known: dict[int, weakref.ref[ResidentMemory]] = {}
_sorted: list[int] = []
# Re-entrant: collecting garbage may forget a block in the middle of anything.
_lock = threading.RLock()


def _forget(begin: int, reference: weakref.ref[ResidentMemory]) -> None:
    with _lock:
        if _known.get(begin) is reference:
            del _known[begin]
            _sorted.clear()


def resident_at(address: int) -> ResidentMemory | None:
    """The block of a device whose mirror on the host has this address, if any."""
    if not _known:
        return None
    with _lock:
        while len(_sorted) != len(_known):
            _sorted[:] = sorted(_known.copy())
        at = bisect.bisect_right(_sorted, address) - 1
        reference = _known.get(_sorted[at]) if at >= 0 else None
    block = None if reference is None else reference()
    return block if block is not None and address < block.begin + block.size else None


def blocks() -> list[ResidentMemory]:
    """All that exist."""
    with _lock:
        found = [reference() for reference in _known.values()]
    return [block for block in found if block is not None]


def lease_at(address: int) -> Any:
    """What keeps the host's bytes at an address as they are on the device, if they are a device's."""
    block = resident_at(address)
    return None if block is None else block.lease()
