"""`python -m benchmarks pages`: live views as pages: bytes, ms to the first picture, frames per second, and what a step
costs in WebAssembly, as a multiple of native code.

Native code is that of one thread with vectors of 128 bits (x86-64-v2, or what else the processor has). The captured
step is replayed by one native call, without what a call from Python costs beside it, which is more than a small step.
A step that counts in one of Python's globals, as the walker's does, exchanges it there: one of a microsecond or two may
be slower than in the page.
WebAssembly runs in the page's own Worker, in a headless Chromium, as the engine runs it; the page is isolated for that,
so that its clock is fine enough. Both sides run slices of the same steps from the beginning, in turns, and the fastest
slice counts. Pictures are painted with the software renderer, of a page from the disk; the rate is that of the best
window, at the view's own number of steps a picture.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.browser.harness import new_page, running_chromium
from tinote.viz.pages.bundle import unpacked

__all__ = ["CASES", "main"]

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
PARTICLES = """
import numpy as np
import tinote as ti

ti.init(num_threads=1)
x, v = (ti.Vector.field(2, ti.f32, shape=100_000) for _ in range(2))
rng = np.random.default_rng(0)
x.from_numpy(rng.random((100_000, 2), np.float32))
v.from_numpy((rng.random((100_000, 2), np.float32) - 0.5) * 0.01)

@ti.kernel
def step():
    for i in x:
        x[i] += v[i]
        for k in ti.static(range(2)):
            if x[i][k] < 0 or x[i][k] > 1:
                v[i][k] = -v[i][k]

ti.viz.Particles(x, step, radius=1.5)
"""
MPM = """
import tinote as ti
from benchmarks.mpm.dialect import DialectMpm

system = DialectMpm(ti, num_threads=1)
ti.viz.Particles(system._x, system.substep, steps_per_frame=10)
"""


class Case(NamedTuple):
    """Where the view is: the `number`th of a notebook, or the last value of a cell. The goals: kB, ms to the first
    picture, frames per second, and the multiple of native code.
    """

    source: str
    number: int = 0
    most_kb: float | None = None
    most_ms: float | None = None
    least_rate: float | None = None
    most_ratio: float = 3.0


CASES = {
    "gravity": Case("02_autodiff_gravity.ipynb", 0, 100.0, 500.0),
    "fluid, 128²": Case("06_fluid_live.ipynb", 0, least_rate=60.0),
    "MPM-88": Case(MPM),
    "walker": Case("05_fitting_and_control.ipynb", 0),
    "10⁵ particles": Case(PARTICLES, least_rate=30.0),
}

#: In the Worker of a page: a program of its own, as the engine opens it.
OPEN = """async (program) => {
  globalThis.timed = await Program.open(Uint8Array.from(atob(program), (one) => one.charCodeAt(0)));
}"""
#: ms of a step there: the mean of `steps` from the beginning.
STEPS = """(steps) => {
  timed.restore();
  const begun = performance.now();
  for (let left = steps; left > 0; left -= 1) timed.step();
  return (performance.now() - begun) / steps;
}"""
SLICE = 1.0
"""ms of a slice, at least: clocks of isolated pages tick in 5 µs."""
ADDRESS = "http://127.0.0.1/"
ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


def view_of(case: Case) -> Any:
    """The view of a case, made in this process."""
    import nbformat
    from IPython.core.interactiveshell import InteractiveShell

    from tests.browser.tutorial_views import SHORTER, views_in
    from tinote.viz.live.simulation import LiveSimulation
    from tinote.viz.notebook.composed import keep_pictures_of_boxes

    os.environ.setdefault("MPLBACKEND", "agg")
    for method in ("prepare_unattended", "pause"):  # Nothing plays here.
        setattr(LiveSimulation, method, lambda self: None)
    shell = InteractiveShell.instance()
    keep_pictures_of_boxes()
    cells = [case.source]
    if case.source.endswith(".ipynb"):
        notebook = nbformat.read(NOTEBOOKS / case.source, as_version=4)
        cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    found: list[Any] = []
    for cell in cells:
        for long, short in SHORTER.items():
            cell = cell.replace(long, short)
        result = shell.run_cell(cell, store_history=True)
        result.raise_error()
        found += views_in(result.result)
        if len(found) > case.number:
            return found[case.number]
    raise LookupError(f"{case.source} has no view {case.number}")


def serve(name: str, page: Path) -> None:
    """The other process: write the page, and run native steps."""
    from tinote.runtime import jit

    if platform.machine() in ("x86_64", "AMD64"):
        os.environ[jit.CPU_VARIABLE] = "x86-64-v2"
    import tinote as ti
    from tinote.lang.session.state import session
    from tinote.viz.pages.export import page as write_page

    answers, sys.stdout = sys.stdout, sys.stderr
    view = view_of(CASES[name])
    session.config = session.config._replace(num_threads=1)
    write_page(view, page)
    step = view.page_functions().step
    program = ti.capture(lambda: step() and None)
    program()
    known = program.captured()
    # A step that counts in globals exchanges them with Python, which takes a third of a microsecond.
    replay = (lambda: known.run(())) if known.inputs or known.prepared.draws else known.prepared.run
    variables = [(namespace, key, namespace[key]) for namespace, key in known._variables]
    memories = [(field.memory, field.memory.copy()) for field in list(session.fields)]
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        steps = range(int(line))
        begun = time.perf_counter()
        for _ in steps:
            replay()
        spent = time.perf_counter() - begun
        for memory, copy in memories:
            memory.restore(copy)
        for namespace, key, value in variables:
            namespace[key] = value
        print(1e3 * spent / len(steps), file=answers, flush=True)


class Native:
    """A process that times native steps."""

    def __init__(self, stack: ExitStack, name: str, page: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.pages", name, str(page)]
        self._process = stack.enter_context(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        )
        stack.callback(self._process.kill)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input: IO[str] = self._process.stdin
        self._output: IO[str] = self._process.stdout
        if self._output.readline().strip() != "ready":
            raise RuntimeError(f"the native steps of {name} have ended")

    def step(self, steps: int) -> float:
        """ms of a step: the mean of those from the beginning."""
        print(steps, file=self._input, flush=True)
        return float(self._output.readline())


class Measured(NamedTuple):
    """kB of the page; ms of a native step and of one in WebAssembly; ms to the first picture; frames per second."""

    kb: float
    native: float
    wasm: float
    first: float
    rate: float

    @property
    def ratio(self) -> float:
        return self.wasm / self.native


PAINTED = "Number(document.querySelector('.tinote-view')?.dataset.painted ?? 0)"


def view_in(page: str) -> Any:
    """What a page knows of its only view."""
    found = re.search(r'id="tinote-data">([^<]*)<', page)
    assert found is not None
    (view,) = unpacked(found[1])["views"]
    return view


def _slices(chromium: Any, native: Native, file: Path, rounds: int, steps: int) -> list[tuple[float, float]]:
    """ms of a native step and of one in the Worker, in slices by turns."""
    page = new_page(chromium, offline=True)
    try:
        text = file.read_text("utf-8")
        page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html", headers=ISOLATED))
        page.goto(ADDRESS)
        page.wait_for_function("() => performance.getEntriesByName('tinote-painted').length")
        (worker,) = page.workers
        if not worker.evaluate("crossOriginIsolated"):
            raise RuntimeError("the page has a coarse clock")
        worker.evaluate(OPEN, base64.b64encode(view_in(text)["program"]).decode())
        native.step(steps)
        count = max(steps, math.ceil(SLICE / native.step(steps)))
        for _ in range(rounds):
            worker.evaluate(STEPS, count)  # V8 compiles better what has run.
        return [(native.step(count), worker.evaluate(STEPS, count)) for _ in range(16 * rounds)]
    finally:
        page.context.close()


def measure(chromium: Any, name: str, rounds: int, steps: int, seconds: float) -> Measured:
    """Measure a case."""
    with ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "page.html"
        native = Native(stack, name, file)
        slices = _slices(chromium, native, file, rounds, steps)
        page = new_page(chromium, offline=True, viewport={"width": 1280, "height": 900})
        stack.callback(page.context.close)
        page.goto(file.as_uri())
        page.wait_for_function("() => performance.getEntriesByName('tinote-painted').length")
        first = page.evaluate("performance.getEntriesByName('tinote-painted')[0].startTime")
        page.get_by_role("button", name="Play").first.click()
        page.wait_for_function(f"() => {PAINTED} >= 20")
        rate = 0.0
        for _ in range(rounds):
            before, begun = page.evaluate(f"() => [{PAINTED}, performance.now()]")
            time.sleep(seconds)
            after, ended = page.evaluate(f"() => [{PAINTED}, performance.now()]")
            rate = max(rate, 1000.0 * (after - before) / (ended - begun))
        kb = file.stat().st_size / 1000
    return Measured(kb, min(a for a, _ in slices), min(b for _, b in slices), first, rate)


#: Between these lines a text has the table of what was measured.
BEGIN, END = "<!-- written by: python -m benchmarks pages --into benchmarks/README.md -->\n", "<!-- end of it -->\n"
HEAD = (
    "| view | page, kB | first picture, ms | frames per second | a step, ms: native | in the page | ratio |\n"
    "|---|---|---|---|---|---|---|\n"
)


def row_of(name: str, found: Measured) -> str:
    """A line of the table."""
    step = f"{found.native:.3f} | {found.wasm:.3f} | {found.ratio:.2f}"
    return f"| {name} | {found.kb:.0f} | {found.first:.0f} | {found.rate:.0f} | {step} |\n"


def with_table(text: str, results: dict[str, Measured]) -> str:
    """A text with these rows in its table in place of what it has of them; those of other views remain."""
    before, begin, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"there is no line {BEGIN.strip()!r}, with {END.strip()!r} below")
    rows = {line.split(" | ")[0].strip("| "): line for line in table.splitlines(keepends=True)[2:]}
    rows |= {name: row_of(name, found) for name, found in results.items()}
    return before + begin + HEAD + "".join(rows.values()) + end + after


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table, and write JSON or the table of a text if asked; return 1 if a goal is missed."""
    from playwright.sync_api import sync_playwright

    described = argparse.ArgumentParser(prog="python -m benchmarks pages", description=__doc__)
    described.add_argument("--case", action="append", choices=CASES, help="which; may be repeated (default: all)")
    described.add_argument("--rounds", type=int, default=8, help="windows, sixteen slices each (default: %(default)s)")
    described.add_argument("--steps", type=int, default=10, help="the fewest steps of a slice (default: %(default)s)")
    described.add_argument("--seconds", type=float, default=1.0, help="length of a window (default: %(default)s)")
    described.add_argument("--json", type=Path, metavar="OUT", help="write what was measured to this file")
    described.add_argument(
        "--into", type=Path, metavar="TEXT", help="write the table of this text, such as benchmarks/README.md"
    )
    options = described.parse_args(arguments)
    results: dict[str, Measured] = {}
    is_missed = False
    print(f"{'':<15} {'kB':>6} {'first/ms':>9} {'frames/s':>9} {'native/ms':>10} {'page/ms':>8} {'ratio':>6}")
    with sync_playwright() as playwright, running_chromium(playwright) as chromium:
        for name in options.case or CASES:
            found = results[name] = measure(chromium, name, options.rounds, options.steps, options.seconds)
            case = CASES[name]
            missed = [
                word
                for word, is_below in (
                    ("kB", case.most_kb is not None and found.kb > case.most_kb),
                    ("first", case.most_ms is not None and found.first > case.most_ms),
                    ("frames", case.least_rate is not None and found.rate < case.least_rate),
                    ("ratio", found.ratio > case.most_ratio),
                )
                if is_below
            ]
            is_missed |= bool(missed)
            print(
                f"{name:<15} {found.kb:6.0f} {found.first:9.0f} {found.rate:9.1f} {found.native:10.4f} "
                f"{found.wasm:8.4f} {found.ratio:6.2f}{'  missed: ' + ', '.join(missed) if missed else ''}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps({k: v._asdict() for k, v in results.items()}, indent=1) + "\n", "utf-8")
    if options.into:
        options.into.write_text(with_table(options.into.read_text("utf-8"), results), "utf-8")
    return int(is_missed)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
