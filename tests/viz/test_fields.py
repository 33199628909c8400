"""How a notebook shows fields and kernels, and plots of them through matplotlib."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

import tinote as ti
from tinote.viz.draw.arrays import ViewError
from tinote.viz.notebook import fields

mpl.use("agg")


@pytest.fixture(autouse=True)
def session():
    ti.init()
    yield
    ti.reset()


@pytest.fixture
def shown():
    shell = SimpleNamespace(display_formatter=DisplayFormatter())
    fields.register(shell)
    yield lambda value: shell.display_formatter.format(value)[0]
    fields.unregister(shell)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.5, 3.0], "1.5 to 3"),
        ([2.0, 2.0], "all 2"),
        ([1.0, np.nan, 4.0], "1 to 4, 1 not finite"),
        ([np.inf], "no finite number, 1 not finite"),
    ],
)
def test_ranges_in_words(values, words):
    assert fields.range_of(np.array(values)) == words


def test_a_field_is_shown_with_its_range_and_a_picture(shown):
    temperature = ti.field(ti.f32, shape=(8, 4))
    temperature.from_numpy(np.arange(32, dtype=np.float32).reshape(8, 4))
    bundle = shown(temperature)
    assert "temperature: f32, shape (8, 4)" in bundle["text/html"] and "0 to 31" in bundle["text/html"]
    assert 'src="data:image/png;base64,' in bundle["text/html"]
    assert bundle["text/plain"] == repr(temperature)


def test_a_field_of_structs_shows_its_members(shown):
    inner = ti.types.struct(speed=ti.math.vec2)
    outer = ti.types.struct(mass=ti.f32, motion=inner)
    bodies = outer.field(shape=6)
    bodies.mass.fill(2.0)
    text = shown(bodies)["text/html"]
    assert (
        text.index("<th>mass</th>") < text.index("all 2") < text.index("<th>motion</th>") < text.index("<th>speed</th>")
    )
    assert shown(bodies)["text/plain"] == repr(bodies)
    ti.init()
    assert "text/html" not in shown(bodies), "its memory is gone"
    assert "text/html" not in shown(outer.field()), "it is placed later"


def test_a_field_without_memory_shows_its_repr_alone(shown):
    placed_later = ti.field(ti.f32)
    assert "text/html" not in shown(placed_later)
    gone = ti.field(ti.f32, shape=3)
    ti.reset()
    assert "text/html" not in shown(gone)


def test_pictures_show_the_content():
    plane = fields.picture_of(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, np.nan]]), 0)
    assert plane is not None and (plane.width, plane.height) == (96, 64)
    top, bottom, missing = (plane.pixels[at].astype(int) for at in ((5, 10), (60, 10), (5, 90)))
    assert top[0] > 200 and bottom[2] > bottom[1] and np.ptp(missing) < 20
    dots = fields.picture_of(np.array([[0.0, 0.0], [1.0, 1.0]]), 1)
    assert dots is not None
    blue = np.argwhere(dots.pixels[2:-2, 2:-2, 0] < 120)
    assert blue.min() < 10 and blue.max() > 80
    curve = fields.picture_of(np.array([0.0, np.nan, 1.0]), 0)
    assert curve is not None and curve.width == 2 * curve.height * 2
    assert fields.picture_of(np.zeros((2, 2, 2)), 0) is None
    assert fields.picture_of(np.zeros((0, 2)), 1) is None


def test_a_kernel_is_shown_with_what_was_compiled(shown):
    x = ti.field(ti.f32, shape=4)

    @ti.kernel
    def scale(by: ti.f32):
        for i in x:
            x[i] *= by

    scale(2.0)
    text = shown(scale)["text/html"]
    assert "&lt;kernel scale(by)&gt;" in text and "test_fields.py" in text and "1 call" not in text
    assert "<table" in text


def test_plots_through_matplotlib():
    line = ti.field(ti.f32, shape=5)
    axes = ti.viz.plot(line)
    assert len(axes.lines[0].get_xdata()) == 5 and axes.get_title() == "line"
    plane = ti.field(ti.f32, shape=(3, 4))
    image = ti.viz.plot(plane, cmap="magma").images[0]
    assert image.get_array().shape == (4, 3) and image.get_cmap().name == "magma"
    points = ti.Vector.field(2, ti.f32, shape=6)
    assert ti.viz.plot(points, axes).collections[0].get_offsets().shape == (6, 2)
    assert len(ti.viz.plot(np.ones((3, 4, 2))).collections[0].U) == 12
    with pytest.raises(ViewError, match="no plot of the shape"):
        ti.viz.plot(ti.Vector.field(3, ti.f32, shape=6))
    with pytest.raises(ViewError, match="not numbers"):
        ti.viz.plot(np.array(["a"]))
    sys.modules["matplotlib.pyplot"].close("all")
