"""The bar of long loops: silent where they are short, with the quantities where they are not."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

from tinote.viz import progress
from tinote.viz.draw.arrays import ViewError
from tinote.viz.notebook.front_end import Audience
from tinote.viz.notebook.progress import WidgetBar, compilation_bar


def test_a_short_loop_shows_nothing(capsys):
    assert list(progress(range(5), loss=lambda: 1.0)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_loop_on_a_terminal_shows_where_it_is_and_its_quantities(capsys, monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setitem(inspect.unwrap(progress).__globals__, "DELAY_SECONDS", 0.0)
    monkeypatch.setitem(inspect.unwrap(progress).__globals__, "INTERVAL_SECONDS", 0.0)
    done = []
    for item in progress(iter("abcd"), total=4, label="fit", loss=lambda: 8.0 / 2 ** len(done)):
        done.append(item)
    shown = capsys.readouterr().err
    assert done == list("abcd")
    if not terminal:
        assert shown == ""
        return
    assert "fit" in shown and "4/4" in shown and "loss=0.5" in shown and "loss=2" in shown


def test_the_loop_may_be_left_and_its_error_is_the_loops():
    with pytest.raises(ZeroDivisionError):
        for _ in progress(range(3)):
            raise ZeroDivisionError
    assert next(iter(progress([7]))) == 7


def test_a_quantity_is_a_function():
    with pytest.raises(ViewError, match="'loss' is float"):
        progress(range(3), loss=0.5)


class Handle:
    """What a display of a notebook gives, with what the output holds."""

    def __init__(self, shown: list[Handle]) -> None:
        self.content: Any = "widgets"
        shown.append(self)

    def update(self, content: dict[str, str], raw: bool) -> None:
        self.content = content


@pytest.fixture
def shown(monkeypatch) -> list[Handle]:
    """The outputs of a notebook that a person looks at."""
    outputs: list[Handle] = []
    module = sys.modules["tinote.viz.notebook.progress"]
    monkeypatch.setattr(module, "audience", lambda: Audience.PERSON)
    monkeypatch.setattr(module, "display", lambda widgets, display_id: Handle(outputs))
    monkeypatch.setattr(module, "DELAY_SECONDS", 0.0)
    return outputs


def test_a_bar_leaves_no_widgets_in_the_notebook(shown):
    """A notebook that is opened again has only what its outputs hold."""
    items = progress(range(4), label="fit")
    assert next(items) == 0
    (output,) = shown
    assert output.content == "widgets"
    assert list(items) == [1, 2, 3]
    assert "fit: 100%" in output.content["text/plain"] and "4/4" in output.content["text/plain"]


def test_a_bar_that_does_not_stay_leaves_nothing(shown):
    compiling = compilation_bar()
    compiling.show("compiling step: passes")
    compiling.show("compiling step: LLVM")
    (output,) = shown
    assert output.content == "widgets"
    compiling.close()
    assert output.content == {"text/html": ""}
    for _ in WidgetBar(range(3), leave=False, delay=1000):
        assert len(shown) == 1, "what is over soon shows nothing"
    assert len(shown) == 1
