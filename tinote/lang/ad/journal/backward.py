"""The way back through a gradient of the user's own."""

from __future__ import annotations

from typing import Any

from tinote.compiler.requests import Request
from tinote.ir.nodes import Buffer
from tinote.lang.kernels.arguments import arguments_of, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import memory_of
from tinote.runtime.memory import Memory

__all__ = ["Backward"]


class Backward:
    """The recorder while a gradient of the user's own runs: nothing is recorded, and what is overwritten comes back.
    `gradients`: what `kernel.grad` runs: what runs on the whole way back.
    """

    clears_duals = False

    def __init__(self, gradients: Request) -> None:
        self.gradients = gradients
        self._overwritten: dict[Buffer, Memory] = {}

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        for buffer in own(arguments_of(instance, values).touched.written):
            self.written(buffer)

    def launched(self) -> None:
        """Nothing is recorded."""

    def written(self, buffer: Buffer, position: Any = ...) -> bool:
        """A field is about to be written. Gradients are what this is for."""
        if buffer.primal is None and buffer not in self._overwritten:
            self._overwritten[buffer] = memory_of(buffer).copy()
        return False

    def bring_back(self) -> None:
        """Give all fields their values again."""
        for buffer, values in self._overwritten.items():
            memory_of(buffer).restore(values)

    def read(self, buffer: Buffer, position: tuple[Any, ...]) -> None:
        """Nothing is recorded."""

    def replaced(self, buffer: Buffer, source: Buffer | None) -> None:
        """Nothing is recorded."""
