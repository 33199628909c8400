"""Memory: zeroed, aligned, alive as long as its views, refused clearly."""

from __future__ import annotations

import ctypes
import gc

import pytest

from tinote.runtime.memory import Memory
from tinote.runtime.pool import ALIGNMENT


@pytest.mark.parametrize("nbytes", [1, 63, 64, 1000, (1 << 20) - 1, 1 << 20, 5_000_003])
def test_is_zero_and_aligned(nbytes: int) -> None:
    memory = Memory(nbytes)
    assert memory.nbytes == nbytes
    assert memory.address % ALIGNMENT == 0
    assert len(memory.view()) == nbytes
    assert not any(memory.view())


def test_views_and_address_are_the_same_bytes() -> None:
    memory = Memory(4096)
    memory.view()[100] = 7
    assert ctypes.c_uint8.from_address(memory.address + 100).value == 7
    ctypes.c_uint8.from_address(memory.address + 200).value = 9
    assert memory.view()[200] == 9


@pytest.mark.parametrize("nbytes", [4096, 1 << 21])
def test_a_view_keeps_the_bytes_alive(nbytes: int) -> None:
    memory = Memory(nbytes)
    view = memory.view()
    view[nbytes - 1] = 42
    del memory
    gc.collect()
    others = [Memory(nbytes) for _ in range(8)]
    assert view[nbytes - 1] == 42
    assert len(others) == 8


def test_empty() -> None:
    memory = Memory(0)
    assert len(memory.view()) == 0


@pytest.mark.parametrize("nbytes", [1 << 46, 1 << 48, 1 << 70])
def test_absurd_sizes_are_memory_errors(nbytes: int) -> None:
    with pytest.raises(MemoryError, match="memory"):
        Memory(nbytes)


def test_negative_size() -> None:
    with pytest.raises(ValueError, match="-8 bytes"):
        Memory(-8)
