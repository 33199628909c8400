"""A real JupyterLab and a real headless Chromium for tests of the widgets.

`notebook(*cells)` writes a notebook, opens it in the browser with a fresh kernel, and returns a `Page` to drive it.
Chromium is found as `$CHROMIUM` or on the path; without it, or without playwright, the tests are skipped, unless `CI`
is set: there a missing browser is a failure.
"""

from __future__ import annotations

import base64
import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import nbformat
import numpy as np
import pytest
from PIL import Image

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

REPOSITORY = Path(__file__).parents[2]
HERE = Path(__file__).parent

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

CHROMIUM_OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # An unwatched page must go on painting.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
]

SETTINGS = {
    # JupyterLab's server keeps what a page has chosen, for the pages of later tests too.
    "apputils-extension/themes": '{"theme": "JupyterLab Light"}',
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}',
    # Otherwise cells that are scrolled away are taken off the page.
    "notebook-extension/tracker": '{"windowingMode": "none"}',
}

START_SECONDS = 60.0

# Two frames: an element that is scrolled in one is told so in the next one, and draws then what has come in sight.
FRAMES = """async () => {
    for (let turn = 0; turn < 2; turn += 1) await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
}"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder needs the browser, and says so."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass
class Lab:
    """A running JupyterLab: its address, the folder that it shows, and that of its settings."""

    url: str
    folder: Path
    settings: Path

    def reset_settings(self) -> None:
        """Take back what earlier pages have changed, such as the theme."""
        for name, text in SETTINGS.items():
            path = self.settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and in CI the browser tests must run")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab with settings and folders of its own."""
    root = tmp_path_factory.mktemp("lab")
    folder = root / "notebooks"
    folder.mkdir()
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(root / "config/settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "IPYTHONDIR": str(root / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])),
    }
    environment.pop("TINOTE_HEADLESS", None)
    environment.pop("TINOTE_GUI_FRAMES", None)
    port = _free_port()
    found = Lab(f"http://127.0.0.1:{port}", folder, root / "config/settings")
    found.reset_settings()
    options = [
        "--allow-root",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--ServerApp.password=",
        "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
    ]
    log = root / "lab.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, stdout=output, stderr=output
        )
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{found.url}/api/status", timeout=1).close()
                break
            assert server.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.2)
        yield found
    finally:
        server.terminate()
        server.wait(15)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium, driven by playwright.

    Not for the whole session: playwright keeps an event loop running in this thread, and tests of other folders run
    loops of their own.
    """
    if sync_playwright is None:
        _missing("playwright")
    if CHROMIUM is None:
        _missing("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, headless=True)
        yield browser
        browser.close()


@dataclass
class Page:
    """A notebook that is open in JupyterLab. `page` is playwright's; `problems` collects what the browser's console
    reported.
    """

    page: Any
    problems: list[str] = field(default_factory=list)

    def run_all(self) -> None:
        """Start all cells; does not wait for them."""
        self.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")

    def python(self, code: str) -> str:
        """Run `code` in the notebook's kernel; what it printed, or the traceback's last lines."""
        return self.page.evaluate(
            """async (code) => {
                const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                const future = kernel.requestExecute({ code, store_history: false, stop_on_error: false });
                let text = '';
                future.onIOPub = (message) => {
                    if (message.header.msg_type === 'stream') text += message.content.text;
                    if (message.header.msg_type === 'error') text += message.content.traceback.join('\\n');
                };
                await future.done;
                return text.trim();
            }""",
            code,
        )

    def settled_steps(self) -> int:
        """The steps that the kernel's `view` has made, once what its buttons asked for has been done: it says "paused"
        while the step under way is still being made.
        """
        waiting = "import asyncio\nwhile view._background:\n    await asyncio.sleep(0.01)\n"
        return int(self.python(waiting + "print(view.steps)"))

    def interrupt(self) -> None:
        """Interrupt the kernel, as the button in the toolbar does."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()")

    def wait_idle(self, seconds: float = 30.0) -> None:
        """Wait until no cell runs and none waits."""
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-InputPrompt')];
                const busy = prompts.some((prompt) => prompt.textContent.includes('*'));
                return !busy && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle';
            }""",
            timeout=seconds * 1000,
        )

    def reload(self) -> None:
        """Save the notebook and load the page again."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        self.page.wait_for_timeout(500)
        self.page.reload(wait_until="domcontentloaded")
        wait_ready(self.page)

    def set_theme(self, name: str) -> None:
        """Change JupyterLab's theme: "JupyterLab Dark" or "JupyterLab Light"."""
        self.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeName === '{name}'")
        self.page.wait_for_timeout(500)

    def next_frame(self) -> None:
        """Wait until what the page has been told is painted, and what is drawn when it scrolls for that."""
        self.page.evaluate(FRAMES)

    def pixels(self, selector: str) -> np.ndarray:
        """What is painted at the first element that matches, as a screenshot: (height, width, 3), int. The page is
        scrolled there first, and has painted that.
        """
        found = self.page.locator(selector).first
        found.scroll_into_view_if_needed()
        self.next_frame()
        shot = found.screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    def canvas(self, selector: str) -> np.ndarray:
        """What a canvas holds, exactly, whatever lies over it or beside it: (height, width, 4), int."""
        url = self.page.locator(selector).first.evaluate("(canvas) => canvas.toDataURL('image/png')")
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGBA")).astype(int)

    def wait(self, condition: str, seconds: float = 30.0) -> None:
        """Wait until the JavaScript expression `condition` holds in the page."""
        self.page.wait_for_function(f"() => {condition}", timeout=seconds * 1000)


def wait_ready(page: Any) -> None:
    """Wait until the notebook is shown and its kernel is idle."""
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook", timeout=START_SECONDS * 1000)
    page.wait_for_function(
        """async () => {
            const widget = window.jupyterapp?.shell.currentWidget;
            if (!widget?.sessionContext) return false;
            await widget.sessionContext.ready;
            return widget.sessionContext.session?.kernel?.status === 'idle';
        }""",
        timeout=START_SECONDS * 1000,
    )


@pytest.fixture
def notebook(lab: Lab, chromium: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`notebook(*cells, width=1280, height=900)`: a notebook of these code cells, open in the browser, not run yet."""
    opened: list[Page] = []

    def open_notebook(*cells: str, width: int = 1280, height: int = 900) -> Page:
        name = f"{request.node.name.replace('[', '_').replace(']', '')}_{len(opened)}.ipynb"
        content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        content.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(content, lab.folder / name)
        lab.reset_settings()
        page = chromium.new_context(viewport={"width": width, "height": height}).new_page()
        found = Page(page)
        page.on("pageerror", lambda error: found.problems.append(str(error)))
        page.on("console", lambda message: found.problems.append(message.text) if message.type == "error" else None)
        page.goto(f"{lab.url}/lab/workspaces/auto-t/tree/{name}?reset", wait_until="domcontentloaded")
        wait_ready(page)
        opened.append(found)
        return found

    yield open_notebook
    for found in opened:
        with contextlib.suppress(Exception):
            found.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        found.page.context.close()


@pytest.fixture
def standalone(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`standalone(explorer)`: its page, opened from disk. `problems` collects errors, and what it asked a network."""
    contexts = []

    def open_page(explorer: Any, **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        contexts.append(context)
        page = context.new_page()
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.on(
            "request", lambda request: None if request.url.startswith("file:") else page.problems.append(request.url)
        )
        page.goto(explorer.save(tmp_path / "explorer.html").as_uri())
        page.wait_for_function("() => Number(document.querySelector('.tinote-explorer')?.dataset.painted ?? 0) >= 1")
        return page

    yield open_page
    for context in contexts:
        context.close()
