"""Atomics, reductions, random numbers."""

import numpy as np


def sums_and_extremes(ti):
    ti.init(arch=ti.cpu)
    r = ti.field(ti.i32, 4)
    r[1], r[2] = 1000, -1000

    @ti.kernel
    def k():
        for i in range(100):
            r[0] += i
            ti.atomic_min(r[1], (i * 37) % 101)
            ti.atomic_max(r[2], (i * 37) % 101)
            ti.atomic_sub(r[3], 1)

    k()
    return r.to_numpy()


def bitwise_atomics(ti):
    ti.init(arch=ti.cpu)
    r = ti.field(ti.i32, 3)
    r[0] = -1

    @ti.kernel
    def k():
        for i in range(8):
            ti.atomic_and(r[0], ~(1 << i))
            ti.atomic_or(r[1], 1 << i)
            ti.atomic_xor(r[2], i * i)

    k()
    return r.to_numpy()


def old_values(ti):
    ti.init(arch=ti.cpu)
    n, seen = ti.field(ti.i32, ()), ti.field(ti.i32, 20)

    @ti.kernel
    def k():
        for _ in range(20):
            seen[ti.atomic_add(n[None], 1)] += 1

    k()
    return [n[None], seen.to_numpy()]


def reduction_into_a_local(ti):
    ti.init(arch=ti.cpu)
    x = ti.field(ti.f32, 50)
    x.from_numpy(np.arange(50, dtype=np.float32))

    @ti.kernel
    def k() -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i] * 0.5
        return s

    return k()


def histogram(ti):
    ti.init(arch=ti.cpu)
    h = ti.field(ti.i32, 7)

    @ti.kernel
    def k(n: ti.i32):
        for i in range(n):
            h[(i * i) % 7] += 1

    k(100)
    return h.to_numpy()


def vectors_added(ti):
    ti.init(arch=ti.cpu)
    v = ti.Vector.field(2, ti.f32, ())

    @ti.kernel
    def k():
        for i in range(10):
            v[None] += ti.Vector([i, 1])

    k()
    return v[None]


def random_numbers_lie_in_range(ti):
    ti.init(arch=ti.cpu, random_seed=3)
    x = ti.field(ti.f32, 10000)

    @ti.kernel
    def k():
        for i in x:
            x[i] = ti.random()

    k()
    a = x.to_numpy()
    return [bool(a.min() >= 0), bool(a.max() < 1), bool(abs(a.mean() - 0.5) < 0.02)]


def normal_numbers(ti):
    ti.init(arch=ti.cpu, random_seed=3)
    x = ti.field(ti.f32, 20000)

    @ti.kernel
    def k():
        for i in x:
            x[i] = ti.randn()

    k()
    a = x.to_numpy()
    return [bool(abs(a.mean()) < 0.05), bool(abs(a.std() - 1) < 0.05)]


def sorting(ti):
    ti.init(arch=ti.cpu)
    keys, values = ti.field(ti.i32, 16), ti.field(ti.i32, 16)
    keys.from_numpy((np.arange(16, dtype=np.int32) * 7) % 16)
    values.from_numpy(np.arange(16, dtype=np.int32))
    ti.algorithms.parallel_sort(keys, values)
    return [keys.to_numpy(), values.to_numpy()]
