"""A real JupyterLab and a real headless Chromium, for tests and for measurements of the widgets.

Chromium is found as `$CHROMIUM` or on the path.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from PIL import Image

REPOSITORY = Path(__file__).parents[2]

LAB = "lab/workspaces/auto-t/tree/{name}?reset"
NOTEBOOK = "notebooks/{name}"
"""Where the two front ends show a notebook; one server has both."""

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


@contextlib.contextmanager
def running_lab(root: Path) -> Iterator[Lab]:
    """JupyterLab and Notebook 7 on one server, with settings and folders of their own in `root`."""
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
        "--JupyterNotebookApp.expose_app_in_browser=True",
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


@contextlib.contextmanager
def running_chromium(playwright: Any) -> Iterator[Any]:
    """A headless Chromium, driven by playwright."""
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, headless=True)
    try:
        yield browser
    finally:
        browser.close()


@dataclass
class Page:
    """A notebook that is open in a front end. `page` is playwright's; `problems` collects what the browser's console
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


def open_notebook(
    lab: Lab, chromium: Any, name: str, cells: Sequence[str], width: int = 1280, height: int = 900, front_end: str = LAB
) -> Page:
    """A notebook of these code cells, open in the browser with a fresh kernel, not run yet."""
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    content.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(content, lab.folder / name)
    lab.reset_settings()
    page = chromium.new_context(viewport={"width": width, "height": height}).new_page()
    found = Page(page)
    page.on("pageerror", lambda error: found.problems.append(str(error)))
    page.on("console", lambda message: found.problems.append(message.text) if message.type == "error" else None)
    page.goto(f"{lab.url}/{front_end.format(name=name)}", wait_until="domcontentloaded")
    wait_ready(page)
    return found
