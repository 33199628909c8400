"""What a user may hand to a view, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tinote.viz.draw.arrays import ViewError, as_array, as_colors, as_image, as_positions


class Field:
    """Stands for a field: something with `to_numpy`."""

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.asarray(self.values)


def test_a_field_is_read_through_to_numpy():
    assert np.array_equal(as_array(Field([1, 2])), [1, 2])


def test_positions_keep_single_precision_and_flatten_grids():
    assert as_positions(np.zeros((3, 2), np.float32)).dtype == np.float32
    assert as_positions([[1, 2]]).dtype == np.float64
    assert np.array_equal(as_positions(Field(np.arange(12.0).reshape(2, 3, 2))), np.arange(12.0).reshape(6, 2))
    assert np.array_equal(as_positions((0.25, 0.5)), [[0.25, 0.5]])
    assert as_positions(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("bad", [np.zeros((4, 3)), np.float64(1.0), ["ab"], np.zeros((2, 2), complex)])
def test_other_things_are_no_positions(bad):
    with pytest.raises(ViewError, match=r"\nx "):
        as_positions(bad)


@pytest.mark.parametrize("spelling", [0x112233, "#112233", (0x11 / 255, 0x22 / 255, 0x33 / 255), np.uint32(0x112233)])
def test_one_colour_in_each_spelling(spelling):
    assert as_colors(spelling).tolist() == [0x11, 0x22, 0x33]


def test_a_colour_a_particle():
    assert as_colors(np.array([0xFF0000, 0x0000FF]), 2).tolist() == [[255, 0, 0], [0, 0, 255]]
    assert as_colors(Field(np.array([[1.0, 0.5, 0.0]])), 1).tolist() == [[255, 128, 0]]
    assert as_colors(np.array([[1, 2, 3]], np.uint8), 1).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("bad", "count"),
    [
        ("no such colour", None),
        (0x1000000, None),
        (-1, None),
        (np.array([1, 2]), 3),
        (np.array([1, 2]), None),
        (1.5, None),
    ],
)
def test_what_is_no_colour_is_refused(bad, count):
    with pytest.raises(ViewError, match="color"):
        as_colors(bad, count)


def test_images_are_indexed_from_the_bottom_left():
    grey = np.zeros((3, 2))
    grey[2, 0] = 1.0  # Right column, bottom row.
    rows = as_image(grey, (3, 2))
    assert rows.shape == (2, 3, 3)
    assert rows[1, 2].tolist() == [255, 255, 255]
    assert rows.sum() == 3 * 255


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.full((1, 1), 0.5), 128),
        (np.full((1, 1), 7.0), 255),
        (np.full((1, 1), np.nan), 0),
        (np.full((1, 1), 200, np.uint8), 200),
        (np.full((1, 1), 0x80FF, np.uint16), 0x80),
        (np.full((1, 1), 300, np.int32), 255),
        (np.full((1, 1), True), 255),
        (np.full((1, 1, 4), 9, np.uint8), 9),
    ],
)
def test_image_values_of_each_type(value, expected):
    assert as_image(value, (1, 1)).ravel().tolist() == [expected] * 3


def test_an_image_of_another_size_is_refused():
    with pytest.raises(ViewError, match="3 wide and 2 high"):
        as_image(np.zeros((2, 3)), (3, 2))
