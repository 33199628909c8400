"""`python -m benchmarks frames`: frames per second that a page paints of what moves, the time to the first
picture, and the processor time of each.

A real JupyterLab and a headless Chromium with the software renderer, as in the browser tests. The rate is that of the
best of several windows, because other programs on the machine only ever slow it down; processor time is that of the
kernel, of Jupyter's server and of the browser, over all windows, in ms a picture. The step moves the things in a
kernel, so that its time and that of the view are both in the rate.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.browser.harness import open_notebook, running_chromium, running_lab

__all__ = ["CASES", "main", "measure"]

PARTICLES = """
import numpy as np
import tinote as ti

ti.init()
n, space = {count}, {space}
x = ti.Vector.field(2 + space, ti.f32, shape=n)
v = ti.Vector.field(2 + space, ti.f32, shape=n)
rng = np.random.default_rng(0)
x.from_numpy(rng.random((n, 2 + space), np.float32))
v.from_numpy((rng.random((n, 2 + space), np.float32) - 0.5) * 0.01)

@ti.kernel
def step():
    for i in x:
        x[i] += v[i]
        for k in ti.static(range(2 + space)):
            if x[i][k] < 0 or x[i][k] > 1:
                v[i][k] = -v[i][k]

view = ti.viz.Particles(x, step, radius=1.5)
view
"""
CLOTH = """
import numpy as np
import tinote as ti

ti.init()
n = round(({count} / 2) ** 0.5) + 1
x = ti.Vector.field(3, ti.f32, shape=(n, n))
triangles = ti.field(ti.i32, shape=6 * (n - 1) ** 2)
time = ti.field(ti.f32, shape=())

@ti.kernel
def join():
    for i, j in ti.ndrange(n - 1, n - 1):
        at, a = 6 * (i * (n - 1) + j), i * n + j
        for k, vertex in ti.static(enumerate((0, 1, n + 1, 0, n + 1, n))):
            triangles[at + k] = a + vertex

@ti.kernel
def step():
    time[None] += 0.03
    for i, j in x:
        u, v = 2.0 * i / n - 1.0, 2.0 * j / n - 1.0
        x[i, j] = ti.Vector([u, v, 0.2 * ti.sin(6 * u + time[None]) * ti.cos(5 * v)])

join()
step()
view = ti.viz.Scene(step)
view.mesh(x, triangles, color="#d94f5c", two_sided=True)
view
"""


class Case(NamedTuple):
    """What is shown, by how many things, and the frames per second that are wanted."""

    cell: str
    count: int
    goal: float
    space: int = 0


CASES = {
    "10⁴ in the plane": Case(PARTICLES, 10_000, 55.0),
    "10⁵ in the plane": Case(PARTICLES, 100_000, 45.0),
    "10⁶ in the plane": Case(PARTICLES, 1_000_000, 40.0),
    "10⁶ in space": Case(PARTICLES, 1_000_000, 20.0, space=1),
    "a cloth of 10⁵": Case(CLOTH, 100_352, 15.0, space=1),
}
PARTS = {"kernel": "ipykernel", "server": "jupyterlab", "browser": "chrom"}
"""Processes below this one, by what stands in their command lines."""

PAINTED = "Number(document.querySelector('.tinote-view')?.dataset.painted ?? 0)"


class Measured(NamedTuple):
    """Frames per second, ms from the run to the first picture, and ms of processor time per frame of the `PARTS`."""

    rate: float
    first: float
    work: dict[str, float]


def processor_seconds() -> dict[str, float]:
    """What the processes below this one have used so far."""
    found = dict.fromkeys(PARTS, 0.0)
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            line, times = " ".join(process.cmdline()), process.cpu_times()
            name = next((name for name, sign in PARTS.items() if sign in line), None)
            if name is not None:
                found[name] += times.user + times.system
    return found


def measure(lab: Any, chromium: Any, case: Case, seconds: float, windows: int) -> Measured:
    """The best rate of several windows of `seconds`, and the work of all."""
    page = open_notebook(lab, chromium, "frames.ipynb", [case.cell.format(count=case.count, space=case.space)])
    try:
        begun_run = time.perf_counter()
        page.run_all()
        page.wait(f"{PAINTED} >= 1", 60)
        first = 1000.0 * (time.perf_counter() - begun_run)
        page.page.locator(".tinote-view").get_by_role("button", name="Play").click()
        page.wait(f"{PAINTED} >= 20", 60)
        best, pictures, begun_work = 0.0, 0, processor_seconds()
        for _ in range(windows):
            before, begun = page.page.evaluate(f"() => [{PAINTED}, performance.now()]")
            time.sleep(seconds)
            after, ended = page.page.evaluate(f"() => [{PAINTED}, performance.now()]")
            best = max(best, 1000.0 * (after - before) / (ended - begun))
            pictures += after - before
        work = {
            name: 1000.0 * (used - begun_work[name]) / max(pictures, 1) for name, used in processor_seconds().items()
        }
        return Measured(best, first, work)
    finally:
        page.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; return 1 if a rate is below its goal."""
    from playwright.sync_api import sync_playwright

    described = argparse.ArgumentParser(prog="python -m benchmarks frames", description=__doc__)
    described.add_argument("--case", type=int, action="append", help="the number of a case, from 0; may be repeated")
    described.add_argument("--seconds", type=float, default=2.0, help="length of a window")
    described.add_argument("--windows", type=int, default=5, help="windows a case")
    options = described.parse_args(arguments)
    missed = False
    heads = "  ".join(f"{name:>7}" for name in PARTS)
    print(f"{'':<18} {'frames/s':>8} {'goal':>5} {'first ms':>8}   {heads}  ms of processor time")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        running_lab(Path(root)) as lab,
        sync_playwright() as playwright,
        running_chromium(playwright) as chromium,
    ):
        for number, (name, case) in enumerate(CASES.items()):
            if options.case and number not in options.case:
                continue
            found = measure(lab, chromium, case, options.seconds, options.windows)
            below = found.rate < case.goal
            missed |= below
            work = "  ".join(f"{found.work[part]:7.1f}" for part in PARTS)
            rates = f"{found.rate:8.1f} {case.goal:5.0f} {found.first:8.0f}"
            print(f"{name:<18} {rates}   {work}{'  below' if below else ''}", flush=True)
    return int(missed)
