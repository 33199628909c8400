"""Trees of triangles and of points, by `ti.geometry` and by libraries: built, refitted, and asked, on one thread.

The surface is a ball with waves, its triangles in an order that says nothing of places. A run is one build, or all
questions.
"""

# Without `from __future__ import annotations`: kernels look their annotations up in the module.

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contract import Subject, relative_deviation

__all__ = ["create"]

Numbers = NDArray[Any]


def surface(n: int) -> tuple[Numbers, Numbers]:
    """A ball with waves of about n triangles, by two angles."""
    rows = int((n / 4) ** 0.5)
    columns = 2 * rows
    theta, phi = np.meshgrid(np.linspace(0.01, np.pi - 0.01, rows + 1), 2 * np.pi * np.arange(columns) / columns)
    radius = 1 + 0.2 * np.sin(8 * np.cos(theta))
    x = radius[..., None] * np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1)
    i, j = np.divmod(np.arange(columns * rows), rows)
    place = [((i + k) % columns) * (rows + 1) + j + m for k, m in ((0, 0), (0, 1), (1, 1), (1, 0))]
    triangles = np.concatenate([np.stack([place[k] for k in corner], -1) for corner in ((0, 1, 2), (0, 2, 3))])
    return x.reshape(-1, 3), np.random.default_rng(0).permutation(triangles)


class Questions(Subject):
    """One kind of work: what it does to `n` triangles or points, and its answers."""

    def __init__(self, work: str, n: int) -> None:
        rng = np.random.default_rng(1)
        self.work, self.n = work, n
        self.x, self.triangles = surface(n)
        if work.startswith("points"):
            self.x = rng.normal(size=(n, 3))
        self.at = rng.uniform(-1.2, 1.2, (n, 3))
        self.origins = 3 * self.at / np.linalg.norm(self.at, axis=1, keepdims=True)
        self.directions = rng.uniform(-1, 1, (n, 3)) - self.origins

    def answers(self) -> Numbers:
        """Distances, or where rays meet the surface and 9 where they pass by; of the tree that was built last."""
        raise NotImplementedError

    def expected(self) -> Numbers:
        """The answers of another library."""
        if self.work.startswith("points"):
            return np.asarray(SciPy(self.work, self.n).answers())
        return np.asarray(Igl("rays" if self.work.startswith("rays") else "nearest", self.n).answers())

    def deviation(self) -> float:
        found, expected = self.answers(), self.expected()
        same = (found == 9) == (expected == 9)  # all but rays that graze the surface
        return relative_deviation(found[same], expected[same]) if same.mean() > 0.999 else float("inf")


class Kit(Questions):
    """`ti.geometry`."""

    def __init__(self, work: str, n: int) -> None:
        import tinote as ti

        super().__init__(work, n)
        ti.init(arch=ti.cpu, cpu_max_num_threads=1)

        def vectors(values: Numbers, dtype: Any) -> Any:
            field = ti.Vector.field(3, dtype, shape=len(values))
            field.from_numpy(values.astype(np.int32 if dtype == ti.i32 else np.float32))
            return field

        x, at, origins, directions = (vectors(one, ti.f32) for one in (self.x, self.at, self.origins, self.directions))
        found = self._found = ti.field(ti.f32, shape=n)
        if work.startswith("points"):
            tree = ti.geometry.PointTree(x)
        else:
            tree = ti.geometry.TriangleTree(x, vectors(self.triangles, ti.i32))

        @ti.kernel
        def nearest():
            for i in at:
                distance, _i = tree.nearest(at[i])
                found[i] = distance

        @ti.kernel
        def nearest_on_surface():
            for i in at:
                distance, _triangle, _weights = tree.nearest(at[i])
                found[i] = distance

        @ti.kernel
        def rays():
            for i in at:
                t, _triangle, _weights = tree.first_hit(origins[i], directions[i], 9.0)
                found[i] = t

        self._ask = nearest if work.startswith("points") else rays if work.startswith("rays") else nearest_on_surface
        tree.update()
        ways = {"build": tree.update, "refit": tree.refit}
        self._run = ti.capture(ways[work.split()[-1]]) if work.split()[-1] in ways else self._ask

    def run(self, count: int) -> None:
        for _ in range(count):
            self._run()

    def answers(self) -> Numbers:
        self._run()
        self._ask()
        return np.asarray(self._found.to_numpy())


class Igl(Questions):
    """libigl: nearest points of a surface, by one thread."""

    def __init__(self, work: str, n: int) -> None:
        os.environ["IGL_NUM_THREADS"] = "1"
        super().__init__(work, n)
        self._indices = self.triangles.astype(np.int64)
        self._build()

    def _build(self) -> None:
        import igl

        self._tree = igl.AABB()
        self._tree.init(self.x, self._indices)

    def run(self, count: int) -> None:
        for _ in range(count):
            if self.work.endswith("build"):
                self._build()
            else:
                self._tree.squared_distance(self.x, self._indices, self.at)

    def answers(self) -> Numbers:
        if self.work.startswith("rays"):
            return Embree(self.work, self.n).answers()
        return np.sqrt(self._tree.squared_distance(self.x, self._indices, self.at)[0])


class Embree(Questions):
    """Embree, by embreex: rays."""

    def __init__(self, work: str, n: int) -> None:
        super().__init__(work, n)
        self._corners = self.x[self.triangles].astype(np.float32)
        self._given = [one.astype(np.float32) for one in (self.origins, self.directions)]
        self._build()

    def _build(self) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        self._scene = EmbreeScene()
        TriangleMesh(self._scene, self._corners)
        self._scene.run(*[one[:1] for one in self._given])  # the first question builds the tree

    def run(self, count: int) -> None:
        for _ in range(count):
            if self.work in ("rays build", "rays refit"):
                self._build()
            else:
                self._scene.run(*self._given, query="DISTANCE")

    def answers(self) -> Numbers:
        return np.minimum(np.asarray(self._scene.run(*self._given, query="DISTANCE"), float), 9)


class SciPy(Questions):
    """`scipy.spatial.cKDTree`: nearest points of a cloud."""

    def __init__(self, work: str, n: int) -> None:
        super().__init__(work, n)
        self._build()

    def _build(self) -> None:
        from scipy.spatial import cKDTree

        self._tree = cKDTree(self.x)

    def run(self, count: int) -> None:
        for _ in range(count):
            if self.work.endswith("build"):
                self._build()
            else:
                self._tree.query(self.at)

    def answers(self) -> Numbers:
        return np.asarray(self._tree.query(self.at)[0])


CREATORS: dict[str | None, type[Questions]] = {"tinote": Kit, "igl": Igl, "embreex": Embree, None: SciPy}


def create(package: str | None, work: str, n: int) -> Questions:
    """Return the questions."""
    return CREATORS[package](work, n)
