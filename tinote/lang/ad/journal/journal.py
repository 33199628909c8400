"""The journal: the memory effects of a program that is differentiated, as typed events in order.

It is the recorder of its context while it is open. Memory that the reverse sweep will read is saved on the way
(`saved_values.py`); observers are notified (`observer.py`); at the end the events are checked for broken gradient paths
and swept in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from tinote.compiler.requests import GRADIENT, SHARED_GRADIENT, SHARING, Derivative, Request
from tinote.errors import DifferentiationError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.activity import Activity, Needed, needed_adjoints
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.events import Custom, Event, PlacedEvents, Read, Record, Write
from tinote.lang.ad.journal.lasting_writes import LastingWrites
from tinote.lang.ad.journal.number_flow import PUSHFORWARD, flow_of, look_for_plain
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.operation import Computation
from tinote.lang.ad.journal.saved_values import RecordedLaunch, SavedValues, refuse_old_values
from tinote.lang.ad.journal.step_capture import may_record_steps, record_step, step_for
from tinote.lang.ad.journal.sweep import Sweep
from tinote.lang.ad.journal.temporary_adjoints import (
    Launched,
    LaunchWithTemporaries,
    SweepAdjoints,
    tangent_of,
    temporary_shadow,
    write_tangents,
)
from tinote.lang.ad.journal.touched_gradients import (
    changed_gradients,
    fields_with_gradients,
    touched_by,
    touched_gradients,
    with_duals,
)
from tinote.lang.ad.journal.used_memory import UsedMemory
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.ad.memory.values import element_at
from tinote.lang.data.fields import Field, begin_at_zero
from tinote.lang.data.traced import Trace, Traced, constants, objects, stored
from tinote.lang.index_regions import IndexRegion, is_element, region_at
from tinote.lang.kernels.arguments import (
    Arguments,
    arguments_of,
    may_have_temporary,
    own,
)
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.owners import (
    both_use,
    claim,
    clear_own_gradients,
    close_recording,
    needs_no_claims,
    open_recording,
    open_recordings,
    own_gradients,
    refuse_same_values,
    use,
)
from tinote.lang.session.state import (
    OutsideWatcher,
    Recorder,
    end_watch,
    memory_of,
    note_overwriting,
    present_recorder,
    present_watcher,
    session,
    set_recorder,
    set_watcher,
)
from tinote.runtime.memory import Memory
from tinote.runtime.owner import present_owner
from tinote.runtime.seam import active_listener
from tinote.source import NOWHERE, Span, caller

_FORWARD_OVER_REVERSE = Request(Derivative.FORWARD_OVER_REVERSE, arguments=True)
_SAVES = Request(records=True)
_SAVES_FORWARD = Request(Derivative.FORWARD, arguments=True, records=True)

_NOTHING_APART: dict[Buffer, Buffer] = {}

S = TypeVar("S", bound=Sweep)


class Journal(Recorder):
    """`observers`: notified of events. `saves`: whether values are saved between launches; `keep`: whether launches and
    gradients can be run again during the journal's lifetime; `fit`: the memory limit (`SavedValues`). `trace`: of the
    numbers that Python reads. `shares`: launches save what their gradients compute too; `tangents`: they carry some.
    """

    gradients = None  # a derivative that a kernel computes would not be recorded
    #: the kernel gradient that the reverse sweep runs, for launches without traced numbers
    derivative: Request
    #: the mode of a launch that saves the old values for its gradient
    saves_by: Request
    trace: Trace
    _has_initialising_writes = False  # whether there are writes to fields that nothing has used
    may_lose = False  # whether a launch was refused, or a value may be written where its gradient is lost
    _pending: RecordedLaunch | None = None
    #: refusal deferred until the observers have run
    _refused: DifferentiationError | None = None
    #: the previous recorder and watchers, while it records
    _around: tuple[Recorder | None, OutsideWatcher | None] | None = None
    #: saves gradients and duals before they change, if they are to be restored in the end
    gradients_before: ShadowsBefore | None = None
    #: whether the duals that launches, Python and sweeps use begin at zero
    begins_duals = False
    #: whether gradients that another owner has computed begin at zero
    clear_gradients = True
    #: whether it is in use after recording: until it is swept and forgotten, or gradients are restored
    is_swept = False
    leaves_shadows = False
    #: the recording whose tangents it continues
    _tangents_of: Recorder | None = None
    #: the gradients that custom VJPs have used
    _begun: frozenset[Buffer] = frozenset()
    #: whether gradients and duals keep the results of an inner block
    _leaves_values = False
    #: for duals with results of an inner block: the place of the results if their own memory holds tangents
    duals_apart: dict[Buffer, Buffer] = _NOTHING_APART
    #: the contents of gradients and duals before the first inner block wrote its own
    shadows_before: ShadowsBefore | None = None
    #: the adjoints that its reverse sweep needs, once they were asked for
    _needed: Needed | None = None
    #: whether there are blocks with a custom VJP among its events
    _has_custom = False
    #: whether everything needed to repeat it is recorded
    runs_again = False
    #: the arrays that it uses, which have to live until then
    used_arrays: dict[Buffer, Any]
    #: whether it is part of another recording, which differentiates its derivatives
    is_inner = False

    def __init__(
        self,
        observers: Sequence[Observer] = (),
        *,
        saves: bool = True,
        keep: bool = False,
        fit: Callable[[int], None] | None = None,
        trace: Trace | None = None,
        shares: bool = False,
        tangents: bool = False,
    ) -> None:
        self.derivative = GRADIENT
        self.saves_by = _SAVES
        self.activity = Activity(GRADIENT)
        self.runs_again = False
        if shares:
            self.share_work()
        self.events: list[Event] = PlacedEvents() if keep else []
        self.keep = keep
        if trace is None:
            trace = Trace(self.events)
        else:
            trace.events = self.events
        self.trace = trace
        self.observers = tuple(observers)
        self.saved = SavedValues(self.observers, saves, keep, fit)
        self.memory = UsedMemory(self.events)
        if tangents:
            carry_tangents(self)

    @property
    def records(self) -> list[Record]:
        """The launches, the captured steps and the blocks with a custom VJP."""
        return [event for event in self.events if isinstance(event, Record)]

    def share_work(self) -> None:
        """Launches save what their gradients would compute too."""
        if session.config.arch == "cpu":
            self.derivative, self.saves_by = SHARED_GRADIENT, SHARING
            self.activity.usual = SHARED_GRADIENT

    @property
    def is_differentiated(self) -> bool:
        """Whether the derivatives that it computes have tangents, or adjoints in a recording around it."""
        return self.is_inner or self.derivative.has_tangents

    def will_run_again(self) -> None:
        """Make it part of another recording: from now on everything needed to repeat it is recorded."""
        self.runs_again = self.is_inner = self.saved.keeps_arrays = True
        self.used_arrays = {}

    def leave_shadows(self, before: ShadowsBefore) -> None:
        """Restore gradients and duals at the end."""
        self.gradients_before, self.leaves_shadows = before, True
        before.hold_for(self)

    def start(self) -> None:
        """Become the recorder of this context, and watch writes of other contexts."""
        if self.observers and (listener := active_listener()) is not None:
            listener.taking("a tape that checks, or that does steps again")
        outer, watching = present_recorder(), present_watcher()
        if outer is None and watching is not None:  # an interrupt prevented its end
            end_watch(watching, None)
            watching = None
        self._around = outer, watching
        self.has_ended = False
        try:
            if self.reference is None:  # not opened yet
                open_recording(self)
            set_recorder(self)
            session.watchers.append(self)
            set_watcher(self)
        except BaseException:  # an interrupt
            self.stop()
            raise

    def stop(self) -> None:
        """Undo `start`, or the part of it that ran before an interrupt."""
        if self._around is None:
            return
        outer, watching = self._around
        self.has_ended = True
        try:
            set_recorder(None if outer is not None and outer.has_ended else outer)
        finally:
            try:
                end_watch(self, watching)
            finally:
                self.trace.close()
                if not self.is_swept:
                    close_recording(self)
        self._around = None

    @contextmanager
    def recording(self) -> Iterator[None]:
        """A recorded block; its end is guaranteed."""
        try:
            self.start()
            yield
        finally:
            try:
                self.stop()
            finally:
                self.stop()  # where an interrupt has prevented the first one

    # ---- launches

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        if self.runs_again:
            self._keep_arrays([one.buffer for one in values[: len(instance.specialisation.arrays)]])
        if self.observers or (values and (Traced in map(type, values) or self.trace.root.taken_out is not None)):
            return self._launching_any(instance, values)
        usual = self.activity.usual
        arguments: Arguments | None = instance.taped
        if arguments is None and usual is not None:
            arguments = self.activity.known_on_arrays(instance, values, usual)
        if arguments is None or arguments.request is not usual:
            return self._launching_any(instance, values)
        self._pending = launch = self.saved.launching(instance, values, arguments, self.saves_by, None)
        return launch.old_values

    def _launching_any(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        """The general case of `launching`, for launches that need more than the memory for their gradient."""
        self.may_lose = True
        given, flow, tangents = values, None, self.derivative.has_tangents
        has_traced = bool(values) and Traced in map(type, values)
        if has_traced or tangents or instance.returns_floats:
            flow = flow_of(self.trace, instance, values, tangents=tangents)
        if flow is not None or has_traced:
            values = constants(values)
        arguments: Arguments | None = instance.taped
        if flow is not None or (arguments is not None and arguments.request is not self.activity.usual):
            arguments = None
        launch: RecordedLaunch | None = None
        try:
            if arguments is None:
                arguments = self.activity.arguments(instance, values, self.derivative, has_numbers=flow is not None)
            if arguments.values:
                arguments.refuse_shared()
            launch = self.saved.launching(instance, values, arguments, self.saves_by, flow)
        except DifferentiationError as error:
            if not self._checks_before_refusal:
                raise
            self._refused = self._refused or error
            if arguments is None:
                arguments = arguments_of(instance, values)
        self._pending = launch
        if self.gradients_before is not None and arguments.writes_shadows:
            for buffer in arguments.accesses.written:
                self._keep_gradient(buffer)
        if self.begins_duals:
            self.begin_duals(arguments.duals)
        if self.trace.root.taken_out is not None:
            look_for_plain(self.trace, given, arguments)
        native = None if launch is None else launch.old_values
        if self.observers:
            native = self._observed(instance, arguments, native)
        if flow is None:
            return native
        temporary = self.activity.tangents
        if temporary and arguments.request.temporaries:
            native = _with_temporary_tangents(native, arguments, temporary, self.duals_apart)
        flow.runs = native
        return flow

    def _observed(self, instance: Instance, arguments: Arguments, native: Any) -> Any:
        """Notify the observers of a launch. Returns the code to launch: `native`, or a replacement by one of them."""
        if native is not None and self._checks_before_refusal:
            why = "a tape that checks the access rules does not keep"
            refuse_old_values(arguments, why, "the loop, or leave the checks out")
        for one in self.observers:
            native = one.launching(instance, arguments) or native
        return native

    @property
    def _checks_before_refusal(self) -> bool:
        """Whether an observer checks launches that cannot be differentiated before they are refused."""
        return any(one.checks_before_refusal for one in self.observers)

    # ---- derivatives inside

    @contextmanager
    def leaving_value(self, buffer: Buffer) -> Iterator[Buffer]:
        before = self._leaves_values
        self._leaves_values = before or buffer.primal is not None
        try:
            yield self.duals_apart.get(buffer, buffer)
        finally:
            self._leaves_values = before

    def keep_gradients_apart(self) -> None:
        self.may_change_gradients()
        if self.shadows_before is None:
            self.shadows_before = ShadowsBefore()
        self.shadows_before.keep(own_gradients())
        if self.derivative.has_tangents:
            for field in fields_with_gradients():
                if field.grad.has_dual:
                    self.shadows_before.add_blocks([field.grad.dual.memory])

    def take_gradients_back(self) -> None:
        """Restore gradients, and duals that inner blocks have changed."""
        if self.shadows_before is not None:
            self.shadows_before.put_back()

    @property
    def shadows_with_values(self) -> set[Buffer]:
        return {buffer for buffer in self.activity.spans if buffer.primal is not None}

    def has_values(self, shadows: Collection[Buffer], span: Span) -> None:
        for buffer in shadows:
            if buffer not in self.activity.spans:
                self.activity.activate(buffer, span)
            self.memory.has_computed(buffer)
            if buffer.primal is not None and buffer.primal.tangent is buffer:
                self._keep_dual_apart(buffer)

    def _keep_dual_apart(self, dual: Buffer) -> None:
        """Prepare a dual to hold a value: elsewhere, if it holds a tangent here. If it may hold a tangent of an outer
        recording, that is restored in the end.
        """
        if self.activity.tangents is not None:
            if self.duals_apart is _NOTHING_APART:
                self.duals_apart = self.saved.duals_apart = {}
            if dual not in self.duals_apart:
                self.duals_apart[dual] = temporary_shadow(dual, "value")
        elif self.is_inner and self.shadows_before is not None:
            self.shadows_before.add_blocks([memory_of(dual)])

    def take_tangents(self, outer: Recorder, temporary: dict[Buffer, Buffer], span: Span) -> None:
        """Make launches carry the tangents of the outer recording: these, of memory without a dual, and those of
        fields.
        """
        self._tangents_of, self.begins_duals = outer, True
        self.activity.tangents = self.saved.temporary_tangents = temporary
        if temporary:
            self.activity.hold(dict.fromkeys(temporary, span))

    # ---- launches and captured steps that have run

    def launched(self) -> None:
        launch = self._pending
        if launch is not None:
            self._pending = None
            self.saved.launched(launch)
            self.events.append(launch)
            external = launch.needs.external_arrays and launch.arguments.external_arrays
            if external and any(path.buffer in external for path in launch.arguments.broken_paths):
                self.trace.note_taken_out()  # an active value is in an array that any code may read
            if session.has_views:
                self.saved.distrust_views(launch)
        for one in self.observers:
            one.launched()

    def running(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = step_for(program, args, kwargs, self, Journal) if may_record_steps(self) else None
        return super().running(program, args, kwargs) if found is None else record_step(self, *found)

    def failed(self, error: DifferentiationError) -> None:
        """Something has failed that cannot be recorded: there is no derivative."""
        self.may_lose = True
        self._refused = self._refused or error

    def launching_outside(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched in another thread or task, outside this recording."""
        touched = arguments_of(instance, values).accesses
        other = _other_recording(self)
        if other is not None:
            for buffer in (*touched.loaded, *touched.written):
                is_written = self.memory.is_written(buffer, self.announced)
                if is_written or (is_written is not None and buffer in touched.written):
                    raise both_use(other, f"'{buffer.name}'", self.opened or NOWHERE)
        for buffer in own(touched.written):
            self._overwritten_outside(buffer, None)

    def overwriting_outside(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        other = _other_recording(self)
        if other is not None and self.memory.is_written(buffer, self.announced) is not None:
            raise both_use(other, f"'{buffer.name}'", self.opened or NOWHERE)
        self._overwritten_outside(buffer, region)

    def replaying_outside(self, memories: Iterable[Memory]) -> bool:
        return False

    def _overwritten_outside(self, buffer: Buffer, region: IndexRegion | None) -> None:
        if self.memory.is_written(buffer, self.announced) is not None:
            self.saved.overwriting(buffer, region, exempt=True)
        elif self.saved.log.keeps(buffer):  # for code that may read any memory
            self.saved.log.lose(buffer)

    def custom(self, custom: Custom) -> None:
        """A block with a custom VJP has completed."""
        self.may_lose = self._has_custom = True
        for one in self.observers:
            one.custom(custom)
        self.activity.note_in(custom)
        kept = custom.keep(self.saved)
        self.events.append(custom)
        if session.has_views:
            self.saved.distrust(kept)

    def computing(self, computation: Computation) -> None:
        inputs, activity, tangents = computation.inputs, self.activity, None
        followed = list(map(activity.follows, inputs))
        values = computation.values()
        if self.begins_duals:
            self.begin_duals([b.tangent for b in (*inputs, *computation.written) if b.tangent is not None])
        given = None if activity.tangents is None else [tangent_of(buffer, activity.tangents) for buffer in inputs]
        for buffer in computation.written:
            note_overwriting(buffer)
            self.overwriting(buffer)
        if any(followed):
            for buffer in computation.outputs:
                activity.gets_active(buffer, computation.span)
        if activity.tangents is not None and given is not None:
            tangents = computation.push_from(given, activity.tangents)
        computation.store(values)
        if any(followed) or any(map(activity.follows, computation.written)) or self.runs_again:
            self.custom(computation.record(followed, tangents))

    def took_launch(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched inside a block that is recorded differently, or not at all."""

    def took_write(self, buffer: Buffer, position: Any, value: Any, source: Buffer | None) -> None:
        """Python is about to write to a field there."""

    def took(self, name: str, parts: Iterable[Any]) -> None:
        """An inner derivative has done these launches and computations, with these numbers from Python."""

    def made_by_user(self, field: Any) -> None:
        if self.runs_again and field.has_grad:  # what is launched with it is launched again along a direction
            for one in (field, field.grad):
                one.ensure_dual()

    def _keep_arrays(self, buffers: Iterable[Buffer | None]) -> None:
        """Let arrays live as long as this, if it runs again."""
        for buffer in buffers:
            if buffer is not None and buffer not in self.used_arrays:
                found = next((field for field in list(session.fields) if field.buffer is buffer), None)
                self.used_arrays[buffer] = found

    # ---- Python

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        if buffer in self.duals_apart and not self._leaves_values:
            raise _moved_dual(self, buffer, "written by Python", "write it in a kernel")
        memory, activity = self.memory, self.activity
        memory.met[buffer] = True
        self._keep_gradient(buffer)
        if self.observers or self.saved.log.keeps(buffer) or self.derivative.has_tangents:
            self.overwriting(buffer, region_at(buffer, position))
        traced = None if source is not None else self.trace.numbers_in(value, buffer, activity.spans)
        if source is not None:
            memory.met.setdefault(source, False)
            activity.use_shadow(source)
        records = source is not None or traced is not None or self._was_used(buffer, position)
        followed = traced is not None or (source is not None and activity.follows(source))
        if followed and buffer not in activity.spans and may_have_temporary(buffer):
            activity.activate(buffer, caller())
        if followed and buffer.no_adjoint:
            self.may_lose = True
        if activity.tangents is not None:
            if self.begins_duals:
                self.begin_duals([b.tangent for b in (buffer, source) if b is not None and b.tangent is not None])
            write_tangents(buffer, position, value, source, activity.tangents)
        if not (records or self.keep or self.runs_again or self.observers or memory.looked_at.get(buffer)):
            return
        span = caller() if records and (position is ... or buffer.adjoint is None) else NOWHERE
        write = Write(buffer, position, source, traced, span, initialises=not records)
        if self.runs_again:
            self._keep_arrays([buffer, source])
            write.values = None if source is not None else np.array(stored(value))
        for one in self.observers:
            one.writing(write, exempt=present_recorder() is not self)
        if records or self.keep or self.runs_again or memory.looked_at.get(buffer):
            self.events.append(write)
            self._has_initialising_writes = self._has_initialising_writes or write.initialises
            if write.is_whole and records:
                memory.starts_from((buffer,))

    def _was_used(self, buffer: Buffer, position: Any) -> bool:
        """Whether a launch has used the field, so that the gradient of written values differs from that of the values
        before.
        """
        if isinstance(position, tuple) and position[:1] != (...,):
            is_followed = self.memory.touches(buffer) and self.activity.follows(buffer)
            return is_followed and is_element(buffer, position[: buffer.rank])
        return self.memory.touches(buffer)

    def sharing(self, buffer: Buffer) -> None:
        self.taking(buffer)
        self.overwriting(buffer)
        for one in self.observers:
            one.sharing(buffer)

    def taking(self, buffer: Buffer) -> None:
        self.memory.read_by_python(buffer)
        if buffer in self.duals_apart:
            raise _moved_dual(
                self, buffer, "taken as an array", "read its elements, or copy it into a field in a kernel"
            )
        if buffer.dtype.kind == "f" and self.activity.follows(buffer):
            self.trace.note_taken_out()

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        self.memory.read_by_python(buffer)
        if buffer.dtype.kind != "f" or (buffer.primal is not None and buffer not in self.activity.spans):
            return value
        self.activity.use_shadow(buffer)
        self.memory.looked_at[buffer] = True
        if not buffer.element:
            return self.number_at(buffer, position, value)
        positions = [(*position, *component) for component in np.ndindex(buffer.element)]
        items = [self.number_at(buffer, at, v) for at, v in zip(positions, value.ravel().tolist(), strict=True)]
        return objects(items, buffer.element)

    def number_at(self, buffer: Buffer, position: tuple[int, ...], value: float) -> Traced:
        """The number of an element, or of a component of one, that Python reads."""
        apart = self.duals_apart.get(buffer)
        found = self.trace.new(value if apart is None else element_at(apart, position))
        tangents = self.activity.tangents
        tangent = None if tangents is None else tangent_of(buffer, tangents)
        if tangent is not None:
            if self.begins_duals and tangent is buffer.tangent:
                self.begin_duals([tangent])
            found.tangent = element_at(tangent, position)
        self.events.append(Read(found.number, buffer, position))
        return found

    def overwriting(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """Elements of a field, by default all, are about to be written."""
        self._keep_gradient(buffer)
        self.saved.overwriting(buffer, region, exempt=bool(self.observers) and present_recorder() is not self)

    def _keep_gradient(self, buffer: Buffer) -> None:
        if self.gradients_before is not None and buffer.primal is not None and buffer.primal.adjoint is buffer:
            self.gradients_before.add_blocks(map(memory_of, self._with_duals([buffer])))

    def keep_gradients(self, gradients: Iterable[Buffer]) -> None:
        """Save these gradients before unrecorded code changes them."""
        for buffer in gradients:
            self._keep_gradient(buffer)

    def begin_duals(self, duals: Collection[Buffer]) -> None:
        """Note that these duals are about to be used: if they are restored in the end, they begin at zero."""
        if self._tangents_of is not None:
            self._tangents_of.begin_duals(duals)
        elif self.begins_duals and self.gradients_before is not None:
            self.gradients_before.begin_duals(self, duals)

    def begin_all_duals(self) -> None:
        if self._tangents_of is not None:
            self._tangents_of.begin_all_duals()
        elif self.begins_duals and self.gradients_before is not None:
            self.gradients_before.begin_all_duals(self)

    def may_change_gradients(self) -> None:
        """Note that the following code is not recorded launch by launch, and may change the gradient of any field."""
        if self.gradients_before is not None:
            self.gradients_before.keep(own_gradients())

    @property
    def shadows(self) -> Set[Buffer]:
        """The gradients that its reverse sweep reads or writes, if known, and those that it restores, with duals."""
        before = () if self.gradients_before is None else self.gradients_before.begun
        return changed_gradients(self.events, perhaps=False).union(self._begun, before)

    def begin_gradients(self, gradients: Iterable[Buffer], launch: Launched | None = None) -> None:
        """The reverse sweep is about to use these, in a custom VJP; `launch`: in the gradient of this one."""
        gradients = frozenset(gradients)
        if not gradients <= self._begun:
            self._begun |= gradients
        elif self.gradients_before is None:
            return
        if self.gradients_before is not None:
            self.gradients_before.begin(self, self._with_duals(gradients), touched_by(launch, gradients))
        else:
            use(self, gradients)
            claim(gradients, clear=self.clear_gradients)
            self._begin_duals_of(gradients)

    def begin_sweep(
        self,
        gradients: Iterable[Buffer],
        results: Collection[Buffer] | None = None,
        zero: Collection[Buffer] = (),
    ) -> None:
        """Note that the reverse sweep is about to run and uses these gradients: all of them begin at zero. `results`:
        those of them that anything else reads or writes, by default all; `zero`: gradients of its own, which are zero.
        """
        shadows = self._with_duals(gradients)
        if self.gradients_before is not None:
            touched = touched_gradients(self.events, gradients, results)
            self.gradients_before.begin_sweep(self, shadows, touched, zero=self._with_duals(zero))
        else:
            for one in shadows:
                memory_of(one).clear()

    def _with_duals(self, gradients: Iterable[Buffer]) -> list[Buffer]:
        """These and, where it carries tangents, their duals."""
        return with_duals(gradients) if self.derivative.has_tangents else list(gradients)

    def _begin_duals_of(self, gradients: Iterable[Buffer]) -> None:
        """The duals of gradients that are results belong to the recording in whose tangents this one goes on."""
        if self._tangents_of is not None:
            self._tangents_of.begin_duals([one.tangent for one in gradients if one.tangent is not None])

    def used(self) -> Mapping[Buffer, bool]:
        return self.memory.with_launch(self.under_way)

    def begin_loss(self, loss: Field, *, clears: bool = False) -> None:
        """Open the recording, clear gradients, set the loss to 0. Raises `DifferentiationError` if others use it."""
        self.memory.met[loss.buffer] = True
        try:
            open_recording(self)
            if clears:
                clear_own_gradients(self)
            if len(open_recordings) > 1:
                refuse_same_values(self)
            begin_at_zero(loss)
        except BaseException:
            close_recording(self, failed=True)
            raise

    # ---- at its end

    def lost_values(self, lost: dict[Buffer, Span] | None = None) -> LostValues:
        """The values on broken gradient paths (`LostValues`). Raises `DifferentiationError` for a broken gradient path,
        and for a launch without a gradient. `lost`: fields without a gradient that hold active values at the start.
        """
        values = LostValues(lost)
        active = self.activity.spans
        if not (self.may_lose or active or lost):
            return values
        if self._refused is not None:
            raise self._refused
        values.follow(self.events)
        if active:
            self._needed = needed_adjoints(self.events, active, ())
        return values

    def claim(self, *, clear: bool) -> None:
        """Claim the gradients that `reverse` will use for the present owner. `clear`: those of another owner start at
        zero.
        """
        if len(open_recordings) > 1 or self.met is not None:
            refuse_same_values(self)
        use(self)
        if not needs_no_claims(self.owner):
            claim(shadows := self.shadows, clear=clear)
            self._begin_duals_of(shadows)

    def reverse(self) -> None:
        """Run the gradients of all recorded events."""
        if self.events:
            sweep = self.sweep()
            if self._has_custom and not self.is_differentiated:
                sweep.lasting = LastingWrites(self.events)
            needed = self._needed
            sweep.run(needed if needed is not None and len(needed.events) == len(self.events) else None)
        if len(open_recordings) > 1 or self.met is not None:
            refuse_same_values(self)

    def sweep(self, gradients: Request | None = None, done: Any = None, kind: type[S] = Sweep) -> S:
        """A reverse sweep through all recorded events, to be run; by default of `derivative`."""
        adjoints = SweepAdjoints((), self.activity.tangents, 1, self.duals_apart, self.begin_gradients)
        further = self._has_initialising_writes, adjoints, self.activity.spans
        return kind(self.events, self.saved, gradients or self.derivative, done, *further)

    def sweep_along(self, kind: Callable[..., Sweep], events: Sequence[Event], *how: Any) -> Sweep:
        """A sweep of another kind through these events, defined by `how`."""
        return kind(*how, events, self.saved, self.derivative, None, self._has_initialising_writes)

    def forget(self, *, failed: bool = False) -> None:
        """Free the copies, unless they are to be kept: there will be no further reverse sweep. `failed`: nor reads."""
        try:
            if self.keep:
                if not self.saved.between_launches:  # the gradients have run on the fields as they are now
                    for one in self.records:
                        one.need(self.saved)
                self.saved.seal()
            else:
                self.saved.let_go()
            for one in self.observers:
                one.release()
        finally:
            if not self.leaves_shadows:
                close_recording(self, failed=failed)


def carry_tangents(journal: Journal) -> None:
    """Launch pushforwards, and sweep with the pushforwards of their pullbacks: forward over reverse mode. The tangents
    of gradients are left in the duals of fields' gradients, and in those of the adjoints of numbers.
    """
    journal.derivative, journal.saves_by, journal.clears_duals = _FORWARD_OVER_REVERSE, _SAVES_FORWARD, True
    journal.activity.carry_tangents(journal.saved.carry_tangents())


def _moved_dual(journal: Journal, dual: Buffer, what: str, hint: str) -> DifferentiationError:
    """The error of a use of a dual that is a value, and whose memory holds something else."""
    what = f"'{dual.name}' is {what}, where it is a value and its memory holds a tangent of the block around"
    return DifferentiationError(what, caller(), hint=hint, notes=journal.opened_notes())


def _other_recording(journal: Journal) -> Recorder | None:
    """The recording of another thread or task, in which something happens now."""
    found = present_recorder()
    return None if found is None or journal.owner is None or journal.owner.runs_within(present_owner()) else found


def _with_temporary_tangents(
    native: Any, arguments: Arguments, tangents: Mapping[Buffer, Buffer], apart: Mapping[Buffer, Buffer]
) -> Any:
    """The code for the pushforward of a launch, or `native` in its place. `apart`: as of `SweepAdjoints`."""
    duals = SweepAdjoints((), tangents, apart=apart)
    if native is None:
        return LaunchWithTemporaries(duals, arguments, PUSHFORWARD.with_temporaries(arguments.request.temporaries))
    native.bind = lambda values: duals.values(arguments, values, native.mode)
    return native
