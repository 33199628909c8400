"""The part of a reverse sweep that a custom VJP runs."""

from __future__ import annotations

from typing import Any

from tinote.compiler.requests import Request
from tinote.ir.nodes import Buffer
from tinote.lang.kernels.arguments import arguments_of, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import Recorder, memory_of
from tinote.runtime.memory import Memory

__all__ = ["CustomSweep"]


class CustomSweep(Recorder):
    """The recorder while a custom VJP runs: nothing is recorded, and what is overwritten comes back. `gradients`: what
    `kernel.grad` runs: what runs in the whole reverse sweep.
    """

    def __init__(self, gradients: Request) -> None:
        self.gradients = gradients
        self._overwritten: dict[Buffer, Memory] = {}

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> None:
        for buffer in own(arguments_of(instance, values).touched.written):
            self.overwriting(buffer)

    def writing(self, buffer: Buffer, position: Any, source: Buffer | None = None) -> None:
        self.overwriting(buffer)

    def sharing(self, buffer: Buffer) -> None:
        self.overwriting(buffer)

    def overwriting(self, buffer: Buffer) -> None:
        """A field is about to be written. Gradients are what this is for."""
        if buffer.primal is None and buffer not in self._overwritten:
            self._overwritten[buffer] = memory_of(buffer).copy()

    def bring_back(self) -> None:
        """Give all fields their values again."""
        for buffer, values in self._overwritten.items():
            memory_of(buffer).restore(values)
