"""Images to and from files, indexed from the bottom left."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tinote as ti
from tinote.viz.arrays import ViewError


def test_a_field_becomes_a_picture(tmp_path: Path) -> None:
    ti.init()
    image = ti.Vector.field(3, ti.f32, shape=(4, 3))
    image[0, 0] = [1, 0, 0]  # bottom left
    image[3, 2] = [0, 1, 0]  # top right
    ti.tools.imwrite(image, tmp_path / "new" / "a.png")
    with Image.open(tmp_path / "new" / "a.png") as picture:
        assert picture.size == (4, 3)
        assert picture.getpixel((0, 2)) == (255, 0, 0)
        assert picture.getpixel((3, 0)) == (0, 255, 0)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 1), (5, 3, 3), (5, 3, 4)])
def test_what_is_written_is_read_back(shape: tuple[int, ...], tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    ti.tools.imwrite(image, str(tmp_path / "a.png"))
    found = ti.tools.imread(str(tmp_path / "a.png"))
    grey = image if image.ndim == 3 else image[:, :, None]
    expected = np.repeat(grey, 3, axis=2) if grey.shape[2] == 1 else grey
    np.testing.assert_array_equal(found, expected)
    assert ti.tools.imread(str(tmp_path / "a.png"), channels=1).shape == (5, 3, 1)


def test_a_photograph_has_no_transparency(tmp_path: Path) -> None:
    ti.tools.imwrite(np.ones((8, 8, 4)), tmp_path / "a.jpg")
    assert ti.tools.imread(tmp_path / "a.jpg").min() > 250


def test_resizing_takes_the_nearest_pixels() -> None:
    image = np.arange(6).reshape(3, 2)
    np.testing.assert_array_equal(ti.tools.imresize(image, 6, 4), image.repeat(2, 0).repeat(2, 1))
    np.testing.assert_array_equal(ti.tools.imresize(image, 3, 1), image[:, :1])
    assert ti.tools.imresize(np.zeros((4, 4, 3)), 2).shape == (2, 2, 3)


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("no picture")
    for wrong in (
        lambda: ti.tools.imwrite(np.zeros(3), tmp_path / "a.png"),
        lambda: ti.tools.imwrite(np.zeros((2, 2)), tmp_path / "a.unknown"),
        lambda: ti.tools.imread(tmp_path / "text.png"),
        lambda: ti.tools.imresize(np.zeros((2, 2)), 0),
    ):
        with pytest.raises(ViewError):
            wrong()
