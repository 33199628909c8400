"""The life cycle of a replay: when calls are recorded, replayed, and given up, and why.

    waiting     calls run as the function: the first ones, which compile, and more after each change
    learning    calls are recorded, or compared with what was recorded
    replayed    the program runs, while its guards hold; after a change, calls wait and are recorded again
    given up    calls run as the function, for a reason

`ti.capture`, captures of live views, plans of derivatives, and captured steps of tapes and checkpointed loops have one
`Attempts` for each kind of calls. What they record, and how that is validated, is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tinote.errors import TinoteError
from tinote.lang.session.state import may_replay, session
from tinote.runtime.seam import listeners
from tinote.source import Span, line_text

#: How a refusal begins.
CANNOT = "this cannot be captured: "
#: Number of calls with unexpected effects after which calls are given up.
_STRIKES = 3
#: Number of calls that run as the function after a change, which doubles each time; and the number of replays that
#: resets it.
_FIRST_WAIT, _LONGEST_WAIT, _LONG_LIFE = 16, 4096, 1000


class StepCapture(NamedTuple):
    """How a step runs: `state` is "replayed" for one that is captured, "function" for one that cannot be, or "learning"
    until that is decided. `reason`: why it runs as a function, with the line in `span`. `replays`: how many calls were
    replayed; `captures`: how often it was captured.
    """

    state: str
    reason: str = ""
    span: Span | None = None
    replays: int = 0
    captures: int = 0

    @property
    def sentence(self) -> str:
        """The state as a sentence."""
        if self.state == "replayed":
            return "Steps are replayed as a captured program"
        if self.state == "learning":
            return "Steps run as a function so far"
        where = ""
        if self.span is not None and self.span.line > 0:
            where = f" (line {self.span.line}: {line_text(self.span).strip()})"
        return f"Steps run as a function: {self.reason}{where}"

    def __repr__(self) -> str:
        counts = f"; {self.replays:,} replayed, captured {self.captures} times" if self.captures else ""
        return f"<{self.sentence}{counts}>"


class HasReplays(Protocol):
    """A program that counts its replays."""

    replays: int


P = TypeVar("P", bound=HasReplays)


class Attempts(Generic[P]):
    """The attempts to replay one kind of calls. `program`: what is replayed, or will be when it is validated;
    `refused`: why calls are given up; `captures`: the number of programs so far. `waits`: how many calls are left that
    run as the function.
    """

    __slots__ = ("_generation", "_next_wait", "_strikes", "captures", "program", "refused", "waits")

    def __init__(self, plain_calls: int = 0) -> None:
        self.program: P | None = None
        self.refused: TinoteError | None = None
        self.captures = 0
        self.waits = plain_calls
        self._next_wait = 0
        self._strikes = 0
        self._generation = 0

    @property
    def is_given_up(self) -> bool:
        """Whether calls run as the function for good, or until fields are made again."""
        return self.refused is not None and self._generation == session.generation

    def may_try(self) -> bool:
        """Whether a call that is about to run as the function may be recorded, or compared."""
        if self.waits > 0:  # threads may count down at once
            self.waits -= 1
            return False
        return self.refused is None or not self.is_given_up

    def tried(self, make: Callable[[], P]) -> P | None:
        """The program, made now if there is none and there may be one; None where calls are given up, or wait."""
        if self.program is None and self.may_try():
            try:
                self.found(make())
            except TinoteError as error:
                self.refuse(error)
        return self.program

    def found(self, program: P) -> P:
        """There is a program, the first one or one with more paths."""
        if self.program is None:
            self.captures += 1
        else:
            program.replays = self.program.replays
        self.program, self.refused, self._strikes = program, None, 0
        return program

    def change(self) -> None:
        """Something has changed that the program depends on, or what was learned so far: calls are recorded again,
        later if that has happened before.
        """
        if self.program is not None and self.program.replays >= _LONG_LIFE:
            self._next_wait = 0
        self.waits, self._next_wait = self._next_wait, min(max(2 * self._next_wait, _FIRST_WAIT), _LONGEST_WAIT)
        self.program = None

    def strike(self, error: TinoteError) -> None:
        """A call had unexpected effects, of its own or of concurrent code."""
        self.program = None
        self._strikes += 1
        if self._strikes == _STRIKES:
            self.refuse(error)

    def refuse(self, error: TinoteError) -> None:
        """Calls are given up."""
        self.program, self.refused, self._generation = None, error, session.generation

    def resume(self) -> None:
        """Calls are tried again: the function is another one."""
        self.refused, self._strikes = None, 0

    def how(self, replays: int = 0) -> StepCapture:
        """How calls run."""
        if self.refused is None:
            return StepCapture("learning" if self.program is None else "replayed", "", None, replays, self.captures)
        reason = self.refused.message.removeprefix(CANNOT)
        return StepCapture("function", reason, self.refused.span, replays, self.captures)


def runs_plainly(recording: Any = None) -> bool:
    """Whether each call runs as the function at present: something listens to its launches, profiles them, or watches
    from outside, or Python runs them. `recording`: an open one, which says itself what may watch.
    """
    config = session.config
    is_seen = bool(listeners) or config.arch == "python" or config.kernel_profiler
    return is_seen or (recording is None and not may_replay(()))
