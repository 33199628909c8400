"""The paper of still pictures: its few colours are those that were drawn with."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageColor

from tinote.viz.draw.canvas import PictureCanvas


def pixels(canvas: PictureCanvas) -> np.ndarray:
    """(height, width, 3), int."""
    return np.asarray(Image.open(io.BytesIO(canvas.png())).convert("RGB")).astype(int)


def test_grounds_keep_their_colours_and_letters_have_soft_edges():
    canvas = PictureCanvas(100, 60)
    canvas.box(0, 30, 100, 60, "#dcebfa")
    canvas.text(10, 10, "tape", "#8b2fa8")
    found = pixels(canvas)
    assert found[80, 150].tolist() == [0xDC, 0xEB, 0xFA] and found[10, 150].tolist() == [255, 255, 255]
    letters = found[20:50, 20:100].reshape(-1, 3)
    ink = np.array(ImageColor.getrgb("#8b2fa8"))
    # Every pixel lies between the ink and the paper, and some of them are neither.
    part = (255 - letters[:, 1]) / (255 - ink[1])
    np.testing.assert_allclose(letters, 255 - part[:, None] * (255 - ink), atol=1.5)
    assert part.max() == 1 and ((part > 0.1) & (part < 0.9)).sum() > 20


def test_any_number_of_colours_is_drawn_with_the_nearest_that_fit():
    canvas = PictureCanvas(400, 10)
    colors = [f"#{n:02x}80{255 - n:02x}" for n in range(0, 256, 2)] + [f"#40{n:02x}00" for n in range(0, 256, 2)]
    for n, color in enumerate(colors):
        canvas.box(n, 0, n + 1, 10, color)
        canvas.text(0, 0, " ", color)
    found = pixels(canvas)[10, : 2 * len(colors) : 2]
    wanted = np.array([ImageColor.getrgb(color) for color in colors])
    assert np.abs(found - wanted)[1:].max() <= 8
