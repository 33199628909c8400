"""Errors that show the user's own line first.

Every error about a user's program carries the span it is about, one sentence, and at most one hint. The rendering is
the same from a file and from a cell; the frames of this package are hidden (IPython asks `_render_traceback_`; plain
Python sees the location in the message itself). A fault of the compiler is another class, `CompilerBug`.
"""

from __future__ import annotations

import importlib
import sys
import traceback
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import NamedTuple

from tinote.source import NOWHERE, Span, line_text, location_name, span_at


class Note(NamedTuple):
    """A further span that explains an error, with what happened there."""

    text: str
    span: Span


def excerpt(span: Span) -> list[str]:
    """The place, the source line and a caret under the span; just the place when the source is not available."""
    if span.line <= 0:
        return []
    text = line_text(span)
    if not text.strip():
        return [location_name(span)]
    stop = span.end_column if span.end_line == span.line and span.end_column > span.column else len(text.rstrip())
    # `ast` counts columns in UTF-8 bytes; the caret stands under characters.
    encoded = text.encode()
    whole_line = not span.column and not span.end_column
    start = len(text) - len(text.lstrip()) if whole_line else len(encoded[: span.column].decode(errors="ignore"))
    stop = max(len(encoded[:stop].decode(errors="ignore")), start + 1)
    margin = f"{span.line:>5} | "
    pad = "".join("\t" if c == "\t" else " " for c in text[:start])
    return [location_name(span), f"{margin}{text}", f"{' ' * 5} | {pad}{'^' * (stop - start)}"]


def excerpts(span: Span) -> list[str]:
    """The same, with the calls through which it was inlined."""
    found: list[str] = []
    # A function that was inlined in itself shows its call once.
    for site, again in groupby(span.chain(), lambda span: span._replace(inlined_at=None)):
        spans = list(again)
        if spans[0] is not span:
            found.append("called from" if len(spans) == 1 else f"called {len(spans)} times from")
        elif len(spans) > 1:
            found.append(f"inlined in itself {len(spans)} times")
        found += excerpt(site)
    return found


def at_users_frames(error: BaseException) -> BaseException:
    """`error`, to be raised again: IPython then shows where the user's own code stood, and none of the frames between
    (this package's, and those with which a notebook runs a cell).

    For an exception that is not about the user's program and comes as itself, such as `KeyboardInterrupt`.
    """
    error._render_traceback_ = lambda: _users_frames(error)  # type: ignore[attr-defined]
    return error.with_traceback(users_trace(error))


def note_interruption(error: BaseException, doing: str, span: Span) -> None:
    """Note on what a signal's handler raised, such as `KeyboardInterrupt`, what it has interrupted, and where: Python
    and IPython show notes below the message. The first one stays.
    """
    if interruption_of(error) is None:
        found = Note(doing, span.in_users_code())
        error._tinote_interruption = found  # type: ignore[attr-defined]
        place = excerpts(found.span)
        error.add_note("\n".join([f"{found.text}:" if place else found.text, *place]))


def interruption_of(error: BaseException) -> Note | None:
    """What `error` has interrupted, if that was noted."""
    return getattr(error, "_tinote_interruption", None)


@contextmanager
def noting_interruptions(doing: str, span: Span) -> Iterator[None]:
    """Inside of this block an interrupt stops `doing`, which is about `span`."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        note_interruption(interrupt, doing, span)
        raise


def users_trace(error: BaseException) -> types.TracebackType | None:
    """The traceback of `error` without the frames of this package: none, or where a kernel stood that runs as plain
    Python, with its variables, for a debugger to look at afterwards.
    """
    entries: list[types.TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if is_users(trace.tb_frame):
            entries.append(trace)
        trace = trace.tb_next
    found: types.TracebackType | None = None
    for entry in reversed(entries):
        found = types.TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def users_place(error: BaseException) -> Span:
    """The innermost line of the user's code that `error` has come through, as far as it has come."""
    for last in traceback.extract_tb(users_trace(error))[-1:]:
        return Span(last.filename, last.lineno or 0, last.colno or 0, last.end_lineno or 0, last.end_colno or 0)
    return NOWHERE


def users_call() -> Span:
    """The expression of the user's code that has called into this package, perhaps through a library that calls it
    back; nowhere where that was a thread or an event loop.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        frame = frame.f_back
    return NOWHERE if frame is None or not is_users(frame) else span_at(frame.f_code, frame.f_lasti)


def is_users(frame: types.FrameType) -> bool:
    """Whether a frame belongs neither to this package nor to Python and the libraries around it."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] not in _HOUSE


def _users_frames(error: BaseException) -> list[str]:
    found: list[str] = []
    trace = error.__traceback__
    for (frame, line), summary in zip(traceback.walk_tb(trace), traceback.extract_tb(trace), strict=True):
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("tinote.magics"):
            found.clear()  # A cell magic runs its cell: what called it is that cell once more.
        if is_users(frame):
            columns = summary.colno or 0, summary.end_lineno or 0, summary.end_colno or 0
            found += excerpt(Span(summary.filename, line, *columns))
    return [*found, *(part.rstrip() for part in traceback.format_exception_only(error))]


#: Packages whose frames are of no interest to whoever wrote a cell: what runs it, and what this package calls.
_HOUSE = {"tinote", "IPython", "ipykernel", "llvmlite", "numpy"} | sys.stdlib_module_names
#: Packages through which a call of a user's may come.
_BETWEEN = {"tinote", "numpy", "traitlets", "ipywidgets", "anywidget", "contextlib", "functools"}


class TinoteError(Exception):
    """Base of all errors about a user's program.

    `span` is where in the user's program, `hint` one sentence on what to do, `notes` further spans. `str(error)`
    holds the whole located text.
    """

    def __init__(self, message: str, span: Span = NOWHERE, hint: str = "", notes: Sequence[Note] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span.in_users_code()
        self.hint = hint
        self.notes = tuple(notes)
        self.others: tuple[TinoteError, ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message, self.span, self.hint, self.notes), {"others": self.others})

    @property
    def place(self) -> Span:
        """`span`, or without one the user's line that the error has come through."""
        return self.span if self.span.line > 0 else users_place(self)

    def lines(self) -> list[str]:
        """The located text, a list of lines without colours.

        Returns
        -------
        list of str
            The lines, without line ends.
        """
        return self._lines_at(self.span)

    def _lines_at(self, place: Span) -> list[str]:
        found = [*excerpts(place), self.message]
        for note in self.notes:
            found += [f"note: {note.text}", *excerpts(note.span)]
        if self.hint:
            found.append(f"help: {self.hint}")
        for other in self.others:
            found += ["", *other.lines()]
        return found

    def __str__(self) -> str:
        lines = self.lines()
        return lines[0] if len(lines) == 1 else "\n" + "\n".join(lines)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback: the located text alone."""
        place = self.place
        lines = self._lines_at(place)
        return lines if place.line > 0 else [f"{type(self).__name__}: {self.message}", *lines[1:]]


def located_text(error: TinoteError) -> str:
    """The text of an error that was caught and is shown elsewhere: at its `place`."""
    return "\n".join(error._lines_at(error.place))


class CompilationError(TinoteError):
    """A kernel that cannot be compiled as it is written.

    Examples
    --------
    >>> @ti.kernel
    ... def k() -> ti.f32:
    ...     return velocity
    >>> try:
    ...     k()
    ... except ti.TaichiCompilationError as error:
    ...     print(type(error).__name__)
    KernelNameError
    """


class KernelSyntaxError(CompilationError):
    """A statement or expression that the kernel language does not have.

    It is not a `SyntaxError`, which IPython would show without the line of the kernel and the hint.

    Examples
    --------
    >>> @ti.kernel
    ... def k():
    ...     with open("file"):
    ...         pass
    >>> try:
    ...     k()
    ... except ti.TaichiSyntaxError as error:
    ...     print(error.message)
    `with` cannot be used in a kernel
    """


@contextmanager
def refusing_deep_nests(name: str, span: Span) -> Iterator[None]:
    """In this block, recursion on the depth of a kernel that goes too deep is an error of the kernel `name`'s."""
    try:
        yield
    except RecursionError:
        raise KernelSyntaxError(
            f"`{name}` is nested too deeply to be compiled", span, "split long expressions and deep nests"
        ) from None


class KernelTypeError(CompilationError, TypeError):
    """Types or shapes that do not fit, in a kernel or in the arguments of a call.

    Examples
    --------
    >>> @ti.kernel
    ... def k() -> ti.f32:
    ...     return ti.Vector([1.0, 2.0]).dot(ti.Vector([1.0, 2.0, 3.0]))
    >>> try:
    ...     k()
    ... except ti.TaichiTypeError as error:
    ...     print(error.message)
    an inner product needs two vectors of the same length, not a constant vector of 2 and a constant vector of 3
    """


class KernelTargetError(CompilationError):
    """An operation or a type that the machine which kernels run on, such as a GPU, does not have."""


class KernelNameError(CompilationError, NameError):
    """A name that is not defined where the kernel uses it.

    Examples
    --------
    >>> @ti.kernel
    ... def k() -> ti.f32:
    ...     return velocity
    >>> try:
    ...     k()
    ... except ti.TaichiNameError as error:
    ...     print(error.message)
    `velocity` is not defined
    """


class DifferentiationError(CompilationError):
    """A kernel, launch or tape whose gradient would not be right and is therefore refused."""


_OWN_ARRAY = "pass a ti.ndarray or a field: other code may write to an array that tinote does not own"


def broken_gradient_path(
    name: str,
    span: Span,
    notes: Sequence[Note],
    *,
    tangents: bool = False,
    external: bool = False,
    declared: bool = False,
) -> DifferentiationError:
    """The error for differentiated values that go through the field `name`, which has no gradient (no dual, in forward
    mode) and can have no temporary one, and are needed after it; `span`: where they were stored there. `external`: it
    is an array that others manage; `declared`: the user has said that it has none.
    """
    missing, option = ("dual", "needs_dual") if tangents else ("gradient", "needs_grad")
    hint = _OWN_ARRAY if external else f"make '{name}' with {option}=True"
    if declared:
        hint += ", or omit the option; if it should be a constant, store ti.stop_gradient(…)"
    return DifferentiationError(
        f"'{name}' {'was declared to have' if declared else 'has'} no {missing}, but values that are differentiated go "
        "through it",
        span,
        hint=hint,
        notes=notes,
    )


class FieldError(CompilationError, RuntimeError, ValueError):
    """A field that is declared or used in a way it cannot be."""


class NotAvailableError(TinoteError, AttributeError):
    """A part of the dialect that is left out; the hint names the nearest alternative."""


class MagicUsageError(TinoteError, ValueError):
    """A bad option or body of a notebook magic."""


class MachineError(TinoteError, ValueError):
    """A processor to compile for that there is not."""


class KernelRuntimeError(TinoteError, RuntimeError):
    """An error while a kernel was running.

    Examples
    --------
    >>> @ti.kernel
    ... def divide(a: ti.i32, b: ti.i32) -> ti.i32:
    ...     return a // b
    >>> try:
    ...     divide(1, 0)
    ... except ti.TaichiRuntimeError as error:
    ...     print(error.message)
    integer division by zero
    """


class KernelZeroDivisionError(KernelRuntimeError, ZeroDivisionError):
    """An integer division or remainder by zero."""


class KernelAssertionError(KernelRuntimeError, AssertionError):
    """An `assert` in a kernel that did not hold.

    Examples
    --------
    >>> @ti.kernel
    ... def check(a: ti.f32):
    ...     assert a > 0, "a is negative"
    >>> try:
    ...     check(-1.0)
    ... except ti.TaichiAssertionError as error:
    ...     print(error.message)
    a is negative
    """


class KernelIndexError(KernelAssertionError, IndexError):
    """An index outside of a field's shape.

    Examples
    --------
    >>> @ti.kernel
    ... def third() -> ti.f32:
    ...     v = ti.Vector([1.0, 2.0])
    ...     return v[2]
    >>> try:
    ...     third()
    ... except ti.TaichiIndexError as error:
    ...     print(error.message)
    component 2 is outside of a dimension of 2
    """


class KernelSubscriptError(KernelTypeError, KernelIndexError):
    """An index that is wrong whatever the kernel is run on: a number outside of a vector, too many or too few."""


class KernelArgumentError(KernelTypeError, KernelRuntimeError, ValueError):
    """An argument of a call that does not fit the kernel's parameter.

    Examples
    --------
    >>> @ti.kernel
    ... def half(a: ti.f32) -> ti.f32:
    ...     return a / 2
    >>> try:
    ...     half("one")
    ... except ti.TaichiRuntimeTypeError as error:
    ...     print(error.message)
    argument 'a' of kernel 'half' must be a number of type f32, not 'one'
    """


def wrong_call(message: str, declared: Span, hint: str = "") -> KernelArgumentError:
    """The error for a call of a kernel that does not fit what is `declared`: at the call, if that is the user's."""
    call = users_call()
    if call.line <= 0:
        return KernelArgumentError(message, declared, hint)
    return KernelArgumentError(message, call, hint, [Note("it is declared here", declared)])


class AccessRuleError(DifferentiationError, KernelAssertionError):
    """A program under a tape that breaks one of the rules of access to the elements of fields. `violations`: what the
    tape has found, for who shows it; lost when the error is pickled.
    """

    violations: tuple[object, ...] = ()


class KernelOverflowError(KernelRuntimeError, OverflowError):
    """Integer overflow, reported in debug mode."""


class KernelFiniteError(KernelRuntimeError, ArithmeticError):
    """A NaN or an infinity that arose in a launch that looks for it."""


class KernelRecursionError(KernelRuntimeError, RecursionError):
    """A function that calls itself, perhaps through others, deeper than the limit."""


class KernelMemoryError(KernelRuntimeError, MemoryError):
    """Saved values or scratch memory past the stated limit."""


class CaptureError(TinoteError, RuntimeError):
    """A step that cannot be captured, or a captured one that is out of date. `is_unproved`: a replay on a GPU has not
    done what the function did there; two calls of the function might not do the same either.
    """

    is_unproved = False


class SerializationError(TinoteError, TypeError):
    """Something that cannot go to another process."""


class SweepError(TinoteError, RuntimeError):
    """A sweep that cannot run, or a point of one that has failed."""


class StateError(TinoteError, ValueError):
    """A state that cannot be saved or loaded."""


class FileError(TinoteError, ValueError):
    """A file of meshes or fields that cannot be read or written."""


class SolverError(KernelRuntimeError, ArithmeticError):
    """A system of equations that could not be solved: a matrix that is singular or not positive definite, or an
    iteration that did not converge. `residual`: what was left of the equations, None where no solution was tried.
    """

    residual: float | None = None


class CompilerBug(Exception):
    """A fault of the compiler itself: names the step, shows the operation, and asks for a report."""

    def __init__(self, step: str, detail: str) -> None:
        super().__init__(
            f"internal error in step '{step}': {detail}\n"
            "This is a bug in tinote, not in your program. Please report it with the kernel's source."
        )
        self.step = step
        self.detail = detail


def with_article(value: object) -> str:
    """The type of a value in a sentence: "a list", "an ndarray"."""
    name = type(value).__name__
    # The name of NumPy's arrays begins with the name of a letter.
    return f"{'an' if name.lower().startswith(('a', 'e', 'i', 'o', 'u', 'nd')) else 'a'} {name}"


def shown(value: object) -> str:
    """A value as messages spell it: large integers by their size, since Python refuses to spell out the longest, and
    objects that cannot be shown by their type.
    """
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length():,} bits"
    try:
        return repr(value)
    except Exception:  # of a class of the user's, or of a container of large integers
        return f"an object of type {type(value).__name__}"


def no_attribute(what: str, name: str, known: Iterable[str], help: str = "") -> AttributeError:
    """That `what` has no attribute `name`, with what to do, else with the one of `known` that was probably meant."""
    # With a name and no object, Python does not look for a near name a second time.
    more = f": {help}" if help else suggestion(name, known)
    return AttributeError(f"{what} has no attribute {name!r}{more}", name=name)


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a public name that does not exist: the name that was probably meant, or nothing."""
    if name.startswith("_"):
        return ""
    close = closest(name, [k for k in known if not k.startswith("_")], 0.7)
    return f"; did you mean {close!r}?" if close else ""


def closest(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """The one of `known` that is most like `name`; nothing where none is as similar as `least`, from 0 to 1."""
    # Loaded when somebody has mistyped a name: it takes a fortieth of an import of tinote.
    close = importlib.import_module("difflib").get_close_matches(name, list(known), 1, least)
    return close[0] if close else ""


def raise_together(errors: Sequence[TinoteError]) -> None:
    """Raise the first of `errors` with the others attached, so that independent errors in one kernel are reported at
    once; nothing when empty. Of several at one place, the first has led to the others.
    """
    if errors:
        first = errors[0]
        first_at: dict[Span, TinoteError] = {}
        for error in errors:
            first_at.setdefault(error.span, error)
        first.others = tuple(first_at.values())[1:]
        raise first
