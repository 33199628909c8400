"""`ti.ui`: `Window`, its `Canvas` and its `Gui`, drawn and shown as `ti.GUI` is.

    window = ti.ui.Window("waves", (512, 512))
    canvas, gui = window.get_canvas(), window.get_gui()
    while window.running:
        with gui.sub_window("Parameters", 0.05, 0.05, 0.4, 0.2):
            speed = gui.slider_float("speed", speed, 0.0, 2.0)
        canvas.set_image(height)
        window.show()

Positions are in [0, 1] from the bottom left, as for `ti.GUI`; radii and widths are shares of the window's height, and
colours are triples in [0, 1]. `Scene` and `Camera` (`scene.py`) draw in space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tinote.completion import Documented
from tinote.viz.draw.arguments import checked_methods
from tinote.viz.draw.arrays import ViewError, as_array, as_numbers, as_positions
from tinote.viz.draw.colormap import colored
from tinote.viz.window.controls import Box, Panel, PointerState
from tinote.viz.window.events import Event, KeyNames
from tinote.viz.window.gui import GUI, stretched
from tinote.viz.window.scene import Camera, ProjectionMode, make_camera
from tinote.viz.window.scene import WindowScene as Scene

#: `ti.ui.ESCAPE`, `ti.ui.PRESS`, …
_KEYS = {name: value for name, value in vars(KeyNames).items() if name.isupper()}
globals().update(_KEYS)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Camera", "Canvas", "Gui", "ProjectionMode", "Scene", "Window", "make_camera", *_KEYS,
]  # fmt: skip


@checked_methods
class Window(Documented):
    """A window for drawing in the plane and in space, with controls.

    `running` and the frames' rate are those of `ti.GUI`. Scenes in space are drawn by the page if it has a graphics
    card and gets messages while a cell runs, otherwise here; the environment variable `TINOTE_GUI_RENDERER` ("page" or
    "kernel") decides otherwise.

    Parameters
    ----------
    name : str
        The title.
    res : (int, int)
        Width and height in pixels.
    vsync : bool
        Accepted, and without effect.
    pos : (int, int)
        Accepted, and without effect.
    show_window : bool, default True
        False draws without showing, for recording with `save_image`.
    fps_limit : float
        The most frames a second; there are never more than 60.

    Examples
    --------
    >>> window = ti.ui.Window("image", (64, 64), show_window=False)
    >>> x = ti.field(ti.f32, shape=(64, 64))
    >>> window.get_canvas().set_image(x)
    >>> window.save_image("image.png")
    >>> ti.tools.imread("image.png").shape
    (64, 64, 3)
    """

    def __init__(
        self,
        name: str,
        res: Sequence[int],
        vsync: bool = False,
        show_window: bool = True,
        fps_limit: float = 1000.0,
        pos: Sequence[int] = (100, 100),
    ) -> None:
        del vsync, pos
        self._gui = GUI(name, res, show_gui=show_window)
        self._gui.fps_limit = min(fps_limit, 60.0)
        self._canvas = Canvas(self._gui)
        self._scene = Scene()
        self._controls = Gui(self._gui)

    @property
    def running(self) -> bool:
        """Whether the loop should go on; set it to False to end it."""
        return self._gui.running

    @running.setter
    def running(self, value: bool) -> None:
        self._gui.running = value

    @property
    def event(self) -> Event | None:
        """What `get_event` found last."""
        return self._gui.event

    def get_canvas(self) -> Canvas:
        """What is drawn into.

        Returns
        -------
        Canvas
            The same one for all frames.
        """
        return self._canvas

    def get_gui(self) -> Gui:
        """Its sliders, buttons and texts.

        Returns
        -------
        Gui
            The same one for all frames.
        """
        return self._controls

    GUI = property(get_gui)

    def get_scene(self) -> Scene:
        """What is seen in space; `Canvas.scene` draws it.

        Returns
        -------
        Scene
            The same one for all frames.
        """
        return self._scene

    def show(self) -> None:
        """End the frame: display it, and begin the next one from the background."""
        self._gui.show()

    def destroy(self) -> None:
        """End `running`, and leave the last frame as a picture."""
        self._gui.close()

    def get_events(self, tag: Any = None) -> list[Event]:
        """The events since the last call, the oldest first.

        Parameters
        ----------
        tag : str, optional
            Only events of this kind.

        Returns
        -------
        list of Event
            The events.

        Examples
        --------
        >>> window = ti.ui.Window("keys", (64, 64), show_window=False)
        >>> window.get_events(ti.ui.PRESS)
        []
        """
        return list(self._gui.get_events(*(() if tag is None else (tag,))))

    def get_event(self, tag: Any = None) -> bool:
        """Whether there is a next event; it is then in `event`.

        Parameters
        ----------
        tag : str, optional
            Only events of this kind.

        Returns
        -------
        bool
            True if there is one.

        Examples
        --------
        >>> window = ti.ui.Window("keys", (64, 64), show_window=False)
        >>> window.get_event(ti.ui.PRESS)
        False
        """
        return self._gui.get_event(*(() if tag is None else (tag,)))

    def is_pressed(self, *keys: str) -> bool:
        """Whether any of these keys or buttons is held down.

        Parameters
        ----------
        *keys : str
            Such as `ti.ui.SPACE`, `"a"` or `ti.ui.LMB`.

        Returns
        -------
        bool
            True if one is.

        Examples
        --------
        >>> window = ti.ui.Window("keys", (64, 64), show_window=False)
        >>> window.is_pressed(ti.ui.SPACE, "a")
        False
        """
        return self._gui.is_pressed(*keys)

    def get_cursor_pos(self) -> tuple[float, float]:
        """Where the pointer was last seen, in [0, 1] from the bottom left.

        Returns
        -------
        (float, float)
            From the left and from the bottom, in sizes of the window.
        """
        return self._gui.get_cursor_pos()

    def get_window_shape(self) -> tuple[int, int]:
        """Width and height in pixels.

        Returns
        -------
        (int, int)
            In pixels.
        """
        return self._gui.res

    def get_image_buffer_as_numpy(self) -> np.ndarray:
        """The picture that has been drawn in this frame, or else the last one that was shown.

        Returns
        -------
        numpy.ndarray of float32, shape (width, height, 4)
            Red, green, blue and opacity in [0, 1].
        """
        return self._gui.get_image()

    def get_depth_buffer_as_numpy(self) -> np.ndarray:
        """The depth buffer of the scenes in space that are in this frame, or in the last that was shown.

        Returns
        -------
        numpy.ndarray of float32, shape (width, height)
            From 1 at the camera's near plane to 0 at the far one and where nothing is.
        """
        return self._gui.get_depth()

    def get_depth_buffer(self, depth: Any) -> None:
        """Write the depth buffer into a field or array.

        Parameters
        ----------
        depth : Field or array, shape (width, height)
            What gets the depths, as `get_depth_buffer_as_numpy` returns them.

        Raises
        ------
        ViewError
            For another shape.

        Examples
        --------
        >>> window = ti.ui.Window("depth", (64, 64), show_window=False)
        >>> depth = ti.field(ti.f32, shape=(64, 64))
        >>> window.get_depth_buffer(depth)
        >>> depth[32, 32]
        0.0
        """
        shape = tuple(getattr(depth, "shape", ()))
        if shape != self._gui.res:
            raise ViewError(f"depth has shape {shape}, and the window {self._gui.res}")
        if isinstance(depth, np.ndarray):
            depth[:] = self._gui.get_depth()
        else:
            depth.from_numpy(self._gui.get_depth())

    def save_image(self, filename: str | Path) -> None:
        """Write the frame that is being drawn to a file; the next one begins from the background.

        Parameters
        ----------
        filename : path
            The file: .png, .jpg, …

        Examples
        --------
        >>> window = ti.ui.Window("white", (64, 64), show_window=False)
        >>> window.get_canvas().set_background_color((1, 1, 1))
        >>> window.save_image("white.png")
        >>> ti.tools.imread("white.png")[0, 0].tolist()
        [255, 255, 255]
        """
        self._gui.show(Path(filename))

    def __repr__(self) -> str:
        return f"<Window {self._gui.name!r}, {self._gui.res[0]} × {self._gui.res[1]}>"


@checked_methods
class Canvas(Documented):
    """What a window shows, from `Window.get_canvas`: later calls lie over earlier ones.

    Coordinates are in [0, 1] from the bottom left, colours are red, green and blue in [0, 1].

    Examples
    --------
    >>> window = ti.ui.Window("circles", (64, 64), show_window=False)
    >>> canvas = window.get_canvas()
    >>> isinstance(canvas, ti.ui.Canvas)
    True
    >>> canvas.set_background_color((1, 1, 1))
    >>> x = ti.Vector.field(2, ti.f32, shape=4)
    >>> canvas.circles(x, radius=0.1, color=(0.9, 0.2, 0.2))
    """

    def __init__(self, gui: GUI) -> None:
        self._gui = gui
        self._height = gui.res[1]

    def set_background_color(self, color: Any) -> None:
        """Paint the whole window; frames begin with this colour from now on.

        Parameters
        ----------
        color : (float, float, float)
            The colour.

        Examples
        --------
        >>> window = ti.ui.Window("blue", (64, 64), show_window=False)
        >>> window.get_canvas().set_background_color((0, 0, 1))
        >>> window.get_image_buffer_as_numpy()[0, 0].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        self._gui.background_color = as_numbers(color, "color", 3)
        self._gui.clear()

    def set_image(self, img: Any) -> None:
        """Fill the window with an image; one of another size is stretched.

        Parameters
        ----------
        img : Field or array, shape (width, height) or (width, height, channels)
            Grey or colours, indexed `[x, y]` from the bottom left; floats in [0, 1] or unsigned integers.

        Raises
        ------
        ViewError
            For what is not an image.

        Examples
        --------
        >>> window = ti.ui.Window("grey", (64, 64), show_window=False)
        >>> window.get_canvas().set_image([[0.0, 0.0], [1.0, 1.0]])
        >>> window.get_image_buffer_as_numpy()[[0, 63], 0].tolist()
        [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        """
        image = as_array(img)
        if image.ndim not in (2, 3) or 0 in image.shape:
            raise ViewError(f"an image has shape (width, height[, channels]), not {image.shape}")
        self._gui.set_image(stretched(image, self._gui.res))

    def circles(self, centers: Any, radius: float, color: Any = (0.5, 0.5, 0.5), per_vertex_color: Any = None) -> None:
        """Draw filled circles.

        Parameters
        ----------
        centers : Field or array, shape (N, 2)
            Their centres.
        radius : float
            In heights of the window.
        color : (float, float, float)
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colour of each.

        Examples
        --------
        >>> window = ti.ui.Window("circles", (64, 64), show_window=False)
        >>> window.get_canvas().circles([[0.25, 0.5], [0.75, 0.5]], radius=0.1, color=(0, 1, 0))
        >>> window.get_image_buffer_as_numpy()[[16, 48], 32].tolist()
        [[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
        """
        self._gui.circles(centers, radius * self._height, _colors(color, per_vertex_color))

    def lines(
        self,
        vertices: Any,
        width: float,
        indices: Any = None,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
    ) -> None:
        """Draw lines between two points each; a line has the colour of its first point.

        Parameters
        ----------
        vertices : Field or array, shape (N, 2)
            The points, in pairs, if there are no `indices`.
        width : float
            In heights of the window.
        indices : Field or array, shape (2 M,) or (M, 2), optional
            The two points of each line.
        color : (float, float, float)
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the points.

        Examples
        --------
        >>> window = ti.ui.Window("lines", (64, 64), show_window=False)
        >>> window.get_canvas().lines([[0.0, 0.5], [1.0, 0.5]], width=0.1, color=(0, 0, 1))
        >>> window.get_image_buffer_as_numpy()[10, 32].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        pairs = _corners(vertices, indices, 2)
        colors = _colors(color, per_vertex_color, pairs)
        points = as_positions(vertices, "vertices")
        self._gui.lines(points[pairs[:, 0]], points[pairs[:, 1]], 0.5 * width * self._height, colors)

    def triangles(
        self, vertices: Any, color: Any = (0.5, 0.5, 0.5), indices: Any = None, per_vertex_color: Any = None
    ) -> None:
        """Draw filled triangles; each has the mean colour of its corners.

        Parameters
        ----------
        vertices : Field or array, shape (N, 2)
            The corners, in threes, if there are no `indices`.
        color : (float, float, float)
            The colour of all.
        indices : Field or array, shape (3 M,), optional
            The three corners of each triangle.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the corners.

        Examples
        --------
        >>> window = ti.ui.Window("triangle", (64, 64), show_window=False)
        >>> window.get_canvas().triangles([[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]], color=(0, 0, 1))
        >>> window.get_image_buffer_as_numpy()[32, 20].tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        corners = _corners(vertices, indices, 3)
        points = as_positions(vertices, "vertices")
        colors = np.asarray(color, dtype=float)
        if per_vertex_color is not None:
            colors = as_array(per_vertex_color).reshape(-1, 3)[corners].mean(axis=1)
        self._gui.triangles(points[corners[:, 0]], points[corners[:, 1]], points[corners[:, 2]], colors)

    def contour(self, scalar_field: Any, cmap_name: str = "plasma", normalize: bool = False) -> None:
        """Draw a scalar field over the window in colours.

        Parameters
        ----------
        scalar_field : Field or array, shape (columns, rows)
            The values, in [0, 1].
        cmap_name : str, default "plasma"
            A colour map of matplotlib.
        normalize : bool, default False
            Let the colours go from the least to the greatest value.

        Examples
        --------
        >>> window = ti.ui.Window("contour", (64, 64), show_window=False)
        >>> window.get_canvas().contour([[0.0, 0.0], [1.0, 1.0]], cmap_name="gray")
        >>> window.get_image_buffer_as_numpy()[[0, 63], 0].tolist()
        [[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        """
        self.set_image(colored(scalar_field, cmap_name, normalize))

    def vector_field(
        self,
        vector_field: Any,
        arrow_spacing: int = 5,
        scale: float = 0.1,
        width: float = 0.002,
        color: Any = (1.0, 1.0, 1.0),
    ) -> None:
        """Draw a vector field over the window: an arrow in every few cells.

        Parameters
        ----------
        vector_field : Field or array, shape (columns, rows, 2)
            The vectors.
        arrow_spacing : int, default 5
            The distance of arrows in cells.
        scale : float, default 0.1
            The length of an arrow for a vector of length 1.
        width : float, default 0.002
            In heights of the window.
        color : (float, float, float)
            The colour of all.

        Raises
        ------
        ViewError
            For an array of another shape.

        Examples
        --------
        >>> import numpy as np
        >>> window = ti.ui.Window("wind", (64, 64), show_window=False)
        >>> window.get_canvas().vector_field(np.full((4, 4, 2), [1.0, 0.0]), arrow_spacing=4, scale=0.3, width=0.1)
        >>> window.get_image_buffer_as_numpy()[42, 42].tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        field = as_array(vector_field)
        if field.ndim != 3 or field.shape[2] != 2:
            raise ViewError(f"a vector field over the window has shape (columns, rows, 2), not {field.shape}")
        centers, vectors = _every(field, arrow_spacing)
        self._gui.arrows(centers, scale * vectors, 0.5 * width * self._height, np.asarray(color, dtype=float))

    def scene(self, scene: Scene) -> None:
        """Draw a scene in space over what is there, and empty it for the next frame.

        Parameters
        ----------
        scene : Scene
            The scene.

        Raises
        ------
        ViewError
            For what is not a scene.

        Examples
        --------
        >>> window = ti.ui.Window("sphere", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.particles([[0.0, 0.0, 0.0]], radius=1.0)
        >>> window.get_canvas().scene(scene)
        >>> bool(window.get_image_buffer_as_numpy()[32, 32, 0] > 0)
        True
        """
        if not isinstance(scene, Scene):
            raise ViewError(f"{scene!r} is not a scene", hint="get one with window.get_scene()")
        self._gui.set_scene(*scene.take(self._gui.res[0] / self._gui.res[1]))


@checked_methods
class Gui(Documented):
    """The controls of a window, from `Window.get_gui`: each call draws one and returns its present value.

    Examples
    --------
    >>> window = ti.ui.Window("controls", (64, 64), show_window=False)
    >>> gui = window.get_gui()
    >>> isinstance(gui, ti.ui.Gui)
    True
    >>> gui.slider_float("speed", 0.5, 0.0, 1.0)
    0.5
    """

    def __init__(self, gui: GUI) -> None:
        self._gui = gui
        self._pointer: PointerState = gui.pointer
        self._panel: Panel | None = None
        self._begun_in = 0

    @contextmanager
    def sub_window(self, name: str, x: float, y: float, width: float, height: float) -> Iterator[Gui]:
        """A box of controls, as a `with` block.

        Parameters
        ----------
        name : str
            Its title.
        x, y, width, height : float
            Place and size in shares of the window's, from the top left.

        Yields
        ------
        Gui
            The controls.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> with gui.sub_window("Flow", x=0.0, y=0.0, width=0.5, height=0.5) as box:
        ...     speed = box.slider_float("speed", 0.5, 0.0, 1.0)
        >>> speed
        0.5
        """
        self.begin(name, x, y, width, height)
        try:
            yield self
        finally:
            self.end()

    def begin(self, name: str, x: float, y: float, width: float, height: float) -> None:
        """Begin a box of controls, as `sub_window`; `end` ends it.

        Parameters
        ----------
        name : str
            Its title.
        x, y, width, height : float
            Place and size in shares of the window's, from the top left.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> gui.begin("Flow", x=0.0, y=0.0, width=0.5, height=0.5)
        >>> gui.checkbox("walls", True)
        True
        >>> gui.end()
        """
        across, down = self._gui.res
        self._panel = Panel(self._pointer, Box(x * across, y * down, width * across, height * down), name)
        self._begun_in = self._gui.frame
        self._gui.overlay(self._panel)

    def end(self) -> None:
        """End the box of controls."""
        self._panel = None

    def _open(self) -> Panel:
        if self._panel is None or self._begun_in != self._gui.frame:  # Each frame has boxes of its own.
            self.begin("", 0.0, 0.0, 0.4, 0.0)
        assert self._panel is not None
        return self._panel

    def text(self, text: str, color: Any = None) -> None:
        """Draw a line of text.

        Parameters
        ----------
        text : str
            The text.
        color : (float, float, float), optional
            Its colour.

        Examples
        --------
        >>> window = ti.ui.Window("controls", (64, 64), show_window=False)
        >>> window.get_gui().text("t = 1", color=(1, 1, 0))
        >>> window.get_image_buffer_as_numpy().shape
        (64, 64, 4)
        """
        if color is None:
            self._open().text(str(text))
        else:
            red, green, blue = (int(255 * min(max(part, 0.0), 1.0)) for part in as_numbers(color, "color", 3))
            self._open().text(str(text), (red, green, blue))

    def slider_float(self, text: str, old_value: float, minimum: float, maximum: float) -> float:
        """Draw a slider for a number.

        Parameters
        ----------
        text : str
            What stands next to it.
        old_value : float
            The number.
        minimum, maximum : float
            The ends of the range.

        Returns
        -------
        float
            The number now.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> gui.slider_float("speed", 0.5, 0.0, 1.0)
        0.5
        """
        return float(self._open().slider(text, old_value, minimum, maximum))

    def slider_int(self, text: str, old_value: int, minimum: int, maximum: int) -> int:
        """Draw a slider for an integer.

        Parameters
        ----------
        text : str
            What stands next to it.
        old_value : int
            The number.
        minimum, maximum : int
            The ends of the range.

        Returns
        -------
        int
            The number now.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> gui.slider_int("rounds", 20, 1, 100)
        20
        """
        return round(self._open().slider(text, old_value, minimum, maximum, 1))

    def checkbox(self, text: str, old_value: bool) -> bool:
        """Draw a box to tick.

        Parameters
        ----------
        text : str
            What stands next to it.
        old_value : bool
            Whether it is ticked.

        Returns
        -------
        bool
            Whether it is ticked now.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> gui.checkbox("walls", True)
        True
        """
        return self._open().checkbox(text, bool(old_value))

    def button(self, text: str) -> bool:
        """Draw a button.

        Parameters
        ----------
        text : str
            What it says.

        Returns
        -------
        bool
            Whether it was pressed since the frame before.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> gui.button("Reset")
        False
        """
        return self._open().button(text)

    def color_edit_3(self, text: str, old_value: Any) -> tuple[float, ...]:
        """Draw three sliders for a colour.

        Parameters
        ----------
        text : str
            What stands next to them.
        old_value : (float, float, float)
            The colour, in [0, 1].

        Returns
        -------
        tuple of float
            The colour now.

        Examples
        --------
        >>> gui = ti.ui.Window("controls", (64, 64), show_window=False).get_gui()
        >>> gui.color_edit_3("ink", (1.0, 0.5, 0.0))
        (1.0, 0.5, 0.0)
        """
        return tuple(
            [
                self.slider_float(f"{text} {part}", float(old), 0.0, 1.0)
                for part, old in zip("rgb", as_numbers(old_value, "old_value", 3), strict=True)
            ]
        )


def _colors(color: Any, each: Any, pairs: np.ndarray | None = None) -> np.ndarray:
    """One colour, or one a circle or line, as floats; an opacity beside them is left out, as in scenes."""
    if each is None:
        return as_numbers(color, "color")
    found = as_numbers(each, "per_vertex_color")
    count = 0 if pairs is None else int(pairs.max(initial=-1)) + 1
    if found.shape[-1:] not in ((3,), (4,)) or found.size // found.shape[-1] < count:
        wanted = "their vertices have shape (N, 3)" if pairs is None else f"{count} vertices have shape ({count}, 3)"
        raise ViewError(f"per_vertex_color has shape {found.shape}; colours of {wanted}")
    found = found.reshape(-1, found.shape[-1])[:, :3]
    return found if pairs is None else found[pairs[:, 0]]


def _corners(vertices: Any, indices: Any, count: int) -> np.ndarray:
    """Which vertices each line or triangle joins, shape (M, count). Raises `ViewError`."""
    points = as_positions(vertices, "vertices")
    found = np.arange(len(points)) if indices is None else as_numbers(indices, "indices").ravel().astype(np.int64)
    if found.size % count:
        raise ViewError(f"{found.size} {'vertices' if indices is None else 'indices'} are not a multiple of {count}")
    if found.size and (found.min() < 0 or found.max() >= len(points)):
        raise ViewError(f"indices go from {found.min()} to {found.max()}, and there are {len(points)} vertices")
    return found.reshape(-1, count)


def _every(field: np.ndarray, spacing: int) -> tuple[np.ndarray, np.ndarray]:
    """The centres of every `spacing`-th cell of a grid over the window, and its vectors there."""
    if spacing < 1:
        raise ViewError(f"arrow_spacing must be at least one cell, not {spacing}")
    columns, rows = field.shape[:2]
    i, j = np.meshgrid(np.arange(spacing // 2, columns, spacing), np.arange(spacing // 2, rows, spacing), indexing="ij")
    centers = np.stack([(i + 0.5) / columns, (j + 0.5) / rows], axis=-1).reshape(-1, 2)
    return centers, np.nan_to_num(field[i, j].astype(float), posinf=0.0, neginf=0.0).reshape(-1, 2)
