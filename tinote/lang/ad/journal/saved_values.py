"""The launches of a journal, and the memory contents that gradients in the reverse sweep will read.

A gradient launch executes some of the kernel's loads again, so it must find the elements as they were. The elements
that the launches so far will need are known, and before some of these are overwritten, their values are saved
(`lang/ad/memory/undo.py`); where no needed element is overwritten, nothing is saved. External arrays may be overwritten
at any time, so each launch gets a copy of the elements that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.launch.access_summary import TaskSummary
from tinote.compiler.launch.native import BoundArray
from tinote.compiler.requests import Request
from tinote.config import Config
from tinote.errors import DifferentiationError, KernelMemoryError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.captured_steps import CapturedStep, StepRegions, StepUnderTape
from tinote.lang.ad.journal.number_flow import NumberFlow
from tinote.lang.ad.journal.temporary_adjoints import tangent_of
from tinote.lang.ad.memory.undo import Overwritten, UndoLog
from tinote.lang.data.layout import array_over
from tinote.lang.index_regions import IndexRegion, whole_region
from tinote.lang.kernels.access_region import NOTHING, AccessRegions, BufferRegions
from tinote.lang.kernels.arguments import Arguments, ExternalArray, RecordingNeeds, observed_arguments, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.kernels.unwritable import launch_on_copies
from tinote.lang.session.state import Recorder, is_viewed, memory_of, note_launch_outside, session
from tinote.program.recorded import RecordedOperation
from tinote.runtime.memory import ExternalMemory, Memory
from tinote.runtime.pool import pool
from tinote.runtime.seam import active_listener
from tinote.source import Span

#: This part of the session's memory limit may hold values that a custom VJP might read, and the same part for those
#: that gradients could recompute. A VJP that recomputes them needs none; another one gets an error where a value was
#: not saved.
_OPTIONAL_SHARE = 16

#: Bytes of values from which on recomputing them takes less time than reading them from memory.
MOST_SHARED = 8 << 20

_NO_TANGENTS: Mapping[Buffer, Buffer] = {}

#: of launches without external arrays
_NO_COPIES: Mapping[Buffer, Memory] = {}


class SavingLaunch:
    """One launch of a kernel that saves the old values of atomic operations (`autodiff/atomic_old_values.py`); to be
    launched with the kernel's own `values`.

    `mode`: one that `records`; `nbytes`: the size of the saved values, which `take` allocates.
    """

    #: converts the values of a launch to those with temporary shadows
    bind: Callable[[Sequence[Any]], Sequence[Any]] | None = None

    def __init__(self, specialisation: Specialisation, values: Sequence[Any], mode: Request) -> None:
        self.mode = mode
        self._native, facts = specialisation.compiled(mode)
        assert facts is not None and facts.saved is not None
        saved = facts.saved
        self._arrays = len(specialisation.arrays)
        shapes = saved.shapes(values[self._arrays :], _Present(specialisation.arrays, values))
        sizes = [max(math.prod(s), 1) * b.dtype.size for s, b in zip(shapes, saved.buffers, strict=True)]
        self.nbytes = sum(sizes)
        self._sizes = list(zip(shapes, sizes, saved.filled, strict=True))
        #: the saved arrays, in the order in which a gradient gets them after the kernel's arrays
        self.saved: list[BoundArray] = []

    def take(self) -> None:
        """Allocate the memory."""
        for shape, nbytes, is_filled in self._sizes:
            memory = session.new_memory(nbytes, clear=not is_filled)
            self.saved.append(BoundArray(memory.begin, 0, 0, 0, shape, nbytes, True, None, memory))

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Run with the values of a launch that saves nothing."""
        whole = (*values[: self._arrays], *self.saved, *values[self._arrays :])
        return self._native.launch(whole if self.bind is None else self.bind(whole))


class _Present:
    """Reads of memory before a launch, for the driver."""

    def __init__(self, arrays: Sequence[Buffer], values: Sequence[Any]) -> None:
        self._shapes = {buffer: bound.shape for buffer, bound in zip(arrays, values, strict=False)}

    def load(self, buffer: Buffer, index: tuple[int, ...]) -> Any:
        found = array_over(buffer, memory_of(buffer))
        if (listener := active_listener()) is not None:
            listener.taking(f"memory whose size is in '{buffer.name}'")
        return found[index].item()

    def store(self, buffer: Buffer, index: tuple[int, ...], value: Any) -> None:
        raise NotImplementedError(f"{buffer!r} is only read")

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        return self._shapes[buffer]


class RecordedLaunch(RecordedOperation):
    """One launch: its kernel and values, and the elements that its gradient will read. `before` and `after`: the length
    of the log of overwritten values. `copies`: the contents of external arrays for the gradient; `input_copies`: those
    for the launch itself, if it is to be run again. `old_values`: those that the launch returns and saves. `flow`: the
    traced numbers that went in and came out, if any.
    """

    __slots__ = (
        "after", "arguments", "before", "copies", "flow", "input_copies", "instance", "needs", "old_values", "regions",
        "values",
    )  # fmt: skip

    def __init__(
        self,
        instance: Instance,
        values: tuple[Any, ...],
        arguments: Arguments,
        needs: RecordingNeeds,
        regions: AccessRegions,
        before: int,
        after: int,
        old_values: SavingLaunch | None = None,
        flow: NumberFlow | None = None,
    ) -> None:
        self.instance = instance
        self.values = values
        self.arguments = arguments
        self.needs = needs
        self.regions = regions
        self.before = before
        self.after = after
        self.copies: Mapping[Buffer, Memory] = _NO_COPIES
        self.input_copies: Mapping[Buffer, Memory] = _NO_COPIES
        self.old_values = old_values
        self.flow = flow

    def chosen(self, *, needs_temporaries: bool) -> RecordedLaunch:
        """The same launch with its selected gradient: with temporary adjoints or, if it can, without."""
        arguments, plain = self.arguments, self.arguments.plain
        assert plain is not None
        if not (needs_temporaries or arguments.external_arrays or self.old_values is not None):
            if not plain.specialisation.gradient_facts(plain.request).old_values:
                arguments = plain
        regions = arguments.own_regions(self.values)
        made = RecordedLaunch(
            self.instance,
            self.values,
            arguments,
            arguments.needs,
            regions,
            self.before,
            self.after,
            self.old_values,
            self.flow,
        )
        made.copies, made.input_copies = self.copies, self.input_copies
        return made

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.instance.kernel_name

    @property
    def span(self) -> Span:
        """Where the kernel is defined."""
        return self.instance.specialisation.source.span

    @property
    def gradient_tasks(self) -> tuple[TaskSummary, ...]:
        """The reads and writes of each task of its gradient."""
        return self.arguments.gradient_tasks

    @property
    def live_in(self) -> BufferRegions:
        """The elements that its gradient reads after it."""
        return self.regions.live_in

    @property
    def sources(self) -> list[int]:
        return [] if self.flow is None else [number for _, number, _ in self.flow.inputs]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The positions in `values` of traced numbers, each with the number."""
        if self.flow is None:
            return []
        first = len(self.arguments.arrays)
        floats = [first + k for k, t in enumerate(self.instance.primal.parameters) if t.kind == "f"]
        return [(floats[k], number) for k, number, _ in self.flow.inputs]

    @property
    def results(self) -> list[int]:
        return [] if self.flow is None else self.flow.outputs

    @property
    def loaded(self) -> frozenset[Buffer]:
        return self.arguments.accesses.loaded

    @property
    def written(self) -> frozenset[Buffer]:
        return self.arguments.accesses.written

    @property
    def gradients(self) -> frozenset[Buffer]:
        return self.arguments.gradients

    def through(self, active: Collection[Buffer], reached: set[Buffer]) -> Collection[Buffer]:
        return self.loaded & self.arguments.temporaries

    def gradient_arguments(self) -> tuple[Any, ...]:
        """The arguments of the gradient: it reads the copies of external arrays, and may write to them. The
        arrays are followed by the old values that it reads and by memory for copies that it makes.
        """
        if not (self.copies or self.old_values or self.needs.copies):
            return self.values
        facts = self.arguments.gradient_facts
        further = [] if self.old_values is None else [*self.old_values.saved]
        bound = dict(self.arguments.arrays)
        further += [_memory_like(bound[buffer]) for buffer in facts.copied]
        return self._values(self.copies, facts.live_in_before, further)

    def replay_arguments(self, numbers: Mapping[int, float] | None = None) -> tuple[Any, ...]:
        """The arguments to run the launch itself again: copies of external arrays, and other values for traced
        `numbers`.
        """
        values = self._values(self.input_copies, self.written, [])
        if numbers is None:
            return values
        given = {at: numbers[number] for at, number in self.places if number in numbers}
        return tuple([given.get(k, value) for k, value in enumerate(values)]) if given else values

    def need(self, saved: SavedValues) -> None:
        saved.log.need(self.live_in)

    def emit(self, recorder: Recorder, known: dict[int, Any]) -> None:
        instance, given = self.instance, self.replay_arguments(known)
        if session.watchers and session.watchers != [recorder]:
            note_launch_outside(instance, given)
        try:
            recorder.under_way = instance, given
            native = recorder.launching(instance, given) or instance.primal
            results = launch_on_copies(native.launch, given) if instance.writes_copies else native.launch(given)
            recorder.launched()
        finally:
            recorder.under_way = None
        if self.results:
            floats = [one for t, one in zip(instance.primal.results, results, strict=False) if t.kind == "f"]
            known.update(zip(self.results, floats, strict=True))

    def drop_saved(self) -> None:
        """Free the data for its gradient: there will be no further sweep."""
        self.copies, self.old_values = _NO_COPIES, None

    def _values(
        self, copies: Mapping[Buffer, Memory], changed: frozenset[Buffer], further: list[BoundArray]
    ) -> tuple[Any, ...]:
        arrays = self.arguments.arrays
        found: list[BoundArray] = []
        for buffer, bound in arrays:
            kept = copies.get(buffer)
            if kept is not None:
                fresh = kept.copy() if buffer in changed else kept
                bound = bound._replace(address=fresh.address, owner=fresh)
            found.append(bound)
        return (*found, *further, *self.values[len(arrays) :])


def _memory_like(bound: BoundArray) -> BoundArray:
    """Memory for the numbers of an array, and for their tangents if it has any."""
    values, tangents = (Memory(max(bound.nbytes, 1)) for _ in range(2))
    return BoundArray(values.address, 0, tangents.address, 0, bound.shape, bound.nbytes, True, None, (values, tangents))


class OverwriteObserver(Protocol):
    """An observer of a journal, as far as it is notified here."""

    sees_every_write: bool

    def overwriting(self, buffer: Buffer, region: IndexRegion | None, *, exempt: bool) -> None:
        """Elements of a field are about to be written."""
        ...


class SavedValues:
    """`between_launches`: whether values are saved between launches; if not, the gradients run on the fields as they
    are at the end (values that a kernel overwrites within itself are saved in any case). `again`: also save the inputs
    of the launches, so that they can be run again. `tangents`: whether the tangents of overwritten values are needed as
    well. `observers` are notified before elements are overwritten. `fit` gets the total number of bytes to be saved,
    and may raise; by default the session's limit holds.

    `count`: the number of launches and custom blocks so far. `copied`: the saved values, as the count at that time, the
    field and the number of bytes. `shared_bytes`: saved bytes that gradients could recompute. `is_complete`: whether
    all values are available to run the gradients again.
    """

    __slots__ = (
        "_array_copies",
        "_fit",
        "_follows",
        "_has_copies",
        "_known",
        "_looks_at_all",
        "_observers",
        "_other_bytes",
        "_overwritten",
        "_releases",
        "_tangents",
        "_traces",
        "again",
        "between_launches",
        "copied",
        "count",
        "duals_apart",
        "is_complete",
        "keeps_arrays",
        "log",
        "shared_bytes",
        "temporary_tangents",
    )  # fmt: skip

    def __init__(
        self,
        observers: tuple[OverwriteObserver, ...],
        between_launches: bool,
        again: bool,
        fit: Callable[[int], None] | None,
    ) -> None:
        self.between_launches = between_launches
        self.again = again
        self.keeps_arrays = again
        self._array_copies: dict[tuple[int, int], Memory] | None = None  # once there are some
        self.log = UndoLog()
        self.copied: list[tuple[int, Buffer, int]] = []
        self.is_complete = True
        self.count = self.shared_bytes = 0
        self._observers = observers
        self._tangents = False
        self.temporary_tangents = _NO_TANGENTS
        self.duals_apart = _NO_TANGENTS
        self._fit = fit
        # Whether every write is analysed, not only overwrites of needed values.
        looks_at_all = again or (len(observers) > 0 and any(one.sees_every_write for one in observers))
        self._looks_at_all = looks_at_all
        # Whether the overwritten elements of an earlier recording may be used: where there are none, and where there
        # are some; observers are then not notified of these, and they hold for values only.
        self._follows = between_launches and not looks_at_all
        self._traces = not observers
        self._other_bytes = 0  # of external arrays, and of old values
        self._has_copies = False  # whether there are any of external arrays
        self._releases: tuple[Callable[[], None], ...] = ()  # of data that custom blocks and captured steps hold
        #: the needed elements that the launch under way overwrites, if these were not known, and whether they were
        self._overwritten: Overwritten
        self._known: bool

    def carry_tangents(self) -> dict[Buffer, Buffer]:
        """The tangents of overwritten values are needed as well. Gives the temporary ones, of memory without a dual."""
        self._tangents, self._traces = True, False
        self.temporary_tangents = found = {}
        return found

    @property
    def nbytes(self) -> int:
        """The number of saved bytes."""
        return self.log.nbytes + self._other_bytes

    # ---- while the journal is written

    def launching(
        self,
        instance: Instance,
        values: tuple[Any, ...],
        arguments: Arguments,
        saves_by: Request,
        flow: NumberFlow | None,
    ) -> RecordedLaunch:
        """A kernel is about to be launched. `saves_by`: its mode if it has to save old values."""
        log, needs, saving = self.log, arguments.needs, None
        if needs.old_values or (needs.in_order and runs_at_once(instance.specialisation.config)):
            saving = self._saving(instance, values, arguments, saves_by)
            if saving is None:
                return self.launching(instance, values, arguments.unshared, saves_by.unshared, flow)
        # Where nothing is needed, writes do not matter.
        watches = (self.between_launches and needs.reads) or self._looks_at_all or needs.reads_before or log.is_watching
        regions = (needs.regions or arguments.regions(values)) if watches else NOTHING
        before = after = len(log.entries)
        self._known = regions is NOTHING
        if not self._known:
            overwritten = log.known(regions, self._traces) if self._follows else None
            if overwritten is None:
                inputs = observed_arguments(instance, values).effects(values).live_in if self.again else ()
                self._keep_unknown(regions, inputs)
            else:
                self._known = True
                if overwritten:
                    self._keep_known(regions, overwritten)
            after = len(log.entries)
        launch = RecordedLaunch(instance, values, arguments, needs, regions, before, after, saving, flow)
        if needs.external_arrays:
            self._keep_arrays(launch)
        if needs.shadows_as_values:
            self._keep_shadows(launch, arguments.gradient_facts.live_in_before)
        return launch

    def _keep_shadows(self, launch: RecordedLaunch, needed: Collection[Buffer]) -> None:
        """Save gradients and duals that are values to a launch: in the reverse sweep their memory holds those of
        another block.
        """
        copies = dict(launch.copies)
        for buffer in launch.arguments.shadows_as_values:
            if buffer in needed and buffer not in copies:
                tangent = tangent_of(buffer, self.temporary_tangents) if self._tangents else None
                for one in (buffer, tangent):
                    if one is not None:
                        memory = memory_of(self.duals_apart.get(one, one))
                        self._make_room(buffer, memory.nbytes)
                        self._other_bytes += memory.nbytes
                        self._has_copies = True
                        copies[one] = memory.copy()
        launch.copies = copies

    def _keep_known(self, regions: AccessRegions, overwritten: Overwritten) -> None:
        """Save the needed elements that a launch is known to overwrite."""
        try:
            for k, parts in overwritten:
                buffer = regions.written[k][0]
                self.copied.append((self.count, buffer, self.log.keep(buffer, parts, self._make_room)))
        except BaseException:
            self.log.not_kept()
            raise

    def _keep_unknown(self, regions: AccessRegions, inputs: BufferRegions = ()) -> None:
        """Find the needed elements that a launch overwrites, and save them; `inputs` are needed as well."""
        log, overwritten = self.log, list[tuple[int, tuple[IndexRegion, ...]]]()
        log.launching()
        log.need(regions.live_in_before)
        log.need(inputs)
        for k, (buffer, region) in enumerate(regions.written):
            before = len(log.entries)
            self._overwriting(buffer, region, exempt=False, by_launch=self._traces)
            if len(log.entries) > before:
                overwritten.append((k, tuple([entry.region for entry in log.entries[before:]])))
        self._overwritten = tuple(overwritten)

    def _keep_arrays(self, launch: RecordedLaunch) -> None:
        """Save the elements of external arrays before a launch that the gradient will need."""
        launch.copies, launch.input_copies = copies, inputs = {}, {}
        for buffer in launch.arguments.external_arrays:
            if buffer in launch.arguments.gradient_facts.live_in_before:
                self.keep_external(copies, buffer)
            if self.keeps_arrays:
                self.keep_external(inputs, buffer)

    def launched(self, launch: RecordedLaunch) -> None:
        """That launch has completed."""
        self.count += 1
        if self.between_launches:
            needs = launch.needs
            if needs.external_arrays:
                self._keep_arrays_left(launch)
            if needs.shadows_as_values:
                self._keep_shadows(launch, launch.arguments.gradient_facts.live_in)
            if not self._known:
                self.log.need(launch.regions.live_in)
                self.log.completed(launch.regions, self._overwritten)

    def _keep_arrays_left(self, launch: RecordedLaunch) -> None:
        """Save the elements of external arrays after a launch that the gradient will need."""
        copies = dict(launch.copies)
        for buffer in launch.arguments.external_arrays:
            if buffer in launch.arguments.gradient_facts.live_in and buffer not in copies:
                self.keep_external(copies, buffer)
        launch.copies = copies

    def running(self, step: StepUnderTape, touched: StepRegions) -> CapturedStep:
        """A captured step is about to run.

        Saves the values that it overwrites, and allocates memory for those that it saves itself.
        """
        log, regions = self.log, touched.regions
        before = len(log.entries)
        self._known = False
        if regions is None:  # the needed elements depend on its conditions
            log.need_all(())
            for buffer, region in touched.written:
                self.overwriting(buffer, region)
        else:
            overwritten = log.known(regions, self._traces) if self._follows else None
            if overwritten is None:
                self._keep_unknown(regions)
            else:
                self._known = True
                if overwritten:
                    self._keep_known(regions, overwritten)
        if step.kept_bytes:
            self._take(step.kept_bytes, "values that '…' overwrites", step.name)
        found = CapturedStep(step, touched, before, len(log.entries))
        self._other_bytes += step.kept_bytes
        self.shared_bytes += step.shared_bytes
        return found

    def ran(self, event: CapturedStep) -> None:
        """That step has run."""
        self.count += 1
        self._releases += (event.release,)
        regions = event.regions.regions
        if regions is None:
            self.log.need(event.live_in)
        elif not self._known:
            self.log.need(regions.live_in)
            self.log.completed(regions, self._overwritten)

    def distrust_views(self, launch: RecordedLaunch) -> None:
        """Save the needed elements of fields that other code may write to at any time."""
        needed = launch.regions.live_in if self.between_launches else ()
        self.distrust([buffer for buffer, _ in (*needed, *launch.regions.live_in_before)])
        if self.again:
            self.distrust(_inputs(launch.arguments))

    def completed(self, release: Callable[[], None] | None) -> int:
        """A block with a custom VJP has completed. `release` frees its memory. Returns the length of the log."""
        self.count += 1
        if release is not None:
            self._releases += (release,)
        return len(self.log.entries)

    def need_all(self, without: BufferRegions, *, perhaps: bool) -> list[Buffer]:
        """The present values of all fields are needed, except what is in `without`, by a gradient that may read any:
        `perhaps`, as in `UndoLog.need_all`. Returns the fields.
        """
        whole = {buffer for buffer, region in without if region == whole_region(buffer)}
        kept = list(living_buffers() - whole)
        duals = [tangent_of(b, self.temporary_tangents) for b in kept] if self._tangents else []
        self.log.need_all([*kept, *[b for b in duals if b is not None]], without=without, perhaps=perhaps)
        return kept

    def overwriting(self, buffer: Buffer, region: IndexRegion | None = None, *, exempt: bool = False) -> None:
        """Elements of a field, by default all, are about to be written; `exempt`: in another context, or within a
        custom block.
        """
        self._overwriting(buffer, region, exempt=exempt, by_launch=False)

    def _overwriting(self, buffer: Buffer, region: IndexRegion | None, *, exempt: bool, by_launch: bool) -> None:
        for one in self._observers:
            one.overwriting(buffer, region, exempt=exempt)
        for each in (buffer, tangent_of(buffer, self.temporary_tangents)) if self._tangents else (buffer,):
            if each is not None and self.log.keeps(each):
                nbytes = self.log.overwrite(each, region, self._make_room, self._most_optional, by_launch=by_launch)
                if nbytes:
                    self.copied.append((self.count, buffer, nbytes))

    def _most_optional(self) -> int:
        """The limit in bytes for values that custom VJPs might read, or that gradients could recompute."""
        limit = session.config.memory_limit
        return limit // _OPTIONAL_SHARE if self.nbytes < limit // 2 else 0

    def _make_room(self, buffer: Buffer, nbytes: int) -> None:
        """Reserve `nbytes` more. Raises `KernelMemoryError`."""
        self._take(nbytes, "overwritten values of '…'", buffer.name)

    def _take(self, nbytes: int, what: str, name: str) -> None:
        held = self.log.nbytes + self._other_bytes + nbytes
        if self._fit is not None:
            self._fit(held)
            return
        limit = session.config.memory_limit
        if pool.nbytes > limit - held:
            pool.trim(limit - held)  # idle memory counts against the limit, too
        if held > limit:
            raise KernelMemoryError(
                f"the tape would hold more than {limit:,} bytes of {what.replace('…', name)}",
                hint="keep each step in its own slice of a field, record fewer steps, or raise "
                "ti.init(memory_limit=...)",
            )

    def _saving(
        self, instance: Instance, values: tuple[Any, ...], arguments: Arguments, saves_by: Request
    ) -> SavingLaunch | None:
        """A launch that saves the old values for its gradient, and keeps its order. None where the gradient could
        recompute them, and they are too many.
        """
        if arguments.request.temporaries:
            saves_by = saves_by.with_temporaries(arguments.request.temporaries)
        saving = SavingLaunch(instance.specialisation, values, saves_by)
        if saves_by.shares:
            if not self.may_share(saving.nbytes):
                return None
            self.shared_bytes += saving.nbytes
        if saving.nbytes:
            buffer, _ = arguments.gradient_facts.old_values[0]
            self._make_room(buffer, saving.nbytes)
        saving.take()
        self._other_bytes += saving.nbytes
        return saving

    def may_share(self, nbytes: int) -> bool:
        """Whether `nbytes` more may be saved of values that gradients could recompute."""
        return not nbytes or self.shared_bytes + nbytes <= min(MOST_SHARED, self._most_optional())

    def keep_external(self, copies: dict[Buffer, Memory], buffer: ExternalArray) -> None:
        """Save the present contents of an external array: once, while they are unchanged."""
        place = buffer.first, buffer.last
        if self._array_copies is None:
            self._array_copies = {}
        memory, known = buffer.bound.memory, self._array_copies.get(place)
        if known is not None and _holds_the_same(known, memory):
            copies[buffer] = known
            return
        nbytes = buffer.bound.nbytes
        self._has_copies = True
        self._make_room(buffer, nbytes)
        copies[buffer] = self._array_copies[place] = memory.copy()
        self._other_bytes += nbytes

    def distrust(self, buffers: Iterable[Buffer]) -> None:
        """Save the needed elements of those that other code may write to at any time."""
        for buffer in buffers:
            if is_viewed(buffer):
                self.overwriting(buffer)

    # ---- at its end

    def seal(self) -> None:
        """Save all needed values that are still available: memory may be overwritten from now on."""
        self.log.seal(self._make_room, self._most_optional)

    def let_go(self) -> None:
        """Free the saved values: there will be no further reverse sweep."""
        log = self.log
        if self._has_copies or self._releases or log.entries:
            self.is_complete = False
        log.forget()
        for release in self._releases:
            release()


def runs_at_once(config: Config) -> bool:
    """Whether iterations of a parallel loop may run at the same time."""
    return config.arch == "gpu" or (config.arch == "cpu" and config.num_threads > 1)


def refuse_old_values(arguments: Arguments, why: str, loop: str) -> None:
    """Raise `DifferentiationError` for a launch whose gradient needs old values that it returns: `why`, and the `loop`
    that can be made serial.
    """
    for buffer, span in arguments.gradient_facts.old_values:
        raise DifferentiationError(
            f"the gradient needs the old values of '{buffer.name}' that are returned here, which {why}",
            span,
            hint=f"write ti.loop_config(serialize=True) before {loop}",
        )


def living_buffers() -> set[Buffer]:
    """The memory of all living fields, gradients and duals left out."""
    return {f.buffer for f in list(session.fields) if f.buffer.primal is None}


def _holds_the_same(one: Memory, other: ExternalMemory) -> bool:
    unit = np.uint8 if other.nbytes % 8 else np.uint64
    return np.array_equal(np.frombuffer(one.view(), unit), np.frombuffer(other.view(), unit))


def _inputs(arguments: Arguments) -> list[Buffer]:
    """The fields and ndarrays that a launch reads, also to add to them."""
    return own(arguments.accesses.loaded | arguments.accesses.accumulated)
