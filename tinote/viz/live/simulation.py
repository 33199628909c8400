"""A view that runs a simulation: play, pause, step, reset, speed, Stop, and a plot of running quantities.

While it plays, an asyncio task waits for a frame credit, lets a worker thread advance the simulation (native code
releases the interpreter, so other cells stay usable), and sends the frame. The worker does everything that touches the
simulation, one job after another, each in an empty context: what the user's step launches is never recorded on a tape
that a cell has opened.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import traitlets

from tinote.errors import SerializationError
from tinote.lang.capture.automatic import AutomaticCapture, StepCapture
from tinote.lazy import lazy
from tinote.runtime.launch import LaunchStopped
from tinote.runtime.owner import current_owner, new_owner
from tinote.runtime.readback import Looks, Readback
from tinote.runtime.resident import ResidentMemory
from tinote.runtime.threads import stop_all
from tinote.source import caller
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import CHART_HEIGHT, History, as_series, draw_chart
from tinote.viz.draw.colorbar import COLORBAR_HEIGHT, draw_colorbar
from tinote.viz.draw.colormap import ColorScale
from tinote.viz.draw.film import check_film, write_film
from tinote.viz.draw.pen import Pen, PixelPen, VectorPen
from tinote.viz.draw.pictures import PICTURE_FORMATS, Picture, check_picture
from tinote.viz.draw.vector import Part, VectorPicture, elements_of, write_svg
from tinote.viz.live.pointer import Pointer, PointerQueue
from tinote.viz.live.recording import LONGEST_RECORDING, FrameRecorder
from tinote.viz.notebook.error_view import error_as_html
from tinote.viz.notebook.front_end import Bundle, for_page, remember_output, stored_size
from tinote.viz.notebook.progress import progress
from tinote.viz.notebook.view import Frame, JobOutcome, LiveView, Value, Worker, describe_error
from tinote.viz.pages.sources import BoundSlider, Sources, ViewFunctions

if TYPE_CHECKING:
    from tinote.viz.pages import export, stored
else:
    export = lazy("tinote.viz.pages.export")  # what makes pages brings Markdown
    stored = lazy("tinote.viz.pages.stored")

UNATTENDED_FRAMES = 60
"""Frames that a view advances where a program executes the notebook and nobody can press play."""

TIMELINE_MEGABYTES = 32.0
"""How much of the last frames a page keeps of a view, to show them again."""

MOST_TIMELINE_MEGABYTES = 1000.0

UNATTENDED_SECONDS = 5.0
"""A slow simulation is left after this time there."""

FRAME_SECONDS = 1.0 / 60.0
"""A page paints no more often than this."""

STOP_PATIENCE_SECONDS = 0.5
"""Stop gives the step under way this long to return before it stops the kernels that run."""

PAGES = (".html", ".htm")
"""The endings of names that pages may have."""

Quantities = Callable[[], float] | Mapping[str, Callable[[], float]] | None


class LiveSimulation(LiveView):
    """Base of the views of a running simulation.

    `step()` advances it by one step, `reset()` takes it back to its start, `energy` or `plots` are numbers that are
    sampled after each frame. A subclass captures and draws the state: `capture` runs on the worker, between steps, and
    `painted` draws what was captured last, wherever a picture is wanted.

    `pointer(pointer)` is called between frames while a button is held on the view, and once when it is let go; also
    while the simulation is paused.

    Methods
    -------
    advance
    change
    close
    pause
    picture
    play
    record
    refresh
    reset
    save
    single_step
    snapshot
    stop

    Attributes
    ----------
    captured : StepCapture or None
    exception : Exception or None
        What the step raised, if that ended the run.
    history : History
        The samples of the plot: `history.table()` is an array of the step number and the quantities.
    state : {"paused", "playing", "stopped"}
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise SerializationError(
            f"an open view ({type(self).__name__}) belongs to this notebook and cannot be sent to another process",
            caller(),
            hint="make it where its function is not sent, and send the fields that it shows",
        )

    PAGE_KIND: ClassVar[str]
    """By which a page knows what paints the view."""

    state = traitlets.Enum(("paused", "playing", "stopped"), "paused").tag(sync=True)
    steps_per_frame = traitlets.Int(1, min=1).tag(sync=True)
    error = traitlets.Unicode()
    """The text of the exception that ended the run, or nothing."""

    error_card = traitlets.Unicode().tag(sync=True)
    """The same as a page shows it, in HTML."""

    can_step = traitlets.Bool(False).tag(sync=True)
    can_reset = traitlets.Bool(False).tag(sync=True)
    can_point = traitlets.Bool(False).tag(sync=True)
    recording = traitlets.Bool(False).tag(sync=True)
    """Whether the frames that are made are kept for a GIF."""

    series = traitlets.List(traitlets.Unicode()).tag(sync=True)
    plot_label = traitlets.Unicode().tag(sync=True)
    width = traitlets.Int(480).tag(sync=True)
    height = traitlets.Int(480).tag(sync=True)
    chart_height = traitlets.Int(CHART_HEIGHT).tag(sync=True)
    table = traitlets.Unicode().tag(sync=True)
    """Of a view that shows numbers as colours: those of the 256 bytes that numbers are sent as, three bytes each, in
    base 64.
    """

    colorbar = traitlets.Bool(False).tag(sync=True)
    """Whether a bar below the stage tells which numbers they stand for, as `color_label`."""

    color_label = traitlets.Unicode().tag(sync=True)
    step_note = traitlets.Unicode().tag(sync=True)
    """How steps run, in a sentence: the tooltip of their number."""

    timeline = traitlets.Float(TIMELINE_MEGABYTES).tag(sync=True)
    """Megabytes of the last frames that the page keeps, to show them again."""

    program = traitlets.Unicode().tag(sync=True)
    """How the view runs without a kernel (`pages/stored.py`), for the notebook that is saved; or nothing."""

    _all: ClassVar[weakref.WeakSet[LiveSimulation]] = weakref.WeakSet()

    def __init__(
        self,
        *,
        size: int | Sequence[int],
        pointer: Callable[[Pointer], object] | None = None,
        step: Callable[[], object] | None,
        reset: Callable[[], object] | None,
        energy: Quantities,
        plots: Quantities,
        plot_label: str,
        steps_per_frame: int,
        unattended_frames: int,
        timeline: float,
        **traits: Any,
    ) -> None:
        for name, function in (("step", step), ("reset", reset)):
            if function is not None and not callable(function):
                raise ViewError(f"{name} is {type(function).__name__}, not a function without arguments")
        if pointer is not None and not callable(pointer):
            raise ViewError(f"pointer is {type(pointer).__name__}, not a function of a Pointer")
        if steps_per_frame < 1:
            raise ViewError(f"steps_per_frame must be at least 1, not {steps_per_frame}")
        if not 0.0 <= timeline <= MOST_TIMELINE_MEGABYTES:
            raise ViewError(f"timeline must be from 0 to {MOST_TIMELINE_MEGABYTES:,.0f} megabytes, not {timeline}")
        width, height = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        if width < 16 or height < 16:
            raise ViewError(f"size {size} is too small: it must be at least 16 pixels")
        self._step = None if step is None else AutomaticCapture(step)
        self._functions = ViewFunctions(step, reset, pointer, Pointer)
        self._reset = reset
        self._pointer = pointer
        self._pointing = PointerQueue()
        self._last_frame: Frame | None = None  # Made last, whether or not a page was there to paint it.
        self._is_ahead = False  # frames have been made that no page was sent
        self._looked_at: weakref.WeakSet[ResidentMemory] | None = None  # which memory of a GPU, by the last frame alone
        self.page_sliders: dict[str, BoundSlider] = {}
        """The sliders that are bound to the view, by their labels."""
        self._is_pointed = False  # a frame that the pointer has requested is under way
        self._recording: FrameRecorder | None = None
        self._quantities = {**as_series(energy, "energy"), **as_series(plots, "value")}
        self.history = History(tuple(self._quantities))
        self.steps = 0
        self.exception: BaseException | None = None
        self._interrupted: LaunchStopped | None = None  # what Stop has ended, since nobody waits for that job any more
        self._unattended_frames = unattended_frames
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._halt = threading.Event()
        self._owner = new_owner()
        self._send_prints_home = remember_output()
        self._background: set[asyncio.Task[None]] = set()
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        super().__init__(
            steps_per_frame=steps_per_frame,
            timeline=float(timeline),
            can_step=step is not None,
            can_reset=reset is not None,
            can_point=pointer is not None,
            series=list(self._quantities),
            plot_label=plot_label or ("energy" if energy is not None else ""),
            width=width,
            height=height,
            **traits,
        )
        self._all.add(self)

    # What a subclass provides.

    def capture(self) -> Frame:
        """The present state as a frame, kept for `painted` as well. Runs on the worker, between steps."""
        raise NotImplementedError

    def painted(self, make: type[Picture] = Picture) -> Picture | None:
        """The state that was captured last as a picture of `width` × `height` pixels, on white where the view follows
        the page; None for a view that shows its plot alone. `make` may keep discs and strokes as they are, for a
        vector graphic.
        """
        raise NotImplementedError

    def kept(self, *, whole: bool) -> Frame:
        """What pages keep from frame to frame, besides the plot: all of it (`whole`), or what the last frame has added.
        Its binary parts follow those of the frame.
        """
        del whole
        return Frame({}, [])

    def legend(self) -> ColorScale | None:
        """The colour map that is explained below the stage, if there is one."""
        return None

    def pick(self, across: float, up: float, pressed: bool) -> tuple[tuple[float, ...], Any]:
        """What lies at a position on the stage: see `pointer.Picker`. Runs on the worker."""
        raise NotImplementedError

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make the frames of this view itself, besides its traits."""
        raise NotImplementedError

    def pointed(self) -> tuple[int, int]:
        """How many numbers the position of a pointer has here, and what it points at; 0 where that is nothing."""
        return 2, 0

    # What a user calls.

    @property
    def captured(self) -> StepCapture | None:
        """How the view's step runs: replayed as a captured program, or as the function, and why.

        None for a view without a step. A step that changes nothing but memory and numbers in Python is captured
        automatically while it runs (`ti.capture`), which makes many steps a frame cheap, and captured anew when
        something changes that it depends on.
        """
        return None if self._step is None else self._step.how

    def expect_changes(self, function: Callable[..., object]) -> None:
        """`function` will be called between steps, as that of a slider is: the numbers in Python that it assigns are
        variables of the captured step, which is not captured anew for them.
        """
        if self._step is not None:
            self._step.expect_changes(function)

    def play(self) -> None:
        """Run until `pause` or `stop`; frames are made while the view is in sight.

        Raises
        ------
        ViewError
            Outside of a notebook.
        """
        if self._loop is None:
            raise ViewError("play() needs a notebook; here, call advance(frames)")
        self._on_loop(self._play)

    def pause(self) -> None:
        """Pause after the step in progress; `play` continues from there."""
        self._on_loop(self._pause)

    def stop(self) -> None:
        """End the run and free its thread; `play` starts it again.

        A kernel that does not return within half a second is stopped, and with it any other one that runs just then:
        the runtime cannot tell whose it is. The view then says which kernel that was, and where.
        """
        self._on_loop(self._stop)

    def single_step(self) -> None:
        """Make one frame (`steps_per_frame` steps) and pause."""
        self._on_loop(lambda: self._single_step(self.steps_per_frame))

    def reset(self) -> None:
        """Take the simulation back to its start, by the function given as `reset`, and clear the plot.

        Raises
        ------
        ViewError
            For a view without such a function.
        """
        if self._reset is None:
            raise ViewError("this view has no reset function", hint="give one as reset=…")
        self._on_loop(lambda: self._spawn(self._act(self._start_again)))

    def refresh(self) -> None:
        """Paint the present state, after a cell has changed it."""
        if self.credits.connected:
            self._on_loop(lambda: self._spawn(self._act(self._renewed)))

    def change(self, action: Callable[[], object]) -> None:
        """Call a function between two steps, and paint the result; where no page shows the view, it is called now.

        Parameters
        ----------
        action : callable
            A function without arguments that may change fields or launch kernels.
        """

        def job() -> Frame:
            action()
            return self._renewed()

        if self._loop is not None and self.credits.connected:
            self._on_loop(lambda: self._spawn(self._act(job)))
        else:
            self._apart(job)

    def picture(self) -> bytes:
        """The state and the plot below it, on white or the view's background, as a PNG file."""
        return self._drawn().png()

    def save(self, path: str | Path) -> Path:
        """Write the view as one HTML page that runs, without Python, server or network.

        It begins in the present state. A quantity or a pointer's handler that cannot be captured is left out, with a
        warning.

        Parameters
        ----------
        path : path
            The file. For the ending of a picture, such as ".png" or ".svg", a `snapshot` is written.

        Returns
        -------
        Path
            Where the page is.

        Raises
        ------
        ViewError
            For another ending.
        CaptureError
            At the user's line, for a step, a reset or a function of what is shown that cannot be captured.
        """
        path = Path(path)
        if path.suffix.lower() not in PAGES:
            check_picture(path, (*PAGES, *PICTURE_FORMATS, ".svg"))
            self.snapshot(path)
            return path
        return export.save(self, path)

    def keep_program(self) -> None:
        """Make what the notebook keeps of the view besides its picture: how it runs without a kernel, from its present
        state. Not while a view plays, whose steps would be among what is captured.
        """
        if stored_size() > 0 and not any(view.state == "playing" for view in list(self._all)):
            self.program = stored.kept(self, stored_size())

    def _repr_mimebundle_(self, **_: Any) -> Bundle:  # type: ignore[override]
        return self.page_bundle([self], repr(self)) if for_page() else super()._repr_mimebundle_()

    @staticmethod
    def page_bundle(views: Sequence[Any], text: str) -> Bundle:
        """What the output of views that stand together holds for a page."""
        return stored.page_bundle(views, text)

    def page_functions(self) -> ViewFunctions:
        """What the view calls, for a page that calls it."""
        return self._functions._replace(quantities=dict(self._quantities), pointed=self.pointed())

    def snapshot(self, path: str | Path) -> None:
        """Write the present picture to a file.

        In an SVG, discs, strokes and the plot stay sharp at every size, and what is made of pixels is embedded.

        Parameters
        ----------
        path : path
            The file, whose ending says the format.

        Raises
        ------
        ViewError
            For an ending of another kind.
        """
        path = Path(path)
        check_picture(path, (*PICTURE_FORMATS, ".svg"))
        if path.suffix.lower() == ".svg":
            self._capture_now()
            self._write_svg(path)
        else:
            self._drawn().save(path)

    def record(
        self, path: str | Path, frames: int = 60, frames_per_second: float = 25.0, width: int | None = None
    ) -> None:
        """Make frames here and now, as `advance` does, and write them to a film, beginning with the present state.

        A recording of more than a second shows a progress bar, and at the end the size of the file is printed.

        Parameters
        ----------
        path : path
            The file: .gif, or .mp4 or .webm, which need the program ffmpeg (on the PATH, or from the library
            imageio-ffmpeg).
        frames : int, default 60
            The number of frames.
        frames_per_second : float, default 25
            How fast they are played.
        width : int, optional
            The width of the film in pixels, by default that of the view.

        Raises
        ------
        ViewError
            For another ending, without ffmpeg, and for numbers out of range.
        """
        longest = LONGEST_RECORDING if Path(path).suffix.lower() == ".gif" else None
        if frames < 1 or (longest is not None and frames >= longest):
            less = "" if longest is None else f", and for a GIF fewer than {longest}"
            raise ViewError(f"a recording must have at least 1 frame{less}, not {frames}")
        if width is not None and not 16 <= width <= 7680:
            raise ViewError(f"the width of a film must be between 16 and 7680 pixels, not {width}")
        check_film(Path(path), frames_per_second)
        size = write_film(Path(path), self._frames(frames, width, Path(path).name), frames_per_second)
        print(f"{path}: {frames + 1} frames, {size / 1e6:.2g} MB")

    def _frames(self, count: int, width: int | None, label: str) -> Iterator[np.ndarray]:
        """The present state and those after each of `count` more frames, in RGB."""
        self._apart(self._present)
        yield self._whole().scaled(width)
        for _ in progress(range(count), label=label):
            self.advance()
            yield self._whole().scaled(width)

    def advance(self, frames: int = 1) -> None:
        """Make frames here and now, without a page; an exception of the step is raised.

        Parameters
        ----------
        frames : int, default 1
            The number of frames, of `steps_per_frame` steps each.

        Raises
        ------
        ViewError
            While the view plays.
        """
        if self.state == "playing":
            raise ViewError("the view is playing; pause it first")
        self._halt.clear()
        for _ in range(frames):
            self._apart(self._make_frame, self.steps_per_frame)
            self._is_ahead = True
            self._note_how_steps_run()

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
            self._note_error(None)
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
        if self._interrupted is not None:
            self._note_error(self._interrupted)
            self._interrupted = None
        if outcome.value is not None and self.comm is not None:
            self.send_frame(outcome.value)

    def _single_step(self, steps: int) -> None:
        self._leave("paused")
        self._note_error(None)
        self._spawn(self._act(lambda: self._resume_and_make_frame(steps)))

    async def _drive(self) -> None:
        """Make frames as the credits come in, until cancelled or until the step fails."""
        due = time.perf_counter()
        while True:
            await self.credits.wait()
            # Paced by a clock, since each sleep ends a little late; longer delays are not made up for in a burst.
            due = max(due, time.perf_counter() - FRAME_SECONDS / 4) + FRAME_SECONDS
            if not await self._act(lambda: self._make_next_frame(self.steps_per_frame)):
                return
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

    async def _deliver(self, make: Callable[[], bytes], name: str, kind: str, page: str) -> None:
        """Make a file on the worker, and hand it to the copy of the view that asked for it, as a download."""
        if self.comm is None:
            return
        outcome = await self._hired().run(make)
        if outcome.value is None:
            if outcome.error is not None:
                self._fail(outcome.error)
            return
        self.send({"kind": "file", "name": name, "type": kind, "page": page}, buffers=[outcome.value])

    def _record_or_save(self, page: str) -> None:
        """What the record button does: begin to keep frames, or hand over those that were kept."""
        if self._recording is None:
            self._recording = FrameRecorder()
        else:
            self._spawn(self._deliver(self._recording.gif, "simulation.gif", "image/gif", page))
            self._recording = None
        self.recording = self._recording is not None

    async def _act(self, job: Callable[[], Frame]) -> bool:
        """Run `job` on the worker in an empty context and send its frame; False, with the error shown and the view
        stopped, if it raised.
        """
        if self.comm is None:
            return False  # The view has been closed since this was asked for.

        def noting() -> Frame:
            try:
                return self._apart(job)
            except LaunchStopped as stopped:
                self._interrupted = stopped
                raise

        outcome: JobOutcome[Frame] = await self._hired().run(noting)
        if outcome.value is None:
            if outcome.error is not None:
                self._fail(outcome.error)
            return False
        self.send_frame(outcome.value)
        self._note_how_steps_run()
        return True

    def _hired(self) -> Worker:
        if self._worker is None:
            self._worker = Worker("tinote view")
        return self._worker

    def _fail(self, error: BaseException) -> None:
        """The step failed: show why, and pause. The task that was playing has ended or ends by itself, since this may
        run inside of it.
        """
        self._note_error(error)
        self._task = None
        self._leave("stopped")

    def _note_error(self, error: BaseException | None) -> None:
        """What ended the run, or nothing, as text and as a card."""
        self.exception = error
        self.error = "" if error is None else describe_error(error)
        self.error_card = "" if error is None else error_as_html(error)

    def _note_how_steps_run(self) -> None:
        if self._step is not None:
            note = self._step.how.sentence
            if note != self.step_note:
                self.step_note = note

    # On the worker, or wherever `advance` is called.

    def _capture_now(self) -> None:
        """Capture what is there now, unless the worker does so, while it runs."""
        if self.state != "playing" or self._last_frame is None:
            self._apart(self._present)

    def _drawn(self) -> Picture:
        """The state and the plot below it: what the worker has captured last, while it runs, else what is there now."""
        self._capture_now()
        return self._whole()

    def _whole(self) -> Picture:
        """What was captured last, and the plot below it."""
        stage = self.painted()
        parts = [] if stage is None else [stage.pixels]
        for height, draw in self._below():
            pen = PixelPen(self.width, height)
            draw(pen)
            parts.append(pen.pixels())
        whole = Picture(self.width, sum(len(part) for part in parts))
        whole.pixels[:] = np.concatenate(parts)
        return whole

    def _write_svg(self, path: Path) -> None:
        """The same as an SVG file."""
        stage = self.painted(VectorPicture)
        parts: list[Part] = []
        if stage is not None:
            parts.append((stage.height, elements_of(stage)))
        for height, draw in self._below():
            pen = VectorPen()
            draw(pen)
            parts.append((height, pen.elements))
        write_svg(path, self.width, parts)

    def _below(self) -> list[tuple[int, Callable[[Pen], None]]]:
        """What is shown below the stage: how high each part is, and what draws it."""
        parts: list[tuple[int, Callable[[Pen], None]]] = []
        scale = self.legend()
        if scale is not None and self._last_frame is not None:
            low, high = (self._last_frame.message[name] for name in ("low", "high"))
            bar = partial(
                draw_colorbar, colors=scale.colors, low=low, high=high, width=self.width, label=self.color_label
            )
            parts.append((COLORBAR_HEIGHT, bar))
        if self.series:
            size = {"width": self.width, "height": self.chart_height}
            parts.append(
                (self.chart_height, partial(draw_chart, history=self.history, y_label=self.plot_label, **size))
            )
        return parts

    def _whole_png(self) -> bytes:
        return self._whole().png()

    def _tell_pointer(self) -> None:
        """Call the user's function for what the pointer has done since the frame before."""
        if self._pointer is not None:
            for pointer in self._pointing.take(self.pick):
                self._pointer(pointer)

    def _pointed(self) -> Frame:
        """The state after the pointer has acted on it, while nothing else moves it."""
        self._is_pointed = False
        self._tell_pointer()
        return self._renewed()

    def _renewed(self) -> Frame:
        """The state after something else than a step has changed it: the sample of this step is taken again."""
        if self.history.latest is not None and self.history.latest[0] == self.steps:
            self.history.forget_latest()
        return self._sampled(whole=True)

    def _make_frame(self, steps: int) -> Frame:
        self._tell_pointer()
        self._advance(steps)
        return self._recorded(self._sampled())

    def _make_next_frame(self, steps: int) -> Frame:
        """The same while the view plays. Where a GPU has the state, what is shown is the state that there is now, and
        meanwhile the GPU runs the steps after it: it need not wait for what is drawn and sent.
        """
        self._tell_pointer()
        step = self._step
        looked_at = self._looked_at if step is not None and step.moves_memory_alone else None
        if not looked_at or self._is_shown:
            self._advance(steps)
        before = Readback.of(looked_at or ())
        if step is None or before is None:
            with Looks() as looks:
                frame = self._sampled()
            self._looked_at = looks.blocks if looks.is_whole else None
            return self._recorded(frame)
        shown, replays = self.steps, step.how.replays
        try:
            self._advance(steps)
        except BaseException:
            frame = self._sampled_before(before, shown)
            self._on_loop(lambda: self.send_frame(frame))
            raise
        if step.how.replays - replays == self.steps - shown:
            latest = self.history.latest
            frame = self._sampled_before(before, shown)
            if before.is_whole:
                return self._recorded(frame)
            if self.history.latest is not latest:
                self.history.forget_latest()
        # The step ran as a function, or the frame looked at something else: it would be of two states.
        self._looked_at = None
        return self._recorded(self._sampled(whole=True))

    @property
    def _is_shown(self) -> bool:
        return self._last_frame is not None and self._last_frame.message["step"] == self.steps

    def _sampled_before(self, before: Readback, steps: int) -> Frame:
        """A frame of the state that was read back after this number of steps."""
        ran, self.steps = self.steps, steps
        try:
            with before:
                return self._sampled()
        finally:
            self.steps = ran

    def _advance(self, steps: int) -> None:
        if self._step is not None:
            self._step.renew()
        for _ in range(steps):
            if self._halt.is_set():
                break
            if self._step is not None:
                self._step()
            self.steps += 1

    def _recorded(self, frame: Frame) -> Frame:
        """A frame that was made, as part of a recording as well."""
        if self._recording is not None:
            self._recording.add(lambda: self._whole().pixels)
        return frame

    def _apart(self, job: Callable[..., Value], *args: Any) -> Value:
        """Run `job` in an empty context of this view's own: no tape of a cell sees what it launches, neither clears the
        other's gradients, and what it prints appears where the view was made.
        """
        context = contextvars.Context()
        context.run(current_owner.set, self._owner)
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
        """The present state, with the whole plot."""
        return self._sampled(whole=True)

    def _again(self) -> Frame:
        """The last frame, with the whole plot: what a cell has changed since belongs to no step yet. The view shows
        that when it looks at the fields again.
        """
        return self._present() if self._last_frame is None else self._with_kept(self._last_frame, whole=True)

    def _with_kept(self, frame: Frame, *, whole: bool) -> Frame:
        """A frame of the state, and what pages keep from frame to frame."""
        kept = self.kept(whole=whole)
        message = {**frame.message, **kept.message, "whole": whole}
        return Frame(message, [*frame.buffers, *kept.buffers, self._samples(whole=whole)])

    def _samples(self, *, whole: bool) -> bytes:
        """All samples of the plot, or the latest."""
        if not self._quantities:
            return b""
        return self.history.table().tobytes() if whole else np.array(self.history.latest, np.float64).tobytes()

    def _sampled(self, *, whole: bool = False) -> Frame:
        """A frame of the present state, with the quantities sampled if that has not been done at this step: all samples
        (`whole`) or the latest.
        """
        frame = self.capture()
        if self._quantities:
            latest = self.history.latest
            if latest is None or latest[0] != self.steps:
                self.history.append(self.steps, [float(quantity()) for quantity in self._quantities.values()])
        self._last_frame = Frame({**frame.message, "step": self.steps}, frame.buffers)
        whole, self._is_ahead = whole or self._is_ahead, False
        return self._with_kept(self._last_frame, whole=whole)

    # What the base asks for.

    def first_frame(self) -> None:
        self._on_loop(lambda: self._spawn(self._act(self._again)))

    def streams(self) -> bool:
        return self.state == "playing"

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
            self._note_error(error)
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
            case "pointer":
                self._point(str(message["phase"]), *(float(part) for part in message["place"]))
            case "record":
                page = str(message.get("page"))
                self._on_loop(lambda: self._record_or_save(page))
            case "snapshot":
                page = str(message.get("page"))
                self._on_loop(lambda: self._spawn(self._deliver(self._whole_png, "simulation.png", "image/png", page)))

    def _point(self, phase: str, across: float, up: float) -> None:
        """Note what the pointer does, for the next frame; while nothing plays, that frame is made for it."""
        self._pointing.add(phase, across, up)
        if self.can_point and self.state != "playing" and not self._is_pointed:
            self._is_pointed = True
            self._on_loop(lambda: self._spawn(self._act(self._pointed)))

    def close(self) -> None:
        """Stop, and take the view off every page."""
        if hasattr(self, "_halt"):  # Also called by the garbage collector, for a view whose arguments were refused.
            self._stop()
        super().close()
