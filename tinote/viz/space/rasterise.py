"""Pictures of scenes by compiled kernels, on all processors and without a graphics card.

Two passes, as in deferred shading with a visibility buffer. First each sphere, triangle and line finds the samples of
the picture that it covers, and leaves there, by an atomic minimum, its depth in the upper 32 bits of an integer and its
number in the lower ones: floats above zero are ordered as their bits are. Then each pixel works out the colour of what
its samples have found, once, however many things lie behind one another. The order of the threads changes nothing.

A triangle is found by the edge functions of homogeneous coordinates (Olano and Greer, *Triangle scan conversion using
2D homogeneous coordinates*, 1997), so that one that reaches behind the camera needs no clipping. A sphere is drawn as
the disc that its outline has, up to the slight ellipse of perspective.

Colours are multiplied as they are shown, and light adds up: `base * (sky or ground + sum of lights * cosine)`, with a
small highlight (Blinn and Phong). The page's shaders in `static/views/scene.js` do the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinote.ir.types import f32, f64, i32, i64, u8
from tinote.lang.data.types import ndarray
from tinote.lang.kernels.func import func
from tinote.lang.maths.arithmetic import bit_cast, cast, ceil
from tinote.lang.maths.elementary import sqrt
from tinote.lang.maths.language import atomic_min, ndrange
from tinote.viz.space.camera import CameraFrame, Eye, axes, framed
from tinote.viz.space.content import Content, Lighting, Lines, Spheres, Triangles
from tinote.viz.space.geometry import fixed

EMPTY = np.iinfo(np.int64).max
"""A sample that nothing covers."""

SMALLEST = 0.71
"""A sphere has at least this radius in samples, so that it covers one."""

SMALL = 4.0
"""Discs of a smaller radius, in samples, are found in a square around them, larger ones row by row."""

BATCHES = (0.0, 0.08, 0.2, 0.45, 1.0)
"""Where there are more spheres than samples, they are drawn in these shares: behind the spheres of earlier ones lie
most of the later ones, and what is hidden altogether is found by looking at one number (Greene, Kass and Miller,
*Hierarchical Z-buffer visibility*, 1993).
"""

MOST_FINE_SAMPLES = 4_000_000
MOST_FINE_PRIMITIVES = 200_000
"""Pictures with more samples than this, or of more things, have one sample a pixel where they follow each other."""

GLOSS = 0.10
"""How strong the highlight of a light is, and `SHININESS` how small."""

SHININESS = 32


def camera_numbers(frame: CameraFrame) -> np.ndarray:
    """What kernels read of a camera: 12 numbers of the view matrix, then `across`, `upwards`, the centre, `near`,
    `far`, and whether it is a perspective.
    """
    return np.array(
        [*frame.view.ravel(), frame.across, frame.upwards, *frame.center, frame.near, frame.far, frame.perspective],
        np.float64,
    )


@func
def leave(samples, at, depth, number):
    """Note at a sample that `number` covers it at `depth`, unless something nearer does."""
    key = (cast(bit_cast(cast(depth, f32), i32), i64) << 32) | cast(number, i64)
    if key < samples[at]:
        atomic_min(samples[at], key)


@func
def projected_sphere(centers, radii, n, in_pixels, camera):
    """Where a sphere is seen: its depth, the column and row of its centre, and its radius in the units of the scene and
    in samples.
    """
    x, y, z = centers[n, 0], centers[n, 1], centers[n, 2]
    depth = -(camera[8] * x + camera[9] * y + camera[10] * z + camera[11])
    w = 1.0
    if camera[18] > 0:
        w = depth
    radius = radii[min(n, radii.shape[0] - 1)]
    across = radius
    if in_pixels:
        radius *= w / camera[12]
    else:
        across *= camera[12] / w
    u = camera[14] + camera[12] * (camera[0] * x + camera[1] * y + camera[2] * z + camera[3]) / w
    v = camera[15] - camera[13] * (camera[4] * x + camera[5] * y + camera[6] * z + camera[7]) / w
    return depth, u, v, radius, max(across, SMALLEST)


@func
def square_of(u, v, across):
    """The top, left and side of a square around a disc, always of the same size for one radius: a processor cannot
    guess how long rows are.
    """
    return int(v - across + 0.5), int(u - across + 0.5), int(ceil(2.0 * across))


def find_spheres(
    centers: ndarray(f32, 2),  # type: ignore[valid-type]
    radii: ndarray(f32, 1),  # type: ignore[valid-type]
    in_pixels: i32,  # type: ignore[valid-type]
    camera: ndarray(f32, 1),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    rows: i32,  # type: ignore[valid-type]
    box: ndarray(f32, 2),  # type: ignore[valid-type]
    farthest: ndarray(i32, 2),  # type: ignore[valid-type]
    square: i32,  # type: ignore[valid-type]
    seen: ndarray(u8, 1),  # type: ignore[valid-type]
) -> i32:  # type: ignore[valid-type]
    """Which spheres may be seen, as 1 or 0: those whose centres are within `box`, three pairs, and that are in the
    picture and in front of what `bound` has found to be `farthest` in squares of side `square`; 0 if it has not. How
    many are within the box.
    """
    count = 0
    for n in range(centers.shape[0]):
        x, y, z = centers[n, 0], centers[n, 1], centers[n, 2]
        within = (x >= box[0, 0]) & (x <= box[0, 1]) & (y >= box[1, 0]) & (y <= box[1, 1])
        within = within & (z >= box[2, 0]) & (z <= box[2, 1])
        count += int(within)
        depth, u, v, radius, across = projected_sphere(centers, radii, n, in_pixels, camera)
        shown = within & (depth > camera[16]) & (depth < camera[17]) & (radii[min(n, radii.shape[0] - 1)] > 0)
        shown = shown & (u > -across) & (v > -across) & (u < columns + across) & (v < rows + across)
        found = int(shown)
        if shown:
            top, left, side = square_of(u, v, across)
            if (side <= square) & (top >= 0) & (left >= 0):
                nearest = bit_cast(cast(max(depth - radius, camera[16]), f32), i32)
                if farthest[min(top, rows - 1), min(left, columns - 1)] <= nearest:
                    found = 0
        seen[n] = cast(found, u8)
    return count


def cover_spheres(
    centers: ndarray(f32, 2),  # type: ignore[valid-type]
    radii: ndarray(f32, 1),  # type: ignore[valid-type]
    in_pixels: i32,  # type: ignore[valid-type]
    camera: ndarray(f32, 1),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    rows: i32,  # type: ignore[valid-type]
    samples: ndarray(i64, 1),  # type: ignore[valid-type]
    found: ndarray(i64, 1),  # type: ignore[valid-type]
    first: i32,  # type: ignore[valid-type]
):
    """Leave the spheres of the numbers `found` in the samples of their discs, at the depth of their fronts."""
    for place in range(found.shape[0]):
        n = cast(found[place], i32)
        depth, u, v, radius, across = projected_sphere(centers, radii, n, in_pixels, camera)
        scale = 1.0 / (across * across)
        # No sample of the sphere is nearer: where something else is, no depth need be worked out.
        nearest = cast(bit_cast(cast(max(depth - radius, camera[16]), f32), i32), i64) << 32
        if across < SMALL:
            top, left, side = square_of(u, v, across)
            for row in range(max(0, top), min(rows, top + side)):
                down = row + 0.5 - v
                for column in range(max(0, left), min(columns, left + side)):
                    at = row * columns + column
                    right = column + 0.5 - u
                    left_over = 1.0 - (down * down + right * right) * scale
                    if (left_over > 0.0) & (samples[at] > nearest):
                        front = depth - radius * sqrt(left_over)
                        if front > camera[16]:
                            leave(samples, at, front, first + n)
        else:
            for row in range(max(0, int(v - across)), min(rows, int(v + across) + 1)):
                down = row + 0.5 - v
                left_over = 1.0 - down * down * scale
                if left_over > 0.0:
                    half = across * sqrt(left_over)
                    begin, end = max(0, int(u - half + 0.5)), min(columns, int(u + half + 0.5))
                    for column in range(begin, end):
                        at = row * columns + column
                        if samples[at] > nearest:
                            right = column + 0.5 - u
                            front = depth - radius * sqrt(max(left_over - right * right * scale, 0.0))
                            if front > camera[16]:
                                leave(samples, at, front, first + n)


def bound(
    samples: ndarray(i64, 1),  # type: ignore[valid-type]
    rows: i32,  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    square: i32,  # type: ignore[valid-type]
    along: ndarray(i32, 2),  # type: ignore[valid-type]
    farthest: ndarray(i32, 2),  # type: ignore[valid-type]
):
    """The largest depth, as the samples have it in their upper half, in each square of samples of side `square`, by the
    sample at its top left. `along`: work space of the same shape.
    """
    for row, column in ndrange(rows, columns):
        largest = 0
        for ahead in range(square):
            largest = max(largest, cast(samples[row * columns + min(column + ahead, columns - 1)] >> 32, i32))
        along[row, column] = largest
    for row, column in ndrange(rows, columns):
        largest = 0
        for ahead in range(square):
            largest = max(largest, along[min(row + ahead, rows - 1), column])
        farthest[row, column] = largest


def project(
    vertices: ndarray(f32, 2),  # type: ignore[valid-type]
    camera: ndarray(f64, 1),  # type: ignore[valid-type]
    projected: ndarray(f64, 2),  # type: ignore[valid-type]
):
    """Each vertex as (column * w, row * w, w, depth)."""
    for n in range(vertices.shape[0]):
        x, y, z = cast(vertices[n, 0], f64), cast(vertices[n, 1], f64), cast(vertices[n, 2], f64)
        depth = -(camera[8] * x + camera[9] * y + camera[10] * z + camera[11])
        w = cast(1.0, f64)
        if camera[18] > 0:
            w = depth
        across = camera[0] * x + camera[1] * y + camera[2] * z + camera[3]
        up = camera[4] * x + camera[5] * y + camera[6] * z + camera[7]
        projected[n, 0] = camera[12] * across + camera[14] * w
        projected[n, 1] = camera[15] * w - camera[13] * up
        projected[n, 2] = w
        projected[n, 3] = depth


@func
def edge(projected, a, b, u, v):
    """The edge function of two projected vertices at column u and row v: the determinant of the three."""
    return (
        (projected[a, 1] * projected[b, 2] - projected[a, 2] * projected[b, 1]) * u
        + (projected[a, 2] * projected[b, 0] - projected[a, 0] * projected[b, 2]) * v
        + (projected[a, 0] * projected[b, 1] - projected[a, 1] * projected[b, 0])
    )


def cover_triangles(
    projected: ndarray(f64, 2),  # type: ignore[valid-type]
    triangles: ndarray(i32, 2),  # type: ignore[valid-type]
    near: f64,  # type: ignore[valid-type]
    far: f64,  # type: ignore[valid-type]
    samples: ndarray(i64, 1),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    rows: i32,  # type: ignore[valid-type]
    first: i32,  # type: ignore[valid-type]
):
    """Leave each triangle in the samples whose centres it covers, edges included."""
    for t in range(triangles.shape[0]):
        a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        za, zb, zc = projected[a, 3], projected[b, 3], projected[c, 3]
        nearest, farthest = min(za, zb, zc), max(za, zb, zc)
        left, right, top, bottom = 0, columns, 0, rows
        if farthest > near and nearest < far:
            if nearest > near:  # All of it is in front of the camera: its corners bound it.
                ua, va = projected[a, 0] / projected[a, 2], projected[a, 1] / projected[a, 2]
                ub, vb = projected[b, 0] / projected[b, 2], projected[b, 1] / projected[b, 2]
                uc, vc = projected[c, 0] / projected[c, 2], projected[c, 1] / projected[c, 2]
                # Held within the picture as floats, since integers have an end.
                left = int(min(max(min(ua, ub, uc) - 0.5, 0.0), columns))
                right = int(min(max(max(ua, ub, uc) + 1.5, 0.0), columns))
                top = int(min(max(min(va, vb, vc) - 0.5, 0.0), rows))
                bottom = int(min(max(max(va, vb, vc) + 1.5, 0.0), rows))
            # The edge functions as a * column + b * row + c: their sum at any point of the triangle is its size.
            a0 = projected[b, 1] * projected[c, 2] - projected[b, 2] * projected[c, 1]
            b0 = projected[b, 2] * projected[c, 0] - projected[b, 0] * projected[c, 2]
            c0 = projected[b, 0] * projected[c, 1] - projected[b, 1] * projected[c, 0]
            a1 = projected[c, 1] * projected[a, 2] - projected[c, 2] * projected[a, 1]
            b1 = projected[c, 2] * projected[a, 0] - projected[c, 0] * projected[a, 2]
            c1 = projected[c, 0] * projected[a, 1] - projected[c, 1] * projected[a, 0]
            a2 = projected[a, 1] * projected[b, 2] - projected[a, 2] * projected[b, 1]
            b2 = projected[a, 2] * projected[b, 0] - projected[a, 0] * projected[b, 2]
            c2 = projected[a, 0] * projected[b, 1] - projected[a, 1] * projected[b, 0]
            size = projected[a, 0] * a0 + projected[a, 1] * b0 + projected[a, 2] * c0
            if size > 0.0 or size < 0.0:
                a0, b0, c0 = a0 / size, b0 / size, c0 / size
                a1, b1, c1 = a1 / size, b1 / size, c1 / size
                a2, b2, c2 = a2 / size, b2 / size, c2 / size
                for row in range(top, bottom):
                    v = row + 0.5
                    for column in range(left, right):
                        u = column + 0.5
                        e0 = a0 * u + b0 * v + c0
                        e1 = a1 * u + b1 * v + c1
                        e2 = a2 * u + b2 * v + c2
                        # Neighbours meet without a gap: the two values of their common edge differ by rounding.
                        slack = -1e-9 * (abs(e0) + abs(e1) + abs(e2))
                        if e0 >= slack and e1 >= slack and e2 >= slack:
                            depth = (e0 * za + e1 * zb + e2 * zc) / (e0 + e1 + e2)
                            if depth > near and depth < far:
                                leave(samples, row * columns + column, depth, first + t)


def cover_lines(
    projected: ndarray(f64, 2),  # type: ignore[valid-type]
    pairs: ndarray(i32, 2),  # type: ignore[valid-type]
    width: f32,  # type: ignore[valid-type]
    lift: f64,  # type: ignore[valid-type]
    perspective: i32,  # type: ignore[valid-type]
    near: f64,  # type: ignore[valid-type]
    far: f64,  # type: ignore[valid-type]
    samples: ndarray(i64, 1),  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    rows: i32,  # type: ignore[valid-type]
    first: i32,  # type: ignore[valid-type]
):
    """Leave each line in the samples within half its width, along its longer side a column or row at a time. It is
    `lift` nearer than it is, at depth 1, as a rod's front is, so that one on a surface is seen.
    """
    for n in range(pairs.shape[0]):
        a, b = pairs[n, 0], pairs[n, 1]
        za, zb = projected[a, 3], projected[b, 3]
        # The part of the line that is in front of the camera.
        begin, end = cast(0.0, f64), cast(1.0, f64)
        if za <= near and zb > near:
            begin = (near - za) / (zb - za) + 1e-9
        if zb <= near and za > near:
            end = (near - za) / (zb - za) - 1e-9
        if (za > near or zb > near) and (za < far or zb < far):
            wa = projected[a, 2] + begin * (projected[b, 2] - projected[a, 2])
            wb = projected[a, 2] + end * (projected[b, 2] - projected[a, 2])
            ua = (projected[a, 0] + begin * (projected[b, 0] - projected[a, 0])) / wa
            va = (projected[a, 1] + begin * (projected[b, 1] - projected[a, 1])) / wa
            ub = (projected[a, 0] + end * (projected[b, 0] - projected[a, 0])) / wb
            vb = (projected[a, 1] + end * (projected[b, 1] - projected[a, 1])) / wb
            first_depth, last_depth = za + begin * (zb - za), za + end * (zb - za)
            across, down = ub - ua, vb - va
            half = max(0.5 * cast(width, f64), 0.5)
            length = sqrt(across * across + down * down)
            if length < 1e9:  # False for what is not finite.
                steep = abs(down) > abs(across)
                # `s` runs along the longer side, `t` across it.
                s0, t0, ds, dt = ua, va, across, down
                along, breadth = columns, rows
                if steep:
                    s0, t0, ds, dt = va, ua, down, across
                    along, breadth = rows, columns
                slope = cast(0.0, f64)
                reach = half
                if abs(ds) > 0.0:
                    slope = dt / ds
                    reach = half * length / abs(ds)
                low, high = min(s0, s0 + ds) - half, max(s0, s0 + ds) + half
                for s in range(int(min(max(low, 0.0), along)), int(min(max(high + 1.0, 0.0), along))):
                    t = t0 + slope * (min(max(s + 0.5, min(s0, s0 + ds)), max(s0, s0 + ds)) - s0)
                    if t > -reach - 1.0 and t < breadth + reach:
                        for q in range(max(int(t - reach), 0), min(int(t + reach) + 1, breadth)):
                            ps, pt = s + 0.5 - s0, q + 0.5 - t0
                            share = cast(0.0, f64)
                            if length > 0.0:
                                share = min(max((ps * ds + pt * dt) / (length * length), 0.0), 1.0)
                            ds_off, dt_off = ps - share * ds, pt - share * dt
                            if ds_off * ds_off + dt_off * dt_off <= half * half:
                                depth = first_depth + share * (last_depth - first_depth)
                                if perspective:
                                    depth = first_depth * last_depth / (last_depth + share * (first_depth - last_depth))
                                    depth -= lift * depth
                                else:
                                    depth -= lift
                                if depth > near and depth < far:
                                    at = s * columns + q if steep else q * columns + s
                                    leave(samples, at, depth, first + n)


@func
def lit(red, green, blue, x, y, z, nx, ny, nz, lighting):
    """A colour at a point with a unit normal, both in view coordinates, in the light of `lighting`: each row is a
    position and a colour, the first two the upward direction with the sky's colour, and the ground's.
    """
    upwards = 0.5 + 0.5 * (nx * lighting[0, 0] + ny * lighting[0, 1] + nz * lighting[0, 2])
    r = red * (lighting[1, 3] + upwards * (lighting[0, 3] - lighting[1, 3]))
    g = green * (lighting[1, 4] + upwards * (lighting[0, 4] - lighting[1, 4]))
    b = blue * (lighting[1, 5] + upwards * (lighting[0, 5] - lighting[1, 5]))
    # Towards the camera: in an orthographic view along z everywhere, which the second row says.
    ex, ey, ez = -x * lighting[1, 0], -y * lighting[1, 0], -z * lighting[1, 0] + (1.0 - lighting[1, 0])
    away = 1.0 / sqrt(ex * ex + ey * ey + ez * ez + 1e-20)
    for n in range(2, lighting.shape[0]):
        lx, ly, lz = lighting[n, 0] - x, lighting[n, 1] - y, lighting[n, 2] - z
        near = 1.0 / sqrt(lx * lx + ly * ly + lz * lz + 1e-20)
        cosine = (nx * lx + ny * ly + nz * lz) * near
        if cosine > 0.0:
            hx, hy, hz = lx * near + ex * away, ly * near + ey * away, lz * near + ez * away
            shine = max((nx * hx + ny * hy + nz * hz) / sqrt(hx * hx + hy * hy + hz * hz + 1e-20), 0.0)
            gloss = 255.0 * GLOSS * shine**SHININESS
            r += (red * cosine + gloss) * lighting[n, 3]
            g += (green * cosine + gloss) * lighting[n, 4]
            b += (blue * cosine + gloss) * lighting[n, 5]
    return min(r, 255.0), min(g, 255.0), min(b, 255.0)


@func
def shaded(
    number, u, v, depth, camera, lighting, centers, radii, sphere_colors, in_pixels, spheres, projected, triangles,
    two_sided, normals, colors, meshes, line_projected, pairs, line_colors,
):  # fmt: skip
    """The colour of the thing of this number at a place of the picture, in its light."""
    w = 1.0
    if camera[18] > 0:
        w = depth
    x, y = (u - camera[14]) * w / camera[12], (camera[15] - v) * w / camera[13]
    r, g, b = 0.0, 0.0, 0.0
    if number < spheres:
        px, py, pz = centers[number, 0], centers[number, 1], centers[number, 2]
        middle = -(camera[8] * px + camera[9] * py + camera[10] * pz + camera[11])
        wide = 1.0
        if camera[18] > 0:
            wide = middle
        across = camera[0] * px + camera[1] * py + camera[2] * pz + camera[3]
        up = camera[4] * px + camera[5] * py + camera[6] * pz + camera[7]
        radius = radii[min(number, radii.shape[0] - 1)]
        if not in_pixels:
            radius *= camera[12] / wide
        radius = max(radius, SMALLEST)
        nx = (u - camera[14] - camera[12] * across / wide) / radius
        ny = (camera[15] - camera[13] * up / wide - v) / radius
        nz = sqrt(max(1.0 - nx * nx - ny * ny, 0.0))
        ink = min(number, sphere_colors.shape[0] - 1)
        r, g, b = lit(
            1.0 * sphere_colors[ink, 0], 1.0 * sphere_colors[ink, 1], 1.0 * sphere_colors[ink, 2],
            x, y, -depth, nx, ny, nz, lighting,
        )  # fmt: skip
    elif number < spheres + meshes:
        t = number - spheres
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        e0, e1, e2 = (
            edge(projected, j, k, u, v),
            edge(projected, k, i, u, v),
            edge(projected, i, j, u, v),
        )
        total = 1.0 / (e0 + e1 + e2)
        p, q, s = cast(e0 * total, f32), cast(e1 * total, f32), cast(e2 * total, f32)
        wx = p * normals[i, 0] + q * normals[j, 0] + s * normals[k, 0]
        wy = p * normals[i, 1] + q * normals[j, 1] + s * normals[k, 1]
        wz = p * normals[i, 2] + q * normals[j, 2] + s * normals[k, 2]
        length = 1.0 / sqrt(wx * wx + wy * wy + wz * wz + 1e-20)
        nx = (camera[0] * wx + camera[1] * wy + camera[2] * wz) * length
        ny = (camera[4] * wx + camera[5] * wy + camera[6] * wz) * length
        nz = (camera[8] * wx + camera[9] * wy + camera[10] * wz) * length
        facing = nz
        if camera[18] > 0:
            facing = nz * depth - nx * x - ny * y
        if two_sided[t] and facing < 0.0:
            nx, ny, nz = -nx, -ny, -nz
        last = colors.shape[0] - 1
        i, j, k = min(i, last), min(j, last), min(k, last)
        r, g, b = lit(
            p * colors[i, 0] + q * colors[j, 0] + s * colors[k, 0],
            p * colors[i, 1] + q * colors[j, 1] + s * colors[k, 1],
            p * colors[i, 2] + q * colors[j, 2] + s * colors[k, 2],
            x, y, -depth, nx, ny, nz, lighting,
        )  # fmt: skip
    else:
        t = number - spheres - meshes
        i, j = pairs[t, 0], pairs[t, 1]
        ui, vi = (
            line_projected[i, 0] / line_projected[i, 2],
            line_projected[i, 1] / line_projected[i, 2],
        )
        uj, vj = (
            line_projected[j, 0] / line_projected[j, 2],
            line_projected[j, 1] / line_projected[j, 2],
        )
        along = (uj - ui) * (uj - ui) + (vj - vi) * (vj - vi)
        share = 0.0
        if along > 0.0:
            share = cast(min(max(((u - ui) * (uj - ui) + (v - vi) * (vj - vi)) / along, 0.0), 1.0), f32)
        last = line_colors.shape[0] - 1
        i, j = min(i, last), min(j, last)
        r = line_colors[i, 0] + share * (cast(line_colors[j, 0], f32) - line_colors[i, 0])
        g = line_colors[i, 1] + share * (cast(line_colors[j, 1], f32) - line_colors[i, 1])
        b = line_colors[i, 2] + share * (cast(line_colors[j, 2], f32) - line_colors[i, 2])
    return r, g, b


def shade(
    samples: ndarray(i64, 1),  # type: ignore[valid-type]
    fine: i32,  # type: ignore[valid-type]
    columns: i32,  # type: ignore[valid-type]
    paper: ndarray(u8, 3),  # type: ignore[valid-type]
    camera: ndarray(f32, 1),  # type: ignore[valid-type]
    lighting: ndarray(f32, 2),  # type: ignore[valid-type]
    fog: ndarray(f32, 1),  # type: ignore[valid-type]
    centers: ndarray(f32, 2),  # type: ignore[valid-type]
    radii: ndarray(f32, 1),  # type: ignore[valid-type]
    sphere_colors: ndarray(u8, 2),  # type: ignore[valid-type]
    in_pixels: i32,  # type: ignore[valid-type]
    spheres: i32,  # type: ignore[valid-type]
    projected: ndarray(f64, 2),  # type: ignore[valid-type]
    triangles: ndarray(i32, 2),  # type: ignore[valid-type]
    two_sided: ndarray(i32, 1),  # type: ignore[valid-type]
    normals: ndarray(f32, 2),  # type: ignore[valid-type]
    colors: ndarray(u8, 2),  # type: ignore[valid-type]
    meshes: i32,  # type: ignore[valid-type]
    line_projected: ndarray(f64, 2),  # type: ignore[valid-type]
    pairs: ndarray(i32, 2),  # type: ignore[valid-type]
    line_colors: ndarray(u8, 2),  # type: ignore[valid-type]
    picture: ndarray(u8, 3),  # type: ignore[valid-type]
    cover: ndarray(u8, 2),  # type: ignore[valid-type]
):
    """Each pixel as the mean of its `fine` × `fine` samples: what lies there in its light and behind the fog, or else
    the paper; and how much of it, of 255, is covered. Samples that show the same thing share one colour. All are empty
    afterwards.
    """
    for row in range(picture.shape[0]):
        for column in range(picture.shape[1]):
            corner = row * fine * columns + column * fine
            red, green, blue = 0.0, 0.0, 0.0
            empty = 0
            for part_row in range(fine):
                for part_column in range(fine):
                    key = samples[corner + part_row * columns + part_column]
                    if key == EMPTY:
                        empty += 1
            if empty < fine * fine:
                for part_row in range(fine):
                    for part_column in range(fine):
                        key = samples[corner + part_row * columns + part_column]
                        if key != EMPTY:
                            number = cast(key & 0xFFFFFFFF, i32)
                            # The samples of this pixel that show the same: it is worked out once, in their middle.
                            count, u, v, depth = 0, 0.0, 0.0, 0.0
                            for other_row in range(part_row, fine):
                                for other_column in range(fine):
                                    at = corner + other_row * columns + other_column
                                    other = samples[at]
                                    if cast(other & 0xFFFFFFFF, i32) == number and other != EMPTY:
                                        count += 1
                                        u += other_column
                                        v += other_row
                                        depth += bit_cast(cast(other >> 32, i32), f32)
                                        samples[at] = EMPTY
                            times = cast(count, f32)
                            u = column * fine + 0.5 + u / times
                            v = row * fine + 0.5 + v / times
                            depth /= times
                            r, g, b = shaded(
                                number, u, v, depth, camera, lighting, centers, radii, sphere_colors, in_pixels,
                                spheres, projected, triangles, two_sided, normals, colors, meshes, line_projected,
                                pairs, line_colors,
                            )  # fmt: skip
                            mist = fog[0] * min(max((depth - fog[1]) / (fog[2] - fog[1]), 0.0), 1.0)
                            red += times * (r + mist * (fog[3] - r))
                            green += times * (g + mist * (fog[4] - g))
                            blue += times * (b + mist * (fog[5] - b))
            if empty:
                at_row, at_column = min(row, paper.shape[0] - 1), min(column, paper.shape[1] - 1)
                red += empty * cast(paper[at_row, at_column, 0], f32)
                green += empty * cast(paper[at_row, at_column, 1], f32)
                blue += empty * cast(paper[at_row, at_column, 2], f32)
            share = 1.0 / (fine * fine)
            cover[row, column] = cast(255.0 - 255.0 * share * empty, u8)
            picture[row, column, 0] = cast(red * share + 0.5, u8)
            picture[row, column, 1] = cast(green * share + 0.5, u8)
            picture[row, column, 2] = cast(blue * share + 0.5, u8)


_find_spheres, _cover_spheres = fixed(find_spheres), fixed(cover_spheres)
_cover_triangles, _cover_lines = fixed(cover_triangles), fixed(cover_lines)
_bound, _project, _shade = fixed(bound), fixed(project), fixed(shade)


class _Triangles(NamedTuple):
    """All meshes of a scene as one."""

    points: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    two_sided: np.ndarray


def _rows(parts: list[np.ndarray], counts: list[int]) -> np.ndarray:
    """Arrays below one another; one that has a single row for all is repeated, unless it is the only one."""
    if len(parts) == 1:
        return parts[0]
    whole = [np.broadcast_to(part, (count, *part.shape[1:])) for part, count in zip(parts, counts, strict=True)]
    return np.ascontiguousarray(np.concatenate(whole))


def _numbered(parts: list[np.ndarray], counts: list[int]) -> np.ndarray:
    """Indices below one another, each counted on from the vertices of those before."""
    if len(parts) == 1:
        return parts[0]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int32)
    return np.concatenate([part + start for part, start in zip(parts, starts, strict=True)])


def _all_spheres(items: list[Spheres], frame: CameraFrame) -> Spheres:
    """All spheres of a scene. Where only some have radii in pixels, those are turned into the units of the scene."""
    if not items:
        return Spheres(np.zeros((1, 3), np.float32), np.zeros(1, np.float32), np.zeros((1, 3), np.uint8))
    in_pixels = all(item.in_pixels for item in items)
    counts = [len(item.points) for item in items]
    radii = []
    for item in items:
        if item.in_pixels and not in_pixels:
            depth = -(item.points @ frame.view[2, :3] + frame.view[2, 3]) if frame.perspective else 1.0
            radii.append(np.broadcast_to((item.radii * depth / frame.across).astype(np.float32), (len(item.points),)))
        else:
            radii.append(item.radii)
    return Spheres(
        _rows([item.points for item in items], counts),
        _rows(radii, counts),
        _rows([item.colors for item in items], counts),
        in_pixels,
    )


def _all_triangles(items: list[Triangles]) -> _Triangles:
    if not items:
        nothing = np.zeros((1, 3), np.float32)
        return _Triangles(nothing, np.zeros((0, 3), np.int32), nothing, nothing.astype(np.uint8), np.zeros(1, np.int32))
    whole = [item.expanded() for item in items]
    counts = [len(item.points) for item in whole]
    return _Triangles(
        _rows([item.points for item in whole], counts),
        _numbered([item.triangles for item in whole], counts),
        _rows([item.normals for item in whole], counts),
        _rows([item.colors for item in whole], counts),
        np.concatenate([np.full(len(item.triangles), item.two_sided, np.int32) for item in whole]),
    )


def light_rows(lighting: Lighting, eye: Eye) -> np.ndarray:
    """The lights as `lit` reads them, in the view coordinates of a camera, shape (2 + lights, 6), float32."""
    rotation = np.stack(axes(eye))
    position = np.asarray(eye.position, float)
    distance = float(np.linalg.norm(np.subtract(eye.target, eye.position)))
    up = np.asarray(eye.up, float) / max(float(np.linalg.norm(eye.up)), 1e-20)
    found = [[*(rotation @ up), *lighting.sky], [float(eye.box is None), 0.0, 0.0, *lighting.ground]]
    for light in lighting.lights:
        at = np.asarray(light.position, float)
        at = at * distance if lighting.with_camera else rotation @ (at - position)
        found.append([*at, *light.color])
    return np.array(found, np.float32)


def fineness(content: Content, size: tuple[int, int]) -> int:
    """How many samples a pixel of a moving picture has each way: 2 smooth the edges; where that takes too long, 1."""
    few = content.primitives() <= MOST_FINE_PRIMITIVES and 4 * size[0] * size[1] <= MOST_FINE_SAMPLES
    return 2 if few else 1


class Fog(NamedTuple):
    """What is far takes on a `color`, uint8: not at all at depth `near` and before, by `strength` at `far` and behind
    it.
    """

    strength: float
    near: float
    far: float
    color: Sequence[int]


class Drawn(NamedTuple):
    """A picture (rows, columns, 3), uint8, rows from the top; how much of each pixel, of 255, is `cover`ed by what was
    drawn, (rows, columns), uint8; and how many spheres are `within` the box.
    """

    picture: np.ndarray
    cover: np.ndarray
    within: int


CLEAR = Fog(0.0, 0.0, 1.0, (0, 0, 0))
EVERYWHERE = ((-np.inf, np.inf),) * 3


class Visible(NamedTuple):
    """What is nearest in the middle of each pixel, arrays (rows, columns): the number of the `item` in the scene's
    content, -1 where there is none; the number of the sphere, line or triangle in it as `index`, int32, triangles
    counted on from copy to copy; and its `depth` along the line of sight, float32, infinite where nothing is.
    """

    item: np.ndarray
    index: np.ndarray
    depth: np.ndarray


class _Covered(NamedTuple):
    """What the samples hold the numbers of, as `shade` reads it: spheres first, then triangles, then lines."""

    spheres: Spheres
    within: int
    mesh: _Triangles
    projected: np.ndarray
    pairs: np.ndarray
    line_projected: np.ndarray
    line_colors: np.ndarray


class Rasteriser:
    """Draws scenes; keeps its buffer of samples from one picture to the next."""

    def __init__(self) -> None:
        self._samples = np.full(0, EMPTY, np.int64)

    def draw(self, content: Content, eye: Eye, size: tuple[int, int], paper: Any, fine: int = 1) -> np.ndarray:
        """A picture of `size` (columns, rows) pixels with `fine` × `fine` samples each, over `paper`: a colour (3,), or
        one a row (rows, 1, 3), or a picture. Shape (rows, columns, 3), uint8, rows from the top.
        """
        return self.layer(content, eye, size, paper, fine).picture

    def layer(
        self,
        content: Content,
        eye: Eye,
        size: tuple[int, int],
        paper: Any = (0, 0, 0),
        fine: int = 1,
        box: Sequence[Sequence[float]] = EVERYWHERE,
        fog: Fog = CLEAR,
    ) -> Drawn:
        """A picture as `draw` makes it, of the spheres whose centres are in a `box`, three pairs (low, high)."""
        frame = framed(eye, size[0] * fine, size[1] * fine)
        found = self._cover(content, frame, fine, box)
        picture, cover = np.empty((size[1], size[0], 3), np.uint8), np.empty((size[1], size[0]), np.uint8)
        mist = np.array([fog.strength, fog.near, fog.far, *fog.color], np.float32)
        spheres, mesh = found.spheres, found.mesh
        _shade(
            self._samples, fine, frame.columns, np.ascontiguousarray(_as_paper(paper)),
            camera_numbers(frame).astype(np.float32), light_rows(content.lighting, eye), mist,
            spheres.points, spheres.radii, spheres.colors, spheres.in_pixels, len(spheres.points),
            found.projected, mesh.triangles if len(mesh.triangles) else np.zeros((1, 3), np.int32), mesh.two_sided,
            mesh.normals, mesh.colors, len(mesh.triangles), found.line_projected, found.pairs, found.line_colors,
            picture, cover,
        )  # fmt: skip
        return Drawn(picture, cover, found.within if any(isinstance(item, Spheres) for item in content.items) else 0)

    def visible(self, content: Content, eye: Eye, size: tuple[int, int]) -> Visible:
        """What a picture of `size` (columns, rows) pixels shows where."""
        frame = framed(eye, *size)
        found = self._cover(content, frame)
        keys = self._samples.reshape(frame.rows, frame.columns).copy()
        self._samples.fill(EMPTY)
        number = (keys & 0xFFFFFFFF).astype(np.int32)
        depth = (keys >> 32).astype(np.int32).view(np.float32)
        starts: list[int] = []
        items: list[int] = []
        begin = 0
        for kind, first in ((Spheres, 0), (Triangles, len(found.spheres.points)), (Lines, None)):
            begin = begin if first is None else first
            for place, item in enumerate(content.items):
                if isinstance(item, kind):
                    items.append(place)
                    starts.append(begin)
                    begin += Content((item,)).primitives()
        empty = keys == EMPTY
        which = np.searchsorted(starts, number, side="right") - 1 if starts else np.zeros_like(number)
        item, start = (np.array(table or [0], np.int32)[which] for table in (items, starts))
        return Visible(
            np.where(empty, np.int32(-1), item), np.where(empty, np.int32(-1), number - start),
            np.where(empty, np.float32(np.inf), depth),
        )  # fmt: skip

    def _cover(
        self, content: Content, frame: CameraFrame, fine: int = 1, box: Sequence[Sequence[float]] = EVERYWHERE
    ) -> _Covered:
        """Find the samples that each thing covers, `fine` × `fine` a pixel, and leave its number there."""
        columns, rows = frame.columns, frame.rows
        if self._samples.size != columns * rows:
            self._samples = np.full(columns * rows, EMPTY, np.int64)
        samples = self._samples
        numbers = camera_numbers(frame)
        spheres = _all_spheres(
            [_enlarged(item, fine) for item in content.items if isinstance(item, Spheres) and len(item.points)], frame
        )
        mesh = _all_triangles([item for item in content.items if isinstance(item, Triangles)])
        lines = [item for item in content.items if isinstance(item, Lines) and len(item.pairs)]
        count = len(spheres.points)
        within = self._leave_spheres(spheres, numbers.astype(np.float32), columns, rows, np.array(box, np.float32))
        projected = np.empty((len(mesh.points), 4))
        _project(mesh.points, numbers, projected)
        if len(mesh.triangles):
            _cover_triangles(projected, mesh.triangles, frame.near, frame.far, samples, columns, rows, count)
        counts = [len(item.points) for item in lines]
        line_projected, pairs, line_colors = np.empty((1, 4)), np.zeros((1, 2), np.int32), np.zeros((1, 3), np.uint8)
        if lines:
            line_vertices = _rows([item.points for item in lines], counts)
            pairs = _numbered([item.pairs for item in lines], counts)
            line_colors = _rows([item.colors for item in lines], counts)
            line_projected = np.empty((len(line_vertices), 4))
            _project(line_vertices, numbers, line_projected)
            at = 0
            for item in lines:
                number = count + len(mesh.triangles) + at
                _cover_lines(
                    line_projected, pairs[at : at + len(item.pairs)], item.width * fine,
                    0.5 * item.width * fine / frame.across, frame.perspective, frame.near, frame.far,
                    samples, columns, rows, number,
                )  # fmt: skip
                at += len(item.pairs)
        return _Covered(spheres, within, mesh, projected, pairs, line_projected, line_colors)

    def _leave_spheres(self, spheres: Spheres, camera: np.ndarray, columns: int, rows: int, box: np.ndarray) -> int:
        """Leave the spheres in the samples. How many of them are within the box."""
        count, within = len(spheres.points), 0
        farthest = along = np.empty((1, 1), np.int32)
        ends, square = [0, count], 0
        if count > columns * rows:
            ends = [round(share * count) for share in BATCHES]
            farthest, along = np.empty((2, rows, columns), np.int32)
            square = math.ceil(2.0 * min(float(spheres.radii.max()) if spheres.in_pixels else 1.5, SMALL))
        seen = np.empty(count, np.bool_)
        for begin, end in itertools.pairwise(ends):
            if begin:
                _bound(self._samples, rows, columns, square, along, farthest)
            radii = spheres.radii if len(spheres.radii) == 1 else spheres.radii[begin:end]
            sight = (spheres.points[begin:end], radii, spheres.in_pixels, camera, columns, rows)
            found = seen[begin:end]
            within += _find_spheres(*sight, box, farthest, square if begin else 0, found.view(np.uint8))
            _cover_spheres(*sight, self._samples, np.flatnonzero(found), begin)
        return within


def _enlarged(item: Spheres, fine: int) -> Spheres:
    """Spheres whose radii are in pixels, in samples."""
    return item._replace(radii=item.radii * np.float32(fine)) if item.in_pixels else item


def _as_paper(paper: Any) -> np.ndarray:
    array = np.asarray(paper, np.uint8)
    return array.reshape(1, 1, 3) if array.ndim == 1 else array
