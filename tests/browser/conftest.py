"""A real JupyterLab and a real headless Chromium for tests of the widgets.

`notebook(*cells)` writes a notebook, opens it in the browser with a fresh kernel, and returns a `Page` to drive it.
Chromium is found as `$CHROMIUM` or on the path, in its form without a window if that is there; without it, or without
playwright, the tests are skipped, unless `CI` is set: there a missing browser is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import pytest

from tests.browser.harness import (
    FRONT_ENDS,
    HEADLESS_SHELL,
    WEBGPU_OPTIONS,
    Desk,
    Lab,
    Page,
    new_page,
    running_chromium,
    running_lab,
)
from tests.browser.looks import Pictures

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test of this folder needs the browser, and says so. One that is for both front ends runs in one of them,
    unless `--both-front-ends` is given: half of these tests in each.
    """
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
    left_out = [] if config.getoption("--both-front-ends") else [item for item in items if _is_for_the_other(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _is_for_the_other(item: pytest.Item) -> bool:
    front_end = (
        item.callspec.params.get("notebook")
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else None
    )
    names = sorted(FRONT_ENDS)
    return front_end in names and front_end != names[crc32(item.originalname.encode()) % len(names)]


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and in CI the browser tests must run")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory, shared_code: dict[str, str]) -> Iterator[Lab]:
    """JupyterLab with settings and folders of its own."""
    with running_lab(tmp_path_factory.mktemp("lab"), warm=True, **shared_code) as found:
        yield found


@pytest.fixture(scope="package")
def playwright() -> Iterator[Any]:
    """What drives browsers.

    Not for the whole session: playwright keeps an event loop running in this thread, and tests of other folders run
    loops of their own.
    """
    if sync_playwright is None:
        _missing("playwright")
    if HEADLESS_SHELL is None:
        _missing("chromium")
    with sync_playwright() as found:
        yield found


@pytest.fixture(scope="package")
def chromium(playwright: Any) -> Iterator[Any]:
    """A headless Chromium."""
    with running_chromium(playwright, program=HEADLESS_SHELL) as browser:
        yield browser


@pytest.fixture(scope="module")
def chromium_with_gpu(playwright: Any) -> Iterator[Any]:
    """A headless Chromium that has WebGPU, which a CPU stands in for."""
    with running_chromium(playwright, *WEBGPU_OPTIONS, program=HEADLESS_SHELL) as browser:
        yield browser


@pytest.fixture(scope="package")
def desk(lab: Lab, chromium: Any) -> Desk:
    """Where the notebooks of all tests are opened."""
    return Desk(lab, chromium)


@pytest.fixture(scope="package")
def reader(chromium: Any) -> Iterator[Any]:
    """A browser in which no notebook was written, for those that are opened again: loading JupyterLab takes long, and
    from the second page on it has that in its cache.
    """
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    yield context
    context.close()


@pytest.fixture
def notebook(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`notebook(*cells, width=1280, height=900)`: a notebook of these code cells, open in the browser, not run yet.

    In JupyterLab, and where a test is parametrised by `BOTH_FRONT_ENDS`, in Notebook 7 as well.
    """
    opened: list[Page] = []
    front_end = getattr(request, "param", "lab")

    def open_one(*cells: str, width: int = 1280, height: int = 900) -> Page:
        name = f"{request.node.name.replace('[', '_').replace(']', '')}_{len(opened)}.ipynb"
        found = desk.open(name, cells, width, height, front_end)
        opened.append(found)
        return found

    yield open_one
    for found in opened:
        desk.close(found, front_end)


@pytest.fixture(scope="package")
def pictures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pictures:
    """Takes pictures, into the folder that `--pictures` names; without the option only of what cannot be read."""
    chosen = request.config.getoption("--pictures")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return Pictures(folder, wanted=chosen is not None)


@pytest.fixture
def standalone(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`standalone(view)`: its page, opened from disk. `problems` collects errors, and what it asked a network."""
    pages = []

    def open_page(view: Any, **options: Any) -> Any:
        page = new_page(chromium, **{"viewport": {"width": 1280, "height": 860}, **options})
        pages.append(page)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.on(
            "request", lambda request: None if request.url.startswith("file:") else page.problems.append(request.url)
        )
        page.goto(view.save(tmp_path / "page.html").as_uri())
        page.wait_for_selector("main[data-shown]")
        return page

    yield open_page
    for page in pages:
        page.context.close()
