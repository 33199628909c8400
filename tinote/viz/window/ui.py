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

from tinote.viz.draw.arrays import ViewError, as_array, as_positions
from tinote.viz.draw.colormap import colored
from tinote.viz.window.controls import Box, Panel, PointerState
from tinote.viz.window.events import Event, KeyNames
from tinote.viz.window.gui import GUI, stretched
from tinote.viz.window.scene import Camera, ProjectionMode, Scene, make_camera

#: `ti.ui.ESCAPE`, `ti.ui.PRESS`, …
_KEYS = {name: value for name, value in vars(KeyNames).items() if name.isupper()}
globals().update(_KEYS)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "Camera", "Canvas", "Gui", "ProjectionMode", "Scene", "Window", "make_camera", *_KEYS,
]  # fmt: skip


class Window:
    """A window of `res` pixels, called `name`, that shows at most `fps_limit` frames a second, and never more than 60.
    `show_window=False` draws without showing, for recording with `save_image`.

    `vsync` and `pos` are accepted for programs that set them, and change nothing. `running` and the frames' rate are
    those of `ti.GUI`. Scenes in space are drawn by the page where it has a graphics card and hears of the running cell,
    else here; the environment variable `TINOTE_GUI_RENDERER` ("page" or "kernel") decides otherwise.
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
        """What is drawn into."""
        return self._canvas

    def get_gui(self) -> Gui:
        """Its sliders, buttons and texts."""
        return self._controls

    GUI = property(get_gui)

    def get_scene(self) -> Scene:
        """What is seen in space; `Canvas.scene` draws it."""
        return self._scene

    def show(self) -> None:
        """End the frame: display it, and begin the next one from the background."""
        self._gui.show()

    def destroy(self) -> None:
        """End `running`, and leave the last frame as a picture."""
        self._gui.close()

    def get_events(self, tag: Any = None) -> list[Event]:
        """The events since the last call, oldest first; with `tag`, those of this kind."""
        return list(self._gui.get_events(*(() if tag is None else (tag,))))

    def get_event(self, tag: Any = None) -> bool:
        """Whether there is a next event (of this kind); it is then in `event`."""
        return self._gui.get_event(*(() if tag is None else (tag,)))

    def is_pressed(self, *keys: str) -> bool:
        """Whether any of these keys or buttons is held down."""
        return self._gui.is_pressed(*keys)

    def get_cursor_pos(self) -> tuple[float, float]:
        """Where the pointer was last seen, in [0, 1] from the bottom left."""
        return self._gui.get_cursor_pos()

    def get_window_shape(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self._gui.res

    def get_image_buffer_as_numpy(self) -> np.ndarray:
        """What has been drawn in this frame; before anything is, the last one that was shown: (width, height, 4),
        float32.
        """
        return self._gui.get_image()

    def get_depth_buffer_as_numpy(self) -> np.ndarray:
        """How deep the scenes in space are that have been drawn in this frame; before that, in the last one: (width,
        height), float32, from 1 at the camera's near plane to 0 at the far one and where nothing is.
        """
        return self._gui.get_depth()

    def get_depth_buffer(self, depth: Any) -> None:
        """Write the same into `depth`, a field or array of the window's size. Raises `ViewError` for another one."""
        shape = tuple(getattr(depth, "shape", ()))
        if shape != self._gui.res:
            raise ViewError(f"depth has shape {shape}, and the window {self._gui.res}")
        if isinstance(depth, np.ndarray):
            depth[:] = self._gui.get_depth()
        else:
            depth.from_numpy(self._gui.get_depth())

    def save_image(self, filename: str | Path) -> None:
        """Write the frame that is being drawn to a file (.png, .jpg, …); the next one begins from the background."""
        self._gui.show(Path(filename))

    def __repr__(self) -> str:
        return f"<Window {self._gui.name!r}, {self._gui.res[0]} × {self._gui.res[1]}>"


class Canvas:
    """What a window shows: later calls lie over earlier ones. Got from `Window.get_canvas`."""

    def __init__(self, gui: GUI) -> None:
        self._gui = gui
        self._height = gui.res[1]

    def set_background_color(self, color: Any) -> None:
        """Paint the whole window; frames begin with this colour from now on."""
        self._gui.background_color = np.asarray(color, dtype=float)
        self._gui.clear()

    def set_image(self, img: Any) -> None:
        """Fill the window with an image, indexed `[x, y]` from the bottom left: grey or colours; floats in [0, 1] or
        unsigned integers. One of another size is stretched.
        """
        image = as_array(img)
        if image.ndim not in (2, 3) or 0 in image.shape:
            raise ViewError(f"an image has shape (width, height[, channels]), not {image.shape}")
        self._gui.set_image(stretched(image, self._gui.res))

    def circles(self, centers: Any, radius: float, color: Any = (0.5, 0.5, 0.5), per_vertex_color: Any = None) -> None:
        """Filled circles: `centers` (N, 2); `per_vertex_color` (N, 3) or one `color`."""
        self._gui.circles(centers, radius * self._height, _colors(color, per_vertex_color))

    def lines(
        self,
        vertices: Any,
        width: float,
        indices: Any = None,
        color: Any = (0.5, 0.5, 0.5),
        per_vertex_color: Any = None,
    ) -> None:
        """Lines between two points each: `vertices` (N, 2) in pairs, or `indices` (2 M, or (M, 2)) into them. A line
        has the colour of its first point.
        """
        pairs = _corners(vertices, indices, 2)
        colors = _colors(color, per_vertex_color, pairs)
        points = as_positions(vertices, "vertices")
        self._gui.lines(points[pairs[:, 0]], points[pairs[:, 1]], 0.5 * width * self._height, colors)

    def triangles(
        self, vertices: Any, color: Any = (0.5, 0.5, 0.5), indices: Any = None, per_vertex_color: Any = None
    ) -> None:
        """Filled triangles: `vertices` (N, 2) in threes, or `indices` (3 M) into them. A triangle has the mean colour
        of its corners.
        """
        corners = _corners(vertices, indices, 3)
        points = as_positions(vertices, "vertices")
        colors = np.asarray(color, dtype=float)
        if per_vertex_color is not None:
            colors = as_array(per_vertex_color).reshape(-1, 3)[corners].mean(axis=1)
        self._gui.triangles(points[corners[:, 0]], points[corners[:, 1]], points[corners[:, 2]], colors)

    def contour(self, scalar_field: Any, cmap_name: str = "plasma", normalize: bool = False) -> None:
        """A scalar field over the window in the colours of a map of matplotlib's."""
        self.set_image(colored(scalar_field, cmap_name, normalize))

    def vector_field(
        self,
        vector_field: Any,
        arrow_spacing: int = 5,
        scale: float = 0.1,
        width: float = 0.002,
        color: Any = (1.0, 1.0, 1.0),
    ) -> None:
        """A vector field (columns, rows, 2): an arrow at every `arrow_spacing`-th cell, `scale` times the vector."""
        field = as_array(vector_field)
        if field.ndim != 3 or field.shape[2] != 2:
            raise ViewError(f"a vector field over the window has shape (columns, rows, 2), not {field.shape}")
        centers, vectors = _every(field, arrow_spacing)
        self._gui.arrows(centers, scale * vectors, 0.5 * width * self._height, np.asarray(color, dtype=float))

    def scene(self, scene: Scene) -> None:
        """Draw a scene in space over what is there, and empty it for the next frame."""
        if not isinstance(scene, Scene):
            raise ViewError(f"{scene!r} is not a scene", hint="get one with window.get_scene()")
        self._gui.set_scene(*scene.take(self._gui.res[0] / self._gui.res[1]))


class Gui:
    """The controls of a window. Got from `Window.get_gui`. Each call draws one and gives what it says now."""

    def __init__(self, gui: GUI) -> None:
        self._gui = gui
        self._pointer: PointerState = gui.pointer
        self._panel: Panel | None = None
        self._begun_in = 0

    @contextmanager
    def sub_window(self, name: str, x: float, y: float, width: float, height: float) -> Iterator[Gui]:
        """A box of controls; place and size are shares of the window's, from the top left."""
        self.begin(name, x, y, width, height)
        try:
            yield self
        finally:
            self.end()

    def begin(self, name: str, x: float, y: float, width: float, height: float) -> None:
        """Begin a box of controls, as `sub_window`; `end` ends it."""
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
        """A line of text."""
        if color is None:
            self._open().text(str(text))
        else:
            red, green, blue = (int(255 * min(max(float(part), 0.0), 1.0)) for part in color)
            self._open().text(str(text), (red, green, blue))

    def slider_float(self, text: str, old_value: float, minimum: float, maximum: float) -> float:
        """A number from `minimum` to `maximum`."""
        return float(self._open().slider(text, old_value, minimum, maximum))

    def slider_int(self, text: str, old_value: int, minimum: int, maximum: int) -> int:
        """An integer from `minimum` to `maximum`."""
        return round(self._open().slider(text, old_value, minimum, maximum, 1))

    def checkbox(self, text: str, old_value: bool) -> bool:
        """A box to tick."""
        return self._open().checkbox(text, bool(old_value))

    def button(self, text: str) -> bool:
        """Whether the button was pressed since the frame before."""
        return self._open().button(text)

    def color_edit_3(self, text: str, old_value: Any) -> tuple[float, ...]:
        """A colour by three sliders from 0 to 1."""
        return tuple(
            [
                self.slider_float(f"{text} {part}", float(old), 0.0, 1.0)
                for part, old in zip("rgb", old_value, strict=True)
            ]
        )


def _colors(color: Any, each: Any, pairs: np.ndarray | None = None) -> np.ndarray:
    """One colour, or one a circle or line, as floats."""
    if each is None:
        return np.asarray(color, dtype=float)
    found = as_array(each).reshape(-1, 3).astype(float)
    return found if pairs is None else found[pairs[:, 0]]


def _corners(vertices: Any, indices: Any, count: int) -> np.ndarray:
    """Which vertices each line or triangle joins, shape (M, count). Raises `ViewError`."""
    points = as_positions(vertices, "vertices")
    found = np.arange(len(points)) if indices is None else as_array(indices).ravel().astype(np.int64)
    if found.size % count:
        raise ViewError(f"{found.size} {'vertices' if indices is None else 'indices'} are not a multiple of {count}")
    if found.size and (found.min() < 0 or found.max() >= len(points)):
        raise ViewError(f"indices go from {found.min()} to {found.max()}, and there are {len(points)} vertices")
    return found.reshape(-1, count)


def _every(field: np.ndarray, spacing: int) -> tuple[np.ndarray, np.ndarray]:
    """The centres of every `spacing`-th cell of a grid over the window, and its vectors there."""
    if spacing < 1:
        raise ViewError(f"arrow_spacing is {spacing}; it is a number of cells")
    columns, rows = field.shape[:2]
    i, j = np.meshgrid(np.arange(spacing // 2, columns, spacing), np.arange(spacing // 2, rows, spacing), indexing="ij")
    centers = np.stack([(i + 0.5) / columns, (j + 0.5) / rows], axis=-1).reshape(-1, 2)
    return centers, np.nan_to_num(field[i, j].astype(float), posinf=0.0, neginf=0.0).reshape(-1, 2)
