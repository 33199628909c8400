"""Arrays as arguments of kernels: NumPy's memory and our own, of every type and shape, against NumPy."""

from __future__ import annotations

import copy
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelIndexError, KernelTypeError

TYPES = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}


@ti.kernel
def add_one(a: ti.types.ndarray()):
    for i in ti.grouped(a):
        a[i] += 1


@ti.kernel
def double(a: ti.types.ndarray(ndim=1)):
    for i in a:
        a[i] *= 2


@ti.kernel
def at(a: ti.types.ndarray(), i: ti.i32) -> ti.f32:
    return a[i]


@ti.kernel
def matmul(a: ti.types.ndarray(ndim=2), b: ti.types.ndarray(ndim=2), c: ti.types.ndarray(ndim=2)):
    for i, j in ti.ndrange(a.shape[0], b.shape[1]):
        total = ti.cast(0, ti.f64)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


# ---- NumPy arrays


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (1, 2, 1, 2, 1, 2, 1, 2)])
def test_every_type_and_rank_in_place(name: str, shape: tuple[int, ...]) -> None:
    start = np.arange(np.prod(shape), dtype=TYPES[name]).reshape(shape)
    a = start.copy()
    add_one(a)
    np.testing.assert_array_equal(a, start + TYPES[name](1))
    assert a.dtype == TYPES[name]


def test_truth_values() -> None:
    @ti.kernel
    def flip(a: ti.types.ndarray(dtype=ti.u1, ndim=1)):
        for i in a:
            a[i] = not a[i]

    a = np.array([True, False, True])
    flip(a)
    assert a.tolist() == [False, True, False]


def test_a_single_element() -> None:
    @ti.kernel
    def bump(a: ti.types.ndarray(ndim=0)):
        a[None] += 5

    a = np.array(1.0)
    bump(a)
    assert a == 6.0


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape, np.float32)
    add_one(a)
    assert a.shape == shape
    with pytest.raises(KernelIndexError, match=r"out of bounds for 'a' of shape \(0,\): it has no elements"):
        at(np.zeros(0, np.float32), 0)


def test_shapes_share_an_instance_and_types_do_not() -> None:
    @ti.kernel
    def fill(a: ti.types.ndarray(), v: ti.i32):
        for i in ti.grouped(a):
            a[i] = v

    for shape in [(1,), (5,), (100_000,)]:
        a = np.zeros(shape, np.float32)
        fill(a, 3)
        assert (a == 3).all()
    assert len(fill.instances) == 1
    fill(np.zeros((2, 2), np.float32), 1)
    assert len(fill.instances) == 2
    fill(np.zeros(5, np.float64), 1)
    assert len(fill.instances) == 3
    fill(ti.ndarray(ti.f32, 4), 1)
    assert len(fill.instances) == 3
    assert "f32 array of 1 dimension" in repr(fill.instances)


def test_extents_and_loops_over_them() -> None:
    rng = np.random.default_rng(1)
    for n, k, m in [(3, 4, 5), (40, 1, 7), (1, 30, 1)]:
        a, b, c = rng.random((n, k)), rng.random((k, m)), np.full((n, m), np.nan)
        matmul(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-13)


def test_shape_is_usable_as_a_value() -> None:
    @ti.kernel
    def described(a: ti.types.ndarray()) -> ti.i32:
        n, m = a.shape
        return n * 1000 + m

    assert described(np.zeros((3, 17))) == 3017


def test_vectors_and_matrices_in_the_last_dimensions() -> None:
    @ti.kernel
    def lengths(v: ti.types.ndarray(dtype=ti.types.vector(3, ti.f64), ndim=1), out: ti.types.ndarray(ndim=1)):
        for i in v:
            out[i] = v[i].norm()
            v[i] = 2 * v[i]

    v = np.random.default_rng(2).random((9, 3))
    start, out = v.copy(), np.zeros(9)
    lengths(v, out)
    np.testing.assert_allclose(out, np.linalg.norm(start, axis=1), rtol=1e-14)
    np.testing.assert_array_equal(v, 2 * start)

    @ti.kernel
    def transpose(m: ti.types.ndarray(dtype=ti.types.matrix(2, 2, ti.f32))):
        for i in ti.grouped(m):
            m[i] = m[i].transpose()

    m = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    wanted = m.swapaxes(2, 3).copy()
    transpose(m)
    np.testing.assert_array_equal(m, wanted)

    @ti.kernel
    def old_spelling(v: ti.types.ndarray(element_dim=1)):
        for i in v:
            v[i][0] = 7

    w = np.zeros((4, 2), np.int32)
    old_spelling(w)
    assert w.tolist() == [[7, 0]] * 4


def test_arrays_reach_device_functions() -> None:
    @ti.func
    def put(a: ti.types.ndarray(), i: ti.i32, v: ti.f32):
        a[i] = v

    @ti.kernel
    def run(a: ti.types.ndarray(ndim=1)):
        for i in range(a.shape[0]):
            put(a, i, 1.5 * i)

    a = np.zeros(6, np.float32)
    run(a)
    np.testing.assert_array_equal(a, 1.5 * np.arange(6))


def test_atomics_on_arrays() -> None:
    @ti.kernel
    def histogram(a: ti.types.ndarray(ndim=1), counts: ti.types.ndarray(ndim=1)):
        for i in a:
            ti.atomic_add(counts[a[i]], 1)

    a = np.random.default_rng(3).integers(0, 10, 100_000).astype(np.int32)
    counts = np.zeros(10, np.int32)
    histogram(a, counts)
    np.testing.assert_array_equal(counts, np.bincount(a))


def test_arrays_with_scalars_and_templates_and_random_numbers() -> None:
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def mixed(k: ti.f32, a: ti.types.ndarray(), f: ti.template(), n: ti.i32, b: ti.types.ndarray()) -> ti.f32:
        for i in f:
            f[i] = k * a[i] + n * b[i] + 0 * ti.random()
        return k + n

    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float64)
    assert mixed(2, a, x, 3, b) == 5
    np.testing.assert_array_equal(x.to_numpy(), 2 * a + 3)


# ---- two names for one memory


def test_aliases_see_each_others_writes() -> None:
    @ti.kernel
    def through(a: ti.types.ndarray(), b: ti.types.ndarray()) -> ti.f32:
        a[0] = 1.0
        b[0] = 2.0
        a[1] = a[0] + 1.0
        return a[0]

    a = np.zeros(2, np.float32)
    assert through(a, a) == 2.0
    assert a.tolist() == [2.0, 3.0]


def test_aliases_in_serial_loops() -> None:
    @ti.kernel
    def shift(a: ti.types.ndarray(), b: ti.types.ndarray()):
        ti.loop_config(serialize=True)
        for i in range(a.shape[0]):
            b[i] = a[i] + 1

    memory = np.zeros(101, np.int32)
    shift(memory[:-1], memory[1:])
    np.testing.assert_array_equal(memory, np.arange(101))


def test_aliases_that_accumulate_in_parallel() -> None:
    @ti.kernel
    def both(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            a[i] += 1
            b[a.shape[0] - 1 - i] += 1

    memory = np.zeros(200_000, np.int64)
    both(memory, memory)
    assert (memory == 2).all()


def test_a_view_of_a_field_is_the_field() -> None:
    x = ti.field(ti.i32, shape=3)

    @ti.kernel
    def mixed(a: ti.types.ndarray()) -> ti.i32:
        x[0] = 1
        a[0] = 5
        return x[0]

    assert mixed(x.numpy_view()) == 5


# ---- lifetime and threads


def test_arrays_are_let_go_after_the_launch() -> None:
    class Watched(np.ndarray):
        pass

    a = np.zeros(10).view(Watched)
    double(a)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_ndarrays_are_let_go_too() -> None:
    x = ti.ndarray(ti.f32, shape=4)
    double(x)
    memory, gone = weakref.ref(x.memory), weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and memory() is None


def test_profiled_launches() -> None:
    ti.init(arch=ti.cpu, kernel_profiler=True)
    a = np.ones(5, np.float32)
    double(a)
    assert (a == 2).all()


def test_without_bounds_checks() -> None:
    ti.init(arch=ti.cpu, bounds_check=False)
    rng = np.random.default_rng(4)
    a, b, c = rng.random((4, 5)), rng.random((5, 3)), np.zeros((4, 3))
    matmul(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-13)


def test_temporary_arrays() -> None:
    for n in range(1, 200):
        assert at(np.full(n, n, np.float32), n - 1) == n


def test_threads_launch_with_arrays_of_their_own() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            a = rng.integers(0, 100, rng.integers(1, 50)).astype(np.int32)
            wanted = a * 2
            double(a)
            if not np.array_equal(a, wanted):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- errors


def test_bounds_errors_name_the_argument_and_its_shape() -> None:
    with pytest.raises(KernelIndexError, match=r"index 7 is out of bounds for 'a' of shape \(5,\): valid are 0 to 4"):
        at(np.zeros(5, np.float32), 7)
    with pytest.raises(KernelIndexError, match=r"index -1 is out of bounds for 'a' of shape \(3,\)"):
        at(np.zeros(3, np.float32), -1)

    @ti.kernel
    def read(a: ti.types.ndarray(), i: ti.i32, j: ti.i32) -> ti.f32:
        return a[i, j]

    with pytest.raises(KernelIndexError, match=r"index 4 is out of bounds for axis 1 of 'a' of shape \(3, 4\): valid"):
        read(np.zeros((3, 4), np.float32), 0, 4)
    with pytest.raises(KernelIndexError, match=r"index 3 is out of bounds for axis 0 of 'a' of shape \(3, 4\): valid"):
        read(np.zeros((3, 4), np.float32), 3, 0)


def test_bounds_of_one_array_in_a_loop_over_another() -> None:
    @ti.kernel
    def copy(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            b[i] = a[i]

    with pytest.raises(KernelIndexError, match=r"out of bounds for 'b' of shape \(3,\)"):
        copy(np.zeros(5), np.zeros(3))
    b = np.zeros(7)
    copy(np.ones(5), b)
    assert b.tolist() == [1] * 5 + [0] * 2


def refused(value: Any, annotation: Any = None) -> KernelTypeError:
    def k(a):  # the line of the error
        for i in ti.grouped(a):
            a[i] = a[i]

    k.__annotations__["a"] = annotation or ti.types.ndarray()
    with pytest.raises(KernelTypeError) as caught:
        ti.kernel(k)(value)
    assert "the line of the error" in str(caught.value)
    return caught.value


def test_wrong_arrays_are_refused_with_the_line() -> None:
    locked = np.zeros(3)
    locked.flags.writeable = False
    assert "read-only" in refused(locked).message
    assert "has 1 dimensions, and is called with an array of shape (2, 2)" in (
        refused(np.zeros((2, 2)), ti.types.ndarray(ndim=1)).message
    )
    error = refused(np.zeros(3), ti.types.ndarray(dtype=ti.f32))
    assert "is an array of f32, and is called with one of f64" in error.message and "np.float32" in error.hint
    assert "complex128" in refused(np.zeros(3, complex)).message
    assert "object" in refused(np.array([None])).message
    assert ">f8" in refused(np.zeros(3, ">f8")).message
    assert "not aligned" in refused(np.frombuffer(bytearray(17), np.float64, 2, 1)).message
    assert "32-bit indices" in refused(np.zeros((2**40, 0), np.int8)).message
    assert "masked" in refused(np.ma.masked_array([1.0, 2.0])).message
    assert "is called with [1, 2]" in refused([1, 2]).message
    assert "is called with 3" in refused(3).message
    vectors = ti.types.ndarray(dtype=ti.types.vector(3, ti.f64), ndim=1)
    assert (
        "elements of shape (3,), and is called with elements of shape (2,)"
        in refused(np.zeros((5, 2)), vectors).message
    )
    numbers = ti.types.ndarray(dtype=ti.f32, ndim=1)
    assert "elements of shape (3,)" in refused(ti.Vector.ndarray(3, ti.f32, 5), numbers).message
    assert "with a gradient" in refused(ti.ndarray(ti.f32, 3), ti.types.ndarray(needs_grad=True)).message


def test_read_only_arrays_can_be_read() -> None:
    a = np.arange(4, dtype=np.float32)
    a.flags.writeable = False
    assert at(a, 3) == 3
    assert at(np.broadcast_to(np.float32(2), (1,)), 0) == 2


def test_wrong_annotations() -> None:
    with pytest.raises(FieldError, match="ndim of an array type"):
        ti.types.ndarray(ndim=-1)
    with pytest.raises(FieldError, match="boundary"):
        ti.types.ndarray(boundary="wrap")
    with pytest.raises(FieldError, match="contradicts"):
        ti.types.ndarray(dtype=ti.types.vector(2, ti.f32), element_shape=(3,))
    with pytest.raises(FieldError, match="not a number type"):
        ti.types.ndarray(dtype="nonsense")


def test_scalars_next_to_arrays_are_still_checked() -> None:
    with pytest.raises(KernelTypeError, match="argument 'i' of kernel 'at' must be a number of type i32"):
        at(np.zeros(3, np.float32), "x")


def test_types_make_arrays() -> None:
    v, m = ti.types.vector(4, ti.f32).ndarray(shape=3), ti.math.mat2.ndarray(shape=(2, 5), needs_grad=True)
    assert v.to_numpy().shape == (3, 4) and m.to_numpy().shape == (2, 5, 2, 2)
    assert isinstance(v, ti.VectorNdarray) and isinstance(m, ti.MatrixNdarray) and m.grad is not None


# ---- arrays whose elements do not lie one after the other

LAID_OUT = {
    "step": lambda whole: whole[::2, 1],
    "turned round": lambda whole: whole[::-1, 0],
    "Fortran": lambda whole: np.asfortranarray(whole),
    "transposed": lambda whole: whole.T,
    "column": lambda whole: whole[:, 1:2],
    "three axes": lambda whole: whole.reshape(4, 2, 2).transpose(2, 0, 1),
}


@ti.kernel
def number(a: ti.types.ndarray(), start: ti.i32):
    for index in ti.grouped(a):
        digits = 0
        for k in ti.static(range(len(a.shape))):
            digits = digits * 10 + index[k]
        a[index] = a[index] + start + digits


@pytest.mark.parametrize("name", LAID_OUT)
@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_arrays_of_any_layout_are_copied_in_and_back(name: str, arch: Any) -> None:
    ti.init(arch=arch)
    whole = np.arange(16, dtype=np.float32).reshape(4, 4)
    part = LAID_OUT[name](whole)
    expected = part.copy(order="C")
    number(expected, 100)
    with pytest.warns(UserWarning, match="do not lie one after the other") as said:
        number(part, 100)
        number(part, 0)
    number(expected, 0)
    assert len(said) == 1 and said[0].filename == __file__
    np.testing.assert_array_equal(part, expected)
    untouched = np.ones(whole.shape, bool)
    if np.shares_memory(part, whole):
        LAID_OUT[name](untouched)[...] = False
        assert np.array_equal(whole[untouched], np.arange(16, dtype=np.float32).reshape(4, 4)[untouched])


@pytest.mark.filterwarnings("ignore:argument")
def test_a_launch_that_stops_leaves_in_a_copied_array_what_it_wrote() -> None:
    @ti.kernel
    def fill(a: ti.types.ndarray()):
        for i in a:
            a[i] = i + 1
        assert a[0] < 0

    whole = np.zeros(8, np.float32)
    with pytest.raises(ti.TaichiAssertionError):
        fill(whole[::2])
    assert whole.tolist() == [1, 0, 2, 0, 3, 0, 4, 0]


@pytest.mark.filterwarnings("ignore:argument")
def test_copies_that_would_not_be_the_array_are_refused() -> None:
    @ti.kernel
    def move(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            a[i] = b[i] + 1

    whole = np.zeros(8, np.float32)
    move(whole[:4], whole[::2][:4].copy())
    for a, b in ((whole[::2], whole[1::2]), (whole[::2], whole[:4]), (whole[::2], whole[::2])):
        with pytest.raises(KernelTypeError, match=r"argument 'a' of kernel 'move' is written .* another argument"):
            move(a, b)
    move(whole[:4].copy(), whole[::2])  # it is only read
    with pytest.raises(KernelTypeError, match="read-only"):
        move(np.broadcast_to(np.float32(1), 4), whole)
    twice = np.lib.stride_tricks.as_strided(np.zeros(5, np.float32), (4, 2), (4, 4))
    with pytest.raises(KernelTypeError, match="of each other"):
        number(twice, 0)
    x = ti.Vector.field(2, ti.f32, shape=4)
    with pytest.raises(KernelTypeError, match="are also those of a field"):
        number(x.numpy_view()[:, 0], 0)


@pytest.mark.filterwarnings("ignore:argument")
def test_a_tape_does_not_follow_copies() -> None:
    x, loss = ti.field(ti.f32, 4, needs_grad=True), ti.field(ti.f32, (), needs_grad=True)

    @ti.kernel
    def weigh(a: ti.types.ndarray()):
        for i in x:
            loss[None] += a[i] * x[i]

    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    with ti.ad.Tape(loss):
        with pytest.raises(ti.errors.DifferentiationError, match="would work on a copy of it"):
            weigh(data[:, 1])
        weigh(np.ascontiguousarray(data[:, 1]))
    assert x.grad.to_numpy().tolist() == [1, 3, 5, 7]


# ---- what the annotation says of elements and borders


def test_elements_of_any_size() -> None:
    @ti.kernel
    def total(a: ti.types.ndarray(dtype=ti.types.matrix(), ndim=1)) -> ti.f32:
        s = 0.0
        for i in a:
            s += a[i][0, 1] + a[i].sum()
        return s

    @ti.kernel
    def rows(a: ti.types.ndarray(dtype=ti.types.matrix(n=2), ndim=1)) -> ti.i32:
        return a[0].n * 10 + a[0].m

    @ti.kernel
    def first(a: ti.types.ndarray(dtype=ti.types.vector(dtype=ti.f32), ndim=1)) -> ti.f32:
        return a[1].sum()

    for shape in ((2, 3), (3, 2)):
        a = ti.Matrix.ndarray(*shape, ti.f32, shape=4)
        values = np.arange(24, dtype=np.float32).reshape(4, *shape)
        a.from_numpy(values)
        assert total(a) == total(values) == values.sum() + values[:, 0, 1].sum()
    assert rows(ti.Matrix.ndarray(2, 5, ti.f32, shape=3)) == 25
    assert first(np.arange(6, dtype=np.float32).reshape(2, 3)) == 12
    with pytest.raises(KernelTypeError, match=r"has elements of 2 dimensions, and is called with elements of shape"):
        rows(ti.Matrix.ndarray(3, 5, ti.f32, shape=3))
    with pytest.raises(KernelTypeError, match="is an array of f32, and is called with one of f64"):
        first(np.zeros((2, 3)))


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_indices_outside_stand_for_the_nearest_inside(arch: Any) -> None:
    ti.init(arch=arch)
    out = ti.field(ti.f32, (5, 6))

    @ti.kernel
    def read(a: ti.types.ndarray(dtype=ti.f32, ndim=2, boundary="clamp")):
        for i, j in out:
            out[i, j] = a[i - 1, j - 2]

    @ti.kernel
    def write(a: ti.types.ndarray(ndim=1, boundary="clamp")):
        for i in range(7):
            a[i - 2] += 1

    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    read(a)
    np.testing.assert_array_equal(out.to_numpy(), np.pad(a, ((1, 2), (2, 1)), mode="edge"))
    b = np.zeros(3)
    write(b)
    assert b.tolist() == [3, 1, 3]
    with pytest.raises(KernelIndexError):  # there is no nearest one
        write(np.zeros(0))


def test_clamped_arrays_are_differentiated() -> None:
    x = ti.ndarray(ti.f64, 3, needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.0, 2.0, 3.0]))

    @ti.kernel
    def measure(a: ti.types.ndarray(ndim=1, boundary="clamp")):
        for i in range(6):
            loss[None] += a[i - 1] ** 2

    with ti.ad.Tape(loss):
        measure(x)
    assert x.grad.to_numpy().tolist() == [4, 4, 18]


def test_deep_copies_are_arrays_of_their_own() -> None:
    for make in (ti.ndarray, lambda *a, **k: ti.Vector.ndarray(2, *a, **k)):
        x = make(ti.f32, shape=(2, 3), needs_grad=True)
        x.fill(2.0)
        x.grad.fill(1.0)
        y = copy.deepcopy({"array": x})["array"]
        x.fill(3.0)
        assert type(y) is type(x) and y.shape == x.shape and (y.to_numpy() == 2).all()
        assert (y.grad.to_numpy() == 0).all() and copy.copy(x) is x
    with pytest.raises(FieldError, match="is memory of this session, and is not copied"):
        copy.deepcopy(ti.field(ti.f32, 3))


def test_a_deep_copy_under_a_tape_is_differentiated() -> None:
    x, loss = ti.ndarray(ti.f64, 3, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.fill(3.0)

    @ti.kernel
    def measure(a: ti.types.ndarray()):
        for i in a:
            loss[None] += a[i] ** 2

    with ti.ad.Tape(loss):
        measure(copy.deepcopy(x))
    assert x.grad.to_numpy().tolist() == [6, 6, 6]
