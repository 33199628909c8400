"""A sweep while it runs: which points are done, what they have given, the best so far, the particles of one of them.

The view is shown when the sweep begins and told of points a few times a second. Places of particles are sent with
their points as long as they are few, because a kernel that runs a sweep answers nobody; others are asked for when they
are chosen, and come once the cell has ended. In the saved notebook its picture remains.
"""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import numpy as np
import traitlets
from IPython.display import display

from tinote.lang.sweeps.results import DONE, Table
from tinote.viz.notebook.front_end import Audience, audience
from tinote.viz.notebook.static_view import StaticView
from tinote.viz.notebook.view import static_source
from tinote.viz.runs.facts import Choice, as_text, facts, places_of
from tinote.viz.runs.picture import draw_sweep

INTERVAL_SECONDS = 0.3
"""Between two looks at the table."""

MOST_SENT = 8 << 20
"""Bytes of places that are sent unasked, and half as many numbers that a page of the view holds."""


class SweepView(StaticView):
    """The view of a sweep, which calls `point` and `close`, and changes the table only while it has the `lock`."""

    TITLE = "Sweep"
    SCRIPTS = ("view.js", "chart.js", "sweep.js")
    STYLES = ("theme.css", "sweep.css")
    _esm = static_source(*SCRIPTS)
    _css = static_source(*STYLES)

    facts = traitlets.Dict().tag(sync=True)
    """What the page shows (`facts.facts`)."""

    chosen = traitlets.Int(-1).tag(sync=True)
    """The point whose particles are shown; -1: the best one."""

    def __init__(self, table: Table, name: str, best: str | None = None) -> None:
        self._table = table
        self._name = name
        self._choice = Choice(table, best)
        self._ended = False
        self._sent: set[int] = set()
        self._sent_bytes = 0
        self.lock = threading.Lock()
        super().__init__(facts=self._facts())
        self.on_msg(self._asked)
        self._is_live = audience() is Audience.PERSON
        self._output: Any = None
        self._news, self._over = threading.Event(), threading.Event()
        if self._is_live:
            self._output = display(self, display_id=True)
            # The context says which cell's output is meant.
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._follow,), daemon=True)
            self._thread.start()

    def point(self) -> None:
        """Another point has come into the table."""
        self._news.set()

    def close(self) -> None:
        """No more points come: the picture of what there is takes its place in the notebook."""
        self._over.set()
        if self._is_live:
            self._thread.join()
        self._ended = True
        self._show()
        if self._output is not None:
            self._output.update(self)
        else:
            display(self)

    def _follow(self) -> None:
        """What has come is shown a few times a second, also while nothing more comes."""
        while not self._over.wait(INTERVAL_SECONDS):
            if self._news.is_set():
                self._news.clear()
                with self.lock:
                    self._show()

    def _facts(self) -> dict[str, Any]:
        return facts(self._table, self._name, self._choice, ended=self._ended)

    def _show(self) -> None:
        if self._is_live:
            for number in np.flatnonzero(self._table.state == DONE).tolist():
                if self._sent_bytes >= MOST_SENT:
                    break
                if number not in self._sent:
                    self._send_places(number)
        self.facts = self._facts()

    def _send_places(self, number: int) -> None:
        places = places_of(self._table, number)
        self._sent.add(number)
        if places is not None:
            data = np.ascontiguousarray(places, np.float32)
            self._sent_bytes += data.nbytes
            self.send({"kind": "places", "number": number, "axes": data.shape[1]}, buffers=[data.tobytes()])

    def _asked(self, _: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and message.get("kind") == "places" and isinstance(message.get("number"), int):
            self._send_places(message["number"])

    def shown(self) -> dict[str, Any]:
        places: dict[str, Any] = {}
        numbers = 0
        done = np.flatnonzero(self._table.state == DONE).tolist()
        for number in [self._choice.point(), *done]:
            found = places_of(self._table, number)
            if found is None or numbers >= MOST_SENT // 16:
                break
            numbers += found.size
            places[str(number)] = {"axes": found.shape[1], "values": np.round(found, 5).ravel().tolist()}
        return {"facts": self.facts, "places": places}

    def picture(self) -> bytes:
        """What is to be seen, with the particles of the best point, as a PNG file."""
        return draw_sweep(self.facts, places_of(self._table, self._choice.point()), self.PICTURE_WIDTH)

    def text(self) -> str:
        """What is to be seen, as plain text."""
        return as_text(self.facts)

    def __repr__(self) -> str:
        return f"<sweep of {len(self._table.state):,} points>"


def watch_sweep(table: Table, name: str, best: str | None) -> SweepView | None:
    """The view of a sweep in a notebook; None where there is none."""
    return None if audience() is Audience.NOBODY else SweepView(table, name, best)
