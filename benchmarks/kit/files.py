"""What goes to files, and random numbers: by the kit, and by the libraries that one would take."""

# Without `from __future__ import annotations`: kernels look their annotations up in the module.

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]


def cube(n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The corners of n³ cubes, and six tetrahedra in each of them."""
    corners = np.stack(np.meshgrid(*[np.arange(n + 1.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    at = np.arange((n + 1) ** 3).reshape(n + 1, n + 1, n + 1)[:-1, :-1, :-1].ravel()[:, None]
    steps = [np.eye(3, dtype=int)[list(order)] for order in np.ndindex(3, 3, 3) if len(set(order)) == 3]
    strides = np.array([(n + 1) ** 2, n + 1, 1])
    found = [at + np.concatenate([[0], np.cumsum(one @ strides)]) for one in steps]
    return corners, np.concatenate(found)


class Files(Subject):
    """A run writes a file, over that of the run before."""

    def __init__(self, n: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="benchmarks-")
        self.file = Path(self._folder.name) / "of_a_run"
        self.values = np.random.default_rng(0).random((n + 1) ** 3)

    def write(self) -> None:
        """Write it."""
        raise NotImplementedError

    def read(self) -> NDArray[Any]:
        """What it holds."""
        raise NotImplementedError

    def run(self, count: int) -> None:
        for _ in range(count):
            self.write()

    def deviation(self) -> float:
        self.write()
        return relative_deviation(self.read(), self.values)


class Mesh(Files):
    """A mesh with a number for each of its corners, as ParaView reads it."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.file = self.file.with_suffix(".vtu")
        self.corners, self.cells = cube(n)

    def read(self) -> NDArray[Any]:
        import tinote as ti

        return ti.io.read(self.file).point_data["heat"].to_numpy()


class MeshOfKit(Mesh):
    """By `ti.io`."""

    def __init__(self, n: int) -> None:
        import tinote as ti

        super().__init__(n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        mesh = ti.io.Mesh(self.corners, self.cells, kind="tetra")
        self._mesh, self._heat = mesh, ti.field(ti.f64, shape=len(self.corners))
        self._heat.from_numpy(self.values)
        self._write = ti.io.write

    def write(self) -> None:
        self._write(self.file, self._mesh, heat=self._heat)


class MeshOfMeshio(Mesh):
    """By meshio, without compression."""

    def __init__(self, n: int) -> None:
        import meshio

        super().__init__(n)
        self._mesh = meshio.Mesh(self.corners, [("tetra", self.cells)], point_data={"heat": self.values})

    def write(self) -> None:
        self._mesh.write(self.file, compression=None)

    def read(self) -> NDArray[Any]:
        import meshio

        return meshio.read(self.file).point_data["heat"]


class State(Files):
    """Numbers by their name."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.file = self.file.with_suffix(".npz")

    def write(self) -> None:
        np.savez(self.file, x=self.values)

    def read(self) -> NDArray[Any]:
        return np.load(self.file)["x"]


class StateOfKit(State):
    """By `ti.save`, which says what made them, and leaves a whole state whenever it ends."""

    def __init__(self, n: int) -> None:
        import tinote as ti

        super().__init__(n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        self._x = ti.field(ti.f64, shape=self.values.shape)
        self._x.from_numpy(self.values)
        self._save, self._load = ti.save, ti.load

    def write(self) -> None:
        self._save(self.file, x=self._x)

    def read(self) -> NDArray[Any]:
        self._x.fill(0)
        self._load(self.file, x=self._x)
        return self._x.to_numpy()


class Normal(Subject):
    """Normal numbers in single precision, by NumPy."""

    def __init__(self, n: int) -> None:
        self._n, self._generator = n**3, np.random.default_rng(0)

    def draw(self) -> NDArray[Any]:
        """All of them."""
        return self._generator.standard_normal(self._n, np.float32)

    def run(self, count: int) -> None:
        for _ in range(count):
            self.draw()

    def deviation(self) -> float:
        """How far the first four moments are from those of the distribution, in hundreds of their errors."""
        x = self.draw().astype(float)
        moments = np.array([x.mean(), (x**2).mean() - 1, (x**3).mean(), (x**4).mean() - 3])
        errors = np.sqrt(np.array([1, 2, 15, 96]) / len(x))
        return float(np.abs(moments / errors).max()) / 5 * 1e-5


class NormalOfKit(Normal):
    """The same by `ti.sampling`, to a field."""

    def __init__(self, n: int) -> None:
        import tinote as ti

        super().__init__(n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)
        self._x = ti.field(ti.f32, shape=self._n)
        x = self._x

        @ti.kernel
        def fill(step: ti.i32):
            for i in x:
                x[i] = ti.sampling.stream(7, i, step).normal()

        self._fill, self._step = fill, 0

    def draw(self) -> NDArray[Any]:
        self._step += 1
        self._fill(self._step)
        return self._x.to_numpy()

    def run(self, count: int) -> None:
        for _ in range(count):
            self._step += 1
            self._fill(self._step)


WAYS = {
    "mesh": (MeshOfKit, MeshOfMeshio),
    "state": (StateOfKit, State),
    "normal": (NormalOfKit, Normal),
}


def create(package: str | None, what: str, n: int) -> Subject:
    """Return a way to do it: the kit's for the package tinote."""
    ours, other = WAYS[what]
    return (ours if package == "tinote" else other)(n)
