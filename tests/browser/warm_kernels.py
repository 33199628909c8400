"""Kernels that are forked from a process that has imported what they need, which takes half of the 1.3 s of processor
time until a fresh one shows a view. Besides, a kernel is what it is elsewhere: a process, in a group of its own, which
a server or client of notebooks starts, interrupts, restarts and kills. As a program: a server with such kernels.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any
from unittest.mock import patch

IMPORTED = (
    *("ipykernel.kernelapp", "tornado.platform.asyncio", "psutil", "sqlite3"),
    *("IPython.core.completer", "IPython.core.debugger", "IPython.core.oinspect", "IPython.extensions.storemagic"),
    *("ipywidgets", "anywidget", "tinote.viz", "tinote.ad"),
    *("tinote.compiler.frontend.lower", "tinote.compiler.cache.kernel_cache", __name__),
)

_forks = multiprocessing.get_context("forkserver")


class ForkedKernel:
    """A kernel's process: what the server knows of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str | None) -> None:
        here, there = _forks.Pipe()
        self._process = _forks.Process(target=serve, args=(command, dict(environment), folder, there), daemon=True)
        self._process.start()
        there.close()
        here.recv()  # from here on, signals to its group are for it alone
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        assert self.pid is not None
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()


def serve(command: Sequence[str], environment: Mapping[str, str], folder: str | None, begun: Connection) -> None:
    """Be the kernel that `command` starts."""
    os.setsid()
    begun.send(None)
    begun.close()
    os.environ.clear()
    os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    parent = f"--IPKernelApp.parent_handle={os.getppid()}"
    sys.argv = [*command[command.index("ipykernel_launcher") :], parent]
    threading.Thread(target=end_with_server, daemon=True).start()
    importlib.import_module("ipykernel.kernelapp").launch_new_instance()


def end_with_server() -> None:
    """As a kernel's poller of its parent does, which is another process here."""
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)


def launch_forked(
    cmd: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None, **_: Any
) -> ForkedKernel:
    """In the place of `jupyter_client.launch_kernel`."""
    return ForkedKernel(cmd, os.environ if env is None else env, cwd)


@contextmanager
def forked_kernels(*more: str) -> Iterator[None]:
    """Kernels that this process starts meanwhile are such. The process that they are forked from starts the first time,
    and imports these modules, too. (Matplotlib reads when it is imported that it draws in a kernel.)
    """
    _forks.set_forkserver_preload([*IMPORTED, *more])
    with patch.dict(os.environ, MPLBACKEND="module://matplotlib_inline.backend_inline"):
        forkserver.ensure_running()
    with patch("jupyter_client.provisioning.local_provisioner.launch_kernel", launch_forked):
        yield


def main() -> None:
    """JupyterLab and Notebook 7 with such kernels."""
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # see `tests/conftest.py`
    with forked_kernels():
        sys.exit(importlib.import_module("jupyterlab.labapp").main())
