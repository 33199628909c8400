"""The driver: from a kernel's source and the kinds of its arguments to something that can be launched.

A `Specialisation` is one kernel for one template signature. Its primal and its gradient are compiled apart, each when
it is first needed. Machine code holds no address and no field's identity, so `Specialisation`s whose final IR is the
same share one binary.
"""

from __future__ import annotations

import importlib
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinote.autodiff.gradient import Gradient
from tinote.compiler.frontend.lower import lower
from tinote.compiler.frontend.protocol import ArgumentSpec, FunctionSource, Lowered
from tinote.compiler.pipeline import GRADIENT, PRIMAL, TANGENT, Listener, Snapshot, run_pipeline
from tinote.compiler.summary import TaskSummary, Touched, summarise_tasks, touched_by
from tinote.config import Config
from tinote.errors import KernelTypeError
from tinote.ir.nodes import Buffer, Function
from tinote.ir.types import Scalar
from tinote.runtime.launch import Launcher
from tinote.runtime.layout import SLOTS
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE, Span

__all__ = ["Native", "Specialisation", "bad_argument", "binary_cache"]

_FORMATS = {
    "f16": "e6x",
    "f32": "f4x",
    "f64": "d",
    "i8": "b7x",
    "i16": "h6x",
    "i32": "i4x",
    "i64": "q",
    "u1": "?7x",
    "u8": "B7x",
    "u16": "H6x",
    "u32": "I4x",
    "u64": "Q",
}


class _Binaries:
    """Machine code by the digest of the text it was made from."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Any] = {}
        self.compiled = 0
        self.hits = 0

    def get(self, key: str, text: str, level: int, entry_points: tuple[str, ...]) -> Any:
        found = self._known.get((key, level))
        if found is None:
            # llvmlite takes long to load: not before something is compiled.
            jit = importlib.import_module("tinote.runtime.jit")
            found = self._known[key, level] = jit.compile_module(text, level=level, entry_points=entry_points)
            self.compiled += 1
        else:
            self.hits += 1
        return found


binary_cache = _Binaries()


class Native:
    """Machine code bound to memory: `launch(values)` runs it.

    `seconds` is what compiling took, `cached` whether the machine code was there already.
    """

    __slots__ = (
        "_acquire",
        "_pack",
        "_release",
        "_results",
        "_run",
        "cached",
        "launcher",
        "module",
        "seconds",
        "tasks",
    )

    def __init__(self, fn: Function, config: Config, memory_of: Callable[[Buffer], Memory]) -> None:
        started = time.perf_counter()
        codegen = importlib.import_module("tinote.compiler.codegen.llvm")
        module = self.module = codegen.generate(fn, codegen.Options(fast_math=config.fast_math, source=fn.loc.file))
        hits = binary_cache.hits
        binary = binary_cache.get(module.digest, module.text, config.opt_level, ("entry",))
        self.cached = binary_cache.hits > hits
        self.tasks: tuple[TaskSummary, ...] = summarise_tasks(fn)
        layout = module.layout
        image = bytearray(8 * layout.slots)
        memories: list[Memory] = []
        for buffer, offset in layout.pointers.items():
            memory = memory_of(buffer)
            memories.append(memory)
            struct.pack_into("<Q", image, offset - SLOTS, memory.address)
        launcher = self.launcher = Launcher(
            binary,
            "entry",
            layout.slots,
            layout.scratch_bytes,
            module.sites,
            config.num_threads,
            memory_limit=config.memory_limit,
            initial=bytes(image),
            keep=memories,
        )
        parameters = [v.type for v in layout.parameters]
        self._pack = (
            struct.Struct("<" + "".join(_FORMATS[t.name] for t in parameters if isinstance(t, Scalar))).pack_into
            if parameters
            else None
        )
        self._results = [
            (offset - SLOTS, struct.Struct("<" + _FORMATS[_scalar(y.type).name][0]))
            for offset, y in zip(layout.results, fn.region.yields, strict=True)
        ]
        self._acquire = launcher.acquire
        self._run = launcher.run
        self._release = launcher.release
        self.seconds = time.perf_counter() - started

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with these scalar arguments (the launch seed, if any, last). Raises `struct.error` for a value that does
        not fit its type.
        """
        block = self._acquire()
        try:
            if self._pack is not None:
                self._pack(block.slots, 0, *values)
            self._run(block)
            if not self._results:
                return ()
            return tuple([form.unpack_from(block.slots, offset)[0] for offset, form in self._results])
        finally:
            self._release(block)


def _scalar(t: object) -> Scalar:
    assert isinstance(t, Scalar)
    return t


class Specialisation:
    """One kernel for one template signature."""

    def __init__(
        self,
        source: FunctionSource,
        arguments: Sequence[ArgumentSpec],
        config: Config,
        memory_of: Callable[[Buffer], Memory],
    ) -> None:
        started = time.perf_counter()
        self.source = source
        self.arguments = tuple(arguments)
        self.config = config
        self._memory_of = memory_of
        self.lowered: Lowered = lower(source, arguments, config)
        self.front_end_seconds = time.perf_counter() - started
        self.calls = 0
        self._primal: Native | None = None
        self._gradient: Native | None = None
        self._tangent: Native | None = None
        self._gradient_facts: Gradient | None = None
        self._touched: Touched | None = None

    @property
    def uses_random(self) -> bool:
        return self.lowered.uses_random

    def primal(self) -> Native:
        """The machine code, compiled at the first call."""
        if self._primal is None:
            self._primal = self._compile(False)
        return self._primal

    def gradient(self) -> Native:
        """The machine code of the gradient, compiled at the first call. Raises `DifferentiationError` when it cannot be
        right.
        """
        if self._gradient is None:
            self._gradient = self._compile(True)
        return self._gradient

    def tangent(self) -> Native:
        """The machine code that computes tangents beside values, compiled at the first call. Raises
        `DifferentiationError`.
        """
        if self._tangent is None:
            fn, _ = run_pipeline(self.lowered.function, TANGENT, self.config)
            self._tangent = Native(fn, self.config, self._memory_of)
        return self._tangent

    def gradient_facts(self) -> Gradient:
        """What differentiation found out about the kernel."""
        self.gradient()
        assert self._gradient_facts is not None
        return self._gradient_facts

    def touched(self) -> Touched:
        """What the primal does to memory."""
        if self._touched is None:
            self._touched = touched_by(self.lowered.function.region)
        return self._touched

    def _compile(self, gradient: bool) -> Native:
        fn, facts = run_pipeline(self.lowered.function, GRADIENT if gradient else PRIMAL, self.config)
        if gradient:
            self._gradient_facts = facts
        return Native(fn, self.config, self._memory_of)

    def snapshots(self, *, gradient: bool = False, listen: Listener | None = None) -> list[Snapshot]:
        """Every step of the pipeline, run again with somebody watching."""
        seen: list[Snapshot] = []
        run_pipeline(self.lowered.function, GRADIENT if gradient else PRIMAL, self.config, listen or seen.append)
        return seen

    def is_current(self) -> bool:
        """Whether everything that the code captured is still what it was."""
        return all(capture.unchanged() for capture in self.lowered.captures)


def bad_argument(kernel: str, name: str, wanted: object, value: object, span: Span = NOWHERE) -> KernelTypeError:
    """The error for an argument that does not fit its annotation, which stands at `span`."""
    return KernelTypeError(f"argument '{name}' of kernel '{kernel}' must be {wanted}, not {value!r}", span)
