"""Loops of every form, on any number of threads and at every optimisation level."""

import numpy as np
import pytest

import tinote as ti


def test_range_forms() -> None:
    hits = ti.field(ti.i32, shape=(5, 20))

    @ti.kernel
    def run(n: ti.i32, low: ti.i32, high: ti.i32, step: ti.i32):
        for i in range(n):
            hits[0, i] += 1
        for i in range(low, high):
            hits[1, i] += 1
        for i in range(low, high, 3):
            hits[2, i] += 1
        for i in range(high, low, -2):
            hits[3, i] += 1
        for _ in range(1):
            for i in range(low, high, step):
                hits[4, i] += 1

    for n, low, high, step in ((20, 3, 17, 4), (0, 5, 5, 1), (7, 12, 4, 2), (1, 0, 19, 19)):
        hits.fill(0)
        run(n, low, high, step)
        expected = np.zeros((5, 20), int)
        for row, numbers in enumerate(
            [range(n), range(low, high), range(low, high, 3), range(high, low, -2), range(low, high, step)]
        ):
            for i in numbers:
                expected[row, i] += 1
        np.testing.assert_array_equal(hits.to_numpy(), expected)


def test_negative_runtime_step() -> None:
    @ti.kernel
    def run(low: ti.i32, high: ti.i32, step: ti.i32) -> ti.i32:
        s = 0
        for _ in range(1):
            for i in range(low, high, step):
                s = s * 31 + i
        return s

    def expected(low: int, high: int, step: int) -> int:
        s = 0
        for i in range(low, high, step):
            s = s * 31 + i
        return (s + 2**31) % 2**32 - 2**31

    for case in ((10, 0, -3), (0, 10, -3), (0, 10, 3), (-5, 5, 1), (5, -6, -1)):
        assert run(*case) == expected(*case), case


def test_ndrange_forms() -> None:
    hits = ti.field(ti.i32, shape=(6, 7, 3))

    @ti.kernel
    def run(n: ti.i32):
        for i, j in ti.ndrange(n, (2, 6)):
            hits[i, j, 0] += 1 + i * 10 + j
        for at in ti.grouped(ti.ndrange((1, 3), n)):
            hits[at[0], at[1], 1] += 1
        for i, j, k in ti.ndrange(2, n, 3):
            hits[i, j, k] += 100

    run(5)
    expected = np.zeros((6, 7, 3), int)
    for i in range(5):
        for j in range(2, 6):
            expected[i, j, 0] += 1 + i * 10 + j
    expected[1:3, :5, 1] += 1
    expected[:2, :5, :] += 100
    np.testing.assert_array_equal(hits.to_numpy(), expected)


def test_struct_for_of_every_rank() -> None:
    a, b, c = ti.field(ti.i32, shape=7), ti.field(ti.i32, shape=(3, 5)), ti.field(ti.i32, shape=(2, 3, 4))

    @ti.kernel
    def run():
        for i in a:
            a[i] = i
        for i, j in b:
            b[i, j] = 10 * i + j
        for i, j, k in c:
            c[i, j, k] = 100 * i + 10 * j + k

    run()
    np.testing.assert_array_equal(a.to_numpy(), np.arange(7))
    np.testing.assert_array_equal(b.to_numpy(), np.add.outer(np.arange(3) * 10, np.arange(5)))
    np.testing.assert_array_equal(
        c.to_numpy(), np.add.outer(np.arange(2) * 100, np.add.outer(np.arange(3) * 10, np.arange(4)))
    )


def test_triangular_and_data_dependent_bounds() -> None:
    n = 20
    count, out = ti.field(ti.i32, shape=n), ti.field(ti.i32, shape=n)
    count.from_numpy((np.arange(n) % 5 - 1).astype(np.int32))

    @ti.kernel
    def run():
        for i in range(n):
            s = 0
            for j in range(i):
                for k in range(j, i):
                    s += k
            for _ in range(count[i]):
                s += 1000
            out[i] = s

    run()
    expected = [sum(k for j in range(i) for k in range(j, i)) + 1000 * max(i % 5 - 1, 0) for i in range(n)]
    assert out.to_numpy().tolist() == expected


def test_zero_and_negative_trip_counts() -> None:
    x = ti.field(ti.i32, shape=5)

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        for i in range(n):
            x[i] = 1
        s = 0
        for _ in range(1):
            for _ in range(n):
                s += 1
        return s

    assert [run(n) for n in (0, -1, -(2**31), 5)] == [0, 0, 0, 5]


def test_loops_near_the_ends_of_the_range() -> None:
    @ti.kernel
    def run(low: ti.i32, high: ti.i32) -> ti.i32:
        s = 0
        for _ in range(1):
            for _ in range(low, high):
                s += 1
        return s

    top = 2**31 - 1
    assert run(top - 3, top) == 3
    assert run(-(2**31), -(2**31) + 5) == 5


def test_a_wide_parallel_loop_of_64_bits() -> None:
    hits = ti.field(ti.i32, shape=10)

    @ti.kernel
    def run(base: ti.i64):
        for i in range(base, base + 10):
            hits[ti.cast(i - base, ti.i32)] += 1

    run(1 << 40)
    assert hits.to_numpy().tolist() == [1] * 10


@pytest.mark.parametrize("shape", [1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 4097])
def test_every_iteration_once(shape: int) -> None:
    x = ti.field(ti.i32, shape=shape)

    @ti.kernel
    def run():
        for i in x:
            x[i] += i + 1

    run()
    np.testing.assert_array_equal(x.to_numpy(), np.arange(shape) + 1)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_thread_counts(threads: int) -> None:
    ti.init(num_threads=threads)
    n = 10_000
    x, s = ti.field(ti.i32, shape=n), ti.field(ti.i32, shape=())

    @ti.kernel
    def run():
        for i in x:
            x[i] += i
            s[None] += 1

    run()
    assert s[None] == n
    np.testing.assert_array_equal(x.to_numpy(), np.arange(n))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_optimisation_levels(level: int) -> None:
    ti.init(opt_level=level)
    x = ti.field(ti.f32, shape=100)

    @ti.kernel
    def run() -> ti.f32:
        for i in x:
            x[i] = ti.sqrt(ti.cast(i, ti.f32))
        s = 0.0
        for i in x:
            s += x[i]
        return s

    assert run() == pytest.approx(np.sqrt(np.arange(100)).sum(), rel=1e-5)


def test_locals_of_a_loop_do_not_leak_between_iterations() -> None:
    out = ti.field(ti.i32, shape=10)

    @ti.kernel
    def run():
        for i in out:
            s = 0
            for _ in range(3):
                t = 0
                t += i
                s += t
            out[i] = s

    run()
    assert out.to_numpy().tolist() == [3 * i for i in range(10)]


def test_life_of_a_generic_nest() -> None:
    """Matrix product with a loop nest of three, checked in f64."""
    n, m, k = 7, 5, 9
    a, b, c = ti.field(ti.f64, shape=(n, k)), ti.field(ti.f64, shape=(k, m)), ti.field(ti.f64, shape=(n, m))
    random = np.random.default_rng(1)
    a.from_numpy(random.normal(size=(n, k)))
    b.from_numpy(random.normal(size=(k, m)))

    @ti.kernel
    def multiply():
        for i, j in c:
            for p in range(k):
                c[i, j] += a[i, p] * b[p, j]

    multiply()
    np.testing.assert_allclose(c.to_numpy(), a.to_numpy() @ b.to_numpy(), rtol=1e-13)


def test_the_grouped_index_of_a_field_without_dimensions() -> None:
    """One kernel for parameters of any shape."""
    scalar, table = ti.field(ti.f32, shape=(), needs_grad=True), ti.field(ti.f32, shape=(2, 3))
    vector, loss = ti.Vector.field(2, ti.f32, shape=()), ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def add(x: ti.template(), amount: ti.f32):
        for at in ti.grouped(x):
            x[at] += amount

    @ti.kernel
    def add_array(x: ti.types.ndarray()):
        for at in ti.grouped(x):
            x[at] += 1

    @ti.kernel
    def square():
        for at in ti.grouped(scalar):
            loss[at] += scalar[at] ** 2

    for x, amount in ((scalar, 3), (table, 2), (vector, 1)):
        add(x, amount)
    number = np.zeros(())
    add_array(number)
    assert (scalar[None], number, vector[None].to_list()) == (3, 1, [1, 1])
    assert (table.to_numpy() == 2).all()
    with ti.ad.Tape(loss=loss):
        square()
    assert (loss[None], scalar.grad[None]) == (9, 6)


def test_ndrange_and_grouped_in_python() -> None:
    assert list(ti.ndrange(3)) == [0, 1, 2]
    assert list(ti.ndrange(2, (1, 3))) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert [at.to_list() for at in ti.grouped(ti.ndrange((1, 3), 1))] == [[1, 0], [2, 0]]
    assert [at.to_list() for at in ti.grouped(ti.ndrange(2))] == [[0], [1]]
    with pytest.raises(TypeError, match="integer"):
        ti.ndrange(1.5)
