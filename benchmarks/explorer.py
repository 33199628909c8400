"""`python -m benchmarks explorer`: how long the IR explorer takes to open after a compile, and to change the stage.

A real JupyterLab and a headless Chromium with the software renderer, as in the browser tests. Opening counts from the
call of `ti.viz.explore(kernel)`: until the cell has its widget (Python: the stages, the picture that stays, the
messages), and until the browser has painted both panes. The first explorer of a session also loads what all later ones
need, so that it has rows of its own. Each is of a kernel that has just been compiled, and opens on its gradient. A
stage change counts from the key press until the browser has painted two stages of 5,000 operations each.

The minimum is held against the limit, because other programs on the machine only ever slow it down; a median far above
it says that they did.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.browser.harness import TIMED_KEY, Page, open_notebook, running_chromium, running_lab

__all__ = ["LIMITS", "main", "opening_times", "stage_change_times"]

LIMITS = {
    "opens, first of a session: Python": 0.2,
    "opens, first of a session: painted": 0.2,
    "opens again: Python": 0.2,
    "opens again: painted": 0.2,
    "changes the stage, 5,000 operations": 0.1,
}
"""What is measured, and the seconds it may take."""

SETUP = """
%load_ext tinote
import time
import tinote as ti

ti.init()
N = 64
x = ti.Vector.field(2, dtype=ti.f32, shape=N, needs_grad=True)
U = ti.field(dtype=ti.f32, shape=(), needs_grad=True)
"""
COMPILE = """
@ti.kernel
def energy():
    for i, j in ti.ndrange(N, N):
        r = x[i] - x[j]
        U[None] += -1 / r.norm({softening})

with ti.ad.Tape(U):
    energy()
"""
OPEN = """
begun = time.time()
display(ti.viz.explore(energy, gradient=True))
ended = time.time()
"""
BIG = """
from tests.viz.explored import big_stages
from tinote.viz.explorer.widget import Explorer, ExplorerView

big = big_stages(5000)
Explorer("big", [ExplorerView("kernel", lambda: big)])
"""
# Run a cell; the time of day, in seconds, when the explorer that it shows was painted: it says so in the frame that
# draws it, and that is on the screen when the next one begins.
RUN_AND_PAINT = """async (index) => {
    const { content } = window.jupyterapp.shell.currentWidget;
    const cell = content.widgets[index].node;
    const drawn = new Promise((go) => {
        const look = () => cell.querySelector('.tinote-explorer[data-painted]') && go();
        new MutationObserver(look).observe(cell, { subtree: true, attributeFilter: ['data-painted'] });
    });
    content.activeCellIndex = index;
    window.jupyterapp.commands.execute('notebook:run-cell');
    await drawn;
    await new Promise(requestAnimationFrame);
    return (performance.timeOrigin + performance.now()) / 1000;
}"""


def opening_times(page: Page, cell: int) -> tuple[float, float]:
    """Run the cell `OPEN`; the seconds until it had its widget, and until that was painted."""
    painted = page.page.evaluate(RUN_AND_PAINT, cell)
    page.wait_idle()
    begun, ended = map(float, page.python("print(begun, ended)").split())
    return ended - begun, painted - begun


def stage_change_times(page: Page) -> list[float]:
    """The seconds of each change, forth over stages that have not been aligned yet, and back."""
    page.run_all()
    page.wait("Number(document.querySelector('.tinote-explorer')?.dataset.painted ?? 0) >= 1")
    page.wait_idle()
    times = []
    for key in ["Home"] + ["ArrowDown"] * 3 + ["ArrowUp"] * 3:
        page.page.wait_for_timeout(300)  # The neighbours' lines arrive while nothing else happens.
        times.append(page.page.evaluate(TIMED_KEY, [0, key]) / 1000)
    return times[1:]


def measure(lab: Any, chromium: Any, session: int, again: int) -> Mapping[str, list[float]]:
    """The times of one session, in which `again` explorers are opened after the first."""
    found: dict[str, list[float]] = {what: [] for what in LIMITS}
    kernels = [(COMPILE.format(softening=f"{session}.{n + 1}e-3"), OPEN) for n in range(again + 1)]
    page = open_notebook(lab, chromium, f"opens_{session}.ipynb", [SETUP, *(cell for pair in kernels for cell in pair)])
    try:
        page.run_cell(0)
        for number in range(again + 1):
            page.run_cell(1 + 2 * number)
            page.wait_idle()
            times = opening_times(page, 2 + 2 * number)
            for part, seconds in zip(("Python", "painted"), times, strict=True):
                found[f"opens{' again' if number else ', first of a session'}: {part}"].append(seconds)
    finally:
        page.close()
    page = open_notebook(lab, chromium, f"changes_{session}.ipynb", [BIG])
    try:
        found["changes the stage, 5,000 operations"] += stage_change_times(page)
    finally:
        page.close()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; return 1 if a limit is missed."""
    from playwright.sync_api import sync_playwright

    described = argparse.ArgumentParser(prog="python -m benchmarks explorer", description=__doc__)
    described.add_argument("--sessions", type=int, default=3, help="notebooks, each with a kernel of its own")
    described.add_argument("--again", type=int, default=3, help="explorers opened in each after the first")
    options = described.parse_args(arguments)
    times: dict[str, list[float]] = {what: [] for what in LIMITS}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        running_lab(Path(root), TINOTE_CACHE_DIR=f"{root}/cache") as lab,
        sync_playwright() as playwright,
        running_chromium(playwright) as chromium,
    ):
        for session in range(options.sessions):
            for what, seconds in measure(lab, chromium, session, options.again).items():
                times[what] += seconds
    print(table(times))
    return int(any(min(seconds) > LIMITS[what] for what, seconds in times.items() if seconds))


def table(times: Mapping[str, Sequence[float]]) -> str:
    """A line for each row of `LIMITS` that was measured, in milliseconds."""
    lines = [f"{'':36}{'minimum':>9}{'median':>9}{'limit':>9}"]
    for what, seconds in times.items():
        if seconds:
            figures = (min(seconds), statistics.median(seconds), LIMITS[what])
            cells = "".join(f"{1000 * figure:>6.0f} ms" for figure in figures)
            lines.append(f"{what:36}{cells}{'  above' if min(seconds) > LIMITS[what] else ''}")
    return "\n".join(lines)
