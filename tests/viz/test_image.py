"""The live view of a field, and the plot alone: what is sent, and what picture stays."""

from __future__ import annotations

import itertools
import math

import contourpy
import numpy as np
import pytest

import tinote as ti
from tests.viz.live import picture_of, scenario
from tinote.viz import Image, Plot
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.colorbar import COLORBAR_HEIGHT, draw_colorbar
from tinote.viz.draw.colormap import ColorScale, table
from tinote.viz.draw.pen import PixelPen
from tinote.viz.live.contours import FIRST_ROOM, contour_lines


def sent(view: Image) -> tuple[dict, np.ndarray]:
    frame = view.capture()
    shape = (frame.message["rows"], frame.message["columns"], -1)
    return frame.message, np.frombuffer(frame.buffers[0], np.uint8).reshape(shape)


def test_levels_lie_between_the_least_and_the_greatest_and_rows_come_from_the_top():
    field = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])  # Two columns of three cells.
    message, levels = sent(Image(field))
    assert message == {"columns": 2, "rows": 3, "shape": [2, 3], "low": 0.0, "high": 5.0, "strange": 0}
    assert levels[:, :, 0].tolist() == [[102, 254], [51, 204], [0, 153]]


def test_limits_hold_and_what_is_outside_takes_the_colour_of_the_end():
    message, levels = sent(Image(np.array([[-7.0, 0.5, 9.0]]), limits=(0.0, 1.0)))
    assert (message["low"], message["high"]) == (0.0, 1.0)
    assert levels[:, 0, 0].tolist() == [254, 127, 0]


def test_zero_is_in_the_middle_of_the_map_for_numbers_around_it():
    message, levels = sent(Image(np.array([[-1.0, 0.0, 4.0]]), cmap="coolwarm"))
    assert (message["low"], message["high"]) == (-4.0, 4.0)
    assert levels[:, 0, 0].tolist() == [254, 127, 95]


def test_what_is_not_finite_is_counted_and_magenta():
    view = Image(np.array([[math.nan, 1.0], [math.inf, 3.0]]), size=32)
    message, levels = sent(view)
    assert message["strange"] == 2 and (message["low"], message["high"]) == (1.0, 3.0)
    assert levels[:, :, 0].tolist() == [[0, 254], [255, 255]]
    assert picture_of(view)[24, 8].tolist() == [255, 0, 255]
    assert sent(Image(np.full((2, 2), math.nan)))[0]["strange"] == 4


def test_a_field_of_the_language_and_one_of_colours():
    ti.init()
    field = ti.Vector.field(3, ti.f32, shape=(2, 1))
    field[0, 0] = [1.0, 0.5, 0.0]
    message, colors = sent(Image(field))
    assert "low" not in message
    assert colors[0].tolist() == [[255, 128, 0], [0, 0, 0]]
    numbers = ti.field(ti.i32, shape=(2, 1))
    numbers[1, 0] = 7
    assert sent(Image(numbers))[1][0, :, 0].tolist() == [0, 254]
    ti.reset()


def test_a_field_finer_than_the_picture_is_sent_in_evenly_spaced_cells():
    field = np.arange(300.0)[:, None] + np.zeros((300, 200))
    message, levels = sent(Image(field, size=48))
    assert message["shape"] == [300, 200]
    assert levels.shape[:2] == (50, 75)  # Every fourth.
    assert (np.diff(levels[0, :, 0].astype(int)) > 0).all()


def test_the_picture_has_the_fields_shape_and_the_maps_colours():
    field = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    image = picture_of(Image(field, cmap="magma", size=60, colorbar=False))
    assert image.shape == (40, 60, 3)
    ends = (table("magma") * 255 + 0.5).astype(int)
    assert np.abs(image[10, 30] - ends[-1]).max() <= 2
    assert np.abs(image[30, 30] - ends[0]).max() <= 2


@pytest.mark.parametrize(
    ("field", "options", "message"),
    [
        (np.zeros(3), {}, "not a picture"),
        (np.zeros((3, 0)), {}, "not a picture"),
        (np.zeros((3, 3, 2)), {}, "not a picture"),
        (np.array([["a"]]), {}, "not numbers"),
        (np.zeros((2, 2, 3), np.int32), {}, "colours must be floats"),
        (np.zeros((2, 2)), {"cmap": "jett"}, "no colour map 'jett'; did you mean 'jet'"),
        (np.zeros((2, 2)), {"limits": (1, 1)}, "limits"),
        (np.zeros((2, 2)), {"size": 3}, "size"),
        (np.zeros((2, 2)), {"pointer": 3}, "pointer must be a function of one argument, not 3"),
    ],
)
def test_wrong_arguments_are_refused_by_name(field, options, message):
    with pytest.raises(ViewError, match=message):
        Image(field, **options)


def test_a_press_reaches_the_step_with_its_cell_while_paused_and_while_playing():
    field = np.zeros((4, 2))

    def poke(pointer):
        if pointer.pressed:
            field[pointer.element] += 1.0

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        page.say(kind="pointer", phase="press", place=[0.9, 0.1])
        page.say(kind="pointer", phase="release", place=[0.9, 0.1])
        await page.until(lambda: len(page.frames) == 2)
        assert field.tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]
        assert page.frames[-1]["high"] == 1.0
        view.play()
        page.say(kind="pointer", phase="press", place=[0.1, 0.9])
        await page.until(lambda: field[0, 1] > 3)  # Held: reported again for each frame.
        page.say(kind="pointer", phase="release", place=[0.1, 0.9])
        await page.until(lambda: not view.frames.pointing.waiting)
        view.pause()

    scenario(lambda: Image(field, lambda: None, pointer=poke), body)


def test_a_plot_alone_samples_and_leaves_its_chart():
    loss = [8.0]

    def step():
        loss[0] *= 0.5

    view = Plot(lambda: loss[0], step, size=(300, 200), label="loss")
    view.picture()
    view.advance(3)
    assert view.history.table().tolist() == [[0, 8], [1, 4], [2, 2], [3, 1]]
    assert picture_of(view).shape == (200, 300, 3)
    assert repr(view) == "<Plot: value>"
    with pytest.raises(ViewError, match="nothing to plot"):
        Plot({})


def test_what_a_cell_changes_is_sampled_again():
    value = [1.0]

    async def body(view, page):
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        view.change(lambda: value.__setitem__(0, 5.0))
        await page.until(lambda: len(page.frames) == 2)
        assert view.history.table().tolist() == [[0, 5]]
        _, buffers = page.messages[-1]
        assert np.frombuffer(buffers[-1], np.float64).tolist() == [0, 5]

    scenario(lambda: Plot({"value": lambda: value[0]}), body)


def marks_of(view: Image) -> dict[str, np.ndarray]:
    """The ends of contours and arrows, as fractions of the picture: (M, 2, 2)."""
    frame = view.capture()
    parts = dict(zip(frame.message.get("parts", []), frame.buffers[1:], strict=True))
    return {
        name: np.frombuffer(part, np.float32).reshape(-1, 2, 2)
        for name, part in parts.items()
        if not name.endswith("inks")
    }


@pytest.mark.parametrize("seed", range(4))
def test_contours_are_those_of_contourpy(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(13, 9)) if seed else np.indices((6, 5)).sum(axis=0) % 2 - 0.5  # Saddles everywhere.
    values[rng.random(values.shape) < 0.03 * seed] = np.nan
    for level in (-0.5, 0.0, 0.3):
        lines, number = contour_lines(values, np.array([level]))
        expected = contourpy.contour_generator(z=np.ma.masked_invalid(values.T), corner_mask=False).lines(level)
        found = {tuple(sorted(map(tuple, line.reshape(2, 2).round(4).tolist()))) for line in lines if np.ptp(line[::2])}
        pairs = [pair for line in expected for pair in itertools.pairwise(line)]
        wanted = {
            tuple(sorted(map(tuple, np.round(pair, 4).tolist()))) for pair in pairs if np.ptp(np.array(pair)[:, 0])
        }
        assert {line for line in wanted if line[0] != line[1]} == {line for line in found if line[0] != line[1]}
        assert (number == 0).all()


def test_more_contour_lines_than_there_is_room_for_at_first():
    values = np.indices((90, 90)).sum(axis=0) % 2 - 0.5
    lines, _ = contour_lines(values, np.array([0.0]))
    assert len(lines) == 2 * 89 * 89 > FIRST_ROOM
    assert np.isfinite(lines).all()


def test_contours_stand_at_round_numbers_or_where_they_are_asked_for():
    field = np.linspace(0.0, 10.0, 50)[:, None] + np.zeros((50, 20))
    lines = marks_of(Image(field, contours=4))["contours"]
    # The middle of cell k is (k + ½) / 50 of the width, and its number 10 k / 49.
    at = sorted({round(float(x) * 50 - 0.5, 1) * 10 / 49 for x in lines[:, :, 0].ravel()})
    assert at == pytest.approx([2, 4, 6, 8], abs=0.03)
    lines = marks_of(Image(field, contours=[5.0, 99.0]))["contours"]
    assert np.abs(lines[:, :, 0] * 50 - 0.5 - 24.5).max() < 0.02 and len(lines) == 19
    assert marks_of(Image(np.ones((4, 4)), contours=5)) == {}
    message, _ = sent(Image(field))
    assert "parts" not in message


def test_a_contour_stands_out_from_the_map():
    field = np.linspace(0.0, 1.0, 100)[:, None] + np.zeros((100, 50))
    image = picture_of(Image(field, cmap="gray", contours=[0.2, 0.8], smooth=True, size=200, colorbar=False))
    row = image[50, :, 0]
    assert row[36:46].max() > row[34] + 60 and row[155:165].min() < row[166] - 60


def test_vectors_are_evenly_spaced_arrows_in_the_middle_of_cells():
    ti.init()
    flow = ti.Vector.field(2, ti.f32, shape=(40, 20))
    flow.fill(ti.Vector([3.0, 4.0]))
    temperature = np.zeros((40, 20))
    arrows = marks_of(Image(temperature, vectors=flow, size=240))["arrows"]
    # Cells are 6 pixels wide: every fourth has an arrow, nearly as long as the way to the next.
    assert len(arrows) == 10 * 5
    middle = arrows.mean(axis=1) * [40, 20]
    assert np.abs(middle[:, 0] % 4 - 1.5).max() < 0.01 and np.abs(middle[:, 1] % 4 - 1.5).max() < 0.01
    assert (arrows[:, 1] - arrows[:, 0]) * [40, 20] == pytest.approx(np.tile([2.28, 3.04], (50, 1)), abs=0.01)
    view = Image(temperature, vectors=lambda: np.broadcast_to([1.0, 0.0], (40, 20, 2)), arrow_scale=2.0, size=240)
    arrows = marks_of(view)["arrows"]
    assert (arrows[:, 1] - arrows[:, 0]) * [40, 20] == pytest.approx(np.tile([2.0, 0.0], (50, 1)), abs=0.01)
    assert view.capture().message["longest"] == 1.0
    ti.reset()


def test_vectors_that_are_not_finite_are_left_out():
    vectors = np.ones((4, 4, 2))
    vectors[1, 2, 0] = np.nan
    vectors[3, 0, 1] = np.inf
    assert len(marks_of(Image(np.zeros((4, 4)), vectors=vectors))["arrows"]) == 14
    assert marks_of(Image(np.zeros((4, 4, 3)), vectors=np.zeros((4, 4, 2)))).get("arrows") is not None


def test_arrows_are_painted_in_the_middle_of_their_cells_with_a_dark_edge():
    image = picture_of(Image(np.ones((1, 1)), vectors=np.array([[[1.0, 0.0]]]), size=64, colorbar=False))
    white = (image > 250).all(axis=2)
    rows, columns = np.nonzero(white[2:-2, 2:-2])
    assert 30 <= rows.mean() + 2 <= 33 and columns.max() + 2 - 62 <= 0 < 64 - columns.max()
    shaft, below, background = image[32, 6:45], image[33, 6:45], image[50, 20]
    assert (shaft.mean(axis=1) > 120).all() and (below.mean(axis=1) < background.mean()).all()


def test_the_colour_bar_is_below_the_cells_of_numbers_alone():
    numbers, colors = np.array([[0.0, 1.0], [0.0, 1.0]]), np.zeros((2, 2, 3))
    assert picture_of(Image(numbers, size=200, color_label="heat")).shape == (200 + COLORBAR_HEIGHT, 200, 3)
    assert picture_of(Image(numbers, size=200, colorbar=False)).shape == (200, 200, 3)
    assert picture_of(Image(colors, size=200)).shape == (200, 200, 3)


def drawn_bar(*arguments) -> np.ndarray:
    scale, low, high, width, *label = arguments
    pen = PixelPen(width, COLORBAR_HEIGHT)
    draw_colorbar(pen, scale, low, high, width, *label)
    return pen.pixels().astype(int)


def test_a_colour_bar_has_the_maps_colours_and_ticks_at_its_numbers():
    gray = ColorScale("gray")
    bar = drawn_bar(gray, 0.0, 4.0, 300)
    strip = bar[14]
    inside = np.flatnonzero(strip.max(axis=1) < 250)
    left, right = inside[0], inside[-1]
    assert (np.diff(strip[left : right - 8, 0]) >= 0).all() and strip[left, 0] < 5
    ticks = np.flatnonzero(bar[20, :, 0] < 220)
    ticks = ticks[np.diff(ticks, prepend=-9) > 1]
    assert len(ticks) == 5 and np.abs(np.diff(ticks) - (right - left) / 4).max() < 3
    assert (drawn_bar(gray, 1.0, 1.0, 60, "a long label") < 200).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contours": 0}, "not 0"),
        ({"contours": 1000}, "not 1000"),
        ({"contours": True}, "not True"),
        ({"contours": "many"}, "not 'many'"),
        ({"contours": [1.0, math.nan]}, "contours must be a whole number or several numbers"),
        ({"contours": 3, "contour_width": 0}, "contour_width must be .* not 0"),
        ({"contours": 3, "contour_color": "mud"}, "contour_color"),
        ({"vectors": np.zeros((4, 4))}, r"vectors have shape \(4, 4\), and the field has 4 × 3 cells"),
        ({"vectors": np.zeros((3, 4, 2))}, r"vectors have shape \(3, 4, 2\)"),
        ({"vectors": np.zeros((4, 3, 3))}, r"vectors have shape \(4, 3, 3\)"),
        ({"vectors": np.full((4, 3, 2), "a")}, "vectors hold"),
        ({"vectors": np.zeros((4, 3, 2)), "arrow_scale": math.inf}, "arrow_scale must be .* not inf"),
        ({"vectors": np.zeros((4, 3, 2)), "arrow_width": -1}, "arrow_width must be .* not -1"),
        ({"vectors": np.zeros((4, 3, 2)), "arrow_color": "mud"}, "arrow_color"),
    ],
)
def test_wrong_marks_are_refused_by_name(options, message):
    with pytest.raises(ViewError, match=message):
        Image(np.zeros((4, 3)), **options).capture()


def test_contours_of_colours_are_refused():
    with pytest.raises(ViewError, match="holds colours"):
        Image(np.zeros((4, 3, 3)), contours=3)


def test_vectors_in_a_row_are_no_picture():
    """Of a field of 1,000 vectors of two numbers NumPy makes 1,000 rows of two."""
    ti.init()
    with pytest.raises(ViewError, match="a field of 2 components in a row of 1000 is not a picture"):
        Image(ti.Vector.field(2, ti.f32, shape=1000))
    assert Image(ti.Vector.field(3, ti.f32, shape=(8, 6))).painted is not None
