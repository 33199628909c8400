"""Child processes that get one end of a pipe and no interrupts, and that end together with all processes that they
started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as PipeEnd
else:
    from multiprocessing.connection import Connection as PipeEnd

__all__ = ["PipeEnd", "begin_child", "end_with_children"]


def begin_child(command: Sequence[str], pipe: PipeEnd) -> subprocess.Popen[bytes]:
    """Start a command to which `pipe.fileno()` means the same pipe. An interrupt is for who has started it."""
    if sys.platform == "win32":
        os.set_handle_inheritable(pipe.fileno(), True)
        inherited = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [pipe.fileno()]})
        group = subprocess.CREATE_NEW_PROCESS_GROUP
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, startupinfo=inherited, creationflags=group)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[pipe.fileno()], start_new_session=True)


def end_with_children(process: int) -> None:
    """End a process that `begin_child` has started, and all that it has. `ProcessLookupError`: there is none."""
    if sys.platform == "win32":
        command = ["taskkill", "/F", "/T", "/PID", str(process)]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    else:
        os.killpg(process, signal.SIGKILL)
