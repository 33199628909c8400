"""The driver: from a kernel's source and the kinds of its arguments to something that can be launched.

A `Specialisation` is one kernel for one template signature. Its primal, its gradient and its tangent are compiled
apart, each when it is first needed. Machine code holds no address and no field's identity, so `Specialisation`s whose
final IR is the same share one binary; and it outlives the process: what an earlier one has compiled from the same
source, constants and types is found on disk (`recall`). Then neither the front end nor the passes are loaded, which is
why this file reaches them, and code generation, through `importlib`.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tinote.compiler.launch.native import BoundArray, Code, Native, Origin, Profiled, binary_cache
from tinote.compiler.launch.summary import Touched, touched_by
from tinote.compiler.protocol import (
    ArgumentSpec,
    ArrayArgument,
    Capture,
    FunctionSource,
    Lowered,
    Warned,
)
from tinote.compiler.requests import GRADIENT, PRIMAL, Checks, Derivative, Request
from tinote.compiler.waiting import Enter, compilation
from tinote.config import Config
from tinote.errors import KernelTypeError
from tinote.ir.access_region import NO_REACHES, Reach, Reaches
from tinote.ir.memory import Storage
from tinote.ir.nodes import Buffer, BufferKind, Function
from tinote.ir.types import Scalar, Tensor
from tinote.runtime.memory import Memory
from tinote.source import NOWHERE, Span

if TYPE_CHECKING:
    from tinote.autodiff.gradient import Gradient
    from tinote.autodiff.old_values import OldValues
    from tinote.compiler.cache.lookup import Question, Recalled
    from tinote.compiler.launch.metadata import Recipe, Signature
    from tinote.compiler.pipeline import Context, Listener, Snapshot
    from tinote.ir.checked_accesses import Instrumented
    from tinote.runtime.jit import Binary
    from tinote.runtime.store import Store

__all__ = [
    "BoundArray",
    "Code",
    "GradientNeeds",
    "Native",
    "Origin",
    "Specialisation",
    "bad_argument",
    "binary_cache",
]


def _load(name: str) -> Any:
    """A part of the compiler that is loaded when something is compiled, not when tinote is imported."""
    return importlib.import_module(f"tinote.compiler.{name}")


class GradientNeeds(NamedTuple):
    """What a gradient launch reads of the primal's memory, and where a varying value is stored into memory without a
    gradient (`Gradient.severed`). `restored`: what must be as it was before the primal launch when the gradient begins;
    `overwritten` says why: a buffer, where it is read, and where it is overwritten afterwards. `old_values`: the
    buffers whose old values the primal launch must have saved (`Specialisation.recording`), and where it returned them.
    `copied`: the arrays of which a launch of the gradient needs memory for a copy, behind its arrays and old values.
    `reaches`: the same by elements, and what the primal writes.
    """

    loaded: frozenset[Buffer]
    severed: tuple[tuple[Buffer, Span], ...]
    restored: frozenset[Buffer] = frozenset()
    overwritten: tuple[tuple[Buffer, Span, Span], ...] = ()
    old_values: tuple[tuple[Buffer, Span], ...] = ()
    copied: tuple[Buffer, ...] = ()
    reaches: Reaches = NO_REACHES


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
        self.arrays = tuple([a.buffer for a in self.arguments if isinstance(a, ArrayArgument)])
        self.config = config
        self._memory_of = memory_of
        self._saved: dict[Buffer, Memory] = {}
        self.front_end_seconds = 0.0
        self._codes: dict[Request, Code] = {}
        self._lowered: Lowered | None = None
        self._signature: Signature | None = None
        self._gradient_facts: dict[Request, Gradient] = {}
        self._gradient_needs: dict[Request, GradientNeeds] = {}
        self._duals: set[Buffer] = set()
        self._instrumented: Instrumented | None = None
        self._old_values: OldValues | None = None
        self._question: Question | None = None
        self._recalled: Recalled | None = None
        started = time.perf_counter()
        if not self._recall():
            self._lower()
        self.seconds = time.perf_counter() - started

    # ---- what the kernel is

    @property
    def lowered(self) -> Lowered:
        """What the front end makes of the kernel. Raises `KernelTypeError` when that can no longer be told: the code
        came from disk, and what it captured has changed since.
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
        return self.lowered.captures if self._recalled is None else self._recalled.captures

    @property
    def signature(self) -> Signature:
        """What the kernel returns, draws, touches and warns of."""
        if self._signature is None:
            lowered = self.lowered
            self._signature = _load("launch.metadata").Signature(
                lowered.returns,
                lowered.returns_tuple,
                lowered.uses_random,
                touched_by(lowered.function.region),
                (*lowered.warnings, *self._broken_rules(lowered.function)),
            )
        assert self._signature is not None
        return self._signature

    def _broken_rules(self, fn: Function) -> list[Warned]:
        """Warnings about access rules that the kernel is certain to break. Only debug mode teaches the rules: a tape is
        right without them.
        """
        if not self.config.debug:
            return []
        proofs = importlib.import_module("tinote.autodiff.static_violations").proved_violations(fn)
        return [Warned(proof.message, proof.later) for proof in proofs]

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

    def touched(self) -> Touched:
        """What the primal does to memory."""
        return self.signature.touched

    def is_current(self) -> bool:
        """Whether everything that the code captured is still what it was."""
        if self._recalled is None and self._lowered is None:
            return True
        return all(capture.unchanged() for capture in self.captures)

    # ---- code

    def checked(self) -> tuple[Code, Instrumented]:
        """What checks the access rules beside what the kernel does, compiled at the first call, and
        what it leaves in its shadows. A launch's values begin with the kernel's arrays, the shadows and the ledger.
        """
        code = self.code(Request(checks=Checks.ACCESS_RULES))
        assert self._instrumented is not None
        return code, self._instrumented

    def recording(self, request: Request) -> tuple[Code, OldValues]:
        """What runs the kernel and saves the old values which its gradient needs, compiled at the first
        call, and what they are. A launch's values begin with the kernel's arrays and a buffer for each old value; so do
        those of a gradient that reads them. `request`: one that `records`.
        """
        code = self.code(request)
        assert self._old_values is not None
        return code, self._old_values

    def shapes_of_old_values(self, values: Sequence[Any], memory: Storage) -> list[tuple[int, ...]]:
        """How large the buffers for old values (`recording`) must be for a launch with these values, on memory as it is
        before.
        """
        old = self._old_values
        if old is None or old.bounds is None:
            return []
        interpreter = importlib.import_module("tinote.ir.interpret")
        return old.shapes(interpreter.interpret(old.bounds, values[len(self.arrays) :], memory))

    def compiled(self) -> Iterator[tuple[Request, Code]]:
        """What was needed so far."""
        yield from self._codes.items()

    def gradient_facts(self, request: Request = GRADIENT) -> Gradient:
        """What reverse differentiation found out about the kernel. Runs the passes, also if the machine code came from
        disk.
        """
        if request not in self._gradient_facts:
            facts = self._run(request)[1].gradient
            assert facts is not None
            self._gradient_facts[request] = facts
        return self._gradient_facts[request]

    def gradient_needs(self, request: Request = GRADIENT) -> GradientNeeds:
        """What the gradient in `request` asks of memory; compiles it if need be."""
        self.code(request)
        if request not in self._gradient_needs:
            self._gradient_needs[request] = self._needs_of(request)
        return self._gradient_needs[request]

    def refuse_broken_chain(self, buffer: Buffer, place: Span, request: Request) -> list[tuple[Buffer, Span]]:
        """What becomes of a varying value in `buffer`, which has no gradient and was stored to at `place`: the stores
        that carry it on. Raises `DifferentiationError` when the kernel differentiates with respect to it in `request`.
        """
        gradient = importlib.import_module("tinote.autodiff.gradient")
        arguments = request.arguments
        writes = gradient.refuse_broken_chain(buffer, place, self.gradient_facts(request).primal, arguments=arguments)
        return [(write.buffer, write.loc) for write in writes]

    def refuse_gradient_access(self, request: Request) -> None:
        """Raise `DifferentiationError` when the kernel works on gradients other than as constants."""
        importlib.import_module("tinote.autodiff.gradient").refuse_gradient_access(self.gradient_facts(request).primal)

    def code(self, request: Request) -> Code:
        """What runs the kernel in `request`, compiled at the first call. Raises `DifferentiationError`."""
        if request.has_tangents:
            self._look_at_duals()
        found: Code | None = self._codes.get(request)
        if found is None:
            started = time.perf_counter()
            recalled = self._recalled_native(request) if _is_remembered(request) else None
            found = recalled or self._compile(request)
            found.seconds = time.perf_counter() - started  # of this request: the front end's are apart
            self._codes[request] = found
        return found

    def _look_at_duals(self) -> None:
        """A field may have got a dual since: then code that computes tangents, and what an earlier process left of it,
        is out of date.
        """
        fields = [b for b in (*self.touched().loaded, *self.touched().written) if b.primal is None]
        pairs = [(b.tangent, b.adjoint and b.adjoint.tangent) for b in fields]
        duals = {dual for pair in pairs for dual in pair if dual is not None}
        if self._recalled is not None and not duals.issubset(self._recalled.buffers):
            self._recalled = None
        if duals != self._duals:
            self._duals = duals
            for request in [m for m in self._codes if m.has_tangents]:
                del self._codes[request]
                self._gradient_facts.pop(request, None)
                self._gradient_needs.pop(request, None)

    def _lower(self) -> None:
        started = time.perf_counter()
        with compilation(self.source.name) as enter:
            enter("front end")
            lowered: Lowered = _load("frontend.lower").lower(self.source, self.arguments, self.config)
        self._lowered = lowered
        self.front_end_seconds = time.perf_counter() - started
        if self.config.print_ir:
            _load("inspect.printing").print_first(lowered.function, self.front_end_seconds)

    def _run(
        self, request: Request, listen: Listener | None = None, enter: Enter | None = None
    ) -> tuple[Function, Context]:
        pipeline = _load("pipeline")
        steps_for = pipeline.python_steps_for if self.config.arch == "python" else pipeline.steps_for
        return pipeline.run_pipeline(self.lowered.function, steps_for(request), self.config, listen, enter)

    def _compile(self, request: Request) -> Code:
        name = self.source.name
        with compilation(name if request is PRIMAL else f"{name}, {request.name}") as enter:
            return self._compile_telling(request, enter)

    def _compile_telling(self, request: Request, enter: Enter) -> Code:
        listen = _load("inspect.printing").printer(self.source.name, request) if self.config.print_ir else None
        fn, facts = self._run(request, listen, enter)
        arrays = self.arrays
        if facts.gradient is not None:
            self._gradient_facts[request] = facts.gradient
            saved = [value.buffer for value in facts.gradient.old_values.values]
            arrays = (*arrays, *saved, *[copy for copy, _ in facts.gradient.copies])
        if request.records:
            self._old_values = facts.old_values
            arrays = (*arrays, *[value.buffer for value in facts.old_values.values])
        if facts.instrumented is not None:
            self._instrumented = facts.instrumented
            arrays = (*arrays, *[shadow for _, shadow in facts.instrumented.shadows], facts.instrumented.ledger)
        if self.config.arch == "python":
            code = _load("launch.python_launch").PythonCode
            return code(fn, self.config, self.source.globals, self._memory_for, arrays)
        enter("LLVM IR")
        recipe, text = _load("launch.backend").make_recipe(fn, self.config)
        binary, origin = binary_cache.get(recipe.code, text, self.config.opt_level, self._store(), enter)
        native = self._bind(recipe, binary, origin, arrays)
        if _is_remembered(request):
            self._remember(request, recipe)
        return native

    def _bind(self, recipe: Recipe, binary: Binary, origin: Origin, arrays: Sequence[Buffer]) -> Native:
        kind = Profiled if recipe.clocks else Native
        return kind(recipe, binary, origin, self.config, self._memory_for, arrays)

    def _memory_for(self, buffer: Buffer) -> Memory:
        """A field's own memory; for a copy that launches make, memory of this specialisation's."""
        if buffer.kind is not BufferKind.SAVED:
            return self._memory_of(buffer)
        found = self._saved.get(buffer)
        if found is None:
            extents = [n or 0 for n in (*buffer.shape, *buffer.element)]
            found = self._saved[buffer] = Memory(max(math.prod(extents), 1) * buffer.dtype.size)
        return found

    # ---- from one process to the next

    def _store(self) -> Store | None:
        if not self.config.offline_cache or self.config.arch == "python":
            return None
        store = importlib.import_module("tinote.runtime.store").open_store()
        return None if store.problem else store

    def _recall(self) -> bool:
        """Take the machine code that an earlier process made from the same, if there is some."""
        store = self._store()
        if store is None or self.config.print_ir:
            return False
        recall = _load("cache.lookup")
        machine = importlib.import_module("tinote.runtime.jit").machine_name()
        self._question = recall.question_of(self.source, self.arguments, self.config, machine)
        for recalled in recall.recall(self._question, store):
            self._recalled = recalled
            native = self._recalled_native(PRIMAL)
            if native is not None:
                self._codes[PRIMAL] = native
                return True
        self._recalled = None
        return False

    def _recalled_native(self, request: Request) -> Native | None:
        """The machine code for a request as an earlier process left it, if it did."""
        store = self._store()
        if store is None or self._recalled is None or self.config.print_ir:
            return None
        started = time.perf_counter()
        answer = _load("launch.metadata").read_answer(store, self._recalled, request)
        if answer is None:
            return None
        recipe, signature, needs = answer
        found = binary_cache.find(recipe.code, self.config.opt_level, store)
        if found is None:
            return None
        if signature is not None:
            self._signature = signature
        if needs is not None:
            self._gradient_needs[request] = GradientNeeds(*needs)
        native = self._bind(recipe, *found, self.arrays)
        native.seconds = time.perf_counter() - started
        return native

    def _remember(self, request: Request, recipe: Recipe) -> None:
        """Leave the recipe to later processes."""
        store = self._store()
        if store is None or self._question is None:
            return
        if self._recalled is None and self._lowered is not None and self._lowered.reproducible:
            self._recalled = _load("cache.lookup").remember(self._question, self._lowered.captures, store)
        if self._recalled is not None:
            signature = self.signature if request is PRIMAL else None
            needs = self._needs_of(request) if request.reverses else None
            _load("launch.metadata").write_answer(store, self._recalled, request, recipe, signature, needs)

    def _needs_of(self, request: Request) -> GradientNeeds:
        facts = self.gradient_facts(request)
        loaded, restored = frozenset([op.buffer for op in facts.needed_loads]), facts.restored
        reaches: Reaches = importlib.import_module("tinote.ir.reaching").reaches_of(
            facts.primal, facts.needed_loads, facts.restored
        )
        if request.derivative is Derivative.FORWARD_OVER_REVERSE:  # tangents come along with their values
            loaded, restored = _with_tangents(loaded), _with_tangents(restored)
            reaches = reaches._replace(
                needed=_reaches_with_tangents(reaches.needed), restored=_reaches_with_tangents(reaches.restored)
            )
        severed = tuple([(store.buffer, store.loc) for store in facts.severed])
        overwritten = tuple([(h.load.buffer, h.load.loc, h.write.loc) for h in facts.hazards])
        old_values = tuple([(value.op.buffer, value.op.loc) for value in facts.old_values.values])
        copied = tuple([array for _, array in facts.copies])
        return GradientNeeds(loaded, severed, restored, overwritten, old_values, copied, reaches)

    # ---- looking inside

    def memory(self, buffer: Buffer) -> Memory:
        """The memory that launches bind to a field's buffer."""
        return self._memory_for(buffer)

    def version(self) -> Any:
        """What the kernel is, as a `Version`, to be taken through the compiler once more. Raises what its front end
        raises.
        """
        return _load("inspect.versions").version_of(self)

    def snapshots(self, *, gradient: bool = False, listen: Listener | None = None) -> list[Snapshot]:
        """Every step of the pipeline, run again with somebody watching."""
        seen: list[Snapshot] = []
        self._run(GRADIENT if gradient else PRIMAL, listen or seen.append)
        return seen

    def gradient_costs(self, arguments: Sequence[Any], read: Any, length: Any) -> Any:
        """What the gradient saves for these scalar arguments, computes again and adds to: the `GradientCosts` of
        `compiler/inspect/gradient_cost.py`. Raises `DifferentiationError`.
        """
        pipeline = _load("pipeline")
        unlowered = pipeline.steps_for(GRADIENT, lower=False)
        fn, context = pipeline.run_pipeline(self.lowered.function, unlowered, self.config)
        final, _ = pipeline.run_pipeline(fn, pipeline.LOWERING, self.config)
        old = context.gradient.old_values.values
        return _load("inspect.gradient_cost").gradient_costs(fn, final, arguments, read, length, old)

    def python(self, *, gradient: bool = False) -> Any:
        """The plain Python that stands for the kernel where `ti.init(arch=ti.python)` is in force, as a `Stage`."""
        pipeline = _load("pipeline")
        steps = pipeline.python_steps_for(GRADIENT if gradient else PRIMAL)
        fn, _ = pipeline.run_pipeline(self.lowered.function, steps, self.config)
        return _load("inspect.stages").generated_stage(fn, self.config)

    def loops(self, *, gradient: bool = False) -> Any:
        """What LLVM makes of the loops: a `LoopVerdict` of `compiler/inspect/remarks.py` each."""
        judge = self.stages(gradient=gradient).judge
        return [] if judge is None else judge()

    def tasks(self, *, gradient: bool = False) -> Any:
        """How a launch runs: a `TaskPlan` of `compiler/inspect/schedule.py` for each task."""
        last = self.stages(gradient=gradient).last
        return () if last is None else _load("inspect.schedule").plan_tasks(last)

    def stages(self, *, gradient: bool = False) -> Any:
        """The way from the source to machine code, as text: the `Stages` of `compiler/inspect/stages.py`."""
        return _load("inspect.stages").stages_of(self, gradient)


def _is_remembered(request: Request) -> bool:
    """Whether later processes find its code on disk: not where what checks and old values mean is needed too."""
    return request.checks is Checks.NONE and not request.records


def _with_tangents(buffers: frozenset[Buffer]) -> frozenset[Buffer]:
    return buffers | {b.tangent for b in buffers if b.tangent is not None}


def _reaches_with_tangents(reaches: tuple[Reach, ...]) -> tuple[Reach, ...]:
    tangents = [reach._replace(buffer=b) for reach in reaches if (b := reach.buffer.tangent) is not None]
    return (*reaches, *tangents)


def bad_argument(kernel: str, name: str, wanted: object, value: object, span: Span = NOWHERE) -> KernelTypeError:
    """The error for an argument that does not fit its annotation, which stands at `span`."""
    return KernelTypeError(f"argument '{name}' of kernel '{kernel}' must be {wanted}, not {value!r}", span)
