"""Saved values of a journal: the memory contents that gradients in the reverse sweep will read.

A gradient launch executes some of the kernel's loads again, so it must find the elements as they were. The elements
that the launches so far will need are known, and before some of these are overwritten, their values are saved
(`lang/ad/memory/undo.py`); where no needed element is overwritten, nothing is saved. External arrays may be overwritten
at any time, so each launch gets a copy of the elements that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from tinote.compiler.requests import Request
from tinote.config import Config
from tinote.errors import DifferentiationError, KernelMemoryError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.captured_steps import CapturedStep, StepRegions, StepUnderTape
from tinote.lang.ad.journal.events import Custom, Record, RecordedLaunch
from tinote.lang.ad.journal.number_flow import NumberFlow
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.saving_launch import SavingLaunch
from tinote.lang.ad.journal.temporary_adjoints import tangent_of
from tinote.lang.ad.memory.access_trace import Overwritten
from tinote.lang.ad.memory.undo import UndoLog
from tinote.lang.index_regions import IndexRegion, whole_region
from tinote.lang.kernels.access_region import NOTHING, AccessRegions, BufferRegions
from tinote.lang.kernels.arguments import Arguments, ExternalArray, observed_arguments, own
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import is_viewed, memory_of, session
from tinote.runtime.memory import ExternalMemory, Memory
from tinote.runtime.pool import pool

#: This part of the session's memory limit may hold values that a custom VJP might read, and the same part for those
#: that gradients could recompute. A VJP that recomputes them needs none; another one gets an error where a value was
#: not saved.
_OPTIONAL_SHARE = 16

#: Bytes of values from which on recomputing them takes less time than reading them from memory.
MOST_SHARED = 8 << 20

_NO_TANGENTS: Mapping[Buffer, Buffer] = {}


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
        observers: tuple[Observer, ...],
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
                self._keep_external(copies, buffer)
            if self.keeps_arrays:
                self._keep_external(inputs, buffer)

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
                self._keep_external(copies, buffer)
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

    def custom(self, custom: Custom) -> list[Buffer]:
        """A block with a custom VJP has completed: its gradient will find all fields as they are now. Returns those
        that it may read.
        """
        self.count += 1
        custom.after = len(self.log.entries)
        if custom.release is not None:
            self._releases += (custom.release,)
        if not self.between_launches:
            return []
        kept = self._need_now(custom)
        for buffer in custom.arrays:
            self._keep_external(custom.copies, buffer)
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

    def _need_now(self, event: Record) -> list[Buffer]:
        """Note that the gradient of a launch needs the present values; returns the fields."""
        if isinstance(event, Custom) and not event.needs_fields:
            self.log.need_all(())
            return []
        if isinstance(event, Custom):
            whole = {buffer for buffer, region in event.scratch if region == whole_region(buffer)}
            kept = list(living_buffers() - whole)
            duals = [tangent_of(b, self.temporary_tangents) for b in kept] if self._tangents else []
            needed = [*kept, *[b for b in duals if b is not None]]
            self.log.need_all(needed, without=event.scratch, perhaps=event.notices_stale)
            return kept
        self.log.need(event.live_in)
        return [buffer for buffer, _ in event.live_in]

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

    def _keep_external(self, copies: dict[Buffer, Memory], buffer: ExternalArray) -> None:
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

    def seal(self, events: Iterable[Record]) -> None:
        """Save all needed values that are still available: memory may be overwritten from now on."""
        if not self.between_launches:  # the gradients have run on the fields as they are now
            for event in events:
                self._need_now(event)
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
