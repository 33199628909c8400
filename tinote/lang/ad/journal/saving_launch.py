"""Launches that save the old values of atomic operations for the gradient (`autodiff/atomic_old_values.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.requests import Request
from tinote.ir.buffers import Buffer
from tinote.lang.data.layout import array_over
from tinote.lang.session.state import memory_of, session
from tinote.runtime.seam import active_listener


class SavingLaunch:
    """One launch of a kernel that saves its old values; to be launched with the kernel's own `values`.

    `mode`: one that `records`; `nbytes`: the size of the saved values, which `take` allocates.
    """

    #: converts the values of a launch to those with temporary shadows
    bind: Callable[[Sequence[Any]], Sequence[Any]] | None = None

    def __init__(self, specialisation: Specialisation, values: Sequence[Any], mode: Request) -> None:
        self.mode = mode
        self._native, facts = specialisation.compiled(mode)
        assert facts is not None and facts.saved is not None
        saved = facts.saved
        self._arrays = len(specialisation.arrays)
        shapes = saved.shapes(values[self._arrays :], _Present(specialisation.arrays, values))
        sizes = [max(math.prod(s), 1) * b.dtype.size for s, b in zip(shapes, saved.buffers, strict=True)]
        self.nbytes = sum(sizes)
        self._sizes = list(zip(shapes, sizes, saved.filled, strict=True))
        #: the saved arrays, in the order in which a gradient gets them after the kernel's arrays
        self.saved: list[BoundArray] = []

    def take(self) -> None:
        """Allocate the memory."""
        for shape, nbytes, is_filled in self._sizes:
            memory = session.new_memory(nbytes, clear=not is_filled)
            self.saved.append(BoundArray(memory.begin, 0, 0, 0, shape, nbytes, True, None, memory))

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with the values of a launch that saves nothing."""
        whole = (*values[: self._arrays], *self.saved, *values[self._arrays :])
        return self._native.launch(whole if self.bind is None else self.bind(whole))


class _Present:
    """Reads of memory before a launch, for the driver."""

    def __init__(self, arrays: Sequence[Buffer], values: Sequence[Any]) -> None:
        self._shapes = {buffer: bound.shape for buffer, bound in zip(arrays, values, strict=False)}

    def load(self, buffer: Buffer, index: tuple[int, ...]) -> Any:
        found = array_over(buffer, memory_of(buffer))
        if (listener := active_listener()) is not None:
            listener.taking(f"memory whose size is in '{buffer.name}'")
        return found[index].item()

    def store(self, buffer: Buffer, index: tuple[int, ...], value: Any) -> None:
        raise NotImplementedError(f"{buffer!r} is only read")

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        return self._shapes[buffer]
