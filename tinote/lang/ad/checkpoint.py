"""`ti.ad.checkpoint`: differentiate a long loop of time steps in bounded memory.

    with ti.ad.Tape(loss=energy):
        report = ti.ad.checkpoint(step, 10_000, memory=200 << 20)
        measure()

A tape over the steps would keep what each of them overwrites. Instead the steps run unrecorded, a few states on the way
are kept, and in the reverse sweep each step is run again from the nearest of them, recorded alone, and reversed. The
states stand at binomial distances (`binomial.py`), so that the fewest steps run again. The state is made of the
elements that the steps write, found by watching their launches. It is copied whole: a state comes back several times,
an entry of the tape's log of overwritten values once, and steps overwrite most of their state.

Where it pays, steps are captured after the first of them (`journal/step_capture.py`): each is one native call, and so
is its gradient. Nobody has asked for that: it pays when the time that launches have taken in Python, in this call and
in earlier ones of the same function, comes to more than the capture costs.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from tinote.compiler.driver import Specialisation
from tinote.compiler.requests import GRADIENT, Request
from tinote.errors import CaptureError, DifferentiationError, KernelFiniteError, KernelMemoryError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.ad.bars import bar
from tinote.lang.ad.binomial import advances, distance
from tinote.lang.ad.journal.activity import Activity, needs_temporaries, reaches
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.captured_steps import CapturedStep, StepRegions, StepUnderTape
from tinote.lang.ad.journal.custom_sweep import CustomSweep
from tinote.lang.ad.journal.events import Custom, Event, Read
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.lasting_writes import LastingWrites
from tinote.lang.ad.journal.number_flow import flow_of, look_for_plain
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.saved_values import living_buffers, refuse_old_values
from tinote.lang.ad.journal.step_capture import (
    StepsUnderTapes,
    captured_under_tape,
    may_record_steps,
    may_run,
    steps_of,
)
from tinote.lang.ad.journal.step_log import (
    END,
    ElementPosition,
    Made,
    StepLog,
    What,
    array_words,
    arrays_of_others,
    number_word,
    place,
)
from tinote.lang.ad.journal.temporary_adjoints import NO_ADJOINTS
from tinote.lang.ad.journal.used_memory import UsedMemory
from tinote.lang.ad.memory.effects import BlockEffects
from tinote.lang.ad.memory.region_copies import RegionCopies
from tinote.lang.capture.attempts import StepCapture, runs_plainly
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.watching import may_watch
from tinote.lang.data.traced import Computed, Trace, Traced, constants, stored, traced_array
from tinote.lang.index_regions import IndexRegion, region_at
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.kernels.arguments import (
    Arguments,
    ExternalArray,
    arguments_of,
    observed_arguments,
    own,
)
from tinote.lang.kernels.kernel import Instance
from tinote.lang.session.state import is_viewed, memory_of, recorder, recording_as, session
from tinote.runtime.memory import readable_size
from tinote.runtime.owner import present_owner
from tinote.runtime.seam import listeners
from tinote.source import Span, caller

#: Gets the elements of a field (None: all) that a step is about to write.
Listener = Callable[[Buffer, IndexRegion | None], None]

#: How many steps run as the function before they may be captured: the first one compiles.
_FIRST_STEPS = 3
#: What a launch costs in Python, in seconds: forwards, and recorded with its gradient.
FORWARD_LAUNCH, RECORDED_LAUNCH = 4e-6, 30e-6
#: What a capture costs: by itself, in seconds, and in calls of the step.
CAPTURE_COST, CAPTURE_CALLS = 0.03, 60
#: The most bytes of fields that a trial copies.
_LARGEST_STATE = 64 << 20
_PLACE = "__tinote_loop__"


@dataclass
class Checkpoints:
    """How `ti.ad.checkpoint` differentiated a loop.

    The numbers of the reverse sweep are there when the tape has closed.

    Attributes
    ----------
    steps : int
        The number of steps.
    state_bytes : int
        The size of one state in bytes.
    snapshots : int
        The largest number of states saved at a time.
    peak_bytes : int
        The most memory in bytes that was held for them, for the values that a single step overwrites, and for the
        fields' present values.
    recomputed : int
        How many steps were run again.
    captured : StepCapture
        Whether steps were replayed as a captured program, or why not.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def advance():
    ...     x[None] *= 1.5
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[None]
    >>> x[None] = 1.0
    >>> with ti.ad.Tape(y):
    ...     loop = ti.ad.checkpoint(lambda i: advance(), 8, snapshots=2)
    ...     measure()
    >>> loop.steps, loop.snapshots
    (8, 2)
    """

    steps: int
    state_bytes: int = 0
    snapshots: int = 0
    peak_bytes: int = 0
    recomputed: int = 0
    captured: StepCapture = field(default=StepCapture("learning"), compare=False)

    def __repr__(self) -> str:
        return (
            f"{self.steps:,} steps, {self.recomputed:,} run again; at most {self.snapshots:,} states of "
            f"{readable_size(self.state_bytes)} kept, {readable_size(self.peak_bytes)} at the peak"
        )


def checkpoint(
    step: Callable[[int], Any],
    steps: int,
    *,
    memory: int | None = None,
    snapshots: int | None = None,
    progress: bool = True,
) -> Checkpoints:
    """Run the steps of a loop; under a tape, so that its gradient takes bounded memory.

    Some states are kept, and steps between them are run again in the reverse sweep: with s states and t repetitions of
    each step, C(s + t, s) steps can be reversed. Steps that are short for what they launch are captured, as by
    `ti.capture`, where that does exactly what the function does; a step that is one of `ti.capture` is captured at
    once. Second derivatives (`ti.ad.hvp`, derivatives of derivatives) record the loop as it is, and take the memory of
    all its steps.

    Parameters
    ----------
    step : callable
        Called as `step(0)`, …, `step(steps - 1)`; it launches kernels. It must do the same when it is called again with
        the same number and the same fields: which kernels it launches with which arguments, and what Python fills
        fields with, is checked.
    steps : int
        The number of steps.
    memory : int, optional
        How many bytes to keep; by default the session's `memory_limit`.
    snapshots : int, optional
        The most states to keep.
    progress : bool, default True
        Show a bar when it takes long.

    Returns
    -------
    Checkpoints
        How the loop was differentiated.

    Raises
    ------
    DifferentiationError
        For what cannot be differentiated.
    KernelMemoryError
        Where not even one state fits.

    References
    ----------
    A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Trans. Math. Softw. 26, 2000; the same, "Evaluating
    Derivatives", 2nd ed., 2008, chapter 12.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> y = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def advance():
    ...     x[None] += 0.5 * x[None]
    >>> @ti.kernel
    ... def measure():
    ...     y[None] += x[None]
    >>> x[None] = 1.0
    >>> with ti.ad.Tape(y):
    ...     _ = ti.ad.checkpoint(lambda i: advance(), 4)
    ...     measure()
    >>> x.grad[None] == 1.5**4
    True
    """
    span = caller()
    if not callable(step):
        raise DifferentiationError(f"ti.ad.checkpoint runs a function, not {step!r}", span)
    for name, value, least in (("steps", steps, 0), ("memory", memory, 1), ("snapshots", snapshots, 1)):
        optional = value is None and name != "steps"
        if not optional and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise DifferentiationError(f"{name} must be an integer of at least {least}, not {value!r}", span)
    outer = recorder.get()
    if not isinstance(outer, Journal) or outer.derivative.has_tangents or outer.runs_again:
        # Forward mode needs no memory; elsewhere nothing is differentiated, or twice.
        for t in bar(range(steps), "steps", shown=progress):
            step(t)
        return Checkpoints(steps)
    chain = _Chain(step, steps, memory or session.config.memory_limit, snapshots, progress, span)
    if steps:
        chain.sweep(outer)
    return chain.report


class _Snapshot(NamedTuple):
    """The state before a step. Elements that are not in it were not written yet then and held their first values, as
    those do that were added when `known` others were.
    """

    position: int
    copies: RegionCopies
    known: int = 0


def steps_of_loop(step: Callable[[int], Any]) -> StepsUnderTapes:
    """What is known of a function whose steps are checkpointed; it is kept with that, or with the object whose method
    it is.
    """
    if isinstance(step, CapturedFunction):
        return steps_of(step)
    place: Any = step
    key = _PLACE
    if isinstance(place, MethodType):
        place, key = place.__self__, f"{_PLACE}{place.__name__}"
    held = None if isinstance(place, partial) else getattr(place, "__dict__", None)
    known = StepsUnderTapes()
    found = held.setdefault(key, known) if isinstance(held, dict) else known
    return found if isinstance(found, StepsUnderTapes) else known


def may_capture(outer: Journal, memory: int) -> bool:
    """Whether steps may be captured within a tape: no observer needs their launches, nothing that is
    differentiated goes through memory without a gradient, and the copies that a trial makes are within `memory` bytes.
    """
    fields = {id(field.memory.whole): field.memory.whole.taken for field in list(session.fields)}
    return (
        may_record_steps(outer)
        and not outer.activity.spans
        and may_watch()
        and not runs_plainly(outer)
        and 8 * sum(fields.values()) <= min(memory, 8 * _LARGEST_STATE)
    )


class _Replay:
    """The captured steps of a loop within the tape `outer`: one record, for one after the other."""

    def __init__(self, step: StepUnderTape, outer: Journal) -> None:
        self.step = step
        self._before = step.replays
        self._outer = outer
        self._record = CapturedStep(step, StepRegions((), (), None), 0, 0)

    def written(self, t: int) -> BufferRegions | None:
        """What step `t` may write to; None if it has to run as the function. Raises `CaptureError` where something has
        changed for good.
        """
        is_touched = t > 0  # what Python writes to a field before anything uses it is where the field begins
        if listeners or not may_run(self.step, (t,), self._outer, lambda _: is_touched):
            return None
        regions = self.step.regions((t,))
        return None if regions is None else regions.written

    def run(self, t: int) -> None:
        """Run a step."""
        self._record.run((t,))

    @property
    def replays(self) -> int:
        """How many steps have run."""
        return self.step.replays - self._before

    def reverse(self) -> None:
        """Run the gradient of the step that ran last."""
        way = self._record.way
        way.reverse(self._record, [0.0] * len(way.seeds), NO_ADJOINTS)


class _Chain:
    """The loop: its state, the states that are kept, and what each step did when it first ran."""

    def __init__(
        self, step: Callable[[int], Any], steps: int, memory: int, most: int | None, progress: bool, span: Span
    ) -> None:
        self.step = step
        self.steps = steps
        self.memory = memory
        self.most = most
        self.progress = progress
        self.span = span
        self.report = Checkpoints(steps)
        #: the elements that the steps write, and what they held before the first step that does
        self.first = RegionCopies()
        self.kept: list[_Snapshot] = [_Snapshot(0, self.first)]
        self._later_bytes = 0  # of those after the first
        self.launches: dict[Any, Arguments] = {}  # one for each kernel and the fields it was launched with
        self.customs: dict[Span, Custom] = {}
        self.loaded: set[Buffer] = set()
        self.recorded: set[Buffer] = set()  # what launches with a gradient have written
        self.touched_before: set[Buffer] = set()  # what the tape has touched before the loop
        self.outer: Trace | None = None  # the trace of the tape
        self.numbers: set[int] = set()  # the traced numbers from outside that steps have used
        self.lost: dict[Buffer, Span] = {}  # what holds differentiated values and can have no temporary adjoint
        self.active: dict[Buffer, Span] = {}  # memory without a gradient that holds differentiated values
        self.copies: set[tuple[Buffer, Buffer]] = set()  # by Python: from where to where
        self.read: set[Buffer] = set()  # of which Python has numbers
        self.given: set[Buffer] = set()  # to which Python has written active numbers
        self.wanted: set[Buffer] = set()  # active memory whose adjoints are perhaps not zero
        self._seeds = array("Q")  # how many random launches there were before each step
        self.viewed: dict[Buffer, None] = {}  # fields that Python may write to unnoticed
        self.log = StepLog()  # what each step did that ran as the function
        self.around: Journal | None = None  # what records the loop, while it runs for the first time
        self.is_inner = False  # whether that is part of another recording
        self._loop = steps_of_loop(step)
        self._replay: _Replay | None = None
        self._announced: BufferRegions = ()  # what it has written last
        self.count = 0  # of launches of the step under way
        self._shortest = float("inf")  # that a step has taken, in seconds
        self._reserve = 0  # what a single step has needed besides the states

    # ---- memory

    @property
    def slots(self) -> int:
        """How many states may be kept. One more is the fields' present values."""
        size = max(self.report.state_bytes, 1)
        fitting = max(1, (self.memory - self._reserve) // size - 1)
        return fitting if self.most is None else min(fitting, self.most)

    def note(self, buffer: Buffer, region: IndexRegion | None = None) -> None:
        """A step is about to write to elements of a field, by default to all."""
        if buffer.primal is None:
            self.first.add(buffer, region)
            if self.first.nbytes > self.report.state_bytes:
                self.report.state_bytes = self.first.nbytes
                self.fit(0)

    def fit(self, more: int) -> None:
        """Drop states until `more` bytes fit. Raises `KernelMemoryError`."""
        self._reserve = max(self._reserve, more)
        while self._held(more) > self.memory and len(self.kept) > 1:
            self._drop()
        if self._held(more) > self.memory:
            raise KernelMemoryError(
                f"a state of this loop takes {self.report.state_bytes:,} bytes, and with the present values and what a "
                f"step overwrites {self._held(more):,} bytes: more than the {self.memory:,} that are allowed",
                self.span,
                hint="raise memory=, or let the steps write to fewer fields",
            )
        self.report.snapshots = max(self.report.snapshots, len(self.kept))
        self.report.peak_bytes = max(self.report.peak_bytes, self._held(more))

    def _held(self, more: int) -> int:
        return self.first.nbytes + self._later_bytes + self.report.state_bytes + more

    def _keep(self, position: int) -> None:
        self.kept.append(_Snapshot(position, self.first.now(), len(self.first)))
        self._later_bytes += self.kept[-1].copies.nbytes
        self.fit(0)

    def _drop(self) -> None:
        """Let the last state go."""
        self._later_bytes -= self.kept.pop().copies.nbytes

    # ---- forward

    def sweep(self, outer: Journal) -> None:
        """Run all steps and keep states on the way. The tape gets one record for all of them."""

        def listener(buffer: Buffer, region: IndexRegion | None = None) -> None:
            self.note(buffer, region)
            outer.overwriting(buffer, region)

        self.outer, self.around, self.is_inner = outer.trace, outer, outer.is_inner
        self.active |= outer.activity.spans
        self.touched_before = outer.memory.touched_before()
        self.recorded = {b for b in self.touched_before if outer.memory.computed_before(b)}
        for buffer in living_buffers():
            if is_viewed(buffer):  # a step may write to it unnoticed
                self.viewed[buffer] = None
                listener(buffer)
        coming = 1
        with bar(None, "steps", total=self.steps, shown=self.progress) as shown:
            for t in range(self.steps):
                if t and t == coming:
                    self._keep(t)
                self._seeds.append(session.launches)
                self._forward(t, listener, outer)
                if not t or t == coming:
                    coming = self._next_position(t)
                shown.update()
        self._count_replays()
        self.around = None
        self.lost = lost = self._lost_values()
        for buffer in self.active.keys() - outer.activity.spans.keys():
            outer.activity.activate(buffer, self.active[buffer])
        outer.custom(
            Custom(
                f"checkpoint of '{getattr(self.step, '__name__', 'step')}'",
                self.span,
                self._reverse,
                BlockEffects(self.loaded, {buffer for buffer, _ in self.first.regions}),
                lost=lost,
                scratch=self.first.regions,
                gradient_tasks=tuple(
                    [task for arguments in self.launches.values() for task in arguments.gradient_tasks]
                ),
                release=self._release,
                sources=frozenset(self.numbers),
                reads_active=self._reads_active,
                kept_bytes=self.report.peak_bytes,
                tells_gradients=True,
            )
        )

    def _forward(self, t: int, listener: Listener, outer: Journal) -> None:
        """Run a step for the first time."""
        if t == (0 if isinstance(self.step, CapturedFunction) else _FIRST_STEPS):
            self._capture(t, listener, outer)
        if self._replayed(t, listener):
            self.log.begin(logged=False)
            return
        self.log.begin(logged=True)
        runner = _Runner(self, listener, t, taping=False)
        self.count, begin = 0, time.perf_counter()
        self._run(t, runner)
        self._shortest = min(self._shortest, time.perf_counter() - begin)

    def _replayed(self, t: int, listener: Listener) -> bool:
        """Run a step as the captured one, where there is one; gives whether it has run."""
        replay = self._replay
        written = None if replay is None else replay.written(t)
        if replay is None or written is None:
            return False
        self._tell_written(written, listener)
        replay.run(t)
        return True

    def _capture(self, t: int, listener: Listener, outer: Journal) -> None:
        """Capture the steps if that pays, and note what they do to memory."""
        again = advances(self.steps + 1, self.slots)
        costs = self.count * ((self.steps + again) * FORWARD_LAUNCH + self.steps * RECORDED_LAUNCH)
        loop, paid = self._loop, CAPTURE_COST + CAPTURE_CALLS * self._shortest
        pays = isinstance(self.step, CapturedFunction) or loop.spent + costs > paid
        if not pays:
            loop.spent += costs
        if not pays or self.numbers or self.active or not may_capture(outer, self.memory - self._held(0)):
            return
        found = loop.form((present_owner(), _PLACE), lambda _: self._captured(t), anew=True)
        self.report.captured = loop.how
        if found is None:
            return
        if self._held(found.nbytes) > self.memory:
            return
        self._replay = _Replay(found, outer)
        written = self._replay.written(t)
        if written is not None:
            self._tell_written(written, listener)
        for one in [way.facts for way in found.ways]:
            for arguments in one.launches:
                self.launches[id(arguments), True] = arguments
            self.loaded |= one.loaded
            self.recorded |= one.written - one.assigned
        self.fit(found.nbytes)

    def _captured(self, t: int) -> StepUnderTape:
        step = self.step
        if isinstance(step, CapturedFunction):
            found = captured_under_tape(step.__tinote_step__, (t,), (False,), step.parameters, Journal, {})
        else:
            found = captured_under_tape(step, (t,), (False,), (), Journal, {}, unasked=True)
        for name in found.forward.assigned:
            raise CaptureError(f"{name}, which a step assigns, would not go back", found.span)
        for buffer, span in [item for way in found.ways for item in way.facts.activated.items()]:
            why = f"values that are differentiated go through '{buffer.name}', which has no gradient"
            raise CaptureError(why, span)
        return found

    def _tell_written(self, written: BufferRegions, listener: Listener) -> None:
        """The captured step is about to write this."""
        if written is not self._announced:  # the same for all steps, unless it depends on their number
            self._announced = written
            for buffer, region in written:
                listener(buffer, region)

    def _next_position(self, position: int) -> int:
        """Where the sweep keeps the next state. What follows the loop counts as one step more: it is reversed first,
        from the state that the loop ends with.
        """
        ahead, free = self.steps + 1 - position, self.slots - len(self.kept) + 1
        return position + distance(ahead, free) if ahead >= 2 and free >= 2 else -1

    def _run(self, t: int, runner: _Runner) -> None:
        try:
            with recording_as(runner):
                self.step(t)
            runner.end()
        finally:
            self.numbers |= runner.trace.taken_in.keys()
            runner.trace.close()

    def _lost_values(self) -> dict[Buffer, Span]:
        """Fields without a gradient that hold active values after the loop, or between its steps."""
        lost = LostValues(self.lost)
        before = -1
        while len(lost.spans) > before:
            before = len(lost.spans)
            for custom in self.customs.values():
                lost.custom(custom)
            for arguments in self.launches.values():
                lost.launch(arguments)
        return lost.spans

    def _reads_active(self, reached: set[Buffer]) -> set[Buffer]:
        """From where adjoints of active memory come after the loop, where they are at any time. Raises
        `DifferentiationError` for a launch whose gradient would need what cannot be kept.
        """
        found, before = set(reached), -1
        while len(found) > before:
            before = len(found)
            by_numbers = any(target.adjoint is not None or target in found for target in self.given)
            by_numbers = by_numbers or any(reaches(arguments, found) for arguments in self.launches.values())
            if by_numbers:  # those that Python has read may be among what is written, or among arguments
                found |= self.read & self.active.keys()
            for (_, without_numbers, *_), arguments in self.launches.items():
                # What a kernel returns may be among them, too.
                if reaches(arguments, found) or (by_numbers and not without_numbers):
                    if needs_temporaries(arguments, found, self.active):
                        found |= arguments.temporaries
                        _refuse_old_values(arguments)
            for source, target in self.copies:
                if source in self.active and (target.adjoint is not None or target in found):
                    found.add(source)
            for custom in self.customs.values():
                if custom.reads_active is not None:
                    found |= custom.reads_active(found)
        self.wanted = found
        return found

    # ---- back

    def _reverse(self, outer: CustomSweep) -> None:
        """Reverse the steps, the last first."""

        def listener(buffer: Buffer, region: IndexRegion | None = None) -> None:
            self.note(buffer, region)
            outer.overwriting(buffer, region)

        launches, back = session.launches, outer.gradients
        if back is not GRADIENT or outer.adjoints.observer is not None or self.lost or self.active:
            self._replay = None  # what it does not see stays with the function
        end = self.steps
        try:
            total = advances(self.steps + 1, self.slots)
            with bar(None, "steps run again", total=total, shown=self.progress) as shown:
                while end > 0:
                    position = self._restore(outer)
                    while end - position >= 2:
                        free = self.slots - len(self.kept) + 1
                        stop = position + distance(end - position, free) if free >= 2 else end - 1
                        while position < stop:
                            self._run_again(position, listener, back, taping=False)
                            position += 1
                            shown.update()
                        if free >= 2:
                            self._keep(position)
                    self._run_again(position, listener, back, taping=True, outer=outer)
                    shown.update()
                    end = position
                    while len(self.kept) > 1 and self.kept[-1].position >= end:
                        self._drop()
        finally:
            session.launches = launches
            self._count_replays()

    def _count_replays(self) -> None:
        if self._replay is not None:
            replays, captures = self._replay.replays, self._loop.captures
            self.report.captured = self.report.captured._replace(replays=replays, captures=captures)

    def _restore(self, outer: CustomSweep) -> int:
        snapshot = self.kept[-1]
        for buffer, region in self.first.regions:
            outer.overwriting(buffer, region)
        self.first.put_back(snapshot.known)
        if snapshot.copies is not self.first:
            snapshot.copies.put_back()
        return snapshot.position

    def _run_again(
        self,
        t: int,
        listener: Listener,
        back: Request,
        *,
        taping: bool,
        outer: CustomSweep | None = None,
    ) -> None:
        self.report.recomputed += 1
        session.launches = self._seeds[t]  # the same draws
        if self._replay_captured(t, outer):
            return
        runner = _Runner(self, listener, t, taping=taping, again=True)
        self._run(t, runner)
        runner.take_gradients_back()
        if outer is not None:
            try:
                runner.lost_values(self.lost)
                outer.adjoints.use(runner.shadows)
                sweep = runner.sweep(back)
                if outer.needed_around is not None:
                    sweep.lasting = LastingWrites(runner.events, outer.needed_around)
                sweep.run_within(outer.adjoints, self.wanted)
            except KernelFiniteError as error:
                error.notes = (*error.notes, Note(f"in step({t}) of this loop", self.span))
                raise
            finally:
                runner.forget()

    def _replay_captured(self, t: int, outer: CustomSweep | None) -> bool:
        """Run a step again, and its gradient, as the captured one; gives whether it has run."""
        replay = self._replay
        try:
            if replay is None or replay.written(t) is None:
                return False
        except CaptureError as error:
            raise self.differs(t, error.message, self.span) from error
        replay.run(t)
        if outer is not None:
            outer.adjoints.use(replay.step.gradients)
            try:
                replay.reverse()
            except KernelFiniteError as error:
                error.notes = (*error.notes, Note(f"in step({t}) of this loop", self.span))
                raise
        return True

    def differs(self, t: int, how: str, span: Span) -> DifferentiationError:
        """What to raise for a step that is not the same again, at `span`."""
        return DifferentiationError(
            f"step({t}) did something else when it was run again, so its gradient would not be right: {how}",
            span,
            hint="let it depend on its number and on fields alone: what changes otherwise, such as random numbers or a "
            "clock, can be put into a list before the loop",
            notes=[] if span == self.span else [Note("the loop", self.span)],
        )

    def _release(self) -> None:
        self.kept.clear()
        self.first = RegionCopies()
        self._later_bytes = 0
        self._replay = None


def _refuse_old_values(arguments: Arguments) -> None:
    refuse_old_values(arguments, "may be others when a step of this loop runs again", "the kernel's loop")


class _Listener(Observer):
    """Tells the chain of all that a step overwrites."""

    sees_every_write = True

    def __init__(self, tell: Listener) -> None:
        self._tell = tell

    def overwriting(self, buffer: Buffer, region: IndexRegion | None, *, exempt: bool) -> None:
        self._tell(buffer, region)


def _checksum(buffer: Buffer) -> int:
    return memory_of(buffer).checksum()


class _StepTrace(Trace):
    """The trace of one step. Its numbers have the same `labels` when the step is run again, in the order of their
    making; those that Python has computed get theirs when the events are compared.
    """

    __slots__ = ("labels",)

    def __init__(self, chain: _Chain) -> None:
        super().__init__(outer=chain.outer, family=chain)
        self.labels: dict[int, int] = {}

    def new(self, value: float, tangent: float = 0.0) -> Traced:
        found = super().new(value, tangent)
        self.label(found.number)
        return found

    def label(self, number: int) -> int:
        """That of a number."""
        return self.labels.setdefault(number, len(self.labels))


class _StepActivity(Activity):
    """The activity in one step: memory that another one has activated is active, but not the gradients and duals that
    it has left. `valued`: those that hold values of this step.
    """

    __slots__ = ("_span", "valued")

    def __init__(self, chain: _Chain) -> None:
        super().__init__(GRADIENT)
        self.hold(chain.active)
        self._span = chain.span
        self.valued: set[Buffer] = set()

    def use_shadow(self, buffer: Buffer) -> None:
        if buffer.primal is not None and buffer in self.spans and buffer not in self.valued:
            raise DifferentiationError(
                f"a step of this loop uses '{buffer.name}' as another step has left it, which is not kept",
                self._span,
                hint="copy it into a field of its own in the step that computes it",
            )


class _UsedByStep(UsedMemory):
    """The memory that one step has used, behind others: every field holds values that were perhaps computed or read."""

    __slots__ = ("_before", "_is_first", "_recorded")

    def __init__(self, events: Sequence[Event], chain: _Chain, t: int, *, taping: bool) -> None:
        super().__init__(events)
        self._is_first = t == 0
        self._before = chain.touched_before
        self._recorded = set[Buffer]() if taping else chain.recorded

    def touched_before(self) -> set[Buffer]:
        return super().touched_before() | self._before if self._is_first else living_buffers()

    def touches(self, buffer: Buffer) -> bool:
        return not self._is_first or buffer in self._before or super().touches(buffer)

    def computed_before(self, buffer: Buffer) -> bool:
        """Whether a launch with a gradient has written to the field: a step is judged when it first runs."""
        return buffer in self._recorded


class _Runner(Journal):
    """The recorder of one step, which runs for the first time or `again`. Unless `taping`, it keeps nothing and notes
    for the chain what the step is made of.
    """

    trace: _StepTrace
    activity: _StepActivity

    def __init__(self, chain: _Chain, listener: Listener, t: int, *, taping: bool, again: bool = False) -> None:
        super().__init__([_Listener(listener)], fit=chain.fit, trace=_StepTrace(chain))
        self.activity = _StepActivity(chain)
        self.memory = _UsedByStep(self.events, chain, t, taping=taping)
        self.is_inner = chain.is_inner
        self._chain = chain
        self._t = t
        self._taping = taping
        self._made: dict[Buffer, int] = {}  # results of derivatives within the step, by their order
        self._position = chain.log.begin_of(t) if again else None  # of what it did next when it first ran
        self._followed = 0  # the number of events that are compared
        self._different: DifferentiationError | None = None
        self._seen = {buffer: _checksum(buffer) for buffer in chain.viewed}  # what fields with views hold

    # ---- the same again

    def did(self, what: What, word: int = 0) -> None:
        """The step has done this. Raises `DifferentiationError` where it did something else when it first ran."""
        if self._followed < len(self.events):
            self._follow()
        self._compare(what, word)

    def _compare(self, what: What, word: int) -> None:
        log = self._chain.log
        if self._position is None:
            log.add(what, word)
        elif self._position >= 0:
            position, self._position = self._position, self._position + 1
            if log.is_same(position, what, word):
                return
            how = log.difference(position, what, word, rounds=self._rounds)
            if how is not None:
                self._position = -1
                self._different = self._chain.differs(self._t, how, self._chain.span if what is END else caller())
                raise self._different

    @property
    def _rounds(self) -> bool:
        """Whether Python may have computed plain numbers of sums that threads have added up in any order."""
        config = session.config
        return bool(self.memory.looked_at or self.trace.labels) and (config.num_threads > 1 or config.arch == "gpu")

    def _follow(self) -> None:
        """Compare what Python has read and computed since."""
        if self._followed == len(self.events):
            return
        for event in self.events[self._followed :]:
            if isinstance(event, Read):
                self._compare(What("{} is read", (self._place(event.buffer, event.position),)), 0)
            elif isinstance(event, Computed):
                for k, one in enumerate(event.operands):
                    self._number("'{}' computes with", (event.rule.name, k), one)
                self.trace.label(event.number)
        self._followed = len(self.events)

    def _number(self, verb: str, subjects: tuple[Any, ...], one: Any) -> None:
        if type(one) is not Traced or not one.number:
            kind, word = number_word(stored(one))
        elif one.trace is self.trace:
            kind, word = "n", self.trace.label(one.number)
        else:
            kind, word = "n", one.number
            subjects = (*subjects, "from outside")
        self._compare(What(verb, subjects, kind), word)

    def took_launch(self, instance: Instance, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        specialisation = instance.specialisation
        count = len(specialisation.arrays)
        if self._chain.viewed:
            touched = arguments_of(instance, constants(values)).accesses
            self._look_at_views(touched.loaded | touched.accumulated | touched.written)
        given = [self._made.get(bound.buffer, bound.buffer) for bound in values[:count]]
        self.did(What("{} is launched", (specialisation, *given)))
        if count:
            for name, numbers in arrays_of_others(specialisation.arrays, values):
                self._array(f"'{name}'", numbers)
        for k, one in enumerate(values[count:]):
            self._number("{} is launched with", (specialisation, k), one)

    def took_write(self, buffer: Buffer, position: Any, value: Any, source: Buffer | None) -> None:
        """Python is about to write to a field."""
        where = self._place(buffer, position)
        if source is not None:
            self.did(What("{} is copied from {}", (where, self._place(source, ...))))
        elif value is None:
            self.did(What("{} is computed", (where,)))
        elif self.trace.numbers_in(value, buffer, self.activity.spans) is None:
            self._follow()
            self._array(where, np.asarray(stored(getattr(value, "values", value))))
        else:
            self._follow()
            given = traced_array(value)
            for k, one in enumerate(given.ravel().tolist()):
                self._number("{} is given, as its number {}," if given.ndim else "{} is given", (where, k), one)

    def _place(self, buffer: Buffer, position: Any) -> ElementPosition | Made:
        order, found = self._made.get(buffer), place(buffer, position)
        return found if order is None else Made(order, str(found))

    def _array(self, where: ElementPosition | Made | str, numbers: np.ndarray[Any, Any]) -> None:
        if not numbers.ndim:
            self._number("{} is given", (where,), numbers.item())
            return
        for k, kind, word in array_words(numbers):
            self._compare(What("{} is given" if k < 0 else "{} is given, as its number {},", (where, k), kind), word)

    def took(self, name: str, parts: Iterable[Any]) -> None:
        """A derivative inside is given these by Python, or has done this."""
        self._follow()
        for part in parts:
            if isinstance(part, str | Specialisation):
                self._compare(What("{} runs within {}", (part, name)), 0)
            elif isinstance(part, int | float):
                self._number("{} is given", (name,), part)
            elif isinstance(part, np.ndarray):
                self._array(name, np.asarray(stored(part)))

    def _look_at_views(self, touched: Collection[Buffer] | None = None) -> None:
        """What was written through arrays that share the memory of fields, by default of all."""
        for buffer in self._chain.viewed:
            if touched is None or buffer in touched:
                now = _checksum(buffer)
                if now != self._seen.get(buffer):
                    self._seen[buffer] = now
                    self.did(What("{} is given, through an array of its memory,", (buffer,), "c"), now)

    def end(self) -> None:
        """The step has returned."""
        if self._chain.viewed:
            self._look_at_views()
        if self.trace.taken_in:
            used = hash(frozenset(self.trace.taken_in)) & 0xFFFFFFFF
            self.did(What("it uses, from outside of the loop,", (), "c"), used)
        self.did(END)
        if self._different is not None:  # the step has not let it pass
            raise self._different

    # ---- what happens

    def launching(self, instance: Instance, values: tuple[Any, ...]) -> Any:
        """A kernel is about to be launched."""
        self._chain.count += 1
        self.took_launch(instance, values)
        if self._taping:
            return super().launching(instance, values)
        given, flow = values, flow_of(self.trace, instance, values, tangents=False)
        if flow is not None:
            values = constants(values)
        arguments = self.activity.arguments(instance, values, self.derivative, has_numbers=flow is not None)
        look_for_plain(self.trace, given, arguments)
        arrays = arguments.arrays
        chain = self._chain
        arguments.refuse_shared()
        touched = arguments.accesses
        key = (
            instance.specialisation,
            flow is None,
            *[None if isinstance(b, ExternalArray) else self._made.get(b, b) for b, _ in arrays],
        )
        if key not in chain.launches:
            for buffer in touched.written:
                if isinstance(buffer, ExternalArray):
                    raise DifferentiationError(
                        f"a step of this loop writes to '{buffer.name}', an array that is not tinote's own: it cannot "
                        "be brought back to run the step again",
                        chain.span,
                        hint="use a field or a ti.ndarray",
                        notes=[Note("the kernel", instance.specialisation.source.span)],
                    )
            # Refuses what has no gradient at its first launch, not at the end.
            _refuse_old_values(arguments.plain or arguments)
            chain.loaded |= set(own(touched.loaded)) - self._made.keys()
            chain.recorded |= touched.written - self._made.keys()
        chain.launches[key] = arguments  # the later, the more memory may be active
        for buffer, region in observed_arguments(instance, values).written(values):
            if buffer not in self._made:
                self.overwriting(buffer, region)
        return flow

    def launched(self) -> None:
        """The launch has completed."""
        for buffer in self._chain.viewed:
            self._seen[buffer] = _checksum(buffer)
        if self._taping:
            super().launched()

    def custom(self, custom: Custom) -> None:
        """A block with a custom gradient has completed."""
        self._look_at_views()
        self.did(What("'{}' runs", (custom.name,)))
        for buffer in custom.made:
            self.making(buffer)
        if self._taping:
            super().custom(custom)
            return
        self.activity.note_in(custom)
        known = self._chain.customs.setdefault(custom.span, custom)
        known.active |= custom.active
        known.effects.loaded |= custom.loaded
        known.effects.written |= custom.written - custom.made
        self._chain.loaded |= custom.loaded - self._made.keys()
        self._chain.recorded |= custom.written - self._made.keys()

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        self.took_write(buffer, position, value, source)
        if self._taping:
            super().writing(buffer, position, value, source)
            return
        self.overwriting(buffer, region_at(buffer, position))
        if source is None:
            is_active = self.trace.numbers_in(value, buffer, self.activity.spans) is not None
            if is_active:
                self._chain.given.add(buffer)
        else:
            self._chain.copies.add((source, buffer))
            is_active = self.activity.follows(source)
            if source in self._chain.lost and not self.activity.follows(buffer) and not buffer.no_adjoint:
                self._chain.lost.setdefault(buffer, caller())
        if is_active and buffer not in self.activity.spans:
            self.activity.gets_active(buffer, caller())

    def making(self, buffer: Buffer, of: Buffer | None = None) -> None:
        if of is None or of in self._made:
            self._made.setdefault(buffer, len(self._made))

    def reading(self, buffer: Buffer, position: tuple[int, ...], value: Any) -> Any:
        self._chain.read.add(buffer)
        return super().reading(buffer, position, value)

    def keep_gradients_apart(self) -> None:
        super().keep_gradients_apart()
        around = self._chain.around
        if around is not None:
            around.keep_gradients_apart()

    @property
    def shadows_with_values(self) -> set[Buffer]:
        return set(self.activity.valued)

    def has_values(self, shadows: Collection[Buffer], span: Span) -> None:
        super().has_values(shadows, span)
        self.activity.valued.update(shadows)

    def sharing(self, buffer: Buffer) -> None:
        self._chain.viewed[buffer] = None
        self._seen.setdefault(buffer, _checksum(buffer))
        super().sharing(buffer)
