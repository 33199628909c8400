"""Expressions and local variables in the front end."""

from __future__ import annotations

import pytest

from tests.lang.dialect import Constant, check, r32, run, ti
from tests.lang.frontend_fields import bytes_, line, total
from tinote.config import Config
from tinote.ir.types import f32, f64, i32, i64, u32

dt = 0.5
GRAVITY = Constant([0.0, -9.8])
PARAMS = {"stiffness": 3.0}
TABLE = [1, 2, 4]


# expressions


def arithmetic(a: i32, b: i32) -> i32:
    return (a + b) * (a - b) + a // b * 7 + a % b + (a & b) + (a | b) + (a ^ b) + (a << 2) + (a >> 1) + ~a + -b + +a


@pytest.mark.parametrize(("a", "b"), [(7, 3), (-7, 3), (7, -3), (-8, -3), (1, 1)])
def test_integer_arithmetic_is_pythons(a: int, b: int):
    check(arithmetic, arithmetic(a, b), a, b)


def chains(a: i32, b: i32, c: i32) -> bool:
    return (a < b <= c and not (a == 0 or b != c)) or c > 100 >= a


def test_truth_is_pythons():
    for a in (-1, 0, 1, 200):
        for b in (-1, 1, 2):
            for c in (-1, 1, 2, 101):
                check(chains, int(chains(a, b, c)), a, b, c)


def guarded(i: i32) -> f64:
    inside = i >= 0 and i < 4 and line[i] > 0
    outside = i < 0 or i >= 4 or line[i] < 0
    value = line[i] if 0 <= i < 4 else -1.0
    return value + 10 * inside + 100 * outside


def test_operands_that_could_fault_are_not_evaluated():
    check(guarded, 12.0, 1, fields=[line])
    check(guarded, 99.0, -1, fields=[line])
    check(guarded, 99.0, 4, fields=[line])


def powers(a: f32, n: i32) -> f32:
    return a**2 + a**-1 + a**0.5 + a**5 + a**n + 2**n + a**0


def test_powers():
    check(powers, 16.0 + 0.25 + 2.0 + 1024.0 + 64.0 + 8.0 + 1.0, 4.0, 3)


def division(a: i32, b: i32) -> f32:
    return a / b


def test_division_is_true_division():
    check(division, 3.5, 7, 2)


def casts(a: f32) -> i32:
    return int(a) * 1000 + ti.cast(a * 10, ti.i32) + ti.i32(a > 0) + int(ti.floor(a)) * 100000


def test_casts():
    check(casts, -2000 - 27 - 300000, -2.75)


def constants_keep_their_precision() -> f64:
    total[None] = 0.1
    return total[None] + ti.f64(0.2) * 2


def test_constants_are_not_rounded_on_the_way_to_f64():
    check(constants_keep_their_precision, 0.1 + 0.4)


def default_types() -> float:
    a = 0.1
    return a


def test_default_types_follow_the_options():
    check(default_types, r32(0.1))
    check(default_types, 0.1, config=Config(default_fp="f64"))


def a_type_is_fixed_at_the_first_assignment() -> f32:
    n = 1
    n = n + 1.75
    return n


def test_later_assignments_convert_and_warn():
    found = run(a_type_is_fixed_at_the_first_assignment)
    assert found.result == 2.0
    (warning,) = found.lowered.warnings
    assert "fraction" in warning.message


def big_constants() -> i64:
    return ti.i64(3000000000) + 3000000000


def unsigned() -> u32:
    return ti.u32(0) - 1


def test_wide_and_unsigned_constants():
    check(big_constants, 6000000000)
    check(unsigned, 0xFFFFFFFF)


def store_bytes():
    bytes_[0] = 255
    bytes_[1] = -1


def test_negative_constants_are_bits_in_unsigned_memory():
    assert run(store_bytes)[bytes_] == [255, 255]


# locals


def swap(a: i32, b: i32) -> i32:
    p, q = a, b
    p, q = q, p
    (r, s), t = (p + 1, q + 1), 5
    r = s = r * 10 + s
    return p * 1000 + q * 100 + r + s + t


def test_unpacking():
    check(swap, 2 * 1000 + 1 * 100 + 32 + 32 + 5, 1, 2)


def local_vectors(i: i32) -> f32:
    w = ti.Vector([1.0, 2.0, 3.0])
    w[i] = 10.0
    w.x += 0.5
    w[-1] *= 2
    u = w * 2 + 1
    w.zy = ti.Vector([100.0, 200.0])
    return u[i] + u.x + w.sum() + w.yz.dot(ti.Vector([1, 0]))


def test_local_vectors():
    w = [1.0, 10.0, 3.0]
    w[0] += 0.5
    w[2] *= 2
    u = [c * 2 + 1 for c in w]
    w[2], w[1] = 100.0, 200.0
    check(local_vectors, u[1] + u[0] + sum(w) + w[1], 1)


def matrices() -> f32:
    A = ti.Matrix([[2.0, 1.0], [0.5, 3.0]])
    B = A @ A.inverse()
    b = A @ ti.Vector([1.0, 2.0])
    C = A.transpose() + ti.Matrix.identity(ti.f32, 2)
    return A.determinant() * 1000 + B.trace() * 100 + b[0] * 10 + b[1] + C[0, 1] * 0.5 + A[1, :].sum() * 10000


def test_matrices():
    check(matrices, pytest.approx(5500 + 200 + 40 + 6.5 + 0.25 + 35000, rel=1e-6))


def big_inverse() -> f32:
    M = ti.Matrix([[4.0, 1, 0, 2], [1, 3, 1, 0], [0, 1, 5, 1], [2, 0, 1, 6]])
    E = M @ M.inverse() - ti.Matrix.identity(ti.f32, 4)
    return E.norm()


def test_inverse_of_4_by_4():
    assert run(big_inverse).result < 1e-6


def vector_functions() -> f32:
    a = ti.Vector([3.0, 4.0])
    b = ti.Vector([1.0, 2.0])
    o = a.outer_product(b)
    n = a.normalized()
    ok = (a > b).all() and not (a < b).any()
    return a.norm() + a.dot(b) * 10 + o[1, 1] * 100 + n.x * 1000 + a.cross(b) * 10000 + a.max() * 100000 + ok


def test_vector_functions():
    check(vector_functions, pytest.approx(5 + 110 + 800 + 600 + 20000 + 400000 + 1, rel=1e-6))


def lists(i: i32) -> i32:
    table = [5, 7, 9]
    a, b = table[1], table[i]
    squares = ti.Vector([k * k for k in range(4)])
    return a * 100 + b * 10 + squares[i] + len(table) + sum([1, 2, 3]) + max(i, 3, 1) * 1000


def test_lists():
    check(lists, 700 + 90 + 4 + 3 + 6 + 3000, 2)


def constructors() -> f32:
    p = vec3(1.0, 2.0, 3.0)
    q = vec3(0.5)
    s = vec3(ti.Vector([7.0, 8.0]), 9)
    return p.dot(q) * 1000 + s.z


vec3 = ti.vector(3, f32)


def test_vector_types_construct():
    check(constructors, 3009.0)


def tuples_in_branches(a: i32) -> i32:
    pair = (a, 2)
    if a > 3:
        pair = (2, a * 10)
    for _ in range(2):
        for _ in range(3):
            pass
    first, second = pair
    return first * 1000 + second


def test_tuples_can_be_assigned_under_conditions():
    check(tuples_in_branches, 1002, 1)
    check(tuples_in_branches, 2050, 5)


def wide_ranges(n: i64) -> i64:
    s = ti.i64(0)
    ti.loop_config(serialize=True)
    for i in range(n, n + 3):
        s += i
    for I in ti.grouped(ti.ndrange((1, 3), 2)):  # noqa: E741
        s += I[0] * 10 + I[1]
    return s


def test_ranges_of_wide_integers_and_grouped_ndranges():
    check(wide_ranges, 3 * (1 << 40) + 3 + 10 + 11 + 20 + 21, 1 << 40)


def slices_and_swizzles() -> f32:
    w = ti.Vector([1.0, 2.0, 3.0, 4.0])
    M = ti.Matrix([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    w.xw += ti.Vector([10.0, 20.0])
    top = M[0, 1:]
    return w[1:3].sum() * 1000 + w.xw.sum() * 10000 + M[:, 0].sum() * 100 + top.sum() + M[:, 1:][1, 1] * 10


def test_slices_and_swizzles():
    check(slices_and_swizzles, (1 + 4 + 30) * 10000 + 5 * 1000 + 500 + 5 + 60)


def membership(a: i32) -> i32:
    return (a in (1, 2, 3)) * 10 + (a not in (2, 5))


def test_membership():
    check(membership, 11, 1)
    check(membership, 10 + 0, 2)
    check(membership, 1, 7)


def conditional_vectors(a: i32) -> f32:
    w = ti.Vector([1.0, 2.0]) if a > 0 else ti.Vector([3, 4])
    flag = False
    flag = flag or a > 5
    return w.x * 10 + w.y + (100 if flag else 0.5)


def test_conditional_expressions():
    check(conditional_vectors, 12.5, 1)
    check(conditional_vectors, 34.5, -1)
    check(conditional_vectors, 112.0, 6)


def shifts(a: i32) -> i32:
    return ti.bit_shr(a, 28) * 100 + (a >> 28)


def test_shifts():
    check(shifts, 15 * 100 - 1, -1)


def bits(a: f32) -> u32:
    return ti.bit_cast(a, ti.u32)


def test_bit_cast():
    check(bits, 0x3F800000, 1.0)


def normal_numbers() -> f64:
    s = 0.0
    ti.loop_config(serialize=True)
    for _ in range(400):
        r = ti.randn()
        s += r * r
    return s / 400


def test_normal_numbers_have_unit_variance():
    assert 0.8 < run(normal_numbers, config=Config(default_fp="f64")).result < 1.2


def integers_at_random() -> i64:
    return ti.random(ti.i64)


def test_random_integers_use_every_bit():
    found = [run(integers_at_random, seed=k).result for k in range(64)]
    assert all(any(f >> bit & 1 for f in found) and not all(f >> bit & 1 for f in found) for bit in range(64))
