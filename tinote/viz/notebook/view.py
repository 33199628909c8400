"""Base of live views: frames that the browser acknowledges, and a widget that also stores a picture.

A frame is sent only while fewer than a *window* of earlier ones are unacknowledged, so a slow browser slows the view
down instead of queueing frames. Acknowledgements are cumulative (frame 7 covers 1 to 6): the browser leaves out frames
that it cannot paint in time, and is asked for one only twice a window. A page that is loaded again says `ready`;
whatever was in flight then counts as lost. A view that is scrolled out of sight gets no frames.

Messages from the browser may be delivered on another thread than the kernel's main one, and on one after the other:
then they overtake each other. So a page numbers its reports, and outdated ones are ignored. `FrameCredits` is safe to
use from several threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import anywidget
import traitlets
from ipywidgets import DOMWidget

from tinote.completion import Documented
from tinote.errors import TinoteError, located_text
from tinote.source import Span, location_name
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.syntax import syntax_script
from tinote.viz.notebook.composed import keep_pictures_of_boxes
from tinote.viz.notebook.front_end import (
    Audience,
    Bundle,
    audience,
    forget_output,
    in_marimo,
    programs_of,
    shown,
    with_picture,
)

SYNTAX = "syntax.js"
VIEW_SCRIPTS = (
    "kernel.js",
    "view.js",
    "draw/scale.js",
    "draw/zoom.js",
    "draw/canvas_axes.js",
    "draw/tip.js",
    "draw/chart.js",
    "draw/colorbar.js",
    "draw/picture.js",
    "draw/timeline.js",
    "views/simulation.js",
)
"""The scripts of all views of simulations; the one of a view's own follows."""

STATIC = Path(__file__).parents[1] / "static"
PACKAGE = str(Path(__file__).parents[2])

LOOPBACK_SEGMENT = 1 << 16
"""Bytes that a loopback connection sends at once. Jupyter's server leaves Nagle's algorithm on: a smaller message waits
until the one before is confirmed, which takes 40 ms, so that 1,000 particles come at 20 frames a second where 20,000
come at 50 (measured). To a page on the same machine a frame is therefore filled up to this size; elsewhere the bytes
would cost more than they gain.
"""

Value = TypeVar("Value")


def receive_while_cells_run(widget: anywidget.AnyWidget) -> None:
    """Have what the page says to a widget handled on a thread of its own, also while a cell runs.

    Recent kernels hand a widget's messages to the thread that last sent one, which may be the one that a cell blocks.
    These go where the page sent them; kernels without this rule do not look at the attribute.
    """
    if widget.comm is not None:
        widget.comm._reply_subshell_for = lambda _data, sender: sender  # type: ignore[attr-defined]


def static_source(*names: str) -> str:
    """Files of `viz/static/` joined to one source: an ES module that imports nothing, or a style sheet. `syntax.js` is
    made of the table in `draw/syntax.py`.
    """
    return "\n".join(syntax_script() if name == SYNTAX else (STATIC / name).read_text("utf-8") for name in names)


class Frame(NamedTuple):
    """What one frame sends: a small message, and its binary parts."""

    message: dict[str, Any]
    buffers: list[Any]

    @classmethod
    def of(cls, message: dict[str, Any], buffers: list[bytes], parts: dict[str, bytes]) -> Frame:
        """A frame with further binary parts, in the order of their names in its message; what is empty is not sent."""
        used = {name: part for name, part in parts.items() if part}
        return cls({**message, **({"parts": list(used)} if used else {})}, [*buffers, *used.values()])


class FrameCredits:
    """Counts frames sent and acknowledged, and says when the next one may go."""

    def __init__(
        self, window: int = 3, largest_window: int = 8, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.window = window
        self.smallest_window = window
        self.largest_window = largest_window
        self.sent = 0
        self.acknowledged = 0
        self._asked = 0
        self._clock = clock
        self._times: dict[int, float] = {}
        self._views: dict[str, bool] = {}
        self._orders: dict[str, int] = {}
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def connected(self) -> bool:
        """Whether a page shows the view, in sight or not."""
        return bool(self._views)

    @property
    def visible(self) -> bool:
        """Whether any copy of the view is in sight."""
        return any(self._views.values())

    @property
    def copies(self) -> set[str]:
        """The copies of the view on pages, by their names."""
        return set(self._views)

    @property
    def in_flight(self) -> int:
        """Frames sent and not acknowledged."""
        return self.sent - self.acknowledged

    def can_send(self) -> bool:
        """Whether the next frame may go now."""
        return self.visible and self.in_flight < self.window

    def next_frame(self) -> int:
        """The number of the frame that is sent now; the first is 1."""
        with self._lock:
            self.sent += 1
            self._times[self.sent] = self._clock()
            return self.sent

    def asks(self, frame: int, *, alone: bool = False) -> bool:
        """Whether the page is to acknowledge the frame sent now: one in each half of a window, and any that is sent
        `alone`, after which none may follow.

        The kernel reports that it is busy and idle again for each message, and JupyterLab changes its indicators and
        loads another icon for each report: a third of the time that a frame takes (measured). The window shrinks by
        one at most between two answers, so that one of the frames that fill it has always been asked for.
        """
        with self._lock:
            if not alone and frame - self._asked < (self.window + 1) // 2:
                return False
            self._asked = frame
            return True

    def acknowledge(self, frame: int, waited: float = 0.0) -> None:
        """Frames up to `frame` are painted; `waited` is how many seconds the browser kept it before. Unknown and old
        numbers change nothing.
        """
        with self._lock:
            if self.acknowledged < frame <= self.sent:
                sent_at = self._times.get(frame)
                for number in range(self.acknowledged + 1, frame + 1):
                    self._times.pop(number, None)
                self.acknowledged = frame
                if sent_at is not None:
                    # Only the way there and back asks for more frames in flight; a browser that is busy painting must
                    # not.
                    travel = max(0.0, self._clock() - sent_at - waited)
                    wanted = self.smallest_window + int(travel * 60.0)
                    self.window = min(self.largest_window, max(self.smallest_window, wanted, self.window - 1))
        self._wake()

    def ready(self, view: str, visible: bool = True, order: int = 0) -> None:
        """A page (again) shows the view, as `view`: frames in flight were lost with the old page. Other copies have to
        `report` again. `order` numbers what the copy says, from 0; outdated reports are ignored.
        """
        with self._lock:
            known = {view: self._views[view]} if view in self._views else {}
            self._views = {view: visible} if self._is_news(view, order) else known
            self.acknowledged = self.sent
            self._times.clear()
        self._wake()

    def report(self, view: str, visible: bool, order: int = 0) -> None:
        """The copy `view` is on a page, and in sight or not."""
        with self._lock:
            if self._is_news(view, order):
                self._views[view] = visible
        self._wake()

    def _is_news(self, view: str, order: int) -> bool:
        """Whether this is the latest report of `view` so far, which is noted. The lock must be held."""
        latest = self._orders.get(view, 0)
        self._orders[view] = max(latest, order)
        return order >= latest

    def gone(self, view: str, order: int = 0) -> None:
        """The copy `view` has been taken off its page."""
        with self._lock:
            self._is_news(view, order)  # No later report of this copy counts.
            self._views.pop(view, None)
            if not self._views:
                self.acknowledged = self.sent
                self._times.clear()
        self._wake()

    async def wait(self, *, unseen: bool = False) -> None:
        """Return once the next frame may go; `unseen`: or while no copy of the view is in sight."""
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if self.can_send() or (unseen and not self.visible):
                    return
                future = loop.create_future()
                self._waiting.append((loop, future))
            await future

    def _wake(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            with contextlib.suppress(RuntimeError):  # The loop has been closed meanwhile.
                loop.call_soon_threadsafe(_finish, future)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class JobOutcome(NamedTuple, Generic[Value]):
    """The outcome of a job on a worker: its value, or the exception that it raised."""

    value: Value | None
    error: BaseException | None


class Worker:
    """One thread that runs jobs in the order in which they are handed in.

    An exception is part of the outcome and is never raised into the event loop, which `SystemExit` would end, and the
    kernel with it. The thread is a daemon: a job that never returns does not keep the process alive.
    """

    def __init__(self, name: str) -> None:
        #: whether a job runs
        self.is_busy = False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            self.is_busy = True
            job()
            self.is_busy = False

    async def run(self, function: Callable[[], Value]) -> JobOutcome[Value]:
        """Run `function` on the worker's thread and return its outcome; other tasks run meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[JobOutcome[Value]] = loop.create_future()

        def job() -> None:
            try:
                outcome: JobOutcome[Value] = JobOutcome(function(), None)
            except BaseException as error:
                outcome = JobOutcome(None, error)
            with contextlib.suppress(RuntimeError):  # The loop has been closed meanwhile.
                loop.call_soon_threadsafe(lambda: future.done() or future.set_result(outcome))

        self._jobs.put(job)
        return await future

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Once the job under way has ended, no other one begins."""
        waits, goes_on = threading.Event(), threading.Event()

        def wait() -> None:
            waits.set()
            goes_on.wait()

        self._jobs.put(wait)
        waits.wait()
        try:
            yield
        finally:
            goes_on.set()

    def close(self) -> None:
        """End the thread after the jobs that it has."""
        self._jobs.put(None)


def describe_error(error: BaseException) -> str:
    """An error as the view shows it: a located one as it is, another one with the traceback of the user's frames."""
    if isinstance(error, TinoteError):
        return located_text(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(PACKAGE)]
    lines: list[str] = []
    for frame in frames[-4:]:
        place = location_name(Span(frame.filename, frame.lineno or 0))
        lines += [f"{place}, in {frame.name}", f"    {(frame.line or '').strip()}"]
    return "\n".join([*lines, *(line.rstrip() for line in traceback.format_exception_only(error))])


def reason_of(error: BaseException) -> str:
    """Why something cannot be done, in a line: an error of the user's code with its place, one about a view without."""
    if not isinstance(error, TinoteError):
        return f"{type(error).__name__}: {error}"
    place = f"{location_name(error.span)}: " if error.span.line and not isinstance(error, ViewError) else ""
    return place + error.message


class LiveView(Documented, anywidget.AnyWidget):
    """Base of the widgets that paint frames. A subclass says how a frame is made (`first_frame`), what picture stays
    (`picture`), and obeys commands.

    In a notebook with a front end the mimebundle holds the live view and the picture; executed by a program it holds
    the picture alone.
    """

    label = traitlets.Unicode().tag(sync=True)
    """What a screen reader calls the view."""

    identity = traitlets.Unicode().tag(sync=True)
    """By which the kernel knows the view: a page that has lost the kernel asks whether it still does."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.identity = self.model_id or ""
        keep_pictures_of_boxes()
        self.credits = FrameCredits()
        self._local_page = False
        self._superseded_in: DOMWidget | None = None
        self.shown_views: Sequence[Any] = ()
        self.shown_in_runs: set[int] = set()
        self.on_msg(self._receive)

    # What a subclass provides.

    def first_frame(self) -> None:
        """Send what a page that has just been opened needs to paint the present state."""
        raise NotImplementedError

    def picture(self) -> bytes:
        """The present state as a PNG file."""
        raise NotImplementedError

    def obey(self, message: dict[str, Any]) -> None:
        """Act on a message that is not about the flow of frames: a button, a pointer, a key. May be called on any
        thread.
        """
        raise NotImplementedError

    def streams(self) -> bool:
        """Whether the frame sent now is one of many, so that not each of them need be acknowledged."""
        return False

    def works(self) -> bool:
        """Whether the next frame is being made."""
        return False

    def status(self) -> str:
        """What is said below the picture that stays."""
        return ""

    def prepare_unattended(self) -> None:
        """Called before the picture is taken where no front end will run the view."""

    # The rest.

    def send_frame(self, frame: Frame) -> None:
        """Number the frame and send it, whatever the credits are."""
        number = self.credits.next_frame()
        message = {
            "kind": "frame",
            "frame": number,
            "ack": self.credits.asks(number, alone=not self.streams()),
            **frame.message,
        }
        buffers = list(frame.buffers)
        missing = LOOPBACK_SEGMENT - sum(len(part) for part in buffers)
        if self._local_page and missing > 0:
            message["padded"] = True
            buffers.append(bytes(missing))
        self.send(message, buffers=buffers)

    def _receive(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        order = int(message.get("order", 0))
        match message.get("kind"):
            case "ack":
                self.credits.acknowledge(int(message["frame"]), float(message.get("waited", 0.0)))
            case "ready":
                self._local_page = bool(message.get("local"))
                self.credits.ready(str(message["view"]), bool(message.get("visible", True)), order)
                self.send({"kind": "report"})
                self.first_frame()
            case "visible":
                self.credits.report(str(message["view"]), bool(message["visible"]), order)
            case "ping":
                self.send({"kind": "pong", "works": self.works()})
            case "gone":
                self.credits.gone(str(message["view"]), order)
                if self._superseded_in is not None:
                    self.supersede(self._superseded_in)
            case _:
                self.obey(message)

    def supersede(self, shown_in: DOMWidget) -> None:
        """The cell that has shown the view, in this widget, has run again: both close once no page has the view."""
        self._superseded_in = shown_in
        if not self.credits.connected:
            self.close()
            if shown_in is not self:
                layout = shown_in.layout
                shown_in.close()
                layout.close()
            forget_output(shown_in)

    def close(self) -> None:
        """Take the view off every page. It cannot be shown again."""
        self.credits = FrameCredits()
        layout = self.layout
        super().close()
        if layout is not None:
            layout.close()

    def _repr_mimebundle_(self, **_: Any) -> Bundle:  # type: ignore[override]
        shown(self, [self])
        programs = programs_of([self])
        if audience() is not Audience.PERSON and not in_marimo():
            self.prepare_unattended()
        about = {"alt": self.label or repr(self)}
        return with_picture(super()._repr_mimebundle_, repr(self), self.picture, about, None, programs, self.status())
