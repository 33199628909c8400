"""`PLYWriter`: points and meshes in the PLY format (G. Turk, "The PLY polygon file format", 1994), text or binary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tinote.viz.draw.arrays import ViewError, as_array

_TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "float": "f4",
    "double": "f8",
}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
#: NumPy's codes of `ti.f32` and "f32".
_CODES = {f"{kind}{8 * size}": f"{kind}{size}" for kind in "fiu" for size in (1, 2, 4, 8) if kind != "f" or size > 1}
_CORNERS = {"tri": 3, "quad": 4}


class PLYWriter:
    """Collects vertices and faces with any number of channels each, and writes them to a PLY file.

    Anything that has `to_numpy()` or that NumPy understands may be added; it is read row by row.

    Parameters
    ----------
    num_vertices : int
        The number of vertices.
    num_faces : int, default 0
        The number of faces.
    face_type : {"tri", "quad"}
        Whether a face has three or four corners.
    comment : str
        A line of the file's header.

    Raises
    ------
    ViewError
        For channels with too many or too few numbers.

    Examples
    --------
    >>> import numpy as np
    >>> writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
    >>> x, y, z = np.eye(3)
    >>> writer.add_vertex_pos(x, y, z)
    >>> writer.add_faces(np.array([0, 1, 2]))
    >>> writer.export_ascii("triangle.ply")
    >>> from pathlib import Path
    >>> Path("triangle.ply").read_text().splitlines()[-4:]
    ['1.0 0.0 0.0', '0.0 1.0 0.0', '0.0 0.0 1.0', '3 0 1 2']
    """

    def __init__(
        self, num_vertices: int, num_faces: int = 0, face_type: str = "tri", comment: str = "by tinote"
    ) -> None:
        if num_vertices < 1 or num_faces < 0:
            raise ViewError(f"a PLY file of {num_vertices} vertices and {num_faces} faces")
        if face_type not in _CORNERS:
            raise ViewError(f"faces are 'tri' or 'quad', not {face_type!r}")
        self.num_vertices = num_vertices
        self.num_faces = num_faces
        self._comment = comment
        self._corners = _CORNERS[face_type]
        self._vertices: list[tuple[str, str, np.ndarray]] = []
        self._faces: list[tuple[str, str, np.ndarray]] = []
        self._indices: np.ndarray | None = None

    # Vertices.

    def add_vertex_channel(self, key: str, data_type: str, data: Any) -> None:
        """Add a number for each vertex.

        Parameters
        ----------
        key : str
            The name of the channel.
        data_type : str
            How it is stored: "float", "int", "uchar", …, or as NumPy calls it: "float32", "int32", "uint8", …
        data : array_like, num_vertices numbers
            The numbers.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_channel("heat", "float", [20.0, 21.0])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '21.0'
        """
        self._vertices.append((key, _type_named(data_type), _column(key, data, self.num_vertices)))

    def _add_vertex_channels(self, keys: str, *columns: Any) -> None:
        for key, column in zip(keys.split(), columns, strict=True):
            self.add_vertex_channel(key, "float", column)

    def add_vertex_pos(self, x: Any, y: Any, z: Any) -> None:
        """Add the positions of the vertices.

        Parameters
        ----------
        x, y, z : array_like, num_vertices numbers each
            The coordinates.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_pos([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '1.0 0.0 0.0'
        """
        self._add_vertex_channels("x y z", x, y, z)

    def add_vertex_normal(self, nx: Any, ny: Any, nz: Any) -> None:
        """Add the unit normal of the surface at each vertex.

        Parameters
        ----------
        nx, ny, nz : array_like, num_vertices numbers each
            The components.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_normal([0.0, 0.0], [0.0, 0.0], [1.0, 1.0])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '0.0 0.0 1.0'
        """
        self._add_vertex_channels("nx ny nz", nx, ny, nz)

    def add_vertex_color(self, r: Any, g: Any, b: Any) -> None:
        """Add a colour for each vertex.

        Parameters
        ----------
        r, g, b : array_like, num_vertices numbers each
            Red, green and blue, in [0, 1].

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_color([1.0, 0.0], [0.0, 1.0], [0.0, 0.0])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '0.0 1.0 0.0'
        """
        self._add_vertex_channels("red green blue", r, g, b)

    def add_vertex_alpha(self, alpha: Any) -> None:
        """Add an opacity for each vertex.

        Parameters
        ----------
        alpha : array_like, num_vertices numbers
            In [0, 1].

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_alpha([1.0, 0.5])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '0.5'
        """
        self._add_vertex_channels("Alpha", alpha)

    def add_vertex_rgba(self, r: Any, g: Any, b: Any, a: Any) -> None:
        """Add a colour and an opacity for each vertex.

        Parameters
        ----------
        r, g, b, a : array_like, num_vertices numbers each
            Red, green, blue and opacity, in [0, 1].

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_rgba([1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.5])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '0.0 1.0 0.0 0.5'
        """
        self._add_vertex_channels("red green blue Alpha", r, g, b, a)

    def add_vertex_vel(self, vx: Any, vy: Any, vz: Any) -> None:
        """Add a velocity for each vertex.

        Parameters
        ----------
        vx, vy, vz : array_like, num_vertices numbers each
            The components.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_vel([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '1.0 0.0 0.0'
        """
        self._add_vertex_channels("vx vy vz", vx, vy, vz)

    def add_vertex_id(self) -> None:
        """Number the vertices from 0."""
        self.add_vertex_channel("id", "int", np.arange(self.num_vertices))

    def add_vertex_piece(self, piece: Any) -> None:
        """Say which piece each vertex belongs to.

        Parameters
        ----------
        piece : array_like of int, num_vertices numbers
            The pieces.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_piece([0, 1])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_text().splitlines()[-1]
        '1'
        """
        self.add_vertex_channel("piece", "int", piece)

    # Faces.

    def add_faces(self, indices: Any) -> None:
        """Add the corners of the faces.

        Parameters
        ----------
        indices : array_like of int, 3 or 4 for each face
            The numbers of the vertices.

        Raises
        ------
        ViewError
            For too many or too few numbers, and for vertices that there are not.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
        >>> writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0, 0, 0])
        >>> writer.add_faces([0, 1, 2])
        >>> writer.export_ascii("triangle.ply")
        >>> Path("triangle.ply").read_text().splitlines()[-1]
        '3 0 1 2'
        """
        found = as_array(indices).ravel()
        if found.size != self.num_faces * self._corners or found.dtype.kind not in "iu":
            raise ViewError(f"{self.num_faces} faces have {self.num_faces * self._corners} corners, not {found.size}")
        if found.size and (found.min() < 0 or found.max() >= self.num_vertices):
            raise ViewError(f"corners from {found.min()} to {found.max()}, and there are {self.num_vertices} vertices")
        self._indices = found.reshape(-1, self._corners)

    def add_face_channel(self, key: str, data_type: str, data: Any) -> None:
        """Add a number for each face.

        Parameters
        ----------
        key : str
            The name of the channel.
        data_type : str
            How it is stored: "float", "int", "uchar", …, or as NumPy calls it: "float32", "int32", "uint8", …
        data : array_like, num_faces numbers
            The numbers.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
        >>> writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0, 0, 0])
        >>> writer.add_faces([0, 1, 2])
        >>> writer.add_face_channel("heat", "float", [20.0])
        >>> writer.export_ascii("triangle.ply")
        >>> Path("triangle.ply").read_text().splitlines()[-1]
        '3 0 1 2 20.0'
        """
        self._faces.append((key, _type_named(data_type), _column(key, data, self.num_faces)))

    def add_face_id(self) -> None:
        """Number the faces from 0."""
        self.add_face_channel("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece: Any) -> None:
        """Say which piece each face belongs to.

        Parameters
        ----------
        piece : array_like of int, num_faces numbers
            The pieces.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=3, num_faces=1)
        >>> writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0, 0, 0])
        >>> writer.add_faces([0, 1, 2])
        >>> writer.add_face_piece([7])
        >>> writer.export_ascii("triangle.ply")
        >>> Path("triangle.ply").read_text().splitlines()[-1]
        '3 0 1 2 7'
        """
        self.add_face_channel("piece", "int", piece)

    # Files.

    def export(self, path: str | Path) -> None:
        """Write a binary file; missing folders are made.

        Parameters
        ----------
        path : path
            The file.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_pos([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> writer.export("points.ply")
        >>> Path("points.ply").read_bytes().splitlines()[1]
        b'format binary_little_endian 1.0'
        """
        vertices, faces = self._tables()
        self._write(path, "binary_little_endian", vertices.tobytes() + faces.tobytes())

    def export_ascii(self, path: str | Path) -> None:
        """Write a text file; missing folders are made.

        Parameters
        ----------
        path : path
            The file.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_pos([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> writer.export_ascii("points.ply")
        >>> Path("points.ply").read_bytes().splitlines()[1]
        b'format ascii 1.0'
        """
        lines = [" ".join([str(v) for v in _flat(row)]) for table in self._tables() for row in table]
        self._write(path, "ascii", "".join([f"{line}\n" for line in lines]).encode())

    def export_frame(self, series_num: int, path: str | Path) -> None:
        """Write a binary file of a series, such as `path_000012.ply`.

        Parameters
        ----------
        series_num : int
            The number in the series.
        path : path
            The file without number and ending.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_pos([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> writer.export_frame(12, "points")
        >>> Path("points_000012.ply").read_bytes().splitlines()[1]
        b'format binary_little_endian 1.0'
        """
        self.export(_numbered(path, series_num))

    def export_frame_ascii(self, series_num: int, path: str | Path) -> None:
        """Write a text file of a series.

        Parameters
        ----------
        series_num : int
            The number in the series.
        path : path
            The file without number and ending.

        Examples
        --------
        >>> from pathlib import Path
        >>> writer = ti.tools.PLYWriter(num_vertices=2)
        >>> writer.add_vertex_pos([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])
        >>> writer.export_frame_ascii(12, "points")
        >>> Path("points_000012.ply").read_bytes().splitlines()[1]
        b'format ascii 1.0'
        """
        self.export_ascii(_numbered(path, series_num))

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._vertices:
            raise ViewError("vertices without positions", hint="call add_vertex_pos(x, y, z)")
        if self.num_faces and self._indices is None:
            raise ViewError(f"{self.num_faces} faces without corners", hint="call add_faces(indices)")
        vertices = np.empty(self.num_vertices, [(key, f"<{_TYPES[t]}") for key, t, _ in self._vertices])
        for key, _, column in self._vertices:
            vertices[key] = column
        kinds: list[Any] = [("count", "u1"), ("corners", "<i4", (self._corners,))]
        faces = np.empty(self.num_faces, kinds + [(key, f"<{_TYPES[t]}") for key, t, _ in self._faces])
        faces["count"] = self._corners
        if self._indices is not None:
            faces["corners"] = self._indices
        for key, _, column in self._faces:
            faces[key] = column
        return vertices, faces

    def _write(self, path: str | Path, form: str, body: bytes) -> None:
        head = ["ply", f"format {form} 1.0", f"comment {self._comment}", f"element vertex {self.num_vertices}"]
        head += [f"property {t} {key}" for key, t, _ in self._vertices]
        if self.num_faces:
            head += [f"element face {self.num_faces}", "property list uchar int vertex_indices"]
            head += [f"property {t} {key}" for key, t, _ in self._faces]
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes("\n".join([*head, "end_header\n"]).encode() + body)


def _type_named(data_type: Any) -> str:
    """The format's name of a type, which NumPy's names may stand for."""
    if data_type in _TYPES:
        return data_type
    try:
        return _NAMES[np.dtype(_CODES.get(str(data_type), data_type))]
    except (TypeError, KeyError):
        raise ViewError(f"a PLY file has no type {data_type!r}", hint=f"there are {', '.join(_TYPES)}") from None


def _column(key: str, data: Any, count: int) -> np.ndarray:
    found = as_array(data).ravel()
    if found.size != count:
        raise ViewError(f"'{key}' has {found.size} numbers instead of {count}")
    return found


def _flat(row: Any) -> list[Any]:
    return [part for value in row for part in np.ravel(value)]


def _numbered(path: str | Path, number: int) -> str:
    return f"{str(path).removesuffix('.ply')}_{number:06d}.ply"
