"""Programs of the kinds that people write with sparse fields, from their ideas, against dense ones and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti
from benchmarks.sparse.material import Material


def _material_points(sparse: bool) -> tuple[float, Any, Any, int]:
    """A block of elastic material falls: the material point method (MLS-MPM) on a grid whose cells begin at zero each
    step. The loss is where it is at the end, its gradient that of the initial velocity.
    """
    ti.init(default_fp=ti.f64)
    n, count, dt, steps = 32, 64, 2e-3, 6
    dx, mass, volume, young = 1.0 / n, 1.0, (0.5 / n) ** 2, 200.0
    x = ti.Vector.field(2, ti.f64, shape=(steps + 1, count), needs_grad=True)
    v = ti.Vector.field(2, ti.f64, shape=(steps + 1, count), needs_grad=True)
    c = ti.Matrix.field(2, 2, ti.f64, shape=(steps + 1, count))
    f = ti.Matrix.field(2, 2, ti.f64, shape=(steps + 1, count))
    grid_v, grid_m = ti.Vector.field(2, ti.f64), ti.field(ti.f64)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    level = ti.root.pointer(ti.ij, n // 4).dense(ti.ij, 4) if sparse else ti.root.dense(ti.ij, (n, n))
    level.place(grid_v, grid_m)
    block: Any = level.parent()

    @ti.kernel
    def clear() -> None:
        for index in ti.grouped(grid_m):
            grid_v[index] = ti.zero(grid_v[index])
            grid_m[index] = 0.0

    @ti.kernel
    def deactivate() -> None:
        for index in ti.grouped(block):
            ti.deactivate(block, index)

    @ti.kernel
    def to_grid(t: ti.i32) -> None:
        for p in range(count):
            base = ti.cast(x[t, p] * n - 0.5, ti.i32)
            fx = x[t, p] * n - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            deformed = (ti.Matrix.identity(ti.f64, 2) + dt * c[t, p]) @ f[t, p]
            f[t + 1, p] = deformed
            strain = 0.5 * (deformed + deformed.transpose()) - ti.Matrix.identity(ti.f64, 2)
            affine = -dt * volume * 4 * n * n * young * strain + mass * c[t, p]
            for i, j in ti.static(ti.ndrange(3, 3)):
                offset = ti.Vector([i, j])
                weight = w[i][0] * w[j][1]
                distance = (offset - fx) * dx
                grid_v[base + offset] += weight * (mass * v[t, p] + affine @ distance)
                grid_m[base + offset] += weight * mass

    @ti.kernel
    def on_grid() -> None:
        for i, j in grid_m:
            if grid_m[i, j] > 0:
                velocity = grid_v[i, j] / grid_m[i, j]
                velocity[1] -= dt * 9.8
                if j < 3 and velocity[1] < 0:
                    velocity[1] = 0.0
                grid_v[i, j] = velocity

    @ti.kernel
    def from_grid(t: ti.i32) -> None:
        for p in range(count):
            base = ti.cast(x[t, p] * n - 0.5, ti.i32)
            fx = x[t, p] * n - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
            velocity = ti.Vector([0.0, 0.0])
            around = ti.Matrix.zero(ti.f64, 2, 2)
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i][0] * w[j][1]
                held = grid_v[base + ti.Vector([i, j])]
                velocity += weight * held
                around += 4 * n * weight * held.outer_product(ti.Vector([i, j]) - fx)
            v[t + 1, p] = velocity
            c[t + 1, p] = around
            x[t + 1, p] = x[t, p] + dt * velocity

    @ti.kernel
    def measure() -> None:
        for p in range(count):
            loss[None] += x[steps, p].norm_sqr() / count

    given = np.zeros((steps + 1, count, 2))
    given[0] = 0.3 + 0.2 * np.random.default_rng(0).random((count, 2))
    x.from_numpy(given)
    f.from_numpy(np.broadcast_to(np.eye(2), (steps + 1, count, 2, 2)))
    with ti.ad.Tape(loss):
        for t in range(steps):
            if sparse:
                deactivate()
            else:
                clear()
            to_grid(t)
            on_grid()
            from_grid(t)
        measure()
    active = len(grid_m.to_sparse()[0]) if sparse else n * n
    return loss[None], x.to_numpy(), [x.grad.to_numpy()[0], v.grad.to_numpy()[0]], active


def test_material_points_and_their_gradient() -> None:
    loss, x, gradients, cells = _material_points(sparse=False)
    found, where, others, active = _material_points(sparse=True)
    assert found == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(where, x, rtol=1e-12)
    for one, other in zip(gradients, others, strict=True):
        assert np.abs(one).max() > 1e-5
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-13)
    assert 0 < active < cells / 4


@pytest.mark.parametrize(("dims", "n"), [(2, 32), (3, 16)])
def test_poisson_by_conjugate_gradients_with_several_grids(dims: int, n: int) -> None:
    """A ball in which ∇²x = b is solved by conjugate gradients; the preconditioner smooths in the ball and on a grid of
    half the resolution. Both are sparse: cells outside of the ball are not active, and 0 there is the boundary.
    """
    ti.init(default_fp=ti.f64)
    axes = ti.ij if dims == 2 else ti.ijk
    x, b, r, z, p, ap = (ti.field(ti.f64) for _ in range(6))
    ti.root.pointer(axes, n // 4).bitmasked(axes, 4).place(x, b, r, z, p, ap)
    coarse_z, coarse_r = ti.field(ti.f64), ti.field(ti.f64)
    ti.root.pointer(axes, n // 8).dense(axes, 4).place(coarse_z, coarse_r)
    units = [ti.Vector.unit(dims, axis, ti.i32) for axis in range(dims)]

    @ti.func
    def around(a: ti.template(), i: ti.template()) -> float:  # pyright: ignore[reportInvalidTypeForm]
        s = 0.0
        for d in ti.static(range(dims)):
            s += a[i - units[d]] + a[i + units[d]]
        return s

    @ti.kernel
    def begin() -> None:
        for i in ti.grouped(ti.ndrange(*[(1, n - 1)] * dims)):
            if (i - n / 2).norm_sqr() < (n / 2 - 3) ** 2:
                b[i] = ti.sin(0.3 * i[0]) * ti.cos(0.2 * i[1]) + 0.1
                r[i] = b[i]

    @ti.kernel
    def multiply() -> ti.f64:
        s = 0.0
        for i in ti.grouped(p):
            ap[i] = 2 * dims * p[i] - around(p, i)
            s += p[i] * ap[i]
        return s

    @ti.kernel
    def smooth() -> None:
        for color in ti.static((0, 1, 0)):
            for i in ti.grouped(z):
                if i.sum() % 2 == color:
                    z[i] = (r[i] + around(z, i)) / (2 * dims)

    @ti.kernel
    def restrict() -> None:
        for i in ti.grouped(z):
            coarse_z[i // 2] = 0.0
            coarse_r[i // 2] = 0.0
        for i in ti.grouped(z):
            coarse_r[i // 2] += (r[i] - 2 * dims * z[i] + around(z, i)) * 2.0 ** (1 - dims)
        for _ in range(8):
            for i in ti.grouped(coarse_z):
                if i.min() > 0 and i.max() < n // 2 - 1:
                    coarse_z[i] = (coarse_r[i] + around(coarse_z, i)) / (2 * dims)

    @ti.kernel
    def prolongate() -> None:
        for i in ti.grouped(z):
            z[i] += coarse_z[i // 2]

    @ti.kernel
    def product() -> ti.f64:
        s = 0.0
        for i in ti.grouped(z):
            s += z[i] * r[i]
        return s

    @ti.kernel
    def update(alpha: ti.f64) -> ti.f64:
        s = 0.0
        for i in ti.grouped(p):
            x[i] += alpha * p[i]
            r[i] -= alpha * ap[i]
            s += r[i] * r[i]
        return s

    @ti.kernel
    def turn(beta: ti.f64) -> None:
        for i in ti.grouped(z):
            p[i] = z[i] + beta * p[i]

    def precondition(coarse: bool) -> None:
        z.fill(0)
        smooth()
        if coarse:
            restrict()
            prolongate()
            smooth()

    def solve(coarse: bool) -> int:
        x.fill(0)
        p.fill(0)
        begin()
        precondition(coarse)
        old, beta = product(), 0.0
        for iteration in range(1, 200):
            turn(beta)
            if update(old / multiply()) < 1e-20:
                return iteration
            precondition(coarse)
            new = product()
            old, beta = new, new / old
        raise AssertionError("it does not converge")

    plain, with_coarse = solve(coarse=False), solve(coarse=True)
    found, right = x.to_numpy(), b.to_numpy()
    inside = right != 0
    neighbours = sum(np.roll(found, shift, axis) for axis in range(dims) for shift in (1, -1))
    np.testing.assert_allclose((2 * dims * found - neighbours)[inside], right[inside], atol=1e-8)
    assert not found[~inside].any()
    assert with_coarse < plain < 100
    assert len(x.to_sparse()[0]) == inside.sum()


def test_marching_squares_into_a_list() -> None:
    """The level set of a function, as segments in a list; their length is the circumference of the circle."""
    ti.init(default_fp=ti.f64)
    n = 64
    segments: Any = ti.Struct.field({"a": ti.math.vec2, "b": ti.math.vec2})
    ti.root.dynamic(ti.i, 4 * n, chunk_size=32).place(segments)

    @ti.func
    def height(i: int, j: int) -> float:
        return (ti.Vector([i, j]) / n - 0.5).norm() - 0.3

    @ti.func
    def crossing(i: int, j: int, k: int, m: int) -> Any:
        s = height(i, j) / (height(i, j) - height(k, m))
        return ti.Vector([i + s * (k - i), j + s * (m - j)]) / n

    @ti.kernel
    def march() -> None:
        for i, j in ti.ndrange(n - 1, n - 1):
            ends = ti.Matrix.zero(ti.f64, 2, 2)
            count = 0
            for e in ti.static(range(4)):
                a = ti.static([(0, 0), (1, 0), (1, 1), (0, 1)][e])
                b = ti.static([(1, 0), (1, 1), (0, 1), (0, 0)][e])
                if (height(i + a[0], j + a[1]) < 0) != (height(i + b[0], j + b[1]) < 0):
                    at = crossing(i + a[0], j + a[1], i + b[0], j + b[1])
                    if count < 2:
                        ends[count, 0], ends[count, 1] = at[0], at[1]
                    count += 1
            if count == 2:
                segments.append(ti.Struct(a=ends[0, :], b=ends[1, :]))

    march()
    a, b = segments.a.to_sparse()[1], segments.b.to_sparse()[1]
    assert np.linalg.norm(a - b, axis=1).sum() == pytest.approx(2 * np.pi * 0.3, rel=1e-3)
    ends = np.sort(np.round(np.concatenate([a, b]), 9).view(np.complex128).ravel())
    assert (ends[::2] == ends[1::2]).all()  # each end is that of two segments: the curve is closed


def test_transparency_with_a_list_for_each_pixel() -> None:
    """Layers in any order; each pixel sorts its own by depth and blends them."""
    n, most = 16, 12
    rng = np.random.default_rng(3)
    count = 200
    pixel, depth, alpha = rng.integers(0, n * n, count), rng.permutation(count) / count, rng.random(count)
    keep = [k for k in range(count) if (pixel[:k] == pixel[k]).sum() < most]
    fragments: Any = ti.Struct.field({"depth": ti.f32, "alpha": ti.f32})
    ti.root.dense(ti.ij, (n, n)).dynamic(ti.k, most, chunk_size=4).place(fragments)
    image = ti.field(ti.f32, shape=(n, n))

    @ti.kernel
    def collect(
        many: ti.i32,
        at: ti.types.ndarray(dtype=ti.i32, ndim=1),  # pyright: ignore[reportInvalidTypeForm]
        depths: ti.types.ndarray(dtype=ti.f32, ndim=1),  # pyright: ignore[reportInvalidTypeForm]
        alphas: ti.types.ndarray(dtype=ti.f32, ndim=1),  # pyright: ignore[reportInvalidTypeForm]
    ) -> None:
        for k in range(many):
            fragments[at[k] // n, at[k] % n].append(ti.Struct(depth=depths[k], alpha=alphas[k]))

    @ti.kernel
    def blend() -> None:
        for i, j in image:
            length = fragments[i, j].length()
            for k in range(1, length):
                held = fragments[i, j, k]
                m = k
                while m > 0 and fragments[i, j, ti.max(m - 1, 0)].depth > held.depth:
                    fragments[i, j, m] = fragments[i, j, m - 1]
                    m -= 1
                fragments[i, j, m] = held
            seen = 1.0
            for k in range(length):
                image[i, j] += seen * fragments[i, j, k].alpha * (k + 1)
                seen *= 1 - fragments[i, j, k].alpha

    pixel, depth, alpha = pixel[keep].astype(np.int32), depth[keep].astype(np.float32), alpha[keep].astype(np.float32)
    collect(len(keep), pixel, depth, alpha)
    blend()
    expected = np.zeros((n, n))
    for at in range(n * n):
        seen = 1.0
        for k, layer in enumerate(sorted(np.flatnonzero(pixel == at), key=lambda one: depth[one])):
            expected[at // n, at % n] += seen * alpha[layer] * (k + 1)
            seen *= 1 - float(alpha[layer])
    np.testing.assert_allclose(image.to_numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "place", [lambda: ti.root.bitmasked(ti.ij, 24), lambda: ti.root.pointer(ti.ij, 6).bitmasked(ti.ij, 4)]
)
def test_life_in_which_what_lives_is_what_is_active(place: Callable[[], Any]) -> None:
    n = 24
    alive, around = ti.field(ti.i32), ti.field(ti.i32)
    cells, sums = place(), place()
    cells.place(alive)
    sums.place(around)

    @ti.kernel
    def count() -> None:
        for i, j in alive:
            for k, m in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                if ti.static(k != 0 or m != 0):
                    around[(i + k) % n, (j + m) % n] += 1

    @ti.kernel
    def step() -> None:
        for i, j in around:
            lives = ti.is_active(cells, [i, j])
            if around[i, j] == 3 and not lives:
                ti.activate(cells, [i, j])
            elif lives and around[i, j] != 2 and around[i, j] != 3:
                ti.deactivate(cells, [i, j])

    @ti.kernel
    def starve() -> None:
        for i, j in alive:
            if around[i, j] == 0:
                ti.deactivate(cells, [i, j])

    board = np.random.default_rng(0).random((n, n)) < 0.3
    for i, j in np.argwhere(board).tolist():
        alive[i, j] = 0
    for _ in range(12):
        total = sum(
            np.roll(board, (k, m), (0, 1)).astype(int) for k in (-1, 0, 1) for m in (-1, 0, 1) if (k, m) != (0, 0)
        )
        board = (total == 3) | (board & (total == 2))
        count()
        step()
        starve()
        sums.deactivate_all()
        assert sorted(map(tuple, alive.to_sparse()[0].tolist())) == list(map(tuple, np.argwhere(board).tolist()))
    assert board.any()


@pytest.mark.parametrize("dims", [2, 3])
def test_a_fluid_on_a_sparse_grid(dims: int) -> None:
    """The material point method in a box of which a hundredth of a per cent is active, against NumPy."""
    assert Material(ti, dims).deviation() < 1e-5


def test_a_comet_sheds_particles() -> None:
    """A comet passes a sun and sheds particles into a list, the more the nearer it is; the light of the sun drives them
    away. What is far is taken out of the list by a second one.
    """
    ti.init(default_fp=ti.f64)
    dt, gravity, steps = 0.02, 1.0, 120
    dust: Any = ti.Struct.field({"x": ti.math.vec2, "v": ti.math.vec2, "light": ti.f64})
    kept: Any = ti.Struct.field({"x": ti.math.vec2, "v": ti.math.vec2, "light": ti.f64})
    for one in (dust, kept):
        ti.root.dynamic(ti.i, 4096, chunk_size=64).place(one)
    comet_x, comet_v = (ti.Vector.field(2, ti.f64, shape=()) for _ in range(2))

    @ti.func
    def pull(x: Any, share: float) -> Any:
        return -share * gravity * x / x.norm() ** 3

    @ti.kernel
    def fly() -> None:
        comet_v[None] += dt * pull(comet_x[None], 1.0)
        comet_x[None] += dt * comet_v[None]

    @ti.kernel
    def shed(number: ti.i32) -> None:
        for k in range(int(3 / comet_x[None].norm())):
            angle = 0.7 * number + 2.1 * k
            away = 0.1 * ti.Vector([ti.cos(angle), ti.sin(angle)])
            dust.append(ti.Struct(x=comet_x[None], v=comet_v[None] + away, light=0.5 + 0.3 * ti.sin(5.0 * angle)))

    @ti.kernel
    def drift() -> None:
        for p in dust:
            dust[p].v += dt * pull(dust[p].x, 1.0 - dust[p].light)
            dust[p].x += dt * dust[p].v

    @ti.kernel
    def keep_near() -> None:
        for p in dust:
            if dust[p].x.norm() < 1.5:
                kept.append(dust[p])

    @ti.kernel
    def take_back() -> None:
        dust.deactivate()
        for p in kept:
            dust.append(kept[p])

    comet_x[None], comet_v[None] = [1.4, 0.2], [-0.7, 0.5]
    at, moving = np.array([1.4, 0.2]), np.array([-0.7, 0.5])
    model: list[tuple[Any, Any, float]] = []
    longest = 0
    for step in range(steps):
        fly()
        shed(step)
        drift()
        moving = moving - dt * at / np.linalg.norm(at) ** 3
        at = at + dt * moving
        for k in range(int(3 / np.linalg.norm(at))):
            angle = 0.7 * step + 2.1 * k
            away = 0.1 * np.array([np.cos(angle), np.sin(angle)])
            model.append((at, moving + away, 0.5 + 0.3 * np.sin(5.0 * angle)))
        moved = [(x, v - dt * (1 - light) * x / np.linalg.norm(x) ** 3, light) for x, v, light in model]
        model = [(x + dt * v, v, light) for x, v, light in moved]
        longest = max(longest, len(model))
        if step % 20 == 19:
            keep_near()
            take_back()
            kept.parent().deactivate_all()
            model = [one for one in model if np.linalg.norm(one[0]) < 1.5]
    found = dust.x.to_sparse()[1]
    wanted = np.array([x for x, _, _ in model])
    assert 0 < len(found) == len(wanted) < longest
    order, other = (np.lexsort(np.round(points, 6).T) for points in (found, wanted))
    np.testing.assert_allclose(found[order], wanted[other], rtol=1e-6, atol=1e-9)


def test_levels_follow_a_shape_that_moves() -> None:
    """Three levels of a tree around a disc: how many of their cells are active, at each place of the disc."""
    n = 64
    x = ti.field(ti.f32)
    outer = ti.root.pointer(ti.ij, 4)
    middle: Any = outer.pointer(ti.ij, 4)
    inner: Any = middle.bitmasked(ti.ij, 4)
    inner.place(x)

    @ti.kernel
    def draw(centre: ti.f32) -> None:
        for i, j in ti.ndrange(n, n):
            if (i - centre) ** 2 + (j - n / 2) ** 2 < 81:
                x[i, j] = i + 1

    @ti.kernel
    def leave(centre: ti.f32) -> None:
        for i, j in x:
            if (i - centre) ** 2 + (j - n / 2) ** 2 >= 81:
                ti.deactivate(inner, [i, j])
        for i, j in middle:
            used = False
            for k, m in ti.ndrange(4, 4):
                used = used or ti.is_active(inner, [4 * i + k, 4 * j + m])
            if not used:
                ti.deactivate(middle, [i, j])

    @ti.kernel
    def count(level: ti.template()) -> ti.i32:  # pyright: ignore[reportInvalidTypeForm]
        found = 0
        for _ in ti.grouped(level):
            found += 1
        return found

    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    for centre in (12.0, 20.5, 33.0, 50.0):
        draw(centre)
        leave(centre)
        disc = (i - np.float32(centre)) ** 2 + (j - n / 2) ** 2 < 81
        blocks = disc.reshape(n // 4, 4, n // 4, 4).any(axis=(1, 3))
        assert [count(inner), count(middle)] == [disc.sum(), blocks.sum()]
        np.testing.assert_array_equal(x.to_numpy(), np.where(disc, i + 1, 0))
    assert count(outer) == 4 * 2  # where the disc has been: none of them was deactivated
