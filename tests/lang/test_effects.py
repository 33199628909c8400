"""What kernels do besides computing: prints, assertions, faults, random numbers; and the options of `ti.init`."""

from typing import Any

import numpy as np
import pytest

import tinote as ti
from tinote.errors import KernelAssertionError, KernelZeroDivisionError
from tinote.lang.session.state import session


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


def test_init_refuses_what_it_does_not_know() -> None:
    for bad in (
        {"colour": 1},
        {"default_fp": ti.i32},
        {"default_ip": ti.f32},
        {"num_threads": 0},
        {"num_threads": -1},
        {"opt_level": 7},
        {"lanes": "often"},
        {"arch": "cpu"},
        {"num_threads": 1.5},
    ):
        with pytest.raises(ValueError, match=next(iter(bad)) if bad != {"arch": "cpu"} else "architecture"):
            ti.init(**bad)


def test_a_gpu_falls_back_with_one_warning() -> None:
    session.warned.discard("cuda")
    with pytest.warns(UserWarning, match="not available"):
        ti.init(arch=ti.cuda)
    x = ti.field(ti.i32, shape=3)
    x.fill(1)
    assert x.to_numpy().sum() == 3
