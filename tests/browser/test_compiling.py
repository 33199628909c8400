"""A compilation that takes long, in a notebook: a bar that names its step, and nothing of it afterwards."""

from __future__ import annotations

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


def test_the_bar_names_the_step_and_goes_away(notebook, lab):
    flag = lab.folder / "go_on"
    flag.unlink(missing_ok=True)
    opened = notebook(CELL)
    opened.run_all()
    bar = opened.page.get_by_text("compiling potential, gradient: LLVM optimises")
    bar.wait_for(state="visible")
    assert not opened.page.locator(".jp-OutputArea .widget-hprogress, .jp-OutputArea [role=progressbar]").is_visible()
    flag.touch()
    opened.wait_idle()
    bar.wait_for(state="detached")
    assert opened.page.locator(".jp-OutputArea").inner_text().strip() == ""
    assert not opened.problems
