"""A view that runs a simulation: play, pause, step, reset, speed, Stop, and a plot of running quantities.

While it plays, an asyncio task asks for a frame's credit, lets a worker thread advance the simulation (native code
releases the interpreter, so other cells stay usable), and sends the frame. The worker does everything that touches the
simulation, one job after another, each in an empty context: what the user's step launches is never recorded on a tape
that a cell has opened.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import traitlets

from tinote.runtime.party import new_party, party
from tinote.runtime.threads import stop_all
from tinote.viz.arrays import ViewError
from tinote.viz.front_end import remember_output
from tinote.viz.plot import History, as_series
from tinote.viz.view import Frame, LiveView, Outcome, Worker, describe_error

__all__ = ["LiveSimulation"]

UNATTENDED_FRAMES = 60
"""Frames that a view advances where a program executes the notebook and nobody can press play."""

UNATTENDED_SECONDS = 5.0
"""A slow simulation is left after this time there."""

FRAME_SECONDS = 1.0 / 60.0
"""A page paints no more often than this."""

STOP_PATIENCE_SECONDS = 0.5
"""Stop gives the step under way this long to return before it stops the kernels that run."""

Quantities = Callable[[], float] | Mapping[str, Callable[[], float]] | None


class LiveSimulation(LiveView):
    """Base of the views of a running simulation.

    `step()` advances it by one step, `reset()` takes it back to its start, `energy` or `plots` are numbers that are
    sampled after each frame. A subclass captures and draws the state: `capture` runs on the worker, `picture` on the
    main thread.
    """

    state = traitlets.Enum(("paused", "playing", "stopped"), "paused").tag(sync=True)
    steps_per_frame = traitlets.Int(1, min=1).tag(sync=True)
    error = traitlets.Unicode().tag(sync=True)
    """The text of the exception that ended the run, or nothing."""

    can_step = traitlets.Bool(False).tag(sync=True)
    can_reset = traitlets.Bool(False).tag(sync=True)
    series = traitlets.List(traitlets.Unicode()).tag(sync=True)
    plot_label = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        *,
        step: Callable[[], object] | None,
        reset: Callable[[], object] | None,
        energy: Quantities,
        plots: Quantities,
        steps_per_frame: int,
        unattended_frames: int,
        **traits: Any,
    ) -> None:
        for name, function in (("step", step), ("reset", reset)):
            if function is not None and not callable(function):
                raise ViewError(f"{name} is {type(function).__name__}, not a function without arguments")
        if steps_per_frame < 1:
            raise ViewError(f"steps_per_frame is {steps_per_frame}; it is at least 1")
        self._step = step
        self._reset = reset
        self._quantities = {**as_series(energy, "energy"), **as_series(plots, "value")}
        self.history = History(tuple(self._quantities))
        self.steps = 0
        self.exception: BaseException | None = None
        self._unattended_frames = unattended_frames
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._halt = threading.Event()
        self._party = new_party()
        self._send_prints_home = remember_output()
        self._background: set[asyncio.Task[None]] = set()
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        super().__init__(
            steps_per_frame=steps_per_frame,
            can_step=step is not None,
            can_reset=reset is not None,
            series=list(self._quantities),
            **traits,
        )

    # What a subclass provides.

    def capture(self) -> Frame:
        """The present state as a frame, kept for `picture` as well. Runs on the worker, between steps."""
        raise NotImplementedError

    # What a user calls.

    def play(self) -> None:
        """Run until `pause` or `stop`; frames are made while the view is in sight."""
        if self._loop is None:
            raise ViewError("play() needs a notebook; here, call advance(frames)")
        self._on_loop(self._play)

    def pause(self) -> None:
        """Hold after the step that is being made; `play` goes on from there."""
        self._on_loop(self._pause)

    def stop(self) -> None:
        """End the run and free its thread; `play` starts it again.

        A kernel that does not return within half a second is stopped, and with it any other one that runs just then:
        the runtime cannot tell whose it is.
        """
        self._on_loop(self._stop)

    def single_step(self) -> None:
        """Make one frame (`steps_per_frame` steps) and hold."""
        self._on_loop(lambda: self._single_step(self.steps_per_frame))

    def reset(self) -> None:
        """Take the simulation back to its start, by the function given as `reset`, and clear the plot."""
        if self._reset is None:
            raise ViewError("this view has no reset function", hint="give one as reset=…")
        self._on_loop(lambda: self._spawn(self._act(self._start_again)))

    def refresh(self) -> None:
        """Paint the present state, after a cell has changed it."""
        if self.credits.connected:
            self._on_loop(lambda: self._spawn(self._act(self._present)))

    def advance(self, frames: int = 1) -> None:
        """Make `frames` frames here and now, without a page; an exception of the step is raised. Not while the view
        plays.
        """
        if self.state == "playing":
            raise ViewError("the view is playing; pause it first")
        self._halt.clear()
        for _ in range(frames):
            self._apart(self._make_frame, self.steps_per_frame)

    # On the event loop's thread.

    def _on_loop(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop's thread: messages and calls may come from another one."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if self._loop is None or running is self._loop:
            action()
        else:
            self._loop.call_soon_threadsafe(action)

    def _spawn(self, coroutine: Any) -> None:
        if self._loop is None:
            coroutine.close()
            raise ViewError("this needs a notebook; here, call advance(frames)")
        task = self._loop.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _play(self) -> None:
        if self._loop is not None and (self._task is None or self._task.done()):
            self.error = ""
            self.exception = None
            self._halt.clear()
            self.state = "playing"
            self._task = self._loop.create_task(self._drive())

    def _leave(self, state: str) -> None:
        """No longer playing: `state` says what instead. A batch of steps under way ends after its present step."""
        self._halt.set()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.state = state

    def _pause(self) -> None:
        self._leave("paused")
        self._spawn(self._act(self._present))  # The frame that was under way is not sent any more.

    def _stop(self) -> None:
        self._leave("stopped")
        if self._worker is not None:
            self._spawn(self._retire(self._worker))
            self._worker = None

    async def _retire(self, worker: Worker) -> None:
        """Paint the state in which `worker` leaves the simulation, and end it."""
        impatience = asyncio.get_running_loop().call_later(STOP_PATIENCE_SECONDS, stop_all)
        outcome = await worker.run(lambda: self._apart(self._present))
        impatience.cancel()
        worker.close()
        if outcome.value is not None and self.comm is not None:
            self.send_frame(outcome.value)

    def _single_step(self, steps: int) -> None:
        self._leave("paused")
        self.error = ""
        self._spawn(self._act(lambda: self._resume_and_make_frame(steps)))

    async def _drive(self) -> None:
        """Make frames as the credits come in, until cancelled or until the step fails."""
        while True:
            await self.credits.wait()
            begun = time.perf_counter()
            if not await self._act(lambda: self._make_frame(self.steps_per_frame)):
                return
            # Frames of a burst would arrive between two paints, and all but the last be lost.
            await asyncio.sleep(max(0.0, begun + FRAME_SECONDS - time.perf_counter()))

    async def _act(self, job: Callable[[], Frame]) -> bool:
        """Run `job` on the worker in an empty context and send its frame; False, with the error shown and the view
        stopped, if it raised.
        """
        if self._worker is None:
            self._worker = Worker("tinote view")
        outcome: Outcome[Frame] = await self._worker.run(lambda: self._apart(job))
        if outcome.value is None:
            if outcome.error is not None:
                self._fail(outcome.error)
            return False
        self.send_frame(outcome.value)
        return True

    def _fail(self, error: BaseException) -> None:
        """The step failed: show why, and hold. The task that was playing has ended or ends by itself, since this may
        run inside of it.
        """
        self.exception = error
        self.error = describe_error(error)
        self._task = None
        self._leave("stopped")

    # On the worker, or wherever `advance` is called.

    def _make_frame(self, steps: int) -> Frame:
        for _ in range(steps):
            if self._halt.is_set():
                break
            if self._step is not None:
                self._step()
            self.steps += 1
        return self._sampled()

    def _apart(self, job: Callable[..., Frame], *args: Any) -> Frame:
        """Run `job` in an empty context of this view's own: no tape of a cell sees what it launches, neither clears the
        other's gradients, and what it prints appears where the view was made.
        """
        context = contextvars.Context()
        context.run(party.set, self._party)
        context.run(self._send_prints_home)
        return context.run(job, *args)

    def _resume_and_make_frame(self, steps: int) -> Frame:
        self._halt.clear()
        return self._make_frame(steps)

    def _start_again(self) -> Frame:
        if self._reset is not None:
            self._reset()
        self.steps = 0
        self.history.clear()
        return self._sampled(whole=True)

    def _present(self) -> Frame:
        """The present state for a page that has just been opened: with the whole plot."""
        return self._sampled(whole=True)

    def _sampled(self, *, whole: bool = False) -> Frame:
        """A frame of the present state, with the quantities sampled if that has not been done at this step: all samples
        (`whole`) or the latest.
        """
        frame = self.capture()
        samples = b""
        if self._quantities:
            latest = self.history.latest
            if latest is None or latest[0] != self.steps:
                latest = self.history.append(self.steps, [float(quantity()) for quantity in self._quantities.values()])
            samples = self.history.table().tobytes() if whole else np.array(latest, np.float64).tobytes()
        return Frame({**frame.message, "step": self.steps, "whole": whole}, [*frame.buffers, samples])

    # What the base asks for.

    def first_frame(self) -> None:
        self._on_loop(lambda: self._spawn(self._act(self._present)))

    def prepare_unattended(self) -> None:
        """Advance a bounded number of frames, once, so that the picture shows the simulation under way."""
        if self.steps or self.error:
            return
        end = time.perf_counter() + UNATTENDED_SECONDS
        try:
            self._apart(self._present)
            for _ in range(self._unattended_frames):
                self.advance()
                if time.perf_counter() > end:
                    break
        except Exception as error:
            self.exception = error
            self.error = describe_error(error)
            raise

    def obey(self, message: dict[str, Any]) -> None:
        match message.get("kind"):
            case "play":
                self.play()
            case "pause":
                self.pause()
            case "step":
                steps = max(1, int(message.get("steps", self.steps_per_frame)))
                self._on_loop(lambda: self._single_step(steps))
            case "reset":
                self.reset()
            case "stop":
                self.stop()

    def close(self) -> None:
        """Stop, and take the view off every page."""
        if hasattr(self, "_halt"):  # Also called by the garbage collector, for a view whose arguments were refused.
            self._stop()
        super().close()
