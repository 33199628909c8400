"""A compilation that takes long, in a notebook: a bar that names its step, and nothing of it afterwards."""

from __future__ import annotations

from tests.browser.waiting import expect, poll

CELL = """
%load_ext tinote
import os, time
from tinote.compiler import waiting
waiting.DELAY_SECONDS = 0.0
with waiting.compilation("potential, gradient") as enter:
    enter("LLVM optimises")
    while not os.path.exists("go_on"):
        time.sleep(0.02)
"""

OUTPUTS = "() => window.jupyterapp.shell.currentWidget.content.model.cells.get(0).outputs.toJSON()"


def test_the_bar_names_the_step_and_goes_away(notebook, lab):
    flag = lab.folder / "go_on"
    flag.unlink(missing_ok=True)
    opened = notebook(CELL)
    opened.run_all()
    bar = opened.page.get_by_text("compiling potential, gradient: LLVM optimises")
    bar.wait_for(state="visible")
    expect(opened.page.locator(".jp-OutputArea .widget-hprogress, .jp-OutputArea [role=progressbar]")).to_be_hidden()
    flag.touch()
    opened.wait_idle()
    bar.wait_for(state="detached")
    expect(opened.page.locator(".jp-OutputArea")).to_have_text("")
    # A notebook that is saved now and opened again would look in vain for the bar's widget.
    poll(lambda: [output["data"] for output in opened.page.evaluate(OUTPUTS)], [{"text/html": ""}])
    assert not opened.problems
