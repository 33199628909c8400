"""Sets memory to zero: by all threads where there is much of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tinote.lazy import lazy
from tinote.runtime.launch import Launcher
from tinote.runtime.memory import Memory
from tinote.runtime.seam import active_listener

if TYPE_CHECKING:
    from tinote.runtime import jit
else:
    jit = lazy("tinote.runtime.jit")  # llvmlite takes long to load: not before something is to be run

#: The number of bytes from which on one thread takes longer than waking another one.
_SHARED_FROM = 1 << 20


def _one() -> int:
    return 1


def clear_memories(memories: Iterable[Memory], threads: Callable[[], int] = _one) -> None:
    """Set all bytes to zero; for large memories, `threads` gives the number of threads. Raises `KeyboardInterrupt`
    between two memories.
    """
    for memory in memories:
        alone = memory.nbytes < _SHARED_FROM or memory.is_resident or memory.is_reserved or not memory.is_whole
        if alone or (num_threads := threads()) == 1:
            memory.clear()
            continue
        if (listener := active_listener()) is not None:
            listener.clearing(memory)
        launcher = _launcher(num_threads)
        block = launcher.acquire()
        try:
            block.integers[0], block.integers[1] = memory.address, memory.nbytes
            launcher.run(block)
        finally:
            launcher.release(block)


@functools.cache
def _launcher(num_threads: int) -> Launcher:
    return Launcher(jit.runtime_binary(), "tn_clear", slots=2, num_threads=num_threads)
