"""Control flow: parallel and serial loops, branches, jumps, unrolling."""

from __future__ import annotations

from typing import Any

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
        for k in range(1):
            for i in range(low, high, step):
                hits[4, i] += 1

    for n, low, high, step in ((20, 3, 17, 4), (0, 5, 5, 1), (7, 12, 4, 2), (1, 0, 19, 19)):
        hits.fill(0)
        run(n, low, high, step)
        expected = np.zeros((5, 20), int)
        for row, numbers in enumerate([range(n), range(low, high), range(low, high, 3), range(high, low, -2), range(low, high, step)]):
            for i in numbers:
                expected[row, i] += 1
        np.testing.assert_array_equal(hits.to_numpy(), expected)


def test_negative_runtime_step() -> None:
    @ti.kernel
    def run(low: ti.i32, high: ti.i32, step: ti.i32) -> ti.i32:
        s = 0
        for k in range(1):
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
        for I in ti.grouped(ti.ndrange((1, 3), n)):
            hits[I[0], I[1], 1] += 1
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
    np.testing.assert_array_equal(c.to_numpy(), np.add.outer(np.arange(2) * 100, np.add.outer(np.arange(3) * 10, np.arange(4))))


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
            for j in range(count[i]):
                s += 1000
            out[i] = s

    run()
    expected = [sum(k for j in range(i) for k in range(j, i)) + 1000 * max(i % 5 - 1, 0) for i in range(n)]
    assert out.to_numpy().tolist() == expected


def test_while_break_continue() -> None:
    n = 30
    out = ti.field(ti.i32, shape=(4, n))

    @ti.kernel
    def run():
        for i in range(n):
            # Collatz length
            k, length = i + 1, 0
            while k != 1:
                if k % 2 == 0:
                    k //= 2
                else:
                    k = 3 * k + 1
                length += 1
            out[0, i] = length
            # break out of `while True`, with a continue before it
            a, s = 0, 0
            while True:
                a += 1
                if a % 3 == 0:
                    continue
                if a > i:
                    break
                s += a
            out[1, i] = s
            # break and continue in a serial for, nested
            t = 0
            for p in range(i):
                if p == 4:
                    continue
                for q in range(p):
                    if q == 5:
                        break
                    if (p + q) % 2:
                        continue
                    t += p * q
                if p == 11:
                    break
                t += 1
            out[2, i] = t
        for i in range(n):
            # continue in a parallel loop
            if i % 4 == 1:
                continue
            out[3, i] = i

    run()
    expected = np.zeros((4, n), int)
    for i in range(n):
        k, length = i + 1, 0
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            length += 1
        expected[0, i] = length
        a = s = 0
        while True:
            a += 1
            if a % 3 == 0:
                continue
            if a > i:
                break
            s += a
        expected[1, i] = s
        t = 0
        for p in range(i):
            if p == 4:
                continue
            for q in range(p):
                if q == 5:
                    break
                if (p + q) % 2:
                    continue
                t += p * q
            if p == 11:
                break
            t += 1
        expected[2, i] = t
        expected[3, i] = 0 if i % 4 == 1 else i
    np.testing.assert_array_equal(out.to_numpy(), expected)


def test_branches_carry_values() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s = 0
        t = 1
        if a > 10:
            s = a
            if a > 20:
                t = 5
            elif a > 15:
                t = 6
            else:
                s = -s
        elif a == 3:
            pass
        else:
            t, s = s, t
        return s * 100 + t

    def expected(a: int) -> int:
        s, t = 0, 1
        if a > 10:
            s = a
            if a > 20:
                t = 5
            elif a > 15:
                t = 6
            else:
                s = -s
        elif a == 3:
            pass
        else:
            t, s = s, t
        return s * 100 + t

    for a in (0, 3, 11, 15, 16, 20, 21):
        assert run(a) == expected(a)


def test_several_top_level_loops_and_statements() -> None:
    n = 100
    x, s = ti.field(ti.i32, shape=n), ti.field(ti.i32, shape=())

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s[None] = a
        for i in x:
            x[i] = i * s[None]
        b = x[n - 1]
        for i in x:
            x[i] += b
        total = 0
        for i in x:
            total += x[i]
        if total > 0:
            s[None] = total
        return total

    assert run(3) == sum(i * 3 + 99 * 3 for i in range(n))
    assert s[None] == sum(i * 3 + 99 * 3 for i in range(n))


def test_parallel_loop_in_a_branch_and_in_a_serial_loop() -> None:
    x = ti.field(ti.i32, shape=50)

    @ti.kernel
    def run(a: ti.i32):
        if a > 0:
            for i in x:
                x[i] += a
        else:
            for i in range(10):
                x[i] -= 1
        ti.loop_config(serialize=True)
        for step in range(3):
            for i in x:
                x[i] = x[i] * 2 + step

    run(1)
    assert x.to_numpy().tolist() == [((1 * 2) * 2 + 1) * 2 + 2] * 50
    x.fill(0)
    run(0)
    assert x.to_numpy().tolist() == [(((-1) * 2) * 2 + 1) * 2 + 2] * 10 + [4] * 40


def test_a_serialised_loop_runs_in_order() -> None:
    x = ti.field(ti.i32, shape=40)

    @ti.kernel
    def run():
        x[0] = 0
        x[1] = 1
        ti.loop_config(serialize=True)
        for i in range(2, 40):
            x[i] = x[i - 1] + x[i - 2]
            if i == 35:
                break

    run()
    numbers = [0, 1]
    while len(numbers) < 36:
        numbers.append(numbers[-1] + numbers[-2])
    assert x.to_numpy().tolist() == numbers + [0] * 4


def test_reductions_into_locals() -> None:
    x = ti.field(ti.i32, shape=1000)
    x.from_numpy(((np.arange(1000) * 37) % 251).astype(np.int32))

    @ti.kernel
    def total() -> ti.i32:
        s = 0
        for i in x:
            s += x[i]
        return s

    @ti.kernel
    def largest() -> ti.i32:
        m = -1000
        for i in x:
            ti.atomic_max(m, x[i])
        return m

    assert total() == x.to_numpy().sum()
    assert largest() == x.to_numpy().max()


def test_static_loops_and_branches() -> None:
    offsets = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    use = {"first": True}
    x, y = ti.field(ti.i32, shape=(8, 8)), ti.field(ti.i32, shape=(8, 8))
    x.from_numpy(np.arange(64, dtype=np.int32).reshape(8, 8))

    @ti.kernel
    def run():
        for i, j in ti.ndrange((1, 7), (1, 7)):
            s = 0
            for k in ti.static(range(4)):
                s += x[i + offsets[k][0], j + offsets[k][1]]
            for a, b in ti.static(ti.ndrange(2, 2)):
                if ti.static(a == b):
                    s += 1000
            for d in ti.static([(1, 2), (3, 4)]):
                s += d[0] * d[1]
            if ti.static(use["first"]):
                s += 5
            else:
                s += this_name_does_not_exist  # noqa: F821  never compiled
            y[i, j] = s

    run()
    a = x.to_numpy()
    inner = a[1:-1, 2:] + a[2:, 1:-1] + a[1:-1, :-2] + a[:-2, 1:-1] + 2000 + 14 + 5
    np.testing.assert_array_equal(y.to_numpy()[1:-1, 1:-1], inner)


def test_break_in_an_unrolled_loop() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s = 0
        for k in ti.static(range(6)):
            if k == a:
                break
            if k == 2:
                continue
            s += 10**k
        return s

    assert [run(a) for a in range(7)] == [0, 1, 11, 11, 1011, 11011, 111011]


def test_early_return_from_a_func() -> None:
    @ti.func
    def find(a):
        found = -1
        for k in range(100):
            if k * k >= a:
                found = k
                break
        return found

    @ti.func
    def early(a):
        if a < 0:
            return -1
        s = 0
        for k in range(a):
            if k == 7:
                return s
            s += k
        return s + 100

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        return find(a) * 1000 + early(a)

    def expected(a: int) -> int:
        root = next(k for k in range(100) if k * k >= a)
        return root * 1000 + (-1 if a < 0 else sum(range(7)) if a > 7 else sum(range(a)) + 100)

    for a in (-3, 0, 1, 7, 8, 50):
        assert run(a) == expected(a), a


def test_return_in_the_middle_of_a_kernel() -> None:
    x = ti.field(ti.i32, shape=())

    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        if a < 0:
            return -1
        x[None] += 1
        if a == 0:
            return 0
        x[None] += 10
        return 1

    assert [run(-5), run(0), run(3)] == [-1, 0, 1]
    assert x[None] == 12


def test_zero_and_negative_trip_counts() -> None:
    x = ti.field(ti.i32, shape=5)

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        for i in range(n):
            x[i] = 1
        s = 0
        for k in range(1):
            for i in range(n):
                s += 1
        return s

    assert [run(n) for n in (0, -1, -(2**31), 5)] == [0, 0, 0, 5]


def test_loops_near_the_ends_of_the_range() -> None:
    @ti.kernel
    def run(low: ti.i32, high: ti.i32) -> ti.i32:
        s = 0
        for k in range(1):
            for i in range(low, high):
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
            for k in range(3):
                t = 0
                t += i
                s += t
            out[i] = s

    run()
    assert out.to_numpy().tolist() == [3 * i for i in range(10)]


def test_the_walrus_and_chained_assignment() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        b = c = a + 1
        b += 1
        x, (y, z) = b, (c, a)
        return x * 100 + y * 10 + z

    assert run(3) == 543


def number(value: Any) -> int:
    return int(value)


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
