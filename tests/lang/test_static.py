"""What happens at compile time: unrolling, decisions, assertions, and the limits of it."""

import itertools

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelSyntaxError, KernelTypeError

ROWS = [[1, 2], [3, 4]]


def test_static_containers() -> None:
    x, y = ti.field(ti.i32, shape=3), ti.field(ti.i32, shape=3)

    @ti.kernel
    def run() -> ti.i32:
        s = 0
        for i, (a, b) in ti.static(enumerate(zip([1, 2], (3, 4), strict=True))):
            s += i * 100 + a * 10 + b
        for row in ti.static(ROWS):
            for item in ti.static(row):
                s += 1000 * item
        for field, value in ti.static(((x, 5), (y, 6))):
            for i in range(3):
                field[i] = value + i
        for i in ti.static(reversed(range(2))):
            s += 100_000 * (i + 1)
        return s

    assert run() == 13 + 100 + 24 + 10_000 + 300_000
    assert (x.to_numpy().tolist(), y.to_numpy().tolist()) == ([5, 6, 7], [6, 7, 8])


def test_nested_static_decisions() -> None:
    @ti.kernel
    def run() -> ti.i32:
        s = 0
        for a in ti.static([1, 2, 3]):
            for b in ti.static(range(a)):
                if ti.static(a == b + 1):
                    s += 1
                elif ti.static(b == 0):
                    s += 10
                else:
                    s += 100
        for i, j in ti.static(ti.ndrange(2, (1, 3))):
            s += 1000 * i * j
        for at in ti.static(ti.grouped(ti.ndrange(2, 2))):
            s += 10_000 * (at[0] + at.y)
        return s

    assert run() == 3 + 20 + 100 + 3000 + 40_000


def test_what_exists_at_run_time_is_not_none() -> None:
    x = ti.field(ti.i32, shape=3)

    @ti.func
    def total(a, b=None, array=None):
        s = a
        if ti.static(b is not None):
            s += 10 * b
        if array is None:
            s += 1000
        else:
            s += 100 * array[1]
        return s

    @ti.kernel
    def run(a: ti.i32, array: ti.types.ndarray()) -> ti.i32:
        return total(a) + 10_000 * total(a, a) + total(a, array=x) + total(a, array=array)

    x[1] = 2
    assert run(3, np.array([0, 1, 2], np.int32)) == 1003 + 10_330_000 + 203 + 103


def test_static_assert_and_print(capsys: pytest.CaptureFixture[str]) -> None:
    x = ti.field(ti.f32, shape=(2, 3))

    @ti.kernel
    def good(a: ti.i32):
        ti.static_assert(len(x.shape) == 2, "two dimensions")
        ti.static_print("shape", x.shape, a)

    @ti.kernel
    def bad():
        ti.static_assert(len(x.shape) == 3, "three dimensions")

    good(1)
    good(2)
    assert capsys.readouterr().out == "shape (2, 3) a number of type i32\n"
    with pytest.raises(KernelSyntaxError, match="static assertion failed: three dimensions"):
        bad()


def test_unrolling_has_a_limit() -> None:
    @ti.kernel
    def long():
        for _ in ti.static(range(10**9)):
            pass

    @ti.kernel
    def wide():
        for _ in ti.static(ti.ndrange(10**5, 10**5)):
            pass

    @ti.kernel
    def endless():
        for _ in ti.static(itertools.count()):
            pass

    @ti.kernel
    def nested():
        for _ in ti.static(range(1000)):
            for _ in ti.static(range(1000)):
                pass

    @ti.kernel
    def comprehended() -> ti.i32:
        return sum([i * i for i in range(10**9)])

    for run in (long, wide, endless, nested, comprehended):
        with pytest.raises(KernelSyntaxError, match="iterations would take forever"):
            run()


def test_constants_have_a_limit() -> None:
    x = ti.field(ti.f32, shape=2)
    huge = 10**5000

    @ti.kernel
    def shifted():
        x[0] = 1 << 10**10

    @ti.kernel
    def raised():
        x[0] = 10**10**9

    @ti.kernel
    def multiplied():
        x[0] = 2**4000 * 2**4000

    @ti.kernel
    def written():
        x[0] = 10**400

    @ti.kernel
    def captured():
        x[0] = x[1] + huge

    @ti.kernel
    def repeated():
        print("a" * 10**9)

    for run, message in (
        (shifted, "enormous"),
        (raised, "enormous"),
        (multiplied, "enormous"),
        (written, "1,329 bits"),
        (captured, "16,610 bits"),
        (repeated, "too long"),
    ):
        with pytest.raises(KernelTypeError, match=message) as caught:
            run()
        assert caught.value.span.line

    @ti.kernel
    def fine() -> ti.f32:
        return 10**30 * 1e-30 + (1 << 20) * 2.0**-20

    assert fine() == pytest.approx(2.0)


def test_local_arrays_have_a_limit() -> None:
    x = ti.field(ti.f32, shape=2)
    wide = ti.Vector.field(20_000, ti.f32, shape=2)

    @ti.kernel
    def indexed(n: ti.i32):
        a = ti.Vector([0.0] * 20_000)
        x[0] = a[n]

    @ti.kernel
    def zeros():
        a = ti.Matrix.zero(ti.f32, 10**5, 10**5)
        x[0] = a[0, 0]

    @ti.kernel
    def whole():
        wide[0] = wide[1]

    @ti.kernel
    def typed():
        x[0] = ti.types.vector(10**9, ti.f32)(0)[0]

    for run, arguments in ((indexed, (3,)), (zeros, ()), (whole, ()), (typed, ())):
        with pytest.raises(KernelTypeError, match="larger than 64 kB"):
            run(*arguments)

    @ti.kernel
    def allowed(n: ti.i32) -> ti.f32:
        s = 0.0
        for _ in range(1):
            a = ti.Vector([0.5] * 16_000)
            a[n] = 3.0
            for i in range(16_000):
                s += a[i]
        return s

    assert allowed(77) == 0.5 * 15_999 + 3


def test_dictionaries_and_sets_by_comprehension() -> None:
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        squares = {k: n + k * k for k in range(5) if k != 1}
        named = {f"x{k}": v for k, v in squares.items()}
        odd = {k % 3 for k in range(9)}
        return named["x4"] + squares[0] * 100 + len(odd) * 10000 + (1 in squares) * 1000000

    assert run(7) == 23 + 700 + 30000

    @ti.kernel
    def keyed(n: ti.i32) -> ti.i32:
        return {n + k: k for k in range(2)}[0]

    assert (keyed(0), keyed(-1)) == (0, 1)
