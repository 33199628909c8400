"""Owners of gradients and duals: a thread, task or live view never clears those that another one has computed.

A gradient or dual belongs to the owner (`runtime/owner.py`) that last computed it, and to the session if that is not
known. While recordings of several owners are open, each also says what it uses: where two of them use the same, one
gets an error with the lines of both.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from tinote.errors import DifferentiationError, Note
from tinote.ir.nodes import Buffer
from tinote.lang.session.state import Recorder, forget_gradients, independent_recordings, memory_of, recorder, session
from tinote.runtime.clearing import clear_memories
from tinote.runtime.memory import Memory
from tinote.runtime.owner import SESSION, Owner, present_owner
from tinote.source import NOWHERE, Span
from tinote.system import register_at_fork

# ---- what is whose


class _Collected:
    """What was found out for an owner: right until fields or owners change, or one of the `others`, whom it depends on,
    is over.
    """

    __slots__ = ("found", "others")

    def __init__(self, found: Any, others: Set[Owner]) -> None:
        self.found = found
        self.others = others

    @property
    def is_current(self) -> bool:
        return not any(one.is_over for one in self.others)


def own_gradients(mine: Owner | None = None) -> dict[Buffer, Memory]:
    """Every living field's gradient, but those that another owner than this one, by default the present one, computed,
    and those of arrays that stand in for the caller's in a function that is differentiated.
    """
    mine, known = mine or present_owner(), session.gradients
    collected: _Collected | None = known.get(("grad", mine))
    if collected is None or (collected.others and not collected.is_current):
        gradients = [f.grad for f in list(session.fields) if f.has_grad and not f.stands_in]
        collected = known["grad", mine] = _owned(mine, gradients)
    return collected.found  # type: ignore[no-any-return]


def own_duals() -> dict[Buffer, Memory]:
    """Every living field's dual, those of gradients included, but those that another owner computed."""
    found: dict[Buffer, Memory] = _owned(present_owner(), [f.dual for f in list(session.fields) if f.has_dual]).found
    return found


def _owned(mine: Owner, shadows: Iterable[Any]) -> _Collected:
    found, others = dict[Buffer, Memory](), set[Owner]()
    for one in shadows:
        owner = owner_of(one.buffer)
        if mine.includes(owner):
            found[one.buffer] = one.memory
        else:
            others.add(owner)
    return _Collected(found, others)


def owner_of(shadow: Buffer) -> Owner:
    """Who has computed a gradient or dual."""
    if not session.has_owners:
        return SESSION
    return session.owners.get(shadow, SESSION).successor


def is_only_owner() -> bool:
    """Whether all gradients and duals are the present owner's."""
    mine = present_owner()
    if not (session.has_owners and session.owners):
        return mine.includes(SESSION)
    known = session.gradients
    collected: _Collected | None = known.get(mine)
    if collected is None or not collected.is_current:
        others = {one.successor for one in (SESSION, *session.owners.values())}
        others = {one for one in others if not mine.includes(one)}
        collected = known[mine] = _Collected(not others, others)
    only: bool = collected.found
    return only


def needs_no_claims(owner: Owner | None = None) -> bool:
    """Whether it goes without saying that this owner, by default the present one, computes a gradient: the session
    does, and nobody else.
    """
    return not session.has_owners and (owner or present_owner()) is SESSION


def coming_into_being() -> AbstractContextManager[object]:
    """A block in which fields, gradients and duals come into being, in one thread after the other."""
    return _lock


def claim(shadows: Iterable[Buffer], *, clear: bool = False) -> dict[Buffer, Owner]:
    """These gradients and duals belong to the present owner from now on. Gives those to whom they belonged. `clear`:
    what was another's is set to zero first.
    """
    found: dict[Buffer, Owner] = {}
    if needs_no_claims():
        return found
    mine = present_owner()
    with _lock:
        for buffer in shadows:
            owner = session.owners.get(buffer, SESSION)
            if owner is not mine:
                found[buffer] = owner
                session.owners[buffer] = mine
                session.has_owners = True
                if clear and not mine.includes(owner):  # those of owners that were over at the start are its own
                    memory_of(buffer).clear()
        if found:
            forget_gradients()
    return found


def give_back(owners: Mapping[Buffer, Owner]) -> None:
    """These gradients and duals belong to these owners again."""
    with _lock:
        session.owners.update(owners)
        forget_gradients()


def clear_own_gradients(recording: Recorder | None = None) -> None:
    """Set those gradients to zero that no other owner computes. `recording`: an open one, for which that is done; what
    it interrupts does not compute them either.
    """
    with _lock:
        gradients = own_gradients(None if recording is None else recording.owner)
        if recording is not None and recording.interrupts:
            gradients = _not_in_use(gradients, recording.interrupts)
        clear_memories(gradients.values(), _threads)
        if session.has_owners:
            _inherit(gradients)


def _threads() -> int:
    config = session.config
    return 1 if config.arch == "python" else config.num_threads


def clear_own_duals(interrupts: Sequence[Recorder] = ()) -> None:
    """The same of duals, those of gradients included."""
    with _lock:
        duals = _not_in_use(own_duals(), interrupts)
        clear_memories(duals.values())
        if session.has_owners:
            _inherit(duals)


def _not_in_use(shadows: dict[Buffer, Memory], interrupts: Iterable[Recorder]) -> dict[Buffer, Memory]:
    for other in interrupts:
        used = other.shadows
        shadows = {one: memory for one, memory in shadows.items() if one not in used}
    return shadows


def _inherit(shadows: Iterable[Buffer]) -> None:
    """Of these, those of owners that are over belong to the present one from now on."""
    claim([one for one in shadows if session.owners.get(one, SESSION).is_over])


def take_all_gradients() -> None:
    """Every living field's gradient belongs to the present owner from now on."""
    if not is_only_owner():
        claim([f.grad.buffer for f in list(session.fields) if f.has_grad])


# ---- what open recordings use


class Replay:
    """What was recorded, as one native call: the memory that it reads or writes, and what it writes."""

    __slots__ = ("thread", "touched", "written")

    def __init__(self, touched: Iterable[Memory], written: Iterable[Memory]) -> None:
        self.touched = frozenset(map(id, touched))
        self.written = frozenset(map(id, written))
        self.thread = 0

    def begin(self) -> bool:
        """It is about to run, until `end`; waits for others in the same memory. Gives whether it may: no recording is
        open.
        """
        self.thread = get_ident()
        _replays.append(self)
        if len(_replays) > 1:
            _wait_for_replays(self)
        return not open_recordings

    def end(self) -> None:
        """It is over."""
        _replays.remove(self)
        if _waiting:
            with _change:
                _change.notify_all()

    def meets(self, other: Replay) -> bool:
        """Whether one of them writes what the other one uses."""
        return not (self.written.isdisjoint(other.touched) and self.touched.isdisjoint(other.written))


class _Ended:
    """A recording that ended before others that are still open, which must not use what it has computed."""

    __slots__ = ("open_meanwhile", "owner", "shadows", "span")

    def __init__(self, recording: Recorder, open_meanwhile: Iterable[Recorder]) -> None:
        self.owner = recording.owner
        self.span = recording.opened or NOWHERE
        self.shadows = frozenset(recording.shadows)
        self.open_meanwhile = weakref.WeakSet(open_meanwhile)


#: Of all owners: recordings that are open, and those that have ended while some of them are open.
open_recordings: list[weakref.ref[Recorder]] = []
_ended: list[_Ended] = []
#: what is replayed of what was recorded before, of which no recording is notified, and how many wait for that
_replays: list[Replay] = []
_waiting = 0
_lock = threading.RLock()
_change = threading.Condition(_lock)
#: what recordings interrupt that are opened in this context
_interrupts: ContextVar[Sequence[Recorder]] = ContextVar("tinote_interrupts", default=())
#: how many seconds a recording waits for others, of which none ends meanwhile: they may wait for this one
PATIENCE = 300.0


def _after_fork() -> None:
    """Other threads, one of which may have had the lock, are not in this process."""
    global _lock, _change, _waiting
    _lock = threading.RLock()
    _change = threading.Condition(_lock)
    _waiting = 0
    _ended.clear()
    _replays[:] = [one for one in _replays if one.thread == get_ident()]
    own = present_owner()
    open_recordings[:] = [one for one in open_recordings if (found := one()) is not None and found.owner is own]


register_at_fork(after_in_child=_after_fork)


def open_recording(recording: Recorder) -> None:
    """A recording begins, or goes on: when no other thread replays any longer."""
    reference = recording.reference
    if reference is None:
        recording.owner = present_owner()
        recording.thread = get_ident()
        reference = recording.reference = weakref.ref(recording, _is_gone)
        interrupts = _interrupts.get()
        if interrupts and not recording.interrupts:
            recording.interrupts = interrupts
        recording.met = None
    elif reference in open_recordings:
        return
    open_recordings.append(reference)
    if _replays:
        _wait_for_replays()


def interrupted() -> list[Recorder]:
    """The recordings that what is opened now interrupts: a signal handler's. They compute derivatives in this thread,
    where no recording goes on or the launch that is being recorded has begun.
    """
    around, own, thread = recorder.get(), present_owner(), get_ident()
    if around is not None and around.under_way is None:
        return []
    found = [one for one in _all_open() if one.owner is own and one.thread == thread]
    return [one for one in found if one.is_using or one is around]


@contextmanager
def interrupting(recordings: Sequence[Recorder]) -> Iterator[None]:
    """A block whose recordings interrupt these, and do not belong to the one that this context sees."""
    token = _interrupts.set(recordings)
    try:
        with independent_recordings():
            yield
    finally:
        _interrupts.reset(token)


def _is_gone(reference: weakref.ref[Recorder]) -> None:
    """An interrupt has kept a recording from its end."""
    if reference in open_recordings:
        open_recordings.remove(reference)


def _wait_for_replays(replay: Replay | None = None) -> None:
    """Wait until none runs in another thread; of one of them, none that began before in the same memory."""
    global _waiting
    own = get_ident()
    with _change:
        _waiting += 1
        try:
            while any(one.thread != own for one in _before(replay)):
                _change.wait()
        finally:
            _waiting -= 1


def _before(replay: Replay | None) -> list[Replay]:
    known = list(_replays)
    return known if replay is None else [one for one in known[: known.index(replay)] if one.meets(replay)]


def close_recording(recording: Recorder, *, failed: bool = False) -> None:
    """It is over. `failed`: nobody will read what it has computed."""
    own = recording.reference
    if own is None or own not in open_recordings:
        return
    if len(open_recordings) == 1 and not _ended:
        recording.is_using = False
        open_recordings.remove(own)
        recording.reference = None  # it may go on as another owner's
        if not open_recordings:  # else another one has come, and may wait
            return
    with _change:
        if own in open_recordings:
            open_recordings.remove(own)
        recording.reference = None
        if recording.is_using and recording.leaves and not failed and (others := _others(recording)):
            _ended.append(_Ended(recording, others))
        recording.is_using = False
        for one in list(_ended):
            one.open_meanwhile.discard(recording)
            if not one.open_meanwhile:
                _ended.remove(one)
        _change.notify_all()


def use(recording: Recorder, shadows: Collection[Buffer] | None = None) -> None:
    """An open recording is about to compute these of its `shadows`, by default all. Waits for others to be through
    with them, where they leave nothing there. Raises `DifferentiationError` where another owner's recording computes
    some of them, too, where waiting could last for ever, and where nothing has ended for `PATIENCE` seconds.
    """
    holds, recording.is_using = recording.is_using, True
    if len(open_recordings) == 1 and not _ended:
        return
    assert recording.owner is not None, "it has been opened"
    if shadows is None:
        shadows = recording.shadows
    with _change:
        # Who waits uses nothing meanwhile, so that nobody waits for it.
        while (met := _met(recording, shadows)) is not None:
            recording.is_using = holds
            buffer, other, may_end = met
            others_wait = any(one.is_using for one in _all_open() if one.owner is recording.owner)
            if holds or not may_end or others_wait or not _change.wait(PATIENCE):
                raise _both(recording, buffer, other)
            recording.is_using = True


def refuse_same_values(recording: Recorder) -> None:
    """Raise `DifferentiationError` where an open recording of another owner has read or written what this one writes,
    or has written what it reads. That one is refused, too, when it asks.
    """
    if len(open_recordings) > 1:
        for other in _others(recording):
            buffer = recording.meeting(other)
            if buffer is not None:
                interrupts = other in recording.interrupts
                other.met = buffer, recording.opened or NOWHERE, interrupts
                raise both_use(recording, f"'{buffer.name}'", other.opened or NOWHERE, interrupts)
    if recording.met is not None:
        buffer, span, interrupts = recording.met
        raise both_use(recording, f"'{buffer.name}'", span, interrupts)


def _met(recording: Recorder, shadows: Collection[Buffer]) -> tuple[Buffer, Span, bool] | None:
    """What another recording computes of these, where that was opened, and whether it will be over, and leave nothing
    there: one of this thread cannot go on while this one waits.
    """
    for other in _others(recording):
        if other.is_using and (both := set(shadows).intersection(other.shadows)):
            may_end = not other.leaves and other.thread != recording.thread
            return min(both, key=_name), other.opened or NOWHERE, may_end
    for ended in _ended if recording.leaves else ():
        if recording in ended.open_meanwhile and (both := ended.shadows.intersection(shadows)):
            return min(both, key=_name), ended.span, False
    return None


def _all_open() -> list[Recorder]:
    return [found for one in list(open_recordings) if (found := one()) is not None]


def _others(recording: Recorder) -> list[Recorder]:
    """Those of other owners, and those that it interrupts. A thread's recording goes on in a task that it has opened:
    that is no other one.
    """
    own = recording.owner
    found = [one for one in _all_open() if one.owner is not own]
    found = [one for one in found if own is None or one.owner is None or not own.runs_within(one.owner)]
    return [*found, *recording.interrupts]


def _name(buffer: Buffer) -> str:
    return buffer.name


def both_use(recording: Recorder, what: str, other: Span, interrupts: bool = False) -> DifferentiationError:
    """The error of two recordings that use the same memory at the same time."""
    whose, hint = "of different threads or tasks", "give each of them fields of its own, or run one after the other"
    if interrupts:
        whose = "where one interrupts the other (in a signal handler)"
        hint = "give each of them fields of its own, or let the handler set a flag that the program looks at"
    return DifferentiationError(
        f"{what} is used by two recordings {whose} at the same time",
        recording.opened or NOWHERE,
        hint=hint,
        notes=[Note("the other one", other)],
    )


def _both(recording: Recorder, buffer: Buffer, other: Span) -> DifferentiationError:
    kind = "dual" if buffer.primal is not None and buffer.primal.tangent is buffer else "gradient"
    name = buffer.name if buffer.primal is None else buffer.primal.name
    return both_use(recording, f"the {kind} of '{name}'", other, bool(recording.interrupts))
