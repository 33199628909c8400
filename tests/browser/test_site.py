"""The manual on the web: it is built without a warning, and every page of it works in a browser that has no network.

The tutorials that have live views are executed, one of which has an explorer, too; the others keep the outputs that are
stored in them, unless `--whole-site` is given.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
from manual.sources import write_versions

import tinote as ti
from tests.browser.harness import REPOSITORY, new_page
from tests.browser.looks import LEAST_CONTRAST, READ, THEMES, Pictures
from tests.browser.tutorial_views import live_views
from tests.browser.waiting import expect, poll
from tests.test_public_names import NAMES
from tests.test_tutorials import execute

pytest.importorskip("sphinx") if not os.environ.get("CI") else None

VIEWS = live_views()
EXPLORED = "02_autodiff_gravity"
EMPTY = {"genindex", "py-modindex", "search"}
LOOKS = ((390, 844), (1280, 900), (1920, 1080))

# Whether nothing of the page is wider than the window.
FITS = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    shared_folder: Path,
    shared_code: dict[str, str],
) -> Path:
    """The folder of the site. With `--whole-site` the tutorials are executed by what is published then."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    if not request.config.getoption("--whole-site"):
        for name in VIEWS:
            execute(f"{name}.ipynb", shared_folder / "tutorials", shared_code)
        command += ["-D", f"tutorials_run={','.join(VIEWS)}", "-D", f"tutorials_cache={shared_folder / 'tutorials'}"]
    command += [str(REPOSITORY / "docs"), str(folder / "html")]
    environment = {**os.environ, **shared_code}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder / "html"


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page without a network; `problems` collects errors, and what it asked for elsewhere."""
    found = new_page(chromium, viewport={"width": 1280, "height": 900}, offline=True)
    found.problems = []
    found.on("pageerror", lambda error: found.problems.append(str(error)))
    found.on("console", lambda said: found.problems.append(said.text) if said.type == "error" else None)
    found.on("request", lambda request: _note(found, request.url))
    found.on("requestfailed", lambda request: found.problems.append(f"failed: {request.url}"))
    yield found
    found.context.close()


def _note(page: Any, url: str) -> None:
    if not url.startswith(("file:", "blob:", "data:")):
        page.problems.append(url)


def pages_of(site: Path) -> list[Path]:
    """The pages of the site, without those that stand in frames."""
    return [file for file in sorted(site.rglob("*.html")) if file.parent.name not in {"views", "_static"}]


def opened_pages(site: Path) -> list[Path]:
    """Those that are looked at in a browser: of the listings of source code, which have one form, only the one with the
    longest name in each folder, because what they load is named from there.
    """
    pages = pages_of(site)
    listings = [file for file in pages if site / "_modules" in file.parents]
    longest = {file.parent: file for file in sorted(listings, key=lambda file: len(file.name))}.values()
    return [file for file in pages if file not in listings or file in longest]


def advance(view: Any) -> None:
    """Let the live view in a frame run for some steps; some run from the start, as their address says."""
    if "#play" not in view.locator("html").evaluate("(html) => html.ownerDocument.location.hash"):
        expect(view.locator(".tinote-view")).to_have_attribute("data-step", "0")
        view.get_by_role("button", name="Play").click()
    poll(lambda: int(view.locator(".tinote-view").get_attribute("data-step") or 0), lambda step: step > 0)
    view.get_by_role("button", name="Pause").click()
    expect(view.locator(".tinote-view")).to_have_attribute("data-state", "paused")
    row = view.locator(".tinote-timeline")
    row.get_by_role("slider").press("Home")
    expect(view.locator(".tinote-timeline-text")).to_contain_text("ago")


def test_every_page_works(site: Path, page: Any) -> None:
    live, high = Counter[Path](), Counter[Path]()
    files = opened_pages(site)
    assert len(files) > 100 and {file.parent for file in files} == {file.parent for file in pages_of(site)}
    for file in files:
        page.goto(file.as_uri())
        expect(page.locator("h1").first).to_be_visible()
        poll(lambda: page.evaluate(FITS), True)
        text = file.read_text("utf-8")
        for number in range(text.count("<iframe ")):
            frame = page.locator("iframe").nth(number)
            frame.scroll_into_view_if_needed()
            inner = frame.content_frame
            if "is-live" in text.split("<iframe ")[number].rpartition("<figure ")[2]:
                live[file] += 1
                advance(inner)
            else:
                high[file] += 1
                expect(inner.locator("main .frame").first).to_be_visible()
        assert page.problems == [], file.name
    tutorials = {file.stem: count for file, count in live.items() if file.parent.name == "tutorials"}
    assert tutorials == VIEWS and high[site / "tutorials" / f"{EXPLORED}.html"] >= 1
    shown = {file.stem for file in live if file.parent.name == "gallery"}
    examples = {file.stem: "def view(" in file.read_text("utf-8") for file in (REPOSITORY / "examples").glob("*.py")}
    assert shown == {name for name, has_view in examples.items() if has_view}
    for name in shown:
        assert f'/gallery-{name}.html#play"' in (site / "gallery" / f"{name}.html").read_text("utf-8"), name


def test_the_gallery_says_which_examples_have_no_view(site: Path, page: Any) -> None:
    page.goto((site / "gallery" / "index.html").as_uri())
    without = [file for file in (REPOSITORY / "examples").glob("*.py") if "def view(" not in file.read_text("utf-8")]
    for file in without:
        expect(page.locator("li", has_text=f"examples/{file.name}: ")).to_contain_text("No view: ")
    expect(page.locator("li", has_text="No view: ")).to_have_count(len(without))
    assert page.problems == []


def test_no_page_names_a_script_of_another_host(site: Path) -> None:
    for file in pages_of(site):
        text = file.read_text("utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(https?:[^\"]*)", text)
        assert [one for one in loaded if "schema.org" not in one] == [], file.name
        assert "$$" not in re.sub(r"<pre.*?</pre>|<code.*?</code>", "", text, flags=re.DOTALL), file.name


def test_the_reference_has_every_name(site: Path) -> None:
    text = "".join(file.read_text("utf-8") for file in (site / "reference").glob("*.html"))
    there = set(re.findall(r'\bid="(ti\.[\w.]+)"', text))
    modules = {"ti.ad", "ti.algorithms", "ti.graph", "ti.linalg", "ti.math", "ti.tools", "ti.types"}
    assert {one.id for one in NAMES} - there <= modules


def test_frames_take_the_theme_and_their_height(site: Path, page: Any, pictures: Pictures) -> None:
    page.goto((site / "gallery" / "life.html").as_uri())
    frame = page.locator("iframe").first
    inner = frame.content_frame
    poll(lambda: int(inner.locator(".tinote-view").get_attribute("data-step") or 0), lambda step: step > 0)
    for theme, color in (("dark", "rgb(20, 23, 27)"), ("light", "rgb(255, 255, 255)")):
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        expect(inner.locator("body")).to_have_css("background-color", color)
    body = inner.locator("body")
    for width, height in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        poll(lambda: frame.bounding_box()["height"] - body.bounding_box()["height"], lambda gap: abs(gap) <= 1)
        pictures.shot(page, f"site_{width}.png")
    assert page.problems == []


def test_code_and_outputs_can_be_read_in_both_themes(site: Path, page: Any) -> None:
    for name in ("faq", "language/loops", *[f"tutorials/{one}" for one in VIEWS]):
        page.goto((site / f"{name}.html").as_uri())
        for theme in THEMES:
            page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
            count, faults = page.evaluate(READ, [".bd-article :is(.highlight, .cell_output)", LEAST_CONTRAST])
            assert count > 100 and [fault for fault in faults if fault[0].startswith("contrast")] == [], (name, theme)


def test_the_pages_have_an_icon_for_both_themes(site: Path, page: Any) -> None:
    icon = (site / "_static" / "favicon.svg").read_text("utf-8")
    assert "prefers-color-scheme: dark" in icon
    for file in pages_of(site):
        assert re.search(r'<link rel="icon" href="[./]*_static/favicon\.svg', file.read_text("utf-8")), file.name


def test_a_site_of_one_version_shows_it(site: Path, page: Any) -> None:
    assert json.loads((site / "versions.json").read_text("utf-8")) == [{"version": ti.__version__, "url": "./"}]
    page.goto((site / "faq.html").as_uri())
    expect(page.locator(".tinote-version").first).to_have_text(ti.__version__)
    assert page.problems == []


def test_pages_lead_to_the_same_page_of_other_versions(site: Path, chromium: Any, tmp_path: Path) -> None:
    for file in site.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / ti.__version__).symlink_to(site)  # an older version stands in a folder of its name
    (tmp_path / "versions.json").unlink()
    write_versions(Namespace(outdir=tmp_path, config=Namespace(release="9.10.0")), None)
    page = new_page(chromium)
    with served(tmp_path) as address:
        page.goto(f"{address}/{ti.__version__}/how_to/debug_nan.html")
        chooser = page.get_by_label("Version of tinote").first
        expect(chooser.locator("option")).to_have_text(["9.10.0", ti.__version__])
        expect(chooser.locator("option:checked")).to_have_text(ti.__version__)
        chooser.select_option("9.10.0")
        expect(page).to_have_url(f"{address}/how_to/debug_nan.html")
    page.context.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of these files."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
