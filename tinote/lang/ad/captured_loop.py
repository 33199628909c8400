"""The steps of a checkpointed loop (`checkpoint.py`) as captured programs, forwards and in reverse
(`journal/step_capture.py`).

Nobody has asked for that, so a loop is captured where it pays: when the time that launches have taken in Python, in
this call and in earlier ones of the same function, comes to more than the capture costs. The function is read,
run in trials that leave no trace, and proved bit for bit; where that fails, steps run as the function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

from tinote.errors import CaptureError, TinoteError
from tinote.ir.nodes import Buffer
from tinote.lang.ad.journal.captured_steps import StepFacts, StepUnderTape
from tinote.lang.ad.journal.journal import Journal
from tinote.lang.ad.journal.step_capture import captured_under_tape
from tinote.lang.ad.journal.temporary_adjoints import NO_ADJOINTS
from tinote.lang.capture.captured_function import CapturedFunction
from tinote.lang.capture.how import StepCapture
from tinote.lang.kernels.access_region import BufferRegions
from tinote.lang.session.state import session
from tinote.runtime.seam import seam

#: What a launch costs in Python, in seconds: forwards, and recorded with its gradient.
FORWARD_LAUNCH, RECORDED_LAUNCH = 4e-6, 30e-6
#: What a capture costs: by itself, and in calls of the step.
CAPTURE_COST, CAPTURE_CALLS = 0.03, 60
#: The most bytes of fields that a trial copies.
_LARGEST_STATE = 64 << 20
#: How often a function is captured anew, after something has changed that it depends on.
_MOST_CAPTURES = 8
_PLACE = "__tinote_loop__"

_LEARNING = StepCapture("learning")


class CheckpointedLoop:
    """What is known of a function whose steps are checkpointed. `spent`: what its launches have cost in Python, in
    seconds, beyond those of the present call; `how`: how its steps run.
    """

    def __init__(self) -> None:
        self.spent = 0.0
        self.how = _LEARNING
        self._program: StepUnderTape | None = None
        self._captures = 0

    def __reduce__(self) -> Any:
        """In another process, and in a copy of who has it, nothing is known."""
        return CheckpointedLoop, ()

    def program(self, step: Callable[[int], Any], t: int, outer: Journal) -> LoopProgram | None:
        """The captured program of its steps, which is captured if need be; None where they run as the function."""
        known = self._program
        if known is not None and known.forward.guards.broken() is not None:
            known = self._program = None
            self.how = _LEARNING
        if known is None and self.how is _LEARNING and self._captures < _MOST_CAPTURES:
            self._captures += 1
            known = self._program = self._captured(step, t)
        return None if known is None else LoopProgram(known, outer)

    def _captured(self, step: Callable[[int], Any], t: int) -> StepUnderTape | None:
        is_program = isinstance(step, CapturedFunction)
        function = step.__tinote_step__ if isinstance(step, CapturedFunction) else step
        names = step.parameters if isinstance(step, CapturedFunction) else ()
        try:
            found = captured_under_tape(function, (t,), (False,), names, Journal, None, unasked=not is_program)
            if found.forward.assigned:
                raise CaptureError(
                    f"'{found.forward.assigned[0]}', which a step assigns, would not go back", found.span
                )
        except TinoteError as error:
            self.how = StepCapture("function", error.message.removeprefix("this cannot be captured: "), error.span)
            return None
        except Exception as error:  # of the function's own, with another number, or under a condition
            self.how = StepCapture("function", f"a trial of it raises {type(error).__name__}: {error}")
            return None
        self.how = StepCapture("replayed", captures=self._captures)
        return found


def loop_of(step: Callable[[int], Any]) -> CheckpointedLoop:
    """What is known of a function, or of a method of an object; it is kept with that."""
    place: Any = step
    key = _PLACE
    while isinstance(place, partial):
        place = place.func
    if place is not step:
        return CheckpointedLoop()
    if isinstance(place, MethodType):
        place, key = place.__self__, f"{_PLACE}{place.__name__}"
    held = getattr(place, "__dict__", None)
    if not isinstance(held, dict):
        return CheckpointedLoop()
    found = held.get(key)
    if not isinstance(found, CheckpointedLoop):
        found = held[key] = CheckpointedLoop()
    return found


def may_capture(outer: Journal, memory: int) -> bool:
    """Whether steps may be captured within a tape: nobody wants to know of their launches, nothing that is
    differentiated goes through memory without a gradient, and the copies that a trial makes are within `memory` bytes.
    """
    config = session.config
    fields = {id(field.memory.whole): field.memory.whole.nbytes for field in list(session.fields)}
    return (
        outer.records_steps
        and not outer.active
        and seam.listener is None
        and sys.getprofile() is None
        and config.arch != "python"
        and not config.kernel_profiler
        and 8 * sum(fields.values()) <= min(memory, 8 * _LARGEST_STATE)
    )


class LoopProgram:
    """The program of a loop's steps, in one call of `checkpoint` within the tape `outer`. `facts`: what each way
    through it does to memory; `nbytes`: what it needs of its own; `replays`: how many steps it has run.
    """

    def __init__(self, step: StepUnderTape, outer: Journal) -> None:
        self._step = step
        self._outer = outer
        self._kept = session.new_memory(step.kept_bytes, clear=False) if step.kept_bytes else None
        self._reached: tuple[Any, tuple[int, ...]] | None = None
        self.facts: list[StepFacts] = [way.facts for way in step.ways]
        self.nbytes = step.kept_bytes + step.scratch_bytes
        self.replays = 0

    def is_for(self, t: int) -> bool:
        """Whether it does what step `t` does as a function. What Python writes to a field before anything uses it is
        where the field begins. Raises `CaptureError` where something has changed for good.
        """
        step = self._step
        if seam.listener is not None:
            return False
        if not step.forward.guards.hold(self._outer):
            step.forward.refuse_if_stale()
            return False
        return (t > 0 or not step.assigned) and step.regions((t,)) is not None

    def written(self, t: int) -> BufferRegions:
        """What step `t`, which it is for, may write to."""
        regions = self._step.regions((t,))
        assert regions is not None, "who runs it has asked"
        return regions.written

    def run(self, t: int) -> None:
        """Run a step."""
        way, numbers, _ = self._step.run((t,), self._kept)
        self.replays += 1
        self._reached = way, numbers

    @property
    def gradients(self) -> set[Buffer]:
        """Those that the gradients of steps read or write."""
        return {buffer for facts in self.facts for buffer in facts.gradients}

    def reverse(self) -> None:
        """Run the gradient of the step that ran last."""
        assert self._reached is not None
        way, numbers = self._reached
        way.reverse(self._kept, numbers, [0.0] * len(way.seeds), NO_ADJOINTS)
