"""Conway's game of life on a torus, bytes in two fields that change places."""

import numpy as np

import tinote as ti


def test_game_of_life() -> None:
    n = 48
    alive = ti.field(ti.u8, shape=(2, n, n))

    @ti.func
    def neighbours(t, i, j):
        count = 0
        for di, dj in ti.static(ti.ndrange((-1, 2), (-1, 2))):
            if ti.static(di != 0 or dj != 0):
                count += alive[t, (i + di + n) % n, (j + dj + n) % n]
        return count

    @ti.kernel
    def step(t: ti.i32):
        for i, j in ti.ndrange(n, n):
            count = neighbours(t, i, j)
            if alive[t, i, j] == 1:
                alive[1 - t, i, j] = 1 if 2 <= count <= 3 else 0
            else:
                alive[1 - t, i, j] = count == 3

    start = (np.random.default_rng(4).random((n, n)) < 0.3).astype(np.uint8)
    alive.from_numpy(np.stack([start, np.zeros_like(start)]))
    expected = start
    for generation in range(30):
        step(generation % 2)
        count = sum(np.roll(expected, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))
        expected = ((count == 3) | ((expected == 1) & (count == 2))).astype(np.uint8)
        np.testing.assert_array_equal(alive.to_numpy()[1 - generation % 2], expected)
    assert 0 < expected.sum() < n * n
