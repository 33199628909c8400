"""Control flow: branches, jumps, serial loops, unrolling, early returns."""

import linecache
from typing import Any

import numpy as np
import pytest

import tinote as ti


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


def test_the_walrus_and_chained_assignment() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        b = c = a + 1
        b += 1
        x, (y, z) = b, (c, a)
        return x * 100 + y * 10 + z

    assert run(3) == 543


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_a_loop_that_only_a_return_ends(arch: Any) -> None:
    ti.init(arch=arch)

    @ti.func
    def root(n):
        i = 0
        while True:
            i += 1
            if i * i > n:
                return i

    @ti.func
    def nested(n, endless: ti.template()):
        if ti.static(endless):
            while 1:
                n += 7
                while True:
                    n += 1
                    if n % 5 == 0:
                        break
                if n % 3 == 0:
                    return n
        else:
            return -n

    @ti.kernel
    def k(first: ti.i32) -> ti.i32:
        n = first
        while True:
            if n > 100:
                return n
            n = n * 2 + root(n)

    @ti.kernel
    def both(n: ti.i32) -> ti.i32:
        return nested(n, True) * 1000 + nested(n, False)

    def expected(n: int) -> int:
        while n <= 100:
            n = n * 2 + int(n**0.5) + 1
        return n

    assert [k(n) for n in (0, 1, 17, 101)] == [expected(n) for n in (0, 1, 17, 101)]
    assert both(2) == 30 * 1000 - 2


def test_a_loop_with_a_break_may_end_without_a_return() -> None:
    @ti.kernel
    def k(first: ti.i32) -> ti.i32:
        n = first
        while True:
            if n > 100:
                return n
            if n < 0:
                break
            n = n * 2

    with pytest.raises(ti.errors.KernelTypeError, match="does not return a value on every path"):
        k(1)


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_no_dimensions_have_one_index(arch: Any) -> None:
    ti.init(arch=arch)
    x = ti.field(ti.i32, ())

    @ti.kernel
    def k():
        for none in ti.grouped(ti.ndrange()):
            x[none] += 1
        for none in ti.static(ti.grouped(ti.ndrange())):
            x[none] += 10

    k()
    assert x[None] == 11


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_dictionaries_are_looked_up_at_run_time(arch: Any) -> None:
    ti.init(arch=arch, default_fp=ti.f64)
    x, loss = ti.field(ti.f64, 4, needs_grad=True), ti.field(ti.f64, (), needs_grad=True)
    x.from_numpy(np.array([1.0, 2.0, 3.0, 4.0]))

    @ti.kernel
    def k(n: ti.i32, m: ti.i32) -> ti.i32:
        squares = {i: i * i for i in range(5)}
        shifted = {**{i + n: i * 10 for i in range(3)}, n: 7}
        return squares[m] * 100 + shifted[m] + shifted[n] * 10000

    @ti.kernel
    def weigh(n: ti.i32):
        for i in range(3):
            table = {n + j: x[j] ** 2 for j in range(4)}
            loss[None] += table[n + i] * (i + 1)

    @ti.kernel
    def has(n: ti.i32, m: ti.i32) -> ti.i32:
        return ti.i32(m in {i + n: 0 for i in range(3)}) * 10 + ti.i32(4 in {i + n: 0 for i in range(3)})

    assert k(1, 3) == 900 + 20 + 70000 and k(2, 2) == 400 + 7 + 70000
    for n, m in ((1, 4), (3, 2)):
        with pytest.raises(ti.TaichiAssertionError, match="the dictionary has no item with this key"):
            k(n, m)
    assert [has(2, 4), has(2, 5), has(3, 2)] == [11, 1, 1]
    with ti.ad.Tape(loss):
        weigh(5)
    assert loss[None] == 1 + 8 + 27 and x.grad.to_numpy().tolist() == [2, 8, 18, 0]


@pytest.mark.parametrize("arch", [ti.cpu, ti.python])
@pytest.mark.parametrize("condition", ["True", "ti.static(True)", "not False", "1 == 1", "ti.static(n_is_known)"])
def test_a_jump_under_a_condition_that_is_known(condition: str, arch: Any) -> None:
    text = f"""
n_is_known = True

@ti.func
def first(n, k):
    for i in range(n):
        if {condition}:
            if i == k:
                return i * 100
        else:
            return -1
    return 7

@ti.kernel
def run(n: ti.i32) -> ti.i32:
    s = 0
    for _ in range(1):
        for i in range(n):
            if {condition}:
                if i == 1:
                    continue
            s += i
            if {condition}:
                if i > 3:
                    break
        while True:
            if {condition}:
                break
        for i in range(5):
            if {condition}:
                break
            s += 1000
    return s + first(n, 2)
"""
    ti.init(arch=arch)
    linecache.cache["known.py"] = (len(text), None, text.splitlines(keepends=True), "known.py")
    space: dict[str, Any] = {"ti": ti}
    exec(compile(text, "known.py", "exec"), space)
    assert [space["run"](n) for n in (0, 2, 3, 9)] == [7, 7, 202, 209]
    ti.init()
