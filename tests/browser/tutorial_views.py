"""Run as a program: executes a notebook, and writes each of its live views as a page, with what its fields hold after
STEPS steps in Python. With END, what they hold after so many steps, too, and what they would if after STEPS all numbers
that steps change had been others by one unit in the last place.

    python -m tests.browser.tutorial_views NOTEBOOK FOLDER STEPS [END]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from ipywidgets import Box

from tinote.lang.session.state import session
from tinote.manual import tutorials
from tinote.viz.live.simulation import LiveSimulation
from tinote.viz.notebook.composed import keep_pictures_of_boxes
from tinote.viz.pages.export import page
from tinote.viz.pages.sources import Sources

SHORTER = {
    "teach(60)": "teach(2)", "assert max(distances) > 0.8": "max(distances)", "range(260)": "range(20)",
    "train(weights, 250, 100)": "train(weights, 30, 1)", "< min(at_once)": "",
}  # fmt: skip
"""What takes long in a notebook, and is not what its views show."""


SHOWS = ("Particles(", ".Image(", ".Plot(", ".Scene(")


def shows(source: str) -> int:
    """How many live views a cell shows."""
    return sum(map(source.count, SHOWS))


def live_views() -> dict[str, int]:
    """How many live views each tutorial has that has any, by its name."""
    found = {}
    for file in sorted(tutorials().glob("*.ipynb")):
        cells = [cell.source for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
        found[file.stem] = sum(map(shows, cells))
    return {name: count for name, count in found.items() if count}


def views_in(shown: Any) -> list[LiveSimulation]:
    """The views of what a cell shows."""
    if isinstance(shown, Box):
        return [view for child in shown.children for view in views_in(child)]
    return [shown] if isinstance(shown, LiveSimulation) else []


def numbers_of_fields() -> list[tuple[Any, np.ndarray[Any, Any]]]:
    """All fields, with what they hold."""
    return [(field, field.to_numpy()) for field in list(session.fields)]


def nudge(begin: list[tuple[Any, np.ndarray[Any, Any]]]) -> None:
    """Change the numbers of what has changed since by one unit in the last place, up or down at random; zeros stay."""
    random = np.random.default_rng(0)
    for field, before in begin:
        now = field.to_numpy()
        if np.issubdtype(now.dtype, np.floating) and (now != before).any():
            aims = random.choice([-np.inf, np.inf], now.shape).astype(now.dtype)
            field.from_numpy(np.where(now == 0, now, np.nextafter(now, aims)))


def export(view: LiveSimulation, folder: Path, number: int, steps: int, end: int) -> dict[str, Any]:
    """Write the view as a page, and its fields after a number of steps, which are taken back."""
    file = folder / f"view{number}.html"
    made = page(view, file)
    (shown,) = made.views
    sources = Sources()
    view.page_look(sources)
    before = [(field.memory, field.memory.copy()) for field in list(session.fields)]
    begin = numbers_of_fields()
    step = view.page_functions().step
    assert step is not None

    def after(count: int, name: str) -> None:
        for _ in range(count):
            step()
        for function in sources.functions.values():
            function()  # What is shown is computed after the steps.
        np.savez(folder / name, **{name: field.to_numpy() for name, field in sources.fields.items()})

    after(steps, f"view{number}.npz")
    if end > steps:
        between = [(memory, memory.copy()) for memory, _ in before]
        after(end - steps, f"view{number}_end.npz")
        for memory, copy in between:
            memory.restore(copy)
        nudge(begin)
        after(end - steps, f"view{number}_nudged.npz")
    for memory, copy in before:
        memory.restore(copy)
    return {"file": file.name, "view": shown.view, "runs": shown.runs, "missing": shown.missing, "needs": shown.needs}


def main(notebook: Path, folder: Path, steps: int, end: int = 0) -> None:
    """Execute the notebook, and write `views.json` with what became of its views."""
    os.environ.setdefault("MPLBACKEND", "agg")
    os.environ.setdefault("TINOTE_GUI_FRAMES", "2")
    for method in ("prepare_unattended", "pause"):  # Nothing plays here.
        setattr(LiveSimulation, method, lambda self: None)
    shell = InteractiveShell.instance()
    keep_pictures_of_boxes()
    found: list[dict[str, Any]] = []
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    while not shows(cells[-1].source):
        cells.pop()
    for cell in cells:
        source = cell.source
        for long, short in SHORTER.items():
            source = source.replace(long, short)
        result = shell.run_cell(source, store_history=True)
        if "raises-exception" in cell.metadata.get("tags", []):
            assert not result.success, source
            continue
        result.raise_error()
        found += [export(view, folder, len(found) + at, steps, end) for at, view in enumerate(views_in(result.result))]
    (folder / "views.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
