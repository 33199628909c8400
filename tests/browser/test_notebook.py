"""The whole notebook in JupyterLab, as somebody uses it.

The tutorial live, errors, prints, Interrupt, cells next to a live view, and the classic program of the dialect.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from tests.browser.waiting import expect, poll

TUTORIAL = Path(__file__).parents[2] / "notebooks" / "02_autodiff_gravity.ipynb"
VIEW = "document.querySelector('.tinote-view')"
STAGE = ".tinote-view canvas.tinote-stage"
CHART = ".tinote-view canvas.tinote-chart"
PAINTED = f"Number({VIEW}?.dataset.painted ?? 0)"
EXPLORED = "Number(document.querySelector('.tinote-explorer')?.dataset.painted ?? 0)"
GUI_PAINTED = "Number(document.querySelector('.tinote-gui')?.dataset.painted ?? 0)"

# Text that the cell with the `index` (from 0) has shown so far.
OUTPUT = (
    "document.querySelectorAll('.jp-Notebook .jp-CodeCell')[{index}].querySelector('.jp-Cell-outputArea')?.innerText"
    " ?? ''"
)

# Run code in the kernel without waiting for it; `printed` is what it has printed so far.
START = """(code) => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    window.printed = '';
    kernel.requestExecute({ code, stop_on_error: false }).onIOPub = ({ header, content }) => {
        if (header.msg_type === 'stream') window.printed += content.text;
    };
}"""


def output(page, index: int) -> str:
    """What a cell has shown so far."""
    return page.page.evaluate(f"() => {OUTPUT.format(index=index)}")


def wait_output(page, index: int, *parts: str) -> str:
    """Wait until a cell shows all these parts; all that it shows."""
    return poll(lambda: output(page, index), lambda shown: all(part in shown for part in parts))


def tutorial_cells() -> list[str]:
    return [cell.source for cell in nbformat.read(TUTORIAL, as_version=4).cells if cell.cell_type == "code"]


def numbers(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", text)]


def ink(pixels: np.ndarray) -> np.ndarray:
    """Which pixels of the stage show a particle, which is brighter than its glow, on paper that is nearly black."""
    return pixels[:, :, :3].max(axis=2) > 120


@pytest.fixture
def tutorial(notebook):
    page = notebook(*tutorial_cells())
    page.run_all()
    try:
        page.wait(f"{PAINTED} >= 1 && {EXPLORED} >= 1")
        page.wait_idle()
    except Exception as error:
        shown = page.page.locator(".jp-CodeCell").evaluate_all("(cells) => cells.map((cell) => cell.innerText)")
        raise AssertionError(f"not painted: {error}\n{page.problems}\n" + "\n".join(shown)) from None
    return page


def test_the_tutorial_runs_live(tutorial):
    page = tutorial
    button = page.page.locator(".tinote-view").first.get_by_role
    at_start = page.canvas(STAGE)
    # 512 discs of radius 2 cover at most 512 π 4 of 480 × 480 pixels, and less where they overlap.
    assert 0.5 < ink(at_start).sum() / (512 * np.pi * 4) < 1.1
    assert page.python("print(view.steps, view.state)") == "0 paused"

    button("button", name="Play").click()
    page.wait(f"{PAINTED} > 40 && Number({VIEW}.dataset.step) >= 600")
    button("button", name="Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    steps = page.settle()
    moved = page.canvas(STAGE)
    assert (ink(moved) != ink(at_start)).sum() > 500

    # The plot shows what is conserved: kinetic energy changes by much, and the total hardly at all.
    keys = page.page.locator(".tinote-legend").first.locator(".tinote-key")
    expect(keys).to_have_text([re.compile(f"^{name} ") for name in ("kinetic", "total", "potential")])
    kinetic, total, potential = numbers(page.python("print(*np.ptp(view.history.table()[:, 1:], axis=0))"))
    assert kinetic > 300 and potential > 300 and total < 0.05
    chart = page.canvas(CHART)
    assert len(np.unique(chart[:, :, :3].reshape(-1, 3), axis=0)) > 10
    # A flat line of the second colour: its pixels take up one or two of the chart's rows, and run through most columns.
    orange = (np.abs(chart[:, :, :3] - page_color(page, 1)) < 40).all(axis=2) & (chart[:, :, 3] > 128)
    rows = np.flatnonzero(orange.any(axis=1))
    assert 1 <= np.ptp(rows) + 1 <= 4
    assert orange.any(axis=0).sum() > 0.5 * chart.shape[1]

    button("button", name="Step").click()
    page.wait(f"{VIEW}.dataset.step === '{steps + 10}'")
    slider = button("slider", name="Speed")
    slider.focus()
    slider.press("Home")
    expect(page.page.locator(".tinote-speed-text").first).to_have_text("1 step / frame")
    button("button", name="Step").click()
    page.wait(f"{VIEW}.dataset.step === '{steps + 11}'")
    button("button", name="Reset").click()
    page.wait(f"{VIEW}.dataset.step === '0'")
    assert np.array_equal(page.canvas(STAGE), at_start)

    # The explorer stands open on the gradient, and a click ties a line of the cell to what became of it.
    explorer = page.page.locator(".tinote-explorer")
    expect(explorer.get_by_role("radio", name="gradient")).to_have_attribute("aria-checked", "true")
    expect(explorer.locator(".is-lit")).to_have_count(0)
    explorer.locator(".source .row .code", has_text="r = x[i] - x[j]").first.click()
    page.page.mouse.move(0, 0)
    for pane in (".left", ".right"):
        lit = explorer.locator(f"{pane} .row:is(.is-lit, .is-strong) .code")
        expect(lit.filter(has_text=re.compile("%r_.* = sub "))).to_have_count(2)
    assert page.problems == []


def page_color(page, index: int) -> np.ndarray:
    """The colour of a series, as its mark in the legend has it."""
    mark = page.page.locator(".tinote-legend .tinote-key i").nth(index)
    color = "(mark) => getComputedStyle(mark).backgroundColor"
    return np.array(poll(lambda: numbers(mark.evaluate(color))[:3], lambda found: len(found) == 3 and any(found)))


def test_cells_next_to_a_playing_view(tutorial):
    page = tutorial
    page.python("view.play()")
    page.page.locator(STAGE).first.scroll_into_view_if_needed()
    page.wait(f"{PAINTED} > 10")

    # A tape that a cell holds open while the view plays: the view's launches are its own, and so are its gradients.
    page.python("w = ti.field(ti.f32, 3, needs_grad=True)\nL = ti.field(ti.f32, (), needs_grad=True)\nw.fill(3)")
    page.python("%%kernel -q\ndef square():\n    for i in w:\n        L[None] += w[i] ** 2")
    recorded = page.python(
        "import asyncio\nbegin = view.steps\n"
        "with ti.ad.Tape(loss=L) as tape:\n    square()\n"
        "    while view.steps < begin + 20:\n        await asyncio.sleep(0.01)\n"
        "print(len(tape.records), w.grad.to_numpy())"
    )
    assert recorded == "1 [6. 6. 6.]"
    page.wait(f"Number({VIEW}.dataset.step) > {page.python('print(view.steps)')} + 100")
    assert page.python("print(w.grad.to_numpy())") == "[6. 6. 6.]"

    # A kernel that is defined anew is what the view uses from its next step on.
    spring = next(cell for cell in tutorial_cells() if "def potential" in cell)
    line = next(row for row in spring.splitlines() if "U[None] +=" in row)
    page.python(spring.replace(line, "        U[None] += 4 * G * r.norm_sqr()"))
    page.wait(f"Number({VIEW}.dataset.step) > {page.python('print(view.steps)')} + 100")
    assert page.python("print(view.state, view.error)") == "playing"
    page.page.locator(".tinote-view").first.get_by_role("button", name="Pause").click()
    page.wait(f"{VIEW}.dataset.state === 'paused'")
    page.settle()
    assert (
        page.python("p = x.to_numpy(); print(np.allclose(x.grad.to_numpy(), 16 * (p - p.mean(0)), atol=1e-3))")
        == "True"
    )

    # Interrupt ends the kernel of the cell that runs, and not those of the view.
    page.page.locator(".tinote-view").first.get_by_role("button", name="Play").click()
    page.python("%%kernel -q\ndef endless():\n    print('inside')\n    k = 0\n    while k < 1:\n        w[0] += 0.0")
    page.page.evaluate(START, "endless()")
    page.wait("window.printed.includes('inside')")
    page.interrupt()
    assert page.python("print(view.state, view.error)") == "playing"
    page.wait(f"Number({VIEW}.dataset.step) > {page.python('print(view.steps)')} + 50")

    # An error in the new kernel stops the view with the located text; the repaired cell goes on.
    page.python(spring.replace(line, "        U[None] += 4 * G * r.norm_square()"))
    page.wait(f"{VIEW}.dataset.state === 'stopped'")
    alert = page.page.locator(".tinote-view").first.get_by_role("alert")
    expect(alert).to_contain_text("norm_square")
    expect(alert).to_contain_text("^^^^")
    page.python(spring)
    page.page.locator(".tinote-view").first.get_by_role("button", name="Play").click()
    alert.wait_for(state="hidden")
    begin = int(page.python("print(view.steps)"))
    page.wait(f"Number({VIEW}.dataset.step) > {begin + 50}")
    assert page.problems == []


MISTAKES = """%load_ext tinote
import tinote as ti
ti.init()
x = ti.field(ti.f32, shape=8)"""


def test_errors_show_the_cells_own_line(notebook):
    cells = {
        "%%kernel\ndef unknown():\n    for i in x:\n        x[i] = y[i]\n\nunknown()": (
            "line 4",
            "        x[i] = y[i]",
            "^",
            "y",
        ),
        "%%kernel\ndef beyond(k: ti.i32):\n    x[0] = 1.0\n    x[k] = 2.0\n\nbeyond(9)": (
            "line 4",
            "    x[k] = 2.0",
            "^^^^",
            "9",
            "(8,)",
        ),
        "%%kernel\ndef gap(:\n    pass": ("line 2", "def gap(:", "^"),
        "@ti.kernel\ndef wrong():\n    x[0, 1] = 1.0\n\nwrong()": (
            "line 3",
            "    x[0, 1] = 1.0",
            "^^^^",
            "1 dimension",
        ),
        "%%kernel\ndef fine(a: ti.f32):\n    x[0] = a\n\nfine()": ("fine", "missing: a"),
        "%%kernel --tmie\ndef f():\n    pass": ("--tmie", "%%kernel?"),
    }
    page = notebook(MISTAKES, *cells)
    for index in range(len(cells) + 1):
        page.run_cell(index)
        page.wait_after_error()
    for index, expected in enumerate(cells.values(), 1):
        shown = wait_output(page, index, *expected)
        if expected[0].startswith("line"):
            assert f"Cell In[{index + 1}], {expected[0]}" in shown, shown
            # The caret stands under the line.
            rows = shown.splitlines()
            caret = next(at for at, row in enumerate(rows) if re.fullmatch(r"[ |]*\^+", row))
            assert rows[caret - 1].endswith(expected[1])
        assert "tinote/" not in shown and "site-packages" not in shown and "Traceback" not in shown
        # With its class, the way to the manual, and the way there folded.
        assert len([row for row in shown.splitlines() if row.strip()]) < 12, shown
    assert page.python("x[1] = 5; print(x[1])") == "5.0"
    assert page.problems == []


PRINTING = """%%kernel -q
def count(turns: ti.i32, then_stay: ti.i32):
    k = 0
    while k < turns:
        print("turn", k, "of", turns)
        k += 1
    while then_stay == 1:
        x[0] += 0.0"""


def test_prints_arrive_in_their_own_cell_while_the_kernel_runs(notebook):
    page = notebook(MISTAKES, PRINTING, "count(3, then_stay=1)", "count(6, then_stay=0)", "print('the cell below')")
    for index in range(3):
        page.run_cell(index)
    # What is printed is there though the kernel has not ended, as the interrupt shows. (What JupyterLab says of the
    # session, busy or idle, is that of its last request, also of one that is answered meanwhile.)
    wait_output(page, 2, "turn 2 of 3")
    page.interrupt()
    wait_output(page, 2, "KeyboardInterrupt")
    page.wait_after_error()
    page.run_cell(3)
    page.run_cell(4)
    page.wait_idle()
    poll(lambda: output(page, 3).split(), " ".join(f"turn {k} of 6" for k in range(6)).split())
    poll(lambda: output(page, 4).strip(), "the cell below")
    assert page.problems == []


ENDLESS = """%%kernel -q
def endless_while(k: ti.i32):
    data[0] = 1.0
    while k < 1:
        data[1] += 0.5
    data[0] = -1.0

def long_for(count: ti.i64) -> ti.f64:
    s = ti.cast(0.25, ti.f64)
    for k in range(count):
        s = s * 0.5 + ti.sin(s)
    return s

def endless_iteration():
    for i in range(64):
        while data[2] < 1.0:
            data[3] += 0.0

def long_gradient():
    for i in w:
        for k in range(count[None]):
            L[None] += ti.sin(w[i] * k)
"""
ENDLESS_DATA = """
data = ti.field(ti.f32, shape=8)
w = ti.field(ti.f32, shape=4, needs_grad=True)
L = ti.field(ti.f32, shape=(), needs_grad=True)
count = ti.field(ti.i64, shape=())
data[7] = 42.0
w.fill(0.25)
import time
def timed(function):
    global began, stopped
    began = time.monotonic()
    print("started")
    try:
        function()
    except KeyboardInterrupt:
        stopped = time.monotonic()
        raise
"""
COMPILED = """
endless_while(1)
long_for(1)
data[2] = 1
endless_iteration()
data[2] = 0
count[None] = 10
with ti.ad.Tape(loss=L):
    long_gradient()
L.grad[None] = 1
long_gradient.grad()"""
LONG_GRADIENT = """
count[None] = 1_000_000_000_000
timed(long_gradient.grad)"""


def test_interrupt_stops_every_endless_kernel_and_keeps_the_session(notebook, pictures):
    endless = [
        "timed(lambda: endless_while(0))",
        "timed(lambda: long_for(1_000_000_000_000))",
        "timed(endless_iteration)",
        LONG_GRADIENT,
    ]
    kernels = ["endless_while", "long_for", "endless_iteration", "long_gradient.grad"]
    page = notebook(MISTAKES + ENDLESS_DATA, ENDLESS, COMPILED, *endless)
    for index in range(3):
        page.run_cell(index)
    page.wait_idle()
    for index, (cell, kernel) in enumerate(zip(endless, kernels, strict=True), 3):
        page.run_cell(index)
        wait_output(page, index, "started")
        page.page.wait_for_timeout(500)  # Workers have joined it.
        page.interrupt()
        wait_output(page, index, "KeyboardInterrupt")
        page.wait_after_error()
        assert float(page.python("print(stopped - began)")) > 0.3, f"{cell} ended by itself"
        assert page.python("print(data[7], w.to_numpy().tolist())") == "42.0 [0.25, 0.25, 0.25, 0.25]"
        card = page.page.locator(".jp-CodeCell").nth(index).locator(".tinote-error-view")
        expect(card.locator(".message")).to_have_text(f"interrupted in the kernel '{kernel}'")
        expect(card.locator(".source").first).to_have_text(re.compile(r"\b(while|for) .+:$"))
        shown = wait_output(page, index, kernel)
        assert "site-packages" not in shown and "tinote/" not in shown, shown
    pictures.of_notebook(page, "interrupted", 2400)
    # What was interrupted can be launched again, and is right.
    again = page.python("count[None] = 3\nwith ti.ad.Tape(loss=L):\n    long_gradient()\nprint(*w.grad.to_numpy())")
    assert numbers(again) == pytest.approx([sum(k * np.cos(0.25 * k) for k in range(3))] * 4, rel=1e-5)
    assert page.problems == []


PRINTING_VIEW = """from tinote.viz import Particles
p = ti.Vector.field(2, ti.f32, shape=4)
@ti.kernel
def shrink():
    for i in p:
        p[i] *= 0.5
    print("a kernel of the view")
def step():
    shrink()
    print("its step")
view = Particles(p, step)
view"""


def test_a_views_prints_arrive_where_it_was_made(notebook):
    page = notebook(MISTAKES, PRINTING_VIEW, "print('another cell')")
    page.run_all()
    page.wait(f"{PAINTED} >= 1")
    page.page.locator(".tinote-view").first.get_by_role("button", name="Play").click()
    page.wait(f"{PAINTED} > 5")
    page.run_cell(2)
    wait_output(page, 2, "another cell")
    steps = int(page.python("print(view.steps)"))
    # The prints may have pushed the other cell so far down that running it has moved the view out of sight.
    page.page.locator(".tinote-view").scroll_into_view_if_needed()
    poll(lambda: output(page, 1).count("its step"), lambda count: count > steps + 5)
    page.python("view.stop()")
    poll(
        lambda: output(page, 1),
        lambda shown: abs(shown.count("a kernel of the view") - shown.count("its step")) <= 1,
    )
    poll(lambda: output(page, 2).strip(), "another cell")
    assert page.problems == []


CLASSIC = """import tinote as ti

N = 8
dt = 1e-5

x = ti.Vector.field(2, dtype=ti.f32, shape=N, needs_grad=True)  # particle positions
v = ti.Vector.field(2, dtype=ti.f32, shape=N)  # particle velocities
U = ti.field(dtype=ti.f32, shape=(), needs_grad=True)  # potential energy


@ti.kernel
def compute_U():
    for i, j in ti.ndrange(N, N):
        r = x[i] - x[j]
        # r.norm(1e-3) is equivalent to ti.sqrt(r.norm()**2 + 1e-3)
        # This is to prevent 1/0 error which can cause wrong derivative
        U[None] += -1 / r.norm(1e-3)  # U += -1 / |r|


@ti.kernel
def advance():
    for i in x:
        v[i] += dt * -x.grad[i]  # dv/dt = -dU/dx
    for i in x:
        x[i] += dt * v[i]  # dx/dt = v


def substep():
    with ti.ad.Tape(loss=U):
        # Kernel invocations in this scope will later contribute to partial derivatives of
        # U with respect to input variables such as x.
        compute_U()  # The tape will automatically compute dU/dx and save the results in x.grad
    advance()


@ti.kernel
def init():
    for i in x:
        x[i] = [ti.random(), ti.random()]


init()
"""
LOOP = """gui = ti.GUI('Autodiff gravity')
while gui.running:
    for i in range(50):
        substep()
    gui.circles(x.to_numpy(), radius=3)
    gui.show()
"""
HIDDEN_LOOP = LOOP.replace("gravity')", "gravity', show_gui=False)").replace(
    "gui.running", "gui.running and gui.frame < 10"
)


def test_the_classic_program_draws_inline_and_stops_at_interrupt(notebook):
    page = notebook("import tinote as ti\nti.init()", CLASSIC + LOOP, HIDDEN_LOOP + "image = gui.get_image()")
    page.run_cell(0)
    page.run_cell(1)
    page.wait(f"{GUI_PAINTED} > 20")
    canvas = page.canvas(".tinote-gui canvas")
    assert canvas.shape == (512, 512, 4)
    # Eight white discs of radius 3, less what overlaps or lies outside.
    assert 2 * np.pi * 9 < (canvas[:, :, 0] > 128).sum() < 8.8 * np.pi * 9
    page.interrupt()
    page.page.wait_for_selector(".jp-OutputArea-output img")
    page.wait_after_error()
    shown = wait_output(page, 1, "KeyboardInterrupt")
    assert "viz/" not in shown, shown
    frames, moved = numbers(page.python("print(gui.frame, abs(v.to_numpy()).max())"))
    assert frames > 20 and moved > 0
    # Without a display the same loop runs as fast as it can, shows nothing, and its frames can be read.
    page.run_cell(2)
    page.wait_idle()
    poll(lambda: output(page, 2), "")
    assert page.python("print(gui.frame, image.shape, (image[:, :, 0] > 0.5).sum() > 50)") == "10 (512, 512, 4) True"
    assert page.problems == []
