"""The front end: what programs of the dialect mean, by interpreting the IR that they become."""

from __future__ import annotations

import math

import pytest

from tests.lang.dialect import Field, array, check, func, lowered, ops, r32, run, ti
from tests.lang.frontend_fields import N, U, line, m2, mats, s0, total, v, x
from tinote.compiler.function_source import function_source
from tinote.ir.nodes import Atomic, BufferKind, For, Load, Local, Store, While
from tinote.ir.text import show
from tinote.ir.types import f32, f64, i32

dt = 0.5


# the classic program


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


def test_one_assignment_needs_no_cell():
    assert not ops(compute_energy, Local)
    assert not ops(compute_energy, Store)


# indexing


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


def with_arguments(n: i32, scale: float, field: ti.template(), power: ti.template()) -> f64:
    for i in range(n):
        total[None] += scale * field[i] ** power
    return total[None]


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
    for _ in range(3):
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


# what operations carry


def test_small_powers_are_products():
    text = show(lowered(with_arguments, 3, 0.5, line, 3)[0].function)
    assert "pow" not in text


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
