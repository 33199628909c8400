"""Tapes that record the same launches again and again (`repeats=True`) become plans, as functional derivatives do.

    for _ in range(1000):
        with ti.ad.Tape(loss, repeats=True):    # the first two just run; the third is recorded
            simulate()                          # the fourth runs beside the plan, and memory must agree bit for bit
                                                # from then on launches wait, and run at the end in one native call

What a block does is never known before it is over. So a launch that is the next one of the plan waits, as long as
nobody can tell: fields that waiting launches use have no array meanwhile, and whoever asks for it, for their memory or
for anything of the tape has the launches run first, one by one, as a tape does (`catch_up`). The block then is recorded
as usual. Before its first launch, a block may give fields plain numbers, the same each time.

A tape that becomes a plan shares the work of launches and their gradients, too (`autodiff/shared_values.py`).
"""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, NamedTuple

from tinote.errors import TinoteError, at_users_frames, users_trace
from tinote.ir.buffers import Buffer
from tinote.ir.cost import MIN_EXPENSIVE_COST
from tinote.ir.nodes import For, Prim
from tinote.ir.query import walk
from tinote.ir.types import is_float
from tinote.lang.ad.journal.events import Launch
from tinote.lang.capture.automatic import LARGEST_STATE
from tinote.lang.capture.explore import capturing
from tinote.lang.capture.planned import MOST_STEPS, PLAIN_CALLS, Attempt, CallSignature, MemoryPlan, may_plan
from tinote.lang.capture.recording import Listening, Tables
from tinote.lang.capture.straight import StraightDependencies
from tinote.lang.data.fields import Field
from tinote.lang.session.state import BufferCache, recorder, session
from tinote.program.program import Program
from tinote.program.simplify import simplified
from tinote.runtime.seam import seam
from tinote.source import Span

#: How often a block is tried, and how much oftener than its plan has run it may do something else.
_MOST_TRIES = 4
#: How many places with tapes are known.
_MOST_PLACES = 64
#: A tape of fewer launches takes no longer by itself, unless the values that it shares have at least these bytes.
FEWEST, LEAST_SHARED = 4, 32 << 10


class Written(NamedTuple):
    """A field that got a plain number before the first launch."""

    buffer: Buffer
    position: Any
    value: Any


class Launched(NamedTuple):
    """A launch. `types`: of those of its values that are numbers, at the end; `zero`: whether there are zeros among
    them, of which there are two.
    """

    instance: weakref.ref[Any]
    values: tuple[Any, ...]
    types: list[type]
    zero: bool

    def is_again(self, instance: Any, values: tuple[Any, ...]) -> bool:
        """Whether a launch does the same to memory."""
        if instance is not self.instance() or values != self.values:
            return False
        if not self.types:
            return True
        numbers = values[len(values) - len(self.types) :]
        if list(map(type, numbers)) != self.types:
            return False
        return not self.zero or all(map(_is_same, numbers, self.values[len(values) - len(self.types) :]))


def _is_same(a: Any, b: Any) -> bool:
    return a != 0 or math.copysign(1.0, a) == math.copysign(1.0, b)


class TapePlace:
    """What is known of a place where tapes are opened. `expected`: what their blocks do, in order. Of the tape that was
    recorded, `copied`, `kept` and `active` are what it tells of itself. It holds no kernels, which hold fields.
    """

    def __init__(self, places: BufferCache, place: Any, options: Any) -> None:
        self._places = places
        self._place = place
        self.options = options
        self.calls = 0
        self.expected: list[Written | Launched] = []
        self.plan: MemoryPlan | None = None
        self.copied: list[tuple[int, Buffer, int]] = []
        self.kept = 0
        self.may_share = False
        self.active: dict[Buffer, Span] = {}
        self.buffers: frozenset[Buffer] = frozenset()
        self._tries = self._misses = 0
        self._fields: list[weakref.ref[Field]] = []
        self._known: Any = None

    def give_up(self) -> None:
        """There will be no plan."""
        self._places[self._place] = OVER
        self.plan = None
        self.expected, self.copied, self._fields = [], [], []

    def keep_for(self, buffers: Sequence[Buffer]) -> None:
        """It goes when one of these does."""
        session.keep_for(buffers, self._places, self._place)

    def has_run(self, events: Sequence[Any]) -> None:
        """The last tape that just runs has recorded this: whether that may become a plan."""
        plain = all(map(_is_plain, events))
        self.may_share = plain and any(_may_share(event.instance) for event in events)
        if not plain or (len(events) < FEWEST and not self.may_share):
            self.give_up()

    def tried(self) -> None:
        """There is no plan any more, or not yet."""
        self._tries += 1
        self.plan = None
        if self._tries >= _MOST_TRIES:
            self.give_up()

    def differs(self) -> None:
        """A block has done something else than what is expected."""
        self._misses += 1
        if self.plan is None or self._misses > _MOST_TRIES + self.plan.runs:
            self.give_up()

    def fields(self) -> list[Field]:
        """The fields in whose memory waiting launches read or write."""
        if self._known is not session.gradients:  # fields came or went
            touched = {id(session.memories[buffer].whole) for buffer in self.buffers}
            found = [f for f in session.fields if f.is_placed and id(f.memory.whole) in touched]
            self._fields = [weakref.ref(f) for f in found]
            self._known = session.gradients
        return [field for one in self._fields if (field := one()) is not None]


#: In place of an entry: there will be no plan.
OVER = "over"


def begin(tape: Any, place: tuple[str, int]) -> Callable[[], object] | None:
    """A tape that is opened at `place` is about to record. Gives what is to be called as soon as it does, if it may
    become a plan.
    """
    loss = tape.loss
    places = loss._tapes
    if places is None:
        places = loss._tapes = BufferCache()
    entry = places.get(place)
    if entry is None:
        if len(places) >= _MOST_PLACES:
            places.clear()
        entry = places[place] = TapePlace(places, place, tape.options)
    if entry is OVER:
        return None
    entry.calls += 1
    if entry.calls == PLAIN_CALLS:
        return lambda: tape.look(entry)
    if entry.calls < PLAIN_CALLS or seam.listener is not None or tape.observes or not may_plan():
        return None
    plan = entry.plan
    if tape.options != entry.options:
        return None
    if plan is not None and plan.is_proved:
        return None if session.ahead is not None else lambda: Ahead(tape, entry, plan)
    if plan is not None and not plan.is_current():
        entry.tried()
        return None
    return (lambda: Noted(tape, entry)) if capturing.acquire(blocking=False) else None


def _may_share(instance: Any) -> bool:
    """Whether a kernel may compute what its gradient would compute again."""
    operations = list(walk(instance.specialisation.lowered.function.region))
    if not any(isinstance(op, For) for op in operations):
        return False
    return any(
        (isinstance(op, Prim) and op.prim.cost >= MIN_EXPENSIVE_COST and bool(op.outs) and is_float(op.outs[0].type))
        or (isinstance(op, For) and not op.parallel)
        for op in operations
    )


# ---- finding out


class _Attempt(Attempt):
    """Hears a block. What is not the tape's own is refused."""

    def __init__(self, tables: Tables, tape: Any) -> None:
        super().__init__(tables, (), False)
        self._tape = tape

    def _hear(self, told: Any, *what: Any) -> None:
        if recorder.get() is not (self._tape if self._tape.is_recording else None):
            self.refuse("what others do meanwhile")
        super()._hear(told, *what)

    def launch(self, code: Any, values: Any) -> Any:
        if recorder.get() is not (self._tape if self._tape.is_recording else None):
            self.refuse("what others do meanwhile")
        return super().launch(code, values)

    def reading(self, array: Any, position: Any, value: Any) -> Any:
        self.refuse("a number that Python reads")
        return value

    def copied(self, array: Any, what: str) -> Any:
        self.refuse(what)
        return array


class Noted:
    """A block that is recorded, or runs beside its plan."""

    def __init__(self, tape: Any, entry: TapePlace) -> None:
        self.tape = tape
        self.entry = entry
        self.noted: list[Written | Launched] = []
        self._plan, self._tables, self._launches = Program(), None, session.launches
        self._is_open, self._is_refused = True, False
        self._thread = get_ident()
        if entry.plan is None:
            self._tables = Tables(self._plan)
            listener = self._attempt = _Attempt(self._tables, tape)
            shares = entry.may_share
        else:
            self._before = [memory.copy() for memory in entry.plan.memories]
            listener, shares = Listening(), entry.may_share
        if shares:
            tape.share_work()
        tape.note(self)
        seam.listener = listener

    # ---- what the tape tells

    def launching(self, instance: Any, values: tuple[Any, ...]) -> None:
        """A kernel is about to be launched."""
        arrays = len(instance.specialisation.arrays)
        external = any(bound.buffer is None for bound in values[:arrays])
        if external or instance.primal.results or instance.needs_seed or instance.writes_copies:
            self.refuse()
        numbers = values[arrays:]
        zero = any(isinstance(one, float) and one == 0 for one in numbers)
        self.noted.append(Launched(weakref.ref(instance), values, list(map(type, numbers)), zero))

    def writing(self, buffer: Buffer, position: Any, value: Any, source: Buffer | None) -> None:
        """Python is about to write to a field."""
        if source is not None or type(value) not in (int, float) or (self.noted and type(self.noted[-1]) is Launched):
            self.refuse()
        self.noted.append(Written(buffer, position, value))

    def refuse(self) -> None:
        """The block does what no plan does."""
        self._is_refused = True
        self.entry.give_up()
        if self._is_open and get_ident() == self._thread:
            self._finish()

    # ---- the end

    def end(self, failed: bool) -> None:
        """The block is over and, unless it has failed, differentiated."""
        if not self._is_open:
            return
        self._finish()
        entry = self.entry
        launches = [one for one in self.noted if type(one) is Launched]
        if failed or self._is_refused or not launches or len(self.noted) > MOST_STEPS:
            entry.give_up()
        elif entry.plan is not None:
            self._prove(entry, entry.plan)
        else:
            self._make(entry, launches)

    def _finish(self) -> None:
        self._is_open = False
        seam.listener = None
        if self._tables is not None:
            self._attempt.close()
        capturing.release()

    def _make(self, entry: TapePlace, launches: Sequence[Launched]) -> None:
        """Make a plan of what was heard."""
        attempt, tables, events = self._attempt, self._tables, self.tape.events
        attempt.finish(())
        taped = [(weakref.ref(e.instance), e.values) for e in events if type(e) is Launch]
        same = taped == [one[:2] for one in launches]
        shared = [e.old_values.nbytes for e in events if type(e) is Launch and e.old_values is not None]
        few = len(launches) < FEWEST and sum(shared) < LEAST_SHARED
        too_much = few or len(attempt.steps) > MOST_STEPS
        if attempt.refused is not None or not same or too_much or not all(map(_is_plain, events)):
            entry.give_up()
            return
        assert tables is not None
        plan = self._plan
        plan.root.steps = simplified(plan, attempt.steps, attempt.launched)
        touched = frozenset([b for event in events for b in event.touched])
        fields = [f for f in session.fields if f.is_placed and f.buffer in touched]
        made = MemoryPlan(plan, tables, _no_dependencies(), attempt, CallSignature((), [], [], fields), None)
        made.forget_instances()
        size = made.nbytes + sum([memory.nbytes for memory in made.memories])
        if size > LARGEST_STATE:
            entry.give_up()
            return
        entry.expected, entry.plan = self.noted, made
        entry.copied, entry.kept = self.tape.saved.copied, self.tape.saved.nbytes
        entry.active = self.tape.active
        entry.buffers = touched
        entry.keep_for([*made.buffers, *touched])

    def _prove(self, entry: TapePlace, plan: MemoryPlan) -> None:
        """Run the plan from where the block has begun, and trust it if it does the same."""
        if self.noted != entry.expected:
            entry.tried()
            return
        left = [memory.copy() for memory in plan.memories]
        for memory, copy in zip(plan.memories, self._before, strict=True):
            memory.restore(copy)
        agrees = False
        try:
            with contextlib.suppress(TinoteError):
                plan.run((), counts=False)
                agrees = all(a.view() == b.view() for a, b in zip(plan.memories, left, strict=True))
        finally:
            for memory, copy in zip(plan.memories, left, strict=True):
                memory.restore(copy)
            session.launches = self._launches
        plan.use(None)
        plan.is_proved = agrees
        if not agrees:
            entry.give_up()


def _is_plain(event: Any) -> bool:
    """Whether an event is a launch of which memory alone tells."""
    return type(event) is Launch and event.flow is None and not event.copies


def _no_dependencies() -> StraightDependencies:
    """Launches are compared, one by one: nothing else matters."""
    found = StraightDependencies()
    found.settle()
    return found


# ---- waiting


class Ahead:
    """The launches of a block that wait. `at`: how much of what is expected has come."""

    def __init__(self, tape: Any, entry: TapePlace, plan: MemoryPlan) -> None:
        self.tape = tape
        self.at = 0
        self._entry = entry
        self._plan = plan
        self._expected = entry.expected
        self._came: list[tuple[Any, tuple[Any, ...]]] = []
        self._hidden: list[tuple[dict[str, Any], Any, Any]] = []
        self._lock = threading.RLock()  # other threads may want to see what launches leave
        self._waits = True
        self._replaying: int | None = None
        tape.wait(self)

    # ---- what a kernel does with it

    def launching(self, instance: Any, values: tuple[Any, ...]) -> Any:
        """A kernel is about to be launched under the tape."""
        with self._lock:
            if self._waits:
                if self.at < len(self._expected):
                    wanted = self._expected[self.at]
                    if type(wanted) is Launched and wanted.is_again(instance, values):
                        if session.ahead is not self:
                            self._hide()
                        self.at += 1
                        self._came.append((instance, values))
                        return self
                self.catch_up()
        return self.tape.launching(instance, values)

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """It waits."""
        return ()

    def launched(self) -> None:
        """And is taken to be over; unless it did not wait."""
        if not self._waits:
            self.tape.launched()

    def writing(self, buffer: Buffer, position: Any, value: Any = None, source: Buffer | None = None) -> None:
        """Python is about to write to a field, and does so at once."""
        with self._lock:
            if self._waits:
                if self.at < len(self._expected):
                    wanted = self._expected[self.at]
                    given = Written(buffer, position, value)
                    if type(wanted) is Written and source is None and type(value) is type(wanted.value):
                        if given == wanted and _is_same(value, wanted.value):
                            self.at += 1
                            return
                self.catch_up()
        self.tape.writing(buffer, position, value, source)

    def _hide(self) -> None:
        """From now on fields lack what the launches leave."""
        for field in self._entry.fields():
            held = field.__dict__
            self._hidden.append((held, held.pop("_array", None), held.pop("memory", None)))
        session.ahead = self

    def show(self) -> None:
        """Fields have their arrays again."""
        if session.ahead is self:
            session.ahead = None
        for held, array, memory in self._hidden:
            if array is not None:
                held.setdefault("_array", array)
            if memory is not None:
                held.setdefault("memory", memory)
        self._hidden = []

    def catch_up(self) -> None:
        """Somebody wants to see what the launches leave: run them, each by itself, as a tape does. Other threads wait
        until that is done.
        """
        with self._lock:
            if not self._waits:
                return
            self._waits = False
            self._entry.differs()
            self._replaying = get_ident()
            try:
                self._replay()
            finally:
                self._replaying = None
                self.show()
                self._let_go()

    @property
    def is_replaying(self) -> bool:
        """Whether it is this thread that runs the launches now."""
        return self._replaying == get_ident()

    def _let_go(self) -> None:
        """From now on it is a tape as any other."""
        self._waits = False
        self.tape.go_on()
        self.tape.__dict__.pop("ahead", None)  # which knows the tape

    def _replay(self) -> None:
        tape = self.tape
        for one in self._expected[: self.at]:
            if isinstance(one, Written):
                tape.writing(*one)
        for instance, values in self._came:
            tape.under_way = instance, values
            native = tape.launching(instance, values) or instance.primal
            native.launch(values)
            tape.launched()
        tape.under_way = None

    # ---- the end

    def end(self, failed: bool) -> bool:
        """The block is over, and the tape stops. Gives whether the plan has done all that remains to be done."""
        with self._lock:
            tape, plan, entry = self.tape, self._plan, self._entry
            if failed or self.at < len(self._expected):
                self.catch_up()
                tape.stop()
                return False
            self.show()
            self._let_go()
        tape.stop()
        if not plan.is_current():
            entry.tried()
            self._replay()
            return False
        tape.was_planned(self._came, entry)
        try:
            plan.run((), counts=False)
        except TinoteError as error:
            raise error.with_traceback(users_trace(error)) from None
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None
        return True
