"""Versions of a kernel: enough to compile a present or earlier version again, to look at it or compare it with another.

A saved version holds neither memory nor machine code; of the captures it holds only the text of device functions. Its
stages are computed on demand.
"""

from __future__ import annotations

from typing import NamedTuple

from tinote.compiler.driver import Specialisation
from tinote.compiler.function_source import FunctionSource, source_of
from tinote.config import Config
from tinote.ir.nodes import Buffer, Function, MemoryOp
from tinote.ir.query import walk
from tinote.ir.redirect import redirected


class Version(NamedTuple):
    """A kernel as it was compiled at some time. `source`: its own; `functions`: those of the device functions that it
    captured; `function`: the front end's result; `cpu`: another processor than the usual one to compile for.
    """

    source: FunctionSource
    functions: tuple[FunctionSource, ...]
    function: Function
    config: Config
    front_end_seconds: float
    cpu: str = ""

    def kept(self) -> Version:
        """The version for saving: its buffers have no memory, its sources no surrounding values."""
        source, *functions = map(_text_of, (self.source, *self.functions))
        return self._replace(source=source, functions=tuple(functions), function=_Detached().function(self.function))


def version_of(specialisation: Specialisation) -> Version:
    """The version of a specialisation. Raises the errors of its front end."""
    lowered = specialisation.lowered
    functions = [source_of(capture.value) for capture in lowered.captures]
    known = tuple(dict.fromkeys(f for f in functions if f is not None and f is not specialisation.source))
    return Version(
        specialisation.source, known, lowered.function, specialisation.config, specialisation.front_end_seconds
    )


def _text_of(source: FunctionSource) -> FunctionSource:
    return FunctionSource(source.name, source.tree, source.file, {}, {}, source.text, source.is_func)


class _Detached:
    """Copies a function in first form onto buffers of its own: a field's buffer keeps the field's memory."""

    def __init__(self) -> None:
        self._clones: dict[Buffer, Buffer] = {}

    def function(self, fn: Function) -> Function:
        used = {op.buffer for op in walk(fn.region) if isinstance(op, MemoryOp)}
        return redirected(fn, {buffer: self._clone(buffer) for buffer in used})

    def _clone(self, buffer: Buffer) -> Buffer:
        found = self._clones.get(buffer)
        if found is None:
            found = self._clones[buffer] = Buffer(
                buffer.name,
                buffer.dtype,
                buffer.shape,
                buffer.element,
                buffer.kind,
                buffer.strides,
                buffer.element_strides,
                None if buffer.flat is None else self._clone(buffer.flat),
                buffer.offset,
            )
            for name in ("adjoint", "tangent", "primal"):
                related = getattr(buffer, name)
                setattr(found, name, None if related is None else self._clone(related))
        return found
