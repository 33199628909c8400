"""Index regions against sets of elements."""

import itertools
import random

from tinote.ir.buffers import Buffer
from tinote.ir.types import f32
from tinote.lang.index_regions import (
    IndexRegion,
    IndexRegions,
    difference,
    intersection,
    region_at,
    volume,
    whole_region,
)


def elements(region: IndexRegion | None) -> set[tuple[int, ...]]:
    return set() if region is None else set(itertools.product(*[range(first, last) for first, last in region]))


def random_region(numbers: random.Random, rank: int, most: int = 6) -> IndexRegion:
    found: list[tuple[int, int]] = []
    for _ in range(rank):
        first = numbers.randrange(most)
        found.append((first, numbers.randint(first + 1, most)))
    return tuple(found)


def test_two_regions() -> None:
    numbers = random.Random(0)
    for _ in range(500):
        rank = numbers.randint(0, 3)
        a, b = random_region(numbers, rank), random_region(numbers, rank)
        assert elements(intersection(a, b)) == elements(a) & elements(b)
        assert volume(a) == len(elements(a))
        pieces = difference(a, b)
        assert set().union(*map(elements, pieces)) == elements(a) - elements(b)
        assert sum(map(volume, pieces)) == len(elements(a) - elements(b)), "pieces do not meet"


def test_a_union_of_regions() -> None:
    """It holds what was added and not taken away, and may hold more; what was taken away last is gone."""
    numbers = random.Random(1)
    for _ in range(60):
        rank = numbers.randint(1, 3)
        regions, wanted = IndexRegions(), set[tuple[int, ...]]()
        for _ in range(40):
            region = random_region(numbers, rank, 12)
            if numbers.random() < 0.6:
                regions.add(region)
                wanted |= elements(region)
            else:
                met = set().union(*map(elements, regions.intersections(region)))
                assert wanted & elements(region) <= met <= elements(region)
                regions.remove(region)
                wanted -= elements(region)
            assert wanted <= set().union(*map(elements, regions))
            assert len(list(regions)) <= 64


def test_what_a_union_did_not_cover() -> None:
    """Parts that do not meet and are new; together with what was there, they are what it covers then."""
    numbers = random.Random(2)
    for _ in range(60):
        rank = numbers.randint(0, 3)
        regions, covered = IndexRegions(), set[tuple[int, ...]]()
        for _ in range(60):
            region = random_region(numbers, rank, 12)
            parts = regions.cover(region)
            new = set().union(*map(elements, parts))
            assert sum(map(volume, parts)) == len(new) and not new & covered
            covered |= new
            assert elements(region) <= covered == set().union(*map(elements, regions))
            assert len(list(regions)) <= 64
    apart = IndexRegions()
    for k in range(64):
        assert apart.cover(((2 * k, 2 * k + 1),)) == [((2 * k, 2 * k + 1),)]
    assert len(apart.cover(((200, 201),))) == 64  # from here on it is all around them


def test_what_grows_by_slices_stays_one_region() -> None:
    regions = IndexRegions()
    for t in range(1000):
        regions.add(((t, t + 1), (0, 8)))
    assert list(regions) == [((0, 1000), (0, 8))]
    regions.remove(((0, 999), (0, 8)))
    assert list(regions) == [((999, 1000), (0, 8))]


def test_regions_far_apart_stay_apart() -> None:
    regions = IndexRegions()
    regions.add(((0, 1),))
    regions.add(((9, 10),))
    assert regions.intersections(((3, 5),)) == []
    assert len(list(regions)) == 2


def test_positions_in_a_field() -> None:
    buffer = Buffer("x", f32, (4, 5), (3,))
    assert whole_region(buffer) == ((0, 4), (0, 5))
    assert region_at(buffer, (2, 3)) == ((2, 3), (3, 4))
    assert region_at(buffer, (2, 3, 1)) == ((2, 3), (3, 4))
    assert region_at(buffer, ...) == region_at(buffer, None) == region_at(buffer, (..., 1)) == ((0, 4), (0, 5))
    assert whole_region(Buffer("nothing", f32, (4, 0))) is None
    assert whole_region(Buffer("one", f32)) == ()
