"""The memory of a file of captured steps (`portable.py`): layout, initial contents, and the table of source places."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from tinote.compiler.launch.native import Native, address_sources
from tinote.ir.nodes import Buffer
from tinote.program import operations as ops
from tinote.runtime import layout
from tinote.runtime.memory import Memory
from tinote.runtime.sites import Bounds, Site
from tinote.source import NOWHERE, Span, line_text, location_name

_LINE = 64
#: Words of the ring that kernels print to: enough for some thousands of lines per call.
_RING_WORDS = 1 << 15


class GivenArrays:
    """The arrays of a launch: where they are, and how long. `blocks`: where those of the plan are."""

    def __init__(self, step: ops.Launch, native: Native, blocks: Sequence[int]) -> None:
        self._sources = address_sources(native.array_buffers)
        self._bound = {slot: (number, offset) for slot, number, offset in step.pointers}
        self._slots, self._extent_slots = native.array_slots(), native.extent_slots()
        self._extents = dict(step.extents)
        self._blocks = blocks

    def __contains__(self, buffer: Buffer) -> bool:
        return buffer in self._sources

    def address(self, buffer: Buffer) -> int | None:
        """The address of an array, or of its gradient or dual; None where it has none."""
        number, within = self._bound[self._slots[self._sources[buffer]]]
        return self._blocks[number] + within if number >= 0 else None

    def extent(self, buffer: Buffer, axis: int) -> int:
        """How long an axis is."""
        return self._extents[self._extent_slots[self._sources[buffer][0], axis]]


class FileMemory:
    """`base`: where it begins."""

    def __init__(self) -> None:
        self.base = 0
        self._end = 0
        #: the addresses of blocks of the session's memory in the file
        self._blocks: dict[int, int] = {}
        self._wholes: list[Memory] = []
        self._data: dict[bytes, int] = {}
        #: initial contents, by address
        self._contents: list[tuple[int, bytes | bytearray]] = []
        self._places: dict[Span, int] = {}
        self._ring: int | None = None

    def begin(self, after: int) -> None:
        """Set its base to the next free place after this address."""
        self.base = self._end = -(-after // _LINE) * _LINE

    def hold_blocks(self, left_out: set[int], shown: set[int]) -> None:
        """Include the contents of the session's blocks, except those that are left out and not shown."""
        for whole in self._wholes:
            if id(whole) not in left_out or id(whole) in shown:
                self._contents.append((self._blocks[id(whole)], bytes(whole.view())))

    def image(self) -> tuple[int, bytes]:
        """Its end, and its contents without trailing zeros."""
        memory = bytearray(self._end - self.base)
        for address, content in self._contents:
            memory[address - self.base : address - self.base + len(content)] = content
        return self._end, bytes(memory).rstrip(b"\0")

    def take(self, nbytes: int, content: bytes | bytearray | None = None) -> int:
        """Allocate memory, zero unless it has initial contents."""
        found = self._end
        self._end += -(-max(nbytes, 1) // _LINE) * _LINE
        if content is not None:
            self._contents.append((found, content))
        return found

    def fill(self, address: int, content: bytes) -> None:
        """Set the initial contents of allocated memory."""
        self._contents.append((address, content))

    def block(self, whole: Memory) -> int:
        """The address of a block of the session's memory."""
        known = self._blocks.get(id(whole))
        if known is None:
            known = self._blocks[id(whole)] = self.take(whole.nbytes)
            self._wholes.append(whole)
        return known

    def data(self, data: bytes) -> int:
        """The address of constants."""
        known = self._data.get(data)
        if known is None:
            known = self._data[data] = self.take(len(data), data)
        return known

    def ring(self) -> int:
        """The address of the ring that all kernels print to."""
        if self._ring is None:
            content = bytearray(layout.RING_WORDS)
            struct.pack_into("<q", content, layout.RING_CAPACITY, _RING_WORDS)
            self._ring = self.take(layout.RING_WORDS + 8 * _RING_WORDS)
            self.fill(self._ring, bytes(content))
        return self._ring

    def replay_block(self, instructions: int, registers: int) -> int:
        """The address of a launch block of the replay, which gets the addresses of both."""
        content = bytearray(layout.HEADER_BYTES + layout.SLOTS + 24)
        struct.pack_into("<qq", content, layout.HEADER_BYTES + layout.SLOTS, instructions, registers)
        return self.take(len(content), content) + layout.HEADER_BYTES

    def instructions(self, words: Sequence[int]) -> int:
        """The address of these instructions of the replay."""
        return self.take(8 * len(words), bytearray(struct.pack(f"<{len(words)}q", *words)))

    # ---- places in programs

    def place(self, span: Span) -> int:
        """The number of a place."""
        return self._places.setdefault(span, len(self._places))

    def sites(self, sites: Sequence[Site]) -> list[dict[str, Any]]:
        return [
            {"kind": site.kind.name.lower(), "place": self.place(site.loc), "text": site.text}
            | _described_arguments(site)
            for site in sites
        ]

    def described_places(self) -> list[list[Any]]:
        """All places, by their numbers."""
        return [_described_place(place) for place in self._places]

    def described_prints(self) -> dict[str, int] | None:
        """The ring that kernels print to, if some do."""
        return None if self._ring is None else {"ring": self._ring, "words": _RING_WORDS}


def _described_arguments(site: Site) -> dict[str, Any]:
    given = site.arguments
    if isinstance(given, Bounds):
        return {"bounds": given._asdict()}
    return {"parts": [part if isinstance(part, str) else [part.type, part.spec] for part in given]} if given else {}


def _described_place(span: Span) -> list[Any]:
    if span == NOWHERE:
        return ["", 0, 0, ""]
    span = span.in_users_code()
    where, _, _ = location_name(span).rpartition(", line ")
    return [where, span.line, span.column, line_text(span)]
