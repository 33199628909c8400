"""Where the frames of a `GUI` go: a widget in the running cell's output, or nowhere.

The program that draws is usually a blocking loop, so nothing here waits for the page. Where acknowledgements arrive
during a blocking cell (they come on another thread) they bound the frames in flight; where they do not, time does. When
the cell ends, its output becomes a plain picture of the last frame.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import traitlets
from anywidget import AnyWidget
from IPython.display import DisplayHandle, display

from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.pictures import Picture
from tinote.viz.notebook.front_end import Audience, audience, cell_hooks, with_picture
from tinote.viz.notebook.view import Frame, LiveView, receive_while_cells_run, static_source
from tinote.viz.space.parts import SceneSender
from tinote.viz.window.events import Event, EventQueue, KeyNames
from tinote.viz.window.scene_frame import SceneFrame

BLIND_INTERVAL = 1.0 / 30.0
"""Seconds between frames where nothing says how fast the page paints them."""

STALE_SECONDS = 2.0
"""Acknowledgements that stay out for this long are not waited for: the page may be gone, or its messages held back by
the running cell.
"""

RENDERERS = ("auto", "page", "kernel")
RENDERER_VARIABLE = "TINOTE_GUI_RENDERER"
"""Who draws scenes in space: "page", by WebGL also without a graphics card, "kernel", or "auto"."""


class Screen(LiveView):
    """The widget: a canvas that shows JPEG frames and sends back keys, pointer and wheel."""

    _esm = static_source("kernel.js", "view.js", "draw/camera.js", "draw/space.js", "views/gui.js")
    _css = static_source("theme.css", "views/gui.css", "kernel.css")

    width = traitlets.Int().tag(sync=True)
    height = traitlets.Int().tag(sync=True)
    renderer = traitlets.Enum(RENDERERS, "auto").tag(sync=True)
    """Who draws scenes in space: as for `ti.viz.Scene`."""

    def __init__(self, events: EventQueue, **traits: Any) -> None:
        super().__init__(**traits)
        self.events = events
        self.last: bytes = b""
        self.draws = False  # The page draws scenes itself.
        self._latest_look = 0
        self.sender = SceneSender()
        receive_while_cells_run(self)

    def first_frame(self) -> None:
        self.sender.forget()
        if self.last:
            self.send_frame(Frame({}, [self.last]))

    def obey(self, message: dict[str, Any]) -> None:
        match message.get("kind"):
            case "event":
                self.events.add_message(message)
            case "close":
                self.events.add(Event(KeyNames.PRESS, KeyNames.EXIT, self.events.cursor))
                self.closed_by_user = True
            case "blur":
                self.events.release_all()
            case "look":
                order = int(message.get("order", 0))
                if order >= self._latest_look:  # Another one may have overtaken it.
                    self._latest_look = order
                    self.sender.forget()
                    self.draws = bool(message.get("draws"))

    closed_by_user = False

    def picture(self) -> bytes:
        raise NotImplementedError("a window's picture is made by its GUI")


class NotebookWindow:
    """One cell's display of a GUI: live while the cell runs, then a picture."""

    def __init__(self, title: str, width: int, height: int, events: EventQueue) -> None:
        self._title = title
        self._frame: Picture | SceneFrame | None = None
        self._handle: DisplayHandle | None = None
        self._sent_at = 0.0
        live = audience() is Audience.PERSON
        renderer = os.environ.get(RENDERER_VARIABLE) or "auto"
        if renderer not in RENDERERS:
            raise ViewError(f"{RENDERER_VARIABLE} must be one of {', '.join(RENDERERS)}, not {renderer!r}")
        self.screen = Screen(events, width=width, height=height, label=title, renderer=renderer) if live else None
        hooks = cell_hooks()
        if hooks is not None:
            hooks.register("post_run_cell", self._cell_ended)
        self._hooks = hooks
        self.open = True

    @property
    def closed_by_user(self) -> bool:
        """Whether the close button was pressed."""
        return self.screen is not None and self.screen.closed_by_user

    @property
    def draws_scenes(self) -> bool:
        """Whether the page draws scenes in space itself."""
        return self.screen is not None and self.screen.draws

    def show(self, frame: Picture | SceneFrame) -> None:
        """Send a frame if the page keeps up; the newest one is kept in any case."""
        self._frame = frame
        if self._handle is None:
            self._handle = display(self._bundle(live=True), raw=True, display_id=True)
        if self.screen is None or not self._due():
            return
        self._sent_at = time.monotonic()
        drawn_there = frame.for_page(self.screen.sender) if isinstance(frame, SceneFrame) else None
        if drawn_there is not None:
            self.screen.last = b""
            self.screen.send_frame(drawn_there)
            return
        self.screen.last = self._picture().jpeg()
        self.screen.send_frame(Frame({}, [self.screen.last]))

    def _picture(self) -> Picture:
        """The last frame as a picture."""
        assert self._frame is not None
        return self._frame.picture() if isinstance(self._frame, SceneFrame) else self._frame

    def _due(self) -> bool:
        assert self.screen is not None
        credits, now = self.screen.credits, time.monotonic()
        if credits.acknowledged and now - self._sent_at < STALE_SECONDS:
            return credits.in_flight < credits.largest_window
        return now - self._sent_at >= BLIND_INTERVAL

    def _bundle(self, live: bool) -> dict[str, Any]:
        """The window where it is `live`, and the last frame."""
        screen = self.screen if live else None
        show = (lambda: None) if screen is None else partial(AnyWidget._repr_mimebundle_, screen)
        data, _ = with_picture(show, self._title, self._picture().png, {})
        return data

    def _cell_ended(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Leave a plain picture of the last frame in the output, and let the widget go."""
        if not self.open:
            return
        self.open = False
        if self._hooks is not None:
            self._hooks.unregister("post_run_cell", self._cell_ended)
        if self._handle is not None and self._frame is not None:
            self._handle.update(self._bundle(live=False), raw=True)
        if self.screen is not None:
            self.screen.close()
