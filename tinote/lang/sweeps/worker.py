"""The program of a sweep's worker processes on this machine."""

from __future__ import annotations

import os
import queue
import struct
import threading
import traceback
from typing import Any

from tinote.lang.sweeps.children import PipeEnd, end_with_children
from tinote.lang.sweeps.runs import perform
from tinote.system import register_at_fork

#: Before a call: its number.
NUMBER = struct.Struct("<q")


def main(descriptor: int) -> None:
    """Run what comes, until nothing comes any more."""
    connection = PipeEnd(descriptor)
    register_at_fork(after_in_child=connection.close)  # else the parent would not see that this process has ended
    payload, threads = connection.recv()
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, calls), daemon=True).start()
    own = os.getpid()
    while True:
        message = calls.get()
        (number,) = NUMBER.unpack_from(message)
        try:
            answer: tuple[int, Any] = number, perform(payload, message[NUMBER.size :], threads)
        except Exception as error:
            answer = -1, f"{error or type(error).__name__}\n{traceback.format_exc()}"
        if os.getpid() != own:  # the function has forked, and returned in the child, too
            os._exit(0)
        connection.send(answer)


def _receive(connection: PipeEnd, calls: queue.SimpleQueue[bytes]) -> None:
    """Where the process that sends the calls is gone, this one ends, with its children, whatever it computes."""
    try:
        while True:
            calls.put(connection.recv_bytes())
    except (EOFError, OSError):
        end_with_children(os.getpid())
