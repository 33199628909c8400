"""Sliders bound to fields and functions, while a view is paused, plays, or is shown nowhere."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tinote as ti
from tests.viz.live import scenario
from tinote.viz import Image, Plot, slider
from tinote.viz.draw.arrays import ViewError


@pytest.fixture
def session():
    ti.init()
    yield
    ti.reset()


def test_a_slider_sets_a_field_and_the_view_shows_it(session):
    k = ti.field(ti.f32, shape=())
    k[None] = 2.0

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        widget = slider(view, k, 0.0, 8.0, label="stiffness")
        assert (widget.value, widget.min, widget.max, widget.description) == (2.0, 0.0, 8.0, "stiffness")
        widget.value = 5.0
        await page.until(lambda: len(page.frames) == 2)
        assert k[None] == 5.0
        assert view.history.table().tolist() == [[0, 5]]

    scenario(lambda: Plot(lambda: k[None]), body)


def test_a_gradient_follows_the_slider(session):
    w = ti.field(ti.f32, shape=(4, 1), needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    w.fill(1.0)

    @ti.kernel
    def cost(k: ti.f32):
        for i, j in w:
            loss[None] += k * (i + 1) * w[i, j] ** 2

    def differentiate(k):
        with ti.ad.Tape(loss=loss):
            cost(k)

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        widget = slider(view, differentiate, 0.0, 10.0, value=1.0)
        await page.until(lambda: page.frames[-1]["high"] == 8.0)
        widget.value = 3.0
        await page.until(lambda: page.frames[-1]["high"] == 24.0)
        assert page.frames[-1]["low"] == 6.0

    scenario(lambda: Image(w.grad), body)


def test_changes_that_wait_are_merged_and_happen_between_steps():
    gate, given, stepping = threading.Event(), [], []

    def step():
        stepping.append(True)
        assert gate.wait(300)
        stepping.pop()

    async def body(view, page):
        page.keeps_up = True
        page.say(kind="ready", view="page")
        await page.until(lambda: page.frames)
        widget = slider(view, lambda number: given.append((number, bool(stepping))), 0.0, 1.0, value=0.5)
        await page.until(lambda: given)
        view.play()
        await page.until(lambda: stepping)
        for number in (0.1, 0.2, 0.3):
            widget.value = number
        gate.set()
        await page.until(lambda: len(given) == 2)
        view.stop()
        assert given == [(0.5, False), (0.3, False)]

    scenario(lambda: Plot(lambda: 0.0, step), body)


def test_without_a_page_it_acts_at_once():
    given = []
    widget = slider(Plot(lambda: 0.0), given.append, -1.0, 1.0)
    widget.value = 0.5
    assert given == [-1.0, 0.5]


@pytest.mark.parametrize(
    ("target", "bounds", "options", "message"),
    [
        (print, (1.0, 1.0), {}, "from 1.0 to 1.0"),
        (print, (0.0, np.inf), {}, "high must be a number, not inf"),
        (3.0, (0.0, 1.0), {}, "cannot change 3.0"),
        (print, (0.0, 1.0), {"value": 2.0}, "not between"),
    ],
)
def test_wrong_arguments_are_refused(target, bounds, options, message):
    with pytest.raises(ViewError, match=message):
        slider(Plot(lambda: 0.0), target, *bounds, **options)


@pytest.mark.parametrize(
    ("low", "high", "step", "form"),
    [
        (0, 1000, None, ".5"),
        (0, 1, None, ".5"),
        (0, 1e5, 1, ".7"),
        (0, 10, 1, ".4"),
        (-1e9, 1e9, 1e-9, ".9"),
        (0, 1e-9, None, ".5"),
    ],
)
def test_the_value_is_written_with_the_digits_that_its_places_need(low, high, step, form):
    found = slider(Plot(lambda: 0.0), lambda value: None, low, high, step=step)
    assert found.readout_format == form


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_that_leads_nowhere_is_refused(step):
    with pytest.raises(ViewError, match="the step of a slider must be"):
        slider(Plot(lambda: 0.0), lambda value: None, 0, 1, step=step)
