"""The driver: from a kernel's source and the kinds of its arguments to something that can be launched.

A `Specialisation` is one kernel for one template signature. Each `Request` for a program made of it, such as its
gradient, is compiled apart, when it is first needed. Machine code holds no address and no field's identity, so
`Specialisation`s whose final IR is the same share one binary; and it outlives the process: what an earlier one has
compiled from the same source, constants and types is found on disk (`cache/`). Then neither the front end nor the
passes are loaded, which is why they, and code generation, are lazy imports of this file.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.compiler.captures import Capture
from tinote.compiler.deferred_collection import deferred_collection
from tinote.compiler.function_source import FunctionSource
from tinote.compiler.launch.access_summary import AccessSummary, summarise
from tinote.compiler.launch.native import BoundCode, Native, Origin, Profiled, binary_cache
from tinote.compiler.requests import GRADIENT, PRIMAL, Derivative, Request
from tinote.compiler.signature import ArgumentSpec, ArrayArgument, Lowered, Warned, single_arguments
from tinote.compiler.single_flight import SingleFlight
from tinote.compiler.temporary_buffers import TemporaryBuffers
from tinote.compiler.waiting import Enter, compilation
from tinote.config import Config
from tinote.errors import KernelTypeError, Note, noting_interruptions
from tinote.ir.buffers import bytes_of
from tinote.ir.nodes import Buffer, BufferKind, Function
from tinote.ir.query import has_units
from tinote.ir.types import Scalar, Tensor
from tinote.lazy import lazy
from tinote.runtime.memory import Memory
from tinote.runtime.seam import unwatched
from tinote.source import Span

if TYPE_CHECKING:
    from tinote.autodiff import gradient, static_violations
    from tinote.compiler import pipeline, printing
    from tinote.compiler.cache import kernel_cache
    from tinote.compiler.cache.kernel_cache import KernelCache
    from tinote.compiler.context import Context
    from tinote.compiler.frontend import lower
    from tinote.compiler.launch import backend, facts, gpu_launch, memory_facts, metadata, python_launch
    from tinote.compiler.launch.memory_facts import BrokenPath, Facts, GradientFacts
    from tinote.compiler.launch.metadata import ExecutableMetadata, Signature
    from tinote.compiler.passes.analyses import check_units
    from tinote.compiler.pipeline import Listener, Snapshot, Steps
    from tinote.ir import access_region, definite_stores, redirect
    from tinote.ir.access_region import MemoryEffects
    from tinote.runtime import gpu, process_locks, store
    from tinote.runtime.jit import Binary
    from tinote.runtime.store import DiskStore
else:
    gradient = lazy("tinote.autodiff.gradient")
    static_violations = lazy("tinote.autodiff.static_violations")
    check_units = lazy("tinote.compiler.passes.analyses.check_units")
    pipeline = lazy("tinote.compiler.pipeline")
    printing = lazy("tinote.compiler.printing")
    kernel_cache = lazy("tinote.compiler.cache.kernel_cache")
    lower = lazy("tinote.compiler.frontend.lower")
    backend = lazy("tinote.compiler.launch.backend")
    facts = lazy("tinote.compiler.launch.facts")
    gpu_launch = lazy("tinote.compiler.launch.gpu_launch")
    memory_facts = lazy("tinote.compiler.launch.memory_facts")
    metadata = lazy("tinote.compiler.launch.metadata")
    python_launch = lazy("tinote.compiler.launch.python_launch")
    access_region = lazy("tinote.ir.access_region")
    definite_stores = lazy("tinote.ir.definite_stores")
    redirect = lazy("tinote.ir.redirect")
    gpu = lazy("tinote.runtime.gpu")
    process_locks = lazy("tinote.runtime.process_locks")
    store = lazy("tinote.runtime.store")


class Compiled(NamedTuple):
    """The result of a request: what a launch calls, and what it must know. The launch of the primal needs no facts."""

    code: BoundCode
    facts: Facts | None


class Specialisation:
    """One kernel for one template signature. Raises what compiling raises."""

    def __init__(
        self,
        source: FunctionSource,
        arguments: Sequence[ArgumentSpec],
        config: Config,
        memory_of: Callable[[Buffer], Memory],
    ) -> None:
        self.source = source
        self.arguments = tuple(arguments)
        #: the parameters that are memory known at launch only; a launch's values begin with them
        self.arrays = tuple([a.buffer for a in single_arguments(self.arguments) if isinstance(a, ArrayArgument)])
        self.config = config
        self.front_end_seconds = 0.0
        self._memory_of = memory_of
        self._copies: dict[Buffer, Memory] = {}
        self._lowered: Lowered | None = None
        self._captures: tuple[Capture, ...] = ()
        self._signature: Signature | None = None
        self._results: dict[Request, Compiled] = {}
        self._temporary = TemporaryBuffers()
        self._compiling = SingleFlight()
        self._differentiated: dict[Request, Function] = {}
        self._carried: dict[tuple[Buffer, Request], tuple[list[tuple[Buffer, Span]], Note | None]] = {}
        self._duals: set[Buffer] = set()
        started = time.perf_counter()
        self._cache = self._open_cache()
        if not self._load_primal_from_cache():
            with deferred_collection():
                self._lower()
        self.seconds = time.perf_counter() - started

    # ---- what the kernel is

    @property
    def lowered(self) -> Lowered:
        """What the front end makes of the kernel. Raises `KernelTypeError` when that can no longer be found out:
        the code came from disk, and what it captured has changed since.
        """
        if self._lowered is None:
            if not self.is_current():
                raise KernelTypeError(
                    f"what kernel '{self.source.name}' uses from outside has changed since this version was compiled",
                    self.source.span,
                    hint="call the kernel again",
                )
            self._lower()
        assert self._lowered is not None
        return self._lowered

    @property
    def captures(self) -> tuple[Capture, ...]:
        """What the code depends on outside of the kernel."""
        return self._captures

    @property
    def signature(self) -> Signature:
        """What the kernel returns, draws, touches and warns of."""
        if self._signature is None:
            lowered = self.lowered
            self._signature = metadata.Signature(
                lowered.returns,
                lowered.returns_tuple,
                lowered.uses_random,
                summarise(lowered.function.region),
                (*lowered.warnings, *self._broken_rules(lowered.function)),
            )
        return self._signature

    def _broken_rules(self, fn: Function) -> list[Warned]:
        """Warnings about access rules that the kernel is certain to break. Only debug mode teaches the rules: a tape is
        right without them.
        """
        if not self.config.debug:
            return []
        violations = static_violations.find_static_violations(fn)
        return [Warned(one.message, one.later) for one in violations]

    @property
    def returns(self) -> tuple[Scalar | Tensor, ...] | None:
        """The types that the kernel gives back, if any."""
        return self.signature.returns

    @property
    def uses_random(self) -> bool:
        return self.signature.uses_random

    @property
    def warnings(self) -> tuple[Warned, ...]:
        return self.signature.warnings

    def accesses(self) -> AccessSummary:
        """What the primal does to memory."""
        return self.signature.accesses

    def is_current(self) -> bool:
        """Whether everything that the code captured is still what it was."""
        return all(capture.unchanged() for capture in self._captures)

    # ---- code

    def compiled(self, request: Request) -> Compiled:
        """The result of a request, compiled at the first call. Raises `DifferentiationError`."""
        duals = self._look_at_duals() if request.has_tangents else None
        found = self._results.get(request)
        if found is None:
            with self._compiling(request):
                found = self._results.get(request)
                if found is None:
                    started = time.perf_counter()
                    found = self._from_disk(request)
                    if found is None:
                        with deferred_collection():
                            found = self._compile_once(request)
                    found.code.seconds = time.perf_counter() - started  # of this request: the front end's are apart
                    if duals is None or duals == self._present_duals():  # a field may have got one meanwhile
                        self._results[request] = found
        return found

    def code(self, request: Request) -> BoundCode:
        """What runs the kernel, its gradient, … A launch's values begin with the kernel's arrays, and with those of its
        `Facts` if there are some. Raises `DifferentiationError`.
        """
        found = None if request.has_tangents else self._results.get(request)
        return (self.compiled(request) if found is None else found).code

    def gradient_facts(self, request: Request = GRADIENT) -> GradientFacts:
        """What the launch of a gradient asks of memory. Raises `DifferentiationError`."""
        facts = self.compiled(request).facts
        assert facts is not None and facts.gradient is not None
        return facts.gradient

    def broken_paths(self, request: Request) -> tuple[BrokenPath, ...]:
        """Where a value that is differentiated is stored into memory without a gradient (a dual, in forward mode).
        Raises `DifferentiationError`.
        """
        facts = self.compiled(request).facts
        return () if facts is None else facts.broken_paths

    def results(self) -> Iterator[tuple[Request, BoundCode]]:
        """The requests compiled so far, with their code."""
        for request, (code, _) in list(self._results.items()):
            yield request, code

    def differentiated(self, request: Request = GRADIENT) -> Function:
        """What reverse differentiation works on: the kernel in scalar form, with its loops as the gradient runs them.
        Runs the passes, if the machine code came from disk.
        """
        found = self._differentiated.get(request)
        if found is None:
            gradient = self._run(request)[1].gradient
            assert gradient is not None
            found = self._differentiated[request] = gradient.primal
        return found

    @cached_property
    def effects(self) -> MemoryEffects:
        """What a launch does to memory, element by element. Runs the passes, unless an earlier process has."""
        found = None if self._cache is None else self._cache.get("effects", access_region.MemoryEffects)
        if found is None:
            fn, _ = pipeline.run_pipeline(self.lowered.function, self._steps(pipeline.SCALAR_PRIMAL), self.config)
            found = access_region.effects_of(fn)
            if self._cache is not None:
                self._cache.put("effects", found, self._lowered)
        return found

    def carried_on(self, buffer: Buffer, request: Request) -> tuple[list[tuple[Buffer, Span]], Note | None]:
        """What becomes of an active value in `buffer`, which has no gradient: the stores that carry it on, and where
        the kernel differentiates with respect to it.
        """
        found = self._carried.get((buffer, request))
        if found is None:
            writes, needed = gradient.carried_on(buffer, self.differentiated(request), arguments=request.arguments)
            found = self._carried[buffer, request] = [(write.buffer, write.loc) for write in writes], needed
        return found

    def refuse_gradient_access(self, request: Request) -> None:
        """Raise `DifferentiationError` when the kernel works on gradients other than as constants."""
        gradient.refuse_gradient_access(self.differentiated(request))

    def request_of(self, code: BoundCode) -> Request | None:
        """Which request this code is the result of."""
        return next((request for request, known in self.results() if known is code), None)

    def _present_duals(self) -> set[Buffer]:
        # Gradients have duals, too: those that the kernel itself works on, and those of its fields.
        touched = (*self.accesses().loaded, *self.accesses().written)
        pairs = [(b.tangent, b.adjoint and b.adjoint.tangent) for b in touched]
        return {dual for pair in pairs for dual in pair if dual is not None}

    def _look_at_duals(self) -> set[Buffer]:
        """A field may have got a dual since: then code that computes tangents, and what an earlier process left of it,
        is out of date. Gives those that there are.
        """
        duals = self._present_duals()
        if self._cache is not None:
            self._cache.renew(duals, current=self.is_current())
        if duals != self._duals:
            for request in [r for r in list(self._results) if r.has_tangents]:
                self._results.pop(request, None)
                self._differentiated.pop(request, None)
                self._temporary.forget(request)
            self._duals = duals
        return duals

    def _lower(self) -> None:
        started = time.perf_counter()
        with self._compilation(self.source.name) as enter:
            enter("front end")
            lowered = lower.lower(self.source, self.arguments, self.config)
            if lowered.units or has_units(lowered.function):
                check_units.check_units(lowered.function, lowered.units)
        self._lowered = lowered
        self._captures = lowered.captures
        self.front_end_seconds = time.perf_counter() - started
        if self.config.print_ir:
            printing.print_first(lowered.function, self.front_end_seconds)

    def _run(
        self, request: Request, listen: Listener | None = None, enter: Enter | None = None
    ) -> tuple[Function, Context]:
        steps = self._steps(pipeline.steps_on(self.config.arch, request))
        return pipeline.run_pipeline(self.function(request), steps, self.config, listen, enter)

    def _steps(self, steps: Steps) -> Steps:
        """Which of these there are for what the front end made."""
        return steps

    # ---- temporary shadows

    def clones(self, request: Request) -> dict[Buffer, Buffer]:
        """What stands for each of a request's `temporaries` in its code and its facts."""
        return self._temporary.clones(request, self.accesses)

    def original(self, buffer: Buffer) -> Buffer:
        """What a buffer of the code is to the kernel itself."""
        return self._temporary.original(buffer)

    def fields_with_temporaries(self, request: Request) -> list[Buffer]:
        """The fields whose temporary shadows a launch brings along, in the order of its values."""
        facts = self.compiled(request).facts
        return [] if facts is None else self._temporary.fields(request, facts.arrays, self.arrays)

    def function(self, request: Request) -> Function:
        """What the front end made, with temporary shadows."""
        fn, clones = self.lowered.function, self.clones(request)
        return redirect.redirected(fn, clones) if clones else fn

    def _compile_once(self, request: Request) -> Compiled:
        """Compiled here, or by the first of several processes that need the same now."""
        store = self._store()
        key = None
        if self._cache is not None and store is not None:
            key = self._cache.key(request.name, self.lowered, self.clones(request))
        if key is None or store is None:
            return self._compile(request)
        with process_locks.process_lock(store.folder, key):
            return self._from_disk(request) or self._compile(request)

    def _compile(self, request: Request) -> Compiled:
        name = self.source.name
        with self._compilation(name if request is PRIMAL else f"{name}, {request.name}") as enter:
            return self._compile_reporting(request, enter)

    @contextmanager
    def _compilation(self, title: str) -> Iterator[Enter]:
        interrupted = f"interrupted while '{title}' was compiled"
        with noting_interruptions(interrupted, self.source.span), compilation(title) as enter, unwatched():
            yield enter

    def _compile_reporting(self, request: Request, enter: Enter) -> Compiled:
        listen = printing.printer(self.source.name, request) if self.config.print_ir else None
        fn, context = self._run(request, listen, enter)
        if context.gradient is not None:
            self._differentiated[request] = context.gradient.primal
        facts = None if request is PRIMAL else self._facts_of(context, request)
        arrays = self.arrays if facts is None else facts.arrays
        if self.config.arch == "python":
            code = python_launch.PythonCode(fn, self.config, self.source.globals, self._memory_for, arrays)
            return Compiled(code, facts)
        if self.config.arch == "gpu":
            enter("WGSL")
            return Compiled(gpu_launch.GpuCode(fn, self.config, self._memory_for, arrays), facts)
        enter("LLVM IR")
        metadata, text = backend.make_executable(fn, self.config)
        binary, origin = binary_cache.get(metadata.code, text, self.config.opt_level, self._store(), enter)
        native = self._bind(metadata, binary, origin, arrays)
        if self._cache is not None:
            kind, further = self._entry_kind(request), self.signature if facts is None else facts
            self._cache.put(request.name, kind(metadata, further), self._lowered, self.clones(request))
        return Compiled(native, facts)

    def _facts_of(self, context: Context, request: Request) -> Facts:
        clones = self.clones(request)
        arrays = tuple([clones.get(array, array) for array in self.arrays])
        # A launch that computes no derivative leaves shadows alone.
        fields_with_temporaries = (
            () if request.derivative is Derivative.NONE else tuple([t for t in clones.values() if t not in arrays])
        )
        return facts.facts_of(context, request, arrays, fields_with_temporaries)

    def _bind(self, metadata: ExecutableMetadata, binary: Binary, origin: Origin, arrays: tuple[Buffer, ...]) -> Native:
        kind = Profiled if metadata.clocks else Native
        native = kind(metadata, binary, origin, self.config, self._memory_for, arrays)
        if isinstance(native, Profiled):
            native.owner = weakref.ref(self)
        return native

    def _memory_for(self, buffer: Buffer) -> Memory:
        """A field's own memory; for a copy that launches make, memory of this specialisation's."""
        if buffer.kind is not BufferKind.SAVED:
            return self._memory_of(self.original(buffer))
        found = self._copies.get(buffer)
        if found is None:
            found = self._copies[buffer] = self._new_memory(max(bytes_of(buffer) or 0, buffer.dtype.size))
        return found

    def _new_memory(self, nbytes: int) -> Memory:
        if self.config.arch != "gpu":
            return Memory(nbytes)
        return gpu.ResidentMemory(gpu.open_device(self.config.software_gpu), nbytes, clear=False)

    # ---- from one process to the next

    def _store(self) -> DiskStore | None:
        if not self.config.offline_cache or self.config.arch != "cpu":
            return None
        opened = store.open_store()
        return None if opened.problem else opened

    def _open_cache(self) -> KernelCache | None:
        store = self._store()
        if store is None or self.config.print_ir:
            return None
        return kernel_cache.KernelCache(self.source, self.arguments, self.config, store)

    def _load_primal_from_cache(self) -> bool:
        """Whether an earlier process has left machine code made from the same."""
        if self._cache is None:
            return False
        found = self._from_disk(PRIMAL)
        if found is None:
            return False
        self._captures = self._cache.captures
        self._results[PRIMAL] = found
        return True

    def _from_disk(self, request: Request) -> Compiled | None:
        """The result of a request as an earlier process left it, if it did."""
        if self._cache is None:
            return None
        started = time.perf_counter()
        entry = self._cache.get(request.name, self._entry_kind(request), self.clones(request))
        found = None if entry is None else binary_cache.find(entry.metadata.code, self.config.opt_level, self._store())
        if entry is None or found is None:
            return None
        if request is PRIMAL:
            self._signature = entry.signature
        facts: Facts | None = None if request is PRIMAL else entry.facts
        native = self._bind(entry.metadata, *found, self.arrays if facts is None else facts.arrays)
        native.seconds = time.perf_counter() - started
        return Compiled(native, facts)

    def _entry_kind(self, request: Request) -> Any:
        """What is kept on disk of a request: machine code's metadata, and the signature or facts."""
        return metadata.PrimalEntry if request is PRIMAL else memory_facts.RequestEntry

    # ---- looking inside

    def memory(self, buffer: Buffer) -> Memory:
        """The memory that launches bind to a field's buffer."""
        return self._memory_for(buffer)

    def for_wasm(self, request: Request) -> tuple[ExecutableMetadata, str, frozenset[Buffer]]:
        """The metadata and the LLVM text of a request for WebAssembly: one thread, vectors of 128 bits. With them, the
        buffers that a launch overwrites, all of each, before it reads anything of them.
        """
        config = self.config._replace(num_threads=1, kernel_profiler=False)
        machine = pipeline.wasm_machine(config)
        started = self.function(request)
        fn, _ = pipeline.run_pipeline(started, pipeline.steps_for(request), config, machine=machine)
        unlowered, _ = pipeline.run_pipeline(started, pipeline.steps_for(request, lower=False), config, machine=machine)
        metadata, text = backend.make_executable(fn, config, wasm=True)
        overwritten = definite_stores.overwritten_buffers(unlowered)
        return metadata, text, overwritten

    def for_webgpu(self, request: Request) -> Any:
        """A request as WGSL for any device that has WebGPU, as a `ShaderOfKernel` of `compiler/launch/gpu_launch.py`.
        Raises `KernelTargetError`.
        """
        return gpu_launch.shader_of(self.gpu_function(request))

    def gpu_function(self, request: Request) -> Function:
        """A request lowered for WGSL."""
        return pipeline.run_pipeline(self.function(request), pipeline.gpu_steps_for(request), self.config)[0]

    def snapshots(self, *, gradient: bool = False) -> list[Snapshot]:
        """Every step of the pipeline, run again with an observer."""
        seen: list[Snapshot] = []
        self._run(GRADIENT if gradient else PRIMAL, seen.append)
        return seen
