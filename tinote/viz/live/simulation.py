"""A view that runs a simulation: play, pause, step, reset, speed, Stop, and a plot of running quantities.

While it plays, an asyncio task waits for a frame credit, lets a worker thread advance the simulation (native code
releases the interpreter, so other cells stay usable), and sends the frame. The worker does everything that touches the
simulation, one job after another, each in an empty context: what the user's step launches is never recorded on a tape
that a cell has opened.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tinote.errors import SerializationError
from tinote.lang.capture.automatic import AutomaticCapture, StepAhead, StepCapture
from tinote.lazy import lazy
from tinote.source import caller
from tinote.viz.draw.arguments import checked
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.chart import ChartLook, History, as_series
from tinote.viz.draw.pictures import PICTURE_FORMATS, Picture, check_picture
from tinote.viz.draw.scale import scale_form
from tinote.viz.live.ahead import Ahead, look_ahead
from tinote.viz.live.arguments import Renews, argument, located, number, optional, sides, whole
from tinote.viz.live.declared import DeclaredView
from tinote.viz.live.film import record_film
from tinote.viz.live.frames import FrameMaker
from tinote.viz.live.playback import Playback
from tinote.viz.live.pointer import Pointer
from tinote.viz.live.whole import whole_picture, write_svg_of
from tinote.viz.notebook.front_end import Bundle, for_page, stored_size
from tinote.viz.notebook.view import Frame, JobOutcome
from tinote.viz.pages.sources import ViewFunctions

if TYPE_CHECKING:
    from tinote.viz.pages import export, stored
else:
    export = lazy("tinote.viz.pages.export")  # what makes pages brings Markdown
    stored = lazy("tinote.viz.pages.stored")

MOST_TIMELINE_MEGABYTES = 1000.0
MEGABYTES = number(
    lambda value: 0.0 <= value <= MOST_TIMELINE_MEGABYTES, f"from 0 to {MOST_TIMELINE_MEGABYTES:,.0f} megabytes"
)

TIME = optional(number(lambda value: 0.0 < value < np.inf, "a positive time"))

CAPTURED = "the view may have captured it"

UNATTENDED_SECONDS = 5.0
"""A slow simulation is left after this time there."""

LARGEST_SCALE = 8
"""Pixels of a picture for each of a view, each way."""

PAGES = (".html", ".htm")
"""The endings of names that pages may have."""

Quantities = Callable[[], float] | Mapping[str, Callable[[], float]] | None


class LiveSimulation(DeclaredView):
    """Base of the views of a running simulation.

    `step()` advances it by one step, `reset()` takes it back to its start, `energy` or `plots` are numbers that are
    sampled after each frame.

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
    steps : int
    """

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise SerializationError(
            f"an open view ({type(self).__name__}) belongs to this notebook and cannot be sent to another process",
            caller(),
            hint="make it where its function is not sent, and send the fields that it shows",
        )

    _all: ClassVar[weakref.WeakSet[LiveSimulation]] = weakref.WeakSet()

    reset_function: Callable[[], object] | None = argument(default=None, alias="reset", fixed=CAPTURED)
    steps_per_frame: int = argument(default=1, check=whole(1), renews=Renews.NOTHING, sent=True)
    size: Any = argument(default=480, check=sides)
    unattended_frames: int = argument(default=60, check=whole(0), renews=Renews.NOTHING)
    runs_unseen: bool = argument(default=False, renews=Renews.NOTHING)
    dt: float | None = argument(default=None, check=TIME)
    timeline: float = argument(default=32.0, check=MEGABYTES, renews=Renews.NOTHING, sent=True)
    name: str = argument(default="", renews=Renews.NOTHING, sent=True)

    def __init__(self, *args: Any, **given: Any) -> None:
        self.prepare()
        with located():
            self.take(args, given)
            quantities = self.quantities_given()
            step, pointer = getattr(self, "step", None), getattr(self, "pointer", None)
            self.exception: BaseException | None = None
            captured = None if step is None else AutomaticCapture(step)
            self.frames = FrameMaker(self, captured, self.reset_function, pointer, quantities, self._send_from_worker)
            self.look_as_given()
        self._functions = ViewFunctions(step, self.reset_function, pointer, Pointer)
        self.playback = Playback(self, self.frames)
        self.bound_controls: dict[Any, Any] = {}
        """The controls that are bound to the view (`live/controls.py`), by what tells them apart."""
        self.history = History(tuple(quantities))
        self._is_repainting = False
        self._waits_to_be_kept = False
        self._step_ahead: StepAhead | None = None
        self._ahead: Ahead | None = None
        for name, value in {
            "can_step": step is not None,
            "can_reset": self.reset_function is not None,
            "can_point": pointer is not None,
            "series": list(quantities),
        }.items():
            self.set_trait(name, value)
        super().__init__()
        self.is_made = True
        self._all.add(self)

    # What a subclass provides.

    def quantities_given(self) -> dict[str, Callable[[], float]]:
        """What is sampled after each frame, by its name."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Show the state once more, unless a frame comes anyway."""
        if self.state != "playing" and self.credits.connected and not self._is_repainting:
            self._is_repainting = True
            self.playback.request(self._repainted)
        elif not self.credits.connected:
            self.frames.last_frame = None

    def _repainted(self) -> Frame:
        self._is_repainting = False
        return self.frames.present()

    # What a user calls.

    @property
    def steps(self) -> int:
        """How many steps have been run."""
        return self.frames.steps

    @property
    def captured(self) -> StepCapture | None:
        """How the view's step runs: replayed as a captured program, or as the function, and why.

        None for a view without a step. A step that changes nothing but memory and numbers in Python is captured
        automatically while it runs (`ti.capture`), which makes many steps per frame cheap, and captured again when
        something changes that it depends on.
        """
        return None if self.frames.step is None else self.frames.step.how

    def expect_changes(self, function: Callable[..., object]) -> None:
        """`function` will be called between steps, as that of a slider is: the numbers in Python that it assigns are
        variables of the captured step, which is not captured again for them.
        """
        if self.frames.step is not None:
            self.frames.step.expect_changes(function)

    def play(self) -> None:
        """Run until `pause` or `stop`; frames are made while the view is in sight.

        Raises
        ------
        ViewError
            Outside of a notebook.
        """
        if self.playback.loop is None:
            raise ViewError("play() needs a notebook; here, call advance(frames)")
        self.playback.on_loop(self.playback.play)

    def pause(self) -> None:
        """Pause after the step in progress; `play` continues from there."""
        self.playback.on_loop(self.playback.pause)

    def stop(self) -> None:
        """End the run and free its thread; `play` starts it again.

        A kernel that does not return within half a second is stopped, and with it any other one that runs just then:
        the runtime cannot tell whose it is. The view then says which kernel that was, and where.
        """
        self.playback.on_loop(self.playback.stop)

    def single_step(self) -> None:
        """Make one frame (`steps_per_frame` steps) and pause."""
        self.playback.on_loop(lambda: self.playback.single_step(self.steps_per_frame))

    def reset(self) -> None:
        """Take the simulation back to its start, by the function given as `reset`, and clear the plot.

        Raises
        ------
        ViewError
            For a view without such a function.
        """
        if self.reset_function is None:
            raise ViewError("this view has no reset function", hint="give one as reset=…")
        self.playback.request(self.frames.start_again)

    def refresh(self) -> None:
        """Paint the present state, after a cell has changed it."""
        if self.credits.connected:
            self.playback.request(self.frames.renewed)

    @checked
    def change(self, action: Callable[[], object]) -> None:
        """Call a function between two steps, and paint the result; where no page shows the view, it is called now.

        Parameters
        ----------
        action : callable
            A function without arguments that may change fields or launch kernels.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=8)
        >>> view = ti.viz.Particles(x, size=320)
        >>> view.change(lambda: x.fill(0.5))
        >>> x[0]
        Vector([0.5, 0.5])
        """

        def job() -> Frame:
            action()
            return self.frames.renewed()

        if self.playback.loop is not None and self.credits.connected:
            self.playback.request(job)
        else:
            self.playback.apart(job)

    def picture(self) -> bytes:
        """The state and the plot below it, on white or the view's background, as a PNG file.

        Returns
        -------
        bytes
            The contents of the file.
        """
        return self._drawn().png()

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the view as one HTML page that runs, without Python, server or network.

        It begins in the present state. A quantity or a pointer's handler that cannot be captured is left out, with a
        warning.

        Parameters
        ----------
        path : path
            The file. For the ending of a picture, such as ".png" or ".svg", a `snapshot` is written; for ".csv" the
            samples of the plot.

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

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=8)
        >>> ti.viz.Particles(x, size=320).save("page.html").name
        'page.html'
        """
        path = Path(path)
        if path.suffix.lower() == ".csv":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.history.csv(self.dt), encoding="utf-8")
            return path
        if path.suffix.lower() not in PAGES:
            check_picture(path, (*PAGES, ".csv", *PICTURE_FORMATS, ".svg"))
            self.snapshot(path)
            return path
        return export.save(self, path)

    def keep_program(self) -> None:
        """Make what the notebook keeps of the view besides its picture: how it runs without a kernel, from its present
        state. While a view plays, whose steps would be among what is captured, it waits for that.
        """
        self._waits_to_be_kept = stored_size() > 0 and any(view.state == "playing" for view in list(self._all))
        if stored_size() > 0 and not self._waits_to_be_kept:
            kept = stored.kept(self, stored_size())
            self.set_trait("program", kept.program)
            self.set_trait("program_note", kept.reason and f"Kept as a picture: {kept.reason}")
            self._step_ahead, self._ahead = kept.step, None
            self._look_ahead_soon()

    def keep_programs(self) -> None:
        """The same of all views that wait for it: this one plays no longer."""
        for view in list(self._all):
            if view._waits_to_be_kept:
                view.keep_program()

    def _look_ahead_soon(self) -> None:
        """Send the page the picture that it stores until the user has played longer, once it shows the present."""
        if self.playback.loop is not None and self.credits.connected and self._step_ahead is not None:
            self.playback.on_loop(lambda: self.playback.spawn(self._look_ahead()))

    async def _look_ahead(self) -> None:
        await self.playback.hired().run(lambda: None)  # What shows the present is sent first.
        step, is_playing = self._step_ahead, any(view.state == "playing" for view in list(self._all))
        if self._ahead is None and step is not None and not self.steps and not is_playing:
            self._ahead = look_ahead(self.playback, step, self.unattended_frames)
        if self._ahead is not None and self.comm is not None:
            self.send({"kind": "ahead", "step": self._ahead.step}, buffers=self._ahead.pngs)

    def _repr_mimebundle_(self, **_: Any) -> Bundle:  # type: ignore[override]
        return self.page_bundle([self], repr(self)) if for_page() else super()._repr_mimebundle_()

    @staticmethod
    def page_bundle(views: Sequence[Any], text: str) -> Bundle:
        """What the output of views that stand together holds for a page."""
        return stored.page_bundle(views, text)

    def page_functions(self) -> ViewFunctions:
        """What the view calls, for a page that calls it."""
        return self._functions._replace(quantities=dict(self.frames.quantities), pointed=self.pointed())

    @checked
    def snapshot(self, path: str | Path, scale: int = 1) -> None:
        """Write the present picture to a file.

        In an SVG, discs, strokes and the plot stay sharp at every size, and what is made of pixels is embedded.

        Parameters
        ----------
        path : path
            The file, whose ending says the format.
        scale : int, default 1
            How many pixels the picture has for each of the view, each way: 2 or 3 for print.

        Raises
        ------
        ViewError
            For an ending of another kind, and a scale that is not from 1 to 8.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=8)
        >>> view = ti.viz.Particles(x, size=320)
        >>> view.snapshot("particles.png", scale=2)
        >>> ti.tools.imread("particles.png").shape
        (640, 640, 3)
        """
        path = Path(path)
        check_picture(path, (*PICTURE_FORMATS, ".svg"))
        if not 1 <= scale <= LARGEST_SCALE:
            raise ViewError(f"scale must be from 1 to {LARGEST_SCALE}, not {scale}")
        if path.suffix.lower() == ".svg":
            self._capture_now()
            write_svg_of(self, self.frames.last_frame, path)
        else:
            self._drawn(scale).save(path)

    @checked
    def record(
        self, path: str | Path, frames: int = 60, frames_per_second: float = 25.0, width: int | None = None
    ) -> None:
        """Make frames here and now, as `advance` does, and write them to a video, beginning with the present state.

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
            The width of the video in pixels, by default that of the view.

        Raises
        ------
        ViewError
            For another ending, without ffmpeg, and for numbers out of range.

        Examples
        --------
        >>> x = ti.Vector.field(2, ti.f32, shape=8)
        >>> view = ti.viz.Particles(x, size=64)
        >>> view.record("video.gif", frames=3)
        video.gif: 4 frames, ... MB
        """
        record_film(self, Path(path), frames, frames_per_second, width)

    @checked
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

        Examples
        --------
        >>> n = ti.field(ti.i32, shape=())
        >>> view = ti.viz.Plot(lambda: n[None], lambda: n.fill(n[None] + 1), steps_per_frame=5)
        >>> view.advance(frames=2)
        >>> view.steps
        10
        """
        if self.state == "playing":
            raise ViewError("the view is playing; pause it first")
        self.frames.halt.clear()
        for _ in range(frames):
            self.playback.apart(self.frames.make, self.steps_per_frame)
            self.frames.is_ahead = True
            self.frames.note_how_steps_run()

    def _capture_now(self) -> None:
        """Capture what is there now, unless the worker does so, while it runs."""
        if self.state != "playing" or self.frames.last_frame is None:
            self.playback.apart(self.frames.present)

    def _drawn(self, scale: int = 1) -> Picture:
        """What the worker has captured last, while it runs, else what is there now."""
        self._capture_now()
        return whole_picture(self, self.frames.last_frame, scale)

    # What the base asks for.

    def first_frame(self) -> None:
        self.playback.request(self.again)
        self._look_ahead_soon()

    def again(self) -> Frame:
        """The frame that was shown last, for a page that has been opened."""
        return self.frames.again()

    def _send_from_worker(self, frame: Frame) -> None:
        self.playback.on_loop(lambda: self.send_frame(frame))

    def streams(self) -> bool:
        return self.state == "playing"

    def works(self) -> bool:
        """Whether a step, or what else makes a frame, is under way."""
        return self.playback.worker is not None and self.playback.worker.is_busy

    def observed(self) -> list[str]:
        """The traits that functions of the user observe."""
        return [str(name) for name, handlers in self._trait_notifiers.items() if handlers and name != "comm"]

    def status(self) -> str:
        return f"step {self.steps:,}" if self.steps and self.can_step else ""

    def prepare_unattended(self) -> None:
        """Advance a bounded number of frames, once, so that the picture shows the simulation under way."""
        if self.steps or self.error:
            return
        end = time.perf_counter() + UNATTENDED_SECONDS
        try:
            self.playback.apart(self.frames.present)
            for _ in range(self.unattended_frames):
                self.advance()
                if time.perf_counter() > end:
                    break
        except Exception as error:
            self.note_error(error)
            raise

    def obey(self, message: dict[str, Any]) -> None:
        match message.get("kind"):
            case "play" | "pause" | "reset" | "stop" as name:
                getattr(self, name)()
            case "step":
                steps = max(1, int(message.get("steps", self.steps_per_frame)))
                self.playback.on_loop(lambda: self.playback.single_step(steps))
            case "pointer":
                self._point(str(message["phase"]), *(float(part) for part in message["place"]))
            case "hover":
                across, up = (float(part) for part in message["place"])
                self.playback.on_loop(lambda: self.playback.spawn(self._hovered(across, up, str(message.get("view")))))
            case "record":
                page = str(message.get("page"))
                self.playback.on_loop(lambda: self.playback.record_or_save(page))
            case "snapshot":
                page = str(message.get("page"))
                self.playback.request_file(
                    lambda: whole_picture(self, self.frames.last_frame).png(), "png", "image/png", page
                )
            case "page":
                if self.state == "playing":
                    self.pause()  # A page begins in the state that it was saved in.
                text = lambda: export.text_of(self).encode()  # noqa: E731
                self.playback.request_file(text, "html", "text/html", str(message.get("page")))

    async def _hovered(self, across: float, up: float, view: str) -> None:
        """Tell a copy of the view what is at a place."""
        if self.comm is None:
            return  # The view has been closed since this was asked for.
        outcome: JobOutcome[str] = await self.playback.hired().run(
            lambda: self.playback.apart(self.words_at, across, up)
        )
        if outcome.error is not None:
            self.playback.fail(outcome.error)
        elif outcome.value is not None:
            self.send({"kind": "hovered", "view": view, "words": outcome.value})

    def _point(self, phase: str, across: float, up: float) -> None:
        """Note what the pointer does, for the next frame; while nothing plays, that frame is made for it."""
        self.frames.pointing.add(phase, across, up)
        if self.can_point and self.state != "playing" and not self.frames.is_pointed:
            self.frames.is_pointed = True
            self.playback.request(self.frames.pointed_frame)

    def close(self) -> None:
        """Stop, and take the view off every page."""
        if hasattr(self, "playback"):  # Also called by the garbage collector, for a view whose arguments were refused.
            self.playback.stop()
        super().close()


class StagedSimulation(LiveSimulation):
    """One with a stage above its plot."""

    energy: Quantities = argument(default=None, fixed=CAPTURED)
    plots: Quantities = argument(default=None, fixed=CAPTURED)
    plot_label: str = argument(default="")
    plot_scale: str | tuple[str, float] = argument(default="linear", check=scale_form)
    label: str = argument(default="live view", renews=Renews.NOTHING, sent=True)

    @staticmethod
    def _sent_of_all(given: Namespace, size: tuple[int, int]) -> dict[str, Any]:
        """What pages have of every view's look. The only line of the plot may be the energy."""
        label = given.plot_label or ("energy" if given.energy is not None else "")
        chart = ChartLook(label=label, scale=given.plot_scale, dt=given.dt or 0.0)
        return {"width": size[0], "height": size[1], "chart": chart._asdict()}

    def quantities_given(self) -> dict[str, Callable[[], float]]:
        """The energy and the others."""
        return {**as_series(self.energy, "energy"), **as_series(self.plots, "value")}
