"""The live view of a field, and the plot alone: what is sent, and what picture stays."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tinote as ti
from tests.viz.live import picture_of, scenario
from tinote.viz import Image, Plot
from tinote.viz.draw.arrays import ViewError
from tinote.viz.draw.colormap import table


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
    image = picture_of(Image(field, cmap="magma", size=60))
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
        (np.zeros((2, 2, 3), np.int32), {}, "colours of type"),
        (np.zeros((2, 2)), {"cmap": "jet"}, "no colour map 'jet'"),
        (np.zeros((2, 2)), {"limits": (1, 1)}, "limits"),
        (np.zeros((2, 2)), {"size": 3}, "size"),
        (np.zeros((2, 2)), {"pointer": 3}, "pointer is int"),
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
        await page.until(lambda: field[0, 1] > 3)  # Held: told again for each frame.
        page.say(kind="pointer", phase="release", place=[0.1, 0.9])
        await page.until(lambda: not view._pointing.waiting)
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
