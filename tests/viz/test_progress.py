"""The bar of long loops: silent where they are short, with the quantities where they are not."""

from __future__ import annotations

import pytest

from tinote.viz import progress
from tinote.viz.draw.arrays import ViewError


def test_a_short_loop_shows_nothing(capsys):
    assert list(progress(range(5), loss=lambda: 1.0)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""


def test_a_long_loop_shows_where_it_is_and_its_quantities(capsys, monkeypatch):
    monkeypatch.setitem(progress.__globals__, "DELAY_SECONDS", 0.0)
    monkeypatch.setitem(progress.__globals__, "INTERVAL_SECONDS", 0.0)
    done = []
    for item in progress(iter("abcd"), total=4, label="fit", loss=lambda: 8.0 / 2 ** len(done)):
        done.append(item)
    shown = capsys.readouterr().err
    assert done == list("abcd")
    assert "fit" in shown and "4/4" in shown and "loss=0.5" in shown and "loss=2" in shown


def test_the_loop_may_be_left_and_its_error_is_the_loops():
    with pytest.raises(ZeroDivisionError):
        for _ in progress(range(3)):
            raise ZeroDivisionError
    assert next(iter(progress([7]))) == 7


def test_a_quantity_is_a_function():
    with pytest.raises(ViewError, match="'loss' is float"):
        progress(range(3), loss=0.5)
