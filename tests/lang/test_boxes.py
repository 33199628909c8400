"""Boxes of elements against sets of elements."""

import itertools
import random

from tinote.ir.buffers import Buffer
from tinote.ir.types import f32
from tinote.lang.boxes import Box, Boxes, box_at, box_of, meeting, rest, volume


def elements(box: Box | None) -> set[tuple[int, ...]]:
    return set() if box is None else set(itertools.product(*[range(first, last) for first, last in box]))


def some_box(numbers: random.Random, rank: int, most: int = 6) -> Box:
    found: list[tuple[int, int]] = []
    for _ in range(rank):
        first = numbers.randrange(most)
        found.append((first, numbers.randint(first + 1, most)))
    return tuple(found)


def test_two_boxes() -> None:
    numbers = random.Random(0)
    for _ in range(500):
        rank = numbers.randint(0, 3)
        a, b = some_box(numbers, rank), some_box(numbers, rank)
        assert elements(meeting(a, b)) == elements(a) & elements(b)
        assert volume(a) == len(elements(a))
        pieces = rest(a, b)
        assert set().union(*map(elements, pieces)) == elements(a) - elements(b)
        assert sum(map(volume, pieces)) == len(elements(a) - elements(b)), "pieces do not meet"


def test_a_few_boxes() -> None:
    """It holds what was added and not taken away, and may hold more; what was taken away last is gone."""
    numbers = random.Random(1)
    for _ in range(60):
        rank = numbers.randint(1, 3)
        boxes, wanted = Boxes(), set[tuple[int, ...]]()
        for _ in range(40):
            box = some_box(numbers, rank, 12)
            if numbers.random() < 0.6:
                boxes.add(box)
                wanted |= elements(box)
            else:
                met = set().union(*map(elements, boxes.meetings(box)))
                assert wanted & elements(box) <= met <= elements(box)
                boxes.remove(box)
                wanted -= elements(box)
            assert wanted <= set().union(*map(elements, boxes))
            assert len(list(boxes)) <= 64


def test_what_grows_by_slices_stays_one_box() -> None:
    boxes = Boxes()
    for t in range(1000):
        boxes.add(((t, t + 1), (0, 8)))
    assert list(boxes) == [((0, 1000), (0, 8))]
    boxes.remove(((0, 999), (0, 8)))
    assert list(boxes) == [((999, 1000), (0, 8))]


def test_boxes_far_apart_stay_apart() -> None:
    boxes = Boxes()
    boxes.add(((0, 1),))
    boxes.add(((9, 10),))
    assert boxes.meetings(((3, 5),)) == []
    assert len(list(boxes)) == 2


def test_positions_in_a_field() -> None:
    buffer = Buffer("x", f32, (4, 5), (3,))
    assert box_of(buffer) == ((0, 4), (0, 5))
    assert box_at(buffer, (2, 3)) == ((2, 3), (3, 4))
    assert box_at(buffer, (2, 3, 1)) == ((2, 3), (3, 4))
    assert box_at(buffer, ...) == box_at(buffer, None) == box_at(buffer, (..., 1)) == ((0, 4), (0, 5))
    assert box_of(Buffer("nothing", f32, (4, 0))) is None
    assert box_of(Buffer("one", f32)) == ()
