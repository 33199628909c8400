"""Running functions as generated Python on the interpreter's memory, so that the two can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.codegen.native import Image
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.launch.python_launch import PythonCode
from tinote.compiler.pipeline import python_steps_for, run_pipeline
from tinote.compiler.requests import PRIMAL, Request
from tinote.config import Config
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, BufferKind, Function
from tinote.ir.query import buffers_of
from tinote.runtime.memory import Memory
from tinote.source import Span

__all__ = ["STRICT", "code_of", "execute", "placed", "prepared"]

STRICT = Config(arch="python", fast_math=False, overflow_check=False)


def placed(fn: Function) -> Function:
    """`fn` with a place in a file."""
    return Function(fn.name, fn.region, Span("program.py", 1))


def prepared(fn: Function, request: Request = PRIMAL, config: Config = STRICT) -> Function:
    """A function in first form, in the form that becomes Python."""
    return placed(run_pipeline(fn, python_steps_for(request), config)[0])


def code_of(fn: Function) -> PythonCode:
    """The code of a function without memory."""
    return PythonCode(placed(fn), STRICT, {}, lambda buffer: Memory(0))


def execute(fn: Function, args: Sequence[Any], memory: DictMemory, config: Config = STRICT) -> tuple[Any, ...]:
    """Run `fn` on a copy of `memory` and copy what it left back; gives what it returned."""
    outside = [b for b in buffers_of(fn) if b.kind in (BufferKind.FIELD, BufferKind.SAVED, BufferKind.ARRAY)]
    images = {buffer: Image(buffer, memory) for buffer in outside}
    arrays = [b for b in dict.fromkeys(_argument(b) for b in outside) if b.kind is BufferKind.ARRAY]

    def memory_of(buffer: Buffer) -> Memory:
        return images[buffer].bytes

    def bound(array: Buffer) -> BoundArray:
        parts = (array, array.adjoint, array.tangent)
        known = [images.get(part) if part is not None else None for part in parts]
        there = next(image for image in known if image is not None)
        addresses = [0 if image is None else image.bytes.address for image in known]
        return BoundArray(*addresses, 0, there.shape[: array.rank], there.bytes.nbytes, True, None, images)

    try:
        return PythonCode(fn, config, {}, memory_of, arrays).launch((*map(bound, arrays), *args))
    finally:
        for image in images.values():
            image.read_back()


def _argument(buffer: Buffer) -> Buffer:
    """The array that a buffer is, or is the gradient or dual of."""
    return buffer if buffer.primal is None else buffer.primal
