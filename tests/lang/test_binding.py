"""From the arguments of a call to an instance and the values of a launch."""

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import FieldError, KernelSyntaxError, KernelTypeError
from tinote.lang.kernels.kernel import Kernel
from tinote.source import Span


def at(error: Any, line: str) -> bool:
    """Whether an error points into a line of this file that begins so."""
    return line_at(error.value.span).startswith(line)


def line_at(span: Span) -> str:
    with open(__file__, encoding="utf-8") as file:
        return file.read().splitlines()[span.line - 1].strip()


# ---- calls


def test_keyword_only_and_positional_only_parameters() -> None:
    @ti.kernel
    def run(a: ti.i32, /, b: ti.i32 = 20, *, c: ti.i32, d: ti.i32 = 4000) -> ti.i32:
        return a + b + c + d

    assert run(1, c=300) == 4321
    assert run(1, 30, d=0, c=300) == 331
    for call, words in (
        (lambda: run(1, 2, 3), "'c' by name only"),
        (lambda: run(a=1, c=3), "'a' by its position only"),
        (lambda: run(1), "missing: c"),
        (lambda: run(1, c=3, e=5), "no parameter 'e'"),
        (lambda: run(1, 2, b=2, c=3), "two values for 'b'"),
    ):
        with pytest.raises(KernelTypeError, match=words) as error:
            call()
        assert at(error, "(lambda: run(") and words in line_at(error.value.span)
        declared = error.value.notes[0]
        assert declared.text == "it is declared here" and line_at(declared.span).startswith("def run(a: ti.i32, /")


def test_parameters_may_have_any_name() -> None:
    """Also those that the function which binds arguments uses itself."""

    @ti.kernel
    def run(_0: ti.template(), _identity_of: ti.i32, __kind2: ti.types.ndarray(), bind: ti.i32, self: ti.i32) -> ti.i32:
        return _0 + _identity_of + __kind2[0] + bind + self

    assert run(1, 20, np.array([300]), 4000, 50000) == 54321
    assert run(self=50000, bind=4000, _0=1, _identity_of=20, __kind2=np.array([300])) == 54321


def test_parameters_that_collect_arguments_are_refused() -> None:
    @ti.kernel
    def many(a: ti.i32, *rest: ti.i32) -> ti.i32:
        return a

    @ti.kernel
    def named(a: ti.i32, **options: ti.i32) -> ti.i32:
        return a

    for call, words, line in (
        (lambda: many(1, 2, 3), r"`\*rest`", "def many("),
        (lambda: many(1), r"`\*rest`", "def many("),
        (lambda: named(1, b=2), r"`\*\*options`", "def named("),
    ):
        with pytest.raises(KernelSyntaxError, match=words + ", which takes any number of arguments") as error:
            call()
        assert at(error, line)
        assert "name every parameter" in error.value.hint


def test_an_annotation_that_is_no_type() -> None:
    @ti.kernel
    def run(a: "nonsense") -> ti.i32:  # noqa: F821
        return a

    @ti.kernel
    def other(a: 5) -> ti.i32:
        return a

    with pytest.raises(KernelTypeError, match="cannot be evaluated: NameError"):
        run(1)
    with pytest.raises(KernelTypeError, match="is annotated with `5`, which is not a type") as error:
        other(1)
    assert at(error, "def other(")


# ---- template arguments


@ti.kernel
def angle(x: ti.template()) -> ti.f64:
    return ti.atan2(x, -1.0)


def instances_after(kernel: Kernel, *arguments: Any) -> int:
    ti.init(default_fp=ti.f64)
    for argument in arguments:
        kernel(argument)
    return len(kernel.instances)


def test_zeros_of_different_sign_are_different_templates() -> None:
    ti.init(default_fp=ti.f64)
    assert angle(0.0) == pytest.approx(math.pi)
    assert angle(-0.0) == pytest.approx(-math.pi)
    assert angle(0.0) == pytest.approx(math.pi)
    assert len(angle.instances) == 2


def test_equal_numbers_share_an_instance() -> None:
    assert instances_after(angle, 2.5, float("2.5"), 5 / 2) == 1
    assert instances_after(angle, float("nan"), float("nan"), -float("nan")) == 1
    assert instances_after(angle, 10**6, int("1000000")) == 1
    assert instances_after(angle, 1, True, 1.0) == 3


def test_equal_tuples_share_an_instance() -> None:
    x, y = ti.field(ti.i32, shape=3), ti.field(ti.i32, shape=3)

    @ti.kernel
    def run(what: ti.template()) -> ti.i32:
        what[0][0] += what[1]
        return what[0][0]

    assert [run((x, 2)), run((x, 2)), run((y, 2)), run((x, 3))] == [2, 4, 2, 7]
    assert len(run.instances) == 3


def test_a_method_is_the_same_argument_each_time() -> None:
    class Line:
        def __init__(self, slope: float) -> None:
            self.slope = slope

        @ti.func
        def at(self, x):
            return self.slope * x

        def plain(self, x):  # type: ignore[no-untyped-def]
            return self.slope * x + 1

    @ti.kernel
    def run(f: ti.template(), x: ti.f64) -> ti.f64:
        return f(x)

    a, b = Line(2.0), Line(3.0)
    for _ in range(3):
        assert [run(a.at, 1.0), run(b.at, 1.0), run(a.plain, 1.0), run(b.plain, 1.0)] == [2, 3, 3, 4]
    assert len(run.instances) == 4


def test_an_instance_keeps_what_it_is_known_by() -> None:
    """Another object at the same address must not be taken for one that is gone."""

    class Holder:
        def __init__(self, value: int) -> None:
            self.value = value

    @ti.kernel
    def run(what: ti.template()) -> ti.i32:
        return what.value

    for value in range(5):
        assert run(Holder(value)) == value
        gc.collect()
    held = weakref.ref(run.instances[0].specialisation.arguments[0].value)
    assert held() is not None


def test_the_oldest_instances_go_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinote.lang.kernels.kernel._INSTANCES_KEPT", 3)

    @ti.kernel
    def run(x: ti.template()) -> ti.i32:
        return x.shape[0]

    fields = [ti.field(ti.i32, shape=length) for length in (1, 2, 3, 4, 5)]
    for field in (*fields, fields[3], fields[0]):
        assert run(field) == field.shape[0]
    first = ti.field(ti.i32, shape=7)
    held = weakref.ref(first)
    assert run(first) == 7
    del first
    for field in fields[1:4]:
        run(field)
    gc.collect()
    assert len(run.instances) == 3
    assert held() is None


def test_what_a_kernel_knew_goes_with_a_reset() -> None:
    ti.init(default_fp=ti.f64)
    assert angle(1.0) == pytest.approx(3 * math.pi / 4)
    ti.init(default_fp=ti.f32)
    assert angle.instances == []
    assert angle(1.0) == pytest.approx(3 * math.pi / 4)
    assert len(angle.instances) == 1


def test_a_field_from_before_a_reset_is_refused_however_a_kernel_gets_it() -> None:
    ti.init()
    x, array = ti.field(ti.f32, shape=4), ti.ndarray(ti.f32, shape=4)

    class Solver:
        def __init__(self) -> None:
            self.x = x

        @ti.kernel
        def run(self):
            for i in self.x:
                self.x[i] = 1

    @ti.kernel
    def captured():
        for i in x:
            x[i] = 1

    @ti.kernel
    def passed(f: ti.template()):
        for i in f:
            f[i] = 1

    @ti.kernel
    def bound(a: ti.types.ndarray()):
        for i in a:
            a[i] = 1

    solver = Solver()
    calls = (solver.run, captured, lambda: passed(x), lambda: bound(x), lambda: bound(array))
    for call in calls:
        call()
    view = x.numpy_view()
    ti.init()
    for call in calls:
        with pytest.raises(FieldError, match=r"was made before ti.init\(\) or ti.reset\(\) and is gone"):
            call()
    assert view.tolist() == [1] * 4


def test_types_follow_the_session() -> None:
    @ti.kernel
    def run(a: float) -> float:
        return a

    ti.init(default_fp=ti.f32)
    assert run(0.1) == float(np.float32(0.1))
    ti.init(default_fp=ti.f64)
    assert run(0.1) == 0.1


def test_a_kernel_that_becomes_one_with_other_types_is_compiled_for_them() -> None:
    """The same text in the same place, and another type behind its annotation."""

    def make(number: Any) -> Kernel:
        @ti.kernel
        def run(a: number) -> ti.f64:
            return a / 3

        return run

    first = make(ti.f32)
    assert first(1.0) == float(np.float32(1) / np.float32(3))
    kept = first.instances
    first.become(make(ti.f32))
    first(1.0)
    assert first.instances == kept
    first.become(make(ti.f64))
    assert first(1.0) == 1 / 3


# ---- arrays


@ti.kernel
def first_and_sum(a: ti.types.ndarray()) -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for i in a:
        s += a[i]
    return s


def test_an_array_is_looked_at_in_every_call() -> None:
    """The same object may have come to lie elsewhere, or have another shape, type or layout."""
    a = np.arange(6, dtype=np.float32)
    assert first_and_sum(a) == 15
    a.resize(200_000, refcheck=False)
    assert first_and_sum(a) == 15
    a.resize(4, refcheck=False)
    assert first_and_sum(a) == 6
    a.dtype = np.int32
    assert first_and_sum(a) == float(np.array([0, 1, 2, 3], np.float32).view(np.int32).astype(float).sum())
    b = np.arange(8, dtype=np.float32)
    assert first_and_sum(b[2:4]) == 5
    assert first_and_sum(b[8:]) == 0
    with pytest.warns(UserWarning, match="launches copy it"):
        assert first_and_sum(b[::2]) == 12
    with pytest.raises(KernelTypeError, match="masked"):
        first_and_sum(np.ma.masked_greater(b, 3))
    b.setflags(write=False)
    assert first_and_sum(b) == 28
    with pytest.raises(KernelTypeError, match="not aligned"):
        first_and_sum(np.frombuffer(bytes(9), np.uint8)[1:].view(np.float32))


def test_a_read_only_array_is_refused_where_the_kernel_writes() -> None:
    @ti.kernel
    def fill(a: ti.types.ndarray(), b: ti.types.ndarray()):
        for i in a:
            a[i] = b[i]

    a, b = np.zeros(4, np.float32), np.ones(4, np.float32)
    fill(a, b)
    b.setflags(write=False)
    fill(a, b)
    a.setflags(write=False)
    with pytest.raises(KernelTypeError, match="read-only"):
        fill(a, b)
    a.setflags(write=True)
    fill(a, b)
    assert len(fill.instances) == 1


def test_a_gradient_that_gets_its_place_later_is_seen() -> None:
    x = ti.field(ti.f32)
    gradient = x.grad
    ti.root.dense(ti.i, 4).place(x)

    @ti.kernel
    def double(a: ti.types.ndarray(dtype=ti.f32, ndim=1)):
        for i in a:
            a[i] *= 2

    x.fill(3)
    double(x)
    assert not x.has_grad
    ti.root.dense(ti.i, 4).place(gradient)
    assert gradient.to_numpy().tolist() == [0] * 4
    assert x.has_grad
    double(x)
    assert x.to_numpy().tolist() == [12] * 4
    assert len(double.instances) == 2, "one for arrays without a gradient, one for arrays with one"


#: annotation, argument, what the message says after "must be", and a part of its hint
NUMBERS_THAT_DO_NOT_FIT = [
    (ti.f32, 1e300, "a number of type f32, not 1e+300", "annotate a wider type, such as `ti.f64`"),
    (ti.f32, np.float64(-1e39), "a number of type f32, not np.float64(-1e+39)", "ti.f64"),
    (ti.f32, 2**200, f"a number of type f32, not {2**200}", "ti.f64"),
    (ti.f32, 10**400, "a number of type f32, not an integer of 1,329 bits", "ti.f64"),
    (ti.f64, 10**5000, "a number of type f64, not an integer of 16,610 bits", ""),
    (ti.f16, 70000.0, "a number of type f16, not 70000.0", "ti.f64"),
    (ti.types.vector(2, ti.f32), [1.0, 1e300], "made of numbers of type f32, not 1e+300", "ti.f64"),
    (ti.types.vector(2, ti.i32), [1.5, 2], "made of numbers of type i32, not 1.5", "round it"),
    (ti.types.vector(2, ti.i32), [1, 2**40], f"made of numbers of type i32, not {2**40}", "ti.i64"),
    (ti.types.matrix(2, 2, ti.u8), [[1, 2], [3, -4]], "made of numbers of type u8, not -4", "wider"),
]


@pytest.mark.parametrize("case", range(len(NUMBERS_THAT_DO_NOT_FIT)))  # a long integer has no text for an id
@pytest.mark.parametrize("arch", [ti.cpu, ti.python])
def test_numbers_that_do_not_fit_are_refused_by_name(case: int, arch: Any) -> None:
    annotation, value, message, hint = NUMBERS_THAT_DO_NOT_FIT[case]
    ti.init(arch=arch)

    @ti.kernel
    def run(first: ti.i32, given: annotation):
        pass

    with pytest.raises(KernelTypeError) as caught:
        run(1, value)
    assert caught.value.message == f"argument 'given' of kernel 'run' must be {message}"
    assert hint in caught.value.hint


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 3.4028235e38, np.float64(3.4028235e38), 1e-300])
def test_numbers_that_round_to_a_float_are_taken(value: float) -> None:
    @ti.kernel
    def run(given: ti.f32) -> ti.f32:
        return given

    np.testing.assert_equal(np.float32(run(value)), np.float32(value))
