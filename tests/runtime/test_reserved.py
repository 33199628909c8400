"""Reserved memory on systems of every kind: pages of 4 KiB and of 16 KiB, nothing known of pages, and memory that is
taken from the beginning.
"""

from __future__ import annotations

import io
import mmap
import random
import sys
from typing import Any

import pytest

from tinote.runtime import reserved
from tinote.runtime.reserved import ReservedMemory

_LARGE = 16384


class _LargePages:
    """What the system would say of pages of 16 KiB: the memories' own pages, four at a time."""

    def __init__(self, begins: dict[int, ReservedMemory]) -> None:
        self.begins = begins
        self.pages = io.FileIO("/proc/self/pagemap")
        self.left = 0

    def __enter__(self) -> _LargePages:
        return self

    def __exit__(self, *_: object) -> None:
        self.pages.close()

    def seek(self, offset: int) -> None:
        memory = self.begins[offset // 8]
        self.pages.seek(8 * (memory.address // mmap.PAGESIZE))
        self.left = -(-memory.nbytes // mmap.PAGESIZE)

    def read(self, count: int) -> bytes:
        ratio = _LARGE // mmap.PAGESIZE
        found = memoryview(self.pages.read(count * ratio)).cast("Q")
        entries = [*found[: self.left], *[0] * (len(found) - self.left)]  # behind its end is other memory
        self.left -= len(found)
        joined = [max(entries[k : k + ratio]) for k in range(0, len(entries), ratio)]
        return b"".join(entry.to_bytes(8, sys.byteorder) for entry in joined)


class _Mmap:
    """The module with pages of another size."""

    PAGESIZE = _LARGE

    def __getattr__(self, name: str) -> Any:
        return getattr(mmap, name)


@pytest.fixture(params=["pages of 4 KiB", "pages of 16 KiB", "unknown pages", "committed"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kind: str = request.param
    if kind.startswith("pages"):
        if sys.platform != "linux" or mmap.PAGESIZE != 4096:
            pytest.skip("needs to be told of pages of 4 KiB")
        if kind == "pages of 16 KiB":
            begins: dict[int, ReservedMemory] = {}
            make = ReservedMemory.__init__

            def noted(self: ReservedMemory, nbytes: int) -> None:
                make(self, nbytes)
                begins[self.address // _LARGE] = self

            monkeypatch.setattr(ReservedMemory, "__init__", noted)
            monkeypatch.setattr(reserved, "mmap", _Mmap())
            monkeypatch.setattr(reserved, "open", lambda *_, **__: _LargePages(begins), raising=False)
    else:

        def refuse(*_: object, **__: object) -> Any:
            raise OSError

        monkeypatch.setattr(reserved, "open", refuse, raising=False)
        if kind == "committed":
            for name, value in {"_PRIVATE": 0, "_SMALL_PAGES": None, "_FORGET": None}.items():
                monkeypatch.setattr(reserved, name, value)
    return kind


@pytest.mark.parametrize("seed", range(4))
def test_it_is_like_any_memory(system: str, seed: int) -> None:
    """Random programs, against bytes; and how much of it is taken."""
    rng = random.Random(seed)
    nbytes = (2 << 20) + rng.choice([0, 1, 100, 5000])
    one, wanted = ReservedMemory(nbytes), bytearray(nbytes)
    copies: list[tuple[Any, bytes]] = []
    page = _LARGE if system == "pages of 16 KiB" else 4096
    for _ in range(60):
        match rng.choice(["write", "write", "write", "copy", "restore", "clear"]):
            case "write":
                place = rng.choice([0, nbytes - 1, rng.randrange(nbytes)])
                amount = min(rng.choice([1, 64, 5000, 40000]), nbytes - place)
                given = rng.randbytes(amount)
                one.view()[place : place + amount] = wanted[place : place + amount] = given
            case "copy":
                copies.append((one.copy(), bytes(wanted)))
            case "restore" if copies:
                memory, held = rng.choice(copies)
                one.restore(memory)
                wanted[:] = held
            case "clear":
                one.clear()
                wanted[:] = bytes(nbytes)
            case _:
                pass
        assert bytes(one.view()) == wanted
    for memory, held in copies:
        assert bytes(memory.view()) == held
    other = ReservedMemory(nbytes)
    other.take(one)
    assert bytes(other.view()) == wanted and other.checksum() == one.checksum() and other.contents() == one.contents()
    pieces = [*one.pieces()]
    assert all(
        not any(wanted[a:b]) for (_, a), (b, _) in zip([(0, 0), *pieces], [*pieces, (nbytes, nbytes)], strict=True)
    )
    one.clear()
    one.view()[5 * _LARGE + 7] = 1
    assert one.taken == (page if system.startswith("pages") else nbytes)
    assert [held for held in one.contents().values() if any(held)] == [one.contents()[(5 * _LARGE // page) * page]]


def test_committed_memory_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without reservations says no to a box that does not fit the memory."""

    def refuse(*_: object, **__: object) -> Any:
        raise OSError(1455, "the paging file is too small")

    monkeypatch.setattr(reserved.mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match=r"cannot reserve 1\.0 TiB"):
        ReservedMemory(1 << 40)
