"""Running lowered functions as machine code on the interpreter's memory, so that the two can be compared."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tinote.compiler.codegen.llvm.module import LlvmModule, Options, generate
from tinote.compiler.passes.lowering.lower_access import lower_access
from tinote.compiler.passes.lowering.lower_arrays import lower_arrays
from tinote.compiler.passes.lowering.offload import offload
from tinote.ir.interpret import interpret
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, Function, row_major
from tinote.ir.parse import parse
from tinote.ir.query import buffers_of
from tinote.ir.rewrite import Rewriter
from tinote.ir.types import Scalar
from tinote.ir.verify import Form, verify
from tinote.runtime.jit import compile_module
from tinote.runtime.launch import Launcher
from tinote.runtime.memory import Memory
from tinote.source import Span

__all__ = ["STRICT", "Image", "agree", "execute", "located", "lower", "lowered", "memory_of"]

STRICT = Options(fast_math=False)
_CODES = {"f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "B", "u8": "B"}
_CODES |= {"u16": "H", "u32": "I", "u64": "Q"}


def lower(fn: Function) -> Function:
    """From SCALAR to LOWERED, each step verified."""
    for step, form in ((offload, Form.TASKS), (lower_arrays, Form.TASKS), (lower_access, Form.LOWERED)):
        fn = step(fn)
        if step is not lower_arrays:
            verify(fn, form)
    return fn


def lowered(text: str) -> Function:
    """A function in SCALAR text form, lowered."""
    fn = parse(text)
    verify(fn, Form.SCALAR)
    return lower(fn)


def _code(t: Scalar) -> str:
    return "<" + _CODES[t.name]


class Image:
    """A buffer's bytes: filled from the interpreter's memory, and read back into it."""

    def __init__(self, buffer: Buffer, memory: DictMemory) -> None:
        self.buffer, self.memory = buffer, memory
        self.shape = memory.full_shape(buffer)
        extents = self.shape[: buffer.rank]
        element = buffer.dtype.size
        for n in buffer.element:
            element *= n
        self.strides = (*(buffer.strides or row_major(extents, element)), *buffer.element_strides)
        size = buffer.dtype.size + sum(max(n - 1, 0) * s for n, s in zip(self.shape, self.strides, strict=True))
        self.bytes = Memory(size)
        self.view = self.bytes.view()
        for index in self._indices():
            struct.pack_into(_code(buffer.dtype), self.view, self._at(index), memory.load(buffer, index))

    def _indices(self) -> Any:
        return itertools.product(*map(range, self.shape))

    def _at(self, index: tuple[int, ...]) -> int:
        return sum(i * s for i, s in zip(index, self.strides, strict=True))

    def read_back(self) -> None:
        for index in self._indices():
            (value,) = struct.unpack_from(_code(self.buffer.dtype), self.view, self._at(index))
            self.memory.store(self.buffer, index, value)


def execute(
    fn: Function,
    args: Sequence[Any],
    memory: DictMemory,
    *,
    threads: int = 2,
    options: Options = STRICT,
    on_print: Callable[[str], None] | None = None,
    memory_limit: int = 1 << 28,
    launches: int = 1,
    level: int = 3,
) -> tuple[Any, ...]:
    """Compile `fn`, run it on a copy of `memory` and copy what it left back; gives what it returned."""
    module = generate(fn, options)
    binary = compile_module(module.text, entry_points=("entry",), level=level)
    layout = module.layout
    launcher = Launcher(
        binary,
        "entry",
        layout.slots,
        layout.scratch_bytes,
        module.sites,
        threads,
        memory_limit=memory_limit,
        write=on_print or (lambda text: None),
    )
    images = {buffer: Image(buffer, memory) for buffer in layout.buffers}
    block = launcher.acquire()
    try:
        for buffer, offset in layout.pointers.items():
            block.integers[(offset - 128) // 8] = images[buffer].bytes.address
        for (buffer, axis), offset in layout.extents.items():
            block.integers[(offset - 128) // 8] = images[buffer].shape[axis]
        for parameter, value in zip(fn.region.params, args, strict=True):
            assert isinstance(parameter.type, Scalar)
            struct.pack_into(_code(parameter.type), block.slots, layout.parameters[parameter] - 128, value)
        for _ in range(launches):
            launcher.run(block)
        return _results(fn, module, block.slots)
    finally:
        for image in images.values():
            image.read_back()
        launcher.release(block)


def _results(fn: Function, module: LlvmModule, slots: memoryview) -> tuple[Any, ...]:
    found: list[Any] = []
    for y, offset in zip(fn.region.yields, module.layout.results, strict=True):
        assert isinstance(y.type, Scalar)
        found.append(struct.unpack_from(_code(y.type), slots, offset - 128)[0])
    return tuple(found)


def memory_of(fn: Function, contents: dict[str, Any]) -> DictMemory:
    return DictMemory({b: contents[b.name] for b in buffers_of(fn) if b.name in contents})


def agree(
    text: str, args: tuple[Any, ...] = (), contents: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Run a SCALAR text by the interpreter and as machine code: both must leave and return the same.

    Gives the contents of the buffers.
    """
    source = parse(text)
    expected = memory_of(source, contents or {})
    returned = interpret(source, args, expected)
    fn = lower(source)
    memory = memory_of(fn, contents or {})
    found = execute(fn, args, memory, **options)
    assert found == returned
    left: dict[str, Any] = {}
    for buffer in generate(fn).layout.buffers:
        left[buffer.name] = memory.nested(buffer)
        assert left[buffer.name] == expected.nested(buffer), buffer.name
    return left


def located(fn: Function) -> Function:
    """`fn` with a place on every operation without outs, and on stacks."""

    class Locate(Rewriter):
        def on(self, op: Any) -> Any:
            new = op.rebuilt(op.args, op.regions)
            new.loc = Span("cell", 12, 4)
            self.emit(new)
            return op.outs

    return Function(fn.name, Locate().region(fn.region), Span("cell", 11))
