"""`python -m benchmarks frames`: pictures a second that a page paints of particles that move, by their number.

A real JupyterLab and a headless Chromium with the software renderer, as in the browser tests. The rate is that of the
best of several windows, because other programs on the machine only ever slow it down. The step moves the particles in a
kernel, so that its time and that of the view are both in the rate.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.browser.harness import open_notebook, running_chromium, running_lab

__all__ = ["GOALS", "main", "measure"]

GOALS = {10_000: 50.0, 100_000: 45.0, 1_000_000: 25.0}
"""Pictures a second that are wanted, by the number of particles."""

CELL = """
import numpy as np
import tinote as ti

ti.init()
n = {count}
x = ti.Vector.field(2, ti.f32, shape=n)
v = ti.Vector.field(2, ti.f32, shape=n)
rng = np.random.default_rng(0)
x.from_numpy(rng.random((n, 2), np.float32))
v.from_numpy((rng.random((n, 2), np.float32) - 0.5) * 0.01)

@ti.kernel
def step():
    for i in x:
        x[i] += v[i]
        for k in ti.static(range(2)):
            if x[i][k] < 0 or x[i][k] > 1:
                v[i][k] = -v[i][k]

view = ti.viz.Particles(x, step, radius=1.5)
view
"""
PAINTED = "Number(document.querySelector('.tinote-view')?.dataset.painted ?? 0)"


def measure(lab: Any, chromium: Any, count: int, seconds: float, windows: int) -> float:
    """The best rate of several windows of `seconds`, in pictures a second."""
    page = open_notebook(lab, chromium, f"frames_{count}.ipynb", [CELL.format(count=count)])
    try:
        page.run_all()
        page.wait(f"{PAINTED} >= 1", 60)
        page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
        page.wait(f"{PAINTED} >= 20", 60)
        best = 0.0
        for _ in range(windows):
            before, begun = page.page.evaluate(f"() => [{PAINTED}, performance.now()]")
            time.sleep(seconds)
            after, ended = page.page.evaluate(f"() => [{PAINTED}, performance.now()]")
            best = max(best, 1000.0 * (after - before) / (ended - begun))
        return best
    finally:
        page.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; return 1 if a rate is below its goal."""
    from playwright.sync_api import sync_playwright

    described = argparse.ArgumentParser(prog="python -m benchmarks frames", description=__doc__)
    described.add_argument("--count", type=int, action="append", help="particles; may be given several times")
    described.add_argument("--seconds", type=float, default=2.0, help="length of a window")
    described.add_argument("--windows", type=int, default=5, help="windows a number of particles")
    options = described.parse_args(arguments)
    missed = False
    print(f"{'particles':>10}  {'frames/s':>8}  {'goal':>5}")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        running_lab(Path(root)) as lab,
        sync_playwright() as playwright,
        running_chromium(playwright) as chromium,
    ):
        for count in options.count or GOALS:
            rate = measure(lab, chromium, count, options.seconds, options.windows)
            goal = GOALS.get(count, 0.0)
            missed |= rate < goal
            print(f"{count:>10,}  {rate:8.1f}  {goal or '':>5}{'  below' if rate < goal else ''}", flush=True)
    return int(missed)
