"""Traps for differentiation: parallel loops of which several iterations store to one element. The last of them wins,
and has the gradient.
"""

import numpy as np
import pytest

import tinote as ti
from tests.autodiff.traps import Traps, session  # noqa: F401

#: In debug mode a launch warns where iterations have met; what they do then is the subject here.
pytestmark = pytest.mark.filterwarnings(r"ignore:iterations \d+ and \d+ of the parallel loop meet")

trap = Traps()


@trap
def scattered_stores(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            y[k[i] // 2] = x[i] * 2
        for i in y:
            loss[None] += y[i] ** 2

    return run


@trap
def every_turn_stores(x, s, loss):
    @ti.kernel
    def run():
        for i in x:
            s[None] = x[i] ** 2

    @ti.kernel
    def end():
        loss[None] += s[None] ** 2

    return (run, end)


@trap
def last_that_is_positive(x, loss):
    @ti.kernel
    def run():
        last, which = 0.0, -1
        for i in x:
            if x[i] > 0:
                last = x[i] ** 2
        for i in x:
            if x[i] > 0:
                which = i
        loss[None] += last * x[which]

    return run


@trap
def stores_then_adds_to_the_neighbour(x, y, loss):
    @ti.kernel
    def run():
        for i in range(4):
            y[i] = x[i] * 2
            y[i + 1] += x[i] ** 2
        for i in y:
            loss[None] += y[i] ** 2

    return run


@trap
def overlapping_pairs(x, y, loss):
    @ti.kernel
    def run():
        for i in range(4):
            y[i] = x[i] * 2
            y[i + 1] = x[i] ** 2
        for i in y:
            loss[None] += y[i] ** 2

    return run


@trap
def moved_within_one_field(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            x[k[i]] = x[i] * x[i] + y[i]
        for i in x:
            loss[None] += x[i] ** 2

    return run


@trap
def changed_in_place_several_times(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            y[k[i] % 3] = y[k[i] % 3] * x[i] + 0.3
        for i in y:
            loss[None] += y[i] ** 2

    return (run, run)


@trap
def last_column(g, x, y, loss):
    @ti.kernel
    def run():
        for i, j in g:
            g[i, j] = x[j] * (i + 1)
        for i, j in g:
            y[i] = g[i, j] ** 2
        for i in y:
            loss[None] += y[i] * x[i]

    return run


@trap
def vectors_in_a_function(v, k, x, loss):
    w = ti.Vector.field(2, ti.f64, 3, needs_grad=True, needs_dual=True)

    @ti.func
    def put(j, a):
        w[j] = a * w[j].x
        return w[j].sum()

    @ti.kernel
    def run():
        for i in v:
            if v[i].x > -0.5:
                loss[None] += put(k[i] % 3, v[i] * x[i]) * v[i].y

    def f():
        w.fill(0.9)
        run()
        run()

    return f


@trap
def in_a_while_of_each_turn(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            j, iteration = i, 0
            while iteration < 3:
                j = k[j]
                y[j] = ti.sin(y[j] + x[i])
                iteration += 1
        for i in y:
            loss[None] += y[i] * x[i]

    return run


@trap
def random_draws_stay_the_same(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            y[k[i] % 2] = x[i] * ti.random(ti.f64) + y[k[i] % 2] * ti.random(ti.f64)
        for i in y:
            loss[None] += y[i] ** 2

    return run


@trap
def appended_and_mirrored(x, y, z, loss):
    count = ti.field(ti.i32, ())

    @ti.kernel
    def run():
        for i in x:
            if x[i] > 0:
                j = ti.atomic_add(count[None], 1)
                z[j] = x[i] ** 2
                y[4 - j] = z[j] * x[i]

    @ti.kernel
    def end():
        for i in y:
            loss[None] += y[i] ** 2 + z[i]

    def f():
        count.fill(0)
        run()
        end()

    return f


@trap
def moved_along_a_graph(x, y, k, loss):
    @ti.kernel
    def run():
        for i in x:
            x[i] = 0.5 * (x[i] + x[k[i]] * y[i])
        for i in x:
            loss[None] += x[i] ** 2

    return (run, run)


@trap
def added_to_the_parent(x, y, loss):
    parent = ti.field(ti.i32, 5)
    parent.from_numpy(np.array([0, 0, 0, 1, 2], np.int32))

    @ti.kernel
    def run():
        for i in range(1, 5):
            x[parent[i]] += x[i] * y[i]
        for i in range(1, 5):
            x[i] += x[parent[i]] * x[i]
        for i in x:
            loss[None] += x[i] ** 2

    return run


@trap
def walk_that_reads_what_it_changes(x, k, loss):
    @ti.kernel
    def run():
        for i in x:
            j, iteration = k[i], 0
            while iteration < 3:
                x[i] += 0.3 * ti.sin(x[j])
                j = k[j]
                iteration += 1
        for i in x:
            loss[None] += x[i] ** 2

    return run


@trap
def neighbour_under_a_mask(x, y, loss):
    @ti.kernel
    def run():
        for i in range(1, 5):
            if y[i] > -1:
                x[i] = ti.sin(x[i]) + x[i - 1]
        for i in x:
            loss[None] += x[i] ** 2

    return run


@trap
def neighbour_decides(x, loss):
    @ti.kernel
    def run():
        for i in range(1, 5):
            before = x[i - 1]
            if before > 0:
                x[i] = x[i] * before
            else:
                x[i] = before - x[i] ** 2
        for i in x:
            loss[None] += x[i] ** 2

    return run


@trap
def all_elements_for_each(x, y, loss):
    @ti.kernel
    def run():
        for i in x:
            total = y[i]
            for j in range(5):
                if i != j:
                    total += x[j] * y[j]
            x[i] = total * 0.3
        for i in x:
            loss[None] += x[i] ** 2

    return run


@trap
def bodies_that_move_at_once(v, x, loss):
    @ti.kernel
    def run():
        for i in v:
            force = ti.Vector([0.0, 0.0])
            for j in range(5):
                force += (v[j] - v[i]) * x[j]
            v[i] += 0.1 * force
        for i in v:
            loss[None] += v[i].norm_sqr()

    return run


@trap
def ring_of_three_under_a_mask(g, x, y, loss):
    @ti.kernel
    def run(t: ti.i32):
        for i in range(1, 4):
            if y[i] > -1:
                g[(t + 1) % 3, i] = g[t % 3, i - 1] * g[t % 3, i + 1] + g[(t + 2) % 3, i] + x[i]

    @ti.kernel
    def end():
        for i, j in g:
            loss[None] += g[i, j] ** 2

    def f():
        g.fill(0.4)
        for t in range(4):
            run(t)
        end()

    return f


@pytest.mark.parametrize("name", trap)
def test_trap(name: str) -> None:
    trap.check(name)
