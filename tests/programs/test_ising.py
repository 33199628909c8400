"""The Ising model, 32 lattices in the bits of each word: checkerboard Metropolis steps, bit for bit as NumPy's, and the
exact energy of the infinite lattice.
"""

import numpy as np
import pytest

import tinote as ti

BITS = 32
words = ti.types.ndarray(dtype=ti.u32, ndim=2)


@ti.real_func
def scrambled(x: ti.u32) -> ti.u32:
    """A bijection of 32 bits that leaves no pattern (multiply and shift, after Wellons)."""
    x ^= x >> 16
    x *= ti.u32(0x7FEB352D)
    x ^= x >> 15
    x *= ti.u32(0x846CA68B)
    x ^= x >> 16
    return x


@ti.real_func
def uniform(site: ti.u32, sweep: ti.u32) -> ti.f32:
    """A number in [0, 1) with 24 bits."""
    return ti.cast(scrambled(site ^ scrambled(sweep + ti.u32(0x9E3779B9))) >> 8, ti.f32) * 2.0**-24


@ti.func
def full_adder(a, b, c):
    """Sum and carry of three bits, in every position."""
    return a ^ b ^ c, (a & b) | (c & (a ^ b))


@ti.func
def differing(spins: ti.template(), i, j):
    """For every bit: whether at least one, and at least two, of the four neighbours differ from the spin."""
    n, m = spins.shape
    s = spins[i, j]
    a, b = s ^ spins[(i + 1) % n, j], s ^ spins[(i - 1) % n, j]
    c, d = s ^ spins[i, (j + 1) % m], s ^ spins[i, (j - 1) % m]
    low, high = full_adder(a, b, c)
    return low | high | d, high | (low & d)


@ti.kernel
def sweep_colour(spins: words, colour: ti.i32, sweep: ti.u32, beta: ti.f32):
    for i, j in spins:
        if (i + j) & 1 == colour:
            one, two = differing(spins, i, j)
            r = uniform(ti.cast(i * spins.shape[1] + j, ti.u32), sweep)
            flips = two
            if r < ti.exp(-8 * beta):
                flips = ~ti.u32(0)
            elif r < ti.exp(-4 * beta):
                flips = one
            spins[i, j] ^= flips


@ti.kernel
def measure(spins: words, energies: ti.types.ndarray(), magnetisations: ti.types.ndarray()) -> ti.i32:
    """Energy and magnetisation of every lattice, and how many spins are up in all."""
    up = 0
    for i, j in spins:
        s = spins[i, j]
        right, below = s ^ spins[(i + 1) % spins.shape[0], j], s ^ spins[i, (j + 1) % spins.shape[1]]
        for k in range(BITS):
            unequal = ti.i32((right >> k) & 1) + ti.i32((below >> k) & 1)
            energies[k] += 2 * unequal - 2
            magnetisations[k] += 2 * ti.i32(s >> k & 1) - 1
        up += ti.math.popcnt(s)
    return up


def reference_sweep(spins: np.ndarray, colour: int, sweep: int, beta: float) -> np.ndarray:
    def scramble(x: np.ndarray) -> np.ndarray:
        x = x ^ (x >> np.uint32(16))
        x = x * np.uint32(0x7FEB352D)
        x = x ^ (x >> np.uint32(15))
        x = x * np.uint32(0x846CA68B)
        return x ^ (x >> np.uint32(16))

    n, m = spins.shape
    i, j = np.indices((n, m))
    counter = scramble(np.full(1, (sweep + 0x9E3779B9) % 2**32, np.uint32))
    r = (scramble((i * m + j).astype(np.uint32) ^ counter) >> np.uint32(8)) / 2**24
    bits = (spins[..., None] >> np.arange(BITS, dtype=np.uint32)) & 1
    count = sum(bits != np.roll(bits, by, axis) for axis in (0, 1) for by in (-1, 1))
    chance = np.exp(-beta * np.array([8, 4, 0, 0, 0], np.float32))[count]
    flip = (r[..., None] < chance) & ((i + j) % 2 == colour)[..., None]
    return ((bits ^ flip) << np.arange(BITS, dtype=np.uint32)).sum(-1).astype(np.uint32)


def onsager(beta: float) -> float:
    """Energy a site of the infinite lattice (Onsager, 1944); the elliptic integral by arithmetic-geometric means."""
    k = 2 * np.sinh(2 * beta) / np.cosh(2 * beta) ** 2
    a, b = 1.0, np.sqrt(1 - k * k)
    for _ in range(30):
        a, b = (a + b) / 2, np.sqrt(a * b)
    return -1 / np.tanh(2 * beta) * (1 + (2 * np.tanh(2 * beta) ** 2 - 1) / a)


def test_ising_model() -> None:
    n = 24
    start = np.random.default_rng(5).integers(0, 2**32, (n, n), dtype=np.uint32)
    spins = ti.ndarray(ti.u32, shape=(n, n))
    spins.from_numpy(start)
    expected = start
    for sweep in range(10):
        for colour in (0, 1):
            sweep_colour(spins, colour, sweep, 0.5)
            expected = reference_sweep(expected, colour, sweep, 0.5)
    np.testing.assert_array_equal(spins.to_numpy(), expected)

    energies, magnetisations = np.zeros(BITS, np.int32), np.zeros(BITS, np.int32)
    up = measure(spins, energies, magnetisations)
    signs = 2 * ((expected[..., None] >> np.arange(BITS, dtype=np.uint32)) & 1).astype(int) - 1
    np.testing.assert_array_equal(magnetisations, signs.sum((0, 1)))
    np.testing.assert_array_equal(energies, -(signs * (np.roll(signs, -1, 0) + np.roll(signs, -1, 1))).sum((0, 1)))
    assert up == (signs > 0).sum()


@pytest.mark.parametrize("beta", [0.3, 0.55])
def test_the_energy_is_that_of_the_infinite_lattice(beta: float) -> None:
    n = 64
    # Below the critical temperature all spins up are near equilibrium, above it anything is.
    spins = np.full((n, n), 2**32 - 1, np.uint32)
    energies, magnetisations = np.zeros(BITS, np.int32), np.zeros(BITS, np.int32)
    for sweep in range(150):
        for colour in (0, 1):
            sweep_colour(spins, colour, 2 * sweep + colour, beta)
        if sweep >= 50:
            measure(spins, energies, magnetisations)
    assert energies.mean() / (100 * n * n) == pytest.approx(onsager(beta), rel=0.01)
    assert (abs(magnetisations / (100 * n * n)) > 0.9).all() == (beta > 0.4407)
