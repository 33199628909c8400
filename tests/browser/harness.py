"""A real JupyterLab and a real headless Chromium, for tests and for measurements of the widgets.

Chromium is found as `$CHROMIUM` or on the path, and so is its form without a window, which draws pages for less.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from PIL import Image

from tests.browser.waiting import POLL_SECONDS, WAIT_SECONDS, poll, still_box
from tinote.cli.lab import EXTENSIONS

REPOSITORY = Path(__file__).parents[2]

FRONT_ENDS = {"lab": "lab/workspaces/auto-t/tree/{name}?reset", "notebook": "notebooks/{name}"}
"""Where JupyterLab and Notebook 7 show a notebook; one server has both."""

BOTH_FRONT_ENDS = {"argnames": "notebook", "argvalues": list(FRONT_ENDS), "indirect": True}
"""A test that runs in both: `@pytest.mark.parametrize(**BOTH_FRONT_ENDS)`."""

OWN_PROBLEMS = (
    "reading 'schema'",
    "Command 'filebrowser:open-path' not registered",
    "reading 'processLuminoMessage'",
)
"""What the front ends report of themselves: Notebook 7 the first two when it opens any notebook, ipywidgets the last
when a widget is removed before its layout has arrived.
"""

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

HEADLESS_SHELL = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or CHROMIUM
"""The same browser without the window that Chromium has even where there is no screen: a notebook that is opened, and
whose view plays, takes a quarter less of processor time. Where it is not installed, Chromium itself.
"""

CHROMIUM_OPTIONS = [
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

# WebGPU where there is no GPU.
WEBGPU_OPTIONS = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan"]

SETTINGS = {
    # JupyterLab's server keeps what a page has chosen, for the pages of later tests too.
    "apputils-extension/themes": '{"theme": "JupyterLab Light"}',
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false, "doNotDisturbMode": true}',
    # Otherwise cells that are scrolled away are taken off the page.
    "notebook-extension/tracker": '{"windowingMode": "none"}',
}

# A launcher opens whenever the last notebook was closed, at a time of its own, and may come to lie over the next one.
# The others are for files and panels that no test opens; without them a page costs a seventh less to load.
UNUSED = (
    *("launcher", "audio", "csvviewer", "debugger", "extensionmanager", "help", "htmlviewer", "hub", "imageviewer"),
    *("inspector", "logconsole", "mermaid", "pluginmanager", "running", "settingeditor", "video"),
    "workspaces",
)
PAGE_CONFIG = {"disabledExtensions": {f"@jupyterlab/{name}-extension": True for name in UNUSED}}

SERVE = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyterlab.labapp import main; sys.exit(main())"
"""`python -m jupyterlab`, but for parsers of web addresses: see `tests/conftest.py`."""

SERVE_WARM = "from tests.browser.warm_kernels import main; main()"
"""The same with kernels that have imported already what they need."""

START_SECONDS = 240.0
"""As patient as `WAIT_SECONDS`, for what has to be loaded first."""

# Whether the option that the focused list names as its active one is selected.
ACTIVE_IS_SELECTED = """() =>
    document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.ariaSelected === 'true'
"""

# Two frames: an element that is scrolled in one is notified in the next one, and draws then what has come in sight.
FRAMES = """async () => {
    for (let turn = 0; turn < 2; turn += 1) await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
}"""


# Start a command that runs cells; `cellsUnderWay` counts those that have not ended.
RUN = """(command) => {
    window.cellsUnderWay = (window.cellsUnderWay ?? 0) + 1;
    window.jupyterapp.commands.execute(command).finally(() => { window.cellsUnderWay -= 1 });
}"""

# Press a key on the stages of an explorer and measure, in ms, until the browser has painted what came of it.
TIMED_KEY = """async ([index, key]) => {
    const root = document.querySelectorAll('.tinote-explorer')[index];
    const before = root.dataset.painted;
    const stages = root.querySelector('[role=listbox]');
    stages.focus();
    const start = performance.now();
    stages.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    while (root.dataset.painted === before) await new Promise((go) => requestAnimationFrame(go));
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
    return performance.now() - start;
}"""

# Whether the page is dark, if all views of this project that it shows say the same; otherwise nothing.
DARKNESS = """() => {
    const wanted = document.body.dataset.jpThemeLight === 'false';
    const views = [...document.querySelectorAll('.tinote-view, .tinote-explorer, .tinote-rules')];
    const dark = (view) => view.classList.contains('tinote-dark') || view.classList.contains('is-dark');
    return views.every((view) => dark(view) === wanted) ? wanted : undefined;
}"""


@dataclass
class Lab:
    """A running JupyterLab: its address, the folder that it shows, and that of its settings."""

    url: str
    folder: Path
    settings: Path

    def reset_settings(self) -> None:
        """The settings that pages begin with: what an earlier one has changed, such as the theme, is taken back."""
        for name, text in SETTINGS.items():
            path = self.settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def _address(runtime: Path, process: int) -> str:
    """The address that the server `process` says it listens at; `OSError` or `ValueError` while it does not."""
    url = json.loads((runtime / f"jpserver-{process}.json").read_text())["url"].rstrip("/")
    urllib.request.urlopen(f"{url}/api/status", timeout=10).close()
    return url


def _free_port() -> int:
    """A port that the system gives to nobody else for a while."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running_lab(root: Path, *, warm: bool = False, **variables: str) -> Iterator[Lab]:
    """JupyterLab and Notebook 7 on one server, with settings and folders of their own in `root`, and with these
    environment variables. `warm`: its kernels are forked from a process that has imported what they need.
    """
    folder, settings, runtime = root / "notebooks", root / "config/settings", root / "runtime"
    folder.mkdir()
    page_config = root / "config/labconfig/page_config.json"
    page_config.parent.mkdir(parents=True)
    page_config.write_text(json.dumps(PAGE_CONFIG))
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / "workspaces"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "IPYTHONDIR": str(root / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])),
        **variables,
    }
    environment.pop("TINOTE_HEADLESS", None)
    environment.pop("TINOTE_GUI_FRAMES", None)
    options = [
        "--allow-root",
        "--no-browser",
        "--ip=127.0.0.1",
        # Servers of several workers that look for a port at the same time would find the same one.
        f"--ServerApp.port={_free_port()}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--ServerApp.password=",
        "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
        # It would start npm and look for servers of languages.
        "--LanguageServerManager.autodetect=False",
        *(f"--{app}.extra_labextensions_path={EXTENSIONS}" for app in ("LabApp", "JupyterNotebookApp")),
    ]
    log = root / "lab.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVE_WARM if warm else SERVE, *options],
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError, ValueError):
                found = Lab(_address(runtime, server.pid), folder, settings)
                break
            assert server.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.2)
        yield found
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()


@contextlib.contextmanager
def running_chromium(playwright: Any, *options: str, program: str | None = CHROMIUM) -> Iterator[Any]:
    """A headless Chromium, driven by playwright, with these options besides those of all."""
    whole = [] if program and program.endswith("headless-shell") else ["--headless=new"]
    browser = playwright.chromium.launch(
        executable_path=program,
        args=[*whole, *CHROMIUM_OPTIONS, *options],
        headless=True,
        timeout=START_SECONDS * 1000,
    )
    try:
        yield browser
    finally:
        browser.close()


@dataclass
class Page:
    """A notebook that is open in a front end. `page` is playwright's, `name` the notebook's in its folder; `problems`
    collects what the browser's console reported.
    """

    page: Any
    name: str
    problems: list[str] = field(default_factory=list)

    def note_error(self, error: Any) -> None:
        """Called by the browser with an error that nothing in the page has caught."""
        if not any(part in str(error) for part in OWN_PROBLEMS):
            self.problems.append(getattr(error, "stack", None) or str(error))  # whose fault it is

    def note_message(self, message: Any) -> None:
        """Called by the browser with what the page writes to the console."""
        if message.type == "error":
            self.note_error(message.text)

    def run_all(self) -> None:
        """Start all cells; does not wait for them."""
        self.page.evaluate(RUN, "notebook:run-all-cells")

    def run_cell(self, index: int) -> None:
        """Start one cell, as Shift+Enter in it does; does not wait for it."""
        self.page.evaluate(
            "(index) => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = index }", index
        )
        self.page.evaluate(RUN, "notebook:run-cell")

    def python(self, code: str, seconds: float = WAIT_SECONDS) -> str:
        """Run `code` in the notebook's kernel; what it printed, or the traceback's last lines."""
        return self.page.evaluate(
            """async ([code, seconds]) => {
                const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                const future = kernel.requestExecute({ code, store_history: false, stop_on_error: false });
                let text = '';
                future.onIOPub = (message) => {
                    if (message.header.msg_type === 'stream') text += message.content.text;
                    if (message.header.msg_type === 'error') text += message.content.traceback.join('\\n');
                };
                const late = new Promise((_, reject) =>
                    setTimeout(() => reject(new Error(`no answer from the kernel to: ${code}`)), 1000 * seconds));
                await Promise.race([future.done, late]);
                return text.trim();
            }""",
            [code, seconds],
        )

    def until(self, condition: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the Python expression `condition` holds in the kernel, between messages: what the page sends may
        come on another thread, and later than what is run afterwards.
        """
        end = time.monotonic() + seconds
        while (answer := self.python(f"print(bool({condition}))")) != "True":
            assert answer == "False" and time.monotonic() < end, f"{condition}: {answer}"
            self.page.wait_for_timeout(1000 * POLL_SECONDS)

    def eventually(self, condition: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Look at the page until `condition()` holds."""
        poll(condition, bool, seconds)

    def settle(self) -> int:
        """Wait until what the buttons of the kernel's `view` asked for has been done and is painted. The steps that it
        has made. It does not play: it says "paused" while the step under way is still being made.
        """
        self.until("not view.playback.background")
        steps, frame = self.python("print(view.steps, view.credits.sent)").split()
        self.wait(f"Number(document.querySelector('.tinote-view').dataset.frame) === {frame}")
        return int(steps)

    def interrupt(self) -> None:
        """Interrupt the kernel, as the button in the toolbar does."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()")

    def restart(self) -> None:
        """Restart the kernel, as the button in the toolbar does once that has been confirmed."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
        wait_ready(self.page)

    def wait_idle(self, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the cells that were started have ended, and their outputs are there."""
        self.page.wait_for_function(
            """() => !window.cellsUnderWay
                && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'""",
            timeout=seconds * 1000,
        )

    def wait_after_error(self) -> None:
        """The same where a cell has ended with an error: until the kernel has looked at what was sent before, it
        refuses further cells, also when it says that it is idle.
        """
        self.wait_idle()
        self.eventually(lambda: self.python("print('answers')") == "answers")

    def reload(self) -> None:
        """Save the notebook and load the page again."""
        self.page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save') }")
        self.page.reload(wait_until="domcontentloaded")
        wait_ready(self.page)

    def close(self) -> None:
        """Shut the kernel down and close the page."""
        with contextlib.suppress(Exception):
            self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()

    def set_theme(self, name: str) -> None:
        """Change the front end's theme: "JupyterLab Dark" or "JupyterLab Light". Waits until the views follow."""
        self.page.evaluate(
            "(theme) => { window.jupyterapp.commands.execute('apputils:change-theme', { theme }) }", name
        )
        self.wait(f"document.body.dataset.jpThemeName === '{name}'")
        self.wait(f"({DARKNESS})() === {str('Dark' in name).lower()}")
        self.next_frame()

    def next_frame(self) -> None:
        """Wait until what the page has been sent is painted, and what is drawn when it scrolls for that."""
        self.page.evaluate(FRAMES)

    def drag(self, selector: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press on the first element that matches at a place, as fractions from its bottom left, and let go at another
        one.
        """
        found = self.page.locator(selector).first
        found.scroll_into_view_if_needed()
        box = still_box(found)
        places = [
            (box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"]) for across, up in (start, end)
        ]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        self.page.mouse.move(*places[1], steps=8)
        self.page.mouse.up()

    def pixels(self, selector: str) -> np.ndarray:
        """What is painted at the first element that matches, as a screenshot: (height, width, 3), int. The page is
        scrolled there first, and has painted that.
        """
        found = self.page.locator(selector).first
        found.scroll_into_view_if_needed()
        found.evaluate("async (node) => { if (node instanceof HTMLImageElement) await node.decode() }")
        self.next_frame()
        shot = found.screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    def canvas(self, selector: str) -> np.ndarray:
        """What a canvas holds, exactly, whatever lies over it or next to it: (height, width, 4), int."""
        url = self.page.locator(selector).first.evaluate("(canvas) => canvas.toDataURL('image/png')")
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGBA")).astype(int)

    def wait(self, condition: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the JavaScript expression `condition` holds in the page."""
        self.page.wait_for_function(f"() => {condition}", timeout=seconds * 1000)


def wait_ready(page: Any, name: str | None = None) -> None:
    """Wait until the notebook (the one of this name) is shown, its kernel is idle, and the front end can show widgets:
    before, it refuses what the kernel tells it of them, for good.
    """
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook", timeout=START_SECONDS * 1000)
    page.wait_for_function(
        """async (name) => {
            const app = window.jupyterapp;
            const panel = app?.shell.currentWidget;
            const context = panel?.sessionContext;
            if (!context || !app.isPluginActivated('anywidget:plugin')) return false;
            if (name !== null && panel.context.path !== name) return false;
            await context.ready;
            const kernel = context.session?.kernel;
            return kernel?.status === 'idle' && 'jupyter.widget' in kernel._targetRegistry;
        }""",
        arg=name,
        timeout=START_SECONDS * 1000,
    )


def new_page(chromium: Any, **options: Any) -> Any:
    """A page of playwright's in a browser context of its own, with these options."""
    return patient(chromium.new_context(**options).new_page())


def patient(page: Any) -> Any:
    """The page, which waits as long as a busy machine may take, and is not painted for that."""
    page.wait_for_function = partial(page.wait_for_function, polling=1000 * POLL_SECONDS)
    page.set_default_timeout(WAIT_SECONDS * 1000)
    page.set_default_navigation_timeout(START_SECONDS * 1000)
    return page


# Open a notebook in a JupyterLab that is loaded, and close whatever else it shows.
OPEN = """async (path) => {
    const { shell, commands } = window.jupyterapp;
    window.cellsUnderWay = 0;
    const opened = await commands.execute('docmanager:open', { path });
    for (const other of [...shell.widgets('main')].filter((widget) => widget !== opened)) other.dispose();
    shell.activateById(opened.id);
}"""

# End the kernels of all notebooks, and close the notebooks as they are.
CLOSE = """async () => {
    const { shell, restored } = window.jupyterapp;
    await restored;
    for (const widget of [...shell.widgets('main')]) {
        await widget.sessionContext?.shutdown();
        if (widget.context) widget.context.model.dirty = false;
        widget.dispose();
    }
}"""

# Whether JupyterLab is as it was when it was loaded: light, and with nothing that waits for an answer. One that a test
# has loaded, at the address of a notebook, may open that again late.
AS_LOADED = """window.fromDesk && document.body.dataset.jpThemeName === 'JupyterLab Light'
    && !document.querySelector('.jp-Dialog')"""


class Desk:
    """Where notebooks are opened, one after another, in pages of one browser context, which keeps what they have
    loaded. Loading JupyterLab takes longer than most tests: its page stays, and is used again for the next notebook.
    """

    def __init__(self, lab: Lab, chromium: Any) -> None:
        self.lab = lab
        self.context = chromium.new_context()
        self.loaded: Any = None
        """A page with a JupyterLab that shows no notebook now."""

    def open(
        self, name: str, cells: Sequence[str], width: int = 1280, height: int = 900, front_end: str = "lab"
    ) -> Page:
        """A notebook of these code cells, open in one of the `FRONT_ENDS` with a fresh kernel, not run yet."""
        content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        content.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(content, self.lab.folder / name)
        page, self.loaded = (self.loaded, None) if front_end == "lab" else (None, self.loaded)
        again = page is not None
        page = page or patient(self.context.new_page())
        page.set_viewport_size({"width": width, "height": height})
        found = Page(page, name)
        page.on("pageerror", found.note_error)
        page.on("console", found.note_message)
        if again:
            page.evaluate(OPEN, name)
        else:
            self.lab.reset_settings()
            page.goto(f"{self.lab.url}/{FRONT_ENDS[front_end].format(name=name)}", wait_until="domcontentloaded")
        wait_ready(page, name)
        page.evaluate("() => { window.fromDesk = true }")
        return found

    def close(self, found: Page, front_end: str = "lab") -> None:
        """Close a notebook and end its kernel. A page that cannot be made what it was when it was loaded is closed."""
        page, keep = found.page, False
        with contextlib.suppress(Exception):
            page.evaluate(CLOSE)
            if front_end == "lab" and self.loaded is None:
                found.set_theme("JupyterLab Light")
                page.mouse.move(0, 0)
                keep = page.evaluate(AS_LOADED)
        page.remove_listener("pageerror", found.note_error)
        page.remove_listener("console", found.note_message)
        if keep:
            self.loaded = page
        else:
            page.close()


def open_notebook(lab: Lab, chromium: Any, name: str, cells: Sequence[str]) -> Page:
    """A notebook of these code cells in a browser context and a JupyterLab page of its own."""
    return Desk(lab, chromium).open(name, cells)
