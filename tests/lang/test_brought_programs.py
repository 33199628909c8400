"""What programs of others write: Python's freedom where kernels have types."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti


@pytest.fixture(autouse=True)
def session() -> None:
    ti.init(default_fp=ti.f64)


def test_bounds_of_ranges_that_are_floats() -> None:
    x = ti.field(ti.i32, 10)
    half = 10 / 2

    @ti.kernel
    def whole():
        for i in range(half):
            x[i] += 1
        for _ in range(1):
            for i in range(half, 10.0):
                x[i] += 2
        for i, j in ti.ndrange(2.0, (0, half)):
            x[i * 5 + j] += 10

    whole()
    assert x.to_numpy().tolist() == [11] * 5 + [12] * 5

    @ti.kernel
    def cut(n: ti.f64):
        for i in range(n):
            x[i] = 0

    with pytest.warns(UserWarning, match="a bound of `range` is an integer: the fraction of .* is cut off"):
        cut(3.9)
    assert x.to_numpy().tolist() == [0, 0, 0, 11, 11] + [12] * 5

    @ti.kernel
    def constant():
        for i in range(3.5, 5):
            x[i] = -1

    with pytest.warns(UserWarning, match="the fraction of 3.5 is cut off"):
        constant()
    assert x.to_numpy().tolist() == [0, 0, 0, -1, -1] + [12] * 5


def test_annotations_of_inlined_functions_do_not_refuse() -> None:
    x = ti.field(ti.f64, 2)

    @ti.func
    def pair(a) -> float:
        return ti.Vector([a, 2 * a])

    @ti.func
    def total(v: float, w: int) -> ti.f64:
        return v[0] + v[1] + w

    @ti.kernel
    def run():
        x[0] = total(pair(1.5), 3)

    with pytest.warns(UserWarning) as caught:
        run()
    shown = [str(one.message) for one in caught]
    assert any("is returned where a number of type f64 is annotated; the annotation is ignored" in one for one in shown)
    assert any("parameter `v` is a number of type f64, and is called with" in one for one in shown)
    assert x[0] == 7.5


@pytest.mark.parametrize("make", [np.array, lambda s: [np.int64(n) for n in s], lambda s: tuple(map(np.int32, s))])
def test_shapes_as_numpy_has_them(make: Any) -> None:
    shape = make([4, 3])
    a, v = ti.field(ti.i32, shape=shape), ti.Vector.field(np.int64(2), ti.f64, shape=shape)
    m, array = ti.Matrix.field(np.int32(2), np.int32(2), ti.f64, shape=shape), ti.ndarray(ti.f64, shape)
    placed, offset = ti.field(ti.i32), ti.field(ti.i32, shape=shape, offset=make([1, 2]))
    ti.root.dense(ti.ij, shape).place(placed)
    assert all(one.shape == (4, 3) for one in (a, v, m, array, placed, offset))
    assert (v.n, m.n, m.m) == (2, 2, 2)
    offset[4, 4] = 1

    @ti.kernel
    def count():
        for i, j in ti.ndrange(*shape):
            a[i, j] += 1
        for i, j in ti.ndrange((0, shape[0]), shape[1]):
            a[i, j] += 10

    count()
    assert (a.to_numpy() == 11).all()
    assert ti.field(ti.i32, shape=np.int64(5)).shape == (5,)


def test_constants_divide_by_zero_as_machine_code_does() -> None:
    zero, direction = 0.0, ti.Vector([0.0, 0.0])
    x = ti.field(ti.f64, 8)

    @ti.kernel
    def constants(n: ti.f64):
        x[0] = 1.0 / zero
        x[1] = -1 / zero
        x[2] = zero / zero
        x[3] = direction.normalized()[1]
        x[4] = 1 / 0
        x[5] = 5.0 // zero
        x[6] = 5.0 % zero
        x[7] = zero**-1

    @ti.kernel
    def computed(z: ti.f64, one: ti.f64):
        x[0] = one / z
        x[1] = -one / z
        x[2] = z / z
        x[3] = ti.Vector([z, z]).normalized()[1]
        x[4] = one / z
        x[5] = 5.0 * one // z
        x[6] = 5.0 * one % z
        x[7] = z**-one

    constants(0.0)
    found = x.to_numpy()
    computed(0.0, 1.0)
    np.testing.assert_array_equal(found, x.to_numpy())
    assert np.isnan(found[[2, 3]]).all() and found[0] == np.inf and found[1] == -np.inf

    @ti.kernel
    def integers():
        x[0] = 1 // 0

    with pytest.raises(ti.TaichiCompilationError, match="division by zero"):
        integers()


def test_what_is_an_instance_of_what() -> None:
    x = ti.field(ti.f64, 12)
    Ball = ti.types.struct(radius=ti.f64)

    @ti.func
    def total(v):
        if ti.static(isinstance(v, ti.Matrix)):
            return v.sum()
        else:
            return v

    @ti.func
    def kind(v):
        if ti.static(type(v) is float):
            return 1
        elif ti.static(type(v) is int):
            return 2
        else:
            return 3

    @ti.kernel
    def run(n: ti.i32, flag: ti.u1):
        v = ti.Vector([1.0, 2.0])
        m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        x[0] = total(v)
        x[1] = total(x[0])
        x[2] = total(ti.Vector([5.0, 6.0]))
        x[3] = 10 * kind(x[0]) + kind(n)
        x[4] = kind(flag)
        x[5] = isinstance(v, ti.Vector) and not isinstance(m, ti.Vector) and isinstance(m, ti.Matrix)
        x[6] = isinstance(n, (float, int)) and not isinstance(n, float) and not isinstance(n, (ti.Matrix, ti.Struct))
        x[7] = isinstance(Ball(1.0), ti.Struct) and not isinstance(Ball(1.0), (int, ti.Matrix))

    run(3, True)
    assert x.to_numpy()[:8].tolist() == [3.0, 3.0, 11.0, 12.0, 3.0, 1.0, 1.0, 1.0]


def test_import_paths_of_the_dialect(tmp_path: Any) -> None:
    program = """
        import tinote as ti
        import tinote.ui.scene as scene
        from tinote.ui.camera import Camera
        from tinote.ui.canvas import Canvas
        from tinote.ui.gui import GUI, hex_to_rgb, rgb_to_hex
        from tinote.ui.window import Window

        assert (GUI, hex_to_rgb, rgb_to_hex) == (ti.GUI, ti.hex_to_rgb, ti.rgb_to_hex)
        assert (Camera, Canvas, Window) == (ti.ui.Camera, ti.ui.Canvas, ti.ui.Window)
        assert scene.Scene is ti.ui.Scene
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_ply_files_by_the_names_of_numpy(tmp_path: Any) -> None:
    names = {"int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint"}
    names |= {"float32": "float", "float64": "double", "float": "float", "int": "int"}
    writer = ti.tools.PLYWriter(num_vertices=2)
    for given in names:
        writer.add_vertex_channel(f"of_{given}", given, np.array([1, 2]))
    writer.export_ascii(str(tmp_path / "names.ply"))
    head = (tmp_path / "names.ply").read_text().split("end_header")[0]
    for given, name in names.items():
        assert f"property {name} of_{given}\n" in head
    with pytest.raises(ValueError, match="a PLY file has no type 'complex64'"):
        writer.add_vertex_channel("z", "complex64", np.array([1, 2]))


def test_breaks_of_outermost_loops_inside_of_other_statements() -> None:
    x = ti.field(ti.i32, 10)

    @ti.kernel
    def branch():
        if True:
            for i in range(10):
                x[i] = 1
                if i == 3:
                    break

    @ti.kernel
    def unrolled():
        for k in ti.static(range(2)):
            for i in range(10):
                if i == 5 + k:
                    break
                x[i] += 10

    @ti.kernel
    def repeated(n: ti.i32):
        while True:
            for i in range(10):
                if i == n:
                    break
                x[i] += 100
            break

    branch()
    assert x.to_numpy().tolist() == [1] * 4 + [0] * 6
    unrolled()
    assert x.to_numpy().tolist() == [21] * 4 + [20, 10] + [0] * 4
    repeated(2)
    assert x.to_numpy().tolist() == [121] * 2 + [21] * 2 + [20, 10] + [0] * 4

    @ti.kernel
    def outermost():
        for i in range(10):
            if i == 3:
                break

    with pytest.raises(ti.TaichiSyntaxError, match="`break` cannot leave a parallel loop"):
        outermost()


def test_objects_that_kernels_make() -> None:
    x, y = ti.field(ti.f64, 4), ti.Vector.field(2, ti.f64, 4, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.data_oriented
    class Ray:
        epsilon = 0.25

        def __init__(self, origin, direction, scale=2.0):
            self.origin = origin
            self.direction = direction
            self.length = direction.norm() * scale

        @ti.func
        def at(self, t):
            return self.origin + t * self.direction

        def shifted(self):
            return Ray(self.at(self.epsilon), self.direction)

    class Hit:
        def __init__(self, t, ray):
            self.t = t
            self.ray = ray

        def point(self):
            return self.ray.at(self.t)

    @ti.func
    def trace(ray):
        return Hit(2.0, ray.shifted())

    @ti.kernel
    def run(s: ti.f64):
        for i in x:
            ray = Ray(ti.Vector([s, 0.0]), ti.Vector([1.0 * i, 2.0]))
            hit = trace(ray)
            x[i] = hit.point()[0] + ray.length
            for _ in range(2):
                ray = Ray(ray.at(1.0), ray.direction, scale=1.0)
            y[i] = ray.origin

    run(10.0)
    i = np.arange(4)
    assert x.to_numpy() == pytest.approx(10 + 2.25 * i + 2 * np.hypot(i, 2))
    assert y.to_numpy() == pytest.approx(np.stack([10 + 2.0 * i, 0 * i + 4.0], 1))

    @ti.kernel
    def total():
        for k in y:
            ray = Ray(y[k], ti.Vector([3.0, 4.0]))
            loss[None] += ray.at(2.0).norm_sqr() + ray.length

    with ti.ad.Tape(loss):
        total()
    assert y.grad.to_numpy() == pytest.approx(2 * (y.to_numpy() + np.array([6.0, 8.0])))


def test_an_attribute_that_might_not_be_there() -> None:
    class Branch:
        def __init__(self, t):
            if t > 0:
                self.t = t

    @ti.kernel
    def run(t: ti.f64) -> ti.f64:
        return Branch(t).t

    with pytest.raises(ti.TaichiCompilationError, match="is made in a branch or a loop"):
        run(1.0)


def test_dataclasses_as_tuples_and_dictionaries() -> None:
    @dataclasses.dataclass
    class Options:
        a: float = 1.5
        b: tuple = (2.0, 3.0)

    options = Options()
    x = ti.field(ti.f64, 4)

    @ti.kernel
    def run():
        a, b = dataclasses.astuple(options)
        named = ti.static(dataclasses.asdict(options))
        other = dataclasses.asdict(options)
        x[0] = a + b[1]
        x[1] = named["a"] + other["b"][0]
        x[2] = dataclasses.replace(options, a=7.0).a

    run()
    assert x.to_numpy().tolist() == [4.5, 3.5, 7.0, 0.0]
    options.a = 10.0
    run()
    assert x.to_numpy().tolist() == [13.0, 12.0, 7.0, 0.0]


def test_structs_that_hold_fields() -> None:
    Particle = ti.types.struct(mass=ti.f64)
    x, v, s = ti.field(ti.f64, 4), ti.Vector.field(2, ti.f64, 4), Particle.field(shape=4)
    state = ti.Struct(x=x, v=v, particles=s, step=0.5, inner=ti.Struct(x=x))
    v.fill(3.0)

    @ti.kernel
    def advance():
        for i in state.x:
            state.x[i] += state.step * state.v[i].sum()
            state.particles[i].mass = i
            state.inner.x[i] += 1.0

    advance()
    assert x.to_numpy().tolist() == [4.0] * 4
    assert s.mass.to_numpy().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert state.x is x
    state.step = 1.0
    advance()
    assert x.to_numpy().tolist() == [11.0] * 4


def test_loops_over_levels() -> None:
    x = ti.field(ti.i32)
    blocks = ti.root.dense(ti.ij, 2)
    cells = blocks.dense(ti.ij, 3)
    cells.place(x)

    @ti.kernel
    def count():
        for i, j in cells:
            x[i, j] += 1
        for at in ti.grouped(x.parent()):
            x[at] += 10
        for i, j in x.snode.parent():
            x[i, j] += 100

    count()
    assert (x.to_numpy() == 111).all()

    @ti.kernel
    def coarse():
        for i, j in blocks:
            x[i, j] = 0

    coarse()
    assert [x[i, i] for i in range(3)] == [0, 0, 111] and x.to_numpy().sum() == 32 * 111

    @ti.kernel
    def corners(level: ti.template()):
        for at in ti.grouped(level):
            x[at * 3] = 7 + at.sum()

    for level in (blocks, x.parent(2)):
        x.fill(0)
        corners(level)
        assert x.to_numpy()[::3, ::3].tolist() == [[7, 8], [8, 9]] and x.to_numpy().sum() == 32

    empty = ti.root.dense(ti.ij, 2)
    with pytest.raises(ti.errors.FieldError, match="no field is placed under this level"):
        corners(empty)


COMPONENT_PLACES: dict[str, Callable[[Any, Any], object]] = {
    "together": lambda v, s: ti.root.dense(ti.i, 4).place(*[v.get_scalar_field(i) for i in range(3)]),
    "as a list": lambda v, s: ti.root.dense(ti.i, 4).place(v.get_field_members()),
    "apart": lambda v, s: [ti.root.dense(ti.i, 4).place(v.get_scalar_field(i)) for i in range(3)],
    "between others": lambda v, s: ti.root.dense(ti.i, 4).place(*v.get_field_members()[:2], s, v.get_scalar_field(2)),
    "in another order": lambda v, s: [ti.root.dense(ti.i, 4).place(v.get_scalar_field(i)) for i in (2, 0, 1)],
    "under several levels": lambda v, s: [
        ti.root.dense(ti.i, 2).dense(ti.i, 2).place(v.get_scalar_field(0)),
        ti.root.dense(ti.i, 4).place(v.get_scalar_field(1), v.get_scalar_field(2)),
    ],
}


@pytest.mark.parametrize("places", COMPONENT_PLACES)
def test_components_placed_one_by_one(places: str) -> None:
    v, s = ti.Vector.field(3, ti.f64, needs_grad=True), ti.field(ti.f64)
    loss = ti.field(ti.f64, (), needs_grad=True)
    COMPONENT_PLACES[places](v, s)
    if places != "between others":
        ti.root.dense(ti.i, 4).place(s)

    @ti.kernel
    def run():
        for i in v:
            loss[None] += (i + 1) * v[i].x * v[i].z

    for i in range(4):
        v[i] = [i + 1, 7, 2]
        s[i] = i
    with ti.ad.Tape(loss):
        run()
    assert loss[None] == 2 * (1 + 4 + 9 + 16) and v.get_scalar_field(0).to_numpy().tolist() == [1, 2, 3, 4]
    assert v.grad.to_numpy().tolist() == [[2 * (i + 1), 0, (i + 1) ** 2] for i in range(4)]
    assert s.to_numpy().tolist() == [0, 1, 2, 3]


def test_components_of_a_matrix_placed_one_by_one() -> None:
    m = ti.Matrix.field(2, 2, ti.i32)
    for i, j in np.ndindex(2, 2):
        ti.root.dense(ti.ij, (2, 3)).place(m.get_scalar_field(int(i), int(j)))
    m[1, 2] = [[1, 2], [3, 4]]
    assert m.shape == (2, 3) and m.to_numpy()[1, 2].tolist() == [[1, 2], [3, 4]]


def test_components_placed_wrongly() -> None:
    v = ti.Vector.field(2, ti.f64)
    ti.root.dense(ti.i, 4).place(v.get_scalar_field(0))
    with pytest.raises(ti.errors.FieldError, match=r"the component 'v\[0\]' is placed already"):
        ti.root.dense(ti.i, 4).place(v.get_scalar_field(0))
    with pytest.raises(ti.errors.FieldError, match=r"need levels of one shape, not \(4,\) and \(5,\)"):
        ti.root.dense(ti.i, 5).place(v.get_scalar_field(1))
    with pytest.raises(ti.errors.FieldError, match="is placed already"):
        ti.root.dense(ti.i, 4).place(v)


def test_numpy_types_annotate_numbers() -> None:
    @ti.kernel
    def total(a: np.float32, b: np.int64, c: np.uint8, d: np.float64, e: np.bool_) -> np.float64:
        return a + b + c + d + ti.cast(e, ti.i32)

    assert total(0.5, 2**20, 255, 0.1, True) == 0.5 + 2**20 + 255 + 0.1 + 1
    with pytest.raises(ti.errors.KernelArgumentError, match="'c'"):
        total(0.1, 1, 256, 0.1, True)

    @ti.func
    def whole(a: np.int32) -> np.float32:
        return a / 4

    @ti.kernel
    def run() -> ti.f64:
        return whole(6) * 0.1

    assert run() == pytest.approx(0.15) and whole(6) == 1.5

    with pytest.raises(ti.errors.KernelTypeError, match=r"`np.complex64`, which is not a type"):

        @ti.kernel
        def wrong(a: np.complex64):
            pass

        wrong(1)


def test_python_takes_other_shapes_than_annotated_as_kernels_do() -> None:
    @ti.func
    def double(a: float) -> float:
        return a * 2

    found = []
    with pytest.warns(UserWarning) as caught:
        found.append(double(ti.Vector([1.0, 2.0])))

    @ti.kernel
    def run() -> ti.math.vec2:
        return double(ti.Vector([1.0, 2.0]))

    assert [str(one.message).partition(" is")[0] for one in caught] == ["parameter `a` of `double`", "`double`"]
    assert all(one.filename == __file__ for one in caught)
    with pytest.warns(UserWarning):
        assert (found[0] == run()).all()
    with pytest.raises(ti.errors.KernelTypeError, match="parameter `a` of `double` is a number"):
        double("text")


def test_the_truth_of_a_field() -> None:
    x, number = ti.field(ti.f64, 3), ti.field(ti.i32, ())
    v = ti.Vector.field(2, ti.f64, ())
    for field in (x, v, number):
        with pytest.raises(ti.errors.KernelTypeError, match=r"the truth of the field .* is not defined") as caught:
            bool(field)
        wanted = f"{field.name}[None]` is its value" if field is number else "to_numpy().any()"
        assert wanted in caught.value.hint


def test_vectors_and_matrices_print_in_python_as_in_kernels(capfd: Any) -> None:
    v, m = ti.Vector([1.5, -2.0]), ti.Matrix([[1, 2], [3, 4]])

    @ti.kernel
    def run():
        print(v, m)
        print(f"{v:.2f} {m:3d}")

    run()
    ti.sync()
    print(v, m)
    print(f"{v:.2f} {m:3d}")
    printed = capfd.readouterr().out.splitlines()
    assert printed[:2] == printed[2:] == ["[1.5, -2.0] [[1, 2], [3, 4]]", "[1.50, -2.00] [[  1,   2], [  3,   4]]"]
    assert repr(v) == "Vector([1.5, -2.0])"


@pytest.mark.parametrize("t", ["float", "float32", "f32", np.float32, ti.f32])
def test_types_of_ply_channels(t: Any, tmp_path: Any) -> None:
    writer = ti.tools.PLYWriter(num_vertices=2)
    writer.add_vertex_channel("heat", t, np.array([1.0, 2.0]))
    writer.export(str(tmp_path / "points.ply"))
    written = (tmp_path / "points.ply").read_bytes()
    assert b"property float heat\n" in written and written.endswith(np.array([1.0, 2.0], "<f4").tobytes())
