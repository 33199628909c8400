"""`ti.atomic_*`: on fields, on components, on local variables; each returns the old value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinote as ti

N = 5000
KINDS: dict[str, tuple[Callable[[int, int], int], int]] = {
    "atomic_add": (lambda a, b: a + b, 3),
    "atomic_sub": (lambda a, b: a - b, 3),
    "atomic_mul": (lambda a, b: a * b, 3),
    "atomic_min": (min, 3),
    "atomic_max": (max, 9),
    "atomic_and": (lambda a, b: a & b, 3),
    "atomic_or": (lambda a, b: a | b, 3),
    "atomic_xor": (lambda a, b: a ^ b, 3),
}


@pytest.mark.parametrize("name", KINDS)
def test_old_values(name: str) -> None:
    x = ti.field(ti.i32, shape=2)
    atomic: Any = getattr(ti, name)
    meaning, operand = KINDS[name]

    @ti.kernel
    def on_a_field(b: ti.i32) -> ti.i32:
        return atomic(x[1], b)

    @ti.kernel
    def on_a_variable(b: ti.i32) -> tuple[ti.i32, ti.i32]:
        a = 6
        old = atomic(a, b)
        return old, a

    @ti.kernel
    def unused(b: ti.i32):
        atomic(x[0], b)

    x.fill(6)
    assert on_a_field(operand) == 6
    assert x[1] == meaning(6, operand)
    assert on_a_variable(operand) == (6, meaning(6, operand))
    unused(operand)
    assert x[0] == meaning(6, operand)


def test_on_components_and_whole_vectors() -> None:
    v = ti.Vector.field(3, ti.f32, shape=4)

    @ti.kernel
    def run() -> ti.types.vector(3, ti.f32):
        ti.atomic_add(v[0], ti.Vector([1.0, 2.0, 3.0]))
        old = ti.atomic_add(v[0], 1.0)
        v[1].x += 2
        v[2][1] -= 2
        w = ti.Vector([1.0, 2.0])
        ti.atomic_max(w[0], 5.0)
        v[3].xz = w
        return old

    assert run().to_list() == [1.0, 2.0, 3.0]
    assert v.to_numpy().tolist() == [[2, 3, 4], [2, 0, 0], [0, -2, 0], [5, 0, 2]]


def test_each_old_value_is_handed_out_once() -> None:
    count, slots = ti.field(ti.i32, shape=()), ti.field(ti.i32, shape=N)

    @ti.kernel
    def run():
        for i in range(N):
            slots[ti.atomic_add(count[None], 1)] = i

    run()
    assert count[None] == N
    np.testing.assert_array_equal(np.sort(slots.to_numpy()), np.arange(N))


@pytest.mark.parametrize("dtype", [ti.i32, ti.i64, ti.u32, ti.f32, ti.f64], ids=str)
def test_many_threads_on_few_elements(dtype: Any) -> None:
    total, least, most = (ti.field(dtype, shape=3) for _ in range(3))
    least.fill(N)

    @ti.kernel
    def run():
        for i in range(N):
            ti.atomic_add(total[i % 3], 1)
            ti.atomic_min(least[i % 3], ti.cast(i, dtype))
            ti.atomic_max(most[i % 3], ti.cast(i, dtype))

    run()
    assert total.to_numpy().tolist() == [1667, 1667, 1666]
    assert least.to_numpy().tolist() == [0, 1, 2]
    assert most.to_numpy().tolist() == [4998, 4999, 4997]
