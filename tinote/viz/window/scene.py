"""`ti.ui.Scene` and `ti.ui.Camera`: spheres, lines and meshes in space, drawn again in each frame.

    window = ti.ui.Window("cloth", (800, 600))
    canvas, scene, camera = window.get_canvas(), window.get_scene(), ti.ui.Camera()
    while window.running:
        camera.track_user_inputs(window, movement_speed=0.03, hold_key=ti.ui.RMB)
        scene.set_camera(camera)
        scene.ambient_light((0.5, 0.5, 0.5))
        scene.point_light(pos=(0.5, 1.5, 1.5), color=(1, 1, 1))
        scene.mesh(vertices, indices=indices, per_vertex_color=colors, two_sided=True)
        canvas.scene(scene)
        window.show()

Positions and radii are in the units of the scene, widths of lines in pixels, colours triples in [0, 1].
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tinote.completion import Documented
from tinote.viz.draw.arguments import checked_methods
from tinote.viz.draw.arrays import ViewError, as_array, as_numbers
from tinote.viz.space.camera import Eye, axes, clip_matrix, fitted, view_matrix
from tinote.viz.space.content import (
    GREY,
    Content,
    Item,
    Light,
    as_lines,
    as_mesh,
    as_spheres,
    lit_by,
    wireframe,
)

__all__ = ["Camera", "ProjectionMode", "WindowScene", "make_camera"]

FRAMES_PER_SECOND = 60.0
"""Speeds of a camera are given for a frame of this many a second, whatever the loop's own pace is."""

STEEPEST = math.radians(89.0)
"""A camera that the pointer turns looks no more upwards or downwards than this."""


class UserInputs(Protocol):
    """What a camera asks a window for."""

    def is_pressed(self, *keys: str) -> bool: ...

    def get_cursor_pos(self) -> tuple[float, float]: ...


class ProjectionMode(enum.Enum):
    """How a camera maps depth: `Perspective` makes what is far smaller, `Orthogonal` does not."""

    Perspective = 0
    Orthogonal = 1


@checked_methods
class Camera(Documented):
    """A camera, which is given to `Scene.set_camera`.

    At first it stands at the origin and looks along z, with y upwards and a vertical field of view of 45 degrees; each
    method sets one of these.

    Methods
    -------
    bottom
    fov
    get_projection_matrix
    get_view_matrix
    left
    lookat
    position
    projection_mode
    right
    top
    track_user_inputs
    up
    z_far
    z_near

    Attributes
    ----------
    curr_lookat, curr_position, curr_up : numpy.ndarray

    Examples
    --------
    >>> camera = ti.ui.Camera()
    >>> camera.position(0.0, 1.0, 3.0)
    >>> camera.lookat(0.0, 0.0, 0.0)
    >>> camera.get_view_matrix().shape
    (4, 4)
    """

    def __init__(self) -> None:
        self.curr_position = np.zeros(3)
        self.curr_lookat = np.array([0.0, 0.0, 1.0])
        self.curr_up = np.array([0.0, 1.0, 0.0])
        self._mode = ProjectionMode.Perspective
        self._field_of_view = 45.0
        self._box = [-1.0, 1.0, -1.0, 1.0]
        self._near, self._far = 0.1, 1000.0
        self._moved_at: float | None = None
        self._pointer: tuple[float, float] | None = None

    def position(self, x: float, y: float, z: float) -> None:
        """Set where the camera stands.

        Parameters
        ----------
        x, y, z : float
            In the units of the scene.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.position(0.0, 0.0, 5.0)
        >>> camera.lookat(0.0, 0.0, 0.0)
        >>> ([0.0, 0.0, 0.0, 1.0] @ camera.get_view_matrix()).tolist()
        [0.0, 0.0, -5.0, 1.0]
        """
        self.curr_position = _vector(x, y, z)

    def lookat(self, x: float, y: float, z: float) -> None:
        """Set the point that is in the middle of the picture.

        Parameters
        ----------
        x, y, z : float
            In the units of the scene.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.position(0.0, 0.0, 0.0)
        >>> camera.lookat(2.0, 0.0, 0.0)
        >>> ([2.0, 0.0, 0.0, 1.0] @ camera.get_view_matrix()).round(6).tolist()
        [0.0, 0.0, -2.0, 1.0]
        """
        self.curr_lookat = _vector(x, y, z)

    def up(self, x: float, y: float, z: float) -> None:
        """Set the direction that points upwards in the picture.

        Parameters
        ----------
        x, y, z : float
            The direction, of any length.

        Raises
        ------
        ViewError
            For the direction (0, 0, 0).

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.position(0.0, -1.0, 0.0)
        >>> camera.lookat(0.0, 0.0, 0.0)
        >>> camera.up(0.0, 0.0, 1.0)
        >>> ([0.0, 0.0, 2.0, 1.0] @ camera.get_view_matrix()).round(6).tolist()
        [0.0, 2.0, -1.0, 1.0]
        """
        found = _vector(x, y, z)
        if not found.any():
            raise ViewError("up must be a direction, not (0, 0, 0)")
        self.curr_up = found

    def projection_mode(self, mode: ProjectionMode) -> None:
        """Set how the camera maps depth.

        Parameters
        ----------
        mode : ti.ui.ProjectionMode
            `Perspective` or `Orthogonal`.

        Raises
        ------
        ViewError
            For what is not a mode.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.projection_mode(ti.ui.ProjectionMode.Orthogonal)
        >>> camera.get_projection_matrix(1.0)[3, 3].item()
        1.0
        """
        if not isinstance(mode, ProjectionMode):
            raise ViewError(
                f"{mode!r} is not a projection mode", hint="there are ti.ui.ProjectionMode.Perspective and .Orthogonal"
            )
        self._mode = mode

    def fov(self, fov: float) -> None:
        """Set the angle from the lower to the upper edge of a perspective view.

        Parameters
        ----------
        fov : float
            In degrees, between 0 and 180.

        Raises
        ------
        ViewError
            For another angle.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.fov(90)
        >>> camera.get_projection_matrix(aspect=1.0)[1, 1].round(6).item()
        1.0
        """
        if not 0.0 < fov < 180.0:
            raise ViewError(f"fov must be an angle between 0 and 180 degrees, not {fov}")
        self._field_of_view = float(fov)

    def left(self, left: float) -> None:
        """Set the left edge of an orthogonal view.

        Parameters
        ----------
        left : float
            From its middle, in the units of the scene.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.projection_mode(ti.ui.ProjectionMode.Orthogonal)
        >>> camera.left(-2.0)
        >>> camera.right(2.0)
        >>> camera.get_projection_matrix(aspect=1.0)[0, 0].item()
        0.5
        """
        self._box[0] = float(left)

    def right(self, right: float) -> None:
        """Set the right edge of an orthogonal view.

        Parameters
        ----------
        right : float
            From its middle, in the units of the scene.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.projection_mode(ti.ui.ProjectionMode.Orthogonal)
        >>> camera.left(0.0)
        >>> camera.right(4.0)
        >>> camera.get_projection_matrix(aspect=1.0)[0, 0].item()
        0.5
        """
        self._box[1] = float(right)

    def bottom(self, bottom: float) -> None:
        """Set the lower edge of an orthogonal view.

        Parameters
        ----------
        bottom : float
            From its middle, in the units of the scene.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.projection_mode(ti.ui.ProjectionMode.Orthogonal)
        >>> camera.bottom(-2.0)
        >>> camera.top(2.0)
        >>> camera.get_projection_matrix(aspect=1.0)[1, 1].item()
        0.5
        """
        self._box[2] = float(bottom)

    def top(self, top: float) -> None:
        """Set the upper edge of an orthogonal view.

        Parameters
        ----------
        top : float
            From its middle, in the units of the scene.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.projection_mode(ti.ui.ProjectionMode.Orthogonal)
        >>> camera.bottom(0.0)
        >>> camera.top(4.0)
        >>> camera.get_projection_matrix(aspect=1.0)[1, 1].item()
        0.5
        """
        self._box[3] = float(top)

    def z_near(self, z_near: float) -> None:
        """Set the near plane: what is nearer to the camera is not seen.

        Parameters
        ----------
        z_near : float
            In the units of the scene.

        Raises
        ------
        ViewError
            For a plane that is not in front of the camera.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.z_near(0.5)
        >>> near = [0.0, 0.0, -0.5, 1.0] @ camera.get_projection_matrix(aspect=1.0)
        >>> round(float(near[2] / near[3]), 6)
        1.0
        """
        if not z_near > 0:
            raise ViewError(f"z_near must be positive, not {z_near}")
        self._near = float(z_near)

    def z_far(self, z_far: float) -> None:
        """Set the far plane: what is farther from the camera is not seen.

        Parameters
        ----------
        z_far : float
            In the units of the scene.

        Raises
        ------
        ViewError
            For a plane that is not in front of the camera.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.z_far(100.0)
        >>> far = [0.0, 0.0, -100.0, 1.0] @ camera.get_projection_matrix(aspect=1.0)
        >>> abs(float(far[2] / far[3])) < 1e-6
        True
        """
        if not z_far > 0:
            raise ViewError(f"z_far must be positive, not {z_far}")
        self._far = float(z_far)

    def get_view_matrix(self) -> np.ndarray:
        """The transformation from space to the camera's coordinates, for row vectors: `[x, y, z, 1] @ matrix`.

        Returns
        -------
        numpy.ndarray of float32, shape (4, 4)
            The matrix; x is to the right, y upwards, z towards the camera.
        """
        whole = np.eye(4)
        whole[:3] = view_matrix(self.eye())
        return whole.T.astype(np.float32)

    def get_projection_matrix(self, aspect: float) -> np.ndarray:
        """The projection from the camera's coordinates to clip space, for row vectors.

        Parameters
        ----------
        aspect : float
            The width of the picture, divided by its height.

        Returns
        -------
        numpy.ndarray of float32, shape (4, 4)
            The matrix; depth is 1 at the near plane and 0 at the far one.

        Examples
        --------
        >>> camera = ti.ui.Camera()
        >>> camera.fov(90)
        >>> camera.get_projection_matrix(aspect=2.0)[0, 0].round(6).item()
        0.5
        """
        return clip_matrix(self.eye(), aspect).T.astype(np.float32)

    def track_user_inputs(
        self,
        window: UserInputs,
        movement_speed: float = 1.0,
        yaw_speed: float = 2.0,
        pitch_speed: float = 2.0,
        hold_key: Any = None,
    ) -> None:
        """Fly through the scene; called once a frame.

        The keys W and S move forwards and backwards, A and D to the left and right, E and Q upwards and downwards. The
        pointer turns the camera.

        Parameters
        ----------
        window : ti.ui.Window
            The window with the keys and the pointer.
        movement_speed : float, default 1
            Units of the scene in a sixtieth of a second.
        yaw_speed, pitch_speed : float, default 2
            Half-turns for the window's width and height.
        hold_key : str, optional
            Turn only while this key or button is held.

        Examples
        --------
        >>> window = ti.ui.Window("fly", (64, 64), show_window=False)
        >>> camera = ti.ui.Camera()
        >>> for _ in range(2):
        ...     camera.track_user_inputs(window, movement_speed=0.03, hold_key=ti.ui.RMB)
        >>> camera.curr_position.tolist()  # No key is pressed.
        [0.0, 0.0, 0.0]
        """
        now = time.perf_counter()
        frames = 0.0 if self._moved_at is None else (now - self._moved_at) * FRAMES_PER_SECOND
        self._moved_at = now
        right, _, towards = axes(self.eye())
        upwards = self.curr_up / np.linalg.norm(self.curr_up)
        steps = {"w": -towards, "s": towards, "d": right, "a": -right, "e": upwards, "q": -upwards}
        moved = sum((step for key, step in steps.items() if window.is_pressed(key)), np.zeros(3))
        self.curr_position = self.curr_position + movement_speed * frames * moved
        self.curr_lookat = self.curr_lookat + movement_speed * frames * moved
        if hold_key is not None and not window.is_pressed(hold_key):
            self._pointer = None
            return
        here = window.get_cursor_pos()
        before, self._pointer = self._pointer or here, here
        self._turn(
            -(here[0] - before[0]) * yaw_speed * math.pi / 2.0, (here[1] - before[1]) * pitch_speed * math.pi / 2.0
        )

    def _turn(self, yaw: float, pitch: float) -> None:
        """Look to the left and upwards by these angles, standing still."""
        forwards = self.curr_lookat - self.curr_position
        distance = np.linalg.norm(forwards)
        upwards = self.curr_up / np.linalg.norm(self.curr_up)
        above = math.asin(min(max(float(forwards @ upwards / distance), -1.0), 1.0))
        flat = forwards - (forwards @ upwards) * upwards
        if not np.linalg.norm(flat) > 1e-9 * distance:
            return  # Along the axis there is no side to turn to.
        flat = flat / np.linalg.norm(flat)
        flat = math.cos(yaw) * flat + math.sin(yaw) * np.cross(upwards, flat)
        above = min(max(above + pitch, -STEEPEST), STEEPEST)
        self.curr_lookat = self.curr_position + distance * (math.cos(above) * flat + math.sin(above) * upwards)

    def eye(self) -> Eye:
        """The camera as it is now."""
        position, target, up = (tuple(part.tolist()) for part in (self.curr_position, self.curr_lookat, self.curr_up))
        left, right, bottom, top = self._box
        if not (left < right and bottom < top):
            raise ViewError(f"the orthogonal view goes from {left} to {right} and from {bottom} to {top}")
        if not self._near < self._far:
            raise ViewError(f"z_near is {self._near}, and z_far {self._far}")
        box = None if self._mode is ProjectionMode.Perspective else (left, right, bottom, top)
        return Eye(position, target, up, self._field_of_view, box, self._near, self._far)


def make_camera() -> Camera:
    """A new camera at the origin that looks along z.

    Returns
    -------
    Camera
        The camera.

    Examples
    --------
    >>> camera = ti.ui.make_camera()
    >>> camera.position(0.0, 0.0, 3.0)
    >>> camera.curr_position.tolist()
    [0.0, 0.0, 3.0]
    """
    return Camera()


@checked_methods
class WindowScene(Documented):
    """What is seen in space in one frame; drawn, and emptied, by `Canvas.scene`.

    Fields, ndarrays and NumPy arrays are accepted alike. What is not finite is not drawn.

    Methods
    -------
    ambient_light
    lines
    mesh
    mesh_instance
    particles
    point_light
    set_camera

    Raises
    ------
    ViewError
        From its methods, for arguments of wrong shapes and for numbers of vertices that there are not.

    Examples
    --------
    >>> window = ti.ui.Window("spheres", (64, 64), show_window=False)
    >>> scene = window.get_scene()
    >>> x = ti.Vector.field(3, ti.f32, shape=4)
    >>> scene.particles(x, radius=0.2)
    >>> scene.ambient_light((1, 1, 1))
    >>> window.get_canvas().scene(scene)
    >>> window.get_image_buffer_as_numpy().shape
    (64, 64, 4)
    """

    def __init__(self) -> None:
        self._camera: Camera | None = None
        self._items: list[Item] = []
        self._ambient: np.ndarray | None = None
        self._lights: list[Light] = []

    def set_camera(self, camera: Camera) -> None:
        """Set the camera, which stays for the frames that follow; without one, everything is seen.

        Parameters
        ----------
        camera : Camera
            The camera.

        Raises
        ------
        ViewError
            For what is not a camera.

        Examples
        --------
        >>> window = ti.ui.Window("scene", (64, 64), show_window=False)
        >>> camera = ti.ui.Camera()
        >>> camera.position(0.0, 0.0, 3.0)
        >>> camera.lookat(0.0, 0.0, 0.0)
        >>> scene = window.get_scene()
        >>> scene.set_camera(camera)
        >>> scene.particles([[0.0, 0.0, 0.0]], radius=0.5, color=(1, 1, 1))
        >>> window.get_canvas().scene(scene)
        >>> picture = window.get_image_buffer_as_numpy()
        >>> [bool(picture[x, 32, 0] > 0) for x in (16, 32, 48)]
        [False, True, False]
        """
        if not isinstance(camera, Camera):
            raise ViewError(f"set_camera({camera!r}): that is not a camera", hint="make one with ti.ui.Camera()")
        self._camera = camera

    def ambient_light(self, color: Sequence[float]) -> None:
        """Light the scene from everywhere; the last one counts. A scene without any light gets some.

        Parameters
        ----------
        color : (float, float, float)
            Red, green and blue, in [0, 1].

        Examples
        --------
        >>> window = ti.ui.Window("scene", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.particles([[0.0, 0.0, 0.0]], radius=1.0, color=(1, 1, 1))
        >>> scene.ambient_light((0.0, 1.0, 0.0))
        >>> window.get_canvas().scene(scene)
        >>> window.get_image_buffer_as_numpy()[32, 32].tolist()
        [0.0, 1.0, 0.0, 1.0]
        """
        self._ambient = _color(color)

    def point_light(self, pos: Sequence[float], color: Sequence[float]) -> None:
        """Add a light, which does not fade with the distance; several add up.

        Parameters
        ----------
        pos : (float, float, float)
            Where it is.
        color : (float, float, float)
            Red, green and blue, in [0, 1].

        Examples
        --------
        >>> window = ti.ui.Window("scene", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.particles([[0.0, 0.0, 0.0]], radius=1.0, color=(1, 1, 1))
        >>> scene.point_light(pos=(0.0, 0.0, 9.0), color=(1.0, 0.0, 0.0))
        >>> window.get_canvas().scene(scene)
        >>> window.get_image_buffer_as_numpy()[32, 32, 1:3].tolist()
        [0.0, 0.0]
        """
        self._lights.append(Light(_position(pos), tuple(_color(color).tolist())))

    def particles(
        self,
        centers: Any,
        radius: float,
        color: Any = GREY,
        per_vertex_color: Any = None,
        per_vertex_radius: Any = None,
        index_offset: int = 0,
        index_count: int | None = None,
    ) -> None:
        """Add spheres to the frame.

        Parameters
        ----------
        centers : Field or array, shape (N, 3)
            Where they are.
        radius : float
            In the same units.
        color : (float, float, float)
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colour of each.
        per_vertex_radius : Field or array, shape (N,), optional
            The radius of each.
        index_offset, index_count : int, optional
            Which of them are drawn.

        Examples
        --------
        >>> window = ti.ui.Window("scene", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.particles([[0.0, 0.0, 0.0]], radius=1.0, color=(0, 0, 1))
        >>> window.get_canvas().scene(scene)
        >>> bool(window.get_image_buffer_as_numpy()[32, 32, 2] > 0)
        True
        """
        shown = _part(index_offset, index_count)
        radii = radius if per_vertex_radius is None else as_array(per_vertex_radius).ravel()
        found = as_spheres(centers, radii, *_colors(color, per_vertex_color))
        self._items.append(
            found._replace(
                points=found.points[shown],
                radii=found.radii if len(found.radii) == 1 else found.radii[shown],
                colors=found.colors if len(found.colors) == 1 else found.colors[shown],
            )
        )

    def lines(
        self,
        vertices: Any,
        width: float,
        indices: Any = None,
        color: Any = GREY,
        per_vertex_color: Any = None,
        vertex_offset: int = 0,
        vertex_count: int | None = None,
        index_offset: int = 0,
        index_count: int | None = None,
    ) -> None:
        """Add lines to the frame.

        Parameters
        ----------
        vertices : Field or array, shape (N, 3)
            Their ends, in pairs, if there are no `indices`.
        width : float
            In pixels.
        indices : Field or array, shape (2 M,) or (M, 2), optional
            The two vertices of each line.
        color : (float, float, float)
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the vertices.
        vertex_offset, vertex_count, index_offset, index_count : int, optional
            Which part of the vertices and of the indices is used.

        Examples
        --------
        >>> window = ti.ui.Window("scene", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.lines([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], width=4.0, color=(0, 0, 1))
        >>> window.get_canvas().scene(scene)
        >>> bool(window.get_image_buffer_as_numpy()[..., 2].any())
        True
        """
        vertices, each = _chosen(vertices, per_vertex_color, vertex_offset, vertex_count)
        chosen = _indices(indices, len(vertices), index_offset, index_count)
        self._items.append(as_lines(vertices, width, chosen, *_colors(color, each)))

    def mesh(
        self,
        vertices: Any,
        indices: Any = None,
        normals: Any = None,
        color: Any = GREY,
        per_vertex_color: Any = None,
        two_sided: bool = False,
        vertex_offset: int = 0,
        vertex_count: int | None = None,
        index_offset: int = 0,
        index_count: int | None = None,
        show_wireframe: bool = False,
    ) -> None:
        """Add a mesh of triangles to the frame.

        Corners are counter-clockwise as seen from the front.

        Parameters
        ----------
        vertices : Field or array, shape (N, 3)
            The corners, in threes, if there are no `indices`.
        indices : Field or array, shape (3 T,) or (T, 3), optional
            The three vertices of each triangle.
        normals : Field or array, shape (N, 3), optional
            By default those of the triangles around each vertex.
        color : (float, float, float)
            The colour of all.
        per_vertex_color : Field or array, shape (N, 3), optional
            The colours of the vertices.
        two_sided : bool, default False
            Let light reach the back as well.
        vertex_offset, vertex_count, index_offset, index_count : int, optional
            Which part of the vertices and of the indices is used.
        show_wireframe : bool, default False
            Draw the edges alone.

        Examples
        --------
        >>> window = ti.ui.Window("scene", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.mesh([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.0]], color=(0, 0, 1), two_sided=True)
        >>> window.get_canvas().scene(scene)
        >>> bool(window.get_image_buffer_as_numpy()[32, 32, 2] > 0)
        True
        """
        self.mesh_instance(
            vertices, indices, normals, color, per_vertex_color, two_sided, None, 0, None, vertex_offset, vertex_count,
            index_offset, index_count, show_wireframe,
        )  # fmt: skip

    def mesh_instance(
        self,
        vertices: Any,
        indices: Any = None,
        normals: Any = None,
        color: Any = GREY,
        per_vertex_color: Any = None,
        two_sided: bool = False,
        transforms: Any = None,
        instance_offset: int = 0,
        instance_count: int | None = None,
        vertex_offset: int = 0,
        vertex_count: int | None = None,
        index_offset: int = 0,
        index_count: int | None = None,
        show_wireframe: bool = False,
    ) -> None:
        """Add a mesh at several places to the frame.

        Parameters
        ----------
        vertices : Field or array, shape (N, 3)
            As for `mesh`.
        indices : Field or array, shape (3 T,) or (T, 3), optional
            As for `mesh`.
        normals, per_vertex_color : Field or array, shape (N, 3), optional
            As for `mesh`.
        color : (float, float, float)
            As for `mesh`.
        two_sided, show_wireframe : bool, default False
            As for `mesh`.
        transforms : Field or array, shape (M, 4, 4)
            Matrices that act on column vectors.
        instance_offset, instance_count : int, optional
            Which of the matrices are used.
        vertex_offset, vertex_count, index_offset, index_count : int, optional
            Which part of the vertices and of the indices is used.

        Raises
        ------
        ViewError
            For transforms of another shape.

        Examples
        --------
        >>> import numpy as np
        >>> places = np.stack([np.eye(4), np.eye(4)])
        >>> places[1, 0, 3] = 3.0
        >>> window = ti.ui.Window("two triangles", (64, 64), show_window=False)
        >>> scene = window.get_scene()
        >>> scene.mesh_instance([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.0]], transforms=places)
        >>> window.get_canvas().scene(scene)
        >>> picture = window.get_image_buffer_as_numpy()
        >>> [bool(picture[x, 32, 0] > 0) for x in (16, 32, 48)]  # Both triangles, and the gap between them.
        [True, False, True]
        """
        if transforms is not None:
            places = as_numbers(transforms, "transforms")
            if not places.size or places.shape[-2:] != (4, 4):
                raise ViewError(f"transforms have shape {places.shape}; matrices of instances have shape (M, 4, 4)")
            transforms = places.reshape(-1, 4, 4)[_part(instance_offset, instance_count)]
        vertices, each = _chosen(vertices, per_vertex_color, vertex_offset, vertex_count)
        if normals is not None:
            normals = np.atleast_1d(as_array(normals))[_part(vertex_offset, vertex_count)]
        chosen = _indices(indices, len(vertices), index_offset, index_count)
        mesh = as_mesh(vertices, chosen, normals, *_colors(color, each), two_sided, transforms)
        self._items.append(wireframe(mesh) if show_wireframe else mesh)

    def take(self, aspect: float) -> tuple[Content, Eye]:
        """What has been added since the last call, in the light that has been set for it, and the camera, for a picture
        whose width is `aspect` times its height. The scene is empty afterwards.
        """
        content = Content(tuple(self._items), lit_by(self._ambient, self._lights))
        self._items, self._lights, self._ambient = [], [], None
        if self._camera is not None:
            return content, self._camera.eye()
        return content, fitted(content.points(), 30.0, 20.0, (0.0, 1.0, 0.0), aspect)


def _vector(x: Any, y: Any, z: Any) -> np.ndarray:
    found = as_numbers([x, y, z], "a vector in space", 3)
    if not np.isfinite(found).all():
        raise ViewError(f"({x}, {y}, {z}) is not finite")
    return found


def _position(value: Any) -> tuple[float, float, float]:
    x, y, z = as_numbers(value, "a position in space", 3).tolist()
    return x, y, z


def _color(value: Any) -> np.ndarray:
    return as_numbers(value, "the colour of a light", 3)


def _colors(color: Any, each: Any) -> tuple[Any, Any]:
    """One colour as floats, and those of the vertices, if they have their own."""
    return as_numbers(color, "color"), each


def _part(offset: int, count: int | None) -> slice:
    if offset < 0 or (count is not None and count < -1):
        raise ViewError(f"a part that begins at {offset} and has {count} elements")
    return slice(offset, None if count is None or count == -1 else offset + count)


def _chosen(vertices: Any, each: Any, offset: int, count: int | None) -> tuple[np.ndarray, Any]:
    """A part of vertices, and of their colours."""
    array = as_array(vertices)
    if not array.size or not array.ndim:
        raise ViewError(f"vertices have shape {array.shape}; points in space have shape (N, 3)")
    array = array.reshape(-1, array.shape[-1])
    if (offset, count) == (0, None):
        return array, each
    if each is not None:
        colors = as_array(each)
        each = colors.reshape(-1, colors.shape[-1])[_part(offset, count)]
    return array[_part(offset, count)], each


def _indices(indices: Any, vertices: int, offset: int, count: int | None) -> np.ndarray | None:
    """A part of the indices; of each vertex in turn, where there are none."""
    if indices is None:
        return None if (offset, count) == (0, None) else np.arange(vertices)[_part(offset, count)]
    return as_array(indices).ravel()[_part(offset, count)]
