"""Playback of a simulation: the task that advances it, and its worker."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import Any

from tinote.runtime.launch import LaunchStopped
from tinote.runtime.owner import current_owner, new_owner
from tinote.runtime.threads import stop_all
from tinote.viz.draw.arrays import ViewError
from tinote.viz.live.frames import FrameMaker
from tinote.viz.live.recording import FrameRecorder
from tinote.viz.live.simulated import SimulatedView
from tinote.viz.notebook.front_end import remember_output
from tinote.viz.notebook.view import Frame, JobOutcome, Value, Worker, reason_of

FRAME_SECONDS = 1.0 / 60.0
"""A page paints no more often than this."""

STOP_PATIENCE_SECONDS = 0.5
"""Stop gives the step under way this long to return before it stops the kernels that run."""


class Playback:
    """The task that plays a view on the event loop's thread, and the worker that runs everything
    which touches the simulation.
    """

    def __init__(self, view: SimulatedView, frames: FrameMaker) -> None:
        self.view = view
        self.frames = frames
        #: what Stop has ended, since nobody waits for that job any more
        self.interrupted: LaunchStopped | None = None
        self.worker: Worker | None = None
        self.task: asyncio.Task[None] | None = None
        self.owner = new_owner()
        self.send_prints_home = remember_output()
        self.background: set[asyncio.Task[None]] = set()
        try:
            self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.loop = None

    def on_loop(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop's thread: messages and calls may come from another one."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if self.loop is None or running is self.loop:
            action()
        else:
            self.loop.call_soon_threadsafe(action)

    def spawn(self, coroutine: Any) -> None:
        if self.loop is None:
            coroutine.close()
            raise ViewError("this needs a notebook; here, call advance(frames)")
        task = self.loop.create_task(coroutine)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    def request(self, job: Callable[[], Frame]) -> None:
        """Have the worker make a frame, from any thread."""
        self.on_loop(lambda: self.spawn(self.act(job)))

    def play(self) -> None:
        if self.loop is not None and (self.task is None or self.task.done()):
            self.view.note_error(None)
            self.frames.halt.clear()
            self.view.set_trait("state", "playing")
            self.task = self.loop.create_task(self.drive())

    def leave(self, state: str) -> None:
        """No longer playing: `state` says what instead. A batch of steps under way ends after its present step."""
        self.frames.halt.set()
        if self.task is not None:
            self.task.cancel()
            self.task = None
        if self.view.state == "playing":
            self.spawn(self.ended(self.hired()))
        self.view.set_trait("state", state)

    async def ended(self, worker: Worker) -> None:
        """The step under way has ended, too."""
        await worker.run(lambda: None)
        self.view.keep_programs()

    def pause(self) -> None:
        self.leave("paused")
        self.spawn(self.act(self.frames.present))  # The frame that was under way is not sent any more.

    def stop(self) -> None:
        self.leave("stopped")
        if self.worker is not None:
            self.spawn(self.retire(self.worker))
            self.worker = None

    async def retire(self, worker: Worker) -> None:
        """Paint the state in which `worker` leaves the simulation, and end it."""
        impatience = asyncio.get_running_loop().call_later(STOP_PATIENCE_SECONDS, stop_all)
        outcome = await worker.run(lambda: self.apart(self.frames.present))
        impatience.cancel()
        worker.close()
        if self.interrupted is not None:
            self.view.note_error(self.interrupted)
            self.interrupted = None
        if outcome.value is not None and self.view.comm is not None:
            self.view.send_frame(outcome.value)

    def single_step(self, steps: int) -> None:
        self.leave("paused")
        self.view.note_error(None)
        self.spawn(self.act(lambda: self.frames.resume_and_make(steps)))

    async def drive(self) -> None:
        """Make frames as the credits come in, until cancelled or until the step fails."""
        due = time.perf_counter()
        while True:
            await self.view.credits.wait(unseen=self.view.runs_unseen)
            # Paced by a clock, since each sleep ends a little late; longer delays are not made up for in a burst.
            due = max(due, time.perf_counter() - FRAME_SECONDS / 4) + FRAME_SECONDS
            if not await self.act(lambda: self.frames.make_next(self.view.steps_per_frame)):
                return
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

    def request_file(self, make: Callable[[], bytes], ending: str, kind: str, page: str) -> None:
        """Have the worker make a file for a page, from any thread."""
        self.on_loop(lambda: self.spawn(self.deliver(make, ending, kind, page)))

    async def deliver(self, make: Callable[[], bytes], ending: str, kind: str, page: str) -> None:
        """Make a file on the worker, and hand it to the copy of the view that asked for it, as a download, or say there
        why there is none. The simulation goes on.
        """
        if self.view.comm is None:
            return
        outcome = await self.hired().run(make)
        if outcome.value is not None:
            self.view.send({"kind": "file", "ending": ending, "type": kind, "page": page}, buffers=[outcome.value])
        elif outcome.error is not None:
            self.view.send({"kind": "refused", "page": page, "words": f"Not saved: {reason_of(outcome.error)}"})

    def record_or_save(self, page: str) -> None:
        """What the record button does: begin to keep frames, or hand over those that were kept."""
        if self.frames.recorder is None:
            self.frames.recorder = FrameRecorder()
        else:
            self.spawn(self.deliver(self.frames.recorder.gif, "gif", "image/gif", page))
            self.frames.recorder = None
        self.view.set_trait("recording", self.frames.recorder is not None)

    async def act(self, job: Callable[[], Frame]) -> bool:
        """Run `job` on the worker in an empty context and send its frame; False, with the error shown and the view
        stopped, if it raised.
        """
        if self.view.comm is None:
            return False  # The view has been closed since this was asked for.

        def noting() -> Frame:
            try:
                return self.apart(job)
            except LaunchStopped as stopped:
                self.interrupted = stopped
                raise

        outcome: JobOutcome[Frame] = await self.hired().run(noting)
        if outcome.value is None:
            if outcome.error is not None:
                self.fail(outcome.error)
            return False
        view = self.view
        if view.runs_unseen and view.state == "playing" and not view.credits.visible:
            view.renew_page()  # The next one that is seen has all that the page lacks.
            self.frames.is_ahead = True
        else:
            view.send_frame(outcome.value)
        self.frames.note_how_steps_run()
        return True

    def hired(self) -> Worker:
        if self.worker is None:
            self.worker = Worker("tinote view")
        return self.worker

    def fail(self, error: BaseException) -> None:
        """The step failed: show why, and pause. The task that was playing has ended or ends by itself, since this may
        run inside of it.
        """
        self.view.note_error(error)
        self.task = None
        self.leave("stopped")

    def apart(self, job: Callable[..., Value], *args: Any) -> Value:
        """Run `job` in an empty context of this view's own: no tape of a cell sees what it launches, neither clears the
        other's gradients, and what it prints appears where the view was made.
        """
        context = contextvars.Context()
        context.run(current_owner.set, self.owner)
        context.run(self.send_prints_home)
        return context.run(job, *args)
