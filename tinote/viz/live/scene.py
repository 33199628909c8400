"""Scenes in space, moving live in a notebook: spheres, lines and meshes, lit, and turned with the pointer.

A page with a graphics card draws them by WebGL, and is sent the positions. Where its renderer is a software one, or
there are too many positions, they are drawn here by compiled kernels (`space/rasterise.py`), and the page is sent
pictures. The picture that stays, videos and saved files are always made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace as Namespace
from typing import Any, NamedTuple

import numpy as np
import traitlets

from tinote.viz.draw.arguments import checked
from tinote.viz.draw.arrays import ViewError, as_colors
from tinote.viz.draw.pen import DARK, css
from tinote.viz.draw.pictures import MakePicture, Picture, as_jpeg
from tinote.viz.live.arguments import Renews, angle, argument, one_of, sides
from tinote.viz.live.axed import LabelledSimulation, Range, ranges_of
from tinote.viz.live.simulation import CAPTURED
from tinote.viz.notebook.view import VIEW_SCRIPTS, Frame, static_source
from tinote.viz.pages.sources import Sources
from tinote.viz.space.box import BOX_INK, box_around, box_edges, described_box, drawn_box, paint_box
from tinote.viz.space.camera import CLOSEST, Eye, Vector, fitted
from tinote.viz.space.content import (
    GREY,
    Content,
    Item,
    Light,
    Triangles,
    as_lines,
    as_mesh,
    as_spheres,
    lit_by,
    wireframe,
)
from tinote.viz.space.parts import (
    SceneSender,
    arrays_of,
    facts_of,
    obstacle,
)
from tinote.viz.space.picking import Picked, pick
from tinote.viz.space.rasterise import Rasteriser, fineness

__all__ = ["Scene"]

#: The colours behind a scene, from the top to the bottom, on a light page and on a dark one.
LIGHT_SKY = ((0xEC, 0xEF, 0xF4), (0xFF, 0xFF, 0xFF))
DARK_SKY = ((0x22, 0x28, 0x31), (0x11, 0x14, 0x19))

STILL_SAMPLES = 3
"""Samples a pixel and direction of a picture that stays."""

UPWARDS: dict[str, Vector] = {"y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}

WAYS = ("auto", "page", "kernel")
"""Who draws: the page where it has a graphics card, always the page, or always the kernel."""


class Thing(NamedTuple):
    """What was added to a scene: `make` reads the arguments `given` anew for each frame. `is_wire`: the edges of the
    mesh that it makes are shown alone.
    """

    make: Callable[..., Item]
    given: dict[str, Any]
    name: str = ""
    is_wire: bool = False

    def item(self) -> Item:
        """As it is now. Raises `ViewError`."""
        found = self.make(**self.given)
        return wireframe(found) if self.is_wire and isinstance(found, Triangles) else found

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make it itself. Raises `ViewError` where it cannot."""
        made, item, given = self.make(**self.given), self.item(), self.given
        if isinstance(made, Triangles) and self.is_wire and made.transforms is not None:
            raise ViewError("a page draws the edges of one mesh, and not of its copies")
        shown = arrays_of(made)
        if self.is_wire or given.get("normals", made) is None:
            shown.pop("normals", None)  # The page makes them of the triangles.
        sources_of = {name: given[argument] for name, argument in made.ARGUMENTS.items()}
        each = given["per_vertex_color"]
        sources_of["colors"] = made.colors if each is None else each
        return {"item": facts_of(item), "name": self.name, **sources.of(sources_of, shown)}


class SceneLook(NamedTuple):
    """What pages have of a scene, which way is up, from which angles it is seen at first, and its axes."""

    sent: dict[str, Any]
    up: Vector
    angles: tuple[float, float]
    labels: list[str]
    grid: bool
    bounds: tuple[Range, ...] | None


class Scene(LabelledSimulation):
    """A live view of a scene in space, with play, pause, step, reset, a speed slider, Stop, and a plot.

    `particles`, `lines`, `mesh` and `mesh_instance` add things, which are read again after each frame; `ambient_light`
    and `point_light` light them, and `camera` places the camera, which by default sees everything. What is not finite
    is not drawn. A step that raises stops the view, which shows the error, as does a field that has taken a shape that
    cannot be drawn.

    A click picks what is under the pointer: the view says which particle, line or triangle it is, and `picked` holds
    it, a `Picked` or None; `view.observe(function, "picked")` calls a function when it changes. Where a mouse rests, a
    label says what is there, and nothing is picked.

    Parameters
    ----------
    step : callable, optional
        Advances the simulation by one step; it may launch kernels.
    up : {"z", "y"}
        The axis that points upwards.
    azimuth, elevation : float
        Where the camera stands at first, in degrees around that axis and above the plane across it.
    controls : {"orbit", "fly"}
        "orbit": the pointer turns the camera around what it looks at (with Shift or the right button it moves it, the
        wheel brings it nearer once the view has been clicked, a double click takes it back). "fly": the pointer looks
        around. The arrow keys do as the pointer does, and W, A, S, D, E and Q move the camera.
    axes : bool, optional
        Show a box with ticks; by default if there are bounds, a grid or a label.
    bounds : three pairs (low, high), optional
        The ends of the box along x, y and z; by default it is around what there is at first.
    x_label, y_label, z_label : str
        What the axes show, with the unit.
    grid : bool, default False
        Draw lines at the ticks, on the floor of the box.
    background : colour, optional
        By default what fits the page's theme.
    renderer : {"auto", "page", "kernel"}
        Whether the page draws by WebGL, or gets pictures.
    energy, plots, plot_label, plot_scale, dt, reset, steps_per_frame, label : various
        As for `ti.viz.Particles`.
    unattended_frames, runs_unseen, timeline, name : various
        As for `ti.viz.Particles`.
    size : int or (int, int), default (640, 480)
        Width and height in pixels.

    Methods
    -------
    ambient_light, camera, lines, mesh, mesh_instance, observe, particles, point_light

    Attributes
    ----------
    picked : Picked or None
        What was clicked last.

    Raises
    ------
    ViewError
        For arguments of other kinds.

    Examples
    --------
    >>> x = ti.Vector.field(3, ti.f32, shape=8)
    >>> view = ti.viz.Scene(up="y", size=320).particles(x, radius=0.3, color="#d94f5c")
    >>> view.snapshot("scene.png")
    >>> view
    <Scene: 1 thing in space>
    """

    PAGE_KIND = "scene"
    _esm = static_source(*VIEW_SCRIPTS, "draw/camera.js", "draw/box.js", "draw/space.js", "views/scene.js")
    _css = static_source("theme.css", "views/simulation.css", "kernel.css")

    step: Callable[[], object] | None = argument(default=None, kw_only=False, fixed=CAPTURED)
    up: str = argument(default="z", check=one_of(*UPWARDS))
    z_label: str = argument(default="")
    bounds: tuple[Range, ...] | None = argument(default=None)
    azimuth: float = argument(default=30.0, check=angle)
    elevation: float = argument(default=20.0, check=angle)
    controls: str = argument(default="orbit", check=one_of("orbit", "fly"), renews=Renews.NOTHING, sent=True)
    background: Any = argument(default=None, sent=True)
    renderer: str = argument(default="auto", check=one_of(*WAYS), renews=Renews.NOTHING, sent=True)
    size: Any = argument(default=(640, 480), check=sides)
    label: str = argument(default="live view of a scene in space", renews=Renews.NOTHING, sent=True)

    picked = traitlets.Any()
    """What was clicked last: which particle, line or triangle it is, and where, as `Picked`; None where nothing was."""

    def prepare(self) -> None:
        """Nothing is shown yet."""
        self._things: list[Thing] = []
        self._ambient: np.ndarray | None = None
        self._lights: list[Light] = []
        self._eye: Eye | None = None
        self._fitted: Eye | None = None  # The last one that was not placed by the user.
        self._eye_version = 0  # Goes up when the camera is moved from here, which the page then follows.
        self._captured: Content | None = None
        self._box: dict[str, Any] | None = None  # With axes, around what there was at first.
        self._is_stale = True  # What was captured last is not what the scene shows now.
        self._rasteriser, self._still, self._picker = Rasteriser(), Rasteriser(), Rasteriser()
        self._sender = SceneSender()
        self._moving = False
        self._drawing: set[str] = set()  # The copies of the view that draw scenes themselves.
        self._looks: dict[str, int] = {}  # The number of what each copy has said last of how it looks.
        self._dark = False
        self._page_scale = 1.0

    def arranged(self, given: Namespace) -> SceneLook:
        """What the arguments are in the picture."""
        paper = given.background
        background = "" if paper is None else css(as_colors(paper, name="background"))
        sent = {**self._sent_of_all(given, given.size), "background": background}
        angles = (given.azimuth, given.elevation)
        bounds = None if given.bounds is None else ranges_of("bounds", given.bounds, 3)
        labels = self._labels_of(given, wanted=bounds is not None)
        return SceneLook(sent, UPWARDS[given.up], angles, labels, given.grid, bounds)

    def wear(self, look: SceneLook) -> None:  # type: ignore[override]
        """Look like this; another angle moves the camera, and so does another size unless the user has placed it."""
        if self.is_made and (look[1:] != self.look[1:] or self._eye is self._fitted):
            self._eye = None
        self._box = None
        super().wear(look)

    def __repr__(self) -> str:
        failed = f", stopped: {type(self.exception).__name__}: {self.exception}" if self.exception is not None else ""
        return f"<Scene: {len(self._things)} {'thing' if len(self._things) == 1 else 'things'} in space{failed}>"

    # What is seen.

    @checked
    def particles(
        self, centers: Any, radius: Any, color: Any = GREY, per_vertex_color: Any = None, name: str = ""
    ) -> Scene:
        """Add spheres to the scene.

        Parameters
        ----------
        centers : Field or array, shape (N, 3)
            Where they are.
        radius : number, or Field or array, shape (N,)
            In the same units.
        color : colour
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the spheres.
        name : str
            What the view calls them where the pointer rests.

        Returns
        -------
        Scene
            The view.

        Raises
        ------
        ViewError
            For arguments of other shapes.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=8)
        >>> ti.viz.Scene(size=320).particles(x, radius=0.3, color="#d94f5c")
        <Scene: 1 thing in space>
        """
        given = {"centers": centers, "radius": radius, **_colors(color, per_vertex_color)}
        return self._add(Thing(as_spheres, given, name))

    @checked
    def lines(
        self,
        vertices: Any,
        width: float = 1.5,
        indices: Any = None,
        color: Any = GREY,
        per_vertex_color: Any = None,
        name: str = "",
    ) -> Scene:
        """Add lines to the scene.

        Parameters
        ----------
        vertices : Field or array, shape (N, 3)
            Their ends, in pairs, if there are no `indices`.
        width : float, default 1.5
            In pixels.
        indices : Field or array, shape (M, 2), optional
            The two vertices of each line.
        color : colour
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the vertices.
        name : str
            What the view calls them where the pointer rests.

        Returns
        -------
        Scene
            The view.

        Raises
        ------
        ViewError
            For arguments of other shapes, and numbers of vertices that there are not.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=8)
        >>> ti.viz.Scene(size=320).particles(x, radius=0.1).lines(x, indices=[[0, 1], [1, 2]])
        <Scene: 2 things in space>
        """
        given = {"vertices": vertices, "width": width, "indices": indices}
        return self._add(Thing(as_lines, {**given, **_colors(color, per_vertex_color)}, name))

    @checked
    def mesh(
        self,
        vertices: Any,
        indices: Any = None,
        normals: Any = None,
        color: Any = GREY,
        per_vertex_color: Any = None,
        two_sided: bool = False,
        show_wireframe: bool = False,
        name: str = "",
    ) -> Scene:
        """Add a mesh of triangles.

        Corners are counter-clockwise as seen from the front.

        Parameters
        ----------
        vertices : Field or array, shape (N, 3)
            The corners, in threes, if there are no `indices`.
        indices : Field or array, shape (T, 3), optional
            The three vertices of each triangle.
        normals : Field or array, shape (N, 3), optional
            By default those of the triangles around each vertex.
        color : colour
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the vertices.
        two_sided : bool, default False
            Let light reach the back as well.
        show_wireframe : bool, default False
            Draw the edges alone.
        name : str
            What the view calls it where the pointer rests.

        Returns
        -------
        Scene
            The view.

        Raises
        ------
        ViewError
            For arguments of other shapes, numbers of vertices that there are not, and no triangle at all.

        Examples
        --------
        >>> corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        >>> ti.viz.Scene(size=320).mesh(corners, two_sided=True)
        <Scene: 1 thing in space>
        """
        return self.mesh_instance(
            vertices, indices, normals, color, per_vertex_color, two_sided, None, show_wireframe, name
        )

    @checked
    def mesh_instance(
        self,
        vertices: Any,
        indices: Any = None,
        normals: Any = None,
        color: Any = GREY,
        per_vertex_color: Any = None,
        two_sided: bool = False,
        transforms: Any = None,
        show_wireframe: bool = False,
        name: str = "",
    ) -> Scene:
        """Add a mesh at several places.

        Parameters
        ----------
        vertices, indices, normals, color, per_vertex_color, two_sided, show_wireframe, name : various
            As for `mesh`.
        transforms : Field or array, shape (M, 4, 4)
            Matrices that act on column vectors (x, y, z, 1).

        Returns
        -------
        Scene
            The view.

        Raises
        ------
        ViewError
            As for `mesh`.

        Examples
        --------
        >>> import numpy as np
        >>> corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
        >>> places = np.stack([np.eye(4), np.eye(4)])
        >>> places[1, 0, 3] = 2.0  # The second one stands 2 to the right.
        >>> ti.viz.Scene(size=320).mesh_instance(corners, transforms=places)
        <Scene: 1 thing in space>
        """
        given = {"vertices": vertices, "indices": indices, "normals": normals}
        given |= {"two_sided": two_sided, "transforms": transforms, **_colors(color, per_vertex_color)}
        return self._add(Thing(as_mesh, given, name, show_wireframe))

    @checked
    def ambient_light(self, color: Any) -> Scene:
        """Light the scene from everywhere; the last one counts. A scene without any light gets some.

        Parameters
        ----------
        color : colour
            The colour of the light.

        Returns
        -------
        Scene
            The view.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=8)
        >>> view = ti.viz.Scene(size=320).particles(x, radius=0.3, color="white").ambient_light("#404040")
        >>> view.snapshot("dim.png")
        >>> ti.tools.imread("dim.png")[160, 160].tolist()
        [64, 64, 64]
        """
        self._ambient = as_colors(color) / 255.0
        return self._changed()

    @checked
    def point_light(self, pos: Sequence[float], color: Any) -> Scene:
        """Add a light, which does not fade with the distance; several add up.

        Parameters
        ----------
        pos : (float, float, float)
            Where it is, in the units of the scene.
        color : colour
            The colour of the light.

        Returns
        -------
        Scene
            The view.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=8)
        >>> view = ti.viz.Scene(size=320).particles(x, radius=0.3, color="white")
        >>> view.point_light((5.0, 5.0, 5.0), "lime").snapshot("lit.png")
        >>> ti.tools.imread("lit.png")[160, 160].tolist()
        [0, 254, 0]
        """
        self._lights.append(Light(_vector(pos, "pos"), _parts(as_colors(color) / 255.0)))
        return self._changed()

    @checked
    def camera(self, position: Sequence[float], lookat: Sequence[float] = (0.0, 0.0, 0.0), fov: float = 45.0) -> Scene:
        """Put the camera somewhere.

        Parameters
        ----------
        position : (float, float, float)
            Where it stands, in the units of the scene.
        lookat : (float, float, float), default the origin
            What it looks at.
        fov : float, default 45
            The angle in degrees from the lower to the upper edge of the picture.

        Returns
        -------
        Scene
            The view.

        Raises
        ------
        ViewError
            Where the two points are the same.

        Examples
        --------
        >>> x = ti.Vector.field(3, ti.f32, shape=8)
        >>> view = ti.viz.Scene(size=320, background="black").particles(x, radius=0.3, color="white")
        >>> covered = {}
        >>> for distance in 2.0, 5.0:
        ...     view.camera((0.0, 0.0, distance), fov=60.0).snapshot("seen.png")
        ...     covered[distance] = int((ti.tools.imread("seen.png") > 0).sum())
        >>> covered[2.0] > covered[5.0]
        True
        """
        if not 0.0 < fov < 180.0:
            raise ViewError(f"fov must be an angle between 0 and 180 degrees, not {fov}")
        self._eye = _standing(
            Eye((0.0, 0.0, 0.0), (0.0, 0.0, -1.0), self.look.up, float(fov)),
            _vector(position, "position"),
            _vector(lookat, "lookat"),
        )
        self._eye_version += 1
        return self._changed()

    def _add(self, thing: Thing) -> Scene:
        thing.item()  # What is wrong with it is said here, not in the frame.
        self._things.append(thing)
        return self._changed()

    def _changed(self) -> Scene:
        self._is_stale = True
        self._box = None
        self.refresh()
        return self

    def _content(self) -> Content:
        """What the fields hold now."""
        return Content(tuple(thing.item() for thing in self._shown_things()), lit_by(self._ambient, self._lights))

    def _shown_things(self) -> list[Thing]:
        """What was added, and the edges of the box."""
        if self._box is None:
            return self._things
        ends = box_edges(self._box, self.look.up.index(1.0), grid=self.look.grid)
        return [
            *self._things,
            Thing(as_lines, {"vertices": ends, "width": 1.0, "indices": None, **_colors(BOX_INK, None)}),
        ]

    # Frames.

    def capture(self) -> Frame:
        """The fields as they are now; for a page that draws itself as arrays, for another one as a picture."""
        self._is_stale = False
        if self._box is None and self.look.labels:
            bounds, labels = self.look.bounds, self.look.labels
            self._box = (
                box_around(self._content().points(), labels)
                if bounds is None
                else described_box(bounds, labels, edges=False)
            )
        self._captured = self._content()
        if self._eye is None:
            points, aspect = self._captured.points(), self.width / self.height
            azimuth, elevation = self.look.angles
            self._eye = self._fitted = fitted(points, azimuth, elevation, self.look.up, aspect)
            self._eye_version += 1
        return self._shown()

    def _shown(self) -> Frame:
        """What was captured last, as the page is to see it now; nothing where no page is."""
        content, eye = self._captured, self._eye
        assert content is not None and eye is not None
        message: dict[str, Any] = {"primitives": content.primitives(), "eyeVersion": self._eye_version}
        if self.picked is not None:
            message["picked"] = self.picked.words(self._added(content))
        if self._box is not None:
            message["box"] = self._box
        if not self.credits.connected:
            return Frame(message, [])
        if self._page_draws():
            reason = obstacle(content)
            if not reason:
                frame = self._sender.frame(content, eye)
                return Frame({**message, **frame.message}, frame.buffers)
            message["reason"] = f"drawn by the kernel: {reason}"
        size = (round(self.width * self._page_scale), round(self.height * self._page_scale))
        sky = self._sky(size[1], self._dark)
        picture = as_jpeg(self._rasteriser.draw(content, eye, size, sky, fineness(content, size)))
        return Frame({**message, "picture": "image/jpeg", "eye": eye._asdict()}, [picture])

    def page_look(self, sources: Sources) -> dict[str, Any]:
        """What a page needs to make such frames itself, and the picture that it shows where it cannot draw them."""
        self.capture()
        content, eye = self._captured, self._eye
        assert content is not None and eye is not None
        if reason := obstacle(content):
            raise ViewError(f"a page cannot draw the scene: {reason}")
        return {
            "things": [thing.page_look(sources) for thing in self._shown_things()],
            "added": len(self._things),
            **({} if self._box is None else {"box": self._box}),
            "lighting": content.lighting._asdict(),
            "eye": eye._asdict(),
            "still": self.painted().webp(),
        }

    def _page_draws(self) -> bool:
        return bool(self._drawing) and self._drawing >= self.credits.copies

    def renew_page(self) -> None:
        self._sender.forget()

    def again(self) -> Frame:
        self.renew_page()
        return self._once_more()

    def _once_more(self) -> Frame:
        """What was captured last, for a page that has been opened, or a camera that has moved: not what the fields
        hold now, which belongs to no step yet.
        """
        if self._is_stale or self.frames.last_frame is None:
            return self.frames.present()
        shown = self._shown()
        self.frames.last_frame = Frame({**shown.message, "step": self.frames.last_frame.message["step"]}, shown.buffers)
        return self.frames.with_kept(self.frames.last_frame, whole=True)

    def _pick(self, across: float, up: float) -> Frame:
        """Note what is at a place of the stage, and show what it is."""
        if self._captured is None or self._eye is None:
            return self.frames.present()
        self.picked = self._seen_at(across, up)
        return self._once_more()

    def _seen_at(self, across: float, up: float) -> Picked | None:
        """What was added and is at a place of the stage."""
        if self._captured is None or self._eye is None:
            return None
        size = (self.width, self.height)
        found = pick(self._picker, self._added(self._captured), self._eye, size, across, up)
        return None if found is None else found._replace(name=self._things[found.thing].name)

    def _added(self, content: Content) -> Content:
        """What of it was added: without the edges of the box."""
        return Content(content.items[: len(self._things)])

    def words_at(self, across: float, up: float) -> str:
        """What was added and is at a place of the stage."""
        found = self._seen_at(across, up)
        return "" if found is None or self._captured is None else found.words(self._added(self._captured))

    def _sky(self, rows: int, dark: bool) -> np.ndarray:
        """What is behind the scene, a colour for each row, shape (rows, 1, 3)."""
        if self.background is not None:
            return as_colors(self.background, name="background")
        top, bottom = (np.array(color, float) for color in (DARK_SKY if dark else LIGHT_SKY))
        down = np.linspace(0.0, 1.0, rows)[:, None]
        return ((1.0 - down) * top + down * bottom + 0.5).astype(np.uint8)[:, None]

    def painted(self, make: MakePicture = Picture) -> Picture:
        """The scene as a picture."""
        assert self._captured is not None and self._eye is not None
        view = make(self.width, self.height)
        rows, columns = view.pixels.shape[:2]
        content, sky = self._captured.enlarged(view.scale), self._sky(rows, view.theme is DARK)
        view.pixels[:] = self._still.draw(content, self._eye, (columns, rows), sky, STILL_SAMPLES)
        if self._box is not None:
            paint_box(view, drawn_box(self._box, self._eye, (self.width, self.height)))
        view.frame()
        return view

    # What the page says.

    def obey(self, message: dict[str, Any]) -> None:
        """The page has moved the camera, wants to draw, has changed its theme, or a button was pressed."""
        match message.get("kind"):
            case "camera":
                if self._eye is not None:
                    position, target = (tuple(map(float, message[name])) for name in ("position", "target"))
                    self._eye = _standing(self._eye, position, target)
                self._soon(self._moved)
            case "look" if self._is_news(str(message.get("view")), int(message.get("order", 0))):
                self._dark = bool(message.get("dark"))
                self._page_scale = min(max(float(message.get("scale", 1.0)), 1.0), 2.0)
                view = str(message.get("view"))
                drew = self._page_draws()
                (self._drawing.add if message.get("draws") else self._drawing.discard)(view)
                if self._page_draws() != drew:
                    self._sender.forget()
                self._soon(self._moved, even_when_drawn=True)
            case "look":
                pass
            case "pick":
                across, up = (float(part) for part in message["place"])
                self.playback.request(partial(self._pick, across, up))
            case _:
                super().obey(message)

    def _is_news(self, view: str, order: int) -> bool:
        """Whether nothing that this copy of the view said later of its looks has come before this, which is noted."""
        latest = self._looks.get(view, 0)
        self._looks[view] = max(latest, order)
        return order >= latest

    def _soon(self, job: Callable[[], Frame], even_when_drawn: bool = False) -> None:
        """Make a frame for what the page has said, unless one comes anyway."""
        if self.state == "playing" or not self.credits.connected or self._moving:
            return
        if even_when_drawn or not self._page_draws():
            self._moving = True
            self.playback.request(job)

    def _moved(self) -> Frame:
        self._moving = False
        return self._once_more()


def _colors(color: Any, each: Any) -> dict[str, Any]:
    return {"color": color, "per_vertex_color": each}


def _standing(eye: Eye, position: Any, target: Any) -> Eye:
    """A camera elsewhere, which sees from near to far."""
    distance = math.dist(position, target)
    if not (distance > 0 and math.isfinite(distance)):
        raise ViewError(f"the camera at {tuple(position)} looks at {tuple(target)}", hint="the two points must differ")
    return eye._replace(position=position, target=target, near=CLOSEST * distance, far=1e3 * distance)


def _vector(value: Any, name: str) -> Vector:
    found = np.asarray(value, float).ravel()
    if found.shape != (3,) or not np.isfinite(found).all():
        raise ViewError(f"{name} must be three finite numbers, not {value!r}")
    return _parts(found)


def _parts(array: np.ndarray) -> Vector:
    x, y, z = array.tolist()
    return x, y, z
