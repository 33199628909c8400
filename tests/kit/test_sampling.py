"""`ti.sampling`: the generator's published numbers, SciPy's distributions, and sequences that fill space evenly."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from scipy.stats import qmc

import tinote as ti
from tinote.kit.sampling import MOST, philox

# Annotations of kernels are values.
# pyright: reportInvalidTypeForm=false

COUNT = 100_000

#: Counters, keys and results that the authors of the generator have published.
PUBLISHED = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize("arch", [ti.cpu, ti.python], ids=str)
def test_the_published_numbers(arch: Any) -> None:
    ti.init(arch=arch)

    @ti.kernel
    def mixed(counter: ti.types.vector(4, ti.u32), key: ti.types.vector(2, ti.u32)) -> ti.types.vector(4, ti.u32):
        return philox(counter, key)

    for counter, key, result in PUBLISHED:
        assert [int(word) for word in mixed(counter, key)] == result


def drawn(draw: Callable[[Any], Any], rows: int = 1, key: int = 3, dtype: Any = ti.f32) -> Any:
    """What a function of a stream gives for each of many indices."""
    found = ti.Vector.field(rows, dtype, shape=COUNT)

    @ti.kernel
    def fill():
        for i in found:
            numbers = ti.sampling.stream(key, i)
            found[i] = ti.Vector([1.0 for _ in ti.static(range(rows))]) * draw(numbers)

    fill()
    return found.to_numpy()


@ti.func
def uniform(numbers: Any) -> Any:
    return numbers.uniform()


@ti.func
def normal(numbers: Any) -> Any:
    return numbers.normal()


@ti.func
def exponential(numbers: Any) -> Any:
    return numbers.exponential()


@ti.func
def second_normal(numbers: Any) -> Any:
    numbers.words()
    return numbers.normal()


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (uniform, scipy.stats.uniform),
        (normal, scipy.stats.norm),
        (second_normal, scipy.stats.norm),
        (exponential, scipy.stats.expon),
    ],
)
@pytest.mark.parametrize("fp", [ti.f32, ti.f64], ids=str)
def test_numbers_have_their_distributions(draw: Any, distribution: Any, fp: Any) -> None:
    ti.init(arch=ti.cpu, default_fp=fp)
    found = drawn(draw, dtype=fp)[:, 0]
    assert np.all(np.isfinite(found))
    assert scipy.stats.kstest(found.astype(float), distribution.cdf).pvalue > 1e-3
    assert len(np.unique(found)) > (0.99 if fp is ti.f32 else 0.99999) * COUNT


def test_streams_of_other_keys_and_indices_are_independent() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    found = ti.field(ti.f64, shape=(6, COUNT))

    @ti.kernel
    def fill():
        for i in range(COUNT):
            first = ti.sampling.stream(1, i)
            found[0, i], found[1, i] = first.normal(), first.normal()
            found[2, i] = ti.sampling.stream(2, i).normal()
            found[3, i] = ti.sampling.stream(1, i, 1).normal()
            found[4, i] = ti.sampling.stream(1, i, 0, 1).normal()
            found[5, i] = ti.sampling.stream(1, i + 1).normal()

    fill()
    correlations = np.corrcoef(found.to_numpy()) - np.eye(6)
    assert np.abs(correlations).max() < 4.5 / COUNT**0.5
    shifted = np.corrcoef(found.to_numpy()[0, 1:], found.to_numpy()[5, :-1])[0, 1]
    assert shifted == pytest.approx(1)  # the same indices, the same numbers


@ti.func
def on_circle(numbers: Any) -> Any:
    return numbers.on_circle()


@ti.func
def in_disc(numbers: Any) -> Any:
    return numbers.in_disc()


@ti.func
def on_sphere(numbers: Any) -> Any:
    return numbers.on_sphere()


@ti.func
def in_ball(numbers: Any) -> Any:
    return numbers.in_ball()


@pytest.mark.parametrize(
    ("draw", "rows", "power"), [(on_circle, 2, 0), (in_disc, 2, 2), (on_sphere, 3, 0), (in_ball, 3, 3)]
)
def test_points_are_even_in_every_direction(draw: Any, rows: int, power: int) -> None:
    ti.init(arch=ti.cpu)
    found = drawn(draw, rows).astype(float)
    length = np.linalg.norm(found, axis=1)
    if power:  # the part within a radius goes with its power
        assert scipy.stats.kstest(length**power, scipy.stats.uniform.cdf).pvalue > 1e-3
    else:
        assert length == pytest.approx(1, abs=1e-6)
    unit = found / length[:, None]
    direction = np.random.default_rng(0).normal(size=rows)
    along = unit @ (direction / np.linalg.norm(direction))
    expected = scipy.stats.uniform(-1, 2).cdf if rows == 3 else lambda t: 1 - np.arccos(np.clip(t, -1, 1)) / np.pi
    assert scipy.stats.kstest(along, expected).pvalue > 1e-3


@pytest.mark.parametrize("mean", [0.1, 1.0, 9.9, 10.0, 13.0, 200.0, 1e6])
def test_poissons_numbers(mean: float) -> None:
    ti.init(arch=ti.cpu)
    found = ti.field(ti.i32, shape=COUNT)

    @ti.kernel
    def fill(mean: ti.f32):
        for i in found:
            found[i] = ti.sampling.stream(5, i).poisson(mean)

    fill(mean)
    expected = scipy.stats.poisson(mean)
    low, high = expected.ppf([0.001, 0.999])
    edges = np.unique(np.linspace(low, high, 20).astype(int))
    counts = np.histogram(found.to_numpy(), np.r_[-1, edges, 2**31] + 0.5)[0]
    wanted = np.diff(np.r_[0, expected.cdf(edges), 1]) * COUNT
    often = wanted > 5
    rest = [counts[~often].sum(), wanted[~often].sum()]
    counts, wanted = np.r_[counts[often], rest[0]], np.r_[wanted[often], rest[1]]
    keep = wanted > 0
    assert scipy.stats.chisquare(counts[keep], wanted[keep]).pvalue > 1e-3


def test_poissons_numbers_of_any_mean_end() -> None:
    ti.init(arch=ti.cpu)

    @ti.kernel
    def draw(mean: ti.f32) -> int:
        return ti.sampling.stream(1, 2).poisson(mean)

    assert [draw(mean) for mean in (0.0, -1.0, float("nan"), 1e-30)] == [0] * 4
    for mean in (1e12, float("inf")):
        assert draw(mean) == pytest.approx(MOST, rel=1e-3)


def test_numbers_do_not_depend_on_threads_and_python() -> None:
    found = []
    for arch, threads in ((ti.cpu, 1), (ti.cpu, 2), (ti.python, 1)):
        ti.init(arch=arch, num_threads=threads)
        x = ti.Vector.field(3, ti.f32, shape=50)

        @ti.kernel
        def fill(x: ti.template()):
            for i in x:
                numbers = ti.sampling.stream(-4, i, 2**31 - 1)
                x[i] = ti.Vector([numbers.uniform(), numbers.exponential(), numbers.poisson(20.0)])

        fill(x)
        found.append(x.to_numpy())
    assert np.array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2], 1e-6)


def test_noise_is_constant_for_derivatives() -> None:
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    x = ti.field(ti.f64, shape=20, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def measure():
        for i in x:
            numbers = ti.sampling.stream(1, i)
            loss[None] += x[i] ** 2 * numbers.normal() + x[i] * numbers.poisson(20.0) * numbers.poisson(1.0)

    x.from_numpy(np.linspace(0.1, 2, 20))
    assert ti.ad.gradcheck(measure, wrt=x, output=loss).ok


@pytest.mark.parametrize("fp", [ti.f32, ti.f64], ids=str)
def test_even_sequences(fp: Any) -> None:
    ti.init(arch=ti.cpu, default_fp=fp)
    count = 512
    halton, even = (ti.Vector.field(3, fp, shape=count) for _ in range(2))

    @ti.kernel
    def fill(begin: int):
        for i in halton:
            halton[i] = [ti.sampling.halton(begin + i, base) for base in ti.static((2, 3, 5))]
            even[i] = ti.sampling.even(begin + i, 3)

    for begin in (0, 2**30):
        fill(begin)
        if begin == 0:
            expected = qmc.Halton(3, scramble=False).random(count)
            np.testing.assert_allclose(halton.to_numpy(), expected, 0, 1e-6 if fp is ti.f32 else 1e-14)
        random = qmc.discrepancy(np.random.default_rng(0).random((count, 3)))
        for found in (halton, even):
            assert found.to_numpy().min() >= 0
            assert found.to_numpy().max() < 1
            assert qmc.discrepancy(found.to_numpy().astype(float)) < random / 4
