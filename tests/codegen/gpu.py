"""Running functions on a software GPU on the interpreter's memory, so that the two can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.codegen.native import Image
from tinote.compiler.launch.gpu_launch import GpuCode
from tinote.compiler.launch.native import BoundArray
from tinote.config import Config
from tinote.ir.memory import DictMemory
from tinote.ir.nodes import Buffer, BufferKind, Function
from tinote.ir.query import buffers_of
from tinote.runtime.launch import prints_to
from tinote.runtime.memory import Memory

GPU = Config(arch="gpu", software_gpu=True, overflow_check=False)


def execute_on_gpu(
    fn: Function, args: Sequence[Any], memory: DictMemory, printed: list[str], config: Config = GPU
) -> tuple[Any, ...]:
    """Run `fn`, which consists of tasks, on a copy of `memory`, and copy what it left back; gives what it returned."""
    outside = [b for b in buffers_of(fn) if b.kind not in (BufferKind.TEMPORARY, BufferKind.PRIVATE)]
    images = {b: Image(b, memory) for b in outside}
    arrays = [b for b in outside if None in b.shape and b.primal is None]

    def address(b: Buffer | None) -> int:
        return images[b].bytes.address if b in images else 0

    def memory_of(b: Buffer) -> Memory:
        return images[b].bytes

    bound = [
        BoundArray(
            address(b),
            address(b.adjoint),
            address(b.tangent),
            address(b.adjoint and b.adjoint.tangent),
            images[b].shape[: b.rank],
            images[b].bytes.nbytes,
            True,
            None,
            None,
        )
        for b in arrays
    ]
    try:
        with prints_to(printed.append):
            return GpuCode(fn, config, memory_of, arrays).launch([*bound, *args])
    finally:
        for image in images.values():
            image.read_back()
