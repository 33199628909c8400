"""What the processes of a sweep on this machine run."""

from __future__ import annotations

import os
import queue
import struct
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from tinote.lang.sweeps.runs import Outcome, Part, loaded, reduce, run

#: Before a call: its number.
NUMBER = struct.Struct("<q")


def main(descriptor: int) -> None:
    """Run what comes, until nothing comes any more."""
    connection = Connection(descriptor)
    payload, threads = connection.recv()
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, calls), daemon=True).start()
    while True:
        message = calls.get()
        (number,) = NUMBER.unpack_from(message)
        try:
            call = loaded(message[NUMBER.size :])
        except Exception as error:
            connection.send((number, Outcome(None, float("nan"), f"its arguments cannot be read: {error!r}")))
            continue
        try:
            found = reduce(payload, call, threads) if isinstance(call, Part) else run(payload, call, threads)
            answer: tuple[int, Any] = number, found
        except Exception as error:
            answer = -1, f"{error or type(error).__name__}\n{traceback.format_exc()}"
        connection.send(answer)


def _receive(connection: Connection, calls: queue.SimpleQueue[bytes]) -> None:
    """Where whoever has sent the calls is gone, this process has nothing to live for, whatever it computes."""
    try:
        while True:
            calls.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)
