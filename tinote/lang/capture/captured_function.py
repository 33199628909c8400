"""`ti.capture`: records a function that launches kernels as a program that is replayed without Python.

    @ti.capture
    def substep(dt):
        with ti.ad.Tape(U):
            potential()
        advance(dt)

    substep(1e-3)

The first call runs the function under a listener (`recording.py`), both sides of each condition on numbers that it
reads (`explore.py`), and makes a program of the recording (`tinote/program/`). It is validated (`trial.py`): function
and replay run from the same states, for several values of the arguments, and all memory must agree bit for bit. Later
calls replay it natively (`captured.py`, `prepare.py`), as long as the names that the function looked up have not
changed (`dependencies.py`).
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import numpy as np

from tinote.completion import Documented
from tinote.errors import CaptureError, TinoteError, at_users_frames, users_trace
from tinote.lang.capture.attempts import Attempts, StepCapture, runs_plainly
from tinote.lang.capture.captured import NUMBERS, Captured
from tinote.lang.capture.explore import captured
from tinote.lang.data.traced import Traced
from tinote.lang.session.state import recorder, session
from tinote.lang.shipping.sources import FunctionsInFile, functions_by_file
from tinote.program.program import Program
from tinote.program.text import show
from tinote.runtime.owner import present_owner
from tinote.runtime.seam import listeners
from tinote.source import caller


def capture(function: Callable[..., Any] | None = None, *, parameters: Sequence[str] = ()) -> Any:
    """Capture a step: record it once, then replay it as one native call, without Python between its launches.

    A step is a function that launches kernels, differentiates, and reads and writes fields. Also a decorator.

    The first call captures: launches, also of gradients and of nested derivatives, what a tape clears, saves and brings
    back, fills, copies, elements that are read and written, arithmetic on these numbers, conditions on them (both sides
    are tried), seeds of random numbers, what kernels print, arrays that `to_numpy` and derivatives give and that go to
    kernels and fields, and the numbers, vectors, arrays and tuples of these that are returned. It runs the function a
    few times, while nothing else may run, and leaves memory as one call does. The program is verified before it is
    used: it is compared with the function from several states and with several values of its numbers, on one thread,
    and all fields must agree bit for bit.

    Under a tape, and in `ti.ad.grad` and its relatives, each call is one record, and its gradient one native call, too;
    the derivatives are those of the function. What only a tape that records each launch can differentiate runs as the
    function (custom gradients, elements that depend on a number which the step reads, tapes that check);
    `program.how_under_tapes` says which. In forward mode, in another capture, and where kernels are profiled or run as
    plain Python, calling it runs the function. On a GPU a replay is one submission, except where conditions or results
    need numbers from there. Where sums of floats have no fixed order, they need to agree there in half of their digits;
    a step that does something else when it is replayed runs there as the function.

    Parameters
    ----------
    function : callable, optional
        The step. Its arguments are the program's parameters: those that are numbers may have other values at each call;
        others (fields, kernels, None, text) are the same object at each call, or there is one program for each. Left
        out, a decorator is returned.
    parameters : sequence of str
        Names of its module's globals that hold numbers and are read again at each call. Others are constants of the
        program, except for those that the function assigns, which are updated.

    Returns
    -------
    CapturedFunction
        Called as the function is.

    Raises
    ------
    CaptureError
        At the user's line, for what cannot be captured: a number that is needed itself, as an index or by `math.sin`,
        text, arithmetic on whole vectors and arrays, NumPy's view of a field, changes of Python's own objects, an
        object whose state is not known (an iterator, a file, a table of another library), imports, exceptions that are
        caught, a condition that decides how often a loop runs. Where the verification fails, with the first step that
        differs; and later, where a kernel was defined again, a captured name has changed or a field is gone.

    Examples
    --------
    >>> x = ti.field(ti.f32, shape=4)
    >>> @ti.kernel
    ... def advance(dt: ti.f32):
    ...     for i in x:
    ...         x[i] += dt * (i + 1)
    >>> @ti.capture
    ... def step(dt):
    ...     for _ in range(10):
    ...         advance(dt)
    >>> step(0.5)
    >>> step(0.25)
    >>> x.to_numpy()
    array([ 7.5, 15. , 22.5, 30. ], dtype=float32)
    """
    if function is None:
        return functools.partial(capture, parameters=parameters)
    if not callable(function):
        raise CaptureError(f"a function is captured, not {type(function).__name__}", caller())
    return CapturedFunction(function, tuple(parameters))


class CapturedFunction(Documented):
    """A step that runs again without Python, which `ti.capture` returns; it is called as the function is.

    Methods
    -------
    captured
    program

    Attributes
    ----------
    how_under_tapes : StepCapture
        How its last call under a tape ran, and why it was recorded launch by launch where it was.
    is_captured : bool
    parameters : tuple of str
    programs : list of Program

    Examples
    --------
    >>> n = ti.field(ti.i32, shape=())
    >>> @ti.kernel
    ... def count():
    ...     n[None] += 1
    >>> @ti.capture
    ... def step():
    ...     count()
    >>> step.is_captured
    False
    >>> step()
    >>> step.is_captured
    True
    """

    def __init__(self, function: Callable[..., Any], parameters: tuple[str, ...], *, unasked: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.__tinote_step__ = function
        self._names = parameters
        self._unasked = unasked
        self._look(function)
        #: by the kind of arguments
        self._known: dict[Any, Attempts[Captured]] = {}
        self._last: Captured | None = None
        #: its forms under tapes; stored here by `lang/ad/journal/step_capture.py`
        self.under_tapes: Any = None
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        """In another process it captures again, by the text of its function."""
        step = self.__tinote_step__
        files = functions_by_file([step] if isinstance(step, types.FunctionType) else [])
        return _captured_there, (step, self._names, self._unasked, files)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        last, rest = self._last, self._left_out.get(len(args))
        given = args + rest if rest else args
        try:
            if (
                last is not None
                and not kwargs
                and recorder.get() is None
                and not listeners
                and last.takes(given)
                and self._lock.acquire(False)
            ):
                try:
                    if last.guards.hold():  # also that the defaults are what they were
                        return last.run(given)
                finally:
                    self._lock.release()
            return self._call(args, kwargs)
        except TinoteError as error:
            raise error.with_traceback(users_trace(error)) from None
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        open_recorder = recorder.get()
        if runs_plainly(open_recorder) or not self._lock.acquire(False):
            with session.launching_together():
                return self.__tinote_step__(*args, **kwargs)
        try:
            if open_recorder is not None:
                return open_recorder.running(self, args, kwargs)
            try:
                known, given = self._known_for(args, kwargs)
            except CaptureError as error:
                if not error.is_unproved:
                    raise
                with session.launching_together():
                    return self.__tinote_step__(*args, **kwargs)
            known.refuse_if_stale()
            if not known.guards.are_owned:  # the function claims its gradients
                return self.__tinote_step__(*args, **kwargs)
            self._last = known
            return known.run(given)
        finally:
            self._lock.release()

    def filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the defaults of those that are left out, as they were when it was last captured."""
        rest = self._left_out.get(len(args))
        return args + rest if rest else args

    def _look(self, function: Any) -> None:
        """Inspect the function's parameters."""
        self._looked = _code_of(function)
        self._signature = inspect.signature(function)
        self._left_out = _left_out(self._signature)

    def _look_again(self) -> None:
        """Inspect it again: its code or its defaults may have changed."""
        if not all(map(is_, _code_of(self.__tinote_step__), self._looked)):
            self._look(self.__tinote_step__)

    def captured(self, *args: Any) -> Captured:
        """The program that is replayed for these arguments; captures it if need be.

        Parameters
        ----------
        *args
            As in a call.

        Returns
        -------
        Captured
            The program.

        Raises
        ------
        CaptureError
            For what cannot be captured.

        Examples
        --------
        >>> n = ti.field(ti.i32, shape=())
        >>> @ti.kernel
        ... def count(step: ti.i32):
        ...     n[None] += step
        >>> @ti.capture
        ... def advance(step):
        ...     count(step)
        >>> program = advance.captured(3)
        >>> advance.is_captured, n[None]
        (True, 0)
        """
        if session.config.arch == "python":
            what = "nothing is replayed with arch='python': the step runs as the function that it is"
            raise CaptureError(what, caller())
        with self._lock:
            known, _ = self._known_for(args, {})
            known.refuse_if_stale()
            return known

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The arguments in their order, and their kinds, which identify a program. Raises `CaptureError`."""
        self._look_again()
        rest = self._left_out.get(len(args))
        if rest is not None and not kwargs:
            found = tuple([_plain(value) for value in args + rest])
            return found, (present_owner(), *[_kind(value) for value in found])
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs or any(p.kind is p.VAR_POSITIONAL for p in self._signature.parameters.values()):
            raise CaptureError("a step is captured whose arguments have positions, each of its own", caller())
        found = tuple([_plain(value) for value in bound.args])
        return found, (present_owner(), *[_kind(value) for value in found])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the globals that are read again at each call."""
        return self._names

    def _known_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Captured, tuple[Any, ...]]:
        """The program for these arguments, and the arguments in the form that it takes."""
        given, key = self.given(args, kwargs)
        attempts = self._known.get(key)
        if attempts is None:
            attempts = self._known[key] = Attempts()
        if attempts.program is not None:
            return attempts.program, given
        if attempts.is_given_up and attempts.refused is not None:  # on a GPU
            raise attempts.refused
        function, unasked = self.__tinote_step__, self._unasked
        try:
            return attempts.found(captured(function, given, self._names, prints=not unasked, unasked=unasked)), given
        except CaptureError as error:
            if error.is_unproved:
                attempts.refuse(error)
            raise

    @property
    def how_under_tapes(self) -> StepCapture:
        """How its last call under a tape ran, and why it was recorded launch by launch where it was."""
        return StepCapture("learning") if self.under_tapes is None else self.under_tapes.how  # type: ignore[no-any-return]

    @property
    def is_captured(self) -> bool:
        """Whether it was captured, and will be replayed."""
        return bool(self.programs)

    @property
    def programs(self) -> list[Program]:
        """The programs so far, one for each kind of arguments."""
        return [one.program.plan for one in self._known.values() if one.program is not None]

    def latest(self) -> Captured:
        """The program captured last; of a step without arguments, its only one. Raises `CaptureError`."""
        known = [one.program for one in self._known.values() if one.program is not None]
        if known:
            return known[-1]
        if self._signature.parameters:
            name = getattr(self.__tinote_step__, "__name__", "step")
            hint = f"call it once, or use {name}.captured(…) with its arguments"
            raise CaptureError(f"the step '{name}' has not been captured yet", caller(), hint)
        return self.captured()

    def program(self, *args: Any) -> str:
        """What a call with these arguments does between Python and the kernels, as text: one operation per line.

        Parameters
        ----------
        *args
            The arguments of the step, as in a call; those with default values may be left out.

        Returns
        -------
        str
            The text, in the grammar of `tinote/program/text.py`: the blocks of memory and the kernels, then what is
            done with them, with both sides of each condition.

        Raises
        ------
        CaptureError
            Where the step cannot be captured.

        Examples
        --------
        >>> x = ti.field(ti.f32, shape=4)
        >>> @ti.capture
        ... def step():
        ...     x.fill(1)
        >>> print(step.program())
        block @x: field (16)
        program ():
          fill @x[0] f32 (4) = 1.0f64
          end none
        """
        given, _ = self.given(args, {})
        return show(self.captured(*given).plan).rstrip()

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            return self
        bound = CapturedFunction(self.__tinote_step__.__get__(owner, cls), self._names, unasked=self._unasked)
        name = getattr(self.__tinote_step__, "__name__", "")
        if hasattr(owner, "__dict__") and name and getattr(type(owner), name, None) is self:
            owner.__dict__[name] = bound  # one program for each object, found first from now on
        return bound

    def __repr__(self) -> str:
        name = getattr(self.__tinote_step__, "__qualname__", repr(self.__tinote_step__))
        return f"<captured step {name}, {'captured' if self.is_captured else 'not called yet'}>"


def _captured_there(
    function: Callable[..., Any], names: tuple[str, ...], unasked: bool, _: list[FunctionsInFile]
) -> CapturedFunction:
    return CapturedFunction(function, names, unasked=unasked)


def _left_out(signature: inspect.Signature) -> dict[int, tuple[Any, ...]]:
    """By the number of arguments in a call, the default values of the others; empty if some have no position."""
    parameters = signature.parameters.values()
    if any(one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters):
        return {}
    defaults = tuple([one.default for one in parameters if one.default is not one.empty])
    return {len(parameters) - len(defaults) + k: defaults[k:] for k in range(len(defaults) + 1)}


def _code_of(function: Any) -> tuple[Any, Any]:
    """The code and the defaults that it has now."""
    return getattr(function, "__code__", None), getattr(function, "__defaults__", None)


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python number, if their arithmetic agrees."""
    if not isinstance(value, np.generic):
        return value
    if type(value) in (np.float64, np.int64):
        return value.item()
    kind = type(value).__name__
    raise CaptureError(
        f"a captured step is called with Python's numbers, not with {kind}, which is computed with in another way",
        caller(),
        hint=f"write `{type(value.item()).__name__}(…)`",
    )


def _kind(value: Any) -> Any:
    """The kind of an argument, which identifies a program."""
    if isinstance(value, NUMBERS):
        return type(value.value if type(value) is Traced else value)
    if isinstance(value, np.ndarray | list | dict | set):
        raise CaptureError(
            f"a captured step is called with numbers and fields, not with {type(value).__name__}",
            caller(),
            hint="keep it in a field, or make it a global, which is a constant of the program",
        )
    return id(value)
