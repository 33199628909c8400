"""The tape: record launches, then run their gradients in reverse.

    with ti.ad.Tape(loss=U):
        compute_U()
    # x.grad now holds dU/dx

What is recorded stands in `lang/ad/journal/journal.py`, what is kept of memory for it in `journal/saved_values.py`, how
overwritten values come back in `lang/ad/memory/undo.py`. Recording is per context (`contextvars`): launches of other
threads and of other asyncio tasks never land on an open tape.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from opcode import opmap
from types import CodeType, FrameType, TracebackType
from typing import Any, Literal

from tinote.completion import Documented
from tinote.errors import DifferentiationError, Note, at_users_frames
from tinote.ir.buffers import Buffer
from tinote.lang.ad.access_rules.validation import AccessRules
from tinote.lang.ad.access_rules.violations import Violation
from tinote.lang.ad.checks.gradcheck import GradientReport
from tinote.lang.ad.checks.tape_check import GradientCheck
from tinote.lang.ad.functional.forward import Forward
from tinote.lang.ad.functional.forward_mode import ForwardMode, refuse_block
from tinote.lang.ad.functional.inputs import size_of
from tinote.lang.ad.functional.runs import refuse_open_recorder
from tinote.lang.ad.functional.tape_inside import TapeInside, tape_inside
from tinote.lang.ad.journal.events import Custom, Event, Record
from tinote.lang.ad.journal.graph import TapeGraph, graph_of
from tinote.lang.ad.journal.journal import Journal, carry_tangents
from tinote.lang.ad.journal.observer import Observer
from tinote.lang.ad.journal.saved_values import RecordedLaunch
from tinote.lang.ad.journal.sweep_program import sweep_program
from tinote.lang.ad.memory.states import ShadowsBefore
from tinote.lang.capture.recording import Tables
from tinote.lang.data.fields import Field
from tinote.lang.index_regions import IndexRegion, intersection
from tinote.lang.kernels.arguments import observed_arguments
from tinote.lang.session.owners import (
    clear_own_gradients,
    close_recording,
    interrupted,
    open_recording,
    open_recordings,
    own_duals,
    own_gradients,
    take_all_gradients,
)
from tinote.lang.session.state import Recorder, block_out_of_order, independent_recordings, present_recorder, session
from tinote.program.text import show
from tinote.runtime.clearing import clear_memories
from tinote.runtime.owner import present_owner
from tinote.source import NOWHERE, Span, caller, span_at

_ELSEWHERE = "open the tape there, or pass the context on: `contextvars.copy_context().run(…)`"
_REPEATS = (
    "repeats has no effect any more: leave it out, and put what the tape records into a step of `ti.capture`, which is "
    "replayed under tapes; or differentiate a function with `ti.ad.grad`, which is replayed automatically"
)


#: The instruction of a `with` statement that calls `__enter__`; Python 3.14 has another.
_BEFORE_WITH = opmap.get("BEFORE_WITH", -1)
#: Flags of code whose frames go on after they were left: generators, coroutines and both in one.
_SUSPENDABLE = 0x20 | 0x80 | 0x200
#: before the block, in place of the code and the instruction
_NOWHERE: tuple[CodeType | None, int] = None, 0


def clear_all_gradients() -> None:
    """Set the gradients of all fields to zero, also those that a live view owns.

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=2, needs_grad=True)
    >>> x.grad.fill(1.0)
    >>> ti.ad.clear_all_gradients()
    >>> x.grad.to_numpy()
    array([0., 0.])
    """
    take_all_gradients()
    clear_own_gradients()


def _reads(event: Event, buffer: Buffer, region: IndexRegion) -> bool:
    """Whether one of these elements is used, or changed by something."""
    if not isinstance(event, RecordedLaunch):
        return isinstance(event, Record) and buffer in event.touched
    effects = event.arguments.effects(event.values)
    used = (*effects.live_in, *(effects.written if buffer in event.arguments.accesses.accumulated else ()))
    return any(one is buffer and intersection(part, region) is not None for one, part in used)


def _is_of_gradient(dual: Buffer) -> bool:
    gradient = dual.primal
    return gradient is not None and gradient.primal is not None and gradient.primal.adjoint is gradient


class Tape(Documented, Journal):
    """Record the launches in a `with` block, and at its end add the derivative of a loss to the fields' gradients.

    `fill`, `from_numpy` and `copy_from` in the block are differentiated: after them a field's gradient is that of its
    new values only until the first launch that uses the field. The same holds for a single element, or a component or
    member of one, that Python assigns. Values that Python reads from fields, and results of kernels, are traced
    numbers: arithmetic with them, writing them to fields and passing them to launches is differentiated, and looking at
    them changes nothing. Plain numbers made of them (`float(x[0])`, `x.to_numpy()`) are constants; where one may have
    come back, a warning says so, an error with `validation=True`. An exception inside of the block leaves everything as
    it is, and no gradient is computed.

    Parameters
    ----------
    loss : Field or Ndarray, optional
        A single number, of shape () or (1,), with `needs_grad=True`. It is set to 0 at entry, and its gradient to 1 at
        exit.
    clear_gradients : bool, default True
        Set all gradients to zero at entry that no other thread or task computed.
    validation : bool or "collect", default False
        Check the rules of access, element by element, on one thread, and raise at the first launch that breaks one;
        with `"collect"`, only note it in `violations`.
    grad_check : sequence of Field or bool, optional
        Compare the gradients of these fields (True: of all) with differences of the loss at the end of the block, which
        runs the launches again. All fields are f64. `grad_report` is what was found (`ti.ad.gradcheck`). Implies
        `keep`.
    on_overwrite : {"auto", "error", "unchecked"}
        What happens when an element changes whose old value the derivative needs. `"auto"`: the old value is kept and
        comes back, whatever changes it, other threads included; only what a launch may overwrite of what is needed is
        kept (`copied_bytes`), within `ti.init(memory_limit=...)`. `"error"`: breaking one of the rules of access is an
        `AccessRuleError`: an element that was read is not changed afterwards; from the second write on, it only takes
        `+=`. `"unchecked"`: nothing is kept between launches, so that a program which breaks the rules gets a wrong
        gradient silently.
    keep : bool, default False
        Keep what the launches and their gradients have read as long as the tape lives, within the session's
        `memory_limit`, so that `ti.ad.find_nan` and `ti.ad.sweep_report` can run them again.
    repeats : bool, optional
        Has no effect any more: put what the tape records into a captured step (`ti.capture`), which is replayed.

    Methods
    -------
    graph
    program

    Attributes
    ----------
    loss : Field
    copied_bytes : int
    grad_report : GradientReport or None
        What `grad_check` found.
    records : list
    violations : list of Violation

    Raises
    ------
    DifferentiationError
        For a loss that cannot be differentiated, for what cannot be differentiated correctly, and where `grad_check`
        finds a difference.
    AccessRuleError
        Where a rule of access is broken, with `on_overwrite="error"` or `validation=True`.

    Notes
    -----
    A field or ndarray that was made without `needs_grad`, and that differentiated values go through on their way to the
    loss, gets a temporary adjoint for the reverse sweep; it still has no `grad`. One under `ti.stop_grad` is constant.
    Fields that were made with `needs_grad=False` and NumPy arrays, which anything may write to, have no temporary
    adjoint, and a custom VJP sees none: differentiated values that go through these are refused.

    Of what iterations of a parallel loop combine by `ti.atomic_min` or `ti.atomic_max`, the winner alone gets the
    gradient; of several, the last. The old values that atomic operations return on counters and other memory without a
    gradient are kept, so that loops may append to lists; those of differentiated elements that iterations of a parallel
    loop share depend on an order, and are refused. Where several iterations store to one element, the last of them, in
    the order of the loop, has the gradient; where each iteration certainly reads what another one changes, the launch
    is refused.

    A tape may be opened inside of another recording: of a tape, forward mode, and a function that is differentiated.
    The gradients that it computes are values there, for kernels and for Python, and have derivatives themselves; when
    the outer block ends, the gradients are its own. Within `ti.ad.FwdMode` they have tangents in their duals. Inside of
    two recordings, or more, what it has recorded is launched once more when it ends.

    Several threads and asyncio tasks may differentiate at the same time, each with memory that the others only read:
    where two open recordings use the same memory, one of them raises a `DifferentiationError` with the lines of both.

    A tape that a signal handler opens while a derivative is being computed is not part of that, and leaves the
    gradients alone that are used there. It needs fields of its own: else one of the two raises a
    `DifferentiationError`.

    References
    ----------
    A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2 (reverse mode).

    Examples
    --------
    >>> x = ti.field(ti.f64, shape=3, needs_grad=True)
    >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
    >>> @ti.kernel
    ... def energy():
    ...     for i in x:
    ...         loss[None] += x[i] ** 2
    >>> x.from_numpy([1.0, 2.0, 3.0])
    >>> with ti.ad.Tape(loss):
    ...     energy()
    >>> x.grad.to_numpy()
    array([2., 4., 6.])
    """

    #: the block in which it is independent of the recordings that it interrupts, if there are any
    apart: ExitStack | None = None
    rules: AccessRules | None = None
    _saves = True
    grad_report: GradientReport | None = None
    _check: GradientCheck | None = None
    is_swept = leaves = True
    _place = _NOWHERE
    _frame: FrameType | None = None
    #: whether another thread or task has written the loss
    _loss_from_outside = False
    #: what kernels with derivatives have written there, and the number of events when each did so first
    _from_outside: dict[tuple[Buffer, IndexRegion, Span], int] | None = None

    def __init__(
        self,
        loss: Field | None = None,
        clear_gradients: bool = True,
        validation: bool | Literal["collect"] = False,
        grad_check: Sequence[Field] | bool | None = None,
        *,
        on_overwrite: Literal["auto", "error", "unchecked"] = "auto",
        keep: bool = False,
        repeats: bool | None = None,
    ) -> None:
        if repeats is not None:
            warnings.warn(_REPEATS, DeprecationWarning, stacklevel=2)
        if loss is None:
            hint = "write `with ti.ad.Tape(loss):`, where `loss` is a field of shape () with needs_grad=True"
            raise DifferentiationError("a tape needs the loss whose derivative it computes", caller(), hint=hint)
        if not isinstance(loss, Field):
            raise DifferentiationError(f"the loss of a tape must be a field, not {loss!r}", caller())
        if (loss.shape or loss.element) and size_of(loss) != 1:
            elements = f" and elements of shape {loss.element}" if loss.element else ""
            raise DifferentiationError(
                f"the loss of a tape must be a single number, but '{loss.name}' has shape {loss.shape}{elements}",
                caller(),
                hint="sum into a field with shape=(), or call kernel.grad() with gradients of your own",
            )
        if not loss.has_grad:
            raise DifferentiationError(
                f"the loss '{loss.name}' has no gradient", caller(), hint="make it with needs_grad=True"
            )
        if validation not in (False, True, "collect"):
            raise DifferentiationError(f'validation is True, False or "collect", not {validation!r}', caller())
        if on_overwrite not in ("auto", "error", "unchecked"):
            raise DifferentiationError(
                f'on_overwrite is "auto", "error" or "unchecked", not {on_overwrite!r}', caller()
            )
        raises = validation is True or on_overwrite == "error"
        observers: tuple[Observer, ...] = ()
        check: GradientCheck | None = None
        if validation or raises:
            self.rules = AccessRules(raises=raises)
            observers += (self.rules,)
        if grad_check:
            check = GradientCheck(grad_check, loss)
            observers += (check,)
        if on_overwrite == "unchecked":
            self._saves = False
        super().__init__(observers, saves=on_overwrite != "unchecked", keep=keep or check is not None)
        if check is not None:
            self._check = check
        self._inner: TapeInside | None = None
        if validation is True:
            self.trace.refuses = True
        self.loss = loss
        self.clear_gradients = clear_gradients

    @property
    def violations(self) -> list[Violation]:
        """Where the rules of access were broken, in order; empty for a tape that does not check them."""
        return [] if self.rules is None else list(self.rules.violations)

    @property
    def copied_bytes(self) -> int:
        """The number of bytes saved for the reverse sweep."""
        return self.saved.nbytes

    @property
    def opened(self) -> Span:
        """The line of the block."""
        code, instruction = self._place
        return NOWHERE if code is None else Span(code.co_filename, span_at(code, instruction).line)

    def graph(self) -> TapeGraph:
        """A picture of what was recorded so far.

        Returns
        -------
        TapeGraph
            The picture; notebooks show it.
        """
        return graph_of(self.events, self.saved.copied, self.loss.buffer, self.activity.temporaries(self.events))

    def program(self) -> str:
        """What the reverse sweep of this tape does between Python and the kernels, as text: one operation per line.

        The sweep runs once more for it, and leaves fields and gradients as they were. So the tape must be one that
        `ti.ad.find_nan` can search: one with `keep=True`, or one under which nothing was overwritten and whose fields
        still hold what they held at its end.

        Returns
        -------
        str
            The text, in the grammar of `tinote/program/text.py`: the blocks of memory, among them the values that the
            tape has kept, and the kernels, then what is done with them.

        Raises
        ------
        DifferentiationError
            For a tape that cannot be swept again, and for a sweep that does more than launch kernels, move memory and
            compute with numbers.

        Examples
        --------
        >>> x = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> loss = ti.field(ti.f64, shape=(), needs_grad=True)
        >>> with ti.ad.Tape(loss, keep=True) as tape:
        ...     loss[None] = 3 * x[None]
        >>> print(tape.program())
        block @loss.grad: field (8)
        block @x.grad: field (8)
        program ():
          %f0 = load @loss.grad[0] f64 ()
          fill @loss.grad[0] f64 () = 0.0f64
          %f1 = scale (0.0f64, %f0)
          %f2 = scale (3.0f64, %f0)
          %f3 = load @x.grad[0] f64 ()
          %f4 = add (%f3, %f2)
          fill @x.grad[0] f64 () = %f4
          end none
        """
        return show(self.sweep_tables().plan).rstrip()

    def sweep_tables(self) -> Tables:
        """The program of the reverse sweep, with its blocks and codes in this process."""
        self.require_sweep("Tape.program")
        with self.sweeping_again() as before:
            self.begin_again(before)
            return sweep_program(self)

    def require_sweep(self, what: str) -> None:
        """Raise `DifferentiationError` unless the reverse sweep can run again, for `what`."""
        refuse_open_recorder(what)
        if self.trace.is_open:
            raise DifferentiationError(
                "this tape has recorded nothing yet", caller(), hint="call it after the tape's block"
            )
        if not self.keep and not self.saved.is_complete:
            raise DifferentiationError(
                f"{what} cannot run the gradients of this tape again: it let go of overwritten values when it closed",
                caller(),
                hint="open it as Tape(loss, keep=True)",
            )

    @contextmanager
    def sweeping_again(self) -> Iterator[ShadowsBefore]:
        """A block in which the reverse sweep runs again (`begin_again`), and which leaves everything as it was."""
        launches = session.launches
        try:
            with ShadowsBefore() as before:
                yield before
        finally:
            session.launches = launches

    def __enter__(self) -> Tape:
        frame = sys._getframe(1)
        if not (open_recordings and (interrupts := interrupted())):
            return self._enter(frame)
        self.interrupts = interrupts
        with ExitStack() as stack:
            stack.enter_context(independent_recordings())
            self._enter(frame)
            self.apart = stack.pop_all()
        return self

    def _enter(self, frame: FrameType) -> Tape:
        if self._place is not _NOWHERE:
            raise DifferentiationError("a tape records once; make a new one for each block", caller())
        while isinstance(outer := present_recorder(), Tape) and outer.is_left:
            outer.__exit__(KeyboardInterrupt, None, None)
        place = frame.f_code, frame.f_lasti
        if outer is not None:
            self._begin_inside(outer, Span(frame.f_code.co_filename, frame.f_lineno))
        self._place = place
        self._frame = frame
        inner = self._inner
        if inner is not None:
            inner.enter()
        self.begin_loss(self.loss, clears=self.clear_gradients)
        if outer is not None and self.clear_gradients:
            clear_memories([memory for dual, memory in own_duals().items() if _is_of_gradient(dual)])
        if self._check is not None:
            self._check.start()
        try:
            if inner is not None:
                inner.start()
            self.start()
            return self
        except BaseException:  # an interrupt
            self._end()
            close_recording(self, failed=True)
            raise

    def _begin_inside(self, outer: Recorder, span: Span) -> None:
        """Become a part of the outer recording."""
        outer.root.begin_all_duals()
        if isinstance(outer, Journal) or (isinstance(outer, Forward) and outer.lifts):
            self._inner = self._inside(outer, span)
        else:
            self._carry_tangents(outer)

    @property
    def is_left(self) -> bool:
        """Whether the function with its `with` statement is over: an interrupt has come before the tape could close."""
        code, instruction = self._place
        frame = self._frame
        if code is None or frame is None or code.co_flags & _SUSPENDABLE or code.co_code[instruction] != _BEFORE_WITH:
            return False
        for running in sys._current_frames().values():
            one: FrameType | None = running
            while one is not None:
                if one is frame:
                    return False
                one = one.f_back
        return True

    def _end(self) -> None:
        """It records no longer."""
        try:
            self.stop()
        finally:
            if self._inner is not None:
                self._inner.stop()

    def _inside(self, outer: Journal | Forward, span: Span) -> TapeInside:
        """Inside of another recording in reverse mode, the tape is one of its records, or a function."""
        if self.observers or self.keep or not self._saves:
            raise DifferentiationError(
                "a tape inside another recording cannot check anything, and always saves what it needs",
                caller(),
                hint="leave validation, on_overwrite, grad_check and keep out",
                notes=outer.opened_notes(),
            )
        if isinstance(outer, Tape) and outer.loss.buffer is self.loss.buffer:
            raise DifferentiationError(
                f"a tape inside of another one has the same loss '{self.loss.name}', which it would set to 0",
                caller(),
                hint="give each a loss of its own",
                notes=[Note("inside of this", outer.opened)],
            )
        found = tape_inside(self, outer, self.loss, span, clears=self.clear_gradients)
        self.depth = outer.next_depth  # what it has recorded runs again in a block of this depth
        self.opened_within = outer.opened_notes()
        self._trace_within(outer)
        return found

    def _trace_within(self, outer: Recorder) -> None:
        refuses, self.trace = self.trace.refuses, outer.trace.inner(self.events)
        self.trace.refuses = refuses

    def _carry_tangents(self, outer: Recorder) -> None:
        """Inside of forward mode, launches and the reverse sweep carry its tangents."""
        if not isinstance(outer, ForwardMode) or not outer.takes_blocks:
            refuse_block("a tape", outer)
        if self.observers:
            raise DifferentiationError(
                "a tape inside forward mode cannot check anything",
                caller(),
                hint="leave validation, on_overwrite and grad_check out",
                notes=outer.opened_notes(),
            )
        temporary = outer.nesting()
        self.opened_within = outer.opened_notes()
        carry_tangents(self)
        self._trace_within(outer)
        self.take_tangents(outer, temporary, caller())
        outer.keep_gradients(own_gradients())

    def custom(self, custom: Custom) -> None:
        if self._inner is not None and custom.again is None:
            self._inner.refuse(custom)
        super().custom(custom)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        misplaced: DifferentiationError | None = None
        self._frame = None
        try:
            if self._place is _NOWHERE:
                raise DifferentiationError("the tape was not entered: write `with ti.ad.Tape(loss):`", caller())
            if kind is None and present_recorder() is not self:
                misplaced = block_out_of_order(self.opened)
            if self._inner is None:
                self.stop()
            else:
                self._end()
        except BaseException:  # an interrupt
            self._end()
            close_recording(self, failed=True)
            if self.interrupts and self.apart is not None:
                self.apart.close()
            raise
        failed = True
        inner = self._inner
        try:
            if misplaced is not None:
                raise misplaced
            if kind is None:
                if self.observers and self.rules is not None:
                    self.rules.look_outside()
                if inner is None:
                    self._differentiate()
                else:
                    inner.leave(self._differentiate)
                if self._check is not None:
                    self.grad_report = self._check.compare(self)
                failed = False
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None
        finally:
            self.forget(failed=failed)
            if self.interrupts and self.apart is not None:
                self.apart.close()
                self.interrupts = ()

    def _is_elsewhere(self) -> bool:
        """Whether what happens now is another thread's, or a task's that the block does not wait for."""
        return self.owner is not None and not self.owner.runs_within(present_owner())

    def launching_outside(self, instance: Any, values: tuple[Any, ...]) -> None:
        super().launching_outside(instance, values)
        if not self._is_elsewhere():
            return
        arguments = observed_arguments(instance, values)
        if any(buffer.adjoint is not None for buffer in arguments.accesses.loaded):
            if self._from_outside is None:
                self._from_outside = {}
            for buffer, region in arguments.written(values):
                if buffer.adjoint is not None:
                    key = buffer, region, instance.specialisation.source.span
                    self._from_outside.setdefault(key, len(self.events))

    def _warn_of_values_from_outside(self, written: Mapping[tuple[Buffer, IndexRegion, Span], int]) -> None:
        warned: set[Buffer] = set()
        for (buffer, region, kernel), count in dict(written).items():
            if buffer not in warned and any(_reads(event, buffer, region) for event in self.events[count:]):
                warned.add(buffer)
                warning = DifferentiationError(
                    f"'{buffer.name}' was written in another thread or task, whose launches are not recorded: "
                    "no derivative goes through it",
                    self.opened,
                    hint=_ELSEWHERE,
                    notes=[Note("by this kernel", kernel)],
                )
                warnings.warn_explicit(str(warning), UserWarning, self.opened.file, self.opened.line)

    def _overwritten_outside(self, buffer: Buffer, region: IndexRegion | None) -> None:
        self._loss_from_outside |= buffer is self.loss.buffer and self._is_elsewhere()
        super()._overwritten_outside(buffer, region)

    @property
    def shadows(self) -> Set[Buffer]:
        """Also the loss's gradient, which is 1 before anything uses it."""
        return super().shadows | {self.loss.grad.buffer}

    def begin_again(self, before: ShadowsBefore) -> None:
        """The block is over, and its reverse sweep will run once more, in a block that leaves gradients as they were:
        all that it computes is zero, and the loss's gradient 1.
        """
        open_recording(self)
        self.leave_shadows(before)
        self._begun = frozenset()
        self.begin_sweep(self.shadows)
        self.loss.grad.fill(1)

    def _differentiate(self) -> None:
        if self._from_outside is not None:
            self._warn_of_values_from_outside(self._from_outside)
        loss = self.loss.buffer
        if self._loss_from_outside and not (self.memory.touches(loss) or loss in self.activity.spans):
            raise DifferentiationError(
                f"the loss '{self.loss.name}' is written in another thread or task, whose launches are not recorded",
                self.opened,
                hint=_ELSEWHERE,
            )
        if self.may_lose:
            self.lost_values()
        self.claim(clear=self.clear_gradients)
        if self.shadows_before is not None:
            self.take_gradients_back()
        gradient = self.loss.grad
        gradient.fill(1)
        self.reverse()
        gradient.fill(1)
        if self.loss.unit is not None:
            for field in [field for field in session.fields if field.has_grad and field.grad.buffer in self.shadows]:
                field.grad.unit = self.loss.unit if field.unit is None else self.loss.unit / field.unit
