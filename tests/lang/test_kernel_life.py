"""The life of a kernel: its instances, what makes it compile again, and where it may be written."""

import copy
import pickle
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinote as ti
from tinote.compiler.driver import binary_cache
from tinote.errors import KernelNameError, KernelTypeError

SCALE = 3


@ti.func
def scaled(a: Any) -> Any:
    return a * SCALE


@ti.kernel
def module_kernel(a: ti.i32) -> ti.i32:
    return scaled(a) + 1


class Doubler:
    def __init__(self, by: int) -> None:
        self.by = by

    @ti.kernel
    def times(self, a: ti.i32) -> ti.i32:
        return self.scale(a)

    @ti.func
    def scale(self, a: Any) -> Any:
        return a * self.by


def test_kernels_and_functions_are_copied_and_pickled_as_functions_are() -> None:
    for shared in (module_kernel, scaled):
        assert copy.copy(shared) is copy.deepcopy(shared) is pickle.loads(pickle.dumps(shared)) is shared
    two = Doubler(2)
    three = copy.deepcopy(two)
    three.by = 3
    assert (two.times(5), three.times(5)) == (10, 15)
    assert pickle.loads(pickle.dumps(three.times))(5) == 15
    assert pickle.loads(pickle.dumps(three.scale))(5) == 15


class Pair(NamedTuple):
    first: Any
    second: Any


class Noted(tuple[Any, ...]):
    note = 1.0


def test_tuples_as_templates_are_known_by_what_they_hold() -> None:
    x, y = ti.field(ti.f32, shape=4), ti.field(ti.f32, shape=4)

    @ti.kernel
    def add(to: ti.template()):
        for i in to[0]:
            to[0][i] += to[1][i]

    for kind in (lambda *items: items, Pair, lambda *items: (Pair(*items), 1)[0]):
        for _ in range(3):
            add(kind(x, y))
    assert len(add.instances) == 2  # a plain tuple, a named one
    add(Pair(y, x))
    assert len(add.instances) == 3

    @ti.kernel
    def note(of: ti.template()) -> ti.f32:
        return of.note

    one, two = Noted((x,)), Noted((x,))
    two.note = 2.0
    assert (note(one), note(two)) == (1.0, 2.0)  # attributes of its own count


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
    def step(a):  # noqa: F811  the cell is run again with another body
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


def test_a_captured_array_is_a_constant() -> None:
    """It may change at any time, and then the kernel compiles again."""
    weights, table = np.array([1.5, 2, 3], np.float32), np.arange(6).reshape(2, 3)

    @ti.kernel
    def run(k: ti.i32) -> ti.f32:
        total = weights[k] + table[1, 2] * 10 + table.shape[1] * 100
        for i in ti.static(range(2)):
            total += table[i][1] * 1000
        return total + ti.Vector(weights).sum() * 10000

    assert run(1) == 2 + 50 + 300 + 5000 + 65000
    assert run(2) == run(1) + 1 and len(run.specialisations()) == 1
    weights[1] = 4
    assert run(1) == 4 + 50 + 300 + 5000 + 85000
    table[1, 2] = 7
    assert run(1) == 4 + 70 + 300 + 5000 + 85000


def test_a_captured_array_that_is_large_or_written_is_refused() -> None:
    large, small = np.zeros(5000), np.zeros(3)

    @ti.kernel
    def read() -> ti.f32:
        return large[1]

    @ti.kernel
    def write():
        small[1] = 2

    with pytest.raises(KernelTypeError, match="ndarray cannot be read in a kernel"):
        read()
    with pytest.raises(KernelTypeError, match="`small` is a NumPy array that the kernel reads as a constant"):
        write()


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
        return import_time["k"] + later_defined  # noqa: F821

    with pytest.raises(KernelNameError, match="later_defined"):
        run()
    globals()["later_defined"] = 4
    try:
        assert run() == 7
    finally:
        del globals()["later_defined"]


def test_a_bound_kernel() -> None:
    a, b = Solver(4, 2.0), Solver(6, 0.5)
    a.start(1)
    run = a.start
    run(offset=2)
    assert a.x.to_numpy().tolist() == [2, 4, 6, 8]
    assert repr(run) == "<bound <kernel start(self, offset)>>"
    assert run.instances == Solver.start.instances
    (instance,) = run.instances
    assert instance.calls == 2
    b.start(0)
    assert [i.calls for i in run.instances] == [2, 1]
    assert "func start" in run.ir()
    with pytest.raises(KernelTypeError, match="missing: offset"):
        run()
    with pytest.raises(KernelTypeError, match="two values for 'self'"):
        run(1, self=b)


def test_a_module_is_asked_for_nothing_but_what_the_kernel_names() -> None:
    """Modules may compute what is asked of them, as this package does with names that it does not have."""
    asked: list[str] = []

    def answer(name: str) -> int:
        asked.append(name)
        if name != "N":
            raise AttributeError(name)
        return 3

    numbers: Any = types.ModuleType("numbers_asked_for")
    numbers.__getattr__ = answer

    @ti.kernel
    def three() -> ti.i32:
        return numbers.N

    assert three() == 3
    assert {name for name in asked if not name.startswith("__")} == {"N"}
