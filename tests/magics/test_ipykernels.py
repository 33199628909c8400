"""A session in a real kernel process: of the oldest ipykernel that the project supports, and of the installed one.

A small client stands in for the front end. The oldest ipykernel comes from the package index, into a folder that only
its own process sees; where it cannot be had, its tests are skipped, unless `CI` is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = Path(__file__).parents[2]
SECONDS = 240.0
"""An answer that is not there by then will not come any more."""

Message = dict[str, Any]


def oldest_version() -> str:
    """The lower bound of what pyproject.toml asks for."""
    asked = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    [bounds] = [found.specifier for found in map(Requirement, asked) if found.name == "ipykernel"]
    [lowest] = [bound.version for bound in bounds if bound.operator == ">="]
    return lowest


class Session:
    """A kernel and its client. `messages` keeps what the kernel has published."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client
        self.messages: list[Message] = []

    def start(self, code: str) -> str:
        """Begin to run a cell, as a person at a front end does; gives the request's number. A failure does not take
        the cells with it that wait already: a program is faster than a person.
        """
        return self.client.execute(code, allow_stdin=True, stop_on_error=False)

    def wait(self, found: Callable[[Message], Any]) -> Any:
        """What `found` says of the first message published from now on of which it says something."""
        end = time.monotonic() + SECONDS
        while True:
            message = self.client.get_iopub_msg(timeout=end - time.monotonic())
            self.messages.append(message)
            if answer := found(message):
                return answer

    def run(self, code: str) -> str:
        """Run a cell to its end: what it printed, and its error."""
        return self.ended(self.start(code))

    def ended(self, request: str) -> str:
        """Wait until the cell of a request has ended: what it printed, and its error."""
        self.wait(lambda message: message["content"].get("execution_state") == "idle" and _parent(message) == request)
        shown = []
        for message in self.messages:
            if _parent(message) == request:
                content = message["content"]
                shown += [content["text"]] if message["msg_type"] == "stream" else content.get("traceback", [])
        return "".join(shown)

    def printed(self, text: str) -> None:
        """Wait until a cell prints something with `text` in it."""
        self.wait(lambda message: message["msg_type"] == "stream" and text in message["content"]["text"])

    def shown_widget(self) -> str:
        """Wait until a cell shows a widget: the number of what connects it to its page."""
        kind = "application/vnd.jupyter.widget-view+json"
        return self.wait(lambda message: message["content"].get("data", {}).get(kind, {}).get("model_id"))

    def say(self, comm: str, **content: Any) -> None:
        """Send what a widget's page says."""
        data = {"comm_id": comm, "data": {"method": "custom", "content": content}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", data))

    def frame(self, comm: str) -> Message:
        """The next frame of a view, acknowledged."""
        content = self.wait(lambda message: _custom(message, comm, "frame"))
        self.say(comm, kind="ack", frame=content["frame"], waited=0.0)
        return content


def _parent(message: Message) -> str:
    return message["parent_header"].get("msg_id", "")


def _custom(message: Message, comm: str, kind: str) -> Message | None:
    content = message["content"]
    if message["msg_type"] != "comm_msg" or content["comm_id"] != comm:
        return None
    said = content["data"].get("content") or {}
    return said if said.get("kind") == kind else None


@pytest.fixture(scope="module", params=["oldest", "installed"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A kernel in which tinote and its magics are loaded."""
    paths = [str(PROJECT)]
    version = metadata.version("ipykernel")
    if request.param == "oldest":
        version, site = oldest_version(), tmp_path_factory.mktemp("oldest")
        wanted = [f"ipykernel=={version}", "nest_asyncio"]  # What the installed one does not need any more.
        options = ["--quiet", "--retries=10", "--no-deps", "--target", str(site)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, *wanted], capture_output=True, text=True
        )
        if done.returncode:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"ipykernel {version} cannot be had: {done.stderr}")
        paths.insert(0, str(site))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TINOTE_")}
    environment |= {"PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython"))}
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        found = Session(manager, client)
        assert Version(found.run("import ipykernel\nprint(ipykernel.__version__)")) == Version(version)
        assert found.run("%load_ext tinote\nimport numpy as np\nimport tinote as ti\nti.init()") == ""
        yield found
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_prints_arrive_while_a_kernel_runs_and_an_interrupt_ends_it(session: Session) -> None:
    head = "%%kernel -q\ndef count(turns: ti.i32, then_stay: ti.i32):\n"
    cell = head + "    for k in range(turns):\n        print('turn', k)\n"
    assert session.run("x = ti.field(ti.f32, shape=4)\nx[3] = 5.0\n") == ""
    assert session.run(cell + "    while then_stay == 1:\n        x[0] += 0.0") == ""
    assert session.run("count(3, 0)") == "turn 0\nturn 1\nturn 2\n"
    request = session.start("count(3, 1)")
    session.printed("turn 2")
    session.manager.interrupt_kernel()
    shown = session.ended(request)
    assert "KeyboardInterrupt" in shown and "tinote/" not in shown
    assert session.run("count(1, 0)\nprint(x[3])") == "turn 0\n5.0\n"


def test_an_error_is_shown_at_the_cells_own_line(session: Session) -> None:
    shown = session.run("%%kernel -q\ndef wrong():\n    for i in range(3):\n        missing[i] = 1.0\n\nwrong()")
    assert "missing[i] = 1.0" in shown and "^^^" in shown and "line 4" in shown
    assert "tinote/" not in shown and "Traceback" not in shown


VIEW = """
from tinote.viz import Particles
p = np.full((3, 2), 0.5)
def step():
    p[:, 0] += 0.001
    print("a step")
view = Particles(p, step)
view"""


def test_a_live_view_obeys_its_page(session: Session) -> None:
    request = session.start(VIEW)
    comm = session.shown_widget()
    session.ended(request)
    session.say(comm, kind="ready", view="page", visible=True, order=0)
    assert session.frame(comm)["step"] == 0
    session.say(comm, kind="play")
    while session.frame(comm)["step"] < 10:
        pass
    # Another cell answers meanwhile, and what the step prints belongs to the cell of the view.
    assert session.run("print(view.state)") == "playing\n"
    assert {_parent(m) for m in session.messages if "a step" in m["content"].get("text", "")} == {request}
    session.say(comm, kind="pause")
    assert session.wait(lambda message: (_custom(message, comm, "frame") or {}).get("whole"))
    session.say(comm, kind="step")
    assert session.run("view.stop()\nprint(view.state)") == "stopped\n"


COUNT = """
import comm, gc, threading
from tinote.viz.live.simulation import LiveSimulation
gc.collect()
views = sum(isinstance(one, LiveSimulation) for one in gc.get_objects())
print(views, len(comm.get_comm_manager().comms), threading.active_count())"""


def counted(session: Session) -> list[int]:
    """The views, comms and threads that there are."""
    return [int(count) for count in session.run(COUNT).split()]


QUIET = """
from tinote.viz import Particles
view = Particles(np.full((3, 2), 0.5), step=lambda: None, trail=5)
"""


@pytest.mark.parametrize(
    "shows",
    [
        "view",
        "from IPython.display import display\ndisplay(view)",
        "import ipywidgets\nipywidgets.VBox([view])",
        "other = Particles(np.zeros((3, 2)), step=lambda: None)\nfrom IPython.display import display\n"
        "display(other)\nview",
    ],
    ids=["at the end", "displayed", "in a box", "two of them"],
)
def test_views_of_a_cell_that_runs_again_are_let_go(session: Session, shows: str) -> None:
    cell = QUIET + shows
    for _ in range(4):  # IPython keeps the last three results
        assert session.run(cell) == ""
    before = [max(counts) for counts in zip(*(counted(session) for _ in range(3)), strict=True)]
    for _ in range(4):
        assert session.run(cell) == ""
    # A thread that ends is still counted for a moment.
    assert any(all(now <= then for now, then in zip(counted(session), before, strict=True)) for _ in range(20))
    session.run("view.close()")


def test_a_view_that_a_page_or_another_cell_shows_stays(session: Session) -> None:
    request = session.start(QUIET + "kept = view\nview")
    comm = session.shown_widget()
    session.ended(request)
    session.say(comm, kind="ready", view="page", visible=True, order=0)
    session.frame(comm)
    assert session.run(QUIET + "view") == session.run("view  # in another cell") == session.run("other = view") == ""
    assert session.run(QUIET + "view") == ""
    assert session.run("print(kept.comm is None, other.comm is None)") == "False False\n"
    # The first cell, with another view: the page takes the former off when the output is gone.
    assert session.run(QUIET + "kept = view\nview") == ""
    closed = "print(comm_of_the_first in comm.get_comm_manager().comms)"
    assert session.run(f"import comm\ncomm_of_the_first = {comm!r}\n{closed}") == "True\n"
    session.say(comm, kind="gone", view="page", order=1)
    assert session.run(closed) == "False\n"


LOOP = """
gui = ti.GUI("window", res=(64, 48))
while gui.running:
    gui.circle((0.5, 0.5), radius=8)
    gui.show()
"""


def test_a_blocking_loop_draws_and_leaves_a_picture_at_an_interrupt(session: Session) -> None:
    """The oldest hands over what the page says only after the cell: the loop goes on without it."""
    request = session.start(LOOP)
    comm = session.shown_widget()
    for _ in range(5):
        session.frame(comm)
    session.manager.interrupt_kernel()
    assert "KeyboardInterrupt" in session.ended(request)
    [*_, left] = [m["content"]["data"] for m in session.messages if m["msg_type"] == "update_display_data"]
    assert set(left) == {"text/plain", "image/png"}
    assert session.run("print(gui.frame >= 5, gui.running)") == "True True\n"
