"""An error in JupyterLab and in Notebook 7: the view in place of the text, the fold by keyboard, the manual's page."""

from __future__ import annotations

import shutil

import nbformat
import pytest

from tests.browser.harness import BOTH_FRONT_ENDS, wait_ready
from tests.browser.waiting import expect, poll
from tinote.errors import KernelIndexError
from tinote.manual import ERRORS, tutorials
from tinote.viz.notebook.error_view import error_as_html

SETUP = "%load_ext tinote\nimport tinote as ti\nti.init(arch=ti.cpu)\nx = ti.field(ti.f32, shape=8)"
KERNEL = "%%kernel -q\ndef shift(n: ti.i32):\n    for i in x:\n        x[i] = x[i + n]"
VIEW = ".tinote-error-view"
TEXT = '[data-mime-type="application/vnd.jupyter.stderr"], [data-mime-type="application/vnd.jupyter.error"]'


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_the_view_stands_for_the_text_which_stays_in_the_document(notebook):
    opened = notebook(SETUP, KERNEL, "shift(3)")
    opened.run_all()
    opened.page.wait_for_selector(VIEW)
    opened.wait_idle()
    view, text = opened.page.locator(VIEW), opened.page.locator(TEXT)
    expect(view).to_be_visible()
    expect(view).to_contain_text("x[i] = x[i + n]", use_inner_text=True)
    expect(view).to_contain_text("KernelIndexError", use_inner_text=True)
    expect(text).to_have_count(1)
    expect(text).to_be_hidden()
    expect(text).to_contain_text("index 10 is out of bounds")


@pytest.mark.parametrize(**BOTH_FRONT_ENDS)
def test_in_a_notebook_that_is_not_trusted_the_text_is_seen(notebook, lab):
    error = KernelIndexError("index 8 is out of bounds")
    outputs = [
        nbformat.v4.new_output("error", ename="KernelIndexError", evalue=str(error), traceback=[str(error)]),
        nbformat.v4.new_output("display_data", {"text/html": error_as_html(error)}),
    ]
    stored = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("shift(3)", outputs=outputs)])
    stored.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(stored, lab.folder / "stored.ipynb")
    opened = notebook("1")
    path = opened.page.url.removeprefix(lab.url).rpartition("/")[0]  # The front end's own.
    opened.page.goto(f"{lab.url}{path}/stored.ipynb", wait_until="domcontentloaded")
    wait_ready(opened.page)
    text = opened.page.locator(TEXT)
    expect(text).to_be_visible()
    expect(text).to_have_text("index 8 is out of bounds")
    opened.page.locator(VIEW).wait_for(state="attached")
    expect(opened.page.locator(VIEW)).to_be_hidden()


def test_the_way_here_unfolds_by_keyboard_and_the_link_opens_the_section(notebook, lab):
    shutil.copy(tutorials() / ERRORS, lab.folder)
    opened = notebook(SETUP, KERNEL, "shift(3)", width=800)
    opened.run_all()
    opened.page.wait_for_selector(VIEW)
    opened.wait_idle()
    folded = opened.page.locator(f"{VIEW} details pre")
    expect(folded).to_be_hidden()
    opened.page.locator(f"{VIEW} a").focus()
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("Enter")
    expect(folded).to_be_visible()
    expect(folded).to_contain_text("shift(3)")
    # A long line scrolls inside of the view.
    edges = """(folded, view) => [folded, folded.closest(view)].map((node) => node.getBoundingClientRect().right)"""
    poll(lambda: folded.evaluate(edges, VIEW), lambda right: right[0] <= right[1])
    opened.set_theme("JupyterLab Dark")
    brightness = """(view) => [getComputedStyle(view).backgroundColor, getComputedStyle(view).color].map((color) => {
        const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
        context.fillStyle = color;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).reduce((sum, one) => sum + one) / 3;
    })"""
    poll(
        lambda: opened.page.locator(VIEW).evaluate(brightness),
        lambda ground_and_ink: ground_and_ink[0] < 80 and ground_and_ink[1] > 200,
    )
    opened.page.locator(f"{VIEW} a").focus()
    opened.page.keyboard.press("Enter")
    opened.wait(
        """[...document.querySelectorAll('h2')].some((heading) => {
            const { top, height } = heading.getBoundingClientRect();
            return heading.textContent.startsWith('KernelIndexError') && height && top >= 0 && top < innerHeight;
        })"""
    )
