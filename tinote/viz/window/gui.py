"""A drawing window for simulation loops: `while gui.running: …; gui.circles(x); gui.show()`.

In a notebook the frames appear in the running cell's output, and the output keeps the last one. Interrupt raises
`KeyboardInterrupt` in the cell, as everywhere; the close button of the window ends `while gui.running`. Without a
notebook there is no window: frames are drawn, kept for `get_image`, written by `show(filename)`, and a note says so.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tinote.completion import Documented
from tinote.errors import at_users_frames
from tinote.viz.draw.arguments import checked_methods
from tinote.viz.draw.arrays import ViewError, as_array, as_colors, as_image, as_numbers, as_positions
from tinote.viz.draw.arrays import hex_to_rgb as hex_to_rgb
from tinote.viz.draw.arrays import rgb_to_hex as rgb_to_hex
from tinote.viz.draw.colormap import colored
from tinote.viz.draw.pictures import Picture
from tinote.viz.notebook.front_end import Audience, audience
from tinote.viz.space.camera import Eye, clip_depth
from tinote.viz.space.content import Content
from tinote.viz.space.rasterise import Rasteriser
from tinote.viz.window.controls import Panel, PointerState
from tinote.viz.window.events import Event, EventQueue, KeyNames
from tinote.viz.window.frames import NotebookWindow
from tinote.viz.window.scene_frame import SceneFrame, draw_scene
from tinote.viz.window.widgets import Button, Label, Slider, Widgets

UNATTENDED_FRAMES = 60
"""Frames after which `running` ends where a program executes the notebook: nobody could stop the loop."""

FRAMES_VARIABLE = "TINOTE_GUI_FRAMES"


Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


def _interruptible(draw: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """An interrupt of a drawing loop mostly comes while it draws or waits: it is shown at the line that called."""

    @functools.wraps(draw)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            return draw(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise at_users_frames(interrupt) from None

    return called


MOST_PIXELS = 16_384
"""Along a side of a window: the largest texture of graphics cards."""


@checked_methods
class GUI(Documented, KeyNames):
    """A window that a program draws into.

    Coordinates are in [0, 1] from the bottom left, radii and widths in pixels, colours 0xRRGGBB. Each `show` ends a
    frame: it is displayed, and the next one starts from the background. A loop with a visible window runs at most
    `fps_limit` (60) times a second.

    `running` is true until the close button is pressed, `close()` is called or `running = False`. It also ends, and an
    event says EXIT, after the number of frames in the environment variable `TINOTE_GUI_FRAMES`, and, without one, after
    60 frames where a program executes the notebook, since nothing could end the loop there. In a script a loop on
    `running` goes on until one of these or Ctrl-C.

    Parameters
    ----------
    name : str
        The title.
    res : int or (int, int), default 512
        Width and height in pixels, or one number for both.
    background_color : int, default 0x000000
        The colour that frames begin with.
    show_gui : bool, default True
        False draws without showing: for recording with `show(filename)` and for reading with `get_image`.
    fullscreen, fast_gui : bool
        Accepted, and without effect.

    Methods
    -------
    arrow
    arrow_field
    arrows
    button
    circle
    circles
    clear
    close
    contour
    get_cursor_pos
    get_depth
    get_event
    get_events
    get_image
    get_key_event
    has_key_event
    is_pressed
    label
    line
    lines
    point_field
    rect
    set_image
    show
    slider
    text
    triangle
    triangles
    vector_field

    Attributes
    ----------
    running : bool
    event : Event
        What `get_event` found last.
    fps_limit : int
        The most frames a second.
    frame : int
    res : (int, int)

    Examples
    --------
    >>> gui = ti.GUI("circle", res=64, show_gui=False)
    >>> gui.circle([0.5, 0.5], radius=20, color=0xFF0000)
    >>> gui.get_image().shape
    (64, 64, 4)
    >>> gui.show("circle.png")
    """

    def __init__(
        self,
        name: str = "tinote",
        res: int | Sequence[int] = 512,
        background_color: Any = 0x000000,
        show_gui: bool = True,
        fullscreen: bool = False,
        fast_gui: bool = False,
    ) -> None:
        del fullscreen, fast_gui
        width, height = _pixels(res)
        self.name = name
        self.res = (int(width), int(height))
        self.background_color: Any = background_color
        self.show_gui = show_gui
        self.fps_limit: float | None = 60.0
        self.frame = 0
        self.event: Event | None = None
        self._events = EventQueue()
        self.pointer = PointerState(self._events, self.res)
        self._panels: list[Panel] = []
        self._widgets = Widgets(self.pointer, self._events, self.res)
        self._drawn = self._blank()
        self._is_begun = False  # whether anything was drawn into it
        self._scene: tuple[Content, Eye] | None = None  # Drawn into `_drawn` when something is drawn over it.
        self._shown: Picture | SceneFrame = self._drawn
        self._scenes: list[tuple[Content, Eye]] = []  # Of the frame that is being drawn,
        self._scenes_shown: list[tuple[Content, Eye]] = []  # and of the one before.
        self._rasteriser, self._depths = Rasteriser(), Rasteriser()
        self._running = True
        self._window: NotebookWindow | None = None
        self._next_show = 0.0
        self._audience = audience()
        self._frame_limit = _frame_limit(self._audience)
        if show_gui and self._audience is Audience.NOBODY:
            limit = f"{self._frame_limit} frames" if self._frame_limit else "until Ctrl-C"
            print(
                f"tinote: no notebook, so '{name}' has no window; frames are kept, and `gui.running` holds {limit}.",
                file=sys.stderr,
            )

    def __repr__(self) -> str:
        return f"<GUI {self.name!r}, {self.res[0]} × {self.res[1]}>"

    def __enter__(self) -> GUI:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The loop.

    @property
    def running(self) -> bool:
        """Whether the loop should go on."""
        if self._window is not None and self._window.closed_by_user:
            self._running = False
        return self._running and (self._frame_limit is None or self.frame < self._frame_limit)

    @running.setter
    def running(self, value: bool) -> None:
        if value:
            self._running = True
        else:
            self.close()

    def close(self) -> None:
        """End `running`, and leave the last frame as a picture in the cell's output."""
        self._running = False
        if self._window is not None:
            self._window.finish()

    @_interruptible
    def show(self, file: str | os.PathLike[str] | None = None) -> None:
        """End the frame: display it, or write it to a file; then start the next one from the background.

        It waits so that frames come at most `fps_limit` times a second, if the window is visible. `KeyboardInterrupt`
        leaves the GUI usable.

        Parameters
        ----------
        file : path, optional
            The file to write in place of showing: .png, .jpg, …

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.circle([0.5, 0.5], radius=20)
        >>> gui.show("circle.png")
        >>> ti.tools.imread("circle.png").shape
        (64, 64, 3)
        """
        finished = self._finished(file is None)
        self._panels.clear()
        self.pointer.next_frame()
        self._drawn = self._blank()
        self._is_begun = False
        self._shown = finished
        self._scenes_shown, self._scenes = self._scenes, []
        self.frame += 1
        if self._frame_limit is not None and self.frame >= self._frame_limit:
            self._events.add(Event(self.PRESS, self.EXIT))  # as the close button does, for loops that wait for it
        if file is not None:
            _picture_of(finished).save(Path(file))
            return
        if not self.show_gui or self._audience is Audience.NOBODY:
            return
        if self._window is None or not self._window.open:
            self._window = NotebookWindow(self.name, *self.res, self._events)
        self._window.show(finished)
        if self.fps_limit and self._audience is Audience.PERSON:
            now = time.perf_counter()
            if self._next_show > now:
                time.sleep(self._next_show - now)
            self._next_show = max(now, self._next_show) + 1.0 / self.fps_limit

    def _finished(self, to_be_shown: bool) -> Picture | SceneFrame:
        """The frame with its controls; one of a scene is left to the page, if that draws it."""
        panels = (*self._panels, self._widgets.panel())
        if self._scene is not None and to_be_shown and self._window is not None and self._window.draws_scenes:
            content, eye = self._scene
            self._scene = None
            return SceneFrame(self._drawn, content, eye, panels, self._rasteriser)
        finished = self._canvas
        for panel in panels:
            panel.paint(finished)
        return finished

    @property
    def _canvas(self) -> Picture:
        """What is drawn into: the frame with its scene."""
        self._is_begun = True
        if self._scene is not None:
            (content, eye), self._scene = self._scene, None
            draw_scene(self._drawn, content, eye, self._rasteriser)
        return self._drawn

    @_interruptible
    def clear(self, color: Any = None) -> None:
        """Clear the frame.

        Parameters
        ----------
        color : int, optional
            0xRRGGBB, by default the background.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.clear(0xFF0000)
        >>> gui.get_image()[0, 0].tolist()
        [1.0, 0.0, 0.0, 1.0]
        """
        self._canvas.fill(self._background() if color is None else as_colors(color))
        self._scenes.clear()

    def _background(self) -> np.ndarray:
        return as_colors(self.background_color, name="background_color")

    def _blank(self) -> Picture:
        return Picture(*self.res, self._background())

    # Drawing.

    def _pixels(self, positions: np.ndarray) -> np.ndarray:
        """Positions in [0, 1] from the bottom left as pixels from the top left."""
        return positions * [self.res[0], -self.res[1]] + [0.0, self.res[1]]

    def _points(self, positions: Any, name: str) -> np.ndarray:
        return self._pixels(as_positions(positions, name))

    @_interruptible
    def circles(
        self, pos: Any, radius: Any = 1.0, color: Any = 0xFFFFFF, palette: Any = None, palette_indices: Any = None
    ) -> None:
        """Draw filled circles.

        Parameters
        ----------
        pos : Field or array, shape (N, 2)
            Their centres.
        radius : float or (N,) floats
            In pixels.
        color : int or (N,) ints
            0xRRGGBB.
        palette : sequence of int, optional
            Colours that `palette_indices` choose from.
        palette_indices : (N,) ints, optional
            The number of the colour of each circle.

        Raises
        ------
        ViewError
            For arrays of other shapes, and indices that the palette does not have.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.circles([[0.25, 0.5], [0.75, 0.5]], radius=8, color=0x00FF00)
        >>> gui.get_image()[[16, 48], 32].tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
        """
        centers = self._points(pos, "pos")
        count = len(centers)
        radii = _widths(radius, count, "radius")
        if palette is None:
            if palette_indices is not None:
                raise ViewError("palette_indices without a palette", hint="give the colours as palette=[0x068587, …]")
            colors = as_colors(color, count)
        else:
            colors = _from_palette(palette, palette_indices, count)
        self._canvas.discs(centers, radii, colors)

    @_interruptible
    def circle(self, pos: Any, color: Any = 0xFFFFFF, radius: float = 1.0) -> None:
        """Draw a filled circle.

        Parameters
        ----------
        pos : (float, float)
            Its centre.
        color : int
            0xRRGGBB.
        radius : float, default 1
            In pixels.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.circle([0.5, 0.5], radius=8, color=0x00FF00)
        >>> gui.get_image()[32, 32].tolist()
        [0.0, 1.0, 0.0, 1.0]
        """
        self._canvas.discs(self._points(pos, "pos"), float(radius), as_colors(color))

    @_interruptible
    def lines(self, begin: Any, end: Any, radius: float = 1.0, color: Any = 0xFFFFFF) -> None:
        """Draw several lines.

        Parameters
        ----------
        begin, end : Field or array, shape (N, 2)
            Their ends.
        radius : float, default 1
            Half of their width, in pixels.
        color : int or (N,) ints
            0xRRGGBB.

        Raises
        ------
        ViewError
            For arrays of other shapes.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.lines([[0.0, 0.5], [0.5, 0.0]], [[1.0, 0.5], [0.5, 1.0]], radius=2)
        >>> gui.get_image()[32, 32].tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        first, last = self._points(begin, "begin"), self._points(end, "end")
        if len(first) != len(last):
            raise ViewError(f"{len(first)} beginnings and {len(last)} ends of lines")
        self._canvas.lines(first, last, 2.0 * float(radius), as_colors(color, len(first)))

    @_interruptible
    def line(self, begin: Any, end: Any, radius: float = 1.0, color: Any = 0xFFFFFF) -> None:
        """Draw a line.

        Parameters
        ----------
        begin, end : (float, float)
            Its ends.
        radius : float, default 1
            Half of its width, in pixels.
        color : int
            0xRRGGBB.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.line([0.0, 0.5], [1.0, 0.5], radius=2, color=0x0000FF)
        >>> gui.get_image()[10, 32].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        self.lines(begin, end, radius, as_colors(color))

    @_interruptible
    def triangles(self, a: Any, b: Any, c: Any, color: Any = 0xFFFFFF) -> None:
        """Draw filled triangles.

        Parameters
        ----------
        a, b, c : Field or array, shape (N, 2)
            Their corners.
        color : int or (N,) ints
            0xRRGGBB.

        Raises
        ------
        ViewError
            For arrays of other shapes.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.triangles([[0.0, 0.0]], [[1.0, 0.0]], [[0.5, 1.0]], color=0x0000FF)
        >>> gui.get_image()[32, 20].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        corners = [self._points(corner, name) for corner, name in ((a, "a"), (b, "b"), (c, "c"))]
        if len({len(corner) for corner in corners}) != 1:
            raise ViewError(f"triangles with {len(corners[0])}, {len(corners[1])} and {len(corners[2])} corners")
        self._canvas.triangles(np.stack(corners, axis=1), as_colors(color, len(corners[0])))

    @_interruptible
    def triangle(self, a: Any, b: Any, c: Any, color: Any = 0xFFFFFF) -> None:
        """Draw a filled triangle.

        Parameters
        ----------
        a, b, c : (float, float)
            Its corners.
        color : int
            0xRRGGBB.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.triangle([0.0, 0.0], [1.0, 0.0], [0.5, 1.0], color=0x0000FF)
        >>> gui.get_image()[32, 20].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        self.triangles(a, b, c, as_colors(color))

    @_interruptible
    def rect(self, topleft: Any, bottomright: Any, radius: float = 1.0, color: Any = 0xFFFFFF) -> None:
        """Draw the outline of a rectangle.

        Parameters
        ----------
        topleft, bottomright : (float, float)
            Two corners.
        radius : float, default 1
            Half of the lines' width, in pixels.
        color : int
            0xRRGGBB.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.rect([0.25, 0.75], [0.75, 0.25], radius=2)
        >>> gui.get_image()[[16, 32], 32].tolist()
        [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]
        """
        (left, top), (right, bottom) = as_positions(topleft, "topleft")[0], as_positions(bottomright, "bottomright")[0]
        corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
        self.lines(corners, np.roll(corners, -1, axis=0), radius, as_colors(color))

    @_interruptible
    def text(self, content: str, pos: Any, font_size: float = 15, color: Any = 0xFFFFFF) -> None:
        """Draw text; several lines are allowed.

        Parameters
        ----------
        content : str
            The text.
        pos : (float, float)
            Its top left corner.
        font_size : float, default 15
            Its height in pixels.
        color : int
            0xRRGGBB.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.text("t = 1", pos=(0.1, 0.9), font_size=20)
        >>> bool(gui.get_image()[..., 0].any())
        True
        """
        x, y = _only(self._points(pos, "pos"))
        self._canvas.text(str(content), float(x), float(y), float(font_size), as_colors(color))

    @_interruptible
    def arrows(self, orig: Any, direction: Any, radius: float = 1.0, color: Any = 0xFFFFFF) -> None:
        """Draw several arrows.

        Parameters
        ----------
        orig : Field or array, shape (N, 2)
            Where they begin.
        direction : Field or array, shape (N, 2)
            From their begins to their ends.
        radius : float, default 1
            Half of their width, in pixels.
        color : int or (N,) ints
            0xRRGGBB.

        Raises
        ------
        ViewError
            For arrays of other shapes.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.arrows([[0.25, 0.25], [0.25, 0.75]], [[0.5, 0.0], [0.5, 0.0]], radius=2)
        >>> gui.get_image()[32, [16, 48]].tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        """
        start, along = as_positions(orig, "orig"), as_positions(direction, "direction")
        if len(start) != len(along):
            raise ViewError(f"{len(start)} origins and {len(along)} directions of arrows")
        colors = np.broadcast_to(as_colors(color, len(start)), (len(start), 3))
        begin, end = self._pixels(start), self._pixels(start + along)
        shaft = end - begin
        length = np.hypot(shaft[:, 0], shaft[:, 1])[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.where(length > 0, shaft / length, 0.0)
        # The head is in proportion for a short arrow and not larger than a few pixels for a long one.
        head = np.minimum(0.35 * length, 4.0 + 3.0 * radius)
        side = np.stack([-unit[:, 1], unit[:, 0]], axis=1)
        barbs = [end - head * unit + 0.5 * head * side * turn for turn in (1.0, -1.0)]
        self._canvas.lines(
            np.concatenate([begin, end, end]), np.concatenate([end, *barbs]), 2.0 * radius, np.concatenate([colors] * 3)
        )

    @_interruptible
    def arrow(self, orig: Any, direction: Any, radius: float = 1.0, color: Any = 0xFFFFFF) -> None:
        """Draw an arrow.

        Parameters
        ----------
        orig : (float, float)
            Where it begins.
        direction : (float, float)
            From its begin to its end.
        radius : float, default 1
            Half of its width, in pixels.
        color : int
            0xRRGGBB.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.arrow([0.25, 0.5], [0.5, 0.0], radius=2)
        >>> gui.get_image()[32, 32].tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        self.arrows(orig, direction, radius, as_colors(color))

    @_interruptible
    def arrow_field(self, direction: Any, radius: float = 1.0, color: Any = 0xFFFFFF, bound: float = 0.5) -> None:
        """Draw a vector field over the window: an arrow at the centre of each cell.

        Parameters
        ----------
        direction : Field or array, shape (columns, rows, 2)
            The vectors.
        radius : float, default 1
            Half of the arrows' width, in pixels.
        color : int
            0xRRGGBB.
        bound : float, default 0.5
            The length of the longest arrow in sizes of a cell.

        Raises
        ------
        ViewError
            For an array of another shape.

        Examples
        --------
        >>> import numpy as np
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.arrow_field(np.full((2, 2, 2), [1.0, 0.0]), radius=2)
        >>> gui.get_image()[[16, 48], 16].tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        """
        field = as_array(direction)
        if field.ndim != 3 or field.shape[2] != 2:
            raise ViewError(f"a vector field over the window has shape (columns, rows, 2), not {field.shape}")
        columns, rows = field.shape[:2]
        vectors = np.nan_to_num(field.astype(np.float64), posinf=0.0, neginf=0.0).reshape(-1, 2)
        longest = float(np.hypot(vectors[:, 0], vectors[:, 1]).max(initial=0.0))
        scale = bound / (max(columns, rows) * longest) if longest > 0 else 0.0
        centers = _cell_centers(columns, rows)
        self.arrows(centers - 0.5 * scale * vectors, scale * vectors, radius, color)

    @_interruptible
    def vector_field(self, vector_field: Any, arrow_spacing: int = 5, color: Any = 0xFFFFFF) -> None:
        """Draw a vector field over the window: an arrow in every few cells.

        Parameters
        ----------
        vector_field : Field or array, shape (columns, rows, 2)
            The vectors.
        arrow_spacing : int, default 5
            The distance of arrows in cells.
        color : int
            0xRRGGBB.

        Examples
        --------
        >>> import numpy as np
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.vector_field(np.full((8, 8, 2), [1.0, 0.0]), arrow_spacing=4)
        >>> bool(gui.get_image()[..., 0].any())
        True
        """
        field = _vectors(vector_field, arrow_spacing)
        first = min(arrow_spacing // 2, *(extent - 1 for extent in field.shape[:2]))
        self.arrow_field(field[first::arrow_spacing, first::arrow_spacing], color=color)

    @_interruptible
    def contour(self, scalar_field: Any, normalize: bool = False) -> None:
        """Draw a scalar field over the window in colours.

        Parameters
        ----------
        scalar_field : Field or array, shape (columns, rows)
            The values, in [0, 1].
        normalize : bool, default False
            Let the colours go from the least to the greatest value.

        Examples
        --------
        >>> import numpy as np
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.contour(np.linspace(0.0, 5.0, 64)[:, None].repeat(64, axis=1), normalize=True)
        >>> (255 * gui.get_image()[[0, 63], 0, :3]).round().astype(int).tolist()
        [[13, 8, 135], [240, 249, 33]]
        """
        self.set_image(stretched(colored(scalar_field, normalize=normalize), self.res))

    @_interruptible
    def point_field(self, radius: Any, color: Any = 0xFFFFFF) -> None:
        """Draw a scalar field over the window: a circle at the centre of each cell.

        Parameters
        ----------
        radius : Field or array, shape (columns, rows)
            The radius of each circle, in pixels.
        color : int
            0xRRGGBB.

        Raises
        ------
        ViewError
            For an array of another shape.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.point_field([[0.0, 6.0], [0.0, 0.0]])
        >>> gui.get_image()[16, [16, 48]].tolist()
        [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        """
        field = as_array(radius)
        if field.ndim != 2:
            raise ViewError(f"a scalar field over the window has shape (columns, rows), not {field.shape}")
        self._canvas.discs(
            self._pixels(_cell_centers(*field.shape)), field.astype(np.float32).ravel(), as_colors(color)
        )

    @_interruptible
    def set_image(self, img: Any) -> None:
        """Fill the window with an image of its size.

        Parameters
        ----------
        img : Field or array, shape (width, height) or (width, height, channels)
            Grey or colours, indexed `[x, y]` from the bottom left; floats in [0, 1], or unsigned integers.

        Raises
        ------
        ViewError
            For an image of another size.

        Examples
        --------
        >>> grey = ti.field(ti.f32, shape=(64, 64))
        >>> grey.fill(0.5)
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.set_image(grey)
        >>> gui.get_image()[0, 0].round(1).tolist()
        [0.5, 0.5, 0.5, 1.0]
        """
        self._canvas.pixels[:] = as_image(img, self.res)

    @_interruptible
    def set_scene(self, content: Content, eye: Eye) -> None:
        """Draw a scene in space, as a camera sees it, over what is there."""
        _ = self._canvas  # With the scene before.
        self._scene = (content, eye)
        self._scenes.append(self._scene)

    @_interruptible
    def get_image(self) -> np.ndarray:
        """The picture that has been drawn in this frame, without its controls, or else the last frame that was shown.

        Returns
        -------
        numpy.ndarray of float32, shape (width, height, 4)
            Red, green, blue and opacity in [0, 1], as `set_image` takes them.
        """
        picture = self._canvas if self._is_begun or not self.frame else _picture_of(self._shown)
        image = np.ones((*self.res, 4), np.float32)
        image[:, :, :3] = picture.pixels[::-1].swapaxes(0, 1) / np.float32(255.0)
        return image

    @_interruptible
    def get_depth(self) -> np.ndarray:
        """The depth buffer of the scenes in space that have been set in this frame, or of the last that was shown.

        Returns
        -------
        numpy.ndarray of float32, shape (width, height)
            From 1 at the camera's near plane to 0 at the far one and where nothing is.
        """
        found = np.zeros(self.res, np.float32)
        for content, eye in self._scenes or self._scenes_shown:
            depth = clip_depth(eye, self._depths.visible(content, eye, self.res).depth)
            np.maximum(found, depth[::-1].T, out=found)
        return found

    # Controls.

    def slider(self, text: str, minimum: float, maximum: float, step: float = 1) -> Slider:
        """Make a slider at the window's right side.

        Parameters
        ----------
        text : str
            The text before it.
        minimum, maximum : float
            The ends of its range; it starts at `minimum`.
        step : float, default 1
            The distance between two positions.

        Returns
        -------
        Slider
            Its `value` is its position.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> speed = gui.slider("speed", 0.0, 2.0, step=0.1)
        >>> speed.value
        0.0
        """
        return self._widgets.add(Slider(text, minimum, maximum, step))

    def label(self, text: str) -> Label:
        """Make a line at the window's right side that shows a number.

        Parameters
        ----------
        text : str
            The text before the number.

        Returns
        -------
        Label
            Its `value` is the number, which the program sets.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> energy = gui.label("energy")
        >>> energy.value = 1.5
        >>> energy.value
        1.5
        """
        return self._widgets.add(Label(text))

    def button(self, text: str, event_name: str | None = None) -> str:
        """Make a button at the window's right side.

        Parameters
        ----------
        text : str
            What it says.
        event_name : str, optional
            The key of its event; by default made of the text.

        Returns
        -------
        str
            The key of the PRESS event that it sends.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.button("Reset"), gui.button("Start again", event_name="again")
        ('WidgetButton_Reset', 'again')
        """
        return self._widgets.add(Button(text, event_name or f"WidgetButton_{text}")).key

    def overlay(self, panel: Panel) -> None:
        """Paint a panel of controls over this frame."""
        self._panels.append(panel)

    # Events.

    def get_events(self, *e_filter: str | tuple[str, str]) -> Iterator[Event]:
        """The events since the last call, the oldest first.

        Parameters
        ----------
        *e_filter : str or (str, str)
            Only events of these kinds, keys, or (kind, key).

        Yields
        ------
        Event
            The events.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> [event.key for event in gui.get_events(ti.GUI.PRESS)]
        []
        """
        return self._events.take(*e_filter)

    def get_event(self, *e_filter: str | tuple[str, str]) -> bool:
        """Whether there is a next event; it is then in `event`.

        Parameters
        ----------
        *e_filter : str or (str, str)
            Only events of these kinds, keys, or (kind, key).

        Returns
        -------
        bool
            True if there is one.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.get_event(ti.GUI.PRESS)
        False
        """
        for event in self._events.take(*e_filter):
            self.event = event
            return True
        return False

    def get_key_event(self) -> Event | None:
        """The next event, or None.

        Returns
        -------
        Event or None
            The oldest event that waits.
        """
        return next(self._events.take(), None)

    def has_key_event(self) -> bool:
        """Whether an event waits.

        Returns
        -------
        bool
            True if one waits.
        """
        return bool(len(self._events))

    def is_pressed(self, *keys: str) -> bool:
        """Whether any of these keys or buttons is held down.

        Parameters
        ----------
        *keys : str
            Such as `ti.GUI.SPACE`, `"a"` or `ti.GUI.LMB`.

        Returns
        -------
        bool
            True if one is.

        Examples
        --------
        >>> gui = ti.GUI(res=64, show_gui=False)
        >>> gui.is_pressed(ti.GUI.LEFT, "a")
        False
        """
        return any(key in self._events.pressed for key in keys)

    def get_cursor_pos(self) -> tuple[float, float]:
        """Where the pointer was last seen, in [0, 1] from the bottom left.

        Returns
        -------
        (float, float)
            From the left and from the bottom, in sizes of the window.
        """
        return self._events.cursor


def _picture_of(frame: Picture | SceneFrame) -> Picture:
    return frame.picture() if isinstance(frame, SceneFrame) else frame


def _frame_limit(audience_now: Audience) -> int | None:
    """How many frames `running` holds: the environment variable's value, or a limit where a program executes it."""
    text = os.environ.get(FRAMES_VARIABLE, "")
    if text:
        if not text.isdecimal():
            raise ViewError(f"{FRAMES_VARIABLE} must be a number of frames, not {text!r}")
        return int(text)
    return UNATTENDED_FRAMES if audience_now is Audience.PROGRAM else None


def _pixels(res: int | Sequence[int]) -> Sequence[int]:
    """The width and height of a window. Raises `ViewError`."""
    width, height = (res, res) if isinstance(res, int) else res if len(res) == 2 else (0, 0)
    if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS):
        raise ViewError(f"res must be from 1 to {MOST_PIXELS:,} pixels each way, not {res!r}")
    return width, height


def _only(points: np.ndarray) -> np.ndarray:
    """The place of a text. Raises `ViewError` where there are several."""
    if len(points) != 1:
        raise ViewError(f"text stands at one position, not at {len(points)}")
    return points[0]


def _vectors(value: Any, apart: int) -> np.ndarray:
    """Vectors over a window, to be drawn as arrows that stand so many cells apart. Raises `ViewError`."""
    field = as_numbers(value, "vector_field")
    if field.ndim != 3 or field.shape[2] != 2 or apart < 1:
        raise ViewError(
            f"vector_field has shape {field.shape}, and arrows are {apart} cells apart",
            hint="vectors over the window have shape (columns, rows, 2), and arrows are at least one cell apart",
        )
    return field


def _widths(value: Any, count: int, name: str) -> np.ndarray:
    widths = as_numbers(value, name).astype(np.float32)
    if not np.isfinite(widths).all():
        raise ViewError(f"{name} must be finite numbers of pixels")
    if widths.ndim and widths.shape != (count,):
        raise ViewError(f"{name} has shape {widths.shape}, and there are {count} circles")
    return widths


def _from_palette(palette: Any, indices: Any, count: int) -> np.ndarray:
    palette = as_array(palette)
    if not palette.ndim:
        raise ViewError(f"palette must be several colours, not {palette}")
    colors = as_colors(palette, len(palette), "palette")
    if indices is None:
        raise ViewError("a palette needs palette_indices", hint="give the number of each circle's colour")
    numbers = as_array(indices)
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise ViewError(
            f"palette_indices must be {count} integers, not of shape {numbers.shape} and type {numbers.dtype}"
        )
    if count and (numbers.min() < 0 or numbers.max() >= len(colors)):
        raise ViewError(
            f"palette_indices go from {numbers.min()} to {numbers.max()}, and the palette has {len(colors)} colours"
        )
    return colors[numbers]


def stretched(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """An image (columns, rows, …) as one of `size`, each pixel the nearest."""
    across, up = (np.arange(n) * m // n for n, m in zip(size, image.shape, strict=False))
    return image[across[:, None], up[None, :]]


def _cell_centers(columns: int, rows: int) -> np.ndarray:
    """Centres of a grid of cells over the window, in the order of a (columns, rows) array."""
    grid = np.meshgrid((np.arange(columns) + 0.5) / columns, (np.arange(rows) + 0.5) / rows, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 2)
