"""Assignments inside expressions, starred assignments, dictionaries and sets."""

import numpy as np

import tinote as ti


def test_named_expressions() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s = 0
        if (y := a * 2) > 3:
            s = y
        while (z := s - 1) > 10:
            s = z
        total = (w := 3) + w
        return s * 1000 + total * 10 + (y == 2 * a)

    def expected(a: int) -> int:
        s = 0
        if (y := a * 2) > 3:
            s = y
        while (z := s - 1) > 10:
            s = z
        return s * 1000 + 60 + (y == 2 * a)

    for a in (0, 1, 2, 5, 20):
        assert run(a) == expected(a)


def test_named_where_a_condition_decides() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        found = 0
        if a > 0 and (root := ti.sqrt(a * 1.0)) > 2.0:
            found = ti.cast(root, ti.i32)
        chosen = (q := a) + q if a > 5 else (q := 1)
        return found * 10000 + chosen * 100 + q

    assert [run(a) for a in (-1, 3, 16, 100)] == [101, 101, 43216, 10 * 10000 + 200 * 100 + 100]


def test_named_in_a_parallel_loop() -> None:
    x = ti.field(ti.i32, shape=1000)

    @ti.kernel
    def run():
        for i in x:
            if (v := i * 2) > 400:
                x[i] = v
            else:
                x[i] = -v

    run()
    v = 2 * np.arange(1000)
    np.testing.assert_array_equal(x.to_numpy(), np.where(v > 400, v, -v))


def test_starred_assignment() -> None:
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        a, *b, c = n, 2, 3, 4
        (d, e), *f = (5, 6), 7
        *g, h = ti.Vector([n, 8, 9])
        return a + 10 * (b[0] + b[1]) + 100 * c + 1000 * (d + e + f[0]) + 100_000 * (g[1] + h) + 10_000_000 * len(b)

    assert run(1) == 1 + 50 + 400 + 18_000 + 1_700_000 + 20_000_000


def test_dictionaries_and_sets() -> None:
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        more = {"c": 5}
        weights = {"a": n, "b": 10 * n, **more}
        s = 0
        for name in ti.static(weights):
            s += weights[name]
        for name, value in ti.static({"x": 100, "y": 200}.items()):
            s += value * ti.static(1 if name == "x" else 2)
        return s + 1000 * ("b" in weights) + 2000 * ti.static(3 in {1, 2})

    assert run(7) == 77 + 5 + 500 + 1000


def test_membership() -> None:
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        s = 0
        if a in (1, 2, 3):
            s += 1
        if a not in [2, 5]:
            s += 10
        if ti.static(3 in (3, 4)):
            s += 100
        return s

    assert [run(a) for a in (1, 2, 5, 9)] == [111, 101, 100, 110]
