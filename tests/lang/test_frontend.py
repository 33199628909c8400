"""The front end: what programs of the dialect mean, by interpreting the IR that they become."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from tests.lang.dialect import Constant, Field, array, check, func, lowered, run, ti
from tinote.compiler.frontend.protocol import function_source
from tinote.config import Config
from tinote.errors import KernelAssertionError
from tinote.ir.nodes import Atomic, BufferKind, For, Load, Local, Store, While
from tinote.ir.query import walk
from tinote.ir.text import show
from tinote.ir.types import f32, f64, i32, i64, u8, u32

N = 8
dt = 0.5
GRAVITY = Constant([0.0, -9.8])
PARAMS = {"stiffness": 3.0}
TABLE = [1, 2, 4]


def r32(value: float) -> float:
    """Rounded to single precision."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def ops(kernel: Any, kind: type, *arguments: Any) -> list[Any]:
    return [op for op in walk(lowered(kernel, *arguments)[0].function.region) if isinstance(op, kind)]


# the classic program

x = Field("x", f32, (N,), (2,), needs_grad=True, content=[[math.cos(k), math.sin(k) * 2] for k in range(N)])
v = Field("v", f32, (N,), (2,), content=[[0.25 * k, 1.0] for k in range(N)])
U = Field("U", f32, (), needs_grad=True)


def compute_energy():
    for i, j in ti.ndrange(N, N):
        r = x[i] - x[j]
        U[None] += -1 / r.norm(1e-3)


def advance():
    for i in x:
        v[i] += dt * -x.grad[i]
    for i in x:
        x[i] += dt * v[i]


def scatter():
    for i in x:
        x[i] = [ti.random(), ti.random()]


def test_gravity_energy():
    expected = 0.0
    for p in x.content:
        for q in x.content:
            expected -= 1 / math.sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + 1e-3)
    assert run(compute_energy, fields=[x])[U] == pytest.approx(expected, rel=1e-5)


def test_gravity_is_a_perfect_nest(golden):
    golden(show(lowered(compute_energy)[0].function))


def test_gravity_advance():
    found = run(advance, fields=[x, v])
    assert found[v] == v.content
    assert found[x][3] == pytest.approx([x.content[3][k] + dt * v.content[3][k] for k in range(2)], rel=1e-6)


def test_random_is_replayable_and_different_everywhere():
    once, again, other = run(scatter, seed=5)[x], run(scatter, seed=5, backwards=True)[x], run(scatter, seed=6)[x]
    assert once == again
    assert once != other
    numbers = [c for row in once for c in row]
    assert len(set(numbers)) == 2 * N
    assert all(0 <= c < 1 for c in numbers)


a1, b1 = Field("a1", f32, (N,)), Field("b1", f32, (N,))


def two_random_loops():
    for i in a1:
        a1[i] = ti.random()
    for i in b1:
        b1[i] = ti.random()


def test_two_loops_draw_different_numbers():
    found = run(two_random_loops)
    assert not set(found[a1]) & set(found[b1])


# indexing

s0 = Field("s0", i32, (), content=7)
m2 = Field("m2", f32, (3, 4), content=[[10 * i + j for j in range(4)] for i in range(3)])
mats = Field("mats", f32, (2,), (2, 2), content=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]])


def read_everything() -> f32:
    I = ti.Vector([1, 2])  # noqa: E741
    return s0[None] + m2[2, 3] * 1000 + m2[I] * 100 + mats[1][1, 0] + x[0].x


def test_reading_fields():
    check(read_everything, r32(7 + 23000 + 1200 + 7 + 1), fields=[s0, m2, mats, x])


def write_everything():
    s0[None] = 9
    m2[0, 1] = 0.5
    mats[0] = [[1, 0], [0, 1]]
    mats[1][0, 1] = -1
    x[2] = (3, 4)
    x[1].y = 2.5
    x[3][0] = 1.5
    x[4] = 0.0


def test_writing_fields():
    found = run(write_everything, fields=[s0, m2, mats, x])
    assert found[s0] == 9
    assert found[m2][0][1] == 0.5
    assert found[mats] == [[[1, 0], [0, 1]], [[5, -1], [7, 8]]]
    assert found[x][2] == [3, 4]
    assert found[x][1][1] == 2.5
    assert found[x][3][0] == 1.5
    assert found[x][4] == [0, 0]


def component_traffic():
    for i in x:
        x[i].x += x[i][1]


def test_components_are_loaded_and_stored_alone():
    (load,) = ops(component_traffic, Load)
    (atomic,) = ops(component_traffic, Atomic)
    assert len(load.index) == len(atomic.index) == 2


def grouped_copy():
    for I in ti.grouped(m2):  # noqa: E741
        m2[I] = I[0] * 10 + I.y


def test_grouped():
    assert run(grouped_copy)[m2] == m2.content


def shapes() -> i32:
    return m2.shape[0] * 100 + m2.shape[1] * 10 + len(m2) + x[0].n + mats[0].m


def test_shapes():
    check(shapes, 340 + 3 + 2 + 2)


# arguments

total = Field("total", f64, ())


def with_arguments(n: i32, scale: float, field: ti.template(), power: ti.template()) -> f64:
    for i in range(n):
        total[None] += scale * field[i] ** power
    return total[None]


line = Field("line", f64, (4,), content=[1.0, 2.0, 3.0, 4.0])


def test_arguments():
    check(with_arguments, 0.5 * 14, 3, 0.5, line, 2, fields=[line])
    check(with_arguments, 3.0, 3, 0.5, line, 1, fields=[line])


def vector_argument(v: ti.vector(3, f32), w: ti.vector(3, f32)) -> ti.vector(3, f32):
    return v.cross(w)


def test_vector_arguments_and_results():
    assert run(vector_argument, [1, 0, 0], [0, 1, 0]).results == (0, 0, 1)


def many_results(a: i32) -> tuple[i32, f32]:
    return a + 1, a / 2


def test_tuples_are_returned():
    assert run(many_results, 3).results == (4, 1.5)


def over_array(a: ti.template()) -> i32:
    for i, j in a:
        a[i, j] += i * 10 + j
    return a.shape[0] + a.shape[1]


def test_arrays_known_at_launch():
    buffer = array("a", f32, 2)
    found = run(over_array, buffer, arrays={buffer: [[1, 2], [3, 4], [5, 6]]})
    assert found.result == 5
    assert found[buffer] == [[1, 3], [13, 15], [25, 27]]


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
    for a, b in ti.static(zip((1, 2), (10, 20))):
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


# parallel loops


def outermost() -> i32:
    count = 0
    best = -1
    for i in range(10):
        count += i
        ti.atomic_max(best, i * i)
    return count * 100 + best


def test_locals_that_iterations_share_are_memory():
    check(outermost, 4581)
    check(outermost, 4581, backwards=True)
    loop = next(op for op in ops(outermost, For))
    assert loop.parallel
    assert {op.buffer.kind for op in ops(outermost, Atomic)} == {BufferKind.TEMPORARY}


def serial_inside() -> i32:
    for i in range(3):
        local = 0
        for j in range(4):
            local += j
        s0[None] += local
    return s0[None]


def test_only_the_outermost_loop_is_parallel():
    check(serial_inside, 7 + 18, fields=[s0])
    assert [op.parallel for op in ops(serial_inside, For)] == [True, False]


def serialised():
    ti.loop_config(serialize=True)
    for i in range(3):
        s0[None] = s0[None] * 10 + i


def test_serialize():
    assert run(serialised, fields=[s0])[s0] == 7012
    assert not ops(serialised, For)[0].parallel


@func
def loops_in_function():
    for i in line:
        line[i] *= 2


def calls_loops():
    loops_in_function()


def test_loops_of_a_function_called_at_the_top_are_outermost():
    assert run(calls_loops, fields=[line])[line] == [2, 4, 6, 8]
    assert ops(calls_loops, For)[0].parallel


def test_augmented_assignment_is_atomic_on_fields_only():
    assert not ops(serial_inside, While)
    assert len(ops(serial_inside, Atomic)) == 1


# expressions


def arithmetic(a: i32, b: i32) -> i32:
    return (a + b) * (a - b) + a // b * 7 + a % b + (a & b) + (a | b) + (a ^ b) + (a << 2) + (a >> 1) + ~a + -b + +a


@pytest.mark.parametrize(("a", "b"), [(7, 3), (-7, 3), (7, -3), (-8, -3), (1, 1)])
def test_integer_arithmetic_is_pythons(a: int, b: int):
    check(arithmetic, arithmetic(a, b), a, b)


def chains(a: i32, b: i32, c: i32) -> bool:
    return a < b <= c and not (a == 0 or b != c) or c > 100 >= a


def test_truth_is_pythons():
    for a in (-1, 0, 1, 200):
        for b in (-1, 1, 2):
            for c in (-1, 1, 2, 101):
                check(chains, int(chains(a, b, c)), a, b, c)


def guarded(i: i32) -> f64:
    inside = 0 <= i and i < 4 and line[i] > 0
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


def test_small_powers_are_products():
    text = show(lowered(with_arguments, 3, 0.5, line, 3)[0].function)
    assert "pow" not in text


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


bytes_ = Field("bytes_", u8, (2,))


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


def captured_constants() -> f32:
    f = GRAVITY * 2
    return f.y + GRAVITY[0] + PARAMS["stiffness"] + TABLE[1] + math.pi


def test_captured_constants():
    check(captured_constants, pytest.approx(-19.6 + 3 + 2 + math.pi, rel=1e-6))


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


# functions


@func
def accumulate(target: ti.template(), amount):
    target += amount
    amount = 0


@func
def with_defaults(a, b=2, *, c: ti.template() = 3):
    return a * 100 + b * 10 + c


class Model:
    scale = 3

    def __init__(self) -> None:
        self.field = line

    @func
    def scaled(self, i):
        return self.field[i] * self.scale


MODEL = Model()


def calls() -> f64:
    s = 1.0
    step = 0.5
    accumulate(s, step)
    accumulate(total[None], step)
    return s + with_defaults(1) + with_defaults(1, c=9, b=8) * 1000 + step * 0.25 + MODEL.scaled(2) + total[None]


def test_functions():
    check(calls, 1.5 + 123 + 189000 + 0.125 + 9 + 0.5, fields=[line, total])


def test_operations_of_a_function_point_to_it_and_to_the_call():
    (loop,) = ops(calls_loops, For)
    source = loops_in_function.__tinote_function__
    assert loop.loc.line == source.tree.body[0].lineno
    assert loop.loc.inlined_at is not None
    assert loop.loc.inlined_at.line == function_source(calls_loops).tree.body[0].lineno


def test_columns_and_lines_are_the_files():
    (atomic,) = ops(compute_energy, Atomic)
    with open(__file__, encoding="utf-8") as file:
        text = file.readlines()[atomic.loc.line - 1]
    assert text[atomic.loc.column :].startswith("U[None] += -1 / r.norm(1e-3)")


# effects


def printing(a: i32):
    w = ti.Vector([1, 2])
    print("a is", a, f"twice {a * 2}!", w, sep="|", end=".\n")
    print(f"{N=} {dt:.2f}")


def test_print():
    assert run(printing, 4).printed.startswith("a is|4|twice 8!|[1, 2].\nN=8 0.50\n")


def asserting(a: i32):
    assert a > 0, f"a is {a}, {{not}} positive"


def test_assert():
    run(asserting, 1)
    with pytest.raises(KernelAssertionError, match=r"a is -2, \{not\} positive"):
        run(asserting, -2)


def old_values() -> i32:
    before = ti.atomic_add(s0[None], 5)
    ti.atomic_sub(s0[None], 2)
    k = 3
    last = ti.atomic_min(k, 1)
    return before * 1000 + s0[None] * 10 + k + last


def test_atomics_return_the_old_value():
    check(old_values, 7000 + 100 + 1 + 3, fields=[s0])


def unsigned_difference():
    bytes_[0] -= 1.5
    bytes_[1] -= 1


def test_subtraction_converts_before_it_negates():
    bytes_.content = [5, 0]
    assert run(unsigned_difference, fields=[bytes_])[bytes_] == [4, 255]


def maths(a: f64) -> f64:
    return ti.sin(a) + ti.cos(a) * 2 + ti.exp(a) + ti.sqrt(a) + ti.atan2(a, 2.0) + ti.log(a) + math.tanh(a) + ti.sqrt(2)


def test_maths():
    a = 0.75
    expected = math.sin(a) + math.cos(a) * 2 + math.exp(a) + math.sqrt(a) + math.atan2(a, 2) + math.log(a)
    check(maths, pytest.approx(expected + math.tanh(a) + math.sqrt(2), rel=1e-15), a)


def helpers(a: f32, n: i32) -> f32:
    return (
        ti.select(a > 0, 1, 2.5)
        + ti.sign(a) * 10
        + abs(a) * 100
        + min(a, 1, n)
        + ti.clamp(n, 0, 3) * 1000
        + ti.popcnt(n)
    )


def test_helpers():
    check(helpers, 2.5 - 10 + 150 - 1.5 + 3000 + 3, -1.5, 7)


# what the driver asks about


def test_captures_notice_change():
    captures = lowered(captured_constants)[0].captures
    assert all(c.unchanged() for c in captures)
    PARAMS["stiffness"] = 4.0
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        PARAMS["stiffness"] = 3.0
    assert all(c.unchanged() for c in captures)
    globals()["GRAVITY"] = Constant([1.0, 2.0])
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        globals()["GRAVITY"] = next(c.value for c in captures if c.key == "GRAVITY")


def test_captures_reach_through_functions_and_attributes():
    captures = lowered(calls)[0].captures
    MODEL.scale = 4
    try:
        assert not all(c.unchanged() for c in captures)
    finally:
        del MODEL.scale
    assert all(c.unchanged() for c in captures)


def test_closures_are_captured():
    factor = 3

    def kernel(a: i32) -> i32:
        return a * factor

    found = lowered(kernel, 1)[0]
    check(kernel, 12, 4)
    factor = 5
    assert not all(c.unchanged() for c in found.captures)
    check(kernel, 20, 4)


def test_one_assignment_needs_no_cell():
    assert not ops(compute_energy, Local)
    assert not ops(compute_energy, Store)
