"""`ti.math`: types and their constructors, swizzles, transformations and complex numbers; in kernels and in Python."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tinote as ti
import tinote.math as tm
from tinote.math import mat2, mat3, mat4, vec2, vec3, vec4

TYPES = [(ti.f32, np.float32), (ti.f64, np.float64)]


def test_constants() -> None:
    assert (tm.pi, tm.e, tm.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(tm.nan)
    assert ti.math is tm
    assert all(hasattr(tm, name) for name in tm.__all__)


def test_constructors_in_kernels() -> None:
    out = ti.Vector.field(4, ti.f32, shape=9)
    matrices = ti.Matrix.field(2, 2, ti.f32, shape=4)
    whole = ti.Vector.field(3, ti.i32, shape=3)

    @ti.kernel
    def run(k: ti.f32):
        a, b = vec2(1, k), vec3(5.0)
        out[0] = vec4(a, 3, 4)
        out[1] = vec4(b, k)
        out[2] = vec4(7)
        out[3] = vec4(a, a)
        out[4] = vec4(0, b.yz, 1)
        out[5] = vec4([k, 2, 3, 4])
        out[6] = vec4(vec3(a, 9), 8)
        out[7] = vec4(a.yx, ti.Vector([1, 2]))
        out[8] = vec4(0.0) + k
        matrices[0] = mat2([[1, 2], [3, k]])
        matrices[1] = mat2(a, vec2(3, 4))
        matrices[2] = mat2(1, 2, k, 4)
        matrices[3] = mat2(k)
        whole[0] = tm.ivec3(1.9, -2.7, k)
        whole[1] = tm.ivec3(b)
        whole[2] = tm.ivec3(tm.uvec2(1, 2), 3)

    run(6.0)
    wanted = [
        [1, 6, 3, 4],
        [5, 5, 5, 6],
        [7] * 4,
        [1, 6, 1, 6],
        [0, 5, 5, 1],
        [6, 2, 3, 4],
        [1, 6, 9, 8],
        [6, 1, 1, 2],
        [6] * 4,
    ]
    assert out.to_numpy().tolist() == wanted
    assert matrices.to_numpy().tolist() == [[[1, 2], [3, 6]], [[1, 6], [3, 4]], [[1, 2], [6, 4]], [[6, 6], [6, 6]]]
    assert whole.to_numpy().tolist() == [[1, -2, 6], [5, 5, 5], [1, 2, 3]]


def test_constructors_in_python() -> None:
    a = vec2(1, 6)
    assert vec4(a, 3, 4).to_list() == [1, 6, 3, 4]
    assert vec4(7).to_list() == [7] * 4
    assert vec4(0, vec3(5).yz, 1).to_list() == [0, 5, 5, 1]
    assert vec4([1, 2, 3, 4]).to_list() == [1, 2, 3, 4]
    assert mat2([[1, 2], [3, 4]]).to_list() == mat2(1, 2, 3, 4).to_list() == mat2(vec2(1, 2), vec2(3, 4)).to_list()
    assert tm.ivec3(1.9, -2.7, 3).to_list() == [1, -2, 3]
    assert (vec3.n, vec3.m, mat3.m, mat3.shape) == (3, 1, 3, (3, 3))
    assert repr(vec3) == "ti.types.vector(3, float)"
    for wrong in (lambda: vec3(1, 2), lambda: vec2(vec3(1)), lambda: mat2(1, 2, 3)):
        with pytest.raises(ti.errors.FieldError, match="components"):
            wrong()


def test_the_types_follow_the_session() -> None:
    def size() -> int:
        @ti.kernel
        def third() -> ti.f64:
            return vec2(1.0 / 3.0, 0)[0]

        return 64 if third() == 1 / 3 else 32

    assert (size(), vec3.dtype, tm.ivec2.dtype, tm.uvec2.dtype) == (32, ti.f32, ti.i32, ti.u32)
    ti.init(default_fp=ti.f64, default_ip=ti.i64)
    assert (size(), vec3.dtype, tm.ivec2.dtype, tm.uvec2.dtype) == (64, ti.f64, ti.i64, ti.u64)
    assert vec3 == ti.types.vector(3, ti.f64)


def test_annotations_and_fields() -> None:
    field = vec3.field(shape=2)
    frames = mat3.field(shape=2, needs_grad=True)

    @ti.func
    def twice(v: vec3) -> vec3:
        return 2 * v

    @ti.kernel
    def run(v: vec3, m: mat2) -> vec2:
        field[0] = twice(v)
        field[1] = twice(tm.ivec3(1, 2, 3))
        frames[0] = tm.eye(3) * 2
        return m @ v.xy

    assert run(vec3(1, 2, 3), mat2(0, 1, 1, 0)).to_list() == [2, 1]
    assert field.to_numpy().tolist() == [[2, 4, 6], [2, 4, 6]]
    assert frames.to_numpy()[0].tolist() == (2 * np.eye(3)).tolist()


def test_swizzles_in_python() -> None:
    v = vec4(1, 2, 3, 4)
    assert v.wzyx.to_list() == v.abgr.to_list() == [4, 3, 2, 1]
    assert v.xx.to_list() == [1, 1]
    v.xy = v.zw
    assert v.to_list() == [3, 4, 3, 4]
    v.zx = [9, 8]
    assert v.to_list() == [8, 4, 9, 4]
    v.rgb *= 2
    assert v.to_list() == [16, 8, 18, 4]
    v.w = -1
    assert v.w == -1
    field = vec3.field(shape=2)
    field[1].zy = (4, 5)
    field[1].x = 6
    assert field.to_numpy().tolist() == [[0, 0, 0], [6, 5, 4]]
    for wrong in ("xg", "foo", "z"):
        with pytest.raises(AttributeError, match=wrong):
            getattr(vec2(1, 2), wrong)
        with pytest.raises(AttributeError, match=wrong):
            setattr(vec2(1, 2), wrong, 1.0)


def test_slices() -> None:
    m = ti.Matrix.field(3, 3, ti.f32, shape=3)
    v = ti.Vector.field(4, ti.f32, shape=5)
    product = ti.Matrix.field(2, 2, ti.f32, shape=())

    @ti.kernel
    def run():
        a = ti.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
        product[None] = a[0:2, :] @ a[:, 1:]
        a[:, 0], a[:, 2] = a[:, 2], a[:, 0]
        a[1, 1:] = 0.5
        m[0] = a
        m[1][1, :] = a[:, 1]
        m[1][::2, 0:2] += 5.0
        m[2][0:2, 0:2] = ti.Matrix([[1, 2], [3, 4]])
        x = ti.Vector([1.0, 2.0, 3.0, 4.0])
        v[0][1:3] = x[2:]
        v[0].xw = x[-2:]
        x[0:3], x[1:4] = x[1:4], x[0:3]
        v[1] = x
        x[::-1] = ti.Vector([1.0, 2.0, 3.0, 4.0])
        v[2] = x
        for k in range(2):
            v[3][k] = x[1:3][k]
            v[3][0:2] += 10.0
        v[4].xyz = a[2, :]

    run()
    a = np.arange(1.0, 10).reshape(3, 3)
    assert product.to_numpy().tolist() == (a[0:2] @ a[:, 1:]).tolist()
    a = a[:, ::-1].copy()
    a[1, 1:] = 0.5
    b = np.zeros((3, 3))
    b[1] = a[:, 1]
    b[::2, :2] += 5
    c = np.zeros((3, 3))
    c[:2, :2] = [[1, 2], [3, 4]]
    assert m.to_numpy().tolist() == [a.tolist(), b.tolist(), c.tolist()]
    wanted = [[3, 3, 4, 4], [2, 1, 2, 3], [4, 3, 2, 1], [23, 12, 0, 0], [*a[2], 0]]
    assert v.to_numpy().tolist() == wanted


def test_rows_and_columns_chosen_at_run_time() -> None:
    m = ti.Matrix.field(3, 3, ti.f32, shape=2)
    row = ti.Vector.field(3, ti.f32, shape=5)

    @ti.kernel
    def run(r: ti.i32, c: ti.i32):
        a = m[0]
        row[0] = m[0][r, :]
        row[1] = (a @ a)[:, c]
        a[r, :] += 1
        a[:, c] = 2 * a[r, :]
        for k in range(3):
            row[2][k] = a[k, 1:].sum()
        row[3] = a[0:2, :][r % 2, :]
        row[4] = ti.Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]])[r, :]
        m[1][r, 0:2] = ti.Vector([5, 6])
        m[1][:, c] += 1

    start = np.arange(9, dtype=np.float32).reshape(3, 3)
    for r, c in ((1, 0), (2, 1)):
        m.from_numpy(np.stack([start, np.zeros((3, 3), np.float32)]))
        run(r, c)
        a, b = start.copy(), np.zeros((3, 3))
        wanted = [a[r].copy(), (a @ a)[:, c]]
        a[r] += 1
        a[:, c] = 2 * a[r]
        wanted += [a[:, 1:].sum(1), a[r % 2], np.arange(1, 10).reshape(3, 3)[r]]
        b[r, :2] = 5, 6
        b[:, c] += 1
        np.testing.assert_array_equal(row.to_numpy(), wanted)
        np.testing.assert_array_equal(m[1].to_numpy(), b)
    with pytest.raises(IndexError):
        run(3, 0)


def test_additions_to_slices_of_fields_are_atomic() -> None:
    v = ti.Vector.field(3, ti.i32, shape=())

    @ti.kernel
    def run():
        for _ in range(1000):
            v[None][0:2] += 1
            v[None].zx += ti.Vector([1, 2])

    run()
    assert v.to_numpy().tolist() == [3000, 1000, 1000]


def test_wrong_slices() -> None:
    v = ti.Vector.field(3, ti.f32, shape=())

    @ti.kernel
    def too_long():
        v[None][0:2] = ti.Vector([1.0, 2.0, 3.0])

    @ti.kernel
    def at_run_time(n: ti.i32):
        v[None][0:n] = 1.0

    @ti.kernel
    def nothing():
        v[None][2:1] = 1.0

    @ti.kernel
    def standing():
        v[None][::0] = 1.0

    for kernel, arguments, words in (
        (too_long, (), "does not fit"),
        (at_run_time, (2,), "known at compile time"),
        (nothing, (), "empty"),
        (standing, (), "must not be zero"),
    ):
        with pytest.raises(ti.TaichiCompilationError, match=words):
            kernel(*arguments)


def rotation(axis: str, angle: float) -> np.ndarray:
    """The 4x4 matrix that turns column vectors counter-clockwise."""
    c, s = math.cos(angle), math.sin(angle)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    m = np.eye(4)
    m[i, i], m[i, j], m[j, i], m[j, j] = c, -s, s, c
    return m


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
def test_transformations(dtype: Any, numpy_type: Any) -> None:
    ti.init(default_fp=dtype)
    out = ti.Matrix.field(4, 4, dtype, shape=6)
    plane = ti.Matrix.field(2, 2, dtype, shape=())

    @ti.kernel
    def run(a: float, b: float, c: float):
        out[0] = tm.rot_yaw_pitch_roll(a, b, c)
        out[1] = tm.rotation3d(a, b, c)
        out[2] = tm.rot_by_axis(vec3(0, 0, 5), a)
        out[3] = tm.rot_by_axis(vec3(1, 2, 3), b)
        out[4] = tm.translate(a, b, c)
        out[5] = tm.scale(a, b, c)
        plane[None] = tm.rotation2d(a)

    a, b, c = 0.52, -0.785, 1.046
    run(a, b, c)
    found = out.to_numpy()
    eps = 8 * float(np.finfo(numpy_type).eps)
    moved = np.eye(4)
    moved[:3, 3] = a, b, c
    wanted = [
        rotation("z", -c) @ rotation("x", -b) @ rotation("y", -a),
        rotation("z", -b) @ rotation("x", -a) @ rotation("y", -c),
        rotation("z", -a),
        None,
        moved,
        np.diag([a, b, c, 1]),
    ]
    for k, matrix in enumerate(wanted):
        if matrix is not None:
            np.testing.assert_allclose(found[k], matrix, atol=eps)
    turned = found[3][:3, :3].astype(float)
    np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=eps)
    np.testing.assert_allclose(turned @ [1, 2, 3], [1, 2, 3], atol=4 * eps)
    assert np.trace(turned) == pytest.approx(1 + 2 * math.cos(b), abs=eps)
    # Row vectors turn counter-clockwise about the axis.
    x = np.array([3.0, 0, -1])
    assert np.dot(np.cross(x, x @ turned), [1, 2, 3]) / np.linalg.norm([1, 2, 3]) == pytest.approx(
        np.dot(x, x) * math.sin(b), abs=32 * eps
    )
    assert plane.to_numpy() == pytest.approx(rotation("z", a)[:2, :2], abs=eps)
    # The same in Python scope.
    assert tm.rot_yaw_pitch_roll(a, b, c).to_numpy() == pytest.approx(wanted[0], abs=eps)
    assert tm.rotation3d(a, b, c).to_numpy() == pytest.approx(wanted[1], abs=eps)
    assert tm.translate(a, b, c).to_numpy() == pytest.approx(moved, abs=eps)
    assert tm.rotation2d(a).to_numpy() == pytest.approx(rotation("z", a)[:2, :2], abs=eps)


def test_the_documented_rotation() -> None:
    """The example that the dialect's documentation of `rotation3d` gives."""
    wanted = [
        [0.05048351, -0.61339645, -0.78816002, 0],
        [0.65833154, 0.61388511, -0.4355969, 0],
        [0.75103329, -0.49688014, 0.4348093, 0],
        [0, 0, 0, 1],
    ]
    assert tm.rotation3d(0.52, -0.785, 1.046).to_numpy() == pytest.approx(np.array(wanted), abs=1e-6)


COMPLEX = [1 + 2j, -3 + 0.5j, -4 + 0j, 0.3 - 2j, -1e-3 - 1e-3j, 5 + 0j, 2j, -2j]


@pytest.mark.parametrize("dtype, numpy_type", TYPES)
def test_complex_numbers(dtype: Any, numpy_type: Any) -> None:
    z, w = np.array(COMPLEX), np.array(COMPLEX)[::-1]
    a, b = ti.Vector.field(2, dtype, shape=len(z)), ti.Vector.field(2, dtype, shape=len(z))
    a.from_numpy(np.stack([z.real, z.imag], -1).astype(numpy_type))
    b.from_numpy(np.stack([w.real, w.imag], -1).astype(numpy_type))
    out = ti.Vector.field(2, dtype, shape=(8, len(z)))

    @ti.kernel
    def run():
        for i in a:
            out[0, i] = tm.cmul(a[i], b[i])
            out[1, i] = tm.cdiv(a[i], b[i])
            out[2, i] = tm.cconj(a[i])
            out[3, i] = tm.cinv(a[i])
            out[4, i] = tm.csqrt(a[i])
            out[5, i] = tm.cexp(a[i])
            out[6, i] = tm.clog(a[i])
            out[7, i] = tm.cpow(a[i], 2.5)

    run()
    wanted = np.array([z * w, z / w, z.conj(), 1 / z, np.sqrt(z), np.exp(z), np.log(z), z**2.5])
    found = out.to_numpy().astype(float) @ [1, 1j]
    np.testing.assert_allclose(found, wanted, rtol=64 * float(np.finfo(numpy_type).eps), atol=1e-300)
    for k, (x, y) in enumerate(zip(z.tolist(), w.tolist(), strict=True)):
        x, y = ti.Vector([x.real, x.imag]), ti.Vector([y.real, y.imag])
        python = [
            tm.cmul(x, y),
            tm.cdiv(x, y),
            tm.cconj(x),
            tm.cinv(x),
            tm.csqrt(x),
            tm.cexp(x),
            tm.clog(x),
            tm.cpow(x, 2.5),
        ]
        np.testing.assert_allclose([v[0] + 1j * v[1] for v in python], wanted[:, k], rtol=1e-14, atol=1e-300)


def test_complex_numbers_at_zero() -> None:
    @ti.kernel
    def run() -> vec4:
        zero = vec2(0.0)
        return vec4(tm.csqrt(zero), tm.cpow(zero, 3))

    assert run().to_list() == [0, 0, 0, 0]


def test_geometry() -> None:
    out = ti.Vector.field(3, ti.f64, shape=5)
    numbers = ti.field(ti.f64, shape=3)
    a, n = np.array([1.0, -2.0, 0.5]), np.array([0.6, 0.0, 0.8])

    @ti.kernel
    def run():
        v, m = ti.Vector([1.0, -2.0, 0.5], ti.f64), ti.Vector([0.6, 0.0, 0.8], ti.f64)
        out[0] = tm.normalize(v)
        out[1] = tm.cross(v, m)
        out[2] = tm.reflect(v, m)
        out[3] = tm.refract(tm.normalize(v), m, 0.5)
        out[4] = tm.refract(tm.normalize(v), m, 5.0)
        numbers[0] = tm.length(v)
        numbers[1] = tm.distance(v, m)
        numbers[2] = tm.dot(v, m)

    run()
    unit = a / np.linalg.norm(a)
    # Snell's law: the part along the surface is scaled by the ratio of the indices.
    refracted = 0.5 * (unit - (unit @ n) * n)
    refracted -= math.sqrt(1 - refracted @ refracted) * n
    wanted = [unit, np.cross(a, n), a - 2 * (a @ n) * n, refracted, np.zeros(3)]
    np.testing.assert_allclose(out.to_numpy(), wanted, atol=1e-14)
    np.testing.assert_allclose(numbers.to_numpy(), [np.linalg.norm(a), np.linalg.norm(a - n), a @ n], atol=1e-14)
    v, m = ti.Vector(a), ti.Vector(n)
    python = [
        tm.normalize(v),
        tm.cross(v, m),
        tm.reflect(v, m),
        tm.refract(tm.normalize(v), m, 0.5),
        tm.refract(tm.normalize(v), m, 5.0),
    ]
    np.testing.assert_allclose([p.to_numpy() for p in python], wanted, atol=1e-14)
    assert [tm.length(v), tm.distance(v, m), tm.dot(v, m)] == pytest.approx(numbers.to_numpy())
    assert tm.vdir(0.3).to_list() == pytest.approx([math.cos(0.3), math.sin(0.3)])


def test_constructors_that_the_dialect_names() -> None:
    out = ti.Matrix.field(2, 3, ti.f32, shape=4)
    square = ti.Matrix.field(2, 2, ti.f32, shape=2)
    vector = ti.Vector.field(3, ti.i32, shape=2)

    @ti.kernel
    def run(k: ti.f32):
        out[0] = ti.Matrix.rows([ti.Vector([1, 2, 3]), ti.Vector([k, 5, 6])])
        out[1] = ti.Matrix.cols([ti.Vector([1, 2]), ti.Vector([k, 4]), ti.Vector([5, 6])])
        out[2] = ti.Matrix.one(ti.f32, 2, 3) * k
        out[3] = ti.Matrix.zero(ti.f32, 2, 3)
        square[0] = ti.Matrix.diag(2, k)
        square[1] = ti.Matrix.identity(ti.f32, 2)
        vector[0] = ti.Matrix.unit(3, 1, ti.i32)
        vector[1] = ti.Vector.one(ti.i32, 3)

    run(4.0)
    wanted = [
        ti.Matrix.rows([[1, 2, 3], [4, 5, 6]]),
        ti.Matrix.cols([[1, 2], [4, 4], [5, 6]]),
        ti.Matrix.one(ti.f32, 2, 3) * 4,
        ti.Matrix.zero(ti.f32, 2, 3),
    ]
    assert out.to_numpy().tolist() == [[[1, 2, 3], [4, 5, 6]], [[1, 4, 5], [2, 4, 6]], [[4] * 3] * 2, [[0] * 3] * 2]
    assert [w.to_list() for w in wanted] == out.to_numpy().tolist()
    assert (
        square.to_numpy().tolist()
        == [ti.Matrix.diag(2, 4).to_list(), ti.Matrix.identity(float, 2).to_list()]
        == [[[4, 0], [0, 4]], [[1, 0], [0, 1]]]
    )
    assert (
        vector.to_numpy().tolist()
        == [ti.Matrix.unit(3, 1, int).to_list(), ti.Vector.one(ti.i32, 3).to_list()]
        == [[0, 1, 0], [1, 1, 1]]
    )


def test_homogeneous_coordinates() -> None:
    @ti.kernel
    def run(p: vec3) -> vec4:
        m: mat4 = tm.translate(1, 2, 3) @ tm.scale(2, 2, 2)
        return m @ vec4(p, 1)

    assert run(vec3(1, 0, -1)).to_list() == [3, 2, 1, 1]
