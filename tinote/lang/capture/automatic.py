"""Automatic capture of a step that is called repeatedly, such as that of a live view; it is replayed where that has the
same effects as a call.

The user has not requested the capture, cells of a notebook run between calls, and no call may be made only for
validation. So each call counts, and is made once:

- The function is read (`dependencies.py`), and its first calls are watched: what it calls, and what changes
  in Python. A step with effects other than on memory and numbers always runs as a function.
- Further calls are recorded while they run (`recording.Following`). Branches are added as calls take them.
- A path is validated by calls that take it: memory is copied before, afterwards the plan is replayed on the copies, and
must leave the same memory as the function, bit for bit.
- From then on it is replayed, as long as its dependencies are unchanged. If one changes, the function runs again, and
is captured anew; a number in Python that has changed becomes a variable of the new program.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import Any

from tinote.errors import CaptureError
from tinote.lang.capture.agreement import Agreement
from tinote.lang.capture.attempts import CANNOT, Attempts, StepCapture, runs_plainly
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.dependencies import Dependencies
from tinote.lang.capture.explore import capturing, merge
from tinote.lang.capture.guards import Guards
from tinote.lang.capture.instructions import NOWHERE_READY
from tinote.lang.capture.recording import Following, Tables, kind_of
from tinote.lang.capture.rehearsal import Rehearsal
from tinote.lang.capture.trial import place_of_function
from tinote.lang.capture.watching import Watch, may_watch
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import recorder, session
from tinote.program import operations as ops
from tinote.program.overflow import may_overflow
from tinote.program.program import Path, Program
from tinote.runtime.memory import readable_size

LONGEST_STEP = 0.02
"""A step that takes longer, in seconds, is not captured: a replay would save almost nothing, and its validation takes
several times as long.
"""

LARGEST_STATE = 256 << 20
"""The most bytes of memory that are copied to validate a step."""

#: Number of validations of a path before it is replayed.
_PROOFS = 2
#: Number of calls that are watched, or recorded, without new findings.
_PATIENCE = 8
_MOST_PATHS = 64
_BITS = Agreement()


class AutomaticCapture:
    """A call has the effects of `function()`; the result is discarded."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._attempts = Attempts[_Live]()
        self._dependencies: Dependencies | None = None
        self._learning: _Learning | None = None
        #: by place: numbers in Python that have changed, and those that cannot be variables
        self._variables: set[tuple[int, Any]] = set()
        self._constants: set[tuple[int, Any]] = set()
        self._expected: list[Dependencies] = []
        self._is_checked = False
        self._watched = 0
        self._replays = 0
        if isinstance(function, CapturedFunction):
            self._attempts.refuse(CaptureError("it is a program of ti.capture"))

    @property
    def how(self) -> StepCapture:
        """How calls run."""
        return self._attempts.how(self._replays)

    @property
    def moves_memory_alone(self) -> bool:
        """Whether the next call is expected to be a replay that changes no number in Python."""
        live = self._attempts.program
        return live is not None and not live.changes_numbers

    def expect_changes(self, function: Callable[..., object]) -> None:
        """`function` is called between calls: the numbers in Python that it assigns are variables from the start."""
        dependencies = Dependencies()
        with contextlib.suppress(CaptureError):  # its other effects are real
            dependencies.scan(function)
        self._variables |= dependencies.assigned.keys()
        self._expected.append(dependencies)  # which keeps alive what holds them

    def renew(self) -> None:
        """Check the dependencies before the next call. Afterwards they are assumed to be unchanged until a call runs as
        the function.
        """
        self._is_checked = False
        live = self._attempts.program
        if live is not None:
            live.count_calls()

    def __call__(self) -> None:
        live = self._attempts.program
        if live is not None:
            if self._is_checked or live.guards.hold():
                self._is_checked = True
                if live.replay():
                    self._replays += 1
                    return
            elif live.guards.broken() is not None:
                live.count_calls()
                self._start_anew(live.guards.dependencies)
            else:  # gradients have another owner, or a tape is open elsewhere
                self._function()
                return
        self._is_checked = self._attempts.is_given_up and self._is_checked
        if not self._may_learn() or not capturing.acquire(blocking=False):
            self._function()
            return
        try:
            self._learn()
        finally:
            capturing.release()

    def _may_learn(self) -> bool:
        attempts = self._attempts
        if attempts.is_given_up and not self._is_checked:
            self._is_checked = self._dependencies is None or not self._dependencies.changed_code()
            if not self._is_checked:
                attempts.resume()
                self._forget()
        if not attempts.may_try() or recorder.get() is not None or session.watchers:
            return False
        return may_watch() and not runs_plainly()

    def _start_anew(self, dependencies: Dependencies) -> None:
        """Start again after a change between two calls."""
        self._variables.update(one for one in dependencies.changed_numbers() if one not in self._constants)
        self._attempts.change()
        self._forget()

    def _forget(self) -> None:
        """Forget what was learned."""
        self._learning = self._dependencies = None
        self._watched = 0

    def _refuse(self, error: CaptureError) -> None:
        """Run the step as a function from now on, unless the reason is a number that was made a variable."""
        if self._variables:
            self._constants |= self._variables
            self._variables.clear()
            self._learning = self._dependencies = None
            return
        self._attempts.refuse(error)
        self._learning = None

    def _strike(self, error: CaptureError) -> None:
        """Note a call with unexpected effects."""
        self._attempts.strike(error)
        if not self._attempts.is_given_up:
            self._forget()

    # ---- learning

    def _learn(self) -> None:
        """Call the function, and learn from it."""
        if self._dependencies is not None and self._dependencies.changed() is not None:
            self._start_anew(self._dependencies)
        if self._attempts.waits > 0:
            self._function()
            return
        if self._learning is not None:
            self._record(self._learning)
            return
        try:
            dependencies = self._dependencies
            if dependencies is None:
                dependencies = self._dependencies = Dependencies(unasked=True)
                dependencies.scan(self._function)
            for identity, key in self._variables & dependencies.numbers.keys():
                dependencies.assign(dependencies.numbers[identity, key][0], identity, key)
            dependencies.settle()
        except CaptureError as error:
            self._refuse(error)
            self._function()
            return
        self._observe(dependencies)

    def _observe(self, dependencies: Dependencies) -> None:
        """Watch a call."""
        generation, fields = session.generation, len(session.fields)
        begin = time.perf_counter()
        with Watch(dependencies, _notes) as watch:
            self._function()
        seconds = time.perf_counter() - begin
        self._watched += 1
        try:
            if watch.refused is not None:
                raise watch.refused
            changed = dependencies.changed()
            if changed is not None:
                self._strike(_changes(f"a call changes '{changed}' in Python", self._function))
                return
            has_new = watch.read_called()
        except CaptureError as error:
            self._refuse(error)
            return
        if (session.generation, len(session.fields)) != (generation, fields):
            if self._watched == _PATIENCE:
                self._refuse(_changes("fields come or go at each call", self._function))
        elif has_new or self._watched == 1:  # the first call compiles
            if self._watched == _PATIENCE:
                self._refuse(_changes("each call runs through other functions", self._function))
        elif seconds > LONGEST_STEP:
            self._refuse(_changes(f"it takes {1000 * seconds:.0f} ms, nearly all in kernels", self._function))
        else:
            self._learning = _Learning(self._function, dependencies)

    def _record(self, learning: _Learning) -> None:
        """Record a call, and prove with it what is known."""
        try:
            is_new = learning.call()
            live = learning.live() if is_new else None
        except _Unexpected as unexpected:
            self._strike(unexpected.error)
            return
        except _Refused as refused:
            self._refuse(refused.error)
            return
        if is_new:
            if live is not None:
                before = self._attempts.program
                if before is not None:
                    before.count_calls()
                self._attempts.found(live)
        elif learning.idle >= _PATIENCE:
            self._refuse(learning.why_idle())


class StepAhead:
    """A captured step that can be run ahead of time, for a look at what it will do."""

    def __init__(self, step: CapturedFunction) -> None:
        self._step = step

    @contextlib.contextmanager
    def undone(self) -> Iterator[Callable[[], object] | None]:
        """What runs the step on the CPU; at the end of the block all is as it was before. None where something has
        changed since it was captured. Raises `CaptureError`.
        """
        program = contextvars.Context().run(self._program)
        if program is None:
            yield None
            return
        with session.on_cpu(), program.undone():
            yield lambda: program.run(())

    def _program(self) -> Captured | None:
        found = self._step.captured()
        return found if found.guards.are_owned else None


def _notes(error: CaptureError) -> None:
    """Record a call that counts."""


def _changes(what: str, function: Any) -> CaptureError:
    return CaptureError(f"{CANNOT}{what}", place_of_function(function))


class _Refused(Exception):
    """The step cannot be captured."""

    def __init__(self, error: CaptureError) -> None:
        super().__init__(error)
        self.error = error


class _Unexpected(_Refused):
    """The step cannot be captured by this call, but perhaps by another one."""


class _Learning:
    """The findings of recorded calls so far. `idle`: the number of calls in a row without anything new."""

    def __init__(self, function: Callable[[], object], dependencies: Dependencies) -> None:
        self.idle = 0
        self._function = function
        self._dependencies = dependencies
        self._variables = list(dependencies.assigned.values())
        self._plan = Program()
        self._tables = Tables(self._plan)
        self._kinds: str | None = None
        self._proofs: dict[Path, int] = {}
        self._calls: dict[Path, list[tuple[Any, int]]] = {}
        #: by the identity of a step, the variables before it
        self._marks: dict[int, tuple[ops.Operand, ...]] = {}
        self._rehearsal = Rehearsal(self._plan, self._tables)

    def _is_ready(self, path: Path) -> bool:
        return self._proofs.get(path, 0) >= _PROOFS

    def call(self) -> bool:
        """Call the function. Returns whether anything is new. Raises `_Refused`, after the call."""
        tables, plan, variables = self._tables, self._plan, self._variables
        try:
            values = [holder[key] for holder, key in variables]
            kinds = "".join([kind_of(value) for value in values])
        except (LookupError, ValueError):
            kinds = ""
        if kinds != (self._kinds or kinds) or len(kinds) != len(variables):
            self._function()
            raise _Unexpected(_changes("a number that it changes becomes one of another kind", self._function))
        self._kinds = kinds
        blocks = len(plan.blocks)
        try:
            self._rehearsal.take()
        except MemoryError as error:
            self._function()
            raise _Refused(_changes(str(error), self._function)) from None
        generation = session.generation
        recording = Following(tables, variables)
        with Watch(self._dependencies, recording.give_up) as watch:
            updates = self._call(recording)
        try:
            path, is_new = self._merged(recording, watch, updates)
        except CaptureError as error:
            raise (_Refused if recording.refused is error else _Unexpected)(error) from None
        if session.generation != generation:
            raise _Unexpected(_changes("fields come or go", self._function))
        if is_new:
            self._rehearsal.forget_plan()
            self._calls[path] = recording.calls
            self._marks.update({id(step): mark for step, mark in zip(recording.steps, recording.marks, strict=True)})
        elif len(plan.blocks) == blocks and not self._is_ready(path):
            self._prove(path, values)
            is_new = True
        self.idle = 0 if is_new else self.idle + 1
        return is_new

    def _call(self, recording: Following) -> tuple[tuple[int, ops.Operand], ...]:
        """Call the function with traced numbers in its variables; returns their new values."""
        self._plan.inputs = recording.take_in(self._variables)
        try:
            recording.run(self._function)
            return recording.updates(self._variables, self._plan.inputs)
        except BaseException:
            recording.close()
            raise
        finally:
            for holder, key in self._variables:
                if type(holder[key]) is Traced:
                    holder[key] = holder[key].value

    def _merged(
        self, recording: Following, watch: Watch, updates: tuple[tuple[int, ops.Operand], ...]
    ) -> tuple[Path, bool]:
        """The path that a call took, and whether it is new. Raises `CaptureError`."""
        try:
            if recording.refused is None:
                recording.end(None, updates)
            if recording.refused is not None:
                raise recording.refused
        finally:
            recording.close()
        if watch.read_called():
            raise _changes("a call runs through other functions", self._function)
        if len(self._dependencies.assigned) > len(self._variables):
            raise _changes("a call changes other numbers", self._function)
        changed = self._dependencies.changed()
        if changed is not None:
            raise _changes(f"a call changes '{changed}' in Python", self._function)
        path = merge(self._plan.root, recording.steps)
        if len(self._plan.root.all()) > _MOST_PATHS:
            recording.refused = _changes("it decides too many conditions on numbers that it reads", self._function)
            raise recording.refused
        is_new = path not in self._proofs
        self._proofs.setdefault(path, 0)
        if is_new:
            span = may_overflow(self._plan)
            if span is not None:
                recording.refused = CaptureError(
                    "this cannot be captured: integers of more than 64 bits may arise here", span
                )
                raise recording.refused
            size = sum([memory.nbytes for memory in self._tables.memories if memory is not None])
            if size > LARGEST_STATE:
                what = f"its fields take {readable_size(size)}, which a proof would have to copy"
                recording.refused = _changes(what, self._function)
                raise recording.refused
        return path, is_new

    def _prove(self, path: Path, values: list[Any]) -> None:
        """Validate the plan. Raises `_Unexpected` if the effects differ."""

        def is_same(end: ops.End) -> bool:
            number = self._rehearsal.prepared.number
            now = [(operand, *self._variables[place]) for place, operand in end.updates]
            pairs = [(number(one), holder[key]) for one, holder, key in now]
            return end is path.steps[-1] and all(type(a) is type(b) and _BITS.of_values(a, b) for a, b in pairs)

        difference = self._rehearsal.difference(values, is_same)
        if difference is not None:
            raise _Unexpected(_changes(difference, self._function))
        self._proofs[path] += 1

    def live(self) -> _Live | None:
        """The program, as soon as one of its paths may be taken. Raises `_Refused`."""
        if not any(self._is_ready(path) for path in self._proofs):
            return None
        try:
            instances = list(self._tables.instances.values())
            guards = Guards(self._plan, self._dependencies, instances, self._tables.memories)
        except CaptureError as error:  # a kernel captures what cannot be compared
            raise _Refused(_changes(error.message.removeprefix(CANNOT), self._function)) from None
        known = self._plan, self._tables, self._variables, guards, self._is_ready
        return _Live(self._function, *known, self._calls, self._marks)

    def why_idle(self) -> CaptureError:
        """Why calls are not replayed although their path is validated."""
        for path in self._plan.root.all():
            if path.branch is not None and len(path.sides) == 1:
                what = "this depends on numbers in fields, and one side of it was not met"
                return CaptureError(f"this cannot be captured: {what}", path.branch.span)
        return _changes("its replay was refused", self._function)


class _Live(Captured):
    """A program that is replayed on its validated paths."""

    def __init__(
        self,
        function: Callable[[], object],
        plan: Program,
        tables: Tables,
        variables: list[tuple[Any, Any]],
        guards: Guards,
        ready: Callable[[Path], bool],
        calls: dict[Path, list[tuple[Any, int]]],
        marks: dict[int, tuple[ops.Operand, ...]],
    ) -> None:
        super().__init__(function, (), plan, tables, variables, guards, ready)
        self.replays = 0
        self._marks = marks
        by_end = {id(path.steps[-1]): path for path in plan.root.all() if path.branch is None and path.steps}
        self._calls = [calls.get(by_end[id(end)], []) for end in self.prepared.ends]
        self._counts = [0] * len(self._calls)

    @property
    def changes_numbers(self) -> bool:
        """Whether it may change numbers in Python."""
        return any(end.updates for end in self.prepared.ends)

    def replay(self) -> bool:
        """Replay it. Returns whether it ran; if not, there were no effects."""
        try:
            for holder, key, kind, _, _ in self._globals:
                if type(holder[key]) is not (float if kind == "f" else int):
                    return False
            self.take(())
        except (LookupError, CaptureError):
            return False
        try:
            reached = self.go()
        except BaseException:
            self._leave(self.prepared.failed)
            raise
        if reached == NOWHERE_READY:
            return False
        self.finish(reached)
        self._counts[reached] += 1
        self.replays += 1
        return True

    def _leave(self, step: ops.Operation | None) -> None:
        """Restore the variables after a failed step."""
        number = self.prepared.number
        for (holder, key), operand in zip(self._variables, self._marks.get(id(step), ()), strict=False):
            holder[key] = number(operand)

    def count_calls(self) -> None:
        """Count the launches of the kernels."""
        for reached, count in enumerate(self._counts):
            if count:
                for instance, calls in self._calls[reached]:
                    instance.calls += calls * count
                self._counts[reached] = 0
