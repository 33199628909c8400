"""Captures steps as tapes run them: forwards and, in the reverse sweep, backwards (`captured_steps.py`).

The function runs under a journal of its own, followed by a reverse sweep, while a listener records both, on both sides
of each condition. The program is cut where the function returned. It is validated like other captures: some calls and
their reverse sweep, from several states, are compared with those of the function, bit for bit.

A step that cannot be captured like this runs as a function, and is recorded launch by launch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tinote.compiler.requests import GRADIENT, SHARED_GRADIENT
from tinote.errors import CaptureError, DifferentiationError, TinoteError
from tinote.ir.buffers import Buffer
from tinote.lang.ad.journal.broken_path import LostValues
from tinote.lang.ad.journal.captured_steps import Choice, StepFacts, StepUnderTape, Touching, Way
from tinote.lang.ad.journal.events import Custom, Read, Write
from tinote.lang.ad.journal.saved_values import RecordedLaunch, living_buffers
from tinote.lang.ad.journal.temporary_adjoints import SweepAdjoints
from tinote.lang.capture.attempts import Attempts, StepCapture
from tinote.lang.capture.captured import Captured
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.dependencies import Dependencies
from tinote.lang.capture.explore import proved
from tinote.lang.capture.guards import Guards
from tinote.lang.capture.recording import Recording, Symbol, Tables
from tinote.lang.capture.trial import CALLS, VARIATIONS, Left, Trial, place_of_function, vary
from tinote.lang.data.fields import Field
from tinote.lang.data.layout import array_over
from tinote.lang.data.matrix import Matrix
from tinote.lang.data.nests import leaves, map_leaves
from tinote.lang.data.traced import Traced, constants
from tinote.lang.data.traced_derivatives import Dual
from tinote.lang.index_regions import region_at
from tinote.lang.session.state import are_viewed, may_replay, memory_of, recording_as, session
from tinote.program import operations as ops
from tinote.program.interpret import OPERATIONS
from tinote.program.program import Path, Program
from tinote.runtime.pool import ALIGNMENT
from tinote.runtime.seam import active_listener, listened
from tinote.source import Span, caller

#: Greatest number of forms of one step: of kinds of arguments, with and without values that gradients could compute.
_MOST_FORMS = 32
#: Least number of saved bytes that the gradient could recompute from which on recomputing is faster. Measured.
LEAST_SHARED = 128 << 10


class RecordedCall(NamedTuple):
    """A recorded call: where the function returned, and the facts about its path."""

    end: ops.Operation
    facts: StepFacts
    seeds: tuple[ops.Register, ...]


class StepsUnderTapes:
    """The captured forms of a function under tapes, each for a kind of arguments. `last`: the form of the last call
    that has had one; `spent`: what its launches have cost in Python as a step of checkpointed loops, in seconds.
    """

    def __init__(self) -> None:
        self.last: StepUnderTape | None = None
        self.spent = 0.0
        self._asked = Attempts[StepUnderTape]()
        self._known: dict[Any, Attempts[StepUnderTape]] = {}

    def __reduce__(self) -> Any:
        """In another process, and in a copy of who has it, nothing is known."""
        return StepsUnderTapes, ()

    @property
    def how(self) -> StepCapture:
        """How its last call ran."""
        program = self._asked.program
        return self._asked.how(0 if program is None else program.replays)

    @property
    def captures(self) -> int:
        """How often it was captured."""
        return sum([one.captures for one in self._known.values()])

    def form(
        self,
        key: tuple[Any, ...],
        capture: Callable[[bool], StepUnderTape],
        may_share: Callable[[int], bool] | None = None,
        *,
        anew: bool = False,
    ) -> StepUnderTape | None:
        """The form for arguments of this kind; None where the function is to run. `capture` makes it, perhaps with
        saved values that gradients could compute; `may_share`: whether that many bytes of them may be saved, by default
        none. `anew`: it is captured anew where something has changed that it depends on.
        """
        found = self._form(key, may_share is not None, capture, anew)
        if found is not None:
            self.last = found
            if may_share is not None and not may_share(found.shared_bytes):
                found = self._form(key, False, capture, anew)
        return found

    def _form(
        self, key: tuple[Any, ...], shares: bool, capture: Callable[[bool], StepUnderTape], anew: bool
    ) -> StepUnderTape | None:
        attempts = self._known.get((key, shares))
        if attempts is None:
            if len(self._known) == _MOST_FORMS:
                return None
            attempts = self._known[key, shares] = Attempts()
        found = attempts.program
        if anew and found is not None and found.forward.guards.broken() is not None:
            attempts.change()
        self._asked = attempts
        return attempts.tried(lambda: capture(shares))


def step_for(
    program: CapturedFunction, args: tuple[Any, ...], kwargs: dict[str, Any], journal: Any, make: Callable[[], Any]
) -> tuple[StepUnderTape, tuple[Any, ...]] | None:
    """The captured form of a step for a journal, and its arguments; captures it if needed. None where the function is
    to run. `make`: makes a new journal. Raises `CaptureError` for one that is out of date.
    """
    known = program.under_tapes or steps_of(program)
    last, may_share = known.last, journal.saved.may_share
    filled = program.filled(args)
    if (
        last is not None
        and not kwargs
        and last.forward.takes(filled)
        and not last.inputs
        and last.active == journal.activity.spans.keys()
    ):
        if may_share(last.shared_bytes) and may_run(last, filled, journal, journal.memory.touches):
            return last, filled
    try:
        given, kinds = program.given(args, kwargs)
        active = tuple([type(one) is Traced and journal.trace.is_active(one) for one in given])
    except TinoteError:
        return None  # the function says so, or does without
    if any(isinstance(one, Field) and one.stands_in for one in given):
        return None  # another object at each call
    held = dict(journal.activity.spans)

    def capture(shares: bool) -> StepUnderTape:
        plain = tuple([one.value if type(one) is Traced else one for one in given])
        function, names = program.__tinote_step__, program.parameters
        return captured_under_tape(function, plain, active, names, make, held, shares=shares)

    found = known.form((*kinds, *active, frozenset(held)), capture, may_share)
    return (found, given) if found is not None and may_run(found, given, journal, journal.memory.touches) else None


def may_record_steps(journal: Any) -> bool:
    """Whether a captured step may be one record: no observer needs its launches."""
    return not (
        journal.observers
        or journal.keep
        or journal.derivative not in (GRADIENT, SHARED_GRADIENT)
        or not journal.saved.between_launches
        or journal.trace.has_taken_out
        or (session.watchers != [journal] and not may_replay((), journal))
        or (session.has_views and are_viewed())
    )


def steps_of(program: CapturedFunction) -> StepsUnderTapes:
    """The forms of a captured function under tapes."""
    if program.under_tapes is None:
        program.under_tapes = StepsUnderTapes()
    return program.under_tapes  # type: ignore[no-any-return]


def may_run(step: StepUnderTape, args: Sequence[Any], journal: Any, touches: Callable[[Buffer], bool]) -> bool:
    """Whether it may run in a journal: dependencies are unchanged, gradients have no other owner, no other recording is
    open, and it does not overwrite elements that its own gradient needs. `touches`: whether a field has been used
    before, as values that Python writes to it otherwise are its initial values. Raises `CaptureError` for one that is
    out of date.
    """
    if not step.forward.guards.hold(journal):
        step.forward.refuse_if_stale()
        return False
    if step.fixed is None and step.regions(args) is None:
        return False
    return not step.assigned or all(map(touches, step.assigned))


def record_step(journal: Any, step: StepUnderTape, args: Sequence[Any]) -> Any:
    """Run a captured step as one record of a journal."""
    trace, activity, journal.may_lose = journal.trace, journal.activity, True
    if trace.root.taken_out is not None:
        trace.note_plain(list(args), f"captured step '{step.name}'")
    regions = step.fixed or step.regions(args)
    assert regions is not None, "who calls it has asked"
    event = journal.saved.running(step, regions)
    may_replay(step.forward.guards.memories, journal)
    try:
        returned = event.run(constants(args) if Traced in map(type, args) else args)
    except BaseException:
        what = f"'{step.name}' has failed before its end, and went on from there: what it did is not recorded"
        journal.failed(DifferentiationError(what, step.span, "call the function itself, without `ti.capture`"))
        raise
    journal.saved.ran(event)
    journal.events.append(event)
    facts = event.way.facts
    for buffer, span in facts.activated.items():
        if buffer not in activity.spans:
            activity.activate(buffer, span)
    if step.inputs:
        event.sources = tuple([args[k].number for k in step.inputs])
    outputs = facts.outputs
    if True not in outputs:
        return returned
    numbers = [trace.new(one) if yes else one for one, yes in zip(numbers_in(returned), outputs, strict=True)]
    event.results = tuple([one.number for one, yes in zip(numbers, outputs, strict=True) if yes])
    return with_numbers(returned, iter(numbers))


def captured_under_tape(
    function: Any,
    given: tuple[Any, ...],
    active: tuple[bool, ...],
    names: Sequence[str],
    make: Callable[[], Any],
    held: Mapping[Buffer, Span],
    *,
    shares: bool = False,
    unasked: bool = False,
) -> StepUnderTape:
    """Capture a step and its reverse sweep. `active`: which of its arguments are differentiated; `make`: a new journal;
    `held`: memory without a gradient that holds differentiated values before; `shares`: launches save values that their
    gradients would recompute, if the step can be captured so; `unasked`: captured automatically (`captured`). Raises
    `CaptureError`.
    """
    shared: _Trial | None = None

    def trial_of(variables: list[tuple[Any, Any]]) -> _Trial:
        nonlocal shared
        trial = _Trial(function, given, variables, active, make, held)
        if shares:
            trial.shares, shared = True, trial
        return trial

    def made(trial: _Trial, plan: Program, tables: Tables, dependencies: Dependencies) -> StepUnderTape:
        instances = list(tables.instances.values())
        found = _cut(trial, plan, tables, Guards(plan, dependencies, instances, tables.memories, clears=False))
        trial.prove_reverse(found)
        found.use(None)
        return found

    with recording_as(None):
        try:
            return proved(function, names, trial_of, made, prints=not unasked, unasked=unasked)
        except TinoteError:
            if shared is None or not shared.shared_bytes:
                raise
        except Exception as error:  # of the function's own, with another number, or under a condition
            if not unasked:
                raise
            raise CaptureError(f"a trial of it raises {type(error).__name__}: {error}") from None
    # Perhaps because the sizes of its saved values depend on its arguments.
    return captured_under_tape(function, given, active, names, make, held, unasked=unasked)


class _Trial(Trial):
    """Runs a function and its reverse sweep. Gradients are nonzero before, so that missing contributions are detected.
    `shared_bytes`: the most bytes that a call has saved of values that its gradient could recompute.
    """

    shares = False
    shared_bytes = 0
    proved: StepUnderTape

    def __init__(
        self,
        function: Any,
        given: tuple[Any, ...],
        variables: list[tuple[Any, Any]],
        active: tuple[bool, ...],
        make: Callable[[], Any],
        held: Mapping[Buffer, Span],
    ) -> None:
        super().__init__(self._forth_and_back, given, variables, ())
        self.held = held
        self.step = function
        self.active = active
        self.recorded: list[RecordedCall] = []
        self._make = make
        self.place = place_of_function(function)

    def begin(self, variation: tuple[float, int] = VARIATIONS[0]) -> None:
        super().begin(variation)
        if self.is_open:
            for field in self.varied:
                if field.buffer.primal is not None and field.buffer.primal.adjoint is field.buffer:
                    vary(array_over(field.buffer, field.memory), variation)

    # ---- the call that is recorded

    def _forth_and_back(self, *args: Any) -> tuple[Any, ...]:
        """The function and its reverse sweep; returns the adjoints of active arguments."""
        listener = active_listener()
        recording = listener if isinstance(listener, Recording) else None
        if recording is not None:
            recording.may_choose = True
        journal = self._journal()
        given = self._numbers(journal, args)
        returned = self._run(journal, given)
        outputs = [one for one in numbers_in(returned) if _is_active(one)]
        flags = tuple([_is_active(one) for one in numbers_in(returned)])
        _refuse_updates([holder[key] for holder, key in self.variables])
        shared = journal.saved.shared_bytes
        if self.shares and not self.shared_bytes and shared < LEAST_SHARED:
            self.shares = False
            journal.forget()
            return self._forth_and_back(*args)
        self.shared_bytes = max(self.shared_bytes, shared)
        facts = _facts(journal, flags, self.held, recording, self.inputs)
        sweep, adjoints = journal.sweep(), _adjoints_of(facts, recording)
        journal.trace.close()
        if recording is None:
            seeds: list[Any] = [1.0] * len(outputs)
        else:
            recording.end(returned, self.updates(recording))
            registers = tuple([recording.register("f") for _ in outputs])
            self.recorded.append(RecordedCall(recording.steps[-1], facts, registers))
            seeds = [recording.number(register, 1.0) for register in registers]
        for one, seed in zip(outputs, seeds, strict=True):
            adjoints.add(one.number, Dual(seed))
        sweep.run_within(adjoints, facts.temporaries)
        journal.forget()
        return tuple([sweep.adjoint(one).value for one, is_active in zip(given, self.active, strict=True) if is_active])

    def _journal(self) -> Any:
        """A new journal, of a continuing program."""
        journal = self._make()
        journal.memory.starts_from(living_buffers())
        if self.shares:
            journal.share_work()
        for buffer, span in self.held.items():
            journal.activity.activate(buffer, span)
        return journal

    def _numbers(self, journal: Any, args: Sequence[Any]) -> list[Any]:
        return [journal.trace.new(one) if yes else one for one, yes in zip(args, self.active, strict=True)]

    def _run(self, journal: Any, given: Sequence[Any]) -> Any:
        with recording_as(journal):
            return self.step(*given)

    # ---- validation

    def prove_reverse(self, step: StepUnderTape) -> None:
        """Raise `CaptureError` unless calls and their gradients have the effects of those of the function."""
        self.proved = step
        for way in step.ways:
            way.use(step.forward, 1)
        self.prove(step.forward, list(map(memory_of, step.gradients)))

    def by_function(self) -> list[Left]:
        return self._outcome(self._as_function, self._as_function)

    def by_program(self, program: Captured) -> list[Left]:
        # Where differentiated values are written to memory, later calls start with other active memory.
        writes_active = any(way.facts.activated for way in self.proved.ways)
        return self._outcome(self._as_program, self._as_function if writes_active else self._as_program)

    def _as_function(self, journal: Any, given: Sequence[Any]) -> Any:
        return self._listened(lambda: self._run(journal, given))

    def _as_program(self, journal: Any, given: Sequence[Any]) -> Any:
        may_run = self.proved.regions(given) is not None
        return record_step(journal, self.proved, given) if may_run else self._as_function(journal, given)

    def difference(self, program: Captured, variation: tuple[float, int], at: int, a: Left, b: Left) -> CaptureError:
        name = "a call" if at < CALLS else "a gradient"
        return CaptureError(f"this cannot be captured: replayed, {name} does something else", self.proved.span)

    def _listened(self, act: Callable[[], Any]) -> Any:
        """Run a function with launches on one thread, as in a capture."""
        return listened(self.listening(), act)

    def _outcome(
        self, first: Callable[[Any, Sequence[Any]], Any], again: Callable[[Any, Sequence[Any]], Any]
    ) -> list[Left]:
        """The effects of calls and of their reverse sweep."""
        journal = self._journal()
        calls: list[Left] = []
        inputs: list[Traced] = []  # new gradients for each call: sums over calls may be rounded in another order
        outputs: list[Traced] = []
        for call in (first, *[again] * (CALLS - 1)):
            journal.saved.shared_bytes = 0  # as where it was recorded
            given = self._numbers(journal, self._arguments)
            inputs += [one for one in given if type(one) is Traced]
            returned = call(journal, given)
            outputs += [one for one in numbers_in(returned) if _is_active(one)]
            calls.append(self.left(constants(list(numbers_in(returned)))))
        sweep = journal.sweep()
        journal.trace.close()
        for k, one in enumerate(outputs):
            sweep.adjoints.add(one.number, Dual(0.5 + 0.25 * k))
        self._listened(sweep.run)
        adjoints = [sweep.adjoint(one).value for one in inputs]
        journal.forget()
        return [*calls, self.left(adjoints)]


# ---- results


def numbers_in(returned: Any) -> Iterator[Any]:
    """The numbers in what a step returns. Raises `CaptureError` for vectors of numbers that are differentiated."""
    for one in leaves(returned):
        if isinstance(one, Matrix) and any(map(_is_active, one.values.ravel().tolist())):
            raise CaptureError("this cannot be captured: it returns a vector that is differentiated", caller())
        if type(one) is Traced or isinstance(one, bool | int | float):
            yield one


def with_numbers(returned: Any, numbers: Iterator[Any]) -> Any:
    """A result with these numbers in place of its own."""
    return map_leaves(lambda one: next(numbers) if isinstance(one, bool | int | float) else one, returned)


def _is_active(value: Any) -> bool:
    return type(value) is Traced and value.number != 0 and value.trace.is_open


# ---- effects of a call


def _refuse_updates(values: Sequence[Any]) -> None:
    if any(map(_is_active, values)):
        raise CaptureError(
            "this cannot be captured: it assigns a number that is differentiated to a variable",
            caller(),
            hint="keep it in a field with a gradient",
        )


def _facts(
    journal: Any,
    outputs: tuple[bool, ...],
    held: Mapping[Buffer, Span],
    recording: Recording | None,
    inputs: Sequence[ops.Register],
) -> StepFacts:
    """The effects of the call in a journal. `held`: memory without a gradient that held differentiated values before;
    `inputs`: the input registers of a call. Raises `CaptureError` for effects that require a journal of each launch.
    """
    if journal.trace.has_taken_out:
        raise _refusal("it takes a plain number out of one that is differentiated")
    LostValues().follow(journal.events)
    launches: dict[int, Any] = {}
    loaded, written, assigned = set[Buffer](), set[Buffer](), set[Buffer]()
    overwritten = dict[tuple[Buffer, Any], None]()
    disturbed = dict[tuple[Buffer, Any], None]()
    moving = frozenset[Buffer]().union(*[e.arguments.moving for e in journal.events if _chooses(e)])
    choices = None if recording is None or not moving else _Choices(recording.steps, inputs)
    touching: list[Touching] = []
    for event in journal.events:
        if isinstance(event, RecordedLaunch):
            arguments = event.arguments
            if arguments.external_arrays:
                raise _refusal("a kernel is launched on an array that tinote does not own")
            if arguments.writes_shadows:
                raise _refusal("a kernel writes to gradients")
            launches[id(arguments)] = arguments
            loaded |= event.touched
            written |= event.written
            if choices is not None and moving & event.touched:
                touching.append(choices.touching(event))
            regions = arguments.fixed_regions or arguments.regions(event.values)
            overwritten.update(dict.fromkeys(regions.written))
            live_in = {buffer for buffer, _ in regions.live_in_before}
            disturbed.update(dict.fromkeys([one for one in regions.written if one[0] in live_in]))
        elif isinstance(event, Write):
            assigned.add(event.target)
            loaded.update(event.loaded)
            region = region_at(event.target, event.position)
            if region is not None:
                overwritten[event.target, region] = None
                touching.append(Touching(None, (), (), ((event.target, region),)))
        elif isinstance(event, Read):
            loaded.update(event.loaded)
        elif isinstance(event, Custom):
            raise CaptureError("this cannot be captured: it has a gradient of its own", event.span)
    log = journal.saved.log
    for entry in log.entries:
        if entry.buffer in moving:
            what = f"it overwrites elements of '{entry.buffer.name}' that its gradient needs, and others in other calls"
            raise _refusal(what)
    disturbed.update(dict.fromkeys([(entry.buffer, entry.region) for entry in log.entries]))
    for buffer, _ in disturbed:
        if buffer in moving:
            raise _refusal(f"a kernel overwrites elements of '{buffer.name}' that it reads, and others in other calls")
    touched = loaded | written | assigned
    return StepFacts(
        tuple(launches.values()),
        frozenset(loaded),
        frozenset(written | assigned),
        frozenset(assigned),
        tuple([one for one in log.needed if one[0] not in moving]),
        tuple([one for one in overwritten if one[0] not in moving]),
        tuple(disturbed),
        outputs,
        moving,
        tuple(touching) if moving else (),
        frozenset(touched & journal.activity.spans.keys()),
        {buffer: span for buffer, span in journal.activity.spans.items() if buffer not in held},
    )


def _chooses(event: Any) -> bool:
    """Whether an event is a launch whose accessed elements depend on the call of the step."""
    return isinstance(event, RecordedLaunch) and any(type(event.values[k]) is Traced for k in event.arguments.asked)


class _Choices:
    """Computes the numbers that determine the accessed elements of launches from the inputs of a call."""

    def __init__(self, steps: Sequence[ops.Operation], inputs: Sequence[ops.Register]) -> None:
        self._computed = {step.register: step for step in steps if isinstance(step, ops.Compute)}
        self._inputs = {register: k for k, register in enumerate(inputs)}

    def touching(self, event: RecordedLaunch) -> Touching:
        """The accessed elements of a launch. Raises `CaptureError` if they depend on other numbers."""
        values, choices = list(event.values), list[tuple[int, Choice]]()
        for k in sorted(event.arguments.asked):
            value = values[k]
            if type(value) is Traced and isinstance(value.symbol, Symbol):
                choices.append((k, self._of(value.symbol.register, event)))
                values[k] = value.value
        return Touching(event.arguments, tuple(values), tuple(choices))

    def _of(self, operand: ops.Operand, event: RecordedLaunch) -> Choice:
        if isinstance(operand, ops.Constant):
            number = operand.value
            return lambda inputs: number
        if operand in self._inputs:
            return operator.itemgetter(self._inputs[operand])
        step = self._computed.get(operand)
        if operand.kind != "i" or step is None:
            what = "which elements a kernel touches depends on a number that the step reads"
            raise CaptureError(f"this cannot be captured: {what}", event.span)
        act, parts = OPERATIONS[step.operation].value, [self._of(one, event) for one in step.operands]
        return lambda inputs: act(*[part(inputs) for part in parts])


def _adjoints_of(facts: StepFacts, recording: Recording | None) -> SweepAdjoints:
    """The adjoints that the enclosing sweep provides."""
    found = SweepAdjoints(facts.temporaries)
    for buffer in facts.temporaries if recording is not None else ():
        adjoint = found.of(buffer)
        assert adjoint is not None and recording is not None
        recording.borrow(memory_of(adjoint), adjoint.name, buffer)
    return found


def _refusal(what: str) -> CaptureError:
    return CaptureError(f"this cannot be captured: {what}", caller())


# ---- cutting


def _cut(trial: _Trial, plan: Program, tables: Tables, guards: Guards) -> StepUnderTape:
    """The two parts of the recorded program."""
    root, backs = _parts(plan.root)
    forward_blocks = _blocks(plan, root)
    uses = [_blocks(plan, back) for _, back in backs]
    kept = {
        number for number in forward_blocks.intersection(set().union(*uses)) if plan.blocks[number].kind == "scratch"
    }
    places, kept_bytes = {}, 0
    for number in sorted(kept):
        places[number] = kept_bytes
        kept_bytes += -(-plan.blocks[number].nbytes // ALIGNMENT) * ALIGNMENT
    by_end = {id(one.end): one for one in trial.recorded}
    ways: dict[int, Way] = {}
    for (end, back), used in zip(backs, uses, strict=True):
        recorded = by_end[id(end)]
        seeds = [register.number for register in recorded.seeds]
        outside = _inputs(back)
        inputs = [register for number, register in sorted(outside.items()) if number not in seeds]
        here = Program(_only(plan.blocks, used, kept), plan.codes, [*inputs, *recorded.seeds], back)
        numbers = [register.number for register in inputs]
        temporaries = {block: buffer for buffer, block in tables.borrowed_blocks.items() if block in used}
        ways[id(end)] = Way(
            recorded.facts, here, numbers, seeds, {k: places[k] for k in sorted(kept & used)}, temporaries
        )
    first = Program(_only(plan.blocks, forward_blocks, kept), plan.codes, plan.inputs, root)
    forward = Captured(trial.step, trial.given, first, tables, trial.variables, guards)
    in_order = [ways[id(end)] for end in forward.prepared.ends]
    return StepUnderTape(
        getattr(trial.step, "__name__", "step"),
        trial.place,
        forward,
        in_order,
        {number: places[number] for number in sorted(kept)},
        kept_bytes,
        trial.shared_bytes,
        [k for k, yes in enumerate(trial.active) if yes],
        frozenset(trial.held),
    )


def _parts(path: Path) -> tuple[Path, list[tuple[ops.End, Path]]]:
    """A path up to where the function returns, and from each of these ends on."""
    for at, step in enumerate(path.steps):
        if isinstance(step, ops.End):
            return Path(path.steps[: at + 1]), [(step, Path(path.steps[at + 1 :], path.branch, path.sides))]
    found = [(taken, _parts(side)) for taken, side in path.sides.items()]
    backs = [one for _, (_, further) in found for one in further]
    return Path(path.steps, path.branch, {taken: side for taken, (side, _) in found}), backs


def _blocks(plan: Program, root: Path) -> set[int]:
    return {block for step in root.operations for block in ops.used_by(plan.codes, step)}


def _only(blocks: Sequence[ops.Block], used: set[int], kept: set[int]) -> list[ops.Block]:
    """The blocks of one part: those of the other are empty, and shared ones are in the record's saved bytes."""
    return [
        ops.Block("input", block.name, block.nbytes)
        if number in kept
        else block
        if number in used or block.kind == "field"
        else ops.Block("unused", block.name, 0)
        for number, block in enumerate(blocks)
    ]


def _inputs(root: Path) -> dict[int, ops.Register]:
    """The registers that a part reads but does not set."""
    found: dict[int, ops.Register] = {}

    def of(path: Path, known: frozenset[int]) -> None:
        known_here = set(known)
        for step in path.steps:
            for operand in ops.read_by(step):
                if isinstance(operand, ops.Register) and operand.number not in known_here:
                    found[operand.number] = operand
            known_here.update(register.number for register in ops.set_by(step))
        if path.branch is not None and path.branch.register.number not in known_here:
            found[path.branch.register.number] = path.branch.register
        for side in path.sides.values():
            of(side, frozenset(known_here))

    of(root, frozenset())
    return found
