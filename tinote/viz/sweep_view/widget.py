"""The view of a running sweep: finished points, their results, the best so far, the particles of one of them.

The view is shown when the sweep begins, and a thread of its own tells the page of new points a few times a second. The
page says which point is chosen; recent kernels receive that also while the cell runs. In the saved notebook its picture
remains.
"""

from __future__ import annotations

import contextvars
import threading
import time
from typing import Any

import numpy as np
import traitlets
from IPython.display import display

from tinote.lang.sweeps.results import DONE, Table
from tinote.viz.notebook.front_end import Audience, audience
from tinote.viz.notebook.static_view import StaticView
from tinote.viz.notebook.view import receive_while_cells_run, static_source
from tinote.viz.sweep_view.facts import Choice, as_text, facts, places_of
from tinote.viz.sweep_view.picture import draw_sweep

INTERVAL_SECONDS = 0.3
"""Between two looks at the table, or more where a look takes long: most of the time is for the sweep."""

LONGEST_SHARE = 0.04
"""Of the time that looks may take."""

PICTURE_SECONDS = 30.0
"""Between two pictures in the notebook, which may be saved while the sweep runs."""

MOST_NUMBERS = 1 << 19
"""Coordinates that a page of the view holds."""


class SweepView(StaticView):
    """The view of a sweep. Whoever runs it has the `lock` while changing the table, and calls `point` and `end`."""

    TITLE = "Sweep"
    SCRIPTS = ("view.js", "draw/scale.js", "draw/chart.js", "draw/axes.js", "views/sweep.js")
    STYLES = ("theme.css", "frame.css", "draw/plot.css", "views/sweep.css")
    _esm = static_source(*SCRIPTS)
    _css = static_source(*STYLES)

    facts = traitlets.Dict().tag(sync=True)
    """What the page shows (`facts.facts`)."""

    chosen = traitlets.Int(-1).tag(sync=True)
    """The point whose particles are shown; -1: the best one."""

    places = traitlets.Dict().tag(sync=True)
    """Where they are: `number` of the point, `axes` (0: nowhere), and `values`, the bytes of float32."""

    def __init__(self, table: Table, name: str, best: str | None = None) -> None:
        self._table = table
        self._name = name
        self._choice = Choice(table, best)
        self.lock = threading.Lock()
        super().__init__(facts=facts(table, name, self._choice, ended=False))
        self.observe(self._choose, "chosen")
        self._is_live = audience() is Audience.PERSON
        self._output: Any = None
        self._news, self._over = threading.Event(), threading.Event()
        if self._is_live:
            receive_while_cells_run(self)
            self._output = display(self, display_id=True)
            # The context says which cell's output is meant.
            context = contextvars.copy_context()
            self._thread = threading.Thread(
                target=context.run, args=(self._follow,), name="tinote shows a sweep", daemon=True
            )
            self._thread.start()

    def point(self) -> None:
        """Another point has come into the table."""
        self._news.set()

    def end(self) -> None:
        """No more points come: the picture of what there is takes its place in the notebook."""
        self._over.set()
        if self._is_live:
            self._thread.join()
        self.show_table(ended=True)
        if self._output is not None:
            self._output.update(self)
        else:
            display(self)

    def _follow(self) -> None:
        pause, drawn = INTERVAL_SECONDS, time.monotonic()
        while not self._over.wait(pause):
            if not self._news.is_set():
                continue
            self._news.clear()
            begun = time.monotonic()
            self.show_table()
            pause = max(INTERVAL_SECONDS, (time.monotonic() - begun) / LONGEST_SHARE)
            if begun - drawn > PICTURE_SECONDS:
                drawn = begun
                self._output.update(self)

    def show_table(self, *, ended: bool = False) -> None:
        """Show what the table has now; `ended`: no more points come."""
        with self.lock:
            shown = facts(self._table, self._name, self._choice, ended=ended)
            places = self._current_places()
        with self.hold_sync():
            self.facts = shown
            self.places = places

    def _choose(self, _: Any) -> None:
        with self.lock:
            places = self._current_places()
        self.places = places

    def _current_places(self) -> dict[str, Any]:
        number = self.chosen if self.chosen >= 0 else self._choice.point()
        found = places_of(self._table, number)
        axes = 0 if found is None else found.shape[1]
        return {"number": number, "axes": axes, "values": b"" if found is None else found.astype(np.float32).tobytes()}

    def shown(self) -> dict[str, Any]:
        places: dict[str, Any] = {}
        numbers = 0
        for number in [self._choice.point(), *np.flatnonzero(self._table.state == DONE).tolist()]:
            found = places_of(self._table, number)
            if found is None or numbers >= MOST_NUMBERS:
                break
            numbers += found.size
            places[str(number)] = {"axes": found.shape[1], "values": np.round(found, 5).ravel().tolist()}
        return {"facts": self.facts, "places": places}

    def picture(self) -> bytes:
        """What is to be seen, with the particles of the best point, as a PNG file."""
        with self.lock:
            places = places_of(self._table, self.facts["best"])
        return draw_sweep(self.facts, places, self.PICTURE_WIDTH)

    def text(self) -> str:
        """What is to be seen, as plain text."""
        return as_text(self.facts)

    def __repr__(self) -> str:
        return f"<sweep of {len(self._table.state):,} points>"


def watch_sweep(table: Table, name: str, best: str | None) -> SweepView | None:
    """The view of a sweep in a notebook; None where there is none."""
    return None if audience() is Audience.NOBODY else SweepView(table, name, best)
