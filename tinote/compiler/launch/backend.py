"""From a lowered function to LLVM text and the metadata of its launches."""

from __future__ import annotations

from tinote.compiler.codegen.llvm.module import Options, generate
from tinote.compiler.launch.access_summary import summarise_tasks
from tinote.compiler.launch.metadata import ExecutableMetadata
from tinote.config import Config
from tinote.errors import refusing_deep_nests
from tinote.ir.nodes import Function, Task
from tinote.ir.types import Scalar
from tinote.runtime.layout import SLOTS
from tinote.runtime.profile import Clock


def make_executable(fn: Function, config: Config, *, wasm: bool = False) -> tuple[ExecutableMetadata, str]:
    """The metadata, and the LLVM text of the machine code that it is about. `wasm`: for WebAssembly."""
    options = Options(fast_math=config.fast_math, source=fn.loc.file, profile=config.kernel_profiler)
    if wasm:
        options = options._replace(vector_width=128, fused=False, numeric_extrema=False)
    with refusing_deep_nests(fn.name, fn.loc):
        module = generate(fn, options)
    layout = module.layout
    tasks = [op for op in fn.region.body if isinstance(op, Task)]
    timed = zip(module.clocks, tasks, strict=True) if module.clocks else ()
    metadata = ExecutableMetadata(
        module.digest,
        layout.slots,
        layout.scratch_bytes,
        tuple([v.type for v in layout.parameters if isinstance(v.type, Scalar)]),
        tuple(layout.pointers.items()),
        tuple([(buffer, axis, offset) for (buffer, axis), offset in layout.extents.items()]),
        tuple(
            [(at, y.type) for at, y in zip(layout.results, fn.region.yields, strict=True) if isinstance(y.type, Scalar)]
        ),
        module.sites,
        summarise_tasks(fn),
        tuple([Clock((at - SLOTS) // 8, fn.name, task.name, task.loc) for at, task in timed]),
    )
    return metadata, module.text
