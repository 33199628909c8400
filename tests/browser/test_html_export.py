"""A notebook that was exported as a page, in a browser without a network."""

from __future__ import annotations

import json
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.browser.harness import Lab, new_page
from tests.browser.looks import WIDTHS, Pictures
from tests.browser.waiting import WAIT_SECONDS, poll
from tinote.cli.html_export import OfflineHTMLExporter
from tinote.manual import tutorials


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exported_page_asks_no_other_host(chromium: Any, pictures: Pictures, tmp_path: Path, theme: str) -> None:
    file = tmp_path / "page.html"
    exported, _ = OfflineHTMLExporter(theme=theme).from_filename(str(tutorials() / "02_autodiff_gravity.ipynb"))
    file.write_text(exported, encoding="utf-8")
    page = new_page(chromium, viewport={"width": WIDTHS[0], "height": 1400}, offline=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.goto(file.as_uri())
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 1400})
        # Formulas are laid out as such: a fraction is higher than a line of text, and none is wider than the page.
        read = "(all) => all.map((one) => one.getBoundingClientRect().toJSON())"
        boxes = poll(
            lambda read=read: page.locator("math").evaluate_all(read),
            lambda boxes, width=width: (
                len(boxes) > 10 and all(box["width"] > 2 and box["right"] < width for box in boxes)
            ),
        )
        assert boxes[0]["height"] > 1.5 * min(box["height"] for box in boxes)
        pictures.shot(page, f"exported_{width}_{theme}.png")
    kernel = page.locator(".highlight", has_text="%%kernel").first
    colors = "(all) => new Set(all.map((one) => getComputedStyle(one).color)).size"
    poll(lambda: kernel.locator("span").evaluate_all(colors), lambda count: count > 3)
    loaded = "(all) => all.length && all.every((one) => one.complete && one.naturalWidth)"
    poll(lambda: page.locator("img").evaluate_all(loaded), True)
    assert [url for url in asked if not url.startswith(("data:", file.as_uri()))] == []
    page.context.close()


@pytest.mark.parametrize("name", ["tinote_html", "tinote_page"])
def test_the_menu_of_jupyterlab_exports(lab: Lab, name: str) -> None:
    """What the entries of "Save and Export Notebook As" download."""
    shutil.copyfile(tutorials() / "02_autodiff_gravity.ipynb", lab.folder / "exported.ipynb")
    with urllib.request.urlopen(f"{lab.url}/api/nbconvert", timeout=WAIT_SECONDS) as answer:
        assert name in json.load(answer), "the environment's `tinote` is not that of pyproject.toml: install it anew"
    address = f"{lab.url}/nbconvert/{name}/exported.ipynb?download=true"
    with urllib.request.urlopen(address, timeout=WAIT_SECONDS) as answer:
        assert "exported.html" in answer.headers["Content-Disposition"]
        assert "Gravity whose forces the compiler derives" in answer.read().decode("utf-8")
