"""Control flow in the front end: loops, jumps, early returns, what is unrolled."""

from __future__ import annotations

from tests.lang.dialect import check, func, ti
from tests.lang.frontend_fields import line, m2
from tinote.ir.types import f32, f64, i32

# control


def collatz(n: i32) -> i32:
    steps = 0
    while n_of(n, steps) != 1:
        steps += 1
    return steps


@func
def n_of(start, steps):
    value = start
    for _ in range(steps):
        value = value // 2 if value % 2 == 0 else 3 * value + 1
    return value


def test_while_with_a_function_in_its_condition():
    check(collatz, 7, 3)


def breaks(n: i32) -> i32:
    found = -1
    ti.loop_config(serialize=True)
    for i in range(n):
        if i * i > 50:
            found = i
            break
        if i == 1000:
            continue
        found = -2
    return found


def test_break():
    check(breaks, 8, 100)
    check(breaks, -2, 5)
    check(breaks, -1, 0)


def continues() -> i32:
    odd = 0
    count = 0
    ti.loop_config(serialize=True)
    for i in range(10):
        if i % 2 == 0:
            if i > 4:
                count += 100
                continue
            count += 1
        else:
            odd += i
            continue
        count += 10
    return count * 1000 + odd


def test_continue():
    check(continues, (3 * 11 + 2 * 100) * 1000 + 25)


def nested_breaks() -> i32:
    count = 0
    ti.loop_config(serialize=True)
    for i in range(5):
        for j in range(5):
            if j > i:
                break
            for k in range(10):
                if k == 3:
                    break
                count += 1
        if i == 3:
            break
    return count


def test_nested_breaks():
    check(nested_breaks, 3 * (1 + 2 + 3 + 4))


def break_out_of_ndrange() -> i32:
    count = 0
    ti.loop_config(serialize=True)
    for i, j in ti.ndrange(4, (2, 6)):
        if i == 2 and j == 3:
            break
        count += 1
    return count


def test_break_leaves_a_whole_ndrange():
    check(break_out_of_ndrange, 9)


def while_true(n: i32) -> i32:
    i = 0
    while True:
        i += 1
        if i % 7 != 0:
            continue
        if i > n:
            break
    return i


def test_while_true():
    check(while_true, 42, 35)


def guarded_while() -> i32:
    i = 0
    while line[i] < 10.0:
        i += 1
        if i == 4:
            break
    return i


def test_a_broken_while_does_not_evaluate_its_condition():
    check(guarded_while, 4, fields=[line])


def ranges(a: i32, b: i32, s: i32) -> i32:
    result = 0
    ti.loop_config(serialize=True)
    for i in range(a, b, s):
        result = result * 10 + i
    return result


def literal_ranges() -> i32:
    result = 0
    ti.loop_config(serialize=True)
    for i in range(9, 0, -4):
        result = result * 10 + i
    for i in range(2, 5):
        result = result * 10 + i
    return result


def test_ranges():
    check(ranges, 147, 1, 9, 3)
    check(ranges, 963, 9, 0, -3)
    check(ranges, 0, 9, 0, 3)
    check(literal_ranges, 951 * 1000 + 234)


def if_chain(n: i32) -> i32:
    r = 0
    if n < 0:
        r = -1
    elif n == 0:
        r = 0
    else:
        if n > 100:
            r = 2
        else:
            r = 1
    return r


def test_if_chain():
    for n, expected in ((-5, -1), (0, 0), (7, 1), (700, 2)):
        check(if_chain, expected, n)


@func
def sign_of(value):
    if value < 0:
        return -1
    if value > 0:
        return 1.5
    return 0


@func
def first_above(limit):
    for i in range(4):
        for j in range(4):
            if i * j > limit:
                return i * 10 + j
    return -1


def early(a: f32, b: i32) -> f64:
    return sign_of(a) * 1000 + first_above(b)


def test_early_returns():
    check(early, -1000.0 + 13, -3.0, 2)
    check(early, 1500.0 - 1, 3.0, 20)
    check(early, 0.0 + 23, 0.0, 5)


def kernel_returns_early(n: i32) -> i32:
    if n < 0:
        return -1
    i = 0
    while i < 100:
        if i * i > n:
            return i
        i += 1
    return 100


def test_kernels_return_early():
    check(kernel_returns_early, -1, -4)
    check(kernel_returns_early, 6, 30)
    check(kernel_returns_early, 100, 100000)


def static_control(flag: ti.template()) -> i32:
    r = 0
    if ti.static(flag):
        width = 3
    else:
        width = 5
    for k in ti.static(range(4)):
        if ti.static(k == 2):
            continue
        r += k * width
    for k in ti.static(range(100)):
        if ti.static(k == 2):
            break
        r += 100
    for a, b in ti.static(zip((1, 2), (10, 20), strict=True)):
        r += a * b * 1000
    for i, j in ti.static(ti.ndrange(2, 2)):
        r += 100000 * i * j
    return r


def test_static_loops_and_ifs():
    check(static_control, 4 * 3 + 200 + 50000 + 100000, True)
    check(static_control, 4 * 5 + 200 + 50000 + 100000, False)


def static_break_at_run_time(n: i32) -> i32:
    r = 0
    for k in ti.static(range(5)):
        if k == n:
            break
        if k == 1:
            continue
        r += k + 10
    return r


def test_unrolled_loops_can_be_left_at_run_time():
    check(static_break_at_run_time, 10 + 12, 3)
    check(static_break_at_run_time, 0, 0)
    check(static_break_at_run_time, 10 + 12 + 13 + 14, 9)


def static_neighbours() -> f32:
    s = 0.0
    for offset in ti.static(ti.grouped(ti.ndrange((-1, 2), (-1, 2)))):
        p = ti.Vector([1, 1]) + offset
        s += m2[p]
    return s


def test_static_grouped():
    check(static_neighbours, float(sum(10 * i + j for i in range(3) for j in range(3))), fields=[m2])
