"""`ti.capture`: a function that runs kernels, as a program that runs again without Python.

    @ti.capture
    def substep(dt):
        with ti.ad.Tape(U):
            potential()
        advance(dt)

    substep(1e-3)

The first call runs the function under a listener (`recording.py`), both sides of each condition on numbers that it
reads, and makes a plan of what it hears (`plan.py`). The plan is proved: function and replay run from the same states,
for several values of the arguments, and all memory must agree bit for bit. Later calls replay it natively
(`prepare.py`), as long as what the function looked up has not changed (`dependencies.py`).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from tinote.errors import CaptureError, TinoteError, at_users_frames, users_trace
from tinote.lang.capture.dependencies import Dependencies, is_users_module, place_of, why_not
from tinote.lang.capture.how import StepCapture
from tinote.lang.capture.plan import (
    Clear,
    Copy,
    Decision,
    End,
    Fill,
    Launch,
    Operand,
    Path,
    Plan,
    Register,
    Result,
    Step,
)
from tinote.lang.capture.premises import Premises
from tinote.lang.capture.prepare import Prepared
from tinote.lang.capture.recording import Listening, Recording, Tables, Wary, blocks_of, kind_of
from tinote.lang.data.captured_arrays import CapturedArray
from tinote.lang.data.layout import array_over
from tinote.lang.data.matrix import Matrix, Vector
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import recorder, session
from tinote.runtime.launch import LaunchStopped, prints_to
from tinote.runtime.memory import ExternalMemory, Memory
from tinote.runtime.owner import current_owner
from tinote.runtime.seam import seam
from tinote.runtime.threads import stop_all
from tinote.source import NOWHERE, Span, caller

#: How often a function may be run to meet both sides of its conditions.
_MOST_PATHS = 64
#: How many calls follow each other in a trial, so that each but the first begins where another one has ended.
CALLS = 3
#: What floats among the arguments and in fields are multiplied by in a trial, and what integers among the arguments
#: are moved by.
VARIATIONS = ((1.0, 0), (0.75, 1), (1.25, -1))
#: Captures run one after the other: what one of them runs would be heard by another.
capturing = threading.RLock()
#: Seconds, compilation included, after which a function that nobody has asked to run is left; and seconds of a later
#: call from which on it is not captured, since it is proved by some twenty calls.
_LONGEST_FIRST_CALL, _LONGEST_WARY_CALL = 10.0, 0.05

_NUMBERS = (bool, int, float)

T = TypeVar("T")


def capture(function: Callable[..., Any] | None = None, *, parameters: Sequence[str] = ()) -> Any:
    """Make a program of a step: a function that launches kernels, differentiates, and reads and writes fields, which
    then runs again in one native call, without Python between its launches. Also a decorator.

    `function`: its arguments are the program's parameters. Those that are numbers may have other values at each call;
    others (fields, kernels, None, text) are the same object at each call, or there is one program for each.
    `parameters`: names of its module's globals that hold numbers and are read anew at each call; others are constants
    of the program, but for those that the function assigns, which are updated.

    The first call captures: launches, also of gradients, what a tape clears, saves and brings back, fills, copies,
    elements that are read and written, arithmetic on these numbers, conditions on them (both sides are tried), seeds
    of random numbers, what kernels print, arrays that `to_numpy` and derivatives give and that go to kernels and
    fields, and the numbers, vectors, arrays and tuples of these that are returned. It runs the function some times,
    while nothing else may run, and leaves memory as one call does. The program is proved before it is used: it runs
    beside the function from several states and with several values of its numbers, on one thread, and all fields must
    agree bit for bit.

    Gives a `Program`, which is called as the function is. Under a tape, and in `ti.ad.grad` and the like, each call is
    one record, and its gradient one native call, too; the derivatives are those of the function. It is captured and
    proved once more for that, with its reverse sweep. What only a tape that knows of each launch can differentiate runs
    as the function (custom gradients, fields without `needs_grad` on the way, elements that depend on an argument,
    tapes that check), which `program.how_under_tapes` tells. In forward mode, in another capture, and where kernels run
    as plain Python or are profiled, calling it runs the function. Raises `CaptureError`: at the user's line for what
    cannot be captured (a number that is needed itself, as an index or by `math.sin`, text, arithmetic on whole vectors
    and arrays, NumPy's view of a field, what changes Python's own objects, a condition that decides how often a loop
    runs); where the proof fails, with the first step that differs; and later, where a kernel was defined anew, a
    captured name has changed or a field is gone.
    """
    if function is None:
        return functools.partial(capture, parameters=parameters)
    if not callable(function):
        raise CaptureError(f"a function is captured, not {type(function).__name__}", caller())
    return Program(function, tuple(parameters))


class Program:
    """What `ti.capture` makes of a function. `is_captured`: whether it has run, and will be replayed; `plans`: what it
    does, for each kind of arguments; `how_under_tapes`: how its last call under a tape ran, and why it was recorded
    launch by launch where it was (a `StepCapture`).
    """

    def __init__(self, function: Callable[..., Any], parameters: tuple[str, ...], *, strict: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.__tinote_step__ = function
        self._names = parameters
        self._strict = strict
        self._signature = inspect.signature(function)
        #: what its last arguments are where they are left out; None if it takes others than by position
        self._defaults = _defaults_of(self._signature)
        self._known: dict[Any, Captured] = {}
        self._last: Captured | None = None
        #: what it is under a tape, for each kind of arguments; kept here by `lang/ad/journal/captured_steps.py`
        self.under_tapes: dict[Any, Any] = {}
        self.last_under_tape: Any = None
        self.how_under_tapes = StepCapture("learning")
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        """In another process it captures anew."""
        return _captured_there, (self.__tinote_step__, self._names, self._strict)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        last = self._last
        if self._defaults and not kwargs:
            args = self._filled(args)
        try:
            if (
                last is not None
                and not kwargs
                and seam.listener is None
                and recorder.get() is None
                and last.takes(args)
                and self._lock.acquire(blocking=False)
            ):
                try:
                    if last.is_usable():
                        return last.run(args)
                finally:
                    self._lock.release()
            return self._call(args, kwargs)
        except TinoteError as error:
            raise error.with_traceback(users_trace(error)) from None
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        config = session.config
        open_recorder = recorder.get()
        if (
            seam.listener is not None
            or (session.watchers and open_recorder is None)
            or config.arch != "cpu"
            or config.kernel_profiler
            or not self._lock.acquire(blocking=False)
        ):
            return self.__tinote_step__(*args, **kwargs)
        try:
            if open_recorder is not None:
                return open_recorder.running(self, args, kwargs)
            known, given = self._known_for(args, kwargs)
            known.refuse_if_stale()
            if not known.premises.are_owned:  # the function claims its gradients
                return self.__tinote_step__(*args, **kwargs)
            self._last = known
            return known.run(given)
        finally:
            self._lock.release()

    def _filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with those that are left out."""
        missing = len(self._signature.parameters) - len(args)
        defaults = self._defaults or ()
        return (*args, *defaults[-missing:]) if 0 < missing <= len(defaults) else args

    def captured(self, *args: Any) -> Captured:
        """What is replayed for these arguments; captures it if need be. Raises `CaptureError`."""
        with self._lock:
            known, _ = self._known_for(args, {})
            known.refuse_if_stale()
            return known

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments in their order, and what of them one program is for. Raises `CaptureError`."""
        if self._defaults is not None and not kwargs and len(args) == len(self._signature.parameters):
            found = tuple([_plain(value) for value in args])
            return found, (current_owner.get(), *[_kind(value) for value in found])
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs or any(p.kind is p.VAR_POSITIONAL for p in self._signature.parameters.values()):
            raise CaptureError("a step is captured whose arguments have positions, each of its own", caller())
        found = tuple([_plain(value) for value in bound.args])
        return found, (current_owner.get(), *[_kind(value) for value in found])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the globals that are read anew at each call."""
        return self._names

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Captured, tuple[Any, ...]]:
        """The program for these arguments, and they as it takes them."""
        given, key = self.given(args, kwargs)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = captured(
                self.__tinote_step__, given, self._names, prints=not self._strict, strict=self._strict
            )
        return known, given

    @property
    def is_captured(self) -> bool:
        """Whether it was captured."""
        return bool(self._known)

    @property
    def plans(self) -> list[Plan]:
        """What it does, for each kind of arguments that it was called with."""
        return [one.plan for one in self._known.values()]

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            return self
        bound = Program(self.__tinote_step__.__get__(owner, cls), self._names, strict=self._strict)
        name = getattr(self.__tinote_step__, "__name__", "")
        if hasattr(owner, "__dict__") and name and getattr(type(owner), name, None) is self:
            owner.__dict__[name] = bound  # one program for each object, found first from now on
        return bound

    def __repr__(self) -> str:
        name = getattr(self.__tinote_step__, "__qualname__", repr(self.__tinote_step__))
        return f"<captured step {name}, {'captured' if self.is_captured else 'not called yet'}>"


def _captured_there(function: Callable[..., Any], names: tuple[str, ...], strict: bool) -> Program:
    return Program(function, names, strict=strict)


def _defaults_of(signature: inspect.Signature) -> tuple[Any, ...] | None:
    """What the last arguments of a function are by themselves; None if it takes others than by position."""
    parameters = signature.parameters.values()
    if any(one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters):
        return None
    return tuple([one.default for one in parameters if one.default is not one.empty])


def _plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _kind(value: Any) -> Any:
    """What of an argument one program is for."""
    if isinstance(value, _NUMBERS):
        return value.__class__  # of a traced number, that of its value
    if isinstance(value, np.ndarray | list | dict | set):
        raise CaptureError(
            f"a captured step is called with numbers and fields, not with {type(value).__name__}",
            caller(),
            hint="keep it in a field, or make it a global, which is a constant of the program",
        )
    return id(value)


class Captured:
    """A program for one kind of arguments."""

    def __init__(
        self,
        function: Any,
        given: tuple[Any, ...],
        plan: Plan,
        tables: Tables,
        variables: list[tuple[Any, Any]],
        premises: Premises,
    ) -> None:
        self.plan = plan
        self.tables = tables
        self.premises = premises
        self._function = function
        self._variables = variables
        self._given = given  # those that are no numbers stay alive with it
        self._types = tuple([type(value) for value in given])
        self._statics = [(k, value) for k, value in enumerate(given) if not isinstance(value, _NUMBERS)]
        self.assigned = [name for _, name in variables]
        self.use(None)

    def use(self, threads: int | None, length: int | None = None) -> None:
        """Run launches on at most this number of threads from now on, and only the first `length` steps."""
        tables, inputs = self.tables, self.plan.inputs
        prepared = self.prepared = Prepared(self.plan, tables.natives, tables.memories, threads, length)
        cells = [(r.number, prepared.floats if r.kind == "f" else prepared.integers) for r in inputs]
        numbers = [k for k, value in enumerate(self._given) if isinstance(value, _NUMBERS)]
        self._inputs = [(k, *cell) for k, cell in zip(numbers, cells, strict=False)]
        kinds = [r.kind for r in inputs[len(numbers) :]]
        globals_ = zip(self._variables, kinds, cells[len(numbers) :], strict=True)
        self._globals = [(*place, kind, *cell) for place, kind, cell in globals_]
        self._draws = prepared.draws
        self._ends = [None if _is_nothing(end) else end for end in prepared.ends]

    def takes(self, args: tuple[Any, ...]) -> bool:
        """Whether it is for these arguments."""
        if tuple(map(type, args)) != self._types:
            return False
        return not self._statics or all(args[k] is value for k, value in self._statics)

    @property
    def inputs(self) -> list[tuple[Any, str, Any]]:
        """The plan's inputs, arguments first: a key, which that of another program has that is the same number, a name,
        and the value, of arguments that which they were given first.
        """
        names = inspect.signature(self._function).parameters
        given = [(name, value) for name, value in zip(names, self._given, strict=False) if isinstance(value, _NUMBERS)]
        return [
            *[(("argument", name, type(value)), name, value) for name, value in given],
            *[((id(namespace), name), str(name), namespace[name]) for namespace, name in self._variables],
        ]

    @property
    def argument_count(self) -> int:
        """How many of the inputs are arguments."""
        return len(self.plan.inputs) - len(self._variables)

    @property
    def instances(self) -> list[tuple[Any, Any, Any]]:
        """The kernels that it launches, each with its key and its instance."""
        return self.premises.instances

    def is_usable(self) -> bool:
        """Whether nothing has changed that it depends on. (Where something has, `refuse_if_stale` says what.)"""
        return self.premises.hold()

    def refuse_if_stale(self) -> None:
        """Raise `CaptureError` for what has changed since the capture."""
        what = self.premises.broken()
        if what is not None:
            name = getattr(self._function, "__qualname__", "the step")
            hint = "capture it again: call `ti.capture` anew"
            raise CaptureError(f"the captured step '{name}' is out of date: {what}", caller(), hint)

    def run(self, args: Sequence[Any]) -> Any:
        """Replay it."""
        return self.finish(self.start(args))

    def finish(self, reached: int) -> Any:
        """What Python has of a replay that reached this end: its result, and numbers that the step assigns."""
        if self._draws:
            self.prepared.keep_counter()
        end = self._ends[reached]
        return None if end is None else self._finish(end)

    def start(self, args: Sequence[Any]) -> int:
        """Run the instructions; gives the number of the end that was reached."""
        prepared = self.prepared
        try:
            for k, number, cells in self._inputs:
                cells[number] = args[k]
            for namespace, name, kind, number, cells in self._globals:
                value = namespace[name]
                if kind_of(value) != kind:
                    raise CaptureError(f"the global '{name}' of a captured step was a number of another kind", caller())
                cells[number] = value
        except ValueError:
            raise CaptureError("a captured step has integers of 64 bits", caller()) from None
        if self._draws:
            prepared.set_counter()
        return prepared.run()

    def _finish(self, end: End) -> Any:
        prepared = self.prepared
        number = prepared.number
        for place, operand in end.updates:
            namespace, name = self._variables[place]
            namespace[name] = number(operand)
        for which, operand in end.seeds:
            self.premises.instances[which][2].last_seed = number(operand)
        return _returned(end.result, prepared)


def _is_nothing(end: End) -> bool:
    return end.result == Result("constant", (None,)) and not end.updates and not end.seeds


def _returned(result: Result, prepared: Prepared) -> Any:
    kind, parts = result
    number = prepared.number
    if kind == "constant":
        return parts[0]
    if kind in ("number", "bool"):
        return bool(number(parts[0])) if kind == "bool" else number(parts[0])
    if kind in ("vector", "matrix"):
        shape, dtype, components = parts
        values = np.array([number(one) for one in components], None if dtype == "object" else dtype).reshape(shape)
        return (Vector if kind == "vector" else Matrix)(values)
    if kind == "array":
        return prepared.array(*parts)
    if kind == "dict":
        return {key: _returned(one, prepared) for key, one in parts}
    found = [_returned(one, prepared) for one in parts]
    return tuple(found) if kind == "tuple" else found


# ---- capturing


def captured(
    function: Any,
    given: tuple[Any, ...],
    names: tuple[str, ...] = (),
    arrays: Sequence[CapturedArray] = (),
    *,
    prints: bool = False,
    strict: bool = False,
) -> Captured:
    """Run a function and make a program of it; memory is as before. `arrays`: of the arguments those that hold other
    numbers in each run, each in memory of its own; `prints`: whether its kernels may print. `strict`: nobody has asked
    for it, so the function is left before it does anything that is not undone afterwards. Raises `CaptureError`.
    """
    with capturing:
        return _captured(function, given, names, arrays, prints, strict)


def _captured(
    function: Any,
    given: tuple[Any, ...],
    names: tuple[str, ...],
    arrays: Sequence[CapturedArray],
    prints: bool,
    strict: bool,
) -> Captured:
    dependencies = dependencies_of(function, names, strict=strict)

    def attempt(variables: list[tuple[Any, Any]]) -> Captured | None:
        trial = Trial(function, given, variables, arrays)
        with trial:
            recorded = record_all(trial, dependencies, prints)
            if recorded is None:
                return None
            plan, tables = recorded
            trial.begin()
            premises = Premises(plan, dependencies, list(tables.instances.values()), tables.memories)
            found = Captured(function, given, plan, tables, variables, premises)
            trial.prove(found)
        found.use(None)
        return found

    return until_all_are_known(dependencies, attempt)


def dependencies_of(function: Any, names: Sequence[str] = (), *, strict: bool = False) -> Dependencies:
    """What a function looks up. `names`: of its module's globals that are read anew. Raises `CaptureError`."""
    dependencies = Dependencies(strict=strict)
    dependencies.scan(function)
    namespace = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})
    for name in names:
        if isinstance(namespace.get(name), bool) or not isinstance(namespace.get(name), int | float):
            raise CaptureError(f"the parameter '{name}' is no global number", caller())
        dependencies.assign(namespace, id(namespace), name)
    dependencies.settle()
    return dependencies


def until_all_are_known(dependencies: Dependencies, attempt: Callable[[list[tuple[Any, Any]]], T | None]) -> T:
    """`attempt` with the variables of a step as far as they are known, again while it finds others."""
    while True:
        known = dict(dependencies.assigned)
        found = attempt(list(known.values()))
        if found is not None:
            return found
        for place in dependencies.assigned.keys() - known.keys():  # what the calls so far have made of these is undone
            holder, key = dependencies.assigned[place]
            if dependencies.before[place] is not None:
                holder[key] = dependencies.before[place]


def record_all(trial: Trial, dependencies: Dependencies, prints: bool) -> tuple[Plan, Tables] | None:
    """Run the function of a trial until both sides of each condition are met: the plan, and its tables. None where
    functions that were met assign other variables.
    """
    plan = Plan()
    tables = Tables(plan)
    trial.begin()
    if dependencies.strict:
        trial.call_warily(dependencies)
    else:
        trial.call(Listening())  # what the first call compiles, and finds out, is done
    if len(dependencies.assigned) > len(trial.variables):
        return None
    decisions: list[bool] | None = []
    for _ in range(_MOST_PATHS):
        if decisions is None:
            break
        trial.begin()
        recording = Recording(tables, decisions, trial.arguments, prints=prints)
        try:
            with _noticing(dependencies):
                trial.record(recording, plan)
        finally:
            recording.close()
        if len(dependencies.assigned) > len(trial.variables):
            return None
        merge(plan.root, recording.steps)
        decisions = plan.root.unseen()
    else:
        raise CaptureError(
            "this cannot be captured: it decides too many conditions on numbers that it reads",
            _first_branch(plan.root),
            hint="decide them in a kernel",
        )
    return plan, tables


@contextlib.contextmanager
def _noticing(dependencies: Dependencies) -> Iterator[None]:
    """Meanwhile, notice every function of the user's that is called, and read those that were not found."""
    called: dict[tuple[Any, int], tuple[Any, dict[str, Any], dict[str, Any]]] = {}

    def notice(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not is_users(frame):
            return
        given = first_argument(frame)
        if dependencies.knows(code, next(iter(given.values()), None)):
            return
        called[code, id(next(iter(given.values()), None))] = code, frame.f_globals, given

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(before)
    for code, namespace, given in called.values():
        if not dependencies.knows(code, next(iter(given.values()), None)):
            dependencies.scan_called(code, namespace, given)


@contextlib.contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Kernels that still run after so long are stopped."""
    is_over = threading.Event()

    def end() -> None:
        is_late = not is_over.wait(seconds)
        while is_late and not is_over.wait(0.05):
            stop_all()

    threading.Thread(target=end, name="tinote patience", daemon=True).start()
    try:
        yield
    except LaunchStopped:
        raise CaptureError(f"this is not captured unasked: it takes more than {seconds:.0f} s") from None
    finally:
        is_over.set()


@contextlib.contextmanager
def _forbidding(dependencies: Dependencies) -> Iterator[None]:
    """Meanwhile, functions of the user's are read before they run, and whatever changes more than memory and numbers
    raises `CaptureError` before it is done.
    """

    def notice(frame: Any, event: str, argument: Any) -> None:
        called, user = argument, frame
        if frame.f_code.co_name == "__del__" or frame.f_globals.get("__name__") in ("weakref", "_weakrefset"):
            return  # what was collected just then; it must be let go
        if event == "call":
            if is_users(frame):
                given = first_argument(frame)
                if not dependencies.knows(frame.f_code, next(iter(given.values()), None)):
                    dependencies.scan_called(frame.f_code, frame.f_globals, given)
                    dependencies.settle()
                    for place, (holder, key) in dependencies.assigned.items():
                        if dependencies.before.get(place) is None:
                            dependencies.before[place] = holder[key]
                return
            user = frame.f_back
            module = frame.f_globals.get("__name__") or ""
            called = SimpleNamespace(__name__=frame.f_code.co_name, __module__=module)
        elif event != "c_call":
            return
        if user is not None and is_users(user):
            why = why_not(called, strict=True) or dependencies.why_changes(called)
            if why is not None:
                name = getattr(called, "__name__", "something")
                span = Span(user.f_code.co_filename, user.f_lineno)
                raise CaptureError(f"this cannot be captured: {why.replace('…', name)}", span)

    before = sys.getprofile()
    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(before)


def first_argument(frame: Any) -> dict[str, Any]:
    """The first argument of a call, of which the attributes may be looked up, by its name."""
    code = frame.f_code
    first = code.co_varnames[0] if code.co_argcount else ""
    owner = frame.f_locals.get(first)
    is_plain = owner is None or isinstance(owner, (*_NUMBERS, np.ndarray)) or type(owner) is Traced
    return {} if is_plain else {first: owner}


def is_users(frame: Any) -> bool:
    """Whether a frame is of a function of the user's own."""
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    # Text that libraries execute: annotations, methods that dataclasses make. (A step that does so is refused.)
    is_made = name == "<module>" or (file == "<string>" and name.startswith("__"))
    return is_users_module(frame.f_globals.get("__name__") or "", file) and not is_made


def _first_branch(path: Path) -> Span:
    return NOWHERE if path.branch is None else path.branch.span


def merge(path: Path, steps: Sequence[Step]) -> Path:
    """Add what one call did; gives the path that it ended with. Raises `CaptureError` where calls differ without a
    condition that says why.
    """
    known = bool(path.steps) or path.branch is not None
    for at, step in enumerate(steps):
        if type(step) is Decision:
            branch = path.branch
            if known and (at != len(path.steps) or branch is None or branch._replace(taken=step.taken) != step):
                raise _differs(step)
            path.branch = branch or step
            return merge(path.sides.setdefault(step.taken, Path()), steps[at + 1 :])
        if not known:
            path.steps.append(step)
        elif at >= len(path.steps) or path.steps[at] != step:
            raise _differs(step)
    return path


def _differs(step: Step) -> CaptureError:
    span = getattr(step, "span", NOWHERE)
    return CaptureError(
        "this cannot be captured: another call does something else here, and no number that the step reads says why",
        span,
        hint="a counter, a clock or a list in Python? keep it in a field, or make it an argument",
    )


class Trial:
    """Runs a function and its program from the same states. As a context: memory, variables and the session's counters
    are as before in the end, and what kernels print is kept apart.
    """

    def __init__(
        self,
        function: Any,
        given: tuple[Any, ...],
        variables: list[tuple[Any, Any]],
        arrays: Sequence[CapturedArray],
    ) -> None:
        self._function = function
        self.given = given
        self._arrays = [array.view(np.ndarray) for array in arrays]
        #: their memory
        self.arguments = [
            (ExternalMemory(a.__array_interface__["data"][0], a.nbytes, a), f"argument array {k}")
            for k, a in enumerate(self._arrays)
        ]
        self.is_open = True  # not when all is put back in the end
        self._printed: list[str] = []
        self._printing = contextlib.ExitStack()
        self.variables = variables
        self._values = [namespace[name] for namespace, name in variables]
        #: of the call that is recorded: what it is called with, and what the variables are before
        self.inputs: list[Register] = []

    def __enter__(self) -> Trial:
        self._printing.enter_context(prints_to(self._printed.append))
        self._launches = session.launches
        self._fields = list(session.fields)  # none of them goes meanwhile
        self._memories = [*blocks_of(self._fields), *self.arguments]
        self._copies = [memory.copy() for memory, _ in self._memories]
        return self

    def __exit__(self, *error: object) -> None:
        self._printing.close()
        self.is_open = False
        self.begin()

    def begin(self, variation: tuple[float, int] = VARIATIONS[0]) -> None:
        """The state from before, with other values of arguments, variables and fields."""
        for (memory, _), copy in zip(self._memories, self._copies, strict=True):
            memory.restore(copy)
        if variation != VARIATIONS[0]:
            with np.errstate(all="ignore"):
                for field in self._fields:
                    if field.dtype.kind == "f":
                        numbers = array_over(field.buffer, field.memory)
                        numbers[...] = numbers * numbers.dtype.type(variation[0])
                for array in self._arrays:
                    vary(array, variation)
        session.launches = self._launches
        for (namespace, name), value in zip(self.variables, self._values, strict=True):
            namespace[name] = varied(value, variation)
        self._arguments = [varied(value, variation) for value in self.given]

    def call(self, listener: Any) -> Any:
        """Call the function while somebody listens."""
        seam.listener = listener
        try:
            return self._function(*self._arguments)
        finally:
            seam.listener = None

    def forget_prints(self) -> None:
        """What was printed so far is no matter."""
        self._printed.clear()

    def call_warily(self, dependencies: Dependencies) -> None:
        """Call it for the first time, but leave it before it does anything that is not undone, or takes long."""
        fields = len(session.fields)
        with _forbidding(dependencies), _ended_after(_LONGEST_FIRST_CALL):
            self.call(Wary())
        if len(session.fields) != fields:
            raise CaptureError("this cannot be captured: it makes fields", place_of_function(self._function))
        quickest = float("inf")
        for _ in range(3):  # the machine may have been busy
            self.begin()
            begin = time.perf_counter()
            self.call(Wary())
            quickest = min(quickest, time.perf_counter() - begin)
            if quickest <= _LONGEST_WARY_CALL:
                return
        raise CaptureError(
            f"this is not captured unasked: it takes {1000 * quickest:.0f} ms", place_of_function(self._function)
        )

    def record(self, recording: Recording, plan: Plan) -> None:
        """Call it, record what it does, and put back the variables."""
        arguments: list[Any] = []
        inputs = []
        for value in self._arguments:
            if isinstance(value, _NUMBERS):
                register = recording.register(kind_of(value))
                inputs.append(register)
                value = recording.number(register, value)
            arguments.append(value)
        for namespace, name in self.variables:
            register = recording.register(kind_of(namespace[name]))
            inputs.append(register)
            namespace[name] = recording.number(register, namespace[name])
        plan.inputs = self.inputs = inputs
        try:
            returned = recording.run(lambda: self._function(*arguments))
            recording.end(returned, self.updates(recording))
        except CaptureError:
            raise
        except Exception as error:
            if recording.refused is not None:
                raise recording.refused from None
            if any(type(step) is Decision for step in recording.steps):
                last = [step for step in recording.steps if type(step) is Decision][-1]
                raise CaptureError(
                    f"this cannot be captured: behind this condition, one side raises {type(error).__name__}: {error}",
                    last.span,
                    hint="decide it in a kernel",
                ) from None
            raise

    def updates(self, recording: Recording) -> tuple[tuple[int, Operand], ...]:
        """The variables that are others than at the begin of the call, by their place, and what they are now."""
        now = [recording.operand(namespace[name]) for namespace, name in self.variables]
        before = self.inputs[len(self.inputs) - len(self.variables) :]
        return tuple([(k, a) for k, (a, b) in enumerate(zip(now, before, strict=True)) if a != b])

    def prove(self, program: Captured) -> None:
        """Raise `CaptureError` unless the program does what the function does, from several states."""
        changed = program.premises.dependencies.changed()
        if changed is not None:
            raise CaptureError(
                f"this cannot be captured: a call changes '{changed}' in Python",
                place_of_function(self._function),
                hint="keep it in a field, or make it a global number that the step assigns",
            )
        program.use(1)
        for variation in VARIATIONS:
            self.begin(variation)
            self.forget_prints()
            try:
                wanted = [self.left(bits(self.call(Listening()))) for _ in range(CALLS)]
            except (TinoteError, ArithmeticError, ValueError):
                if variation == VARIATIONS[0]:
                    raise
                continue  # the function has no value there
            self.begin(variation)
            self.forget_prints()
            for call in range(CALLS):
                try:
                    found = self.left(bits(program.run(tuple(self._arguments))))
                except TinoteError as error:
                    raise CaptureError(
                        f"this cannot be captured: replayed, it raises {type(error).__name__}: {error.message}",
                        error.span,
                    ) from None
                if found != wanted[call]:
                    raise self._first_difference(program, variation, call, wanted[call], found)

    def left(self, returned: Any) -> tuple[Any, ...]:
        """All that a call leaves."""
        values = [bits(namespace[name]) for namespace, name in self.variables]
        printed = "".join(self._printed)
        self._printed.clear()
        return returned, values, session.launches, [bytes(memory.view()) for memory, _ in self._memories], printed

    def _first_difference(
        self,
        program: Captured,
        variation: tuple[float, int],
        calls: int,
        wanted: tuple[Any, ...],
        found: tuple[Any, ...],
    ) -> CaptureError:
        """The error that names the first step behind which memory differs."""
        names = [name for (_, name), a, b in zip(self._memories, wanted[3], found[3], strict=True) if a != b]
        printed = wanted[4] != found[4]
        what = "what it returns, or a global," if not printed else "what its kernels print"
        what = f"'{names[0]}' differs" if names else f"{what} differs"

        def start() -> None:
            self.begin(variation)
            for _ in range(calls):
                self.call(Listening())

        start()
        states = _States(program, [memory for memory, _ in self._memories], self.arguments)
        with contextlib.suppress(Exception):  # the capture has met what the program does; this is to name a step
            states.run(lambda: self._function(*self._arguments))
        states.close()
        low, high = 0, len(states.seen)
        while low < high:
            middle = (low + high) // 2
            start()
            program.use(1, middle + 1)
            program.start(tuple(self._arguments))
            if [bytes(memory.view()) for memory, _ in self._memories] == states.seen[middle]:
                low = middle + 1
            else:
                high = middle
        step = states.steps[low] if low < len(states.steps) else None
        span = getattr(step, "span", NOWHERE)
        return CaptureError(
            f"this cannot be captured: replayed, {what}, first behind {_in_words(step)}",
            span if span != NOWHERE else place_of_function(self._function),
            hint="something changes memory, or decides what is done, that a capture does not see",
        )


def varied(value: Any, variation: tuple[float, int]) -> Any:
    """A number with another value; integers, which may be indices, only where these are checked."""
    if type(value) is float:
        return value * variation[0]
    if type(value) is int and session.config.bounds_check:
        return value + variation[1]
    return value


def vary(array: np.ndarray[Any, Any], variation: tuple[float, int]) -> None:
    """The same of an argument's numbers; also of those that are zero, and not the same for all of them."""
    if array.dtype.kind == "f":
        steps = np.arange(1, array.size + 1).reshape(array.shape) % 5
        array[...] = array * array.dtype.type(variation[0]) + steps.astype(array.dtype) * array.dtype.type(2**-7)
    elif array.dtype.kind == "i" and session.config.bounds_check:
        array += array.dtype.type(variation[1])


def place_of_function(function: Any) -> Span:
    """Where a function is defined."""
    while hasattr(function, "__tinote_calls__"):
        function = function.__tinote_calls__
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return NOWHERE if code is None else place_of(code)


def _in_words(step: Step | None) -> str:
    match step:
        case None:
            return "all its steps"
        case Launch():
            return "this launch"
        case Clear():
            return "a clear"
        case Copy():
            return "a copy"
        case Fill():
            return "this write"
    return "this"


def bits(value: Any) -> Any:
    """A value, to be compared by its bits."""
    if isinstance(value, float):
        return value.hex() if value == value else "nan"
    if isinstance(value, Matrix):
        return [bits(one) for one in value.values.ravel().tolist()]
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.view(np.ndarray).tobytes()
    if isinstance(value, tuple | list):
        return [bits(one) for one in value]
    if isinstance(value, dict):
        return {key: bits(one) for key, one in value.items()}
    return value


class _States(Recording):
    """Records a call, and what memory holds behind each step but the last."""

    def __init__(self, program: Captured, memories: list[Memory], arguments: Sequence[tuple[Memory, str]]) -> None:
        super().__init__(program.tables, (), arguments, prints=True)
        self.seen: list[list[bytes]] = []
        self._memories = memories

    def add(self, step: Step) -> None:
        if self.steps:
            self.seen.append([bytes(memory.view()) for memory in self._memories])
        super().add(step)
