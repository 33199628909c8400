"""The steps of a running simulation, and the frames of its states."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping

import numpy as np

from tinote.lang.capture.automatic import AutomaticCapture
from tinote.runtime.readback import Looks, Readback
from tinote.runtime.resident import ResidentMemory
from tinote.viz.draw.chart import sample
from tinote.viz.live.pointer import Pointer, PointerQueue
from tinote.viz.live.recording import FrameRecorder
from tinote.viz.live.simulated import SimulatedView
from tinote.viz.live.whole import whole_picture
from tinote.viz.notebook.view import Frame


class FrameMaker:
    """The steps of a view, and the frames that are made of its states, on the view's worker or wherever `advance` is
    called. `step`, `reset_function`, `pointer_function` and `quantities` are the user's functions; `send` sends a frame
    that no call returns.
    """

    def __init__(
        self,
        view: SimulatedView,
        step: AutomaticCapture | None,
        reset_function: Callable[[], object] | None,
        pointer_function: Callable[[Pointer], object] | None,
        quantities: Mapping[str, Callable[[], float]],
        send: Callable[[Frame], None],
    ) -> None:
        self.view = view
        self.step = step
        self.reset_function = reset_function
        self.pointer_function = pointer_function
        self.quantities = quantities
        self.send = send
        self.pointing = PointerQueue()
        #: run so far
        self.steps = 0
        #: made last, whether or not a page was there to paint it
        self.last_frame: Frame | None = None
        #: whether frames have been made that no page was sent
        self.is_ahead = False
        #: which memory of a GPU the last frame alone has looked at
        self.looked_at: weakref.WeakSet[ResidentMemory] | None = None
        #: whether a frame that the pointer has requested is under way
        self.is_pointed = False
        self.recorder: FrameRecorder | None = None
        #: set to end a batch of steps after its present step
        self.halt = threading.Event()

    def tell_pointer(self) -> None:
        """Call the user's function for what the pointer has done since the frame before."""
        if self.pointer_function is not None:
            for pointer in self.pointing.take(self.view.pick):
                self.pointer_function(pointer)

    def pointed_frame(self) -> Frame:
        """The state after the pointer has acted on it, while nothing else moves it."""
        self.is_pointed = False
        self.tell_pointer()
        return self.renewed()

    def renewed(self) -> Frame:
        """The state after something else than a step has changed it: the sample of this step is taken again."""
        if self.view.history.latest is not None and self.view.history.latest[0] == self.steps:
            self.view.history.forget_latest()
        return self.sampled(whole=True)

    def make(self, steps: int) -> Frame:
        self.tell_pointer()
        self.advance(steps)
        return self.recorded(self.sampled())

    def make_next(self, steps: int) -> Frame:
        """The same while the view plays. Where a GPU has the state, what is shown is the state that there is now, and
        meanwhile the GPU runs the steps after it: it need not wait for what is drawn and sent.
        """
        self.tell_pointer()
        step = self.step
        looked_at = self.looked_at if step is not None and step.moves_memory_alone else None
        if not looked_at or self.is_shown:
            self.advance(steps)
        before = Readback.of(looked_at or ())
        if step is None or before is None:
            with Looks() as looks:
                frame = self.sampled()
            self.looked_at = looks.blocks if looks.is_whole else None
            return self.recorded(frame)
        shown, replays = self.steps, step.how.replays
        try:
            self.advance(steps)
        except BaseException:
            self.send(self.sampled_before(before, shown))
            raise
        if step.how.replays - replays == self.steps - shown:
            latest = self.view.history.latest
            frame = self.sampled_before(before, shown)
            if before.is_whole:
                return self.recorded(frame)
            if self.view.history.latest is not latest:
                self.view.history.forget_latest()
        # The step ran as a function, or the frame looked at something else: it would be of two states.
        self.looked_at = None
        return self.recorded(self.sampled(whole=True))

    @property
    def is_shown(self) -> bool:
        return self.last_frame is not None and self.last_frame.message["step"] == self.steps

    def sampled_before(self, before: Readback, steps: int) -> Frame:
        """A frame of the state that was read back after this number of steps."""
        ran, self.steps = self.steps, steps
        try:
            with before:
                return self.sampled()
        finally:
            self.steps = ran

    def advance(self, steps: int) -> None:
        if self.step is not None:
            self.step.renew()
        for _ in range(steps):
            if self.halt.is_set():
                break
            if self.step is not None:
                self.step()
            self.steps += 1

    def recorded(self, frame: Frame) -> Frame:
        """A frame that was made, as part of a recording as well."""
        if self.recorder is not None:
            self.recorder.add(lambda: whole_picture(self.view, self.last_frame).pixels)
        return frame

    def note_how_steps_run(self) -> None:
        if self.step is not None:
            note = self.step.how.sentence
            if note != self.view.step_note:
                self.view.set_trait("step_note", note)

    def resume_and_make(self, steps: int) -> Frame:
        self.halt.clear()
        return self.make(steps)

    def start_again(self) -> Frame:
        if self.reset_function is not None:
            self.reset_function()
        self.steps = 0
        self.view.history.clear()
        return self.sampled(whole=True)

    def present(self) -> Frame:
        """The present state, with the whole plot."""
        return self.sampled(whole=True)

    def again(self) -> Frame:
        """The last frame, with the whole plot: what a cell has changed since belongs to no step yet. The view shows
        that when it looks at the fields again.
        """
        return self.present() if self.last_frame is None else self.with_kept(self.last_frame, whole=True)

    def with_kept(self, frame: Frame, *, whole: bool) -> Frame:
        """A frame of the state, and what pages keep from frame to frame."""
        kept = self.view.kept(whole=whole)
        message = {**frame.message, **kept.message, "whole": whole}
        return Frame(message, [*frame.buffers, *kept.buffers, self.samples(whole=whole)])

    def samples(self, *, whole: bool) -> bytes:
        """All samples of the plot, or the latest."""
        if not self.quantities:
            return b""
        history = self.view.history
        return history.table().tobytes() if whole else np.array(history.latest, np.float64).tobytes()

    def sampled(self, *, whole: bool = False) -> Frame:
        """A frame of the present state, with the quantities sampled if that has not been done at this step: all samples
        (`whole`) or the latest.
        """
        frame = self.view.capture()
        if self.quantities:
            latest = self.view.history.latest
            if latest is None or latest[0] != self.steps:
                self.view.history.append(self.steps, [sample(*named) for named in self.quantities.items()])
        self.last_frame = Frame({**frame.message, "step": self.steps}, frame.buffers)
        whole, self.is_ahead = whole or self.is_ahead, False
        return self.with_kept(self.last_frame, whole=whole)
