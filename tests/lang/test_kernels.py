"""Kernels and device functions: arguments, return values, templates, closures, methods, and the life of their instances."""

import types
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.driver import binary_cache
from tinote.errors import KernelAssertionError, KernelNameError, KernelTypeError, KernelZeroDivisionError

SCALE = 3


@ti.func
def scaled(a: Any) -> Any:
    return a * SCALE


@ti.kernel
def module_kernel(a: ti.i32) -> ti.i32:
    return scaled(a) + 1


# arguments and results


@pytest.mark.parametrize(
    ("name", "values"),
    [("i8", [-128, 127]), ("i16", [-32768, 7]), ("i32", [-(2**31), 2**31 - 1]), ("i64", [-(2**63), 2**63 - 1]), ("u8", [0, 255]), ("u16", [0, 65535]), ("u32", [0, 2**32 - 1]), ("u64", [0, 2**64 - 1]), ("f32", [1.5, -0.0]), ("f64", [0.1, 1e300])],
)
def test_scalars_go_through(name: str, values: list[Any]) -> None:
    dtype = getattr(ti, name)

    @ti.kernel
    def run(a: dtype) -> dtype:
        return a

    for value in values:
        assert run(value) == value
        assert isinstance(run(value), float if name[0] == "f" else int)


@pytest.mark.parametrize(("name", "bad"), [("i8", 128), ("i8", -129), ("u8", -1), ("i32", 2**31), ("i64", 2**63), ("u64", -1), ("i32", 1.5), ("i32", "1"), ("f32", "1.0"), ("f32", None), ("i32", None), ("f64", [1.0]), ("f32", 1j)])
def test_bad_arguments(name: str, bad: Any) -> None:
    dtype = getattr(ti, name)

    @ti.kernel
    def run(other: ti.f32, a: dtype) -> ti.f32:
        return other

    with pytest.raises(KernelTypeError, match=rf"argument 'a' of kernel 'run' must be a number of type {name}"):
        run(1, bad)
    assert run(2, 1) == 2


def test_numpy_scalars_are_arguments() -> None:
    @ti.kernel
    def run(a: ti.i32, b: ti.f32) -> ti.f32:
        return a + b

    assert run(np.int64(3), np.float32(0.5)) == 3.5
    assert run(np.uint8(3), np.float64(0.5)) == 3.5
    assert run(True, 1) == 2


def test_keywords_and_defaults() -> None:
    @ti.kernel
    def run(a: ti.i32, b: ti.i32 = 20, c: ti.i32 = 300) -> ti.i32:
        return a + b + c

    assert run(1) == 321
    assert run(1, 2) == 303
    assert run(1, c=3) == 24
    assert run(b=0, a=5) == 305
    for bad in (lambda: run(), lambda: run(1, 2, 3, 4), lambda: run(1, a=1), lambda: run(1, d=1)):
        with pytest.raises(KernelTypeError):
            bad()


def test_vector_and_matrix_arguments_and_results() -> None:
    vec3 = ti.types.vector(3, ti.f32)
    mat = ti.types.matrix(2, 2, ti.f64)

    @ti.kernel
    def cross(a: vec3, b: vec3) -> vec3:
        return a.cross(b)

    @ti.kernel
    def square(m: mat) -> mat:
        return m @ m

    a, b = np.array([1.0, 2, 3]), np.array([0.5, -1, 2])
    np.testing.assert_allclose(np.array(cross(ti.Vector(a), ti.Vector(b))), np.cross(a, b), rtol=1e-6)
    np.testing.assert_allclose(np.array(cross([1, 2, 3], b)), np.cross(a, b), rtol=1e-6)
    m = np.array([[1.0, 2], [3, 4]])
    np.testing.assert_allclose(np.array(square(ti.Matrix(m))), m @ m)
    for bad in ([1, 2], 3, "abc", [[1, 2, 3]]):
        with pytest.raises(KernelTypeError):
            cross(a, bad)


def test_several_results() -> None:
    @ti.kernel
    def run(a: ti.i32) -> tuple[ti.i32, ti.f32]:
        return a // 2, a / 2

    assert run(7) == (3, 3.5)


def test_results_are_converted_to_the_annotation() -> None:
    @ti.kernel
    def run(a: ti.f32) -> ti.i32:
        return ti.cast(a, ti.i32)

    assert run(2.9) == 2


def test_a_missing_annotation_is_an_error() -> None:
    @ti.kernel
    def run(a):
        print(a)

    with pytest.raises(KernelTypeError, match="parameter 'a' of kernel 'run' needs a type annotation"):
        run(1)


# templates and instances


def test_template_fields() -> None:
    x, y = ti.field(ti.f32, shape=128), ti.field(ti.f32, shape=16)

    @ti.kernel
    def add(tensor: ti.template(), delta: ti.i32):
        for i in tensor:
            tensor[i] += delta

    assert add.instances == []
    add(x, 42)
    add(x, 1)
    assert len(add.instances) == 1
    add(y, 42)
    assert len(add.instances) == 2
    assert (x.to_numpy() == 43).all()
    assert (y.to_numpy() == 42).all()


def test_instances_with_equal_code_share_one_binary() -> None:
    x, y = ti.field(ti.f32, shape=64), ti.field(ti.f32, shape=64)

    @ti.kernel
    def add(tensor: ti.template(), delta: ti.f32):
        for i in tensor:
            tensor[i] += delta * 0.123456

    add(x, 1)
    compiled, hits = binary_cache.compiled, binary_cache.hits
    add(y, 2)
    assert (binary_cache.compiled, binary_cache.hits) == (compiled, hits + 1)
    np.testing.assert_allclose(y.to_numpy(), 2 * x.to_numpy())


def test_template_values_are_constants() -> None:
    out = ti.field(ti.i32, shape=8)

    @ti.kernel
    def run(n: ti.template(), deep: ti.template()):
        for k in ti.static(range(n)):
            out[k] += 1
        if ti.static(deep):
            out[7] = 9

    run(3, False)
    run(5, True)
    run(3, False)
    assert out.to_numpy().tolist() == [3, 3, 3, 1, 1, 0, 0, 9]
    assert len(run.instances) == 2


def test_one_and_true_and_one_point_oh_are_different_templates() -> None:
    @ti.kernel
    def run(a: ti.template()) -> ti.f32:
        return 7 / a if ti.static(isinstance(a, float)) else 7 // a

    assert run(2) == 3
    assert run(2.0) == 3.5
    assert run(2) == 3


def test_templates_of_funcs() -> None:
    x = ti.field(ti.i32, shape=3)

    @ti.func
    def put(target: ti.template(), i, value):
        target[i] = value

    @ti.func
    def bump(a: ti.template()):
        a += 10

    @ti.kernel
    def run() -> ti.i32:
        for i in range(3):
            put(x, i, i * i)
        s = 1
        bump(s)
        return s

    assert run() == 11
    assert x.to_numpy().tolist() == [0, 1, 4]


def test_func_arguments_are_passed_by_value() -> None:
    @ti.func
    def change(a):
        a += 10
        return a

    @ti.kernel
    def run() -> ti.i32:
        s = 1
        t = change(s)
        return s * 100 + t

    assert run() == 111


def test_funcs_return_tuples_and_vectors() -> None:
    @ti.func
    def both(a, b=3):
        return a + b, ti.Vector([a, b])

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s, v = both(a)
        t, w = both(b=a, a=1)
        return s * 1000 + v[1] * 100 + t * 10 + w.x

    assert run(2) == 5331


def test_a_func_runs_in_python() -> None:
    assert scaled(5) == 15


# captured values


def test_a_changed_global_recompiles() -> None:
    assert module_kernel(2) == 7

    globals()["SCALE"] = 10
    try:
        assert module_kernel(2) == 21
    finally:
        globals()["SCALE"] = 3
    compiled = binary_cache.compiled
    assert module_kernel(2) == 7
    assert binary_cache.compiled == compiled


def test_a_changed_func_recompiles() -> None:
    @ti.func
    def step(a):
        return a + 1

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        return step(step(a))

    assert run(1) == 3

    @ti.func
    def step(a):
        return a * 5

    assert run(1) == 25


def test_a_changed_closure_value_recompiles() -> None:
    factor = 2

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        return a * factor

    assert run(3) == 6
    factor = 5
    assert run(3) == 15
    factor = 2.5
    assert run(3) == 7
    factor = 2
    assert run(3) == 6


def test_a_changed_attribute_recompiles() -> None:
    options = types.SimpleNamespace(gain=2)

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        return a * options.gain

    assert run(3) == 6
    options.gain = 7
    assert run(3) == 21


def test_a_changed_container_recompiles() -> None:
    table = [1, 2, 3]

    @ti.kernel
    def run() -> ti.i32:
        s = 0
        for k in ti.static(range(3)):
            s = s * 10 + table[k]
        return s

    assert run() == 123
    table[1] = 9
    assert run() == 193
    table.append(4)
    table[0] = 0
    assert run() == 93


def test_a_changed_captured_vector_recompiles() -> None:
    vector = ti.Vector([1, 2])

    @ti.kernel
    def run(k: ti.i32) -> ti.i32:
        return vector[0] * 10 + vector[k]

    assert run(1) == 12
    vector[0] = 5
    assert run(1) == 52
    vector.y = 7
    assert run(1) == 57


def test_a_captured_array_is_refused() -> None:
    """It may change at any time, and nothing would tell the kernel."""
    weights = np.array([1, 2, 3])

    @ti.kernel
    def run() -> ti.i32:
        return weights[1]

    with pytest.raises(KernelTypeError, match="ndarray cannot be read in a kernel"):
        run()


def test_unchanged_calls_compile_nothing() -> None:
    x = ti.field(ti.f32, shape=8)

    @ti.kernel
    def run(a: ti.f32):
        for i in x:
            x[i] += a * SCALE

    run(1)
    compiled, instance = binary_cache.compiled, run.instances[0]
    for k in range(50):
        run(k)
        x[0] = k
        x.to_numpy()
    assert binary_cache.compiled == compiled
    assert run.instances == [instance]


def test_a_new_field_under_the_same_name() -> None:
    x = ti.field(ti.i32, shape=4)

    @ti.kernel
    def run():
        for i in x:
            x[i] += 1

    run()
    old = x
    x = ti.field(ti.i32, shape=6)
    run()
    assert old.to_numpy().tolist() == [1] * 4
    assert x.to_numpy().tolist() == [1] * 6


def test_calling_before_and_after_init() -> None:
    x = ti.field(ti.f32, shape=())

    @ti.kernel
    def run():
        x[None] = 1 / 3

    run()
    assert x[None] == float(np.float32(1 / 3))
    ti.init(default_fp=ti.f64)
    x = ti.field(ti.f64, shape=())
    run()
    assert x[None] == 1 / 3


# where kernels are written


def make_adder(amount: int) -> Any:
    @ti.kernel
    def add(a: ti.i32) -> ti.i32:
        return a + amount

    return add


def test_kernels_made_by_a_function() -> None:
    one, ten = make_adder(1), make_adder(10)
    assert [one(5), ten(5), one(6)] == [6, 15, 7]


class Solver:
    """A class with kernels as methods."""

    def __init__(self, n: int, gain: float) -> None:
        self.n = n
        self.gain = gain
        self.x = ti.field(ti.f32, shape=n)
        self.total = ti.field(ti.f32, shape=())

    @ti.func
    def value(self, i):
        return self.gain * i

    @ti.kernel
    def start(self, offset: ti.f32):
        for i in range(self.n):
            self.x[i] = self.value(i) + offset

    @ti.kernel
    def sum(self: ti.template()) -> ti.f32:
        s = 0.0
        for i in self.x:
            s += self.x[i]
        return s


def test_methods() -> None:
    a, b = Solver(4, 2.0), Solver(6, 0.5)
    a.start(1)
    b.start(0)
    assert a.x.to_numpy().tolist() == [1, 3, 5, 7]
    assert b.x.to_numpy().tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert a.sum() == 16
    assert b.sum() == 7.5
    a.gain = 10.0
    a.start(0)
    assert a.x.to_numpy().tolist() == [0, 10, 20, 30]


def test_a_data_oriented_class() -> None:
    @ti.data_oriented
    class Counter:
        def __init__(self) -> None:
            self.n = ti.field(ti.i32, shape=())

        @ti.kernel
        def up(self, k: ti.i32) -> ti.i32:
            self.n[None] += k
            return self.n[None]

    c = Counter()
    c.up(2)
    assert c.up(3) == 5


def test_decorating_something_else() -> None:
    for thing in (5, "text", len, type):
        with pytest.raises(KernelTypeError):
            ti.kernel(thing)
        with pytest.raises(KernelTypeError):
            ti.func(thing)


def test_names_from_python() -> None:
    import_time = {"k": 3}

    @ti.kernel
    def run() -> ti.i32:
        return import_time["k"] + later_defined

    with pytest.raises(KernelNameError, match="later_defined"):
        run()
    globals()["later_defined"] = 4
    try:
        assert run() == 7
    finally:
        del globals()["later_defined"]


# print, assert, faults


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    @ti.kernel
    def run(a: ti.f32, k: ti.i64):
        ti.loop_config(serialize=True)
        for i in range(3):
            print("turn", i, a * i, sep="|")
        print(f"k={k}, v={ti.Vector([k, 2 * k])}", end="!\n")
        print(k > 3, -k, 1e30 * a)
        print()

    run(0.5, 1 << 40)
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[:3] == ["turn|0|0.0", "turn|1|0.5", "turn|2|1.0"]
    assert lines[3] == f"k={1 << 40}, v=[{1 << 40}, {2 << 40}]!"
    assert lines[4].split()[1] == str(-(1 << 40))
    assert float(lines[4].split()[2]) == pytest.approx(0.5e30)
    assert lines[5] == ""


def test_prints_of_a_parallel_loop_all_arrive(capsys: pytest.CaptureFixture[str]) -> None:
    @ti.kernel
    def run():
        for i in range(500):
            print("line", i)

    run()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"line {i}" for i in range(500))


def test_assert() -> None:
    x = ti.field(ti.i32, shape=10)

    @ti.kernel
    def run(limit: ti.i32):
        for i in x:
            assert i < limit, f"{i} is not below {limit}"
            x[i] += 1

    run(10)
    with pytest.raises(KernelAssertionError, match="9 is not below 9"):
        run(9)
    run(10)
    assert x[0] == 3


@pytest.mark.parametrize("operator", ["//", "%"])
@pytest.mark.parametrize("name", ["i32", "u8", "i64"])
def test_integer_division_by_zero(name: str, operator: str) -> None:
    dtype = getattr(ti, name)
    x = ti.field(dtype, shape=8)

    @ti.kernel
    def run(a: dtype):
        for i in x:
            if ti.static(operator == "//"):
                x[i] = 100 // a
            else:
                x[i] = 107 % a

    run(20)
    expected = [5] * 8 if operator == "//" else [7] * 8
    assert x.to_numpy().tolist() == expected
    with pytest.raises(KernelZeroDivisionError):
        run(0)
    run(20)
    assert x.to_numpy().tolist() == expected


# random numbers


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_random_is_uniform(name: str) -> None:
    x = ti.field(getattr(ti, name), shape=20_000)

    @ti.kernel
    def run():
        for i in x:
            x[i] = ti.random(getattr(ti, name))

    run()
    a = x.to_numpy()
    assert 0 <= a.min() < 0.001
    assert 0.999 < a.max() < 1
    assert a.mean() == pytest.approx(0.5, abs=0.01)
    assert a.var() == pytest.approx(1 / 12, abs=0.005)
    assert len(np.unique(a)) > 19_900
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.03
    counts = np.histogram(a, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 60


def test_random_depends_on_the_seed_alone() -> None:
    def numbers(threads: int, seed: int) -> Any:
        ti.init(num_threads=threads, random_seed=seed)
        x = ti.Vector.field(2, ti.f32, shape=(30, 40))

        @ti.kernel
        def run():
            for i, j in x:
                x[i, j] = [ti.random(), ti.randn()]
                if i % 3 == 0:
                    x[i, j].x += ti.random()

        run()
        first = x.to_numpy()
        run()
        return first, x.to_numpy()

    one, again, other = numbers(1, 7), numbers(2, 7), numbers(2, 8)
    np.testing.assert_array_equal(one[0], again[0])
    np.testing.assert_array_equal(one[1], again[1])
    assert (one[0] != one[1]).mean() > 0.99
    assert (one[0] != other[0]).mean() > 0.99


def test_normal_random_numbers() -> None:
    x = ti.field(ti.f64, shape=20_000)

    @ti.kernel
    def run():
        for i in x:
            x[i] = ti.randn(ti.f64)

    run()
    a = x.to_numpy()
    assert a.mean() == pytest.approx(0, abs=0.03)
    assert a.std() == pytest.approx(1, abs=0.03)


def test_random_integers_use_every_bit() -> None:
    x = ti.field(ti.i32, shape=1000)

    @ti.kernel
    def run():
        for i in x:
            x[i] = ti.random(ti.i32)

    run()
    a = x.to_numpy()
    assert np.bitwise_or.reduce(a) == -1
    assert np.bitwise_and.reduce(a) == 0
    assert len(np.unique(a)) > 990


# options


def test_init_refuses_what_it_does_not_know() -> None:
    for bad in ({"colour": 1}, {"default_fp": ti.i32}, {"default_ip": ti.f32}, {"num_threads": 0}, {"num_threads": -1}, {"opt_level": 7}, {"arch": "cpu"}, {"num_threads": 1.5}):
        with pytest.raises(ValueError, match=next(iter(bad)) if bad != {"arch": "cpu"} else "architecture"):
            ti.init(**bad)


def test_a_gpu_falls_back_with_one_warning() -> None:
    from tinote.lang.world import world

    world.warned.discard("cuda")
    with pytest.warns(UserWarning, match="not available"):
        ti.init(arch=ti.cuda)
    x = ti.field(ti.i32, shape=3)
    x.fill(1)
    assert x.to_numpy().sum() == 3
