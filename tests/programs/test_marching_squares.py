"""Marching squares: the contour of metaballs as line segments, appended with an atomic counter and drawn."""

import numpy as np

import tinote as ti

#: Which two edges each segment of the 16 cases joins; edges 0 to 3 are bottom, right, top and left. Saddles have two.
CASES = [[], [[3, 0]], [[0, 1]], [[3, 1]], [[1, 2]], [[3, 0], [1, 2]], [[0, 2]], [[3, 2]],
         [[2, 3]], [[2, 0]], [[0, 1], [2, 3]], [[2, 1]], [[1, 3]], [[1, 0]], [[0, 3]], []]  # fmt: skip
CORNERS = ((0, 0), (1, 0), (1, 1), (0, 1))

Segment = ti.types.struct(a=ti.math.vec2, b=ti.math.vec2, case=ti.u8)


@ti.data_oriented
class Contour:
    """Contours of a field of `n` by `n` corners over the unit square."""

    def __init__(self, n: int, most: int) -> None:
        self.n = n
        self.values = ti.field(ti.f32)
        ti.root.dense(ti.ij, (n, n)).place(self.values)
        self.segments = Segment.field(shape=most)
        self.count = ti.field(ti.i32, shape=())
        # A row for each case: how many segments, and their edges.
        self.table = ti.Matrix.field(2, 2, ti.i8, shape=16)
        self.lengths = ti.field(ti.i8, shape=16)
        for k, case in enumerate(CASES):
            self.lengths[k] = len(case)
            for row, (first, second) in enumerate(case):
                self.table[k][row, 0] = first
                self.table[k][row, 1] = second

    @ti.kernel
    def splat(self, balls: ti.types.ndarray(dtype=ti.math.vec3, ndim=1)):
        """Each ball is its centre and radius."""
        for i, j in self.values:
            p = ti.Vector([i, j]) / (self.n - 1)
            total = 0.0
            for k in range(balls.shape[0]):
                total += balls[k].z ** 2 / ((p - balls[k].xy).norm_sqr() + 1e-4)
            self.values[i, j] = total

    @ti.func
    def on_edge(self, cell, edge, level):
        """Where the level is crossed on an edge of a cell, by linear interpolation."""
        offsets = ti.Matrix([[0, 0], [1, 0], [1, 1], [0, 1]])
        following = (edge + 1) & 3
        a = cell + ti.Vector([offsets[edge, 0], offsets[edge, 1]])
        b = cell + ti.Vector([offsets[following, 0], offsets[following, 1]])
        va, vb = self.values[a], self.values[b]
        return (a + (level - va) / (vb - va) * (b - a)) / (self.n - 1)

    @ti.kernel
    def march(self, level: ti.f32) -> ti.i32:
        self.count[None] = 0
        for i, j in ti.ndrange(self.n - 1, self.n - 1):
            case = ti.u8(0)
            for k, (di, dj) in ti.static(enumerate(CORNERS)):
                if self.values[i + di, j + dj] > level:
                    case |= ti.u8(1 << k)
            for s in range(self.lengths[case]):
                slot = ti.atomic_add(self.count[None], 1)
                cell, edges = ti.Vector([i, j]), self.table[case]
                if slot < self.segments.shape[0]:
                    self.segments[slot] = Segment(
                        a=self.on_edge(cell, edges[s, 0], level), b=self.on_edge(cell, edges[s, 1], level), case=case
                    )
        return self.count[None]


def reference(values: np.ndarray, level: float) -> list[tuple[int, list[float]]]:
    """The case and the two ends of every segment, cell by cell."""
    n = len(values)
    found = []
    for i in range(n - 1):
        for j in range(n - 1):
            corners = [np.array([i + di, j + dj]) for di, dj in CORNERS]
            v = [values[tuple(c)] for c in corners]
            case = sum(1 << k for k in range(4) if v[k] > level)
            for edges in CASES[case]:
                ends = []
                for e in edges:
                    f = (e + 1) % 4
                    t = (level - v[e]) / (v[f] - v[e])
                    ends += list((corners[e] + t * (corners[f] - corners[e])) / (n - 1))
                found.append((case, ends))
    return found


def test_marching_squares() -> None:
    n, level = 40, 1.0
    contour = Contour(n, most=500)
    balls = ti.Vector.ndarray(3, ti.f32, shape=3)
    gui = ti.GUI("Metaballs", res=(120, 120), show_gui=False)
    lengths = []
    for moment in (0.0, 0.6):
        centres = np.array([[0.3, 0.3 + 0.2 * moment, 0.12], [0.65, 0.4, 0.1], [0.5, 0.75, 0.15]], np.float32)
        balls.from_numpy(centres)
        contour.splat(balls)
        count = contour.march(level)
        xy = np.stack(np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij"), -1)
        away = ((xy[:, :, None] - centres[:, :2].astype(float)) ** 2).sum(-1)
        values = (centres[:, 2].astype(float) ** 2 / (away + 1e-4)).sum(-1)
        np.testing.assert_allclose(contour.values.to_numpy(), values, rtol=1e-4)

        expected = sorted(reference(contour.values.to_numpy().astype(float), level))
        a, b = contour.segments.a.to_numpy()[:count], contour.segments.b.to_numpy()[:count]
        ends = np.concatenate([a, b], 1)
        # Slots are taken in any order: by case and place they can be compared.
        order = sorted(range(count), key=lambda k: (contour.segments[k].case, *ends[k].tolist()))
        assert [contour.segments[k].case for k in order] == [case for case, _ in expected]
        np.testing.assert_allclose(ends[order], [e for _, e in expected], atol=1e-5)
        lengths.append(np.linalg.norm(a - b, axis=1).sum())

        gui.clear(0x112F41)
        gui.lines(begin=a, end=b, radius=1, color=0xEEEEF0)
        drawn = gui.get_image()[..., :3]
        gui.show()
        assert 0.01 < (drawn.mean(-1) > 0.5).mean() < 0.2
    assert lengths[0] != lengths[1]
